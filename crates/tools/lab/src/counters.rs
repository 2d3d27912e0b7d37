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

/// Linux, by `/proc/net/dev`, `/proc/net/softnet_stat`, `/proc/stat` and the drivers' own statistics
/// of losses (`ethtool -S`).
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
        // Recorded files have no drivers.
        if self.root == Path::new("/") {
            counters.append(&mut drivers(&counters));
        }
        Ok(counters)
    }
}

/// VPP, by `vppctl show errors` and `vppctl show runtime` at its CLI socket.
#[derive(Clone, Debug)]
pub struct Vpp {
    program: String,
    socket: String,
}

impl Vpp {
    /// The counters of the VPP whose CLI socket is this (`/run/vpp/cli.sock`).
    #[must_use]
    pub fn new(socket: &str) -> Vpp {
        Vpp::by("vppctl", socket)
    }

    /// The same by another program than `vppctl`.
    #[must_use]
    pub fn by(program: &str, socket: &str) -> Vpp {
        Vpp {
            program: program.to_owned(),
            socket: socket.to_owned(),
        }
    }

    fn show(&self, what: &str) -> Result<String, String> {
        let done = std::process::Command::new(&self.program)
            .args(["-s", &self.socket, "show", what])
            .output()
            .map_err(|error| format!("{}: {error}", self.program))?;
        if done.status.success() {
            Ok(String::from_utf8_lossy(&done.stdout).into_owned())
        } else {
            Err(format!(
                "{} show {what}: {}",
                self.program,
                String::from_utf8_lossy(&done.stderr).trim()
            ))
        }
    }
}

impl CounterSource for Vpp {
    fn read(&mut self) -> Result<Counters, String> {
        let mut counters = vpp_errors(&self.show("errors")?);
        counters.append(&mut vpp_runtime(&self.show("runtime")?));
        Ok(counters)
    }
}

/// Lines of a count, a node, a reason and, in newer versions, a severity. Reasons of severity `info`
/// are no drops.
fn vpp_errors(text: &str) -> Counters {
    let mut counters = Counters::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(Ok(count)) = words.next().map(str::parse::<u64>) else {
            continue;
        };
        let Some(node) = words.next() else { continue };
        let mut reason: Vec<&str> = words.collect();
        let severity = match reason.last() {
            Some(&("error" | "warn" | "info")) => reason.pop(),
            _ => None,
        };
        let kind = if severity == Some("info") {
            "packets"
        } else {
            "drop"
        };
        let name = format!("vpp/{kind}/{node}/{}", reason.join(" "));
        *counters.entry(name).or_default() += count;
    }
    counters
}

/// Lines of node, state, calls, vectors, suspends, clocks and vectors per call; clocks are per vector
/// element, that is, per packet.
fn vpp_runtime(text: &str) -> Counters {
    let mut counters = Counters::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // The state may have several words; the last five columns are numbers.
        let Some((node, numbers)) = words
            .split_first()
            .zip(words.len().checked_sub(5))
            .map(|((node, _), at)| (*node, words.get(at..).unwrap_or(&[])))
        else {
            continue;
        };
        let number = |at: usize| numbers.get(at)?.parse::<f64>().ok();
        let (Some(calls), Some(packets), Some(_), Some(clocks), Some(_)) =
            (number(0), number(1), number(2), number(3), number(4))
        else {
            continue;
        };
        let mut add = |kind: &str, value: f64| {
            *counters.entry(format!("vpp/{kind}/{node}")).or_default() += value as u64;
        };
        if packets > 0.0 {
            add("vectors", calls);
            add("packets", packets);
            add("clocks", clocks * packets);
        }
    }
    counters
}

/// What the drivers of these devices count as lost; other statistics say nothing about a trial.
fn drivers(known: &Counters) -> Counters {
    let Ok(ethtool) = weir_netlink::ethtool::Ethtool::open() else {
        return Counters::new();
    };
    let names = known
        .keys()
        .filter_map(|name| name.strip_prefix("linux/")?.strip_suffix("/rx_packets"));
    let mut counters = Counters::new();
    for device in names {
        for (name, value) in ethtool.statistics(device).unwrap_or_default() {
            if is_loss(&name) {
                counters.insert(format!("linux/{device}/driver {name}"), value);
            }
        }
    }
    counters
}

/// Whether a driver's statistic counts losses, by its name.
pub(crate) fn is_loss(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "drop",
        "miss",
        "err",
        "discard",
        "no_buf",
        "nobuf",
        "fifo",
        "overrun",
        "ring_full",
        "xdp_redirect_err",
    ]
    .iter()
    .any(|word| name.contains(word))
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

    /// Columns as VPP 23.10 prints them.
    #[test]
    fn counters_of_vpp_are_read() {
        let errors = "   Count                  Node                              Reason               Severity \n       128             ip4-input                 ip4 ttl <= 1                    error   \n        12          ip4-icmp-input               echo replies sent                info   \n         5             dpdk-input                no buffers\n";
        let counters = vpp_errors(errors);
        assert_eq!(counters.get("vpp/drop/ip4-input/ip4 ttl <= 1"), Some(&128));
        assert_eq!(
            counters.get("vpp/packets/ip4-icmp-input/echo replies sent"),
            Some(&12)
        );
        assert_eq!(counters.get("vpp/drop/dpdk-input/no buffers"), Some(&5));
        let runtime = "Thread 1 vpp_wk_0 (lcore 1)\nTime 10.0, 10 sec internal node vector rate 255.99 loops/sec 1.5\n  vector rates in 1.0e6, out 1.0e6, drop 0.0e0, punt 0.0e0\n             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call\nip4-lookup                       active             1000          256000               0          2.50e1          256.00\nunix-epoll-input                 polling              40               0               0          9.00e3            0.00\nacl-plugin-process         event wait                0               0               1          3.00e4            0.00\n";
        let counters = vpp_runtime(runtime);
        assert_eq!(
            counters,
            Counters::from([
                ("vpp/vectors/ip4-lookup".to_owned(), 1000),
                ("vpp/packets/ip4-lookup".to_owned(), 256_000),
                ("vpp/clocks/ip4-lookup".to_owned(), 6_400_000)
            ])
        );
    }

    #[test]
    fn losses_of_drivers_are_known_by_name() {
        for name in [
            "rx_queue_0_drops",
            "rx_missed_errors",
            "port.rx_discards",
            "rx_no_buffer_count",
            "rx0_xdp_drop",
        ] {
            assert!(is_loss(name), "{name}");
        }
        for name in ["rx_packets", "tx_queue_0_bytes", "rx_csum_offload_good"] {
            assert!(!is_loss(name), "{name}");
        }
    }

    /// Through a program that answers as `vppctl` does; one that fails is an error.
    #[test]
    fn vppctl_is_run() {
        let mut absent = Vpp::by("/no/such/vppctl", "/run/x");
        assert!(absent.read().unwrap_err().contains("/no/such/vppctl"));
        let mut failing = Vpp::by("false", "/run/x");
        assert!(failing.read().unwrap_err().contains("show errors"));
        // `echo -s SOCKET show errors` prints its arguments, which are no counters.
        assert_eq!(Vpp::by("echo", "/run/x").read(), Ok(Counters::new()));
    }

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
