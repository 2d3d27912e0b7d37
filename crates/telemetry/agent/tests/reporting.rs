//! Interface counters: of sampled interfaces, soon after the start and then once in every interval.

mod common;

use std::time::{Duration, Instant};

use common::collector::{Counters, Interfaces, Receiver, config, wait_for};
use common::{Packets, Rig, packets};
use weir_flowfmt::sflow::encode::Encoding;
use weir_flowfmt::sflow::{DataFormat, InterfaceCounters, Source};
use weir_telemetry::agent::{Agent, AgentConfig, AgentHandle, InterfaceReport};

/// An interface whose every counter is unlike the others.
fn report(ifindex: u32, sampled: bool) -> InterfaceReport {
    InterfaceReport {
        ifindex,
        name: format!("port{ifindex}"),
        sampled,
        speed: 25_000_000_000,
        admin_up: true,
        oper_up: ifindex != 3,
        in_octets: (1 << 40) + 1,
        in_unicast: (1 << 32) + 2,
        in_multicast: 3,
        in_broadcast: 4,
        in_discards: 5,
        in_errors: 6,
        out_octets: (1 << 41) + 7,
        out_unicast: (1 << 33) + 8,
        out_multicast: 9,
        out_broadcast: 10,
        out_discards: 11,
        out_errors: 12,
        ..InterfaceReport::default()
    }
}

fn start(
    receiver: &Receiver,
    polling_interval: u32,
    interfaces: std::sync::Arc<Interfaces>,
) -> AgentHandle {
    let config = AgentConfig {
        polling_interval,
        ..config(&[receiver.address()])
    };
    Agent::start(config, Vec::new(), interfaces).unwrap()
}

/// What was reported until `time` is over.
fn counters(receiver: &Receiver, time: Duration) -> Vec<Counters> {
    let until = Instant::now() + time;
    let mut counters = Vec::new();
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        counters.extend(
            receiver
                .next(left)
                .into_iter()
                .flat_map(|datagram| datagram.counters),
        );
    }
    counters
}

#[test]
fn a_report_holds_what_the_router_says() {
    for (encoding, format) in [
        (Encoding::Expanded, DataFormat::COUNTERS_SAMPLE_EXPANDED),
        (Encoding::Compact, DataFormat::COUNTERS_SAMPLE),
    ] {
        let receiver = Receiver::new();
        let config = AgentConfig {
            polling_interval: 20,
            encoding,
            ..config(&[receiver.address()])
        };
        let agent = Agent::start(
            config,
            Vec::new(),
            Interfaces::of(vec![report(3, true), report(4, true), report(5, false)]),
        )
        .unwrap();
        let datagram = receiver
            .next(Duration::from_secs(10))
            .expect("soon after the start");
        let _ = agent.stop();
        assert!(datagram.flows.is_empty());
        let [three, four] = &datagram.counters[..] else {
            panic!("{datagram:?}")
        };
        assert_eq!((three.format, four.format), (format, format));
        assert_eq!(
            (
                three.sample.sequence,
                three.sample.source,
                three.name.as_str()
            ),
            (1, Source::interface(3), "port3")
        );
        assert_eq!(
            (four.sample.sequence, four.sample.source, four.name.as_str()),
            (1, Source::interface(4), "port4")
        );
        let expected = InterfaceCounters {
            index: 3,
            kind: 6,
            speed: 25_000_000_000,
            direction: 1,
            status: 0b01,
            in_octets: (1 << 40) + 1,
            in_unicast: 2,
            in_multicast: 3,
            in_broadcast: 4,
            in_discards: 5,
            in_errors: 6,
            in_unknown_protocols: u32::MAX,
            out_octets: (1 << 41) + 7,
            out_unicast: 8,
            out_multicast: 9,
            out_broadcast: 10,
            out_discards: 11,
            out_errors: 12,
            promiscuous: 0,
        };
        assert_eq!(three.interface, expected);
        assert_eq!(
            four.interface,
            InterfaceCounters {
                index: 4,
                status: 0b11,
                ..expected
            }
        );
    }
}

#[test]
fn a_number_that_is_not_known_is_0_and_a_counter_all_ones() {
    let receiver = Receiver::new();
    let unknown = InterfaceReport {
        ifindex: 7,
        sampled: true,
        ..InterfaceReport::default()
    };
    let agent = start(&receiver, 20, Interfaces::of(vec![unknown]));
    let datagram = receiver
        .next(Duration::from_secs(10))
        .expect("soon after the start");
    let _ = agent.stop();
    let [only] = &datagram.counters[..] else {
        panic!("{datagram:?}")
    };
    assert_eq!((only.interface.speed, only.interface.promiscuous), (0, 0));
    assert_eq!(only.interface.in_unknown_protocols, u32::MAX);
}

