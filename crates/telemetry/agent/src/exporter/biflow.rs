//! Both directions of a conversation in one record (RFC 5103), where that is asked for.
//!
//! Workers meter each direction where its packets arrive, possibly on different workers. Pairs are made here, on the
//! exporter's thread: a record waits for a moment for the record of the other direction, which has addresses, ports and
//! interfaces exchanged. A record without a counterpart is exported alone.
//!
//! The forward direction is the initiator's (`biflowDirection` 1) when that is known:
//!
//! 1. by the record before, when that one ended by the active timeout;
//! 2. by the first packets: an ICMP echo request, or SYN without ACK against SYN with ACK;
//! 3. by the order of arrival, in steps of 4 microseconds, of what is not TCP.
//!
//! Otherwise (a TCP connection whose begin was not seen, or a tie) `biflowDirection` is 0, arbitrary, and the direction with the
//! higher source port is the forward one.
//!
//! ICMP has no ports: the answer to an echo request (type 8, of IPv6 128) is an echo reply (0, 129). Other messages have no
//! answer that would be a flow. Where a record set does not select types, addresses and interfaces decide, as for all
//! else without ports.
//!
//! Waiting records and remembered directions are bounded; when there is no room the oldest goes first.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::flows::key::{Kind, Parts};
use crate::flows::record::Sums;
use crate::flows::{EndReason, FlowRecord, Key, Opening};

use super::fields::{Direction, RecordSets};

/// How long a record waits for the other direction: as long as both take to be over and found so.
const PATIENCE: Duration = Duration::from_millis(800);
/// Records that wait at most.
const MOST: usize = 1 << 16;
/// The protocol number of TCP.
const TCP: u8 = 6;

/// Records that wait for the other direction.
#[derive(Default)]
pub(super) struct Pairing {
    waiting: HashMap<Key, FlowRecord>,
    /// Forward directions of biflows that go on, and whether they are the initiator's; and the order in which they came.
    forward: HashMap<Key, Direction>,
    forward_order: VecDeque<Key>,
    /// In the order in which they came.
    order: VecDeque<(Instant, Key)>,
    /// The record sets that tell ICMP's types, a bit each.
    types: u16,
}

/// The record of the other direction, and what the forward one is.
pub(super) type Reverse<'a> = Option<(&'a FlowRecord, Direction)>;
/// What leaves: a record by itself, or with that of the other direction.
pub(super) type Emit<'a> = &'a mut dyn FnMut(&FlowRecord, Reverse<'_>);

impl Pairing {
    /// Records are of these sets from now on.
    pub(super) fn set<'a>(&mut self, all: impl IntoIterator<Item = &'a RecordSets>) {
        let sets = all.into_iter().flat_map(|sets| &sets.0);
        self.types = sets
            .filter(|(_, set)| set.tells_types())
            .fold(0, |bits, (number, _)| bits | bit(*number));
    }

    /// A record comes.
    pub(super) fn push(&mut self, record: &FlowRecord, now: Instant, emit: Emit<'_>) {
        let parts = record.key.parts();
        // What did not go on has no answer.
        if parts.kind == Kind::L2 || parts.status != 0 {
            return emit(record, None);
        }
        let echo = if is_icmp(&parts) && self.types & bit(parts.set) != 0 {
            Echo::of(&parts)
        } else {
            Echo::Any
        };
        let Some(answer) = answer(&parts, echo) else {
            return emit(record, None);
        };
        if let Some(other) = self.waiting.remove(&answer) {
            let (is_forward, direction) =
                self.direction((record, &name(&parts)), (&other, &answer), echo);
            let (forward, reverse, key) = if is_forward {
                (record, &other, name(&parts))
            } else {
                (&other, record, answer)
            };
            if [forward, reverse]
                .iter()
                .any(|it| it.sums.reason == EndReason::Active)
            {
                self.remember(key, direction);
            }
            return emit(forward, Some((reverse, direction)));
        }
        let own = name(&parts);
        // The same direction again, before the other one came.
        if let Some(before) = self.waiting.insert(own, *record) {
            emit(&before, None);
        } else {
            self.order.push_back((now, own));
        }
        while self.order.len() > MOST {
            self.release(emit);
        }
    }

    /// Whether the first of two records is the forward direction, and what that is.
    fn direction(
        &mut self,
        (record, own): (&FlowRecord, &Key),
        (other, answer): (&FlowRecord, &Key),
        echo: Echo,
    ) -> (bool, Direction) {
        match echo {
            Echo::Request => return (true, Direction::Initiator),
            Echo::Reply => return (false, Direction::Initiator),
            Echo::No | Echo::Any => {}
        }
        let (mine, theirs) = (&record.sums, &other.sums);
        match (mine.opening, theirs.opening) {
            (Opening::Syn, Opening::None | Opening::SynAck) | (Opening::None, Opening::SynAck) => {
                return (true, Direction::Initiator);
            }
            (Opening::None | Opening::SynAck, Opening::Syn) | (Opening::SynAck, Opening::None) => {
                return (false, Direction::Initiator);
            }
            _ => {}
        }
        if let Some(direction) = self.forward.remove(own) {
            return (true, direction);
        }
        if let Some(direction) = self.forward.remove(answer) {
            return (false, direction);
        }
        let parts = record.key.parts();
        let begin = |sums: &Sums| (sums.first, sums.first_fraction);
        let is_opened = mine.opening != Opening::None;
        if (parts.protocol != TCP || is_opened) && begin(mine) != begin(theirs) {
            return (begin(mine) < begin(theirs), Direction::Initiator);
        }
        let side = (parts.source_port, parts.source);
        let other_side = (parts.destination_port, parts.destination);
        (side >= other_side, Direction::Arbitrary)
    }

    /// The next record of this conversation has the same forward direction.
    fn remember(&mut self, forward: Key, direction: Direction) {
        if self.forward.insert(forward, direction).is_none() {
            self.forward_order.push_back(forward);
        }
        while self.forward_order.len() > MOST {
            if let Some(oldest) = self.forward_order.pop_front() {
                self.forward.remove(&oldest);
            }
        }
    }

    /// Lets those go that waited long enough; all of them with `None`.
    pub(super) fn expire(&mut self, now: Option<Instant>, emit: Emit<'_>) {
        while self
            .order
            .front()
            .is_some_and(|(since, _)| now.is_none_or(|now| now.duration_since(*since) >= PATIENCE))
        {
            self.release(emit);
        }
    }

    fn release(&mut self, emit: Emit<'_>) {
        if let Some((_, key)) = self.order.pop_front()
            && let Some(record) = self.waiting.remove(&key)
        {
            emit(&record, None);
        }
    }

    /// How many wait.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.waiting.len()
    }
}

