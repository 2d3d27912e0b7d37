//! Flows whose counters began anew a short time ago, for queries.
//!
//! After the active timeout a flow's record leaves its table, and the next packet begins another one. Who ranks the flows of a
//! table by rates needs the earlier record as well: the new one may have a single packet, or not exist yet. The exporter's thread
//! keeps these records here, a bounded number of them: where there are more, those with more octets stay.

use std::collections::HashMap;

use crate::flows::{EndReason, FlowRecord, Key};

/// Records that are kept, at most.
const MOST: usize = 1 << 14;

/// What separates flows: the key, and what a record set selects that a key has no field for.
type Identity = (Key, [u8; 6], [u8; 6], [u32; 4]);

/// The identity of a record's flow.
#[must_use]
pub fn identity(record: &FlowRecord) -> Identity {
    let facts = &record.facts;
    (
        record.key,
        facts.source_mac,
        facts.destination_mac,
        facts.labels,
    )
}

/// Records that left because of the active timeout.
#[derive(Debug, Default)]
pub struct Recent {
    records: HashMap<Identity, FlowRecord>,
}

impl Recent {
    /// A record leaves its table.
    pub(super) fn push(&mut self, record: &FlowRecord) {
        if record.sums.reason != EndReason::Active {
            return;
        }
        if self.records.len() >= MOST {
            self.make_room();
        }
        self.records.insert(identity(record), *record);
    }

    /// Keeps the half with more octets.
    fn make_room(&mut self) {
        let mut octets: Vec<u64> = self.records.values().map(|it| it.sums.octets).collect();
        let middle = octets.len() / 2;
        let (_, median, _) = octets.select_nth_unstable(middle);
        let median = *median;
        let larger = self.records.values().map(|it| it.sums.octets);
        let larger = larger.filter(|octets| *octets > median).count();
        let mut alike = (MOST / 2).saturating_sub(larger);
        self.records.retain(|_, record| {
            let octets = record.sums.octets;
            let stays = octets > median || octets == median && alike > 0;
            alike -= usize::from(stays && octets == median);
            stays
        });
    }

    /// The record that the flow had before this one, if not more than `pause` nanoseconds lie between them.
    #[must_use]
    pub fn before(&self, record: &FlowRecord, pause: u64) -> Option<&FlowRecord> {
        self.records.get(&identity(record)).filter(|earlier| {
            earlier.sums.last <= record.sums.first && record.sums.first - earlier.sums.last <= pause
        })
    }

    /// Records whose last packet came after this moment, by the router's clock.
    pub fn since(&self, moment: u64) -> impl Iterator<Item = &FlowRecord> {
        self.records
            .values()
            .filter(move |record| record.sums.last > moment)
    }

    /// Forgets those whose last packet came before this moment.
    pub(super) fn forget(&mut self, moment: u64) {
        self.records.retain(|_, record| record.sums.last >= moment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::key::Parts;

    fn record(input: u32, octets: u64, (first, last): (u64, u64), reason: EndReason) -> FlowRecord {
        let mut record = FlowRecord {
            key: Key::new(&Parts {
                input,
                ..Parts::default()
            }),
            ..FlowRecord::default()
        };
        record.sums.octets = octets;
        (record.sums.first, record.sums.last) = (first, last);
        record.sums.reason = reason;
        record
    }

    #[test]
    fn flows_that_go_on_are_found() {
        let mut recent = Recent::default();
        recent.push(&record(1, 500, (10, 70), EndReason::Active));
        recent.push(&record(2, 500, (10, 70), EndReason::Idle));
        let before = |input, first| {
            recent
                .before(&record(input, 1, (first, first), EndReason::Idle), 15)
                .map(|record| record.sums.octets)
        };
        assert_eq!(before(1, 71), Some(500));
        assert_eq!(before(1, 86), None);
        assert_eq!(before(1, 60), None);
        assert_eq!(before(2, 71), None);
        let mut other = record(1, 1, (71, 71), EndReason::Idle);
        other.facts.source_mac = [2, 0, 0, 0, 0, 9];
        assert!(recent.before(&other, 15).is_none());
        assert_eq!((recent.since(69).count(), recent.since(70).count()), (1, 0));
        recent.forget(71);
        assert_eq!(recent.since(0).count(), 0);
    }

    /// A million flows: bounded, and the large ones are there.
    #[test]
    fn the_number_of_records_is_bounded() {
        let mut recent = Recent::default();
        for input in 0..1_000_000 {
            let octets = if input % 1000 == 0 { 1_000_000 } else { 100 };
            recent.push(&record(input, octets, (1, 2), EndReason::Active));
            assert!(recent.records.len() <= MOST);
        }
        let large = recent.since(0).filter(|it| it.sums.octets == 1_000_000);
        assert_eq!(large.count(), 1000);
        // Also of flows that are all alike.
        for input in 0..100_000 {
            recent.push(&record(input, 7, (1, 2), EndReason::Active));
        }
        assert!(recent.records.len() <= MOST);
    }
}
