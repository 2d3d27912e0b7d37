//! What the agent knows of each data source: sequence numbers, pools, and when its counters are due.
//!
//! A data source is an interface, and there is one agent for all workers, so each has one sequence of
//! flow samples and one of counter samples. Time is an argument, counted from the agent's start.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{InterfaceReport, InterfaceStats};

/// One interface as a source of samples.
#[derive(Debug, Default)]
pub(super) struct DataSource {
    flow_sequence: u32,
    counter_sequence: u32,
    samples: u64,
    /// Each worker's pool as of its last sample.
    pools: Vec<u64>,
    /// Octets in and out when counters were last reported.
    octets: (u64, u64),
    /// When counters are to be reported; `None` as long as it is not sampled.
    due: Option<Duration>,
}

impl DataSource {
    /// The pool over all workers, once `worker` says how large its own is now.
    pub(super) fn pool(&mut self, worker: usize, pool: u64) -> u64 {
        if self.pools.len() <= worker {
            self.pools.resize(worker + 1, 0);
        }
        if let Some(own) = self.pools.get_mut(worker) {
            *own = pool;
        }
        self.pools.iter().fold(0, |sum, &pool| sum.wrapping_add(pool))
    }

    /// The number that the next flow sample gets.
    pub(super) fn next_flow(&self) -> u32 {
        self.flow_sequence.wrapping_add(1)
    }

    /// That sample is on its way.
    pub(super) fn flow_added(&mut self) {
        self.flow_sequence = self.next_flow();
        self.samples += 1;
    }

    /// Whether counters are to be reported now. An interface that is sampled since the last look is
    /// due at once.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        *self.due.get_or_insert(now) <= now
    }

    /// The number that the machine's next report gets.
    pub(super) fn next_of_machine(&self) -> u32 {
        self.counter_sequence.wrapping_add(1)
    }

    /// That report is on its way.
    pub(super) fn machine_added(&mut self) {
        self.counter_sequence = self.next_of_machine();
    }

    /// The number of a counter sample that reports `report` now. Counters that went back were reset,
    /// which the specification has told by a sequence that starts again.
    pub(super) fn next_counters(&mut self, report: &InterfaceReport) -> u32 {
        let before = std::mem::replace(&mut self.octets, (report.in_octets, report.out_octets));
        if report.in_octets < before.0 || report.out_octets < before.1 {
            self.counter_sequence = 0;
        }
        self.counter_sequence = self.counter_sequence.wrapping_add(1);
        self.counter_sequence
    }
}

/// All data sources, by interface.
#[derive(Debug, Default)]
pub(super) struct Numbers(BTreeMap<u32, DataSource>);

impl Numbers {
    /// The source for an interface.
    pub(super) fn source(&mut self, interface: u32) -> &mut DataSource {
        self.0.entry(interface).or_default()
    }

    /// Counters are due anew for all, as at the start.
    pub(super) fn forget_due(&mut self) {
        self.0.values_mut().for_each(|source| source.due = None);
    }

    /// Interfaces that are not in `sampled` are not reported until they are sampled again.
    pub(super) fn keep_due(&mut self, sampled: impl Fn(u32) -> bool) {
        self.0.iter_mut().filter(|(interface, _)| !sampled(**interface)).for_each(|(_, source)| source.due = None);
    }

    /// The counters of an interface were reported: they are due again at its own place in the interval.
    pub(super) fn reported(&mut self, interface: u32, now: Duration, interval: Duration) {
        self.source(interface).due = Some(next_due(interface, now, interval));
    }

    /// When counters are due next.
    pub(super) fn earliest_due(&self) -> Option<Duration> {
        self.0.values().filter_map(|source| source.due).min()
    }

    /// What was sampled, by interface.
    pub(super) fn stats(&self) -> Vec<InterfaceStats> {
        let stats = |(&ifindex, source): (&u32, &DataSource)| InterfaceStats {
            ifindex,
            pool: source.pools.iter().fold(0, |sum, &pool| sum.wrapping_add(pool)),
            samples: source.samples,
        };
        // Also those of which nothing was taken so far, but not those that are no longer sampled and never gave one;
        // and not the machine, which is no interface.
        self.0
            .iter()
            .filter(|(ifindex, _)| **ifindex != u32::MAX)
            .filter(|(_, source)| source.samples > 0 || source.due.is_some())
            .map(stats)
            .collect()
    }
}

/// The next moment after `now` that belongs to an interface. Every interface has its fixed place in
/// the interval; multiples of the golden ratio spread consecutive numbers as evenly as can be,
/// however many there are (Knuth, volume 3, section 6.4).
fn next_due(interface: u32, now: Duration, interval: Duration) -> Duration {
    let interval = interval.as_nanos().max(1);
    let place = (u128::from(interface.wrapping_mul(0x9e37_79b9)) * interval) >> 32;
    let whole = (now.as_nanos() + interval - place) / interval;
    Duration::from_nanos(u64::try_from(place + whole * interval).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(20);

    #[test]
    fn counters_are_due_once_in_every_interval_and_spread_over_it() {
        let mut tenths = [0; 10];
        for interface in 1..=100 {
            let mut now = Duration::from_millis(777);
            let first = next_due(interface, now, INTERVAL);
            assert!(first > now && first <= now + INTERVAL);
            tenths[(first.as_millis() % 20_000 / 2_000) as usize] += 1;
            for turn in 1..=100 {
                now = next_due(interface, now, INTERVAL);
                assert_eq!(now, first + INTERVAL * (turn - 1));
            }
        }
        assert!(tenths.iter().all(|&count| (8..=12).contains(&count)), "{tenths:?}");
    }

    #[test]
    fn the_longest_interval_and_the_highest_number_are_fine() {
        let longest = Duration::from_secs(u64::from(u32::MAX));
        let due = next_due(u32::MAX, Duration::ZERO, longest);
        assert!(due > Duration::ZERO && due <= longest);
        assert!(next_due(1, Duration::from_secs(5), Duration::ZERO) > Duration::from_secs(5));
    }

    #[test]
    fn a_new_interface_is_due_at_once_and_one_that_is_no_longer_sampled_never() {
        let mut numbers = Numbers::default();
        let now = Duration::from_secs(3);
        assert!(numbers.source(4).is_due(now) && numbers.source(5).is_due(now));
        numbers.reported(4, now, INTERVAL);
        numbers.reported(5, now, INTERVAL);
        assert!(!numbers.source(4).is_due(now));
        numbers.keep_due(|interface| interface == 5);
        assert_eq!(numbers.earliest_due(), numbers.source(5).due);
        assert!(numbers.source(4).is_due(now), "sampled again");
        numbers.forget_due();
        assert!(numbers.source(5).is_due(now));
    }

    #[test]
    fn counters_that_went_back_start_the_sequence_again() {
        let mut source = DataSource::default();
        let report = |in_octets| InterfaceReport { in_octets, ..InterfaceReport::default() };
        let numbers = [0, 10, 10, 500, 499, 600].map(|octets| source.next_counters(&report(octets)));
        assert_eq!(numbers, [1, 2, 3, 4, 1, 2]);
    }

    #[test]
    fn sequences_and_pools_wrap_and_add_up() {
        let mut source = DataSource { flow_sequence: u32::MAX, ..DataSource::default() };
        assert_eq!(source.next_flow(), 0);
        source.flow_added();
        assert_eq!(source.next_flow(), 1);
        assert_eq!(source.pool(2, 5), 5);
        assert_eq!(source.pool(0, 7), 12);
        assert_eq!(source.pool(2, 9), 16);
    }
}
