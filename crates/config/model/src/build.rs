//! The second pass: typed values out of the tree.
//!
//! This pass never complains. What cannot be read has been reported by the walk, and is left out
//! or stands at its default here, so that the third pass can look at everything else in the same
//! run. Lists are kept with the indices of their items beside the model, whose maps and sets have
//! forgotten them, because the third pass must point at the second of two equal things.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;
use serde::Deserialize;
use serde::de::value::{Error as WordError, StrDeserializer};

use crate::access_list::{self, AccessList, Binding, PrefixList, Term, TermAction};
use crate::bond::Bond;
use crate::device::{Device, Memif, Stream};
use crate::findings::Segment;
use crate::model::{
    Config, Interface, NeighborKey, Path, Police, Policer, RouteKey, RouterAdvertisements, Via, Vrf,
};
use crate::mpls::{DEFAULT_TABLE, LabelEntry, TtlMode};
use crate::pseudowire::Pseudowire;
use crate::scalar::{MacAddr, decimal};
use crate::settings::{Api, Buffers, History, Ip4, Listen, Logging, Metrics, Tls, Token, Workers};
use crate::sflow::{Collector, DnsSd, Psample, Sflow, SflowInterface};
use crate::sub_interface::{Encapsulation, SubInterface, TagRewrite};
use crate::tree::{Content, Node};
use crate::value;
use crate::vxlan::Vxlan;

/// A configuration whose references have not been checked.
pub(crate) struct Candidate {
    /// Everything but routes and neighbours.
    pub(crate) config: Config,
    pub(crate) addresses: Vec<AddressItem>,
    pub(crate) routes: Vec<RouteItem>,
    pub(crate) labels: Vec<LabelItem>,
    /// The ways of pseudowires; all else of them is in `config`.
    pub(crate) pseudowires: Vec<(String, RouteItem)>,
    pub(crate) neighbors: Vec<NeighborItem>,
}

/// An own address and the item of its list.
pub(crate) struct AddressItem {
    /// `interfaces`, `loopbacks` or [`SUB_INTERFACES`].
    pub(crate) section: &'static str,
    pub(crate) interface: String,
    pub(crate) item: usize,
    pub(crate) net: IpNet,
}

/// The section of addresses of sub-interfaces, which stand below their parents.
const SUB_INTERFACES: &str = "sub-interfaces";

impl AddressItem {
    /// Where it stands.
    pub(crate) fn path(&self) -> Vec<Segment<'_>> {
        let own = match self
            .interface
            .rsplit_once('.')
            .filter(|_| self.section == SUB_INTERFACES)
        {
            Some((parent, id)) => vec![
                "interfaces".into(),
                parent.into(),
                SUB_INTERFACES.into(),
                id.into(),
            ],
            None => vec![self.section.into(), self.interface.as_str().into()],
        };
        [own, vec!["addresses".into(), self.item.into()]].concat()
    }
}

/// A route that has at least its prefix.
pub(crate) struct RouteItem {
    pub(crate) item: usize,
    pub(crate) key: RouteKey,
    /// A word that stands for no next hop.
    pub(crate) nowhere: Option<Via>,
    /// Whether flows keep their paths when others come and go.
    pub(crate) resilient: bool,
    /// Paths with the items of their list; none when `via` is one address.
    pub(crate) paths: Vec<(Option<usize>, Path)>,
}

/// An entry of a label that has at least the label.
pub(crate) struct LabelItem {
    pub(crate) label: u32,
    /// Its `via` as that of a route, with the number of the item.
    pub(crate) route: RouteItem,
    pub(crate) has_via: bool,
    pub(crate) lookup: Option<String>,
    ttl_mode: TtlMode,
}

impl LabelItem {
    fn into_entry(self) -> (u32, LabelEntry) {
        let LabelItem {
            label,
            route,
            has_via,
            lookup,
            ttl_mode,
        } = self;
        (
            label,
            LabelEntry {
                via: has_via.then(|| route.into_via()),
                lookup,
                ttl_mode,
            },
        )
    }
}

