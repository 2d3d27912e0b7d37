//! Confidence bands of sampled sums.
//!
//! Σw²(1 − 1/N) is the variance of an estimate under independent sampling; 95 % of estimates lie within 1.96 standard
//! deviations. Under 30 samples the normal approximation is poor, and Poisson limits of the count are used instead.

/// Half of the width of a normal 95 % band in standard deviations.
const Z: f64 = 1.959_964;
/// Samples below which Poisson limits are used.
const FEW: f64 = 30.0;

/// Lower and upper 95 % limit; `None` when nothing was sampled.
#[must_use]
pub fn band(value: f64, variance: f64, samples: f64) -> Option<[f64; 2]> {
    if variance <= 0.0 || samples <= 0.0 {
        return None;
    }
    if samples >= FEW {
        let half = Z * variance.sqrt();
        return Some([(value - half).max(0.0), value + half]);
    }
    let [low, high] = poisson(samples);
    Some([value * low / samples, value * high / samples])
}

/// Half of the width of the band.
#[must_use]
pub fn half(value: f64, variance: f64, samples: f64) -> f64 {
    band(value, variance, samples).map_or(0.0, |[low, high]| (high - low) / 2.0)
}

/// 95 % limits of the mean of a Poisson distribution of which `count` was seen (Wilson and Hilferty's approximation).
#[must_use]
pub fn poisson(count: f64) -> [f64; 2] {
    let cube =
        |n: f64, sign: f64| n * (1.0 - 1.0 / (9.0 * n) + sign * Z / (3.0 * n.sqrt())).powi(3);
    [
        if count <= 0.0 {
            0.0
        } else {
            cube(count, -1.0).max(0.0)
        },
        cube(count + 1.0, 1.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_limits_are_those_of_tables() {
        // Exact limits by the chi-squared distribution.
        for (count, low, high) in [
            (0.0, 0.0, 3.689),
            (1.0, 0.0253, 5.572),
            (10.0, 4.795, 18.39),
            (25.0, 16.18, 36.90),
        ] {
            let [l, h] = poisson(count);
            assert!(
                (l - low).abs() < 0.06 && (h - high).abs() < 0.06,
                "{count}: {l} {h}"
            );
        }
    }

    /// A small generator, so that runs repeat.
    fn random(state: &mut u64) -> f64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// 1,000 seeded runs of sampling 1 in N: the true total is inside of the band in 95 ± 1.5 % of them.
    #[test]
    fn bands_cover_95_percent() {
        let mut state = 0x9e37_79b9_7f4a_7c15;
        for (rate, packets) in [(10.0, 20_000), (100.0, 30_000)] {
            let sizes: Vec<f64> = (0..packets)
                .map(|i| {
                    if i % 3 == 0 {
                        1500.0
                    } else {
                        64.0 + f64::from(i % 400)
                    }
                })
                .collect();
            let truth: f64 = sizes.iter().sum();
            let mut covered = 0;
            for _ in 0..1000 {
                let (mut value, mut variance, mut n) = (0.0, 0.0, 0.0);
                for size in &sizes {
                    if random(&mut state) < 1.0 / rate {
                        value += size * rate;
                        variance += (size * rate) * (size * rate) * (1.0 - 1.0 / rate);
                        n += 1.0;
                    }
                }
                let inside = band(value, variance, n)
                    .is_some_and(|[low, high]| (low..=high).contains(&truth));
                covered += i32::from(inside);
            }
            assert!(
                (935..=965).contains(&covered),
                "1 in {rate}: {covered} of 1000"
            );
        }
    }
}
