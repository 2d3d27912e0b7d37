//! Datagrams in, rows out, every datagram accounted for.
//!
//! The format is recognised by the first word, so any port takes any format. A [`Decoder`] belongs to one receiving thread;
//! names, rates and counters are shared between threads in [`Shared`], which is locked once for each batch of datagrams.

mod flow;
mod sequence;
mod sflow;
pub mod templates;

use std::net::SocketAddr;
use std::sync::Arc;

use crate::account::{Accounts, Outcome, exporter_name};
use crate::check::Checks;
use crate::enrich::Enricher;
use crate::row::{Row, Text, Unknown};

/// What all receiving threads share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Counters.
    pub accounts: Accounts,
    /// Names, rates and networks.
    pub enricher: Enricher,
    /// Estimates compared with counters.
    pub checks: Checks,
    /// Templates that changed and are not stored yet, as messages that define them.
    pub templates: templates::Changed,
}

/// Texts that nearly every row uses.
#[derive(Debug)]
struct Texts {
    unknown: Unknown,
    sflow: Text,
    ipfix: Text,
    netflow9: Text,
    netflow5: Text,
    forwarded: Text,
    consumed: Text,
    multiple: Text,
}

/// Decodes the datagrams of one socket.
#[derive(Debug)]
pub struct Decoder {
    texts: Texts,
    flow: flow::FlowDecoder,
    sflow: sflow::SflowDecoder,
}

impl Default for Decoder {
    fn default() -> Decoder {
        let text = |text: &str| -> Text { Arc::from(text) };
        Decoder {
            texts: Texts {
                unknown: Unknown::default(),
                sflow: text("sflow"),
                ipfix: text("ipfix"),
                netflow9: text("netflow9"),
                netflow5: text("netflow5"),
                forwarded: text("forwarded"),
                consumed: text("consumed"),
                multiple: text("multiple"),
            },
            flow: flow::FlowDecoder::default(),
            sflow: sflow::SflowDecoder::default(),
        }
    }
}

impl Decoder {
    /// Decodes a datagram that arrived at `now` (seconds since 1970); its rows are appended to `rows`.
    pub fn datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        now: i64,
        shared: &mut Shared,
        rows: &mut Vec<Row>,
    ) {
        let exporter = exporter_name(from.ip());
        match bytes {
            [0, 5 | 9 | 10, ..] => self
                .flow
                .message(&self.texts, from, bytes, now, shared, rows),
            [0, 0, 0, 5, ..] => self
                .sflow
                .datagram(&self.texts, from, bytes, now, shared, rows),
            [0, 0, 0, 2 | 4, ..] => {
                shared.accounts.datagram(
                    &exporter,
                    "sflow",
                    bytes.len(),
                    now,
                    Outcome::Rejected("sflow-version"),
                );
            }
            [] => {
                shared
                    .accounts
                    .datagram(&exporter, "unknown", 0, now, Outcome::Rejected("empty"))
            }
            [_] => shared.accounts.datagram(
                &exporter,
                "unknown",
                1,
                now,
                Outcome::Rejected("too-short"),
            ),
            _ => shared.accounts.datagram(
                &exporter,
                "unknown",
                bytes.len(),
                now,
                Outcome::Rejected("unknown-version"),
            ),
        }
    }

    /// Reads a stored template message; nothing of it is counted.
    pub fn restore(&mut self, from: SocketAddr, message: &[u8]) {
        self.flow.restore(from, message);
    }

    /// A connection ended: its templates are forgotten (RFC 7011, 8.1).
    pub fn forget(&mut self, from: SocketAddr) {
        self.flow.forget(from);
    }
}
