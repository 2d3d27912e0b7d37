//! What was answered lately about plain IPv4 packets, as densely as can be: sixteen bytes a flow.
//!
//! The passes that forward whole vectors ask for each packet, and what they wait for is memory: every second line that this
//! takes is a page more whose address has to be translated, and lines of others that leave the cache. So a flow is two words, and
//! four of them fill a cache line. The key and the list's number are a block of sixteen octets, which is scrambled under secrets so
//! that different blocks stay different. A part of what comes out is the place of the flow's set; the rest is kept there. So set
//! and words together tell the key, and an answer is that of the very key that is asked for. The bits that were spared have room
//! for the answer, if it is small; of a flow with another one it is kept that it has another.
//!
//! A set that is full puts what comes next into one of some sets that help out, which keep the flow's place as well, since they tell
//! nothing of it. A flow that is not in its own set takes longer to look for; whoever asks does that for all such packets of a vector
//! together ([`Acl::learn4`]), and memory is asked for it before.
//!
//! Who does not know the secrets cannot aim at one set. A flood of keys never seen costs a miss and a search each, and puts out one
//! flow for every eight. One cache has one owner; nothing here is shared.

use std::hint::cold_path;

use weir_cpu::{Block, Code, LargePages, ScrambleKeys, scramble};

use crate::acl::{Acl, Answer, Identity, NO_RULE};
use crate::cache::stir;
use crate::key::{Key4, Wire4};
use crate::table::CHUNK;

