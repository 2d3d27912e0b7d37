//! Starting, running and stopping a router.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_api::EventBus;
use weir_buf::{PktCache, PoolError};
use weir_config::{Config, LogLevel, Priority, Subnets};
use weir_fib::NexthopTable;
use weir_graph::{DropMap, NodeSpec, Tap};
use weir_nodes::{IcmpLimit, Tables};
use weir_ring::qsbr::{Domain, Published};
use weir_ring::spsc;
use weir_telemetry::capture::CaptureTap;
use weir_telemetry::discards::DiscardTap;
use weir_telemetry::meter::{Meter, MeterControl, MeterSettings};
use weir_telemetry::sampler::{RING, Sampler};

use crate::advertise::Schedule;
use crate::apply::{Applied, ApplyError};
use crate::bridges::AGEING_INTERVAL;
use crate::changes::{ChangeManager, CompanionControl, Startup};
use crate::clock::Clock;
use crate::control::{Control, Nowhere};
use crate::cores;
use crate::dad::Claims;
use crate::handle::WorkerHandle;
use crate::index::Indexes;
use crate::ipfix::IpfixSide;
use crate::links::LinkEvents;
use crate::linux::LinuxSide;
use crate::memory::Memory;
use crate::neighbors::NeighborTable;
use crate::recursion::Recursion;
use crate::router_path::RouterEgress;
use crate::sflow::{ReportSource, SflowSettings, SflowSide, TapEnds};
use crate::trace::TraceStore;
use crate::trial::Trial;
use crate::waker::Waker;
use crate::worker::{Command, Worker};
use weir_control::Table;

/// Commands a worker's ring holds.
const COMMANDS: usize = 1024;
/// Events a worker's ring holds.
const EVENTS: usize = 4096;
/// Trace steps a worker's ring holds.
const TRACE_STEPS: usize = 4096;
/// Packets on their way from one worker to another.
const HANDOFF: usize = 1024;

/// What is not in the configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where interface numbers are kept over restarts.
    pub index_file: Option<PathBuf>,
    /// The configuration file's name, for `show version`.
    pub config_file: Option<String>,
    /// The commit that the program was built from, for `show version`.
    pub commit: Option<String>,
    /// Seed of the samplers; the operating system's entropy when absent.
    pub seed: Option<u64>,
    /// Called when the level of the log changes.
    pub log: Option<LogControl>,
    /// Changes who the API lets in, when the configuration does.
    pub access: Option<AccessControl>,
    /// The daemon whose configuration is a part of the router's file.
    pub companion: CompanionControl,
    /// Set where a test breathes for the router ([`Router::breathe`]).
    pub trial: Option<Trial>,
}

/// Changes how much is logged: whoever starts the router owns the log.
#[derive(Clone)]
pub struct LogControl(Arc<dyn Fn(LogLevel) + Send + Sync>);

impl LogControl {
    /// Calls `set` with each new level.
    #[must_use]
    pub fn new(set: impl Fn(LogLevel) + Send + Sync + 'static) -> LogControl {
        LogControl(Arc::new(set))
    }

    pub(crate) fn set(&self, level: LogLevel) {
        (self.0)(level);
    }
}

impl std::fmt::Debug for LogControl {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("LogControl")
    }
}

/// Changes the tokens and certificates of the API: the program that starts the router owns the
/// server.
#[derive(Clone)]
pub struct AccessControl(Arc<SetAccess>);

type SetAccess = dyn Fn(&weir_config::Api) -> Result<(), String> + Send + Sync;

impl AccessControl {
    /// Calls `set` with each new section `api`.
    #[must_use]
    pub fn new(
        set: impl Fn(&weir_config::Api) -> Result<(), String> + Send + Sync + 'static,
    ) -> AccessControl {
        AccessControl(Arc::new(set))
    }

    pub(crate) fn set(&self, api: &weir_config::Api) -> Result<(), String> {
        (self.0)(api)
    }
}

impl std::fmt::Debug for AccessControl {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("AccessControl")
    }
}

/// Why a router could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No packet memory.
    #[error("{0}")]
    Pool(#[from] PoolError),
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What it said.
        source: std::io::Error,
    },
    /// The configuration could not be applied.
    #[error("{0}")]
    Apply(#[from] ApplyError),
    /// A fault of the program.
    #[error("internal: {0}")]
    Internal(String),
}

