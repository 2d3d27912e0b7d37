//! Which threads ran on a core: their run time before and after, from `/proc/PID/task/TID/schedstat`.
//!
//! Run time is exact. A thread that moved between cores counts for the core where it was seen
//! last, so that the sum is exact for pinned threads only.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The name of the measuring threads, which count as nobody's work.
pub(crate) const JOB: &str = "weir-lab-job";

/// All threads that were last on a core: name and nanoseconds of run time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Threads(BTreeMap<(u32, u32), (String, u64)>);

impl Threads {
    /// Reads them below `proc`. Threads that end meanwhile are left out.
    pub(crate) fn sample(proc: &Path, core: usize) -> Threads {
        let mut threads = BTreeMap::new();
        for process in numbered(proc) {
            let tasks = proc.join(process.to_string()).join("task");
            for thread in numbered(&tasks) {
                let folder = tasks.join(thread.to_string());
                let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
                let Some((name, last)) = name_and_core(&text("stat")) else {
                    continue;
                };
                let ran = text("schedstat");
                let ran = ran.split_whitespace().next().and_then(|ns| ns.parse().ok());
                if let Some(ran) = ran
                    && last == core
                {
                    threads.insert((process, thread), (name, ran));
                }
            }
        }
        Threads(threads)
    }

    /// Shares of the time between two samples, by name, largest first; below a thousandth is left out.
    pub(crate) fn shares(&self, after: &Threads, seconds: f64) -> Vec<(String, f64)> {
        let mut sums = BTreeMap::<&str, u64>::new();
        for (id, (name, ran)) in &after.0 {
            let before = self.0.get(id).map_or(0, |(_, ran)| *ran);
            // A thread that came from another core brought its earlier run time with it.
            if name != JOB
                && (before > 0 || !self.0.contains_key(id) && *ran as f64 <= seconds * 1e9)
            {
                *sums.entry(name).or_default() += ran.saturating_sub(before);
            }
        }
        let mut shares: Vec<(String, f64)> = sums
            .into_iter()
            .map(|(name, ns)| (name.to_owned(), ns as f64 * 1e-9 / seconds.max(1e-9)))
            .filter(|(_, share)| *share >= 0.001)
            .collect();
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
        let before = Threads::sample(&proc, 1);
        record(&proc, "7", "ksoftirqd/1", 1, 501_000_000);
        record(&proc, "8", "a (b) c", 1, 100_000_050);
        record(&proc, "9", JOB, 1, 900_000_000);
        record(&proc, "10", "elsewhere", 0, 900_000_000);
        // Came from another core with two seconds of earlier run time.
        record(&proc, "11", "moved", 1, 2_000_000_000);
        let shares = before.shares(&Threads::sample(&proc, 1), 1.0);
        fs::remove_dir_all(&proc).unwrap();
        assert_eq!(
            shares,
            [("ksoftirqd/1".to_owned(), 0.5), ("a (b) c".to_owned(), 0.1)]
        );
        assert!(
            Threads::sample(&proc, 1)
                .shares(&Threads::default(), 1.0)
                .is_empty()
        );
    }
}
