//! The sFlow sampler and agent, as `GET /v1/sflow` tells them.
//!
//! A sample's way: a worker *takes* it into its ring (or *drops* it when the ring is full), the
//! agent reads the ring and *sends* it in a datagram to every collector. Counters count since the
//! router started.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings and counters of sampler and agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sflow {
    /// What the configuration says.
    pub settings: SflowSettings,
    /// The address that the agent goes by, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<IpAddr>,
    /// Where datagrams go.
    pub collectors: Vec<SflowCollector>,
    /// The domain that announces more of them, if one is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<SflowDiscovery>,
    /// What goes through the kernel, too, if anything is to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<SflowKernel>,
    /// What each worker sampled.
    pub workers: Vec<SflowWorker>,
    /// The sampled interfaces.
    pub interfaces: Vec<SflowInterface>,
    /// Samples that the agent put into datagrams, each counted once however many collectors.
    pub samples_sent: u64,
    /// Samples and counter records in one datagram or more that could not be encoded or sent.
    pub samples_lost: u64,
    /// Samples sent without an output: what became of their packets was not known in time.
    pub samples_incomplete: u64,
    /// Packets that were dropped, by interface, node and reason.
    pub drops: Vec<SflowDrop>,
    /// Drop notifications that were sent.
    pub discards_sent: u64,
    /// Drops without a notification: beyond the limit, or without room. Exact.
    pub discards_dropped: u64,
    /// Datagrams that the agent made.
    pub datagrams: u64,
}

impl Sflow {
    /// Samples taken by all workers, those dropped after included.
    #[must_use]
    pub fn samples_taken(&self) -> u64 {
        self.workers
            .iter()
            .fold(0, |sum, worker| sum.saturating_add(worker.samples_taken))
    }

    /// Samples dropped by all workers because a ring was full.
    #[must_use]
    pub fn samples_dropped(&self) -> u64 {
        self.workers
            .iter()
            .fold(0, |sum, worker| sum.saturating_add(worker.samples_dropped))
    }
}

/// The settings of sampler and agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SflowSettings {
    /// One packet in this many is sampled; 0 = none.
    pub sampling_rate: u32,
    /// Seconds between two reports of an interface's counters; 0 = never.
    pub polling_interval: u32,
    /// Bytes of each sampled packet that are reported.
    pub header_bytes: u32,
    /// Which packets of a sampled interface are sampled.
    pub direction: SflowDirection,
    /// Maximum drop notifications per second; 0 = none.
    pub drop_limit: u32,
    /// The form of samples.
    pub encoding: SflowEncoding,
    /// The largest datagram that is sent, in bytes of UDP payload.
    pub datagram_bytes: u32,
    /// Tells several agents with one address apart.
    pub agent_sub_id: u32,
    /// Whether the Linux ifindex of a paired interface is reported instead of the router's number.
    pub os_index: bool,
    /// With that, what is added to the numbers of interfaces that are not paired.
    pub if_offset: u32,
}

/// Which packets of an interface are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SflowDirection {
    /// Those that come in.
    Rx,
    /// Those that go out.
    Tx,
    /// Both.
    Both,
}

impl std::fmt::Display for SflowDirection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Rx => "rx",
            Self::Tx => "tx",
            Self::Both => "both",
        })
    }
}

/// Which of the two forms of sFlow version 5 the agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SflowEncoding {
    /// Interfaces as 32-bit indices.
    Expanded,
    /// Interfaces below 2^24 only.
    Compact,
}

impl std::fmt::Display for SflowEncoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Expanded => "expanded",
            Self::Compact => "compact",
        })
    }
}

/// One collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SflowCollector {
    /// Its address or its name, as it is configured or announced.
    pub host: String,
    /// Its address; absent while its name is not looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Its UDP port.
    pub port: u16,
    /// The network namespace that it is reached from, if not the router's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The address that datagrams come from, if it is not the kernel's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// The class of the datagrams.
    pub dscp: u8,
    /// The Linux device that they leave by, if it is not the kernel's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    /// The router's table that routes them; absent = the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Whether they leave through the host, whatever the router's routes say.
    #[serde(default)]
    pub through_host: bool,
    /// Whether discarded packets are reported to it.
    pub drops: bool,
    /// Whether it is there because a domain announces it.
    pub announced: bool,
    /// Datagrams that the kernel took for it.
    pub sent: u64,
    /// Datagrams that the kernel refused, or that came back refused.
    pub errors: u64,
    /// The last refusal, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl SflowCollector {
    /// Where it is, in one word; with its namespace if it has one.
    #[must_use]
    pub fn place(&self) -> String {
        crate::flow::place(&self.host, self.port, self.namespace.as_deref())
    }
}

/// A domain that announces collectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SflowDiscovery {
    /// Which one; those that the machine's resolver searches when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Why nothing could be found out, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// What goes through the kernel, for hsflowd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SflowKernel {
    /// The group that samples of received packets carry.
    pub group: u32,
    /// The group that samples of sent packets carry.
    pub egress_group: u32,
    /// The network namespace of who listens, if not the router's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Packet samples that were sent.
    pub samples: u64,
    /// Alerts of dropped packets that were sent.
    pub drops: u64,
    /// Reports of counters and of the router's state that were sent.
    pub reports: u64,
    /// Messages that the kernel did not take.
    pub failed: u64,
    /// Why not everything goes, in sentences.
    pub lacking: Vec<String>,
}

/// Packets that were dropped for one reason by one node, of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SflowDrop {
    /// The interface that they came in by; absent for packets that the router made itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The node that dropped them.
    pub node: String,
    /// Why: the reason's name in the table of drop reasons.
    pub reason: String,
    /// The reason's number in sFlow's table.
    pub code: u32,
    /// The reason's name there.
    pub standard: String,
    /// How many were dropped since the router started.
    pub dropped: u64,
    /// How many of them were reported.
    pub reported: u64,
    /// The numbers by which they were reported, where that depends on addresses of the packet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reported_as: Vec<SflowReported>,
}

/// Dropped packets that were reported by one number of sFlow's table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SflowReported {
    /// The number.
    pub code: u32,
    /// Its name.
    pub standard: String,
    /// How many.
    pub reported: u64,
}

/// The samples of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SflowWorker {
    /// Its number, from 0.
    pub worker: u32,
    /// Samples that it took, those dropped after included.
    pub samples_taken: u64,
    /// Samples of it that the agent put into datagrams.
    pub samples_sent: u64,
    /// Samples that found its ring full.
    pub samples_dropped: u64,
}

/// One sampled interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SflowInterface {
    /// Its name.
    pub interface: String,
    /// Its ifIndex.
    pub index: u32,
    /// The number by which datagrams report it.
    pub reported_index: u32,
    /// One packet in this many is sampled; 0 = none.
    pub sampling_rate: u32,
    /// Which of its packets.
    pub direction: SflowDirection,
    /// Bytes of each sampled packet that are reported.
    pub header_bytes: u32,
    /// Seconds between two reports of its counters; 0 = never.
    pub polling_interval: u32,
    /// Packets that could have been sampled: the sample pool.
    pub pool: u64,
    /// Samples sent of them.
    pub samples: u64,
    /// Samples of them that found a worker's ring full.
    pub dropped: u64,
    /// All three by worker.
    pub workers: Vec<SflowShare>,
}

/// What one worker sampled on an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SflowShare {
    /// The worker's number, from 0.
    pub worker: u32,
    /// Packets that could have been sampled.
    pub pool: u64,
    /// Samples sent of them.
    pub samples: u64,
    /// Samples of them that found its ring full.
    pub dropped: u64,
}
