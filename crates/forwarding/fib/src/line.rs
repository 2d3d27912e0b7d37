//! The lines of a full IPv4 table: a cache line for each /17, found by the address alone.
//!
//! A line tells the groups of the 128 /24 of its prefix: one bit each says where the group is another than before, and a
//! byte each tells the groups of these runs. So a lookup in a full table reads one cache line, which can be asked for as soon as
//! the address is known, with nothing to come before it; and all lines together are half as large as a byte for each /24, small
//! enough for a share of a third-level cache. What a byte cannot tell is asked of the trie, which knows all of it: a longer
//! route, a great group, more runs than a line has room for.
//!
//! The writer (`grow.rs`) changes lines with the trie, each at once as its readers see it
//! ([`seqlock`]): who reads one while it changes asks the trie. Addresses that no packet is forwarded
//! to (224.0.0.0 and above) have none.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use weir_cpu::HUGE_PAGE;
use weir_ring::seqlock;
use zerocopy::FromZeros;

use crate::dense::SLOTS;
use crate::entry::Entry;

/// Lines of all addresses.
const LINES: usize = 1 << 17;
/// Slots of the root that have lines, those of unicast addresses.
pub(crate) const COVERED_SLOTS: usize = 224 << 8;
/// Lines below a slot of the root.
pub(crate) const LINES_OF_SLOT: usize = SLOTS / COVERED;
/// Lines that tell something, at most.
pub(crate) const COVERED_LINES: usize = COVERED_SLOTS * LINES_OF_SLOT;
/// /24 that a line tells of.
const COVERED: usize = 128;
/// /24 of a half of them.
const HALF: usize = u64::BITS as usize;
/// The most runs of a line; the first place of all is not used, so that runs count from one.
const RUNS: usize = 41;
/// Stands for a run of which the trie has to be asked.
const ASK: u8 = u8::MAX;

/// A cache line.
#[derive(FromZeros)]
#[repr(C, align(64))]
pub(crate) struct Line {
    /// The bit of each /24 with which a run begins.
    starts: [AtomicU64; 2],
    /// Odd while the line tells something.
    version: AtomicU32,
    /// Runs that begin before each half.
    before: [AtomicU8; 2],
    /// The groups of the runs.
    runs: [AtomicU8; RUNS + 1],
}

const _: () = assert!(size_of::<Line>() == 64);

impl Line {
    /// The group of an address that the line tells of, if it does.
    #[inline(always)]
    pub(crate) fn group(&self, address: u32) -> Option<u32> {
        let seen = seqlock::begin(&self.version)?;
        let half = (address >> 14) as usize % self.starts.len();
        let begun = self.starts[half].load(Ordering::Relaxed) << (!(address >> 8) % u64::BITS);
        let run =
            usize::from(self.before[half].load(Ordering::Relaxed)) + begun.count_ones() as usize;
        let group = self.runs.get(run)?.load(Ordering::Relaxed);
        (seqlock::is_still(&self.version, seen) & (group != ASK)).then_some(group.into())
    }

    /// Whether it tells this, or nothing when that is what it should.
    pub(crate) fn is(&self, coded: Option<&Coded>) -> bool {
        let Some(coded) = coded else {
            return !self.is_open();
        };
        let same = |(there, byte): (&AtomicU8, &u8)| there.load(Ordering::Relaxed) == *byte;
        self.is_open()
            && self
                .starts
                .iter()
                .zip(&coded.starts)
                .all(|(there, word)| there.load(Ordering::Relaxed) == *word)
            && self
                .runs
                .iter()
                .skip(1)
                .zip(&coded.runs)
                .take(coded.count)
                .all(same)
    }

    /// Which run it has of just these slots, if there is such a one.
    pub(crate) fn run_of(&self, slots: &std::ops::Range<usize>) -> Option<usize> {
        let begins = |slot: usize| {
            self.starts
                .get(slot / HALF)
                .is_none_or(|word| word.load(Ordering::Relaxed) >> (slot % HALF) & 1 != 0)
        };
        let is_one =
            begins(slots.start) && begins(slots.end) && !(slots.start + 1..slots.end).any(begins);
        let half = slots.start / HALF;
        let begun =
            self.starts.get(half)?.load(Ordering::Relaxed) << (HALF - 1 - slots.start % HALF);
        is_one.then_some(
            usize::from(self.before.get(half)?.load(Ordering::Relaxed))
                + begun.count_ones() as usize,
        )
    }

