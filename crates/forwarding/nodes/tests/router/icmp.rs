//! ICMP: what this router answers and, as important, what it keeps silent about.

use weir_graph::DropReason;
use weir_nodes::IcmpLimit;
use weir_wire::build::{self, Ends};
use weir_wire::{IpProtocol, MacAddr};

use crate::forward::{alter, with_options};
use crate::rig::*;
use crate::sight;

/// A packet, and the kind and code of the error that it deserves.
fn offenders() -> Vec<(Vec<u8>, u8, u8)> {
    let mut too_long = build::udp4(&through("10.0.2.2"), &[5; 1400]);
    alter(&mut too_long, |header| header.set_dont_fragment(true));
    let mut unspoken = build::udp4(&through("10.0.3.1"), &[5; 40]);
    alter(&mut unspoken, |header| header.set_protocol(IpProtocol(47)));
    vec![
        (build::udp4(&through("8.8.8.8"), &[5; 40]), 3, 0),
        (build::udp4(&through("198.19.1.1"), &[5; 40]), 3, 1),
        (build::udp4(&through("198.18.1.1"), &[5; 40]), 3, 1),
        (build::udp4(&through("198.18.2.1"), &[5; 40]), 3, 13),
        (unspoken, 3, 2),
        (build::udp4(&through("10.0.1.1"), &[5; 40]), 3, 3),
        (build::tcp4(&through("10.0.2.1"), 2, &[5; 40]), 3, 3),
        (too_long, 3, 4),
        (
            build::udp4(
                &Ends {
                    ttl: 1,
                    ..through("10.0.2.2")
                },
                &[5; 40],
            ),
            11,
            0,
        ),
        (
            build::udp4(
                &Ends {
                    ttl: 0,
                    ..through("10.0.2.2")
                },
                &[5; 40],
            ),
            11,
            0,
        ),
        (
            build::echo4(
                &Ends {
                    ttl: 1,
                    ..through("192.168.9.9")
                },
                8,
                1,
                1,
                &[5; 900],
            ),
            11,
            0,
        ),
    ]
}

#[test]
fn every_own_address_answers_an_echo() {
    let mut router = Router::default();
    for target in ["10.0.1.1", "10.0.11.1", "10.0.2.1", "10.0.3.1"] {
        for (size, ttl) in [(0, 64), (1, 1), (56, 255), (1399, 0)] {
            let frame = build::echo4(
                &Ends {
                    ttl,
                    ..through(target)
                },
                build::ECHO_REQUEST,
                77,
                3,
                &vec![0xab; size],
            );
            let (interface, got) = router.send_one(WEST, &frame);
            let icmp = sight::icmp(&got);
            assert_eq!(
                (interface, icmp.kind, icmp.code, icmp.argument),
                (WEST, 0, 0, 77 << 16 | 3)
            );
            assert_eq!(
                (icmp.source, icmp.destination, icmp.ttl),
                (ip(target), ip("10.0.1.2"), 64)
            );
            assert_eq!(icmp.quote, vec![0xab; size]);
            assert!(got.starts_with(&their_mac(1, 2).0) && got[6..].starts_with(&our_mac(WEST).0));
        }
    }
    assert!(router.drops().is_empty());
}

#[test]
fn an_echo_reply_goes_by_the_route_and_waits_for_its_neighbour() {
    let mut router = Router::default();
    let far = Ends {
        source: ip("192.168.4.4"),
        ..through("10.0.1.1")
    };
    let (interface, got) = router.send_one(WEST, &build::echo4(&far, 8, 1, 1, &[]));
    assert_eq!(
        (interface, sight::icmp(&got).destination),
        (EAST, ip("192.168.4.4"))
    );
    let unknown = Ends {
        source: ip("10.0.3.50"),
        ..through("10.0.1.1")
    };
    let (interface, got) = router.send_one(WEST, &build::echo4(&unknown, 8, 1, 1, &[]));
    assert_eq!(
        (interface, &got[12..14], router.graph.held()),
        (SOUTH, &[8, 6][..], 1)
    );
}

#[test]
fn other_icmp_for_this_router_is_taken_or_counted() {
    let mut router = Router::default();
    let good = build::echo4(&through("10.0.1.1"), 8, 1, 1, &[1; 30]);
    let mut bad = good.clone();
    bad[40] ^= 1;
    assert!(router.send(WEST, &bad).is_empty());
    assert_eq!(router.dropped(DropReason::IcmpBadChecksum), 1);
    for (kind, taken) in [
        (0, true),
        (3, true),
        (11, true),
        (12, true),
        (5, false),
        (13, false),
        (17, false),
        (200, false),
    ] {
        let before = router.graph.counters().totals.consumed.get();
        assert!(
            router
                .send(WEST, &build::echo4(&through("10.0.1.1"), kind, 1, 1, &[]))
                .is_empty()
        );
        assert_eq!(
            router.graph.counters().totals.consumed.get() - before,
            u64::from(taken),
            "type {kind}"
        );
    }
    assert_eq!(router.dropped(DropReason::IcmpUnsupported), 4);
}

