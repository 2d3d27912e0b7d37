//! What was answered lately, per worker: most packets of a flow find their rule in one cache line.
//!
//! A list is a function of the key alone, so that an answer stays right for as long as the list lives.
//! Sets of some answers lie in a cache line each (two for IPv6); the key is kept whole and compared
//! whole, with the list's number in it, so that one cache serves many lists and a list that was
//! replaced is forgotten without being looked for. Where keys fall is stirred with a seed: who does not
//! know it cannot aim at one set. A flood of keys never seen costs a miss and a search each, no more.
//!
//! One cache has one owner; nothing here is shared.

use crate::acl::{Identity, NO_RULE, RuleIndex};
use crate::family::Family;
use crate::key::{Key4, Words};
use crate::table::CHUNK;

/// Bits of the protocol's word that are left for the list's number, and where they begin.
const TAG_SHIFT: u32 = 10;
/// Misses of a full set until one of its answers is forgotten.
const SELDOM: u32 = 8;
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

/// Answers that share their cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Set<const W: usize, const WAYS: usize> {
    keys: [[u64; W]; WAYS],
    rules: [RuleIndex; WAYS],
    /// Counts the answers that were not found here.
    turn: u32,
}

impl<const W: usize, const WAYS: usize> Set<W, WAYS> {
    const EMPTY: Self = Set { keys: [[0; W]; WAYS], rules: [0; WAYS], turn: 0 };

    /// The answer for a key, if there is one. Without choices: which of the ways it is nobody could foresee, and a wrong guess
    /// of the processor costs more than the rest of it.
    #[inline(always)]
    fn find(&self, key: &[u64; W]) -> Option<RuleIndex> {
        let (mut least, mut place) = (u64::MAX, 0);
        for (way, kept) in self.keys.iter().enumerate() {
            let differs = kept.iter().zip(key).fold(0, |differs, (kept, word)| differs | kept ^ word);
            least = least.min(differs);
            place |= way * usize::from(differs == 0);
        }
        if least == 0 { self.rules.get(place).copied() } else { None }
    }

    /// Whether an answer could be kept without another being forgotten.
    fn has_room(&self) -> bool {
        self.keys.iter().any(|kept| kept[W - 1] >> (32 + TAG_SHIFT) == 0)
    }

    /// Keeps an answer: where there is room; else seldom. Of five flows that share a set for three, three
    /// shall be found and two missed, rather than each put out the next. Answers of other lists, which
    /// may be dead, make room more readily.
    fn keep(&mut self, key: &[u64; W], rule: RuleIndex) {
        self.turn = self.turn.wrapping_add(1);
        let list = |key: &[u64; W]| key[W - 1] >> (32 + TAG_SHIFT);
        let free = self.keys.iter().position(|kept| list(kept) == 0);
        let foreign = || self.keys.iter().position(|kept| list(kept) != list(key)).filter(|_| self.turn.is_multiple_of(2));
        let any = || self.turn.is_multiple_of(SELDOM).then_some((self.turn / SELDOM) as usize % WAYS);
        if let Some(way) = free.or_else(foreign).or_else(any) {
            (self.keys[way], self.rules[way]) = (*key, rule);
        }
    }
}

/// A cache of keys of `W` words, `WAYS` in a set.
pub(crate) struct Cache<const W: usize, const WAYS: usize> {
    sets: Box<[Set<W, WAYS>]>,
    seed: u64,
    epoch: u32,
}

impl<const W: usize, const WAYS: usize> Cache<W, WAYS> {
    fn new(flows: usize, seed: u64) -> Self {
        // Twice the room, so that few sets are overfull.
        let sets = (flows.clamp(1, MOST) * 2).div_ceil(WAYS).next_power_of_two();
        let sets = vec![Set::EMPTY; sets].into_boxed_slice();
        weir_cpu::prefer_hugepages(&sets, true);
        Cache { sets, seed, epoch: 0 }
    }

    /// The set of a key: multiplications that stir two words into one.
    #[inline(always)]
    fn place(&self, key: &[u64; W]) -> usize {
        let (pairs, odd) = key.as_chunks::<2>();
        let stir = |a: u64, b: u64| {
            let product = u128::from(a ^ self.seed) * u128::from(b ^ 0xa076_1d64_78bd_642f);
            (product >> 64) as u64 ^ product as u64
        };
        let sum = pairs.iter().fold(0, |sum, [a, b]| sum ^ stir(sum ^ a, *b));
        odd.iter().fold(sum, |sum, word| stir(sum, *word)) as usize & (self.sets.len() - 1)
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
        rules: &mut [RuleIndex],
        search: impl Fn(&[F::Key], &mut [RuleIndex]),
    ) {
        self.renew(identity);
        let tag = tag(identity);
        let packed = |key: &F::Key| {
            let mut key = key.packed();
            key[W - 1] |= tag;
            key
        };
        let mut places = [0; CHUNK];
        for (place, key) in places.iter_mut().zip(keys) {
            *place = self.place(&packed(key)) as u32;
            if let Some(set) = self.sets.get(*place as usize) {
                weir_cpu::prefetch(set);
            }
        }
        let mut unknown = [0u8; CHUNK];
        let mut misses = 0;
        for (who, ((key, place), rule)) in keys.iter().zip(&places).zip(rules.iter_mut()).enumerate() {
            let found = self.find(*place as usize, &packed(key));
            *rule = found.unwrap_or(NO_RULE);
            unknown[misses % CHUNK] = who as u8;
            misses += usize::from(found.is_none());
        }
        if misses > 0 {
            self.learn::<F>(unknown.get(..misses).unwrap_or_default(), keys, &places, tag, rules, search);
        }
    }

