//! Reverse path forwarding: who comes from where a route leads back passes, everybody else is dropped and counted.

use weir_fib::Adjacency;
use weir_graph::DropReason;
use weir_port::interface::{Feature, ReversePath};
use weir_wire::build::{self, Ends, Ends6};

use crate::ip6::{alter6, with_extensions};
use crate::rig::*;
use crate::{forward, nd, sight};

/// A router whose interface `west` looks at the way back.
pub(crate) fn looking(mode: ReversePath) -> Router {
    let mut router = Router::default();
    look(&mut router, WEST, Some(mode));
    router
}

fn look(router: &mut Router, interface: u32, mode: Option<ReversePath>) {
    router.change(interface, |it| {
        it.urpf = mode;
        it.features = if mode.is_some() {
            it.features.with(Feature::Urpf)
        } else {
            Default::default()
        };
    });
}

fn from4(source: &str) -> Vec<u8> {
    build::udp4(
        &Ends {
            source: ip(source),
            ..through("10.0.2.2")
        },
        &[1; 40],
    )
}

fn from6(source: &str) -> Vec<u8> {
    build::udp6(
        &Ends6 {
            source: ip6(source),
            ..through6("2001:db8:2::2")
        },
        &[1; 40],
    )
}

/// Where packets come from, and whether they pass on `west` loosely and strictly. Own addresses end at ip4-input already.
const FOUR: [(&str, bool, bool); 8] = [
    ("10.0.1.2", true, true),
    // Nobody knows it yet, but it is of a connected subnet.
    ("10.0.1.200", true, true),
    ("10.0.11.9", true, true),
    ("10.0.2.2", true, false),
    ("192.168.7.7", true, false),
    // One of two paths, neither of them here.
    ("172.16.0.1", true, false),
    // No route, a blackhole.
    ("8.8.8.8", false, false),
    ("198.18.0.1", false, false),
];

const SIX: [(&str, bool, bool); 7] = [
    ("2001:db8:1::2", true, true),
    ("2001:db8:1::200", true, true),
    ("2001:db8:2::2", true, false),
    ("2001:db8:a::7", true, false),
    ("2001:db8:b::7", true, false),
    ("2001:db8:ffff::1", false, false),
    ("2001:db8:c::1", false, false),
];

#[test]
fn what_has_a_way_back_passes_and_nothing_else() {
    for (mode, strict) in [(ReversePath::Loose, false), (ReversePath::Strict, true)] {
        let mut router = looking(mode);
        let rows = FOUR
            .iter()
            .map(|row| (from4(row.0), row))
            .chain(SIX.iter().map(|row| (from6(row.0), row)));
        for (frame, &(source, loosely, strictly)) in rows {
            let before = router.dropped(DropReason::Urpf);
            let sent = router.send(WEST, &frame);
            let passes = if strict { strictly } else { loosely };
            assert_eq!(
                (sent.len() == 1, router.dropped(DropReason::Urpf) - before),
                (passes, u64::from(!passes)),
                "{mode:?} {source}"
            );
        }
        // On other interfaces nobody looks.
        let frame = build::udp4(
            &Ends {
                destination_mac: our_mac(SOUTH),
                source: ip("8.8.8.8"),
                ..through("10.0.2.2")
            },
            &[],
        );
        assert_eq!(router.send(SOUTH, &frame).len(), 1);
    }
}

#[test]
fn vectors_are_sorted_packet_by_packet() {
    let mut router = looking(ReversePath::Strict);
    let frames: Vec<_> = FOUR
        .iter()
        .chain(&FOUR)
        .map(|row| from4(row.0))
        .chain(SIX.iter().map(|row| from6(row.0)))
        .collect();
    let passing =
        2 * FOUR.iter().filter(|row| row.2).count() + SIX.iter().filter(|row| row.2).count();
    let sent = router.send_all(WEST, &frames);
    assert_eq!(
        (sent.len(), router.dropped(DropReason::Urpf) as usize),
        (passing, frames.len() - passing)
    );
    let nodes: Vec<_> = router.drops().iter().map(|drop| drop.0).collect();
    assert_eq!(nodes, ["ip4-urpf", "ip6-urpf"]);
}

