//! What the router tells: the API's questions answered from tables and counters.
//!
//! Counters only grow; "clear" remembers their values and subtracts them here, so that workers
//! need not be reported and sFlow's counters stay what they were. The balance is never cleared.

use std::collections::BTreeMap;
use std::time::SystemTime;

use weir_api::{ApiError, Caller, Clear, RouteQuery};
use weir_config::AdminState;
use weir_fib::NeighborState;
use weir_graph::{DropReason, Severity};
use weir_port::Source;
use weir_port::interface::DirectionSums;

use crate::control::{Attached, Control};
use crate::router::Router;
use crate::work::QueueBaselines;
use crate::worker::Command;

/// Values at the time of the last clear.
#[derive(Default)]
pub(crate) struct Baselines {
    /// What came in, what went out, and what could not.
    interfaces: BTreeMap<u32, (DirectionSums, DirectionSums, u64)>,
    /// Drops by (scope, worker, interface, place): one set for interfaces, one for errors.
    drops: BTreeMap<(bool, usize, u32, usize), u64>,
    nodes: BTreeMap<(usize, usize), (u64, u64, u64)>,
    turns: BTreeMap<usize, [u64; 4]>,
    queues: QueueBaselines,
    runtime_since: Option<SystemTime>,
}

type Reply<T> = Result<T, ApiError>;

/// One drop counter with its owner.
pub(crate) struct Drop {
    worker: usize,
    /// 0 for packets of no interface; from [`crate::gone::FIRST`] downwards of interfaces that were taken away.
    pub(crate) interface: u32,
    pub(crate) place: usize,
    pub(crate) count: u64,
}

impl Control {
    /// Every drop counter that is not 0.
    pub(crate) fn drops(&self) -> Vec<Drop> {
        let places = self.drop_map.pairs().len();
        let mut all = Vec::new();
        for (worker, handle) in self.workers.iter().enumerate() {
            let mut take = |interface: u32, count: &dyn Fn(usize) -> u64| {
                let counts = (0..places)
                    .map(|place| (place, count(place)))
                    .filter(|(_, count)| *count > 0);
                all.extend(counts.map(|(place, count)| Drop {
                    worker,
                    interface,
                    place,
                    count,
                }));
            };
            take(0, &|place| handle.counters.orphans.get(place));
            for attached in self.interfaces.values() {
                if let Some(counters) = attached.drops.get(worker) {
                    take(attached.index, &|place| counters.get(place));
                }
            }
        }
        let gone = self.drops_of_the_gone.iter();
        all.extend(gone.map(|(interface, worker, place, count)| Drop {
            worker,
            interface,
            place,
            count,
        }));
        all
    }

    pub(crate) fn pair(&self, place: usize) -> (&'static str, DropReason) {
        self.drop_map
            .pairs()
            .get(place)
            .copied()
            .unwrap_or(("?", DropReason::LoopLimit))
    }
}

/// Frames that found no room.
const NO_ROOM: [&str; 2] = ["rx_dropped", "rx_ring_full"];
/// Frames that were no good.
const BROKEN: [&str; 3] = ["rx_bad_descriptors", "rx_runts", "rx_too_long"];

/// Frames that driver and kernel lost before a worker saw them.
pub(crate) fn missed(attached: &Attached) -> u64 {
    found_no_room(attached) + broken(attached)
}

/// Of those, the ones that found no room.
pub(crate) fn found_no_room(attached: &Attached) -> u64 {
    lost(attached, &NO_ROOM)
}

/// And those that were no good.
pub(crate) fn broken(attached: &Attached) -> u64 {
    lost(attached, &BROKEN)
}

fn lost(attached: &Attached, names: &[&str]) -> u64 {
    let counters = attached
        .port
        .as_ref()
        .map_or_else(Vec::new, |port| port.counters());
    let ours = counters
        .iter()
        .filter(|counter| matches!(counter.source, Source::Driver | Source::Xdp));
    ours.filter(|counter| names.iter().any(|name| counter.name.starts_with(name)))
        .map(|counter| counter.value)
        .sum()
}

