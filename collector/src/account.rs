//! Where each datagram and each record went, per exporter, and by minute for the coverage of answers.
//!
//! The balance of each exporter is exact: received = decoded + partly decoded + waiting + rejected (by reason). Losses that
//! nobody received are counted separately: lost by sequence number, dropped by the kernel (per socket).
//! All receiving threads share one [`Accounts`] behind a mutex that is taken once for each batch of datagrams.
//! Exporters are bounded: source addresses beyond [`MOST_EXPORTERS`] share one entry.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Exporters that have an entry of their own.
pub const MOST_EXPORTERS: usize = 4096;
/// Reasons of one exporter that are kept apart.
const MOST_REASONS: usize = 64;
/// The entry of exporters beyond [`MOST_EXPORTERS`].
pub const OTHERS: &str = "others";

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was decoded.
    Decoded,
    /// Some of it was decoded; the rest was rejected for this reason.
    Partly(&'static str),
    /// It holds records whose template has not arrived; they are decoded when it does.
    Waiting,
    /// Nothing of it could be used.
    Rejected(&'static str),
}

/// Units of one format that arrived, and that are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Units {
    /// Arrived.
    pub arrived: u64,
    /// Lost by sequence number.
    pub lost: u64,
}

/// Counters of one exporter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exporter {
    /// Datagrams received.
    pub received: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Datagrams decoded completely.
    pub decoded: u64,
    /// Datagrams decoded in part.
    pub partly: u64,
    /// Datagrams whose records wait for a template (or waited when they arrived).
    pub waiting: u64,
    /// Datagrams rejected, all reasons.
    pub rejected: u64,
    /// Datagrams rejected or decoded in part, by reason.
    pub reasons: BTreeMap<String, u64>,
    /// Rows stored.
    pub rows: u64,
    /// Option records used.
    pub options: u64,
    /// Counter samples received.
    pub counters: u64,
    /// Notifications of discarded packets.
    pub discards: u64,
    /// Rows whose sampling rate is unknown.
    pub unknown_rate: u64,
    /// What sequence numbers show, by format: its unit is the datagram (sFlow, NetFlow 9) or the record (IPFIX, NetFlow 5).
    pub sequences: BTreeMap<String, Units>,
    /// Times that the sequence began again.
    pub restarts: u64,
    /// Sampling rates seen last, by source or selector.
    pub rates: BTreeMap<String, u32>,
    /// Seconds since 1970 of the first and the last datagram.
    pub first_seen: i64,
    /// See `first_seen`.
    pub last_seen: i64,
    /// Formats seen.
    pub formats: BTreeMap<String, u64>,
    /// Seconds that the exporter's clock is ahead of this one, from its last message.
    pub clock_ahead: Option<i64>,
}

impl Exporter {
    /// Share of the units sent that arrived, in percent, of the format with the largest loss; 100 when nothing is known.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        let each = self
            .sequences
            .values()
            .map(|units| coverage(units.arrived, units.lost));
        each.fold(100.0, f64::min)
    }

    /// Units lost, of all formats.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sequences.values().map(|units| units.lost).sum()
    }

    /// Units that arrived, of all formats.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.sequences.values().map(|units| units.arrived).sum()
    }

    fn reason(&mut self, reason: &str) {
        if let Some(count) = self.reasons.get_mut(reason) {
            *count += 1;
        } else if self.reasons.len() < MOST_REASONS {
            self.reasons.insert(reason.to_owned(), 1);
        } else {
            *self.reasons.entry("other-reasons".to_owned()).or_default() += 1;
        }
    }

    /// Remembers a sampling rate; at most 64 sources an exporter are shown.
    pub fn rate(&mut self, source: &str, rate: u32) {
        if let Some(known) = self.rates.get_mut(source) {
            *known = rate;
        } else if self.rates.len() < MOST_REASONS {
            self.rates.insert(source.to_owned(), rate);
        }
    }
}

/// Share of arrived units in percent.
#[must_use]
pub fn coverage(arrived: u64, lost: u64) -> f64 {
    if arrived + lost == 0 {
        100.0
    } else {
        100.0 * arrived as f64 / (arrived + lost) as f64
    }
}

/// What one minute adds to the coverage of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Minute {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams rejected.
    pub rejected: u64,
    /// Units that arrived (see [`Exporter::sequences`]).
    pub arrived: u64,
    /// Units lost.
    pub lost: u64,
}

/// Counters of one socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Socket {
    /// Where it listens.
    pub address: String,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams that the kernel dropped because the receive buffer was full (SO_RXQ_OVFL).
    pub kernel_dropped: u64,
    /// Bytes of receive buffer that the kernel granted.
    pub receive_buffer: u64,
    /// Errors of receive calls.
    pub errors: u64,
}

