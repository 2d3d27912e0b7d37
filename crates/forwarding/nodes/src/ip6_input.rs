//! ip6-input: is this a sound IPv6 packet, and may it be forwarded at all?
//!
//! The fixed header (RFC 8200 section 3) and its addresses (RFC 4291). Extension headers are nobody's
//! business but the destination's: hop-by-hop options may be passed by (RFC 8200 section 4, RFC 9673), and
//! all others are for the receiver. What Ethernet padded behind the packet is cut off. The hop limit is
//! looked at where a packet leaves (ip6-rewrite), since a packet for this router may arrive with any.
//!
//! Groups and link-local addresses need no route: what this router listens to goes to ip6-local from
//! here, all else of that kind ends here.

use weir_buf::{Flags, Pkt};
use weir_fib::AdjacencyKind;
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::{Feature, Interface};
use weir_port::own_addresses::OwnAddresses;
use weir_wire::ipv6::{self, UNSPECIFIED};
use weir_wire::{EtherType, EthernetHeader, IpProtocol, Ipv6Header};

use crate::eth_input::{ETHERNET, Station};
use crate::{Tables, ip4_input};

pub(crate) struct Ip6Input;

const IP6_LOOKUP: Next = Next(0);
const ACL_INPUT: Next = Next(2);
const IP6_LOCAL: Next = Next(1);
const IP6_URPF: Next = Next(3);
const LINUX_PUNT: Next = Next(4);

/// The scope of a group that is of one link (RFC 4291 section 2.7).
const LINK_LOCAL_SCOPE: u8 = 2;

impl Node<Tables> for Ip6Input {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip6-input",
        about: "Validates the IPv6 header and its addresses.",
        nexts: &[
            "ip6-lookup",
            "ip6-local",
            "acl-input",
            "ip6-urpf",
            "linux-punt",
        ],
        reasons: &[
            DropReason::Ip6NotEnabled,
            DropReason::Ip6Truncated,
            DropReason::Ip6BadVersion,
            DropReason::Ip6BadLength,
            DropReason::Ip6SourceLoopback,
            DropReason::Ip6SourceUnspecified,
            DropReason::Ip6SourceMulticast,
            DropReason::Ip6SourceOwn,
            DropReason::Ip6MartianSource,
            DropReason::Ip6DestinationLoopback,
            DropReason::Ip6MartianDestination,
            DropReason::Ip6Multicast,
            DropReason::Ip6GroupFrame,
            DropReason::Ip6LinkLocal,
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
            let interface = cx.world.interface(packet.interface());
            *verdict = match check(cx.world, interface, packet) {
                // What was under a label is no matter of the interface's.
                Ok(IP6_LOOKUP) if packet.flags().any(Flags::TABLED) => Verdict::to(IP6_LOOKUP),
                Ok(IP6_LOOKUP) if interface.is_some_and(|it| it.features.has(Feature::AclIn)) => {
                    Verdict::to(ACL_INPUT)
                }
                Ok(IP6_LOOKUP) if interface.is_some_and(|it| it.features.has(Feature::Urpf)) => {
                    Verdict::to(IP6_URPF)
                }
                Ok(next) => Verdict::to(next),
                Err(reason) => Verdict::drop(reason),
            };
        }
        Outcome::Each
    }
}

/// Bytes that a plain packet has at least, with its Ethernet header.
const PLAIN: usize = ETHERNET + Ipv6Header::LEN;

/// For eth-input: whether this is a whole frame for this station with a plain packet that may be forwarded. If so, the
/// packet is ready for ip6-lookup; a group frame never is.
#[inline(always)]
pub(crate) fn plain(interface: &Interface, station: Station, packet: &mut Pkt) -> bool {
    let Some(frame) = packet.data().first_chunk::<PLAIN>() else {
        return false;
    };
    let Some((ethernet, l3)) = EthernetHeader::read(frame) else {
        return false;
    };
    let Some((header, _)) = Ipv6Header::read(l3) else {
        return false;
    };
    let (bytes, total) = (
        packet.len() - ETHERNET,
        Ipv6Header::LEN + header.payload_len() as usize,
    );
    let ours = station.is_meant_by(frame)
        & (ethernet.ethertype() == EtherType::IPV6)
        & !packet.is_chained();
    if !(ours & is_plain(&interface.own, header) & !interface.addresses6.is_empty())
        || total > bytes
    {
        return false;
    }
    packet.set_l3_offset(ETHERNET);
    packet.set_flags(Flags::PLAIN_IP6);
    if total != bytes {
        let _ = packet.set_len(ETHERNET + total);
    }
    true
}

/// The usual case: between two addresses that are neither groups nor link-local nor special. What passes
/// here and has a fitting length passes [`check`] too, and goes on to ip6-lookup.
#[inline(always)]
fn is_plain(own: &OwnAddresses, header: &Ipv6Header) -> bool {
    let between = between_hosts(header.source[0], header.destination[0]);
    // A payload of no length is empty, or a jumbogram's (RFC 2675).
    let foreign = !own.may_have6_octets(&header.source);
    (header.version() == 6) & between & foreign & (header.payload_len() != 0)
}

