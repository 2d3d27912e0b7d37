//! What `show flow` tells: the meter, its exporter, and flows that are under way.
//!
//! Flows lie in the workers' tables, and only the worker reads its own. So a question goes to each worker, which looks through
//! its table a little at a time; whoever asked waits, without any lock.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_api::{
    ApiError, FlowEntry, FlowLoad, FlowMeasure, FlowQuery, FlowWorker, Flows, SflowDirection,
    Timestamp,
};
use weir_config::{IpfixTransport, IpfixVersion};
use weir_flowfmt::ipfix::Version;
use weir_telemetry::exporter::fields::{Plan, SHAPES, Shape};
use weir_telemetry::exporter::{Knows, Load, RecordSet};
use weir_telemetry::flows::key::Kind;
use weir_telemetry::flows::record::MPLS;
use weir_telemetry::flows::{Counts, FlowRecord};
use weir_telemetry::meter::{Answer, FlowFilter, FlowOrder, MeterControl, Question};

use crate::control::Control;
use crate::ipfix::addresses;
use crate::router::Router;
use crate::worker::Command;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Questions that were asked.
static ASKED: AtomicU64 = AtomicU64::new(1);

impl Control {
    /// Settings and counters.
    pub(crate) fn ipfix_view(&self) -> weir_api::Ipfix {
        let (side, config, stats) = (&self.ipfix, &self.ipfix.config, self.ipfix.stats());
        let interface =
            |(name, metered): (&String, &weir_config::IpfixInterface)| weir_api::IpfixInterface {
                interface: name.clone(),
                index: self.index_of(name),
                direction: direction(metered.direction),
                records: metered.records.clone(),
            };
        let collector = |(place, it): (usize, &weir_config::IpfixCollector)| {
            let stats = stats
                .collectors
                .get(place)
                .map(|(_, stats)| stats.clone())
                .unwrap_or_default();
            weir_api::IpfixCollector {
                address: it.address,
                port: it.port,
                transport: match it.transport {
                    IpfixTransport::Udp => "udp",
                    IpfixTransport::Tcp => "tcp",
                    IpfixTransport::Tls => "tls",
                }
                .to_owned(),
                version: if it.version == IpfixVersion::Ipfix {
                    "ipfix"
                } else {
                    "netflow9"
                }
                .to_owned(),
                namespace: it.namespace.clone(),
                source: it.source,
                dscp: it.dscp,
                dev: it.dev.clone(),
                table: it.table.clone(),
                through_host: it.host,
                connected: stats.connected,
                connections: stats.connections,
                messages: stats.messages,
                message_octets: stats.message_octets,
                sent: load(stats.sent),
                not_sent: load(stats.not_sent),
                left_out: load(stats.left_out),
                queued: stats.queued,
                errors: stats.errors,
                last_error: stats.last_error,
            }
        };
        weir_api::Ipfix {
            settings: weir_api::IpfixSettings {
                active_timeout: config.active_timeout.into(),
                idle_timeout: config.idle_timeout.into(),
                flows: config.flows,
                sampling_rate: config.sampling_rate,
                domain: config.domain,
                template_interval: config.template_interval.into(),
                biflow: config.biflow,
            },
            interfaces: config.interfaces.iter().map(interface).collect(),
            workers: (0..side.meters.len())
                .map(|worker| self.flow_worker(worker))
                .collect(),
            taken: load(stats.taken),
            oldest_ms: stats.oldest / 1_000_000,
            collectors: config
                .collectors
                .iter()
                .enumerate()
                .map(collector)
                .collect(),
            templates: self.templates(),
        }
    }

    fn flow_worker(&self, worker: usize) -> FlowWorker {
        let past = self.ipfix.past.get(worker).cloned().unwrap_or_default();
        let mut view = FlowWorker {
            worker: worker as u32,
            ..past
        };
        self.ipfix
            .counts
            .get(worker)
            .into_iter()
            .flatten()
            .for_each(|counts| add_counts(&mut view, counts));
        if let Some(counters) = self.ipfix.meters.get(worker).map(MeterControl::counters) {
            view.ignored_packets = counters.ignored_packets.get();
            view.ignored_octets = counters.ignored_octets.get();
            view.passed_over = counters.passed_over.get();
            view.waiting = counters.waiting.get();
        }
        view
    }

