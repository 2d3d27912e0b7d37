//! The IPv4 table that workers read: a trie of 16, 8 and 8 bits over atomic words.
//!
//! The root has an entry for each first half of an address. An entry is a leaf (the group, and the
//! length of the route that it comes from) or leads to a block of 256 entries for the next octet. A
//! lookup is one to three loads. Routes longer than /16 are what makes blocks, so a table of a few
//! routes is the root alone, 256 KiB.
//!
//! Blocks live in chunks that are allocated once and never move, so a reader needs no lock and no
//! reference count. One writer (see `writer.rs`) fills a block before it stores the entry that leads
//! to it, and hands a block that fell empty to another prefix only when every reader has passed a
//! quiescent state. A reader that does not take part in that protocol could see the answer of another
//! prefix, never anything worse.
//!
//! A route that covers many entries is written entry by entry: for a moment some addresses have the
//! new answer and some the old, but each has one of the two.
//!
//! Batches overlap their waits for memory: a pass over all addresses reads one level and prefetches
//! the next.

use std::hint::cold_path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use zerocopy::FromZeros;

/// Entries of the root: one for each value of an address's upper half.
const ROOT: usize = 1 << 16;
/// Entries of a block.
pub(crate) const BLOCK: usize = 256;
/// Blocks of a chunk: 8 MiB, of which the kernel only gives what is written, in huge pages if it may.
const CHUNK_BLOCKS: usize = 8192;
const CHUNK: usize = CHUNK_BLOCKS * BLOCK;
/// Chunks of a table.
const CHUNKS: usize = 128;
/// Blocks of a table: enough for a million routes longer than /16 that share no block.
pub(crate) const MAX_BLOCKS: u32 = (CHUNKS * CHUNK_BLOCKS) as u32;

const GROUP_BITS: u32 = 25;
const GROUP_MASK: u32 = (1 << GROUP_BITS) - 1;
const BLOCK_FLAG: u32 = 1 << 31;

/// The highest group number that a route can have.
pub const MAX_GROUP: u32 = GROUP_MASK;

/// How many lookups are staged together.
const STAGE: usize = 256;

/// What a slot of the trie holds: bit 31 tells a block (number below) from a leaf (6 bits of prefix
/// length, 25 bits of group). Zero is a leaf: no route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry(u32);

impl Entry {
    pub(crate) const NO_ROUTE: Entry = Entry(0);

    pub(crate) fn leaf(len: u8, group: u32) -> Entry {
        Entry(u32::from(len) << GROUP_BITS | (group & GROUP_MASK))
    }

    pub(crate) fn block(number: u32) -> Entry {
        Entry(BLOCK_FLAG | number)
    }

    #[inline(always)]
    pub(crate) fn is_block(self) -> bool {
        self.0 & BLOCK_FLAG != 0
    }

    /// Number of the block that this leads to.
    #[inline(always)]
    pub(crate) fn number(self) -> u32 {
        self.0 & !BLOCK_FLAG
    }

    /// Length of the route that this leaf comes from.
    pub(crate) fn len(self) -> u8 {
        (self.0 >> GROUP_BITS) as u8
    }
}

type Root = [AtomicU32; ROOT];
type Chunk = [AtomicU32; CHUNK];

/// The IPv4 table as readers see it.
pub struct Fib4 {
    root: Box<Root>,
    chunks: Box<[OnceLock<Box<Chunk>>; CHUNKS]>,
    /// One more than the highest block that was ever used.
    blocks: AtomicU32,
}

/// A table of at most this many blocks (1 MiB) stays in the cache.
const FEW_BLOCKS: u32 = 1024;

impl Fib4 {
    /// An empty table; `None` when there is no memory for it.
    pub(crate) fn new() -> Option<Fib4> {
        let chunks: Box<[OnceLock<Box<Chunk>>]> = (0..CHUNKS).map(|_| OnceLock::new()).collect();
        Some(Fib4 { root: Root::new_box_zeroed().ok()?, chunks: chunks.try_into().ok()?, blocks: AtomicU32::new(0) })
    }

    /// The group of the longest prefix that covers `address` (in host order); 0 when there is none.
    #[inline(always)]
    #[must_use]
    pub fn lookup(&self, address: u32) -> u32 {
        let mut entry = load(self.root_slot(address));
        if entry.is_block() {
            entry = self.step(entry, address >> 8);
            if entry.is_block() {
                entry = self.step(entry, address);
            }
        }
        entry.0 & GROUP_MASK
    }

