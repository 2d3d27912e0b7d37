//! Sub-interfaces: frames by their tags, routed and across, in and out, each counted where it belongs.

use std::sync::Arc;

use ipnet::Ipv4Net;
use weir_buf::Vector;
use weir_fib::{Adjacency, NeighborState};
use weir_graph::DropReason;
use weir_nodes::Hop;
use weir_port::interface::{Input, Interface, InterfaceCounters, Kind, Output};
use weir_port::sub_interface::{Encapsulation, SubInterface, SubInterfaces, TagStack};
use weir_wire::{ArpPacket, EtherType, MacAddr, build};

use crate::rig::*;

pub(crate) const Q: u16 = 0x8100;
pub(crate) const AD: u16 = 0x88a8;
/// The first index of sub-interfaces.
pub(crate) const FIRST: u32 = 20;
const INNER: u32 = 29;

pub(crate) fn dot1q(outer: u16) -> Encapsulation {
    Encapsulation {
        service: false,
        outer,
        inner: None,
        exact: true,
    }
}

pub(crate) fn loose(encapsulation: Encapsulation) -> Encapsulation {
    Encapsulation {
        exact: false,
        ..encapsulation
    }
}

pub(crate) fn double(service: bool, outer: u16, inner: u16) -> Encapsulation {
    Encapsulation {
        service,
        outer,
        inner: Some(inner),
        exact: true,
    }
}

/// A frame with tags put in behind its addresses, priority 5.
pub(crate) fn tagged(frame: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let tags: Vec<u8> = tags
        .iter()
        .flat_map(|&(announced, vlan)| [announced.to_be_bytes(), (0xa000 | vlan).to_be_bytes()])
        .flatten()
        .collect();
    [&frame[..12], &tags, &frame[12..]].concat()
}

/// The same with tags as this router puts them on: priority 0.
fn pushed(frame: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let mut frame = tagged(frame, tags);
    (0..tags.len()).for_each(|tag| frame[14 + 4 * tag] &= 0x0f);
    frame
}

/// The same with tags that took the place of others: the outer one has their priority.
fn exchanged(frame: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let mut frame = pushed(frame, tags);
    frame[14] |= 0xa0;
    frame
}

impl Router {
    /// Adds sub-interfaces, numbered from [`FIRST`], as the control side would.
    pub(crate) fn add_sub_interfaces(&mut self, subs: &[(SubInterface, Input)]) {
        let map = self.graph.drop_map();
        self.tables.interfaces.resize(FIRST as usize, None);
        for (index, &(sub_interface, input)) in (FIRST..).zip(subs) {
            let counters = Arc::new(InterfaceCounters::new(1));
            let name = format!("sub{index}").into();
            let interface = Interface {
                input,
                parent: Some(sub_interface.parent),
                output: Output::SubInterface,
                sub_interface: Some(sub_interface),
                can_send: true,
                own: Arc::clone(&self.own),
                mtu: self.interface(sub_interface.parent).mtu,
                ..Interface::at_rest(
                    index,
                    name,
                    Kind::SubInterface,
                    our_mac(sub_interface.parent),
                    counters,
                )
            };
            self.tables
                .interfaces
                .push(Some(Arc::new(weir_nodes::Entry::new(
                    interface,
                    [map.counters()].into(),
                ))));
        }
        for parent in 1..=MUTE {
            let shares: Vec<_> = (FIRST..)
                .zip(subs)
                .filter(|(_, (sub, _))| sub.parent == parent)
                .map(|(n, (sub, _))| (sub.encapsulation, n))
                .collect();
            if !shares.is_empty() {
                self.change(parent, |it| {
                    it.sub_interfaces = Some(Arc::new(SubInterfaces::new(&shares)))
                });
            }
        }
    }

    /// Adds an interface that no driver feeds, as a tunnel's, with the number [`INNER`].
    fn add_inner(&mut self, change: impl FnOnce(&mut Interface)) {
        let counters = Arc::new(InterfaceCounters::new(1));
        let mut inner =
            Interface::at_rest(INNER, "inner".into(), Kind::Vxlan, our_mac(INNER), counters);
        change(&mut inner);
        self.install(inner);
    }

