//! What a node says of a packet, in 32 bits.
//!
//! The small form matters: the verdicts of a whole vector are compared with one another to find the
//! usual case, all alike.

use crate::DropReason;

/// A place in a node's own list of next nodes (`NodeSpec::nexts`), or from [`Next::COMMON`] on one in the list that all nodes
/// have in common (`GraphBuilder::common_nexts`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next(pub u8);

impl Next {
    /// The first of the nodes that all nodes can send to. A node's own list is shorter.
    pub const COMMON: u8 = 32;

    /// A node of those that all nodes can send to.
    #[must_use]
    pub const fn common(number: u8) -> Next {
        Next(Next::COMMON + number)
    }
}

/// One packet's outcome at one node.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Verdict(u32);

/// A verdict taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// On to one of the node's next nodes.
    To(Next),
    /// Out of the interface whose index is in the packet's `aux` word.
    Out,
    /// Dropped.
    Drop(DropReason),
    /// Kept until released or too old; the number is the key's place (`Cx::hold`).
    Hold(u16),
    /// Copied to several places; the number is the list's place (`Cx::replicate`).
    Replicate(u16),
    /// It was for this router, which is done with it.
    Consume,
}

const TO: u32 = 0;
const OUT: u32 = 1 << 24;
const DROP: u32 = 2 << 24;
const HOLD: u32 = 3 << 24;
const REPLICATE: u32 = 4 << 24;
const CONSUME: u32 = 5 << 24;

impl Verdict {
    /// Out of the interface in the packet's `aux` word.
    pub const OUT: Verdict = Verdict(OUT);
    /// Delivered here.
    pub const CONSUME: Verdict = Verdict(CONSUME);

    /// On to `next`.
    #[inline(always)]
    #[must_use]
    pub const fn to(next: Next) -> Verdict {
        Verdict(TO | next.0 as u32)
    }

    /// Dropped for `reason`.
    #[inline(always)]
    #[must_use]
    pub const fn drop(reason: DropReason) -> Verdict {
        Verdict(DROP | reason as u32)
    }

    pub(crate) const fn hold(place: u16) -> Verdict {
        Verdict(HOLD | place as u32)
    }

    pub(crate) const fn replicate(place: u16) -> Verdict {
        Verdict(REPLICATE | place as u32)
    }

    /// The verdict taken apart.
    #[inline(always)]
    #[must_use]
    pub fn kind(self) -> VerdictKind {
        let low = self.0 & 0x00ff_ffff;
        match self.0 & 0xff00_0000 {
            TO => VerdictKind::To(Next(low as u8)),
            OUT => VerdictKind::Out,
            HOLD => VerdictKind::Hold(low as u16),
            REPLICATE => VerdictKind::Replicate(low as u16),
            CONSUME => VerdictKind::Consume,
            _ => VerdictKind::Drop(
                DropReason::from_index(low as usize).unwrap_or(DropReason::LoopLimit),
            ),
        }
    }

    /// The raw bits, for the trace.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// From raw bits, for the trace.
    #[must_use]
    pub fn from_bits(bits: u32) -> Verdict {
        Verdict(bits)
    }
}

impl std::fmt::Debug for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind().fmt(f)
    }
}

/// What a node says of a whole vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every packet has this verdict; the slice of verdicts was not written.
    All(Verdict),
    /// Every packet goes out of this interface, whatever its `aux` word holds.
    AllOut(u32),
    /// Each packet has its own, written into the slice.
    Each,
}