fn system(what: &str) -> impl FnOnce(std::io::Error) -> StartError {
    let what = what.to_owned();
    move |source| StartError::System { what, source }
}

/// How far the threads of a router have come: a number that does not change for a second is a thread
/// that is stuck, since even those that have nothing to do look around ten times a second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// Turns of each worker.
    pub workers: Vec<u64>,
    /// Rounds of the control thread.
    pub control: u64,
}

/// A running router. Cloning gives another handle.
#[derive(Clone)]
pub struct Router(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) control: Mutex<Control>,
    pub(crate) started: SystemTime,
    pub(crate) config_file: Option<String>,
    pub(crate) commit: Option<String>,
    pub(crate) baselines: Mutex<crate::views::Baselines>,
    pub(crate) change_manager: ChangeManager,
    /// Held by the request that changes routes of the API. Taken before the control side's lock.
    pub(crate) route_changes: Mutex<()>,
    waker: Arc<Waker>,
    stopping: AtomicBool,
    /// Rounds of the control thread.
    rounds: AtomicU64,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// What a worker thread is made of, before it starts.
struct Parts {
    worker: Worker,
    handle: WorkerHandle,
    ends: TapEnds,
    meter: MeterControl,
}

/// What workers' taps go by.
#[derive(Default)]
struct TapSettings {
    sflow: SflowSettings,
    meters: Arc<MeterSettings>,
}

/// The meter draws other numbers than the sampler.
const METER_SEED: u64 = 0x6d65_7465_7273_6565;

