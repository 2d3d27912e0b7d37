//! The `peering:` section: who the router exchanges routes with, and on what terms.
//!
//! A neighbour with several exchanges becomes one [`Neighbor`] for each of them when the section is read, and templates
//! are merged into it, so that everything behind this module sees complete neighbours. Addresses and limits that
//! come from PeeringDB are filled in by [`crate::resolve`].

pub(crate) mod checks;
mod options;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

pub(crate) use checks::is_as_set;
pub use options::{
    AspaMode, Bmp, ControlOptions, Daemon, Data, DataSource, Include, Kernel, PolicyOptions,
    RpkiServer, RpkiSource,
};

use crate::{Error, read};

/// The longest text of a description.
pub(crate) const LONGEST_NAME: usize = 64;

/// The `peering:` section.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Peering {
    /// The own AS number.
    pub asn: u32,
    /// The BGP identifier.
    pub router_id: Ipv4Addr,
    /// The own prefixes, which are announced.
    pub prefixes: Vec<IpNet>,
    /// The daemon that the configuration is for.
    #[serde(default)]
    pub daemon: Daemon,
    /// Public data: where it is kept, where it comes from, and how old it may be.
    #[serde(default)]
    pub data: Data,
    /// What filters check.
    #[serde(default)]
    pub policy: PolicyOptions,
    /// The running daemon, for changes that are made with the router's.
    #[serde(default)]
    pub control: ControlOptions,
    /// How routes reach the kernel.
    #[serde(default)]
    pub kernel: Kernel,
    /// A BMP station that receives the routes (RFC 7854).
    pub bmp: Option<Bmp>,
    /// Internet exchanges, by name.
    #[serde(default)]
    pub exchanges: BTreeMap<String, Exchange>,
    /// Sessions with other networks.
    #[serde(skip)]
    pub neighbors: Vec<Neighbor>,
    /// Hand-written configuration at fixed points.
    #[serde(default)]
    pub include: Include,
    /// Files for other programs that are written from the same data.
    #[serde(default)]
    pub outputs: crate::outputs::Outputs,
}

/// An Internet exchange.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Exchange {
    /// Prefixes of its peering LAN: rejected from every neighbour. PeeringDB's when absent.
    #[serde(default)]
    pub lan: Vec<IpNet>,
    /// Its number in PeeringDB (`ix`).
    pub peeringdb_ix: Option<u32>,
    /// The interface of this router that is in the LAN.
    pub interface: Option<String>,
    /// Local preference of routes that are learned there; the relation's by default.
    pub local_pref: Option<u32>,
    /// Whether its sessions carry traffic.
    #[serde(default)]
    pub mode: Mode,
    /// The MTU of the LAN; PeeringDB's when absent.
    pub mtu: Option<u16>,
}

/// Whether a session carries traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It does.
    #[default]
    Normal,
    /// Traffic is moved away: GRACEFUL_SHUTDOWN (RFC 8326) out, local preference 0 in.
    Drain,
    /// The session is down.
    Down,
}

/// What a neighbour is to this network; decides defaults, filters and the BGP role (RFC 9234).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// A peer: exchanges own and customers' routes.
    #[default]
    Peer,
    /// A customer: gets all routes, and its routes are announced to everybody.
    Customer,
    /// A transit provider: gives all routes.
    Transit,
    /// The route server of an exchange.
    RouteServer,
    /// A router of the own network (IBGP): nothing is filtered.
    Own,
}

impl Relation {
    /// The usual local preference.
    #[must_use]
    pub const fn local_pref(self) -> u32 {
        match self {
            Self::Customer => 500,
            Self::Peer => 200,
            Self::RouteServer => 150,
            Self::Own => 100,
            Self::Transit => 60,
        }
    }

