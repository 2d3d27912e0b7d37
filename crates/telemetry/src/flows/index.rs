//! From a hash to the places where the flow may be.
//!
//! A bucket is one cache line: eight tags of 16 bits and the places of eight records. A bucket that is full goes on
//! in a spare one. There are so many buckets that this is rare, and so many spare ones that they cannot run out: all
//! buckets of a chain but the last are full, so that `n` flows need at most `n / 8` spare ones.
//!
//! **It is as large as its flows need**, so that few flows lie in few lines: linear hashing (Litwin 1980). Four flows
//! to a bucket on average; with every fourth flow that is more than ever before, one bucket is split in two. Which of the two
//! a flow belongs to is told by a bit of its tag, so that a split reads nothing but the bucket.

use weir_cpu::{equal, first_equal, prefer_hugepages, prefetch_address};

/// Flows of a bucket.
const WAYS: usize = 8;
/// Flows to a bucket on average, once there are more than the first buckets hold.
const FLOWS: usize = 4;
/// Buckets at the start, a power of two.
const FIRST: usize = 1 << (TAG_AT - HOME_AT);
/// The bits of a hash from here on are the bucket's number; from there on they are the tag, too.
const HOME_AT: u32 = 38;
const TAG_AT: u32 = 48;
/// The highest bit is set in every hash, so that no tag is 0.
pub(super) const TAGGED: u64 = 1 << 63;
/// No place, no bucket.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bucket {
    /// 0: empty.
    tags: [u16; WAYS],
    places: [u32; WAYS],
    /// The spare bucket behind this one.
    next: u32,
}

const _: () = assert!(size_of::<Bucket>() == 64);
const EMPTY: Bucket = Bucket { tags: [0; WAYS], places: [NONE; WAYS], next: NONE };

/// How many buckets there are: `mask + 1`, and those that were split so far besides.
#[derive(Clone, Copy, Debug)]
struct Extent {
    mask: u64,
    split: u64,
}

impl Extent {
    /// The number of a hash's bucket.
    #[inline(always)]
    fn home(self, hash: u64) -> usize {
        let bits = hash >> HOME_AT;
        let home = bits & self.mask;
        let home = if home < self.split { bits & (self.mask << 1 | 1) } else { home };
        home as usize
    }
}

/// The index.
#[derive(Debug)]
pub(super) struct Index {
    buckets: Box<[Bucket]>,
    spare: Box<[Bucket]>,
    free_spare: Vec<u32>,
    extent: Extent,
    flows: usize,
}

impl Index {
    /// For at most so many flows.
    pub(super) fn new(flows: usize) -> Index {
        let (count, spares) = ((flows / FLOWS + 1).max(FIRST), flows / WAYS + 1);
        let buckets = vec![EMPTY; count].into_boxed_slice();
        let spare = vec![EMPTY; spares].into_boxed_slice();
        prefer_hugepages(&buckets, true);
        let free_spare = (0..spares as u32).rev().collect();
        Index { buckets, spare, free_spare, extent: Extent { mask: FIRST as u64 - 1, split: 0 }, flows: 0 }
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        self.extent.home(hash)
    }

    #[inline(always)]
    fn tag(hash: u64) -> u16 {
        debug_assert!(hash & TAGGED != 0);
        (hash >> TAG_AT) as u16
    }

    /// Asks for the bucket.
    #[inline(always)]
    pub(super) fn fetch(&self, hash: u64) {
        prefetch_address(self.buckets.as_ptr().wrapping_add(self.home(hash)).cast());
    }

    /// The first place where the flow may be; nearly always the place where it is.
    #[inline(always)]
    pub(super) fn guess(&self, hash: u64) -> u32 {
        let bucket = &self.buckets[self.home(hash)];
        match bucket.places.get(first_equal(&bucket.tags, Index::tag(hash))) {
            Some(place) => *place,
            None => NONE,
        }
    }

