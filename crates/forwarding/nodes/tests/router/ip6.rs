//! IPv6 forwarding: what comes out is what went in, one hop older, and counted; what must not be forwarded is not.

use std::collections::HashMap;

use weir_graph::DropReason;
use weir_nodes::Event;
use weir_wire::build::{self, Ends, Ends6};
use weir_wire::ipv6::FragmentHeader;
use weir_wire::{EtherType, EthernetHeader, IpProtocol, Ipv6Header, MacAddr};
use zerocopy::IntoBytes;

use crate::rig::*;
use crate::sight;

/// What must have become of a frame: one hop less, other MAC addresses, else the same.
fn assert_forwarded(sent: &[u8], got: &[u8], source: MacAddr, destination: MacAddr) {
    let (ethernet, _) = EthernetHeader::read(got).unwrap();
    assert_eq!(
        (ethernet.source, ethernet.destination, ethernet.ethertype()),
        (source, destination, EtherType::IPV6)
    );
    let mut expected = *Ipv6Header::read(&sent[14..]).unwrap().0;
    expected.hop_limit -= 1;
    assert_eq!(*Ipv6Header::read(&got[14..]).unwrap().0, expected);
    assert_eq!(got[54..], sent[54..got.len()]);
}

/// Changes the IPv6 header of a frame.
pub(crate) fn alter6(frame: &mut [u8], change: impl FnOnce(&mut Ipv6Header)) {
    change(Ipv6Header::read_mut(&mut frame[14..]).unwrap().0);
}

pub(crate) fn udp6(destination: &str) -> Vec<u8> {
    build::udp6(&through6(destination), &[1; 40])
}

/// The frame with extension headers put in, the first of which is of `kind`; the last names what follows.
pub(crate) fn with_extensions(frame: &[u8], kind: IpProtocol, extensions: &[u8]) -> Vec<u8> {
    let mut made = [&frame[..54], extensions, &frame[54..]].concat();
    let payload = (made.len() - 54) as u16;
    alter6(&mut made, |header| {
        header.set_payload_len(payload);
        header.set_next_header(kind);
    });
    made
}

/// The frame as a piece of a packet.
pub(crate) fn piece(frame: &[u8], offset: u16, more: bool) -> Vec<u8> {
    let next = Ipv6Header::read(&frame[14..]).unwrap().0.next_header();
    with_extensions(
        frame,
        IpProtocol::FRAGMENT,
        FragmentHeader::new(next, offset, more, 77).as_bytes(),
    )
}

#[test]
fn connected_and_static_routes_forward() {
    let mut router = Router::default();
    for (destination, out, host) in [
        ("2001:db8:2::2", EAST, (2, 2)),
        ("2001:db8:2::3", EAST, (2, 3)),
        ("2001:db8:a:7::9", EAST, (2, 2)),
        ("2001:db8:a:ffff:ffff:ffff:ffff:ffff", EAST, (2, 2)),
        ("2001:db8:3::2", SOUTH, (3, 2)),
    ] {
        for frame in [
            build::udp6(&through6(destination), &[7; 100]),
            build::tcp6(&through6(destination), 2, b"hello"),
            build::echo6(&through6(destination), 128, 1, 2, &[1; 33]),
            build::udp6(
                &Ends6 {
                    source: ip6("64:ff9b::1"),
                    ..through6(destination)
                },
                &[],
            ),
        ] {
            let (interface, got) = router.send_one(WEST, &frame);
            assert_eq!((interface, got.len()), (out, frame.len()));
            assert_forwarded(&frame, &got, our_mac(out), their_mac(host.0, host.1));
        }
    }
    assert!(router.drops().is_empty() && router.events().is_empty());
}

#[test]
fn every_hop_limit_loses_one() {
    let mut router = Router::default();
    for hop_limit in 2..=255 {
        let frame = build::udp6(
            &Ends6 {
                hop_limit,
                ..through6("2001:db8:a::1")
            },
            &[],
        );
        let (_, got) = router.send_one(WEST, &frame);
        assert_forwarded(&frame, &got, our_mac(EAST), their_mac(2, 2));
    }
}

