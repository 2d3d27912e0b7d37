//! Every folder of `scenarios/` is a test of its name; one more has tshark read all that goes out.
//!
//! `cargo test -p weir-testkit --test scenarios ttl` runs those with `ttl` in their name;
//! `UPDATE_GOLDEN=1` writes `counters.json`, to be read before it is committed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use weir_testkit::run::Scenario;
use weir_testkit::{folder, judge, names};

/// The test that is no folder.
const TSHARK: &str = "every-frame-read-by-tshark";

/// What the command line of a test program can say and what matters of it here.
#[derive(Default)]
struct Wanted {
    filters: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    list: bool,
    quiet: bool,
    ignored: bool,
}

impl Wanted {
    fn from_args() -> Wanted {
        let mut wanted = Wanted::default();
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--exact" => wanted.exact = true,
                "--list" => wanted.list = true,
                "--ignored" => wanted.ignored = true,
                "-q" | "--quiet" => wanted.quiet = true,
                "--skip" => wanted.skipped.extend(args.next()),
                // Those with a value.
                "--test-threads" | "--format" | "--color" | "-Z" | "--logfile"
                | "--shuffle-seed" => drop(args.next()),
                flag if flag.starts_with('-') => {}
                filter => wanted.filters.push(filter.to_owned()),
            }
        }
        wanted
    }

    fn takes(&self, name: &str) -> bool {
        let fits = |filter: &String| {
            if self.exact {
                name == filter
            } else {
                name.contains(filter.as_str())
            }
        };
        !self.ignored
            && (self.filters.is_empty() || self.filters.iter().any(fits))
            && !self.skipped.iter().any(fits)
    }
}

fn main() -> ExitCode {
    let wanted = Wanted::from_args();
    let all = match names() {
        Ok(all) => all
            .into_iter()
            .chain([TSHARK.to_owned()])
            .collect::<Vec<_>>(),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let chosen: Vec<&String> = all.iter().filter(|name| wanted.takes(name)).collect();
    if wanted.list {
        chosen.iter().for_each(|name| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let began = Instant::now();
    let mut failed = Vec::new();
    for &name in &chosen {
        let result = if name == TSHARK {
            read_by_tshark(&all)
        } else {
            run(name)
        };
        match result {
            Ok(()) if wanted.quiet => {}
            Ok(()) => println!("test {name} ... ok"),
            Err(error) => {
                println!("test {name} ... FAILED");
                failed.push((name, error));
            }
        }
    }
    for (name, error) in &failed {
        println!("\n---- {name} ----\n{error}");
    }
    let (word, passed) = (
        if failed.is_empty() { "ok" } else { "FAILED" },
        chosen.len() - failed.len(),
    );
    let (out, took) = (all.len() - chosen.len(), began.elapsed().as_secs_f64());
    println!(
        "\ntest result: {word}. {passed} passed; {} failed; 0 ignored; 0 measured; {out} filtered out; finished in {took:.2}s\n",
        failed.len()
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run(name: &str) -> Result<(), String> {
    let rewrite = std::env::var_os("UPDATE_GOLDEN").is_some();
    let scenario = Scenario::read(&folder().join(name))?;
    catch_unwind(AssertUnwindSafe(|| scenario.run(rewrite)))
        .unwrap_or_else(|_| Err("it panicked".to_owned()))
}

fn read_by_tshark(all: &[String]) -> Result<(), String> {
    let names = all.iter().filter(|name| *name != TSHARK);
    // What cannot be read is reported by its own test.
    let scripts: Vec<_> = names
        .filter_map(|name| {
            Some((
                name.clone(),
                Scenario::read(&folder().join(name)).ok()?.script,
            ))
        })
        .collect();
    match judge::remarks(&scripts) {
        None => {
            println!("tshark is not installed: nobody else read the expected frames");
            Ok(())
        }
        Some(Ok(remarks)) if remarks.is_empty() => Ok(()),
        Some(Ok(remarks)) => Err(remarks.join("\n")),
        Some(Err(error)) => Err(error),
    }
}
