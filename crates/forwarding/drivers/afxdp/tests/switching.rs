//! Frames through two ports over veth: nothing lost, nothing changed, nothing leaked.

#[allow(dead_code, reason = "each test program uses a part of it")]
mod common;
#[allow(dead_code, reason = "each test program uses a part of it")]
mod switch;

use std::time::Duration;

use common::{can_run, pool};
use switch::{
    Arrived, ENDS, Pace, Switch, account, assert_whole, both_ways, counter, greet, open, traffic,
};
use weir_afxdp::{AfxdpPort, Mode};
use weir_buf::Pool;
use weir_netlink::lab::{Lab, NEAR, ROUTER, has_program};
use weir_port::{Port, Source};

const FRAMES: u32 = 10_000;
const ALL: Arrived = Arrived {
    numbers: FRAMES as usize,
    again: 0,
    damaged: 0,
};

/// Two ports, joined.
fn joined(lab: &Lab, mode: Mode, pool: &Pool) -> (AfxdpPort, AfxdpPort, Switch) {
    let mut one = open(lab, ENDS[0], mode, pool).unwrap();
    let mut other = open(lab, ENDS[1], mode, pool).unwrap();
    let switch = Switch::start(&mut one, &mut other, pool);
    (one, other, switch)
}

/// Sends numbered frames both ways, one way after the other, and lets none be missing.
#[track_caller]
fn assert_all_arrive(lab: &Lab, ports: [&AfxdpPort; 2], flows: u16) {
    for (from, to, sink) in both_ways(lab, flows) {
        let arrived = traffic(&from, to, &sink, FRAMES, Pace::Rate(20_000.0));
        assert!(
            arrived == ALL,
            "to {to}: {arrived:?}\n{}",
            account(lab, ports)
        );
    }
}

#[test]
fn ten_thousand_paced_frames_each_way() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let pool = pool(16_384);
    let (one, other, switch) = joined(&lab, Mode::Auto, &pool);
    let router = lab.host(ROUTER).unwrap();
    let capabilities = one.capabilities();
    assert_eq!(
        (
            capabilities.mode.as_str(),
            capabilities.rx_queues,
            capabilities.tx_queues
        ),
        ("native, copy", 1, 1)
    );
    assert_eq!(
        capabilities.max_frame, 1518,
        "an MTU of 1500 with one VLAN tag"
    );
    assert_eq!(one.mac().map(|mac| mac.0), Some([2, 0, 0, 0, 0, 0x1a]));
    assert_eq!(router.link(ENDS[0]).unwrap().promiscuity, 1);

    greet(&lab);
    assert_all_arrive(&lab, [&one, &other], 1);

    for port in [&one, &other] {
        assert_eq!(
            counter(port, "rx_packets", Source::Driver),
            u64::from(FRAMES),
            "{:?}",
            port.counters()
        );
        assert_eq!(
            counter(port, "tx_packets", Source::Driver),
            u64::from(FRAMES)
        );
        assert_eq!(
            counter(port, "rx_bad_descriptors", Source::Driver)
                + counter(port, "tx_bad_completions", Source::Driver),
            0
        );
        assert_eq!(counter(port, "rx_dropped", Source::Xdp), 0);
        assert!(counter(port, "rx_packets", Source::Kernel) >= u64::from(FRAMES));
        assert!(counter(port, "rx_queue_0_xdp_packets", Source::Ethtool) >= u64::from(FRAMES));
    }
    assert_eq!(switch.end().refused, 0);
    drop((one, other));
    assert_eq!(
        router.link(ENDS[0]).unwrap().promiscuity,
        0,
        "given up with the port"
    );
    assert_whole(&pool);
}

#[test]
fn every_port_leaves_memory_for_the_next() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let (pool, plenty) = (pool(4096), pool(32_768));
    let _one = open(&lab, ENDS[0], Mode::Native, &pool).unwrap();
    assert_eq!(pool.usage().lent, 1024, "a quarter of what is free");
    let other = open(&lab, ENDS[1], Mode::Native, &pool).unwrap();
    assert_eq!(pool.usage().lent, 1024 + 768, "a quarter of what is left");
    drop(other);
    let _other = open(&lab, ENDS[1], Mode::Native, &plenty).unwrap();
    assert_eq!(plenty.usage().lent, 4096, "and never more than a ring full");
}

#[test]
fn ping_finds_its_way_without_knowing_addresses() {
    if !can_run() {
        return;
    }
    if !has_program("ping") {
        println!("skipped: no ping command");
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let pool = pool(4096);
    let (_one, _other, switch) = joined(&lab, Mode::Native, &pool);
    // One more than is asked of it: for the last reply ping waits only two round trips.
    let arguments = ["-c", "101", "-i", "0.01", "-s", "1400", "10.0.0.2"];
    let finished = lab
        .host(NEAR)
        .unwrap()
        .run("ping", &arguments, Duration::from_secs(20))
        .unwrap();
    for sequence in 1..=100 {
        assert!(
            finished.stdout.contains(&format!("icmp_seq={sequence} ")),
            "no reply {sequence}: {}",
            finished.stdout
        );
    }
    switch.end();
}

#[test]
fn two_queues_carry_all_frames() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().queues(2).build().unwrap();
    let pool = pool(16_384);
    let (one, other, switch) = joined(&lab, Mode::Native, &pool);
    assert_eq!(
        (one.capabilities().rx_queues, one.capabilities().tx_queues),
        (2, 2)
    );
    greet(&lab);
    assert_all_arrive(&lab, [&one, &other], 16);
    for queue in [
        "rx_packets_q0",
        "rx_packets_q1",
        "tx_packets_q0",
        "tx_packets_q1",
    ] {
        assert!(
            counter(&one, queue, Source::Driver) > 0,
            "{queue} has its share: {:?}",
            one.counters()
        );
    }
    switch.end();
    drop((one, other));
    assert_whole(&pool);
}

#[test]
fn generic_mode_when_it_is_asked_for() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let pool = pool(16_384);
    let (one, other, switch) = joined(&lab, Mode::Generic, &pool);
    assert!(
        one.capabilities().mode.starts_with("generic"),
        "{:?}",
        one.capabilities()
    );
    greet(&lab);
    assert_all_arrive(&lab, [&one, &other], 1);
    // What a native program sees the driver counts; of a generic one it knows nothing.
    let native = one
        .counters()
        .into_iter()
        .find(|counter| counter.name == "rx_queue_0_xdp_packets");
    assert_eq!(native.map(|counter| counter.value), Some(0));
    switch.end();
    drop((one, other));
    assert_whole(&pool);
}

/// More than the rings hold, as fast as the host can: what is lost is counted, and nothing leaks.
#[test]
fn a_flood_loses_frames_but_no_memory() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let pool = pool(1024);
    let (one, other, switch) = joined(&lab, Mode::Native, &pool);
    greet(&lab);
    let [(from, to, sink), _] = both_ways(&lab, 1);
    let arrived = traffic(&from, to, &sink, 100_000, Pace::Flood);
    assert!(
        arrived.numbers > 1000 && arrived.damaged + arrived.again == 0,
        "{arrived:?}"
    );
    let (received, sent) = (
        counter(&one, "rx_packets", Source::Driver),
        counter(&other, "tx_packets", Source::Driver),
    );
    let switched = switch.end();
    assert_eq!(
        received,
        sent + switched.refused,
        "every frame was sent or refused"
    );
    drop((one, other));
    assert_whole(&pool);
}
