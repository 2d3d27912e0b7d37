//! Counters: what happened at each node, in total, and to whom.
//!
//! Each block has one writer, its worker, and lies in cache lines of its own. Readers add up.

use std::sync::Arc;

use weir_ring::counter::Counter;

use crate::drops::COUNT;
use crate::{DropReason, NodeSpec};

/// What one node did in one worker.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct NodeCounters {
    /// Vectors handed to the node.
    pub calls: Counter,
    /// Packets in them.
    pub packets: Counter,
    /// Clocks of the time stamp counter spent in it, moving the packets on included.
    pub clocks: Counter,
}

/// The balance of one worker: `input + originated + replicated = output + dropped + consumed + held`.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Totals {
    /// Packets that came in from ports.
    pub input: Counter,
    /// Packets that this router made itself.
    pub originated: Counter,
    /// Copies made by replication.
    pub replicated: Counter,
    /// Packets that ports took to send.
    pub output: Counter,
    /// Packets dropped, for whatever reason.
    pub dropped: Counter,
    /// Packets for this router itself.
    pub consumed: Counter,
    /// Packets waiting in hold queues now (a level, not a sum).
    pub held: Counter,
}

/// All counters of one worker that do not belong to an interface.
#[derive(Debug)]
pub struct WorkerCounters {
    /// One block a node, in the graph's order.
    pub nodes: Box<[NodeCounters]>,
    /// The balance.
    pub totals: Totals,
    /// Drops of packets whose interface no longer exists.
    pub orphans: DropCounters,
    /// Events for the control side that were lost because its ring was full.
    pub events_lost: Counter,
    /// Trace steps that were lost because their ring was full.
    pub trace_lost: Counter,
}

/// The number of no place.
const NO_PLACE: u16 = u16::MAX;

/// Which (node, reason) pairs exist, and where each is counted.
#[derive(Debug)]
pub struct DropMap {
    pairs: Vec<(&'static str, DropReason)>,
    /// Per node: reason number to place, [`NO_PLACE`] for none.
    places: Vec<[u16; COUNT]>,
}

impl DropMap {
    pub(crate) fn new(specs: &[NodeSpec]) -> DropMap {
        let mut pairs = Vec::new();
        let mut places = Vec::new();
        for spec in specs {
            let mut row = [NO_PLACE; COUNT];
            for &reason in spec.reasons.iter().chain(&[DropReason::LoopLimit]) {
                if row[reason as usize] == NO_PLACE {
                    row[reason as usize] = pairs.len() as u16;
                    pairs.push((spec.name, reason));
                }
            }
            places.push(row);
        }
        assert!(
            pairs.len() < usize::from(NO_PLACE),
            "drop places are numbered in 16 bits"
        );
        DropMap { pairs, places }
    }

    /// The pairs in counting order.
    #[must_use]
    pub fn pairs(&self) -> &[(&'static str, DropReason)] {
        &self.pairs
    }

    /// A fresh block of counters, one a pair.
    #[must_use]
    pub fn counters(&self) -> DropCounters {
        DropCounters(
            (0..self.pairs.len().next_multiple_of(8))
                .map(|_| Counter::default())
                .collect(),
        )
    }

    /// Where `reason` at `node` is counted; undeclared reasons count as the node's loop limit, which
    /// every node has (and are a bug: debug builds stop).
    #[inline]
    pub(crate) fn place(&self, node: usize, reason: DropReason) -> usize {
        let Some(row) = self.places.get(node) else {
            return 0;
        };
        let place = row[reason as usize];
        debug_assert_ne!(place, NO_PLACE, "node {node} does not declare {reason:?}");
        if place == NO_PLACE {
            row[DropReason::LoopLimit as usize] as usize
        } else {
            place as usize
        }
    }
}

/// Drop counters of one interface in one worker, laid out by a [`DropMap`].
#[derive(Debug)]
pub struct DropCounters(Box<[Counter]>);

impl DropCounters {
    /// The count at `place`.
    #[must_use]
    pub fn get(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, Counter::get)
    }

    #[inline]
    pub(crate) fn add(&self, place: usize, n: u64) {
        if let Some(counter) = self.0.get(place) {
            counter.add(n);
        }
    }

    /// All of them together.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }
}

impl WorkerCounters {
    pub(crate) fn new(nodes: usize, map: &DropMap) -> Arc<WorkerCounters> {
        Arc::new(WorkerCounters {
            nodes: (0..nodes).map(|_| NodeCounters::default()).collect(),
            totals: Totals::default(),
            orphans: map.counters(),
            events_lost: Counter::default(),
            trace_lost: Counter::default(),
        })
    }
}
