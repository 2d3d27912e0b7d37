//! sFlow version 5 to rows: flow samples, discard notifications, and interface names and speeds out of counter samples.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use weir_flowfmt::sflow::decode::{
    CounterRecord, CounterRecords, Datagram, FlowRecord, FlowRecords, Problem, Sample,
};
use weir_flowfmt::sflow::packet::{Ip, Packet, Transport};
use weir_flowfmt::sflow::structure::Value;
use weir_flowfmt::sflow::{DataFormat, FlowSample, Port, RawHeader, records};

use super::sequence::Sequence;
use super::{Shared, Texts};
use crate::account::{Outcome, exporter_name};
use crate::enrich::{Enricher, communities_text, path_text};
use crate::row::{Row, address};

/// Senders whose sequence numbers are followed.
const MOST_SEQUENCES: usize = 1 << 14;
/// Bytes of the frame check sequence, which sFlow counts and Weir's table does not.
const FCS: u32 = 4;

/// State between datagrams.
#[derive(Debug, Default)]
pub(super) struct SflowDecoder {
    sequences: HashMap<(IpAddr, u32), Sequence>,
}

impl SflowDecoder {
    pub(super) fn datagram(
        &mut self,
        texts: &Texts,
        from: SocketAddr,
        bytes: &[u8],
        now: i64,
        shared: &mut Shared,
        rows: &mut Vec<Row>,
    ) {
        let datagram = match Datagram::decode(bytes) {
            Ok(datagram) => datagram,
            Err(error) => {
                let name = exporter_name(from.ip());
                shared.accounts.datagram(
                    &name,
                    "sflow",
                    bytes.len(),
                    now,
                    Outcome::Rejected(reason(&error.problem)),
                );
                return;
            }
        };
        let agent = datagram.agent.unwrap_or(from.ip());
        let name = exporter_name(agent);
        let (mut problem, mut useful) = (None, false);
        let begin = rows.len();
        for sample in datagram.samples() {
            match sample {
                Ok(Sample::Flow(_, fixed, records)) => {
                    useful = true;
                    let mut row = shared
                        .enricher
                        .row(now, &name, &texts.sflow, &texts.unknown);
                    if let Err(error) = packet_of(&mut row, &records) {
                        problem = Some(error);
                    }
                    ports(texts, &mut row, &fixed, &mut shared.enricher);
                    let rate = shared.enricher.rate_override(&name).unwrap_or(fixed.rate);
                    row.measure(1, row.bytes, row.l2_bytes, rate);
                    shared
                        .accounts
                        .exporter(&name)
                        .rate(&source_name(&fixed), fixed.rate);
                    compare(shared, &name, &fixed, &row, rate);
                    shared.enricher.finish(&name, &mut row);
                    rows.push(row);
                }
                Ok(Sample::Discard(fixed, records)) => {
                    useful = true;
                    let mut row = shared
                        .enricher
                        .row(now, &name, &texts.sflow, &texts.unknown);
                    if let Err(error) = packet_of(&mut row, &records) {
                        problem = Some(error);
                    }
                    (row.in_if, row.out_if) = (fixed.input, fixed.output);
                    row.outcome = shared.enricher.dropped(fixed.reason);
                    (
                        row.bytes,
                        row.l2_bytes,
                        row.packets,
                        row.samples,
                        row.discards,
                    ) = (0, 0, 0, 0, 1);
                    shared.enricher.finish(&name, &mut row);
                    shared.accounts.exporter(&name).discards += 1;
                    rows.push(row);
                }
                Ok(Sample::Counters(_, _, records)) => {
                    useful = true;
                    shared.accounts.exporter(&name).counters += 1;
                    if let Err(error) = counters(shared, &name, &records, now) {
                        problem = Some(error);
                    }
                }
                // Samples of other formats are not errors: they hold nothing for the table.
                Ok(_) => useful = true,
                Err(error) => problem = Some(reason(&error.problem)),
            }
        }
        let outcome = match problem {
            None => Outcome::Decoded,
            Some(why) if useful => Outcome::Partly(why),
            Some(why) => Outcome::Rejected(why),
        };
        shared
            .accounts
            .datagram(&name, "sflow", bytes.len(), now, outcome);
        shared.accounts.exporter(&name).rows += (rows.len() - begin) as u64;
        self.sequence(agent, &datagram, now, &name, shared);
    }

