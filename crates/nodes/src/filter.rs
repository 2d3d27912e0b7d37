//! Access lists as workers see them: the classifier with what its rules mean, and a counter a rule.
//!
//! A [`Filter`] is what one interface is bound to in one direction: one list, or several one after the
//! other. The classifier (`weir_acl`) knows rules, which are terms with their prefix lists written out; what is
//! permitted and counted is terms. The list is shared by all interfaces that are bound to the same, the
//! counters are the interface's own.

use std::sync::Arc;

use weir_acl::{Acl, Action, NO_RULE, RuleIndex};
use weir_ring::counter::Counter;

/// A list, or several one after the other, ready to be asked.
pub struct FilterList {
    /// The classifier.
    acl: Acl,
    /// The term of each rule.
    terms: Box<[u32]>,
    /// What each term says.
    actions: Box<[Action]>,
}

impl FilterList {
    /// A list of terms, each with the rules it stands for, in order. See [`Acl::build`] for what that costs.
    ///
    /// # Errors
    /// As [`Acl::build`].
    pub fn build(terms: impl IntoIterator<Item = (Action, Vec<weir_acl::Rule>)>) -> Result<FilterList, weir_acl::BuildError> {
        let (mut rules, mut places, mut actions) = (Vec::new(), Vec::new(), Vec::new());
        for (action, of_term) in terms {
            places.extend(std::iter::repeat_n(actions.len() as u32, of_term.len()));
            rules.extend(of_term);
            actions.push(action);
        }
        Ok(FilterList { acl: Acl::build(&rules)?, terms: places.into(), actions: actions.into() })
    }

    /// How many terms there are.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.actions.len()
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

    /// The term of a rule, the number of terms standing for none, and whether it permits; what no term
    /// matches is denied.
    #[inline(always)]
    fn judge(&self, rule: RuleIndex) -> (usize, bool) {
        let none = (self.actions.len(), false);
        if rule == NO_RULE {
            return none;
        }
        let Some(&term) = self.terms.get(rule as usize) else { return none };
        (term as usize, self.actions.get(term as usize) == Some(&Action::Permit))
    }
}

impl std::fmt::Debug for FilterList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilterList").field("facts", &self.facts()).finish_non_exhaustive()
    }
}

/// What a term met in one worker.
#[derive(Debug, Default)]
struct Hits {
    packets: Counter,
    bytes: Counter,
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
        let (term, permits) = self.list.judge(rule);
        if let Some(hits) = self.counters.0.get(worker).and_then(|block| block.get(term)) {
            hits.packets.add(1);
            hits.bytes.add(bytes as u64);
        }
        permits
    }
}
