//! Bridge domains: who learns whom, who gets what, and what hostile stations achieve.
//!
//! Ports 20 to 25 are members 0 to 5 of domain 3; 22 and 23 are in split-horizon group 1, 25 cannot send.

use std::sync::Arc;

use weir_fib::{MacTable, Station};
use weir_graph::DropReason;
use weir_nodes::{BridgeDomain, BridgeSettings, Hosts, Member, StormLimits};
use weir_port::interface::{Input, Interface, InterfaceCounters, Kind, Output};
use weir_wire::{ArpPacket, MacAddr, build};

use crate::rig::*;

const DOMAIN: u16 = 3;
pub(crate) const FIRST: u32 = 20;
const A: u32 = FIRST;
const B: u32 = FIRST + 1;
const C: u32 = FIRST + 2;
const D: u32 = FIRST + 3;
const E: u32 = FIRST + 4;
const SILENT: u32 = FIRST + 5;
pub(crate) const BVI: u32 = FIRST + 6;
const MULTICAST: MacAddr = MacAddr([1, 0, 0x5e, 0, 0, 9]);

/// A domain of these ports, each in its split-horizon group.
fn domain(ports: &[(u32, u8)], limit: u32) -> BridgeDomain {
    let member = |&(interface, group): &(u32, u8)| {
        Some(Member {
            interface,
            group,
            is_bvi: false,
            longest: 1514,
            meters: Arc::default(),
        })
    };
    let stations = MacTable::new(limit, 8, [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]);
    let mut domain = BridgeDomain::new("bd3".into(), Arc::new(stations), BridgeDomain::counters(1));
    domain.members = ports.iter().map(member).collect();
    domain
}

fn bridged(change: impl FnOnce(&mut BridgeDomain)) -> Router {
    let mut router = Router::default();
    add(&mut router, change);
    router
}

fn add(router: &mut Router, change: impl FnOnce(&mut BridgeDomain)) {
    let ports = [(A, 0), (B, 0), (C, 1), (D, 1), (E, 0), (SILENT, 0)];
    for (member, &(index, _)) in ports.iter().enumerate() {
        let counters = Arc::new(InterfaceCounters::new(1));
        router.install(Interface {
            input: Input::Bridge {
                domain: DOMAIN,
                member: member as u16,
            },
            can_send: index != SILENT,
            ..Interface::at_rest(
                index,
                format!("port{index}").into(),
                Kind::Port,
                our_mac(index),
                counters,
            )
        });
    }
    let mut domain = domain(&ports, 100);
    change(&mut domain);
    router.tables.bridges.resize(4, None);
    router.tables.bridges[DOMAIN as usize] = Some(Arc::new(domain.ready()));
}

/// The domain with more members.
pub(crate) fn add_with(router: &mut Router, more: &[u32]) {
    add(router, |bridge| {
        bridge.members.extend(
            domain(
                &more
                    .iter()
                    .map(|&interface| (interface, 0))
                    .collect::<Vec<_>>(),
                1,
            )
            .members,
        )
    });
}

/// The domain that there is has one more member.
pub(crate) fn join(router: &mut Router, interface: u32) {
    let place = router.tables.bridges[DOMAIN as usize].as_mut().unwrap();
    Arc::get_mut(place)
        .unwrap()
        .members
        .extend(domain(&[(interface, 0)], 1).members);
}

