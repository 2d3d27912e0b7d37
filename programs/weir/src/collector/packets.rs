//! Packets as a pcap file: those that were sampled, those that were discarded, or the datagrams themselves.
//!
//! One file has one link type, so everything is written as Ethernet. A sample that begins with IP or MPLS
//! gets an empty Ethernet header, and so does a datagram, whose IP and UDP headers are made anew from
//! where it came from and where it went.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use weir_flowfmt::sflow::decode::{FlowRecord, FlowRecords, Sample};
use weir_flowfmt::sflow::print::PrintError;
use weir_flowfmt::sflow::{RawHeader, version4};
use weir_pcap::file::{ETHERNET, Writer};
use weir_wire::checksum;

/// Octets of a blank Ethernet header.
const BLANK: usize = 14;

/// Which packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packets {
    /// Those of flow samples.
    Sampled,
    /// Those of discard samples.
    Discarded,
    /// The datagrams.
    Datagrams,
}

impl Packets {
    /// The file's header.
    pub(crate) fn begin(to: &mut dyn Write) -> std::io::Result<()> {
        Writer::new(to, ETHERNET).map(|_| ())
    }

    /// What is in a datagram, or itself.
    pub(crate) fn write(
        self,
        to: &mut dyn Write,
        from: SocketAddr,
        at: SocketAddr,
        time: u64,
        bytes: &[u8],
    ) -> Result<(), PrintError> {
        if self == Packets::Datagrams {
            let frame = frame(from, at, bytes);
            return Ok(record(to, time, frame.len(), &frame)?);
        }
        let mut room = Vec::new();
        let (datagram, _, mut wrong) = version4::decode(bytes, &mut room)?;
        for sample in datagram.samples() {
            let records = match (self, sample) {
                (Packets::Sampled, Ok(Sample::Flow(_, _, records)))
                | (Packets::Discarded, Ok(Sample::Discard(_, records))) => records,
                (_, Ok(_)) => continue,
                (_, Err(error)) => {
                    wrong.get_or_insert(error);
                    continue;
                }
            };
            headers(to, time, records)?;
        }
        wrong.map_or(Ok(()), |error| Err(error.into()))
    }
}

fn headers(to: &mut dyn Write, time: u64, records: FlowRecords<'_>) -> std::io::Result<()> {
    for record in records.flatten() {
        let FlowRecord::RawHeader(raw) = record else {
            continue;
        };
        let whole = raw.frame_length.saturating_sub(raw.stripped) as usize;
        let ether_type: [u8; 2] = match raw.protocol {
            RawHeader::ETHERNET => {
                self::record(to, time, whole, raw.header)?;
                continue;
            }
            RawHeader::IPV4 => [0x08, 0x00],
            RawHeader::IPV6 => [0x86, 0xdd],
            RawHeader::MPLS => [0x88, 0x47],
            _ => continue,
        };
        let frame = [[0; 12].as_slice(), &ether_type, raw.header].concat();
        self::record(to, time, whole + BLANK, &frame)?;
    }
    Ok(())
}

/// One packet of the file (draft-ietf-opsawg-pcap, section 5), whose header was written by [`Packets::begin`].
fn record(to: &mut dyn Write, time: u64, whole: usize, data: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(whole.max(data.len())).unwrap_or(u32::MAX);
    Writer::appending(to).write(time, length, data)
}

/// A datagram with Ethernet, IP and UDP before it.
fn frame(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let udp_length = payload.len().saturating_add(8);
    let length = u16::try_from(udp_length).unwrap_or(u16::MAX);
    let mut udp = Vec::with_capacity(udp_length);
    for word in [from.port(), to.port(), length, 0] {
        udp.extend(word.to_be_bytes());
    }
    udp.extend(payload);
    let mut frame = vec![0; 12];
    match (from.ip().to_canonical(), to.ip().to_canonical()) {
        (IpAddr::V4(source), destination) => {
            // Received at all addresses: nobody knows which it was.
            let destination = if let IpAddr::V4(destination) = destination {
                destination
            } else {
                [0, 0, 0, 0].into()
            };
            let total = u16::try_from(udp_length.saturating_add(20)).unwrap_or(u16::MAX);
            let mut ip = vec![0x45, 0];
            ip.extend(total.to_be_bytes());
            // Identification and fragmentation; TTL, UDP, no checksum yet.
            ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
            ip.extend(source.octets());
            ip.extend(destination.octets());
            checksum::ipv4_header_set(&mut ip);
            frame.extend([0x08, 0x00]);
            frame.extend(ip);
        }
        (IpAddr::V6(source), destination) => {
            let destination = if let IpAddr::V6(destination) = destination {
                destination
            } else {
                0.into()
            };
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([17, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
            // RFC 8200, 8.1: over IPv6 UDP must have a checksum, over addresses, length and protocol, too.
            let pseudo = [
                &source.octets()[..],
                &destination.octets(),
                &u32::from(length).to_be_bytes(),
                &[0, 0, 0, 17],
                &udp,
            ]
            .concat();
            let sum = match checksum::internet(&pseudo) {
                0 => 0xffff,
                sum => sum,
            };
            if let Some(place) = udp.get_mut(6..8) {
                place.copy_from_slice(&sum.to_be_bytes());
            }
        }
    }
    frame.extend(udp);
    frame
}
