//! `cargo xtask instructions [--because REASON] [PROGRAM]`: how many instructions a packet takes, case by case.
//!
//! Clocks need a quiet machine; instructions do not. valgrind's callgrind counts those of `Rig::measured_turn` while a
//! case runs with code paths forced to the baseline, and each case is compared with `dev/bench/instructions.txt`:
//! more than 5 % above it fails. With `--because` the file is written anew, and every line whose figure moved by
//! more than that gets the reason. A line's reason must change with a risen figure: what git has is asked.
//!
//! The program is a release build of `dev/bench/examples/count.rs`, which has the packet path as `weir` has it and
//! is built in a quarter of the time; given its path, `weir` itself is counted. Another compiler than the file's
//! counts otherwise, so then differences are reported and fail nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The reference, from the root of the project.
const FILE: &str = "dev/bench/instructions.txt";
/// How much more is let pass.
const SLACK: f64 = 1.05;
/// Vectors before counting, and with counting: the difference is what counts, so that setting up does not.
const TURNS: [usize; 2] = [8, 40];
const HEAD: &str = "\
# Instructions a packet, from receipt to transmission, baseline code, sFlow off: `cargo xtask instructions`.
# A figure that rises by more than 5 % needs another reason: `cargo xtask instructions --because 'why'`.
";

/// A line: the figure and why it is so.
type Lines = BTreeMap<String, (f64, String)>;

/// The file: its compiler and its lines.
#[derive(Debug, Default, PartialEq)]
struct Reference {
    rustc: String,
    lines: Lines,
}

impl Reference {
    fn parse(text: &str) -> Result<Reference, String> {
        let mut reference = Reference::default();
        for line in text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
        {
            if let Some(version) = line.strip_prefix("rustc: ") {
                reference.rustc = version.to_owned();
                continue;
            }
            let mut words = line.splitn(3, ' ').map(str::trim);
            let (name, figure, reason) = (
                words.next(),
                words.next().and_then(|word| word.parse().ok()),
                words.next(),
            );
            match (name, figure, reason.filter(|reason| !reason.is_empty())) {
                (Some(name), Some(figure), Some(reason)) => reference
                    .lines
                    .insert(name.to_owned(), (figure, reason.to_owned())),
                _ => return Err(format!("not `case figure reason`: {line}")),
            };
        }
        Ok(reference)
    }

    fn text(&self) -> String {
        let lines = self
            .lines
            .iter()
            .map(|(name, (figure, reason))| format!("{name} {figure:.1} {reason}\n"));
        format!("{HEAD}rustc: {}\n{}", self.rustc, lines.collect::<String>())
    }
}

/// The chore; `words` follow its name.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let (because, program) = match words {
        [flag, reason, rest @ ..] if flag == "--because" => {
            (Some(reason.trim().replace('\n', " ")), rest.first())
        }
        rest => (None, rest.first()),
    };
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("instructions: valgrind is missing, so instructions are not counted");
        return ExitCode::SUCCESS;
    }
    match chore(because, program.map(PathBuf::from)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
    }
}

fn chore(because: Option<String>, program: Option<PathBuf>) -> Result<bool, String> {
    let program = program.map_or_else(build, Ok)?;
    let rustc = said(
        Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into())).arg("--version"),
    )?
    .trim()
    .to_owned();
    let reference = match std::fs::read_to_string(FILE) {
        Ok(text) => Reference::parse(&text)?,
        Err(_) => Reference::default(),
    };
    let figures = count_all(&program)?;
    if let Some(reason) = because {
        let lines = figures.iter().map(|(name, &figure)| {
            (
                name.clone(),
                renewed(reference.lines.get(name), figure, &reason),
            )
        });
        return write(&Reference {
            rustc,
            lines: lines.collect(),
        })
        .map(|()| true);
    }
    let mut wrong = compare(&reference, &figures);
    wrong.extend(unexplained(&reference, &before()));
    if rustc != reference.rustc {
        println!(
            "instructions: counted with {rustc}, the file is of {}: nothing fails",
            reference.rustc
        );
        wrong
            .iter()
            .for_each(|line| println!("instructions: {line}"));
        return Ok(true);
    }
    wrong
        .iter()
        .for_each(|line| eprintln!("instructions: {line}"));
    Ok(wrong.is_empty())
}

