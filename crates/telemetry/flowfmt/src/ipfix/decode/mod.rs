//! The collector's half: messages in, records out, with what they need remembered between them.
//!
//! A [`Collector`] is handed datagrams (or messages of a stream) with who sent them, and tells what is in them as
//! [`Item`]s, in order: messages, templates, records, and all that could not be decoded and why. Nothing is
//! passed over in silence.
//!
//! Whatever comes in, memory stays bounded: templates, sessions and sets that wait for their template are
//! forgotten when there are too many, those unused for the longest time first. Work is bounded by the octets of the
//! message: a template whose records could be empty is refused, no more of a template is looked at than a set has octets for,
//! and sets that wait are found by what they wait for.
//!
//! Templates belong to a session: who sends, and the observation domain (RFC 7011 8; RFC 3954 5.1). A set
//! that comes before its template waits for it, as collectors that begin in the middle of a session need it
//! (RFC 7011, 8 allows it); [`Collector::finish`] says which of them got none.

mod message;
mod sets;
mod waiting;

use std::net::SocketAddr;
use std::sync::Arc;

pub use message::message_length;

use super::Version;
use super::bounded::Bounded;
use super::elements::Value;
use super::template::{Field, Template};
use waiting::Waiting;

/// Fields of all templates that are remembered, each template counted as one more.
pub const MOST_FIELDS: usize = 1 << 18;
/// Sessions whose sequence numbers are followed.
pub const MOST_SESSIONS: usize = 1 << 14;
/// Octets that wait for templates, each set counted as [`HELD_COST`] more.
pub const MOST_HELD: usize = 1 << 20;
/// What holding a set costs beside its octets: itself twice in trees whose nodes are at least half full.
pub const HELD_COST: usize = 512;
const _: () = assert!(HELD_COST >= 2 * (size_of::<Held>() + 2 * size_of::<(Awaited, u64)>()));
/// Fields of no octets that a template may have: they cost time and no octets of the message.
pub const MOST_EMPTY_FIELDS: usize = 16;

/// A message's header, and who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whose message.
    pub exporter: SocketAddr,
    /// What is spoken.
    pub version: Version,
    /// Observation domain, source id, or engine type and id.
    pub domain: u32,
    /// The number: records (IPFIX), messages (version 9) or flows (version 5) before this message.
    pub sequence: u32,
    /// When it was exported: nanoseconds since 1970.
    pub time: u64,
    /// Milliseconds since the exporter started; IPFIX does not have it.
    pub uptime: Option<u32>,
    /// Version 5: mode (2 bits) and interval (14) of sampling.
    pub sampling: Option<u16>,
}

impl Header {
    /// Nanoseconds since 1970 of a moment reported in milliseconds of the exporter's uptime.
    #[must_use]
    pub fn at_uptime(&self, milliseconds: u32) -> Option<u64> {
        // Both numbers wrap; the moment may be a little after the export, too.
        let ago = i64::from(self.uptime?.wrapping_sub(milliseconds).cast_signed());
        self.time.checked_add_signed(ago.checked_mul(-1_000_000)?)
    }
}

/// A record: a row of fields.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The message it came in.
    pub header: &'a Header,
    /// What it consists of.
    pub template: &'a Template,
    octets: &'a [u8],
}

impl<'a> Record<'a> {
    /// Its fields in order, with the octets of each.
    pub fn octets(&self) -> impl Iterator<Item = (Field, &'a [u8])> {
        self.template.split(self.octets)
    }

    /// Its fields in order.
    pub fn fields(&self) -> impl Iterator<Item = (Field, Value<'a>)> {
        self.octets()
            .map(|(field, octets)| (field, Value::read(field.kind(), octets)))
    }

    /// The first field with this number of IANA's registry, as a number.
    #[must_use]
    pub fn number(&self, number: u16) -> Option<u64> {
        self.fields()
            .find(|(field, _)| *field == Field::iana(number, field.length))?
            .1
            .as_u64()
    }
}

