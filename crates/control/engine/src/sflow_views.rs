//! What the router tells of sFlow: settings, collectors, what was sampled and dropped, by interface and worker.

use std::collections::BTreeMap;

use weir_api::{
    Sflow, SflowCollector, SflowDirection, SflowDiscovery, SflowDrop, SflowEncoding,
    SflowInterface, SflowKernel, SflowReported, SflowSettings, SflowShare, SflowWorker,
};
use weir_flowfmt::sflow::reasons;
use weir_graph::DropReason;
use weir_telemetry::agent::{AgentStats, CollectorStats, RX_MISS};
use weir_telemetry::discard_code;

use crate::control::{Attached, Control};
use crate::views::missed;

/// What is counted for no interface is counted here.
const NO_INTERFACE: u32 = 0;

impl Control {
    /// All of it, as of now.
    pub(crate) fn sflow_view(&self) -> Sflow {
        let (config, stats) = (&self.sflow.config, self.sflow.stats());
        let discovery = config.dns_sd.as_ref().map(|wanted| SflowDiscovery {
            domain: wanted.domain.clone(),
            trouble: stats.discovery.clone(),
        });
        Sflow {
            settings: settings(config),
            agent: self.sflow.agent_address,
            collectors: stats
                .collectors
                .iter()
                .map(|it| collector(config, it))
                .collect(),
            discovery,
            kernel: self.kernel_path(&stats),
            workers: self.sflow_workers(&stats),
            interfaces: self
                .interfaces
                .iter()
                .filter_map(|(name, attached)| self.sampled(name, attached, &stats))
                .collect(),
            drops: self.discarded(&stats),
            samples_sent: stats.samples_sent.iter().sum(),
            samples_lost: stats.samples_lost,
            samples_incomplete: stats.samples_incomplete,
            discards_sent: stats.discards_sent,
            discards_dropped: stats.discards_dropped,
            datagrams: stats.datagrams,
        }
    }

    fn sflow_workers(&self, stats: &AgentStats) -> Vec<SflowWorker> {
        let workers = self.sflow.counters.iter().enumerate();
        let worker = |(number, counters): (
            usize,
            &std::sync::Arc<weir_ring::Padded<weir_telemetry::sampler::SamplerCounters>>,
        )| SflowWorker {
            worker: number as u32,
            samples_taken: counters.taken.get(),
            samples_sent: stats.samples_sent.get(number).copied().unwrap_or(0),
            samples_dropped: counters.lost.get(),
        };
        workers.map(worker).collect()
    }

    /// An interface that is sampled now, whether the agent has seen it yet or not.
    fn sampled(
        &self,
        name: &str,
        attached: &Attached,
        stats: &AgentStats,
    ) -> Option<SflowInterface> {
        self.config
            .interfaces
            .get(name)
            .filter(|wanted| wanted.sflow)?;
        let config = &self.sflow.config;
        let stats = stats
            .interfaces
            .iter()
            .find(|stats| stats.ifindex == attached.index);
        let share = |worker: usize| {
            let own = stats
                .and_then(|stats| stats.workers.get(worker))
                .copied()
                .unwrap_or_default();
            let dropped = self
                .sflow
                .counters
                .get(worker)
                .map_or(0, |counters| counters.lost.of(attached.index));
            SflowShare {
                worker: worker as u32,
                pool: own.pool,
                samples: own.samples,
                dropped,
            }
        };
        let workers: Vec<SflowShare> = (0..self.sflow.counters.len()).map(share).collect();
        Some(SflowInterface {
            interface: name.to_owned(),
            index: attached.index,
            reported_index: self.sflow.indices().reported(attached.index),
            sampling_rate: config.rate_of(name),
            direction: direction(config.direction_of(name)),
            header_bytes: config.header_of(name).into(),
            polling_interval: config.polling_of(name),
            pool: stats.map_or(0, |stats| stats.pool),
            samples: stats.map_or(0, |stats| stats.samples),
            dropped: workers.iter().map(|share| share.dropped).sum(),
            workers,
        })
    }