fn traffic(now: DirectionSums, before: DirectionSums) -> weir_api::Traffic {
    weir_api::Traffic {
        packets: now.packets.saturating_sub(before.packets),
        bytes: now.bytes.saturating_sub(before.bytes),
        unicast: now.unicast.saturating_sub(before.unicast),
        multicast: now.multicast.saturating_sub(before.multicast),
        broadcast: now.broadcast.saturating_sub(before.broadcast),
    }
}

impl Router {
    fn baselines(&self) -> std::sync::MutexGuard<'_, Baselines> {
        self.0
            .baselines
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The balance of packets since the start; exact once the router is stopped.
    #[must_use]
    pub fn balance(&self) -> weir_api::Totals {
        let control = self.control();
        let sum = |which: fn(&weir_graph::Totals) -> &weir_ring::counter::Counter| -> u64 {
            control
                .workers
                .iter()
                .map(|worker| which(&worker.counters.totals).get())
                .sum()
        };
        let mut drops = BTreeMap::new();
        for drop in control.drops() {
            *drops
                .entry(control.pair(drop.place).1.name().to_owned())
                .or_insert(0) += drop.count;
        }
        weir_api::Totals {
            packets_in: sum(|totals| &totals.input),
            packets_out: sum(|totals| &totals.output),
            originated: sum(|totals| &totals.originated),
            replicated: sum(|totals| &totals.replicated),
            consumed: sum(|totals| &totals.consumed),
            held: sum(|totals| &totals.held),
            drops,
        }
    }
}

impl weir_api::Router for Router {
    fn version(&self) -> Reply<weir_api::Version> {
        let started = self
            .0
            .started
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        Ok(weir_api::Version {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: self.0.commit.clone(),
            pid: std::process::id(),
            started,
            uptime: self.0.started.elapsed().unwrap_or_default().as_secs(),
            workers: self.control().workers.len() as u32,
            config_file: self.0.config_file.clone(),
        })
    }

    fn interfaces(&self) -> Reply<weir_api::Interfaces> {
        let control = self.control();
        let baselines = self.baselines();
        let drops = control.drops();
        let mut interfaces: Vec<_> = control
            .interfaces
            .iter()
            .map(|(name, attached)| interface_view(&control, &baselines, &drops, name, attached))
            .collect();
        interfaces.sort_by_key(|interface| interface.index);
        Ok(weir_api::Interfaces { interfaces })
    }

    fn hardware(&self) -> Reply<weir_api::Hardware> {
        let control = self.control();
        let port = |(name, attached): (&String, &Attached)| {
            let port = attached.port.as_ref()?;
            let capabilities = port.capabilities();
            let counter = |counter: weir_port::HardwareCounter| weir_api::HardwareCounter {
                name: counter.name,
                value: counter.value,
                source: match counter.source {
                    Source::Driver => weir_api::CounterSource::Driver,
                    Source::Xdp => weir_api::CounterSource::Xdp,
                    Source::Kernel => weir_api::CounterSource::Kernel,
                    Source::Ethtool => weir_api::CounterSource::Ethtool,
                },
            };
            Some((
                attached.index,
                weir_api::HardwarePort {
                    interface: name.clone(),
                    device: port.device().to_owned(),
                    driver: capabilities.driver.to_owned(),
                    mode: capabilities.mode,
                    mac: port.mac().map(|mac| mac.to_string()),
                    link: attached.link.up.into(),
                    speed: attached.link.speed,
                    rx_queues: capabilities.rx_queues as u32,
                    tx_queues: capabilities.tx_queues as u32,
                    max_frame: capabilities.max_frame as u32,
                    counters: port.counters().into_iter().map(counter).collect(),
                },
            ))
        };
        let mut ports: Vec<_> = control.interfaces.iter().filter_map(port).collect();
        ports.sort_by_key(|(index, _)| *index);
        Ok(weir_api::Hardware {
            ports: ports.into_iter().map(|(_, port)| port).collect(),
        })
    }

