//! What other work takes from a core: a job of known speed runs there, and what it cannot do was taken.
//!
//! The job is a loop of integer work. Its speed is calibrated per second of its own CPU time, so
//! that a busy machine does not spoil the calibration. The share of work that is missing is the whole
//! cost; it is divided into time for which the scheduler ran others (exact, from the thread's
//! `schedstat`) and time taken while the job was running (interrupts, softirqs, the hypervisor), which
//! `/proc/stat` divides further by its ticks. Ticks are samples: windows below five seconds divide coarsely.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::attribution::{JOB, Threads};
use crate::error::LabError;

/// What a job did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Job {
    seconds: f64,
    chunks: u64,
    /// Seconds that the thread ran.
    ran: f64,
    /// Seconds that it was runnable and others ran.
    waited: f64,
}

/// What was taken from a core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreCost {
    /// The core.
    pub core: usize,
    /// Seconds of the measurement.
    pub seconds: f64,
    /// The share of the job's work that was not done: the whole cost.
    pub taken: f64,
    /// The share in which the scheduler ran others.
    pub scheduled: f64,
    /// The share taken while the job was running.
    pub in_context: f64,
    /// Of the core's time: softirqs, by ticks.
    pub softirq: f64,
    /// Of the core's time: hard interrupts, by ticks.
    pub irq: f64,
    /// Of the core's time: the hypervisor, by ticks.
    pub steal: f64,
    /// The threads that the scheduler ran instead of the job, by name, largest share first.
    #[serde(default)]
    pub threads: Vec<(String, f64)>,
}

impl CoreCost {
    /// The share of threads of this name, as `ksoftirqd`.
    #[must_use]
    pub fn of(&self, name: &str) -> f64 {
        let named = self.threads.iter().filter(|(own, _)| own.starts_with(name));
        named.map(|(_, share)| share).sum()
    }

    /// The share that was taken while the job was running and that no tick explains: time below a
    /// tick, and work that others made slower through shared caches.
    #[must_use]
    pub fn rest(&self) -> f64 {
        self.in_context - self.softirq_in_context() - (self.irq + self.steal) * self.alone()
    }

    /// The share of softirqs that took the job's own time. The kernel counts ksoftirqd's work as
    /// softirq, which is a thread here, and softirqs in other threads' time are part of those.
    #[must_use]
    pub fn softirq_in_context(&self) -> f64 {
        (self.softirq - self.of("ksoftirqd")).max(0.0) * self.alone()
    }

    /// The share of the time in which the scheduler ran the job.
    fn alone(&self) -> f64 {
        1.0 - self.scheduled
    }
}

