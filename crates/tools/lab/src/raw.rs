//! A frame given by its bytes: where its headers lie, and which of its fields count in which checksum.
//!
//! Control thread only. The bytes come from a file: nothing in them may panic.

use weir_wire::{MacAddr, checksum};

use crate::packet::{FieldSpec, Template};
use crate::profile::RawFrame;
use crate::stamp;

/// Where headers lie in a frame. All ranges are within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The IP header: offset, length, and whether it is version 6.
    pub(crate) ip: Option<(usize, usize, bool)>,
    /// The transport header: offset, length and protocol number.
    pub(crate) transport: Option<(usize, usize, u8)>,
    /// Where the IP packet ends; padding follows.
    pub(crate) end: usize,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let pair: [u8; 2] = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(u16::from_be_bytes(pair))
}

/// Finds the first IP header behind VLAN tags and MPLS labels, and the transport header behind it.
pub(crate) fn layout(bytes: &[u8]) -> Layout {
    let mut layout = Layout {
        end: bytes.len(),
        ..Layout::default()
    };
    let _ = find(bytes, &mut layout);
    layout
}

fn find(bytes: &[u8], layout: &mut Layout) -> Option<()> {
    let mut at = 12;
    let mut kind = word(bytes, at)?;
    while matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
        at += 4;
        kind = word(bytes, at)?;
    }
    at += 2;
    if kind == 0x8847 {
        while bytes.get(at + 2)? & 1 == 0 {
            at += 4;
        }
        at += 4;
        kind = match bytes.get(at)? >> 4 {
            4 => 0x0800,
            6 => 0x86dd,
            _ => return None,
        };
    }
    let (len, protocol, total) = match kind {
        0x0800 => {
            let len = usize::from(bytes.get(at)? & 15) * 4;
            // Later fragments have no transport header.
            let whole = word(bytes, at + 6)? & 0x1fff == 0;
            let protocol = bytes.get(at + 9)?;
            (
                len.max(20),
                whole.then_some(*protocol),
                usize::from(word(bytes, at + 2)?),
            )
        }
        0x86dd => (
            40,
            Some(*bytes.get(at + 6)?),
            usize::from(word(bytes, at + 4)?) + 40,
        ),
        _ => return None,
    };
    bytes.get(at..at + len)?;
    let end = at + total;
    if total < len || end > bytes.len() {
        return None;
    }
    layout.ip = Some((at, len, kind == 0x86dd));
    layout.end = end;
    let protocol = protocol?;
    let header = match protocol {
        17 | 1 | 58 => 8,
        6 => usize::from(bytes.get(at + len + 12)? >> 4) * 4,
        _ => return None,
    };
    bytes.get(at + len..at + len + header)?;
    if at + len + header <= end {
        layout.transport = Some((at + len, header, protocol));
    }
    Some(())
}

impl Layout {
    /// Whether a stamp fits behind the headers, in the payload.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        let payload = match (self.transport, self.ip) {
            (Some((at, len, _)), _) => at + len,
            (None, Some((at, len, _))) => at + len,
            (None, None) => 14,
        };
        // Within the checksummed part, so that its sum can be corrected.
        stamp::offset(len).is_some_and(|at| at >= payload && at + stamp::LEN <= self.end)
    }

    fn transport_checksum(&self) -> Option<usize> {
        let (at, _, protocol) = self.transport?;
        match protocol {
            17 => Some(at + 6),
            6 => Some(at + 16),
            1 | 58 => Some(at + 2),
            _ => None,
        }
    }

    /// The addresses, which the transport checksum includes; not for ICMP.
    fn addresses(&self) -> Option<std::ops::Range<usize>> {
        let (at, _, v6) = self.ip?;
        let (_, _, protocol) = self.transport?;
        match (protocol, v6) {
            (1, _) => None,
            (_, false) => Some(at + 12..at + 20),
            (_, true) => Some(at + 8..at + 40),
        }
    }

    /// In which checksums a field counts: the header's and the transport's.
    pub(crate) fn sums(&self, at: usize, width: usize) -> (bool, bool) {
        let inside = |range: std::ops::Range<usize>| at >= range.start && at + width <= range.end;
        let header = self
            .ip
            .is_some_and(|(ip, len, v6)| !v6 && inside(ip..ip + len));
        let transport = self.transport.is_some_and(|(l4, ..)| inside(l4..self.end))
            || self.addresses().is_some_and(inside);
        (header, transport)
    }

    /// Whether a field lies partly within what a checksum covers.
    pub(crate) fn is_astride(&self, at: usize, width: usize) -> bool {
        let crosses = |edge: usize| at < edge && edge < at + width;
        let ip = self
            .ip
            .is_some_and(|(ip, len, _)| crosses(ip) || crosses(ip + len));
        ip || crosses(self.end) || self.addresses().is_some_and(|range| crosses(range.start))
    }
}