    fn rx_placement(&self) -> Reply<weir_api::RxPlacement> {
        let control = self.control();
        let mut queues = Vec::new();
        for (name, attached) in &control.interfaces {
            for (queue, &worker) in attached.placement.iter().enumerate() {
                let core = control
                    .workers
                    .get(worker)
                    .and_then(|worker| worker.core)
                    .map(|core| core as u32);
                queues.push(weir_api::RxQueuePlacement {
                    interface: name.clone(),
                    queue: queue as u32,
                    worker: worker as u32,
                    core,
                });
            }
        }
        Ok(weir_api::RxPlacement { queues })
    }

    fn adjacencies_where(&self, query: &weir_api::AdjacencyQuery) -> Reply<weir_api::Adjacencies> {
        Ok(self.control().adjacencies_where(query))
    }

    fn bridge_domains(&self) -> Reply<weir_api::BridgeDomains> {
        Ok(self.control().bridge_views())
    }

    fn l2fib_where(&self, query: &weir_api::L2fibQuery) -> Reply<weir_api::L2fib> {
        Ok(query.narrow(self.control().l2fib_view(query.bridge.as_deref())))
    }

    fn features(&self) -> Reply<weir_api::Features> {
        Ok(self.control().feature_views())
    }

    fn pseudowires(&self) -> Reply<weir_api::Pseudowires> {
        Ok(self.control().pseudowire_views())
    }

    fn linux(&self) -> Reply<weir_api::Linux> {
        Ok(self.control().linux_view())
    }

    fn bonds(&self) -> Reply<weir_api::Bonds> {
        Ok(self.control().bond_views())
    }

    fn mpls_fib(
        &self,
        label: Option<u32>,
        after: Option<u32>,
        most: usize,
    ) -> Reply<weir_api::MplsFib> {
        Ok(weir_api::MplsFib {
            labels: self.control().labels_where(label, after, most),
        })
    }

    fn vxlan_tunnels(&self) -> Reply<weir_api::VxlanTunnels> {
        Ok(self.control().vxlan_views())
    }

    fn memif(&self) -> Reply<weir_api::Memifs> {
        Ok(self.control().memifs())
    }

    fn runtime(&self) -> Reply<weir_api::Runtime> {
        let control = self.control();
        let baselines = self.baselines();
        let idle = match control.config.workers.idle {
            weir_config::Idle::Poll => weir_api::IdleMode::Poll,
            weir_config::Idle::Adaptive => weir_api::IdleMode::Adaptive,
            weir_config::Idle::Sleep => weir_api::IdleMode::Sleep,
        };
        let since = baselines.runtime_since.unwrap_or(self.0.started);
        let seconds = since.elapsed().unwrap_or_default().as_secs_f64();
        let tsc_hz = weir_cpu::tsc_hz() as f64;
        let worker = |(number, handle): (usize, &crate::handle::WorkerHandle)| {
            let node = |(place, spec): (usize, &weir_graph::NodeSpec)| {
                let counters = handle.counters.nodes.get(place)?;
                let before = baselines
                    .nodes
                    .get(&(number, place))
                    .copied()
                    .unwrap_or_default();
                let calls = counters.calls.get() - before.0;
                let reply = || {
                    weir_api::NodeRuntime::new(
                        spec.name,
                        calls,
                        counters.packets.get() - before.1,
                        counters.clocks.get() - before.2,
                    )
                };
                (calls > 0).then(reply)
            };
            let before = baselines.turns.get(&number).copied().unwrap_or_default();
            let now = handle.stats.values();
            let [turns, busy_turns, clocks, busy_clocks] =
                std::array::from_fn(|n| now[n].saturating_sub(before[n]));
            let mut nodes = control.queue_rows(number, &baselines.queues);
            // In the order of a packet: received, processed, sent, and what the loop took beside.
            let first_tx = nodes.partition_point(|row| row.name.contains("-rx "));
            let own = control.specs.iter().enumerate().filter_map(node);
            nodes.splice(first_tx..first_tx, own.collect::<Vec<_>>());
            let counted: u64 = nodes.iter().map(|row| row.clocks).sum();
            nodes.push(weir_api::NodeRuntime::new(
                "loop",
                turns,
                0,
                clocks.saturating_sub(counted),
            ));
            weir_api::WorkerRuntime {
                worker: number as u32,
                core: handle.core.map(|core| core as u32),
                idle,
                turns,
                busy_turns,
                clocks,
                busy_clocks,
                busy: (busy_clocks as f64 / (seconds * tsc_hz).max(1.0)).min(1.0),
                nodes,
            }
        };
        Ok(weir_api::Runtime {
            tsc_mhz: tsc_hz / 1e6,
            seconds,
            workers: control.workers.iter().enumerate().map(worker).collect(),
        })
    }

