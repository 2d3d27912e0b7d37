//! Frames of cross-connected sub-interfaces in eth-input's pass, the work of sub-interface-output done there: a tag goes,
//! the far side's takes its place, and the frame leaves by the far side's parent. Nothing of it moves.
//!
//! Only what is usual on both sides: each has one tag that its frames lose on the way in and get on the way out, and
//! nothing lies in between. All else takes the path of other sub-interfaces (`sub_interfaces.rs`). A trunk has many of them, so
//! what is known of a few is kept for the frames of the vector that follow.

use std::hint::cold_path;

use weir_buf::sort::Places;
use weir_buf::{Pkt, VECTOR};
use weir_cpu::Code;
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::{Features, Input, Interface, Output};
use weir_port::sub_interface::{SubInterface, SubInterfaces, TagStack};
use weir_wire::EtherType;
use weir_wire::vlan::{TAG_AT, TAG_LEN};

use super::groups::write;
use super::sub_interfaces::{TAGGED, share_of};
use super::{Census, SUB_INTERFACE_OUTPUT};
use crate::features::{self, FeatureArc};
use crate::frame::{ETHERNET, Egress};
use crate::{Tables, vector_loops};

/// The bits of a tag that stay on the way across, the priority (IEEE 802.1Q clause 6.9.3), and those that tell nothing about whose
/// the frame is: these and the drop eligibility. Tags are read as words in little-endian order.
const PRIORITY: u32 = 0x00e0_0000;
const NOT_ASKED: u32 = 0x00f0_0000;

/// One sub-interface and its far side, and what went across so far.
#[derive(Clone, Copy)]
struct Crossing<'a> {
    /// The tag of its frames.
    tag: u32,
    /// The far side's.
    far_tag: u32,
    interface: &'a Interface,
    far: &'a Interface,
    /// What the frames leave by.
    parent: u32,
    /// The longest frame that the far side takes, with a tag.
    longest: usize,
    packets: u64,
    bytes: u64,
}

impl<'a> Crossing<'a> {
    /// For frames that begin as this one, which is of the interface `index`.
    #[inline(never)]
    fn of(tables: &'a Tables, index: u32, packet: &Pkt) -> Option<Crossing<'a>> {
        let interface = tables
            .interface(index)
            .filter(|it| features::is_open(FeatureArc::CrossConnect, it, Features::EMPTY))?;
        let Input::CrossConnect(out) = interface.input else {
            return None;
        };
        let far = tables
            .interface(out)
            .filter(|far| far.can_send && far.output == Output::SubInterface)?;
        if !features::is_open(FeatureArc::Output, far, Features::EMPTY) {
            return None;
        }
        only_tag(interface.sub_interface.as_ref()?)?;
        let SubInterface { parent, .. } = far.sub_interface.as_ref()?;
        let far_tag = only_tag(far.sub_interface.as_ref()?)?;
        let (tag, below) = tag_of(packet.data().first_chunk()?);
        if below.is_tag() {
            return None;
        }
        let longest = far.mtu as usize + ETHERNET + TAG_LEN;
        Some(Crossing {
            tag: tag & !NOT_ASKED,
            far_tag,
            interface,
            far,
            parent: *parent,
            longest,
            packets: 0,
            bytes: 0,
        })
    }

    /// Takes a frame across, if it is one of its own and usual; where it leaves.
    #[inline(always)]
    fn take(&mut self, packet: &mut Pkt) -> Option<u32> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data_mut().first_chunk_mut::<TAGGED>()?;
        let (tag, below) = tag_of(frame);
        let usual = (tag & !NOT_ASKED == self.tag)
            & !below.is_tag()
            & (frame[0] & 1 == 0)
            & !chained
            & (len <= self.longest);
        if !usual {
            return None;
        }
        frame[TAG_AT..TAG_AT + TAG_LEN]
            .copy_from_slice(&(self.far_tag | tag & PRIORITY).to_le_bytes());
        packet.set_interface(self.interface.index);
        packet.set_aux(self.parent);
        self.packets += 1;
        self.bytes += len as u64;
        Some(self.parent)
    }

    /// Counts on both sides what went across.
    fn finish(&self, worker: usize) {
        if let Some(counters) = self.interface.counters.of(worker) {
            counters.rx.add(self.packets, self.bytes, 0, 0);
        }
        if let Some(counters) = self.far.counters.of(worker) {
            counters.tx.add(self.packets, self.bytes, 0, 0);
        }
    }
}

/// The one tag that frames of a sub-interface lose on the way in and get on the way out, if that is all.
fn only_tag(sub_interface: &SubInterface) -> Option<u32> {
    let (input, output) = (&sub_interface.input, &sub_interface.output);
    let plain = input.pop == 1 && input.push == TagStack::EMPTY && output.pop == 0;
    output
        .push
        .as_bytes()
        .try_into()
        .ok()
        .filter(|_| plain)
        .map(u32::from_le_bytes)
}

