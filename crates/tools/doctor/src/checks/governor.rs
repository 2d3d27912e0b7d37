//! `governor`: cores run at full frequency.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "governor",
    title: "cores run at full frequency",
    consequence: "Cores are slow when a burst begins, and measurements vary from run to run.",
    explanation: "The frequency governor performance keeps the frequency high. powersave and schedutil react too late for microbursts. Virtual machines have no governor.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let base = "sys/devices/system/cpu";
    let path = |cpu: &str| format!("{base}/{cpu}/cpufreq/scaling_governor");
    let slow = host.names(base).into_iter().find(|cpu| {
        host.text(&path(cpu))
            .is_some_and(|governor| governor != "performance")
    });
    slow.map(|cpu| {
        let governor = host.text(&path(&cpu)).unwrap_or_default();
        finding(
            Severity::Warning,
            &cpu,
            format!("governor {governor}"),
            write(&path(&cpu), "performance"),
        )
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powersave_is_found() {
        let found = found(
            &CHECK,
            &[(
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "powersave",
            )],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "cpu0")
        );
        assert!(found[0].evidence.contains("powersave"), "{found:#?}");
    }

    #[test]
    fn performance_is_fine() {
        let found = found(
            &CHECK,
            &[(
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "performance",
            )],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