    fn errors(&self) -> Reply<weir_api::Errors> {
        let control = self.control();
        let baselines = self.baselines();
        let counter = |drop: Drop| {
            let (node, reason) = control.pair(drop.place);
            let before = baselines
                .drops
                .get(&(true, drop.worker, drop.interface, drop.place))
                .copied()
                .unwrap_or(0);
            let count = drop.count.saturating_sub(before);
            (count > 0).then(|| weir_api::DropCounter {
                worker: Some(drop.worker as u32),
                node: node.to_owned(),
                reason: reason.name().to_owned(),
                severity: match reason.severity() {
                    Severity::Info => weir_api::Severity::Info,
                    Severity::Warning => weir_api::Severity::Warning,
                    Severity::Error => weir_api::Severity::Error,
                },
                sentence: reason.sentence().to_owned(),
                interface: control.owner_of(&drop),
                count,
            })
        };
        Ok(weir_api::Errors {
            errors: control.drops().into_iter().filter_map(counter).collect(),
        })
    }

    fn neighbors(&self) -> Reply<weir_api::Neighbors> {
        let control = self.control();
        let now = control.clock.now();
        let neighbor =
            |(place, neighbor): (&crate::neighbors::Place, &crate::neighbors::Neighbor)| {
                let state = match neighbor.state {
                    NeighborState::Incomplete => weir_api::NeighborState::Incomplete,
                    NeighborState::Failed => weir_api::NeighborState::Failed,
                    NeighborState::Reachable => weir_api::NeighborState::Reachable,
                    NeighborState::Stale => weir_api::NeighborState::Stale,
                    NeighborState::Probe => weir_api::NeighborState::Probing,
                    NeighborState::Static => weir_api::NeighborState::Static,
                };
                let known = neighbor.state.is_usable();
                let aged = neighbor.state != NeighborState::Static;
                Some(weir_api::Neighbor {
                    interface: control.name_of(place.interface)?.to_owned(),
                    address: place.address,
                    mac: known.then(|| neighbor.mac.to_string()),
                    state,
                    age: aged.then(|| now.saturating_sub(neighbor.since) as f64 / 1e9),
                })
            };
        let neighbors = control.neighbors.iter().filter_map(neighbor).collect();
        Ok(weir_api::Neighbors {
            neighbors,
            refused: control.neighbors.refused,
            evicted: control.neighbors.evicted,
        })
    }

    fn acls_where(&self, query: &weir_api::AclQuery) -> Reply<weir_api::Acls> {
        let control = self.control();
        if let Some(acl) = &query.acl
            && !control.config.access_lists.contains_key(acl)
        {
            return Err(ApiError::unknown(
                "access list",
                acl,
                control.config.access_lists.keys().map(String::as_str),
            ));
        }
        Ok(control.acls(query))
    }

    fn routes(&self) -> Reply<weir_api::Routes> {
        Ok(weir_api::Routes {
            routes: self.control().all_routes(),
        })
    }