/// The outer tag of a frame, and what stands behind it.
#[inline(always)]
fn tag_of(frame: &[u8; TAGGED]) -> (u32, EtherType) {
    let [.., a, b, c, d, e, f] = *frame;
    (
        u32::from_le_bytes([a, b, c, d]),
        EtherType(u16::from_be_bytes([e, f])),
    )
}

/// Crossings that are kept: those met last, by the lowest bits of their VLANs.
const KEPT: usize = 8;

/// The crossings of a vector.
pub(super) struct Crossings<'a> {
    tables: &'a Tables,
    kept: [Option<Crossing<'a>>; KEPT],
    /// Of frames that went across by others than those.
    bytes: u64,
    worker: usize,
}

impl<'a> Crossings<'a> {
    /// When the first frame of a vector is one that goes across here.
    #[inline(always)]
    pub(super) fn of(
        cx: &Cx<'a, Tables>,
        shares: &SubInterfaces,
        packets: &[Pkt],
    ) -> Option<Crossings<'a>> {
        if cx.is_one_step() || cx.world.inner_taps {
            return None;
        }
        let mut crossings = Crossings {
            tables: cx.world,
            kept: [None; KEPT],
            bytes: 0,
            worker: cx.worker,
        };
        crossings
            .learn(shares, packets.first()?)
            .then_some(crossings)
    }

    fn place(packet: &Pkt) -> usize {
        packet
            .data()
            .get(TAG_AT + 3)
            .map_or(0, |vlan| usize::from(*vlan) % KEPT)
    }

    /// Keeps the crossing of a frame in the place of another, if it has one.
    fn learn(&mut self, shares: &SubInterfaces, packet: &Pkt) -> bool {
        let Ok(Some(index)) = share_of(shares, packet) else {
            return false;
        };
        let Some(crossing) = Crossing::of(self.tables, index, packet) else {
            return false;
        };
        if let Some(before) = self.kept[Crossings::place(packet)].replace(crossing) {
            before.finish(self.worker);
            self.bytes += before.bytes;
        }
        true
    }

    #[inline(always)]
    fn take(&mut self, packet: &mut Pkt) -> Option<u32> {
        self.kept[Crossings::place(packet)].as_mut()?.take(packet)
    }

    /// Counts what went across; the bytes of it.
    fn finish(self) -> u64 {
        let kept = self.kept.iter().flatten();
        kept.fold(self.bytes, |bytes, crossing| {
            crossing.finish(self.worker);
            bytes + crossing.bytes
        })
    }

    /// Takes the first frame of a crossing, in its order with those that follow.
    fn take_new(&mut self, shares: &SubInterfaces, packet: &mut Pkt) -> Option<u32> {
        if self.learn(shares, packet) {
            self.take(packet)
        } else {
            None
        }
    }
}

/// Takes a vector across. `odd` takes in the frames that do not go across here, some at a time.
#[inline(never)]
pub(super) fn crossed<'a>(
    cx: &mut Cx<'a, Tables>,
    crossings: Crossings<'_>,
    shares: &SubInterfaces,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
    mut odd: impl FnMut(&mut Cx<'a, Tables>, &mut [Pkt], &mut [Verdict]) -> (Outcome, Census),
) -> (Outcome, Census) {
    verdicts.fill(Verdict::OUT);
    let mut path = vector_loops::run(
        packets,
        Crossed {
            crossings,
            shares,
            egress: Egress::default(),
            odd: [0; VECTOR / 64],
            others: 0,
        },
    );
    cx.did_for(SUB_INTERFACE_OUTPUT, packets.len() - path.others);
    let mut census = Census::default();
    if path.others > 0 {
        path.egress.incomplete = true;
        for place in
            (0..packets.len()).filter(|place| path.odd[place / 64 % 4] >> (place % 64) & 1 == 1)
        {
            let (packet, verdict) = (&mut packets[place..=place], &mut verdicts[place..=place]);
            let (outcome, part) = odd(cx, packet, verdict);
            write(outcome, packet, verdict);
            census += part;
        }
    }
    census.bytes += path.crossings.finish();
    (path.egress.outcome(), census)
}

struct Crossed<'a> {
    crossings: Crossings<'a>,
    shares: &'a SubInterfaces,
    egress: Egress,
    /// Frames that do not go across here.
    odd: Places,
    others: usize,
}

impl vector_loops::Path for Crossed<'_> {
    const EARLY: usize = 0;
    type Between = ();

    #[inline(always)]
    fn first<C: Code>(&mut self, _: C, _: &mut Pkt) {}

    #[inline(always)]
    fn second<C: Code>(&mut self, _: C, place: usize, packet: &mut Pkt, (): ()) {
        if let Some(out) = self.crossings.take(packet) {
            return self.egress.note(out);
        }
        cold_path();
        self.take_new(place, packet);
    }
}

impl Crossed<'_> {
    #[inline(never)]
    fn take_new(&mut self, place: usize, packet: &mut Pkt) {
        if let Some(out) = self.crossings.take_new(self.shares, packet) {
            return self.egress.note(out);
        }
        self.others += 1;
        self.odd[place / 64 % 4] |= 1 << (place % 64);
    }
}
