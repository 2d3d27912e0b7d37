//! What a sampled header says: Ethernet, VLAN tags, LLC/SNAP, IPv4, IPv6, TCP, UDP, ICMP.
//!
//! Only as much of a packet is here as was sampled, so everything is optional and nothing is checked
//! for being legal: this is for looking, not for forwarding. Checksums and lengths inside are taken as
//! they are. Each layer is read when all of its fixed part is there.
//!
//! How far it looks follows sflowtool, whose output the printers reproduce: no ICMPv6, IPv6
//! extension headers 0, 43, 44, 51 and 60 stepped over, no tunnels, no MPLS. Unlike it, this never
//! reads what lies behind the sampled bytes, nor ports out of a later fragment.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::RawHeader;

/// Tags a frame may carry before this gives up on it.
const MAX_TAGS: usize = 8;
/// IPv6 extension headers a packet may carry before this gives up on it.
const MAX_EXTENSIONS: usize = 16;

/// A sampled header, layer by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// MAC addresses, when the sample begins with them.
    pub ethernet: Option<Ethernet>,
    /// Where the IP header begins, counted from the sample's start.
    pub ip_offset: Option<usize>,
    /// The IP header.
    pub ip: Option<Ip>,
    /// What the IP packet carries.
    pub transport: Option<Transport>,
}

/// The Ethernet header and what lies between it and its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethernet {
    /// Where the frame goes.
    pub destination: [u8; 6],
    /// Where it is from.
    pub source: [u8; 6],
    tags: [u16; MAX_TAGS],
    tag_count: usize,
    /// The EtherType behind tags and SNAP, when there is one and it was sampled.
    pub ether_type: Option<u16>,
    /// The vendor of a SNAP protocol that is not an EtherType.
    pub snap_vendor: Option<[u8; 3]>,
}

impl Ethernet {
    /// Tag control words, the outermost first.
    #[must_use]
    pub fn tags(&self) -> &[u16] {
        self.tags.get(..self.tag_count).unwrap_or(&[])
    }
}

/// An IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// Version 4.
    V4(Ipv4),
    /// Version 6.
    V6(Ipv6),
}

/// An IPv4 header (RFC 791, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Where it is from.
    pub source: Ipv4Addr,
    /// Where it goes.
    pub destination: Ipv4Addr,
    /// Total length as the header states it.
    pub total_length: u16,
    /// What it carries.
    pub protocol: u8,
    /// Type of service octet.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// Identification.
    pub id: u16,
    /// Fragment offset in units of eight octets.
    pub fragment_offset: u16,
}

/// An IPv6 header (RFC 8200, section 3) and the extension headers behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// Where it is from.
    pub source: Ipv6Addr,
    /// Where it goes.
    pub destination: Ipv6Addr,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Payload length as the header states it; 0 is a jumbogram.
    pub payload_length: u16,
    /// Hop limit.
    pub hop_limit: u8,
    extensions: [u8; MAX_EXTENSIONS],
    extension_count: usize,
    /// What comes behind the extension headers; `None` when they go on behind the sample.
    pub protocol: Option<u8>,
}

impl Ipv6 {
    /// The extension headers' numbers, in their order.
    #[must_use]
    pub fn extensions(&self) -> &[u8] {
        self.extensions.get(..self.extension_count).unwrap_or(&[])
    }
}

/// What a packet carries, as far as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// ICMP (protocol 1).
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
    /// TCP.
    Tcp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// FIN, SYN, RST, PSH, ACK, URG, ECE, CWR from the lowest bit; `None` when they were not sampled.
        flags: Option<u8>,
    },
    /// UDP.
    Udp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Length as the header states it.
        length: u16,
    },
}

impl Packet {
    /// Reads a sampled header of the protocols Ethernet, IPv4 and IPv6; any other gives nothing.
    #[must_use]
    pub fn decode(raw: &RawHeader<'_>) -> Packet {
        let mut packet = Packet::default();
        match raw.protocol {
            RawHeader::ETHERNET => packet.ethernet(raw.header),
            RawHeader::IPV4 => packet.ipv4(raw.header, 0),
            RawHeader::IPV6 => packet.ipv6(raw.header, 0),
            _ => {}
        }
        packet
    }

    fn ethernet(&mut self, bytes: &[u8]) {
        let (Some(destination), Some(source), Some(mut ether_type)) = (array(bytes, 0), array(bytes, 6), word(bytes, 12)) else {
            return;
        };
        let ethernet =
            self.ethernet.insert(Ethernet { destination, source, tags: [0; MAX_TAGS], tag_count: 0, ether_type: None, snap_vendor: None });
        let mut at = 14;
        while matches!(ether_type, 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300) {
            let (Some(tag), Some(next)) = (word(bytes, at), word(bytes, at + 2)) else { return };
            let Some(room) = ethernet.tags.get_mut(ethernet.tag_count) else { return };
            *room = tag;
            ethernet.tag_count += 1;
            ether_type = next;
            at += 4;
        }
        if ether_type <= 1500 {
            // A length: IEEE 802.2 follows, perhaps with SNAP (RFC 1042).
            let Some(inner) = ethernet.llc(bytes, &mut at) else { return };
            ether_type = inner;
        }
        ethernet.ether_type = Some(ether_type);
        match (ether_type, bytes.get(at).map(|first| first >> 4)) {
            (0x0800, Some(4)) if bytes.len() >= at + 20 => self.ipv4(bytes, at),
            (0x86dd, Some(6)) => self.ipv6(bytes, at),
            _ => {}
        }
    }