impl Router {
    /// Starts a router and brings it to `config`.
    ///
    /// # Errors
    /// One sentence with what to do.
    pub fn start(config: &Config, options: &Options) -> Result<Router, StartError> {
        let clock = options
            .trial
            .as_ref()
            .map_or_else(Clock::start, Trial::clock);
        let memory = Memory::new(config)?;
        for (node, pool) in memory.pools() {
            let pages = if pool.on_hugepages() {
                "on hugepages"
            } else {
                "on ordinary pages"
            };
            tracing::info!(
                "packet memory: {} buffers, {} MiB {pages}, NUMA node {node}",
                pool.chunks(),
                pool.mapped_bytes() >> 20
            );
        }
        let count = usize::from(config.workers.count).max(1);
        let mut priority = Priority::Normal;
        if options.trial.is_none() {
            let cores: Vec<usize> = config.workers.cores.iter().map(|&it| it.into()).collect();
            priority = cores::priority(config.workers.priority, count, &cores);
            cores::leave_to_workers(&cores);
        }
        // The workers, the sFlow agent, the exporter of flows, the senders through the router, and a test that stalls.
        let domain = Domain::new(count + 4);
        let published = Arc::new(Published::new(&domain, Box::new(Tables::default())));
        let waker = Arc::new(Waker::new().map_err(system("no descriptor for the control thread"))?);
        let settings = TapSettings::default();
        let (mut handles, mut ends, mut meters, mut threads) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut specs, mut drop_map) = (Vec::new(), None);
        for number in 0..count {
            let seed = options
                .seed
                .map_or_else(crate::ports::seed, |seed| seed.wrapping_add(number as u64));
            let parts = make_worker(
                number,
                config,
                &memory,
                &domain,
                &published,
                &waker,
                clock.clone(),
                &settings,
                seed,
            )?;
            specs = parts.worker.graph.specs().to_vec();
            drop_map = Some(parts.worker.graph.drop_map());
            handles.push(parts.handle);
            ends.push(parts.ends);
            meters.push(parts.meter);
            threads.push(parts.worker);
        }
        connect(&mut handles);
        for (worker, handle) in threads.into_iter().zip(&mut handles) {
            match options.trial {
                None => handle.thread = Some(start_thread(worker, handle.core, priority)?),
                Some(_) => handle.by_hand = Some(Box::new(worker)),
            }
        }
        let change_manager = ChangeManager::new(options.companion.clone());
        let events = change_manager.events().clone();
        let control = make_control(
            config, options, clock, memory, domain, published, handles, specs, drop_map, settings,
            ends, meters, events, &waker,
        )?;
        let inner = Inner {
            control: Mutex::new(control),
            started: SystemTime::now(),
            config_file: options.config_file.clone(),
            commit: options.commit.clone(),
            baselines: Mutex::default(),
            change_manager,
            route_changes: Mutex::default(),
            waker,
            stopping: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
            thread: Mutex::new(None),
        };
        let router = Router(Arc::new(inner));
        router.begin(config, options.trial.is_none())?;
        router.adopt(Startup::without_history(config.clone(), ""));
        Ok(router)
    }

    /// Starts a router with what `startup` chose, and keeps its history from then on.
    ///
    /// # Errors
    /// As [`Router::start`].
    pub fn start_from(startup: Startup, options: &Options) -> Result<Router, StartError> {
        let router = Router::start(startup.config(), options)?;
        router.adopt(startup);
        Ok(router)
    }

    /// Starts the control thread and applies the first configuration.
    fn begin(&self, config: &Config, by_itself: bool) -> Result<(), StartError> {
        let weak = Arc::downgrade(&self.0);
        self.control().sflow.reports.set(Some(Box::new(move || {
            weak.upgrade()
                .map_or_else(Vec::new, |inner| Router(inner).reports())
        })));
        if by_itself {
            let twin = self.clone();
            let thread = std::thread::Builder::new()
                .name("weir-control".into())
                .spawn(move || twin.control_loop());
            let thread = thread.map_err(system("no thread for the control side"))?;
            *self
                .0
                .thread
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(thread);
        }
        if let Err(error) = self.apply_tolerantly(config) {
            self.stop();
            return Err(error.into());
        }
        Ok(())
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        self.0
            .control
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Brings the router to `wanted`, or leaves it as it was.
    ///
    /// # Errors
    /// The step that failed, and why.
    pub fn apply(&self, wanted: &Config) -> Result<Applied, ApplyError> {
        // Long access lists take their time, which nobody shall have to wait for.
        let mut lists = self.control().built_lists();
        lists.prepare(wanted).map_err(|reason| ApplyError {
            step: "build the access lists".into(),
            reason,
        })?;
        let applied = {
            let mut control = self.control();
            control.take_lists(lists);
            control.apply(wanted)
        };
        self.wait_until_settled();
        applied
    }

    /// Brings the router to `wanted`; an interface whose port cannot be opened is down.
    pub(crate) fn apply_tolerantly(&self, wanted: &Config) -> Result<Applied, ApplyError> {
        self.control().tolerant = true;
        let applied = self.apply(wanted);
        self.control().tolerant = false;
        applied
    }

    /// How far the router's threads have come. Waits for the control side's lock.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        let workers = self
            .control()
            .workers
            .iter()
            .map(|worker| worker.stats.turns.get())
            .collect();
        Pulse {
            workers,
            control: self.0.rounds.load(Ordering::Relaxed),
        }
    }

    /// Makes the next change fail at its step `number`, counted from 0, so that tests see it undone.
    #[doc(hidden)]
    pub fn fail_next_change_at(&self, number: usize) {
        self.control().fail_at = Some(number);
    }

    /// The control thread: what workers tell, neighbours, links, traces, reclamation.
    fn control_loop(&self) {
        let mut links = LinkEvents::open();
        while !self.0.stopping.load(Ordering::Acquire) {
            self.0.rounds.fetch_add(1, Ordering::Relaxed);
            self.0.waker.will_sleep();
            let (events, settling) = {
                let control = self.control();
                let mut workers = control.workers.iter();
                (
                    workers.any(|worker| !worker.events.is_empty())
                        || control.publication.len() == 0 && control.linux.is_busy(),
                    control.is_settling(),
                )
            };
            if !events {
                let bell = self.0.waker.bell();
                // Without link events the bell takes both places.
                let links = links.as_ref().map_or(bell, LinkEvents::descriptor);
                let _ = poll(
                    &mut [bell, links].map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN)),
                    Some(&Timespec {
                        tv_sec: 0,
                        tv_nsec: if settling { SETTLING } else { RESTING },
                    }),
                );
            }
            self.0.waker.is_awake();
            if let Some(links) = &mut links {
                // The lock is held while events are read: no port is opened between reading and handling them.
                let mut control = self.control();
                let changed = links.read();
                control.links_changed(&changed);
            }
            self.watch_deadline();
            self.control().round();
        }
    }

    /// Takes the router down: nothing more comes in, what is inside goes out, threads end, ports
    /// close, the agent sends what it has. The counters stay readable. Calling it again does nothing.
    pub fn stop(&self) {
        if self.0.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        self.end_all_captures();
        self.0.waker.wake();
        let thread = self
            .0
            .thread
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        let reports = {
            let mut control = self.control();
            control.drain_workers();
            control.sflow.reports.clone()
        };
        // The agent asks for a last report while it ends, which takes the lock: not under it.
        reports.set(None);
        let mut control = self.control();
        // The last datagrams may leave through the workers, so these end after both.
        control.sflow.stop();
        control.ipfix.stop();
        control.stop_workers();
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "what every worker shares, put together once"
)]
fn make_worker(
    number: usize,
    config: &Config,
    memory: &Memory,
    domain: &Domain,
    published: &Arc<Published<Tables>>,
    control: &Arc<Waker>,
    clock: Clock,
    settings: &TapSettings,
    seed: u64,
) -> Result<Parts, StartError> {
    let internal = |error: &dyn std::fmt::Display| StartError::Internal(error.to_string());
    let (sampler, samples) = Sampler::new(settings.sflow.sampling.clone(), seed, RING);
    let (discard, discards) = DiscardTap::new(settings.sflow.discards.clone());
    let (meter, meter_control) = Meter::new(settings.meters.clone(), seed ^ METER_SEED);
    let (capture, captures) = CaptureTap::new();
    let (trace_in, trace) = spsc::ring(TRACE_STEPS);
    let taps: [Box<dyn Tap<Tables>>; _] = [
        Box::new(sampler),
        Box::new(capture),
        Box::new(discard),
        Box::new(meter),
    ];
    let graph = crate::taps::attach(weir_nodes::graph(IcmpLimit::default()), taps)
        .build(number, trace_in)
        .map_err(|error| internal(&error))?;
    let (commands, commands_out) = spsc::ring(COMMANDS);
    let (returned_in, returned) = spsc::ring(COMMANDS);
    let (events_in, events) = spsc::ring(EVENTS);
    let waker = Arc::new(Waker::new().map_err(system("no descriptor for a worker"))?);
    let counters = graph.counters();
    let reader = domain.register().map_err(|error| internal(&error))?;
    let core = config.workers.cores.get(number).copied();
    let cache = PktCache::new(memory.of_core(core));
    let worker = Worker::new(
        number,
        graph,
        cache,
        reader,
        published.clone(),
        commands_out,
        returned_in,
        events_in,
        control.clone(),
        waker.clone(),
        clock,
        config.workers.idle,
    );
    let core = core.map(usize::from);
    let stats = worker.stats.clone();
    let handle = WorkerHandle {
        commands,
        returned,
        events,
        trace,
        captures,
        waker,
        stats,
        counters,
        core,
        queues: Vec::new(),
        sent: 0,
        thread: None,
        by_hand: None,
    };
    Ok(Parts {
        worker,
        handle,
        ends: TapEnds { samples, discards },
        meter: meter_control,
    })
}

