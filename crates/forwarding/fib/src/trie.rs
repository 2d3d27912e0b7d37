//! The trie that workers read, of IPv4 and IPv6 alike: a root of 65,536 slots for the first two octets, and
//! below it nodes of an octet (plain or dense) or of up to four (ranges).
//!
//! One writer (`grow.rs`) fills a node before it stores the entry that leads to it, and uses the memory of
//! a node again only when every reader has passed a quiescent state. A reader that does not take part in
//! that protocol could see the answer of another prefix, never anything worse.
//!
//! A change that touches several slots is stored slot by slot: for a moment some addresses have the new
//! answer and some the old, but each has one of the two.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use weir_cpu::AnyMachine;
use zerocopy::FromZeros;

use crate::arena::{Arena, UNIT, UNIT_WORDS};
use crate::dense::{self, HEAD, SLOTS, Slots};
use crate::entry::Entry;
use crate::fork;
use crate::line::Lines;
use crate::range::{self, LINE};

/// Slots of the root.
pub(crate) const ROOT: usize = 1 << 16;
type Root = [AtomicU32; ROOT];

pub(crate) struct Trie {
    pub(crate) root: Box<Root>,
    /// All nodes.
    pub(crate) words: Arena,
    /// How many nodes are not plain ones.
    pub(crate) coded: AtomicU32,
    /// Once the table is large.
    pub(crate) lines: OnceLock<Lines>,
    /// Whether nearly all lines tell something.
    pub(crate) is_reported: AtomicBool,
}

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Root(usize),
    /// What a plain or dense node holds from this byte on, so narrow (see [`dense::byte_of`]).
    Run(usize, u32),
    /// A word of two groups of ranges.
    Pair(usize),
}

impl Trie {
    /// An empty trie; `None` when there is no memory for it.
    pub(crate) fn new() -> Option<Trie> {
        Some(Trie {
            root: Root::new_box_zeroed().ok()?,
            words: Arena::new(),
            coded: AtomicU32::new(0),
            lines: OnceLock::new(),
            is_reported: AtomicBool::new(false),
        })
    }

    /// The entry of the root for the first sixteen bits of an address.
    #[inline(always)]
    pub(crate) fn top(&self, bits: usize) -> Entry {
        load(&self.root[bits % ROOT])
    }

    /// What the slot of a plain or dense node holds.
    #[inline(always)]
    pub(crate) fn step(&self, node: Entry, slot: usize) -> Entry {
        let byte = self.byte_of(node, slot);
        dense::read(self.word(byte / size_of::<u32>()), byte, node.narrow())
    }

    /// The byte at which that begins.
    #[inline(always)]
    pub(crate) fn byte_of(&self, node: Entry, slot: usize) -> usize {
        let slot = slot % SLOTS;
        if node.is_plain() {
            return byte_of_run(node, slot);
        }
        let (word, bit) = dense::head_of(slot);
        byte_of_run(
            node,
            dense::run_of(self.word(node.unit() as usize * UNIT_WORDS + word), bit),
        )
    }

