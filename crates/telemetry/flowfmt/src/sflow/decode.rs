//! The collector's half: reads anybody's sFlow version 5 without copying and without trusting it.
//!
//! [`Datagram::decode`] reads the header; [`Datagram::samples`] walks the samples, and each sample its
//! records. Every number that says how long or how many something is, is compared with the octets that
//! are really there, so a walk ends after at most one step for every eight octets, whatever a count
//! claims. Nothing is allocated.
//!
//! What damage costs: where a length is sane, only what lies inside it. A record that contradicts
//! itself is one `Err` among its siblings; a sample likewise. Where a length leads past the end, the
//! walk it belongs to ends with an `Err`, because nobody knows where the next one would begin.
//!
//! What nearly every datagram holds is read at once; every other record is stepped over by its length
//! and handed out as [`Opaque`], for [`super::records`] to say what it is. Records longer than known
//! are accepted: known ones have grown in the past.

use std::net::IpAddr;

use super::cursor::Cursor;
use super::{
    CountersSample, DataFormat, DiscardedPacket, FlowSample, InterfaceCounters, Port, RawHeader,
    Source, VERSION,
};

/// What is wrong with a datagram, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed sFlow at octet {offset}: {problem}")]
pub struct DecodeError {
    /// Octets from the start of the datagram.
    pub offset: usize,
    /// Which check failed.
    pub problem: Problem,
}

/// The checks that a datagram can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The datagram, sample or record ends inside a field.
    #[error("{field} needs {needed} octets, but {left} are left")]
    Truncated {
        /// Which field.
        field: &'static str,
        /// How long it should be.
        needed: usize,
        /// What is there.
        left: usize,
    },
    /// Not sFlow version 5.
    #[error("version {0} instead of 5")]
    Version(u32),
    /// A sample of versions 2 and 4 that is neither of flows nor of counters.
    #[error("sample of unknown type {0}")]
    SampleType(u32),
    /// Packet data of versions 2 and 4 of an unknown kind.
    #[error("packet data of unknown type {0}")]
    PacketDataType(u32),
    /// Extended data of versions 2 and 4 of an unknown kind.
    #[error("extended data of unknown type {0}")]
    ExtendedType(u32),
    /// A value under a name of its own, of an unknown type.
    #[error("value of unknown type {0}")]
    ValueType(u32),
    /// Counters of versions 2 and 4 of an unknown kind.
    #[error("counters of unknown type {0}")]
    CountersType(u32),
    /// An address that is neither IPv4 nor IPv6.
    #[error("address of unknown type {0}")]
    AddressType(u32),
    /// A sample claims to be longer than the datagram.
    #[error("sample {format} of {length} octets, but {left} are left")]
    SampleLength {
        /// The sample's kind.
        format: DataFormat,
        /// What it claims.
        length: u32,
        /// What is there.
        left: usize,
    },
    /// A record claims to be longer than its sample.
    #[error("record {format} of {length} octets, but its sample has {left} left")]
    RecordLength {
        /// The record's kind.
        format: DataFormat,
        /// What it claims.
        length: u32,
        /// What is there.
        left: usize,
    },
    /// Fewer samples than the header says.
    #[error("ends where {missing} more samples are announced")]
    SamplesMissing {
        /// How many.
        missing: u32,
    },
    /// Fewer records than their sample says.
    #[error("sample ends where {missing} more records are announced")]
    RecordsMissing {
        /// How many.
        missing: u32,
    },
    /// Octets behind the last sample of the datagram.
    #[error("{0} octets behind the last sample")]
    BehindSamples(usize),
    /// Octets behind the last record of a sample.
    #[error("{0} octets behind the last record of a sample")]
    BehindRecords(usize),
}

/// A datagram's header, and its samples not yet looked at.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The agent's address, if it knows it.
    pub agent: Option<IpAddr>,
    /// Which of several agents behind that address.
    pub sub_agent_id: u32,
    /// Number of this datagram.
    pub sequence: u32,
    /// Milliseconds since the agent started.
    pub uptime_ms: u32,
    /// How many samples there should be.
    pub sample_count: u32,
    body: Cursor<'a>,
}

impl<'a> Datagram<'a> {
    /// Reads the header of a datagram.
    ///
    /// # Errors
    /// When it is no sFlow version 5, or ends inside the header.
    pub fn decode(bytes: &'a [u8]) -> Result<Datagram<'a>, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let start = cursor;
        let version = cursor.word("version")?;
        if version != VERSION {
            return Err(start.error(Problem::Version(version)));
        }
        Ok(Datagram {
            agent: cursor.address("agent address")?,
            sub_agent_id: cursor.word("sub-agent id")?,
            sequence: cursor.word("datagram sequence number")?,
            uptime_ms: cursor.word("uptime")?,
            sample_count: cursor.word("number of samples")?,
            body: cursor,
        })
    }

