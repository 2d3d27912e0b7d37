//! Access lists as workers see them: the classifier with what its rules mean, and a counter a rule.
//!
//! A [`Filter`] is what one interface is bound to in one direction: one list, or several one after the
//! other. The classifier (`weir_acl`) knows rules, which are terms with their prefix lists written out; what is
//! permitted and counted is terms. The list is shared by all interfaces that are bound to the same, the
//! counters are the interface's own.

use std::sync::Arc;

use weir_acl::{Acl, Action, Answer, Upper};
use weir_ring::counter::Counter;

/// A list, or several one after the other, ready to be asked.
pub struct FilterList {
    /// The classifier, whose answers are judgements.
    acl: Acl,
    terms: usize,
    fragments: Fragments,
}

/// What becomes of later fragments, which have no ports (RFC 1858).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragments {
    /// They meet the terms by addresses and protocol alone.
    #[default]
    Match,
    /// They are dropped, and counted behind the last term.
    Drop,
    /// They pass, and no term counts them.
    Permit,
}

/// A rule's term, the uppermost bit saying that it denies: so the answer of a term that permits is its number, and small as a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Judgement(pub(crate) Answer);

impl Judgement {
    const DENIES: Answer = 1 << 31;

    fn new(term: usize, action: Action) -> Judgement {
        Judgement(
            term as u32 & !Judgement::DENIES
                | if action == Action::Permit {
                    0
                } else {
                    Judgement::DENIES
                },
        )
    }

    /// What no term matches is denied, and counted behind the last term.
    fn of_nothing(terms: usize) -> Judgement {
        Judgement::new(terms, Action::Deny)
    }

    #[inline(always)]
    pub(crate) fn term(self) -> usize {
        (self.0 & !Judgement::DENIES) as usize
    }

    #[inline(always)]
    pub(crate) fn permits(self) -> bool {
        self.0 & Judgement::DENIES == 0
    }
}

impl FilterList {
    /// A list of terms, each with the rules it stands for, in order. See [`Acl::build`] for what that costs.
    ///
    /// # Errors
    /// As [`Acl::build`].
    pub fn build(
        terms: impl IntoIterator<Item = (Action, Vec<weir_acl::Rule>)>,
    ) -> Result<FilterList, weir_acl::BuildError> {
        let (mut rules, mut judgements, mut count) = (Vec::new(), Vec::new(), 0);
        for (action, of_term) in terms {
            judgements.extend(std::iter::repeat_n(
                Judgement::new(count, action).0,
                of_term.len(),
            ));
            rules.extend(of_term);
            count += 1;
        }
        let acl = Acl::build(&rules)?.with_answers(judgements, Judgement::of_nothing(count).0);
        Ok(FilterList {
            acl,
            terms: count,
            fragments: Fragments::Match,
        })
    }

    /// The same with another treatment of later fragments.
    #[must_use]
    pub fn with_fragments(self, fragments: Fragments) -> FilterList {
        FilterList { fragments, ..self }
    }

    /// What becomes of later fragments.
    #[must_use]
    pub fn fragments(&self) -> Fragments {
        self.fragments
    }

    /// What becomes of a later fragment whatever the terms say: whether it passes.
    #[inline(always)]
    pub(crate) fn fate_of_fragment(&self, upper: Upper) -> Option<bool> {
        match self.fragments {
            Fragments::Match => None,
            _ if upper != Upper::LaterFragment => None,
            fate => Some(fate == Fragments::Permit),
        }
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

    /// Whether this is the judgement of what no term matches.
    #[inline(always)]
    pub(crate) fn is_of_nothing(&self, judgement: Judgement) -> bool {
        judgement == Judgement::of_nothing(self.terms)
    }
}

impl std::fmt::Debug for FilterList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilterList")
            .field("facts", &self.facts())
            .finish_non_exhaustive()
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
        FilterCounters(
            (0..workers)
                .map(|_| (0..=terms).map(|_| Hits::default()).collect())
                .collect(),
        )
    }

    /// Packets and bytes of a term, all workers together; `term` may be the number of terms, for what no
    /// term matched.
    #[must_use]
    pub fn of(&self, term: usize) -> (u64, u64) {
        let hits = self.0.iter().filter_map(|block| block.get(term));
        hits.fold((0, 0), |(packets, bytes), hits| {
            (packets + hits.packets.get(), bytes + hits.bytes.get())
        })
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
    /// Counts a later fragment that passes or is dropped without regard to the terms.
    #[cold]
    pub(crate) fn settle_fragment(&self, worker: usize, passes: bool, bytes: usize) -> bool {
        if !passes {
            let _ = self.settle(worker, Judgement::of_nothing(self.list.terms), bytes);
        }
        passes
    }

    /// Counts a packet that met a rule; whether it may go on.
    #[inline(always)]
    pub(crate) fn settle(&self, worker: usize, judgement: Judgement, bytes: usize) -> bool {
        if let Some(hits) = self.hits(worker).get(judgement.term()) {
            hits.count(bytes);
        }
        judgement.permits()
    }

    /// What the terms met in a worker.
    #[inline(always)]
    pub(crate) fn hits(&self, worker: usize) -> &[Hits] {
        self.counters.0.get(worker).map_or(&[], |block| block)
    }
}
