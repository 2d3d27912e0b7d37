//! A device that disappears under a running port, or a process that is killed with one: the others
//! go on, nothing leaks, and the device can be used again.

#[allow(dead_code, reason = "each test program uses a part of it")]
mod common;
#[allow(dead_code, reason = "each test program uses a part of it")]
mod switch;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use common::{can_run, pool, wait_for};
use switch::{Arrived, ENDS, Pace, Switch, assert_whole, both_ways, counter, greet, open, traffic};
use weir_afxdp::{AfxdpConfig, AfxdpPort, Mode};
use weir_buf::{PktCache, Vector};
use weir_netlink::ethtool::Offload;
use weir_netlink::lab::{Cable, Lab, Port as End, ROUTER};
use weir_netlink::netns::{NetNs, spawn_lasting};
use weir_port::{Port, Source};

const ALL: Arrived = Arrived {
    numbers: 2000,
    again: 0,
    damaged: 0,
};

/// One more pair, from the host to a device of the router.
fn cable(lab: &mut Lab, device: &str) {
    lab.add_host(&format!("far-{device}")).unwrap();
    let far = End::new(&format!("far-{device}"), "eth0").offload(Offload::GenericReceive, true);
    lab.connect(&Cable::new(far, End::new(ROUTER, device)))
        .unwrap();
}

fn delete(lab: &Lab, device: &str) {
    let mut route = lab.host(ROUTER).unwrap().route().unwrap();
    let index = route.link_by_name(device).unwrap().index;
    route.delete(index).unwrap();
}

#[test]
fn the_others_go_on_and_the_device_comes_back() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::two_hosts().switched().build().unwrap();
    cable(&mut lab, "third");
    cable(&mut lab, "fourth");
    let pool = pool(16_384);
    let mut ports: Vec<_> = [ENDS[0], ENDS[1], "third", "fourth"]
        .map(|device| open(&lab, device, Mode::Auto, &pool).unwrap())
        .into();
    let (mut fourth, mut third) = (ports.pop().unwrap(), ports.pop().unwrap());
    let (mut other, mut one) = (ports.pop().unwrap(), ports.pop().unwrap());
    let doomed = Switch::start(&mut third, &mut fourth, &pool);
    let switch = Switch::start(&mut one, &mut other, &pool);
    assert!(third.link().up && !third.should_reopen());

    delete(&lab, "third");
    wait_for("the link going down", || !third.link().up);
    assert!(!third.should_reopen(), "the device is not back");
    assert!(fourth.link().up, "only its neighbour vanished");
    let _ = third.counters();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(
        doomed.end().dead,
        1,
        "one of the two receiving queues is dead"
    );

    greet(&lab);
    for (from, to, sink) in both_ways(&lab, 1) {
        assert_eq!(
            traffic(&from, to, &sink, 2000, Pace::Rate(20_000.0)),
            ALL,
            "the others forward on"
        );
    }
    let before = counter(&third, "rx_packets", Source::Driver);
    assert_eq!(
        before,
        counter(&third, "rx_packets", Source::Driver),
        "what it counted is not forgotten"
    );

    cable_again(&lab);
    wait_for("the port being worth opening", || third.should_reopen());
    drop(third);
    let mut again = open(&lab, "third", Mode::Auto, &pool).unwrap();
    wait_for("the link going up", || again.link().up);
    assert_eq!(again.take_queues().len(), 1);
    switch.end();
    drop((one, other, again, fourth));
    assert_whole(&pool);
}

/// The vanished device under its old name, its other end in the same namespace.
fn cable_again(lab: &Lab) {
    let mut route = lab.host(ROUTER).unwrap().route().unwrap();
    let pair = weir_netlink::route::VethPair {
        name: "third",
        peer_name: "spare",
        ..Default::default()
    };
    route.create_veth(&pair).unwrap();
    for name in ["third", "spare"] {
        let index = route.link_by_name(name).unwrap().index;
        route.set_up(index, true).unwrap();
    }
}

/// The device goes with no control thread looking: a worker that polls or sends finds out itself.
#[test]
fn a_worker_notices_by_itself() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let pool = pool(4096);
    let mut port = open(&lab, ENDS[0], Mode::Native, &pool).unwrap();
    let pair = port.take_queues().remove(0);
    let (mut rx, mut tx) = (pair.rx.unwrap(), pair.tx.unwrap());
    delete(&lab, ENDS[0]);
    let mut cache = PktCache::new(&pool);
    let mut vector = Vector::with_capacity(256);
    wait_for("the death of the queue", || {
        rx.before_sleep();
        rx.recv(&mut vector, &mut cache, 256);
        rx.is_dead()
    });
    let mut packet = cache.alloc().unwrap();
    assert!(packet.fill(&[0xff; 60]));
    vector.push(packet);
    for _ in 0..3 {
        tx.send(&mut vector, &mut cache);
        tx.flush(&mut cache);
    }
    cache.free_all(vector.drain());
    drop((rx, tx, port, cache));
    assert_whole(&pool);
}

/// Set for the process that is to be killed: the descriptor of a namespace cannot be passed, so the
/// process is started inside.
const VICTIM: &str = "WEIR_AFXDP_VICTIM";

/// Not a test: what the killed process does. It says so when the port is open, and waits.
#[test]
fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let pool = pool(2048);
    let port = AfxdpPort::open(&AfxdpConfig::new(ENDS[0]), &pool).unwrap();
    println!("\nopen {}", port.capabilities().mode);
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_process_leaves_the_device_free() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let router = lab.host(ROUTER).unwrap();
    let mut child = start_victim(router.namespace());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines.any(|line| line.unwrap().starts_with("open native")),
        "the victim opened its port"
    );
    let pool = pool(4096);
    let busy = open(&lab, ENDS[0], Mode::Auto, &pool)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(busy.contains("in use"), "{busy}");
    assert_whole(&pool);
    assert_eq!(router.link(ENDS[0]).unwrap().promiscuity, 1);

    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the device being free again", || {
        open(&lab, ENDS[0], Mode::Auto, &pool).is_ok()
    });
    wait_for("its promiscuous mode being off", || {
        router.link(ENDS[0]).unwrap().promiscuity == 0
    });
    assert_whole(&pool);
}

fn start_victim(namespace: &NetNs) -> std::process::Child {
    let mut command = namespace.command(std::env::current_exe().unwrap());
    command
        .args(["--exact", "victim", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    spawn_lasting(command).unwrap()
}
