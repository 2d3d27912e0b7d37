//! Those who look.
//!
//! A tap sees shared references at a named point ([`Tap`]). It can ask for packets to be marked ([`Marker`]); the graph sets the mark,
//! and reports the outcome to the tap of the worker in which the packet ends, while the packet is still there to be
//! inspected. Or it follows whole vectors ([`Follower`]).

use weir_buf::{Flags, Pkt};

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
    /// What is left of the packets that the tap allowed to go by unseen on this interface: less than this vector has.
    pub left: u64,
}

/// What became of a marked packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// A driver took it for this interface.
    Sent(u32),
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

/// Where packets go that may have come in before the eyes of a tap that follows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Out of an interface, if its driver takes them.
    Out {
        /// Its index.
        interface: u32,
        /// The flags that any of the packets has.
        flags: Flags,
    },
    /// They wait for an answer.
    Held,
    /// Nowhere: they were for this router.
    Kept,
    /// Nowhere, for a reason.
    Dropped(DropReason),
}

/// What stands before a tap and holds back what it need not see.
///
/// Each interface has its own allowance. A vector that the tap need not see takes its packets off and touches nothing else.
#[derive(Debug)]
pub struct Gate {
    /// Packets that the tap need not see yet, by interface.
    left: Vec<u64>,
}

/// Interfaces with lower numbers have their allowance from the start; they are numbered from 1 on.
const USUAL_INTERFACES: usize = 1024;

impl Default for Gate {
    /// The tap sees everything yet.
    fn default() -> Gate {
        Gate {
            left: vec![0; USUAL_INTERFACES],
        }
    }
}

impl Gate {
    /// The allowance of an interface, when a vector comes that the tap has to see; `None` when it need not, and the vector is
    /// taken off.
    #[inline(always)]
    #[must_use]
    pub fn due(&mut self, interface: u32, count: usize) -> Option<&mut u64> {
        let place = interface as usize;
        if place >= self.left.len() {
            self.grow(place);
        }
        let left = self.left.get_mut(place)?;
        match left.checked_sub(count as u64) {
            Some(rest) => {
                *left = rest;
                None
            }
            None => Some(left),
        }
    }

    /// Doubles, so that it is needed rarely.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, place: usize) {
        self.left.resize((place + 1).next_power_of_two(), 0);
    }

    /// Asks the tap anew for every interface.
    pub fn ask_all<W: World>(&mut self, tap: &mut dyn Tap<W>) {
        for (left, interface) in self.left.iter_mut().zip(0..) {
            *left = tap.allow(interface, *left);
        }
    }
}

/// What a tap asks for when it looks.
#[derive(Debug)]
pub struct Marks {
    /// A place in the vector, or none. Mostly there is one at most: it lies here, where no line but this one need be fetched.
    first: u16,
    /// Whether the tap wants to know what the driver took of this vector.
    awaited: bool,
    more: Vec<u16>,
}

/// No place.
const NOWHERE: u16 = u16::MAX;

impl Default for Marks {
    fn default() -> Marks {
        Marks {
            first: NOWHERE,
            awaited: false,
            more: Vec::new(),
        }
    }
}

impl Marks {
    /// Asks for packet `place` of the vector to be marked.
    #[inline(always)]
    pub fn mark(&mut self, place: usize) {
        match self.first {
            NOWHERE => self.first = place as u16,
            _ => self.mark_more(place as u16),
        }
    }

    #[inline(never)]
    fn mark_more(&mut self, place: u16) {
        self.more.push(place);
    }

    /// Requests a call with what the driver takes of a vector that is about to leave ([`Marker::left`]).
    pub fn await_driver(&mut self) {
        self.awaited = true;
    }

    /// Whether that was asked for since the last time.
    #[inline(always)]
    #[must_use]
    pub fn take_awaited(&mut self) -> bool {
        std::mem::take(&mut self.awaited)
    }

    /// Whether any are left.
    #[inline(always)]
    #[must_use]
    pub fn are_any(&self) -> bool {
        self.first != NOWHERE
    }

    /// Takes out one that was asked for.
    #[inline(always)]
    pub fn take(&mut self) -> Option<usize> {
        let place = if self.more.is_empty() {
            std::mem::replace(&mut self.first, NOWHERE)
        } else {
            self.take_more()
        };
        if place == NOWHERE {
            None
        } else {
            Some(place.into())
        }
    }

    #[inline(never)]
    fn take_more(&mut self) -> u16 {
        self.more.pop().unwrap_or(NOWHERE)
    }
}

/// An observer of packets. It may be a [`Marker`] or a [`Follower`] as well.
pub trait Tap<W: World>: Send {
    /// The tap's name, for `show`.
    fn name(&self) -> &'static str;

    /// Looks at a vector. Returns how many packets of the interface may pass before it wants to see a vector again: those that
    /// fit into it are not shown, so that a tap which is not due costs no call.
    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], marks: &mut Marks) -> u64;

    /// How many packets of an interface may pass from now on, when it wanted to be asked anew ([`Tap::tick`]); with what is left of
    /// the last answer, of interfaces that it has not seen as well.
    fn allow(&mut self, _interface: u32, left: u64) -> u64 {
        left
    }

    /// Called every now and then: time for what is not per packet. `true` when it wants to be asked anew how
    /// much may pass, for all interfaces.
    fn tick(&mut self, _now: u64) -> bool {
        false
    }

    /// Itself, if it asks for marks and gets the outcomes of marked packets; one tap of a graph may.
    fn marker(&mut self) -> Option<&mut dyn Marker> {
        None
    }

    /// Itself, if it gets the destinations of all packets that it saw come in; one tap of a graph may.
    fn follower(&mut self) -> Option<&mut dyn Follower> {
        None
    }
}

/// A tap that asks for packets to be marked, and learns what became of each.
pub trait Marker {
    /// What became of a marked packet, maybe one that the tap of another worker marked: called once, where its outcome is
    /// known, by the worker in which it ends. A packet that waits for an answer has none yet.
    fn outcome(&mut self, packet: &Pkt, outcome: PacketOutcome);

    /// A marked packet is put aside, or goes to another worker: what it shall take along ([`weir_buf::Meta::mark`]), so
    /// that its outcome can be reported later, or there.
    fn part(&mut self, packet: &Pkt) -> u32;

    /// The driver of an interface is about to be asked to take packets, so many marked ones among them. What it takes is
    /// sent. Returns whether [`Marker::left`] shall be called when that is done, also if none is left.
    fn leaving(&mut self, interface: u32, packets: &[Pkt], marked: usize) -> bool;

    /// The driver took all but these, which end so: called when there are marked ones, or when the tap asked for it.
    fn left(&mut self, refused: &[Pkt], outcome: PacketOutcome);
}

/// A tap that learns by the vector where packets go, in the turn in which it saw any come in, and for as long as it says so
/// ([`Follower::turn_over`]).
pub trait Follower {
    /// All of these packets go there, those that it saw come in as well as others. A driver that does not take them all
    /// comes later: those it left are dropped.
    fn goes(&mut self, destination: Destination, packets: &[Pkt]);

    /// The turn is over: packets of which nothing was reported were kept by this router. Whether it still waits for packets.
    fn turn_over(&mut self, now: u64) -> bool;
}
