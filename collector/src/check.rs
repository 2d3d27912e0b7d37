//! Estimates from flow samples compared with the counters of the same interfaces, from the same stream of datagrams.
//!
//! An sFlow agent sends interface counters (0:1) beside its samples. Between two counter samples of an interface, the sum of
//! frame lengths times sampling rate estimates what the octet counter grew by; the variance of the estimate is known. Over
//! the last ten minutes z = (estimate − counted) / standard deviation. |z| above [`LIMIT`] says that samples are missing or
//! doubled, or that a sampling rate is wrong. Only samples that the interface itself took count: those whose data source is
//! the interface. Memory is bounded by [`MOST_INTERFACES`].

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

/// Interfaces that are compared.
const MOST_INTERFACES: usize = 1 << 15;
/// Seconds that a comparison covers.
const WINDOW: i64 = 600;
/// Intervals of a comparison.
const MOST_INTERVALS: usize = 64;
/// |z| above which an interface is reported.
pub const LIMIT: f64 = 4.0;
/// Samples below which nothing is concluded.
const FEW: u64 = 30;

/// Octets in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Octets {
    estimate: f64,
    variance: f64,
    samples: u64,
    counted: u64,
}

impl Octets {
    fn add(&mut self, other: &Octets) {
        self.estimate += other.estimate;
        self.variance += other.variance;
        self.samples += other.samples;
        self.counted = self.counted.saturating_add(other.counted);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    end: i64,
    received: Octets,
    sent: Octets,
}

#[derive(Debug, Default)]
struct Interface {
    /// Counters of received and sent octets at the last counter sample; absent before the first one.
    last: Option<(u64, u64)>,
    /// What was sampled since then.
    now: Interval,
    intervals: VecDeque<Interval>,
}

/// All interfaces.
#[derive(Debug, Default)]
pub struct Checks {
    interfaces: HashMap<String, HashMap<u32, Interface>>,
    count: usize,
}

/// One direction of a comparison.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Comparison {
    /// Octets by samples.
    pub estimate: f64,
    /// Octets by the interface's counter.
    pub counted: u64,
    /// Samples behind the estimate.
    pub samples: u64,
    /// (estimate − counted) in standard deviations; absent with fewer than 30 samples.
    pub z: Option<f64>,
}

impl Comparison {
    fn of(octets: &Octets) -> Comparison {
        let enough = octets.samples >= FEW && octets.variance > 0.0;
        Comparison {
            estimate: octets.estimate,
            counted: octets.counted,
            samples: octets.samples,
            z: enough.then(|| (octets.estimate - octets.counted as f64) / octets.variance.sqrt()),
        }
    }

    /// Whether the difference is larger than chance explains.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.z.is_some_and(|z| z.abs() > LIMIT)
    }
}

/// The comparison of one interface.
#[derive(Clone, Debug, Serialize)]
pub struct InterfaceCheck {
    /// Its ifIndex.
    pub index: u32,
    /// Seconds that the comparison covers.
    pub seconds: i64,
    /// What it received; absent when samples of that direction never came.
    pub received: Option<Comparison>,
    /// What it sent.
    pub sent: Option<Comparison>,
}

impl Checks {
    fn interface(&mut self, exporter: &str, index: u32) -> Option<&mut Interface> {
        let known = self
            .interfaces
            .get(exporter)
            .is_some_and(|interfaces| interfaces.contains_key(&index));
        if !known {
            if self.count >= MOST_INTERFACES {
                return None;
            }
            self.count += 1;
        }
        let interfaces = self.interfaces.entry(exporter.to_owned()).or_default();
        Some(interfaces.entry(index).or_default())
    }

    /// Enters a sample that interface `index` took of a frame that it received (or sent).
    pub fn sample(&mut self, exporter: &str, index: u32, is_sent: bool, octets: u64, rate: u32) {
        let Some(interface) = self.interface(exporter, index) else {
            return;
        };
        let (octets, rate) = (octets as f64, f64::from(rate.max(1)));
        let sum = if is_sent {
            &mut interface.now.sent
        } else {
            &mut interface.now.received
        };
        sum.estimate += octets * rate;
        sum.variance += octets * octets * rate * (rate - 1.0);
        sum.samples += 1;
    }

