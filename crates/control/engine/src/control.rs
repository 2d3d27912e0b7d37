//! The control side's state: what is configured, and everything that makes the workers' tables.
//!
//! One value behind one lock, touched by the control thread and by API threads; workers never wait
//! for it. It keeps the master copy of the tables, changes it, and publishes a clone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;
use weir_api::{EventBus, LinkEvent, Timestamp};
use weir_config::{AdminState, BridgeRole, Config, Subnets, Urpf, is_link_local};
use weir_fib::{Adjacency, AdjacencyKind, NeighborState, NexthopTable};
use weir_graph::{DropMap, NodeSpec};
use weir_memif::MemifWatch;
use weir_nodes::{Entry, Event, Tables, hold_key};
use weir_port::interface::{
    Feature, Features, Input, Interface, InterfaceCounters, Kind, Output, ReversePath,
};
use weir_port::own_addresses::OwnAddresses;
use weir_port::vxlan::Vxlan;
use weir_port::{LinkState, Port, RxQueue, TxQueue};
use weir_ring::qsbr::{Domain, Published};
use weir_wire::{MacAddr, ipv6};

use crate::advertise::Schedule;
use crate::bonds::Talk;
use crate::bridges::LiveBridge;
use crate::capture::Captures;
use crate::clock::Clock;
use crate::dad::{Claim, Claims};
use crate::filters::{Bindings, BuiltLists};
use crate::gone::DropsOfTheGone;
use crate::handle::WorkerHandle;
use crate::index::Indexes;
use crate::ipfix::IpfixSide;
use crate::labels::{LabelRib, WaitingLabel};
use crate::linux::{LinuxSide, tap_of};
use crate::memory::Memory;
use crate::neighbors::{NeighborAction, NeighborTable, Place, Said};
use crate::policers::AttachedPolicers;
use crate::pseudowires::LivePseudowire;
use crate::publish::Publication;
use crate::recursion::Recursion;
use crate::router::{AccessControl, Due, LogControl};
use crate::sflow::SflowSide;
use crate::taps::{DISCARD_TAP, METER_TAP, SFLOW_TAP};
use crate::trace::TraceStore;
use crate::trial::Trial;
use crate::views::Drop;
use weir_control::{RouteSource, Table};

/// The peer of a memif as it was when somebody last looked.
pub(crate) struct Peer {
    pub(crate) watch: MemifWatch,
    /// How many there had been.
    connects: u64,
    /// Why the last one had gone.
    parting: Option<String>,
}

impl Peer {
    pub(crate) fn new(watch: MemifWatch) -> Peer {
        Peer {
            watch,
            connects: 0,
            parting: None,
        }
    }

    /// Looks at most twice a second, so that no peer fills the log: a peer is logged once, and why
    /// nobody is, each reason once. Tells whether there was another peer than before.
    fn watch_over(&mut self, name: &str, up: bool) -> bool {
        let status = self.watch.status();
        let other = std::mem::replace(&mut self.connects, status.connects) != status.connects;
        if other && up {
            tracing::info!(
                "{name}: the peer is {:?} with its interface {:?}",
                status.peer,
                status.interface
            );
            self.parting = None;
        } else if !up && status.last_parting != self.parting {
            if let Some(reason) = &status.last_parting {
                tracing::warn!("{name}: no peer: {reason:?}");
            }
            self.parting = status.last_parting;
        }
        other
    }
}

/// A port that could not be opened; opening it is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Why, in one sentence.
    pub(crate) reason: String,
    /// Since when, on the control side's clock.
    pub(crate) since: u64,
    /// When it is tried again, on the same clock.
    pub(crate) retry_at: u64,
    /// The time between this attempt and the next, in nanoseconds.
    pub(crate) pause: u64,
}

impl Fault {
    /// The first pause after a failed attempt, in nanoseconds; it doubles up to [`Fault::LONGEST`].
    const FIRST: u64 = 1_000_000_000;
    const LONGEST: u64 = 30_000_000_000;

    pub(crate) fn new(reason: String, now: u64) -> Fault {
        Fault {
            reason,
            since: now,
            retry_at: now + Fault::FIRST,
            pause: Fault::FIRST,
        }
    }

    /// After another failed attempt.
    pub(crate) fn again(self, reason: String, now: u64) -> Fault {
        let pause = (self.pause * 2).min(Fault::LONGEST);
        Fault {
            reason,
            since: self.since,
            retry_at: now + pause,
            pause,
        }
    }
}