/// All counters.
#[derive(Debug, Default)]
pub struct Accounts {
    /// By exporter.
    pub exporters: BTreeMap<String, Exporter>,
    /// By socket.
    pub sockets: Vec<Socket>,
    /// By minute (seconds since 1970, multiple of 60), and exporter and format between a space; taken out when they are stored.
    /// Formats are kept apart because their units differ: sFlow counts datagrams, IPFIX counts records.
    pub minutes: BTreeMap<(i64, String), Minute>,
}

impl Accounts {
    /// The exporter's entry; beyond the limit that of all others.
    pub fn exporter(&mut self, name: &str) -> &mut Exporter {
        let name = if self.exporters.contains_key(name) || self.exporters.len() < MOST_EXPORTERS {
            name
        } else {
            OTHERS
        };
        self.exporters.entry(name.to_owned()).or_default()
    }

    /// Enters one datagram.
    pub fn datagram(&mut self, name: &str, format: &str, bytes: usize, now: i64, outcome: Outcome) {
        let exporter = self.exporter(name);
        exporter.received += 1;
        exporter.received_bytes += bytes as u64;
        if exporter.first_seen == 0 {
            exporter.first_seen = now;
        }
        exporter.last_seen = now;
        *exporter.formats.entry(format.to_owned()).or_default() += 1;
        let mut rejected = 0;
        match outcome {
            Outcome::Decoded => exporter.decoded += 1,
            Outcome::Waiting => exporter.waiting += 1,
            Outcome::Partly(reason) => {
                exporter.partly += 1;
                exporter.reason(reason);
            }
            Outcome::Rejected(reason) => {
                exporter.rejected += 1;
                rejected = 1;
                exporter.reason(reason);
            }
        }
        let minute = self.minute(name, format, now);
        minute.received += 1;
        minute.rejected += rejected;
    }

    /// Enters what a sequence number shows: units that arrived, and units lost (negative: late ones that arrived after all).
    pub fn sequence(&mut self, name: &str, format: &str, now: i64, arrived: u64, lost: i64) {
        let exporter = self.exporter(name);
        let units = exporter.sequences.entry(format.to_owned()).or_default();
        units.arrived += arrived;
        units.lost = units.lost.saturating_add_signed(lost);
        let minute = self.minute(name, format, now);
        minute.arrived += arrived;
        minute.lost = minute.lost.saturating_add_signed(lost);
    }

    fn minute(&mut self, name: &str, format: &str, now: i64) -> &mut Minute {
        let name = if self.exporters.contains_key(name) {
            name
        } else {
            OTHERS
        };
        self.minutes
            .entry((now - now.rem_euclid(60), format!("{name} {format}")))
            .or_default()
    }
}

/// The address as exporters are named: IPv4 without its mapping.
#[must_use]
pub fn exporter_name(ip: IpAddr) -> String {
    ip.to_canonical().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_datagram_has_one_outcome() {
        let mut accounts = Accounts::default();
        for outcome in [
            Outcome::Decoded,
            Outcome::Partly("sample"),
            Outcome::Waiting,
            Outcome::Rejected("version"),
            Outcome::Rejected("version"),
        ] {
            accounts.datagram("192.0.2.1", "sflow", 100, 61, outcome);
        }
        accounts.sequence("192.0.2.1", "sflow", 61, 5, 3);
        accounts.sequence("192.0.2.1", "sflow", 61, 1, -1);
        let exporter = &accounts.exporters["192.0.2.1"];
        assert_eq!(
            exporter.received,
            exporter.decoded + exporter.partly + exporter.waiting + exporter.rejected
        );
        assert_eq!(
            (
                exporter.rejected,
                exporter.reasons["version"],
                exporter.reasons["sample"]
            ),
            (2, 2, 1)
        );
        assert_eq!(exporter.coverage(), 75.0);
        let minute = accounts.minutes[&(60, "192.0.2.1 sflow".to_owned())];
        assert_eq!(
            minute,
            Minute {
                received: 5,
                rejected: 2,
                arrived: 6,
                lost: 2
            }
        );
    }

    #[test]
    fn exporters_and_reasons_are_bounded() {
        let mut accounts = Accounts::default();
        for number in 0..MOST_EXPORTERS + 500 {
            accounts.datagram(&number.to_string(), "sflow", 1, 0, Outcome::Decoded);
        }
        assert_eq!(accounts.exporters.len(), MOST_EXPORTERS + 1);
        assert_eq!(accounts.exporters[OTHERS].received, 500);
        assert!(accounts.minutes.len() <= MOST_EXPORTERS + 1);
    }
}
