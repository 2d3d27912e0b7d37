//! The agent's half: builds sFlow version 5 datagrams in one buffer that is allocated once.
//!
//! ```text
//! add, add, add … → Fit::Full → finish(sequence, uptime) → send → clear → add the one that did not fit
//! ```
//!
//! A sample is written behind the samples that are there and undone again when it does not fit, so
//! the sender never needs to know sizes. Sequence number and uptime are filled in by `finish`,
//! because only then is it known that the datagram goes out.
//!
//! One builder speaks one [`Encoding`] for its whole life: an agent must not mix them
//! (specification, section 5, `sample_data`). Numbers that the compact encoding cannot carry are an
//! error, not cut off.
//!
//! Records are written by the table that the decoder reads by ([`super::records`]): `Structure` and the
//! values of its fields. The most frequent three have variants of their own; what no table has can be
//! sent as `Other`.

use std::net::IpAddr;

use super::structure::{Kind, Structure, Value};
use super::{
    CountersSample, DataFormat, DiscardedPacket, ExtendedMpls, ExtendedRouter, ExtendedSwitch,
    FlowSample, InterfaceCounters, Port, RawHeader, Source, VERSION,
};

/// Datagrams of at most this many octets, unless asked otherwise: they pass an Ethernet unfragmented.
pub const DEFAULT_MAX_LEN: usize = 1400;

/// Which of its two forms each sample takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Samples 0:3 and 0:4; any ifIndex.
    #[default]
    Expanded,
    /// Samples 0:1 and 0:2; every ifIndex must be below 2^24.
    Compact,
}

/// What became of a sample that was handed to the builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fit {
    /// It is in the datagram.
    Added,
    /// No room is left: send what is there, clear, and hand it in again.
    Full,
}

/// Why a sample can never be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// It is larger than an empty datagram.
    #[error("a sample of {needed} octets does not fit a datagram of {max}, not even alone")]
    TooLarge {
        /// What the datagram would be long.
        needed: usize,
        /// What it may be long.
        max: usize,
    },
    /// A record was given values of other kinds than its structure has.
    #[error("record {0} was not given what its structure holds")]
    Structure(DataFormat),
    /// The compact encoding has too few bits for a number.
    #[error("{field} {value} is too large for the compact encoding")]
    NotCompact {
        /// Which number.
        field: &'static str,
        /// Its value.
        value: u32,
    },
}

