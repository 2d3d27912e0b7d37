//! `hugepages-free`: some huge pages are free.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "hugepages-free",
    title: "some huge pages are free",
    consequence: "The next program that wants huge pages falls back to small ones.",
    explanation: "All pages that vm.nr_hugepages has set aside are in use. A restart of the router frees its own before it takes new ones; a second instance finds none.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let text = host.text("proc/meminfo").unwrap_or_default();
    let value = |name: &str| {
        text.lines().find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(':')?
                .trim()
                .parse::<u64>()
                .ok()
        })
    };
    match (value("HugePages_Total"), value("HugePages_Free")) {
        (Some(total @ 1..), Some(0)) => {
            let change = write(
                "proc/sys/vm/nr_hugepages",
                &(total.saturating_mul(2)).to_string(),
            );
            vec![finding(
                Severity::Advice,
                "vm.nr_hugepages",
                format!("all {total} pages are in use"),
                change,
            )]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_in_use_is_found() {
        let found = found(
            &CHECK,
            &[("proc/meminfo", "HugePages_Total: 64\nHugePages_Free: 0\n")],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Advice, "vm.nr_hugepages")
        );
        assert!(found[0].evidence.contains("all 64"), "{found:#?}");
    }

    #[test]
    fn free_ones_are_fine() {
        let found = found(
            &CHECK,
            &[("proc/meminfo", "HugePages_Total: 64\nHugePages_Free: 3\n")],
        );
        assert!(found.is_empty(), "{found:#?}");
    }
}