    /// Acquire, so that the node that an entry leads to is seen as its writer filled it.
    #[inline(always)]
    fn word(&self, word: usize) -> u32 {
        self.words
            .get(word)
            .map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// The group of thirty-two bits in a node of ranges.
    #[inline(always)]
    pub(crate) fn search(&self, node: Entry, key: u32) -> u32 {
        let line = |line: u32| {
            self.words
                .node(node.unit() + line * (LINE / UNIT_WORDS) as u32, LINE)
                .first_chunk::<LINE>()
        };
        let key = range::turned(key | node.any_group());
        let below = if node.indexed() > 0 {
            line(0).map_or(0, |index| range::line_below(AnyMachine, index, &key))
        } else {
            0
        };
        // Not as a function chosen here: that would be a call.
        line(below).map_or(0, |line| {
            if node.has_marks() {
                range::group_marked(AnyMachine, line, &key)
            } else {
                range::group_in(line, key)
            }
        })
    }

    /// What a fork leads thirty-two bits to.
    #[inline(always)]
    pub(crate) fn branch(&self, fork: Entry, key: u32) -> Entry {
        let ([starts, entries], _) = self
            .words
            .node(fork.unit(), fork::WORDS)
            .as_chunks::<LINE>()
        else {
            return Entry::NO_ROUTE;
        };
        fork::entry_in(
            AnyMachine,
            starts,
            entries,
            &range::turned(key | fork.any_group()),
        )
    }

    /// The words of a fork.
    pub(crate) fn fork(&self, node: Entry) -> &[AtomicU32] {
        self.words.node(node.unit(), fork::WORDS)
    }

    /// The words of a node of ranges.
    pub(crate) fn ranges(&self, node: Entry) -> &[AtomicU32] {
        let first = self.words.node(node.unit(), LINE);
        self.words
            .node(node.unit(), range::len_of(first, node.indexed() > 0))
    }

    /// The words of a plain or dense node.
    pub(crate) fn node(&self, node: Entry) -> &[AtomicU32] {
        if node.is_plain() {
            return self.words.node(node.unit(), SLOTS);
        }
        let head = self.words.node(node.unit(), HEAD);
        self.words
            .node(node.unit(), dense::len_of(head, node.narrow()))
    }

    /// All slots of a plain or dense node, and the run of it that holds each.
    pub(crate) fn slots(&self, node: Entry) -> (Slots, [u16; SLOTS]) {
        let words = self.node(node);
        let head = if node.is_plain() { 0 } else { HEAD };
        let runs = if node.is_plain() {
            std::array::from_fn(|slot| slot as u16)
        } else {
            dense::runs(words.get(..head).unwrap_or(&[]))
        };
        let hold = |run: u16| {
            let byte = dense::byte_of(head * size_of::<u32>(), usize::from(run), node.narrow());
            let word = words
                .get(byte / size_of::<u32>())
                .map_or(0, |word| word.load(Ordering::Relaxed));
            dense::read(word, byte, node.narrow())
        };
        // What follows in the same run holds the same.
        let (mut slots, mut last) = ([Entry::NO_ROUTE; SLOTS], (u16::MAX, Entry::NO_ROUTE));
        for (slot, &run) in slots.iter_mut().zip(&runs) {
            if run != last.0 {
                last = (run, hold(run));
            }
            *slot = last.1;
        }
        (slots, runs)
    }

    /// Stores an entry. Release, so that a node is seen filled by whoever sees the entry leading to it.
    pub(crate) fn store(&self, place: Place, entry: Entry) {
        match place {
            Place::Root(slot) => self.root[slot % ROOT].store(entry.0, Ordering::Release),
            Place::Run(byte, narrow) => {
                if let Some(word) = self.words.get(byte / size_of::<u32>()) {
                    let changed = dense::changed(word.load(Ordering::Relaxed), byte, narrow, entry);
                    word.store(changed, Ordering::Release);
                }
            }
            Place::Pair(word) => {
                if let Some(word) = self.words.get(word) {
                    word.store(entry.0, Ordering::Release);
                }
            }
        }
    }

    /// Bytes before the first node.
    pub(crate) fn fixed_bytes() -> usize {
        size_of::<Root>() + size_of::<Trie>()
    }
}

/// The byte at which a run of a plain or dense node begins.
#[inline(always)]
pub(crate) fn byte_of_run(node: Entry, run: usize) -> usize {
    let head = if node.is_plain() {
        0
    } else {
        HEAD * size_of::<u32>()
    };
    dense::byte_of(node.unit() as usize * UNIT + head, run, node.narrow())
}

/// Reads a slot. Acquire, so that the node that an entry leads to is seen as its writer filled it.
#[inline(always)]
pub(crate) fn load(slot: &AtomicU32) -> Entry {
    Entry(slot.load(Ordering::Acquire))
}
