//! `failover`: a million prefixes lead over one group of two next hops, and the link of one goes down.
//!
//! A worker's graph forwards to random destinations all the time in a thread of its own, by tables that are published
//! to it as the engine publishes them. The other thread does what the control side does when a link goes down:
//! it takes the paths over the link out of use, which writes each group that has one once and no prefix, and
//! publishes. Measured is the time from there until the worker has passed a quiescent state, so that whatever it
//! forwards from then on goes by the new group; beside it, a publication of nothing new. What is sent towards the link
//! after that, or dropped, is lost, and there is to be none. Then the link comes back, and so on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use weir_buf::VECTOR;
use weir_fib::{Adjacency, Group, NeighborState, Path};
use weir_nodes::{Entry, Tables};
use weir_port::interface::Input;
use weir_ring::qsbr::{Domain, Published, Reader};

use crate::cases::ip4_full;
use crate::measure::{BenchError, Effort, quantile, round};
use crate::report::Found;
use crate::rig::{CheckError, Rig};
use crate::scene::{BESIDE, IN, OURS, OUT, Scene};

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Failover {
    /// The case.
    pub name: &'static str,
    /// Prefixes that lead over the group.
    pub prefixes: usize,
    /// How often a link went down.
    pub failures: usize,
    /// Writes of groups at each failure, however many prefixes there are.
    pub groups_written: usize,
    /// From the news that the link is down until all traffic goes by the other; the median, in microseconds.
    pub microseconds: f64,
    /// The longest.
    pub microseconds_max: f64,
    /// A publication of nothing new; the median.
    pub publish_microseconds: f64,
    /// Packets a second that were forwarded all the while.
    pub packets_per_second: f64,
    /// Packets that were sent towards the link before the worker knew, at a failure; the median.
    pub lost_before: f64,
    /// Packets that were sent towards the link, or dropped, after that, at all failures together.
    pub lost_after: u64,
    /// At most.
    pub lost_after_target: u64,
}

/// Measures it. Also says whether packet memory lay on hugepages.
pub(crate) fn run(
    name: &'static str,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    progress(&format!("{name}: loading"));
    let mut scene = Scene::new(effort.thinned).map_err(BenchError::Fib)?;
    let ends = [OUT, BESIDE].map(|interface| {
        let address = std::net::Ipv4Addr::new(10, 2, 0, interface as u8);
        let neighbor = Adjacency::neighbor(interface, address.into(), 1500, OURS.0);
        neighbor.set_neighbor(NeighborState::Static, [2, 0, 0, 0, 1, interface as u8]);
        scene.nexthops.add_adjacency(neighbor)
    });
    let group = Group::new(ends.map(Path::to)).and_then(|group| scene.nexthops.acquire(group));
    let group = group.map_err(|error| BenchError::Check(CheckError(error.to_string())))?;
    let routes: Vec<_> = ip4_full::routes(effort.thinned)
        .into_iter()
        .map(|(prefix, _)| (prefix, group))
        .collect();
    scene.fib4.extend(&routes).map_err(BenchError::Fib)?;
    ip4_full::frames(&mut scene);
    scene.interface(IN).input = Input::Routed;
    let (rig, _samples) = Rig::new(&mut scene, 7).map_err(BenchError::Pool)?;
    let hugepages = rig.hugepages;
    progress(&format!("{name}: links go down and come back"));
    let rounds = effort.pairs.clamp(3, 31);
    let found = Trial::new(scene, ends[0])
        .run(rig, rounds)
        .ok_or_else(|| BenchError::Check(CheckError("no worker".into())))?;
    Ok((
        Found::Failover(Failover {
            name,
            prefixes: routes.len(),
            failures: rounds,
            ..found
        }),
        hugepages,
    ))
}

/// What the control side has.
struct Trial {
    scene: Scene,
    tables: Tables,
    domain: Domain,
    published: Arc<Published<Tables>>,
    /// The next hop whose link goes down.
    failing: u32,
}

/// What the worker tells.
#[derive(Default)]
struct Progress {
    packets: AtomicU64,
    stop: AtomicBool,
}

