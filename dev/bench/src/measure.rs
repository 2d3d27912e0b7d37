//! Blocks and medians: cases without sFlow and at every sampling rate.
//!
//! The graph runs in a thread of its own on one core, the reader of its samples in another on another core, as worker and agent do
//! in a router. What sFlow adds is found in slices that take turns (`paired.rs`).
//!
//! A shared machine is slower by half for tenths of a second or for seconds every now and then, when others have their turn on the same core.
//! So the slices without sFlow come in portions, before each rate and behind the last, each longer than most spells are, and what they take
//! is their lower quartile: whatever others do, as long as they leave a quarter of the time to this.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_buf::PoolError;
use weir_fib::FibError;
use weir_telemetry::sampler::SampleSource;

use crate::case::{Case, Kind, Limit};
use crate::metered;
use crate::paired;
use crate::report::{CaseResult, Found};
use crate::rig::{CheckError, Rig};
use crate::scene::Scene;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Turns of 256 packets a block, and of each kind in a round of slices.
    pub turns: usize,
    /// Blocks, and rounds of slices: at least 31 for a published figure.
    pub pairs: usize,
    /// One in so many prefixes of a full table: 1 but for trying things out.
    pub thinned: usize,
    /// A portion of slices or blocks lasts so long at least.
    pub portion: Duration,
    /// Whether to measure with sFlow, too, at every rate.
    pub sampled: bool,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort {
            turns: 512,
            pairs: 121,
            thinned: 1,
            portion: Duration::from_millis(500),
            sampled: true,
        }
    }
}

impl Effort {
    /// A minute for all cases: without sFlow, and one in ten prefixes of full tables.
    #[must_use]
    pub fn quick() -> Effort {
        Effort {
            turns: 128,
            pairs: 31,
            thinned: 10,
            portion: Duration::from_millis(150),
            sampled: false,
        }
    }
}

/// Why a case was not measured.
#[derive(Debug)]
pub enum BenchError {
    /// No memory for packets.
    Pool(PoolError),
    /// No memory for routes.
    Fib(FibError),
    /// What came out was wrong.
    Check(CheckError),
    /// Something else, in words.
    Said(String),
}

impl std::fmt::Display for BenchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BenchError::Pool(error) => error.fmt(f),
            BenchError::Fib(error) => error.fmt(f),
            BenchError::Said(what) => f.write_str(what),
            BenchError::Check(error) => {
                write!(f, "the packet path does not do what it should: {error}")
            }
        }
    }
}

impl std::error::Error for BenchError {}

/// The sampling rates of every case, and what sFlow may add to a packet in those for which that is promised.
pub(crate) const RATES: [(u32, f64, &[&str]); 4] = [
    (10_000_000, 0.0, &[]),
    (
        10_000,
        0.2,
        &["l2xc", "ip4", "ip4-full", "ip6", "ip6-full", "mpls-swap"],
    ),
    (1_000, 0.5, &["l2xc", "ip4"]),
    (100, 2.0, &["l2xc", "ip4"]),
];

/// So many times the rounds are played of the rates that routers sample at, since what they add is little; and where something is promised.
const ROUNDS: (usize, usize) = (2, 8);

/// Measures a case; `progress` is called with what comes next. Also says whether packet memory lay on hugepages.
///
/// # Errors
/// When there is no memory, or the untimed run shows that the result would be worthless.
pub fn run_case(
    case: Case,
    effort: Effort,
    mut progress: impl FnMut(&str) + Send,
) -> Result<(Vec<Found>, bool), BenchError> {
    match case.kind {
        Kind::Packets { limit, set } => {
            // A thread of its own, since it is tied to a core.
            let worker = || packets(case.name, set, effort, &mut progress);
            let done = std::thread::scope(|scope| scope.spawn(worker).join());
            let (results, hugepages) =
                done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let results = results
                .into_iter()
                .map(|result| Found::Packets(CaseResult { limit, ..result }));
            Ok((results.collect(), hugepages))
        }
        Kind::Load { run } => {
            let (found, hugepages) = run(case.name, effort, &mut progress)?;
            Ok((vec![found], hugepages))
        }
    }
}