    fn routes_where(&self, query: &RouteQuery) -> Reply<weir_api::Routes> {
        Ok(weir_api::Routes {
            routes: self.control().routes_where(query),
        })
    }

    fn ipfix(&self) -> Reply<weir_api::Ipfix> {
        Ok(self.control().ipfix_view())
    }

    fn flows_where(&self, query: &weir_api::FlowQuery) -> Reply<weir_api::Flows> {
        self.flows_view(query)
    }

    fn sflow(&self) -> Reply<weir_api::Sflow> {
        Ok(self.control().sflow_view())
    }

    fn trace(&self) -> Reply<weir_api::Trace> {
        let mut control = self.control();
        control.take_traces();
        Ok(control.trace_view())
    }

    fn why(&self, request: &weir_api::WhyRequest) -> Reply<weir_api::Why> {
        self.control().why(request)
    }

    fn trace_add(&self, request: &weir_api::TraceRequest) -> Reply<()> {
        let mut control = self.control();
        let node = match &request.node {
            Some(name) => {
                let known = control.specs.iter().map(|spec| spec.name);
                let place = control.specs.iter().position(|spec| spec.name == name);
                Some(place.ok_or_else(|| ApiError::unknown("node", name, known))? as u16)
            }
            None => None,
        };
        let interface = match &request.interface {
            Some(name) => {
                let known = control.interfaces.keys().map(String::as_str);
                let attached = control
                    .interfaces
                    .get(name)
                    .ok_or_else(|| ApiError::unknown("interface", name, known))?;
                Some(attached.index)
            }
            None => None,
        };
        control.trace.filters.push(weir_api::TraceFilter {
            request: request.clone(),
            left: request.count,
        });
        let is_port = |index| {
            let interface = control.tables.interface(index);
            interface.is_some_and(|interface| interface.kind == weir_port::interface::Kind::Port)
        };
        let wanted = weir_graph::TraceRequest {
            node,
            interface,
            received: node.is_none() && interface.is_none_or(is_port),
            count: request.count,
        };
        control
            .workers
            .iter_mut()
            .for_each(|worker| worker.tell(Command::Trace(Some(wanted))));
        Ok(())
    }

    fn trace_clear(&self) -> Reply<()> {
        let mut control = self.control();
        control
            .workers
            .iter_mut()
            .for_each(|worker| worker.tell(Command::Trace(None)));
        control.take_traces();
        control.trace.clear();
        Ok(())
    }

    fn capture(
        &self,
        request: &weir_api::CaptureRequest,
        caller: &Caller,
    ) -> Reply<weir_api::CaptureStream> {
        self.begin_capture(request, caller)
    }

    fn captures(&self) -> Reply<weir_api::Captures> {
        Ok(self.captures_view())
    }

    fn capture_end(&self, number: u64) -> Reply<weir_api::Capture> {
        self.end_capture(number)
    }

    fn totals(&self) -> Reply<weir_api::Totals> {
        Ok(self.balance())
    }

    fn system(&self) -> Reply<weir_api::System> {
        Ok(self.system_view())
    }

    fn config(&self) -> Reply<serde_json::Value> {
        let config = weir_config::without_credentials(self.control().configured());
        let config = serde_json::to_value(&config);
        config.map_err(|error| ApiError::new(weir_api::ErrorCode::Internal, error.to_string(), ""))
    }

    fn buffers(&self) -> Reply<weir_api::Buffers> {
        let control = self.control();
        let failures = control
            .interfaces
            .values()
            .filter_map(|attached| attached.port.as_ref());
        let failures: u64 = failures
            .flat_map(|port| port.counters())
            .filter(|it| it.name.starts_with("rx_no_buffer"))
            .map(|it| it.value)
            .sum();
        let pool = |(node, pool): (u32, &weir_buf::Pool)| weir_api::BufferPool {
            pool: node,
            buffers: pool.chunks() as u64,
            free: pool.usage().free as u64,
            buffer_bytes: weir_buf::STRIDE as u32,
            hugepages: pool.on_hugepages(),
            failures,
        };
        Ok(weir_api::Buffers {
            pools: control.memory.pools().map(pool).collect(),
        })
    }

