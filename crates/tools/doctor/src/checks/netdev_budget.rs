//! `netdev-budget`: a softirq may process 300 packets.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "netdev-budget",
    title: "a softirq may process 300 packets",
    consequence: "Softirq rounds end early and leave packets waiting, seen as time_squeeze.",
    explanation: "netdev_budget bounds the packets of one softirq round over all devices. Values below the default of 300 cost throughput.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/core/netdev_budget";
    match host.number(path) {
        Some(value) if value < 300 => vec![finding(
            Severity::Advice,
            "net.core.netdev_budget",
            format!("{value}"),
            write(path, "600"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_is_found() {
        let found = found(&CHECK, &[("proc/sys/net/core/netdev_budget", "64")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "net.core.netdev_budget")
        );
        assert!(found[0].evidence.contains("64"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(&CHECK, &[("proc/sys/net/core/netdev_budget", "300")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
