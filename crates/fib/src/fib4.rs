//! The IPv4 table that workers read.
//!
//! A trie of 16, 8 and 8 bits (`trie.rs`): the root has an entry for each first half of an address, and a
//! lookup is one load when no route there is longer than /16, else a node more for the third octet, and
//! one for the fourth where routes are longer than /24. A table of few routes has plain nodes, and is
//! asked address by address ([`SmallFib4`]). In a large one, nodes are coded, a sixth of the size, and a
//! batch overlaps its waits for memory: a pass over all addresses works out what the next pass reads and
//! prefetches it. Addresses that are done after the first load go along, without a branch, since what a
//! random address finds cannot be guessed.

use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::arena::Arena;
use crate::dense::{self, SLOTS};
use crate::entry::Entry;
use crate::trie::{Trie, load};

/// How many lookups are staged together.
const STAGE: usize = 256;
const UNIT_WORDS: usize = Arena::<AtomicU32>::UNIT_WORDS;

/// The IPv4 table as readers see it.
pub struct Fib4 {
    trie: Arc<Trie>,
}

impl Fib4 {
    pub(crate) fn new(trie: Arc<Trie>) -> Fib4 {
        Fib4 { trie }
    }

    /// The group of the longest prefix that covers `address` (in host order); 0 when there is none.
    #[inline(always)]
    #[must_use]
    pub fn lookup(&self, address: u32) -> u32 {
        let [_, _, third, fourth] = address.to_be_bytes();
        let mut entry = self.trie.top((address >> 16) as usize);
        if entry.is_node() {
            entry = self.trie.step(entry, usize::from(third));
            if entry.is_node() {
                entry = self.trie.step(entry, usize::from(fourth));
            }
        }
        entry.group()
    }

    /// The table as it is best asked one by one, when it is so small that its lookups hardly wait for
    /// memory: then staging a batch would only be more to do.
    #[inline(always)]
    #[must_use]
    pub fn small(&self) -> Option<SmallFib4<'_>> {
        if self.trie.coded.load(Ordering::Relaxed) > 0 {
            return None;
        }
        Some(SmallFib4 { fib: self, root: &self.trie.root, blocks: self.trie.words.first() })
    }

    /// Looks up many addresses so that their waits for memory overlap. Stops at the end of the
    /// shorter slice.
    #[inline(always)]
    pub fn lookup_batch(&self, addresses: &[u32], groups: &mut [u32]) {
        for (addresses, groups) in addresses.chunks(STAGE).zip(groups.chunks_mut(STAGE)) {
            let count = addresses.len().min(groups.len());
            let (Some(addresses), Some(groups)) = (addresses.get(..count), groups.get_mut(..count)) else { return };
            self.stage(addresses, groups);
        }
    }

    /// The table to be asked step by step, for loops that do other things between the steps. Of any size; a small one
    /// is better asked as such.
    #[inline(always)]
    #[must_use]
    pub fn large(&self) -> LargeFib4<'_> {
        LargeFib4 { trie: &self.trie, root: &self.trie.root, words: self.trie.words.first() }
    }

    /// Up to [`STAGE`] lookups, pass by pass.
    #[inline(always)]
    fn stage(&self, addresses: &[u32], groups: &mut [u32]) {
        let steps = self.large();
        // Arrays of a fixed size, each visited at the same places: no bound to check.
        let (mut entries, mut places) = ([0u32; STAGE], [0u32; STAGE]);
        for (&address, entry) in addresses.iter().zip(&mut entries) {
            *entry = steps.first(address);
        }
        for ((&address, &entry), place) in addresses.iter().zip(&entries).zip(&mut places) {
            *place = steps.second(address, entry);
        }
        let mut all = 0;
        for ((group, &entry), &place) in groups.iter_mut().zip(&entries).zip(&places) {
            *group = steps.below(entry, place).0;
            all |= *group;
        }
        if Entry(all).is_node() {
            self.finish(addresses, groups);
        }
    }

    /// The last octet, for routes longer than /24, which are few.
    #[cold]
    fn finish(&self, addresses: &[u32], groups: &mut [u32]) {
        for (&address, group) in addresses.iter().zip(groups) {
            let entry = Entry(*group);
            if entry.is_node() {
                *group = self.trie.step(entry, slot(address, 0)).group();
            }
        }
    }
}

