//! Any frames, on any interface, at any time, through a whole router: the rig of the nodes' own tests
//! checks the balance and the pool after every turn.
//!
//! The input is a list of frames, each behind three bytes: what to do in the lower four bits of the
//! first (0 to 8: the interface; else let time pass), whether to make the checksum of the IPv4 header or of
//! the ICMPv6 message right in its highest, then how many of the following bytes the frame has.
//!
//! Run with `cargo +nightly fuzz run packet_path`.

#![no_main]

#[expect(dead_code, reason = "the tests need the rest")]
#[path = "../../crates/forwarding/nodes/tests/router/rig.rs"]
mod rig;

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use rig::{Router, SECOND, Setup};
use weir_graph::DropReason;

/// Frames for one input; what waits then still leaves room in the pool.
const MOST: usize = 256;

thread_local! {
    /// One router for all inputs: making one costs more than most inputs do.
    static ROUTER: RefCell<Router> = RefCell::new(Router::new(Setup { mtu: 300, chunks: 2048, ..Setup::default() }));
}

fuzz_target!(|input: &[u8]| ROUTER.with_borrow_mut(|router| feed(router, input)));

fn feed(router: &mut Router, input: &[u8]) {
    let mut rest = input;
    for _ in 0..MOST {
        let Some((&[what, high, low], behind)) = rest.split_first_chunk() else {
            break;
        };
        let len = usize::from(u16::from_be_bytes([high & 0x0f, low])).min(behind.len());
        let (frame, behind) = behind.split_at(len);
        rest = behind;
        if what & 15 > 8 {
            router.now += SECOND / 2;
            router.turn();
            continue;
        }
        let mut frame = frame.to_vec();
        if what & 0x80 != 0
            && let Some(l3) = frame.get_mut(14..)
        {
            // Octet 6 of an IPv6 header says ICMPv6; of an IPv4 header it is a part of the fragment offset.
            match (l3.first().map(|first| first >> 4), l3.get(6)) {
                (Some(6), Some(58)) => weir_wire::icmp6::checksum_set(l3),
                _ => weir_wire::checksum::ipv4_header_set(l3),
            }
        }
        router.send(u32::from(what & 15), &frame);
    }
    router.give_up(DropReason::Stopped);
    // The next input finds every budget full and nothing asked for lately.
    router.now += 10 * SECOND;
    router.events();
}