/// Ties the calling thread to the last of the cores that this process may use, or to the first. With one core there is nothing to tie.
fn tie(cores: &[usize], last: bool) {
    if let [first, .., other] = *cores {
        // Not allowed to: then the kernel moves it about as it likes, and the figures tell.
        let _ = weir_cpu::pin_to(if last { other } else { first });
    }
}

/// Runs a case without sFlow for whoever counts instructions from outside: a warm-up, then so many vectors, each in
/// a call of `Rig::measured_turn`. `None` for a case that is not of packets.
///
/// # Errors
/// When there is no memory.
pub fn run_untimed(case: Case, turns: usize) -> Result<Option<usize>, BenchError> {
    let Kind::Packets { set, .. } = case.kind else {
        return Ok(None);
    };
    // Full tables are thinned: a twentieth is still looked up as a full one.
    let mut scene = Scene::new(20).map_err(BenchError::Fib)?;
    set(&mut scene);
    let (mut rig, _samples) = Rig::new(&mut scene, 7).map_err(BenchError::Pool)?;
    let _records = metered::attach(&mut rig, scene.telemetry);
    // Where flows are metered, each is met once before: a count of their first packets is not what a router does.
    let turns = turns + rig.turns_to_meet_all();
    (0..turns).for_each(|_| {
        rig.turn(false);
    });
    Ok(Some(turns * rig.size()))
}

/// Off and at every rate.
fn packets(
    name: &'static str,
    set: fn(&mut Scene),
    effort: Effort,
    progress: &mut impl FnMut(&str),
) -> Result<(Vec<CaseResult>, bool), BenchError> {
    progress(&format!("{name}: tables and frames"));
    let cores = weir_cpu::allowed_cores();
    tie(&cores, true);
    let mut scene = Scene::new(effort.thinned).map_err(BenchError::Fib)?;
    set(&mut scene);
    let (mut rig, source) = Rig::new(&mut scene, 7).map_err(BenchError::Pool)?;
    let records = metered::attach(&mut rig, scene.telemetry);
    let sampled = effort.sampled && scene.telemetry.sampling == 0;
    progress(&format!("{name}: checking frames and counters"));
    rig.check().map_err(BenchError::Check)?;
    let hugepages = rig.hugepages;
    let (stop, got, counters) = (
        AtomicBool::new(false),
        AtomicU64::new(0),
        source.counters.clone(),
    );
    let (ready, exported) = (Barrier::new(2), AtomicU64::new(0));
    let results = std::thread::scope(|scope| {
        let _exporter = records.map(|records| {
            let (stop, exported) = (&stop, &exported);
            scope.spawn(move || metered::drain(records, stop, exported))
        });
        let reader = scope.spawn(|| {
            tie(&cores, false);
            ready.wait();
            drain(source, &stop, &got);
        });
        // It begins on the core that this thread is tied to, and under a real-time scheduler it would never get to run there.
        ready.wait();
        let (mut off, mut results) = (Off::default(), Vec::new());
        for (rate, at_most, promised) in RATES.into_iter().filter(|_| sampled) {
            let promised = promised.contains(&name);
            progress(&format!("{name}: off"));
            off.portion(&mut rig, effort);
            progress(&format!("{name}: sFlow 1:{rate}"));
            let lost = counters.lost.get();
            let times = match promised {
                true => ROUNDS.1,
                false if rate <= 10_000 => ROUNDS.0,
                false => 1,
            };
            let result = with_sflow(
                &mut rig,
                name,
                Effort {
                    pairs: effort.pairs * times,
                    ..effort
                },
                rate,
                &got,
            );
            let samples_lost = Some(counters.lost.get() - lost);
            results.push(CaseResult {
                added_at_most: promised.then_some(at_most),
                samples_lost,
                ..result
            });
        }
        off.portion(&mut rig, effort);
        results.insert(0, off.result(name));
        stop.store(true, Ordering::Release);
        let _ = reader.join();
        results
    });
    Ok((results, hugepages))
}

/// How long the reader rests: as the agent does where samples are dense. One that asked all the time would
/// take the ring's lines away from the worker while it writes them.
const REST: Duration = Duration::from_millis(1);

/// The ring's reader.
fn drain(mut source: SampleSource, stop: &AtomicBool, got: &AtomicU64) {
    loop {
        let ended = stop.load(Ordering::Acquire);
        let mut count = 0;
        while source
            .ring
            .pop_with(|sample| std::hint::black_box(sample.kept))
            .is_some()
        {
            count += 1;
        }
        if count > 0 {
            got.fetch_add(count, Ordering::Release);
        } else if ended {
            return;
        } else {
            std::thread::sleep(REST);
        }
    }
}

