//! `isolated-cores`: cores of workers are kept free of other work.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "isolated-cores",
    title: "cores of workers are kept free of other work",
    consequence: "Other processes and kernel threads interrupt polling workers for milliseconds.",
    explanation: "isolcpus (or cpusets) keep the scheduler from using cores, nohz_full stops their timer tick. With more than two cores it is worth it for polling workers.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let line = host.text("proc/cmdline").unwrap_or_default();
    let isolated = host
        .text("sys/devices/system/cpu/isolated")
        .is_some_and(|text| !text.is_empty());
    if host.processors() > 2 && !isolated && !line.contains("isolcpus=") && !line.is_empty() {
        let how = "add isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 (with the numbers of the worker cores) to the kernel command line";
        return vec![finding(
            Severity::Advice,
            "kernel command line",
            format!("no isolated core of {}", host.processors()),
            manual(how),
        )];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_found() {
        let found = found(
            &CHECK,
            &[
                ("sys/devices/system/cpu/online", "0-3"),
                ("proc/cmdline", "root=/dev/sda1 quiet"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "kernel command line")
        );
        assert!(
            found[0].evidence.contains("no isolated core of 4"),
            "{found:#?}"
        );
    }

    #[test]
    fn isolated_cores_are_fine() {
        let found = found(
            &CHECK,
            &[
                ("sys/devices/system/cpu/online", "0-3"),
                ("proc/cmdline", "isolcpus=2-3"),
            ],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
