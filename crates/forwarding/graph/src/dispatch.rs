//! The graph: carries out verdicts and counts.
//!
//! Nodes are kept in the order of a packet's way, so the pending ones are run lowest first until none
//! is pending: mostly each runs once a turn with the whole vector. Where a whole vector takes one
//! way, its storage is exchanged with the next node's queue and no packet is touched; else runs of
//! equal verdicts move together.
//!
//! The clock is read once a node. Nothing here allocates once the queues have grown to what the
//! traffic needs; what can grow is bounded by the pool, since every packet is owned.

use std::sync::Arc;

use weir_buf::{Flags, HEADROOM, Pkt, PktCache, STRIDE, VECTOR, Vector};
use weir_ring::spsc::Producer;

use crate::counters::{DropMap, WorkerCounters};
use crate::hold::{HoldKey, HoldLimits, Holds};
use crate::node::{Cx, Node, NodeSpec, Scratch, World};
use crate::tap::{Destination, Gate, PacketOutcome, Point};
use crate::trace::{TraceRequest, Tracer};
use crate::verdict::{Outcome, Verdict, VerdictKind};
use crate::{DropReason, Next};

mod builder;
mod looks;
mod outputs;

pub use builder::{GraphBuilder, GraphError};
use outputs::one_output;

/// Taps of one graph.
const MOST_TAPS: usize = 8;

/// More node calls than any turn needs; what is still inside then goes in circles.
const LOOP_LIMIT: usize = 4096;

/// What a worker brings to each call.
pub struct Env<'a, W: World> {
    /// The tables as of this turn.
    pub world: &'a W,
    /// Nanoseconds of the router's clock, read once a turn.
    pub now: u64,
    /// The worker's stock of packets.
    pub cache: &'a mut PktCache,
    /// The ring to the control side.
    pub events: &'a mut Producer<W::Event>,
    /// Set when an event was sent, so that the control side can be woken once a turn.
    pub event_sent: bool,
}

/// A node behind a table entry, compiled for each instruction set level.
trait Step<W: World>: Send {
    fn step(
        &mut self,
        cx: &mut Cx<'_, W>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome;
}

struct Compiled<N>(N);

struct Call<'a, 'b, W: World, N> {
    node: &'a mut N,
    cx: &'a mut Cx<'b, W>,
    packets: &'a mut [Pkt],
    verdicts: &'a mut [Verdict],
}

impl<W: World, N: Node<W>> weir_cpu::Task for Call<'_, '_, W, N> {
    type Output = Outcome;
    #[inline(always)]
    fn run(self) -> Outcome {
        self.node.process(self.cx, self.packets, self.verdicts)
    }
}

impl<W: World, N: Node<W>> Step<W> for Compiled<N> {
    fn step(
        &mut self,
        cx: &mut Cx<'_, W>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        weir_cpu::dispatch(Call {
            node: &mut self.0,
            cx,
            packets,
            verdicts,
        })
    }
}

struct Slot<W: World> {
    /// `None` for a stage that the engine runs itself (port-tx); it only has a name and counters.
    step: Option<Box<dyn Step<W>>>,
    queue: Vector,
    nexts: Vec<u8>,
}

/// The nodes of one worker and everything on its way between them.
pub struct Graph<W: World> {
    specs: Vec<NodeSpec>,
    slots: Vec<Slot<W>>,
    /// The nodes that [`World::output`] counts from 1.
    output_nodes: Vec<u8>,
    /// The nodes at which taps look at inner interfaces.
    inner: looks::Inner,
    /// Bit `n` set: node `n` has packets.
    pending: u64,
    spare: Vector,
    verdicts: Box<[Verdict; VECTOR]>,
    scratch: Scratch,
    holds: Holds,
    /// By interface index: what is to leave there.
    outputs: Vec<Vector>,
    /// Interfaces whose output is not empty.
    leaving: Vec<u32>,
    counters: Arc<WorkerCounters>,
    map: Arc<DropMap>,
    /// One a tap; here and not elsewhere, since every vector passes some.
    gates: [Gate; MOST_TAPS],
    taps: looks::Taps<W>,
    tracer: Tracer,
    one_step: bool,
    worker: usize,
}