fn write(reference: &Reference) -> Result<(), String> {
    std::fs::write(FILE, reference.text()).map_err(|error| format!("{FILE}: {error}"))
}

/// A line of the new file: what hardly moved stays as it is.
fn renewed(old: Option<&(f64, String)>, figure: f64, reason: &str) -> (f64, String) {
    match old {
        Some((was, why)) if figure <= was * SLACK && figure >= was / SLACK => (*was, why.clone()),
        _ => ((figure * 10.0).round() / 10.0, reason.to_owned()),
    }
}

/// Prints each case; what is too much.
fn compare(reference: &Reference, figures: &BTreeMap<String, f64>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, &figure) in figures {
        match reference.lines.get(name) {
            Some((was, _)) => {
                println!("instructions: {name:<14}{figure:>8.1} a packet, {was:.1} in the file");
                if figure > was * SLACK {
                    wrong.push(format!("{name}: {figure:.1} a packet is over 5 % more than {was:.1}; with a reason: --because 'why'"));
                }
            }
            None => println!(
                "instructions: {name:<14}{figure:>8.1} a packet, not in the file yet: --because 'why'"
            ),
        }
    }
    wrong
}

/// Figures that rose since what git has before, under the reason that they had.
fn unexplained(now: &Reference, before: &Reference) -> Vec<String> {
    let risen = now.lines.iter().filter_map(|(name, (figure, reason))| {
        let (was, why) = before.lines.get(name)?;
        let same = *figure > was * SLACK && reason == why && now.rustc == before.rustc;
        same.then(|| {
            format!("{name}: the file went from {was:.1} to {figure:.1} without another reason")
        })
    });
    risen.collect()
}

/// The file as it was before it was changed last; nothing when git does not know.
fn before() -> Reference {
    let changed = |args: &[&str]| {
        Command::new("git")
            .args(args)
            .output()
            .ok()
            .filter(|output| output.status.success())
    };
    let here = changed(&["diff", "--quiet", "HEAD", "--", FILE]).is_some();
    let commit = match here {
        false => "HEAD".to_owned(),
        true => {
            let log = changed(&["log", "-1", "--format=%H", "--", FILE])
                .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
            format!("{}~1", log.unwrap_or_default())
        }
    };
    let text = changed(&["show", &format!("{commit}:{FILE}")])
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.and_then(|text| Reference::parse(&text).ok())
        .unwrap_or_default()
}

/// Builds the small program.
fn build() -> Result<PathBuf, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let words = [
        "build",
        "-q",
        "--release",
        "--locked",
        "-p",
        "weir-bench",
        "--example",
        "count",
    ];
    let status = Command::new(cargo)
        .args(words)
        .status()
        .map_err(|error| error.to_string())?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    if status.success() {
        Ok(target.join("release/examples/count"))
    } else {
        Err("the program was not built".into())
    }
}

/// All cases, two at a time.
fn count_all(program: &Path) -> Result<BTreeMap<String, f64>, String> {
    let names = said(Command::new(program).args(["bench", "--untimed", "0"]))?;
    let names: Vec<&str> = names
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(name) = names.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            found.push(count(program, name).map(|figure| ((*name).to_owned(), figure)));
        }
        found
    };
    let found = std::thread::scope(|scope| {
        let two = [scope.spawn(work), scope.spawn(work)];
        two.into_iter()
            .flat_map(|worker| worker.join().unwrap_or_default())
            .collect::<Vec<_>>()
    });
    found.into_iter().collect()
}

/// Instructions a packet of one case.
fn count(program: &Path, case: &str) -> Result<f64, String> {
    let all = TURNS.map(|turns| total(program, case, turns));
    let [(few, fewer), (many, more)] = [all[0].clone()?, all[1].clone()?];
    Ok((many - few) / (more - fewer))
}

