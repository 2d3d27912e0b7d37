//! IPFIX in the assembly: meters in the workers, one exporter beside them, settings for both.
//!
//! Tables are made when the first interface is to be metered, of the size that is wanted then, and taken away with the last
//! one; their flows are exported before. The exporter runs from the first table on until the router stops.
//!
//! **Record sets have numbers**, which travel in the flows' keys. A set keeps its number as long as it means the same, and
//! what it was is known to the exporter for longer than flows live that were metered by it.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir_api::FlowWorker;
use weir_config::{IpfixCollector, IpfixTransport, IpfixVersion};
use weir_flowfmt::ipfix::Version;
use weir_nodes::{FlowEnds, FlowPath, Tables};
use weir_ring::Padded;
use weir_ring::qsbr::{Published, Reader};
use weir_telemetry::agent::Target;
use weir_telemetry::exporter::recent::Recent;
use weir_telemetry::exporter::{
    CollectorConfig, Complete, Epoch, Exporter, ExporterConfig, ExporterHandle, ExporterStats,
    FlowSource, Knows, Named, RecordSet, RecordSets, TlsSettings, Transport,
};
use weir_telemetry::flows::key::{Kind, MOST_SETS, Parts};
use weir_telemetry::flows::record::MPLS;
use weir_telemetry::flows::{Counts, FlowRecord, Selection, Settings, Table};
use weir_telemetry::meter::{MeterControl, MeterPlan, MeterSettings, Metered};

use crate::bgp::{BgpView, RoutedEnds};
use crate::clock::Clock;
use crate::flow_views::add_counts;
use crate::router_path::{RouterEgress, router_path};

/// Records of a worker that wait for the exporter at most.
const RING: usize = 1 << 14;
/// Octets that a flow takes in a table, at most: record, index and clock.
const FLOW: u64 = 280;

/// What the exporter asks: names, from a copy that the control side keeps; and where flows went, from the tables that
/// workers read.
pub(crate) struct FlowKnows {
    names: RwLock<Names>,
    /// Numbers of tables, by their places.
    numbers: RwLock<Vec<u32>>,
    /// The exporter's own view of the tables; nobody else locks it for long.
    reader: Mutex<Reader>,
    tables: Arc<Published<Tables>>,
    meters: Vec<MeterControl>,
    clock: Clock,
    /// By group: for which resolved next hop packets take each of its adjacencies.
    next_hops: RwLock<HashMap<u32, Vec<(u32, IpAddr)>>>,
    bgp: BgpView,
}

impl FlowKnows {
    /// The next hops of a group that are resolved, by adjacency; none when they are not, or the group is gone.
    pub(crate) fn set_next_hops(&self, group: u32, next_hops: Vec<(u32, IpAddr)>) {
        let mut all = self
            .next_hops
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        match next_hops.is_empty() {
            true => drop(all.remove(&group)),
            false => drop(all.insert(group, next_hops)),
        }
    }
}

/// What options tell by name.
#[derive(Default, PartialEq, Eq)]
struct Names {
    interfaces: Vec<Named>,
    vrfs: Vec<Named>,
}

impl Knows for FlowKnows {
    fn clock(&self) -> Option<u64> {
        Some(self.clock.now())
    }

    fn interfaces(&self) -> Vec<Named> {
        self.names
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .interfaces
            .clone()
    }

    fn vrfs(&self) -> Vec<Named> {
        self.names
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .vrfs
            .clone()
    }

    fn ignored(&self) -> (u64, u64) {
        let counters = self.meters.iter().map(MeterControl::counters);
        counters.fold((0, 0), |(packets, octets), it| {
            (
                packets + it.ignored_packets.get(),
                octets + it.ignored_octets.get(),
            )
        })
    }

    fn with_completion(&self, work: &mut dyn FnMut(&dyn Complete)) {
        let next_hops = self
            .next_hops
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let numbers = self.numbers.read().unwrap_or_else(PoisonError::into_inner);
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.quiesce();
        match reader.guard() {
            Some(guard) => work(&TablesNow {
                tables: Some(self.tables.load(&guard)),
                next_hops: &next_hops,
                numbers: &numbers,
                bgp: &self.bgp,
            }),
            None => work(&TablesNow {
                tables: None,
                next_hops: &next_hops,
                numbers: &numbers,
                bgp: &self.bgp,
            }),
        }
        reader.offline();
    }
}