    /// Gives an interface an address and a neighbour.
    pub(crate) fn connect_sub_interface(&mut self, index: u32, address: &str, neighbor: &str) {
        let net: Ipv4Net = address.parse().unwrap();
        let (mtu, mac) = (self.interface(index).mtu, self.interface(index).mac);
        self.change(index, |it| {
            it.addresses = [(u32::from(net.addr()), net.prefix_len())].into()
        });
        let glean = self
            .nexthops
            .add_adjacency(Adjacency::glean(index, mtu, mac.0));
        let local = self.nexthops.add_adjacency(Adjacency::local(index));
        self.route(net.trunc(), &[(glean, 1)]);
        self.route(Ipv4Net::from(net.addr()), &[(local, 1)]);
        let adjacency = Adjacency::neighbor(index, crate::rig::address(neighbor), mtu, mac.0);
        let [_, _, subnet, host] = ip(neighbor).to_be_bytes();
        adjacency.set_neighbor(NeighborState::Reachable, their_mac(subnet, host).0);
        let number = self.nexthops.add_adjacency(adjacency);
        self.route(format!("{neighbor}/32").parse().unwrap(), &[(number, 1)]);
        self.publish();
    }

    fn packets(&self, index: u32) -> (u64, u64) {
        let counters = &self.interface(index).counters;
        (counters.rx().packets, counters.tx().packets)
    }
}

pub(crate) const VLAN: u32 = FIRST;
pub(crate) const DOUBLE: u32 = FIRST + 1;

/// `west` with VLAN 100 (10.0.20.1/24) and 802.1ad 7 with 802.1Q 8 inside (10.0.21.1/24).
pub(crate) fn routed() -> Router {
    let mut router = Router::default();
    router.add_sub_interfaces(&[
        (SubInterface::new(WEST, dot1q(100)), Input::Routed),
        (SubInterface::new(WEST, double(true, 7, 8)), Input::Routed),
    ]);
    router.connect_sub_interface(VLAN, "10.0.20.1/24", "10.0.20.2");
    router.connect_sub_interface(DOUBLE, "10.0.21.1/24", "10.0.21.2");
    router
}

pub(crate) fn udp(destination: &str) -> Vec<u8> {
    build::udp4(&through(destination), &[7; 40])
}

/// What a packet becomes on its way to a neighbour: addresses, one hop less, checksum.
fn forwarded(frame: &[u8], source: MacAddr, destination: MacAddr) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[..6].copy_from_slice(&destination.0);
    frame[6..12].copy_from_slice(&source.0);
    crate::forward::alter(&mut frame, |header| header.ttl -= 1);
    frame
}

#[test]
fn routed_from_and_to_each_kind() {
    let mut router = routed();
    let ends = [
        ("10.0.20.2", WEST, &[(Q, 100)][..], their_mac(20, 2)),
        ("10.0.21.2", WEST, &[(AD, 7), (Q, 8)], their_mac(21, 2)),
        ("10.0.1.2", WEST, &[], their_mac(1, 2)),
        ("10.0.2.2", EAST, &[], their_mac(2, 2)),
    ];
    for (_, _, tags_in, _) in &ends[..3] {
        for (destination, port, tags_out, mac) in ends {
            let frame = udp(destination);
            let expected = pushed(&forwarded(&frame, our_mac(port), mac), tags_out);
            assert_eq!(
                router.send_one(WEST, &tagged(&frame, tags_in)),
                (port, expected),
                "{tags_in:?} {destination}"
            );
        }
    }
    assert_eq!(
        (router.packets(VLAN), router.packets(DOUBLE)),
        ((4, 3), (4, 3))
    );
    assert_eq!(
        (router.packets(WEST), router.packets(EAST)),
        ((12, 9), (0, 3))
    );
    let (len, counters) = (
        udp("10.0.2.2").len() as u64,
        &router.interface(DOUBLE).counters,
    );
    assert_eq!(
        (counters.rx().bytes, counters.tx().bytes),
        (4 * (len + 8), 3 * (len + 8)),
        "bytes are counted with the tags"
    );
}

#[test]
fn a_mixed_vector_is_sorted_out() {
    let mut router = routed();
    let kinds: [&[(u16, u16)]; 5] = [&[(Q, 100)], &[], &[(AD, 7), (Q, 8)], &[(Q, 0)], &[(Q, 101)]];
    let frames: Vec<_> = (0..250)
        .map(|n| tagged(&udp("10.0.2.2"), kinds[n % 5]))
        .collect();
    let sent = router.send_all(WEST, &frames);
    assert_eq!(sent.len(), 200);
    let expected = forwarded(&udp("10.0.2.2"), our_mac(EAST), their_mac(2, 2));
    assert!(sent.iter().all(|sent| *sent == (EAST, expected.clone())));
    assert_eq!(
        (
            router.packets(VLAN).0,
            router.packets(DOUBLE).0,
            router.packets(WEST).0
        ),
        (50, 50, 250)
    );
    assert_eq!(
        router.drops(),
        [("eth-input", DropReason::VlanUnknown, WEST, 50)]
    );
}

