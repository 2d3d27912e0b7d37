//! Interfaces and their counters, as `GET /v1/interfaces` tells them.
//!
//! An interface is not a port: it may sit on one (`device`, `driver`), on another interface
//! (`parent`) or on nothing. Counters are sums over all workers since the last
//! `POST /v1/clear/interfaces`; bytes count frames without their FCS.

use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All interfaces, in the order of their index.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Interfaces {
    /// The interfaces.
    pub interfaces: Vec<Interface>,
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Its name in the configuration.
    pub name: String,
    /// Its stable number: the ifIndex that sFlow and SNMP know it by.
    pub index: u32,
    /// What it is in the tree of interfaces.
    pub kind: InterfaceKind,
    /// The interface that it is a part of, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The device in the system, if any: a network device, a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The driver as the configuration spells it: `af-xdp`, `tap`, `pcap`, `memif`, `null`, `generator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its unicast MAC address, six pairs of lower-case hex digits with colons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The largest IP packet that leaves it, in bytes.
    pub mtu: u32,
    /// Whether it is wanted up.
    pub admin: UpDown,
    /// Whether it can carry packets.
    pub link: UpDown,
    /// Its speed in bits per second; 0 = unknown.
    pub speed: u64,
    /// Free text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its own addresses, each with the length of its subnet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub addresses: Vec<IpNet>,
    /// Own addresses that are not used yet: whether somebody else has them is being asked (RFC 4862).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tentative: Vec<IpAddr>,
    /// Own addresses that are not used because somebody else has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub duplicate: Vec<IpAddr>,
    /// The table (VRF) that routes what comes in; the default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// The interface whose addresses it borrows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnumbered: Option<String>,
    /// The interface that everything received here leaves by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2xc: Option<String>,
    /// The tags of its frames, of a sub-interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encapsulation: Option<Encapsulation>,
    /// What becomes of the tags of frames that cross, as the configuration says it; as usual when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag_rewrite: Option<String>,
    /// The bridge domain that it is a member of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge_domain: Option<String>,
    /// Whether labelled packets are taken.
    #[serde(default)]
    pub mpls: bool,
    /// How strictly the way back to sources is looked at: `loose`, `strict`; not at all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urpf: Option<String>,
    /// Whether received packets are sampled.
    pub sflow: bool,
    /// What it received.
    pub rx: Traffic,
    /// What it sent.
    pub tx: Traffic,
    /// Frames that were lost or broken before the router saw them (no buffer, ring full).
    pub rx_errors: u64,
    /// Frames that could not be sent (ring full, device gone).
    pub tx_errors: u64,
    /// Packets dropped that were received here, or were to leave here.
    pub drops: u64,
    /// The same by node and reason; reasons that never occurred are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops_by: Vec<InterfaceDrop>,
}

/// The tags of a sub-interface's frames: an outer one, of 802.1Q or 802.1ad, and perhaps one behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Encapsulation {
    /// VLAN of an outer 802.1Q tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dot1q: Option<u16>,
    /// VLAN of an outer 802.1ad tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dot1ad: Option<u16>,
    /// VLAN of the 802.1Q tag behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner_dot1q: Option<u16>,
    /// Whether nothing but these tags may be there.
    pub exact_match: bool,
}

impl std::fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outer = [
            ("dot1q", self.dot1q),
            ("dot1ad", self.dot1ad),
            ("inner-dot1q", self.inner_dot1q),
        ];
        let tags: Vec<String> = outer
            .iter()
            .filter_map(|(kind, vlan)| vlan.map(|vlan| format!("{kind} {vlan}")))
            .collect();
        let exact = if self.exact_match { " exact-match" } else { "" };
        write!(
            f,
            "{}{exact}",
            if tags.is_empty() {
                "no tag".to_owned()
            } else {
                tags.join(" ")
            }
        )
    }
}

/// The kinds of interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceKind {
    /// On a port of its own.
    Port,
    /// Several ports as one.
    Bond,
    /// A VLAN of another interface.
    SubInterface,
    /// On nothing; always up.
    Loopback,
    /// The routed end of a bridge domain.
    Bvi,
    /// What comes out of a pseudowire.
    Pseudowire,
    /// One end of a VXLAN tunnel.
    Vxlan,
}

impl std::fmt::Display for InterfaceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Port => "port",
            Self::Bond => "bond",
            Self::SubInterface => "sub-interface",
            Self::Loopback => "loopback",
            Self::Bvi => "bvi",
            Self::Pseudowire => "pseudowire",
            Self::Vxlan => "vxlan",
        })
    }
}

/// Up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpDown {
    /// Packets pass.
    Up,
    /// They do not.
    Down,
}

impl From<bool> for UpDown {
    fn from(up: bool) -> Self {
        if up { Self::Up } else { Self::Down }
    }
}

impl std::fmt::Display for UpDown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Up => "up",
            Self::Down => "down",
        })
    }
}

/// Packets in one direction; `packets` = `unicast` + `multicast` + `broadcast`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes of frames, FCS not counted.
    pub bytes: u64,
    /// Packets to one station.
    pub unicast: u64,
    /// Packets to a group of stations.
    pub multicast: u64,
    /// Packets to all stations.
    pub broadcast: u64,
}

/// How many packets of one interface one node dropped for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceDrop {
    /// The node that dropped them.
    pub node: String,
    /// Why: the reason's name in the table of drop reasons.
    pub reason: String,
    /// How many.
    pub count: u64,
}
