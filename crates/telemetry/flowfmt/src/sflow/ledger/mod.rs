//! What a collector can know about its agents: what was lost, and whether the samples tell the truth.
//!
//! Every datagram is entered once, in the order of arrival. Gaps in the numbers of datagrams and samples
//! are losses, a number that comes late is a reordering, and takes its loss back (`numbers`). For each interface the
//! samples are scaled up and put beside its own counters (`estimate`), over exactly the time between the first and
//! the last counters that arrived: by the theory of packet sampling (P. Phaal, S. Panchen, "Packet sampling
//! basics") the estimate from `c` samples is within `196 * sqrt(1/c)` percent of the truth, nineteen times
//! of twenty. Samples that were lost on the way, or that the agent dropped, are made up for first. Where an agent
//! or an interface began to count anew, the time from the last counters before to the first ones after is left out.
//!
//! Frames are sampled with their check sequence and counted by many interfaces without it. Octets are
//! therefore compared both ways. Which way a packet went is worked out of its sample and of what else is known
//! (`way`); where that cannot be known, nobody is called a liar for it.
//!
//! Memory is bounded: of agents and interfaces beyond a limit only how many datagrams came is kept.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::decode::{CounterRecord, CounterRecords, Datagram, FlowRecord, FlowRecords, Sample};
use super::{
    CountersSample, FlowSample, InterfaceCounters, LagCounters, UNKNOWN_COUNTER_32,
    UNKNOWN_COUNTER_64,
};
use estimate::{Counted, Sampled};
use numbers::{Clock, Growing};
use way::SampleDirection;

mod estimate;
mod numbers;
mod way;

pub use estimate::{Direction, Estimate, Verdict};
pub use numbers::{Numbers, Order};

/// Agents kept.
const MOST_AGENTS: usize = 4096;
/// Data sources kept of all agents together.
const MOST_SOURCES: usize = 100_000;
/// Pairs of interfaces kept whose samples have no direction yet: of one source, and of all together.
const MOST_PAIRS: usize = 256;
const MOST_PAIRS_OF_ALL: usize = 50_000;
/// Interfaces kept of which it was seen whose they are.
const MOST_OWNED: usize = 100_000;
/// A longer name of an interface is none.
const LONGEST_NAME: usize = 64;
/// So many samples should come, and not a tenth of them did: nothing was sampled.
const GAP: u64 = 20;

/// All agents.
#[derive(Debug, Default)]
pub struct Ledger {
    agents: BTreeMap<(Option<IpAddr>, u32), Agent>,
    kept: Kept,
    /// Datagrams of agents that were too many.
    pub untracked: u64,
}

/// How much is kept of all agents together.
#[derive(Debug, Default)]
struct Kept {
    sources: usize,
    pairs: usize,
    owned: usize,
}

/// One more, if there may be.
fn room(count: &mut usize, most: usize) -> bool {
    let room = *count < most;
    *count += usize::from(room);
    room
}

/// One agent with one sub-agent number.
#[derive(Debug, Default)]
pub struct Agent {
    /// The numbers of its datagrams.
    pub datagrams: Numbers,
    clock: Clock,
    /// How often it was restarted.
    epoch: u64,
    /// Flow, counter and discard samples.
    pub samples: [u64; 3],
    sources: BTreeMap<(u32, u32), DataSource>,
    /// Interfaces by the first names that they reported.
    names: BTreeMap<Box<str>, u32>,
    /// Which source an interface was seen to belong to; nothing when to several.
    owners: BTreeMap<u32, Option<u32>>,
}

/// What is known about an interface or another source of samples.
#[derive(Debug, Default)]
pub struct DataSource {
    /// The numbers of its flow samples.
    pub flows: Numbers,
    /// The numbers of its counter samples.
    pub counters: Numbers,
    epoch: u64,
    drops: Growing,
    pool: Growing,
    /// The rate of the last sample.
    pub rate: u32,
    name: Option<Box<str>>,
    /// The link aggregation that it is a member of; 0 none.
    aggregate: u32,
    last: Option<InterfaceCounters>,
    counted: [Counted; 2],
    sampled: [Span; 2],
    /// Of no known direction, and such as may get one.
    undirected: Span,
    pairs: BTreeMap<Pair, Span>,
    /// Samples lost up to the last counters, and between counters.
    lost_at: u64,
    lost: u64,
    /// Packets counted while less was sampled than a tenth of what should be.
    gaps: [u64; 2],
}

/// Input and output interface, neither of which is the source; and what the VLANs tell.
type Pair = (u32, u32, Option<Direction>);

