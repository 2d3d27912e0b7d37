//! Sparse nodes: two octets at once, for the many subtrees that hold a handful of routes.
//!
//! The sixteen bits fall into at most sixteen runs. A node of 2^n values is 2^(n+1) words of sixteen bits:
//! one unused, the beginnings of all runs but the first in order, then what each run leads to. A lookup
//! halves n times, without a branch, within one cache line. Only groups that fit sixteen bits can be in
//! here; subtrees with others are made of dense nodes.

use std::sync::atomic::{AtomicU16, Ordering};

use crate::entry::Entry;
use crate::rib::{Node, Rib};

/// The logarithm of the most values.
pub(crate) const MAX_CLASS: u32 = 4;
/// The smallest node fills a unit.
const MIN_CLASS: u32 = 2;
/// The most values.
const MAX_VALUES: usize = 1 << MAX_CLASS;
/// Subtrees of more routes are not looked at.
const MAX_ROUTES: usize = MAX_VALUES + MAX_VALUES / 2;

/// A node as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Coded {
    words: [u16; 2 * MAX_VALUES],
    class: u32,
}

/// A route within the sixteen bits.
struct Range {
    first: u16,
    last: u16,
    len: u8,
    group: u16,
}

impl Coded {
    /// The subtree of `node`, whose other addresses have the group `cover`. `None` when it does not fit.
    pub(crate) fn new(rib: &Rib, node: &Node, cover: u32) -> Option<Coded> {
        let cover = u16::try_from(cover).ok()?;
        if node.below() > MAX_ROUTES {
            return None;
        }
        let ranges = ranges(rib, node)?;
        let mut firsts: Vec<u16> = ranges.iter().map(|range| range.first).collect();
        firsts.extend(ranges.iter().filter_map(|range| range.last.checked_add(1)));
        firsts.push(0);
        firsts.sort_unstable();
        firsts.dedup();
        let mut runs: Vec<(u16, u16)> = Vec::with_capacity(firsts.len());
        for first in firsts {
            let best = ranges.iter().filter(|range| range.first <= first && first <= range.last).max_by_key(|range| range.len);
            let group = best.map_or(cover, |range| range.group);
            if runs.last().is_none_or(|run| run.1 != group) {
                runs.push((first, group));
            }
        }
        Coded::of_runs(&runs)
    }

    fn of_runs(runs: &[(u16, u16)]) -> Option<Coded> {
        let class = runs.len().next_power_of_two().trailing_zeros().max(MIN_CLASS);
        let last = runs.last()?;
        if class > MAX_CLASS {
            return None;
        }
        let values = 1 << class;
        let mut words = [0; 2 * MAX_VALUES];
        for n in 0..values {
            // What is left over goes where the last run goes.
            let (first, group) = runs.get(n).copied().unwrap_or((u16::MAX, last.1));
            words[n] = if n == 0 { 0 } else { first };
            words[values + n] = group;
        }
        Some(Coded { words, class })
    }

    pub(crate) fn class(&self) -> u32 {
        self.class
    }

    pub(crate) fn words(&self) -> &[u16] {
        &self.words[..len_of(self.class)]
    }

    /// Whether runs begin as in a node that is there; then only values differ.
    pub(crate) fn same_runs(&self, there: &[AtomicU16]) -> bool {
        let keys = 1 << self.class;
        there.len() == len_of(self.class)
            && self.words.iter().zip(there).take(keys).all(|(word, there)| *word == there.load(Ordering::Relaxed))
    }
}

/// Words of a node.
pub(crate) fn len_of(class: u32) -> usize {
    2 << class
}

/// The routes of a subtree; `None` when it goes deeper than two octets or has too great a group.
fn ranges(rib: &Rib, node: &Node) -> Option<Vec<Range>> {
    let mut ranges = Vec::with_capacity(node.below());
    let mut add = |span: std::ops::Range<usize>, len: u32, group: u32| {
        let range = Range { first: span.start as u16, last: (span.end - 1) as u16, len: len as u8, group: u16::try_from(group).ok()? };
        ranges.push(range);
        Some(())
    };
    for route in node.routes() {
        let span = route.span();
        add(span.start << 8..span.end << 8, route.place().ilog2(), route.group())?;
    }
    for (slot, child) in node.children() {
        let child = rib.node(child).filter(|child| child.is_last())?;
        for route in child.routes() {
            let span = route.span();
            add(slot << 8 | span.start..(slot << 8) + span.end, 8 + route.place().ilog2(), route.group())?;
        }
    }
    Some(ranges)
}

/// The group of `key` in the sparse node that `entry` leads to, whose words `word` reads.
#[inline(always)]
pub(crate) fn search(entry: Entry, key: u16, word: impl Fn(usize) -> u16) -> u32 {
    let start = entry.unit() as usize * (crate::arena::UNIT / size_of::<u16>());
    let values = 1usize << entry.class();
    let (mut found, mut half) = (0, values >> 1);
    // Smaller nodes go on with a half of nothing: always as many steps, so nothing has to be guessed.
    for _ in 0..MAX_CLASS {
        let there = word(start + found + half) <= key;
        found += if there { half } else { 0 };
        half >>= 1;
    }
    u32::from(word(start + values + found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_finds_its_run() {
        for count in 1..=16usize {
            for step in [1u32, 3, 4095] {
                let runs: Vec<(u16, u16)> = (0..count).map(|n| ((n as u32 * step).min(65_535) as u16, n as u16 + 1)).collect();
                let coded = Coded::of_runs(&runs).unwrap();
                let entry = Entry::sparse(0, coded.class());
                for key in runs.iter().flat_map(|run| [run.0.saturating_sub(1), run.0, run.0.saturating_add(1)]).chain([u16::MAX]) {
                    let wanted = runs.iter().rev().find(|run| run.0 <= key).unwrap().1;
                    assert_eq!(search(entry, key, |word| coded.words[word]), u32::from(wanted), "{key} of {count}");
                }
            }
        }
        assert_eq!(Coded::of_runs(&[(0, 0); 17]), None);
        let last = Coded::of_runs(&[(0, 1), (65_535, 2)]).unwrap();
        assert_eq!([65_534, 65_535].map(|key| search(Entry::sparse(0, 2), key, |word| last.words[word])), [1, 2]);
    }
}
