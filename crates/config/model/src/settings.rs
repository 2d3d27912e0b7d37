//! The settings of the router as a whole: IPv4, workers, packet memory, API, log and history.

use std::net::IpAddr;
use std::path::PathBuf;

use weir_config_derive::{Section, Words};

use crate::scalar::Sha256;

/// How IPv4 packets of all interfaces are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{source-routes: true}")]
pub struct Ip4 {
    /// Forward packets with a loose or strict source route by their destination address. When
    /// false they are dropped as `ip4-source-route`, since they bypass filters (RFC 7126 sections
    /// 4.3 and 4.4). The router never processes the route itself.
    #[key(example = "true")]
    pub source_routes: bool,
}

/// Worker threads of the packet path. A change needs a restart.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{cores: [0, 1], idle: poll}")]
pub struct Workers {
    /// The core of worker 0, 1, …; workers are not pinned when absent. There are as many workers.
    #[key(
        items = (1, 64), kind = Whole(0, 4095), example = "[0, 1]",
        item = "A core by its number in Linux."
    )]
    pub cores: Vec<u16>,
    /// The number of workers; that of `cores` when those are given.
    #[key(kind = Whole(1, 64), default = 1, example = "2")]
    pub count: u16,
    /// What a worker does without packets: `poll` polls again at once, `sleep` waits for the kernel
    /// to wake it, `adaptive` polls while packets arrive fast and sleeps otherwise.
    #[key(example = "poll")]
    pub idle: Idle,
    /// How the kernel schedules workers: as other threads (`normal`), before them (`high`, nice
    /// -20), or before all that are not real-time (`real-time`, SCHED_FIFO). The last two need
    /// CAP_SYS_NICE; without it the router logs a warning and runs workers as other threads.
    #[key(example = "real-time")]
    pub priority: Priority,
}

/// What a worker does when there are no packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum Idle {
    /// Polls again at once: lowest latency, a core always busy.
    Poll,
    /// Polls while packets arrive fast, waits for the kernel to wake it otherwise.
    #[default]
    Adaptive,
    /// Waits for the kernel to wake it.
    Sleep,
}

/// How the kernel schedules workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum Priority {
    /// As any other thread.
    Normal,
    /// Before other threads, which still run (nice -20).
    #[default]
    High,
    /// Before all other threads (SCHED_FIFO).
    RealTime,
}

/// Packet memory. A change needs a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{per-numa: 32768}")]
pub struct Buffers {
    /// Buffers in the pool of each NUMA node; computed from the queues of ports and the workers
    /// when absent. See [Packet memory](buffers.md).
    #[key(kind = Whole(1024, 4_194_304), example = "32768")]
    pub per_numa: Option<u32>,
    /// Whether the pool uses hugepages when enough of them are free; otherwise the kernel is asked
    /// to make some (Linux 6.1).
    #[key(example = "off")]
    pub hugepages: Hugepages,
}

/// Whether hugepages are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum Hugepages {
    /// When enough of them are free.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// Where the API listens, and which clients it accepts. A change of where it listens needs a
/// restart.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{socket: /run/weir/second.sock}")]
pub struct Api {
    /// The Unix socket of the API.
    #[key(
        kind = File(107), default = PathBuf::from("/run/weir/api.sock"),
        example = "/run/weir/second.sock"
    )]
    pub socket: PathBuf,
    /// The Unix group whose members may do everything over the socket; only root and the router's
    /// own user may when absent.
    #[key(kind = UnixGroup, example = "weir")]
    pub group: Option<String>,
    /// The Unix group whose members may read, and change nothing.
    #[key(kind = UnixGroup, example = "adm")]
    pub read_only_group: Option<String>,
    /// TCP addresses of the API, in addition to the socket.
    #[key(items = (0, 16), example = "[{address: 127.0.0.1}]")]
    pub listen: Vec<Listen>,
    /// Bearer tokens that are accepted over TCP.
    #[key(
        items = (0, 256),
        example = "[{name: grafana, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}]"
    )]
    pub tokens: Vec<Token>,
    /// A separate listener that serves counters in the OpenMetrics format, and nothing else, to
    /// every client; none when absent.
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
        // A listener that no client could use waits for its tokens, or for its removal.
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