    /// The table as it is best asked one by one, when it is so small that its lookups hardly wait for
    /// memory: then staging a batch would only be more to do.
    #[inline(always)]
    #[must_use]
    pub fn small(&self) -> Option<SmallFib4<'_>> {
        if self.blocks.load(Ordering::Relaxed) > FEW_BLOCKS {
            return None;
        }
        let blocks = self.chunks.first().and_then(OnceLock::get).map_or(&[][..], |chunk| &chunk[..]);
        Some(SmallFib4 { fib: self, root: &self.root, blocks })
    }

    /// Looks up many addresses so that their waits for memory overlap. Stops at the end of the
    /// shorter slice.
    #[inline]
    pub fn lookup_batch(&self, addresses: &[u32], groups: &mut [u32]) {
        for (addresses, groups) in addresses.chunks(STAGE).zip(groups.chunks_mut(STAGE)) {
            self.stage(addresses, groups);
        }
    }

    /// Up to [`STAGE`] lookups, level by level. Each level asks the cache for what the next one reads.
    #[inline(always)]
    fn stage(&self, addresses: &[u32], groups: &mut [u32]) {
        let mut deeper = 0;
        for (&address, group) in addresses.iter().zip(groups.iter_mut()) {
            let entry = load(self.root_slot(address));
            *group = entry.0;
            deeper += self.announce(entry, address >> 8);
        }
        for shift in [8, 0] {
            if deeper == 0 {
                break;
            }
            deeper = 0;
            for (&address, group) in addresses.iter().zip(groups.iter_mut()) {
                let entry = Entry(*group);
                if entry.is_block() {
                    let entry = self.step(entry, address >> shift);
                    *group = entry.0;
                    // Below the second octet only the last one is left.
                    deeper += self.announce(entry, address);
                }
            }
        }
        for group in groups {
            *group &= GROUP_MASK;
        }
    }

    /// Prefetches what [`Fib4::step`] will read; returns 1 if the entry leads to a block, else 0.
    #[inline(always)]
    fn announce(&self, entry: Entry, octet: u32) -> usize {
        if !entry.is_block() {
            return 0;
        }
        if let Some(slot) = self.slot(entry, octet) {
            weir_cpu::prefetch(slot);
        }
        1
    }

    /// The slot of the root for an address.
    #[inline(always)]
    pub(crate) fn root_slot(&self, address: u32) -> &AtomicU32 {
        &self.root[(address >> 16) as usize]
    }

    /// Slots of the root, in order of addresses.
    pub(crate) fn root(&self) -> &[AtomicU32] {
        &self.root[..]
    }

    /// The slot of a block for an octet (the low 8 bits of `octet`).
    #[inline(always)]
    fn slot(&self, block: Entry, octet: u32) -> Option<&AtomicU32> {
        let number = block.number() as usize;
        let chunk = self.chunks[(number / CHUNK_BLOCKS) % CHUNKS].get()?;
        Some(&chunk[(number % CHUNK_BLOCKS) * BLOCK + (octet as usize % BLOCK)])
    }

    /// What that slot holds. That there is none is not reached: a chunk is there before an entry
    /// leads into it.
    #[inline(always)]
    fn step(&self, block: Entry, octet: u32) -> Entry {
        self.slot(block, octet).map_or(Entry::NO_ROUTE, load)
    }

    /// The slots of a block; empty if its chunk does not exist.
    pub(crate) fn block(&self, number: u32) -> &[AtomicU32] {
        let number = number as usize;
        let chunk = self.chunks.get(number / CHUNK_BLOCKS).and_then(OnceLock::get);
        let start = (number % CHUNK_BLOCKS) * BLOCK;
        chunk.and_then(|chunk| chunk.get(start..start + BLOCK)).unwrap_or(&[])
    }

    /// Makes sure that the chunk of a block exists. `false` when there is no memory or no such block.
    pub(crate) fn provide(&self, number: u32) -> bool {
        let Some(place) = self.chunks.get(number as usize / CHUNK_BLOCKS) else { return false };
        self.blocks.fetch_max(number.saturating_add(1), Ordering::Relaxed);
        if place.get().is_some() {
            return true;
        }
        Chunk::new_box_zeroed().is_ok_and(|chunk| place.set(chunk).is_ok())
    }

    /// Bytes before the first block: the root and the directory of chunks.
    pub(crate) fn fixed_bytes() -> usize {
        size_of::<Root>() + size_of::<[OnceLock<Box<Chunk>>; CHUNKS]>()
    }
}

/// A small [`Fib4`] as plain slices: for loops over many packets, which would otherwise look for root
/// and blocks again for each.
#[derive(Clone, Copy, Debug)]
pub struct SmallFib4<'a> {
    fib: &'a Fib4,
    root: &'a Root,
    /// All that the first chunk holds.
    blocks: &'a [AtomicU32],
}

impl SmallFib4<'_> {
    /// As [`Fib4::lookup`].
    #[inline(always)]
    #[must_use]
    pub fn lookup(self, address: u32) -> u32 {
        let mut entry = load(&self.root[(address >> 16) as usize]);
        if entry.is_block() {
            entry = self.step(entry, address >> 8);
            if entry.is_block() {
                // Few routes are longer than /24.
                cold_path();
                entry = self.step(entry, address);
            }
        }
        entry.0 & GROUP_MASK
    }

    /// What the slot of a block holds; one that was made since the table was small is found too.
    #[inline(always)]
    fn step(self, block: Entry, octet: u32) -> Entry {
        match self.blocks.get(block.number() as usize * BLOCK + octet as usize % BLOCK) {
            Some(slot) => load(slot),
            None => {
                cold_path();
                self.fib.step(block, octet)
            }
        }
    }
}

impl std::fmt::Debug for Fib4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let chunks = self.chunks.iter().filter(|chunk| chunk.get().is_some()).count();
        f.debug_struct("Fib4").field("chunks", &chunks).finish_non_exhaustive()
    }
}

/// Reads a slot. Acquire, so that the block that an entry leads to is seen as its writer filled it.
#[inline(always)]
pub(crate) fn load(slot: &AtomicU32) -> Entry {
    Entry(slot.load(Ordering::Acquire))
}

/// Writes a slot. Release, so that a block is seen filled by whoever sees the entry leading to it.
#[inline(always)]
pub(crate) fn store(slot: &AtomicU32, entry: Entry) {
    slot.store(entry.0, Ordering::Release);
}
