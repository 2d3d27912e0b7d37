//! `management-device`: the device of the default route is not given to a router.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "management-device",
    title: "the device of the default route is not given to a router",
    consequence: "A router that opens the device by AF_XDP takes SSH connections with it.",
    explanation: "Weir takes all frames of a device that it opens. The device with the default route usually carries the management connections. Keep one device for them, or use a TAP pair.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let text = host.text("proc/net/route").unwrap_or_default();
    let default = text.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace();
        let device = words.next()?;
        (words.next()? == "00000000").then(|| device.to_owned())
    });
    match default {
        Some(device) if host.hardware() == [device.clone()] => {
            let evidence = "the only NIC, and the default route leaves by it".to_owned();
            vec![finding(
                Severity::Warning,
                &device,
                evidence,
                manual(
                    "add a second NIC for forwarding; never give this one to weir run or weir lab",
                ),
            )]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_only_nic_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                (
                    "proc/net/route",
                    "Iface	Destination	Gateway\neth0	00000000	0101A8C0\n",
                ),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(found[0].evidence.contains("only NIC"), "{found:#?}");
    }

    #[test]
    fn two_nics_are_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth1/mtu", "1500"),
                ("sys/class/net/eth1/device/uevent", ""),
                ("proc/net/route", "Iface	Destination\neth0	00000000	0\n"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
