//! Whole frames, with right lengths and checksums.
//!
//! For what the router says itself (ARP, ICMP) and for traffic in tests and in the generator. The
//! `_into` functions and those that take a `&mut [u8]` first write into the caller's bytes and
//! allocate nothing; they say `false`, and write nothing, when there is too little room. The others
//! give a `Vec<u8>`.
//!
//! The length of the slice decides the length of the packet: `udp4_into` makes a datagram that fills
//! the frame, around the payload that is already in it.

use zerocopy::IntoBytes;

use crate::{
    ArpPacket, EtherType, EthernetHeader, IcmpHeader, IpProtocol, Ipv4Header, Ipv6Header, MacAddr,
    TcpHeader, UdpHeader, VlanTag, checksum,
};

/// Bytes of an Ethernet frame with an ARP packet, unpadded.
pub const ARP_FRAME: usize = EthernetHeader::LEN + ArpPacket::LEN;
/// ICMP: an answer to an echo request.
pub const ECHO_REPLY: u8 = 0;
/// ICMP: a request for an echo.
pub const ECHO_REQUEST: u8 = 8;

const IP4_AT: usize = EthernetHeader::LEN;
const L4_AT: usize = IP4_AT + Ipv4Header::LEN;

/// Between whom a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Who sends the frame.
    pub source_mac: MacAddr,
    /// Who gets the frame.
    pub destination_mac: MacAddr,
    /// Who sent the packet.
    pub source: u32,
    /// Whom the packet is for.
    pub destination: u32,
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// Hops that the packet may go.
    pub ttl: u8,
}

impl Default for Ends {
    /// From 10.0.0.1 port 1024 to 10.0.1.1 port 53, local MAC addresses, 64 hops.
    fn default() -> Ends {
        Ends {
            source_mac: MacAddr([2, 0, 0, 0, 0, 1]),
            destination_mac: MacAddr([2, 0, 0, 0, 0, 2]),
            source: 0x0a00_0001,
            destination: 0x0a00_0101,
            source_port: 1024,
            destination_port: 53,
            ttl: 64,
        }
    }
}

/// Writes a header at the start of `bytes`; gives what follows.
#[inline(always)]
fn put<'a, H: IntoBytes + zerocopy::Immutable>(
    bytes: &'a mut [u8],
    header: &H,
) -> Option<&'a mut [u8]> {
    let (place, rest) = bytes.split_at_mut_checked(size_of::<H>())?;
    place.copy_from_slice(header.as_bytes());
    Some(rest)
}

/// Writes an Ethernet header whose addresses are still to come (both zero); gives what follows.
#[inline]
pub fn ethernet_blank(frame: &mut [u8], ethertype: EtherType) -> Option<&mut [u8]> {
    put(
        frame,
        &EthernetHeader::new(MacAddr::ZERO, MacAddr::ZERO, ethertype),
    )
}

/// Writes Ethernet and IPv4 headers of a frame whose packet fills it; `length` bytes of transport
/// header must fit behind.
fn headers4(frame: &mut [u8], ends: &Ends, protocol: IpProtocol, length: usize) -> bool {
    let Some(total) = frame
        .len()
        .checked_sub(IP4_AT)
        .filter(|&total| total >= Ipv4Header::LEN + length)
    else {
        return false;
    };
    let Ok(total) = u16::try_from(total) else {
        return false;
    };
    let ethernet = EthernetHeader::new(ends.destination_mac, ends.source_mac, EtherType::IPV4);
    let header = Ipv4Header::new(ends.source, ends.destination, protocol, ends.ttl, total);
    let Some(l3) = put(frame, &ethernet) else {
        return false;
    };
    put(l3, &header);
    checksum::ipv4_header_set(l3);
    true
}

