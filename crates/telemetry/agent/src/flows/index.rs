//! From a hash to the place where the flow's record is, and when each record has to be looked at.
//!
//! A bucket is one cache line: fourteen tags of 15 bits, and as many ticks. A record's index follows from its bucket and its slot in it
//! in it, so that a packet of a known flow touches two lines only, this one and the record. The records lie behind their bucket, mostly
//! on the same page. A bucket that is full goes on in a spare one, which has places of its own.
//!
//! **It is as large as its flows need**, so that few flows lie in few lines: linear hashing (Litwin 1980). Up to eight flows
//! to a bucket on average; once there are more, with every fourth flow that is more than ever before one bucket is split in two, and about
//! half of its records move to where the new bucket has its places. So all are split when there are half as many flows more, and
//! those that wait for it have twelve flows at most on average: what is in a spare bucket takes a second wait for memory.
//!
//! Of buckets with eight flows one in sixty has more than fourteen; of those that wait to be split next, with up to twelve, a quarter.
//! There is a spare bucket for every eighth, so that with a keyed hash they do not run out. If they did, the flow would find no place and another one would leave for it.

use weir_cpu::{LargePages, equal, prefetch_address, prefetch_second, prefetch_write, soonest};
use zerocopy::{FromBytes, Immutable, IntoBytes, transmute_mut, transmute_ref};

use super::key::Secret;
use super::record::{Fraction, Hot};
use super::store::Pool;

/// Flows of a bucket.
pub(super) const WAYS: usize = 14;
/// Flows to a bucket on average, at most, once there are more than the first buckets hold; and while buckets are split, those more for each of them.
const FLOWS: usize = 8;
const FLOWS_A_SPLIT: usize = 4;
/// Buckets at the start, a power of two.
const FIRST: usize = 64;
/// Spare buckets: one for so many others, and some more for small tables, where chance weighs more.
const SPARE: usize = 8;
const SPARE_MORE: usize = 64;
/// The bits of a hash from here on are the bucket's number; from there on they are the tag.
const HOME_AT: u32 = 16;
const TAG_AT: u32 = 48;
/// The highest bit is set in every hash, so that no tag is 0.
pub(super) const TAGGED: u64 = 1 << 63;
/// Packets that are looked up together.
pub(super) const BLOCK: usize = 64;
/// No place, no bucket.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C, align(64))]
struct Bucket {
    /// Tags, 0 for an empty way, and behind them the ticks in which records have to be looked at.
    words: [u16; 2 * WAYS],
    /// The spare bucket behind this one.
    next: u32,
    unused: u32,
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    const EMPTY: Bucket = Bucket {
        words: [0; 2 * WAYS],
        next: NONE,
        unused: 0,
    };

    /// The ways with a tag, a bit for each; with 0 those that are empty.
    #[inline(always)]
    fn ways(&self, tag: u16) -> u32 {
        // The first ticks are compared as well, and do not count.
        self.words
            .first_chunk()
            .map_or(0, |words| equal(words, tag))
            & ((1 << WAYS) - 1)
    }

    fn is_empty(&self) -> bool {
        self.ways(0) == (1 << WAYS) - 1
    }

    /// Of the ways with a flow the one that is to be looked at first, and when that is, more for later; more than any if there is none.
    #[inline(always)]
    fn soonest(&self, now: u16) -> (u32, usize) {
        let (Some(tags), Some(ticks)) = (self.words.first_chunk(), self.words.last_chunk()) else {
            return (u32::MAX, WAYS);
        };
        match soonest(ticks, tags, now) {
            (u16::MAX, way) if tags.get(way).is_none_or(|tag| *tag == 0) => (u32::MAX, WAYS),
            (due, way) => (due.into(), way),
        }
    }

    /// Ways with a flow, and when each has to be looked at: how many ticks from `now` on, below zero for those that wait.
    #[inline(always)]
    fn due(&self, now: u16) -> impl Iterator<Item = (usize, i16)> {
        let (tags, ticks) = self.words.split_at(WAYS);
        let both = tags
            .iter()
            .zip(ticks)
            .enumerate()
            .filter(|(_, (tag, _))| **tag != 0);
        both.map(move |(way, (_, tick))| (way, tick.wrapping_sub(now).cast_signed()))
    }
}

