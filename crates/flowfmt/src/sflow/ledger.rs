//! What a collector can know about its agents: what was lost, and whether the samples tell the truth.
//!
//! Every datagram is entered once, in the order of arrival. Gaps in the numbers of datagrams and samples
//! are losses, a number that comes late is a reordering, and takes its loss back. For each interface the
//! samples are scaled up and put beside its own counters, over exactly the time between the first and the
//! last counters that arrived: by the theory of packet sampling (P. Phaal, S. Panchen, "Packet sampling
//! basics") the estimate from `c` samples is within `196 * sqrt(1/c)` percent of the truth, nineteen times
//! of twenty. Samples that were lost on the way, or that the agent dropped, are made up for first.
//!
//! Frames are sampled with their check sequence and counted by many interfaces without it. Octets are
//! therefore compared both ways.
//!
//! Memory is bounded: of agents and interfaces beyond a limit only how many datagrams came is kept.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::decode::{CounterRecord, Datagram, FlowRecord, Sample};
use super::{FlowSample, InterfaceCounters, Port, RawHeader, UNKNOWN_COUNTER_32, UNKNOWN_COUNTER_64};

/// Agents kept.
const MOST_AGENTS: usize = 4096;
/// Data sources kept of all agents together.
const MOST_SOURCES: usize = 100_000;
/// A number so much lower or higher than expected is a new beginning.
const RESTART: u32 = 100_000;
/// The frame check sequence.
const FCS: u64 = 4;

/// All agents.
#[derive(Debug, Default)]
pub struct Ledger {
    agents: BTreeMap<(Option<IpAddr>, u32), Agent>,
    sources: usize,
    /// Datagrams of agents that were too many.
    pub untracked: u64,
}

/// One agent with one sub-agent number.
#[derive(Debug, Default)]
pub struct Agent {
    /// The numbers of its datagrams.
    pub datagrams: Numbers,
    /// Flow, counter and discard samples.
    pub samples: [u64; 3],
    sources: BTreeMap<(u32, u32), DataSource>,
}

/// What numbers that should follow one another tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// How many came.
    pub received: u64,
    /// How many did not.
    pub lost: u64,
    /// How many came after a higher one.
    pub reordered: u64,
    /// How many came twice.
    pub duplicates: u64,
    /// How often counting began again.
    pub restarts: u64,
    highest: Option<u32>,
    /// Which of the last 64 came; the lowest bit is the highest number.
    seen: u64,
}

impl Numbers {
    /// Enters one.
    pub fn note(&mut self, number: u32) {
        self.received += 1;
        let Some(highest) = self.highest else {
            (self.highest, self.seen) = (Some(number), 1);
            return;
        };
        let (ahead, behind) = (number.wrapping_sub(highest), highest.wrapping_sub(number));
        match (ahead, behind) {
            (0, _) => self.duplicates += 1,
            (1..RESTART, _) => {
                self.lost += u64::from(ahead - 1);
                self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
                self.highest = Some(number);
            }
            (_, 1..64) => {
                let bit = 1_u64 << behind;
                if self.seen & bit != 0 {
                    self.duplicates += 1;
                } else {
                    self.seen |= bit;
                    self.reordered += 1;
                    self.lost = self.lost.saturating_sub(1);
                }
            }
            _ => {
                self.restarts += 1;
                (self.highest, self.seen) = (Some(number), 1);
            }
        }
    }

    /// Lost of all that were sent, in percent.
    #[must_use]
    pub fn loss_percent(&self) -> f64 {
        let sent = self.received.saturating_sub(self.duplicates) + self.lost;
        if sent == 0 { 0.0 } else { 100.0 * self.lost as f64 / sent as f64 }
    }
}

/// A 32-bit number that only grows, over its wraps.
#[derive(Clone, Copy, Debug, Default)]
struct Growing {
    last: Option<u32>,
    total: u64,
}

impl Growing {
    fn note(&mut self, value: u32) {
        let grown = self.last.map_or(0, |last| value.wrapping_sub(last));
        // A step back is a new beginning.
        if grown < 1 << 31 {
            self.total += u64::from(grown);
        }
        self.last = Some(value);
    }
}