/// Sampled since the last counters, and between counters.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    pending: Sampled,
    settled: Sampled,
}

impl Span {
    fn settle(&mut self) {
        self.settled.merge(std::mem::take(&mut self.pending));
    }

    fn forget(&mut self) {
        self.pending = Sampled::default();
    }
}

impl Ledger {
    /// An empty one.
    #[must_use]
    pub fn new() -> Ledger {
        Ledger::default()
    }

    /// Enters a datagram. What is damaged in it is left out.
    pub fn note(&mut self, datagram: &Datagram<'_>) {
        let key = (datagram.agent, datagram.sub_agent_id);
        if self.agents.len() >= MOST_AGENTS && !self.agents.contains_key(&key) {
            self.untracked += 1;
            return;
        }
        let agent = self.agents.entry(key).or_default();
        let order = agent
            .clock
            .note(&mut agent.datagrams, datagram.sequence, datagram.uptime_ms);
        if order == Order::Restart {
            agent.epoch += 1;
        }
        for sample in datagram.samples().flatten() {
            agent.sample(&sample, order, &mut self.kept);
        }
    }

    /// All agents, with their addresses and sub-agent numbers.
    pub fn agents(&self) -> impl Iterator<Item = (Option<IpAddr>, u32, &Agent)> {
        self.agents
            .iter()
            .map(|(&(address, sub_agent), agent)| (address, sub_agent, agent))
    }
}

impl Agent {
    fn sample(&mut self, sample: &Sample<'_>, order: Order, kept: &mut Kept) {
        let (Some(source), Some(kind)) = (sample.source(), kind(sample)) else {
            return;
        };
        if let Some(count) = self.samples.get_mut(kind) {
            *count += 1;
        }
        let key = (source.class, source.index);
        if !self.sources.contains_key(&key) && !room(&mut kept.sources, MOST_SOURCES) {
            return;
        }
        let entry = self.sources.entry(key).or_default();
        if entry.epoch != self.epoch {
            entry.epoch = self.epoch;
            entry.begin_again();
        }
        match sample {
            Sample::Flow(_, fixed, records) => {
                let way = way::way(fixed);
                entry.flow(fixed, *records, way, order, kept);
                if let SampleDirection::Known(_, Some(interface)) = way {
                    self.belongs(interface, source.index, kept);
                }
            }
            Sample::Counters(_, fixed, records) => {
                let named = entry.name.is_some();
                entry.counters(fixed, *records, order);
                if let (false, 0, Some(name)) = (named, source.class, &entry.name) {
                    self.names.insert(name.clone(), source.index);
                }
            }
            Sample::Discard(..) | Sample::Unknown(_) => {}
        }
    }

    fn belongs(&mut self, interface: u32, source: u32, kept: &mut Kept) {
        match self.owners.get_mut(&interface) {
            Some(owner) if *owner != Some(source) => *owner = None,
            Some(_) => {}
            None if room(&mut kept.owned, MOST_OWNED) => {
                self.owners.insert(interface, Some(source));
            }
            None => {}
        }
    }

    /// Its data sources: class, index, and what is known.
    pub fn sources(&self) -> impl Iterator<Item = (u32, u32, &DataSource)> {
        self.sources
            .iter()
            .map(|(&(class, index), source)| (class, index, source))
    }

    /// A source's samples beside its counters; nothing for a direction in which nothing was sampled, and nothing
    /// without two reports.
    #[must_use]
    pub fn estimates(&self, class: u32, index: u32) -> Vec<Estimate> {
        self.sources
            .get(&(class, index))
            .map(|source| source.estimates(|pair| self.direction(index, pair)))
            .unwrap_or_default()
    }

    /// Which way packets went from one interface to another, as this source saw it.
    fn direction(&self, source: u32, (input, output, by_vlan): Pair) -> Option<Direction> {
        match (
            self.is_foreign(input, source),
            self.is_foreign(output, source),
        ) {
            (true, false) => Some(Direction::Egress),
            (false, true) => Some(Direction::Ingress),
            _ => by_vlan,
        }
    }

