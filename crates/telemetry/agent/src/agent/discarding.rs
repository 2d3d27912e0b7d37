//! Notifications of discarded packets (0:5).
//!
//! One notifier for the whole router, as other agents have it (data source 0:0), with one sequence. They travel in
//! datagrams of their own, since some collectors lose what follows one in a datagram. `drops` says how many
//! discarded packets were not reported up to then: those that the workers kept to themselves, and those
//! that found the limit over all exhausted here. So it never goes back, however many are on their way.
//!
//! What is shown to people counts from the other end: all that the router counted as dropped since it began to tell, less
//! those that were reported, so that both together are exact however low the limit is.
//!
//! What a driver lost before anybody saw it has no packet to show; it is reported as a notification without a header, once
//! a look, and counts in full.

use std::collections::BTreeMap;
use std::time::Instant;

use weir_flowfmt::sflow::encode::FlowRecord;
use weir_flowfmt::sflow::{DiscardedPacket, Port, RawHeader, Source};
use weir_graph::DropReason;

use super::kernel::Dropped;
use super::numbering::{FCS, SampleNumbering};
use super::{DiscardStats, InterfaceReport, Reports};
use crate::discards::{Discard, DiscardSource, Shares};

/// Discards taken from a worker's ring at a time.
const BURST: usize = 1024;
/// The standard's reason for what found no room: no buffer space.
const NO_BUFFER_SPACE: u16 = 259;

/// By which node and for which reason a frame is missed that no worker saw.
pub const RX_MISS: (&str, &str) = ("port-rx", "rx-miss");

/// The notifier.
pub(super) struct Discarding {
    sources: Vec<DiscardSource>,
    shares: Shares,
    started: Instant,
    /// Packets dropped, and reported, when this began; `None` while nothing is reported.
    before: Option<(u64, u64)>,
    /// Discards that were not reported while something was reported earlier.
    unreported_before: u64,
    /// Discards that found the limit exhausted here, and missed frames that nobody was reported of.
    kept: u64,
    /// Frames missed by each interface as of the last look.
    missed: BTreeMap<u32, u64>,
    /// Missed frames since the first was reported.
    missed_in_all: u64,
    sequence: u32,
    sent: u64,
    /// By interface, node, reason and code.
    reported: BTreeMap<(u32, &'static str, &'static str, u32), u64>,
}

