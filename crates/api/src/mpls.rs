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
    /// What becomes of time to live and class where it is taken off.
    pub ttl_mode: LabelMode,
    /// The table (VRF) that looks packets up once it is off; 0 = the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup: Option<u32>,
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
