//! ip4-local: packets for this router's own addresses.
//!
//! Answers echo requests in place (RFC 1122 3.2.2.6) and takes note of other ICMP. What is for a
//! service that this router does not have is answered with the fitting unreachable message.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::checksum::{self, Sum, pseudo4};
use weir_wire::{IcmpHeader, IpProtocol, Ipv4Header, TcpHeader, UdpHeader};

use crate::Tables;
use crate::frame::OWN_TTL;
use crate::icmp4_error::{PORT_UNREACHABLE, PROTOCOL_UNREACHABLE, complain};
use crate::{linux_punt, packet_sum, vxlan_input};

pub(crate) struct Ip4Local;

const IP4_LOOKUP: Next = Next(0);
const ICMP4_ERROR: Next = Next(1);
const VXLAN_INPUT: Next = Next(2);
const LINUX_PUNT: Next = Next(3);

const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

impl Node<Tables> for Ip4Local {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip4-local",
        about: "Answers echo requests for own addresses and takes other packets for this router.",
        nexts: &["ip4-lookup", "icmp4-error", "vxlan-input", "linux-punt"],
        reasons: &[
            DropReason::Ip4Broadcast,
            DropReason::LocalFragment,
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
            *verdict = local(cx.world, packet);
        }
        Outcome::Each
    }
}

fn local(tables: &Tables, packet: &mut Pkt) -> Verdict {
    let Some((header, _)) = Ipv4Header::read(packet.l3()) else {
        return Verdict::drop(DropReason::IcmpTruncated);
    };
    let (destination, header_len) = (header.destination(), header.header_len());
    // Before whose address it is, which takes a look at all interfaces: the ends of a tunnel say that, too.
    if header.protocol() == IpProtocol::UDP
        && !header.is_fragment()
        && vxlan_input::takes(tables, packet, packet.l3().get(header_len..).unwrap_or(&[]))
    {
        packet.set_aux(header_len as u32);
        return Verdict::to(VXLAN_INPUT);
    }
    if !tables.owns(packet, destination) {
        // An address that only Linux has (`ip route add local`), or a directed broadcast of a connected subnet: Linux
        // tells them apart. Here nobody answers it.
        if linux_punt::host(tables, packet).is_some() {
            return Verdict::to(LINUX_PUNT);
        }
        return Verdict::drop(DropReason::Ip4Broadcast);
    }
    // Linux puts fragments together, and has all services but the answer to echo requests.
    let echo = header.protocol() == IpProtocol::ICMP
        && !header.is_fragment()
        && packet.l3().get(header_len) == Some(&ECHO_REQUEST);
    if !echo && linux_punt::host(tables, packet).is_some() {
        return Verdict::to(LINUX_PUNT);
    }
    if header.is_fragment() {
        return Verdict::drop(DropReason::LocalFragment);
    }
    match header.protocol() {
        IpProtocol::ICMP => icmp(packet),
        protocol @ (IpProtocol::UDP | IpProtocol::TCP) => {
            let length = usize::from(header.total_len()).saturating_sub(header_len);
            let pseudo = pseudo4(header.source(), destination, protocol, length as u16);
            match check_transport(packet, protocol, header_len, length, pseudo, true) {
                Ok(()) => {
                    complain(packet, PORT_UNREACHABLE, 0);
                    Verdict::to(ICMP4_ERROR)
                }
                Err(reason) => Verdict::drop(reason),
            }
        }
        _ => {
            complain(packet, PROTOCOL_UNREACHABLE, 0);
            Verdict::to(ICMP4_ERROR)
        }
    }
}

