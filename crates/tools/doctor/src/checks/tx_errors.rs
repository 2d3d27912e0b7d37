//! `tx-errors`: frames leave without errors.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "tx-errors",
    title: "frames leave without errors",
    consequence: "Packets were accepted for sending and lost.",
    explanation: "Transmit errors are rare: a link that flaps, a driver that fails, a frame longer than the hardware takes.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let errors = |name: &String| {
        host.number(&format!("sys/class/net/{name}/statistics/tx_errors"))
            .filter(|count| *count > 0)
    };
    host.hardware()
        .into_iter()
        .filter_map(|name| Some((errors(&name)?, name)))
        .map(|(count, name)| {
            finding(
                Severity::Warning,
                &name,
                format!("tx_errors {count}"),
                manual("look for link changes and resets in dmesg"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/statistics/tx_errors", "12"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(found[0].evidence.contains("tx_errors 12"), "{found:#?}");
    }

    #[test]
    fn none_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/statistics/tx_errors", "0"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