#[test]
fn arp_and_echo_are_answered_with_the_tags() {
    let mut router = routed();
    for (tags, subnet) in [(&[(Q, 100)][..], 20), (&[(AD, 7), (Q, 8)], 21)] {
        let (own, theirs) = (
            ip(&format!("10.0.{subnet}.1")),
            ip(&format!("10.0.{subnet}.7")),
        );
        let mac = their_mac(subnet, 7);
        let request = build::arp(
            MacAddr::BROADCAST,
            &ArpPacket::new(ArpPacket::REQUEST, mac, theirs, MacAddr::ZERO, own),
        );
        let reply = build::arp(
            mac,
            &ArpPacket::new(ArpPacket::REPLY, our_mac(WEST), own, mac, theirs),
        );
        assert_eq!(
            router.send_one(WEST, &tagged(&request, tags)),
            (WEST, pushed(&reply, tags))
        );
    }
    assert_eq!(router.interface(VLAN).counters.rx().broadcast, 1);
    let ends = build::Ends {
        source_mac: their_mac(20, 2),
        source: ip("10.0.20.2"),
        ..through("10.0.20.1")
    };
    let (port, reply) = router.send_one(
        WEST,
        &tagged(&build::echo4(&ends, 8, 1, 1, &[1; 8]), &[(Q, 100)]),
    );
    let back = build::Ends {
        source_mac: our_mac(WEST),
        destination_mac: their_mac(20, 2),
        source: ends.destination,
        destination: ends.source,
        ..ends
    };
    assert_eq!(
        (port, reply),
        (
            WEST,
            pushed(&build::echo4(&back, 0, 1, 1, &[1; 8]), &[(Q, 100)])
        )
    );
    // An unknown neighbour is asked for with the tags.
    let sent = router.send(WEST, &tagged(&udp("10.0.21.99"), &[(Q, 100)]));
    let asked = build::arp(
        MacAddr::BROADCAST,
        &ArpPacket::new(
            ArpPacket::REQUEST,
            our_mac(WEST),
            ip("10.0.21.1"),
            MacAddr::ZERO,
            ip("10.0.21.99"),
        ),
    );
    assert_eq!(sent, [(WEST, pushed(&asked, &[(AD, 7), (Q, 8)]))]);
    assert_eq!(router.interface(DOUBLE).counters.tx().broadcast, 1);
}

#[test]
fn a_router_without_sub_interfaces_takes_priority_tags_only() {
    let mut router = Router::default();
    let expected = forwarded(&udp("10.0.2.2"), our_mac(EAST), their_mac(2, 2));
    assert_eq!(
        router.send_one(WEST, &tagged(&udp("10.0.2.2"), &[(Q, 0)])),
        (EAST, expected)
    );
    for tags in [
        &[(Q, 1)][..],
        &[(Q, 4095)],
        &[(AD, 0), (Q, 5)],
        &[(Q, 0), (Q, 0)],
    ] {
        assert!(
            router
                .send(WEST, &tagged(&udp("10.0.2.2"), tags))
                .is_empty()
        );
    }
    assert_eq!(
        router.drops(),
        [("eth-input", DropReason::VlanUnknown, WEST, 4)]
    );
    for cut in 14..18 {
        assert!(
            router
                .send(WEST, &tagged(&udp("10.0.2.2"), &[(Q, 0)])[..cut])
                .is_empty()
        );
    }
    assert_eq!(router.dropped(DropReason::VlanTruncated), 4);
}

