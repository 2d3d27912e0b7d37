//! Both directions of a conversation in one record (RFC 5103), where that is asked for.
//!
//! Workers meter directions, each where its packets come in, and maybe on different workers; nothing there knows of the other.
//! So pairs are made here: a record waits for a moment for the one of the other direction, which has addresses, ports and
//! interfaces exchanged. What finds no other goes out by itself, as it would have without. The direction that began first is the
//! forward one (`biflowDirection` 1, initiator).
//!
//! How many wait is bounded; when there is no room the oldest goes out by itself.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::flows::FlowRecord;
use crate::flows::Key;
use crate::flows::key::{Kind, Parts};

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
}

/// What leaves: a record by itself, or with that of the other direction.
pub(super) type Emit<'a> = &'a mut dyn FnMut(&FlowRecord, Option<&FlowRecord>);

impl Pairing {
    /// A record comes.
    pub(super) fn push(&mut self, record: &FlowRecord, now: Instant, emit: Emit<'_>) {
        let parts = record.key.parts();
        // What did not go on has no answer.
        if parts.kind == Kind::L2 || parts.status != 0 {
            return emit(record, None);
        }
        if let Some(other) = self.waiting.remove(&name(&parts, true)) {
            let (forward, reverse) = if other.sums.first <= record.sums.first { (&other, record) } else { (record, &other) };
            return emit(forward, Some(reverse));
        }
        let own = name(&parts, false);
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
        while self.order.front().is_some_and(|(since, _)| now.is_none_or(|now| now.duration_since(*since) >= PATIENCE)) {
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

/// What both directions have in common; of the other direction with its ends exchanged. Tags, labels and classes may
/// differ between the two sides.
fn name(parts: &Parts, other: bool) -> Key {
    let mut name = Parts { tos: 0, vlan: 0, customer_vlan: 0, label: 0, ..*parts };
    if other {
        (name.source, name.destination) = (parts.destination, parts.source);
        (name.source_port, name.destination_port) = (parts.destination_port, parts.source_port);
        (name.input, name.output) = (parts.output, parts.input);
    }
    Key::new(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(source: u8, destination: u8, first: u64) -> FlowRecord {
        let mut parts = Parts { kind: Kind::Ip4, protocol: 17, input: source.into(), output: destination.into(), ..Parts::default() };
        (parts.source[15], parts.destination[15]) = (source, destination);
        (parts.source_port, parts.destination_port, parts.vlan) = (source.into(), destination.into(), source.into());
        let mut record = FlowRecord { key: Key::new(&parts), ..FlowRecord::default() };
        record.sums.first = first;
        record
    }

    /// Sources of what left, forward and reverse.
    fn run(pairing: &mut Pairing, records: &[FlowRecord], then: Option<Instant>) -> Vec<(u8, Option<u8>)> {
        let now = Instant::now();
        let mut left = Vec::new();
        let source = |record: &FlowRecord| record.key.parts().source[15];
        let mut emit = |forward: &FlowRecord, reverse: Option<&FlowRecord>| left.push((source(forward), reverse.map(source)));
        records.iter().for_each(|record| pairing.push(record, now, &mut emit));
        pairing.expire(then, &mut emit);
        left
    }

    #[test]
    fn directions_find_each_other_and_others_go_alone() {
        let mut pairing = Pairing::default();
        // The answer's record comes first.
        let left = run(&mut pairing, &[record(2, 1, 9), record(1, 2, 5), record(3, 4, 1)], Some(Instant::now()));
        assert_eq!((left, pairing.len()), (vec![(1, Some(2))], 1));
        assert_eq!(run(&mut pairing, &[], None), [(3, None)]);
        // The same direction twice, then the other one.
        let left = run(&mut pairing, &[record(1, 2, 1), record(1, 2, 2), record(2, 1, 3)], None);
        assert_eq!((left, pairing.len()), (vec![(1, None), (1, Some(2))], 0));
        // What was dropped has no answer.
        let mut dropped = record(1, 2, 1);
        dropped.key = Key::new(&Parts { status: 131, ..dropped.key.parts() });
        assert_eq!(run(&mut pairing, &[dropped, record(2, 1, 3)], None), [(1, None), (2, None)]);
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
            pairing.push(&one, now, &mut |_, reverse| alone += u32::from(reverse.is_none()));
        }
        assert_eq!((pairing.len(), alone), (MOST, 100));
    }
}
