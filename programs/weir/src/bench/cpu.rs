//! CPU time: whose, and what is not in it.
//!
//! What a packet costs on veth is charged to whoever happened to run: the kernel forwards in soft
//! interrupts, mostly in the sender's system call. A router's own threads are therefore only a part of
//! what its packets cost, and a bridge has no thread at all. Compared is the **whole**: all threads of
//! this process (sender, receiver, workers) with the soft interrupts that ran in their place, by the
//! scheduler's clock in nanoseconds, and the kernel's threads for soft interrupts that were put off
//! (`ksoftirqd`, which also serve other jobs of the machine).
//!
//! Not in the whole: interrupts that found a core idle, and kernel threads of other names. The
//! machine's busy time from `/proc/stat` has these, but has all other jobs too and is sampled; it is
//! reported beside, not judged.

use std::fs;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CPU time since whenever.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuTime {
    /// Threads of this process.
    process: u64,
    /// Of these, the router's workers.
    workers: u64,
    /// The kernel's threads for soft interrupts.
    put_off: u64,
    /// The whole machine, busy.
    machine: u64,
}

/// What a clock says, in nanoseconds.
fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// CPU time of the calling thread, in nanoseconds.
pub(super) fn own_thread() -> u64 {
    read(ClockId::ThreadCPUTime)
}

impl CpuTime {
    /// As of now.
    pub(super) fn now() -> CpuTime {
        CpuTime {
            process: read(ClockId::ProcessCPUTime),
            workers: ran("/proc/self/task", "weir-worker-"),
            put_off: ran("/proc", "ksoftirqd/"),
            machine: machine().unwrap_or(0),
        }
    }

    /// What passed since an earlier reading.
    pub(super) fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            process: self.process.saturating_sub(earlier.process),
            workers: self.workers.saturating_sub(earlier.workers),
            put_off: self.put_off.saturating_sub(earlier.put_off),
            machine: self.machine.saturating_sub(earlier.machine),
        }
    }

    /// Everything that is judged, in microseconds.
    pub(super) fn whole_us(self) -> f64 {
        (self.process + self.put_off) as f64 / 1e3
    }

    /// The router's workers, in microseconds.
    pub(super) fn workers_us(self) -> f64 {
        self.workers as f64 / 1e3
    }

    /// Soft interrupts that were put off, in microseconds.
    pub(super) fn put_off_us(self) -> f64 {
        self.put_off as f64 / 1e3
    }

    /// The machine's busy time, in microseconds.
    pub(super) fn machine_us(self) -> f64 {
        self.machine as f64 / 1e3
    }
}

/// How long the tasks below `folder` whose name begins so have run, in nanoseconds.
fn ran(folder: &str, name: &str) -> u64 {
    let Ok(tasks) = fs::read_dir(folder) else {
        return 0;
    };
    let named = tasks
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_named(path, name));
    named
        .filter_map(|path| first_number(&fs::read_to_string(path.join("schedstat")).ok()?))
        .sum()
}

fn is_named(task: &Path, name: &str) -> bool {
    fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with(name))
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// All that is neither idle nor waiting nor stolen in the first line of `/proc/stat`, in nanoseconds.
fn machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    // user nice system idle iowait irq softirq steal: proc_stat(5). A tick is 1/100 s there on Linux.
    let ticks: Vec<u64> = line
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let busy: u64 = [0, 1, 2, 5, 6]
        .iter()
        .filter_map(|&column| ticks.get(column))
        .sum();
    Some(busy * 10_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_and_the_workers_are_distinguished() {
        let worker = std::thread::Builder::new().name("weir-worker-9".to_owned());
        let (before, own) = (CpuTime::now(), own_thread());
        let thread = worker.spawn(|| {
            let start = own_thread();
            while own_thread() - start < 30_000_000 {}
            // Read while the thread is there: a thread that has ended is not listed.
            CpuTime::now()
        });
        let passed = thread.unwrap().join().unwrap().since(before);
        assert!(passed.workers >= 20_000_000, "{passed:?}");
        assert!(passed.process >= passed.workers, "{passed:?}");
        assert!(
            own_thread() - own < passed.process,
            "another thread's time is not this one's"
        );
        assert!(
            passed.whole_us() >= 20_000.0 && passed.machine > 0,
            "{passed:?}"
        );
    }
}
