//! ARP: answering, learning, asking, and what waits meanwhile.

use weir_fib::NeighborState;
use weir_graph::{DropReason, HoldLimits};
use weir_nodes::{Event, hold_key};
use weir_wire::{ArpPacket, EtherType, EthernetHeader, MacAddr, build};

use crate::rig::*;

fn request(sender_mac: MacAddr, sender: &str, target: &str) -> Vec<u8> {
    build::arp(
        MacAddr::BROADCAST,
        &ArpPacket::new(
            ArpPacket::REQUEST,
            sender_mac,
            ip(sender),
            MacAddr::ZERO,
            ip(target),
        ),
    )
}

fn arp(frame: &[u8]) -> (EthernetHeader, ArpPacket) {
    let (ethernet, rest) = EthernetHeader::read(frame).unwrap();
    assert_eq!(ethernet.ethertype(), EtherType::ARP);
    let arp = *ArpPacket::read(rest).unwrap().0;
    assert!(arp.is_ethernet_ipv4());
    (*ethernet, arp)
}

fn heard(address: &str, mac: MacAddr, to_us: bool) -> Event {
    Event::Heard {
        interface: WEST,
        address: crate::rig::address(address),
        mac,
        to_us,
        replaces: true,
    }
}

#[test]
fn requests_for_own_addresses_are_answered() {
    let mut router = Router::default();
    for (asker, target) in [
        ("10.0.1.7", "10.0.1.1"),
        ("10.0.11.7", "10.0.11.1"),
        ("10.0.1.7", "10.0.11.1"),
    ] {
        for length in [42, 60, 64, 90] {
            let mut frame = request(their_mac(1, 7), asker, target);
            frame.resize(length, 0xee);
            let (interface, got) = router.send_one(WEST, &frame);
            let (ethernet, arp) = arp(&got);
            assert_eq!(
                (interface, ethernet.destination, ethernet.source),
                (WEST, their_mac(1, 7), our_mac(WEST))
            );
            assert_eq!(
                (arp.operation(), arp.sender_mac, arp.sender()),
                (ArpPacket::REPLY, our_mac(WEST), ip(target))
            );
            assert_eq!((arp.target_mac, arp.target()), (their_mac(1, 7), ip(asker)));
            assert!(
                got.len() <= 60 && got[42..].iter().all(|&byte| byte == 0),
                "no byte of somebody else's"
            );
        }
    }
    let tx = router.interface(WEST).counters.tx();
    assert_eq!(
        (tx.packets, tx.unicast),
        (12, 12),
        "an answer to a broadcast is none"
    );
    assert_eq!(router.interface(WEST).counters.rx().broadcast, 12);
}

#[test]
fn a_probe_is_answered_and_teaches_nothing() {
    let mut router = Router::default();
    let (_, got) = router.send_one(WEST, &request(their_mac(1, 7), "0.0.0.0", "10.0.1.1"));
    assert_eq!(
        (arp(&got).1.target(), arp(&got).0.destination),
        (0, their_mac(1, 7))
    );
    assert!(router.events().is_empty());
}

#[test]
fn foreign_requests_are_counted_and_not_answered() {
    let mut router = Router::default();
    // Another station's address; our address on another interface's subnet; a sender from elsewhere.
    for (sender, target) in [
        ("10.0.1.7", "10.0.1.8"),
        ("10.0.1.7", "10.0.2.1"),
        ("10.0.77.7", "10.0.1.1"),
    ] {
        assert!(
            router
                .send(WEST, &request(their_mac(1, 7), sender, target))
                .is_empty()
        );
    }
    assert_eq!(
        router.drops(),
        [("arp-input", DropReason::ArpForeign, WEST, 3)]
    );
    assert_eq!(router.events(), [heard("10.0.1.7", their_mac(1, 7), false)]);
}

