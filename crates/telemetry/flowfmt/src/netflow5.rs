//! sFlow turned into NetFlow version 5 (Cisco's fixed format), for collectors that know nothing else.
//!
//! Every sampled IPv4 packet becomes a flow of its own: so many packets as it stands for, and so many
//! octets. A datagram's samples leave together, up to thirty in a packet. What the format has no room for
//! is left out: IPv6, autonomous systems beyond 16 bits (AS_TRANS instead, RFC 6793), interfaces beyond
//! 16 bits (0).

use std::net::{IpAddr, Ipv4Addr};

use crate::sflow::decode::{Datagram, FlowRecord, FlowRecords, Sample};
use crate::sflow::packet::{Ip, Packet, Transport};
use crate::sflow::structure::Value;
use crate::sflow::{ExtendedRouter, FlowSample, Port, RawHeader, SampledIpv4, records};

/// Flows in a packet.
const MOST_FLOWS: usize = 30;
/// What stands for an autonomous system of more than 16 bits.
const AS_TRANS: u16 = 23_456;

/// How samples become flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Each sample as one packet; its rate stands in the header instead.
    pub unscaled: bool,
    /// The neighbouring autonomous systems instead of the first and last ones.
    pub peer_as: bool,
}

/// Makes NetFlow of sFlow.
#[derive(Debug, Default)]
pub struct Converter {
    options: Options,
    sequence: u32,
    flows: Vec<[u8; 48]>,
    /// Samples that the format cannot express.
    pub skipped: u64,
}

/// What a flow is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flow {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    length: u32,
    protocol: u8,
    tos: u8,
    ports: (u16, u16),
    tcp_flags: u8,
}

/// What a sample's other records say about where the packet went.
#[derive(Clone, Copy, Default)]
struct Routing {
    next_hop: Option<Ipv4Addr>,
    prefixes: (u8, u8),
    systems: (u32, u32),
    peers: (u32, u32),
}

impl Converter {
    /// One that has sent nothing.
    #[must_use]
    pub fn new(options: Options) -> Converter {
        Converter {
            options,
            ..Converter::default()
        }
    }

    /// Converts a datagram that arrived at `unix_ns`, and hands each packet made of it to `send`.
    ///
    /// # Errors
    /// What `send` says.
    pub fn convert<E>(
        &mut self,
        datagram: &Datagram<'_>,
        unix_ns: u64,
        mut send: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for sample in datagram.samples().flatten() {
            let Sample::Flow(_, fixed, records) = sample else {
                continue;
            };
            let Some(flow) = flow(&records) else {
                self.skipped += 1;
                continue;
            };
            let record = self.record(&fixed, &flow, routing(&records), datagram.uptime_ms);
            self.flows.push(record);
            if self.flows.len() == MOST_FLOWS || self.options.unscaled {
                self.send(datagram.uptime_ms, unix_ns, fixed.rate, &mut send)?;
            }
        }
        self.send(datagram.uptime_ms, unix_ns, 0, &mut send)
    }

    /// The packet around the flows that wait.
    fn send<E>(
        &mut self,
        uptime: u32,
        unix_ns: u64,
        rate: u32,
        send: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.flows.is_empty() {
            return Ok(());
        }
        let mut packet = Vec::with_capacity(24 + 48 * self.flows.len());
        packet.extend(5_u16.to_be_bytes());
        packet.extend((self.flows.len() as u16).to_be_bytes());
        // Seconds have 32 bits in this format, and will wrap in 2106.
        for word in [
            uptime,
            (unix_ns / 1_000_000_000) as u32,
            (unix_ns % 1_000_000_000) as u32,
            self.sequence,
        ] {
            packet.extend(word.to_be_bytes());
        }
        // Engine type and number; then 2 bits of mode (1: every so many packets) and 14 of interval.
        packet.extend([0, 0]);
        let sampling = if self.options.unscaled {
            u16::try_from(rate)
                .ok()
                .filter(|rate| *rate < 1 << 14)
                .map_or(0, |rate| 1 << 14 | rate)
        } else {
            0
        };
        packet.extend(sampling.to_be_bytes());
        for flow in &self.flows {
            packet.extend(flow);
        }
        self.sequence = self.sequence.wrapping_add(self.flows.len() as u32);
        self.flows.clear();
        send(&packet)
    }

    fn record(&self, sample: &FlowSample, flow: &Flow, routing: Routing, uptime: u32) -> [u8; 48] {
        let packets = if self.options.unscaled {
            1
        } else {
            sample.rate
        };
        let interface = |port: Port| {
            if port.format == 0 {
                u16::try_from(port.value).unwrap_or(0)
            } else {
                0
            }
        };
        let system = |number: u32| u16::try_from(number).unwrap_or(AS_TRANS);
        let (source_system, destination_system) = if self.options.peer_as {
            routing.peers
        } else {
            routing.systems
        };
        let mut record = [0; 48];
        let mut rest: &mut [u8] = &mut record;
        put(&mut rest, &flow.source.octets());
        put(&mut rest, &flow.destination.octets());
        put(
            &mut rest,
            &routing.next_hop.unwrap_or(Ipv4Addr::UNSPECIFIED).octets(),
        );
        put(&mut rest, &interface(sample.input).to_be_bytes());
        put(&mut rest, &interface(sample.output).to_be_bytes());
        put(&mut rest, &packets.to_be_bytes());
        put(
            &mut rest,
            &flow.length.saturating_mul(packets).to_be_bytes(),
        );
        put(&mut rest, &uptime.to_be_bytes());
        put(&mut rest, &uptime.to_be_bytes());
        put(&mut rest, &flow.ports.0.to_be_bytes());
        put(&mut rest, &flow.ports.1.to_be_bytes());
        put(&mut rest, &[0, flow.tcp_flags, flow.protocol, flow.tos]);
        put(&mut rest, &system(source_system).to_be_bytes());
        put(&mut rest, &system(destination_system).to_be_bytes());
        put(&mut rest, &[routing.prefixes.0, routing.prefixes.1]);
        record
    }
}

