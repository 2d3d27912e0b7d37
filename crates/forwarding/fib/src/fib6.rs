//! The IPv6 table that workers read.
//!
//! A trie (`trie.rs`): the root has an entry for the first two octets, and below it are nodes of one octet,
//! and nodes of ranges, which tell up to four octets apart at once where a subtree has few routes. Today's routes are
//! /48 and shorter and lie in some hundred values of the first two octets: an address is found by the root, one or
//! two plain nodes, which stay in the cache, and a node of ranges; in a great allocation by a fork into such nodes (`fork.rs`).
//!
//! A table of few routes has plain nodes, and is asked address by address ([`SmallFib6`]). In a large one a lookup takes
//! three steps ([`LargeFib6`]), between which other addresses have theirs, so that their waits for memory overlap.
//! The steps hardly have a branch: what a random address finds cannot be guessed.

use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_cpu::{AnyMachine, Code};

use crate::arena::UNIT_WORDS;
use crate::dense::SLOTS;
use crate::entry::Entry;
use crate::fork;
use crate::range::{self, ANY_GROUP, LINE};
use crate::trie::{Trie, load};

/// How many lookups are staged together.
const STAGE: usize = 256;
/// Octets of an address.
const OCTETS: usize = 16;
/// Octets of each half of it.
const HALF: usize = 8;
/// Units of memory of a cache line.
const LINE_UNITS: u32 = (LINE / UNIT_WORDS) as u32;

/// The IPv6 table as readers see it.
pub struct Fib6 {
    trie: Arc<Trie>,
}

impl Fib6 {
    pub(crate) fn new(trie: Arc<Trie>) -> Fib6 {
        Fib6 { trie }
    }

    /// The group of the longest prefix that covers `address`; 0 when there is none.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: u128) -> u32 {
        let mut entry = self.trie.top((address >> 112) as usize);
        for level in 2..OCTETS {
            if !entry.is_node() {
                break;
            }
            if entry.is_fork() {
                entry = self.trie.branch(entry, key(address, level));
            }
            if entry.is_ranges() {
                return self.trie.search(entry, key(address, level));
            }
            entry = self.trie.step(entry, slot(address, level));
        }
        entry.group()
    }

    /// The table as it is best asked one by one, when it is so small that its lookups hardly wait for
    /// memory: then staging a batch would only be more to do.
    #[inline(always)]
    #[must_use]
    pub fn small(&self) -> Option<SmallFib6<'_>> {
        if self.trie.coded.load(Ordering::Relaxed) > 0 {
            return None;
        }
        Some(SmallFib6 {
            fib: self,
            root: &self.trie.root,
            blocks: self.trie.words.first(),
        })
    }

    /// The table to be asked step by step, for loops that do other things between the steps. Of any size; a small one
    /// is better asked as such.
    #[inline(always)]
    #[must_use]
    pub fn large(&self) -> LargeFib6<'_> {
        let words = self.trie.words.first();
        LargeFib6 {
            fib: self,
            root: &self.trie.root,
            words,
            lines: words.as_chunks().0,
        }
    }

    /// Looks up many addresses so that their waits for memory overlap. Stops at the end of the
    /// shorter slice.
    #[inline(always)]
    pub fn lookup_batch(&self, addresses: &[u128], groups: &mut [u32]) {
        let steps = self.large();
        let mut ways = [Way6::default(); STAGE];
        for (addresses, groups) in addresses.chunks(STAGE).zip(groups.chunks_mut(STAGE)) {
            let count = addresses.len().min(groups.len());
            let Some(ways) = ways.get_mut(..count) else {
                return;
            };
            for (&address, way) in addresses.iter().zip(&mut *ways) {
                *way = steps.first((address >> 64) as u64);
            }
            for way in &mut *ways {
                steps.second(AnyMachine, way);
            }
            for ((group, &address), way) in groups.iter_mut().zip(addresses).zip(&*ways) {
                *group = steps.last(AnyMachine, way, || address);
            }
        }
    }
}

/// An octet of an address.
#[inline(always)]
fn slot(address: u128, level: usize) -> usize {
    (address >> (120 - 8 * (level % OCTETS))) as usize % 256
}

