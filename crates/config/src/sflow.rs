//! The settings of sFlow: how packets are sampled, who the agent is, and where its samples go.
//!
//! Names are VPP's and hsflowd's where these have one: `sampling-rate` and `header-bytes`, `namespace` and `dev` of a
//! collector, `dns-sd`, `psample`, `osIndex` and `ifOffset`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::{Config, Interface};
use crate::scalar::Host;

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
    /// The address the agent goes by; elected among its own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<IpAddr>,
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
        Self { group: 3, egress_group: 4, namespace: None }
    }
}

impl Collector {
    /// One with nothing but an address and a port.
    #[must_use]
    pub fn at(address: IpAddr, port: u16) -> Self {
        let drops = Self::default_drops();
        Self { address: address.into(), port, drops, namespace: None, source: None, dscp: 0, dev: None }
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
    /// The address the sFlow agent goes by: the one that is set, else the best of its own, ranked as hsflowd ranks them.
    /// Of one rank it is that of the interface with the lowest number, as `index_of` knows it, and there the lowest.
    #[must_use]
    pub fn sflow_agent(&self, index_of: impl Fn(&str) -> Option<u32>) -> Option<IpAddr> {
        let ranked = |(name, interface): (&String, &Interface)| {
            let (tagged, index) = (interface.sub_interface().is_some(), index_of(name).unwrap_or(u32::MAX));
            let best = interface.addresses.iter().map(|own| own.addr()).min_by_key(|address| agent_rank(*address, tagged))?;
            Some((agent_rank(best, tagged), index, best))
        };
        let own = || self.interfaces.iter().filter_map(ranked).min_by_key(|&(rank, index, _)| (rank, index));
        self.sflow.agent.or_else(|| own().map(|(_, _, address)| address))
    }
}

/// How good an address is to know a router by; lower is better. A private IPv4 address is better than a global IPv6
/// address: hsflowd has it so, and collectors know agents by what it chose.
fn agent_rank(address: IpAddr, tagged: bool) -> u8 {
    match address {
        IpAddr::V4(address) if address.is_loopback() => 8,
        IpAddr::V6(address) if address.is_loopback() => 8,
        IpAddr::V4(address) if address.is_link_local() => 7,
        IpAddr::V6(address) if address.is_unicast_link_local() => 6,
        IpAddr::V6(_) if tagged => 5,
        IpAddr::V4(_) if tagged => 4,
        IpAddr::V6(address) if address.is_unique_local() => 3,
        IpAddr::V6(_) => 2,
        IpAddr::V4(address) if address.is_private() => 1,
        IpAddr::V4(_) => 0,
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
            ("fd00::1", false),
            ("198.51.100.1", true),
            ("2001:db8::1", true),
            ("fe80::1", false),
            ("169.254.0.1", false),
            ("127.0.0.1", false),
        ];
        let ranks: Vec<u8> = best_first.iter().map(|(address, tagged)| agent_rank(address.parse().unwrap(), *tagged)).collect();
        assert_eq!(ranks, (0..9).collect::<Vec<u8>>());
    }

    #[test]
    fn of_one_rank_the_lowest_interface_and_its_lowest_address_win() {
        let mut config = Config::default();
        for (name, own) in [("a", ["10.0.0.9/24", "10.0.1.1/24"]), ("b", ["10.9.0.9/24", "10.9.0.1/24"])] {
            let addresses = own.iter().map(|own| own.parse().unwrap()).collect();
            config.interfaces.insert(name.to_owned(), Interface { addresses, ..Interface::default() });
        }
        let agent = |config: &Config, a: u32, b: u32| config.sflow_agent(|name| Some(if name == "a" { a } else { b })).unwrap().to_string();
        assert_eq!([agent(&config, 1, 2), agent(&config, 2, 1)], ["10.0.0.9", "10.9.0.1"]);
        config.sflow.agent = Some("192.0.2.1".parse().unwrap());
        assert_eq!(agent(&config, 1, 2), "192.0.2.1");
    }
}
