//! Random good configurations, for property tests of this crate and of those that use it.
//!
//! A configuration is made out of dice, of which any throw gives one that `check` accepts: things
//! refer only to what is there, subnets do not overlap, ends of a cross connect agree. `pair`
//! gives two that mostly agree, because what is alike in both is where a plan goes wrong.

mod devices;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use proptest::collection::vec;
use proptest::prelude::*;

use devices::{any_device, bond, in_memory, sub_interface};

use crate::access_list::{
    AccessList, AclFragments, Binding, Family, Octets, Ports, PrefixList, Protocol, Scope, Term,
    TermAction,
};
use crate::bridge::{Bridge, SplitHorizon, StaticMac};
use crate::device::Device;
use crate::ipfix::{IpfixCollector, IpfixInterface, IpfixRecords, IpfixTransport, IpfixVersion};
use crate::model::{
    AdminState, Config, Interface, NeighborKey, Path, Police, Policer, RouteKey,
    RouterAdvertisements, Urpf, Via, Vrf, is_link_local,
};
use crate::mpls::{DEFAULT_TABLE, LabelEntry, TtlMode};
use crate::pseudowire::{Pseudowire, PseudowireType};
use crate::scalar::{Host, MacAddr, Sha256};
use crate::settings::{
    History, Hugepages, Idle, Listen, LogFormat, LogLevel, Metrics, Priority, Role, Tls, Token,
};
use crate::sflow::{
    AgentCidr, Collector, DnsSd, Psample, SflowAgent, SflowDirection, SflowEncoding, SflowInterface,
};
use crate::sub_interface::SubInterface;
use crate::vxlan::Vxlan;

/// Which configurations are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Devices {
    /// All that can be written, whether or not a machine has it.
    Any,
    /// Those that a router can start with anywhere, without root: drivers `null`, `generator` and `memif`,
    /// and nothing differs whose change needs a restart.
    InMemory,
}

/// A good configuration.
pub fn config(devices: Devices) -> impl Strategy<Value = Config> {
    dice().prop_map(move |dice| dice.config(devices))
}

/// Two good configurations that mostly agree.
pub fn pair(devices: Devices) -> impl Strategy<Value = (Config, Config)> {
    (dice(), dice(), any::<u64>(), any::<u64>()).prop_map(move |(one, other, mask, more)| {
        let two = one.clone().with_some_of(other, mask & more);
        (one.config(devices), two.config(devices))
    })
}

/// Numbers and texts that a configuration is made of.
#[derive(Debug, Clone)]
struct Dice {
    interfaces: Vec<Option<[u8; 8]>>,
    loopbacks: Vec<Option<[u8; 4]>>,
    subs: Vec<Option<[u8; 3]>>,
    bonds: Vec<Option<[u8; 4]>>,
    tunnels: Vec<Option<[u8; 4]>>,
    /// The owner of each subnet, and which of its addresses.
    subnets: Vec<Option<(usize, u8)>>,
    bridges: Vec<Option<[u8; 6]>>,
    routes: Vec<Option<(u8, u8)>>,
    neighbors: Vec<Option<(u8, u8)>>,
    prefix_lists: Vec<Option<[u8; 2]>>,
    access_lists: Vec<Option<Vec<[u8; 5]>>>,
    /// Of each table beside the default one its number.
    vrfs: Vec<Option<u8>>,
    settings: Vec<u8>,
    texts: Vec<String>,
}

fn dice() -> impl Strategy<Value = Dice> {
    let interfaces = vec(proptest::option::weighted(0.8, any::<[u8; 8]>()), 6);
    let loopbacks = vec(proptest::option::of(any::<[u8; 4]>()), 3);
    let subs = vec(proptest::option::of(any::<[u8; 3]>()), 4);
    let bonds = vec(proptest::option::of(any::<[u8; 4]>()), 2);
    let tunnels = vec(proptest::option::of(any::<[u8; 4]>()), 3);
    let subnets = vec(proptest::option::of((0usize..6, 0u8..3)), 5);
    let bridges = vec(proptest::option::of(any::<[u8; 6]>()), 2);
    let routes = vec(proptest::option::of((any::<u8>(), any::<u8>())), 5);
    let neighbors = vec(proptest::option::of((any::<u8>(), any::<u8>())), 4);
    let prefix_lists = vec(proptest::option::of(any::<[u8; 2]>()), 2);
    let access_lists = vec(proptest::option::of(vec(any::<[u8; 5]>(), 1..4)), 3);
    let vrfs = vec(proptest::option::of(any::<u8>()), 2);
    let settings = vec(any::<u8>(), 16);
    let texts = vec(
        "\\PC{1,24}|[ a:#'\"\\\\{}&*!|>%@`,?-]{1,8}|off|null|1e3|~|07",
        4,
    );
    (
        interfaces,
        loopbacks,
        subs,
        (bonds, tunnels),
        subnets,
        bridges,
        (routes, vrfs),
        neighbors,
        prefix_lists,
        access_lists,
        settings,
        texts,
    )
        .prop_map(|all| {
            let (
                interfaces,
                loopbacks,
                subs,
                (bonds, tunnels),
                subnets,
                bridges,
                (routes, vrfs),
                neighbors,
                prefix_lists,
                access_lists,
                settings,
                texts,
            ) = all;
            Dice {
                interfaces,
                loopbacks,
                subs,
                bonds,
                tunnels,
                subnets,
                bridges,
                routes,
                vrfs,
                neighbors,
                prefix_lists,
                access_lists,
                settings,
                texts,
            }
        })
}

