//! What `show flow` shows: the meter, its exporter, and flows that are under way.
//!
//! Flows lie in the workers' tables, and only the worker reads its own. So a query goes to each worker, which inspects
//! its table a little at a time; the caller waits, without any lock.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_api::{
    ApiError, FlowEntry, FlowGroup, FlowGroupBy, FlowLoad, FlowMeasure, FlowQuery, FlowWorker,
    Flows, SflowDirection, Timestamp,
};
use weir_config::{IpfixTransport, IpfixVersion};
use weir_flowfmt::ipfix::{Version, forwarding_status_name};
use weir_telemetry::exporter::fields::{Plan, SHAPES, Shape};
use weir_telemetry::exporter::recent::identity;
use weir_telemetry::exporter::{Knows, Load};
use weir_telemetry::flows::key::{Kind, Parts};
use weir_telemetry::flows::record::MPLS;
use weir_telemetry::flows::{Counts, FlowRecord, Selection};
use weir_telemetry::meter::{
    Answer, FlowFilter, FlowOrder, FlowRates, GroupBy, GroupKey, GroupSums, Grouping, MeterControl,
    Question,
};

use crate::control::Control;
use crate::ipfix::{NumberedSet, addresses};
use crate::router::Router;
use crate::worker::Command;

/// A flow whose record left its table so many nanoseconds ago or less, by the active timeout, goes on.
const GOES_ON: u64 = 2_000_000_000;
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
                sampling_rate: metered.sampling_rate.unwrap_or(config.sampling_rate),
            };
        let collector = |(place, it): (usize, &weir_config::IpfixCollector)| {
            let stats = stats
                .collectors
                .get(place)
                .map(|(_, stats)| stats.clone())
                .unwrap_or_default();
            weir_api::IpfixCollector {
                host: it.address.to_string(),
                address: stats.address.map(|address| address.ip()),
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
        for (number, numbered) in self.ipfix.sets().iter().enumerate() {
            let (name, Some(set)) = (&numbered.name, numbered.records()) else {
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

    /// The parts of a key that a record set selects for flows of a kind: zero for what it does not.
    fn selected(&self, set: u8, egress: bool, kind: Kind) -> Parts {
        let numbered = self.ipfix.sets().get(usize::from(set));
        match numbered.and_then(NumberedSet::records) {
            Some(records) => Selection::new(records.elements(), set, egress).selected(kind),
            None => Parts::default(),
        }
    }

    fn interface_name(&self, index: u32) -> Option<String> {
        (index != 0).then(|| {
            self.name_of(index)
                .map_or_else(|| index.to_string(), str::to_owned)
        })
    }

    /// What the flows of a group have in common, in words.
    fn group_name(&self, grouping: Grouping, key: &GroupKey) -> Option<String> {
        let (set, egress, kind) = key.base;
        let kind = [Kind::Ip4, Kind::Ip6]
            .into_iter()
            .find(|it| *it as u8 == kind)
            .unwrap_or(Kind::L2);
        let selected = self.selected(set, egress, kind);
        let address = || match kind {
            Kind::Ip4 => prefix(
                Ipv4Addr::from(key.value as u32).into(),
                grouping.lengths.0,
                32,
            ),
            Kind::Ip6 => prefix(Ipv6Addr::from(key.value).into(), grouping.lengths.1, 128),
            Kind::L2 => {
                let [.., a, b, c, d, e, f] = key.value.to_be_bytes();
                weir_wire::MacAddr([a, b, c, d, e, f]).to_string()
            }
        };
        let is_source = selected.source != [0; 16];
        let is_destination = selected.destination != [0; 16];
        match grouping.by {
            GroupBy::Source => is_source.then(address),
            GroupBy::Destination => is_destination.then(address),
            // A zero may stand for the end that the set does not select.
            GroupBy::Host => (is_source && is_destination
                || (is_source || is_destination) && key.value != 0)
                .then(address),
            GroupBy::Protocol => {
                (kind != Kind::L2 && selected.protocol != 0).then(|| protocol_name(key.value))
            }
            GroupBy::Input | GroupBy::Output => self.interface_name(key.value as u32),
            GroupBy::Status => (selected.status != 0).then(|| {
                let status = if key.value == 0 { 64 } else { key.value as u8 };
                forwarding_status_name(status).to_owned()
            }),
        }
    }

    fn flow_entry(&self, worker: usize, record: &FlowRecord, rates: FlowRates) -> FlowEntry {
        let (parts, sums, facts) = (record.key.parts(), &record.sums, &record.facts);
        let selected = self.selected(parts.set, parts.egress, parts.kind);
        let name = |index: u32| self.interface_name(index);
        let mac = |octets: [u8; 6]| weir_wire::MacAddr(octets).to_string();
        let (source, destination) = match addresses(&parts) {
            Some((source, destination)) => (source.to_string(), destination.to_string()),
            None => (
                mac(facts.source_mac_of(&parts)),
                mac(facts.destination_mac_of(&parts)),
            ),
        };
        // What the record set does not select is zero in the key.
        let source = (selected.source != [0; 16]).then_some(source);
        let destination = (selected.destination != [0; 16]).then_some(destination);
        let status = if parts.status == 0 { 64 } else { parts.status };
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
            protocol: (is_ip && selected.protocol != 0).then_some(parts.protocol),
            source_port: is_ip.then_some(parts.source_port).and_then(some),
            destination_port: is_ip.then_some(parts.destination_port).and_then(some),
            input: name(parts.input),
            output: name(parts.output),
            forwarding_status: status,
            forwarding_status_name: forwarding_status_name(status).to_owned(),
            next_hop: address(facts.next_hop),
            bgp_next_hop: address(facts.bgp_next_hop),
            vlan: some(parts.vlan),
            customer_vlan: some(parts.customer_vlan),
            label: (parts.label & MPLS != 0).then_some((parts.label & 0x00ff_ffff) >> 4),
            traffic_class: Some(parts.tos).filter(|class| *class != 0),
            packets: sums.packets,
            octets: sums.octets,
            packets_per_second: rates.packets,
            octets_per_second: rates.octets,
            start: time(sums.first),
            end: time(sums.last),
            tcp_flags: sums.tcp_flags,
        }
    }
}

impl Router {
    /// Flows that are under way, or sums of them. Queries the workers, and waits for them without the control side's lock.
    pub(crate) fn flows_view(&self, query: &FlowQuery) -> Result<Flows, ApiError> {
        let (meters, interface, now) = {
            let control = self.control();
            (
                control.ipfix.meters.clone(),
                query
                    .interface
                    .as_deref()
                    .map(|name| control.index_of(name)),
                control.ipfix.now(),
            )
        };
        let filter = FlowFilter {
            prefix: query.prefix,
            interface,
            port: query.port,
            protocol: query.protocol,
        };
        let order = match query.top {
            None => FlowOrder::None,
            Some(FlowMeasure::Octets) => FlowOrder::Octets,
            Some(FlowMeasure::Packets) => FlowOrder::Packets,
        };
        match query.group {
            Some(group) => {
                let grouping = Grouping {
                    by: group_by(group.by),
                    lengths: group.lengths,
                };
                let answers = self.answers(&meters, |number| {
                    Question::grouped(number, filter, grouping, now)
                })?;
                Ok(self.flow_groups(grouping, order, query.most, answers))
            }
            None => {
                let answers = self.answers(&meters, |number| {
                    Question::new(number, filter, order, query.most, now)
                })?;
                Ok(self.flow_list(filter, order, query.most, now, answers))
            }
        }
    }

    /// Sends a query to all workers; their answers, by worker.
    fn answers(
        &self,
        meters: &[MeterControl],
        question: impl Fn(u64) -> Question,
    ) -> Result<Vec<Answer>, ApiError> {
        let number = ASKED.fetch_add(1, Ordering::Relaxed);
        meters.iter().for_each(|meter| meter.ask(question(number)));
        let until = Instant::now() + PATIENCE;
        meters
            .iter()
            .enumerate()
            .map(|(worker, meter)| self.wait_for(worker, meter, number, until))
            .collect()
    }

    fn flow_list(
        &self,
        filter: FlowFilter,
        order: FlowOrder,
        most: usize,
        now: u64,
        answers: Vec<Answer>,
    ) -> Flows {
        let mut all = Vec::new();
        let mut matched = 0;
        for (worker, answer) in answers.into_iter().enumerate() {
            // A record that moved in a table that grew meanwhile was shown twice.
            let (mut seen, shown) = (HashSet::new(), answer.flows.len());
            let flows: Vec<_> = answer
                .flows
                .into_iter()
                .filter(|record| seen.insert(identity(record)))
                .collect();
            matched += answer.matched - (shown - flows.len()) as u64;
            all.extend(flows.into_iter().map(|record| {
                let rates = FlowRates::of(&record, now);
                (worker, record, rates)
            }));
        }
        let control = self.control();
        control.ipfix.with_recent(|recent, idle| {
            let mut present = HashSet::new();
            for (_, record, rates) in &mut all {
                present.insert(identity(record));
                if let Some(earlier) = recent.before(record, idle) {
                    *rates = FlowRates::new(
                        record.sums.packets + earlier.sums.packets,
                        record.sums.octets + earlier.sums.octets,
                        earlier.sums.first,
                        now,
                    );
                }
            }
            if order == FlowOrder::None {
                return;
            }
            // Flows whose next record has not begun, or has not enough packets to be among those of its worker.
            let just_left = recent.since(now.saturating_sub(GOES_ON));
            for record in just_left.filter(|record| filter.takes(record)) {
                if !present.contains(&identity(record)) {
                    let rates = FlowRates::of(record, now);
                    let mut record = *record;
                    (record.sums.packets, record.sums.octets) = (0, 0);
                    all.push((0, record, rates));
                }
            }
        });
        if order != FlowOrder::None {
            all.sort_by_key(|(_, _, rates)| std::cmp::Reverse(order.weight(*rates)));
        }
        all.truncate(most);
        control.ipfix.knows.with_completion(&mut |completion| {
            all.iter_mut()
                .for_each(|(_, record, _)| completion.complete(record))
        });
        Flows {
            flows: all
                .iter()
                .map(|(worker, record, rates)| control.flow_entry(*worker, record, *rates))
                .collect(),
            groups: Vec::new(),
            matched: matched.max(all.len() as u64),
        }
    }

    fn flow_groups(
        &self,
        grouping: Grouping,
        order: FlowOrder,
        most: usize,
        answers: Vec<Answer>,
    ) -> Flows {
        let control = self.control();
        let matched = answers.iter().map(|answer| answer.matched).sum();
        let (mut keys, mut other) = (HashMap::<GroupKey, GroupSums>::new(), GroupSums::default());
        for answer in answers {
            other.add(answer.other);
            for (key, sums) in answer.groups {
                keys.entry(key).or_default().add(sums);
            }
        }
        // Groups of several record sets have the same name.
        let mut names = HashMap::<Option<String>, GroupSums>::new();
        for (key, sums) in keys {
            let name = control.group_name(grouping, &key);
            names.entry(name).or_default().add(sums);
        }
        let group = |(group, sums): (Option<String>, GroupSums)| FlowGroup {
            group,
            flows: sums.flows,
            packets: sums.packets,
            octets: sums.octets,
            packets_per_second: sums.rates.packets,
            octets_per_second: sums.rates.octets,
        };
        let weight = |it: &FlowGroup| match order {
            FlowOrder::Packets => it.packets_per_second,
            FlowOrder::None | FlowOrder::Octets => it.octets_per_second,
        };
        let mut groups: Vec<FlowGroup> = names.into_iter().map(group).collect();
        groups.sort_by(|a, b| {
            weight(b)
                .cmp(&weight(a))
                .then_with(|| a.group.cmp(&b.group))
        });
        groups.truncate(most);
        if other.flows > 0 {
            groups.push(group((Some("other".to_owned()), other)));
        }
        Flows {
            flows: Vec::new(),
            groups,
            matched,
        }
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

fn group_by(by: FlowGroupBy) -> GroupBy {
    match by {
        FlowGroupBy::Source => GroupBy::Source,
        FlowGroupBy::Destination => GroupBy::Destination,
        FlowGroupBy::Host => GroupBy::Host,
        FlowGroupBy::Protocol => GroupBy::Protocol,
        FlowGroupBy::Input => GroupBy::Input,
        FlowGroupBy::Output => GroupBy::Output,
        FlowGroupBy::Status => GroupBy::Status,
    }
}

/// An address, or a prefix where not all bits count.
fn prefix(address: IpAddr, length: u8, width: u8) -> String {
    if length >= width {
        address.to_string()
    } else {
        format!("{address}/{length}")
    }
}

fn protocol_name(number: u128) -> String {
    match number {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        58 => "icmp6".to_owned(),
        other => other.to_string(),
    }
}

fn direction(direction: weir_config::MeterDirection) -> SflowDirection {
    match direction {
        weir_config::MeterDirection::Rx => SflowDirection::Rx,
        weir_config::MeterDirection::Tx => SflowDirection::Tx,
        weir_config::MeterDirection::Both => SflowDirection::Both,
    }
}