/// An interface as the control side knows it.
pub(crate) struct Attached {
    pub(crate) name: Arc<str>,
    pub(crate) index: u32,
    /// Tells it from an earlier one of the same number.
    pub(crate) made: u64,
    pub(crate) port: Option<Box<dyn Port>>,
    /// Why its port is not open, although it has a device.
    pub(crate) fault: Option<Fault>,
    /// Of a memif.
    pub(crate) peer: Option<Peer>,
    pub(crate) link: LinkState,
    /// The worker of each receive queue.
    pub(crate) placement: Vec<usize>,
    pub(crate) tx_queues: usize,
    /// Transmit queues that no worker needs now, with their numbers.
    pub(crate) spare: Vec<(usize, Box<dyn TxQueue>)>,
    pub(crate) counters: Arc<InterfaceCounters>,
    pub(crate) drops: Arc<[weir_graph::DropCounters]>,
    pub(crate) mac: MacAddr,
    pub(crate) glean: u32,
    pub(crate) local: u32,
    /// The access lists that its packets pass.
    pub(crate) bindings: Bindings,
    /// How much may come in and go out.
    pub(crate) policers: AttachedPolicers,
}

/// A receive queue whose worker gets it when everything is in place that its packets need.
pub(crate) struct Arriving {
    pub(crate) worker: usize,
    pub(crate) interface: u32,
    pub(crate) number: usize,
    pub(crate) queue: Box<dyn RxQueue>,
}

/// The adjacencies of routes that lead nowhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nowhere {
    pub(crate) blackhole: u32,
    pub(crate) unreachable: u32,
    pub(crate) prohibit: u32,
}

impl Nowhere {
    pub(crate) fn new(nexthops: &mut NexthopTable) -> Nowhere {
        Nowhere {
            blackhole: nexthops.add_adjacency(Adjacency::blackhole()),
            unreachable: nexthops.add_adjacency(Adjacency::rejected()),
            prohibit: nexthops.add_adjacency(Adjacency::prohibited()),
        }
    }
}

/// Everything that the control side owns.
pub(crate) struct Control {
    pub(crate) clock: Clock,
    pub(crate) config: Config,
    pub(crate) memory: Memory,
    pub(crate) domain: Domain,
    pub(crate) tables: Tables,
    /// The filter over own addresses that all interfaces share; brought up to date at each publication.
    pub(crate) own: Arc<OwnAddresses>,
    pub(crate) published: Arc<Published<Tables>>,
    /// All routing tables, the default one first; their places are what interfaces carry.
    pub(crate) routing: Vec<Option<Table>>,
    /// Places of tables by name.
    pub(crate) vrf_places: BTreeMap<String, u32>,
    /// Connected subnets by place of the table and index of the interface.
    pub(crate) subnets: Subnets<u32, u32>,
    pub(crate) nexthops: NexthopTable,
    /// Interfaces whose table of sub-interfaces is out of date.
    pub(crate) unshared: BTreeSet<String>,
    /// Whether the table of tunnels is out of date.
    pub(crate) tunnels_changed: bool,
    /// Whether the master tables' interfaces differ from what workers see.
    pub(crate) stale: bool,
    /// What waits for the workers.
    pub(crate) publication: Publication,
    /// Labels whose groups workers do not see yet.
    pub(crate) waiting_labels: Vec<WaitingLabel>,
    /// Labels of all sources.
    pub(crate) labels: LabelRib,
    /// By table: the adjacency of labels that end in a lookup there.
    pub(crate) lookup_ends: BTreeMap<u32, u32>,
    /// Pseudowires that have their labels, by the names of their interfaces.
    pub(crate) pseudowires: BTreeMap<String, LivePseudowire>,
    /// Receive queues that no worker has yet.
    pub(crate) arriving: Vec<Arriving>,
    /// Interfaces that are out of the master tables and closed once workers do not see them.
    pub(crate) leaving: Vec<Attached>,
    pub(crate) nowhere: Nowhere,
    /// Groups whose next hops are looked up in a table.
    pub(crate) recursion: Recursion,
    pub(crate) neighbors: NeighborTable,
    /// Own IPv6 addresses, and whether they are ours alone.
    pub(crate) claims: Claims,
    /// When this router advertises itself.
    pub(crate) advertisements: Schedule,
    /// Adjacency of each neighbour.
    pub(crate) adjacencies: BTreeMap<Place, u32>,
    pub(crate) interfaces: BTreeMap<String, Attached>,
    pub(crate) bridges: BTreeMap<String, LiveBridge>,
    /// Bonds that speak LACP, by name.
    pub(crate) bonds: BTreeMap<String, Talk>,
    pub(crate) indexes: Indexes,
    pub(crate) workers: Vec<WorkerHandle>,
    pub(crate) specs: Vec<NodeSpec>,
    pub(crate) drop_map: Arc<DropMap>,
    /// Drop counters of interfaces that were taken away.
    pub(crate) drops_of_the_gone: DropsOfTheGone,
    /// Access lists that are ready.
    pub(crate) lists: BuiltLists,
    pub(crate) sflow: SflowSide,
    pub(crate) ipfix: IpfixSide,
    pub(crate) trace: TraceStore,
    pub(crate) events: EventBus,
    pub(crate) next_worker: usize,
    pub(crate) log: Option<LogControl>,
    /// Changes who the API lets in.
    pub(crate) access: Option<AccessControl>,
    pub(crate) captures: Captures,
    /// Interfaces by the one whose addresses they borrow; made when it is needed first.
    pub(crate) borrowers: Option<BTreeMap<String, Vec<String>>>,
    pub(crate) linux: LinuxSide,
    /// Interfaces whose ports were opened again since link events were last handled.
    pub(crate) reopened: BTreeSet<String>,
    pub(crate) api_routes: crate::api_routes::ApiRoutes,
    /// Set where a test breathes for the router.
    pub(crate) trial: Option<Trial>,
    pub(crate) due: Due,
    /// Whether an interface is made although its port cannot be opened: at the start, and when a
    /// change is undone. It is down then, and opening it is tried again.
    pub(crate) tolerant: bool,
    /// The step of the next change that fails, for tests.
    pub(crate) fail_at: Option<usize>,
}

