//! sFlow in the assembly: samplers in the workers, one agent beside them, settings for both.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use weir_config::SflowEncoding;
use weir_flowfmt::sflow::encode::Encoding;
use weir_nodes::Tables;
use weir_ring::qsbr::{Published, Reader};
use weir_telemetry::agent::{Agent, AgentConfig, AgentHandle, AgentStats, Asked, Hop, InterfaceReport, Labels, Reports, Way, Ways};
use weir_telemetry::sampler::{SampleSource, Settings};

/// A function that tells the agent about interfaces.
pub(crate) type Reporter = Box<dyn Fn() -> Vec<InterfaceReport> + Send + Sync>;

/// What the agent asks: interface counters, from the control side once the router stands; and where
/// packets leave, from the tables that workers read, so that it never waits for a change.
pub(crate) struct ReportSource {
    reporter: RwLock<Option<Reporter>>,
    /// The agent's own view of the tables; nobody else locks it.
    reader: Mutex<Reader>,
    tables: Arc<Published<Tables>>,
}

impl ReportSource {
    pub(crate) fn new(reader: Reader, tables: Arc<Published<Tables>>) -> ReportSource {
        ReportSource { reporter: RwLock::default(), reader: Mutex::new(reader), tables }
    }

    pub(crate) fn set(&self, reporter: Option<Reporter>) {
        *self.reporter.write().unwrap_or_else(PoisonError::into_inner) = reporter;
    }
}

impl Reports for ReportSource {
    fn interfaces(&self) -> Vec<InterfaceReport> {
        let reporter = self.reporter.read().unwrap_or_else(PoisonError::into_inner);
        reporter.as_ref().map_or_else(Vec::new, |report| report())
    }

    fn with_ways(&self, work: &mut dyn FnMut(&dyn Ways)) {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.quiesce();
        match reader.guard() {
            Some(guard) => work(&TablesNow(self.tables.load(&guard))),
            None => work(&Nowhere),
        }
        // Tables are replaced without waiting for the agent, which may now rest.
        reader.offline();
    }
}

/// The tables of a moment.
struct TablesNow<'a>(&'a Tables);

impl Ways for TablesNow<'_> {
    fn way(&self, asked: &Asked<'_>) -> Way {
        let way = self.0.way(asked.input, asked.start, asked.departure);
        Way {
            input: way.input,
            output: way.output,
            tags: way.tags,
            hop: way.hop.map(|hop| Hop { next: hop.next, prefixes: hop.prefixes }),
            labels: (Labels::new(way.labels.0.entries()), Labels::new(way.labels.1.entries())),
        }
    }
}

/// No tables: only what the sample itself says.
struct Nowhere;

impl Ways for Nowhere {
    fn way(&self, asked: &Asked<'_>) -> Way {
        Way { input: asked.input, output: asked.departure.map_or(0, |(port, _)| port), ..Way::default() }
    }
}

/// The control side of sFlow.
pub(crate) struct SflowSide {
    pub(crate) settings: Arc<Settings>,
    pub(crate) config: weir_config::Sflow,
    pub(crate) agent_address: Option<IpAddr>,
    pub(crate) reports: Arc<ReportSource>,
    pub(crate) counters: Vec<Arc<weir_ring::Padded<weir_telemetry::sampler::SamplerCounters>>>,
    agent: Option<AgentHandle>,
    last: AgentStats,
}

impl SflowSide {
    /// Starts the agent with nothing to send to.
    pub(crate) fn start(settings: Arc<Settings>, sources: Vec<SampleSource>, reports: ReportSource) -> std::io::Result<SflowSide> {
        let config = weir_config::Sflow::default();
        let reports = Arc::new(reports);
        let counters = sources.iter().map(|source| source.counters.clone()).collect();
        let agent = Agent::start(agent_config(&config, None), sources, reports.clone())?;
        Ok(SflowSide { settings, config, agent_address: None, reports, counters, agent: Some(agent), last: AgentStats::default() })
    }

    /// Takes new settings; workers and agent see them at once.
    pub(crate) fn configure(&mut self, config: &weir_config::Sflow, agent: Option<IpAddr>) -> std::io::Result<()> {
        self.config = config.clone();
        self.agent_address = agent;
        if let Some(handle) = &self.agent {
            handle.reconfigure(agent_config(config, agent));
        }
        self.settings.set(config.sampling_rate, config.header_bytes);
        Ok(())
    }

    /// Own addresses changed: the agent may go by another one.
    pub(crate) fn agent_may_change(&mut self, agent: Option<IpAddr>) {
        if self.agent_address != agent {
            self.agent_address = agent;
            if let Some(handle) = &self.agent {
                handle.reconfigure(agent_config(&self.config, agent));
            }
        }
    }

    /// What the agent did.
    pub(crate) fn stats(&self) -> AgentStats {
        self.agent.as_ref().map_or_else(|| self.last.clone(), AgentHandle::stats)
    }

    /// Sends what is still there and ends the agent.
    pub(crate) fn stop(&mut self) {
        if let Some(handle) = self.agent.take() {
            self.last = handle.stop();
        }
    }
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
        collectors: config.collectors.iter().map(|collector| SocketAddr::new(collector.address, collector.port)).collect(),
    }
}
