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
use weir_port::interface::Interface;
use weir_wire::ipv6::{self, UNSPECIFIED};
use weir_wire::{IpProtocol, Ipv6Header};

use crate::features::{self, FeatureArc, IP6_LOOKUP};
use crate::{Tables, ip4_input};

pub(crate) struct Ip6Input;

const IP6_LOCAL: Next = Next(0);
const LINUX_PUNT: Next = Next(1);

/// The scope of a group that is of one link (RFC 4291 section 2.7).
const LINK_LOCAL_SCOPE: u8 = 2;

impl Node<Tables> for Ip6Input {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip6-input",
        about: "Validates the IPv6 header and its addresses.",
        nexts: &["ip6-local", "linux-punt"],
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
                // What was under a label does not pass the features of the interface.
                Ok(IP6_LOOKUP)
                    if !packet.flags().any(Flags::TABLED)
                        && let Some(interface) = interface =>
                {
                    features::next(FeatureArc::Ip6, interface, None)
                }
                Ok(next) => Verdict::to(next),
                Err(reason) => Verdict::drop(reason),
            };
        }
        Outcome::Each
    }
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