/// Whether a packet from and to addresses with these first octets is between two hosts.
#[inline(always)]
pub(crate) fn between_hosts(source: u8, destination: u8) -> bool {
    // `::/8` holds all that is special, `fe00::/8` what is link-local, `ff00::/8` groups: two more make 0 to 2.
    (source.wrapping_add(2) > 2) & (destination.wrapping_add(2) > 2)
}

#[inline(never)]
fn check(
    tables: &Tables,
    interface: Option<&Interface>,
    packet: &mut Pkt,
) -> Result<Next, DropReason> {
    let bytes = packet.total_len().saturating_sub(packet.l3_offset());
    // While it is still being asked whether its first addresses are free, the answers are heard (RFC 4862 section 5.4.4).
    let enabled = |interface: &&Interface| {
        !interface.addresses6.is_empty() || !interface.tentative6.is_empty()
    };
    // Who takes labels takes what is under them, though its own link be without IPv6 (RFC 4798).
    let labelled = packet.flags().any(Flags::TABLED);
    let Some(interface) = interface.filter(|interface| labelled || enabled(interface)) else {
        return Err(DropReason::Ip6NotEnabled);
    };
    let Some((header, _)) = Ipv6Header::read(packet.l3()) else {
        return Err(DropReason::Ip6Truncated);
    };
    if header.version() != 6 {
        return Err(DropReason::Ip6BadVersion);
    }
    let total = Ipv6Header::LEN + usize::from(header.payload_len());
    if total > bytes
        || (header.payload_len() == 0 && header.next_header() == IpProtocol::HOP_BY_HOP)
    {
        return Err(DropReason::Ip6BadLength);
    }
    let link = Some(interface).filter(|_| !labelled);
    let next = way(
        link,
        header,
        packet.flags().any(Flags::MULTICAST | Flags::BROADCAST),
    )?;
    let source = header.source;
    if next == IP6_LOOKUP && is_from_own(tables, interface, packet, source) {
        return Err(DropReason::Ip6SourceOwn);
    }
    if total < bytes {
        ip4_input::shorten(packet, total);
    }
    Ok(next)
}

/// Whether a packet from outside has a source address of this router, in the table that routes it. Link-local addresses
/// have no routes. Neighbour discovery to groups is not inspected: it is how a duplicate address shows (RFC 4862 section 5.4).
fn is_from_own(tables: &Tables, interface: &Interface, packet: &Pkt, source: [u8; 16]) -> bool {
    if !interface.own.may_have6_octets(&source) || packet.flags().any(Flags::ORIGINATED) {
        return false;
    }
    let group = tables
        .fib6_for(packet)
        .map_or(0, |fib| fib.lookup(u128::from_be_bytes(source)));
    tables.nexthops.kind(tables.nexthops.choose(group, || 0)) == AdjacencyKind::Local
}

/// What the addresses say. What came under a label is of no link: nobody's group or link-local address is meant.
fn way(
    link: Option<&Interface>,
    header: &Ipv6Header,
    group_frame: bool,
) -> Result<Next, DropReason> {
    let (source, destination) = (&header.source, &header.destination);
    if ipv6::is_forbidden_source(source) || (link.is_none() && ipv6::is_link_local(source)) {
        return Err(martian_source(source));
    }
    if ipv6::is_forbidden_destination(destination) {
        return Err(match u128::from_be_bytes(*destination) {
            1 => DropReason::Ip6DestinationLoopback,
            _ => DropReason::Ip6MartianDestination,
        });
    }
    if ipv6::is_multicast(destination) {
        return if link.is_some_and(|link| link.listens6(destination)) {
            Ok(IP6_LOCAL)
        } else if destination[1] & 0x0f == LINK_LOCAL_SCOPE
            && link.is_some_and(|link| link.host.is_some())
        {
            // Linux may listen to groups of the link.
            Ok(LINUX_PUNT)
        } else {
            Err(DropReason::Ip6Multicast)
        };
    }
    // Only who asks a group whether an address is free has none himself (RFC 4862 section 5.4.2).
    if *source == UNSPECIFIED {
        return Err(DropReason::Ip6SourceUnspecified);
    }
    if group_frame {
        return Err(DropReason::Ip6GroupFrame);
    }
    if ipv6::is_link_local(destination) {
        let ours = link.is_some_and(|link| link.owns6(u128::from_be_bytes(*destination)));
        return if ours {
            Ok(IP6_LOCAL)
        } else {
            Err(DropReason::Ip6LinkLocal)
        };
    }
    Ok(IP6_LOOKUP)
}

/// Which address of those that no packet comes from is the source.
#[cold]
fn martian_source(source: &[u8; 16]) -> DropReason {
    match u128::from_be_bytes(*source) {
        1 => DropReason::Ip6SourceLoopback,
        _ if ipv6::is_multicast(source) => DropReason::Ip6SourceMulticast,
        _ => DropReason::Ip6MartianSource,
    }
}
