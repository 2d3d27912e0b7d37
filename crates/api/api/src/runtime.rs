//! What workers do: clocks per node, drops by reason, and the balance of packets
//! (`GET /v1/runtime`, `/v1/errors`, `/v1/totals`).
//!
//! Workers write these counters, the control side reads them while they run; a reply is not a
//! snapshot of one instant. Only after the workers stopped do the totals balance to the packet.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What each worker did since the last `POST /v1/clear/runtime`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Runtime {
    /// Millions of clocks a second.
    pub tsc_mhz: f64,
    /// Seconds since the counters were cleared, or the router started.
    pub seconds: f64,
    /// The workers.
    pub workers: Vec<WorkerRuntime>,
}

/// One worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerRuntime {
    /// Its number, from 0.
    pub worker: u32,
    /// The core that it is pinned to; absent when the kernel chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// What it does without packets.
    pub idle: IdleMode,
    /// Turns of its loop.
    pub turns: u64,
    /// Turns that had packets.
    pub busy_turns: u64,
    /// TSC clocks of all turns; the rows of `nodes` add up to them.
    #[serde(default)]
    pub clocks: u64,
    /// TSC clocks of the turns that had packets.
    #[serde(default)]
    pub busy_clocks: u64,
    /// The share of time that it spent in turns with packets, from 0 to 1.
    #[serde(default)]
    pub busy: f64,
    /// Where the clocks went: receive queues (`DRIVER-rx INTERFACE qN`), nodes, transmit queues (`DRIVER-tx INTERFACE qN`), and
    /// `loop`, which is everything else. What was never called is left out.
    pub nodes: Vec<NodeRuntime>,
}

/// What a worker does without packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdleMode {
    /// Looks again at once.
    Poll,
    /// Looks again at once while packets come fast, else waits for the kernel to wake it.
    Adaptive,
    /// Waits for the kernel to wake it.
    Sleep,
}

impl std::fmt::Display for IdleMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Poll => "poll",
            Self::Adaptive => "adaptive",
            Self::Sleep => "sleep",
        })
    }
}

/// One node on one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRuntime {
    /// The node's name.
    pub name: String,
    /// Vectors that it was handed; of a queue, calls that moved packets.
    pub calls: u64,
    /// Of a queue: calls that moved no packet.
    #[serde(default)]
    pub empty_calls: u64,
    /// Packets in them.
    pub packets: u64,
    /// TSC clocks that it took, all in all.
    pub clocks: u64,
    /// `clocks` / `packets`; 0 without packets.
    pub clocks_per_packet: f64,
    /// `packets` / `calls`; 0 without calls.
    pub packets_per_call: f64,
}

impl NodeRuntime {
    /// A node's counters with their ratios.
    #[must_use]
    pub fn new(name: impl Into<String>, calls: u64, packets: u64, clocks: u64) -> Self {
        let clocks_per_packet = ratio(clocks, packets);
        let packets_per_call = ratio(packets, calls);
        Self {
            name: name.into(),
            calls,
            empty_calls: 0,
            packets,
            clocks,
            clocks_per_packet,
            packets_per_call,
        }
    }
}

fn ratio(above: u64, below: u64) -> f64 {
    if below == 0 {
        0.0
    } else {
        above as f64 / below as f64
    }
}

/// Drops since the last `POST /v1/clear/errors`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Errors {
    /// Every counter that is not 0. Summed over the workers, unless `?by_worker=true` was asked.
    pub errors: Vec<DropCounter>,
}

/// How many packets were dropped at one place for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropCounter {
    /// The worker that counted; absent in a sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// The node that dropped them.
    pub node: String,
    /// Why: the reason's name in the table of drop reasons.
    pub reason: String,
    /// How bad that is.
    pub severity: Severity,
    /// The reason as a sentence.
    pub sentence: String,
    /// The interface they came in by; absent for packets that the router made itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// How many.
    pub count: u64,
}

/// How bad a drop is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// As it should be: what the configuration or the protocol asks for.
    Info,
    /// Somebody sends what is wrong, or something is missing.
    Warning,
    /// The router lost a packet that it should have forwarded.
    Error,
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// The balance of packets since the router started; no `clear` reaches it.
///
/// After the workers stopped, `packets_in + originated + replicated` equals
/// `packets_out + consumed + held` plus all `drops`, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Packets received on all ports.
    pub packets_in: u64,
    /// Packets handed to all ports.
    pub packets_out: u64,
    /// Packets that nodes made: ARP, ICMP errors, fragments.
    pub originated: u64,
    /// Copies made for flooding, beyond the first.
    pub replicated: u64,
    /// Packets that ended in the router as they should: answered, learned from, punted.
    pub consumed: u64,
    /// Packets that wait now, for example for an ARP answer.
    pub held: u64,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
}

impl Totals {
    /// All drops.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.drops
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// What came in minus what is accounted for: 0 after the workers stopped, the packets under
    /// way before.
    #[must_use]
    pub fn unaccounted(&self) -> i128 {
        let come = [self.packets_in, self.originated, self.replicated];
        let gone = [self.packets_out, self.consumed, self.held];
        let sum = |terms: [u64; 3]| terms.into_iter().map(i128::from).sum::<i128>();
        let dropped: i128 = self.drops.values().map(|count| i128::from(*count)).sum();
        sum(come) - sum(gone) - dropped
    }
}