/// Take over the parts whose bit is set.
fn take<T>(mine: &mut [T], its: Vec<T>, mask: &mut u64) {
    for (mine, its) in mine.iter_mut().zip(its) {
        *mask = mask.rotate_right(1);
        if *mask & 1 == 1 {
            *mine = its;
        }
    }
}

impl Dice {
    fn with_some_of(mut self, other: Self, mut mask: u64) -> Self {
        take(&mut self.interfaces, other.interfaces, &mut mask);
        take(&mut self.loopbacks, other.loopbacks, &mut mask);
        take(&mut self.subs, other.subs, &mut mask);
        take(&mut self.bonds, other.bonds, &mut mask);
        take(&mut self.tunnels, other.tunnels, &mut mask);
        take(&mut self.subnets, other.subnets, &mut mask);
        take(&mut self.bridges, other.bridges, &mut mask);
        take(&mut self.routes, other.routes, &mut mask);
        take(&mut self.neighbors, other.neighbors, &mut mask);
        take(&mut self.prefix_lists, other.prefix_lists, &mut mask);
        take(&mut self.access_lists, other.access_lists, &mut mask);
        take(&mut self.vrfs, other.vrfs, &mut mask);
        take(&mut self.settings, other.settings, &mut mask);
        take(&mut self.texts, other.texts, &mut mask);
        self
    }

    fn text(&self, dice: u8) -> Option<String> {
        self.texts.get(usize::from(dice % 8)).cloned()
    }

    fn setting(&self, number: usize) -> u8 {
        self.settings.get(number).copied().unwrap_or(0)
    }

    fn config(&self, devices: Devices) -> Config {
        let mut config = Config::default();
        for (index, number) in self.vrfs.iter().enumerate() {
            if let Some(number) = number {
                let table = 10 * (1 + u32::from(small(index))) + u32::from(number % 3);
                config.vrfs.insert(
                    vrf_name(index),
                    Vrf {
                        table,
                        description: self.text(number / 3),
                    },
                );
            }
        }
        for (index, dice) in self.interfaces.iter().enumerate() {
            if let Some(dice) = dice {
                config
                    .interfaces
                    .insert(name(index), self.interface(index, *dice, devices));
            }
        }
        let reachable = self.addresses(&mut config);
        self.add_loopbacks(&mut config);
        self.add_pseudowires(&mut config, &reachable);
        self.add_tunnels(&mut config);
        self.add_bridges(&mut config);
        cross_connect(&mut config, self.setting(0));
        self.add_bonds(&mut config);
        self.borrow(&mut config);
        for (index, route) in self.routes.iter().enumerate() {
            let Some((first, second)) = *route else {
                continue;
            };
            let vrf = self.vrf(first / 2);
            if let Some(prefix) = net(destination(index, second), second.is_multiple_of(2)) {
                let fits = |it: &&Reachable| {
                    it.vrf == vrf && (it.address.is_ipv6() || prefix.addr().is_ipv4())
                };
                let in_table: Vec<_> = reachable.iter().filter(fits).cloned().collect();
                config.routes.insert(
                    RouteKey { vrf, prefix },
                    via(&in_table, prefix.addr().is_ipv6(), first, second),
                );
            }
        }
        for (index, route) in self.routes.iter().enumerate() {
            let Some((first, second)) = *route else {
                continue;
            };
            let in_default: Vec<_> = reachable
                .iter()
                .filter(|it| it.vrf.is_none())
                .cloned()
                .collect();
            let lookup = first.is_multiple_of(3).then(|| {
                self.vrf(second)
                    .unwrap_or_else(|| crate::DEFAULT_TABLE.to_owned())
            });
            let via = lookup
                .is_none()
                .then(|| without_sender(via(&in_default, true, second, first)));
            let ttl_mode = if second.is_multiple_of(2) {
                TtlMode::Uniform
            } else {
                TtlMode::Pipe
            };
            config.mpls.labels.insert(
                1000 + u32::from(small(index)),
                LabelEntry {
                    via,
                    lookup,
                    ttl_mode,
                },
            );
        }
        for (index, neighbor) in self.neighbors.iter().enumerate() {
            let Some((which, mac)) = *neighbor else {
                continue;
            };
            let Some(Reachable {
                interface, address, ..
            }) = pick(&reachable, which)
            else {
                continue;
            };
            config.neighbors.insert(
                NeighborKey { interface, address },
                MacAddr([2, 0, 0, 0, small(index), mac % 2]),
            );
        }
        self.add_access_lists(&mut config);
        self.add_sub_interfaces(&mut config);
        self.take_labels(&mut config);
        self.live_settings(&mut config);
        if devices == Devices::Any {
            self.restart_settings(&mut config);
        }
        config
    }

    /// Labels are taken by some interfaces that do not pass everything on.
    fn take_labels(&self, config: &mut Config) {
        let bridged: BTreeSet<String> = config
            .bridges
            .values()
            .flat_map(|bridge| bridge.interfaces.iter().cloned())
            .collect();
        for (index, (name, interface)) in config.interfaces.iter_mut().enumerate() {
            let exact = interface
                .sub_interface()
                .is_none_or(|sub| sub.encapsulation.exact_match);
            let free =
                interface.l2xc.is_none() && interface.bond.is_none() && !bridged.contains(name);
            interface.mpls = exact && free && self.setting(index % 16) >> 5 & 1 == 1;
        }
    }

