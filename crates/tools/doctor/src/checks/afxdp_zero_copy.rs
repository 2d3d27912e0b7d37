//! `afxdp-zero-copy`: drivers of NICs support AF_XDP without copies.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "afxdp-zero-copy",
    title: "drivers of NICs support AF_XDP without copies",
    consequence: "Each packet is copied between kernel and router: about half the rate of zero-copy.",
    explanation: "Zero-copy needs driver support: i40e, ice, ixgbe, igc, igb, mlx5_core, stmmac, ena (newer), virtio_net from Linux 6.11, gve, bnxt_en in part. Others work in copy mode.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    const DRIVERS: [&str; 13] = [
        "i40e",
        "ice",
        "ixgbe",
        "ixgbevf",
        "igc",
        "igb",
        "mlx5_core",
        "stmmac",
        "nfp",
        "idpf",
        "gve",
        "tsnep",
        "virtio_net",
    ];
    let mut all = Vec::new();
    for device in host.hardware() {
        let uevent = host
            .text(&format!("sys/class/net/{device}/device/uevent"))
            .unwrap_or_default();
        let Some(driver) = uevent.lines().find_map(|line| line.strip_prefix("DRIVER=")) else {
            continue;
        };
        let old = driver == "virtio_net" && host.kernel().is_some_and(|version| version < (6, 11));
        if !DRIVERS.contains(&driver) || old {
            let why = if old {
                "virtio_net before Linux 6.11"
            } else {
                driver
            };
            all.push(finding(Severity::Advice, &device, format!("driver {why}"), manual("copy mode works; for the full rate use a NIC of the drivers that --explain lists")));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_drivers_are_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=r8169\n"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "eth0")
        );
        assert!(found[0].evidence.contains("r8169"), "{found:#?}");
    }

    #[test]
    fn old_virtio_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=virtio_net"),
                ("proc/sys/kernel/osrelease", "6.1.0"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "eth0")
        );
        assert!(found[0].evidence.contains("6.11"), "{found:#?}");
    }

    #[test]
    fn known_drivers_are_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
