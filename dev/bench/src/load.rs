//! `fib-load`: a full table comes, lies there, and changes while a worker forwards by it.
//!
//! The table is that of `ip4-full`. Loading is from routes in memory, each with its next hop, to a table that
//! answers: groups are taken, then all routes go in at once. Changes are made one by one by the writing thread
//! while another forwards at full rate, both on cores of their own where there are two: as fast as they go in,
//! and at the pace that was asked for. Spans with and without changes take turns, so that a slow moment hits both.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ipnet::Ipv4Net;
use serde::Serialize;
use weir_buf::VECTOR;
use weir_cpu::{Task, dispatch, tsc};
use weir_fib::synthetic::{Random, internet4};
use weir_fib::{Fib4, Fib4Writer, FibError, Memory};
use weir_ring::qsbr::{Domain, Reader};

use crate::cases::ip4_full;
use crate::measure::{BenchError, Effort, quantile, round};
use crate::report::Found;
use crate::rig::Rig;
use crate::scene::Scene;

/// Changes a second that were asked for.
const PACE: f64 = 300_000.0;
/// Portions of time in which destinations are looked up again and again.
const LOOKING_UP: u32 = 5;
/// Prefixes of a table that is not full.
const FEW: usize = 10_000;

/// What was found; a figure that ends in `_target` is what was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct FibLoad {
    /// The case.
    pub name: &'static str,
    /// Prefixes of the table.
    pub prefixes: usize,
    /// From routes in memory to a table that answers; the median of some.
    pub seconds: f64,
    /// At most.
    pub seconds_target: f64,
    /// Bytes that lookups read.
    pub lookup_bytes_per_prefix: f64,
    /// At most.
    pub lookup_bytes_per_prefix_target: f64,
    /// The same of a table of 10,000 prefixes, in all.
    pub few_lookup_bytes: usize,
    /// At most.
    pub few_lookup_bytes_target: usize,
    /// With the exact routes and the groups.
    pub bytes_per_prefix: f64,
    /// At most.
    pub bytes_per_prefix_target: f64,
    /// Clocks of a lookup alone, in vectors of 256: the lower quartile of passes over all destinations.
    pub lookup_clocks: f64,
    /// Their median.
    pub lookup_clocks_median: f64,
    /// At most.
    pub lookup_clocks_target: f64,
    /// Changes a second while a worker forwards at full rate.
    pub updates_per_second: f64,
    /// At least.
    pub updates_per_second_target: f64,
    /// Clocks a packet of that worker when nothing changes.
    pub forwarding_clocks: f64,
    /// How much more a packet costs while 300,000 changes a second go in.
    pub slowed_percent: f64,
    /// At most.
    pub slowed_percent_target: f64,
    /// The same while as many go in as can.
    pub slowed_percent_at_most_updates: f64,
}

/// Measures it. Also says whether packet memory lay on hugepages.
pub(crate) fn run(
    name: &'static str,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    progress(&format!("{name}: loading"));
    let routes = ip4_full::routes(effort.thinned);
    let mut seconds = Vec::new();
    for _ in 0..effort.pairs.clamp(1, 5) {
        seconds.push(load(&routes).map_err(BenchError::Fib)?);
    }
    let few = few().map_err(BenchError::Fib)?;
    let mut scene = Scene::new(effort.thinned).map_err(BenchError::Fib)?;
    let routes = ip4_full::enter(&mut scene, &routes);
    let memory = scene.fib4.memory();
    let per_prefix = |bytes: usize| round(bytes as f64 / routes.len() as f64);
    progress(&format!("{name}: looking up"));
    let mut lookups = lookup_clocks(
        scene.fib4.fib(),
        &ip4_full::destinations(effort.thinned),
        effort,
    );
    progress(&format!("{name}: changing"));
    let (mut rig, _samples) = Rig::new(&mut scene, 7).map_err(BenchError::Pool)?;
    rig.check().map_err(BenchError::Check)?;
    let hugepages = rig.hugepages;
    let beside = beside(rig, &mut scene, &routes, effort).ok_or(BenchError::Fib(FibError::Full))?;
    let found = FibLoad {
        name,
        prefixes: routes.len(),
        seconds: round(quantile(&mut seconds, 0.5)),
        seconds_target: 1.0,
        lookup_bytes_per_prefix: per_prefix(memory.table),
        lookup_bytes_per_prefix_target: 16.0,
        few_lookup_bytes: few.table,
        few_lookup_bytes_target: 1_000_000,
        bytes_per_prefix: per_prefix(memory.table + memory.routes + scene.nexthops.bytes()),
        bytes_per_prefix_target: 96.0,
        lookup_clocks: round(quantile(&mut lookups, 0.25)),
        lookup_clocks_median: round(quantile(&mut lookups, 0.5)),
        lookup_clocks_target: 15.0,
        updates_per_second: beside.most.round(),
        updates_per_second_target: PACE,
        forwarding_clocks: round(beside.clocks),
        slowed_percent: round(100.0 * (beside.paced - 1.0)),
        slowed_percent_target: 10.0,
        slowed_percent_at_most_updates: round(100.0 * (beside.hurried - 1.0)),
    };
    Ok((Found::Load(found), hugepages))
}

