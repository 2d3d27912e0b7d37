//! What a slot of a table's trie holds, in one 32-bit word.
//!
//! Bit 31 tells a node from a leaf. A leaf is the group alone, and zero is the leaf that says: no route.
//! A node is named by the unit of memory that it begins at (see `arena.rs`). Bit 30 tells a node that is
//! coded from a plain block of 256 slots; bit 29 then tells the two codes apart: dense (`dense.rs`) and
//! sparse (`sparse.rs`), whose size is in bits 26 to 28.

/// Bits of a group number; the other nine of a word are the place of a route in its node (`rib.rs`).
pub(crate) const GROUP_BITS: u32 = 23;
pub(crate) const GROUP_MASK: u32 = (1 << GROUP_BITS) - 1;

/// The highest group number that a route can have.
pub const MAX_GROUP: u32 = GROUP_MASK;

const NODE: u32 = 1 << 31;
const CODED: u32 = 1 << 30;
const SPARSE: u32 = 1 << 29;
const CLASS_SHIFT: u32 = 26;
const CLASS_MASK: u32 = 7;
const UNIT_MASK: u32 = (1 << CLASS_SHIFT) - 1;

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

    pub(crate) fn dense(unit: u32) -> Entry {
        Entry(NODE | CODED | unit & UNIT_MASK)
    }

    /// A sparse node of 2^`class` values.
    pub(crate) fn sparse(unit: u32, class: u32) -> Entry {
        Entry(NODE | CODED | SPARSE | (class & CLASS_MASK) << CLASS_SHIFT | unit & UNIT_MASK)
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

    /// Of a node: whether it is sparse.
    #[inline(always)]
    pub(crate) fn is_sparse(self) -> bool {
        self.0 & (NODE | CODED | SPARSE) == NODE | CODED | SPARSE
    }

    /// Of a sparse node: the logarithm of its number of values.
    #[inline(always)]
    pub(crate) fn class(self) -> u32 {
        self.0 >> CLASS_SHIFT & CLASS_MASK
    }

    /// Of a node: where it begins.
    #[inline(always)]
    pub(crate) fn unit(self) -> u32 {
        self.0 & UNIT_MASK
    }

    /// Of a plain block: where it begins. Of a coded one something that no memory has, so that whoever
    /// expects only plain blocks need not ask.
    #[inline(always)]
    pub(crate) fn plain_unit(self) -> usize {
        (self.0 & !NODE) as usize
    }

    /// Of a leaf: the group.
    #[inline(always)]
    pub(crate) fn group(self) -> u32 {
        self.0 & GROUP_MASK
    }
}
