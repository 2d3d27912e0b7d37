//! What the API tells of routes: which there are, where they lead, and what they occupy.

use std::net::IpAddr;

use ipnet::IpNet;
use weir_api::{
    Destinations, Family, FibTable, RouteCandidate, RouteKey, RouteQuery, RouteVerdict,
};
use weir_fib::{Adjacency, AdjacencyKind, LabelStack, TtlMode};
use weir_wire::MacAddr;

use crate::control::Control;
use weir_control::{Candidate, Found, RouteId, RouteSource, Table};
use weir_linux::protocol;

/// Where the label is in an entry of a stack.
const LABEL_SHIFT: u32 = 12;

fn kind_view(kind: AdjacencyKind) -> weir_api::AdjacencyKind {
    match kind {
        AdjacencyKind::Neighbor => weir_api::AdjacencyKind::Neighbor,
        AdjacencyKind::Local => weir_api::AdjacencyKind::Local,
        AdjacencyKind::Glean => weir_api::AdjacencyKind::Glean,
        AdjacencyKind::Blackhole => weir_api::AdjacencyKind::Blackhole,
        AdjacencyKind::Unreachable => weir_api::AdjacencyKind::Unreachable,
        AdjacencyKind::Prohibit => weir_api::AdjacencyKind::Prohibit,
        AdjacencyKind::Drop => weir_api::AdjacencyKind::NoRoute,
        AdjacencyKind::Labelled => weir_api::AdjacencyKind::Labelled,
        AdjacencyKind::Lookup => weir_api::AdjacencyKind::Lookup,
        AdjacencyKind::Pseudowire => weir_api::AdjacencyKind::Pseudowire,
    }
}

/// How labels are pushed, if there are any.
fn push_view(stack: &LabelStack) -> Option<weir_api::LabelPush> {
    let ttl_mode = match stack.mode {
        TtlMode::Uniform => weir_api::PushMode::Uniform,
        TtlMode::Pipe => weir_api::PushMode::Pipe,
        TtlMode::ShortPipe => weir_api::PushMode::ShortPipe,
    };
    let push = weir_api::LabelPush {
        ttl_mode,
        traffic_class: stack.class,
        entropy_label: stack.entropy,
    };
    (!stack.labels.is_empty()).then_some(push)
}

fn source_view(source: RouteSource) -> weir_api::RouteSource {
    match source {
        RouteSource::Local => weir_api::RouteSource::Local,
        RouteSource::Static => weir_api::RouteSource::Static,
        RouteSource::Connected => weir_api::RouteSource::Connected,
        RouteSource::Neighbor => weir_api::RouteSource::Neighbor,
        RouteSource::Api => weir_api::RouteSource::Api,
        RouteSource::Fpm => weir_api::RouteSource::Fpm,
        RouteSource::Kernel => weir_api::RouteSource::Kernel,
    }
}

/// Why the best route is used, by what the next one has.
fn verdict_of_best(best: RouteId, next: Option<RouteId>) -> RouteVerdict {
    match next {
        None => RouteVerdict::OnlyRoute,
        Some(next) if next.source.distance() > best.source.distance() => {
            RouteVerdict::LowestDistance
        }
        Some(next) if next.metric > best.metric => RouteVerdict::LowestMetric,
        Some(_) => RouteVerdict::FirstSource,
    }
}

/// Why a route is not used while there is the best one.
fn verdict_of_other(other: RouteId, best: RouteId) -> RouteVerdict {
    if other.source.distance() > best.source.distance() {
        RouteVerdict::HigherDistance
    } else if other.metric > best.metric {
        RouteVerdict::HigherMetric
    } else {
        RouteVerdict::LaterSource
    }
}

impl Control {
    /// All routes that count among those of their prefix.
    pub(crate) fn all_routes(&self) -> Vec<weir_api::Route> {
        let of_table =
            |table| Table::after(table, None).map(move |found| self.route_view(table, found));
        self.tables_by_number()
            .into_iter()
            .flat_map(of_table)
            .collect()
    }

