//! The exporter's half: puts templates and records into messages, in one buffer that is allocated once.
//!
//! ```text
//! template, record, record … → Fit::Full → finish(sequence, time) → send → clear → the one that did not fit
//! ```
//!
//! A record is octets to this module: whoever has the flow writes its fields in the template's order. Sets are
//! opened and closed as the kind of what is added changes. The length is never more than what was asked for, so a
//! message fits a path's MTU.
//!
//! What differs between the two versions is here and nowhere else: headers, numbers of sets, scopes, padding.
//! What version 9 cannot say (enterprises, variable lengths) is an error.

use super::template::{Field, Space, Template, VARIABLE};
use super::{
    FIRST_DATA_SET, OPTIONS_TEMPLATE_SET, OPTIONS_TEMPLATE_SET_9, TEMPLATE_SET, TEMPLATE_SET_9,
    Version,
};

/// Octets of the smallest message that may be asked for.
pub const LEAST: usize = 128;
/// Octets of the longest message (RFC 7011 3.1: 16 bits).
pub const MOST: usize = 65_535;

/// What became of what was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fit {
    /// It is in the message.
    Added,
    /// No room is left: send what is there, clear, and add it again.
    Full,
}

/// Why something can never be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// It is larger than an empty message.
    #[error("{needed} octets do not fit a message of {most}, not even alone")]
    TooLarge {
        /// What the message would be long.
        needed: usize,
        /// What it may be long.
        most: usize,
    },
    /// Data and templates have numbers from 256 on.
    #[error("{0} is no number of a template")]
    TemplateNumber(u16),
    /// More fields than a template can say, or none.
    #[error("a template of {0} fields")]
    Fields(usize),
    /// NetFlow version 9 has no word for it.
    #[error(
        "NetFlow version 9 has neither enterprises nor fields of variable length nor records of version 5"
    )]
    NotInVersion9,
}

/// Builds messages. See the module.
#[derive(Debug)]
pub struct MessageBuilder {
    version: Version,
    domain: u32,
    most: usize,
    buffer: Vec<u8>,
    /// The set being filled: its number, and where it begins.
    set: Option<(u16, usize)>,
    /// Data records, options included (RFC 7011 3.1: what sequence numbers count).
    records: u32,
    /// Templates and records (RFC 3954 5.1: what version 9's header counts).
    all: u16,
}

impl MessageBuilder {
    /// A builder of IPFIX or NetFlow version 9 messages of at most `most` octets, moved into what is possible.
    /// Version 5 has a builder of its own, asked for here it is taken as 9.
    #[must_use]
    pub fn new(version: Version, domain: u32, most: usize) -> MessageBuilder {
        let most = most.clamp(LEAST, MOST);
        let mut builder = MessageBuilder {
            version,
            domain,
            most,
            buffer: Vec::with_capacity(most),
            set: None,
            records: 0,
            all: 0,
        };
        builder.clear();
        builder
    }

    fn header_length(&self) -> usize {
        if self.is_ipfix() { 16 } else { 20 }
    }

    fn is_ipfix(&self) -> bool {
        self.version == Version::Ipfix
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// Octets so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Data records so far, options included.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        let header = self.header_length();
        self.buffer.clear();
        self.buffer.resize(header, 0);
        (self.set, self.records, self.all) = (None, 0, 0);
    }

    /// Adds a template or an options template.
    ///
    /// # Errors
    /// When no message can hold it, or the version has no word for it.
    pub fn template(&mut self, template: &Template) -> Result<Fit, EncodeError> {
        self.check(template)?;
        let set = match (self.is_ipfix(), template.is_options()) {
            (true, false) => TEMPLATE_SET,
            (true, true) => OPTIONS_TEMPLATE_SET,
            (false, false) => TEMPLATE_SET_9,
            (false, true) => OPTIONS_TEMPLATE_SET_9,
        };
        let specifiers: usize = template
            .fields
            .iter()
            .map(|field| if enterprise(field).is_some() { 8 } else { 4 })
            .sum();
        let header = if template.is_options() { 6 } else { 4 };
        // An options template of version 9 has its padding right behind it: no second one in its set. Nor in IPFIX: nfdump
        // reads the first one of a set only.
        let begin = if template.is_options() {
            self.close()
        } else {
            self.buffer.len()
        };
        let fit = self.open(set, header + specifiers)?;
        if fit == Fit::Full {
            self.buffer.truncate(begin.max(self.header_length()));
            return Ok(fit);
        }
        self.write_template(template);
        self.all = self.all.saturating_add(1);
        Ok(Fit::Added)
    }

    fn check(&self, template: &Template) -> Result<(), EncodeError> {
        if template.id < FIRST_DATA_SET {
            return Err(EncodeError::TemplateNumber(template.id));
        }
        // Version 9 tells octets of specifiers, four each, in 16 bits.
        let most = if self.is_ipfix() { 65_535 } else { 16_383 };
        let count = template.fields.len();
        if count == 0 || count > most || usize::from(template.scopes) > count {
            return Err(EncodeError::Fields(count));
        }
        let foreign = |field: &Field| enterprise(field).is_some() || field.length == VARIABLE;
        if !self.is_ipfix() && template.fields.iter().any(foreign) {
            return Err(EncodeError::NotInVersion9);
        }
        Ok(())
    }

