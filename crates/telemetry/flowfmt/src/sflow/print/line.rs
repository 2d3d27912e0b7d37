//! One comma-separated line for each sample.
//!
//! `FLOW`: agent, input port, output port, source MAC, destination MAC, EtherType, input VLAN, output
//! VLAN, source address, destination address, IP protocol, TOS, TTL, source port or ICMP type,
//! destination port or ICMP code, TCP flags, frame length, IP length, sampling rate: 20 columns with
//! the word itself. What is not known is 0, or `-` for an address. The columns are sflowtool's to the
//! letter, so the IP length of a packet that is not IPv4 still counts its Ethernet header. The VLANs are those of record
//! 0:1001; without one the input VLAN is the header's.
//!
//! `CNTR`: agent, then the 19 fields of counter record 0:1 in the order of the wire.
//!
//! A damaged sample has no line: half a line would be a lie.

use std::io::{self, Write};
use std::net::IpAddr;

use super::Damage;
use super::show::{Address, Mac};
use crate::sflow::decode::{CounterRecord, Datagram, FlowRecord, Sample};
use crate::sflow::packet::{Ip, Packet, Transport};
use crate::sflow::{ExtendedSwitch, FlowSample, InterfaceCounters, RawHeader};

pub(super) fn print(
    writer: &mut impl Write,
    datagram: &Datagram<'_>,
    damage: &mut Damage,
) -> io::Result<()> {
    for sample in datagram.samples() {
        match damage.sound(sample) {
            Some(Sample::Flow(_, fixed, mut records)) => {
                let found = records.try_fold((None, None), |(raw, switch), record| {
                    match damage.sound(record)? {
                        FlowRecord::RawHeader(raw) => Some((Some(raw), switch)),
                        other => Some((raw, ExtendedSwitch::of(&other).or(switch))),
                    }
                });
                if let Some((raw, switch)) = found {
                    flow(writer, datagram, &fixed, raw.as_ref(), switch.as_ref())?;
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
    ether_type: u16,
    vlan: u16,
    addresses: (Option<IpAddr>, Option<IpAddr>),
    protocol: u8,
    tos: u8,
    ttl: u8,
    ports: (u16, u16),
    tcp_flags: u8,
    ipv4_offset: usize,
}

fn flow(
    writer: &mut impl Write,
    datagram: &Datagram<'_>,
    sample: &FlowSample,
    raw: Option<&RawHeader<'_>>,
    switch: Option<&ExtendedSwitch>,
) -> io::Result<()> {
    let columns = raw.map_or_else(Columns::default, |raw| Columns::new(&Packet::decode(raw)));
    let (frame_length, stripped) = raw.map_or((0, 0), |raw| (raw.frame_length, raw.stripped));
    let ip_length = i64::from(frame_length) - i64::from(stripped) - columns.ipv4_offset as i64;
    write!(
        writer,
        "FLOW,{},{},{}",
        Address(datagram.agent),
        sample.input.value,
        sample.output.value
    )?;
    let (source_mac, destination_mac) = columns.macs;
    // Of the two only one can be told by a header.
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
    fn new(packet: &Packet) -> Columns {
        let mut columns = Columns::default();
        if let Some(ethernet) = &packet.ethernet {
            columns.macs = (ethernet.source, ethernet.destination);
            columns.ether_type = ethernet.ether_type.unwrap_or(0);
            // The innermost tag.
            columns.vlan = ethernet.tags().last().map_or(0, |tag| tag & 0x0fff);
        }
        match &packet.ip {
            Some(Ip::V4(ip)) => {
                columns.addresses = (Some(ip.source.into()), Some(ip.destination.into()));
                (columns.protocol, columns.tos, columns.ttl) = (ip.protocol, ip.tos, ip.ttl);
                columns.ipv4_offset = packet.ip_offset.unwrap_or(0);
            }
            Some(Ip::V6(ip)) => {
                columns.addresses = (Some(ip.source.into()), Some(ip.destination.into()));
                (columns.protocol, columns.tos, columns.ttl) =
                    (ip.protocol.unwrap_or(0), ip.traffic_class, ip.hop_limit);
            }
            None => {}
        }
        match packet.transport {
            Some(Transport::Icmp { kind, code }) => columns.ports = (kind.into(), code.into()),
            Some(Transport::Udp {
                source,
                destination,
                ..
            }) => columns.ports = (source, destination),
            Some(Transport::Tcp {
                source,
                destination,
                flags,
            }) => {
                columns.ports = (source, destination);
                columns.tcp_flags = flags.unwrap_or(0);
            }
            None => {}
        }
        columns
    }
}
