//! The shape that a `Config` has when it is written: the file's sections.
//!
//! The model has one map of interfaces. The file has three sections of them, in vppcfg's form:
//! a loopback stands under `loopbacks` and nowhere else; a TAP called `tapN` has its Linux end
//! under `taps` and everything else under `interfaces`. Any other TAP stands under `interfaces`
//! with its `device`. Both spellings of a TAP read as the same value. A sub-interface stands under its parent.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::access_list::{AccessList, Binding, PrefixList};
use crate::bond::Bond;
use crate::bridge::Bridge;
use crate::device::Device;
use crate::ipfix::Ipfix;
use crate::keys::Names;
use crate::linux::Linux;
use crate::model::{
    AdminState, Config, Interface, NeighborKey, Police, RouteKey, RouterAdvertisements, Urpf, Via,
    Vrf, is_false,
};
use crate::mpls::Mpls;
use crate::pseudowire::Pseudowire;
use crate::scalar::MacAddr;
use crate::settings::{Api, Buffers, History, Ip4, Logging, Workers};
use crate::sflow::Sflow;
use crate::sub_interface::{Encapsulation, SubInterface, TagRewrite};
use crate::vxlan::Vxlan;

/// A configuration by the sections of the file.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct Written {
    interfaces: BTreeMap<String, Entry>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    loopbacks: BTreeMap<String, Loopback>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    taps: BTreeMap<String, Tap>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    bondethernets: BTreeMap<String, BondSection>,
    #[serde(rename = "vxlan_tunnels", skip_serializing_if = "BTreeMap::is_empty")]
    vxlan_tunnels: BTreeMap<String, VxlanSection>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    bridgedomains: BTreeMap<String, Bridge>,
    sflow: Sflow,
    ipfix: Ipfix,
    #[serde(skip_serializing_if = "Linux::is_empty")]
    linux: Linux,
    #[serde(skip_serializing_if = "Ip4::is_default")]
    ip4: Ip4,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    vrfs: BTreeMap<String, Vrf>,
    #[serde(with = "lists::routes")]
    routes: BTreeMap<RouteKey, Via>,
    #[serde(skip_serializing_if = "Mpls::is_empty")]
    mpls: Mpls,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pseudowires: BTreeMap<String, PseudowireSection>,
    #[serde(with = "lists::neighbors")]
    neighbors: BTreeMap<NeighborKey, MacAddr>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    prefixlists: BTreeMap<String, PrefixList>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    acls: BTreeMap<String, AccessList>,
    workers: Workers,
    buffers: Buffers,
    api: Api,
    logging: Logging,
    history: History,
}

/// An entry of `interfaces`: an interface and its sub-interfaces.
#[derive(Serialize, Deserialize, Default)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
struct Entry {
    interface: Interface,
    sub_interfaces: BTreeMap<u32, Sub>,
}

const SUB_INTERFACES: &str = "sub-interfaces";

impl TryFrom<Map<String, Value>> for Entry {
    type Error = serde_json::Error;

    fn try_from(mut keys: Map<String, Value>) -> Result<Self, Self::Error> {
        let sub_interfaces = keys
            .remove(SUB_INTERFACES)
            .map(serde_json::from_value)
            .transpose()?
            .unwrap_or_default();
        Ok(Self {
            interface: serde_json::from_value(Value::Object(keys))?,
            sub_interfaces,
        })
    }
}

impl From<Entry> for Map<String, Value> {
    fn from(entry: Entry) -> Self {
        // What is made of texts and numbers can be written.
        let value = |value: Result<Value, serde_json::Error>| value.unwrap_or_default();
        let Value::Object(mut keys) = value(serde_json::to_value(&entry.interface)) else {
            return Self::new();
        };
        if !entry.sub_interfaces.is_empty() {
            keys.insert(
                SUB_INTERFACES.into(),
                value(serde_json::to_value(&entry.sub_interfaces)),
            );
        }
        keys
    }
}

impl Clone for Entry {
    fn clone(&self) -> Self {
        Self {
            interface: self.interface.clone(),
            sub_interfaces: self.sub_interfaces.clone(),
        }
    }
}

/// An entry of `sub-interfaces`.
#[derive(Serialize, Deserialize, Clone)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Sub {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The parent's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtu: Option<u16>,
    #[serde(default)]
    state: AdminState,
    /// The number as VLAN when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encapsulation: Option<Encapsulation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vrf: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    addresses: BTreeSet<IpNet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unnumbered: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    l2xc: Option<String>,
    #[serde(default, skip_serializing_if = "Binding::is_empty")]
    acl: Binding,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    urpf: Option<Urpf>,
    #[serde(default, skip_serializing_if = "Police::is_empty")]
    police: Police,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag_rewrite: Option<TagRewrite>,
    #[serde(default, skip_serializing_if = "is_false")]
    mpls: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    router_advertisements: Option<RouterAdvertisements>,
}

