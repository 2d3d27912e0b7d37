//! Changes of routes of the kernel and of zebra: the table, the group of next hops, and the neighbours that it needs.

use std::sync::Arc;

use ipnet::IpNet;
use weir_control::{
    Candidate, NextHop, Route, RouteId, RouteSource, RouteUpdate, Target, UpdateError,
};
use weir_fib::{Group, LabelStack, Path};

use crate::control::Control;
use crate::neighbors::Place;

/// Prefixes of a table that goes which are inspected at once.
const TABLE_PART: usize = 1 << 14;

/// Routes that are set together, at most.
const BATCH: usize = 8192;

/// Routes of one table whose groups workers know.
#[derive(Default)]
struct Batch {
    table: u32,
    /// When they are set, in seconds of the router's clock.
    since: u32,
    routes: Vec<(IpNet, Candidate)>,
}

impl Control {
    /// Carries out changes of a source's routes. One that is refused leaves no older route behind.
    pub(crate) fn update_routes(&mut self, updates: &[RouteUpdate]) {
        let mut batch = Batch::default();
        for update in updates {
            if let RouteUpdate::Set(route) = update
                && self.add_to_batch(&mut batch, route)
            {
                continue;
            }
            self.carry_out_batch(&mut batch);
            let result = match update {
                RouteUpdate::Set(route) => self.set_source_route(route),
                RouteUpdate::Remove {
                    table,
                    prefix,
                    source,
                    metric,
                    path,
                } => self.remove_source_route(
                    *table,
                    *prefix,
                    RouteId {
                        source: *source,
                        metric: *metric,
                    },
                    path.as_ref(),
                ),
            };
            match result {
                Ok(()) => self.linux.counters.applied += 1,
                Err(error) => self.linux.refuse(update.prefix(), error),
            }
        }
        self.carry_out_batch(&mut batch);
        self.settle_or_log();
    }

    /// Gathers a route whose group workers know already; most of a full table are such. Whether it was one.
    fn add_to_batch(&mut self, batch: &mut Batch, route: &Route) -> bool {
        if !self.may_set_at_once() {
            return false;
        }
        let Ok(table) = self.place_of_number(route.table) else {
            return false;
        };
        let known = match &*route.target {
            Target::Object(_) => None,
            _ => self.linux.groups.get(&route.target).copied(),
        };
        let Some(group) = known else {
            return false;
        };
        if batch.table != table || batch.routes.len() >= BATCH {
            self.carry_out_batch(batch);
        }
        if batch.routes.is_empty() {
            (batch.table, batch.since) = (table, (self.clock.now() / 1_000_000_000) as u32);
        }
        let id = RouteId {
            source: route.source,
            metric: route.metric,
        };
        self.linux
            .objects
            .forget_parked(route.table, route.prefix, id);
        if self.linux.is_reading
            && route.source == RouteSource::Kernel
            && self.group_of_route(table, route.prefix, id) != known
        {
            self.linux.counters.healed += 1;
        }
        self.nexthops.acquire_again(group);
        let candidate = Candidate {
            id,
            group,
            protocol: route.protocol,
            since: batch.since,
        };
        batch.routes.push((route.prefix, candidate));
        true
    }

    fn carry_out_batch(&mut self, batch: &mut Batch) {
        if batch.routes.is_empty() {
            return;
        }
        let routes = std::mem::take(&mut batch.routes);
        let refused = self.set_routes(batch.table, &routes);
        self.linux.counters.applied += (routes.len() - refused.len()) as u64;
        for (prefix, error) in refused {
            self.linux.refuse(prefix, error);
        }
    }

    /// The place of a table by its number.
    pub(super) fn place_of_number(&self, number: u32) -> Result<u32, UpdateError> {
        let is_it = |table: &Option<weir_control::Table>| {
            table.as_ref().is_some_and(|table| table.number == number)
        };
        let place = self.routing.iter().position(is_it);
        place
            .map(|place| place as u32)
            .ok_or(UpdateError::NoTable(number))
    }