/// Instructions of a run, as callgrind writes them, and the packets of it, as the program prints them.
fn total(program: &Path, case: &str, turns: usize) -> Result<(f64, f64), String> {
    let out = std::env::temp_dir().join(format!(
        "weir-instructions-{}-{case}-{turns}",
        std::process::id()
    ));
    let mut command = Command::new("valgrind");
    command
        .args(["-q", "--tool=callgrind", "--toggle-collect=*measured_turn*"])
        .arg(format!("--callgrind-out-file={}", out.display()));
    command
        .arg(program)
        .args(["bench", "--untimed", &turns.to_string(), case]);
    // The C library chooses its copies by the processor, too.
    command
        .env("WEIR_CPU", "baseline")
        .env("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-AVX,-ERMS,-FSRM");
    let done = said(&mut command);
    let text = std::fs::read_to_string(&out);
    let _ = std::fs::remove_file(&out);
    let done = done?;
    let packets = done
        .split_whitespace()
        .nth(1)
        .and_then(|packets| packets.parse().ok())
        .ok_or_else(|| format!("{case}: the number of packets is missing in {done:?}"))?;
    let text = text.map_err(|error| format!("{}: {error}", out.display()))?;
    let line = text.lines().find_map(|line| {
        line.strip_prefix("summary:")
            .or_else(|| line.strip_prefix("totals:"))
    });
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .map(|sum| (sum, packets))
        .ok_or_else(|| format!("{case}: callgrind wrote no sum"))
}

/// What a program writes.
fn said(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!(
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(rustc: &str, lines: &[(&str, f64, &str)]) -> Reference {
        let lines = lines
            .iter()
            .map(|&(name, figure, reason)| (name.to_owned(), (figure, reason.to_owned())));
        Reference {
            rustc: rustc.to_owned(),
            lines: lines.collect(),
        }
    }

    #[test]
    fn the_file_reads_as_it_was_written() {
        let made = reference(
            "rustc 1.2.3",
            &[
                ("ip4", 95.5, "one pass for plain packets"),
                ("l2xc", 40.0, "first count"),
            ],
        );
        assert_eq!(Reference::parse(&made.text()), Ok(made));
        assert!(
            Reference::parse("ip4 95.5").is_err() && Reference::parse("ip4 many because").is_err()
        );
        let text = std::fs::read_to_string(Path::new("../..").join(FILE)).unwrap();
        assert!(!Reference::parse(&text).unwrap().lines.is_empty());
    }

    #[test]
    fn five_percent_more_is_too_much() {
        let file = reference("r", &[("ip4", 100.0, "why")]);
        let figures =
            |figure| BTreeMap::from([("ip4".to_owned(), figure), ("new".to_owned(), 7.0)]);
        assert!(
            compare(&file, &figures(104.9)).is_empty() && compare(&file, &figures(50.0)).is_empty()
        );
        assert_eq!(compare(&file, &figures(105.1)).len(), 1);
    }

    #[test]
    fn a_risen_figure_needs_another_reason() {
        let before = reference("r", &[("ip4", 100.0, "why"), ("l2xc", 40.0, "why")]);
        let now =
            |figure, reason| reference("r", &[("ip4", figure, reason), ("l2xc", 41.0, "why")]);
        assert_eq!(unexplained(&now(110.0, "why"), &before).len(), 1);
        assert!(
            unexplained(&now(110.0, "checks more"), &before).is_empty()
                && unexplained(&now(90.0, "why"), &before).is_empty()
        );
        let other = Reference {
            rustc: "s".into(),
            ..now(110.0, "why")
        };
        assert!(
            unexplained(&other, &before).is_empty()
                && unexplained(&now(1.0, "why"), &Reference::default()).is_empty()
        );
    }

    #[test]
    fn what_hardly_moved_keeps_its_line() {
        let old = (100.0, "why".to_owned());
        assert_eq!(renewed(Some(&old), 103.0, "new"), old);
        assert_eq!(renewed(Some(&old), 90.04, "new"), (90.0, "new".to_owned()));
        assert_eq!(renewed(None, 7.0, "new"), (7.0, "new".to_owned()));
    }
}
