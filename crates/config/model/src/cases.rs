//! The cases under `tests/cases`: one file each, of two documents.
//!
//! The first says what is tested and which errors and warnings are expected, each with its line
//! and column *in the second document* (whose first line is line 1), path and message. The second
//! is the configuration. All findings are compared, so an error too many fails, too. Written
//! anew with `UPDATE_GOLDEN=1`, and then to be read by a person.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::check::CheckOptions;
use crate::diagnostic::{Diagnostic, Severity};
use crate::tree::{Limits, Node, read};

const SEPARATOR: &str = "\n---\n";

#[derive(Debug, PartialEq, Eq)]
struct Expected {
    severity: Severity,
    line: u32,
    column: u32,
    path: String,
    message: String,
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// The line of a first document that asks for the option.
const SKIP: &str = "\nskip-unsupported: true";

fn found(head: &str, candidate: &str) -> Vec<Diagnostic> {
    let options = CheckOptions {
        skip_unsupported: head.contains(SKIP),
        ..CheckOptions::new("case")
    };
    crate::check_with(&options, candidate.as_bytes())
        .map_or_else(|errors| errors, |checked| checked.warnings)
}

fn expected_of(header: &str) -> Vec<Expected> {
    let tree =
        read(header, &Limits::default()).unwrap_or_else(|error| panic!("{header}: {error:?}"));
    let list = |key: &str, severity| {
        tree.root
            .value(key)
            .map_or(&[][..], Node::items)
            .iter()
            .map(move |it| expectation(it, severity))
            .collect::<Vec<_>>()
    };
    let mut all = list("errors", Severity::Error);
    all.extend(list("warnings", Severity::Warning));
    all.sort_by_key(|it| (it.line, it.column, it.severity));
    all
}

fn expectation(node: &Node<'_>, severity: Severity) -> Expected {
    let text = |key: &str| {
        node.value(key)
            .and_then(Node::text)
            .unwrap_or_default()
            .to_owned()
    };
    let number = |key: &str| text(key).parse().unwrap();
    Expected {
        severity,
        line: number("line"),
        column: number("column"),
        path: text("path"),
        message: text("message"),
    }
}

fn header(test: &str, found: &[Diagnostic]) -> String {
    let mut header = format!("test: {test}\n");
    for (severity, key) in [(Severity::Error, "errors"), (Severity::Warning, "warnings")] {
        let of_this = || found.iter().filter(move |it| it.severity == severity);
        if of_this().next().is_some() {
            let _ = writeln!(header, "{key}:");
        }
        for Diagnostic {
            line,
            column,
            path,
            message,
            ..
        } in of_this()
        {
            let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
            let _ = writeln!(
                header,
                "  - {{line: {line}, column: {column}, path: {}, message: {}}}",
                quoted(path),
                quoted(message)
            );
        }
    }
    header.trim_end().to_owned()
}

#[test]
fn every_case_finds_exactly_what_it_expects() {
    let files = files();
    assert!(files.len() > 50, "{} cases", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let (head, candidate) = text
            .split_once(SEPARATOR)
            .unwrap_or_else(|| panic!("{name} has no second document"));
        let found = found(head, candidate);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let test = head
                .lines()
                .next()
                .and_then(|line| line.strip_prefix("test: "))
                .unwrap_or(&name);
            let test = if head.contains(SKIP) {
                format!("{test}{SKIP}")
            } else {
                test.to_owned()
            };
            std::fs::write(
                &file,
                format!("{}{SEPARATOR}{candidate}", header(&test, &found)),
            )
            .unwrap();
            continue;
        }
        let got: Vec<Expected> = found
            .iter()
            .map(|it| Expected {
                severity: it.severity,
                line: it.line,
                column: it.column,
                path: it.path.clone(),
                message: it.message.clone(),
            })
            .collect();
        assert_eq!(got, expected_of(head), "{name}");
        let errors = got.iter().any(|it| it.severity == Severity::Error);
        assert_eq!(
            errors,
            name.starts_with("error-"),
            "{name}: the name says how it ends"
        );
        assert!(
            found
                .iter()
                .all(|it| it.severity == Severity::Warning || !it.help.is_empty()),
            "{name}: an error without help"
        );
    }
}

#[test]
fn examples_are_good_and_nothing_is_odd_about_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        // Folders have files of another kind.
        .filter(|path| path.is_file())
        .collect();
    assert!(files.len() >= 7);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(found("", &text), [], "{}", file.display());
        assert!(
            text.starts_with("# "),
            "{} says what it is for",
            file.display()
        );
    }
}

#[test]
fn correct_cases_survive_being_written_and_read_again() {
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let Some((_, candidate)) = text.split_once(SEPARATOR) else {
            continue;
        };
        let Ok((config, warnings)) = crate::check("case", candidate) else {
            continue;
        };
        let written = serde_json::to_string_pretty(&config).unwrap();
        let again = crate::check("written", &written).unwrap();
        assert_eq!(again.0, config, "{}", file.display());
        // Keys without effect are not written, and nothing is said of them again.
        assert!(
            again
                .1
                .iter()
                .all(|it| warnings.iter().any(|first| first.message == it.message)),
            "{}",
            file.display()
        );
    }
}
