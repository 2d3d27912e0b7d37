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
use serde::Serialize;
use weir_config_derive::{Section, Words};

use crate::access_list;
use crate::model::{Config, Interface};
use crate::scalar::{Host, NotAValue};
use crate::section::text_values;

/// How sampled interfaces are sampled, and where samples go. hsflowd's names of keys are read, too:
/// `sampling` or `packetSamplingRate`, `polling` or `counterPollingInterval`, `headerBytes`,
/// `datagramBytes`, `dropLimit`, `agentIP`, `subAgentId`, `collector`, `DNS-SD`, and of collectors
/// `ip` and `udpport`.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{sampling-rate: 1000}")]
pub struct Sflow {
    /// One packet in this many is sampled; 0 = none.
    #[key(kind = Whole(0, u32::MAX as u64), default = 10_000, example = "1000")]
    pub sampling_rate: u32,
    /// Seconds between two reports of an interface's counters; 0 = never.
    #[key(kind = Whole(0, 86_400), default = 20, example = "30")]
    pub polling_interval: u32,
    /// Bytes of each sampled packet that are reported.
    #[key(kind = Whole(1, 256), default = 128, example = "64")]
    pub header_bytes: u16,
    /// Which packets of a sampled interface are sampled: received ones, sent ones, or both.
    #[key(example = "both")]
    pub direction: SflowDirection,
    /// Maximum drop notifications per second, each with its reason (sFlow 0:5); 0 = none.
    #[key(kind = Whole(0, 100_000), default = 0, example = "100")]
    pub drop_limit: u32,
    /// The encoding of samples; `compact` needs interface indices below 2^24.
    #[key(example = "compact")]
    pub encoding: SflowEncoding,
    /// The agent's address, or, as in hsflowd, the interface whose addresses are preferred. When
    /// absent, one of the router's addresses, selected as hsflowd does: global IPv4, private IPv4,
    /// global IPv6, unique local IPv6, IPv4 and IPv6 of sub-interfaces, link-local ones; among
    /// equals that of the interface with the lowest number. A router without addresses uses one of
    /// its machine, selected in the same order.
    #[key(example = "192.0.2.1")]
    pub agent: Option<SflowAgent>,
    /// Prefixes of addresses that are preferred as the agent's; with `!`, of those that come last.
    /// The last prefix that contains an address counts, and of two addresses the one whose prefix
    /// is listed earlier is preferred.
    #[key(
        name = "agent.cidr", items = (0, 16), example = "[10.0.0.0/8, '!10.9.0.0/16']",
        item = "An address or a prefix, or `!` and one of them."
    )]
    pub agent_cidr: Vec<AgentCidr>,
    /// Distinguishes several agents with one address.
    #[key(kind = Whole(0, u32::MAX as u64), default = 0, example = "1")]
    pub agent_sub_id: u32,
    /// The largest datagram that is sent, in bytes of UDP payload; at least 120 more than
    /// `header-bytes`.
    #[key(kind = Whole(256, 8192), default = 1400, example = "8192")]
    pub datagram_bytes: u16,
    /// Report the Linux ifindex of the interface that an interface is paired with, as
    /// `sflow.interfaces` says, instead of the router's own number.
    #[key(name = "osIndex", example = "true")]
    pub os_index: bool,
    /// What is added to the router's own number of an interface that is not paired, so that it
    /// equals no Linux ifindex: with `osIndex`, and towards hsflowd (`psample`), where it must be
    /// as in its `vpp` section.
    #[key(
        name = "ifOffset", kind = Whole(0, 1_000_000_000), default = 1_000_000_000,
        example = "500000000"
    )]
    pub if_offset: u32,
    /// Where datagrams are sent, each to all of them. A single one may stand without brackets.
    #[key(items = (0, 16), example = "[{address: 192.0.2.9}]")]
    pub collectors: Vec<Collector>,
    /// Collectors that a domain announces as `_sflow._udp` (RFC 6763), in addition to those listed.
    pub dns_sd: Option<DnsSd>,
    /// Samples, counters and drop notifications also through the kernel, for hsflowd with its
    /// modules `psample`, `vpp` and `dropmon`.
    pub psample: Option<Psample>,
    /// Settings of single interfaces that differ from those above, by name.
    #[key(names = Interface, example = "{xe0: {sampling-rate: 100}}")]
    pub interfaces: BTreeMap<String, SflowInterface>,
}

