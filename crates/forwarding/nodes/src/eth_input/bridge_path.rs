//! A member of a bridge domain: frames between known stations leave in eth-input's pass.

use std::hint::cold_path;

use weir_buf::Pkt;
use weir_fib::Key;
use weir_graph::{Cx, Outcome, Verdict};

use super::Census;
use super::forwarded::Forwarded;
use crate::bridge::Known;
use crate::interface_input::BRIDGE;
use crate::{Tables, vector_loops};

/// A member of a bridge domain whose frames between known stations leave from here, the bridge's work done in this pass.
#[inline(never)]
pub(super) fn bridged(
    cx: &mut Cx<'_, Tables>,
    known: Known<'_>,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    verdicts.fill(Verdict::OUT);
    let mut odd = Census::default();
    let Across { left, .. } = vector_loops::foreseen(
        packets,
        Across {
            known,
            left: Forwarded::default(),
            odd: &mut odd,
            verdicts,
        },
    );
    cx.did_for(BRIDGE, packets.len() - left.stayed);
    let mut exits = left.exits;
    exits.odd = left.stayed > 0;
    (
        exits.outcome(),
        Census {
            bytes: odd.bytes + left.bytes,
            ..odd
        },
    )
}

/// The pass over frames between stations.
struct Across<'a> {
    known: Known<'a>,
    left: Forwarded,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl vector_loops::Foresight for Across<'_> {
    /// Receiver and sender.
    type Asked = (Key, Key);

    #[inline(always)]
    fn ask(&self, packet: &Pkt) -> Self::Asked {
        if packet.is_chained() {
            <(Key, Key)>::default()
        } else {
            self.known.pair(packet)
        }
    }

    #[inline(always)]
    fn one(&mut self, place: usize, packet: &mut Pkt, (to, from): Self::Asked) {
        let len = packet.len();
        if let Some(out) = self.known.exit(len, to, from) {
            self.left.bytes += len as u64;
            packet.set_aux(out);
            return self.left.exits.note(out);
        }
        cold_path();
        self.left.stayed += 1;
        self.odd.take(packet);
        self.verdicts[place] = Verdict::to(BRIDGE);
    }
}
