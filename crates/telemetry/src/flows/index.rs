//! From a hash to the places where the flow may be.
//!
//! A bucket is one cache line: eight tags of 16 bits and the places of eight records. A bucket that is full goes on
//! in a spare one. There are so many buckets that this is rare, and so many spare ones that they cannot run out: all
//! buckets of a chain but the last are full, so that `n` flows need at most `n / 8` spare ones.

use weir_cpu::{prefer_hugepages, prefetch};

/// Flows of a bucket.
const WAYS: usize = 8;
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

impl Bucket {
    /// The first way that has this tag; 8 if none has. Four tags at a time in a word: where a tag is alike, its 16 bits
    /// become zero, and subtracting one from them borrows into the highest. Of what this finds the lowest is certain.
    #[inline(always)]
    fn first(&self, tag: u16) -> usize {
        const ONES: u64 = 0x0001_0001_0001_0001;
        let [a, b, c, d, e, f, g, h] = self.tags;
        let zero = |tags: [u16; 4]| {
            let [a, b, c, d] = tags;
            let word = u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48;
            let differs = word ^ (u64::from(tag) * ONES);
            differs.wrapping_sub(ONES) & !differs & (ONES << 15)
        };
        let (low, high) = (zero([a, b, c, d]), zero([e, f, g, h]));
        let (bits, from) = if low != 0 { (low, 0) } else { (high, 4) };
        from + (bits.trailing_zeros() / 16) as usize
    }

    /// A bit for each way that has this tag.
    #[inline(always)]
    fn matches(&self, tag: u16) -> u32 {
        let mut found = 0_u16;
        for (way, other) in self.tags.iter().enumerate() {
            found |= if *other == tag { 1 << way } else { 0 };
        }
        found.into()
    }
}

/// The index.
#[derive(Debug)]
pub(super) struct Index {
    buckets: Box<[Bucket]>,
    spare: Box<[Bucket]>,
    free_spare: Vec<u32>,
    mask: u64,
}

impl Index {
    /// For so many flows.
    pub(super) fn new(flows: usize) -> Index {
        // Two to five to a bucket on average, so that few are full.
        let count = (flows * 2 / 9).next_power_of_two().max(16);
        let spares = flows / WAYS + 1;
        let buckets = vec![EMPTY; count].into_boxed_slice();
        let spare = vec![EMPTY; spares].into_boxed_slice();
        prefer_hugepages(&buckets, true);
        let free_spare = (0..spares as u32).rev().collect();
        Index { buckets, spare, free_spare, mask: count as u64 - 1 }
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        (hash & self.mask) as usize
    }

    /// Bits that the bucket does not depend on; never 0.
    #[inline(always)]
    fn tag(hash: u64) -> u16 {
        ((hash >> 48) as u16).max(1)
    }

    #[inline(always)]
    pub(super) fn fetch(&self, hash: u64) {
        prefetch(&self.buckets[self.home(hash)]);
    }

    /// The first place where the flow may be; nearly always the place where it is.
    #[inline(always)]
    pub(super) fn guess(&self, hash: u64) -> u32 {
        let bucket = &self.buckets[self.home(hash)];
        match bucket.places.get(bucket.first(Index::tag(hash))) {
            Some(place) => *place,
            None => NONE,
        }
    }

    /// The place for which `is_it` holds, and the buckets that were looked at.
    #[inline(never)]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> (Option<u32>, u32) {
        let (tag, mut bucket, mut probes) = (Index::tag(hash), &self.buckets[self.home(hash)], 1);
        loop {
            let mut found = bucket.matches(tag);
            while found != 0 {
                let place = bucket.places[found.trailing_zeros() as usize];
                if is_it(place) {
                    return (Some(place), probes);
                }
                found &= found - 1;
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
        let (home, mut at) = (self.home(hash), NONE);
        loop {
            let bucket = self.bucket(home, at);
            if let Some(way) = bucket.tags.iter().position(|tag| *tag == 0) {
                bucket.tags[way] = Index::tag(hash);
                bucket.places[way] = place;
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
        bucket.tags[0] = Index::tag(hash);
        bucket.places[0] = place;
        true
    }

    /// Takes a flow out. One from the chain's end fills its way, so that only the last bucket of a chain has empty
    /// ways, and a spare one that became empty is free again.
    pub(super) fn remove(&mut self, hash: u64, place: u32) {
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

    /// All flows in one bucket, which no hash does: none is lost, and everything is free again afterwards.
    #[test]
    fn a_full_bucket_goes_on() {
        let mut index = Index::new(1000);
        let hash = |flow: u64| flow << 40 | 5;
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
