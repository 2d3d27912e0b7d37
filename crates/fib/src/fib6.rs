//! The IPv6 table that workers read.
//!
//! A trie (`trie.rs`): the root has an entry for the first two octets, and below it are nodes of one octet,
//! and sparse ones of two, where a subtree has few routes. Today's routes are /48 and shorter and lie in
//! some hundred values of the first two octets, so that an address is found in four to six steps; at most
//! it takes fifteen.
//!
//! A table of few routes has plain nodes, and is asked address by address ([`SmallFib6`]).
//!
//! A batch goes level by level, so that the waits of 256 addresses overlap. At each level the addresses
//! that go on are in two lists, by the kind of node they lead to: nothing has to be guessed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use crate::arena::Arena;
use crate::dense;
use crate::entry::{Entry, GROUP_MASK};
use crate::trie::{Trie, load};

/// How many lookups are staged together.
const STAGE: usize = 256;
const UNIT_WORDS: usize = Arena::<AtomicU32>::UNIT_WORDS;
const UNIT_HALVES: usize = Arena::<AtomicU16>::UNIT_WORDS;
/// Octets of an address.
const OCTETS: usize = 16;

/// The IPv6 table as readers see it.
pub struct Fib6 {
    trie: Arc<Trie>,
}

/// Addresses of a batch, by number, that lead to one kind of node.
struct List {
    numbers: [u8; STAGE],
    len: usize,
}

impl List {
    fn new() -> List {
        List { numbers: [0; STAGE], len: 0 }
    }

    /// Appends a number if it is `wanted`, without a branch.
    #[inline(always)]
    fn push(&mut self, number: u8, wanted: bool) {
        self.numbers[self.len % STAGE] = number;
        self.len += usize::from(wanted);
    }

    #[inline(always)]
    fn numbers(&self) -> &[u8] {
        self.numbers.get(..self.len).unwrap_or(&[])
    }
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
            if entry.is_sparse() {
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
        Some(SmallFib6 { fib: self, root: &self.trie.root, blocks: self.trie.words.first() })
    }

    /// Looks up many addresses so that their waits for memory overlap. Stops at the end of the
    /// shorter slice.
    #[inline(always)]
    pub fn lookup_batch(&self, addresses: &[u128], groups: &mut [u32]) {
        for (addresses, groups) in addresses.chunks(STAGE).zip(groups.chunks_mut(STAGE)) {
            let count = addresses.len().min(groups.len());
            let (Some(addresses), Some(groups)) = (addresses.get(..count), groups.get_mut(..count)) else { return };
            self.stage(addresses, groups);
        }
    }

    /// Up to [`STAGE`] lookups, level by level.
    #[inline(always)]
    fn stage(&self, addresses: &[u128], groups: &mut [u32]) {
        let first = First { words: self.trie.words.first(), halves: self.trie.halves.first() };
        let mut entries = [0u32; STAGE];
        let (mut sparse, mut others) = (List::new(), List::new());
        for (n, (&address, place)) in addresses.iter().zip(entries.iter_mut()).enumerate() {
            let entry = self.trie.top((address >> 112) as usize);
            *place = entry.0;
            sparse.push(n as u8, entry.is_sparse());
            others.push(n as u8, entry.is_node() & !entry.is_sparse());
            first.announce(entry, slot(address, 2));
        }
        for level in 2..OCTETS {
            for &n in sparse.numbers() {
                if let Some(&address) = addresses.get(usize::from(n)) {
                    let place = &mut entries[usize::from(n)];
                    *place = self.trie.search(Entry(*place), key(address, level));
                }
            }
            if others.len == 0 {
                break;
            }
            (sparse, others) = self.descend(&first, addresses, &mut entries, &others, level);
        }
        for (group, entry) in groups.iter_mut().zip(entries) {
            *group = entry & GROUP_MASK;
        }
    }

    /// Takes the addresses of a list an octet further.
    #[inline(always)]
    fn descend(&self, first: &First<'_>, addresses: &[u128], entries: &mut [u32; STAGE], list: &List, level: usize) -> (List, List) {
        let (mut sparse, mut others) = (List::new(), List::new());
        for &n in list.numbers() {
            let Some(&address) = addresses.get(usize::from(n)) else { break };
            let place = &mut entries[usize::from(n)];
            let entry = self.trie.step(Entry(*place), slot(address, level));
            *place = entry.0;
            sparse.push(n, entry.is_sparse());
            others.push(n, entry.is_node() & !entry.is_sparse());
            first.announce(entry, slot(address, level + 1));
        }
        (sparse, others)
    }
}

/// The first chunks of both kinds of memory.
struct First<'a> {
    words: &'a [AtomicU32],
    halves: &'a [AtomicU16],
}

impl First<'_> {
    /// Prefetches what is read first of the node that an entry leads to, if it does.
    #[inline(always)]
    fn announce(&self, entry: Entry, slot: usize) {
        let (head, _) = dense::head_of(slot);
        let word = self
            .words
            .get(entry.unit() as usize * UNIT_WORDS + head)
            .map(std::ptr::from_ref)
            .map_or(std::ptr::null(), <*const _>::cast::<u8>);
        let half =
            self.halves.get(entry.unit() as usize * UNIT_HALVES).map(std::ptr::from_ref).map_or(std::ptr::null(), <*const _>::cast::<u8>);
        weir_cpu::prefetch_address(if entry.is_sparse() { half } else { word });
    }
}

/// An octet of an address.
#[inline(always)]
fn slot(address: u128, level: usize) -> usize {
    (address >> (120 - 8 * (level % OCTETS))) as usize % 256
}

/// Two octets of an address, from `level` on, which is not the last.
#[inline(always)]
fn key(address: u128, level: usize) -> u16 {
    (address >> (112 - 8 * (level % (OCTETS - 1)))) as u16
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
            let slot = self.blocks.get(entry.plain_unit() * UNIT_WORDS + (rest >> 56) as usize);
            let Some(slot) = slot.filter(|_| rest << 8 != 0) else { return self.lookup_far(upper, lower) };
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
        f.debug_struct("Fib6").field("coded_nodes", &self.trie.coded.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}
