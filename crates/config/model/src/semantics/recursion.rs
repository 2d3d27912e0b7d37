//! Next hops that are looked up in a table and lead back to the route that they are for.
//!
//! Where a next hop leads is what the longest match says: a connected subnet, or a route of the file, which may have next hops
//! to look up itself. What leads back to where it began is no way: the router leaves it out, and a route without any
//! other next hop drops its packets. Each such circle is reported once, where it begins in the file.
//!
//! The search goes depth first with a stack of its own: chains may be as long as the file.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;

use super::Rules;
use super::routing::Ground;
use crate::build::RouteItem;
use crate::findings::at;
use crate::model::Path;
use crate::mpls::DEFAULT_TABLE;

/// Routes of a circle that are named; the others are counted.
const MOST_NAMED: usize = 6;
/// Circles that are reported: more say no more.
const MOST_REPORTED: usize = 20;

impl Rules<'_, '_> {
    pub(super) fn circles(&mut self, ground: &Ground<'_>) {
        // With an address unread, a next hop may well be on a link.
        if !ground.is_known() || self.findings.is_broken(at!["routes"]) {
            return;
        }
        let routes = &self.candidate.routes;
        let reported = Search::of(routes, ground).circles();
        for (place, circle) in reported.into_iter().take(MOST_REPORTED) {
            let Some((route, (item, path))) = circle.first().and_then(|&first| {
                Some((routes.get(first)?, routes.get(first)?.paths.get(place)?))
            }) else {
                continue;
            };
            let at = at!["routes", route.item, "via", item.unwrap_or(0), "next-hop"];
            let (message, help) = if circle.len() == 1 {
                let message = format!(
                    "the next hop {} lies inside its own route, and no longer prefix leads to it",
                    path.next_hop
                );
                (
                    message,
                    "add a route or a subnet that leads to it; without one it is no way",
                )
            } else {
                let message = format!(
                    "the next hop {} leads back to its own route: {}",
                    path.next_hop,
                    chain(routes, &circle)
                );
                (
                    message,
                    "let one of them lead elsewhere; next hops in a circle are no way",
                )
            };
            self.warning(at, message, "", help.into());
        }
    }
}

/// The routes of a circle, the first one again at its end.
fn chain(routes: &[RouteItem], circle: &[usize]) -> String {
    let named = circle
        .iter()
        .take(MOST_NAMED)
        .filter_map(|&route| routes.get(route))
        .map(|route| route.key.to_string());
    let more = circle.len().saturating_sub(MOST_NAMED);
    let left_out = (more > 0).then(|| format!("{more} more"));
    let first = circle
        .first()
        .and_then(|&route| routes.get(route))
        .map(|route| route.key.to_string());
    named
        .chain(left_out)
        .chain(first)
        .collect::<Vec<_>>()
        .join(" -> ")
}

type Table<'a> = Option<&'a str>;

struct Search<'a> {
    routes: &'a [RouteItem],
    ground: &'a Ground<'a>,
    by_prefix: HashMap<(Table<'a>, IpNet), usize>,
    /// Lengths of prefixes that a table has, by whether they are IPv4.
    lengths: HashMap<(Table<'a>, bool), BTreeSet<u8>>,
    /// What was looked up already: many routes share few next hops.
    known: HashMap<(Table<'a>, IpAddr), Option<usize>>,
}

/// A route on the way, and the place of the path by which the way goes on.
struct Step {
    route: usize,
    path: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    /// After this many others.
    OnTheWay(usize),
    Done,
}

impl<'a> Search<'a> {
    fn of(routes: &'a [RouteItem], ground: &'a Ground<'a>) -> Self {
        let mut search = Self {
            routes,
            ground,
            by_prefix: HashMap::new(),
            lengths: HashMap::new(),
            known: HashMap::new(),
        };
        let is_recursive = |route: &RouteItem| {
            route
                .paths
                .iter()
                .any(|(_, path)| path.next_hop_table.is_some())
        };
        if !routes.iter().any(is_recursive) {
            return search;
        }
        for (number, route) in routes.iter().enumerate() {
            let (table, prefix) = (route.key.vrf.as_deref(), route.key.prefix);
            search.by_prefix.entry((table, prefix)).or_insert(number);
            search
                .lengths
                .entry((table, prefix.addr().is_ipv4()))
                .or_default()
                .insert(prefix.prefix_len());
        }
        search
    }

    /// Each circle: the place of the path by which its first route leads into it, and its routes.
    fn circles(&mut self) -> Vec<(usize, Vec<usize>)> {
        let (mut marks, mut circles, mut reported) = (
            vec![Mark::New; self.routes.len()],
            Vec::new(),
            BTreeSet::new(),
        );
        for first in 0..self.routes.len() {
            if marks[first] != Mark::New {
                continue;
            }
            let mut way = vec![Step {
                route: first,
                path: 0,
            }];
            marks[first] = Mark::OnTheWay(0);
            while let Some(step) = way.last() {
                let Some((_, path)) = self.routes[step.route].paths.get(step.path) else {
                    marks[step.route] = Mark::Done;
                    way.pop();
                    if let Some(before) = way.last_mut() {
                        before.path += 1;
                    }
                    continue;
                };
                let next = self.next(path);
                match next.map(|next| (next, marks[next])) {
                    Some((next, Mark::New)) => {
                        marks[next] = Mark::OnTheWay(way.len());
                        way.push(Step {
                            route: next,
                            path: 0,
                        });
                        continue;
                    }
                    Some((next, Mark::OnTheWay(begins))) => {
                        if circles.len() < MOST_REPORTED
                            && reported.insert((next, way[begins].path))
                        {
                            circles.push((
                                way[begins].path,
                                way[begins..].iter().map(|step| step.route).collect(),
                            ));
                        }
                    }
                    Some((_, Mark::Done)) | None => {}
                }
                if let Some(last) = way.last_mut() {
                    last.path += 1;
                }
            }
        }
        circles
    }

    /// The route that a path leads to, if its next hop is looked up and a route is the longest match.
    fn next(&mut self, path: &'a Path) -> Option<usize> {
        let table = path.next_hop_table.as_deref()?;
        let table = Some(table).filter(|table| *table != DEFAULT_TABLE);
        let address = path.next_hop;
        if let Some(known) = self.known.get(&(table, address)) {
            return *known;
        }
        let connected = self
            .ground
            .subnets
            .find(table, address, None)
            .map(|(_, net)| net.prefix_len());
        let lengths = self
            .lengths
            .get(&(table, address.is_ipv4()))
            .into_iter()
            .flatten()
            .rev();
        // A connected subnet is better than a route of the same prefix.
        let longer =
            lengths.take_while(|length| connected.is_none_or(|connected| **length > connected));
        let found = longer
            .filter_map(|length| IpNet::new(address, *length).ok())
            .find_map(|net| self.by_prefix.get(&(table, net.trunc())).copied());
        self.known.insert((table, address), found);
        found
    }
}
