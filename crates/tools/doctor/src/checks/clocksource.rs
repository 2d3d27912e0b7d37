//! `clocksource`: time comes from the processor.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "clocksource",
    title: "time comes from the processor",
    consequence: "Each time stamp costs a microsecond or a trip to the hypervisor.",
    explanation: "tsc is read in 20 to 40 clocks. hpet and acpi_pm take a microsecond, and the kernel uses them after it has found the TSC unstable. kvm-clock and hyperv are fine in virtual machines.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let base = "sys/devices/system/clocksource/clocksource0";
    let now = host
        .text(&format!("{base}/current_clocksource"))
        .unwrap_or_default();
    let better = host
        .text(&format!("{base}/available_clocksource"))
        .is_some_and(|all| all.split_whitespace().any(|word| word == "tsc"));
    match now.as_str() {
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" => {
            let change = if better {
                write(&format!("{base}/current_clocksource"), "tsc")
            } else {
                manual("find out with dmesg why the kernel distrusts the TSC")
            };
            vec![finding(Severity::Warning, "clocksource", now, change)]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hpet_is_found() {
        let found = found(
            &CHECK,
            &[(
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "hpet",
            )],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "clocksource")
        );
        assert!(found[0].evidence.contains("hpet"), "{found:#?}");
    }

    #[test]
    fn tsc_is_fine() {
        let found = found(
            &CHECK,
            &[(
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "tsc",
            )],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
