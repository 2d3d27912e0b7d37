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
use std::time::{Duration, Instant};

use ipnet::IpNet;
use weir_config::{AdminState, Config, Device, LinuxTap};
use weir_control::{NextHop, Route, RouteId, RouteSource, RouteUpdate, Target, UpdateError};
use weir_fib::{Group, LabelStack, Path};
use weir_linux::decode::Message;
use weir_linux::feed::{BUFFER_BYTES, Feed, FeedMessage};
use weir_linux::fpm::{Fpm, FpmSettings};
use weir_linux::protocol::Protocols;
use weir_netlink::netns::NetNs;
use weir_netlink::route::Route as Client;
use weir_port::host::Host;
use weir_port::interface::Kind;

use crate::bgp::BmpSide;
use crate::control::Control;
use crate::convergence::Convergence;
use crate::neighbors::Place;
use crate::objects::Objects;
use crate::waker::Waker;

/// Messages of the feed that are carried out with the lock held once: at most so many times 1,024 updates.
const MESSAGES_A_ROUND: usize = 8;
/// Changes that may wait for the workers before the feed has to wait.
const MOST_WAITING: usize = 1 << 16;
/// Prefixes that are inspected for stale routes with the lock held once.
const SWEEP: usize = 1 << 14;
/// Refused updates that are kept for `show linux feed`.
const MOST_REFUSED: usize = 1000;

/// The silence after which zebra has sent all its routes; its own pauses are a second.
const REPLAY_QUIET: Duration = Duration::from_secs(3);

/// What the control side keeps of Linux.
pub(crate) struct LinuxSide {
    waker: Arc<Waker>,
    pub(crate) feed: Option<Feed>,
    pub(crate) fpm: Option<Fpm>,
    pub(crate) bmp: BmpSide,
    /// What `fpm` was started with, and in which namespace.
    fpm_settings: Option<(FpmSettings, Option<String>)>,
    pub(crate) objects: Objects,
    client: Option<Client>,
    /// The namespace of feed and client.
    namespace: Option<String>,
    /// The ends of interfaces, by the interface's name.
    pub(crate) hosts: BTreeMap<String, Arc<Host>>,
    /// Interfaces by the Linux index of their TAP.
    links: BTreeMap<u32, u32>,
    /// TAPs whose ARP parameters are set, with their Linux index.
    announcing: HashMap<String, u32>,
    /// Addresses that were put on TAPs, by interface.
    mirrored: BTreeMap<String, BTreeSet<IpNet>>,
    /// Groups by what they lead to, and the reverse with the neighbours that are held.
    groups: HashMap<Arc<Target>, u32>,
    targets: HashMap<u32, (Arc<Target>, Vec<Place>)>,
    /// Zebra may have been refused a route or an object over a link whose TAP was not known yet. It sends each only once.
    lacks_link: bool,
    /// All routes are being read again; what differs is counted.
    is_reading: bool,
    /// Searches for stale routes that are left.
    sweeps: VecDeque<Sweep>,
    pub(crate) counters: LinuxCounters,
    pub(crate) convergence: Convergence,
    pub(crate) refused: VecDeque<Refused>,
    /// A TAP may differ from its pair.
    pub(crate) is_changed: bool,
    /// What went wrong with a TAP last, so that it is logged once.
    trouble: BTreeMap<String, String>,
}

