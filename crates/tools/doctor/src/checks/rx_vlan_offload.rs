//! `rx-vlan-offload`: VLAN tags stay in received packets.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "rx-vlan-offload",
    title: "VLAN tags stay in received packets",
    consequence: "XDP programs and AF_XDP sockets see packets without their VLAN tag, and cannot tell networks apart.",
    explanation: "With rx-vlan-offload the NIC moves the tag into the descriptor, where BPF programs of most drivers cannot read it. It matters when tagged packets are received by XDP or AF_XDP.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let bad = |device: &String| host.feature(device, "rx-vlan-offload") == Some(true);
    host.hardware()
        .into_iter()
        .filter(bad)
        .map(|device| {
            let change = program(
                format!("ethtool -K {device} rx-vlan-offload off"),
                format!("ethtool -K {device} rx-vlan-offload on"),
            );
            finding(
                Severity::Warning,
                &device,
                "rx-vlan-offload is on".to_owned(),
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
                ("commands/ethtool -k eth0", "rx-vlan-offload: on\n"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
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
                ("commands/ethtool -k eth0", "rx-vlan-offload: off\n"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