#[test]
fn tags_cut_in_half_are_dropped_with_their_reason() {
    let mut router = routed();
    let frame = tagged(&udp("10.0.2.2"), &[(AD, 7), (Q, 8)]);
    for (cut, reason) in (0..22).map(|cut| {
        (
            cut,
            if cut < 14 {
                DropReason::TooShort
            } else {
                DropReason::VlanTruncated
            },
        )
    }) {
        let before = router.dropped(reason);
        assert!(router.send(WEST, &frame[..cut]).is_empty());
        assert_eq!(
            router.dropped(reason),
            before + 1,
            "{cut}: {:?}",
            router.drops()
        );
    }
    // All tags there, nothing behind them.
    assert!(router.send(WEST, &frame[..22]).is_empty());
    assert_eq!(router.dropped(DropReason::Ip4Truncated), 1);
    assert_eq!(router.packets(DOUBLE).0, 1);
}

#[test]
fn across_from_tags_to_tags() {
    let mut router = Router::default();
    router.add_sub_interfaces(&[
        (
            SubInterface::new(WEST, dot1q(100)),
            Input::CrossConnect(FIRST + 1),
        ),
        (
            SubInterface::new(EAST, double(false, 200, 300)),
            Input::CrossConnect(FIRST),
        ),
        (
            SubInterface::new(SOUTH, loose(dot1q(9))),
            Input::CrossConnect(LEFT),
        ),
    ]);
    router.change(LEFT, |left| left.input = Input::CrossConnect(FIRST + 2));
    let inner = [&[0xff; 6][..], &their_mac(1, 9).0, &[0x88, 0xcc], &[3; 46]].concat();
    assert_eq!(
        router.send_one(WEST, &tagged(&inner, &[(Q, 100)])),
        (EAST, exchanged(&inner, &[(Q, 200), (Q, 300)]))
    );
    assert_eq!(
        router.send_one(EAST, &tagged(&inner, &[(Q, 200), (Q, 300)])),
        (WEST, exchanged(&inner, &[(Q, 100)]))
    );
    // What follows a tag that need not be the only one stays.
    assert_eq!(
        router.send_one(SOUTH, &tagged(&inner, &[(Q, 9), (Q, 5)])),
        (LEFT, tagged(&inner, &[(Q, 5)]))
    );
    assert_eq!(
        router.send_one(LEFT, &inner),
        (SOUTH, pushed(&inner, &[(Q, 9)]))
    );
    assert_eq!(router.interface(FIRST).counters.rx().broadcast, 1);
    assert_eq!(router.interface(FIRST + 1).counters.tx().broadcast, 1);
    assert!(router.drops().is_empty());
}

#[test]
fn a_tag_rewrite_pushes_pops_and_translates() {
    let push = TagStack::EMPTY.with(EtherType::QINQ, 500);
    let mut router = Router::default();
    router.add_sub_interfaces(&[
        (
            SubInterface::with_rewrite(WEST, dot1q(1), 0, TagStack::EMPTY),
            Input::CrossConnect(EAST),
        ),
        (
            SubInterface::with_rewrite(WEST, dot1q(2), 0, push),
            Input::CrossConnect(EAST),
        ),
        (
            SubInterface::with_rewrite(WEST, dot1q(3), 1, push),
            Input::CrossConnect(EAST),
        ),
        (
            SubInterface::with_rewrite(WEST, double(false, 4, 5), 1, TagStack::EMPTY),
            Input::CrossConnect(EAST),
        ),
    ]);
    let inner = [
        &their_mac(1, 9).0[..],
        &their_mac(1, 8).0,
        &[0x88, 0xcc],
        &[3; 46],
    ]
    .concat();
    let cases: [(&[_], &[_], u32); 4] = [
        (&[(Q, 1)], &[(Q, 1)], FIRST),
        (&[(Q, 2)], &[(AD, 500), (Q, 2)], FIRST + 1),
        (&[(Q, 3)], &[(AD, 500)], FIRST + 2),
        (&[(Q, 4), (Q, 5)], &[(Q, 5)], FIRST + 3),
    ];
    for (tags_in, tags_out, index) in cases {
        let came = tagged(&inner, tags_in);
        let there = tagged(&inner, tags_out);
        assert_eq!(
            router.send_one(WEST, &came),
            (EAST, there.clone()),
            "{tags_in:x?}"
        );
        // The way back undoes it; a tag on what had none has no priority.
        router.change(EAST, |east| east.input = Input::CrossConnect(index));
        let (_, back) = router.send_one(EAST, &there);
        let mut expected = came.clone();
        if index == FIRST + 3 {
            expected[14] &= 0x0f;
        }
        assert_eq!(back, expected, "{tags_out:x?}");
    }
    router.change(EAST, |east| east.input = Input::CrossConnect(FIRST + 2));
    assert!(
        router.send(EAST, &inner).is_empty(),
        "a tag that should come off must be there"
    );
    assert_eq!(
        router.drops(),
        [("sub-interface-output", DropReason::VlanMissing, EAST, 1)]
    );
}

