//! Next hops that are not on a link: each is resolved through the longest match in a table (RFC 4271 section 5.1.3).
//!
//! A list of paths with such a next hop has a group of its own, which all routes with that list share. What the next
//! hops resolve to is written into the group in place: when the way to a next hop changes, one group is written, however
//! many routes lead over it, and no route. The next hops as they were written stay here, for whoever is to tell
//! them, since a packet's path only knows the neighbour that it takes.
//!
//! A next hop resolves to the subnet that it lies in, then it is a neighbour there; or to the paths of a static route, whose
//! own next hops may be resolved in turn, up to [`DEEPEST`] times and never through itself. One that resolves to
//! nothing, to an own address or to itself is no path; a group without any path is as no route. Of more paths than a
//! group can have, the heaviest stay.
//!
//! Which addresses were asked for is kept, so that a route that comes, changes or goes is looked at once: if no address
//! lies in its prefix, nothing depends on it. Part of the control side.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;
use weir_api::{NextHop, Unresolved};
use weir_config::Via;
use weir_fib::{AdjacencyKind, DROP, Group, LabelStack, MAX_BUCKETS, MAX_LABELS, Path};

use crate::control::Control;
use crate::neighbors::{NeighborAction, Place};
use weir_control::RouteSource;

/// Routes that lead to one another, at most.
const DEEPEST: usize = 8;
/// Next hops that are looked up for one list, and ends that are found, at most: what is configured may branch at each
/// step.
const MOST_STEPS: usize = 4096;
const MOST_ENDS: usize = 1024;
/// How often what depends on routes is worked out anew for one change, which may change routes itself: to neighbours.
pub(crate) const ROUNDS: usize = 8;

/// A list of paths in a table.
#[derive(Debug)]
struct List {
    table: u32,
    via: Via,
    /// Neighbours that are held for it.
    holds: Vec<Place>,
    /// What was asked for: table and address.
    asked: BTreeSet<(u32, IpAddr)>,
    /// Why its paths lead nowhere, of those that do; as many as it has paths.
    unresolved: Vec<Option<Unresolved>>,
}

/// All lists with next hops to resolve, by the numbers of their groups.
#[derive(Debug, Default)]
pub(crate) struct Recursion {
    lists: BTreeMap<u32, List>,
    numbers: HashMap<(u32, Via), u32>,
    /// Who asked for an address.
    watched: BTreeSet<(u32, IpAddr, u32)>,
    /// Groups to be worked out anew.
    dirty: BTreeSet<u32>,
}

impl Recursion {
    /// Whether next hops depend on routes.
    pub(crate) fn is_watching(&self) -> bool {
        !self.watched.is_empty()
    }

    /// A route to a prefix came, changed or went.
    pub(crate) fn route_changed(&mut self, table: u32, prefix: &IpNet) {
        if self.watched.is_empty() {
            return;
        }
        let inside = (table, prefix.network(), 0)..=(table, prefix.broadcast(), u32::MAX);
        self.dirty
            .extend(self.watched.range(inside).map(|(.., group)| *group));
    }

    /// Interfaces or their addresses changed: next hops on links may be behind other ones.
    pub(crate) fn interfaces_changed(&mut self) {
        let on_link = |list: &List| {
            let mut paths = list.via.paths().iter();
            paths.any(|path| path.next_hop_table.is_none())
        };
        let lists = self.lists.iter().filter(|(_, list)| on_link(list));
        self.dirty.extend(lists.map(|(number, _)| *number));
    }

    /// The paths of a list as they were given.
    pub(crate) fn via_of(&self, group: u32) -> Option<&Via> {
        self.lists.get(&group).map(|list| &list.via)
    }

    /// The next hops of a group as they were configured, if any of them is to be resolved.
    pub(crate) fn next_hops(&self, group: u32) -> Vec<NextHop> {
        let Some(list) = self.lists.get(&group) else {
            return Vec::new();
        };
        let unresolved = list
            .unresolved
            .iter()
            .copied()
            .chain(std::iter::repeat(None));
        let view = |(path, unresolved): (&weir_config::Path, _)| NextHop {
            address: path.next_hop,
            table: path.next_hop_table.clone(),
            unresolved,
        };
        list.via.paths().iter().zip(unresolved).map(view).collect()
    }

