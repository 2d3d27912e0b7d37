//! A whole list, made ready: one table per family and kind of key.
//!
//! Most packets have ports or need none; those two kinds of keys that have none although their
//! protocol does are searched in tables of their own, in which every rule has just the meaning that it
//! has for such packets. So the common way never asks, and an attacker who sends nothing but fragments
//! meets a tree as well.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::{Asker6, Cache, Cache4, Cache6, Packed};
use crate::family::{Family, NONE, Shape, V4, V6};
use crate::grow::{LIMITS, Limits, grow};
use crate::key::{Key4, Key6, LATER_FRAGMENT, ODD, Words};
use crate::rule::{Demands, Rule};
use crate::table::{CHUNK, Effort, Table};

/// Which rule of the list, from 0.
pub type RuleIndex = u32;

/// What stands for "no rule" where batches write.
pub const NO_RULE: RuleIndex = NONE;

/// What stands for a rule where answers are kept: its index, or what [`Acl::with_answers`] was given for it.
pub type Answer = u32;

/// Rules that a list may have, with all its prefix lists written out.
pub const MAX_RULES: usize = 65_536;

/// Why a list cannot be made ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// There are more rules than [`MAX_RULES`].
    #[error("{0} rules are more than {MAX_RULES}")]
    TooMany(usize),
    /// A range of this rule ends before it begins.
    #[error("rule {0}: a range ends before it begins")]
    Turned(RuleIndex),
    /// Too many rules overlap in too many ways: some packet would be compared with this many rules one by one.
    #[error("the rules overlap too much: a packet would be compared with {0} of them one by one, more than {max}", max = LIMITS.longest)]
    Entangled(usize),
}

/// What a list costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Rules in the list.
    pub rules: usize,
    /// Bytes of all tables.
    pub bytes: usize,
    /// Trees that an ordinary IPv4 packet is looked up in.
    pub trees4: usize,
    /// Trees that an ordinary IPv6 packet is looked up in.
    pub trees6: usize,
    /// Groups of eight rules that one leaf holds at most.
    pub longest_scan: usize,
}

/// The tables of one family. Where no rule asks for ports, all keys are searched in the first.
struct Tables<F: Family> {
    whole: Table<F>,
    later: Option<Table<F>>,
    unreadable: Option<Table<F>>,
}

/// Numbers a list among all that this process has made, for the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// 21 bits, neither all 0 nor all 1: no cache has an answer of such a list.
    pub(crate) number: u32,
    /// How often the numbers have been used up.
    pub(crate) epoch: u32,
}

impl Identity {
    const NUMBERS: u64 = (1 << 21) - 2;

    fn next() -> Identity {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        Identity {
            number: (made % Identity::NUMBERS) as u32 + 1,
            epoch: (made / Identity::NUMBERS) as u32 + 1,
        }
    }
}

/// An access list, ready to be searched. It never changes: a new one is built aside and published whole.
pub struct Acl {
    v4: Tables<V4>,
    v6: Tables<V6>,
    rules: usize,
    identity: Identity,
    answers: Answers,
}

/// What is to be kept for each rule, and for the lack of one. Without any, it is the rule's index.
#[derive(Default)]
struct Answers {
    of: Box<[Answer]>,
    otherwise: Answer,
}

impl Answers {
    /// Puts answers in the place of rules.
    fn put(&self, rules: &mut [RuleIndex]) {
        if !self.of.is_empty() {
            rules.iter_mut().for_each(|rule| {
                *rule = self
                    .of
                    .get(*rule as usize)
                    .copied()
                    .unwrap_or(self.otherwise)
            });
        }
    }
}

impl Acl {
    /// Makes a list ready: some 30 to 400 ms for a thousand rules, seconds for ten thousand. Not for the packet
    /// path. Time and memory grow with the number of rules only, whatever they say.
    ///
    /// # Errors
    /// When there are too many rules, a range is turned round, or rules overlap so much that a search
    /// could not be kept short.
    pub fn build(rules: &[Rule]) -> Result<Acl, BuildError> {
        if rules.len() > MAX_RULES {
            return Err(BuildError::TooMany(rules.len()));
        }
        let mut demands = Vec::with_capacity(rules.len());
        for (rule, index) in rules.iter().zip(0..) {
            demands.push(rule.payload.demands().ok_or(BuildError::Turned(index))?);
        }
        let entangled = BuildError::Entangled;
        Ok(Acl {
            v4: Tables::build(rules, &demands, &LIMITS).map_err(entangled)?,
            v6: Tables::build(rules, &demands, &LIMITS).map_err(entangled)?,
            rules: rules.len(),
            identity: Identity::next(),
            answers: Answers::default(),
        })
    }

