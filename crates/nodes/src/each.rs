//! The one loop over frames: while some are worked on, the next ones are fetched.
//!
//! A vector's frames and handles fill most of a first-level cache, and whatever ran before has used
//! it too, so about every second header has to come from the second level again. Few packets fit the
//! processor's window at once, so it cannot hide that by itself.

use weir_buf::Pkt;

/// How many packets ahead frames are fetched.
const AHEAD: usize = 8;

/// Calls `body` for each packet with its place in the vector, in order.
#[inline(always)]
pub(crate) fn frame(packets: &mut [Pkt], mut body: impl FnMut(usize, &mut Pkt)) {
    packets.iter().take(AHEAD).for_each(Pkt::prefetch);
    let (mut later, mut place) = (packets, 0);
    while let Some((packet, rest)) = later.split_first_mut() {
        if let Some(soon) = rest.get(AHEAD - 1) {
            soon.prefetch();
        }
        body(place, packet);
        place += 1;
        later = rest;
    }
}
