//! UDP payloads out of captured frames, so that recorded sFlow can be decoded.
//!
//! Reads Ethernet, Linux "cooked" captures (versions 1 and 2, what capturing on `any` gives), BSD loopback and bare
//! IP; VLAN tags; IPv4 with options; IPv6 with extension headers; IP and Ethernet in GRE, IP in IP.
//! [`udp_payload`] keeps nothing between frames: later fragments have no UDP header and give nothing, a first fragment
//! gives what it has. A [`UdpReader`] puts fragments together. A frame that was cut when captured gives the
//! payload that is left of it: the decoder reports what is missing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::decode::Datagram;
pub use super::fragments::{CutDatagram, UdpReader, cut_datagram};

/// `LINKTYPE_ETHERNET`: frames from the destination MAC on.
pub const ETHERNET: u32 = 1;
/// `LINKTYPE_NULL`: BSD loopback, an address family of four octets before the IP header.
pub const NULL: u32 = 0;
/// `LINKTYPE_LOOP`: the same of OpenBSD.
pub const LOOP: u32 = 108;
/// `LINKTYPE_IPV4` and `LINKTYPE_IPV6`: packets from the IP header on.
pub const IPV4: u32 = 228;
/// See [`IPV4`].
pub const IPV6: u32 = 229;
/// `LINKTYPE_RAW`: packets from the IP header on.
pub const RAW: u32 = 101;
/// `LINKTYPE_LINUX_SLL`: Linux cooked capture.
pub const LINUX_SLL: u32 = 113;
/// `LINKTYPE_LINUX_SLL2`: Linux cooked capture, version 2.
pub const LINUX_SLL2: u32 = 276;

/// IPv6 extension headers looked behind before giving up.
const MAX_EXTENSIONS: usize = 16;
/// Tunnel headers in front of the packet that is looked for.
const MAX_TUNNELS: usize = 4;

/// A UDP datagram found in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPayload<'a> {
    /// Who sent it, from which port.
    pub source: SocketAddr,
    /// Where to.
    pub destination: SocketAddr,
    /// What.
    pub payload: &'a [u8],
}

/// The UDP datagram in a frame of this link type (as numbered in capture files), if there is one.
#[must_use]
pub fn udp_payload(link_type: u32, frame: &[u8]) -> Option<UdpPayload<'_>> {
    transport(link_type, frame)?.udp()
}

/// What an IP packet carries, behind tunnel headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transport<'a> {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    /// Identification, offset in octets, and whether more follows; `None` of whole packets.
    pub(super) fragment: Option<(u32, usize, bool)>,
    pub(super) octets: &'a [u8],
}

impl<'a> Transport<'a> {
    fn udp(&self) -> Option<UdpPayload<'a>> {
        let is_first = self.fragment.is_none_or(|(_, offset, _)| offset == 0);
        (is_first && self.protocol == 17)
            .then(|| udp(self.source, self.destination, self.octets))?
    }
}

/// The packet in a frame, behind tunnel headers.
pub(super) fn transport(link_type: u32, frame: &[u8]) -> Option<Transport<'_>> {
    let mut found = match link_type {
        ETHERNET => tagged(word(frame, 12)?, frame.get(14..)?),
        // Protocol in the last two of 16 octets, or in the first two of 20.
        LINUX_SLL => tagged(word(frame, 14)?, frame.get(16..)?),
        LINUX_SLL2 => tagged(word(frame, 0)?, frame.get(20..)?),
        NULL | LOOP => ip(frame.get(4..)?),
        RAW | IPV4 | IPV6 => ip(frame),
        _ => None,
    }?;
    for _ in 0..MAX_TUNNELS {
        if found.fragment.is_some() {
            break;
        }
        found = match found.protocol {
            4 | 41 => ip(found.octets)?,
            47 => gre(found.octets)?,
            _ => break,
        };
    }
    Some(found)
}

/// What GRE carries (RFC 2784, RFC 2890): IP, or Ethernet.
fn gre(packet: &[u8]) -> Option<Transport<'_>> {
    let (flags, protocol) = (word(packet, 0)?, word(packet, 2)?);
    // Version 0; checksum, key and sequence number of four octets each.
    let options = [0x8000, 0x2000, 0x1000];
    let length = 4 + 4 * options.iter().filter(|bit| flags & **bit != 0).count();
    if flags & 7 != 0 {
        return None;
    }
    let inner = packet.get(length..)?;
    match protocol {
        0x6558 => tagged(word(inner, 12)?, inner.get(14..)?),
        _ => tagged(protocol, inner),
    }
}

fn ip(packet: &[u8]) -> Option<Transport<'_>> {
    match packet.first()? >> 4 {
        4 => ipv4(packet),
        6 => ipv6(packet),
        _ => None,
    }
}

