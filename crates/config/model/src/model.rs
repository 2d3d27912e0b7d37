//! The configuration as a value: the desired state of the router.
//!
//! A `Config` says what is *wanted* or what *runs*; the same type serves for both, which is what
//! lets `plan` be a pure function of two of them. Collections are ordered maps and sets keyed by
//! what identifies the thing (an interface's name, a route's prefix), so that two configurations
//! that mean the same are equal, in whatever order the file was written.
//!
//! The shape of the file is in `file.rs`: a `Config` serialised to JSON (which is YAML, too) is a
//! file that `check` accepts and reads back as the same value.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use weir_config_derive::{Section, Words};

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

/// The whole configuration of one router.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// BGP policy, whose keys belong to `weir peering`.
    pub peering: Option<serde_json::Value>,
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

/// A routing table in addition to the default one, for both IP versions.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{table: 10}")]
pub struct Vrf {
    /// Its number, which no other table has; the default table's is 0.
    #[key(required, kind = Whole(1, u32::MAX as u64), example = "10")]
    pub table: u32,
    /// Free text; absent by default.
    #[key(kind = Text(255), example = "customer red")]
    pub description: Option<String>,
}

/// What identifies a static route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteKey {
    /// The table it is in; the default one when absent.
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
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{mtu: 1500}")]
pub struct Interface {
    /// Free text; absent by default.
    #[key(kind = Text(255), example = "to the core")]
    pub description: Option<String>,
    /// What the interface is attached to; one without a device exists but carries no packets.
    #[key(on = ["interface"])]
    pub device: Option<Device>,
    /// Its MAC address. When absent, that of the device; that of a loopback is generated.
    #[key(on = ["interface", "loopback"], example = "02:00:00:00:00:01")]
    pub mac: Option<MacAddr>,
    /// The MTU: the size of the largest IP packet that leaves it, in bytes.
    #[key(
        on = ["interface", "loopback"], kind = Whole(128, 9216), default = 1500, example = "9000"
    )]
    pub mtu: u16,
    /// The administrative state. A sub-interface is down while its parent is.
    #[key(on = ["interface", "sub-interface"], example = "down")]
    pub state: AdminState,
    /// The table that routes received packets, and that its own subnets are in; the default one
    /// when absent, also for a sub-interface of an interface with a VRF.
    #[key(kind = VrfName, example = "red")]
    pub vrf: Option<String>,
    /// Own IPv4 and IPv6 addresses with their subnets. No two interfaces of one table share a
    /// subnet. An interface with an IPv6 address also has a link-local one, derived from its MAC
    /// address unless one is given here.
    #[key(
        items = (0, 65_536), kind = OwnAddress, example = "[192.0.2.1/24, '2001:db8::1/64']",
        item = "An own address."
    )]
    pub addresses: BTreeSet<IpNet>,
    /// The interface that all received frames leave by, unchanged (L2 cross connect). Neither of
    /// the two has addresses, both have the same MTU, and an interface is the target of at most one
    /// other. For both directions, set it on both. A frame of a sub-interface arrives without its
    /// tags, unless `tag-rewrite` says otherwise, and leaves with those of the other.
    #[key(on = ["interface", "sub-interface"], kind = InterfaceName, example = "xe1")]
    pub l2xc: Option<String>,
    /// The access lists that its packets pass; what no term of them matches is dropped, what is not
    /// IP passes. Those of a parent are not applied to its sub-interfaces. The name `acls` is read,
    /// too.
    #[key(on = ["interface", "sub-interface"])]
    pub acl: Binding,
    /// Unicast reverse path forwarding (RFC 3704): drop received packets from a source to which no
    /// route exists (`loose`; the default route counts, a `blackhole` one does not) or none by this
    /// interface (`strict`; each path of a route counts). Not checked when absent.
    #[key(on = ["interface", "sub-interface"], example = "strict")]
    pub urpf: Option<Urpf>,
    /// A policer for each direction: a single rate, two colours (RFC 2697 in its colour-blind mode
    /// with an excess burst of 0). What does not conform is dropped (`policed`). Bytes are counted
    /// from the IP header on, or behind the Ethernet header. The input policer is applied before
    /// access lists and `urpf`, the output policer after access lists; `weir show feature
    /// interface` lists the order. ARP, IPv6 neighbour discovery for groups and LACP are not
    /// policed. Packets of a sub-interface pass its own input policer only; its output policer is
    /// followed by the parent's.
    #[key(on = ["interface", "sub-interface"])]
    pub police: Police,
    /// Whether packets are sampled (see `sflow.direction`).
    #[key(on = ["interface"], example = "true")]
    pub sflow: bool,
    /// Whether received packets with labels (MPLS) are accepted; sending them needs no setting. A
    /// sub-interface needs `exact-match` for it.
    #[key(example = "true")]
    pub mpls: bool,
    /// The worker of receive queue 0, 1, …; the router places queues beyond the list.
    #[key(
        on = ["interface"], items = (0, 64), kind = Whole(0, 63), example = "[0, 1]",
        item = "A worker, counted from 0."
    )]
    pub rx_queue_workers: Vec<u16>,
    /// Advertise this router to the hosts on the link (RFC 4861), for a loopback those of the bridge
    /// domain whose BVI it is; no advertisements when absent. Hosts then configure addresses of the
    /// interface's IPv6 subnets of 64 bits, and use it as a default router.
    pub router_advertisements: Option<RouterAdvertisements>,
    /// The interface whose addresses are borrowed, usually a loopback: packets are routed here, and
    /// packets of the router itself have those as source, though its subnets are not on this link.
    /// Next hops and static neighbors name this interface and may have any address; neighbors of
    /// the borrowed subnets are learned. It has no addresses of its own, and both are in one table.
    #[key(kind = InterfaceName, example = "xe1")]
    pub unnumbered: Option<String>,
    /// The bond that it is a member of. The file has it in the bond, under `bondethernets`.
    #[key(skip)]
    pub bond: Option<String>,
}

