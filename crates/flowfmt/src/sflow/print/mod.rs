//! Datagrams as text, as lines and as JSON, in the form that sflowtool made a habit of.
//!
//! Field names, their order and the layout are an interface: many scripts read them. They are
//! sflowtool 6's (`sflowtool`, `-l`, `-j`). What is deliberately different:
//!
//! * `IPID` is the number in the packet; sflowtool prints its octets swapped on little-endian machines.
//! * `localtime` is UTC (`+0000`), and all three times are the one that the caller hands in.
//! * Unsigned numbers stay unsigned in the lines.
//! * A port name cannot break out of its line: in text its control characters are written as `\u{a}`,
//!   in JSON as JSON has them.
//! * The JSON stays well-formed and the text keeps its end marks when a datagram is damaged.
//!
//! Records that [`super::decode`] does not read are named and stepped over:
//! `skipping unknown flow_sample_element: 0:1001 len=16`.
//!
//! Text and JSON are two sinks of one walk, so that they cannot drift apart. What is sound in a
//! damaged datagram is printed; the first error is the result. If the datagram's own header is
//! damaged, nothing is printed.

use std::fmt::Display;
use std::io::{self, Write};
use std::net::IpAddr;

use super::decode::{CounterRecord, Datagram, DecodeError, FlowRecord, Opaque, Sample};
use super::packet::{Ethernet, Ip, Ipv4, Ipv6, Packet, Transport};
use super::{CountersSample, DataFormat, FlowSample, InterfaceCounters, RawHeader, VERSION};
use show::{Address, Hex, PortNumber, SourceId, Time};

mod json;
mod line;
mod show;
mod text;

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A line for each field: `srcIP 192.0.2.1`.
    #[default]
    Text,
    /// A comma-separated line for each sample, `FLOW,…` or `CNTR,…`.
    Line,
    /// A JSON object for each datagram, on one line; every value is a string.
    Json,
}

/// Why a datagram was not printed in full.
#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    /// The datagram is damaged; what is sound in it was printed. The next one is not concerned.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// The output is gone or full; there is no use in going on.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// Decodes one datagram and prints it. `source` is who sent it, `unix_ns` when it arrived, in
/// nanoseconds since 1970.
///
/// # Errors
/// The first thing found wrong with the datagram, or what the writer says.
pub fn decode_datagram_to(writer: &mut impl Write, format: Format, source: IpAddr, unix_ns: u64, bytes: &[u8]) -> Result<(), PrintError> {
    let datagram = Datagram::decode(bytes)?;
    let mut damage = Damage(None);
    let arrival = Arrival { source, unix_ns, size: bytes.len() };
    match format {
        Format::Text => walk(&mut text::Text::new(writer), &arrival, &datagram, &mut damage)?,
        Format::Json => walk(&mut json::Json::new(writer), &arrival, &datagram, &mut damage)?,
        Format::Line => line::print(writer, &datagram, &mut damage)?,
    }
    damage.0.map_or(Ok(()), |error| Err(error.into()))
}

/// The first error met.
struct Damage(Option<DecodeError>);

impl Damage {
    /// What is sound; what is not is kept in mind.
    fn sound<T>(&mut self, result: Result<T, DecodeError>) -> Option<T> {
        result.map_err(|error| self.0.get_or_insert(error).offset).ok()
    }
}

/// What is known of a datagram besides its content.
struct Arrival {
    source: IpAddr,
    unix_ns: u64,
    size: usize,
}

