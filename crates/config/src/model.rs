//! The configuration as a value: everything the router is told to be.
//!
//! A `Config` says what is *wanted* or what *runs*; the same type serves for both, which is what
//! lets `plan` be a pure function of two of them. Collections are ordered maps and sets keyed by
//! what identifies the thing (an interface's name, a route's prefix), so that two configurations
//! that mean the same are equal, in whatever order the file was written.
//!
//! Serde gives the shape of the file: a `Config` serialised to JSON (which is YAML, too) is a
//! file that `check` accepts and reads back as the same value. Values that come in by
//! deserialisation are typed but not validated; only `check` looks at ranges and references.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use crate::device::Device;
use crate::scalar::MacAddr;

/// The whole configuration of one router.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Config {
    /// Interfaces by name.
    pub interfaces: BTreeMap<String, Interface>,
    /// How sampled interfaces are sampled and where samples go.
    pub sflow: Sflow,
    /// Static routes by prefix; no prefix has host bits.
    #[serde(with = "lists::routes")]
    pub routes: BTreeMap<Ipv4Net, Via>,
    /// Static ARP entries.
    #[serde(with = "lists::neighbors")]
    pub neighbors: BTreeMap<NeighborKey, MacAddr>,
    /// Worker threads.
    pub workers: Workers,
    /// Packet memory.
    pub buffers: Buffers,
    /// Where the API listens.
    pub api: Api,
    /// What is logged.
    pub logging: Logging,
}

impl Config {
    /// An empty router with the same workers, buffers and API as `wanted`: what a router starts
    /// from, so that the plan from here to `wanted` needs no restart.
    #[must_use]
    pub fn start_of(wanted: &Self) -> Self {
        Self { workers: wanted.workers.clone(), buffers: wanted.buffers, api: wanted.api.clone(), ..Self::default() }
    }

    /// Names of interfaces that have nothing behind them.
    pub fn without_device(&self) -> impl Iterator<Item = &str> {
        self.interfaces.iter().filter(|(_, interface)| interface.device.is_none()).map(|(name, _)| name.as_str())
    }

    /// The interface with the longest connected subnet that holds `address`.
    #[must_use]
    pub fn interface_reaching(&self, address: Ipv4Addr) -> Option<&str> {
        let subnets = self.interfaces.iter().flat_map(|(name, interface)| interface.addresses.iter().map(move |net| (name, net)));
        subnets.filter(|(_, net)| net.contains(&address)).max_by_key(|(_, net)| net.prefix_len()).map(|(name, _)| name.as_str())
    }

    /// The interface that a path leaves by: the one it names, else the one that reaches its next
    /// hop.
    #[must_use]
    pub fn interface_of<'a>(&'a self, path: &'a Path) -> Option<&'a str> {
        match &path.interface {
            Some(name) => Some(name),
            None => self.interface_reaching(path.next_hop),
        }
    }

    /// The address the sFlow agent goes by: the one that is set, else the lowest own address.
    #[must_use]
    pub fn sflow_agent(&self) -> Option<IpAddr> {
        let own = || self.interfaces.values().flat_map(|interface| &interface.addresses).map(|net| IpAddr::V4(net.addr())).min();
        self.sflow.agent.or_else(own)
    }
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Interface {
    /// Free text for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is attached to; an interface without one is known but carries nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    /// Its unicast MAC address; the device's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
    /// The largest IP packet that leaves it, in bytes.
    pub mtu: u16,
    /// Whether it is wanted up.
    pub state: AdminState,
    /// Own addresses with their subnets.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub addresses: BTreeSet<Ipv4Net>,
    /// The interface that everything received here leaves by, unlooked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2xc: Option<String>,
    /// Whether received packets are sampled.
    pub sflow: bool,
    /// The worker of receive queue 0, 1, …; queues beyond the list are placed by the router.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rx_queue_workers: Vec<u16>,
}

impl Default for Interface {
    fn default() -> Self {
        Self {
            description: None,
            device: None,
            mac: None,
            mtu: 1500,
            state: AdminState::Up,
            addresses: BTreeSet::new(),
            l2xc: None,
            sflow: false,
            rx_queue_workers: Vec::new(),
        }
    }
}

/// Whether an interface is wanted up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdminState {
    /// Packets pass.
    #[default]
    Up,
    /// Nothing is received and nothing sent.
    Down,
}

impl std::fmt::Display for AdminState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
        })
    }
}

/// Where a route leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    /// Packets are dropped, counted.
    #[serde(rename = "blackhole")]
    Blackhole,
    /// To one of these, chosen by flow.
    #[serde(untagged)]
    Paths(Vec<Path>),
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Blackhole => f.write_str("blackhole"),
            Self::Paths(paths) => {
                for (index, path) in paths.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{path}")?;
                }
                Ok(())
            }
        }
    }
}

/// One next hop of a route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Path {
    /// The neighbour that packets are handed to.
    pub next_hop: Ipv4Addr,
    /// The interface it is behind; found by its subnet when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Its share of flows beside the other paths.
    #[serde(default = "one_weight")]
    pub weight: u8,
}

fn one_weight() -> u8 {
    1
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.next_hop)?;
        if let Some(interface) = &self.interface {
            write!(f, " on {interface}")?;
        }
        if self.weight != 1 {
            write!(f, " weight {}", self.weight)?;
        }
        Ok(())
    }
}