impl Discarding {
    pub(super) fn new(now: Instant) -> Discarding {
        Discarding {
            sources: Vec::new(),
            shares: Shares::default(),
            started: now,
            before: None,
            unreported_before: 0,
            kept: 0,
            missed: BTreeMap::new(),
            missed_in_all: 0,
            sequence: 0,
            sent: 0,
            reported: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, sources: Vec<DiscardSource>) {
        self.sources.extend(sources);
    }

    /// Tells what the workers noted. Returns whether there was anything.
    pub(super) fn drain(
        &mut self,
        limit: u32,
        reports: &dyn Reports,
        numbering: &mut SampleNumbering,
        now: Instant,
    ) -> bool {
        if limit == 0 {
            // What is still in the rings is of before it was turned off.
            for source in &mut self.sources {
                while source.ring.pop_with(|_| ()).is_some() {
                    self.kept += 1;
                }
            }
            self.unreported_before = self.unreported(reports);
            self.before = None;
            return false;
        }
        if self.before.is_none() {
            self.begin(reports);
        }
        let clock = now.duration_since(self.started).as_nanos() as u64;
        let mut sources = std::mem::take(&mut self.sources);
        let mut found = false;
        for at in 0..sources.len() {
            for _ in 0..BURST {
                let suppressed = suppressed(&sources);
                let Some(source) = sources.get_mut(at) else {
                    break;
                };
                let taken = source.ring.pop_with(|discard| {
                    let takes = self
                        .shares
                        .takes(discard.reason, discard.interface, limit, clock);
                    if !takes || !self.tell(discard, suppressed, reports, numbering, now) {
                        self.kept += 1;
                    }
                });
                found |= taken.is_some();
                if taken.is_none() {
                    break;
                }
            }
        }
        self.sources = sources;
        found
    }

    /// From now on it is counted.
    fn begin(&mut self, reports: &dyn Reports) {
        self.before = Some((reports.dropped(), self.sent));
        self.missed = reports
            .interfaces()
            .iter()
            .map(|report| (report.ifindex, report.missed))
            .collect();
        self.missed_in_all = 0;
    }

    /// Discarded packets that were not reported.
    pub(super) fn unreported(&self, reports: &dyn Reports) -> u64 {
        let Some((dropped, sent)) = self.before else {
            return self.unreported_before;
        };
        let lost = reports.dropped().saturating_sub(dropped) + self.missed_in_all;
        self.unreported_before + lost.saturating_sub(self.sent - sent)
    }

    /// What was reported, by interface, node and reason.
    pub(super) fn by_kind(&self) -> Vec<DiscardStats> {
        self.reported
            .iter()
            .map(|(&(ifindex, node, reason, code), &reported)| DiscardStats {
                ifindex,
                node,
                reason,
                code,
                reported,
            })
            .collect()
    }

    /// An interface was made: its drops are counted from 0 on. What an earlier one of its number dropped is counted for none.
    pub(super) fn interface_made(&mut self, ifindex: u32) {
        let earlier: Vec<_> = self
            .reported
            .extract_if((ifindex, "", "", 0).., |kind, _| kind.0 == ifindex)
            .collect();
        for ((_, node, reason, code), count) in earlier {
            *self.reported.entry((0, node, reason, code)).or_default() += count;
        }
    }

    /// Packets that were reported.
    pub(super) fn reported(&self) -> u64 {
        self.sent
    }

    /// Reports a discard, before which the workers suppressed so many. Returns whether it was reported.
    fn tell(
        &mut self,
        discard: &Discard,
        suppressed: u64,
        reports: &dyn Reports,
        numbering: &mut SampleNumbering,
        now: Instant,
    ) -> bool {
        let (node, reason) = (reports.node(discard.node), discard.reason.name());
        let records = [
            FlowRecord::RawHeader(header(discard)),
            FlowRecord::Trap {
                group: node,
                trap: reason,
            },
        ];
        let records = if discard.bytes().is_empty() {
            &records[1..]
        } else {
            &records[..]
        };
        let input = if discard.originated {
            0
        } else {
            discard.interface
        };
        let code = crate::discard_code(discard.reason);
        let length = discard.frame;
        numbering.kernel.drop_alert(&Dropped {
            input: numbering.indices.heard(input),
            node,
            reason,
            code,
            length,
            data: discard.bytes(),
        });
        // "Generated by the router itself" has a number of its own.
        let input = if discard.originated {
            Port::INTERNAL.value
        } else {
            numbering.indices.reported(input)
        };
        let output = match egress(node, discard) {
            Some(interface) => numbering.indices.reported(interface),
            None => 0,
        };
        let ports = (input, output);
        let reported = self.send(ports, code.into(), records, suppressed, numbering, now);
        if reported {
            *self
                .reported
                .entry((discard.interface, node, reason, code.into()))
                .or_default() += 1;
        }
        reported
    }

    fn send(
        &mut self,
        (input, output): (u32, u32),
        reason: u32,
        records: &[FlowRecord<'_>],
        suppressed: u64,
        numbering: &mut SampleNumbering,
        now: Instant,
    ) -> bool {
        let sample = DiscardedPacket {
            sequence: self.sequence.wrapping_add(1),
            source: Source { class: 0, index: 0 },
            // The field has 32 bits and wraps.
            drops: self.kept.wrapping_add(suppressed) as u32,
            input,
            output,
            reason,
        };
        let added = numbering
            .datagrams
            .add_discard(now, |builder| builder.discarded_packet(&sample, records));
        if added {
            self.sequence = sample.sequence;
            self.sent += 1;
        }
        added
    }

    /// Tells of frames that drivers lost since the last look.
    pub(super) fn look(
        &mut self,
        limit: u32,
        interfaces: &[InterfaceReport],
        numbering: &mut SampleNumbering,
        now: Instant,
    ) {
        if limit == 0 || self.before.is_none() {
            return;
        }
        let clock = now.duration_since(self.started).as_nanos() as u64;
        for report in interfaces {
            let before = self
                .missed
                .insert(report.ifindex, report.missed)
                .unwrap_or(report.missed);
            let more = report.missed.saturating_sub(before);
            if more == 0 {
                continue;
            }
            self.missed_in_all += more;
            // One notification is for all of them.
            self.kept += more - 1;
            let reported = self
                .shares
                .takes(DropReason::NoBuffer, report.ifindex, limit, clock)
                && self.tell_missed(report.ifindex, numbering, now);
            self.kept += u64::from(!reported);
        }
    }

    fn tell_missed(
        &mut self,
        interface: u32,
        numbering: &mut SampleNumbering,
        now: Instant,
    ) -> bool {
        let (group, trap) = RX_MISS;
        numbering.kernel.drop_alert(&Dropped {
            input: numbering.indices.heard(interface),
            node: group,
            reason: trap,
            code: NO_BUFFER_SPACE,
            length: 0,
            data: &[],
        });
        let suppressed = suppressed(&self.sources);
        let records = [FlowRecord::Trap { group, trap }];
        let reported = self.send(
            (numbering.indices.reported(interface), 0),
            NO_BUFFER_SPACE.into(),
            &records,
            suppressed,
            numbering,
            now,
        );
        if reported {
            *self
                .reported
                .entry((interface, group, trap, NO_BUFFER_SPACE.into()))
                .or_default() += 1;
        }
        reported
    }
}

/// Discards that the workers kept to themselves.
fn suppressed(sources: &[DiscardSource]) -> u64 {
    sources
        .iter()
        .fold(0, |sum, source| sum.wrapping_add(source.suppressed.get()))
}

/// The packet's first bytes. One that the router made and that still waited for its neighbour's address has no Ethernet
/// header worth the name: its sample begins with IP.
fn header(discard: &Discard) -> RawHeader<'_> {
    const ETHERNET: usize = 14;
    let (frame_length, bytes) = (discard.frame.saturating_add(FCS), discard.bytes());
    let (protocol, taken_off) = match (
        bytes.split_first_chunk(),
        bytes.get(ETHERNET).map(|first| first >> 4),
    ) {
        (Some((&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00], _)), Some(4))
            if discard.originated =>
        {
            (RawHeader::IPV4, ETHERNET)
        }
        (Some((&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x86, 0xdd], _)), Some(6))
            if discard.originated =>
        {
            (RawHeader::IPV6, ETHERNET)
        }
        _ => (RawHeader::ETHERNET, 0),
    };
    RawHeader {
        protocol,
        frame_length,
        stripped: FCS + taken_off as u32,
        header: bytes.get(taken_off..).unwrap_or(&[]),
    }
}

