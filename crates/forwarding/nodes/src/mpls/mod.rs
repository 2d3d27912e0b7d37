//! MPLS (RFC 3031, 3032): what its nodes share. One file a node beside this one.
//!
//! A labelled packet lies in its buffer as it came: an Ethernet header at the front, the stack behind it. Until a node
//! knows that the packet leaves, nothing of it is changed, so that it can be held, cut, or quoted in an ICMP
//! message as it arrived. Labels come off and on at the front; the Ethernet header is written anew.

mod error;
mod fragment;
mod glean;
mod hash;
mod input;
mod lookup;
mod push;
mod steps;

pub use hash::flow_hash_mpls;

pub(crate) use error::MplsError;
pub(crate) use fragment::MplsFragment;
pub(crate) use glean::MplsGlean;
pub(crate) use hash::entropy;
pub(crate) use input::MplsInput;
pub(crate) use lookup::MplsLookup;
pub(crate) use push::{MplsPush, one4, plain4, plain6};
pub(crate) use steps::MplsSteps;

use weir_buf::Pkt;
use weir_fib::{Adjacency, Labelled};
use weir_wire::EtherType;
use weir_wire::mpls::{self, Label, Stack};

use crate::frame::ETHERNET;

/// Bytes of a label stack entry.
pub(crate) const ENTRY: usize = 4;
/// The deepest stack that is walked.
pub(crate) const DEEPEST: usize = 64;

/// A packet's stack from its top, walked to the bottom; `None` when it has none within the first chunk or the bound.
pub(crate) fn stack_of(packet: &Pkt) -> Option<Stack<'_>> {
    let mut stack = mpls::read_stack(packet.data().get(ETHERNET..)?, DEEPEST).ok()?;
    stack.beyond = packet.total_len().saturating_sub(packet.len());
    Some(stack)
}

/// The top entry as a number.
#[inline(always)]
pub(crate) fn top_of(packet: &Pkt) -> Option<u32> {
    packet
        .data()
        .get(ETHERNET..)?
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

/// What a stack entry holds beside its label.
const TTL: u32 = 0xff;
const BOTTOM: u32 = 0x100;
const CLASS_SHIFT: u32 = 9;
const LABEL_SHIFT: u32 = 12;

/// Where the fields of pushed entries come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    /// The time to live of what is under them, after this router's hop.
    pub(crate) ttl: u8,
    /// The traffic class of what is under them.
    pub(crate) class: u8,
    /// Whether the last one is the stack's bottom.
    pub(crate) bottom: bool,
    /// Whether the last one takes the place of a label that came off: its time to live goes on in any mode.
    pub(crate) swapped: bool,
    /// The entropy label, where one is wanted.
    pub(crate) entropy: u32,
}

/// Writes the entries of a stack; `place` has as many bytes as they take.
#[inline(always)]
pub(crate) fn write_entries(place: &mut [u8], labelled: &Labelled, fields: Fields) {
    let last = labelled.entries().len().saturating_sub(1);
    for (number, (place, (entry, manner))) in place
        .as_chunks_mut::<ENTRY>()
        .0
        .iter_mut()
        .zip(labelled.written())
        .enumerate()
    {
        let kept = manner.is_uniform() || (fields.swapped && number == last);
        let ttl = if kept { fields.ttl } else { labelled.ttl };
        let class = u32::from(manner.class(fields.class)) << CLASS_SHIFT;
        let bottom = if number == last && fields.bottom {
            BOTTOM
        } else {
            0
        };
        let word = if labelled.entropy() == Some(number) {
            // RFC 6790 section 4.2: its time to live is 0, so that nobody forwards by it.
            fields.entropy << LABEL_SHIFT | class | bottom
        } else {
            entry | class | bottom | u32::from(ttl)
        };
        *place = word.to_be_bytes();
    }
}

/// Writes the Ethernet header of a packet that leaves for a neighbour; `false` when its address is not known.
pub(crate) fn write_ethernet(packet: &mut Pkt, end: &Adjacency, ethertype: EtherType) -> bool {
    let Some(destination) = end.rewrite() else {
        return false;
    };
    let Some(frame) = packet.data_mut().first_chunk_mut::<ETHERNET>() else {
        return false;
    };
    frame[..6].copy_from_slice(&destination);
    frame[6..12].copy_from_slice(&end.source_mac());
    frame[12..].copy_from_slice(&ethertype.0.to_be_bytes());
    packet.set_aux(end.interface);
    packet.set_l3_offset(ETHERNET);
    end.note_used();
    true
}

/// Takes `bytes` out from behind the Ethernet header; that moves up, its type changed.
pub(crate) fn take_out(packet: &mut Pkt, bytes: usize, ethertype: EtherType) -> bool {
    let Some(stations) = packet.data().first_chunk::<{ ETHERNET - 2 }>().copied() else {
        return false;
    };
    if packet.len() < ETHERNET + bytes || !packet.pull_front(bytes) {
        return false;
    }
    if let Some(header) = packet.data_mut().first_chunk_mut::<ETHERNET>() {
        header[..ETHERNET - 2].copy_from_slice(&stations);
        header[ETHERNET - 2..].copy_from_slice(&ethertype.0.to_be_bytes());
    }
    packet.set_l3_offset(ETHERNET);
    true
}

/// Whether a label tells where to go by an entry of the table.
#[inline(always)]
pub(crate) fn is_ordinary(label: u32) -> bool {
    !Label(label).is_special()
}