    fn sequence(
        &mut self,
        agent: IpAddr,
        datagram: &Datagram<'_>,
        now: i64,
        name: &str,
        shared: &mut Shared,
    ) {
        let key = (agent, datagram.sub_agent_id);
        if !self.sequences.contains_key(&key) && self.sequences.len() >= MOST_SEQUENCES {
            return;
        }
        let seen = self
            .sequences
            .entry(key)
            .or_default()
            .note(datagram.sequence);
        shared
            .accounts
            .sequence(name, "sflow", now, u64::from(seen.arrived), seen.lost);
        shared.accounts.exporter(name).restarts += u64::from(seen.restarted);
    }
}

/// Enters a sample into the comparison with the counters of the interface that took it.
fn compare(shared: &mut Shared, exporter: &str, fixed: &FlowSample, row: &Row, rate: u32) {
    let index = fixed.source.index;
    let is_of = |port: Port| port.format == 0 && port.value == index;
    let octets = row.l2_bytes / u64::from(rate.max(1)) + u64::from(FCS);
    if fixed.source.class == 0 && is_of(fixed.input) {
        shared.checks.sample(exporter, index, false, octets, rate);
    } else if fixed.source.class == 0 && is_of(fixed.output) {
        shared.checks.sample(exporter, index, true, octets, rate);
    }
}

fn source_name(fixed: &FlowSample) -> String {
    match fixed.source.class {
        0 => format!("if {}", fixed.source.index),
        class => format!("{class}:{}", fixed.source.index),
    }
}

fn ports(texts: &Texts, row: &mut Row, fixed: &FlowSample, enricher: &mut Enricher) {
    if fixed.input.format == 0 {
        row.in_if = fixed.input.value;
    }
    match fixed.output {
        Port {
            format: 0,
            value: 0x3fff_ffff,
        } => row.outcome = texts.consumed.clone(),
        Port { format: 0, value } => {
            row.out_if = value;
            if value != 0 {
                row.outcome = texts.forwarded.clone();
            }
        }
        Port { format: 1, value } => row.outcome = enricher.dropped(value),
        _ => row.outcome = texts.multiple.clone(),
    }
}