/// What a message held.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A message began.
    Message(&'a Header),
    /// A template, new or as it was.
    Template(&'a Header, &'a Template),
    /// A template is no more; 2 and 3 are all templates and all options templates (RFC 7011 8.1).
    Withdrawn(&'a Header, u16),
    /// A record.
    Record(Record<'a>),
    /// The sequence number is not the one that had to come.
    Sequence(&'a Header, Gap),
    /// Something could not be decoded.
    Undecoded(Undecoded),
}

/// A sequence number that was not expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The number that had to come.
    pub expected: u32,
    /// The one that came.
    pub found: u32,
}

impl Gap {
    /// How many records (version 9: messages; 5: flows) are missing; `None` when the number went back, as after
    /// a restart or when messages overtake each other.
    #[must_use]
    pub fn missing(&self) -> Option<u32> {
        let ahead = self.found.wrapping_sub(self.expected);
        (ahead < 1 << 31).then_some(ahead)
    }
}

/// What could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecoded {
    /// Who sent it.
    pub exporter: SocketAddr,
    /// Where in the message.
    pub offset: usize,
    /// How many octets were passed over.
    pub octets: usize,
    /// Why.
    pub why: Problem,
}

/// Why something could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Shorter than a header.
    #[error("{left} octets are no message: a header of version {version} has {needed}")]
    ShortHeader {
        /// What its first word says.
        version: u16,
        /// Octets that the header has.
        needed: usize,
        /// Octets there are.
        left: usize,
    },
    /// Not one of the three.
    #[error("version {0} is neither IPFIX (10) nor NetFlow 9 or 5")]
    Version(u16),
    /// The length in the header cannot be.
    #[error("the header says {said} octets, there are {left}")]
    MessageLength {
        /// The header's word.
        said: usize,
        /// Octets there are.
        left: usize,
    },
    /// The length of a set cannot be; nothing behind it can be found.
    #[error("set {set} says {said} octets, there are {left}")]
    SetLength {
        /// Its number.
        set: u16,
        /// What it says.
        said: usize,
        /// Octets there are.
        left: usize,
    },
    /// Too few octets for a set's header.
    #[error("{0} octets behind the last set")]
    BehindSets(usize),
    /// A number that is reserved.
    #[error("set {0} is neither of templates nor of data")]
    ReservedSet(u16),
    /// Its template never came, or was forgotten.
    #[error("no template {0} for this set")]
    NoTemplate(u16),
    /// A template ends early.
    #[error("template {0} ends before its last field")]
    ShortTemplate(u16),
    /// A number below 256.
    #[error("template {0} has a number that is none of a template")]
    TemplateNumber(u16),
    /// An options template needs a scope, and has no more of them than fields (RFC 7011, 3.4.2.2).
    #[error("options template {0} has {1} scope fields of {2} fields")]
    Scopes(u16, u16, u16),
    /// Records of no octets: a set would hold any number of them.
    #[error("records of template {0} would have no octets")]
    EmptyRecords(u16),
    /// Fields of no octets.
    #[error("template {0} has {1} fields of no octets, more than {MOST_EMPTY_FIELDS}")]
    EmptyFields(u16, usize),
    /// A record is cut.
    #[error("the set of template {template} ends inside of a record, {left} octets in")]
    ShortRecord {
        /// Its template.
        template: u16,
        /// Octets of the record that are there.
        left: usize,
    },
    /// What is behind the last record is no padding.
    #[error("{left} octets behind the last record of template {template} that are no padding")]
    Padding {
        /// The template.
        template: u16,
        /// How many.
        left: usize,
    },
    /// The header of version 5 tells of more records than there are.
    #[error("the header says {said} records, there are {found}")]
    Count {
        /// The header's word.
        said: u16,
        /// Whole records there are.
        found: usize,
    },
}

/// Whom a template belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Session {
    exporter: SocketAddr,
    version: Version,
    domain: u32,
}

impl Session {
    fn of(header: &Header) -> Session {
        Session {
            exporter: header.exporter,
            version: header.version,
            domain: header.domain,
        }
    }

    /// All that an exporter may have, first and last.
    fn all_of(exporter: SocketAddr) -> (Session, Session) {
        let of = |version, domain| Session {
            exporter,
            version,
            domain,
        };
        (of(Version::NetFlow5, 0), of(Version::Ipfix, u32::MAX))
    }
}

/// What a set waits for: a session's template.
type Awaited = (Session, u16);

/// A set that came before its template.
#[derive(Debug)]
struct Held {
    header: Header,
    template: u16,
    offset: usize,
    octets: Box<[u8]>,
}

