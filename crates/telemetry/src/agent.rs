//! The sFlow agent: from the samplers' rings to datagrams.
//!
//! One thread for the whole router, so that one place numbers everything: datagrams, the flow samples
//! of each data source, its counter samples. It takes one sample from each worker's ring in turn, so
//! that no worker crowds out another, and sends a datagram when it is full or its oldest sample is
//! half a second old. Whatever goes wrong with a collector is counted and told, and blocks nobody:
//! sockets never wait, and a socket that failed is made anew a few seconds later.
//!
//! Pools and drops are real: a sample carries its worker's pool for the interface, and the agent adds
//! up what the workers said last; drops are the samples that found a ring full.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_flowfmt::sflow::encode::{CounterRecord, DatagramBuilder, Encoding, Fit, FlowRecord};
use weir_flowfmt::sflow::{CountersSample, FlowSample, InterfaceCounters, Port, RawHeader, Source};

use crate::sampler::{Sample, SampleSource};

/// The frame check sequence, which ports take off and sFlow counts.
const FCS: u32 = 4;
/// A datagram leaves when its oldest sample is this old.
const MOST_WAIT: Duration = Duration::from_millis(500);
/// A socket that failed is made anew after this time.
const RETRY: Duration = Duration::from_secs(2);
/// Samples taken from each ring before the clock is looked at.
const BURST: usize = 256;

/// How the agent speaks, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// The address it goes by.
    pub address: IpAddr,
    /// Tells several agents with one address apart.
    pub sub_id: u32,
    /// The form of samples.
    pub encoding: Encoding,
    /// The longest datagram.
    pub datagram_bytes: usize,
    /// Seconds between two reports of an interface's counters; 0 = never.
    pub polling_interval: u32,
    /// Where datagrams go, each to all.
    pub collectors: Vec<SocketAddr>,
}

/// An interface's counters as they are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields of the generic interface counters, named as there")]
pub struct InterfaceReport {
    pub ifindex: u32,
    pub name: String,
    pub sampled: bool,
    pub speed: u64,
    pub admin_up: bool,
    pub oper_up: bool,
    pub in_octets: u64,
    pub in_unicast: u64,
    pub in_multicast: u64,
    pub in_broadcast: u64,
    pub in_discards: u64,
    pub in_errors: u64,
    pub out_octets: u64,
    pub out_unicast: u64,
    pub out_multicast: u64,
    pub out_broadcast: u64,
    pub out_discards: u64,
    pub out_errors: u64,
}

/// Who knows the interfaces.
pub trait Reports: Send + Sync {
    /// All of them, now.
    fn interfaces(&self) -> Vec<InterfaceReport>;
}

/// What a collector got.
#[derive(Clone, Debug)]
pub struct CollectorStats {
    /// Where it is.
    pub address: SocketAddr,
    /// Datagrams that the kernel took for it.
    pub sent: u64,
    /// Datagrams that it did not get.
    pub errors: u64,
    /// The last reason.
    pub last_error: Option<String>,
}

/// What was sampled on an interface.
#[derive(Clone, Copy, Debug)]
pub struct InterfaceStats {
    /// Which interface.
    pub ifindex: u32,
    /// Packets that could have been sampled, as of its last sample.
    pub pool: u64,
    /// Samples that were put into datagrams.
    pub samples: u64,
}

/// What the agent did so far.
#[derive(Clone, Debug, Default)]
pub struct AgentStats {
    /// Samples put into datagrams, by worker.
    pub samples_sent: Vec<u64>,
    /// Samples that could not be encoded.
    pub samples_lost: u64,
    /// Datagrams made.
    pub datagrams: u64,
    /// By collector.
    pub collectors: Vec<CollectorStats>,
    /// By interface.
    pub interfaces: Vec<InterfaceStats>,
}

/// What the agent's thread and its handle share.
struct Shared {
    wanted: Mutex<(AgentConfig, bool)>,
    stats: Mutex<AgentStats>,
    stop: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The agent's thread from outside.
pub struct AgentHandle {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl AgentHandle {
    /// Takes another configuration from the next sample on.
    pub fn reconfigure(&self, config: AgentConfig) {
        *lock(&self.shared.wanted) = (config, true);
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> AgentStats {
        lock(&self.shared.stats).clone()
    }

    /// Sends what is still in the rings and ends.
    #[must_use]
    pub fn stop(mut self) -> AgentStats {
        self.end();
        self.stats()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the sFlow agent ended by a panic");
        }
    }
}

impl Drop for AgentHandle {
    fn drop(&mut self) {
        self.end();
    }
}

/// One collector's socket, if it could be made.
struct Collector {
    address: SocketAddr,
    socket: Option<UdpSocket>,
    retry_at: Instant,
    sent: u64,
    errors: u64,
    last_error: Option<String>,
}

impl Collector {
    fn new(address: SocketAddr) -> Collector {
        let mut collector = Collector { address, socket: None, retry_at: Instant::now(), sent: 0, errors: 0, last_error: None };
        collector.open();
        collector
    }

