//! Nodes of ranges: thirty-two bits at once, for the many subtrees that hold few routes, however deep.
//!
//! The bits fall into runs of addresses with one group each. A line is sixteen words, a cache line: the last
//! value before each of the second to the eleventh run, in order, then the groups of the eleven runs, two in a
//! word. A node of more runs has several lines, and in front of them an index of the same kind: the last value
//! before each of the second to the seventeenth line. So a lookup reads one cache line or two, and finds its place in
//! each by one comparison with all words ([`weir_cpu::count_less`]), without a branch.
//!
//! Most subtrees are described by three octets and groups below 255. Then the lines hold *marks*, sixteen words of which each
//! tells where a run begins and, in its lowest byte, its group: half the memory, and what was compared has the answer in it.
//!
//! Words are compared as signed numbers, so their highest bit is turned over. Only groups that fit sixteen bits can
//! be in here; subtrees with others, or with more runs, are made of forks (`fork.rs`), dense and plain nodes.

use std::sync::atomic::{AtomicU32, Ordering};

use weir_cpu::Code;

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
/// Runs of a line of marks.
const MARKS: usize = LINE;
/// The most runs of a node with marks.
pub(crate) const MAX_MARKS: usize = LINES * MARKS;
/// Octets that a node with marks tells apart.
const MARK_OCTETS: usize = 3;
/// What a key has in the place of a mark's group: greater than any, so that no mark of the key's own run is greater.
pub(crate) const ANY_GROUP: u32 = 0xff;
/// What makes signed numbers of unsigned ones, in the same order.
pub(crate) const TURN: u32 = 1 << 31;
/// Stands where no run begins: nothing is greater.
pub(crate) const NEVER: u32 = u32::MAX ^ TURN;

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
    marks: bool,
}

/// A route within the thirty-two bits.
struct Range {
    first: u32,
    last: u32,
    len: u32,
    group: u16,
}

/// Addresses from this one on have the group.
pub(crate) type Run = (u32, u16);

/// The runs of the part of a subtree that lies between two values, if nodes with marks can tell them: no more than
/// so many routes, of no more than three octets, with groups below 255.
pub(crate) fn marked(
    rib: &Rib,
    node: &Node,
    level: usize,
    cover: u32,
    (from, to): (u32, u32),
) -> Option<Vec<Run>> {
    let cover = u16::try_from(cover).ok()?;
    let octets = (last_octet(level) - level).min(MARK_OCTETS);
    let mut ranges = Vec::new();
    collect(rib, node, 0, 24, octets, (from, to), &mut ranges)?;
    ranges.sort_unstable_by_key(|range| (range.first, range.len));
    let mut runs = runs(&ranges, cover);
    // What begins before is cut off, and nothing that is in between begins behind.
    let before = runs.iter().take_while(|run| run.0 <= from).count();
    runs.drain(..before.saturating_sub(1));
    runs.retain(|run| run.0 <= to);
    let first = runs.first_mut()?;
    first.0 = from;
    runs.iter()
        .all(|run| u32::from(run.1) < ANY_GROUP)
        .then_some(runs)
}

impl Coded {
    /// The subtree of `node` at `level`, whose other addresses have the group `cover`. `None` when it does not fit.
    pub(crate) fn new(rib: &Rib, node: &Node, level: usize, cover: u32) -> Option<Coded> {
        if node.below() > MAX_MARKS {
            return None;
        }
        if let Some(coded) =
            marked(rib, node, level, cover, WHOLE).and_then(|runs| Coded::of_marks(&runs))
        {
            return Some(coded);
        }
        let cover = u16::try_from(cover).ok()?;
        if node.below() > MAX_RUNS {
            return None;
        }
        let mut ranges = Vec::with_capacity(node.below());
        collect(
            rib,
            node,
            0,
            24,
            last_octet(level) - level,
            WHOLE,
            &mut ranges,
        )?;
        ranges.sort_unstable_by_key(|range| (range.first, range.len));
        Coded::of_runs(&runs(&ranges, cover))
    }

