//! `receive-buffer`: sockets may have receive buffers of 4 MiB.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "receive-buffer",
    title: "sockets may have receive buffers of 4 MiB",
    consequence: "Netlink messages about routes and sFlow datagrams are lost in bursts.",
    explanation: "Routing daemons and collectors ask for large receive buffers and get at most net.core.rmem_max. A full BGP table is hundreds of megabytes of netlink messages.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/core/rmem_max";
    match host.number(path) {
        Some(value) if value < 4_194_304 => vec![finding(
            Severity::Advice,
            "net.core.rmem_max",
            format!("{value}"),
            write(path, "8388608"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_is_found() {
        let found = found(&CHECK, &[("proc/sys/net/core/rmem_max", "212992")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "net.core.rmem_max")
        );
        assert!(found[0].evidence.contains("212992"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(&CHECK, &[("proc/sys/net/core/rmem_max", "8388608")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
