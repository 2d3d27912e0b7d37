//! What a slot of a table's trie holds, in one 32-bit word.
//!
//! Bit 31 tells a node from a leaf. A leaf is the group alone, and zero is the leaf that says: no route.
//! A node is named by the unit of memory that it begins at (see `arena.rs`). Bit 30 tells a node that is
//! coded from a plain block of 256 slots; bit 29 then tells the two codes apart: dense (`dense.rs`) and
//! ranges (`range.rs`), where bit 26 says whether there is an index, and bits 27 and 28 whether lines hold marks. With
//! bit 28 alone it is a fork (`fork.rs`). Of a dense node (words, halves or bytes) bits 26 and 27 say what a run takes.
//! So no entry is greater than one of a node with marks, and next come forks: what most addresses of a full IPv6 table lead to.

use crate::arena::UNIT_WORDS;

/// Bits of a group number; the other nine of a word are the place of a route in its node (`rib.rs`).
pub(crate) const GROUP_BITS: u32 = 23;
pub(crate) const GROUP_MASK: u32 = (1 << GROUP_BITS) - 1;

/// The highest group number that a route can have.
pub const MAX_GROUP: u32 = GROUP_MASK;

const NODE: u32 = 1 << 31;
const CODED: u32 = 1 << 30;
const RANGES: u32 = 1 << 29;
const NEAR: u32 = 1 << 28;
const MARKS: u32 = 1 << 27;
const KIND_SHIFT: u32 = 26;
const UNIT_MASK: u32 = (1 << KIND_SHIFT) - 1;
/// What a node of ranges with marks has above its index bit.
const MARKED: u32 = FORK | MARKS;
/// What a fork has above its unit.
const FORK: u32 = NODE | CODED | RANGES | NEAR;

/// What a slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry(pub(crate) u32);

impl Entry {
    pub(crate) const NO_ROUTE: Entry = Entry(0);

    pub(crate) fn leaf(group: u32) -> Entry {
        Entry(group & GROUP_MASK)
    }

    pub(crate) fn plain(unit: u32) -> Entry {
        Entry(NODE | unit & UNIT_MASK)
    }

    /// A dense node whose runs take a word shifted right by `narrow`: 4, 2 or 1 bytes.
    pub(crate) fn dense(unit: u32, narrow: u32) -> Entry {
        Entry(NODE | CODED | (narrow & 3) << KIND_SHIFT | unit & UNIT_MASK)
    }

    /// A node of ranges, with an index or without, and with marks or not.
    #[inline(always)]
    pub(crate) fn ranges(unit: u32, indexed: bool, marks: bool) -> Entry {
        let kind = if marks { MARKED } else { NODE | CODED | RANGES };
        Entry(kind | u32::from(indexed) << KIND_SHIFT | unit & UNIT_MASK)
    }

    /// A fork.
    pub(crate) fn fork(unit: u32) -> Entry {
        Entry(FORK | unit & UNIT_MASK)
    }

    #[inline(always)]
    pub(crate) fn is_node(self) -> bool {
        self.0 & NODE != 0
    }

    /// Of a node: whether it is a plain block.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & (NODE | CODED) == NODE
    }

    /// Of a node: whether it is one of ranges.
    #[inline(always)]
    pub(crate) fn is_ranges(self) -> bool {
        self.0 >= NODE | CODED | RANGES && !self.is_fork()
    }

    /// Of a node: whether it is a fork.
    #[inline(always)]
    pub(crate) fn is_fork(self) -> bool {
        self.0 & MARKED == FORK
    }

    /// Whether it is a node of ranges whose lines hold marks.
    #[inline(always)]
    pub(crate) fn has_marks(self) -> bool {
        self.0 >= MARKED
    }

    /// Of a node of ranges with marks, and of a fork: what a key has in the place of a group. Of one without: 0.
    #[inline(always)]
    pub(crate) fn any_group(self) -> u32 {
        if self.0 & FORK == FORK ^ NEAR {
            0
        } else {
            0xff
        }
    }

    /// Whether it is a node of ranges with marks, or a leaf: what most addresses of a large IPv6 table lead to, in any
    /// order, so that both are distinguished from all else at once.
    #[inline(always)]
    pub(crate) fn is_usual(self) -> bool {
        // The greatest entries become the least ones, and the leaves follow them.
        self.0.wrapping_sub(MARKED) < MARKS + (1 << GROUP_BITS)
    }

    /// As [`Entry::is_usual`], or a fork.
    #[inline(always)]
    pub(crate) fn is_near(self) -> bool {
        self.0.wrapping_sub(FORK) < NEAR + (1 << GROUP_BITS)
    }

    /// Of a node of ranges with an index: the same so many units further on. Of anything else itself.
    #[inline(always)]
    pub(crate) fn below_index(self, units: u32) -> Entry {
        Entry(self.0 + units * self.indexed())
    }

    /// Of a plain or dense node: how much less than a word its entries take, as [`Entry::dense`] has it.
    #[inline(always)]
    pub(crate) fn narrow(self) -> u32 {
        self.0 >> KIND_SHIFT & 3
    }

    /// Of a node of ranges: 1 if it has an index, else 0.
    #[inline(always)]
    pub(crate) fn indexed(self) -> u32 {
        self.0 >> KIND_SHIFT & 1
    }

    /// Of a node: where it begins.
    #[inline(always)]
    pub(crate) fn unit(self) -> u32 {
        self.0 & UNIT_MASK
    }

    /// Of a plain block: where it begins. Of another node and of a leaf something that no memory has, so that whoever
    /// expects only those need not ask.
    #[inline(always)]
    pub(crate) fn plain_unit(self) -> usize {
        (self.0 ^ NODE) as usize
    }

    /// Of a plain block: the word of a slot. Of another node and of a leaf something that no memory has.
    #[inline(always)]
    pub(crate) fn plain_word(self, slot: usize) -> usize {
        (self.0 as usize * UNIT_WORDS + slot).wrapping_sub(NODE as usize * UNIT_WORDS)
    }

    /// Of a leaf: the group.
    #[inline(always)]
    pub(crate) fn group(self) -> u32 {
        self.0 & GROUP_MASK
    }
}