/// Gives each pair of workers a ring each way.
fn connect(handles: &mut [WorkerHandle]) {
    for from in 0..handles.len() {
        for to in 0..handles.len() {
            if from == to {
                continue;
            }
            let (ring, end) = spsc::ring(HANDOFF);
            let waker = handles[to].waker.clone();
            handles[from].tell(Command::HandoffTo {
                worker: to,
                ring,
                waker,
            });
            handles[to].tell(Command::HandoffFrom(end));
        }
    }
}

fn start_thread(
    worker: Worker,
    core: Option<usize>,
    priority: Priority,
) -> Result<std::thread::JoinHandle<()>, StartError> {
    let name = format!("weir-worker-{}", worker.number);
    let (tell, outcome) = std::sync::mpsc::channel();
    let body = move || {
        let pinned = core.map_or(Ok(()), weir_cpu::pin_to);
        let ok = pinned.is_ok();
        let _ = tell.send(pinned);
        if ok {
            cores::take_priority(priority, worker.number);
            worker.run();
        }
    };
    let thread = std::thread::Builder::new()
        .name(name)
        .spawn(body)
        .map_err(system("no thread for a worker"))?;
    match outcome.recv() {
        Ok(Err(source)) => {
            let what = format!(
                "worker cannot be pinned to core {}; choose one of {:?}",
                core.unwrap_or(0),
                cores::allowed()
            );
            Err(StartError::System { what, source })
        }
        _ => Ok(thread),
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "what the control side owns, put together once"
)]
fn make_control(
    config: &Config,
    options: &Options,
    clock: Clock,
    memory: Memory,
    domain: Domain,
    published: Arc<Published<Tables>>,
    workers: Vec<WorkerHandle>,
    specs: Vec<NodeSpec>,
    drop_map: Option<Arc<DropMap>>,
    settings: TapSettings,
    ends: Vec<TapEnds>,
    meters: Vec<MeterControl>,
    events: EventBus,
    waker: &Arc<Waker>,
) -> Result<Control, StartError> {
    let default =
        Table::new(&domain, None, 0).map_err(|error| StartError::Internal(error.to_string()))?;
    let mut nexthops = NexthopTable::new();
    let nowhere = Nowhere::new(&mut nexthops);
    let (fib4, fib6) = (
        vec![default.fib4.fib().clone()],
        vec![default.fib6.fib().clone()],
    );
    let tables = Tables {
        fib4,
        fib6,
        ..Tables::default()
    };
    let linux = LinuxSide::new(waker.clone());
    let reader = domain
        .register()
        .map_err(|error| StartError::Internal(error.to_string()))?;
    let reports = ReportSource::new(reader, published.clone(), linux.bmp.view.clone());
    reports.know(
        specs.iter().map(|spec| spec.name).collect(),
        workers
            .iter()
            .map(|worker| worker.counters.clone())
            .collect(),
    );
    let flow_reader = domain
        .register()
        .map_err(|error| StartError::Internal(error.to_string()))?;
    let seed = options.seed.unwrap_or_else(crate::ports::seed);
    let ipfix = IpfixSide::new(
        settings.meters,
        meters,
        flow_reader,
        published.clone(),
        clock.clone(),
        seed,
        linux.bmp.view.clone(),
    );
    let mut workers = workers;
    let egress = match workers.first_mut() {
        None => None,
        Some(worker) => {
            let reader = domain
                .register()
                .map_err(|error| StartError::Internal(error.to_string()))?;
            let (egress, ring) = RouterEgress::new(
                reader,
                published.clone(),
                memory.clone(),
                worker.waker.clone(),
            );
            worker.tell(Command::RouteFrom(ring));
            Some(egress)
        }
    };
    let ipfix = ipfix.with_egress(egress.clone());
    let mut sflow = SflowSide::start(settings.sflow, ends, reports)
        .map_err(system("the sFlow agent cannot start"))?;
    sflow.egress = egress;
    let mut control = Control {
        clock,
        config: Config::start_of(config),
        memory,
        domain,
        tables,
        own: Default::default(),
        published,
        routing: vec![Some(default)],
        vrf_places: BTreeMap::new(),
        subnets: Subnets::default(),
        nexthops,
        stale: false,
        tunnels_changed: false,
        unshared: std::collections::BTreeSet::new(),
        publication: Default::default(),
        waiting_labels: Vec::new(),
        labels: Default::default(),
        lookup_ends: BTreeMap::new(),
        pseudowires: BTreeMap::new(),
        arriving: Vec::new(),
        leaving: Vec::new(),
        nowhere,
        recursion: Recursion::default(),
        neighbors: NeighborTable::default(),
        claims: Claims::default(),
        advertisements: Schedule::default(),
        adjacencies: Default::default(),
        interfaces: Default::default(),
        bridges: BTreeMap::new(),
        bonds: BTreeMap::new(),
        indexes: Indexes::load(options.index_file.as_deref()),
        workers,
        specs,
        drop_map: drop_map
            .ok_or_else(|| StartError::Internal("a router has at least one worker".into()))?,
        drops_of_the_gone: Default::default(),
        lists: Default::default(),
        sflow,
        ipfix,
        trace: TraceStore::default(),
        events,
        next_worker: 0,
        log: options.log.clone(),
        access: options.access.clone(),
        trial: options.trial.clone(),
        captures: Default::default(),
        borrowers: None,
        linux,
        reopened: std::collections::BTreeSet::new(),
        api_routes: Default::default(),
        due: Due::default(),
        tolerant: false,
        fail_at: None,
    };
    let start = control.config.sflow.clone();
    control.sflow.configure(&start, None, |_| None);
    control.publish();
    Ok(control)
}

