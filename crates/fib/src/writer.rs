//! The hand that changes an IPv4 table, and the exact routes beside it.
//!
//! Used by the control thread. The trie of [`Fib4`] knows for each entry how long the route is that
//! it comes from, so an insertion overwrites what comes from shorter routes and leaves longer ones
//! alone. A removal needs the route that covers the removed one, which the exact routes tell.
//!
//! For each block the writer counts the routes that need it. When the last one goes, all entries of
//! the block are equal; the parent takes over that entry, and the block waits until every reader has
//! passed a quiescent state before another prefix may use it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use ipnet::Ipv4Net;
use prefix_trie::PrefixMap;
use weir_ring::qsbr::{Domain, Ticket};

use crate::fib4::{BLOCK, Entry, Fib4, MAX_BLOCKS, MAX_GROUP, load, store};

/// Why a route cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FibError {
    /// No block of the trie is left, or no memory for more.
    #[error("the IPv4 table is full: no memory for another block of routes")]
    Full,
    /// The group number does not fit an entry.
    #[error("group number {0} is over {MAX_GROUP}")]
    GroupTooHigh(u32),
}

/// What a table occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Memory {
    /// Bytes that lookups read: root, directory and blocks in use or waiting.
    pub table: usize,
    /// Bytes of the exact routes beside it.
    pub routes: usize,
    /// Blocks in use.
    pub blocks: usize,
    /// Blocks that wait for readers or for reuse.
    pub spare_blocks: usize,
}

/// The one writer of a [`Fib4`].
pub struct Fib4Writer {
    fib: Arc<Fib4>,
    domain: Domain,
    routes: PrefixMap<Ipv4Net, u32>,
    /// By block: how many routes need it.
    needed: Vec<u32>,
    free: Vec<u32>,
    retired: VecDeque<(Ticket, u32)>,
}

