//! `smt`: workers do not share a core with a sibling.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "smt",
    title: "workers do not share a core with a sibling",
    consequence: "Two workers on one core get about 60 % of its throughput each, and disturb each other.",
    explanation: "With SMT two hardware threads share a core. Polling workers want the core alone: use one thread of each pair, or switch SMT off.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    match host.number("sys/devices/system/cpu/smt/active") {
        Some(1) => vec![finding(
            Severity::Advice,
            "cpu",
            "SMT is active".to_owned(),
            write("sys/devices/system/cpu/smt/control", "off"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smt_is_found() {
        let found = found(&CHECK, &[("sys/devices/system/cpu/smt/active", "1")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "cpu")
        );
        assert!(found[0].evidence.contains("active"), "{found:#?}");
    }

    #[test]
    fn no_smt_is_fine() {
        let found = found(&CHECK, &[("sys/devices/system/cpu/smt/active", "0")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
