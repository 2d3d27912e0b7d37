//! Looking asks for no memory: counted by an allocator that counts what this thread asks for.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{Packets, Plain, Rig, packets};
use weir_graph::{Look, Marks, Point, Tap};
use weir_telemetry::capture::{CaptureTap, Filter, Reasons};

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; counting allocates nothing, since
// the cell needs neither initialisation nor a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.with(|asked| asked.set(asked.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory came from the system's allocator with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn asked() -> u64 {
    ASKED.with(Cell::get)
}

#[test]
fn looking_asks_for_no_memory() {
    let Packets { packets, .. } = packets(256, 200);
    let mut rig = Rig::with_ring(1, 1, 256);
    let before = asked();
    drop(std::hint::black_box(vec![1_u8]));
    assert_eq!(asked(), before + 1, "the allocator counts");

    // An interface that comes for the first time gets its counter.
    (0..200).for_each(|interface| rig.look_on(interface, &packets));
    let before = asked();
    // Each rate once with a reader and once into a ring that is full; more interfaces than usual.
    for rate in [1, 3, 100, 10_000, 0] {
        rig.settings.set(rate, 256);
        for round in 0..2_000_u32 {
            rig.look_on(round % 200, &packets);
            if round % 2 == 0 {
                rig.drain(|_| ());
            }
        }
    }
    assert!(rig.lost() > 0);
    assert_eq!(asked(), before, "look() asked for memory");
}

#[test]
fn capturing_asks_for_no_memory() {
    let Packets { packets, .. } = packets(256, 1500);
    let (mut tap, mut control) = CaptureTap::new();
    let filter = Filter {
        rx: true,
        tx: false,
        drop: Some(Reasons::ALL),
        interface: None,
        snap: 262_144,
    };
    let source = control.begin(1, filter).unwrap();
    let mut marks = Marks::default();
    let before = asked();
    // Into a ring with room, and into one that is full.
    for now in 0..100 {
        let look = Look {
            world: &Plain,
            worker: 0,
            now,
            point: Point::Rx,
            interface: 1,
            inner: false,
            left: 0,
        };
        tap.look(&look, &packets, &mut marks);
    }
    assert!(source.counters.lost.get() > 0 && !source.is_empty());
    assert_eq!(asked(), before, "look() asked for memory");
}
