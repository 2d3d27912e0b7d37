//! IPv4 forwarding: what comes out is what went in, one hop older, and counted.

use std::collections::HashMap;

use weir_wire::build::{self, Ends};
use weir_wire::{EtherType, EthernetHeader, IpProtocol, Ipv4Header, checksum};

use crate::rig::*;
use crate::sight;

/// What must have become of a frame: one hop less, other MAC addresses, else the same.
fn assert_forwarded(
    sent: &[u8],
    got: &[u8],
    source: weir_wire::MacAddr,
    destination: weir_wire::MacAddr,
) {
    let (ethernet, _) = EthernetHeader::read(got).unwrap();
    assert_eq!(
        (ethernet.source, ethernet.destination, ethernet.ethertype()),
        (source, destination, EtherType::IPV4)
    );
    let (before, after) = (Ipv4Header::read(&sent[14..]).unwrap().0, sight::header(got));
    assert_eq!(after.ttl, before.ttl - 1);
    assert_eq!(got[14..22], sent[14..22]);
    assert_eq!(got[23], sent[23]);
    assert_eq!(got[26..], sent[26..got.len()]);
}

/// Changes the IPv4 header of a frame and makes its checksum right.
pub(crate) fn alter(frame: &mut [u8], change: impl FnOnce(&mut Ipv4Header)) {
    change(Ipv4Header::read_mut(&mut frame[14..]).unwrap().0);
    checksum::ipv4_header_set(&mut frame[14..]);
}

/// The frame with IPv4 options put in; their length is a multiple of 4.
pub(crate) fn with_options(frame: &[u8], options: &[u8]) -> Vec<u8> {
    let mut made = [&frame[..34], options, &frame[34..]].concat();
    let total = (made.len() - 14) as u16;
    alter(&mut made, |header| {
        header.set_header_len(20 + options.len());
        header.set_total_len(total);
    });
    made
}

#[test]
fn connected_and_static_routes_forward() {
    let mut router = Router::default();
    for (destination, out, host) in [
        ("10.0.2.2", EAST, (2, 2)),
        ("10.0.2.3", EAST, (2, 3)),
        ("192.168.7.9", EAST, (2, 2)),
        ("10.0.3.2", SOUTH, (3, 2)),
    ] {
        for frame in [
            build::udp4(&through(destination), &[7; 100]),
            build::tcp4(&through(destination), 2, b"hello"),
            build::echo4(&through(destination), 8, 1, 2, &[1; 33]),
        ] {
            let (interface, got) = router.send_one(WEST, &frame);
            assert_eq!((interface, got.len()), (out, frame.len()));
            assert_forwarded(&frame, &got, our_mac(out), their_mac(host.0, host.1));
        }
    }
    assert!(router.drops().is_empty() && router.events().is_empty());
}

#[test]
fn every_time_to_live_keeps_the_checksum_right() {
    let mut router = Router::default();
    for ttl in 2..=255 {
        for port in 0..64u16 {
            let frame = build::udp4(
                &Ends {
                    ttl,
                    source: 0x0a00_0000 + u32::from(port) * 997,
                    ..through("192.168.0.1")
                },
                &[],
            );
            let (_, got) = router.send_one(WEST, &frame);
            assert_forwarded(&frame, &got, our_mac(EAST), their_mac(2, 2));
        }
    }
}

#[test]
fn padding_is_cut_off_and_never_more() {
    let mut router = Router::default();
    for payload in 0..64 {
        let frame = build::udp4(&through("10.0.2.2"), &vec![1; payload]);
        let mut padded = frame.clone();
        padded.resize(frame.len().max(60) + 7, 0xee);
        let (_, got) = router.send_one(WEST, &padded);
        assert_forwarded(&frame, &got, our_mac(EAST), their_mac(2, 2));
        assert_eq!(got.len(), frame.len());
    }
}

