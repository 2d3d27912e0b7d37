//! Packets over several chunks through every node: what comes out, and what is dropped for which reason, is the same as
//! of packets in one chunk. That no node is left out is counted.

use std::collections::BTreeSet;

use weir_acl::Action;
use weir_buf::Vector;
use weir_fib::NeighborState;
use weir_graph::DropReason;
use weir_port::interface::{Feature, Input, ReversePath};
use weir_port::sub_interface::SubInterface;
use weir_wire::build::{self, Ends, Ends6};
use weir_wire::{ArpPacket, IpProtocol, MacAddr};

use crate::ip6::with_extensions;
use crate::mpls::under;
use crate::rig::*;
use crate::{acl, bond, bridge, nd, policer, pseudowire, urpf, vlan, vxlan};

/// A router, and frames by interface.
type World = (&'static str, fn() -> Router, Vec<(u32, Vec<u8>)>);

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + n / 251) as u8).collect()
}

fn udp4(to: &str, len: usize) -> Vec<u8> {
    build::udp4(&through(to), &bytes(len))
}

fn udp6(to: &str, len: usize) -> Vec<u8> {
    build::udp6(&through6(to), &bytes(len))
}

/// Another ethertype's frame from station to station.
fn frame(to: MacAddr, from: MacAddr, len: usize) -> Vec<u8> {
    [&to.0[..], &from.0, &[0x88, 0xb5], &bytes(len)].concat()
}

fn narrow() -> Router {
    let mut router = Router::with_labels(Setup {
        mtu: 900,
        ..Setup::default()
    });
    // Who is waited for does not answer: what waits is complained about at the end.
    for neighbor in ["10.0.2.9", "2001:db8:2::9"] {
        let number = router.adjacency_of(neighbor);
        router.set_neighbor(number, NeighborState::Incomplete);
    }
    router
}

/// Routed and labelled packets that are forwarded, cut, complained about, answered, held.
fn routed() -> World {
    let mut frames = Vec::new();
    for to in [
        "10.0.3.2",
        "10.0.2.2",
        "10.0.2.77",
        "10.0.1.1",
        "8.8.8.8",
        "10.50.0.1",
        "10.52.0.1",
        "172.16.0.1",
    ] {
        frames.push((WEST, udp4(to, 1000)));
    }
    for to in [
        "2001:db8:3::2",
        "2001:db8:2::2",
        "2001:db8:2::77",
        "2001:db8:1::1",
        "2001:db8:ffff::1",
    ] {
        frames.push((WEST, udp6(to, 1000)));
    }
    frames.push((
        WEST,
        build::echo4(
            &through("10.0.1.1"),
            build::ECHO_REQUEST,
            1,
            2,
            &bytes(1000),
        ),
    ));
    frames.push((
        WEST,
        build::echo6(&through6("2001:db8:1::1"), 128, 1, 2, &bytes(1000)),
    ));
    for label in [100, 102, 104, 106, 109, 111, 113] {
        frames.push((WEST, under(&udp4("10.0.2.2", 1000), &[(label, 3, 64)])));
        frames.push((WEST, under(&udp6("2001:db8:3::2", 1000), &[(label, 3, 1)])));
    }
    frames.push((
        WEST,
        with_extensions(
            &udp6("2001:db8:1::1", 1000),
            IpProtocol::DESTINATION_OPTIONS,
            &[17, 0, 0x80, 4, 0, 0, 0, 0],
        ),
    ));
    ("routed", narrow, frames)
}

/// ARP and neighbour discovery in frames that Ethernet padded beyond a chunk; who says more than fits one is not heard (RFC 6980).
fn asked() -> World {
    let request = ArpPacket::new(
        ArpPacket::REQUEST,
        their_mac(1, 7),
        ip("10.0.1.7"),
        MacAddr::ZERO,
        ip("10.0.1.1"),
    );
    let mut arp = build::arp(MacAddr::BROADCAST, &request);
    arp.resize(1000, 0);
    let mut solicitation = nd::solicitation("2001:db8:1::7", "2001:db8:1::1");
    solicitation.resize(1000, 0);
    (
        "asked",
        Router::default,
        vec![(WEST, arp), (WEST, solicitation)],
    )
}

fn listed_router() -> Router {
    let mut router = Router::default();
    acl::bind(
        &mut router,
        WEST,
        Feature::AclIn,
        vec![
            acl::udp_to(Action::Deny, "10.0.3.2/32", 0..=u16::MAX),
            acl::from(Action::Permit, "0.0.0.0/0"),
        ],
    );
    acl::bind(
        &mut router,
        EAST,
        Feature::AclOut,
        vec![
            acl::udp_to(Action::Deny, "10.0.2.3/32", 0..=u16::MAX),
            acl::from(Action::Permit, "0.0.0.0/0"),
        ],
    );
    router
}