/// A static neighbour that has everything.
pub(crate) struct NeighborItem {
    pub(crate) item: usize,
    pub(crate) key: NeighborKey,
    pub(crate) mac: MacAddr,
}

impl Candidate {
    /// The configuration, once nothing is wrong with it.
    pub(crate) fn finish(self) -> Config {
        let mut config = self.config;
        config.routes = self
            .routes
            .into_iter()
            .map(|route| (route.key.clone(), route.into_via()))
            .collect();
        config.mpls.labels = self.labels.into_iter().map(LabelItem::into_entry).collect();
        config.neighbors = self
            .neighbors
            .into_iter()
            .map(|neighbor| (neighbor.key, neighbor.mac))
            .collect();
        config
    }
}

impl RouteItem {
    fn into_via(self) -> Via {
        let paths = self.paths.into_iter().map(|(_, path)| path).collect();
        match self.nowhere {
            Some(nowhere) => nowhere,
            None if self.resilient => Via::Resilient(paths),
            None => Via::Paths(paths),
        }
    }
}

/// Read what can be read.
pub(crate) fn build(root: &Node<'_>) -> Candidate {
    let mut addresses = Vec::new();
    let mut config = Config::default();
    for entry in root.value("interfaces").map_or(&[][..], Node::entries) {
        let interface = interface(&entry.value, &entry.key, &mut addresses);
        config
            .interfaces
            .insert(entry.key.clone().into_owned(), interface);
    }
    let with_mtu: HashSet<&str> = root
        .value("interfaces")
        .map_or(&[][..], Node::entries)
        .iter()
        .filter(|entry| entry.value.value("mtu").is_some())
        .map(|entry| entry.key.as_ref())
        .collect();
    for entry in root.value("taps").map_or(&[][..], Node::entries) {
        tap(
            &entry.key,
            &entry.value,
            with_mtu.contains(entry.key.as_ref()),
            &mut config,
        );
    }
    for entry in root.value("loopbacks").map_or(&[][..], Node::entries) {
        let loopback = loopback(&entry.value, &entry.key, &mut addresses);
        config
            .interfaces
            .insert(entry.key.clone().into_owned(), loopback);
    }
    for entry in root.value("bondethernets").map_or(&[][..], Node::entries) {
        bond(&entry.key, &entry.value, &mut config);
    }
    let mut pseudowires = Vec::new();
    for entry in root.value("pseudowires").map_or(&[][..], Node::entries) {
        pseudowire(&entry.key, &entry.value, &mut config);
        pseudowires.push((entry.key.clone().into_owned(), way(0, &entry.value)));
    }
    for entry in root.value("vxlan_tunnels").map_or(&[][..], Node::entries) {
        vxlan(&entry.key, &entry.value, &mut config);
    }
    // When the MTU of every parent is known.
    for (parent, id, node) in sub_entries(root) {
        let name = SubInterface::name_of(parent, id);
        let Some(of) = config.interfaces.get(parent) else {
            continue;
        };
        if let Some(interface) = sub_interface(node, parent, id, of.mtu, &mut addresses)
            && !config.interfaces.contains_key(&name)
        {
            config.interfaces.insert(name, interface);
        }
    }
    let section = |key: &str, read: &mut dyn FnMut(&Node<'_>)| {
        if let Some(node) = root.value(key) {
            read(node);
        }
    };
    for entry in root.value("bridgedomains").map_or(&[][..], Node::entries) {
        config.bridges.insert(
            entry.key.clone().into_owned(),
            crate::bridge::build(&entry.value),
        );
    }
    for entry in root.value("vrfs").map_or(&[][..], Node::entries) {
        if let Some(table) = number(&entry.value, "table") {
            let vrf = Vrf {
                table,
                description: text(&entry.value, "description"),
            };
            config.vrfs.insert(entry.key.clone().into_owned(), vrf);
        }
    }
    section("sflow", &mut |node| config.sflow = sflow(node));
    section("ipfix", &mut |node| {
        config.ipfix = crate::ipfix::build(node)
    });
    section("linux", &mut |node| {
        config.linux = crate::linux::build(node)
    });
    section("ip4", &mut |node| {
        config.ip4 = Ip4 {
            source_routes: truth(node, "source-routes").unwrap_or_default(),
        };
    });
    section("workers", &mut |node| config.workers = workers(node));
    section("buffers", &mut |node| config.buffers = buffers(node));
    section("api", &mut |node| config.api = api(node));
    section("logging", &mut |node| {
        config.logging = Logging {
            level: word(node, "level").unwrap_or_default(),
            format: word(node, "format").unwrap_or_default(),
        };
    });
    section("history", &mut |node| config.history = history(node));
    config.prefix_lists = named(root, "prefixlists", prefix_list);
    config.access_lists = named(root, "acls", access_list);
    let routes = items(root, "routes")
        .filter_map(|(item, node)| route(item, node))
        .collect();
    let neighbors = items(root, "neighbors")
        .filter_map(|(item, node)| neighbor(item, node))
        .collect();
    let labels = root.value("mpls").map(|mpls| {
        items(mpls, "labels")
            .filter_map(|(item, node)| label(item, node))
            .collect()
    });
    Candidate {
        config,
        addresses,
        routes,
        labels: labels.unwrap_or_default(),
        pseudowires,
        neighbors,
    }
}