impl Sub {
    fn of(interface: Interface, sub: &SubInterface, parent_mtu: u16) -> Self {
        let Interface {
            description,
            mtu,
            state,
            vrf,
            addresses,
            unnumbered,
            l2xc,
            acl,
            urpf,
            police,
            mpls,
            router_advertisements,
            ..
        } = interface;
        let mtu = Some(mtu).filter(|mtu| *mtu != parent_mtu);
        let encapsulation =
            Some(sub.encapsulation).filter(|tags| *tags != Encapsulation::of_id(sub.id));
        let tag_rewrite = sub.tag_rewrite;
        Self {
            description,
            mtu,
            state,
            encapsulation,
            vrf,
            addresses,
            unnumbered,
            l2xc,
            acl,
            urpf,
            police,
            mpls,
            tag_rewrite,
            router_advertisements,
        }
    }

    fn into_interface(self, parent: &str, id: u32, parent_mtu: u16) -> Interface {
        let Self {
            description,
            mtu,
            state,
            encapsulation,
            vrf,
            addresses,
            unnumbered,
            l2xc,
            ..
        } = self;
        let Self {
            acl,
            urpf,
            police,
            mpls,
            tag_rewrite,
            router_advertisements,
            ..
        } = self;
        let encapsulation = encapsulation.unwrap_or_else(|| Encapsulation::of_id(id));
        let tag_rewrite = tag_rewrite.filter(|rewrite| !rewrite.is_usual(&encapsulation));
        let device = Some(Device::SubInterface(SubInterface {
            parent: parent.to_owned(),
            id,
            encapsulation,
            tag_rewrite,
        }));
        let mtu = mtu.unwrap_or(parent_mtu);
        Interface {
            description,
            device,
            mtu,
            state,
            vrf,
            addresses,
            unnumbered,
            l2xc,
            acl,
            urpf,
            police,
            mpls,
            router_advertisements,
            ..Interface::default()
        }
    }
}

/// An entry of `loopbacks`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Loopback {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<MacAddr>,
    #[serde(default = "usual_mtu")]
    mtu: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vrf: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    addresses: BTreeSet<IpNet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unnumbered: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    mpls: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    router_advertisements: Option<RouterAdvertisements>,
}

fn usual_mtu() -> u16 {
    Interface::default().mtu
}

/// An entry of `taps`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Tap {
    #[serde(default, skip_serializing)]
    description: Option<String>,
    host: TapHost,
    /// Without effect; not written again.
    #[serde(rename = "rx-ring-size", default, skip_serializing)]
    _rx_ring_size: Option<u16>,
    #[serde(rename = "tx-ring-size", default, skip_serializing)]
    _tx_ring_size: Option<u16>,
}

/// An entry of `bondethernets`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct BondSection {
    #[serde(default, skip_serializing)]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<MacAddr>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    interfaces: BTreeSet<String>,
    #[serde(flatten)]
    bond: Bond,
}

/// An entry of `pseudowires`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PseudowireSection {
    #[serde(default, skip_serializing)]
    description: Option<String>,
    #[serde(flatten)]
    pseudowire: Pseudowire,
}

/// An entry of `vxlan_tunnels`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct VxlanSection {
    #[serde(default, skip_serializing)]
    description: Option<String>,
    #[serde(flatten)]
    tunnel: Vxlan,
}

/// The Linux end of a TAP.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TapHost {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<MacAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtu: Option<u16>,
}

impl From<Config> for Written {
    fn from(config: Config) -> Self {
        let Config {
            interfaces,
            bridges,
            sflow,
            ipfix,
            linux,
            ip4,
            vrfs,
            routes,
            mpls,
            pseudowires,
            neighbors,
            prefix_lists,
            access_lists,
            workers,
            buffers,
            api,
            logging,
            history,
        } = config;
        let section = |(name, pseudowire)| {
            (
                name,
                PseudowireSection {
                    description: None,
                    pseudowire,
                },
            )
        };
        let (prefixlists, acls) = (prefix_lists, access_lists);
        let mut written = Self {
            bridgedomains: bridges,
            sflow,
            ipfix,
            linux,
            ip4,
            vrfs,
            routes,
            mpls,
            pseudowires: pseudowires.into_iter().map(section).collect(),
            neighbors,
            prefixlists,
            acls,
            workers,
            buffers,
            api,
            logging,
            history,
            ..Self::default()
        };
        let mtus: BTreeMap<String, u16> = interfaces
            .iter()
            .map(|(name, it)| (name.clone(), it.mtu))
            .collect();
        let member = |(name, interface): (&String, &Interface)| {
            Some((interface.bond.clone()?, name.clone()))
        };
        let members: Vec<(String, String)> = interfaces.iter().filter_map(member).collect();
        for (name, interface) in interfaces {
            match interface.sub_interface().cloned() {
                Some(sub) => {
                    let mtu = mtus.get(&sub.parent).copied().unwrap_or(usual_mtu());
                    let parent = written.interfaces.entry(sub.parent.clone()).or_default();
                    parent
                        .sub_interfaces
                        .insert(sub.id, Sub::of(interface, &sub, mtu));
                }
                None => written.add(name, interface),
            }
        }
        for (bond, member) in members {
            if let Some(bond) = written.bondethernets.get_mut(&bond) {
                bond.interfaces.insert(member);
            }
        }
        written
    }
}

