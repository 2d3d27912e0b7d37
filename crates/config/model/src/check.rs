//! From the text of a file to a `Config`, or to everything that is wrong with it.
//!
//! Three passes, in one run: the tree against the key table (`walk.rs`), typed values (`build.rs`),
//! and what keys say about each other (`semantics`). Only a text that is no tree at all, because
//! of its syntax or size, ends with a single error.

use crate::build::build;
use crate::diagnostic::{Diagnostic, Place, Source};
use crate::dump::to_yaml;
use crate::findings::{Findings, Remark};
use crate::model::Config;
use crate::tree::{FormError, Limits, read};
use crate::{semantics, synonyms, walk};

/// How a file is checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckOptions {
    /// The name of the file, for messages only.
    pub file_name: String,
    /// Whether keys that vppcfg has and this version lacks are left out with a warning; they are
    /// errors otherwise.
    pub skip_unsupported: bool,
    /// Bounds on what is read.
    pub limits: Limits,
}

impl CheckOptions {
    /// The usual bounds, and nothing left out.
    #[must_use]
    pub fn new(file_name: impl Into<String>) -> Self {
        Self {
            file_name: file_name.into(),
            ..Self::default()
        }
    }
}

/// A good file: what it means, what is odd about it, and its text, in which later findings have
/// their places.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What the file means.
    pub config: Config,
    /// What is odd about it.
    pub warnings: Vec<Diagnostic>,
    /// The name of the file, for messages only.
    pub(crate) file_name: String,
    /// The text of the file.
    pub text: String,
}

impl Checked {
    /// A configuration that comes from no file: its places are those of `to_yaml`.
    #[must_use]
    pub fn of(name: impl Into<String>, config: &Config) -> Self {
        Self {
            config: config.clone(),
            warnings: Vec::new(),
            file_name: name.into(),
            text: to_yaml(config),
        }
    }
}

/// Check the text of a configuration file. `file_name` is only for messages.
///
/// # Errors
/// All errors of the file, in its order, and warnings among them. Without errors, the warnings
/// come with the configuration.
pub fn check(file_name: &str, text: &str) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    check_bytes(file_name, text.as_bytes())
}

/// Check a file as it was read, which may not be text at all.
///
/// # Errors
/// As `check`; one error when the bytes are not UTF-8.
pub fn check_bytes(
    file_name: &str,
    bytes: &[u8],
) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    check_with(&CheckOptions::new(file_name), bytes)
        .map(|checked| (checked.config, checked.warnings))
}

/// Check a file as it was read, with options.
///
/// # Errors
/// As `check_bytes`.
pub fn check_with(options: &CheckOptions, bytes: &[u8]) -> Result<Checked, Vec<Diagnostic>> {
    let (file_name, limits) = (options.file_name.as_str(), &options.limits);
    // A file that is too large is refused before it is looked at.
    if bytes.len() > limits.bytes {
        let message = format!(
            "the file has {} bytes, more than the {} that are read",
            bytes.len(),
            limits.bytes
        );
        return Err(refuse(file_name, "", not_text(Place::START, message)));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => check_text(options, text),
        Err(error) => {
            let good = bytes
                .get(..error.valid_up_to())
                .and_then(|good| std::str::from_utf8(good).ok())
                .unwrap_or("");
            let line = good.matches('\n').count().saturating_add(1);
            let column = good
                .rsplit('\n')
                .next()
                .unwrap_or("")
                .chars()
                .count()
                .saturating_add(1);
            let place = Place {
                line: u32::try_from(line).unwrap_or(1),
                column: u32::try_from(column).unwrap_or(1),
                width: 1,
            };
            Err(refuse(
                file_name,
                good,
                not_text(place, "this byte is not UTF-8 text".into()),
            ))
        }
    }
}

fn not_text(place: Place, message: String) -> FormError {
    FormError {
        place,
        path: String::new(),
        message,
        label: "",
        help: "a configuration is plain text in UTF-8, of a few megabytes at most; is this the right file?".into(),
    }
}

fn check_text(options: &CheckOptions, text: &str) -> Result<Checked, Vec<Diagnostic>> {
    let file_name = options.file_name.as_str();
    // A byte order mark is no part of the text, also when columns are counted.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut tree = read(text, &options.limits).map_err(|error| refuse(file_name, text, error))?;
    synonyms::rename(&mut tree.root);
    let mut findings =
        Findings::new(Source::new(file_name, text)).skipping_unsupported(options.skip_unsupported);
    for duplicate in tree.duplicates {
        report(&mut findings, duplicate);
    }
    walk::walk(&tree.root, &mut findings);
    let candidate = build(&tree.root);
    if !findings.is_full() {
        semantics::check(&tree.root, &candidate, &mut findings);
    }
    let warnings = findings.finish()?;
    Ok(Checked {
        config: candidate.finish(),
        warnings,
        file_name: options.file_name.clone(),
        text: text.to_owned(),
    })
}

fn refuse(file_name: &str, text: &str, error: FormError) -> Vec<Diagnostic> {
    let mut findings = Findings::new(Source::new(file_name, text));
    report(&mut findings, error);
    findings.finish().err().unwrap_or_default()
}

fn report(findings: &mut Findings<'_>, error: FormError) {
    let FormError {
        place,
        path,
        message,
        label,
        help,
    } = error;
    findings.error_at(place, path, Remark::new(message, label, help));
}
