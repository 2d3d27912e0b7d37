//! Nodes of 256 slots: plain, and dense, where slots that are alike and side by side are stored once.
//!
//! A dense node is eleven words of which each tells for 24 slots, in nine bits, which run is that of
//! the first, and in 23 bits which of the others differ from the slot before; then the runs. One word and one
//! count of bits lead to the run of a slot. A run takes a byte where all groups of the node fit one, else two or
//! four: tables that do not fit the processor's caches are as fast as they are small. A node with few routes takes
//! one to two cache lines, of which a lookup reads one or two.
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

/// Which run of a dense node is that of a slot, when `head` is the word of [`head_of`].
#[inline(always)]
pub(crate) fn run_of(head: u32, bit: usize) -> usize {
    let begun = head & !(u32::MAX << (bit % 32));
    (head >> BEGINS) as usize + begun.count_ones() as usize
}

/// The byte, counted from that of `first`, at which a run begins of those that take a word shifted right by `narrow`.
#[inline(always)]
pub(crate) fn byte_of(first: usize, run: usize, narrow: u32) -> usize {
    first + ((run * size_of::<u32>()) >> (narrow % 4))
}

/// What the run holds that begins at `byte`, when `word` is the word which that lies in.
#[inline(always)]
pub(crate) fn read(word: u32, byte: usize, narrow: u32) -> Entry {
    Entry(word >> (byte % size_of::<u32>() * 8) & most(narrow))
}

/// The word in which that run holds something else.
pub(crate) fn changed(word: u32, byte: usize, narrow: u32, entry: Entry) -> u32 {
    let shift = byte % size_of::<u32>() * 8;
    word & !(most(narrow) << shift) | (entry.0 & most(narrow)) << shift
}

/// What a run can hold at most.
#[inline(always)]
pub(crate) fn most(narrow: u32) -> u32 {
    u32::MAX >> (u32::BITS - (u32::BITS >> (narrow % 4)))
}

/// How narrow runs can be that hold these entries.
pub(crate) fn narrow_for(slots: &Slots) -> u32 {
    let all = slots.iter().fold(0, |all, entry| all | entry.0);
    (0..=2)
        .rev()
        .find(|&narrow| all <= most(narrow))
        .unwrap_or(0)
}

/// The words of a dense node.
pub(crate) struct Coded {
    words: [u32; HEAD + SLOTS],
    runs: usize,
    narrow: u32,
}

impl Coded {
    pub(crate) fn new(slots: &Slots) -> Coded {
        let mut coded = Coded {
            words: [0; HEAD + SLOTS],
            runs: 0,
            narrow: narrow_for(slots),
        };
        let mut previous = None;
        for (slot, &entry) in slots.iter().enumerate() {
            let (word, bit) = head_of(slot);
            let begins = previous != Some(entry);
            if begins {
                let byte = byte_of(HEAD * size_of::<u32>(), coded.runs, coded.narrow);
                let there = &mut coded.words[byte / size_of::<u32>()];
                *there = changed(*there, byte, coded.narrow, entry);
                coded.runs += 1;
            }
            if bit == 0 {
                coded.words[word] = ((coded.runs - 1) as u32) << BEGINS;
            } else if begins {
                coded.words[word] |= 1 << (bit - 1);
            }
            previous = Some(entry);
        }
        coded
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.words[..words_of(self.runs, self.narrow)]
    }

    /// How narrow they are.
    pub(crate) fn narrow(&self) -> u32 {
        self.narrow
    }
}

/// Words of a node of so many runs.
fn words_of(runs: usize, narrow: u32) -> usize {
    HEAD + byte_of(0, runs, narrow).div_ceil(size_of::<u32>())
}

/// Words of the dense node whose head this is.
pub(crate) fn len_of(head: &[AtomicU32], narrow: u32) -> usize {
    let last = head.last().map_or(0, |word| word.load(Ordering::Relaxed));
    words_of(run_of(last, (SLOTS - 1) % STEP) + 1, narrow)
}

/// The run of a node that holds each slot.
pub(crate) fn runs(head: &[AtomicU32]) -> [u16; SLOTS] {
    let mut runs = [0; SLOTS];
    for (runs, head) in runs.chunks_mut(STEP).zip(head) {
        // As `run_of` counts, slot after slot.
        let head = head.load(Ordering::Relaxed);
        let mut run = (head >> BEGINS) as u16;
        for (bit, place) in runs.iter_mut().enumerate() {
            run += ((head << 1) >> bit & u32::from(bit > 0)) as u16;
            *place = run;
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(slots: &Slots) {
        let coded = Coded::new(slots);
        let words: Vec<AtomicU32> = coded
            .words()
            .iter()
            .map(|&word| AtomicU32::new(word))
            .collect();
        assert_eq!(len_of(&words[..HEAD], coded.narrow()), coded.words().len());
        for ((slot, &entry), run) in slots.iter().enumerate().zip(runs(&words[..HEAD])) {
            let (word, bit) = head_of(slot);
            assert_eq!(run_of(coded.words()[word], bit), run as usize);
            let byte = byte_of(HEAD * 4, run as usize, coded.narrow());
            assert_eq!(
                read(coded.words()[byte / 4], byte, coded.narrow()),
                entry,
                "slot {slot}"
            );
        }
    }

    #[test]
    fn every_slot_finds_its_run() {
        for more in [0, 1 << 8, 1 << 16, 1 << 22] {
            let leaf = |group: usize| Entry::leaf(group as u32 + more);
            check(&[leaf(7); SLOTS]);
            check(&std::array::from_fn(leaf));
            for every in [2, 3, 23, 24, 25, 47, 48, 100, 255] {
                check(&std::array::from_fn(|slot| leaf(slot / every)));
                check(&std::array::from_fn(|slot| {
                    leaf(usize::from(slot % every == 0))
                }));
                assert_eq!(
                    Coded::new(&std::array::from_fn(|slot| leaf(slot / every))).runs,
                    SLOTS.div_ceil(every)
                );
            }
        }
        check(&std::array::from_fn(|slot| {
            if slot == 9 {
                Entry::plain(77)
            } else {
                Entry::leaf(1)
            }
        }));
    }

    #[test]
    fn runs_are_as_narrow_as_what_they_hold() {
        let narrow = |group: u32| {
            Coded::new(&std::array::from_fn(|slot| {
                Entry::leaf(if slot == 3 { group } else { 1 })
            }))
            .narrow()
        };
        assert_eq!([255, 256, 65_535, 65_536].map(narrow), [2, 1, 1, 0]);
        for narrow in 0..=2 {
            let word = changed(0x0102_0304, 0, narrow, Entry(0));
            assert_eq!(word, [0, 0x0102_0000, 0x0102_0300][narrow as usize]);
        }
        assert_eq!(changed(0x0102_0304, 7, 2, Entry(9)), 0x0902_0304);
    }
}