    /// The routes that are asked for; the cost of a long table is that of the part that is shown.
    pub(crate) fn routes_where(&self, query: &RouteQuery) -> Vec<weir_api::Route> {
        let mut found = Vec::new();
        let tables = self.tables_by_number();
        for table in tables
            .into_iter()
            .filter(|table| query.table.is_none_or(|number| number == table.number))
        {
            let after = query.after.filter(|after| after.table >= table.number);
            // Each prefix is listed once: a position after it is after all its sources.
            let behind = after
                .filter(|after| after.table == table.number)
                .map(|after| after.prefix);
            if after.is_some() && behind.is_none() {
                continue;
            }
            let room = query.most.saturating_sub(found.len());
            let view = |route| self.route_view(table, route);
            match query.destinations {
                Destinations::All if query.family == Some(Family::Ipv6) => {
                    found.extend(table.six_after(behind).take(room).map(view))
                }
                Destinations::All => {
                    let wanted =
                        |route: &Found| query.family.is_none() || route.prefix.addr().is_ipv4();
                    found.extend(table.after(behind).take_while(wanted).take(room).map(view));
                }
                Destinations::Prefix(prefix) => {
                    let route = table.get(prefix);
                    found.extend(route.map(|route| self.detailed_view(table, route)));
                }
                Destinations::LongestMatch(address) => {
                    let route = table.longest_match(address);
                    found.extend(route.map(|route| self.detailed_view(table, route)));
                }
            }
        }
        found.retain(|route| {
            query
                .family
                .is_none_or(|family| (family == Family::Ipv4) == route.prefix.addr().is_ipv4())
        });
        found.retain(|route| {
            query
                .after
                .is_none_or(|after| RouteKey::from(route) > after)
        });
        found.truncate(query.most);
        found
    }

    pub(crate) fn route_view(&self, table: &Table, route: Found) -> weir_api::Route {
        weir_api::Route {
            table: table.number,
            vrf: table.name.clone(),
            prefix: route.prefix,
            source: source_view(route.source),
            next_hops: self.recursion.next_hops(route.group),
            group: Some(self.group_view(route.group)),
            paths: self.path_views(route.group),
            candidates: Vec::new(),
        }
    }

    /// A route with all others of its prefix.
    fn detailed_view(&self, table: &Table, route: Found) -> weir_api::Route {
        let all = table.candidates(route.prefix);
        let best = all.first().map(|best| best.id);
        let second = all.get(1).map(|second| second.id);
        let view = |(place, of): (usize, &Candidate)| {
            let verdict = match (place, best, second) {
                (0, _, second) => verdict_of_best(of.id, second),
                (_, Some(best), _) => verdict_of_other(of.id, best),
                (_, None, _) => RouteVerdict::OnlyRoute,
            };
            self.candidate_view(of, verdict)
        };
        weir_api::Route {
            candidates: all.iter().enumerate().map(view).collect(),
            ..self.route_view(table, route)
        }
    }

    fn candidate_view(&self, route: &Candidate, verdict: RouteVerdict) -> RouteCandidate {
        let now = self.clock.now() / 1_000_000_000;
        let has_protocol = matches!(route.id.source, RouteSource::Kernel | RouteSource::Fpm);
        RouteCandidate {
            source: source_view(route.id.source),
            protocol: has_protocol.then(|| protocol::name(route.protocol)),
            daemon: protocol::daemon(route.protocol)
                .filter(|_| has_protocol)
                .map(str::to_owned),
            distance: route.id.source.distance(),
            metric: route.id.metric,
            age: now.saturating_sub(u64::from(route.since)),
            verdict,
            group: self.group_view(route.group),
            paths: self.path_views(route.group),
        }
    }

    /// What paths have in common that are one group.
    pub(crate) fn group_view(&self, number: u32) -> weir_api::RouteGroup {
        weir_api::RouteGroup {
            number,
            routes: self.nexthops.users(number),
            buckets: self.nexthops.buckets(number).len() as u32,
            resilient: self
                .nexthops
                .group(number)
                .is_some_and(weir_fib::Group::is_resilient),
        }
    }

