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

    /// Up to [`STAGE`] lookups, pass by pass.
    #[inline(always)]
    fn stage(&self, addresses: &[u32], groups: &mut [u32]) {
        let root = &self.trie.root;
        let words = self.trie.words.first();
        // Arrays of a fixed size, each visited at the same places: no bound to check.
        let (mut entries, mut places) = ([0u32; STAGE], [0u32; STAGE]);
        for (&address, entry) in addresses.iter().zip(&mut entries) {
            let top = load(&root[(address >> 16) as usize]);
            *entry = top.0;
            let (head, _) = dense::head_of(slot(address, 8));
            weir_cpu::prefetch_address(words.as_ptr().wrapping_add(top.unit() as usize * UNIT_WORDS + head).cast());
        }
        for ((&address, &entry), place) in addresses.iter().zip(&entries).zip(&mut places) {
            let (entry, slot) = (Entry(entry), slot(address, 8));
            let start = entry.unit() as usize * UNIT_WORDS;
            let (head, bit) = dense::head_of(slot);
            let found = match words.get(start + head) {
                Some(word) if !entry.is_plain() => start + dense::run_of(word.load(Ordering::Relaxed), bit),
                _ => {
                    cold_path();
                    self.trie.place_of(entry, slot)
                }
            };
            *place = found as u32;
            weir_cpu::prefetch_address(words.as_ptr().wrapping_add(found).cast());
        }
        let mut all = 0;
        for ((group, &entry), &place) in groups.iter_mut().zip(&entries).zip(&places) {
            let below = match words.get(place as usize) {
                Some(word) => load(word),
                None => {
                    cold_path();
                    self.trie.words.get(place as usize).map_or(Entry::NO_ROUTE, load)
                }
            };
            // What was a leaf already led to some place, which says nothing.
            let entry = if Entry(entry).is_node() { below.0 } else { entry };
            *group = entry;
            all |= entry;
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
