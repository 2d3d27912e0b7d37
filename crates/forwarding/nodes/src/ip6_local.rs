//! ip6-local: packets for this router's own addresses and groups.
//!
//! Walks the extension headers, with a bound, and does what the receiver has to do with them; answers echo
//! requests in place (RFC 4443 section 4.2), also to link-local addresses and groups; takes note of other
//! ICMPv6, and hands neighbour discovery to nd-input. What is for a service that this router does not have is
//! answered with the fitting error.
//!
//! An answer to or from a link-local address goes straight back to the station that asked: no table knows on
//! which link such an address is, and it must stay there.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::checksum::{self, Sum};
use weir_wire::ipv6::{self, Chain, MAX_BYTES, MAX_HEADERS};
use weir_wire::{EthernetHeader, IcmpHeader, IpProtocol, Ipv6Header, icmp6, nd};

use crate::Tables;
use crate::frame::{ETHERNET, OWN_TTL};
use crate::icmp6_error::{PORT_UNREACHABLE, REDIRECT, UNKNOWN_NEXT_HEADER, complain};
use crate::ip4_local::check_transport;
use crate::ip6_options::{self, Rejection};
use crate::{linux_punt, packet_sum, vxlan_input};

pub(crate) struct Ip6Local;

const IP6_LOOKUP: Next = Next(0);
const ICMP6_ERROR: Next = Next(1);
const ND_INPUT: Next = Next(2);
const VXLAN_INPUT: Next = Next(3);
const LINUX_PUNT: Next = Next(4);

impl Node<Tables> for Ip6Local {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip6-local",
        about: "Answers echo requests for own IPv6 addresses and takes other packets for this router.",
        nexts: &[
            "ip6-lookup",
            "icmp6-error",
            "nd-input",
            "vxlan-input",
            "linux-punt",
        ],
        reasons: &[
            DropReason::Ip6Truncated,
            DropReason::Ip6BadExtension,
            DropReason::Ip6Option,
            DropReason::LocalFragment,
            DropReason::LocalPort,
            DropReason::LocalProtocol,
            DropReason::LocalTruncated,
            DropReason::TcpBadChecksum,
            DropReason::UdpBadChecksum,
            DropReason::IcmpTruncated,
            DropReason::IcmpBadChecksum,
            DropReason::IcmpUnsupported,
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
            *verdict = match local(cx.world, packet) {
                Ok(verdict) => verdict,
                Err(Rejection::Silent(reason)) => Verdict::drop(reason),
                Err(Rejection::Answered(message, argument)) => {
                    complain(packet, message, argument);
                    Verdict::to(ICMP6_ERROR)
                }
            };
        }
        Outcome::Each
    }
}

