//! `nohz-full`: tickless cores have their RCU work elsewhere.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "nohz-full",
    title: "tickless cores have their RCU work elsewhere",
    consequence: "Callbacks of the kernel run on the cores that should be undisturbed.",
    explanation: "nohz_full cores stop their tick only when rcu_nocbs moves RCU callbacks away. Newer kernels imply it for the same cores.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let line = host.text("proc/cmdline").unwrap_or_default();
    if line.contains("nohz_full=") && !line.contains("rcu_nocbs") {
        return vec![finding(
            Severity::Advice,
            "kernel command line",
            "nohz_full without rcu_nocbs".to_owned(),
            manual("add rcu_nocbs= with the same cores to the kernel command line"),
        )];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rcu_nocbs_is_found() {
        let found = found(&CHECK, &[("proc/cmdline", "nohz_full=2-3")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "kernel command line")
        );
        assert!(
            found[0].evidence.contains("without rcu_nocbs"),
            "{found:#?}"
        );
    }

    #[test]
    fn both_are_fine() {
        let found = found(&CHECK, &[("proc/cmdline", "nohz_full=2-3 rcu_nocbs=2-3")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