/// The slot of the octet that ends `shift` bits from the right.
#[inline(always)]
fn slot(address: u32, shift: u32) -> usize {
    (address >> shift) as usize % SLOTS
}

/// A [`Fib4`] as plain slices, a lookup in three steps. Each fetches what the next one reads, which then does not
/// wait if enough was done in between.
#[derive(Clone, Copy)]
pub struct LargeFib4<'a> {
    trie: &'a Trie,
    root: &'a [AtomicU32; crate::trie::ROOT],
    /// All that the first chunk holds.
    words: &'a [AtomicU32],
}

impl LargeFib4<'_> {
    /// What the root says of an address: a word for the steps that follow.
    #[inline(always)]
    #[must_use]
    pub fn first(self, address: u32) -> u32 {
        let top = load(&self.root[(address >> 16) as usize]);
        let (head, _) = dense::head_of(slot(address, 8));
        self.fetch(top.unit() as usize * UNIT_WORDS + head);
        top.0
    }

    /// Where the node of the third octet holds it, when `first` is the word of the first step. Addresses that were
    /// done with the root go along: what a random one finds cannot be guessed.
    #[inline(always)]
    #[must_use]
    pub fn second(self, address: u32, first: u32) -> u32 {
        let (entry, slot) = (Entry(first), slot(address, 8));
        let start = entry.unit() as usize * UNIT_WORDS;
        let (head, bit) = dense::head_of(slot);
        let found = match self.words.get(start + head) {
            Some(word) if !entry.is_plain() => start + dense::run_of(word.load(Ordering::Relaxed), bit),
            _ => {
                cold_path();
                self.trie.place_of(entry, slot)
            }
        };
        self.fetch(found);
        found as u32
    }

    /// The group, when `first` and `second` are the words of the steps before.
    #[inline(always)]
    #[must_use]
    pub fn third(self, address: u32, first: u32, second: u32) -> u32 {
        let entry = self.below(first, second);
        if entry.is_node() {
            // Few routes are longer than /24.
            cold_path();
            return self.trie.step(entry, slot(address, 0)).group();
        }
        entry.group()
    }

    /// What the node of the third octet holds; what was a leaf already led to some place, which says nothing.
    #[inline(always)]
    fn below(self, first: u32, second: u32) -> Entry {
        let below = match self.words.get(second as usize) {
            Some(word) => load(word),
            None => {
                cold_path();
                self.trie.words.get(second as usize).map_or(Entry::NO_ROUTE, load)
            }
        };
        if Entry(first).is_node() { below } else { Entry(first) }
    }

    #[inline(always)]
    fn fetch(self, word: usize) {
        weir_cpu::prefetch_address(self.words.as_ptr().wrapping_add(word).cast());
    }
}

impl std::fmt::Debug for LargeFib4<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LargeFib4").finish_non_exhaustive()
    }
}

/// A small [`Fib4`] as plain slices: for loops over many packets, which would otherwise look for root
/// and blocks again for each.
#[derive(Clone, Copy, Debug)]
pub struct SmallFib4<'a> {
    fib: &'a Fib4,
    root: &'a [AtomicU32; crate::trie::ROOT],
    /// All that the first chunk holds.
    blocks: &'a [AtomicU32],
}

impl SmallFib4<'_> {
    /// As [`Fib4::lookup`].
    #[inline(always)]
    #[must_use]
    pub fn lookup(self, address: u32) -> u32 {
        let mut entry = load(&self.root[(address >> 16) as usize]);
        if entry.is_node() {
            entry = self.step(entry, slot(address, 8));
            if entry.is_node() {
                // Few routes are longer than /24.
                cold_path();
                entry = self.step(entry, slot(address, 0));
            }
        }
        entry.group()
    }

    /// What the slot of a block holds; a coded node, made since the table was small, is found too.
    #[inline(always)]
    fn step(self, node: Entry, slot: usize) -> Entry {
        match self.blocks.get(node.plain_unit() * UNIT_WORDS + slot) {
            Some(slot) => load(slot),
            None => {
                cold_path();
                self.fib.trie.step(node, slot)
            }
        }
    }
}

impl std::fmt::Debug for Fib4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fib4").field("coded_nodes", &self.trie.coded.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}
