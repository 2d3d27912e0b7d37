//! What is usual for a key at an hour of the week.
//!
//! Each minute the rate of each known key is learnt into the slot of its hour (168 of them): an exponentially weighted mean
//! and mean deviation. A slot counts once it has seen more than one week. Nothing is learnt while the key's alert is active, so
//! that an attack does not become usual. Keys are bounded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Slots: hours of a week.
const SLOTS: usize = 168;
/// Minutes of a slot before it counts: more than one week can give.
const ENOUGH: u16 = 90;
/// Keys of a rule that are learnt.
const MOST_KEYS: usize = 1000;
/// Weight of a new minute; the last two weeks of an hour make up 87 % of its mean.
const WEIGHT: f32 = 1.0 / 60.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Slot {
    mean: f32,
    deviation: f32,
    minutes: u16,
}

/// The baselines of one rule, by key as text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Baseline {
    keys: BTreeMap<String, Vec<Slot>>,
    /// Keys that were not learnt because the table is full.
    pub refused: u64,
}

/// The hour of the week of a time; hour 0 begins on Monday 00:00 UTC.
fn slot_of(time: i64) -> usize {
    // 1 January 1970 was a Thursday.
    ((time.div_euclid(3600) + 72).rem_euclid(SLOTS as i64)) as usize
}

impl Baseline {
    /// Learns the rate of a key.
    pub fn learn(&mut self, key: &str, time: i64, rate: f64) {
        if !self.keys.contains_key(key) {
            if self.keys.len() >= MOST_KEYS {
                self.refused += 1;
                return;
            }
            self.keys
                .insert(key.to_owned(), vec![Slot::default(); SLOTS]);
        }
        let slots = self.keys.get_mut(key);
        let Some(slot) = slots.and_then(|slots| slots.get_mut(slot_of(time))) else {
            return;
        };
        let rate = rate as f32;
        if slot.minutes == 0 {
            slot.mean = rate;
        }
        // The first minutes weigh alike, so that the mean does not hang on the very first.
        let weight = WEIGHT.max(1.0 / (f32::from(slot.minutes) + 1.0));
        slot.deviation += weight * ((rate - slot.mean).abs() - slot.deviation);
        slot.mean += weight * (rate - slot.mean);
        slot.minutes = slot.minutes.saturating_add(1);
    }

    /// Keys that are learnt.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    /// The rate that is unusual for a key: mean and so many mean deviations; `None` before enough was seen.
    #[must_use]
    pub fn limit(&self, key: &str, time: i64, deviations: f64) -> Option<f64> {
        let slot = self.keys.get(key)?.get(slot_of(time))?;
        (slot.minutes >= ENOUGH)
            .then(|| f64::from(slot.mean) + deviations * f64::from(slot.deviation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_weeks_make_a_limit_for_each_hour() {
        let mut baseline = Baseline::default();
        let week = 7 * 86_400;
        let rate = |time: i64| {
            // Busy in the hour after Thursday 12:00, else quiet; a little noise.
            let noise = (time / 60 % 7) as f64;
            if time % week / 3600 == 12 {
                1000.0 + 10.0 * noise
            } else {
                100.0 + noise
            }
        };
        for minute in 0..7 * 1440 {
            baseline.learn("a", minute * 60, rate(minute * 60));
        }
        assert_eq!(baseline.limit("a", 12 * 3600, 4.0), None);
        for minute in 7 * 1440..14 * 1440 {
            baseline.learn("a", minute * 60, rate(minute * 60));
        }
        let busy = baseline
            .limit("a", 2 * week + 12 * 3600, 4.0)
            .expect("learnt");
        let quiet = baseline
            .limit("a", 2 * week + 3 * 3600, 4.0)
            .expect("learnt");
        assert!((1050.0..1200.0).contains(&busy), "{busy}");
        assert!((103.0..120.0).contains(&quiet), "{quiet}");
        assert_eq!(baseline.limit("b", 0, 4.0), None);
        for key in 0..2000 {
            baseline.learn(&key.to_string(), 0, 1.0);
        }
        assert_eq!((baseline.keys.len(), baseline.refused), (MOST_KEYS, 1001));
    }

    #[test]
    fn the_week_begins_on_monday() {
        // 5 January 1970 was a Monday.
        assert_eq!(slot_of(4 * 86_400), 0);
        assert_eq!(slot_of(4 * 86_400 - 1), SLOTS - 1);
    }
}
