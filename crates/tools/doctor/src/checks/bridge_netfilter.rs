//! `bridge-netfilter`: bridged packets do not pass netfilter.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "bridge-netfilter",
    title: "bridged packets do not pass netfilter",
    consequence: "Each bridged packet runs through the hooks of IPv4 netfilter and connection tracking.",
    explanation: "The module br_netfilter sends bridged packets through the firewall of the host. Container tools load it. A switch between virtual machines rarely wants it.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/bridge/bridge-nf-call-iptables";
    match host.number(path) {
        Some(value) if value == 1 => vec![finding(
            Severity::Warning,
            "net.bridge.bridge-nf-call-iptables",
            format!("{value}"),
            write(path, "0"),
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
            &[("proc/sys/net/bridge/bridge-nf-call-iptables", "1")],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "net.bridge.bridge-nf-call-iptables")
        );
        assert!(found[0].evidence.contains("1"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(
            &CHECK,
            &[("proc/sys/net/bridge/bridge-nf-call-iptables", "0")],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
