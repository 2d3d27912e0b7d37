//! Keys out of packets. Whatever a packet claims, this neither panics nor goes past bounds.
//!
//! Protocols with ports are those that have them in their first four bytes: TCP, UDP, SCTP, UDP-Lite
//! and DCCP. Of ICMP and ICMPv6, type and code stand for ports. Of all others two zeros do.
//!
//! An IPv6 packet whose extension headers cannot be passed (they end early, are too many, or out of
//! order) is known by its addresses alone: its protocol is the number of its first extension header and
//! its ports are unreadable. A list that shall not let such packets by has to deny by address, or the
//! node drops them before.

use weir_wire::ipv6::{MAX_BYTES, MAX_HEADERS, walk};
use weir_wire::{IpProtocol, Ipv4Header, Ipv6Header};

use crate::key::{Key4, Key6, Upper};

const UDP_LITE: IpProtocol = IpProtocol(136);
const DCCP: IpProtocol = IpProtocol(33);

/// What the first bytes behind the IP headers tell.
#[inline(always)]
fn upper(protocol: IpProtocol, bytes: &[u8]) -> Upper {
    match protocol {
        IpProtocol::TCP | IpProtocol::UDP | IpProtocol::SCTP | UDP_LITE | DCCP => {
            match bytes.first_chunk() {
                Some(&[a, b, c, d]) => {
                    Upper::Ports(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
                }
                None => Upper::Unreadable,
            }
        }
        IpProtocol::ICMP | IpProtocol::ICMP6 => match bytes.first_chunk() {
            Some(&[kind, code]) => Upper::Ports(kind.into(), code.into()),
            None => Upper::Unreadable,
        },
        _ => Upper::Ports(0, 0),
    }
}

impl Key4 {
    /// The key of an IPv4 packet; `None` when its header, options included, is not all there.
    #[inline]
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Key4> {
        let (header, _) = Ipv4Header::read(packet)?;
        let length = header.header_len();
        // What lies behind the packet's own length is padding, and no port.
        let end = packet.len().min(usize::from(header.total_len()));
        let behind = if length < Ipv4Header::LEN {
            None
        } else {
            packet.get(length..end.max(length))
        }?;
        let protocol = header.protocol();
        let upper = if header.is_later_fragment() {
            Upper::LaterFragment
        } else {
            upper(protocol, behind)
        };
        Some(Key4::new(
            header.source(),
            header.destination(),
            protocol,
            upper,
        ))
    }
}

impl Key6 {
    /// The key of an IPv6 packet; `None` when its fixed header is not all there.
    #[inline]
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Key6> {
        let (header, behind) = Ipv6Header::read(packet)?;
        let end = Ipv6Header::LEN + behind.len().min(usize::from(header.payload_len()));
        let packet = packet.get(..end)?;
        let (protocol, upper) = match walk(packet, MAX_HEADERS, MAX_BYTES) {
            Ok(chain) if chain.is_later_fragment() => (chain.protocol, Upper::LaterFragment),
            Ok(chain) => (
                chain.protocol,
                upper(
                    chain.protocol,
                    packet.get(chain.offset..).unwrap_or_default(),
                ),
            ),
            Err(_) => (header.next_header(), Upper::Unreadable),
        };
        Some(Key6::new(
            &header.source,
            &header.destination,
            protocol,
            upper,
        ))
    }
}
