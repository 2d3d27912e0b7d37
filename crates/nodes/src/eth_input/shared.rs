//! An interface that has sub-interfaces: whose is a frame?

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Outcome, Verdict};
use weir_port::interface::Interface;
use weir_port::sub_interface::SubInterfaces;
use weir_wire::EtherType;
use weir_wire::vlan::{Outer, TAG_LEN};

use super::{Census, ETHERNET};
use crate::interface_input::Intake;
use crate::{Tables, each};

/// An interface with sub-interfaces: each frame is theirs or the interface's own.
#[inline(always)]
pub(super) fn shared(
    cx: &Cx<'_, Tables>,
    interface: &Interface,
    shares: &SubInterfaces,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let mut census = Census::default();
    let (own, mut theirs) = (Intake::of(cx, interface), Intake::new(cx));
    each::frame(packets, |place, packet| {
        if packet.data().first().is_some_and(|first| first & 1 != 0) || packet.is_chained() {
            census.take(packet);
        } else {
            census.bytes += packet.len() as u64;
        }
        verdicts[place] = match share_of(shares, packet) {
            Ok(Some(index)) => theirs.take_tagged(index, packet),
            Ok(None) => own.decide(packet),
            Err(reason) => Verdict::drop(reason),
        };
    });
    theirs.finish();
    (Outcome::Each, census)
}

/// The sub-interface that a frame's tags say; `None` when it has none, or one that says a priority only.
#[inline(always)]
fn share_of(shares: &SubInterfaces, packet: &Pkt) -> Result<Option<u32>, DropReason> {
    let Some(&[.., a, b, control, vlan, c, d]) = packet.data().first_chunk::<TAGGED>() else { return share_of_odd(shares, packet) };
    let (outer, inner) = (EtherType(u16::from_be_bytes([a, b])), EtherType(u16::from_be_bytes([c, d])));
    if !outer.is_tag() {
        return Ok(None);
    }
    let vlan = u16::from_be_bytes([control & 0x0f, vlan]);
    if vlan == 0 || inner.is_tag() {
        return share_of_odd(shares, packet);
    }
    shares.of_one(outer == EtherType::QINQ, vlan).map(Some).ok_or(DropReason::VlanUnknown)
}

/// Bytes of an Ethernet header with a tag.
const TAGGED: usize = ETHERNET + TAG_LEN;

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
