//! An interface that has sub-interfaces: each frame is theirs, by its tags, or the interface's own.

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Outcome, Verdict};
use weir_port::interface::Interface;
use weir_port::sub_interface::SubInterfaces;
use weir_wire::EtherType;
use weir_wire::vlan::{Outer, TAG_LEN};

use super::Census;
use super::cross_connect_path::{Crossings, crossed};
use crate::frame::ETHERNET;
use crate::interface_input::Intake;
use crate::{Tables, vector_loops};

/// The pass over a vector.
#[inline(always)]
pub(super) fn shared(
    cx: &mut Cx<'_, Tables>,
    interface: &Interface,
    shares: &SubInterfaces,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let mut sorter = Sorter {
        shares,
        own: Intake::of(cx, interface),
        theirs: Intake::new(cx),
        census: Census::default(),
    };
    if let Some(crossings) = Crossings::of(cx, &sorter, packets) {
        return crossed(cx, crossings, sorter, packets, verdicts);
    }
    vector_loops::each_packet(packets, |place, packet| {
        verdicts[place] = sorter.sort(packet)
    });
    (Outcome::Each, sorter.finish())
}

/// Takes frames in one by one, where they belong.
pub(super) struct Sorter<'a> {
    pub(super) shares: &'a SubInterfaces,
    own: Intake<'a>,
    theirs: Intake<'a>,
    census: Census,
}

impl Sorter<'_> {
    /// Counts a frame and says where it goes.
    #[inline(always)]
    pub(super) fn sort(&mut self, packet: &mut Pkt) -> Verdict {
        if packet.data().first().is_some_and(|first| first & 1 != 0) || packet.is_chained() {
            self.census.take(packet);
        } else {
            self.census.bytes += packet.len() as u64;
        }
        match share_of(self.shares, packet) {
            Ok(Some(index)) => self.theirs.take_tagged(index, packet),
            Ok(None) => self.own.decide(packet),
            Err(reason) => Verdict::drop(reason),
        }
    }

    /// The end of a vector: what the frames were.
    pub(super) fn finish(mut self) -> Census {
        self.theirs.finish();
        self.census
    }
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
