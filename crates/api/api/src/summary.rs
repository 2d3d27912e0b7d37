//! How full the router is: packet memory and forwarding tables
//! (`GET /v1/buffers`, `GET /v1/fib-summary`).
//!
//! What `show buffers` and `show ip fib summary` print, and what the metrics take their gauges
//! from: numbers that cost little however many routes there are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RouteSource;

/// All pools of packet memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Buffers {
    /// The pools.
    pub pools: Vec<BufferPool>,
}

/// One pool of packet memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BufferPool {
    /// Its number, from 0.
    pub pool: u32,
    /// Buffers that it has.
    pub buffers: u64,
    /// Buffers that nobody holds now; those in workers' caches count as free.
    pub free: u64,
    /// Bytes of one buffer.
    pub buffer_bytes: u32,
    /// Whether its memory is on hugepages.
    pub hugepages: bool,
    /// How often a buffer was wanted and there was none.
    pub failures: u64,
}

/// The size of the forwarding tables.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FibSummary {
    /// Each table of each family.
    pub tables: Vec<FibTable>,
    /// Next hops that routes share.
    pub adjacencies: u64,
    /// Sets of paths that routes share.
    pub groups: u64,
    /// Bytes of memory of all tables, next hops and groups.
    pub memory_bytes: u64,
}

/// One forwarding table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FibTable {
    /// The table (VRF); 0 = the default one.
    pub table: u32,
    /// The name of the VRF; the default table has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Which addresses it is for.
    pub family: Family,
    /// Routes in it, by where they come from; sources without routes are left out.
    pub routes: Vec<RouteCount>,
    /// Bytes of its memory.
    #[serde(default)]
    pub memory_bytes: u64,
}

/// How many routes come from one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteCount {
    /// The source.
    pub source: RouteSource,
    /// How many.
    pub count: u64,
}

/// A family of addresses.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// MPLS labels.
    Mpls,
}

impl Family {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Mpls => "mpls",
        }
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Mpls => "mpls",
        })
    }
}