/// What came of everything so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "counters that say what they count")]
pub struct Totals {
    pub messages: u64,
    pub records: u64,
    pub options_records: u64,
    pub templates: u64,
    pub undecoded: u64,
    pub undecoded_octets: u64,
    pub missing: u64,
    pub templates_forgotten: u64,
}

/// Reads messages of any number of exporters. See the module.
#[derive(Debug)]
pub struct Collector {
    /// By whose they are, whether they are of options, and their number: all of a kind are withdrawn at once.
    templates: Bounded<(Session, bool, u16), Arc<Template>>,
    expected: Bounded<Session, u32>,
    held: Waiting<Awaited, Held>,
    totals: Totals,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector {
            templates: Bounded::new(MOST_FIELDS),
            expected: Bounded::new(MOST_SESSIONS),
            held: Waiting::new(),
            totals: Totals::default(),
        }
    }
}

impl Collector {
    /// One that knows nothing yet.
    #[must_use]
    pub fn new() -> Collector {
        Collector::default()
    }

    /// What came of everything so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            templates_forgotten: self.templates.forgotten(),
            ..self.totals
        }
    }

    /// Templates that are remembered.
    #[must_use]
    pub fn templates(&self) -> usize {
        self.templates.len()
    }

    /// A session of a stream is over: its templates and numbers are forgotten (RFC 7011, 8.1 and 10.4).
    pub fn forget(&mut self, exporter: SocketAddr) {
        let (first, last) = Session::all_of(exporter);
        self.templates
            .remove_range((first.clone(), false, 0)..=(last.clone(), true, u16::MAX));
        self.expected.remove_range(first..=last);
    }

    /// The sequence numbers of an exporter are forgotten, its templates are not: the next message begins anew.
    /// For a collector that reads stored templates when it starts.
    pub fn forget_sequence(&mut self, exporter: SocketAddr) {
        let (first, last) = Session::all_of(exporter);
        self.expected.remove_range(first..=last);
    }

    /// Reads a datagram, or a message of a stream.
    pub fn read(&mut self, exporter: SocketAddr, octets: &[u8], sink: &mut dyn FnMut(Item<'_>)) {
        if let Err((offset, why)) = self.message(exporter, octets, sink) {
            self.undecoded(
                exporter,
                offset,
                octets.len().saturating_sub(offset),
                why,
                sink,
            );
        }
    }

    /// Nothing more comes: what still waits for a template is undecoded.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Item<'_>)) {
        while let Some(held) = self.held.pop_oldest() {
            self.give_up(&held, sink);
        }
    }

    fn give_up(&mut self, held: &Held, sink: &mut dyn FnMut(Item<'_>)) {
        let why = Problem::NoTemplate(held.template);
        self.undecoded(
            held.header.exporter,
            held.offset,
            held.octets.len(),
            why,
            sink,
        );
    }

    fn undecoded(
        &mut self,
        exporter: SocketAddr,
        offset: usize,
        octets: usize,
        why: Problem,
        sink: &mut dyn FnMut(Item<'_>),
    ) {
        self.totals.undecoded += 1;
        self.totals.undecoded_octets += octets as u64;
        sink(Item::Undecoded(Undecoded {
            exporter,
            offset,
            octets,
            why,
        }));
    }

    /// Keeps a set until its template comes; the oldest ones give up when there are too many.
    fn hold(
        &mut self,
        header: &Header,
        template: u16,
        offset: usize,
        octets: &[u8],
        sink: &mut dyn FnMut(Item<'_>),
    ) {
        let held = Held {
            header: header.clone(),
            template,
            offset,
            octets: octets.into(),
        };
        self.held.push(
            (Session::of(header), template),
            octets.len() + HELD_COST,
            held,
        );
        while let Some(oldest) = self.held.pop_beyond(MOST_HELD) {
            self.give_up(&oldest, sink);
        }
    }

    /// A template came: what waited for it is read.
    fn release(&mut self, session: &Session, template: &Template, sink: &mut dyn FnMut(Item<'_>)) {
        let awaited = (session.clone(), template.id);
        while let Some(held) = self.held.pop(&awaited) {
            self.records(&held.header, template, held.offset, &held.octets, sink);
        }
    }
}