fn listed() -> World {
    let mut frames: Vec<_> = ["10.0.2.2", "10.0.2.3", "10.0.3.2"]
        .map(|to| (WEST, udp4(to, 1000)))
        .to_vec();
    frames.push((WEST, udp6("2001:db8:2::2", 1000)));
    ("listed", listed_router, frames)
}

fn policed() -> World {
    let router = || {
        let mut router = Router::default();
        policer::attach(&mut router, WEST, Feature::PoliceIn, 8_000, 3_500);
        policer::attach(&mut router, EAST, Feature::PoliceOut, 8_000, 2_500);
        router
    };
    ("policed", router, vec![(WEST, udp4("10.0.2.2", 1000)); 5])
}

fn looked_at() -> World {
    let mut frames: Vec<_> = ["10.0.2.2", "10.0.3.2"]
        .map(|to| (WEST, udp4(to, 1000)))
        .to_vec();
    frames.push((
        WEST,
        build::udp4(
            &Ends {
                source: ip("10.0.3.9"),
                ..through("10.0.2.2")
            },
            &bytes(1000),
        ),
    ));
    frames.push((WEST, udp6("2001:db8:2::2", 1000)));
    frames.push((
        WEST,
        build::udp6(
            &Ends6 {
                source: ip6("2001:db8:3::9"),
                ..through6("2001:db8:2::2")
            },
            &bytes(1000),
        ),
    ));
    ("looked at", || urpf::looking(ReversePath::Strict), frames)
}

fn paths_router() -> Router {
    let mut router = Router::with_labels(Setup::default());
    pseudowire::add(&mut router);
    router
}

fn wired() -> World {
    let inner = frame(
        MacAddr([2, 9, 9, 9, 9, 2]),
        MacAddr([2, 9, 9, 9, 9, 1]),
        1000,
    );
    let tagged = build::tagged(&inner, 7, 5);
    let word = [0u8; 4];
    let frames = vec![
        (LEFT, inner.clone()),
        (LEFT, tagged.clone()),
        (
            LEFT,
            frame(MacAddr::BROADCAST, MacAddr([2, 9, 9, 9, 9, 1]), 1000),
        ),
        (
            LEFT,
            frame(
                MacAddr([2, 9, 9, 9, 9, 2]),
                MacAddr([2, 9, 9, 9, 9, 1]),
                1490,
            ),
        ),
        (
            WEST,
            pseudowire::from_west(&[(600, 0, 9)], &[&word, &inner]),
        ),
        (
            WEST,
            pseudowire::from_west(&[(600, 0, 9)], &[&[0x10, 0, 0, 0], &inner]),
        ),
        (WEST, pseudowire::from_west(&[(601, 0, 9)], &[&tagged])),
        (WEST, pseudowire::from_west(&[(601, 0, 9)], &[&inner])),
    ];
    ("wired", paths_router, frames)
}

fn tunnels_router() -> Router {
    let mut router = Router::with_mtu(9200);
    vxlan::add(&mut router);
    router
}

fn tunnelled() -> World {
    let inner = vxlan::inner(1, 1000);
    (
        "tunnelled",
        tunnels_router,
        vec![
            (vxlan::PORT4, inner.clone()),
            (vxlan::PORT6, inner.clone()),
            (WEST, vxlan::from_far(&inner)),
        ],
    )
}

fn tags_router() -> Router {
    let mut router = Router::default();
    router.add_sub_interfaces(&[
        (SubInterface::new(WEST, vlan::dot1q(100)), Input::Routed),
        (
            SubInterface::new(WEST, vlan::dot1q(200)),
            Input::CrossConnect(EAST),
        ),
        (
            SubInterface::new(SOUTH, vlan::double(true, 7, 8)),
            Input::Routed,
        ),
    ]);
    router.connect_sub_interface(vlan::FIRST, "10.0.20.1/24", "10.0.20.2");
    router.connect_sub_interface(vlan::FIRST + 2, "10.0.21.1/24", "10.0.21.2");
    router
}

fn tagged() -> World {
    let out = udp4("10.0.21.2", 1000);
    let too_long = build::tagged(
        &frame(MacAddr([2; 6]), MacAddr([2, 2, 2, 2, 2, 1]), 1501),
        200,
        3,
    );
    let frames = vec![
        (WEST, build::tagged(&out, 100, 3)),
        (WEST, build::tagged(&udp4("10.0.20.1", 1000), 100, 3)),
        (
            WEST,
            build::tagged(
                &frame(MacAddr([2; 6]), MacAddr([2, 2, 2, 2, 2, 1]), 1000),
                200,
                3,
            ),
        ),
        (WEST, too_long),
        (WEST, build::tagged(&out, 300, 3)),
        (WEST, build::tagged(&out, 0, 3)),
        (
            EAST,
            build::udp4(
                &Ends {
                    destination_mac: our_mac(EAST),
                    source: ip("10.0.2.2"),
                    ..through("10.0.20.2")
                },
                &bytes(1000),
            ),
        ),
    ];
    ("tagged", tags_router, frames)
}

