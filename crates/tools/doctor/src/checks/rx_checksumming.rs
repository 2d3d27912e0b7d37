//! `rx-checksumming`: the NIC checks checksums.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "rx-checksumming",
    title: "the NIC checks checksums",
    consequence: "The kernel computes the checksum of each packet that it terminates.",
    explanation: "Checksum verification costs the NIC nothing. It is on by default and is found off after failed experiments.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let bad = |device: &String| host.feature(device, "rx-checksumming") == Some(false);
    host.hardware()
        .into_iter()
        .filter(bad)
        .map(|device| {
            let change = program(
                format!("ethtool -K {device} rx-checksumming on"),
                format!("ethtool -K {device} rx-checksumming off"),
            );
            finding(
                Severity::Advice,
                &device,
                "rx-checksumming is off".to_owned(),
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
                ("commands/ethtool -k eth0", "rx-checksumming: off\n"),
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
                ("commands/ethtool -k eth0", "rx-checksumming: on\n"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
