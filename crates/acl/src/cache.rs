//! What was answered lately, per worker: most packets of a flow find their rule in one cache line.
//!
//! A list is a function of the key alone, so that an answer stays right for as long as the list lives.
//! Sets of some answers lie in a cache line each (two for IPv6); the key is kept whole and compared
//! whole, with the list's number in it, so that one cache serves many lists and a list that was
//! replaced is forgotten without being looked for. What is kept with a key is what the list's owner makes of the
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
use crate::key::{Wire4, Words};
use crate::table::CHUNK;

/// Bits of the protocol's word that are left for the list's number, and where they begin.
const TAG_SHIFT: u32 = 10;
/// Misses of a full set until one of its answers is forgotten.
const SELDOM: u8 = 8;
/// Of the state of a set: some answer that belongs there was put beside. The bits below count misses.
const SPILLED: u8 = 0x80;
/// Bits of a key's hash that are its tag; those below say where its set is.
const PLACE_BITS: u32 = 24;
/// Sets that help each other out, which lie side by side.
const NEIGHBORS: usize = 4;
/// Answers that a cache remembers at most.
const MOST: usize = 1 << 24;

/// A key as words of 64 bits, the protocol in the upper half of the last, where a list's number fits above it.
pub(crate) trait Packed<const W: usize>: Words + Default {
    /// The words.
    fn packed(&self) -> [u64; W];
}

/// Puts a list's number where no key has bits.
const fn tag(identity: Identity) -> u64 {
    (identity.number as u64) << (32 + TAG_SHIFT)
}

/// A multiplication that stirs two words into one.
#[inline(always)]
fn stir(seed: u64, [a, b]: [u64; 2]) -> u64 {
    let product = u128::from(a ^ seed) * u128::from(b ^ 0xa076_1d64_78bd_642f);
    (product >> 64) as u64 ^ product as u64
}

/// Answers that share their cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Set<const W: usize, const WAYS: usize> {
    keys: [[u64; W]; WAYS],
    answers: [Answer; WAYS],
    /// Of each key, in bytes from below; in the uppermost the set's state.
    tags: u32,
}

impl<const W: usize, const WAYS: usize> Set<W, WAYS> {
    const EMPTY: Self = Set { keys: [[0; W]; WAYS], answers: [0; WAYS], tags: 0 };
    /// One in the byte of each tag.
    const ONES: u32 = 0x01_01_01 >> (8 * (3 - WAYS));

    /// The way of the first key with this tag, if there is one. All tags are compared at once: which of the ways it is no
    /// processor could foresee, and a wrong guess would cost more than the rest of it.
    #[inline(always)]
    fn way(&self, tag: u32) -> Option<usize> {
        let differs = self.tags ^ (tag * Self::ONES);
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
    fn has_room(&self) -> bool {
        self.keys.iter().any(|kept| kept[W - 1] >> (32 + TAG_SHIFT) == 0)
    }

    /// Keeps an answer: where there is room; else seldom. Of five flows that share a set for three, three
    /// shall be found and two missed, rather than each put out the next. Answers of other lists, which
    /// may be dead, make room more readily.
    fn keep(&mut self, tag: u32, key: &[u64; W], answer: Answer) {
        let turn = self.state().wrapping_add(1) & !SPILLED;
        self.set_state(self.state() & SPILLED | turn);
        let list = |key: &[u64; W]| key[W - 1] >> (32 + TAG_SHIFT);
        let free = self.keys.iter().position(|kept| list(kept) == 0);
        let foreign = || self.keys.iter().position(|kept| list(kept) != list(key)).filter(|_| turn.is_multiple_of(2));
        let any = || turn.is_multiple_of(SELDOM).then_some((turn / SELDOM) as usize % WAYS);
        if let Some(way) = free.or_else(foreign).or_else(any) {
            (self.keys[way], self.answers[way]) = (*key, answer);
            self.tags = self.tags & !(0xff << (8 * way)) | tag << (8 * way);
        }
    }
}

/// A cache of keys of `W` words, `WAYS` in a set.
pub(crate) struct Cache<const W: usize, const WAYS: usize> {
    sets: LargePages<Set<W, WAYS>>,
    seed: u64,
    epoch: u32,
}

impl<const W: usize, const WAYS: usize> Cache<W, WAYS> {
    fn new(flows: usize, seed: u64) -> Self {
        const { assert!(WAYS <= 3, "a byte for each tag, and one for the state") };
        // Twice the room, so that few sets are overfull.
        let sets = (flows.clamp(1, MOST) * 2).div_ceil(WAYS).next_power_of_two();
        Cache { sets: LargePages::filled(Set::EMPTY, sets), seed, epoch: 0 }
    }

    /// What tells the set of a key, and its tag.
    #[inline(always)]
    fn hash(&self, key: &[u64; W]) -> u32 {
        let (pairs, odd) = key.as_chunks::<2>();
        let sum = pairs.iter().fold(0, |sum, [a, b]| sum ^ stir(self.seed, [sum ^ a, *b]));
        odd.iter().fold(sum, |sum, word| stir(self.seed, [sum, *word])) as u32
    }

