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
//! * A VLAN stack has a point behind its TPID, optical lanes have no `%u` in their names, and ICMP's type
//!   and code are distinguished in records 0:3.
//! * Datagrams of versions 2 and 4 are printed as version 5 has the same content.
//! * What sflowtool does not print has names of its own: `PPPoE_session`, `MPLS_stack`, `GRE_protocol`,
//!   `GRE_key`, `VXLAN_VNI`, and every field of a packet in a tunnel with `inner_` before it.
//! * Lines for `grep` all begin with the agent, also the first ones of a datagram.
//!
//! Records that no table of [`super::records`] has are named and stepped over:
//! `skipping unknown flow_sample_element: 0:999 len=16`.
//!
//! Text, JSON and columns are sinks of one walk, so that they cannot drift apart. What is sound in a
//! damaged datagram is printed; the first error is the result. If the datagram's own header is
//! damaged, nothing is printed.

use std::fmt::Display;
use std::io::{self, Write};
use std::net::IpAddr;

use super::decode::{CounterRecord, Datagram, DecodeError, FlowRecord, Opaque, Sample};
use super::structure::Structure;
use super::{
    CountersSample, DataFormat, DiscardedPacket, FlowSample, InterfaceCounters, Source, reasons,
    records, version4,
};
pub use names::{is_name, names};
use show::{Address, PortNumber, SourceId, Time};