/// What is known about an interface or another source of samples.
#[derive(Debug, Default)]
pub struct DataSource {
    /// The numbers of its flow samples.
    pub flows: Numbers,
    /// The numbers of its counter samples.
    pub counters: Numbers,
    drops: Growing,
    pool: Growing,
    /// The rate of the last sample.
    pub rate: u32,
    last: Option<InterfaceCounters>,
    counted: [Counted; 2],
    /// Sampled since the last counters, and before.
    pending: [Sampled; 2],
    settled: [Sampled; 2],
    /// Lost up to the first counters, since then, and now.
    lost_before: u64,
    lost_until: u64,
}

/// What an interface counted in one direction between its first and its last report.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    packets: u64,
    octets: u64,
}

/// What was sampled in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    samples: u64,
    packets: u64,
    octets: u64,
    octets_without_fcs: u64,
    /// Sums for the frames' variation.
    lengths: f64,
    squares: f64,
}

impl Sampled {
    fn add(&mut self, rate: u32, frame: u32) {
        let (rate, frame) = (u64::from(rate), u64::from(frame));
        self.samples += 1;
        self.packets = self.packets.saturating_add(rate);
        self.octets = self.octets.saturating_add(rate * frame);
        self.octets_without_fcs = self.octets_without_fcs.saturating_add(rate * frame.saturating_sub(FCS));
        self.lengths += frame as f64;
        self.squares += (frame * frame) as f64;
    }

    fn merge(&mut self, other: Sampled) {
        self.samples += other.samples;
        self.packets = self.packets.saturating_add(other.packets);
        self.octets = self.octets.saturating_add(other.octets);
        self.octets_without_fcs = self.octets_without_fcs.saturating_add(other.octets_without_fcs);
        self.lengths += other.lengths;
        self.squares += other.squares;
    }

    /// The squared coefficient of variation of the frames' lengths.
    fn variation(&self) -> f64 {
        let mean = self.lengths / self.samples.max(1) as f64;
        if mean == 0.0 { 0.0 } else { (self.squares / self.samples.max(1) as f64 / (mean * mean) - 1.0).max(0.0) }
    }
}

/// Which way packets go through an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// In.
    Ingress,
    /// Out.
    Egress,
}

/// Samples beside counters, of one interface and direction.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Which direction.
    pub direction: Direction,
    /// Samples in the time between the first and the last counters.
    pub samples: u64,
    /// Packets, as the samples have it.
    pub estimated_packets: f64,
    /// Packets, as the interface counted.
    pub counted_packets: u64,
    /// Octets, as the samples have it, with the frames' check sequences.
    pub estimated_octets: f64,
    /// The same without them.
    pub estimated_octets_without_fcs: f64,
    /// Octets, as the interface counted.
    pub counted_octets: u64,
    /// How far the packets may be off, in percent.
    pub packet_bound: f64,
    /// How far the octets may be off, in percent; more, because frames differ.
    pub octet_bound: f64,
}

/// In percent of what is true.
fn off(estimated: f64, counted: u64) -> f64 {
    if counted == 0 { if estimated == 0.0 { 0.0 } else { f64::INFINITY } } else { 100.0 * (estimated / counted as f64 - 1.0) }
}

impl Estimate {
    /// How far the packets are off, in percent.
    #[must_use]
    pub fn packets_off(&self) -> f64 {
        off(self.estimated_packets, self.counted_packets)
    }

    /// How far the octets are off, in percent, and whether the interface counts check sequences: what fits
    /// better.
    #[must_use]
    pub fn octets_off(&self) -> (f64, bool) {
        let (with, without) =
            (off(self.estimated_octets, self.counted_octets), off(self.estimated_octets_without_fcs, self.counted_octets));
        if with.abs() <= without.abs() { (with, true) } else { (without, false) }
    }

    /// Whether both are within their bounds.
    #[must_use]
    pub fn within(&self) -> bool {
        self.packets_off().abs() <= self.packet_bound && self.octets_off().0.abs() <= self.octet_bound
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
        agent.datagrams.note(datagram.sequence);
        for sample in datagram.samples().flatten() {
            agent.sample(&sample, &mut self.sources);
        }
    }

    /// All agents, with their addresses and sub-agent numbers.
    pub fn agents(&self) -> impl Iterator<Item = (Option<IpAddr>, u32, &Agent)> {
        self.agents.iter().map(|(&(address, sub_agent), agent)| (address, sub_agent, agent))
    }
}

