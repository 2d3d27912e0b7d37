//! `rps-single-queue`: a NIC with one queue uses RPS.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "rps-single-queue",
    title: "a NIC with one queue uses RPS",
    consequence: "One core handles all packets of the device in the Linux stack while the others idle.",
    explanation: "When the hardware has one receive queue, RPS distributes packets over cores in software. AF_XDP and XDP do not use it: then one core is the limit of the device.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let mut all = Vec::new();
    let processors = host.processors();
    for device in host.hardware() {
        let path = format!("sys/class/net/{device}/queues/rx-0/rps_cpus");
        let off = host.text(&path).is_some_and(|mask| !mask_is_set(&mask));
        if processors > 1 && host.queues(&device, "rx").len() == 1 && off {
            let mask = format!("{:x}", (1_u128 << processors.min(64)) - 1);
            all.push(finding(
                Severity::Advice,
                &device,
                format!("1 receive queue, {processors} cores, RPS off"),
                write(&path, &mask),
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_queue_without_rps_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/devices/system/cpu/online", "0-3"),
                ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "eth0")
        );
        assert!(
            found[0].evidence.contains("1 receive queue, 4 cores"),
            "{found:#?}"
        );
    }

    #[test]
    fn rps_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/devices/system/cpu/online", "0-3"),
                ("sys/class/net/eth0/queues/rx-0/rps_cpus", "f"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
