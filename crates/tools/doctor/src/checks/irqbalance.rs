//! `irqbalance`: no daemon moves interrupts of packet cores.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "irqbalance",
    title: "no daemon moves interrupts of packet cores",
    consequence: "Interrupts move between cores while traffic runs, and settings of affinity are undone.",
    explanation: "irqbalance reassigns interrupts every ten seconds. It knows nothing of polling workers. Exclude the cores (IRQBALANCE_BANNED_CPULIST) or stop it.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let found = host.names("proc").into_iter().find(|name| {
        name.starts_with(|c: char| c.is_ascii_digit())
            && host.text(&format!("proc/{name}/comm")).as_deref() == Some("irqbalance")
    });
    found
        .map(|pid| {
            finding(
                Severity::Warning,
                "irqbalance",
                format!("process {pid}"),
                program(
                    "systemctl stop irqbalance".to_owned(),
                    "systemctl start irqbalance".to_owned(),
                ),
            )
        })
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_daemon_is_found() {
        let found = found(&CHECK, &[("proc/77/comm", "irqbalance")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "irqbalance")
        );
        assert!(found[0].evidence.contains("process 77"), "{found:#?}");
    }

    #[test]
    fn other_daemons_are_fine() {
        let found = found(&CHECK, &[("proc/77/comm", "sshd")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