/// Sets, of which flows have one each, as the uppermost bits of their second word say.
const SETS: usize = 1 << 15;
/// Sets that help out.
const BEYOND: usize = SETS / 16;
/// Flows of a set, and of one that helps out.
const WAYS: usize = 4;
const FURTHER_WAYS: usize = 3;
/// Where in a flow's second word the place of its set begins, and where, as it lies there, its answer does.
const PLACE: u32 = u64::BITS - SETS.ilog2();
/// What is the key's of the second word of a flow that lies in its set.
const KEY: u64 = (1 << PLACE) - 1;
/// The second word where no flow is: one of an answer that is not kept.
const NOBODY: u64 = u64::MAX;
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
    const EMPTY: Set = Set {
        names: [0; WAYS],
        rests: [NOBODY; WAYS],
    };

    /// The first flow of this name, if it is also the rest: two flows of one name in one set are next to never met. Where nobody is,
    /// the answer is none.
    #[inline(always)]
    fn first(&self, code: impl Code, asked: Asked4) -> Option<Answer> {
        let rest = self
            .rests
            .get(code.first_of_four(&self.names, asked.name)?)?;
        ((rest ^ asked.rest) & KEY == 0).then_some((rest >> PLACE) as Answer)
    }

    /// The same, whatever else has the name.
    fn search(&self, asked: Asked4) -> Option<Answer> {
        let mut flows = self.names.iter().zip(self.rests);
        flows
            .find(|(name, rest)| asked.is(**name, *rest))
            .map(|(_, rest)| (rest >> PLACE) as Answer)
    }

    fn put(&mut self, way: usize, asked: Asked4, answer: Answer) {
        if let (Some(name), Some(rest)) = (self.names.get_mut(way), self.rests.get_mut(way)) {
            (*name, *rest) = (asked.name, asked.kept(answer));
        }
    }

    fn room(&self) -> Option<usize> {
        self.rests.iter().position(|rest| *rest == NOBODY)
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

const _: () = assert!(size_of::<Further>() == 64 && SETS <= 1 << 16);

impl Further {
    const EMPTY: Further = Further {
        names: [0; FURTHER_WAYS],
        rests: [NOBODY; FURTHER_WAYS],
        places: [0; FURTHER_WAYS],
    };

    fn search(&self, asked: Asked4) -> Option<Answer> {
        let mut flows = self.names.iter().zip(&self.places).zip(self.rests);
        let is_it = |((name, place), rest): &((&u64, &u16), u64)| {
            usize::from(**place) == asked.home() && asked.is(**name, *rest)
        };
        flows.find(is_it).map(|(_, rest)| (rest >> PLACE) as Answer)
    }

    fn put(&mut self, way: usize, asked: Asked4, answer: Answer) {
        let there = (
            self.names.get_mut(way),
            self.rests.get_mut(way),
            self.places.get_mut(way),
        );
        if let (Some(name), Some(rest), Some(place)) = there {
            (*name, *rest, *place) = (asked.name, asked.kept(answer), asked.home() as u16);
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
    /// Above, the place of its set.
    rest: u64,
}

impl Asked4 {
    #[inline(always)]
    fn new([name, rest]: Block) -> Asked4 {
        Asked4 { name, rest }
    }

    #[inline(always)]
    fn home(self) -> usize {
        (self.rest >> PLACE) as usize % SETS
    }

    #[inline(always)]
    fn beyond(self) -> usize {
        self.name as usize % BEYOND
    }

    /// Whether these words are those of this key, in its set.
    fn is(self, name: u64, rest: u64) -> bool {
        name == self.name && (rest ^ self.rest) & KEY == 0 && rest != NOBODY
    }

    /// The second word of a flow with this answer.
    fn kept(self, answer: Answer) -> u64 {
        self.rest & KEY | u64::from(answer.min(Asker4::OTHER)) << PLACE
    }
}

/// What a worker was answered lately about plain IPv4 packets: some 100,000 flows in two megabytes.
pub struct Known4 {
    /// Where flows belong.
    home: LargePages<Set>,
    /// Sets that help out.
    beyond: LargePages<Further>,
    secrets: ScrambleKeys,
    epoch: u32,
    turn: usize,
}

impl Known4 {
    /// The seed should be drawn at random.
    #[must_use]
    pub fn new(seed: u64) -> Known4 {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            stir(state, state ^ 0xe703_7ed1_a0b4_28db)
        };
        let secrets = std::array::from_fn(|_| [next(), next()]);
        let (home, beyond) = (
            LargePages::filled(Set::EMPTY, SETS),
            LargePages::filled(Further::EMPTY, BEYOND),
        );
        Known4 {
            home,
            beyond,
            secrets,
            epoch: 0,
            turn: 0,
        }
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
        // The list's number is laid over the key with the first secret.
        let mut secrets = self.secrets;
        secrets[0]
            .iter_mut()
            .zip(Wire4::list(identity.number))
            .for_each(|(secret, list)| *secret ^= list);
        Some(Asker4 {
            home,
            beyond,
            secrets,
        })
    }

    /// Keeps an answer where there is room; else seldom. Of five flows that share a place for four, four shall be found and one
    /// missed, rather than each put out the next.
    fn keep(&mut self, asked: Asked4, answer: Answer) {
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn;
        let (home, beyond) = (
            self.home.get_mut(asked.home()),
            self.beyond.get_mut(asked.beyond()),
        );
        let (Some(home), Some(beyond)) = (home, beyond) else {
            return;
        };
        // What is asked for packets that have no key is no key's.
        if asked == Asked4::default()
            || home
                .search(asked)
                .or_else(|| beyond.search(asked))
                .is_some()
        {
            return;
        }
        if let Some(way) = home.room() {
            home.put(way, asked, answer);
        } else if let Some(way) = beyond.room() {
            beyond.put(way, asked, answer);
        } else if turn.is_multiple_of(SELDOM) {
            let (way, in_home) = (
                turn / SELDOM % WAYS,
                (turn / SELDOM / WAYS).is_multiple_of(2),
            );
            if in_home {
                home.put(way, asked, answer)
            } else {
                beyond.put(way % FURTHER_WAYS, asked, answer)
            }
        }
    }
}

impl std::fmt::Debug for Known4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known4")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

/// A cache asked about one list in two steps, for who has other work for the time that memory takes: first, where an
/// answer would be; then, whether it is there.
#[derive(Clone, Copy)]
pub struct Asker4<'a> {
    home: &'a [Set; SETS],
    beyond: &'a [Further; BEYOND],
    secrets: ScrambleKeys,
}

impl Asker4<'_> {
    /// What is known of a flow whose answer is this number or a higher one: that it is.
    pub const OTHER: Answer = (1 << (u64::BITS - PLACE)) - 2;

    /// The first step: what tells where the answer would be. Asks the processor's cache for it. That of no packet is the default.
    #[inline(always)]
    #[must_use]
    pub fn ask(&self, code: impl Code, key: Wire4) -> Asked4 {
        let asked = Asked4::new(code.scramble(key.block, Wire4::KEY, &self.secrets));
        weir_cpu::prefetch(&self.home[asked.home()]);
        asked
    }

    /// The second step, with what the first gave: the answer, or, when that is not less than [`Asker4::OTHER`], that it is another one.
    /// `None` when the key was not met lately, or lies where it takes longer to look. The cache is asked for that, too: see
    /// [`Acl::learn4`].
    #[inline(always)]
    #[must_use]
    pub fn known(&self, code: impl Code, asked: Asked4) -> Option<Answer> {
        let answer = self.home[asked.home()].first(code, asked);
        if answer.is_none() {
            cold_path();
            weir_cpu::prefetch(&self.beyond[asked.beyond()]);
        }
        answer
    }

    /// The answer wherever it is, if it is stored.
    fn sought(&self, asked: Asked4) -> Option<Answer> {
        let answer = self.home[asked.home()]
            .search(asked)
            .or_else(|| self.beyond[asked.beyond()].search(asked));
        answer.filter(|answer| *answer < Asker4::OTHER)
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
        cache
            .asker(self.identity())
            .expect("a cache has all its sets")
    }

    /// The answers for keys that [`Asker4::known`] had none for: those that lie where it takes longer to look, and those that
    /// the list is searched for, which are kept. As many as both slices have. Only keys of usual protocols that have their ports are kept.
    pub fn learn4(&self, cache: &mut Known4, keys: &[Key4], answers: &mut [Answer]) {
        for (keys, answers) in keys.chunks(CHUNK).zip(answers.chunks_mut(CHUNK)) {
            let asker = self.asker4(cache);
            let mut unknown = [(0, Asked4::default()); CHUNK];
            let mut misses = 0;
            for (who, (key, answer)) in keys.iter().zip(&mut *answers).enumerate() {
                let wire = Wire4::of(key);
                let asked = wire.map_or(Asked4::default(), |key| {
                    Asked4::new(scramble(key.block, Wire4::KEY, &asker.secrets))
                });
                match asker.sought(asked) {
                    Some(known) => *answer = known,
                    None => {
                        unknown[misses % CHUNK] = (who as u8, asked);
                        misses += 1;
                    }
                }
            }
            if misses > 0 {
                self.learn(
                    cache,
                    unknown.get(..misses).unwrap_or_default(),
                    keys,
                    answers,
                );
            }
        }
    }

    /// Searches for what is not known, and keeps it.
    #[inline(never)]
    fn learn(
        &self,
        cache: &mut Known4,
        unknown: &[(u8, Asked4)],
        keys: &[Key4],
        answers: &mut [Answer],
    ) {
        let mut asked = [Key4::default(); CHUNK];
        let mut found = [NO_RULE; CHUNK];
        let askers = unknown
            .iter()
            .filter_map(|(who, _)| keys.get(usize::from(*who)));
        asked
            .iter_mut()
            .zip(askers)
            .for_each(|(to, from)| *to = *from);
        if let (Some(asked), Some(found)) =
            (asked.get(..unknown.len()), found.get_mut(..unknown.len()))
        {
            self.answer4(asked, found);
        }
        for ((who, asked), answer) in unknown.iter().zip(found) {
            if let Some(place) = answers.get_mut(usize::from(*who)) {
                *place = answer;
            }
            cache.keep(*asked, answer);
        }
    }
}