/// One TCP address of the API. Without `tls` it is a loopback address, because tokens could be read
/// in transit.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{address: 127.0.0.1, port: 8443}")]
pub struct Listen {
    /// The own address to listen on; `0.0.0.0` or `::` for all.
    #[key(required, kind = ListenAddress, example = "127.0.0.1")]
    pub address: IpAddr,
    /// The TCP port.
    #[key(kind = Whole(1, 65_535), default = 8443, example = "9443")]
    pub port: u16,
    /// Use TLS; plain HTTP when absent.
    pub tls: Option<Tls>,
}

/// The files for TLS.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{certificate: /etc/weir/api.pem, key: /etc/weir/api.key}")]
pub struct Tls {
    /// The certificate with its chain, in PEM.
    #[key(required, example = "/etc/weir/api.pem")]
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    #[key(required, example = "/etc/weir/api.key")]
    pub key: PathBuf,
    /// What clients with a certificate may do: read, or everything.
    #[key(example = "admin")]
    pub client_role: Role,
    /// Certificates, in PEM, one of which must have signed that of a client; clients need none when
    /// absent.
    #[key(example = "/etc/weir/clients.pem")]
    pub client_ca: Option<PathBuf>,
}

/// A bearer token, identified by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(
    example = "{name: grafana, role: read-only, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}"
)]
pub struct Token {
    /// Its name, for the log.
    #[key(required, kind = Text(64), example = "grafana")]
    pub name: String,
    /// Whether its bearer may only read, or do everything.
    #[key(example = "admin")]
    pub role: Role,
    /// The SHA-256 hash of the token in hexadecimal, as `sha256sum` prints it for the token without
    /// a line end; the token itself is stored nowhere. The API and `weir config dump` show `hidden`
    /// instead; a file with `hidden` that is applied to a running router keeps the hash that the
    /// token of this name has there.
    #[key(
        required,
        example = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    )]
    pub sha256: Sha256,
}

/// What a client of the API may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Words)]
pub enum Role {
    /// Read.
    #[default]
    ReadOnly,
    /// Everything.
    Admin,
}

/// The listener that serves counters in the OpenMetrics format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{address: 127.0.0.1, port: 9482}")]
pub struct Metrics {
    /// The own address to listen on; `0.0.0.0` or `::` for all.
    #[key(required, kind = ListenAddress, example = "127.0.0.1")]
    pub address: IpAddr,
    /// The TCP port; the default is that of VPP's exporter.
    #[key(kind = Whole(1, 65_535), default = 9482, example = "9483")]
    pub port: u16,
}

/// What is logged, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{level: debug}")]
pub struct Logging {
    /// Messages below this level are not written.
    #[key(example = "debug")]
    pub level: LogLevel,
    /// Text lines, or one JSON object a line. A change needs a restart.
    #[key(example = "json")]
    pub format: LogFormat,
}

/// The form of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum LogFormat {
    /// Text.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// The least severe level that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Words)]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Also what may be a failure.
    Warn,
    /// Also changes of state.
    #[default]
    Info,
    /// Also how they were made.
    Debug,
    /// Everything.
    Trace,
}

/// Where applied configurations are kept, for rollback. A change needs a restart.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{keep: 100}")]
pub struct History {
    /// The folder.
    #[key(default = PathBuf::from("/var/lib/weir/config"), example = "/srv/weir/config")]
    pub directory: PathBuf,
    /// The number of configurations that are kept, the newest ones.
    #[key(kind = Whole(1, 1000), default = 50, example = "100")]
    pub keep: u16,
}