/// Makes the whole frame a UDP datagram over IPv4, around the payload that is in it.
pub fn udp4_into(frame: &mut [u8], ends: &Ends) -> bool {
    if !headers4(frame, ends, IpProtocol::UDP, UdpHeader::LEN) {
        return false;
    }
    let Some(datagram) = frame.get_mut(L4_AT..) else {
        return false;
    };
    put(
        datagram,
        &UdpHeader::new(
            ends.source_port,
            ends.destination_port,
            datagram.len() as u16,
        ),
    );
    let sum = checksum::udp4(ends.source, ends.destination, datagram);
    if let Some((udp, _)) = UdpHeader::read_mut(datagram) {
        udp.set_checksum(sum);
    }
    true
}

/// Makes the whole frame a TCP segment over IPv4, around the payload that is in it.
pub fn tcp4_into(frame: &mut [u8], ends: &Ends, flags: u8) -> bool {
    if !headers4(frame, ends, IpProtocol::TCP, TcpHeader::LEN) {
        return false;
    }
    let Some(segment) = frame.get_mut(L4_AT..) else {
        return false;
    };
    put(
        segment,
        &TcpHeader::new(ends.source_port, ends.destination_port, 1, 0, flags, 0xffff),
    );
    let sum = checksum::tcp4(ends.source, ends.destination, segment);
    if let Some((tcp, _)) = TcpHeader::read_mut(segment) {
        tcp.set_checksum(sum);
    }
    true
}

/// Makes the whole frame an ICMP echo request or reply, around the payload that is in it. The ports of
/// `ends` mean nothing here.
pub fn echo4_into(frame: &mut [u8], ends: &Ends, kind: u8, identifier: u16, sequence: u16) -> bool {
    if !headers4(frame, ends, IpProtocol::ICMP, IcmpHeader::LEN) {
        return false;
    }
    let Some(message) = frame.get_mut(L4_AT..) else {
        return false;
    };
    put(
        message,
        &IcmpHeader::new(kind, 0, u32::from(identifier) << 16 | u32::from(sequence)),
    );
    icmp_checksum_set(message);
    true
}

/// Writes the checksum of an ICMP message.
fn icmp_checksum_set(message: &mut [u8]) {
    let sum = checksum::internet(message);
    if let Some((icmp, _)) = IcmpHeader::read_mut(message) {
        icmp.set_checksum(sum);
    }
}

/// Writes an IPv4 packet with an ICMP message at the start of `packet`: `argument` is the message's
/// second word, `quote` what it quotes.
#[expect(
    clippy::too_many_arguments,
    reason = "the fields of two headers, each used once"
)]
pub fn icmp4(
    packet: &mut [u8],
    source: u32,
    destination: u32,
    ttl: u8,
    kind: u8,
    code: u8,
    argument: u32,
    quote: &[u8],
) -> bool {
    let total = Ipv4Header::LEN + IcmpHeader::LEN + quote.len();
    let (Ok(length), Some(packet)) = (u16::try_from(total), packet.get_mut(..total)) else {
        return false;
    };
    let Some(message) = put(
        packet,
        &Ipv4Header::new(source, destination, IpProtocol::ICMP, ttl, length),
    ) else {
        return false;
    };
    let Some(place) = put(message, &IcmpHeader::new(kind, code, argument)) else {
        return false;
    };
    place.copy_from_slice(quote);
    icmp_checksum_set(message);
    checksum::ipv4_header_set(packet);
    true
}

/// Writes an ARP packet from its sender to `destination`; what is left of the frame becomes zeros.
pub fn arp_into(frame: &mut [u8], destination: MacAddr, packet: &ArpPacket) -> bool {
    if frame.len() < ARP_FRAME {
        return false;
    }
    let Some(rest) = put(
        frame,
        &EthernetHeader::new(destination, packet.sender_mac, EtherType::ARP),
    ) else {
        return false;
    };
    let Some(padding) = put(rest, packet) else {
        return false;
    };
    padding.fill(0);
    true
}

