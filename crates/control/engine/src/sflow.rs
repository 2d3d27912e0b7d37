//! sFlow in the assembly: samplers in the workers, one agent beside them, settings for both.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use weir_config::SflowEncoding;
use weir_flowfmt::sflow::encode::Encoding;
use weir_nodes::Tables;
use weir_ring::qsbr::{Published, Reader};
use weir_telemetry::agent::{
    Agent, AgentConfig, AgentHandle, AgentStats, Asked, Destination, DnsSd, Gateway, Hop, Indices,
    InterfaceReport, KernelPath, Labels, PathLookup, Reports, SampledPath, Target,
};
use weir_telemetry::discards::{DiscardSettings, DiscardSource};
use weir_telemetry::sampler::{SampleSource, Sampling, Settings};

use crate::bgp::BgpView;
use crate::router_path::{RouterEgress, router_path};

/// A function that tells the agent about interfaces.
pub(crate) type Reporter = Box<dyn Fn() -> Vec<InterfaceReport> + Send + Sync>;

/// What the agent asks: interface counters, from the control side once the router stands; and where
/// packets leave, from the tables that workers read, so that it never waits for a change.
pub(crate) struct ReportSource {
    reporter: RwLock<Option<Reporter>>,
    /// The agent's own view of the tables; nobody else locks it.
    reader: Mutex<Reader>,
    tables: Arc<Published<Tables>>,
    graph: RwLock<Graph>,
    bgp: BgpView,
}

/// The facts of the graph that are reported.
#[derive(Default)]
struct Graph {
    nodes: Vec<&'static str>,
    counters: Vec<Arc<weir_graph::WorkerCounters>>,
}

impl ReportSource {
    pub(crate) fn new(
        reader: Reader,
        tables: Arc<Published<Tables>>,
        bgp: BgpView,
    ) -> ReportSource {
        ReportSource {
            reporter: RwLock::default(),
            reader: Mutex::new(reader),
            tables,
            graph: RwLock::default(),
            bgp,
        }
    }

    /// The graph's nodes and the workers' counts of drops, once they are there.
    pub(crate) fn know(
        &self,
        nodes: Vec<&'static str>,
        counters: Vec<Arc<weir_graph::WorkerCounters>>,
    ) {
        *self.graph.write().unwrap_or_else(PoisonError::into_inner) = Graph { nodes, counters };
    }

    pub(crate) fn set(&self, reporter: Option<Reporter>) {
        *self
            .reporter
            .write()
            .unwrap_or_else(PoisonError::into_inner) = reporter;
    }
}

impl Reports for ReportSource {
    fn interfaces(&self) -> Vec<InterfaceReport> {
        let reporter = self.reporter.read().unwrap_or_else(PoisonError::into_inner);
        reporter.as_ref().map_or_else(Vec::new, |report| report())
    }

    fn dropped(&self) -> u64 {
        let graph = self.graph.read().unwrap_or_else(PoisonError::into_inner);
        graph
            .counters
            .iter()
            .map(|counters| counters.totals.dropped.get())
            .sum()
    }

    fn node(&self, number: u16) -> &'static str {
        let graph = self.graph.read().unwrap_or_else(PoisonError::into_inner);
        graph.nodes.get(usize::from(number)).copied().unwrap_or("?")
    }

    fn with_ways(&self, work: &mut dyn FnMut(&dyn PathLookup)) {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.quiesce();
        match reader.guard() {
            Some(guard) => work(&TablesNow(self.tables.load(&guard), &self.bgp)),
            None => work(&Nowhere),
        }
        // Tables are replaced without waiting for the agent, which may now rest.
        reader.offline();
    }
}

/// The tables of a moment.
struct TablesNow<'a>(&'a Tables, &'a BgpView);

impl PathLookup for TablesNow<'_> {
    fn way(&self, asked: &Asked<'_>) -> SampledPath {
        let way = self
            .0
            .way_of(asked.input, asked.start, asked.length, asked.departure);
        SampledPath {
            input: way.input,
            output: way.output,
            tags: way.tags,
            hop: way.hop.map(|hop| Hop {
                next: hop.next,
                prefixes: hop.prefixes,
            }),
            labels: (
                Labels::new(way.labels.0.entries()),
                Labels::new(way.labels.1.entries()),
            ),
        }
    }

    fn gateway(&self, asked: &Asked<'_>, way: &SampledPath) -> Option<Gateway> {
        self.1.gateway(self.0, asked, way)
    }
}

/// No tables: only what the sample itself says.
struct Nowhere;