/// What the records of a sample say about its packet.
fn packet_of(row: &mut Row, flow_records: &FlowRecords<'_>) -> Result<(), &'static str> {
    let mut problem = Ok(());
    for record in *flow_records {
        match record {
            Ok(FlowRecord::RawHeader(raw)) => header(row, &raw),
            Ok(FlowRecord::Other(record)) => {
                let known = record.format.enterprise == 0
                    && matches!(record.format.format, 3 | 4 | 1001 | 1002 | 1003);
                if !known {
                    continue;
                }
                let Some(Ok(values)) =
                    records::flow_record(record.format).map(|structure| structure.read(&record))
                else {
                    problem = Err("sflow-record");
                    continue;
                };
                routing(row, record.format, values.as_slice());
            }
            Ok(_) => {}
            Err(error) => problem = Err(reason(&error.problem)),
        }
    }
    problem
}

/// The sampled header: addresses, ports, lengths.
pub(super) fn header(row: &mut Row, raw: &RawHeader<'_>) {
    let packet = Packet::decode(raw);
    let frame = match raw.protocol {
        RawHeader::ETHERNET => raw.frame_length.saturating_sub(FCS),
        _ => raw.frame_length,
    };
    row.l2_bytes = frame.into();
    row.bytes = frame
        .saturating_sub(if raw.protocol == RawHeader::ETHERNET {
            14
        } else {
            0
        })
        .into();
    if let Some(ethernet) = packet.ethernet {
        row.etype = ethernet.ether_type.unwrap_or(0);
        row.vlan = ethernet.tags().first().map_or(0, |tag| tag & 0xfff);
    }
    match packet.ip {
        Some(Ip::V4(ip)) => {
            (row.src, row.dst) = (address(ip.source.into()), address(ip.destination.into()));
            (row.proto, row.tos, row.etype) = (ip.protocol, ip.tos, 0x0800);
            row.bytes = ip.total_length.into();
        }
        Some(Ip::V6(ip)) => {
            (row.src, row.dst) = (ip.source, ip.destination);
            (row.proto, row.tos, row.etype) = (ip.protocol.unwrap_or(0), ip.traffic_class, 0x86dd);
            // Payload length 0 is a jumbogram: the frame says how long it is.
            if ip.payload_length != 0 {
                row.bytes = u64::from(ip.payload_length) + 40;
            }
        }
        None => {}
    }
    match packet.transport {
        Some(Transport::Tcp {
            source,
            destination,
            flags,
        }) => {
            (row.src_port, row.dst_port, row.tcp_flags) =
                (source, destination, flags.unwrap_or(0).into());
        }
        Some(Transport::Udp {
            source,
            destination,
            ..
        }) => (row.src_port, row.dst_port) = (source, destination),
        // As routers export it: type and code together in the destination port.
        Some(Transport::Icmp { kind, code }) => row.dst_port = u16::from_be_bytes([kind, code]),
        None => {}
    }
}

fn routing(row: &mut Row, format: DataFormat, values: &[Value<'_>]) {
    let number = |value: Option<&Value<'_>>| value.and_then(Value::number).unwrap_or(0);
    match format.format {
        1001 if row.vlan == 0 => row.vlan = u16::try_from(number(values.first())).unwrap_or(0),
        1002 => {
            row.src_len = number(values.get(1)) as u8;
            row.dst_len = number(values.get(2)) as u8;
        }
        1003 => {
            row.src_as = number(values.get(2)) as u32;
            if let Some(Value::List(_, path)) = values.get(4) {
                let path = path_of(path);
                row.dst_as = path.last().copied().unwrap_or(0);
                row.as_path = path_text([path.as_slice()].into_iter()).into();
            }
            if let Some(Value::Words(words)) = values.get(5) {
                let numbers = words.as_chunks::<4>().0.iter().copied();
                row.communities = communities_text(numbers.map(u32::from_be_bytes)).into();
            }
        }
        // 0:3 and 0:4: length, protocol, source, destination, ports, flags, tos.
        3 | 4 if row.src.is_unspecified() => {
            if let [
                length,
                protocol,
                Value::Address(Some(source)),
                Value::Address(Some(destination)),
                sport,
                dport,
                flags,
                tos,
            ] = values
            {
                let of = |value: &Value<'_>| value.number().unwrap_or(0);
                (row.src, row.dst) = (address(*source), address(*destination));
                (row.proto, row.tos, row.tcp_flags) =
                    (of(protocol) as u8, of(tos) as u8, of(flags) as u16);
                (row.src_port, row.dst_port) = (of(sport) as u16, of(dport) as u16);
                row.etype = if format.format == 3 { 0x0800 } else { 0x86dd };
                row.bytes = of(length);
                if row.l2_bytes == 0 {
                    row.l2_bytes = row.bytes;
                }
            }
        }
        _ => {}
    }
}

/// The AS numbers of a path: segments of kind, count and so many numbers.
fn path_of(mut path: &[u8]) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some((&[_, _, _, _, a, b, c, d], rest)) = path.split_first_chunk::<8>() {
        let length = (u32::from_be_bytes([a, b, c, d]) as usize).saturating_mul(4);
        let Some((numbers, behind)) = rest.split_at_checked(length) else {
            break;
        };
        let numbers = numbers.as_chunks::<4>().0.iter().copied();
        all.extend(numbers.map(u32::from_be_bytes));
        path = behind;
    }
    all
}

/// Names and speeds of interfaces.
fn counters(
    shared: &mut Shared,
    exporter: &str,
    records: &CounterRecords<'_>,
    now: i64,
) -> Result<(), &'static str> {
    let (mut index, mut speed, mut name, mut octets) = (None, 0, None, (0, 0));
    let mut problem = Ok(());
    for record in *records {
        match record {
            Ok(CounterRecord::Interface(counters)) => {
                (index, speed) = (Some(counters.index), counters.speed);
                octets = (counters.in_octets, counters.out_octets);
            }
            Ok(CounterRecord::PortName(octets)) => {
                name = Some(String::from_utf8_lossy(octets).into_owned())
            }
            Ok(_) => {}
            Err(error) => problem = Err(reason(&error.problem)),
        }
    }
    if let Some(index) = index {
        shared
            .enricher
            .interface(exporter, index, name.as_deref(), None, Some(speed));
        shared
            .checks
            .counters(exporter, index, octets.0, octets.1, now);
    }
    problem
}

fn reason(problem: &Problem) -> &'static str {
    match problem {
        Problem::Truncated { .. } => "sflow-truncated",
        Problem::Version(_) => "sflow-version",
        Problem::AddressType(_) => "sflow-address-type",
        Problem::SampleLength { .. } => "sflow-sample-length",
        Problem::RecordLength { .. } => "sflow-record-length",
        Problem::SamplesMissing { .. } => "sflow-samples-missing",
        Problem::RecordsMissing { .. } => "sflow-records-missing",
        Problem::BehindSamples(_) | Problem::BehindRecords(_) => "sflow-trailing-bytes",
        _ => "sflow-malformed",
    }
}
