//! What a node is, and what it is given.

use std::sync::Arc;

use weir_buf::{Pkt, PktCache};
use weir_ring::spsc::Producer;

use crate::counters::WorkerCounters;
use crate::{DropCounters, DropReason, HoldKey, Next, Outcome, Verdict};

/// The tables that nodes read and the events they send; the graph itself only needs to know where
/// to count drops and which taps look.
pub trait World: Send + Sync + 'static {
    /// What a node may tell the control side.
    type Event: Send + 'static;

    /// The drop counters of an interface in a worker.
    fn drops(&self, interface: u32, worker: usize) -> Option<&DropCounters>;

    /// Which taps look at what comes in on an interface: bit `n` for the graph's tap `n`.
    fn rx_taps(&self, interface: u32) -> u32;

    /// Which taps look at what goes out of an interface.
    fn tx_taps(&self, interface: u32) -> u32;

    /// Whether taps look at any interface that no port feeds.
    fn has_inner_taps(&self) -> bool {
        false
    }

    /// The port that a packet came in by, where its interface is a bond of that and others; else its interface.
    fn received_on(&self, packet: &Pkt) -> u32 {
        packet.interface()
    }

    /// Which taps look at what is dropped.
    fn drop_taps(&self) -> u32;

    /// The node that takes what leaves by an interface: a number in the graph's list of output nodes
    /// (`GraphBuilder::outputs`), counted from 1; 0 for a port, whose driver takes it.
    fn output(&self, interface: u32) -> u8;
}

/// A node's entry in the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct NodeSpec {
    /// Name of the node, its file and its counters.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// The nodes that it can send packets to, in the order of [`Next`].
    pub nexts: &'static [&'static str],
    /// The reasons for which it can drop.
    pub reasons: &'static [DropReason],
}

/// A step on a packet's way.
pub trait Node<W: World>: Send {
    /// The catalogue entry.
    const SPEC: NodeSpec;

    /// Gives each of the packets (1 to 256) a verdict: all the same one, or each its own in
    /// `verdicts`, which is as long as `packets`. Mark the implementation `#[inline(always)]`: the
    /// graph compiles it for each instruction set level.
    fn process(
        &mut self,
        cx: &mut Cx<'_, W>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome;
}

/// What surrounds a node while it works.
pub struct Cx<'a, W: World> {
    /// The tables as of this turn.
    pub world: &'a W,
    /// Number of the worker.
    pub worker: usize,
    /// Nanoseconds of the router's clock, read once a turn.
    pub now: u64,
    pub(crate) cache: &'a mut PktCache,
    pub(crate) events: &'a mut Producer<W::Event>,
    pub(crate) event_sent: &'a mut bool,
    pub(crate) counters: &'a Arc<WorkerCounters>,
    pub(crate) scratch: &'a mut Scratch,
    /// The numbers of the node's own next nodes.
    pub(crate) nexts: &'a [u8],
    pub(crate) one_step: bool,
}

/// What nodes leave for the graph beside verdicts; emptied after each node.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) originated: Vec<(Pkt, Verdict)>,
    pub(crate) holds: Vec<(HoldKey, Next)>,
    /// Targets of all lists, one after the other.
    pub(crate) targets: Vec<(Verdict, u32)>,
    /// Start and end of each list in `targets`.
    pub(crate) lists: Vec<(u32, u32)>,
}

impl<W: World> Cx<'_, W> {
    /// A fresh packet to originate; `None` when the pool is empty.
    #[inline]
    #[must_use]
    pub fn alloc(&mut self) -> Option<Pkt> {
        self.cache.alloc()
    }

    /// Gives back a packet that was allocated here and is not needed after all.
    pub fn free(&mut self, packet: Pkt) {
        self.cache.free(packet);
    }

    /// Sends a packet that this node made on to one of its next nodes.
    pub fn originate(&mut self, packet: Pkt, next: Next) {
        self.scratch.originated.push((packet, Verdict::to(next)));
    }

    /// Sends a packet that this node made out of the interface in its `aux` word.
    pub fn originate_out(&mut self, packet: Pkt) {
        self.scratch.originated.push((packet, Verdict::OUT));
    }

    /// The verdict that keeps a packet until `key` is released, then passes it to `next`.
    pub fn hold(&mut self, key: HoldKey, next: Next) -> Verdict {
        let place = self.scratch.holds.len() as u16;
        self.scratch.holds.push((key, next));
        Verdict::hold(place)
    }

    /// The verdict that copies a packet to each of `targets`: an own next node or
    /// [`Verdict::OUT`], and the `aux` word the copy gets.
    pub fn replicate(&mut self, targets: impl IntoIterator<Item = (Verdict, u32)>) -> Verdict {
        let from = self.scratch.targets.len() as u32;
        self.scratch.targets.extend(targets);
        let place = self.scratch.lists.len() as u16;
        self.scratch
            .lists
            .push((from, self.scratch.targets.len() as u32));
        Verdict::replicate(place)
    }

    /// Whether nodes do nothing but their own step, so that each of the next nodes is seen at work.
    #[inline(always)]
    #[must_use]
    pub fn is_one_step(&self) -> bool {
        self.one_step
    }

    /// Notes that this node did the work of a next one for so many packets, in its own pass over them. They are
    /// counted there; the clocks stay where they were spent.
    #[inline(always)]
    pub fn did_for(&mut self, next: Next, packets: usize) {
        let node = self
            .nexts
            .get(next.0 as usize)
            .and_then(|&node| self.counters.nodes.get(node as usize));
        if let Some(counters) = node.filter(|_| packets > 0) {
            counters.calls.add(1);
            counters.packets.add(packets as u64);
        }
    }

    /// Tells the control side. A full ring is a counted loss.
    pub fn event(&mut self, event: W::Event) {
        *self.event_sent = true;
        if self.events.push(event).is_err() {
            self.counters.events_lost.add(1);
        }
    }
}
