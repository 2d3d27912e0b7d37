//! Flows that are under way, for queries: all that a filter takes, those with the most packets or octets a second, or sums of
//! flows that have something in common.
//!
//! The worker inspects its table a little at a time, while packets go on; so an answer is no snapshot of one moment.
//! Whoever sends the query allocates the memory for the answer; the worker allocates none.
//!
//! A flow's counters begin anew with each active timeout, at a moment of its own. So flows are compared by their rates, which do
//! not depend on how long ago that was.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::flows::FlowRecord;
use crate::flows::key::Kind;

/// Which flows are asked for; what is absent does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Source or destination in this prefix.
    pub prefix: Option<(IpAddr, u8)>,
    /// In or out by this interface.
    pub interface: Option<u32>,
    /// Source or destination port.
    pub port: Option<u16>,
    /// IP protocol.
    pub protocol: Option<u8>,
}

impl FlowFilter {
    /// Whether it takes a flow.
    #[must_use]
    pub fn takes(&self, record: &FlowRecord) -> bool {
        let parts = record.key.parts();
        let is_within = |(prefix, length): (IpAddr, u8)| {
            let (kind, prefix, width) = match prefix {
                IpAddr::V4(address) => (Kind::Ip4, u128::from(u32::from(address)), 32),
                IpAddr::V6(address) => (Kind::Ip6, u128::from(address), 128),
            };
            let rest = u32::from(width) - u32::from(length.min(width));
            let alike = |address: [u8; 16]| {
                (u128::from_be_bytes(address) ^ prefix)
                    .checked_shr(rest)
                    .unwrap_or(0)
                    == 0
            };
            parts.kind == kind && (alike(parts.source) || alike(parts.destination))
        };
        let is_ip = parts.kind != Kind::L2;
        self.prefix.is_none_or(is_within)
            && self
                .interface
                .is_none_or(|wanted| parts.input == wanted || parts.output == wanted)
            && self.port.is_none_or(|wanted| {
                is_ip && (parts.source_port == wanted || parts.destination_port == wanted)
            })
            && self
                .protocol
                .is_none_or(|wanted| is_ip && parts.protocol == wanted)
    }
}

/// Which flows come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowOrder {
    /// As they lie in the table.
    #[default]
    None,
    /// Those with the most octets a second.
    Octets,
    /// Those with the most packets a second.
    Packets,
}

/// Packets and octets a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRates {
    /// Packets.
    pub packets: u64,
    /// Octets.
    pub octets: u64,
}

impl FlowRates {
    /// Of what was counted from a moment on until now, by the router's clock. Within the first second it counts as a second, so
    /// that the first packet of a flow makes no high rate.
    #[must_use]
    pub fn new(packets: u64, octets: u64, first: u64, now: u64) -> FlowRates {
        const SECOND: u64 = 1_000_000_000;
        let time = u128::from(now.saturating_sub(first).max(SECOND));
        let rate = |count: u64| {
            u64::try_from(u128::from(count) * u128::from(SECOND) / time).unwrap_or(u64::MAX)
        };
        FlowRates {
            packets: rate(packets),
            octets: rate(octets),
        }
    }

    /// Of a flow, since its record began.
    #[must_use]
    pub fn of(record: &FlowRecord, now: u64) -> FlowRates {
        let sums = &record.sums;
        FlowRates::new(sums.packets, sums.octets, sums.first, now)
    }
}

impl FlowOrder {
    /// By what flows are compared.
    #[must_use]
    pub fn weight(self, rates: FlowRates) -> u64 {
        match self {
            FlowOrder::None => 0,
            FlowOrder::Octets => rates.octets,
            FlowOrder::Packets => rates.packets,
        }
    }
}

/// A part of a flow by which flows are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// Source address or prefix.
    Source,
    /// Destination address or prefix.
    Destination,
    /// Both: a flow counts twice, if they differ.
    Host,
    /// IP protocol.
    Protocol,
    /// Interface of arrival.
    Input,
    /// Interface of departure.
    Output,
    /// `forwardingStatus`.
    Status,
}

/// How flows are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// By which part.
    pub by: GroupBy,
    /// Bits of addresses that count, of IPv4 and IPv6.
    pub lengths: (u8, u8),
}

/// What the flows of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupKey {
    /// The record set, direction and kind of the flows: what a set does not select is no address 0.
    pub base: (u8, bool, u8),
    /// The address as a number, or the number.
    pub value: u128,
}

