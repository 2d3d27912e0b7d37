//! The memory that nodes lie in: chunks that are allocated once and never move, so that a reader needs
//! no lock and no reference count, and [`Space`], the writer's account of which part of it is free.
//!
//! Memory is dealt out in units of 16 bytes. A chunk is 16 MiB, begins at a large page, and comes zeroed
//! from the system, which only gives what is written. A table that has become large moves to large pages: random
//! lookups in 4 KiB pages wait for their translation more than for the table itself. [`Space`] is a buddy system that gives the tail of
//! a block back at once: free blocks find together again, and nothing is lost but the rounding to a unit.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use weir_cpu::HUGE_PAGE;
use zerocopy::FromZeros;

/// Bytes of a unit.
pub(crate) const UNIT: usize = 16;
/// Words of a unit.
pub(crate) const UNIT_WORDS: usize = UNIT / size_of::<AtomicU32>();
/// Bytes of a chunk.
const CHUNK_BYTES: usize = 16 << 20;
/// Words of a chunk.
const CHUNK_WORDS: usize = CHUNK_BYTES / size_of::<AtomicU32>();
/// Units of a chunk.
const CHUNK_UNITS: u32 = (CHUNK_BYTES / UNIT) as u32;
/// Chunks of an arena: 512 MiB, some 50 million routes.
const CHUNKS: usize = 32;
/// Units in use from which on large pages are asked for: half of one is.
const LARGE: u32 = (HUGE_PAGE / 2 / UNIT) as u32;

struct Chunk {
    words: Box<[AtomicU32]>,
    /// Words before the first large page.
    skip: usize,
}

impl Chunk {
    #[inline(always)]
    fn words(&self) -> &[AtomicU32] {
        self.words.get(self.skip..).unwrap_or(&[])
    }
}

/// Words that are read by many and written by one.
pub(crate) struct Arena {
    chunks: [OnceLock<Chunk>; CHUNKS],
}

impl Arena {
    pub(crate) fn new() -> Arena {
        Arena {
            chunks: [const { OnceLock::new() }; CHUNKS],
        }
    }

    /// A word. That there is none is not reached: memory is there before an entry leads into it.
    #[inline(always)]
    pub(crate) fn get(&self, word: usize) -> Option<&AtomicU32> {
        self.chunks[(word / CHUNK_WORDS) % CHUNKS]
            .get()?
            .words()
            .get(word % CHUNK_WORDS)
    }

    /// All words of the first chunk, which is all that most tables have.
    #[inline(always)]
    pub(crate) fn first(&self) -> &[AtomicU32] {
        self.chunks[0].get().map_or(&[], Chunk::words)
    }

    /// The words of a node that begins at `unit`; a node lies in one chunk.
    pub(crate) fn node(&self, unit: u32, words: usize) -> &[AtomicU32] {
        let start = (unit % CHUNK_UNITS) as usize * UNIT_WORDS;
        let chunk = self
            .chunks
            .get((unit / CHUNK_UNITS) as usize)
            .and_then(OnceLock::get);
        chunk
            .and_then(|chunk| chunk.words().get(start..start + words))
            .unwrap_or(&[])
    }

    /// Makes sure that the chunk of a unit exists. `false` when there is no memory, or no such unit.
    fn provide(&self, unit: u32) -> bool {
        let Some(place) = self.chunks.get((unit / CHUNK_UNITS) as usize) else {
            return false;
        };
        if place.get().is_some() {
            return true;
        }
        let Ok(words) = <[AtomicU32]>::new_box_zeroed_with_elems(
            CHUNK_WORDS + HUGE_PAGE / size_of::<AtomicU32>(),
        ) else {
            return false;
        };
        let skip = words.as_ptr().align_offset(HUGE_PAGE);
        if unit > LARGE {
            weir_cpu::prefer_hugepages(&words, false);
        }
        place.set(Chunk { words, skip }).is_ok()
    }