pub(crate) fn items<'n, 't>(
    node: &'n Node<'t>,
    key: &str,
) -> impl Iterator<Item = (usize, &'n Node<'t>)> {
    node.value(key)
        .map_or(&[][..], Node::items)
        .iter()
        .enumerate()
}

pub(crate) fn text(node: &Node<'_>, key: &str) -> Option<String> {
    node.value(key)
        .filter(|value| !value.is_empty())
        .and_then(Node::text)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn file(node: &Node<'_>, key: &str) -> Option<PathBuf> {
    text(node, key).map(PathBuf::from)
}

pub(crate) fn number<N: FromStr>(node: &Node<'_>, key: &str) -> Option<N> {
    node.value(key)?.text().and_then(decimal)
}

pub(crate) fn parsed<V: FromStr>(node: &Node<'_>, key: &str) -> Option<V> {
    node.value(key)?.text()?.parse().ok()
}

/// A word as serde spells the variants of `W`.
pub(crate) fn word<W: for<'de> Deserialize<'de>>(node: &Node<'_>, key: &str) -> Option<W> {
    W::deserialize(StrDeserializer::<WordError>::new(node.value(key)?.text()?)).ok()
}

pub(crate) fn truth(node: &Node<'_>, key: &str) -> Option<bool> {
    node.value(key)?.text().and_then(value::truth)
}

fn interface(node: &Node<'_>, name: &str, addresses: &mut Vec<AddressItem>) -> Interface {
    let mut interface = Interface {
        description: text(node, "description"),
        device: node.value("device").and_then(device),
        mac: parsed(node, "mac"),
        vrf: text(node, "vrf"),
        unnumbered: text(node, "unnumbered"),
        l2xc: text(node, "l2xc"),
        acl: node.value("acl").map(binding).unwrap_or_default(),
        urpf: word(node, "urpf"),
        police: node.value("police").map(police).unwrap_or_default(),
        sflow: truth(node, "sflow").unwrap_or_default(),
        mpls: truth(node, "mpls").unwrap_or_default(),
        state: word(node, "state").unwrap_or_default(),
        ..Interface::default()
    };
    interface.mtu = number(node, "mtu").unwrap_or(interface.mtu);
    interface.rx_queue_workers = items(node, "rx-queue-workers")
        .map(|(_, node)| node.text().and_then(decimal).unwrap_or(0))
        .collect();
    interface.addresses = own_addresses(node, "interfaces", name, addresses);
    interface.router_advertisements = node
        .value("router-advertisements")
        .map(router_advertisements);
    interface
}

fn router_advertisements(node: &Node<'_>) -> RouterAdvertisements {
    let usual = RouterAdvertisements::default();
    RouterAdvertisements {
        interval: number(node, "interval").unwrap_or(usual.interval),
        lifetime: number(node, "lifetime").unwrap_or(usual.lifetime),
        managed: truth(node, "managed").unwrap_or_default(),
        other: truth(node, "other").unwrap_or_default(),
    }
}

fn own_addresses(
    node: &Node<'_>,
    section: &'static str,
    name: &str,
    all: &mut Vec<AddressItem>,
) -> BTreeSet<IpNet> {
    let net = |node: &Node<'_>| node.text().and_then(|text| value::own_address(text).ok());
    let of_this = items(node, "addresses").filter_map(|(item, node)| Some((item, net(node)?)));
    let before = all.len();
    all.extend(of_this.map(|(item, net)| AddressItem {
        section,
        interface: name.to_owned(),
        item,
        net,
    }));
    all.iter().skip(before).map(|it| it.net).collect()
}

/// The sub-interfaces of the file: parent, number, what is said.
pub(crate) fn sub_entries<'n>(
    root: &'n Node<'_>,
) -> impl Iterator<Item = (&'n str, &'n str, &'n Node<'n>)> {
    let interfaces = root.value("interfaces").map_or(&[][..], Node::entries);
    interfaces.iter().flat_map(|parent| {
        let subs = parent
            .value
            .value("sub-interfaces")
            .map_or(&[][..], Node::entries);
        subs.iter()
            .map(|sub| (parent.key.as_ref(), sub.key.as_ref(), &sub.value))
    })
}

