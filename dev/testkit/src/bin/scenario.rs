//! `cargo xtask scenario make [NAME]…`: captures from `packets.txt`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use weir_testkit::{captures, folder, judge, names, script::Script};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some("make") {
        eprintln!("usage: cargo xtask scenario make [NAME]...");
        return ExitCode::from(2);
    }
    match make(words.collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scenario make: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(wanted: Vec<String>) -> Result<(), String> {
    let wanted = if wanted.is_empty() { names()? } else { wanted };
    let mut scripts = Vec::new();
    for name in wanted {
        let folder = folder().join(&name);
        let text = std::fs::read_to_string(folder.join("packets.txt"))
            .map_err(|error| format!("{name}: packets.txt: {error}"))?;
        let script =
            Script::parse(&text).map_err(|error| format!("{name}: packets.txt: {error}"))?;
        let count =
            captures::write(&folder, &script).map_err(|error| format!("{name}: {error}"))?;
        println!(
            "{name}: {count} captures of {} paragraphs",
            script.events.len()
        );
        scripts.push((name, script));
    }
    match judge::remarks(&scripts) {
        None => println!("tshark is not installed: nobody else read the frames"),
        Some(remarks) => remarks?.iter().for_each(|remark| println!("{remark}")),
    }
    Ok(())
}
