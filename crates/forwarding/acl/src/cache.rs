//! What was answered lately, per worker: most packets of a flow find their rule in one cache line.
//!
//! A list is a function of the key alone, so that an answer stays right for as long as the list lives.
//! Sets of some answers lie in a cache line each (two for IPv6); the key is kept whole and compared
//! whole, with the list's number in it, so that one cache serves many lists and a list that was
//! replaced is forgotten without being looked for. It is kept as it is hashed, under seeds: what was laid over the
//! key for the one need not be taken off for the other. What is kept with a key is what the list's owner makes of the
//! rule ([`Acl::with_answers`](crate::Acl::with_answers)), so that nothing else need be read. Where keys fall is stirred
//! with a seed: who does not know it cannot aim at one set. A flood of keys never seen costs a miss and a search each, no more.
//!
//! A full set puts what comes next into one of its three neighbours while they have room, and remembers that it did:
//! of 64k flows in as many sets one in forty lies there, and hardly one finds no room.
//!
//! One cache has one owner; nothing here is shared.

use weir_cpu::LargePages;

use crate::acl::{Answer, Identity, NO_RULE};
use crate::family::Family;
use crate::key::{Key6, Words};
use crate::table::CHUNK;

/// Misses of a full set until one of its answers is forgotten.
const SELDOM: u8 = 8;
/// Of the state of a set: some answer that belongs there was put beside. The bits below count misses.
const SPILLED: u8 = 0x80;
/// Where in a key's hash its tags begin, one for each way of a set; the bits below say where its set is.
const TAGS: u32 = 32;
/// Sets that help each other out, which lie side by side.
const NEIGHBORS: usize = 4;
/// Answers that a cache remembers at most.
const MOST: usize = 1 << 24;

/// A key as words of 64 bits, some of which are left for a list's number, of 21 bits.
pub(crate) trait Packed<const W: usize>: Words + Default {
    /// The bits that are a list's number.
    const LIST: [u64; W];
    /// The words.
    fn packed(&self) -> [u64; W];
    /// A list's number in its place.
    fn list(number: u32) -> [u64; W];
}

/// Words laid over each other.
#[inline(always)]
fn over<const W: usize>(words: [u64; W], others: [u64; W]) -> [u64; W] {
    std::array::from_fn(|word| words[word] ^ others[word])
}

/// A multiplication that stirs two words into one.
#[inline(always)]
pub(crate) fn stir(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// What tells the place of a key that lies under seeds, and its tags.
#[inline(always)]
fn hash<const W: usize>(key: &[u64; W]) -> u64 {
    let (pairs, odd) = key.as_chunks::<2>();
    let sum = pairs.iter().fold(0, |sum, [a, b]| sum ^ stir(sum ^ a, *b));
    odd.iter()
        .fold(sum, |sum, word| stir(sum ^ word, 0xa076_1d64_78bd_642f))
}

/// Answers that share their cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Set<const W: usize, const WAYS: usize> {
    keys: [[u64; W]; WAYS],
    answers: [Answer; WAYS],
    /// A byte of each key's hash, another byte for each way, from below; in the uppermost the set's state.
    tags: u32,
}

impl<const W: usize, const WAYS: usize> Set<W, WAYS> {
    /// Without answers: what lies there has list 0, which no list is.
    const fn empty(seeds: [u64; W]) -> Self {
        Set {
            keys: [seeds; WAYS],
            answers: [0; WAYS],
            tags: 0,
        }
    }

    /// One in the byte of each tag.
    const ONES: u32 = 0x01_01_01 >> (8 * (3 - WAYS));

    /// The way of the first key with the tags of this hash, if there is one. All tags are compared at once: which of the ways it is no
    /// processor could foresee, and a wrong guess would cost more than the rest of it.
    #[inline(always)]
    fn way(&self, hash: u64) -> Option<usize> {
        let differs = self.tags ^ (hash >> TAGS) as u32;
        // The lowest byte that is 0 gets its upper bit set, none below it does.
        let same = differs.wrapping_sub(Self::ONES) & !differs & (Self::ONES << 7);
        Some(same.trailing_zeros() as usize / 8).filter(|way| *way < WAYS)
    }

    #[inline(always)]
    fn is_spilled(&self) -> bool {
        self.tags >> 24 & u32::from(SPILLED) != 0
    }

    /// The answer for a key, whatever the tags are.
    fn search(&self, key: &[u64; W]) -> Option<Answer> {
        let way = self.keys.iter().position(|kept| kept == key)?;
        self.answers.get(way).copied()
    }

    fn state(&self) -> u8 {
        self.tags.to_le_bytes()[3]
    }

    fn set_state(&mut self, state: u8) {
        let [a, b, c, _] = self.tags.to_le_bytes();
        self.tags = u32::from_le_bytes([a, b, c, state]);
    }

    /// Whether an answer could be kept without another being forgotten.
    fn has_room(&self, seeds: &[u64; W]) -> bool {
        self.keys.contains(seeds)
    }

