//! What a sampled header says: Ethernet, VLAN tags, LLC/SNAP, PPPoE, MPLS, IPv4, IPv6, TCP, UDP, ICMP, and
//! what is inside of GRE, VXLAN, IP in IP and pseudowires.
//!
//! Only as much of a packet is here as was sampled, so everything is optional and nothing is checked
//! for being legal: this is for looking, not for forwarding. Checksums and lengths inside are taken as
//! they are. Each layer is read when all of its fixed part is there.
//!
//! In a packet without tunnels it looks as far as sflowtool, whose output the printers reproduce: no
//! ICMPv6; IPv6 extension headers 0, 43, 44, 51 and 60 stepped over. Unlike it, this never reads what
//! lies behind the sampled bytes, nor ports out of a later fragment; and it goes on where that stops,
//! at PPPoE and MPLS. What a tunnel carries is a packet of its own, asked for by [`Packet::inner`].

use std::net::{Ipv4Addr, Ipv6Addr};

use super::RawHeader;

/// Tags a frame may carry before this gives up on it.
const MAX_TAGS: usize = 8;
/// IPv6 extension headers a packet may carry before this gives up on it.
const MAX_EXTENSIONS: usize = 16;
/// MPLS labels a packet may carry before this gives up on it.
const MAX_LABELS: usize = 8;
/// The port that IANA gave to VXLAN (RFC 7348, section 5).
const VXLAN_PORT: u16 = 4789;

/// A sampled header, layer by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// MAC addresses, when the sample begins with them.
    pub ethernet: Option<Ethernet>,
    /// The session of PPPoE (RFC 2516).
    pub pppoe_session: Option<u16>,
    labels: [u32; MAX_LABELS],
    label_count: usize,
    /// Where the IP header begins, counted from the sample's start.
    pub ip_offset: Option<usize>,
    /// The IP header.
    pub ip: Option<Ip>,
    /// What the IP packet carries.
    pub transport: Option<Transport>,
    /// The tunnel whose outside this is.
    pub tunnel: Option<Tunnel>,
    /// What a tunnel carries, and where it begins.
    inner: Option<(Link, usize)>,
}

/// A tunnel that a packet goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// GRE (RFC 2784 and RFC 2890).
    Gre {
        /// EtherType of what it carries.
        protocol: u16,
        /// The key, if it has one.
        key: Option<u32>,
    },
    /// VXLAN (RFC 7348).
    Vxlan {
        /// The network's number.
        vni: u32,
    },
    /// IPv4 or IPv6 in IP (RFC 2003, RFC 2473, RFC 4213).
    Ip,
    /// Ethernet over MPLS, with a control word (RFC 4448).
    Pseudowire,
}

