//! A worker: one thread that breathes packets.
//!
//! A turn is inhale, run, exhale, tick: every receive queue gives up to a vector, the graph runs until
//! nothing is pending, what leaves goes to the drivers, and what is not per packet gets its moment.
//! The turn begins with a quiescent state, so that tables are replaced without stopping anybody.
//!
//! Commands come through a bounded ring and are acknowledged by their number. A worker that is
//! idle looks again at once, naps so that packets gather, or waits in poll(2), offline for table
//! reclamation, until a queue or the bell rings (`idle`).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_buf::{Flags, Pkt, PktCache, VECTOR, Vector};
use weir_config::Idle;
use weir_graph::{DropReason, Env, Graph, HoldKey, TraceRequest, WorkerCounters, World};
use weir_nodes::{Event, PortTx, Tables, transmit};
use weir_port::{RxQueue, TxQueue};
use weir_ring::counter::Counter;
use weir_ring::qsbr::{Published, Reader};
use weir_ring::spsc::{Consumer, Producer};

use crate::clock::Clock;
use crate::idle::{Load, Rest};
use crate::waker::Waker;
use crate::work::QueueWork;

/// What the control side tells a worker.
pub(crate) enum Command {
    /// Serve this receive queue.
    AddRx {
        interface: u32,
        number: usize,
        queue: Box<dyn RxQueue>,
        work: Arc<QueueWork>,
    },
    /// Send what leaves by this interface through this queue.
    AddTx {
        interface: u32,
        number: usize,
        queue: Box<dyn TxQueue>,
        work: Arc<QueueWork>,
    },
    /// Hand what leaves by this interface to that worker.
    HandTo { interface: u32, worker: usize },
    /// Give back all queues of this interface.
    Remove { interface: u32 },
    /// Take packets from another worker through this ring.
    HandoffFrom(Consumer<Pkt>),
    /// Pass packets to another worker through this ring.
    HandoffTo {
        worker: usize,
        ring: Producer<Pkt>,
        waker: Arc<Waker>,
    },
    /// Let packets that wait under the key go on.
    Release(HoldKey),
    /// Send a packet out of the interface in its `aux` word.
    Send(Pkt),
    /// Forward the packets in this ring by the tables that they name.
    RouteFrom(Consumer<Pkt>),
    /// Give the taps their turn at once.
    Tick,
    /// Follow packets, or stop.
    Trace(Option<TraceRequest>),
    /// End: take nothing more in.
    Drain,
    /// End: leave the thread.
    Stop,
}

/// What a worker returns when it removes an interface: queues with their numbers.
pub(crate) enum Returned {
    Rx(usize, Box<dyn RxQueue>),
    Tx(usize, Box<dyn TxQueue>),
}

/// What a worker tells about itself.
#[derive(Debug, Default)]
pub(crate) struct WorkerStats {
    /// Turns of the loop.
    pub(crate) turns: Counter,
    /// Turns that had packets.
    pub(crate) busy: Counter,
    /// Clocks of all turns.
    pub(crate) clocks: Counter,
    /// Clocks of turns that had packets.
    pub(crate) busy_clocks: Counter,
    /// Commands carried out; the control side waits for its number.
    pub(crate) done: AtomicU64,
}

impl WorkerStats {
    /// Turns, turns with packets, clocks of all, clocks of those.
    pub(crate) fn values(&self) -> [u64; 4] {
        [
            self.turns.get(),
            self.busy.get(),
            self.clocks.get(),
            self.busy_clocks.get(),
        ]
    }
}

/// A receive queue with its interface.
struct Rx {
    interface: u32,
    number: usize,
    queue: Box<dyn RxQueue>,
    work: Arc<QueueWork>,
}

/// Where what leaves by an interface goes.
enum Egress {
    None,
    /// By the queue of this number.
    Here(PortTx, usize, Arc<QueueWork>),
    Worker(usize),
}

/// Everything that a worker owns.
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) graph: Graph<Tables>,
    pub(crate) cache: PktCache,
    pub(crate) reader: Reader,
    pub(crate) tables: Arc<Published<Tables>>,
    pub(crate) commands: Consumer<Command>,
    pub(crate) returned: Producer<Returned>,
    pub(crate) events: Producer<Event>,
    pub(crate) control: Arc<Waker>,
    pub(crate) waker: Arc<Waker>,
    pub(crate) stats: Arc<WorkerStats>,
    pub(crate) clock: Clock,
    pub(crate) idle: Idle,
    lane: Lane,
}