/// Writes the question who has `wanted`, asked by `source` to everybody.
pub fn arp_request(frame: &mut [u8], mac: MacAddr, source: u32, wanted: u32) -> bool {
    arp_into(
        frame,
        MacAddr::BROADCAST,
        &ArpPacket::new(ArpPacket::REQUEST, mac, source, MacAddr::ZERO, wanted),
    )
}

/// Writes the answer that `address` is at `mac`, to the one who asked.
pub fn arp_reply(
    frame: &mut [u8],
    mac: MacAddr,
    address: u32,
    asker_mac: MacAddr,
    asker: u32,
) -> bool {
    arp_into(
        frame,
        asker_mac,
        &ArpPacket::new(ArpPacket::REPLY, mac, address, asker_mac, asker),
    )
}

/// A frame with room for headers of `headers` bytes and the payload behind.
fn around(headers: usize, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; headers];
    frame.extend_from_slice(payload);
    frame
}

/// A UDP datagram over IPv4; empty when the payload is longer than a packet can be.
#[must_use]
pub fn udp4(ends: &Ends, payload: &[u8]) -> Vec<u8> {
    let mut frame = around(L4_AT + UdpHeader::LEN, payload);
    if udp4_into(&mut frame, ends) {
        frame
    } else {
        Vec::new()
    }
}

/// A TCP segment over IPv4; empty when the payload is longer than a packet can be.
#[must_use]
pub fn tcp4(ends: &Ends, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = around(L4_AT + TcpHeader::LEN, payload);
    if tcp4_into(&mut frame, ends, flags) {
        frame
    } else {
        Vec::new()
    }
}

/// An ICMP echo request or reply; empty when the payload is longer than a packet can be.
#[must_use]
pub fn echo4(ends: &Ends, kind: u8, identifier: u16, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = around(L4_AT + IcmpHeader::LEN, payload);
    if echo4_into(&mut frame, ends, kind, identifier, sequence) {
        frame
    } else {
        Vec::new()
    }
}

/// An ARP packet from its sender to `destination`, unpadded.
#[must_use]
pub fn arp(destination: MacAddr, packet: &ArpPacket) -> Vec<u8> {
    let mut frame = vec![0; ARP_FRAME];
    arp_into(&mut frame, destination, packet);
    frame
}

/// The frame with a VLAN tag put in; frames shorter than an Ethernet header stay as they are.
#[must_use]
pub fn tagged(frame: &[u8], vlan: u16, priority: u8) -> Vec<u8> {
    let Some((header, payload)) = EthernetHeader::read(frame) else {
        return frame.to_vec();
    };
    let tag = VlanTag::new(vlan, priority, header.ethertype());
    let outer = EthernetHeader::new(header.destination, header.source, EtherType::VLAN);
    [outer.as_bytes(), tag.as_bytes(), payload].concat()
}

/// Between whom a frame over IPv6 goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends6 {
    /// Who sends the frame.
    pub source_mac: MacAddr,
    /// Who gets the frame.
    pub destination_mac: MacAddr,
    /// Who sent the packet.
    pub source: [u8; 16],
    /// Whom the packet is for.
    pub destination: [u8; 16],
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// Hops that the packet may go.
    pub hop_limit: u8,
    /// The flow label, 20 bits.
    pub flow_label: u32,
}

impl Default for Ends6 {
    /// From 2001:db8::1 port 1024 to 2001:db8:1::1 port 53, local MAC addresses, 64 hops, no flow label.
    fn default() -> Ends6 {
        Ends6 {
            source_mac: MacAddr([2, 0, 0, 0, 0, 1]),
            destination_mac: MacAddr([2, 0, 0, 0, 0, 2]),
            source: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            destination: [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            source_port: 1024,
            destination_port: 53,
            hop_limit: 64,
            flow_label: 0,
        }
    }
}

/// Writes Ethernet and IPv6 headers of a frame whose packet fills it; `length` bytes of transport header
/// must fit behind, and what is behind is given.
fn headers6<'a>(
    frame: &'a mut [u8],
    ends: &Ends6,
    protocol: IpProtocol,
    length: usize,
) -> Option<&'a mut [u8]> {
    let payload = frame
        .len()
        .checked_sub(EthernetHeader::LEN + Ipv6Header::LEN)
        .filter(|&payload| payload >= length)?;
    let mut header = Ipv6Header::new(
        ends.source,
        ends.destination,
        protocol,
        ends.hop_limit,
        u16::try_from(payload).ok()?,
    );
    header.set_flow_label(ends.flow_label);
    put(
        put(
            frame,
            &EthernetHeader::new(ends.destination_mac, ends.source_mac, EtherType::IPV6),
        )?,
        &header,
    )
}

