//! pseudowire-input: what comes out of a pseudowire is a frame again (RFC 4448).
//!
//! mpls-lookup has taken the labels off and set the pseudowire's interface. Here the control word comes off, if both
//! ends use one, and in tagged mode the tag; then the frame is counted on the pseudowire and goes where its input
//! says, as interface-input does it for other interfaces without a driver. Vectors may be mixed.
//!
//! Frames have no order to be kept here: their sequence numbers are not looked at (RFC 4448 section 4.6 makes that
//! an option of the receiver). What is no frame but a message between the ends (RFC 4385 section 5) is not spoken.

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};

use crate::eth_input::Census;
use crate::interface_input::{Intake, NEXTS, STALE};
use crate::ip4_lookup::Exits;
use crate::tagging::change_tags;
use crate::{Tables, each};

pub(crate) struct PseudowireInput;

/// Bytes of a control word.
pub(crate) const CONTROL_WORD: usize = 4;

impl Node<Tables> for PseudowireInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "pseudowire-input",
        about: "Takes in frames that come out of pseudowires: control word and tag off, counted, each sent on.",
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
            DropReason::PseudowireControlWord,
            DropReason::PseudowireChannel,
        ],
    };

    #[inline(always)]
    fn process(&mut self, cx: &mut Cx<'_, Tables>, packets: &mut [Pkt], verdicts: &mut [Verdict]) -> Outcome {
        let (mut intake, mut exits) = (Intake::new(cx), Exits::default());
        let tables = cx.world;
        each::frame(packets, |place, packet| {
            let verdict = match open(tables, packet) {
                Ok(()) => {
                    packet.clear_flags(STALE);
                    if packet.data().first().is_some_and(|first| first & 1 != 0) {
                        Census::default().take(packet);
                    }
                    intake.take(packet.interface(), packet)
                }
                Err(reason) => Verdict::drop(reason),
            };
            if verdict == Verdict::OUT {
                exits.note(packet.aux());
            } else {
                exits.odd = true;
            }
            verdicts[place] = verdict;
        });
        intake.finish();
        exits.outcome()
    }
}

/// Takes off what stands before the frame, and the tag of tagged mode.
#[inline(always)]
fn open(tables: &Tables, packet: &mut Pkt) -> Result<(), DropReason> {
    let pseudowire = tables.interface(packet.interface()).and_then(|interface| interface.pseudowire.as_ref());
    let Some(pseudowire) = pseudowire else { return Err(DropReason::InterfaceDown) };
    if pseudowire.control_word {
        match packet.data().first_chunk::<CONTROL_WORD>().map(|word| word[0] >> 4) {
            // RFC 4448 section 4.6: the rest of the first half is ignored.
            Some(0) => {
                let _ = packet.pull_front(CONTROL_WORD);
            }
            Some(1) => return Err(DropReason::PseudowireChannel),
            _ => return Err(DropReason::PseudowireControlWord),
        }
    }
    // RFC 4448 section 4.1: in tagged mode every frame has a tag of the pseudowire's.
    if pseudowire.is_tagged() { change_tags(packet, &pseudowire.input) } else { Ok(()) }
}
