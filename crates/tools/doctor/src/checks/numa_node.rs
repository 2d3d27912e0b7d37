//! `numa-node`: interrupts are handled on the NUMA node of the device.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "numa-node",
    title: "interrupts are handled on the NUMA node of the device",
    consequence: "Each packet crosses the link between processors, which costs 100 ns and bandwidth.",
    explanation: "A PCI device belongs to a NUMA node. Its interrupts, workers and packet memory should be there.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let mut all = Vec::new();
    for device in host.hardware() {
        let Some(node) = host
            .number(&format!("sys/class/net/{device}/device/numa_node"))
            .filter(|node| *node >= 0)
        else {
            continue;
        };
        let Some(local) = host.text(&format!("sys/devices/system/node/node{node}/cpulist")) else {
            continue;
        };
        let near = cpus(&local);
        let numbers = host.names(&format!("sys/class/net/{device}/device/msi_irqs"));
        let far = numbers.iter().find_map(|number| {
            let list = host.text(&format!("proc/irq/{number}/smp_affinity_list"))?;
            (!cpus(&list).iter().any(|core| near.contains(core))).then_some((number, list))
        });
        if let Some((number, list)) = far {
            let change = write(&format!("proc/irq/{number}/smp_affinity_list"), &local);
            all.push(finding(
                Severity::Warning,
                &device,
                format!("device on node {node} ({local}), interrupt {number} on {list}"),
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
    fn a_far_interrupt_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/device/numa_node", "1"),
                ("sys/class/net/eth0/device/msi_irqs/30", "msi"),
                ("sys/devices/system/node/node1/cpulist", "8-15"),
                ("proc/irq/30/smp_affinity_list", "0-3"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "eth0")
        );
        assert!(
            found[0]
                .evidence
                .contains("node 1 (8-15), interrupt 30 on 0-3"),
            "{found:#?}"
        );
    }

    #[test]
    fn a_near_interrupt_is_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/class/net/eth0/mtu", "1500"),
                ("sys/class/net/eth0/device/uevent", "DRIVER=ice\n"),
                ("sys/class/net/eth0/device/numa_node", "0"),
                ("sys/class/net/eth0/device/msi_irqs/30", "msi"),
                ("sys/devices/system/node/node0/cpulist", "0-7"),
                ("proc/irq/30/smp_affinity_list", "0-3"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