impl Control {
    /// The index of an interface by name; 0, which no interface has, when there is none.
    pub(crate) fn index_of(&self, name: &str) -> u32 {
        self.interfaces
            .get(name)
            .map_or(0, |attached| attached.index)
    }

    /// The name of an interface by index.
    pub(crate) fn name_of(&self, index: u32) -> Option<&str> {
        self.interfaces
            .iter()
            .find(|(_, attached)| attached.index == index)
            .map(|(name, _)| name.as_str())
    }

    /// The same, also of those that were taken away and have drops still.
    pub(crate) fn owner_of(&self, drop: &Drop) -> Option<String> {
        let gone = || self.drops_of_the_gone.name(drop.interface);
        self.name_of(drop.interface)
            .map(str::to_owned)
            .or_else(gone)
    }

    /// Works an interface's entry out anew from configuration and link, and puts it into the master tables;
    /// with a member its bond, with a bond its members, and with each those of its sub-interfaces.
    pub(crate) fn refresh(&mut self, name: &str) {
        self.refresh_alone(name);
        let wanted = self.config.interfaces.get(name);
        let bond = wanted.and_then(|wanted| {
            wanted
                .bond
                .clone()
                .or_else(|| wanted.as_bond().map(|_| name.to_owned()))
        });
        if let Some(bond) = bond {
            self.refresh_bond(&bond);
        }
        for sub in self.sub_interfaces_of(name) {
            self.take_after_parent(&sub);
        }
    }

    /// Attaches sFlow's taps where the settings want them now.
    pub(crate) fn attach_sampling(&mut self) {
        let sampled: Vec<String> = self
            .config
            .interfaces
            .iter()
            .filter(|(_, it)| it.sflow)
            .map(|(name, _)| name.clone())
            .collect();
        sampled.iter().for_each(|name| self.refresh(name));
        self.attach_drop_taps();
    }

    /// Attaches the flow meter where the settings want it now, and not where they wanted it before.
    pub(crate) fn attach_meters(&mut self, before: &weir_config::Ipfix) {
        let now = self.config.ipfix.interfaces.keys();
        let names: BTreeSet<String> = now.chain(before.interfaces.keys()).cloned().collect();
        names.iter().for_each(|name| self.refresh(name));
    }

    /// The taps on what is dropped: captures that want it, and notifications while there is a limit for them.
    pub(crate) fn attach_drop_taps(&mut self) {
        let discards = if self.config.sflow.drop_limit > 0 {
            DISCARD_TAP
        } else {
            0
        };
        self.tables.drop_taps = self.captures.drop_taps() | discards;
        self.stale = true;
    }

