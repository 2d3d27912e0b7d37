//! The second pass: typed values out of the tree.
//!
//! This pass reports nothing. What cannot be read has been reported by the walk, and is left out or
//! has its default here, so that the third pass can check everything else in the same run. Lists
//! are kept with the indices of their items beside the model, whose maps and sets do not have them,
//! because the third pass must point at the second of two equal things.

use ipnet::IpNet;

use crate::device::Device;
use crate::file::{File, WrittenNeighbor};
use crate::findings::Segment;
use crate::keys::Kind;
use crate::model::{Config, NeighborKey, Path, RouteKey, Via};
use crate::mpls::{DEFAULT_TABLE, LabelEntry, TtlMode};
use crate::scalar::MacAddr;
use crate::section::{Section, Value};
use crate::sub_interface::SubInterface;
use crate::tree::{Content, Node};
use crate::value;

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
#[derive(Clone)]
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

/// Reads what can be read.
pub(crate) fn build(root: &Node<'_>) -> Candidate {
    let has_mtu = |name: &str| {
        let interfaces = root.value("interfaces");
        interfaces
            .and_then(|it| it.value(name))
            .is_some_and(|it| it.value("mtu").is_some())
    };
    let file = File::read_keys(root, "").unwrap_or_default();
    let mut config = file.into_config(has_mtu);
    // An interface that is declared exists for the third pass, also when its section is incomplete.
    for section in ["taps", "vxlan_tunnels", "pseudowires"] {
        for (name, _) in entries(root, section) {
            let interface = config.interfaces.entry(name.to_owned()).or_default();
            if section == "pseudowires" {
                interface.device = Some(Device::Pseudowire);
            }
        }
    }
    let has_count = root
        .value("workers")
        .is_some_and(|it| it.value("count").is_some());
    if !has_count && !config.workers.cores.is_empty() {
        config.workers.count = u16::try_from(config.workers.cores.len()).unwrap_or(u16::MAX);
    }
    let routes = items(root, "routes").filter_map(|(item, node)| route(item, node));
    let neighbors = items(root, "neighbors").filter_map(|(item, node)| neighbor(item, node));
    let labels = root.value("mpls").map_or_else(Vec::new, |mpls| {
        items(mpls, "labels")
            .filter_map(|(item, node)| label(item, node))
            .collect()
    });
    let pseudowires =
        entries(root, "pseudowires").map(|(name, node)| (name.to_owned(), way(0, node)));
    let mut candidate = Candidate {
        addresses: addresses(root, &config),
        routes: routes.collect(),
        labels,
        pseudowires: pseudowires.collect(),
        neighbors: neighbors.collect(),
        config,
    };
    for (name, route) in &candidate.pseudowires {
        if let Some(pseudowire) = candidate.config.pseudowires.get_mut(name) {
            pseudowire.via = route.clone().into_via();
        }
    }
    candidate
}

/// The entries of a section of names.
fn entries<'n>(root: &'n Node<'_>, section: &str) -> impl Iterator<Item = (&'n str, &'n Node<'n>)> {
    let entries = root.value(section).map_or(&[][..], Node::entries);
    entries
        .iter()
        .map(|entry| (entry.key.as_ref(), &entry.value))
}

/// Own addresses of interfaces, loopbacks and sub-interfaces.
fn addresses(root: &Node<'_>, config: &Config) -> Vec<AddressItem> {
    let mut all = Vec::new();
    let mut add = |section: &'static str, interface: &str, node: &Node<'_>| {
        for (item, node) in items(node, "addresses") {
            if let Some(net) = IpNet::read(node, Some(Kind::OwnAddress)) {
                let interface = interface.to_owned();
                all.push(AddressItem {
                    section,
                    interface,
                    item,
                    net,
                });
            }
        }
    };
    for section in ["interfaces", "loopbacks"] {
        for (name, node) in entries(root, section) {
            add(section, name, node);
        }
    }
    for (parent, id, node) in sub_entries(root) {
        let name = SubInterface::name_of(parent, id);
        if config.interfaces.contains_key(&name) {
            add(SUB_INTERFACES, &name, node);
        }
    }
    all
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

fn route(item: usize, node: &Node<'_>) -> Option<RouteItem> {
    let key = RouteKey {
        vrf: self::key(node, "vrf", Some(Kind::VrfName)),
        prefix: self::key(node, "prefix", Some(Kind::Prefix))?,
    };
    let resilient = self::key(node, "resilient", None).unwrap_or_default();
    Some(RouteItem {
        key,
        resilient,
        ..way(item, node)
    })
}

fn label(item: usize, node: &Node<'_>) -> Option<LabelItem> {
    let label = key(node, "label", Some(Kind::Whole(16, 1_048_575)))?;
    let LabelEntry {
        lookup, ttl_mode, ..
    } = LabelEntry::read_keys(node, "")?;
    let has_via = node.value("via").is_some();
    Some(LabelItem {
        label,
        route: way(item, node),
        has_via,
        lookup: lookup.or_else(|| (!has_via).then(|| DEFAULT_TABLE.to_owned())),
        ttl_mode,
    })
}

/// The value of one key of a section.
fn key<T: Value>(node: &Node<'_>, name: &str, kind: Option<Kind>) -> Option<T> {
    T::read(node.value(name)?, kind)
}

/// The `via` of a section, for a prefix of the default table.
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
            .filter_map(|(item, node)| Some((Some(item), Path::read_keys(node, "")?)))
            .collect(),
        Content::Map(_) => Vec::new(),
    }
}

fn neighbor(item: usize, node: &Node<'_>) -> Option<NeighborItem> {
    let WrittenNeighbor {
        interface,
        address,
        mac,
    } = WrittenNeighbor::read_keys(node, "")?;
    let key = NeighborKey { interface, address };
    Some(NeighborItem { item, key, mac })
}