/// How long the last flows may take to leave.
const FLUSH: Duration = Duration::from_secs(5);
/// How often neighbours age, in nanoseconds.
const NEIGHBOR_INTERVAL: u64 = 100_000_000;
/// The longest sleep of the control thread, in nanoseconds.
const RESTING: i64 = 100_000_000;
/// The same while changes wait for the workers.
const SETTLING: i64 = 100_000;
/// How often links are looked at, in nanoseconds.
const LINK_INTERVAL: u64 = 500_000_000;

/// When the control side has something to do by the clock, in its nanoseconds.
#[derive(Default)]
pub(crate) struct Due {
    neighbors: u64,
    links: u64,
    stations: u64,
}

impl Control {
    /// What the control side does again and again: events of workers, and timers.
    pub(crate) fn round(&mut self) {
        let now = self.clock.now();
        self.take_events();
        self.take_linux();
        if now >= self.due.neighbors {
            self.due.neighbors = now + NEIGHBOR_INTERVAL;
            self.tick_neighbors();
            self.tick_bonds();
            self.tick_claims();
            self.tick_advertisements();
            self.take_traces();
            self.domain.reclaim();
        }
        if now >= self.due.stations {
            self.due.stations = now + AGEING_INTERVAL * 1_000_000_000;
            self.age_bridges();
        }
        if now >= self.due.links {
            self.due.links = now + LINK_INTERVAL;
            self.ipfix.tidy();
            self.watch_links();
            if self.linux.needs_sync() {
                self.sync_linux();
                self.settle_or_log();
            }
            self.follow_linux();
        }
    }

