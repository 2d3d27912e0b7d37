//! `arp-table`: the neighbor table is large enough for a router.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "arp-table",
    title: "the neighbor table is large enough for a router",
    consequence: "New neighbors are refused and packets to them dropped when the table is full.",
    explanation: "gc_thresh3 is the hard limit of IPv4 neighbors. A router with some /22 networks needs more than the default of 1024.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/ipv4/neigh/default/gc_thresh3";
    match host.number(path) {
        Some(value) if value < 4096 && host.is_router() => vec![finding(
            Severity::Warning,
            "net.ipv4.neigh.default.gc_thresh3",
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
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/ipv4/neigh/default/gc_thresh3", "1024"),
                ("proc/sys/net/ipv4/ip_forward", "1"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "net.ipv4.neigh.default.gc_thresh3")
        );
        assert!(found[0].evidence.contains("1024"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/ipv4/neigh/default/gc_thresh3", "16384"),
                ("proc/sys/net/ipv4/ip_forward", "1"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
