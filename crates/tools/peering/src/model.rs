//! The `peering:` section: who the router exchanges routes with, and on what terms.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use ipnet::IpNet;
use serde::Deserialize;

use crate::Error;

/// The longest text of a description.
const LONGEST_NAME: usize = 64;

/// A file with a `peering` section; other sections belong to the router.
#[derive(Debug, Deserialize)]
struct File {
    peering: Peering,
}

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
    /// Internet exchanges, by name.
    #[serde(default)]
    pub exchanges: BTreeMap<String, Exchange>,
    /// Sessions with other networks.
    #[serde(default)]
    pub neighbors: Vec<Neighbor>,
}

/// An Internet exchange.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Exchange {
    /// Prefixes of its peering LAN: rejected from every neighbour.
    pub lan: Vec<IpNet>,
    /// Local preference of routes that are learned there; the relation's by default.
    pub local_pref: Option<u32>,
    /// Whether its sessions carry traffic.
    #[serde(default)]
    pub mode: Mode,
}

/// Whether a session carries traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
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
}

impl Relation {
    /// The usual local preference.
    #[must_use]
    pub const fn local_pref(self) -> u32 {
        match self {
            Self::Customer => 500,
            Self::Peer => 200,
            Self::RouteServer => 150,
            Self::Transit => 60,
        }
    }

    /// The role of this router in the session (RFC 9234).
    #[must_use]
    pub const fn own_role(self) -> &'static str {
        match self {
            Self::Customer => "provider",
            Self::Peer => "peer",
            Self::RouteServer => "rs_client",
            Self::Transit => "customer",
        }
    }

    /// The value of the large community (own AS, 0, value) that marks its routes.
    #[must_use]
    pub const fn tag(self) -> u32 {
        match self {
            Self::Peer | Self::RouteServer => 1,
            Self::Customer => 2,
            Self::Transit => 3,
        }
    }
}

/// The most routes of a neighbour; beyond it the session is disabled.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limit {
    /// IPv4 routes.
    pub ipv4: Option<u32>,
    /// IPv6 routes.
    pub ipv6: Option<u32>,
}

/// Another network.
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
    /// Addresses of its routers: a session each.
    pub addresses: Vec<IpAddr>,
    /// Prefixes that it may announce, with their more-specific ones. Without them the AS-SET's are taken.
    #[serde(default)]
    pub prefixes: Vec<IpNet>,
    /// The AS-SET whose prefixes are in the snapshot, as `RIPE::AS-EXAMPLE`.
    pub as_set: Option<String>,
    /// Local preference of its routes.
    pub local_pref: Option<u32>,
    /// The most routes.
    #[serde(default)]
    pub limit: Limit,
    /// Generalized TTL security (RFC 5082).
    #[serde(default)]
    pub gtsm: bool,
    /// Bidirectional forwarding detection.
    #[serde(default)]
    pub bfd: bool,
    /// A file with the password for TCP-MD5 (RFC 2385), included by BIRD: `password "…";`.
    pub password_file: Option<PathBuf>,
    /// Whether the session carries traffic.
    #[serde(default)]
    pub mode: Mode,
}

impl Neighbor {
    /// Whether its prefixes are checked against a set.
    #[must_use]
    pub fn is_filtered_by_prefix(&self) -> bool {
        matches!(self.relation, Relation::Peer | Relation::Customer)
    }
}

impl Peering {
    /// Reads the `peering` section of a file, and checks it.
    ///
    /// # Errors
    /// When the YAML is wrong (with its line), or the settings are (all findings at once).
    pub fn parse(path: &str, text: &str) -> Result<Peering, Error> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| Error::Format {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        let findings = file.peering.findings();
        if findings.is_empty() {
            Ok(file.peering)
        } else {
            Err(Error::Findings(
                findings
                    .into_iter()
                    .map(|finding| format!("{path}: peering: {finding}"))
                    .collect(),
            ))
        }
    }

