//! Tags come off a frame and onto it.
//!
//! The MAC addresses move, the rest of the frame stays where it is. What should come off must be there.

use weir_buf::Pkt;
use weir_graph::DropReason;
use weir_port::sub_interface::TagChange;
use weir_wire::EtherType;
use weir_wire::vlan::{TAG_AT, TAG_LEN};

/// The priority and drop eligibility of a tag: the upper bits of its third byte.
const PRIORITY: u8 = 0xf0;

/// How far to the left the priority stands there.
const PRIORITY_AT: u8 = 5;

/// Notes the priority of the outer tag of a frame that is not routed, for the tag that it leaves with.
#[inline(always)]
pub(crate) fn note_priority(packet: &mut Pkt) {
    let control = packet.data().get(TAG_AT + 2).copied().unwrap_or(0);
    packet.set_priority(control >> PRIORITY_AT);
}

/// Changes the tags of a frame. Where tags take the place of others, the outer one keeps the priority; where they take
/// nobody's, it has the one that was noted when the frame came in.
///
/// # Errors
/// The frame lacks tags that should come off, ends within them, or has no room in front; it is unchanged then.
#[inline(always)]
pub(crate) fn change_tags(packet: &mut Pkt, change: &TagChange) -> Result<(), DropReason> {
    let (pop, push) = (usize::from(change.pop), change.push.as_bytes());
    if pop == 1
        && push.is_empty()
        && let Some(&frame) = packet.data().first_chunk::<TAGGED>()
    {
        return take_off(packet, &frame);
    }
    let gone = pop * TAG_LEN;
    let Some(&addresses) = packet.data().first_chunk::<TAG_AT>() else {
        return Err(DropReason::TooShort);
    };
    let mut priority = packet.priority() << PRIORITY_AT;
    for tag in 0..pop {
        let Some(&[a, b, control, _, _, _]) = packet
            .data()
            .get(TAG_AT + tag * TAG_LEN..)
            .and_then(|rest| rest.first_chunk())
        else {
            return Err(DropReason::VlanTruncated);
        };
        if !EtherType(u16::from_be_bytes([a, b])).is_tag() {
            return Err(DropReason::VlanMissing);
        }
        if tag == 0 {
            priority = control & PRIORITY;
        }
    }
    if push.len() > gone {
        packet
            .push_front(push.len() - gone)
            .ok_or(DropReason::NoHeadroom)?;
    } else if !packet.pull_front(gone - push.len()) {
        return Err(DropReason::VlanTruncated);
    }
    packet.set_l3_offset((packet.l3_offset() + push.len()).saturating_sub(gone));
    let Some((front, rest)) = packet.data_mut().split_first_chunk_mut::<TAG_AT>() else {
        return Err(DropReason::TooShort);
    };
    *front = addresses;
    if let Some(place) = rest.get_mut(..push.len()) {
        place.copy_from_slice(push);
        if let Some(control) = place.get_mut(2) {
            *control |= priority;
        }
    }
    Ok(())
}

/// Bytes of a frame up to the ethertype behind its tag.
const TAGGED: usize = TAG_AT + TAG_LEN + 2;

/// The same for the usual change: the only tag comes off. `frame` is how the packet begins.
#[inline(always)]
fn take_off(packet: &mut Pkt, frame: &[u8; TAGGED]) -> Result<(), DropReason> {
    let [addresses @ .., a, b, _, _, _, _] = frame;
    if !EtherType(u16::from_be_bytes([*a, *b])).is_tag() {
        return Err(DropReason::VlanMissing);
    }
    if !packet.pull_front(TAG_LEN) {
        return Err(DropReason::VlanTruncated);
    }
    packet.set_l3_offset(packet.l3_offset().saturating_sub(TAG_LEN));
    if let Some(front) = packet.data_mut().first_chunk_mut::<TAG_AT>() {
        *front = *addresses;
    }
    Ok(())
}