/// Seconds that a whole table takes, its groups included.
fn load(routes: &[(Ipv4Net, u8)]) -> Result<f64, FibError> {
    let mut scene = Scene::new(1)?;
    let neighbors = scene.neighbors(ip4_full::NEIGHBORS);
    let start = Instant::now();
    let routes: Vec<(Ipv4Net, u32)> = routes
        .iter()
        .map(|&(prefix, neighbor)| (prefix, scene.one_more(neighbors[usize::from(neighbor) - 1])))
        .collect();
    scene.fib4.extend(&routes)?;
    Ok(start.elapsed().as_secs_f64())
}

/// What a table that is not full takes.
fn few() -> Result<Memory, FibError> {
    let mut writer = Fib4Writer::new(&Domain::new(1))?;
    writer.extend(&internet4(3, FEW, ip4_full::NEIGHBORS.into()))?;
    Ok(writer.memory())
}

/// Looks all destinations up; the sum of the groups, so that nothing is left out.
struct Pass<'a>(&'a Fib4, &'a [u32]);

impl Task for Pass<'_> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let (mut sum, mut groups) = (0, [0u32; VECTOR]);
        for vector in self.1.chunks(VECTOR) {
            let groups = &mut groups[..vector.len()];
            self.0.lookup_batch(vector, groups);
            sum += groups.iter().map(|&group| u64::from(group)).sum::<u64>();
        }
        sum
    }
}

/// Of each pass, for as long as most spells last in which others have the core.
fn lookup_clocks(fib: &Fib4, destinations: &[u32], effort: Effort) -> Vec<f64> {
    let (begun, mut passes) = (Instant::now(), Vec::new());
    while passes.len() < effort.pairs.max(1) || begun.elapsed() < effort.portion * LOOKING_UP {
        let start = tsc();
        std::hint::black_box(dispatch(Pass(fib, destinations)));
        passes.push(tsc().wrapping_sub(start) as f64 / destinations.len() as f64);
    }
    passes
}

/// Forwarding and changing at the same time.
struct Beside {
    /// Clocks a packet without changes.
    clocks: f64,
    /// Changes a second, as many as go in.
    most: f64,
    /// So many times the clocks at the pace asked for.
    paced: f64,
    /// So many times the clocks when as many go in as can.
    hurried: f64,
}

/// What the forwarding thread tells.
#[derive(Default)]
struct Progress {
    clocks: AtomicU64,
    packets: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Clocks and packets so far.
    fn now(&self) -> (u64, u64) {
        (
            self.clocks.load(Ordering::Acquire),
            self.packets.load(Ordering::Acquire),
        )
    }
}

/// Forwards until instructed to stop, as a worker does: a quiescent state a turn.
fn forward(mut rig: Rig, mut reader: Reader, progress: &Progress) {
    while !progress.stop.load(Ordering::Relaxed) {
        reader.quiesce();
        progress
            .clocks
            .fetch_add(rig.turn(false), Ordering::Release);
        progress.packets.fetch_add(VECTOR as u64, Ordering::Release);
    }
    reader.offline();
}

