//! The daemon as the API sees it: the router's own API server answers for it, with the same endpoints, metrics and
//! command line (`weir show interface --socket …`).
//!
//! Counters are read from the pinned maps by the API's threads. Changes go to the daemon's thread, one at a time, and the
//! caller waits for the reply. What a router has and this host path lacks is reported as not available.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_api::{
    AclAction, AclQuery, AclTerm, Acls, ApiError, Applied, ApplyRequest, Caller, Clear,
    ConfigChecked, ConfigDump, ConfigPlan, ConfigText, Confirmed, DropCounter, ErrorCode, Errors,
    Hardware, History, Interface, InterfaceDrop, InterfaceKind, Interfaces, L2Station, L2fib,
    L2fibQuery, Neighbors, RevisionText, RollbackRequest, Router, Routes, Runtime, RxPlacement,
    Severity, Sflow, SflowCollector, SflowDirection, SflowDrop, SflowEncoding, SflowInterface,
    SflowSettings, SflowWorker, Totals, Trace, TraceRequest, Traffic, UpDown, Version,
};
use weir_telemetry::agent::{AgentStats, InterfaceReport, PathLookup, Reports, SampledPath};

use crate::changes::{findings, steps};
use crate::config::{self, Config};
use crate::daemon::Folders;
use crate::reason;
use crate::show::{self, Balance, PortView};
use crate::state::Link;
use crate::telemetry::STAGES;

/// Time within which the daemon's thread makes a change.
const PATIENCE: Duration = Duration::from_secs(60);

type Answer<T> = SyncSender<Result<T, ApiError>>;

/// What the daemon's thread is asked to do.
pub(crate) enum Command {
    Apply(ApplyRequest, String, Answer<Applied>),
    Confirm(Answer<Confirmed>),
    Rollback(RollbackRequest, String, Answer<Applied>),
    History(usize, Option<u64>, Answer<History>),
    Revision(u64, Answer<RevisionText>),
}

/// What the daemon's thread publishes.
#[derive(Default)]
pub(crate) struct Published {
    pub(crate) text: String,
    pub(crate) config: Option<Config>,
    pub(crate) links: BTreeMap<String, Link>,
    pub(crate) sflow: AgentStats,
    /// Counters of a moment ago, for the agent.
    pub(crate) ports: Vec<PortView>,
}

/// The daemon, from the API's threads and the sFlow agent's.
pub(crate) struct Host {
    folders: Folders,
    commands: Mutex<Sender<Command>>,
    published: Mutex<Published>,
    started: (Instant, u64),
}

impl Host {
    pub(crate) fn new(folders: Folders, commands: Sender<Command>) -> Arc<Host> {
        Arc::new(Host {
            folders,
            commands: Mutex::new(commands),
            published: Mutex::default(),
            started: (Instant::now(), crate::changes::now_unix_ms() / 1000),
        })
    }

    pub(crate) fn published(&self) -> MutexGuard<'_, Published> {
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a command to the daemon's thread and waits.
    fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T, ApiError> {
        let gone = || {
            ApiError::new(
                ErrorCode::Unavailable,
                "the daemon does not answer",
                "try again",
            )
        };
        let (answer, reply) = sync_channel(1);
        self.commands
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send(command(answer))
            .map_err(|_| gone())?;
        reply.recv_timeout(PATIENCE).map_err(|_| gone())?
    }

    fn config_now(&self) -> Result<Config, ApiError> {
        self.published()
            .config
            .clone()
            .ok_or_else(|| ApiError::new(ErrorCode::Unavailable, "the daemon starts", "try again"))
    }

    fn ports(&self) -> Result<Vec<PortView>, ApiError> {
        show::ports(&self.folders).map_err(internal)
    }
}

fn internal(error: crate::Error) -> ApiError {
    ApiError::new(ErrorCode::Internal, error.to_string(), "")
}

fn dropped(port: &PortView) -> u64 {
    port.drops.iter().map(|it| it.packets).sum()
}

/// How much an operator should care about a reason.
fn severity(reason: &reason::Reason) -> Severity {
    match reason.reported.severity() {
        weir_graph::Severity::Info => Severity::Info,
        weir_graph::Severity::Warning => Severity::Warning,
        weir_graph::Severity::Error => Severity::Error,
    }
}

impl Router for Host {
    fn version(&self) -> Result<Version, ApiError> {
        Ok(Version {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: None,
            pid: std::process::id(),
            started: self.started.1,
            uptime: self.started.0.elapsed().as_secs(),
            workers: 0,
            config_file: None,
        })
    }

