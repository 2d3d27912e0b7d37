//! `cargo xtask licenses [FILE]`: every linked crate has a licence that deny.toml allows.
//!
//! With a file name, also writes the Debian `copyright` file: one paragraph for Weir, and one for each licence
//! expression with the crates that have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::{Command, ExitCode};

/// Checks the licences, and writes `copyright` if it is given.
pub(crate) fn run(copyright: Option<&str>) -> ExitCode {
    let allowed = match allowed() {
        Ok(allowed) => allowed,
        Err(why) => return failed(&why),
    };
    let crates = match linked() {
        Ok(crates) => crates,
        Err(why) => return failed(&why),
    };
    let mut wrong = 0;
    for (expression, names) in &crates {
        if !is_allowed(expression, &allowed) {
            wrong += 1;
            eprintln!(
                "licence `{expression}` is not allowed by deny.toml: {}",
                list(names)
            );
        }
    }
    if wrong > 0 {
        return ExitCode::FAILURE;
    }
    let count: usize = crates.values().map(BTreeSet::len).sum();
    println!("{count} linked crates: all licences are allowed");
    match copyright.map(|file| std::fs::write(file, page(&crates))) {
        Some(Err(error)) => failed(&format!("cannot write the copyright file: {error}")),
        _ => ExitCode::SUCCESS,
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}

/// The quoted names of deny.toml's `allow` list.
fn allowed() -> Result<BTreeSet<String>, String> {
    let text = std::fs::read_to_string("deny.toml")
        .map_err(|error| format!("cannot read deny.toml: {error}"))?;
    let list = text
        .split_once("allow = [")
        .and_then(|(_, after)| after.split_once(']'))
        .ok_or("deny.toml has no list `allow`")?;
    Ok(list
        .0
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect())
}

/// Crates that the program links on this platform, from outside the tree, by licence expression.
fn linked() -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree", "-p", "weir", "-e", "normal", "--prefix", "none", "--format", "{p}|{l}",
            "--locked",
        ])
        .output()
        .map_err(|error| format!("cannot run cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut crates = BTreeMap::<String, BTreeSet<String>>::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((package, licence)) = line.split_once('|') else {
            continue;
        };
        // A crate of the tree has its path behind its version.
        if !package.contains('/') {
            let licence = licence.trim_end_matches("(*)").trim().replace('/', " OR ");
            let name = package.split(" (").next().unwrap_or(package);
            crates.entry(licence).or_default().insert(name.to_owned());
        }
    }
    Ok(crates)
}

/// Whether one alternative of the expression consists of allowed licences only.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let flat = expression.replace(['(', ')'], " ");
    let flat = flat.split_whitespace().collect::<Vec<_>>().join(" ");
    if expression.contains('(') {
        // With brackets each part of the conjunction needs an allowed alternative.
        return flat
            .split(" AND ")
            .all(|part| part.split(" OR ").any(|it| allowed.contains(it.trim())));
    }
    flat.split(" OR ")
        .any(|part| part.split(" AND ").all(|it| allowed.contains(it.trim())))
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join(", ")
}

fn page(crates: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut text = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
        Upstream-Name: weir\n\nFiles: *\nCopyright: the Weir contributors\nLicense: Apache-2.0\n"
        .to_owned();
    for (licence, names) in crates {
        let _ = write!(
            text,
            "\nFiles: linked crates\nCopyright: their authors\nLicense: {licence}\nComment:"
        );
        for name in names {
            let _ = write!(text, "\n {name}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn expressions_are_understood() {
        let allowed = ["MIT", "Apache-2.0", "ISC"].map(str::to_owned).into();
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT AND ISC",
            "(MIT OR GPL-3.0) AND ISC",
        ] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0"] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
    }
}
