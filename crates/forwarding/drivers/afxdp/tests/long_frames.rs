//! Frames that take several chunks, and so several descriptors, over real veth pairs.
//!
//! Skipped with one line on kernels before 6.6, which have no such frames.

#[allow(dead_code, reason = "each test program uses a part of it")]
mod common;

use common::{Raw, Running, can_run, frame, lab_of, number, pool, wait_for};
use weir_afxdp::{AfxdpConfig, Mode, knows_pieces};
use weir_buf::{DATA_ROOM, Pkt, Pool, Vector};
use weir_netlink::lab::Lab;
use weir_port::{LONGEST_FRAME, Port};

fn long_frames() -> bool {
    let knows = knows_pieces();
    if !knows {
        eprintln!(
            "skipped: this kernel has no AF_XDP frames of several descriptors (Linux 6.6 has)"
        );
    }
    knows && can_run()
}

/// A frame whose octets tell their places.
fn patterned(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = frame(number, len);
    bytes
        .iter_mut()
        .enumerate()
        .skip(18)
        .for_each(|(place, byte)| *byte = (place % 251) as u8);
    bytes
}

#[track_caller]
fn assert_whole(pool: &Pool) {
    let usage = pool.usage();
    assert_eq!((usage.free, usage.lent), (usage.chunks, 0), "{usage:?}");
}

fn opened(lab: &Lab, mode: Mode, pool: &Pool) -> (Running, Raw) {
    let running = Running::open(
        lab,
        &AfxdpConfig {
            mode,
            ring: 256,
            ..AfxdpConfig::new("p0")
        },
        pool,
    );
    (
        running,
        Raw::open(lab.host("h0").unwrap().namespace(), "eth0"),
    )
}

/// Lengths about one chunk, two, and the longest.
const LENGTHS: [usize; 9] = [
    60,
    DATA_ROOM - 1,
    DATA_ROOM,
    DATA_ROOM + 1,
    3000,
    2 * DATA_ROOM,
    2 * DATA_ROOM + 1,
    9014,
    9230,
];

#[test]
fn come_in_and_go_out_whole() {
    if !long_frames() {
        return;
    }
    for (mtu, mode) in [
        (9216, Mode::Native),
        (9216, Mode::Generic),
        (3000, Mode::Native),
    ] {
        let (lab, pool) = (lab_of(1, 1, mtu), pool(4096));
        let (mut router, host) = opened(&lab, mode, &pool);
        assert_eq!(router.port.capabilities().max_frame, mtu as usize + 18);
        let frames: Vec<Vec<u8>> = (0..)
            .zip(LENGTHS)
            .map(|(number, len)| patterned(number, len.min(mtu as usize + 14)))
            .collect();
        frames.iter().for_each(|frame| host.send(frame));
        let mut came = Vec::new();
        wait_for("all frames", || {
            came.extend(
                router
                    .receive(0)
                    .into_iter()
                    .filter(|frame| frame[12..14] == [0x88, 0xb5]),
            );
            came.len() >= frames.len()
        });
        assert!(
            came == frames,
            "{mtu} {mode:?}: {:?}",
            came.iter().map(Vec::len).collect::<Vec<_>>()
        );
        assert_eq!(router.send(0, &frames), frames.len());
        let got = host.collect(frames.len());
        assert!(
            got == frames,
            "{mtu} {mode:?}: {:?}",
            got.iter().map(Vec::len).collect::<Vec<_>>()
        );
        assert_eq!(
            (
                router.counter("tx_refused_q0"),
                router.counter("rx_too_long_q0"),
                router.counter("tx_linearised_q0")
            ),
            (0, 0, 0)
        );
        drop(router);
        assert_whole(&pool);
    }
}

/// Many more than the ring has places for: frames are taken whole or not at all, and stay whole.
#[test]
fn are_taken_whole_or_not_at_all() {
    if !long_frames() {
        return;
    }
    let (lab, pool) = (lab_of(1, 1, 9216), pool(4096));
    let (mut router, host) = opened(&lab, Mode::Native, &pool);
    let frames: Vec<Vec<u8>> = (0..200)
        .map(|number| patterned(number, if number % 7 == 0 { 60 } else { 9000 }))
        .collect();
    let mut sent = 0;
    let mut got = Vec::new();
    wait_for("all are sent", || {
        sent += router.send(0, &frames[sent..frames.len().min(sent + 64)]);
        got.extend(std::iter::from_fn(|| host.receive()));
        sent == frames.len()
    });
    wait_for("all arrive", || {
        router.send(0, &[]);
        got.extend(std::iter::from_fn(|| host.receive()));
        got.len() >= frames.len()
    });
    assert!(
        got == frames,
        "{:?}",
        got.iter()
            .map(|frame| (number(frame), frame.len()))
            .collect::<Vec<_>>()
    );
    drop(router);
    assert_whole(&pool);
}

