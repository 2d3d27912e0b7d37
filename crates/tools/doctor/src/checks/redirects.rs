//! `redirects`: a router sends no ICMP redirects.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "redirects",
    title: "a router sends no ICMP redirects",
    consequence: "Hosts get redirects for each packet that leaves through the port it came in on, which costs CPU and confuses hosts.",
    explanation: "Redirects help hosts with two routers on one network. On routers between networks they are noise and can be abused.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/net/ipv4/conf/all/send_redirects";
    match host.number(path) {
        Some(value) if value == 1 && host.is_router() => vec![finding(
            Severity::Advice,
            "net.ipv4.conf.all.send_redirects",
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
                ("proc/sys/net/ipv4/conf/all/send_redirects", "1"),
                ("proc/sys/net/ipv4/ip_forward", "1"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "net.ipv4.conf.all.send_redirects")
        );
        assert!(found[0].evidence.contains("1"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/ipv4/conf/all/send_redirects", "0"),
                ("proc/sys/net/ipv4/ip_forward", "1"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
