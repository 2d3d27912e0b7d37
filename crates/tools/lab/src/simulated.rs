//! A simulated device of known capacity, in virtual time: what searches are tested with.

use crate::error::LabError;
use crate::mlr::{Measurer, Trial};
use crate::stream::Random;

/// The device and its noise.
pub struct Simulated {
    /// Packets per second that it forwards.
    pub capacity: f64,
    /// Bits per second of layer 2 that it forwards, for frames of `frame` bytes; infinite for no limit.
    pub bits: f64,
    /// Bytes of a frame with FCS.
    pub frame: f64,
    /// Packets that its queue holds.
    pub queue: f64,
    /// The share of trials that a busy machine spoils.
    pub spoilt: f64,
    /// How many trials in a row are spoilt when one is.
    pub burst: u32,
    /// The share of trials in which a packet is lost without being noticed as noise.
    pub noisy: f64,
    /// Trials that are still spoilt.
    left: u32,
    random: Random,
}

impl Simulated {
    /// A device without noise.
    #[must_use]
    pub fn new(capacity: f64, seed: u64) -> Simulated {
        Simulated {
            capacity,
            bits: f64::INFINITY,
            frame: 64.0,
            queue: 0.0,
            spoilt: 0.0,
            burst: 1,
            noisy: 0.0,
            left: 0,
            random: Random::new(seed),
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        (self.random.next() >> 11) as f64 / ((1_u64 << 53) as f64) < share
    }
}

impl Measurer for Simulated {
    fn measure(&mut self, load: f64, duration: f64) -> Result<Trial, LabError> {
        let offered = (load * duration).floor();
        let capacity = self.capacity.min(self.bits / (self.frame * 8.0));
        let mut lost = (offered - capacity * duration - self.queue).max(0.0).ceil();
        if self.left == 0 && self.chance(self.spoilt) {
            self.left = self.burst;
        }
        let spoilt = self.left > 0;
        self.left = self.left.saturating_sub(1);
        if spoilt {
            lost += (offered * 0.01).ceil();
        } else if self.chance(self.noisy) {
            lost += 1.0;
        }
        Ok(Trial {
            load,
            duration,
            offered: offered as u64,
            sent: offered as u64,
            lost: lost.min(offered) as u64,
            spoilt: spoilt.then(|| "simulated".to_owned()),
            ..Trial::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlr::{Goal, Limits, search};

    fn limits() -> Limits {
        Limits {
            min_load: 1000.0,
            max_load: 1.488e7,
            ..Limits::default()
        }
    }

    /// Fifty devices between 10 kpps and 14 Mpps: found within 1 % in at most 20 trials, and the
    /// found rate never loses.
    #[test]
    fn fifty_devices_are_found() {
        for seed in 0..50 {
            let mut random = Random::new(1000 + seed);
            let capacity =
                10_000.0 * 1400_f64.powf(random.below(1 << 20) as f64 / f64::from(1 << 20));
            let mut device = Simulated::new(capacity, seed);
            let result = search(&[Goal::no_drop(1.0)], limits(), &mut device).unwrap();
            let lower = result.found[0].lower.unwrap();
            assert!(
                lower <= capacity + 1.0,
                "seed {seed}: {lower} of {capacity} loses"
            );
            assert!(
                lower >= capacity * 0.99,
                "seed {seed}: {lower} of {capacity}"
            );
            assert!(
                result.trials.len() <= 20,
                "seed {seed}: {} trials",
                result.trials.len()
            );
        }
    }

    /// With a fifth of all trials spoilt by a stolen core, and noticed: still within 1 %.
    #[test]
    fn spoilt_trials_are_repeated() {
        for seed in 0..50 {
            let mut random = Random::new(2000 + seed);
            let capacity = 100_000.0 + random.below(10_000_000) as f64;
            let mut device = Simulated {
                spoilt: 0.2,
                ..Simulated::new(capacity, seed)
            };
            let result = search(&[Goal::no_drop(1.0)], limits(), &mut device).unwrap();
            let lower = result.found[0].lower.unwrap();
            assert!(
                lower <= capacity + 1.0 && lower >= capacity * 0.99,
                "seed {seed}: {lower} of {capacity}"
            );
            let counted = result
                .trials
                .iter()
                .filter(|trial| trial.spoilt.is_none())
                .count();
            assert!(counted <= 20, "seed {seed}: {counted} trials");
        }
    }

    /// A device limited by bytes: the same at each frame size.
    #[test]
    fn fifty_devices_limited_by_bytes_are_found() {
        for seed in 0..50 {
            let mut random = Random::new(3000 + seed);
            let bits = 1e8 + random.below(900_000_000) as f64;
            let frame = [64.0, 512.0, 1518.0][random.below(3) as usize];
            let mut device = Simulated {
                bits,
                frame,
                ..Simulated::new(f64::INFINITY, seed)
            };
            let result = search(&[Goal::no_drop(1.0)], limits(), &mut device).unwrap();
            let (lower, capacity) = (result.found[0].lower.unwrap(), bits / (frame * 8.0));
            assert!(
                lower <= capacity + 1.0 && lower >= capacity * 0.99,
                "seed {seed}: {lower} of {capacity}"
            );
            assert!(result.trials.len() <= 20, "{}", result.trials.len());
        }
    }

    /// Noise in bursts of several trials, each noticed: within 1 %, never a rate that loses.
    #[test]
    fn bursts_of_noise_are_waited_out() {
        for seed in 0..50 {
            let mut random = Random::new(4000 + seed);
            let capacity = 100_000.0 + random.below(10_000_000) as f64;
            let mut device = Simulated {
                spoilt: 0.1,
                burst: 3,
                ..Simulated::new(capacity, seed)
            };
            let result = search(&[Goal::no_drop(1.0)], limits(), &mut device);
            let result = match result {
                Ok(result) => result,
                // Two bursts in a row are more than the search repeats; it says so.
                Err(error) => {
                    assert!(error.to_string().contains("6 times in a row"), "{error}");
                    continue;
                }
            };
            let lower = result.found[0].lower.unwrap();
            assert!(
                lower <= capacity + 1.0 && lower >= capacity * 0.99,
                "seed {seed}: {lower} of {capacity}"
            );
        }
    }

    /// Loss that no guard notices makes the strict goal too low, never too high; a goal that allows
    /// half of the trials to exceed is not misled.
    #[test]
    fn unnoticed_noise_needs_an_exceed_ratio() {
        for seed in 0..50 {
            let mut device = Simulated {
                noisy: 0.1,
                ..Simulated::new(1_000_000.0, seed)
            };
            let goal = Goal {
                exceed_ratio: 0.5,
                duration_sum: 5.0,
                ..Goal::no_drop(1.0)
            };
            let lower = search(&[goal], limits(), &mut device).unwrap().found[0]
                .lower
                .unwrap();
            assert!(
                (970_000.0..=1_000_001.0).contains(&lower),
                "seed {seed}: {lower}"
            );
        }
    }

    #[test]
    fn two_goals_share_trials() {
        let mut device = Simulated::new(1_000_000.0, 1);
        let goals = [Goal::no_drop(1.0), Goal::partial_drop(0.005, 1.0)];
        let result = search(&goals, limits(), &mut device).unwrap();
        let [ndr, pdr] = [0, 1].map(|at: usize| result.found[at].lower.unwrap());
        assert!(
            ndr <= pdr && (990_000.0..=1_000_000.0 / 0.995 + 1.0).contains(&pdr),
            "{ndr} {pdr}"
        );
    }

    /// A device faster than the generator, and one that forwards nothing.
    #[test]
    fn missing_bounds_are_reported() {
        let result = search(&[Goal::no_drop(1.0)], limits(), &mut Simulated::new(1e9, 1)).unwrap();
        assert_eq!(
            (result.found[0].lower, result.found[0].upper),
            (Some(1.488e7), None)
        );
        let result = search(&[Goal::no_drop(1.0)], limits(), &mut Simulated::new(0.0, 1)).unwrap();
        assert_eq!(
            (result.found[0].lower, result.found[0].upper),
            (None, Some(1000.0))
        );
    }

    #[test]
    fn a_machine_that_is_always_busy_is_an_error() {
        let mut device = Simulated {
            spoilt: 1.0,
            ..Simulated::new(1e6, 1)
        };
        let error = search(&[Goal::no_drop(1.0)], limits(), &mut device).unwrap_err();
        assert!(error.to_string().contains("6 times in a row"), "{error}");
    }
}
