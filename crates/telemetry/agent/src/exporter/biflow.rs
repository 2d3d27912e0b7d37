//! Both directions of a conversation in one record (RFC 5103), where that is asked for.
//!
//! Workers meter directions, each where its packets come in, and maybe on different workers; nothing there knows of the other.
//! So pairs are made here: a record waits for a moment for the one of the other direction, which has addresses, ports and
//! interfaces exchanged. What finds no other goes out by itself, as it would have without. The direction that began first is the
//! forward one (`biflowDirection` 1, initiator).
//!
//! ICMP has no ports: the answer to an echo request (type 8, of IPv6 128) is an echo reply (0, 129), and the request is the forward
//! direction, whichever was seen first. Other messages have no answer that would be a flow. Where a record set does not tell types,
//! addresses and interfaces decide, as for all else without ports.
//!
//! How many wait is bounded; when there is no room the oldest goes out by itself.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::flows::FlowRecord;
use crate::flows::Key;
use crate::flows::key::{Kind, Parts};

use super::fields::RecordSets;

/// How long a record waits for the other direction: as long as both take to be over and found so.
const PATIENCE: Duration = Duration::from_millis(800);
/// Records that wait at most.
const MOST: usize = 1 << 16;

/// Records that wait for the other direction.
#[derive(Default)]
pub(super) struct Pairing {
    waiting: HashMap<Key, FlowRecord>,
    /// In the order in which they came.
    order: VecDeque<(Instant, Key)>,
    /// The record sets that tell ICMP's types, a bit each.
    types: u16,
}

/// What leaves: a record by itself, or with that of the other direction.
pub(super) type Emit<'a> = &'a mut dyn FnMut(&FlowRecord, Option<&FlowRecord>);

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
            let is_answer = match echo {
                Echo::Request => false,
                Echo::Reply => true,
                _ => other.sums.first <= record.sums.first,
            };
            let (forward, reverse) = if is_answer {
                (&other, record)
            } else {
                (record, &other)
            };
            return emit(forward, Some(reverse));
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
        let mut emit = |forward: &FlowRecord, reverse: Option<&FlowRecord>| {
            left.push((source(forward), reverse.map(source)))
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

    /// A set tells types where its flows are told apart by them.
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