#[test]
fn padding_is_cut_off_and_never_more() {
    let mut router = Router::default();
    for payload in 0..64 {
        let frame = build::udp6(&through6("2001:db8:2::2"), &vec![1; payload]);
        for more in [0, 1, 7, 1400] {
            let mut padded = frame.clone();
            padded.resize(frame.len() + more, 0xee);
            let (_, got) = router.send_one(WEST, &padded);
            assert_forwarded(&frame, &got, our_mac(EAST), their_mac(2, 2));
        }
    }
    for chunk in [128, 600, 2240] {
        let frame = build::udp6(&through6("2001:db8:2::2"), &[1; 1000]);
        let mut padded = frame.clone();
        padded.resize(3000, 0xee);
        let mut vector = weir_buf::Vector::default();
        vector.push(router.packet_cut(&padded, chunk));
        let sent = router.send_vector(WEST, &mut vector);
        assert_eq!(sent.len(), 1, "chunks of {chunk}: {:?}", router.drops());
        assert_forwarded(&frame, &sent[0].1, our_mac(EAST), their_mac(2, 2));
    }
}

#[test]
fn extension_headers_and_pieces_are_forwarded_whatever_they_say() {
    let mut router = Router::default();
    let plain = udp6("2001:db8:a::1");
    let chains: [(IpProtocol, &[u8]); 6] = [
        (IpProtocol::HOP_BY_HOP, &[17, 0, 5, 2, 0, 0, 1, 0]),
        // Options that want a discard are the receiver's business; so is a routing header of type 0.
        (IpProtocol::HOP_BY_HOP, &[17, 0, 0x7e, 4, 0, 0, 0, 0]),
        (IpProtocol::ROUTING, &[17, 0, 0, 1, 0, 0, 0, 0]),
        (
            IpProtocol::DESTINATION_OPTIONS,
            &[17, 200, 0xfe, 0, 0, 0, 0, 0],
        ),
        (IpProtocol(253), &[]),
        (IpProtocol::NO_NEXT, &[]),
    ];
    for (kind, chain) in chains {
        let frame = with_extensions(&plain, kind, chain);
        assert_forwarded(
            &frame,
            &router.send_one(WEST, &frame).1,
            our_mac(EAST),
            their_mac(2, 2),
        );
    }
    for (offset, more) in [(0, true), (10, true), (20, false), (0x1fff, false)] {
        let frame = piece(&plain, offset, more);
        assert_forwarded(
            &frame,
            &router.send_one(WEST, &frame).1,
            our_mac(EAST),
            their_mac(2, 2),
        );
    }
    assert!(router.drops().is_empty());
}

#[test]
fn exactly_the_mtu_passes_and_one_more_is_reported() {
    for mtu in [1280, 1499, 1500] {
        let mut router = Router::with_mtu(mtu);
        let exact = build::udp6(&through6("2001:db8:2::2"), &vec![3; mtu as usize - 48]);
        let (_, got) = router.send_one(WEST, &exact);
        assert_forwarded(&exact, &got, our_mac(EAST), their_mac(2, 2));
        let over = build::udp6(&through6("2001:db8:2::2"), &vec![3; mtu as usize - 47]);
        let (interface, got) = router.send_one(WEST, &over);
        let icmp = sight::icmp6(&got);
        assert_eq!(
            (interface, icmp.kind, icmp.code, icmp.argument),
            (WEST, 2, 0, mtu)
        );
        assert_eq!(
            router.drops(),
            [("icmp6-error", DropReason::PacketTooBig, WEST, 1)]
        );
    }
}

#[test]
fn flows_stick_and_paths_are_used_by_weight() {
    let mut router = Router::default();
    let mut way = HashMap::new();
    for round in 0..3u8 {
        for flow in 0..2000u16 {
            // Even flows differ in their ports, odd ones in their label alone.
            let (source_port, flow_label) = if flow % 2 == 0 {
                (flow, 0)
            } else {
                (u16::from(round), u32::from(flow))
            };
            let ends = Ends6 {
                source_port,
                flow_label,
                ..through6("2001:db8:b::1")
            };
            let (interface, _) = router.send_one(WEST, &build::udp6(&ends, &[round; 20]));
            assert_eq!(
                *way.entry(flow).or_insert(interface),
                interface,
                "flow {flow} changed its way"
            );
        }
    }
    for half in 0..2 {
        let east = way
            .iter()
            .filter(|&(flow, &interface)| flow % 2 == half && interface == EAST)
            .count();
        // 3:1 of 1000; the standard deviation is 13.7.
        assert!(
            (750 - 55..=750 + 55).contains(&east),
            "{east} of 1000 flows took the path of weight 3"
        );
    }
}

