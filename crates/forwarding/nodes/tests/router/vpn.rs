//! The edge of a provider's VPN: a label leads to a table of its own, with own addresses, routes and errors.
//!
//! ```text
//! west (labels taken, table 0)      120 ► looked up in table 1, pipe      121 ► looked up in table 0, pipe
//! south (table 1)                   10.99.0.0/16 and 2001:db8:99::/48 by south, 10.0.3.2 and 2001:db8:3::2
//! ```
//!
//! 10.0.3.1 and 2001:db8:3::1 are own addresses in table 1 and in no other.

use weir_acl::Action;
use weir_fib::{Adjacency, Fib4Writer, Fib6Writer, Group, LabelEntry, Path, Payload, TtlMode};
use weir_graph::DropReason;
use weir_port::interface::{Feature, ReversePath};
use weir_ring::qsbr::Domain;
use weir_wire::build::{self, Ends, Ends6};
use weir_wire::{EthernetHeader, MacAddr};
use zerocopy::IntoBytes;

use crate::acl::{bind, from};
use crate::forward::with_options;
use crate::ip6::udp6;
use crate::mpls::{icmp_of, under};
use crate::nd;
use crate::rig::*;
use crate::sight;

impl Router {
    pub(crate) fn of_a_provider() -> Router {
        let mut router = Router::with_labels(Setup {
            mtu: 1000,
            ..Setup::default()
        });
        let domain = Domain::new(2);
        let (mut four, mut six) = (
            Fib4Writer::new(&domain).unwrap(),
            Fib6Writer::new(&domain).unwrap(),
        );
        let local = router.nexthops.add_adjacency(Adjacency::local(SOUTH));
        let end = |router: &mut Router, number| {
            router
                .nexthops
                .acquire(Group::new([Path::to(number)]).unwrap())
                .unwrap()
        };
        let by_south = |router: &mut Router, neighbor| {
            let number = router.adjacency_of(neighbor);
            end(router, number)
        };
        let (to4, to6, own) = (
            by_south(&mut router, "10.0.3.2"),
            by_south(&mut router, "2001:db8:3::2"),
            end(&mut router, local),
        );
        four.insert("10.99.0.0/16".parse().unwrap(), to4).unwrap();
        four.insert("10.0.3.1/32".parse().unwrap(), own).unwrap();
        six.insert("2001:db8:99::/48".parse().unwrap(), to6)
            .unwrap();
        six.insert("2001:db8:3::1/128".parse().unwrap(), own)
            .unwrap();
        router.tables.fib4[1] = four.fib().clone();
        router.tables.fib6.push(six.fib().clone());
        for (label, table) in [(120, 1), (121, 0)] {
            let lookup = router.nexthops.add_adjacency(Adjacency::lookup_in(table));
            let group = end(&mut router, lookup);
            router
                .tables
                .lfib
                .set(
                    label,
                    LabelEntry::new(group, TtlMode::Pipe, Payload::Either),
                )
                .unwrap();
        }
        router.change(SOUTH, |south| south.table = 1);
        router.publish();
        router
    }
}

pub(crate) fn four(destination: &str) -> Ends {
    Ends {
        source: ip("10.99.1.9"),
        ..through(destination)
    }
}

pub(crate) fn six(destination: &str) -> Ends6 {
    Ends6 {
        source: ip6("2001:db8:99::9"),
        ..through6(destination)
    }
}