/// One chunk: about ten microseconds of integer work without memory.
#[inline(never)]
fn chunk(mut state: u64) -> u64 {
    for _ in 0..4000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

/// Seconds that the calling thread ran, and that it waited for a core.
fn schedstat() -> (f64, f64) {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let mut words = text
        .split_whitespace()
        .map(|word| word.parse::<f64>().unwrap_or(0.0) * 1e-9);
    (words.next().unwrap_or(0.0), words.next().unwrap_or(0.0))
}

fn job(duration: Duration) -> Job {
    let (ran, waited) = schedstat();
    let start = Instant::now();
    let (mut state, mut chunks) = (88_172_645_463_325_252, 0);
    while start.elapsed() < duration {
        state = black_box(chunk(state));
        chunks += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    let (ran_now, waited_now) = schedstat();
    Job {
        seconds,
        chunks,
        ran: ran_now - ran,
        waited: waited_now - waited,
    }
}

/// Chunks per second of CPU time on a core, to be found before the traffic that is measured starts:
/// softirqs in the job's time would make it look slower.
///
/// # Errors
/// When the core may not be used.
pub fn calibrated(core: usize) -> Result<f64, LabError> {
    joined(std::thread::spawn(move || {
        weir_cpu::pin_to(core)
            .map_err(|source| LabError::file(format!("use core {core}"), source))?;
        Ok(calibrate())
    }))
}

/// Chunks per second of CPU time on this thread: the best of ten windows of 20 ms.
fn calibrate() -> f64 {
    let speed = |_| {
        let job = job(Duration::from_millis(20));
        job.chunks as f64
            / if job.ran > 0.0 {
                job.ran.min(job.seconds)
            } else {
                job.seconds
            }
    };
    // Windows in which the clock of the thread ran coarsely look too fast: the second best counts.
    let mut speeds: Vec<f64> = (0..10).map(speed).collect();
    speeds.sort_by(f64::total_cmp);
    speeds.get(speeds.len() - 2).copied().unwrap_or(1.0)
}

/// The row of a core in `/proc/stat`: all ticks, and those of irq, softirq and steal.
fn ticks(core: usize) -> [f64; 4] {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    row(&text, core)
}

fn row(text: &str, core: usize) -> [f64; 4] {
    let name = format!("cpu{core}");
    let values: Vec<f64> = text
        .lines()
        .find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next()? == name).then(|| words.filter_map(|word| word.parse().ok()).collect())
        })
        .unwrap_or_default();
    let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
    [values.iter().take(8).sum(), at(5), at(6), at(7)]
}

fn cost(core: usize, speed: f64, job: &Job, before: [f64; 4], after: [f64; 4]) -> CoreCost {
    let taken = (1.0 - job.chunks as f64 / (speed * job.seconds)).clamp(0.0, 1.0);
    let scheduled = (job.waited / job.seconds).clamp(0.0, taken);
    let total = (after[0] - before[0]).max(1e-9);
    let share = |index: usize| ((after[index] - before[index]) / total).clamp(0.0, 1.0);
    CoreCost {
        core,
        seconds: job.seconds,
        taken,
        scheduled,
        in_context: taken - scheduled,
        irq: share(1),
        softirq: share(2),
        steal: share(3),
        threads: Vec::new(),
    }
}

/// Measures cores at the same time, each by a job on it.
///
/// # Errors
/// When a core may not be used.
pub fn measure(cores: &[usize], duration: Duration) -> Result<Vec<CoreCost>, LabError> {
    // All cores at the same time.
    let threads: Vec<_> = cores
        .iter()
        .map(|core| {
            (
                *core,
                std::thread::spawn({
                    let core = *core;
                    move || calibrated(core)
                }),
            )
        })
        .collect();
    let mut speeds = Vec::new();
    for (core, thread) in threads {
        speeds.push((core, joined(thread)?));
    }
    measure_at(&speeds, duration)
}

/// Measures cores whose speeds are known from [`calibrated`].
///
/// # Errors
/// When a core may not be used.
pub fn measure_at(speeds: &[(usize, f64)], duration: Duration) -> Result<Vec<CoreCost>, LabError> {
    let threads: Vec<_> = speeds
        .iter()
        .map(|(core, speed)| {
            let (core, speed) = (*core, *speed);
            let work = move || {
                weir_cpu::pin_to(core)
                    .map_err(|source| LabError::file(format!("use core {core}"), source))?;
                let before = (ticks(core), Threads::sample(Path::new("/proc")));
                let job = job(duration);
                let after = (ticks(core), Threads::sample(Path::new("/proc")));
                let mut cost = cost(core, speed, &job, before.0, after.0);
                cost.threads = before.1.shares(&after.1, core, job.seconds, cost.scheduled);
                Ok(cost)
            };
            std::thread::Builder::new()
                .name(JOB.to_owned())
                .spawn(work)
                .map_err(|source| LabError::file("start a job", source))
        })
        .collect();
    threads.into_iter().map(|thread| joined(thread?)).collect()
}

fn joined<T>(thread: std::thread::JoinHandle<Result<T, LabError>>) -> Result<T, LabError> {
    thread
        .join()
        .unwrap_or_else(|_| Err(LabError::Refused("a job's thread failed".to_owned())))
}

