//! mpls-input: is this a sound label stack, and are labels wanted here?
//!
//! eth-input lets the usual frame past, one whose stack ends at its first or second entry and arrived on an
//! interface with MPLS; whatever is odd comes here. A stack must have a bottom within the first chunk and
//! within 64 entries.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};

use super::stack_of;
use crate::Tables;
use crate::features::{self, FeatureArc};

pub(crate) struct MplsInput;

impl Node<Tables> for MplsInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "mpls-input",
        about: "Validates label stacks, on interfaces where labels are wanted.",
        nexts: &[],
        reasons: &[DropReason::MplsNotEnabled, DropReason::MplsBadStack],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = check(cx.world, packet);
        }
        Outcome::Each
    }
}

#[inline(never)]
fn check(tables: &Tables, packet: &mut Pkt) -> Verdict {
    // A group frame carries labels only where they are set up for a group, which is not done here (RFC 5332).
    let group = packet.flags().any(Flags::MULTICAST | Flags::BROADCAST);
    let interface = tables.interface(packet.interface());
    let Some(interface) = interface.filter(|interface| interface.mpls && !group) else {
        return Verdict::drop(DropReason::MplsNotEnabled);
    };
    match stack_of(packet) {
        Some(_) => features::next(FeatureArc::Mpls, interface, None),
        None => Verdict::drop(DropReason::MplsBadStack),
    }
}
