//! What meters go by, and what passes between a worker's meter and the control side.
//!
//! Settings are shared by all workers and change while they run. Tables are made and freed by the control side, since that
//! takes long: it puts one into the worker's mailbox, and finds there those that the meter has emptied. The meter looks
//! into the mailbox a hundred times a second and never waits for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use weir_ring::Padded;
use weir_ring::counter::Counter;

use super::question::{Answer, Question};
use crate::flows::{Selection, Table};

/// How packets of an interface are metered in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metered {
    /// What separates flows.
    pub selection: Selection,
    /// One packet in so many is metered; 0 counts as 1. Interfaces with different rates need selections of different record
    /// sets, so that no flow has packets of both.
    pub sampling: u32,
}

impl From<Selection> for Metered {
    /// Every packet.
    fn from(selection: Selection) -> Metered {
        Metered {
            selection,
            sampling: 1,
        }
    }
}

/// What is metered, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterPlan {
    /// What comes in, by the number of the interface.
    pub rx: BTreeMap<u32, Metered>,
    /// What leaves.
    pub tx: BTreeMap<u32, Metered>,
    /// Nanoseconds after which a flow that goes on is reported.
    pub active: u64,
    /// Nanoseconds without a packet after which a flow is over.
    pub idle: u64,
}

impl Default for MeterPlan {
    /// Nothing.
    fn default() -> MeterPlan {
        MeterPlan {
            rx: BTreeMap::new(),
            tx: BTreeMap::new(),
            active: 60_000_000_000,
            idle: 15_000_000_000,
        }
    }
}

/// The plan as workers see it.
#[derive(Debug, Default)]
pub struct MeterSettings {
    generation: AtomicU32,
    plan: RwLock<Arc<MeterPlan>>,
}

impl MeterSettings {
    /// Changes the plan; meters see it with their next tick.
    pub fn set(&self, plan: MeterPlan) {
        *self.plan.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> Arc<MeterPlan> {
        self.plan
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The plan if it is another one than of `seen`, which is its number; without waiting.
    pub(super) fn news(&self, seen: &mut u32) -> Option<Arc<MeterPlan>> {
        let generation = self.generation.load(Ordering::Acquire);
        if generation == *seen {
            return None;
        }
        let plan = self.plan.try_read().ok()?.clone();
        *seen = generation;
        Some(plan)
    }
}

/// What a meter counts beside what its table does, readable at any time.
#[derive(Debug, Default)]
pub struct MeterCounters {
    /// Packets that should have been metered and were not: there was no table.
    pub ignored_packets: Counter,
    /// Octets of their frames.
    pub ignored_octets: Counter,
    /// Packets that were passed over by sampling.
    pub passed_over: Counter,
    /// Packets whose records wait with them for an answer.
    pub waiting: Counter,
}

/// What lies in a mailbox.
#[derive(Default)]
pub(super) struct Mail {
    /// For the meter: a table, or that it shall have none.
    pub(super) table: Option<Option<Box<Table>>>,
    pub(super) questions: Vec<Question>,
    /// For the control side.
    pub(super) answers: Vec<Answer>,
    pub(super) emptied: Vec<Table>,
}

/// A mailbox between a meter and the control side.
#[derive(Default)]
pub(super) struct Mailbox {
    /// Whether there is anything for the meter.
    pub(super) has_news: AtomicBool,
    /// All flows shall leave: the router stops.
    pub(super) ending: AtomicBool,
    /// And they have.
    pub(super) ended: AtomicBool,
    pub(super) mail: Mutex<Mail>,
    pub(super) counters: Arc<Padded<MeterCounters>>,
}

/// The control side's end of a worker's meter.
#[derive(Clone)]
pub struct MeterControl(pub(super) Arc<Mailbox>);

impl std::fmt::Debug for MeterControl {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("MeterControl")
    }
}

impl MeterControl {
    fn put(&self, put: impl FnOnce(&mut Mail)) {
        put(&mut self.0.mail.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.has_news.store(true, Ordering::Release);
    }

    /// Gives the meter another table, or takes it away; the flows in the one it has are exported, reason "forced".
    pub fn give(&self, table: Option<Box<Table>>) {
        self.put(|mail| mail.table = Some(table));
    }

    /// Asks for flows.
    pub fn ask(&self, question: Question) {
        self.put(|mail| mail.questions.push(question));
    }

    /// Takes an answer, if there is one to this question.
    #[must_use]
    pub fn answer(&self, number: u64) -> Option<Answer> {
        let mut mail = self.0.mail.lock().unwrap_or_else(PoisonError::into_inner);
        let place = mail
            .answers
            .iter()
            .position(|answer| answer.number == number)?;
        Some(mail.answers.swap_remove(place))
    }

    /// Frees tables that the meter has emptied, and answers that nobody fetched; how many tables those were.
    pub fn tidy(&self) -> usize {
        let (tables, answers) = {
            let mut mail = self.0.mail.lock().unwrap_or_else(PoisonError::into_inner);
            let old = mail.answers.len().saturating_sub(16);
            (
                std::mem::take(&mut mail.emptied),
                mail.answers.drain(..old).collect::<Vec<_>>(),
            )
        };
        drop(answers);
        tables.len()
    }

    /// All flows shall be exported, reason "forced"; no packet comes any more.
    pub fn end(&self) {
        self.0.ending.store(true, Ordering::Release);
    }

    /// Whether they are.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Acquire)
    }

    /// What it counts.
    #[must_use]
    pub fn counters(&self) -> &Arc<Padded<MeterCounters>> {
        &self.0.counters
    }
}
