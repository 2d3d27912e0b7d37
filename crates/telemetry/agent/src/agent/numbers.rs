//! What the agent knows of each data source: sequence numbers, pools, and when its counters are due.
//!
//! A data source is an interface, and there is one agent for all workers, so each has one sequence of
//! flow samples and one of counter samples. Time is an argument, counted from the agent's start.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{InterfaceReport, InterfaceStats, Share};

/// One worker's part in it.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// Its pool as of the last sample that came out of its ring.
    seen: u64,
    /// What of it is an earlier interface's.
    before: u64,
    /// What is reported of it.
    share: Share,
}

/// One interface as a source of samples.
#[derive(Debug, Default)]
pub(super) struct DataSource {
    flow_sequence: u32,
    counter_sequence: u32,
    /// Which of the interfaces that had this number; 0 = not known yet.
    made: u64,
    /// Each worker's part.
    workers: Vec<Part>,
    /// What workers counted of an earlier interface of this number.
    pools_before: Vec<u64>,
    /// Octets in and out when counters were last reported.
    octets: (u64, u64),
    /// When counters are to be reported; `None` as long as it is not sampled.
    due: Option<Duration>,
}

impl DataSource {
    /// A worker's pool, as its next sample in order tells it. One that went back is of an interface that was removed and
    /// made anew: its pool and its samples begin again, and so does the sequence, by which the specification has that reported.
    pub(super) fn saw(&mut self, worker: usize, pool: u64) {
        if self.workers.len() <= worker {
            self.workers.resize(worker + 1, Part::default());
        }
        if self
            .workers
            .get(worker)
            .is_some_and(|before| pool < before.seen)
        {
            self.flow_sequence = 0;
            self.workers
                .iter_mut()
                .for_each(|worker| *worker = Part::default());
        }
        if let Some(own) = self.workers.get_mut(worker) {
            own.seen = pool;
        }
    }

    /// Takes note of which interface has this number now. One that was made anew has counters that begin again, so that
    /// pool, samples and sequences do, too.
    pub(super) fn is_of(&mut self, made: u64) {
        let before = std::mem::replace(&mut self.made, made);
        // The first that is known is the one whose samples came before that.
        if before == made || before == 0 || self.flow_sequence == 0 && self.counter_sequence == 0 {
            return;
        }
        (self.flow_sequence, self.counter_sequence) = (0, 0);
        self.workers.iter_mut().for_each(|worker| {
            *worker = Part {
                seen: worker.seen,
                before: worker.seen,
                share: Share::default(),
            }
        });
    }

    /// The interface begins now: what workers counted so far is of an earlier one.
    pub(super) fn begin_pools(&mut self, pools: Vec<u64>) {
        self.pools_before = pools;
    }

    /// What is shown of each worker: its pool as it counted last, which goes on between samples.
    fn shares(&self, pools: &[u64]) -> Vec<Share> {
        let part = |worker: usize| {
            let mut share = self
                .workers
                .get(worker)
                .map_or_else(Share::default, |worker| worker.share);
            let counted = pools.get(worker).copied().unwrap_or(0);
            let before = self.pools_before.get(worker).copied().unwrap_or(0);
            share.pool = share.pool.max(counted.saturating_sub(before));
            share
        };
        (0..self.workers.len().max(pools.len())).map(part).collect()
    }

    /// The pool over all workers as of a sample of one of them. Samples that waited come late: by them no pool goes back,
    /// and none goes on that was of an interface before.
    pub(super) fn pool_at(&mut self, worker: usize, pool: u64) -> u64 {
        if let Some(own) = self.workers.get_mut(worker)
            && pool <= own.seen
        {
            own.share.pool = own.share.pool.max(pool.saturating_sub(own.before));
        }
        self.pool()
    }

    /// The pool over all workers.
    fn pool(&self) -> u64 {
        self.workers
            .iter()
            .fold(0, |sum, worker| sum.wrapping_add(worker.share.pool))
    }

    /// Samples of all workers.
    fn samples(&self) -> u64 {
        self.workers.iter().map(|worker| worker.share.samples).sum()
    }

    /// The number that the next flow sample gets.
    pub(super) fn next_flow(&self) -> u32 {
        self.flow_sequence.wrapping_add(1)
    }

