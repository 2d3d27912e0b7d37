//! Fragmentation: put together again, the pieces are the packet, whatever the sizes.

use weir_buf::Vector;
use weir_graph::DropReason;
use weir_wire::Ipv4Header;
use weir_wire::build::{self, Ends};

use crate::forward::{alter, with_options};
use crate::rig::*;
use crate::sight;

/// Puts fragments together: the payload from its first byte on, and whether the last piece came.
fn together(frames: &[Sent], mtu: usize) -> (usize, Vec<u8>, bool) {
    let (mut payload, mut start, mut last) = (Vec::new(), None, false);
    for (interface, frame) in frames {
        let header: Ipv4Header = sight::header(frame);
        assert_eq!(*interface, EAST);
        assert!(
            frame.len() - 14 <= mtu && !last,
            "nothing over the MTU, nothing behind the last"
        );
        let begin = *start.get_or_insert(usize::from(header.fragment_offset()) * 8);
        assert_eq!(
            usize::from(header.fragment_offset()) * 8,
            begin + payload.len(),
            "no gap, no overlap, in order"
        );
        payload.extend_from_slice(sight::payload(frame));
        last = !header.more_fragments();
        assert!(last || sight::payload(frame).len().is_multiple_of(8));
    }
    (start.unwrap(), payload, last)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + n / 251) as u8).collect()
}

/// A UDP packet of `total` bytes.
fn of_total(total: usize) -> Vec<u8> {
    let mut frame = build::udp4(&through("10.0.2.2"), &bytes(total - 28));
    alter(&mut frame, |header| header.set_identification(0x1234));
    frame
}

#[test]
fn every_size_at_every_mtu_comes_together_again() {
    for mtu in [68, 69, 75, 296, 576, 577, 1492, 1500] {
        let mut router = Router::with_mtu(mtu as u32);
        let (mut count, mut made) = (0, 0);
        let step = if mtu > 1000 { 13 } else { 1 };
        for total in (mtu + 1..=3 * mtu).step_by(step).chain([3 * mtu]) {
            let frame = of_total(total);
            let sent = router.send(WEST, &frame);
            let piece = (mtu - 20) & !7;
            assert_eq!(
                sent.len(),
                (total - 20).div_ceil(piece),
                "no more pieces than needed"
            );
            let (start, payload, last) = together(&sent, mtu);
            assert_eq!((start, last), (0, true));
            assert_eq!(payload, frame[34..]);
            for (_, fragment) in &sent {
                let header = sight::header(fragment);
                assert_eq!(
                    (header.ttl, header.identification(), header.header_len()),
                    (63, 0x1234, 20)
                );
                assert_eq!(
                    (header.source(), header.destination()),
                    (ip("10.0.1.2"), ip("10.0.2.2"))
                );
                assert!(
                    fragment.starts_with(&their_mac(2, 2).0)
                        && fragment[6..].starts_with(&our_mac(EAST).0)
                );
            }
            count += 1;
            made += sent.len() as u64 - 1;
        }
        let totals = &router.graph.counters().totals;
        assert_eq!(
            (
                totals.input.get(),
                totals.originated.get(),
                totals.output.get()
            ),
            (count, made, count + made)
        );
    }
}

#[test]
fn packets_in_chunks_of_any_size_are_cut_right() {
    for chunk in [200, 1000, 1490, 2240] {
        for mtu in [576, 1500] {
            let mut router = Router::with_mtu(mtu as u32);
            for total in [2300, 4000, 9000] {
                let frame = of_total(total);
                let mut vector = Vector::default();
                vector.push(router.packet_cut(&frame, chunk));
                let sent = router.send_vector(WEST, &mut vector);
                let (_, payload, last) = together(&sent, mtu);
                assert!(
                    last && payload == frame[34..],
                    "{total} bytes in chunks of {chunk} to {mtu}"
                );
            }
        }
    }
}

#[test]
fn pieces_of_several_chunks_are_cut_right() {
    for chunk in [333, 1490, 2240] {
        for mtu in [2227, 2240, 4000, 8999] {
            let mut router = Router::with_mtu(mtu as u32);
            for total in [9000, 9216, 65_000] {
                let frame = of_total(total);
                if total.div_ceil(chunk) > 64 {
                    continue;
                }
                let mut vector = Vector::default();
                vector.push(router.packet_cut(&frame, chunk));
                let sent = router.send_vector(WEST, &mut vector);
                assert_eq!(
                    sent.len(),
                    (total - 20).div_ceil((mtu - 20) & !7),
                    "no more pieces than needed"
                );
                let (_, payload, last) = together(&sent, mtu);
                assert!(
                    last && payload == frame[34..],
                    "{total} bytes in chunks of {chunk} to {mtu}"
                );
            }
        }
    }
}