    /// The effective mode of a neighbour: its own, or its exchange's if that is stricter.
    #[must_use]
    pub fn mode(&self, neighbor: &Neighbor) -> Mode {
        let exchange = neighbor
            .at
            .as_ref()
            .and_then(|name| self.exchanges.get(name))
            .map_or(Mode::Normal, |exchange| exchange.mode);
        match (neighbor.mode, exchange) {
            (Mode::Down, _) | (_, Mode::Down) => Mode::Down,
            (Mode::Drain, _) | (_, Mode::Drain) => Mode::Drain,
            _ => Mode::Normal,
        }
    }

    /// The local preference of a neighbour's routes: its own, its exchange's, its relation's.
    #[must_use]
    pub fn local_pref(&self, neighbor: &Neighbor) -> u32 {
        let exchange = neighbor
            .at
            .as_ref()
            .and_then(|name| self.exchanges.get(name));
        neighbor
            .local_pref
            .or_else(|| exchange.and_then(|exchange| exchange.local_pref))
            .unwrap_or_else(|| neighbor.relation.local_pref())
    }

    fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        if self.asn == 0 {
            findings.push("asn: 0 is not an AS number".to_owned());
        }
        if self.prefixes.is_empty() {
            findings.push(
                "prefixes: name the own prefixes; without them nothing is announced".to_owned(),
            );
        }
        for prefix in self
            .prefixes
            .iter()
            .filter(|prefix| prefix.addr() != prefix.network())
        {
            findings.push(format!(
                "prefixes: {prefix} has host bits; write {}",
                prefix.trunc()
            ));
        }
        for name in self.exchanges.keys().filter(|name| !is_name(name)) {
            findings.push(format!(
                "exchanges: {name:?}: use letters, digits and -, at most {LONGEST_NAME}"
            ));
        }
        let (mut seen, mut known) = (BTreeSet::new(), BTreeSet::new());
        for neighbor in &self.neighbors {
            let who = format!("neighbors: AS{}", neighbor.asn);
            if !known.insert((neighbor.asn, &neighbor.at)) {
                findings.push(format!(
                    "{who}: it is there twice; write all its addresses at one place into one entry"
                ));
            }
            if neighbor.asn == 0 || neighbor.asn == self.asn {
                findings.push(format!("{who}: not a neighbour's AS number"));
            }
            if neighbor.addresses.is_empty() {
                findings.push(format!("{who}: addresses: name at least one"));
            }
            for address in &neighbor.addresses {
                if !seen.insert(*address) {
                    findings.push(format!("{who}: {address} has a session already"));
                }
            }
            if let Some(exchange) = &neighbor.at
                && !self.exchanges.contains_key(exchange)
            {
                findings.push(format!("{who}: at: there is no exchange {exchange:?}"));
            }
            if neighbor.is_filtered_by_prefix()
                && neighbor.prefixes.is_empty()
                && neighbor.as_set.is_none()
            {
                findings.push(format!(
                    "{who}: name its as-set or its prefixes; without them nothing is accepted"
                ));
            }
            if let Some(set) = &neighbor.as_set
                && !set
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_'))
            {
                findings.push(format!(
                    "{who}: as-set: {set:?} has characters that no AS-SET has"
                ));
            }
            if neighbor.description.len() > LONGEST_NAME
                || neighbor
                    .description
                    .chars()
                    .any(|c| c.is_control() || c == '"' || c == '\\')
            {
                findings.push(format!(
                    "{who}: description: at most {LONGEST_NAME} bytes without quotes, backslashes and control characters"
                ));
            }
            if let Some(file) = &neighbor.password_file
                && file
                    .to_string_lossy()
                    .chars()
                    .any(|c| c.is_control() || c == '"')
            {
                findings.push(format!(
                    "{who}: password-file: not a file name that BIRD can include"
                ));
            }
        }
        findings
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}