fn bit(set: u8) -> u16 {
    1_u16.checked_shl(set.into()).unwrap_or(0)
}

fn is_icmp(parts: &Parts) -> bool {
    matches!(
        (parts.kind, parts.protocol),
        (Kind::Ip4, 1) | (Kind::Ip6, 58)
    )
}

/// What an ICMP message is of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Request,
    Reply,
    /// A message that has no answer.
    No,
    /// No ICMP, or nobody knows.
    Any,
}

/// Type and code of request and reply, as where others have their destination port.
const fn echo(kind: Kind) -> (u16, u16) {
    match kind {
        Kind::Ip6 => (128 << 8, 129 << 8),
        _ => (8 << 8, 0),
    }
}

impl Echo {
    fn of(parts: &Parts) -> Echo {
        let (request, reply) = echo(parts.kind);
        match parts.destination_port {
            it if it == request => Echo::Request,
            it if it == reply => Echo::Reply,
            _ => Echo::No,
        }
    }
}

/// What is the same in all records of a direction. Tags, labels and classes may differ between the two sides.
fn name(parts: &Parts) -> Key {
    Key::new(&Parts {
        tos: 0,
        vlan: 0,
        customer_vlan: 0,
        label: 0,
        ..*parts
    })
}

/// The name of the other direction, if there is one: its ends are exchanged.
fn answer(parts: &Parts, message: Echo) -> Option<Key> {
    let (request, reply) = echo(parts.kind);
    let (source_port, destination_port) = match message {
        Echo::Any => (parts.destination_port, parts.source_port),
        Echo::Request => (0, reply),
        Echo::Reply => (0, request),
        Echo::No => return None,
    };
    let (source, destination, input, output) =
        (parts.destination, parts.source, parts.output, parts.input);
    Some(name(&Parts {
        source,
        destination,
        source_port,
        destination_port,
        input,
        output,
        ..*parts
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exporter::RecordSet;
    use crate::flows::Selection;

    fn record(source: u8, destination: u8, first: u64) -> FlowRecord {
        let mut parts = Parts {
            kind: Kind::Ip4,
            protocol: 17,
            input: source.into(),
            output: destination.into(),
            ..Parts::default()
        };
        (parts.source[15], parts.destination[15]) = (source, destination);
        (parts.source_port, parts.destination_port, parts.vlan) =
            (source.into(), destination.into(), source.into());
        let mut record = FlowRecord {
            key: Key::new(&parts),
            ..FlowRecord::default()
        };
        record.sums.first = first;
        record
    }

    /// Sources of what left, forward and reverse.
    fn run(
        pairing: &mut Pairing,
        records: &[FlowRecord],
        then: Option<Instant>,
    ) -> Vec<(u8, Option<u8>)> {
        let now = Instant::now();
        let mut left = Vec::new();
        let source = |record: &FlowRecord| record.key.parts().source[15];
        let mut emit = |forward: &FlowRecord, reverse: Reverse<'_>| {
            left.push((source(forward), reverse.map(|(reverse, _)| source(reverse))))
        };
        records
            .iter()
            .for_each(|record| pairing.push(record, now, &mut emit));
        pairing.expire(then, &mut emit);
        left
    }

    #[test]
    fn directions_find_each_other_and_others_go_alone() {
        let mut pairing = Pairing::default();
        // The answer's record comes first.
        let left = run(
            &mut pairing,
            &[record(2, 1, 9), record(1, 2, 5), record(3, 4, 1)],
            Some(Instant::now()),
        );
        assert_eq!((left, pairing.len()), (vec![(1, Some(2))], 1));
        assert_eq!(run(&mut pairing, &[], None), [(3, None)]);
        // The same direction twice, then the other one.
        let left = run(
            &mut pairing,
            &[record(1, 2, 1), record(1, 2, 2), record(2, 1, 3)],
            None,
        );
        assert_eq!((left, pairing.len()), (vec![(1, None), (1, Some(2))], 0));
        // What was dropped has no answer.
        let mut dropped = record(1, 2, 1);
        dropped.key = Key::new(&Parts {
            status: 131,
            ..dropped.key.parts()
        });
        assert_eq!(
            run(&mut pairing, &[dropped, record(2, 1, 3)], None),
            [(1, None), (2, None)]
        );
    }

    /// A record of an ICMP message of this type from one host to the other.
    fn message(
        kind: Kind,
        kind_of_message: u16,
        source: u8,
        destination: u8,
        first: u64,
    ) -> FlowRecord {
        let mut record = record(source, destination, first);
        let protocol = if kind == Kind::Ip6 { 58 } else { 1 };
        let parts = Parts {
            kind,
            protocol,
            source_port: 0,
            destination_port: kind_of_message << 8,
            ..record.key.parts()
        };
        record.key = Key::new(&parts);
        record
    }

    #[test]
    fn echo_requests_find_their_replies_and_nothing_else() {
        let sets = RecordSets::from(RecordSet::new(["5-tuple"]).unwrap());
        for (kind, request, reply, other) in [(Kind::Ip4, 8, 0, 3), (Kind::Ip6, 128, 129, 1)] {
            let of = |kind_of_message, source, destination, first| {
                message(kind, kind_of_message, source, destination, first)
            };
            let mut pairing = Pairing::default();
            pairing.set([&sets]);
            // The request is the forward direction, whichever comes first and whichever began first.
            let records = [
                of(request, 1, 2, 5),
                of(reply, 2, 1, 6),
                of(reply, 4, 3, 1),
                of(request, 3, 4, 2),
            ];
            assert_eq!(
                run(&mut pairing, &records, None),
                [(1, Some(2)), (3, Some(4))],
                "{kind:?}"
            );
            // Both ask one another: two conversations, and no pair of requests or replies.
            let records = [
                of(request, 1, 2, 1),
                of(request, 2, 1, 2),
                of(reply, 1, 2, 3),
                of(reply, 2, 1, 4),
            ];
            assert_eq!(
                run(&mut pairing, &records, None),
                [(2, Some(1)), (1, Some(2))],
                "{kind:?}"
            );
            // What is no echo does not wait.
            let records = [
                of(other, 1, 2, 1),
                of(other, 2, 1, 2),
                of(reply, 1, 2, 3),
                of(reply, 2, 1, 4),
            ];
            assert_eq!(
                run(&mut pairing, &records, Some(Instant::now())),
                [(1, None), (2, None)],
                "{kind:?}"
            );
            assert_eq!(pairing.len(), 2);
        }
        // Without types, addresses decide.
        let mut pairing = Pairing::default();
        let addresses = [
            "sourceIPv4Address",
            "destinationIPv4Address",
            "protocolIdentifier",
        ];
        pairing.set([&RecordSets::from(RecordSet::new(addresses).unwrap())]);
        let records = [
            message(Kind::Ip4, 0, 1, 2, 1),
            message(Kind::Ip4, 0, 2, 1, 2),
        ];
        assert_eq!(run(&mut pairing, &records, None), [(1, Some(2))]);
    }

    /// A set tells types where its flows are distinguished by them.
    #[test]
    fn sets_that_tell_types_are_those_whose_keys_have_them() {
        let mut frame = [0; 64];
        frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 1]);
        frame[34..36].copy_from_slice(&[8, 1]);
        for element in RecordSet::measured() {
            let names = [element, 4].map(|number| {
                weir_flowfmt::ipfix::elements::by_number(number)
                    .unwrap()
                    .name
            });
            let set = RecordSet::new(names).unwrap();
            let key = Selection::new(set.elements(), 0, false)
                .observe_any(1, &frame, 64)
                .0
                .key;
            assert_eq!(
                set.tells_types(),
                key.parts().destination_port == 0x0801,
                "{names:?}"
            );
        }
    }

    /// The initiator is known by SYN, by the record before, or by the order of arrival; otherwise the direction is 0.
    #[test]
    fn the_initiator_is_named_only_when_it_is_known() {
        use Direction::{Arbitrary, Initiator};
        let directions = |pairing: &mut Pairing, records: &[FlowRecord]| {
            let mut left = Vec::new();
            for record in records {
                pairing.push(record, Instant::now(), &mut |forward, reverse| {
                    left.push((
                        forward.key.parts().source[15],
                        reverse.map(|(_, direction)| direction),
                    ));
                });
            }
            left
        };
        let tcp = |source, destination, opening, reason| {
            let mut record = record(source, destination, 5_000_000);
            record.key = Key::new(&Parts {
                protocol: TCP,
                ..record.key.parts()
            });
            (record.sums.opening, record.sums.reason) = (opening, reason);
            record
        };
        let fraction = |mut record: FlowRecord, fraction| {
            record.sums.first_fraction = fraction;
            record
        };
        use EndReason::{Active, Idle};
        use Opening::{None, Syn, SynAck};
        for (mine, theirs) in [(Syn, SynAck), (Syn, None), (None, SynAck)] {
            for reason in [Idle, Active] {
                let mut pairing = Pairing::default();
                // In one millisecond, in either order.
                let pair = [tcp(1, 2, mine, reason), tcp(2, 1, theirs, reason)];
                assert_eq!(directions(&mut pairing, &pair), [(1, Some(Initiator))]);
                let pair = [tcp(2, 1, theirs, reason), tcp(1, 2, mine, reason)];
                assert_eq!(directions(&mut pairing, &pair), [(1, Some(Initiator))]);
                // The next record of it: the responder's packet may come first.
                let next = [
                    fraction(tcp(2, 1, None, reason), 1),
                    fraction(tcp(1, 2, None, reason), 9),
                ];
                let expected = if reason == Active {
                    (1, Some(Initiator))
                } else {
                    (2, Some(Arbitrary))
                };
                assert_eq!(
                    directions(&mut pairing, &next),
                    [expected],
                    "{mine:?} {theirs:?}"
                );
            }
        }
        // What is not TCP: by the order of arrival within the millisecond; a tie is none.
        let mut pairing = Pairing::default();
        let pair = |one, other| {
            [
                fraction(record(2, 1, 5_000_000), one),
                fraction(record(1, 2, 5_000_000), other),
            ]
        };
        assert_eq!(
            directions(&mut pairing, &pair(9, 8)),
            [(1, Some(Initiator))]
        );
        assert_eq!(
            directions(&mut pairing, &pair(8, 9)),
            [(2, Some(Initiator))]
        );
        assert_eq!(
            directions(&mut pairing, &pair(8, 8)),
            [(2, Some(Arbitrary))]
        );
    }

    #[test]
    fn how_many_wait_is_bounded() {
        let mut pairing = Pairing::default();
        let now = Instant::now();
        let mut alone = 0;
        for number in 0..MOST as u32 + 100 {
            let mut one = record(1, 2, 1);
            let mut parts = one.key.parts();
            parts.source[..4].copy_from_slice(&number.to_be_bytes());
            one.key = Key::new(&parts);
            pairing.push(&one, now, &mut |_, reverse| {
                alone += u32::from(reverse.is_none())
            });
        }
        assert_eq!((pairing.len(), alone), (MOST, 100));
    }
}
