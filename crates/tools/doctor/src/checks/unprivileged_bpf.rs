//! `unprivileged-bpf`: unprivileged users may not load BPF programs.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "unprivileged-bpf",
    title: "unprivileged users may not load BPF programs",
    consequence: "The kernel adds speculation barriers to BPF programs of users, and any user can probe for holes.",
    explanation: "With 2 the setting can be changed by root until the next boot, with 1 it is locked. Distributions choose 2.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/kernel/unprivileged_bpf_disabled";
    match host.number(path) {
        Some(value) if value == 0 => vec![finding(
            Severity::Warning,
            "kernel.unprivileged_bpf_disabled",
            format!("{value}"),
            write(path, "2"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_is_found() {
        let found = found(
            &CHECK,
            &[("proc/sys/kernel/unprivileged_bpf_disabled", "0")],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "kernel.unprivileged_bpf_disabled")
        );
        assert!(found[0].evidence.contains("0"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(
            &CHECK,
            &[("proc/sys/kernel/unprivileged_bpf_disabled", "2")],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