/// Brings about one drop for this reason, for the test that reaches them all.
pub(crate) fn reach(router: &mut Router, reason: DropReason) {
    add(router, |domain| match reason {
        DropReason::MacBound => assert!(domain.stations.bind(Station::new(host(1).0), 1)),
        DropReason::ForwardOff => domain.settings.forward = false,
        DropReason::FloodOff => domain.settings.flood_unknown = false,
        DropReason::StormLimit => domain.storms.groups = Some(1),
        DropReason::NoMember => domain.members.truncate(1),
        DropReason::FrameTooLong => domain.members[1].as_mut().unwrap().longest = 30,
        _ => {}
    });
    match reason {
        DropReason::SplitHorizon => drop(router.send(D, &frame(host(2), MacAddr::BROADCAST))),
        DropReason::SameMember => drop(router.send(A, &frame(host(2), MacAddr::BROADCAST))),
        DropReason::ForwardOff | DropReason::FrameTooLong => {
            drop(router.send(B, &frame(host(2), MacAddr::BROADCAST)))
        }
        DropReason::StormLimit => {
            drop(router.send_all(A, &vec![frame(host(1), MacAddr::BROADCAST); 16]))
        }
        DropReason::InterfaceDown => router.tables.bridges.clear(),
        DropReason::NoBuffer => router.starve(3),
        _ => {}
    }
    let (way, from, to) = match reason {
        DropReason::SplitHorizon => (C, host(1), host(2)),
        DropReason::BadSourceMac => (A, MULTICAST, host(2)),
        DropReason::ReservedMac => (A, host(1), MacAddr([1, 0x80, 0xc2, 0, 0, 0])),
        DropReason::StormLimit => (A, host(1), MacAddr::BROADCAST),
        _ => (A, host(1), host(2)),
    };
    let frame = frame(from, to);
    router.send(
        way,
        if reason == DropReason::TooShort {
            &frame[..13]
        } else {
            &frame
        },
    );
}

fn bd(router: &Router) -> &BridgeDomain {
    router.tables.bridge(DOMAIN).unwrap()
}

fn host(number: u8) -> MacAddr {
    their_mac(20, number)
}

fn frame(from: MacAddr, to: MacAddr) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x88, 0xb5]].concat();
    frame.extend(0..46);
    frame
}

/// Interfaces that a frame comes out of, each once.
fn ways(router: &mut Router, interface: u32, frame: &[u8]) -> Vec<u32> {
    let mut sent = router.send(interface, frame);
    sent.sort();
    assert!(
        sent.iter().all(|sent| sent.1 == frame),
        "every copy is the frame"
    );
    sent.into_iter().map(|sent| sent.0).collect()
}

#[test]
fn stations_are_learned_and_then_spoken_to_alone() {
    let mut router = bridged(|_| {});
    assert_eq!(
        ways(&mut router, A, &frame(host(1), host(2))),
        [B, C, D, E],
        "unknown: to all who can send"
    );
    assert_eq!(ways(&mut router, B, &frame(host(2), host(1))), [A]);
    assert_eq!(ways(&mut router, A, &frame(host(1), host(2))), [B]);
    assert_eq!(
        ways(&mut router, A, &frame(host(1), MacAddr::BROADCAST)),
        [B, C, D, E]
    );
    assert_eq!(
        ways(&mut router, B, &frame(host(2), MULTICAST)),
        [A, C, D, E]
    );
    let sums = bd(&router).sums();
    assert_eq!(
        (
            sums.learned,
            sums.moved,
            sums.flooded_unknown,
            sums.flooded_groups
        ),
        (2, 0, 1, 2)
    );
    // A whole vector of known ones leaves by one interface, in order.
    let frames: Vec<Vec<u8>> = (0..200u8)
        .map(|n| [frame(host(1), host(2)), vec![n]].concat())
        .collect();
    let sent = router.send_all(A, &frames);
    assert_eq!(
        sent,
        frames
            .into_iter()
            .map(|frame| (B, frame))
            .collect::<Vec<_>>()
    );
    assert!(router.drops().is_empty());
}

