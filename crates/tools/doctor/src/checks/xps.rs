//! `xps`: transmit queues are assigned to cores.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "xps",
    title: "transmit queues are assigned to cores",
    consequence: "Cores share transmit queues and wait for each other at their locks.",
    explanation: "XPS says which core uses which transmit queue. Most drivers set it; after a change of the queue count it may be empty.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let mut all = Vec::new();
    for device in host.hardware() {
        let queues = host.queues(&device, "tx");
        let empty = |queue: &String| {
            host.text(&format!("sys/class/net/{device}/queues/{queue}/xps_cpus"))
                .is_some_and(|mask| !mask_is_set(&mask))
        };
        let count = queues.iter().filter(|queue| empty(queue)).count();
        if queues.len() > 1 && count == queues.len() {
            let path = format!("sys/class/net/{device}/queues/tx-0/xps_cpus");
            all.push(finding(
                Severity::Advice,
                &device,
                format!("{count} transmit queues without a core"),
                write(&path, "1"),
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_without_cores_are_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/queues/tx-0/xps_cpus", "0"),
                ("sys/class/net/eth0/queues/tx-1/xps_cpus", "0"),
                ("sys/class/net/eth0/queues/tx-2/xps_cpus", "0"),
                ("sys/class/net/eth0/queues/tx-3/xps_cpus", "0"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "eth0")
        );
        assert!(
            found[0].evidence.contains("4 transmit queues"),
            "{found:#?}"
        );
    }

    #[test]
    fn assigned_queues_are_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/queues/tx-0/xps_cpus", "1"),
                ("sys/class/net/eth0/queues/tx-1/xps_cpus", "1"),
                ("sys/class/net/eth0/queues/tx-2/xps_cpus", "1"),
                ("sys/class/net/eth0/queues/tx-3/xps_cpus", "1"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
