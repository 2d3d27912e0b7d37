//! `conntrack`: a router does not track connections.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "conntrack",
    title: "a router does not track connections",
    consequence: "Each packet of Linux forwarding costs a hash lookup with locks; a full table drops new flows.",
    explanation: "Connection tracking is active when its counters exist and a rule needs it. A router without NAT and stateful rules should not load it. Packets of AF_XDP do not pass it.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    match host.number("proc/sys/net/netfilter/nf_conntrack_count") {
        Some(count) if host.is_router() && count > 0 => {
            let how = "remove rules that need connection state, or exclude forwarded traffic: nft add rule ... notrack";
            vec![finding(
                Severity::Warning,
                "nf_conntrack",
                format!("{count} connections are tracked"),
                manual(how),
            )]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracking_router_is_found() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/ipv4/ip_forward", "1"),
                ("proc/sys/net/netfilter/nf_conntrack_count", "900"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "nf_conntrack")
        );
        assert!(found[0].evidence.contains("900"), "{found:#?}");
    }

    #[test]
    fn an_empty_table_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/ipv4/ip_forward", "1"),
                ("proc/sys/net/netfilter/nf_conntrack_count", "0"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