#[test]
fn pieces_of_a_packet_take_one_way() {
    let mut router = Router::default();
    let mut ways = HashMap::new();
    for host in 0..64u8 {
        let mut destination = ip6("2001:db8:b::");
        destination[15] = host;
        for (offset, more, source_port) in [(0, true, 4000), (64, true, 1), (128, false, 77)] {
            let ends = Ends6 {
                source_port,
                destination,
                ..through6("::")
            };
            let (interface, _) =
                router.send_one(WEST, &piece(&build::udp6(&ends, &[1; 504]), offset, more));
            assert_eq!(*ways.entry(host).or_insert(interface), interface);
        }
    }
    assert!(ways.values().any(|&way| way == EAST) && ways.values().any(|&way| way == SOUTH));
}

#[test]
fn vectors_of_both_versions_are_taken_apart() {
    let mut router = Router::default();
    for first in 0..2 {
        let frames: Vec<_> = (0..256)
            .map(|n| match (n + first) % 2 {
                0 => udp6(
                    [
                        "2001:db8:a::1",
                        "2001:db8:3::2",
                        "2001:db8:ffff::1",
                        "2001:db8:c::1",
                    ][n / 2 % 4],
                ),
                _ => build::udp4(
                    &through(["192.168.1.1", "10.0.3.2", "8.8.8.8", "198.18.0.1"][n / 2 % 4]),
                    &[1; 20],
                ),
            })
            .collect();
        let bytes: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
        let before = router.interface(WEST).counters.rx();
        let sent = router.send_all(WEST, &frames);
        let rx = router.interface(WEST).counters.rx();
        assert_eq!(
            (rx.packets - before.packets, rx.bytes - before.bytes),
            (256, bytes)
        );
        // A quarter of each is silently dropped, another complained about.
        assert_eq!(sent.iter().filter(|sent| sent.0 == EAST).count(), 64);
        assert_eq!(sent.iter().filter(|sent| sent.0 == SOUTH).count(), 64);
        assert_eq!(sent.iter().filter(|sent| sent.0 == WEST).count(), 64);
    }
}

#[test]
fn ipv4_goes_by_ipv6_next_hops() {
    let mut router = Router::default();
    let frame = build::udp4(&through("192.0.2.7"), &[1; 30]);
    let (interface, got) = router.send_one(WEST, &frame);
    assert_eq!(
        (interface, &got[..6], &got[12..14]),
        (EAST, &their_mac(2, 2).0[..], &[8, 0][..])
    );
    assert_eq!(sight::header(&got).ttl, 63);
    // One that is not known yet is asked for by neighbour discovery, from the link-local address.
    let waiting = build::udp4(
        &Ends {
            destination: ip("203.0.113.5"),
            ..through("203.0.113.5")
        },
        &[2; 30],
    );
    let (interface, question) = router.send_one(WEST, &waiting);
    let asked = sight::icmp6(&question);
    assert_eq!(
        (interface, asked.kind, &asked.body[..16]),
        (EAST, 135, &ip6("fe80::99")[..])
    );
    assert_eq!(
        (asked.source, asked.destination),
        (ip6("fe80::2"), ip6("ff02::1:ff00:99"))
    );
    assert_eq!(
        router.events(),
        [Event::Wanted {
            interface: EAST,
            address: address("fe80::99")
        }]
    );
    assert!(
        router.send(WEST, &waiting).is_empty() && router.events().is_empty(),
        "asked once a second"
    );
    let far = router.adjacency_of("fe80::99");
    router
        .nexthops
        .adjacency(far)
        .unwrap()
        .set_neighbor(weir_fib::NeighborState::Reachable, their_mac(2, 0x99).0);
    router
        .graph
        .release(weir_nodes::hold_key(EAST, address("fe80::99")));
    let sent = router.turn();
    assert_eq!(sent.len(), 2);
    for (interface, got) in sent {
        assert_eq!(
            (interface, &got[..6], sight::header(&got).ttl),
            (EAST, &their_mac(2, 0x99).0[..], 63)
        );
        assert_eq!(got[34..], waiting[34..]);
    }
}