#[test]
fn a_fragment_is_cut_again() {
    let mut router = Router::with_mtu(600);
    for (offset, more) in [(0, true), (185, true), (370, false), (6000, true)] {
        let mut frame = of_total(1500);
        alter(&mut frame, |header| header.set_fragment(offset, more));
        let sent = router.send(WEST, &frame);
        let (start, payload, last) = together(&sent, 600);
        assert_eq!((start, last), (usize::from(offset) * 8, !more));
        assert_eq!(payload, frame[34..]);
    }
}

#[test]
fn a_fragment_that_ends_beyond_the_longest_packet_is_not_cut() {
    let mut router = Router::with_mtu(600);
    let mut frame = of_total(1500);
    alter(&mut frame, |header| header.set_fragment(0x1fff, false));
    assert!(router.send(WEST, &frame).is_empty());
    assert_eq!(
        router.drops(),
        [("ip4-fragment", DropReason::Ip4BadLength, WEST, 1)]
    );
}

#[test]
fn only_options_with_the_copy_bit_are_repeated() {
    // Security (130, copied), a no-operation, record route (7, not copied), stream id (136, copied).
    let options = [
        &[130, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9][..],
        &[1],
        &[7, 7, 4, 0, 0, 0, 0],
        &[136, 4, 9, 9],
        &[0],
    ]
    .concat();
    assert_eq!(options.len() % 4, 0);
    for mtu in [68, 100, 576] {
        let mut router = Router::with_mtu(mtu);
        let frame = with_options(&of_total(1400), &options);
        let sent = router.send(WEST, &frame);
        let (_, payload, last) = together(&sent, mtu as usize);
        assert!(last && payload == frame[34 + options.len()..]);
        assert_eq!(sent[0].1[34..34 + options.len()], options);
        let copied = [&options[..11], &[136, 4, 9, 9], &[0]].concat();
        for (_, fragment) in &sent[1..] {
            assert_eq!((fragment[14], &fragment[34..50]), (0x49, &copied[..]));
        }
    }
}

#[test]
fn options_that_lie_are_never_followed() {
    let mut router = Router::with_mtu(100);
    for options in [
        [130, 0, 1, 1],
        [130, 1, 1, 1],
        [130, 200, 1, 1],
        [1, 1, 1, 130],
        [0, 130, 4, 4],
        [255, 255, 255, 255],
    ] {
        let frame = with_options(&of_total(400), &options);
        // ip4-input would refuse most of them.
        let mut packet = router.packet(&frame);
        packet.set_interface(WEST);
        packet.set_l3_offset(14);
        let entry = router.graph.find("ip4-lookup").unwrap();
        router.graph.inject(entry, packet);
        let sent = router.turn();
        let (_, payload, last) = together(&sent, 100);
        assert!(last && payload == frame[38..], "{options:?}");
    }
}

#[test]
fn an_mtu_without_room_for_eight_bytes_cuts_nothing() {
    let mut router = Router::with_mtu(27);
    assert!(router.send(WEST, &of_total(100)).is_empty());
    assert_eq!(
        router.drops(),
        [("ip4-fragment", DropReason::Ip4BadLength, WEST, 1)]
    );
}

#[test]
fn without_buffers_all_pieces_are_dropped_or_none() {
    for left in 1..6 {
        let mut router = Router::with_mtu(500);
        router.starve(left);
        let sent = router.send(WEST, &of_total(1500));
        // One buffer holds the packet itself, three more are needed for four pieces.
        if left >= 4 {
            assert_eq!(sent.len(), 4);
        } else {
            assert!(sent.is_empty());
            assert_eq!(
                router.drops(),
                [("ip4-fragment", DropReason::NoBuffer, WEST, 1)]
            );
        }
    }
}

#[test]
fn a_packet_at_the_end_of_its_time_is_not_cut() {
    let mut router = Router::with_mtu(500);
    let frame = build::udp4(
        &Ends {
            ttl: 1,
            ..through("10.0.2.2")
        },
        &bytes(1000),
    );
    let (interface, got) = router.send_one(WEST, &frame);
    assert_eq!((interface, sight::icmp(&got).kind), (WEST, 11));
}

#[test]
fn pieces_wait_together_for_their_neighbour() {
    let mut router = Router::with_mtu(500);
    let mut frame = of_total(1400);
    alter(&mut frame, |header| header.set_destination(ip("10.0.2.50")));
    assert_eq!(router.send(WEST, &frame).len(), 1, "the question");
    router.neighbor(EAST, "10.0.2.50", 500);
    router.publish();
    router
        .graph
        .release(weir_nodes::hold_key(EAST, crate::rig::address("10.0.2.50")));
    let sent = router.turn();
    let (_, payload, last) = together(&sent, 500);
    assert!(last && payload == frame[34..]);
}