    fn fib_summary(&self) -> Reply<weir_api::FibSummary> {
        Ok(self.control().fib_summary())
    }

    fn config_dump(&self) -> Reply<weir_api::ConfigDump> {
        Ok(self.dump())
    }

    fn config_schema(&self) -> Reply<serde_json::Value> {
        Ok(weir_config::schema())
    }

    fn config_check(&self, file: &weir_api::ConfigText) -> Reply<weir_api::ConfigChecked> {
        Ok(self.check(file))
    }

    fn config_plan(&self, file: &weir_api::ConfigText) -> Reply<weir_api::ConfigPlan> {
        self.plan(file)
    }

    fn config_diff(&self, request: &weir_api::DiffRequest) -> Reply<weir_api::ConfigDiff> {
        self.diff(request)
    }

    fn config_apply(
        &self,
        request: &weir_api::ApplyRequest,
        caller: &Caller,
    ) -> Reply<weir_api::Applied> {
        self.apply_file(request, caller)
    }

    fn config_confirm(&self, caller: &Caller) -> Reply<weir_api::Confirmed> {
        self.confirm(caller)
    }

    fn config_rollback(
        &self,
        request: &weir_api::RollbackRequest,
        caller: &Caller,
    ) -> Reply<weir_api::Applied> {
        self.roll_back(request, caller)
    }

    fn config_history(&self, limit: usize, before: Option<u64>) -> Reply<weir_api::History> {
        self.history_view(limit, before)
    }

    fn config_revision(&self, revision: u64) -> Reply<weir_api::RevisionText> {
        self.revision_view(revision)
    }

    fn routes_change(
        &self,
        changes: &weir_api::RouteChanges,
        caller: &Caller,
    ) -> Reply<weir_api::RoutesChanged> {
        self.change_routes(changes, caller)
    }

    fn sflow_patch(
        &self,
        patch: &weir_api::SflowPatch,
        caller: &Caller,
    ) -> Reply<weir_api::Applied> {
        self.patch_sflow(patch, caller)
    }

    fn interface_patch(
        &self,
        name: &str,
        patch: &weir_api::InterfacePatch,
        caller: &Caller,
    ) -> Reply<weir_api::Applied> {
        self.patch_interface(name, patch, caller)
    }

    fn events(&self) -> Option<weir_api::EventBus> {
        Some(self.change_manager().events().clone())
    }

    fn clear(&self, what: Clear) -> Reply<()> {
        let control = self.control();
        let mut baselines = self.baselines();
        let errors = what == Clear::Errors;
        if errors || what == Clear::Interfaces {
            for drop in control.drops() {
                baselines.drops.insert(
                    (errors, drop.worker, drop.interface, drop.place),
                    drop.count,
                );
            }
        }
        match what {
            Clear::Errors => {}
            Clear::Interfaces => {
                for attached in control.interfaces.values() {
                    baselines.interfaces.insert(
                        attached.index,
                        (
                            attached.counters.rx(),
                            attached.counters.tx(),
                            attached.counters.tx_lost(),
                        ),
                    );
                }
            }
            Clear::Runtime => {
                for (number, handle) in control.workers.iter().enumerate() {
                    baselines.turns.insert(number, handle.stats.values());
                    for (place, node) in handle.counters.nodes.iter().enumerate() {
                        baselines.nodes.insert(
                            (number, place),
                            (node.calls.get(), node.packets.get(), node.clocks.get()),
                        );
                    }
                }
                baselines.queues = crate::work::baselines(&control.workers);
                baselines.runtime_since = Some(SystemTime::now());
            }
        }
        Ok(())
    }
}