    /// One entry, without what depends on it.
    pub(crate) fn refresh_alone(&mut self, name: &str) {
        let Some(attached) = self.interfaces.get(name) else {
            return;
        };
        let Some(wanted) = self.config.interfaces.get(name) else {
            return;
        };
        let wanted = &self.config.with_borrowed(wanted).into_owned();
        let up = wanted.state == AdminState::Up;
        let bridge = self
            .bridge_of(name)
            .map(|(bridge, input, role)| (bridge.to_owned(), input, role));
        let is_bvi = matches!(bridge, Some((.., BridgeRole::Bvi)));
        let member = wanted
            .bond
            .as_deref()
            .map(|bond| self.index_of(bond))
            .filter(|bond| *bond != 0);
        let collects = wanted
            .bond
            .as_deref()
            .is_some_and(|bond| self.collects(bond, name));
        let pair = tap_of(wanted).map(|tap| self.index_of(&tap.interface));
        let input = match (&wanted.l2xc, up) {
            (_, false) => Input::Closed,
            (_, true) if let Some(pair) = pair => Input::CrossConnect(pair),
            (_, true) if let Some(bond) = member => Input::Member { bond, collects },
            (None, true) if let Some((_, input, BridgeRole::Member(_))) = bridge => input,
            (Some(target), true) => Input::CrossConnect(self.index_of(target)),
            (None, true) if wanted.addresses.is_empty() && !wanted.mpls => Input::Unused,
            (None, true) => Input::Routed,
        };
        let sampled = wanted.sflow && up;
        let mut features = Features::default();
        let (direction, is_port) = (self.config.sflow.direction_of(name), wanted.is_port());
        let rx_taps = self.captures.rx_taps(attached.index, is_port)
            | if sampled && direction.rx() {
                SFLOW_TAP
            } else {
                0
            };
        let tx_taps = self.captures.tx_taps(attached.index, is_port)
            | if sampled && direction.tx() {
                SFLOW_TAP
            } else {
                0
            };
        let metered = self
            .config
            .ipfix
            .interfaces
            .get(name)
            .filter(|_| up)
            .map(|metered| metered.direction);
        let rx_taps = rx_taps
            | if metered.is_some_and(|it| it.rx()) {
                METER_TAP
            } else {
                0
            };
        let tx_taps = tx_taps
            | if metered.is_some_and(|it| it.tx()) {
                METER_TAP
            } else {
                0
            };
        let filter = |binding: &Option<crate::filters::Binding>| {
            binding.as_ref().map(|binding| binding.filter.clone())
        };
        let (acl_input, acl_output) = (
            filter(&attached.bindings.input),
            filter(&attached.bindings.output),
        );
        if acl_input.is_some() {
            features = features.with(Feature::AclIn);
        }
        if acl_output.is_some() {
            features = features.with(Feature::AclOut);
        }
        if wanted.urpf.is_some() {
            features = features.with(Feature::Urpf);
        }
        let policers = attached.policers.for_workers();
        if policers.input.is_some() {
            features = features.with(Feature::PoliceIn);
        }
        if policers.output.is_some() {
            features = features.with(Feature::PoliceOut);
        }
        let sub_interface = wanted.sub_interface().map(|sub| self.tagging(sub));
        let pseudowire = self.pseudowire_entry(name);
        let (kind, output) = match (sub_interface, wanted.as_bond()) {
            _ if wanted.device == Some(weir_config::Device::Pseudowire) => {
                (Kind::Pseudowire, Output::Pseudowire)
            }
            (Some(_), _) => (Kind::SubInterface, Output::SubInterface),
            (None, None) if wanted.as_vxlan().is_some() => (Kind::Vxlan, Output::Vxlan),
            (None, Some(_)) => (Kind::Bond, Output::Bond),
            (None, None) if is_bvi && wanted.is_loopback() => (Kind::Bvi, Output::Bvi),
            (None, None) if wanted.is_loopback() => (Kind::Loopback, Output::Driver),
            (None, None) => (Kind::Port, Output::Driver),
        };
        let mac = wanted.mac.map_or(attached.mac, |mac| MacAddr(mac.0));
        let Own {
            four: own4,
            six: own6,
        } = own_addresses(wanted, mac);
        let shared = self.config.shares_its_link(name);
        // What is borrowed is asked about where it belongs.
        let is_own = |address: &Ipv6Addr| {
            shared && (wanted.unnumbered.is_none() || address.is_unicast_link_local())
        };
        let claimed: Vec<Ipv6Addr> = own6
            .iter()
            .map(|(address, _)| *address)
            .filter(is_own)
            .collect();
        self.claims.are(attached.index, &claimed);
        let claim = |address: Ipv6Addr| self.claims.get(attached.index, address);
        let free = own6
            .iter()
            .filter(|(address, _)| claim(*address) == Claim::Free);
        let tentative = own6
            .iter()
            .filter(|(address, _)| matches!(claim(*address), Claim::Waiting | Claim::Asked(_)));
        let interface = Interface {
            mtu: u32::from(wanted.mtu),
            input,
            mpls: wanted.mpls,
            table: self.place_of_vrf(wanted.vrf.as_deref()).unwrap_or(0),
            addresses: own4.into(),
            addresses6: free
                .map(|(address, len)| (u128::from(*address), *len))
                .collect(),
            unnumbered: wanted.unnumbered.is_some(),
            advertises: wanted.router_advertisements.is_some(),
            urpf: wanted.urpf.map(reverse_path),
            tentative6: tentative.map(|(address, _)| u128::from(*address)).collect(),
            features,
            rx_taps,
            tx_taps,
            bvi_of: bridge
                .as_ref()
                .filter(|_| is_bvi)
                .and_then(|(_, input, _)| match *input {
                    Input::Bridge { domain, member } => Some((domain, member)),
                    _ => None,
                }),
            output,
            host: self.linux.hosts.get(name).cloned(),
            can_send: up
                && (self.can_send(name)
                    || pseudowire.is_some()
                    || (is_bvi || matches!(kind, Kind::Bond | Kind::Vxlan)) && attached.link.up),
            pseudowire,
            parent: member.or(sub_interface.map(|sub| sub.parent)),
            bond: self.bond_entry(name, wanted, mac),
            vxlan: wanted
                .as_vxlan()
                .and_then(|tunnel| Vxlan::new(tunnel.local, tunnel.remote, tunnel.vni))
                .map(Arc::new),
            sub_interface,
            sub_interfaces: self
                .tables
                .interface(attached.index)
                .and_then(|it| it.sub_interfaces.clone()),
            own: self.own.clone(),
            ..Interface::at_rest(
                attached.index,
                name.into(),
                kind,
                mac,
                attached.counters.clone(),
            )
        };
        let (place, drops) = (interface.index as usize, attached.drops.clone());
        if self.tables.interfaces.len() <= place {
            self.tables.interfaces.resize(place + 1, None);
        }
        self.tables.interfaces[place] = Some(Arc::new(Entry {
            acl_input,
            acl_output,
            policers,
            ..Entry::new(interface, drops)
        }));
        self.stale = true;
        // MTU and MAC address are the domain's matter, too.
        if let Some((bridge, ..)) = bridge
            && let Err(error) = self.bind_all(&bridge)
        {
            tracing::error!("{name}: {error}");
        }
    }

