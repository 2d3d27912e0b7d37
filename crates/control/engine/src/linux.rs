//! Linux as the control plane: TAPs that mirror interfaces, and the kernel's routes in the RIB.
//!
//! Each interface under `linux` has a TAP in a network namespace. The TAP is an interface of its own here, cross-connected to
//! its pair: what Linux sends leaves by the pair, and the node `linux-punt` sends what is for services of this router
//! to the TAP. This file keeps the TAP like its pair (MAC address, MTU, state, carrier, addresses) and
//! carries out what the feed reads from the kernel (`weir_linux::feed`).
//!
//! Runs on the control thread and in changes of the configuration, under the control lock. The feed's own thread takes no
//! lock. A batch of updates is bounded, so that the lock is free again after a few milliseconds.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use ipnet::IpNet;
use weir_config::{AdminState, Config, Device, LinuxTap};
use weir_control::{NextHop, Route, RouteId, RouteSource, RouteUpdate, Target, UpdateError};
use weir_fib::{Group, LabelStack, Path};
use weir_linux::decode::Message;
use weir_linux::feed::{BUFFER_BYTES, Feed, FeedMessage};
use weir_netlink::netns::NetNs;
use weir_netlink::route::Route as Client;
use weir_port::host::Host;

use crate::control::Control;
use crate::neighbors::Place;
use crate::waker::Waker;

/// Messages of the feed that are carried out with the lock held once: at most so many times 1,024 updates.
const MESSAGES_A_ROUND: usize = 8;
/// Changes that may wait for the workers before the feed has to wait.
const MOST_WAITING: usize = 1 << 16;
/// Prefixes that are inspected for stale routes with the lock held once.
const SWEEP: usize = 1 << 14;
/// Refused updates that are kept for `show linux feed`.
const MOST_REFUSED: usize = 1000;

/// What the control side keeps of Linux.
pub(crate) struct LinuxSide {
    waker: Arc<Waker>,
    pub(crate) feed: Option<Feed>,
    client: Option<Client>,
    /// The namespace of feed and client.
    namespace: Option<String>,
    /// The ends of interfaces, by the interface's name.
    pub(crate) hosts: BTreeMap<String, Arc<Host>>,
    /// Interfaces by the Linux index of their TAP.
    links: BTreeMap<u32, u32>,
    /// Addresses that were put on TAPs, by interface.
    mirrored: BTreeMap<String, BTreeSet<IpNet>>,
    /// Groups by what they lead to, and the reverse with the neighbours that are held.
    groups: HashMap<Arc<Target>, u32>,
    targets: HashMap<u32, (Arc<Target>, Vec<Place>)>,
    /// All routes are being read again; what differs is counted.
    is_reading: bool,
    /// Tables left in which stale routes are searched, and where.
    sweep: Option<(usize, Option<IpNet>)>,
    pub(crate) counters: LinuxCounters,
    pub(crate) refused: VecDeque<Refused>,
    /// A TAP may differ from its pair.
    pub(crate) is_changed: bool,
    /// What went wrong with a TAP last, so that it is logged once.
    trouble: BTreeMap<String, String>,
}

/// What is counted about the kernel's routes.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinuxCounters {
    /// Updates that were carried out.
    pub(crate) applied: u64,
    /// Updates that were refused, by reason.
    pub(crate) refused: BTreeMap<&'static str, u64>,
    /// Times that all routes were compared.
    pub(crate) audits: u64,
    /// Routes that were missing or different then, and that were stale.
    pub(crate) healed: u64,
    pub(crate) stale: u64,
}

/// An update that was refused.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) prefix: IpNet,
    pub(crate) error: UpdateError,
}

impl LinuxSide {
    pub(crate) fn new(waker: Arc<Waker>) -> LinuxSide {
        LinuxSide {
            waker,
            feed: None,
            client: None,
            namespace: None,
            hosts: BTreeMap::new(),
            links: BTreeMap::new(),
            mirrored: BTreeMap::new(),
            groups: HashMap::new(),
            targets: HashMap::new(),
            is_reading: false,
            sweep: None,
            counters: LinuxCounters::default(),
            refused: VecDeque::new(),
            is_changed: false,
            trouble: BTreeMap::new(),
        }
    }

    /// Whether TAPs or the feed have to be looked after again.
    pub(crate) fn needs_sync(&self) -> bool {
        let has_ended = self.feed.as_ref().is_some_and(Feed::has_ended);
        self.is_changed || has_ended || !self.trouble.is_empty()
    }

    /// Whether the control thread has more to do at once.
    pub(crate) fn is_busy(&self) -> bool {
        self.sweep.is_some() || self.feed.as_ref().is_some_and(|feed| feed.waiting() > 0)
    }