fn sub_interface(
    node: &Node<'_>,
    parent: &str,
    id: &str,
    mtu: u16,
    addresses: &mut Vec<AddressItem>,
) -> Option<Interface> {
    let id = decimal(id)?;
    let encapsulation = match node.value("encapsulation") {
        None => Encapsulation::of_id(id),
        Some(tags) => Encapsulation {
            dot1q: number(tags, "dot1q"),
            dot1ad: number(tags, "dot1ad"),
            inner_dot1q: number(tags, "inner-dot1q"),
            exact_match: truth(tags, "exact-match").unwrap_or_default(),
        },
    };
    let tag_rewrite = node.value("tag-rewrite").map(|rewrite| TagRewrite {
        pop: number(rewrite, "pop").unwrap_or(0),
        dot1q: number(rewrite, "dot1q"),
        dot1ad: number(rewrite, "dot1ad"),
        inner_dot1q: number(rewrite, "inner-dot1q"),
    });
    let tag_rewrite = tag_rewrite.filter(|rewrite| !rewrite.is_usual(&encapsulation));
    let name = SubInterface::name_of(parent, &id.to_string());
    Some(Interface {
        description: text(node, "description"),
        mtu: number(node, "mtu").unwrap_or(mtu),
        state: word(node, "state").unwrap_or_default(),
        unnumbered: text(node, "unnumbered"),
        vrf: text(node, "vrf"),
        l2xc: text(node, "l2xc"),
        mpls: truth(node, "mpls").unwrap_or_default(),
        acl: node.value("acl").map(binding).unwrap_or_default(),
        urpf: word(node, "urpf"),
        police: node.value("police").map(police).unwrap_or_default(),
        router_advertisements: node
            .value("router-advertisements")
            .map(router_advertisements),
        addresses: own_addresses(node, SUB_INTERFACES, &name, addresses),
        device: Some(Device::SubInterface(SubInterface {
            parent: parent.to_owned(),
            id,
            encapsulation,
            tag_rewrite,
        })),
        ..Interface::default()
    })
}

fn loopback(node: &Node<'_>, name: &str, addresses: &mut Vec<AddressItem>) -> Interface {
    let mut loopback = Interface {
        description: text(node, "description"),
        device: Some(Device::Loopback),
        mac: parsed(node, "mac"),
        vrf: text(node, "vrf"),
        unnumbered: text(node, "unnumbered"),
        mpls: truth(node, "mpls").unwrap_or_default(),
        addresses: own_addresses(node, "loopbacks", name, addresses),
        router_advertisements: node
            .value("router-advertisements")
            .map(router_advertisements),
        ..Interface::default()
    };
    loopback.mtu = number(node, "mtu").unwrap_or(loopback.mtu);
    loopback
}