#[test]
fn what_cannot_be_a_sound_packet_is_refused() {
    let mut router = Router::default();
    let plain = udp6("2001:db8:a::1");
    for version in (0..16).filter(|&version| version != 6) {
        let mut frame = plain.clone();
        frame[14] = version << 4;
        assert!(router.send(WEST, &frame).is_empty());
    }
    assert_eq!(
        router.drops(),
        [("ip6-input", DropReason::Ip6BadVersion, WEST, 15)]
    );
    for length in 14..54 {
        assert!(router.send(WEST, &plain[..length]).is_empty());
    }
    assert_eq!(router.dropped(DropReason::Ip6Truncated), 40);
    for length in 54..plain.len() {
        assert!(router.send(WEST, &plain[..length]).is_empty());
    }
    assert_eq!(router.dropped(DropReason::Ip6BadLength), 48);
    let mut jumbogram = with_extensions(
        &plain,
        IpProtocol::HOP_BY_HOP,
        &[17, 0, 0xc2, 4, 0, 1, 0, 0],
    );
    alter6(&mut jumbogram, |header| header.set_payload_len(0));
    assert!(router.send(WEST, &jumbogram).is_empty());
    assert_eq!(router.dropped(DropReason::Ip6BadLength), 49);
    let mut empty = plain;
    alter6(&mut empty, |header| {
        header.set_payload_len(0);
        header.set_next_header(IpProtocol::NO_NEXT);
    });
    assert_eq!(
        router.send_one(WEST, &empty).1.len(),
        54,
        "a packet of nothing is forwarded"
    );
}

#[test]
fn addresses_that_are_never_forwarded() {
    let mut router = Router::default();
    let mut counted = HashMap::new();
    let mut refused = |router: &mut Router, source: &str, destination: &str, reason: DropReason| {
        let frame = build::udp6(
            &Ends6 {
                source: ip6(source),
                ..through6(destination)
            },
            &[],
        );
        assert!(
            router.send(WEST, &frame).is_empty(),
            "{source} to {destination}"
        );
        *counted.entry(reason).or_insert(0) += 1;
        assert_eq!(
            router.dropped(reason),
            counted[&reason],
            "{source} to {destination}: {:?}",
            router.drops()
        );
    };
    for (source, reason) in [
        ("::", DropReason::Ip6SourceUnspecified),
        ("::1", DropReason::Ip6SourceLoopback),
        ("ff02::1", DropReason::Ip6SourceMulticast),
        ("ff0e::5", DropReason::Ip6SourceMulticast),
        ("::ffff:10.0.0.1", DropReason::Ip6MartianSource),
    ] {
        refused(&mut router, source, "2001:db8:a::1", reason);
    }
    for (destination, reason) in [
        ("::", DropReason::Ip6MartianDestination),
        ("::1", DropReason::Ip6DestinationLoopback),
        ("::ffff:10.0.0.1", DropReason::Ip6MartianDestination),
        ("ff01::1", DropReason::Ip6MartianDestination),
        ("ff00::1", DropReason::Ip6MartianDestination),
    ] {
        refused(&mut router, "2001:db8:1::2", destination, reason);
    }
    for group in [
        "ff02::3",
        "ff05::2",
        "ff0e::1234",
        "ff02::1:ff00:2",
        "ff02::16",
    ] {
        refused(
            &mut router,
            "2001:db8:1::2",
            group,
            DropReason::Ip6Multicast,
        );
    }
    for other in ["fe80::77", "fe80::2", "febf::1"] {
        refused(
            &mut router,
            "2001:db8:1::2",
            other,
            DropReason::Ip6LinkLocal,
        );
    }
    for group in [MacAddr::BROADCAST, MacAddr([0x33, 0x33, 0, 0, 0, 1])] {
        let mut frame = udp6("2001:db8:a::1");
        frame[..6].copy_from_slice(&group.0);
        assert!(router.send(WEST, &frame).is_empty());
    }
    assert_eq!(router.dropped(DropReason::Ip6GroupFrame), 2);
}

