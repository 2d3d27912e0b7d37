//! The configuration as a value: everything the router is told to be.
//!
//! A `Config` says what is *wanted* or what *runs*; the same type serves for both, which is what
//! lets `plan` be a pure function of two of them. Collections are ordered maps and sets keyed by
//! what identifies the thing (an interface's name, a route's prefix), so that two configurations
//! that mean the same are equal, in whatever order the file was written.
//!
//! Serde gives the shape of the file (`written.rs`): a `Config` serialised to JSON (which is YAML, too) is a
//! file that `check` accepts and reads back as the same value. Values that come in by
//! deserialisation are typed but not validated; only `check` looks at ranges and references.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::access_list::{AccessList, Binding, PrefixList};
use crate::bond::Bond;
use crate::bridge::Bridge;
use crate::device::Device;
use crate::ipfix::Ipfix;
use crate::linux::Linux;
use crate::mpls::{Mpls, TtlMode};
use crate::pseudowire::Pseudowire;
use crate::scalar::MacAddr;
use crate::settings::{Api, Buffers, History, Ip4, Logging, Workers};
use crate::sflow::Sflow;
use crate::sub_interface::SubInterface;
use crate::vxlan::Vxlan;
use crate::written::Written;

/// The whole configuration of one router.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Config {
    /// Interfaces by name, loopbacks, TAPs and sub-interfaces among them.
    pub interfaces: BTreeMap<String, Interface>,
    /// Bridge domains by name.
    pub bridges: BTreeMap<String, Bridge>,
    /// How sampled interfaces are sampled and where samples go.
    pub sflow: Sflow,
    /// Which flows are metered and where their records go.
    pub ipfix: Ipfix,
    /// The interfaces that Linux has a TAP of.
    pub linux: Linux,
    /// What is done with IPv4 packets of all interfaces.
    pub ip4: Ip4,
    /// Routing tables beside the default one, by name.
    pub vrfs: BTreeMap<String, Vrf>,
    /// Static routes by table and prefix; no prefix has host bits.
    pub routes: BTreeMap<RouteKey, Via>,
    /// Labels and what is done with packets that come with them.
    pub mpls: Mpls,
    /// Pseudowires by the names of their interfaces.
    pub pseudowires: BTreeMap<String, Pseudowire>,
    /// Static ARP and neighbour discovery entries.
    pub neighbors: BTreeMap<NeighborKey, MacAddr>,
    /// Prefix lists by name.
    pub prefix_lists: BTreeMap<String, PrefixList>,
    /// Access lists by name.
    pub access_lists: BTreeMap<String, AccessList>,
    /// Worker threads.
    pub workers: Workers,
    /// Packet memory.
    pub buffers: Buffers,
    /// Where the API listens.
    pub api: Api,
    /// What is logged.
    pub logging: Logging,
    /// Where applied configurations are kept.
    pub history: History,
}

impl Config {
    /// An empty router with those settings of `wanted` that are read once: what a router starts
    /// from, so that the plan from here to `wanted` needs no restart.
    #[must_use]
    pub fn start_of(wanted: &Self) -> Self {
        Self {
            workers: wanted.workers.clone(),
            buffers: wanted.buffers,
            api: wanted.api.clone(),
            logging: Logging {
                format: wanted.logging.format,
                ..Logging::default()
            },
            history: wanted.history.clone(),
            ..Self::default()
        }
    }

