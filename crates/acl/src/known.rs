//! What was answered lately about plain IPv4 packets, as densely as can be: sixteen bytes a flow.
//!
//! The passes that forward whole vectors ask for each packet, and what they wait for is memory: every second line that this
//! takes is a page more whose address has to be translated, and lines of others that leave the cache. So a flow is two words, and
//! four of them fill a cache line. The first word names the flow: its addresses under a seed, stirred with the rest. The other has
//! the rest, the list's number and the answer. The source port is not kept: with a hash of all else it says in which set
//! the flow lies, so that set and words together tell the key, and an answer is that of the very key that is asked for.
//!
//! A set that is full puts what comes next into one of some sets that help out, which keep the flow's place as well, since they tell
//! nothing of it. A flow that is not in its own set takes longer to look for; whoever asks does that for all such packets of a vector
//! together ([`Acl::learn4`]), and memory is asked for it before.
//!
//! Who does not know the seeds cannot aim at one set. A flood of keys never seen costs a miss and a search each, and puts out one
//! flow for every eight. One cache has one owner; nothing here is shared.

use std::hint::cold_path;

use weir_cpu::LargePages;

use crate::acl::{Acl, Answer, Identity, NO_RULE};
use crate::cache::stir;
use crate::key::{Key4, Wire4};
use crate::table::CHUNK;

/// Sets, of which flows have one each by their hash.
const SETS: usize = 1 << 15;
/// Sets that help out.
const BEYOND: usize = SETS / 16;
/// Flows of a set, and of one that helps out.
const WAYS: usize = 4;
const FURTHER_WAYS: usize = 3;
/// Of a flow's second word: where the list's number begins, the bit that tells two hashes of a set apart, and the answer.
const LIST: u32 = 24;
const HALF: u32 = 45;
const ANSWER: u32 = 46;
/// What of it is the key's.
const KEY: u64 = (1 << ANSWER) - 1;
/// Where no flow is; no list has the number that this says.
const NOBODY: u64 = u64::MAX;
/// An odd number, so that different rests stir names differently.
const STIRRED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Where in a hash the source port is laid over, and where the place of a set that helps out begins.
const PORT: u32 = 48;
const FURTHER: u32 = 32;
/// Misses of full sets until a flow is forgotten.
const SELDOM: usize = 8;

/// Flows that share a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Set {
    names: [u64; WAYS],
    rests: [u64; WAYS],
}

impl Set {
    const EMPTY: Set = Set { names: [0; WAYS], rests: [NOBODY; WAYS] };

    /// The first flow of this name, if it is also the rest: two flows of one name in one set are next to never met.
    #[inline(always)]
    fn first(&self, asked: Asked4) -> Option<Answer> {
        let way = weir_cpu::equal_of_four(&self.names, asked.name).trailing_zeros() as usize / 4;
        let rest = self.rests.get(way)?;
        ((rest ^ asked.rest) & KEY == 0).then_some((rest >> ANSWER) as Answer)
    }

    /// The same, whatever else has the name.
    fn search(&self, asked: Asked4) -> Option<Answer> {
        let mut flows = self.names.iter().zip(self.rests);
        let is_it = |(name, rest): &(&u64, u64)| **name == asked.name && (rest ^ asked.rest) & KEY == 0;
        flows.find(is_it).map(|(_, rest)| (rest >> ANSWER) as Answer)
    }

    fn put(&mut self, way: usize, asked: Asked4, answer: Answer) {
        if let (Some(name), Some(rest)) = (self.names.get_mut(way), self.rests.get_mut(way)) {
            (*name, *rest) = (asked.name, asked.rest & KEY | u64::from(answer) << ANSWER);
        }
    }

    fn room(&self) -> Option<usize> {
        self.rests.iter().position(|rest| *rest == NOBODY)
    }

    /// A flow of another list, which may be dead.
    fn foreign(&self, asked: Asked4) -> Option<usize> {
        self.rests.iter().position(|rest| (rest ^ asked.rest) << (64 - HALF) >> (64 - HALF + LIST) != 0)
    }
}

/// Flows whose own sets were full, a cache line too.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Further {
    names: [u64; FURTHER_WAYS],
    rests: [u64; FURTHER_WAYS],
    places: [u16; FURTHER_WAYS],
}

const _: () = assert!(size_of::<Further>() == 64);

