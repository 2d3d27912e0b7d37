//! `hugepages`: huge pages are set aside for packet memory.

use crate::prelude::*;

pub(crate) const CHECK: Check = Check {
    name: "hugepages",
    title: "huge pages are set aside for packet memory",
    consequence: "Packet memory lies on small pages: a TLB miss for nearly every packet.",
    explanation: "Weir takes 2 MiB pages when vm.nr_hugepages has set enough aside (64 MiB are 32 pages for 24,000 buffers). Set them at boot: later memory is fragmented.",
    run,
};

fn run(host: &Host) -> Vec<Finding> {
    let total = host.text("proc/meminfo").and_then(|text| {
        text.lines().find_map(|line| {
            line.strip_prefix("HugePages_Total:")?
                .trim()
                .parse::<u64>()
                .ok()
        })
    });
    match total {
        Some(0) => vec![finding(
            Severity::Warning,
            "vm.nr_hugepages",
            "0 pages".to_owned(),
            write("proc/sys/vm/nr_hugepages", "128"),
        )],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_found() {
        let found = found(
            &CHECK,
            &[(
                "proc/meminfo",
                "MemTotal: 1 kB\nHugePages_Total:       0\nHugePages_Free: 0\n",
            )],
        );
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            (found[0].severity, found[0].object.as_str()),
            (Severity::Warning, "vm.nr_hugepages")
        );
        assert!(found[0].evidence.contains("0 pages"), "{found:#?}");
    }

    #[test]
    fn some_are_fine() {
        let found = found(&CHECK, &[("proc/meminfo", "HugePages_Total:     512\n")]);
        assert!(found.is_empty(), "{found:#?}");
    }
}
