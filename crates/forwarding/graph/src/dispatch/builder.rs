//! Collecting nodes, stages and taps, and building the graph of a worker out of them: once, on the control thread.

use std::sync::Arc;

use weir_buf::{VECTOR, Vector};
use weir_ring::spsc::Producer;

use super::{Compiled, Graph, MOST_TAPS, Slot, Step, looks};
use crate::counters::{DropMap, WorkerCounters};
use crate::hold::{HoldLimits, Holds};
use crate::node::{Node, NodeSpec, Scratch, World};
use crate::tap::Tap;
use crate::trace::{TraceStep, Tracer};
use crate::verdict::{Next, Verdict};

/// Why a graph could not be built: a mistake in the catalogue.
#[derive(Debug, PartialEq, Eq)]
pub enum GraphError {
    /// A node names a next node that does not exist.
    UnknownNext {
        /// The node.
        node: &'static str,
        /// What it names.
        next: &'static str,
    },
    /// More than 64 nodes, more than 8 taps, or more than 32 next nodes of one node.
    TooMany,
}

impl std::fmt::Display for GraphError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GraphError::UnknownNext { node, next } => write!(
                f,
                "node {node} names {next} as a next node, which does not exist"
            ),
            GraphError::TooMany => write!(f, "a graph has at most 64 nodes and {MOST_TAPS} taps"),
        }
    }
}

impl std::error::Error for GraphError {}

/// Collects nodes in the order of a packet's way.
pub struct GraphBuilder<W: World> {
    specs: Vec<NodeSpec>,
    steps: Vec<Option<Box<dyn Step<W>>>>,
    taps: Vec<Box<dyn Tap<W>>>,
    outputs: Vec<&'static str>,
    common: Vec<&'static str>,
    inner: [Vec<&'static str>; 3],
    limits: HoldLimits,
}

impl<W: World> Default for GraphBuilder<W> {
    fn default() -> Self {
        GraphBuilder {
            specs: Vec::new(),
            steps: Vec::new(),
            taps: Vec::new(),
            outputs: Vec::new(),
            common: Vec::new(),
            inner: Default::default(),
            limits: HoldLimits::default(),
        }
    }
}

impl<W: World> GraphBuilder<W> {
    /// Adds a node behind those added before.
    #[must_use]
    pub fn node<N: Node<W> + 'static>(mut self, node: N) -> Self {
        self.specs.push(N::SPEC);
        self.steps.push(Some(Box::new(Compiled(node))));
        self
    }

    /// Adds a stage that the engine runs itself: a name, counters and drop reasons.
    #[must_use]
    pub fn stage(mut self, spec: NodeSpec) -> Self {
        self.specs.push(spec);
        self.steps.push(None);
        self
    }

    /// Adds a tap; its number is how many were added before.
    #[must_use]
    pub fn tap(mut self, tap: Box<dyn Tap<W>>) -> Self {
        self.taps.push(tap);
        self
    }

    /// Sets how much may wait in hold queues.
    #[must_use]
    pub fn hold_limits(mut self, limits: HoldLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The catalogue so far.
    #[must_use]
    pub fn specs(&self) -> &[NodeSpec] {
        &self.specs
    }

    /// Names the nodes that stand before the drivers or in their place: what leaves by an interface goes to
    /// the one that [`World::output`] tells. Such a node sends on to port-tx what a driver shall take.
    #[must_use]
    pub fn outputs(mut self, nodes: &[&'static str]) -> Self {
        self.outputs = nodes.to_vec();
        self
    }

    /// Names the nodes that every node can send packets to, beside those of its own list, in the order of
    /// [`crate::Next::common`].
    #[must_use]
    pub fn common_nexts(mut self, nodes: &[&'static str]) -> Self {
        self.common = nodes.to_vec();
        self
    }

    /// Names the nodes at which taps look at inner interfaces, which no port feeds: those that find packets to be of one,
    /// those that only get such packets in, and those that see them off by one.
    #[must_use]
    pub fn inner(
        mut self,
        finders: &[&'static str],
        intakes: &[&'static str],
        exits: &[&'static str],
    ) -> Self {
        self.inner = [finders, intakes, exits].map(<[_]>::to_vec);
        self
    }

    /// Which (node, reason) pairs this graph counts.
    #[must_use]
    pub fn drop_map(&self) -> DropMap {
        DropMap::new(&self.specs)
    }

    /// Builds the graph of one worker.
    ///
    /// # Errors
    /// A next node that does not exist; too many nodes.
    pub fn build(self, worker: usize, trace: Producer<TraceStep>) -> Result<Graph<W>, GraphError> {
        if self.specs.len() > 64 || self.taps.len() > MOST_TAPS {
            return Err(GraphError::TooMany);
        }
        let map = Arc::new(DropMap::new(&self.specs));
        let counters = WorkerCounters::new(self.specs.len(), &map);
        let place = |node: &'static str, next: &'static str| {
            self.specs
                .iter()
                .position(|spec| spec.name == next)
                .map(|place| place as u8)
                .ok_or(GraphError::UnknownNext { node, next })
        };
        let mut slots = Vec::with_capacity(self.specs.len());
        let common = self
            .common
            .iter()
            .map(|&next| place("common", next))
            .collect::<Result<Vec<_>, _>>()?;
        for (spec, step) in self.specs.iter().zip(self.steps) {
            let mut nexts = spec
                .nexts
                .iter()
                .map(|&next| place(spec.name, next))
                .collect::<Result<Vec<_>, _>>()?;
            if nexts.len() > usize::from(Next::COMMON) {
                return Err(GraphError::TooMany);
            }
            nexts.resize(usize::from(Next::COMMON), 0);
            nexts.extend(&common);
            slots.push(Slot {
                step,
                queue: Vector::with_capacity(2 * VECTOR),
                nexts,
            });
        }
        let output_nodes = self
            .outputs
            .iter()
            .map(|&next| place("outputs", next))
            .collect::<Result<_, _>>()?;
        let bits = |nodes: &[&'static str]| {
            nodes
                .iter()
                .try_fold(0, |bits, &node| Ok(bits | 1 << place("inner", node)?))
        };
        let [finders, intakes, exits] = &self.inner;
        let inner = looks::Inner {
            finders: bits(finders)?,
            intakes: bits(intakes)?,
            exits: bits(exits)?,
        };
        Ok(Graph {
            specs: self.specs,
            slots,
            inner,
            output_nodes,
            pending: 0,
            spare: Vector::with_capacity(2 * VECTOR),
            verdicts: Box::new([Verdict::CONSUME; VECTOR]),
            scratch: Scratch::default(),
            holds: Holds::new(self.limits),
            outputs: Vec::new(),
            leaving: Vec::with_capacity(64),
            counters,
            map,
            gates: Default::default(),
            taps: looks::Taps::new(self.taps),
            tracer: Tracer::new(trace),
            one_step: false,
            worker,
        })
    }
}