impl Agent {
    fn sample(&mut self, sample: &Sample<'_>, sources: &mut usize) {
        let (Some(source), Some(kind)) = (sample.source(), kind(sample)) else { return };
        if let Some(count) = self.samples.get_mut(kind) {
            *count += 1;
        }
        let key = (source.class, source.index);
        if !self.sources.contains_key(&key) {
            if *sources >= MOST_SOURCES {
                return;
            }
            *sources += 1;
        }
        let entry = self.sources.entry(key).or_default();
        match sample {
            Sample::Flow(_, fixed, records) => {
                let header = (*records).flatten().find_map(|record| match record {
                    FlowRecord::RawHeader(raw) => Some(raw),
                    FlowRecord::Other(_) => None,
                });
                entry.flow(fixed, header.as_ref());
            }
            Sample::Counters(_, fixed, records) => {
                entry.counters.note(fixed.sequence);
                let counters = (*records).flatten().find_map(|record| match record {
                    CounterRecord::Interface(counters) => Some(counters),
                    _ => None,
                });
                if let Some(counters) = counters {
                    entry.report(&counters);
                }
            }
            Sample::Discard(..) | Sample::Unknown(_) => {}
        }
    }

    /// Its data sources: class, index, and what is known.
    pub fn sources(&self) -> impl Iterator<Item = (u32, u32, &DataSource)> {
        self.sources.iter().map(|(&(class, index), source)| (class, index, source))
    }
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
    fn flow(&mut self, sample: &FlowSample, header: Option<&RawHeader<'_>>) {
        self.flows.note(sample.sequence);
        self.drops.note(sample.drops);
        self.pool.note(sample.pool);
        self.rate = sample.rate;
        let itself = Port::interface(sample.source.index);
        // No field says the direction: who leaves by the source itself was sampled there.
        let egress = sample.output == itself && sample.input != itself;
        if let Some(header) = header
            && let Some(pending) = self.pending.get_mut(usize::from(egress))
        {
            pending.add(sample.rate, header.frame_length);
        }
    }

    /// The interface's own counters: what was sampled up to now belongs to what they count.
    fn report(&mut self, counters: &InterfaceCounters) {
        let pending = std::mem::take(&mut self.pending);
        let Some(last) = self.last.replace(*counters) else {
            self.lost_before = self.lost();
            self.lost_until = self.lost_before;
            return;
        };
        self.lost_until = self.lost();
        let grown = |new: u32, old: u32| if new == UNKNOWN_COUNTER_32 { 0 } else { u64::from(new.wrapping_sub(old)) };
        let octets = |new: u64, old: u64| if new == UNKNOWN_COUNTER_64 { 0 } else { new.saturating_sub(old) };
        let [ingress, egress] = &mut self.counted;
        ingress.packets += grown(counters.in_unicast, last.in_unicast)
            + grown(counters.in_multicast, last.in_multicast)
            + grown(counters.in_broadcast, last.in_broadcast);
        ingress.octets += octets(counters.in_octets, last.in_octets);
        egress.packets += grown(counters.out_unicast, last.out_unicast)
            + grown(counters.out_multicast, last.out_multicast)
            + grown(counters.out_broadcast, last.out_broadcast);
        egress.octets += octets(counters.out_octets, last.out_octets);
        for (settled, pending) in self.settled.iter_mut().zip(pending) {
            settled.merge(pending);
        }
    }

    /// Samples that were taken and did not arrive.
    fn lost(&self) -> u64 {
        self.flows.lost + self.drops.total
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

    /// Samples beside counters; nothing for a direction in which nothing was sampled, and nothing without two
    /// reports.
    pub fn estimates(&self) -> impl Iterator<Item = Estimate> {
        let all: u64 = self.settled.iter().map(|sampled| sampled.samples).sum();
        let lost = self.lost_until.saturating_sub(self.lost_before);
        let correction = 1.0 + lost as f64 / all.max(1) as f64;
        let directions = [Direction::Ingress, Direction::Egress];
        directions.into_iter().zip(self.settled.iter().zip(&self.counted)).filter(|(_, (sampled, _))| sampled.samples > 0).map(
            move |(direction, (sampled, counted))| {
                let packet_bound = 196.0 * (1.0 / sampled.samples as f64).sqrt();
                Estimate {
                    direction,
                    samples: sampled.samples,
                    estimated_packets: sampled.packets as f64 * correction,
                    counted_packets: counted.packets,
                    estimated_octets: sampled.octets as f64 * correction,
                    estimated_octets_without_fcs: sampled.octets_without_fcs as f64 * correction,
                    counted_octets: counted.octets,
                    packet_bound,
                    octet_bound: packet_bound * (1.0 + sampled.variation()).sqrt(),
                }
            },
        )
    }
}