    /// Runs as marks; `None` when there are too many.
    pub(crate) fn of_marks(runs: &[Run]) -> Option<Coded> {
        if runs.is_empty() || runs.len() > MAX_MARKS {
            return None;
        }
        let indexed = runs.len() > MARKS;
        let mut words = Vec::with_capacity(LINE * (1 + LINES));
        if indexed {
            words.extend(runs.chunks(MARKS).skip(1).map(|line| line[0].0 ^ TURN));
            words.resize(LINE, NEVER);
        }
        words.extend(runs.iter().map(|run| (run.0 | u32::from(run.1)) ^ TURN));
        words.resize(words.len().next_multiple_of(LINE), NEVER);
        Some(Coded {
            words,
            indexed,
            marks: true,
        })
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
            keys(
                &mut runs.chunks(RUNS).skip(1).map(|line| line[0].0),
                LINE,
                &mut words,
            );
        }
        for line in runs.chunks(RUNS) {
            keys(&mut line.iter().skip(1).map(|run| run.0), KEYS, &mut words);
            let group = |at: usize| line.get(at).map_or(0, |run| u32::from(run.1));
            words.extend((0..LINE - KEYS).map(|pair| group(2 * pair) | group(2 * pair + 1) << 16));
        }
        Some(Coded {
            words,
            indexed,
            marks: false,
        })
    }

    pub(crate) fn is_indexed(&self) -> bool {
        self.indexed
    }

    pub(crate) fn has_marks(&self) -> bool {
        self.marks
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Whether runs begin as in a node that is there; then only groups differ.
    pub(crate) fn same_runs(&self, there: &[AtomicU32]) -> bool {
        let compared = |at: usize| match () {
            () if self.indexed && at < LINE => !0,
            () if self.marks => !ANY_GROUP,
            () if at % LINE < KEYS => !0,
            () => 0,
        };
        let same = |(at, (word, there)): (usize, (&u32, &AtomicU32))| {
            (word ^ there.load(Ordering::Relaxed)) & compared(at) == 0
        };
        there.len() == self.words.len() && self.words.iter().zip(there).enumerate().all(same)
    }
}

/// Words of a node whose first line this is.
pub(crate) fn len_of(first: &[AtomicU32], indexed: bool) -> usize {
    let lines = first
        .iter()
        .filter(|word| word.load(Ordering::Relaxed) != NEVER)
        .count()
        + 1;
    if indexed { LINE * (1 + lines) } else { LINE }
}

