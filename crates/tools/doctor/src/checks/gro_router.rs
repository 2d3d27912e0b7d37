//! `gro-router`: a Linux router merges packets of a flow.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "gro-router",
    title: "a Linux router merges packets of a flow",
    consequence: "Each packet passes the whole Linux stack alone, at about three times the cost for bulk TCP.",
    explanation: "GRO merges packets of a flow and splits them again when they leave, without changing them. Linux routers gain throughput from it. AF_XDP and XDP bypass it.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let bad = |device: &String| host.feature(device, "generic-receive-offload") == Some(false);
    if !host.is_router() {
        return Vec::new();
    }
    host.hardware()
        .into_iter()
        .filter(bad)
        .map(|device| {
            let change = program(
                format!("ethtool -K {device} generic-receive-offload on"),
                format!("ethtool -K {device} generic-receive-offload off"),
            );
            finding(
                Severity::Advice,
                &device,
                "generic-receive-offload is off".to_owned(),
                change,
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrong_state_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("proc/sys/net/ipv4/ip_forward", "1"),
                ("commands/ethtool -k eth0", "generic-receive-offload: off\n"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "eth0")
        );
        assert!(found[0].evidence.contains("is off"), "{found:#?}");
    }

    #[test]
    fn the_right_state_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("proc/sys/net/ipv4/ip_forward", "1"),
                ("commands/ethtool -k eth0", "generic-receive-offload: on\n"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
