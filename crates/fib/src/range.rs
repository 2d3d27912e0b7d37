//! Nodes of ranges: thirty-two bits at once, for the many subtrees that hold few routes, however deep.
//!
//! The bits fall into runs of addresses with one group each. A line is sixteen words, a cache line: the last
//! value before each of the second to the eleventh run, in order, then the groups of the eleven runs, two in a
//! word. A node of more runs has several lines, and in front of them an index of the same kind: the last value
//! before each of the second to the seventeenth line. So a lookup reads one cache line or two, and finds its place in
//! each by one comparison with all words ([`weir_cpu::less_than`]), without a branch.
//!
//! Words are compared as signed numbers, so their highest bit is turned over. Only groups that fit sixteen bits can
//! be in here; subtrees with others, or with more runs, are made of dense and plain nodes.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::rib::{Node, Rib};

/// Words of a line, and of the index.
pub(crate) const LINE: usize = 16;
/// Runs of a line.
const RUNS: usize = 11;
/// Lines below an index.
const LINES: usize = LINE + 1;
/// The most runs.
const MAX_RUNS: usize = LINES * RUNS;
/// Words of a line that are compared with.
const KEYS: usize = RUNS - 1;
/// What makes signed numbers of unsigned ones, in the same order.
const TURN: u32 = 1 << 31;
/// Stands where no run begins: nothing is greater.
const NEVER: u32 = u32::MAX ^ TURN;

/// The octets of an address that a node tells apart which hangs at `level`, as far as `octets` in all: four, but
/// none of both halves of an IPv6 address, so that an address in halves is enough to ask with.
pub(crate) fn last_octet(level: usize) -> usize {
    (level + 4).min(level / 8 * 8 + 8)
}

/// A node as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Coded {
    words: Vec<u32>,
    indexed: bool,
}

/// A route within the thirty-two bits.
struct Range {
    first: u32,
    last: u32,
    len: u32,
    group: u16,
}

/// Addresses from this one on have the group.
type Run = (u32, u16);

impl Coded {
    /// The subtree of `node` at `level`, whose other addresses have the group `cover`. `None` when it does not fit.
    pub(crate) fn new(rib: &Rib, node: &Node, level: usize, cover: u32) -> Option<Coded> {
        let cover = u16::try_from(cover).ok()?;
        if node.below() > MAX_RUNS {
            return None;
        }
        let mut ranges = Vec::with_capacity(node.below());
        collect(rib, node, 0, 24, last_octet(level) - level, &mut ranges)?;
        ranges.sort_unstable_by_key(|range| (range.first, range.len));
        Coded::of_runs(&runs(&ranges, cover))
    }

    fn of_runs(runs: &[Run]) -> Option<Coded> {
        if runs.is_empty() || runs.len() > MAX_RUNS {
            return None;
        }
        let indexed = runs.len() > RUNS;
        let mut words = Vec::with_capacity(LINE * (1 + LINES));
        let keys = |firsts: &mut dyn Iterator<Item = u32>, count: usize, words: &mut Vec<u32>| {
            let end = words.len() + count;
            // Whatever begins behind the first begins behind some other value.
            words.extend(firsts.map(|first| (first - 1) ^ TURN));
            words.resize(end, NEVER);
        };
        if indexed {
            keys(&mut runs.chunks(RUNS).skip(1).map(|line| line[0].0), LINE, &mut words);
        }
        for line in runs.chunks(RUNS) {
            keys(&mut line.iter().skip(1).map(|run| run.0), KEYS, &mut words);
            let group = |at: usize| line.get(at).map_or(0, |run| u32::from(run.1));
            words.extend((0..LINE - KEYS).map(|pair| group(2 * pair) | group(2 * pair + 1) << 16));
        }
        Some(Coded { words, indexed })
    }

