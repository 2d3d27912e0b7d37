//! `softnet-squeezed`: softirqs finish their work.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "softnet-squeezed",
    title: "softirqs finish their work",
    consequence: "Packets wait for the next round: latency, and full rings.",
    explanation: "The third column of /proc/net/softnet_stat counts rounds that ended because of netdev_budget or its time. More than one in a thousand packets is much.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let text = host.text("proc/net/softnet_stat").unwrap_or_default();
    let sum = |column: usize| {
        text.lines()
            .filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(column)?, 16).ok())
            .fold(0, u64::saturating_add)
    };
    let (processed, squeezed) = (sum(0), sum(2));
    if squeezed <= 10 || squeezed.saturating_mul(1000) <= processed {
        return Vec::new();
    }
    vec![finding(
        Severity::Warning,
        "softnet",
        format!("{squeezed} squeezed rounds for {processed} packets"),
        write("proc/sys/net/core/netdev_budget", "600"),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squeezes_are_found() {
        let found = found(
            &CHECK,
            &[("proc/net/softnet_stat", "00000064 00000000 00000014 0\n")],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "softnet")
        );
        assert!(found[0].evidence.contains("20 squeezed"), "{found:#?}");
    }

    #[test]
    fn few_are_fine() {
        let found = found(
            &CHECK,
            &[("proc/net/softnet_stat", "000fffff 00000000 00000014 0\n")],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
