//! mpls-push: an IP packet gets labels and leaves.
//!
//! The usual case, a plain packet for a neighbour that is known, is done in ip4-lookup's pass by [`plain4`]. The node
//! sees what is left: ip4-rewrite has looked at MTU (less what the labels take), time to live and neighbour, so only
//! the labels are to be put on.

use weir_buf::{Flags, Pkt};
use weir_fib::{Adjacency, Labelled};
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};
use weir_wire::ipv6::Flow;
use weir_wire::{EtherType, EthernetHeader, Ipv4Header, Ipv6Header};

use super::{BOTTOM, CLASS_SHIFT, ENTRY, Fields, entropy, write_entries, write_ethernet};
use crate::frame::ETHERNET;
use crate::ip4_rewrite::hop_taken;
use crate::ip4_steps::Plain;
use crate::{Tables, flow_hash4};

pub(crate) struct MplsPush;

impl Node<Tables> for MplsPush {
    const SPEC: NodeSpec = NodeSpec {
        name: "mpls-push",
        about: "Puts labels onto IP packets and sends them to the neighbour below the labels.",
        nexts: &[],
        reasons: &[DropReason::NoRoute, DropReason::HostUnreachable],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = push(cx.world, packet);
        }
        Outcome::Each
    }
}

#[inline(never)]
fn push(tables: &Tables, packet: &mut Pkt) -> Verdict {
    let Some(labelled) = tables
        .nexthops
        .adjacency(packet.aux())
        .and_then(|adjacency| adjacency.labelled())
    else {
        return Verdict::drop(DropReason::NoRoute);
    };
    let Some((ttl, class)) = hops_and_class(packet) else {
        return Verdict::drop(DropReason::NoRoute);
    };
    let entropy = if labelled.entropy().is_some() {
        entropy(hash(packet))
    } else {
        0
    };
    let fields = Fields {
        ttl,
        class,
        bottom: true,
        swapped: false,
        entropy,
    };
    put_on(packet, labelled, fields)
}

/// Labels in front of what lies behind the Ethernet header, and off to the neighbour.
pub(crate) fn put_on(packet: &mut Pkt, labelled: &Labelled, fields: Fields) -> Verdict {
    let bytes = labelled.bytes();
    let Some(place) = packet
        .push_front(bytes)
        .and_then(|frame| frame.get_mut(ETHERNET..ETHERNET + bytes))
    else {
        return Verdict::drop(DropReason::NoRoute);
    };
    write_entries(place, labelled, fields);
    if write_ethernet(packet, &labelled.below, EtherType::MPLS) {
        Verdict::OUT
    } else {
        Verdict::drop(DropReason::HostUnreachable)
    }
}

/// Time to live and class of what is to get labels, as it is after this router's own hop.
fn hops_and_class(packet: &Pkt) -> Option<(u8, u8)> {
    let l3 = packet.l3();
    match l3.first()? >> 4 {
        4 => Ipv4Header::read(l3).map(|(header, _)| (header.ttl, header.tos >> 5)),
        6 => {
            Ipv6Header::read(l3).map(|(header, _)| (header.hop_limit, header.traffic_class() >> 5))
        }
        _ => None,
    }
}

fn hash(packet: &Pkt) -> u32 {
    if packet.flags().any(Flags::HASHED) {
        return packet.meta().flow_hash;
    }
    let l3 = packet.l3();
    match l3.first().map(|first| first >> 4) {
        Some(6) => Flow::read(l3).map_or(0, |flow| flow.hash(0)),
        _ => Ipv4Header::read(l3).map_or(0, |(header, _)| {
            flow_hash4(header, l3.get(header.header_len()..).unwrap_or(&[]))
        }),
    }
}

