//! `softnet-dropped`: no packets were dropped between cores.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "softnet-dropped",
    title: "no packets were dropped between cores",
    consequence: "Packets were lost in the queue between NIC and stack; no interface counts them.",
    explanation: "The second column of /proc/net/softnet_stat counts packets for which the backlog of a core had no room. RPS, veth and loopback use it.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let text = host.text("proc/net/softnet_stat").unwrap_or_default();
    let dropped: u64 = text
        .lines()
        .filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok())
        .fold(0, u64::saturating_add);
    if dropped == 0 {
        return Vec::new();
    }
    vec![finding(
        Severity::Critical,
        "softnet",
        format!("{dropped} packets dropped since boot"),
        write("proc/sys/net/core/netdev_max_backlog", "16384"),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_found() {
        let found = found(
            &CHECK,
            &[(
                "proc/net/softnet_stat",
                "00000064 0000000a 00000000 0\n00000064 00000001 00000000 0\n",
            )],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Critical, "softnet")
        );
        assert!(found[0].evidence.contains("11 packets"), "{found:#?}");
    }

    #[test]
    fn none_is_fine() {
        let found = found(
            &CHECK,
            &[("proc/net/softnet_stat", "00000064 00000000 00000000 0\n")],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
