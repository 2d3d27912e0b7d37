//! ICMPv6: what this router answers and, as important, what it keeps silent about.

use weir_graph::DropReason;
use weir_nodes::IcmpLimit;
use weir_wire::build::{self, Ends6};
use weir_wire::{IpProtocol, MacAddr};

use crate::ip6::{alter6, piece, udp6, with_extensions};
use crate::rig::*;
use crate::sight;

/// A packet, and type, code and argument of the error that it deserves.
fn offenders() -> Vec<(Vec<u8>, u8, u8, u32)> {
    let own = |kind: IpProtocol, extensions: &[u8]| {
        with_extensions(&udp6("2001:db8:1::1"), kind, extensions)
    };
    let mut unspoken = udp6("2001:db8:3::1");
    alter6(&mut unspoken, |header| {
        header.set_next_header(IpProtocol(47))
    });
    let many = [
        &[60, 0, 1, 4, 0, 0, 0, 0].repeat(8)[..],
        &[17, 0, 1, 4, 0, 0, 0, 0],
    ]
    .concat();
    let mut long = vec![0; 520];
    (long[0], long[1]) = (17, 64);
    vec![
        (udp6("2001:db8:ffff::1"), 1, 0, 0),
        (udp6("2001:db8:e::1"), 1, 3, 0),
        (udp6("2001:db8:c1::1"), 1, 0, 0),
        (udp6("2001:db8:c2::1"), 1, 1, 0),
        (udp6("2001:db8:1::1"), 1, 4, 0),
        (
            build::tcp6(&through6("2001:db8:2::1"), 2, &[5; 40]),
            1,
            4,
            0,
        ),
        (udp6("fe80::1"), 1, 4, 0),
        (
            build::udp6(&through6("2001:db8:2::2"), &[5; 1400]),
            2,
            0,
            1300,
        ),
        (
            build::udp6(
                &Ends6 {
                    hop_limit: 1,
                    ..through6("2001:db8:2::2")
                },
                &[5; 40],
            ),
            3,
            0,
            0,
        ),
        (
            build::udp6(
                &Ends6 {
                    hop_limit: 0,
                    ..through6("2001:db8:2::77")
                },
                &[5; 40],
            ),
            3,
            0,
            0,
        ),
        (
            build::echo6(
                &Ends6 {
                    hop_limit: 1,
                    ..through6("2001:db8:a::9")
                },
                128,
                1,
                1,
                &[5; 900],
            ),
            3,
            0,
            0,
        ),
        // RFC 8200 section 4.2: options that are not known, by their two highest bits.
        (
            own(IpProtocol::HOP_BY_HOP, &[17, 0, 1, 0, 0x80, 2, 0, 0]),
            4,
            2,
            44,
        ),
        (
            own(
                IpProtocol::DESTINATION_OPTIONS,
                &[17, 0, 0xfe, 4, 0, 0, 0, 0],
            ),
            4,
            2,
            42,
        ),
        // RFC 5095 and RFC 8200 section 4.4: the pointer is to the routing type.
        (
            own(IpProtocol::ROUTING, &[17, 0, 0, 1, 0, 0, 0, 0]),
            4,
            0,
            42,
        ),
        (
            own(IpProtocol::ROUTING, &[17, 0, 200, 3, 0, 0, 0, 0]),
            4,
            0,
            42,
        ),
        (unspoken, 4, 1, 6),
        (
            own(IpProtocol::DESTINATION_OPTIONS, &[0, 0, 1, 4, 0, 0, 0, 0]),
            4,
            1,
            40,
        ),
        (
            own(
                IpProtocol::FRAGMENT,
                &[44, 0, 0, 0, 0, 0, 0, 1, 17, 0, 0, 0, 0, 0, 0, 1],
            ),
            4,
            0,
            40,
        ),
        (
            own(IpProtocol::DESTINATION_OPTIONS, &many),
            4,
            8,
            40 + 7 * 8,
        ),
        (own(IpProtocol::DESTINATION_OPTIONS, &long), 4, 7, 41),
    ]
}

#[test]
fn every_own_address_answers_an_echo() {
    let mut router = Router::default();
    for target in ["2001:db8:1::1", "2001:db8:2::1", "2001:db8:3::1", "fe80::1"] {
        for (size, hop_limit, sender) in [
            (0, 64, "2001:db8:1::2"),
            (1, 1, "fe80::42"),
            (56, 255, "2001:db8:1::2"),
            (1399, 0, "fe80::42"),
        ] {
            let ends = Ends6 {
                hop_limit,
                source: ip6(sender),
                ..through6(target)
            };
            let frame = build::echo6(&ends, 128, 77, 3, &vec![0xab; size]);
            let (interface, got) = router.send_one(WEST, &frame);
            let icmp = sight::icmp6(&got);
            assert_eq!(
                (interface, icmp.kind, icmp.code, icmp.argument),
                (WEST, 129, 0, 77 << 16 | 3)
            );
            assert_eq!(
                (icmp.source, icmp.destination, icmp.hop_limit),
                (ip6(target), ip6(sender), 64)
            );
            assert_eq!(icmp.body, vec![0xab; size]);
            assert!(got.starts_with(&their_mac(1, 2).0) && got[6..].starts_with(&our_mac(WEST).0));
        }
    }
    assert!(router.drops().is_empty() && router.events().is_empty());
}

