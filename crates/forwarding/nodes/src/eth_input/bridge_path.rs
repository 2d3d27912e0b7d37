//! The fast path of a member of a bridge domain: frames between known stations.

use std::hint::cold_path;

use weir_buf::Pkt;
use weir_cpu::Code;
use weir_fib::Key;
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::Census;
use super::forwarded::Forwarded;
use crate::bridge::Known;
use crate::features::{BRIDGE, FeatureArc};
use crate::{Tables, vector_loops};

#[inline(never)]
pub(super) fn bridged(
    cx: &mut Cx<'_, Tables>,
    interface: &Interface,
    known: Known<'_>,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let mut others = Census::default();
    let forwarded = Forwarded::new(interface, &mut others, verdicts);
    let path = vector_loops::run(packets, Bridged { known, forwarded });
    path.forwarded.finish(cx, FeatureArc::Bridge, packets.len())
}

struct Bridged<'a> {
    known: Known<'a>,
    forwarded: Forwarded<'a>,
}

impl vector_loops::Path for Bridged<'_> {
    const EARLY: usize = 16;
    /// Receiver and sender.
    type Between = (Key, Key);

    #[inline(always)]
    fn first<C: Code>(&mut self, _: C, packet: &mut Pkt) -> Self::Between {
        if packet.is_chained() {
            <(Key, Key)>::default()
        } else {
            self.known.pair(packet)
        }
    }

    #[inline(always)]
    fn second<C: Code>(&mut self, _: C, place: usize, packet: &mut Pkt, (to, from): (Key, Key)) {
        let len = packet.len();
        if let Some(out) = self.known.exit(len, to, from) {
            packet.set_aux(out);
            return self.forwarded.sent(len, out);
        }
        cold_path();
        self.forwarded.others_census.take(packet);
        self.forwarded.kept(place, Verdict::to(BRIDGE));
    }
}
