//! The state of the live view: rates between two readings, their history, and the selection.

use std::collections::{HashMap, VecDeque};

use weir_api::{FlowEntry, IdleMode, Interface, UpDown};
use weir_flowfmt::ipfix::forwarding_status_name;

use super::reading::{Lookup, Reading};

/// Rates of the past that a sparkline shows at most.
const HISTORY: usize = 60;

/// An interface with its rates a second.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct InterfaceRate {
    /// Its name.
    pub(crate) name: String,
    /// Whether its link is up.
    pub(crate) up: bool,
    /// Packets received.
    pub(crate) rx_packets: f64,
    /// Bits received.
    pub(crate) rx_bits: f64,
    /// Packets sent.
    pub(crate) tx_packets: f64,
    /// Bits sent.
    pub(crate) tx_bits: f64,
    /// Packets dropped.
    pub(crate) drops: f64,
}

/// A flow with its rates a second.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct FlowRate {
    /// The flow as the router reports it.
    pub(crate) flow: FlowEntry,
    /// Packets a second.
    pub(crate) packets: f64,
    /// Bits a second.
    pub(crate) bits: f64,
    /// `forwarded`, or why it was dropped.
    pub(crate) result: &'static str,
}

/// A drop reason with its count and its rate a second.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct DropRate {
    /// The reason's name.
    pub(crate) reason: String,
    /// Packets since the router started, or since its counters were cleared.
    pub(crate) count: u64,
    /// Packets a second.
    pub(crate) rate: f64,
    /// What it means.
    pub(crate) sentence: String,
}

/// A worker and the share of its turns that carried packets.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct WorkerLoad {
    /// Its number.
    pub(crate) worker: u32,
    /// Its core.
    pub(crate) core: Option<u32>,
    /// What it does without packets.
    pub(crate) idle: IdleMode,
    /// Turns that carried packets, in percent of all turns.
    pub(crate) busy_percent: f64,
    /// Packets a second that it received.
    pub(crate) packets: f64,
}

/// The table that has the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    Interfaces,
    Flows,
    Drops,
}

/// What flows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowOrder {
    Bits,
    Packets,
}

/// Everything that is drawn.
pub(crate) struct State {
    /// How the title names the router.
    pub(crate) title: String,
    /// Seconds that the router runs.
    pub(crate) uptime: u64,
    /// Interfaces, in the router's order.
    pub(crate) interfaces: Vec<InterfaceRate>,
    /// Received and sent bits a second of each interface, oldest first.
    pub(crate) history: HashMap<String, VecDeque<u64>>,
    /// Flows, fastest first; absent while no interface is metered.
    pub(crate) flows: Option<Vec<FlowRate>>,
    /// Drop reasons, highest rate first.
    pub(crate) drops: Vec<DropRate>,
    /// Workers.
    pub(crate) workers: Vec<WorkerLoad>,
    /// One line about sFlow.
    pub(crate) sflow: Option<String>,
    /// Further lines that the owner of the view adds (the demo's collector).
    pub(crate) notes: Vec<String>,
    /// Why the last reading failed.
    pub(crate) error: Option<String>,
    /// Whether the picture stands still.
    pub(crate) paused: bool,
    /// The table that has the keyboard.
    pub(crate) pane: Pane,
    /// The selected row of that table.
    pub(crate) selected: usize,
    /// What flows are sorted by.
    pub(crate) order: FlowOrder,
    /// The flow that is shown in detail, with what the tables say about it.
    pub(crate) detail: Option<(FlowRate, Result<Lookup, String>)>,
    /// Whether the list of keys is shown.
    pub(crate) help: bool,
    last: Option<Reading>,
}

