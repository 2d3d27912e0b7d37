//! Bonds: who takes what members bring, by which member a flow leaves, and what LACP gets to see.
//!
//! Ports 30 to 33 are members of bond 40, which is routed with 10.0.40.1/24 and neighbour 10.0.40.2; it speaks
//! LACP, and member 33 is not in use.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_graph::{DropReason, World};
use weir_nodes::Event;
use weir_port::bond::{Bond, Layers, Spread};
use weir_port::interface::{Input, Interface, InterfaceCounters, Kind, Output};
use weir_wire::build::{self, Ends};
use weir_wire::lacp::{End, MULTICAST, Marker, Pdu, State};
use weir_wire::{EtherType, EthernetHeader, MacAddr};
use zerocopy::IntoBytes;

use crate::rig::*;

pub(crate) const A: u32 = 30;
pub(crate) const B: u32 = 31;
const C: u32 = 32;
const IDLE: u32 = 33;
pub(crate) const BOND: u32 = 40;
/// The far end's system.
const FAR: MacAddr = MacAddr([2, 0, 0, 9, 9, 9]);

fn spread(router: &mut Router, spread: Spread, members: &[u32]) {
    let bond = Bond {
        spread,
        members: members.into(),
        seed: 7,
        lacp: true,
    };
    router.change(BOND, |interface| interface.bond = Some(Arc::new(bond)));
}

pub(crate) fn add(router: &mut Router) {
    for member in [A, B, C, IDLE] {
        let counters = Arc::new(InterfaceCounters::new(1));
        router.install(Interface {
            parent: Some(BOND),
            input: Input::Member {
                bond: BOND,
                collects: member != IDLE,
            },
            can_send: true,
            ..Interface::at_rest(
                member,
                format!("port{member}").into(),
                Kind::Port,
                our_mac(member),
                counters,
            )
        });
    }
    let counters = Arc::new(InterfaceCounters::new(1));
    router.install(Interface {
        input: Input::Routed,
        output: Output::Bond,
        addresses: [(ip("10.0.40.1"), 24)].into(),
        can_send: true,
        ..Interface::at_rest(BOND, "bond".into(), Kind::Bond, our_mac(BOND), counters)
    });
    router.neighbor(BOND, "10.0.40.2", 1500);
    router.publish();
    spread(router, Spread::Flows(Layers::L34), &[A, B, C]);
}

fn bonded() -> Router {
    let mut router = Router::default();
    add(&mut router);
    router
}

/// To the bond, from behind it.
pub(crate) fn up(destination: &str, port: u16) -> Ends {
    Ends {
        source_mac: their_mac(40, 2),
        destination_mac: our_mac(BOND),
        source: ip("10.0.40.2"),
        source_port: port,
        ..through(destination)
    }
}

#[test]
fn the_member_that_a_packet_came_by_is_reported_while_it_is_noted() {
    let mut router = bonded();
    for (noted, interface, member, expected) in [
        (true, BOND, B, B),
        (true, BOND, IDLE, IDLE),
        // What stands there from the packet before is no member of this bond's.
        (true, BOND, WEST, BOND),
        (true, BOND, u32::MAX, BOND),
        (true, WEST, B, WEST),
        (false, BOND, B, BOND),
    ] {
        router.tables.notes_members = noted;
        let mut packet = router.packet(&[0; 60]);
        packet.set_interface(interface);
        packet.meta_mut().member = member;
        assert_eq!(
            router.tables.received_on(&packet),
            expected,
            "{noted} {interface} {member}"
        );
    }
    // What is known of how it came is what the bond says.
    let frame = build::udp4(&up("10.0.2.2", 1), &[1; 20]);
    let (out, left) = router.send_one(A, &frame);
    let [by_member, by_bond] =
        [A, BOND].map(|input| router.tables.way(input, &[], Some((out, &left))));
    assert_eq!(
        (by_member.input, by_member.tags, by_member.hop),
        (A, by_bond.tags, by_bond.hop)
    );
    assert!(by_bond.hop.is_some());
}

/// A frame of a slow protocol.
pub(crate) fn slow(body: &[u8]) -> Vec<u8> {
    [
        EthernetHeader::new(MULTICAST, their_mac(40, 2), EtherType::SLOW).as_bytes(),
        body,
    ]
    .concat()
}

fn end(system: MacAddr, port: u16) -> End {
    End::new(
        0x8000,
        system,
        5,
        0x8000,
        port,
        State::ACTIVE | State::AGGREGATION,
    )
}

fn pdu(system: MacAddr) -> Vec<u8> {
    slow(Pdu::new(end(system, 3), End::default(), 0).as_bytes())
}

