//! `irq-affinity`: the interrupts of a NIC are spread over cores.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "irq-affinity",
    title: "the interrupts of a NIC are spread over cores",
    consequence: "One core takes the interrupts of all queues while the others idle.",
    explanation: "Each queue has an interrupt, and /proc/irq/N/smp_affinity_list says which core handles it. With all of them on one core RSS is useless.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let Some(text) = host.text("proc/interrupts") else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for device in host.hardware() {
        let mine = text.lines().filter(|line| {
            line.split_whitespace().any(|word| {
                word.starts_with(&device)
                    && (word.len() == device.len()
                        || !word[device.len()..].starts_with(|c: char| c.is_ascii_digit()))
            })
        });
        let numbers: Vec<u32> = mine
            .filter_map(|line| line.split(':').next()?.trim().parse().ok())
            .collect();
        let cores: std::collections::BTreeSet<_> = numbers
            .iter()
            .filter_map(|number| host.text(&format!("proc/irq/{number}/smp_affinity_list")))
            .collect();
        let single = cores
            .iter()
            .next()
            .filter(|core| cores.len() == 1 && cpus(core).len() == 1);
        if let (Some(core), Some(number)) = (single, numbers.get(1))
            && host.processors() > 1
        {
            let change = write(
                &format!("proc/irq/{number}/smp_affinity_list"),
                if core == "0" { "1" } else { "0" },
            );
            all.push(finding(
                Severity::Warning,
                &device,
                format!("{} interrupts, all on core {core}", numbers.len()),
                change,
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_on_one_core_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/devices/system/cpu/online", "0-3"),
                (
                    "proc/interrupts",
                    "  24: 1 2 PCI-MSI eth0-rx-0\n  25: 1 2 PCI-MSI eth0-rx-1\n",
                ),
                ("proc/irq/24/smp_affinity_list", "0"),
                ("proc/irq/25/smp_affinity_list", "0"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(
            found[0].evidence.contains("2 interrupts, all on core 0"),
            "{found:#?}"
        );
    }

    #[test]
    fn spread_interrupts_are_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/devices/system/cpu/online", "0-3"),
                (
                    "proc/interrupts",
                    "  24: 1 2 PCI-MSI eth0-rx-0\n  25: 1 2 PCI-MSI eth0-rx-1\n",
                ),
                ("proc/irq/24/smp_affinity_list", "0"),
                ("proc/irq/25/smp_affinity_list", "1"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