    /// Moves the first chunk to large pages.
    #[cold]
    fn enlarge_pages(&self) {
        if let Some(chunk) = self.chunks[0].get() {
            weir_cpu::prefer_hugepages(chunk.words(), false);
            let used = LARGE as usize * UNIT / size_of::<AtomicU32>();
            weir_cpu::prefer_hugepages(chunk.words().get(..2 * used).unwrap_or(&[]), true);
        }
    }
}

/// Blocks of at most this power of two of units are dealt out.
const TOP: u32 = 7;

/// Which units of an arena are free.
#[derive(Debug, Default)]
pub(crate) struct Space {
    /// Units below were dealt out at least once.
    high: u32,
    /// By size: where free blocks of 2^n units begin. None of them has a free buddy.
    free: [BTreeSet<u32>; TOP as usize + 1],
}

impl Space {
    /// Takes units that lie together: 1 to 2^[`TOP`]. `None` when there is no memory.
    pub(crate) fn take(&mut self, arena: &Arena, units: u32) -> Option<u32> {
        let order = units.max(1).next_power_of_two().trailing_zeros();
        let fitting = (order..=TOP)
            .find_map(|order| Some((order, self.free.get_mut(order as usize)?.pop_first()?)));
        let (found, start) = match fitting {
            Some(found) => found,
            None => (TOP, self.extend(arena)?),
        };
        self.give(start + units, (1 << found) - units);
        Some(start)
    }

    fn extend(&mut self, arena: &Arena) -> Option<u32> {
        if !arena.provide(self.high) {
            return None;
        }
        let start = self.high;
        self.high += 1 << TOP;
        if self.high == LARGE {
            arena.enlarge_pages();
        }
        Some(start)
    }

    /// Gives units back.
    pub(crate) fn give(&mut self, mut start: u32, mut units: u32) {
        while units > 0 {
            let order = start.trailing_zeros().min(units.ilog2()).min(TOP);
            self.give_block(start, order);
            start += 1 << order;
            units -= 1 << order;
        }
    }

    fn give_block(&mut self, mut start: u32, mut order: u32) {
        while order < TOP
            && self
                .free
                .get_mut(order as usize)
                .is_some_and(|free| free.remove(&(start ^ 1 << order)))
        {
            start &= !(1 << order);
            order += 1;
        }
        if let Some(free) = self.free.get_mut(order as usize) {
            free.insert(start);
        }
    }

    /// Bytes that were dealt out at least once.
    pub(crate) fn bytes(&self) -> usize {
        self.high as usize * UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_finds_together() {
        let arena = Arena::new();
        let mut space = Space::default();
        let mut taken: Vec<(u32, u32)> = (0..4000u32)
            .map(|n| 1 + n * 7919 % 128)
            .map(|units| (space.take(&arena, units).unwrap(), units))
            .collect();
        let mut sorted = taken.clone();
        sorted.sort_unstable();
        assert!(
            sorted
                .windows(2)
                .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0),
            "no two overlap"
        );
        let high = space.high;
        // Every other one first, so that neighbours meet later.
        taken.sort_unstable_by_key(|&(start, _)| (start / 8 % 2, start));
        taken
            .into_iter()
            .for_each(|(start, units)| space.give(start, units));
        assert_eq!(space.free[TOP as usize].len() as u32, high >> TOP);
        assert!((0..TOP as usize).all(|order| space.free[order].is_empty()));
    }

    #[test]
    fn nodes_lie_at_cache_lines() {
        let arena = Arena::new();
        let mut space = Space::default();
        let unit = space.take(&arena, 4).unwrap();
        assert_eq!(arena.node(unit, 16).as_ptr().addr() % 64, 0);
        assert_eq!(arena.node(unit, 16).len(), 16);
        assert!(arena.get(0).is_some() && arena.get(1 << 24).is_none());
    }
}
