//! `deep-sleep`: cores do not sleep deeply.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "deep-sleep",
    title: "cores do not sleep deeply",
    consequence: "The first packet after a pause waits until the core is awake, up to some 100 µs.",
    explanation: "C-states with an exit latency above 50 µs save power and cost latency. Polling workers never sleep; interrupt-driven ones do.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let base = "sys/devices/system/cpu/cpu0/cpuidle";
    let deep = host.names(base).into_iter().filter_map(|state| {
        let latency = host.number(&format!("{base}/{state}/latency"))?;
        let enabled = host.number(&format!("{base}/{state}/disable"))? == 0;
        (latency > 50 && enabled).then_some((state, latency))
    });
    deep.max_by_key(|(_, latency)| *latency)
        .map(|(state, latency)| {
            finding(
                Severity::Advice,
                "cpu0",
                format!("{state} needs {latency} µs to wake up"),
                write(&format!("{base}/{state}/disable"), "1"),
            )
        })
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_state_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/devices/system/cpu/cpu0/cpuidle/state3/latency", "133"),
                ("sys/devices/system/cpu/cpu0/cpuidle/state3/disable", "0"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "cpu0")
        );
        assert!(found[0].evidence.contains("133"), "{found:#?}");
    }

    #[test]
    fn a_disabled_state_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/devices/system/cpu/cpu0/cpuidle/state3/latency", "133"),
                ("sys/devices/system/cpu/cpu0/cpuidle/state3/disable", "1"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