#[test]
fn counters_come_once_in_every_interval_spread_over_it() {
    let receiver = Receiver::new();
    let started = Instant::now();
    let agent = start(
        &receiver,
        2,
        Interfaces::of(vec![report(1, true), report(2, true), report(3, false)]),
    );
    let counters = counters(&receiver, Duration::from_millis(7_000));
    let _ = agent.stop();
    let mut seconds = Vec::new();
    for interface in [1, 2] {
        let of: Vec<&Counters> = counters
            .iter()
            .filter(|it| it.sample.source.index == interface)
            .collect();
        assert!(
            of.iter()
                .map(|it| it.sample.sequence)
                .eq(1..=of.len() as u32),
            "gapless"
        );
        assert!((4..=5).contains(&of.len()), "{} in seven seconds", of.len());
        let times: Vec<f64> = of
            .iter()
            .map(|it| it.at.duration_since(started).as_secs_f64())
            .collect();
        assert!(times[0] < 1.0, "soon after the start: {times:?}");
        // The first one is beside the interval's rhythm.
        assert!(
            times.windows(2).all(|pair| pair[1] - pair[0] < 2.6),
            "{times:?}"
        );
        assert!(
            times[1..].windows(2).all(|pair| pair[1] - pair[0] > 1.4),
            "{times:?}"
        );
        seconds.push(times[1]);
    }
    assert!(
        (seconds[0] - seconds[1]).abs() > 0.3,
        "not at one moment: {seconds:?}"
    );
    assert!(
        counters.iter().all(|it| it.sample.source.index != 3),
        "not sampled, not reported"
    );
}

#[test]
fn an_interval_of_zero_reports_nothing_until_it_is_changed() {
    let receiver = Receiver::new();
    let agent = start(&receiver, 0, Interfaces::of(vec![report(1, true)]));
    assert!(counters(&receiver, Duration::from_millis(1_200)).is_empty());
    agent.reconfigure(AgentConfig {
        polling_interval: 60,
        ..config(&[receiver.address()])
    });
    assert_eq!(counters(&receiver, Duration::from_millis(1_500)).len(), 1);
    agent.reconfigure(config(&[receiver.address()]));
    assert!(counters(&receiver, Duration::from_millis(1_200)).is_empty());
    let _ = agent.stop();
}

#[test]
fn an_interface_that_is_sampled_later_is_reported_soon() {
    let receiver = Receiver::new();
    let interfaces = Interfaces::of(vec![report(1, false)]);
    let agent = start(&receiver, 60, interfaces.clone());
    assert!(counters(&receiver, Duration::from_millis(600)).is_empty());
    interfaces.0.lock().unwrap()[0].sampled = true;
    wait_for("its first report", || {
        receiver
            .next(Duration::from_millis(10))
            .is_some_and(|datagram| datagram.counters.len() == 1)
    });
    assert_eq!(agent.stop().interfaces.len(), 1);
}

/// Flow samples and counters go out in one stream of datagrams, under one sequence.
#[test]
fn counters_and_samples_share_datagrams() {
    let Packets { packets, .. } = packets(60, 64);
    let receiver = Receiver::new();
    let mut rig = Rig::new(1, 1);
    rig.look_on(1, &packets);
    let config = AgentConfig {
        polling_interval: 1,
        ..config(&[receiver.address()])
    };
    let agent = Agent::start(
        config,
        vec![rig.give_source()],
        Interfaces::of(vec![report(1, true)]),
    )
    .unwrap();
    let mut datagrams = Vec::new();
    wait_for("three reports", || {
        rig.look_on(1, &packets);
        datagrams.extend(receiver.next(Duration::from_millis(30)));
        datagrams
            .iter()
            .flat_map(|datagram| &datagram.counters)
            .count()
            >= 3
    });
    let stats = agent.stop();
    datagrams.extend(receiver.all());
    assert!(
        datagrams
            .iter()
            .map(|datagram| datagram.sequence)
            .eq(1..=stats.datagrams as u32)
    );
    assert!(
        datagrams
            .iter()
            .any(|datagram| !datagram.counters.is_empty() && !datagram.flows.is_empty())
    );
    assert!(
        datagrams
            .iter()
            .flat_map(|datagram| &datagram.counters)
            .map(|it| it.sample.sequence)
            .eq(1..=datagrams.iter().map(|it| it.counters.len() as u32).sum())
    );
    assert_eq!(stats.samples_sent, [rig.taken()]);
}
