//! `numa-balancing`: automatic NUMA balancing is off.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "numa-balancing",
    title: "automatic NUMA balancing is off",
    consequence: "Pages of packet memory are unmapped and migrated while in use, which shows as latency spikes.",
    explanation: "Balancing moves memory to the node that uses it, by page faults. Packet memory is placed once, on the right node, and should stay.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/kernel/numa_balancing";
    match host.number(path) {
        Some(value) if value == 1 => vec![finding(
            Severity::Warning,
            "kernel.numa_balancing",
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
        let found = found(&CHECK, &[("proc/sys/kernel/numa_balancing", "1")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "kernel.numa_balancing")
        );
        assert!(found[0].evidence.contains("1"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(&CHECK, &[("proc/sys/kernel/numa_balancing", "0")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
