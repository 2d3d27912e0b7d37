//! Those who look.
//!
//! A tap sees shared references at a named point. It can ask for packets to be marked; the graph sets the mark,
//! and tells the tap of the worker in which the packet ends what became of it. One tap of a graph may mark.
//! Vectors know whether they hold a marked packet, so that telling costs nothing where there is none.

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
    /// Whether no port feeds that interface: its packets came in by another one, where taps may have seen them, too, or
    /// leave by another.
    pub inner: bool,
    /// Whether any packet of the vector may be marked.
    pub any_marked: bool,
    /// Packets that went by the tap on this interface since the start, this vector's included.
    pub seen: u64,
    /// What is left of the packets that the tap allowed to go by unseen.
    pub unused: u64,
}

/// What became of a marked packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A driver took it for this interface.
    Sent(Departure),
    /// Copies of it went to so many places.
    Copied(u32),
    /// This router itself kept it, or turned it into its answer.
    Kept,
    /// It was dropped.
    Dropped {
        /// The node's number in the graph.
        node: u16,
        /// The reason.
        reason: DropReason,
    },
}

/// How a marked packet left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The interface whose driver took it.
    pub interface: u32,
    /// How many of `head` are the packet's.
    pub len: u16,
    /// Its first bytes as they left: addresses, tags, labels.
    pub head: [u8; DEPARTURE_HEAD],
}

/// Bytes of a leaving packet that a [`Departure`] keeps: one cache line.
pub const DEPARTURE_HEAD: usize = 64;

impl Departure {
    /// Of a packet about to leave.
    pub(crate) fn of(interface: u32, packet: &Pkt) -> Departure {
        let mut head = [0; DEPARTURE_HEAD];
        let len = packet.len().min(DEPARTURE_HEAD);
        if let (Some(to), Some(from)) = (head.get_mut(..len), packet.data().get(..len)) {
            to.copy_from_slice(from);
        }
        Departure { interface, len: len as u16, head }
    }

    /// The bytes that are there.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.head.get(..self.len as usize).unwrap_or(&[])
    }
}

/// What stands before a tap and lets by what it need not see.
///
/// Each interface has what is left of its own allowance beside its own count. A vector that goes by touches one
/// cache line, which the interfaces with the lowest numbers share.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Gate {
    near: [Lane; NEAR],
    /// Those of interfaces with higher numbers.
    far: Vec<Lane>,
}

/// An interface as a gate sees it.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// Packets that may still go by.
    left: u64,
    /// Packets that came.
    seen: u64,
}

/// Interfaces whose lanes lie in the gate itself.
const NEAR: usize = 4;
/// Interfaces with lower numbers have their place from the start; they are numbered from 1 on.
const USUAL_INTERFACES: usize = 1024;

impl Default for Gate {
    /// Nothing may go by yet.
    fn default() -> Gate {
        Gate { near: [Lane::default(); NEAR], far: vec![Lane::default(); USUAL_INTERFACES] }
    }
}

impl Gate {
    /// A vector comes: whether the tap has to see it.
    #[inline(always)]
    #[must_use]
    pub fn is_due(&mut self, interface: u32, count: usize) -> bool {
        let place = interface as usize;
        let lane = if place < NEAR { &mut self.near[place] } else { self.far_lane(place - NEAR) };
        lane.seen += count as u64;
        if lane.left < count as u64 {
            return true;
        }
        lane.left -= count as u64;
        false
    }

    #[inline]
    fn far_lane(&mut self, place: usize) -> &mut Lane {
        if place >= self.far.len() {
            self.grow(place);
        }
        &mut self.far[place]
    }

    #[cold]
    fn grow(&mut self, place: usize) {
        // Doubled, so that it is asked for rarely.
        self.far.resize((place + 1).next_power_of_two(), Lane::default());
    }

    fn lane(&self, interface: u32) -> Lane {
        let place = interface as usize;
        self.near.get(place).or_else(|| self.far.get(place.checked_sub(NEAR)?)).copied().unwrap_or_default()
    }

    /// What [`Look::seen`] and [`Look::unused`] tell.
    #[must_use]
    pub fn state(&self, interface: u32) -> (u64, u64) {
        let lane = self.lane(interface);
        (lane.seen, lane.left)
    }

    /// Asks the tap how many may go by on an interface from now on.
    pub fn ask<W: World>(&mut self, tap: &mut dyn Tap<W>, interface: u32) {
        let place = interface as usize;
        let lane = if place < NEAR { &mut self.near[place] } else { self.far_lane(place - NEAR) };
        lane.left = tap.allow(interface, lane.left);
    }

    /// Asks it for every interface on which something came.
    pub fn ask_all<W: World>(&mut self, tap: &mut dyn Tap<W>) {
        for (interface, lane) in self.near.iter_mut().chain(&mut self.far).enumerate() {
            if lane.seen > 0 {
                lane.left = tap.allow(interface as u32, lane.left);
            }
        }
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

    /// Takes out what was asked for: places and slots.
    pub fn drain(&mut self) -> impl Iterator<Item = (u16, u32)> {
        self.0.drain(..)
    }
}

/// An observer of packets.
pub trait Tap<W: World>: Send {
    /// The tap's name, for `show`.
    fn name(&self) -> &'static str;

    /// Looks at a vector.
    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], marks: &mut Marks);

    /// Whether it asks for marks and wants to know what becomes of marked packets; one tap of a graph may.
    fn marks(&self) -> bool {
        false
    }

    /// How many packets of an interface may go by before it wants to see a vector again; asked after each look,
    /// with what is left of the last answer. Vectors that fit into it are counted
    /// ([`Look::seen`], [`Look::unused`]) and not shown: a tap that is not due costs no call.
    fn allow(&mut self, _interface: u32, _unused: u64) -> u64 {
        0
    }

    /// What became of a packet that was marked with `slot`, maybe by the tap of another worker: told once, where
    /// its fate is known. A packet that waits for an answer has none yet.
    fn fate(&mut self, _slot: u32, _fate: &Fate) {}

    /// Called every now and then: time for what is not per packet. `true` when it wants to be asked anew how
    /// much may go by, for all interfaces.
    fn tick(&mut self, _now: u64) -> bool {
        false
    }
}
