//! What became of a stream's packets: received, lost, duplicated, reordered; and their latency.
//!
//! A packet is a duplicate when its number was seen before, reordered when a higher number was
//! received before it (RFC 4737). Lost are those sent and never received. The window of numbers
//! that is remembered has 65,536 entries: what comes later than that counts as `late` and as
//! received, since it can no longer be distinguished from a duplicate.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

const WINDOW: u64 = 65_536;
const WORDS: usize = (WINDOW / 64) as usize;

/// The receiver's side of one stream.
pub(crate) struct Tracker {
    seen: Box<[u64]>,
    /// One more than the highest number seen.
    next: u64,
    pub(crate) received: u64,
    pub(crate) bytes: u64,
    pub(crate) duplicated: u64,
    pub(crate) reordered: u64,
    pub(crate) late: u64,
    histogram: Histogram<u64>,
    previous: Option<u64>,
    /// Smoothed jitter in nanoseconds (RFC 3550, section 6.4.1).
    jitter: f64,
}

/// Latency of a stream in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Packets measured.
    pub samples: u64,
    /// Shortest.
    pub min_us: f64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Longest.
    pub max_us: f64,
    /// Interarrival jitter (RFC 3550).
    pub jitter_us: f64,
    /// The histogram: upper end in microseconds, and packets.
    pub histogram: Vec<(f64, u64)>,
}

impl Tracker {
    pub(crate) fn new() -> Tracker {
        // 3 significant digits up to one minute; the bounds are constants that the library accepts.
        let histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3)
            .unwrap_or_else(|_| unreachable!("constant bounds are valid"));
        Tracker {
            seen: vec![0; WORDS].into_boxed_slice(),
            next: 0,
            received: 0,
            bytes: 0,
            duplicated: 0,
            reordered: 0,
            late: 0,
            histogram,
            previous: None,
            jitter: 0.0,
        }
    }

    /// Counts a packet of this number, which took `latency` nanoseconds.
    #[inline]
    pub(crate) fn record(&mut self, sequence: u32, bytes: usize, latency: u64) {
        // The number nearest to the next one that has these lower 32 bits.
        let ahead = i64::from(sequence.wrapping_sub(self.next as u32) as i32);
        let Some(number) = self.next.checked_add_signed(ahead) else {
            self.late += 1;
            return;
        };
        if number >= self.next {
            self.forget(number);
            self.next = number + 1;
        } else if number + WINDOW < self.next {
            self.late += 1;
        } else if self.is_seen(number) {
            self.duplicated += 1;
            return;
        } else {
            self.reordered += 1;
        }
        self.mark(number);
        self.received += 1;
        self.bytes += bytes as u64;
        let _ = self.histogram.record(latency.max(1));
        if let Some(previous) = self.previous {
            self.jitter += (latency.abs_diff(previous) as f64 - self.jitter) / 16.0;
        }
        self.previous = Some(latency);
    }

    /// Clears the window between the old and the new highest number.
    #[inline]
    fn forget(&mut self, number: u64) {
        if number - self.next >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for skipped in self.next..=number {
            if let Some(word) = self.seen.get_mut((skipped / 64) as usize % WORDS) {
                *word &= !(1 << (skipped % 64));
            }
        }
    }

    #[inline]
    fn is_seen(&self, number: u64) -> bool {
        self.seen
            .get((number / 64) as usize % WORDS)
            .is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    #[inline]
    fn mark(&mut self, number: u64) {
        if let Some(word) = self.seen.get_mut((number / 64) as usize % WORDS) {
            *word |= 1 << (number % 64);
        }
    }

    /// Median and 99th percentile so far, in microseconds.
    pub(crate) fn quick(&self) -> (f64, f64) {
        let at = |quantile| self.histogram.value_at_quantile(quantile) as f64 / 1000.0;
        (at(0.5), at(0.99))
    }

    /// The latency so far; `None` before the first packet.
    pub(crate) fn latency(&self) -> Option<Latency> {
        let micro = |ns: u64| (ns as f64 / 10.0).round() / 100.0;
        let at = |quantile| micro(self.histogram.value_at_quantile(quantile));
        (!self.histogram.is_empty()).then(|| Latency {
            samples: self.histogram.len(),
            min_us: micro(self.histogram.min()),
            mean_us: micro(self.histogram.mean() as u64),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: micro(self.histogram.max()),
            jitter_us: micro(self.jitter as u64),
            histogram: self
                .histogram
                .iter_log(100, 1.3)
                .filter(|step| step.count_since_last_iteration() > 0)
                .map(|step| {
                    (
                        micro(step.value_iterated_to()),
                        step.count_since_last_iteration(),
                    )
                })
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracked(numbers: impl IntoIterator<Item = u32>) -> (u64, u64, u64, u64) {
        let mut tracker = Tracker::new();
        numbers
            .into_iter()
            .for_each(|number| tracker.record(number, 60, 1000));
        (
            tracker.received,
            tracker.duplicated,
            tracker.reordered,
            tracker.late,
        )
    }

    #[test]
    fn each_kind_is_counted_exactly() {
        assert_eq!(tracked(0..100), (100, 0, 0, 0));
        assert_eq!(tracked([0, 1, 3, 2, 2, 4]), (5, 1, 1, 0));
        assert_eq!(tracked([5, 9]), (2, 0, 0, 0));
        assert_eq!(tracked([0, 70_000, 1]), (3, 0, 0, 1));
        // A jump over the whole window and back into it.
        assert_eq!(tracked([0, 200_000, 199_999, 199_999]), (3, 1, 1, 0));
    }

    #[test]
    fn numbers_wrap() {
        let mut tracker = Tracker::new();
        tracker.next = u64::from(u32::MAX) - 1;
        [u32::MAX - 1, u32::MAX, 0, 1, 0]
            .into_iter()
            .for_each(|number| tracker.record(number, 60, 1));
        assert_eq!(
            (tracker.received, tracker.duplicated, tracker.next),
            (4, 1, (1 << 32) + 2)
        );
    }

    #[test]
    fn percentiles_are_those_of_the_input() {
        let mut tracker = Tracker::new();
        (0..1000).for_each(|number| tracker.record(number, 60, u64::from(number + 1) * 1000));
        let latency = tracker.latency().unwrap();
        assert!((latency.p50_us - 500.0).abs() < 1.0, "{latency:?}");
        assert!((latency.p99_us - 990.0).abs() < 2.0, "{latency:?}");
        assert_eq!(
            latency
                .histogram
                .iter()
                .map(|(_, count)| count)
                .sum::<u64>(),
            1000
        );
    }
}
