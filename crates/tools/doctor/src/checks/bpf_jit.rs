//! `bpf-jit`: the compiler for BPF programs is on.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "bpf-jit",
    title: "the compiler for BPF programs is on",
    consequence: "Every XDP and tc program is interpreted, several times slower.",
    explanation: "The kernel compiles BPF programs to machine code when net.core.bpf_jit_enable is 1. Kernels built with BPF_JIT_ALWAYS_ON have no other choice.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/core/bpf_jit_enable";
    match host.number(path) {
        Some(value) if value == 0 => vec![finding(
            Severity::Critical,
            "net.core.bpf_jit_enable",
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
        let found = found(&CHECK, &[("proc/sys/net/core/bpf_jit_enable", "0")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Critical, "net.core.bpf_jit_enable")
        );
        assert!(found[0].evidence.contains("0"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(&CHECK, &[("proc/sys/net/core/bpf_jit_enable", "1")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