/// The tables of a moment.
struct TablesNow<'a> {
    tables: Option<&'a Tables>,
    next_hops: &'a HashMap<u32, Vec<(u32, IpAddr)>>,
    numbers: &'a [u32],
    bgp: &'a BgpView,
}

impl TablesNow<'_> {
    /// The next hop of the route, where that was resolved to the one that packets are handed to (RFC 4271, 5.1.3).
    fn resolved(&self, way: &FlowPath) -> Option<IpAddr> {
        let (group, adjacency) = way.path?;
        let (_, next_hop) = self
            .next_hops
            .get(&group)?
            .iter()
            .find(|(end, _)| *end == adjacency)?;
        Some(*next_hop)
    }
}

impl Complete for TablesNow<'_> {
    fn complete(&self, record: &mut FlowRecord) {
        let Some(tables) = self.tables else { return };
        let parts = record.key.parts();
        let whole = record.sums.fragment & 0x20 == 0;
        let (is_labelled, label) = (parts.label & MPLS != 0, parts.label & !MPLS);
        let way = tables.way_of_flow(&FlowEnds {
            seen_at: if parts.egress {
                parts.output
            } else {
                parts.input
            },
            output: if parts.status == 0 { parts.output } else { 0 },
            vlans: (parts.vlan, parts.customer_vlan),
            // What it leaves with was pushed here.
            top: (is_labelled && !parts.egress).then_some(label),
            ends: addresses(&parts),
            protocol: parts.protocol,
            ports: whole.then_some((parts.source_port, parts.destination_port)),
            label: (!is_labelled).then_some(label),
        });
        record.vrf = self.numbers.get(way.table as usize).copied().unwrap_or(0);
        let facts = &mut record.facts;
        (facts.source_prefix, facts.destination_prefix) = way.prefixes.unwrap_or_default();
        facts.next_hop = way.next.map_or([0; 16], sixteen);
        let resolved = self.resolved(&way);
        facts.bgp_next_hop = resolved.map_or([0; 16], sixteen);
        if way.table == 0
            && let (Some(ends), Some(prefixes)) = (addresses(&parts), way.prefixes)
        {
            record.numbers = self.bgp.numbers(&RoutedEnds {
                ends,
                prefixes,
                next_hop: resolved.or(way.next),
            });
        }
    }
}

/// The addresses of an IP flow.
pub(crate) fn addresses(parts: &Parts) -> Option<(IpAddr, IpAddr)> {
    let address = |octets: [u8; 16]| match parts.kind {
        Kind::Ip4 => Some(IpAddr::from([
            octets[12], octets[13], octets[14], octets[15],
        ])),
        Kind::Ip6 => Some(IpAddr::from(octets)),
        Kind::L2 => None,
    };
    address(parts.source).zip(address(parts.destination))
}

/// IPv4 in the last four octets.
fn sixteen(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)).to_be_bytes(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// A record set as it is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NumberedSet {
    pub(crate) name: String,
    /// Elements, and names of sets that are always there.
    pub(crate) parts: Vec<String>,
    /// The sampling rate of its flows, where that is not the one of the section.
    pub(crate) rate: Option<u32>,
}

impl NumberedSet {
    /// As the configuration has it. Records of a set with a rate of its own have the rate.
    fn new(config: &weir_config::Ipfix, name: &str, rate: Option<u32>) -> NumberedSet {
        let mut parts = config.parts_of(name);
        if rate.is_some() {
            parts.extend(weir_config::RATE_ELEMENTS.map(str::to_owned));
        }
        NumberedSet {
            name: name.to_owned(),
            parts,
            rate,
        }
    }

    /// Its elements; `None` when the exporter has no such set.
    pub(crate) fn records(&self) -> Option<RecordSet> {
        RecordSet::new(self.parts.iter().map(String::as_str)).ok()
    }
}

/// Record sets by number.
#[derive(Default)]
struct SetNumbers {
    sets: Vec<NumberedSet>,
    /// Where the next one goes that takes another's place.
    next: usize,
}

