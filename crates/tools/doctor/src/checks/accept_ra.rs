//! `accept-ra`: a router ignores router advertisements.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "accept-ra",
    title: "a router ignores router advertisements",
    consequence: "A stray advertisement can change addresses and the default route.",
    explanation: "Linux ignores advertisements when forwarding is on and accept_ra is 1, but a change of forwarding re-enables them. 0 says what is meant.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/ipv6/conf/all/accept_ra";
    match host.number(path) {
        Some(value) if value == 1 && host.is_router() => vec![finding(
            Severity::Advice,
            "net.ipv6.conf.all.accept_ra",
            format!("{value}"),
            write(path, "0"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_is_found() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/ipv6/conf/all/accept_ra", "1"),
                ("proc/sys/net/ipv4/ip_forward", "1"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "net.ipv6.conf.all.accept_ra")
        );
        assert!(found[0].evidence.contains("1"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/ipv6/conf/all/accept_ra", "0"),
                ("proc/sys/net/ipv4/ip_forward", "1"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