#[test]
fn a_link_local_address_answers_on_its_own_link_only() {
    let mut router = Router::default();
    assert!(
        router
            .send(WEST, &build::echo6(&through6("fe80::2"), 128, 1, 1, &[]))
            .is_empty()
    );
    assert_eq!(
        router.drops(),
        [("ip6-input", DropReason::Ip6LinkLocal, WEST, 1)]
    );
}

#[test]
fn groups_and_anycast_addresses_are_answered_by_one_that_speaks() {
    let mut router = Router::default();
    for (group, sender, speaks) in [
        ("ff02::1", "fe80::42", "fe80::1"),
        ("ff02::2", "2001:db8:1::2", "2001:db8:1::1"),
        ("ff02::1:ff00:1", "fe80::42", "fe80::1"),
        ("2001:db8:1::", "2001:db8:1::2", "2001:db8:1::1"),
        ("2001:db8:3::", "2001:db8:1::2", "2001:db8:1::1"),
    ] {
        let mut frame = build::echo6(
            &Ends6 {
                source: ip6(sender),
                ..through6(group)
            },
            128,
            7,
            9,
            &[3; 31],
        );
        if group.starts_with("ff") {
            frame[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 1]);
        }
        let (interface, got) = router.send_one(WEST, &frame);
        let icmp = sight::icmp6(&got);
        assert_eq!(
            (interface, icmp.kind, icmp.source, icmp.destination),
            (WEST, 129, ip6(speaks), ip6(sender)),
            "{group}"
        );
        assert!(got.starts_with(&their_mac(1, 2).0));
    }
    assert_eq!(
        router.interface(WEST).counters.tx().unicast,
        5,
        "an answer to a group is for one"
    );
    // Nothing else that comes to a group is answered.
    for frame in [udp6("ff02::1"), build::tcp6(&through6("ff02::1"), 2, &[])] {
        assert!(router.send(WEST, &frame).is_empty());
    }
    assert_eq!(router.dropped(DropReason::LocalPort), 2);
}