fn encapsulation_view(of: &weir_config::Encapsulation) -> weir_api::Encapsulation {
    let weir_config::Encapsulation {
        dot1q,
        dot1ad,
        inner_dot1q,
        exact_match,
    } = *of;
    weir_api::Encapsulation {
        dot1q,
        dot1ad,
        inner_dot1q,
        exact_match,
    }
}

fn interface_view(
    control: &Control,
    baselines: &Baselines,
    drops: &[Drop],
    name: &str,
    attached: &Attached,
) -> weir_api::Interface {
    let wanted = control
        .config
        .interfaces
        .get(name)
        .cloned()
        .unwrap_or_default();
    let before = baselines
        .interfaces
        .get(&attached.index)
        .copied()
        .unwrap_or_default();
    let mut by: BTreeMap<usize, u64> = BTreeMap::new();
    for drop in drops.iter().filter(|drop| drop.interface == attached.index) {
        let before = baselines
            .drops
            .get(&(false, drop.worker, drop.interface, drop.place))
            .copied()
            .unwrap_or(0);
        *by.entry(drop.place).or_default() += drop.count.saturating_sub(before);
    }
    let drops_by: Vec<_> = by
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(place, count)| {
            let (node, reason) = control.pair(place);
            weir_api::InterfaceDrop {
                node: node.to_owned(),
                reason: reason.name().to_owned(),
                count,
            }
        })
        .collect();
    let (tentative, duplicate) = control.unused_addresses(attached.index);
    let mac = control
        .tables
        .interface(attached.index)
        .map_or(attached.mac, |interface| interface.mac);
    weir_api::Interface {
        name: name.to_owned(),
        index: attached.index,
        kind: match &wanted.device {
            Some(weir_config::Device::Loopback) => weir_api::InterfaceKind::Loopback,
            Some(weir_config::Device::Bond(_)) => weir_api::InterfaceKind::Bond,
            Some(weir_config::Device::Vxlan(_)) => weir_api::InterfaceKind::Vxlan,
            Some(weir_config::Device::SubInterface(_)) => weir_api::InterfaceKind::SubInterface,
            Some(weir_config::Device::Pseudowire) => weir_api::InterfaceKind::Pseudowire,
            _ => weir_api::InterfaceKind::Port,
        },
        parent: wanted
            .bond
            .clone()
            .or(wanted.sub_interface().map(|sub| sub.parent.clone())),
        device: attached.port.as_ref().map(|port| port.device().to_owned()),
        driver: wanted
            .device
            .as_ref()
            .map(|device| device.driver().to_owned()),
        mac: Some(mac.to_string()),
        mtu: u32::from(wanted.mtu),
        admin: (wanted.state == AdminState::Up).into(),
        link: attached.link.up.into(),
        speed: attached.link.speed,
        description: wanted.description.clone(),
        addresses: control.all_addresses(attached.index, &wanted),
        tentative,
        duplicate,
        vrf: wanted.vrf.clone(),
        unnumbered: wanted.unnumbered.clone(),
        l2xc: wanted.l2xc.clone(),
        encapsulation: wanted
            .sub_interface()
            .map(|sub| encapsulation_view(&sub.encapsulation)),
        tag_rewrite: wanted
            .sub_interface()
            .and_then(|sub| sub.tag_rewrite)
            .map(|rewrite| rewrite.to_string()),
        bridge_domain: control
            .config
            .bridges
            .iter()
            .find(|(_, bridge)| bridge.interfaces.contains(name))
            .map(|(name, _)| name.clone()),
        mpls: wanted.mpls,
        urpf: wanted.urpf.map(|urpf| urpf.to_string()),
        sflow: wanted.sflow,
        rx: traffic(attached.counters.rx(), before.0),
        tx: traffic(attached.counters.tx(), before.1),
        rx_errors: missed(attached),
        tx_errors: attached.counters.tx_lost().saturating_sub(before.2),
        drops: drops_by.iter().map(|drop| drop.count).sum(),
        drops_by,
    }
}
