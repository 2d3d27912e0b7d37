//! `nmi-watchdog`: the hard lockup watchdog is off.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "nmi-watchdog",
    title: "the hard lockup watchdog is off",
    consequence: "An interrupt every few seconds on each core, and a performance counter that perf cannot use.",
    explanation: "The watchdog detects a core that is stuck. On polling cores its interrupts show up as latency spikes.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/kernel/nmi_watchdog";
    match host.number(path) {
        Some(value) if value == 1 => vec![finding(
            Severity::Advice,
            "kernel.nmi_watchdog",
            format!("{value}"),
            write(path, "0"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_is_found() {
        let found = found(&CHECK, &[("proc/sys/kernel/nmi_watchdog", "1")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "kernel.nmi_watchdog")
        );
        assert!(found[0].evidence.contains("1"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(&CHECK, &[("proc/sys/kernel/nmi_watchdog", "0")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
