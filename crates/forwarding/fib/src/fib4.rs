//! The IPv4 table that workers read.
//!
//! A trie of 16, 8 and 8 bits (`trie.rs`): the root has an entry for each first half of an address, and a
//! lookup is one load when no route there is longer than /16, else a node more for the third octet, and
//! one for the fourth where routes are longer than /24. A table of few routes has plain nodes, and is
//! asked address by address ([`SmallFib4`]). In a larger one nodes are dense, a tenth of the size. A
//! batch overlaps its waits for memory: a pass over all addresses works out what the next pass reads and
//! fetches it ([`LargeFib4`]). A full one has a cache line for each /17 beside (`line.rs`), so that what a lookup reads can be
//! asked for when the address is known ([`FullFib4`]). Addresses that are done after the first load go along, without a branch, since what a
//! random address finds cannot be guessed.

use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::arena::UNIT_WORDS;
use crate::dense::{self, SLOTS};
use crate::entry::Entry;
use crate::line;
use crate::trie::{Trie, byte_of_run, load};

/// How many lookups ahead a full table is asked for what one reads.
const AHEAD: usize = 24;
/// How many lookups are staged together.
const STAGE: usize = 256;
/// Words of a cache line.
const CACHE_LINE: usize = 16;

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
        Some(SmallFib4 {
            fib: self,
            root: &self.trie.root,
            blocks: self.trie.words.first(),
        })
    }

    /// The table as it is best asked when lines tell nearly all of it.
    #[inline(always)]
    #[must_use]
    pub fn full(&self) -> Option<FullFib4<'_>> {
        if !self.trie.is_reported.load(Ordering::Acquire) {
            return None;
        }
        Some(FullFib4 {
            fib: self,
            lines: self.trie.lines.get()?.all()?,
        })
    }

    /// Looks up many addresses so that their waits for memory overlap. Stops at the end of the
    /// shorter slice.
    #[inline(always)]
    pub fn lookup_batch(&self, addresses: &[u32], groups: &mut [u32]) {
        if let Some(full) = self.full() {
            return full.lookup_batch(addresses, groups);
        }
        for (addresses, groups) in addresses.chunks(STAGE).zip(groups.chunks_mut(STAGE)) {
            let count = addresses.len().min(groups.len());
            let (Some(addresses), Some(groups)) = (addresses.get(..count), groups.get_mut(..count))
            else {
                return;
            };
            self.stage(addresses, groups);
        }
    }

    /// The table to be asked step by step, for loops that do other things between the steps. Of any size; a small one
    /// is better asked as such.
    #[inline(always)]
    #[must_use]
    pub fn large(&self) -> LargeFib4<'_> {
        LargeFib4 {
            trie: &self.trie,
            root: &self.trie.root,
            words: self.trie.words.first(),
        }
    }

    /// Up to [`STAGE`] lookups, pass by pass.
    #[inline(always)]
    fn stage(&self, addresses: &[u32], groups: &mut [u32]) {
        let steps = self.large();
        let mut entries = [0u32; STAGE];
        for &address in addresses {
            steps.announce((address >> 16) as u16);
        }
        for (&address, entry) in addresses.iter().zip(&mut entries) {
            *entry = steps.first(address);
        }
        for ((&address, group), &entry) in addresses.iter().zip(groups).zip(&entries) {
            *group = steps.last(address, entry);
        }
    }
}

/// The slot of the octet that ends `shift` bits from the right.
#[inline(always)]
fn slot(address: u32, shift: u32) -> usize {
    (address >> shift) as usize % SLOTS
}

/// A [`Fib4`] as plain slices, a lookup in steps: it is announced, and then each step fetches what the next one
/// reads, which then does not wait if enough was done in between.
#[derive(Clone, Copy)]
pub struct LargeFib4<'a> {
    trie: &'a Trie,
    root: &'a [AtomicU32; crate::trie::ROOT],
    /// All that the first chunk holds.
    words: &'a [AtomicU32],
}