#[test]
fn replies_and_announcements_are_passed_on() {
    let mut router = Router::default();
    let reply = ArpPacket::new(
        ArpPacket::REPLY,
        their_mac(1, 7),
        ip("10.0.1.7"),
        our_mac(WEST),
        ip("10.0.1.1"),
    );
    assert!(
        router
            .send(WEST, &build::arp(our_mac(WEST), &reply))
            .is_empty()
    );
    assert!(
        router
            .send(WEST, &request(their_mac(1, 8), "10.0.1.8", "10.0.1.8"))
            .is_empty()
    );
    let announced = ArpPacket::new(
        ArpPacket::REPLY,
        their_mac(1, 9),
        ip("10.0.1.9"),
        MacAddr::BROADCAST,
        ip("10.0.1.9"),
    );
    assert!(
        router
            .send(WEST, &build::arp(MacAddr::BROADCAST, &announced))
            .is_empty()
    );
    let expected = [
        heard("10.0.1.7", their_mac(1, 7), true),
        heard("10.0.1.8", their_mac(1, 8), false),
        heard("10.0.1.9", their_mac(1, 9), false),
    ];
    assert_eq!(router.events(), expected);
    assert!(router.drops().is_empty());
    assert_eq!(router.graph.counters().totals.consumed.get(), 3);
}

#[test]
fn impossible_senders_are_refused() {
    let mut router = Router::default();
    let mut count = 0;
    for sender in ["10.0.1.7", "0.0.0.0"] {
        for mac in [
            MacAddr::BROADCAST,
            MacAddr::ZERO,
            MacAddr([1, 0, 0x5e, 0, 0, 1]),
            our_mac(WEST),
        ] {
            assert!(
                router
                    .send(WEST, &request(mac, sender, "10.0.1.1"))
                    .is_empty(),
                "{mac} {sender}"
            );
            count += 1;
        }
    }
    // Somebody uses our address, asking or announcing.
    assert!(
        router
            .send(WEST, &request(their_mac(1, 7), "10.0.1.1", "10.0.1.1"))
            .is_empty()
    );
    assert!(
        router
            .send(WEST, &request(their_mac(1, 7), "10.0.1.1", "10.0.1.8"))
            .is_empty()
    );
    assert_eq!(
        router.drops(),
        [("arp-input", DropReason::ArpMartian, WEST, count + 2)]
    );
    assert!(router.events().is_empty());
}

#[test]
fn a_storm_is_one_event_a_second_and_every_question_is_answered() {
    let mut router = Router::default();
    let storm = vec![request(their_mac(1, 7), "10.0.1.7", "10.0.1.1"); 500];
    for second in 1..4 {
        for part in 0..3 {
            router.now = second * SECOND + part * 300_000_000;
            assert_eq!(router.send_all(WEST, &storm).len(), 500);
        }
        assert_eq!(router.events().len(), 1);
    }
    // A change is reported at once.
    router.send(WEST, &request(their_mac(1, 8), "10.0.1.7", "10.0.1.1"));
    assert_eq!(router.events(), [heard("10.0.1.7", their_mac(1, 8), true)]);
}

#[test]
fn an_unknown_neighbour_is_asked_for_once_a_second_and_packets_wait() {
    let mut router = Router::default();
    for (destination, asked) in [("10.0.2.77", "10.0.2.77"), ("198.19.0.5", "10.0.2.9")] {
        let frame = build::udp4(&through(destination), &[1; 30]);
        router.now += 10 * SECOND;
        let (interface, got) = router.send_one(WEST, &frame);
        let (ethernet, arp) = arp(&got);
        assert_eq!(
            (interface, ethernet.destination, ethernet.source),
            (EAST, MacAddr::BROADCAST, our_mac(EAST))
        );
        assert_eq!(
            (arp.operation(), arp.sender_mac, arp.sender()),
            (ArpPacket::REQUEST, our_mac(EAST), ip("10.0.2.1"))
        );
        assert_eq!((arp.target_mac, arp.target()), (MacAddr::ZERO, ip(asked)));
        assert_eq!(
            router.events(),
            [Event::Wanted {
                interface: EAST,
                address: crate::rig::address(asked)
            }]
        );
        router.now += SECOND - 1;
        assert!(router.send(WEST, &frame).is_empty() && router.events().is_empty());
        router.now += 1;
        assert_eq!(
            (router.send(WEST, &frame).len(), router.events().len()),
            (1, 1)
        );
        assert_eq!(router.graph.held(), 3);
        router.give_up(DropReason::Stopped);
    }
    assert_eq!(router.interface(EAST).counters.tx().broadcast, 4);
}