    /// Let an interface without addresses borrow those of the first that has some, in its table.
    fn borrow(&self, config: &mut Config) {
        let bridged: BTreeSet<String> = config
            .bridges
            .values()
            .flat_map(|bridge| bridge.interfaces.iter().cloned())
            .collect();
        let targets: BTreeSet<String> = config
            .interfaces
            .values()
            .filter_map(|it| it.l2xc.clone())
            .collect();
        let is_free = |name: &String, it: &Interface| {
            let plain = it.addresses.is_empty()
                && !matches!(it.device, None | Some(Device::Pseudowire))
                && it.l2xc.is_none()
                && it.bond.is_none();
            plain && !bridged.contains(name) && !targets.contains(name)
        };
        let free = config
            .interfaces
            .iter()
            .find(|(name, it)| is_free(name, it));
        let Some((name, vrf)) = free
            .map(|(name, it)| (name.clone(), it.vrf.clone()))
            .filter(|_| self.setting(1).is_multiple_of(2))
        else {
            return;
        };
        let lender = config
            .interfaces
            .iter()
            .find(|(_, it)| it.vrf == vrf && !it.addresses.is_empty())
            .map(|(lender, _)| lender.clone());
        if let Some(interface) = config.interfaces.get_mut(&name) {
            interface.unnumbered = lender;
        }
    }

    fn interface(&self, index: usize, dice: [u8; 8], devices: Devices) -> Interface {
        let [kind, mtu, state, sflow, text, mac, placed, vrf] = dice;
        let device = match devices {
            Devices::Any => any_device(index, kind),
            Devices::InMemory => in_memory(index, kind),
        };
        let small_frames =
            devices == Devices::InMemory || matches!(device, Some(Device::Generator { .. }));
        let large = if small_frames { 2000 } else { 9000 };
        Interface {
            // A name like `tap5` is for interfaces with a device only.
            device: device.or((index == 5).then_some(Device::Null)),
            mtu: if mtu.is_multiple_of(2) { 1500 } else { large },
            state: if state.is_multiple_of(3) {
                AdminState::Down
            } else {
                AdminState::Up
            },
            urpf: [None, Some(Urpf::Loose), Some(Urpf::Strict)]
                .get(usize::from(sflow / 2 % 4))
                .copied()
                .flatten(),
            police: Police {
                input: sflow.is_multiple_of(3).then_some(Policer {
                    rate: 8_000 << (sflow / 10),
                    burst: 9000,
                }),
                output: sflow.is_multiple_of(5).then_some(Policer {
                    rate: 1_000_000,
                    burst: 100_000 + u32::from(sflow),
                }),
            },
            sflow: sflow.is_multiple_of(2),
            description: self.text(text),
            mac: mac
                .is_multiple_of(3)
                .then_some(MacAddr([2, 0, 0, 1, small(index), mac])),
            vrf: self.vrf(vrf),
            rx_queue_workers: if placed.is_multiple_of(3) {
                vec![0]
            } else {
                Vec::new()
            },
            ..Interface::default()
        }
    }