/// Copies octets to the front and takes it away. The record's fields make up its length, which a test holds.
fn put(rest: &mut &mut [u8], octets: &[u8]) {
    if let Some((front, behind)) = std::mem::take(rest).split_at_mut_checked(octets.len()) {
        front.copy_from_slice(octets);
        *rest = behind;
    }
}

/// What the sample says about the packet, by its header or by fields.
fn flow(records: &FlowRecords<'_>) -> Option<Flow> {
    (*records).flatten().find_map(|record| match record {
        FlowRecord::RawHeader(raw) => of_header(&raw),
        FlowRecord::Other(record) if record.format == SampledIpv4::STRUCTURE.format => {
            let values = SampledIpv4::STRUCTURE.read(&record).ok()?;
            let [
                length,
                protocol,
                source,
                destination,
                source_port,
                destination_port,
                flags,
                tos,
            ] = values.as_slice()
            else {
                return None;
            };
            let number = |value: &Value<'_>| value.number().unwrap_or(0);
            let (
                Value::Address(Some(IpAddr::V4(source))),
                Value::Address(Some(IpAddr::V4(destination))),
            ) = (source, destination)
            else {
                return None;
            };
            Some(Flow {
                source: *source,
                destination: *destination,
                length: number(length) as u32,
                protocol: number(protocol) as u8,
                tos: number(tos) as u8,
                ports: (number(source_port) as u16, number(destination_port) as u16),
                tcp_flags: number(flags) as u8,
            })
        }
        FlowRecord::Other(_) => None,
    })
}

fn of_header(raw: &RawHeader<'_>) -> Option<Flow> {
    let packet = Packet::decode(raw);
    let Some(Ip::V4(ip)) = packet.ip else {
        return None;
    };
    let (ports, tcp_flags) = match packet.transport {
        Some(Transport::Tcp {
            source,
            destination,
            flags,
        }) => ((source, destination), flags.unwrap_or(0)),
        Some(Transport::Udp {
            source,
            destination,
            ..
        }) => ((source, destination), 0),
        // As routers do it: type and code together in the destination.
        Some(Transport::Icmp { kind, code }) => ((0, u16::from_be_bytes([kind, code])), 0),
        None => ((0, 0), 0),
    };
    let length = ip.total_length.into();
    Some(Flow {
        source: ip.source,
        destination: ip.destination,
        length,
        protocol: ip.protocol,
        tos: ip.tos,
        ports,
        tcp_flags,
    })
}

fn routing(flow_records: &FlowRecords<'_>) -> Routing {
    let mut routing = Routing::default();
    for record in (*flow_records).flatten() {
        let FlowRecord::Other(record) = record else {
            continue;
        };
        let Some(structure) = records::flow_record(record.format) else {
            continue;
        };
        let Ok(values) = structure.read(&record) else {
            continue;
        };
        match (
            record.format.enterprise,
            record.format.format,
            values.as_slice(),
        ) {
            (
                0,
                1003,
                [
                    next_hop,
                    _,
                    source_system,
                    source_peer,
                    Value::List(_, path),
                    ..,
                ],
            ) => {
                next_hop_of(next_hop, &mut routing);
                let number = |value: &Value<'_>| value.number().unwrap_or(0) as u32;
                let (first, last) = ends(path);
                routing.systems = (number(source_system), last);
                routing.peers = (number(source_peer), first);
            }
            (0, _, [next_hop, Value::U32(source), Value::U32(destination)])
                if record.format == ExtendedRouter::STRUCTURE.format =>
            {
                next_hop_of(next_hop, &mut routing);
                routing.prefixes = (*source as u8, *destination as u8);
            }
            _ => {}
        }
    }
    routing
}

fn next_hop_of(value: &Value<'_>, routing: &mut Routing) {
    if let Value::Address(Some(IpAddr::V4(address))) = value {
        routing.next_hop = Some(*address);
    }
}

/// The first and the last number of an AS path.
fn ends(mut path: &[u8]) -> (u32, u32) {
    let mut found: Option<(u32, u32)> = None;
    while let Some((&[_, _, _, _, a, b, c, d], rest)) = path.split_first_chunk::<8>() {
        let count = u32::from_be_bytes([a, b, c, d]) as usize;
        let Some((numbers, behind)) = rest.split_at_checked(count.saturating_mul(4)) else {
            break;
        };
        for number in numbers.as_chunks::<4>().0 {
            let number = u32::from_be_bytes(*number);
            found = Some((found.map_or(number, |(first, _)| first), number));
        }
        path = behind;
    }
    found.unwrap_or((0, 0))
}