/// The interface that a discarded packet should have left by, where the node that dropped it stands behind that choice.
fn egress(node: &str, discard: &Discard) -> Option<u32> {
    matches!(node, "acl-output" | "port-tx").then_some(discard.word)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::{AgentConfig, PathLookup};
    use super::*;

    /// A router that counts drops, and has no tables.
    struct Counts(AtomicU64);

    impl Reports for Counts {
        fn interfaces(&self) -> Vec<InterfaceReport> {
            Vec::new()
        }
        fn with_ways(&self, _work: &mut dyn FnMut(&dyn PathLookup)) {}
        fn dropped(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
        fn node(&self, _number: u16) -> &'static str {
            "node"
        }
    }

    #[test]
    fn the_output_is_reported_where_it_is_known() {
        let mut discard = Discard::default();
        (discard.interface, discard.word) = (3, 7);
        assert_eq!(
            ["acl-output", "port-tx", "ip4-input"].map(|node| egress(node, &discard)),
            [Some(7), Some(7), None]
        );
    }

    #[test]
    fn what_was_reported_before_does_not_hide_what_is_dropped_after_it_was_off() {
        let now = Instant::now();
        let config = AgentConfig {
            drop_limit: 100,
            ..AgentConfig::new("192.0.2.1".parse().unwrap())
        };
        let (mut numbering, mut discarding, counts) = (
            SampleNumbering::new(&config, 0, now),
            Discarding::new(now),
            Counts(AtomicU64::new(0)),
        );
        let missed = Cell::new(0);
        let miss = |discarding: &mut Discarding, numbering: &mut SampleNumbering| {
            missed.set(missed.get() + 4);
            let report = InterfaceReport {
                ifindex: 1,
                missed: missed.get(),
                ..InterfaceReport::default()
            };
            discarding.look(100, &[report], numbering, now);
        };
        discarding.drain(100, &counts, &mut numbering, now);
        (0..3).for_each(|_| miss(&mut discarding, &mut numbering));
        // The first look has nothing to compare with; of the four missed each time one is reported.
        assert_eq!(
            (discarding.reported(), discarding.unreported(&counts)),
            (2, 6)
        );
        discarding.drain(0, &counts, &mut numbering, now);
        counts.0.store(5, Ordering::Relaxed);
        assert_eq!(
            discarding.unreported(&counts),
            6,
            "nothing is counted while nothing is reported"
        );
        discarding.drain(100, &counts, &mut numbering, now);
        counts.0.store(12, Ordering::Relaxed);
        assert_eq!(discarding.unreported(&counts), 13);
    }

    /// The drops of an interface that is made anew are counted from 0; what was reported of the earlier one is of none.
    #[test]
    fn an_interface_made_anew_begins_its_reported_drops_again() {
        let mut discarding = Discarding::new(Instant::now());
        for (interface, count) in [(0, 1), (3, 10), (4, 100)] {
            discarding
                .reported
                .insert((interface, "ip4-lookup", "no-route", 0), count);
        }
        let counts = |discarding: &Discarding| {
            discarding
                .by_kind()
                .iter()
                .map(|it| (it.ifindex, it.reported))
                .collect::<Vec<_>>()
        };
        discarding.interface_made(5);
        assert_eq!(counts(&discarding), [(0, 1), (3, 10), (4, 100)]);
        discarding.interface_made(3);
        assert_eq!(counts(&discarding), [(0, 11), (4, 100)]);
    }
}
