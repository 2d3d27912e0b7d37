//! mpls-fragment: cuts the IPv4 packet under a label stack that would be too long with its new labels.
//!
//! RFC 3032 section 3.4: each piece gets the whole stack as it came. All go back to mpls-lookup, where they now fit.

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};

use super::stack_of;
use crate::Tables;
use crate::frame::ETHERNET;
use crate::ip4_fragment::{Piece, fragment};

pub(crate) struct MplsFragment {
    /// Fragments in the making; kept, so that nothing is allocated for a packet.
    made: Vec<Piece>,
}

impl Default for MplsFragment {
    fn default() -> MplsFragment {
        MplsFragment {
            made: Vec::with_capacity(256),
        }
    }
}

const MPLS_LOOKUP: Next = Next(0);

impl Node<Tables> for MplsFragment {
    const SPEC: NodeSpec = NodeSpec {
        name: "mpls-fragment",
        about: "Cuts IPv4 packets under labels that are longer than the MTU.",
        nexts: &["mpls-lookup"],
        reasons: &[DropReason::NoBuffer, DropReason::Ip4BadLength],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            let depth = stack_of(packet).map_or(0, |stack| stack.bytes().len());
            packet.set_l3_offset(ETHERNET + depth);
            *verdict = match fragment(cx, &mut self.made, packet, MPLS_LOOKUP) {
                Ok(()) => Verdict::to(MPLS_LOOKUP),
                Err(reason) => Verdict::drop(reason),
            };
        }
        Outcome::Each
    }
}