#[test]
fn each_error_quotes_its_packet_from_the_right_address() {
    let mut router = Router::with_mtu(1000);
    let mut identifications = Vec::new();
    for (frame, kind, code) in offenders() {
        let (interface, got) = router.send_one(WEST, &frame);
        let icmp = sight::icmp(&got);
        assert_eq!((interface, icmp.kind, icmp.code), (WEST, kind, code));
        // What was for an own address is answered from there.
        let source = if matches!((kind, code), (3, 2 | 3)) {
            sight::header(&frame).destination()
        } else {
            ip("10.0.1.1")
        };
        assert_eq!(
            (icmp.source, icmp.destination, icmp.ttl),
            (source, ip("10.0.1.2"), 64)
        );
        assert_eq!(icmp.argument, if code == 4 { 1000 } else { 0 });
        let quoted = (frame.len() - 14).min(576 - 28);
        assert_eq!(
            icmp.quote,
            frame[14..14 + quoted],
            "the packet as it came in"
        );
        assert!(icmp.total <= 576 && got.starts_with(&their_mac(1, 2).0));
        // RFC 1812 section 4.3.2.5, and RFC 6864 section 4.3, since the message may be fragmented.
        let header = sight::header(&got);
        assert_eq!((header.tos, header.dont_fragment()), (0xc0, false));
        identifications.push(header.identification());
    }
    let totals = &router.graph.counters().totals;
    assert_eq!((totals.originated.get(), totals.dropped.get()), (11, 11));
    identifications.sort_unstable();
    identifications.dedup();
    assert_eq!(identifications.len(), 11, "each has its own");
}

#[test]
fn what_arrives_broken_is_not_answered() {
    let mut router = Router::default();
    let udp = build::udp4(&through("10.0.1.1"), &[5; 40]);
    let mut broken = udp.clone();
    broken[60] ^= 1;
    assert!(router.send(WEST, &broken).is_empty());
    assert_eq!(router.dropped(DropReason::UdpBadChecksum), 1);
    // No checksum is none that is wrong (RFC 768).
    let mut without = udp.clone();
    without[40..42].fill(0);
    assert_eq!(sight::icmp(&router.send_one(WEST, &without).1).code, 3);
    let mut tcp = build::tcp4(&through("10.0.1.1"), 2, &[5; 40]);
    tcp[60] ^= 1;
    assert!(router.send(WEST, &tcp).is_empty());
    assert_eq!(router.dropped(DropReason::TcpBadChecksum), 1);
    // Lengths of the UDP header beyond, below and less than the packet.
    for length in [49_u16, 7, 0, 47] {
        let mut wrong = udp.clone();
        wrong[38..40].copy_from_slice(&length.to_be_bytes());
        assert!(router.send(WEST, &wrong).is_empty(), "{length}");
    }
    assert_eq!(router.dropped(DropReason::LocalTruncated), 4);
}

#[test]
fn malformed_options_are_answered_and_source_routes_are_not() {
    let mut router = Router::default();
    let plain = build::udp4(&through("10.0.2.2"), &[5; 40]);
    for (options, octet) in [
        (&[1, 7, 9, 4][..], 22),
        (&[7, 3, 3, 0], 22),
        (&[7, 3, 1, 0], 22),
        (&[68, 2, 0, 0], 21),
        (&[1, 1, 1, 148], 23),
    ] {
        let frame = with_options(&plain, options);
        let (interface, got) = router.send_one(WEST, &frame);
        let icmp = sight::icmp(&got);
        assert_eq!(
            (interface, icmp.kind, icmp.code, icmp.argument),
            (WEST, 12, 0, octet << 24),
            "{options:?}"
        );
        assert_eq!(icmp.quote, frame[14..]);
    }
    assert_eq!(router.dropped(DropReason::Ip4BadOption), 5);
    let route = with_options(&plain, &[137, 7, 4, 10, 0, 3, 2, 0]);
    assert!(router.send(WEST, &route).is_empty());
    assert_eq!(router.dropped(DropReason::Ip4SourceRoute), 1);
    router.tables.source_routes = true;
    let (interface, got) = router.send_one(WEST, &route);
    assert_eq!(interface, EAST, "by its destination");
    assert_eq!(got[34..42], route[34..42], "the option is as it was");
    // Record route and timestamp pass as they are.
    for options in [&[7, 7, 4, 0, 0, 0, 0, 0][..], &[68, 8, 5, 0, 0, 0, 0, 0]] {
        let (interface, got) = router.send_one(WEST, &with_options(&plain, options));
        assert_eq!((interface, &got[34..42]), (EAST, options));
    }
}

