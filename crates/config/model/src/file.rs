//! The file's sections, and how the model is made of them and written as them.
//!
//! The model has one map of interfaces. The file has several sections of them, in vppcfg's form: a
//! loopback stands under `loopbacks` and nowhere else; a TAP called `tapN` has its Linux end under
//! `taps` and everything else under `interfaces`, and so have bonds, pseudowires and VXLAN tunnels.
//! Any other TAP stands under `interfaces` with its `device`; both spellings of a TAP read as the
//! same value. A sub-interface stands under its parent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Serialize, Serializer};
use weir_config_derive::Section;

use crate::access_list::{AccessList, PrefixList};
use crate::bond::Bond;
use crate::bridge::Bridge;
use crate::device::Device;
use crate::ipfix::Ipfix;
use crate::keys::Names;
use crate::linux::Linux;
use crate::model::{Config, Interface, NeighborKey, RouteKey, Via, Vrf};
use crate::mpls::Mpls;
use crate::pseudowire::Pseudowire;
use crate::scalar::MacAddr;
use crate::section::to_json;
use crate::settings::{Api, Buffers, History, Ip4, Logging, Workers};
use crate::sflow::Sflow;
use crate::sub_interface::{Encapsulation, SubInterface, TagRewrite};
use crate::vxlan::Vxlan;

/// The file as a whole.
#[derive(Section)]
#[section(example = "interfaces: {xe0: {mtu: 1500}}")]
pub(crate) struct File {
    /// Interfaces by name: a letter, then up to 62 letters, digits, `.`, `_`, `/` or `-`.
    #[key(names = Interface, scope = "interface", example = "{xe0: {mtu: 1500}}")]
    interfaces: BTreeMap<String, Entry>,
    /// Interfaces without a device, `loop0` to `loop4095`: always up, and their addresses answer
    /// through every other interface.
    #[key(
        names = LOOPBACKS, scope = "loopback",
        example = "{loop0: {addresses: [192.0.2.255/32]}}"
    )]
    loopbacks: BTreeMap<String, Loopback>,
    /// TAPs in vppcfg's form, `tap0` to `tap1024`. Each is an interface of the same name; an entry
    /// under `interfaces`, without `device`, sets its addresses, state and all else. `device:
    /// {driver: tap}` says the same for an interface of any name.
    #[key(names = TAPS, example = "{tap0: {host: {name: lan0}}}")]
    taps: BTreeMap<String, Tap>,
    /// Bonds, `BondEthernet0` to `BondEthernet4294967294`: several ports as one. Each is an
    /// interface of the same name; an entry under `interfaces`, without `device` and `mac`, sets
    /// its addresses, MTU, cross connect and all else.
    #[key(names = BONDS, example = "{BondEthernet0: {interfaces: [xe0, xe1]}}")]
    bondethernets: BTreeMap<String, BondEntry>,
    /// VXLAN tunnels (RFC 7348), `vxlan_tunnel0` to `vxlan_tunnel2147483647`: frames inside of UDP
    /// packets, between this router and one other. Each is an interface of the same name, a member
    /// of a bridge domain or an end of a cross connect as any other; an entry under `interfaces`,
    /// without `device`, sets its MTU, cross connect and all else. The packets are routed by the
    /// default table, are never fragmented (an IPv4 tunnel adds 50 bytes to each frame, an IPv6
    /// tunnel 70), and their source port is a hash of the flow inside.
    #[key(
        name = "vxlan_tunnels", names = VXLAN_TUNNELS,
        example = "{vxlan_tunnel1: {local: 192.0.2.1, remote: 192.0.2.2, vni: 100}}"
    )]
    vxlan_tunnels: BTreeMap<String, VxlanEntry>,
    /// Bridge domains, `bd1` to `bd16777215`: each forwards frames between its members by MAC
    /// address.
    #[key(names = BRIDGES, example = "{bd1: {interfaces: [xe0, xe1]}}")]
    bridgedomains: BTreeMap<String, Bridge>,
    #[key(default = Sflow::default())]
    sflow: Sflow,
    #[key(default = Linux::default())]
    linux: Linux,
    #[key(default = Ipfix::default())]
    ipfix: Ipfix,
    #[key(default = Ip4::default())]
    ip4: Ip4,
    /// BGP policy: exchanges, neighbours, filters, and the daemon that runs them. `weir peering
    /// check` checks its keys, which docs/peering.md describes; it is planned, applied, confirmed
    /// and rolled back with the rest of the file.
    #[key(example = "{asn: 64500, router-id: 192.0.2.1, prefixes: [192.0.2.0/24]}")]
    peering: Option<serde_json::Value>,
    /// Routing tables in addition to the default one, each for IPv4 and IPv6, by name: a letter,
    /// then up to 31 letters, digits, `.`, `_`, `/` or `-`.
    #[key(names = Vrf, example = "{red: {table: 10}}")]
    vrfs: BTreeMap<String, Vrf>,
    /// Static routes, each prefix once in a table. All with the same `via` share a group of paths,
    /// which is written once when a link goes down.
    #[key(
        list = WrittenRoute, unread, items = (0, 1_000_000), scope = "route",
        example = "[{prefix: 0.0.0.0/0, via: blackhole}]"
    )]
    routes: BTreeMap<RouteKey, Via>,
    #[key(default = Mpls::default())]
    mpls: Mpls,
    /// Ethernet pseudowires over MPLS (RFC 4448), `pw0` to `pw4294967294`. Each is an interface of
    /// the same name; an entry under `interfaces`, without `device`, sets its MTU, cross connect and
    /// all else. So it is an end of a cross connect, a member of a bridge domain, or routed. The
    /// interfaces that carry it need `mpls`.
    #[key(
        names = PSEUDOWIRES,
        example = "{pw0: {local-label: 1000, remote-label: 2000, via: 192.0.2.254}}"
    )]
    pseudowires: BTreeMap<String, PseudowireEntry>,
    /// Static ARP and neighbour discovery entries.
    #[key(list = WrittenNeighbor, unread, items = (0, 1_000_000), example = "[]")]
    neighbors: BTreeMap<NeighborKey, MacAddr>,
    /// Named lists of prefixes, for terms of access lists.
    #[key(
        names = PrefixList, example = "{customers: {members: [192.0.2.0/24, 2001:db8::/32]}}"
    )]
    prefixlists: BTreeMap<String, PrefixList>,
    /// Access lists by name; an interface's `acl` binds them.
    #[key(
        names = AccessList,
        example = "{web: {terms: [{action: permit, protocol: tcp, destination-port: https}]}}"
    )]
    acls: BTreeMap<String, AccessList>,
    #[key(default = Workers::default())]
    workers: Workers,
    #[key(default = Buffers::default())]
    buffers: Buffers,
    #[key(default = Api::default())]
    api: Api,
    #[key(default = Logging::default())]
    logging: Logging,
    #[key(default = History::default())]
    history: History,
}