    fn interfaces(&self) -> Result<Interfaces, ApiError> {
        let ports = self.ports()?;
        let config = self.config_now()?;
        let published = self.published();
        let interfaces = config.interfaces().map(|(name, settings, bond)| {
            let counters = ports.iter().find(|port| port.name == name);
            let none = PortView::default();
            let it = counters.unwrap_or(&none);
            let link = published.links.get(name);
            Interface {
                name: name.to_owned(),
                index: link.map_or(0, |link| link.ifindex),
                kind: InterfaceKind::Port,
                parent: bond.map(str::to_owned),
                device: Some(name.to_owned()),
                driver: Some("xdp".to_owned()),
                mac: link
                    .and_then(|link| link.mac)
                    .map(|mac| config::show_mac(&mac)),
                mtu: link.map_or(0, |link| link.mtu),
                admin: UpDown::Up,
                link: link.is_some_and(|link| link.running).into(),
                speed: 0,
                description: None,
                addresses: settings.addresses.clone(),
                tentative: Vec::new(),
                duplicate: Vec::new(),
                vrf: None,
                unnumbered: None,
                l2xc: None,
                encapsulation: None,
                tag_rewrite: None,
                bridge_domain: None,
                mpls: false,
                urpf: None,
                sflow: settings.sample,
                rx: traffic(it.in_packets, it.in_bytes, it.in_multicast, it.in_broadcast),
                tx: traffic(
                    it.out_packets,
                    it.out_bytes,
                    it.out_multicast,
                    it.out_broadcast,
                ),
                rx_errors: 0,
                tx_errors: 0,
                drops: dropped(it),
                drops_by: it
                    .drops
                    .iter()
                    .map(|drop| InterfaceDrop {
                        node: "xdp".to_owned(),
                        reason: drop.reason.to_owned(),
                        count: drop.packets,
                    })
                    .collect(),
            }
        });
        Ok(Interfaces {
            interfaces: interfaces.collect(),
        })
    }

    fn hardware(&self) -> Result<Hardware, ApiError> {
        Ok(Hardware::default())
    }

    fn rx_placement(&self) -> Result<RxPlacement, ApiError> {
        Ok(RxPlacement::default())
    }

    fn runtime(&self) -> Result<Runtime, ApiError> {
        Ok(Runtime {
            seconds: self.started.0.elapsed().as_secs_f64(),
            ..Runtime::default()
        })
    }

    fn errors(&self) -> Result<Errors, ApiError> {
        let mut errors = Vec::new();
        for port in self.ports()? {
            for drop in &port.drops {
                let Some(why) = reason::ALL.iter().find(|it| it.name == drop.reason) else {
                    continue;
                };
                errors.push(DropCounter {
                    worker: None,
                    node: "xdp".to_owned(),
                    reason: why.name.to_owned(),
                    severity: severity(why),
                    sentence: why.text.to_owned(),
                    interface: Some(port.name.clone()),
                    count: drop.packets,
                });
            }
        }
        Ok(Errors { errors })
    }

    fn l2fib_where(&self, query: &L2fibQuery) -> Result<L2fib, ApiError> {
        let stations = show::fdb(&self.folders).map_err(internal)?;
        let stations = stations.into_iter().map(|it| L2Station {
            bridge: format!("vlan{}", it.vlan),
            mac: it.mac,
            interface: it.port,
            is_static: it.is_static,
            age: it.age.map(|age| age as u32),
        });
        Ok(query.narrow(L2fib {
            stations: stations.collect(),
        }))
    }

    fn acls_where(&self, query: &AclQuery) -> Result<Acls, ApiError> {
        let mut terms: Vec<AclTerm> = show::acls(&self.folders)
            .map_err(internal)?
            .into_iter()
            .filter(|it| query.acl.as_ref().is_none_or(|name| *name == it.acl))
            .map(|it| AclTerm {
                acl: it.acl,
                term: it.rule,
                action: match &it.text {
                    Some(rule) if rule.permit => AclAction::Permit,
                    _ => AclAction::Deny,
                },
                asks: it
                    .text
                    .as_ref()
                    .map_or_else(|| "what no rule matches".to_owned(), ToString::to_string),
                description: None,
                packets: it.packets,
                bytes: it.bytes,
            })
            .filter(|it| {
                query
                    .after
                    .as_ref()
                    .is_none_or(|after| (&it.acl, it.term) > (&after.acl, after.term))
            })
            .collect();
        if query.most > 0 {
            terms.truncate(query.most);
        }
        Ok(Acls {
            bindings: Vec::new(),
            terms,
        })
    }

    fn neighbors(&self) -> Result<Neighbors, ApiError> {
        Ok(Neighbors::default())
    }

    fn routes(&self) -> Result<Routes, ApiError> {
        Ok(Routes::default())
    }

