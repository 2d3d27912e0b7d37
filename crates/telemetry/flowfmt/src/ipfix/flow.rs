//! The few facts that every flow has, whichever elements and version they came in.
//!
//! [`Flow::of`] looks through a record once. What a record does not say stays `None` or zero. Where several
//! elements say the same (a time in seconds and in nanoseconds), the last one in the record is taken.

use std::net::{IpAddr, Ipv4Addr};

use super::decode::Record;
use super::elements::Value;
use super::template::Space;

/// A flow's facts.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(
    missing_docs,
    reason = "each field is the element of its name, or says in its comment which one it is"
)]
pub struct Flow {
    /// Nanoseconds since 1970.
    pub start: Option<u64>,
    /// Nanoseconds since 1970.
    pub end: Option<u64>,
    pub source: Option<IpAddr>,
    pub destination: Option<IpAddr>,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: Option<u8>,
    pub tos: u8,
    pub post_tos: u8,
    pub tcp_flags: u16,
    /// Type and code.
    pub icmp: Option<(u8, u8)>,
    pub packets: u64,
    pub octets: u64,
    pub post_packets: u64,
    pub post_octets: u64,
    pub input: u32,
    pub output: u32,
    pub source_as: u32,
    pub destination_as: u32,
    pub source_prefix: u8,
    pub destination_prefix: u8,
    pub direction: u8,
    pub forwarding_status: u8,
    pub end_reason: u8,
    pub next_hop: Option<IpAddr>,
    pub bgp_next_hop: Option<IpAddr>,
    pub vlan: u16,
    pub post_vlan: u16,
    pub source_mac: [u8; 6],
    pub post_destination_mac: [u8; 6],
    pub destination_mac: [u8; 6],
    pub post_source_mac: [u8; 6],
    /// Entries of the label stack, top first: 20 bits label, 3 class, 1 bottom.
    pub labels: [u32; 10],
}

impl Flow {
    /// Reads a record.
    #[must_use]
    pub fn of(record: &Record<'_>) -> Flow {
        let mut flow = Flow::default();
        for (field, value) in record
            .fields()
            .filter(|(field, _)| field.space == Space::Iana)
        {
            match value {
                Value::Unsigned(number) => flow.number(record, field.number, number),
                Value::Time(time) => flow.time(field.number, time),
                Value::V4(address) => flow.address(field.number, address.into()),
                Value::V6(address) => flow.address(field.number, address.into()),
                Value::Mac(mac) => flow.mac(field.number, mac),
                Value::Octets([high, middle, low]) => {
                    flow.label(field.number, u32::from_be_bytes([0, *high, *middle, *low]))
                }
                _ => {}
            }
        }
        flow
    }

    fn number(&mut self, record: &Record<'_>, element: u16, number: u64) {
        match element {
            1 => self.octets = number,
            2 => self.packets = number,
            // Total counts where there are no deltas.
            85 if self.octets == 0 => self.octets = number,
            86 if self.packets == 0 => self.packets = number,
            4 => self.protocol = u8::try_from(number).ok(),
            5 => self.tos = number as u8,
            6 => self.tcp_flags = number as u16,
            7 => self.source_port = number as u16,
            9 | 29 => self.source_prefix = number as u8,
            10 => self.input = number as u32,
            11 => self.destination_port = number as u16,
            13 | 30 => self.destination_prefix = number as u8,
            14 => self.output = number as u32,
            16 => self.source_as = number as u32,
            17 => self.destination_as = number as u32,
            21 => {
                self.end = u32::try_from(number)
                    .ok()
                    .and_then(|uptime| record.header.at_uptime(uptime))
            }
            22 => {
                self.start = u32::try_from(number)
                    .ok()
                    .and_then(|uptime| record.header.at_uptime(uptime))
            }
            23 => self.post_octets = number,
            24 => self.post_packets = number,
            32 | 139 => self.icmp = Some(((number >> 8) as u8, number as u8)),
            176 | 178 => self.icmp.get_or_insert_default().0 = number as u8,
            177 | 179 => self.icmp.get_or_insert_default().1 = number as u8,
            55 => self.post_tos = number as u8,
            58 | 243 => self.vlan = number as u16,
            59 | 254 => self.post_vlan = number as u16,
            61 => self.direction = number as u8,
            89 => self.forwarding_status = number as u8,
            136 => self.end_reason = number as u8,
            _ => {}
        }
    }

    fn time(&mut self, element: u16, time: u64) {
        match element {
            150 | 152 | 154 | 156 => self.start = Some(time),
            151 | 153 | 155 | 157 => self.end = Some(time),
            _ => {}
        }
    }

    fn address(&mut self, element: u16, address: IpAddr) {
        let place = match element {
            8 | 27 => &mut self.source,
            12 | 28 => &mut self.destination,
            15 | 62 => &mut self.next_hop,
            18 | 63 => &mut self.bgp_next_hop,
            _ => return,
        };
        // A record of both families has zeros in the one it is not of.
        if place.is_none() || !address.is_unspecified() {
            *place = Some(address);
        }
    }

    fn mac(&mut self, element: u16, mac: [u8; 6]) {
        match element {
            56 => self.source_mac = mac,
            57 => self.post_destination_mac = mac,
            80 => self.destination_mac = mac,
            81 => self.post_source_mac = mac,
            _ => {}
        }
    }

    fn label(&mut self, element: u16, entry: u32) {
        if let Some(place) = element
            .checked_sub(70)
            .and_then(|place| self.labels.get_mut(usize::from(place)))
        {
            *place = entry;
        }
    }

    /// Type and code: reported, or taken from the destination port, where NetFlow puts them.
    #[must_use]
    pub fn icmp_type_and_code(&self) -> Option<(u8, u8)> {
        if !matches!(self.protocol, Some(1 | 58)) {
            return None;
        }
        let [kind, code] = self.destination_port.to_be_bytes();
        Some(self.icmp.unwrap_or((kind, code)))
    }

    /// The source; of a flow without addresses 0.0.0.0.
    #[must_use]
    pub fn source_address(&self) -> IpAddr {
        self.source.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }

    /// The destination; of a flow without addresses 0.0.0.0.
    #[must_use]
    pub fn destination_address(&self) -> IpAddr {
        self.destination.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }
}