impl Grouping {
    /// The groups of a flow.
    fn keys(&self, record: &FlowRecord) -> [Option<GroupKey>; 2] {
        let parts = record.key.parts();
        let address = |octets: [u8; 16]| {
            let (width, length) = match parts.kind {
                Kind::Ip4 => (32, self.lengths.0.min(32)),
                Kind::Ip6 => (128, self.lengths.1.min(128)),
                Kind::L2 => (128, 128),
            };
            let rest = u32::from(width - length);
            let value = u128::from_be_bytes(octets);
            value
                .checked_shr(rest)
                .and_then(|it| it.checked_shl(rest))
                .unwrap_or(0)
        };
        let key = |value: u128| {
            Some(GroupKey {
                base: (parts.set, parts.egress, parts.kind as u8),
                value,
            })
        };
        match self.by {
            GroupBy::Source => [key(address(parts.source)), None],
            GroupBy::Destination => [key(address(parts.destination)), None],
            GroupBy::Host => {
                let (source, destination) = (address(parts.source), address(parts.destination));
                let second = (source != destination).then(|| key(destination));
                [key(source), second.flatten()]
            }
            GroupBy::Protocol => [key(parts.protocol.into()), None],
            GroupBy::Input => [key(parts.input.into()), None],
            GroupBy::Output => [key(parts.output.into()), None],
            GroupBy::Status => [key(parts.status.into()), None],
        }
    }
}

/// The sums of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSums {
    /// Flows.
    pub flows: u64,
    /// Their packets.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// The sums of their rates.
    pub rates: FlowRates,
}

impl GroupSums {
    /// Adds others.
    pub fn add(&mut self, other: GroupSums) {
        self.flows += other.flows;
        self.packets += other.packets;
        self.octets = self.octets.saturating_add(other.octets);
        self.rates.packets = self.rates.packets.saturating_add(other.rates.packets);
        self.rates.octets = self.rates.octets.saturating_add(other.rates.octets);
    }
}

/// Groups that are distinguished by a worker; the flows of all others are summed up together.
pub const MOST_GROUPS: usize = 1 << 16;

/// A query, and the answer as far as it is found.
#[derive(Debug)]
pub struct Question {
    filter: FlowFilter,
    order: FlowOrder,
    grouping: Option<Grouping>,
    /// By the router's clock, for rates.
    now: u64,
    answer: Answer,
    most: usize,
}

/// The flows or groups of a query.
#[derive(Debug, Default)]
pub struct Answer {
    /// The query's number.
    pub number: u64,
    /// The flows, in no order.
    pub flows: Vec<FlowRecord>,
    /// The groups.
    pub groups: HashMap<GroupKey, GroupSums>,
    /// What is in no group, because there are [`MOST_GROUPS`].
    pub other: GroupSums,
    /// How many flows there were in all.
    pub matched: u64,
}

impl Question {
    /// A query for at most `most` flows, under a number by which the answer is fetched. `now` is the router's clock.
    #[must_use]
    pub fn new(
        number: u64,
        filter: FlowFilter,
        order: FlowOrder,
        most: usize,
        now: u64,
    ) -> Question {
        Question {
            filter,
            order,
            grouping: None,
            now,
            answer: Answer {
                number,
                flows: Vec::with_capacity(most),
                ..Answer::default()
            },
            most,
        }
    }

    /// A query for groups instead of flows.
    #[must_use]
    pub fn grouped(number: u64, filter: FlowFilter, grouping: Grouping, now: u64) -> Question {
        let mut question = Question::new(number, filter, FlowOrder::None, 0, now);
        question.grouping = Some(grouping);
        question.answer.groups = HashMap::with_capacity(MOST_GROUPS);
        question
    }

    fn weight(&self, record: &FlowRecord) -> u64 {
        self.order.weight(FlowRates::of(record, self.now))
    }

    /// A flow of the table.
    pub(super) fn consider(&mut self, record: &FlowRecord) {
        if !self.filter.takes(record) {
            return;
        }
        self.answer.matched += 1;
        if let Some(grouping) = self.grouping {
            self.sum_up(grouping, record);
            return;
        }
        if self.answer.flows.len() < self.most {
            self.answer.flows.push(*record);
            if self.answer.flows.len() == self.most {
                self.sink();
            }
            return;
        }
        // The lightest is the first.
        let weight = self.weight(record);
        if self
            .answer
            .flows
            .first()
            .is_some_and(|lightest| weight > self.weight(lightest))
        {
            if let Some(lightest) = self.answer.flows.first_mut() {
                *lightest = *record;
            }
            self.sink();
        }
    }

    /// Adds a flow to its groups.
    fn sum_up(&mut self, grouping: Grouping, record: &FlowRecord) {
        let sums = GroupSums {
            flows: 1,
            packets: record.sums.packets,
            octets: record.sums.octets,
            rates: FlowRates::of(record, self.now),
        };
        for key in grouping.keys(record).into_iter().flatten() {
            let groups = &mut self.answer.groups;
            if groups.len() < MOST_GROUPS {
                groups.entry(key).or_default().add(sums);
                continue;
            }
            match groups.get_mut(&key) {
                Some(group) => group.add(sums),
                None => self.answer.other.add(sums),
            }
        }
    }

    /// Brings the lightest to the front.
    fn sink(&mut self) {
        let lightest = self
            .answer
            .flows
            .iter()
            .enumerate()
            .min_by_key(|(_, record)| self.weight(record))
            .map(|(place, _)| place);
        if let Some(place) = lightest {
            self.answer.flows.swap(0, place);
        }
    }

