//! One worker's graph with tables, frames and buffers, run by hand.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_buf::{Hugepages, Pkt, PktCache, Pool, PoolConfig, PoolError, VECTOR, Vector};
use weir_graph::{Env, Graph, TraceRequest, WorkerCounters};
use weir_nodes::{Entry, Event, IcmpLimit, PortTx, Tables, names, transmit};
use weir_port::TxQueue;
use weir_port::interface::Kind;
use weir_port::null::NullTx;
use weir_ring::spsc::{self, Consumer, Producer};
use weir_telemetry::flows::Table;
use weir_telemetry::meter::{Meter, MeterControl, MeterPlan, MeterSettings};
use weir_telemetry::sampler::{RING, SampleSource, Sampler, Settings};

use crate::scene::{Check, Frames, IN, Scene, Telemetry};

/// Buffers that circulate.
const CIRCULATING: usize = 16_384;

/// What came out was not what should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckError(pub String);

impl std::fmt::Display for CheckError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CheckError {}

/// Everything that a block of turns needs.
pub(crate) struct Rig {
    graph: Graph<Tables>,
    pub(crate) counters: Arc<WorkerCounters>,
    cache: PktCache,
    ring: VecDeque<Pkt>,
    frames: Frames,
    check: Check,
    next_frame: usize,
    off: Tables,
    on: Tables,
    events: (Producer<Event>, Consumer<Event>),
    /// Transmit queues by interface.
    ports: Vec<PortTx>,
    entry: usize,
    /// Packets of a vector.
    size: usize,
    /// Ports that receive in turn, and whose turn it is.
    inputs: Vec<u32>,
    next_input: usize,
    telemetry: Telemetry,
    egress: Option<fn(&[u8]) -> u32>,
    copies: fn(&[u8]) -> usize,
    is_originated: fn(&[u8]) -> bool,
    stage: usize,
    vector: Vector,
    now: u64,
    settings: Arc<Settings>,
    meter_settings: Arc<MeterSettings>,
    meter_control: MeterControl,
    pub(crate) hugepages: bool,
}

impl Rig {
    /// A rig that plays a scene, which keeps its routes and next hops; and the end of its sampler.
    pub(crate) fn new(scene: &mut Scene, seed: u64) -> Result<(Rig, SampleSource), PoolError> {
        Rig::of_worker(scene, seed, 0, CIRCULATING)
    }

    /// The same in any worker, with so many buffers that circulate.
    pub(crate) fn of_worker(
        scene: &mut Scene,
        seed: u64,
        worker: usize,
        circulating: usize,
    ) -> Result<(Rig, SampleSource), PoolError> {
        let pool = Pool::new(PoolConfig {
            chunks: circulating + 8 * VECTOR,
            hugepages: Hugepages::Auto,
        })?;
        let mut cache = PktCache::new(&pool);
        let settings = Settings::new(0, 128);
        let (sampler, source) = Sampler::new(settings.clone(), seed, RING);
        let meter_settings = Arc::new(MeterSettings::default());
        let (meter, meter_control) = Meter::new(meter_settings.clone(), seed);
        let builder = weir_nodes::graph(IcmpLimit::default())
            .tap(Box::new(sampler))
            .tap(Box::new(meter));
        let mut graph = builder
            .build(worker, spsc::ring(64).0)
            .map_err(|_| PoolError::Size { chunks: 0 })?;
        if scene.traced.is_some() {
            graph.trace(Some(TraceRequest {
                node: None,
                interface: scene.traced,
                received: true,
                count: u32::MAX,
            }));
        }
        let [off, on] = scene.tables();
        let mut ring = VecDeque::with_capacity(circulating + VECTOR);
        let mut all: Vec<Pkt> = (0..circulating).filter_map(|_| cache.alloc()).collect();
        shuffle(&mut all, seed);
        ring.extend(all);
        let (entry, stage) = (
            graph.find(names::ETH_INPUT).unwrap_or(0),
            graph.find(names::PORT_TX).unwrap_or(0),
        );
        let counters = graph.counters();
        let ports = (0..off.interfaces.len() as u32)
            .map(|interface| PortTx {
                interface,
                queue: Box::new(NullTx),
            })
            .collect();
        let hugepages = pool.on_hugepages();
        let rig = Rig {
            graph,
            counters,
            cache,
            ring,
            frames: std::mem::take(&mut scene.frames),
            check: std::mem::replace(
                &mut scene.check,
                Box::new(|_, _| Err("the frames are elsewhere".into())),
            ),
            next_frame: 0,
            off,
            on,
            events: spsc::ring(64),
            ports,
            entry,
            size: scene.vector,
            inputs: scene.inputs.clone(),
            next_input: 0,
            telemetry: scene.telemetry,
            egress: scene.egress,
            copies: scene.copies,
            is_originated: scene.is_originated,
            stage,
            vector: Vector::with_capacity(2 * VECTOR),
            now: 0,
            settings,
            meter_settings,
            meter_control,
            hugepages,
        };
        Ok((rig, source))
    }