impl PathLookup for Nowhere {
    fn way(&self, asked: &Asked<'_>) -> SampledPath {
        SampledPath {
            input: asked.input,
            output: asked.departure.map_or(0, |(port, _)| port),
            ..SampledPath::default()
        }
    }
}

/// What workers' taps go by.
#[derive(Clone)]
pub(crate) struct SflowSettings {
    pub(crate) sampling: Arc<Settings>,
    pub(crate) discards: Arc<DiscardSettings>,
}

impl Default for SflowSettings {
    /// Nothing is sampled, no discard is reported.
    fn default() -> SflowSettings {
        SflowSettings {
            sampling: Settings::new(0, 128),
            discards: Arc::default(),
        }
    }
}

/// The cold ends of a worker's taps.
pub(crate) struct TapEnds {
    pub(crate) samples: SampleSource,
    pub(crate) discards: DiscardSource,
}

/// The control side of sFlow.
pub(crate) struct SflowSide {
    settings: SflowSettings,
    pub(crate) config: weir_config::Sflow,
    pub(crate) agent_address: Option<IpAddr>,
    /// Whether it was said that there is none.
    nameless: bool,
    pub(crate) reports: Arc<ReportSource>,
    pub(crate) counters: Vec<Arc<weir_ring::Padded<weir_telemetry::sampler::SamplerCounters>>>,
    /// Interfaces that are sampled in another way than usual, and how often their counters are reported.
    others: BTreeMap<u32, Sampling>,
    polling: BTreeMap<u32, u32>,
    /// The Linux interfaces that they are paired with.
    pairs: BTreeMap<u32, u32>,
    /// Interfaces that were made so far.
    made: u64,
    agent: Option<AgentHandle>,
    /// The router's own forwarding, for datagrams to collectors.
    pub(crate) egress: Option<Arc<RouterEgress>>,
    last: AgentStats,
}

impl SflowSide {
    /// Starts the agent with nothing to send to.
    pub(crate) fn start(
        settings: SflowSettings,
        ends: Vec<TapEnds>,
        reports: ReportSource,
    ) -> std::io::Result<SflowSide> {
        let (sources, discarded): (Vec<_>, _) = ends
            .into_iter()
            .map(|ends| (ends.samples, ends.discards))
            .unzip();
        let config = weir_config::Sflow::default();
        let reports = Arc::new(reports);
        let counters = sources
            .iter()
            .map(|source| source.counters.clone())
            .collect();
        let agent = Agent::start(agent_config(&config, None), sources, reports.clone())?;
        agent.add_discards(discarded);
        Ok(SflowSide {
            settings,
            config,
            agent_address: None,
            nameless: false,
            reports,
            counters,
            others: BTreeMap::new(),
            polling: BTreeMap::new(),
            pairs: BTreeMap::new(),
            made: 0,
            agent: Some(agent),
            egress: None,
            last: AgentStats::default(),
        })
    }

    /// Takes new settings; workers and agent see them at once.
    /// The agent first, so that no sample is reported with the previous settings.
    pub(crate) fn configure(
        &mut self,
        config: &weir_config::Sflow,
        agent: Option<IpAddr>,
        index_of: impl Fn(&str) -> Option<u32>,
    ) {
        self.config = config.clone();
        self.agent_address = self.or_the_machines(agent);
        self.number(index_of);
        self.tell_agent();
        self.settings
            .sampling
            .set(config.sampling_rate, config.header_bytes);
        self.settings
            .discards
            .set(config.drop_limit, config.header_bytes);
    }

    /// Interfaces have these numbers now: settings of single interfaces are kept by number.
    /// Called for each before it is sampled.
    pub(crate) fn number(&mut self, index_of: impl Fn(&str) -> Option<u32>) {
        let numbers: BTreeMap<u32, String> = self
            .config
            .interfaces
            .keys()
            .filter_map(|name| Some((index_of(name)?, name.clone())))
            .collect();
        let sampling = |name: &String| Sampling {
            rate: self.config.rate_of(name),
            header: self.config.header_of(name),
        };
        let others: BTreeMap<u32, Sampling> = numbers
            .iter()
            .map(|(&index, name)| (index, sampling(name)))
            .collect();
        let polling: BTreeMap<u32, u32> = numbers
            .iter()
            .map(|(&index, name)| (index, self.config.polling_of(name)))
            .collect();
        let pairs = numbers
            .iter()
            .filter_map(|(&index, name)| Some((index, self.config.os_index_of(name)?)))
            .collect();
        if (&polling, &pairs) != (&self.polling, &self.pairs) {
            (self.polling, self.pairs) = (polling, pairs);
            self.tell_agent();
        }
        if others != self.others {
            self.settings.sampling.set_others(others.clone());
            self.others = others;
        }
    }

