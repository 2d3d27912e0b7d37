//! `duplex`: links are full duplex.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "duplex",
    title: "links are full duplex",
    consequence: "Collisions: late packets, loss under load, half the rate.",
    explanation: "Half duplex on a modern link means that autonegotiation failed, usually because one side is set by hand.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    host.hardware()
        .into_iter()
        .filter(|name| {
            host.text(&format!("sys/class/net/{name}/duplex"))
                .as_deref()
                == Some("half")
        })
        .map(|name| {
            let change = program(
                format!("ethtool -s {name} autoneg on"),
                format!("ethtool -s {name} autoneg off duplex half"),
            );
            finding(Severity::Critical, &name, "half duplex".to_owned(), change)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_duplex_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/duplex", "half"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Critical, "eth0")
        );
        assert!(found[0].evidence.contains("half"), "{found:#?}");
    }

    #[test]
    fn full_duplex_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/duplex", "full"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