impl Further {
    const EMPTY: Further = Further { names: [0; FURTHER_WAYS], rests: [NOBODY; FURTHER_WAYS], places: [0; FURTHER_WAYS] };

    fn search(&self, asked: Asked4) -> Option<Answer> {
        let mut flows = self.names.iter().zip(&self.places).zip(self.rests);
        let is_it = |((name, place), rest): &((&u64, &u16), u64)| {
            **name == asked.name && **place == asked.place() && (rest ^ asked.rest) & KEY == 0
        };
        flows.find(is_it).map(|(_, rest)| (rest >> ANSWER) as Answer)
    }

    fn put(&mut self, way: usize, asked: Asked4, answer: Answer) {
        let there = (self.names.get_mut(way), self.rests.get_mut(way), self.places.get_mut(way));
        if let (Some(name), Some(rest), Some(place)) = there {
            (*name, *rest, *place) = (asked.name, asked.rest & KEY | u64::from(answer) << ANSWER, asked.place());
        }
    }

    fn room(&self) -> Option<usize> {
        self.rests.iter().position(|rest| *rest == NOBODY)
    }
}

/// What tells where a key's answer would be, and that it is its.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked4 {
    name: u64,
    /// The key's part of the second word; above, the place of its set.
    rest: u64,
}

impl Asked4 {
    /// With name and rest all that there is of the key: its set and the bit that tells two places of a set apart.
    #[inline(always)]
    fn place(self) -> u16 {
        (self.rest >> HALF) as u16
    }

    #[inline(always)]
    fn home(self) -> usize {
        (self.rest >> ANSWER) as usize % SETS
    }

    #[inline(always)]
    fn beyond(self) -> usize {
        (stir(self.name, self.rest | 1) >> FURTHER) as usize % BEYOND
    }
}

/// What a worker was answered lately about plain IPv4 packets: some 100,000 flows in two megabytes.
pub struct Known4 {
    /// Where flows belong.
    home: LargePages<Set>,
    /// Sets that help out.
    beyond: LargePages<Further>,
    seeds: [u64; 2],
    epoch: u32,
    turn: usize,
}

impl Known4 {
    /// The seed should be drawn at random.
    #[must_use]
    pub fn new(seed: u64) -> Known4 {
        let seeds = [1u64, 2].map(|n| {
            let state = seed.wrapping_add(n.wrapping_mul(STIRRED));
            stir(state, state ^ 0xe703_7ed1_a0b4_28db)
        });
        let (home, beyond) = (LargePages::filled(Set::EMPTY, SETS), LargePages::filled(Further::EMPTY, BEYOND));
        Known4 { home, beyond, seeds, epoch: 0, turn: 0 }
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.home) + size_of_val(&*self.beyond)
    }

    fn asker(&mut self, identity: Identity) -> Option<Asker4<'_>> {
        if self.epoch != identity.epoch {
            self.home.fill(Set::EMPTY);
            self.beyond.fill(Further::EMPTY);
            self.epoch = identity.epoch;
        }
        let (home, beyond) = (self.home.first_chunk()?, self.beyond.first_chunk()?);
        Some(Asker4 { home, beyond, seeds: self.seeds, list: u64::from(identity.number) << LIST })
    }

    /// Keeps an answer where there is room; else seldom. Of five flows that share a place for four, four shall be found and one
    /// missed, rather than each put out the next. Flows of other lists make room more readily.
    fn keep(&mut self, asked: Asked4, answer: Answer) {
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn;
        let (home, beyond) = (self.home.get_mut(asked.home()), self.beyond.get_mut(asked.beyond()));
        let (Some(home), Some(beyond)) = (home, beyond) else { return };
        if u64::from(answer) >> (u64::BITS - ANSWER) != 0 || home.search(asked).or_else(|| beyond.search(asked)).is_some() {
            return;
        }
        if let Some(way) = home.room() {
            home.put(way, asked, answer);
        } else if let Some(way) = beyond.room() {
            beyond.put(way, asked, answer);
        } else if let Some(way) = home.foreign(asked).filter(|_| turn.is_multiple_of(2)) {
            home.put(way, asked, answer);
        } else if turn.is_multiple_of(SELDOM) {
            let (way, in_home) = (turn / SELDOM % WAYS, (turn / SELDOM / WAYS).is_multiple_of(2));
            if in_home { home.put(way, asked, answer) } else { beyond.put(way % FURTHER_WAYS, asked, answer) }
        }
    }
}