#[test]
fn padding_of_a_packet_in_several_chunks_is_cut_off_too() {
    let mut router = Router::default();
    for len in [100, 1000, 1400] {
        let frame = build::udp4(&through("10.0.2.2"), &vec![1; len]);
        let mut padded = frame.clone();
        padded.resize(3000, 0xee);
        for chunk in [128, 600, 2240] {
            let mut vector = weir_buf::Vector::default();
            vector.push(router.packet_cut(&padded, chunk));
            let sent = router.send_vector(WEST, &mut vector);
            assert_eq!(
                sent.len(),
                1,
                "{len} bytes in chunks of {chunk}: {:?}",
                router.drops()
            );
            assert_forwarded(&frame, &sent[0].1, our_mac(EAST), their_mac(2, 2));
        }
    }
}

#[test]
fn options_and_fragments_are_forwarded() {
    let mut router = Router::default();
    let plain = build::udp4(&through("192.168.0.1"), &[9; 50]);
    for words in 1..=10 {
        let frame = with_options(&plain, &vec![1; words * 4]);
        let (_, got) = router.send_one(WEST, &frame);
        assert_forwarded(&frame, &got, our_mac(EAST), their_mac(2, 2));
    }
    for (offset, more) in [(0, true), (10, true), (20, false), (0x1fff, false)] {
        let mut frame = plain.clone();
        alter(&mut frame, |header| header.set_fragment(offset, more));
        let (_, got) = router.send_one(WEST, &frame);
        assert_forwarded(&frame, &got, our_mac(EAST), their_mac(2, 2));
    }
}

#[test]
fn exactly_the_mtu_passes_and_one_more_does_not() {
    for mtu in [68, 576, 1499, 1500] {
        let mut router = Router::with_mtu(mtu);
        let exact = build::udp4(&through("10.0.2.2"), &vec![3; mtu as usize - 28]);
        let (_, got) = router.send_one(WEST, &exact);
        assert_forwarded(&exact, &got, our_mac(EAST), their_mac(2, 2));
        let over = build::udp4(&through("10.0.2.2"), &vec![3; mtu as usize - 27]);
        assert_eq!(router.send(WEST, &over).len(), 2, "cut in two");
        let mut forbidden = over;
        alter(&mut forbidden, |header| header.set_dont_fragment(true));
        let (interface, got) = router.send_one(WEST, &forbidden);
        assert_eq!((interface, sight::icmp(&got).argument), (WEST, mtu));
    }
}

#[test]
fn flows_stick_and_paths_are_used_by_weight() {
    let mut router = Router::default();
    let mut way = HashMap::new();
    for round in 0..3u8 {
        for flow in 0..2000u16 {
            let ends = Ends {
                source_port: 1000 + flow,
                destination: ip("172.16.0.1") + u32::from(flow % 7),
                ..through("172.16.0.1")
            };
            let frame = if flow % 2 == 0 {
                build::udp4(&ends, &[round; 20])
            } else {
                build::tcp4(&ends, 16, &[round; 20])
            };
            let (interface, _) = router.send_one(WEST, &frame);
            assert_eq!(
                *way.entry(flow).or_insert(interface),
                interface,
                "flow {flow} changed its way"
            );
        }
    }
    let east = way.values().filter(|&&interface| interface == EAST).count();
    // 3:1 of 2000; the standard deviation is 19.4.
    assert!(
        (1500 - 78..=1500 + 78).contains(&east),
        "{east} of 2000 flows took the path of weight 3"
    );
}

#[test]
fn fragments_of_a_packet_take_one_way() {
    let mut router = Router::default();
    let (mut east, mut south) = (0, 0);
    for host in 0..64 {
        let ends = Ends {
            destination: ip("172.16.0.0") + host,
            ..through("172.16.0.1")
        };
        let mut way = None;
        for (offset, more, source_port) in [(0, true, 4000), (64, true, 1), (128, false, 77)] {
            let mut frame = build::udp4(
                &Ends {
                    source_port,
                    ..ends
                },
                &[1; 504],
            );
            alter(&mut frame, |header| header.set_fragment(offset, more));
            let (interface, _) = router.send_one(WEST, &frame);
            assert_eq!(*way.get_or_insert(interface), interface);
        }
        if way == Some(EAST) {
            east += 1
        } else {
            south += 1
        }
    }
    assert!(east > south && south > 0);
}

