//! Where samples get their numbers, and become part of a datagram.
//!
//! Everything here goes by the router's own numbers of interfaces; [`Indices`] says by which each is reported.

use std::sync::Arc;
use std::time::Instant;

use weir_flowfmt::sflow::encode::{CounterRecord, FlowRecord};
use weir_flowfmt::sflow::structure::Value;
use weir_flowfmt::sflow::{
    CountersSample, EthernetCounters, FlowSample, InterfaceCounters, LagCounters, Port, RawHeader,
    Source, UNKNOWN_COUNTER_32, VlanCounters,
};
use weir_graph::PacketOutcome;
use weir_ring::Padded;

use super::datagrams::Datagrams;
use super::gateway::GatewayRecord;
use super::host::{Owned, Record};
use super::indices::Indices;
use super::join::Join;
use super::kernel::Kernel;
use super::numbers::Numbers;
use super::ways::{Asked, PathLookup};
use super::{AgentConfig, InterfaceReport};
use crate::sampler::{Ending, Sample, SampleSource, SamplerCounters};

/// The frame check sequence, which ports take off and sFlow counts.
pub(super) const FCS: u32 = 4;
/// Under which number the machine has its sequence: an ifIndex that no interface can have.
pub(super) const MACHINE: u32 = u32::MAX;
/// The machine's source: class 2 is entPhysicalEntry.
const MACHINE_SOURCE: Source = Source { class: 2, index: 1 };

/// Where samples get their numbers.
pub(super) struct SampleNumbering {
    pub(super) datagrams: Datagrams,
    pub(super) numbers: Numbers,
    /// Samples put into datagrams, by worker.
    pub(super) sent: Vec<u64>,
    pub(super) lost: u64,
    /// Samples whose outcome did not come in time.
    pub(super) incomplete: u64,
    pub(super) kernel: Kernel,
    pub(super) indices: Indices,
    /// What each worker's sampler counts.
    pub(super) losses: Vec<Arc<Padded<SamplerCounters>>>,
}

impl SampleNumbering {
    /// A numbering for the samples of so many workers.
    /// The pool of an interface, as each worker counted it last.
    pub(super) fn pools(&self, ifindex: u32) -> Vec<u64> {
        let pools = self.losses.iter().map(|worker| worker.pools.of(ifindex));
        pools.collect()
    }

    pub(super) fn new(config: &AgentConfig, workers: usize, now: Instant) -> SampleNumbering {
        SampleNumbering {
            datagrams: Datagrams::new(config, now),
            numbers: Numbers::default(),
            sent: vec![0; workers],
            lost: 0,
            incomplete: 0,
            kernel: Kernel::new(config.kernel.clone(), now),
            indices: config.indices.clone(),
            losses: Vec::new(),
        }
    }

    /// Reads what became of packets; samples that waited for it go out.
    pub(super) fn take_fates(
        &mut self,
        sources: &mut [SampleSource],
        joins: &mut [Join],
        ways: &dyn PathLookup,
        now: Instant,
    ) {
        for source in sources {
            source.outcomes.pop_many(usize::MAX, |outcome| {
                let worker = outcome.mark.worker();
                let waited = joins
                    .get_mut(worker)
                    .and_then(|join| join.outcome(&outcome));
                if let Some(sample) = waited {
                    self.flow(worker, &sample, Some(outcome.ending()), ways, now);
                }
            });
        }
    }

    /// One sample out of its ring: it goes out, or waits for its outcome.
    pub(super) fn take(
        &mut self,
        worker: usize,
        sample: &Sample,
        join: &mut Join,
        ways: &dyn PathLookup,
        now: Instant,
    ) {
        self.numbers
            .source(sample.interface)
            .saw(worker, sample.pool);
        if sample.ticket == 0 || sample.ending().is_some() {
            return self.flow(worker, sample, sample.ending(), ways, now);
        }
        match join.known(sample.ticket) {
            Some(outcome) => self.flow(worker, sample, Some(outcome.ending()), ways, now),
            None => {
                if let Some(oldest) = join.wait(sample, now) {
                    self.incomplete += 1;
                    self.flow(worker, &oldest, None, ways, now);
                }
            }
        }
    }

    /// Numbers one sample and puts it into the datagram.
    pub(super) fn flow(
        &mut self,
        worker: usize,
        sample: &Sample,
        ending: Option<Ending<'_>>,
        ways: &dyn PathLookup,
        now: Instant,
    ) {
        let asked = Asked::of(sample, ending);
        let way = ways.way(&asked);
        let gateway = ways.gateway(&asked, &way).map(GatewayRecord::new);
        let gateway = gateway.as_ref().and_then(GatewayRecord::values);
        let outcome = ending.map(|ending| ending.outcome);
        let (source, indices) = (self.numbers.source(sample.interface), &self.indices);
        let flow = FlowSample {
            sequence: source.next_flow(),
            source: Source::interface(indices.reported(sample.interface)),
            rate: sample.rate,
            // The field has 32 bits and wraps.
            pool: source.pool_at(worker, sample.pool) as u32,
            // The field has 32 bits and wraps, too.
            drops: self.losses.iter().fold(0, |sum: u64, worker| {
                sum.wrapping_add(worker.lost.of(sample.interface))
            }) as u32,
            // "Generated by the router itself" has a number of its own.
            input: if way.input == 0 {
                Port::INTERNAL
            } else {
                Port::interface(indices.reported(way.input))
            },
            output: output(outcome, indices.reported(way.output)),
        };
        // Header of an Ethernet frame "with the number of octets removed": ports give frames without FCS.
        let header = RawHeader {
            protocol: RawHeader::ETHERNET,
            frame_length: sample.frame.saturating_add(FCS),
            stripped: FCS,
            header: sample.bytes(),
        };
        let mut records = way.records(header);
        if let Some((structure, values)) = &gateway {
            records.push(FlowRecord::Structure(structure, values));
        }
        if !self
            .datagrams
            .add(now, |builder| builder.flow_sample(&flow, records.all()))
        {
            self.lost += 1;
            return;
        }
        source.flow_added(worker);
        let left = matches!(outcome, None | Some(PacketOutcome::Sent(_)));
        self.kernel
            .sample(sample, way.input, if left { way.output } else { 0 });
        if let Some(sent) = self.sent.get_mut(worker) {
            *sent += 1;
        }
    }