/// The datagrams in a UDP payload: itself, or several.
///
/// Who captures on the sending machine sees what the kernel was handed to cut into UDP datagrams itself (`UDP_SEGMENT`): as one
/// packet, several datagrams of a stream, end to end. Behind a datagram's end there is another one only if it
/// is the next of the same agent.
pub fn datagrams(payload: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(payload);
    std::iter::from_fn(move || {
        let payload = rest.take()?;
        let Some((datagram, behind)) =
            next_datagram(payload).and_then(|end| payload.split_at_checked(end))
        else {
            return Some(payload);
        };
        rest = Some(behind);
        Some(datagram)
    })
}

/// Where the second one begins.
fn next_datagram(payload: &[u8]) -> Option<usize> {
    let first = Datagram::decode(payload).ok()?;
    let end = first.end()?;
    let second = Datagram::decode(payload.get(end..)?).ok()?;
    let follows = (second.agent, second.sub_agent_id, second.sequence)
        == (
            first.agent,
            first.sub_agent_id,
            first.sequence.wrapping_add(1),
        );
    follows.then_some(end)
}

fn tagged(mut ether_type: u16, mut rest: &[u8]) -> Option<Transport<'_>> {
    // Each turn takes four octets away.
    while matches!(ether_type, 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300) {
        ether_type = word(rest, 2)?;
        rest = rest.get(4..)?;
    }
    match ether_type {
        0x0800 => ipv4(rest),
        0x86dd => ipv6(rest),
        _ => None,
    }
}

fn ipv4(packet: &[u8]) -> Option<Transport<'_>> {
    let first = *packet.first()?;
    let header_len = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header_len < 20 {
        return None;
    }
    let (total, fragment) = (usize::from(word(packet, 2)?), word(packet, 6)?);
    let (offset, has_more) = (usize::from(fragment & 0x1fff) * 8, fragment & 0x2000 != 0);
    let payload = packet.get(header_len..)?;
    // What is behind is the Ethernet's padding. A length of 0 is one that the sender's hardware had to fill in.
    let octets = total
        .checked_sub(header_len)
        .and_then(|length| payload.get(..length))
        .unwrap_or(payload);
    Some(Transport {
        source: Ipv4Addr::from(array::<4>(packet, 12)?).into(),
        destination: Ipv4Addr::from(array::<4>(packet, 16)?).into(),
        protocol: *packet.get(9)?,
        fragment: (offset > 0 || has_more).then_some((
            u32::from(word(packet, 4)?),
            offset,
            has_more,
        )),
        octets,
    })
}

fn ipv6(packet: &[u8]) -> Option<Transport<'_>> {
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let source = Ipv6Addr::from(array::<16>(packet, 8)?);
    let destination = Ipv6Addr::from(array::<16>(packet, 24)?);
    let mut next = *packet.get(6)?;
    let length = usize::from(word(packet, 4)?);
    let payload = packet.get(40..)?;
    let mut rest = payload;
    let mut fragment = None;
    for _ in 0..MAX_EXTENSIONS {
        // What follows the header of a later fragment is the middle of the packet.
        let is_later = fragment.is_some_and(|(_, offset, _): (u32, usize, bool)| offset > 0);
        let len = match next {
            _ if is_later => 0,
            0 | 43 | 60 => (usize::from(*rest.get(1)?) + 1) * 8,
            // RFC 8200, 4.5.
            44 => {
                let field = word(rest, 2)?;
                let (offset, has_more) = (usize::from(field & 0xfff8), field & 1 != 0);
                let id = u32::from_be_bytes(array(rest, 4)?);
                fragment = (offset > 0 || has_more).then_some((id, offset, has_more));
                8
            }
            // RFC 4302, 2.2: in units of four octets, minus two.
            51 => (usize::from(*rest.get(1)?) + 2) * 4,
            _ => 0,
        };
        if len == 0 {
            // The Ethernet's padding is no part of a fragment. A length that ends before is none.
            let end = (rest.len() + length).checked_sub(payload.len());
            if let Some(end) = end.filter(|end| fragment.is_some() && *end > 0) {
                rest = rest.get(..end).unwrap_or(rest);
            }
            return Some(Transport {
                source: source.into(),
                destination: destination.into(),
                protocol: next,
                fragment,
                octets: rest,
            });
        }
        next = *rest.first()?;
        rest = rest.get(len..)?;
    }
    None
}

pub(super) fn udp(source: IpAddr, destination: IpAddr, datagram: &[u8]) -> Option<UdpPayload<'_>> {
    let length = usize::from(word(datagram, 4)?);
    let rest = datagram.get(8..)?;
    let payload = match length {
        // RFC 2675, section 4: the length is in the IPv6 jumbogram's option.
        0 => rest,
        1..8 => return None,
        // What is behind is the Ethernet's padding.
        _ => rest.get(..length - 8).unwrap_or(rest),
    };
    Some(UdpPayload {
        source: SocketAddr::new(source, word(datagram, 0)?),
        destination: SocketAddr::new(destination, word(datagram, 2)?),
        payload,
    })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}