#[test]
fn a_route_whose_next_hops_are_down_is_distinguished_from_none() {
    let mut router = Router::default();
    let east = router.adjacency_of("10.0.2.2");
    router.nexthops.set_up(east, false);
    router.publish();
    let (interface, got) = router.send_one(WEST, &build::udp4(&through("192.168.1.1"), &[]));
    let icmp = sight::icmp(&got);
    assert_eq!((interface, icmp.kind, icmp.code), (WEST, 3, 0));
    assert_eq!(
        [DropReason::NoNextHop, DropReason::NoRoute].map(|reason| router.dropped(reason)),
        [1, 0]
    );
}

#[test]
fn quotes_are_never_longer_than_the_packet_and_never_of_padding() {
    let mut router = Router::default();
    for size in [0, 1, 17, 18, 500, 519, 520, 521, 522, 1400] {
        for options in [0, 4, 40] {
            let frame = with_options(
                &build::udp4(&through("8.8.8.8"), &vec![5; size]),
                &vec![1; options],
            );
            let mut padded = frame.clone();
            padded.resize(frame.len().max(60), 0xee);
            let icmp = sight::icmp(&router.send_one(WEST, &padded).1);
            assert_eq!(icmp.quote, frame[14..14 + (frame.len() - 14).min(548)]);
        }
    }
}

#[test]
fn the_source_is_the_address_nearest_to_the_sender() {
    let mut router = Router::default();
    router.neighbor(WEST, "10.0.11.9", 1500);
    router.publish();
    for (sender, speaks) in [
        ("10.0.1.2", "10.0.1.1"),
        ("10.0.11.9", "10.0.11.1"),
        ("192.168.5.5", "10.0.1.1"),
    ] {
        let frame = build::udp4(
            &Ends {
                ttl: 1,
                source: ip(sender),
                ..through("10.0.2.2")
            },
            &[],
        );
        assert_eq!(
            sight::icmp(&router.send_one(WEST, &frame).1).source,
            ip(speaks)
        );
    }
    // From the other side the router shows its other address: what a traceroute prints.
    let back = Ends {
        source: ip("10.0.2.2"),
        destination_mac: our_mac(EAST),
        ttl: 1,
        ..through("10.0.1.2")
    };
    assert_eq!(
        sight::icmp(&router.send_one(EAST, &build::udp4(&back, &[])).1).source,
        ip("10.0.2.1")
    );
}

/// An interface that has no IPv4 address forwards by IPv6 next hops (RFC 8950), and tells as any other does.
#[test]
fn without_an_address_of_its_own_an_interface_speaks_by_another() {
    let mut router = Router::default();
    let expiring = |source| {
        build::udp4(
            &Ends {
                ttl: 1,
                source: ip(source),
                ..through("10.0.3.2")
            },
            &[],
        )
    };
    router.change(WEST, |interface| interface.addresses = [].into());
    // The nearest to the sender, though another one comes first.
    for (sender, speaks) in [("192.168.5.5", "10.0.2.1"), ("10.0.3.2", "10.0.3.1")] {
        assert_eq!(
            sight::icmp(&router.send_one(WEST, &expiring(sender)).1).source,
            ip(speaks)
        );
    }
    // A loopback's address before others.
    router.change(MUTE, |interface| {
        interface.kind = weir_port::interface::Kind::Loopback
    });
    assert_eq!(
        sight::icmp(&router.send_one(WEST, &expiring("192.168.5.5")).1).source,
        ip("10.0.8.1")
    );
    router.change(MUTE, |interface| {
        interface.kind = weir_port::interface::Kind::Port
    });
    // None at all: RFC 7600 section 4.8.
    (EAST..=MUTE)
        .for_each(|index| router.change(index, |interface| interface.addresses = [].into()));
    assert_eq!(
        sight::icmp(&router.send_one(WEST, &expiring("192.168.5.5")).1).source,
        ip("192.0.0.8")
    );
}

#[test]
fn what_was_for_an_own_address_is_answered_from_there() {
    let mut router = Router::default();
    for own in ["10.0.1.1", "10.0.11.1", "10.0.2.1", "10.0.3.1"] {
        assert_eq!(
            sight::icmp(&router.send_one(WEST, &build::udp4(&through(own), &[])).1).source,
            ip(own)
        );
    }
}