/// One interface.
#[derive(Default, PartialEq, Eq, Section)]
#[section(example = "{mtu: 1500}", no_default)]
struct Entry {
    #[key(flatten)]
    interface: Interface,
    /// The name of its TAP in Linux, as vppcfg has it: the same as `name` in an entry of
    /// `linux.interfaces`, which takes precedence.
    #[key(kind = LinuxName, example = "xe0")]
    lcp: Option<String>,
    /// Sub-interfaces by number, 1 to 4294967295: each has the frames with its tags and is an
    /// interface called `PARENT.NUMBER`, as `xe0.100`. An interface with sub-interfaces has no
    /// `l2xc` of its own.
    #[key(
        names = SubInterface, scope = "sub-interface",
        example = "{100: {addresses: [192.0.2.1/24]}}"
    )]
    sub_interfaces: BTreeMap<u32, Sub>,
}

/// One sub-interface.
#[derive(PartialEq, Eq, Section)]
#[section(example = "{addresses: [192.0.2.1/24]}")]
struct Sub {
    #[key(flatten, scope = "sub-interface")]
    interface: Interface,
    /// The name of its TAP in Linux, as for interfaces; its parent has `lcp`, too.
    #[key(kind = LinuxName, example = "xe0.100")]
    lcp: Option<String>,
    /// The MTU: the size of the largest IP packet that leaves it, in bytes; its parent's when
    /// absent, and never more.
    #[key(kind = Whole(128, 9216), example = "1400")]
    mtu: Option<u16>,
    /// The tags of its frames, which no other sub-interface of the parent has; its number as VLAN,
    /// and `exact-match`, when absent. Of several that match a frame, the one with the most tags
    /// gets it.
    encapsulation: Option<Encapsulation>,
    /// How the tags of a received frame are rewritten on a cross connect or in a bridge domain;
    /// sent frames get the reverse. Without it all tags of the encapsulation are removed. `{pop:
    /// 0}` leaves them, and adds none to sent frames.
    tag_rewrite: Option<TagRewrite>,
}

