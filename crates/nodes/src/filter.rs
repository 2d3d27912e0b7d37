//! Access lists as workers see them: the classifier with what its rules mean, and a counter a rule.
//!
//! A [`Filter`] is what one interface is bound to in one direction: one list, or several one after the
//! other. The classifier (`weir_acl`) knows rules, which are terms with their prefix lists written out; what is
//! permitted and counted is terms. The list is shared by all interfaces that are bound to the same, the
//! counters are the interface's own.

use std::sync::Arc;

use weir_acl::{Acl, Action, RuleIndex};
use weir_ring::counter::Counter;

/// A list, or several one after the other, ready to be asked.
pub struct FilterList {
    /// The classifier.
    acl: Acl,
    /// The judgement of each rule.
    rules: Box<[Judgement]>,
    terms: usize,
}

/// A rule's term, the lowest bit saying whether it permits.
#[derive(Clone, Copy)]
struct Judgement(u32);

impl Judgement {
    fn new(term: usize, action: Action) -> Judgement {
        Judgement((term as u32) << 1 | u32::from(action == Action::Permit))
    }

    #[inline(always)]
    fn term(self) -> usize {
        self.0 as usize >> 1
    }

    #[inline(always)]
    fn permits(self) -> bool {
        self.0 & 1 != 0
    }
}

impl FilterList {
    /// A list of terms, each with the rules it stands for, in order. See [`Acl::build`] for what that costs.
    ///
    /// # Errors
    /// As [`Acl::build`].
    pub fn build(terms: impl IntoIterator<Item = (Action, Vec<weir_acl::Rule>)>) -> Result<FilterList, weir_acl::BuildError> {
        let (mut rules, mut judgements, mut count) = (Vec::new(), Vec::new(), 0);
        for (action, of_term) in terms {
            judgements.extend(std::iter::repeat_n(Judgement::new(count, action), of_term.len()));
            rules.extend(of_term);
            count += 1;
        }
        Ok(FilterList { acl: Acl::build(&rules)?, rules: judgements.into(), terms: count })
    }

    /// How many terms there are.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// What the classifier costs.
    #[must_use]
    pub fn facts(&self) -> weir_acl::Facts {
        self.acl.facts()
    }

    #[inline(always)]
    pub(crate) fn acl(&self) -> &Acl {
        &self.acl
    }

    /// What a rule says, or the lack of one: what no term matches is denied, and counted behind the last term.
    #[inline(always)]
    fn judge(&self, rule: RuleIndex) -> Judgement {
        // No list has a rule of the number that says that there is none.
        self.rules.get(rule as usize).copied().unwrap_or(Judgement((self.terms as u32) << 1))
    }
}

impl std::fmt::Debug for FilterList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilterList").field("facts", &self.facts()).finish_non_exhaustive()
    }
}

/// What a term met in one worker.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    packets: Counter,
    bytes: Counter,
}

impl Hits {
    #[inline(always)]
    pub(crate) fn count(&self, bytes: usize) {
        self.packets.add(1);
        self.bytes.add(bytes as u64);
    }
}

/// What the terms of one interface and direction met, a block a worker; behind the last term, what none
/// matched.
#[derive(Debug)]
pub struct FilterCounters(Box<[Box<[Hits]>]>);

impl FilterCounters {
    /// Counters for `workers` workers and `terms` terms.
    #[must_use]
    pub fn new(workers: usize, terms: usize) -> FilterCounters {
        FilterCounters((0..workers).map(|_| (0..=terms).map(|_| Hits::default()).collect()).collect())
    }

    /// Packets and bytes of a term, all workers together; `term` may be the number of terms, for what no
    /// term matched.
    #[must_use]
    pub fn of(&self, term: usize) -> (u64, u64) {
        let hits = self.0.iter().filter_map(|block| block.get(term));
        hits.fold((0, 0), |(packets, bytes), hits| (packets + hits.packets.get(), bytes + hits.bytes.get()))
    }
}

/// What an interface is bound to in one direction.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The list.
    pub list: Arc<FilterList>,
    /// What its terms met here.
    pub counters: Arc<FilterCounters>,
}

impl Filter {
    /// Counts a packet that met a rule; whether it may go on.
    #[inline(always)]
    pub(crate) fn settle(&self, worker: usize, rule: RuleIndex, bytes: usize) -> bool {
        let judgement = self.list.judge(rule);
        if let Some(hits) = self.counters.0.get(worker).and_then(|block| block.get(judgement.term())) {
            hits.count(bytes);
        }
        judgement.permits()
    }

    /// The same for many packets of one worker, which are counted if they could go on.
    #[inline(always)]
    pub(crate) fn at(&self, worker: usize) -> Judge<'_> {
        Judge { list: &self.list, hits: self.counters.0.get(worker).map_or(&[], |block| block) }
    }
}

/// A filter as one worker asks it.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    list: &'a FilterList,
    hits: &'a [Hits],
}

impl<'a> Judge<'a> {
    /// Where a packet is to be counted that met a rule, if it may go on.
    #[inline(always)]
    pub(crate) fn permits(self, rule: RuleIndex) -> Option<&'a Hits> {
        let judgement = self.list.judge(rule);
        if judgement.permits() { self.hits.get(judgement.term()) } else { None }
    }
}