#[test]
fn the_mtu_is_that_of_the_sub_interface() {
    let mut router = Router::default();
    router.add_sub_interfaces(&[
        (
            SubInterface::new(WEST, dot1q(100)),
            Input::CrossConnect(FIRST + 1),
        ),
        (
            SubInterface::new(EAST, dot1q(200)),
            Input::CrossConnect(FIRST),
        ),
    ]);
    router.change(FIRST + 1, |sub| sub.mtu = 1000);
    let frame = |len: usize| {
        tagged(
            &[
                &their_mac(1, 9).0[..],
                &their_mac(1, 8).0,
                &[0x88, 0xcc],
                &vec![3; len],
            ]
            .concat(),
            &[(Q, 100)],
        )
    };
    assert_eq!(router.send_one(WEST, &frame(1000)).1.len(), 1018);
    assert!(router.send(WEST, &frame(1001)).is_empty());
    assert_eq!(
        router.drops(),
        [("eth-input", DropReason::FrameTooLong, FIRST, 1)]
    );
    // Routed: the packet is cut to what the sub-interface takes.
    let mut router = routed();
    router.change(VLAN, |sub| sub.mtu = 600);
    router.connect_sub_interface(VLAN, "10.0.20.1/24", "10.0.20.3");
    let sent = router.send(
        WEST,
        &tagged(
            &build::udp4(&through("10.0.20.3"), &[7; 1000]),
            &[(AD, 7), (Q, 8)],
        ),
    );
    assert_eq!(
        sent.iter().map(|sent| sent.1.len()).collect::<Vec<_>>(),
        [18 + 596, 18 + 452]
    );
    assert!(sent.iter().all(|sent| sent.1[12..16] == [0x81, 0, 0, 100]));
}

#[test]
fn what_is_closed_takes_nothing() {
    let mut router = routed();
    router.change(VLAN, |sub| sub.input = Input::Closed);
    router.change(DOUBLE, |sub| sub.input = Input::Unused);
    router.send(WEST, &tagged(&udp("10.0.2.2"), &[(Q, 100)]));
    router.send(WEST, &tagged(&udp("10.0.2.2"), &[(AD, 7), (Q, 8)]));
    assert_eq!(
        router.drops(),
        [
            ("eth-input", DropReason::InterfaceDown, VLAN, 1),
            ("eth-input", DropReason::NotRouted, DOUBLE, 1)
        ]
    );
    router.change(VLAN, |sub| sub.can_send = false);
    router.send(WEST, &udp("10.0.20.2"));
    assert_eq!(router.dropped(DropReason::TxDown), 1);
    router.change(WEST, |port| port.input = Input::Closed);
    router.send(WEST, &tagged(&udp("10.0.2.2"), &[(AD, 7), (Q, 8)]));
    assert_eq!(
        (
            router.dropped(DropReason::InterfaceDown),
            router.packets(DOUBLE).0
        ),
        (2, 1),
        "a port that is down takes nothing for anybody"
    );
}

#[test]
fn interface_input_takes_frames_in_where_other_nodes_found_them() {
    let mut router = routed();
    let entry = router
        .graph
        .find(weir_nodes::names::INTERFACE_INPUT)
        .unwrap();
    for index in [VLAN, DOUBLE, VLAN, VLAN] {
        let mut frame = udp("10.0.3.2");
        frame[..6].copy_from_slice(&router.interface(index).mac.0);
        let mut packet = router.packet(&frame);
        packet.set_interface(index);
        packet.set_flags(weir_buf::Flags::ORIGINATED | weir_buf::Flags::HASHED);
        router.graph.inject(entry, packet);
    }
    let sent = router.turn();
    let expected = forwarded(&udp("10.0.3.2"), our_mac(SOUTH), their_mac(3, 2));
    assert_eq!(sent, vec![(SOUTH, expected); 4]);
    assert_eq!((router.packets(VLAN).0, router.packets(DOUBLE).0), (3, 1));
}