    /// An interface as it takes part in routing: an unnumbered one with the addresses that it borrows, but for
    /// link-local ones, which belong to a link.
    #[must_use]
    pub fn with_borrowed<'a>(&self, interface: &'a Interface) -> std::borrow::Cow<'a, Interface> {
        let lender = interface
            .unnumbered
            .as_ref()
            .and_then(|lender| self.interfaces.get(lender));
        lender.map_or(std::borrow::Cow::Borrowed(interface), |lender| {
            let addresses = lender
                .addresses
                .iter()
                .filter(|net| !is_link_local(net.addr()))
                .copied()
                .collect();
            std::borrow::Cow::Owned(Interface {
                addresses,
                ..interface.clone()
            })
        })
    }

    /// Names of interfaces that have nothing behind them.
    pub fn without_device(&self) -> impl Iterator<Item = &str> {
        self.interfaces
            .iter()
            .filter(|(_, interface)| interface.device.is_none())
            .map(|(name, _)| name.as_str())
    }

    /// Whether an interface is the routed side of a bridge domain.
    #[must_use]
    pub fn is_bvi(&self, interface: &str) -> bool {
        self.bridges
            .values()
            .any(|bridge| bridge.bvi.as_deref() == Some(interface))
    }

    /// Whether there may be others on an interface's link, who could have one of our addresses.
    #[must_use]
    pub fn shares_its_link(&self, interface: &str) -> bool {
        let device = self
            .interfaces
            .get(interface)
            .and_then(|interface| interface.device.as_ref());
        // A port, which is made of nothing else.
        let port = |name: &str| {
            matches!(self.interfaces.get(name), Some(it) if it.is_port())
                && self.shares_its_link(name)
        };
        let port_or_bond =
            |name: &str| port(name) || self.members_of(name).any(|(member, _)| port(member));
        let member =
            |name: &String| match self.interfaces.get(name).and_then(|it| it.device.as_ref()) {
                Some(Device::SubInterface(sub)) => port_or_bond(&sub.parent),
                Some(Device::Pseudowire | Device::Vxlan(_)) => true,
                _ => port_or_bond(name),
            };
        match device {
            Some(
                Device::AfXdp { .. }
                | Device::Tap { .. }
                | Device::LinuxTap(_)
                | Device::Memif(_)
                | Device::Pseudowire
                | Device::Vxlan(_),
            ) => true,
            Some(Device::SubInterface(sub)) => port_or_bond(&sub.parent),
            Some(Device::Bond(_)) => self.members_of(interface).any(|(member, _)| port(member)),
            Some(Device::Loopback) => {
                let bridge = self
                    .bridges
                    .values()
                    .find(|bridge| bridge.bvi.as_deref() == Some(interface));
                bridge.is_some_and(|bridge| bridge.interfaces.iter().any(member))
            }
            Some(Device::Pcap { .. } | Device::Null | Device::Generator { .. }) | None => false,
        }
    }

    /// The members of a bond, in the order of their names.
    pub fn members_of<'a>(
        &'a self,
        bond: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Interface)> {
        let members = self
            .interfaces
            .iter()
            .filter(move |(_, interface)| interface.bond.as_deref() == Some(bond));
        members.map(|(name, interface)| (name.as_str(), interface))
    }
}

/// Whether an address only means something on one link (RFC 4291 section 2.5.6).
#[must_use]
pub fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// A routing table beside the default one, for both IP versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Vrf {
    /// Its number, which no other table has; 0 is the default table's.
    pub table: u32,
    /// Free text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What identifies a static route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RouteKey {
    /// The table it is in; the default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// What it is for, without host bits.
    pub prefix: IpNet,
}

impl std::fmt::Display for RouteKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.prefix)?;
        self.vrf
            .as_ref()
            .map_or(Ok(()), |vrf| write!(f, " in vrf {vrf}"))
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
    /// The table that routes what comes in, and that its subnets are in; the default one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Own addresses with their subnets.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub addresses: BTreeSet<IpNet>,
    /// The interface whose addresses it borrows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unnumbered: Option<String>,
    /// The interface that everything received here leaves by, unlooked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2xc: Option<String>,
    /// The access lists that its packets pass.
    #[serde(skip_serializing_if = "Binding::is_empty")]
    pub acl: Binding,
    /// How strictly the way back to the sources of what comes in is looked at; not at all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urpf: Option<Urpf>,
    /// How much may come in and go out.
    #[serde(skip_serializing_if = "Police::is_empty")]
    pub police: Police,
    /// Whether received packets are sampled.
    pub sflow: bool,
    /// The bond that it is a member of. The file says it of the bond, under `bondethernets`.
    #[serde(skip)]
    pub bond: Option<String>,
    /// Whether labelled packets are taken.
    #[serde(skip_serializing_if = "is_false")]
    pub mpls: bool,
    /// The worker of receive queue 0, 1, …; queues beyond the list are placed by the router.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rx_queue_workers: Vec<u16>,
    /// What hosts on the link are told of this router; nothing when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router_advertisements: Option<RouterAdvertisements>,
}

