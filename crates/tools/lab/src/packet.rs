//! From a packet's description to template bytes and the list of its varying fields.
//!
//! Control thread only. The template has zeros where fields vary, so that checksums over it are the
//! constant part of the sum.

use weir_wire::checksum;

use crate::profile::{Network, PacketSpec, Payload, Transport, Values};
use crate::stamp;

/// A varying field of the template.
#[derive(Clone, Debug)]
pub(crate) struct FieldSpec {
    /// Offset in the frame.
    pub(crate) at: usize,
    /// Bytes: 1, 2, 4, 6 or 8.
    pub(crate) width: usize,
    /// Bits that do not vary, in the field's bytes.
    pub(crate) fixed: u64,
    /// How far the value is shifted left.
    pub(crate) shift: u32,
    pub(crate) values: Values,
    /// The field is part of the IPv4 header checksum.
    pub(crate) in_header: bool,
    /// The field is part of the transport checksum (pseudo-header included).
    pub(crate) in_transport: bool,
}

/// Where things lie in the headers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fields: Vec<FieldSpec>,
    /// The IP header, and whether it is version 6.
    pub(crate) l3: Option<(usize, bool)>,
    /// The transport header and its protocol number.
    pub(crate) l4: Option<(usize, u8)>,
}

impl Headers {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a field of `width` bytes.
    fn field(&mut self, values: &Values, width: usize, fixed: u64, shift: u32, sums: (bool, bool)) {
        let at = self.bytes.len();
        let low = (values.first as u64) << shift | fixed;
        if values.is_fixed() {
            self.put(&low.to_be_bytes()[8 - width..]);
            return;
        }
        self.bytes.resize(at + width, 0);
        self.fields.push(FieldSpec {
            at,
            width,
            fixed,
            shift,
            values: values.clone(),
            in_header: sums.0,
            in_transport: sums.1,
        });
    }

    fn address6(&mut self, values: &Values) {
        self.put(&((values.first >> 64) as u64).to_be_bytes());
        self.field(values, 8, 0, 0, (false, true));
    }
}

/// Builds the headers. Lengths and checksums are still missing: they depend on the frame size.
pub(crate) fn headers(packet: &PacketSpec) -> Headers {
    const NONE: (bool, bool) = (false, false);
    let mut headers = Headers::default();
    let gateway = Values::fixed(0xffff_ffff_ffff);
    headers.field(
        packet.destination_mac.as_ref().unwrap_or(&gateway),
        6,
        0,
        0,
        NONE,
    );
    headers.field(&packet.source_mac, 6, 0, 0, NONE);
    for vlan in &packet.vlans {
        headers.put(&vlan.protocol.to_be_bytes());
        headers.field(&vlan.id, 2, u64::from(vlan.priority) << 13, 0, NONE);
    }
    let ether_type = match (&packet.network, packet.labels.is_empty()) {
        (_, false) => 0x8847,
        (Network::V4 { .. }, true) => 0x0800,
        (Network::V6 { .. }, true) => 0x86dd,
        (Network::None(kind), true) => *kind,
    };
    headers.put(&ether_type.to_be_bytes());
    for (number, label) in packet.labels.iter().enumerate() {
        let bottom = u64::from(number + 1 == packet.labels.len());
        let fixed = u64::from(label.class) << 9 | bottom << 8 | u64::from(label.ttl);
        headers.field(&label.label, 4, fixed, 12, NONE);
    }
    network(&mut headers, packet);
    transport(&mut headers, packet);
    headers
}

fn protocol(packet: &PacketSpec) -> u8 {
    let v6 = matches!(packet.network, Network::V6 { .. });
    match packet.transport {
        Transport::Udp(..) => 17,
        Transport::Tcp(..) => 6,
        Transport::Echo => {
            if v6 {
                58
            } else {
                1
            }
        }
        Transport::None(number) => number,
    }
}

fn network(headers: &mut Headers, packet: &PacketSpec) {
    let at = headers.bytes.len();
    match &packet.network {
        Network::V4 {
            source,
            destination,
            ttl,
            dscp,
        } => {
            headers.l3 = Some((at, false));
            headers.put(&[0x45]);
            headers.field(dscp, 1, 0, 2, (true, false));
            headers.put(&[0, 0, 0, 0, 0, 0]);
            headers.field(ttl, 1, 0, 0, (true, false));
            headers.put(&[protocol(packet), 0, 0]);
            // ICMP for IPv4 has no pseudo-header.
            let summed = protocol(packet) != 1;
            headers.field(source, 4, 0, 0, (true, summed));
            headers.field(destination, 4, 0, 0, (true, summed));
        }
        Network::V6 {
            source,
            destination,
            ttl,
            dscp,
            flow_label,
        } => {
            headers.l3 = Some((at, true));
            let first = 6 << 28 | u32::from(*dscp) << 22 | flow_label & 0xf_ffff;
            headers.put(&first.to_be_bytes());
            headers.put(&[0, 0, protocol(packet)]);
            headers.field(ttl, 1, 0, 0, (false, false));
            headers.address6(source);
            headers.address6(destination);
        }
        Network::None(_) => {}
    }
}