#[test]
fn known_and_unknown_stations_in_one_vector() {
    let mut router = bridged(|_| {});
    for (interface, number) in [(B, 2), (C, 3), (E, 4)] {
        router.send(interface, &frame(host(number), host(99)));
    }
    let to = [2, 3, 200, 4, 2, 201, 255].map(|number| {
        if number == 255 {
            MacAddr::BROADCAST
        } else {
            host(number)
        }
    });
    let frames: Vec<_> = to.iter().map(|&to| frame(host(1), to)).collect();
    let sent = router.send_all(A, &frames);
    let of = |interface| {
        sent.iter()
            .filter(|sent| sent.0 == interface)
            .map(|sent| sent.1.clone())
            .collect::<Vec<_>>()
    };
    let pick = |places: &[usize]| {
        places
            .iter()
            .map(|&place| frames[place].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of(B), of(C)),
        (pick(&[0, 2, 4, 5, 6]), pick(&[1, 2, 5, 6])),
        "in order on each member"
    );
    assert_eq!(
        (of(D), of(E), of(A)),
        (pick(&[2, 5, 6]), pick(&[2, 3, 5, 6]), vec![])
    );
}

#[test]
fn never_back_and_never_within_a_split_horizon_group() {
    let mut router = bridged(|_| {});
    assert_eq!(
        ways(&mut router, C, &frame(host(3), MacAddr::BROADCAST)),
        [A, B, E]
    );
    assert_eq!(ways(&mut router, D, &frame(host(4), host(77))), [A, B, E]);
    assert!(ways(&mut router, D, &frame(host(4), host(3))).is_empty());
    assert_eq!(router.drops(), [("bridge", DropReason::SplitHorizon, D, 1)]);
    router.send(A, &frame(host(1), host(77)));
    assert!(ways(&mut router, A, &frame(host(9), host(1))).is_empty());
    assert_eq!(router.dropped(DropReason::SameMember), 1);
}

#[test]
fn a_station_moves_and_is_counted() {
    let mut router = bridged(|_| {});
    for (interface, way) in [(A, B), (B, A), (A, B)] {
        router.send(interface, &frame(host(1), MacAddr::BROADCAST));
        assert_eq!(
            ways(&mut router, way, &frame(host(2), host(1))),
            [interface]
        );
    }
    let sums = bd(&router).sums();
    assert_eq!(
        (sums.learned, sums.moved),
        (2, 4),
        "two hosts, each moved twice"
    );
}

#[test]
fn each_setting_does_what_it_says() {
    let off = |change: fn(&mut BridgeSettings)| bridged(|domain| change(&mut domain.settings));
    let mut router = off(|settings| settings.learn = false);
    router.send(A, &frame(host(1), host(2)));
    assert_eq!(ways(&mut router, B, &frame(host(2), host(1))), [A, C, D, E]);
    assert_eq!(bd(&router).stations.learned(), 0);

    let mut router = off(|settings| settings.flood_unknown = false);
    assert!(ways(&mut router, A, &frame(host(1), host(2))).is_empty());
    assert_eq!(
        ways(&mut router, A, &frame(host(1), MULTICAST)),
        [B, C, D, E]
    );
    assert_eq!(router.drops(), [("bridge", DropReason::FloodOff, A, 1)]);

    let mut router = off(|settings| settings.flood_groups = false);
    assert!(ways(&mut router, A, &frame(host(1), MacAddr::BROADCAST)).is_empty());
    assert_eq!(ways(&mut router, A, &frame(host(1), host(2))), [B, C, D, E]);
    assert_eq!(router.dropped(DropReason::FloodOff), 1);

    let mut router = off(|settings| settings.forward = false);
    router.send(A, &frame(host(1), host(2)));
    assert!(ways(&mut router, B, &frame(host(2), host(1))).is_empty());
    assert_eq!(router.dropped(DropReason::ForwardOff), 1);
}