    /// Give subnets to interfaces; the neighbours that can be reached then.
    fn addresses(&self, config: &mut Config) -> Vec<Reachable> {
        let mut reachable = Vec::new();
        for (subnet, owner) in self.subnets.iter().enumerate() {
            let Some((owner, host)) = owner else { continue };
            let Some(interface) = config.interfaces.get_mut(&name(*owner)) else {
                continue;
            };
            let six = subnet % 2 == 1;
            if six && !interface.is_loopback() && (*host + small(subnet)).is_multiple_of(2) {
                let interval = 100 + 500 * u16::from(*host % 2);
                interface.router_advertisements = Some(RouterAdvertisements {
                    interval,
                    managed: *host == 0,
                    ..Default::default()
                });
            }
            let host_of = |last: u8| -> IpAddr {
                match six {
                    false => Ipv4Addr::new(10, 0, small(subnet), last).into(),
                    true => Ipv6Addr::new(
                        0x2001,
                        0xdb8,
                        0,
                        u16::from(small(subnet)),
                        0,
                        0,
                        0,
                        last.into(),
                    )
                    .into(),
                }
            };
            let second = (*host == 0).then_some(9);
            let own = |last: &u8| IpNet::new(host_of(*last), if six { 64 } else { 24 }).ok();
            interface
                .addresses
                .extend([Some(host + 1), second].iter().flatten().filter_map(own));
            let link_local =
                |last: u16| IpAddr::from(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last));
            if six && *host == 1 {
                interface
                    .addresses
                    .extend(IpNet::new(link_local(1), 64).ok());
            }
            let (vrf, owner) = (interface.vrf.clone(), name(*owner));
            let near = |address| Reachable {
                interface: owner.clone(),
                vrf: vrf.clone(),
                address,
            };
            reachable.extend([near(host_of(101)), near(host_of(102))]);
            if six && !reachable.contains(&near(link_local(7))) {
                reachable.push(near(link_local(7)));
            }
        }
        reachable
    }

    /// One of the tables that there are, or the default one.
    fn vrf(&self, dice: u8) -> Option<String> {
        let index = usize::from(dice % 4);
        self.vrfs
            .get(index)
            .copied()
            .flatten()
            .map(|_| vrf_name(index))
    }

    fn add_loopbacks(&self, config: &mut Config) {
        for (index, dice) in self.loopbacks.iter().enumerate() {
            let Some([addresses, mtu, text, mac]) = *dice else {
                continue;
            };
            let address = |last: u8| -> Option<IpNet> {
                let six = Ipv6Addr::new(
                    0x2001,
                    0xdb8,
                    1,
                    u16::from(small(index)),
                    0,
                    0,
                    0,
                    last.into(),
                );
                if last == 1 {
                    IpNet::new(six.into(), 128).ok()
                } else {
                    IpNet::new(Ipv4Addr::new(10, 1, small(index), last).into(), 32).ok()
                }
            };
            let loopback = Interface {
                description: self.text(text),
                device: Some(Device::Loopback),
                mac: mac
                    .is_multiple_of(3)
                    .then_some(MacAddr([2, 0, 0, 2, small(index), mac])),
                mtu: if mtu.is_multiple_of(2) { 1500 } else { 9000 },
                vrf: self.vrf(text / 3),
                addresses: (0..addresses % 3).filter_map(address).collect(),
                router_advertisements: (text % 4 == 0).then(RouterAdvertisements::default),
                ..Interface::default()
            };
            config.interfaces.insert(format!("loop{index}"), loopback);
        }
    }

    /// Pseudowires in the place of some routes.
    fn add_pseudowires(&self, config: &mut Config, reachable: &[Reachable]) {
        let in_default: Vec<_> = reachable
            .iter()
            .filter(|it| it.vrf.is_none())
            .cloned()
            .collect();
        for (index, route) in self.routes.iter().enumerate() {
            let Some((first, second)) = route.filter(|(first, _)| first % 3 == 1) else {
                continue;
            };
            let mut via = without_sender(via(&in_default, true, first / 3, second));
            if let Via::Paths(paths) = &mut via {
                paths
                    .iter_mut()
                    .for_each(|path| path.ttl_mode = TtlMode::default());
            }
            let name = format!("pw{index}");
            let kind = if second.is_multiple_of(3) {
                PseudowireType::Tagged
            } else {
                PseudowireType::Raw
            };
            let pseudowire = Pseudowire {
                local_label: 2000 + u32::from(small(index)) + u32::from(second % 2) * 8,
                remote_label: 3000 + u32::from(second % 4),
                via,
                control_word: first.is_multiple_of(2),
                kind,
                vlan: if kind == PseudowireType::Tagged {
                    u16::from(second % 3)
                } else {
                    0
                },
            };
            config.pseudowires.insert(name.clone(), pseudowire);
            let mtu = if first.is_multiple_of(5) { 2000 } else { 1500 };
            let state = if second.is_multiple_of(7) {
                AdminState::Down
            } else {
                AdminState::Up
            };
            let description = self.text(second / 2);
            config.interfaces.insert(
                name,
                Interface {
                    device: Some(Device::Pseudowire),
                    description,
                    mtu,
                    state,
                    ..Interface::default()
                },
            );
        }
    }

    /// VXLAN tunnels, some of them routed, to ends that are nobody's.
    fn add_tunnels(&self, config: &mut Config) {
        for (index, dice) in self.tunnels.iter().enumerate() {
            let Some([ends, text, mtu, state]) = *dice else {
                continue;
            };
            let (local, remote): (IpAddr, IpAddr) = if ends.is_multiple_of(2) {
                ([10, 0, 0, 1].into(), [198, 51, 100, ends % 4].into())
            } else {
                (
                    [0x2001, 0xdb8, 0, 1, 0, 0, 0, 1].into(),
                    [0x2001, 0xdb8, 9, 0, 0, 0, 0, u16::from(ends % 4)].into(),
                )
            };
            let tunnel = Interface {
                description: self.text(text),
                device: Some(Device::Vxlan(Vxlan {
                    local,
                    remote,
                    vni: 1 + u32::from(small(index)),
                })),
                mac: ends
                    .is_multiple_of(5)
                    .then_some(MacAddr([2, 0, 0, 5, small(index), ends])),
                mtu: if mtu.is_multiple_of(4) { 9000 } else { 1500 },
                state: if state.is_multiple_of(3) {
                    AdminState::Down
                } else {
                    AdminState::Up
                },
                vrf: self.vrf(state),
                addresses: IpNet::new(IpAddr::from([10, 4, small(index), 1]), 24)
                    .ok()
                    .filter(|_| text.is_multiple_of(4))
                    .into_iter()
                    .collect(),
                ..Interface::default()
            };
            config
                .interfaces
                .insert(format!("vxlan_tunnel{index}"), tunnel);
        }
    }

    /// Bridge domains of interfaces without addresses.
    fn add_bridges(&self, config: &mut Config) {
        for (index, dice) in self.bridges.iter().enumerate() {
            let Some([members, mtu, group, entry, rest, limit]) = *dice else {
                continue;
            };
            let mut bridge = Bridge {
                mtu: if mtu % 4 == 3 { 9000 } else { 1500 },
                description: self.text(rest),
                ..Bridge::default()
            };
            let others: Vec<&Bridge> = config.bridges.values().collect();
            let free = |name: &String, it: &Interface| {
                let taken = others.iter().any(|other| other.role_of(name).is_some());
                it.mtu == bridge.mtu && !taken
            };
            let mut names = config.interfaces.iter().filter(|(name, it)| {
                !it.is_loopback() && it.addresses.is_empty() && free(name, it)
            });
            let some: Vec<String> = (0..8)
                .filter_map(|bit| Some((bit, names.next()?)))
                .filter(|(bit, _)| members >> bit & 1 == 1)
                .map(|(_, it)| it.0.clone())
                .collect();
            let bvi = config
                .interfaces
                .iter()
                .find(|(name, it)| it.is_loopback() && free(name, it))
                .map(|(name, _)| name.clone());
            bridge.bvi = bvi.filter(|_| !rest.is_multiple_of(3));
            let grouped = some
                .iter()
                .filter(|_| group % 3 != 0)
                .map(|name| SplitHorizon {
                    interface: name.clone(),
                    group: group % 3,
                });
            bridge.split_horizon_groups = grouped.take(usize::from(group / 64)).collect();
            let entries = some.iter().take(usize::from(entry % 3)).enumerate();
            let mac = |number: usize| MacAddr([2, 0, 0, 4, small(number), entry % 2]);
            bridge.static_macs = entries
                .map(|(number, name)| StaticMac {
                    mac: mac(number),
                    interface: name.clone(),
                })
                .collect();
            bridge.interfaces = some.into_iter().collect();
            bridge.settings.mac_limit = 100 + u32::from(limit % 2);
            bridge.settings.mac_age_minutes = limit / 64;
            bridge.settings.flood_limit = u32::from(limit % 3) * 1000;
            bridge.settings.learn = !limit.is_multiple_of(5);
            bridge.settings.arp_termination = limit.is_multiple_of(4);
            bridge.settings.arp_unicast_forward = limit.is_multiple_of(7);
            let host = |last: u8| {
                (
                    IpAddr::from([10, 5, small(index), 1 + last]),
                    MacAddr([2, 0, 0, 6, last, entry % 2]),
                )
            };
            bridge.arp_entries = (0..entry % 3).map(host).collect();
            config.bridges.insert(format!("bd{}", index + 1), bridge);
        }
    }

    fn add_access_lists(&self, config: &mut Config) {
        for (index, dice) in self.prefix_lists.iter().enumerate() {
            let Some([members, text]) = *dice else {
                continue;
            };
            let member = |last: u8| IpNet::from(IpAddr::from([192, 0, 2, last]));
            let v6 = members.is_multiple_of(2).then(|| {
                IpNet::from(IpAddr::from([
                    0x2001,
                    0xdb8,
                    0,
                    0,
                    0,
                    0,
                    0,
                    u16::from(members),
                ]))
            });
            let list = PrefixList {
                description: self.text(text),
                members: (0..=members % 3).map(member).chain(v6).collect(),
            };
            config
                .prefix_lists
                .insert(format!("prefixes-{index}"), list);
        }
        let prefix_lists: Vec<String> = config.prefix_lists.keys().cloned().collect();
        for (index, terms) in self.access_lists.iter().enumerate() {
            let Some(terms) = terms else { continue };
            let terms = terms
                .iter()
                .map(|dice| self.term(*dice, &prefix_lists))
                .collect();
            config.access_lists.insert(
                format!("list-{index}"),
                AccessList {
                    description: None,
                    terms,
                },
            );
        }
        let names: Vec<String> = config.access_lists.keys().cloned().collect();
        for (index, interface) in config
            .interfaces
            .values_mut()
            .enumerate()
            .filter(|(_, it)| !it.is_loopback() && it.bond.is_none())
        {
            let dice = self.setting(index).rotate_left(3);
            let some = |dice: u8| {
                names
                    .iter()
                    .skip(usize::from(dice % 4))
                    .take(usize::from(dice / 4 % 3))
                    .cloned()
                    .collect()
            };
            interface.acl = Binding {
                input: some(dice),
                output: some(dice / 16),
                fragments: match dice % 5 {
                    0 => AclFragments::Drop,
                    1 => AclFragments::Permit,
                    _ => AclFragments::Match,
                },
            };
        }
    }

    fn term(&self, [kind, scope, ports, text, action]: [u8; 5], prefix_lists: &[String]) -> Term {
        let list = prefix_lists
            .get(usize::from(scope % 4))
            .map(|name| Scope::List(name.clone()));
        let ports = if ports.is_multiple_of(2) {
            Ports {
                first: u16::from(ports),
                last: 1000 + u16::from(ports),
            }
        } else {
            Ports::ANY
        };
        let term = Term {
            description: self.text(text),
            source: list.unwrap_or_default(),
            ..Term::all(if action.is_multiple_of(2) {
                TermAction::Permit
            } else {
                TermAction::Deny
            })
        };
        match kind % 4 {
            0 => term,
            1 => Term {
                protocol: Some(Protocol(253)),
                family: Family::Ipv4,
                ..term
            },
            2 => Term {
                protocol: Some(Protocol(17)),
                destination_port: ports,
                ..term
            },
            _ => Term {
                protocol: Some(Protocol::ICMP),
                icmp_type: Octets { first: 8, last: 8 },
                ..term
            },
        }
    }

    /// Two of `xe0`, one of `xe1` and one of the TAP, if those are there and nobody takes all they receive. Two
    /// without addresses are connected.
    fn add_sub_interfaces(&self, config: &mut Config) {
        let mut free: Vec<(String, u16)> = Vec::new();
        let lists: Vec<String> = config.access_lists.keys().cloned().collect();
        for (index, dice) in self.subs.iter().enumerate() {
            let Some([tags, text, mtu]) = *dice else {
                continue;
            };
            let parent = name(index / 2 + index / 3 * 3);
            let Some(of) = config
                .interfaces
                .get(&parent)
                .filter(|of| of.l2xc.is_none() && of.bond.is_none())
            else {
                continue;
            };
            let id = 100 + u32::from(small(index));
            let sub = sub_interface(&parent, id, tags);
            let interface = Interface {
                description: self.text(text),
                mtu: if mtu.is_multiple_of(2) { of.mtu } else { 1400 },
                state: if mtu.is_multiple_of(3) {
                    AdminState::Down
                } else {
                    of.state
                },
                addresses: IpNet::new(IpAddr::from([10, 2, small(index), 1 + tags / 2]), 24)
                    .ok()
                    .filter(|_| tags % 4 < 2)
                    .into_iter()
                    .collect(),
                vrf: self.vrf(mtu / 2),
                router_advertisements: (mtu % 5 == 0).then(|| RouterAdvertisements {
                    other: true,
                    ..RouterAdvertisements::default()
                }),
                acl: Binding {
                    input: lists
                        .get(usize::from(tags % 5))
                        .cloned()
                        .into_iter()
                        .collect(),
                    ..Binding::default()
                },
                device: Some(Device::SubInterface(sub)),
                ..Interface::default()
            };
            let name = SubInterface::name_of(&parent, &id.to_string());
            if interface.addresses.is_empty() {
                free.push((name.clone(), interface.mtu));
            }
            config.interfaces.insert(name, interface);
        }
        if let [(one, mtu), (other, same), ..] = &free[..]
            && mtu == same
        {
            for (source, target) in [(one, other), (other, one)] {
                if let Some(source) = config.interfaces.get_mut(source) {
                    source.l2xc = Some(target.clone());
                }
            }
        }
    }

    /// Bonds of what has neither addresses nor cross connect, of one MTU each.
    fn add_bonds(&self, config: &mut Config) {
        let targets: Vec<String> = config
            .interfaces
            .values()
            .filter_map(|it| it.l2xc.clone())
            .collect();
        let parents: Vec<String> = config
            .interfaces
            .values()
            .filter_map(|it| Some(it.sub_interface()?.parent.clone()))
            .collect();
        for (index, dice) in self.bonds.iter().enumerate() {
            let Some([mode, text, mac, mtu]) = *dice else {
                continue;
            };
            let name = format!("BondEthernet{index}");
            let taken = |name: &str| {
                parents.iter().any(|parent| parent == name)
                    || targets.iter().any(|target| target == name)
                    || config
                        .bridges
                        .values()
                        .any(|bridge| bridge.role_of(name).is_some())
            };
            let is_free = |name: &str, it: &Interface| {
                let is_port = !it.is_loopback()
                    && it.sub_interface().is_none()
                    && it.device != Some(Device::Pseudowire)
                    && it.as_vxlan().is_none();
                it.addresses.is_empty() && it.l2xc.is_none() && is_port && !taken(name)
            };
            let mtu = if mtu.is_multiple_of(2) { 1500 } else { 2000 };
            let free = config.interfaces.iter_mut().filter(|(name, it)| {
                is_free(name, it) && it.bond.is_none() && it.as_bond().is_none()
            });
            for (_, member) in free
                .filter(|(_, it)| it.mtu == mtu)
                .take(usize::from(1 + mode % 3))
            {
                member.bond = Some(name.clone());
                member.police = Police::default();
            }
            let bond = Interface {
                description: self.text(text),
                device: Some(Device::Bond(bond(mode))),
                mac: mac
                    .is_multiple_of(2)
                    .then_some(MacAddr([2, 0, 0, 4, small(index), mac])),
                mtu,
                state: if mac.is_multiple_of(3) {
                    AdminState::Down
                } else {
                    AdminState::Up
                },
                addresses: IpNet::new(IpAddr::from([10, 3, small(index), 1]), 24)
                    .ok()
                    .filter(|_| text.is_multiple_of(2))
                    .into_iter()
                    .collect(),
                ..Interface::default()
            };
            config.interfaces.insert(name, bond);
        }
    }

    fn live_settings(&self, config: &mut Config) {
        let sflow = &mut config.sflow;
        sflow.sampling_rate = 1000 + u32::from(self.setting(1) % 2);
        sflow.polling_interval = 20 + u32::from(self.setting(2) % 2);
        sflow.header_bytes = if self.setting(3).is_multiple_of(2) {
            128
        } else {
            64
        };
        sflow.encoding = if self.setting(4).is_multiple_of(2) {
            SflowEncoding::Expanded
        } else {
            SflowEncoding::Compact
        };
        let other = self.setting(4);
        sflow.direction = [SflowDirection::Rx, SflowDirection::Tx, SflowDirection::Both]
            [usize::from(other / 2 % 3)];
        sflow.drop_limit = u32::from(other / 8 % 2) * 100;
        let collector = |last: u8| Collector {
            drops: !other.is_multiple_of(3),
            dscp: last * 8,
            host: other.is_multiple_of(5),
            source: (last == 1).then_some(Ipv4Addr::LOCALHOST.into()),
            ..Collector::at(
                Ipv4Addr::new(127, 9, 9, last).into(),
                6343 + u16::from(last),
            )
        };
        // Nobody looks anything up, and no namespace is entered: names end in `invalid` (RFC 2606).
        sflow.dns_sd = other.is_multiple_of(7).then(|| DnsSd {
            domain: Some("weir.invalid".to_owned()),
        });
        sflow.psample = other.is_multiple_of(4).then(|| Psample {
            group: 1 + u32::from(other % 3),
            egress_group: 9,
            namespace: None,
        });
        sflow.os_index = other.is_multiple_of(2) && sflow.encoding == SflowEncoding::Expanded;
        sflow.agent_cidr = (0..other % 3)
            .map(|not| AgentCidr {
                not: not == 1,
                prefix: ipnet::Ipv4Net::default().into(),
            })
            .collect();
        sflow.collectors = (0..self.setting(5) % 3).map(collector).collect();
        if let Some(name) = config
            .interfaces
            .iter()
            .find(|(_, interface)| interface.sflow)
            .map(|(name, _)| name.clone())
        {
            let rate = SflowInterface {
                sampling_rate: Some(u32::from(other)),
                ..SflowInterface::default()
            };
            config.sflow.agent = other
                .is_multiple_of(3)
                .then(|| SflowAgent::Interface(name.clone()));
            config
                .sflow
                .interfaces
                .extend(other.is_multiple_of(5).then_some((name, rate)));
        }
        self.ipfix(config, other);
        config.logging.level = if self.setting(6).is_multiple_of(2) {
            LogLevel::Info
        } else {
            LogLevel::Debug
        };
    }

    /// Some interfaces are metered, all of them in one way or another.
    fn ipfix(&self, config: &mut Config, other: u8) {
        let ipfix = &mut config.ipfix;
        (ipfix.active_timeout, ipfix.idle_timeout) =
            (60 + u16::from(other % 2), 15 + u16::from(other % 3));
        (ipfix.flows, ipfix.sampling_rate) = (1024 << (other % 2), 1 + u32::from(other / 4 % 2));
        ipfix.biflow = other.is_multiple_of(7);
        ipfix.rate = 100_000 + u32::from(other / 8 % 2);
        if other.is_multiple_of(2) {
            ipfix.records.insert(
                "mine".into(),
                IpfixRecords {
                    elements: vec!["5-tuple".into(), "forwardingStatus".into()],
                },
            );
        }
        let set = if other.is_multiple_of(2) {
            "mine"
        } else {
            "router"
        };
        for (place, name) in config
            .interfaces
            .keys()
            .enumerate()
            .take(usize::from(other % 4))
        {
            let direction = [SflowDirection::Rx, SflowDirection::Tx, SflowDirection::Both]
                [(place + usize::from(other)) % 3];
            ipfix.interfaces.insert(
                name.clone(),
                IpfixInterface {
                    direction,
                    records: set.into(),
                    sampling_rate: (place == 1).then_some(1 + u32::from(other)),
                },
            );
        }
        let collector = |last: u8| IpfixCollector {
            address: match other % 4 {
                3 => Host::Name("collector.invalid".into()),
                _ => Host::Address(Ipv4Addr::new(127, 9, 9, last).into()),
            },
            port: 4739 + u16::from(last),
            transport: if last == 0 {
                IpfixTransport::Udp
            } else {
                IpfixTransport::Tcp
            },
            version: if last == 0 && other.is_multiple_of(5) {
                IpfixVersion::Netflow9
            } else {
                IpfixVersion::Ipfix
            },
            records: if other.is_multiple_of(3) {
                vec![set.into()]
            } else {
                Vec::new()
            },
            mtu: 1500,
            queue: 64,
            tls: None,
            namespace: None,
            source: (last == 1).then_some(Ipv4Addr::LOCALHOST.into()),
            dscp: last * 8,
            dev: None,
            table: None,
            host: other.is_multiple_of(5),
        };
        ipfix.collectors = (0..other / 2 % 3).map(collector).collect();
    }

    fn restart_settings(&self, config: &mut Config) {
        let even = |number: usize| self.setting(number).is_multiple_of(2);
        config.ip4.source_routes = even(10);
        config.peering = even(12).then(|| {
            serde_json::json!({"asn": 64500, "prefixes": ["192.0.2.0/24"], "neighbors": [{"asn": self.setting(7), "gtsm": true}]})
        });
        config.workers.count = 1 + u16::from(self.setting(7) % 2);
        config.workers.cores = if even(8) {
            (0..config.workers.count).collect()
        } else {
            Vec::new()
        };
        config.workers.idle = if even(9) { Idle::Poll } else { Idle::Sleep };
        config.workers.priority = if even(11) {
            Priority::RealTime
        } else {
            Priority::Normal
        };
        config.buffers.per_numa = if even(10) { None } else { Some(32_768) };
        config.buffers.hugepages = if even(10) {
            Hugepages::Auto
        } else {
            Hugepages::Off
        };
        config.logging.format = if even(11) {
            LogFormat::Text
        } else {
            LogFormat::Json
        };
        config.history = if even(12) {
            History::default()
        } else {
            History {
                directory: "/srv/weir: #1".into(),
                keep: 7,
            }
        };
        let api = &mut config.api;
        api.group = even(13).then(|| "weir".to_owned());
        let name = self.text(0).unwrap_or_default();
        api.tokens = vec![Token {
            name,
            role: if even(14) {
                Role::Admin
            } else {
                Role::ReadOnly
            },
            sha256: Sha256([self.setting(14); 32]),
        }];
        let tls = Tls {
            certificate: "c.pem".into(),
            key: "it's a key".into(),
            client_ca: even(14).then(|| "/ca".into()),
            client_role: if even(15) {
                Role::Admin
            } else {
                Role::ReadOnly
            },
        };
        let any_address = IpAddr::from([0, 0, 0, 0, 0, 0, 0, 0]);
        api.listen = if even(15) {
            vec![Listen {
                address: any_address,
                port: 443,
                tls: Some(tls),
            }]
        } else {
            Vec::new()
        };
        api.metrics = even(15).then_some(Metrics {
            address: Ipv4Addr::LOCALHOST.into(),
            port: 9482,
        });
    }
}