/// Lines of a bucket and behind it the records of its flows: on the same page mostly, so that the second line needs no address to be
/// translated that the first one did not. An odd number, so that lines in the same place of their units do not share a cache's sets.
const UNIT: usize = 1 + WAYS;
const _: () = assert!(UNIT % 2 == 1);

/// The line of a bucket.
#[inline(always)]
fn line_of(bucket: usize) -> usize {
    bucket * UNIT
}

/// A place is the number of the record's line, which tells the bucket in front of it.
#[inline(always)]
fn bucket_of(place: u32) -> usize {
    place as usize / UNIT
}

/// And the way.
#[inline(always)]
fn way_of(place: u32) -> usize {
    (place as usize % UNIT).saturating_sub(1)
}

/// A way beyond those of a bucket, for those who look for one that is not there: it leads to a record of another bucket, or
/// beyond all of them, and never to a bucket's line, which is no record.
const NO_WAY: u32 = u32::BITS;
const _: () = assert!(!(1 + NO_WAY as usize).is_multiple_of(UNIT));

/// How many buckets there are but for spare ones: `mask + 1`, and those that were split so far besides.
#[derive(Clone, Copy, Debug)]
struct Extent {
    mask: u32,
    split: u32,
}

impl Extent {
    /// The number of a hash's bucket. There are too few of them for a sign to be set; so several are compared at once.
    #[inline(always)]
    fn home(self, hash: u64) -> u32 {
        let bits = (hash >> HOME_AT) as u32;
        let home = bits & self.mask;
        if home.cast_signed() < self.split.cast_signed() {
            bits & (self.mask << 1 | 1)
        } else {
            home
        }
    }

    fn count(self) -> usize {
        (self.mask + 1 + self.split) as usize
    }
}

/// The index.
#[derive(Debug)]
pub(super) struct Index {
    /// Buckets and records by the line. Those that hashes lead to, and from bucket `main` on the spare ones.
    lines: LargePages<Hot>,
    /// Of buckets.
    count: usize,
    pub(super) pool: Pool,
    pub(super) secret: Secret,
    main: usize,
    free_spare: Vec<u32>,
    extent: Extent,
    flows: usize,
    /// When in its millisecond the present moment is.
    pub(super) fraction: Fraction,
}

impl Index {
    /// For at most so many flows.
    pub(super) fn new(flows: usize, secret: Secret) -> Index {
        let main = flows.div_ceil(FLOWS).max(FIRST);
        let count = main + main / SPARE + SPARE_MORE;
        let free_spare = (main as u32..count as u32).rev().collect();
        let extent = Extent {
            mask: FIRST as u32 - 1,
            split: 0,
        };
        let pool = Pool::new(line_of(count), flows);
        let mut lines = LargePages::filled(Hot::NONE, line_of(count));
        lines
            .iter_mut()
            .step_by(UNIT)
            .for_each(|line| *line = zerocopy::transmute!(Bucket::EMPTY));
        Index {
            lines,
            count,
            pool,
            secret,
            main,
            free_spare,
            extent,
            flows: 0,
            fraction: Fraction::default(),
        }
    }

    /// Flows in it.
    #[inline(always)]
    pub(super) fn flows(&self) -> usize {
        self.flows
    }

    #[inline(always)]
    fn bucket(&self, at: usize) -> Option<&Bucket> {
        // `NONE` is more than any, and not only as a line.
        self.lines.get(line_of(at)).map(|line| transmute_ref!(line))
    }

    /// To change it.
    #[inline(always)]
    fn bucket_mut(&mut self, at: usize) -> &mut Bucket {
        transmute_mut!(&mut self.lines[line_of(at)])
    }

    /// The record at a place.
    #[inline(always)]
    pub(super) fn hot(&self, place: u32) -> &Hot {
        &self.lines[place as usize]
    }

    /// To change it.
    #[inline(always)]
    pub(super) fn hot_mut(&mut self, place: u32) -> &mut Hot {
        &mut self.lines[place as usize]
    }

    /// All of them by place.
    #[inline(always)]
    pub(super) fn records_mut(&mut self) -> &mut [Hot] {
        &mut self.lines
    }

    /// Asks for a line, a bucket's or a record's, that may be far and is needed later.
    #[inline(always)]
    pub(super) fn ask(&self, line: u32) {
        prefetch_second(self.lines.as_ptr().wrapping_add(line as usize).cast());
    }