    /// Its samples, in their order.
    #[must_use]
    pub fn samples(&self) -> Samples<'a> {
        Samples {
            cursor: self.body,
            left: self.sample_count,
            done: false,
        }
    }

    /// Where it ends by the lengths of its samples, if they are sane.
    #[must_use]
    pub fn end(&self) -> Option<usize> {
        let mut cursor = self.body;
        for _ in 0..self.sample_count {
            framed(&mut cursor, |format, length, left| Problem::SampleLength {
                format,
                length,
                left,
            })
            .ok()?;
        }
        Some(cursor.offset())
    }
}

/// A sample of any kind.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Sample<'a> {
    /// 0:1 and 0:3, a sampled packet.
    Flow(DataFormat, FlowSample, FlowRecords<'a>),
    /// 0:2 and 0:4, counters.
    Counters(DataFormat, CountersSample, CounterRecords<'a>),
    /// 0:5, a packet that was discarded.
    Discard(DiscardedPacket, FlowRecords<'a>),
    /// Any other.
    Unknown(Opaque<'a>),
}

impl Sample<'_> {
    /// Which kind it is.
    #[must_use]
    pub fn format(&self) -> DataFormat {
        match self {
            Sample::Flow(format, ..) | Sample::Counters(format, ..) => *format,
            Sample::Discard(..) => DataFormat::DISCARDED_PACKET,
            Sample::Unknown(opaque) => opaque.format,
        }
    }

    /// Whose it is, where that is known.
    #[must_use]
    pub fn source(&self) -> Option<Source> {
        match self {
            Sample::Flow(_, sample, _) => Some(sample.source),
            Sample::Counters(_, sample, _) => Some(sample.source),
            Sample::Discard(sample, _) => Some(sample.source),
            Sample::Unknown(_) => None,
        }
    }
}

/// A sample or record that this module does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opaque<'a> {
    /// What it is.
    pub format: DataFormat,
    /// Its length as it says itself.
    pub length: u32,
    /// Its octets, with the padding up to a multiple of four.
    pub body: &'a [u8],
    /// Where they begin in the datagram.
    pub offset: usize,
}

/// A record of a flow sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowRecord<'a> {
    /// 0:1.
    RawHeader(RawHeader<'a>),
    /// Any other: [`super::records::flow_record`] knows which.
    Other(Opaque<'a>),
}

/// A record of a counters sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CounterRecord<'a> {
    /// 0:1.
    Interface(InterfaceCounters),
    /// 0:1005; should be ASCII, may be anything.
    PortName(&'a [u8]),
    /// Any other: [`super::records::counter_record`] knows which.
    Other(Opaque<'a>),
}

/// Walks the samples of a datagram. Ends after an error that leaves no place to go on from.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    cursor: Cursor<'a>,
    left: u32,
    done: bool,
}

impl<'a> Iterator for Samples<'a> {
    type Item = Result<Sample<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if self.left == 0 || self.cursor.left() == 0 {
            self.done = true;
            let problem = match (self.left, self.cursor.left()) {
                (0, 0) => return None,
                (0, behind) => Problem::BehindSamples(behind),
                (missing, _) => Problem::SamplesMissing { missing },
            };
            return Some(Err(self.cursor.error(problem)));
        }
        self.left -= 1;
        let framed = framed(&mut self.cursor, |format, length, left| {
            Problem::SampleLength {
                format,
                length,
                left,
            }
        });
        self.done = framed.is_err();
        Some(framed.and_then(|(format, length, body)| sample(format, length, body)))
    }
}

/// Format, length and body of the next sample or record.
fn framed<'a>(
    cursor: &mut Cursor<'a>,
    too_long: impl FnOnce(DataFormat, u32, usize) -> Problem,
) -> Result<(DataFormat, u32, Cursor<'a>), DecodeError> {
    let start = *cursor;
    let format = DataFormat::from_wire(cursor.word("data format")?);
    let length = cursor.word("length")?;
    match cursor.split(length) {
        Some(body) => Ok((format, length, body)),
        None => Err(start.error(too_long(format, length, cursor.left()))),
    }
}

fn sample(
    format: DataFormat,
    length: u32,
    mut body: Cursor<'_>,
) -> Result<Sample<'_>, DecodeError> {
    match format {
        DataFormat::FLOW_SAMPLE | DataFormat::FLOW_SAMPLE_EXPANDED => {
            let fixed = flow_sample(&mut body, format == DataFormat::FLOW_SAMPLE)?;
            Ok(Sample::Flow(
                format,
                fixed,
                FlowRecords(Records::new(body)?),
            ))
        }
        DataFormat::COUNTERS_SAMPLE | DataFormat::COUNTERS_SAMPLE_EXPANDED => {
            let sequence = body.word("sample sequence number")?;
            let source = source(&mut body, format == DataFormat::COUNTERS_SAMPLE)?;
            Ok(Sample::Counters(
                format,
                CountersSample { sequence, source },
                CounterRecords(Records::new(body)?),
            ))
        }
        DataFormat::DISCARDED_PACKET => {
            let fixed = discard_sample(&mut body)?;
            Ok(Sample::Discard(fixed, FlowRecords(Records::new(body)?)))
        }
        _ => Ok(Sample::Unknown(Opaque {
            format,
            length,
            body: body.rest(),
            offset: body.offset(),
        })),
    }
}

