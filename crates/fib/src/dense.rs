//! Nodes of 256 slots: plain, and dense, where slots that are alike and side by side are stored once.
//!
//! A dense node is eleven words of which each tells for 24 slots, in nine bits, which word holds the run of
//! the first, and in 23 bits which of the others differ from the slot before; then a word for each run.
//! One word and one count of bits lead to the run of a slot. A node with few routes takes one to two
//! cache lines, of which a lookup reads one or two.
//!
//! What a run holds is overwritten in place; a node whose runs change is written anew elsewhere.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::entry::Entry;

/// Slots of a node.
pub(crate) const SLOTS: usize = 256;
/// Slots that a word of the head tells of.
const STEP: usize = 24;
/// Words before the runs.
pub(crate) const HEAD: usize = SLOTS.div_ceil(STEP);

/// All slots of a node.
pub(crate) type Slots = [Entry; SLOTS];

/// Which word of a dense node's head tells of a slot, and at which bit.
#[inline(always)]
pub(crate) fn head_of(slot: usize) -> (usize, usize) {
    // The quotient by 24 of numbers below 256.
    let word = (slot * 171) >> 12;
    (word, slot - word * STEP)
}

/// Bits of a word of the head that tell where runs begin.
const BEGINS: u32 = STEP as u32 - 1;

/// Which word of a dense node holds the run of a slot, when `head` is the word of [`head_of`].
#[inline(always)]
pub(crate) fn run_of(head: u32, bit: usize) -> usize {
    let begun = head & !(u32::MAX << (bit % 32));
    (head >> BEGINS) as usize + begun.count_ones() as usize
}

/// The words of a dense node.
pub(crate) struct Coded {
    words: [u32; HEAD + SLOTS],
    len: usize,
}

impl Coded {
    pub(crate) fn new(slots: &Slots) -> Coded {
        let mut coded = Coded { words: [0; HEAD + SLOTS], len: HEAD };
        let mut previous = None;
        for (slot, &entry) in slots.iter().enumerate() {
            let (word, bit) = head_of(slot);
            let begins = previous != Some(entry);
            if begins {
                coded.words[coded.len] = entry.0;
                coded.len += 1;
            }
            if bit == 0 {
                coded.words[word] = ((coded.len - 1) as u32) << BEGINS;
            } else if begins {
                coded.words[word] |= 1 << (bit - 1);
            }
            previous = Some(entry);
        }
        coded
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.words[..self.len]
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> usize {
        self.len - HEAD
    }
}

/// Words of the dense node whose head this is.
pub(crate) fn len_of(head: &[AtomicU32]) -> usize {
    let last = head.last().map_or(0, |word| word.load(Ordering::Relaxed));
    run_of(last, (SLOTS - 1) % STEP) + 1
}

/// The word of a node that holds each slot.
pub(crate) fn places(head: &[AtomicU32]) -> [u16; SLOTS] {
    let mut places = [0; SLOTS];
    for (slot, place) in places.iter_mut().enumerate() {
        let (word, bit) = head_of(slot);
        let head = head.get(word).map_or(0, |word| word.load(Ordering::Relaxed));
        *place = run_of(head, bit) as u16;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(slots: &Slots) {
        let coded = Coded::new(slots);
        let words: Vec<AtomicU32> = coded.words().iter().map(|&word| AtomicU32::new(word)).collect();
        assert_eq!(len_of(&words[..HEAD]), coded.words().len());
        for ((slot, &entry), place) in slots.iter().enumerate().zip(places(&words[..HEAD])) {
            let (word, bit) = head_of(slot);
            assert_eq!(run_of(coded.words()[word], bit), place as usize);
            assert_eq!(coded.words()[place as usize], entry.0, "slot {slot}");
        }
    }

    #[test]
    fn every_slot_finds_its_run() {
        check(&[Entry::leaf(7); SLOTS]);
        check(&std::array::from_fn(|slot| Entry::leaf(slot as u32)));
        for every in [2, 3, 23, 24, 25, 47, 48, 100, 255] {
            check(&std::array::from_fn(|slot| Entry::leaf((slot / every) as u32)));
            check(&std::array::from_fn(|slot| Entry::leaf(u32::from(slot % every == 0))));
            assert_eq!(Coded::new(&std::array::from_fn(|slot| Entry::leaf((slot / every) as u32))).runs(), SLOTS.div_ceil(every));
        }
    }
}