/// What a node of ranges at `level` tells apart: up to four octets, and nothing behind the half that it is in.
fn key(address: u128, level: usize) -> u32 {
    let half = if level < HALF {
        (address >> 64) as u64
    } else {
        address as u64
    };
    (half << (8 * (level % HALF)) >> 32) as u32
}

/// How far a lookup in a [`LargeFib6`] is: what the next step starts from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way6 {
    /// A leaf, or the node of ranges whose line is read next.
    entry: u32,
    /// What that tells apart.
    key: i32,
}

/// A [`Fib6`] as plain slices, a lookup in three steps. Each fetches what the next one reads, which then does not
/// wait if enough was done in between.
#[derive(Clone, Copy, Debug)]
pub struct LargeFib6<'a> {
    fib: &'a Fib6,
    root: &'a [AtomicU32; crate::trie::ROOT],
    /// All that the first chunk holds.
    words: &'a [AtomicU32],
    /// The same as cache lines.
    lines: &'a [[AtomicU32; LINE]],
}

impl LargeFib6<'_> {
    /// Through the root and plain nodes, with the upper half of an address.
    #[inline(always)]
    #[must_use]
    pub fn first(self, upper: u64) -> Way6 {
        let top = load(&self.root[(upper >> 48) as usize]);
        match self
            .words
            .get(top.plain_word((upper >> 40) as usize % SLOTS))
            .map(load)
        {
            Some(entry) if entry.is_near() => self.to(entry, (upper >> 8) as u32 | ANY_GROUP),
            Some(entry) => self.further(entry, upper << 24 | 1 << 23),
            None => self.further(top, upper << 16 | 1 << 15),
        }
    }

    /// The same from some entry on. A bit stands behind the octets that are left, where no node of ranges within them
    /// tells anything apart.
    #[inline(always)]
    fn further(self, mut entry: Entry, mut rest: u64) -> Way6 {
        while entry.is_plain() {
            let Some(word) = self.words.get(entry.plain_word((rest >> 56) as usize)) else {
                break;
            };
            entry = load(word);
            rest <<= 8;
            if rest == 1 << 63 {
                // What is left is in the other half: for all that is a node, the last step knows that it is too far.
                entry = if entry.is_node() {
                    Entry::plain(0)
                } else {
                    entry
                };
                break;
            }
        }
        self.to(entry, (rest >> 32) as u32 | entry.any_group())
    }

    /// What a fork leads to; itself where it is not to be had here, which the last step finds to be so.
    #[inline(always)]
    fn branch(self, code: impl Code, fork: Entry, key: &i32) -> Entry {
        match self
            .lines
            .get(line_of(fork)..)
            .and_then(|lines| lines.first_chunk())
        {
            Some([starts, entries]) => fork::entry_in(code, starts, entries, key),
            None => fork,
        }
    }

    /// Through forks, and the index of a node of ranges. What has none, or is done, goes along: what a random address finds
    /// cannot be guessed.
    #[inline(always)]
    pub fn second(self, code: impl Code, way: &mut Way6) {
        let mut entry = Entry(way.entry);
        if entry.is_fork() {
            // One of ten, which cannot be guessed either: here it is known soon whether the guess was right.
            entry = self.branch(code, entry, &way.key);
        }
        let line = line_of(entry);
        let further = if line < self.lines.len() {
            range::line_below(code, &self.lines[line], &way.key)
        } else {
            0
        };
        let entry = entry.below_index(further * LINE_UNITS);
        self.fetch(entry);
        way.entry = entry.0;
    }

    /// The group.
    #[inline(always)]
    #[must_use]
    pub fn last(self, code: impl Code, way: &Way6, address: impl FnOnce() -> u128) -> u32 {
        let entry = Entry(way.entry);
        let line = line_of(entry);
        if line < self.lines.len() {
            let line = &self.lines[line];
            if entry.is_usual() {
                let group = range::group_marked(code, line, &way.key);
                return if entry.is_node() {
                    group
                } else {
                    entry.group()
                };
            }
            if entry.is_ranges() {
                return range::group_in(line, way.key);
            }
        }
        cold_path();
        far(self.fib, address())
    }

    #[inline(always)]
    fn to(self, entry: Entry, key: u32) -> Way6 {
        self.fetch(entry);
        Way6 {
            entry: entry.0,
            key: range::turned(key),
        }
    }

    #[inline(always)]
    fn fetch(self, entry: Entry) {
        weir_cpu::prefetch_address(
            self.words
                .as_ptr()
                .wrapping_add(line_of(entry) * LINE)
                .cast(),
        );
    }
}