    /// Adjacencies that are asked for.
    pub(crate) fn adjacencies_where(
        &self,
        query: &weir_api::AdjacencyQuery,
    ) -> weir_api::Adjacencies {
        let wanted = query.interface.as_ref().map(|name| self.index_of(name));
        let here = |adjacency: &Adjacency| match adjacency.kind {
            AdjacencyKind::Lookup => wanted.is_none(),
            _ => wanted.is_none_or(|wanted| wanted == adjacency.interface),
        };
        let all = self
            .nexthops
            .adjacencies()
            .filter(|(number, _)| query.after.is_none_or(|after| *number > after));
        let all = all
            .filter(|(_, adjacency)| here(adjacency))
            .take(query.most);
        weir_api::Adjacencies {
            adjacencies: all
                .map(|(number, adjacency)| self.adjacency_view(number, adjacency))
                .collect(),
        }
    }

    fn adjacency_view(&self, number: u32, adjacency: &Adjacency) -> weir_api::AdjacencyReply {
        let kind = adjacency.kind;
        let sends = matches!(
            kind,
            AdjacencyKind::Neighbor | AdjacencyKind::Glean | AdjacencyKind::Labelled
        );
        let on_interface =
            sends || matches!(kind, AdjacencyKind::Local | AdjacencyKind::Pseudowire);
        let entries = adjacency
            .labelled()
            .map_or(&[][..], |labelled| labelled.entries());
        weir_api::AdjacencyReply {
            number,
            kind: kind_view(kind),
            state: self.state_of(adjacency),
            interface: self
                .name_of(adjacency.interface)
                .filter(|_| on_interface)
                .map(str::to_owned),
            address: Some(adjacency.address)
                .filter(|_| matches!(kind, AdjacencyKind::Neighbor | AdjacencyKind::Labelled)),
            table: (kind == AdjacencyKind::Lookup)
                .then(|| self.number_of_table(adjacency.interface)),
            vrf: self
                .name_of_table(adjacency.interface)
                .filter(|_| kind == AdjacencyKind::Lookup),
            mac: adjacency
                .end()
                .rewrite()
                .map(|mac| MacAddr(mac).to_string()),
            source_mac: sends.then(|| MacAddr(adjacency.source_mac()).to_string()),
            mtu: sends.then_some(adjacency.mtu),
            labels: entries.iter().map(|entry| entry >> LABEL_SHIFT).collect(),
            groups: self.nexthops.groups_over(number) as u32,
        }
    }

    /// The number of a table in the configuration, from its place.
    pub(crate) fn number_of_table(&self, place: u32) -> u32 {
        self.routing
            .get(place as usize)
            .and_then(Option::as_ref)
            .map_or(0, |table| table.number)
    }

    /// The name of a table, from its place; the default one has none.
    pub(crate) fn name_of_table(&self, place: u32) -> Option<String> {
        self.routing
            .get(place as usize)
            .and_then(Option::as_ref)?
            .name
            .clone()
    }

    /// What becomes of packets that take a path to an adjacency.
    fn state_of(&self, adjacency: &Adjacency) -> weir_api::Adjacency {
        let down = self
            .tables
            .interface(adjacency.interface)
            .is_none_or(|interface| !interface.can_send);
        match adjacency.kind {
            AdjacencyKind::Neighbor | AdjacencyKind::Glean | AdjacencyKind::Labelled if down => {
                weir_api::Adjacency::Down
            }
            AdjacencyKind::Neighbor | AdjacencyKind::Labelled
                if adjacency.end().rewrite().is_some() =>
            {
                weir_api::Adjacency::Complete
            }
            AdjacencyKind::Neighbor | AdjacencyKind::Labelled => weir_api::Adjacency::Incomplete,
            AdjacencyKind::Local | AdjacencyKind::Lookup | AdjacencyKind::Pseudowire => {
                weir_api::Adjacency::Local
            }
            AdjacencyKind::Glean => weir_api::Adjacency::Glean,
            AdjacencyKind::Unreachable => weir_api::Adjacency::Unreachable,
            AdjacencyKind::Prohibit => weir_api::Adjacency::Prohibit,
            AdjacencyKind::Blackhole | AdjacencyKind::Drop => weir_api::Adjacency::Drop,
        }
    }