fn local(tables: &Tables, packet: &mut Pkt) -> Result<Verdict, Rejection> {
    let Some((header, _)) = Ipv6Header::read(packet.l3()) else {
        return Err(Rejection::Silent(DropReason::Ip6Truncated));
    };
    let group = ipv6::is_multicast(&header.destination);
    let chain = ipv6::walk(packet.l3(), MAX_HEADERS, MAX_BYTES).map_err(ip6_options::fault)?;
    ip6_options::obey(packet.l3(), &chain)?;
    // Linux has all services but the answers to echo requests and neighbour discovery, and puts fragments together.
    let kind = packet.l3().get(chain.offset).copied();
    let is_own = chain.protocol == IpProtocol::ICMP6
        && !chain.is_fragment()
        && matches!(
            kind,
            Some(
                icmp6::ECHO_REQUEST | nd::ROUTER_SOLICITATION
                    ..=nd::NEIGHBOR_ADVERTISEMENT | REDIRECT
            )
        );
    let is_vxlan = chain.protocol == IpProtocol::UDP
        && !group
        && vxlan_input::takes(
            tables,
            packet,
            packet.l3().get(chain.offset..).unwrap_or(&[]),
        );
    if !is_own && !is_vxlan && linux_punt::host(tables, packet).is_some() {
        return Ok(Verdict::to(LINUX_PUNT));
    }
    // An atomic fragment is a whole packet (RFC 6946).
    if chain.is_fragment() {
        return Err(Rejection::Silent(DropReason::LocalFragment));
    }
    match chain.protocol {
        IpProtocol::ICMP6 => icmp(tables, packet, &chain).map_err(Rejection::Silent),
        IpProtocol::NO_NEXT => Ok(Verdict::CONSUME),
        IpProtocol::UDP | IpProtocol::TCP if group => Err(Rejection::Silent(DropReason::LocalPort)),
        _ if group => Err(Rejection::Silent(DropReason::LocalProtocol)),
        IpProtocol::UDP
            if vxlan_input::takes(
                tables,
                packet,
                packet.l3().get(chain.offset..).unwrap_or(&[]),
            ) =>
        {
            packet.set_aux(chain.offset as u32);
            Ok(Verdict::to(VXLAN_INPUT))
        }
        protocol @ (IpProtocol::UDP | IpProtocol::TCP) => {
            check_ports(packet, protocol, &chain).map_err(Rejection::Silent)?;
            Err(Rejection::Answered(PORT_UNREACHABLE, 0))
        }
        _ => Err(Rejection::Answered(
            UNKNOWN_NEXT_HEADER,
            chain.named_at as u32,
        )),
    }
}

fn icmp(tables: &Tables, packet: &mut Pkt, chain: &Chain) -> Result<Verdict, DropReason> {
    let message = packet.l3().get(chain.offset..).and_then(IcmpHeader::read);
    let kind = message
        .map(|(icmp, _)| icmp.kind)
        .ok_or(DropReason::IcmpTruncated)?;
    // Their own check looks at the checksum too.
    if matches!(
        kind,
        nd::ROUTER_SOLICITATION..=nd::NEIGHBOR_ADVERTISEMENT | REDIRECT
    ) {
        return Ok(Verdict::to(ND_INPUT));
    }
    if sum_of(packet, chain) != 0 {
        return Err(DropReason::IcmpBadChecksum);
    }
    match kind {
        icmp6::ECHO_REQUEST => echo(tables, packet, chain),
        icmp6::ECHO_REPLY | icmp6::UNREACHABLE..=icmp6::PARAMETER_PROBLEM => Ok(Verdict::CONSUME),
        _ => Err(DropReason::IcmpUnsupported),
    }
}

/// Whether a TCP or UDP packet is sound. UDP without a checksum is not (RFC 8200 section 8.1).
fn check_ports(packet: &Pkt, protocol: IpProtocol, chain: &Chain) -> Result<(), DropReason> {
    let Some((header, _)) = Ipv6Header::read(packet.l3()) else {
        return Err(DropReason::Ip6Truncated);
    };
    let length = (Ipv6Header::LEN + usize::from(header.payload_len())).saturating_sub(chain.offset);
    let (source, destination) = (&header.source, &header.destination);
    let pseudo = checksum::pseudo6(source, destination, protocol, length as u32);
    check_transport(packet, protocol, chain.offset, length, pseudo, false)
}

/// The checksum over an ICMPv6 message, which may span chunks; 0 when the one in it is right.
fn sum_of(packet: &Pkt, chain: &Chain) -> u16 {
    let Some((header, _)) = Ipv6Header::read(packet.l3()) else {
        return 1;
    };
    let length = (Ipv6Header::LEN + usize::from(header.payload_len())).saturating_sub(chain.offset);
    packet_sum::from_l3(
        packet,
        chain.offset,
        length,
        checksum::pseudo6(
            &header.source,
            &header.destination,
            IpProtocol::ICMP6,
            length as u32,
        ),
    )
}

