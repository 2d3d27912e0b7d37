//! `weir config check`: is the file right?
//!
//! Findings go to standard error in a compiler's form, or to standard output as JSON. Whether the
//! machine has what the file names is not looked at: a file can be checked anywhere.
//! [`load`] does the same for commands that need the configuration.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;
use weir_config::{Config, Diagnostic, Severity};

use crate::cli::ConfigCheckArgs;
use crate::failure::{Failure, REFUSED};
use crate::render::units;

/// The findings as JSON.
#[derive(Serialize)]
struct Report<'a> {
    file: String,
    valid: bool,
    findings: &'a [Diagnostic],
}

/// Does it.
pub(crate) fn execute(args: &ConfigCheckArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let name = name(&args.config);
    let outcome = check(&args.config)?;
    let findings = match &outcome {
        Ok((_, warnings)) => warnings,
        Err(findings) => findings,
    };
    if json {
        let report = Report { file: name, valid: outcome.is_ok(), findings };
        writeln!(to, "{}", serde_json::to_string_pretty(&report).map_err(Failure::said)?)?;
        return if outcome.is_ok() { Ok(()) } else { Err(Failure::Told(REFUSED)) };
    }
    tell(findings);
    match &outcome {
        Ok((config, _)) => {
            let interfaces = units::count(config.interfaces.len() as u64, "interface", "interfaces");
            let routes = units::count(config.routes.len() as u64, "route", "routes");
            writeln!(to, "{name} is right: {interfaces}, {routes}{}", warnings(findings))?;
            Ok(())
        }
        Err(_) => Err(Failure::Coded(REFUSED, summary(&name, findings))),
    }
}

/// The configuration in a file, for a command that needs one. Warnings are told on standard error.
pub(crate) fn load(file: &Path) -> Result<Config, Failure> {
    match check(file)? {
        Ok((config, warnings)) => {
            tell(&warnings);
            Ok(config)
        }
        Err(findings) => {
            tell(&findings);
            Err(Failure::Coded(REFUSED, summary(&name(file), &findings)))
        }
    }
}

type Checked = Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>>;

fn check(file: &Path) -> Result<Checked, Failure> {
    let bytes = read(file).map_err(|error| Failure::said(format_args!("cannot read {}: {error}", name(file))))?;
    Ok(weir_config::check_bytes(&name(file), &bytes))
}

fn name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

/// The file's bytes, and not many more than are looked at: `/dev/zero` is a file, too.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let most = weir_config::Limits::default().bytes.saturating_add(1) as u64;
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        File::open(file)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Tells findings on standard error, where a reader that went away is nobody's loss.
fn tell(findings: &[Diagnostic]) {
    let mut to = io::stderr().lock();
    for finding in findings {
        if writeln!(to, "{finding}\n").is_err() {
            return;
        }
    }
}

fn summary(name: &str, findings: &[Diagnostic]) -> String {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    format!("{name} is refused: {}{}", units::count(errors as u64, "error", "errors"), warnings(findings))
}

fn warnings(findings: &[Diagnostic]) -> String {
    match findings.iter().filter(|finding| finding.severity == Severity::Warning).count() {
        0 => String::new(),
        count => format!(", {}", units::count(count as u64, "warning", "warnings")),
    }
}