#[test]
fn interface_input_sorts_the_frames_of_an_interface_that_has_sub_interfaces() {
    let mut router = routed();
    let shares = Arc::new(SubInterfaces::new(&[
        (dot1q(100), VLAN),
        (double(true, 7, 8), DOUBLE),
    ]));
    router.add_inner(|inner| {
        (inner.input, inner.sub_interfaces) = (Input::CrossConnect(LEFT), Some(shares))
    });
    let entry = router
        .graph
        .find(weir_nodes::names::INTERFACE_INPUT)
        .unwrap();
    let frame = udp("10.0.3.2");
    let kinds: [&[(u16, u16)]; 4] = [&[(Q, 100)], &[(AD, 7), (Q, 8)], &[], &[(Q, 101)]];
    let send = |router: &mut Router| {
        for tags in kinds {
            let mut packet = router.packet(&tagged(&frame, tags));
            packet.set_interface(INNER);
            router.graph.inject(entry, packet);
        }
        router.turn()
    };
    let expected = forwarded(&frame, our_mac(SOUTH), their_mac(3, 2));
    let mut sent = send(&mut router);
    sent.sort();
    let mut wanted = [
        (SOUTH, expected.clone()),
        (SOUTH, expected),
        (LEFT, frame.clone()),
    ];
    wanted.sort();
    assert_eq!(sent, wanted);
    assert_eq!(
        (
            router.packets(INNER).0,
            router.packets(VLAN).0,
            router.packets(DOUBLE).0
        ),
        (4, 1, 1)
    );
    assert_eq!(
        router.drops(),
        [("interface-input", DropReason::VlanUnknown, INNER, 1)]
    );
    router.change(INNER, |inner| inner.input = Input::Closed);
    assert!(send(&mut router).is_empty());
    assert_eq!(
        (
            router.dropped(DropReason::InterfaceDown),
            router.packets(VLAN).0
        ),
        (4, 1),
        "nor for anybody"
    );
}

#[test]
fn who_reports_single_packets_is_reported_the_way() {
    let mut router = routed();
    for (tags, destination, input, output, expected) in [
        (&[(Q, 100)][..], "10.0.2.2", VLAN, EAST, Some((100, 0))),
        (&[(Q, 100)], "10.0.21.2", VLAN, DOUBLE, Some((100, 7))),
        (&[], "10.0.20.2", WEST, VLAN, Some((0, 100))),
        (&[(AD, 7), (Q, 8)], "10.0.3.2", DOUBLE, SOUTH, Some((7, 0))),
        (&[], "10.0.2.2", WEST, EAST, None),
    ] {
        let frame = tagged(&udp(destination), tags);
        let sent = router.send(WEST, &frame);
        let (port, left) = sent.first().expect("it is forwarded");
        let way = router
            .tables
            .way(WEST, &frame[..64], Some((*port, &left[..64])));
        let hop = Some(Hop {
            next: destination.parse().unwrap(),
            prefixes: None,
        });
        let vlans = way
            .tags
            .map(|(came, left)| (came.0.unwrap(), left.0.unwrap()));
        assert_eq!(
            (way.input, way.output, vlans, way.hop),
            (input, output, expected, hop),
            "{tags:?} {destination}"
        );
    }
    let tag = |vlan, priority| (Some(vlan), Some(priority));
    let frame = tagged(&udp("10.0.2.2"), &[(Q, 5)]);
    let way = router.tables.way(LEFT, &frame, Some((RIGHT, &frame)));
    assert_eq!(
        (way.input, way.output, way.tags, way.hop),
        (LEFT, RIGHT, Some((tag(5, 5), tag(5, 5))), None),
        "switched"
    );
    let way = router
        .tables
        .way(WEST, &tagged(&udp("10.0.2.2"), &[(Q, 101)]), None);
    assert_eq!(
        (way.input, way.output, way.tags, way.hop),
        (WEST, 0, Some((tag(101, 5), (None, None))), None),
        "nobody takes it"
    );
}

/// A packet in front of a node, as if another one had sent it there.
fn put_before(router: &mut Router, node: &str, index: u32, frame: &[u8]) {
    let packet = router.packet(frame);
    put_packet_before(router, node, index, packet);
}

fn put_packet_before(router: &mut Router, node: &str, index: u32, mut packet: weir_buf::Pkt) {
    packet.set_interface(index);
    packet.set_aux(index);
    let entry = router.graph.find(node).unwrap();
    router.graph.inject(entry, packet);
    router.turn();
}

