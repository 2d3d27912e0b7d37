//! MLRsearch: the highest rates at which a device loses no more than a given share of packets.
//!
//! The method of draft-ietf-bmwg-mlrsearch: several goals at once; each load is classified for each
//! goal from all trials made at it; short trials find the neighbourhood, full-length trials decide.
//! [`classify`] is the draft's rule, [`search`] chooses the loads. Both are free of clocks, so that
//! tests run in simulated time.

mod classify;
mod search;

use serde::{Deserialize, Serialize};

pub use classify::{Class, classify};
pub use search::{SearchError, search};

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Its name: NDR, PDR.
    pub name: String,
    /// The share of packets that may be lost.
    pub loss_ratio: f64,
    /// The share of trials (by duration) that may lose more.
    pub exceed_ratio: f64,
    /// Seconds of a full-length trial.
    pub final_duration: f64,
    /// Seconds of full-length trials that a load needs to be decided.
    pub duration_sum: f64,
    /// Seconds of the first, short trials.
    pub initial_duration: f64,
    /// The search ends when the bounds are this near, as a share of the upper one.
    pub width: f64,
}

impl Goal {
    /// No loss at all, one trial of `duration` seconds decides: RFC 2544 with MLRsearch's loads.
    #[must_use]
    pub fn no_drop(duration: f64) -> Goal {
        Goal {
            name: "NDR".into(),
            loss_ratio: 0.0,
            exceed_ratio: 0.0,
            final_duration: duration,
            duration_sum: duration,
            initial_duration: duration / 4.0,
            width: 0.005,
        }
    }

    /// At most this share of packets lost.
    #[must_use]
    pub fn partial_drop(loss_ratio: f64, duration: f64) -> Goal {
        Goal {
            name: "PDR".into(),
            loss_ratio,
            ..Goal::no_drop(duration)
        }
    }
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The load, in packets per second.
    pub load: f64,
    /// Seconds for which packets were sent.
    pub duration: f64,
    /// Packets that should have been sent.
    pub offered: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets lost; those that were not sent are among them.
    pub lost: u64,
    /// Why the trial does not count; it was repeated.
    pub spoilt: Option<String>,
    /// The device's own counters: how much each grew during the trial.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub device: std::collections::BTreeMap<String, u64>,
    /// Median latency in microseconds.
    #[serde(default)]
    pub p50_us: Option<f64>,
    /// 99th percentile of latency.
    #[serde(default)]
    pub p99_us: Option<f64>,
}

impl Trial {
    /// The share of packets lost.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        if self.offered == 0 {
            1.0
        } else {
            self.lost as f64 / self.offered as f64
        }
    }

    /// Packets forwarded per second.
    #[must_use]
    pub fn forwarded(&self) -> f64 {
        (self.offered.saturating_sub(self.lost)) as f64 / self.duration.max(1e-9)
    }
}

/// Makes trials.
pub trait Measurer {
    /// Sends `load` packets per second for `duration` seconds.
    ///
    /// # Errors
    /// When the device cannot be measured any more.
    fn measure(&mut self, load: f64, duration: f64) -> Result<Trial, crate::LabError>;
}

/// What was found for a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The goal.
    pub goal: Goal,
    /// The highest load that met the goal with no lower one that failed it; `None`: not even the lowest did.
    pub lower: Option<f64>,
    /// The lowest load that failed the goal; `None`: not even the highest did.
    pub upper: Option<f64>,
    /// What the device forwards at the lower bound.
    pub conditional_throughput: Option<f64>,
}

/// A whole search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// By goal.
    pub found: Vec<Found>,
    /// All trials in the order in which they were made, spoilt ones included.
    pub trials: Vec<Trial>,
}

/// Where to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The lowest load.
    pub min_load: f64,
    /// The highest load.
    pub max_load: f64,
    /// Trials in all, spoilt ones included.
    pub most_trials: usize,
    /// How often in a row a spoilt trial is repeated.
    pub most_repeats: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            min_load: 1000.0,
            max_load: 1e7,
            most_trials: 200,
            most_repeats: 5,
        }
    }
}