/// The routes of a subtree, whose octet is `shift` bits from the right of those distinguished and which may go so many
/// octets deep; `None` when it goes deeper or has too great a group. Only those that lie `within` two values, or in part.
fn collect(
    rib: &Rib,
    node: &Node,
    base: u32,
    shift: u32,
    octets: usize,
    within: (u32, u32),
    ranges: &mut Vec<Range>,
) -> Option<()> {
    let ends = |span: std::ops::Range<usize>| {
        (
            base | (span.start as u32) << shift,
            base | ((span.end - 1) as u32) << shift | !(u32::MAX << shift),
        )
    };
    let concerns = |(first, last): (u32, u32)| first <= within.1 && last >= within.0;
    for route in node.routes() {
        let (first, last) = ends(route.span());
        if concerns((first, last)) {
            let len = 24 - shift + route.place().ilog2();
            ranges.push(Range {
                first,
                last,
                len,
                group: u16::try_from(route.group()).ok()?,
            });
        }
    }
    for (slot, child) in node.children() {
        if concerns(ends(slot..slot + 1)) {
            let below = octets.checked_sub(1).filter(|&below| below > 0)?;
            collect(
                rib,
                rib.node(child)?,
                base | (slot as u32) << shift,
                shift.checked_sub(8)?,
                below,
                within,
                ranges,
            )?;
        }
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

/// All values.
pub(crate) const WHOLE: (u32, u32) = (0, u32::MAX);

/// The group of a value, when this is its line of marks. The first of them is never behind a value that is asked for.
#[inline(always)]
pub(crate) fn group_marked(code: impl Code, line: &[AtomicU32; LINE], key: &i32) -> u32 {
    let mark = behind(code, line, key).wrapping_sub(1) % LINE;
    line[mark].load(Ordering::Acquire) & ANY_GROUP
}

/// A value as it is compared with.
#[inline(always)]
pub(crate) fn turned(key: u32) -> i32 {
    (key ^ TURN).cast_signed()
}

/// How many of a line's values lie before another one, or are it, as marks have it.
#[inline(always)]
pub(crate) fn behind(code: impl Code, line: &[AtomicU32; LINE], key: &i32) -> usize {
    code.count_less(line, key) as usize
}

/// How many lines further on that of a value is, when this is the index.
#[inline(always)]
pub(crate) fn line_below(code: impl Code, index: &[AtomicU32; LINE], key: &i32) -> u32 {
    code.count_less(index, key) + 1
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
    use weir_cpu::AnyMachine;

    use super::*;

    fn find(words: &[AtomicU32], coded: &Coded, key: u32) -> u32 {
        let line = |line: u32| words[line as usize * LINE..].first_chunk().unwrap();
        let key = turned(if coded.marks { key | ANY_GROUP } else { key });
        let line = line(if coded.indexed {
            line_below(AnyMachine, line(0), &key)
        } else {
            0
        });
        if coded.marks {
            group_marked(AnyMachine, line, &key)
        } else {
            group_in(line, key)
        }
    }

    #[test]
    fn every_key_finds_its_run() {
        for count in (1..=MAX_RUNS).step_by(3).chain([RUNS, RUNS + 1, MAX_RUNS]) {
            for step in [1u32, 3, 4095, u32::MAX / MAX_RUNS as u32] {
                let runs: Vec<Run> = (0..count as u32)
                    .map(|n| (n * step, n as u16 + 1))
                    .collect();
                let coded = Coded::of_runs(&runs).unwrap();
                let words: Vec<AtomicU32> = coded
                    .words()
                    .iter()
                    .map(|&word| AtomicU32::new(word))
                    .collect();
                assert_eq!(len_of(&words[..LINE], coded.is_indexed()), words.len());
                assert!(coded.same_runs(&words));
                let keys = runs
                    .iter()
                    .flat_map(|run| [run.0.saturating_sub(1), run.0, run.0.saturating_add(1)]);
                for key in keys.chain([TURN - 1, TURN, u32::MAX - 1, u32::MAX]) {
                    let wanted = runs.iter().rev().find(|run| run.0 <= key).unwrap().1;
                    assert_eq!(
                        find(&words, &coded, key),
                        u32::from(wanted),
                        "{key} of {count}"
                    );
                }
            }
        }
        assert_eq!(Coded::of_runs(&[(0, 0); MAX_RUNS + 1]), None);
        let last = Coded::of_runs(&[(0, 1), (u32::MAX, 2)]).unwrap();
        let words: Vec<AtomicU32> = last
            .words()
            .iter()
            .map(|&word| AtomicU32::new(word))
            .collect();
        assert_eq!(
            [u32::MAX - 1, u32::MAX].map(|key| find(&words, &last, key)),
            [1, 2]
        );
    }

    #[test]
    fn every_key_finds_its_mark() {
        for count in (1..=MAX_MARKS)
            .step_by(3)
            .chain([MARKS, MARKS + 1, MAX_MARKS])
        {
            for step in [1u32, 3, 200, (1 << 24) / MAX_MARKS as u32] {
                let runs: Vec<Run> = (0..count as u32)
                    .map(|n| ((n * step) << 8, (n % 255) as u16))
                    .collect();
                let coded = Coded::of_marks(&runs).unwrap();
                let words: Vec<AtomicU32> = coded
                    .words()
                    .iter()
                    .map(|&word| AtomicU32::new(word))
                    .collect();
                assert_eq!(len_of(&words[..LINE], coded.is_indexed()), words.len());
                let others: Vec<Run> = runs.iter().map(|run| (run.0, 254 - run.1)).collect();
                assert!(
                    coded.same_runs(&words) && Coded::of_marks(&others).unwrap().same_runs(&words)
                );
                let keys = runs
                    .iter()
                    .flat_map(|run| [run.0.saturating_sub(1), run.0, run.0 + 255, run.0 + 256]);
                for key in keys.chain([TURN - 1, TURN, u32::MAX - 1, u32::MAX]) {
                    let wanted = runs.iter().rev().find(|run| run.0 <= key).unwrap().1;
                    assert_eq!(
                        find(&words, &coded, key),
                        u32::from(wanted),
                        "{key} of {count}"
                    );
                }
            }
        }
        assert_eq!(Coded::of_marks(&[(0, 0); MAX_MARKS + 1]), None);
        let other = Coded::of_marks(&[(0, 1), (256, 2)]).unwrap();
        let words: Vec<AtomicU32> = other
            .words()
            .iter()
            .map(|&word| AtomicU32::new(word))
            .collect();
        assert!(
            !Coded::of_marks(&[(0, 1), (512, 2)])
                .unwrap()
                .same_runs(&words)
        );
    }

    #[test]
    fn routes_within_routes_become_runs() {
        let range = |first, last, len, group| Range {
            first,
            last,
            len,
            group,
        };
        let routes = [
            range(0, 99, 1, 1),
            range(0, 9, 2, 2),
            range(10, 19, 2, 1),
            range(50, 99, 2, 3),
            range(60, 99, 3, 4),
        ];
        assert_eq!(
            runs(&routes, 7),
            [(0, 2), (10, 1), (50, 3), (60, 4), (100, 7)]
        );
        assert_eq!(
            runs(&[range(0, u32::MAX, 0, 3), range(9, u32::MAX, 1, 4)], 7),
            [(0, 3), (9, 4)]
        );
        assert_eq!(runs(&[], 7), [(0, 7)]);
    }
}