/// What identifies a static ARP entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NeighborKey {
    /// The interface it is behind.
    pub interface: String,
    /// Its address.
    pub address: Ipv4Addr,
}

/// The settings of the sFlow sampler and agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Sflow {
    /// One packet in this many is sampled; 0 = none.
    pub sampling_rate: u32,
    /// Seconds between two reports of an interface's counters; 0 = never.
    pub polling_interval: u32,
    /// Bytes of each sampled packet that are reported.
    pub header_bytes: u16,
    /// The form of samples.
    pub encoding: SflowEncoding,
    /// The address the agent goes by; the lowest own address when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<IpAddr>,
    /// Tells several agents with one address apart.
    pub agent_sub_id: u32,
    /// The largest datagram that is sent, in bytes of UDP payload.
    pub datagram_bytes: u16,
    /// Where datagrams go, each to all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<Collector>,
}

impl Default for Sflow {
    fn default() -> Self {
        Self {
            sampling_rate: 10_000,
            polling_interval: 20,
            header_bytes: 128,
            encoding: SflowEncoding::Expanded,
            agent: None,
            agent_sub_id: 0,
            datagram_bytes: 1400,
            collectors: Vec::new(),
        }
    }
}

/// Which of the two forms of sFlow version 5 an agent speaks; it never mixes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SflowEncoding {
    /// 32-bit interface indices, each with its format apart.
    #[default]
    Expanded,
    /// Source and format in one word: interface indices below 2^24 only.
    Compact,
}

/// A place that sFlow datagrams are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Collector {
    /// Its address.
    pub address: IpAddr,
    /// Its UDP port.
    #[serde(default = "Collector::default_port")]
    pub port: u16,
}

impl Collector {
    /// The port that IANA gave to sFlow.
    #[must_use]
    pub const fn default_port() -> u16 {
        6343
    }
}

/// Worker threads of the packet path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Workers {
    /// The core of worker 0, 1, …; empty = the kernel chooses. Not empty, it has `count` cores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u16>,
    /// How many workers.
    pub count: u16,
    /// What a worker does without packets.
    pub idle: Idle,
}

impl Default for Workers {
    fn default() -> Self {
        Self { cores: Vec::new(), count: 1, idle: Idle::Sleep }
    }
}

/// What a worker does when there are no packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// Looks again at once: lowest latency, a core always busy.
    Poll,
    /// Waits for the kernel to wake it.
    #[default]
    Sleep,
}

/// Packet memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Buffers {
    /// Buffers in the pool of each NUMA node.
    pub per_numa: u32,
    /// Whether the pool lies in hugepages.
    pub hugepages: Hugepages,
}

impl Default for Buffers {
    fn default() -> Self {
        Self { per_numa: 16_384, hugepages: Hugepages::Auto }
    }
}

/// Whether hugepages are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hugepages {
    /// When there are enough free ones.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// Where the API listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Api {
    /// The Unix socket.
    pub socket: PathBuf,
}

impl Default for Api {
    fn default() -> Self {
        Self { socket: PathBuf::from("/run/weir/api.sock") }
    }
}

/// What is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Logging {
    /// Messages below this level are not written.
    pub level: LogLevel,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Only what went wrong.
    Error,
    /// Also what looks wrong.
    Warn,
    /// Also what happened.
    #[default]
    Info,
    /// Also how.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The level's word in the file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The file writes routes and neighbours as lists; the model keys them.
mod lists {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) mod routes {
        use super::{BTreeMap, Deserialize, Deserializer, Serialize, Serializer};
        use crate::model::Via;
        use ipnet::Ipv4Net;

        #[derive(Serialize)]
        struct Written<'a> {
            prefix: Ipv4Net,
            via: &'a Via,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Read {
            prefix: Ipv4Net,
            via: Via,
        }

        pub(in crate::model) fn serialize<S: Serializer>(routes: &BTreeMap<Ipv4Net, Via>, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(routes.iter().map(|(prefix, via)| Written { prefix: *prefix, via }))
        }

        pub(in crate::model) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Ipv4Net, Via>, D::Error> {
            let list = Vec::<Read>::deserialize(deserializer)?;
            Ok(list.into_iter().map(|route| (route.prefix.trunc(), route.via)).collect())
        }
    }

    pub(super) mod neighbors {
        use super::{BTreeMap, Deserialize, Deserializer, Serialize, Serializer};
        use crate::model::NeighborKey;
        use crate::scalar::MacAddr;
        use std::net::Ipv4Addr;

        #[derive(Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Entry {
            interface: String,
            address: Ipv4Addr,
            mac: MacAddr,
        }

        pub(in crate::model) fn serialize<S: Serializer>(
            neighbors: &BTreeMap<NeighborKey, MacAddr>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            let entry = |(key, mac): (&NeighborKey, &MacAddr)| Entry { interface: key.interface.clone(), address: key.address, mac: *mac };
            serializer.collect_seq(neighbors.iter().map(entry))
        }

        pub(in crate::model) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<BTreeMap<NeighborKey, MacAddr>, D::Error> {
            let list = Vec::<Entry>::deserialize(deserializer)?;
            let keyed = |entry: Entry| (NeighborKey { interface: entry.interface, address: entry.address }, entry.mac);
            Ok(list.into_iter().map(keyed).collect())
        }
    }
}
