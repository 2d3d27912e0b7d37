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

    /// Looks at a vector. A tap that is not due in this vector returns at once.
    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], marks: &mut Marks);

    /// Called once a turn: time for what is not per packet.
    fn tick(&mut self, _now: u64) {}
}
