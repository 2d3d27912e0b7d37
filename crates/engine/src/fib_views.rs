//! What the API tells of routes: which there are, where they lead, and what they occupy.

use std::net::IpAddr;

use ipnet::IpNet;
use weir_api::{Destinations, Family, FibTable, RouteKey, RouteQuery};
use weir_fib::AdjacencyKind;

use crate::control::Control;
use crate::rib::{Found, RouteSource, Table};

fn source_view(source: RouteSource) -> weir_api::RouteSource {
    match source {
        RouteSource::Local => weir_api::RouteSource::Local,
        RouteSource::Static => weir_api::RouteSource::Static,
        RouteSource::Connected => weir_api::RouteSource::Connected,
        RouteSource::Neighbor => weir_api::RouteSource::Neighbor,
    }
}

impl Control {
    /// All routes that count among those of their prefix.
    pub(crate) fn all_routes(&self) -> Vec<weir_api::Route> {
        let of_table = |table| Table::after(table, None).map(move |found| self.route_view(table, found));
        self.tables_by_number().into_iter().flat_map(of_table).collect()
    }

    /// The routes that are asked for; what a long table costs is what is told of it.
    pub(crate) fn routes_where(&self, query: &RouteQuery) -> Vec<weir_api::Route> {
        let mut found = Vec::new();
        let tables = self.tables_by_number();
        for table in tables.into_iter().filter(|table| query.table.is_none_or(|number| number == table.number)) {
            let after = query.after.filter(|after| after.table >= table.number);
            // Each prefix is told once: behind it is behind all its sources.
            let behind = after.filter(|after| after.table == table.number).map(|after| after.prefix);
            if after.is_some() && behind.is_none() {
                continue;
            }
            let room = query.most.saturating_sub(found.len());
            let view = |route| self.route_view(table, route);
            match query.destinations {
                Destinations::All => found.extend(table.after(behind).take(room).map(view)),
                Destinations::Prefix(prefix) => found.extend(table.get(prefix).map(view)),
                Destinations::LongestMatch(address) => found.extend(table.longest_match(address).map(view)),
            }
        }
        found.retain(|route| query.after.is_none_or(|after| RouteKey::from(route) > after));
        found.truncate(query.most);
        found
    }

    fn route_view(&self, table: &Table, route: Found) -> weir_api::Route {
        let paths = self.nexthops.group(route.group).map_or(&[][..], |group| group.paths());
        weir_api::Route {
            table: table.number,
            prefix: route.prefix,
            source: source_view(route.source),
            paths: paths.iter().map(|path| self.path_view(path)).collect(),
        }
    }

    pub(crate) fn path_view(&self, path: &weir_fib::Path) -> weir_api::PathReply {
        let adjacency = self.nexthops.adjacency(path.adjacency);
        let kind = adjacency.map_or(AdjacencyKind::Drop, |adjacency| adjacency.kind);
        let interface = adjacency.map_or(0, |adjacency| adjacency.interface);
        let down = self.tables.interface(interface).is_none_or(|interface| !interface.can_send);
        let state = match kind {
            AdjacencyKind::Neighbor | AdjacencyKind::Glean if down => weir_api::Adjacency::Down,
            AdjacencyKind::Neighbor if adjacency.is_some_and(|adjacency| adjacency.rewrite().is_some()) => weir_api::Adjacency::Complete,
            AdjacencyKind::Neighbor => weir_api::Adjacency::Incomplete,
            AdjacencyKind::Local | AdjacencyKind::Lookup | AdjacencyKind::Pseudowire => weir_api::Adjacency::Local,
            AdjacencyKind::Glean => weir_api::Adjacency::Glean,
            AdjacencyKind::Unreachable => weir_api::Adjacency::Unreachable,
            AdjacencyKind::Prohibit => weir_api::Adjacency::Prohibit,
            // A path ends in the neighbour below its labels.
            AdjacencyKind::Blackhole | AdjacencyKind::Drop | AdjacencyKind::Labelled => weir_api::Adjacency::Drop,
        };
        let next_hop = adjacency.filter(|_| kind == AdjacencyKind::Neighbor).map(|adjacency| adjacency.address);
        weir_api::PathReply {
            next_hop,
            interface: self.name_of(interface).map(str::to_owned),
            weight: path.weight,
            adjacency: state,
            labels: path.labels.labels.clone(),
        }
    }

    /// How many routes there are, and what they occupy.
    pub(crate) fn fib_summary(&self) -> weir_api::FibSummary {
        let (mut tables, mut memory_bytes) = (Vec::new(), 0);
        for table in self.tables_by_number() {
            let families = [Family::Ipv4, Family::Ipv6].into_iter().zip(table.counts()).zip(table.memory());
            for ((family, counts), memory) in families {
                let bytes = (memory.table + memory.routes) as u64;
                memory_bytes += bytes;
                let routes = RouteSource::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0);
                let routes = routes.map(|(source, count)| weir_api::RouteCount { source: source_view(source), count }).collect();
                tables.push(FibTable { table: table.number, vrf: table.name.clone(), family, routes, memory_bytes: bytes });
            }
        }
        weir_api::FibSummary {
            tables,
            adjacencies: self.nexthops.adjacencies().count() as u64,
            groups: self.nexthops.groups().count() as u64,
            memory_bytes,
        }
    }

    /// The addresses of an interface that are not used: still being asked about, and somebody else's.
    pub(crate) fn unused_addresses(&self, index: u32) -> (Vec<IpAddr>, Vec<IpAddr>) {
        let (mut tentative, mut duplicate) = (Vec::new(), Vec::new());
        for (address, claim) in self.claims.of(index) {
            match claim {
                crate::dad::Claim::Waiting | crate::dad::Claim::Asked(_) => tentative.push(address.into()),
                crate::dad::Claim::Duplicate(_) => duplicate.push(address.into()),
                crate::dad::Claim::Free => {}
            }
        }
        (tentative, duplicate)
    }

    /// All own addresses of an interface, the link-local one that was made among them.
    pub(crate) fn all_addresses(&self, index: u32, wanted: &weir_config::Interface) -> Vec<IpNet> {
        let mut all: Vec<IpNet> = wanted.addresses.iter().copied().collect();
        let mac = self.tables.interface(index).map_or(weir_wire::MacAddr::ZERO, |interface| interface.mac);
        let made = crate::control::made_link_local(wanted, mac);
        all.extend(made.and_then(|address| IpNet::new(address.into(), 64).ok()));
        all
    }
}
