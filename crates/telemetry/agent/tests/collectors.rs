//! What goes wrong with collectors costs nobody else anything, is counted, and passes.

mod common;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use common::collector::{Interfaces, Receiver, config, flows, wait_for};
use common::{Packets, Rig, packets};
use weir_netlink::netns::NetNs;
use weir_telemetry::agent::{Agent, AgentConfig, AgentHandle, CollectorStats};

/// A port at which nobody listens.
fn nobody() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

fn start(collectors: &[SocketAddr], rig: &mut Rig) -> AgentHandle {
    Agent::start(
        config(collectors),
        vec![rig.give_source()],
        Interfaces::of(Vec::new()),
    )
    .unwrap()
}

fn of(agent: &AgentHandle, address: SocketAddr) -> CollectorStats {
    agent
        .stats()
        .collectors
        .into_iter()
        .find(|collector| collector.address == Some(address))
        .unwrap()
}

#[test]
fn every_collector_gets_every_datagram() {
    let Packets { packets, .. } = packets(200, 64);
    let receivers = [Receiver::new(), Receiver::new(), Receiver::new()];
    let mut rig = Rig::new(1, 1);
    rig.look(&packets);
    let stats = start(&receivers.each_ref().map(Receiver::address), &mut rig).stop();
    let got = receivers.map(|receiver| {
        receiver
            .all()
            .into_iter()
            .map(|datagram| datagram.bytes)
            .collect::<Vec<_>>()
    });
    assert_eq!(got[0].len() as u64, stats.datagrams);
    assert!(got.iter().all(|datagrams| *datagrams == got[0]));
    assert!(
        stats
            .collectors
            .iter()
            .all(|collector| (collector.sent, collector.errors) == (stats.datagrams, 0))
    );
}

#[test]
fn a_collector_that_refuses_is_counted_and_gets_all_again_once_it_listens() {
    let Packets { packets, .. } = packets(20, 64);
    let (healthy, address) = (Receiver::new(), nobody());
    let mut rig = Rig::new(1, 1);
    let agent = start(&[address, healthy.address()], &mut rig);
    // More than a datagram each time, so that several meet the refusal.
    wait_for("refusals", || {
        rig.look(&packets);
        of(&agent, address).errors > 5
    });
    let refused = of(&agent, address);
    assert!(refused.last_error.unwrap().contains("refused"));
    assert_eq!(of(&agent, healthy.address()).last_error, None);

    let late = Receiver::at(address);
    let mut first = None;
    wait_for("the first datagram there", || {
        rig.look(&packets);
        first = late.next(Duration::from_millis(20));
        first.is_some()
    });
    wait_for("the end of the trouble", || {
        rig.look(&packets);
        of(&agent, address).last_error.is_none()
    });
    let stats = agent.stop();
    let all = healthy.all();
    assert_eq!(
        all.len() as u64,
        stats.datagrams,
        "the other one missed nothing"
    );
    let sequences: Vec<u32> = late
        .all()
        .iter()
        .map(|datagram| datagram.sequence)
        .collect();
    let first = first.unwrap().sequence;
    let expected: Vec<u32> = (first + 1..=stats.datagrams as u32).collect();
    assert_eq!(sequences, expected, "gapless from the first one on");
    // A refusal is the echo of a datagram that the kernel took; none is lost together with it.
    let refused = &stats.collectors[0];
    assert_eq!(refused.sent + refused.errors, stats.datagrams);
    let missed = stats.datagrams - 1 - sequences.len() as u64;
    assert!(
        refused.errors > 5 && refused.errors <= missed,
        "{} errors, {missed} missed",
        refused.errors
    );
}

/// Refusals come back after sending; that of the very last datagram is counted all the same.
#[test]
fn the_last_refusal_is_counted() {
    let Packets { packets, .. } = packets(1, 64);
    let address = nobody();
    let mut rig = Rig::new(1, 1);
    let agent = start(&[address], &mut rig);
    rig.look(&packets);
    wait_for("the refusal", || of(&agent, address).errors == 1);
    assert_eq!((agent.stats().datagrams, of(&agent, address).sent), (1, 0));
    std::thread::sleep(Duration::from_millis(50));
    let stopped = &agent.stop().collectors[0];
    assert_eq!((stopped.sent, stopped.errors), (0, 1), "once");
}

