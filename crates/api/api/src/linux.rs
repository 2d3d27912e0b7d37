//! Linux as the control plane: `GET /v1/linux`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The TAPs of interfaces, and what is read from the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Linux {
    /// The network namespace; the router's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Interfaces that Linux has a TAP of, by name.
    pub interfaces: Vec<LinuxInterface>,
    /// How the kernel's routes are read; absent while they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed: Option<LinuxFeed>,
    /// How FRR's zebra sends its routes; absent when the configuration has no `linux.fpm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fpm: Option<LinuxFpm>,
    /// What BGP daemons tell by BMP; absent when the configuration has no `linux.bmp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmp: Option<LinuxBmp>,
    /// How the routes here compare with the kernel's.
    pub audit: LinuxAudit,
    /// How long changes of routes took, by source.
    pub convergence: Vec<LinuxConvergence>,
    /// The last updates that were refused, the newest last.
    pub refused: Vec<LinuxRefused>,
}

/// An interface that Linux has a TAP of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinuxInterface {
    /// The interface.
    pub interface: String,
    /// The name of the TAP.
    pub name: String,
    /// The index that Linux gave the TAP; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// What went wrong last, if it still does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The table that it is in because its TAP is in a VRF device of Linux; absent where the configuration says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed_table: Option<u32>,
    /// Addresses that were added in Linux and are in use here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followed_addresses: Vec<String>,
    /// Packets for services of Linux by class.
    pub punt: Vec<LinuxPunt>,
}

/// Packets of one class for services of Linux.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinuxPunt {
    /// `bfd`, `bgp`, `routing`, `neighbor`, `icmp` or `other`.
    pub punt_class: String,
    /// Packets a second that each worker passes, at most.
    pub limit: u32,
    /// Packets that went to the TAP.
    pub passed: u64,
    /// Packets that were over the limit, and dropped.
    pub policed: u64,
}

/// How the kernel's routes are read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LinuxFeed {
    /// Messages of the kernel.
    pub messages: u64,
    /// Changes of routes in them.
    pub updates: u64,
    /// Changes that were carried out.
    pub applied: u64,
    /// Batches that wait.
    pub waiting: u64,
    /// Bytes of the socket's buffer, as the kernel counts.
    pub buffer_bytes: u64,
    /// Times that the kernel dropped messages because the buffer was full.
    pub overruns: u64,
    /// Times that all tables of the kernel were read.
    pub resyncs: u64,
    /// Times that a table changed while it was read.
    pub interrupted: u64,
    /// Messages and changes that could not be carried out, by reason.
    pub refused: Vec<LinuxCount>,
}

/// How FRR's zebra sends its routes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LinuxFpm {
    /// The own address and port.
    pub address: String,
    /// Whether zebra is connected.
    pub connected: bool,
    /// Connections that began.
    pub sessions: u64,
    /// Frames.
    pub frames: u64,
    /// Netlink messages.
    pub messages: u64,
    /// Changes of routes in them.
    pub updates: u64,
    /// Batches that wait.
    pub waiting: u64,
    /// Next-hop objects.
    pub objects: u64,
    /// Routes that wait for a next-hop object that zebra has not sent.
    pub parked: u64,
    /// Messages that could not be carried out, by reason.
    pub refused: Vec<LinuxCount>,
}

/// What BGP daemons tell by the BGP Monitoring Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LinuxBmp {
    /// The own address and port.
    pub address: String,
    /// Daemons that are connected.
    pub sessions: Vec<LinuxBmpSession>,
    /// Connections that began.
    pub begun: u64,
    /// Messages.
    pub messages: u64,
    /// Routes that were announced.
    pub announced: u64,
    /// Routes that were withdrawn.
    pub withdrawn: u64,
    /// Paths that are kept, of all peers together.
    pub paths: u64,
    /// Paths that are kept at most.
    pub most_paths: u64,
    /// Prefixes of these paths.
    pub prefixes: u64,
    /// Messages that could not be used, by reason.
    pub refused: Vec<LinuxCount>,
}

/// A BGP daemon that is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinuxBmpSession {
    /// Its address and port.
    pub address: String,
    /// The name that it gives itself.
    pub name: String,
    /// Messages.
    pub messages: u64,
    /// Its peers.
    pub peers: Vec<LinuxBmpPeer>,
}

/// A peer of a BGP daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinuxBmpPeer {
    /// Its address; unspecified for the daemon's own table.
    pub address: std::net::IpAddr,
    /// Its AS number.
    pub as_number: u32,
    /// Which routes are sent: `pre-policy`, `post-policy` or `loc-rib`.
    pub table: String,
}

/// How long changes of routes took, from the first message of their batch being read until all workers forward by them. Changes
/// that were found by reading whole tables are not included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinuxConvergence {
    /// Who sent the changes.
    pub source: crate::RouteSource,
    /// The number of changes.
    pub updates: u64,
    /// Half of them took at most this time, in microseconds; absent when there were none, or when it is over the last bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<u64>,
    /// 99 % of them did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<u64>,
    /// The changes by time. What took longer than the last bound is in `updates` only.
    pub buckets: Vec<LinuxDelay>,
}

/// The changes that took a time between the bound before and this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinuxDelay {
    /// The bound in microseconds.
    pub at_most_us: u64,
    /// The number of changes.
    pub updates: u64,
}

/// How often something was so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinuxCount {
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u64,
}

/// How the routes here compare with the kernel's. Each time that all tables are read they are compared, and differences are
/// put right.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LinuxAudit {
    /// The number of comparisons, the first reading included.
    pub audits: u64,
    /// Routes that were missing or led elsewhere, all those of the first reading included.
    pub healed: u64,
    /// Routes that the kernel had no more.
    pub stale: u64,
    /// Routes of the kernel in the tables now.
    pub routes: u64,
    /// Settings of TAPs that were changed in Linux and set back.
    #[serde(default)]
    pub set_back: u64,
}

/// An update that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinuxRefused {
    /// Its destinations, or its label.
    pub object: String,
    /// Why.
    pub error: String,
}
