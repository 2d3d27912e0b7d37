//! ip4-input: is this a sound IPv4 packet that may be forwarded at all?
//!
//! The checks of RFC 1812 section 5.2.2 and the addresses of 5.3.7. What Ethernet padded behind the
//! packet is cut off. The time to live is looked at where a packet leaves (ip4-rewrite), since a
//! packet for this router itself may arrive with any.

use weir_buf::{Flags, Pkt};
use weir_fib::AdjacencyKind;
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::Ipv4Header;
use weir_wire::checksum;

use crate::features::{self, FeatureArc};
use crate::icmp4_error::{BAD_OPTION, complain};
use crate::ip4_options::{self, Refused};
use crate::{Tables, linux_punt};

pub(crate) struct Ip4Input;

const LINUX_PUNT: Next = Next(0);
const ICMP4_ERROR: Next = Next(1);

impl Node<Tables> for Ip4Input {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip4-input",
        about: "Validates the IPv4 header, its checksum and its addresses.",
        nexts: &["linux-punt", "icmp4-error"],
        reasons: &[
            DropReason::Ip4Truncated,
            DropReason::Ip4BadVersion,
            DropReason::Ip4BadHeaderLength,
            DropReason::Ip4BadLength,
            DropReason::Ip4BadChecksum,
            DropReason::Ip4SourceLoopback,
            DropReason::Ip4SourceUnspecified,
            DropReason::Ip4SourceMulticast,
            DropReason::Ip4SourceBroadcast,
            DropReason::Ip4SourceReserved,
            DropReason::Ip4SourceOwn,
            DropReason::Ip4DestinationLoopback,
            DropReason::Ip4DestinationUnspecified,
            DropReason::Ip4DestinationReserved,
            DropReason::Ip4SourceRoute,
            DropReason::Ip4Multicast,
            DropReason::Ip4Broadcast,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = match check(cx.world, packet) {
                Ok(()) if has_options(packet) => with_options(cx.world, packet),
                Ok(()) => onward(cx.world, packet),
                Err(DropReason::Ip4Multicast) if linux_punt::is_for_group4(cx.world, packet) => {
                    Verdict::to(LINUX_PUNT)
                }
                Err(reason) => Verdict::drop(reason),
            };
        }
        Outcome::Each
    }
}

fn has_options(packet: &Pkt) -> bool {
    packet.l3().first().is_some_and(|first| *first != 0x45)
}

/// A sound packet with options: where it goes if they are sound too.
#[cold]
fn with_options(tables: &Tables, packet: &mut Pkt) -> Verdict {
    let length = Ipv4Header::read(packet.l3()).map_or(0, |(header, _)| header.header_len());
    let header = packet.l3().get(..length).unwrap_or(&[]);
    match ip4_options::check(header, tables.source_routes) {
        Ok(()) => onward(tables, packet),
        Err(Refused::Silent(reason)) => Verdict::drop(reason),
        Err(Refused::Malformed(octet)) => {
            complain(packet, BAD_OPTION, octet.into());
            Verdict::to(ICMP4_ERROR)
        }
    }
}

/// Where a sound packet goes, as its interface wants it.
fn onward(tables: &Tables, packet: &Pkt) -> Verdict {
    // What was under a label does not pass the features of the interface.
    match tables.interface(packet.interface()) {
        Some(interface) if !packet.flags().any(Flags::TABLED) => {
            features::next(FeatureArc::Ip4, interface, None)
        }
        _ => Verdict::to(features::IP4_LOOKUP),
    }
}

/// Whether a packet from and to addresses with these first octets may cross a router.
#[inline(always)]
pub(crate) fn between_hosts(source: u8, destination: u8) -> bool {
    CLASS[usize::from(source)] | CLASS[usize::from(destination)] == UNICAST
}

#[inline(always)]
fn check(tables: &Tables, packet: &mut Pkt) -> Result<(), DropReason> {
    let bytes = packet.total_len().saturating_sub(packet.l3_offset());
    let l3 = packet.l3();
    let Some((header, _)) = Ipv4Header::read(l3) else {
        return Err(DropReason::Ip4Truncated);
    };
    let total = header.total_len() as usize;
    let plain = header.version_ihl == 0x45;
    let sound = if plain {
        checksum::ipv4_header_ok(header)
    } else {
        check_options(l3)?
    };
    let (source, destination) = (header.source(), header.destination());
    if !sound {
        return Err(DropReason::Ip4BadChecksum);
    }
    if total > bytes || total < header.header_len() {
        return Err(DropReason::Ip4BadLength);
    }
    if CLASS[(source >> 24) as usize] != UNICAST {
        return Err(martian_source(source));
    }
    if is_from_own(tables, packet, source) {
        return Err(DropReason::Ip4SourceOwn);
    }
    let class = CLASS[(destination >> 24) as usize];
    if class != UNICAST {
        return Err(odd_destination(class, destination));
    }
    if packet.flags().any(Flags::MULTICAST | Flags::BROADCAST) {
        // RFC 1812 5.3.4: what came as a link-layer broadcast is not forwarded.
        return Err(DropReason::Ip4Broadcast);
    }
    if total < bytes {
        shorten(packet, total);
    }
    Ok(())
}