/// The last one is called as vppcfg calls TAPs.
fn name(index: usize) -> String {
    if index == 5 {
        "tap5".to_owned()
    } else {
        format!("xe{index}")
    }
}

fn small(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}

/// Connect what has no addresses, in a ring, to neighbours of the same MTU.
fn cross_connect(config: &mut Config, dice: u8) {
    let bridged = |name: &str| {
        config
            .bridges
            .values()
            .any(|bridge| bridge.role_of(name).is_some())
    };
    let unused =
        |name: &str, it: &Interface| it.addresses.is_empty() && !it.is_loopback() && !bridged(name);
    let free: Vec<(String, u16)> = config
        .interfaces
        .iter()
        .filter(|(name, it)| unused(name, it))
        .map(|(name, it)| (name.clone(), it.mtu))
        .collect();
    for mtu in [1500, 2000, 9000] {
        let ring: Vec<&String> = free
            .iter()
            .filter(|(_, it)| *it == mtu)
            .map(|(name, _)| name)
            .collect();
        let step = usize::from(dice) % ring.len().max(1);
        for (index, source) in ring.iter().enumerate().filter(|_| step != 0) {
            let target = ring
                .get((index + step) % ring.len())
                .map(|target| (*target).clone());
            if let Some(interface) = config.interfaces.get_mut(*source) {
                interface.l2xc = target;
            }
        }
    }
}