/// No socket can be connected to the broadcast address without asking for it: the kernel refuses at once,
/// as it does when there is no route.
#[test]
fn a_collector_that_cannot_be_reached_disturbs_nobody() {
    let Packets { packets, .. } = packets(40, 64);
    let healthy = Receiver::new();
    let unreachable: SocketAddr = "255.255.255.255:6343".parse().unwrap();
    let mut rig = Rig::new(1, 1);
    let agent = start(&[unreachable, healthy.address()], &mut rig);
    let until = Instant::now() + Duration::from_millis(1_500);
    while Instant::now() < until {
        rig.look(&packets);
        std::thread::sleep(Duration::from_millis(20));
    }
    let stats = agent.stop();
    let (lost, sent) = (&stats.collectors[0], &stats.collectors[1]);
    assert_eq!((lost.sent, lost.errors), (0, stats.datagrams));
    assert!(lost.last_error.is_some());
    assert_eq!((sent.sent, sent.errors), (stats.datagrams, 0));
    assert_eq!(flows(&healthy.all()).len() as u64, rig.taken());
    assert_eq!((stats.samples_sent[0], rig.lost()), (rig.taken(), 0));
}

/// In a namespace of its own, in which the only way to the collector comes and goes under the agent.
#[test]
fn a_route_that_goes_and_comes_back_is_used_again() {
    if let Err(why) = weir_netlink::lab::preflight() {
        eprintln!("skipped: {why}");
        return;
    }
    let namespace = NetNs::new().unwrap();
    let mut route = namespace.route().unwrap();
    let loopback = route.link_by_name("lo").unwrap().index;
    let Packets { packets, .. } = packets(20, 64);
    let receiver = namespace
        .run(|| Receiver::at("0.0.0.0:0".parse().unwrap()))
        .unwrap();
    let place = IpAddr::from([10, 9, 9, 9]);
    let address = SocketAddr::from((place, receiver.address().port()));
    let mut rig = Rig::new(1, 1);
    let agent = namespace.run(|| start(&[address], &mut rig)).unwrap();
    for _ in 0..2 {
        let before = of(&agent, address);
        wait_for("errors", || {
            rig.look(&packets);
            of(&agent, address).errors > before.errors + 3
        });
        let now = of(&agent, address);
        assert!(
            now.last_error
                .is_some_and(|error| error.contains("unreachable"))
        );
        route.add_address(loopback, place, 32).unwrap();
        wait_for("a datagram", || {
            rig.look(&packets);
            receiver.next(Duration::from_millis(20)).is_some()
        });
        route.remove_address(loopback, place, 32).unwrap();
    }
    let stats = agent.stop();
    let collector = &stats.collectors[0];
    assert_eq!(
        collector.sent + collector.errors,
        stats.datagrams,
        "each is one or the other"
    );
}

