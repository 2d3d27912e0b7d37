//! `bpf-jit-harden`: BPF hardening does not apply to root programs.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "bpf-jit-harden",
    title: "BPF hardening does not apply to root programs",
    consequence: "Constants in BPF programs of root are blinded, which makes XDP programs longer and slower.",
    explanation: "With 1 only programs of unprivileged users are hardened. 2 hardens those of root too, which protects little on a router, where unprivileged BPF should be off.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/core/bpf_jit_harden";
    match host.number(path) {
        Some(value) if value == 2 => vec![finding(
            Severity::Warning,
            "net.core.bpf_jit_harden",
            format!("{value}"),
            write(path, "1"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_is_found() {
        let found = found(&CHECK, &[("proc/sys/net/core/bpf_jit_harden", "2")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "net.core.bpf_jit_harden")
        );
        assert!(found[0].evidence.contains("2"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(&CHECK, &[("proc/sys/net/core/bpf_jit_harden", "1")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