/// A TAP in vppcfg's form becomes the device of the interface of the same name.
fn tap(name: &str, node: &Node<'_>, has_mtu: bool, config: &mut Config) {
    let host = node.value("host");
    let interface = config.interfaces.entry(name.to_owned()).or_default();
    if let Some(mtu) = host
        .and_then(|host| number(host, "mtu"))
        .filter(|_| !has_mtu)
    {
        interface.mtu = mtu;
    }
    if interface.device.is_none() {
        interface.device = host.and_then(|host| {
            Some(Device::Tap {
                name: text(host, "name")?,
                host_mac: parsed(host, "mac"),
            })
        });
    }
    interface.description = interface
        .description
        .take()
        .or_else(|| text(node, "description"));
}

/// A bond becomes the device of the interface of the same name, and its members know it.
fn bond(name: &str, node: &Node<'_>, config: &mut Config) {
    let interface = config.interfaces.entry(name.to_owned()).or_default();
    interface.device = Some(Device::Bond(Bond {
        mode: word(node, "mode").unwrap_or_default(),
        load_balance: word(node, "load-balance").unwrap_or_default(),
        lacp_rate: word(node, "lacp-rate").unwrap_or_default(),
    }));
    interface.mac = parsed(node, "mac");
    interface.description = interface
        .description
        .take()
        .or_else(|| text(node, "description"));
    for member in items(node, "interfaces").filter_map(|(_, member)| member.text()) {
        if let Some(member) = config.interfaces.get_mut(member) {
            member.bond = Some(name.to_owned());
        }
    }
}

/// A tunnel becomes the device of the interface of the same name.
fn vxlan(name: &str, node: &Node<'_>, config: &mut Config) {
    let interface = config.interfaces.entry(name.to_owned()).or_default();
    let tunnel = || {
        Some(Vxlan {
            local: parsed(node, "local")?,
            remote: parsed(node, "remote")?,
            vni: number(node, "vni")?,
        })
    };
    interface.device = tunnel().map(Device::Vxlan);
    interface.description = interface
        .description
        .take()
        .or_else(|| text(node, "description"));
}

fn device(node: &Node<'_>) -> Option<Device> {
    match node.value("driver")?.text()? {
        "af-xdp" => Some(Device::AfXdp {
            name: text(node, "name")?,
            queues: number(node, "queues").unwrap_or(1),
            mode: word(node, "mode").unwrap_or_default(),
            allow_management: truth(node, "allow-management").unwrap_or(false),
        }),
        "tap" => Some(Device::Tap {
            name: text(node, "name")?,
            host_mac: parsed(node, "host-mac"),
        }),
        "pcap" => Some(Device::Pcap {
            input: file(node, "input"),
            output: file(node, "output"),
        }),
        "memif" => Some(Device::Memif(memif(node)?)),
        "null" => Some(Device::Null),
        "generator" => Some(Device::Generator {
            streams: items(node, "streams")
                .filter_map(|(_, node)| stream(node))
                .collect(),
        }),
        _ => None,
    }
}

fn memif(node: &Node<'_>) -> Option<Memif> {
    Some(Memif {
        socket: file(node, "socket")?,
        id: number(node, "id").unwrap_or(0),
        role: word(node, "role")?,
        secret: text(node, "secret"),
        queues: number(node, "queues").unwrap_or(1),
        ring_size: number(node, "ring-size").unwrap_or(Memif::default_ring_size()),
        buffer_size: number(node, "buffer-size").unwrap_or(Memif::default_buffer_size()),
    })
}