    /// Whether an interface is known to belong to another source.
    fn is_foreign(&self, interface: u32, source: u32) -> bool {
        let name = |index| {
            self.sources
                .get(&(0, index))
                .and_then(|found| found.name.as_deref())
        };
        let aggregate = self
            .sources
            .get(&(0, source))
            .map_or(0, |found| found.aggregate);
        // A sub-interface of this port, or of the aggregation that this port is a member of.
        let below = |port| {
            name(interface)
                .zip(name(port))
                .is_some_and(|(name, port)| is_sub_interface(name, port))
        };
        if interface == 0
            || interface == source
            || interface == aggregate
            || below(source)
            || below(aggregate)
        {
            return false;
        }
        if self
            .sources
            .get(&(0, interface))
            .is_some_and(|found| found.flows.received > 0)
        {
            return true;
        }
        let of_another = name(interface)
            .and_then(|name| self.sampled_port(name))
            .is_some_and(|port| port != source);
        of_another
            || self
                .owners
                .get(&interface)
                .is_some_and(|owner| owner.is_some_and(|owner| owner != source))
    }

    /// The source of flow samples of which this name is a sub-interface's.
    fn sampled_port(&self, name: &str) -> Option<u32> {
        let ports = name
            .rmatch_indices('.')
            .filter_map(|(end, _)| self.names.get(name.get(..end)?).copied());
        ports.into_iter().find(|&port| {
            self.sources
                .get(&(0, port))
                .is_some_and(|found| found.flows.received > 0)
        })
    }
}

/// `xe0.100` is one of `xe0`.
fn is_sub_interface(name: &str, port: &str) -> bool {
    name.strip_prefix(port)
        .is_some_and(|rest| rest.starts_with('.'))
}

fn kind(sample: &Sample<'_>) -> Option<usize> {
    match sample {
        Sample::Flow(..) => Some(0),
        Sample::Counters(..) => Some(1),
        Sample::Discard(..) => Some(2),
        Sample::Unknown(_) => None,
    }
}

impl DataSource {
    /// The agent was restarted: what it counts is counted anew.
    fn begin_again(&mut self) {
        self.flows.forget();
        self.counters.forget();
        self.begin_pool_again();
        self.last = None;
    }

    /// A pool that begins again begins with its sequence.
    fn begin_pool_again(&mut self) {
        self.drops.forget();
        self.pool.forget();
    }

    fn flow(
        &mut self,
        sample: &FlowSample,
        records: FlowRecords<'_>,
        way: SampleDirection,
        order: Order,
        kept: &mut Kept,
    ) {
        // Nothing can be late or double in a datagram that is neither: the source began again.
        let again = order == Order::Next
            && self.flows.is_behind(sample.sequence)
            && self.pool.is_behind(sample.pool);
        let number = if again {
            self.flows.restart(sample.sequence)
        } else {
            self.flows.note(sample.sequence)
        };
        if number == Order::Restart {
            self.begin_pool_again();
        }
        if order == Order::Duplicate {
            return;
        }
        self.drops.note(sample.drops);
        self.pool.note(sample.pool);
        self.rate = sample.rate;
        let raw = records.flatten().find_map(|record| match record {
            FlowRecord::RawHeader(raw) => Some(raw),
            FlowRecord::Other(_) => None,
        });
        let Some(raw) = raw else { return };
        let [ingress, egress] = &mut self.sampled;
        let span = match way {
            SampleDirection::Known(Direction::Ingress, _) => ingress,
            SampleDirection::Known(Direction::Egress, _) => egress,
            SampleDirection::Unknown => &mut self.undirected,
            SampleDirection::Between(input, output) => {
                let pair = (input, output, way::by_vlan(&raw, records));
                let is_new = !self.pairs.contains_key(&pair);
                if is_new
                    && (self.pairs.len() >= MOST_PAIRS || !room(&mut kept.pairs, MOST_PAIRS_OF_ALL))
                {
                    &mut self.undirected
                } else {
                    self.pairs.entry(pair).or_default()
                }
            }
        };
        span.pending.add(sample.rate, raw.frame_length);
    }

    fn counters(&mut self, sample: &CountersSample, records: CounterRecords<'_>, order: Order) {
        let again = order == Order::Next
            && self.counters.is_behind(sample.sequence)
            && self.counters.highest != Some(sample.sequence);
        let number = if again {
            self.counters.restart(sample.sequence)
        } else {
            self.counters.note(sample.sequence)
        };
        // What comes late or again was taken before the last.
        if matches!(order, Order::Late | Order::Duplicate) {
            return;
        }
        let mut interface = None;
        for record in records.flatten() {
            match record {
                CounterRecord::Interface(counters) => interface = interface.or(Some(counters)),
                CounterRecord::PortName(name)
                    if self.name.is_none() && (1..=LONGEST_NAME).contains(&name.len()) =>
                {
                    self.name = std::str::from_utf8(name).ok().map(Box::from);
                }
                CounterRecord::Other(opaque) if opaque.format == LagCounters::STRUCTURE.format => {
                    self.aggregate = LagCounters::of(&opaque).map_or(0, |lag| lag.aggregate);
                }
                CounterRecord::PortName(_) | CounterRecord::Other(_) => {}
            }
        }
        if let Some(counters) = interface {
            if number == Order::Restart {
                self.last = None;
            }
            self.report(&counters);
        }
    }