impl Sub {
    fn of(interface: Interface, sub: &SubInterface, parent_mtu: u16) -> Self {
        Self {
            mtu: Some(interface.mtu).filter(|mtu| *mtu != parent_mtu),
            encapsulation: Some(sub.encapsulation)
                .filter(|tags| *tags != Encapsulation::of_id(sub.id)),
            tag_rewrite: sub.tag_rewrite,
            lcp: None,
            interface,
        }
    }

    fn into_interface(self, parent: &str, id: u32, parent_mtu: u16) -> Interface {
        let encapsulation = self
            .encapsulation
            .unwrap_or_else(|| Encapsulation::of_id(id));
        Interface {
            mtu: self.mtu.unwrap_or(parent_mtu),
            device: Some(Device::SubInterface(SubInterface {
                parent: parent.to_owned(),
                id,
                encapsulation,
                tag_rewrite: self
                    .tag_rewrite
                    .filter(|rewrite| !rewrite.is_usual(&encapsulation)),
            })),
            ..self.interface
        }
    }
}

/// One loopback.
#[derive(PartialEq, Eq, Section)]
#[section(example = "{addresses: [192.0.2.255/32]}")]
struct Loopback {
    #[key(flatten, scope = "loopback")]
    interface: Interface,
    /// The name of its TAP in Linux, as for interfaces.
    #[key(kind = LinuxName, example = "loop0")]
    lcp: Option<String>,
}

/// One TAP.
#[derive(PartialEq, Eq, Section)]
#[section(example = "{host: {name: lan0}}")]
struct Tap {
    /// Free text; a description under `interfaces` takes precedence.
    #[key(kind = Text(255), example = "to Linux")]
    description: Option<String>,
    /// The Linux end.
    #[key(required, example = "{name: lan0, mtu: 9000}")]
    host: TapHost,
    /// Accepted for compatibility with vppcfg, and without effect: the kernel's TAP has no ring of
    /// descriptors.
    #[key(kind = PowerOfTwo(8, 32_768), example = "256")]
    rx_ring_size: Option<u16>,
    /// As `rx-ring-size`.
    #[key(kind = PowerOfTwo(8, 32_768), example = "256")]
    tx_ring_size: Option<u16>,
}

/// The Linux end of a TAP.
#[derive(PartialEq, Eq, Section)]
struct TapHost {
    /// The Linux name it gets.
    #[key(required, kind = LinuxName, example = "lan0")]
    name: String,
    /// Its MAC address; generated by the kernel when absent.
    #[key(example = "02:00:00:00:00:0a")]
    mac: Option<MacAddr>,
    /// The MTU of both ends, 1500 when absent. An `mtu` under `interfaces` says the same, so that
    /// the two agree when both are given.
    #[key(kind = Whole(128, 9216), example = "9000")]
    mtu: Option<u16>,
}

/// One bond.
#[derive(PartialEq, Eq, Section)]
#[section(example = "{interfaces: [xe0, xe1]}")]
struct BondEntry {
    /// Free text; a description under `interfaces` takes precedence.
    #[key(kind = Text(255), example = "to the switch")]
    description: Option<String>,
    /// Its MAC address, which LACP sends to the partner as the system's; that of the member first
    /// by name when absent.
    #[key(example = "02:00:00:00:00:0b")]
    mac: Option<MacAddr>,
    /// Its members: interfaces with a device of their own and the MTU of the bond, without addresses
    /// and cross connect, each in one bond.
    #[key(items = (0, 64), kind = InterfaceName, example = "[xe0, xe1]", item = "A member.")]
    interfaces: BTreeSet<String>,
    #[key(flatten)]
    bond: Bond,
}

/// One tunnel.
#[derive(PartialEq, Eq, Section)]
#[section(example = "{local: 192.0.2.1, remote: 192.0.2.2, vni: 100}")]
struct VxlanEntry {
    /// Free text; a description under `interfaces` takes precedence.
    #[key(kind = Text(255), example = "to the other site")]
    description: Option<String>,
    #[key(flatten)]
    tunnel: Vxlan,
}

/// One pseudowire.
#[derive(PartialEq, Eq, Section)]
#[section(example = "{local-label: 1000, remote-label: 2000, via: 192.0.2.254}")]
struct PseudowireEntry {
    /// Free text; a description under `interfaces` takes precedence.
    #[key(kind = Text(255), example = "customer 7")]
    description: Option<String>,
    #[key(flatten)]
    pseudowire: Pseudowire,
}