#[test]
fn own_addresses_of_the_table_answer() {
    let mut router = Router::of_a_provider();
    let (interface, got) = router.send_one(
        WEST,
        &under(
            &build::echo4(&four("10.0.3.1"), 8, 1, 2, &[7; 30]),
            &[(120, 0, 9)],
        ),
    );
    let icmp = sight::icmp(&got);
    assert_eq!(
        (interface, icmp.kind, icmp.source, icmp.destination),
        (SOUTH, 0, ip("10.0.3.1"), ip("10.99.1.9"))
    );
    let (interface, got) = router.send_one(
        WEST,
        &under(
            &build::echo6(&six("2001:db8:3::1"), 128, 1, 2, &[7; 30]),
            &[(120, 0, 9)],
        ),
    );
    let icmp = sight::icmp6(&got);
    assert_eq!(
        (interface, icmp.kind, icmp.source, icmp.destination),
        (SOUTH, 129, ip6("2001:db8:3::1"), ip6("2001:db8:99::9"))
    );
    // In the default table they are nobody's.
    for frame in [
        build::udp4(&through("10.0.3.1"), &[]),
        udp6("2001:db8:3::1"),
    ] {
        assert!(
            !router
                .send(WEST, &under(&frame, &[(121, 0, 9)]))
                .iter()
                .any(|sent| sent.0 == SOUTH)
        );
    }
}

#[test]
fn what_is_to_be_reported_goes_by_the_table_and_from_an_address_of_it() {
    let mut router = Router::of_a_provider();
    for (frame, kind, code) in [
        (
            build::udp4(
                &Ends {
                    ttl: 1,
                    ..four("10.99.7.7")
                },
                &[1; 9],
            ),
            11,
            0,
        ),
        (build::udp4(&four("10.77.7.7"), &[1; 9]), 3, 0),
        (build::udp4(&four("10.0.3.1"), &[1; 9]), 3, 3),
        (
            with_options(
                &build::udp4(
                    &Ends {
                        ttl: 1,
                        ..four("10.99.7.7")
                    },
                    &[1; 9],
                ),
                &[1; 4],
            ),
            11,
            0,
        ),
    ] {
        let (interface, got) = router.send_one(WEST, &under(&frame, &[(120, 0, 9)]));
        let icmp = sight::icmp(&got);
        assert_eq!(
            (interface, icmp.kind, icmp.code, icmp.source),
            (SOUTH, kind, code, ip("10.0.3.1"))
        );
        assert_eq!(
            (icmp.destination, icmp.quote),
            (ip("10.99.1.9"), frame[14..].to_vec())
        );
    }
    for (frame, kind, code) in [
        (
            build::udp6(
                &Ends6 {
                    hop_limit: 1,
                    ..six("2001:db8:99::7")
                },
                &[1; 9],
            ),
            3,
            0,
        ),
        (build::udp6(&six("2001:db8:77::7"), &[1; 9]), 1, 0),
        (build::udp6(&six("2001:db8:3::1"), &[1; 9]), 1, 4),
    ] {
        let (interface, got) = router.send_one(WEST, &under(&frame, &[(120, 0, 9)]));
        let icmp = sight::icmp6(&got);
        assert_eq!(
            (interface, icmp.kind, icmp.code, icmp.source),
            (SOUTH, kind, code, ip6("2001:db8:3::1"))
        );
        assert_eq!(
            (icmp.destination, icmp.body),
            (ip6("2001:db8:99::9"), frame[14..].to_vec())
        );
    }
}

/// Whatever the packet looks like, plain or not, of either version.
#[test]
fn lists_and_the_way_back_are_not_asked_for_what_is_under_a_label() {
    let mut router = Router::of_a_provider();
    let met = bind(
        &mut router,
        WEST,
        Feature::AclIn,
        vec![
            from(Action::Deny, "0.0.0.0/0"),
            from(Action::Deny, "10.0.0.0/8"),
        ],
    );
    router.change(WEST, |west| {
        west.urpf = Some(ReversePath::Strict);
        west.features = west.features.with(Feature::Urpf);
    });
    let plain = build::udp4(&four("10.99.7.7"), &[1; 9]);
    for label in [120, 121] {
        let (to4, to6) = if label == 120 {
            ("10.99.7.7", "2001:db8:99::7")
        } else {
            ("10.0.2.2", "2001:db8:2::2")
        };
        let plain = build::udp4(&four(to4), &[1; 9]);
        for frame in [
            plain.clone(),
            with_options(&plain, &[1; 4]),
            build::udp6(&six(to6), &[1; 9]),
        ] {
            let out = router.send_one(WEST, &under(&frame, &[(label, 0, 9)])).0;
            assert_eq!(out, if label == 120 { SOUTH } else { EAST });
        }
    }
    assert_eq!(met.of(0).0 + met.of(1).0, 0);
    assert!(router.send(WEST, &plain).is_empty());
    assert_eq!((met.of(0).0, router.dropped(DropReason::AclDenied)), (1, 1));
}