/// Three sub-interfaces: routed, across to the first, and one that puts another tag on; `west` has room for
/// packets of 1000 bytes.
fn three(router: &mut Router) {
    let push = TagStack::EMPTY.with(EtherType::VLAN, 9);
    router.add_sub_interfaces(&[
        (SubInterface::new(WEST, dot1q(1)), Input::Routed),
        (SubInterface::new(WEST, dot1q(2)), Input::CrossConnect(EAST)),
        (
            SubInterface::with_rewrite(WEST, dot1q(3), 0, push),
            Input::CrossConnect(EAST),
        ),
    ]);
}

fn enter(router: &mut Router, index: u32, frame: &[u8]) {
    three(router);
    put_before(router, "interface-input", index, frame);
}

fn enter_as(router: &mut Router, input: Input) {
    three(router);
    router.change(FIRST, |it| it.input = input);
    put_before(router, "interface-input", FIRST, &[2; 60]);
}

fn leave(router: &mut Router, index: u32, frame: &[u8]) {
    three(router);
    put_before(router, "sub-interface-output", index, frame);
}

pub(crate) fn crammed(router: &mut Router, frame: &[u8]) -> weir_buf::Pkt {
    let mut packet = router.packet(frame);
    let room = packet.headroom();
    packet.push_front(room).unwrap()[..frame.len()].copy_from_slice(frame);
    assert!(packet.set_len(frame.len()));
    packet
}

/// Node, reason, and what brings it about.
type Row = (&'static str, DropReason, fn(&mut Router));

/// How each reason that has to do with tags is reached.
pub(crate) fn reasons() -> Vec<Row> {
    use DropReason::*;
    vec![
        ("eth-input", VlanTruncated, |router| {
            drop(router.send(WEST, &tagged(&udp("10.0.2.2"), &[(Q, 1)])[..17]))
        }),
        ("eth-input", NoHeadroom, |router| {
            three(router);
            let mut vector = Vector::default();
            let packet = crammed(router, &tagged(&udp("10.0.2.2"), &[(Q, 3)]));
            vector.push(packet);
            router.send_vector(WEST, &mut vector);
        }),
        ("interface-input", InterfaceDown, |router| {
            enter_as(router, Input::Closed)
        }),
        ("interface-input", TooShort, |router| {
            enter(router, FIRST, &udp("10.0.2.2")[..13])
        }),
        ("interface-input", WrongMac, |router| {
            enter(router, FIRST, &[2; 60])
        }),
        ("interface-input", VlanUnknown, |router| {
            enter(router, FIRST, &tagged(&udp("10.0.2.2"), &[(Q, 7)]))
        }),
        ("interface-input", VlanTruncated, |router| {
            enter(router, FIRST, &tagged(&udp("10.0.2.2"), &[(Q, 7)])[..16])
        }),
        ("interface-input", UnknownEthertype, |router| {
            enter(router, FIRST, &[&our_mac(WEST).0[..], &[2; 48]].concat())
        }),
        ("interface-input", NotRouted, |router| {
            enter_as(router, Input::Unused)
        }),
        ("interface-input", FrameTooLong, |router| {
            enter(router, FIRST + 1, &[2; 1015])
        }),
        ("interface-input", NoHeadroom, |router| {
            three(router);
            let packet = crammed(router, &tagged(&udp("10.0.2.2"), &[(Q, 3)]));
            let shares = Arc::new(SubInterfaces::new(&[(dot1q(3), FIRST + 2)]));
            router.add_inner(|inner| inner.sub_interfaces = Some(shares));
            put_packet_before(router, "interface-input", INNER, packet);
        }),
        ("sub-interface-output", TxDown, |router| {
            leave(router, WEST, &[2; 60])
        }),
        ("sub-interface-output", TooShort, |router| {
            leave(router, FIRST, &[2; 11])
        }),
        ("sub-interface-output", FrameTooLong, |router| {
            leave(router, FIRST, &[2; 1515])
        }),
        ("sub-interface-output", VlanMissing, |router| {
            leave(router, FIRST + 2, &[2; 60])
        }),
        ("sub-interface-output", VlanTruncated, |router| {
            leave(router, FIRST + 2, &tagged(&[2; 60], &[(Q, 9)])[..17])
        }),
        ("sub-interface-output", NoHeadroom, |router| {
            three(router);
            let packet = crammed(router, &[2; 60]);
            put_packet_before(router, "sub-interface-output", FIRST, packet);
        }),
    ]
}