    fn sflow(&self) -> Result<Sflow, ApiError> {
        let config = self.config_now()?;
        let stats = self.published().sflow.clone();
        let links = self.published().links.clone();
        Ok(sflow(&config, &links, &stats))
    }

    fn trace(&self) -> Result<Trace, ApiError> {
        Err(ApiError::not_available(
            "the trace over the API (`weir xdp trace` has one)",
        ))
    }

    fn trace_add(&self, _request: &TraceRequest) -> Result<(), ApiError> {
        self.trace().map(drop)
    }

    fn trace_clear(&self) -> Result<(), ApiError> {
        self.trace().map(drop)
    }

    fn totals(&self) -> Result<Totals, ApiError> {
        let ports = self.ports()?;
        let sum = Balance::of(&ports);
        let mut drops = BTreeMap::new();
        for port in &ports {
            for drop in &port.drops {
                *drops.entry(drop.reason.to_owned()).or_insert(0) += drop.packets;
            }
        }
        // Copies that were not for their port.
        if sum.filtered > 0 {
            drops.insert("filtered-copy".to_owned(), sum.filtered);
        }
        Ok(Totals {
            packets_in: sum.input,
            packets_out: sum.output,
            originated: 0,
            replicated: sum.replicated.max(0) as u64,
            consumed: sum.kernel,
            held: 0,
            drops,
        })
    }

    fn config(&self) -> Result<serde_json::Value, ApiError> {
        serde_json::to_value(self.config_now()?)
            .map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string(), ""))
    }

    fn clear(&self, _what: Clear) -> Result<(), ApiError> {
        Err(ApiError::not_available("setting counters to 0"))
    }

    fn config_dump(&self) -> Result<ConfigDump, ApiError> {
        Ok(ConfigDump {
            yaml: self.published().text.clone(),
        })
    }

    fn config_check(&self, file: &ConfigText) -> Result<ConfigChecked, ApiError> {
        Ok(ConfigChecked::new(
            match config::check(file.file_name(), file.yaml.as_bytes()) {
                Ok(_) => Vec::new(),
                Err(all) => findings(all),
            },
        ))
    }

    fn config_plan(&self, file: &ConfigText) -> Result<ConfigPlan, ApiError> {
        let new = config::check(file.file_name(), file.yaml.as_bytes())
            .map_err(|all| ApiError::invalid(findings(all)))?;
        let old = self.config_now()?;
        let without_device = new
            .interfaces()
            .filter(|(name, ..)| !self.published().links.contains_key(*name))
            .map(|(name, ..)| name.to_owned())
            .collect();
        Ok(ConfigPlan {
            findings: Vec::new(),
            steps: steps(&old, &new),
            without_device,
            needs_restart: needs_restart(&old, &new),
            peering: Vec::new(),
        })
    }

    fn config_apply(&self, request: &ApplyRequest, caller: &Caller) -> Result<Applied, ApiError> {
        let author = request.author.clone().unwrap_or_else(|| caller.author());
        self.ask(|answer| Command::Apply(request.clone(), author, answer))
    }

    fn config_confirm(&self, _caller: &Caller) -> Result<Confirmed, ApiError> {
        self.ask(Command::Confirm)
    }

    fn config_rollback(
        &self,
        request: &RollbackRequest,
        caller: &Caller,
    ) -> Result<Applied, ApiError> {
        let author = request.author.clone().unwrap_or_else(|| caller.author());
        self.ask(|answer| Command::Rollback(request.clone(), author, answer))
    }

    fn config_history(&self, limit: usize, before: Option<u64>) -> Result<History, ApiError> {
        self.ask(|answer| Command::History(limit, before, answer))
    }

    fn config_revision(&self, revision: u64) -> Result<RevisionText, ApiError> {
        self.ask(|answer| Command::Revision(revision, answer))
    }
}

/// Settings that a running daemon does not take.
pub(crate) fn needs_restart(old: &Config, new: &Config) -> Vec<String> {
    let mut keys = Vec::new();
    if old.mode != new.mode {
        keys.push("mode".to_owned());
    }
    if old.metrics != new.metrics {
        keys.push("api.metrics".to_owned());
    }
    keys
}

fn traffic(packets: u64, bytes: u64, multicast: u64, broadcast: u64) -> Traffic {
    Traffic {
        packets,
        bytes,
        unicast: packets.saturating_sub(multicast).saturating_sub(broadcast),
        multicast,
        broadcast,
    }
}

