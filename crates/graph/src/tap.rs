//! Those who look.
//!
//! A tap sees shared references at a named point. It can ask for packets to be marked; the graph sets the mark,
//! and tells the tap of the worker in which the packet ends what became of it, while the packet is still there to be
//! looked at. One tap of a graph may mark.

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
    /// Packets that went by the tap on this interface since the start, this vector's included.
    pub seen: u64,
    /// What is left of the packets that the tap allowed to go by unseen.
    pub unused: u64,
}

/// What became of a marked packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
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
pub enum Whither {
    /// Out of this interface, if its driver takes them.
    Out(u32),
    /// They wait for an answer.
    Held,
    /// Nowhere: they were for this router.
    Kept,
    /// Nowhere, for a reason.
    Dropped(DropReason),
}

/// What stands before a tap and lets by what it need not see.
///
/// Each interface has its own allowance. A vector that goes by takes its packets off and touches nothing else: one
/// cache line, which the interfaces with the lowest numbers share.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Gate {
    /// Packets that may still go by, of the interfaces with the lowest numbers.
    near: [u64; NEAR],
    near_asked: [Asked; NEAR],
    /// The same of all others.
    far: Vec<(u64, Asked)>,
}

/// What the tap said of an interface when it was asked last.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// How many may go by.
    allowed: u64,
    /// Packets that had come by then, and those that were shown since.
    before: u64,
}

impl Asked {
    /// Packets that came, when so many may still go by.
    fn seen(self, left: u64) -> u64 {
        self.before.wrapping_add(self.allowed - left)
    }

    /// After a look: as the tap said, or says when it is asked.
    #[inline(always)]
    fn settle<W: World>(&mut self, left: &mut u64, tap: &mut dyn Tap<W>, marks: &mut Marks, interface: u32) {
        match marks.allowed.take() {
            Some(allowed) => self.allow(left, allowed),
            None => self.again(left, tap, interface),
        }
    }

    #[cold]
    #[inline(never)]
    fn again<W: World>(&mut self, left: &mut u64, tap: &mut dyn Tap<W>, interface: u32) {
        let allowed = tap.allow(interface, *left);
        self.allow(left, allowed);
    }

    #[inline(always)]
    fn allow(&mut self, left: &mut u64, allowed: u64) {
        self.before = self.seen(*left);
        (*left, self.allowed) = (allowed, allowed);
    }
}

/// Interfaces that lie in the gate itself.
const NEAR: usize = 8;
/// Interfaces with lower numbers have their place from the start; they are numbered from 1 on.
const USUAL_INTERFACES: usize = 1024;

impl Default for Gate {
    /// Nothing may go by yet.
    fn default() -> Gate {
        Gate { near: [0; NEAR], near_asked: [Asked::default(); NEAR], far: vec![<(u64, Asked)>::default(); USUAL_INTERFACES] }
    }
}

impl Gate {
    /// A vector comes on one of the interfaces with the lowest numbers: whether the tap need not see it. Else nothing is done.
    #[inline(always)]
    #[must_use]
    pub fn goes_by(&mut self, interface: u32, count: usize) -> bool {
        let left = self.near.get_mut(interface as usize);
        let rest = left.as_ref().and_then(|left| left.checked_sub(count as u64));
        left.zip(rest).map(|(left, rest)| *left = rest).is_some()
    }

    /// A vector comes: whether the tap has to see it.
    #[inline(always)]
    #[must_use]
    pub fn is_due(&mut self, interface: u32, count: usize) -> bool {
        let (left, asked) = self.lane(interface);
        Gate::take(left, asked, count)
    }

    /// Takes a vector off what may go by, or counts it as one that is seen; returns which.
    #[inline(always)]
    fn take(left: &mut u64, asked: &mut Asked, count: usize) -> bool {
        match left.checked_sub(count as u64) {
            Some(rest) => {
                *left = rest;
                false
            }
            None => {
                asked.before += count as u64;
                true
            }
        }
    }

    #[inline(always)]
    fn lane(&mut self, interface: u32) -> (&mut u64, &mut Asked) {
        let place = interface as usize;
        if place < NEAR { (&mut self.near[place], &mut self.near_asked[place]) } else { self.far_lane(place - NEAR) }
    }

    #[inline(never)]
    fn far_lane(&mut self, place: usize) -> (&mut u64, &mut Asked) {
        if place >= self.far.len() {
            self.grow(place);
        }
        let (left, asked) = &mut self.far[place];
        (left, asked)
    }

    #[cold]
    fn grow(&mut self, place: usize) {
        // Doubled, so that it is asked for rarely.
        self.far.resize((place + 1).next_power_of_two(), Default::default());
    }