    fn watch(&mut self, group: u32, asked: BTreeSet<(u32, IpAddr)>) {
        let Some(list) = self.lists.get_mut(&group) else {
            return;
        };
        for (table, address) in std::mem::replace(&mut list.asked, asked) {
            self.watched.remove(&(table, address, group));
        }
        self.watched.extend(
            list.asked
                .iter()
                .map(|&(table, address)| (table, address, group)),
        );
    }
}

/// What a list of paths resolves to.
#[derive(Debug, Default)]
struct Resolved {
    ends: Vec<Found>,
    asked: BTreeSet<(u32, IpAddr)>,
    /// Next hops that were looked up.
    steps: usize,
    /// Why the last next hop that leads nowhere does not lead anywhere.
    unresolved: Option<Unresolved>,
}

/// A way that was found.
#[derive(Debug)]
struct Found {
    end: End,
    weight: u64,
    labels: LabelStack,
    /// The next hop, as it is written in the list, by which it was found.
    next_hop: Option<IpAddr>,
}

impl Found {
    fn of(end: End, weight: u64, labels: LabelStack) -> Found {
        Found {
            end,
            weight,
            labels,
            next_hop: None,
        }
    }
}

/// Where a path ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Neighbor(Place),
    Adjacency(u32),
}

impl Control {
    /// The group of a list with next hops to resolve; one user more.
    pub(crate) fn acquire_recursive(&mut self, table: u32, via: &Via) -> Result<u32, String> {
        let key = (table, via.clone());
        if let Some(&number) = self.recursion.numbers.get(&key) {
            self.nexthops.acquire_again(number);
            return Ok(number);
        }
        let nothing = Group::new([Path::to(DROP)]).map_err(|error| error.to_string())?;
        let number = self
            .nexthops
            .acquire_own(nothing)
            .map_err(|error| error.to_string())?;
        self.recursion.numbers.insert(key, number);
        let list = List {
            table,
            via: via.clone(),
            holds: Vec::new(),
            asked: BTreeSet::new(),
            unresolved: Vec::new(),
        };
        self.recursion.lists.insert(number, list);
        self.resolve(number);
        Ok(number)
    }

    /// Gives a group back that a route does not use any more.
    pub(crate) fn release_group(&mut self, number: u32) {
        self.nexthops.release(number);
        if self.nexthops.users(number) > 0 {
            return;
        }
        let held = self.linux.forget_group(number);
        if !held.is_empty() {
            self.let_places_go(held);
        }
        self.recursion.watch(number, BTreeSet::new());
        self.recursion.dirty.remove(&number);
        let Some(list) = self.recursion.lists.remove(&number) else {
            return;
        };
        self.recursion.numbers.remove(&(list.table, list.via));
        self.ipfix.knows.set_next_hops(number, Vec::new());
        let mut actions = Vec::new();
        list.holds
            .into_iter()
            .for_each(|place| self.neighbors.let_go(place, &mut actions));
        self.carry_out(actions);
    }

    /// Works out anew what depends on routes that changed; whether anything did.
    pub(crate) fn resolve_again(&mut self) -> bool {
        let dirty = std::mem::take(&mut self.recursion.dirty);
        for number in &dirty {
            self.resolve(*number);
        }
        !dirty.is_empty()
    }

