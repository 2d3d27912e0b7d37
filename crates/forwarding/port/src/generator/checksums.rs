//! Which checksums of a frame a field counts in, and how they follow it.
//!
//! A checksum is corrected by the difference that the field makes (RFC 1624), not computed anew: that
//! costs the same for any length of frame, and a template with a wrong checksum, made on purpose,
//! stays exactly as wrong. A UDP checksum of 0, which says that there is none, stays 0.
//!
//! Followed are those of the IPv4 header, behind any VLAN tags, and of UDP, TCP and ICMP in it. Of the
//! pseudo-header the addresses count; a field that changes lengths or the protocol makes frames
//! whose transport checksum is wrong. So does one that lies on a checksum: it is what was asked for.

use weir_wire::{EtherType, IpProtocol, Ipv4Header};

use super::stream::Field;

/// One checksum that a field counts in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    /// Where the checksum lies.
    place: usize,
    /// By how much each byte of the field counts: 256, 1, or 0 when it is outside.
    weights: [u32; 4],
    /// 0 means none (UDP).
    optional: bool,
}

/// What is summed by one checksum.
struct Covered {
    place: usize,
    optional: bool,
    /// First byte and the one behind the last, two ranges of the frame.
    ranges: [(usize, usize); 2],
}

impl Covered {
    fn effect(&self, field: &Field, l3: usize) -> Option<Effect> {
        let end = field.offset + field.width;
        if field.offset < self.place + 2 && self.place < end {
            return None;
        }
        let mut weights = [0; 4];
        for (at, weight) in (field.offset..end).zip(&mut weights) {
            if self
                .ranges
                .iter()
                .any(|(first, behind)| (*first..*behind).contains(&at))
            {
                *weight = if (at - l3).is_multiple_of(2) { 256 } else { 1 };
            }
        }
        weights.iter().any(|weight| *weight != 0).then_some(Effect {
            place: self.place,
            weights,
            optional: self.optional,
        })
    }
}

/// Where the IPv4 packet begins, behind Ethernet and tags.
fn ipv4_at(frame: &[u8]) -> Option<usize> {
    let mut at = 12;
    for _ in 0..3 {
        let kind = u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?);
        match kind {
            0x8100 | 0x88a8 => at += 4,
            _ if kind == EtherType::IPV4.0 => return Some(at + 2),
            _ => return None,
        }
    }
    None
}

/// The checksums in the template that `field` counts in.
pub(super) fn effects(template: &[u8], field: &Field) -> [Option<Effect>; 2] {
    let Some(l3) = ipv4_at(template) else {
        return [None, None];
    };
    let Some((header, _)) = template.get(l3..).and_then(Ipv4Header::read) else {
        return [None, None];
    };
    let l4 = l3 + header.header_len();
    let end = (l3 + usize::from(header.total_len())).min(template.len());
    let of_header = Covered {
        place: l3 + 10,
        optional: false,
        ranges: [(l3, l4), (0, 0)],
    };
    let addresses = (l3 + 12, l3 + 20);
    let of_transport = match header.protocol() {
        _ if header.is_fragment() => None,
        IpProtocol::UDP => Some((6, true, addresses)),
        IpProtocol::TCP => Some((16, false, addresses)),
        IpProtocol::ICMP => Some((2, false, (0, 0))),
        _ => None,
    };
    let of_transport = of_transport.map(|(at, optional, more)| Covered {
        place: l4 + at,
        optional,
        ranges: [(l4, end), more],
    });
    let fits = |covered: &Covered| covered.place + 2 <= end;
    [Some(of_header), of_transport].map(|covered| {
        covered
            .filter(fits)
            .and_then(|covered| covered.effect(field, l3))
    })
}

impl Effect {
    /// Corrects the checksum in `frame` for a field that was `old` and is `new`.
    #[inline]
    pub(super) fn follow(&self, frame: &mut [u8], old: &[u8], new: &[u8]) {
        let Some(bytes) = frame
            .get_mut(self.place..self.place + 2)
            .and_then(|bytes| <&mut [u8; 2]>::try_from(bytes).ok())
        else {
            return;
        };
        let before = u16::from_be_bytes(*bytes);
        if self.optional && before == 0 {
            return;
        }
        let weigh = |bytes: &[u8]| {
            bytes
                .iter()
                .zip(self.weights)
                .map(|(byte, weight)| u32::from(*byte) * weight)
                .sum::<u32>()
        };
        // RFC 1624 equation 3: HC' = ~(~HC + ~m + m'). Subtracting m modulo 0xffff is adding ~m; what
        // four bytes weigh is below 4 * 0xffff.
        let mut sum = u32::from(!before) + 4 * 0xffff - weigh(old) + weigh(new);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        let after = !(sum as u16);
        *bytes = if self.optional && after == 0 {
            [0xff; 2]
        } else {
            after.to_be_bytes()
        };
    }
}
