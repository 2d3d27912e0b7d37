//! Taps get to look.
//!
//! At ports, where packets come in as vectors of one interface and leave so. On inner interfaces, which no port feeds
//! (sub-interfaces, bonds, tunnels, routed sides of bridges), where nodes find out which interface a packet is of: behind
//! those that take packets in, and before those that see them off. Nobody pays for that but one look at
//! [`World::has_inner_taps`] a node call, as long as no tap looks at such an interface. Marks are for ports.

use weir_buf::{Flags, Pkt, Vector};

use super::{Env, Graph};
use crate::DropReason;
use crate::node::World;
use crate::tap::{Destination, Follower, Look, Marker, Marks, PacketOutcome, Point, Tap};

/// Sets of nodes; bit `n` is node `n`.
#[derive(Clone, Copy, Default)]
pub(super) struct Inner {
    /// They find packets of an interface to be of an inner one.
    pub(super) finders: u64,
    /// All that comes here came in by an inner interface.
    pub(super) intakes: u64,
    /// All that comes here leaves by an inner interface, the one in its `aux` word.
    pub(super) exits: u64,
}

/// What is looked at.
#[derive(Clone, Copy)]
pub(super) struct Crowd<'a> {
    /// On an interface that no port feeds.
    pub(super) inner: bool,
    pub(super) packets: &'a [Pkt],
}

/// No packet is of this interface.
const NONE: u32 = 0;

/// The taps, and what each vector asks about them.
pub(super) struct Taps<W: World> {
    /// Not 0 while the one that follows packets needs their egress.
    pub(super) following: u32,
    /// Its bit; 0 without one.
    follower: u32,
    marks: Marks,
    /// The number of the one that marks.
    marker: Option<u8>,
    all: Vec<Box<dyn Tap<W>>>,
}

impl<W: World> Taps<W> {
    pub(super) fn new(mut all: Vec<Box<dyn Tap<W>>>) -> Taps<W> {
        let follower = all.iter_mut().position(|tap| tap.follower().is_some());
        let marker = all.iter_mut().position(|tap| tap.marker().is_some());
        Taps {
            following: 0,
            follower: follower.map_or(0, |tap| 1 << tap),
            marks: Marks::default(),
            marker: marker.map(|tap| tap as u8),
            all,
        }
    }

    #[inline(always)]
    fn marker(&mut self) -> Option<&mut dyn Marker> {
        self.all.get_mut(usize::from(self.marker?))?.marker()
    }

    #[inline(always)]
    fn follower(&mut self) -> Option<&mut dyn Follower> {
        let number = self.follower.trailing_zeros() as usize;
        self.all.get_mut(number)?.follower()
    }
}

impl<W: World> Graph<W> {
    /// Tells the tap that marks what became of a packet; the mark is gone then.
    #[inline(never)]
    pub(super) fn conclude(&mut self, packet: &mut Pkt, outcome: PacketOutcome) {
        if let Some(tap) = self.taps.marker() {
            tap.outcome(packet, outcome);
        }
        packet.clear_flags(Flags::MARKED);
    }

    /// Marked packets are put aside or go to another worker: they take along what the tap needs to tell them by then.
    #[cold]
    pub fn part(&mut self, packets: &mut [Pkt]) {
        let Some(tap) = self.taps.marker() else {
            return;
        };
        for packet in packets
            .iter_mut()
            .filter(|packet| packet.flags().any(Flags::MARKED))
        {
            packet.meta_mut().mark = tap.part(packet);
        }
    }

    /// Tells it that a driver will be asked to take a vector with so many marked packets in it; returns whether it wants to
    /// know when that is done.
    #[inline(never)]
    pub fn leaving(&mut self, interface: u32, packets: &[Pkt], marked: usize) -> bool {
        self.taps
            .marker()
            .is_some_and(|tap| tap.leaving(interface, packets, marked))
    }

    /// Tells it that the driver took all but these, which are still marked and will be dropped at `node` for that `reason`.
    #[cold]
    #[inline(never)]
    pub fn left(&mut self, refused: &[Pkt], node: usize, reason: DropReason) {
        if let Some(tap) = self.taps.marker() {
            tap.left(
                refused,
                PacketOutcome::Dropped {
                    node: node as u16,
                    reason,
                },
            );
        }
    }

    /// Lets tx taps look at a vector that a driver is about to be asked to take. Returns whether the tap that marks wants to know what
    /// it took.
    #[inline(always)]
    pub fn look_before_leaving(
        &mut self,
        env: &Env<'_, W>,
        taps: u32,
        interface: u32,
        vector: &mut Vector,
    ) -> bool {
        self.look(env, taps, Point::Tx, interface, vector);
        taps != 0 && self.taps.marks.take_awaited()
    }

    /// All of these leave by an interface: taps that follow packets are called. This precedes a driver, or another worker, is
    /// asked to take them. `flags` are those that any of them has.
    #[inline(always)]
    pub fn note_leaving(&mut self, interface: u32, flags: Flags, packets: &[Pkt]) {
        if self.taps.following != 0 {
            self.tell_follower(Destination::Out { interface, flags }, packets);
        }
    }

    #[inline(never)]
    pub(super) fn tell_follower(&mut self, destination: Destination, packets: &[Pkt]) {
        if let Some(tap) = self.taps.follower() {
            tap.goes(destination, packets);
        }
    }