    /// The same for a bucket by its number.
    #[inline(always)]
    pub(super) fn ask_bucket(&self, bucket: usize) {
        prefetch_second(self.lines.as_ptr().wrapping_add(line_of(bucket)).cast());
    }

    /// Asks for the record at a place, which is written next.
    #[inline(always)]
    pub(super) fn fetch_record(&self, line: u32) {
        prefetch_write(self.lines.as_ptr().wrapping_add(line as usize).cast());
    }

    /// The bucket of a hash.
    #[inline(always)]
    pub(super) fn home(&self, hash: u64) -> usize {
        self.extent.home(hash) as usize
    }

    #[inline(always)]
    fn tag(hash: u64) -> u16 {
        debug_assert!(hash & TAGGED != 0, "a hash that would be an empty way");
        (hash >> TAG_AT) as u16
    }

    /// The bucket with a place, and the first place of a bucket.
    pub(super) fn bucket_at(place: usize) -> usize {
        place / UNIT
    }

    pub(super) fn first_place(bucket: usize) -> usize {
        line_of(bucket) + 1
    }

    #[inline(always)]
    pub(super) fn place(bucket: usize, way: usize) -> u32 {
        (line_of(bucket) + 1 + way) as u32
    }

    /// Asks for the bucket of a hash, which is looked into next.
    #[inline(always)]
    pub(super) fn fetch(&self, hash: u64) {
        prefetch_address(
            self.lines
                .as_ptr()
                .wrapping_add(line_of(self.home(hash)))
                .cast(),
        );
    }