    /// Numbers one report of counters and puts it into the datagram.
    pub(super) fn counters(&mut self, report: &InterfaceReport, now: Instant) {
        let sequence = self.numbers.source(report.ifindex).next_counters(report);
        let sample = CountersSample {
            sequence,
            source: Source::interface(self.indices.reported(report.ifindex)),
        };
        self.kernel.counters(report, &self.indices);
        let counters = InterfaceCounters {
            index: self.indices.reported(report.ifindex),
            ..interface_counters(report)
        };
        let lag = report.lag.map(|lag| LagCounters {
            aggregate: self.indices.reported(lag.aggregate),
            ..lag
        });
        let more = [
            report
                .ethernet
                .map(|counters| (&EthernetCounters::STRUCTURE, counters.values())),
            report
                .vlan
                .map(|counters| (&VlanCounters::STRUCTURE, counters.values())),
            lag.map(|counters| (&LagCounters::STRUCTURE, counters.values())),
        ];
        let mut records = vec![CounterRecord::Interface(&counters)];
        records.extend(
            more.iter()
                .flatten()
                .map(|(structure, values)| CounterRecord::Structure(structure, values)),
        );
        records.push(CounterRecord::PortName(&report.name));
        self.datagrams
            .add(now, |builder| builder.counters_sample(&sample, &records));
    }

    /// Numbers one report of the machine, each record in a sample of its own: there are decoders (tshark is one) that
    /// read on at the wrong place behind a counter record which they do not know. One that fits no datagram is left out.
    pub(super) fn machine(&mut self, machine: &[Record], now: Instant) {
        let sequence = self.numbers.source(MACHINE).next_of_machine();
        let sample = CountersSample {
            sequence,
            source: MACHINE_SOURCE,
        };
        let values: Vec<Vec<Value<'_>>> = machine
            .iter()
            .map(|(_, values)| values.iter().map(Owned::value).collect())
            .collect();
        let records: Vec<CounterRecord<'_>> = machine
            .iter()
            .zip(&values)
            .map(|((structure, _), values)| CounterRecord::Structure(structure, values))
            .collect();
        if records.is_empty() {
            return;
        }
        if self
            .datagrams
            .fits(|builder| builder.counters_sample(&sample, &records), now)
        {
            return self.numbers.source(MACHINE).machine_added();
        }
        // What does not fit a datagram goes in two samples.
        if machine.len() > 1 {
            let (one, other) = machine.split_at(machine.len() / 2);
            self.machine(one, now);
            self.machine(other, now);
        }
    }
}

/// Where a packet went, as the sample says it. Without an outcome it is what goes out, or not known.
fn output(outcome: Option<PacketOutcome>, interface: u32) -> Port {
    match outcome {
        None | Some(PacketOutcome::Sent(_)) => Port::interface(interface),
        Some(PacketOutcome::Kept) => Port::INTERNAL,
        Some(PacketOutcome::Copied(count)) => Port::multiple(count),
        Some(PacketOutcome::Dropped { reason, .. }) => {
            Port::discarded(u32::from(crate::discard_code(reason)))
        }
    }
}

/// Counters of 32 bits wrap, as the structure has them; one that nobody counts is all ones.
fn interface_counters(report: &InterfaceReport) -> InterfaceCounters {
    /// `ifType` ethernetCsmacd and `ifDirection` full duplex.
    const ETHERNET: u32 = 6;
    const FULL_DUPLEX: u32 = 1;
    let up = |up: bool, bit: u32| if up { bit } else { 0 };
    InterfaceCounters {
        index: report.ifindex,
        kind: if report.kind == 0 {
            ETHERNET
        } else {
            report.kind
        },
        speed: report.speed,
        direction: FULL_DUPLEX,
        status: up(report.admin_up, InterfaceCounters::ADMIN_UP)
            | up(report.oper_up, InterfaceCounters::OPER_UP),
        in_octets: report.in_octets,
        in_unicast: report.in_unicast as u32,
        in_multicast: report.in_multicast as u32,
        in_broadcast: report.in_broadcast as u32,
        in_discards: report.in_discards as u32,
        in_errors: report.in_errors as u32,
        in_unknown_protocols: UNKNOWN_COUNTER_32,
        out_octets: report.out_octets,
        out_unicast: report.out_unicast as u32,
        out_multicast: report.out_multicast as u32,
        out_broadcast: report.out_broadcast as u32,
        out_discards: report.out_discards as u32,
        out_errors: report.out_errors as u32,
        promiscuous: 0,
    }
}