/// Pieces of any size, many of them, and of another pool.
#[test]
fn are_sent_however_they_are_cut() {
    if !long_frames() {
        return;
    }
    let (lab, pool, other) = (lab_of(1, 1, 9216), pool(4096), pool(256));
    let (mut router, host) = opened(&lab, Mode::Native, &pool);
    let bytes = patterned(1, 9000);
    let cut = |pool: &Pool, size: usize| {
        let mut pieces = bytes.chunks(size).map(|bytes| {
            let mut piece = pool.alloc().unwrap();
            assert!(piece.fill(bytes));
            piece
        });
        let mut head: Pkt = pieces.next().unwrap();
        pieces.for_each(|piece| assert!(head.append(piece).is_ok()));
        head
    };
    let mut vector = Vector::with_capacity(8);
    vector.push(cut(&pool, 1500));
    vector.push(cut(&pool, 200));
    vector.push(cut(&other, 2000));
    let mut empty = cut(&pool, 2000);
    empty.append(pool.alloc().unwrap()).unwrap();
    vector.push(empty);
    let (tx, cache) = (
        router.queues[0].tx.as_deref_mut().unwrap(),
        &mut router.cache,
    );
    assert_eq!(tx.send(&mut vector, cache), 4);
    tx.flush(cache);
    let got = host.collect(4);
    assert!(
        got.len() == 4 && got.iter().all(|frame| *frame == bytes),
        "{:?}",
        got.iter().map(Vec::len).collect::<Vec<_>>()
    );
    assert_eq!(
        router.counter("tx_linearised_q0"),
        3,
        "many pieces, another pool, an empty piece"
    );
    drop(router);
    assert_whole(&pool);
    assert_whole(&other);
}

/// What is longer than any interface takes is left out, counted, and what follows is received.
#[test]
fn too_long_ones_are_left_out() {
    if !long_frames() {
        return;
    }
    let (lab, pool) = (lab_of(1, 1, 20_000), pool(4096));
    let (mut router, host) = opened(&lab, Mode::Native, &pool);
    let lengths = [LONGEST_FRAME, LONGEST_FRAME + 1, 60, 20_014, 11_200, 9000];
    (0..)
        .zip(lengths)
        .for_each(|(number, len)| host.send(&patterned(number, len)));
    let mut came = Vec::new();
    wait_for("the last frame", || {
        came.extend(
            router
                .receive(0)
                .into_iter()
                .filter(|frame| frame[12..14] == [0x88, 0xb5]),
        );
        came.last()
            .is_some_and(|frame: &Vec<u8>| number(frame) == 5)
    });
    assert_eq!(
        came.iter().map(Vec::len).collect::<Vec<_>>(),
        [LONGEST_FRAME, 60, 9000]
    );
    assert_eq!(
        (router.counter("rx_too_long_q0"), router.rx(0).missed()),
        (3, 3)
    );
    assert_eq!(router.send(0, &[patterned(9, LONGEST_FRAME + 1)]), 1);
    assert_eq!(router.counter("tx_refused_q0"), 1);
    drop(router);
    assert_whole(&pool);
}

/// A queue that is closed in the middle of everything gives all chunks back.
#[test]
fn leave_nothing_behind_when_the_port_closes() {
    if !long_frames() {
        return;
    }
    let (lab, pool) = (lab_of(1, 1, 9216), pool(1024));
    let (mut router, host) = opened(&lab, Mode::Native, &pool);
    (0..100).for_each(|number| host.send(&patterned(number, 9000)));
    // One descriptor at a time, so that a frame is open when the port closes.
    let Running {
        queues,
        cache,
        vector,
        ..
    } = &mut router;
    let rx = queues[0].rx.as_deref_mut().unwrap();
    wait_for("frames", || {
        (0..7).for_each(|_| _ = rx.recv(vector, cache, 1));
        !vector.is_empty()
    });
    drop(router);
    assert_whole(&pool);
}
