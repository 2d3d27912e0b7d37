//! How many completed samples a second the sFlow agent takes from the workers' rings to UDP datagrams, on one core.
//!
//! ```text
//! core 1   four workers' graphs (ip4), every packet sampled ─► rings     ◄─ core 0 ─►     counting listener   core 1
//!                                                                   the agent's thread
//! ```
//!
//! Everything is what a router has: samplers and graphs write samples of 128 octets and what became of their packets,
//! the agent joins both, asks the tables for the way, encodes, and sends to a socket of this machine. The workers are
//! turned by hand, as many samples a second as a step wants. Steps rise by a quarter until one loses something twice;
//! the last that lost nothing is the figure. Then three times as much is offered, to see that what is lost is counted
//! exactly and that each worker has its share.
//!
//! The kernel's work of sending is done on the agent's core, up to the listener's socket.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ipnet::Ipv4Net;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use serde::Serialize;
use weir_fib::Fib4Writer;
use weir_flowfmt::sflow::decode::{Datagram, FlowRecord, Sample};
use weir_flowfmt::sflow::{DataFormat, Port};
use weir_nodes::Tables;
use weir_ring::Padded;
use weir_telemetry::agent::{
    Agent, AgentConfig, AgentHandle, Asked, Destination, Hop, InterfaceReport, Labels, PathLookup,
    Reports, SampledPath,
};
use weir_telemetry::sampler::SamplerCounters;

use crate::cases::ip4;
use crate::measure::BenchError;
use crate::rig::{CheckError, Rig};
use crate::scene::{OUT, Scene};

/// Workers whose rings are read.
const WORKERS: usize = 4;
/// Buffers that circulate in each.
const BUFFERS: usize = 4096;
/// Samples a second that there shall be.
const TARGET: u64 = 1_000_000;
/// The first step, and by how much the next one is more.
const FIRST: f64 = 400_000.0;
const MORE: f64 = 1.25;
/// What is offered at the end, in terms of the best.
const TOO_MUCH: f64 = 3.0;
/// Octets of a frame: more than those of a header.
const FRAME: usize = 300;
/// Octets of a packet in each sample.
const HEADER: usize = 128;
/// What is late by this much is made up for at once.
const LATE: Duration = Duration::from_millis(1);
/// Samples of a turn: each of a vector's packets.
const A_TURN: f64 = 256.0;
/// How long what is under way may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// The listener's buffer, as large as it may be.
const BUFFER: usize = 32 << 20;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SflowExport {
    /// Completed samples a second that were sent while nothing was lost.
    pub samples_per_second: f64,
    /// How many it should be.
    pub target: u64,
    /// Datagrams a second, then.
    pub datagrams_per_second: f64,
    /// Octets of the packets that each sample has.
    pub header_bytes: u16,
    /// The steps that led there.
    pub steps: Vec<Step>,
    /// What became of far too many.
    pub overload: Overload,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Samples a second that were wanted.
    pub wanted: f64,
    /// Samples a second that workers took.
    pub samples_per_second: f64,
    /// Samples that found a ring full.
    pub dropped: u64,
    /// Samples that were sent, and did not come.
    pub missing: u64,
}

/// More than can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Overload {
    /// Samples that workers took.
    pub taken: u64,
    /// Samples that were sent.
    pub sent: u64,
    /// Samples that were counted as dropped.
    pub dropped: u64,
    /// Samples that the listener got.
    pub received: u64,
    /// Samples sent a second.
    pub samples_per_second: f64,
    /// Jain's index of what was sent of each worker: 1 when all have the same.
    pub fairness: f64,
}

impl Overload {
    /// Whether every sample is accounted for.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.taken == self.sent + self.dropped
    }
}

