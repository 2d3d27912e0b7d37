//! When packets are due: a pure function of the time since the start.

use std::sync::Arc;
use std::time::Duration;

use crate::profile::StreamSpec;

/// The schedule of one stream. Times are nanoseconds since the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    start: u64,
    shape: Shape,
    /// No packet is due from this time on.
    end: u64,
    /// Packets in all.
    limit: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Max,
    /// Packets per second.
    Constant(f64),
    Burst {
        packets: u64,
        every: u64,
    },
    /// At the times of a capture, again after each period.
    Capture {
        times: Arc<[u64]>,
        period: u64,
    },
    /// From 0 to this rate within that time, then constant.
    Ramp {
        rate: f64,
        over: f64,
    },
}

impl Schedule {
    /// The schedule of a stream at `rate` packets per second, for `duration`.
    #[must_use]
    pub fn new(spec: &StreamSpec, rate: f64, duration: Option<Duration>) -> Schedule {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let timed = spec.capture.as_ref().filter(|_| spec.timed);
        let shape = match (spec.burst, spec.ramp) {
            (None, None) if timed.is_some() => timed.map_or(Shape::Max, |capture| Shape::Capture {
                times: capture.times.clone(),
                period: capture.period.max(1),
            }),
            (Some(burst), _) => Shape::Burst {
                packets: burst.packets,
                every: ns(burst.every).max(1),
            },
            _ if rate.is_infinite() => Shape::Max,
            (None, Some(over)) => Shape::Ramp {
                rate,
                over: over.as_secs_f64(),
            },
            (None, None) => Shape::Constant(rate),
        };
        Schedule {
            start: ns(spec.start),
            shape,
            end: duration.map_or(u64::MAX, ns),
            limit: if spec.packets == 0 {
                u64::MAX
            } else {
                spec.packets
            },
        }
    }

    /// How many packets were due up to `now`, that included.
    #[inline]
    #[must_use]
    pub fn due(&self, now: u64) -> u64 {
        let now = now.min(self.end.saturating_sub(1));
        let Some(elapsed) = now.checked_sub(self.start) else {
            return 0;
        };
        let seconds = elapsed as f64 * 1e-9;
        let due = match &self.shape {
            Shape::Max => u64::MAX,
            Shape::Constant(rate) => (seconds * rate * (1.0 + 1e-12)) as u64 + 1,
            Shape::Burst { packets, every } => (elapsed / every + 1).saturating_mul(*packets),
            Shape::Capture { times, period } => {
                let within = elapsed % period;
                let passed = times.partition_point(|time| *time <= within) as u64;
                (elapsed / period)
                    .saturating_mul(times.len() as u64)
                    .saturating_add(passed)
            }
            Shape::Ramp { rate, over } if seconds < *over => {
                (seconds * seconds * rate / over / 2.0) as u64 + 1
            }
            Shape::Ramp { rate, over } => ((seconds - over / 2.0) * rate) as u64 + 1,
        };
        due.min(self.limit)
    }

    /// When packet `number` (from 0) is due; `u64::MAX` when it never is.
    #[must_use]
    pub fn time_of(&self, number: u64) -> u64 {
        if number >= self.limit {
            return u64::MAX;
        }
        let count = number as f64;
        let after = match &self.shape {
            Shape::Max => 0,
            Shape::Constant(rate) => (count / rate * 1e9).round() as u64,
            Shape::Burst { packets, every } => (number / (*packets).max(1)).saturating_mul(*every),
            Shape::Capture { times, period } => {
                let count = (times.len() as u64).max(1);
                let within = times.get((number % count) as usize).copied();
                (number / count)
                    .saturating_mul(*period)
                    .saturating_add(within.unwrap_or(0))
            }
            Shape::Ramp { rate, over } => {
                let in_ramp = rate * over / 2.0;
                let seconds = if count < in_ramp {
                    (count * 2.0 * over / rate).sqrt()
                } else {
                    count / rate + over / 2.0
                };
                (seconds * 1e9).round() as u64
            }
        };
        let time = self.start.saturating_add(after);
        if time >= self.end { u64::MAX } else { time }
    }

    /// Whether no packet is due after `now` that was not due before.
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        now >= self.end || self.due(now) >= self.limit
    }

    /// The time from which on nothing is due.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Whether the stream has no rate of its own.
    #[must_use]
    pub fn is_max(&self) -> bool {
        self.shape == Shape::Max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Burst;
    use crate::units::Rate;

    fn spec() -> StreamSpec {
        StreamSpec::new("a", Rate::Packets(1000.0))
    }

    #[test]
    fn constant_rates_give_exact_counts() {
        let schedule = Schedule::new(&spec(), 1000.0, Some(Duration::from_secs(1)));
        assert_eq!(schedule.due(0), 1);
        assert_eq!(schedule.due(999_999), 1);
        assert_eq!(schedule.due(1_000_000), 2);
        assert_eq!(schedule.due(u64::MAX), 1000);
        assert_eq!(schedule.time_of(999), 999_000_000);
        assert_eq!(schedule.time_of(1000), u64::MAX);
        assert!(schedule.is_over(1_000_000_000) && !schedule.is_over(5));
    }

    /// `due` and `time_of` agree for all shapes.
    #[test]
    fn the_two_directions_agree() {
        let burst = StreamSpec {
            burst: Some(Burst {
                packets: 7,
                every: Duration::from_millis(3),
            }),
            ..spec()
        };
        let ramp = StreamSpec {
            ramp: Some(Duration::from_millis(500)),
            start: Duration::from_millis(2),
            ..spec()
        };
        for (spec, rate) in [(spec(), 333.0), (spec(), 1e6), (burst, 1.0), (ramp, 5000.0)] {
            let schedule = Schedule::new(&spec, rate, None);
            for number in 0..5000 {
                let at = schedule.time_of(number);
                assert!(schedule.due(at + 2) > number, "{spec:?} {number} at {at}");
                assert!(
                    schedule.due(at.saturating_sub(3)) <= number + 7,
                    "{spec:?} {number} at {at}"
                );
            }
        }
    }

    #[test]
    fn limits_end_a_stream() {
        let schedule = Schedule::new(
            &StreamSpec {
                packets: 10,
                ..spec()
            },
            f64::INFINITY,
            None,
        );
        assert_eq!(schedule.due(0), 10);
        assert!(schedule.is_over(0) && schedule.is_max());
    }
}
