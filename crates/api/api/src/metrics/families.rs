//! The table of metrics: each with its name, its meaning, and where its samples come from.
//!
//! Names are `weir_` with what is counted and its unit; those of the process are the ones that
//! all programs have. Labels are the names of the configuration.

use std::collections::BTreeMap;

use crate::metrics::Snapshot;
use crate::metrics::write::Samples;
use crate::{
    Bond, BondMember, Component, FlowWorker, Health, Interface, IpfixCollector, LinuxBmp,
    LinuxFeed, LinuxFpm, LinuxInterface, LinuxPunt, NodeRuntime, Problem, ProblemSeverity,
    SflowInterface, SflowShare, Traffic, UpDown, WorkerRuntime,
};

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name, without the ending of samples.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: MetricKind,
    /// Its unit, which its name ends in.
    pub unit: Option<&'static str>,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it means, in one sentence.
    pub help: &'static str,
    /// Writes its samples.
    pub(super) fill: Fill,
}

type Fill = fn(&Snapshot, &mut Samples);

/// The kinds of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows, or starts again at 0.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Always 1; its labels say something.
    Info,
}

const fn family(
    kind: MetricKind,
    name: &'static str,
    unit: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    fill: Fill,
) -> Metric {
    let unit = if unit.is_empty() { None } else { Some(unit) };
    Metric {
        name,
        kind,
        unit,
        labels,
        help,
        fill,
    }
}

const fn counter(
    name: &'static str,
    unit: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    fill: Fill,
) -> Metric {
    family(MetricKind::Counter, name, unit, labels, help, fill)
}

const fn gauge(
    name: &'static str,
    unit: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    fill: Fill,
) -> Metric {
    family(MetricKind::Gauge, name, unit, labels, help, fill)
}

const fn info(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    fill: Fill,
) -> Metric {
    family(MetricKind::Info, name, "", labels, help, fill)
}

const OF_MEMBER: &[&str] = &["bond", "interface"];
const OF_INTERFACE: &[&str] = &["interface"];
const OF_DIRECTION: &[&str] = &["interface", "direction"];
const OF_NODE: &[&str] = &["worker", "node"];
const OF_WORKER: &[&str] = &["worker"];
const OF_WORKER_AND_REASON: &[&str] = &["worker", "reason"];
const OF_POOL: &[&str] = &["pool"];
const OF_COLLECTOR: &[&str] = &["collector"];
/// One address may be spoken to in several ways.
const OF_FLOW_COLLECTOR: &[&str] = &["collector", "transport"];
const OF_SHARE: &[&str] = &["interface", "worker"];
const OF_PUNT: &[&str] = &["interface", "class"];
const OF_DROP: &[&str] = &["interface", "node", "reason", "standard"];