    fn templates(&self) -> Vec<weir_api::IpfixTemplate> {
        let mut templates = Vec::new();
        for (number, (name, parts)) in self.ipfix.sets().iter().enumerate() {
            let Ok(set) = RecordSet::new(parts.iter().map(String::as_str)) else {
                continue;
            };
            let plan = Plan::new(&set, Version::Ipfix, number as u8);
            let both = |shape| {
                plan.template_of_both(shape)
                    .filter(|_| self.ipfix.config.biflow)
            };
            for (shape, suffix, template) in SHAPES
                .into_iter()
                .flat_map(|it| [(it, "", plan.template(it)), (it, "-biflow", both(it))])
            {
                let Some(template) = template else { continue };
                let kind = match shape {
                    Shape::Ip4 => "ipv4",
                    Shape::Ip6 => "ipv6",
                    Shape::L2 => "l2",
                    Shape::Ip4ByIp6 => "ipv4-by-ipv6",
                };
                templates.push(weir_api::IpfixTemplate {
                    id: template.id,
                    records: name.clone(),
                    kind: format!("{kind}{suffix}"),
                    octets: template.fixed().unwrap_or(0) as u32,
                    elements: template
                        .fields
                        .iter()
                        .map(|field| field.name().into_owned())
                        .collect(),
                });
            }
        }
        templates
    }

    fn flow_entry(&self, worker: usize, record: &FlowRecord) -> FlowEntry {
        let (parts, sums, facts) = (record.key.parts(), &record.sums, &record.facts);
        let name = |index: u32| {
            (index != 0).then(|| {
                self.name_of(index)
                    .map_or_else(|| index.to_string(), str::to_owned)
            })
        };
        let mac = |octets: [u8; 6]| weir_wire::MacAddr(octets).to_string();
        let (source, destination) = match addresses(&parts) {
            Some((source, destination)) => (source.to_string(), destination.to_string()),
            None => (
                mac(facts.source_mac_of(&parts)),
                mac(facts.destination_mac_of(&parts)),
            ),
        };
        let is_ip = parts.kind != Kind::L2;
        let some = |number: u16| (number != 0).then_some(number);
        let address = |octets: [u8; 16]| {
            let number = Some(u128::from_be_bytes(octets)).filter(|number| *number != 0)?;
            Some(match u32::try_from(number) {
                Ok(number) if parts.kind != Kind::Ip6 => IpAddr::from(Ipv4Addr::from(number)),
                _ => Ipv6Addr::from(number).into(),
            })
        };
        let time = |nanoseconds: u64| {
            Timestamp::from_unix_ms((self.ipfix.wall() + nanoseconds) / 1_000_000)
        };
        FlowEntry {
            worker: worker as u32,
            records: self.ipfix.set_name(parts.set).to_owned(),
            direction: if parts.egress {
                SflowDirection::Tx
            } else {
                SflowDirection::Rx
            },
            source,
            destination,
            ethertype: (!is_ip).then_some(parts.source_port).and_then(some),
            protocol: is_ip.then_some(parts.protocol),
            source_port: is_ip.then_some(parts.source_port).and_then(some),
            destination_port: is_ip.then_some(parts.destination_port).and_then(some),
            input: name(parts.input),
            output: name(parts.output),
            forwarding_status: if parts.status == 0 { 64 } else { parts.status },
            next_hop: address(facts.next_hop),
            bgp_next_hop: address(facts.bgp_next_hop),
            vlan: some(parts.vlan),
            customer_vlan: some(parts.customer_vlan),
            label: (parts.label & MPLS != 0).then_some((parts.label & 0x00ff_ffff) >> 4),
            traffic_class: Some(parts.tos).filter(|class| *class != 0),
            packets: sums.packets,
            octets: sums.octets,
            start: time(sums.first),
            end: time(sums.last),
            tcp_flags: sums.tcp_flags,
        }
    }
}

