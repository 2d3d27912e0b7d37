//! TAPs of interfaces in Linux: made as their interfaces are, and kept so.
//!
//! MAC address, MTU, state, carrier, configured addresses and the configured VRF go from the interface to its TAP; a change
//! in Linux is set back and counted. What the configuration leaves open is followed the other way, see `follow`.
//! The namespace may be deleted and made again at any time: its inode is compared, and everything in it is made anew.
//!
//! Links and addresses are read once for all TAPs, whatever their number is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use weir_config::{AdminState, Config, LinuxTap};
use weir_control::RouteSource;
use weir_linux::feed::{BUFFER_BYTES, Feed};
use weir_linux::fpm::{Fpm, FpmSettings};
use weir_netlink::netns::NetNs;
use weir_netlink::route::{Link, LinkAddress, Route as Client};
use weir_port::host::Host;
use weir_port::interface::Kind;

use super::{Followed, tap_of};
use crate::control::Control;

/// The silence after which zebra has sent all its routes; its own pauses are a second.
const REPLAY_QUIET: Duration = Duration::from_secs(3);

/// Bits of the subnet of a link-local address.
const LINK_LOCAL_BITS: u8 = 64;
/// The mark of addresses that were added from here (`IFA_PROTO`; Linux itself has 1 to 3).
const OWN_ADDRESS: u8 = 0x57;
/// The alias of VRF devices that were made from here.
const OWN_VRF: &str = "weir";
/// Labels that the kernel takes, in the namespace of the TAPs.
const MOST_LABELS: &str = "1048575";

/// The links and addresses of the namespace.
struct Seen {
    links: BTreeMap<String, Link>,
    addresses: BTreeMap<u32, Vec<LinkAddress>>,
}

impl Seen {
    fn of(client: &mut Client) -> weir_netlink::Result<Seen> {
        let links = client.links()?;
        let mut addresses: BTreeMap<u32, Vec<LinkAddress>> = BTreeMap::new();
        for address in client.addresses()? {
            addresses.entry(address.index).or_default().push(address);
        }
        let links = links.into_iter().map(|link| (link.name.clone(), link));
        Ok(Seen {
            links: links.collect(),
            addresses,
        })
    }

