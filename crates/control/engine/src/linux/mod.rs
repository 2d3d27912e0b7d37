//! Linux as the control plane: TAPs that mirror interfaces, and the kernel's routes in the RIB.
//!
//! Each interface under `linux` has a TAP in a network namespace. The TAP is an interface of its own here, cross-connected to
//! its pair: what Linux sends leaves by the pair, and the node `linux-punt` sends what is for services of this router
//! to the TAP.
//!
//! * `taps` keeps the TAP like its pair (MAC address, MTU, state, carrier, addresses, VRF).
//! * `follow` takes over what is set in Linux alone: addresses and VRFs of TAPs.
//! * `messages` takes what the feeds have read, and removes stale routes.
//! * `routes` and `labels` carry out changes of routes and incoming labels.
//!
//! Runs on the control thread and in changes of the configuration, under the control lock. The feeds' own threads take no
//! lock. A batch of updates is bounded, so that the lock is free again after a few milliseconds.

mod follow;
mod labels;
mod messages;
mod routes;
mod taps;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ipnet::IpNet;
use weir_config::{Device, LinuxTap};
use weir_control::{Target, UpdateError};
use weir_linux::feed::Feed;
use weir_linux::fpm::{Fpm, FpmSettings};
use weir_netlink::route::Route as Client;
use weir_port::host::Host;

use crate::bgp::BmpSide;
use crate::convergence::Convergence;
use crate::neighbors::Place;
use crate::objects::Objects;
use crate::waker::Waker;

pub(crate) use follow::Followed;

/// Refused updates that are kept for `show linux feed`.
const MOST_REFUSED: usize = 1000;

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
    /// The namespace of feed and client, and its inode: one that was deleted and made again has another.
    namespace: Option<String>,
    inode: Option<u64>,
    /// The ends of interfaces, by the interface's name.
    pub(crate) hosts: BTreeMap<String, Arc<Host>>,
    /// Interfaces by the Linux index of their TAP.
    links: BTreeMap<u32, u32>,
    /// VRF devices by Linux index, with the number of their table.
    vrf_links: BTreeMap<u32, u32>,
    /// The Linux index of the namespace's loopback.
    loopback: Option<u32>,
    /// TAPs whose kernel parameters are set, with their Linux index and whether they take labels.
    prepared: HashMap<String, (u32, bool)>,
    /// TAPs that were put into a VRF device from here.
    enslaved: HashSet<String>,
    /// What is followed of Linux, and what of it is in the running configuration.
    wanted: Followed,
    pub(crate) followed: Followed,
    is_follow_due: bool,
    /// Addresses that were put on TAPs, by interface.
    mirrored: BTreeMap<String, BTreeSet<IpNet>>,
    /// Groups by what they lead to, and the reverse with the neighbours that are held.
    groups: HashMap<Arc<Target>, u32>,
    targets: HashMap<u32, (Arc<Target>, Vec<Place>)>,
    /// Zebra may have been refused a route or an object over a link whose TAP was not known yet. It sends each only once.
    lacks_link: bool,
    /// The kernel or zebra may have been refused a route of a table that there was not.
    lacks_table: bool,
    pub(crate) is_table_new: bool,
    /// All routes are being read again; what differs is counted.
    is_reading: bool,
    /// Searches for stale routes that are left.
    sweeps: VecDeque<messages::Sweep>,
    pub(crate) counters: LinuxCounters,
    pub(crate) convergence: Convergence,
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
    /// Settings of TAPs that were changed in Linux and set back.
    pub(crate) set_back: u64,
}

/// An update that was refused.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// A prefix, or a label.
    pub(crate) object: String,
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
            inode: None,
            hosts: BTreeMap::new(),
            links: BTreeMap::new(),
            vrf_links: BTreeMap::new(),
            loopback: None,
            prepared: HashMap::new(),
            enslaved: HashSet::new(),
            wanted: Followed::default(),
            followed: Followed::default(),
            is_follow_due: false,
            mirrored: BTreeMap::new(),
            groups: HashMap::new(),
            targets: HashMap::new(),
            lacks_link: false,
            lacks_table: false,
            is_table_new: false,
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

    pub(crate) fn refuse(&mut self, object: impl std::fmt::Display, error: UpdateError) {
        self.lacks_table |= matches!(error, UpdateError::NoTable(_));
        *self.counters.refused.entry(error.reason()).or_default() += 1;
        if self.refused.len() >= MOST_REFUSED {
            self.refused.pop_front();
        }
        self.refused.push_back(Refused {
            object: object.to_string(),
            error,
        });
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
        let of_vrf = || self.trouble.get(&format!("vrf of {interface}"));
        let of_all = || self.trouble.get("");
        own.or_else(of_vrf).or_else(of_all).cloned()
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