    /// What [`Look::seen`] and [`Look::unused`] tell.
    #[must_use]
    pub fn state(&mut self, interface: u32) -> (u64, u64) {
        let (left, asked) = self.lane(interface);
        (asked.seen(*left), *left)
    }

    /// Lets a tap look if it has to, and takes note of how many may go by on the interface from now on. Returns whether it looked.
    #[inline(always)]
    pub(crate) fn show<'a, W: World>(
        &mut self,
        tap: &mut dyn Tap<W>,
        marks: &mut Marks,
        interface: u32,
        look: impl FnOnce(u64, u64) -> Look<'a, W>,
        packets: &[Pkt],
    ) -> bool {
        let (left, asked) = self.lane(interface);
        let due = Gate::take(left, asked, packets.len());
        if due {
            tap.look(&look(asked.seen(*left), *left), packets, marks);
            asked.settle(left, tap, marks, interface);
        }
        due
    }

    /// After a look by whoever runs a tap without a graph: how many may go by from now on.
    pub fn settle<W: World>(&mut self, tap: &mut dyn Tap<W>, marks: &mut Marks, interface: u32) {
        let (left, asked) = self.lane(interface);
        asked.settle(left, tap, marks, interface);
    }

    /// Asks it for every interface on which something came.
    pub fn ask_all<W: World>(&mut self, tap: &mut dyn Tap<W>) {
        let near = self.near.iter_mut().zip(&mut self.near_asked);
        let far = self.far.iter_mut().map(|(left, asked)| (left, asked));
        for (interface, (left, asked)) in near.chain(far).enumerate().filter(|(_, (left, asked))| asked.seen(**left) > 0) {
            asked.again(left, tap, interface as u32);
        }
    }
}

/// What a tap asks for when it looks.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Marks {
    /// Places in the vector.
    pub(crate) places: Vec<u16>,
    allowed: Option<u64>,
}

impl Marks {
    /// Asks for packet `place` of the vector to be marked.
    pub fn mark(&mut self, place: usize) {
        self.places.push(place as u16);
    }

    /// So many may go by on this interface before the next look, which spares the question ([`Tap::allow`]).
    pub fn let_by(&mut self, packets: u64) {
        self.allowed = Some(packets);
    }

    /// Takes out what was asked for.
    pub fn drain(&mut self) -> impl Iterator<Item = usize> {
        self.places.drain(..).map(usize::from)
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

    /// How many packets of an interface may go by before it wants to see a vector again; asked after each look that did not
    /// say so itself ([`Marks::let_by`]), with what is left of the last answer. Vectors that fit into it are counted
    /// ([`Look::seen`], [`Look::unused`]) and not shown: a tap that is not due costs no call.
    fn allow(&mut self, _interface: u32, _unused: u64) -> u64 {
        0
    }

    /// What became of a marked packet, maybe one that the tap of another worker marked: told once, where its fate is
    /// known, by the worker in which it ends. A packet that waits for an answer has none yet.
    fn fate(&mut self, _packet: &Pkt, _fate: Fate) {}

    /// A marked packet is put aside, or goes to another worker: what it shall take along ([`weir_buf::Meta::mark`]), so
    /// that its fate can be told later, or there.
    fn part(&mut self, _packet: &Pkt) -> u32 {
        0
    }

    /// The driver of an interface is about to be asked to take packets, so many marked ones among them. What it takes is
    /// sent. Returns whether it wants to be told when that is done, also if none is left.
    fn leaving(&mut self, _interface: u32, _packets: &[Pkt], _marked: usize) -> bool {
        false
    }

    /// It took all but these: told when there are any, or when the tap wants to know.
    fn left(&mut self, _refused: &[Pkt]) {}

    /// Whether it wants to know where the packets go that it saw come in ([`Tap::goes`]); one tap of a graph may.
    /// It is told by the vector, in the turn in which it saw any, and as long as it says so ([`Tap::turn_over`]).
    fn follows(&self) -> bool {
        false
    }

    /// All of these packets go there, those that it saw come in as well as others. A driver that does not take them all
    /// comes later: those it left are dropped.
    fn goes(&mut self, _whither: Whither, _packets: &[Pkt]) {}

    /// The turn is over: what it was not told of was kept by this router. Whether it still waits for packets.
    fn turn_over(&mut self, _now: u64) -> bool {
        false
    }

    /// Called every now and then: time for what is not per packet. `true` when it wants to be asked anew how
    /// much may go by, for all interfaces.
    fn tick(&mut self, _now: u64) -> bool {
        false
    }
}