impl LargeFib4<'_> {
    /// Fetches what [`LargeFib4::first`] reads for addresses with this first half: the root of a full table is larger
    /// than a first-level cache, and is not alone in the second.
    #[inline(always)]
    pub fn announce(self, half: u16) {
        weir_cpu::prefetch(&self.root[usize::from(half)]);
    }

    /// What the root says of an address: a word for the step that follows. Fetches the two cache lines that most dense
    /// nodes of the third octet fill.
    #[inline(always)]
    #[must_use]
    pub fn first(self, address: u32) -> u32 {
        let top = load(&self.root[(address >> 16) as usize]);
        let start = top.unit() as usize * UNIT_WORDS;
        self.fetch(start);
        self.fetch(start + CACHE_LINE);
        top.0
    }

    /// The group, when `first` is the word of the step before. Addresses that were done with the root go along: what
    /// a random one finds cannot be guessed.
    #[inline(always)]
    #[must_use]
    pub fn last(self, address: u32, first: u32) -> u32 {
        let (entry, slot) = (Entry(first), slot(address, 8));
        let (head, bit) = dense::head_of(slot);
        let start = entry.unit() as usize * UNIT_WORDS;
        let Some(head) = self.words.get(start + head).filter(|_| !entry.is_plain()) else {
            return otherwise(self.trie, address, first);
        };
        let byte = byte_of_run(entry, dense::run_of(head.load(Ordering::Relaxed), bit));
        let Some(word) = self.words.get(byte / size_of::<u32>()) else {
            return otherwise(self.trie, address, first);
        };
        let below = dense::read(load(word).0, byte, entry.narrow());
        let entry = if entry.is_node() { below } else { entry };
        if entry.is_node() {
            otherwise(self.trie, address, first)
        } else {
            entry.group()
        }
    }

    #[inline(always)]
    fn fetch(self, word: usize) {
        weir_cpu::prefetch_address(self.words.as_ptr().wrapping_add(word).cast());
    }
}

/// A plain node, which few are, one beyond the first chunk, or a route longer than /24.
#[cold]
#[inline(never)]
fn otherwise(trie: &Trie, address: u32, first: u32) -> u32 {
    let mut entry = Entry(first);
    for shift in [8, 0] {
        if entry.is_node() {
            entry = trie.step(entry, slot(address, shift));
        }
    }
    entry.group()
}

/// A [`Fib4`] whose lines tell nearly all: for loops that ask for what a lookup reads some packets earlier.
#[derive(Clone, Copy)]
pub struct FullFib4<'a> {
    fib: &'a Fib4,
    lines: &'a line::All,
}

impl FullFib4<'_> {
    /// Asks the processor's cache for what a lookup reads.
    #[inline(always)]
    pub fn announce(self, address: u32) {
        weir_cpu::prefetch(&self.lines[line::of(address)]);
    }

    /// As [`Fib4::lookup`].
    #[inline(always)]
    #[must_use]
    pub fn lookup(self, address: u32) -> u32 {
        match self.lines[line::of(address)].group(address) {
            Some(group) => group,
            None => {
                cold_path();
                unreported(self.fib, address)
            }
        }
    }

    #[inline(always)]
    fn lookup_batch(self, addresses: &[u32], groups: &mut [u32]) {
        addresses
            .iter()
            .take(AHEAD)
            .for_each(|&address| self.announce(address));
        let (last, later) = (
            addresses.last().copied().unwrap_or(0),
            addresses.get(AHEAD..).unwrap_or(&[]),
        );
        let soon = later.iter().copied().chain(std::iter::repeat(last));
        for ((&address, soon), group) in addresses.iter().zip(soon).zip(groups) {
            self.announce(soon);
            *group = self.lookup(address);
        }
    }
}

/// What no line tells.
#[inline(never)]
fn unreported(fib: &Fib4, address: u32) -> u32 {
    fib.lookup(address)
}

impl std::fmt::Debug for FullFib4<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FullFib4").finish_non_exhaustive()
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
    /// Asks the processor's cache for what a lookup reads first, where many lines of the table are in use.
    #[inline(always)]
    pub fn announce(self, address: u32) {
        weir_cpu::prefetch(&self.root[(address >> 16) as usize]);
    }

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
        f.debug_struct("Fib4")
            .field("coded_nodes", &self.trie.coded.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}