    /// Writes into a group what its next hops resolve to now.
    fn resolve(&mut self, number: u32) {
        let Some(list) = self.recursion.lists.get(&number) else {
            return;
        };
        let mut resolved = Resolved::default();
        let (table, via) = (list.table, list.via.clone());
        let unresolved = self.resolve_list(table, &via, &mut vec![number], &mut resolved);
        let places: Vec<Place> = resolved
            .ends
            .iter()
            .filter_map(|found| {
                if let End::Neighbor(place) = found.end {
                    Some(place)
                } else {
                    None
                }
            })
            .collect();
        self.recursion.watch(number, resolved.asked);
        let (now, mut actions) = (self.clock.now(), Vec::new());
        places
            .iter()
            .for_each(|place| self.neighbors.hold_for_route(*place, now, &mut actions));
        self.carry_out(actions);
        let ways: Vec<(Path, Option<IpAddr>)> = resolved
            .ends
            .into_iter()
            .filter_map(|found| self.way(found))
            .collect();
        let group = self.resolved_group(number, &ways, matches!(via, Via::Resilient(_)));
        self.nexthops.replace_own(number, group);
        self.ipfix
            .knows
            .set_next_hops(number, self.next_hops_of(number, &ways));
        let Some(list) = self.recursion.lists.get_mut(&number) else {
            return;
        };
        list.unresolved = unresolved;
        let before = std::mem::replace(&mut list.holds, places);
        let mut actions: Vec<NeighborAction> = Vec::new();
        before
            .into_iter()
            .for_each(|place| self.neighbors.let_go(place, &mut actions));
        self.carry_out(actions);
    }

    /// The path that leads where was found, and the next hop that it is for.
    fn way(&self, found: Found) -> Option<(Path, Option<IpAddr>)> {
        let adjacency = match found.end {
            End::Neighbor(place) => self.adjacencies.get(&place).copied()?,
            End::Adjacency(adjacency) => adjacency,
        };
        let to_neighbor = self
            .nexthops
            .adjacency(adjacency)
            .is_some_and(|end| end.kind == AdjacencyKind::Neighbor);
        // What leads nowhere pushes nothing; a stack that is too deep is no way.
        let labels = if to_neighbor {
            found.labels
        } else {
            LabelStack::default()
        };
        let path = Path {
            adjacency,
            weight: u32::try_from(found.weight).unwrap_or(u32::MAX),
            labels,
        };
        (path.labels.labels.len() <= MAX_LABELS).then_some((path, found.next_hop))
    }

    /// For which next hop packets of a group take each of its ends, where that is only one.
    fn next_hops_of(&self, number: u32, ways: &[(Path, Option<IpAddr>)]) -> Vec<(u32, IpAddr)> {
        let paths = self.nexthops.group(number).map_or(&[][..], Group::paths);
        let of = |path: &Path| {
            let mut all = ways
                .iter()
                .filter(|(way, _)| (way.adjacency, &way.labels) == (path.adjacency, &path.labels))
                .map(|(_, hop)| *hop);
            let first = all.next()??;
            all.all(|other| other == Some(first)).then_some(first)
        };
        paths
            .iter()
            .zip(self.nexthops.ends(number))
            .filter_map(|(path, end)| Some((*end, of(path)?)))
            .collect()
    }

