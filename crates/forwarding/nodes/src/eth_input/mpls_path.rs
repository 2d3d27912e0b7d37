//! The fast path of labelled packets: the steps of `mpls/steps.rs`. All else goes to mpls-lookup or, when it is not whole, to
//! mpls-input. Where nodes do their own step only, everything does.

use std::hint::cold_path;

use weir_buf::Pkt;
use weir_cpu::Code;
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::forwarded::Forwarded;
use super::{Census, PSEUDOWIRE_INPUT, route};
use crate::features::{FeatureArc, IP4_LOOKUP, MPLS_LOOKUP};
use crate::frame::{ETHERNET, OwnMac};
use crate::mpls::MplsSteps;
use crate::{Tables, vector_loops};

/// An interface with MPLS and a vector of labelled packets.
#[inline(never)]
pub(super) fn labelled(
    cx: &mut Cx<'_, Tables>,
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let mut others = Census::default();
    let own = OwnMac::new(interface.mac);
    if cx.is_one_step() {
        packets
            .iter_mut()
            .zip(verdicts)
            .for_each(|(packet, verdict)| {
                *verdict = through_nodes(own, interface, &mut others, packet)
            });
        return (Outcome::Each, others);
    }
    let path = Labelled {
        own,
        steps: MplsSteps::of(cx, interface),
        forwarded: Forwarded::new(interface, &mut others, verdicts),
    };
    let Labelled {
        steps, forwarded, ..
    } = vector_loops::run(packets, path);
    cx.did_for(IP4_LOOKUP, steps.popped);
    cx.did_for(PSEUDOWIRE_INPUT, steps.finish());
    forwarded.finish(cx, FeatureArc::Mpls, packets.len())
}

struct Labelled<'a> {
    own: OwnMac,
    steps: MplsSteps<'a>,
    forwarded: Forwarded<'a>,
}

impl vector_loops::Path for Labelled<'_> {
    const EARLY: usize = 0;
    type Between = ();

    #[inline(always)]
    fn first<C: Code>(&mut self, _: C, _: &mut Pkt) {}

    #[inline(always)]
    fn second<C: Code>(&mut self, _: C, place: usize, packet: &mut Pkt, (): ()) {
        let len = packet.len();
        if plain_mpls(self.own, packet)
            && let Some(out) = self.steps.forward(packet)
        {
            return self.forwarded.sent(len, out);
        }
        cold_path();
        let Forwarded {
            interface,
            others_census,
            ..
        } = &mut self.forwarded;
        let verdict = through_nodes(self.own, interface, others_census, packet);
        self.forwarded.kept(place, verdict);
    }
}

/// The next node of a packet that does not leave from here.
#[inline(never)]
fn through_nodes(
    own: OwnMac,
    interface: &Interface,
    others: &mut Census,
    packet: &mut Pkt,
) -> Verdict {
    if !plain_mpls(own, packet) {
        return route(interface, others, packet);
    }
    others.bytes += packet.len() as u64;
    Verdict::to(MPLS_LOOKUP)
}

/// Bytes up to the end of the second entry, or of what lies under a single one.
const TWO_LABELS: usize = ETHERNET + 8;

/// Whether this is a whole frame for this station whose label stack ends at its first or second entry: what
/// mpls-input would let through.
#[inline(always)]
fn plain_mpls(own: OwnMac, packet: &Pkt) -> bool {
    let Some(frame) = packet.data().first_chunk::<TWO_LABELS>() else {
        return false;
    };
    let ours =
        own.is_destination_of(frame) & (frame[12..14] == [0x88, 0x47]) & !packet.is_chained();
    ours & ((frame[ETHERNET + 2] | frame[ETHERNET + 6]) & 1 != 0)
}