/// Measures, with steps of this length.
///
/// # Errors
/// When there are no sockets, threads or buffers, or what is sent is not what should be.
pub fn sflow_export(
    step: Duration,
    mut progress: impl FnMut(&str),
) -> Result<SflowExport, BenchError> {
    let cores = weir_cpu::allowed_cores();
    let said = |error: std::io::Error| BenchError::Said(error.to_string());
    if let Some(&second) = cores.get(1) {
        weir_cpu::pin_to(second).map_err(said)?;
    }
    let listener = Listener::start().map_err(said)?;
    let mut bed = Bed::new(
        &listener,
        cores.first().copied().filter(|_| cores.len() > 1),
    )?;
    let (mut steps, mut wanted, mut failed) = (Vec::new(), FIRST, 0);
    let (mut best, mut datagrams) = (0.0_f64, 0.0);
    while failed < 2 {
        progress(&format!("{wanted:.0} samples a second"));
        let (before, began) = (listener.datagrams(), Instant::now());
        let found = bed.step(wanted, step, &listener);
        let lost_nothing =
            found.dropped == 0 && found.missing == 0 && found.samples_per_second >= 0.97 * wanted;
        steps.push(found);
        if lost_nothing {
            datagrams = if found.samples_per_second > best {
                (listener.datagrams() - before) as f64 / began.elapsed().as_secs_f64()
            } else {
                datagrams
            };
            (best, wanted, failed) = (best.max(found.samples_per_second), wanted * MORE, 0);
        } else {
            failed += 1;
        }
    }
    check(&listener.last.lock().unwrap_or_else(PoisonError::into_inner))?;
    progress("more than can be sent");
    let overload = bed.overload(TOO_MUCH * best.max(FIRST), step * 2, &listener);
    Ok(SflowExport {
        samples_per_second: best,
        target: TARGET,
        datagrams_per_second: datagrams,
        header_bytes: HEADER as u16,
        steps,
        overload,
    })
}

/// The workers, and the agent behind them.
struct Bed {
    rigs: Vec<Rig>,
    counters: Vec<Arc<Padded<SamplerCounters>>>,
    agent: AgentHandle,
}

/// Tables that know how long the prefixes of routes are, as those of a router that samples do.
fn with_lengths(mut tables: Tables, scene: &Scene) -> Result<Tables, BenchError> {
    let mut lengths = Fib4Writer::new(&scene.domain).map_err(BenchError::Fib)?;
    let connected = Ipv4Net::new(Ipv4Addr::new(10, 9, 0, 0), 16);
    let routes = (0..16).map(|part| Ipv4Net::new(Ipv4Addr::new(10, 1, part * 16, 0), 20));
    for prefix in routes.chain([connected]).flatten() {
        lengths
            .insert(prefix, prefix.prefix_len().into())
            .map_err(BenchError::Fib)?;
    }
    tables.lengths4 = vec![lengths.fib().clone()];
    Ok(tables)
}

/// What was counted so far.
#[derive(Clone, Debug, Default)]
struct Count {
    taken: u64,
    dropped: u64,
    sent: Vec<u64>,
    received: u64,
}

impl Bed {
    /// The agent runs on a core of its own, if there is one.
    fn new(listener: &Listener, agents_core: Option<usize>) -> Result<Bed, BenchError> {
        let (mut rigs, mut sources, mut tables) = (Vec::new(), Vec::new(), None);
        for worker in 0..WORKERS {
            let mut scene = Scene::new(1).map_err(BenchError::Fib)?;
            ip4::set_with(&mut scene, FRAME);
            let (mut rig, source) = Rig::of_worker(&mut scene, worker as u64 + 1, worker, BUFFERS)
                .map_err(BenchError::Pool)?;
            rig.sample(1);
            if tables.is_none() {
                tables = Some(with_lengths(rig.sampled_tables().clone(), &scene)?);
            }
            rigs.push(rig);
            sources.push(source);
        }
        let counters = sources
            .iter()
            .map(|source| source.counters.clone())
            .collect();
        let collectors = vec![Destination::from(listener.address)];
        let config = AgentConfig {
            collectors,
            ..AgentConfig::new([192, 0, 2, 1].into())
        };
        let reports = Arc::new(TablesOf(tables.unwrap_or_default()));
        // A thread begins on the core of whoever starts it.
        let start = move || {
            if let Some(core) = agents_core {
                weir_cpu::pin_to(core)?;
            }
            Agent::start(config, sources, reports)
        };
        let agent = std::thread::spawn(start)
            .join()
            .map_err(|_| BenchError::Said("the agent did not start".into()))?;
        Ok(Bed {
            rigs,
            counters,
            agent: agent.map_err(|error| BenchError::Said(error.to_string()))?,
        })
    }

