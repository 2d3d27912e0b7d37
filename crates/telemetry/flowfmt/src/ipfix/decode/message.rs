//! Headers, and the sets between them and the end of a message.

use std::net::SocketAddr;

use super::super::template::{Field, Template};
use super::super::{
    FIRST_DATA_SET, OPTIONS_TEMPLATE_SET, OPTIONS_TEMPLATE_SET_9, TEMPLATE_SET, TEMPLATE_SET_9,
    Version,
};
use super::{Collector, Gap, Header, Item, Problem, Session};

const SECOND: u64 = 1_000_000_000;

/// Octets of the headers (RFC 7011 3.1; RFC 3954 5.1; version 5).
const HEADER_10: usize = 16;
const HEADER_9: usize = 20;
const HEADER_5: usize = 24;
/// Octets of a record of version 5.
const RECORD_5: usize = 48;

/// How long the IPFIX message is that these octets begin with, as far as they say: for reading from a stream or a file.
#[must_use]
pub fn message_length(octets: &[u8]) -> Option<usize> {
    word(octets, 2).map(usize::from)
}

pub(super) fn word(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(
        octets.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

pub(super) fn long(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(
        octets.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

/// The fixed record of version 5 as a template.
fn template_5() -> Template {
    const FIELDS: [(u16, u16); 20] = [
        (8, 4),
        (12, 4),
        (15, 4),
        (10, 2),
        (14, 2),
        (2, 4),
        (1, 4),
        (22, 4),
        (21, 4),
        (7, 2),
        (11, 2),
        (210, 1),
        (6, 1),
        (4, 1),
        (5, 1),
        (16, 2),
        (17, 2),
        (9, 1),
        (13, 1),
        (210, 2),
    ];
    Template::data(
        0,
        FIELDS
            .iter()
            .map(|(number, length)| Field::iana(*number, *length))
            .collect(),
    )
}

fn header(version: Version, exporter: SocketAddr, octets: &[u8]) -> Option<Header> {
    let at = |place| long(octets, place);
    let seconds = |place| at(place).map(|seconds| u64::from(seconds) * SECOND);
    Some(match version {
        Version::Ipfix => Header {
            exporter,
            version,
            domain: at(12)?,
            sequence: at(8)?,
            time: seconds(4)?,
            uptime: None,
            sampling: None,
        },
        Version::NetFlow9 => Header {
            exporter,
            version,
            domain: at(16)?,
            sequence: at(12)?,
            time: seconds(8)?,
            uptime: Some(at(4)?),
            sampling: None,
        },
        Version::NetFlow5 => Header {
            exporter,
            version,
            domain: word(octets, 20)?.into(),
            sequence: at(16)?,
            time: seconds(8)? + u64::from(at(12)?),
            uptime: Some(at(4)?),
            sampling: Some(word(octets, 22)?),
        },
    })
}

impl Collector {
    /// Reads a message; an error stands for all from its offset on.
    pub(super) fn message(
        &mut self,
        exporter: SocketAddr,
        octets: &[u8],
        sink: &mut dyn FnMut(Item<'_>),
    ) -> Result<(), (usize, Problem)> {
        let number = word(octets, 0).unwrap_or(0);
        let (version, needed) = match number {
            10 => (Version::Ipfix, HEADER_10),
            9 => (Version::NetFlow9, HEADER_9),
            5 => (Version::NetFlow5, HEADER_5),
            other => return Err((0, Problem::Version(other))),
        };
        let left = octets.len();
        let short = (
            0,
            Problem::ShortHeader {
                version: number,
                needed,
                left,
            },
        );
        if left < needed {
            return Err(short);
        }
        let header = header(version, exporter, octets).ok_or(short)?;
        self.totals.messages += 1;
        sink(Item::Message(&header));
        self.check_sequence(&header, sink);
        let counted = match version {
            Version::NetFlow5 => self.records_5(&header, octets, sink).map(Some),
            Version::NetFlow9 => self.sets(&header, octets, HEADER_9, sink),
            Version::Ipfix => {
                let said = word(octets, 2).unwrap_or(0).into();
                let Some(message) = octets.get(..said).filter(|_| said >= HEADER_10) else {
                    self.expected.remove(&Session::of(&header));
                    return Err((2, Problem::MessageLength { said, left }));
                };
                let counted = self.sets(&header, message, HEADER_10, sink);
                if left > said {
                    self.undecoded(
                        exporter,
                        said,
                        left - said,
                        Problem::MessageLength { said, left },
                        sink,
                    );
                }
                counted
            }
        };
        self.expect(&header, counted.as_ref().ok().copied().flatten());
        counted.map(|_| ())
    }

    fn check_sequence(&mut self, header: &Header, sink: &mut dyn FnMut(Item<'_>)) {
        let Some(expected) = self.expected.touch(&Session::of(header)).copied() else {
            return;
        };
        if expected == header.sequence {
            return;
        }
        let gap = Gap {
            expected,
            found: header.sequence,
        };
        self.totals.missing += gap.missing().map_or(0, u64::from);
        sink(Item::Sequence(header, gap));
    }

    /// `count` records were in the message, or nobody knows how many.
    fn expect(&mut self, header: &Header, count: Option<u32>) {
        let session = Session::of(header);
        // Version 9 counts messages, which needs no look inside (RFC 3954, 5.1).
        let count = if header.version == Version::NetFlow9 {
            Some(1)
        } else {
            count
        };
        match count {
            Some(count) => self
                .expected
                .insert(session, header.sequence.wrapping_add(count), 1),
            None => _ = self.expected.remove(&session),
        }
    }

    /// All sets of a message; how many records were in them, if that can be known.
    fn sets(
        &mut self,
        header: &Header,
        octets: &[u8],
        begin: usize,
        sink: &mut dyn FnMut(Item<'_>),
    ) -> Result<Option<u32>, (usize, Problem)> {
        let (mut offset, mut count) = (begin, Some(0_u32));
        while let Some(rest) = octets.get(offset..).filter(|rest| !rest.is_empty()) {
            let (Some(set), Some(said)) = (word(rest, 0), word(rest, 2)) else {
                // Version 9 pads messages here and there.
                if rest.iter().any(|octet| *octet != 0) {
                    return Err((offset, Problem::BehindSets(rest.len())));
                }
                break;
            };
            let said = usize::from(said);
            let Some(body) = rest.get(4..said) else {
                return Err((
                    offset,
                    Problem::SetLength {
                        set,
                        said,
                        left: rest.len(),
                    },
                ));
            };
            let found = self.set(header, set, offset + 4, body, sink);
            count = count
                .zip(found)
                .map(|(count, found)| count.wrapping_add(found));
            offset += said;
        }
        Ok(count)
    }

    /// One set; how many records it holds, if that can be known.
    fn set(
        &mut self,
        header: &Header,
        set: u16,
        offset: usize,
        body: &[u8],
        sink: &mut dyn FnMut(Item<'_>),
    ) -> Option<u32> {
        match (header.version, set) {
            (_, FIRST_DATA_SET..) => {
                let mut of = |options| {
                    self.templates
                        .touch(&(Session::of(header), options, set))
                        .cloned()
                };
                let Some(template) = of(false).or_else(|| of(true)) else {
                    self.hold(header, set, offset, body, sink);
                    return None;
                };
                return self.records(header, &template, offset, body, sink);
            }
            (Version::Ipfix, TEMPLATE_SET) | (Version::NetFlow9, TEMPLATE_SET_9) => {
                self.template_set(header, false, offset, body, sink);
            }
            (Version::Ipfix, OPTIONS_TEMPLATE_SET)
            | (Version::NetFlow9, OPTIONS_TEMPLATE_SET_9) => {
                self.template_set(header, true, offset, body, sink);
            }
            _ => self.undecoded(
                header.exporter,
                offset,
                body.len(),
                Problem::ReservedSet(set),
                sink,
            ),
        }
        Some(0)
    }

    /// The flows of a message of version 5.
    fn records_5(
        &mut self,
        header: &Header,
        octets: &[u8],
        sink: &mut dyn FnMut(Item<'_>),
    ) -> Result<u32, (usize, Problem)> {
        let said = word(octets, 2).unwrap_or(0);
        let flows = octets.get(HEADER_5..).unwrap_or(&[]);
        let found = (flows.len() / RECORD_5).min(said.into());
        let end = found * RECORD_5;
        let template = template_5();
        self.records(
            header,
            &template,
            HEADER_5,
            flows.get(..end).unwrap_or(&[]),
            sink,
        );
        if end == flows.len() && found == usize::from(said) {
            return Ok(said.into());
        }
        let why = Problem::Count {
            said,
            found: flows.len() / RECORD_5,
        };
        self.undecoded(
            header.exporter,
            HEADER_5 + end,
            flows.len() - end,
            why,
            sink,
        );
        Ok(said.into())
    }

    pub(super) fn say(
        &mut self,
        header: &Header,
        offset: usize,
        octets: usize,
        why: Problem,
        sink: &mut dyn FnMut(Item<'_>),
    ) {
        self.undecoded(header.exporter, offset, octets, why, sink);
    }
}