    /// What was dropped, by interface, node and reason, beside what of it was reported.
    fn discarded(&self, stats: &AgentStats) -> Vec<SflowDrop> {
        let mut kinds: BTreeMap<(u32, &str, &str), (DropReason, u64)> = BTreeMap::new();
        for drop in self.drops() {
            let (node, reason) = self.pair(drop.place);
            // What was reported of an interface that was taken away and made again is under the number that it has.
            let interface = match self.drops_of_the_gone.kept_name(drop.interface) {
                Some(name) => self
                    .interfaces
                    .get(name)
                    .map_or(NO_INTERFACE, |it| it.index),
                None => drop.interface,
            };
            kinds
                .entry((interface, node, reason.name()))
                .or_insert((reason, 0))
                .1 += drop.count;
        }
        for attached in self.interfaces.values() {
            let (node, reason) = RX_MISS;
            let lost = missed(attached);
            if lost > 0 {
                // "No buffer space" of the standard, as it is reported.
                kinds.insert((attached.index, node, reason), (DropReason::NoBuffer, lost));
            }
        }
        let mut reported: BTreeMap<(u32, &str, &str), BTreeMap<u32, u64>> = BTreeMap::new();
        for it in &stats.discards {
            // What came by an interface before workers knew it is counted for none.
            let own = kinds.contains_key(&(it.ifindex, it.node, it.reason));
            let interface = if own { it.ifindex } else { NO_INTERFACE };
            *reported
                .entry((interface, it.node, it.reason))
                .or_default()
                .entry(it.code)
                .or_default() += it.reported;
        }
        let standard = |code: u32| reasons::name(code).unwrap_or("unknown").to_owned();
        let row =
            |((index, node, reason), (why, dropped)): ((u32, &str, &str), (DropReason, u64))| {
                let code = u32::from(discard_code(why));
                let codes = reported.get(&(index, node, reason));
                let mut reported_as: Vec<SflowReported> = codes
                    .into_iter()
                    .flatten()
                    .map(|(&code, &reported)| SflowReported {
                        code,
                        standard: standard(code),
                        reported,
                    })
                    .collect();
                if reported_as.iter().all(|it| it.code == code) {
                    reported_as.clear();
                }
                SflowDrop {
                    interface: self.name_of(index).map(str::to_owned),
                    node: node.to_owned(),
                    reason: reason.to_owned(),
                    code,
                    standard: standard(code),
                    dropped,
                    reported: codes.map_or(0, |codes| codes.values().sum()),
                    reported_as,
                }
            };
        kinds.into_iter().map(row).collect()
    }

    fn kernel_path(&self, stats: &AgentStats) -> Option<SflowKernel> {
        let (wanted, stats) = (
            self.sflow.config.psample.as_ref()?,
            stats.kernel.clone().unwrap_or_default(),
        );
        Some(SflowKernel {
            group: wanted.group,
            egress_group: wanted.egress_group,
            namespace: wanted.namespace.clone(),
            samples: stats.sent.samples,
            drops: stats.sent.drops,
            reports: stats.sent.reports,
            failed: stats.sent.samples_failed + stats.sent.others_failed,
            lacking: stats.lacking,
        })
    }
}

fn settings(config: &weir_config::Sflow) -> SflowSettings {
    SflowSettings {
        sampling_rate: config.sampling_rate,
        polling_interval: config.polling_interval,
        header_bytes: config.header_bytes.into(),
        direction: direction(config.direction),
        drop_limit: config.drop_limit,
        encoding: match config.encoding {
            weir_config::SflowEncoding::Expanded => SflowEncoding::Expanded,
            weir_config::SflowEncoding::Compact => SflowEncoding::Compact,
        },
        datagram_bytes: config.datagram_bytes.into(),
        agent_sub_id: config.agent_sub_id,
        os_index: config.os_index,
        if_offset: config.if_offset,
    }
}

fn direction(direction: weir_config::SflowDirection) -> SflowDirection {
    match direction {
        weir_config::SflowDirection::Rx => SflowDirection::Rx,
        weir_config::SflowDirection::Tx => SflowDirection::Tx,
        weir_config::SflowDirection::Both => SflowDirection::Both,
    }
}

fn collector(config: &weir_config::Sflow, stats: &CollectorStats) -> SflowCollector {
    let target = &stats.target;
    let is_listed = |it: &&weir_config::Collector| {
        (it.address.to_string(), it.port, &it.namespace, &it.dev)
            == (
                target.host.clone(),
                target.port,
                &target.namespace,
                &target.device,
            )
    };
    let listed = config.collectors.iter().find(is_listed);
    SflowCollector {
        host: target.host.clone(),
        address: stats.address.map(|address| address.ip()),
        port: target.port,
        namespace: target.namespace.clone(),
        source: target.source,
        dscp: target.dscp,
        dev: target.device.clone(),
        table: listed.and_then(|it| it.table.clone()),
        through_host: listed.is_some_and(|it| it.host),
        drops: stats.drops,
        announced: listed.is_none(),
        sent: stats.sent,
        errors: stats.errors,
        last_error: stats.last_error.clone(),
    }
}