/// The queues and rings of a worker.
struct Lane {
    rx: Vec<Rx>,
    egress: Vec<Egress>,
    handoff_in: Vec<Consumer<Pkt>>,
    handoff_out: Vec<Option<(Producer<Pkt>, Arc<Waker>)>>,
    vector: Vector,
    entry: usize,
    port_tx: usize,
    /// What the graph counts.
    counters: Arc<WorkerCounters>,
    draining: bool,
    stopped: bool,
    next_expiry: u64,
    /// What the control side made, until this turn's tables are at hand.
    to_send: Vec<Pkt>,
    /// Datagrams of the router's own that need a route, and the nodes where they enter: of IPv4, of IPv6.
    routed: Option<Consumer<Pkt>>,
    lookups: (usize, usize),
}

/// How often held packets are looked at.
const EXPIRY_INTERVAL: u64 = 10_000_000;
/// The longest sleep in poll(2).
const LONGEST_SLEEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// Queues without a descriptor are asked this often while asleep.
const ASKING_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
/// How many descriptors one poll looks at.
const MOST_POLLED: usize = 64;

impl Worker {
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a worker, each from somewhere else"
    )]
    pub(crate) fn new(
        number: usize,
        graph: Graph<Tables>,
        cache: PktCache,
        reader: Reader,
        tables: Arc<Published<Tables>>,
        commands: Consumer<Command>,
        returned: Producer<Returned>,
        events: Producer<Event>,
        control: Arc<Waker>,
        waker: Arc<Waker>,
        clock: Clock,
        idle: Idle,
    ) -> Worker {
        let entry = graph.find(weir_nodes::names::ETH_INPUT).unwrap_or(0);
        let port_tx = graph.find(weir_nodes::names::PORT_TX).unwrap_or(0);
        let lane = Lane {
            rx: Vec::new(),
            egress: Vec::new(),
            handoff_in: Vec::new(),
            handoff_out: Vec::new(),
            vector: Vector::with_capacity(2 * VECTOR),
            entry,
            port_tx,
            counters: graph.counters(),
            draining: false,
            stopped: false,
            next_expiry: 0,
            to_send: Vec::new(),
            routed: None,
            lookups: (
                graph.find(weir_nodes::names::IP4_LOOKUP).unwrap_or(0),
                graph.find(weir_nodes::names::IP6_LOOKUP).unwrap_or(0),
            ),
        };
        let stats = Arc::default();
        Worker {
            number,
            graph,
            cache,
            reader,
            tables,
            commands,
            returned,
            events,
            control,
            waker,
            stats,
            clock,
            idle,
            lane,
        }
    }

    /// The thread's body: turns until it is stopped.
    pub(crate) fn run(mut self) {
        let mut load = Load::new(self.idle);
        if self.idle != Idle::Poll {
            weir_cpu::scheduling::wake_exactly();
        }
        while !self.lane.stopped {
            let moved = self.turn();
            match load.after_turn(moved, self.clock.now()) {
                Rest::Poll if moved == 0 => std::hint::spin_loop(),
                Rest::Poll => {}
                Rest::Nap(time) => std::thread::sleep(time),
                Rest::Wait => self.sleep(),
            }
        }
        self.reader.offline();
    }

    /// One breath; returns how many packets moved.
    pub(crate) fn turn(&mut self) -> usize {
        let began = weir_cpu::tsc();
        self.reader.quiesce();
        while let Some(command) = self.commands.pop() {
            self.obey(command);
            self.stats.done.fetch_add(1, Ordering::Release);
        }
        let Worker {
            number,
            graph,
            cache,
            reader,
            tables,
            events,
            control,
            clock,
            lane,
            stats,
            ..
        } = self;
        let Some(guard) = reader.guard() else {
            return 0;
        };
        let mut env = Env {
            world: tables.load(&guard),
            now: clock.now(),
            cache,
            events,
            event_sent: false,
        };
        for packet in lane.to_send.drain(..) {
            graph.originate_out(env.world, packet);
        }
        let inhaled = if lane.draining {
            0
        } else {
            lane.inhale(graph, &mut env)
        };
        if env.now >= lane.next_expiry || lane.draining {
            lane.next_expiry = env.now + EXPIRY_INTERVAL;
            graph.expire(&mut env);
            graph.tick_taps(env.now);
        }
        let handed = lane.take_handoffs(graph) + lane.take_routed(graph);
        graph.run(&mut env);
        let left = lane.exhale(graph, &mut env, *number);
        lane.flush(env.cache);
        graph.turn_over(env.now);
        if env.event_sent {
            control.wake();
        }
        stats.turns.add(1);
        let moved = inhaled + handed + left;
        let clocks = weir_cpu::tsc().wrapping_sub(began);
        stats.clocks.add(clocks);
        if moved > 0 {
            stats.busy.add(1);
            stats.busy_clocks.add(clocks);
        }
        moved
    }

    fn obey(&mut self, command: Command) {
        let lane = &mut self.lane;
        match command {
            Command::AddRx {
                interface,
                number,
                queue,
                work,
            } => lane.rx.push(Rx {
                interface,
                number,
                queue,
                work,
            }),
            Command::AddTx {
                interface,
                number,
                queue,
                work,
            } => {
                let egress = Egress::Here(PortTx { interface, queue }, number, work);
                drop(lane.set_egress(interface, egress));
            }
            Command::HandTo { interface, worker } => {
                drop(lane.set_egress(interface, Egress::Worker(worker)))
            }
            Command::Remove { interface } => self.remove(interface),
            Command::HandoffFrom(ring) => lane.handoff_in.push(ring),
            Command::HandoffTo {
                worker,
                ring,
                waker,
            } => {
                if lane.handoff_out.len() <= worker {
                    lane.handoff_out.resize_with(worker + 1, || None);
                }
                lane.handoff_out[worker] = Some((ring, waker));
            }
            Command::Release(key) => self.graph.release(key),
            Command::Send(packet) => lane.to_send.push(packet),
            Command::RouteFrom(ring) => lane.routed = Some(ring),
            Command::Tick => lane.next_expiry = 0,
            Command::Trace(request) => self.graph.trace(request),
            Command::Drain => self.drain(),
            Command::Stop => lane.stopped = true,
        }
    }

    /// Gives the queues of an interface back to the control side, which closes them.
    fn remove(&mut self, interface: u32) {
        let mut place = 0;
        while place < self.lane.rx.len() {
            if self.lane.rx[place].interface == interface {
                let rx = self.lane.rx.swap_remove(place);
                let _ = self.returned.push(Returned::Rx(rx.number, rx.queue));
            } else {
                place += 1;
            }
        }
        if let Egress::Here(port, number, _) = self.lane.set_egress(interface, Egress::None) {
            let _ = self.returned.push(Returned::Tx(number, port.queue));
        }
    }

    /// Takes nothing more in. What waits for an answer stays held and is counted so.
    fn drain(&mut self) {
        self.lane.draining = true;
    }

    /// Waits for a queue or the bell. Offline meanwhile: tables may be freed.
    fn sleep(&mut self) {
        self.waker.will_sleep();
        let work = !self.commands.is_empty()
            || self.lane.handoff_in.iter().any(|ring| !ring.is_empty())
            || self
                .lane
                .routed
                .as_ref()
                .is_some_and(|ring| !ring.is_empty());
        if !work {
            self.reader.offline();
            for rx in &mut self.lane.rx {
                rx.queue.before_sleep();
            }
            let bell = self.waker.bell();
            let mut polled = std::array::from_fn::<_, MOST_POLLED, _>(|_| {
                PollFd::from_borrowed_fd(bell, PollFlags::IN)
            });
            let mut count = 1;
            let mut longest = LONGEST_SLEEP;
            for rx in &self.lane.rx {
                match rx.queue.readable() {
                    Some(readable) if count < MOST_POLLED => {
                        polled[count] = PollFd::from_borrowed_fd(readable, PollFlags::IN);
                        count += 1;
                    }
                    _ if !rx.queue.is_exhausted() && !rx.queue.is_dead() => {
                        longest = ASKING_INTERVAL
                    }
                    _ => {}
                }
            }
            let _ = poll(&mut polled[..count], Some(&longest));
        }
        self.waker.is_awake();
    }
}