impl State {
    /// A view of nothing yet.
    pub(crate) fn new(title: String) -> State {
        State {
            title,
            uptime: 0,
            interfaces: Vec::new(),
            history: HashMap::new(),
            flows: None,
            drops: Vec::new(),
            workers: Vec::new(),
            sflow: None,
            notes: Vec::new(),
            error: None,
            paused: false,
            pane: Pane::Flows,
            selected: 0,
            order: FlowOrder::Bits,
            detail: None,
            help: false,
            last: None,
        }
    }

    /// Takes a reading: rates are differences to the reading before, and 0 after the first one.
    pub(crate) fn take(&mut self, reading: Reading) {
        let seconds = self.last.as_ref().map_or(f64::INFINITY, |last| {
            reading.at.duration_since(last.at).as_secs_f64().max(1e-3)
        });
        self.uptime = reading.version.uptime;
        self.take_interfaces(&reading, seconds);
        self.take_flows(&reading, seconds);
        self.take_drops(&reading, seconds);
        self.take_workers(&reading, seconds);
        self.sflow.clone_from(&reading.sflow);
        self.error = None;
        self.last = Some(reading);
        self.selected = self.selected.min(self.rows().saturating_sub(1));
    }

    /// Packets and bits a second that the router receives.
    pub(crate) fn received(&self) -> (f64, f64) {
        // The sum of no rates is -0.0, which would be shown with its sign.
        let sum =
            |value: fn(&InterfaceRate) -> f64| 0.0 + self.interfaces.iter().map(value).sum::<f64>();
        (sum(|it| it.rx_packets), sum(|it| it.rx_bits))
    }

    /// Packets a second that the router drops.
    pub(crate) fn dropped(&self) -> f64 {
        0.0 + self.drops.iter().map(|it| it.rate).sum::<f64>()
    }

    /// Rows of the table that has the keyboard.
    pub(crate) fn rows(&self) -> usize {
        match self.pane {
            Pane::Interfaces => self.interfaces.len(),
            Pane::Flows => self.flows.as_ref().map_or(0, Vec::len),
            Pane::Drops => self.drops.len(),
        }
    }

    fn take_interfaces(&mut self, reading: &Reading, seconds: f64) {
        let before: HashMap<u32, &Interface> = self
            .last
            .iter()
            .flat_map(|last| &last.interfaces)
            .map(|interface| (interface.index, interface))
            .collect();
        let rate = |now: &Interface| {
            let before = before.get(&now.index);
            let each = |counter: fn(&Interface) -> u64| {
                let earlier = before.map_or(counter(now), |before| counter(before));
                counter(now).saturating_sub(earlier) as f64 / seconds
            };
            InterfaceRate {
                name: now.name.clone(),
                up: now.link == UpDown::Up && now.admin == UpDown::Up,
                rx_packets: each(|it| it.rx.packets),
                rx_bits: 8.0 * each(|it| it.rx.bytes),
                tx_packets: each(|it| it.tx.packets),
                tx_bits: 8.0 * each(|it| it.tx.bytes),
                drops: each(|it| it.drops),
            }
        };
        let interfaces: Vec<InterfaceRate> = reading.interfaces.iter().map(rate).collect();
        if self.last.is_some() {
            self.history
                .retain(|name, _| interfaces.iter().any(|it| it.name == *name));
            for interface in &interfaces {
                let history = self.history.entry(interface.name.clone()).or_default();
                if history.len() == HISTORY {
                    history.pop_front();
                }
                history.push_back((interface.rx_bits + interface.tx_bits) as u64);
            }
        }
        self.interfaces = interfaces;
    }

