//! From the text of a file to a `Config`, or to everything that is wrong with it.
//!
//! Three passes, in one run: the tree against the key table (`walk.rs`), typed values (`build.rs`),
//! and what keys say about each other (`semantics`). Only a text that is no tree at all, because
//! of its syntax or size, ends with a single error.

use crate::build::build;
use crate::diagnostic::{Diagnostic, Place, Source};
use crate::findings::{Findings, Remark};
use crate::model::Config;
use crate::tree::{FormError, Limits, read};
use crate::{semantics, walk};

/// Check the text of a configuration file. `file_name` is only for messages.
///
/// # Errors
/// All errors of the file, in its order, and warnings among them. Without errors, the warnings
/// come with the configuration.
pub fn check(file_name: &str, text: &str) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    check_with_limits(file_name, text, &Limits::default())
}

/// Check a file as it was read, which may not be text at all.
///
/// # Errors
/// As `check`; one error when the bytes are not UTF-8.
pub fn check_bytes(file_name: &str, bytes: &[u8]) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    let limits = Limits::default();
    // A file that is too large is refused before it is looked at.
    let bytes = bytes.get(..limits.bytes.saturating_add(1)).unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => check_with_limits(file_name, text, &limits),
        Err(_) if bytes.len() > limits.bytes => {
            let message = format!("the file has more than the {} bytes that are read", limits.bytes);
            Err(refuse(file_name, "", not_text(Place::START, message)))
        }
        Err(error) => {
            let good = bytes.get(..error.valid_up_to()).and_then(|good| std::str::from_utf8(good).ok()).unwrap_or("");
            let line = good.matches('\n').count().saturating_add(1);
            let column = good.rsplit('\n').next().unwrap_or("").chars().count().saturating_add(1);
            let place = Place { line: u32::try_from(line).unwrap_or(1), column: u32::try_from(column).unwrap_or(1), width: 1 };
            Err(refuse(file_name, good, not_text(place, "this byte is not UTF-8 text".into())))
        }
    }
}

fn not_text(place: Place, message: String) -> FormError {
    FormError {
        place,
        path: String::new(),
        message,
        label: "",
        help: "a configuration is plain text in UTF-8; is this the right file?".into(),
    }
}

/// Check a text under other bounds than the usual ones.
///
/// # Errors
/// As `check`.
pub fn check_with_limits(file_name: &str, text: &str, limits: &Limits) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    // A byte order mark is no part of the text, also when columns are counted.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let tree = read(text, limits).map_err(|error| refuse(file_name, text, error))?;
    let mut findings = Findings::new(Source::new(file_name, text));
    for duplicate in tree.duplicates {
        report(&mut findings, duplicate);
    }
    walk::walk(&tree.root, &mut findings);
    let candidate = build(&tree.root);
    if !findings.is_full() {
        semantics::check(&tree.root, &candidate, &mut findings);
    }
    let warnings = findings.finish()?;
    Ok((candidate.finish(), warnings))
}

fn refuse(file_name: &str, text: &str, error: FormError) -> Vec<Diagnostic> {
    let mut findings = Findings::new(Source::new(file_name, text));
    report(&mut findings, error);
    findings.finish().err().unwrap_or_default()
}

fn report(findings: &mut Findings<'_>, error: FormError) {
    let FormError { place, path, message, label, help } = error;
    findings.error_at(place, path, Remark::new(message, label, help));
}
