//! The capture tap: what it takes, what it cuts, what it loses, and that it stops.

mod common;

use common::{Packets, Plain, filled, packets};
use weir_buf::{DATA_ROOM, Pkt};
use weir_graph::{DropReason, Look, Marks, Point, Tap};
use weir_telemetry::capture::{CELL, CaptureSource, CaptureTap, Captured, Filter, Reasons, Seen};

const EVERYTHING: Filter = Filter {
    rx: true,
    tx: true,
    drop: Some(Reasons::ALL),
    interface: None,
    snap: 262_144,
};
const DROP: Point = Point::Drop {
    node: 4,
    reason: DropReason::NoRoute,
};

fn look(tap: &mut CaptureTap, point: Point, interface: u32, now: u64, packets: &[Pkt]) {
    let look = Look {
        world: &Plain,
        worker: 0,
        now,
        point,
        interface,
        inner: false,
        left: 0,
    };
    tap.look(&look, packets, &mut Marks::default());
}

fn all(source: &mut CaptureSource) -> Vec<Captured> {
    std::iter::from_fn(|| source.pop()).collect()
}

#[test]
fn packets_come_out_as_they_went_by() {
    let Packets { packets, .. } = packets(3, 100);
    let (mut tap, mut control) = CaptureTap::new();
    look(&mut tap, Point::Rx, 1, 5, &packets);
    let mut source = control.begin(1, EVERYTHING).unwrap();
    assert!(source.is_empty(), "what passed before is not captured");
    look(&mut tap, Point::Rx, 1, 10, &packets);
    look(&mut tap, Point::Tx, 2, 20, &packets[..1]);
    look(&mut tap, DROP, 3, 30, &packets[2..]);
    let got = all(&mut source);
    let seen: Vec<_> = got
        .iter()
        .map(|packet| (packet.time, packet.interface, packet.seen, packet.data[1]))
        .collect();
    let dropped = Seen::Drop {
        node: 4,
        reason: DropReason::NoRoute,
    };
    assert_eq!(
        seen,
        [
            (10, 1, Seen::Rx, 0),
            (10, 1, Seen::Rx, 1),
            (10, 1, Seen::Rx, 2),
            (20, 2, Seen::Tx, 0),
            (30, 3, dropped, 2)
        ]
    );
    assert!(
        got.iter()
            .all(|packet| packet.length == 100 && packet.data.len() == 100)
    );
}

#[test]
fn the_filter_decides() {
    let Packets { packets, .. } = packets(1, 60);
    for (filter, points) in [
        (
            Filter {
                tx: false,
                drop: None,
                ..EVERYTHING
            },
            [true, false, false, false],
        ),
        (
            Filter {
                rx: false,
                drop: None,
                ..EVERYTHING
            },
            [false, true, false, false],
        ),
        (
            Filter {
                rx: false,
                tx: false,
                drop: Some(Reasons::of([DropReason::NoRoute])),
                ..EVERYTHING
            },
            [false, false, true, false],
        ),
        (
            Filter {
                rx: false,
                tx: false,
                drop: Some(Reasons::of([DropReason::TxFull])),
                ..EVERYTHING
            },
            [false, false, false, true],
        ),
        (
            Filter {
                interface: Some(8),
                ..EVERYTHING
            },
            [false; 4],
        ),
        (
            Filter {
                interface: Some(7),
                ..EVERYTHING
            },
            [true; 4],
        ),
    ] {
        let (mut tap, mut control) = CaptureTap::new();
        let mut source = control.begin(1, filter).unwrap();
        let other = Point::Drop {
            node: 4,
            reason: DropReason::TxFull,
        };
        for (point, expected) in [Point::Rx, Point::Tx, DROP, other].into_iter().zip(points) {
            look(&mut tap, point, 7, 1, &packets);
            assert_eq!(
                all(&mut source).len(),
                usize::from(expected),
                "{filter:?} {point:?}"
            );
        }
    }
}