/// Makes the whole frame a UDP datagram over IPv6, around the payload that is in it.
pub fn udp6_into(frame: &mut [u8], ends: &Ends6) -> bool {
    let Some(datagram) = headers6(frame, ends, IpProtocol::UDP, UdpHeader::LEN) else {
        return false;
    };
    put(
        datagram,
        &UdpHeader::new(
            ends.source_port,
            ends.destination_port,
            datagram.len() as u16,
        ),
    );
    let sum = checksum::udp6(&ends.source, &ends.destination, datagram);
    if let Some((udp, _)) = UdpHeader::read_mut(datagram) {
        udp.set_checksum(sum);
    }
    true
}

/// Makes the whole frame a TCP segment over IPv6, around the payload that is in it.
pub fn tcp6_into(frame: &mut [u8], ends: &Ends6, flags: u8) -> bool {
    let Some(segment) = headers6(frame, ends, IpProtocol::TCP, TcpHeader::LEN) else {
        return false;
    };
    put(
        segment,
        &TcpHeader::new(ends.source_port, ends.destination_port, 1, 0, flags, 0xffff),
    );
    let sum = checksum::tcp6(&ends.source, &ends.destination, segment);
    if let Some((tcp, _)) = TcpHeader::read_mut(segment) {
        tcp.set_checksum(sum);
    }
    true
}

/// Makes the whole frame an ICMPv6 echo request or reply, around the payload that is in it. The ports of
/// `ends` mean nothing here.
pub fn echo6_into(
    frame: &mut [u8],
    ends: &Ends6,
    kind: u8,
    identifier: u16,
    sequence: u16,
) -> bool {
    let Some(message) = headers6(frame, ends, IpProtocol::ICMP6, IcmpHeader::LEN) else {
        return false;
    };
    put(
        message,
        &IcmpHeader::new(kind, 0, u32::from(identifier) << 16 | u32::from(sequence)),
    );
    let sum = checksum::icmp6(&ends.source, &ends.destination, message);
    if let Some((icmp, _)) = IcmpHeader::read_mut(message) {
        icmp.set_checksum(sum);
    }
    true
}

/// A UDP datagram over IPv6; empty when the payload is longer than a packet can be.
#[must_use]
pub fn udp6(ends: &Ends6, payload: &[u8]) -> Vec<u8> {
    let mut frame = around(
        EthernetHeader::LEN + Ipv6Header::LEN + UdpHeader::LEN,
        payload,
    );
    if udp6_into(&mut frame, ends) {
        frame
    } else {
        Vec::new()
    }
}

/// A TCP segment over IPv6; empty when the payload is longer than a packet can be.
#[must_use]
pub fn tcp6(ends: &Ends6, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = around(
        EthernetHeader::LEN + Ipv6Header::LEN + TcpHeader::LEN,
        payload,
    );
    if tcp6_into(&mut frame, ends, flags) {
        frame
    } else {
        Vec::new()
    }
}

/// An ICMPv6 echo request or reply; empty when the payload is longer than a packet can be.
#[must_use]
pub fn echo6(ends: &Ends6, kind: u8, identifier: u16, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = around(
        EthernetHeader::LEN + Ipv6Header::LEN + IcmpHeader::LEN,
        payload,
    );
    if echo6_into(&mut frame, ends, kind, identifier, sequence) {
        frame
    } else {
        Vec::new()
    }
}