fn flows(count: u16) -> Vec<Vec<u8>> {
    (0..count)
        .map(|port| {
            build::udp4(
                &Ends {
                    source_port: port,
                    ..through("10.0.40.2")
                },
                &[1; 20],
            )
        })
        .collect()
}

#[test]
fn what_members_bring_is_the_bonds() {
    let mut router = bonded();
    let (to, _) = router.send_one(A, &build::udp4(&up("10.0.2.2", 1), &[1; 20]));
    assert_eq!(to, EAST);
    router.send_one(B, &build::udp4(&up("10.0.2.2", 1), &[1; 20]));
    let [a, b, bond] = [A, B, BOND].map(|index| router.interface(index).counters.rx().packets);
    assert_eq!((a, b, bond), (1, 1, 2));
    // For a member's own address there is nobody.
    let own = Ends {
        destination_mac: our_mac(A),
        ..up("10.0.2.2", 1)
    };
    assert_eq!(router.send(A, &build::udp4(&own, &[1; 20])), []);
    assert_eq!(
        router.drops(),
        [("eth-input", DropReason::WrongMac, BOND, 1)]
    );
}

#[test]
fn a_request_by_one_member_is_answered_by_the_bond() {
    let mut router = bonded();
    let request = weir_wire::ArpPacket::new(
        1,
        their_mac(40, 2),
        ip("10.0.40.2"),
        MacAddr::ZERO,
        ip("10.0.40.1"),
    );
    let (by, frame) = router.send_one(C, &build::arp(MacAddr::BROADCAST, &request));
    assert!([A, B, C].contains(&by));
    assert_eq!(frame[6..12], our_mac(BOND).0);
}

#[test]
fn a_flow_keeps_its_member_and_flows_spread() {
    let mut router = bonded();
    let sent = router.send_all(WEST, &flows(96));
    assert_eq!(sent.len(), 96);
    let members: BTreeSet<u32> = sent.iter().map(|sent| sent.0).collect();
    assert_eq!(members, [A, B, C].into());
    let place = |sent: &[Sent], port: u16| {
        sent.iter()
            .find(|sent| sent.1[34..36] == port.to_be_bytes())
            .unwrap()
            .0
    };
    let again = router.send_all(WEST, &flows(96));
    assert!((0..96).all(|port| place(&sent, port) == place(&again, port)));
    assert_eq!(router.interface(BOND).counters.tx().packets, 192);
    assert_eq!(router.interface(BOND).counters.tx().bytes, 192 * 62);

    // A member goes: all flows leave by the others, nothing is lost.
    spread(&mut router, Spread::Flows(Layers::L34), &[A, C]);
    let sent = router.send_all(WEST, &flows(96));
    assert_eq!(
        sent.iter().map(|sent| sent.0).collect::<BTreeSet<_>>(),
        [A, C].into()
    );
    assert_eq!(sent.len(), 96);
    // All flows are between two MAC addresses.
    spread(&mut router, Spread::Flows(Layers::L2), &[A, B, C]);
    let sent = router.send_all(WEST, &flows(96));
    assert_eq!(
        sent.iter()
            .map(|sent| sent.0)
            .collect::<BTreeSet<_>>()
            .len(),
        1
    );
}

#[test]
fn turns_and_broadcast() {
    let mut router = bonded();
    spread(&mut router, Spread::Turns, &[A, B, C]);
    let frame = build::udp4(&through("10.0.40.2"), &[1; 20]);
    let mut counts = [0; 3];
    for (by, _) in router.send_all(WEST, &vec![frame.clone(); 30]) {
        counts[(by - A) as usize] += 1;
    }
    assert_eq!(counts, [10, 10, 10]);
    spread(&mut router, Spread::All, &[A, B, C]);
    let sent = router.send(WEST, &frame);
    assert_eq!(
        sent.iter().map(|sent| sent.0).collect::<BTreeSet<_>>(),
        [A, B, C].into()
    );
    assert!(sent.iter().all(|each| each.1 == sent[0].1));
    assert_eq!(router.interface(BOND).counters.tx().packets, 31);
    spread(&mut router, Spread::All, &[B]);
    assert_eq!(router.send_one(WEST, &frame).0, B);
}

#[test]
fn a_cross_connect_passes_a_bond_both_ways_with_all_its_tags() {
    let mut router = bonded();
    router.change(BOND, |interface| {
        interface.input = Input::CrossConnect(LEFT)
    });
    router.change(LEFT, |interface| {
        interface.input = Input::CrossConnect(BOND)
    });
    let frame = build::tagged(&build::udp4(&through("10.9.9.9"), &[1; 20]), 77, 5);
    assert_eq!(router.send_one(A, &frame), (LEFT, frame.clone()));
    let (by, out) = router.send_one(LEFT, &frame);
    assert!([A, B, C].contains(&by) && out == frame);
}