/// What hosts are told of a router, and how often (RFC 4861 section 6.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct RouterAdvertisements {
    /// The most seconds between two.
    pub interval: u16,
    /// Seconds that it may be taken for a default router; 0 = never.
    pub lifetime: u16,
    /// Whether addresses come from DHCPv6.
    pub managed: bool,
    /// Whether other settings come from DHCPv6.
    pub other: bool,
}

impl Default for RouterAdvertisements {
    fn default() -> Self {
        Self {
            interval: 600,
            lifetime: 1800,
            managed: false,
            other: false,
        }
    }
}

impl Interface {
    /// Whether there is nothing behind it, and it only has addresses.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.device == Some(Device::Loopback)
    }

    /// Whether packets come in and leave by a device of its own, if it has one.
    #[must_use]
    pub fn is_port(&self) -> bool {
        !matches!(
            self.device,
            Some(
                Device::Loopback
                    | Device::SubInterface(_)
                    | Device::Bond(_)
                    | Device::Pseudowire
                    | Device::Vxlan(_)
            )
        )
    }

    /// What makes it a sub-interface, if it is one.
    #[must_use]
    pub fn sub_interface(&self) -> Option<&SubInterface> {
        match &self.device {
            Some(Device::SubInterface(sub)) => Some(sub),
            _ => None,
        }
    }

    /// What makes it a bond, if it is one.
    #[must_use]
    pub fn as_bond(&self) -> Option<&Bond> {
        match &self.device {
            Some(Device::Bond(bond)) => Some(bond),
            _ => None,
        }
    }

    /// What makes it a VXLAN tunnel, if it is one.
    #[must_use]
    pub fn as_vxlan(&self) -> Option<&Vxlan> {
        match &self.device {
            Some(Device::Vxlan(tunnel)) => Some(tunnel),
            _ => None,
        }
    }

    /// Whether it takes part in IPv6: it has an IPv6 address, and so a link-local one, too.
    #[must_use]
    pub fn has_ipv6(&self) -> bool {
        self.addresses.iter().any(|net| matches!(net, IpNet::V6(_)))
    }
}

impl Default for Interface {
    fn default() -> Self {
        Self {
            description: None,
            device: None,
            mac: None,
            mtu: 1500,
            state: AdminState::Up,
            vrf: None,
            addresses: BTreeSet::new(),
            unnumbered: None,
            l2xc: None,
            acl: Binding::default(),
            urpf: None,
            police: Police::default(),
            sflow: false,
            bond: None,
            mpls: false,
            rx_queue_workers: Vec::new(),
            router_advertisements: None,
        }
    }
}

/// The policers of an interface; a direction without one is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Police {
    /// Of what comes in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Policer>,
    /// Of what goes out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Policer>,
}

impl Police {
    /// Whether nothing is limited.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.input.is_none() && self.output.is_none()
    }
}

impl fmt::Display for Police {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.input, self.output) {
            (None, None) => f.write_str("off"),
            (Some(input), None) => write!(f, "in {input}"),
            (None, Some(output)) => write!(f, "out {output}"),
            (Some(input), Some(output)) => write!(f, "in {input} out {output}"),
        }
    }
}

/// A policer of a single rate (RFC 2697 with an excess burst of 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Policer {
    /// Bits a second.
    pub rate: u64,
    /// Bytes that may come at once.
    pub burst: u32,
}

impl fmt::Display for Policer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s burst {}", self.rate, self.burst)
    }
}

/// How strictly the way back to a packet's source is looked at (RFC 3704).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Urpf {
    /// A route must lead there, the default route if there is no other.
    Loose,
    /// One must leave by the interface that the packet came in by.
    Strict,
}