fn stream(node: &Node<'_>) -> Option<Stream> {
    Some(Stream {
        name: text(node, "name")?,
        limit: number(node, "limit").unwrap_or(0),
        rate: number(node, "rate").unwrap_or(0),
        size: number(node, "size").unwrap_or(Stream::default_size()),
        source_mac: parsed(node, "source-mac").unwrap_or(Stream::default_source_mac()),
        destination_mac: parsed(node, "destination-mac"),
        source: parsed(node, "source")?,
        destination: parsed(node, "destination")?,
        source_port: parsed(node, "source-port").unwrap_or(Stream::default_source_port()),
        destination_port: parsed(node, "destination-port")
            .unwrap_or(Stream::default_destination_port()),
        protocol: word(node, "protocol").unwrap_or_default(),
    })
}

fn route(item: usize, node: &Node<'_>) -> Option<RouteItem> {
    let prefix = node
        .value("prefix")?
        .text()
        .and_then(|text| value::prefix(text).ok())?;
    let via = node.value("via");
    let nowhere = via.and_then(Node::text).and_then(Via::of_word);
    let paths = via.map(paths).unwrap_or_default();
    Some(RouteItem {
        item,
        key: RouteKey {
            vrf: text(node, "vrf"),
            prefix,
        },
        nowhere,
        resilient: truth(node, "resilient").unwrap_or_default(),
        paths,
    })
}

fn label(item: usize, node: &Node<'_>) -> Option<LabelItem> {
    let label = number(node, "label")?;
    let (via, route) = (node.value("via"), way(item, node));
    let ttl_mode = word(node, "ttl-mode").unwrap_or_default();
    let lookup = text(node, "lookup").or_else(|| via.is_none().then(|| DEFAULT_TABLE.to_owned()));
    Some(LabelItem {
        label,
        route,
        has_via: via.is_some(),
        lookup,
        ttl_mode,
    })
}

/// The `via` of what is no route, in the default table.
fn way(item: usize, node: &Node<'_>) -> RouteItem {
    let via = node.value("via");
    let key = RouteKey {
        vrf: None,
        prefix: IpNet::default(),
    };
    RouteItem {
        item,
        key,
        nowhere: via.and_then(Node::text).and_then(Via::of_word),
        resilient: false,
        paths: via.map(paths).unwrap_or_default(),
    }
}

/// A pseudowire, and what makes the interface of its name one.
fn pseudowire(name: &str, node: &Node<'_>, config: &mut Config) {
    let interface = config.interfaces.entry(name.to_owned()).or_default();
    interface.device = Some(Device::Pseudowire);
    interface.description = interface
        .description
        .take()
        .or_else(|| text(node, "description"));
    let (Some(local_label), Some(remote_label)) =
        (number(node, "local-label"), number(node, "remote-label"))
    else {
        return;
    };
    let pseudowire = Pseudowire {
        local_label,
        remote_label,
        via: way(0, node).into_via(),
        control_word: truth(node, "control-word").unwrap_or(true),
        kind: word(node, "type").unwrap_or_default(),
        vlan: number(node, "vlan").unwrap_or_default(),
    };
    config.pseudowires.insert(name.to_owned(), pseudowire);
}

fn paths(via: &Node<'_>) -> Vec<(Option<usize>, Path)> {
    match &via.content {
        Content::Scalar { text, .. } => {
            let next_hop = value::neighbor(text).ok();
            next_hop
                .map(|next_hop| (None, Path::to(next_hop)))
                .into_iter()
                .collect()
        }
        Content::List(items) => items
            .iter()
            .enumerate()
            .filter_map(|(item, node)| Some((Some(item), path(node)?)))
            .collect(),
        Content::Map(_) => Vec::new(),
    }
}

fn path(node: &Node<'_>) -> Option<Path> {
    Some(Path {
        next_hop: host(node, "next-hop")?,
        interface: text(node, "interface"),
        next_hop_table: text(node, "next-hop-table"),
        weight: number(node, "weight").unwrap_or(1),
        labels: items(node, "labels")
            .filter_map(|(_, node)| node.text().and_then(decimal))
            .collect(),
        ttl_mode: word(node, "ttl-mode").unwrap_or_default(),
        traffic_class: number(node, "traffic-class"),
        entropy_label: truth(node, "entropy-label").unwrap_or_default(),
    })
}