/// Whether a packet from outside has a source address of this router, in the table that routes it (RFC 1812 section 5.3.7).
#[inline(always)]
fn is_from_own(tables: &Tables, packet: &Pkt, source: u32) -> bool {
    let may_be = tables
        .interface(packet.interface())
        .is_some_and(|interface| interface.own.may_have4(source.swap_bytes()));
    may_be && is_own(tables, packet, source)
}

/// The exact answer. What this router itself sent may come by here when its label path ends in it.
#[cold]
fn is_own(tables: &Tables, packet: &Pkt, source: u32) -> bool {
    let group = tables.fib4_for(packet).map_or(0, |fib| fib.lookup(source));
    !packet.flags().any(Flags::ORIGINATED)
        && tables.nexthops.kind(tables.nexthops.choose(group, || 0)) == AdjacencyKind::Local
}

/// Cuts off what lies behind the first `total` bytes from the network header on.
pub(crate) fn shorten(packet: &mut Pkt, total: usize) {
    let len = packet.l3_offset() + total;
    if packet.is_chained() {
        shorten_chain(packet, len);
    } else {
        let _ = packet.set_len(len);
    }
}

/// Cuts a packet of several chunks off behind `len` bytes. As deep as there are chunks, at most 64.
#[cold]
fn shorten_chain(packet: &mut Pkt, len: usize) {
    let first = packet.len();
    let rest = packet.split_first();
    if len <= first {
        let _ = packet.set_len(len);
    } else if let Some(mut rest) = rest {
        shorten_chain(&mut rest, len - first);
        let _ = packet.append(rest);
    }
}

/// A header that is not the usual 20 bytes of version 4: whether its checksum is right.
#[cold]
fn check_options(l3: &[u8]) -> Result<bool, DropReason> {
    let Some((header, _)) = Ipv4Header::read(l3) else {
        return Err(DropReason::Ip4Truncated);
    };
    if header.version() != 4 {
        return Err(DropReason::Ip4BadVersion);
    }
    if header.header_len() < 20 {
        return Err(DropReason::Ip4BadHeaderLength);
    }
    let header = l3
        .get(..header.header_len())
        .ok_or(DropReason::Ip4BadHeaderLength)?;
    Ok(checksum::internet(header) == 0)
}

#[cold]
fn odd_destination(class: u8, destination: u32) -> DropReason {
    match class {
        MULTICAST => DropReason::Ip4Multicast,
        _ if destination == u32::MAX => DropReason::Ip4Broadcast,
        _ if destination >> 24 == 127 => DropReason::Ip4DestinationLoopback,
        _ if destination >> 24 == 0 => DropReason::Ip4DestinationUnspecified,
        _ => DropReason::Ip4DestinationReserved,
    }
}

/// Which address of those that are no host's is the source.
#[cold]
fn martian_source(source: u32) -> DropReason {
    match source.to_be_bytes() {
        [255, 255, 255, 255] => DropReason::Ip4SourceBroadcast,
        [0, ..] => DropReason::Ip4SourceUnspecified,
        [127, ..] => DropReason::Ip4SourceLoopback,
        [224..=239, ..] => DropReason::Ip4SourceMulticast,
        _ => DropReason::Ip4SourceReserved,
    }
}

const UNICAST: u8 = 0;
const MARTIAN: u8 = 1;
const MULTICAST: u8 = 2;

/// By first octet: 0/8 and 127/8 and 240/4 never cross a router (RFC 1812 5.3.7), 224/4 is multicast.
static CLASS: [u8; 256] = {
    let mut class = [UNICAST; 256];
    class[0] = MARTIAN;
    class[127] = MARTIAN;
    let mut octet = 224;
    while octet < 256 {
        class[octet] = if octet < 240 { MULTICAST } else { MARTIAN };
        octet += 1;
    }
    class
};
