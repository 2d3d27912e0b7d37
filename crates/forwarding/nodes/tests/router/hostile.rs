//! Hostile input: whatever bytes come in, nothing panics, nothing leaks, everything is counted.
//!
//! The rig checks the balance and the pool after every vector. Frames are broken in every way that a
//! loop can reach, each also with its IPv4 checksum made right so that it gets past the first check;
//! random ones stand in for fuzzing.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use weir_graph::DropReason;
use weir_wire::build::{self, Ends, Ends6};
use weir_wire::{ArpPacket, IcmpHeader, IpProtocol, Ipv6Header, MacAddr, checksum, ipv6};

use crate::forward::{alter, with_options};
use crate::ip6::{piece, udp6, with_extensions};
use crate::nd;
use crate::rig::*;

pub(crate) fn router() -> Router {
    Router::new(Setup {
        mtu: 300,
        chunks: 16_384,
        ..Setup::default()
    })
}

/// Frames that reach every node.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let udp = |destination| build::udp4(&through(destination), &[3; 12]);
    let arp = |operation, target| {
        build::arp(
            MacAddr::BROADCAST,
            &ArpPacket::new(
                operation,
                their_mac(1, 7),
                ip("10.0.1.7"),
                MacAddr::ZERO,
                ip(target),
            ),
        )
    };
    let mut forbidden = build::udp4(&through("10.0.2.2"), &[3; 400]);
    alter(&mut forbidden, |header| header.set_dont_fragment(true));
    let mut part = udp("10.0.2.2");
    alter(&mut part, |header| header.set_fragment(4, true));
    let mut unspoken = udp("10.0.1.1");
    alter(&mut unspoken, |header| header.set_protocol(IpProtocol(89)));
    let options =
        |kind, extensions: &[u8]| with_extensions(&udp6("2001:db8:1::1"), kind, extensions);
    let mut seeds = vec![
        udp6("2001:db8:2::2"),
        udp6("2001:db8:b::1"),
        udp6("2001:db8:2::77"),
        udp6("2001:db8:e::1"),
        udp6("2001:db8:ffff::1"),
        udp6("2001:db8:1::1"),
        udp6("ff02::1"),
        udp6("fe80::1"),
        build::tcp6(
            &Ends6 {
                hop_limit: 1,
                ..through6("2001:db8:3::2")
            },
            2,
            &[],
        ),
        build::udp6(&through6("2001:db8:2::2"), &[3; 400]),
        build::echo6(&through6("2001:db8:1::1"), 128, 1, 1, &[1; 8]),
        build::echo6(
            &Ends6 {
                source: ip6("fe80::7"),
                ..through6("ff02::1")
            },
            128,
            1,
            1,
            &[1; 8],
        ),
        options(
            IpProtocol::HOP_BY_HOP,
            &[
                60, 0, 5, 2, 0, 0, 1, 0, 43, 0, 0x80, 0, 1, 2, 0, 0, 17, 0, 0, 1, 0, 0, 0, 0,
            ],
        ),
        options(
            IpProtocol::DESTINATION_OPTIONS,
            &[
                51, 0, 1, 4, 0, 0, 0, 0, 44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0,
                9,
            ],
        ),
        piece(&udp6("2001:db8:1::1"), 4, true),
        nd::solicitation("2001:db8:1::7", "2001:db8:1::1"),
        nd::solicitation("fe80::7", "2001:db8:1::dad"),
        nd::advertisement("2001:db8:1::7", "2001:db8:1::1", true),
        nd::router_solicitation("fe80::7"),
    ];
    seeds.extend([
        udp("10.0.2.2"),
        udp("172.16.0.1"),
        udp("10.0.2.77"),
        udp("198.19.1.1"),
        udp("8.8.8.8"),
        udp("10.0.1.1"),
        build::tcp4(
            &Ends {
                ttl: 1,
                ..through("10.0.3.2")
            },
            2,
            &[],
        ),
        build::echo4(&through("10.0.1.1"), 8, 1, 1, &[1; 8]),
        build::echo4(&through("10.0.1.1"), 3, 0, 0, &udp("10.0.1.2")[14..]),
        with_options(
            &build::udp4(&through("10.0.2.2"), &[3; 400]),
            &[130, 4, 1, 2, 7, 3, 4, 0],
        ),
        forbidden,
        part,
        unspoken,
        arp(ArpPacket::REQUEST, "10.0.1.1"),
        arp(ArpPacket::REPLY, "10.0.1.1"),
        build::tagged(&udp("10.0.2.2"), 3, 0),
    ]);
    seeds
}

/// The frame with the checksum of the IPv4 header or the ICMPv6 message made right, as far as there is one.
pub(crate) fn mended(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame.get(12..14) == Some(&[0x86, 0xdd]) {
        mend6(&mut frame);
    } else if let Some(l3) = frame.get_mut(14..) {
        checksum::ipv4_header_set(l3);
    }
    frame
}