    fn resolved_group(
        &self,
        number: u32,
        ways: &[(Path, Option<IpAddr>)],
        resilient: bool,
    ) -> Group {
        let mut paths: Vec<Path> = ways.iter().map(|(path, _)| path.clone()).collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.weight));
        paths.truncate(MAX_BUCKETS);
        let group = if resilient {
            Group::resilient(paths, self.nexthops.group(number))
        } else {
            Group::new(paths)
        };
        // Without a path it is as if there were no route.
        group
            .or_else(|_| Group::new([Path::to(DROP)]))
            .unwrap_or_else(|_| Group::nowhere())
    }

    /// Adds what a list of paths in a table resolves to; says for each path why it leads nowhere, if it does.
    fn resolve_list(
        &self,
        table: u32,
        via: &Via,
        way: &mut Vec<u32>,
        to: &mut Resolved,
    ) -> Vec<Option<Unresolved>> {
        let mut unresolved = Vec::new();
        for path in via.paths() {
            let mut own = Resolved {
                steps: to.steps,
                ..Resolved::default()
            };
            match &path.next_hop_table {
                None => own.ends.extend(
                    self.place(table, path)
                        .map(|place| Found::of(End::Neighbor(place), 1, LabelStack::default())),
                ),
                Some(name) => self.resolve_next_hop(name, path.next_hop, way, &mut own),
            }
            to.asked.append(&mut own.asked);
            to.steps = own.steps;
            let why = own
                .ends
                .is_empty()
                .then(|| own.unresolved.unwrap_or(Unresolved::NoRoute));
            to.unresolved = why.or(to.unresolved);
            unresolved.push(why);
            let labels = crate::labels::pushed(path);
            // All that a path resolves to shares its weight.
            let all: u64 = own.ends.iter().map(|found| found.weight).sum();
            let weight = |its: u64| SHARE * u64::from(path.weight) * its / all.max(1);
            let next_hop = path.next_hop_table.as_ref().map(|_| path.next_hop);
            to.ends.extend(own.ends.into_iter().map(|found| Found {
                end: found.end,
                weight: weight(found.weight).max(1),
                // Below those of the way there.
                labels: labels.within(found.labels),
                next_hop,
            }));
        }
        unresolved
    }

    /// Adds what one next hop resolves to in a table.
    fn resolve_next_hop(
        &self,
        table: &str,
        address: IpAddr,
        way: &mut Vec<u32>,
        to: &mut Resolved,
    ) {
        let Some(table) =
            self.place_of_vrf(Some(table).filter(|name| *name != weir_config::DEFAULT_TABLE))
        else {
            return;
        };
        to.steps += 1;
        if to.steps > MOST_STEPS || to.ends.len() > MOST_ENDS {
            to.unresolved = Some(Unresolved::TooDeep);
            return;
        }
        to.asked.insert((table, address));
        let Some(routes) = self.routing.get(table as usize).and_then(Option::as_ref) else {
            return;
        };
        let Some(found) = routes.longest_match(address) else {
            return;
        };
        match found.source {
            RouteSource::Local => to.unresolved = Some(Unresolved::OwnAddress),
            RouteSource::Connected | RouteSource::Neighbor => {
                let end = self
                    .nexthops
                    .group(found.group)
                    .and_then(|group| self.nexthops.adjacency(group.paths().first()?.adjacency));
                let interface = end
                    .filter(|end| end.kind != AdjacencyKind::Local)
                    .map(|end| end.interface);
                let end = |interface| {
                    Found::of(
                        End::Neighbor(Place { interface, address }),
                        1,
                        LabelStack::default(),
                    )
                };
                to.ends.extend(interface.map(end));
            }
            _ if way.contains(&found.group) => to.unresolved = Some(Unresolved::Loop),
            _ if way.len() > DEEPEST => to.unresolved = Some(Unresolved::TooDeep),
            RouteSource::Static | RouteSource::Api | RouteSource::Kernel | RouteSource::Fpm => {
                match self.recursion.lists.get(&found.group) {
                    Some(list) => {
                        way.push(found.group);
                        self.resolve_list(list.table, &list.via, way, to);
                        way.pop();
                    }
                    None => {
                        let paths = self
                            .nexthops
                            .group(found.group)
                            .map_or(&[][..], Group::paths);
                        let end = |path: &Path| {
                            Found::of(
                                End::Adjacency(path.adjacency),
                                path.weight.into(),
                                path.labels.clone(),
                            )
                        };
                        to.ends.extend(paths.iter().map(end));
                    }
                }
            }
        }
    }

    /// The neighbour that a path without a table leads to.
    pub(crate) fn place(&self, table: u32, path: &weir_config::Path) -> Option<Place> {
        let interface = match &path.interface {
            // 0 where there is no such interface (now).
            Some(name) => Some(self.index_of(name)).filter(|&index| index > 0)?,
            None => self.subnets.find(table, path.next_hop, None)?.0,
        };
        Some(Place {
            interface,
            address: path.next_hop,
        })
    }
}

/// What weights are counted in while they are shared out: divisible by every number of paths up to eight and by many more.
const SHARE: u64 = 840;
