//! bond-input: what came in by a member of a bond is the bond's from here on.
//!
//! eth-input has counted the frames on the member and sends all of them here. Those of slow protocols (IEEE 802.3
//! annex 57A), which concern the one link, stay the member's and go to lacp-input. The others go to eth-input once
//! more, as frames of the bond, which may be routed, bridged, cross-connected or have sub-interfaces as
//! any port. A member that is not in use gives nothing: frames to groups come in by it a second time (active-backup),
//! or the other side has not agreed yet (LACP's "collecting").

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::Input;
use weir_wire::{EtherType, EthernetHeader, lacp};

use crate::{Tables, vector_loops};

pub(crate) struct BondInput;

const ETH_INPUT: Next = Next(0);
const LACP_INPUT: Next = Next(1);

impl Node<Tables> for BondInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "bond-input",
        about: "Takes in frames of a bond's members as the bond's, and sends those of LACP aside.",
        nexts: &["eth-input", "lacp-input"],
        reasons: &[DropReason::InterfaceDown, DropReason::MemberInactive],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        let member = packets
            .first()
            .and_then(|first| cx.world.interface(first.interface()));
        let Some(Input::Member { bond, collects }) = member.map(|member| member.input) else {
            return Outcome::All(Verdict::drop(DropReason::InterfaceDown));
        };
        let (mut slow, index, noted) = (
            false,
            member.map_or(0, |member| member.index),
            cx.world.notes_members,
        );
        vector_loops::each_packet(packets, |place, packet| {
            verdicts[place] = if is_slow(packet.data()) {
                slow = true;
                Verdict::to(LACP_INPUT)
            } else if collects {
                packet.set_interface(bond);
                if noted {
                    packet.meta_mut().member = index;
                }
                Verdict::to(ETH_INPUT)
            } else {
                Verdict::drop(DropReason::MemberInactive)
            };
        });
        match (slow, collects) {
            (false, true) => Outcome::All(Verdict::to(ETH_INPUT)),
            (false, false) => Outcome::All(Verdict::drop(DropReason::MemberInactive)),
            (true, _) => Outcome::Each,
        }
    }
}

/// Whether a frame is of a slow protocol: the group and the ethertype both say so.
#[inline(always)]
fn is_slow(frame: &[u8]) -> bool {
    frame.first() == Some(&0x01)
        && EthernetHeader::read(frame).is_some_and(|(header, _)| {
            header.destination == lacp::MULTICAST && header.ethertype() == EtherType::SLOW
        })
}