/// Makes the checksum of an ICMPv6 message right, behind whatever extension headers.
fn mend6(frame: &mut [u8]) {
    let Some(l3) = frame.get_mut(14..) else {
        return;
    };
    let Ok(chain) = ipv6::walk(l3, ipv6::MAX_HEADERS, ipv6::MAX_BYTES) else {
        return;
    };
    let Some((header, _)) = Ipv6Header::read(l3) else {
        return;
    };
    let (source, destination, end) = (
        header.source,
        header.destination,
        40 + usize::from(header.payload_len()),
    );
    let Some(message) = l3.get_mut(chain.offset..end) else {
        return;
    };
    if let (IpProtocol::ICMP6, Some((icmp, _))) = (chain.protocol, IcmpHeader::read_mut(message)) {
        icmp.set_checksum(0);
        let sum = checksum::icmp6(&source, &destination, message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Sends frames in everywhere, mended too; time passes, so that what waits gives up.
fn endure(router: &mut Router, frames: &[Vec<u8>]) {
    let both: Vec<Vec<u8>> = frames
        .iter()
        .flat_map(|frame| [frame.clone(), mended(frame)])
        .collect();
    for interface in [WEST, LEFT, DOWN, BARE] {
        let sent = router.send_all(interface, &both);
        assert!(sent.iter().all(|(_, frame)| frame.len() >= 14));
        router.now += SECOND / 4;
    }
}

/// Nothing waits, every packet is back.
pub(crate) fn finish(mut router: Router) {
    router.give_up(DropReason::Stopped);
    assert_eq!(router.graph.held(), 0);
    assert_eq!(
        router.pool.usage().free + router.cache.held(),
        router.pool.chunks()
    );
}

#[test]
fn frames_cut_off_at_every_length() {
    let mut router = router();
    for seed in seeds() {
        let cut: Vec<_> = (0..=seed.len()).map(|len| seed[..len].to_vec()).collect();
        endure(&mut router, &cut);
    }
    finish(router);
}

#[test]
fn every_byte_overwritten() {
    let mut router = router();
    let mut random = 0x9e37_79b9_u32;
    for seed in seeds() {
        let mut frames = Vec::new();
        for place in 0..seed.len().min(90) {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for byte in [
                0,
                0xff,
                0x7f,
                seed[place] ^ 1,
                seed[place] ^ 0x80,
                (random >> 24) as u8,
            ] {
                let mut frame = seed.clone();
                frame[place] = byte;
                frames.push(frame);
            }
        }
        endure(&mut router, &frames);
    }
    finish(router);
}

#[test]
fn lengths_that_lie() {
    let mut router = router();
    for seed in seeds() {
        let mut frames = Vec::new();
        for total in (0..100).chain([
            300, 301, 400, 441, 442, 443, 576, 1500, 0x7fff, 0xfffe, 0xffff,
        ]) {
            for first in [0x45, 0x40, 0x44, 0x46, 0x4f] {
                let mut frame = seed.clone();
                // An IPv6 packet says its length elsewhere, and without its headers.
                let six = frame[12] == 0x86;
                frame[14] = if six { 0x60 } else { first };
                let place = if six { 18 } else { 16 };
                frame[place..place + 2].copy_from_slice(&u16::to_be_bytes(total));
                frames.push(frame);
            }
        }
        endure(&mut router, &frames);
    }
    finish(router);
}

#[test]
fn frames_longer_than_a_buffer() {
    let mut router = router();
    for seed in seeds() {
        let frames: Vec<_> = [2239, 2240, 2241, 4480, 9000, 60_000]
            .map(|len| {
                let mut frame = seed.clone();
                frame.resize(len, 0xa5);
                frame
            })
            .to_vec();
        let honest: Vec<_> = frames
            .iter()
            .map(|frame| {
                let mut frame = frame.clone();
                let total = (frame.len() - 14) as u16;
                if frame[12] == 0x86 {
                    frame[18..20].copy_from_slice(&(total - 40).to_be_bytes());
                } else {
                    frame[16..18].copy_from_slice(&total.to_be_bytes());
                }
                frame
            })
            .collect();
        endure(&mut router, &frames);
        endure(&mut router, &honest);
    }
    finish(router);
}

/// Random bytes, or a seed with some bytes changed and the end moved.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let broken = (
        any::<prop::sample::Index>(),
        prop::collection::vec((0..120usize, any::<u8>()), 0..6),
        0..140usize,
        any::<bool>(),
    );
    let broken = broken.prop_map(|(seed, changes, len, whole)| {
        let seeds = seeds();
        let mut frame = seeds[seed.index(seeds.len())].clone();
        for (place, byte) in changes {
            if let Some(place) = frame.get_mut(place) {
                *place = byte;
            }
        }
        if !whole {
            frame.resize(len, 0x11);
        }
        frame
    });
    prop_oneof![1 => prop::collection::vec(any::<u8>(), 0..200), 6 => broken]
}

#[test]
fn random_frames() {
    let config = Config {
        cases: 300,
        rng_seed: RngSeed::Fixed(20),
        failure_persistence: None,
        ..Config::default()
    };
    let router = RefCell::new(router());
    let result =
        TestRunner::new(config).run(&prop::collection::vec(any_frame(), 1..40), |frames| {
            endure(&mut router.borrow_mut(), &frames);
            Ok(())
        });
    if let Err(error) = result {
        panic!("{error}");
    }
    finish(router.into_inner());
}