    /// The place for which `is_it` holds, and the buckets that were looked at.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> (Option<u32>, u32) {
        let (tag, mut bucket, mut probes) = (Index::tag(hash), &self.buckets[self.home(hash)], 1);
        loop {
            let mut found = equal(&bucket.tags, tag);
            while found != 0 {
                let way = found.trailing_zeros();
                let place = bucket.places[way as usize / 2];
                if is_it(place) {
                    return (Some(place), probes);
                }
                found &= !(3 << way);
            }
            match self.spare.get(bucket.next as usize) {
                Some(next) => bucket = next,
                None => return (None, probes),
            }
            probes += 1;
        }
    }

    fn bucket(&mut self, home: usize, spare: u32) -> &mut Bucket {
        if spare == NONE { &mut self.buckets[home] } else { &mut self.spare[spare as usize] }
    }

    /// Puts a flow in; `false` if there is no spare bucket, which cannot be with as many flows as it was made for.
    pub(super) fn insert(&mut self, hash: u64, place: u32) -> bool {
        self.flows += 1;
        let count = self.extent.mask + 1 + self.extent.split;
        if self.flows > count as usize * FLOWS && (count as usize) < self.buckets.len() {
            self.split();
        }
        self.put(self.home(hash), Index::tag(hash), place)
    }

    /// Into a bucket, or the first of its spare ones that has room.
    fn put(&mut self, home: usize, tag: u16, place: u32) -> bool {
        let mut at = NONE;
        loop {
            let bucket = self.bucket(home, at);
            let way = first_equal(&bucket.tags, 0);
            if way < WAYS {
                (bucket.tags[way], bucket.places[way]) = (tag, place);
                return true;
            }
            if bucket.next == NONE {
                break;
            }
            at = bucket.next;
        }
        let Some(next) = self.free_spare.pop() else { return false };
        self.bucket(home, at).next = next;
        let bucket = self.bucket(home, next);
        *bucket = EMPTY;
        (bucket.tags[0], bucket.places[0]) = (tag, place);
        true
    }

    /// One more bucket: the next one that was not split yet gives it the flows whose bit is set that now counts.
    #[inline(never)]
    fn split(&mut self) {
        let Extent { mask, split } = self.extent;
        let (low, high) = (split as usize, (split + mask + 1) as usize);
        let bit = (mask + 1) >> (TAG_AT - HOME_AT);
        self.extent = if split == mask { Extent { mask: mask << 1 | 1, split: 0 } } else { Extent { mask, split: split + 1 } };
        // The chain is taken apart, bucket by bucket.
        let mut old = std::mem::replace(&mut self.buckets[low], EMPTY);
        loop {
            for (tag, place) in old.tags.into_iter().zip(old.places).filter(|(tag, _)| *tag != 0) {
                let home = if u64::from(tag) & bit == 0 { low } else { high };
                let fits = self.put(home, tag, place);
                debug_assert!(fits, "as many spare buckets as before are enough for the same flows in more buckets");
            }
            let Some(next) = self.spare.get(old.next as usize) else { return };
            self.free_spare.push(old.next);
            old = *next;
        }
    }

    /// Takes a flow out. One from the chain's end fills its way, so that only the last bucket of a chain has empty
    /// ways, and a spare one that became empty is free again.
    pub(super) fn remove(&mut self, hash: u64, place: u32) {
        self.flows = self.flows.saturating_sub(1);
        let (home, mut before, mut at, mut hole) = (self.home(hash), NONE, NONE, None);
        let bucket = &mut self.buckets[home];
        if bucket.next == NONE {
            // Nearly always.
            let way = (0..WAYS).find(|way| bucket.places[*way] == place);
            debug_assert!(way.is_some(), "a flow that is not in the index");
            if let Some(way) = way {
                (bucket.tags[way], bucket.places[way]) = (0, NONE);
            }
            return;
        }
        loop {
            let bucket = self.bucket(home, at);
            if hole.is_none()
                && let Some(way) = (0..WAYS).find(|way| bucket.tags[*way] != 0 && bucket.places[*way] == place)
            {
                hole = Some((at, way));
            }
            if bucket.next == NONE {
                break;
            }
            (before, at) = (at, bucket.next);
        }
        let Some((holed, way)) = hole else {
            debug_assert!(false, "a flow that is not in the index");
            return;
        };
        let last = self.bucket(home, at);
        // The tail is never empty; the flow itself is in it when it is the only bucket.
        let from = last.tags.iter().rposition(|tag| *tag != 0).unwrap_or(way);
        let (tag, moved) = (last.tags[from], last.places[from]);
        (last.tags[from], last.places[from]) = (0, NONE);
        let emptied = last.tags == [0; WAYS];
        if (holed, way) != (at, from) {
            let bucket = self.bucket(home, holed);
            (bucket.tags[way], bucket.places[way]) = (tag, moved);
        }
        if emptied && at != NONE {
            self.bucket(home, before).next = NONE;
            self.free_spare.push(at);
        }
    }

    /// Spare buckets in use.
    pub(super) fn spare_used(&self) -> usize {
        self.spare.len() - self.free_spare.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It grows with its flows, and finds all of them at any moment; what leaves is gone.
    #[test]
    fn it_grows_a_bucket_at_a_time() {
        const MOST: usize = 50_000;
        let (mut index, mut random) = (Index::new(MOST), crate::random::Random::new(9));
        let hashes: Vec<u64> = (0..MOST).map(|_| random.bits() | TAGGED).collect();
        for (flow, hash) in hashes.iter().enumerate() {
            assert!(index.insert(*hash, flow as u32));
            let count = index.extent.mask + 1 + index.extent.split;
            assert_eq!(count as usize, FIRST.max((flow + 1).div_ceil(FLOWS)).min(index.buckets.len()), "{flow}");
            for earlier in [0, flow / 3, flow / 2, flow] {
                assert_eq!(index.find(hashes[earlier], |place| place as usize == earlier).0, Some(earlier as u32), "{earlier} of {flow}");
            }
        }
        // A thirtieth of buckets with four on average is full, more of those whose turn to be split comes last.
        assert!(index.spare_used() < MOST / FLOWS / 8, "{}", index.spare_used());
        let guessed = hashes.iter().enumerate().filter(|(flow, hash)| index.guess(**hash) == *flow as u32).count();
        assert!(guessed > MOST * 9 / 10, "{guessed}");
        for (flow, hash) in hashes.iter().enumerate() {
            index.remove(*hash, flow as u32);
            assert_eq!(index.find(*hash, |place| place as usize == flow).0, None);
        }
        assert_eq!(index.spare_used(), 0);
    }

    /// All flows in one bucket, which no hash does: none is lost, and everything is free again afterwards.
    #[test]
    fn a_full_bucket_goes_on() {
        let mut index = Index::new(1000);
        let hash = |flow: u64| flow << 52 | TAGGED | 5;
        assert!((0..1000).all(|flow| index.insert(hash(flow), flow as u32)));
        assert_eq!(index.spare_used(), 124);
        for flow in 0..1000 {
            assert_eq!(index.find(hash(flow), |place| u64::from(place) == flow).0, Some(flow as u32));
        }
        // From the middle, then all.
        (300..700).for_each(|flow| index.remove(hash(flow), flow as u32));
        assert!((0..1000).all(|flow| index.find(hash(flow), |place| u64::from(place) == flow).0.is_some() != (300..700).contains(&flow)));
        (0..300).chain(700..1000).for_each(|flow| index.remove(hash(flow), flow as u32));
        assert_eq!((index.spare_used(), index.find(hash(1), |_| true).0), (0, None));
    }
}