impl std::fmt::Display for Urpf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Loose => "loose",
            Self::Strict => "strict",
        })
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Via {
    /// Packets are dropped, counted.
    #[serde(rename = "blackhole")]
    Blackhole,
    /// Packets are dropped, and their senders told that the destination is unreachable.
    #[serde(rename = "unreachable")]
    Unreachable,
    /// Packets are dropped, and their senders told that they may not go there.
    #[serde(rename = "prohibit")]
    Prohibit,
    /// To one of these, chosen by flow; flows keep their paths when others come and go.
    #[serde(rename = "resilient")]
    Resilient(Vec<Path>),
    /// To one of these, chosen by flow.
    #[serde(untagged)]
    Paths(Vec<Path>),
}

impl Via {
    /// The paths; none of a route that leads nowhere.
    #[must_use]
    pub fn paths(&self) -> &[Path] {
        match self {
            Self::Paths(paths) | Self::Resilient(paths) => paths,
            Self::Blackhole | Self::Unreachable | Self::Prohibit => &[],
        }
    }

    /// Whether the way to a next hop is looked up in a table.
    #[must_use]
    pub fn is_recursive(&self) -> bool {
        self.paths()
            .iter()
            .any(|path| path.next_hop_table.is_some())
    }

    /// The words of the file for routes that lead nowhere.
    pub(crate) const WORDS: [&'static str; 3] = ["blackhole", "unreachable", "prohibit"];

    /// What such a word stands for.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        match word {
            "blackhole" => Some(Self::Blackhole),
            "unreachable" => Some(Self::Unreachable),
            "prohibit" => Some(Self::Prohibit),
            _ => None,
        }
    }
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Blackhole => f.write_str("blackhole"),
            Self::Unreachable => f.write_str("unreachable"),
            Self::Prohibit => f.write_str("prohibit"),
            Self::Paths(paths) | Self::Resilient(paths) => {
                if matches!(self, Self::Resilient(_)) {
                    f.write_str("resilient ")?;
                }
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Path {
    /// The neighbour that packets are handed to; it may be of the other IP version (RFC 8950).
    pub next_hop: IpAddr,
    /// The interface it is behind; found by its subnet when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The table whose longest match says how it is reached; it is on a link when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_hop_table: Option<String>,
    /// Its share of flows beside the other paths.
    #[serde(default = "one_weight")]
    pub weight: u8,
    /// MPLS labels that are pushed, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<u32>,
    /// Where their time to live comes from; a pushed label knows no `short-pipe`.
    #[serde(default, skip_serializing_if = "TtlMode::is_uniform")]
    pub ttl_mode: TtlMode,
    /// Their traffic class; that of what they are pushed onto when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_class: Option<u8>,
    /// Whether an entropy label is pushed below the outermost one (RFC 6790).
    #[serde(default, skip_serializing_if = "is_false")]
    pub entropy_label: bool,
}

impl Path {
    /// A path to a neighbour, found by its subnet, without labels.
    #[must_use]
    pub fn to(next_hop: IpAddr) -> Self {
        Self {
            next_hop,
            interface: None,
            next_hop_table: None,
            weight: 1,
            labels: Vec::new(),
            ttl_mode: TtlMode::default(),
            traffic_class: None,
            entropy_label: false,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands it a reference"
)]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
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
        if let Some(table) = &self.next_hop_table {
            write!(f, " by table {table}")?;
        }
        if self.weight != 1 {
            write!(f, " weight {}", self.weight)?;
        }
        for (index, label) in self.labels.iter().enumerate() {
            write!(f, "{}{label}", if index == 0 { " labels " } else { "/" })?;
        }
        if self.ttl_mode != TtlMode::default() {
            write!(f, " {}", self.ttl_mode)?;
        }
        if let Some(class) = self.traffic_class {
            write!(f, " traffic-class {class}")?;
        }
        f.write_str(if self.entropy_label {
            " entropy-label"
        } else {
            ""
        })
    }
}

/// What identifies a static neighbour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NeighborKey {
    /// The interface it is behind.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
}