    /// The index as it is now, for those who look up many.
    #[inline(always)]
    pub(super) fn view(&self) -> View<'_> {
        View {
            lines: &self.lines,
            extent: self.extent,
        }
    }

    /// For a flow that is not in its first bucket, the one in this line: where it may be in the spare ones behind it. Else where it would be put:
    /// in an empty way; or where the one is that is looked at first, if the table is full and there is a choice of so many at least.
    #[inline(always)]
    pub(super) fn guess_elsewhere(
        &self,
        line: u32,
        hash: u64,
        now: u16,
        is_full: bool,
        choice: usize,
    ) -> u32 {
        let bucket: &Bucket = transmute_ref!(&self.lines[line as usize]);
        if bucket.next != NONE {
            let place = self.guess_behind(bucket.next, hash);
            if place != NONE {
                return place;
            }
        }
        let empty = bucket.ways(0);
        let way = if is_full && empty.count_ones() as usize + choice <= WAYS {
            bucket.soonest(now).1
        } else {
            empty.trailing_zeros() as usize
        };
        if way < WAYS {
            line + 1 + way as u32
        } else {
            NONE
        }
    }

    #[cold]
    fn guess_behind(&self, spare: u32, hash: u64) -> u32 {
        let mut at = spare as usize;
        while let Some(bucket) = self.bucket(at) {
            match bucket.ways(Index::tag(hash)) {
                0 => at = bucket.next as usize,
                ways => return Index::place(at, ways.trailing_zeros() as usize),
            }
        }
        NONE
    }

    /// The place for which `is_it` holds, and the buckets that were looked at.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> (Option<u32>, u32) {
        let (tag, mut at, mut probes) = (Index::tag(hash), self.home(hash), 0);
        while let Some(bucket) = self.bucket(at) {
            probes += 1;
            let mut ways = bucket.ways(tag);
            while ways != 0 {
                let place = Index::place(at, ways.trailing_zeros() as usize);
                if is_it(place) {
                    return (Some(place), probes);
                }
                ways &= ways - 1;
            }
            at = bucket.next as usize;
        }
        (None, probes)
    }

    /// A place for another flow; `None` if its buckets are full and there is no spare one.
    pub(super) fn insert(&mut self, hash: u64) -> Option<u32> {
        let place = self.put(self.home(hash), Index::tag(hash))?;
        self.flows += 1;
        Some(place)
    }

    /// In a bucket, or the first of its spare ones that has room.
    fn put(&mut self, home: usize, tag: u16) -> Option<u32> {
        let mut at = home;
        loop {
            let bucket = self.bucket_mut(at);
            let way = bucket.ways(0).trailing_zeros() as usize;
            if way < WAYS {
                bucket.words[way] = tag;
                return Some(Index::place(at, way));
            }
            if bucket.next == NONE {
                break;
            }
            at = bucket.next as usize;
        }
        let spare = self.free_spare.pop()?;
        self.bucket_mut(at).next = spare;
        self.bucket_mut(spare as usize).words[0] = tag;
        Some(Index::place(spare as usize, 0))
    }

    /// Whether there are so many flows that a bucket should be split.
    #[inline(always)]
    pub(super) fn is_dense(&self) -> bool {
        let count = self.extent.count();
        let Extent { mask, split } = self.extent;
        self.flows >= (mask as usize + 1) * FLOWS + split as usize * FLOWS_A_SPLIT
            && count < self.main
    }

    /// One more bucket: the next one that was not split yet gives it the flows whose hash leads there now.
    #[inline(never)]
    pub(super) fn split(&mut self) {
        let Extent { mask, split } = self.extent;
        let low = split as usize;
        self.extent = if split == mask {
            Extent {
                mask: mask << 1 | 1,
                split: 0,
            }
        } else {
            Extent {
                mask,
                split: split + 1,
            }
        };
        let mut at = low;
        loop {
            let (bucket, spare) = (*self.bucket_mut(at), at != low);
            if spare {
                // It is free before its flows find other places, of which there are enough: the first bucket has some now, or
                // this very one is taken again.
                *self.bucket_mut(at) = Bucket::EMPTY;
                self.free_spare.push(at as u32);
            } else {
                self.bucket_mut(low).next = NONE;
            }
            // By way, since a spare bucket may be taken again while its flows leave it: each goes to a way that was looked at.
            for way in 0..WAYS {
                let (tag, tick) = (bucket.words[way], bucket.words[WAYS + way]);
                let from = Index::place(at, way);
                if tag == 0 {
                    continue;
                }
                let home = self.home(self.hash_of(from));
                if home == low && !spare {
                    continue;
                }
                if !spare {
                    self.bucket_mut(low).words[way] = 0;
                }
                if let Some(to) = self.put(home, tag) {
                    self.set_due(to, tick);
                    self.move_to(from, to);
                }
            }
            if bucket.next == NONE {
                return;
            }
            at = bucket.next as usize;
        }
    }

    /// When the record at a place has to be looked at, which may make room for a flow with this hash: if that has its place in the same bucket, none
    /// with its tag is there, and it is the only bucket where it could be.
    #[inline(always)]
    pub(super) fn due_of_other(&self, place: u32, hash: u64) -> Option<u16> {
        let (home, way) = (self.home(hash), way_of(place));
        let bucket = self.bucket(home)?;
        let (tag, due) = (bucket.words[way], bucket.words[WAYS + way]);
        (bucket_of(place) == home
            && bucket.next == NONE
            && tag != 0
            && bucket.ways(Index::tag(hash)) == 0)
            .then_some(due)
    }

    /// A flow takes the place of one that shares its buckets.
    #[inline(always)]
    pub(super) fn replace(&mut self, place: u32, hash: u64) {
        self.bucket_mut(bucket_of(place)).words[way_of(place)] = Index::tag(hash);
    }

    /// Takes a flow out. A spare bucket without flows is free again.
    pub(super) fn remove(&mut self, hash: u64, place: u32) {
        let (at, way) = (bucket_of(place), way_of(place));
        let bucket = self.bucket_mut(at);
        debug_assert!(bucket.words[way] != 0, "a flow that is not in the index");
        bucket.words[way] = 0;
        let is_empty = bucket.is_empty();
        self.flows = self.flows.saturating_sub(1);
        if at >= self.main && is_empty {
            self.give_back(self.home(hash), at);
        }
    }

    #[cold]
    fn give_back(&mut self, home: usize, spare: usize) {
        let (mut at, next) = (home, self.bucket_mut(spare).next);
        while let Some(bucket) = self.bucket(at) {
            if bucket.next as usize == spare {
                self.bucket_mut(at).next = next;
                *self.bucket_mut(spare) = Bucket::EMPTY;
                self.free_spare.push(spare as u32);
                return;
            }
            at = bucket.next as usize;
        }
        debug_assert!(false, "a spare bucket that nobody leads to");
    }

    /// Notes when a record has to be looked at.
    #[inline(always)]
    pub(super) fn set_due(&mut self, place: u32, tick: u16) {
        self.bucket_mut(bucket_of(place)).words[WAYS + way_of(place)] = tick;
    }

    /// When a record has to be looked at.
    pub(super) fn due(&self, place: u32) -> u16 {
        self.bucket(bucket_of(place))
            .map_or(0, |bucket| bucket.words[WAYS + way_of(place)])
    }

    /// Of the flows of a bucket, and of the spare ones behind it, the one that is to be looked at first.
    #[inline(always)]
    pub(super) fn soonest(&self, mut at: usize, now: u16) -> Option<u32> {
        let mut soonest = (u32::MAX, NONE);
        while let Some(bucket) = self.bucket(at) {
            let (due, way) = bucket.soonest(now);
            if way < WAYS && due < soonest.0 {
                soonest = (due, Index::place(at, way));
            }
            at = bucket.next as usize;
        }
        Some(soonest.1).filter(|place| *place != NONE)
    }

    /// How many flows a bucket has.
    #[inline(always)]
    pub(super) fn count_of(&self, bucket: usize) -> usize {
        self.bucket(bucket)
            .map_or(0, |bucket| WAYS - bucket.ways(0).count_ones() as usize)
    }

    /// The buckets that may have flows, for somebody who looks at all of them, some at a time: behind `at`, from the start on behind
    /// the last one.
    #[inline(always)]
    pub(super) fn next_bucket(&self, at: usize) -> usize {
        match at + 1 {
            next if next < self.extent.count() => next,
            next if self.spare_used() > 0 && next < self.main => self.main,
            next if self.spare_used() > 0 && next < self.count => next,
            _ => 0,
        }
    }

    /// How many of them there are.
    pub(super) fn walk_length(&self) -> usize {
        self.extent.count()
            + if self.spare_used() > 0 {
                self.count - self.main
            } else {
                0
            }
    }

    /// The flows of a bucket, and how many ticks from now on each has to be looked at.
    #[inline(always)]
    pub(super) fn flows_of(&self, bucket: usize, now: u16) -> impl Iterator<Item = (u32, i16)> {
        let due = self
            .bucket(bucket)
            .into_iter()
            .flat_map(move |bucket| bucket.due(now));
        due.map(move |(way, due)| (Index::place(bucket, way), due))
    }

    /// Spare buckets in use.
    pub(super) fn spare_used(&self) -> usize {
        self.count - self.main - self.free_spare.len()
    }
}

