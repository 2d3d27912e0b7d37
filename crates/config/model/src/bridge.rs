//! Bridge domains in the configuration: what a domain is, what it is read from, and how it is taken
//! apart for plans.
//!
//! Keys are vppcfg's; `split-horizon-groups`, `static-macs`, `arp-entries` and the limits are Weir's own. A domain is
//! made and deleted *at rest*, without members, BVI and static entries; those follow, or precede, as
//! steps of their own, so that a change touches only what it is about.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use weir_config_derive::Section;

use crate::scalar::MacAddr;

/// One bridge domain.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{interfaces: [xe0, xe1]}")]
pub struct Bridge {
    /// Free text; absent by default.
    #[key(kind = Text(255), example = "the office")]
    pub description: Option<String>,
    /// The MTU of all its members and of its BVI.
    #[key(kind = Whole(128, 9216), default = 1500, example = "9000")]
    pub mtu: u16,
    /// The loopback that is its bridge virtual interface (BVI): hosts in the domain reach the
    /// router at its addresses.
    #[key(kind = InterfaceName, example = "loop0")]
    pub bvi: Option<String>,
    /// Its members: interfaces without addresses and cross connect, each in one domain.
    #[key(items = (0, 4096), kind = InterfaceName, example = "[xe0, xe1]", item = "A member.")]
    pub interfaces: BTreeSet<String>,
    /// Members that send nothing to one another, as those towards the other routers of a full mesh.
    #[key(items = (0, 4096), example = "[{interface: xe0, group: 1}]")]
    pub split_horizon_groups: BTreeSet<SplitHorizon>,
    /// MAC addresses that are bound to one member; frames of others with such a source are dropped.
    #[key(items = (0, 16_384), example = "[{mac: 02:00:00:00:00:07, interface: xe0}]")]
    pub static_macs: BTreeSet<StaticMac>,
    /// Addresses of hosts, for `arp-termination` and `arp-unicast-forward`.
    #[key(
        list = ArpEntry, items = (0, 65_536),
        example = "[{address: 192.0.2.7, mac: 02:00:00:00:00:07}]"
    )]
    pub arp_entries: BTreeMap<IpAddr, MacAddr>,
    /// How it treats frames.
    pub settings: BridgeSettings,
}

/// One address.
#[derive(Section)]
#[section(example = "{address: 192.0.2.7, mac: 02:00:00:00:00:07}")]
struct ArpEntry {
    /// The address, of either IP version.
    #[key(required, kind = Neighbor, example = "192.0.2.7")]
    address: IpAddr,
    /// The MAC address of the host that has it.
    #[key(required, example = "02:00:00:00:00:07")]
    mac: MacAddr,
}

impl From<ArpEntry> for (IpAddr, MacAddr) {
    fn from(entry: ArpEntry) -> Self {
        (entry.address, entry.mac)
    }
}

impl From<(&IpAddr, &MacAddr)> for ArpEntry {
    fn from((address, mac): (&IpAddr, &MacAddr)) -> Self {
        Self {
            address: *address,
            mac: *mac,
        }
    }
}

/// One member's group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Section)]
#[section(example = "{interface: xe0, group: 1}")]
pub struct SplitHorizon {
    /// The member.
    #[key(required, kind = InterfaceName, example = "xe0")]
    pub interface: String,
    /// Its group.
    #[key(required, kind = Whole(1, 255), example = "1")]
    pub group: u8,
}

/// One MAC address behind a member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Section)]
#[section(example = "{mac: 02:00:00:00:00:07, interface: xe0}")]
pub struct StaticMac {
    /// The MAC address.
    #[key(required, example = "02:00:00:00:00:07")]
    pub mac: MacAddr,
    /// The member that it is behind.
    #[key(required, kind = InterfaceName, example = "xe0")]
    pub interface: String,
}