    /// That sample, a worker's, is on its way.
    pub(super) fn flow_added(&mut self, worker: usize) {
        self.flow_sequence = self.next_flow();
        if let Some(own) = self.workers.get_mut(worker) {
            own.share.samples += 1;
        }
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
    /// which the specification has reported by a sequence that starts again.
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
        self.0
            .iter_mut()
            .filter(|(interface, _)| !sampled(**interface))
            .for_each(|(_, source)| source.due = None);
    }

    /// The counters of an interface were reported: they are due again at its own place in the interval.
    pub(super) fn reported(&mut self, interface: u32, now: Duration, interval: Duration) {
        self.source(interface).due = Some(next_due(interface, now, interval));
    }

    /// When counters are due next.
    pub(super) fn earliest_due(&self) -> Option<Duration> {
        self.0.values().filter_map(|source| source.due).min()
    }

    /// What was sampled, by interface. `pools` is what the workers count of one.
    pub(super) fn stats(&self, pools: impl Fn(u32) -> Vec<u64>) -> Vec<InterfaceStats> {
        let stats = |(&ifindex, source): (&u32, &DataSource)| {
            let workers = source.shares(&pools(ifindex));
            InterfaceStats {
                ifindex,
                pool: workers
                    .iter()
                    .fold(0, |sum, worker| sum.wrapping_add(worker.pool)),
                samples: source.samples(),
                workers,
            }
        };
        // Also those of which nothing was taken so far, but not those that are no longer sampled and never gave one;
        // and not the machine, which is no interface.
        self.0
            .iter()
            .filter(|(ifindex, _)| **ifindex != u32::MAX)
            .filter(|(_, source)| source.samples() > 0 || source.due.is_some())
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
        assert!(
            tenths.iter().all(|&count| (8..=12).contains(&count)),
            "{tenths:?}"
        );
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
        let report = |in_octets| InterfaceReport {
            in_octets,
            ..InterfaceReport::default()
        };
        let numbers =
            [0, 10, 10, 500, 499, 600].map(|octets| source.next_counters(&report(octets)));
        assert_eq!(numbers, [1, 2, 3, 4, 1, 2]);
    }

    #[test]
    fn sequences_and_pools_wrap_and_add_up() {
        let mut source = DataSource {
            flow_sequence: u32::MAX,
            ..DataSource::default()
        };
        assert_eq!(source.next_flow(), 0);
        source.flow_added(0);
        assert_eq!(source.next_flow(), 1);
        let mut pool = |worker, pool| {
            source.saw(worker, pool);
            source.pool_at(worker, pool)
        };
        assert_eq!([pool(2, 5), pool(0, 7), pool(2, 9)], [5, 12, 16]);
    }

    #[test]
    fn an_interface_made_anew_begins_its_pool_and_its_sequence_again() {
        let mut source = DataSource {
            flow_sequence: 41,
            ..DataSource::default()
        };
        let pool = |source: &mut DataSource, worker, pool| {
            source.saw(worker, pool);
            source.pool_at(worker, pool)
        };
        assert_eq!(
            [pool(&mut source, 0, 1000), pool(&mut source, 1, 500)],
            [1000, 1500]
        );
        source.flow_added(0);
        assert_eq!((pool(&mut source, 1, 20), source.next_flow()), (20, 1));
        assert_eq!(
            source.samples(),
            0,
            "those of before were not taken of this pool"
        );
        // One of before that waited, and the other worker's first one, later.
        assert_eq!(source.pool_at(1, 490), 20);
        source.flow_added(1);
        assert_eq!((pool(&mut source, 0, 30), source.next_flow()), (50, 2));
    }

    #[test]
    fn one_of_the_same_number_begins_again_although_workers_count_on() {
        let mut source = DataSource::default();
        source.is_of(3);
        source.saw(0, 1000);
        assert_eq!(source.pool_at(0, 1000), 1000);
        source.flow_added(0);
        source.is_of(3);
        assert_eq!((source.pool(), source.next_flow()), (1000, 2));
        source.is_of(4);
        assert_eq!(source.samples(), 0);
        source.saw(0, 1007);
        assert_eq!((source.pool_at(0, 1007), source.next_flow()), (7, 1));
        source.flow_added(0);
        assert_eq!(source.samples(), 1);
    }

    #[test]
    fn samples_that_waited_take_no_pool_back() {
        let mut source = DataSource::default();
        source.saw(0, 10);
        source.saw(0, 20);
        assert_eq!([source.pool_at(0, 20), source.pool_at(0, 10)], [20, 20]);
    }
}
