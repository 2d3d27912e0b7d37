//! `steal`: the hypervisor gives this machine its cores.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "steal",
    title: "the hypervisor gives this machine its cores",
    consequence: "Workers stop for milliseconds, rings overflow, measurements mean nothing.",
    explanation: "Steal is time in which the machine wanted to run and the hypervisor ran something else. Above 1 % a virtual router loses packets at any rate.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let text = host.text("proc/stat").unwrap_or_default();
    let row: Vec<u64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let (steal, total) = (
        row.get(7).copied().unwrap_or(0),
        row.iter()
            .take(8)
            .fold(0_u64, |sum, value| sum.saturating_add(*value)),
    );
    if total > 0 && steal.saturating_mul(100) > total {
        let evidence = format!(
            "{:.1} % of the time since boot",
            steal as f64 * 100.0 / total as f64
        );
        return vec![finding(
            Severity::Critical,
            "cpu",
            evidence,
            manual("give the virtual machine dedicated cores"),
        )];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_steal_is_found() {
        let found = found(&CHECK, &[("proc/stat", "cpu 100 0 100 700 0 0 0 100\n")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Critical, "cpu")
        );
        assert!(found[0].evidence.contains("10.0 %"), "{found:#?}");
    }

    #[test]
    fn little_steal_is_fine() {
        let found = found(&CHECK, &[("proc/stat", "cpu 100 0 100 9700 0 0 0 10\n")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
