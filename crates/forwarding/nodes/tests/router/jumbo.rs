//! Packets over several chunks: whatever a node does to a packet in one chunk, it does to one in many.

use weir_buf::Vector;
use weir_graph::DropReason;
use weir_wire::build::{self, Ends};
use weir_wire::{IpProtocol, MacAddr};

use crate::forward::{alter, with_options};
use crate::ip6::{alter6, with_extensions};
use crate::mpls::under;
use crate::rig::*;
use crate::sight;

/// A bit more than what an MTU of 1500 takes.
const LONG: usize = 1600;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 5 + n / 253) as u8).collect()
}

/// Frames for every way through the router, good ones and bad ones.
fn frames() -> Vec<(u32, Vec<u8>)> {
    let mut frames = Vec::new();
    let udp4 = |to: &str, len| build::udp4(&through(to), &bytes(len));
    for len in [200, 1400, LONG] {
        for to in [
            "10.0.2.2",
            "10.0.3.2",
            "172.16.3.4",
            "198.18.0.1",
            "198.19.1.1",
            "8.8.8.8",
            "10.0.1.1",
            "10.50.0.1",
            "10.52.0.1",
        ] {
            frames.push((WEST, udp4(to, len)));
            let mut kept = udp4(to, len);
            alter(&mut kept, |header| header.set_dont_fragment(true));
            frames.push((WEST, kept));
        }
        frames.push((
            WEST,
            build::udp4(
                &Ends {
                    ttl: 1,
                    ..through("10.0.2.2")
                },
                &bytes(len),
            ),
        ));
        frames.push((WEST, with_options(&udp4("10.0.2.2", len), &[148, 4, 0, 0])));
        frames.push((
            WEST,
            build::echo4(&through("10.0.2.1"), build::ECHO_REQUEST, 7, 9, &bytes(len)),
        ));
        let mut wrong = build::echo4(&through("10.0.2.1"), build::ECHO_REQUEST, 7, 9, &bytes(len));
        *wrong.last_mut().unwrap() ^= 1;
        frames.push((WEST, wrong));
        let mut padded = udp4("10.0.2.2", len);
        padded.extend([0xee; 300]);
        frames.push((WEST, padded));
        for to in [
            "2001:db8:2::2",
            "2001:db8:a::1",
            "2001:db8:c::1",
            "2001:db8:e::1",
            "2001:db8:ffff::1",
            "2001:db8:2::1",
        ] {
            frames.push((WEST, build::udp6(&through6(to), &bytes(len))));
        }
        let mut late = build::udp6(&through6("2001:db8:2::2"), &bytes(len));
        alter6(&mut late, |header| header.hop_limit = 1);
        frames.push((WEST, late));
        let hops = with_extensions(
            &build::udp6(&through6("2001:db8:2::2"), &bytes(len)),
            IpProtocol::HOP_BY_HOP,
            &[17, 0, 1, 4, 0, 0, 0, 0],
        );
        frames.push((WEST, hops));
        for label in [
            100, 101, 102, 103, 104, 105, 106, 107, 108, 110, 111, 112, 113, 999,
        ] {
            frames.push((WEST, under(&udp4("10.0.2.2", len), &[(label, 3, 64)])));
            frames.push((WEST, under(&udp4("10.0.2.2", len), &[(label, 3, 1)])));
            frames.push((
                WEST,
                under(
                    &build::udp6(&through6("2001:db8:2::2"), &bytes(len)),
                    &[(label, 3, 64)],
                ),
            ));
        }
        let station = MacAddr([2, 0, 0, 9, 9, 9]);
        let crossing = Ends {
            destination_mac: station,
            ..through("10.0.2.2")
        };
        frames.push((LEFT, build::udp4(&crossing, &bytes(len))));
        frames.push((
            LEFT,
            build::tagged(&build::udp4(&crossing, &bytes(len)), 100, 3),
        ));
    }
    frames
}

/// A drop: node, reason, interface, how many.
type Dropped = (&'static str, DropReason, u32, u64);

/// What leaves and what is dropped, for a frame in chunks of at most so many bytes.
fn outcome(interface: u32, frame: &[u8], most: usize) -> (Vec<Sent>, Vec<Dropped>) {
    let mut router = Router::with_labels(Setup::default());
    let mut vector = Vector::default();
    vector.push(router.packet_cut(frame, most));
    (router.send_vector(interface, &mut vector), router.drops())
}

#[test]
fn chunks_change_nothing() {
    let (mut left, mut dropped) = (0, 0);
    for (interface, frame) in frames() {
        let (sent, drops) = outcome(interface, &frame, frame.len());
        for most in [150, 333, 1000] {
            let in_chunks = outcome(interface, &frame, most);
            assert_eq!(in_chunks.1, drops, "chunks of {most}: {frame:02x?}");
            assert_eq!(in_chunks.0, sent, "chunks of {most}: {frame:02x?}");
        }
        (left, dropped) = (left + sent.len(), dropped + drops.len());
    }
    assert!(left > 150 && dropped > 50, "{left} left, {dropped} dropped");
}

#[test]
fn the_router_answers_long_echo_requests() {
    let mut router = Router::with_mtu(9216);
    for size in [2198, 2199, 4001, 9188] {
        for most in [2240, 1001, 200] {
            let ends = Ends {
                source_mac: their_mac(2, 2),
                destination_mac: our_mac(EAST),
                source: ip("10.0.2.2"),
                ..through("10.0.2.1")
            };
            let request = build::echo4(&ends, build::ECHO_REQUEST, 7, 9, &bytes(size));
            let mut vector = Vector::default();
            vector.push(router.packet_cut(&request, most));
            let sent = router.send_vector(EAST, &mut vector);
            let reply = sight::icmp(&sent[0].1);
            assert_eq!((sent.len(), reply.kind, reply.quote), (1, 0, bytes(size)));
        }
    }
    assert!(router.drops().is_empty());
}

/// An ICMP header that begins where the first chunk ends is not there, for a router; nothing is read beyond it.
#[test]
fn headers_cut_in_two_are_dropped() {
    for (frame, reason) in [
        (
            build::echo4(&through("10.0.2.1"), build::ECHO_REQUEST, 7, 9, &bytes(80)),
            DropReason::IcmpTruncated,
        ),
        (
            build::udp4(&through("10.0.2.2"), &bytes(80)),
            DropReason::Ip4Truncated,
        ),
        (
            build::udp6(&through6("2001:db8:2::2"), &bytes(80)),
            DropReason::Ip6Truncated,
        ),
    ] {
        let cut = if reason == DropReason::IcmpTruncated {
            38
        } else {
            30
        };
        let (sent, drops) = outcome(WEST, &frame, cut);
        assert!(sent.is_empty() && drops[0].1 == reason, "{drops:?}");
    }
}
