//! `receive-hashing`: the NIC hashes received packets.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "receive-hashing",
    title: "the NIC hashes received packets",
    consequence: "All packets arrive on one queue, or the kernel computes hashes itself.",
    explanation: "Receive hashing (RSS) selects the queue by addresses and ports. Without it one core handles everything.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let bad = |device: &String| host.feature(device, "receive-hashing") == Some(false);
    if host.processors() < 2 {
        return Vec::new();
    }
    host.hardware()
        .into_iter()
        .filter(bad)
        .map(|device| {
            let change = program(
                format!("ethtool -K {device} receive-hashing on"),
                format!("ethtool -K {device} receive-hashing off"),
            );
            finding(
                Severity::Warning,
                &device,
                "receive-hashing is off".to_owned(),
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
                ("sys/devices/system/cpu/online", "0-3"),
                ("commands/ethtool -k eth0", "receive-hashing: off\n"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
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
                ("sys/devices/system/cpu/online", "0-3"),
                ("commands/ethtool -k eth0", "receive-hashing: on\n"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
