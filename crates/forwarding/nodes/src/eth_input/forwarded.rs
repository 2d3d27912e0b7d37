//! What a fast path did to a vector: which packets it forwarded, and where the others go.

use std::hint::cold_path;

use weir_buf::Pkt;
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::{Census, route};
use crate::Tables;
use crate::features::{self, FeatureArc};
use crate::frame::{Egress, Own};
use crate::ip4_steps;

/// The result of a fast path. Its numbers stay in registers, since only the references are lent to functions that are not inlined.
pub(super) struct Forwarded<'a> {
    pub(super) interface: &'a Interface,
    /// Of packets that were forwarded.
    pub(super) bytes: u64,
    /// Packets that go on to other nodes.
    others: usize,
    egress: Egress,
    /// What these are.
    pub(super) others_census: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl<'a> Forwarded<'a> {
    #[inline(always)]
    pub(super) fn new(
        interface: &'a Interface,
        others_census: &'a mut Census,
        verdicts: &'a mut [Verdict],
    ) -> Forwarded<'a> {
        verdicts.fill(Verdict::OUT);
        Forwarded {
            interface,
            bytes: 0,
            others: 0,
            egress: Egress::default(),
            others_census,
            verdicts,
        }
    }

    /// A packet of `len` bytes leaves by an interface.
    #[inline(always)]
    pub(super) fn sent(&mut self, len: usize, interface: u32) {
        self.bytes += len as u64;
        self.egress.note(interface);
    }

    /// A packet goes on to another node.
    #[inline(always)]
    pub(super) fn kept(&mut self, place: usize, verdict: Verdict) {
        self.others += 1;
        self.verdicts[place] = verdict;
    }

    /// A packet that had `len` bytes left by an interface, or is unchanged and goes through the nodes.
    #[inline(always)]
    pub(super) fn note(&mut self, place: usize, packet: &mut Pkt, len: usize, out: Option<u32>) {
        if let Some(out) = out {
            return self.sent(len, out);
        }
        cold_path();
        let verdict = through_nodes(self.interface, self.others_census, packet);
        self.kept(place, verdict);
    }

    /// Counts the forwarded ones of `packets` at the nodes of the arc, whose steps were made here.
    #[inline(always)]
    pub(super) fn finish(
        self,
        cx: &mut Cx<'_, Tables>,
        arc: FeatureArc,
        packets: usize,
    ) -> (Outcome, Census) {
        features::count_forwarded(cx, arc, self.interface, packets - self.others);
        let mut egress = self.egress;
        egress.incomplete = self.others > 0;
        let census = Census {
            bytes: self.others_census.bytes + self.bytes,
            ..*self.others_census
        };
        (egress.outcome(), census)
    }
}

/// The next node of a packet that does not leave from here.
#[inline(never)]
fn through_nodes(interface: &Interface, others: &mut Census, packet: &mut Pkt) -> Verdict {
    let len = packet.len();
    if ip4_steps::receive(Own::of(interface), packet) {
        others.bytes += len as u64;
        features::next(FeatureArc::Ip4, interface, None)
    } else {
        route(interface, others, packet)
    }
}
