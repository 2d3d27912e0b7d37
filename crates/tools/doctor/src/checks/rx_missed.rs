//! `rx-missed`: receive rings did not overflow.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "rx-missed",
    title: "receive rings did not overflow",
    consequence: "Packets were lost because no core fetched them in time.",
    explanation: "rx_missed counts frames that arrived while the ring was full: the core was too slow or away. Longer rings, more queues or isolated cores help.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let errors = |name: &String| {
        host.number(&format!("sys/class/net/{name}/statistics/rx_missed_errors"))
            .filter(|count| *count > 0)
    };
    host.hardware()
        .into_iter()
        .filter_map(|name| Some((errors(&name)?, name)))
        .map(|(count, name)| {
            finding(
                Severity::Warning,
                &name,
                format!("rx_missed_errors {count}"),
                manual("see ring-size, queue-count and isolated-cores"),
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
                ("sys/class/net/eth0/statistics/rx_missed_errors", "12"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(
            found[0].evidence.contains("rx_missed_errors 12"),
            "{found:#?}"
        );
    }

    #[test]
    fn none_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/statistics/rx_missed_errors", "0"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