    /// Brings traces in from the workers' rings.
    pub(crate) fn take_traces(&mut self) {
        for worker in 0..self.workers.len() {
            for _ in 0..TRACE_STEPS {
                let Some(step) = self
                    .workers
                    .get_mut(worker)
                    .and_then(|worker| worker.trace.pop())
                else {
                    break;
                };
                self.trace.take(worker, step);
            }
        }
        self.decide_traces();
    }

    /// Lets every flow leave the workers' tables; what the exporter does not take within [`FLUSH`] stays there.
    fn flush_flows(&mut self) {
        // Half of the time is left for what the workers do meanwhile.
        self.ipfix.end(FLUSH / 2);
        let until = Instant::now() + FLUSH;
        for (worker, meter) in self.workers.iter_mut().zip(&self.ipfix.meters) {
            while !meter.has_ended() && Instant::now() < until && !worker.commands.is_abandoned() {
                worker.wait(Duration::from_millis(1));
            }
        }
    }

    /// Ends the workers: first nobody takes anything in, then what is between them arrives, then
    /// they end, and their ports close.
    /// Workers take no more packets, and what they metered is in the rings.
    fn drain_workers(&mut self) {
        self.cease_all_advertising();
        self.workers
            .iter_mut()
            .for_each(|worker| worker.tell(Command::Drain));
        for _ in 0..3 {
            self.workers.iter_mut().for_each(|worker| {
                worker.pass_a_turn();
            });
        }
        self.flush_flows();
    }

    /// Workers send what is still to be sent, and end.
    fn stop_workers(&mut self) {
        for _ in 0..3 {
            self.workers.iter_mut().for_each(|worker| {
                worker.pass_a_turn();
            });
        }
        self.workers
            .iter_mut()
            .for_each(|worker| worker.tell(Command::Stop));
        for worker in &mut self.workers {
            drop(worker.by_hand.take());
            if let Some(thread) = worker.thread.take() {
                worker.waker.wake();
                if thread.join().is_err() {
                    tracing::error!("a worker ended by a panic");
                }
            }
        }
        for attached in self.interfaces.values_mut() {
            attached.spare.clear();
            attached.port = None;
        }
    }
}
