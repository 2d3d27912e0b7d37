//! `cargo xtask test [ARGUMENT]…`: `cargo test` for the whole workspace, with its skipped tests in the last lines.
//!
//! libtest hides the output of tests that pass, so a test that cannot run here looks like one that passed. This
//! command shows that output to itself: a line that begins with `skipped` is a skip. All output is in
//! `target/test.log`; the terminal gets the results and the failures. With `CI=true` a skip fails the run
//! unless its reason begins with a line of dev/xtask/allowed-skips.txt.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;

const ALLOWED: &str = "dev/xtask/allowed-skips.txt";

/// Runs all tests.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    match test(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot run the tests: {error}");
            ExitCode::FAILURE
        }
    }
}

fn test(arguments: &[String]) -> std::io::Result<bool> {
    let (cargo_arguments, test_arguments) = match arguments.iter().position(|it| it == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (arguments, &[][..]),
    };
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    std::fs::create_dir_all(&target)?;
    let mut log = File::create(format!("{target}/test.log"))?;
    let mut child = Command::new(env!("CARGO"))
        .args(["test", "--workspace", "--locked", "--no-fail-fast"])
        .args(cargo_arguments)
        .args(["--", "--show-output"])
        .args(test_arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (send, lines) = mpsc::channel();
    for output in [
        child
            .stdout
            .take()
            .map(|it| Box::new(it) as Box<dyn std::io::Read + Send>),
        child
            .stderr
            .take()
            .map(|it| Box::new(it) as Box<dyn std::io::Read + Send>),
    ]
    .into_iter()
    .flatten()
    {
        let send = send.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(output);
            let mut line = Vec::new();
            while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if send.send(text).is_err() {
                    return;
                }
            }
        });
    }
    drop(send);
    let mut report = Report::default();
    for line in lines {
        writeln!(log, "{line}")?;
        if report.take(&line) {
            println!("{line}");
        }
    }
    let succeeded = child.wait()?.success();
    let allowed = std::fs::read_to_string(ALLOWED).unwrap_or_default();
    let unexpected = report.unexpected(&allowed);
    print!("{}", report.summary());
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    if in_ci && !unexpected.is_empty() {
        for reason in &unexpected {
            println!("not in {ALLOWED}: {reason}");
        }
    }
    println!("{}", report.totals());
    Ok(succeeded && (!in_ci || unexpected.is_empty()))
}

/// What the output said so far.
#[derive(Default)]
struct Report {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// Tests by the reason that they were skipped for.
    skipped: BTreeMap<String, u64>,
    /// Whether the lines are those of failed tests.
    in_failures: bool,
    /// Whether the lines are the output of tests that passed.
    in_successes: bool,
}

impl Report {
    /// Takes a line; whether it is for the terminal.
    fn take(&mut self, line: &str) -> bool {
        match line {
            "successes:" => {
                self.in_successes = true;
                return false;
            }
            "failures:" => {
                (self.in_failures, self.in_successes) = (true, false);
                return true;
            }
            _ => {}
        }
        if let Some(result) = line.strip_prefix("test result: ") {
            (self.in_failures, self.in_successes) = (false, false);
            for part in result.split([';', '.']) {
                let mut words = part.split_whitespace();
                let count = words.next().and_then(|number| number.parse::<u64>().ok());
                match (count, words.next()) {
                    (Some(count), Some("passed")) => self.passed += count,
                    (Some(count), Some("failed")) => self.failed += count,
                    (Some(count), Some("ignored")) => self.ignored += count,
                    _ => {}
                }
            }
            return true;
        }
        if let Some(reason) = line.trim_start().strip_prefix("skipped") {
            let reason = reason.trim_start_matches(':').trim();
            *self.skipped.entry(reason.to_owned()).or_default() += 1;
            return false;
        }
        let about_building = [
            "Compiling",
            "Running",
            "Doc-tests",
            "Finished",
            "error",
            "warning",
        ]
        .iter()
        .any(|word| line.trim_start().starts_with(word));
        self.in_failures || (about_building && !self.in_successes) || line.ends_with("FAILED")
    }

    fn unexpected(&self, allowed: &str) -> Vec<String> {
        let known: Vec<&str> = allowed
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        let is_new = |reason: &&String| !known.iter().any(|prefix| reason.starts_with(prefix));
        self.skipped.keys().filter(is_new).cloned().collect()
    }

    fn summary(&self) -> String {
        let mut text = String::new();
        if !self.skipped.is_empty() {
            text += "\nskipped, or a part of it:\n";
        }
        for (reason, count) in &self.skipped {
            text += &format!("{count:>5}  {reason}\n");
        }
        if self.ignored > 0 {
            text += &format!(
                "{:>5}  ignored: long tests, which make test-long runs\n",
                self.ignored
            );
        }
        text
    }

    fn totals(&self) -> String {
        let skipped: u64 = self.skipped.values().sum();
        let passed = self.passed.saturating_sub(skipped);
        format!(
            "{passed} passed, {} failed, {} skipped",
            self.failed,
            skipped + self.ignored
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    const OUTPUT: &str = "     Running tests/a.rs
test a ... ok
test b ... ok

successes:

---- a stdout ----
skipped: tshark is not installed

successes:
    a
    b

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s
test c ... FAILED

failures:

---- c stdout ----
assertion failed

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s";

    #[test]
    fn skips_are_counted_with_their_reasons() {
        let mut report = Report::default();
        let shown: Vec<&str> = OUTPUT.lines().filter(|line| report.take(line)).collect();
        assert_eq!(report.totals(), "1 passed, 1 failed, 2 skipped");
        assert!(report.summary().contains("1  tshark is not installed"));
        assert!(shown.contains(&"assertion failed") && !shown.contains(&"---- a stdout ----"));
        assert_eq!(report.unexpected("# none\n"), ["tshark is not installed"]);
        assert!(report.unexpected("tshark is not").is_empty());
    }
}