    /// Keeps an answer: where there is room; else seldom. Of five flows that share a set for three, three
    /// shall be found and two missed, rather than each put out the next. Answers of other lists, which
    /// may be dead, make room more readily.
    fn keep<K: Packed<W>>(&mut self, hash: u64, key: &[u64; W], answer: Answer, seeds: &[u64; W]) {
        let turn = self.state().wrapping_add(1) & !SPILLED;
        self.set_state(self.state() & SPILLED | turn);
        let free = self.keys.iter().position(|kept| kept == seeds);
        // What lies over both keys goes when they are laid over each other.
        let is_foreign = |kept: &[u64; W]| {
            kept.iter()
                .zip(key)
                .zip(K::LIST)
                .any(|((kept, key), list)| (kept ^ key) & list != 0)
        };
        let foreign = || {
            self.keys
                .iter()
                .position(is_foreign)
                .filter(|_| turn.is_multiple_of(2))
        };
        let any = || {
            turn.is_multiple_of(SELDOM)
                .then_some((turn / SELDOM) as usize % WAYS)
        };
        if let Some(way) = free.or_else(foreign).or_else(any) {
            (self.keys[way], self.answers[way]) = (*key, answer);
            let byte = 0xff << (8 * way);
            self.tags = self.tags & !byte | (hash >> TAGS) as u32 & byte;
        }
    }
}

/// A cache of keys of `W` words, `WAYS` in a set.
pub(crate) struct Cache<const W: usize, const WAYS: usize> {
    sets: LargePages<Set<W, WAYS>>,
    /// What lies over keys.
    seeds: [u64; W],
    epoch: u32,
}

impl<const W: usize, const WAYS: usize> Cache<W, WAYS> {
    fn new(flows: usize, seed: u64) -> Self {
        const { assert!(WAYS <= 3, "a byte for each tag, and one for the state") };
        // Twice the room, so that few sets are overfull.
        let sets = (flows.clamp(1, MOST) * 2)
            .div_ceil(WAYS)
            .next_power_of_two();
        let mut state = seed;
        let seeds = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            stir(state, state ^ 0xe703_7ed1_a0b4_28db)
        });
        Cache {
            sets: LargePages::filled(Set::empty(seeds), sets),
            seeds,
            epoch: 0,
        }
    }

    /// Forgets everything when lists' numbers have begun anew since.
    fn renew(&mut self, identity: Identity) {
        if self.epoch != identity.epoch {
            self.sets.fill(Set::empty(self.seeds));
            self.epoch = identity.epoch;
        }
    }

    /// What lies over the keys of a list.
    #[inline(always)]
    fn cover<K: Packed<W>>(&self, identity: Identity) -> [u64; W] {
        over(K::list(identity.number), self.seeds)
    }

    /// Answers a chunk of keys, and searches for those that are not known with `search`.
    #[inline(always)]
    pub(crate) fn answer<F: Family<Key: Packed<W>>>(
        &mut self,
        identity: Identity,
        keys: &[F::Key],
        answers: &mut [Answer],
        search: impl Fn(&[F::Key], &mut [Answer]),
    ) {
        self.renew(identity);
        let cover = self.cover::<F::Key>(identity);
        let packed = |key: &F::Key| over(key.packed(), cover);
        let mut hashes = [0; CHUNK];
        for (found, key) in hashes.iter_mut().zip(keys) {
            *found = hash(&packed(key));
            fetch(&self.sets, *found);
        }
        let mut unknown = [0u8; CHUNK];
        let mut misses = 0;
        for (who, ((key, hash), answer)) in
            keys.iter().zip(&hashes).zip(answers.iter_mut()).enumerate()
        {
            let found = find(&self.sets, *hash, packed(key));
            *answer = found.unwrap_or(NO_RULE);
            unknown[misses % CHUNK] = who as u8;
            misses += usize::from(found.is_none());
        }
        if misses > 0 {
            self.learn::<F>(
                unknown.get(..misses).unwrap_or_default(),
                keys,
                &hashes,
                cover,
                answers,
                search,
            );
        }
    }

    /// Searches for what is not known, and keeps it.
    #[inline(never)]
    fn learn<F: Family<Key: Packed<W>>>(
        &mut self,
        unknown: &[u8],
        keys: &[F::Key],
        hashes: &[u64; CHUNK],
        cover: [u64; W],
        answers: &mut [Answer],
        search: impl Fn(&[F::Key], &mut [Answer]),
    ) {
        let mut asked = [F::Key::default(); CHUNK];
        let mut found = [NO_RULE; CHUNK];
        let askers = unknown.iter().filter_map(|who| keys.get(usize::from(*who)));
        asked
            .iter_mut()
            .zip(askers)
            .for_each(|(to, from)| *to = *from);
        if let (Some(asked), Some(found)) =
            (asked.get(..unknown.len()), found.get_mut(..unknown.len()))
        {
            search(asked, found);
        }
        for ((who, key), answer) in unknown.iter().zip(&asked).zip(found) {
            let who = usize::from(*who);
            if let Some(place) = answers.get_mut(who) {
                *place = answer;
            }
            self.keep::<F::Key>(hashes[who % CHUNK], &over(key.packed(), cover), answer);
        }
    }

    /// Keeps an answer in its set, or in one beside while only that has room.
    fn keep<K: Packed<W>>(&mut self, hash: u64, key: &[u64; W], answer: Answer) {
        let place = place(&self.sets, hash);
        let free = |beside: &usize| {
            self.sets
                .get(place ^ beside)
                .is_some_and(|set| set.has_room(&self.seeds))
        };
        let beside = (0..NEIGHBORS).find(free).unwrap_or(0);
        if let Some(home) = self.sets.get_mut(place).filter(|_| beside != 0) {
            home.set_state(home.state() | SPILLED);
        }
        if let Some(set) = self.sets.get_mut(place ^ beside) {
            set.keep::<K>(hash, key, answer, &self.seeds);
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.sets)
    }
}

