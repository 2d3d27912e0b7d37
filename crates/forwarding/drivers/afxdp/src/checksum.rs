//! Completes transport checksums that a virtual device left unfinished.
//!
//! A veth (or bridge, macvlan, TAP) whose sender has transmit checksum offload on carries TCP and UDP packets without a
//! finished checksum: the field holds the folded sum of the pseudo-header (Linux calls this `CHECKSUM_PARTIAL`), and
//! the metadata that say so do not reach an AF_XDP socket. A router must finish it before the packet leaves the
//! machine's memory, or the receiver drops it.
//!
//! A packet is unfinished when its field equals the sum of its pseudo-header. A finished packet has that value by chance
//! once in 65,536 times; its data then sum up to zero, and completing it gives the value that it has already. So no
//! intact packet is changed. A damaged packet with that value would be repaired by mistake; on a device inside of one
//! machine's memory there is nothing that damages packets.
//!
//! Looks through VLAN tags, MPLS labels and IPv6 extension headers. Fragments are finished by the sender. Not completed:
//! SCTP, and packets inside of tunnels (VXLAN, GRE).
//!
//! Runs on the worker that receives, for virtual devices only.

use weir_buf::Pkt;
use weir_wire::checksum::{Sum, internet, pseudo4, pseudo6};
use weir_wire::{EtherType, IpProtocol};

/// Tags, labels and extension headers looked through at most, of each kind.
const MOST_HEADERS: usize = 8;

/// Where an unfinished checksum lies in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unfinished {
    /// First byte of the transport header.
    start: usize,
    /// Length of header and payload.
    len: usize,
    /// The checksum field.
    field: usize,
}

/// Completes the checksum of a frame if it is unfinished; whether it was.
pub(crate) fn complete(packet: &mut Pkt) -> bool {
    let Some(found) = find(packet.data()) else {
        return false;
    };
    let end = found.start + found.len;
    if end > packet.total_len() {
        return false;
    }
    let checksum = match packet.data().get(found.start..end) {
        Some(segment) => internet(segment),
        None => over_pieces(packet, found.start, end),
    };
    // Zero would say "none" in UDP; 0xffff is the same number in this arithmetic (RFC 768).
    let checksum = if checksum == 0 { 0xffff } else { checksum };
    match packet.data_mut().get_mut(found.field..found.field + 2) {
        Some(field) => {
            field.copy_from_slice(&checksum.to_be_bytes());
            true
        }
        None => false,
    }
}

/// The checksum over bytes that lie in several chunks.
#[cold]
fn over_pieces(packet: &Pkt, start: usize, end: usize) -> u16 {
    let (mut sum, mut at) = (Sum::EMPTY, 0);
    for piece in packet.segments() {
        let (from, to) = (start.clamp(at, at + piece.len()), end.min(at + piece.len()));
        if let Some(part) = piece
            .get(from - at..to.saturating_sub(at))
            .filter(|it| !it.is_empty())
        {
            let part_sum = !internet(part);
            // A piece that begins at an odd place has its bytes in the other halves of the words.
            let swapped = (from - start) % 2 == 1;
            sum = sum.add_u16(if swapped {
                part_sum.swap_bytes()
            } else {
                part_sum
            });
        }
        at += piece.len();
    }
    sum.finish()
}

fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?))
}

/// The unfinished checksum of a frame, if it has one.
#[inline]
fn find(frame: &[u8]) -> Option<Unfinished> {
    let (mut kind, mut at) = (u16_at(frame, 12)?, 14);
    for _ in 0..MOST_HEADERS {
        if kind != EtherType::VLAN.0 && kind != EtherType::QINQ.0 {
            break;
        }
        (kind, at) = (u16_at(frame, at + 2)?, at + 4);
    }
    if kind == EtherType::MPLS.0 {
        at = behind_labels(frame, at)?;
        kind = match frame.get(at)? >> 4 {
            4 => EtherType::IPV4.0,
            6 => EtherType::IPV6.0,
            _ => return None,
        };
    }
    match kind {
        kind if kind == EtherType::IPV4.0 => find4(frame, at),
        kind if kind == EtherType::IPV6.0 => find6(frame, at),
        _ => None,
    }
}

