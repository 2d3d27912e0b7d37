//! Templates that survive a restart of the collector.
//!
//! A template is kept as a small message that defines it, in the format that it came in; on start these messages are read
//! before any datagram. Memory is bounded: at most [`MOST_KEPT`] templates are kept, and only short ones.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use weir_flowfmt::ipfix::Version;
use weir_flowfmt::ipfix::decode::Header;
use weir_flowfmt::ipfix::template::{Space, Template};

/// Templates that are kept over restarts.
pub const MOST_KEPT: usize = 8192;
/// Fields of a template that is kept.
const MOST_FIELDS: usize = 512;

/// Templates that changed since they were taken out, by key.
#[derive(Debug, Default)]
pub struct Changed {
    known: HashMap<String, u64>,
    changed: BTreeMap<String, Vec<u8>>,
}

impl Changed {
    /// Enters a template.
    pub(super) fn note(&mut self, header: &Header, template: &Template) {
        let Some(message) = message(header, template) else {
            return;
        };
        let key = key(header, template);
        let print = fingerprint(&message);
        let full = self.known.len() >= MOST_KEPT;
        match self.known.get_mut(&key) {
            Some(known) if *known == print => return,
            Some(known) => *known = print,
            None if full => return,
            None => _ = self.known.insert(key.clone(), print),
        }
        self.changed.insert(key, message);
    }

    /// Enters one that was stored.
    pub fn stored(&mut self, key: &str, message: &[u8]) {
        if self.known.len() < MOST_KEPT {
            self.known.insert(key.to_owned(), fingerprint(message));
        }
    }

    /// Takes out what has to be stored.
    pub fn take(&mut self) -> BTreeMap<String, Vec<u8>> {
        std::mem::take(&mut self.changed)
    }
}

fn fingerprint(message: &[u8]) -> u64 {
    // Sequence number and time are zero in these messages, so equal templates are equal messages.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in message {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

fn key(header: &Header, template: &Template) -> String {
    format!(
        "{}|{}|{}|{}|{}",
        header.exporter,
        header.version.number(),
        header.domain,
        template.scopes > 0,
        template.id
    )
}

/// The address of the exporter out of a key.
#[must_use]
pub fn exporter_of(key: &str) -> Option<SocketAddr> {
    key.split('|').next()?.parse().ok()
}

/// A message that defines a template; nothing for NetFlow version 5, which has none, and for very long ones.
fn message(header: &Header, template: &Template) -> Option<Vec<u8>> {
    if template.fields.len() > MOST_FIELDS || template.fields.is_empty() {
        return None;
    }
    let (ipfix, options) = (header.version == Version::Ipfix, template.is_options());
    let mut set = Vec::new();
    let mut put = |number: u16| set.extend(number.to_be_bytes());
    let set_id = match (header.version, options) {
        (Version::Ipfix, false) => 2,
        (Version::Ipfix, true) => 3,
        (Version::NetFlow9, false) => 0,
        (Version::NetFlow9, true) => 1,
        (Version::NetFlow5, _) => return None,
    };
    put(set_id);
    put(0);
    put(template.id);
    let (count, scopes) = (u16::try_from(template.fields.len()).ok()?, template.scopes);
    match (options, ipfix) {
        (false, _) => put(count),
        (true, true) => {
            put(count);
            put(scopes);
        }
        // Version 9 counts bytes: of the scopes, then of the other fields.
        (true, false) => {
            put(scopes.checked_mul(4)?);
            put(count.checked_sub(scopes)?.checked_mul(4)?);
        }
    }
    for field in &template.fields {
        match field.space {
            Space::Enterprise(number) if ipfix => {
                put(field.number | 0x8000);
                put(field.length);
                put((number >> 16) as u16);
                put(number as u16);
            }
            _ => {
                put(field.number);
                put(field.length);
            }
        }
    }
    let length = u16::try_from(set.len()).ok()?;
    set.get_mut(2..4)?.copy_from_slice(&length.to_be_bytes());
    let mut message = Vec::new();
    if ipfix {
        message.extend(10_u16.to_be_bytes());
        message.extend((length.checked_add(16)?).to_be_bytes());
        message.extend([0; 8]);
    } else {
        message.extend([0, 9, 0, 1]);
        message.extend([0; 12]);
    }
    message.extend(header.domain.to_be_bytes());
    message.extend(set);
    Some(message)
}