    fn take_flows(&mut self, reading: &Reading, seconds: f64) {
        let Some(flows) = &reading.flows else {
            self.flows = None;
            return;
        };
        let before: HashMap<_, (u64, u64)> = self
            .last
            .iter()
            .flat_map(|last| last.flows.iter().flatten())
            .map(|flow| (flow_key(flow), (flow.packets, flow.octets)))
            .collect();
        let first = self.last.is_none();
        let mut rates: Vec<FlowRate> = flows
            .iter()
            .map(|flow| {
                // A flow that is not in the reading before began since then, or its record was
                // exported since then and counts anew: all of it belongs to this interval.
                let (packets, octets) = match before.get(&flow_key(flow)) {
                    Some((packets, octets)) if *packets <= flow.packets => {
                        (flow.packets - packets, flow.octets.saturating_sub(*octets))
                    }
                    _ if first => (0, 0),
                    _ => (flow.packets, flow.octets),
                };
                FlowRate {
                    flow: flow.clone(),
                    packets: packets as f64 / seconds,
                    bits: 8.0 * octets as f64 / seconds,
                    result: forwarding_status_name(flow.forwarding_status),
                }
            })
            .collect();
        let order = self.order;
        let by = |it: &FlowRate| match order {
            FlowOrder::Bits => it.bits,
            FlowOrder::Packets => it.packets,
        };
        rates.sort_by(|a, b| by(b).total_cmp(&by(a)));
        self.flows = Some(rates);
    }

    fn take_drops(&mut self, reading: &Reading, seconds: f64) {
        let before: HashMap<&str, u64> = self
            .last
            .iter()
            .flat_map(|last| &last.totals.drops)
            .map(|(reason, count)| (reason.as_str(), *count))
            .collect();
        let first = self.last.is_none();
        let mut drops: Vec<DropRate> = reading
            .totals
            .drops
            .iter()
            .map(|(reason, &count)| {
                let earlier = if first {
                    count
                } else {
                    before.get(reason.as_str()).copied().unwrap_or(0)
                };
                DropRate {
                    reason: reason.clone(),
                    count,
                    rate: count.saturating_sub(earlier) as f64 / seconds,
                    sentence: reading
                        .drops
                        .iter()
                        .find(|it| it.reason == *reason)
                        .map_or_else(String::new, |it| it.sentence.clone()),
                }
            })
            .collect();
        drops.sort_by(|a, b| b.rate.total_cmp(&a.rate).then(b.count.cmp(&a.count)));
        self.drops = drops;
    }

    fn take_workers(&mut self, reading: &Reading, seconds: f64) {
        let before = |worker: u32| {
            self.last
                .as_ref()
                .and_then(|last| last.runtime.workers.iter().find(|it| it.worker == worker))
        };
        let loads = reading.runtime.workers.iter().map(|now| {
            let earlier = before(now.worker);
            let (turns, busy) = earlier.map_or((now.turns, now.busy_turns), |earlier| {
                (
                    now.turns.saturating_sub(earlier.turns),
                    now.busy_turns.saturating_sub(earlier.busy_turns),
                )
            });
            let received = |worker: &weir_api::WorkerRuntime| {
                worker
                    .nodes
                    .iter()
                    .filter(|node| node.name == "eth-input")
                    .map(|node| node.packets)
                    .sum::<u64>()
            };
            WorkerLoad {
                worker: now.worker,
                core: now.core,
                idle: now.idle,
                busy_percent: 100.0 * busy as f64 / turns.max(1) as f64,
                packets: earlier.map_or(0.0, |earlier| {
                    received(now).saturating_sub(received(earlier)) as f64 / seconds
                }),
            }
        });
        self.workers = loads.collect();
    }
}

type FlowKey<'a> = (
    u32,
    bool,
    Option<&'a str>,
    Option<&'a str>,
    Option<u8>,
    Option<u16>,
    Option<u16>,
    (Option<&'a str>, Option<u16>, Option<u32>, u8),
);

fn flow_key(flow: &FlowEntry) -> FlowKey<'_> {
    (
        flow.worker,
        flow.direction == weir_api::SflowDirection::Tx,
        flow.source.as_deref(),
        flow.destination.as_deref(),
        flow.protocol,
        flow.source_port,
        flow.destination_port,
        (
            flow.input.as_deref(),
            flow.vlan,
            flow.label,
            flow.forwarding_status,
        ),
    )
}