/// A search for stale routes.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    source: RouteSource,
    /// Only routes of these; of all when absent.
    protocols: Option<Protocols>,
    /// The index of the table, and the prefix behind which it goes on.
    table: usize,
    after: Option<IpNet>,
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
            fpm: None,
            bmp: BmpSide::default(),
            fpm_settings: None,
            objects: Objects::default(),
            client: None,
            namespace: None,
            hosts: BTreeMap::new(),
            links: BTreeMap::new(),
            announcing: HashMap::new(),
            mirrored: BTreeMap::new(),
            groups: HashMap::new(),
            targets: HashMap::new(),
            lacks_link: false,
            is_reading: false,
            sweeps: VecDeque::new(),
            counters: LinuxCounters::default(),
            convergence: Convergence::default(),
            refused: VecDeque::new(),
            is_changed: false,
            trouble: BTreeMap::new(),
        }
    }

    /// Whether TAPs or the feed have to be looked after again.
    pub(crate) fn needs_sync(&self) -> bool {
        let has_ended = self.feed.as_ref().is_some_and(Feed::has_ended);
        let fpm_has_ended = self.fpm.as_ref().is_some_and(Fpm::has_ended);
        let has_ended = has_ended || fpm_has_ended || self.bmp.has_ended();
        self.is_changed || has_ended || !self.trouble.is_empty()
    }

    /// Whether the control thread has more to do at once.
    pub(crate) fn is_busy(&self) -> bool {
        !self.sweeps.is_empty()
            || self.feed.as_ref().is_some_and(|feed| feed.waiting() > 0)
            || self.fpm.as_ref().is_some_and(|fpm| fpm.waiting() > 0)
    }

    pub(crate) fn refuse(&mut self, prefix: IpNet, error: UpdateError) {
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
        self.objects.forget_group(group);
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
                self.begin_sweep(RouteSource::Kernel);
            }
            self.sync_fpm(None);
            self.follow_bmp(None);
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
        if is_new
            && std::mem::take(&mut self.linux.lacks_link)
            && let Some(fpm) = &self.linux.fpm
        {
            fpm.resync();
        }
        match &self.linux.feed {
            Some(feed) if !feed.has_ended() => {
                if is_new {
                    feed.resync();
                }
            }
            _ => self.start_feed(first.namespace.as_deref()),
        }
        self.sync_fpm(Some(first.namespace.clone()));
        self.follow_bmp(Some(first.namespace.clone()));
    }

    /// Listens to zebra where the configuration says so; in no namespace when `None`.
    fn sync_fpm(&mut self, namespace: Option<Option<String>>) {
        let wanted = self.config.linux.fpm.as_ref().zip(namespace);
        let wanted = wanted.map(|(fpm, namespace)| {
            let settings = FpmSettings {
                address: (fpm.address, fpm.port).into(),
                hold: Duration::from_secs(fpm.hold_time.into()),
                quiet: REPLAY_QUIET,
            };
            (settings, namespace)
        });
        let is_running = self.linux.fpm.as_ref().is_some_and(|fpm| !fpm.has_ended());
        if is_running && self.linux.fpm_settings == wanted {
            return;
        }
        if self.linux.fpm.take().is_some() && wanted.is_none() {
            self.linux.objects.forget_all_parked();
            self.begin_sweep(RouteSource::Fpm);
        }
        let Some((settings, namespace)) = &wanted else {
            self.linux.fpm_settings = None;
            return self.linux_trouble("fpm", Ok(()));
        };
        let waker = self.linux.waker.clone();
        let started = match namespace.as_deref().map(NetNs::open_named).transpose() {
            Ok(namespace) => Fpm::start(namespace.as_ref(), *settings, move || waker.wake()),
            Err(error) => Err(error),
        };
        let result = match started {
            Ok(fpm) => {
                self.linux.fpm = Some(fpm);
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        };
        self.linux.fpm_settings = wanted;
        self.linux_trouble("fpm", result);
    }

    fn follow_bmp(&mut self, namespace: Option<Option<String>>) {
        let result = self.sync_bmp(namespace);
        self.linux_trouble("bmp", result);
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
        // A loopback sends nothing, and is up nevertheless.
        let carrier = entry.can_send || entry.kind == Kind::Loopback;
        let is_up = wanted.state == AdminState::Up;
        let wanted: BTreeSet<IpNet> = wanted.addresses.clone();
        let Some(client) = &mut self.linux.client else {
            return Ok(());
        };
        let text = |error: weir_netlink::Error| error.to_string();
        let link = client.link_by_name(&tap.name).map_err(text)?;
        self.linux.links.insert(link.index, index);
        if self.linux.announcing.get(&tap.name) != Some(&link.index) {
            announce_own_subnets_only(tap);
            self.linux.announcing.insert(tap.name.clone(), link.index);
        }
        if link.mac != Some(mac) {
            client.set_mac(link.index, mac).map_err(text)?;
        }
        if link.mtu != mtu {
            client.set_mtu(link.index, mtu).map_err(text)?;
        }
        if link.up != is_up {
            client.set_up(link.index, is_up).map_err(text)?;
        }
        // A link that is down has no carrier, whatever was set.
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
        self.note_convergence();
        for _ in 0..MESSAGES_A_ROUND {
            if self.publication.len() > MOST_WAITING {
                break;
            }
            let of_kernel = self.linux.feed.as_ref().and_then(Feed::next);
            let of_zebra = self.linux.fpm.as_ref().and_then(Fpm::next);
            if of_kernel.is_none() && of_zebra.is_none() {
                break;
            }
            if let Some(message) = of_kernel {
                self.take_message(RouteSource::Kernel, message);
            }
            if let Some(message) = of_zebra {
                self.take_message(RouteSource::Fpm, message);
            }
        }
        self.sweep_stale();
        self.note_convergence();
    }

    fn note_convergence(&mut self) {
        let done = self.publication.done;
        self.linux.convergence.done(done, Instant::now());
    }

    fn take_message(&mut self, source: RouteSource, message: FeedMessage) {
        let is_kernel = source == RouteSource::Kernel;
        match message {
            FeedMessage::Routes(updates, received) => {
                self.update_routes(&updates);
                if let Some(received) = received {
                    let queued = self.publication.queued;
                    let convergence = &mut self.linux.convergence;
                    convergence.note(source, received, updates.len(), queued);
                }
            }
            FeedMessage::Objects(changes) => self.update_objects(&changes),
            FeedMessage::Begin if is_kernel => {
                self.linux.is_reading = true;
                self.linux.counters.audits += 1;
                self.begin_generation(source);
            }
            FeedMessage::Begin => {
                self.linux.objects.forget_all_parked();
                self.begin_generation(source);
            }
            FeedMessage::End(protocols) => {
                if is_kernel {
                    self.linux.is_reading = false;
                }
                let parked = self.linux.objects.parked();
                if !is_kernel && parked > 0 {
                    tracing::warn!(
                        routes = parked,
                        "routes of zebra name next hops that it has not sent"
                    );
                }
                self.search_stale(source, protocols);
            }
            FeedMessage::Others(messages) => self.take_links(&messages),
        }
    }

    fn begin_generation(&mut self, source: RouteSource) {
        // A search that is under way would take routes for stale that are about to be set again.
        self.linux.sweeps.retain(|sweep| sweep.source != source);
        for table in self.routing.iter_mut().flatten() {
            table.begin_generation(source);
        }
    }

    /// Removes all routes of a source.
    fn begin_sweep(&mut self, source: RouteSource) {
        self.begin_generation(source);
        self.search_stale(source, None);
    }

    fn search_stale(&mut self, source: RouteSource, protocols: Option<Protocols>) {
        self.linux.sweeps.push_back(Sweep {
            source,
            protocols,
            table: 0,
            after: None,
        });
    }

    /// Removes stale routes, some at a time.
    fn sweep_stale(&mut self) {
        // Routes that wait have the new generation only when they are set.
        if self.publication.len() > 0 {
            return;
        }
        let Some(sweep) = self.linux.sweeps.pop_front() else {
            return;
        };
        if sweep.table >= self.routing.len() {
            return;
        }
        let next_table = Sweep {
            table: sweep.table + 1,
            after: None,
            ..sweep
        };
        let Some(Some(table)) = self.routing.get(sweep.table) else {
            self.linux.sweeps.push_front(next_table);
            return;
        };
        let (mut stale, next) = table.stale(sweep.source, sweep.after, SWEEP);
        if let Some(protocols) = sweep.protocols {
            stale.retain(|(prefix, id)| {
                let all = table.candidates(*prefix);
                let route = all.iter().find(|route| route.id == *id);
                route.is_some_and(|route| protocols.contains(route.protocol))
            });
        }
        self.linux.counters.stale += stale.len() as u64;
        for (prefix, id) in stale {
            self.unset_route(sweep.table as u32, prefix, id);
        }
        self.linux.sweeps.push_front(match next {
            None => next_table,
            Some(next) => Sweep {
                after: Some(next),
                ..sweep
            },
        });
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
        match known {
            Some(group) => self.nexthops.acquire_again(group),
            None => {
                let group = self.group_of_own(&route.target)?;
                self.linux.groups.insert(route.target.clone(), group);
                return Ok(Some(group));
            }
        }
        Ok(known)
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

    /// The paths to a target, and the neighbours that are held for them.
    fn paths_of(&mut self, target: &Target) -> Result<(Vec<Path>, Vec<Place>), UpdateError> {
        let (mut ends, mut places) = (Vec::new(), Vec::new());
        if let Target::Paths(hops) = target {
            for hop in hops {
                let Some(interface) = self.linux.links.get(&hop.interface) else {
                    self.linux.lacks_link = true;
                    return Err(UpdateError::NoInterface(hop.interface));
                };
                ends.push((*interface, hop));
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
            Target::Unreachable | Target::Local | Target::Object(_) => {
                vec![Path::to(self.nowhere.unreachable)]
            }
            Target::Prohibit => vec![Path::to(self.nowhere.prohibit)],
        };
        Ok((paths, places))
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

/// Lets Linux ask for neighbors with an address of the link itself (`arp_announce` 2). Else a request has the source address
/// of the packet that waits, such as a loopback's, and routers do not answer: it is none of the link's subnet.
fn announce_own_subnets_only(tap: &LinuxTap) {
    let path = format!("/proc/sys/net/ipv4/conf/{}/arp_announce", tap.name);
    let write = || std::fs::write(&path, "2");
    let written = match tap.namespace.as_deref() {
        None => write().map_err(|error| error.to_string()),
        Some(name) => NetNs::open_named(name)
            .and_then(|namespace| namespace.run(write))
            .map_err(|error| error.to_string())
            .and_then(|written| written.map_err(|error| error.to_string())),
    };
    if let Err(error) = written {
        tracing::warn!(
            path,
            error,
            "a parameter of Linux cannot be set; set it to 2"
        );
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