impl RawFrame {
    /// Writes the MAC addresses of port and gateway.
    pub(crate) fn set_macs(&mut self, destination: MacAddr, source: MacAddr) {
        if let Some(macs) = self.bytes.get_mut(..12) {
            let (to, from) = macs.split_at_mut(6);
            to.copy_from_slice(&destination.0);
            from.copy_from_slice(&source.0);
        }
        self.writes.retain(|write| write.at >= 12);
    }
}

/// The source addresses of a frame as a range, and whether they are of IPv6.
pub(crate) fn source(raw: &RawFrame) -> Option<(u128, u128, bool)> {
    let (at, _, v6) = layout(&raw.bytes).ip?;
    let (at, width) = if v6 { (at + 8, 16) } else { (at + 12, 4) };
    let fixed = raw.bytes.get(at..at + width)?;
    let fixed = fixed
        .iter()
        .fold(0, |sum, byte| sum << 8 | u128::from(*byte));
    let field = raw
        .writes
        .iter()
        .find(|write| write.at == at && write.width == width && write.values.list.is_empty());
    Some(match field {
        Some(write) => (write.values.first, write.values.last(), v6),
        None => (fixed, fixed, v6),
    })
}

/// Template and fields of a frame, and where its IP header lies.
pub(crate) fn compile(raw: &RawFrame, stamp: Option<u16>) -> (Template, Vec<FieldSpec>, usize) {
    let mut bytes = raw.bytes.clone();
    let layout = layout(&bytes);
    let ip = layout.ip.map_or(0, |(at, ..)| at);
    for write in &raw.writes {
        if let Some(field) = bytes.get_mut(write.at..write.at + write.width) {
            field.fill(0);
        }
    }
    let place = stamp
        .filter(|_| layout.has_room(bytes.len()))
        .and_then(|stream| Some((stamp::offset(bytes.len())?, stream)));
    if let Some((at, stream)) = place
        && let Some(place) = bytes.get_mut(at..at + stamp::LEN)
    {
        let stamp = stamp::Stamp {
            stream,
            sequence: 0,
            time: 0,
        };
        place.copy_from_slice(&stamp.bytes());
    }
    let sum = |range: Option<&[u8]>| u32::from(!checksum::internet(range.unwrap_or(&[])));
    let mut zero = |at: usize| {
        if let Some(place) = bytes.get_mut(at..at + 2) {
            place.fill(0);
        }
    };
    let header_at = match layout.ip {
        Some((at, _, false)) if raw.fix_header => Some(at + 10),
        _ => None,
    };
    // A UDP datagram of IPv4 without a checksum keeps none.
    let none = matches!(layout.transport, Some((at, _, 17)) if word(&raw.bytes, at + 6) == Some(0));
    let transport_at = layout
        .transport_checksum()
        .filter(|_| !none && (raw.fix_transport || place.is_some()));
    header_at
        .into_iter()
        .chain(transport_at)
        .for_each(&mut zero);
    let header = header_at
        .zip(layout.ip)
        .map(|(place, (at, len, _))| (place, sum(bytes.get(at..at + len))));
    let transport = transport_at
        .zip(layout.transport)
        .map(|(place, (at, _, protocol))| {
            let mut total = sum(bytes.get(at..layout.end));
            if let Some(addresses) = layout.addresses() {
                total += sum(bytes.get(addresses)) + u32::from(protocol) + (layout.end - at) as u32;
            }
            (place, total)
        });
    let fields = raw.writes.iter().map(|write| {
        let (in_header, in_transport) = layout.sums(write.at, write.width);
        FieldSpec {
            at: write.at,
            width: write.width,
            fixed: write.fixed,
            shift: write.shift,
            values: write.values.clone(),
            in_header,
            in_transport,
        }
    });
    let template = Template {
        bytes,
        header,
        transport,
        udp: matches!(layout.transport, Some((_, _, 17))),
        stamp: place.map(|(at, _)| at),
    };
    (template, fields.collect(), ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any prefix of a frame, and frames of random bytes, have a layout.
    #[test]
    fn hostile_frames_do_not_panic() {
        let mut frame = vec![2; 12];
        frame.extend([0x81, 0, 0, 5, 0x88, 0x47, 0, 0, 0, 64, 0, 0, 1, 64, 0x4f]);
        frame.extend((0..80).map(|byte| byte as u8));
        for len in 0..frame.len() {
            let _ = layout(&frame[..len]);
        }
        let mut random = crate::stream::Random::new(3);
        for _ in 0..20_000 {
            let mut frame: Vec<u8> = (0..random.below(120))
                .map(|_| random.next() as u8)
                .collect();
            if let Some(kind) = frame.get_mut(12..14) {
                kind.copy_from_slice(
                    &[[8, 0], [0x86, 0xdd], [0x88, 0x47]][random.below(3) as usize],
                );
            }
            let raw = RawFrame {
                bytes: frame,
                fix_header: true,
                fix_transport: true,
                ..RawFrame::default()
            };
            let _ = compile(&raw, Some(1));
        }
    }
}