/// RFC 1812 section 5.3.1: the time to live is looked at before anybody is asked for.
#[test]
fn nobody_is_asked_for_on_behalf_of_a_last_hop() {
    let mut router = Router::default();
    for destination in ["10.0.2.77", "198.19.0.1", "198.19.1.1"] {
        let (interface, got) = router.send_one(
            WEST,
            &build::udp4(
                &Ends {
                    ttl: 1,
                    ..through(destination)
                },
                &[],
            ),
        );
        assert_eq!(
            (interface, sight::icmp(&got).kind),
            (WEST, 11),
            "{destination}"
        );
    }
    assert_eq!(
        (router.graph.held(), router.dropped(DropReason::TtlExpired)),
        (0, 3)
    );
    assert!(router.events().is_empty());
}

#[test]
fn silence_where_the_rfc_demands_it() {
    let mut router = Router::with_mtu(1000);
    let (drops, mut sent) = (router.graph.counters(), 0);
    let mut silent = |router: &mut Router, frame: &[u8], why: &str| {
        assert!(router.send(WEST, frame).is_empty(), "{why}");
        sent += 1;
    };
    for (frame, kind, code) in offenders() {
        let why = |what: &str| format!("{what}: {kind}/{code}");
        let mut later = frame.clone();
        alter(&mut later, |header| header.set_fragment(5, true));
        silent(&mut router, &later, &why("later fragment"));
        for source in [
            "0.0.0.0",
            "127.0.0.1",
            "224.0.0.5",
            "255.255.255.255",
            "10.0.1.255",
            "240.1.1.1",
            "0.1.2.3",
            "10.0.2.255",
        ] {
            let mut odd = frame.clone();
            alter(&mut odd, |header| header.set_source(ip(source)));
            silent(&mut router, &odd, &why(source));
        }
        for group in [MacAddr::BROADCAST, MacAddr([1, 0, 0x5e, 0, 0, 1])] {
            let mut cast = frame.clone();
            cast[..6].copy_from_slice(&group.0);
            silent(&mut router, &cast, &why("link-layer group"));
        }
        for destination in [
            "224.0.0.1",
            "239.1.2.3",
            "255.255.255.255",
            "10.0.2.255",
            "10.0.1.255",
            "127.0.0.1",
            "240.0.0.1",
        ] {
            let mut cast = frame.clone();
            alter(&mut cast, |header| header.set_destination(ip(destination)));
            silent(&mut router, &cast, &why(destination));
        }
    }
    for kind in [3, 4, 5, 11, 12] {
        for destination in ["8.8.8.8", "198.19.1.1"] {
            silent(
                &mut router,
                &build::echo4(&through(destination), kind, 0, 0, &[1; 40]),
                "an ICMP error",
            );
        }
        silent(
            &mut router,
            &build::echo4(
                &Ends {
                    ttl: 1,
                    ..through("10.0.2.2")
                },
                kind,
                0,
                0,
                &[1; 40],
            ),
            "an ICMP error",
        );
    }
    assert!(router.drops().iter().all(|drop| drop.2 == WEST));
    let lost: u64 = drops.totals.dropped.get() + drops.totals.consumed.get();
    assert_eq!(lost, sent + drops.totals.originated.get());
}

#[test]
fn each_kind_has_a_budget_of_its_own() {
    let icmp = IcmpLimit { rate: 10, burst: 5 };
    let mut router = Router::new(Setup {
        icmp,
        mtu: 1000,
        ..Setup::default()
    });
    let mut kinds = offenders();
    kinds.dedup_by_key(|offender| (offender.1, offender.2));
    for (frame, kind, code) in &kinds {
        assert_eq!(
            router.send_all(WEST, &vec![frame.clone(); 20]).len(),
            5,
            "{kind}/{code}"
        );
    }
    router.now += SECOND / 10 * 3;
    for (frame, ..) in &kinds {
        assert_eq!(
            router.send_all(WEST, &vec![frame.clone(); 20]).len(),
            3,
            "ten a second"
        );
    }
    router.now += 100 * SECOND;
    assert_eq!(
        router.send_all(WEST, &vec![kinds[0].0.clone(); 20]).len(),
        5,
        "no more than the burst is saved up"
    );
    // Whoever is not answered costs nobody's budget.
    let mut later = kinds[0].0.clone();
    alter(&mut later, |header| header.set_fragment(5, true));
    router.now += 100 * SECOND;
    assert!(router.send_all(WEST, &vec![later; 20]).is_empty());
    assert_eq!(
        router.send_all(WEST, &vec![kinds[0].0.clone(); 20]).len(),
        5
    );
}

#[test]
fn an_empty_pool_only_costs_the_message() {
    let mut router = Router::default();
    router.starve(1);
    assert!(
        router
            .send(WEST, &build::udp4(&through("8.8.8.8"), &[]))
            .is_empty()
    );
    assert_eq!(
        router.drops(),
        [("icmp4-error", DropReason::NoRoute, WEST, 1)]
    );
}