    pub(super) fn answer(self) -> Answer {
        self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::Key;
    use crate::flows::key::Parts;

    const SECOND: u64 = 1_000_000_000;

    /// A flow from 10.0.HOST.1 with this rate of packets of 100 octets, whose record began so many milliseconds before 100 s.
    fn flow(host: u8, rate: u64, milliseconds: u64) -> FlowRecord {
        let mut parts = Parts {
            kind: Kind::Ip4,
            protocol: 6 + 11 * (host & 1),
            input: 3,
            ..Parts::default()
        };
        parts.source[12..].copy_from_slice(&[10, 0, host, 1]);
        parts.destination[12..].copy_from_slice(&[10, 9, 9, 9]);
        let mut record = FlowRecord {
            key: Key::new(&parts),
            ..FlowRecord::default()
        };
        record.sums.packets = rate * milliseconds / 1000;
        record.sums.octets = 100 * record.sums.packets;
        record.sums.first = 100 * SECOND - milliseconds * 1_000_000;
        record
    }

    /// Flows are ranked by their rates, whatever the phase of their active timeout.
    #[test]
    fn the_fastest_flows_come_first() {
        let flows = [
            flow(1, 1000, 1000),
            flow(2, 900, 59_000),
            flow(3, 800, 2000),
            flow(4, 700, 60_000),
            flow(5, 5, 60_000),
        ];
        for order in [FlowOrder::Octets, FlowOrder::Packets] {
            let mut question = Question::new(1, FlowFilter::default(), order, 3, 100 * SECOND);
            flows.iter().for_each(|record| question.consider(record));
            let answer = question.answer();
            let mut hosts: Vec<u8> = answer
                .flows
                .iter()
                .map(|record| record.key.parts().source[14])
                .collect();
            hosts.sort_unstable();
            assert_eq!((hosts, answer.matched), (vec![1, 2, 3], 5), "{order:?}");
        }
        // Within the first second a packet is one packet a second.
        assert_eq!(FlowRates::new(1, 100, SECOND, SECOND).octets, 100);
        assert_eq!(FlowRates::new(1, 100, 5 * SECOND, SECOND).packets, 1);
        assert_eq!(FlowRates::new(7, u64::MAX, 0, 1).octets, u64::MAX);
    }

    #[test]
    fn flows_of_one_protocol() {
        let filter = FlowFilter {
            protocol: Some(17),
            ..FlowFilter::default()
        };
        assert!(filter.takes(&flow(1, 1, 1000)) && !filter.takes(&flow(2, 1, 1000)));
        let mut frame = flow(1, 1, 1000);
        frame.key = Key::new(&Parts::default());
        let filter = FlowFilter {
            protocol: Some(0),
            ..FlowFilter::default()
        };
        assert!(!filter.takes(&frame));
    }

    #[test]
    fn flows_are_summed_up() {
        let sums = |by: GroupBy, lengths: (u8, u8)| {
            let grouping = Grouping { by, lengths };
            let mut question = Question::grouped(1, FlowFilter::default(), grouping, 100 * SECOND);
            for host in 0..8 {
                question.consider(&flow(host, 100, 2000));
            }
            let answer = question.answer();
            assert_eq!((answer.matched, answer.other), (8, GroupSums::default()));
            let mut groups: Vec<_> = answer
                .groups
                .into_iter()
                .map(|(key, sums)| (key.value, sums.flows, sums.packets, sums.rates.octets))
                .collect();
            groups.sort_unstable();
            groups
        };
        let address = |octets: [u8; 4]| u128::from(u32::from_be_bytes(octets));
        assert_eq!(
            sums(GroupBy::Source, (22, 0)),
            [
                (address([10, 0, 0, 0]), 4, 800, 40_000),
                (address([10, 0, 4, 0]), 4, 800, 40_000)
            ]
        );
        assert_eq!(sums(GroupBy::Source, (0, 0)), [(0, 8, 1600, 80_000)]);
        assert_eq!(sums(GroupBy::Source, (32, 0)).len(), 8);
        assert_eq!(sums(GroupBy::Host, (32, 0)).len(), 9);
        // Both ends in one prefix: each flow once.
        assert_eq!(
            sums(GroupBy::Host, (8, 0)),
            [(address([10, 0, 0, 0]), 8, 1600, 80_000)]
        );
        assert_eq!(
            sums(GroupBy::Protocol, (32, 0)),
            [(6, 4, 800, 40_000), (17, 4, 800, 40_000)]
        );
        assert_eq!(sums(GroupBy::Input, (32, 0)), [(3, 8, 1600, 80_000)]);
    }

    /// The number of groups is bounded.
    #[test]
    fn too_many_groups() {
        let grouping = Grouping {
            by: GroupBy::Input,
            lengths: (32, 128),
        };
        let mut question = Question::grouped(1, FlowFilter::default(), grouping, 100 * SECOND);
        for input in 0..MOST_GROUPS as u32 + 10 {
            let mut record = FlowRecord::default();
            record.sums.packets = 1;
            record.key = Key::new(&Parts {
                input,
                ..Parts::default()
            });
            question.consider(&record);
        }
        let answer = question.answer();
        assert_eq!((answer.groups.len(), answer.other.flows), (MOST_GROUPS, 10));
    }
}
