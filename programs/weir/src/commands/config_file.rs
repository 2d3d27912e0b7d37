//! Configuration files as commands read them, and how their findings are reported.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;
use weir_api::{ClientError, ErrorCode, Finding, FindingSeverity};
use weir_config::{CheckOptions, Checked, Diagnostic, Severity};

use crate::cli::ConfigFileArgs;
use crate::failure::{Failure, REFUSED};
use crate::render::units;

/// A finding, from here or from a router.
pub(crate) trait Reported: Serialize {
    /// Whether the file is refused for it.
    fn is_error(&self) -> bool;
    /// As a compiler prints it.
    fn text(&self) -> String;
}

impl Reported for Diagnostic {
    fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Reported for Finding {
    fn is_error(&self) -> bool {
        self.severity == FindingSeverity::Error
    }

    /// The router's own words are harmless, but who knows which router it was.
    fn text(&self) -> String {
        self.rendered
            .lines()
            .map(crate::render::harmless)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The findings as JSON.
#[derive(Serialize)]
struct Report<'a, F> {
    file: &'a str,
    valid: bool,
    findings: &'a [F],
}

/// The name of a file in messages.
pub(crate) fn name(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

/// The file's bytes, and not many more than are looked at: `/dev/zero` is a file, too.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let most = weir_config::Limits::default().bytes.saturating_add(1) as u64;
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::said(format_args!("cannot read {}: {error}", name(file))))?;
    Ok(bytes)
}

/// Reads and checks a file, without a router.
pub(super) fn check(
    file: &Path,
    skip_unsupported: bool,
) -> Result<Result<Checked, Vec<Diagnostic>>, Failure> {
    let options = CheckOptions {
        skip_unsupported,
        ..CheckOptions::new(name(file))
    };
    Ok(weir_config::check_with(&options, &read(file)?))
}

/// The text of a file that a router is to look at. What is no text at all is refused here.
pub(super) fn text(
    args: &ConfigFileArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<String, Failure> {
    let name = name(&args.config);
    String::from_utf8(read(&args.config)?).map_err(|error| {
        match weir_config::check_bytes(&name, error.as_bytes()) {
            Err(findings) => refuse(&name, &findings, json, to),
            Ok(_) => Failure::said(format_args!("{name} is not text in UTF-8")),
        }
    })
}

/// What a router refused; its findings are reported as those of a check are.
pub(super) fn refused(file: &Path, error: ClientError, json: bool, to: &mut dyn Write) -> Failure {
    match error.refusal() {
        Some(refusal) if refusal.code == ErrorCode::Invalid => {
            refuse(&name(file), &refusal.findings, json, to)
        }
        _ => error.into(),
    }
}

/// Tells why a file is refused.
pub(crate) fn refuse(
    name: &str,
    findings: &[impl Reported],
    json: bool,
    to: &mut dyn Write,
) -> Failure {
    if json {
        return match report(name, findings, to) {
            Ok(()) => Failure::Reported(REFUSED),
            Err(failure) => failure,
        };
    }
    tell(findings);
    let errors = findings.iter().filter(|finding| finding.is_error()).count() as u64;
    Failure::Coded(
        REFUSED,
        format!(
            "{name} is refused: {}{}",
            units::count(errors, "error", "errors"),
            warnings(findings)
        ),
    )
}

/// The findings as one JSON object.
pub(super) fn report(
    name: &str,
    findings: &[impl Reported],
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let report = Report {
        file: name,
        valid: !findings.iter().any(Reported::is_error),
        findings,
    };
    writeln!(
        to,
        "{}",
        serde_json::to_string_pretty(&report).map_err(Failure::said)?
    )?;
    Ok(())
}

/// Tells findings on standard error, where a reader that went away is nobody's loss.
pub(crate) fn tell(findings: &[impl Reported]) {
    let mut to = io::stderr().lock();
    for finding in findings {
        if writeln!(to, "{}\n", finding.text()).is_err() {
            return;
        }
    }
}

/// `, 2 warnings`, or nothing.
pub(super) fn warnings(findings: &[impl Reported]) -> String {
    match findings
        .iter()
        .filter(|finding| !finding.is_error())
        .count()
    {
        0 => String::new(),
        count => format!(", {}", units::count(count as u64, "warning", "warnings")),
    }
}