#[test]
fn a_failed_path_moves_its_flows_and_no_others() {
    let mut router = Router::default();
    let frame = |flow: u16| {
        build::udp4(
            &Ends {
                source_port: flow,
                ..through("172.16.0.1")
            },
            &[],
        )
    };
    let before: Vec<u32> = (0..200)
        .map(|flow| router.send_one(WEST, &frame(flow)).0)
        .collect();
    let south = router
        .nexthops
        .adjacencies()
        .find(|(_, end)| end.address == crate::rig::address("10.0.3.2"))
        .unwrap()
        .0;
    router.nexthops.set_up(south, false);
    router.publish();
    assert!((0..200).all(|flow| router.send_one(WEST, &frame(flow)).0 == EAST));
    router.nexthops.set_up(south, true);
    router.publish();
    let after: Vec<u32> = (0..200)
        .map(|flow| router.send_one(WEST, &frame(flow)).0)
        .collect();
    assert_eq!(before, after);
}

#[test]
fn a_whole_vector_of_all_kinds_is_counted_right() {
    let mut router = Router::default();
    let mut frames = Vec::new();
    for n in 0..256u32 {
        let ends = Ends {
            ttl: if n % 10 == 0 { 1 } else { 9 },
            ..through(["192.168.1.1", "10.0.3.2", "8.8.8.8", "198.18.0.1"][n as usize % 4])
        };
        frames.push(build::udp4(&ends, &vec![1; n as usize]));
    }
    let bytes: usize = frames.iter().map(Vec::len).sum();
    let sent = router.send_all(WEST, &frames);
    let rx = router.interface(WEST).counters.rx();
    assert_eq!((rx.packets, rx.unicast, rx.bytes), (256, 256, bytes as u64));
    for interface in [WEST, EAST, SOUTH] {
        let out: Vec<_> = sent.iter().filter(|sent| sent.0 == interface).collect();
        let tx = router.interface(interface).counters.tx();
        assert_eq!(
            (tx.packets, tx.bytes),
            (
                out.len() as u64,
                out.iter().map(|sent| sent.1.len() as u64).sum()
            )
        );
    }
}

#[test]
fn order_within_a_flow_is_kept() {
    let mut router = Router::default();
    let frames: Vec<_> = (0..600u16)
        .map(|n| {
            build::udp4(
                &Ends {
                    destination: ip(if n % 3 == 0 { "10.0.3.2" } else { "10.0.2.2" }),
                    ..through("10.0.2.2")
                },
                &n.to_be_bytes(),
            )
        })
        .collect();
    let sent = router.send_all(WEST, &frames);
    assert_eq!(sent.len(), 600);
    for interface in [EAST, SOUTH] {
        let numbers: Vec<_> = sent
            .iter()
            .filter(|sent| sent.0 == interface)
            .map(|sent| sent.1[42..44].to_vec())
            .collect();
        assert!(numbers.is_sorted(), "{interface}");
    }
}

#[test]
fn what_cannot_be_a_sound_packet_is_refused() {
    let mut router = Router::default();
    let plain = build::udp4(&through("192.168.0.1"), &[1; 20]);
    let mut protocols = plain.clone();
    alter(&mut protocols, |header| {
        header.set_protocol(IpProtocol(253))
    });
    assert_eq!(
        router.send(WEST, &protocols).len(),
        1,
        "any protocol is forwarded"
    );
    for bit in 0..20 * 8 {
        let mut frame = plain.clone();
        frame[14 + bit / 8] ^= 1 << (bit % 8);
        assert!(
            router.send(WEST, &frame).is_empty(),
            "a header with bit {bit} flipped has a wrong checksum, version or length"
        );
    }
}