    /// The role of this router in the session (RFC 9234); IBGP has none.
    #[must_use]
    pub const fn own_role(self) -> Option<&'static str> {
        match self {
            Self::Customer => Some("provider"),
            Self::Peer => Some("peer"),
            Self::RouteServer => Some("rs_client"),
            Self::Transit => Some("customer"),
            Self::Own => None,
        }
    }

    /// The value of the large community (own AS, 0, value) that marks its routes.
    #[must_use]
    pub const fn tag(self) -> u32 {
        match self {
            Self::Peer | Self::RouteServer => 1,
            Self::Customer => 2,
            Self::Transit => 3,
            Self::Own => 4,
        }
    }

    /// The name in YAML, which names the template of all such neighbours, too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::Peer => "peer",
            Self::RouteServer => "route-server",
            Self::Transit => "transit",
            Self::Own => "own",
        }
    }

    /// Limits without a number in YAML or PeeringDB, IPv4 and IPv6, and the highest derived ones.
    #[must_use]
    pub const fn most_routes(self) -> (u32, u32) {
        match self {
            Self::Customer | Self::Peer => (170_000, 60_000),
            Self::RouteServer => (500_000, 200_000),
            Self::Transit | Self::Own => (2_000_000, 500_000),
        }
    }
}

/// The most routes of a neighbour.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limit {
    /// IPv4 routes.
    pub ipv4: Option<u32>,
    /// IPv6 routes.
    pub ipv6: Option<u32>,
    /// Whether numbers that are absent are derived from PeeringDB's.
    #[serde(default)]
    pub auto: bool,
}

impl Limit {
    /// The number of a family.
    #[must_use]
    pub const fn of(&self, is_ipv4: bool) -> Option<u32> {
        if is_ipv4 { self.ipv4 } else { self.ipv6 }
    }
}

/// What happens beyond the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitAction {
    /// The session is shut until a person enables it.
    #[default]
    Disable,
    /// The session starts again.
    Restart,
    /// Further routes are ignored.
    Block,
    /// It is logged.
    Warn,
}

impl LimitAction {
    /// The word of BIRD.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Restart => "restart",
            Self::Block => "block",
            Self::Warn => "warn",
        }
    }
}

/// Settings of one session that differ from its neighbour's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SessionSettings {
    /// Generalized TTL security (RFC 5082).
    pub gtsm: Option<bool>,
    /// Bidirectional forwarding detection.
    pub bfd: Option<bool>,
    /// Wait for the neighbour to connect.
    pub passive: Option<bool>,
    /// The number of hops to a neighbour that is not on the link.
    pub multihop: Option<u8>,
    /// A file with the password.
    pub password_file: Option<PathBuf>,
    /// The own address of the session.
    pub local_address: Option<IpAddr>,
    /// The most routes.
    pub limit: Option<u32>,
    /// Whether the session carries traffic.
    pub mode: Option<Mode>,
}

/// Another network, at one exchange or elsewhere.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Neighbor {
    /// Its AS number.
    pub asn: u32,
    /// Text for people.
    #[serde(default)]
    pub description: String,
    /// What it is to this network.
    #[serde(default)]
    pub relation: Relation,
    /// The exchange at which it is met.
    pub at: Option<String>,
    /// Addresses of its routers: a session each. PeeringDB's at the exchange when absent.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// Addresses of PeeringDB that get no session.
    #[serde(default)]
    pub without: Vec<IpAddr>,
    /// Prefixes that it may announce, with their more-specific ones. Without them the AS-SET's are taken.
    #[serde(default)]
    pub prefixes: Vec<IpNet>,
    /// The AS-SET whose prefixes are in the snapshot, as `RIPE::AS-EXAMPLE`. PeeringDB's when absent.
    pub as_set: Option<String>,
    /// Local preference of its routes.
    pub local_pref: Option<u32>,
    /// The most routes.
    #[serde(default)]
    pub limit: Limit,
    /// What happens beyond the limit.
    #[serde(default)]
    pub limit_action: LimitAction,
    /// Whether blackhole routes (RFC 7999) within its prefixes are taken. For customers.
    #[serde(default)]
    pub blackhole: bool,
    /// How often the own AS number is put in front of the path of announced routes.
    #[serde(default)]
    pub prepend: u8,
    /// Standard communities that announced routes get, as `65535:65281`.
    #[serde(default)]
    pub communities: Vec<String>,
    /// Whether the BGP role is sent (RFC 9234).
    #[serde(default = "yes")]
    pub role: bool,
    /// Whether a neighbour that sends no role is refused.
    #[serde(default)]
    pub require_role: bool,
    /// Whether next hops of routes must be addresses of the neighbour (a route server's: of the LAN).
    #[serde(default = "yes")]
    pub check_next_hop: bool,
    /// Generalized TTL security (RFC 5082).
    #[serde(default)]
    pub gtsm: bool,
    /// Bidirectional forwarding detection.
    #[serde(default)]
    pub bfd: bool,
    /// Wait for the neighbour to connect.
    #[serde(default)]
    pub passive: bool,
    /// The number of hops to a neighbour that is not on the link.
    pub multihop: Option<u8>,
    /// The own address of its sessions; BIRD chooses it when absent.
    pub local_address: Option<IpAddr>,
    /// A file with the password for TCP-MD5 (RFC 2385), included by BIRD: `password "…";`.
    pub password_file: Option<PathBuf>,
    /// Whether its sessions carry traffic.
    #[serde(default)]
    pub mode: Mode,
    /// Settings of single sessions, by address.
    #[serde(default)]
    pub sessions: BTreeMap<IpAddr, SessionSettings>,
    /// The name of a template whose settings it has.
    pub template: Option<String>,
}