mod columns;
mod header;
mod json;
mod line;
mod names;
mod realtime;
mod record;
mod show;
mod text;

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format<'a> {
    /// A line for each field: `srcIP 192.0.2.1`.
    #[default]
    Text,
    /// A comma-separated line for each sample, `FLOW,…` or `CNTR,…`.
    Line,
    /// A JSON object for each datagram, on one line; every value is a string.
    Json,
    /// The same, spread over lines.
    PrettyJson,
    /// Text, each line with agent, data source, sample and record before it.
    Grep,
    /// These fields, comma-separated, a line for each sample that has one of them.
    Columns(&'a [String]),
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
pub fn decode_datagram_to(
    writer: &mut impl Write,
    format: Format<'_>,
    source: IpAddr,
    unix_ns: u64,
    bytes: &[u8],
) -> Result<(), PrintError> {
    let mut room = Vec::new();
    let (datagram, version, wrong) = version4::decode(bytes, &mut room)?;
    let mut damage = Damage(wrong);
    let arrival = Arrival {
        source,
        unix_ns,
        size: bytes.len(),
        version,
    };
    match format {
        Format::Text => walk(
            &mut text::Text::new(writer),
            &arrival,
            &datagram,
            &mut damage,
        )?,
        Format::Grep => walk(
            &mut text::Text::for_grep(writer, &arrival, &datagram),
            &arrival,
            &datagram,
            &mut damage,
        )?,
        Format::Json => walk(
            &mut json::Json::compact(writer),
            &arrival,
            &datagram,
            &mut damage,
        )?,
        Format::PrettyJson => walk(
            &mut json::Json::pretty(writer),
            &arrival,
            &datagram,
            &mut damage,
        )?,
        Format::Columns(names) => walk(
            &mut columns::Columns::new(writer, names),
            &arrival,
            &datagram,
            &mut damage,
        )?,
        Format::Line => line::print(writer, &datagram, &mut damage)?,
    }
    damage.0.map_or(Ok(()), |error| Err(error.into()))
}

/// The first error met.
struct Damage(Option<DecodeError>);

impl Damage {
    /// What is sound; what is not is kept in mind.
    fn sound<T>(&mut self, result: Result<T, DecodeError>) -> Option<T> {
        result
            .map_err(|error| self.0.get_or_insert(error).offset)
            .ok()
    }
}

/// What is known of a datagram besides its content.
struct Arrival {
    source: IpAddr,
    unix_ns: u64,
    size: usize,
    version: u32,
}

/// What the forms of output have to tell apart.
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
    /// Whether lists inside of records are lists; otherwise their places are in their fields' names.
    fn nests(&self) -> bool {
        false
    }
    /// A value of a list.
    fn item(&mut self, _value: impl Display) -> io::Result<()> {
        Ok(())
    }
    /// What stands before every name from now on: at level 0 for a sample, at level 1 for a record.
    fn prefix(&mut self, level: usize, prefix: &'static str);
    /// A named value that somebody else chose, and that may hold anything.
    fn foreign(&mut self, name: &str, value: &str) -> io::Result<()>;
    /// The same where the name, too, is somebody else's.
    fn foreign_name(&mut self, name: &str, value: &str) -> io::Result<()>;
    /// A remark for people.
    fn remark(&mut self, remark: std::fmt::Arguments<'_>) -> io::Result<()>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Of this kind and this source.
    Sample(DataFormat, Option<Source>),
    /// Of this kind.
    Record(DataFormat),
    /// Something in a record's list.
    Item,
}

fn walk(
    sink: &mut impl Sink,
    arrival: &Arrival,
    datagram: &Datagram<'_>,
    damage: &mut Damage,
) -> io::Result<()> {
    sink.begin_datagram()?;
    let seconds = arrival.unix_ns / 1_000_000_000;
    sink.field(
        "datagramSourceIP",
        Address(Some(arrival.source.to_canonical())),
    )?;
    sink.field("datagramSize", arrival.size)?;
    sink.field("unixSecondsUTC", seconds)?;
    sink.field("unixSecondsUTC_uS", arrival.unix_ns % 1_000_000_000 / 1000)?;
    sink.field("localtime", Time(seconds))?;
    sink.field("datagramVersion", arrival.version)?;
    sink.field("agentSubId", datagram.sub_agent_id)?;
    sink.field("agent", Address(datagram.agent))?;
    sink.field("packetSequenceNo", datagram.sequence)?;
    sink.field("sysUpTime", datagram.uptime_ms)?;
    sink.field("samplesInPacket", datagram.sample_count)?;
    sink.begin_list("samples")?;
    for sample in datagram.samples() {
        let Some(sample) = damage.sound(sample) else {
            continue;
        };
        let part = Part::Sample(sample.format(), sample.source());
        sink.begin(part)?;
        match sample {
            Sample::Flow(format, fixed, records) => {
                flow_sample(sink, format, &fixed, records, damage)?
            }
            Sample::Counters(format, fixed, records) => {
                counters_sample(sink, format, &fixed, records, damage)?
            }
            Sample::Discard(fixed, records) => discard_sample(sink, &fixed, records, damage)?,
            Sample::Unknown(opaque) => {
                sink.field("sampleType_tag", opaque.format)?;
                match opaque.format {
                    DataFormat::RT_METRIC | DataFormat::RT_FLOW => {
                        let outcome = realtime::sample(sink, &opaque)?;
                        damage.sound(outcome);
                    }
                    _ => skipping(sink, "sample", &opaque)?,
                }
            }
        }
        sink.end(part)?;
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
    flow_records(sink, records, damage)
}

fn discard_sample<'a>(
    sink: &mut impl Sink,
    sample: &DiscardedPacket,
    records: impl Iterator<Item = Result<FlowRecord<'a>, DecodeError>>,
    damage: &mut Damage,
) -> io::Result<()> {
    sink.field("sampleType_tag", DataFormat::DISCARDED_PACKET)?;
    sink.field("sampleType", "DISCARD")?;
    sink.field("sampleSequenceNo", sample.sequence)?;
    sink.field("sourceId", SourceId(sample.source))?;
    sink.field("dropEvents", sample.drops)?;
    sink.field("inputPort", sample.input)?;
    sink.field("outputPort", sample.output)?;
    sink.field("discardCode", sample.reason)?;
    sink.field(
        "discardReason",
        reasons::name(sample.reason).unwrap_or("NotFound"),
    )?;
    sink.prefix(0, "discarded_");
    flow_records(sink, records, damage)?;
    sink.prefix(0, "");
    Ok(())
}

fn flow_records<'a>(
    sink: &mut impl Sink,
    records: impl Iterator<Item = Result<FlowRecord<'a>, DecodeError>>,
    damage: &mut Damage,
) -> io::Result<()> {
    sink.begin_list("elements")?;
    for record in records {
        let Some(record) = damage.sound(record) else {
            continue;
        };
        match record {
            FlowRecord::RawHeader(raw) => {
                let part = Part::Record(DataFormat::RAW_HEADER);
                sink.begin(part)?;
                sink.field("flowBlock_tag", DataFormat::RAW_HEADER)?;
                header::raw_header(sink, &raw)?;
                sink.end(part)?;
            }
            FlowRecord::Other(opaque) => other(
                sink,
                "flow",
                &opaque,
                records::flow_record(opaque.format),
                damage,
            )?,
        }
    }
    sink.end_list()
}

/// A record by its structure. One that contradicts itself is as if it were not there.
fn other(
    sink: &mut impl Sink,
    kind: &str,
    opaque: &Opaque<'_>,
    structure: Option<&Structure>,
    damage: &mut Damage,
) -> io::Result<()> {
    let values = match structure.map(|structure| (structure, structure.read(opaque))) {
        None => None,
        Some((structure, read)) => match damage.sound(read) {
            Some(values) => Some((structure, values)),
            None => return Ok(()),
        },
    };
    let part = Part::Record(opaque.format);
    sink.begin(part)?;
    sink.field(
        if kind == "flow" {
            "flowBlock_tag"
        } else {
            "counterBlock_tag"
        },
        opaque.format,
    )?;
    match values {
        Some((structure, values)) => record::record(sink, kind == "flow", structure, &values)?,
        None => skipping(sink, &format!("{kind}_sample_element"), opaque)?,
    }
    sink.end(part)
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
        let Some(record) = damage.sound(record) else {
            continue;
        };
        match record {
            CounterRecord::Interface(counters) => {
                let part = Part::Record(DataFormat::INTERFACE_COUNTERS);
                sink.begin(part)?;
                sink.field("counterBlock_tag", DataFormat::INTERFACE_COUNTERS)?;
                for (field, value) in InterfaceCounters::STRUCTURE
                    .fields
                    .iter()
                    .zip(counters.values())
                {
                    sink.field(field.name, value.number().unwrap_or(0))?;
                }
                sink.end(part)?;
            }
            CounterRecord::PortName(name) => {
                let part = Part::Record(DataFormat::PORT_NAME);
                sink.begin(part)?;
                sink.field("counterBlock_tag", DataFormat::PORT_NAME)?;
                if !name.is_empty() {
                    sink.foreign("ifName", &String::from_utf8_lossy(name))?;
                }
                sink.end(part)?;
            }
            CounterRecord::Other(opaque) => other(
                sink,
                "counters",
                &opaque,
                records::counter_record(opaque.format),
                damage,
            )?,
        }
    }
    sink.end_list()
}

fn skipping(sink: &mut impl Sink, what: &str, opaque: &Opaque<'_>) -> io::Result<()> {
    sink.remark(format_args!(
        "skipping unknown {what}: {} len={}",
        opaque.format, opaque.length
    ))
}