    pub(crate) fn set_source_route(&mut self, route: &Route) -> Result<(), UpdateError> {
        let table = self.place_of_number(route.table)?;
        let id = RouteId {
            source: route.source,
            metric: route.metric,
        };
        let group = self.group_of_source_route(table, route, id);
        match group {
            Ok(Some(group)) => self.set_route_of(table, route.prefix, id, group, route.protocol),
            Ok(None) => Ok(()),
            Err(error) => {
                self.unset_route(table, route.prefix, id);
                Err(error)
            }
        }
    }

    /// The group that a route leads to, with one user more; `None` while it waits for its next-hop object.
    fn group_of_source_route(
        &mut self,
        table: u32,
        route: &Route,
        id: RouteId,
    ) -> Result<Option<u32>, UpdateError> {
        self.linux
            .objects
            .forget_parked(route.table, route.prefix, id);
        if let Target::Object(object) = *route.target {
            return self.group_of_object(object, route, id);
        }
        let known = self.linux.groups.get(&route.target).copied();
        if self.linux.is_reading
            && route.source == RouteSource::Kernel
            && (known.is_none() || self.group_of_route(table, route.prefix, id) != known)
        {
            self.linux.counters.healed += 1;
        }
        self.group_of_target(&route.target).map(Some)
    }

    /// The group that all routes and labels to a target share, with one user more.
    pub(super) fn group_of_target(&mut self, target: &Arc<Target>) -> Result<u32, UpdateError> {
        if let Some(group) = self.linux.groups.get(target).copied() {
            self.nexthops.acquire_again(group);
            return Ok(group);
        }
        let group = self.group_of_own(target)?;
        self.linux.groups.insert(target.clone(), group);
        Ok(group)
    }

    fn group_of_route(&self, table: u32, prefix: IpNet, id: RouteId) -> Option<u32> {
        self.routing.get(table as usize)?.as_ref()?.of(prefix, id)
    }

    fn remove_source_route(
        &mut self,
        number: u32,
        prefix: IpNet,
        id: RouteId,
        path: Option<&NextHop>,
    ) -> Result<(), UpdateError> {
        let table = self.place_of_number(number)?;
        self.linux.objects.forget_parked(number, prefix, id);
        let rest = path.and_then(|path| self.without_path(table, prefix, id, path));
        match rest {
            Some(target) => self.set_source_route(&Route {
                table: number,
                prefix,
                source: id.source,
                metric: id.metric,
                protocol: 0,
                target: Arc::new(target),
            }),
            None => {
                self.unset_route(table, prefix, id);
                Ok(())
            }
        }
    }

    /// What is left of a route without one path, if anything is.
    fn without_path(
        &self,
        table: u32,
        prefix: IpNet,
        id: RouteId,
        gone: &NextHop,
    ) -> Option<Target> {
        let group = self.group_of_route(table, prefix, id)?;
        let (target, _) = self.linux.targets.get(&group)?;
        let Target::Paths(paths) = &**target else {
            return None;
        };
        let is_gone =
            |path: &NextHop| (path.interface, path.gateway) == (gone.interface, gone.gateway);
        let left: Vec<NextHop> = paths
            .iter()
            .filter(|path| !is_gone(path))
            .cloned()
            .collect();
        (!left.is_empty()).then(|| Target::Paths(left.into()))
    }

    /// A group of its own that leads to a target; one user.
    pub(crate) fn group_of_own(&mut self, target: &Arc<Target>) -> Result<u32, UpdateError> {
        let (paths, places) = self.paths_of(target)?;
        let group = Group::new(paths).and_then(|group| self.nexthops.acquire_own(group));
        match group {
            Ok(group) => {
                self.linux.targets.insert(group, (target.clone(), places));
                Ok(group)
            }
            Err(error) => {
                self.let_places_go(places);
                Err(error.into())
            }
        }
    }