    /// Handles the events of workers and the timers of neighbours.
    pub(crate) fn take_events(&mut self) {
        let now = self.clock.now();
        let mut actions = Vec::new();
        for worker in 0..self.workers.len() {
            for _ in 0..1024 {
                let Some(event) = self
                    .workers
                    .get_mut(worker)
                    .and_then(|worker| worker.events.pop())
                else {
                    break;
                };
                self.take_event(event, now, &mut actions);
            }
        }
        self.carry_out(actions);
        self.settle_or_log();
    }

    /// Events may be older than a change that took the interface or the subnet away: those are nobody's.
    fn take_event(&mut self, event: Event, now: u64, actions: &mut Vec<NeighborAction>) {
        if let Event::Lacp {
            interface,
            actor,
            partner,
        } = event
        {
            return self.heard_lacp(interface, &actor, &partner);
        }
        let near = |interface: u32, address| {
            self.tables
                .interface(interface)
                .is_some_and(|interface| interface.is_near(address))
        };
        match event {
            Event::Wanted { interface, address } if near(interface, address) => {
                self.neighbors
                    .wanted(Place { interface, address }, now, actions);
            }
            Event::Heard {
                interface,
                address,
                mac,
                to_us,
                replaces,
            } if near(interface, address) => {
                self.neighbors.heard(
                    Place { interface, address },
                    Said {
                        mac,
                        to_us,
                        replaces,
                    },
                    now,
                    actions,
                );
            }
            Event::Wanted { .. } | Event::Heard { .. } => {}
            Event::Duplicate {
                interface,
                address,
                mac,
            } => self.duplicate(interface, address, mac),
            Event::RouterWanted { interface } => self.advertisements.asked(interface, now),
            Event::Lacp { .. } => {}
        }
    }

