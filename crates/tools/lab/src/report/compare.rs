//! Whether one device is faster than another: a difference with its confidence interval.

use serde::{Deserialize, Serialize};

use super::Report;

/// Two devices with the same traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The traffic.
    pub traffic: String,
    /// The device compared with.
    pub base: String,
    /// The other one.
    pub other: String,
    /// By how many percent the other one is faster.
    pub percent: f64,
    /// Half of the 95 % confidence interval in percent; none with fewer than two repeats of each.
    pub interval: Option<f64>,
    /// In words.
    pub verdict: String,
}

/// The 97.5 % quantile of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The variance of the mean.
fn variance(values: &[f64]) -> f64 {
    let (mean, count) = (mean(values), values.len() as f64);
    values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (count - 1.0)
        / count
}

/// Compares every device with the first one, for each traffic (Welch's interval of the difference).
#[must_use]
pub fn compare(report: &Report) -> Vec<Comparison> {
    let mut all = Vec::new();
    for (at, base) in report.tests.iter().enumerate() {
        let first = !report
            .tests
            .iter()
            .take(at)
            .any(|test| test.traffic == base.traffic);
        if !first {
            continue;
        }
        for other in report
            .tests
            .iter()
            .skip(at + 1)
            .filter(|test| test.traffic == base.traffic && test.device != base.device)
        {
            let values = |test: &super::Test| {
                if test.repeats.is_empty() {
                    test.rate().into_iter().collect()
                } else {
                    test.repeats.clone()
                }
            };
            let (a, b) = (values(base), values(other));
            if !a.is_empty() && !b.is_empty() && mean(&a) > 0.0 {
                all.push(one(&base.traffic, &base.device, &other.device, &a, &b));
            }
        }
    }
    all
}

fn one(traffic: &str, base: &str, other: &str, a: &[f64], b: &[f64]) -> Comparison {
    let percent = (mean(b) / mean(a) - 1.0) * 100.0;
    let interval = (a.len() > 1 && b.len() > 1).then(|| {
        let (va, vb) = (variance(a), variance(b));
        let freedom = (va + vb).powi(2)
            / (va.powi(2) / (a.len() as f64 - 1.0) + vb.powi(2) / (b.len() as f64 - 1.0))
                .max(1e-300);
        let t = T
            .get((freedom as usize).clamp(1, 30) - 1)
            .copied()
            .unwrap_or(2.0);
        t * (va + vb).sqrt() / mean(a) * 100.0
    });
    let direction = if percent >= 0.0 { "faster" } else { "slower" };
    let verdict = match interval {
        Some(interval) if percent.abs() <= interval => {
            format!(
                "no difference between {base} and {other} at {traffic} ({percent:+.1} ± {interval:.1} %)"
            )
        }
        Some(interval) => format!(
            "{other} is {:.1} ± {interval:.1} % {direction} than {base} at {traffic}",
            percent.abs()
        ),
        None => format!(
            "{other} was {:.1} % {direction} than {base} at {traffic}, measured once: repeat to know whether it is by chance",
            percent.abs()
        ),
    };
    Comparison {
        traffic: traffic.to_owned(),
        base: base.to_owned(),
        other: other.to_owned(),
        percent,
        interval,
        verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval of two samples, worked out by hand: means 100 and 112, variances of the means 1/3
    /// each, 4 degrees of freedom, 2.776 * sqrt(2/3) = 2.27.
    #[test]
    fn intervals_are_welchs() {
        let found = one(
            "64",
            "A",
            "B",
            &[99.0, 100.0, 101.0],
            &[111.0, 112.0, 113.0],
        );
        assert!(
            (found.percent - 12.0).abs() < 1e-9 && (found.interval.unwrap() - 2.2666).abs() < 1e-3,
            "{found:?}"
        );
        assert_eq!(found.verdict, "B is 12.0 ± 2.3 % faster than A at 64");
        let same = one(
            "imix",
            "A",
            "B",
            &[99.0, 100.0, 101.0],
            &[100.0, 101.0, 99.5],
        );
        assert!(same.verdict.starts_with("no difference"), "{same:?}");
        let once = one("64", "A", "B", &[100.0], &[50.0]);
        assert!(
            once.interval.is_none() && once.verdict.contains("50.0 % slower"),
            "{once:?}"
        );
    }
}
