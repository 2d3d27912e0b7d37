//! `crc-errors`: frames arrive undamaged.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "crc-errors",
    title: "frames arrive undamaged",
    consequence: "Damaged frames are dropped by the NIC.",
    explanation: "CRC errors come from cables, modules, dirty fibres and failing ports. A healthy link has none.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let errors = |name: &String| {
        host.number(&format!("sys/class/net/{name}/statistics/rx_crc_errors"))
            .filter(|count| *count > 0)
    };
    host.hardware()
        .into_iter()
        .filter_map(|name| Some((errors(&name)?, name)))
        .map(|(count, name)| {
            finding(
                Severity::Critical,
                &name,
                format!("rx_crc_errors {count}"),
                manual("clean or replace cable and modules"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/statistics/rx_crc_errors", "12"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Critical, "eth0")
        );
        assert!(found[0].evidence.contains("rx_crc_errors 12"), "{found:#?}");
    }

    #[test]
    fn none_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/statistics/rx_crc_errors", "0"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