fn beside(
    rig: Rig,
    scene: &mut Scene,
    routes: &[(Ipv4Net, u32)],
    effort: Effort,
) -> Option<Beside> {
    let reader = scene.domain.register().ok()?;
    let progress = Progress::default();
    let cores = weir_cpu::allowed_cores();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            if let [_, second, ..] = cores[..] {
                let _ = weir_cpu::pin_to(second);
            }
            forward(rig, reader, &progress);
        });
        // With real-time priority nobody else gets this core before it is left for a moment.
        while progress.now().1 == 0 && !worker.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The writer keeps to the other core; as a scoped thread, so that the caller's affinity stays.
        let writer = scope.spawn(|| {
            if let [first, _, ..] = cores[..] {
                let _ = weir_cpu::pin_to(first);
            }
            let found = rounds(
                &mut Changes::new(&mut scene.fib4, routes),
                &progress,
                effort,
            );
            progress.stop.store(true, Ordering::Relaxed);
            found
        });
        writer.join().ok()
    })
}

/// Spans without changes, at the pace, without, and as many as go in, and so on.
fn rounds(changes: &mut Changes<'_>, progress: &Progress, effort: Effort) -> Beside {
    let lasting = Duration::from_millis(effort.turns.clamp(20, 100) as u64);
    let (mut clocks, mut most, mut paced, mut hurried) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.pairs.clamp(1, 15) {
        let mut pair = |rate: Option<f64>, changed: &mut Vec<f64>| {
            let (_, without) = changes.span(progress, Some(0.0), lasting);
            let (rate, with) = changes.span(progress, rate, lasting);
            clocks.push(without);
            changed.push(with / without);
            rate
        };
        pair(Some(PACE), &mut paced);
        most.push(pair(None, &mut hurried));
    }
    let median = |values: &mut Vec<f64>| quantile(values, 0.5);
    Beside {
        clocks: median(&mut clocks),
        most: median(&mut most),
        paced: median(&mut paced),
        hurried: median(&mut hurried),
    }
}

/// A writer that changes its routes at random.
struct Changes<'a> {
    writer: &'a mut Fib4Writer,
    routes: &'a [(Ipv4Net, u32)],
    random: Random,
    missing: Vec<usize>,
}

impl<'a> Changes<'a> {
    fn new(writer: &'a mut Fib4Writer, routes: &'a [(Ipv4Net, u32)]) -> Changes<'a> {
        Changes {
            writer,
            routes,
            random: Random::new(5),
            missing: Vec::new(),
        }
    }

    /// Half of the changes give a route another's group, a quarter each removes one and puts one back.
    fn one(&mut self) {
        let some = self.random.below(self.routes.len() as u64) as usize;
        let (prefix, _) = self.routes[some];
        match self.random.below(4) {
            0 => {
                if self.writer.remove(prefix).is_some() {
                    self.missing.push(some);
                }
            }
            1 if !self.missing.is_empty() => {
                let back = self
                    .missing
                    .swap_remove(self.random.below(self.missing.len() as u64) as usize);
                let _ = self.writer.insert(self.routes[back].0, self.routes[back].1);
            }
            _ => {
                let (_, group) = self.routes[self.random.below(self.routes.len() as u64) as usize];
                let _ = self.writer.insert(prefix, group);
            }
        }
    }

    /// Changes at a rate, or as fast as it goes; changes a second, and clocks a packet meanwhile.
    fn span(&mut self, progress: &Progress, rate: Option<f64>, lasting: Duration) -> (f64, f64) {
        let (start, before, mut done) = (Instant::now(), progress.now(), 0u64);
        while start.elapsed() < lasting {
            match rate {
                Some(rate) if done as f64 >= rate * start.elapsed().as_secs_f64() => {
                    std::hint::spin_loop()
                }
                _ => {
                    self.one();
                    done += 1;
                }
            }
        }
        let (rate, after) = (done as f64 / start.elapsed().as_secs_f64(), progress.now());
        (
            rate,
            (after.0 - before.0) as f64 / (after.1 - before.1).max(1) as f64,
        )
    }
}