    pub(crate) fn is_indexed(&self) -> bool {
        self.indexed
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Whether runs begin as in a node that is there; then only groups differ.
    pub(crate) fn same_runs(&self, there: &[AtomicU32]) -> bool {
        let compared = |at: usize| at % LINE < KEYS || (self.indexed && at < LINE);
        there.len() == self.words.len()
            && self.words.iter().zip(there).enumerate().all(|(at, (word, there))| !compared(at) || *word == there.load(Ordering::Relaxed))
    }
}

/// Words of a node whose first line this is.
pub(crate) fn len_of(first: &[AtomicU32], indexed: bool) -> usize {
    let lines = first.iter().filter(|word| word.load(Ordering::Relaxed) != NEVER).count() + 1;
    if indexed { LINE * (1 + lines) } else { LINE }
}

/// The routes of a subtree, whose octet is `shift` bits from the right of those told apart and which may go so many
/// octets deep; `None` when it goes deeper or has too great a group.
fn collect(rib: &Rib, node: &Node, base: u32, shift: u32, octets: usize, ranges: &mut Vec<Range>) -> Option<()> {
    for route in node.routes() {
        let span = route.span();
        let (first, last) = ((span.start as u32) << shift, ((span.end - 1) as u32) << shift | !(u32::MAX << shift));
        let len = 24 - shift + route.place().ilog2();
        ranges.push(Range { first: base | first, last: base | last, len, group: u16::try_from(route.group()).ok()? });
    }
    for (slot, child) in node.children() {
        let below = octets.checked_sub(1).filter(|&below| below > 0)?;
        collect(rib, rib.node(child)?, base | (slot as u32) << shift, shift.checked_sub(8)?, below, ranges)?;
    }
    Some(())
}

/// Who has which addresses, of routes in order of where they begin, the longer ones last.
fn runs(ranges: &[Range], cover: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = vec![(0, cover)];
    let mut begin = |first: u32, group: u16| {
        if runs.last().is_some_and(|run| run.0 == first) {
            runs.pop();
        }
        if runs.last().is_none_or(|run| run.1 != group) {
            runs.push((first, group));
        }
    };
    // The routes that the place lies in, the longest one last; the cover has no end.
    let mut open: Vec<(u32, u16)> = Vec::new();
    let group_of = |open: &[(u32, u16)]| open.last().map_or(cover, |route| route.1);
    for range in ranges {
        while let Some(&(last, _)) = open.last().filter(|route| route.0 < range.first) {
            open.pop();
            begin(last + 1, group_of(&open));
        }
        begin(range.first, range.group);
        open.push((range.last, range.group));
    }
    while let Some((last, _)) = open.pop() {
        if let Some(next) = last.checked_add(1) {
            begin(next, group_of(&open));
        }
    }
    runs
}

/// A value as it is compared with.
#[inline(always)]
pub(crate) fn turned(key: u32) -> i32 {
    (key ^ TURN).cast_signed()
}

/// How many lines further on that of a value is, when this is the index.
#[inline(always)]
pub(crate) fn line_below(index: &[AtomicU32; LINE], key: i32) -> u32 {
    weir_cpu::less_than(index, key).trailing_ones() + 1
}

/// The group of a value, when this is its line.
#[inline(always)]
pub(crate) fn group_in(line: &[AtomicU32; LINE], key: i32) -> u32 {
    // What follows the words that are compared with says nothing.
    let run = (weir_cpu::less_than(line, key) & ((1 << KEYS) - 1)).trailing_ones() as usize;
    line[(KEYS + run / 2) % LINE].load(Ordering::Acquire) >> (run % 2 * 16) & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(words: &[AtomicU32], indexed: bool, key: u32) -> u32 {
        let line = |line: u32| words[line as usize * LINE..].first_chunk().unwrap();
        let key = turned(key);
        group_in(line(if indexed { line_below(line(0), key) } else { 0 }), key)
    }

    #[test]
    fn every_key_finds_its_run() {
        for count in (1..=MAX_RUNS).step_by(3).chain([RUNS, RUNS + 1, MAX_RUNS]) {
            for step in [1u32, 3, 4095, u32::MAX / MAX_RUNS as u32] {
                let runs: Vec<Run> = (0..count as u32).map(|n| (n * step, n as u16 + 1)).collect();
                let coded = Coded::of_runs(&runs).unwrap();
                let words: Vec<AtomicU32> = coded.words().iter().map(|&word| AtomicU32::new(word)).collect();
                assert_eq!(len_of(&words[..LINE], coded.is_indexed()), words.len());
                assert!(coded.same_runs(&words));
                let keys = runs.iter().flat_map(|run| [run.0.saturating_sub(1), run.0, run.0.saturating_add(1)]);
                for key in keys.chain([TURN - 1, TURN, u32::MAX - 1, u32::MAX]) {
                    let wanted = runs.iter().rev().find(|run| run.0 <= key).unwrap().1;
                    assert_eq!(find(&words, coded.is_indexed(), key), u32::from(wanted), "{key} of {count}");
                }
            }
        }
        assert_eq!(Coded::of_runs(&[(0, 0); MAX_RUNS + 1]), None);
        let last = Coded::of_runs(&[(0, 1), (u32::MAX, 2)]).unwrap();
        let words: Vec<AtomicU32> = last.words().iter().map(|&word| AtomicU32::new(word)).collect();
        assert_eq!([u32::MAX - 1, u32::MAX].map(|key| find(&words, false, key)), [1, 2]);
    }

    #[test]
    fn routes_within_routes_become_runs() {
        let range = |first, last, len, group| Range { first, last, len, group };
        let routes = [range(0, 99, 1, 1), range(0, 9, 2, 2), range(10, 19, 2, 1), range(50, 99, 2, 3), range(60, 99, 3, 4)];
        assert_eq!(runs(&routes, 7), [(0, 2), (10, 1), (50, 3), (60, 4), (100, 7)]);
        assert_eq!(runs(&[range(0, u32::MAX, 0, 3), range(9, u32::MAX, 1, 4)], 7), [(0, 3), (9, 4)]);
        assert_eq!(runs(&[], 7), [(0, 7)]);
    }
}
