//! Datagrams of versions 2 and 4 (RFC 3176 and its successor), turned into version 5.
//!
//! The old versions have the same content in a rigid form: no lengths, so that nothing unknown can be
//! stepped over, one kind of packet data a sample, extended data without strings' character sets. Turned
//! into version 5 they go through everything that version 5 goes through, and nothing else in this
//! module's siblings knows that they exist. What the old ones do not have is what version 5 says for
//! unknown: sub-agent 0, no next hop of BGP, character set 0.
//!
//! A sample that contradicts itself ends the datagram: without lengths nobody knows where the next
//! begins. What came before it is kept.

use std::net::IpAddr;

use super::cursor::Cursor;
use super::decode::{Datagram, DecodeError, Problem};
use super::encode::Writer;
use super::records::{EthernetCounters, InterfaceCounters, VlanCounters};
use super::{DataFormat, VERSION};

/// What an octet of the old form can become at most, with room for the headers that are new.
const GROWTH: usize = 8;

/// The version that a datagram says it is of.
#[must_use]
pub fn version(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_be_bytes)
}

/// A datagram of version 2, 4 or 5: itself, the version it came in, and what was wrong with it when it was
/// turned into version 5. `room` is where it then is.
///
/// # Errors
/// When it is of another version, or ends inside the header.
pub fn decode<'a>(
    bytes: &'a [u8],
    room: &'a mut Vec<u8>,
) -> Result<(Datagram<'a>, u32, Option<DecodeError>), DecodeError> {
    match version(bytes) {
        Some(old @ (2 | 4)) => {
            let (newer, wrong) = to_version_5(bytes)?;
            *room = newer;
            Ok((Datagram::decode(room)?, old, wrong))
        }
        _ => Ok((Datagram::decode(bytes)?, VERSION, None)),
    }
}

/// A datagram of version 2 or 4 as one of version 5, and what was wrong with the rest of it.
///
/// # Errors
/// When it is of another version, or ends inside the header.
pub fn to_version_5(bytes: &[u8]) -> Result<(Vec<u8>, Option<DecodeError>), DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let start = cursor;
    let old = cursor.word("version")?;
    if !matches!(old, 2 | 4) {
        return Err(start.error(Problem::Version(old)));
    }
    let agent = cursor.address("agent address")?;
    let (sequence, uptime) = (
        cursor.word("datagram sequence number")?,
        cursor.word("uptime")?,
    );
    let announced = cursor.word("number of samples")?;
    let mut writer = Writer::new(64_usize.saturating_add(bytes.len().saturating_mul(GROWTH)));
    writer.word(VERSION);
    writer.address(agent);
    for word in [0, sequence, uptime] {
        writer.word(word);
    }
    let count_at = writer.at();
    writer.word(0);
    let (mut read, mut wrong) = (0, None);
    while read < announced {
        if let Err(error) = sample(&mut cursor, &mut writer, old) {
            wrong = Some(error);
            break;
        }
        read += 1;
    }
    writer.patch(count_at, read);
    Ok((writer.written().to_vec(), wrong))
}

/// One sample, or nothing at all.
fn sample(cursor: &mut Cursor<'_>, writer: &mut Writer, old: u32) -> Result<(), DecodeError> {
    let before = writer.at();
    let start = *cursor;
    let outcome = match cursor.word("sample type")? {
        1 => writer.framed(DataFormat::FLOW_SAMPLE, |writer| flow(cursor, writer, old)),
        2 => writer.framed(DataFormat::COUNTERS_SAMPLE, |writer| {
            counters(cursor, writer)
        }),
        other => Err(start.error(Problem::SampleType(other))),
    };
    if outcome.is_err() {
        writer.rewind(before);
    }
    outcome
}

fn words(
    cursor: &mut Cursor<'_>,
    writer: &mut Writer,
    count: usize,
    name: &'static str,
) -> Result<(), DecodeError> {
    writer.bytes(cursor.bytes(name, count * 4)?);
    Ok(())
}

