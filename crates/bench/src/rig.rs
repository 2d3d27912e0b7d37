//! One worker's graph with tables, frames and buffers, run by hand.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::Arc;

use ipnet::Ipv4Net;
use weir_buf::{Hugepages, Pkt, PktCache, Pool, PoolConfig, PoolError, VECTOR, Vector};
use weir_fib::{Adjacency, Fib4Writer, Group, NeighborState, NexthopTable, Path};
use weir_graph::{DropMap, Env, Graph, WorkerCounters};
use weir_nodes::{Entry, Event, IcmpLimit, PortTx, Tables, names, transmit};
use weir_port::TxQueue;
use weir_port::interface::{Input, Interface, InterfaceCounters, Kind};
use weir_port::null::NullTx;
use weir_ring::qsbr::Domain;
use weir_ring::spsc::{self, Consumer, Producer};
use weir_telemetry::sampler::{RING, SampleSource, Sampler, Settings};
use weir_wire::{MacAddr, build, checksum};

/// Buffers that circulate.
const CIRCULATING: usize = 16_384;
/// Bytes of every frame.
const FRAME: usize = 64;
const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const IN: u32 = 1;
const OUT: u32 = 2;
const BESIDE: u32 = 3;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// A cross connect.
    L2xc,
    /// IPv4 forwarding, 64k flows, a small table.
    Ip4,
    /// A cross connect without sFlow beside a sampled one in the same router.
    L2xcBeside,
}

impl Case {
    /// All cases, in the order of the report.
    pub const ALL: [Case; 3] = [Case::L2xc, Case::Ip4, Case::L2xcBeside];

    /// Its name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Case::L2xc => "l2xc",
            Case::Ip4 => "ip4",
            Case::L2xcBeside => "l2xc-beside",
        }
    }
}

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
    case: Case,
    graph: Graph<Tables>,
    pub(crate) counters: Arc<WorkerCounters>,
    cache: PktCache,
    ring: VecDeque<Pkt>,
    frames: Vec<[u8; FRAME]>,
    next_frame: usize,
    off: Tables,
    on: Tables,
    events: (Producer<Event>, Consumer<Event>),
    port: PortTx,
    entry: usize,
    stage: usize,
    vector: Vector,
    now: u64,
    settings: Arc<Settings>,
    pub(crate) hugepages: bool,
}

impl Rig {
    /// A rig and the end of its sampler.
    pub(crate) fn new(case: Case, seed: u64) -> Result<(Rig, SampleSource), PoolError> {
        let pool = Pool::new(PoolConfig { chunks: CIRCULATING + 8 * VECTOR, hugepages: Hugepages::Auto })?;
        let mut cache = PktCache::new(&pool);
        let settings = Settings::new(0, 128);
        let (sampler, source) = Sampler::new(settings.clone(), seed, RING);
        let builder = weir_nodes::graph(IcmpLimit::default()).tap(Box::new(sampler));
        let map = builder.drop_map();
        let graph = builder.build(0, spsc::ring(64).0).map_err(|_| PoolError::Size { chunks: 0 })?;
        let off = tables(case, &map, false);
        let on = Tables { interfaces: tables(case, &map, true).interfaces, ..off.clone() };
        let mut ring = VecDeque::with_capacity(CIRCULATING + VECTOR);
        let mut all: Vec<Pkt> = (0..CIRCULATING).filter_map(|_| cache.alloc()).collect();
        shuffle(&mut all, seed);
        ring.extend(all);
        let (entry, stage) = (graph.find(names::ETH_INPUT).unwrap_or(0), graph.find(names::PORT_TX).unwrap_or(0));
        let counters = graph.counters();
        let port = PortTx { interface: OUT, queue: Box::new(NullTx) };
        let hugepages = pool.on_hugepages();
        let rig = Rig {
            case,
            graph,
            counters,
            cache,
            ring,
            frames: frames(case),
            next_frame: 0,
            off,
            on,
            events: spsc::ring(64),
            port,
            entry,
            stage,
            vector: Vector::with_capacity(2 * VECTOR),
            now: 0,
            settings,
            hugepages,
        };
        Ok((rig, source))
    }