    /// Enters a counter sample.
    pub fn counters(&mut self, exporter: &str, index: u32, received: u64, sent: u64, now: i64) {
        let Some(interface) = self.interface(exporter, index) else {
            return;
        };
        let mut interval = std::mem::take(&mut interface.now);
        if let Some((before_received, before_sent)) = interface.last.replace((received, sent)) {
            // A counter that fell began again: what this interval had is not known.
            if let (Some(received), Some(sent)) = (
                received.checked_sub(before_received),
                sent.checked_sub(before_sent),
            ) {
                interval.received.counted = received;
                interval.sent.counted = sent;
                interval.end = now;
                interface.intervals.push_back(interval);
            }
        }
        let begin = now - WINDOW;
        while interface.intervals.len() > MOST_INTERVALS
            || interface
                .intervals
                .front()
                .is_some_and(|interval| interval.end <= begin)
        {
            interface.intervals.pop_front();
        }
    }

    /// The comparisons of an exporter, by ifIndex.
    #[must_use]
    pub fn of(&self, exporter: &str) -> Vec<InterfaceCheck> {
        let interfaces = self.interfaces.get(exporter).into_iter().flatten();
        let mut all: Vec<InterfaceCheck> = interfaces
            .filter(|(_, interface)| interface.intervals.len() > 1)
            .map(|(index, interface)| {
                let (mut received, mut sent) = (Octets::default(), Octets::default());
                for interval in &interface.intervals {
                    received.add(&interval.received);
                    sent.add(&interval.sent);
                }
                let ends = interface.intervals.iter().map(|interval| interval.end);
                let of = |octets: &Octets| (octets.samples > 0).then(|| Comparison::of(octets));
                InterfaceCheck {
                    index: *index,
                    seconds: ends.clone().max().unwrap_or(0) - ends.min().unwrap_or(0),
                    received: of(&received),
                    sent: of(&sent),
                }
            })
            .collect();
        all.sort_by_key(|check| check.index);
        all
    }

    /// Exporters with the interfaces whose difference is larger than chance explains.
    #[must_use]
    pub fn off(&self) -> Vec<(String, u32)> {
        let mut off = Vec::new();
        for exporter in self.interfaces.keys() {
            for check in self.of(exporter) {
                if [check.received, check.sent]
                    .iter()
                    .flatten()
                    .any(Comparison::is_off)
                {
                    off.push((exporter.clone(), check.index));
                }
            }
        }
        off.sort();
        off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator, so that runs repeat.
    fn random(state: &mut u64) -> f64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Ten minutes of an interface; samples are taken one in `rate`, and announced as one in `announced`.
    fn run(seed: u64, rate: f64, announced: u32) -> InterfaceCheck {
        let (mut checks, mut state, mut counter) = (Checks::default(), seed, 0);
        for interval in 0..20_i64 {
            for packet in 0..20_000_u64 {
                let octets = 64 + packet % 1400;
                counter += octets;
                if random(&mut state) < 1.0 / rate {
                    checks.sample("e", 3, false, octets, announced);
                }
            }
            checks.counters("e", 3, counter, 0, 1000 + 30 * interval);
        }
        checks.of("e").remove(0)
    }

    #[test]
    fn right_rates_agree_and_wrong_ones_do_not() {
        let mut above = 0;
        for seed in 1..=50 {
            let check = run(seed * 7919, 100.0, 100);
            let z = check.received.and_then(|received| received.z).expect("z");
            above += u32::from(z.abs() > 1.96);
            assert!(z.abs() < LIMIT, "{seed}: {z}");
        }
        // 5 % are expected above 1.96.
        assert!(above <= 8, "{above} of 50");
        let wrong = run(1, 100.0, 200);
        assert!(
            wrong.received.is_some_and(|received| received.is_off()),
            "{wrong:?}"
        );
        assert_eq!(wrong.sent, None);
    }

    #[test]
    fn counters_that_begin_again_are_no_difference() {
        let mut checks = Checks::default();
        for (time, counter) in [(0, 1000), (30, 5000), (60, 100), (90, 200), (120, 300)] {
            for _ in 0..40 {
                checks.sample("e", 1, false, 100, 1);
            }
            checks.counters("e", 1, counter, 0, time);
        }
        let check = checks.of("e").remove(0);
        let received = check.received.expect("samples");
        assert_eq!((received.counted, received.samples), (4200, 120));
        for index in 0..MOST_INTERFACES as u32 + 10 {
            checks.sample("f", index, false, 100, 10);
        }
        assert_eq!(checks.count, MOST_INTERFACES);
    }
}