    /// Somebody else claims an own address: one that is tentative is not used (RFC 4862 section 5.4.5).
    fn duplicate(&mut self, index: u32, address: IpAddr, mac: MacAddr) {
        let Some(name) = self.name_of(index).map(str::to_owned) else {
            return;
        };
        let contested =
            matches!(address, IpAddr::V6(address) if self.claims.contest(index, address, mac));
        if contested {
            tracing::error!("{name}: {address} is used by {mac} already, and not by this router");
            self.refresh(&name);
            // What is for it is the other station's.
            let table = self.table_of(index);
            self.unset_route(table, IpNet::from(address), RouteSource::Local);
        } else {
            tracing::warn!("{name}: {mac} claims {address}, which is this router's");
        }
    }

    /// Asks whether own addresses are free, and uses those that are.
    pub(crate) fn tick_claims(&mut self) {
        let now = self.clock.now();
        let tables = &self.tables;
        // The routed side of a bridge domain asks when somebody can hear it.
        let heard = |(domain, own): (u16, u16)| {
            let others = tables
                .bridge(domain)
                .into_iter()
                .flat_map(|bridge| bridge.members.iter().enumerate());
            let mut others = others
                .filter(|(number, _)| *number != usize::from(own))
                .filter_map(|(_, member)| member.as_ref());
            others.any(|member| {
                tables
                    .interface(member.interface)
                    .is_some_and(|interface| interface.can_send)
            })
        };
        let ready = |index: u32| {
            tables
                .interface(index)
                .is_some_and(|interface| interface.can_send && interface.bvi_of.is_none_or(heard))
        };
        let (ask, settled) = self.claims.tick(now, ready);
        for (index, address) in ask {
            self.ask_if_free(index, address);
        }
        for index in settled {
            if let Some(name) = self.name_of(index).map(str::to_owned) {
                self.refresh(&name);
                self.lead_to_own(&name);
            }
        }
        self.settle_or_log();
    }

    /// Own addresses that are free have their routes, which a duplicate has lost until it is asked about again.
    fn lead_to_own(&mut self, name: &str) {
        let Some((index, local)) = self
            .interfaces
            .get(name)
            .map(|attached| (attached.index, attached.local))
        else {
            return;
        };
        let (table, wanted) = (self.table_of(index), self.config.interfaces.get(name));
        let own: Vec<IpAddr> = wanted
            .iter()
            .flat_map(|it| &it.addresses)
            .map(IpNet::addr)
            .filter(|it| !is_link_local(*it))
            .collect();
        for address in own {
            let is_free = matches!(address, IpAddr::V6(address) if self.claims.get(index, address) == Claim::Free);
            let there = self
                .routing
                .get(table as usize)
                .and_then(Option::as_ref)
                .and_then(|it| it.of(address.into(), RouteSource::Local));
            if is_free && there.is_none() {
                let group = self.single(local);
                if let Err(error) =
                    self.set_route_soon(table, address.into(), RouteSource::Local, group)
                {
                    tracing::error!("{error}");
                }
            }
        }
    }

    /// Neighbours age.
    pub(crate) fn tick_neighbors(&mut self) {
        let now = self.clock.now();
        let mut actions = Vec::new();
        let (adjacencies, nexthops) = (&self.adjacencies, &self.nexthops);
        let used = |place: Place| {
            adjacencies
                .get(&place)
                .and_then(|&number| nexthops.adjacency(number))
                .is_some_and(|it| it.take_used())
        };
        self.neighbors.tick(now, used, &mut actions);
        self.carry_out(actions);
        self.settle_or_log();
    }

    /// Does what the neighbour table asks for. Routes to new neighbours wait for [`Control::settle`],
    /// which comes here when packets wait for them, else with the caller.
    pub(crate) fn carry_out(&mut self, actions: Vec<NeighborAction>) {
        for action in &actions {
            match action {
                NeighborAction::Create(place) => self.create_neighbor(*place),
                NeighborAction::Update(place, state, mac) => {
                    self.update_neighbor(*place, *state, *mac)
                }
                _ => {}
            }
        }
        if actions
            .iter()
            .any(|action| matches!(action, NeighborAction::Release(_)))
        {
            self.settle_or_log();
        }
        for action in actions {
            match action {
                NeighborAction::Create(_) | NeighborAction::Update(..) => {}
                NeighborAction::Release(place) => {
                    self.release_when_settled(hold_key(place.interface, place.address));
                }
                NeighborAction::Ask(place) => self.ask(place, None),
                NeighborAction::Probe(place, mac) => self.ask(place, Some(mac)),
                NeighborAction::Remove(place) => self.remove_neighbor(place),
            }
        }
    }

