//! How fast the exporter takes records from the workers while a collector is reached over UDP.
//!
//! Nothing tells a sender of datagrams that the receiver's buffer is full. Many flows end together (a timeout, a change of
//! the meter, the stop of the router), and a collector with Linux's default buffer (208 KiB, some 90 messages) loses such
//! bursts. So records are taken at a bounded rate. The others wait in the rings and, when those are full, in the tables
//! that they come from: nothing is lost there while a table has room, and what it has no room for is counted.
//!
//! Used by the exporter's thread only. Time is an argument.

use std::time::Instant;

/// Records that are taken at once at most: some 45 messages of the set `5-tuple`.
const BURST: u64 = 1024;
/// Credit of one record: nanoseconds times records a second.
const RECORD: u64 = 1_000_000_000;

/// A token bucket of records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Records a second; 0 = no limit.
    rate: u32,
    /// At most [`BURST`] records.
    credit: u64,
    at: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace {
            rate: 0,
            credit: BURST * RECORD,
            at: now,
        }
    }

    /// Another rate, from now on; 0 = no limit.
    pub(super) fn set(&mut self, rate: u32, now: Instant) {
        if rate != self.rate {
            self.refill(now);
            self.rate = rate;
        }
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_nanos();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let more = passed.saturating_mul(self.rate.into());
        self.credit = self.credit.saturating_add(more).min(BURST * RECORD);
        self.at = now;
    }

    /// Records that may be taken now.
    pub(super) fn available(&mut self, now: Instant) -> usize {
        if self.rate == 0 {
            return usize::MAX;
        }
        self.refill(now);
        (self.credit / RECORD) as usize
    }

    /// Records were taken.
    pub(super) fn spend(&mut self, records: u64) {
        if self.rate != 0 {
            self.credit = self.credit.saturating_sub(records.saturating_mul(RECORD));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_and_then_the_rate() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut pace = Pace::new(start);
        assert_eq!(pace.available(start), usize::MAX);
        pace.spend(1 << 40);
        pace.set(100_000, start);
        assert_eq!(pace.available(start), 1024);
        pace.spend(1000);
        assert_eq!(pace.available(at(0)), 24);
        pace.spend(24);
        assert_eq!(pace.available(at(0)), 0);
        assert_eq!(pace.available(at(1)), 100);
        assert_eq!(pace.available(at(3)), 300);
        // Credit is bounded, whatever time passes and however fast.
        assert_eq!(pace.available(at(1_000_000_000)), 1024);
        pace.set(u32::MAX, at(1_000_000_000));
        assert_eq!(pace.available(at(u32::MAX.into())), 1024);
        pace.spend(u64::MAX);
        assert_eq!(pace.available(at(u32::MAX.into())), 0);
        // A clock that seems to go back gives nothing.
        assert_eq!(pace.available(start), 0);
        pace.set(0, start);
        assert_eq!(pace.available(start), usize::MAX);
    }
}
