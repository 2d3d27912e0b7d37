//! `transparent-hugepages`: transparent huge pages are used where a program wants them.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "transparent-hugepages",
    title: "transparent huge pages are used where a program wants them",
    consequence: "The kernel compacts memory in the background, which stalls cores for milliseconds.",
    explanation: "With always, every program gets huge pages and khugepaged works for all of them. With madvise, those that ask get them, as Weir does.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    match host.text(path) {
        Some(text) if !text.contains("[madvise]") => vec![finding(
            Severity::Advice,
            "transparent_hugepage",
            text,
            write(path, "madvise"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn always_is_found() {
        let found = found(
            &CHECK,
            &[(
                "sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never",
            )],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "transparent_hugepage")
        );
        assert!(found[0].evidence.contains("[always]"), "{found:#?}");
    }

    #[test]
    fn madvise_is_fine() {
        let found = found(
            &CHECK,
            &[(
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never",
            )],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
