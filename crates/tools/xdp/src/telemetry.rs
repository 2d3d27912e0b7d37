//! Samples and drops of the programs, through the router's own sFlow agent.
//!
//! The daemon's thread takes events out of the programs' ring and puts them into rings of the agent's
//! (`weir-telemetry`), which numbers them, adds counter samples and notifications of drops, and sends datagrams in a
//! thread of its own. Nothing here waits for a collector.
//!
//! The programs draw the gap between two samples from a table of quantiles of the geometric distribution, so that each
//! packet has the same chance whatever was sampled before. Pools are added up over CPUs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use weir_graph::PacketOutcome;
use weir_telemetry::agent::{Agent, AgentConfig, AgentHandle, Reports};
use weir_telemetry::discards::{DiscardSettings, DiscardTap, FedDiscard};
use weir_telemetry::sampler::{Fed, Feed};

use crate::abi::{DROP_WINDOW, Event, GAPS};
use crate::config::Sflow;
use crate::reason;

/// Names of the programs, by [`Event::stage`].
pub const STAGES: [&str; 2] = ["xdp-ingress", "xdp-egress"];
const SAMPLE: u32 = 1;
const DROP: u32 = 2;

/// The gaps that the programs draw from, for one packet in `rate`.
pub fn gaps(rate: u32) -> impl Iterator<Item = u32> {
    let scale = if rate <= 1 {
        0.0
    } else {
        (-1.0 / f64::from(rate)).ln_1p()
    };
    (0..GAPS).map(move |index| {
        if rate <= 1 {
            return 1;
        }
        let chance = (f64::from(index) + 0.5) / f64::from(GAPS);
        ((-chance).ln_1p() / scale).ceil().max(1.0) as u32
    })
}

/// Events of drops that a port's programs make on each CPU in a window, when `limit` a second are reported.
#[must_use]
pub fn drop_budget(limit: u32) -> u32 {
    let share = u64::from(limit) * DROP_WINDOW / 1_000_000_000;
    if limit == 0 {
        0
    } else {
        share.clamp(1, 1000) as u32
    }
}

/// The agent, and what feeds it.
pub struct Telemetry {
    rate: u32,
    feed: Feed,
    discards: DiscardTap,
    settings: Arc<DiscardSettings>,
    agent: AgentHandle,
    /// The last pool that each CPU reported, by interface.
    pools: BTreeMap<u32, BTreeMap<u32, u64>>,
    /// Samples and drops that the programs lost or did not report, by interface, as of the last look.
    losses: BTreeMap<u32, (u64, u64)>,
}

impl Telemetry {
    /// Starts the agent in a thread; sockets belong to the caller's network namespace.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(config: &Sflow, reports: Arc<dyn Reports>) -> std::io::Result<Telemetry> {
        let (feed, source) = Feed::new();
        let settings = Arc::new(DiscardSettings::default());
        settings.set(config.drop_limit, 128);
        let (discards, dropped) = DiscardTap::new(settings.clone());
        let agent = Agent::start(agent_config(config), vec![source], reports)?;
        agent.add_discards(vec![dropped]);
        Ok(Telemetry {
            rate: config.rate,
            feed,
            discards,
            settings,
            agent,
            pools: BTreeMap::new(),
            losses: BTreeMap::new(),
        })
    }

    /// Takes another configuration; sequences go on.
    pub fn reconfigure(&mut self, config: &Sflow) {
        self.rate = config.rate;
        self.settings.set(config.drop_limit, 128);
        self.agent.reconfigure(agent_config(config));
    }

    /// What the agent did so far.
    #[must_use]
    pub fn stats(&self) -> weir_telemetry::agent::AgentStats {
        self.agent.stats()
    }

    /// Takes an event of the programs.
    pub fn take(&mut self, event: &Event) {
        let header = event
            .header
            .get(..usize::from(event.captured))
            .unwrap_or(&event.header);
        match event.kind {
            SAMPLE => {
                let cpus = self.pools.entry(event.in_port).or_default();
                cpus.insert(event.cpu, event.pool);
                let fed = Fed {
                    interface: event.in_port,
                    rate: self.rate,
                    pool: cpus.values().sum(),
                    frame: event.length,
                    outcome: outcome(event),
                };
                self.feed.push(&fed, header);
            }
            DROP => {
                if let Some(why) = reason::by_number(event.reason) {
                    let fed = FedDiscard {
                        interface: event.in_port,
                        node: u16::from(event.stage.min(1)),
                        reason: why.reported,
                        frame: event.length,
                        time: event.time,
                    };
                    self.discards.feed(&fed, header);
                }
            }
            _ => (),
        }
    }

    /// Takes what an interface's programs counted in all: samples that found the ring full, and drops without an event.
    pub fn lost(&mut self, interface: u32, samples: u64, drops: u64) {
        let before = self.losses.insert(interface, (samples, drops));
        let (old_samples, old_drops) = before.unwrap_or((samples, drops));
        self.feed
            .lost(interface, samples.saturating_sub(old_samples));
        self.discards.not_reported(drops.saturating_sub(old_drops));
    }
}

fn agent_config(config: &Sflow) -> AgentConfig {
    AgentConfig {
        polling_interval: config.polling_interval,
        drop_limit: config.drop_limit,
        collectors: config.collectors.iter().map(|it| (*it).into()).collect(),
        host: Some(PathBuf::from("/")),
        ..AgentConfig::new(config.agent)
    }
}

/// What became of the packet of an event.
fn outcome(event: &Event) -> PacketOutcome {
    if let Some(why) = reason::by_number(event.reason) {
        return PacketOutcome::Dropped {
            node: u16::from(event.stage.min(1)),
            reason: why.reported,
        };
    }
    match event.out_port {
        // To several ports; their number is not known when the sample is taken.
        u32::MAX => PacketOutcome::Copied(0),
        0 => PacketOutcome::Kept,
        port => PacketOutcome::Sent(port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_of_the_rate_and_the_spread_of_the_geometric_distribution() {
        for rate in [1, 2, 10, 1000, 100_000] {
            let all: Vec<f64> = gaps(rate).map(f64::from).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let rate = f64::from(rate);
            assert!((mean / rate - 1.0).abs() < 0.001, "{rate}: {mean}");
            let square = all.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / all.len() as f64;
            let right = rate * (rate - 1.0);
            assert!(
                (square - right).abs() <= 0.01 * right,
                "{rate}: {square} {right}"
            );
        }
    }

    #[test]
    fn a_limit_gives_every_port_at_least_one_event() {
        assert_eq!([0, 1, 100, 1_000_000].map(drop_budget), [0, 1, 13, 1000]);
    }
}
