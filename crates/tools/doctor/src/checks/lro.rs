//! `lro`: large receive offload is off.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "lro",
    title: "large receive offload is off",
    consequence: "Packets are merged beyond the MTU and cannot be forwarded; XDP does not attach.",
    explanation: "LRO merges packets in the NIC without keeping their boundaries. Hosts like it, routers and XDP must not have it. Linux switches it off itself when it forwards, but not for AF_XDP.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let bad = |device: &String| host.feature(device, "large-receive-offload") == Some(true);
    host.hardware()
        .into_iter()
        .filter(bad)
        .map(|device| {
            let change = program(
                format!("ethtool -K {device} large-receive-offload off"),
                format!("ethtool -K {device} large-receive-offload on"),
            );
            finding(
                Severity::Critical,
                &device,
                "large-receive-offload is on".to_owned(),
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
                ("commands/ethtool -k eth0", "large-receive-offload: on\n"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Critical, "eth0")
        );
        assert!(found[0].evidence.contains("is on"), "{found:#?}");
    }

    #[test]
    fn the_right_state_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("commands/ethtool -k eth0", "large-receive-offload: off\n"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