/// Nobody reads from this socket; what its buffer does not hold, the kernel throws away.
#[test]
fn a_stuck_collector_delays_nobody() {
    let Packets { packets, .. } = packets(256, 300);
    let (healthy, stuck) = (Receiver::new(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut rig = Rig::new(1, 1);
    rig.settings.set(1, 256);
    let agent = start(&[stuck.local_addr().unwrap(), healthy.address()], &mut rig);
    let mut got = 0;
    for round in 1..=20 {
        rig.look(&packets);
        // The last datagram waits for more samples.
        wait_for("the samples", || {
            got += std::iter::from_fn(|| healthy.next(Duration::from_millis(1)))
                .map(|datagram| datagram.flows.len())
                .sum::<usize>();
            got + 8 > round * 256
        });
    }
    let stats = agent.stop();
    assert_eq!((stats.samples_sent[0], rig.lost()), (5_120, 0));
    assert_eq!(got + flows(&healthy.all()).len(), 5_120);
    // The kernel takes datagrams for it, and throws away what its buffer does not hold.
    assert_eq!(stats.collectors[0].sent, stats.datagrams);
}

/// In a namespace of its own, whose kernel keeps whatever waits for a neighbour that never answers: so the socket's own
/// buffer is what fills.
#[test]
fn a_full_socket_buffer_is_counted_and_delays_nobody() {
    if let Err(why) = weir_netlink::lab::preflight() {
        eprintln!("skipped: {why}");
        return;
    }
    let namespace = NetNs::new().unwrap();
    let ip = |words: &str| {
        let status = namespace
            .command("ip")
            .args(words.split_whitespace())
            .status()
            .unwrap();
        assert!(status.success(), "ip {words}");
    };
    [
        "link add left type veth peer name right",
        "link set left up",
        "link set right up",
        "address add 10.7.0.1/24 dev left",
    ]
    .iter()
    .for_each(|words| ip(words));
    let keep = || {
        std::fs::write(
            "/proc/sys/net/ipv4/neigh/left/unres_qlen_bytes",
            "100000000",
        )
    };
    namespace.run(keep).unwrap().unwrap();
    let healthy = namespace
        .run(|| Receiver::at("127.0.0.1:0".parse().unwrap()))
        .unwrap();
    let silent: SocketAddr = "10.7.0.2:6343".parse().unwrap();
    let Packets { packets, .. } = packets(256, 300);
    let mut rig = Rig::new(1, 1);
    rig.settings.set(1, 256);
    let collectors = [silent, healthy.address()];
    let agent = namespace.run(|| start(&collectors, &mut rig)).unwrap();
    let mut got = 0;
    wait_for("a full buffer", || {
        rig.look(&packets);
        got += std::iter::from_fn(|| healthy.next(Duration::from_millis(5)))
            .map(|datagram| datagram.flows.len())
            .sum::<usize>();
        of(&agent, silent)
            .last_error
            .is_some_and(|error| error.contains("temporarily unavailable"))
    });
    let stats = agent.stop();
    let (full, whole) = (&stats.collectors[0], &stats.collectors[1]);
    assert_eq!(
        full.sent + full.errors,
        stats.datagrams,
        "each is one or the other"
    );
    assert_eq!((whole.sent, whole.errors), (stats.datagrams, 0));
    assert_eq!((stats.samples_sent[0], rig.lost()), (rig.taken(), 0));
    assert_eq!((got + flows(&healthy.all()).len()) as u64, rig.taken());
}

#[test]
fn collectors_come_and_go_while_it_runs() {
    let Packets { packets, .. } = packets(30, 64);
    let (first, second) = (Receiver::new(), Receiver::new());
    let mut rig = Rig::new(1, 1);
    let agent = start(&[], &mut rig);
    let mut phase = |collectors: &[&Receiver], turn: u64| {
        let collectors: Vec<SocketAddr> = collectors
            .iter()
            .map(|receiver| receiver.address())
            .collect();
        agent.reconfigure(config(&collectors));
        wait_for("the change", || {
            agent
                .stats()
                .collectors
                .iter()
                .filter_map(|it| it.address)
                .eq(collectors.iter().copied())
        });
        rig.look(&packets);
        wait_for("the samples", || agent.stats().samples_sent[0] == 30 * turn);
    };
    phase(&[], 1);
    phase(&[&first], 2);
    phase(&[&first, &second], 3);
    phase(&[&second], 4);
    let stats = agent.stop();
    let numbers = |receiver: &Receiver| -> Vec<u32> {
        flows(&receiver.all())
            .iter()
            .map(|flow| flow.sample.sequence)
            .collect()
    };
    assert_eq!(numbers(&first), (31..=90).collect::<Vec<_>>());
    assert_eq!(numbers(&second), (61..=120).collect::<Vec<_>>());
    assert_eq!(stats.collectors.len(), 1);
}

#[test]
fn collectors_and_agent_may_have_ipv6_addresses() {
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6 loopback");
        return;
    }
    let Packets { packets, .. } = packets(30, 64);
    let (six, four) = (Receiver::at("[::1]:0".parse().unwrap()), Receiver::new());
    let mut rig = Rig::new(1, 1);
    rig.look(&packets);
    let config = AgentConfig {
        address: "2001:db8::7".parse().unwrap(),
        ..config(&[six.address(), four.address()])
    };
    let stats = Agent::start(config, vec![rig.give_source()], Interfaces::of(Vec::new()))
        .unwrap()
        .stop();
    assert!(
        stats
            .collectors
            .iter()
            .all(|collector| collector.errors == 0)
    );
    for receiver in [six, four] {
        let datagrams = receiver.all();
        assert_eq!(flows(&datagrams).len(), 30);
        assert_eq!(
            datagrams[0].bytes[4..12],
            [0, 0, 0, 2, 0x20, 0x01, 0x0d, 0xb8],
            "type 2: IPv6"
        );
        assert_eq!(
            datagrams[0].bytes[12..24],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]
        );
    }
}
