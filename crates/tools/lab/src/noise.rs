//! What disturbs a measurement: time that the thread waited for a core, and time that the
//! hypervisor took.

use std::fs;

use crate::result::Noise;

/// Counters at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    run_delay_ns: u64,
    steal: u64,
    total: u64,
}

/// Reads `/proc/thread-self/schedstat` and `/proc/stat`. What is missing counts as 0.
pub(crate) fn sample() -> Sample {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    parse(&schedstat, &stat)
}

fn parse(schedstat: &str, stat: &str) -> Sample {
    let run_delay_ns = schedstat
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    let row: Vec<u64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    Sample {
        run_delay_ns,
        steal: row.get(7).copied().unwrap_or(0),
        total: row.iter().take(8).sum(),
    }
}

/// The noise between two moments that are `seconds` apart.
pub(crate) fn between(before: Sample, after: Sample, seconds: f64) -> Noise {
    let total = after.total.saturating_sub(before.total);
    Noise {
        run_delay: after.run_delay_ns.saturating_sub(before.run_delay_ns) as f64
            / (seconds.max(1e-9) * 1e9),
        steal: if total == 0 {
            0.0
        } else {
            after.steal.saturating_sub(before.steal) as f64 / total as f64
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_computed() {
        let before = parse("100 0 5\n", "cpu 100 0 50 800 0 0 0 50\n");
        let after = parse("200 250000000 9\n", "cpu 200 0 100 1600 0 0 0 100\n");
        let noise = between(before, after, 1.0);
        assert!(
            (noise.run_delay - 0.25).abs() < 1e-9 && (noise.steal - 0.05).abs() < 1e-9,
            "{noise:?}"
        );
        assert_eq!(
            between(Sample::default(), parse("", ""), 0.0),
            Noise::default()
        );
    }
}
