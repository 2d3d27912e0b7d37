//! One comma-separated line for each sample.
//!
//! `FLOW`: agent, input port, output port, source MAC, destination MAC, EtherType, input VLAN, output
//! VLAN, source address, destination address, IP protocol, TOS, TTL, source port or ICMP type,
//! destination port or ICMP code, TCP flags, frame length, IP length, sampling rate: 20 columns with
//! the word itself. What is not known is 0, or `-` for an address. The columns are sflowtool's to the
//! letter, so the IP length of a packet that is not IPv4 still counts its Ethernet header. The VLANs are those of record
//! 0:1001; without one the input VLAN is the header's.
//!
//! Records that have fields instead of a header (0:2 to 0:4, 0:1021 to 0:1026, 0:2100, 0:2101) fill the columns that they
//! have values for; of several records the last one counts, as with sflowtool.
//!
//! `CNTR`: agent, then the 19 fields of counter record 0:1 in the order of the wire.
//!
//! A damaged sample has no line: half a line would be a lie.

use std::io::{self, Write};
use std::net::IpAddr;

use super::Damage;
use super::show::{Address, Mac};
use crate::sflow::decode::{CounterRecord, Datagram, FlowRecord, Opaque, Sample};
use crate::sflow::packet::{Ip, Packet, Transport};
use crate::sflow::structure::Value;
use crate::sflow::{ExtendedSwitch, FlowSample, InterfaceCounters, records};

pub(super) fn print(
    writer: &mut impl Write,
    datagram: &Datagram<'_>,
    damage: &mut Damage,
) -> io::Result<()> {
    for sample in datagram.samples() {
        match damage.sound(sample) {
            Some(Sample::Flow(_, fixed, mut records)) => {
                let mut columns = Columns::default();
                let found = records.try_fold(None, |switch, record| {
                    let record = damage.sound(record)?;
                    columns.take(&record);
                    Some(ExtendedSwitch::of(&record).or(switch))
                });
                if let Some(switch) = found {
                    flow(writer, datagram, &fixed, &columns, switch.as_ref())?;
                }
            }
            Some(Sample::Counters(_, _, mut records)) => {
                let counters = records.try_fold(InterfaceCounters::default(), |found, record| {
                    match damage.sound(record)? {
                        CounterRecord::Interface(counters) => Some(counters),
                        CounterRecord::PortName(_) | CounterRecord::Other(_) => Some(found),
                    }
                });
                if let Some(counters) = counters {
                    counters_line(writer, datagram, &counters)?;
                }
            }
            Some(Sample::Discard(..) | Sample::Unknown(_)) | None => {}
        }
    }
    Ok(())
}

/// What the middle columns of a flow line need of a packet.
#[derive(Default)]
struct Columns {
    macs: ([u8; 6], [u8; 6]),
    ether_type: u32,
    vlan: u16,
    addresses: (Option<IpAddr>, Option<IpAddr>),
    protocol: u32,
    tos: u32,
    ttl: u8,
    ports: (u32, u32),
    tcp_flags: u32,
    ipv4_offset: usize,
    frame_length: u32,
    stripped: u32,
}

fn flow(
    writer: &mut impl Write,
    datagram: &Datagram<'_>,
    sample: &FlowSample,
    columns: &Columns,
    switch: Option<&ExtendedSwitch>,
) -> io::Result<()> {
    let (frame_length, stripped) = (columns.frame_length, columns.stripped);
    let ip_length = i64::from(frame_length) - i64::from(stripped) - columns.ipv4_offset as i64;
    write!(
        writer,
        "FLOW,{},{},{}",
        Address(datagram.agent),
        sample.input.value,
        sample.output.value
    )?;
    let (source_mac, destination_mac) = columns.macs;
    // Only one of the two can be in a header.
    let (in_vlan, out_vlan) = switch.map_or((columns.vlan.into(), 0), |switch| {
        (switch.source_vlan, switch.destination_vlan)
    });
    write!(
        writer,
        ",{},{},{:#06x},{in_vlan},{out_vlan}",
        Mac(source_mac),
        Mac(destination_mac),
        columns.ether_type
    )?;
    let (source, destination) = columns.addresses;
    write!(
        writer,
        ",{},{},{},{:#04x},{}",
        Address(source),
        Address(destination),
        columns.protocol,
        columns.tos,
        columns.ttl
    )?;
    let (source_port, destination_port) = columns.ports;
    write!(
        writer,
        ",{source_port},{destination_port},{:#04x}",
        columns.tcp_flags
    )?;
    writeln!(writer, ",{frame_length},{ip_length},{}", sample.rate)
}