    /// Everything that came in this turn is where it goes.
    #[inline(always)]
    pub fn turn_over(&mut self, now: u64) {
        if self.taps.following != 0
            && let Some(tap) = self.taps.follower()
        {
            let waits = tap.turn_over(now);
            self.taps.following = if waits { self.taps.follower } else { 0 };
        }
    }

    /// Lets rx or tx taps look at a vector, and sets the marks that they ask for.
    #[inline(always)]
    pub fn look(
        &mut self,
        env: &Env<'_, W>,
        taps: u32,
        point: Point,
        interface: u32,
        vector: &mut Vector,
    ) {
        if taps != 0 {
            self.show(env, taps, point, interface, vector);
        }
    }

    #[inline(never)]
    pub(super) fn show(
        &mut self,
        env: &Env<'_, W>,
        taps: u32,
        point: Point,
        interface: u32,
        vector: &mut Vector,
    ) {
        let crowd = Crowd {
            inner: false,
            packets: vector,
        };
        self.let_look(env, taps, point, interface, crowd);
        while let Some(place) = self.taps.marks.take() {
            let Some(packet) = vector.get_mut(place) else {
                continue;
            };
            packet.set_flags(Flags::MARKED);
            // Mostly there was one.
            if !self.taps.marks.are_any() {
                return;
            }
        }
    }

    /// Lets those of `taps` look at some packets that want to by now.
    #[inline(never)]
    pub(super) fn let_look(
        &mut self,
        env: &Env<'_, W>,
        taps: u32,
        point: Point,
        interface: u32,
        crowd: Crowd<'_>,
    ) {
        let mut left = taps;
        while left != 0 {
            self.let_one_look(env, left.trailing_zeros() as usize, point, interface, crowd);
            left &= left - 1;
        }
    }

    #[inline(always)]
    fn let_one_look(
        &mut self,
        env: &Env<'_, W>,
        number: usize,
        point: Point,
        interface: u32,
        crowd: Crowd<'_>,
    ) {
        let Crowd { inner, packets } = crowd;
        let Taps {
            following,
            follower,
            marks,
            all,
            ..
        } = &mut self.taps;
        let (Some(tap), Some(gate)) = (all.get_mut(number), self.gates.get_mut(number)) else {
            return;
        };
        let Some(left) = gate.due(interface, packets.len()) else {
            return;
        };
        let look = Look {
            world: env.world,
            worker: self.worker,
            now: env.now,
            point,
            interface,
            inner,
            left: *left,
        };
        *left = tap.look(&look, packets, marks);
        *following |= 1 << number & *follower;
    }

    /// Lets those look that want to see what is dropped.
    pub(super) fn show_drop(
        &mut self,
        env: &Env<'_, W>,
        node: usize,
        reason: DropReason,
        packet: &Pkt,
    ) {
        let (taps, interface) = (env.world.drop_taps(), packet.interface());
        if taps != 0 {
            let crowd = Crowd {
                inner: false,
                packets: std::slice::from_ref(packet),
            };
            self.let_look(
                env,
                taps,
                Point::Drop {
                    node: node as u16,
                    reason,
                },
                interface,
                crowd,
            );
            self.forget_marks();
        }
    }

    /// Takes marks back that were asked for where there are none.
    pub(super) fn forget_marks(&mut self) {
        while self.taps.marks.take().is_some() {}
    }

    /// Gives every tap its turn.
    pub fn tick_taps(&mut self, now: u64) {
        for (tap, gate) in self.taps.all.iter_mut().zip(&mut self.gates) {
            if tap.tick(now) {
                gate.ask_all(&mut **tap);
            }
        }
    }

    /// Before a node is given packets: tx taps of inner interfaces look at what leaves by them. Of a node behind which rx
    /// taps look, returns the interface for which they looked already.
    #[cold]
    pub(super) fn look_before(
        &mut self,
        env: &Env<'_, W>,
        node: usize,
        packets: &[Pkt],
    ) -> Option<u32> {
        let is_in = |nodes: u64| nodes & 1 << node != 0;
        if is_in(self.inner.exits) {
            self.look_at_runs(env, Point::Tx, packets, Pkt::aux, |interface| {
                env.world.tx_taps(interface)
            });
        }
        if is_in(self.inner.finders) {
            return packets.first().map(Pkt::interface);
        }
        is_in(self.inner.intakes).then_some(NONE)
    }

    /// Behind such a node: rx taps look at what came in by inner interfaces.
    #[cold]
    pub(super) fn look_behind(&mut self, env: &Env<'_, W>, before: u32, packets: &[Pkt]) {
        let taps = |interface| {
            if interface == before {
                0
            } else {
                env.world.rx_taps(interface)
            }
        };
        self.look_at_runs(env, Point::Rx, packets, Pkt::interface, taps);
    }

    /// Taps look at packets that follow one another and are of one interface.
    fn look_at_runs(
        &mut self,
        env: &Env<'_, W>,
        point: Point,
        mut packets: &[Pkt],
        of: impl Fn(&Pkt) -> u32,
        taps: impl Fn(u32) -> u32,
    ) {
        while let Some(interface) = packets.first().map(&of) {
            let run = packets
                .iter()
                .take_while(|packet| of(packet) == interface)
                .count();
            let (now, later) = packets.split_at(run);
            let taps = taps(interface);
            if taps != 0 {
                self.let_look(
                    env,
                    taps,
                    point,
                    interface,
                    Crowd {
                        inner: true,
                        packets: now,
                    },
                );
                self.forget_marks();
            }
            packets = later;
        }
    }
}
