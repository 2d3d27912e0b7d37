//! MPLS: labels, and what is done with packets that come with one.

use std::collections::BTreeMap;

use weir_config_derive::{Section, Words};

use crate::model::Via;

/// What is done with packets with labels.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{labels: [{label: 100, lookup: default}]}")]
pub struct Mpls {
    /// Static entries, each label once.
    #[key(
        list = WrittenLabel, unread, items = (0, 1_048_560), example = "[{label: 100, lookup: default}]"
    )]
    pub labels: BTreeMap<u32, LabelEntry>,
}

/// One entry; at most one of `via` and `lookup`.
#[derive(Section)]
#[section(example = "{label: 100, via: [{next-hop: 192.0.2.254, labels: [200]}]}")]
struct WrittenLabel {
    /// The incoming label.
    #[key(required, kind = Whole(16, 1_048_575), example = "100")]
    label: u32,
    #[key(flatten)]
    entry: LabelEntry,
}

impl From<(&u32, &LabelEntry)> for WrittenLabel {
    fn from((label, entry): (&u32, &LabelEntry)) -> Self {
        Self {
            label: *label,
            entry: entry.clone(),
        }
    }
}

impl Mpls {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// What is done with packets whose top label is this one.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
pub struct LabelEntry {
    /// Where packets go: a next hop, a list of several that share the flows, or `blackhole`. The
    /// labels of a next hop replace the incoming one (swap); without any it is removed (penultimate
    /// hop popping).
    #[key(kind = LabelVia, scope = "label", example = "192.0.2.254")]
    pub via: Option<Via>,
    /// The table that looks packets up by their address after the label, which must be their last,
    /// is removed: the name of a VRF, or `default`, which it is when both this and `via` are
    /// absent.
    #[key(kind = TableName, example = "red")]
    pub lookup: Option<String>,
    /// Treatment of TTL and traffic class where the label is removed: copied to what is below it,
    /// or not (RFC 3443).
    #[key(example = "pipe")]
    pub ttl_mode: TtlMode,
}

impl LabelEntry {
    /// The VRF that looks packets up; `None` within for the default table.
    #[must_use]
    pub fn lookup_vrf(&self) -> Option<Option<&str>> {
        let name = self.lookup.as_deref()?;
        Some((name != DEFAULT_TABLE).then_some(name))
    }
}

/// What the default table is called where a table is named.
pub const DEFAULT_TABLE: &str = "default";

/// Treatment of TTL and traffic class where a label is removed (RFC 3443).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Words)]
pub enum TtlMode {
    /// They are copied to what is below it.
    #[default]
    Uniform,
    /// What is below it stays as it is.
    Pipe,
    /// As `pipe`; the egress acts by the class of what is below it.
    ShortPipe,
}

impl std::fmt::Display for LabelEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.via, &self.lookup) {
            (Some(via), _) => write!(f, "via {via}")?,
            (None, table) => write!(f, "lookup in {}", table.as_deref().unwrap_or(DEFAULT_TABLE))?,
        }
        match self.ttl_mode {
            TtlMode::Uniform => Ok(()),
            mode => write!(f, ", {mode}"),
        }
    }
}