    fn tell_agent(&self) {
        if let Some(handle) = &self.agent {
            let polling_intervals = self.polling.clone();
            handle.reconfigure(AgentConfig {
                polling_intervals,
                indices: self.indices(),
                collectors: self
                    .config
                    .collectors
                    .iter()
                    .map(|collector| destination(collector, &self.egress))
                    .collect(),
                ..agent_config(&self.config, self.agent_address)
            });
        }
    }

    /// By which numbers interfaces are reported.
    pub(crate) fn indices(&self) -> Indices {
        Indices {
            pairs: self.pairs.clone(),
            linux: self.config.os_index,
            offset: self.config.if_offset,
        }
    }

    /// Own addresses changed: the agent may go by another one.
    pub(crate) fn agent_may_change(&mut self, agent: Option<IpAddr>) {
        let agent = self.or_the_machines(agent);
        if self.agent_address != agent {
            self.agent_address = agent;
            self.tell_agent();
        }
        let nameless = is_nameless(&self.config, agent);
        if nameless && !self.nameless {
            tracing::warn!(
                "sFlow: neither this router nor its machine has an address to go by, so that datagrams have the agent address 0.0.0.0 and collectors may confuse routers; set sflow.agent"
            );
        }
        self.nameless = nameless;
    }

    /// A router that bridges and crosses alone has no address, and goes by one of its machine.
    fn or_the_machines(&self, agent: Option<IpAddr>) -> Option<IpAddr> {
        if !is_nameless(&self.config, agent) {
            return agent;
        }
        let found = weir_netlink::route::Route::open().and_then(|mut route| route.addresses());
        match found {
            Ok(addresses) => self
                .config
                .machines_agent(addresses.iter().map(|it| (it.index, it.address))),
            Err(error) => {
                tracing::warn!("sFlow: what addresses this machine has is not known: {error}");
                None
            }
        }
    }

    /// An interface is being made; returns what distinguishes it from earlier ones of its number. Called before it is sampled.
    pub(crate) fn interface_made(&mut self, index: u32) -> u64 {
        self.made += 1;
        if let Some(handle) = &self.agent {
            handle.interface_made(index, self.made);
        }
        self.made
    }

    /// What the agent did.
    pub(crate) fn stats(&self) -> AgentStats {
        self.agent
            .as_ref()
            .map_or_else(|| self.last.clone(), AgentHandle::stats)
    }

    /// Sends what is still there and ends the agent.
    pub(crate) fn stop(&mut self) {
        if let Some(handle) = self.agent.take() {
            self.last = handle.stop();
        }
    }
}

/// Whether samples are sent at all.
fn is_nameless(config: &weir_config::Sflow, agent: Option<IpAddr>) -> bool {
    agent.is_none() && (!config.collectors.is_empty() || config.dns_sd.is_some())
}

fn agent_config(config: &weir_config::Sflow, agent: Option<IpAddr>) -> AgentConfig {
    AgentConfig {
        address: agent.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        sub_id: config.agent_sub_id,
        encoding: match config.encoding {
            SflowEncoding::Expanded => Encoding::Expanded,
            SflowEncoding::Compact => Encoding::Compact,
        },
        datagram_bytes: usize::from(config.datagram_bytes),
        polling_interval: config.polling_interval,
        polling_intervals: BTreeMap::new(),
        drop_limit: config.drop_limit,
        collectors: Vec::new(),
        host: Some(PathBuf::from("/")),
        dns_sd: config.dns_sd.as_ref().map(|wanted| DnsSd {
            domain: wanted.domain.clone(),
            servers: Vec::new(),
        }),
        indices: Indices::default(),
        kernel: config.psample.as_ref().map(kernel_path),
    }
}

fn destination(
    collector: &weir_config::Collector,
    egress: &Option<Arc<RouterEgress>>,
) -> Destination {
    let target = Target {
        host: collector.address.to_string(),
        port: collector.port,
        namespace: collector.namespace.clone(),
        source: collector.source,
        dscp: collector.dscp,
        device: collector.dev.clone(),
        table: collector.table.clone(),
        through_host: collector.host,
        router: router_path(egress),
    };
    Destination {
        target,
        drops: collector.drops,
    }
}

fn kernel_path(wanted: &weir_config::Psample) -> KernelPath {
    KernelPath {
        group: wanted.group,
        egress_group: wanted.egress_group,
        namespace: wanted.namespace.clone(),
    }
}
