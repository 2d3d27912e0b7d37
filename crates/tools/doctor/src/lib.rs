//! The doctor: reads a host and says what hurts packet forwarding, worst first, with evidence, the
//! consequence, and the change that removes it.
//!
//! A check is a file in `checks/` with a constant [`Check`] and tests over recorded files. Checks only
//! read. [`fix`] makes a change when it is asked for by name, and remembers what undoes it.

#![forbid(unsafe_code)]

mod checks;
pub mod fix;
mod host;

use serde::{Deserialize, Serialize};

pub use checks::ALL;
pub use host::Host;

/// How much a finding hurts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Advice,
    /// Costs throughput or latency.
    Warning,
    /// Loses packets, or stops them.
    Critical,
}

/// A change that can be made and undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Writes a value into a file of `/proc` or `/sys`; the old value undoes it.
    Write {
        /// The file, without leading slash.
        path: String,
        /// The value.
        value: String,
    },
    /// Runs a program; the second command line undoes it.
    Run {
        /// The command line.
        command: String,
        /// The command line that undoes it.
        undo: String,
    },
    /// Something that a person must do: a boot parameter, a setting of the firmware.
    Manual {
        /// What.
        how: String,
    },
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How much it hurts.
    pub severity: Severity,
    /// What has it: a device, a setting, `host`.
    pub object: String,
    /// What was read.
    pub evidence: String,
    /// The change that removes it.
    pub change: Change,
}

/// A check.
#[derive(Clone, Copy)]
pub struct Check {
    /// Its name, as `--explain` and `--fix` take it.
    pub name: &'static str,
    /// What is checked, in a few words.
    pub title: &'static str,
    /// What happens when it is not right.
    pub consequence: &'static str,
    /// Background: why it matters, when it does not.
    pub explanation: &'static str,
    /// Reads the host. Nothing found: an empty list.
    pub run: fn(&Host) -> Vec<Finding>,
}

/// A finding with its check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// The check's name.
    pub check: &'static str,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
    /// What happens because of it.
    pub consequence: &'static str,
}

/// Runs all checks (or those named in `only`), worst findings first.
#[must_use]
pub fn examine(host: &Host, only: &[String]) -> Vec<Diagnosis> {
    let wanted = |check: &&Check| only.is_empty() || only.iter().any(|name| name == check.name);
    let mut all: Vec<Diagnosis> = ALL
        .iter()
        .filter(wanted)
        .flat_map(|check| {
            (check.run)(host).into_iter().map(|finding| Diagnosis {
                check: check.name,
                finding,
                consequence: check.consequence,
            })
        })
        .collect();
    all.sort_by_key(|diagnosis| std::cmp::Reverse(diagnosis.finding.severity));
    all
}

/// The check of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Check> {
    ALL.iter().find(|check| check.name == name)
}

/// What check files use.
mod prelude {
    pub(crate) use crate::host::{Host, cpus, mask_is_set};
    pub(crate) use crate::{Change, Check, Finding, Severity};

    pub(crate) fn finding(
        severity: Severity,
        object: &str,
        evidence: String,
        change: Change,
    ) -> Finding {
        Finding {
            severity,
            object: object.to_owned(),
            evidence,
            change,
        }
    }

    /// Writes a value.
    pub(crate) fn write(path: &str, value: &str) -> Change {
        Change::Write {
            path: path.to_owned(),
            value: value.to_owned(),
        }
    }

    pub(crate) fn program(command: String, undo: String) -> Change {
        Change::Run { command, undo }
    }

    pub(crate) fn manual(how: &str) -> Change {
        Change::Manual {
            how: how.to_owned(),
        }
    }

    /// Runs a check over recorded files.
    #[cfg(test)]
    pub(crate) fn found(check: &Check, files: &[(&str, &str)]) -> Vec<Finding> {
        (check.run)(&crate::host::Recorded::new(files).host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Recorded;

    #[test]
    fn there_are_forty_checks_with_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.len() >= 40, "{}", ALL.len());
        for check in ALL {
            assert!(
                check
                    .name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                "{}",
                check.name
            );
            assert!(
                check.explanation.len() > 60 && check.consequence.ends_with('.'),
                "{}",
                check.name
            );
        }
    }

    #[test]
    fn worst_findings_come_first() {
        let recorded = Recorded::new(&[
            ("proc/sys/net/core/bpf_jit_enable", "0"),
            ("proc/sys/kernel/nmi_watchdog", "1"),
            ("proc/net/softnet_stat", "00000064 00000009 00000000 0\n"),
        ]);
        let found = examine(&recorded.host, &[]);
        let severities: Vec<_> = found
            .iter()
            .map(|diagnosis| diagnosis.finding.severity)
            .collect();
        assert!(
            severities.is_sorted_by(|a, b| a >= b) && found.len() >= 3,
            "{found:#?}"
        );
        assert_eq!(examine(&recorded.host, &["bpf-jit".to_owned()]).len(), 1);
    }

    /// An empty host and one with garbage in every file give no panic.
    #[test]
    fn hostile_files_do_no_harm() {
        assert!(examine(&Recorded::new(&[]).host, &[]).len() < 5);
        let garbage = [
            "proc/stat",
            "proc/net/softnet_stat",
            "proc/interrupts",
            "proc/meminfo",
            "proc/cmdline",
            "proc/loadavg",
            "proc/net/route",
            "sys/class/net/eth0/mtu",
            "sys/class/net/eth0/device/x",
            "sys/class/net/eth0/queues/rx-0/rps_cpus",
            "commands/ethtool -g eth0",
            "commands/ethtool -l eth0",
            "commands/ethtool -k eth0",
            "commands/tc -j qdisc show",
            "commands/ip -j -d link show",
        ];
        for text in [
            "",
            "\u{0}\u{1}\u{fffd}:::,,,--- 99999999999999999999",
            "[{}]",
            "[[[[",
            "{\"a\":1}",
        ] {
            let files: Vec<_> = garbage.iter().map(|path| (*path, text)).collect();
            let _ = examine(&Recorded::new(&files).host, &[]);
        }
    }
}
