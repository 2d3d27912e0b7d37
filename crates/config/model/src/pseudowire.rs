//! Pseudowires: Ethernet over MPLS (RFC 4448), the L2VPN of a provider's edge.
//!
//! The section `pseudowires` says of each what both ends have agreed on, and the way to the far end. The interface of
//! the same name is in the model beside the others, with [`Device::Pseudowire`](crate::Device::Pseudowire) in the place of a
//! device; whatever can be said of interfaces can be said of it. The two are made apart: the interface first, the
//! labels when the subnets are there that the next hops are in, as routes are.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{Path, Via};

/// One pseudowire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pseudowire {
    /// The label of what comes in.
    pub local_label: u32,
    /// The label that the far end has for it.
    pub remote_label: u32,
    /// The way to the far end, with the labels of the label path there.
    pub via: Via,
    /// Whether a control word stands before each frame.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub control_word: bool,
    /// Whether frames have a tag of the pseudowire's own.
    #[serde(rename = "type", default)]
    pub kind: PseudowireType,
    /// VLAN of that tag.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub vlan: u16,
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands it a reference"
)]
fn is_true(value: &bool) -> bool {
    *value
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands it a reference"
)]
fn is_zero(vlan: &u16) -> bool {
    *vlan == 0
}

/// The two forms of Ethernet pseudowires (RFC 4448 section 4.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PseudowireType {
    /// Frames as they are.
    #[default]
    Raw,
    /// Each frame has a tag that both ends expect.
    Tagged,
}

impl PseudowireType {
    /// The word in the file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Tagged => "tagged",
        }
    }
}

impl Pseudowire {
    /// The way to the far end, its label pushed below those of the label path there.
    #[must_use]
    pub fn labelled_via(&self) -> Via {
        let with_label = |path: &Path| {
            let mut path = path.clone();
            path.labels.push(self.remote_label);
            path
        };
        match &self.via {
            Via::Paths(paths) => Via::Paths(paths.iter().map(with_label).collect()),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Pseudowire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "label {}, to label {} via {}",
            self.local_label, self.remote_label, self.via
        )?;
        if self.kind == PseudowireType::Tagged {
            write!(f, ", tagged {}", self.vlan)?;
        }
        f.write_str(if self.control_word {
            ""
        } else {
            ", without control word"
        })
    }
}