    fn open(&mut self) {
        match connect(self.address) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &std::io::Error) {
        let text = error.to_string();
        if self.last_error.as_ref() != Some(&text) {
            tracing::warn!("sFlow collector {}: {text}; datagrams are lost until it takes them", self.address);
        }
        self.last_error = Some(text);
        self.retry_at = Instant::now() + RETRY;
    }

    fn send(&mut self, datagram: &[u8]) {
        if self.socket.is_none() && Instant::now() >= self.retry_at {
            self.open();
        }
        let Some(socket) = &self.socket else {
            self.errors += 1;
            return;
        };
        match socket.send(datagram) {
            Ok(_) => {
                self.sent += 1;
                self.last_error = None;
            }
            Err(error) => {
                self.errors += 1;
                // A refusal is the echo of an earlier datagram, a full buffer passes: the socket is
                // good. After anything else a fresh one may find a way.
                if !matches!(error.kind(), std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::WouldBlock) {
                    self.socket = None;
                }
                self.failed(&error);
            }
        }
    }
}

fn connect(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(address)?;
    Ok(socket)
}

/// One interface as a source of samples.
#[derive(Default)]
struct DataSource {
    flow_sequence: u32,
    counter_sequence: u32,
    /// Each worker's pool as of its last sample.
    pools: Vec<u64>,
    samples: u64,
    next_poll: Option<Instant>,
}

/// The agent.
pub struct Agent {
    config: AgentConfig,
    sources: Vec<SampleSource>,
    reports: Arc<dyn Reports>,
    shared: Arc<Shared>,
    builder: DatagramBuilder,
    collectors: Vec<Collector>,
    data: BTreeMap<u32, DataSource>,
    sequence: u32,
    started: Instant,
    oldest: Option<Instant>,
    sent: Vec<u64>,
    lost: u64,
    datagrams: u64,
    next_report: Instant,
}

impl Agent {
    /// Starts the agent's thread.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(config: AgentConfig, sources: Vec<SampleSource>, reports: Arc<dyn Reports>) -> std::io::Result<AgentHandle> {
        let stats = AgentStats { samples_sent: vec![0; sources.len()], ..AgentStats::default() };
        let shared =
            Arc::new(Shared { wanted: Mutex::new((config.clone(), false)), stats: Mutex::new(stats), stop: AtomicBool::new(false) });
        let mut agent = Agent {
            builder: builder(&config),
            collectors: config.collectors.iter().map(|&address| Collector::new(address)).collect(),
            sent: vec![0; sources.len()],
            config,
            sources,
            reports,
            shared: shared.clone(),
            data: BTreeMap::new(),
            sequence: 0,
            started: Instant::now(),
            oldest: None,
            lost: 0,
            datagrams: 0,
            next_report: Instant::now(),
        };
        let thread = std::thread::Builder::new().name("weir-sflow".into()).spawn(move || agent.run())?;
        Ok(AgentHandle { shared, thread: Some(thread) })
    }

