//! Chores of the project: `cargo xtask deps-check`, `cargo xtask instructions` (its own file), `cargo xtask scenario make [NAME]`.
//!
//! Every crate is in a layer and may use crates of lower layers only. The table below lists them; the
//! real dependencies, from cargo, are compared with it.

#![forbid(unsafe_code)]

mod docs;
mod instructions;
mod licenses;
mod run_tests;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

use serde_json::Value;

/// Crates by layer, lowest first.
const LAYERS: [&[&str]; 6] = [
    &["weir-cpu", "weir-buf", "weir-ring", "weir-wire"],
    &[
        "weir-graph",
        "weir-port",
        "weir-fib",
        "weir-flowfmt",
        "weir-config-derive",
        "weir-config",
        "weir-netlink",
        "weir-store",
        "weir-acl",
        "weir-lacp",
    ],
    &[
        "weir-nodes",
        "weir-control",
        "weir-linux",
        "weir-bmp",
        "weir-afxdp",
        "weir-tap",
        "weir-pcap",
        "weir-memif",
        "weir-telemetry",
        "weir-api",
    ],
    &[
        "weir-engine",
        "weir-xdp",
        "weir-lab",
        "weir-doctor",
        "weir-peering",
    ],
    &["weir-bench", "weir-testkit"],
    &["weir"],
];

/// Pairs in one layer that have an order of their own: the pool asks the processor.
const WITHIN: [(&str, &str); 3] = [
    ("weir-buf", "weir-cpu"),
    ("weir-config", "weir-config-derive"),
    ("weir-linux", "weir-control"),
];

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("deps-check") => deps_check(),
        Some("test") => run_tests::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("licenses") => licenses::run(std::env::args().nth(2).as_deref()),
        Some("docs-check") => docs::check(),
        Some("instructions") => instructions::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        // Built only when asked for: it brings the whole router along.
        Some("scenario") => {
            run_cargo(&["run", "-q", "-p", "weir-testkit", "--bin", "scenario", "--"])
        }
        _ => {
            eprintln!(
                "usage: cargo xtask deps-check | test [ARGUMENT]... | docs-check | licenses [FILE] | instructions [--because REASON] [PROGRAM] | cargo xtask scenario make [NAME]..."
            );
            ExitCode::from(2)
        }
    }
}

/// Runs cargo with these words and what stands behind the chore's name.
fn run_cargo(words: &[&str]) -> ExitCode {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    match Command::new(cargo)
        .args(words)
        .args(std::env::args().skip(2))
        .status()
    {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn deps_check() -> ExitCode {
    match metadata().map(|metadata| violations(&metadata)) {
        Ok(wrong) if wrong.is_empty() => {
            println!("deps-check: every crate uses lower layers only");
            ExitCode::SUCCESS
        }
        Ok(wrong) => {
            wrong
                .iter()
                .for_each(|line| eprintln!("deps-check: {line}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("deps-check: {error}");
            ExitCode::FAILURE
        }
    }
}

fn metadata() -> Result<Value, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .output();
    let output = output.map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// What is wrong, one line each.
fn violations(metadata: &Value) -> Vec<String> {
    let mut layer = BTreeMap::new();
    for (number, crates) in LAYERS.iter().enumerate() {
        crates.iter().for_each(|name| {
            layer.insert(*name, number);
        });
    }
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        if name == "xtask" {
            continue;
        }
        let Some(&own) = layer.get(name) else {
            wrong.push(format!(
                "{name} has no layer: give it one in xtask/src/main.rs"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let other = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"].as_str() == Some("dev");
            let Some(&lower) = layer.get(other) else {
                continue;
            };
            if !for_tests && lower >= own && !WITHIN.contains(&(name, other)) {
                wrong.push(format!("{name} (layer {own}) uses {other} (layer {lower})"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(dependency: &str, kind: Value) -> Value {
        serde_json::json!({"packages": [{"name": "weir-nodes", "dependencies": [{"name": dependency, "kind": kind}]}]})
    }

    #[test]
    fn lower_layers_and_tests_are_fine() {
        assert!(violations(&metadata("weir-graph", Value::Null)).is_empty());
        assert!(violations(&metadata("weir-engine", "dev".into())).is_empty());
        assert!(violations(&metadata("serde", Value::Null)).is_empty());
    }

    #[test]
    fn higher_and_own_layers_are_not() {
        assert_eq!(violations(&metadata("weir-engine", Value::Null)).len(), 1);
        assert_eq!(violations(&metadata("weir-api", Value::Null)).len(), 1);
        let unknown = serde_json::json!({"packages": [{"name": "weir-new", "dependencies": []}]});
        assert_eq!(violations(&unknown).len(), 1);
    }
}