fn counters_line(
    writer: &mut impl Write,
    datagram: &Datagram<'_>,
    counters: &InterfaceCounters,
) -> io::Result<()> {
    write!(writer, "CNTR,{}", Address(datagram.agent))?;
    for value in counters.values() {
        write!(writer, ",{}", value.number().unwrap_or(0))?;
    }
    writeln!(writer)
}

impl Columns {
    /// What a record says.
    fn take(&mut self, record: &FlowRecord<'_>) {
        match record {
            FlowRecord::RawHeader(raw) => {
                (self.frame_length, self.stripped) = (raw.frame_length, raw.stripped);
                self.take_packet(&Packet::decode(raw));
            }
            FlowRecord::Other(opaque) if opaque.format.enterprise == 0 => self.take_fields(opaque),
            FlowRecord::Other(_) => {}
        }
    }

    /// Records with fields.
    fn take_fields(&mut self, opaque: &Opaque<'_>) {
        let read = records::flow_record(opaque.format).map(|structure| structure.read(opaque));
        let Some(Ok(values)) = read else { return };
        let number = |value: &Value<'_>| value.number().unwrap_or(0) as u32;
        match (opaque.format.format, values.as_slice()) {
            (2 | 1021 | 1022, [_, Value::Mac(source), Value::Mac(destination), kind]) => {
                self.macs = (*source, *destination);
                self.ether_type = number(kind);
            }
            (
                format @ (3 | 4 | 1023..=1026),
                [
                    length,
                    protocol,
                    Value::Address(source),
                    Value::Address(destination),
                    source_port,
                    destination_port,
                    flags,
                    class,
                ],
            ) => {
                self.frame_length = number(length);
                self.addresses = (*source, *destination);
                self.protocol = number(protocol);
                self.ports = (number(source_port), number(destination_port));
                if self.protocol == 6 {
                    self.tcp_flags = number(flags);
                }
                // The priority of IPv6 is no type of service to sflowtool.
                if matches!(format, 3 | 1023 | 1024) {
                    self.tos = number(class);
                }
            }
            (2100 | 2101, [_, Value::Address(source), Value::Address(destination), ..]) => {
                self.addresses = (*source, *destination);
            }
            _ => {}
        }
    }

    fn take_packet(&mut self, packet: &Packet) {
        if let Some(ethernet) = &packet.ethernet {
            self.macs = (ethernet.source, ethernet.destination);
            self.ether_type = ethernet.ether_type.unwrap_or(0).into();
            // The innermost tag.
            self.vlan = ethernet.tags().last().map_or(0, |tag| tag & 0x0fff);
        }
        match &packet.ip {
            Some(Ip::V4(ip)) => {
                self.addresses = (Some(ip.source.into()), Some(ip.destination.into()));
                (self.protocol, self.tos, self.ttl) = (ip.protocol.into(), ip.tos.into(), ip.ttl);
                self.ipv4_offset = packet.ip_offset.unwrap_or(0);
            }
            Some(Ip::V6(ip)) => {
                self.addresses = (Some(ip.source.into()), Some(ip.destination.into()));
                (self.protocol, self.tos, self.ttl) = (
                    ip.protocol.unwrap_or(0).into(),
                    ip.traffic_class.into(),
                    ip.hop_limit,
                );
            }
            None => {}
        }
        match packet.transport {
            Some(Transport::Icmp { kind, code }) => self.ports = (kind.into(), code.into()),
            Some(Transport::Udp {
                source,
                destination,
                ..
            }) => self.ports = (source.into(), destination.into()),
            Some(Transport::Tcp {
                source,
                destination,
                flags,
            }) => {
                self.ports = (source.into(), destination.into());
                self.tcp_flags = flags.unwrap_or(0).into();
            }
            None => {}
        }
    }
}