#[test]
fn what_comes_from_a_link_stays_there() {
    let mut router = Router::default();
    // Another link, the same one, a neighbour that is not known: beyond the scope of the source.
    for destination in [
        "2001:db8:a::1",
        "2001:db8:2::2",
        "2001:db8:2::77",
        "2001:db8:1::2",
    ] {
        let frame = build::udp6(
            &Ends6 {
                source: ip6("fe80::42"),
                ..through6(destination)
            },
            &[],
        );
        let (interface, got) = router.send_one(WEST, &frame);
        let icmp = sight::icmp6(&got);
        assert_eq!(
            (interface, icmp.kind, icmp.code),
            (WEST, 1, 2),
            "{destination}"
        );
        assert_eq!(
            (icmp.source, icmp.destination),
            (ip6("fe80::1"), ip6("fe80::42"))
        );
        assert!(
            got.starts_with(&their_mac(1, 2).0),
            "back to the station that it came from"
        );
    }
    assert_eq!(
        router.drops(),
        [("icmp6-error", DropReason::Ip6BeyondScope, WEST, 4)]
    );
    assert_eq!(router.graph.held(), 0);
}

#[test]
fn an_interface_without_ipv6_takes_none() {
    let mut router = Router::default();
    router.change(WEST, |interface| {
        (interface.addresses6, interface.tentative6) = ([].into(), [].into())
    });
    for frame in [
        udp6("2001:db8:a::1"),
        udp6("2001:db8:1::1"),
        udp6("ff02::1"),
    ] {
        assert!(router.send_all(WEST, &vec![frame; 3]).is_empty());
    }
    assert_eq!(
        router.drops(),
        [("ip6-input", DropReason::Ip6NotEnabled, WEST, 9)]
    );
    assert_eq!(
        router
            .send(WEST, &build::udp4(&through("10.0.2.2"), &[]))
            .len(),
        1,
        "IPv4 is another matter"
    );
}

#[test]
fn where_a_sampled_packet_went_is_reported() {
    let mut router = Router::default();
    let mut way = |destination: &str| {
        let frame = udp6(destination);
        let sent = router.send(WEST, &frame);
        let departure = sent.first().map(|(port, left)| (*port, &left[..62]));
        (
            router.tables.way(WEST, &frame[..62], departure),
            departure.map_or(0, |(port, _)| port),
        )
    };
    let (east, _) = way("2001:db8:a::1");
    assert_eq!(
        (east.output, east.hop.map(|hop| hop.next)),
        (EAST, Some("2001:db8:2::2".parse().unwrap()))
    );
    let (south, _) = way("2001:db8:3::2");
    assert_eq!(
        (south.output, south.hop.map(|hop| hop.next)),
        (SOUTH, Some("2001:db8:3::2".parse().unwrap()))
    );
    assert_eq!(way("2001:db8:c::1").0.hop, None, "it did not leave");
    // Of two ways the one that it took: a hop is reported only where the lookup gives the same link again.
    let (several, port) = way("2001:db8:b::1");
    assert!(several.output == port && several.hop.is_some());
}

#[test]
fn each_table_is_its_own() {
    let mut router = Router::default();
    let empty = weir_fib::Fib6Writer::new(&weir_ring::qsbr::Domain::new(1)).unwrap();
    router.tables.fib6.push(empty.fib().clone());
    assert_eq!(router.send_one(WEST, &udp6("2001:db8:a::1")).0, EAST);
    router.change(WEST, |interface| interface.table = 1);
    router.send(WEST, &udp6("2001:db8:a::1"));
    assert_eq!(
        router.dropped(DropReason::NoRoute),
        2,
        "the packet and the answer to it have no way there"
    );
}