impl<W: World> Graph<W> {
    /// The number of the node called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.specs.iter().position(|spec| spec.name == name)
    }

    /// The catalogue in node order.
    #[must_use]
    pub fn specs(&self) -> &[NodeSpec] {
        &self.specs
    }

    /// This worker's counters, to read from anywhere.
    #[must_use]
    pub fn counters(&self) -> Arc<WorkerCounters> {
        self.counters.clone()
    }

    /// Which (node, reason) pairs are counted where.
    #[must_use]
    pub fn drop_map(&self) -> Arc<DropMap> {
        self.map.clone()
    }

    /// From now on, nodes do nothing but their own step: no node forwards packets in one pass.
    pub fn set_one_step(&mut self) {
        self.one_step = true;
    }

    /// Starts following packets, or stops with `None`.
    pub fn trace(&mut self, request: Option<TraceRequest>) {
        self.tracer.request(request);
    }

    /// Takes in what a port delivered on `interface`: counts it, lets the taps look, queues it for
    /// the node `entry`. `vector` is left empty. What another interface left queued there is run
    /// first, so that the node never sees two interfaces in one vector.
    pub fn inhale(
        &mut self,
        env: &mut Env<'_, W>,
        entry: usize,
        interface: u32,
        vector: &mut Vector,
    ) {
        if vector.is_empty() {
            return;
        }
        let waiting = self.slots.get(entry).and_then(|slot| slot.queue.last());
        if waiting.is_some_and(|packet| packet.interface() != interface) {
            self.run(env);
        }
        for packet in vector.iter_mut() {
            packet.set_interface(interface);
        }
        self.counters.totals.input.add(vector.len() as u64);
        self.look(
            env,
            env.world.rx_taps(interface),
            Point::Rx,
            interface,
            vector,
        );
        if self.tracer.wants_received(interface) {
            self.choose(entry, vector);
        }
        self.enqueue(entry, vector);
    }

    /// Takes in packets that the control side or another stage made, at node `entry`.
    pub fn inject(&mut self, entry: usize, packet: Pkt) {
        self.counters.totals.originated.add(1);
        self.enqueue_one(entry, packet);
    }

    /// Takes in a packet that another worker handed over for the interface in its `aux` word.
    #[inline]
    pub fn hand_in(&mut self, packet: Pkt) {
        self.output(packet.aux()).push(packet);
    }

    /// Takes in a packet that the control side made for the interface in its `aux` word.
    pub fn originate_out(&mut self, world: &W, packet: Pkt) {
        self.counters.totals.originated.add(1);
        self.leave_one(world, packet);
    }

    /// Runs nodes until none has packets.
    pub fn run(&mut self, env: &mut Env<'_, W>) {
        if self.pending != 0 {
            self.run_since(env, weir_cpu::tsc());
        }
    }

    /// The same for a caller that has read the time stamp counter already: what passed since then belongs to the first node.
    /// Returns what the counter said last, since reading it costs as much as forwarding two packets.
    pub fn run_since(&mut self, env: &mut Env<'_, W>, mut clock: u64) -> u64 {
        if self.pending == 0 {
            return clock;
        }
        if self.tracer.is_active() {
            self.tracer.rest(env.now);
        }
        for _ in 0..LOOP_LIMIT {
            let node = self.pending.trailing_zeros() as usize;
            let Some(slot) = self.slots.get_mut(node) else {
                return clock;
            };
            self.pending &= self.pending - 1;
            let mut packets = std::mem::take(&mut self.spare);
            packets.take_all(&mut slot.queue);
            self.step(env, node, &mut packets);
            self.spare = packets;
            let now = weir_cpu::tsc();
            if let Some(counters) = self.counters.nodes.get(node) {
                counters.clocks.add(now.wrapping_sub(clock));
            }
            clock = now;
            if self.pending == 0 {
                return clock;
            }
        }
        self.abandon(env, DropReason::LoopLimit);
        clock
    }

    /// Drops everything that is queued for any node.
    fn abandon(&mut self, env: &mut Env<'_, W>, reason: DropReason) {
        for node in 0..self.slots.len() {
            let mut packets = std::mem::take(&mut self.spare);
            packets.take_all(&mut self.slots[node].queue);
            self.drop_all(env, node, reason, &mut packets);
            self.spare = packets;
        }
        self.pending = 0;
    }

    /// Hands one node all it has, up to 256 packets at a time, and moves them on.
    fn step(&mut self, env: &mut Env<'_, W>, node: usize, packets: &mut Vector) {
        if self.tracer.wants_at(node as u16) {
            self.choose(node, packets);
        }
        while !packets.is_empty() {
            let count = packets.len().min(VECTOR);
            let before = if env.world.has_inner_taps() {
                self.look_before(env, node, &packets[..count])
            } else {
                None
            };
            let Some(slot) = self.slots.get_mut(node) else {
                return;
            };
            let Some(step) = slot.step.as_mut() else {
                return;
            };
            let mut cx = Cx {
                world: env.world,
                worker: self.worker,
                now: env.now,
                cache: &mut *env.cache,
                events: &mut *env.events,
                event_sent: &mut env.event_sent,
                counters: &self.counters,
                scratch: &mut self.scratch,
                nexts: &slot.nexts,
                one_step: self.one_step,
            };
            let outcome = step.step(&mut cx, &mut packets[..count], &mut self.verdicts[..count]);
            if let Some(counters) = self.counters.nodes.get(node) {
                counters.calls.add(1);
                counters.packets.add(count as u64);
            }
            if let Some(before) = before {
                self.look_behind(env, before, &packets[..count]);
            }
            if self.tracer.is_active() {
                self.record(node, &packets[..count], outcome);
            }
            self.carry_out(env, node, packets, count, outcome);
            self.launch(env, node);
        }
    }

    #[cold]
    fn choose(&mut self, node: usize, packets: &mut Vector) {
        let lost = self.tracer.choose(node as u16, packets);
        self.counters.trace_lost.add(lost);
    }

    #[cold]
    fn record(&mut self, node: usize, packets: &[Pkt], outcome: Outcome) {
        let verdicts = &self.verdicts;
        let lost = self
            .tracer
            .record(node as u16, packets, |place| match outcome {
                Outcome::All(verdict) => (verdict, packets[place].aux()),
                Outcome::AllOut(interface) => (Verdict::OUT, interface),
                Outcome::Each => (verdicts[place], packets[place].aux()),
            });
        self.counters.trace_lost.add(lost);
    }

    /// Moves the first `count` packets to where the node wants them.
    fn carry_out(
        &mut self,
        env: &mut Env<'_, W>,
        node: usize,
        packets: &mut Vector,
        count: usize,
        outcome: Outcome,
    ) {
        let verdict = match outcome {
            Outcome::AllOut(interface) => return self.leave(env.world, interface, packets, count),
            Outcome::All(verdict) => Some(verdict),
            Outcome::Each => {
                let first = self.verdicts[0];
                self.verdicts[1..count]
                    .iter()
                    .all(|&verdict| verdict == first)
                    .then_some(first)
            }
        };
        match verdict.map(Verdict::kind) {
            Some(VerdictKind::To(next))
                if count == packets.len() && !self.is_stage(self.next(node, next)) =>
            {
                let entry = self.next(node, next);
                self.enqueue(entry, packets);
            }
            Some(VerdictKind::Out) if let Some(interface) = one_output(&packets[..count]) => {
                self.leave(env.world, interface, packets, count)
            }
            Some(_) => self.carry_run(env, node, verdict, &mut packets.drain_front(count), count),
            None => self.carry_each(env, node, packets, count),
        }
    }

    fn carry_each(
        &mut self,
        env: &mut Env<'_, W>,
        node: usize,
        packets: &mut Vector,
        count: usize,
    ) {
        let mut drain = packets.drain_front(count);
        let mut start = 0;
        while start < count {
            let verdict = self.verdicts[start];
            let run = self.verdicts[start..count]
                .iter()
                .take_while(|&&other| other == verdict)
                .count();
            self.carry_run(env, node, Some(verdict), &mut drain, run);
            start += run;
        }
    }

    /// Moves the next `run` packets of `from`, which all have the same verdict.
    fn carry_run(
        &mut self,
        env: &mut Env<'_, W>,
        node: usize,
        verdict: Option<Verdict>,
        from: &mut std::vec::Drain<'_, Pkt>,
        run: usize,
    ) {
        let interface = match verdict {
            Some(Verdict::OUT) => from.as_slice().get(..run).and_then(one_output),
            _ => None,
        };
        let packets = from.by_ref().take(run);
        match verdict.map(Verdict::kind) {
            Some(VerdictKind::To(next)) => {
                let entry = self.next(node, next);
                if self.is_stage(entry) {
                    return packets.for_each(|packet| self.output(packet.aux()).push(packet));
                }
                if let Some(slot) = self.slots.get_mut(entry) {
                    slot.queue.extend(packets);
                    self.pending |= 1 << entry;
                }
            }
            Some(VerdictKind::Out) => match interface {
                Some(interface) => self.leave_run(env.world, interface, packets),
                None => self.leave_each(env.world, packets),
            },
            Some(VerdictKind::Drop(reason)) => {
                packets.for_each(|packet| self.drop_one(env, node, reason, packet))
            }
            Some(VerdictKind::Consume) | None => {
                self.counters.totals.consumed.add(run as u64);
                for mut packet in packets {
                    if packet.flags().any(Flags::MARKED) {
                        self.conclude(&mut packet, PacketOutcome::Kept);
                    }
                    if self.taps.following != 0 {
                        self.tell_follower(Destination::Kept, std::slice::from_ref(&packet));
                    }
                    env.cache.free(packet);
                }
            }
            Some(VerdictKind::Hold(place)) => {
                packets.for_each(|packet| self.hold(env, node, place, packet))
            }
            Some(VerdictKind::Replicate(place)) => {
                packets.for_each(|packet| self.replicate(env, node, place, packet))
            }
        }
    }

    /// Whether a node is a stage that the engine runs: what goes there leaves by the driver of the interface
    /// in its `aux` word.
    #[inline(always)]
    fn is_stage(&self, node: usize) -> bool {
        self.slots.get(node).is_some_and(|slot| slot.step.is_none())
    }

    #[inline(always)]
    fn next(&self, node: usize, next: Next) -> usize {
        self.slots
            .get(node)
            .and_then(|slot| slot.nexts.get(next.0 as usize))
            .map_or(0, |&entry| entry as usize)
    }

    #[inline]
    fn enqueue(&mut self, entry: usize, packets: &mut Vector) {
        if let Some(slot) = self.slots.get_mut(entry) {
            slot.queue.take_all(packets);
            self.pending |= 1 << entry;
        }
    }

    fn enqueue_one(&mut self, entry: usize, packet: Pkt) {
        if let Some(slot) = self.slots.get_mut(entry) {
            slot.queue.push(packet);
            self.pending |= 1 << entry;
        }
    }

    /// Sends on what the node originated and forgets its lists.
    fn launch(&mut self, env: &mut Env<'_, W>, node: usize) {
        if !self.scratch.originated.is_empty() {
            let mut originated = std::mem::take(&mut self.scratch.originated);
            self.counters.totals.originated.add(originated.len() as u64);
            for (packet, verdict) in originated.drain(..) {
                self.send_on(env, node, verdict, packet);
            }
            self.scratch.originated = originated;
        }
        self.scratch.holds.clear();
        self.scratch.targets.clear();
        self.scratch.lists.clear();
    }

    fn send_on(&mut self, env: &mut Env<'_, W>, node: usize, verdict: Verdict, packet: Pkt) {
        match verdict.kind() {
            VerdictKind::To(next) if self.is_stage(self.next(node, next)) => {
                self.output(packet.aux()).push(packet)
            }
            VerdictKind::To(next) => self.enqueue_one(self.next(node, next), packet),
            VerdictKind::Out => self.leave_one(env.world, packet),
            VerdictKind::Drop(reason) => self.drop_one(env, node, reason, packet),
            _ => {
                self.counters.totals.consumed.add(1);
                env.cache.free(packet);
            }
        }
    }

    fn hold(&mut self, env: &mut Env<'_, W>, node: usize, place: u16, mut packet: Pkt) {
        let Some(&(key, next)) = self.scratch.holds.get(place as usize) else {
            return self.drop_one(env, node, DropReason::HoldFull, packet);
        };
        let again = packet.flags().any(Flags::HELD);
        let next = self.next(node, next) as u16;
        if packet.flags().any(Flags::MARKED) {
            // What became this router's answer ended here.
            if packet.flags().any(Flags::ORIGINATED) {
                self.conclude(&mut packet, PacketOutcome::Kept);
            } else {
                self.part(std::slice::from_mut(&mut packet));
            }
        }
        if self.taps.following != 0 {
            self.tell_follower(Destination::Held, std::slice::from_ref(&packet));
        }
        match self.holds.keep(key, node as u16, next, env.now, packet) {
            Ok(()) => self.level(),
            Err(packet) => {
                let reason = if again {
                    DropReason::HostUnreachable
                } else {
                    DropReason::HoldFull
                };
                self.drop_one(env, node, reason, packet);
            }
        }
    }

    fn level(&self) {
        let held = &self.counters.totals.held;
        held.set(self.holds.count() as u64);
    }

    fn replicate(&mut self, env: &mut Env<'_, W>, node: usize, place: u16, packet: Pkt) {
        let (from, to) = self
            .scratch
            .lists
            .get(place as usize)
            .copied()
            .unwrap_or((0, 0));
        let targets = std::mem::take(&mut self.scratch.targets);
        let list = targets.get(from as usize..to as usize).unwrap_or(&[]);
        let Some((&(first, aux), rest)) = list.split_first() else {
            self.scratch.targets = targets;
            self.counters.totals.consumed.add(1);
            return env.cache.free(packet);
        };
        let mut packet = packet;
        if !rest.is_empty() && packet.flags().any(Flags::MARKED) {
            self.conclude(&mut packet, PacketOutcome::Copied(list.len() as u32));
        }
        for &(verdict, aux) in rest {
            self.counters.totals.replicated.add(1);
            match copy(env.cache, &packet) {
                Some(mut twin) => {
                    twin.set_aux(aux);
                    self.send_on(env, node, verdict, twin);
                }
                None => {
                    self.count_drop(env, node, DropReason::NoBuffer, packet.interface(), 1);
                    self.show_drop(env, node, DropReason::NoBuffer, &packet);
                }
            }
        }
        packet.set_aux(aux);
        self.send_on(env, node, first, packet);
        self.scratch.targets = targets;
    }

    /// Lets packets that wait for `key` go on.
    pub fn release(&mut self, key: HoldKey) {
        let (slots, pending) = (&mut self.slots, &mut self.pending);
        self.holds.release(key, |next, packet| {
            if let Some(slot) = slots.get_mut(next as usize) {
                slot.queue.push(packet);
                *pending |= 1 << next;
            }
        });
        self.level();
    }

    /// Drops packets that wait for `key`, as unreachable; `None` drops all that wait.
    pub fn give_up(&mut self, env: &mut Env<'_, W>, key: Option<HoldKey>, reason: DropReason) {
        let mut holds = std::mem::replace(
            &mut self.holds,
            Holds::new(HoldLimits {
                keys: 0,
                ..HoldLimits::default()
            }),
        );
        holds.give_up(key, |holder, packet| {
            self.drop_one(env, holder as usize, reason, packet)
        });
        self.holds = holds;
        self.level();
    }

    /// Drops what has waited too long. Cheap while nothing waits.
    pub fn expire(&mut self, env: &mut Env<'_, W>) {
        if self.holds.count() == 0 {
            return;
        }
        let mut holds = std::mem::replace(
            &mut self.holds,
            Holds::new(HoldLimits {
                keys: 0,
                ..HoldLimits::default()
            }),
        );
        holds.expire(env.now, |holder, packet| {
            self.drop_one(env, holder as usize, DropReason::HostUnreachable, packet)
        });
        self.holds = holds;
        self.level();
    }

    /// How many packets wait.
    #[must_use]
    pub fn held(&self) -> usize {
        self.holds.count()
    }

    /// Drops one packet at a node: counts, lets the taps look, frees.
    pub fn drop_one(
        &mut self,
        env: &mut Env<'_, W>,
        node: usize,
        reason: DropReason,
        mut packet: Pkt,
    ) {
        self.count_drop(env, node, reason, packet.interface(), 1);
        if packet.flags().any(Flags::MARKED) {
            self.conclude(
                &mut packet,
                PacketOutcome::Dropped {
                    node: node as u16,
                    reason,
                },
            );
        }
        if self.taps.following != 0 {
            self.tell_follower(Destination::Dropped(reason), std::slice::from_ref(&packet));
        }
        self.show_drop(env, node, reason, &packet);
        env.cache.free(packet);
    }

    /// Drops a whole vector at a node.
    pub fn drop_all(
        &mut self,
        env: &mut Env<'_, W>,
        node: usize,
        reason: DropReason,
        packets: &mut Vector,
    ) {
        packets
            .drain()
            .for_each(|packet| self.drop_one(env, node, reason, packet));
    }

    fn count_drop(
        &self,
        env: &Env<'_, W>,
        node: usize,
        reason: DropReason,
        interface: u32,
        n: u64,
    ) {
        self.counters.totals.dropped.add(n);
        let place = self.map.place(node, reason);
        env.world
            .drops(interface, self.worker)
            .unwrap_or(&self.counters.orphans)
            .add(place, n);
    }

    /// Counts what a stage of the engine did.
    #[inline]
    pub fn account(&mut self, stage: usize, packets: usize, clocks: u64) {
        if let Some(counters) = self.counters.nodes.get(stage) {
            counters.calls.add(1);
            counters.packets.add(packets as u64);
            counters.clocks.add(clocks);
        }
    }

    /// Counts packets that a port took to send.
    #[inline]
    pub fn count_output(&mut self, packets: usize) {
        self.counters.totals.output.add(packets as u64);
    }

    /// Whether traced packets may be inside, so that stages of the engine should report too.
    #[must_use]
    pub fn is_tracing(&self) -> bool {
        self.tracer.is_active()
    }

    /// Records a stage's traced packets, which are about to leave.
    #[cold]
    pub fn trace_stage(&mut self, stage: usize, packets: &[Pkt]) {
        self.record(stage, packets, Outcome::All(Verdict::OUT));
    }
}

/// A copy of a packet, metadata that nodes need included.
fn copy(cache: &mut PktCache, packet: &Pkt) -> Option<Pkt> {
    let mut head: Option<Pkt> = None;
    for segment in packet.segments() {
        let mut piece = cache.alloc()?;
        // What had headers put in front may be longer than what fits behind the usual headroom.
        let headroom = if head.is_none() {
            packet.headroom()
        } else {
            HEADROOM.min(STRIDE - segment.len())
        };
        if !piece.fill_behind(headroom, segment) {
            cache.free(piece);
            return None;
        }
        match &mut head {
            None => head = Some(piece),
            Some(head) => head.append(piece).ok()?,
        }
    }
    let mut twin = head?;
    twin.set_interface(packet.interface());
    twin.set_l3_offset(packet.l3_offset());
    twin.set_flags(packet.flags().without(Flags::MARKED | Flags::TRACED));
    let (from, to) = (packet.meta(), twin.meta_mut());
    (to.table, to.flow_hash, to.member) = (from.table, from.flow_hash, from.member);
    Some(twin)
}
