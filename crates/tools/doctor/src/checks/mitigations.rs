//! `mitigations`: the cost of CPU mitigations is known.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "mitigations",
    title: "the cost of CPU mitigations is known",
    consequence: "System calls and indirect jumps cost more: a third of the rate of small packets in the Linux stack.",
    explanation: "Mitigations protect against code of other users on the same core. A dedicated router runs no foreign code; there mitigations=off is a choice to make with care. Polling workers make few system calls and lose little.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let base = "sys/devices/system/cpu/vulnerabilities";
    let names = host.names(base);
    let active: Vec<_> = names
        .into_iter()
        .filter(|name| {
            host.text(&format!("{base}/{name}"))
                .is_some_and(|text| text.starts_with("Mitigation"))
        })
        .collect();
    if active.len() < 3 {
        return Vec::new();
    }
    let how = "on a router that runs no foreign code, mitigations=off on the kernel command line removes them; undo by removing it";
    vec![finding(
        Severity::Advice,
        "kernel",
        format!("active: {}", active.join(", ")),
        manual(how),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_ones_are_listed() {
        let found = found(
            &CHECK,
            &[
                (
                    "sys/devices/system/cpu/vulnerabilities/meltdown",
                    "Mitigation: x",
                ),
                (
                    "sys/devices/system/cpu/vulnerabilities/spectre_v1",
                    "Mitigation: x",
                ),
                (
                    "sys/devices/system/cpu/vulnerabilities/spectre_v2",
                    "Mitigation: x",
                ),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "kernel")
        );
        assert!(
            found[0].evidence.contains("meltdown, spectre_v1"),
            "{found:#?}"
        );
    }

    #[test]
    fn none_is_fine() {
        let found = found(
            &CHECK,
            &[(
                "sys/devices/system/cpu/vulnerabilities/meltdown",
                "Not affected",
            )],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