impl Lane {
    fn set_egress(&mut self, interface: u32, egress: Egress) -> Egress {
        let place = interface as usize;
        if self.egress.len() <= place {
            self.egress.resize_with(place + 1, || Egress::None);
        }
        std::mem::replace(&mut self.egress[place], egress)
    }

    fn inhale(&mut self, graph: &mut Graph<Tables>, env: &mut Env<'_, Tables>) -> usize {
        let (mut all, mut began) = (0, weir_cpu::tsc());
        for rx in &mut self.rx {
            let count = rx.queue.recv(&mut self.vector, env.cache, VECTOR);
            let now = weir_cpu::tsc();
            rx.work.add(count, now.wrapping_sub(began));
            began = now;
            if count > 0 {
                graph.inhale(env, self.entry, rx.interface, &mut self.vector);
                began = graph.run_since(env, now);
                all += count;
            }
        }
        all
    }

    /// Takes in the router's own datagrams that need a route.
    fn take_routed(&mut self, graph: &mut Graph<Tables>) -> usize {
        let (lookup4, lookup6) = self.lookups;
        let Some(ring) = &mut self.routed else {
            return 0;
        };
        ring.pop_many(VECTOR, |packet| {
            let is_ip6 = packet.l3().first().is_some_and(|first| first >> 4 == 6);
            graph.inject(if is_ip6 { lookup6 } else { lookup4 }, packet);
        })
    }