/// A record of a flow sample.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FlowRecord<'a> {
    /// 0:1, the first bytes of the packet.
    RawHeader(RawHeader<'a>),
    /// 0:1001, the tags on both sides.
    Switch(ExtendedSwitch),
    /// 0:1002, the next hop and the prefixes.
    Router(ExtendedRouter),
    /// 0:1006, the labels on both sides.
    Mpls(ExtendedMpls<'a>),
    /// 0:1041, place and reason of a discard by name.
    Trap {
        /// The place: the node.
        group: &'a str,
        /// The reason.
        trap: &'a str,
    },
    /// Any of [`super::records::FLOW`], with a value for each of its fields.
    Structure(&'a Structure, &'a [Value<'a>]),
    /// Any other, its body already in XDR; padded to four octets if it is not.
    Other(DataFormat, &'a [u8]),
}

/// A record of a counters sample.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum CounterRecord<'a> {
    /// 0:1, generic interface counters.
    Interface(&'a InterfaceCounters),
    /// 0:1005, the port's name (at most 255 octets in the specification).
    PortName(&'a str),
    /// Any of [`super::records::COUNTERS`], with a value for each of its fields.
    Structure(&'a Structure, &'a [Value<'a>]),
    /// Any other, its body already in XDR; padded to four octets if it is not.
    Other(DataFormat, &'a [u8]),
}

/// Puts samples into datagrams. See the module for the way of working.
#[derive(Debug)]
pub struct DatagramBuilder {
    writer: Writer,
    encoding: Encoding,
    /// Length of the datagram's header; the three words before its end change per datagram.
    header_len: usize,
    samples: u32,
}

impl DatagramBuilder {
    /// A builder for datagrams of up to [`DEFAULT_MAX_LEN`] octets. An IPv4-mapped IPv6 address is
    /// sent as it is given, as IPv6.
    #[must_use]
    pub fn new(agent: IpAddr, sub_agent_id: u32, encoding: Encoding) -> DatagramBuilder {
        DatagramBuilder::with_max_len(agent, sub_agent_id, encoding, DEFAULT_MAX_LEN)
    }

    /// A builder for datagrams of up to `max_len` octets, at least 200 and at most 65,507 (what one
    /// UDP datagram over IPv4 holds); a value outside is moved to the nearer end.
    #[must_use]
    pub fn with_max_len(
        agent: IpAddr,
        sub_agent_id: u32,
        encoding: Encoding,
        max_len: usize,
    ) -> DatagramBuilder {
        let mut writer = Writer::new(max_len.clamp(200, 65_507));
        writer.word(VERSION);
        writer.address(Some(agent));
        writer.word(sub_agent_id);
        // Sequence, uptime and number of samples: written by `finish`.
        writer.bytes(&[0; 12]);
        let header_len = writer.at;
        DatagramBuilder {
            writer,
            encoding,
            header_len,
            samples: 0,
        }
    }

    /// The encoding this builder was made for.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// How many samples the datagram holds.
    #[must_use]
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// The datagram's length so far, its header included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writer.at
    }

    /// Adds a flow sample with its records.
    ///
    /// # Errors
    /// When this sample can never be sent; the datagram is as it was before.
    pub fn flow_sample(
        &mut self,
        sample: &FlowSample,
        records: &[FlowRecord<'_>],
    ) -> Result<Fit, EncodeError> {
        let compact = self.encoding == Encoding::Compact;
        let format = if compact {
            DataFormat::FLOW_SAMPLE
        } else {
            DataFormat::FLOW_SAMPLE_EXPANDED
        };
        self.sample(format, |writer| {
            writer.word(sample.sequence);
            writer.source(sample.source, compact)?;
            writer.word(sample.rate);
            writer.word(sample.pool);
            writer.word(sample.drops);
            writer.port("input interface", sample.input, compact)?;
            writer.port("output interface", sample.output, compact)?;
            writer.count(records.len());
            records.iter().for_each(|record| record.write(writer));
            Ok(())
        })
    }

    /// Adds a notification of a discarded packet with its records. It has one form in both encodings.
    ///
    /// # Errors
    /// When it can never be sent; the datagram is as it was before.
    pub fn discarded_packet(
        &mut self,
        sample: &DiscardedPacket,
        records: &[FlowRecord<'_>],
    ) -> Result<Fit, EncodeError> {
        self.sample(DataFormat::DISCARDED_PACKET, |writer| {
            writer.word(sample.sequence);
            writer.source(sample.source, false)?;
            writer.word(sample.drops);
            writer.word(sample.input);
            writer.word(sample.output);
            writer.word(sample.reason);
            writer.count(records.len());
            records.iter().for_each(|record| record.write(writer));
            Ok(())
        })
    }

    /// Adds a counters sample with its records.
    ///
    /// # Errors
    /// When this sample can never be sent; the datagram is as it was before.
    pub fn counters_sample(
        &mut self,
        sample: &CountersSample,
        records: &[CounterRecord<'_>],
    ) -> Result<Fit, EncodeError> {
        let compact = self.encoding == Encoding::Compact;
        let format = if compact {
            DataFormat::COUNTERS_SAMPLE
        } else {
            DataFormat::COUNTERS_SAMPLE_EXPANDED
        };
        self.sample(format, |writer| {
            writer.word(sample.sequence);
            writer.source(sample.source, compact)?;
            writer.count(records.len());
            records.iter().for_each(|record| record.write(writer));
            Ok(())
        })
    }

    /// Completes the datagram. `sequence` numbers the datagrams of this agent, `uptime_ms` is how
    /// long it has been running (both wrap). The samples stay until [`DatagramBuilder::clear`].
    pub fn finish(&mut self, sequence: u32, uptime_ms: u32) -> &[u8] {
        let end = self.header_len;
        self.writer.patch(end - 12, sequence);
        self.writer.patch(end - 8, uptime_ms);
        self.writer.patch(end - 4, self.samples);
        self.writer.written()
    }

    /// Takes all samples out; the datagram is empty again.
    pub fn clear(&mut self) {
        self.writer.rewind(self.header_len);
        self.samples = 0;
    }

    /// Writes one sample around `body`, or leaves everything as it was.
    fn sample(
        &mut self,
        format: DataFormat,
        body: impl FnOnce(&mut Writer) -> Result<(), EncodeError>,
    ) -> Result<Fit, EncodeError> {
        let start = self.writer.at;
        let written = self.writer.framed(format, body);
        let written = self
            .writer
            .wrong
            .take()
            .map_or(written, |format| Err(EncodeError::Structure(format)));
        let needed = self.writer.at;
        if written.is_ok() && needed <= self.writer.buffer.len() {
            self.samples += 1;
            return Ok(Fit::Added);
        }
        self.writer.rewind(start);
        written?;
        let alone = self.header_len.saturating_add(needed.saturating_sub(start));
        if alone > self.writer.buffer.len() {
            return Err(EncodeError::TooLarge {
                needed: alone,
                max: self.writer.buffer.len(),
            });
        }
        Ok(Fit::Full)
    }
}

impl FlowRecord<'_> {
    fn write(&self, writer: &mut Writer) {
        match self {
            FlowRecord::RawHeader(raw) => writer.record(DataFormat::RAW_HEADER, |writer| {
                writer.word(raw.protocol);
                writer.word(raw.frame_length);
                writer.word(raw.stripped);
                writer.opaque(raw.header);
            }),
            FlowRecord::Switch(switch) => writer.record(DataFormat::EXTENDED_SWITCH, |writer| {
                switch.write_to(writer);
            }),
            FlowRecord::Router(router) => writer.record(DataFormat::EXTENDED_ROUTER, |writer| {
                router.write_to(writer);
            }),
            FlowRecord::Mpls(mpls) => writer.record(DataFormat::EXTENDED_MPLS, |writer| {
                writer.address(mpls.next_hop);
                for stack in [mpls.input, mpls.output] {
                    writer.count(stack.len());
                    stack.iter().for_each(|&entry| writer.word(entry));
                }
            }),
            FlowRecord::Trap { group, trap } => {
                writer.record(DataFormat::EXTENDED_HW_TRAP, |writer| {
                    writer.opaque(group.as_bytes());
                    writer.opaque(trap.as_bytes());
                })
            }
            FlowRecord::Structure(structure, values) => writer.structure(structure, values),
            FlowRecord::Other(format, body) => writer.record(*format, |writer| writer.padded(body)),
        }
    }
}

impl CounterRecord<'_> {
    fn write(&self, writer: &mut Writer) {
        match self {
            CounterRecord::Interface(counters) => {
                writer.record(DataFormat::INTERFACE_COUNTERS, |writer| {
                    counters.write_to(writer)
                });
            }
            CounterRecord::PortName(name) => {
                writer.record(DataFormat::PORT_NAME, |writer| {
                    writer.opaque(name.as_bytes())
                });
            }
            CounterRecord::Structure(structure, values) => writer.structure(structure, values),
            CounterRecord::Other(format, body) => {
                writer.record(*format, |writer| writer.padded(body))
            }
        }
    }
}

/// XDR into a buffer of fixed size. Writing past its end only moves `at`, so that the size needed
/// is known afterwards and no caller has to look after each write.
#[derive(Debug)]
pub(super) struct Writer {
    buffer: Box<[u8]>,
    at: usize,
    /// A record whose values are not those of its structure.
    wrong: Option<DataFormat>,
}

impl Writer {
    pub(super) fn new(len: usize) -> Writer {
        Writer {
            buffer: vec![0; len].into_boxed_slice(),
            at: 0,
            wrong: None,
        }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// A count and so many words, given as octets.
    pub(super) fn counted_words(&mut self, words: &[u8]) {
        self.count(words.len() / 4);
        self.bytes(words);
    }

    pub(super) fn written(&self) -> &[u8] {
        self.buffer.get(..self.at).unwrap_or(&self.buffer)
    }

    pub(super) fn rewind(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let end = self.at.saturating_add(bytes.len());
        if let Some(room) = self.buffer.get_mut(self.at..end) {
            room.copy_from_slice(bytes);
        }
        self.at = end;
    }

    pub(super) fn word(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(super) fn long(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// A length or a number of records. What is beyond 32 bits is beyond every buffer, too.
    fn count(&mut self, count: usize) {
        self.word(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Bytes and the zeros that bring them to a multiple of four (RFC 4506, section 3).
    pub(super) fn padded(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
        self.bytes(
            [0_u8; 3]
                .get(..bytes.len().wrapping_neg() % 4)
                .unwrap_or(&[]),
        );
    }

    /// `opaque<>` and `string<>`: the length does not count the padding (RFC 4506, 4.10 and 4.11).
    pub(super) fn opaque(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.padded(bytes);
    }

    /// The specification's `address`: its type before it.
    pub(super) fn address(&mut self, address: Option<IpAddr>) {
        match address {
            None => self.word(0),
            Some(IpAddr::V4(address)) => {
                self.word(1);
                self.bytes(&address.octets());
            }
            Some(IpAddr::V6(address)) => {
                self.word(2);
                self.bytes(&address.octets());
            }
        }
    }

    /// One field of a structure. `false` when the value is not of the field's kind.
    fn value(&mut self, kind: Kind, value: &Value<'_>) -> bool {
        match (kind, value) {
            (Kind::U32 | Kind::Hundredths | Kind::Choice(_), Value::U32(value)) => {
                self.word(*value)
            }
            (Kind::I32, Value::I32(value)) => self.word(value.cast_unsigned()),
            (Kind::F32, Value::F32(value)) => self.word(value.to_bits()),
            (Kind::U64 | Kind::Id64, Value::U64(value)) => self.long(*value),
            (Kind::Octet, Value::Octet(value)) => self.bytes(&[*value]),
            (Kind::Text | Kind::Octets, Value::Octets(value)) => self.opaque(value),
            (Kind::Address, Value::Address(value)) => self.address(*value),
            (Kind::Ipv4, Value::Address(Some(IpAddr::V4(value)))) => self.bytes(&value.octets()),
            (Kind::Ipv6, Value::Address(Some(IpAddr::V6(value)))) => self.bytes(&value.octets()),
            (Kind::Mac, Value::Mac(value)) => self.padded(value),
            (Kind::Uuid, Value::Uuid(value)) => self.bytes(value),
            (Kind::Words | Kind::Labels | Kind::Tags | Kind::Percentages, Value::Words(words)) => {
                self.count(words.len() / 4);
                self.padded(words);
            }
            (Kind::AsPath | Kind::Adaptors | Kind::Lanes, Value::List(count, items)) => {
                self.word(*count);
                self.padded(items);
            }
            (Kind::Rest, Value::Octets(value)) => self.padded(value),
            _ => return false,
        }
        true
    }

    pub(super) fn patch(&mut self, at: usize, value: u32) {
        if let Some(room) = self.buffer.get_mut(at..at.saturating_add(4)) {
            room.copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Format, length, body; the length is known only after the body is there.
    pub(super) fn framed<T>(
        &mut self,
        format: DataFormat,
        body: impl FnOnce(&mut Writer) -> T,
    ) -> T {
        self.word(format.to_wire());
        let length_at = self.at;
        self.word(0);
        let result = body(self);
        let length = self.at.saturating_sub(length_at.saturating_add(4));
        self.patch(length_at, u32::try_from(length).unwrap_or(u32::MAX));
        result
    }

    /// A record by the table. Where a value does not fit its field the mistake is remembered, and the sample
    /// is an error.
    fn structure(&mut self, structure: &Structure, values: &[Value<'_>]) {
        let mut sound =
            values.len() <= structure.fields.len() && values.len() >= structure.required;
        self.framed(structure.format, |writer| {
            for (field, value) in structure.fields.iter().zip(values) {
                sound &= writer.value(field.kind, value);
            }
        });
        if !sound {
            self.wrong = Some(structure.format);
        }
    }

    fn record(&mut self, format: DataFormat, body: impl FnOnce(&mut Writer)) {
        self.framed(format, body);
    }

    /// Two words, or 8 bits of class and 24 of index in one.
    fn source(&mut self, source: Source, compact: bool) -> Result<(), EncodeError> {
        if !compact {
            self.word(source.class);
            self.word(source.index);
            return Ok(());
        }
        fits("source class", source.class, 8)?;
        fits("source index", source.index, 24)?;
        self.word(source.class << 24 | source.index);
        Ok(())
    }

    /// Two words, or 2 bits of format and 30 of value in one.
    fn port(&mut self, field: &'static str, port: Port, compact: bool) -> Result<(), EncodeError> {
        if !compact {
            self.word(port.format);
            self.word(port.value);
            return Ok(());
        }
        fits(field, port.format, 2)?;
        fits(field, port.value, 30)?;
        self.word(port.format << 30 | port.value);
        Ok(())
    }
}

fn fits(field: &'static str, value: u32, bits: u32) -> Result<(), EncodeError> {
    if value >> bits == 0 {
        Ok(())
    } else {
        Err(EncodeError::NotCompact { field, value })
    }
}