/// The cache line at which a node of ranges or a fork begins; of a leaf any.
#[inline(always)]
fn line_of(entry: Entry) -> usize {
    (entry.unit() / LINE_UNITS) as usize
}

/// Many nodes above one another, a great group, or memory beyond the first chunk: the whole lookup at once.
#[cold]
#[inline(never)]
fn far(fib: &Fib6, address: u128) -> u32 {
    fib.lookup(address)
}

/// A small [`Fib6`] as plain slices: for loops over many packets, which would otherwise look for root
/// and blocks again for each.
#[derive(Clone, Copy, Debug)]
pub struct SmallFib6<'a> {
    fib: &'a Fib6,
    root: &'a [AtomicU32; crate::trie::ROOT],
    /// All that the first chunk holds.
    blocks: &'a [AtomicU32],
}

impl SmallFib6<'_> {
    /// As [`Fib6::lookup`], of an address in halves: what is forwarded is mostly found in the first.
    #[inline(always)]
    #[must_use]
    pub fn lookup(self, upper: u64, lower: u64) -> u32 {
        let mut entry = load(&self.root[(upper >> 48) as usize]);
        // A bit stands behind the octets that are left, so that the last of them is known by it.
        let mut rest = upper << 16 | 1 << 8;
        while entry.is_node() {
            let slot = self
                .blocks
                .get(entry.plain_unit() * UNIT_WORDS + (rest >> 56) as usize);
            let Some(slot) = slot.filter(|_| rest << 8 != 0) else {
                return self.lookup_far(upper, lower);
            };
            entry = load(slot);
            rest <<= 8;
        }
        entry.group()
    }

    /// A route longer than /64, or a coded node, made since the table was small.
    #[cold]
    #[inline(never)]
    fn lookup_far(self, upper: u64, lower: u64) -> u32 {
        self.fib.lookup(u128::from(upper) << 64 | u128::from(lower))
    }
}

impl std::fmt::Debug for Fib6 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fib6")
            .field("coded_nodes", &self.trie.coded.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use ipnet::Ipv6Net;

    use crate::Fib6Writer;

    #[test]
    fn a_great_allocation_has_a_fork() {
        let mut writer = Fib6Writer::new(&weir_ring::qsbr::Domain::new(1)).unwrap();
        let net = |first: u128, n: u128| Ipv6Net::new((first << 96 | n << 80).into(), 48).unwrap();
        // So many nodes that the rest are no longer plain.
        let others = (0..400).map(|n| (net(0x1a00_0000 + (n << 8), 0), 7));
        let routes: Vec<(Ipv6Net, u32)> = others
            .chain((0..700).map(|n| (net(0x2001_0db8, 90 * n), n as u32 % 9 + 1)))
            .collect();
        writer.extend(&routes).unwrap();
        let fib = writer.fib();
        let below = fib.trie.step(fib.trie.top(0x2001), 0x0d);
        assert!(below.is_fork(), "{below:?}");
        assert!(fib.trie.branch(below, 0xb8 << 24).has_marks());
        assert_eq!(
            fib.lookup(u128::from(net(0x2001_0db8, 90 * 31).network()) + 5),
            5
        );
        // In steps, too, which go through forks elsewhere.
        let address = |n: u128| u128::from(net(0x2001_0db8, n).network()) + 5;
        let addresses: Vec<u128> = (0..700)
            .flat_map(|n| [address(90 * n), address(90 * n + 1)])
            .collect();
        let mut groups = vec![0; addresses.len()];
        fib.lookup_batch(&addresses, &mut groups);
        assert!(
            groups
                .iter()
                .zip(&addresses)
                .all(|(&group, &address)| group == fib.lookup(address))
        );
        assert_eq!(groups[..4], [1, 0, 2, 0]);
    }
}
