//! The agent's thread: rings in, datagrams out, counters now and then.
//!
//! It reads what became of sampled packets, then takes one sample from each ring in turn, at most [`BURST`] from
//! each before it looks at clock, counters and wishes again. How long it rests depends on how much it found: not at all when a ring
//! gave a whole burst, longer and longer when all were empty.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weir_flowfmt::sflow::encode::CounterRecord;
use weir_flowfmt::sflow::structure::Value;
use weir_flowfmt::sflow::{
    CountersSample, EthernetCounters, FlowSample, InterfaceCounters, LagCounters, Port, RawHeader, Source, UNKNOWN_COUNTER_32, VlanCounters,
};
use weir_graph::Fate;

use super::datagrams::Datagrams;
use super::discarding::Discarding;
use super::host::{Host, Owned, Record};
use super::join::Join;
use super::numbers::Numbers;
use super::ways::{Asked, Way, Ways};
use super::{AgentConfig, AgentHandle, AgentStats, InterfaceReport, Reports, Shared, lock};
use crate::sampler::{Sample, SampleSource};

/// The frame check sequence, which ports take off and sFlow counts.
pub(super) const FCS: u32 = 4;
/// Samples taken from each ring before anything else is looked at.
const BURST: usize = 256;
/// Rest when rings fill quickly, when they hold something, and at most.
const RESTS: (Duration, Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(5), Duration::from_millis(10));
/// Interfaces are looked through at least this often, for those that are newly sampled.
const MOST_BLIND: Duration = Duration::from_secs(1);
/// Numbers for whoever asks are at most this old.
const TELL: Duration = Duration::from_millis(50);
/// Refusals are noticed after this time also when nothing more is sent.
const LISTEN: Duration = Duration::from_secs(1);

/// Under which number the machine has its sequence: an ifIndex that no interface can have.
const MACHINE: u32 = u32::MAX;
/// The machine's source: class 2 is entPhysicalEntry.
const MACHINE_SOURCE: Source = Source { class: 2, index: 1 };

/// The agent.
pub struct Agent {
    config: AgentConfig,
    sources: Vec<SampleSource>,
    /// By worker, as `sources`.
    joins: Vec<Join>,
    reports: Arc<dyn Reports>,
    shared: Arc<Shared>,
    desk: Desk,
    discarding: Discarding,
    started: Instant,
    rest: Duration,
    look_at: Duration,
    host: Option<Host>,
    tell_at: Instant,
    listen_at: Instant,
}

/// Where samples get their numbers.
struct Desk {
    datagrams: Datagrams,
    numbers: Numbers,
    /// Samples put into datagrams, by worker.
    sent: Vec<u64>,
    lost: u64,
    /// Samples whose fate did not come in time.
    incomplete: u64,
}