/// What text and JSON have to tell apart.
trait Sink {
    /// A datagram begins.
    fn begin_datagram(&mut self) -> io::Result<()>;
    /// It ends.
    fn end_datagram(&mut self) -> io::Result<()>;
    /// A sample, or a record in one, begins.
    fn begin(&mut self, part: Part) -> io::Result<()>;
    /// It ends.
    fn end(&mut self, part: Part) -> io::Result<()>;
    /// The samples of the datagram, or the records of a sample, begin.
    fn begin_list(&mut self, name: &str) -> io::Result<()>;
    /// They end.
    fn end_list(&mut self) -> io::Result<()>;
    /// A named value.
    fn field(&mut self, name: &str, value: impl Display) -> io::Result<()>;
    /// A named value that somebody else chose, and that may hold anything.
    fn foreign(&mut self, name: &str, value: &str) -> io::Result<()>;
    /// A remark for people.
    fn remark(&mut self, remark: std::fmt::Arguments<'_>) -> io::Result<()>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Sample,
    Record,
}

fn walk(sink: &mut impl Sink, arrival: &Arrival, datagram: &Datagram<'_>, damage: &mut Damage) -> io::Result<()> {
    sink.begin_datagram()?;
    let seconds = arrival.unix_ns / 1_000_000_000;
    sink.field("datagramSourceIP", Address(Some(arrival.source.to_canonical())))?;
    sink.field("datagramSize", arrival.size)?;
    sink.field("unixSecondsUTC", seconds)?;
    sink.field("unixSecondsUTC_uS", arrival.unix_ns % 1_000_000_000 / 1000)?;
    sink.field("localtime", Time(seconds))?;
    sink.field("datagramVersion", VERSION)?;
    sink.field("agentSubId", datagram.sub_agent_id)?;
    sink.field("agent", Address(datagram.agent))?;
    sink.field("packetSequenceNo", datagram.sequence)?;
    sink.field("sysUpTime", datagram.uptime_ms)?;
    sink.field("samplesInPacket", datagram.sample_count)?;
    sink.begin_list("samples")?;
    for sample in datagram.samples() {
        let Some(sample) = damage.sound(sample) else { continue };
        sink.begin(Part::Sample)?;
        match sample {
            Sample::Flow(format, fixed, records) => flow_sample(sink, format, &fixed, records, damage)?,
            Sample::Counters(format, fixed, records) => counters_sample(sink, format, &fixed, records, damage)?,
            Sample::Unknown(opaque) => {
                sink.field("sampleType_tag", opaque.format)?;
                skipping(sink, "sample", &opaque)?;
            }
        }
        sink.end(Part::Sample)?;
    }
    sink.end_list()?;
    sink.end_datagram()
}

fn flow_sample<'a>(
    sink: &mut impl Sink,
    format: DataFormat,
    sample: &FlowSample,
    records: impl Iterator<Item = Result<FlowRecord<'a>, DecodeError>>,
    damage: &mut Damage,
) -> io::Result<()> {
    sink.field("sampleType_tag", format)?;
    sink.field("sampleType", "FLOWSAMPLE")?;
    sink.field("sampleSequenceNo", sample.sequence)?;
    sink.field("sourceId", SourceId(sample.source))?;
    sink.field("meanSkipCount", sample.rate)?;
    sink.field("samplePool", sample.pool)?;
    sink.field("dropEvents", sample.drops)?;
    sink.field("inputPort", PortNumber(sample.input))?;
    sink.field("outputPort", PortNumber(sample.output))?;
    sink.begin_list("elements")?;
    for record in records {
        let Some(record) = damage.sound(record) else { continue };
        sink.begin(Part::Record)?;
        match record {
            FlowRecord::RawHeader(raw) => {
                sink.field("flowBlock_tag", DataFormat::RAW_HEADER)?;
                raw_header(sink, &raw)?;
            }
            FlowRecord::Unknown(opaque) => {
                sink.field("flowBlock_tag", opaque.format)?;
                skipping(sink, "flow_sample_element", &opaque)?;
            }
        }
        sink.end(Part::Record)?;
    }
    sink.end_list()
}

fn counters_sample<'a>(
    sink: &mut impl Sink,
    format: DataFormat,
    sample: &CountersSample,
    records: impl Iterator<Item = Result<CounterRecord<'a>, DecodeError>>,
    damage: &mut Damage,
) -> io::Result<()> {
    sink.field("sampleType_tag", format)?;
    sink.field("sampleType", "COUNTERSSAMPLE")?;
    sink.field("sampleSequenceNo", sample.sequence)?;
    sink.field("sourceId", SourceId(sample.source))?;
    sink.begin_list("elements")?;
    for record in records {
        let Some(record) = damage.sound(record) else { continue };
        sink.begin(Part::Record)?;
        match record {
            CounterRecord::Interface(counters) => {
                sink.field("counterBlock_tag", DataFormat::INTERFACE_COUNTERS)?;
                interface_counters(sink, &counters)?;
            }
            CounterRecord::PortName(name) => {
                sink.field("counterBlock_tag", DataFormat::PORT_NAME)?;
                if !name.is_empty() {
                    sink.foreign("ifName", &String::from_utf8_lossy(name))?;
                }
            }
            CounterRecord::Unknown(opaque) => {
                sink.field("counterBlock_tag", opaque.format)?;
                skipping(sink, "counters_sample_element", &opaque)?;
            }
        }
        sink.end(Part::Record)?;
    }
    sink.end_list()
}

fn skipping(sink: &mut impl Sink, what: &str, opaque: &Opaque<'_>) -> io::Result<()> {
    sink.remark(format_args!("skipping unknown {what}: {} len={}", opaque.format, opaque.length))
}

fn raw_header(sink: &mut impl Sink, raw: &RawHeader<'_>) -> io::Result<()> {
    sink.field("flowSampleType", "HEADER")?;
    sink.field("headerProtocol", raw.protocol)?;
    sink.field("sampledPacketSize", raw.frame_length)?;
    sink.field("strippedBytes", raw.stripped)?;
    sink.field("headerLen", raw.header.len())?;
    sink.field("headerBytes", Hex(raw.header))?;
    match raw.protocol {
        RawHeader::ETHERNET | RawHeader::IPV4 | RawHeader::IPV6 => {}
        // The protocols that the specification names, and three of its later extensions.
        2..=18 => sink.remark(format_args!("NO_DECODE headerProtocol={}", raw.protocol))?,
        _ => sink.remark(format_args!("UNKNOWN headerProtocol={}", raw.protocol))?,
    }
    let packet = Packet::decode(raw);
    if let Some(ethernet) = &packet.ethernet {
        link(sink, ethernet)?;
    }
    if let Some(offset) = packet.ip_offset {
        // The IP packet with its header; lengths that contradict each other may make it negative.
        sink.field("IPSize", i64::from(raw.frame_length) - i64::from(raw.stripped) - offset as i64)?;
    }
    match &packet.ip {
        Some(Ip::V4(ip)) => ipv4(sink, ip)?,
        Some(Ip::V6(ip)) => ipv6(sink, ip)?,
        None => {}
    }
    packet.transport.map_or(Ok(()), |transport| self::transport(sink, &transport))
}

