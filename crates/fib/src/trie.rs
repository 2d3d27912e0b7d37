//! The trie that workers read, of IPv4 and IPv6 alike: a root of 65,536 slots for the first two octets, and
//! below it nodes of an octet (plain or dense) or of two (sparse).
//!
//! One writer (`grow.rs`) fills a node before it stores the entry that leads to it, and uses the memory of
//! a node again only when every reader has passed a quiescent state. A reader that does not take part in
//! that protocol could see the answer of another prefix, never anything worse.
//!
//! A change that touches several slots is stored slot by slot: for a moment some addresses have the new
//! answer and some the old, but each has one of the two.

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use zerocopy::FromZeros;

use crate::arena::Arena;
use crate::dense::{self, HEAD, SLOTS, Slots};
use crate::entry::Entry;
use crate::sparse;

/// Slots of the root.
pub(crate) const ROOT: usize = 1 << 16;
type Root = [AtomicU32; ROOT];

pub(crate) struct Trie {
    pub(crate) root: Box<Root>,
    /// Plain and dense nodes.
    pub(crate) words: Arena<AtomicU32>,
    /// Sparse nodes.
    pub(crate) halves: Arena<AtomicU16>,
    /// How many nodes are not plain.
    pub(crate) coded: AtomicU32,
}

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Root(usize),
    /// A word of plain and dense nodes.
    Word(usize),
    /// A value of a sparse node.
    Half(usize),
}

impl Trie {
    /// An empty trie; `None` when there is no memory for it.
    pub(crate) fn new() -> Option<Trie> {
        Some(Trie { root: Root::new_box_zeroed().ok()?, words: Arena::new(), halves: Arena::new(), coded: AtomicU32::new(0) })
    }

    /// The entry of the root for the first sixteen bits of an address.
    #[inline(always)]
    pub(crate) fn top(&self, bits: usize) -> Entry {
        load(&self.root[bits % ROOT])
    }

    /// What the slot of a plain or dense node holds.
    #[inline(always)]
    pub(crate) fn step(&self, node: Entry, slot: usize) -> Entry {
        self.words.get(self.place_of(node, slot)).map_or(Entry::NO_ROUTE, load)
    }

    /// The word that holds the slot of a plain or dense node.
    #[inline(always)]
    pub(crate) fn place_of(&self, node: Entry, slot: usize) -> usize {
        let start = node.unit() as usize * Arena::<AtomicU32>::UNIT_WORDS;
        let slot = slot % SLOTS;
        if node.is_plain() {
            start + slot
        } else {
            let (word, bit) = dense::head_of(slot);
            start + dense::run_of(self.word(start + word), bit)
        }
    }

    #[inline(always)]
    fn word(&self, word: usize) -> u32 {
        self.words.get(word).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// The group of sixteen bits in a sparse node.
    #[inline(always)]
    pub(crate) fn search(&self, node: Entry, key: u16) -> u32 {
        sparse::search(node, key, |word| self.halves.get(word).map_or(0, |word| word.load(Ordering::Relaxed)))
    }

    /// The words of a sparse node.
    pub(crate) fn sparse(&self, node: Entry) -> &[AtomicU16] {
        self.halves.node(node.unit(), sparse::len_of(node.class()))
    }

    /// The words of a plain or dense node.
    pub(crate) fn node(&self, node: Entry) -> &[AtomicU32] {
        if node.is_plain() {
            return self.words.node(node.unit(), SLOTS);
        }
        let head = self.words.node(node.unit(), HEAD);
        self.words.node(node.unit(), dense::len_of(head))
    }

    /// All slots of a plain or dense node, and the word of it that holds each.
    pub(crate) fn slots(&self, node: Entry) -> (Slots, [u16; SLOTS]) {
        let words = self.node(node);
        let places =
            if node.is_plain() { std::array::from_fn(|slot| slot as u16) } else { dense::places(words.get(..HEAD).unwrap_or(&[])) };
        (places.map(|place| words.get(usize::from(place)).map_or(Entry::NO_ROUTE, load)), places)
    }

    /// Stores an entry. Release, so that a node is seen filled by whoever sees the entry leading to it.
    pub(crate) fn store(&self, place: Place, entry: Entry) {
        match place {
            Place::Root(slot) => self.root[slot % ROOT].store(entry.0, Ordering::Release),
            Place::Word(word) => {
                if let Some(word) = self.words.get(word) {
                    word.store(entry.0, Ordering::Release);
                }
            }
            Place::Half(half) => {
                if let Some(half) = self.halves.get(half) {
                    half.store(entry.group() as u16, Ordering::Release);
                }
            }
        }
    }

    /// Bytes before the first node.
    pub(crate) fn fixed_bytes() -> usize {
        size_of::<Root>() + size_of::<Trie>()
    }
}

/// Reads a slot. Acquire, so that the node that an entry leads to is seen as its writer filled it.
#[inline(always)]
pub(crate) fn load(slot: &AtomicU32) -> Entry {
    Entry(slot.load(Ordering::Acquire))
}
