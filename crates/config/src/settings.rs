//! The settings of the router as a whole: sFlow, workers, packet memory, API, log and history.
//!
//! They are part of a `Config` and, as it, serde gives them the shape of the file. `Default` is
//! what a file without the section means; a test holds it equal to the key table.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::scalar::Sha256;

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
    /// Which packets of a sampled interface are sampled.
    pub direction: SflowDirection,
    /// Discarded packets that are told a second at most; 0 = none are told.
    pub drop_limit: u32,
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
    /// Interfaces that are sampled in another way.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interfaces: BTreeMap<String, SflowInterface>,
}

/// What is other than usual on a sampled interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct SflowInterface {
    /// One packet in this many is sampled; 0 = none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<u32>,
    /// Seconds between two reports of its counters; 0 = never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polling_interval: Option<u32>,
    /// Bytes of each sampled packet that are reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_bytes: Option<u16>,
    /// Which of its packets are sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<SflowDirection>,
}

/// Which packets of an interface are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SflowDirection {
    /// Those that come in.
    #[default]
    Rx,
    /// Those that go out.
    Tx,
    /// Both, each once.
    Both,
}

impl SflowDirection {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            SflowDirection::Rx => "rx",
            SflowDirection::Tx => "tx",
            SflowDirection::Both => "both",
        }
    }

    /// Whether what comes in is sampled.
    #[must_use]
    pub const fn rx(self) -> bool {
        !matches!(self, SflowDirection::Tx)
    }

    /// Whether what goes out is sampled.
    #[must_use]
    pub const fn tx(self) -> bool {
        !matches!(self, SflowDirection::Rx)
    }
}

impl Sflow {
    /// What is other than usual on an interface.
    fn other(&self, interface: &str) -> SflowInterface {
        self.interfaces.get(interface).copied().unwrap_or_default()
    }

    /// The rate of an interface.
    #[must_use]
    pub fn rate_of(&self, interface: &str) -> u32 {
        self.other(interface).sampling_rate.unwrap_or(self.sampling_rate)
    }

    /// The seconds between two reports of its counters.
    #[must_use]
    pub fn polling_of(&self, interface: &str) -> u32 {
        self.other(interface).polling_interval.unwrap_or(self.polling_interval)
    }

    /// The bytes that are reported of its packets.
    #[must_use]
    pub fn header_of(&self, interface: &str) -> u16 {
        self.other(interface).header_bytes.unwrap_or(self.header_bytes)
    }

    /// Which of its packets are sampled.
    #[must_use]
    pub fn direction_of(&self, interface: &str) -> SflowDirection {
        self.other(interface).direction.unwrap_or(self.direction)
    }
}

impl Default for Sflow {
    fn default() -> Self {
        Self {
            sampling_rate: 10_000,
            polling_interval: 20,
            header_bytes: 128,
            direction: SflowDirection::Rx,
            drop_limit: 0,
            encoding: SflowEncoding::Expanded,
            agent: None,
            agent_sub_id: 0,
            datagram_bytes: 1400,
            collectors: Vec::new(),
            interfaces: BTreeMap::new(),
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
    /// Whether discarded packets are told to it.
    #[serde(default = "Collector::default_drops")]
    pub drops: bool,
}

impl Collector {
    /// The port that IANA gave to sFlow.
    #[must_use]
    pub const fn default_port() -> u16 {
        6343
    }

    /// Whoever does not say otherwise is told of discards.
    #[must_use]
    pub const fn default_drops() -> bool {
        true
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

/// Where the router is reached, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Api {
    /// The Unix socket.
    pub socket: PathBuf,
    /// The Unix group that may do everything over the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The Unix group that may look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_group: Option<String>,
    /// TCP addresses beside the socket.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<Listen>,
    /// Bearer tokens that are let in over TCP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Token>,
    /// The listener for metrics, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
}

impl Default for Api {
    fn default() -> Self {
        Self {
            socket: PathBuf::from("/run/weir/api.sock"),
            group: None,
            read_only_group: None,
            listen: Vec::new(),
            tokens: Vec::new(),
            metrics: None,
        }
    }
}

/// One TCP address of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Listen {
    /// The own address; unspecified = all.
    pub address: IpAddr,
    /// The TCP port.
    #[serde(default = "Listen::default_port")]
    pub port: u16,
    /// How it is encrypted, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

impl Listen {
    /// A usual port for HTTP with TLS beside 443.
    #[must_use]
    pub const fn default_port() -> u16 {
        8443
    }
}

/// Files that TLS needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tls {
    /// The certificate with its chain, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// Who must have signed a client's certificate; clients need none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<PathBuf>,
    /// What a client with a certificate may do.
    #[serde(default)]
    pub client_role: Role,
}

/// A bearer token, known by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Token {
    /// Who it is, in the log.
    pub name: String,
    /// What its bearer may do.
    #[serde(default)]
    pub role: Role,
    /// The hash of the token.
    pub sha256: Sha256,
}

/// What a client of the API may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Look.
    #[default]
    ReadOnly,
    /// Everything.
    Admin,
}

/// The listener that gives counters in the OpenMetrics form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Metrics {
    /// The own address; unspecified = all.
    pub address: IpAddr,
    /// The TCP port.
    #[serde(default = "Metrics::default_port")]
    pub port: u16,
}

impl Metrics {
    /// The port that VPP's exporter took.
    #[must_use]
    pub const fn default_port() -> u16 {
        9482
    }
}

/// What is logged, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Logging {
    /// Messages below this level are not written.
    pub level: LogLevel,
    /// The form of a line.
    pub format: LogFormat,
}

/// The form of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
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

/// Where applied configurations are kept, to go back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct History {
    /// The folder.
    pub directory: PathBuf,
    /// How many of the last ones are kept.
    pub keep: u16,
}

impl Default for History {
    fn default() -> Self {
        Self { directory: PathBuf::from("/var/lib/weir/config"), keep: 50 }
    }
}