/// 6PE (RFC 4798): the provider's links know no IPv6. And a label path is no link: what is for one is nobody's.
#[test]
fn ipv6_under_a_label_needs_none_on_the_link_and_is_of_no_link() {
    let mut router = Router::of_a_provider();
    router.change(WEST, |west| {
        (west.addresses6, west.tentative6) = ([].into(), [].into())
    });
    let frame = build::udp6(&six("2001:db8:99::7"), &[1; 9]);
    assert_eq!(
        router.send_one(WEST, &under(&frame, &[(120, 0, 9)])).0,
        SOUTH
    );
    assert!(router.send(WEST, &frame).is_empty());
    assert_eq!(router.dropped(DropReason::Ip6NotEnabled), 1);
    // Who hears that the label's time to live ended here hears it from the table that the label leads to, where the provider's own
    // has no address.
    for index in [WEST, EAST, LEFT, RIGHT, DOWN, BARE, MUTE] {
        router.change(index, |it| {
            (it.addresses, it.addresses6) = ([].into(), [].into())
        });
    }
    let (out, got) = router.send_one(WEST, &under(&frame, &[(120, 0, 1)]));
    assert_eq!(
        (out, sight::icmp6(&got).kind, sight::icmp6(&got).source),
        (SOUTH, 3, ip6("2001:db8:3::1"))
    );
    let (out, got) = router.send_one(
        WEST,
        &under(&build::udp4(&four("10.99.7.7"), &[1; 9]), &[(120, 0, 1)]),
    );
    assert_eq!(
        (out, icmp_of(&got).kind, icmp_of(&got).source),
        (SOUTH, 11, ip("10.0.3.1"))
    );

    let mut router = Router::of_a_provider();
    let labelled = |frame: &[u8]| {
        let mut frame = under(frame, &[(121, 0, 9)]);
        let ethernet = EthernetHeader::new(
            our_mac(WEST),
            MacAddr([2, 0, 0, 1, 1, 7]),
            weir_wire::EtherType::MPLS,
        );
        frame[..14].copy_from_slice(ethernet.as_bytes());
        frame
    };
    let mut unicast = nd::solicitation("2001:db8:1::7", "2001:db8:1::1");
    unicast[38..54].copy_from_slice(&ip6("2001:db8:1::1"));
    for (frame, reason) in [
        (
            nd::advertisement("2001:db8:1::7", "::", true),
            DropReason::Ip6Multicast,
        ),
        (
            nd::solicitation("2001:db8:1::7", "2001:db8:1::1"),
            DropReason::Ip6Multicast,
        ),
        (nd::mended(unicast, |_| {}), DropReason::NdHopLimit),
        (
            nd::advertisement("2001:db8:1::7", "2001:db8:1::1", true),
            DropReason::NdHopLimit,
        ),
        (udp6("fe80::1"), DropReason::Ip6LinkLocal),
        (
            build::udp6(
                &Ends6 {
                    source: ip6("fe80::7"),
                    ..through6("2001:db8:2::2")
                },
                &[],
            ),
            DropReason::Ip6MartianSource,
        ),
        (
            build::udp6(
                &Ends6 {
                    source: ip6("fe80::7"),
                    ..through6("2001:db8:1::1")
                },
                &[],
            ),
            DropReason::Ip6MartianSource,
        ),
    ] {
        let before = router.dropped(reason);
        assert!(
            router.send(WEST, &labelled(&frame)).is_empty(),
            "{reason:?}"
        );
        assert_eq!(
            router.dropped(reason),
            before + 1,
            "{reason:?}: {:?}",
            router.drops()
        );
    }
    assert!(router.events().is_empty());
}
