//! Pseudowires, their labels and their ways: `GET /v1/pseudowires`.
//!
//! What a pseudowire counts is counted by its interface (`GET /v1/interfaces`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forwarding::PathReply;
use crate::interface::UpDown;

/// All pseudowires.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pseudowires {
    /// The pseudowires, in the order of their interfaces.
    pub pseudowires: Vec<Pseudowire>,
}

/// One Ethernet pseudowire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pseudowire {
    /// Its interface.
    pub interface: String,
    /// The label of what comes in.
    pub local_label: u32,
    /// The label that the far end has for it, innermost on all paths.
    pub remote_label: u32,
    /// `raw`: frames as they are; `tagged`: each with a tag of the pseudowire's own.
    #[serde(rename = "type")]
    pub kind: String,
    /// VLAN of that tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Whether a control word stands before each frame.
    pub control_word: bool,
    /// Whether it is wanted up and some path can carry frames now.
    pub link: UpDown,
    /// The ways to the far end, with all labels that are pushed; each flow takes one.
    pub paths: Vec<PathReply>,
}