/// What a look-up needs of an index, so that it can be in registers.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    lines: &'a [Hot],
    extent: Extent,
}

impl View<'_> {
    /// The ways with a tag of the bucket in a line.
    #[inline(always)]
    pub(super) fn ways_in(self, line: u32, tag: u16) -> u32 {
        let bucket: &Bucket = transmute_ref!(&self.lines[line as usize]);
        bucket.ways(tag)
    }

    /// The line of a hash's bucket.
    #[inline(always)]
    pub(super) fn line(self, hash: u64) -> u32 {
        self.extent.home(hash) * UNIT as u32
    }

    /// The lines of several.
    #[inline(always)]
    pub(super) fn lines(self, hashes: &[u64], lines: &mut [u32]) {
        // Of a whole block the compiler knows the number, and finds several lines at once.
        match (
            hashes.first_chunk::<BLOCK>(),
            lines.first_chunk_mut::<BLOCK>(),
        ) {
            (Some(hashes), Some(lines)) => hashes
                .iter()
                .zip(lines)
                .for_each(|(hash, line)| *line = self.line(*hash)),
            _ => hashes
                .iter()
                .zip(lines)
                .for_each(|(hash, line)| *line = self.line(*hash)),
        }
    }

    /// The first place where the flow may be, nearly always the place where it is; a place of nobody if there is none.
    #[inline(always)]
    pub(super) fn guess(self, hash: u64) -> u32 {
        let line = self.line(hash);
        match self.ways_in(line, Index::tag(hash)) {
            0 => NONE,
            ways => line + 1 + ways.trailing_zeros(),
        }
    }

    /// The first place where the flow may be in the bucket of a line.
    #[inline(always)]
    pub(super) fn look(self, line: u32, hash: &u64) -> Option<u32> {
        let [.., tag] = parts(hash);
        match self.ways_in(line, tag) {
            0 => None,
            ways => Some(line + 1 + ways.trailing_zeros()),
        }
    }

    /// The same in a line that is known, for those who compare what is there with what they look for: some place of another flow, or of
    /// nobody, if there is none.
    #[inline(always)]
    pub(super) fn likely(self, line: u32, hash: &u64) -> u32 {
        // What it is when there is none.
        const { assert!(0_u32.trailing_zeros() == NO_WAY) };
        let [.., tag] = parts(hash);
        line + 1 + self.ways_in(line, tag).trailing_zeros()
    }
}

