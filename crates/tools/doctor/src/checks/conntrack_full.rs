//! `conntrack-full`: the table of connections has room.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "conntrack-full",
    title: "the table of connections has room",
    consequence: "New connections are dropped, with one line in the kernel log.",
    explanation: "nf_conntrack_max bounds the table. A scan or an attack fills it.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let base = "proc/sys/net/netfilter";
    match (
        host.number(&format!("{base}/nf_conntrack_count")),
        host.number(&format!("{base}/nf_conntrack_max")),
    ) {
        (Some(count), Some(most))
            if most > 0 && count.saturating_mul(10) > most.saturating_mul(8) =>
        {
            let change = write(
                &format!("{base}/nf_conntrack_max"),
                &most.saturating_mul(4).to_string(),
            );
            vec![finding(
                Severity::Critical,
                "nf_conntrack",
                format!("{count} of {most} entries"),
                change,
            )]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_is_found() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/netfilter/nf_conntrack_count", "950"),
                ("proc/sys/net/netfilter/nf_conntrack_max", "1000"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Critical, "nf_conntrack")
        );
        assert!(found[0].evidence.contains("950 of 1000"), "{found:#?}");
    }

    #[test]
    fn room_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("proc/sys/net/netfilter/nf_conntrack_count", "9"),
                ("proc/sys/net/netfilter/nf_conntrack_max", "1000"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
