//! What a run found, as a value that becomes JSON.

use serde::{Deserialize, Serialize};

pub use crate::sequence::Latency;

/// One stream's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamResult {
    /// The stream's name.
    pub name: String,
    /// Packets sent.
    pub sent: u64,
    /// Packets that were due and could not be sent in time.
    pub unsent: u64,
    /// Packets received, duplicates not counted.
    pub received: u64,
    /// Packets sent and not received.
    pub lost: u64,
    /// Packets received more than once.
    pub duplicated: u64,
    /// Packets received after one with a higher number.
    pub reordered: u64,
    /// Packets so late that they cannot be distinguished from duplicates.
    pub late: u64,
    /// Packets sent per second.
    pub sent_pps: f64,
    /// Packets received per second of sending.
    pub received_pps: f64,
    /// Latency, when packets with stamps were received.
    pub latency: Option<Latency>,
}

/// One port's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortResult {
    /// Device, driver and mode.
    pub name: String,
    /// Frames sent.
    pub sent: u64,
    /// Bytes sent, without FCS.
    pub sent_bytes: u64,
    /// Frames received.
    pub received: u64,
    /// Bytes received, without FCS.
    pub received_bytes: u64,
    /// Frames received that have no stamp of this run.
    pub foreign: u64,
    /// ARP and neighbor discovery replies sent.
    pub answered: u64,
}

/// How well the schedule was kept: how long after its time each packet was handed to the port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pacing {
    /// Packets within 2 µs, as a share from 0 to 1.
    pub within_2us: f64,
    /// Median delay.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Longest.
    pub max_us: f64,
}

/// What disturbed the generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Share of the time in which the generator's thread waited for a core.
    pub run_delay: f64,
    /// Share of the machine's time that the hypervisor took.
    pub steal: f64,
}

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Seconds from the first packet to the end of sending.
    pub seconds: f64,
    /// Packets sent, all streams.
    pub sent: u64,
    /// Packets received, all streams with stamps.
    pub received: u64,
    /// Packets lost, all streams with stamps.
    pub lost: u64,
    /// Packets sent per second, all streams.
    pub sent_pps: f64,
    /// Bits per second of layer 1.
    pub sent_bps_l1: f64,
    /// Clocks of the time stamp counter that writing a packet takes.
    pub clocks_per_packet: f64,
    /// How well the schedule was kept; none for streams without a rate.
    pub pacing: Option<Pacing>,
    /// What disturbed the generator.
    pub noise: Noise,
    /// By stream.
    pub streams: Vec<StreamResult>,
    /// By port.
    pub ports: Vec<PortResult>,
}

impl RunResult {
    /// Lost packets as a share of those sent.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        if self.sent == 0 {
            0.0
        } else {
            self.lost as f64 / self.sent as f64
        }
    }
}