impl Fib4Writer {
    /// An empty table whose readers are readers of `domain`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(domain: &Domain) -> Result<Fib4Writer, FibError> {
        let fib = Arc::new(Fib4::new().ok_or(FibError::Full)?);
        Ok(Fib4Writer {
            fib,
            domain: domain.clone(),
            routes: PrefixMap::new(),
            needed: Vec::new(),
            free: Vec::new(),
            retired: VecDeque::new(),
        })
    }

    /// The table that workers read.
    #[must_use]
    pub fn fib(&self) -> &Arc<Fib4> {
        &self.fib
    }

    /// Adds a route or gives it another group; returns the group it had.
    ///
    /// # Errors
    /// When the table is full or the group number too high; then nothing has changed.
    pub fn insert(&mut self, prefix: Ipv4Net, group: u32) -> Result<Option<u32>, FibError> {
        if group > MAX_GROUP {
            return Err(FibError::GroupTooHigh(group));
        }
        let prefix = prefix.trunc();
        let blocks = self.make_way(prefix)?;
        let before = self.routes.insert(prefix, group);
        if before.is_none() {
            for block in blocks.into_iter().flatten() {
                self.count(block, 1);
            }
        }
        let len = prefix.prefix_len();
        self.spread(prefix, Entry::leaf(len, group), |old| old <= len);
        Ok(before)
    }

    /// Removes a route; its addresses fall to the route that covers it. Returns the group it had.
    pub fn remove(&mut self, prefix: Ipv4Net) -> Option<u32> {
        let prefix = prefix.trunc();
        let before = self.routes.remove(&prefix)?;
        let cover = match self.routes.get_lpm(&prefix) {
            Some((cover, &group)) => Entry::leaf(cover.prefix_len(), group),
            None => Entry::NO_ROUTE,
        };
        let len = prefix.prefix_len();
        self.spread(prefix, cover, |old| old == len);
        self.tidy(prefix);
        Some(before)
    }

    /// The group of exactly this route.
    #[must_use]
    pub fn get(&self, prefix: Ipv4Net) -> Option<u32> {
        self.routes.get(&prefix.trunc()).copied()
    }

    /// The route that an address takes, and its group.
    #[must_use]
    pub fn longest_match(&self, address: std::net::Ipv4Addr) -> Option<(Ipv4Net, u32)> {
        self.routes.get_lpm(&Ipv4Net::from(address)).map(|(prefix, &group)| (prefix, group))
    }

    /// All routes, in order of addresses.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Net, u32)> + '_ {
        self.routes.iter().map(|(prefix, &group)| (prefix, group))
    }

    /// How many routes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// What the table occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let spare_blocks = self.free.len() + self.retired.len();
        Memory {
            table: Fib4::fixed_bytes() + self.needed.len() * BLOCK * size_of::<u32>(),
            routes: self.routes.mem_size(),
            blocks: self.needed.len() - spare_blocks,
            spare_blocks,
        }
    }

    /// Makes the blocks that lead to the entries of a prefix; returns them, from the top.
    fn make_way(&mut self, prefix: Ipv4Net) -> Result<[Option<u32>; 2], FibError> {
        let mut way = [None; 2];
        let address = u32::from(prefix.network());
        let fib = self.fib.clone();
        let mut slot = fib.root_slot(address);
        for (step, (deeper_than, shift)) in [(16, 8), (24, 0)].into_iter().enumerate() {
            if prefix.prefix_len() <= deeper_than {
                break;
            }
            let block = match self.split(slot) {
                Some(block) => block,
                None => {
                    // Blocks made on the way and needed by no route are given back.
                    self.tidy_unneeded(address, &way);
                    return Err(FibError::Full);
                }
            };
            if let Some(place) = way.get_mut(step) {
                *place = Some(block);
            }
            let Some(next) = fib.block(block).get((address >> shift) as usize % BLOCK) else { return Err(FibError::Full) };
            slot = next;
        }
        Ok(way)
    }

    /// The block that a slot leads to; made when there is none, its entries equal to the leaf that
    /// was there.
    fn split(&mut self, slot: &AtomicU32) -> Option<u32> {
        let old = load(slot);
        if old.is_block() {
            return Some(old.number());
        }
        let block = self.take_block()?;
        for entry in self.fib.block(block) {
            store(entry, old);
        }
        store(slot, Entry::block(block));
        Some(block)
    }

    fn take_block(&mut self) -> Option<u32> {
        while let Some(&(ticket, block)) = self.retired.front() {
            if !self.domain.passed(ticket) {
                break;
            }
            self.retired.pop_front();
            self.free.push(block);
        }
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        let block = u32::try_from(self.needed.len()).ok().filter(|&block| block < MAX_BLOCKS)?;
        if !self.fib.provide(block) {
            return None;
        }
        self.needed.push(0);
        Some(block)
    }

    fn count(&mut self, block: u32, change: i32) {
        if let Some(needed) = self.needed.get_mut(block as usize) {
            *needed = needed.saturating_add_signed(change);
        }
    }

    /// Writes `entry` wherever the trie has an entry of this prefix from a route whose length is to
    /// be `replaced`.
    fn spread(&self, prefix: Ipv4Net, entry: Entry, replaced: impl Fn(u8) -> bool) {
        let address = u32::from(prefix.network());
        let len = u32::from(prefix.prefix_len());
        let (mut slots, mut shift, mut bits) = (self.fib.root(), 16, 16);
        while len > bits {
            let Some(slot) = slots.get((address >> shift) as usize % slots.len().max(1)) else { return };
            slots = self.fib.block(load(slot).number());
            shift -= 8;
            bits += 8;
        }
        let first = (address >> shift) as usize % slots.len().max(1);
        let count = 1usize << (bits - len);
        self.overwrite(slots.get(first..first + count).unwrap_or(&[]), entry, &replaced);
    }

    fn overwrite(&self, slots: &[AtomicU32], entry: Entry, replaced: &impl Fn(u8) -> bool) {
        for slot in slots {
            let old = load(slot);
            if old.is_block() {
                self.overwrite(self.fib.block(old.number()), entry, replaced);
            } else if replaced(old.len()) {
                store(slot, entry);
            }
        }
    }

    /// After a removal: counts one route less on its way and gives blocks back that no route needs.
    fn tidy(&mut self, prefix: Ipv4Net) {
        let address = u32::from(prefix.network());
        let len = prefix.prefix_len();
        let upper = load(self.fib.root_slot(address));
        if len <= 16 || !upper.is_block() {
            return;
        }
        let way = [Some(upper.number()), (len > 24).then(|| self.lower_block(upper.number(), address)).flatten()];
        for block in way.into_iter().flatten() {
            self.count(block, -1);
        }
        self.tidy_unneeded(address, &way);
    }

    /// The block that the entry of `address` in block `upper` leads to.
    fn lower_block(&self, upper: u32, address: u32) -> Option<u32> {
        let entry = load(self.fib.block(upper).get((address >> 8) as usize % BLOCK)?);
        entry.is_block().then(|| entry.number())
    }

    /// Gives back those blocks of a way that no route needs, the lower one first.
    fn tidy_unneeded(&mut self, address: u32, way: &[Option<u32>; 2]) {
        let fib = self.fib.clone();
        if let [Some(upper), Some(lower)] = *way
            && let Some(slot) = fib.block(upper).get((address >> 8) as usize % BLOCK)
        {
            self.join(slot, lower);
        }
        if let [Some(upper), _] = *way {
            self.join(fib.root_slot(address), upper);
        }
    }

    /// Puts the entry that fills a block in place of the block, if no route needs the block.
    fn join(&mut self, slot: &AtomicU32, block: u32) {
        if self.needed.get(block as usize) != Some(&0) {
            return;
        }
        let Some(first) = self.fib.block(block).first() else { return };
        store(slot, load(first));
        self.retired.push_back((self.domain.ticket(), block));
    }
}

impl std::fmt::Debug for Fib4Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fib4Writer").field("routes", &self.len()).field("memory", &self.memory()).finish_non_exhaustive()
    }
}