/// The same as [`plain4`] for IPv6, for ip6-lookup.
#[inline(never)]
pub(crate) fn plain6(labelled: &Labelled, packet: &mut Pkt) -> Option<u32> {
    let end = &labelled.below;
    end.rewrite()?;
    if packet.len() + labelled.bytes() > end.longest_frame() || labelled.bytes() > packet.headroom()
    {
        return None;
    }
    let (header, _) = Ipv6Header::read_mut(packet.l3_mut())?;
    if header.hop_limit <= 1 {
        return None;
    }
    header.hop_limit -= 1;
    let (ttl, class) = hops_and_class(packet)?;
    let entropy = if labelled.entropy().is_some() {
        entropy(hash(packet))
    } else {
        0
    };
    let fields = Fields {
        ttl,
        class,
        bottom: true,
        swapped: false,
        entropy,
    };
    (put_on(packet, labelled, fields) == Verdict::OUT).then_some(end.interface)
}

/// Bytes of a plain packet's headers.
const PLAIN: usize = EthernetHeader::LEN + Ipv4Header::LEN;
/// The word of time to live, protocol and checksum, from the first byte of a frame.
const HOPS: usize = EthernetHeader::LEN + 8;

/// The usual case, for ip4-lookup: a plain packet that fits, may go on, and whose neighbour is known. Returns the
/// interface; `None`, and nothing is changed, when anything is otherwise.
#[inline(always)]
pub(crate) fn plain4(labelled: &Labelled, packet: &mut Pkt) -> Option<u32> {
    let (start, end) = labelled.below.in_use()?;
    let bytes = labelled.bytes();
    if packet.len() + bytes > labelled.below.longest_frame() || bytes > packet.headroom() {
        return None;
    }
    packet.set_l3_offset(ETHERNET);
    let hash = if labelled.entropy().is_some() {
        entropy(hash(packet))
    } else {
        0
    };
    let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
    let place = frame.get_mut(HOPS..)?.first_chunk_mut()?;
    let hops = hop_taken(u32::from_le_bytes(*place))?;
    *place = hops.to_le_bytes();
    let class = frame[ETHERNET + 1] >> 5;
    let fields = Fields {
        ttl: hops as u8,
        class,
        bottom: true,
        swapped: false,
        entropy: hash,
    };
    let frame = packet.push_front(bytes)?;
    let (ethernet, rest) = frame.split_first_chunk_mut::<ETHERNET>()?;
    ethernet[..8].copy_from_slice(&start);
    ethernet[8..12].copy_from_slice(&end);
    ethernet[12..].copy_from_slice(&EtherType::MPLS.0.to_be_bytes());
    write_entries(rest.get_mut(..bytes)?, labelled, fields);
    packet.set_aux(labelled.below.interface);
    Some(labelled.below.interface)
}

/// Bytes of a plain packet's headers up to the checksum, with a label.
const LABELLED: usize = ETHERNET + ENTRY + 12;

/// The same for one label that takes over time to live and class: `entry` without them. What Ethernet padded, behind
/// the packet's whole bytes, goes.
#[inline(always)]
pub(crate) fn one4(below: &Adjacency, entry: u32, packet: &mut Pkt, plain: Plain) -> Option<u32> {
    let (start, rest) = below.in_use_by_ip4()?;
    let hops = hop_taken(plain.hops)?;
    let whole = plain.whole;
    if whole + ENTRY > below.longest_frame() || packet.headroom() < ENTRY {
        return None;
    }
    let word = entry | u32::from(plain.service >> 5) << CLASS_SHIFT | BOTTOM | hops & 0xff;
    if whole != packet.len() {
        let _ = packet.set_len(whole);
    }
    let frame = packet.push_front(ENTRY)?.first_chunk_mut::<LABELLED>()?;
    // Each overwrites the end of the one before.
    frame[..8].copy_from_slice(&start);
    frame[6..ETHERNET].copy_from_slice(&rest);
    frame[12..ETHERNET].copy_from_slice(&EtherType::MPLS.0.to_be_bytes());
    frame[ETHERNET..ETHERNET + ENTRY].copy_from_slice(&word.to_be_bytes());
    frame[HOPS + ENTRY..].copy_from_slice(&hops.to_le_bytes());
    packet.set_l3_offset(ETHERNET);
    packet.set_aux(below.interface);
    Some(below.interface)
}