    fn run(&mut self) {
        loop {
            let stopping = self.shared.stop.load(Ordering::Acquire);
            self.take_config();
            let taken = self.drain();
            let now = Instant::now();
            self.poll_counters(now);
            if self.oldest.is_some_and(|oldest| now.duration_since(oldest) >= MOST_WAIT) {
                self.send();
            }
            if taken == 0 && stopping {
                self.send();
                self.tell();
                return;
            }
            if taken < BURST {
                self.tell();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn take_config(&mut self) {
        let mut wanted = lock(&self.shared.wanted);
        if !std::mem::take(&mut wanted.1) {
            return;
        }
        let config = wanted.0.clone();
        drop(wanted);
        self.send();
        if config.collectors != self.config.collectors {
            let mut old = std::mem::take(&mut self.collectors);
            let mut keep = |address| match old.iter().position(|collector| collector.address == address) {
                Some(place) => old.swap_remove(place),
                None => Collector::new(address),
            };
            self.collectors = config.collectors.iter().map(|&address| keep(address)).collect();
        }
        if config.polling_interval != self.config.polling_interval {
            self.data.values_mut().for_each(|source| source.next_poll = None);
        }
        self.builder = builder(&config);
        self.config = config;
    }

    /// One sample from each ring in turn, until all are empty or each gave a burst.
    fn drain(&mut self) -> usize {
        let mut sources = std::mem::take(&mut self.sources);
        let drops = sources.iter().map(|source| source.counters.lost.get()).sum::<u64>() as u32;
        let mut taken = 0;
        for _ in 0..BURST {
            let before = taken;
            for (worker, source) in sources.iter_mut().enumerate() {
                taken += usize::from(source.ring.pop_with(|sample| self.flow(worker, sample, drops)).is_some());
            }
            if taken == before {
                break;
            }
        }
        self.sources = sources;
        taken
    }

    fn flow(&mut self, worker: usize, sample: &Sample, drops: u32) {
        let workers = self.sent.len();
        let source = self.data.entry(sample.interface).or_default();
        source.pools.resize(workers, 0);
        if let Some(pool) = source.pools.get_mut(worker) {
            *pool = sample.pool;
        }
        let pool: u64 = source.pools.iter().sum();
        let sequence = source.flow_sequence.wrapping_add(1);
        let flow = FlowSample {
            sequence,
            source: Source::interface(sample.interface),
            rate: sample.rate,
            pool: pool as u32,
            drops,
            input: Port::interface(sample.interface),
            output: Port::interface(sample.output),
        };
        let header = RawHeader { protocol: 1, frame_length: sample.frame + FCS, stripped: FCS, header: sample.bytes() };
        if !self.add(|builder| builder.flow_sample(&flow, &[FlowRecord::RawHeader(header)])) {
            self.lost += 1;
            return;
        }
        if let Some(source) = self.data.get_mut(&sample.interface) {
            source.flow_sequence = sequence;
            source.samples += 1;
        }
        if let Some(sent) = self.sent.get_mut(worker) {
            *sent += 1;
        }
    }

    /// Adds to the datagram, which is sent first when it is full. `false` when it can never fit.
    fn add(&mut self, put: impl Fn(&mut DatagramBuilder) -> Result<Fit, weir_flowfmt::sflow::encode::EncodeError>) -> bool {
        for _ in 0..2 {
            match put(&mut self.builder) {
                Ok(Fit::Added) => {
                    self.oldest.get_or_insert_with(Instant::now);
                    return true;
                }
                Ok(Fit::Full) => self.send(),
                Err(error) => {
                    tracing::warn!("a sample cannot be sent: {error}");
                    return false;
                }
            }
        }
        false
    }

    fn send(&mut self) {
        self.oldest = None;
        if self.builder.is_empty() {
            return;
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.datagrams += 1;
        let uptime = self.started.elapsed().as_millis() as u32;
        let datagram = self.builder.finish(self.sequence, uptime);
        for collector in &mut self.collectors {
            collector.send(datagram);
        }
        self.builder.clear();
    }

    /// Reports the counters of the sampled interfaces that are due, spread over the interval.
    fn poll_counters(&mut self, now: Instant) {
        if self.config.polling_interval == 0 || now < self.next_report {
            return;
        }
        self.next_report = now + Duration::from_millis(200);
        let interval = Duration::from_secs(u64::from(self.config.polling_interval));
        let reports = self.reports.interfaces();
        let count = reports.len().max(1) as u32;
        for (place, report) in reports.iter().filter(|report| report.sampled).enumerate() {
            let source = self.data.entry(report.ifindex).or_default();
            let due = *source.next_poll.get_or_insert_with(|| now + interval.min(Duration::from_secs(1)) * place as u32 / count);
            if now < due {
                continue;
            }
            source.next_poll = Some(now + interval);
            source.counter_sequence = source.counter_sequence.wrapping_add(1);
            let sample = CountersSample { sequence: source.counter_sequence, source: Source::interface(report.ifindex) };
            let counters = interface_counters(report);
            let records = [CounterRecord::Interface(&counters), CounterRecord::PortName(&report.name)];
            if !self.add(|builder| builder.counters_sample(&sample, &records)) {
                self.lost += 1;
            }
        }
    }

    /// Publishes what was done.
    fn tell(&self) {
        let mut stats = lock(&self.shared.stats);
        stats.samples_sent.clone_from(&self.sent);
        stats.samples_lost = self.lost;
        stats.datagrams = self.datagrams;
        let collector =
            |it: &Collector| CollectorStats { address: it.address, sent: it.sent, errors: it.errors, last_error: it.last_error.clone() };
        stats.collectors = self.collectors.iter().map(collector).collect();
        let interface = |(&ifindex, it): (&u32, &DataSource)| InterfaceStats { ifindex, pool: it.pools.iter().sum(), samples: it.samples };
        stats.interfaces = self.data.iter().map(interface).collect();
    }
}

fn builder(config: &AgentConfig) -> DatagramBuilder {
    DatagramBuilder::with_max_len(config.address, config.sub_id, config.encoding, config.datagram_bytes)
}

/// 32-bit counters wrap, as the structure says.
fn interface_counters(report: &InterfaceReport) -> InterfaceCounters {
    InterfaceCounters {
        index: report.ifindex,
        kind: 6,
        speed: report.speed,
        direction: 1,
        status: u32::from(report.admin_up) | u32::from(report.oper_up) << 1,
        in_octets: report.in_octets,
        in_unicast: report.in_unicast as u32,
        in_multicast: report.in_multicast as u32,
        in_broadcast: report.in_broadcast as u32,
        in_discards: report.in_discards as u32,
        in_errors: report.in_errors as u32,
        in_unknown_protocols: u32::MAX,
        out_octets: report.out_octets,
        out_unicast: report.out_unicast as u32,
        out_multicast: report.out_multicast as u32,
        out_broadcast: report.out_broadcast as u32,
        out_discards: report.out_discards as u32,
        out_errors: report.out_errors as u32,
        promiscuous: 0,
    }
}