    /// The paths of a group.
    pub(crate) fn path_views(&self, group: u32) -> Vec<weir_api::PathReply> {
        let paths = self
            .nexthops
            .group(group)
            .map_or(&[][..], |group| group.paths());
        let buckets = self.nexthops.buckets(group);
        let share = |end: u32| buckets.iter().filter(|&&bucket| bucket == end).count() as u32;
        paths
            .iter()
            .zip(self.nexthops.ends(group))
            .map(|(path, &end)| self.path_view(path, end, share(end)))
            .collect()
    }

    pub(crate) fn path_view(
        &self,
        path: &weir_fib::Path,
        end: u32,
        buckets: u32,
    ) -> weir_api::PathReply {
        // With labels, the neighbour below them.
        let adjacency = self.nexthops.adjacency(path.adjacency);
        let kind = adjacency.map_or(AdjacencyKind::Drop, |adjacency| adjacency.kind);
        let sends = matches!(kind, AdjacencyKind::Neighbor | AdjacencyKind::Glean);
        let over = self.nexthops.adjacency(end).filter(|_| sends);
        weir_api::PathReply {
            next_hop: adjacency
                .filter(|_| kind == AdjacencyKind::Neighbor)
                .map(|adjacency| adjacency.address),
            interface: adjacency
                .and_then(|it| self.name_of(it.interface))
                .map(str::to_owned),
            weight: path.weight,
            buckets,
            adjacency_number: end,
            adjacency: adjacency.map_or(weir_api::Adjacency::Drop, |adjacency| {
                self.state_of(adjacency)
            }),
            mac: adjacency
                .and_then(|it| it.rewrite())
                .map(|mac| MacAddr(mac).to_string()),
            mtu: over.map(|it| it.mtu),
            labels: path.labels.labels.clone(),
            push: push_view(&path.labels),
        }
    }

    /// How many routes there are, and what they occupy.
    pub(crate) fn fib_summary(&self) -> weir_api::FibSummary {
        let (mut tables, mut memory_bytes) = (Vec::new(), 0);
        for table in self.tables_by_number() {
            let families = [Family::Ipv4, Family::Ipv6]
                .into_iter()
                .zip(table.counts())
                .zip(table.memory());
            for ((family, counts), memory) in families {
                let bytes = (memory.table + memory.routes) as u64;
                memory_bytes += bytes;
                let routes = RouteSource::ALL
                    .into_iter()
                    .zip(counts)
                    .filter(|(_, count)| *count > 0);
                let routes = routes
                    .map(|(source, count)| weir_api::RouteCount {
                        source: source_view(source),
                        count,
                    })
                    .collect();
                tables.push(FibTable {
                    table: table.number,
                    vrf: table.name.clone(),
                    family,
                    routes,
                    memory_bytes: bytes,
                });
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
                crate::dad::Claim::Waiting | crate::dad::Claim::Asked(_) => {
                    tentative.push(address.into())
                }
                crate::dad::Claim::Duplicate(_) => duplicate.push(address.into()),
                crate::dad::Claim::Free => {}
            }
        }
        (tentative, duplicate)
    }

    /// All own addresses of an interface, the link-local one that was made among them.
    pub(crate) fn all_addresses(&self, index: u32, wanted: &weir_config::Interface) -> Vec<IpNet> {
        let mut all: Vec<IpNet> = wanted.addresses.iter().copied().collect();
        let mac = self
            .tables
            .interface(index)
            .map_or(MacAddr::ZERO, |interface| interface.mac);
        let made = crate::control::made_link_local(&self.config.with_borrowed(wanted), mac);
        all.extend(made.and_then(|address| IpNet::new(address.into(), 64).ok()));
        all
    }
}