impl Agent {
    /// Starts the agent's thread. `sources` are the samplers of the workers, in their order.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(config: AgentConfig, sources: Vec<SampleSource>, reports: Arc<dyn Reports>) -> std::io::Result<AgentHandle> {
        let now = Instant::now();
        let shared = Arc::new(Shared::default());
        let host = config.host.as_deref().map(Host::new);
        let desk = Desk {
            datagrams: Datagrams::new(&config, now),
            numbers: Numbers::default(),
            sent: vec![0; sources.len()],
            lost: 0,
            incomplete: 0,
        };
        let agent = Agent {
            config,
            joins: sources.iter().map(|_| Join::default()).collect(),
            sources,
            reports,
            shared: shared.clone(),
            desk,
            discarding: Discarding::new(now),
            started: now,
            rest: RESTS.1,
            look_at: Duration::ZERO,
            host,
            tell_at: now,
            listen_at: now,
        };
        agent.tell();
        let thread = std::thread::Builder::new().name("weir-sflow".into()).spawn(move || agent.run())?;
        Ok(AgentHandle { shared, thread: Some(thread) })
    }

    fn run(mut self) {
        while !self.shared.stop.load(Ordering::Acquire) {
            self.take_wishes();
            let fullest = self.drain(BURST);
            self.send_waiting(false);
            let now = Instant::now();
            let discards = self.discarding.drain(self.config.drop_limit, &*self.reports, &mut self.desk.datagrams, now);
            let fullest = fullest.max(usize::from(discards));
            self.report_counters(now);
            self.desk.datagrams.send_old(now);
            if now >= self.listen_at {
                self.listen_at = now + LISTEN;
                self.desk.datagrams.listen(now);
            }
            if now >= self.tell_at {
                self.tell_at = now + TELL;
                self.tell();
            }
            self.rest(fullest);
        }
        self.flush();
    }

    /// Sends what is in the rings at this moment; what workers may still add is not waited for.
    fn flush(&mut self) {
        self.take_wishes();
        let most = self.sources.iter().map(|source| source.ring.len()).max();
        self.drain(most.unwrap_or(0));
        self.send_waiting(true);
        let now = Instant::now();
        self.discarding.drain(self.config.drop_limit, &*self.reports, &mut self.desk.datagrams, now);
        self.desk.datagrams.send(now);
        self.desk.datagrams.send_discards(now);
        self.desk.datagrams.listen(now);
        self.tell();
    }

    fn rest(&mut self, fullest: usize) {
        let (short, usual, most) = RESTS;
        self.rest = match fullest {
            0 => (self.rest * 2).clamp(usual, most),
            1..32 => usual,
            32..BURST => short,
            _ => return,
        };
        // Whoever wants something unparks.
        std::thread::park_timeout(self.rest);
    }

    fn take_wishes(&mut self) {
        let (config, sources, discards) = {
            let mut wishes = lock(&self.shared.wishes);
            (wishes.config.take(), std::mem::take(&mut wishes.sources), std::mem::take(&mut wishes.discards))
        };
        self.discarding.add(discards);
        self.desk.sent.resize(self.desk.sent.len() + sources.len(), 0);
        self.sources.extend(sources);
        self.joins.resize_with(self.sources.len(), Join::default);
        let Some(config) = config else { return };
        self.desk.datagrams.configure(&config, Instant::now());
        if (config.polling_interval, &config.polling_intervals) != (self.config.polling_interval, &self.config.polling_intervals) {
            self.desk.numbers.forget_due();
            self.look_at = Duration::ZERO;
        }
        if config.host != self.config.host {
            self.host = config.host.as_deref().map(Host::new);
        }
        self.config = config;
    }

    /// One sample from each ring in turn, until all are empty or each was asked `most` times. Returns
    /// how many the fullest one gave.
    fn drain(&mut self, most: usize) -> usize {
        let now = Instant::now();
        // Samples that come after this moment are left for the next turn, so that their fates are read first.
        let there = self.sources.iter().map(|source| source.ring.len()).max().unwrap_or(0).min(most);
        let lost = self.lost();
        let Agent { sources, joins, desk, reports, .. } = self;
        let mut fullest = 0;
        reports.with_ways(&mut |ways| {
            desk.take_fates(sources, joins, ways, lost, now);
            for pass in 0..there {
                let mut empty = true;
                for (worker, (source, join)) in sources.iter_mut().zip(joins.iter_mut()).enumerate() {
                    let taken = source.ring.pop_with(|sample| desk.take(worker, sample, join, ways, lost, now));
                    empty &= taken.is_none();
                }
                if empty {
                    break;
                }
                fullest = pass + 1;
            }
        });
        fullest
    }

    /// Lost since the start, by all workers; 32 bits of it are on the wire, and wrap.
    fn lost(&self) -> u32 {
        self.sources.iter().fold(0, |sum: u64, source| sum.wrapping_add(source.counters.lost.get())) as u32
    }

    /// Sends samples whose fates did not come in time; `all` at the end.
    fn send_waiting(&mut self, all: bool) {
        if self.joins.iter().all(Join::is_empty) {
            return;
        }
        let (now, lost) = (Instant::now(), self.lost());
        let Agent { joins, desk, reports, .. } = self;
        reports.with_ways(&mut |ways| {
            for (worker, join) in joins.iter_mut().enumerate() {
                while let Some(sample) = join.overdue(now, all) {
                    desk.incomplete += 1;
                    desk.flow(worker, &sample, None, ways, lost, now);
                }
            }
        });
    }

    /// Reports the counters of the sampled interfaces that are due.
    fn report_counters(&mut self, now: Instant) {
        let since = now.duration_since(self.started);
        if let Some(host) = &mut self.host {
            host.look(since);
        }
        if since < self.look_at {
            return;
        }
        let mut reports = self.reports.interfaces();
        self.discarding.look(self.config.drop_limit, &reports, &*self.reports, &mut self.desk.datagrams, now);
        let interval = |interface: u32| {
            let seconds = self.config.polling_intervals.get(&interface).copied().unwrap_or(self.config.polling_interval);
            Duration::from_secs(u64::from(seconds))
        };
        let machine = self.host.as_ref().filter(|_| self.config.polling_interval > 0 && reports.iter().any(|report| report.sampled));
        if let Some(host) = machine
            && self.desk.numbers.source(MACHINE).is_due(since)
        {
            let records = host.records(&reports);
            self.desk.machine(&records, now);
            self.desk.numbers.reported(MACHINE, since, interval(MACHINE));
        }
        let machine = machine.is_some();
        reports.retain(|report| report.sampled && !interval(report.ifindex).is_zero());
        self.desk
            .numbers
            .keep_due(|interface| (machine && interface == MACHINE) || reports.iter().any(|report| report.ifindex == interface));
        for report in &reports {
            if self.desk.numbers.source(report.ifindex).is_due(since) {
                self.desk.counters(report, now);
                self.desk.numbers.reported(report.ifindex, since, interval(report.ifindex));
            }
        }
        let blind_until = since + MOST_BLIND;
        self.look_at = self.desk.numbers.earliest_due().map_or(blind_until, |due| due.min(blind_until));
    }

    /// Publishes what was done.
    fn tell(&self) {
        let dropped = self.sources.iter().fold(0, |sum: u64, source| sum.wrapping_add(source.counters.lost.get()));
        *lock(&self.shared.stats) = AgentStats {
            samples_sent: self.desk.sent.clone(),
            samples_dropped: dropped,
            samples_lost: self.desk.lost,
            samples_incomplete: self.desk.incomplete,
            discards_sent: self.discarding.told(),
            discards_dropped: self.discarding.not_told(&*self.reports),
            datagrams: self.desk.datagrams.made(),
            collectors: self.desk.datagrams.stats(),
            interfaces: self.desk.numbers.stats(),
        };
    }
}