    /// Fills the vector with the next 256 frames. Not measured.
    fn input(&mut self) {
        for _ in 0..VECTOR {
            if let Some(packet) = self.cache.alloc() {
                self.ring.push_back(packet);
            }
            let Some(mut packet) = self.ring.pop_front() else { return };
            let frame = &self.frames[self.next_frame];
            self.next_frame = (self.next_frame + 1) % self.frames.len();
            packet.clear();
            let filled = packet.fill(frame);
            debug_assert!(filled);
            self.vector.push(packet);
        }
    }

    /// One turn; returns the clocks of everything but the input.
    pub(crate) fn turn(&mut self, sampled: bool) -> u64 {
        self.input();
        self.now += 10_000;
        let world = if sampled { &self.on } else { &self.off };
        let mut env = Env { world, now: self.now, cache: &mut self.cache, events: &mut self.events.0, event_sent: false };
        let began = weir_cpu::tsc();
        self.graph.inhale(&mut env, self.entry, IN, &mut self.vector);
        self.graph.run(&mut env);
        let transmitting = weir_cpu::tsc();
        while let Some((interface, mut packets)) = self.graph.next_leaving() {
            let count = packets.len();
            transmit(&mut self.graph, &mut env, self.stage, 0, &mut self.port, &mut packets);
            self.graph.recycle(interface, packets);
            self.graph.account(self.stage, count, weir_cpu::tsc().wrapping_sub(transmitting));
        }
        weir_cpu::tsc().wrapping_sub(began)
    }

    /// Sets how often to sample; the taps take note.
    pub(crate) fn sample(&mut self, rate: u32) {
        self.settings.set(rate, 128);
        self.graph.tick_taps(self.now);
    }

    /// Clocks a packet over `turns` turns.
    pub(crate) fn block(&mut self, turns: usize, sampled: bool) -> f64 {
        let clocks: u64 = (0..turns).map(|_| self.turn(sampled)).sum();
        clocks as f64 / (turns * VECTOR) as f64
    }

    /// Clocks so far by node.
    pub(crate) fn node_clocks(&self) -> Vec<(&'static str, u64, u64)> {
        let specs = self.graph.specs().iter().zip(self.counters.nodes.iter());
        specs.map(|(spec, counters)| (spec.name, counters.clocks.get(), counters.packets.get())).collect()
    }

    /// Runs untimed and looks at every frame that comes out and at the counters.
    pub(crate) fn check(&mut self) -> Result<(), CheckError> {
        const TURNS: usize = 300;
        let (catcher, caught) = Catcher::new();
        let port = std::mem::replace(&mut self.port, PortTx { interface: OUT, queue: Box::new(catcher) });
        self.next_frame = 0;
        for _ in 0..TURNS {
            self.turn(false);
        }
        self.port = port;
        let mut caught = caught;
        let mut count = 0;
        while let Some(frame) = caught.pop() {
            let sent = &self.frames[count % self.frames.len()];
            verify(self.case, sent, &frame).map_err(|wrong| CheckError(format!("frame {count}: {wrong}")))?;
            count += 1;
        }
        let totals = &self.counters.totals;
        let (input, output, dropped) = (totals.input.get(), totals.output.get(), totals.dropped.get());
        let tx = self.off.interface(OUT).map(|out| out.counters.tx()).unwrap_or_default();
        let rx = self.off.interface(IN).map(|out| out.counters.rx()).unwrap_or_default();
        if count != TURNS * VECTOR || input != output || dropped != 0 || tx.packets != output || rx.packets != input || rx.unicast != input
        {
            return Err(CheckError(format!(
                "{count} frames came out; counters: in {input}, out {output}, dropped {dropped}, {rx:?}, {tx:?}"
            )));
        }
        Ok(())
    }
}

