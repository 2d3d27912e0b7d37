//! The cross connect: every frame as it is, counted by kind.

use weir_graph::DropReason;
use weir_wire::{MacAddr, build};

use crate::rig::*;

const MULTICAST: MacAddr = MacAddr([1, 0, 0x5e, 0, 0, 9]);

fn frame(destination: MacAddr, ethertype: [u8; 2], len: usize) -> Vec<u8> {
    let mut frame = [&destination.0[..], &their_mac(4, 1).0, &ethertype].concat();
    frame.extend((14..len).map(|n| n as u8));
    frame.truncate(len);
    frame
}

#[test]
fn frames_pass_unchanged_both_ways() {
    let mut router = Router::default();
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for destination in [their_mac(9, 9), MULTICAST, MacAddr::BROADCAST] {
        for ethertype in [
            [8, 0],
            [8, 6],
            [0x86, 0xdd],
            [0x88, 0x47],
            [0x88, 0xcc],
            [0x81, 0],
            [0x88, 0xa8],
            [0, 60],
            [0xff, 0xff],
        ] {
            frames.extend(
                [14, 15, 33, 59, 60, 64, 1514].map(|len| frame(destination, ethertype, len)),
            );
        }
    }
    frames.push(build::tagged(
        &build::udp4(&through("10.0.2.2"), &[1; 100]),
        42,
        5,
    ));
    frames.push(build::udp4(
        &build::Ends {
            ttl: 0,
            ..through("10.0.2.2")
        },
        &[1; 100],
    ));
    for (from, to) in [(LEFT, RIGHT), (RIGHT, LEFT)] {
        let sent = router.send_all(from, &frames);
        let expected: Vec<Sent> = frames.iter().map(|frame| (to, frame.clone())).collect();
        assert_eq!(sent, expected);
        for one in &frames {
            assert_eq!(router.send_one(from, one), (to, one.clone()));
        }
    }
    assert!(router.drops().is_empty());
}

#[test]
fn the_mtu_of_the_far_side_is_the_limit() {
    for mtu in [100, 1500] {
        let mut router = Router::with_mtu(mtu as u32);
        let plain = |len| frame(their_mac(9, 9), [0x88, 0xcc], len);
        let tagged = |len| frame(their_mac(9, 9), [0x81, 0], len);
        let frames = [
            plain(mtu + 14),
            plain(mtu + 15),
            tagged(mtu + 14),
            tagged(mtu + 18),
            tagged(mtu + 19),
            plain(mtu + 13),
        ];
        // As one vector and one by one.
        let sent = router.send_all(LEFT, &frames);
        assert_eq!(
            sent.iter()
                .map(|sent| sent.1.len() - mtu)
                .collect::<Vec<_>>(),
            [14, 14, 18, 13]
        );
        let singly: Vec<_> = frames
            .iter()
            .flat_map(|frame| router.send(LEFT, frame))
            .collect();
        assert_eq!(singly, sent);
        assert_eq!(
            router.drops(),
            [("eth-input", DropReason::FrameTooLong, LEFT, 4)]
        );
    }
}

#[test]
fn frames_in_several_chunks_pass_or_are_too_long() {
    let mut router = Router::with_mtu(9000);
    let jumbo = frame(their_mac(9, 9), [0x88, 0xcc], 9014);
    assert_eq!(router.send_one(LEFT, &jumbo), (RIGHT, jumbo.clone()));
    assert!(router.send(RIGHT, &jumbo).is_empty());
    assert_eq!(
        router.drops(),
        [("eth-input", DropReason::FrameTooLong, RIGHT, 1)]
    );
}

#[test]
fn kinds_are_counted_apart_in_and_out() {
    let mut router = Router::default();
    let mut frames = Vec::new();
    for n in 0..200 {
        let destination = [
            their_mac(9, 9),
            MULTICAST,
            MacAddr::BROADCAST,
            their_mac(9, 8),
        ][n % 4];
        frames.push(frame(destination, [8, 0], 60 + n));
    }
    frames.push(frame(MULTICAST, [8, 0], 2000));
    frames.push(vec![0xff; 13]);
    let bytes: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
    let sent = router.send_all(LEFT, &frames);
    assert_eq!(sent.len(), 200);
    let (rx, tx) = (
        router.interface(LEFT).counters.rx(),
        router.interface(RIGHT).counters.tx(),
    );
    assert_eq!(
        (rx.packets, rx.bytes, rx.multicast, rx.broadcast, rx.unicast),
        (202, bytes, 51, 50, 101)
    );
    assert_eq!(
        (tx.packets, tx.bytes, tx.multicast, tx.broadcast, tx.unicast),
        (200, bytes - 2013, 50, 50, 100)
    );
    assert_eq!(router.dropped(DropReason::TooShort), 1);
}

#[test]
fn what_the_driver_does_not_take_is_dropped_and_not_counted_as_sent() {
    let mut router = Router::default();
    let frames: Vec<_> = (0..10)
        .map(|n| frame([their_mac(9, 9), MULTICAST][n % 2], [8, 0], 60 + n))
        .collect();
    *router.room.lock().unwrap() = 3;
    assert_eq!(router.send_all(LEFT, &frames).len(), 3);
    let tx = router.interface(RIGHT).counters.tx();
    assert_eq!(
        (tx.packets, tx.bytes, tx.multicast, tx.unicast),
        (3, 60 + 61 + 62, 1, 2)
    );
    assert_eq!(router.drops(), [("port-tx", DropReason::TxFull, LEFT, 7)]);
}

#[test]
fn a_cross_connect_to_nowhere_drops() {
    let mut router = Router::default();
    router.change(LEFT, |left| {
        left.input = weir_port::interface::Input::CrossConnect(MUTE)
    });
    assert!(
        router
            .send(LEFT, &frame(their_mac(9, 9), [8, 0], 60))
            .is_empty()
    );
    assert_eq!(router.drops(), [("port-tx", DropReason::TxDown, LEFT, 1)]);
    router.change(LEFT, |left| {
        left.input = weir_port::interface::Input::CrossConnect(99)
    });
    assert!(
        router
            .send(LEFT, &frame(their_mac(9, 9), [8, 0], 60))
            .is_empty()
    );
    assert_eq!(
        router.dropped(DropReason::FrameTooLong),
        1,
        "an interface that does not exist takes no byte"
    );
}

#[test]
fn what_comes_from_an_interface_that_is_gone_is_dropped_and_nobodys() {
    let mut router = Router::default();
    for interface in [0, 77, u32::from(u16::MAX)] {
        assert!(
            router
                .send(interface, &frame(their_mac(9, 9), [8, 0], 60))
                .is_empty()
        );
    }
    assert_eq!(
        router.drops(),
        [("eth-input", DropReason::InterfaceDown, 0, 3)]
    );
}