/// The words of a hash, the lowest one first: read apart, so that the tag, which is the last one, comes from memory into all words of a register
/// at once.
#[inline(always)]
pub(super) fn parts(hash: &u64) -> [u16; 4] {
    if cfg!(target_endian = "little") {
        *transmute_ref!(hash)
    } else {
        std::array::from_fn(|word| (hash >> (16 * word)) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::Parts;
    use super::super::record::Reading;
    use super::super::{Addresses, Facts, Key, Observation};
    use super::*;
    use crate::random::Random;

    /// An index of flows that have a number each.
    struct Flows {
        index: Index,
    }

    impl Flows {
        fn new(most: usize, seed: u64) -> Flows {
            Flows {
                index: Index::new(most, Secret::new(&mut Random::new(seed))),
            }
        }

        fn reading(&self, flow: u32) -> Reading {
            let mut parts = Parts {
                kind: super::super::key::Kind::Ip4,
                ..Parts::default()
            };
            // Numbers in a row would fall more evenly on buckets than flows do.
            let mixed = (flow ^ flow >> 16).wrapping_mul(0x85eb_ca6b);
            let mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
            parts.source[12..].copy_from_slice(&(mixed ^ mixed >> 16).to_be_bytes());
            Reading::new(
                &Observation {
                    key: Key::new(&parts),
                    ..Observation::default()
                },
                &self.index.secret,
            )
            .0
        }

        fn insert(&mut self, flow: u32) -> bool {
            let reading = self.reading(flow);
            if self.index.is_dense() {
                self.index.split();
            }
            let Some(place) = self.index.insert(reading.hash) else {
                return false;
            };
            assert!(
                self.index.hot(place).short == Default::default(),
                "somebody is there"
            );
            self.index.begin(
                flow,
                place,
                &reading,
                &Addresses::default(),
                &mut Facts::default,
            );
            self.index.set_due(place, flow as u16);
            true
        }

        fn find(&self, flow: u32) -> Option<u32> {
            let reading = self.reading(flow);
            self.index
                .find(reading.hash, |place| self.index.is_of(place, &reading))
                .0
        }

        fn remove(&mut self, flow: u32) {
            let place = self.find(flow).unwrap();
            self.index.remove(self.reading(flow).hash, place);
            self.index.clear(place);
        }
    }

    /// It grows with its flows, finds all of them at any moment, and keeps their ticks; what leaves is gone.
    #[test]
    fn it_grows_a_bucket_at_a_time() {
        const MOST: u32 = 50_000;
        let mut flows = Flows::new(MOST as usize, 9);
        let mut most_spare = 0;
        for flow in 0..MOST {
            assert!(flows.insert(flow));
            let count = flows.index.extent.count();
            // All of the first ones, of twice as many and so on; and those that are being split.
            let mut whole = FIRST;
            while flow as usize >= whole * (FLOWS + FLOWS_A_SPLIT) {
                whole *= 2;
            }
            let more =
                (flow as usize + FLOWS_A_SPLIT).saturating_sub(whole * FLOWS) / FLOWS_A_SPLIT;
            assert_eq!(count, (whole + more).min(flows.index.main), "{flow}");
            most_spare = most_spare.max(flows.index.spare_used());
            for earlier in [0, flow / 3, flow / 2, flow] {
                let place = flows
                    .find(earlier)
                    .unwrap_or_else(|| panic!("{earlier} of {flow}"));
                assert_eq!(flows.index.due(place), earlier as u16);
            }
        }
        assert!(
            most_spare < flows.index.main / 11,
            "{most_spare} of {}",
            flows.index.main
        );
        // A place is a line behind its bucket's, and never that line.
        let place_of = |flow: u32| flows.find(flow).unwrap();
        assert!(
            (0..MOST).all(|flow| way_of(place_of(flow)) < WAYS
                && !(place_of(flow) as usize).is_multiple_of(UNIT))
        );
        let guessed = (0..MOST)
            .filter(|flow| {
                flows.find(*flow) == Some(flows.index.view().guess(flows.reading(*flow).hash))
            })
            .count();
        assert!(guessed > MOST as usize * 97 / 100, "{guessed}");
        // Who compares afterwards is led to the same places, and to no bucket by flows that are not there.
        for flow in 0..2 * MOST {
            let (view, hash) = (flows.index.view(), flows.reading(flow).hash);
            let (likely, guess) = (view.likely(view.line(hash), &hash), view.guess(hash));
            assert!(
                if guess == NONE {
                    !(likely as usize).is_multiple_of(UNIT)
                } else {
                    likely == guess
                },
                "{flow}"
            );
        }
        // Who asks early finds the same, too; of flows that are not there, where they would be put, which is in their own bucket.
        let (mut elsewhere, mut put, mut chosen) = (0, 0, 0);
        for flow in 0..2 * MOST {
            let (view, hash) = (flows.index.view(), flows.reading(flow).hash);
            let line = view.line(hash);
            let (seen, there) = (view.look(line, &hash), flows.find(flow));
            assert_eq!(
                seen,
                Some(view.guess(hash)).filter(|place| *place != NONE),
                "{flow}"
            );
            if seen.is_none() {
                let guess = flows.index.guess_elsewhere(line, hash, 0, false, 4);
                elsewhere += usize::from(there.is_some_and(|place| place == guess));
                if there.is_none() && bucket_of(guess) == flows.index.home(hash) {
                    put += 1;
                    assert!(
                        flows.index.hot(guess).short == Default::default(),
                        "{flow} would drive somebody out of a table with room"
                    );
                }
                let victim = flows.index.guess_elsewhere(line, hash, 0, true, 4);
                if let Some(due) = flows.index.due_of_other(victim, hash) {
                    chosen += 1;
                    assert_eq!(
                        (flows.index.soonest(flows.index.home(hash), 0), due),
                        (Some(victim), flows.index.due(victim))
                    );
                    assert!(there.is_none() && flows.index.count_of(flows.index.home(hash)) >= 4);
                }
            }
        }
        let enough = elsewhere > 100 && put.min(chosen) > MOST as usize / 2;
        assert!(
            enough,
            "{elsewhere} in spare buckets, {put} that would be put in their own, {chosen} for whom somebody would leave"
        );
        // Who looks at all buckets finds every flow once.
        let (mut at, mut seen) = (0, 0);
        loop {
            seen += flows.index.flows_of(at, 0).count();
            at = flows.index.next_bucket(at);
            if at == 0 {
                break;
            }
        }
        assert_eq!((seen, flows.index.flows()), (MOST as usize, MOST as usize));
        for flow in (0..MOST)
            .filter(|flow| flow % 3 != 0)
            .chain((0..MOST).step_by(3))
        {
            flows.remove(flow);
            assert_eq!(flows.find(flow), None);
        }
        assert_eq!((flows.index.spare_used(), flows.index.flows()), (0, 0));
    }

    /// All flows in one bucket, which no hash does: none is lost as long as there are spare ones, and all are free again afterwards.
    #[test]
    fn a_full_bucket_goes_on() {
        let mut index = Index::new(1000, Secret::new(&mut Random::new(1)));
        let hash = |flow: u64| flow << 52 | TAGGED;
        let spares = index.spare_used() + index.free_spare.len();
        let most = (spares + 1) * WAYS;
        let mut places: Vec<u32> = (0..most as u64)
            .map(|flow| index.insert(hash(flow)).unwrap())
            .collect();
        assert_eq!((index.spare_used(), index.insert(hash(1))), (spares, None));
        for (flow, place) in places.iter().enumerate() {
            assert_eq!(
                index.find(hash(flow as u64), |other| other == *place).0,
                Some(*place)
            );
            index.set_due(*place, flow as u16 + 100);
        }
        assert_eq!(index.soonest(index.home(hash(0)), 0), Some(places[0]));
        // From the middle, then all.
        let middle: Vec<u32> = places.drain(300..700).collect();
        middle
            .iter()
            .for_each(|place| index.remove(hash(0), *place));
        assert!(index.spare_used() < spares && index.flows() == places.len());
        assert!(places.iter().all(
            |place| index.find(hash(0) | 0xfff << 52, |_| false).0.is_none()
                && index.due(*place) >= 100
        ));
        assert_eq!(index.soonest(index.home(hash(0)), 400), Some(places[0]));
        places
            .iter()
            .for_each(|place| index.remove(hash(0), *place));
        assert_eq!(
            (
                index.spare_used(),
                index.find(hash(1), |_| true).0,
                index.flows()
            ),
            (0, None, 0)
        );
    }
}