/// One route.
#[derive(Section)]
#[section(example = "{prefix: 0.0.0.0/0, via: 192.0.2.254}")]
struct WrittenRoute {
    /// The table it is in; the default one when absent.
    #[key(kind = VrfName, example = "red")]
    vrf: Option<String>,
    /// Its prefix, without host bits.
    #[key(required, kind = Prefix, example = "198.51.100.0/24")]
    prefix: IpNet,
    /// Where it leads: the address of a next hop, a list of several that share the flows, or
    /// `blackhole` (dropped), `unreachable` or `prohibit` (dropped, and the sender notified: ICMP
    /// host unreachable or communication prohibited, ICMPv6 no route or prohibited). Each next hop
    /// lies in a connected subnet of the table; that of an IPv4 route may be IPv6 (RFC 8950).
    #[key(required, kind = Via, example = "192.0.2.254")]
    via: Via,
    /// Whether flows keep their next hops when others are added to `via` or removed: only those of a
    /// removed next hop move, and an added one gets no more than its share.
    #[key(example = "true")]
    resilient: bool,
}

impl From<(&RouteKey, &Via)> for WrittenRoute {
    fn from((key, via): (&RouteKey, &Via)) -> Self {
        Self {
            vrf: key.vrf.clone(),
            prefix: key.prefix,
            via: via.clone(),
            resilient: matches!(via, Via::Resilient(_)),
        }
    }
}

/// One entry.
#[derive(Section)]
#[section(example = "{interface: xe0, address: 192.0.2.7, mac: 02:00:00:00:00:07}")]
pub(crate) struct WrittenNeighbor {
    /// The interface that it is reached by.
    #[key(required, kind = InterfaceName, example = "xe0")]
    pub(crate) interface: String,
    /// Its address, in a subnet of that interface.
    #[key(required, kind = Neighbor, example = "192.0.2.7")]
    pub(crate) address: IpAddr,
    /// Its MAC address.
    #[key(required, example = "02:00:00:00:00:07")]
    pub(crate) mac: MacAddr,
}

impl From<(&NeighborKey, &MacAddr)> for WrittenNeighbor {
    fn from((key, mac): (&NeighborKey, &MacAddr)) -> Self {
        Self {
            interface: key.interface.clone(),
            address: key.address,
            mac: *mac,
        }
    }
}

/// As `GET /v1/config` shows it: the sections of the file, with keys that are at their default.
impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        to_json(&File::from(self.clone()), true).serialize(serializer)
    }
}

impl From<Config> for File {
    fn from(config: Config) -> Self {
        let section = |(name, pseudowire)| {
            let entry = PseudowireEntry {
                description: None,
                pseudowire,
            };
            (name, entry)
        };
        let mut file = Self {
            bridgedomains: config.bridges,
            sflow: config.sflow,
            linux: config.linux,
            ipfix: config.ipfix,
            ip4: config.ip4,
            peering: config.peering,
            vrfs: config.vrfs,
            routes: config.routes,
            mpls: config.mpls,
            pseudowires: config.pseudowires.into_iter().map(section).collect(),
            neighbors: config.neighbors,
            prefixlists: config.prefix_lists,
            acls: config.access_lists,
            workers: config.workers,
            buffers: config.buffers,
            api: config.api,
            logging: config.logging,
            history: config.history,
            ..Self::default()
        };
        let mtus: BTreeMap<String, u16> = config
            .interfaces
            .iter()
            .map(|(name, it)| (name.clone(), it.mtu))
            .collect();
        let member = |(name, it): (&String, &Interface)| Some((it.bond.clone()?, name.clone()));
        let members: Vec<(String, String)> = config.interfaces.iter().filter_map(member).collect();
        for (name, interface) in config.interfaces {
            match interface.sub_interface().cloned() {
                Some(sub) => {
                    let mtu = mtus.get(&sub.parent).copied();
                    let mtu = mtu.unwrap_or(Interface::default().mtu);
                    let parent = file.interfaces.entry(sub.parent.clone()).or_default();
                    let written = Sub::of(interface, &sub, mtu);
                    parent.sub_interfaces.insert(sub.id, written);
                }
                None => file.add(name, interface),
            }
        }
        for (bond, member) in members {
            if let Some(bond) = file.bondethernets.get_mut(&bond) {
                bond.interfaces.insert(member);
            }
        }
        file
    }
}