fn transport(headers: &mut Headers, packet: &PacketSpec) {
    const SUM: (bool, bool) = (false, true);
    let at = headers.bytes.len();
    if matches!(packet.network, Network::None(_)) {
        return;
    }
    match &packet.transport {
        Transport::Udp(source, destination) => {
            headers.field(source, 2, 0, 0, SUM);
            headers.field(destination, 2, 0, 0, SUM);
            headers.put(&[0; 4]);
        }
        Transport::Tcp(source, destination, flags) => {
            headers.field(source, 2, 0, 0, SUM);
            headers.field(destination, 2, 0, 0, SUM);
            headers.put(&[0, 0, 0, 1, 0, 0, 0, 0, 0x50, *flags, 0xff, 0xff, 0, 0, 0, 0]);
        }
        Transport::Echo => {
            let kind = if headers.l3.is_some_and(|(_, v6)| v6) {
                128
            } else {
                8
            };
            headers.put(&[kind, 0, 0, 0, 0, 1, 0, 1]);
        }
        Transport::None(_) => return,
    }
    headers.l4 = Some((at, protocol(packet)));
}

/// A frame of one size, ready to be copied.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) bytes: Vec<u8>,
    /// Where the IPv4 header checksum lies, and the sum of what does not vary.
    pub(crate) header: Option<(usize, u32)>,
    /// Where the transport checksum lies, and the sum of what does not vary.
    pub(crate) transport: Option<(usize, u32)>,
    /// Whether a transport checksum of 0 must be sent as 0xffff.
    pub(crate) udp: bool,
    /// Where the stamp lies.
    pub(crate) stamp: Option<usize>,
}

impl Template {
    /// A frame that is sent as it is.
    pub(crate) fn plain(bytes: &[u8]) -> Template {
        Template {
            bytes: bytes.to_vec(),
            header: None,
            transport: None,
            udp: false,
            stamp: None,
        }
    }
}

/// Makes the frame of `len` bytes (without FCS).
pub(crate) fn template(
    headers: &Headers,
    len: usize,
    payload: &Payload,
    stamp: Option<u16>,
    random: &mut impl FnMut() -> u64,
) -> Template {
    let mut bytes = headers.bytes.clone();
    let begin = bytes.len().min(len);
    bytes.resize(len, 0);
    for (number, byte) in bytes.iter_mut().skip(begin).enumerate() {
        *byte = match payload {
            Payload::Zeros => 0,
            Payload::Counting => number as u8,
            Payload::Random => random() as u8,
            Payload::Bytes(text) => text.get(number % text.len().max(1)).copied().unwrap_or(0),
        };
    }
    let stamp_at = stamp.and_then(|_| stamp::offset(len));
    if let (Some(at), Some(stream)) = (stamp_at, stamp)
        && let Some(place) = bytes.get_mut(at..at + stamp::LEN)
    {
        place.copy_from_slice(
            &stamp::Stamp {
                stream,
                sequence: 0,
                time: 0,
            }
            .bytes(),
        );
    }
    let mut put16 = |at: usize, value: usize| {
        if let Some(place) = bytes.get_mut(at..at + 2) {
            place.copy_from_slice(&(value as u16).to_be_bytes());
        }
    };
    match headers.l3 {
        Some((l3, false)) => put16(l3 + 2, len - l3),
        Some((l3, true)) => put16(l3 + 4, len - l3 - 40),
        None => {}
    }
    if let Some((l4, 17)) = headers.l4 {
        put16(l4 + 4, len - l4);
    }
    let sum = |range: &[u8]| u32::from(!checksum::internet(range));
    let header = headers
        .l3
        .filter(|(_, v6)| !v6)
        .map(|(l3, _)| (l3 + 10, sum(bytes.get(l3..l3 + 20).unwrap_or(&[]))));
    let transport = headers
        .l3
        .zip(headers.l4)
        .and_then(|((l3, v6), (l4, protocol))| {
            let at = l4
                + match protocol {
                    17 => 6,
                    6 => 16,
                    1 | 58 => 2,
                    _ => return None,
                };
            let mut total = sum(bytes.get(l4..)?);
            if protocol != 1 {
                let addresses = if v6 {
                    l3 + 8..l3 + 40
                } else {
                    l3 + 12..l3 + 20
                };
                total += sum(bytes.get(addresses)?) + u32::from(protocol) + (len - l4) as u32;
            }
            Some((at, total))
        });
    Template {
        bytes,
        header,
        transport,
        udp: matches!(headers.l4, Some((_, 17))),
        stamp: stamp_at,
    }
}
