//! Rules about addresses, routes and static neighbours.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::Rules;
use crate::build::{AddressItem, NeighborItem, RouteItem};
use crate::findings::{Segment, at};
use crate::plan::Subnets;

impl Rules<'_, '_> {
    pub(super) fn routing(&mut self) {
        self.same_address_twice();
        self.overlapping_subnets();
        let subnets = Subnets::of(&self.candidate.config);
        let own: HashMap<Ipv4Addr, &str> = self.candidate.addresses.iter().map(|it| (it.net.addr(), it.interface.as_str())).collect();
        // With an interface or an address unread, a next hop may well be reached.
        let broken = |section: &str| self.findings.any_broken(&format!("{section}.*.addresses")) || self.findings.is_broken(at![section]);
        let ground_known =
            !broken("interfaces") && !broken("loopbacks") && !self.findings.any_broken("interfaces.*.sub-interfaces.*.addresses");
        let ground = Ground { subnets, own, known: ground_known };
        self.routes(&ground);
        self.neighbors(&ground);
    }

    fn same_address_twice(&mut self) {
        let mut first: HashMap<Ipv4Addr, &str> = HashMap::new();
        for it in &self.candidate.addresses {
            let AddressItem { interface, net, .. } = it;
            if let Some(earlier) = first.insert(net.addr(), interface) {
                let at = &it.path();
                let help = format!("interface `{earlier}` has it already; remove one of them");
                self.error(at, format!("the address {} is used twice", net.addr()), "the second one", help);
            }
        }
    }

    /// Sorted by start and then by length, a subnet that overlaps an earlier one lies inside it;
    /// the stack holds the subnets that the current one may lie in.
    fn overlapping_subnets(&mut self) {
        let mut all: Vec<&AddressItem> = self.candidate.addresses.iter().collect();
        all.sort_by_key(|it| (it.net.network(), it.net.prefix_len()));
        let mut around: Vec<&AddressItem> = Vec::new();
        for inner in all {
            while around.last().is_some_and(|outer| !outer.net.contains(&inner.net.network())) {
                around.pop();
            }
            let Some(outer) = around.last().copied() else {
                around.push(inner);
                continue;
            };
            // One interface may have several addresses of one subnet, as in VPP.
            if outer.interface != inner.interface || outer.net.trunc() != inner.net.trunc() {
                self.overlap(outer, inner);
            }
        }
    }

    fn overlap(&mut self, outer: &AddressItem, inner: &AddressItem) {
        if outer.net.addr() == inner.net.addr() {
            return; // Told as the same address twice.
        }
        let at = &inner.path();
        let (one, other) = (inner.net.trunc(), outer.net.trunc());
        if outer.interface == inner.interface {
            let help = format!("addresses of one subnet have its prefix length: write `{}/{}`", inner.net.addr(), other.prefix_len());
            return self.error(at, format!("the subnet {one} lies in {other} of the same interface"), "", help);
        }
        let message = format!("the subnet {one} overlaps {other} of interface `{}`", outer.interface);
        self.error(at, message, "", "each subnet belongs to one interface; choose another subnet or a longer prefix".into());
    }

    fn routes(&mut self, ground: &Ground<'_>) {
        let mut first: HashMap<Ipv4Net, usize> = HashMap::new();
        for route in &self.candidate.routes {
            if self.findings.is_full() {
                return;
            }
            if let Some(earlier) = first.insert(route.prefix, route.item) {
                let help = format!("the first is `routes[{earlier}]`; list all next hops in one `via`");
                self.error(at!["routes", route.item, "prefix"], format!("a second route for {}", route.prefix), "the second one", help);
            }
            self.connected_route(route, ground);
            self.paths(route, ground);
        }
    }

    fn connected_route(&mut self, route: &RouteItem, ground: &Ground<'_>) {
        let connected = ground.subnets.find(route.prefix.addr(), None).filter(|(_, net)| *net == route.prefix);
        if let Some((interface, net)) = connected {
            let message = format!("the route for {net} has no effect: it is a connected subnet of interface `{interface}`");
            self.warning(at!["routes", route.item, "prefix"], message, "", "remove the route, or the address".into());
        }
    }