impl Desk {
    /// Reads what became of packets; samples that waited for it go out.
    fn take_fates(&mut self, sources: &mut [SampleSource], joins: &mut [Join], ways: &dyn Ways, lost: u32, now: Instant) {
        for source in sources {
            source.fates.pop_many(usize::MAX, |told| {
                let worker = told.mark.worker();
                let waited = joins.get_mut(worker).and_then(|join| join.fate(told.mark.ticket(), told.fate));
                if let Some(sample) = waited {
                    self.flow(worker, &sample, Some(&told.fate), ways, lost, now);
                }
            });
        }
    }

    /// One sample out of its ring: it goes out, or waits for its fate.
    fn take(&mut self, worker: usize, sample: &Sample, join: &mut Join, ways: &dyn Ways, lost: u32, now: Instant) {
        if sample.ticket == 0 {
            return self.flow(worker, sample, None, ways, lost, now);
        }
        match join.known(sample.ticket) {
            Some(fate) => self.flow(worker, sample, Some(&fate), ways, lost, now),
            None => {
                if let Some(oldest) = join.wait(sample, now) {
                    self.incomplete += 1;
                    self.flow(worker, &oldest, None, ways, lost, now);
                }
            }
        }
    }

    /// Numbers one sample and puts it into the datagram.
    fn flow(&mut self, worker: usize, sample: &Sample, fate: Option<&Fate>, ways: &dyn Ways, drops: u32, now: Instant) {
        let way = ways.way(&Asked::of(sample, fate));
        let source = self.numbers.source(sample.interface);
        let flow = FlowSample {
            sequence: source.next_flow(),
            source: Source::interface(sample.interface),
            rate: sample.rate,
            // The field has 32 bits and wraps.
            pool: source.pool(worker, sample.pool) as u32,
            drops,
            input: Port::interface(way.input),
            output: output(fate, &way),
        };
        // Header of an Ethernet frame "with the number of octets removed": ports give frames without FCS.
        let header = RawHeader {
            protocol: RawHeader::ETHERNET,
            frame_length: sample.frame.saturating_add(FCS),
            stripped: FCS,
            header: sample.bytes(),
        };
        let records = way.records(header);
        if !self.datagrams.add(now, |builder| builder.flow_sample(&flow, records.all())) {
            self.lost += 1;
            return;
        }
        source.flow_added();
        if let Some(sent) = self.sent.get_mut(worker) {
            *sent += 1;
        }
    }