impl std::fmt::Debug for Known4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known4").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// A cache asked about one list in two steps, for who has other work for the time that memory takes: first, where an
/// answer would be; then, whether it is there.
#[derive(Clone, Copy)]
pub struct Asker4<'a> {
    home: &'a [Set; SETS],
    beyond: &'a [Further; BEYOND],
    seeds: [u64; 2],
    list: u64,
}

impl Asker4<'_> {
    #[inline(always)]
    fn asked(self, key: Wire4) -> Asked4 {
        let rest = u64::from(key.ports >> 16) | u64::from(key.protocol) << 16 | self.list;
        let name = key.addresses ^ self.seeds[0] ^ rest.wrapping_mul(STIRRED);
        let hash = stir(name, rest ^ self.seeds[1]);
        let place = (hash >> PORT) ^ u64::from(key.ports as u16);
        Asked4 { name, rest: rest | place << HALF }
    }

    /// The first step: what tells where the answer would be. Asks the processor's cache for it.
    #[inline(always)]
    #[must_use]
    pub fn ask(self, key: Wire4) -> Asked4 {
        let asked = self.asked(key);
        weir_cpu::prefetch(&self.home[asked.home()]);
        asked
    }

    /// The second step, with what the first gave; `None` when the key was not met lately, or lies where it takes longer to look.
    /// The cache is asked for that, too: see [`Acl::learn4`].
    #[inline(always)]
    #[must_use]
    pub fn known(self, asked: Asked4) -> Option<Answer> {
        let answer = self.home[asked.home()].first(asked);
        if answer.is_none() {
            cold_path();
            weir_cpu::prefetch(&self.beyond[asked.beyond()]);
        }
        answer
    }

    /// The answer wherever it is.
    fn sought(self, asked: Asked4) -> Option<Answer> {
        self.home[asked.home()].search(asked).or_else(|| self.beyond[asked.beyond()].search(asked))
    }
}

impl std::fmt::Debug for Asker4<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker4").finish_non_exhaustive()
    }
}

impl Acl {
    /// Asks only for what was answered lately, in steps.
    ///
    /// # Panics
    /// Never: a cache has all its sets.
    #[must_use]
    pub fn asker4<'a>(&self, cache: &'a mut Known4) -> Asker4<'a> {
        cache.asker(self.identity()).expect("a cache has all its sets")
    }

    /// The answers for keys that [`Asker4::known`] had none for: those that lie where it takes longer to look, and those that
    /// the list is searched for, which are kept. As many as both slices have. Only keys of usual protocols that have their ports are kept.
    pub fn learn4(&self, cache: &mut Known4, keys: &[Key4], answers: &mut [Answer]) {
        for (keys, answers) in keys.chunks(CHUNK).zip(answers.chunks_mut(CHUNK)) {
            let asker = self.asker4(cache);
            let mut unknown = [0u8; CHUNK];
            let mut misses = 0;
            for (who, (key, answer)) in keys.iter().zip(&mut *answers).enumerate() {
                match Wire4::of(key).and_then(|key| asker.sought(asker.asked(key))) {
                    Some(known) => *answer = known,
                    None => {
                        unknown[misses % CHUNK] = who as u8;
                        misses += 1;
                    }
                }
            }
            if misses > 0 {
                self.learn(cache, unknown.get(..misses).unwrap_or_default(), keys, answers);
            }
        }
    }

    /// Searches for what is not known, and keeps it.
    #[inline(never)]
    fn learn(&self, cache: &mut Known4, unknown: &[u8], keys: &[Key4], answers: &mut [Answer]) {
        let mut asked = [Key4::default(); CHUNK];
        let mut found = [NO_RULE; CHUNK];
        let askers = unknown.iter().filter_map(|who| keys.get(usize::from(*who)));
        asked.iter_mut().zip(askers).for_each(|(to, from)| *to = *from);
        if let (Some(asked), Some(found)) = (asked.get(..unknown.len()), found.get_mut(..unknown.len())) {
            self.answer4(asked, found);
        }
        for ((who, key), answer) in unknown.iter().zip(&asked).zip(found) {
            if let Some(place) = answers.get_mut(usize::from(*who)) {
                *place = answer;
            }
            if let Some(key) = Wire4::of(key) {
                let asked = self.asker4(cache).asked(key);
                cache.keep(asked, answer);
            }
        }
    }
}
