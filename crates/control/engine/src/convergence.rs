//! How long changes of routes take, from their first message being read until all workers forward by them.
//!
//! A batch of changes is noted when the control side has taken it over, with the number of changes that had been queued for
//! publication by then. The queue is carried out in order, so that the batch is in force when that number is done.
//! All changes of a batch count with the time of its first message, which waited longest.
//!
//! Part of the control side. The number of batches that are noted is bounded by the changes that may wait.

use std::collections::VecDeque;
use std::time::Instant;

use weir_api::{LinuxConvergence, LinuxDelay};
use weir_control::RouteSource;

/// Upper bounds of the buckets, in microseconds.
const BOUNDS: [u64; 16] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

/// A batch that is not in force everywhere.
#[derive(Clone, Copy, Debug)]
struct Noted {
    source: RouteSource,
    received: Instant,
    updates: u64,
    /// It is in force when this number of queued changes is done.
    done_at: u64,
}

/// The changes of one source by time; those above the last bound are in the last place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Histogram([u64; BOUNDS.len() + 1]);

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Convergence {
    noted: VecDeque<Noted>,
    kernel: Histogram,
    fpm: Histogram,
}

impl Convergence {
    /// A batch has been taken over. `queued` is the number of changes that were ever queued for publication.
    pub(crate) fn note(
        &mut self,
        source: RouteSource,
        received: Instant,
        updates: usize,
        queued: u64,
    ) {
        self.noted.push_back(Noted {
            source,
            received,
            updates: updates as u64,
            done_at: queued,
        });
    }

    /// So many queued changes have been carried out by now.
    pub(crate) fn done(&mut self, done: u64, now: Instant) {
        while let Some(noted) = self.noted.front()
            && noted.done_at <= done
        {
            let time = now.saturating_duration_since(noted.received).as_micros();
            let place = BOUNDS.partition_point(|bound| u128::from(*bound) < time);
            let histogram = match noted.source {
                RouteSource::Fpm => &mut self.fpm,
                _ => &mut self.kernel,
            };
            if let Some(count) = histogram.0.get_mut(place) {
                *count += noted.updates;
            }
            self.noted.pop_front();
        }
    }

    /// What the API says, by source.
    pub(crate) fn views(&self) -> Vec<LinuxConvergence> {
        let all = [
            (weir_api::RouteSource::Kernel, &self.kernel),
            (weir_api::RouteSource::Fpm, &self.fpm),
        ];
        let some = all
            .into_iter()
            .filter(|(_, histogram)| histogram.updates() > 0);
        some.map(|(source, histogram)| LinuxConvergence {
            source,
            updates: histogram.updates(),
            p50_us: histogram.quantile(50),
            p99_us: histogram.quantile(99),
            buckets: BOUNDS
                .iter()
                .zip(histogram.0)
                .map(|(at_most_us, updates)| LinuxDelay {
                    at_most_us: *at_most_us,
                    updates,
                })
                .collect(),
        })
        .collect()
    }
}

impl Histogram {
    fn updates(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The bound that this percentage of changes does not exceed.
    fn quantile(&self, percent: u64) -> Option<u64> {
        let wanted = (self.updates() * percent).div_ceil(100);
        let mut so_far = 0;
        for (bound, updates) in BOUNDS.iter().zip(self.0) {
            so_far += updates;
            if wanted > 0 && so_far >= wanted {
                return Some(*bound);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_batch_counts_when_what_it_queued_is_done() {
        let (mut convergence, began) = (Convergence::default(), Instant::now());
        let at = |us| began + Duration::from_micros(us);
        convergence.note(RouteSource::Kernel, at(0), 98, 0);
        convergence.note(RouteSource::Kernel, at(0), 1, 10);
        convergence.note(RouteSource::Fpm, at(0), 5, 20);
        convergence.note(RouteSource::Kernel, at(0), 1, 20);
        // The first had queued nothing.
        convergence.done(0, at(100));
        convergence.done(9, at(150));
        assert_eq!(convergence.views()[0].updates, 98);
        convergence.done(10, at(101));
        convergence.done(20, at(11_000_000));
        let [kernel, fpm] = &convergence.views()[..] else {
            panic!("two sources");
        };
        assert_eq!((kernel.updates, fpm.updates), (100, 5));
        assert_eq!((kernel.p50_us, kernel.p99_us), (Some(100), Some(200)));
        assert_eq!((fpm.p50_us, fpm.p99_us), (None, None));
        let counts: Vec<u64> = kernel.buckets.iter().map(|it| it.updates).collect();
        assert_eq!(counts[..3], [98, 1, 0]);
        assert_eq!(counts.iter().sum::<u64>(), 99);
    }
}
