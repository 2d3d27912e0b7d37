//! `default-qdisc`: new software devices get no queue.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "default-qdisc",
    title: "new software devices get no queue",
    consequence: "Each TAP and veth of a virtual machine gets a queueing discipline with a lock that nobody needs.",
    explanation: "net.core.default_qdisc applies to devices created later. On hosts of virtual machines noqueue on TAP devices saves the lock of pfifo_fast or fq_codel per packet. A router with shaping wants fq_codel instead.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/core/default_qdisc";
    let taps = host
        .devices()
        .into_iter()
        .filter(|name| host.exists(&format!("sys/class/net/{name}/tun_flags")))
        .count();
    match host.text(path) {
        Some(kind) if taps > 0 && kind != "noqueue" => {
            vec![finding(
                Severity::Advice,
                "net.core.default_qdisc",
                format!("{kind}, with {taps} TAP device(s)"),
                write(path, "noqueue"),
            )]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_with_a_queue_are_found() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/core/default_qdisc", "fq_codel"),
                ("sys/class/net/tap0/mtu", "1500"),
                ("sys/class/net/tap0/tun_flags", "0x1002"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "net.core.default_qdisc")
        );
        assert!(
            found[0].evidence.contains("fq_codel, with 1 TAP"),
            "{found:#?}"
        );
    }

    #[test]
    fn hosts_without_taps_are_fine() {
        let found = found(&CHECK, &[("proc/sys/net/core/default_qdisc", "fq_codel")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