fn flow(cursor: &mut Cursor<'_>, writer: &mut Writer, old: u32) -> Result<(), DecodeError> {
    // Sequence, source, rate, pool, drops, input, output: as in version 5's compact form.
    words(cursor, writer, 7, "flow sample")?;
    let count_at = writer.at();
    writer.word(0);
    let start = *cursor;
    match cursor.word("packet data type")? {
        1 => writer.framed(DataFormat::RAW_HEADER, |writer| {
            words(cursor, writer, 2, "sampled header")?;
            // Octets stripped: the old versions do not tell.
            writer.word(0);
            writer.opaque(cursor.opaque("sampled header")?);
            Ok(())
        })?,
        2 => writer.framed(DataFormat::standard(3), |writer| {
            words(cursor, writer, 8, "IPv4 data")
        })?,
        3 => writer.framed(DataFormat::standard(4), |writer| {
            words(cursor, writer, 14, "IPv6 data")
        })?,
        other => return Err(start.error(Problem::PacketDataType(other))),
    }
    let extended = cursor.word("number of extended data")?;
    for _ in 0..extended {
        self::extended(cursor, writer, old)?;
    }
    writer.patch(count_at, extended.saturating_add(1));
    Ok(())
}

fn extended(cursor: &mut Cursor<'_>, writer: &mut Writer, old: u32) -> Result<(), DecodeError> {
    let start = *cursor;
    let kind = cursor.word("extended data type")?;
    let format = match kind {
        1..=5 => DataFormat::standard(1000 + kind),
        other => return Err(start.error(Problem::ExtendedType(other))),
    };
    writer.framed(format, |writer| match kind {
        1 => words(cursor, writer, 4, "switch"),
        2 => {
            let next_hop: Option<IpAddr> = cursor.address("next hop")?;
            writer.address(next_hop);
            words(cursor, writer, 2, "prefix lengths")
        }
        3 => gateway(cursor, writer, old),
        4 => {
            for _ in 0..2 {
                writer.word(0);
                writer.opaque(cursor.opaque("user")?);
            }
            Ok(())
        }
        _ => {
            words(cursor, writer, 1, "URL direction")?;
            writer.opaque(cursor.opaque("URL")?);
            // The host: version 5 only.
            writer.opaque(&[]);
            Ok(())
        }
    })
}

fn gateway(cursor: &mut Cursor<'_>, writer: &mut Writer, old: u32) -> Result<(), DecodeError> {
    writer.address(None);
    words(cursor, writer, 3, "autonomous systems")?;
    if old == 2 {
        // A path without segments: as one sequence.
        let path = cursor.words("AS path")?;
        writer.word(u32::from(!path.is_empty()));
        if !path.is_empty() {
            writer.word(2);
            writer.counted_words(path);
        }
        writer.word(0);
        writer.word(0);
        return Ok(());
    }
    let start = *cursor;
    let segments = cursor.word("AS path")?;
    if segments as usize > cursor.left() / 8 {
        return Err(start.error(Problem::Truncated {
            field: "AS path",
            needed: (segments as usize).saturating_mul(8),
            left: cursor.left(),
        }));
    }
    writer.word(segments);
    for _ in 0..segments {
        words(cursor, writer, 1, "AS path")?;
        writer.counted_words(cursor.words("AS path")?);
    }
    writer.counted_words(cursor.words("communities")?);
    words(cursor, writer, 1, "local preference")
}

fn counters(cursor: &mut Cursor<'_>, writer: &mut Writer) -> Result<(), DecodeError> {
    words(cursor, writer, 2, "counters sample")?;
    // How often the agent reports: nothing of version 5 says it.
    cursor.word("sampling interval")?;
    let start = *cursor;
    let kind = cursor.word("counters type")?;
    let more = match kind {
        1 | 4 | 6 => None,
        2 => Some((EthernetCounters::STRUCTURE.format, 13)),
        3 => Some((DataFormat::standard(3), 18)),
        5 => Some((DataFormat::standard(4), 20)),
        7 => {
            writer.word(1);
            return writer.framed(VlanCounters::STRUCTURE.format, |writer| {
                words(cursor, writer, 7, "VLAN counters")
            });
        }
        other => return Err(start.error(Problem::CountersType(other))),
    };
    writer.word(1 + u32::from(more.is_some()));
    writer.framed(InterfaceCounters::STRUCTURE.format, |writer| {
        words(
            cursor,
            writer,
            InterfaceCounters::WIRE_LEN / 4,
            "interface counters",
        )
    })?;
    more.map_or(Ok(()), |(format, count)| {
        writer.framed(format, |writer| words(cursor, writer, count, "counters"))
    })
}