impl Written {
    fn add(&mut self, name: String, interface: Interface) {
        match interface.device.clone() {
            Some(Device::Loopback) => {
                let Interface {
                    description,
                    mac,
                    mtu,
                    vrf,
                    addresses,
                    unnumbered,
                    mpls,
                    router_advertisements,
                    ..
                } = interface;
                self.loopbacks.insert(
                    name,
                    Loopback {
                        description,
                        mac,
                        mtu,
                        vrf,
                        addresses,
                        unnumbered,
                        mpls,
                        router_advertisements,
                    },
                );
            }
            Some(Device::Pseudowire) => {
                let rest = Interface {
                    device: None,
                    ..interface
                };
                if rest != Interface::default() {
                    self.interfaces.entry(name).or_default().interface = rest;
                }
            }
            Some(Device::Bond(bond)) => {
                let section = BondSection {
                    description: None,
                    mac: interface.mac,
                    interfaces: BTreeSet::new(),
                    bond,
                };
                self.bondethernets.insert(name.clone(), section);
                let rest = Interface {
                    device: None,
                    mac: None,
                    ..interface
                };
                if rest != Interface::default() {
                    self.interfaces.entry(name).or_default().interface = rest;
                }
            }
            Some(Device::Vxlan(tunnel)) => {
                self.vxlan_tunnels.insert(
                    name.clone(),
                    VxlanSection {
                        description: None,
                        tunnel,
                    },
                );
                let rest = Interface {
                    device: None,
                    ..interface
                };
                if rest != Interface::default() {
                    self.interfaces.entry(name).or_default().interface = rest;
                }
            }
            Some(Device::Tap {
                name: host,
                host_mac,
            }) if Names::TAPS.numbers(&name).is_some() => {
                let host = TapHost {
                    name: host,
                    mac: host_mac,
                    mtu: None,
                };
                self.taps.insert(
                    name.clone(),
                    Tap {
                        description: None,
                        host,
                        _rx_ring_size: None,
                        _tx_ring_size: None,
                    },
                );
                let rest = Interface {
                    device: None,
                    ..interface
                };
                if rest != Interface::default() {
                    self.interfaces.entry(name).or_default().interface = rest;
                }
            }
            _ => self.interfaces.entry(name).or_default().interface = interface,
        }
    }
}

