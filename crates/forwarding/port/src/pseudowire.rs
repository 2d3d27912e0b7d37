//! Pseudowires: what of one workers need to know to send and take its frames (RFC 4448).
//!
//! The labels of the far end and the way there are a group's; the own label leads to the interface. What is left is
//! what both ends have agreed on: whether a control word stands before each frame, and whether frames have a tag.

use weir_wire::EtherType;

use crate::sub_interface::{TagChange, TagStack};

/// What makes an interface a pseudowire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pseudowire {
    /// The group whose paths push the labels of the far end.
    pub group: u32,
    /// Whether a control word (RFC 4385) stands before each frame.
    pub control_word: bool,
    /// What happens to the tags of a frame that comes in: in tagged mode the outer one goes.
    pub input: TagChange,
    /// What happens to the tags of a frame that goes out: in tagged mode one comes on.
    pub output: TagChange,
}

impl Pseudowire {
    /// A pseudowire in raw mode, or in tagged mode with this VLAN.
    #[must_use]
    pub fn new(group: u32, control_word: bool, vlan: Option<u16>) -> Pseudowire {
        let (input, output) = match vlan {
            None => (TagChange::default(), TagChange::default()),
            Some(vlan) => (
                TagChange {
                    pop: 1,
                    ..TagChange::default()
                },
                TagChange {
                    pop: 0,
                    push: TagStack::EMPTY.with(EtherType::VLAN, vlan),
                },
            ),
        };
        Pseudowire {
            group,
            control_word,
            input,
            output,
        }
    }

    /// Whether frames carry a tag of the pseudowire's.
    #[inline(always)]
    #[must_use]
    pub fn is_tagged(&self) -> bool {
        self.input.pop != 0
    }
}