/// A load of known cost on a core: runs for `share` of each ten milliseconds of time.
pub struct KnownLoad {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<(f64, f64)>>,
}

impl KnownLoad {
    /// The name of its thread.
    pub const THREAD: &str = "weir-lab-load";

    /// Starts it.
    #[must_use]
    pub fn start(core: usize, share: f64) -> KnownLoad {
        use std::sync::atomic::{AtomicBool, Ordering};
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let work = move || {
            let _ = weir_cpu::pin_to(core);
            let (start, (ran, _)) = (Instant::now(), schedstat());
            let (mut state, mut done) = (1, 0.0);
            while !stopped.load(Ordering::Relaxed) {
                // Its own CPU time follows the wall clock times the share.
                while done < start.elapsed().as_secs_f64() * share.clamp(0.0, 1.0) {
                    for _ in 0..50 {
                        state = black_box(chunk(state));
                    }
                    done = schedstat().0 - ran;
                    if stopped.load(Ordering::Relaxed) {
                        break;
                    }
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            (schedstat().0 - ran, start.elapsed().as_secs_f64())
        };
        let thread = std::thread::Builder::new()
            .name(KnownLoad::THREAD.to_owned())
            .spawn(work)
            .ok();
        KnownLoad { stop, thread }
    }

    /// Ends it; the share of time that it ran.
    #[must_use]
    pub fn end(self) -> f64 {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let ended = self.thread.map(std::thread::JoinHandle::join);
        ended
            .and_then(Result::ok)
            .map_or(0.0, |(ran, seconds)| ran / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core of which a half was taken, a fifth of that by others: worked out by hand.
    #[test]
    fn costs_are_divided() {
        let job = Job {
            seconds: 10.0,
            chunks: 500,
            ran: 9.0,
            waited: 1.0,
        };
        let cost = cost(1, 100.0, &job, [0.0; 4], [1000.0, 10.0, 380.0, 0.0]);
        assert!(
            (cost.taken - 0.5).abs() < 1e-9 && (cost.scheduled - 0.1).abs() < 1e-9,
            "{cost:?}"
        );
        assert!(
            (cost.in_context - 0.4).abs() < 1e-9 && (cost.softirq - 0.38).abs() < 1e-9,
            "{cost:?}"
        );
        assert!((cost.scheduled + cost.in_context - cost.taken).abs() < 1e-12);
        // 0.4 in context, of which ticks explain a part; ksoftirqd's part is a thread's.
        let cost = CoreCost {
            threads: vec![("ksoftirqd/1".to_owned(), 0.08), ("other".to_owned(), 0.02)],
            ..cost
        };
        // (0.38 - 0.08) * 0.9 and 0.01 * 0.9 of 0.4.
        assert!((cost.rest() - 0.121).abs() < 1e-9, "{cost:?}");
    }

    #[test]
    fn rows_are_read() {
        let text = "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu10 9 9 9 9 9 9 9 9\n";
        assert_eq!(row(text, 0), [36.0, 6.0, 7.0, 8.0]);
        assert_eq!(row(text, 1), [0.0; 4]);
    }

    /// The known load gets what it is to get, and the job finds it. On a busy machine more is taken,
    /// so that the bound is for long tests.
    #[test]
    fn a_known_load_is_found() {
        let core = weir_cpu::allowed_cores()[0];
        let load = KnownLoad::start(core, 0.25);
        let cost = measure(&[core], Duration::from_millis(500))
            .unwrap()
            .remove(0);
        let known = load.end();
        assert!(known > 0.0 && cost.taken > 0.0, "{known} {cost:?}");
        if std::env::var_os("WEIR_LONG").is_some() {
            assert!((cost.taken - known).abs() < 0.03, "{known} {cost:?}");
        }
    }
}
