//! interface-input: frames that came in by an interface which no driver feeds.
//!
//! A sub-interface, the end of a tunnel or a pseudowire, the routed side of a bridge: another node found
//! out which one it is, has set it on the packet and has removed the header that selects it. What is left is a frame,
//! from its MAC addresses on. It is counted on that interface and goes where the interface's input says;
//! where the interface has sub-interfaces (a tunnel may), to the one that its tags say. Vectors may be mixed; they are sorted by
//! interfaces first. Frames are taken in as in eth-input, by the same [`Intake`]; so the two nodes have the same next nodes.

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};

use crate::Tables;
use crate::eth_input::{Groups, Intake, NEXTS, STALE};

#[derive(Default)]
pub(crate) struct InterfaceInput {
    groups: Groups,
    intake: Intake,
}

impl Node<Tables> for InterfaceInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "interface-input",
        about: "Takes in frames of tunnels and bridges: counts them on their interface and sends each on.",
        nexts: NEXTS,
        reasons: &[
            DropReason::InterfaceDown,
            DropReason::TooShort,
            DropReason::WrongMac,
            DropReason::VlanUnknown,
            DropReason::VlanTruncated,
            DropReason::UnknownEthertype,
            DropReason::NotRouted,
            DropReason::FrameTooLong,
            DropReason::NoHeadroom,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        let InterfaceInput { groups, intake } = self;
        intake.take_found(groups, cx, packets, verdicts, |packet| {
            packet.clear_flags(STALE);
            Ok(packet.interface())
        })
    }
}