fn host(node: &Node<'_>, key: &str) -> Option<IpAddr> {
    node.value(key)?
        .text()
        .and_then(|text| value::neighbor(text).ok())
}

fn neighbor(item: usize, node: &Node<'_>) -> Option<NeighborItem> {
    let key = NeighborKey {
        interface: text(node, "interface")?,
        address: host(node, "address")?,
    };
    Some(NeighborItem {
        item,
        key,
        mac: parsed(node, "mac")?,
    })
}

/// The entries of a section of names.
pub(crate) fn named<V>(
    root: &Node<'_>,
    section: &str,
    read: impl Fn(&Node<'_>) -> V,
) -> BTreeMap<String, V> {
    let entries = root.value(section).map_or(&[][..], Node::entries);
    entries
        .iter()
        .map(|entry| (entry.key.clone().into_owned(), read(&entry.value)))
        .collect()
}

fn prefix_list(node: &Node<'_>) -> PrefixList {
    let member = |(_, node): (usize, &Node<'_>)| node.text().and_then(access_list::prefix);
    PrefixList {
        description: text(node, "description"),
        members: items(node, "members").filter_map(member).collect(),
    }
}

fn access_list(node: &Node<'_>) -> AccessList {
    AccessList {
        description: text(node, "description"),
        terms: items(node, "terms").map(|(_, node)| term(node)).collect(),
    }
}

/// Also of a term without an action, so that the others keep their places.
fn term(node: &Node<'_>) -> Term {
    Term {
        description: text(node, "description"),
        family: word(node, "family").unwrap_or_default(),
        source: parsed(node, "source").unwrap_or_default(),
        destination: parsed(node, "destination").unwrap_or_default(),
        protocol: parsed(node, "protocol"),
        source_port: parsed(node, "source-port").unwrap_or_default(),
        destination_port: parsed(node, "destination-port").unwrap_or_default(),
        icmp_type: parsed(node, "icmp-type").unwrap_or_default(),
        icmp_code: parsed(node, "icmp-code").unwrap_or_default(),
        ..Term::all(word(node, "action").unwrap_or(TermAction::Deny))
    }
}

fn police(node: &Node<'_>) -> Police {
    let policer = |key: &str| {
        let node = node.value(key)?;
        Some(Policer {
            rate: number(node, "rate")?,
            burst: number(node, "burst")?,
        })
    };
    Police {
        input: policer("input"),
        output: policer("output"),
    }
}

fn binding(node: &Node<'_>) -> Binding {
    let names = |key: &str| {
        items(node, key)
            .filter_map(|(_, node)| node.text().filter(|_| !node.is_empty()).map(str::to_owned))
            .collect()
    };
    Binding {
        input: names("input"),
        output: names("output"),
        fragments: word(node, "fragments").unwrap_or_default(),
    }
}

fn sflow(node: &Node<'_>) -> Sflow {
    let default = Sflow::default();
    Sflow {
        sampling_rate: number(node, "sampling-rate").unwrap_or(default.sampling_rate),
        polling_interval: number(node, "polling-interval").unwrap_or(default.polling_interval),
        header_bytes: number(node, "header-bytes").unwrap_or(default.header_bytes),
        direction: word(node, "direction").unwrap_or_default(),
        drop_limit: number(node, "drop-limit").unwrap_or(default.drop_limit),
        encoding: word(node, "encoding").unwrap_or_default(),
        agent: parsed(node, "agent"),
        agent_cidr: items(node, "agent.cidr")
            .filter_map(|(_, node)| node.text()?.parse().ok())
            .collect(),
        agent_sub_id: number(node, "agent-sub-id").unwrap_or(default.agent_sub_id),
        datagram_bytes: number(node, "datagram-bytes").unwrap_or(default.datagram_bytes),
        os_index: truth(node, "osIndex").unwrap_or(default.os_index),
        if_offset: number(node, "ifOffset").unwrap_or(default.if_offset),
        collectors: items(node, "collectors")
            .filter_map(|(_, node)| collector(node))
            .collect(),
        dns_sd: node.value("dns-sd").map(|node| DnsSd {
            domain: text(node, "domain"),
        }),
        psample: node.value("psample").map(psample),
        interfaces: named(node, "interfaces", sflow_interface),
    }
}

fn sflow_interface(node: &Node<'_>) -> SflowInterface {
    SflowInterface {
        sampling_rate: number(node, "sampling-rate"),
        polling_interval: number(node, "polling-interval"),
        header_bytes: number(node, "header-bytes"),
        direction: word(node, "direction"),
        os_index: number(node, "osIndex"),
    }
}

fn psample(node: &Node<'_>) -> Psample {
    let default = Psample::default();
    Psample {
        group: number(node, "group").unwrap_or(default.group),
        egress_group: number(node, "egress-group").unwrap_or(default.egress_group),
        namespace: text(node, "namespace"),
    }
}

fn collector(node: &Node<'_>) -> Option<Collector> {
    let port = number(node, "port").unwrap_or(Collector::default_port());
    Some(Collector {
        address: parsed(node, "address")?,
        port,
        drops: truth(node, "drops").unwrap_or(Collector::default_drops()),
        namespace: text(node, "namespace"),
        source: parsed(node, "source"),
        dscp: number(node, "dscp").unwrap_or_default(),
        dev: text(node, "dev"),
        table: text(node, "table"),
        host: truth(node, "host").unwrap_or_default(),
    })
}

fn workers(node: &Node<'_>) -> Workers {
    let cores: Vec<u16> = items(node, "cores")
        .filter_map(|(_, node)| node.text().and_then(decimal))
        .collect();
    let as_many = u16::try_from(cores.len()).unwrap_or(u16::MAX).max(1);
    Workers {
        count: number(node, "count").unwrap_or(as_many),
        cores,
        idle: word(node, "idle").unwrap_or_default(),
        priority: word(node, "priority").unwrap_or_default(),
    }
}

fn buffers(node: &Node<'_>) -> Buffers {
    Buffers {
        per_numa: number(node, "per-numa"),
        hugepages: word(node, "hugepages").unwrap_or_default(),
    }
}

fn api(node: &Node<'_>) -> Api {
    Api {
        socket: file(node, "socket").unwrap_or_else(|| Api::default().socket),
        group: text(node, "group"),
        read_only_group: text(node, "read-only-group"),
        listen: items(node, "listen")
            .filter_map(|(_, node)| listen(node))
            .collect(),
        tokens: items(node, "tokens")
            .filter_map(|(_, node)| token(node))
            .collect(),
        metrics: node.value("metrics").and_then(metrics),
    }
}

fn listen(node: &Node<'_>) -> Option<Listen> {
    let port = number(node, "port").unwrap_or(Listen::default_port());
    Some(Listen {
        address: parsed(node, "address")?,
        port,
        tls: node.value("tls").and_then(tls),
    })
}

fn tls(node: &Node<'_>) -> Option<Tls> {
    let client_role = word(node, "client-role").unwrap_or_default();
    Some(Tls {
        certificate: file(node, "certificate")?,
        key: file(node, "key")?,
        client_ca: file(node, "client-ca"),
        client_role,
    })
}

fn token(node: &Node<'_>) -> Option<Token> {
    Some(Token {
        name: text(node, "name")?,
        role: word(node, "role").unwrap_or_default(),
        sha256: parsed(node, "sha256")?,
    })
}

fn metrics(node: &Node<'_>) -> Option<Metrics> {
    Some(Metrics {
        address: parsed(node, "address")?,
        port: number(node, "port").unwrap_or(Metrics::default_port()),
    })
}

fn history(node: &Node<'_>) -> History {
    let default = History::default();
    History {
        directory: file(node, "directory").unwrap_or(default.directory),
        keep: number(node, "keep").unwrap_or(default.keep),
    }
}