impl Trial {
    fn new(mut scene: Scene, failing: u32) -> Trial {
        let [tables, _] = scene.tables();
        let domain = scene.domain.clone();
        let published = Arc::new(Published::new(&domain, Box::new(tables.clone())));
        Trial {
            scene,
            tables,
            domain,
            published,
            failing,
        }
    }

    fn run(mut self, rig: Rig, rounds: usize) -> Option<Failover> {
        let (reader, progress, published) = (
            self.domain.register().ok()?,
            Progress::default(),
            self.published.clone(),
        );
        let counters = rig.counters.clone();
        let dropped = || counters.totals.dropped.get();
        std::thread::scope(|scope| {
            scope.spawn(|| forward(rig, reader, &published, &progress));
            wait_for(&progress, 100);
            let (mut downs, mut idle, mut before, mut written, mut after) =
                (Vec::new(), Vec::new(), Vec::new(), 0, 0);
            let (began, forwarded) = (Instant::now(), progress.packets.load(Ordering::Acquire));
            for _ in 0..rounds {
                let start = Instant::now();
                self.publish();
                idle.push(microseconds(start));
                let (start, sent) = (Instant::now(), self.sent());
                written = self.set_link(false);
                self.publish();
                downs.push(microseconds(start));
                let lost = (self.sent(), dropped());
                before.push((lost.0 - sent) as f64);
                wait_for(&progress, 200);
                after += self.sent() - lost.0 + dropped() - lost.1;
                self.set_link(true);
                self.publish();
                let back = self.sent();
                wait_for(&progress, 100);
                // Without this, what was seen above could not have been otherwise.
                assert!(
                    self.sent() > back,
                    "half of the packets go by the link while it is up"
                );
            }
            let rate = (progress.packets.load(Ordering::Acquire) - forwarded) as f64
                / began.elapsed().as_secs_f64();
            progress.stop.store(true, Ordering::Relaxed);
            Some(Failover {
                name: "",
                prefixes: 0,
                failures: 0,
                groups_written: written,
                microseconds_max: round(downs.iter().copied().fold(0.0, f64::max)),
                microseconds: round(quantile(&mut downs, 0.5)),
                publish_microseconds: round(quantile(&mut idle, 0.5)),
                packets_per_second: rate.round(),
                lost_before: quantile(&mut before, 0.5),
                lost_after: after,
                lost_after_target: 0,
            })
        })
    }

    /// Frames that were handed to the link.
    fn sent(&self) -> u64 {
        self.tables
            .interface(OUT)
            .map_or(0, |out| out.counters.tx().packets)
    }

    /// The link of the one next hop comes or goes; how many groups were written.
    fn set_link(&mut self, up: bool) -> usize {
        if let Some(Some(entry)) = self.tables.interfaces.get_mut(OUT as usize) {
            let mut interface = entry.interface.clone();
            interface.can_send = up;
            *entry = Arc::new(Entry::new(interface, entry.drops.clone()));
        }
        self.scene.nexthops.set_up(self.failing, up)
    }

    /// As the engine does it: everything that changed goes out at once, and then every worker has passed.
    fn publish(&mut self) {
        self.tables.nexthops = self.scene.nexthops.snapshot();
        self.published.publish(Box::new(self.tables.clone()));
        let ticket = self.domain.ticket();
        while !self.domain.passed(ticket) {
            std::thread::yield_now();
        }
        self.domain.reclaim();
    }
}

/// Forwards as a worker does, by the tables that are published: a quiescent state a turn.
fn forward(mut rig: Rig, mut reader: Reader, published: &Published<Tables>, progress: &Progress) {
    while !progress.stop.load(Ordering::Relaxed) {
        reader.quiesce();
        if let Some(guard) = reader.guard() {
            rig.turn_by(published.load(&guard));
        }
        progress.packets.fetch_add(VECTOR as u64, Ordering::Release);
    }
    reader.offline();
}

/// Waits until so many vectors more were forwarded.
fn wait_for(progress: &Progress, vectors: u64) {
    let until = progress.packets.load(Ordering::Acquire) + vectors * VECTOR as u64;
    while progress.packets.load(Ordering::Acquire) < until {
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn microseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}