#[test]
fn lacp_is_reported_to_the_control_side_and_concerns_the_member() {
    let mut router = bonded();
    let expected = |interface| Event::Lacp {
        interface,
        actor: end(FAR, 3),
        partner: End::default(),
    };
    // Also from a member that is not in use, which is how it comes into use.
    for member in [A, IDLE] {
        assert_eq!(router.send(member, &pdu(FAR)), []);
        assert_eq!(router.events(), [expected(member)]);
    }
    assert_eq!(router.drops(), []);
    assert_eq!(router.interface(BOND).counters.rx().packets, 0);
    // Padding, and a later version that is longer.
    let mut longer = [pdu(FAR), vec![9; 300]].concat();
    longer[15] = 2;
    router.send(A, &longer);
    assert_eq!(router.events(), [expected(A)]);
}

#[test]
fn a_marker_is_answered_by_the_way_that_it_came() {
    let mut router = bonded();
    let marker = Marker::new(3, FAR, 0x0102_0304);
    let (by, frame) = router.send_one(B, &slow(marker.as_bytes()));
    let expected = [
        EthernetHeader::new(MULTICAST, our_mac(B), EtherType::SLOW).as_bytes(),
        marker.response().as_bytes(),
    ]
    .concat();
    assert_eq!((by, frame), (B, expected));
    assert_eq!(router.interface(B).counters.tx().multicast, 1);
}

#[test]
fn a_flood_reaches_the_control_side_as_ten_a_second() {
    let mut router = bonded();
    for second in 1..=3 {
        router.send_all(A, &vec![pdu(FAR); 200]);
        assert_eq!(router.events().len(), 10);
        assert_eq!(router.dropped(DropReason::LacpFlood), 190 * second);
        router.now += SECOND;
    }
    // A member does not suffer from another one.
    router.send_all(A, &vec![pdu(FAR); 200]);
    router.send(B, &pdu(FAR));
    assert_eq!(router.events().len(), 11);
}

#[test]
fn whatever_a_slow_frame_holds_it_is_dropped_reported_or_answered() {
    let mut router = bonded();
    let bodies = [
        pdu(FAR),
        slow(Marker::new(3, FAR, 9).as_bytes()),
        pdu(our_mac(BOND)),
        slow(&[10, 0, 0x19]),
    ];
    for frame in &bodies {
        for len in 14..frame.len().min(140) {
            router.send(A, &frame[..len]);
            router.now += SECOND;
        }
        for place in 14..frame.len().min(80) {
            for byte in [0, 1, 2, 0xff] {
                let mut broken = frame.clone();
                broken[place] = byte;
                router.send(A, &broken);
                router.now += SECOND;
            }
        }
    }
    router.events();
}

/// Node, reason, and what brings it about.
pub(crate) type Reached = (&'static str, DropReason, fn(&mut Router));

/// Pairs of node and reason that bonds bring, each with what brings it about once.
pub(crate) fn reasons() -> Vec<Reached> {
    fn bare(router: &mut Router, member: u32, frame: &[u8]) {
        add(router);
        router.send(member, frame);
    }
    vec![
        ("bond-input", DropReason::MemberInactive, |router| {
            bare(router, IDLE, &build::udp4(&up("10.0.2.2", 1), &[1; 20]))
        }),
        ("bond-input", DropReason::InterfaceDown, |router| {
            add(router);
            let mut packet = router.packet(&pdu(FAR));
            packet.set_interface(DOWN);
            let entry = router.graph.find("bond-input").unwrap();
            router.graph.inject(entry, packet);
            router.turn();
        }),
        ("lacp-input", DropReason::LacpMalformed, |router| {
            bare(router, A, &pdu(FAR)[..60])
        }),
        ("lacp-input", DropReason::LacpOwnSystem, |router| {
            bare(router, A, &pdu(our_mac(BOND)))
        }),
        ("lacp-input", DropReason::SlowProtocol, |router| {
            bare(router, A, &slow(&[10; 60]))
        }),
        ("lacp-input", DropReason::LacpFlood, |router| {
            add(router);
            router.send_all(A, &vec![pdu(FAR); 11]);
        }),
        ("lacp-input", DropReason::LacpOff, |router| {
            add(router);
            let bond = Bond {
                spread: Spread::All,
                members: [A].into(),
                seed: 0,
                lacp: false,
            };
            router.change(BOND, |interface| interface.bond = Some(Arc::new(bond)));
            router.send(A, &pdu(FAR));
        }),
        ("bond-output", DropReason::TxDown, |router| {
            add(router);
            spread(router, Spread::Flows(Layers::L34), &[]);
            router.send(WEST, &flows(1)[0]);
        }),
    ]
}