fn sflow(config: &Config, links: &BTreeMap<String, Link>, stats: &AgentStats) -> Sflow {
    let settings = config.sflow.as_ref();
    let name_of = |ifindex: u32| {
        links
            .iter()
            .find(|(_, link)| link.ifindex == ifindex)
            .map(|(name, _)| name.clone())
    };
    Sflow {
        settings: SflowSettings {
            sampling_rate: settings.map_or(0, |it| it.rate),
            polling_interval: settings.map_or(0, |it| it.polling_interval),
            header_bytes: 128,
            direction: SflowDirection::Rx,
            drop_limit: settings.map_or(0, |it| it.drop_limit),
            encoding: SflowEncoding::Expanded,
            datagram_bytes: 1400,
            agent_sub_id: 0,
            os_index: true,
            if_offset: 0,
        },
        agent: settings.map(|it| it.agent),
        collectors: stats
            .collectors
            .iter()
            .map(|it| SflowCollector {
                host: it.target.host.clone(),
                address: it.address.map(|address| address.ip()),
                port: it.target.port,
                namespace: None,
                source: None,
                dscp: 0,
                dev: None,
                table: None,
                through_host: true,
                drops: it.drops,
                announced: false,
                sent: it.sent,
                errors: it.errors,
                last_error: it.last_error.clone(),
            })
            .collect(),
        discovery: None,
        kernel: None,
        workers: vec![SflowWorker {
            worker: 0,
            samples_taken: stats.samples_sent.iter().sum::<u64>() + stats.samples_dropped,
            samples_sent: stats.samples_sent.iter().sum(),
            samples_dropped: stats.samples_dropped,
        }],
        interfaces: stats
            .interfaces
            .iter()
            .map(|it| SflowInterface {
                interface: name_of(it.ifindex).unwrap_or_else(|| it.ifindex.to_string()),
                index: it.ifindex,
                reported_index: it.ifindex,
                sampling_rate: settings.map_or(0, |it| it.rate),
                direction: SflowDirection::Rx,
                header_bytes: 128,
                polling_interval: settings.map_or(0, |it| it.polling_interval),
                pool: it.pool,
                samples: it.samples,
                dropped: 0,
                workers: Vec::new(),
            })
            .collect(),
        samples_sent: stats.samples_sent.iter().sum(),
        samples_lost: stats.samples_lost,
        samples_incomplete: stats.samples_incomplete,
        drops: stats
            .discards
            .iter()
            .map(|it| SflowDrop {
                interface: name_of(it.ifindex),
                node: it.node.to_owned(),
                reason: it.reason.to_owned(),
                code: it.code,
                standard: String::new(),
                dropped: it.reported,
                reported: it.reported,
                reported_as: Vec::new(),
            })
            .collect(),
        discards_sent: stats.discards_sent,
        discards_dropped: stats.discards_dropped,
        datagrams: stats.datagrams,
    }
}

/// Tags of a sampled frame's two ports are not reported; the header of the sample has the tag of arrival.
struct Ways;

impl PathLookup for Ways {
    fn way(&self, asked: &weir_telemetry::agent::Asked<'_>) -> SampledPath {
        SampledPath {
            input: asked.input,
            output: asked.departure.map_or(0, |(port, _)| port),
            ..SampledPath::default()
        }
    }
}

impl Reports for Host {
    fn interfaces(&self) -> Vec<InterfaceReport> {
        let Ok(config) = self.config_now() else {
            return Vec::new();
        };
        let published = self.published();
        let ports = &published.ports;
        let report = |name: &str, sampled: bool| {
            let it = ports.iter().find(|port| port.name == name)?;
            let link = published.links.get(name)?;
            let rx = traffic(it.in_packets, it.in_bytes, it.in_multicast, it.in_broadcast);
            let tx = traffic(
                it.out_packets,
                it.out_bytes,
                it.out_multicast,
                it.out_broadcast,
            );
            Some(InterfaceReport {
                ifindex: link.ifindex,
                made: u64::from(link.ifindex),
                name: name.to_owned(),
                sampled,
                mac: link.mac,
                admin_up: true,
                oper_up: link.running,
                in_octets: rx.bytes,
                in_unicast: rx.unicast,
                in_multicast: rx.multicast,
                in_broadcast: rx.broadcast,
                in_discards: dropped(it),
                out_octets: tx.bytes,
                out_unicast: tx.unicast,
                out_multicast: tx.multicast,
                out_broadcast: tx.broadcast,
                ..InterfaceReport::default()
            })
        };
        config
            .interfaces()
            .filter_map(|(name, settings, _)| report(name, settings.sample))
            .collect()
    }

    fn with_ways(&self, work: &mut dyn FnMut(&dyn PathLookup)) {
        work(&Ways);
    }

    fn dropped(&self) -> u64 {
        self.published().ports.iter().map(dropped).sum()
    }

    fn node(&self, number: u16) -> &'static str {
        STAGES
            .get(usize::from(number))
            .copied()
            .unwrap_or(STAGES[0])
    }
}
