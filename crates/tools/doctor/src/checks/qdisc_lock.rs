//! `qdisc-lock`: queueing disciplines of multi-queue devices have no common lock.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "qdisc-lock",
    title: "queueing disciplines of multi-queue devices have no common lock",
    consequence: "All cores wait for one lock to send through the device.",
    explanation: "A device with several transmit queues should have mq (or noqueue) as its root. A single fq_codel, pfifo or htb at the root serializes all cores. pfifo_fast under mq is lock-free.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let Some(rows) = host
        .command("tc -j qdisc show")
        .and_then(|text| serde_json::from_str::<Vec<serde_json::Value>>(&text).ok())
    else {
        return Vec::new();
    };
    let word = |row: &serde_json::Value, key: &str| {
        row.get(key)
            .and_then(|value| value.as_str())
            .unwrap_or_default()
            .to_owned()
    };
    rows.iter()
        .filter(|row| row.get("root").and_then(serde_json::Value::as_bool) == Some(true))
        .map(|row| (word(row, "dev"), word(row, "kind")))
        .filter(|(device, kind)| {
            host.queues(device, "tx").len() > 1
                && !matches!(kind.as_str(), "mq" | "mqprio" | "noqueue")
        })
        .map(|(device, kind)| {
            let evidence = format!(
                "root is {kind} over {} transmit queues",
                host.queues(&device, "tx").len()
            );
            let change = program(
                format!("tc qdisc replace dev {device} root mq"),
                format!("tc qdisc replace dev {device} root {kind}"),
            );
            finding(Severity::Warning, &device, evidence, change)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lock_for_all_queues_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/queues/tx-0/xps_cpus", "0"),
                ("sys/class/net/eth0/queues/tx-1/xps_cpus", "0"),
                ("sys/class/net/eth0/queues/tx-2/xps_cpus", "0"),
                ("sys/class/net/eth0/queues/tx-3/xps_cpus", "0"),
                (
                    "commands/tc -j qdisc show",
                    "[{\"kind\":\"fq_codel\",\"dev\":\"eth0\",\"root\":true}]",
                ),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(found[0].evidence.contains("fq_codel over 4"), "{found:#?}");
    }

    #[test]
    fn mq_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/queues/tx-0/xps_cpus", "0"),
                ("sys/class/net/eth0/queues/tx-1/xps_cpus", "0"),
                ("sys/class/net/eth0/queues/tx-2/xps_cpus", "0"),
                ("sys/class/net/eth0/queues/tx-3/xps_cpus", "0"),
                (
                    "commands/tc -j qdisc show",
                    "[{\"kind\":\"mq\",\"dev\":\"eth0\",\"root\":true},{\"kind\":\"fq_codel\",\"dev\":\"eth0\",\"parent\":\":1\"}]",
                ),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