    fn refuse(&mut self, prefix: IpNet, error: UpdateError) {
        *self.counters.refused.entry(error.reason()).or_default() += 1;
        if self.refused.len() >= MOST_REFUSED {
            self.refused.pop_front();
        }
        self.refused.push_back(Refused { prefix, error });
    }

    /// The Linux index of the TAP of an interface.
    pub(crate) fn link_of(&self, interface: u32) -> Option<u32> {
        let mut links = self.links.iter();
        let is_it = |(_, of): &(&u32, &u32)| **of == interface;
        links.find(is_it).map(|(link, _)| *link)
    }

    /// What is wrong with the TAP of an interface, or with all of them.
    pub(crate) fn trouble_of(&self, interface: &str) -> Option<String> {
        let own = self.trouble.get(interface);
        own.or_else(|| self.trouble.get("")).cloned()
    }

    /// Takes back what a group that is gone led to, and the neighbours that it held.
    pub(crate) fn forget_group(&mut self, group: u32) -> Vec<Place> {
        let Some((target, places)) = self.targets.remove(&group) else {
            return Vec::new();
        };
        if self.groups.get(&target) == Some(&group) {
            self.groups.remove(&target);
        }
        places
    }
}

/// The TAP that an interface is, if it is one of `linux`.
pub(crate) fn tap_of(interface: &weir_config::Interface) -> Option<&LinuxTap> {
    match &interface.device {
        Some(Device::LinuxTap(tap)) => Some(tap),
        _ => None,
    }
}

impl Control {
    /// A TAP was made or deleted, or an interface that has one: both ends see each other anew.
    pub(crate) fn pair_with_linux(&mut self, name: &str) {
        let tap = self
            .config
            .interfaces
            .get(name)
            .and_then(tap_of)
            .map(|tap| tap.interface.clone());
        let paired = tap.unwrap_or_else(|| name.to_owned());
        let end = Config::linux_tap_of(&paired);
        match self.interfaces.get(&end).map(|attached| attached.index) {
            Some(index) => {
                let is_same = |host: &Arc<Host>| host.interface == index;
                if !self.linux.hosts.get(&paired).is_some_and(is_same) {
                    self.linux
                        .hosts
                        .insert(paired.clone(), Arc::new(Host::new(index)));
                }
                self.refresh(&end);
            }
            None => drop(self.linux.hosts.remove(&paired)),
        }
        self.refresh(&paired);
    }

    /// Makes the TAPs as their pairs are, and follows the kernel's routes while there is any.
    pub(crate) fn sync_linux(&mut self) {
        self.linux.is_changed = false;
        let taps: Vec<LinuxTap> = self
            .config
            .interfaces
            .values()
            .filter_map(tap_of)
            .cloned()
            .collect();
        let Some(first) = taps.first() else {
            if self.linux.feed.take().is_some() {
                self.linux.client = None;
                self.linux.links.clear();
                self.linux.mirrored.clear();
                self.begin_sweep();
            }
            return;
        };
        if self.trial.is_some() {
            return;
        }
        if self.linux.client.is_none() || self.linux.namespace != first.namespace {
            self.linux.feed = None;
            let client = in_namespace(first.namespace.as_deref(), Client::open);
            match client {
                Ok(client) => {
                    self.linux.client = Some(client);
                    self.linux.namespace = first.namespace.clone();
                }
                Err(error) => return self.linux_trouble("", Err(error)),
            }
        }
        let before = self.linux.links.clone();
        self.linux.links.clear();
        for tap in &taps {
            let result = self.sync_tap(tap);
            self.linux_trouble(&tap.interface, result);
        }
        let is_new = self
            .linux
            .links
            .iter()
            .any(|(link, interface)| before.get(link) != Some(interface));
        let is_other = |(link, interface): (&u32, &u32)| {
            self.linux
                .links
                .get(link)
                .is_some_and(|now| now != interface)
        };
        if before.iter().any(is_other) {
            // The kernel gave a TAP the index that another one had.
            self.linux.groups.clear();
        }
        match &self.linux.feed {
            Some(feed) if !feed.has_ended() => {
                if is_new {
                    feed.resync();
                }
            }
            _ => self.start_feed(first.namespace.as_deref()),
        }
    }

    fn start_feed(&mut self, namespace: Option<&str>) {
        let waker = self.linux.waker.clone();
        let wake = move || waker.wake();
        let started = match namespace.map(NetNs::open_named).transpose() {
            Ok(namespace) => Feed::start(namespace.as_ref(), BUFFER_BYTES, wake),
            Err(error) => Err(error),
        };
        match started {
            Ok(feed) => {
                self.linux.feed = Some(feed);
                self.linux_trouble("", Ok(()));
            }
            Err(error) => self.linux_trouble("", Err(error.to_string())),
        }
    }

