//! Makes the change of a finding when it is asked for, and undoes it.
//!
//! What undoes a change is written to a file before the change is made, so that it survives a crash.
//! A change counts as made only when the value is read back.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::{Change, Finding, Host};

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum FixError {
    /// A person must do it.
    #[error("this cannot be done by the program: {0}")]
    Manual(String),
    /// A file refused.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The kernel took the value and has another one.
    #[error("{path}: wrote {wrote}, but it reads {reads}")]
    NotTaken {
        /// The file.
        path: PathBuf,
        /// What was written.
        wrote: String,
        /// What it says.
        reads: String,
    },
    /// A program failed.
    #[error("{command}: {message}")]
    Program {
        /// The command line.
        command: String,
        /// What it said.
        message: String,
    },
    /// The list of changes cannot be read.
    #[error("{path}: not a list of changes: {message}")]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The check's name.
    pub check: String,
    /// What had it.
    pub object: String,
    /// What was done.
    pub done: Change,
    /// What undoes it.
    pub undo: Change,
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> FixError {
    let path = path.to_owned();
    move |source| FixError::File { path, source }
}

/// The changes made so far, oldest first.
///
/// # Errors
/// When the file is there and cannot be read.
pub fn made(record: &Path) -> Result<Vec<Made>, FixError> {
    match std::fs::read(record) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| FixError::Record {
            path: record.to_owned(),
            message: error.to_string(),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(record)(error)),
    }
}

fn save(record: &Path, list: &[Made]) -> Result<(), FixError> {
    if let Some(folder) = record.parent() {
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
    }
    let text = serde_json::to_vec_pretty(list).map_err(|error| FixError::Record {
        path: record.to_owned(),
        message: error.to_string(),
    })?;
    let fresh = record.with_extension("new");
    std::fs::write(&fresh, text).map_err(failed(&fresh))?;
    std::fs::rename(&fresh, record).map_err(failed(record))
}

/// Makes the change of a finding and notes in `record` what undoes it.
///
/// # Errors
/// See [`FixError`]; then nothing is changed.
pub fn apply(host: &Host, check: &str, finding: &Finding, record: &Path) -> Result<Made, FixError> {
    let undo = match &finding.change {
        Change::Manual { how } => return Err(FixError::Manual(how.clone())),
        Change::Run { command, undo } => Change::Run {
            command: undo.clone(),
            undo: command.clone(),
        },
        Change::Write { path, .. } => {
            let at = host.path(path);
            let old = std::fs::read_to_string(&at).map_err(failed(&at))?;
            Change::Write {
                path: path.clone(),
                value: selected(old.trim()).to_owned(),
            }
        }
    };
    let done = Made {
        check: check.to_owned(),
        object: finding.object.clone(),
        done: finding.change.clone(),
        undo,
    };
    let before = made(record)?;
    let mut list = before.clone();
    list.push(done.clone());
    save(record, &list)?;
    if let Err(error) = perform(host, &done.done) {
        save(record, &before)?;
        return Err(error);
    }
    Ok(done)
}

/// Undoes the changes of a check (or all, without a name), newest first. Returns what was undone.
///
/// # Errors
/// At the first change that cannot be undone; it stays in the record.
pub fn undo(host: &Host, check: Option<&str>, record: &Path) -> Result<Vec<Made>, FixError> {
    let mut list = made(record)?;
    let mut undone = Vec::new();
    while let Some(at) = list
        .iter()
        .rposition(|entry| check.is_none_or(|check| entry.check == check))
    {
        let Some(entry) = list.get(at).cloned() else {
            break;
        };
        perform(host, &entry.undo)?;
        list.remove(at);
        save(record, &list)?;
        undone.push(entry);
    }
    Ok(undone)
}

/// Of a value as `always [madvise] never`, the one that is selected.
fn selected(text: &str) -> &str {
    text.split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .unwrap_or(text)
}

fn perform(host: &Host, change: &Change) -> Result<(), FixError> {
    match change {
        Change::Manual { how } => Err(FixError::Manual(how.clone())),
        Change::Write { path, value } => {
            let at = host.path(path);
            std::fs::write(&at, value).map_err(failed(&at))?;
            let reads = std::fs::read_to_string(&at).map_err(failed(&at))?;
            let reads = selected(reads.trim());
            // Masks are read back with leading zeros and commas.
            let plain = |text: &str| text.replace(',', "").trim_start_matches('0').to_owned();
            if reads == value || plain(reads) == plain(value) {
                Ok(())
            } else {
                Err(FixError::NotTaken {
                    path: at,
                    wrote: value.clone(),
                    reads: reads.to_owned(),
                })
            }
        }
        Change::Run { command, .. } => {
            let error = |message: String| FixError::Program {
                command: command.clone(),
                message,
            };
            if !host.is_running() {
                return Err(error("programs are not run for a recorded host".to_owned()));
            }
            let mut words = command.split_whitespace();
            let program = words.next().ok_or_else(|| error("empty".to_owned()))?;
            let path = format!(
                "{}:/usr/sbin:/sbin",
                std::env::var("PATH").unwrap_or_default()
            );
            let done = Command::new(program)
                .args(words)
                .env("PATH", path)
                .output()
                .map_err(|problem| error(problem.to_string()))?;
            if done.status.success() {
                Ok(())
            } else {
                Err(error(
                    String::from_utf8_lossy(&done.stderr).trim().to_owned(),
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examine;
    use crate::host::Recorded;

    #[test]
    fn a_change_is_made_and_undone() {
        let recorded = Recorded::new(&[("proc/sys/net/core/bpf_jit_enable", "0\n")]);
        let host = &recorded.host;
        let record = host.path("run/doctor.json");
        let found = examine(host, &["bpf-jit".to_owned()]);
        let made_now = apply(host, "bpf-jit", &found[0].finding, &record).unwrap();
        assert_eq!(host.number("proc/sys/net/core/bpf_jit_enable"), Some(1));
        assert!(examine(host, &["bpf-jit".to_owned()]).is_empty());
        assert_eq!(made(&record).unwrap(), [made_now]);
        assert_eq!(undo(host, Some("other"), &record).unwrap(), []);
        assert_eq!(undo(host, Some("bpf-jit"), &record).unwrap().len(), 1);
        assert_eq!(host.number("proc/sys/net/core/bpf_jit_enable"), Some(0));
        assert_eq!(made(&record).unwrap(), []);
    }

    #[test]
    fn what_fails_leaves_no_record() {
        let recorded = Recorded::new(&[]);
        let record = recorded.host.path("run/doctor.json");
        for change in [
            Change::Manual {
                how: "reboot".into(),
            },
            Change::Write {
                path: "proc/sys/missing".into(),
                value: "1".into(),
            },
            Change::Run {
                command: "true".into(),
                undo: "true".into(),
            },
        ] {
            let finding = Finding {
                severity: crate::Severity::Advice,
                object: "host".into(),
                evidence: String::new(),
                change,
            };
            assert!(apply(&recorded.host, "x", &finding, &record).is_err());
            assert_eq!(made(&record).unwrap(), []);
        }
    }

    #[test]
    fn the_selected_word_is_the_old_value() {
        assert_eq!(selected("always [madvise] never"), "madvise");
        assert_eq!(selected("pfifo_fast"), "pfifo_fast");
    }
}