impl SetNumbers {
    /// The number of a set; one that is not in use gives its place up if it must.
    fn of(&mut self, set: NumberedSet, in_use: &[NumberedSet]) -> u8 {
        if let Some(place) = self.sets.iter().position(|it| *it == set) {
            return place as u8;
        }
        if self.sets.len() < MOST_SETS {
            self.sets.push(set);
            return self.sets.len() as u8 - 1;
        }
        for _ in 0..MOST_SETS {
            self.next = (self.next + 1) % MOST_SETS;
            if !in_use.contains(&self.sets[self.next]) {
                break;
            }
        }
        self.sets[self.next] = set;
        self.next as u8
    }
}

/// The control side of IPFIX.
pub(crate) struct IpfixSide {
    pub(crate) config: weir_config::Ipfix,
    settings: Arc<MeterSettings>,
    pub(crate) meters: Vec<MeterControl>,
    /// What the tables count, by worker; those that were replaced are among them until their last record is out.
    pub(crate) counts: Vec<Vec<Arc<Padded<Counts>>>>,
    /// What tables counted that are gone, by worker.
    pub(crate) past: Vec<FlowWorker>,
    pub(crate) knows: Arc<FlowKnows>,
    sets: SetNumbers,
    plan: MeterPlan,
    /// Flows that the tables hold which workers have now.
    size: Option<u32>,
    clock: Clock,
    seed: u64,
    exporter: Option<ExporterHandle>,
    /// The router's own forwarding, for datagrams to collectors.
    egress: Option<Arc<RouterEgress>>,
    /// The configuration that the exporter got last, and its last reply.
    sent: Option<Sent>,
    last: ExporterStats,
}

/// What the exporter's configuration is made of.
#[derive(Clone, PartialEq, Eq)]
struct Sent {
    config: weir_config::Ipfix,
    sets: Vec<NumberedSet>,
}

impl IpfixSide {
    pub(crate) fn new(
        settings: Arc<MeterSettings>,
        meters: Vec<MeterControl>,
        reader: Reader,
        tables: Arc<Published<Tables>>,
        clock: Clock,
        seed: u64,
        bgp: BgpView,
    ) -> IpfixSide {
        let (names, numbers, next_hops) = (RwLock::default(), RwLock::default(), RwLock::default());
        let knows = FlowKnows {
            names,
            numbers,
            reader: Mutex::new(reader),
            tables,
            meters: meters.clone(),
            clock: clock.clone(),
            next_hops,
            bgp,
        };
        IpfixSide {
            config: weir_config::Ipfix::default(),
            settings,
            counts: meters.iter().map(|_| Vec::new()).collect(),
            past: meters.iter().map(|_| FlowWorker::default()).collect(),
            meters,
            knows: Arc::new(knows),
            sets: SetNumbers::default(),
            plan: MeterPlan::default(),
            size: None,
            clock,
            seed,
            exporter: None,
            egress: None,
            sent: None,
            last: ExporterStats::default(),
        }
    }

    /// With the router's own forwarding for datagrams to collectors.
    pub(crate) fn with_egress(self, egress: Option<Arc<RouterEgress>>) -> IpfixSide {
        IpfixSide { egress, ..self }
    }

    /// Takes new settings: tables of the size that is wanted, if any flow is to be metered.
    pub(crate) fn configure(&mut self, config: &weir_config::Ipfix) -> Result<(), String> {
        let wanted = (!config.interfaces.is_empty()).then_some(config.flows);
        if wanted != self.size {
            self.resize(wanted)?;
        }
        self.config = config.clone();
        Ok(())
    }