fn behind_labels(frame: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..MOST_HEADERS {
        let bottom = frame.get(at + 2)? & 1 != 0;
        at += 4;
        if bottom {
            return Some(at);
        }
    }
    None
}

fn find4(frame: &[u8], at: usize) -> Option<Unfinished> {
    let header = frame.get(at..at + 20)?;
    let header_len = usize::from(header[0] & 15) * 4;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let len = usize::from(u16::from_be_bytes([header[2], header[3]])).checked_sub(header_len)?;
    if header[0] >> 4 != 4 || header_len < 20 || is_fragment {
        return None;
    }
    let address = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let protocol = IpProtocol(header[9]);
    let pseudo = pseudo4(address(12), address(16), protocol, len as u16);
    is_unfinished(frame, at + header_len, len, protocol, pseudo)
}

fn find6(frame: &[u8], at: usize) -> Option<Unfinished> {
    let header = frame.get(at..at + 40)?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let (mut next, mut start) = (header[6], at + 40);
    for _ in 0..MOST_HEADERS {
        // Hop-by-hop options, routing, destination options (RFC 8200 section 4).
        if !matches!(next, 0 | 43 | 60) {
            break;
        }
        let len = (usize::from(*frame.get(start + 1)?) + 1) * 8;
        (next, start) = (*frame.get(start)?, start + len);
    }
    let len = (at + 40 + payload).checked_sub(start)?;
    let source = header.get(8..24)?.try_into().ok()?;
    let destination = header.get(24..40)?.try_into().ok()?;
    let protocol = IpProtocol(next);
    let pseudo = pseudo6(source, destination, protocol, len as u32);
    is_unfinished(frame, start, len, protocol, pseudo)
}

