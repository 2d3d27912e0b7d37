//! `load`: the host has idle cores.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "load",
    title: "the host has idle cores",
    consequence: "Packet processing competes with other work for the cores.",
    explanation: "The load average counts tasks that run or want to. A polling worker counts as one. More tasks than cores means that somebody waits.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let load = host
        .text("proc/loadavg")
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<f64>().ok());
    match load {
        Some(load) if load > host.processors() as f64 => {
            vec![finding(
                Severity::Warning,
                "host",
                format!(
                    "load {load} over five minutes on {} core(s)",
                    host.processors()
                ),
                manual("move other work away, or pin it to other cores"),
            )]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/devices/system/cpu/online", "0-3"),
                ("proc/loadavg", "6.00 5.10 4.00 3/200 999"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "host")
        );
        assert!(found[0].evidence.contains("load 5.1"), "{found:#?}");
    }

    #[test]
    fn an_idle_host_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/devices/system/cpu/online", "0-3"),
                ("proc/loadavg", "0.50 0.40 0.30 1/200 999"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
