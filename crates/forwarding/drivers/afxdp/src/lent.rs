//! Which chunks of the pool one socket holds.
//!
//! The pool knows that a chunk is lent, not to whom. This set knows: a descriptor is believed only
//! when its chunk was lent to the very socket that names it, and what is still out when the socket
//! has been closed is taken back. One bit a chunk: 16,384 chunks are 2 KiB.

use weir_buf::{HEADROOM, Pool, STRIDE};

/// A set of chunk numbers.
#[derive(Debug)]
pub(crate) struct LentSet {
    bits: Box<[u64]>,
    count: usize,
}

impl LentSet {
    /// The empty set for a pool of `chunks`.
    pub(crate) fn new(chunks: usize) -> LentSet {
        LentSet {
            bits: vec![0; chunks.div_ceil(64)].into_boxed_slice(),
            count: 0,
        }
    }

    /// Notes that the socket holds `chunk`.
    #[inline(always)]
    pub(crate) fn put(&mut self, chunk: usize) {
        if let Some(word) = self.bits.get_mut(chunk / 64) {
            let bit = 1 << (chunk % 64);
            self.count += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// Notes that `chunk` came back; `false` when the socket never held it.
    #[inline(always)]
    pub(crate) fn take(&mut self, chunk: usize) -> bool {
        let Some(word) = self.bits.get_mut(chunk / 64) else {
            return false;
        };
        let bit = 1 << (chunk % 64);
        let held = *word & bit != 0;
        *word &= !bit;
        self.count -= usize::from(held);
        held
    }

    /// How many chunks the socket holds.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Gives all chunks back to the pool. Only after the socket was closed.
    pub(crate) fn give_back(&mut self, pool: &Pool) -> usize {
        let mut given = 0;
        for (index, word) in self.bits.iter_mut().enumerate() {
            while *word != 0 {
                let chunk = index * 64 + word.trailing_zeros() as usize;
                *word &= *word - 1;
                given += usize::from(pool.redeem(chunk * STRIDE + HEADROOM, 0).is_some());
            }
        }
        self.count = 0;
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_buf::{Hugepages, PoolConfig};

    #[test]
    fn chunks_are_held_once_and_given_back() {
        let pool = Pool::new(PoolConfig {
            chunks: 100,
            hugepages: Hugepages::Off,
        })
        .unwrap();
        let mut set = LentSet::new(pool.chunks());
        for _ in 0..100 {
            let (slot, _) = pool.lend(pool.alloc().unwrap()).unwrap();
            set.put(slot.index() as usize);
        }
        assert_eq!((set.count(), pool.usage().free), (100, 0));
        assert!(set.take(7) && !set.take(7) && !set.take(100_000));
        set.put(7);
        set.put(7);
        set.put(100_000);
        assert_eq!(set.count(), 100);
        assert_eq!(set.give_back(&pool), 100);
        assert_eq!((set.count(), pool.usage().free), (0, 100));
    }
}