    fn count(&self, listener: &Listener) -> Count {
        Count {
            taken: self
                .counters
                .iter()
                .map(|counters| counters.taken.get())
                .sum(),
            dropped: self
                .counters
                .iter()
                .map(|counters| counters.lost.get())
                .sum(),
            sent: self.agent.stats().samples_sent,
            received: listener.samples.load(Ordering::Acquire),
        }
    }

    /// Turns the workers for so long, to take so many samples a second, and waits until all of them are somewhere. Returns
    /// what was counted meanwhile, and the seconds of the turns.
    ///
    /// Where this thread was kept from running, the turns of the time beyond [`LATE`] come later, not all at once: that would
    /// be another load than the one that is asked about.
    fn turn(&mut self, wanted: f64, time: Duration, listener: &Listener) -> (Count, f64) {
        let before = self.count(listener);
        let pause = Duration::from_secs_f64(A_TURN / wanted);
        let turns = (time.as_secs_f64() * wanted / A_TURN) as usize;
        let began = Instant::now();
        let mut due = began;
        for rig in (0..WORKERS).cycle().take(turns) {
            while Instant::now() < due {
                // The listener shares this core.
                std::thread::sleep(Duration::from_micros(50));
            }
            due = (due + pause).max(Instant::now().checked_sub(LATE).unwrap_or(began));
            self.rigs[rig].turn(true);
        }
        let seconds = began.elapsed().as_secs_f64();
        // As in a router: the last samples are shown with the next tick.
        self.rigs.iter_mut().for_each(Rig::tick);
        let until = Instant::now() + PATIENCE;
        loop {
            std::thread::sleep(Duration::from_millis(20));
            let now = self.count(listener).since(&before);
            if (now.taken == now.dropped + now.all_sent() && now.received >= now.all_sent())
                || Instant::now() > until
            {
                return (now, seconds);
            }
        }
    }

    fn step(&mut self, wanted: f64, time: Duration, listener: &Listener) -> Step {
        let (count, seconds) = self.turn(wanted, time, listener);
        let missing = count.all_sent().saturating_sub(count.received);
        Step {
            wanted,
            samples_per_second: count.taken as f64 / seconds,
            dropped: count.dropped,
            missing,
        }
    }

    fn overload(&mut self, wanted: f64, time: Duration, listener: &Listener) -> Overload {
        let (count, seconds) = self.turn(wanted, time, listener);
        let squares: f64 = count
            .sent
            .iter()
            .map(|&sent| sent as f64 * sent as f64)
            .sum();
        let sent = count.all_sent();
        Overload {
            taken: count.taken,
            sent,
            dropped: count.dropped,
            received: count.received,
            samples_per_second: sent as f64 / seconds,
            fairness: sent as f64 * sent as f64 / (count.sent.len() as f64 * squares).max(1.0),
        }
    }
}

impl Count {
    fn since(&self, before: &Count) -> Count {
        let sent = self
            .sent
            .iter()
            .enumerate()
            .map(|(worker, &now)| now - before.sent.get(worker).copied().unwrap_or(0));
        Count {
            taken: self.taken - before.taken,
            dropped: self.dropped - before.dropped,
            sent: sent.collect(),
            received: self.received - before.received,
        }
    }

    fn all_sent(&self) -> u64 {
        self.sent.iter().sum()
    }
}

/// A router's tables, for the agent to ask.
struct TablesOf(Tables);

impl Reports for TablesOf {
    fn interfaces(&self) -> Vec<InterfaceReport> {
        Vec::new()
    }

