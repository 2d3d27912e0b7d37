//! From a received frame to the input of the table: key, numbers, and the facts of a first packet.
//!
//! Looks at Ethernet, up to four VLAN tags (the outer two are reported), a label stack (the top entry is part of the key,
//! the four below it are facts), and the IPv4 or IPv6 packet behind them. Later fragments have no ports, whatever stands where
//! ports would be; options of IPv4 and extension headers of IPv6 are stepped over. A frame that is nothing of this, or ends too
//! early to be it, is an L2 flow by its addresses and type: nothing that comes goes unmetered.
//!
//! Interface of departure, status and next hop are not known here: who knows them fills them in.

use super::Facts;
use super::key::{Kind, Parts};
use super::record::MPLS;

/// VLAN tags that are stepped over.
const MOST_TAGS: usize = 4;
/// Entries of a label stack that are looked through.
const MOST_LABELS: usize = 16;
/// Extension headers of IPv6 that are stepped over.
const MOST_EXTENSIONS: usize = 8;

/// What a frame tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// For the key.
    pub parts: Parts,
    /// Octets from the IP header on, as it says; of L2 flows the frame's.
    pub octets: u32,
    /// `tcpControlBits`.
    pub tcp_flags: u16,
    /// TTL or hop limit.
    pub ttl: u8,
    /// `fragmentFlags`.
    pub fragment: u8,
    /// MAC addresses and labels.
    pub facts: Facts,
}

/// How deep a frame is parsed. What is not parsed up to IP is an L2 flow, whatever it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// MAC addresses, VLAN tags and type.
    Frame,
    /// The label stack as well.
    Labels,
    /// The IP packet and the ports as well.
    #[default]
    Ip,
}

/// Parses the first octets of a frame of `length` octets that was received on interface `input`.
#[must_use]
pub fn observe(input: u32, frame: &[u8], length: u32, depth: Depth) -> Seen {
    let mut seen = Seen {
        octets: length,
        ..Seen::default()
    };
    seen.parts.input = input;
    let (Some(destination), Some(source), Some(mut kind)) =
        (array(frame, 0), array(frame, 6), word(frame, 12))
    else {
        return seen;
    };
    (seen.facts.destination_mac, seen.facts.source_mac) = (destination, source);
    let mut rest = frame.get(14..).unwrap_or(&[]);
    for tag in 0..MOST_TAGS {
        if !matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
            break;
        }
        let (Some(control), Some(next)) = (word(rest, 0), word(rest, 2)) else {
            break;
        };
        match tag {
            0 => seen.parts.vlan = control & 0x0fff,
            1 => seen.parts.customer_vlan = control & 0x0fff,
            _ => {}
        }
        kind = next;
        rest = rest.get(4..).unwrap_or(&[]);
    }
    let known = match kind {
        0x8847 | 0x8848 if depth != Depth::Frame => labels(&mut seen, rest, depth),
        _ if depth != Depth::Ip => None,
        0x0800 => ip4(&mut seen, rest),
        0x86dd => ip6(&mut seen, rest),
        _ => None,
    };
    if known.is_none() {
        seen.parts.kind = Kind::L2;
        seen.parts.source[10..].copy_from_slice(&source);
        seen.parts.destination[10..].copy_from_slice(&destination);
        seen.parts.source_port = kind;
    }
    seen
}

/// RFC 3032, 2.1: entries up to the one with the bottom bit, and what the first four bits behind it say is there.
fn labels(seen: &mut Seen, mut rest: &[u8], depth: Depth) -> Option<()> {
    for place in 0..MOST_LABELS {
        let entry = u32::from_be_bytes(array(rest, 0)?);
        rest = rest.get(4..)?;
        // Without its TTL.
        match place {
            0 => seen.parts.label = MPLS | entry >> 8,
            _ => {
                if let Some(below) = seen.facts.labels.get_mut(place - 1) {
                    *below = entry >> 8;
                }
            }
        }
        if entry & 0x100 != 0 {
            if depth == Depth::Labels {
                return None;
            }
            return match rest.first()? >> 4 {
                4 => ip4(seen, rest),
                6 => ip6(seen, rest),
                _ => None,
            };
        }
    }
    None
}

fn ip4(seen: &mut Seen, packet: &[u8]) -> Option<()> {
    let first = *packet.first()?;
    let header = usize::from(first & 15) * 4;
    let (fixed, length, fragment) = (packet.get(..20)?, word(packet, 2)?, word(packet, 6)?);
    if first >> 4 != 4 || header < 20 || usize::from(length) < header {
        return None;
    }
    seen.parts.kind = Kind::Ip4;
    seen.parts.source[12..].copy_from_slice(fixed.get(12..16)?);
    seen.parts.destination[12..].copy_from_slice(fixed.get(16..20)?);
    (seen.parts.tos, seen.parts.protocol) = (*fixed.get(1)?, *fixed.get(9)?);
    (seen.ttl, seen.octets) = (*fixed.get(8)?, length.into());
    // RFC 791, 3.1: reserved, don't fragment, more fragments.
    seen.fragment = (fragment >> 8) as u8 & 0xe0;
    if fragment & 0x1fff == 0 {
        transport(
            seen,
            packet
                .get(header..usize::from(length))
                .or_else(|| packet.get(header..))
                .unwrap_or(&[]),
        );
    }
    Some(())
}

