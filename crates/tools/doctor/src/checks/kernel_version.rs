//! `kernel-version`: the kernel has what AF_XDP needs.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "kernel-version",
    title: "the kernel has what AF_XDP needs",
    consequence: "Frames beyond one page are dropped, or sockets do not open.",
    explanation: "AF_XDP works from Linux 5.11 without locked memory limits, frames in several pieces from 6.6. Debian 12 has 6.1, Debian 13 has 6.12.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    match host.kernel() {
        Some(version) if version < (6, 6) => {
            let severity = if version < (5, 11) {
                Severity::Warning
            } else {
                Severity::Advice
            };
            vec![finding(
                severity,
                "kernel",
                format!("Linux {}.{}", version.0, version.1),
                manual("jumbo frames over AF_XDP need Linux 6.6 or newer"),
            )]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_are_found() {
        let found = found(&CHECK, &[("proc/sys/kernel/osrelease", "6.1.0-13-amd64")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "kernel")
        );
        assert!(found[0].evidence.contains("6.1"), "{found:#?}");
    }

    #[test]
    fn new_ones_are_fine() {
        let found = found(&CHECK, &[("proc/sys/kernel/osrelease", "6.18.4")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