/// Makes the answer of a request, in place, and without its extension headers.
fn echo(tables: &Tables, packet: &mut Pkt, chain: &Chain) -> Result<Verdict, DropReason> {
    without_extensions(packet, chain)?;
    let Some((header, _)) = Ipv6Header::read(packet.l3()) else {
        return Err(DropReason::IcmpTruncated);
    };
    let (asker, asked) = (header.source, header.destination);
    // A group or an anycast address does not speak (RFC 4443 section 4.2).
    let ours = tables.owns6(packet, u128::from_be_bytes(asked));
    let speaker = if ours {
        Some(asked)
    } else {
        tables
            .source6(packet, u128::from_be_bytes(asker), None)
            .map(u128::to_be_bytes)
    };
    let Some(speaker) = speaker.filter(|_| asker != ipv6::UNSPECIFIED) else {
        return Err(DropReason::IcmpUnsupported);
    };
    let Some((header, message)) = Ipv6Header::read_mut(packet.l3_mut()) else {
        return Err(DropReason::IcmpTruncated);
    };
    let Some((icmp, _)) = IcmpHeader::read_mut(message) else {
        return Err(DropReason::IcmpTruncated);
    };
    // Only the type and, of a group, an address differ from what was summed.
    icmp.kind = icmp6::ECHO_REPLY;
    icmp.set_checksum(changed(icmp.checksum(), &asked, &speaker));
    (header.source, header.destination, header.hop_limit) = (speaker, asker, OWN_TTL);
    packet.set_flags(Flags::ORIGINATED);
    packet.clear_flags(Flags::HASHED | Flags::HELD | Flags::MULTICAST | Flags::BROADCAST);
    Ok(
        if ipv6::is_link_local(&asker) || ipv6::is_link_local(&speaker) {
            send_back(tables, packet)?
        } else {
            Verdict::to(IP6_LOOKUP)
        },
    )
}

/// The checksum of a request, as it is of its answer from `speaker` instead of `asked`.
fn changed(old: u16, asked: &[u8; 16], speaker: &[u8; 16]) -> u16 {
    // RFC 1624 equation 3: ~(~HC + ~m + m'), the type being the first octet of its word.
    let complement: [u8; 16] = asked.map(|octet| !octet);
    let kinds = u16::from_be_bytes([!icmp6::ECHO_REQUEST, 0xff]);
    Sum::EMPTY
        .add_u16(!old)
        .add_bytes(&complement)
        .add_bytes(speaker)
        .add_u16(kinds)
        .add_u16(u16::from_be_bytes([icmp6::ECHO_REPLY, 0]))
        .finish()
}

/// Takes the extension headers out.
fn without_extensions(packet: &mut Pkt, chain: &Chain) -> Result<(), DropReason> {
    let extra = chain.offset.saturating_sub(Ipv6Header::LEN);
    if extra == 0 {
        return Ok(());
    }
    if packet.is_chained() {
        return Err(DropReason::LocalFragment);
    }
    let l3 = packet.l3_mut();
    if chain.offset > l3.len() {
        return Err(DropReason::IcmpTruncated);
    }
    l3.copy_within(chain.offset.., Ipv6Header::LEN);
    if let Some((header, _)) = Ipv6Header::read_mut(l3) {
        header.set_next_header(chain.protocol);
        header.set_payload_len(header.payload_len().saturating_sub(extra as u16));
    }
    let _ = packet.set_len(packet.len() - extra);
    Ok(())
}

/// The verdict that sends a packet back to the station that it came from.
fn send_back(tables: &Tables, packet: &mut Pkt) -> Result<Verdict, DropReason> {
    let interface = packet.interface();
    let mac = tables
        .interface(interface)
        .map(|interface| interface.mac)
        .ok_or(DropReason::IcmpTruncated)?;
    debug_assert_eq!(packet.l3_offset(), ETHERNET);
    let Some((ethernet, _)) = EthernetHeader::read_mut(packet.data_mut()) else {
        return Err(DropReason::IcmpTruncated);
    };
    (ethernet.destination, ethernet.source) = (ethernet.source, mac);
    packet.set_aux(interface);
    Ok(Verdict::OUT)
}
