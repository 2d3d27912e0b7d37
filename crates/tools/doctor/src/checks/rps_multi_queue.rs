//! `rps-multi-queue`: RPS is off where the hardware distributes.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "rps-multi-queue",
    title: "RPS is off where the hardware distributes",
    consequence: "Packets are moved to another core a second time, with an interrupt between cores each.",
    explanation: "A NIC with as many receive queues as cores distributes by itself (RSS). RPS on top costs an inter-processor interrupt and a cold cache per batch. It helps NICs with one queue.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let mut all = Vec::new();
    for device in host.hardware() {
        let queues = host.queues(&device, "rx");
        if queues.len() < 2 || queues.len() < host.processors() {
            continue;
        }
        for queue in queues {
            let path = format!("sys/class/net/{device}/queues/{queue}/rps_cpus");
            if let Some(mask) = host.text(&path).filter(|mask| mask_is_set(mask)) {
                all.push(finding(
                    Severity::Warning,
                    &device,
                    format!("{queue} has rps_cpus {mask}"),
                    write(&path, "0"),
                ));
                break;
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rps_beside_rss_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/devices/system/cpu/online", "0-3"),
                ("sys/class/net/eth0/queues/rx-0/rps_cpus", "f"),
                ("sys/class/net/eth0/queues/rx-1/rps_cpus", "f"),
                ("sys/class/net/eth0/queues/rx-2/rps_cpus", "f"),
                ("sys/class/net/eth0/queues/rx-3/rps_cpus", "f"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(
            found[0].evidence.contains("rx-0 has rps_cpus f"),
            "{found:#?}"
        );
    }

    #[test]
    fn rss_alone_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/devices/system/cpu/online", "0-3"),
                ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0"),
                ("sys/class/net/eth0/queues/rx-1/rps_cpus", "0"),
                ("sys/class/net/eth0/queues/rx-2/rps_cpus", "0"),
                ("sys/class/net/eth0/queues/rx-3/rps_cpus", "0"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