#[test]
fn static_stations_stay_and_nobody_else_can_be_them() {
    let mut router = bridged(|domain| assert!(domain.stations.bind(Station::new(host(1).0), 1)));
    for learn in [true, false] {
        let mut domain = bd(&router).clone();
        domain.settings.learn = learn;
        router.tables.bridges[DOMAIN as usize] = Some(Arc::new(domain.ready()));
        let before = router.dropped(DropReason::MacBound);
        assert!(ways(&mut router, A, &frame(host(1), host(5))).is_empty());
        assert_eq!(router.dropped(DropReason::MacBound), before + 1);
        assert_eq!(ways(&mut router, A, &frame(host(7), host(1))), [B]);
        assert_eq!(
            ways(&mut router, B, &frame(host(1), host(50))),
            [A, C, D, E]
        );
    }
    assert_eq!(
        bd(&router).stations.age(60_000, 1),
        1,
        "the learned one ages, the static one does not"
    );
    assert_eq!(ways(&mut router, A, &frame(host(7), host(1))), [B]);
}

#[test]
fn a_flood_of_stations_is_bounded_and_takes_nobodys_place() {
    let mut router = bridged(|_| {});
    router.send(A, &frame(host(1), MacAddr::BROADCAST));
    for round in 0..50u8 {
        let frames: Vec<_> = (0..100)
            .map(|n| frame(MacAddr([6, 6, 6, 6, round, n]), host(1)))
            .collect();
        assert_eq!(
            router.send_all(B, &frames).len(),
            100,
            "they are still forwarded"
        );
    }
    let domain = bd(&router);
    assert_eq!(
        (
            domain.stations.learned(),
            domain.sums().learned,
            domain.sums().not_learned
        ),
        (100, 100, 4901)
    );
    assert_eq!(ways(&mut router, C, &frame(host(3), host(1))), [A]);
}

#[test]
fn senders_that_cannot_be_and_protocols_between_neighbours_are_dropped() {
    let mut router = bridged(|_| {});
    for from in [MULTICAST, MacAddr::BROADCAST, MacAddr::ZERO] {
        assert!(ways(&mut router, A, &frame(from, host(2))).is_empty());
    }
    assert_eq!(router.drops(), [("bridge", DropReason::BadSourceMac, A, 3)]);
    for last in 0..=0x10 {
        let ways = ways(
            &mut router,
            A,
            &frame(host(1), MacAddr([1, 0x80, 0xc2, 0, 0, last])),
        );
        assert_eq!(ways.is_empty(), last < 0x10, "{last:#x}");
    }
    assert_eq!(router.dropped(DropReason::ReservedMac), 16);
    // A receiver of zeros is nobody: it is flooded, not taken for a station.
    assert_eq!(
        ways(&mut router, A, &frame(host(1), MacAddr::ZERO)),
        [B, C, D, E]
    );
    for len in [0, 1, 11, 12, 13] {
        assert!(router.send(A, &frame(host(1), host(2))[..len]).is_empty());
    }
    assert_eq!(router.dropped(DropReason::TooShort), 5);
}

#[test]
fn storms_are_cut_and_others_go_on() {
    let limits = StormLimits {
        groups: Some(100),
        unknown: Some(50),
    };
    let mut router = bridged(|domain| domain.storms = limits);
    let storm: Vec<_> = (0..100)
        .map(|_| frame(host(1), MacAddr::BROADCAST))
        .collect();
    assert_eq!(router.send_all(A, &storm).len(), 16 * 4, "a burst");
    assert_eq!(router.dropped(DropReason::StormLimit), 84);
    assert_eq!(
        router.send_all(A, &vec![frame(host(1), host(2)); 20]).len(),
        16 * 4,
        "unknown stations have a meter of their own"
    );
    assert_eq!(
        ways(&mut router, B, &frame(host(2), MacAddr::BROADCAST)),
        [A, C, D, E],
        "so has each member"
    );
    assert_eq!(
        ways(&mut router, A, &frame(host(1), host(2))),
        [B],
        "known stations are not limited"
    );
    router.now += SECOND;
    assert_eq!(router.send_all(A, &storm).len(), 16 * 4, "time pays");
}

