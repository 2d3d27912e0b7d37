//! NetFlow version 5: a header of 24 octets and up to 30 flows of 48, IPv4 only.

use std::net::Ipv4Addr;

/// The most flows a message holds.
pub const MOST_FLOWS: usize = 30;

/// A flow as version 5 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields of the format, by the names of IANA's elements in short"
)]
pub struct Flow5 {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub next_hop: Ipv4Addr,
    pub input: u16,
    pub output: u16,
    pub packets: u32,
    pub octets: u32,
    /// Milliseconds of uptime at the first packet.
    pub first: u32,
    /// And at the last.
    pub last: u32,
    pub source_port: u16,
    pub destination_port: u16,
    pub tcp_flags: u8,
    pub protocol: u8,
    pub tos: u8,
    pub source_as: u16,
    pub destination_as: u16,
    pub source_mask: u8,
    pub destination_mask: u8,
}

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields of the header")]
pub struct Header5 {
    /// Milliseconds since the exporter started.
    pub uptime: u32,
    /// Nanoseconds since 1970.
    pub time: u64,
    /// Flows before this message.
    pub sequence: u32,
    pub engine: u16,
    pub sampling: u16,
}

/// One message of the first [`MOST_FLOWS`] of these.
#[must_use]
pub fn message(header: &Header5, flows: &[Flow5]) -> Vec<u8> {
    let flows = flows.get(..MOST_FLOWS).unwrap_or(flows);
    let mut octets = Vec::with_capacity(24 + 48 * flows.len());
    octets.extend([0, 5, 0, flows.len() as u8]);
    let (seconds, nanoseconds) = (header.time / 1_000_000_000, header.time % 1_000_000_000);
    for word in [
        header.uptime,
        seconds as u32,
        nanoseconds as u32,
        header.sequence,
    ] {
        octets.extend(word.to_be_bytes());
    }
    octets.extend(header.engine.to_be_bytes());
    octets.extend(header.sampling.to_be_bytes());
    flows.iter().for_each(|flow| flow.write(&mut octets));
    octets
}

impl Flow5 {
    fn write(&self, to: &mut Vec<u8>) {
        for address in [self.source, self.destination, self.next_hop] {
            to.extend(address.octets());
        }
        to.extend(self.input.to_be_bytes());
        to.extend(self.output.to_be_bytes());
        for word in [self.packets, self.octets, self.first, self.last] {
            to.extend(word.to_be_bytes());
        }
        to.extend(self.source_port.to_be_bytes());
        to.extend(self.destination_port.to_be_bytes());
        to.extend([0, self.tcp_flags, self.protocol, self.tos]);
        to.extend(self.source_as.to_be_bytes());
        to.extend(self.destination_as.to_be_bytes());
        to.extend([self.source_mask, self.destination_mask, 0, 0]);
    }
}