    /// Numbers one report of counters and puts it into the datagram.
    fn counters(&mut self, report: &InterfaceReport, now: Instant) {
        let sequence = self.numbers.source(report.ifindex).next_counters(report);
        let sample = CountersSample { sequence, source: Source::interface(report.ifindex) };
        let counters = interface_counters(report);
        let more = [
            report.ethernet.map(|counters| (&EthernetCounters::STRUCTURE, counters.values())),
            report.vlan.map(|counters| (&VlanCounters::STRUCTURE, counters.values())),
            report.lag.map(|counters| (&LagCounters::STRUCTURE, counters.values())),
        ];
        let mut records = vec![CounterRecord::Interface(&counters)];
        records.extend(more.iter().flatten().map(|(structure, values)| CounterRecord::Structure(structure, values)));
        records.push(CounterRecord::PortName(&report.name));
        self.datagrams.add(now, |builder| builder.counters_sample(&sample, &records));
    }

    /// Numbers one report of the machine, each record in a sample of its own: there are decoders (tshark is one) that
    /// read on at the wrong place behind a counter record which they do not know. One that fits no datagram is left out.
    fn machine(&mut self, machine: &[Record], now: Instant) {
        for (structure, values) in machine {
            let sequence = self.numbers.source(MACHINE).next_of_machine();
            let sample = CountersSample { sequence, source: MACHINE_SOURCE };
            let values: Vec<Value<'_>> = values.iter().map(Owned::value).collect();
            let records = [CounterRecord::Structure(structure, &values)];
            if self.datagrams.fits(|builder| builder.counters_sample(&sample, &records), now) {
                self.numbers.source(MACHINE).machine_added();
            }
        }
    }
}

/// Where a packet went, as the sample says it. Without a fate it is what goes out, or not known.
fn output(fate: Option<&Fate>, way: &Way) -> Port {
    match fate {
        None | Some(Fate::Sent(_)) => Port::interface(way.output),
        Some(Fate::Kept) => Port::INTERNAL,
        Some(Fate::Copied(count)) => Port::multiple(*count),
        Some(Fate::Dropped { reason, .. }) => Port::discarded(u32::from(crate::discard_code(*reason))),
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
        kind: if report.kind == 0 { ETHERNET } else { report.kind },
        speed: report.speed,
        direction: FULL_DUPLEX,
        status: up(report.admin_up, InterfaceCounters::ADMIN_UP) | up(report.oper_up, InterfaceCounters::OPER_UP),
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
