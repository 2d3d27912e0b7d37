//! The settings of the router as a whole: workers, packet memory, API, log and history.
//!
//! They are part of a `Config` and, as it, serde gives them the shape of the file. `Default` is
//! what a file without the section means; a test holds it equal to the key table.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::scalar::Sha256;

/// What is done with IPv4 packets of all interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Ip4 {
    /// Whether packets with a source route are forwarded.
    pub source_routes: bool,
}

impl Ip4 {
    /// Whether nothing differs from the defaults.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
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
    /// How the kernel schedules workers.
    pub priority: Priority,
}

impl Default for Workers {
    fn default() -> Self {
        Self {
            cores: Vec::new(),
            count: 1,
            idle: Idle::default(),
            priority: Priority::default(),
        }
    }
}

/// What a worker does when there are no packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// Looks again at once: lowest latency, a core always busy.
    Poll,
    /// Looks again at once while packets come fast, else waits for the kernel to wake it.
    #[default]
    Adaptive,
    /// Waits for the kernel to wake it.
    Sleep,
}

/// How the kernel schedules workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// As any other thread.
    Normal,
    /// Before other threads, which still run (nice -20).
    #[default]
    High,
    /// Before all other threads (SCHED_FIFO).
    RealTime,
}

/// Packet memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Buffers {
    /// Buffers in the pool of each NUMA node; worked out from ports and workers when absent (see `Config::buffer_plan`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_numa: Option<u32>,
    /// Whether the pool lies in hugepages.
    pub hugepages: Hugepages,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            per_numa: None,
            hugepages: Hugepages::Auto,
        }
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

impl Api {
    /// These settings with the tokens of `other`, and with its certificates where both listen.
    pub(crate) fn with_access_of(&self, other: &Api) -> Api {
        let mut settings = self.clone();
        settings.tokens = other.tokens.clone();
        for listen in &mut settings.listen {
            let same = |it: &&Listen| it.address == listen.address && it.port == listen.port;
            if let Some(tls) = other
                .listen
                .iter()
                .find(same)
                .and_then(|it| it.tls.as_ref())
                && let Some(here) = &mut listen.tls
            {
                *here = tls.clone();
            }
        }
        // A listener that would let nobody in waits for its tokens, or for its end.
        let closed = |listen: &Listen| {
            listen
                .tls
                .as_ref()
                .is_none_or(|tls| tls.client_ca.is_none())
        };
        if settings.tokens.is_empty() && settings.listen.iter().any(closed) {
            return self.clone();
        }
        settings
    }
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
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
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
        Self {
            directory: PathBuf::from("/var/lib/weir/config"),
            keep: 50,
        }
    }
}
