//! `ring-size`: receive rings are as long as the hardware allows.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "ring-size",
    title: "receive rings are as long as the hardware allows",
    consequence: "Bursts overflow the ring while the core is busy: rx_missed grows.",
    explanation: "ethtool -g shows ring sizes. A longer ring holds longer bursts at the price of cache misses. Routers of mixed traffic do well with 1024 to 4096.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let mut all = Vec::new();
    for device in host.hardware() {
        let Some(text) = host.command(&format!("ethtool -g {device}")) else {
            continue;
        };
        let numbers: Vec<u64> = text
            .lines()
            .filter_map(|line| line.strip_prefix("RX:")?.trim().parse().ok())
            .collect();
        if let [most, now] = numbers[..]
            && now < most.min(1024)
        {
            let change = program(
                format!("ethtool -G {device} rx {}", most.min(4096)),
                format!("ethtool -G {device} rx {now}"),
            );
            all.push(finding(
                Severity::Warning,
                &device,
                format!("receive ring {now} of {most}"),
                change,
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_ring_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                (
                    "commands/ethtool -g eth0",
                    "Pre-set maximums:\nRX:		4096\nCurrent hardware settings:\nRX:		256\n",
                ),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(found[0].evidence.contains("256 of 4096"), "{found:#?}");
    }

    #[test]
    fn a_long_ring_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("commands/ethtool -g eth0", "RX:	4096\nRX:	2048\n"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