/// How a bridge domain treats frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{mac-age-minutes: 10}")]
pub struct BridgeSettings {
    /// Whether it learns MAC addresses.
    #[key(default = true, example = "false")]
    pub learn: bool,
    /// Whether frames for groups, broadcast among them, are sent to all members. (The name is
    /// vppcfg's, for VPP's `flood`.)
    #[key(default = true, example = "false")]
    pub unicast_flood: bool,
    /// Whether frames for unknown MAC addresses are sent to all members.
    #[key(default = true, example = "false")]
    pub unknown_unicast_flood: bool,
    /// Whether frames are forwarded to known MAC addresses.
    #[key(default = true, example = "false")]
    pub unicast_forward: bool,
    /// Minutes without a frame after which a MAC address is removed; 0 = never. (vppcfg's default
    /// is 0; this one is IEEE 802.1Q's.)
    #[key(kind = Whole(0, 255), default = 5, example = "10")]
    pub mac_age_minutes: u8,
    /// Maximum number of MAC addresses that it learns; frames of others are forwarded all the same.
    #[key(kind = Whole(1, 1_048_576), default = 16_384, example = "1000")]
    pub mac_limit: u32,
    /// Maximum frames per second for groups that each member may send, others are dropped; 0 = no
    /// limit. The burst is a tenth of it, at least 16.
    #[key(kind = Whole(0, 100_000_000), default = 0, example = "1000")]
    pub flood_limit: u32,
    /// The same for frames to unknown MAC addresses.
    #[key(kind = Whole(0, 100_000_000), default = 0, example = "1000")]
    pub unknown_unicast_limit: u32,
    /// Whether it answers requests for an address of `arp-entries` itself, by ARP or neighbour
    /// discovery; other requests are flooded.
    #[key(example = "true")]
    pub arp_termination: bool,
    /// Whether such requests are forwarded to the host alone; takes precedence over
    /// `arp-termination`.
    #[key(example = "true")]
    pub arp_unicast_forward: bool,
}

/// What an interface is in a bridge domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeRole {
    /// A member of this split-horizon group; 0 is none.
    Member(u8),
    /// The routed side.
    Bvi,
}

impl std::fmt::Display for BridgeRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Member(0) => f.write_str("member"),
            Self::Member(group) => write!(f, "member, split-horizon group {group}"),
            Self::Bvi => f.write_str("bvi"),
        }
    }
}

impl Bridge {
    /// This domain as it is made and deleted: nothing in it.
    #[must_use]
    pub fn at_rest(&self) -> Self {
        let (description, mtu, settings) = (self.description.clone(), self.mtu, self.settings);
        Self {
            description,
            mtu,
            settings,
            arp_entries: self.arp_entries.clone(),
            ..Self::default()
        }
    }

    /// What an interface is here, if anything.
    #[must_use]
    pub fn role_of(&self, interface: &str) -> Option<BridgeRole> {
        if self.bvi.as_deref() == Some(interface) {
            return Some(BridgeRole::Bvi);
        }
        let group = self
            .split_horizon_groups
            .iter()
            .find(|it| it.interface == interface)
            .map_or(0, |it| it.group);
        self.interfaces
            .contains(interface)
            .then_some(BridgeRole::Member(group))
    }

    /// All that is in it.
    pub fn roles(&self) -> impl Iterator<Item = (&str, BridgeRole)> {
        let all = self.interfaces.iter().chain(&self.bvi);
        all.filter_map(|name| Some((name.as_str(), self.role_of(name)?)))
    }

    /// Takes an interface in; `None` when it is there already.
    pub(crate) fn join(&mut self, interface: &str, role: BridgeRole) -> Option<()> {
        if self.role_of(interface).is_some() {
            return None;
        }
        match role {
            BridgeRole::Bvi if self.bvi.is_some() => return None,
            BridgeRole::Bvi => self.bvi = Some(interface.to_owned()),
            BridgeRole::Member(group) => {
                self.interfaces.insert(interface.to_owned());
                if group != 0 {
                    self.split_horizon_groups.insert(SplitHorizon {
                        interface: interface.to_owned(),
                        group,
                    });
                }
            }
        }
        Some(())
    }

    /// Lets an interface go; `None` when it is not there in this role.
    pub(crate) fn leave(&mut self, interface: &str, role: BridgeRole) -> Option<()> {
        if self.role_of(interface) != Some(role) {
            return None;
        }
        match role {
            BridgeRole::Bvi => self.bvi = None,
            BridgeRole::Member(_) => {
                self.interfaces.remove(interface);
                self.split_horizon_groups
                    .retain(|it| it.interface != interface);
            }
        }
        Some(())
    }
}