    /// Lets it tell something else of one of its runs: one store, before or after which a reader may come.
    pub(crate) fn change(&self, run: usize, entry: Entry) {
        if let Some(there) = self.runs.get(run) {
            there.store(byte_of(entry), Ordering::Release);
        }
    }

    /// Whether it tells something.
    pub(crate) fn is_open(&self) -> bool {
        seqlock::is_open(&self.version)
    }

    /// Lets it tell this from now on, or nothing.
    pub(crate) fn write(&self, coded: Option<&Coded>) {
        seqlock::close(&self.version);
        let Some(coded) = coded else { return };
        self.starts
            .iter()
            .zip(coded.starts)
            .for_each(|(there, word)| there.store(word, Ordering::Relaxed));
        self.before[1].store(coded.starts[0].count_ones() as u8, Ordering::Relaxed);
        self.runs
            .iter()
            .skip(1)
            .zip(coded.runs)
            .take(coded.count)
            .for_each(|(there, byte)| there.store(byte, Ordering::Relaxed));
        seqlock::open(&self.version);
    }
}

/// What a line tells.
#[derive(Clone, Debug)]
pub(crate) struct Coded {
    starts: [u64; 2],
    runs: [u8; RUNS],
    count: usize,
}

impl Coded {
    /// The same of all slots.
    pub(crate) fn one(entry: Entry) -> Coded {
        let mut runs = [0; RUNS];
        runs[0] = byte_of(entry);
        Coded {
            starts: [1, 0],
            runs,
            count: 1,
        }
    }

    /// Of half the slots of a node below the root; `None` when they do not fit.
    pub(crate) fn new(slots: &[Entry]) -> Option<Coded> {
        let mut coded = Coded {
            starts: [0; 2],
            runs: [0; RUNS],
            count: 0,
        };
        // The first begins a run, whatever was before. Hardly a branch, since where runs begin cannot be guessed.
        let mut last = slots.first().map_or(0, |first| !byte_of(*first));
        for (starts, slots) in coded.starts.iter_mut().zip(slots.chunks(HALF)) {
            for (at, entry) in slots.iter().enumerate() {
                let byte = byte_of(*entry);
                *starts |= u64::from(byte != last) << at;
                last = byte;
            }
            let mut left = *starts;
            while left != 0 {
                *coded.runs.get_mut(coded.count)? =
                    byte_of(*slots.get(left.trailing_zeros() as usize)?);
                coded.count += 1;
                left &= left - 1;
            }
        }
        Some(coded)
    }
}

/// What stands for an entry.
fn byte_of(entry: Entry) -> u8 {
    if entry.0 < u32::from(ASK) {
        entry.0 as u8
    } else {
        ASK
    }
}

/// All lines.
pub(crate) struct Lines {
    memory: Box<[Line]>,
    /// Lines before the first large page.
    skip: usize,
}

impl Lines {
    /// Lines that tell nothing yet; `None` when there is no memory.
    pub(crate) fn new() -> Option<Lines> {
        let memory =
            <[Line]>::new_box_zeroed_with_elems(LINES + HUGE_PAGE / size_of::<Line>()).ok()?;
        let skip = memory.as_ptr().align_offset(HUGE_PAGE);
        let lines = Lines { memory, skip };
        weir_cpu::prefer_hugepages(lines.all()?, false);
        Some(lines)
    }

    #[inline(always)]
    pub(crate) fn all(&self) -> Option<&[Line; LINES]> {
        self.memory.get(self.skip..)?.first_chunk()
    }

    pub(crate) fn get(&self, line: usize) -> Option<&Line> {
        self.all()?.get(line)
    }