/// Two ports joined by a cable: what is sent out of one comes in by the other, for ever.
#[test]
fn a_loop_is_held_down_by_the_storm_limit() {
    let mut router = bridged(|domain| {
        domain.storms.groups = Some(1000);
        domain.members.truncate(3);
    });
    let mut circling = vec![frame(host(1), MacAddr::BROADCAST)];
    let (mut rounds, mut frames) = (0, 0);
    let from = router.now;
    while !circling.is_empty() && rounds < 2000 {
        router.now += SECOND / 1000;
        let mut next = Vec::new();
        for (from, to) in [(A, B), (B, A)] {
            let inside: Vec<_> = if rounds == 0 && from == B {
                Vec::new()
            } else {
                circling.iter().take(100).cloned().collect()
            };
            let sent = router.send_all(from, &inside);
            frames += sent.len();
            next.extend(
                sent.into_iter()
                    .filter(|sent| sent.0 == to)
                    .map(|sent| sent.1),
            );
        }
        circling = next;
        rounds += 1;
    }
    let seconds = (router.now - from) / SECOND + 1;
    assert!(
        frames as u64 <= 2 * 2 * (1000 * seconds + 101),
        "{frames} frames in {seconds} s"
    );
    assert!(
        bd(&router).sums().moved > 0,
        "it shows as a station that moves"
    );
}

#[test]
fn the_mtu_of_each_member_counts() {
    let mut router = bridged(|domain| {
        for (place, mtu) in [(0, 1500), (1, 1500), (2, 1000), (3, 9000), (4, 1500)] {
            domain.members[place].as_mut().unwrap().longest = mtu + 14;
        }
    });
    let sized = |len: usize, to| {
        let mut frame = frame(host(1), to);
        frame.resize(len, 7);
        frame
    };
    assert_eq!(ways(&mut router, A, &sized(1014, host(2))), [B, C, D, E]);
    assert_eq!(ways(&mut router, A, &sized(1015, host(2))), [B, D, E]);
    assert_eq!(
        ways(&mut router, A, &sized(1515, host(2))),
        [D],
        "in two chunks or one"
    );
    assert_eq!(ways(&mut router, A, &sized(9014, MacAddr::BROADCAST)), [D]);
    assert!(ways(&mut router, A, &sized(9015, MacAddr::BROADCAST)).is_empty());
    assert_eq!(router.drops(), [("bridge", DropReason::NoMember, A, 1)]);
    router.send(C, &frame(host(3), host(1)));
    assert!(ways(&mut router, A, &sized(1015, host(3))).is_empty());
    assert_eq!(router.dropped(DropReason::FrameTooLong), 1);
    let tagged = build::tagged(&sized(1014, host(3)), 9, 0);
    assert_eq!(ways(&mut router, A, &tagged), [C], "one tag is not counted");
    // Long and short ones mixed, each its own list.
    let frames: Vec<_> = (0..40)
        .map(|n| sized(if n % 2 == 0 { 1015 } else { 60 }, host(200)))
        .collect();
    assert_eq!(router.send_all(A, &frames).len(), 20 * 3 + 20 * 4);
    assert_eq!(bd(&router).sums().too_long, 1 + 3 + 3 + 4 + 20);
}

#[test]
fn without_memory_for_copies_the_first_still_goes() {
    let mut router = bridged(|_| {});
    router.starve(3);
    assert_eq!(
        router.send(A, &frame(host(1), MacAddr::BROADCAST)).len(),
        3,
        "the frame itself and two copies"
    );
    assert_eq!(router.drops(), [("bridge", DropReason::NoBuffer, A, 1)]);
}

#[test]
fn what_is_no_member_any_more_goes_nowhere() {
    let mut router = bridged(|_| {});
    router.send(B, &frame(host(2), host(1)));
    router.tables.bridges[DOMAIN as usize] = {
        let mut domain = bd(&router).clone();
        domain.members[1] = None;
        Some(Arc::new(domain.ready()))
    };
    assert!(ways(&mut router, A, &frame(host(1), host(2))).is_empty());
    assert_eq!(router.drops(), [("bridge", DropReason::NoMember, A, 1)]);
    assert!(ways(&mut router, B, &frame(host(2), host(1))).is_empty());
    router.tables.bridges.clear();
    assert!(ways(&mut router, A, &frame(host(1), host(2))).is_empty());
    assert_eq!(router.dropped(DropReason::InterfaceDown), 2);
}

