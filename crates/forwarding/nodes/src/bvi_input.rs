//! bvi-input: frames of a bridge domain for its routed side.
//!
//! The bridge names the BVI in the packet's `aux` word, as copies of one frame differ in nothing else. From here on
//! the frame is one that came in by the BVI.

use weir_buf::Pkt;
use weir_graph::{Cx, Next, Node, NodeSpec, Outcome, Verdict};

use crate::Tables;

pub(crate) struct BviInput;

const INTERFACE_INPUT: Next = Next(0);

impl Node<Tables> for BviInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "bvi-input",
        about: "Takes frames out of a bridge domain in by its BVI.",
        nexts: &["interface-input"],
        reasons: &[],
    };

    #[inline(always)]
    fn process(
        &mut self,
        _cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        _verdicts: &mut [Verdict],
    ) -> Outcome {
        for packet in packets {
            packet.set_interface(packet.aux());
        }
        Outcome::All(Verdict::to(INTERFACE_INPUT))
    }
}
