//! `swappiness`: swapping is a last resort.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "swappiness",
    title: "swapping is a last resort",
    consequence: "Control plane memory may be swapped out in favour of file cache, which delays routing.",
    explanation: "A router keeps tables in memory that are touched rarely and then urgently. A low value keeps them there. Without swap space the setting has no effect.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "proc/sys/vm/swappiness";
    match host.number(path) {
        Some(value) if value > 10 => vec![finding(
            Severity::Advice,
            "vm.swappiness",
            format!("{value}"),
            write(path, "10"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_is_found() {
        let found = found(&CHECK, &[("proc/sys/vm/swappiness", "60")]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "vm.swappiness")
        );
        assert!(found[0].evidence.contains("60"), "{found:#?}");
    }

    #[test]
    fn a_good_value_is_fine() {
        let found = found(&CHECK, &[("proc/sys/vm/swappiness", "10")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