    /// Moves them to large pages, if they are not there.
    #[cold]
    pub(crate) fn enlarge_pages(&self) {
        if let Some(lines) = self.all() {
            weir_cpu::prefer_hugepages(lines, true);
        }
    }
}

/// All lines as a reader has them.
pub(crate) type All = [Line; LINES];

/// The line of an address.
#[inline(always)]
pub(crate) fn of(address: u32) -> usize {
    (address >> 15) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a line tells of each slot, if it is written with these.
    fn covered(line: &Line, slots: &[Entry; COVERED]) -> Vec<Option<u32>> {
        let coded = Coded::new(slots);
        line.write(coded.as_ref());
        assert!(line.is(coded.as_ref()));
        (0..COVERED as u32)
            .map(|slot| line.group(0xa0b0_0000 | slot << 8 | 0x55))
            .collect()
    }

    #[test]
    fn each_slot_finds_its_run() {
        let line = Line::new_zeroed();
        assert_eq!((line.group(0), line.is(None)), (None, true));
        let mut random = crate::synthetic::Random::new(3);
        for runs in 0..100 {
            let mut slots = [Entry::leaf(runs as u32); COVERED];
            for _ in 0..runs {
                let at = random.below(COVERED as u64) as usize;
                let entry = if random.below(9) == 0 {
                    Entry::dense(7, 0)
                } else {
                    Entry::leaf(random.below(300) as u32)
                };
                let until = (at + random.below(9) as usize + 1).min(COVERED);
                slots[at..until].fill(entry);
            }
            let byte = |entry: &Entry| Some(entry.0).filter(|&group| group < 255);
            let different = 1 + slots
                .windows(2)
                .filter(|pair| byte(&pair[0]) != byte(&pair[1]))
                .count();
            let wanted: Vec<Option<u32>> = slots
                .iter()
                .map(|entry| byte(entry).filter(|_| different <= RUNS))
                .collect();
            assert_eq!(covered(&line, &slots), wanted);
        }
    }

    #[test]
    fn what_is_reported_is_reported_again_only_if_it_is_another() {
        let line = Line::new_zeroed();
        covered(
            &line,
            &std::array::from_fn(|slot| Entry::leaf(slot as u32 / 4)),
        );
        let other = Coded::new(&[Entry::leaf(1); COVERED]);
        assert!(
            !line.is(other.as_ref())
                && !line.is(None)
                && other.map(|other| other.runs) == Some(Coded::one(Entry::leaf(1)).runs)
        );
        line.write(None);
        assert!(line.is(None) && line.group(0).is_none());
        assert!(
            Coded::new(&std::array::from_fn::<_, COVERED, _>(|slot| Entry::leaf(
                slot as u32 / 3
            )))
            .is_none()
        );
    }

    #[test]
    fn a_run_is_changed_where_it_lies() {
        let line = Line::new_zeroed();
        let mut slots: [Entry; COVERED] = std::array::from_fn(|slot| Entry::leaf(slot as u32 / 5));
        covered(&line, &slots);
        assert_eq!(
            [0..5, 0..4, 1..5, 0..10, 60..64, 63..65].map(|slots| line.run_of(&slots)),
            [Some(1), None, None, None, None, None]
        );
        for (run, start) in (0..COVERED).step_by(5).enumerate() {
            let span = start..COVERED.min(start + 5);
            assert_eq!(line.run_of(&span), Some(run + 1));
            let group = [7, 254, 255, 300][run % 4];
            line.change(run + 1, Entry::leaf(group));
            slots[span].fill(Entry::leaf(group));
            let wanted = |slot: usize| Some(slots[slot].0).filter(|&group| group < 255);
            assert!((0..COVERED).all(|slot| line.group((slot as u32) << 8) == wanted(slot)));
        }
    }

    #[test]
    fn there_is_a_line_for_each_address() {
        let lines = Lines::new().unwrap();
        assert!(
            [0, u32::MAX]
                .into_iter()
                .all(|address| lines.get(of(address)).is_some())
        );
        assert_eq!(lines.all().unwrap().as_ptr().addr() % 64, 0);
    }
}