    /// Writes another target into a group of its own.
    pub(crate) fn replace_target(
        &mut self,
        number: u32,
        target: &Arc<Target>,
    ) -> Result<(), UpdateError> {
        let (paths, places) = self.paths_of(target)?;
        match Group::new(paths) {
            Ok(group) => {
                self.nexthops.replace_own(number, group);
                let entry = (target.clone(), places);
                if let Some((_, before)) = self.linux.targets.insert(number, entry) {
                    self.let_places_go(before);
                }
                Ok(())
            }
            Err(error) => {
                self.let_places_go(places);
                Err(error.into())
            }
        }
    }

    /// The interface whose TAP has an index in Linux.
    pub(super) fn interface_of_link(&mut self, link: u32) -> Result<u32, UpdateError> {
        if let Some(interface) = self.linux.links.get(&link) {
            return Ok(*interface);
        }
        if self.linux.vrf_links.contains_key(&link) {
            return Err(UpdateError::IntoTable(link));
        }
        self.linux.lacks_link = true;
        Err(UpdateError::NoInterface(link))
    }

    /// The paths to a target, and the neighbours that are held for them.
    fn paths_of(&mut self, target: &Target) -> Result<(Vec<Path>, Vec<Place>), UpdateError> {
        let (mut ends, mut places) = (Vec::new(), Vec::new());
        if let Target::Paths(hops) = target {
            for hop in hops {
                ends.push((self.interface_of_link(hop.interface)?, hop));
            }
        }
        let (now, mut actions) = (self.clock.now(), Vec::new());
        for (interface, hop) in &ends {
            if let Some(address) = hop.gateway {
                let place = Place {
                    interface: *interface,
                    address,
                };
                self.neighbors.hold_for_route(place, now, &mut actions);
                places.push(place);
            }
        }
        self.carry_out(actions);
        let paths = match target {
            Target::Paths(_) => ends
                .iter()
                .map(|(interface, hop)| self.path_to(*interface, hop))
                .collect(),
            Target::Blackhole => vec![Path::to(self.nowhere.blackhole)],
            Target::Local => vec![Path::to(self.local_of_linux())],
            Target::Unreachable | Target::Object(_) => {
                vec![Path::to(self.nowhere.unreachable)]
            }
            Target::Prohibit => vec![Path::to(self.nowhere.prohibit)],
        };
        Ok((paths, places))
    }

    pub(super) fn path_to(&self, interface: u32, hop: &NextHop) -> Path {
        let adjacency = match hop.gateway {
            Some(address) => self.adjacencies.get(&Place { interface, address }).copied(),
            None => self
                .interfaces
                .values()
                .find(|attached| attached.index == interface)
                .map(|attached| attached.glean),
        };
        let labels = if hop.gateway.is_some() {
            LabelStack::of(&hop.labels)
        } else {
            LabelStack::default()
        };
        Path {
            weight: hop.weight.max(1),
            labels,
            ..Path::to(adjacency.unwrap_or(weir_fib::DROP))
        }
    }

    /// Neighbours that a group held.
    pub(crate) fn let_places_go(&mut self, places: Vec<Place>) {
        let mut actions = Vec::new();
        for place in places {
            self.neighbors.let_go(place, &mut actions);
        }
        self.carry_out(actions);
    }

    /// Removes all routes of Linux from a table that goes.
    pub(crate) fn remove_linux_routes(&mut self, place: u32) {
        let mut after = None;
        loop {
            let Some(Some(table)) = self.routing.get(place as usize) else {
                return;
            };
            let (found, next) = table.of_linux(after, TABLE_PART);
            for (prefix, id) in found {
                self.unset_route(place, prefix, id);
            }
            match next {
                None => return,
                Some(_) => after = next,
            }
        }
    }

    /// The adjacency of own addresses that only Linux has (`ip route add local`): any interface with a TAP. Packets go to
    /// the TAP of the interface that they came in by.
    fn local_of_linux(&self) -> u32 {
        let first = self.linux.links.values().next();
        let of_index = |index: &u32| {
            let mut all = self.interfaces.values();
            all.find(|attached| attached.index == *index)
        };
        first
            .and_then(of_index)
            .map_or(self.nowhere.unreachable, |attached| attached.local)
    }
}
