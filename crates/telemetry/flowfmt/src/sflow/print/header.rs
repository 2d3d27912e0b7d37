//! A sampled header, layer by layer, and the packets inside of it.

use std::fmt::{Display, Formatter};
use std::io;

use super::Sink;
use super::record::label;
use super::show::{self, Address, Hex};
use crate::sflow::RawHeader;
use crate::sflow::packet::{Ethernet, Ip, Ipv4, Ipv6, Packet, Transport, Tunnel};

/// What stands before the names of a packet's fields, by how many tunnels it is in.
pub(super) const INNER: [&str; 4] = ["inner_", "inner2_", "inner3_", "inner4_"];

pub(super) fn raw_header(sink: &mut impl Sink, raw: &RawHeader<'_>) -> io::Result<()> {
    sink.field("flowSampleType", "HEADER")?;
    sink.field("headerProtocol", raw.protocol)?;
    sink.field("sampledPacketSize", raw.frame_length)?;
    sink.field("strippedBytes", raw.stripped)?;
    sink.field("headerLen", raw.header.len())?;
    sink.field("headerBytes", Hex(raw.header))?;
    match raw.protocol {
        RawHeader::ETHERNET | RawHeader::IPV4 | RawHeader::IPV6 | RawHeader::MPLS => {}
        // The protocols that the specification names, and three of its later extensions.
        2..=18 => sink.remark(format_args!("NO_DECODE headerProtocol={}", raw.protocol))?,
        _ => sink.remark(format_args!("UNKNOWN headerProtocol={}", raw.protocol))?,
    }
    let packet = Packet::decode(raw);
    self::packet(sink, raw, &packet)?;
    let mut outer = packet;
    for name in INNER {
        let Some(inner) = outer.inner(raw) else { break };
        sink.prefix(1, name);
        self::packet(sink, raw, &inner)?;
        outer = inner;
    }
    sink.prefix(1, "");
    Ok(())
}

fn packet(sink: &mut impl Sink, raw: &RawHeader<'_>, packet: &Packet) -> io::Result<()> {
    if let Some(ethernet) = &packet.ethernet {
        link(sink, ethernet)?;
    }
    if let Some(session) = packet.pppoe_session {
        sink.field("PPPoE_session", session)?;
    }
    if !packet.labels().is_empty() {
        sink.field("MPLS_stack", Labels(packet.labels()))?;
    }
    if let Some(offset) = packet.ip_offset {
        // The IP packet with its header; lengths that contradict each other may make it negative.
        sink.field(
            "IPSize",
            i64::from(raw.frame_length) - i64::from(raw.stripped) - offset as i64,
        )?;
    }
    match &packet.ip {
        Some(Ip::V4(ip)) => ipv4(sink, ip)?,
        Some(Ip::V6(ip)) => ipv6(sink, ip)?,
        None => {}
    }
    if let Some(transport) = &packet.transport {
        self::transport(sink, transport)?;
    }
    packet
        .tunnel
        .map_or(Ok(()), |tunnel| self::tunnel(sink, tunnel))
}

/// What a tunnel's own header says.
fn tunnel(sink: &mut impl Sink, tunnel: Tunnel) -> io::Result<()> {
    match tunnel {
        Tunnel::Gre { protocol, key } => {
            sink.field("GRE_protocol", protocol)?;
            key.map_or(Ok(()), |key| sink.field("GRE_key", key))
        }
        Tunnel::Vxlan { vni } => sink.field("VXLAN_VNI", vni),
        Tunnel::Ip | Tunnel::Pseudowire => Ok(()),
    }
}

/// A label stack as record 0:1006 has it.
struct Labels<'a>(&'a [u32]);

impl Display for Labels<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let mut separator = "";
        for &entry in self.0 {
            f.write_str(separator)?;
            label(entry, f)?;
            separator = "-";
        }
        Ok(())
    }
}

fn link(sink: &mut impl Sink, ethernet: &Ethernet) -> io::Result<()> {
    sink.field("dstMAC", show::Mac(ethernet.destination))?;
    sink.field("srcMAC", show::Mac(ethernet.source))?;
    for (depth, tag) in ethernet.tags().iter().enumerate() {
        let (vlan, priority) = (tag & 0x0fff, tag >> 13);
        if depth == 0 {
            sink.field("decodedVLAN", vlan)?;
            sink.field("decodedPriority", priority)?;
        } else {
            sink.field(&format!("decodedVLAN.{depth}"), vlan)?;
            sink.field(&format!("decodedPriority.{depth}"), priority)?;
        }
    }
    if let Some([a, b, c]) = ethernet.snap_vendor {
        sink.field("VSNAP_OUI", format_args!("{a:02X}-{b:02X}-{c:02X}"))?;
    }
    ethernet
        .ether_type
        .map_or(Ok(()), |ether_type| sink.field("ethernet_type", ether_type))
}

fn ipv4(sink: &mut impl Sink, ip: &Ipv4) -> io::Result<()> {
    sink.field("ip.tot_len", ip.total_length)?;
    sink.field("srcIP", ip.source)?;
    sink.field("dstIP", ip.destination)?;
    sink.field("IPProtocol", ip.protocol)?;
    sink.field("IPTOS", ip.tos)?;
    sink.field("IPTTL", ip.ttl)?;
    sink.field("IPID", ip.id)?;
    if ip.fragment_offset > 0 {
        sink.field("IPFragmentOffset", ip.fragment_offset)?;
    }
    Ok(())
}

fn ipv6(sink: &mut impl Sink, ip: &Ipv6) -> io::Result<()> {
    sink.field("IPTOS", ip.traffic_class)?;
    sink.field("IP6_label", format_args!("{:#x}", ip.flow_label))?;
    match ip.payload_length {
        0 => sink.field("IPV6_payloadLen", "<jumbo>")?,
        length => sink.field("IPV6_payloadLen", length)?,
    }
    sink.field("IPTTL", ip.hop_limit)?;
    sink.field("srcIP6", Address(Some(ip.source.into())))?;
    sink.field("dstIP6", Address(Some(ip.destination.into())))?;
    for extension in ip.extensions() {
        sink.field("IP6HeaderExtension", extension)?;
    }
    ip.protocol
        .map_or(Ok(()), |protocol| sink.field("IPProtocol", protocol))
}

fn transport(sink: &mut impl Sink, transport: &Transport) -> io::Result<()> {
    match transport {
        Transport::Icmp { kind, code } => {
            sink.field("ICMPType", kind)?;
            sink.field("ICMPCode", code)
        }
        Transport::Tcp {
            source,
            destination,
            flags,
        } => {
            sink.field("TCPSrcPort", source)?;
            sink.field("TCPDstPort", destination)?;
            flags.map_or(Ok(()), |flags| sink.field("TCPFlags", flags))
        }
        Transport::Udp {
            source,
            destination,
            length,
        } => {
            sink.field("UDPSrcPort", source)?;
            sink.field("UDPDstPort", destination)?;
            sink.field("UDPBytes", length)
        }
    }
}
