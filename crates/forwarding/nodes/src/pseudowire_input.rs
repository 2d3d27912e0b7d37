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
use weir_port::interface::{Features, Input, Interface};

use crate::Tables;
use crate::eth_input::{Groups, Intake, NEXTS, STALE};
use crate::features::{self, FeatureArc};
use crate::frame::ETHERNET;
use crate::tagging::{change_tags, note_priority};

#[derive(Default)]
pub(crate) struct PseudowireInput {
    groups: Groups,
    intake: Intake,
}

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
            DropReason::VlanMissing,
            DropReason::VlanTruncated,
            DropReason::UnknownEthertype,
            DropReason::NotRouted,
            DropReason::FrameTooLong,
            DropReason::PseudowireControlWord,
            DropReason::PseudowireChannel,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        let PseudowireInput { groups, intake } = self;
        let tables = cx.world;
        intake.take_found(groups, cx, packets, verdicts, |packet| {
            packet.clear_flags(STALE);
            open(tables, packet)?;
            Ok(packet.interface())
        })
    }
}

/// Takes off what stands before the frame, and the tag of tagged mode.
#[inline(always)]
fn open(tables: &Tables, packet: &mut Pkt) -> Result<(), DropReason> {
    let Some(interface) = tables.interface(packet.interface()) else {
        return Err(DropReason::InterfaceDown);
    };
    let Some(pseudowire) = &interface.pseudowire else {
        return Err(DropReason::InterfaceDown);
    };
    if pseudowire.control_word {
        match packet
            .data()
            .first_chunk::<CONTROL_WORD>()
            .map(|word| word[0] >> 4)
        {
            // RFC 4448 section 4.6: the rest of the first half is ignored.
            Some(0) => {
                let _ = packet.pull_front(CONTROL_WORD);
            }
            Some(1) => return Err(DropReason::PseudowireChannel),
            _ => return Err(DropReason::PseudowireControlWord),
        }
    }
    // RFC 4448 section 4.4.1: in tagged mode every frame has a tag of the pseudowire's.
    if !pseudowire.is_tagged() {
        return Ok(());
    }
    // Section 4.7: the priority stays the same between the edges, whatever tag the frame leaves with.
    if matches!(
        interface.input,
        Input::CrossConnect(_) | Input::Bridge { .. }
    ) {
        note_priority(packet);
    }
    change_tags(packet, &pseudowire.input)
}

/// Takes in the usual frames of pseudowires that are cross-connected, in the pass that takes their labels off: to one station,
/// without a tag of the pseudowire's, short enough for the far side.
pub(crate) struct Outlet<'a> {
    tables: &'a Tables,
    worker: usize,
    /// The pseudowire of the frames at hand.
    index: u32,
    open: Option<Open<'a>>,
    frames: usize,
}

/// A pseudowire and where its frames go.
#[derive(Clone, Copy)]
struct Open<'a> {
    interface: &'a Interface,
    out: u32,
    control_word: bool,
    /// The longest frame that goes out there.
    longest: usize,
    packets: u64,
    bytes: u64,
}

impl<'a> Outlet<'a> {
    pub(crate) fn new(cx: &Cx<'a, Tables>) -> Outlet<'a> {
        Outlet {
            tables: cx.world,
            worker: cx.worker,
            index: 0,
            open: None,
            frames: 0,
        }
    }

    /// Takes in the frame of a pseudowire that lies behind the first `before` bytes of a packet; the interface that it leaves by.
    /// `None`, and nothing is changed, for a frame that is not usual.
    #[inline(always)]
    pub(crate) fn take(&mut self, index: u32, packet: &mut Pkt, before: usize) -> Option<u32> {
        if index != self.index {
            self.turn_to(index);
        }
        let open = self.open.as_mut()?;
        let at = if open.control_word {
            before + CONTROL_WORD
        } else {
            before
        };
        let data = packet.data();
        let (word, first) = (*data.get(before)?, *data.get(at)?);
        let len = data.len() - at;
        let is_data = !open.control_word | (word >> 4 == 0);
        if !(is_data & (first & 1 == 0) & (len >= ETHERNET) & (len <= open.longest)) {
            return None;
        }
        let _ = packet.pull_front(at);
        packet.clear_flags(STALE);
        packet.set_interface(index);
        packet.set_aux(open.out);
        open.packets += 1;
        open.bytes += len as u64;
        Some(open.out)
    }

    #[inline(never)]
    fn turn_to(&mut self, index: u32) {
        self.count();
        self.index = index;
        self.open = self
            .tables
            .interface(index)
            .filter(|it| features::is_open(FeatureArc::CrossConnect, it, Features::EMPTY))
            .and_then(|interface| {
                let (Input::CrossConnect(out), Some(pseudowire)) =
                    (interface.input, &interface.pseudowire)
                else {
                    return None;
                };
                let longest = self.tables.interface(out)?.mtu as usize + ETHERNET;
                let control_word = pseudowire.control_word;
                (!pseudowire.is_tagged()).then_some(Open {
                    interface,
                    out,
                    control_word,
                    longest,
                    packets: 0,
                    bytes: 0,
                })
            });
    }

    fn count(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.frames += open.packets as usize;
        if let Some(counters) = open.interface.counters.of(self.worker) {
            counters.rx.add(open.packets, open.bytes, 0, 0);
        }
    }

    /// Counts the last ones; how many frames there were.
    pub(crate) fn finish(mut self) -> usize {
        self.count();
        self.frames
    }
}
