//! `ip-forward`: a host with several NICs forwards.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "ip-forward",
    title: "a host with several NICs forwards",
    consequence: "Linux drops every packet for somebody else. Weir over AF_XDP forwards regardless.",
    explanation: "A host that is to be a Linux router needs net.ipv4.ip_forward = 1. Weir forwards by itself and does not need it; then leave it off.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/ipv4/ip_forward";
    match host.number(path) {
        Some(value) if value == 0 && host.hardware().len() > 1 => vec![finding(
            Severity::Advice,
            "net.ipv4.ip_forward",
            format!("{value}"),
            write(path, "1"),
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
                ("proc/sys/net/ipv4/ip_forward", "0"),
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth1/mtu", "1500"),
                ("sys/class/net/eth1/device/uevent", ""),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "net.ipv4.ip_forward")
        );
        assert!(found[0].evidence.contains("0"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/ipv4/ip_forward", "1"),
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth1/mtu", "1500"),
                ("sys/class/net/eth1/device/uevent", ""),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
