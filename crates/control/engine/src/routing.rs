//! Tables and their routes, as the control side changes them.
//!
//! A route leads to a group of next hops, and a worker must know the group before it meets the route: see
//! the order of changes in `weir_fib`. So a route whose group is new waits for the next publication, and a
//! thousand routes of one change need one. A table is a VRF or the default one; workers know it by its
//! place in [`Control::routing`], which an interface carries, people by name and number.

use ipnet::IpNet;
use weir_config::Vrf;
use weir_fib::{Group, Path};

use crate::control::Control;
use weir_control::{Candidate, RouteId, Table, UpdateError};

impl Control {
    /// The place of a table by its name; that of the default one for none.
    pub(crate) fn place_of_vrf(&self, vrf: Option<&str>) -> Option<u32> {
        match vrf {
            None => Some(0),
            Some(name) => self.vrf_places.get(name).copied(),
        }
    }

    /// All tables in order of their numbers, the default one first.
    pub(crate) fn tables_by_number(&self) -> Vec<&Table> {
        let mut all: Vec<&Table> = self.routing.iter().flatten().collect();
        all.sort_by_key(|table| table.number);
        all
    }

    /// Makes a table, in the first place that is free.
    pub(crate) fn create_vrf(&mut self, name: &str, vrf: &Vrf) -> Result<(), String> {
        let table = Table::new(&self.domain, Some(name.to_owned()), vrf.table)
            .map_err(|error| error.to_string())?;
        let place = self
            .routing
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.routing.len());
        if place == self.routing.len() {
            self.routing.push(None);
        }
        if let Some(slot) = self.routing.get_mut(place) {
            *slot = Some(table);
        }
        self.vrf_places.insert(name.to_owned(), place as u32);
        self.linux.is_table_new = true;
        self.show_tables();
        Ok(())
    }

    /// Takes a table away in which nothing is left.
    pub(crate) fn delete_vrf(&mut self, name: &str) {
        let Some(place) = self.vrf_places.remove(name) else {
            return;
        };
        self.displace_api_routes(name, place);
        self.remove_linux_routes(place);
        self.delete_table_when_settled(place);
    }

    /// Gives a table another number; nothing in it changes.
    pub(crate) fn change_vrf(&mut self, name: &str, to: &Vrf) {
        let place = self.vrf_places.get(name).copied().unwrap_or(0);
        if let Some(table) = self
            .routing
            .get_mut(place as usize)
            .and_then(Option::as_mut)
            .filter(|_| place > 0)
        {
            table.number = to.table;
        }
    }

    /// Puts the forwarding tables into the master tables. A place that is free shows the default table: no
    /// interface carries it.
    pub(crate) fn show_tables(&mut self) {
        let Some(default) = self.routing.first().and_then(Option::as_ref) else {
            return;
        };
        let fill = |place: &Option<Table>| {
            let table = place.as_ref().unwrap_or(default);
            (table.fib4.fib().clone(), table.fib6.fib().clone())
        };
        (self.tables.fib4, self.tables.fib6) = self.routing.iter().map(fill).unzip();
        let lengths =
            |place: &Option<Table>| Some(place.as_ref().unwrap_or(default).lengths()?.tables());
        (self.tables.lengths4, self.tables.lengths6) =
            self.routing.iter().map_while(lengths).unzip();
        self.stale = true;
    }

    /// Keeps the lengths of prefixes while some interface is sampled, and only then.
    pub(crate) fn measure_prefixes(&mut self) -> Result<(), String> {
        let wanted = self
            .config
            .interfaces
            .values()
            .any(|interface| interface.sflow)
            || self.config.ipfix.needs_prefixes();
        let mut changed = false;
        for table in self
            .routing
            .iter_mut()
            .flatten()
            .filter(|table| table.lengths().is_some() != wanted)
        {
            table
                .measure(&self.domain, wanted)
                .map_err(|error| error.to_string())?;
            changed = true;
        }
        if changed {
            self.show_tables();
        }
        Ok(())
    }

    /// The group that consists of one adjacency.
    pub(crate) fn single(&mut self, adjacency: u32) -> u32 {
        Group::new([Path::to(adjacency)])
            .ok()
            .and_then(|group| self.nexthops.acquire(group).ok())
            .unwrap_or(weir_fib::DROP)
    }

    /// Adds a route or replaces the one of the same source and metric; takes effect at once. The group must be
    /// published already.
    pub(crate) fn set_route(
        &mut self,
        table: u32,
        prefix: IpNet,
        id: RouteId,
        group: u32,
        protocol: u8,
    ) -> Result<(), UpdateError> {
        let since = (self.clock.now() / 1_000_000_000) as u32;
        let Some(routes) = self
            .routing
            .get_mut(table as usize)
            .and_then(Option::as_mut)
        else {
            self.release_group(group);
            return Err(UpdateError::NoTable(table));
        };
        let route = Candidate {
            id,
            group,
            protocol,
            since,
        };
        match routes.set_route(prefix, route) {
            Ok(Some(old)) => self.release_group(old),
            Ok(None) => {}
            Err(error) => {
                self.release_group(group);
                return Err(error.into());
            }
        }
        self.recursion.route_changed(table, &prefix);
        Ok(())
    }

    /// Adds many routes of a table, whose groups workers know; takes effect at once. Those that are refused are returned.
    pub(crate) fn set_routes(
        &mut self,
        table: u32,
        routes: &[(IpNet, Candidate)],
    ) -> Vec<(IpNet, UpdateError)> {
        let Some(of) = self
            .routing
            .get_mut(table as usize)
            .and_then(Option::as_mut)
        else {
            let refused = |(prefix, route): &(IpNet, Candidate)| {
                self.release_group(route.group);
                (*prefix, UpdateError::NoTable(table))
            };
            return routes.iter().map(refused).collect();
        };
        let replaced = of.set_routes(routes);
        for group in replaced.groups {
            self.release_group(group);
        }
        if self.recursion.is_watching() {
            for (prefix, _) in routes {
                self.recursion.route_changed(table, prefix);
            }
        }
        let refused = replaced.refused.into_iter();
        refused
            .map(|(prefix, route, error)| {
                self.release_group(route.group);
                (prefix, error.into())
            })
            .collect()
    }

    /// Removes a route; takes effect at once.
    pub(crate) fn unset_route_now(&mut self, table: u32, prefix: IpNet, id: RouteId) {
        let Some(routes) = self
            .routing
            .get_mut(table as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        match routes.unset(prefix, id) {
            Ok(Some(old)) => self.release_group(old),
            Ok(None) => {}
            Err(error) => tracing::error!("route {prefix}: {error}"),
        }
        self.recursion.route_changed(table, &prefix);
    }
}