    /// All that was sampled.
    fn spans(&mut self) -> impl Iterator<Item = &mut Span> {
        self.sampled
            .iter_mut()
            .chain([&mut self.undirected])
            .chain(self.pairs.values_mut())
    }

    /// The interface's own counters: what was sampled up to now belongs to what they count.
    fn report(&mut self, counters: &InterfaceCounters) {
        let lost = self.flows.lost + self.drops.total;
        let lost_before = std::mem::replace(&mut self.lost_at, lost);
        // Octets have 64 bits and do not wrap.
        let is_behind = |new: u64, old: u64| new < old && old != UNKNOWN_COUNTER_64;
        let went_on = self.last.replace(*counters).filter(|last| {
            !is_behind(counters.in_octets, last.in_octets)
                && !is_behind(counters.out_octets, last.out_octets)
        });
        let Some(last) = went_on else {
            self.spans().for_each(Span::forget);
            return;
        };
        self.lost = (self.lost + lost).saturating_sub(lost_before);
        let grown = |new: u32, old: u32| {
            if new == UNKNOWN_COUNTER_32 || old == UNKNOWN_COUNTER_32 {
                0
            } else {
                u64::from(new.wrapping_sub(old))
            }
        };
        let octets = |new: u64, old: u64| {
            if new == UNKNOWN_COUNTER_64 || old == UNKNOWN_COUNTER_64 {
                0
            } else {
                new.saturating_sub(old)
            }
        };
        let packets = [
            grown(counters.in_unicast, last.in_unicast)
                + grown(counters.in_multicast, last.in_multicast)
                + grown(counters.in_broadcast, last.in_broadcast),
            grown(counters.out_unicast, last.out_unicast)
                + grown(counters.out_multicast, last.out_multicast)
                + grown(counters.out_broadcast, last.out_broadcast),
        ];
        let octets = [
            octets(counters.in_octets, last.in_octets),
            octets(counters.out_octets, last.out_octets),
        ];
        let others = lost.saturating_sub(lost_before)
            + self.undirected.pending.samples
            + self
                .pairs
                .values()
                .map(|span| span.pending.samples)
                .sum::<u64>();
        for ((counted, span), (gap, (packets, octets))) in self
            .counted
            .iter_mut()
            .zip(&self.sampled)
            .zip(self.gaps.iter_mut().zip(packets.into_iter().zip(octets)))
        {
            counted.packets += packets;
            counted.octets += octets;
            let due = packets / u64::from(self.rate.max(1));
            if due >= GAP && (span.pending.samples + others) * 10 <= due {
                *gap += packets;
            }
        }
        self.spans().for_each(Span::settle);
    }

    /// Samples that the agent dropped since the first that arrived.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.drops.total
    }

    /// Packets that could have been sampled since the first sample that arrived.
    #[must_use]
    pub fn pool(&self) -> u64 {
        self.pool.total
    }

    fn estimates(&self, direction: impl Fn(Pair) -> Option<Direction>) -> Vec<Estimate> {
        let [mut ingress, mut egress] = self.sampled.map(|span| span.settled);
        let mut undirected = self.undirected.settled;
        for (&pair, span) in &self.pairs {
            match direction(pair) {
                Some(Direction::Ingress) => ingress.merge(span.settled),
                Some(Direction::Egress) => egress.merge(span.settled),
                None => undirected.merge(span.settled),
            }
        }
        let all = ingress.samples + egress.samples + undirected.samples;
        let correction = 1.0 + self.lost as f64 / all.max(1) as f64;
        let directed = ingress.samples + egress.samples;
        let directions = [(Direction::Ingress, ingress), (Direction::Egress, egress)];
        let estimates = directions.into_iter().zip(self.counted).zip(self.gaps).map(
            |(((direction, sampled), counted), gap)| {
                let with_gaps = gap / u64::from(self.rate.max(1)) >= GAP;
                Estimate {
                    with_gaps,
                    ..Estimate::new(direction, sampled, undirected, counted, correction)
                }
            },
        );
        // Both, if nobody knows which it was.
        estimates
            .filter(|estimate| estimate.samples > 0 || (directed == 0 && estimate.undirected > 0))
            .collect()
    }
}
