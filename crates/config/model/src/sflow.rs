//! The settings of sFlow: how packets are sampled, who the agent is, and where its samples go.
//!
//! Names are VPP's and hsflowd's where these have one: `sampling-rate` and `header-bytes`, `namespace` and `dev` of a
//! collector, `dns-sd`, `psample`, `osIndex` and `ifOffset`, `agent` and `agent.cidr`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::access_list;
use crate::model::{Config, Interface};
use crate::scalar::{Host, NotAValue};

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
    /// The address the agent goes by, or whose address; elected among its own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<SflowAgent>,
    /// Addresses that go before others when one is elected.
    #[serde(rename = "agent.cidr", skip_serializing_if = "Vec::is_empty")]
    pub agent_cidr: Vec<AgentCidr>,
    /// Tells several agents with one address apart.
    pub agent_sub_id: u32,
    /// The largest datagram that is sent, in bytes of UDP payload.
    pub datagram_bytes: u16,
    /// Whether interfaces are told by the numbers of the Linux interfaces that they are paired with.
    #[serde(rename = "osIndex")]
    pub os_index: bool,
    /// Added to the numbers of interfaces that are not paired, so that they are nobody else's.
    #[serde(rename = "ifOffset")]
    pub if_offset: u32,
    /// Where datagrams go, each to all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<Collector>,
    /// Collectors that a domain announces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_sd: Option<DnsSd>,
    /// The kernel as another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psample: Option<Psample>,
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
    /// The number of the Linux interface that it is paired with.
    #[serde(rename = "osIndex", skip_serializing_if = "Option::is_none")]
    pub os_index: Option<u32>,
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
        self.other(interface)
            .sampling_rate
            .unwrap_or(self.sampling_rate)
    }

    /// The seconds between two reports of its counters.
    #[must_use]
    pub fn polling_of(&self, interface: &str) -> u32 {
        self.other(interface)
            .polling_interval
            .unwrap_or(self.polling_interval)
    }

    /// The bytes that are reported of its packets.
    #[must_use]
    pub fn header_of(&self, interface: &str) -> u16 {
        self.other(interface)
            .header_bytes
            .unwrap_or(self.header_bytes)
    }

    /// Which of its packets are sampled.
    #[must_use]
    pub fn direction_of(&self, interface: &str) -> SflowDirection {
        self.other(interface).direction.unwrap_or(self.direction)
    }

    /// The number of the Linux interface that it is paired with.
    #[must_use]
    pub fn os_index_of(&self, interface: &str) -> Option<u32> {
        self.other(interface).os_index
    }

    /// Whether anybody is to hear of what is sampled.
    #[must_use]
    pub fn has_listeners(&self) -> bool {
        !self.collectors.is_empty() || self.dns_sd.is_some() || self.psample.is_some()
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
            agent_cidr: Vec::new(),
            agent_sub_id: 0,
            datagram_bytes: 1400,
            os_index: false,
            if_offset: 1_000_000_000,
            collectors: Vec::new(),
            dns_sd: None,
            psample: None,
            interfaces: BTreeMap::new(),
        }
    }
}

/// Which address the agent goes by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SflowAgent {
    /// This one.
    Address(IpAddr),
    /// One of this interface's before others.
    Interface(String),
}

impl fmt::Display for SflowAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Interface(name) => name.fmt(f),
        }
    }
}

impl FromStr for SflowAgent {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text
            .parse()
            .map_or_else(|_| Self::Interface(text.to_owned()), Self::Address))
    }
}

/// A prefix whose addresses go before others as the agent's, or come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentCidr {
    /// Whether its addresses come last.
    pub not: bool,
    /// The addresses.
    pub prefix: IpNet,
}

impl fmt::Display for AgentCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.not { "!" } else { "" }, self.prefix)
    }
}

impl FromStr for AgentCidr {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        let prefix = access_list::prefix(text.strip_prefix('!').unwrap_or(text))
            .ok_or(NotAValue("is neither an address nor a prefix"))?;
        Ok(Self {
            not: text.starts_with('!'),
            prefix,
        })
    }
}

impl TryFrom<String> for AgentCidr {
    type Error = NotAValue;

    fn try_from(text: String) -> Result<Self, NotAValue> {
        text.parse()
    }
}

