//! The loops over frames: while some are worked on, the next ones are fetched.
//!
//! A vector's frames and handles fill most of a first-level cache, and whatever ran before has used
//! it too, so about every second header has to come from the second level again. Few packets fit the
//! processor's window at once, so it cannot hide that by itself.

use weir_buf::{Pkt, VECTOR};

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

/// Packets that take a step together.
const BLOCK: usize = 32;

/// Three steps for each packet, the second and the third as many packets later as memory needs to answer what the
/// step before asked for. The packets of the third step come in order.
#[inline(always)]
pub(crate) fn staged<S: Copy + Default>(
    packets: &mut [Pkt],
    mut first: impl FnMut(&mut Pkt) -> S,
    mut second: impl FnMut(&mut S),
    mut third: impl FnMut(usize, &mut Pkt, S),
) {
    let mut states = [S::default(); VECTOR];
    packets.iter().take(AHEAD).for_each(Pkt::prefetch);
    let count = packets.len().min(VECTOR);
    for end in 1..=count.div_ceil(BLOCK) + 2 {
        let block = |behind: usize| {
            let end = end.saturating_sub(behind) * BLOCK;
            end.saturating_sub(BLOCK).min(count)..end.min(count)
        };
        for place in block(0) {
            if let Some(soon) = packets.get(place + AHEAD) {
                soon.prefetch();
            }
            states[place % VECTOR] = first(&mut packets[place]);
        }
        block(1).for_each(|place| second(&mut states[place % VECTOR]));
        block(2).for_each(|place| third(place, &mut packets[place], states[place % VECTOR]));
    }
}
