//! Forks: subtrees of many routes, cut into up to sixteen parts.
//!
//! A subtree that does not fit a node of ranges would be plain nodes, octet below octet, and a lookup would wait for
//! each of them. A few allocations have so many routes, and a fifth of all addresses lie in these. A fork is two cache lines for all of
//! it: the values with which parts begin behind the first one, and an entry for each part, a node of ranges with marks
//! (`range.rs`). There are so few forks that they stay near the processor. The cuts are made where runs are, so that
//! parts are of one size whatever the routes are; a part that outgrows its node has all of them cut anew.

use std::sync::atomic::{AtomicU32, Ordering};

use weir_cpu::Code;

use crate::entry::Entry;
use crate::range::{self, LINE, NEVER, TURN};

/// The most parts.
pub(crate) const PARTS: usize = LINE;
/// Words of a fork.
pub(crate) const WORDS: usize = 2 * LINE;

/// A part of a subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its first and last value.
    pub(crate) within: (u32, u32),
    /// Which word of the fork has its entry.
    pub(crate) word: usize,
    pub(crate) entry: Entry,
}

/// A fork of these parts: where each begins, and its node. The first begins with 0.
pub(crate) fn coded(parts: impl Iterator<Item = (u32, Entry)>) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    let (starts, entries) = words.split_at_mut(LINE);
    starts.fill(NEVER);
    for (n, (start, entry)) in parts.take(PARTS).enumerate() {
        if n > 0 {
            starts[n - 1] = start ^ TURN;
        }
        entries[n] = entry.0;
    }
    words
}

/// All parts of a fork.
pub(crate) fn parts(words: &[AtomicU32]) -> impl Iterator<Item = Part> + '_ {
    let word = |at: usize| {
        words
            .get(at)
            .map_or(NEVER, |word| word.load(Ordering::Relaxed))
    };
    let count = (0..PARTS - 1)
        .take_while(move |&at| word(at) != NEVER)
        .count()
        + 1;
    (0..count).map(move |n| {
        let first = if n > 0 { word(n - 1) ^ TURN } else { 0 };
        let last = if n + 1 < count {
            (word(n) ^ TURN) - 1
        } else {
            u32::MAX
        };
        Part {
            within: (first, last),
            word: LINE + n,
            entry: Entry(word(LINE + n)),
        }
    })
}

/// The entry of the part that a value is in, when these are both lines and the value is one of marks.
#[inline(always)]
pub(crate) fn entry_in(
    code: impl Code,
    starts: &[AtomicU32; LINE],
    entries: &[AtomicU32; LINE],
    key: &i32,
) -> Entry {
    Entry(entries[range::behind(code, starts, key) % LINE].load(Ordering::Acquire))
}

#[cfg(test)]
mod tests {
    use weir_cpu::AnyMachine;

    use super::*;

    #[test]
    fn each_value_is_in_its_part() {
        for count in 1..=PARTS as u32 {
            let starts: Vec<u32> = (0..count).map(|n| n * 0x0f0f_0f00).collect();
            let words = coded(
                starts
                    .iter()
                    .map(|&start| (start, Entry::ranges(start >> 8, false, true))),
            )
            .map(AtomicU32::new);
            let all: Vec<Part> = parts(&words).collect();
            assert_eq!(all.len() as u32, count);
            assert!(
                all.windows(2)
                    .all(|pair| pair[0].within.1 + 1 == pair[1].within.0)
            );
            for part in all {
                assert_eq!(part.entry, Entry(words[part.word].load(Ordering::Relaxed)));
                for value in [
                    part.within.0,
                    part.within.0 + 1,
                    part.within.1 - 255,
                    part.within.1,
                ] {
                    let (starts, entries) = (
                        words[..LINE].first_chunk().unwrap(),
                        words[LINE..].first_chunk().unwrap(),
                    );
                    assert_eq!(
                        entry_in(
                            AnyMachine,
                            starts,
                            entries,
                            &range::turned(value | range::ANY_GROUP)
                        ),
                        part.entry
                    );
                }
            }
        }
    }
}
