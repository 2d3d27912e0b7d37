//! `carrier`: devices that are up have a link.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "carrier",
    title: "devices that are up have a link",
    consequence: "Packets routed to the device are dropped.",
    explanation: "A device that is administratively up without carrier has no cable, no peer, or the wrong module. Routes over it stay in the table.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let up = |name: &String| {
        host.text(&format!("sys/class/net/{name}/flags"))
            .and_then(|text| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok())
            .is_some_and(|flags| flags & 1 == 1)
    };
    let down = |name: &String| host.number(&format!("sys/class/net/{name}/carrier")) == Some(0);
    host.hardware()
        .into_iter()
        .filter(|name| up(name) && down(name))
        .map(|name| {
            finding(
                Severity::Warning,
                &name,
                "up, without carrier".to_owned(),
                manual("check cable, module and peer"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_carrier_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/flags", "0x1003"),
                ("sys/class/net/eth0/carrier", "0"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(found[0].evidence.contains("without carrier"), "{found:#?}");
    }

    #[test]
    fn a_link_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/flags", "0x1003"),
                ("sys/class/net/eth0/carrier", "1"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
