//! `rp-filter`: strict reverse path filtering is off on routers.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "rp-filter",
    title: "strict reverse path filtering is off on routers",
    consequence: "Packets that take another path back are dropped without a counter that anybody watches.",
    explanation: "Strict mode (1) drops a packet unless the route back to its source leaves by the interface it came from. Routers with several uplinks have asymmetric paths; loose mode (2) fits them.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    if !host.is_router() {
        return Vec::new();
    }
    let names = host
        .names("proc/sys/net/ipv4/conf")
        .into_iter()
        .filter(|name| !matches!(name.as_str(), "default" | "lo"));
    let strict = names
        .filter(|name| host.number(&format!("proc/sys/net/ipv4/conf/{name}/rp_filter")) == Some(1));
    strict
        .map(|name| {
            let path = format!("proc/sys/net/ipv4/conf/{name}/rp_filter");
            finding(
                Severity::Warning,
                &name,
                "rp_filter is 1 (strict)".to_owned(),
                write(&path, "2"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_mode_is_found() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/ipv4/ip_forward", "1"),
                ("proc/sys/net/ipv4/conf/eth0/rp_filter", "1"),
                ("proc/sys/net/ipv4/conf/eth1/rp_filter", "2"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(found[0].evidence.contains("strict"), "{found:#?}");
    }

    #[test]
    fn hosts_may_be_strict() {
        let found = found(&CHECK, &[("proc/sys/net/ipv4/conf/eth0/rp_filter", "1")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
