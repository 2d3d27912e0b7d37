//! Rules about addresses, routes and static neighbours.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use super::Rules;
use crate::build::{AddressItem, Candidate, LabelItem, NeighborItem, RouteItem};
use crate::findings::{Segment, at};
use crate::model::{Interface, Path, RouteKey, Via, is_link_local};
use crate::mpls::{DEFAULT_TABLE, TtlMode};
use crate::subnets::Subnets;
use crate::suggest::nearest;

/// A next hop, its interface, the table that it is looked up in, and the labels that are pushed.
type Hop<'a> = (IpAddr, Option<&'a str>, Option<&'a str>, &'a [u32]);
/// An address in a table.
type Place<'a> = (Option<&'a str>, IpAddr);

impl Rules<'_, '_> {
    pub(super) fn routing(&mut self) {
        self.vrf_numbers();
        self.vrfs_exist();
        self.same_address_twice();
        self.overlapping_subnets();
        self.advertisements();
        self.small_links();
        self.ways_back();
        self.bursts();
        self.borrowers();
        let subnets = Subnets::of(&self.candidate.config);
        let candidate = self.candidate;
        let addresses = candidate
            .addresses
            .iter()
            .filter(|it| !is_link_local(it.net.addr()));
        let own = addresses
            .map(|it| {
                (
                    (vrf_of(candidate, &it.interface), it.net.addr()),
                    it.interface.as_str(),
                )
            })
            .collect();
        // With an interface or an address unread, a next hop may well be reached.
        let broken = |section: &str| {
            let keys = ["addresses", "vrf"]
                .iter()
                .any(|key| self.findings.any_broken(&format!("{section}.*.{key}")));
            keys || self.findings.is_broken(at![section])
        };
        let ground_known =
            !broken("interfaces") && !broken("loopbacks") && !broken("interfaces.*.sub-interfaces");
        let ground = Ground {
            subnets,
            own,
            known: ground_known,
        };
        self.routes(&ground);
        self.circles(&ground);
        self.labels(&ground);
        self.pseudowires(&ground);
        self.neighbors(&ground);
    }

    /// A number means one table.
    fn vrf_numbers(&mut self) {
        let mut owner: HashMap<u32, &str> = HashMap::new();
        for (name, vrf) in &self.candidate.config.vrfs {
            if let Some(first) = owner.insert(vrf.table, name) {
                let help = format!("`{first}` has it already; choose another number");
                self.error(
                    at!["vrfs", name.as_str(), "table"],
                    format!("the table {} is used twice", vrf.table),
                    "the second use",
                    help,
                );
            }
        }
    }

    /// Tables that are named are there.
    fn vrfs_exist(&mut self) {
        for (name, interface) in &self.candidate.config.interfaces {
            if let Some(vrf) = &interface.vrf {
                let of_interface = self.of_interface(name, "vrf");
                let of_loopback = at!["loopbacks", name.as_str(), "vrf"];
                self.vrf_exists(
                    vrf,
                    if interface.is_loopback() {
                        of_loopback
                    } else {
                        &of_interface
                    },
                );
            }
        }
        for route in &self.candidate.routes {
            if let Some(vrf) = &route.key.vrf
                && !self.findings.is_full()
            {
                self.vrf_exists(vrf, at!["routes", route.item, "vrf"]);
            }
        }
    }

    fn vrf_exists(&mut self, vrf: &str, path: &[Segment<'_>]) {
        let vrfs = &self.candidate.config.vrfs;
        let reported = self.findings.is_broken(at!["vrfs"])
            || self.findings.any_broken("vrfs.*.table")
            || crate::value::vrf_name(vrf).is_err();
        if vrfs.contains_key(vrf) || reported {
            return;
        }
        let help = match nearest(vrf, vrfs.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("add `{vrf}: {{table: …}}` under `vrfs`, or name a table that is there")
            }
        };
        self.error(
            path,
            format!("there is no table `{vrf}`"),
            "not under `vrfs`",
            help,
        );
    }