    fn vrf(&self, table: u32) -> Option<&Link> {
        let mut links = self.links.values();
        links.find(|link| link.vrf_table == Some(table))
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
                self.forget_namespace();
                self.begin_sweep(RouteSource::Kernel);
            }
            self.want_followed(Followed::default());
            self.sync_fpm(None);
            self.follow_bmp(None);
            return;
        };
        if self.trial.is_some() {
            return;
        }
        if let Err(error) = self.enter_namespace(first.namespace.as_deref()) {
            return self.linux_trouble("", Err(error));
        }
        let before = self.linux.links.clone();
        match self.sync_taps(&taps) {
            Ok(followed) => {
                self.want_followed(followed);
                self.linux_trouble("", Ok(()));
            }
            Err(error) => self.linux_trouble("", Err(error)),
        }
        self.ask_again(&before);
        if self.linux.feed.as_ref().is_none_or(Feed::has_ended) {
            self.start_feed(first.namespace.as_deref());
        }
        self.sync_fpm(Some(first.namespace.clone()));
        self.follow_bmp(Some(first.namespace.clone()));
    }

    /// Opens the namespace, anew when it is another one of the same name.
    fn enter_namespace(&mut self, namespace: Option<&str>) -> Result<(), String> {
        let text = |error: weir_netlink::Error| error.to_string();
        let opened = namespace.map(NetNs::open_named).transpose().map_err(text)?;
        let inode = opened
            .as_ref()
            .map(NetNs::inode)
            .transpose()
            .map_err(text)?;
        let is_same = self.linux.namespace.as_deref() == namespace && self.linux.inode == inode;
        if self.linux.client.is_some() && is_same {
            return Ok(());
        }
        let was_there = self.linux.client.is_some() && self.linux.namespace.as_deref() == namespace;
        self.forget_namespace();
        let client = match &opened {
            None => Client::open(),
            Some(namespace) => namespace.route(),
        };
        self.linux.client = Some(client.map_err(text)?);
        self.linux.namespace = namespace.map(str::to_owned);
        self.linux.inode = inode;
        if was_there {
            tracing::warn!(
                namespace,
                "the namespace was made anew, and so are its TAPs"
            );
            let taps: Vec<String> = self
                .config
                .interfaces
                .iter()
                .filter(|(_, it)| tap_of(it).is_some())
                .map(|(name, _)| name.clone())
                .collect();
            for tap in taps {
                if let Err(error) = self.reopen(&tap) {
                    tracing::error!(interface = tap, error, "the TAP cannot be made anew");
                }
            }
        }
        Ok(())
    }

    /// Everything that belongs to a namespace goes. Its routes stay until another one has been read.
    fn forget_namespace(&mut self) {
        let linux = &mut self.linux;
        (linux.feed, linux.fpm, linux.fpm_settings) = (None, None, None);
        (linux.client, linux.inode, linux.loopback) = (None, None, None);
        linux.links.clear();
        linux.vrf_links.clear();
        linux.mirrored.clear();
        linux.prepared.clear();
        linux.enslaved.clear();
        linux.groups.clear();
        linux.bmp.stop();
    }

    /// Reads routes again that may have been refused for a link or table that there is now.
    fn ask_again(&mut self, before: &BTreeMap<u32, u32>) {
        let linux = &mut self.linux;
        let is_other = |(link, interface): (&u32, &u32)| {
            linux.links.get(link).is_some_and(|now| now != interface)
        };
        if before.iter().any(is_other) {
            // The kernel gave a TAP the index that another one had.
            linux.groups.clear();
        }
        let is_known = |(link, interface): (&u32, &u32)| before.get(link) == Some(interface);
        let is_new = !linux.links.iter().all(is_known);
        let is_table_new = std::mem::take(&mut linux.is_table_new);
        let lacks_table = is_table_new && std::mem::take(&mut linux.lacks_table);
        if is_new || lacks_table {
            if let Some(feed) = linux.feed.as_ref().filter(|feed| !feed.has_ended()) {
                feed.resync();
            }
            if (std::mem::take(&mut linux.lacks_link) || lacks_table)
                && let Some(fpm) = &linux.fpm
            {
                fpm.resync();
            }
        }
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
            }
            Err(error) => self.linux_trouble("", Err(error.to_string())),
        }
    }

    /// Logs what goes wrong with a TAP once.
    pub(super) fn linux_trouble(&mut self, interface: &str, result: Result<(), String>) {
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

    /// Makes all TAPs as their pairs are; what is to be followed of them.
    fn sync_taps(&mut self, taps: &[LinuxTap]) -> Result<Followed, String> {
        let text = |error: weir_netlink::Error| error.to_string();
        let Some(client) = &mut self.linux.client else {
            return Ok(Followed::default());
        };
        let mut seen = Seen::of(client).map_err(text)?;
        if self.sync_vrfs(taps, &seen) {
            let Some(client) = &mut self.linux.client else {
                return Ok(Followed::default());
            };
            // The kernel takes IPv6 addresses off a link that goes into a VRF device.
            seen = Seen::of(client).map_err(text)?;
        }
        let vrfs = seen.links.values();
        let vrfs = vrfs.filter_map(|link| Some((link.index, link.vrf_table?)));
        self.linux.vrf_links = vrfs.collect();
        let mut links = seen.links.values();
        self.linux.loopback = links.find(|link| link.loopback).map(|link| link.index);
        self.linux.links.clear();
        let mut followed = Followed::default();
        for tap in taps {
            let result = self.sync_tap(tap, &seen, &mut followed);
            self.linux_trouble(&tap.interface, result);
        }
        for link in seen.links.values() {
            if let Some(table) = link.vrf_table {
                followed.vrfs.insert(table, link.name.clone());
            }
        }
        // Only those that are needed, so that others come and go without notice.
        let used: BTreeSet<u32> = followed.tables.values().copied().collect();
        followed.vrfs.retain(|table, _| used.contains(table));
        Ok(followed)
    }

    /// The configured VRF of an interface: its name, and the number of its table.
    fn configured_vrf(&self, interface: &str) -> Option<(String, u32)> {
        let vrf = self.config.interfaces.get(interface)?.vrf.clone()?;
        let table = self.config.vrfs.get(&vrf)?.table;
        (!self.linux.followed.has_table(interface)).then_some((vrf, table))
    }

    /// Puts TAPs into the VRF devices that the configuration wants, and takes them out of those that were made for it.
    /// Whether anything changed.
    fn sync_vrfs(&mut self, taps: &[LinuxTap], seen: &Seen) -> bool {
        let mut changed = false;
        let wanted: Vec<_> = taps
            .iter()
            .map(|tap| self.configured_vrf(&tap.interface))
            .collect();
        let mut made: BTreeMap<u32, u32> = BTreeMap::new();
        for (tap, wanted) in taps.iter().zip(&wanted) {
            let Some(link) = seen.links.get(&tap.name) else {
                continue;
            };
            let of = link.controller;
            let of_own =
                |link: &&Link| Some(link.index) == of && link.alias.as_deref() == Some(OWN_VRF);
            let is_ours = self.linux.enslaved.contains(&tap.name)
                || seen.links.values().any(|link| of_own(&link));
            let Some(client) = &mut self.linux.client else {
                return changed;
            };
            let result = match wanted {
                None if of.is_some() && is_ours => {
                    self.linux.enslaved.remove(&tap.name);
                    changed = true;
                    client.set_controller(link.index, None)
                }
                None => Ok(()),
                Some((name, table)) => {
                    let known = seen.vrf(*table).map(|vrf| vrf.index);
                    let known = known.or_else(|| made.get(table).copied());
                    let vrf = known.map_or_else(|| make_vrf(client, name, *table), Ok);
                    vrf.and_then(|vrf| {
                        made.insert(*table, vrf);
                        if of == Some(vrf) {
                            return Ok(());
                        }
                        changed = true;
                        self.linux.enslaved.insert(tap.name.clone());
                        client.set_controller(link.index, Some(vrf))
                    })
                }
            };
            let result = result.map_err(|error| format!("its VRF in Linux: {error}"));
            self.linux_trouble(&format!("vrf of {}", tap.interface), result);
        }
        let tables: BTreeSet<u32> = wanted.iter().flatten().map(|(_, table)| *table).collect();
        for link in seen.links.values() {
            let is_unused = link.vrf_table.is_some_and(|table| !tables.contains(&table));
            if is_unused
                && link.alias.as_deref() == Some(OWN_VRF)
                && let Some(client) = &mut self.linux.client
            {
                changed = true;
                if let Err(error) = client.delete(link.index) {
                    tracing::warn!(vrf = link.name, %error, "a VRF device that nothing uses stays");
                }
            }
        }
        changed
    }

    /// Makes one TAP as its pair is, and notes what it has beside.
    fn sync_tap(
        &mut self,
        tap: &LinuxTap,
        seen: &Seen,
        followed: &mut Followed,
    ) -> Result<(), String> {
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
        let (is_up, takes_labels) = (wanted.state == AdminState::Up, wanted.mpls);
        // Linux has made its own from the MAC address that the TAP had at first, and neighbors would get no answer for it.
        let link_local = entry
            .link_local6()
            .map(|own| IpAddr::from(Ipv6Addr::from(own)));
        let of_linux = self.linux.followed.addresses_of(&tap.interface);
        let mut configured: BTreeSet<IpNet> =
            wanted.addresses.difference(&of_linux).copied().collect();
        let has_own = |own: &IpAddr| configured.iter().any(|net| net.addr() == *own);
        if let Some(own) = link_local.filter(|own| !has_own(own)) {
            configured.extend(IpNet::new(own, LINK_LOCAL_BITS).ok());
        }
        let has_vrf = self.configured_vrf(&tap.interface).is_some();
        let Some(link) = seen.links.get(&tap.name) else {
            return Err(format!("there is no link {} in Linux", tap.name));
        };
        self.linux.links.insert(link.index, index);
        let is_new = self.linux.prepared.get(&tap.name) != Some(&(link.index, takes_labels));
        if is_new {
            prepare(tap, takes_labels);
            let state = (link.index, takes_labels);
            self.linux.prepared.insert(tap.name.clone(), state);
        }
        let table = link.controller.and_then(|of| self.linux.vrf_links.get(&of));
        if let Some(table) = table.filter(|_| !has_vrf) {
            followed.tables.insert(tap.interface.clone(), *table);
        }
        let Some(client) = &mut self.linux.client else {
            return Ok(());
        };
        let text = |error: weir_netlink::Error| error.to_string();
        let mut set_back = 0;
        if link.mac != Some(mac) {
            client.set_mac(link.index, mac).map_err(text)?;
            set_back += 1;
        }
        if link.mtu != mtu {
            client.set_mtu(link.index, mtu).map_err(text)?;
            set_back += 1;
        }
        if link.up != is_up {
            client.set_up(link.index, is_up).map_err(text)?;
            set_back += 1;
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
        let found = seen
            .addresses
            .get(&link.index)
            .map_or(&[][..], Vec::as_slice);
        let mut present = BTreeSet::new();
        for address in found {
            let Ok(net) = IpNet::new(address.address, address.prefix_length) else {
                continue;
            };
            if configured.contains(&net) {
                present.insert(net);
            } else if address.protocol == OWN_ADDRESS
                || mirrored.contains(&net)
                || (link_local.is_some() && weir_config::is_link_local(net.addr()))
            {
                // It was configured, maybe before this process began; or it is Linux's own of the link.
                let removed = client.remove_address(link.index, net.addr(), net.prefix_len());
                if let Err(error) = removed
                    && !error.is_not_found()
                {
                    tracing::warn!(interface = tap.interface, address = %net, %error, "Linux keeps an address");
                }
                mirrored.remove(&net);
            } else {
                followed.add_address(&tap.interface, net);
            }
        }
        for address in configured.difference(&present) {
            if mirrored.contains(address) {
                set_back += 1;
            }
            client
                .add_address_of(
                    link.index,
                    address.addr(),
                    address.prefix_len(),
                    OWN_ADDRESS,
                )
                .map_err(text)?;
        }
        *mirrored = configured;
        if !is_new {
            self.linux.counters.set_back += set_back;
        }
        Ok(())
    }

    /// A TAP that is not wanted any more goes, though it outlives this process.
    pub(crate) fn remove_tap(&mut self, tap: &LinuxTap) {
        if self.trial.is_some() || !tap.persistent {
            return;
        }
        let client = match tap.namespace.as_deref() {
            None => Client::open(),
            Some(name) => NetNs::open_named(name).and_then(|namespace| namespace.route()),
        };
        let removed = client.and_then(|mut client| {
            let index = client.link_by_name(&tap.name)?.index;
            client.delete(index)
        });
        if let Err(error) = removed
            && !error.is_not_found()
        {
            tracing::warn!(tap = tap.name, %error, "the TAP stays in Linux");
        }
    }
}

fn make_vrf(client: &mut Client, name: &str, table: u32) -> weir_netlink::Result<u32> {
    let index = client.create_vrf(name, table)?;
    client.set_alias(index, OWN_VRF)?;
    Ok(index)
}

/// Kernel parameters of a TAP.
///
/// * Linux asks for neighbors with an address of the link itself (`arp_announce` 2). Else a request has the source address
///   of the packet that waits, such as a loopback's, and routers do not answer: it is none of the link's subnet.
/// * IPv6 addresses stay when the link is down (`keep_addr_on_down`), and router advertisements make none: daemons
///   receive these by themselves.
/// * The kernel takes labels where the interface does, and as many as there are: daemons write label routes only then.
fn prepare(tap: &LinuxTap, takes_labels: bool) {
    let name = &tap.name;
    let (ip4, ip6, mpls) = (
        "/proc/sys/net/ipv4",
        "/proc/sys/net/ipv6",
        "/proc/sys/net/mpls",
    );
    let mut parameters = vec![
        (format!("{ip4}/conf/{name}/arp_announce"), "2"),
        (format!("{ip6}/conf/{name}/keep_addr_on_down"), "1"),
        (format!("{ip6}/conf/{name}/accept_ra"), "0"),
        (format!("{ip6}/conf/{name}/autoconf"), "0"),
    ];
    let input = if takes_labels { "1" } else { "0" };
    let mut write = || {
        if Path::new(mpls).exists() {
            if takes_labels {
                parameters.push((format!("{mpls}/platform_labels"), MOST_LABELS));
            }
            parameters.push((format!("{mpls}/conf/{name}/input"), input));
        }
        for (path, value) in &parameters {
            if let Err(error) = std::fs::write(path, value) {
                tracing::warn!(path, value, %error, "a parameter of Linux cannot be set");
            }
        }
    };
    let written = match tap.namespace.as_deref() {
        None => {
            write();
            Ok(())
        }
        Some(name) => NetNs::open_named(name).and_then(|namespace| namespace.run(write)),
    };
    if let Err(error) = written {
        tracing::warn!(tap = name, %error, "parameters of Linux cannot be set");
    }
}