/// What must have become of a frame.
fn verify(case: Case, sent: &[u8; FRAME], got: &[u8; FRAME]) -> Result<(), String> {
    if case != Case::Ip4 {
        return if sent == got { Ok(()) } else { Err("changed on a cross connect".into()) };
    }
    let Some((header, _)) = weir_wire::Ipv4Header::read(&got[14..]) else { return Err("cut off".into()) };
    let right = got[0..5] == [2, 0, 0, 0, 1]
        && got[6..12] == OURS.0
        && got[22] == sent[22] - 1
        && checksum::ipv4_header_ok(header)
        && got[26..] == sent[26..]
        && got[14..22] == sent[14..22];
    if right { Ok(()) } else { Err(format!("not forwarded as it should be: {got:02x?}")) }
}

/// Keeps what is sent.
struct Catcher(Producer<[u8; FRAME]>);

impl Catcher {
    fn new() -> (Catcher, Consumer<[u8; FRAME]>) {
        let (producer, consumer) = spsc::ring(1 << 17);
        (Catcher(producer), consumer)
    }
}

impl TxQueue for Catcher {
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize {
        let count = from.len();
        for packet in from.drain() {
            if let Ok(frame) = packet.data().try_into() {
                let _ = self.0.push(frame);
            }
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

/// The frames, one a flow: 64k flows for IPv4 in shuffled order.
fn frames(case: Case) -> Vec<[u8; FRAME]> {
    let flows = if case == Case::Ip4 { 65_536u32 } else { 256 };
    let frame = |flow: u32| {
        let flow = flow.wrapping_mul(40_503) % flows;
        let ends = build::Ends {
            destination_mac: OURS,
            source_mac: PEER,
            source: u32::from(Ipv4Addr::new(10, 9, 0, 0)) + flow,
            destination: u32::from(Ipv4Addr::new(10, 1, 0, 0)) + flow,
            source_port: 1000,
            destination_port: 9,
            ..build::Ends::default()
        };
        let made = build::udp4(&ends, &[0; FRAME - 42]);
        let mut frame = [0; FRAME];
        frame.iter_mut().zip(made).for_each(|(place, byte)| *place = byte);
        frame
    };
    (0..flows).map(frame).collect()
}

/// A router's tables: two ports, sixteen routes over four neighbours.
fn tables(case: Case, map: &DropMap, sampled: bool) -> Tables {
    let domain = Domain::new(1);
    let mut nexthops = NexthopTable::new();
    let mut fib = match Fib4Writer::new(&domain) {
        Ok(fib) => fib,
        Err(error) => unreachable!("an empty table has room: {error}"),
    };
    for neighbor in 1..=4u8 {
        let adjacency = Adjacency::neighbor(OUT, Ipv4Addr::new(10, 2, 0, neighbor).into(), 1500, OURS.0);
        adjacency.set_neighbor(NeighborState::Static, [2, 0, 0, 0, 1, neighbor]);
        let number = nexthops.add_adjacency(adjacency);
        let group = Group::new([Path::to(number)]).ok().and_then(|group| nexthops.acquire(group).ok()).unwrap_or(0);
        for part in 0..4u8 {
            let third = (part * 4 + neighbor - 1) * 16;
            let prefix = Ipv4Net::new(Ipv4Addr::new(10, 1, third, 0), 20).unwrap_or_default();
            let _ = fib.insert(prefix, group);
        }
    }
    let mut tables = Tables { fib4: vec![fib.fib().clone()], nexthops: nexthops.snapshot(), ..Tables::default() };
    tables.interfaces = vec![None];
    for index in [IN, OUT, BESIDE] {
        tables.interfaces.push(Some(Arc::new(entry(case, map, index, sampled))));
    }
    tables
}

fn entry(case: Case, map: &DropMap, index: u32, sampled: bool) -> Entry {
    let input = match (case, index) {
        (Case::Ip4, IN) => Input::Routed,
        (_, IN) => Input::CrossConnect(OUT),
        (_, BESIDE) => Input::CrossConnect(BESIDE),
        _ => Input::Unused,
    };
    let looked_at = if case == Case::L2xcBeside { BESIDE } else { IN };
    let interface = Interface {
        input,
        rx_taps: u32::from(sampled && index == looked_at),
        can_send: true,
        ..Interface::at_rest(index, format!("port{index}").into(), Kind::Port, OURS, Arc::new(InterfaceCounters::new(1)))
    };
    Entry { interface, drops: [map.counters()].into() }
}