    fn take_handoffs(&mut self, graph: &mut Graph<Tables>) -> usize {
        self.handoff_in
            .iter_mut()
            .map(|ring| ring.pop_many(VECTOR, |packet| graph.hand_in(packet)))
            .sum()
    }

    /// Sends what leaves; returns how many packets that was.
    fn exhale(
        &mut self,
        graph: &mut Graph<Tables>,
        env: &mut Env<'_, Tables>,
        worker: usize,
    ) -> usize {
        let mut all = 0;
        let Some(mut leaving) = graph.next_leaving() else {
            return 0;
        };
        let mut began = weir_cpu::tsc();
        loop {
            let (interface, packets) = (leaving.0, &mut leaving.1);
            let count = packets.len();
            all += count;
            let dropped = self.counters.totals.dropped.get();
            self.send(graph, env, worker, interface, packets);
            self.note_lost(env, worker, interface, dropped);
            graph.recycle(leaving.0, leaving.1);
            let next = graph.next_leaving();
            let now = weir_cpu::tsc();
            let clocks = now.wrapping_sub(began);
            match self.egress.get(interface as usize) {
                Some(Egress::Here(_, _, work)) => work.add(count, clocks),
                _ => graph.account(self.port_tx, count, clocks),
            }
            began = now;
            match next {
                Some(next) => leaving = next,
                None => break,
            }
        }
        all
    }

    /// Drops are counted where packets came in; what was lost on the egress out also counts where it should have gone.
    #[inline]
    fn note_lost(&self, env: &Env<'_, Tables>, worker: usize, interface: u32, dropped: u64) {
        let lost = self.counters.totals.dropped.get() - dropped;
        if lost > 0
            && let Some(counters) = env
                .world
                .interface(interface)
                .and_then(|it| it.counters.of(worker))
        {
            counters.tx_lost.add(lost);
        }
    }

    fn send(
        &mut self,
        graph: &mut Graph<Tables>,
        env: &mut Env<'_, Tables>,
        worker: usize,
        interface: u32,
        packets: &mut Vector,
    ) {
        match self.egress.get_mut(interface as usize) {
            Some(Egress::Here(port, ..)) => {
                transmit(graph, env, self.port_tx, worker, port, packets)
            }
            Some(Egress::Worker(other)) => {
                let Some(Some((ring, waker))) = self.handoff_out.get_mut(*other) else {
                    return graph.drop_all(env, self.port_tx, DropReason::TxDown, packets);
                };
                let mut flags = Flags::NONE;
                for packet in packets.iter_mut() {
                    packet.set_aux(interface);
                    flags |= packet.flags();
                }
                if flags.any(Flags::MARKED) {
                    graph.part(packets);
                }
                graph.note_leaving(interface, flags, packets);
                let taken = ring.push_many(&mut packets.drain_front(ring.capacity() - ring.len()));
                if taken > 0 {
                    waker.wake();
                }
                if !packets.is_empty() {
                    graph.drop_all(env, self.port_tx, DropReason::HandoffFull, packets);
                }
            }
            Some(Egress::None) | None => {
                graph.drop_all(env, self.port_tx, DropReason::TxDown, packets)
            }
        }
    }

    fn flush(&mut self, cache: &mut PktCache) {
        let mut began = weir_cpu::tsc();
        for egress in &mut self.egress {
            if let Egress::Here(port, _, work) = egress {
                port.queue.flush(cache);
                let now = weir_cpu::tsc();
                work.add_clocks(now.wrapping_sub(began));
                began = now;
            }
        }
    }
}

/// The end: what is still inside is dropped and counted, except what waits, which stays held.
impl Drop for Worker {
    fn drop(&mut self) {
        self.reader.quiesce();
        let Worker {
            number,
            graph,
            cache,
            reader,
            tables,
            events,
            clock,
            lane,
            ..
        } = self;
        if let Some(guard) = reader.guard() {
            let world: &Tables = tables.load(&guard);
            let _ = world.drop_taps();
            let mut env = Env {
                world,
                now: clock.now(),
                cache,
                events,
                event_sent: false,
            };
            lane.take_handoffs(graph);
            lane.exhale(graph, &mut env, *number);
            lane.flush(env.cache);
        }
    }
}