/// A neighbour that can be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reachable {
    interface: String,
    vrf: Option<String>,
    address: IpAddr,
}

fn vrf_name(index: usize) -> String {
    if index == 0 {
        "red".to_owned()
    } else {
        format!("vrf{index}")
    }
}

/// Where a route may lead to: IPv4 and IPv6 in turn.
fn destination(index: usize, dice: u8) -> IpAddr {
    let index = small(index);
    if dice % 4 < 2 {
        Ipv4Addr::new(100, index, 0, 0).into()
    } else {
        Ipv6Addr::new(0x2001, 0xdb8, 0x100 + u16::from(index), 0, 0, 0, 0, 0).into()
    }
}

fn net(address: IpAddr, long: bool) -> Option<IpNet> {
    let len = match (address, long) {
        (IpAddr::V4(_), _) => 16,
        (IpAddr::V6(_), false) => 48,
        (IpAddr::V6(_), true) => 64,
    };
    IpNet::new(address, len).ok()
}

fn pick(reachable: &[Reachable], dice: u8) -> Option<Reachable> {
    reachable
        .get(usize::from(dice).checked_rem(reachable.len())?)
        .cloned()
}

/// A way of what has no sender that could be notified.
fn without_sender(via: Via) -> Via {
    match via {
        Via::Unreachable | Via::Prohibit => Via::Blackhole,
        via if via.is_recursive() => Via::Blackhole,
        Via::Resilient(paths) => Via::Paths(paths),
        via => via,
    }
}

