//! The packet path asks nobody for memory once it has run for a while: counted at the allocator.

#[expect(dead_code, reason = "the other tests of this router need the rest")]
#[path = "router/rig.rs"]
mod rig;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use rig::*;
use weir_buf::{VECTOR, Vector};
use weir_port::null::NullTx;
use weir_wire::build::{self, Ends, Ends6};
use weir_wire::{ArpPacket, EtherType, EthernetHeader, MacAddr, nd};
use zerocopy::IntoBytes;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator as it came; counting allocates nothing,
// since the cell is initialised at compile time and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.with(|asked| asked.set(asked.get() + 1));
        // SAFETY: the caller keeps `alloc`'s conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s conditions, and the memory came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ASKED.with(|asked| asked.set(asked.get() + 1));
        // SAFETY: the caller keeps `realloc`'s conditions, and the memory came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations in 1000 turns of these frames on an interface, and packets sent in them.
fn asked_in_1000_turns(interface: u32, frames: &[Vec<u8>]) -> (u64, u64) {
    let mut router = Router::new(Setup {
        mtu: 600,
        chunks: 8192,
        ..Setup::default()
    });
    router
        .ports
        .iter_mut()
        .for_each(|port| port.queue = Box::new(NullTx));
    let mut vector = Vector::with_capacity(2 * VECTOR);
    let mut turn = |router: &mut Router| {
        for frame in frames.iter().cycle().take(VECTOR) {
            let mut packet = router.cache.alloc().unwrap();
            assert!(packet.fill(frame));
            vector.push(packet);
        }
        router.now += 1_000_000;
        router.breathe(interface, &mut vector);
        assert!(vector.is_empty());
    };
    (0..50).for_each(|_| turn(&mut router));
    let before = ASKED.get();
    (0..1000).for_each(|_| turn(&mut router));
    let asked = ASKED.get() - before;
    router.balance();
    (asked, router.graph.counters().totals.output.get())
}

#[test]
fn the_counter_counts() {
    let before = ASKED.get();
    drop(std::hint::black_box(vec![1u8; 100]));
    assert_eq!(ASKED.get() - before, 1);
}

#[test]
fn a_cross_connect_allocates_nothing() {
    let frames = [
        build::udp4(&through("10.0.2.2"), &[0; 22]),
        vec![0xff; 64],
        vec![1; 900],
    ];
    let (asked, sent) = asked_in_1000_turns(LEFT, &frames);
    assert_eq!(asked, 0);
    assert!(sent > 100_000);
}

#[test]
fn forwarding_allocates_nothing() {
    let frames: Vec<_> = (0..64u16)
        .map(|n| Ends {
            source_port: n,
            ..through(["10.0.2.2", "172.16.0.1", "192.168.3.3", "10.0.3.2"][usize::from(n % 4)])
        })
        .map(|ends| build::udp4(&ends, &[0; 22]))
        .collect();
    assert_eq!(
        asked_in_1000_turns(WEST, &frames),
        (0, 1050 * VECTOR as u64)
    );
}

#[test]
fn answering_holding_dropping_and_cutting_allocate_nothing() {
    let arp = ArpPacket::new(
        ArpPacket::REQUEST,
        their_mac(1, 2),
        ip("10.0.1.2"),
        MacAddr::ZERO,
        ip("10.0.1.1"),
    );
    let frames = [
        build::udp4(&through("10.0.2.2"), &[0; 1400]),
        build::udp4(&through("8.8.8.8"), &[0; 40]),
        build::udp4(
            &Ends {
                ttl: 1,
                ..through("10.0.2.2")
            },
            &[0; 40],
        ),
        build::udp4(&through("10.0.2.77"), &[0; 40]),
        build::udp4(&through("198.18.0.1"), &[0; 40]),
        build::echo4(&through("10.0.1.1"), 8, 1, 1, &[0; 40]),
        build::arp(MacAddr::BROADCAST, &arp),
        vec![7; 13],
    ];
    let (asked, sent) = asked_in_1000_turns(WEST, &frames);
    assert_eq!(asked, 0);
    assert!(sent > 100_000);
}

#[test]
fn forwarding_ipv6_allocates_nothing() {
    let frames: Vec<_> = (0..64u16)
        .map(|n| {
            (
                n,
                [
                    "2001:db8:2::2",
                    "2001:db8:b::1",
                    "2001:db8:a:3::3",
                    "2001:db8:3::2",
                ][usize::from(n % 4)],
            )
        })
        .map(|(source_port, destination)| {
            build::udp6(
                &Ends6 {
                    source_port,
                    ..through6(destination)
                },
                &[0; 22],
            )
        })
        .collect();
    assert_eq!(
        asked_in_1000_turns(WEST, &frames),
        (0, 1050 * VECTOR as u64)
    );
}

#[test]
fn answering_holding_and_dropping_ipv6_allocate_nothing() {
    let own = ip6("2001:db8:1::1");
    let mut question = [0; 86];
    question[..14].copy_from_slice(
        EthernetHeader::new(our_mac(WEST), their_mac(1, 7), EtherType::IPV6).as_bytes(),
    );
    nd::neighbor_probe(
        &mut question[14..],
        ip6("2001:db8:1::7"),
        their_mac(1, 7),
        own,
    )
    .unwrap();
    let frames = [
        build::udp6(&through6("2001:db8:2::2"), &[0; 1400]),
        build::udp6(&through6("2001:db8:ffff::1"), &[0; 40]),
        build::udp6(
            &Ends6 {
                hop_limit: 1,
                ..through6("2001:db8:2::2")
            },
            &[0; 40],
        ),
        build::udp6(&through6("2001:db8:2::77"), &[0; 40]),
        build::udp6(&through6("2001:db8:c::1"), &[0; 40]),
        build::echo6(&through6("2001:db8:1::1"), 128, 1, 1, &[0; 40]),
        build::udp6(&through6("ff0e::1"), &[0; 40]),
        question.to_vec(),
    ];
    let (asked, sent) = asked_in_1000_turns(WEST, &frames);
    assert_eq!(asked, 0);
    assert!(sent > 60_000);
}