    fn ipv4(&mut self, bytes: &[u8], at: usize) {
        self.ip_offset = Some(at);
        let Some(header) = array::<20>(bytes, at) else { return };
        let [first, tos, length_high, length_low, id_high, id_low, fragment_high, fragment_low, ttl, protocol, ..] = header;
        let (Some(source), Some(destination)) = (array::<4>(&header, 12), array::<4>(&header, 16)) else { return };
        let fragment_offset = u16::from_be_bytes([fragment_high, fragment_low]) & 0x1fff;
        self.ip = Some(Ip::V4(Ipv4 {
            source: source.into(),
            destination: destination.into(),
            total_length: u16::from_be_bytes([length_high, length_low]),
            protocol,
            tos,
            ttl,
            id: u16::from_be_bytes([id_high, id_low]),
            fragment_offset,
        }));
        let header_len = usize::from(first & 0x0f) * 4;
        if fragment_offset == 0 && header_len >= 20 {
            self.transport(protocol, bytes, at + header_len);
        }
    }

    fn ipv6(&mut self, bytes: &[u8], at: usize) {
        self.ip_offset = Some(at);
        let Some(header) = array::<40>(bytes, at) else { return };
        let [b0, b1, b2, b3, length_high, length_low, mut next, hop_limit, ..] = header;
        let (Some(source), Some(destination)) = (array::<16>(&header, 8), array::<16>(&header, 24)) else { return };
        let first = u32::from_be_bytes([b0, b1, b2, b3]);
        let mut ip = Ipv6 {
            source: source.into(),
            destination: destination.into(),
            traffic_class: (first >> 20 & 0xff) as u8,
            flow_label: first & 0x000f_ffff,
            payload_length: u16::from_be_bytes([length_high, length_low]),
            hop_limit,
            extensions: [0; MAX_EXTENSIONS],
            extension_count: 0,
            protocol: None,
        };
        let mut at = at + 40;
        let mut later_fragment = false;
        while matches!(next, 0 | 43 | 44 | 51 | 60) {
            let Some(room) = ip.extensions.get_mut(ip.extension_count) else { break };
            *room = next;
            ip.extension_count += 1;
            let Some([following, length, offset_high, offset_low]) = array(bytes, at) else { break };
            let (len, fragment) = extension(next, length, [offset_high, offset_low]);
            later_fragment |= fragment;
            next = following;
            at += len;
        }
        if at <= bytes.len() && !matches!(next, 0 | 43 | 44 | 51 | 60) {
            ip.protocol = Some(next);
            if !later_fragment {
                self.transport(next, bytes, at);
            }
        }
        self.ip = Some(Ip::V6(ip));
    }

    fn transport(&mut self, protocol: u8, bytes: &[u8], at: usize) {
        // Eight octets are what every router quotes of a packet: ports and length.
        let Some([b0, b1, b2, b3, b4, b5, _, _]) = array(bytes, at) else { return };
        let (source, destination) = (u16::from_be_bytes([b0, b1]), u16::from_be_bytes([b2, b3]));
        self.transport = match protocol {
            1 => Some(Transport::Icmp { kind: b0, code: b1 }),
            6 => Some(Transport::Tcp { source, destination, flags: bytes.get(at + 13).copied() }),
            17 => Some(Transport::Udp { source, destination, length: u16::from_be_bytes([b4, b5]) }),
            _ => None,
        };
    }
}

impl Ethernet {
    /// The EtherType that LLC at `at` stands for; `at` is then behind it.
    fn llc(&mut self, bytes: &[u8], at: &mut usize) -> Option<u16> {
        let [dsap, ssap, control] = array(bytes, *at)?;
        if (dsap, ssap, control) == (0xaa, 0xaa, 3) {
            let vendor = array::<3>(bytes, *at + 3)?;
            if vendor != [0; 3] {
                self.snap_vendor = Some(vendor);
                return None;
            }
            let ether_type = word(bytes, *at + 6)?;
            *at += 8;
            return Some(ether_type);
        }
        // IP directly over IEEE 802.2: SAP 6 (RFC 948).
        if (dsap, ssap) == (6, 6) && control & 1 == 1 {
            *at += 3;
            return Some(0x0800);
        }
        None
    }
}

/// Octets of an extension header, and whether it says that this is not the first fragment.
fn extension(number: u8, length: u8, offset: [u8; 2]) -> (usize, bool) {
    match number {
        // RFC 8200, 4.5: a fixed eight octets; the length octet is reserved.
        44 => (8, u16::from_be_bytes(offset) >> 3 != 0),
        // RFC 4302, 2.2: in units of four octets, minus two.
        51 => ((usize::from(length) + 2) * 4, false),
        _ => ((usize::from(length) + 1) * 8, false),
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}
