//! Incoming labels and what is done with them: `GET /v1/mpls-fib`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forwarding::{PathReply, RouteGroup};

/// Entries of incoming labels.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MplsFib {
    /// The entries, by label.
    pub labels: Vec<LabelReply>,
}

/// What is done with packets whose top label this is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelReply {
    /// The incoming label.
    pub label: u32,
    /// Where the entry comes from.
    #[serde(default)]
    pub source: LabelSource,
    /// What the label stands for, where that is its own meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<LabelMeaning>,
    /// What becomes of time to live and class where it is taken off.
    pub ttl_mode: LabelMode,
    /// The table (VRF) that looks packets up once it is off; 0 = the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup: Option<u32>,
    /// The name of that table; the default one has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// The group that its paths are, shared with all labels and routes that lead over the same ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<RouteGroup>,
    /// Where packets may go, with the labels in its place; each flow takes one of them.
    pub paths: Vec<PathReply>,
}

/// What becomes of time to live and class where a label is taken off (RFC 3443).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabelMode {
    /// Carried over to what is under it.
    Uniform,
    /// Left as they are under it.
    Pipe,
}

impl std::fmt::Display for LabelMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Uniform => "uniform",
            Self::Pipe => "pipe",
        })
    }
}

/// Where the entry of a label comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabelSource {
    /// The configuration.
    #[default]
    Static,
    /// FRR's zebra, by the forwarding plane manager protocol.
    Fpm,
    /// The Linux kernel: what routing daemons and `ip -f mpls route` put there.
    Kernel,
    /// A pseudowire, for what its far end sends.
    Pseudowire,
    /// Built in: the label has a meaning of its own (RFC 3032, RFC 6790).
    Special,
}

impl std::fmt::Display for LabelSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Static => "static",
            Self::Fpm => "fpm",
            Self::Kernel => "kernel",
            Self::Pseudowire => "pseudowire",
            Self::Special => "special",
        })
    }
}

/// What a label stands for that has a meaning of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabelMeaning {
    /// Taken off. The label below it is next; IPv4 is, in the table of the interface it came in by.
    Ipv4ExplicitNull,
    /// The label below it is next, and the alert goes on with the packet.
    RouterAlert,
    /// As the one for IPv4, for IPv6.
    Ipv6ExplicitNull,
    /// Taken off with the entropy label below it.
    EntropyLabelIndicator,
}

impl LabelMeaning {
    /// All of them that this router acts by, by their labels.
    pub const ALL: [(u32, Self); 4] = [
        (0, Self::Ipv4ExplicitNull),
        (1, Self::RouterAlert),
        (2, Self::Ipv6ExplicitNull),
        (7, Self::EntropyLabelIndicator),
    ];

    /// What the router does with packets that have such a label on top.
    #[must_use]
    pub const fn action(self) -> &'static str {
        match self {
            Self::Ipv4ExplicitNull => {
                "pop, then the next label, or IPv4 in the table of the interface it came in by"
            }
            Self::RouterAlert => "kept on the packet, which goes by the next label",
            Self::Ipv6ExplicitNull => {
                "pop, then the next label, or IPv6 in the table of the interface it came in by"
            }
            Self::EntropyLabelIndicator => {
                "pop with the entropy label, then the next label, or IP in the table of the interface it came in by"
            }
        }
    }
}

impl std::fmt::Display for LabelMeaning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Ipv4ExplicitNull => "ipv4-explicit-null",
            Self::RouterAlert => "router-alert",
            Self::Ipv6ExplicitNull => "ipv6-explicit-null",
            Self::EntropyLabelIndicator => "entropy-label-indicator",
        })
    }
}