#[test]
fn waiting_packets_go_on_in_order_when_the_neighbour_answers() {
    let mut router = Router::default();
    let frame = |n: u8| build::udp4(&through("10.0.2.77"), &[n; 30]);
    let frames: Vec<_> = (0..10).map(frame).collect();
    router.send_all(WEST, &frames);
    router.neighbor(EAST, "10.0.2.77", 1500);
    router.publish();
    router
        .graph
        .release(hold_key(EAST, crate::rig::address("10.0.2.77")));
    // One that comes in the same turn stays behind those that waited.
    let sent = router.send(WEST, &frame(10));
    let numbers: Vec<u8> = sent.iter().map(|(_, frame)| frame[42]).collect();
    assert_eq!(numbers, (0..=10).collect::<Vec<u8>>());
    assert!(
        sent.iter()
            .all(|(_, frame)| frame[22] == 63 && frame.starts_with(&their_mac(2, 77).0))
    );
    assert!(router.drops().is_empty());
}

#[test]
fn what_waits_is_bounded_in_number_and_time() {
    let holds = HoldLimits {
        keys: 3,
        per_key: 4,
        time: 2 * SECOND,
    };
    let mut router = Router::new(Setup {
        holds,
        ..Setup::default()
    });
    for host in [
        "10.0.2.101",
        "10.0.2.102",
        "10.0.2.103",
        "10.0.2.104",
        "10.0.2.105",
    ] {
        router.send_all(WEST, &vec![build::udp4(&through(host), &[]); 6]);
    }
    assert_eq!(router.graph.held(), 12);
    assert_eq!(
        router.drops(),
        [("ip4-glean", DropReason::HoldFull, WEST, 18)]
    );
    router.now += 2 * SECOND - 1;
    router.turn();
    assert_eq!(router.graph.held(), 12);
    router.now += 1;
    router.turn();
    assert_eq!(
        (
            router.graph.held(),
            router.dropped(DropReason::HostUnreachable)
        ),
        (0, 12)
    );
}

#[test]
fn a_neighbour_that_fails_answers_for_those_who_waited() {
    let mut router = Router::default();
    let frames = vec![build::udp4(&through("198.19.0.5"), &[1; 30]); 5];
    router.send_all(WEST, &frames);
    let adjacency = router
        .nexthops
        .adjacencies()
        .find(|(_, end)| end.address == crate::rig::address("10.0.2.9"))
        .unwrap()
        .0;
    router.set_neighbor(adjacency, NeighborState::Failed);
    router
        .graph
        .release(hold_key(EAST, crate::rig::address("10.0.2.9")));
    let sent = router.turn();
    assert_eq!(sent.len(), 5);
    for (interface, frame) in sent {
        let icmp = crate::sight::icmp(&frame);
        assert_eq!(
            (interface, icmp.kind, icmp.code, icmp.source),
            (WEST, 3, 1, ip("10.0.1.1"))
        );
        assert_eq!(icmp.quote, frames[0][14..]);
    }
    assert_eq!(
        router.drops(),
        [("icmp4-error", DropReason::HostUnreachable, WEST, 5)]
    );
}

#[test]
fn nobody_waits_twice() {
    let mut router = Router::default();
    router.send(WEST, &build::udp4(&through("10.0.2.77"), &[]));
    router
        .graph
        .release(hold_key(EAST, crate::rig::address("10.0.2.77")));
    router.turn();
    assert_eq!(
        router.drops(),
        [("ip4-glean", DropReason::HostUnreachable, WEST, 1)]
    );
}

#[test]
fn what_is_no_arp_for_ipv4_is_refused() {
    let mut router = Router::default();
    let good = request(their_mac(1, 7), "10.0.1.7", "10.0.1.1");
    for length in 14..42 {
        router.send(WEST, &good[..length]);
    }
    assert_eq!(router.dropped(DropReason::ArpTruncated), 28);
    for (place, byte) in [
        (14, 1),
        (15, 6),
        (16, 9),
        (17, 1),
        (18, 8),
        (19, 16),
        (20, 1),
        (21, 3),
        (21, 0),
    ] {
        let mut frame = good.clone();
        frame[place] = byte;
        assert!(router.send(WEST, &frame).is_empty());
    }
    assert_eq!(router.dropped(DropReason::ArpUnsupported), 9);
}