    fn paths(&mut self, route: &RouteItem, ground: &Ground<'_>) {
        let mut hops: HashSet<(Ipv4Addr, Option<&str>)> = HashSet::new();
        for (item, path) in &route.paths {
            let short = [Segment::from("routes"), route.item.into(), "via".into()];
            let long = [Segment::from("routes"), route.item.into(), "via".into(), item.unwrap_or(0).into(), "next-hop".into()];
            let at: &[Segment<'_>] = if item.is_some() { &long } else { &short };
            if let Some(name) = &path.interface
                && !self.interface_exists(name, at!["routes", route.item, "via", item.unwrap_or(0), "interface"])
            {
                continue;
            }
            if !hops.insert((path.next_hop, path.interface.as_deref())) {
                self.error(
                    at,
                    format!("the next hop {} is listed twice", path.next_hop),
                    "the second one",
                    "give it a `weight` instead".into(),
                );
                continue;
            }
            self.reached(path.next_hop, path.interface.as_deref(), at, "next hop", ground);
        }
    }

    /// The address of a neighbour lies in a subnet of its interface, is not our own, and is one
    /// that a host can have.
    fn reached(&mut self, address: Ipv4Addr, interface: Option<&str>, at: &[Segment<'_>], what: &str, ground: &Ground<'_>) {
        if let Some(owner) = ground.own.get(&address) {
            let help = "name the address of the router at the other end".to_owned();
            return self.error(at, format!("the {what} {address} is an own address, of interface `{owner}`"), "", help);
        }
        let Some((owner, net)) = ground.subnets.find(address, interface) else {
            if ground.known {
                self.unreached(address, interface, at, what, ground);
            }
            return;
        };
        if let Some(behind) =
            self.candidate.config.interfaces.get(owner).filter(|it| it.is_loopback() && !self.candidate.config.is_bvi(owner))
        {
            let what = format!("the {what} {address} is in {net} of loopback `{owner}`, behind which is nobody");
            let help = if behind.addresses.len() == 1 {
                "give the loopback a prefix length of 32, or name another address"
            } else {
                "name an address of another subnet"
            };
            return self.error(at, what, "", help.into());
        }
        let edge = net.prefix_len() < 31 && (address == net.network() || address == net.broadcast());
        if edge {
            let which = if address == net.network() { "network" } else { "broadcast" };
            self.error(at, format!("the {what} {address} is the {which} address of {net}"), "", "name the address of a host".into());
        }
    }

    fn unreached(&mut self, address: Ipv4Addr, interface: Option<&str>, at: &[Segment<'_>], what: &str, ground: &Ground<'_>) {
        let Some(name) = interface else {
            let help = "give an interface an address in its subnet, or correct the address".to_owned();
            return self.error(at, format!("no connected subnet reaches the {what} {address}"), "", help);
        };
        let help = match ground.subnets.find(address, None) {
            Some((other, net)) => format!("it is in {net} of interface `{other}`"),
            None => format!("give `{name}` an address in its subnet, or correct the address"),
        };
        self.error(at, format!("no subnet of interface `{name}` reaches the {what} {address}"), "", help);
    }

    fn neighbors(&mut self, ground: &Ground<'_>) {
        let mut first = HashMap::new();
        for NeighborItem { item, key, .. } in &self.candidate.neighbors {
            if self.findings.is_full() {
                return;
            }
            let at = at!["neighbors", *item, "address"];
            if !self.interface_exists(&key.interface, at!["neighbors", *item, "interface"]) {
                continue;
            }
            if let Some(earlier) = first.insert(key, item) {
                let message = format!("a second entry for {} on interface `{}`", key.address, key.interface);
                self.error(at, message, "the second one", format!("the first is `neighbors[{earlier}]`; keep one of them"));
                continue;
            }
            self.reached(key.address, Some(&key.interface), at, "neighbor", ground);
        }
    }
}

/// What next hops are looked up in.
struct Ground<'a> {
    subnets: Subnets<'a>,
    own: HashMap<Ipv4Addr, &'a str>,
    /// All addresses of the file could be read.
    known: bool,
}