/// The domain with a routed side, 10.0.20.1/24, whose neighbour 10.0.20.2 is known.
pub(crate) fn routed_side(change: impl FnOnce(&mut BridgeDomain)) -> Router {
    let mut router = Router::default();
    add_routed_side(&mut router, change);
    router
}

pub(crate) fn add_routed_side(router: &mut Router, change: impl FnOnce(&mut BridgeDomain)) {
    add(router, |domain| {
        domain.members.push(Some(Member {
            interface: BVI,
            group: 0,
            is_bvi: true,
            longest: 1514,
            meters: Arc::default(),
        }));
        assert!(domain.stations.bind(Station::new(our_mac(BVI).0), 6));
        change(domain);
    });
    router.install(Interface {
        input: Input::Routed,
        output: Output::Bvi,
        bvi_of: Some((DOMAIN, 6)),
        can_send: true,
        addresses: [(ip("10.0.20.1"), 24)].into(),
        ..Interface::at_rest(
            BVI,
            "loop0".into(),
            Kind::Bvi,
            our_mac(BVI),
            Arc::new(InterfaceCounters::new(1)),
        )
    });
    router.connect(BVI, 1500, &["10.0.20.1/24".parse().unwrap()]);
    router.neighbor(BVI, "10.0.20.2", 1500);
    router.publish();
}

/// From 10.0.20.2 behind member 0 to the router or through it.
pub(crate) fn from_inside(destination: &str) -> build::Ends {
    build::Ends {
        source_mac: host(2),
        destination_mac: our_mac(BVI),
        source: ip("10.0.20.2"),
        ..through(destination)
    }
}

#[test]
fn the_routed_side_answers_what_is_asked_of_it() {
    let mut router = routed_side(|_| {});
    let question = build::arp(
        MacAddr::BROADCAST,
        &ArpPacket::new(
            ArpPacket::REQUEST,
            host(2),
            ip("10.0.20.2"),
            MacAddr::ZERO,
            ip("10.0.20.1"),
        ),
    );
    let sent = router.send(A, &question);
    let (answers, copies): (Vec<_>, Vec<_>) = sent.into_iter().partition(|sent| sent.0 == A);
    let mut heard: Vec<u32> = copies.iter().map(|sent| sent.0).collect();
    heard.sort();
    assert_eq!(heard, [B, C, D, E], "others hear the question, too");
    let [(_, answer)] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(
        (&answer[..6], &answer[6..12]),
        (&host(2).0[..], &our_mac(BVI).0[..])
    );
    assert_eq!(
        &answer[28..32],
        &[10, 0, 20, 1],
        "RFC 826: the sender's protocol address"
    );

    let (way, reply) = router.send_one(
        A,
        &build::echo4(&from_inside("10.0.20.1"), 8, 1, 1, &[1; 8]),
    );
    assert_eq!(
        (way, &reply[..6], reply[34]),
        (A, &host(2).0[..], 0),
        "an echo reply, to where the asker is"
    );
    let (rx, tx) = (
        router.interface(BVI).counters.rx(),
        router.interface(BVI).counters.tx(),
    );
    assert_eq!(
        (rx.packets, rx.broadcast, tx.packets, tx.unicast),
        (2, 1, 2, 2)
    );
    assert!(router.drops().is_empty(), "{:?}", router.drops());
}