/// Clocks by node, with the packets that they were spent on.
type NodeClocks = BTreeMap<&'static str, (u64, u64)>;

/// What is found without sFlow, portion by portion.
#[derive(Default)]
struct Off {
    slices: Vec<f64>,
    nodes: NodeClocks,
    /// Slices of a portion: as many as the first one had time for.
    each: usize,
    /// Slices that were played again.
    repeated: u64,
}

impl Off {
    fn portion(&mut self, rig: &mut Rig, effort: Effort) {
        rig.sample(0);
        let turns = paired::slice_of(effort.turns);
        let interrupted = paired::interrupted(rig.block(effort.turns, false));
        let (begun, nodes) = (Instant::now(), rig.node_clocks());
        let mut count = 0;
        while if self.each == 0 {
            count < effort.pairs || begun.elapsed() < effort.portion
        } else {
            count < self.each
        } {
            let (clocks, again) = paired::slice(rig, turns, false, interrupted);
            self.slices.push(clocks);
            self.repeated += again;
            count += 1;
        }
        self.each = count;
        add_nodes(&mut self.nodes, rig, &nodes);
    }

    fn result(mut self, name: &'static str) -> CaseResult {
        CaseResult {
            repeated: Some(self.repeated),
            ..result(name, "off".into(), &self.nodes, &mut self.slices)
        }
    }
}

/// Adds what nodes took since then.
fn add_nodes(nodes: &mut NodeClocks, rig: &Rig, before: &[(&'static str, u64, u64)]) {
    for ((name, clocks, packets), (_, clocks_before, packets_before)) in
        rig.node_clocks().into_iter().zip(before)
    {
        let node = nodes.entry(name).or_default();
        *node = (
            node.0 + clocks - clocks_before,
            node.1 + packets - packets_before,
        );
    }
}

fn result(name: &'static str, sflow: String, nodes: &NodeClocks, blocks: &mut [f64]) -> CaseResult {
    let clocks = quantile(blocks, 0.25);
    let visited = nodes.iter().filter(|(_, (_, packets))| *packets > 0);
    CaseResult {
        name,
        sflow,
        clocks_per_packet: round(clocks),
        clocks_median: round(quantile(blocks, 0.5)),
        clocks_high: round(quantile(blocks, 0.75)),
        mpps: round(weir_cpu::tsc_hz() as f64 / clocks / 1e6),
        nodes: visited
            .map(|(&node, &(clocks, packets))| (node, round(clocks as f64 / packets as f64)))
            .collect(),
        limit: Limit::None,
        at_most: None,
        added: None,
        added_in_all: None,
        added_low: None,
        added_high: None,
        added_error: None,
        added_at_most: None,
        null: None,
        null_error: None,
        repeated: None,
        samples: None,
        samples_lost: None,
    }
}

fn with_sflow(
    rig: &mut Rig,
    name: &'static str,
    effort: Effort,
    rate: u32,
    got: &AtomicU64,
) -> CaseResult {
    rig.sample(rate);
    rig.block(effort.turns, true);
    let (before, got_before) = (rig.node_clocks(), got.load(Ordering::Acquire));
    let mut found = paired::measure(rig, effort.turns, effort.pairs);
    let mut nodes = NodeClocks::new();
    add_nodes(&mut nodes, rig, &before);
    let result = result(name, rate.to_string(), &nodes, &mut found.with);
    CaseResult {
        added: Some(found.added.median),
        added_in_all: Some(found.added_in_all),
        added_low: Some(found.added.low),
        added_high: Some(found.added.high),
        added_error: Some(found.added.error),
        null: Some(found.null.median),
        null_error: Some(found.null.error),
        repeated: Some(found.repeated),
        samples: Some(got.load(Ordering::Acquire) - got_before),
        ..result
    }
}

/// Between the two nearest values; sorts them.
pub(crate) fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = part * values.len().saturating_sub(1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    match (values.get(low), values.get(high)) {
        (Some(&low), Some(&high)) => low + (high - low) * place.fract(),
        _ => 0.0,
    }
}

/// To three digits.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