    /// Logs what goes wrong with a TAP once.
    fn linux_trouble(&mut self, interface: &str, result: Result<(), String>) {
        match result {
            Ok(()) => drop(self.linux.trouble.remove(interface)),
            Err(error) => {
                if self.linux.trouble.get(interface) != Some(&error) {
                    tracing::warn!(interface, error, "Linux does not follow this interface");
                    self.linux.trouble.insert(interface.to_owned(), error);
                }
            }
        }
    }

    /// Makes one TAP as its pair is.
    fn sync_tap(&mut self, tap: &LinuxTap) -> Result<(), String> {
        let (Some(attached), Some(wanted)) = (
            self.interfaces.get(&tap.interface),
            self.config.interfaces.get(&tap.interface),
        ) else {
            return Ok(());
        };
        let Some(entry) = self.tables.interface(attached.index) else {
            return Ok(());
        };
        let (index, mac, mtu) = (attached.index, entry.mac.0, entry.mtu);
        let (is_up, carrier) = (wanted.state == AdminState::Up, entry.can_send);
        let wanted: BTreeSet<IpNet> = wanted.addresses.clone();
        let Some(client) = &mut self.linux.client else {
            return Ok(());
        };
        let text = |error: weir_netlink::Error| error.to_string();
        let link = client.link_by_name(&tap.name).map_err(text)?;
        self.linux.links.insert(link.index, index);
        if link.mac != Some(mac) {
            client.set_mac(link.index, mac).map_err(text)?;
        }
        if link.mtu != mtu {
            client.set_mtu(link.index, mtu).map_err(text)?;
        }
        if link.up != is_up {
            client.set_up(link.index, is_up).map_err(text)?;
        }
        // A link that is down has no carrier, whatever it was told.
        if is_up && link.running != carrier {
            client.set_carrier(link.index, carrier).map_err(text)?;
        }
        let mirrored = self
            .linux
            .mirrored
            .entry(tap.interface.clone())
            .or_default();
        let gone: Vec<IpNet> = mirrored.difference(&wanted).copied().collect();
        for address in gone {
            let removed = client.remove_address(link.index, address.addr(), address.prefix_len());
            if let Err(error) = removed
                && !error.is_not_found()
            {
                tracing::warn!(interface = tap.interface, %address, %error, "Linux keeps an address");
            }
            mirrored.remove(&address);
        }
        let present: BTreeSet<_> = client
            .addresses()
            .map_err(text)?
            .into_iter()
            .filter(|address| address.index == link.index)
            .map(|address| address.address)
            .collect();
        for address in wanted {
            if !present.contains(&address.addr()) {
                client
                    .add_address(link.index, address.addr(), address.prefix_len())
                    .map_err(text)?;
            }
            mirrored.insert(address);
        }
        Ok(())
    }

    /// Carries out what the feed has read.
    pub(crate) fn take_linux(&mut self) {
        for _ in 0..MESSAGES_A_ROUND {
            if self.publication.len() > MOST_WAITING {
                break;
            }
            let Some(message) = self.linux.feed.as_ref().and_then(Feed::next) else {
                break;
            };
            match message {
                FeedMessage::Routes(updates) => self.update_routes(&updates),
                FeedMessage::Begin => {
                    self.linux.is_reading = true;
                    self.linux.counters.audits += 1;
                    self.begin_generation();
                }
                FeedMessage::End => {
                    self.linux.is_reading = false;
                    self.linux.sweep = Some((0, None));
                }
                FeedMessage::Others(messages) => self.take_links(&messages),
            }
        }
        self.sweep_stale();
    }

    fn begin_generation(&mut self) {
        for table in self.routing.iter_mut().flatten() {
            table.begin_generation(RouteSource::Kernel);
        }
    }

    /// Lets all routes of the kernel go.
    fn begin_sweep(&mut self) {
        self.begin_generation();
        self.linux.sweep = Some((0, None));
    }

    /// Removes stale routes, some at a time.
    fn sweep_stale(&mut self) {
        let Some((place, after)) = self.linux.sweep.take() else {
            return;
        };
        // Routes that wait have the new generation only when they are set.
        if self.publication.len() > 0 {
            self.linux.sweep = Some((place, after));
            return;
        }
        if place >= self.routing.len() {
            return;
        }
        let Some(Some(table)) = self.routing.get(place) else {
            self.linux.sweep = Some((place + 1, None));
            return;
        };
        let (stale, next) = table.stale(RouteSource::Kernel, after, SWEEP);
        self.linux.counters.stale += stale.len() as u64;
        for (prefix, id) in stale {
            self.unset_route(place as u32, prefix, id);
        }
        self.linux.sweep = Some(next.map_or((place + 1, None), |next| (place, Some(next))));
    }