const fn yes() -> bool {
    true
}

/// The settings of one session.
#[derive(Clone, Debug)]
pub struct Session {
    /// The neighbour's address.
    pub address: IpAddr,
    /// Generalized TTL security (RFC 5082).
    pub gtsm: bool,
    /// Bidirectional forwarding detection.
    pub bfd: bool,
    /// Wait for the neighbour to connect.
    pub passive: bool,
    /// The number of hops to a neighbour that is not on the link.
    pub multihop: Option<u8>,
    /// A file with the password.
    pub password_file: Option<PathBuf>,
    /// The own address.
    pub local_address: Option<IpAddr>,
    /// The most routes.
    pub limit: Option<u32>,
    /// Whether it carries traffic.
    pub mode: Mode,
}

impl Neighbor {
    /// Whether its prefixes are checked against a set.
    #[must_use]
    pub fn is_filtered_by_prefix(&self) -> bool {
        matches!(self.relation, Relation::Peer | Relation::Customer)
    }

    /// The name under which it appears in configurations: `AS64500`, or `AS64500_frysix` at an exchange.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.at {
            None => format!("AS{}", self.asn),
            // BIRD's symbols have no hyphens.
            Some(exchange) => format!("AS{}_{}", self.asn, exchange.replace('-', "_")),
        }
    }
}

impl Peering {
    /// Reads the `peering` section of a file with the files that it includes, and checks it.
    ///
    /// # Errors
    /// When a file cannot be read, the YAML is wrong, or the settings are (all findings at once).
    pub fn load(path: &Path) -> Result<Peering, Error> {
        let mut peering = Peering::parse(&path.display().to_string(), &read(path)?)?;
        peering.read_includes(path.parent().unwrap_or(Path::new(".")))?;
        Ok(peering)
    }

