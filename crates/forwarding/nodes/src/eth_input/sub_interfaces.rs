//! An interface that has sub-interfaces: each frame is theirs, by its tags, or the interface's own.
//!
//! A vector is sorted by sub-interfaces (`groups.rs`). The frames of each are counted on it, lose their tags, and are taken in
//! as those of any interface.

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Outcome, Verdict};
use weir_port::interface::{Input, Interface};
use weir_port::sub_interface::SubInterfaces;
use weir_wire::EtherType;
use weir_wire::vlan::{Outer, TAG_LEN};

use super::cross_connect_path::{Crossings, crossed};
use super::groups::{each_group, write};
use super::{Census, Intake, Paths};
use crate::Tables;
use crate::frame::ETHERNET;
use crate::tagging::{change_tags, note_priority};

/// Fewer packets of a sub-interface than this go to the nodes, which take all sub-interfaces' together: with 128 VLANs in
/// a vector, a fast path for two packets each costs a third more.
const FEW: usize = 4;

impl Intake {
    /// Takes in a vector that may have frames of sub-interfaces.
    #[inline(always)]
    pub(super) fn shared(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        shares: &SubInterfaces,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        match Crossings::of(cx, shares, packets) {
            Some(crossings) => {
                let odd =
                    |cx: &mut Cx<'_, Tables>, packets: &mut [Pkt], verdicts: &mut [Verdict]| {
                        self.sorted(cx, interface, shares, packets, verdicts)
                    };
                crossed(cx, crossings, shares, packets, verdicts, odd)
            }
            None => self.sorted(cx, interface, shares, packets, verdicts),
        }
    }

    /// The same, sorted by sub-interfaces.
    #[inline(never)]
    fn sorted(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        shares: &SubInterfaces,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        let Intake { groups, paths } = self;
        let own = interface.index;
        let count = groups.sort(packets, |packet| {
            Ok(share_of(shares, packet)?.unwrap_or(own))
        });
        let mut whole = Census::default();
        let outcome = each_group(
            groups,
            count,
            packets,
            verdicts,
            |group, packets, verdicts| {
                paths.by_nodes = cx.world.inner_taps || packets.len() < FEW;
                let (outcome, mut census) = match group.interface {
                    None => (groups.refuse(verdicts), Census::of(packets)),
                    Some(index) if index == own => {
                        paths.take_whole(cx, interface, packets, verdicts)
                    }
                    Some(index) => paths.tagged(cx, index, group.bytes, packets, verdicts),
                };
                census.bytes = group.bytes;
                whole += census;
                outcome
            },
        );
        paths.by_nodes = false;
        (outcome, whole)
    }
}

impl Paths {
    /// Frames with the tags of one sub-interface, whose they are from here on.
    #[inline(always)]
    fn tagged(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        index: u32,
        bytes: u64,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        let Some(interface) = cx.world.interface(index) else {
            let down = Verdict::drop(DropReason::InterfaceDown);
            return (Outcome::All(down), Census::of(packets));
        };
        let (outcome, census) = if untag(interface, packets, verdicts) {
            self.take_whole(cx, interface, packets, verdicts)
        } else {
            self.partly_tagged(cx, interface, packets, verdicts)
        };
        if let Some(counters) = interface.counters.of(cx.worker) {
            let (multicast, broadcast) = (census.multicast, census.broadcast);
            let packets = packets.len() as u64;
            counters.rx.add(packets, bytes, multicast, broadcast);
        }
        (outcome, census)
    }

    /// The same where the tags of some frame could not be changed. Their verdicts are written; others' are [`Verdict::OUT`].
    #[cold]
    #[inline(never)]
    fn partly_tagged(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        let mut whole = Census::default();
        for (packet, verdict) in packets.chunks_mut(1).zip(verdicts.chunks_mut(1)) {
            if verdict == [Verdict::OUT] {
                let (outcome, census) = self.take_whole(cx, interface, packet, verdict);
                write(outcome, packet, verdict);
                whole += census;
            } else {
                whole += Census::of(packet);
            }
        }
        (Outcome::Each, whole)
    }
}

/// Gives frames to a sub-interface and takes their tags off. Whether all of that could be done; else verdicts are written.
#[inline(always)]
fn untag(interface: &Interface, packets: &mut [Pkt], verdicts: &mut [Verdict]) -> bool {
    let change = interface.sub_interface.as_ref().map(|it| it.input);
    let change = change.unwrap_or_default();
    let keeps_priority = !matches!(interface.input, Input::Routed);
    let mut is_done = true;
    for (packet, verdict) in packets.iter_mut().zip(verdicts) {
        packet.set_interface(interface.index);
        if keeps_priority {
            note_priority(packet);
        }
        *verdict = match change_tags(packet, &change) {
            Ok(()) => Verdict::OUT,
            Err(reason) => {
                is_done = false;
                Verdict::drop(reason)
            }
        };
    }
    is_done
}

/// The sub-interface that a frame's tags say; `None` when it has none, or one that says a priority only.
#[inline(always)]
pub(crate) fn share_of(shares: &SubInterfaces, packet: &Pkt) -> Result<Option<u32>, DropReason> {
    let Some(&[.., a, b, control, vlan, c, d]) = packet.data().first_chunk::<TAGGED>() else {
        return share_of_odd(shares, packet);
    };
    let (outer, inner) = (
        EtherType(u16::from_be_bytes([a, b])),
        EtherType(u16::from_be_bytes([c, d])),
    );
    if !outer.is_tag() {
        return Ok(None);
    }
    let vlan = u16::from_be_bytes([control & 0x0f, vlan]);
    if vlan == 0 || inner.is_tag() {
        return share_of_odd(shares, packet);
    }
    shares
        .of_one(outer == EtherType::QINQ, vlan)
        .map(Some)
        .ok_or(DropReason::VlanUnknown)
}

/// Bytes of an Ethernet header with a tag.
pub(super) const TAGGED: usize = ETHERNET + TAG_LEN;

/// A short frame, one with several tags, or one of VLAN 0.
#[inline(never)]
fn share_of_odd(shares: &SubInterfaces, packet: &Pkt) -> Result<Option<u32>, DropReason> {
    if packet.len() < ETHERNET {
        return Err(DropReason::TooShort);
    }
    let tags = Outer::read(packet.data()).map_err(|_| DropReason::VlanTruncated)?;
    match tags.outer {
        None => Ok(None),
        Some(outer) if outer.tag.vlan() == 0 => Ok(None),
        Some(_) => shares.of(&tags).map(Some).ok_or(DropReason::VlanUnknown),
    }
}
