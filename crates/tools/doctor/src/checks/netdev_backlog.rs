//! `netdev-backlog`: the backlog of RPS and veth is long enough.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "netdev-backlog",
    title: "the backlog of RPS and veth is long enough",
    consequence: "Bursts overflow the queue between cores and are dropped, counted in softnet_stat only.",
    explanation: "Packets that RPS moves to another core, and packets on veth and loopback, wait in a queue of this length. The default of 1000 holds less than a millisecond of traffic at 1 Mpps.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/core/netdev_max_backlog";
    match host.number(path) {
        Some(value) if value < 10_000 => vec![finding(
            Severity::Advice,
            "net.core.netdev_max_backlog",
            format!("{value}"),
            write(path, "16384"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_is_found() {
        let found = found(&CHECK, &[("proc/sys/net/core/netdev_max_backlog", "1000")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "net.core.netdev_max_backlog")
        );
        assert!(found[0].evidence.contains("1000"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(&CHECK, &[("proc/sys/net/core/netdev_max_backlog", "16384")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