    /// Searches for what is not known, and keeps it.
    #[inline(never)]
    fn learn<F: Family<Key: Packed<W>>>(
        &mut self,
        unknown: &[u8],
        keys: &[F::Key],
        places: &[u32; CHUNK],
        tag: u64,
        rules: &mut [RuleIndex],
        search: impl Fn(&[F::Key], &mut [RuleIndex]),
    ) {
        let mut asked = [F::Key::default(); CHUNK];
        let mut found = [NO_RULE; CHUNK];
        let askers = unknown.iter().filter_map(|who| keys.get(usize::from(*who)));
        asked.iter_mut().zip(askers).for_each(|(to, from)| *to = *from);
        if let (Some(asked), Some(found)) = (asked.get(..unknown.len()), found.get_mut(..unknown.len())) {
            search(asked, found);
        }
        for ((who, key), rule) in unknown.iter().zip(&asked).zip(found) {
            let who = usize::from(*who);
            if let Some(place) = rules.get_mut(who) {
                *place = rule;
            }
            let mut key = key.packed();
            key[W - 1] |= tag;
            self.keep(places[who % CHUNK] as usize, &key, rule);
        }
    }

    /// The answer for a key whose set this is.
    #[inline(always)]
    fn find(&self, place: usize, key: &[u64; W]) -> Option<RuleIndex> {
        match self.sets.get(place)?.find(key) {
            None => self.find_beside(place, key),
            found => found,
        }
    }

    /// The same where a full set has put it: into the set beside.
    #[inline(never)]
    fn find_beside(&self, place: usize, key: &[u64; W]) -> Option<RuleIndex> {
        self.sets.get(place ^ 1)?.find(key)
    }

    /// Keeps an answer in its set, or in the one beside while only that has room.
    fn keep(&mut self, place: usize, key: &[u64; W], rule: RuleIndex) {
        let has_room = |place: usize| self.sets.get(place).is_some_and(Set::has_room);
        let place = if !has_room(place) && has_room(place ^ 1) { place ^ 1 } else { place };
        if let Some(set) = self.sets.get_mut(place) {
            set.keep(key, rule);
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.sets)
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

/// A cache asked about one list in two steps, for who has other work for the time that memory takes: first, where an
/// answer would be; then, whether it is there.
#[derive(Clone, Copy)]
pub struct Asker4<'a> {
    cache: &'a Cache<2, 3>,
    tag: u64,
}

/// What is asked for, between the two steps. The default is known to nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked4 {
    words: [u64; 2],
    place: u32,
}

impl Asked4 {
    /// Whether nothing is asked for.
    #[inline(always)]
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.words[1] == 0
    }

    /// The key's destination, as a number.
    #[inline(always)]
    #[must_use]
    pub const fn destination(&self) -> u32 {
        (self.words[0] >> 32) as u32
    }

    /// The key.
    #[must_use]
    pub const fn key(&self) -> Key4 {
        let [addresses, rest] = self.words;
        let protocol = (rest >> 32) as u32 & ((1 << TAG_SHIFT) - 1);
        Key4 { words: [addresses as u32, (addresses >> 32) as u32, rest as u32, protocol] }
    }
}

impl<'a> Asker4<'a> {
    pub(crate) fn new(cache: &'a mut Cache4, identity: Identity) -> Asker4<'a> {
        cache.0.renew(identity);
        Asker4 { cache: &cache.0, tag: tag(identity) }
    }

    /// The first step: asks the processor's cache for the place of the answer.
    #[inline(always)]
    #[must_use]
    pub fn ask(self, key: &Key4) -> Asked4 {
        let [addresses, rest] = key.packed();
        let words = [addresses, rest | self.tag];
        let place = self.cache.place(&words);
        if let Some(set) = self.cache.sets.get(place) {
            weir_cpu::prefetch(set);
        }
        Asked4 { words, place: place as u32 }
    }

    /// The second step; `None` when the key was not met lately.
    #[inline(always)]
    #[must_use]
    pub fn known(self, asked: &Asked4) -> Option<RuleIndex> {
        self.cache.find(asked.place as usize, &asked.words)
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
