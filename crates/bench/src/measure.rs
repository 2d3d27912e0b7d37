//! Blocks, pairs and medians.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_buf::{PoolError, VECTOR};
use weir_fib::FibError;
use weir_telemetry::sampler::SampleSource;

use crate::case::{Case, Kind, Limit};
use crate::report::{CaseResult, Found};
use crate::rig::{CheckError, Rig};
use crate::scene::Scene;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Turns of 256 packets a block.
    pub turns: usize,
    /// Pairs of blocks, at least 31 for a published figure.
    pub pairs: usize,
    /// One in so many prefixes of a full table: 1 but for trying things out.
    pub thinned: usize,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { turns: 1024, pairs: 61, thinned: 1 }
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
            BenchError::Check(error) => write!(f, "the packet path does not do what it should: {error}"),
        }
    }
}

impl std::error::Error for BenchError {}

/// The sampling rates of every case.
pub(crate) const RATES: [u32; 4] = [10_000_000, 10_000, 1_000, 100];

/// Measures a case; `progress` is told what comes next. Also says whether packet memory lay on hugepages.
///
/// # Errors
/// When there is no memory, or the untimed run shows that the result would be worthless.
pub fn run_case(case: Case, effort: Effort, mut progress: impl FnMut(&str)) -> Result<(Vec<Found>, bool), BenchError> {
    match case.kind {
        Kind::Packets { limit, set } => {
            let (results, hugepages) = packets(case.name, set, effort, &mut progress)?;
            let results = results.into_iter().map(|result| Found::Packets(CaseResult { limit, ..result }));
            Ok((results.collect(), hugepages))
        }
        Kind::Load { run } => {
            let (found, hugepages) = run(case.name, effort, &mut progress)?;
            Ok((vec![found], hugepages))
        }
    }
}

/// Runs a case without sFlow for whoever counts instructions from outside: a warm-up, then so many vectors, each in
/// a call of `Rig::measured_turn`. `None` for a case that is not of packets.
///
/// # Errors
/// When there is no memory.
pub fn run_untimed(case: Case, turns: usize) -> Result<Option<usize>, BenchError> {
    let Kind::Packets { set, .. } = case.kind else { return Ok(None) };
    // Full tables are thinned: a twentieth is still looked up as a full one.
    let mut scene = Scene::new(20).map_err(BenchError::Fib)?;
    set(&mut scene);
    let (mut rig, _samples) = Rig::new(&mut scene, 7).map_err(BenchError::Pool)?;
    (0..turns).for_each(|_| {
        rig.turn(false);
    });
    Ok(Some(turns * VECTOR))
}

/// Off and at every rate.
fn packets(
    name: &'static str,
    set: fn(&mut Scene),
    effort: Effort,
    progress: &mut impl FnMut(&str),
) -> Result<(Vec<CaseResult>, bool), BenchError> {
    progress(&format!("{name}: tables and frames"));
    let mut scene = Scene::new(effort.thinned).map_err(BenchError::Fib)?;
    set(&mut scene);
    let (mut rig, source) = Rig::new(&mut scene, 7).map_err(BenchError::Pool)?;
    progress(&format!("{name}: checking frames and counters"));
    rig.check().map_err(BenchError::Check)?;
    let hugepages = rig.hugepages;
    let (stop, got) = (AtomicBool::new(false), AtomicU64::new(0));
    let results = std::thread::scope(|scope| {
        let reader = scope.spawn(|| drain(source, &stop, &got));
        let mut results = vec![off(&mut rig, name, effort, progress)];
        for rate in RATES {
            progress(&format!("{name}: sFlow 1:{rate}"));
            results.push(with_sflow(&mut rig, name, effort, rate, &got));
        }
        stop.store(true, Ordering::Release);
        let _ = reader.join();
        results
    });
    Ok((results, hugepages))
}

/// How long the reader rests: as the agent does where samples are dense. One that asked all the time would
/// take the ring's lines away from the worker while it writes them.
const REST: std::time::Duration = std::time::Duration::from_millis(1);

/// The ring's reader, on whatever core the kernel gives it.
fn drain(mut source: SampleSource, stop: &AtomicBool, got: &AtomicU64) {
    loop {
        let ended = stop.load(Ordering::Acquire);
        let mut count = 0;
        while source.ring.pop_with(|sample| std::hint::black_box(sample.kept)).is_some() {
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

fn off(rig: &mut Rig, name: &'static str, effort: Effort, progress: &mut impl FnMut(&str)) -> CaseResult {
    progress(&format!("{name}: off"));
    rig.sample(0);
    rig.block(effort.turns, false);
    let before = rig.node_clocks();
    let mut blocks: Vec<f64> = (0..effort.pairs).map(|_| rig.block(effort.turns, false)).collect();
    result(rig, name, "off".into(), &before, &mut blocks)
}

fn result(rig: &Rig, name: &'static str, sflow: String, before: &[(&'static str, u64, u64)], blocks: &mut [f64]) -> CaseResult {
    let clocks = quantile(blocks, 0.5);
    let mut nodes = BTreeMap::new();
    for ((name, clocks, packets), (_, clocks_before, packets_before)) in rig.node_clocks().into_iter().zip(before) {
        if packets > *packets_before {
            nodes.insert(name, round((clocks - clocks_before) as f64 / (packets - packets_before) as f64));
        }
    }
    CaseResult {
        name,
        sflow,
        clocks_per_packet: round(clocks),
        mpps: round(weir_cpu::tsc_hz() as f64 / clocks / 1e6),
        nodes,
        limit: Limit::None,
        at_most: None,
        added: None,
        added_low: None,
        added_high: None,
        null: None,
        samples: None,
        samples_lost: None,
    }
}

/// Blocks with and without take turns; which comes first changes from pair to pair.
fn with_sflow(rig: &mut Rig, name: &'static str, effort: Effort, rate: u32, got: &AtomicU64) -> CaseResult {
    rig.sample(rate);
    rig.block(effort.turns, true);
    let before = rig.node_clocks();
    let (got_before, mut blocks, mut added, mut null) = (got.load(Ordering::Acquire), Vec::new(), Vec::new(), Vec::new());
    for pair in 0..effort.pairs {
        let first = rig.block(effort.turns, pair % 2 == 1);
        let second = rig.block(effort.turns, pair % 2 == 0);
        let (on, off) = if pair % 2 == 1 { (first, second) } else { (second, first) };
        blocks.push(on);
        added.push(on - off);
        let (one, two) = (rig.block(effort.turns / 2, false), rig.block(effort.turns / 2, false));
        null.push(if pair % 2 == 1 { one - two } else { two - one });
    }
    let mut result = result(rig, name, rate.to_string(), &before, &mut blocks);
    result.added = Some(round(quantile(&mut added, 0.5)));
    result.added_low = Some(round(quantile(&mut added, 0.25)));
    result.added_high = Some(round(quantile(&mut added, 0.75)));
    result.null = Some(round(quantile(&mut null, 0.5)));
    result.samples = Some(got.load(Ordering::Acquire) - got_before);
    result
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