    fn resize(&mut self, wanted: Option<u32>) -> Result<(), String> {
        if let Some(flows) = wanted {
            let needed = FLOW * u64::from(flows) * self.meters.len() as u64;
            if let Some(there) = memory_available()
                && needed > there
            {
                let (needed, there) = (needed >> 20, there >> 20);
                return Err(format!(
                    "tables of {flows} flows need {needed} MiB, and {there} MiB are free; lower `ipfix.flows`"
                ));
            }
        }
        let mut sources = Vec::new();
        for (meter, counts) in self.meters.iter().zip(&mut self.counts) {
            let Some(flows) = wanted else {
                meter.give(None);
                continue;
            };
            self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let nanoseconds = |seconds: u16| u64::from(seconds) * 1_000_000_000;
            let settings = Settings {
                flows: flows as usize,
                active: nanoseconds(self.config.active_timeout),
                idle: nanoseconds(self.config.idle_timeout),
                ring: RING,
            };
            let (table, ring) = Table::new(settings, self.seed);
            sources.push(FlowSource {
                ring,
                counts: table.counts().clone(),
            });
            counts.push(table.counts().clone());
            meter.give(Some(Box::new(table)));
        }
        self.size = wanted;
        if sources.is_empty() {
            return Ok(());
        }
        match &self.exporter {
            Some(exporter) => exporter.add_sources(sources),
            None => {
                let exporter = Exporter::start(self.exporter_config(), sources, self.knows.clone());
                self.exporter =
                    Some(exporter.map_err(|error| format!("the exporter cannot start: {error}"))?);
                self.sent = None;
            }
        }
        Ok(())
    }

    /// Interfaces have these numbers and names now: `index_of` tells the first.
    pub(crate) fn number(
        &mut self,
        config: &weir_config::Config,
        index_of: impl Fn(&str) -> Option<u32>,
    ) {
        let sets: Vec<NumberedSet> = self
            .config
            .metered_by()
            .into_iter()
            .map(|(name, rate)| NumberedSet::new(&self.config, name, rate))
            .collect();
        let nanoseconds = |seconds: u16| u64::from(seconds) * 1_000_000_000;
        let mut plan = MeterPlan {
            active: nanoseconds(self.config.active_timeout),
            idle: nanoseconds(self.config.idle_timeout),
            ..MeterPlan::default()
        };
        for (name, metered) in &self.config.interfaces {
            let Some(index) = index_of(name) else {
                continue;
            };
            let own = self.config.own_rate(metered);
            let set = NumberedSet::new(&self.config, &metered.records, own);
            let Some(records) = set.records() else {
                continue;
            };
            let number = self.sets.of(set, &sets);
            let select = |egress| Metered {
                selection: Selection::new(records.elements(), number, egress),
                sampling: own.unwrap_or(self.config.sampling_rate),
            };
            if metered.direction.rx() {
                plan.rx.insert(index, select(false));
            }
            if metered.direction.tx() {
                plan.tx.insert(index, select(true));
            }
        }
        if plan != self.plan {
            self.settings.set(plan.clone());
            self.plan = plan;
        }
        let named = |(name, it): (&String, &weir_config::Interface)| {
            Some(Named {
                number: index_of(name)?,
                name: name.clone(),
                description: it.description.clone().unwrap_or_default(),
            })
        };
        let interfaces = config.interfaces.iter().filter_map(named).collect();
        self.knows
            .names
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .interfaces = interfaces;
        self.tell_exporter();
    }

    /// Tables have these names and numbers now, by their places; those of the default one are known.
    pub(crate) fn name_tables(&mut self, tables: &[Option<weir_control::Table>]) {
        let of = |table: &weir_control::Table| Named {
            number: table.number,
            name: table
                .name
                .as_deref()
                .unwrap_or(weir_config::DEFAULT_TABLE)
                .to_owned(),
            description: String::new(),
        };
        let mut vrfs: Vec<Named> = tables.iter().flatten().map(of).collect();
        vrfs.sort_by_key(|vrf| vrf.number);
        self.knows
            .names
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .vrfs = vrfs;
        let numbers = tables
            .iter()
            .map(|table| table.as_ref().map_or(0, |table| table.number))
            .collect();
        if let Some(egress) = &self.egress {
            let named = tables.iter().enumerate().filter_map(|(place, table)| {
                Some((table.as_ref()?.name.as_deref()?.to_owned(), place as u32))
            });
            egress.set_tables(named.collect());
        }
        *self
            .knows
            .numbers
            .write()
            .unwrap_or_else(PoisonError::into_inner) = numbers;
    }

    fn tell_exporter(&mut self) {
        let sent = Sent {
            config: self.config.clone(),
            sets: self.sets.sets.clone(),
        };
        if let Some(exporter) = &self.exporter
            && self.sent.as_ref() != Some(&sent)
        {
            exporter.reconfigure(self.exporter_config());
            self.sent = Some(sent);
        }
    }

