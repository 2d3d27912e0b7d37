//! The results of a lab session as one value, and as one HTML page without network access.
//!
//! The value is what `--json` prints and what a page is made from, so that a page can be made again
//! and sessions can be compared. Graphs are SVG inside of the page (`svg`); no scripts, no fonts, no
//! pictures from elsewhere.

mod compare;
mod html;
mod svg;

use serde::{Deserialize, Serialize};

use crate::cpu::CoreCost;
use crate::mlr::Search;
use crate::result::{Latency, RunResult};

pub use compare::{Comparison, compare};
pub use html::page;

/// One session, or several put together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What was tested, for the heading.
    pub title: String,
    /// Where it ran.
    pub environment: Vec<(String, String)>,
    /// The results.
    pub tests: Vec<Test>,
}

/// What a device takes from its core at one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuPoint {
    /// Packets per second that were sent.
    pub sent: f64,
    /// Packets per second that came through.
    pub forwarded: f64,
    /// The core, without load subtracted.
    pub cost: CoreCost,
    /// The share of the core that the load takes: what was taken less what is taken without load.
    pub taken: f64,
    /// Nanoseconds of the core for each packet that came through; absent without packets.
    pub ns_per_packet: Option<f64>,
    /// The share taken from `openssl speed`, when it was asked for.
    #[serde(default)]
    pub openssl: Option<f64>,
    /// Joules of all processor packages meanwhile, where the machine says it.
    #[serde(default)]
    pub joules: Option<f64>,
    /// The symbols that ran most on the core, by perf, when it was asked for: name and share.
    #[serde(default)]
    pub symbols: Vec<(String, f64)>,
}

/// One device with one traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// The device under test.
    pub device: String,
    /// The traffic: `64`, `imix`.
    pub traffic: String,
    /// Frame size with FCS, on average.
    pub frame: f64,
    /// The search for its rate.
    pub search: Option<Search>,
    /// No-drop rates of repeated searches.
    #[serde(default)]
    pub repeats: Vec<f64>,
    /// Latency by load, as a share of the rate found.
    #[serde(default)]
    pub latency: Vec<(f64, Latency)>,
    /// One run without a search.
    #[serde(default)]
    pub run: Option<RunResult>,
    /// What the device takes from a core, by load.
    #[serde(default)]
    pub cpu: Vec<CpuPoint>,
    /// Other figures: name, value, unit.
    #[serde(default)]
    pub figures: Vec<(String, f64, String)>,
}

impl Test {
    /// The rate that met the first goal.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.search.as_ref()?.found.first()?.lower
    }

    /// Adds what a packet costs, by the device's counters in the highest trial without loss: Weir's
    /// clocks and vectors, the kernel's softirq time.
    pub fn costs(&mut self) {
        let best = self
            .search
            .iter()
            .flat_map(|search| &search.trials)
            .filter(|trial| trial.lost == 0 && trial.sent > 0 && trial.spoilt.is_none())
            .max_by(|a, b| a.load.total_cmp(&b.load));
        let Some(trial) = best else { return };
        let get = |name: &str| trial.device.get(name).copied().unwrap_or(0) as f64;
        let sent = trial.sent as f64;
        let mut figures = vec![(
            "load of the figures below".to_owned(),
            trial.load,
            "packets/s".to_owned(),
        )];
        let mut add = |name: &str, value: f64, unit: &str| {
            if value > 0.0 {
                figures.push((name.to_owned(), value, unit.to_owned()));
            }
        };
        add(
            "Weir, turns with packets",
            get("weir/clocks-busy/all") / sent,
            "clocks/packet",
        );
        let mut nodes: Vec<(&str, f64)> = trial
            .device
            .iter()
            .filter_map(|(name, clocks)| {
                let node = name.strip_prefix("weir/clocks/")?;
                (node != "loop").then_some((node, *clocks as f64 / sent))
            })
            .collect();
        nodes.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (node, clocks) in nodes.into_iter().take(6) {
            add(node, clocks, "clocks/packet");
            let (packets, vectors) = (
                get(&format!("weir/packets/{node}")),
                get(&format!("weir/vectors/{node}")),
            );
            if vectors > 0.0 {
                add(node, packets / vectors, "packets/vector");
            }
        }
        add(
            "softirqs of all cores, by ticks",
            get("linux/cpu_ms/softirq") * 1e6 / sent,
            "ns/packet",
        );
        if figures.len() > 1 {
            self.figures.append(&mut figures);
        }
    }

    /// What the device's counters say about lost packets, summed over all trials that lost packets.
    #[must_use]
    pub fn drops(&self) -> Vec<(String, u64)> {
        let mut sums = std::collections::BTreeMap::<String, u64>::new();
        let trials = self
            .search
            .iter()
            .flat_map(|search| &search.trials)
            .filter(|trial| trial.lost > 0);
        for (name, count) in trials.flat_map(|trial| &trial.device) {
            if counts_loss(name) {
                *sums.entry(name.clone()).or_default() += count;
            }
        }
        let mut list: Vec<_> = sums.into_iter().collect();
        list.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        list
    }
}

/// Whether a counter counts lost packets: Weir's drop reasons (`weir/drop/no-route`), and Linux's counters whose last part
/// speaks of drops, misses or errors (`linux/eth0/rx_missed`). Clocks and packets of Weir's nodes are no losses,
/// whatever the node's name is.
fn counts_loss(name: &str) -> bool {
    let mut parts = name.split('/').skip(1);
    match parts.next() {
        Some("drop") => true,
        Some("clocks" | "clocks-busy" | "packets" | "vectors" | "cpu_ms") => false,
        _ => parts.last().is_some_and(crate::counters::is_loss),
    }
}

/// What the machine is: processor, cores, kernel, frequency governor, load.
#[must_use]
pub fn environment() -> Vec<(String, String)> {
    let text = |path: &str| {
        std::fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let mut list = vec![
        ("processor".to_owned(), weir_cpu::model_name()),
        (
            "cores".to_owned(),
            weir_cpu::allowed_cores().len().to_string(),
        ),
        ("kernel".to_owned(), text("/proc/sys/kernel/osrelease")),
        ("load".to_owned(), text("/proc/loadavg")),
        (
            "clock source".to_owned(),
            text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        ("weir".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let governor = text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if !governor.is_empty() {
        list.push(("governor".to_owned(), governor));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::counts_loss;

    #[test]
    fn drop_reasons_are_losses_and_clocks_of_nodes_are_not() {
        for name in [
            "weir/drop/no-route",
            "linux/port-a/rx_drop",
            "linux/softnet/dropped",
            "linux/eth0/rx_fifo",
        ] {
            assert!(counts_loss(name), "{name}");
        }
        for name in [
            "weir/clocks/drop",
            "weir/packets/icmp-error",
            "linux/drop0/rx_packets",
            "linux/cpu_ms/softirq",
            "drop",
        ] {
            assert!(!counts_loss(name), "{name}");
        }
    }
}