/// What is advertised to hosts, and how often (RFC 4861 section 6.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{interval: 200, lifetime: 600}")]
pub struct RouterAdvertisements {
    /// Maximum seconds between two advertisements; the minimum is a third of it.
    #[key(required, default = 600, kind = Whole(4, 1800), example = "200")]
    pub interval: u16,
    /// Seconds for which hosts may use it as a default router after each; 0 = never, otherwise not
    /// below `interval`.
    #[key(kind = Whole(0, 9000), default = 1800, example = "600")]
    pub lifetime: u16,
    /// Whether hosts are instructed to request addresses by DHCPv6.
    #[key(example = "true")]
    pub managed: bool,
    /// Whether hosts are instructed to request other settings by DHCPv6.
    #[key(example = "true")]
    pub other: bool,
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

/// The policers of an interface; a direction without one is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{input: {rate: 100000000, burst: 125000}}")]
pub struct Police {
    /// The policer of received packets; no limit when absent.
    pub input: Option<Policer>,
    /// The policer of sent packets; no limit when absent.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{rate: 100000000, burst: 125000}")]
pub struct Policer {
    /// Bits per second, the committed information rate.
    #[key(required, kind = Whole(8000, 1_000_000_000_000), example = "100000000")]
    pub rate: u64,
    /// Bytes of the committed burst size. A longer packet never conforms.
    #[key(required, kind = Whole(128, u32::MAX as u64), example = "125000")]
    pub burst: u32,
}

impl fmt::Display for Policer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s burst {}", self.rate, self.burst)
    }
}

/// How strictly the reverse path of a packet's source is checked (RFC 3704).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Words)]
pub enum Urpf {
    /// A route to the source must exist, also the default route.
    Loose,
    /// One must leave by the interface that received the packet.
    Strict,
}

/// The administrative state of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum AdminState {
    /// Packets pass.
    #[default]
    Up,
    /// Nothing is received and nothing sent.
    Down,
}

/// Where a route leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Via {
    /// Packets are dropped, counted.
    Blackhole,
    /// Packets are dropped, and their senders receive ICMP "unreachable".
    Unreachable,
    /// Packets are dropped, and their senders receive ICMP "prohibited".
    Prohibit,
    /// To one of these, selected by flow; flows keep their paths when others are added or removed.
    Resilient(Vec<Path>),
    /// To one of these, selected by flow.
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

    /// Whether a next hop is looked up in a table.
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

/// One next hop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Section)]
#[section(example = "{next-hop: 192.0.2.254, weight: 2}")]
pub struct Path {
    /// Its address. That of an IPv4 route may be IPv6 (RFC 8950); that of an IPv6 route may be IPv4
    /// where there are `labels` (RFC 4798).
    #[key(required, kind = Neighbor, example = "192.0.2.254")]
    pub next_hop: IpAddr,
    /// The interface that it is reached by; found by its subnet when absent. A link-local next hop
    /// needs it.
    #[key(kind = InterfaceName, example = "xe0")]
    pub interface: Option<String>,
    /// The table, `default` or a VRF, whose longest match resolves the next hop, which then need
    /// not be on a link (a recursive next hop); it follows changes of that table.
    #[key(on = ["route"], kind = TableName, example = "default")]
    pub next_hop_table: Option<String>,
    /// Its share of flows, relative to the other next hops.
    #[key(kind = Whole(1, 255), default = 1, example = "2")]
    pub weight: u8,
    /// MPLS labels that are pushed, outermost first; of an entry of a label, in place of the
    /// incoming one.
    #[key(
        items = (0, 16), kind = Whole(0, 1_048_575), example = "[100, 200]",
        item = "A label: 16 to 1048575, or an explicit null, 0 for IPv4 and 2 for IPv6."
    )]
    pub labels: Vec<u32>,
    /// The TTL of pushed labels (RFC 3443): that of the packet (`uniform`), or 255 (`pipe`).
    #[key(
        on = ["route", "label"], kind = Word(&["uniform", "pipe"]), example = "pipe", omit_default
    )]
    pub ttl_mode: TtlMode,
    /// Traffic class of pushed labels (RFC 5462). When absent, that of the label below, the upper
    /// three bits of the DSCP of an IP packet, or the priority of the outer tag of a frame.
    #[key(kind = Whole(0, 7), example = "5")]
    pub traffic_class: Option<u8>,
    /// Whether an entropy label and its indicator are pushed below the outermost label (RFC 6790),
    /// so that routers on the path distinguish flows; the end of that label's path must support
    /// them.
    #[key(example = "true")]
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NeighborKey {
    /// The interface it is behind.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
}