    /// Packets of a vector.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Fills the vector with the next frames. Not measured.
    fn input(&mut self) {
        while self.events.1.pop().is_some() {}
        self.next_input = (self.next_input + 1) % self.inputs.len().max(1);
        for _ in 0..self.size {
            if let Some(packet) = self.cache.alloc() {
                self.ring.push_back(packet);
            }
            let Some(mut packet) = self.ring.pop_front() else {
                return;
            };
            // Not to stand still here: the longer this takes, the more of the tables others push out of shared caches.
            if let Some(soon) = self.ring.get(16) {
                soon.prefetch();
            }
            packet.clear();
            let filled = self.frames.fill(self.next_frame, &mut packet);
            self.next_frame = (self.next_frame + 1) % self.frames.len().max(1);
            debug_assert!(filled);
            self.vector.push(packet);
        }
    }

    /// Turns in which every frame comes once, where the case meters flows; else none.
    pub(crate) fn turns_to_meet_all(&self) -> usize {
        match self.telemetry.metered {
            true => self.frames.len().div_ceil(self.size.max(1)),
            false => 0,
        }
    }

    /// One turn; returns the clocks of everything but the input.
    pub(crate) fn turn(&mut self, sampled: bool) -> u64 {
        self.input();
        self.measured_turn(sampled | self.is_observed())
    }

    /// Whether sampling or metering belong to the case.
    fn is_observed(&self) -> bool {
        self.telemetry.sampling != 0 || self.telemetry.metered
    }

    /// One turn by other tables than the scene's, which may send by [`BESIDE`], too.
    pub(crate) fn turn_by(&mut self, world: &Tables) {
        self.input();
        self.now += 10_000;
        let mut env = Env {
            world,
            now: self.now,
            cache: &mut self.cache,
            events: &mut self.events.0,
            event_sent: false,
        };
        self.graph
            .inhale(&mut env, self.entry, IN, &mut self.vector);
        self.graph.run(&mut env);
        while let Some((interface, mut packets)) = self.graph.next_leaving() {
            let port = &mut self.ports[interface as usize];
            transmit(&mut self.graph, &mut env, self.stage, 0, port, &mut packets);
            self.graph.recycle(interface, packets);
        }
    }

    /// What of a turn is measured. Those who count instructions know this function by its name.
    #[inline(never)]
    fn measured_turn(&mut self, sampled: bool) -> u64 {
        self.now += 10_000;
        let world = if sampled { &self.on } else { &self.off };
        let mut env = Env {
            world,
            now: self.now,
            cache: &mut self.cache,
            events: &mut self.events.0,
            event_sent: false,
        };
        let input = self.inputs[self.next_input];
        let began = weir_cpu::tsc();
        self.graph
            .inhale(&mut env, self.entry, input, &mut self.vector);
        let mut transmitting = self.graph.run_since(&mut env, began);
        while let Some((interface, mut packets)) = self.graph.next_leaving() {
            let count = packets.len();
            transmit(
                &mut self.graph,
                &mut env,
                self.stage,
                0,
                &mut self.ports[interface as usize],
                &mut packets,
            );
            self.graph.recycle(interface, packets);
            let now = weir_cpu::tsc();
            self.graph
                .account(self.stage, count, now.wrapping_sub(transmitting));
            transmitting = now;
        }
        self.graph.turn_over(self.now);
        weir_cpu::tsc().wrapping_sub(began)
    }

    /// Sets how often to sample; the taps take note.
    pub(crate) fn sample(&mut self, rate: u32) {
        let rate = rate.max(self.telemetry.sampling);
        self.settings.set(rate, 128);
        self.tick();
    }

    /// The taps' own time.
    pub(crate) fn tick(&mut self) {
        self.graph.tick_taps(self.now);
    }

    /// Meters flows where there was sampling.
    pub(crate) fn meter(&mut self, plan: MeterPlan, table: Table) {
        self.meter_settings.set(plan);
        self.meter_control.give(Some(Box::new(table)));
        self.tick();
        for entry in self
            .on
            .interfaces
            .iter_mut()
            .flatten()
            .filter(|entry| entry.interface.rx_taps != 0)
        {
            let mut metered = Entry::clone(entry);
            metered.interface.rx_taps = if self.telemetry.metered { 3 } else { 2 };
            *entry = Arc::new(metered);
        }
    }

    /// The tables of turns that are sampled.
    pub(crate) fn sampled_tables(&self) -> &Tables {
        &self.on
    }

    /// Clocks a packet over `turns` turns.
    pub(crate) fn block(&mut self, turns: usize, sampled: bool) -> f64 {
        let clocks: u64 = (0..turns).map(|_| self.turn(sampled)).sum();
        clocks as f64 / (turns * self.size) as f64
    }

