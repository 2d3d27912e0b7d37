//! Which threads ran on a core: their run time before and after, from `/proc/PID/task/TID/schedstat`.
//!
//! Run time is exact. A thread counts for a core when it was there at both times; one that was
//! elsewhere in between counts too much, which the sum's limit corrects.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The name of the measuring threads, which count as nobody's work.
pub(crate) const JOB: &str = "weir-lab-job";

/// All threads: name, nanoseconds of run time, and the core where each was last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Threads(BTreeMap<(u32, u32), (String, u64, usize)>);

impl Threads {
    /// Reads them below `proc`. Threads that end meanwhile are left out.
    pub(crate) fn sample(proc: &Path) -> Threads {
        let mut threads = BTreeMap::new();
        for process in numbered(proc) {
            let tasks = proc.join(process.to_string()).join("task");
            for thread in numbered(&tasks) {
                let folder = tasks.join(thread.to_string());
                let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
                let Some((name, core)) = name_and_core(&text("stat")) else {
                    continue;
                };
                let ran = text("schedstat");
                let ran = ran.split_whitespace().next().and_then(|ns| ns.parse().ok());
                if let Some(ran) = ran {
                    threads.insert((process, thread), (name, ran, core));
                }
            }
        }
        Threads(threads)
    }

    /// Shares of the time between two samples that threads ran on `core`, by name, largest first;
    /// below a thousandth is left out. Together at most `most`, which the scheduler knows exactly:
    /// threads that were elsewhere in between are cut in proportion.
    pub(crate) fn shares(
        &self,
        after: &Threads,
        core: usize,
        seconds: f64,
        most: f64,
    ) -> Vec<(String, f64)> {
        let mut sums = BTreeMap::<&str, u64>::new();
        for (id, (name, ran, last)) in &after.0 {
            let (before, first) = match self.0.get(id) {
                Some((_, ran, core)) => (*ran, *core),
                None => (0, core),
            };
            if name != JOB && *last == core && first == core {
                *sums.entry(name).or_default() += ran.saturating_sub(before);
            }
        }
        let mut shares: Vec<(String, f64)> = sums
            .into_iter()
            .map(|(name, ns)| (name.to_owned(), ns as f64 * 1e-9 / seconds.max(1e-9)))
            .collect();
        let total: f64 = shares.iter().map(|(_, share)| share).sum();
        if total > most {
            shares
                .iter_mut()
                .for_each(|(_, share)| *share *= most / total);
        }
        shares.retain(|(_, share)| *share >= 0.001);
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
}

fn numbered(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// From `/proc/PID/task/TID/stat`: the name in brackets, which may itself have brackets, and field 39.
fn name_and_core(stat: &str) -> Option<(String, usize)> {
    let (begin, end) = (stat.find('(')?, stat.rfind(')')?);
    let name = stat.get(begin + 1..end)?.to_owned();
    let core = stat.get(end + 1..)?.split_whitespace().nth(36)?;
    Some((name, core.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(proc: &Path, id: &str, name: &str, core: u32, ran: u64) {
        let folder = proc.join(id).join("task").join(id);
        fs::create_dir_all(&folder).unwrap();
        let fields: Vec<String> = (4..=52)
            .map(|field| {
                if field == 39 {
                    core.to_string()
                } else {
                    "0".to_owned()
                }
            })
            .collect();
        let stat = format!("{id} ({name}) S {}\n", fields.join(" "));
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("schedstat"), format!("{ran} 5 6\n")).unwrap();
    }

    #[test]
    fn run_time_is_divided_by_thread() {
        let proc = std::env::temp_dir().join(format!("weir-threads-{}", std::process::id()));
        record(&proc, "7", "ksoftirqd/1", 1, 1_000_000);
        record(&proc, "8", "a (b) c", 1, 50);
        record(&proc, "9", JOB, 1, 0);
        record(&proc, "10", "elsewhere", 0, 0);
        record(&proc, "11", "moved", 0, 0);
        let before = Threads::sample(&proc);
        record(&proc, "7", "ksoftirqd/1", 1, 501_000_000);
        record(&proc, "8", "a (b) c", 1, 100_000_050);
        record(&proc, "9", JOB, 1, 900_000_000);
        record(&proc, "10", "elsewhere", 0, 900_000_000);
        record(&proc, "11", "moved", 1, 300_000_000);
        record(&proc, "12", "new", 1, 200_000_000);
        let after = Threads::sample(&proc);
        let shares = |most| {
            let shares = before.shares(&after, 1, 1.0, most);
            shares
                .into_iter()
                .map(|(name, share)| (name, (share * 1000.0).round()))
                .collect::<Vec<_>>()
        };
        let found = |a: f64, b: f64, c: f64| {
            [("ksoftirqd/1", a), ("new", b), ("a (b) c", c)]
                .map(|(name, share)| (name.to_owned(), share))
        };
        assert_eq!(shares(1.0), found(500.0, 200.0, 100.0));
        assert_eq!(shares(0.4), found(250.0, 100.0, 50.0));
        fs::remove_dir_all(&proc).unwrap();
    }
}
