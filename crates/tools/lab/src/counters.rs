//! The counters of a device under test, read before and after each trial.
//!
//! Linux's are files below a root folder, so that tests read recorded ones. Weir's are read by the
//! program, which speaks its API.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names and values at one moment.
pub type Counters = BTreeMap<String, u64>;

/// A device whose counters can be read.
pub trait CounterSource {
    /// The counters now; the error is a sentence.
    ///
    /// # Errors
    /// When the device does not answer.
    fn read(&mut self) -> Result<Counters, String>;
}

/// What grew between two moments.
#[must_use]
pub fn growth(before: &Counters, after: &Counters) -> Counters {
    after
        .iter()
        .filter_map(|(name, value)| {
            let grown = value.saturating_sub(before.get(name).copied().unwrap_or(0));
            (grown > 0).then(|| (name.clone(), grown))
        })
        .collect()
}

/// Linux, by `/proc/net/dev`, `/proc/net/softnet_stat` and `/proc/stat`.
#[derive(Clone, Debug)]
pub struct Linux {
    root: PathBuf,
    devices: Vec<String>,
    net: &'static str,
}

impl Linux {
    /// The counters of these devices, or of all when the list is empty.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, devices: Vec<String>) -> Linux {
        Linux {
            root: root.into(),
            devices,
            net: "proc/net",
        }
    }
}

impl Linux {
    /// Reads the network namespace of the calling thread instead of the process's.
    #[must_use]
    pub fn own_thread(mut self) -> Linux {
        self.net = "proc/thread-self/net";
        self
    }
}

impl CounterSource for Linux {
    fn read(&mut self) -> Result<Counters, String> {
        let text = |path: &str| {
            let path = self.root.join(Path::new(path));
            std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let mut counters = devices(&text(&format!("{}/dev", self.net))?, &self.devices);
        counters.append(&mut softnet(
            &text(&format!("{}/softnet_stat", self.net)).unwrap_or_default(),
        ));
        counters.append(&mut cpu(&text("proc/stat").unwrap_or_default()));
        Ok(counters)
    }
}

fn devices(text: &str, wanted: &[String]) -> Counters {
    // The columns of /proc/net/dev: 8 of receiving, 8 of sending.
    const NAMES: [&str; 12] = [
        "rx_bytes",
        "rx_packets",
        "rx_errors",
        "rx_dropped",
        "rx_fifo",
        "rx_frame",
        "",
        "",
        "tx_bytes",
        "tx_packets",
        "tx_errors",
        "tx_dropped",
    ];
    let mut counters = Counters::new();
    for line in text.lines() {
        let Some((name, values)) = line.split_once(':') else {
            continue;
        };
        let name = name.trim();
        if !wanted.is_empty() && !wanted.iter().any(|device| device == name) {
            continue;
        }
        for (column, value) in NAMES.iter().zip(values.split_whitespace()) {
            if let (false, Ok(value)) = (column.is_empty(), value.parse()) {
                counters.insert(format!("linux/{name}/{column}"), value);
            }
        }
    }
    counters
}

fn softnet(text: &str) -> Counters {
    let mut counters = Counters::new();
    for line in text.lines() {
        let columns = line
            .split_whitespace()
            .map(|word| u64::from_str_radix(word, 16).unwrap_or(0));
        for (name, value) in ["processed", "dropped", "time_squeeze"].iter().zip(columns) {
            *counters.entry(format!("linux/softnet/{name}")).or_default() += value;
        }
    }
    counters
}

/// Ticks of all cores, as milliseconds at 100 ticks a second.
fn cpu(text: &str) -> Counters {
    const NAMES: [&str; 8] = [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ];
    let row = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1);
    NAMES
        .iter()
        .zip(row)
        .filter_map(|(name, value)| {
            Some((
                format!("linux/cpu_ms/{name}"),
                value.parse::<u64>().ok()? * 10,
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_counters_are_read() {
        let dev = "Inter-|   Receive |\n face |bytes\n  lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\neth0: 10 20 0 3 0 0 0 0 40 50 0 6 0 0 0 0\n";
        let counters = devices(dev, &["eth0".to_owned()]);
        assert_eq!(counters.get("linux/eth0/rx_dropped"), Some(&3));
        assert_eq!(counters.get("linux/eth0/tx_dropped"), Some(&6));
        assert_eq!(counters.get("linux/lo/rx_bytes"), None);
        let counters = softnet("0000000a 00000001 00000002 0\n00000001 00000000 00000000 0\n");
        assert_eq!(counters.get("linux/softnet/processed"), Some(&11));
        let before = Counters::from([("a".to_owned(), 1), ("b".to_owned(), 5)]);
        let after = Counters::from([
            ("a".to_owned(), 4),
            ("b".to_owned(), 5),
            ("c".to_owned(), 1),
        ]);
        assert_eq!(
            growth(&before, &after),
            Counters::from([("a".to_owned(), 3), ("c".to_owned(), 1)])
        );
    }
}
