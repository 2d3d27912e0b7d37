//! A worker's own stock of free chunks.
//!
//! Allocation and freeing are a pop and a push here. When the stock runs low it takes a batch from
//! the pool, when it overflows it gives one back: one compare-and-swap for 256 chunks.

use crate::{Flags, Pkt, Pool, VECTOR, Vector};

/// Chunks that one worker holds ready.
#[derive(Debug)]
pub struct PktCache {
    pool: Pool,
    free: Vec<u32>,
}

const MOST: usize = 4 * VECTOR;

impl PktCache {
    /// An empty stock for `pool`; it fills itself when asked.
    #[must_use]
    pub fn new(pool: &Pool) -> PktCache {
        PktCache {
            pool: pool.clone(),
            free: Vec::with_capacity(MOST + VECTOR),
        }
    }

    /// The pool behind it.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// A fresh packet, or `None` when the pool is empty.
    #[inline]
    #[must_use]
    pub fn alloc(&mut self) -> Option<Pkt> {
        if self.free.is_empty() {
            self.refill();
        }
        let chunk = self.free.pop()?;
        Some(Pkt::fresh(self.pool.shared(), chunk))
    }

    /// Up to `n` fresh packets to the end of `to`; returns how many.
    pub fn alloc_into(&mut self, n: usize, to: &mut Vector) -> usize {
        for got in 0..n {
            match self.alloc() {
                Some(packet) => to.push(packet),
                None => return got,
            }
        }
        n
    }

    /// Gives one packet back.
    #[inline(always)]
    pub fn free(&mut self, packet: Pkt) {
        match self.pool.shared().chunk_of(packet.meta_address()) {
            Some(chunk) if !packet.is_chained() => {
                packet.forget();
                self.free.push(chunk);
                if self.free.len() >= MOST {
                    self.spill();
                }
            }
            // A chain, or a packet of another pool: the slow way, which knows both.
            _ => drop(packet),
        }
    }

    /// Gives packets back.
    #[inline]
    pub fn free_all(&mut self, packets: impl Iterator<Item = Pkt>) {
        packets.for_each(|packet| self.free(packet));
    }

    /// Gives a whole vector back: one pass over the handles without a branch, one look at the stock.
    pub fn free_vector(&mut self, packets: &mut Vector) {
        let numbering = self.pool.shared().numbering();
        let before = self.free.len();
        let (mut beyond, mut flags) = (0, Flags::NONE);
        self.free.extend(packets.iter().map(|packet| {
            let chunk = numbering.number_of(packet.meta_address());
            beyond |= numbering.last.wrapping_sub(chunk);
            flags |= packet.flags();
            chunk as u32
        }));
        // The difference is negative for a chunk beyond the last one: a packet of another pool.
        if (beyond as isize) < 0 || flags.any(Flags::CHAINED) {
            self.free.truncate(before);
            return self.free_all(packets.drain());
        }
        packets.forget_all();
        while self.free.len() >= MOST {
            self.spill();
        }
    }

    /// Chunks held ready.
    #[must_use]
    pub fn held(&self) -> usize {
        self.free.len()
    }

    #[cold]
    fn refill(&mut self) {
        let free = &mut self.free;
        self.pool.shared().acquire(VECTOR, |chunk| free.push(chunk));
    }

    #[cold]
    fn spill(&mut self) {
        let keep = self.free.len() - VECTOR;
        self.pool.shared().release(&self.free[keep..]);
        self.free.truncate(keep);
    }
}

impl Drop for PktCache {
    fn drop(&mut self) {
        self.pool.shared().release(&self.free);
    }
}