impl From<Written> for Config {
    fn from(written: Written) -> Self {
        let Written {
            interfaces: entries,
            loopbacks,
            taps,
            acls,
            bondethernets,
            vxlan_tunnels,
            bridgedomains: bridges,
            vrfs,
            mpls,
            pseudowires: pseudowire_sections,
            neighbors,
            prefixlists,
            routes,
            sflow,
            ipfix,
            linux,
            ip4,
            workers,
            buffers,
            api,
            logging,
            history,
        } = written;
        let (prefix_lists, access_lists) = (prefixlists, acls);
        let (mut interfaces, mut subs) = (BTreeMap::new(), Vec::new());
        for (name, entry) in entries {
            if !entry.sub_interfaces.is_empty() {
                subs.push((name.clone(), entry.sub_interfaces));
            }
            // A TAP of which nothing is said but its sub-interfaces.
            if !(taps.contains_key(&name) && entry.interface == Interface::default()) {
                interfaces.insert(name, entry.interface);
            }
        }
        for (name, tap) in taps {
            let added = Interface {
                mtu: tap.host.mtu.unwrap_or(usual_mtu()),
                ..Interface::default()
            };
            let interface = interfaces.entry(name).or_insert(added);
            interface.device = Some(Device::Tap {
                name: tap.host.name,
                host_mac: tap.host.mac,
            });
            interface.description = interface.description.take().or(tap.description);
        }
        for (name, section) in vxlan_tunnels {
            let interface = interfaces.entry(name).or_default();
            interface.device = Some(Device::Vxlan(section.tunnel));
            interface.description = interface.description.take().or(section.description);
        }
        let mut members = Vec::new();
        for (name, section) in bondethernets {
            let interface = interfaces.entry(name.clone()).or_default();
            (interface.device, interface.mac) = (Some(Device::Bond(section.bond)), section.mac);
            interface.description = interface.description.take().or(section.description);
            members.push((name, section.interfaces));
        }
        for (bond, members) in members {
            for member in members {
                if let Some(member) = interfaces.get_mut(&member) {
                    member.bond = Some(bond.clone());
                }
            }
        }
        let mut pseudowires = BTreeMap::new();
        for (
            name,
            PseudowireSection {
                description,
                pseudowire,
            },
        ) in pseudowire_sections
        {
            let interface = interfaces.entry(name.clone()).or_default();
            interface.device = Some(Device::Pseudowire);
            interface.description = interface.description.take().or(description);
            pseudowires.insert(name, pseudowire);
        }
        for (name, loopback) in loopbacks {
            let Loopback {
                description,
                mac,
                mtu,
                vrf,
                addresses,
                unnumbered,
                mpls,
                router_advertisements,
            } = loopback;
            let device = Some(Device::Loopback);
            let rest = Interface::default();
            interfaces.insert(
                name,
                Interface {
                    description,
                    device,
                    mac,
                    mtu,
                    vrf,
                    addresses,
                    unnumbered,
                    mpls,
                    router_advertisements,
                    ..rest
                },
            );
        }
        for (parent, entries) in subs {
            let mtu = interfaces
                .get(&parent)
                .map_or(usual_mtu(), |parent: &Interface| parent.mtu);
            for (id, sub) in entries {
                interfaces.insert(
                    SubInterface::name_of(&parent, &id.to_string()),
                    sub.into_interface(&parent, id, mtu),
                );
            }
        }
        Self {
            interfaces,
            bridges,
            sflow,
            ipfix,
            linux,
            ip4,
            vrfs,
            routes,
            mpls,
            pseudowires,
            neighbors,
            prefix_lists,
            access_lists,
            workers,
            buffers,
            api,
            logging,
            history,
        }
    }
}

/// The file writes routes and neighbours as lists; the model keys them.
mod lists {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) mod routes {
        use super::{BTreeMap, Deserialize, Deserializer, Serialize, Serializer};
        use crate::model::{Path, RouteKey, Via};
        use ipnet::IpNet;

        #[derive(Serialize)]
        struct Written<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            vrf: Option<&'a str>,
            prefix: IpNet,
            via: Led<'a>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            resilient: bool,
        }

        /// Where a route leads, as the file says it.
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Led<'a> {
            Nowhere(&'a Via),
            Paths(&'a [Path]),
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Read {
            #[serde(default)]
            vrf: Option<String>,
            prefix: IpNet,
            via: Via,
            #[serde(default)]
            resilient: bool,
        }

        pub(in crate::written) fn serialize<S: Serializer>(
            routes: &BTreeMap<RouteKey, Via>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(routes.iter().map(|(key, via)| Written {
                vrf: key.vrf.as_deref(),
                prefix: key.prefix,
                via: if via.paths().is_empty() {
                    Led::Nowhere(via)
                } else {
                    Led::Paths(via.paths())
                },
                resilient: matches!(via, Via::Resilient(_)),
            }))
        }

        pub(in crate::written) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<BTreeMap<RouteKey, Via>, D::Error> {
            let list = Vec::<Read>::deserialize(deserializer)?;
            let via = |via, resilient| match via {
                Via::Paths(paths) if resilient => Via::Resilient(paths),
                via => via,
            };
            let keyed = |route: Read| {
                (
                    RouteKey {
                        vrf: route.vrf,
                        prefix: route.prefix.trunc(),
                    },
                    via(route.via, route.resilient),
                )
            };
            Ok(list.into_iter().map(keyed).collect())
        }
    }

    pub(super) mod neighbors {
        use super::{BTreeMap, Deserialize, Deserializer, Serialize, Serializer};
        use crate::model::NeighborKey;
        use crate::scalar::MacAddr;
        use std::net::IpAddr;

        #[derive(Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Entry {
            interface: String,
            address: IpAddr,
            mac: MacAddr,
        }

        pub(in crate::written) fn serialize<S: Serializer>(
            neighbors: &BTreeMap<NeighborKey, MacAddr>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            let entry = |(key, mac): (&NeighborKey, &MacAddr)| Entry {
                interface: key.interface.clone(),
                address: key.address,
                mac: *mac,
            };
            serializer.collect_seq(neighbors.iter().map(entry))
        }

        pub(in crate::written) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<BTreeMap<NeighborKey, MacAddr>, D::Error> {
            let list = Vec::<Entry>::deserialize(deserializer)?;
            let keyed = |entry: Entry| {
                (
                    NeighborKey {
                        interface: entry.interface,
                        address: entry.address,
                    },
                    entry.mac,
                )
            };
            Ok(list.into_iter().map(keyed).collect())
        }
    }
}