#[test]
fn an_echo_with_extension_headers_is_answered_without_them() {
    let mut router = Router::default();
    let plain = build::echo6(&through6("2001:db8:1::1"), 128, 7, 9, &[3; 31]);
    let chains: [(IpProtocol, &[u8]); 6] = [
        (IpProtocol::HOP_BY_HOP, &[58, 0, 5, 2, 0, 0, 1, 0]),
        (
            IpProtocol::DESTINATION_OPTIONS,
            &[58, 0, 0x1e, 0, 0, 0, 0, 0],
        ),
        (IpProtocol::ROUTING, &[58, 0, 0, 0, 0, 0, 0, 0]),
        (IpProtocol::FRAGMENT, &[58, 0, 0, 0, 0, 0, 0, 9]),
        (
            IpProtocol::AUTHENTICATION,
            &[58, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        (
            IpProtocol::HOP_BY_HOP,
            &[
                60, 0, 1, 4, 0, 0, 0, 0, 58, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            ],
        ),
    ];
    for (kind, chain) in chains {
        let icmp = sight::icmp6(
            &router
                .send_one(WEST, &with_extensions(&plain, kind, chain))
                .1,
        );
        assert_eq!(
            (icmp.kind, icmp.argument, icmp.body),
            (129, 7 << 16 | 9, vec![3; 31])
        );
    }
}

#[test]
fn an_echo_in_several_chunks_is_answered() {
    let mut router = Router::default();
    router.change(WEST, |interface| interface.mtu = 9000);
    let neighbor = router.adjacency_of("2001:db8:1::2");
    let other = router.neighbor6(WEST, "2001:db8:1::2", 9000);
    assert_ne!(neighbor, other);
    router.publish();
    for cut in [255, 600, 2240] {
        let frame = build::echo6(
            &through6("2001:db8:1::1"),
            128,
            7,
            9,
            &(0..8000).map(|n| n as u8).collect::<Vec<_>>(),
        );
        let mut vector = weir_buf::Vector::default();
        vector.push(router.packet_cut(&frame, cut));
        let sent = router.send_vector(WEST, &mut vector);
        assert_eq!(sent.len(), 1, "{:?}", router.drops());
        assert_eq!(sight::icmp6(&sent[0].1).body, frame[62..]);
    }
}

#[test]
fn other_icmp_for_this_router_is_taken_or_counted() {
    let mut router = Router::default();
    let good = build::echo6(&through6("2001:db8:1::1"), 128, 1, 1, &[1; 30]);
    let mut bad = good.clone();
    bad[70] ^= 1;
    assert!(router.send(WEST, &bad).is_empty());
    assert_eq!(router.dropped(DropReason::IcmpBadChecksum), 1);
    for (kind, taken) in [
        (1, true),
        (2, true),
        (3, true),
        (4, true),
        (129, true),
        (130, false),
        (143, false),
        (200, false),
        (0, false),
    ] {
        let before = router.graph.counters().totals.consumed.get();
        assert!(
            router
                .send(
                    WEST,
                    &build::echo6(&through6("2001:db8:1::1"), kind, 1, 1, &[])
                )
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
    let mut router = Router::with_mtu(1300);
    for (frame, kind, code, argument) in offenders() {
        let (interface, got) = router.send_one(WEST, &frame);
        let icmp = sight::icmp6(&got);
        assert_eq!(
            (interface, icmp.kind, icmp.code, icmp.argument),
            (WEST, kind, code, argument),
            "{frame:02x?}"
        );
        // Section 2.2: the address that was spoken to, or the one nearest to the sender.
        let to: [u8; 16] = frame[38..54].try_into().unwrap();
        let own = ["2001:db8:1::1", "2001:db8:2::1", "2001:db8:3::1"].map(ip6);
        let spoken_to = if own.contains(&to) { to } else { own[0] };
        assert_eq!(
            (icmp.source, icmp.destination, icmp.hop_limit),
            (spoken_to, ip6("2001:db8:1::2"), 64)
        );
        let quoted = (frame.len() - 14).min(1280 - 48);
        assert_eq!(
            icmp.body,
            frame[14..14 + quoted],
            "the packet as it came in"
        );
        assert!(got.len() <= 1294 && got.starts_with(&their_mac(1, 2).0));
    }
    let totals = &router.graph.counters().totals;
    assert_eq!(totals.originated.get(), offenders().len() as u64);
    assert_eq!(totals.dropped.get(), offenders().len() as u64);
}

#[test]
fn quotes_are_never_of_padding() {
    let mut router = Router::default();
    for size in [0, 1, 500, 1183, 1184, 1185, 1400] {
        let frame = build::udp6(&through6("2001:db8:ffff::1"), &vec![5; size]);
        let mut padded = frame.clone();
        padded.resize(frame.len() + 9, 0xee);
        let icmp = sight::icmp6(&router.send_one(WEST, &padded).1);
        assert_eq!(icmp.body, frame[14..14 + (frame.len() - 14).min(1232)]);
    }
}

#[test]
fn the_source_is_the_address_nearest_to_the_sender() {
    let mut router = Router::default();
    for (sender, speaks) in [
        ("2001:db8:1::2", "2001:db8:1::1"),
        ("2001:db8:a::5", "2001:db8:1::1"),
        ("fe80::9", "fe80::1"),
    ] {
        let frame = build::udp6(
            &Ends6 {
                hop_limit: 1,
                source: ip6(sender),
                ..through6("2001:db8:2::2")
            },
            &[],
        );
        let sent = router.send_one(WEST, &frame);
        assert_eq!(sight::icmp6(&sent.1).source, ip6(speaks), "{sender}");
    }
    // An interface with nothing but a link-local address speaks by another one's.
    router.change(WEST, |interface| {
        interface.addresses6 = [(u128::from_be_bytes(ip6("fe80::1")), 64)].into()
    });
    let frame = build::udp6(
        &Ends6 {
            hop_limit: 1,
            ..through6("2001:db8:2::2")
        },
        &[],
    );
    assert_eq!(
        sight::icmp6(&router.send_one(WEST, &frame).1).source,
        ip6("2001:db8:2::1")
    );
}

#[test]
fn silence_where_the_rfc_demands_it() {
    let mut router = Router::with_mtu(1300);
    let (drops, mut sent) = (router.graph.counters(), 0);
    let mut silent = |router: &mut Router, frame: &[u8], why: &str| {
        assert_eq!(router.send(WEST, frame), [], "{why}");
        sent += 1;
    };
    for (frame, kind, code, _) in offenders() {
        let why = |what: &str| format!("{what}: {kind}/{code}");
        for source in ["::", "::1", "ff02::5", "::ffff:10.0.0.1"] {
            let mut odd = frame.clone();
            alter6(&mut odd, |header| header.source = ip6(source));
            silent(&mut router, &odd, &why(source));
        }
        for destination in ["ff02::5", "ff0e::1", "::", "::1"] {
            let mut cast = frame.clone();
            alter6(&mut cast, |header| header.destination = ip6(destination));
            silent(&mut router, &cast, &why(destination));
        }
        for group in [MacAddr::BROADCAST, MacAddr([0x33, 0x33, 0, 0, 0, 1])] {
            let mut cast = frame.clone();
            cast[..6].copy_from_slice(&group.0);
            silent(&mut router, &cast, &why("link-layer group"));
        }
        if code == 2 && kind == 4 {
            continue;
        }
        let mut cast = frame;
        cast[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 1]);
        alter6(&mut cast, |header| header.destination = ip6("ff02::1"));
        silent(&mut router, &cast, &why("all nodes"));
    }
    for kind in [0, 1, 2, 3, 4, 100, 127, 137] {
        for destination in ["2001:db8:ffff::1", "2001:db8:e::1"] {
            silent(
                &mut router,
                &build::echo6(&through6(destination), kind, 0, 0, &[1; 40]),
                "an ICMPv6 error",
            );
        }
        let ends = Ends6 {
            hop_limit: 1,
            ..through6("2001:db8:2::2")
        };
        silent(
            &mut router,
            &build::echo6(&ends, kind, 0, 0, &[1; 40]),
            "an ICMPv6 error",
        );
    }
    let lost: u64 = drops.totals.dropped.get() + drops.totals.consumed.get();
    assert_eq!((lost, drops.totals.originated.get()), (sent, 0));
}

#[test]
fn an_option_that_wants_an_answer_in_any_case_gets_one() {
    let mut router = Router::default();
    let option = |kind: u8| {
        let mut frame = with_extensions(
            &udp6("ff02::1"),
            IpProtocol::DESTINATION_OPTIONS,
            &[17, 0, kind, 4, 0, 0, 0, 0],
        );
        frame[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 1]);
        frame
    };
    let icmp = sight::icmp6(&router.send_one(WEST, &option(0x9e)).1);
    assert_eq!(
        (icmp.kind, icmp.code, icmp.argument, icmp.source),
        (4, 2, 42, ip6("2001:db8:1::1"))
    );
    for kind in [0x5e, 0xde] {
        assert!(router.send(WEST, &option(kind)).is_empty(), "{kind:#x}");
    }
    assert_eq!(router.dropped(DropReason::Ip6Option), 3);
    assert!(
        router.send(WEST, &option(0x1e)).is_empty(),
        "passed by, and then nobody takes it"
    );
    assert_eq!(router.dropped(DropReason::LocalPort), 1);
}

#[test]
fn each_kind_has_a_budget_of_its_own() {
    let icmp = IcmpLimit { rate: 10, burst: 5 };
    let mut router = Router::new(Setup {
        icmp,
        mtu: 1300,
        ..Setup::default()
    });
    let mut kinds = offenders();
    kinds.retain(|offender| (offender.1, offender.2) != (4, 0));
    kinds.dedup_by_key(|offender| (offender.1, offender.2));
    for (frame, kind, code, _) in &kinds {
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
    router.now += 100 * SECOND;
    let error = build::echo6(&through6("2001:db8:ffff::1"), 1, 0, 0, &[1; 40]);
    assert!(router.send_all(WEST, &vec![error; 20]).is_empty());
    assert_eq!(
        router.send_all(WEST, &vec![kinds[0].0.clone(); 20]).len(),
        5
    );
}

#[test]
fn an_empty_pool_only_costs_the_message() {
    let mut router = Router::default();
    router.starve(1);
    assert!(router.send(WEST, &udp6("2001:db8:ffff::1")).is_empty());
    assert_eq!(
        router.drops(),
        [("icmp6-error", DropReason::NoRoute, WEST, 1)]
    );
}

/// RFC 4443 section 3.2: without it the sender of fragments would never learn the MTU of the path.
#[test]
fn later_fragments_are_answered() {
    let mut router = Router::new(Setup {
        mtu: 1300,
        ..Setup::default()
    });
    let long = build::udp6(&through6("2001:db8:2::2"), &[5; 1400]);
    for (frame, kind, argument) in [
        (piece(&long, 5, true), 2, 1300),
        (piece(&udp6("2001:db8:ffff::1"), 5, true), 1, 0),
        // What of ICMPv6 it is a piece of is not known: its first octet is not a type.
        (
            piece(
                &build::echo6(&through6("2001:db8:2::2"), 1, 0, 0, &[1; 1400]),
                5,
                true,
            ),
            2,
            1300,
        ),
    ] {
        let (interface, got) = router.send_one(WEST, &frame);
        let icmp = sight::icmp6(&got);
        assert_eq!(
            (interface, icmp.kind, icmp.argument),
            (WEST, kind, argument)
        );
    }
}