/// What differs on a sampled interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{sampling-rate: 100}")]
pub struct SflowInterface {
    /// One packet in this many is sampled there; 0 = none.
    #[key(kind = Whole(0, u32::MAX as u64), example = "100")]
    pub sampling_rate: Option<u32>,
    /// Seconds between two reports of its counters; 0 = never.
    #[key(kind = Whole(0, 86_400), example = "60")]
    pub polling_interval: Option<u32>,
    /// Bytes of each packet sampled there that are reported.
    #[key(kind = Whole(1, 256), example = "64")]
    pub header_bytes: Option<u16>,
    /// Which of its packets are sampled.
    #[key(example = "tx")]
    pub direction: Option<SflowDirection>,
    /// The ifindex of the Linux interface that it is paired with.
    #[key(name = "osIndex", kind = Whole(1, 1_000_000_000), example = "7")]
    pub os_index: Option<u32>,
}

/// Which packets of an interface are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum SflowDirection {
    /// Received ones.
    #[default]
    Rx,
    /// Sent ones.
    Tx,
    /// Both, each once.
    Both,
}

impl SflowDirection {
    /// Whether received packets are sampled.
    #[must_use]
    pub const fn rx(self) -> bool {
        !matches!(self, SflowDirection::Tx)
    }

    /// Whether sent packets are sampled.
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

/// Which address the agent has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SflowAgent {
    /// This one.
    Address(IpAddr),
    /// One of this interface, if it has any.
    Interface(String),
}

text_values!(
    SflowAgent: Some(crate::keys::Kind::AddressOrInterface),
    AgentCidr: Some(crate::keys::Kind::Cidr),
);

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

/// A prefix whose addresses are preferred as the agent's, or come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Which of the two encodings of sFlow version 5 an agent uses; it never mixes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum SflowEncoding {
    /// 32-bit interface indices, with a separate format field.
    #[default]
    Expanded,
    /// Source and format in one word: interface indices below 2^24 only.
    Compact,
}

/// One collector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Section)]
#[section(example = "{address: 192.0.2.9, port: 6343}")]
pub struct Collector {
    /// Its address, IPv4 or IPv6, or its name, which is looked up until it is found.
    #[key(required, example = "192.0.2.9")]
    pub address: Host,
    /// Its UDP port.
    #[key(kind = Whole(1, 65_535), default = 6343, example = "6344")]
    pub port: u16,
    /// The network namespace that it is reached from, as `ip netns` names it; the router's own when
    /// absent.
    #[key(kind = NamespaceName, example = "mgmt")]
    pub namespace: Option<String>,
    /// The source address of datagrams; the kernel's choice when absent.
    #[key(example = "192.0.2.1")]
    pub source: Option<IpAddr>,
    /// The DSCP of the datagrams.
    #[key(kind = Whole(0, 63), default = 0, example = "16")]
    pub dscp: u8,
    /// The Linux device that datagrams leave by: a VRF's or any other.
    #[key(kind = LinuxName, example = "vrf-mgmt")]
    pub dev: Option<String>,
    /// The router's table that routes datagrams to it: `default` or a VRF. When absent, the default
    /// table is used if it has a route and the router an address to send from, and the host
    /// otherwise.
    #[key(kind = TableName, example = "default")]
    pub table: Option<String>,
    /// Send datagrams through the host, as its own, whatever routes the router has.
    #[key(example = "true")]
    pub host: bool,
    /// Send drop notifications to it; some collectors lose what follows one in a datagram.
    #[key(default = true, example = "false")]
    pub drops: bool,
}

/// A domain that announces collectors (RFC 6763, `_sflow._udp`).
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{domain: example.net}")]
pub struct DnsSd {
    /// The domain; those that the machine's resolver searches when absent.
    #[key(kind = HostName, example = "example.net")]
    pub domain: Option<String>,
}

/// The kernel's channel for samples, counters and drop notifications.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{group: 3}")]
pub struct Psample {
    /// The group of samples of received packets.
    #[key(kind = Whole(1, u32::MAX as u64), default = 3, example = "1")]
    pub group: u32,
    /// The group of samples of sent packets.
    #[key(kind = Whole(1, u32::MAX as u64), default = 4, example = "2")]
    pub egress_group: u32,
    /// The network namespace that hsflowd is in; the router's own when absent.
    #[key(kind = NamespaceName, example = "mgmt")]
    pub namespace: Option<String>,
}

impl Collector {
    /// One with nothing but an address and a port.
    #[must_use]
    pub fn at(address: IpAddr, port: u16) -> Self {
        Self {
            address: address.into(),
            port,
            drops: true,
            namespace: None,
            source: None,
            dscp: 0,
            dev: None,
            table: None,
            host: false,
        }
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
        let distinguished =
            addresses.filter(|(_, address)| !address.is_loopback() && !address.is_unspecified());
        distinguished
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
