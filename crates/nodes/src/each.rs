//! The one loop over frames: while some are worked on, the next ones are fetched.
//!
//! A vector's frames and handles fill most of a first-level cache, and whatever ran before has used
//! it too, so about every second header has to come from the second level again. Few packets fit the
//! processor's window at once, so it cannot hide that by itself.

use weir_buf::Pkt;
use weir_graph::Verdict;

/// Packets that are fetched together.
const GROUP: usize = 8;

/// Calls `body` for each packet and its verdict, in order.
#[inline(always)]
pub(crate) fn frame(packets: &mut [Pkt], verdicts: &mut [Verdict], mut body: impl FnMut(&mut Pkt, &mut Verdict)) {
    packets.iter().take(GROUP).for_each(Pkt::prefetch);
    let mut later = packets;
    for verdicts in verdicts.chunks_mut(GROUP) {
        let (now, rest) = later.split_at_mut(GROUP.min(later.len()));
        if let Some(soon) = rest.first_chunk::<GROUP>() {
            soon.iter().for_each(Pkt::prefetch);
        }
        now.iter_mut().zip(verdicts).for_each(|(packet, verdict)| body(packet, verdict));
        later = rest;
    }
}
