//! `mtu-mismatch`: all ports of a bridge have one MTU.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "mtu-mismatch",
    title: "all ports of a bridge have one MTU",
    consequence: "Large packets are dropped at the port with the smaller MTU, without an ICMP error.",
    explanation: "A bridge does not fragment. Its own MTU is the smallest of its ports unless it was set by hand.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let mut all = Vec::new();
    for bridge in host.devices() {
        let ports = host.names(&format!("sys/class/net/{bridge}/brif"));
        let mtu = |port: &String| {
            Some((
                host.number(&format!("sys/class/net/{port}/mtu"))?,
                port.clone(),
            ))
        };
        let mut sizes: Vec<_> = ports.iter().filter_map(mtu).collect();
        sizes.sort();
        if let (Some((least, port)), Some((most, other))) = (sizes.first(), sizes.last())
            && least < most
        {
            let change = program(
                format!("ip link set {port} mtu {most}"),
                format!("ip link set {port} mtu {least}"),
            );
            all.push(finding(
                Severity::Warning,
                &bridge,
                format!("{port} has {least}, {other} has {most}"),
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
    fn different_mtus_are_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/br0/mtu", "1500"),
                ("sys/class/net/br0/brif/a/x", ""),
                ("sys/class/net/br0/brif/b/x", ""),
                ("sys/class/net/a/mtu", "1500"),
                ("sys/class/net/b/mtu", "9000"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "br0")
        );
        assert!(
            found[0].evidence.contains("a has 1500, b has 9000"),
            "{found:#?}"
        );
    }

    #[test]
    fn equal_mtus_are_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/br0/mtu", "1500"),
                ("sys/class/net/br0/brif/a/x", ""),
                ("sys/class/net/br0/brif/b/x", ""),
                ("sys/class/net/a/mtu", "1500"),
                ("sys/class/net/b/mtu", "1500"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