/// All metrics, in the order of the text.
pub const METRICS: &[Metric] = &[
    info(
        "weir_build",
        &["version", "commit"],
        "The program that runs.",
        |all, out| {
            let version = &all.version;
            out.put(
                [
                    &version.version,
                    &version.commit.as_deref().unwrap_or_default(),
                ],
                true,
            );
        },
    ),
    gauge(
        "weir_start_time_seconds",
        "seconds",
        &[],
        "When the router started, in seconds since 1970.",
        |all, out| {
            out.put([], all.version.started);
        },
    ),
    gauge("weir_workers", "", &[], "Workers.", |all, out| {
        out.put([], all.version.workers)
    }),
    gauge(
        "weir_degraded",
        "",
        &[],
        "Whether something that the configuration asks for does not work now: 1, or 0.",
        |all, out| {
            if let Some(system) = &all.system {
                out.put([], u64::from(system.state == Health::Degraded));
            }
        },
    ),
    gauge(
        "weir_problems",
        "",
        &["component", "severity"],
        "Problems as `weir show system` lists them.",
        |all, out| {
            let Some(system) = &all.system else { return };
            for component in Component::ALL {
                for severity in [ProblemSeverity::Degraded, ProblemSeverity::Notice] {
                    let these =
                        |it: &&Problem| it.component == component && it.severity == severity;
                    let count = system.problems.iter().filter(these).count() as u64;
                    out.put([&component.word(), &severity.to_string().as_str()], count);
                }
            }
        },
    ),
    // Interfaces.
    info(
        "weir_interface",
        &[
            "interface",
            "index",
            "kind",
            "parent",
            "device",
            "driver",
            "mac",
            "description",
        ],
        "What an interface is.",
        |all, out| {
            for it in &all.interfaces.interfaces {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                out.put(
                    [
                        &it.name,
                        &it.index,
                        &it.kind,
                        &text(&it.parent),
                        &text(&it.device),
                        &text(&it.driver),
                        &text(&it.mac),
                        &text(&it.description),
                    ],
                    true,
                );
            }
        },
    ),
    gauge(
        "weir_interface_admin_up",
        "",
        OF_INTERFACE,
        "1 when the interface is wanted up.",
        |all, out| {
            each(all, |it| out.put([&it.name], it.admin == UpDown::Up));
        },
    ),
    gauge(
        "weir_interface_link_up",
        "",
        OF_INTERFACE,
        "1 when the interface can carry packets.",
        |all, out| {
            each(all, |it| out.put([&it.name], it.link == UpDown::Up));
        },
    ),
    gauge(
        "weir_interface_speed_bytes_per_second",
        "bytes_per_second",
        OF_INTERFACE,
        "The interface's speed in each direction; 0 = unknown.",
        |all, out| each(all, |it| out.put([&it.name], it.speed / 8)),
    ),
    gauge(
        "weir_interface_mtu_bytes",
        "bytes",
        OF_INTERFACE,
        "The largest IP packet that leaves the interface.",
        |all, out| {
            each(all, |it| out.put([&it.name], it.mtu));
        },
    ),
    counter(
        "weir_interface_packets",
        "packets",
        &["interface", "direction", "cast"],
        "Packets received (`rx`) and sent (`tx`), by what they are addressed to: `unicast`, `multicast`, `broadcast`.",
        |all, out| {
            both(all, |it, direction, traffic| {
                out.put([&it.name, &direction, &"unicast"], traffic.unicast);
                out.put([&it.name, &direction, &"multicast"], traffic.multicast);
                out.put([&it.name, &direction, &"broadcast"], traffic.broadcast);
            });
        },
    ),
    counter(
        "weir_interface_bytes",
        "bytes",
        OF_DIRECTION,
        "Bytes of frames received and sent, FCS not counted.",
        |all, out| {
            both(all, |it, direction, traffic| {
                out.put([&it.name, &direction], traffic.bytes)
            });
        },
    ),
    counter(
        "weir_interface_errors",
        "",
        OF_DIRECTION,
        "Frames lost or broken before the router saw them (`rx`), or that could not be sent (`tx`).",
        |all, out| {
            each(all, |it| {
                out.put([&it.name, &"rx"], it.rx_errors);
                out.put([&it.name, &"tx"], it.tx_errors);
            });
        },
    ),
    counter(
        "weir_interface_dropped_packets",
        "packets",
        OF_INTERFACE,
        "Packets dropped that were received on the interface, or were to leave it.",
        |all, out| each(all, |it| out.put([&it.name], it.drops)),
    ),
    // Ports.
    info(
        "weir_port",
        &["interface", "device", "driver", "mode"],
        "What an interface's port is.",
        |all, out| {
            for it in &all.hardware.ports {
                out.put([&it.interface, &it.device, &it.driver, &it.mode], true);
            }
        },
    ),
    gauge(
        "weir_port_queues",
        "",
        OF_DIRECTION,
        "Open queues of the port.",
        |all, out| {
            for it in &all.hardware.ports {
                out.put([&it.interface, &"rx"], it.rx_queues);
                out.put([&it.interface, &"tx"], it.tx_queues);
            }
        },
    ),
    counter(
        "weir_port_statistics",
        "",
        &["interface", "source", "statistic"],
        "What the port's driver, kernel socket, network device and ethtool count, with their own names.",
        |all, out| {
            for port in &all.hardware.ports {
                for it in &port.counters {
                    out.put([&port.interface, &it.source, &it.name], it.value);
                }
            }
        },
    ),
    // Drops and the balance.
    counter(
        "weir_dropped_packets",
        "packets",
        &["interface", "node", "reason", "severity"],
        "Packets dropped, by where they came in, the node that dropped them, and why; those of the router itself have no interface.",
        |all, out| {
            for it in crate::endpoints::summed_over_workers(all.errors.clone()).errors {
                out.put(
                    [
                        &it.interface.unwrap_or_default(),
                        &it.node,
                        &it.reason,
                        &it.severity,
                    ],
                    it.count,
                );
            }
        },
    ),
    counter(
        "weir_router_received_packets",
        "packets",
        &[],
        "Packets received on all ports since the start.",
        |all, out| {
            out.put([], all.totals.packets_in);
        },
    ),
    counter(
        "weir_router_sent_packets",
        "packets",
        &[],
        "Packets handed to all ports since the start.",
        |all, out| {
            out.put([], all.totals.packets_out);
        },
    ),
    counter(
        "weir_router_originated_packets",
        "packets",
        &[],
        "Packets that nodes made since the start.",
        |all, out| {
            out.put([], all.totals.originated);
        },
    ),
    counter(
        "weir_router_replicated_packets",
        "packets",
        &[],
        "Copies made for flooding since the start.",
        |all, out| {
            out.put([], all.totals.replicated);
        },
    ),
    counter(
        "weir_router_consumed_packets",
        "packets",
        &[],
        "Packets that ended in the router as they should.",
        |all, out| {
            out.put([], all.totals.consumed);
        },
    ),
    gauge(
        "weir_router_held_packets",
        "packets",
        &[],
        "Packets that wait now, for example for an ARP answer.",
        |all, out| {
            out.put([], all.totals.held);
        },
    ),
    counter(
        "weir_router_dropped_packets",
        "packets",
        &["reason"],
        "Packets dropped since the start; no `clear` reaches it.",
        |all, out| {
            for (reason, count) in &all.totals.drops {
                out.put([reason], *count);
            }
        },
    ),
    // Workers and nodes.
    gauge(
        "weir_tsc_frequency_hertz",
        "hertz",
        &[],
        "Clocks a second of the processor's time stamp counter.",
        |all, out| {
            out.put([], all.runtime.tsc_mhz * 1e6);
        },
    ),
    info(
        "weir_worker",
        &["worker", "core", "idle"],
        "What a worker is.",
        |all, out| {
            for it in &all.runtime.workers {
                out.put(
                    [
                        &it.worker,
                        &it.core.map(|core| core.to_string()).unwrap_or_default(),
                        &it.idle,
                    ],
                    true,
                );
            }
        },
    ),
    counter(
        "weir_worker_turns",
        "",
        OF_WORKER,
        "Turns of a worker's loop.",
        |all, out| {
            all.runtime
                .workers
                .iter()
                .for_each(|it| out.put([&it.worker], it.turns));
        },
    ),
    counter(
        "weir_worker_busy_turns",
        "",
        OF_WORKER,
        "Turns of a worker's loop that had packets.",
        |all, out| {
            all.runtime
                .workers
                .iter()
                .for_each(|it| out.put([&it.worker], it.busy_turns));
        },
    ),
    counter(
        "weir_node_vectors",
        "vectors",
        OF_NODE,
        "Vectors that a node was handed.",
        |all, out| {
            nodes(all, |worker, node| {
                out.put([&worker.worker, &node.name], node.calls)
            });
        },
    ),
    counter(
        "weir_node_packets",
        "packets",
        OF_NODE,
        "Packets that a node was handed.",
        |all, out| {
            nodes(all, |worker, node| {
                out.put([&worker.worker, &node.name], node.packets)
            });
        },
    ),
    counter(
        "weir_node_clocks",
        "clocks",
        OF_NODE,
        "Clocks of the time stamp counter that a node took.",
        |all, out| {
            nodes(all, |worker, node| {
                out.put([&worker.worker, &node.name], node.clocks)
            });
        },
    ),
    // sFlow.
    gauge(
        "weir_sflow_sampling_rate",
        "",
        &[],
        "One packet in this many is sampled; 0 = none.",
        |all, out| {
            out.put([], all.sflow.settings.sampling_rate);
        },
    ),
    gauge(
        "weir_sflow_polling_interval_seconds",
        "seconds",
        &[],
        "Time between two reports of counters; 0 = never.",
        |all, out| {
            out.put([], all.sflow.settings.polling_interval);
        },
    ),
    gauge(
        "weir_sflow_header_bytes",
        "bytes",
        &[],
        "Bytes of each sampled packet that are reported.",
        |all, out| {
            out.put([], all.sflow.settings.header_bytes);
        },
    ),
    counter(
        "weir_sflow_taken_samples",
        "samples",
        OF_WORKER,
        "Samples that a worker took, those dropped after included.",
        |all, out| {
            all.sflow
                .workers
                .iter()
                .for_each(|it| out.put([&it.worker], it.samples_taken));
        },
    ),
    counter(
        "weir_sflow_dropped_samples",
        "samples",
        OF_WORKER,
        "Samples that found their worker's ring full.",
        |all, out| {
            all.sflow
                .workers
                .iter()
                .for_each(|it| out.put([&it.worker], it.samples_dropped));
        },
    ),
    counter(
        "weir_sflow_sent_samples",
        "samples",
        OF_WORKER,
        "Samples of a worker that the agent put into datagrams.",
        |all, out| {
            all.sflow
                .workers
                .iter()
                .for_each(|it| out.put([&it.worker], it.samples_sent));
        },
    ),
    counter(
        "weir_sflow_lost_samples",
        "samples",
        &[],
        "Samples and counter records that could not be encoded or sent.",
        |all, out| {
            out.put([], all.sflow.samples_lost);
        },
    ),
    counter(
        "weir_sflow_incomplete_samples",
        "samples",
        &[],
        "Samples sent without an output.",
        |all, out| {
            out.put([], all.sflow.samples_incomplete);
        },
    ),
    counter(
        "weir_sflow_discards_reported_packets",
        "packets",
        &[],
        "Drop notifications that were sent.",
        |all, out| {
            out.put([], all.sflow.discards_sent);
        },
    ),
    counter(
        "weir_sflow_discards_unreported_packets",
        "packets",
        &[],
        "Discarded packets beyond the limit of notifications.",
        |all, out| {
            out.put([], all.sflow.discards_dropped);
        },
    ),
    counter(
        "weir_sflow_datagrams",
        "",
        &[],
        "Datagrams that the agent made.",
        |all, out| out.put([], all.sflow.datagrams),
    ),
    counter(
        "weir_sflow_collector_datagrams",
        "",
        OF_COLLECTOR,
        "Datagrams that the kernel took for a collector.",
        |all, out| {
            all.sflow
                .collectors
                .iter()
                .for_each(|it| out.put([&it.place()], it.sent));
        },
    ),
    counter(
        "weir_sflow_collector_errors",
        "",
        OF_COLLECTOR,
        "Datagrams to a collector that were refused.",
        |all, out| {
            all.sflow
                .collectors
                .iter()
                .for_each(|it| out.put([&it.place()], it.errors));
        },
    ),
    gauge(
        "weir_sflow_collector_trouble",
        "",
        OF_COLLECTOR,
        "1 while datagrams to a collector are lost.",
        |all, out| {
            all.sflow
                .collectors
                .iter()
                .for_each(|it| out.put([&it.place()], it.last_error.is_some()));
        },
    ),
    // Flows.
    gauge(
        "weir_flow_resident_flows",
        "flows",
        OF_WORKER,
        "Flows that are in a worker's table.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.resident));
        },
    ),
    counter(
        "weir_flow_metered_packets",
        "packets",
        OF_WORKER,
        "Packets that were metered.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.metered_packets));
        },
    ),
    counter(
        "weir_flow_metered_bytes",
        "bytes",
        OF_WORKER,
        "Octets of metered packets.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.metered_octets));
        },
    ),
    counter(
        "weir_flow_begun_flows",
        "flows",
        OF_WORKER,
        "Flows that were begun.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.begun));
        },
    ),
    counter(
        "weir_flow_exported_flows",
        "flows",
        OF_WORKER_AND_REASON,
        "Records of flows that ended, by flowEndReason.",
        |all, out| {
            for it in flow_workers(all) {
                let ended = [
                    ("idle", it.ended_idle),
                    ("active", it.ended_active),
                    ("end", it.ended_seen),
                    ("forced", it.ended_forced),
                    ("resources", it.ended_resources),
                ];
                ended
                    .into_iter()
                    .for_each(|(reason, count)| out.put([&it.worker, &reason], count));
            }
        },
    ),
    counter(
        "weir_flow_exported_packets",
        "packets",
        OF_WORKER,
        "Packets in exported records.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.exported.packets));
        },
    ),
    counter(
        "weir_flow_exported_bytes",
        "bytes",
        OF_WORKER,
        "Octets in exported records.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.exported.octets));
        },
    ),
    counter(
        "weir_flow_unexported_flows",
        "flows",
        OF_WORKER,
        "Flows that made room while the ring to the exporter was full.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.unexported.flows));
        },
    ),
    counter(
        "weir_flow_unexported_packets",
        "packets",
        OF_WORKER,
        "Packets of flows that made room and are in no record.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.unexported.packets));
        },
    ),
    counter(
        "weir_flow_unexported_bytes",
        "bytes",
        OF_WORKER,
        "Octets of flows that made room and are in no record.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.unexported.octets));
        },
    ),
    counter(
        "weir_flow_ignored_packets",
        "packets",
        OF_WORKER,
        "Packets that were not metered since there was no table.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.ignored_packets));
        },
    ),
    counter(
        "weir_flow_ignored_bytes",
        "bytes",
        OF_WORKER,
        "Octets of packets that were not metered since there was no table.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.ignored_octets));
        },
    ),
    counter(
        "weir_flow_passed_over_packets",
        "packets",
        OF_WORKER,
        "Packets that sampling passed over.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.passed_over));
        },
    ),
    gauge(
        "weir_flow_waiting_packets",
        "packets",
        OF_WORKER,
        "Packets that wait, metered when it is known where they go.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.waiting));
        },
    ),
    counter(
        "weir_flow_long_way_packets",
        "packets",
        OF_WORKER,
        "Packets whose flow was not found at the first look.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.long_ways));
        },
    ),
    counter(
        "weir_flow_probes",
        "",
        OF_WORKER,
        "Buckets that were looked at for those packets.",
        |all, out| {
            flow_workers(all).for_each(|it| out.put([&it.worker], it.probes));
        },
    ),
    gauge(
        "weir_flow_oldest_record_seconds",
        "seconds",
        &[],
        "Age of the oldest record that is in no message yet.",
        |all, out| {
            all.ipfix
                .iter()
                .for_each(|it| out.put([], it.oldest_ms as f64 / 1e3));
        },
    ),
    counter(
        "weir_flow_taken_flows",
        "flows",
        &[],
        "Records that the exporter took.",
        |all, out| {
            all.ipfix.iter().for_each(|it| out.put([], it.taken.flows));
        },
    ),
    counter(
        "weir_flow_taken_packets",
        "packets",
        &[],
        "Packets in records that the exporter took.",
        |all, out| {
            all.ipfix
                .iter()
                .for_each(|it| out.put([], it.taken.packets));
        },
    ),
    counter(
        "weir_flow_taken_bytes",
        "bytes",
        &[],
        "Octets in records that the exporter took.",
        |all, out| {
            all.ipfix.iter().for_each(|it| out.put([], it.taken.octets));
        },
    ),
    gauge(
        "weir_flow_collector_up",
        "",
        OF_FLOW_COLLECTOR,
        "1 while a collector is connected; datagrams always are.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.connected.into());
        },
    ),
    counter(
        "weir_flow_collector_connections",
        "",
        OF_FLOW_COLLECTOR,
        "Connections to a collector that were made.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.connections);
        },
    ),
    counter(
        "weir_flow_collector_messages",
        "",
        OF_FLOW_COLLECTOR,
        "Messages that went out to a collector.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.messages);
        },
    ),
    counter(
        "weir_flow_collector_message_bytes",
        "bytes",
        OF_FLOW_COLLECTOR,
        "Octets of those messages.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.message_octets);
        },
    ),
    counter(
        "weir_flow_collector_sent_flows",
        "flows",
        OF_FLOW_COLLECTOR,
        "Records that were sent to a collector.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.sent.flows);
        },
    ),
    counter(
        "weir_flow_collector_sent_packets",
        "packets",
        OF_FLOW_COLLECTOR,
        "Packets in records that were sent to a collector.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.sent.packets);
        },
    ),
    counter(
        "weir_flow_collector_sent_bytes",
        "bytes",
        OF_FLOW_COLLECTOR,
        "Octets in records that were sent to a collector.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.sent.octets);
        },
    ),
    counter(
        "weir_flow_collector_not_sent_flows",
        "flows",
        OF_FLOW_COLLECTOR,
        "Records that were not sent to a collector.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.not_sent.flows);
        },
    ),
    counter(
        "weir_flow_collector_not_sent_packets",
        "packets",
        OF_FLOW_COLLECTOR,
        "Packets in records that were not sent to a collector.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.not_sent.packets);
        },
    ),
    counter(
        "weir_flow_collector_not_sent_bytes",
        "bytes",
        OF_FLOW_COLLECTOR,
        "Octets in records that were not sent to a collector.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.not_sent.octets);
        },
    ),
    counter(
        "weir_flow_collector_left_out_flows",
        "flows",
        OF_FLOW_COLLECTOR,
        "Records that a collector does not want.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.left_out.flows);
        },
    ),
    counter(
        "weir_flow_collector_left_out_packets",
        "packets",
        OF_FLOW_COLLECTOR,
        "Packets in records that a collector does not want.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.left_out.packets);
        },
    ),
    counter(
        "weir_flow_collector_left_out_bytes",
        "bytes",
        OF_FLOW_COLLECTOR,
        "Octets in records that a collector does not want.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.left_out.octets);
        },
    ),
    counter(
        "weir_flow_collector_errors",
        "",
        OF_FLOW_COLLECTOR,
        "Errors with a collector.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.errors);
        },
    ),
    gauge(
        "weir_flow_collector_queued_bytes",
        "bytes",
        OF_FLOW_COLLECTOR,
        "Octets that wait for a collector's stream.",
        |all, out| {
            of_flow_collectors(all, out, |it| it.queued);
        },
    ),
    gauge(
        "weir_sflow_interface_sampling_rate",
        "",
        OF_INTERFACE,
        "One packet of an interface in this many is sampled.",
        |all, out| {
            all.sflow
                .interfaces
                .iter()
                .for_each(|it| out.put([&it.interface], it.sampling_rate));
        },
    ),
    counter(
        "weir_sflow_pool_packets",
        "packets",
        OF_SHARE,
        "Packets that a worker could have sampled.",
        |all, out| {
            sampled(all, |interface, it| {
                out.put([&interface.interface, &it.worker], it.pool)
            });
        },
    ),
    counter(
        "weir_sflow_interface_samples",
        "samples",
        OF_SHARE,
        "Samples sent of an interface's packets.",
        |all, out| {
            sampled(all, |interface, it| {
                out.put([&interface.interface, &it.worker], it.samples)
            });
        },
    ),
    counter(
        "weir_sflow_interface_dropped_samples",
        "samples",
        OF_SHARE,
        "Samples of an interface that found a ring full.",
        |all, out| {
            sampled(all, |interface, it| {
                out.put([&interface.interface, &it.worker], it.dropped)
            });
        },
    ),
    counter(
        "weir_sflow_drops_reported_packets",
        "packets",
        OF_DROP,
        "Discarded packets that were reported, by reason.",
        |all, out| {
            let kinds = all.sflow.drops.iter();
            kinds.for_each(|it| {
                out.put(
                    [
                        &it.interface.as_deref().unwrap_or(""),
                        &it.node,
                        &it.reason,
                        &it.standard,
                    ],
                    it.reported,
                )
            });
        },
    ),
    counter(
        "weir_sflow_kernel_messages",
        "",
        &["kind"],
        "Messages sent through the kernel, by kind.",
        |all, out| {
            let Some(it) = &all.sflow.kernel else { return };
            for (kind, count) in [
                ("sample", it.samples),
                ("drop", it.drops),
                ("report", it.reports),
            ] {
                out.put([&kind], count);
            }
        },
    ),
    counter(
        "weir_sflow_kernel_errors",
        "",
        &[],
        "Messages that the kernel did not take.",
        |all, out| {
            all.sflow
                .kernel
                .iter()
                .for_each(|it| out.put([], it.failed));
        },
    ),
    // Bonds.
    gauge(
        "weir_bond_member_collecting",
        "",
        OF_MEMBER,
        "1 while the bond takes frames from a member.",
        |all, out| {
            members(all, |bond, it| {
                out.put([&bond.interface, &it.interface], it.collecting)
            });
        },
    ),
    gauge(
        "weir_bond_member_distributing",
        "",
        OF_MEMBER,
        "1 while the bond sends frames by a member.",
        |all, out| {
            members(all, |bond, it| {
                out.put([&bond.interface, &it.interface], it.distributing)
            });
        },
    ),
    counter(
        "weir_lacp_received_pdus",
        "pdus",
        OF_MEMBER,
        "LACP PDUs that were taken in on a member.",
        |all, out| {
            members(all, |bond, it| {
                it.lacp
                    .iter()
                    .for_each(|lacp| out.put([&bond.interface, &it.interface], lacp.received))
            });
        },
    ),
    counter(
        "weir_lacp_sent_pdus",
        "pdus",
        OF_MEMBER,
        "LACP PDUs that were sent by a member.",
        |all, out| {
            members(all, |bond, it| {
                it.lacp
                    .iter()
                    .for_each(|lacp| out.put([&bond.interface, &it.interface], lacp.sent))
            });
        },
    ),
    counter(
        "weir_lacp_expirations",
        "",
        OF_MEMBER,
        "How often the far end of a member fell silent.",
        |all, out| {
            members(all, |bond, it| {
                it.lacp
                    .iter()
                    .for_each(|lacp| out.put([&bond.interface, &it.interface], lacp.expired))
            });
        },
    ),
    // Tables.
    gauge(
        "weir_fib_routes",
        "",
        &["table", "family", "source"],
        "Routes, by table, family and where they come from.",
        |all, out| {
            for table in all.fib.iter().flat_map(|fib| &fib.tables) {
                for it in &table.routes {
                    out.put([&table.table, &table.family, &it.source], it.count);
                }
            }
        },
    ),
    gauge(
        "weir_fib_adjacencies",
        "",
        &[],
        "Next hops that routes share.",
        |all, out| {
            all.fib.iter().for_each(|it| out.put([], it.adjacencies));
        },
    ),
    gauge(
        "weir_fib_groups",
        "",
        &[],
        "Sets of paths that routes share.",
        |all, out| all.fib.iter().for_each(|it| out.put([], it.groups)),
    ),
    gauge(
        "weir_fib_memory_bytes",
        "bytes",
        &[],
        "Memory of forwarding tables, next hops and groups.",
        |all, out| {
            all.fib.iter().for_each(|it| out.put([], it.memory_bytes));
        },
    ),
    gauge(
        "weir_neighbors",
        "",
        &["interface", "state"],
        "Neighbours on an interface, by how well they are known.",
        |all, out| {
            let mut counts: BTreeMap<(&str, String), u64> = BTreeMap::new();
            for it in &all.neighbors.neighbors {
                *counts
                    .entry((&it.interface, it.state.to_string()))
                    .or_default() += 1;
            }
            counts
                .iter()
                .for_each(|((interface, state), count)| out.put([interface, state], *count));
        },
    ),
    counter(
        "weir_neighbors_evicted",
        "",
        &[],
        "Neighbours that made room for others: without an answer, or known only because they spoke.",
        |all, out| {
            out.put([], all.neighbors.evicted);
        },
    ),
    counter(
        "weir_neighbors_refused",
        "",
        &[],
        "New neighbours that were refused because there is no room.",
        |all, out| {
            out.put([], all.neighbors.refused);
        },
    ),
    counter(
        "weir_acl_packets",
        "",
        &["interface", "direction", "outcome"],
        "Packets that met the access lists of an interface.",
        |all, out| {
            for it in all.acls.iter().flat_map(|acls| &acls.bindings) {
                let direction = it.direction.to_string();
                for (outcome, packets) in [
                    ("permitted", it.permitted),
                    ("denied", it.denied),
                    ("unmatched", it.unmatched),
                ] {
                    out.put([&it.interface, &direction, &outcome], packets);
                }
            }
        },
    ),
    // Bridge domains.
    gauge(
        "weir_bridge_stations",
        "",
        &["bridge"],
        "Stations that a bridge domain has learned and not forgotten.",
        |all, out| {
            all.bridges
                .iter()
                .flat_map(|it| &it.bridges)
                .for_each(|it| out.put([&it.name], it.stations));
        },
    ),
    counter(
        "weir_bridge_learned",
        "",
        &["bridge"],
        "Stations learned.",
        |all, out| {
            all.bridges
                .iter()
                .flat_map(|it| &it.bridges)
                .for_each(|it| out.put([&it.name], it.learned));
        },
    ),
    counter(
        "weir_bridge_moves",
        "",
        &["bridge"],
        "Stations that came in by another member than before.",
        |all, out| {
            all.bridges
                .iter()
                .flat_map(|it| &it.bridges)
                .for_each(|it| out.put([&it.name], it.moved));
        },
    ),
    counter(
        "weir_bridge_not_learned",
        "",
        &["bridge"],
        "Frames whose sender was not learned, the limit being reached.",
        |all, out| {
            all.bridges
                .iter()
                .flat_map(|it| &it.bridges)
                .for_each(|it| out.put([&it.name], it.not_learned));
        },
    ),
    counter(
        "weir_bridge_flooded",
        "",
        &["bridge", "kind"],
        "Frames sent to several members: for groups, or for unknown stations.",
        |all, out| {
            for it in all.bridges.iter().flat_map(|it| &it.bridges) {
                out.put([&it.name, &"group"], it.flooded);
                out.put([&it.name, &"unknown"], it.unknown_unicast_flooded);
            }
        },
    ),
    counter(
        "weir_bridge_arp_terminated",
        "",
        &["bridge"],
        "Questions for addresses of its list that were not flooded.",
        |all, out| {
            all.bridges
                .iter()
                .flat_map(|it| &it.bridges)
                .for_each(|it| out.put([&it.name], it.arp_terminated));
        },
    ),
    // Packet memory.
    gauge(
        "weir_buffers",
        "",
        OF_POOL,
        "Buffers of a pool.",
        |all, out| {
            all.buffers
                .iter()
                .flat_map(|it| &it.pools)
                .for_each(|it| out.put([&it.pool], it.buffers));
        },
    ),
    gauge(
        "weir_buffers_free",
        "",
        OF_POOL,
        "Buffers of a pool that nobody holds.",
        |all, out| {
            all.buffers
                .iter()
                .flat_map(|it| &it.pools)
                .for_each(|it| out.put([&it.pool], it.free));
        },
    ),
    gauge(
        "weir_buffer_size_bytes",
        "bytes",
        OF_POOL,
        "Bytes of one buffer.",
        |all, out| {
            all.buffers
                .iter()
                .flat_map(|it| &it.pools)
                .for_each(|it| out.put([&it.pool], it.buffer_bytes));
        },
    ),
    counter(
        "weir_buffer_failures",
        "",
        OF_POOL,
        "How often a buffer was wanted and there was none.",
        |all, out| {
            all.buffers
                .iter()
                .flat_map(|it| &it.pools)
                .for_each(|it| out.put([&it.pool], it.failures));
        },
    ),
    // The configuration.
    gauge(
        "weir_config_revision",
        "",
        &[],
        "The newest revision of the configuration.",
        |all, out| {
            all.history
                .iter()
                .flat_map(|it| it.revisions.first())
                .for_each(|it| out.put([], it.revision));
        },
    ),
    gauge(
        "weir_config_locked",
        "",
        &[],
        "1 while a change is being done, or waits to be confirmed.",
        |all, out| {
            all.history
                .iter()
                .for_each(|it| out.put([], it.lock.is_some()));
        },
    ),
    info(
        "weir_linux_interface",
        &["interface", "namespace", "device", "ifindex"],
        "The TAP of an interface in Linux, by which its counters are joined with those of Linux and SNMP.",
        |all, out| {
            if let Some(linux) = &all.linux {
                let namespace = linux.namespace.as_deref().unwrap_or_default();
                for it in &linux.interfaces {
                    if let Some(index) = it.index {
                        let index = index.to_string();
                        out.put([&it.interface, &namespace, &it.name, &index], true);
                    }
                }
            }
        },
    ),
    counter(
        "weir_linux_punted_packets",
        "packets",
        OF_PUNT,
        "Packets for services of Linux that went to the TAP, by class.",
        |all, out| {
            punted(all, |it, class| {
                out.put([&it.interface, &class.punt_class], class.passed);
            });
        },
    ),
    counter(
        "weir_linux_policed_packets",
        "packets",
        OF_PUNT,
        "Packets for services of Linux that were dropped because their class was over its limit.",
        |all, out| {
            punted(all, |it, class| {
                out.put([&it.interface, &class.punt_class], class.policed);
            });
        },
    ),
    counter(
        "weir_linux_route_updates",
        "updates",
        &["source"],
        "Changes of routes that the kernel (`kernel`) or FRR's zebra (`fpm`) sent.",
        |all, out| {
            if let Some(linux) = &all.linux {
                let feed = linux.feed.iter().map(|it| ("kernel", it.updates));
                let fpm = linux.fpm.iter().map(|it| ("fpm", it.updates));
                for (source, updates) in feed.chain(fpm) {
                    out.put([&source], updates);
                }
            }
        },
    ),
    counter(
        "weir_linux_refused_updates",
        "updates",
        &["source", "reason"],
        "Messages and changes of routes that could not be carried out, by reason.",
        |all, out| {
            if let Some(linux) = &all.linux {
                let feed = linux.feed.iter().map(|it| ("kernel", &it.refused));
                let fpm = linux.fpm.iter().map(|it| ("fpm", &it.refused));
                let bmp = linux.bmp.iter().map(|it| ("bmp", &it.refused));
                for (source, refused) in feed.chain(fpm).chain(bmp) {
                    for it in refused {
                        out.put([&source, &it.reason], it.count);
                    }
                }
            }
        },
    ),
    counter(
        "weir_linux_overruns",
        "",
        &[],
        "Times that the kernel dropped messages because the socket's buffer was full.",
        |all, out| feeds(all, |it| out.put([], it.overruns)),
    ),
    counter(
        "weir_linux_resyncs",
        "",
        &[],
        "Times that all tables of the kernel were read.",
        |all, out| feeds(all, |it| out.put([], it.resyncs)),
    ),
    counter(
        "weir_linux_healed_routes",
        "routes",
        &[],
        "Routes that were missing or different when the kernel's tables were read, those of the first reading included.",
        |all, out| all.linux.iter().for_each(|it| out.put([], it.audit.healed)),
    ),
    counter(
        "weir_linux_stale_routes",
        "routes",
        &[],
        "Routes that were removed because their source had them no more when it sent all its routes again.",
        |all, out| all.linux.iter().for_each(|it| out.put([], it.audit.stale)),
    ),
    gauge(
        "weir_linux_fpm_connected",
        "",
        &[],
        "Whether FRR's zebra is connected: 1, else 0.",
        |all, out| fpms(all, |it| out.put([], it.connected)),
    ),
    counter(
        "weir_linux_fpm_sessions",
        "",
        &[],
        "Connections of FRR's zebra.",
        |all, out| fpms(all, |it| out.put([], it.sessions)),
    ),
    gauge(
        "weir_linux_fpm_parked_routes",
        "routes",
        &[],
        "Routes that wait for a next-hop object that FRR's zebra has not sent.",
        |all, out| fpms(all, |it| out.put([], it.parked)),
    ),
    gauge(
        "weir_linux_bmp_sessions",
        "",
        &[],
        "BGP daemons that send their routes by BMP.",
        |all, out| bmps(all, |it| out.put([], it.sessions.len() as u64)),
    ),
    gauge(
        "weir_linux_bmp_paths",
        "paths",
        &[],
        "Paths of BGP that are kept for reports of flows.",
        |all, out| bmps(all, |it| out.put([], it.paths)),
    ),
    counter(
        "weir_linux_convergence_updates",
        "updates",
        &["source", "le"],
        "Changes of routes by the seconds from their message being read until all workers forward by them; cumulative, for histogram_quantile.",
        |all, out| {
            for it in all.linux.iter().flat_map(|linux| &linux.convergence) {
                let source = it.source;
                let mut so_far = 0;
                for bucket in &it.buckets {
                    so_far += bucket.updates;
                    let bound = bucket.at_most_us as f64 / 1e6;
                    out.put([&source, &bound], so_far);
                }
                out.put([&source, &"+Inf"], it.updates);
            }
        },
    ),
    // The process, with the names that all programs have.
    counter(
        "process_cpu_seconds",
        "seconds",
        &[],
        "Processor time of all threads.",
        |all, out| {
            all.process
                .iter()
                .for_each(|it| out.put([], it.cpu_seconds));
        },
    ),
    gauge(
        "process_resident_memory_bytes",
        "bytes",
        &[],
        "Memory in RAM, hugepages not counted.",
        |all, out| {
            all.process
                .iter()
                .for_each(|it| out.put([], it.resident_bytes));
        },
    ),
    gauge(
        "process_virtual_memory_bytes",
        "bytes",
        &[],
        "The address space.",
        |all, out| {
            all.process
                .iter()
                .for_each(|it| out.put([], it.virtual_bytes));
        },
    ),
    gauge("process_threads", "", &[], "Threads.", |all, out| {
        all.process.iter().for_each(|it| out.put([], it.threads))
    }),
    gauge(
        "process_open_fds",
        "",
        &[],
        "Open descriptors.",
        |all, out| {
            all.process
                .iter()
                .for_each(|it| out.put([], it.descriptors))
        },
    ),
    gauge(
        "process_max_fds",
        "",
        &[],
        "The most descriptors that may be open.",
        |all, out| {
            all.process
                .iter()
                .flat_map(|it| it.most_descriptors)
                .for_each(|it| out.put([], it));
        },
    ),
    gauge(
        "process_start_time_seconds",
        "seconds",
        &[],
        "When the process started, in seconds since 1970.",
        |all, out| {
            out.put([], all.version.started);
        },
    ),
];