fn ip6(seen: &mut Seen, packet: &[u8]) -> Option<()> {
    let (first, fixed) = (u32::from_be_bytes(array(packet, 0)?), packet.get(..40)?);
    if first >> 28 != 6 {
        return None;
    }
    seen.parts.kind = Kind::Ip6;
    (seen.parts.source, seen.parts.destination) = (array(fixed, 8)?, array(fixed, 24)?);
    seen.parts.tos = (first >> 20) as u8;
    if seen.parts.label & MPLS == 0 {
        seen.parts.label = first & 0x000f_ffff;
    }
    (seen.ttl, seen.octets) = (*fixed.get(7)?, 40 + u32::from(word(fixed, 4)?));
    extensions(seen, *fixed.get(6)?, packet.get(40..).unwrap_or(&[]));
    Some(())
}

/// Steps over extension headers (RFC 8200, 4) to what is carried.
fn extensions(seen: &mut Seen, mut next: u8, mut rest: &[u8]) {
    for _ in 0..MOST_EXTENSIONS {
        seen.parts.protocol = next;
        let unit = rest.get(1).copied().map_or(0, usize::from);
        let length = match next {
            0 | 43 | 60 => (unit + 1) * 8,
            // RFC 4302, 2.2.
            51 => (unit + 2) * 4,
            44 => {
                let Some(offset) = word(rest, 2) else { return };
                // As IPv4 has it: there is no don't fragment here.
                seen.fragment = if offset & 1 != 0 { 0x20 } else { 0 };
                if offset >> 3 != 0 {
                    seen.parts.protocol = rest.first().copied().unwrap_or(next);
                    return;
                }
                8
            }
            _ => return transport(seen, rest),
        };
        let (Some(following), Some(behind)) = (rest.first(), rest.get(length..)) else {
            return;
        };
        (next, rest) = (*following, behind);
    }
}

/// Ports, type and code, and the flags of TCP (RFC 9293 3.1: 12 bits without the data offset).
fn transport(seen: &mut Seen, segment: &[u8]) {
    match seen.parts.protocol {
        // TCP, UDP, DCCP, SCTP, UDP-Lite.
        6 | 17 | 33 | 132 | 136 => {
            let (Some(source), Some(destination)) = (word(segment, 0), word(segment, 2)) else {
                return;
            };
            (seen.parts.source_port, seen.parts.destination_port) = (source, destination);
            if seen.parts.protocol == 6 {
                seen.tcp_flags = word(segment, 12).unwrap_or(0) & 0x0fff;
            }
        }
        1 | 58 => seen.parts.destination_port = word(segment, 0).unwrap_or(0),
        _ => {}
    }
}