/// The place of a hash's set; there are never more sets than the bits tell apart.
#[inline(always)]
fn place<S>(sets: &[S], hash: u64) -> usize {
    hash as usize & sets.len().wrapping_sub(1)
}

/// Asks the processor's cache for a hash's set.
#[inline(always)]
fn fetch<S>(sets: &[S], hash: u64) {
    weir_cpu::prefetch_address(sets.as_ptr().wrapping_add(place(sets, hash)).cast());
}

/// The answer for a key with this hash: mostly it is the first with its tag, or there is none.
#[inline(always)]
fn find<const W: usize, const WAYS: usize>(
    sets: &[Set<W, WAYS>],
    hash: u64,
    key: [u64; W],
) -> Option<Answer> {
    let set = sets.get(place(sets, hash))?;
    match set.way(hash) {
        Some(way) if set.keys.get(way)? == &key => set.answers.get(way).copied(),
        None if !set.is_spilled() => None,
        _ => find_elsewhere(sets, hash, key),
    }
}

/// The same behind another key of its tag, or where a full set has put it: into one of those beside.
#[inline(never)]
fn find_elsewhere<const W: usize, const WAYS: usize>(
    sets: &[Set<W, WAYS>],
    hash: u64,
    key: [u64; W],
) -> Option<Answer> {
    let home = place(sets, hash);
    let sets_of_it = if sets.get(home)?.is_spilled() {
        NEIGHBORS
    } else {
        1
    };
    (0..sets_of_it).find_map(|beside| sets.get(home ^ beside)?.search(&key))
}

/// A key's hash, by which its answer is found: what the first step of [`Asker6`] leaves for the second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked6(u64);

/// A cache asked about one list in two steps, as [`crate::Asker4`], for IPv6. Keys are compared whole.
#[derive(Clone, Copy)]
pub struct Asker6<'a> {
    sets: &'a [Set<5, 2>],
    /// The list's number and the seeds.
    cover: [u64; 5],
}

impl Asker6<'_> {
    /// The first step: prefetches where the answer would be.
    #[inline(always)]
    #[must_use]
    pub fn ask(&self, key: &Key6) -> Asked6 {
        let hash = hash(&over(key.packed(), self.cover));
        let set = self.sets.as_ptr().wrapping_add(place(self.sets, hash));
        weir_cpu::prefetch_address(set.cast());
        weir_cpu::prefetch_address(set.cast::<u8>().wrapping_add(64).cast());
        Asked6(hash)
    }

    /// The second step: the answer, if the key was met lately.
    #[inline(always)]
    #[must_use]
    pub fn known(&self, key: &Key6, asked: Asked6) -> Option<Answer> {
        find(self.sets, asked.0, over(key.packed(), self.cover))
    }
}

impl std::fmt::Debug for Asker6<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker6").finish_non_exhaustive()
    }
}

/// What a worker was answered lately about IPv4 packets.
pub struct Cache4(pub(crate) Cache<2, 3>);

impl Cache4 {
    /// A cache for about so many flows, up to 16 million; some 43 to 86 bytes each. The seed should be drawn at random.
    #[must_use]
    pub fn new(flows: usize, seed: u64) -> Cache4 {
        Cache4(Cache::new(flows, seed))
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// What a worker was answered lately about IPv6 packets.
pub struct Cache6(pub(crate) Cache<5, 2>);

impl Cache6 {
    /// A cache for about so many flows, up to 16 million; 128 to 256 bytes each. The seed should be drawn at random.
    #[must_use]
    pub fn new(flows: usize, seed: u64) -> Cache6 {
        Cache6(Cache::new(flows, seed))
    }

    /// For the packets of a vector: asks only for what was answered lately.
    pub(crate) fn asker(&mut self, identity: Identity) -> Asker6<'_> {
        self.0.renew(identity);
        Asker6 {
            cover: self.0.cover::<Key6>(identity),
            sets: &self.0.sets,
        }
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