fn via(reachable: &[Reachable], six: bool, first: u8, second: u8) -> Via {
    let path = |dice: u8| {
        let Reachable {
            interface, address, ..
        } = pick(reachable, dice)?;
        let named = dice.is_multiple_of(2) || is_link_local(address);
        let labels = (0..u32::from(dice / 2 % 3))
            .map(|n| 100 + n + u32::from(second % 2))
            .collect();
        let mut path = Path {
            interface: named.then_some(interface),
            weight: 1 + dice % 2,
            labels,
            ..Path::to(address)
        };
        if !path.labels.is_empty() {
            path.ttl_mode = if dice.is_multiple_of(5) {
                TtlMode::Pipe
            } else {
                TtlMode::Uniform
            };
            path.traffic_class = dice.is_multiple_of(7).then_some(dice % 8);
            path.entropy_label = second.is_multiple_of(3);
        }
        Some(path)
    };
    let by_hop: BTreeMap<IpAddr, Path> = [path(first), path(second)]
        .into_iter()
        .flatten()
        .map(|path| (path.next_hop, path))
        .collect();
    match first % 10 {
        0 => Via::Blackhole,
        1 if second.is_multiple_of(2) => Via::Unreachable,
        2 if second.is_multiple_of(2) => Via::Prohibit,
        // Looked up: what another route may lead to.
        3 | 4 => {
            // An address within a destination, not its first.
            let next_hop = match destination(usize::from(second % 5), if six { 2 } else { 0 }) {
                IpAddr::V4(net) => Ipv4Addr::from(u32::from(net) + 9).into(),
                IpAddr::V6(net) => Ipv6Addr::from(u128::from(net) + 9).into(),
            };
            let next_hop_table = Some(DEFAULT_TABLE.to_owned());
            Via::Paths(vec![Path {
                next_hop_table,
                weight: 1 + first % 2,
                ..Path::to(next_hop)
            }])
        }
        _ if by_hop.is_empty() => Via::Blackhole,
        5 | 6 => Via::Resilient(by_hop.into_values().collect()),
        _ => Via::Paths(by_hop.into_values().collect()),
    }
}
