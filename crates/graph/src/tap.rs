//! Those who look.
//!
//! A tap sees shared references at a named point. It can ask for packets to be marked at rx; the
//! graph sets the mark, and whoever completes marked packets at tx or drop finds its slot there.

use weir_buf::Pkt;

use crate::{DropReason, World};

/// Where a tap looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// As the port delivered it.
    Rx,
    /// As it is about to leave.
    Tx,
    /// About to be dropped at a node, for a reason.
    Drop {
        /// The node's number in the graph.
        node: u16,
        /// The reason.
        reason: DropReason,
    },
}

/// What surrounds a look.
pub struct Look<'a, W: World> {
    /// The tables as of this turn.
    pub world: &'a W,
    /// Number of the worker.
    pub worker: usize,
    /// Nanoseconds of the router's clock, read once a turn.
    pub now: u64,
    /// Where.
    pub point: Point,
    /// The interface: the one of arrival at rx and drop, the one of departure at tx. All packets of
    /// the vector share it.
    pub interface: u32,
    /// Whether any packet of the vector may be marked.
    pub any_marked: bool,
    /// Packets that went by the tap on this interface since the start, this vector's included.
    pub seen: u64,
    /// What is left of the packets that the tap allowed to go by unseen.
    pub unused: u64,
}

/// What stands before a tap and lets by what it need not see.
///
/// A vector that goes by touches one cache line of it: what is left, and the counts of the interfaces
/// with the lowest numbers, share that line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Gate {
    /// Packets that may still go by.
    left: u64,
    /// By interface: packets that came.
    seen: [u64; NEAR],
    /// Those of interfaces with higher numbers.
    seen_far: Vec<u64>,
}

/// Interfaces whose counts lie beside what is left.
const NEAR: usize = 7;
/// Interfaces with lower numbers have their place from the start; they are numbered from 1 on.
const USUAL_INTERFACES: usize = 1024;

impl Default for Gate {
    /// Nothing may go by yet.
    fn default() -> Gate {
        Gate { left: 0, seen: [0; NEAR], seen_far: vec![0; USUAL_INTERFACES] }
    }
}

impl Gate {
    /// A vector comes: whether the tap has to see it.
    #[inline(always)]
    #[must_use]
    pub fn is_due(&mut self, interface: u32, count: usize) -> bool {
        match self.seen.get_mut(interface as usize) {
            Some(seen) => *seen += count as u64,
            None => self.count_far(interface as usize - NEAR, count as u64),
        }
        if self.left < count as u64 {
            return true;
        }
        self.left -= count as u64;
        false
    }

    #[inline(never)]
    fn count_far(&mut self, place: usize, count: u64) {
        if place >= self.seen_far.len() {
            // Doubled, so that it is asked for rarely.
            self.seen_far.resize((place + 1).next_power_of_two(), 0);
        }
        self.seen_far[place] += count;
    }

    /// What [`Look::seen`] and [`Look::unused`] tell.
    #[must_use]
    pub fn state(&self, interface: u32) -> (u64, u64) {
        (self.seen_on(interface as usize).unwrap_or(0), self.left)
    }

    fn seen_on(&self, interface: usize) -> Option<u64> {
        self.seen.get(interface).or_else(|| self.seen_far.get(interface.checked_sub(NEAR)?)).copied()
    }

    /// Asks the tap how many may go by from now on.
    pub fn ask<W: World>(&mut self, tap: &mut dyn Tap<W>) {
        self.left = tap.allow(self.left);
    }
}

/// Marks that a tap asks for: place in the vector, and the slot to write.
#[derive(Debug, Default)]
pub struct Marks(pub(crate) Vec<(u16, u32)>);

impl Marks {
    /// Asks for packet `place` of the vector to be marked with `slot`.
    pub fn mark(&mut self, place: usize, slot: u32) {
        self.0.push((place as u16, slot));
    }
}

/// An observer of packets.
pub trait Tap<W: World>: Send {
    /// The tap's name, for `show`.
    fn name(&self) -> &'static str;

    /// Looks at a vector.
    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], marks: &mut Marks);

    /// How many packets may go by before it wants to see a vector again; asked after each look and each
    /// tick, with what is left of the last answer. Vectors that fit into it are counted
    /// ([`Look::seen`], [`Look::unused`]) and not shown: a tap that is not due costs no call.
    fn allow(&mut self, _unused: u64) -> u64 {
        0
    }

    /// Called every now and then: time for what is not per packet.
    fn tick(&mut self, _now: u64) {}
}