fn is_unfinished(
    frame: &[u8],
    start: usize,
    len: usize,
    protocol: IpProtocol,
    pseudo: Sum,
) -> Option<Unfinished> {
    let (offset, header) = match protocol {
        IpProtocol::TCP => (16, 20),
        IpProtocol::UDP => (6, 8),
        _ => return None,
    };
    let field = start + offset;
    (len >= header && u16_at(frame, field)? == !pseudo.finish()).then_some(Unfinished {
        start,
        len,
        field,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_buf::{Hugepages, Pool, PoolConfig};

    fn pool() -> Pool {
        Pool::new(PoolConfig {
            chunks: 64,
            hugepages: Hugepages::Off,
        })
        .unwrap()
    }

    /// A sum written down as RFC 1071 does: big-endian words, one by one.
    fn plain_sum(parts: &[&[u8]]) -> u16 {
        let bytes = parts.concat();
        let mut sum: u32 = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low)))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// A frame with `between` behind the MAC addresses, whose transport checksum is as the kernel leaves it; and the
    /// finished checksum.
    fn unfinished(between: &[u8], v6: bool, protocol: u8, payload: &[u8]) -> (Vec<u8>, u16, usize) {
        let (offset, header) = if protocol == 6 { (16, 20) } else { (6, 8) };
        let mut segment = vec![0x5a; header];
        segment.extend(payload);
        segment[offset..offset + 2].fill(0);
        let len = segment.len() as u16;
        let (ip, pseudo) = if v6 {
            let mut ip = vec![0x60, 0, 0, 0, (len >> 8) as u8, len as u8, protocol, 64];
            ip.extend([0x20; 16]);
            ip.extend([0x21; 16]);
            let pseudo = [
                &ip[8..40],
                &[0, 0, (len >> 8) as u8, len as u8, 0, 0, 0, protocol],
            ]
            .concat();
            (ip, pseudo)
        } else {
            let total = len + 20;
            let mut ip = vec![
                0x45,
                0,
                (total >> 8) as u8,
                total as u8,
                0,
                0,
                0x40,
                0,
                64,
                protocol,
                0,
                0,
            ];
            ip.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            let pseudo = [&ip[12..20], &[0, protocol, (len >> 8) as u8, len as u8]].concat();
            (ip, pseudo)
        };
        let finished = !plain_sum(&[&pseudo, &segment]);
        let partial = plain_sum(&[&pseudo]);
        segment[offset..offset + 2].copy_from_slice(&partial.to_be_bytes());
        let frame = [&[2; 12], between, &ip, &segment].concat();
        let field = 12 + between.len() + ip.len() + offset;
        (frame, finished, field)
    }

    #[test]
    fn unfinished_checksums_are_completed_and_others_left() {
        let pool = pool();
        let cases: [(&[u8], bool); 6] = [
            (&[8, 0], false),
            (&[0x86, 0xdd], true),
            (&[0x81, 0, 0, 5, 8, 0], false),
            (&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x86, 0xdd], true),
            (&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], false),
            (&[0x88, 0x47, 0, 2, 1, 64], true),
        ];
        for (between, v6) in cases {
            for protocol in [6, 17] {
                for len in [0, 1, 2, 999, 1400] {
                    let payload: Vec<u8> = (0..len).map(|n| (n * 7) as u8).collect();
                    let (mut frame, finished, field) = unfinished(between, v6, protocol, &payload);
                    // Padding behind the packet is no part of it.
                    frame.extend([0xff; 3]);
                    let mut packet = pool.alloc().unwrap();
                    assert!(packet.fill(&frame));
                    assert!(complete(&mut packet), "{between:x?} {protocol} {len}");
                    let expected = if finished == 0 { 0xffff } else { finished };
                    assert_eq!(u16_at(packet.data(), field), Some(expected));
                    assert!(!complete(&mut packet), "it is finished now");
                    frame[field..field + 2].copy_from_slice(&expected.to_be_bytes());
                    assert_eq!(packet.data(), frame, "nothing else has changed");
                }
            }
        }
    }

    #[test]
    fn a_frame_in_several_chunks_is_completed() {
        let pool = pool();
        let payload: Vec<u8> = (0..4000).map(|n| (n * 13) as u8).collect();
        let (frame, finished, field) = unfinished(&[8, 0], false, 6, &payload);
        for cut in [60, 61, 1500, 2001] {
            let (mut head, mut tail) = (pool.alloc().unwrap(), pool.alloc().unwrap());
            let (first, rest) = frame.split_at(cut);
            let (second, third) = rest.split_at(2003.min(rest.len()));
            assert!(head.fill(first) && tail.fill(second));
            head.append(tail).unwrap();
            if !third.is_empty() {
                let mut last = pool.alloc().unwrap();
                assert!(last.fill(third));
                head.append(last).unwrap();
            }
            assert!(complete(&mut head));
            assert_eq!(u16_at(head.data(), field), Some(finished), "{cut}");
        }
    }

    #[test]
    fn fragments_other_protocols_and_rubbish_are_left() {
        let pool = pool();
        let (frame, _, _) = unfinished(&[8, 0], false, 17, b"data");
        let mut fragment = frame.clone();
        fragment[20] = 0x20;
        let mut other = frame.clone();
        other[23] = 132;
        for left in [fragment, other] {
            let mut packet = pool.alloc().unwrap();
            assert!(packet.fill(&left));
            assert!(!complete(&mut packet));
            assert_eq!(packet.data(), left);
        }
        for len in 0..frame.len() {
            let mut packet = pool.alloc().unwrap();
            assert!(packet.fill(&frame[..len]));
            assert!(!complete(&mut packet), "cut at {len}");
        }
    }
}
