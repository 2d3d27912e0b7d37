//! What the demo found: the router's own balance beside what the collector estimated.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_api::{Router as _, Totals};
use weir_engine::Router;

use crate::demo::collector::{Collected, FlowTotals};

/// One JSON object.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) duration_seconds: f64,
    pub(crate) packets_in: u64,
    pub(crate) packets_out: u64,
    pub(crate) originated: u64,
    pub(crate) replicated: u64,
    pub(crate) consumed: u64,
    pub(crate) held: u64,
    pub(crate) drops: BTreeMap<String, u64>,
    /// The same drops: each reason by name, with its count.
    pub(crate) drop_reasons: BTreeMap<String, u64>,
    /// Flow records that the IPFIX collector received.
    pub(crate) flows_metered: u64,
    /// Packets in those records.
    pub(crate) flow_packets: u64,
    pub(crate) samples_taken: u64,
    pub(crate) samples_sent: u64,
    pub(crate) samples_dropped: u64,
    pub(crate) samples_received: u64,
    pub(crate) sampling_rate: u32,
    pub(crate) datagrams_received: u64,
    pub(crate) datagrams_broken: u64,
    pub(crate) estimated_packets: u64,
    pub(crate) true_packets: u64,
    pub(crate) error_percent: f64,
    pub(crate) expected_error_percent: f64,
    pub(crate) ping_loss_percent: Option<f64>,
    /// Packets in that are not accounted for; 0.
    pub(crate) unaccounted: i64,
}

impl Summary {
    /// After the router has stopped.
    pub(crate) fn new(
        router: &Router,
        collected: &Collected,
        flows: FlowTotals,
        ping: Option<f64>,
        seconds: f64,
    ) -> Summary {
        let totals = router.balance();
        let sflow = router.sflow().ok();
        let true_packets = true_packets(router);
        let error = (collected.estimated_packets as f64 - true_packets as f64).abs();
        Summary {
            duration_seconds: seconds,
            flows_metered: flows.records,
            flow_packets: flows.packets,
            samples_taken: sflow.as_ref().map_or(0, weir_api::Sflow::samples_taken),
            samples_sent: sflow.as_ref().map_or(0, |sflow| sflow.samples_sent),
            samples_dropped: sflow.as_ref().map_or(0, weir_api::Sflow::samples_dropped),
            samples_received: collected.samples,
            sampling_rate: crate::demo::stage::SAMPLING_RATE,
            datagrams_received: collected.datagrams,
            datagrams_broken: collected.broken,
            estimated_packets: collected.estimated_packets,
            true_packets,
            error_percent: rounded(100.0 * error / (true_packets.max(1)) as f64),
            expected_error_percent: rounded(expected_error(collected.samples)),
            ping_loss_percent: ping,
            unaccounted: totals.unaccounted() as i64,
            ..Summary::of(totals)
        }
    }

    fn of(totals: Totals) -> Summary {
        Summary {
            duration_seconds: 0.0,
            packets_in: totals.packets_in,
            packets_out: totals.packets_out,
            originated: totals.originated,
            replicated: totals.replicated,
            consumed: totals.consumed,
            held: totals.held,
            drop_reasons: totals.drops.clone(),
            drops: totals.drops,
            flows_metered: 0,
            flow_packets: 0,
            samples_taken: 0,
            samples_sent: 0,
            samples_dropped: 0,
            samples_received: 0,
            sampling_rate: 0,
            datagrams_received: 0,
            datagrams_broken: 0,
            estimated_packets: 0,
            true_packets: 0,
            error_percent: 0.0,
            expected_error_percent: 0.0,
            ping_loss_percent: None,
            unaccounted: 0,
        }
    }
}

/// Packets that came in on sampled interfaces, by the interfaces' own counters.
pub(crate) fn true_packets(router: &Router) -> u64 {
    let interfaces = router
        .interfaces()
        .map(|reply| reply.interfaces)
        .unwrap_or_default();
    interfaces
        .iter()
        .filter(|interface| interface.sflow)
        .map(|interface| interface.rx.packets)
        .sum()
}

/// In 95 of 100 cases the estimate is nearer than this (Phaal and Panchen).
pub(crate) fn expected_error(samples: u64) -> f64 {
    196.0 * (1.0 / samples.max(1) as f64).sqrt()
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
