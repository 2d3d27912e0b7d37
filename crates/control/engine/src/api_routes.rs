//! Routes that clients of the API set (`POST /v1/routes`): a source of the routing table beside configuration and kernel.
//!
//! A route's paths are a list of the recursion (`recursion.rs`), also when they are on links: all routes with the same
//! paths share one group, and the list resolves again when interfaces, addresses or routes change. So a route stays when its
//! interface goes, leads nowhere meanwhile, and works again when the interface is back. Routes of a VRF go with it,
//! and come back only when the change that deleted it is undone or makes it again.
//!
//! Runs on threads of the API. A request is carried out in parts of [`PART`] routes, each under the control lock, which
//! is free between them; one request at a time.

use ipnet::IpNet;
use weir_api::{
    ApiError, ApiRoute, ApiRouteKey, Caller, Discard, ErrorCode, RouteChanges, RouteResync,
    RoutesChanged,
};
use weir_config::{DEFAULT_TABLE, Path, Via};
use weir_control::{RouteId, RouteSource};

use crate::control::Control;
use crate::router::Router;

/// Routes that are changed with the control lock held once.
const PART: usize = 2048;
/// Prefixes that are inspected for stale routes with the lock held once.
const SWEEP: usize = 1 << 14;
/// Changes that may wait for the workers before requests are refused.
const MOST_WAITING: usize = 1 << 16;
/// Labels that a path pushes, at most.
const MOST_LABELS: usize = weir_fib::MAX_LABELS;

/// What the control side keeps for routes of the API.
#[derive(Debug, Default)]
pub(crate) struct ApiRoutes {
    /// Routes of VRFs that the current change has deleted.
    displaced: Vec<Displaced>,
}

/// A route whose VRF is gone.
#[derive(Debug)]
struct Displaced {
    vrf: String,
    prefix: IpNet,
    id: RouteId,
    via: Via,
}

fn id(metric: u32) -> RouteId {
    RouteId {
        source: RouteSource::Api,
        metric,
    }
}

/// `default` names the default table, which is no VRF.
fn vrf_of(name: Option<&str>) -> Option<&str> {
    name.filter(|name| *name != DEFAULT_TABLE)
}

impl Router {
    /// Sets and deletes routes; each is done or refused by itself.
    pub(crate) fn change_routes(
        &self,
        changes: &RouteChanges,
        caller: &Caller,
    ) -> Result<RoutesChanged, ApiError> {
        let _one_at_a_time = self.route_changes();
        let mut changed = RoutesChanged::default();
        let resync = changes.resync;
        if matches!(resync, Some(RouteResync::Begin | RouteResync::All)) {
            self.control().begin_api_generation();
        }
        for part in changes.delete.chunks(PART) {
            self.control().delete_api_routes(part, &mut changed);
            self.wait_for_room(&changed)?;
        }
        for part in changes.set.chunks(PART) {
            self.control().set_api_routes(part, &mut changed);
            self.wait_for_room(&changed)?;
        }
        if matches!(resync, Some(RouteResync::End | RouteResync::All)) {
            self.wait_until_settled();
            self.sweep_api_routes(&mut changed);
        }
        self.wait_until_settled();
        tracing::info!(
            %caller,
            set = changed.set,
            deleted = changed.deleted,
            stale = changed.stale,
            refused = changed.refused,
            "routes of the API changed"
        );
        Ok(changed)
    }

    /// Waits while too many changes wait for the workers.
    fn wait_for_room(&self, changed: &RoutesChanged) -> Result<(), ApiError> {
        if self.control().publication.len() < MOST_WAITING {
            return Ok(());
        }
        self.wait_until_settled();
        if self.control().publication.len() < MOST_WAITING {
            return Ok(());
        }
        Err(ApiError::new(
            ErrorCode::Unavailable,
            format!(
                "a worker does not take over the tables: {} routes of the request were set and {} deleted",
                changed.set, changed.deleted
            ),
            "see `weir show runtime`, and send the request again",
        ))
    }