impl Router {
    /// Flows that are under way. Asks the workers, and waits for them without the control side's lock.
    pub(crate) fn flows_view(&self, query: &FlowQuery) -> Result<Flows, ApiError> {
        let (meters, interface) = {
            let control = self.control();
            (
                control.ipfix.meters.clone(),
                query
                    .interface
                    .as_deref()
                    .map(|name| control.index_of(name)),
            )
        };
        let filter = FlowFilter {
            prefix: query.prefix,
            interface,
            port: query.port,
        };
        let order = match query.top {
            None => FlowOrder::None,
            Some(FlowMeasure::Octets) => FlowOrder::Octets,
            Some(FlowMeasure::Packets) => FlowOrder::Packets,
        };
        let number = ASKED.fetch_add(1, Ordering::Relaxed);
        meters
            .iter()
            .for_each(|meter| meter.ask(Question::new(number, filter, order, query.most)));
        let until = Instant::now() + PATIENCE;
        let mut all = Vec::new();
        let mut matched = 0;
        for (worker, meter) in meters.iter().enumerate() {
            let answer = self.wait_for(worker, meter, number, until)?;
            // A record that moved in a table that grew meanwhile was shown twice.
            let (mut seen, shown) = (HashSet::new(), answer.flows.len());
            let flows: Vec<_> = answer
                .flows
                .into_iter()
                .filter(|record| seen.insert(record.key))
                .collect();
            matched += answer.matched - (shown - flows.len()) as u64;
            all.extend(flows.into_iter().map(|record| (worker, record)));
        }
        if query.top.is_some() {
            all.sort_by_key(|(_, record)| std::cmp::Reverse(order.weight(record)));
        }
        all.truncate(query.most);
        let control = self.control();
        control.ipfix.knows.with_completion(&mut |completion| {
            all.iter_mut()
                .for_each(|(_, record)| completion.complete(record))
        });
        Ok(Flows {
            flows: all
                .iter()
                .map(|(worker, record)| control.flow_entry(*worker, record))
                .collect(),
            matched,
        })
    }

    fn wait_for(
        &self,
        worker: usize,
        meter: &MeterControl,
        number: u64,
        until: Instant,
    ) -> Result<Answer, ApiError> {
        loop {
            if let Some(answer) = meter.answer(number) {
                return Ok(answer);
            }
            if Instant::now() > until || self.is_stopping() {
                return Err(ApiError::not_available("an answer of the workers"));
            }
            {
                let mut control = self.control();
                if let Some(handle) = control.workers.get_mut(worker) {
                    handle.tell(Command::Tick);
                    handle.turn_by_hand();
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Adds what a table counts.
pub(crate) fn add_counts(view: &mut FlowWorker, counts: &Counts) {
    let ended: [u64; 6] = std::array::from_fn(|reason| counts.exported[reason].get());
    view.resident += counts.resident.get();
    view.metered_packets += counts.packets.get();
    view.metered_octets += counts.octets.get();
    view.begun += counts.flows.get();
    view.ended_idle += ended[1];
    view.ended_active += ended[2];
    view.ended_seen += ended[3];
    view.ended_forced += ended[4];
    view.ended_resources += ended[5];
    view.exported.flows += ended.iter().sum::<u64>();
    view.exported.packets += counts.exported_packets.get();
    view.exported.octets += counts.exported_octets.get();
    view.unexported.flows += counts.unexported.get();
    view.unexported.packets += counts.unexported_packets.get();
    view.unexported.octets += counts.unexported_octets.get();
    view.long_ways += counts.long_ways.get();
    view.probes += counts.probes.get();
}

fn load(load: Load) -> FlowLoad {
    FlowLoad {
        flows: load.flows,
        packets: load.packets,
        octets: load.octets,
    }
}

fn direction(direction: weir_config::MeterDirection) -> SflowDirection {
    match direction {
        weir_config::MeterDirection::Rx => SflowDirection::Rx,
        weir_config::MeterDirection::Tx => SflowDirection::Tx,
        weir_config::MeterDirection::Both => SflowDirection::Both,
    }
}
