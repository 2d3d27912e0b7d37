//! The law of gaps: the count of samples has the mean and the variance of coin tosses.

use weir_telemetry::random::{Gaps, Random};

/// Samples among `packets` packets at one in `rate`.
fn count(seed: u64, packets: u64, rate: u32) -> u64 {
    let mut gaps = Gaps::new(Random::new(seed), rate);
    let (mut place, mut count) = (gaps.pass(), 0);
    while place < packets {
        count += 1;
        place += 1 + gaps.pass();
    }
    count
}

#[test]
fn mean_and_variance_are_those_of_coin_tosses() {
    const PACKETS: u64 = 20_000;
    const SEEDS: u64 = 2_000;
    for rate in [1, 2, 3, 32, 100, 1000] {
        let p = 1.0 / f64::from(rate);
        let (mean, variance) = (PACKETS as f64 * p, PACKETS as f64 * p * (1.0 - p));
        let counts: Vec<f64> = (0..SEEDS).map(|seed| count(seed, PACKETS, rate) as f64).collect();
        let found = counts.iter().sum::<f64>() / SEEDS as f64;
        let spread = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / SEEDS as f64;
        assert!((found - mean).abs() <= 4.0 * (variance / SEEDS as f64).sqrt(), "1:{rate}: mean {found}, should be {mean}");
        // The relative error of a variance estimated from n values is sqrt(2/n).
        assert!(
            (spread - variance).abs() <= 4.0 * variance * (2.0 / SEEDS as f64).sqrt() + 1e-9,
            "1:{rate}: variance {spread}, should be {variance}"
        );
    }
}