    /// Deletes what was not set since the generation began.
    fn sweep_api_routes(&self, changed: &mut RoutesChanged) {
        let (mut place, mut after) = (0, None);
        loop {
            let mut control = self.control();
            if place >= control.routing.len() {
                return;
            }
            let Some(Some(table)) = control.routing.get(place) else {
                (place, after) = (place + 1, None);
                continue;
            };
            let (stale, next) = table.stale(RouteSource::Api, after, SWEEP);
            changed.stale += stale.len() as u64;
            for (prefix, id) in stale {
                control.unset_route(place as u32, prefix, id);
            }
            control.settle_or_log();
            (place, after) = next.map_or((place + 1, None), |next| (place, Some(next)));
        }
    }
}

impl Control {
    fn begin_api_generation(&mut self) {
        for table in self.routing.iter_mut().flatten() {
            table.begin_generation(RouteSource::Api);
        }
    }

    fn delete_api_routes(&mut self, keys: &[ApiRouteKey], changed: &mut RoutesChanged) {
        for key in keys {
            let Some(table) = self.place_of_vrf(vrf_of(key.vrf.as_deref())) else {
                continue;
            };
            let id = id(key.metric);
            let routes = self.routing.get(table as usize).and_then(Option::as_ref);
            if routes.is_some_and(|routes| routes.of(key.prefix, id).is_some()) {
                self.unset_route(table, key.prefix, id);
                changed.deleted += 1;
            }
        }
        self.settle_or_log();
    }

    fn set_api_routes(&mut self, routes: &[ApiRoute], changed: &mut RoutesChanged) {
        for route in routes {
            match self.set_api_route(route) {
                Ok(()) => changed.set += 1,
                Err(message) => changed.refuse(route.prefix, message),
            }
        }
        self.settle_or_log();
    }

    fn set_api_route(&mut self, route: &ApiRoute) -> Result<(), String> {
        if let Some(problem) = weir_config::route_prefix_problem(route.prefix) {
            return Err(problem);
        }
        let vrf = vrf_of(route.vrf.as_deref());
        let table = self
            .place_of_vrf(vrf)
            .ok_or_else(|| format!("there is no vrf {}", vrf.unwrap_or_default()))?;
        let via = self.via_of_api(table, route)?;
        self.set_api_via(table, route.prefix, id(route.metric), &via)
    }

    fn set_api_via(
        &mut self,
        table: u32,
        prefix: IpNet,
        id: RouteId,
        via: &Via,
    ) -> Result<(), String> {
        let group = match via {
            Via::Blackhole => self.single(self.nowhere.blackhole),
            Via::Unreachable => self.single(self.nowhere.unreachable),
            Via::Prohibit => self.single(self.nowhere.prohibit),
            Via::Paths(_) | Via::Resilient(_) => self.acquire_recursive(table, via)?,
        };
        self.set_route_of(table, prefix, id, group, 0)
            .map_err(|error| error.to_string())
    }

    /// What a route leads to, after the checks that a route of the configuration passes.
    fn via_of_api(&self, table: u32, route: &ApiRoute) -> Result<Via, String> {
        match (route.discard, route.paths.is_empty()) {
            (Some(Discard::Blackhole), true) => return Ok(Via::Blackhole),
            (Some(Discard::Unreachable), true) => return Ok(Via::Unreachable),
            (Some(Discard::Prohibit), true) => return Ok(Via::Prohibit),
            (Some(_), false) => return Err("it has both `paths` and `discard`".into()),
            (None, true) => return Err("it has neither `paths` nor `discard`".into()),
            (None, false) => {}
        }
        if route.paths.len() > RouteChanges::MOST_PATHS {
            return Err(format!(
                "it has {} paths, {} is the most",
                route.paths.len(),
                RouteChanges::MOST_PATHS
            ));
        }
        let mut paths: Vec<Path> = Vec::with_capacity(route.paths.len());
        for given in &route.paths {
            let hop = given.next_hop;
            let path = Path {
                interface: given.interface.clone(),
                next_hop_table: given.lookup.clone(),
                weight: given.weight,
                labels: given.labels.clone(),
                ..Path::to(hop)
            };
            self.check_api_path(table, &route.prefix, &path)?;
            let is_same = |other: &Path| {
                (
                    other.next_hop,
                    &other.interface,
                    &other.next_hop_table,
                    &other.labels,
                ) == (
                    path.next_hop,
                    &path.interface,
                    &path.next_hop_table,
                    &path.labels,
                )
            };
            if paths.iter().any(is_same) {
                return Err(format!("the next hop {hop} is listed twice"));
            }
            paths.push(path);
        }
        Ok(Via::Paths(paths))
    }

