//! `queue-count`: a NIC uses as many queues as the host has cores.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "queue-count",
    title: "a NIC uses as many queues as the host has cores",
    consequence: "Some cores never receive packets from the device.",
    explanation: "ethtool -l shows how many channels the device can have and has. Fewer than cores limits RSS. For AF_XDP one queue a worker is enough.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let mut all = Vec::new();
    for device in host.hardware() {
        let Some(text) = host.command(&format!("ethtool -l {device}")) else {
            continue;
        };
        let numbers: Vec<usize> = text
            .lines()
            .filter_map(|line| line.strip_prefix("Combined:")?.trim().parse().ok())
            .collect();
        if let [most, now] = numbers[..]
            && now < most.min(host.processors())
        {
            let wanted = most.min(host.processors());
            let change = program(
                format!("ethtool -L {device} combined {wanted}"),
                format!("ethtool -L {device} combined {now}"),
            );
            all.push(finding(
                Severity::Warning,
                &device,
                format!("{now} of {most} channels, {} cores", host.processors()),
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
    fn too_few_channels_are_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/devices/system/cpu/online", "0-3"),
                (
                    "commands/ethtool -l eth0",
                    "Channel parameters for eth0:\nPre-set maximums:\nCombined:	8\nCurrent hardware settings:\nCombined:	1\n",
                ),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(
            found[0].evidence.contains("1 of 8 channels, 4 cores"),
            "{found:#?}"
        );
    }

    #[test]
    fn enough_channels_are_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/devices/system/cpu/online", "0-3"),
                ("commands/ethtool -l eth0", "Combined:	8\nCombined:	4\n"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