    /// Makes the adjacency of a neighbour and its route.
    fn create_neighbor(&mut self, place: Place) {
        let Some(interface) = self.tables.interface(place.interface) else {
            return;
        };
        let table = interface.table;
        let adjacency = Adjacency::neighbor(
            place.interface,
            place.address,
            interface.mtu,
            interface.mac.0,
        );
        let number = self.nexthops.add_adjacency(adjacency);
        self.adjacencies.insert(place, number);
        // A path over a link that is down is none from the beginning.
        let can_send = self
            .tables
            .interface(place.interface)
            .is_some_and(|interface| interface.can_send);
        self.nexthops.set_up(number, can_send);
        // A link-local address is on every link; nothing is routed there (RFC 4291 section 2.5.6).
        if is_link_local(place.address) {
            return;
        }
        let group = self.single(number);
        if let Err(error) = self.set_route_soon(
            table,
            IpNet::from(place.address),
            RouteSource::Neighbor,
            group,
        ) {
            tracing::warn!("{error}");
        }
    }

    fn update_neighbor(&mut self, place: Place, state: NeighborState, mac: MacAddr) {
        if let Some(adjacency) = self
            .adjacencies
            .get(&place)
            .and_then(|&number| self.nexthops.adjacency(number))
        {
            adjacency.set_neighbor(state, mac.0);
        }
    }

    fn remove_neighbor(&mut self, place: Place) {
        let table = self
            .tables
            .interface(place.interface)
            .map(|interface| interface.table);
        if let Some(table) = table.filter(|_| !is_link_local(place.address)) {
            self.unset_route(table, IpNet::from(place.address), RouteSource::Neighbor);
        }
        if let Some(number) = self.adjacencies.remove(&place) {
            // Routes over it may find their way anew only after this.
            self.nexthops.abandon_adjacency(number);
        }
    }

    /// Gives adjacencies of an interface its present MTU and MAC address.
    pub(crate) fn refresh_adjacencies(&mut self, index: u32) {
        let Some(interface) = self.tables.interface(index) else {
            return;
        };
        let (mtu, mac) = (interface.mtu, interface.mac.0);
        let is_link = |adjacency: &Adjacency| {
            matches!(
                adjacency.kind,
                AdjacencyKind::Neighbor | AdjacencyKind::Glean
            )
        };
        let here: Vec<(u32, Adjacency)> = self
            .nexthops
            .adjacencies_of(index)
            .filter(|(_, adjacency)| is_link(adjacency))
            .map(|(number, adjacency)| (number, adjacency.with_link(mtu, mac)))
            .collect();
        for (number, adjacency) in here {
            self.nexthops.replace_adjacency(number, adjacency);
        }
    }

    /// Looks at every port: link changes, devices that vanished or came back.
    pub(crate) fn watch_links(&mut self) {
        let names: Vec<String> = self.interfaces.keys().cloned().collect();
        for name in names {
            self.watch_link(&name, false);
        }
        self.settle_or_log();
    }

    /// `was_down`: the kernel reports that the link was down since it was last looked at.
    pub(crate) fn watch_link(&mut self, name: &str, was_down: bool) {
        let Some(attached) = self.interfaces.get_mut(name) else {
            return;
        };
        let Some(port) = &mut attached.port else {
            self.retry(name);
            return;
        };
        let (link, back) = (port.link(), port.should_reopen());
        let before = std::mem::replace(&mut attached.link, link);
        let index = attached.index;
        let is_other_peer = attached
            .peer
            .as_mut()
            .is_some_and(|peer| peer.watch_over(name, link.up));
        let returned = (is_other_peer || was_down) && before.up && link.up;
        if back {
            match self.reopen(name) {
                Ok(()) => tracing::info!("{name}: the device is back, the port is open again"),
                Err(error) => {
                    tracing::warn!("{name}: the device is back, but {error}");
                    let fault = Fault::new(error, self.clock.now());
                    if let Some(attached) = self.interfaces.get_mut(name) {
                        attached.fault = Some(fault);
                    }
                }
            }
            return;
        }
        if returned {
            // It went and came between two looks.
            self.link_changed(
                name,
                index,
                LinkState {
                    up: false,
                    speed: 0,
                },
            );
            self.unlearn_sub_interfaces(name);
        } else if before.up == link.up {
            return;
        }
        self.link_changed(name, index, link);
        self.refresh(name);
    }

