//! How long the agent rests between two looks at its rings.
//!
//! Looking too often costs whoever writes: each look takes the ring's lines to another core. Looking too seldom
//! loses samples: a ring holds [`RING`]. So the agent rests for as long as the fullest ring takes to a quarter at the
//! highest speed of late, and never so long that a flood out of the blue fills one.

use std::time::{Duration, Instant};

use crate::sampler::RING;

/// Samples that a ring may gain during a rest.
const GAIN: f64 = RING as f64 / 4.0;
/// Rests are not shorter, since waking up costs that much, and not longer: a ring lasts so long at 400,000 a second.
const REST: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(5));
/// The highest speed is forgotten by half in this time.
const HALF_LIFE: f64 = 0.1;

/// The speed at which rings fill.
pub(super) struct Pace {
    /// Samples a second that the fastest ring gained of late.
    fastest: f64,
    looked: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace {
            fastest: 0.0,
            looked: now,
        }
    }

    /// The rest that follows a look which found so many samples in the fullest ring.
    pub(super) fn rest(&mut self, found: usize, now: Instant) -> Duration {
        let elapsed = now
            .saturating_duration_since(self.looked)
            .as_secs_f64()
            .max(1e-6);
        self.looked = now;
        let forgotten = self.fastest * 0.5_f64.powf(elapsed / HALF_LIFE);
        self.fastest = forgotten.max(found as f64 / elapsed);
        let (least, most) = REST;
        Duration::try_from_secs_f64(GAIN / self.fastest.max(1.0))
            .map_or(most, |rest| rest.clamp(least, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest number of samples that a ring holds when one is looked at, at a steady speed.
    fn fullest(per_second: f64) -> f64 {
        let began = Instant::now();
        let (mut pace, mut now, mut most) = (Pace::new(began), began, 0.0_f64);
        let mut rest = Duration::ZERO;
        for _ in 0..10_000 {
            now += rest;
            let found = rest.as_secs_f64() * per_second;
            most = most.max(found);
            rest = pace.rest(found as usize, now);
        }
        most
    }

    #[test]
    fn no_ring_fills_at_any_speed_that_can_be_kept() {
        for per_second in [0.0, 1.0, 1e3, 1e4, 1e5, 2e5, 3e5, 1e6, 5e6] {
            let most = fullest(per_second);
            // The first rest knows nothing of the speed.
            let bound = (per_second * 0.005).max(GAIN * 1.01);
            assert!(most <= bound, "{per_second} a second: {most}");
        }
    }

    #[test]
    fn it_rests_long_when_there_is_nothing_and_after_a_flood_again() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        assert_eq!(pace.rest(0, now + Duration::from_millis(1)), REST.1);
        assert_eq!(
            pace.rest(2000, now + Duration::from_millis(2)),
            Duration::from_micros(256)
        );
        let soon = pace.rest(0, now + Duration::from_millis(3));
        assert!(
            soon < Duration::from_micros(300),
            "a pause in a flood is no end of it: {soon:?}"
        );
        assert_eq!(pace.rest(0, now + Duration::from_secs(3)), REST.1);
    }
}