impl From<AgentCidr> for String {
    fn from(cidr: AgentCidr) -> String {
        cidr.to_string()
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Collector {
    /// Its address or its name.
    pub address: Host,
    /// Its UDP port.
    #[serde(default = "Collector::default_port")]
    pub port: u16,
    /// The network namespace that it is reached from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The address that datagrams come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// The class of the datagrams.
    #[serde(default, skip_serializing_if = "Collector::is_best_effort")]
    pub dscp: u8,
    /// The Linux device that they leave by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    /// The router's table that routes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Whether they leave through the host, whatever the router's routes say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host: bool,
    /// Whether discarded packets are told to it.
    #[serde(default = "Collector::default_drops")]
    pub drops: bool,
}

/// A domain that announces collectors (RFC 6763, `_sflow._udp`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct DnsSd {
    /// Which domain; those of the machine's resolver when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

/// The kernel as another way for samples, counters and drops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Psample {
    /// The group that samples of received packets carry.
    pub group: u32,
    /// The group that samples of sent packets carry.
    pub egress_group: u32,
    /// The network namespace of who listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl Default for Psample {
    fn default() -> Self {
        Self {
            group: 3,
            egress_group: 4,
            namespace: None,
        }
    }
}

impl Collector {
    /// One with nothing but an address and a port.
    #[must_use]
    pub fn at(address: IpAddr, port: u16) -> Self {
        let drops = Self::default_drops();
        Self {
            address: address.into(),
            port,
            drops,
            namespace: None,
            source: None,
            dscp: 0,
            dev: None,
            table: None,
            host: false,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    const fn is_best_effort(dscp: &u8) -> bool {
        *dscp == 0
    }

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

impl Config {
    /// The address the sFlow agent goes by: the one that is set, else the best of its own as hsflowd elects it. Of those that are
    /// equally good it is that of the interface with the lowest number, as `index_of` knows it, and there the lowest.
    #[must_use]
    pub fn sflow_agent(&self, index_of: impl Fn(&str) -> Option<u32>) -> Option<IpAddr> {
        let preferred = match &self.sflow.agent {
            Some(SflowAgent::Address(address)) => return Some(*address),
            Some(SflowAgent::Interface(name)) => Some(name),
            None => None,
        };
        let ranked = |(name, interface): (&String, &Interface)| {
            let (tagged, index) = (
                interface.sub_interface().is_some(),
                index_of(name).unwrap_or(u32::MAX),
            );
            let score = |address: IpAddr| {
                self.sflow.score(address, tagged) + if preferred == Some(name) { RANKS } else { 0 }
            };
            let best = interface
                .addresses
                .iter()
                .map(|own| own.addr())
                .min_by_key(|address| Reverse(score(*address)))?;
            Some((Reverse(score(best)), index, best))
        };
        let best = self
            .interfaces
            .iter()
            .filter_map(ranked)
            .min_by_key(|&(score, index, _)| (score, index));
        best.map(|(_, _, address)| address)
    }
}

impl Sflow {
    /// The address that the agent of a router without own ones goes by: of the machine's, each with the number of its link, the best as
    /// hsflowd elects it. Every machine has those of its loopback: they tell nobody apart.
    #[must_use]
    pub fn machines_agent(&self, addresses: impl Iterator<Item = (u32, IpAddr)>) -> Option<IpAddr> {
        let told_apart =
            addresses.filter(|(_, address)| !address.is_loopback() && !address.is_unspecified());
        told_apart
            .min_by_key(|&(index, address)| (Reverse(self.score(address, false)), index, address))
            .map(|(_, address)| address)
    }
}

/// What a prefix that is listed puts an address over others by, and the interface that is named: more than there are ranks.
const RANKS: usize = 13;

impl Sflow {
    /// How good an address is to know a router by, as hsflowd reckons it; 0 comes last. Of prefixes the last one that an address is in
    /// counts, with more the earlier it is listed.
    fn score(&self, address: IpAddr, tagged: bool) -> usize {
        let from_last = self.agent_cidr.iter().rev().enumerate();
        match from_last
            .clone()
            .find(|(_, cidr)| cidr.prefix.contains(&address))
        {
            Some((_, cidr)) if cidr.not => 0,
            Some((place, _)) => agent_rank(address, tagged) + (place + 1) * RANKS,
            None => agent_rank(address, tagged),
        }
    }
}

/// How good an address is to know a router by, without regard to what is configured; higher is better. A private IPv4 address
/// is better than a global IPv6 address: hsflowd has it so, and collectors know agents by what it chose.
fn agent_rank(address: IpAddr, tagged: bool) -> usize {
    match address {
        IpAddr::V6(address) if address.is_loopback() => 3,
        IpAddr::V4(address) if address.is_loopback() => 4,
        IpAddr::V4(address) if address.is_link_local() => 5,
        IpAddr::V6(address) if address.is_unicast_link_local() => 6,
        IpAddr::V6(address) if address.is_unique_local() => 9,
        IpAddr::V6(_) if tagged => 7,
        IpAddr::V4(_) if tagged => 8,
        IpAddr::V6(_) => 10,
        IpAddr::V4(address) if address.is_private() => 11,
        IpAddr::V4(_) => 12,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_ranked_as_hsflowd_ranks_them() {
        let best_first = [
            ("198.51.100.1", false),
            ("10.0.0.1", false),
            ("2001:db8::1", false),
            ("fd00::1", true),
            ("198.51.100.1", true),
            ("2001:db8::1", true),
            ("fe80::1", false),
            ("169.254.0.1", false),
            ("127.0.0.1", false),
            ("::1", false),
        ];
        let ranks: Vec<usize> = best_first
            .iter()
            .map(|(address, tagged)| agent_rank(address.parse().unwrap(), *tagged))
            .collect();
        assert_eq!(ranks, (3..RANKS).rev().collect::<Vec<usize>>());
    }

    #[test]
    fn of_the_machines_addresses_the_best_one_is_elected() {
        let sflow = Sflow::default();
        let elect = |all: &[(u32, &str)]| {
            sflow.machines_agent(
                all.iter()
                    .map(|(index, address)| (*index, address.parse().unwrap())),
            )
        };
        assert_eq!(elect(&[(1, "127.0.0.1"), (1, "::1")]), None);
        let some = [
            (1, "127.0.0.1"),
            (2, "fe80::1"),
            (3, "10.0.0.2"),
            (2, "192.168.0.9"),
            (4, "2001:db8::1"),
        ];
        assert_eq!(elect(&some), Some("192.168.0.9".parse().unwrap()));
        assert_eq!(elect(&some[..2]), Some("fe80::1".parse().unwrap()));
    }

    /// Interfaces `a` and `b`, with two addresses each.
    fn config(a: [&str; 2], b: [&str; 2]) -> Config {
        let mut config = Config::default();
        for (name, own) in [("a", a), ("b", b)] {
            let addresses = own.iter().map(|own| own.parse().unwrap()).collect();
            config.interfaces.insert(
                name.to_owned(),
                Interface {
                    addresses,
                    ..Interface::default()
                },
            );
        }
        config
    }

    fn agent(config: &Config, a: u32, b: u32) -> String {
        config
            .sflow_agent(|name| Some(if name == "a" { a } else { b }))
            .unwrap()
            .to_string()
    }

    #[test]
    fn of_one_rank_the_lowest_interface_and_its_lowest_address_win() {
        let mut config = config(
            ["10.0.0.9/24", "10.0.1.1/24"],
            ["10.9.0.9/24", "10.9.0.1/24"],
        );
        assert_eq!(
            [agent(&config, 1, 2), agent(&config, 2, 1)],
            ["10.0.0.9", "10.9.0.1"]
        );
        config.sflow.agent = Some("192.0.2.1".parse().unwrap());
        assert_eq!(agent(&config, 1, 2), "192.0.2.1");
    }

    #[test]
    fn a_named_interfaces_addresses_go_before_others() {
        let mut config = config(
            ["198.51.100.1/24", "10.0.1.1/24"],
            ["10.9.0.9/24", "fe80::1/64"],
        );
        config.sflow.agent = Some("b".parse().unwrap());
        assert_eq!(agent(&config, 1, 2), "10.9.0.9");
        // One that has none leaves it to the others.
        config.interfaces.get_mut("b").unwrap().addresses.clear();
        assert_eq!(agent(&config, 1, 2), "198.51.100.1");
    }

    #[test]
    fn listed_prefixes_go_before_others_and_excluded_ones_come_last() {
        let mut config = config(
            ["198.51.100.1/24", "10.0.1.1/24"],
            ["10.9.0.9/24", "2001:db8::1/64"],
        );
        let elect = |config: &mut Config, cidr: &[&str]| {
            config.sflow.agent_cidr = cidr.iter().map(|cidr| cidr.parse().unwrap()).collect();
            agent(config, 1, 2)
        };
        assert_eq!(elect(&mut config, &["10.0.0.0/8"]), "10.0.1.1");
        assert_eq!(
            elect(&mut config, &["2001:db8::/32", "10.0.0.0/8"]),
            "2001:db8::1"
        );
        assert_eq!(
            elect(&mut config, &["10.0.0.0/8", "2001:db8::/32"]),
            "10.0.1.1"
        );
        // The last that an address is in counts.
        assert_eq!(
            elect(&mut config, &["10.0.0.0/8", "!10.0.0.0/16"]),
            "10.9.0.9"
        );
        assert_eq!(
            elect(&mut config, &["!10.0.0.0/16", "10.0.0.0/8"]),
            "10.0.1.1"
        );
        assert_eq!(elect(&mut config, &["!198.51.100.1"]), "10.0.1.1");
        // A prefix counts for more than the interface; what is excluded is better than nothing.
        config.sflow.agent = Some("b".parse().unwrap());
        assert_eq!(
            elect(&mut config, &["198.51.100.0/24", "10.0.0.0/8"]),
            "198.51.100.1"
        );
        assert_eq!(elect(&mut config, &["!0.0.0.0/0", "!::/0"]), "10.9.0.9");
    }
}