    fn write_template(&mut self, template: &Template) {
        let (count, scopes) = (template.fields.len() as u16, template.scopes);
        self.word(template.id);
        match (self.is_ipfix(), template.is_options()) {
            (_, false) => self.word(count),
            (true, true) => {
                self.word(count);
                self.word(scopes);
            }
            (false, true) => {
                self.word(scopes.saturating_mul(4));
                self.word(count.saturating_sub(scopes).saturating_mul(4));
            }
        }
        for (place, field) in template.fields.iter().enumerate() {
            let scope = place < usize::from(scopes);
            match enterprise(field) {
                Some(enterprise) => {
                    self.word(field.number | 0x8000);
                    self.word(field.length);
                    self.buffer.extend_from_slice(&enterprise.to_be_bytes());
                }
                None => {
                    self.word(if scope && !self.is_ipfix() {
                        scope_9(field)
                    } else {
                        field.number
                    });
                    self.word(field.length);
                }
            }
        }
    }

    /// Adds a record that is described by template `id`.
    ///
    /// # Errors
    /// When no message can hold it.
    #[inline]
    pub fn record(&mut self, id: u16, octets: &[u8]) -> Result<Fit, EncodeError> {
        if id < FIRST_DATA_SET {
            return Err(EncodeError::TemplateNumber(id));
        }
        let fit = self.open(id, octets.len())?;
        if fit == Fit::Added {
            self.buffer.extend_from_slice(octets);
            self.records += 1;
            self.all = self.all.saturating_add(1);
        }
        Ok(fit)
    }

    /// Makes room for so many octets in a set with this number, a new one if need be.
    #[inline]
    fn open(&mut self, set: u16, octets: usize) -> Result<Fit, EncodeError> {
        let same = self.set.is_some_and(|(open, _)| open == set);
        // Version 9 pads sets to a multiple of four (RFC 3954, 5.2): room for it is kept.
        let padding = if self.is_ipfix() { 0 } else { 3 };
        let needed = octets + if same { 0 } else { 4 } + padding * if same { 1 } else { 2 };
        if self.buffer.len() + needed > self.most {
            let alone = self.header_length() + 4 + octets + padding;
            if self.is_empty() || alone > self.most {
                return Err(EncodeError::TooLarge {
                    needed: alone,
                    most: self.most,
                });
            }
            return Ok(Fit::Full);
        }
        if !same {
            self.close();
            self.set = Some((set, self.buffer.len()));
            self.word(set);
            self.word(0);
        }
        Ok(Fit::Added)
    }

    /// Closes the open set; returns where the next one begins.
    fn close(&mut self) -> usize {
        if let Some((_, begin)) = self.set.take() {
            if !self.is_ipfix() {
                let padding = (self.buffer.len() - begin).wrapping_neg() % 4;
                self.buffer.resize(self.buffer.len() + padding, 0);
            }
            let length = (self.buffer.len() - begin) as u16;
            self.put(begin + 2, &length.to_be_bytes());
        }
        self.buffer.len()
    }

    /// The message as it goes out: `sequence` is what came before it, `time` seconds since 1970, `uptime`
    /// milliseconds (version 9 only).
    pub fn finish(&mut self, sequence: u32, time: u32, uptime: u32) -> &[u8] {
        self.close();
        self.put(0, &if self.is_ipfix() { 10_u16 } else { 9 }.to_be_bytes());
        let words = if self.is_ipfix() {
            let length = self.buffer.len() as u16;
            self.put(2, &length.to_be_bytes());
            [time, sequence, self.domain, 0]
        } else {
            let all = self.all;
            self.put(2, &all.to_be_bytes());
            [uptime, time, sequence, self.domain]
        };
        let count = self.header_length() / 4 - 1;
        for (place, word) in words.iter().enumerate().take(count) {
            self.put(4 + 4 * place, &word.to_be_bytes());
        }
        &self.buffer
    }

    fn word(&mut self, value: u16) {
        self.buffer.extend_from_slice(&value.to_be_bytes());
    }

    fn put(&mut self, at: usize, octets: &[u8]) {
        if let Some(place) = self.buffer.get_mut(at..at + octets.len()) {
            place.copy_from_slice(octets);
        }
    }
}

fn enterprise(field: &Field) -> Option<u32> {
    match field.space {
        Space::Enterprise(enterprise) => Some(enterprise),
        _ => None,
    }
}

/// The scopes of version 9 (RFC 3954, 6.1) for IPFIX's elements: an interface, a template, else the system.
fn scope_9(field: &Field) -> u16 {
    match (field.space, field.number) {
        (Space::Scope9, number) => number,
        (_, 10 | 14) => 2,
        (_, 145) => 5,
        _ => 1,
    }
}

/// Appends a field of variable length (RFC 7011, 7): at most 65,535 octets, what is more is cut off.
pub fn push_variable(record: &mut Vec<u8>, octets: &[u8]) {
    let octets = octets.get(..usize::from(u16::MAX)).unwrap_or(octets);
    match u8::try_from(octets.len()) {
        Ok(length @ 0..=254) => record.push(length),
        _ => {
            record.push(255);
            record.extend_from_slice(&(octets.len() as u16).to_be_bytes());
        }
    }
    record.extend_from_slice(octets);
}