    /// Forgets everything when lists' numbers have begun anew since.
    fn renew(&mut self, identity: Identity) {
        if self.epoch != identity.epoch {
            self.sets.fill(Set::EMPTY);
            self.epoch = identity.epoch;
        }
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
        let tag = tag(identity);
        let packed = |key: &F::Key| {
            let mut key = key.packed();
            key[W - 1] |= tag;
            key
        };
        let mut hashes = [0; CHUNK];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hash(&packed(key));
            if let Some(set) = self.sets.get(place(&self.sets, *hash)) {
                weir_cpu::prefetch(set);
            }
        }
        let mut unknown = [0u8; CHUNK];
        let mut misses = 0;
        for (who, ((key, hash), answer)) in keys.iter().zip(&hashes).zip(answers.iter_mut()).enumerate() {
            let found = find(&self.sets, *hash, packed(key));
            *answer = found.unwrap_or(NO_RULE);
            unknown[misses % CHUNK] = who as u8;
            misses += usize::from(found.is_none());
        }
        if misses > 0 {
            self.learn::<F>(unknown.get(..misses).unwrap_or_default(), keys, &hashes, tag, answers, search);
        }
    }

    /// Searches for what is not known, and keeps it.
    #[inline(never)]
    fn learn<F: Family<Key: Packed<W>>>(
        &mut self,
        unknown: &[u8],
        keys: &[F::Key],
        hashes: &[u32; CHUNK],
        tag: u64,
        answers: &mut [Answer],
        search: impl Fn(&[F::Key], &mut [Answer]),
    ) {
        let mut asked = [F::Key::default(); CHUNK];
        let mut found = [NO_RULE; CHUNK];
        let askers = unknown.iter().filter_map(|who| keys.get(usize::from(*who)));
        asked.iter_mut().zip(askers).for_each(|(to, from)| *to = *from);
        if let (Some(asked), Some(found)) = (asked.get(..unknown.len()), found.get_mut(..unknown.len())) {
            search(asked, found);
        }
        for ((who, key), answer) in unknown.iter().zip(&asked).zip(found) {
            let who = usize::from(*who);
            if let Some(place) = answers.get_mut(who) {
                *place = answer;
            }
            let mut key = key.packed();
            key[W - 1] |= tag;
            self.keep(hashes[who % CHUNK], &key, answer);
        }
    }

    /// Keeps an answer in its set, or in one beside while only that has room.
    fn keep(&mut self, hash: u32, key: &[u64; W], answer: Answer) {
        let place = place(&self.sets, hash);
        let free = |beside: &usize| self.sets.get(place ^ beside).is_some_and(Set::has_room);
        let beside = (0..NEIGHBORS).find(free).unwrap_or(0);
        if let Some(home) = self.sets.get_mut(place).filter(|_| beside != 0) {
            home.set_state(home.state() | SPILLED);
        }
        if let Some(set) = self.sets.get_mut(place ^ beside) {
            set.keep(hash >> PLACE_BITS, key, answer);
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.sets)
    }
}

/// The place of a hash's set; there are never more sets than the bits tell apart.
#[inline(always)]
fn place<S>(sets: &[S], hash: u32) -> usize {
    hash as usize & sets.len().wrapping_sub(1)
}

/// The answer for a key with this hash: mostly it is the first with its tag, or there is none.
#[inline(always)]
fn find<const W: usize, const WAYS: usize>(sets: &[Set<W, WAYS>], hash: u32, key: [u64; W]) -> Option<Answer> {
    let set = sets.get(place(sets, hash))?;
    match set.way(hash >> PLACE_BITS) {
        Some(way) if set.keys.get(way)? == &key => set.answers.get(way).copied(),
        None if !set.is_spilled() => None,
        _ => find_elsewhere(sets, hash, key),
    }
}

/// The same behind another key of its tag, or where a full set has put it: into one of those beside.
#[inline(never)]
fn find_elsewhere<const W: usize, const WAYS: usize>(sets: &[Set<W, WAYS>], hash: u32, key: [u64; W]) -> Option<Answer> {
    let home = place(sets, hash);
    let sets_of_it = if sets.get(home)?.is_spilled() { NEIGHBORS } else { 1 };
    (0..sets_of_it).find_map(|beside| sets.get(home ^ beside)?.search(&key))
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

/// A cache asked about one list in two steps, for who has other work for the time that memory takes: first, where an
/// answer would be; then, whether it is there.
#[derive(Clone, Copy)]
pub struct Asker4<'a> {
    sets: &'a [Set<2, 3>],
    seed: u64,
    tag: u64,
}

impl<'a> Asker4<'a> {
    pub(crate) fn new(cache: &'a mut Cache4, identity: Identity) -> Asker4<'a> {
        cache.0.renew(identity);
        Asker4 { sets: &cache.0.sets, seed: cache.0.seed, tag: tag(identity) }
    }

    #[inline(always)]
    fn words(self, key: Wire4) -> [u64; 2] {
        let [addresses, rest] = key.packed();
        [addresses, rest | self.tag]
    }

    /// The first step: what tells where the answer would be. Asks the processor's cache for it.
    #[inline(always)]
    #[must_use]
    pub fn ask(self, key: Wire4) -> u32 {
        let hash = stir(self.seed, self.words(key)) as u32;
        if let Some(set) = self.sets.get(place(self.sets, hash)) {
            weir_cpu::prefetch(set);
        }
        hash
    }

    /// The second step, with what the first gave for this key; `None` when the key was not met lately.
    #[inline(always)]
    #[must_use]
    pub fn known(self, key: Wire4, asked: u32) -> Option<Answer> {
        find(self.sets, asked, self.words(key))
    }
}

impl std::fmt::Debug for Asker4<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker4").field("tag", &self.tag).finish_non_exhaustive()
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

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
