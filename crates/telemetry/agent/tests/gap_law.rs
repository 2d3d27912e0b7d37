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
        let counts: Vec<f64> = (0..SEEDS)
            .map(|seed| count(seed, PACKETS, rate) as f64)
            .collect();
        let found = counts.iter().sum::<f64>() / SEEDS as f64;
        let spread = counts
            .iter()
            .map(|count| (count - mean).powi(2))
            .sum::<f64>()
            / SEEDS as f64;
        assert!(
            (found - mean).abs() <= 4.0 * (variance / SEEDS as f64).sqrt(),
            "1:{rate}: mean {found}, should be {mean}"
        );
        // The relative error of a variance estimated from n values is sqrt(2/n).
        assert!(
            (spread - variance).abs() <= 4.0 * variance * (2.0 / SEEDS as f64).sqrt() + 1e-9,
            "1:{rate}: variance {spread}, should be {variance}"
        );
    }
}

/// Of many seeds, the counts are spread as the normal law has it, not only by mean and variance (Kolmogorov and Smirnov;
/// above 1.95 the statistic comes once in a thousand).
#[test]
fn counts_of_many_seeds_follow_the_normal_law() {
    const PACKETS: u64 = 200_000;
    const SEEDS: usize = 1_000;
    for rate in [3, 10, 100] {
        let p = 1.0 / f64::from(rate);
        let (mean, sigma) = (PACKETS as f64 * p, (PACKETS as f64 * p * (1.0 - p)).sqrt());
        let mut scores: Vec<f64> = (0..SEEDS as u64)
            .map(|seed| (count(seed, PACKETS, rate) as f64 - mean) / sigma)
            .collect();
        scores.sort_by(f64::total_cmp);
        let off = |(place, &score): (usize, &f64)| {
            let (below, up_to) = (
                place as f64 / SEEDS as f64,
                (place + 1) as f64 / SEEDS as f64,
            );
            (normal(score) - below)
                .abs()
                .max((normal(score) - up_to).abs())
        };
        let distance = scores.iter().enumerate().map(off).fold(0.0, f64::max);
        assert!(
            distance * (SEEDS as f64).sqrt() < 1.95,
            "1:{rate}: {distance}"
        );
    }
}

/// The normal law's share below a score (Abramowitz and Stegun 26.2.17, good to 1e-7).
fn normal(score: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * score.abs());
    let series = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let above = (-score * score / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * series;
    if score < 0.0 { above } else { 1.0 - above }
}