    fn exporter_config(&self) -> ExporterConfig {
        let config = &self.config;
        ExporterConfig {
            domain: config.domain,
            refresh: Duration::from_secs(config.template_interval.into()),
            sampling: config.sampling_rate,
            rates: self.rates(),
            active: Duration::from_secs(config.active_timeout.into()),
            idle: Duration::from_secs(config.idle_timeout.into()),
            biflow: config.biflow,
            rate: config.rate,
            epoch: Epoch::default(),
            collectors: config
                .collectors
                .iter()
                .map(|collector| self.collector(collector))
                .collect(),
        }
    }

    /// Sampling rates of record sets, where they are not the one of the section.
    fn rates(&self) -> BTreeMap<u8, u32> {
        let numbered = (0..).zip(&self.sets.sets);
        numbered
            .filter_map(|(number, set)| Some((number, set.rate?)))
            .collect()
    }

    fn collector(&self, collector: &IpfixCollector) -> CollectorConfig {
        let wants = |name: &str| {
            collector.records.is_empty() || collector.records.iter().any(|wanted| wanted == name)
        };
        let sets = (0..).zip(&self.sets.sets);
        let sets = sets
            .filter(|(_, set)| wants(&set.name))
            .filter_map(|(number, set)| Some((number, set.records()?)));
        let none = || TlsSettings {
            name: String::new(),
            roots: PathBuf::new(),
            identity: None,
        };
        CollectorConfig {
            target: Target {
                namespace: collector.namespace.clone(),
                source: collector.source,
                dscp: collector.dscp,
                device: collector.dev.clone(),
                table: collector.table.clone(),
                through_host: collector.host,
                router: router_path(&self.egress),
                ..Target::new(collector.address.to_string(), collector.port)
            },
            transport: match collector.transport {
                IpfixTransport::Udp => Transport::Udp,
                IpfixTransport::Tcp => Transport::Tcp,
                IpfixTransport::Tls => {
                    Transport::Tls(collector.tls.as_ref().map_or_else(none, |tls| TlsSettings {
                        name: tls.name.clone(),
                        roots: tls.ca.clone(),
                        identity: tls.certificate.clone().zip(tls.key.clone()),
                    }))
                }
            },
            version: match collector.version {
                IpfixVersion::Ipfix => Version::Ipfix,
                IpfixVersion::Netflow9 => Version::NetFlow9,
            },
            records: RecordSets(sets.collect()),
            mtu: collector.mtu,
            queue: (collector.queue as usize) << 10,
        }
    }

    /// Record sets by their numbers.
    pub(crate) fn sets(&self) -> &[NumberedSet] {
        &self.sets.sets
    }

    /// Nanoseconds since 1970 when the router's clock was 0.
    pub(crate) fn wall(&self) -> u64 {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        u64::try_from(now)
            .unwrap_or(u64::MAX)
            .saturating_sub(self.clock.now())
    }

    /// The router's clock.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Does `work` with the records that left because of the active timeout, and the nanoseconds after which a silent flow is over.
    pub(crate) fn with_recent(&self, work: impl FnOnce(&Recent, u64)) {
        let idle = u64::from(self.config.idle_timeout) * 1_000_000_000;
        if let Some(exporter) = &self.exporter {
            exporter.with_recent(|recent| work(recent, idle));
        }
    }

    /// The names of record sets by their numbers.
    pub(crate) fn set_name(&self, number: u8) -> &str {
        self.sets
            .sets
            .get(usize::from(number))
            .map_or("?", |set| &set.name)
    }

    /// What the exporter did.
    pub(crate) fn stats(&self) -> ExporterStats {
        self.exporter
            .as_ref()
            .map_or_else(|| self.last.clone(), ExporterHandle::stats)
    }

    /// Frees tables that are not in use any more, and keeps the sums of what they counted.
    pub(crate) fn tidy(&mut self) {
        self.meters.iter().for_each(|meter| {
            meter.tidy();
        });
        for (counts, past) in self.counts.iter_mut().zip(&mut self.past) {
            // Neither a table nor the exporter has it any more.
            counts
                .extract_if(.., |counts| Arc::strong_count(counts) == 1)
                .for_each(|counts| add_counts(past, &counts));
        }
    }