    /// The list whose caches give answers in the place of rules: of each rule one, and `otherwise` where there is no rule.
    #[must_use]
    pub fn with_answers(self, answers: impl IntoIterator<Item = Answer>, otherwise: Answer) -> Acl {
        // One more, so that there is one even without rules.
        let of: Box<[Answer]> = answers
            .into_iter()
            .take(self.rules)
            .chain([otherwise])
            .collect();
        // What was kept until now is not what is asked for from now on.
        Acl {
            answers: Answers { of, otherwise },
            identity: Identity::next(),
            ..self
        }
    }

    /// The first rule that an IPv4 packet matches.
    #[must_use]
    pub fn classify4(&self, key: &Key4) -> Option<RuleIndex> {
        Some(self.v4.classify(key)).filter(|rule| *rule != NONE)
    }

    /// The first rule that an IPv6 packet matches.
    #[must_use]
    pub fn classify6(&self, key: &Key6) -> Option<RuleIndex> {
        Some(self.v6.classify(key)).filter(|rule| *rule != NONE)
    }

    /// The first rule that each of some IPv4 packets matches, or [`NO_RULE`]; as many as both slices have.
    pub fn classify4_batch(&self, keys: &[Key4], rules: &mut [RuleIndex]) {
        self.v4.classify_batch(keys, rules);
    }

    /// The first rule that each of some IPv6 packets matches, or [`NO_RULE`]; as many as both slices have.
    pub fn classify6_batch(&self, keys: &[Key6], rules: &mut [RuleIndex]) {
        self.v6.classify_batch(keys, rules);
    }

    /// The answers for some IPv4 packets, with those that were given lately at hand.
    pub fn classify4_cached(&self, cache: &mut Cache4, keys: &[Key4], answers: &mut [Answer]) {
        weir_cpu::dispatch(Cached {
            tables: &self.v4,
            list: self,
            cache: &mut cache.0,
            keys,
            answers,
        });
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// The answers for some IPv4 packets.
    pub(crate) fn answer4(&self, keys: &[Key4], answers: &mut [Answer]) {
        self.v4.classify_batch(keys, answers);
        self.answers.put(answers);
    }

    /// The answers for some IPv6 packets, with those that were given lately at hand.
    pub fn classify6_cached(&self, cache: &mut Cache6, keys: &[Key6], answers: &mut [Answer]) {
        weir_cpu::dispatch(Cached {
            tables: &self.v6,
            list: self,
            cache: &mut cache.0,
            keys,
            answers,
        });
    }

    /// Asks only for what was answered lately about IPv6 packets, in steps. Keys that it has no answer for are classified by
    /// [`Acl::classify6_cached`].
    #[must_use]
    pub fn asker6<'a>(&self, cache: &'a mut Cache6) -> Asker6<'a> {
        cache.asker(self.identity)
    }

    /// What the list costs.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts {
            rules: self.rules,
            bytes: size_of::<Acl>() + self.v4.bytes() + self.v6.bytes(),
            trees4: self.v4.whole.roots.len(),
            trees6: self.v6.whole.roots.len(),
            longest_scan: self.v4.longest().max(self.v6.longest()),
        }
    }
}