fn bonds_router() -> Router {
    let mut router = Router::default();
    bond::add(&mut router);
    router
}

fn bonded() -> World {
    let mut slow = frame(weir_wire::lacp::MULTICAST, their_mac(40, 2), 1000);
    slow[12..15].copy_from_slice(&[0x88, 0x09, 1]);
    let frames = vec![
        (bond::A, build::udp4(&bond::up("10.0.2.2", 5), &bytes(1000))),
        (WEST, udp4("10.0.40.2", 1000)),
        (bond::A, slow),
    ];
    ("bonded", bonds_router, frames)
}

fn bridged() -> World {
    let (a, b) = (bridge::FIRST, bridge::FIRST + 1);
    let frames = vec![
        (
            a,
            frame(
                MacAddr([2, 7, 7, 7, 7, 2]),
                MacAddr([2, 7, 7, 7, 7, 1]),
                1000,
            ),
        ),
        (
            b,
            frame(MacAddr::BROADCAST, MacAddr([2, 7, 7, 7, 7, 2]), 1000),
        ),
        (
            a,
            frame(
                MacAddr([2, 7, 7, 7, 7, 2]),
                MacAddr([2, 7, 7, 7, 7, 1]),
                1400,
            ),
        ),
        (
            b,
            frame(
                MacAddr([2, 7, 7, 7, 7, 1]),
                MacAddr([2, 7, 7, 7, 7, 2]),
                1501,
            ),
        ),
        (
            a,
            build::udp4(&bridge::from_inside("10.0.2.2"), &bytes(1000)),
        ),
        (
            a,
            build::echo4(
                &bridge::from_inside("10.0.20.1"),
                build::ECHO_REQUEST,
                1,
                2,
                &bytes(1000),
            ),
        ),
        (WEST, udp4("10.0.20.2", 1000)),
    ];
    ("bridged", || bridge::routed_side(|_| {}), frames)
}

/// A drop: node, reason, interface, how many.
type Dropped = (&'static str, DropReason, u32, u64);

/// What left, what was dropped, and which nodes saw packets, of frames in chunks of at most so many bytes.
fn outcome(world: &World, most: usize) -> (Vec<Sent>, Vec<Dropped>, BTreeSet<&'static str>) {
    let (mut router, mut sent) = ((world.1)(), Vec::new());
    for (interface, frame) in &world.2 {
        let mut vector = Vector::default();
        vector.push(router.packet_cut(frame, most.min(weir_buf::DATA_ROOM)));
        router.now += SECOND / 100;
        let mut left = router.send_vector(*interface, &mut vector);
        // Copies have no order.
        left.sort();
        sent.extend(left);
    }
    router.give_up(DropReason::HostUnreachable);
    let counters = router.graph.counters();
    let specs = router.graph.specs().iter().zip(&counters.nodes);
    let seen = specs
        .filter(|(_, node)| node.packets.get() > 0)
        .map(|(spec, _)| spec.name)
        .collect();
    (sent, router.drops(), seen)
}

#[test]
fn every_node_takes_chains_as_it_takes_whole_packets() {
    let worlds = [
        routed(),
        asked(),
        listed(),
        policed(),
        looked_at(),
        wired(),
        tunnelled(),
        tagged(),
        bonded(),
        bridged(),
    ];
    let mut seen = BTreeSet::new();
    for world in &worlds {
        let (sent, drops, _) = outcome(world, usize::MAX);
        assert!(
            sent.len() > world.2.len() / 5,
            "{}: {} left: {drops:?}",
            world.0,
            sent.len()
        );
        for most in [150, 333, 700] {
            let (chained, dropped, nodes) = outcome(world, most);
            if world.0 != "asked" {
                assert_eq!(dropped, drops, "{} in chunks of {most}", world.0);
            }
            assert_eq!(
                chained.len(),
                sent.len(),
                "{} in chunks of {most}: {dropped:?}",
                world.0
            );
            let other = chained
                .iter()
                .zip(&sent)
                .position(|(one, other)| one != other);
            assert_eq!(
                other, None,
                "{} in chunks of {most}: this one of the frames that left",
                world.0
            );
            seen.extend(nodes);
        }
    }
    let router = Router::default();
    let missed: Vec<_> = router
        .graph
        .specs()
        .iter()
        .map(|spec| spec.name)
        // A frame for Linux leaves as it is, and `linux.rs` sends chains there.
        .filter(|name| !seen.contains(name) && !["port-tx", "linux-punt"].contains(name))
        .collect();
    assert!(missed.is_empty(), "no chain came to {missed:?}");
}