    /// A link-local address may be on every link; any other once in a table.
    fn same_address_twice(&mut self) {
        let mut first: HashMap<(Place<'_>, Option<&str>), &str> = HashMap::new();
        for it in &self.candidate.addresses {
            let AddressItem { interface, net, .. } = it;
            let of_link = is_link_local(net.addr()).then_some(interface.as_str());
            if let Some(earlier) = first.insert(
                ((vrf_of(self.candidate, interface), net.addr()), of_link),
                interface,
            ) {
                let at = &it.path();
                let help = format!("interface `{earlier}` has it already; remove one of them");
                self.error(
                    at,
                    format!("the address {} is used twice", net.addr()),
                    "the second one",
                    help,
                );
            }
        }
    }

    /// Who advertises itself takes part in IPv6, and is taken for a router until it does so again, at the least
    /// (RFC 4861 section 6.2.1).
    fn advertisements(&mut self) {
        for (name, interface) in &self.candidate.config.interfaces {
            let Some(settings) = interface.router_advertisements else {
                continue;
            };
            let at = self.of_interface(name, "router-advertisements");
            if !interface.has_ipv6() && !self.findings.any_broken("interfaces.*.addresses") {
                let help =
                    "give it one under `addresses`, or take `router-advertisements` out".to_owned();
                self.warning(
                    &at,
                    format!("the interface `{name}` has no IPv6 address"),
                    "nothing to advertise",
                    help,
                );
            } else if interface.is_loopback() && !self.candidate.config.is_bvi(name) {
                let help =
                    "make it the `bvi` of a bridge domain, or take `router-advertisements` out"
                        .to_owned();
                self.warning(
                    &at,
                    format!("the loopback `{name}` is no bridge domain's routed side"),
                    "nobody hears it",
                    help,
                );
            }
            if settings.lifetime != 0 && settings.lifetime < settings.interval {
                let message = format!(
                    "the lifetime {} is below the interval {}",
                    settings.lifetime, settings.interval
                );
                let help = format!("set it to {} or more, or to 0", settings.interval);
                let at = [at, vec!["lifetime".into()]].concat();
                self.error(
                    &at,
                    message,
                    "would end before the next advertisement",
                    help,
                );
            }
        }
    }

    /// IPv6 needs links of 1280 bytes (RFC 8200 section 5): a host that learns of a smaller MTU does not use less (RFC 8201 section 4).
    fn small_links(&mut self) {
        const LEAST: u16 = 1280;
        for (name, interface) in &self.candidate.config.interfaces {
            let sends = !interface.is_loopback() || self.candidate.config.is_bvi(name);
            if interface.mtu < LEAST && interface.has_ipv6() && sends {
                let at = self.of_interface(name, "mtu");
                let message = format!(
                    "the interface `{name}` has IPv6 and an MTU of {}",
                    interface.mtu
                );
                let help = format!(
                    "set it to {LEAST} or more; senders of longer packets do not send shorter ones"
                );
                self.warning(&at, message, "too little for IPv6", help);
            }
        }
    }

    /// Who borrows addresses is routed, has none itself, and borrows from one that has some, in the same table.
    fn borrowers(&mut self) {
        let candidate = self.candidate;
        for (name, interface) in &candidate.config.interfaces {
            if let Some(lender) = &interface.unnumbered {
                let at = self.of_interface(name, "unnumbered");
                self.borrower(name, interface, lender, &at);
            }
        }
    }

    fn borrower(&mut self, name: &str, interface: &Interface, lender: &str, at: &[Segment<'_>]) {
        if !self.interface_exists(lender, at) {
            return;
        }
        let config = &self.candidate.config;
        let Some(other) = config.interfaces.get(lender) else {
            return;
        };
        let elsewhere = config
            .bridges
            .values()
            .any(|bridge| bridge.interfaces.contains(name))
            || config
                .interfaces
                .values()
                .any(|it| it.l2xc.as_deref() == Some(name));
        let (message, help) = match () {
            () if lender == name => (
                format!("interface `{name}` borrows from itself"),
                "name another interface, mostly a loopback",
            ),
            () if other.unnumbered.is_some() => (
                format!("interface `{lender}` borrows its addresses, too"),
                "name the interface that has the addresses",
            ),
            () if !interface.addresses.is_empty() => (
                format!("interface `{name}` borrows addresses and has some"),
                "remove its `addresses`, or `unnumbered`",
            ),
            () if interface.l2xc.is_some() || interface.bond.is_some() || elsewhere => (
                format!("interface `{name}` borrows addresses and is not routed"),
                "remove `unnumbered`, or what takes its packets elsewhere",
            ),
            () if interface.vrf != other.vrf => (
                format!("interface `{name}` is in another table than `{lender}`"),
                "give both the same `vrf`",
            ),
            () if other.addresses.is_empty()
                && !self.findings.any_broken("interfaces.*.addresses") =>
            {
                let message = format!("interface `{lender}` has no address to borrow");
                return self.warning(
                    at,
                    message,
                    "nothing is routed here",
                    format!("give `{lender}` one"),
                );
            }
            () if interface.is_loopback() && !config.is_bvi(name) => {
                let message = format!(
                    "`unnumbered` has no effect on loopback `{name}`, which nothing comes in by"
                );
                return self.warning(
                    at,
                    message,
                    "",
                    "make it the `bvi` of a bridge domain, or take `unnumbered` out".into(),
                );
            }
            () => return,
        };
        self.error(at, message, "", help.into());
    }

    /// A packet that is longer than the burst never conforms.
    fn bursts(&mut self) {
        for (name, interface) in &self.candidate.config.interfaces {
            let police = &interface.police;
            for (direction, policer) in [("input", police.input), ("output", police.output)] {
                let Some(policer) = policer.filter(|it| it.burst < u32::from(interface.mtu)) else {
                    continue;
                };
                let mut at = self.of_interface(name, "police");
                at.extend([Segment::Key(direction), Segment::Key("burst")]);
                let message = format!(
                    "packets of more than {} bytes never conform to the policer, and the MTU of interface `{name}` is {}",
                    policer.burst, interface.mtu
                );
                let help = format!("set `burst` to {} or more", interface.mtu);
                self.warning(&at, message, "", help);
            }
        }
    }

    /// Only what is routed has a way back.
    fn ways_back(&mut self) {
        for (name, interface) in &self.candidate.config.interfaces {
            if interface.urpf.is_some()
                && interface.addresses.is_empty()
                && interface.unnumbered.is_none()
                && !self.findings.any_broken("interfaces.*.addresses")
            {
                let at = &self.of_interface(name, "urpf");
                let message =
                    format!("`urpf` has no effect on interface `{name}`, which routes nothing");
                self.warning(
                    at,
                    message,
                    "",
                    "give it `addresses`, or take `urpf` out".into(),
                );
            }
        }
    }

    /// Sorted by table, start and then by length, a subnet that overlaps an earlier one lies inside it;
    /// the stack holds the subnets that the current one may lie in.
    fn overlapping_subnets(&mut self) {
        let candidate = self.candidate;
        let everywhere = |it: &&AddressItem| is_link_local(it.net.addr());
        let mut all: Vec<(Option<&str>, &AddressItem)> = candidate
            .addresses
            .iter()
            .filter(|it| !everywhere(it))
            .map(|it| (vrf_of(candidate, &it.interface), it))
            .collect();
        all.sort_by_key(|(vrf, it)| (*vrf, it.net.network(), it.net.prefix_len()));
        let mut around: Vec<(Option<&str>, &AddressItem)> = Vec::new();
        for (vrf, inner) in all {
            while around.last().is_some_and(|(other, outer)| {
                *other != vrf || !outer.net.contains(&inner.net.network())
            }) {
                around.pop();
            }
            let Some((_, outer)) = around.last().copied() else {
                around.push((vrf, inner));
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
            return; // Reported as the same address twice.
        }
        let at = &inner.path();
        let (one, other) = (inner.net.trunc(), outer.net.trunc());
        if outer.interface == inner.interface {
            let help = format!(
                "addresses of one subnet have its prefix length: write `{}/{}`",
                inner.net.addr(),
                other.prefix_len()
            );
            return self.error(
                at,
                format!("the subnet {one} lies in {other} of the same interface"),
                "",
                help,
            );
        }
        let message = format!(
            "the subnet {one} overlaps {other} of interface `{}`",
            outer.interface
        );
        self.error(
            at,
            message,
            "",
            "each subnet belongs to one interface; choose another subnet or a longer prefix".into(),
        );
    }

    fn routes(&mut self, ground: &Ground<'_>) {
        let mut first: HashMap<&RouteKey, usize> = HashMap::new();
        for route in &self.candidate.routes {
            if self.findings.is_full() {
                return;
            }
            if let Some(earlier) = first.insert(&route.key, route.item) {
                let help =
                    format!("the first is `routes[{earlier}]`; list all next hops in one `via`");
                self.error(
                    at!["routes", route.item, "prefix"],
                    format!("a second route for {}", route.key),
                    "the second one",
                    help,
                );
            }
            self.connected_route(route, ground);
            self.paths(at!["routes", route.item], route, false, ground);
        }
    }

    fn labels(&mut self, ground: &Ground<'_>) {
        let candidate = self.candidate;
        let mut first: HashMap<u32, usize> = HashMap::new();
        for LabelItem {
            label,
            route,
            has_via,
            lookup,
            ..
        } in &candidate.labels
        {
            if self.findings.is_full() {
                return;
            }
            let base: &[Segment<'_>] = at!["mpls", "labels", route.item];
            let at = [base, at!["label"]].concat();
            if let Some(earlier) = first.insert(*label, route.item) {
                let help = format!(
                    "the first is `mpls.labels[{earlier}]`; list all next hops in one `via`"
                );
                self.error(
                    &at,
                    format!("a second entry for label {label}"),
                    "the second one",
                    help,
                );
            }
            if let Some(word) = route.nowhere.as_ref().filter(|via| **via != Via::Blackhole) {
                let help =
                    "what is under a label may have no sender to be notified; write `blackhole`"
                        .to_owned();
                self.error(
                    &[base, at!["via"]].concat(),
                    format!("label {label} leads to `{word}`"),
                    "",
                    help,
                );
            }
            if *has_via && lookup.is_some() {
                let help =
                    "packets either go to a next hop or are looked up; remove one of the two"
                        .to_owned();
                self.error(
                    &[base, at!["lookup"]].concat(),
                    format!("label {label} has both `via` and `lookup`"),
                    "",
                    help,
                );
            }
            if let Some(vrf) = lookup.as_deref().filter(|vrf| *vrf != DEFAULT_TABLE) {
                self.vrf_exists(vrf, &[base, at!["lookup"]].concat());
            }
            self.paths(base, route, false, ground);
        }
        for (name, _) in candidate
            .config
            .interfaces
            .iter()
            .filter(|(_, it)| it.mpls && it.l2xc.is_some())
        {
            let help = "a cross connect passes everything on unlooked at; remove one of the two"
                .to_owned();
            self.error(
                &self.of_interface(name, "mpls"),
                format!("interface `{name}` has both `mpls` and `l2xc`"),
                "",
                help,
            );
        }
    }

    fn connected_route(&mut self, route: &RouteItem, ground: &Ground<'_>) {
        let prefix = route.key.prefix;
        let connected = ground
            .subnets
            .find(route.key.vrf.as_deref(), prefix.addr(), None)
            .filter(|(_, net)| *net == prefix);
        if let Some((interface, net)) = connected {
            let message = format!(
                "the route for {net} has no effect: it is a connected subnet of interface `{interface}`"
            );
            self.warning(
                at!["routes", route.item, "prefix"],
                message,
                "",
                "remove the route, or the address".into(),
            );
        }
    }

    /// What is said of labels has labels to be said of.
    fn push_keys<'n>(&mut self, path: &Path, within: &impl Fn(&'static str) -> Vec<Segment<'n>>) {
        if !path.labels.is_empty() || self.findings.is_broken(&within("labels")) {
            return;
        }
        let said = [
            ("ttl-mode", path.ttl_mode != TtlMode::default()),
            ("traffic-class", path.traffic_class.is_some()),
            ("entropy-label", path.entropy_label),
        ];
        for (key, _) in said.into_iter().filter(|(_, is_said)| *is_said) {
            let message = format!(
                "the next hop {} has `{key}` and no labels to push",
                path.next_hop
            );
            self.error(
                &within(key),
                message,
                "",
                "add `labels`, or leave it out".into(),
            );
        }
    }

    /// The paths of the route, of the label's entry, or of the pseudowire, which has a label to push in any case, at `base`.
    pub(super) fn paths(
        &mut self,
        base: &[Segment<'_>],
        route: &RouteItem,
        has_label: bool,
        ground: &Ground<'_>,
    ) {
        let mut hops: HashSet<Hop<'_>> = HashSet::new();
        for (item, path) in &route.paths {
            let within = |key: &'static str| [base, at!["via", item.unwrap_or(0), key]].concat();
            let at: &[Segment<'_>] = &if item.is_some() {
                within("next-hop")
            } else {
                [base, at!["via"]].concat()
            };
            if let Some(name) = &path.interface
                && !self.path_interface(name, route, &within("interface"))
            {
                continue;
            }
            if !has_label {
                self.push_keys(path, &within);
            }
            for (number, &label) in path
                .labels
                .iter()
                .enumerate()
                .filter(|(_, label)| (1..16).contains(*label) && **label != 2)
            {
                let message =
                    format!("the label {label} has a meaning of its own and is not pushed");
                let at = [&within("labels")[..], at![number]].concat();
                self.error(
                    &at,
                    message,
                    "",
                    "name one of 16 to 1048575, or an explicit null: 0 for IPv4, 2 for IPv6".into(),
                );
            }
            if !hops.insert((
                path.next_hop,
                path.interface.as_deref(),
                path.next_hop_table.as_deref(),
                &path.labels,
            )) {
                self.error(
                    at,
                    format!("the next hop {} is listed twice", path.next_hop),
                    "the second one",
                    "give it a `weight` instead".into(),
                );
                continue;
            }
            // Under labels, IPv6 goes by links that know IPv4 alone (RFC 4798).
            if route.key.prefix.addr().is_ipv6()
                && path.next_hop.is_ipv4()
                && path.labels.is_empty()
            {
                let message = format!("the next hop {} is IPv4, the route IPv6", path.next_hop);
                let help = "name an IPv6 address, or give it `labels`; only IPv4 goes over next hops of the other version without";
                self.error(at, message, "", help.into());
                continue;
            }
            if let Some(table) = &path.next_hop_table {
                self.looked_up(path, table, &within("next-hop-table"), ground);
                continue;
            }
            let neighbor = Wanted {
                what: "next hop",
                vrf: route.key.vrf.as_deref(),
                address: path.next_hop,
            };
            self.reached(&neighbor, path.interface.as_deref(), at, ground);
        }
    }

    /// A next hop that is looked up in a table: that is there, and no link is named.
    fn looked_up(&mut self, path: &Path, table: &str, at: &[Segment<'_>], ground: &Ground<'_>) {
        let vrf = Some(table).filter(|table| *table != DEFAULT_TABLE);
        if let Some(vrf) = vrf {
            self.vrf_exists(vrf, at);
        }
        let of_link = is_link_local(path.next_hop);
        if of_link || path.interface.is_some() {
            let message = if of_link {
                format!(
                    "the next hop {} is link-local, and no table knows on which link",
                    path.next_hop
                )
            } else {
                format!(
                    "the next hop {} is looked up in a table, and on an interface",
                    path.next_hop
                )
            };
            return self.error(at, message, "", "name the interface, or the table".into());
        }
        if let Some(owner) = ground.own.get(&(vrf, path.next_hop)) {
            let help = "name the address of the router at the other end".to_owned();
            self.error(
                at,
                format!(
                    "the next hop {} is an own address, of interface `{owner}`",
                    path.next_hop
                ),
                "",
                help,
            );
        }
    }

    /// The interface of a path is there, and in the table of the route.
    fn path_interface(&mut self, name: &str, route: &RouteItem, at: &[Segment<'_>]) -> bool {
        if !self.interface_exists(name, at) {
            return false;
        }
        let (vrf, wanted) = (vrf_of(self.candidate, name), route.key.vrf.as_deref());
        if vrf == wanted {
            return true;
        }
        let table = |vrf: Option<&str>| {
            vrf.map_or_else(
                || "the default table".to_owned(),
                |vrf| format!("vrf `{vrf}`"),
            )
        };
        let message = format!(
            "interface `{name}` is in {}, the route in {}",
            table(vrf),
            table(wanted)
        );
        self.error(
            at,
            message,
            "",
            "name an interface of the route's table".into(),
        );
        false
    }

    /// The address of a neighbour lies in a subnet of its interface, is not our own, and is one
    /// that a host can have.
    fn reached(
        &mut self,
        wanted: &Wanted<'_>,
        interface: Option<&str>,
        at: &[Segment<'_>],
        ground: &Ground<'_>,
    ) {
        let Wanted { what, vrf, address } = *wanted;
        if let Some(owner) = ground.own.get(&(vrf, address)) {
            let help = "name the address of the router at the other end".to_owned();
            return self.error(
                at,
                format!("the {what} {address} is an own address, of interface `{owner}`"),
                "",
                help,
            );
        }
        if is_link_local(address)
            && let Some(name) = interface
            && self
                .candidate
                .config
                .interfaces
                .get(name)
                .is_some_and(|it| it.addresses.iter().any(|own| own.addr() == address))
        {
            let help = "name the address of the router at the other end".to_owned();
            return self.error(
                at,
                format!("the {what} {address} is the own address of interface `{name}`"),
                "",
                help,
            );
        }
        // Behind an interface that borrows its addresses there may be anybody.
        if let Some(borrower) = interface
            .and_then(|name| self.candidate.config.interfaces.get(name))
            .filter(|it| it.unnumbered.is_some())
        {
            let all = self.candidate.config.with_borrowed(borrower);
            if !all
                .addresses
                .iter()
                .any(|net| net.addr().is_ipv4() == address.is_ipv4())
                && ground.known
            {
                let version = if address.is_ipv4() { "IPv4" } else { "IPv6" };
                let message = format!(
                    "the {what} {address} is behind an interface that borrows no {version} address"
                );
                self.error(
                    at,
                    message,
                    "",
                    format!("give the interface that it borrows from an {version} address"),
                );
            }
            return;
        }
        let Some((owner, net)) = ground.subnets.find(vrf, address, interface) else {
            if ground.known {
                self.unreached(wanted, interface, at, ground);
            }
            return;
        };
        if let Some(behind) = self
            .candidate
            .config
            .interfaces
            .get(owner)
            .filter(|it| it.is_loopback() && !self.candidate.config.is_bvi(owner))
        {
            let what = format!(
                "the {what} {address} is in {net} of loopback `{owner}`, behind which is nobody"
            );
            let help = if behind.addresses.len() == 1 {
                format!(
                    "give the loopback a prefix length of {}, or name another address",
                    net.max_prefix_len()
                )
            } else {
                "name an address of another subnet".into()
            };
            return self.error(at, what, "", help);
        }
        let edge = net.addr().is_ipv4()
            && net.prefix_len() < 31
            && (address == net.network() || address == net.broadcast());
        if edge {
            let which = if address == net.network() {
                "network"
            } else {
                "broadcast"
            };
            self.error(
                at,
                format!("the {what} {address} is the {which} address of {net}"),
                "",
                "name the address of a host".into(),
            );
        }
    }

    fn unreached(
        &mut self,
        wanted: &Wanted<'_>,
        interface: Option<&str>,
        at: &[Segment<'_>],
        ground: &Ground<'_>,
    ) {
        let Wanted { what, vrf, address } = *wanted;
        let Some(name) = interface else {
            if is_link_local(address) {
                let help =
                    format!("write it as a list: `- {{next-hop: '{address}', interface: …}}`");
                return self.error(
                    at,
                    format!("the {what} {address} is link-local, on no link"),
                    "needs an `interface`",
                    help,
                );
            }
            let help =
                "give an interface an address in its subnet, or correct the address".to_owned();
            return self.error(
                at,
                format!("no connected subnet reaches the {what} {address}"),
                "",
                help,
            );
        };
        let help = match ground.subnets.find(vrf, address, None) {
            Some((other, net)) => format!("it is in {net} of interface `{other}`"),
            None if is_link_local(address) => {
                format!("give `{name}` an IPv6 address, so that it takes part in IPv6")
            }
            None => format!("give `{name}` an address in its subnet, or correct the address"),
        };
        self.error(
            at,
            format!("no subnet of interface `{name}` reaches the {what} {address}"),
            "",
            help,
        );
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
                let message = format!(
                    "a second entry for {} on interface `{}`",
                    key.address, key.interface
                );
                self.error(
                    at,
                    message,
                    "the second one",
                    format!("the first is `neighbors[{earlier}]`; keep one of them"),
                );
                continue;
            }
            let neighbor = Wanted {
                what: "neighbor",
                vrf: vrf_of(self.candidate, &key.interface),
                address: key.address,
            };
            self.reached(&neighbor, Some(&key.interface), at, ground);
        }
    }
}

/// The table of an interface.
fn vrf_of<'a>(candidate: &'a Candidate, interface: &str) -> Option<&'a str> {
    candidate.config.interfaces.get(interface)?.vrf.as_deref()
}

/// A neighbour that is looked for.
struct Wanted<'a> {
    /// What it is called in messages.
    what: &'a str,
    /// The table whose subnets may hold it.
    vrf: Option<&'a str>,
    address: IpAddr,
}

/// What next hops are looked up in.
pub(super) struct Ground<'a> {
    pub(super) subnets: Subnets<Option<&'a str>, &'a str>,
    /// Own addresses with their interfaces, but for link-local ones.
    own: HashMap<Place<'a>, &'a str>,
    /// All addresses of the file could be read.
    known: bool,
}

impl Ground<'_> {
    pub(super) fn is_known(&self) -> bool {
        self.known
    }
}