    fn take_links(&mut self, messages: &[Message]) {
        let is_ours = |link: u32| self.linux.links.contains_key(&link);
        let matters = |message: &Message| match message {
            Message::Link(info) => is_ours(info.index) || self.is_tap_name(&info.name),
            Message::LinkGone(link) | Message::Address { link, .. } => is_ours(*link),
            _ => false,
        };
        let down = messages.iter().any(
            |message| matches!(message, Message::Link(info) if is_ours(info.index) && !info.up),
        );
        if messages.iter().any(matters) {
            self.sync_linux();
        }
        // The kernel says nothing about the IPv4 routes of a link that goes down.
        if let Some(feed) = self.linux.feed.as_ref().filter(|_| down) {
            feed.resync();
        }
    }

    fn is_tap_name(&self, name: &str) -> bool {
        let linux = &self.config.linux;
        let mut names = linux.interfaces.keys();
        names.any(|interface| linux.name_of(interface) == Some(name))
    }

    /// Carries out changes of a source's routes. One that is refused leaves no older route behind.
    pub(crate) fn update_routes(&mut self, updates: &[RouteUpdate]) {
        for update in updates {
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
        self.settle_or_log();
    }

    /// The place of a table by its number.
    fn place_of_number(&self, number: u32) -> Result<u32, UpdateError> {
        let is_it = |table: &Option<weir_control::Table>| {
            table.as_ref().is_some_and(|table| table.number == number)
        };
        let place = self.routing.iter().position(is_it);
        place
            .map(|place| place as u32)
            .ok_or(UpdateError::NoTable(number))
    }

    fn set_source_route(&mut self, route: &Route) -> Result<(), UpdateError> {
        let table = self.place_of_number(route.table)?;
        let id = RouteId {
            source: route.source,
            metric: route.metric,
        };
        let known = self.linux.groups.get(&route.target).copied();
        let before = self.group_of_route(table, route.prefix, id);
        if self.linux.is_reading && (known.is_none() || before != known) {
            self.linux.counters.healed += 1;
        }
        let group = match known {
            Some(group) => {
                self.nexthops.acquire_again(group);
                group
            }
            None => match self.group_of_target(&route.target) {
                Ok(group) => group,
                Err(error) => {
                    self.unset_route(table, route.prefix, id);
                    return Err(error);
                }
            },
        };
        self.set_route_of(table, route.prefix, id, group, route.protocol)
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
    fn group_of_target(&mut self, target: &Arc<Target>) -> Result<u32, UpdateError> {
        let (mut ends, mut places) = (Vec::new(), Vec::new());
        match &**target {
            Target::Paths(hops) => {
                for hop in hops {
                    let interface = *self
                        .linux
                        .links
                        .get(&hop.interface)
                        .ok_or(UpdateError::NoInterface(hop.interface))?;
                    ends.push((interface, hop));
                }
            }
            Target::Blackhole | Target::Unreachable | Target::Prohibit | Target::Local => {}
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
        let paths: Vec<Path> = match &**target {
            Target::Paths(_) => ends
                .iter()
                .map(|(interface, hop)| self.path_to(*interface, hop))
                .collect(),
            Target::Blackhole => vec![Path::to(self.nowhere.blackhole)],
            Target::Unreachable | Target::Local => vec![Path::to(self.nowhere.unreachable)],
            Target::Prohibit => vec![Path::to(self.nowhere.prohibit)],
        };
        let group = Group::new(paths).and_then(|group| self.nexthops.acquire_own(group));
        match group {
            Ok(group) => {
                self.linux.groups.insert(target.clone(), group);
                self.linux.targets.insert(group, (target.clone(), places));
                Ok(group)
            }
            Err(error) => {
                self.let_places_go(places);
                Err(error.into())
            }
        }
    }

    fn path_to(&self, interface: u32, hop: &NextHop) -> Path {
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
}

/// Runs `open` in a namespace; the router's own when `None`.
fn in_namespace<T: Send>(
    namespace: Option<&str>,
    open: impl FnOnce() -> weir_netlink::Result<T> + Send,
) -> Result<T, String> {
    let opened = match namespace {
        None => open(),
        Some(name) => NetNs::open_named(name).and_then(|namespace| namespace.run(open)?),
    };
    opened.map_err(|error| error.to_string())
}