    fn with_ways(&self, work: &mut dyn FnMut(&dyn PathLookup)) {
        work(self);
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn node(&self, _number: u16) -> &'static str {
        "?"
    }
}

impl PathLookup for TablesOf {
    fn way(&self, asked: &Asked<'_>) -> SampledPath {
        let way = self.0.way(asked.input, asked.start, asked.departure);
        SampledPath {
            input: way.input,
            output: way.output,
            tags: way.tags,
            hop: way.hop.map(|hop| Hop {
                next: hop.next,
                prefixes: hop.prefixes,
            }),
            labels: (
                Labels::new(way.labels.0.entries()),
                Labels::new(way.labels.1.entries()),
            ),
        }
    }
}

/// Whether a datagram holds complete samples and nothing else.
fn check(datagram: &[u8]) -> Result<(), BenchError> {
    let wrong = |what: String| BenchError::Check(CheckError(what));
    let datagram = Datagram::decode(datagram).map_err(|error| wrong(error.to_string()))?;
    for sample in datagram.samples() {
        let Ok(Sample::Flow(_, sample, records)) = sample else {
            return Err(wrong(format!("{sample:?} is no flow sample")));
        };
        let records: Vec<FlowRecord<'_>> = records.flatten().collect();
        let [FlowRecord::RawHeader(header), FlowRecord::Other(router)] = records[..] else {
            return Err(wrong(format!("{records:?}")));
        };
        // The last word of 0:1002 is the length of the destination's prefix.
        let routed = router.format == DataFormat::EXTENDED_ROUTER
            && router.body.ends_with(&20_u32.to_be_bytes());
        if sample.output != Port::interface(OUT) || header.header.len() != HEADER || !routed {
            return Err(wrong(format!(
                "{sample:?} with {router:?} and {} octets",
                header.header.len()
            )));
        }
    }
    Ok(())
}

/// Counts what comes, and keeps the last datagram.
struct Listener {
    address: std::net::SocketAddr,
    samples: Arc<AtomicU64>,
    datagrams: Arc<AtomicU64>,
    last: Arc<Mutex<Vec<u8>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Its thread runs where the calling one does.
    fn start() -> std::io::Result<Listener> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        let _ = set_socket_recv_buffer_size(&socket, BUFFER);
        let _ = set_socket_recv_buffer_size_force(&socket, BUFFER);
        let address = socket.local_addr()?;
        let (samples, datagrams, last, stop) = <(
            Arc<AtomicU64>,
            Arc<AtomicU64>,
            Arc<Mutex<Vec<u8>>>,
            Arc<AtomicBool>,
        )>::default();
        let mut listener = Listener {
            address,
            samples,
            datagrams,
            last,
            stop,
            thread: None,
        };
        let (samples, datagrams) = (listener.samples.clone(), listener.datagrams.clone());
        let (last, stop) = (listener.last.clone(), listener.stop.clone());
        let listen = move || {
            let mut buffer = vec![0; 1 << 16];
            while !stop.load(Ordering::Acquire) {
                let Ok(length) = socket.recv(&mut buffer) else {
                    continue;
                };
                // Version 5, an agent with an IPv4 address: six words stand before the number of samples.
                let count = buffer
                    .get(24..28)
                    .filter(|_| length >= 28)
                    .and_then(|word| word.try_into().ok())
                    .map_or(0, u32::from_be_bytes);
                samples.fetch_add(count.into(), Ordering::AcqRel);
                if datagrams.fetch_add(1, Ordering::AcqRel) % 1024 == 0 {
                    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                    last.clear();
                    last.extend_from_slice(buffer.get(..length).unwrap_or_default());
                }
            }
        };
        listener.thread = Some(
            std::thread::Builder::new()
                .name("listener".into())
                .spawn(listen)?,
        );
        Ok(listener)
    }

    fn datagrams(&self) -> u64 {
        self.datagrams.load(Ordering::Acquire)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