fn flow_sample(body: &mut Cursor<'_>, compact: bool) -> Result<FlowSample, DecodeError> {
    Ok(FlowSample {
        sequence: body.word("sample sequence number")?,
        source: source(body, compact)?,
        rate: body.word("sampling rate")?,
        pool: body.word("sample pool")?,
        drops: body.word("drops")?,
        input: port(body, "input interface", compact)?,
        output: port(body, "output interface", compact)?,
    })
}

/// Both interfaces are plain ifIndexes here; there is no compact form.
fn discard_sample(body: &mut Cursor<'_>) -> Result<DiscardedPacket, DecodeError> {
    Ok(DiscardedPacket {
        sequence: body.word("sample sequence number")?,
        source: source(body, false)?,
        drops: body.word("drops")?,
        input: body.word("input interface")?,
        output: body.word("output interface")?,
        reason: body.word("reason")?,
    })
}

/// Two words, or 8 bits of class and 24 of index in one.
fn source(body: &mut Cursor<'_>, compact: bool) -> Result<Source, DecodeError> {
    let word = body.word("source id")?;
    if compact {
        return Ok(Source {
            class: word >> 24,
            index: word & 0x00ff_ffff,
        });
    }
    Ok(Source {
        class: word,
        index: body.word("source id")?,
    })
}

/// Two words, or 2 bits of format and 30 of value in one.
fn port(body: &mut Cursor<'_>, field: &'static str, compact: bool) -> Result<Port, DecodeError> {
    let word = body.word(field)?;
    if compact {
        return Ok(Port {
            format: word >> 30,
            value: word & 0x3fff_ffff,
        });
    }
    Ok(Port {
        format: word,
        value: body.word(field)?,
    })
}

/// Walks records, whatever is in them.
#[derive(Clone, Copy, Debug)]
struct Records<'a> {
    cursor: Cursor<'a>,
    left: u32,
    done: bool,
}

impl<'a> Records<'a> {
    fn new(mut cursor: Cursor<'a>) -> Result<Records<'a>, DecodeError> {
        let left = cursor.word("number of records")?;
        Ok(Records {
            cursor,
            left,
            done: false,
        })
    }

    fn next(&mut self) -> Option<Result<(Opaque<'a>, Cursor<'a>), DecodeError>> {
        if self.done {
            return None;
        }
        if self.left == 0 || self.cursor.left() == 0 {
            self.done = true;
            let problem = match (self.left, self.cursor.left()) {
                (0, 0) => return None,
                (0, behind) => Problem::BehindRecords(behind),
                (missing, _) => Problem::RecordsMissing { missing },
            };
            return Some(Err(self.cursor.error(problem)));
        }
        self.left -= 1;
        let framed = framed(&mut self.cursor, |format, length, left| {
            Problem::RecordLength {
                format,
                length,
                left,
            }
        });
        self.done = framed.is_err();
        Some(framed.map(|(format, length, body)| {
            (
                Opaque {
                    format,
                    length,
                    body: body.rest(),
                    offset: body.offset(),
                },
                body,
            )
        }))
    }
}

/// Walks the records of a flow sample.
#[derive(Clone, Copy, Debug)]
pub struct FlowRecords<'a>(Records<'a>);

impl<'a> Iterator for FlowRecords<'a> {
    type Item = Result<FlowRecord<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.0.next()?;
        Some(record.and_then(|(opaque, body)| match opaque.format {
            DataFormat::RAW_HEADER => raw_header(body).map(FlowRecord::RawHeader),
            _ => Ok(FlowRecord::Other(opaque)),
        }))
    }
}

/// Walks the records of a counters sample.
#[derive(Clone, Copy, Debug)]
pub struct CounterRecords<'a>(Records<'a>);

impl<'a> Iterator for CounterRecords<'a> {
    type Item = Result<CounterRecord<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.0.next()?;
        Some(record.and_then(|(opaque, mut body)| match opaque.format {
            DataFormat::INTERFACE_COUNTERS => {
                InterfaceCounters::read_from(&mut body).map(CounterRecord::Interface)
            }
            DataFormat::PORT_NAME => body.opaque("port name").map(CounterRecord::PortName),
            _ => Ok(CounterRecord::Other(opaque)),
        }))
    }
}

fn raw_header(mut body: Cursor<'_>) -> Result<RawHeader<'_>, DecodeError> {
    Ok(RawHeader {
        protocol: body.word("header protocol")?,
        frame_length: body.word("frame length")?,
        stripped: body.word("stripped octets")?,
        header: body.opaque("sampled header")?,
    })
}
