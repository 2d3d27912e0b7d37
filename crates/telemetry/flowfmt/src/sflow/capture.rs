//! UDP payloads out of captured frames, so that recorded sFlow can be decoded.
//!
//! Reads Ethernet, Linux "cooked" captures (versions 1 and 2, what capturing on `any` gives) and bare
//! IP; VLAN tags; IPv4 with options; IPv6 with extension headers. Later fragments have no UDP header
//! and give nothing, a first fragment gives what it has. A frame that was cut when captured gives the
//! payload that is left of it: it is the decoder's to say what is missing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::decode::Datagram;

/// `LINKTYPE_ETHERNET`: frames from the destination MAC on.
pub const ETHERNET: u32 = 1;
/// `LINKTYPE_RAW`: packets from the IP header on.
pub const RAW: u32 = 101;
/// `LINKTYPE_LINUX_SLL`: Linux cooked capture.
pub const LINUX_SLL: u32 = 113;
/// `LINKTYPE_LINUX_SLL2`: Linux cooked capture, version 2.
pub const LINUX_SLL2: u32 = 276;

/// IPv6 extension headers looked behind before giving up.
const MAX_EXTENSIONS: usize = 16;

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
    match link_type {
        ETHERNET => tagged(word(frame, 12)?, frame.get(14..)?),
        // Protocol in the last two of 16 octets, or in the first two of 20.
        LINUX_SLL => tagged(word(frame, 14)?, frame.get(16..)?),
        LINUX_SLL2 => tagged(word(frame, 0)?, frame.get(20..)?),
        RAW => match frame.first()? >> 4 {
            4 => ipv4(frame),
            6 => ipv6(frame),
            _ => None,
        },
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

fn tagged(mut ether_type: u16, mut rest: &[u8]) -> Option<UdpPayload<'_>> {
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

fn ipv4(packet: &[u8]) -> Option<UdpPayload<'_>> {
    let first = *packet.first()?;
    let header_len = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header_len < 20 {
        return None;
    }
    let source = Ipv4Addr::from(array::<4>(packet, 12)?);
    let destination = Ipv4Addr::from(array::<4>(packet, 16)?);
    let later_fragment = word(packet, 6)? & 0x1fff != 0;
    let protocol = *packet.get(9)?;
    if later_fragment || protocol != 17 {
        return None;
    }
    udp(source.into(), destination.into(), packet.get(header_len..)?)
}

fn ipv6(packet: &[u8]) -> Option<UdpPayload<'_>> {
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let source = Ipv6Addr::from(array::<16>(packet, 8)?);
    let destination = Ipv6Addr::from(array::<16>(packet, 24)?);
    let mut next = *packet.get(6)?;
    let mut rest = packet.get(40..)?;
    for _ in 0..MAX_EXTENSIONS {
        let len = match next {
            17 => return udp(source.into(), destination.into(), rest),
            0 | 43 | 60 => (usize::from(*rest.get(1)?) + 1) * 8,
            // RFC 8200, 4.5: a fragment that is not the first.
            44 if word(rest, 2)? >> 3 != 0 => return None,
            44 => 8,
            // RFC 4302, 2.2: in units of four octets, minus two.
            51 => (usize::from(*rest.get(1)?) + 2) * 4,
            _ => return None,
        };
        next = *rest.first()?;
        rest = rest.get(len..)?;
    }
    None
}

fn udp(source: IpAddr, destination: IpAddr, datagram: &[u8]) -> Option<UdpPayload<'_>> {
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
