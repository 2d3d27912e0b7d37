//! Pseudowires: Ethernet over MPLS (RFC 4448), the L2VPN of a provider's edge.
//!
//! The section `pseudowires` says of each what both ends have agreed on, and the way to the far end. The interface of
//! the same name is in the model beside the others, with [`Device::Pseudowire`](crate::Device::Pseudowire) in the place of a
//! device; whatever can be said of interfaces can be said of it. The two are made apart: the interface first, the
//! labels when the subnets are there that the next hops are in, as routes are.

use std::fmt;

use weir_config_derive::{Section, Words};

use crate::model::{Path, Via};

/// One pseudowire.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{local-label: 1000, remote-label: 2000, via: 192.0.2.254}")]
pub struct Pseudowire {
    /// The label of received frames, which no entry of `mpls.labels` and no other pseudowire has.
    #[key(required, kind = Whole(16, 1_048_575), example = "1000")]
    pub local_label: u32,
    /// The label that the far end has for it, pushed below those of `via`.
    #[key(required, default = 0, kind = Whole(16, 1_048_575), example = "2000")]
    pub remote_label: u32,
    /// The path to the far end: a next hop, a list of several that share the flows, or `blackhole`.
    /// The labels of a next hop are those of the label path to the far end; none where the next hop
    /// is the far end itself.
    #[key(
        required, default = Via::Paths(Vec::new()), unread, kind = LabelVia, scope = "pseudowire",
        example = "192.0.2.254"
    )]
    pub via: Via,
    /// Whether a control word (RFC 4385) precedes each frame, at both ends. Without it, a router on
    /// the path may mistake a frame for IP and distribute its flow over several paths.
    #[key(default = true, example = "false")]
    pub control_word: bool,
    /// What both ends have agreed on (RFC 4448 section 4.4.1): frames as they are, or each with a
    /// tag of the pseudowire's own.
    #[key(name = "type", example = "tagged")]
    pub kind: PseudowireType,
    /// VLAN of that tag on frames that are sent, with type `tagged`; received frames lose their
    /// outer tag, whichever it is.
    #[key(kind = Whole(0, 4094), default = 0, example = "100")]
    pub vlan: u16,
}

/// The two forms of Ethernet pseudowires (RFC 4448 section 4.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum PseudowireType {
    /// Frames as they are.
    #[default]
    Raw,
    /// Each frame has a tag that both ends expect.
    Tagged,
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