    /// Clocks so far by node.
    pub(crate) fn node_clocks(&self) -> Vec<(&'static str, u64, u64)> {
        let specs = self.graph.specs().iter().zip(self.counters.nodes.iter());
        specs
            .map(|(spec, counters)| (spec.name, counters.clocks.get(), counters.packets.get()))
            .collect()
    }

    /// Runs untimed and compares every frame that leaves, and the counters, with what is expected.
    pub(crate) fn check(&mut self) -> Result<(), CheckError> {
        const TURNS: usize = 300;
        let caught = Caught::default();
        let before: Vec<PortTx> = (0..self.ports.len() as u32)
            .map(|interface| PortTx {
                interface,
                queue: Box::new(Catcher {
                    interface,
                    caught: caught.clone(),
                }),
            })
            .collect();
        let before = std::mem::replace(&mut self.ports, before);
        (self.next_frame, self.next_input) = (0, 0);
        for _ in 0..TURNS {
            self.turn(false);
        }
        self.ports = before;
        let frames = self.frames.len().max(1);
        let received = TURNS * self.size;
        // Cases that make their frames have far more than go in here.
        let mut seen = vec![0; frames.min(received)];
        let (mut count, mut originated) = (0, 0);
        let caught = std::mem::take(&mut *caught.lock());
        for (interface, frame) in caught {
            if (self.is_originated)(&frame) {
                originated += 1;
                continue;
            }
            let number = self.frames.number_of(&frame, count) % frames;
            let sent = self.frames.get(number);
            let egress = self.egress.map_or(interface, |egress| egress(&sent));
            if egress != interface {
                return Err(CheckError(format!(
                    "frame {number} left by port {interface} instead of {egress}"
                )));
            }
            (self.check)(&sent, &frame)
                .map_err(|wrong| CheckError(format!("frame {number}: {wrong}")))?;
            *seen.get_mut(number).ok_or_else(|| {
                CheckError(format!("frame {number} came out and never went in"))
            })? += 1;
            count += 1;
        }
        // Of each frame as many copies left as should.
        let mut wanted = 0;
        for (number, &got) in seen.iter().enumerate() {
            let times = (received + frames - 1 - number) / frames;
            let sent = times * (self.copies)(&self.frames.get(number));
            wanted += sent;
            if sent != got {
                return Err(CheckError(format!(
                    "frame {number} was received {times} times and left {got} times instead of {sent}"
                )));
            }
        }
        self.check_counters(received as u64, wanted as u64, originated)
    }

    /// What counters say of the untimed run: packets received, sent on, and made by the router.
    fn check_counters(&self, received: u64, sent: u64, originated: u64) -> Result<(), CheckError> {
        let totals = &self.counters.totals;
        let (input, output, dropped) = (
            totals.input.get(),
            totals.output.get(),
            totals.dropped.get(),
        );
        let ports: Vec<_> = (1..self.off.interfaces.len() as u32)
            .filter_map(|index| self.off.interface(index))
            .filter(|port| port.kind == Kind::Port)
            .collect();
        let rx: Vec<_> = ports.iter().map(|port| port.counters.rx()).collect();
        let tx: Vec<_> = ports.iter().map(|port| port.counters.tx()).collect();
        let plain = sent == received && originated == 0;
        if input != received
            || output != sent + originated
            || plain && dropped != 0
            || rx.iter().map(|rx| rx.packets).sum::<u64>() != received
            || plain && rx.iter().map(|rx| rx.unicast).sum::<u64>() != received
            || tx.iter().map(|tx| tx.packets).sum::<u64>() != output
        {
            return Err(CheckError(format!(
                "received {received}, expected to leave {sent}, originated {originated}; \
                 counters: in {input}, out {output}, dropped {dropped}, {rx:?}, {tx:?}"
            )));
        }
        Ok(())
    }
}

/// Frames that were sent, with the interface.
#[derive(Clone, Default)]
struct Caught(Arc<std::sync::Mutex<Vec<Sent>>>);

/// The interface that a frame left by, and the frame.
type Sent = (u32, Box<[u8]>);

impl Caught {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Sent>> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Keeps what is sent.
struct Catcher {
    interface: u32,
    caught: Caught,
}

impl TxQueue for Catcher {
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize {
        let count = from.len();
        let mut caught = self.caught.lock();
        for packet in from.drain() {
            let mut whole = vec![0; packet.total_len()];
            packet.copy_out(0, &mut whole);
            caught.push((self.interface, whole.into()));
            cache.free(packet);
        }
        count
    }
}

fn shuffle(packets: &mut [Pkt], seed: u64) {
    let mut random = weir_telemetry::random::Random::new(seed);
    for last in (1..packets.len()).rev() {
        let other = (random.bits() % (last as u64 + 1)) as usize;
        packets.swap(last, other);
    }
}
