//! Bridge domains in the configuration: what a domain is, what it is read from, and how it is taken
//! apart for plans.
//!
//! Keys are vppcfg's; `split-horizon-groups`, `static-macs`, `arp-entries` and the limits are Weir's own. A domain is
//! made and deleted *at rest*, without members, BVI and static entries; those follow, or precede, as
//! steps of their own, so that a change touches only what it is about.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::build::{items, number, parsed, text, truth};
use crate::scalar::MacAddr;
use crate::tree::Node;

/// One bridge domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Bridge {
    /// Free text for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The MTU of all members.
    pub mtu: u16,
    /// The loopback that is its routed side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bvi: Option<String>,
    /// Its members.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub interfaces: BTreeSet<String>,
    /// Members that do not send to others of their group.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub split_horizon_groups: BTreeSet<SplitHorizon>,
    /// Stations whose place is not learned.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub static_macs: BTreeSet<StaticMac>,
    /// Addresses of stations, for ARP termination.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", with = "arp_list")]
    pub arp_entries: BTreeMap<IpAddr, MacAddr>,
    /// What is done with frames.
    pub settings: BridgeSettings,
}

/// The file writes them as a list.
mod arp_list {
    use std::collections::BTreeMap;
    use std::net::IpAddr;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::scalar::MacAddr;

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Entry {
        address: IpAddr,
        mac: MacAddr,
    }

    pub(super) fn serialize<S: Serializer>(
        entries: &BTreeMap<IpAddr, MacAddr>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(entries.iter().map(|(address, mac)| Entry {
            address: *address,
            mac: *mac,
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<IpAddr, MacAddr>, D::Error> {
        Ok(Vec::<Entry>::deserialize(deserializer)?
            .into_iter()
            .map(|entry| (entry.address, entry.mac))
            .collect())
    }
}

impl Default for Bridge {
    fn default() -> Self {
        Self {
            description: None,
            mtu: 1500,
            bvi: None,
            interfaces: BTreeSet::new(),
            split_horizon_groups: BTreeSet::new(),
            static_macs: BTreeSet::new(),
            arp_entries: BTreeMap::new(),
            settings: BridgeSettings::default(),
        }
    }
}

/// A member in a split-horizon group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SplitHorizon {
    /// The member.
    pub interface: String,
    /// Its group, from 1.
    pub group: u8,
}

/// A station behind a member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StaticMac {
    /// The station.
    pub mac: MacAddr,
    /// The member it is behind.
    pub interface: String,
}

/// What a bridge domain does with frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct BridgeSettings {
    /// Learn where stations are.
    pub learn: bool,
    /// Send frames for groups to all members.
    pub unicast_flood: bool,
    /// Send frames for unknown stations to all members.
    pub unknown_unicast_flood: bool,
    /// Send frames to stations that are known.
    pub unicast_forward: bool,
    /// Answer who asks for an address of `arp_entries`.
    pub arp_termination: bool,
    /// Send such questions to the station alone.
    pub arp_unicast_forward: bool,
    /// Minutes of silence after which a station is forgotten; 0 = never.
    pub mac_age_minutes: u8,
    /// How many stations are learned at most.
    pub mac_limit: u32,
    /// Frames for groups that a member may send a second; 0 = any number.
    pub flood_limit: u32,
    /// Frames for unknown stations that a member may send a second; 0 = any number.
    pub unknown_unicast_limit: u32,
}

impl Default for BridgeSettings {
    fn default() -> Self {
        Self {
            learn: true,
            unicast_flood: true,
            unknown_unicast_flood: true,
            unicast_forward: true,
            arp_termination: false,
            arp_unicast_forward: false,
            mac_age_minutes: 5,
            mac_limit: 16_384,
            flood_limit: 0,
            unknown_unicast_limit: 0,
        }
    }
}

/// What an interface is in a bridge domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

/// Reads a domain, as far as it can be read.
pub(crate) fn build(node: &Node<'_>) -> Bridge {
    let default = Bridge::default();
    let name = |node: &Node<'_>| {
        node.text()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    Bridge {
        description: text(node, "description"),
        mtu: number(node, "mtu").unwrap_or(default.mtu),
        bvi: text(node, "bvi"),
        interfaces: items(node, "interfaces")
            .filter_map(|(_, item)| name(item))
            .collect(),
        split_horizon_groups: items(node, "split-horizon-groups")
            .filter_map(|(_, item)| {
                Some(SplitHorizon {
                    interface: text(item, "interface")?,
                    group: number(item, "group")?,
                })
            })
            .collect(),
        static_macs: items(node, "static-macs")
            .filter_map(|(_, item)| {
                Some(StaticMac {
                    mac: parsed(item, "mac")?,
                    interface: text(item, "interface")?,
                })
            })
            .collect(),
        arp_entries: items(node, "arp-entries")
            .filter_map(|(_, item)| Some((parsed(item, "address")?, parsed(item, "mac")?)))
            .collect(),
        settings: node.value("settings").map_or(default.settings, settings),
    }
}

fn settings(node: &Node<'_>) -> BridgeSettings {
    let default = BridgeSettings::default();
    let truth = |key: &str, default: bool| truth(node, key).unwrap_or(default);
    BridgeSettings {
        learn: truth("learn", default.learn),
        unicast_flood: truth("unicast-flood", default.unicast_flood),
        unknown_unicast_flood: truth("unknown-unicast-flood", default.unknown_unicast_flood),
        unicast_forward: truth("unicast-forward", default.unicast_forward),
        arp_termination: truth("arp-termination", default.arp_termination),
        arp_unicast_forward: truth("arp-unicast-forward", default.arp_unicast_forward),
        mac_age_minutes: number(node, "mac-age-minutes").unwrap_or(default.mac_age_minutes),
        mac_limit: number(node, "mac-limit").unwrap_or(default.mac_limit),
        flood_limit: number(node, "flood-limit").unwrap_or(default.flood_limit),
        unknown_unicast_limit: number(node, "unknown-unicast-limit")
            .unwrap_or(default.unknown_unicast_limit),
    }
}