fn flow_workers(all: &Snapshot) -> impl Iterator<Item = &FlowWorker> {
    all.ipfix.iter().flat_map(|it| &it.workers)
}

fn of_flow_collectors(all: &Snapshot, out: &mut Samples, value: impl Fn(&IpfixCollector) -> u64) {
    for it in all.ipfix.iter().flat_map(|it| &it.collectors) {
        out.put([&it.place(), &it.transport], value(it));
    }
}

fn members(all: &Snapshot, mut sample: impl FnMut(&Bond, &BondMember)) {
    for bond in all.bonds.iter().flat_map(|it| &it.bonds) {
        bond.members.iter().for_each(|member| sample(bond, member));
    }
}

fn punted(all: &Snapshot, mut sample: impl FnMut(&LinuxInterface, &LinuxPunt)) {
    for interface in all.linux.iter().flat_map(|it| &it.interfaces) {
        interface
            .punt
            .iter()
            .for_each(|class| sample(interface, class));
    }
}

fn feeds(all: &Snapshot, sample: impl FnMut(&LinuxFeed)) {
    let linux = all.linux.iter();
    linux.filter_map(|it| it.feed.as_ref()).for_each(sample);
}

fn fpms(all: &Snapshot, sample: impl FnMut(&LinuxFpm)) {
    let linux = all.linux.iter();
    linux.filter_map(|it| it.fpm.as_ref()).for_each(sample);
}

fn bmps(all: &Snapshot, sample: impl FnMut(&LinuxBmp)) {
    let linux = all.linux.iter();
    linux.filter_map(|it| it.bmp.as_ref()).for_each(sample);
}

fn sampled(all: &Snapshot, mut sample: impl FnMut(&SflowInterface, &SflowShare)) {
    for interface in &all.sflow.interfaces {
        interface
            .workers
            .iter()
            .for_each(|share| sample(interface, share));
    }
}

fn each(all: &Snapshot, sample: impl FnMut(&Interface)) {
    all.interfaces.interfaces.iter().for_each(sample);
}

fn both(all: &Snapshot, mut sample: impl FnMut(&Interface, &'static str, &Traffic)) {
    each(all, |interface| {
        sample(interface, "rx", &interface.rx);
        sample(interface, "tx", &interface.tx);
    });
}

fn nodes(all: &Snapshot, mut sample: impl FnMut(&WorkerRuntime, &NodeRuntime)) {
    for worker in &all.runtime.workers {
        worker.nodes.iter().for_each(|node| sample(worker, node));
    }
}
