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
    /// Discarded packets that were told.
    pub discards_sent: u64,
    /// Discarded packets that were not told: beyond the limit, or without room. Exact.
    pub discards_dropped: u64,
    /// Datagrams that the agent made.
    pub datagrams: u64,
}

impl Sflow {
    /// Samples taken by all workers, those dropped after included.
    #[must_use]
    pub fn samples_taken(&self) -> u64 {
        self.workers.iter().fold(0, |sum, worker| sum.saturating_add(worker.samples_taken))
    }

    /// Samples dropped by all workers because a ring was full.
    #[must_use]
    pub fn samples_dropped(&self) -> u64 {
        self.workers.iter().fold(0, |sum, worker| sum.saturating_add(worker.samples_dropped))
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
    /// Discarded packets that are told a second at most; 0 = none.
    pub drop_limit: u32,
    /// The form of samples.
    pub encoding: SflowEncoding,
    /// The largest datagram that is sent, in bytes of UDP payload.
    pub datagram_bytes: u32,
    /// Tells several agents with one address apart.
    pub agent_sub_id: u32,
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
    /// Its address.
    pub address: IpAddr,
    /// Its UDP port.
    pub port: u16,
    /// Datagrams that the kernel took for it.
    pub sent: u64,
    /// Datagrams that the kernel refused, or that came back refused.
    pub errors: u64,
    /// The last refusal, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
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
    /// One packet in this many is sampled; 0 = none.
    pub sampling_rate: u32,
    /// Which of its packets.
    pub direction: SflowDirection,
    /// Packets that could have been sampled: the sample pool.
    pub pool: u64,
    /// Samples taken of them.
    pub samples: u64,
}
