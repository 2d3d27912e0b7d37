//! The report's shape: stable names, one entry a case and sampling rate.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::case::Limit;
use crate::failover::Failover;
use crate::generated::Generated;
use crate::load::FibLoad;
use crate::metered::{Exported, Metered};

/// Where it was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's own name.
    pub cpu: String,
    /// Millions of time stamp counter ticks a second.
    pub tsc_mhz: f64,
    /// Cores that the process may use.
    pub cores: usize,
    /// Whether packet memory lay on hugepages.
    pub hugepages: bool,
    /// The compiler.
    pub rustc: String,
    /// The commit, when known.
    pub commit: String,
    /// The instruction set level that the nodes ran with.
    pub code_path: &'static str,
}

/// One case at one sampling rate.
#[derive(Clone, Debug, Serialize)]
pub struct CaseResult {
    /// The case.
    pub name: &'static str,
    /// "off" or one in how many packets.
    pub sflow: String,
    /// Clocks of the whole dataplane a packet, without the generator's input: the lower quartile of slices. On a machine whose cores are
    /// shared there are slices of two speeds, and the median is of the one that was more frequent, whatever the code costs.
    pub clocks_per_packet: f64,
    /// Their median.
    pub clocks_median: f64,
    /// Their upper quartile.
    pub clocks_high: f64,
    /// Millions of packets a second that this makes on one core.
    pub mpps: f64,
    /// Clocks a packet by node.
    pub nodes: BTreeMap<&'static str, f64>,
    #[serde(skip)]
    pub(crate) limit: Limit,
    /// The most that was asked for, where sFlow is off and it is known (some are relative to other cases of the same run).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// What sFlow adds: the median of the differences to off, round by round, of the quarter of rounds whose neighbours were quickest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<f64>,
    /// The median of all rounds, those included in which others had the core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_in_all: Option<f64>,
    /// Lower quartile of the differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_low: Option<f64>,
    /// Upper quartile of the differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_high: Option<f64>,
    /// The truth is no further from `added` than this, nineteen times of twenty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_error: Option<f64>,
    /// The most that sFlow may add, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_at_most: Option<f64>,
    /// The control: the same differences of off to off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null: Option<f64>,
    /// As `added_error`, of `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_error: Option<f64>,
    /// Slices in which the core was taken away, and which were played again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<u64>,
    /// Samples that the reader got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Samples that were lost because the reader did not keep up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_lost: Option<u64>,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where it was measured.
    pub machine: Machine,
    /// What was measured.
    pub cases: Vec<Found>,
}

/// What was found, of whichever kind a case is.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Found {
    /// Frames through the packet path.
    Packets(CaseResult),
    /// A full table.
    Load(FibLoad),
    /// A link that goes down.
    Failover(Failover),
    /// The flow meter.
    Metered(Metered),
    /// The exporter of flows.
    Exported(Exported),
    /// The traffic generator.
    Generated(Generated),
}

impl Report {
    /// Everything that was found in one run; limits that refer to other cases are worked out here.
    #[must_use]
    pub fn new(machine: Machine, mut cases: Vec<Found>) -> Report {
        fn packets(found: &mut Found) -> Option<&mut CaseResult> {
            if let Found::Packets(case) = found {
                Some(case)
            } else {
                None
            }
        }
        let mut off: Vec<&mut CaseResult> = cases
            .iter_mut()
            .filter_map(packets)
            .filter(|case| case.sflow == "off")
            .collect();
        let clocks: BTreeMap<&str, f64> = off
            .iter()
            .map(|case| (case.name, case.clocks_per_packet))
            .collect();
        for case in &mut off {
            case.at_most = case
                .limit
                .clocks(|name| clocks.get(name).copied())
                .map(|clocks| (clocks * 100.0).round() / 100.0);
        }
        Report { machine, cases }
    }
}
