//! MPLS: labels, and what is done with packets that come with one.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::Via;

/// The section `mpls`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Mpls {
    /// Static entries by incoming label.
    #[serde(with = "list", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<u32, LabelEntry>,
}

impl Mpls {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// What is done with packets whose top label is this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LabelEntry {
    /// Where they go: over a next hop with labels, these take the label's place; over one without, it is taken off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// The table that looks them up once the label is off: a VRF's name, or `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup: Option<String>,
    /// What becomes of the time to live and the class under a label that is taken off.
    #[serde(default)]
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

/// What becomes of time to live and traffic class where a label goes (RFC 3443).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum TtlMode {
    /// They are carried over to what is under it.
    #[default]
    Uniform,
    /// What is under it stays as it is.
    Pipe,
    /// As `pipe`; the egress acts by the class of what is under it.
    ShortPipe,
}

impl TtlMode {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands it a reference"
    )]
    pub(crate) fn is_uniform(&self) -> bool {
        *self == Self::Uniform
    }
}

impl std::fmt::Display for TtlMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Uniform => "uniform",
            Self::Pipe => "pipe",
            Self::ShortPipe => "short-pipe",
        })
    }
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

/// The file has a list, the model a map.
mod list {
    use super::{
        BTreeMap, Deserialize, Deserializer, LabelEntry, Serialize, Serializer, TtlMode, Via,
    };

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Entry {
        label: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<Via>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lookup: Option<String>,
        #[serde(default)]
        ttl_mode: TtlMode,
    }

    pub(super) fn serialize<S: Serializer>(
        labels: &BTreeMap<u32, LabelEntry>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(labels.iter().map(
            |(
                &label,
                LabelEntry {
                    via,
                    lookup,
                    ttl_mode,
                },
            )| Entry {
                label,
                via: via.clone(),
                lookup: lookup.clone(),
                ttl_mode: *ttl_mode,
            },
        ))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<u32, LabelEntry>, D::Error> {
        let list = Vec::<Entry>::deserialize(deserializer)?;
        Ok(list
            .into_iter()
            .map(
                |Entry {
                     label,
                     via,
                     lookup,
                     ttl_mode,
                 }| {
                    (
                        label,
                        LabelEntry {
                            via,
                            lookup,
                            ttl_mode,
                        },
                    )
                },
            )
            .collect())
    }
}