fn array<const N: usize>(octets: &[u8], at: usize) -> Option<[u8; N]> {
    octets.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn word(octets: &[u8], at: usize) -> Option<u16> {
    array(octets, at).map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        [&MACS, parts.concat().as_slice()].concat()
    }

    /// IPv4 from 192.0.2.1 to 198.51.100.2, with this fragment word, protocol, options and payload.
    fn ip4_packet(fragment: u16, protocol: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let header = 20 + options.len();
        let mut packet = vec![0x40 | (header / 4) as u8, 0xb8];
        packet.extend(((header + payload.len()) as u16).to_be_bytes());
        packet.extend([0, 1]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([63, protocol, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
        packet.extend(options);
        packet.extend(payload);
        packet
    }

    /// IPv6 with traffic class 0xb8 and flow label 0x12345.
    fn ip6_packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x6b, 0x81, 0x23, 0x45];
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([next, 61]);
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend(payload);
        packet
    }

    /// Ports 1234 and 443, flags SYN and NS.
    const TCP: [u8; 20] = [
        0x04, 0xd2, 0x01, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x51, 0x02, 0, 0, 0, 0, 0, 0,
    ];

    fn seen(frame: &[u8]) -> Seen {
        observe(7, frame, frame.len() as u32, Depth::Ip)
    }

    #[test]
    fn ip4_with_options_and_padding() {
        let packet = ip4_packet(0x4000, 6, &[1, 1, 1, 0], &TCP);
        let seen = seen(&frame(&[&[8, 0], &packet, &[0; 9]]));
        let parts = seen.parts;
        assert_eq!(
            (parts.kind, parts.input, parts.protocol, parts.tos),
            (Kind::Ip4, 7, 6, 0xb8)
        );
        assert_eq!(
            (&parts.source[12..], &parts.destination[12..]),
            (&[192, 0, 2, 1][..], &[198, 51, 100, 2][..])
        );
        assert_eq!(
            (parts.source_port, parts.destination_port, seen.tcp_flags),
            (1234, 443, 0x102)
        );
        // Without the Ethernet's padding; DF is set.
        assert_eq!((seen.octets, seen.ttl, seen.fragment), (44, 63, 0x40));
        assert_eq!(seen.facts.source_mac, [2, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn later_fragments_have_no_ports() {
        let first = seen(&frame(&[&[8, 0], &ip4_packet(0x2000, 17, &[], &TCP)]));
        assert_eq!((first.parts.source_port, first.fragment), (1234, 0x20));
        let later = seen(&frame(&[&[8, 0], &ip4_packet(0x2001, 6, &[], &TCP)]));
        assert_eq!(
            (
                later.parts.source_port,
                later.parts.destination_port,
                later.tcp_flags,
                later.fragment
            ),
            (0, 0, 0, 0x20)
        );
        assert_eq!(later.parts.protocol, 6);
    }

    #[test]
    fn ip6_with_extension_headers() {
        // Hop-by-hop, routing, first fragment with more to come, TCP.
        let chain = [
            &[43, 0, 1, 4, 0, 0, 0, 0][..],
            &[44, 0, 0, 0, 0, 0, 0, 0],
            &[6, 0, 0, 1, 0, 0, 0, 9],
            &TCP,
        ]
        .concat();
        let packet = ip6_packet(0, &chain);
        let first = seen(&frame(&[&[0x86, 0xdd], &packet]));
        let parts = first.parts;
        assert_eq!(
            (parts.kind, parts.protocol, parts.tos, parts.label),
            (Kind::Ip6, 6, 0xb8, 0x12345)
        );
        assert_eq!((parts.source[15], parts.destination[15]), (1, 2));
        assert_eq!(
            (parts.source_port, parts.destination_port, first.tcp_flags),
            (1234, 443, 0x102)
        );
        assert_eq!(
            (first.octets, first.ttl, first.fragment),
            (packet.len() as u32, 61, 0x20)
        );
        let later = seen(&frame(&[
            &[0x86, 0xdd],
            &ip6_packet(44, &[&[6, 0, 0, 8, 0, 0, 0, 9][..], &TCP].concat()),
        ]));
        assert_eq!(
            (
                later.parts.protocol,
                later.parts.source_port,
                later.fragment
            ),
            (6, 0, 0)
        );
    }

    #[test]
    fn icmp_has_type_and_code_for_a_port() {
        let seen4 = seen(&frame(&[&[8, 0], &ip4_packet(0, 1, &[], &[8, 0, 0, 0])]));
        assert_eq!(
            (seen4.parts.source_port, seen4.parts.destination_port),
            (0, 0x0800)
        );
        let seen6 = seen(&frame(&[&[0x86, 0xdd], &ip6_packet(58, &[135, 0, 0, 0])]));
        assert_eq!(seen6.parts.destination_port, 0x8700);
    }

    #[test]
    fn tags_and_labels() {
        let packet = ip4_packet(0, 17, &[], &TCP);
        let qinq = seen(&frame(&[
            &[0x88, 0xa8, 0x20, 100, 0x81, 0, 0, 200, 8, 0],
            &packet,
        ]));
        assert_eq!(
            (
                qinq.parts.kind,
                qinq.parts.vlan,
                qinq.parts.customer_vlan,
                qinq.parts.source_port
            ),
            (Kind::Ip4, 100, 200, 1234)
        );
        // 16001 with class 5, then 17 at the bottom.
        let stack = [&[0x03, 0xe8, 0x1a, 64][..], &[0, 1, 0x11, 63]].concat();
        let labelled = seen(&frame(&[&[0x81, 0, 0, 9, 0x88, 0x47], &stack, &packet]));
        assert_eq!((labelled.parts.kind, labelled.parts.vlan), (Kind::Ip4, 9));
        assert_eq!(labelled.parts.label, MPLS | 16_001 << 4 | 5 << 1);
        assert_eq!(labelled.facts.labels, [17 << 4 | 1, 0, 0, 0]);
        assert_eq!(
            (labelled.parts.destination_port, labelled.octets),
            (443, packet.len() as u32)
        );
        // A pseudowire: a control word, no IP.
        let wire = seen(&frame(&[&[0x88, 0x47], &[0, 1, 0x11, 63], &[0; 30]]));
        assert_eq!(
            (wire.parts.kind, wire.parts.source_port, wire.parts.label),
            (Kind::L2, 0x8847, MPLS | 17 << 4 | 1)
        );
    }

    #[test]
    fn everything_else_is_l2_and_nothing_panics() {
        let arp = seen(&frame(&[&[8, 6], &[0; 46]]));
        assert_eq!(
            (arp.parts.kind, arp.parts.source_port, arp.octets),
            (Kind::L2, 0x0806, 60)
        );
        assert_eq!(
            (&arp.parts.source[10..], &arp.parts.destination[10..]),
            (&MACS[6..], &MACS[..6])
        );
        let whole = frame(&[
            &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x88, 0x47],
            &[0, 1, 0x11, 63],
            &ip6_packet(0, &[&[6, 0, 1, 4, 0, 0, 0, 0][..], &TCP].concat()),
        ]);
        for cut in 0..whole.len() {
            let _ = seen(&whole[..cut]);
            for octet in [0, 1, 0x45, 0x60, 0xff] {
                let mut changed = whole.clone();
                changed[cut] = octet;
                let _ = seen(&changed);
            }
        }
    }
}