#[test]
fn each_path_back_counts_and_a_default_route_is_one_loosely() {
    let mut router = Router::default();
    for interface in [EAST, SOUTH] {
        look(&mut router, interface, Some(ReversePath::Strict));
        let by = |destination| Ends {
            destination_mac: our_mac(interface),
            source: ip("172.16.0.1"),
            ..through(destination)
        };
        assert_eq!(
            router
                .send(interface, &build::udp4(&by("10.0.1.2"), &[]))
                .len(),
            1,
            "both paths of 172.16.0.0/16 lead back"
        );
    }
    let east = router.adjacency_of("10.0.2.2");
    let mut router = looking(ReversePath::Loose);
    assert!(router.send(WEST, &from4("8.8.8.8")).is_empty());
    router.route("0.0.0.0/0".parse().unwrap(), &[(east, 1)]);
    router.publish();
    assert_eq!(router.send(WEST, &from4("8.8.8.8")).len(), 1);
    // RFC 5635: a route that drops is no way back.
    for end in [
        Adjacency::blackhole(),
        Adjacency::rejected(),
        Adjacency::prohibited(),
    ] {
        let nowhere = router.nexthops.add_adjacency(end);
        router.route("8.8.8.8/32".parse().unwrap(), &[(nowhere, 1)]);
        router.publish();
        assert!(router.send(WEST, &from4("8.8.8.8")).is_empty());
    }
    assert_eq!(router.dropped(DropReason::Urpf), 4);
}

#[test]
fn odd_packets_are_looked_at_too() {
    let mut router = looking(ReversePath::Strict);
    let odd = |source| forward::with_options(&from4(source), &[1; 8]);
    assert_eq!(router.send(WEST, &odd("10.0.1.2")).len(), 1);
    assert!(router.send(WEST, &odd("8.8.8.8")).is_empty());
    let mut empty = from6("2001:db8:ffff::1");
    alter6(&mut empty, |header| header.set_payload_len(0));
    assert!(router.send(WEST, &empty).is_empty());
    let spoofed = build::echo4(
        &Ends {
            source: ip("8.8.8.8"),
            ..through("10.0.1.1")
        },
        8,
        1,
        1,
        &[],
    );
    assert!(
        router.send(WEST, &spoofed).is_empty(),
        "for the router itself, too"
    );
    assert_eq!(router.dropped(DropReason::Urpf), 3);
}

#[test]
fn links_go_on_working_where_sources_are_looked_at() {
    let mut router = looking(ReversePath::Strict);
    // Duplicate address detection comes from nobody, discovery and DHCPv6 from link-local addresses, to groups or not.
    for (source, target) in [
        ("::", "2001:db8:1::dad"),
        ("fe80::42", "2001:db8:1::1"),
        ("2001:db8:1::7", "2001:db8:1::1"),
    ] {
        router.send(WEST, &nd::solicitation(source, target));
    }
    let echo = build::echo6(
        &Ends6 {
            source: ip6("fe80::42"),
            ..through6("2001:db8:1::1")
        },
        128,
        1,
        1,
        &[],
    );
    assert_eq!(sight::icmp6(&router.send_one(WEST, &echo).1).kind, 129);
    let options = with_extensions(
        &echo,
        weir_wire::IpProtocol::DESTINATION_OPTIONS,
        &[58, 0, 1, 4, 0, 0, 0, 0],
    );
    assert_eq!(router.send(WEST, &options).len(), 1);
    assert_eq!(router.dropped(DropReason::Urpf), 0, "{:?}", router.drops());
}

#[test]
fn lists_come_before_the_way_back() {
    let mut router = looking(ReversePath::Loose);
    crate::acl::bind(
        &mut router,
        WEST,
        Feature::AclIn,
        vec![crate::acl::from(weir_acl::Action::Permit, "0.0.0.0/0")],
    );
    look(&mut router, WEST, Some(ReversePath::Loose));
    assert_eq!(router.send(WEST, &from4("10.0.1.2")).len(), 1);
    assert!(router.send(WEST, &from4("8.8.8.8")).is_empty());
    assert!(router.send(WEST, &from6("2001:db8:ffff::1")).is_empty());
    let drops: Vec<_> = router.drops().iter().map(|drop| (drop.0, drop.1)).collect();
    assert!(drops.contains(&("ip4-urpf", DropReason::Urpf)), "{drops:?}");
}