    fn check_api_path(&self, table: u32, prefix: &IpNet, path: &Path) -> Result<(), String> {
        let hop = path.next_hop;
        if let Some(what) = weir_config::not_a_host(hop) {
            return Err(format!("the next hop {hop} {what}"));
        }
        if path.weight == 0 {
            return Err(format!("the next hop {hop} has a weight of 0"));
        }
        if path.labels.len() > MOST_LABELS {
            return Err(format!("a path pushes at most {MOST_LABELS} labels"));
        }
        let odd = |label: &&u32| **label >= 1 << 20 || ((1..16).contains(*label) && **label != 2);
        if let Some(label) = path.labels.iter().find(odd) {
            return Err(format!("the label {label} cannot be pushed"));
        }
        if prefix.addr().is_ipv6() && hop.is_ipv4() && path.labels.is_empty() {
            return Err(format!("the next hop {hop} is IPv4, the route IPv6"));
        }
        match (&path.interface, &path.next_hop_table) {
            (Some(_), Some(_)) => Err(format!(
                "the next hop {hop} has both `interface` and `lookup`"
            )),
            (Some(name), None) if self.index_of(name) == 0 => {
                Err(format!("there is no interface {name}"))
            }
            (None, Some(name)) if self.place_of_vrf(vrf_of(Some(name))).is_none() => {
                Err(format!("there is no vrf {name} to look {hop} up in"))
            }
            (None, None) if self.place(table, path).is_none() => Err(format!(
                "the next hop {hop} is in no interface's subnet; name `interface`, or the table in `lookup`"
            )),
            _ => Ok(()),
        }
    }

    /// All routes of the API in a table, those that are not the best of their prefix too.
    fn api_routes_of(&mut self, place: u32) -> Vec<(IpNet, RouteId)> {
        let Some(Some(table)) = self.routing.get_mut(place as usize) else {
            return Vec::new();
        };
        table.begin_generation(RouteSource::Api);
        table.stale(RouteSource::Api, None, usize::MAX).0
    }

    /// Lets the routes of the API in a VRF go, before the VRF does.
    pub(crate) fn displace_api_routes(&mut self, vrf: &str, place: u32) {
        self.settle_or_log();
        for (prefix, id) in self.api_routes_of(place) {
            let routes = self.routing.get(place as usize).and_then(Option::as_ref);
            let Some(group) = routes.and_then(|routes| routes.of(prefix, id)) else {
                continue;
            };
            self.api_routes.displaced.push(Displaced {
                vrf: vrf.to_owned(),
                prefix,
                id,
                via: self.via_of_group(group),
            });
            self.unset_route(place, prefix, id);
        }
    }

    /// Lets the routes of the API go that were set in a table while its deletion waited for a worker.
    pub(crate) fn drop_api_routes(&mut self, place: u32) {
        for (prefix, id) in self.api_routes_of(place) {
            self.unset_route_now(place, prefix, id);
        }
    }

    fn via_of_group(&self, group: u32) -> Via {
        if let Some(via) = self.recursion.via_of(group) {
            return via.clone();
        }
        let end = self
            .nexthops
            .group(group)
            .and_then(|group| group.paths().first().map(|path| path.adjacency));
        match end {
            Some(end) if end == self.nowhere.unreachable => Via::Unreachable,
            Some(end) if end == self.nowhere.prohibit => Via::Prohibit,
            _ => Via::Blackhole,
        }
    }

    /// All steps of a change are done: routes whose VRF is there again come back, the others are gone.
    pub(crate) fn restore_api_routes(&mut self) {
        let mut gone = 0;
        for route in std::mem::take(&mut self.api_routes.displaced) {
            let Some(table) = self.place_of_vrf(Some(&route.vrf)) else {
                gone += 1;
                continue;
            };
            if let Err(error) = self.set_api_via(table, route.prefix, route.id, &route.via) {
                tracing::error!(prefix = %route.prefix, error, "a route of the API is lost");
            }
        }
        if gone > 0 {
            tracing::warn!(routes = gone, "routes of the API went with their VRF");
        }
    }
}