fn link(sink: &mut impl Sink, ethernet: &Ethernet) -> io::Result<()> {
    sink.field("dstMAC", show::Mac(ethernet.destination))?;
    sink.field("srcMAC", show::Mac(ethernet.source))?;
    for (depth, tag) in ethernet.tags().iter().enumerate() {
        let (vlan, priority) = (tag & 0x0fff, tag >> 13);
        if depth == 0 {
            sink.field("decodedVLAN", vlan)?;
            sink.field("decodedPriority", priority)?;
        } else {
            sink.field(&format!("decodedVLAN.{depth}"), vlan)?;
            sink.field(&format!("decodedPriority.{depth}"), priority)?;
        }
    }
    if let Some([a, b, c]) = ethernet.snap_vendor {
        sink.field("VSNAP_OUI", format_args!("{a:02X}-{b:02X}-{c:02X}"))?;
    }
    ethernet.ether_type.map_or(Ok(()), |ether_type| sink.field("ethernet_type", ether_type))
}

fn ipv4(sink: &mut impl Sink, ip: &Ipv4) -> io::Result<()> {
    sink.field("ip.tot_len", ip.total_length)?;
    sink.field("srcIP", ip.source)?;
    sink.field("dstIP", ip.destination)?;
    sink.field("IPProtocol", ip.protocol)?;
    sink.field("IPTOS", ip.tos)?;
    sink.field("IPTTL", ip.ttl)?;
    sink.field("IPID", ip.id)?;
    if ip.fragment_offset > 0 {
        sink.field("IPFragmentOffset", ip.fragment_offset)?;
    }
    Ok(())
}

fn ipv6(sink: &mut impl Sink, ip: &Ipv6) -> io::Result<()> {
    sink.field("IPTOS", ip.traffic_class)?;
    sink.field("IP6_label", format_args!("{:#x}", ip.flow_label))?;
    match ip.payload_length {
        0 => sink.field("IPV6_payloadLen", "<jumbo>")?,
        length => sink.field("IPV6_payloadLen", length)?,
    }
    sink.field("IPTTL", ip.hop_limit)?;
    sink.field("srcIP6", Address(Some(ip.source.into())))?;
    sink.field("dstIP6", Address(Some(ip.destination.into())))?;
    for extension in ip.extensions() {
        sink.field("IP6HeaderExtension", extension)?;
    }
    ip.protocol.map_or(Ok(()), |protocol| sink.field("IPProtocol", protocol))
}

fn transport(sink: &mut impl Sink, transport: &Transport) -> io::Result<()> {
    match transport {
        Transport::Icmp { kind, code } => {
            sink.field("ICMPType", kind)?;
            sink.field("ICMPCode", code)
        }
        Transport::Tcp { source, destination, flags } => {
            sink.field("TCPSrcPort", source)?;
            sink.field("TCPDstPort", destination)?;
            flags.map_or(Ok(()), |flags| sink.field("TCPFlags", flags))
        }
        Transport::Udp { source, destination, length } => {
            sink.field("UDPSrcPort", source)?;
            sink.field("UDPDstPort", destination)?;
            sink.field("UDPBytes", length)
        }
    }
}

fn interface_counters(sink: &mut impl Sink, counters: &InterfaceCounters) -> io::Result<()> {
    for (name, value) in counters.fields() {
        sink.field(name, value)?;
    }
    Ok(())
}

impl InterfaceCounters {
    /// The counters under their printed names, in the order of the wire.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, u64); 19] {
        [
            ("ifIndex", self.index.into()),
            ("networkType", self.kind.into()),
            ("ifSpeed", self.speed),
            ("ifDirection", self.direction.into()),
            ("ifStatus", self.status.into()),
            ("ifInOctets", self.in_octets),
            ("ifInUcastPkts", self.in_unicast.into()),
            ("ifInMulticastPkts", self.in_multicast.into()),
            ("ifInBroadcastPkts", self.in_broadcast.into()),
            ("ifInDiscards", self.in_discards.into()),
            ("ifInErrors", self.in_errors.into()),
            ("ifInUnknownProtos", self.in_unknown_protocols.into()),
            ("ifOutOctets", self.out_octets),
            ("ifOutUcastPkts", self.out_unicast.into()),
            ("ifOutMulticastPkts", self.out_multicast.into()),
            ("ifOutBroadcastPkts", self.out_broadcast.into()),
            ("ifOutDiscards", self.out_discards.into()),
            ("ifOutErrors", self.out_errors.into()),
            ("ifPromiscuousMode", self.promiscuous.into()),
        ]
    }
}