/// Whether a TCP or UDP packet is sound, `length` bytes from `at` behind the network header's start on: what is not is
/// dropped without an answer (RFC 1122 section 4.1.3.4, RFC 9293 section 3.10), as any host does it.
pub(crate) fn check_transport(
    packet: &Pkt,
    protocol: IpProtocol,
    at: usize,
    length: usize,
    pseudo: Sum,
    may_lack_sum: bool,
) -> Result<(), DropReason> {
    let transport = packet.l3().get(at..).unwrap_or(&[]);
    if protocol == IpProtocol::TCP {
        return match TcpHeader::read(transport) {
            None => Err(DropReason::LocalTruncated),
            Some(_) if packet_sum::from_l3(packet, at, length, pseudo) != 0 => {
                Err(DropReason::TcpBadChecksum)
            }
            Some(_) => Ok(()),
        };
    }
    let Some((udp, _)) = UdpHeader::read(transport) else {
        return Err(DropReason::LocalTruncated);
    };
    if usize::from(udp.length()) != length {
        return Err(DropReason::LocalTruncated);
    }
    let has_sum = udp.checksum() != 0 || !may_lack_sum;
    if has_sum && packet_sum::from_l3(packet, at, length, pseudo) != 0 {
        return Err(DropReason::UdpBadChecksum);
    }
    Ok(())
}

fn icmp(packet: &mut Pkt) -> Verdict {
    let Some((header, _)) = Ipv4Header::read(packet.l3()) else {
        return Verdict::drop(DropReason::IcmpTruncated);
    };
    let start = header.header_len();
    if IcmpHeader::read(packet.l3().get(start..).unwrap_or(&[])).is_none() {
        return Verdict::drop(DropReason::IcmpTruncated);
    }
    if add_rest(Sum::EMPTY, packet, packet.l3_offset() + start).finish() != 0 {
        return Verdict::drop(DropReason::IcmpBadChecksum);
    }
    let message = packet.l3_mut().get_mut(start..).unwrap_or(&mut []);
    let Some((icmp, _)) = IcmpHeader::read_mut(message) else {
        return Verdict::drop(DropReason::IcmpTruncated);
    };
    match icmp.kind {
        ECHO_REQUEST => {
            icmp.kind = ECHO_REPLY;
            // RFC 1624 equation 3: only the type changes, the first octet of its word.
            let kinds = [
                u16::from_be_bytes([!ECHO_REQUEST, 0xff]),
                u16::from_be_bytes([ECHO_REPLY, 0]),
            ];
            icmp.set_checksum(
                Sum::EMPTY
                    .add_u16(!icmp.checksum())
                    .add_u16(kinds[0])
                    .add_u16(kinds[1])
                    .finish(),
            );
            turn_around(packet)
        }
        ECHO_REPLY | UNREACHABLE | TIME_EXCEEDED | PARAMETER_PROBLEM => Verdict::CONSUME,
        _ => Verdict::drop(DropReason::IcmpUnsupported),
    }
}

/// Adds what a packet holds from byte `at` on, over all its chunks.
pub(crate) fn add_rest(sum: Sum, packet: &Pkt, at: usize) -> Sum {
    if packet.is_chained() {
        add_chain(sum, packet, at)
    } else {
        sum.add_bytes(packet.data().get(at..).unwrap_or(&[]))
    }
}

#[cold]
fn add_chain(mut sum: Sum, packet: &Pkt, mut at: usize) -> Sum {
    // Chunks may hold odd numbers of bytes, which a sum cannot go on from: so by pieces of an even number.
    let mut piece = [0; 1024];
    loop {
        let count = packet.copy_out(at, &mut piece);
        sum = sum.add_bytes(piece.get(..count).unwrap_or(&[]));
        at += count;
        if count < piece.len() {
            return sum;
        }
    }
}

/// Sends a packet back to where it came from.
fn turn_around(packet: &mut Pkt) -> Verdict {
    packet.set_flags(Flags::ORIGINATED);
    packet.clear_flags(Flags::HASHED | Flags::HELD);
    let l3 = packet.l3_mut();
    if let Some((header, _)) = Ipv4Header::read_mut(l3) {
        let (source, destination) = (header.source(), header.destination());
        header.set_source(destination);
        header.set_destination(source);
        header.ttl = OWN_TTL;
    }
    checksum::ipv4_header_set(l3);
    Verdict::to(IP4_LOOKUP)
}