    /// Opens a port whose device was missing, when it is time to try.
    fn retry(&mut self, name: &str) {
        let now = self.clock.now();
        let due =
            |attached: &Attached| attached.fault.as_ref().is_some_and(|it| now >= it.retry_at);
        if !self.interfaces.get(name).is_some_and(due) {
            return;
        }
        // That a device is not there is found out cheaply, and no reason to wait longer.
        let device = self.config.interfaces.get(name);
        if crate::ports::is_missing(device.and_then(|it| it.device.as_ref())) {
            return;
        }
        match self.reopen(name) {
            Ok(()) => tracing::info!(interface = name, "port is open"),
            Err(reason) => {
                let Some(attached) = self.interfaces.get_mut(name) else {
                    return;
                };
                let before = attached.fault.take();
                if before.as_ref().is_none_or(|before| before.reason != reason) {
                    tracing::warn!(interface = name, error = reason, "port cannot be opened");
                }
                attached.fault = Some(match before {
                    Some(before) => before.again(reason, now),
                    None => Fault::new(reason, now),
                });
            }
        }
    }

    /// Tells of a link, and does what follows from it for neighbours and paths.
    pub(crate) fn link_changed(&mut self, name: &str, index: u32, link: LinkState) {
        if !link.up {
            // First of all: until then packets are sent into a dead link.
            self.set_paths_up(index, false);
        }
        self.events.publish(weir_api::Event::Link(LinkEvent {
            time: Timestamp::now(),
            interface: name.to_owned(),
            index,
            link: link.up.into(),
            speed: link.speed,
        }));
        if link.up {
            tracing::info!("{name}: link is up");
            self.claims.ask_again(index);
        } else {
            tracing::warn!("{name}: link is down");
            let (now, mut actions) = (self.clock.now(), Vec::new());
            self.neighbors.unlearn(index, now, &mut actions);
            self.carry_out(actions);
        }
        self.set_paths_up(index, link.up);
        self.linux.is_changed = true;
    }

    /// Takes the paths over an interface out of their groups, or in again: one write a group.
    pub(crate) fn set_paths_up(&mut self, index: u32, up: bool) {
        let here: Vec<u32> = self
            .nexthops
            .adjacencies_of(index)
            .filter(|(_, adjacency)| adjacency.kind == AdjacencyKind::Neighbor)
            .map(|(number, _)| number)
            .collect();
        for number in here {
            self.nexthops.set_up(number, up);
        }
    }
}

fn reverse_path(mode: Urpf) -> ReversePath {
    match mode {
        Urpf::Loose => ReversePath::Loose,
        Urpf::Strict => ReversePath::Strict,
    }
}

/// Own addresses with their prefix lengths.
struct Own {
    four: Vec<(u32, u8)>,
    six: Vec<(Ipv6Addr, u8)>,
}

/// Own addresses, the longest subnet first, so that the first which fits is the
/// longest match.
fn own_addresses(wanted: &weir_config::Interface, mac: MacAddr) -> Own {
    let (mut four, mut six) = (Vec::new(), Vec::new());
    for net in &wanted.addresses {
        match net {
            IpNet::V4(net) => four.push((u32::from(net.addr()), net.prefix_len())),
            IpNet::V6(net) => six.push((net.addr(), net.prefix_len())),
        }
    }
    six.extend(made_link_local(wanted, mac).map(|address| (address, 64)));
    four.sort_by_key(|(_, len)| std::cmp::Reverse(*len));
    six.sort_by_key(|(_, len)| std::cmp::Reverse(*len));
    Own { four, six }
}

/// With any IPv6 address comes a link-local one, made of the MAC address (RFC 4291 section 2.5.6 and appendix
/// A), unless one is given.
pub(crate) fn made_link_local(wanted: &weir_config::Interface, mac: MacAddr) -> Option<Ipv6Addr> {
    let given = wanted.addresses.iter().any(|net| is_link_local(net.addr()));
    (wanted.has_ipv6() && !given).then(|| Ipv6Addr::from(ipv6::link_local(mac)))
}