/// What begins somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Ethernet,
    Ipv4,
    Ipv6,
    Mpls,
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
    /// Reads a sampled header of the protocols Ethernet, IPv4, IPv6 and MPLS; any other gives nothing.
    #[must_use]
    pub fn decode(raw: &RawHeader<'_>) -> Packet {
        let mut packet = Packet::default();
        match raw.protocol {
            RawHeader::ETHERNET => packet.link(Link::Ethernet, raw.header, 0),
            RawHeader::IPV4 => packet.link(Link::Ipv4, raw.header, 0),
            RawHeader::IPV6 => packet.link(Link::Ipv6, raw.header, 0),
            RawHeader::MPLS => packet.link(Link::Mpls, raw.header, 0),
            _ => {}
        }
        packet
    }

    /// What the tunnel carries, out of the same sampled header. Offsets stay those of the sample.
    #[must_use]
    pub fn inner(&self, raw: &RawHeader<'_>) -> Option<Packet> {
        let (link, at) = self.inner?;
        let mut packet = Packet::default();
        packet.link(link, raw.header, at);
        Some(packet)
    }

    /// MPLS label stack entries, the outermost first: 20 bits of label, 3 of traffic class, bottom, TTL.
    #[must_use]
    pub fn labels(&self) -> &[u32] {
        self.labels.get(..self.label_count).unwrap_or(&[])
    }

    fn link(&mut self, link: Link, bytes: &[u8], at: usize) {
        match link {
            Link::Ethernet => self.ethernet(bytes, at),
            Link::Ipv4 => self.ipv4(bytes, at),
            Link::Ipv6 => self.ipv6(bytes, at),
            Link::Mpls => self.mpls(bytes, at),
        }
    }

    fn ethernet(&mut self, bytes: &[u8], start: usize) {
        let (Some(destination), Some(source), Some(mut ether_type)) = (
            array(bytes, start),
            array(bytes, start + 6),
            word(bytes, start + 12),
        ) else {
            return;
        };
        let ethernet = self.ethernet.insert(Ethernet {
            destination,
            source,
            tags: [0; MAX_TAGS],
            tag_count: 0,
            ether_type: None,
            snap_vendor: None,
        });
        let mut at = start + 14;
        while matches!(ether_type, 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300) {
            let (Some(tag), Some(next)) = (word(bytes, at), word(bytes, at + 2)) else {
                return;
            };
            let Some(room) = ethernet.tags.get_mut(ethernet.tag_count) else {
                return;
            };
            *room = tag;
            ethernet.tag_count += 1;
            ether_type = next;
            at += 4;
        }
        if ether_type <= 1500 {
            // A length: IEEE 802.2 follows, perhaps with SNAP (RFC 1042).
            let Some(inner) = ethernet.llc(bytes, &mut at) else {
                return;
            };
            ether_type = inner;
        }
        ethernet.ether_type = Some(ether_type);
        match (ether_type, bytes.get(at).map(|first| first >> 4)) {
            (0x0800, Some(4)) if bytes.len() >= at + 20 => self.ipv4(bytes, at),
            (0x86dd, Some(6)) => self.ipv6(bytes, at),
            (0x8847 | 0x8848, _) => self.mpls(bytes, at),
            (0x8864, _) => self.pppoe(bytes, at),
            _ => {}
        }
    }

    /// A session's packet (RFC 2516, section 4): version and type, code, session, length, PPP's protocol.
    fn pppoe(&mut self, bytes: &[u8], at: usize) {
        let (Some(0x1100), Some(session), Some(protocol)) =
            (word(bytes, at), word(bytes, at + 2), word(bytes, at + 6))
        else {
            return;
        };
        self.pppoe_session = Some(session);
        match protocol {
            0x0021 => self.ipv4(bytes, at + 8),
            0x0057 => self.ipv6(bytes, at + 8),
            0x0281 => self.mpls(bytes, at + 8),
            _ => {}
        }
    }

    /// A label stack (RFC 3032). What is below it has no type: an IP packet says its version, a
    /// pseudowire with a control word begins with zeros (RFC 4385, section 3).
    fn mpls(&mut self, bytes: &[u8], mut at: usize) {
        loop {
            let Some(entry) = array(bytes, at).map(u32::from_be_bytes) else {
                return;
            };
            let Some(room) = self.labels.get_mut(self.label_count) else {
                return;
            };
            *room = entry;
            self.label_count += 1;
            at += 4;
            if entry & 0x100 != 0 {
                break;
            }
        }
        match bytes.get(at).map(|first| first >> 4) {
            Some(4) => self.ipv4(bytes, at),
            Some(6) => self.ipv6(bytes, at),
            Some(0) => {
                self.tunnel = Some(Tunnel::Pseudowire);
                self.inner = Some((Link::Ethernet, at + 4));
            }
            _ => {}
        }
    }

    fn ipv4(&mut self, bytes: &[u8], at: usize) {
        self.ip_offset = Some(at);
        let Some(header) = array::<20>(bytes, at) else {
            return;
        };
        let [
            first,
            tos,
            length_high,
            length_low,
            id_high,
            id_low,
            fragment_high,
            fragment_low,
            ttl,
            protocol,
            ..,
        ] = header;
        // RFC 791, 3.1: five words at least.
        if first >> 4 != 4 || first & 0x0f < 5 {
            return;
        }
        let (Some(source), Some(destination)) = (array::<4>(&header, 12), array::<4>(&header, 16))
        else {
            return;
        };
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
        let Some(header) = array::<40>(bytes, at) else {
            return;
        };
        let [
            b0,
            b1,
            b2,
            b3,
            length_high,
            length_low,
            mut next,
            hop_limit,
            ..,
        ] = header;
        let (Some(source), Some(destination)) = (array::<16>(&header, 8), array::<16>(&header, 24))
        else {
            return;
        };
        let first = u32::from_be_bytes([b0, b1, b2, b3]);
        if first >> 28 != 6 {
            return;
        }
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
            let Some(room) = ip.extensions.get_mut(ip.extension_count) else {
                break;
            };
            *room = next;
            ip.extension_count += 1;
            let Some([following, length, offset_high, offset_low]) = array(bytes, at) else {
                break;
            };
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
        match protocol {
            4 => (self.tunnel, self.inner) = (Some(Tunnel::Ip), Some((Link::Ipv4, at))),
            41 => (self.tunnel, self.inner) = (Some(Tunnel::Ip), Some((Link::Ipv6, at))),
            47 => self.gre(bytes, at),
            _ => {}
        }
        // Eight octets are what every router quotes of a packet: ports and length.
        let Some([b0, b1, b2, b3, b4, b5, _, _]) = array(bytes, at) else {
            return;
        };
        let (source, destination) = (u16::from_be_bytes([b0, b1]), u16::from_be_bytes([b2, b3]));
        self.transport = match protocol {
            1 => Some(Transport::Icmp { kind: b0, code: b1 }),
            6 => Some(Transport::Tcp {
                source,
                destination,
                flags: bytes.get(at + 13).copied(),
            }),
            17 => {
                if destination == VXLAN_PORT {
                    self.vxlan(bytes, at + 8);
                }
                Some(Transport::Udp {
                    source,
                    destination,
                    length: u16::from_be_bytes([b4, b5]),
                })
            }
            _ => None,
        };
    }

    /// RFC 2784, section 2.1, with the key and sequence number of RFC 2890.
    fn gre(&mut self, bytes: &[u8], at: usize) {
        let (Some(flags), Some(protocol)) = (word(bytes, at), word(bytes, at + 2)) else {
            return;
        };
        // Version 1 is PPTP's (RFC 2637), which carries PPP.
        if flags & 7 != 0 {
            return;
        }
        let option = |bit: u16| if flags & bit != 0 { 4 } else { 0 };
        let (checksum, key_len) = (option(0x8000), option(0x2000));
        let key = if key_len > 0 {
            array(bytes, at + 4 + checksum).map(u32::from_be_bytes)
        } else {
            None
        };
        self.tunnel = Some(Tunnel::Gre { protocol, key });
        let payload = at + 4 + checksum + key_len + option(0x1000);
        self.inner = match protocol {
            0x0800 => Some((Link::Ipv4, payload)),
            0x86dd => Some((Link::Ipv6, payload)),
            0x6558 => Some((Link::Ethernet, payload)),
            0x8847 | 0x8848 => Some((Link::Mpls, payload)),
            _ => None,
        };
    }

    /// RFC 7348, section 5: flags, of which one says that the network's number is there.
    fn vxlan(&mut self, bytes: &[u8], at: usize) {
        let Some([flags, _, _, _, a, b, c, _]) = array::<8>(bytes, at) else {
            return;
        };
        if flags & 0x08 != 0 {
            self.tunnel = Some(Tunnel::Vxlan {
                vni: u32::from_be_bytes([0, a, b, c]),
            });
            self.inner = Some((Link::Ethernet, at + 8));
        }
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