    /// Reads the files that the section includes; relative names of files are those of `folder`.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn read_includes(&mut self, folder: &Path) -> Result<(), Error> {
        let files = [&mut self.data.rpki.slurm, &mut self.data.folder];
        for file in files.into_iter().flatten() {
            *file = folder.join(&*file);
        }
        self.include.read(folder)
    }

    /// Reads the `peering` section of a text, and checks it.
    ///
    /// # Errors
    /// When the YAML is wrong (with its line), or the settings are (all findings at once).
    pub fn parse(path: &str, text: &str) -> Result<Peering, Error> {
        let file: serde_json::Value =
            serde_saphyr::from_str(text).map_err(|error| Error::Format {
                path: path.to_owned(),
                reason: error.to_string(),
            })?;
        let section = file.get("peering").ok_or_else(|| Error::Format {
            path: path.to_owned(),
            reason: "there is no section `peering`".to_owned(),
        })?;
        Peering::of_value(path, section)
    }

    /// Reads the section from a value, as the router's configuration holds it, and checks it.
    ///
    /// # Errors
    /// All findings at once.
    pub fn of_value(path: &str, section: &serde_json::Value) -> Result<Peering, Error> {
        let failed = |findings: Vec<String>| {
            let lines = findings.into_iter();
            Error::Findings(lines.map(|it| format!("{path}: peering: {it}")).collect())
        };
        let peering = written::read(section).map_err(failed)?;
        let findings = peering.findings();
        if findings.is_empty() {
            Ok(peering)
        } else {
            Err(failed(findings))
        }
    }

    /// The exchange of a neighbour.
    #[must_use]
    pub fn exchange(&self, neighbor: &Neighbor) -> Option<&Exchange> {
        neighbor
            .at
            .as_ref()
            .and_then(|name| self.exchanges.get(name))
    }

    /// The effective mode of a neighbour: its own, or its exchange's if that is stricter.
    #[must_use]
    pub fn mode(&self, neighbor: &Neighbor) -> Mode {
        let exchange = self
            .exchange(neighbor)
            .map_or(Mode::Normal, |exchange| exchange.mode);
        neighbor.mode.max(exchange)
    }

    /// The sessions of a neighbour with their names, in the order of its addresses: `AS64500_1`, ….
    pub fn sessions<'a>(
        &'a self,
        neighbor: &'a Neighbor,
    ) -> impl Iterator<Item = (String, Session)> + 'a {
        (1..)
            .zip(&neighbor.addresses)
            .map(move |(number, address)| {
                let none = SessionSettings::default();
                let own = neighbor.sessions.get(address).unwrap_or(&none);
                let session = Session {
                    address: *address,
                    gtsm: own.gtsm.unwrap_or(neighbor.gtsm),
                    bfd: own.bfd.unwrap_or(neighbor.bfd),
                    passive: own.passive.unwrap_or(neighbor.passive),
                    multihop: own.multihop.or(neighbor.multihop),
                    password_file: own
                        .password_file
                        .clone()
                        .or_else(|| neighbor.password_file.clone()),
                    local_address: own.local_address.or_else(|| {
                        neighbor
                            .local_address
                            .filter(|it| it.is_ipv4() == address.is_ipv4())
                    }),
                    limit: own.limit.or_else(|| neighbor.limit.of(address.is_ipv4())),
                    mode: own.mode.unwrap_or_default().max(self.mode(neighbor)),
                };
                (format!("{}_{number}", neighbor.name()), session)
            })
    }

    /// The names of all sessions.
    #[must_use]
    pub fn session_names(&self) -> BTreeSet<String> {
        self.neighbors
            .iter()
            .flat_map(|it| self.sessions(it))
            .map(|it| it.0)
            .collect()
    }

    /// The local preference of a neighbour's routes: its own, its exchange's, its relation's.
    #[must_use]
    pub fn local_pref(&self, neighbor: &Neighbor) -> u32 {
        let exchange = self.exchange(neighbor);
        neighbor
            .local_pref
            .or_else(|| exchange.and_then(|exchange| exchange.local_pref))
            .unwrap_or_else(|| neighbor.relation.local_pref())
    }

    /// Puts neighbours (`AS64500`, `AS64500_frysix`) and exchanges (`frysix`) into other modes: maintenance that is not in the file.
    pub fn apply_modes(&mut self, modes: &BTreeMap<String, Mode>) {
        for (name, exchange) in &mut self.exchanges {
            if let Some(mode) = modes.get(name) {
                exchange.mode = exchange.mode.max(*mode);
            }
        }
        for neighbor in &mut self.neighbors {
            let by_asn = modes.get(&format!("AS{}", neighbor.asn));
            let by_name = modes.get(&neighbor.name());
            for mode in by_asn.into_iter().chain(by_name) {
                neighbor.mode = neighbor.mode.max(*mode);
            }
        }
    }
}