    /// Every flow leaves, with the reason that it was forced to; their records go out within this time.
    pub(crate) fn end(&self, time: Duration) {
        if let Some(exporter) = &self.exporter {
            let resident = self.counts.iter().flatten().map(|it| it.resident.get());
            exporter.hurry(resident.sum(), time);
        }
        self.meters.iter().for_each(MeterControl::end);
    }

    /// Sends what is still there and ends the exporter.
    pub(crate) fn stop(&mut self) {
        if let Some(exporter) = self.exporter.take() {
            self.last = exporter.stop();
        }
    }
}

/// Octets of memory that can be had without swapping, as the kernel says (proc(5), `MemAvailable`).
fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(
        line.trim()
            .strip_suffix(" kB")?
            .trim()
            .parse::<u64>()
            .ok()?
            << 10,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_flowfmt::ipfix::elements::by_name;
    use weir_flowfmt::ipfix::template::{Field, Space, Template};

    /// The configuration knows of elements and sets what the exporter does.
    #[test]
    fn elements_and_sets_are_the_exporters() {
        for (name, octets, shapes) in weir_config::IPFIX_ELEMENTS {
            // Records of IPv4 by IPv6 are there for the sake of a next hop of IPv6.
            let hop = "ipNextHopIPv6Address";
            let of = |names: &[&str]| {
                RecordSet::new(names.iter().copied())
                    .unwrap_or_else(|error| panic!("{error}"))
                    .lengths()
            };
            let [ip4, ip6, l2, _] = of(&[*name]);
            let [.., by_ip6] = of(&[*name, hop]);
            let by_ip6 = by_ip6
                .map(|sum| if *name == hop { sum } else { sum - 16 })
                .filter(|sum| *sum > 0);
            let expected: Vec<Option<u16>> =
                shapes.iter().map(|has| has.then_some(*octets)).collect();
            assert_eq!([ip4, ip6, l2, by_ip6].as_slice(), expected, "{name}");
        }
        assert_eq!(
            RecordSet::measured().count(),
            weir_config::IPFIX_ELEMENTS.len()
        );
        for (name, elements) in weir_config::RECORD_SETS
            .iter()
            .zip(weir_config::SET_ELEMENTS)
        {
            let numbers: Vec<u16> = elements
                .iter()
                .map(|element| by_name(element).unwrap().number)
                .collect();
            assert_eq!(
                RecordSet::new([*name]).unwrap().elements(),
                numbers,
                "{name}"
            );
        }
    }

    /// What the configuration takes for the longest template and record is what the exporter makes, of both directions too.
    #[test]
    fn lengths_are_the_exporters() {
        for (set, biflow) in weir_config::RECORD_SETS
            .iter()
            .flat_map(|set| [(*set, false), (*set, true)])
        {
            let plan = weir_telemetry::exporter::fields::Plan::new(
                &RecordSet::new([set]).unwrap(),
                Version::Ipfix,
                0,
            );
            let config = weir_config::Ipfix {
                biflow,
                ..weir_config::Ipfix::default()
            };
            let specifiers = |field: &Field| if field.space == Space::Iana { 4 } else { 8 };
            let of = |template: &Template| {
                16 + 4 + 4 + template.fields.iter().map(specifiers).sum::<u32>()
            };
            let template = plan.templates(biflow).map(of).max().unwrap();
            let record = plan
                .templates(biflow)
                .map(|template| 16 + 4 + template.fixed().unwrap() as u32)
                .max()
                .unwrap();
            assert_eq!(
                config.longest(set, IpfixVersion::Ipfix),
                (template, record),
                "{set} {biflow}"
            );
        }
    }

    #[test]
    fn sets_keep_their_numbers() {
        let mut numbers = SetNumbers::default();
        let set = |number: u32| NumberedSet {
            name: format!("s{}", number / 2),
            parts: vec!["5-tuple".to_owned()],
            rate: (number % 2 == 1).then_some(number),
        };
        for number in 0..16 {
            assert_eq!(u32::from(numbers.of(set(number), &[])), number);
        }
        let in_use: Vec<_> = (0..16).filter(|number| *number != 7).map(set).collect();
        assert_eq!(numbers.of(set(40), &in_use), 7);
        assert_eq!(numbers.of(set(3), &in_use), 3);
    }
}