impl<F: Family> Tables<F> {
    fn build(rules: &[Rule], demands: &[Demands], limits: &Limits) -> Result<Tables<F>, usize> {
        let table = |change: fn(&Demands) -> Option<Demands>| {
            let mut seen: HashSet<Shape> = HashSet::new();
            let (mut shapes, mut numbers) = (Vec::new(), Vec::new());
            for ((rule, demands), index) in rules.iter().zip(demands).zip(0..) {
                let Some(shape) = change(demands).and_then(|demands| F::shape(rule, &demands))
                else {
                    continue;
                };
                // What an earlier rule says word for word is never reached.
                if seen.insert(shape) {
                    shapes.push(shape);
                    numbers.push(index);
                }
            }
            grow(&shapes, &numbers, limits)
        };
        let whole = table(|demands| Some(*demands))?;
        if demands.iter().all(|demands| demands.ports.is_none()) {
            return Ok(Tables {
                whole,
                later: None,
                unreadable: None,
            });
        }
        let later = table(|demands| {
            Some(Demands {
                ports: None,
                ..*demands
            })
        })?;
        let unreadable = table(|demands| demands.ports.is_none().then_some(*demands))?;
        Ok(Tables {
            whole,
            later: Some(later),
            unreadable: Some(unreadable),
        })
    }

    /// The table for a kind of key.
    #[inline(always)]
    fn table(&self, last: u32) -> &Table<F> {
        let special = match last & ODD {
            0 => None,
            LATER_FRAGMENT => self.later.as_ref(),
            _ => self.unreadable.as_ref(),
        };
        special.unwrap_or(&self.whole)
    }

    fn classify(&self, key: &F::Key) -> u32 {
        self.table(key.last()).search(key, &mut Effort::default())
    }

    fn classify_batch(&self, keys: &[F::Key], rules: &mut [RuleIndex]) {
        weir_cpu::dispatch(Batch {
            tables: self,
            keys,
            rules,
        });
    }

    fn all(&self) -> impl Iterator<Item = &Table<F>> {
        [
            Some(&self.whole),
            self.later.as_ref(),
            self.unreadable.as_ref(),
        ]
        .into_iter()
        .flatten()
    }

    fn bytes(&self) -> usize {
        self.all().map(Table::bytes).sum()
    }

    fn longest(&self) -> usize {
        self.all()
            .flat_map(|table| table.nodes.iter().chain(&table.roots))
            .map(|node| node.groups())
            .max()
            .unwrap_or(0)
    }
}

/// A batch as work for the best instruction set.
struct Batch<'a, F: Family> {
    tables: &'a Tables<F>,
    keys: &'a [F::Key],
    rules: &'a mut [RuleIndex],
}

impl<F: Family> weir_cpu::Task for Batch<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut some = [F::Key::default(); CHUNK];
        let mut best = [NONE; CHUNK];
        for (keys, rules) in self.keys.chunks(CHUNK).zip(self.rules.chunks_mut(CHUNK)) {
            let count = keys.len().min(rules.len());
            some.iter_mut().zip(keys).for_each(|(to, from)| *to = *from);
            self.tables.whole.search_chunk(&some, count, &mut best);
            rules
                .iter_mut()
                .zip(best)
                .take(count)
                .for_each(|(to, from)| *to = from);
            if keys.iter().fold(0, |marks, key| marks | key.last()) & ODD != 0 {
                self.tables.odd(keys, rules);
            }
        }
    }
}

/// A batch with a cache.
struct Cached<'a, F: Family, const W: usize, const WAYS: usize> {
    tables: &'a Tables<F>,
    list: &'a Acl,
    cache: &'a mut Cache<W, WAYS>,
    keys: &'a [F::Key],
    answers: &'a mut [Answer],
}

impl<F: Family<Key: Packed<W>>, const W: usize, const WAYS: usize> weir_cpu::Task
    for Cached<'_, F, W, WAYS>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (keys, answers) in self.keys.chunks(CHUNK).zip(self.answers.chunks_mut(CHUNK)) {
            let count = keys.len().min(answers.len());
            let (Some(keys), Some(answers)) = (keys.get(..count), answers.get_mut(..count)) else {
                return;
            };
            self.cache
                .answer::<F>(self.list.identity, keys, answers, |keys, rules| {
                    self.tables.classify_batch(keys, rules);
                    self.list.answers.put(rules);
                });
        }
    }
}

impl<F: Family> Tables<F> {
    /// Searches again, one by one, those keys that have no ports although their protocol does.
    #[inline(never)]
    fn odd(&self, keys: &[F::Key], rules: &mut [RuleIndex]) {
        for (key, rule) in keys
            .iter()
            .zip(rules)
            .filter(|(key, _)| key.last() & ODD != 0)
        {
            *rule = self.classify(key);
        }
    }
}