#[test]
fn packets_are_routed_out_of_and_into_a_domain() {
    let mut router = routed_side(|_| {});
    let (way, out) = router.send_one(A, &build::udp4(&from_inside("10.0.2.2"), &[1; 40]));
    assert_eq!(
        (way, &out[..6], out[22]),
        (EAST, &their_mac(2, 2).0[..], 63),
        "one hop less"
    );
    let inward = build::udp4(&through("10.0.20.2"), &[1; 40]);
    let (way, out) = router.send_one(WEST, &inward);
    assert_eq!(
        (way, &out[..6], &out[6..12], out[22]),
        (A, &their_mac(20, 2).0[..], &our_mac(BVI).0[..], 63)
    );
    // Nobody knows where the neighbour is any more: all members get it, the BVI itself does not.
    bd(&router).stations.forget(|entry| !entry.is_static);
    let mut ways: Vec<u32> = router
        .send(WEST, &inward)
        .into_iter()
        .map(|sent| sent.0)
        .collect();
    ways.sort();
    assert_eq!(ways, [A, B, C, D, E]);
    assert!(router.drops().is_empty(), "{:?}", router.drops());
}

#[test]
fn nobody_can_be_the_routed_side() {
    let mut router = routed_side(|_| {});
    assert!(ways(&mut router, A, &frame(our_mac(BVI), host(5))).is_empty());
    assert!(ways(&mut router, A, &frame(our_mac(BVI), our_mac(BVI))).is_empty());
    assert_eq!(router.drops(), [("bridge", DropReason::MacBound, A, 2)]);
    // Another member's station is not the router's to answer for.
    let elsewhere = build::Ends {
        destination_mac: host(9),
        ..from_inside("10.0.2.2")
    };
    assert_eq!(
        ways(&mut router, A, &build::udp4(&elsewhere, &[1; 40])),
        [B, C, D, E]
    );
}

#[test]
fn a_routed_side_that_is_down_sends_nothing() {
    let mut router = routed_side(|_| {});
    router.change(BVI, |bvi| bvi.can_send = false);
    assert!(
        router
            .send(WEST, &build::udp4(&through("10.0.20.2"), &[1; 40]))
            .is_empty()
    );
    assert_eq!(
        router.drops(),
        [("bvi-output", DropReason::TxDown, WEST, 1)]
    );
    assert_eq!(
        router.send(A, &frame(host(2), MacAddr::BROADCAST)).len(),
        4,
        "nor does it hear"
    );
    assert_eq!(router.interface(BVI).counters.rx().packets, 0);
}

#[test]
fn questions_for_hosts_of_the_list_are_answered_and_hostile_ones_do_no_harm() {
    let hosts = || {
        [
            (address("10.0.20.2"), host(2)),
            (address("2001:db8:1::1"), host(2)),
        ]
    };
    let question = build::arp(
        MacAddr::BROADCAST,
        &ArpPacket::new(
            ArpPacket::REQUEST,
            host(1),
            ip("10.0.20.1"),
            MacAddr::ZERO,
            ip("10.0.20.2"),
        ),
    );
    let six = crate::nd::solicitation("2001:db8:1::7", "2001:db8:1::1");
    for forwards in [false, true] {
        let mut list = Hosts::new(hosts());
        (list.answers, list.forwards) = (true, forwards);
        let mut router = bridged(|domain| domain.hosts = Arc::new(list));
        for whole in [&question, &six] {
            let (way, seen_events) = &router.send(A, whole)[0];
            if forwards {
                assert_eq!(
                    (&seen_events[..6], &seen_events[6..]),
                    (&host(2).0[..], &whole[6..]),
                    "the question, to the station"
                );
            } else {
                assert_eq!(
                    (*way, &seen_events[..6], &seen_events[6..12]),
                    (A, &whole[6..12], &host(2).0[..])
                );
            }
            for len in 0..whole.len() {
                router.send(A, &whole[..len]);
            }
            for place in 12..whole.len() {
                let mut broken = whole.clone();
                broken[place] ^= 0xff;
                router.send(A, &broken);
            }
        }
        // In pieces it is not looked at.
        let mut vector = weir_buf::Vector::default();
        vector.push(router.packet_cut(&question, 20));
        assert_eq!(router.send_vector(A, &mut vector).len(), 4);
    }
}