#[test]
fn every_length_survives_and_the_snap_length_cuts() {
    let Packets { pool, .. } = packets(0, 60);
    for length in [0, 1, 60, CELL - 1, CELL, CELL + 1, 1514, DATA_ROOM] {
        let bytes: Vec<u8> = (0..length).map(|place| (place * 7) as u8).collect();
        let packet = [filled(&pool, &bytes)];
        for snap in [14, 96, CELL, 262_144] {
            let (mut tap, mut control) = CaptureTap::new();
            let mut source = control.begin(1, Filter { snap, ..EVERYTHING }).unwrap();
            look(&mut tap, Point::Rx, 1, 1, &packet);
            let got = all(&mut source);
            assert_eq!((got.len(), got[0].length as usize), (1, length));
            assert_eq!(
                got[0].data,
                bytes[..length.min(snap)],
                "{length} octets, {snap} kept"
            );
        }
    }
}

#[test]
fn a_packet_in_several_buffers_comes_in_one_piece() {
    let Packets { pool, .. } = packets(0, 60);
    let bytes: Vec<u8> = (0..9000_u32).map(|place| (place / 3) as u8).collect();
    let mut chain = filled(&pool, &bytes[..DATA_ROOM]);
    for piece in bytes[DATA_ROOM..].chunks(DATA_ROOM) {
        assert!(chain.append(filled(&pool, piece)).is_ok());
    }
    let (mut tap, mut control) = CaptureTap::new();
    let mut source = control.begin(1, EVERYTHING).unwrap();
    look(&mut tap, Point::Tx, 1, 1, &[chain]);
    assert_eq!(all(&mut source)[0].data, bytes);
}

#[test]
fn what_finds_no_room_is_counted_and_nothing_is_torn() {
    let Packets { packets, .. } = packets(256, 1500);
    let (mut tap, mut control) = CaptureTap::new();
    let (mut slow, mut fast) = (
        control.begin(1, EVERYTHING).unwrap(),
        control.begin(2, EVERYTHING).unwrap(),
    );
    let mut read = 0;
    for _ in 0..40 {
        look(&mut tap, Point::Rx, 1, 1, &packets);
        read += all(&mut fast).len();
    }
    let (taken, lost) = (slow.counters.taken.get(), slow.counters.lost.get());
    let got = all(&mut slow);
    assert_eq!(taken, 40 * 256);
    assert!(
        lost > 1000 && got.len() as u64 + lost == taken,
        "{} of {taken} came, {lost} lost",
        got.len()
    );
    assert!(
        got.iter()
            .all(|packet| packet.data.len() == 1500 && packet.data[2..] == [0xee; 1498])
    );
    assert_eq!(
        (read, fast.counters.lost.get()),
        (40 * 256, 0),
        "a slow reader is nobody else's matter"
    );
}

#[test]
fn an_ended_capture_is_written_no_more_and_lets_go() {
    let Packets { packets, .. } = packets(1, 60);
    let (mut tap, mut control) = CaptureTap::new();
    let (mut one, mut two) = (
        control.begin(1, EVERYTHING).unwrap(),
        control.begin(2, EVERYTHING).unwrap(),
    );
    look(&mut tap, Point::Rx, 1, 1, &packets);
    control.end(1);
    look(&mut tap, Point::Rx, 1, 2, &packets);
    assert_eq!((all(&mut one).len(), all(&mut two).len()), (1, 2));
    control.end(2);
    Tap::<Plain>::tick(&mut tap, 3);
    assert_eq!(std::sync::Arc::strong_count(&two.counters), 1);
}

#[test]
fn more_than_the_most_are_not_begun() {
    let Packets { packets, .. } = packets(1, 60);
    let (mut tap, mut control) = CaptureTap::new();
    let mut sources: Vec<_> = (0..CaptureTap::MOST as u64 + 1)
        .map(|number| control.begin(number, EVERYTHING).unwrap())
        .collect();
    look(&mut tap, Point::Rx, 1, 1, &packets);
    let reported: Vec<usize> = sources.iter_mut().map(|source| all(source).len()).collect();
    assert_eq!(reported, [&[1; CaptureTap::MOST][..], &[0]].concat());
}