impl File {
    fn add(&mut self, name: String, interface: Interface) {
        // What stands in another section, and what of it stands under `interfaces` nevertheless.
        let mut rest = Interface {
            device: None,
            ..interface.clone()
        };
        match interface.device.clone() {
            Some(Device::Loopback) => {
                let loopback = Loopback {
                    interface,
                    lcp: None,
                };
                self.loopbacks.insert(name, loopback);
                return;
            }
            Some(Device::Pseudowire) => {}
            Some(Device::Bond(bond)) => {
                let entry = BondEntry {
                    description: None,
                    mac: rest.mac.take(),
                    interfaces: BTreeSet::new(),
                    bond,
                };
                self.bondethernets.insert(name.clone(), entry);
            }
            Some(Device::Vxlan(tunnel)) => {
                let entry = VxlanEntry {
                    description: None,
                    tunnel,
                };
                self.vxlan_tunnels.insert(name.clone(), entry);
            }
            Some(Device::Tap {
                name: host,
                host_mac: mac,
            }) if Names::TAPS.numbers(&name).is_some() => {
                let entry = Tap {
                    description: None,
                    host: TapHost {
                        name: host,
                        mac,
                        mtu: None,
                    },
                    rx_ring_size: None,
                    tx_ring_size: None,
                };
                self.taps.insert(name.clone(), entry);
            }
            _ => {
                self.interfaces.entry(name).or_default().interface = interface;
                return;
            }
        }
        if rest != Interface::default() {
            self.interfaces.entry(name).or_default().interface = rest;
        }
    }

    /// The model. `has_mtu` = whether the file gives an interface an MTU under `interfaces`.
    pub(crate) fn into_config(self, has_mtu: impl Fn(&str) -> bool) -> Config {
        let mut interfaces = BTreeMap::new();
        let (mut subs, mut linux) = (Vec::new(), self.linux);
        for (name, entry) in self.interfaces {
            linux.add_lcp(&name, entry.lcp);
            subs.push((name.clone(), entry.sub_interfaces));
            interfaces.insert(name, entry.interface);
        }
        for (name, tap) in self.taps {
            let with_mtu = has_mtu(&name);
            let interface = attached(&mut interfaces, name, None, tap.description);
            if let Some(mtu) = tap.host.mtu.filter(|_| !with_mtu) {
                interface.mtu = mtu;
            }
            let device = Device::Tap {
                name: tap.host.name,
                host_mac: tap.host.mac,
            };
            interface.device.get_or_insert(device);
        }
        for (name, loopback) in self.loopbacks {
            linux.add_lcp(&name, loopback.lcp);
            let interface = Interface {
                device: Some(Device::Loopback),
                ..loopback.interface
            };
            interfaces.insert(name, interface);
        }
        for (name, entry) in self.bondethernets {
            let device = Some(Device::Bond(entry.bond));
            attached(&mut interfaces, name.clone(), device, entry.description).mac = entry.mac;
            for member in entry.interfaces {
                if let Some(member) = interfaces.get_mut(&member) {
                    member.bond = Some(name.clone());
                }
            }
        }
        let mut pseudowires = BTreeMap::new();
        for (name, entry) in self.pseudowires {
            let device = Some(Device::Pseudowire);
            attached(&mut interfaces, name.clone(), device, entry.description);
            pseudowires.insert(name, entry.pseudowire);
        }
        for (name, entry) in self.vxlan_tunnels {
            let device = Some(Device::Vxlan(entry.tunnel));
            attached(&mut interfaces, name, device, entry.description);
        }
        // When the MTU of every parent is known.
        for (parent, subs) in subs {
            let mtu = interfaces.get(&parent).map(|parent| parent.mtu);
            for (id, mut sub) in subs {
                let name = SubInterface::name_of(&parent, &id.to_string());
                linux.add_lcp(&name, sub.lcp.take());
                if let Some(mtu) = mtu {
                    let sub = sub.into_interface(&parent, id, mtu);
                    interfaces.entry(name).or_insert(sub);
                }
            }
        }
        Config {
            interfaces,
            bridges: self.bridgedomains,
            sflow: self.sflow,
            ipfix: self.ipfix,
            linux,
            ip4: self.ip4,
            peering: self.peering,
            vrfs: self.vrfs,
            routes: self.routes,
            mpls: self.mpls,
            pseudowires,
            neighbors: self.neighbors,
            prefix_lists: self.prefixlists,
            access_lists: self.acls,
            workers: self.workers,
            buffers: self.buffers,
            api: self.api,
            logging: self.logging,
            history: self.history,
        }
    }
}

/// The interface of this name with this device, unless it has one that the section does not replace.
fn attached(
    interfaces: &mut BTreeMap<String, Interface>,
    name: String,
    device: Option<Device>,
    description: Option<String>,
) -> &mut Interface {
    let interface = interfaces.entry(name).or_default();
    if device.is_some() {
        interface.device = device;
    }
    interface.description = interface.description.take().or(description);
    interface
}
