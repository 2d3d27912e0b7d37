//! The OpenAPI document, fuzzed against a running router by schemathesis: what the document allows and
//! what it does not, thousands of requests, over TCP with a token. No answer may be a fault of the
//! router (5xx, but for what the document names), each must have a status and a form that the document
//! names, and the router must be alive and unhurt at the end.
//!
//! It installs schemathesis into an environment of its own: `make test-long` runs it.

mod live;

use std::path::{Path, PathBuf};
use std::process::Command;

use live::{Folder, Router, TOKEN, free_port, python_environment, tree};

const VERSION: &str = "schemathesis==4.32.5";
/// All but one: the document says the form of values, not all that they depend on, so that what fits it may be refused.
const EXCLUDED: &str = "positive_data_acceptance";
/// Requests made up for each operation and kind of data.
const EXAMPLES: &str = "100";

fn own() -> PathBuf {
    tree().join("programs/weir/tests/schemathesis")
}

#[test]
#[ignore = "installs schemathesis and takes minutes; `make test-long` runs it"]
fn no_request_brings_out_a_fault() {
    let folder = Folder::new("schemathesis");
    let Some(programs) = python_environment(&folder, &[VERSION]) else {
        return;
    };
    let port = free_port();
    let api = format!(
        "api:\n  listen: [{{address: 127.0.0.1, port: {port}}}]\n  tokens: [{{name: fuzz, role: admin, sha256: {}}}]\n",
        TOKEN.1
    );
    let mut router = Router::start(Folder::new("fuzzed"), &api);
    let output = fuzz(&folder, &programs, port, &router.config());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let (log, runs) = (router.log(), router.runs());
    eprintln!("{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", last_lines(&log));
    assert!(runs, "{}", last_lines(&log));
    assert!(!log.contains("panicked"), "{log}");
    assert!(requests(&said) > 2000, "{said}");
    // Requests came through to the engine, and packets passed all the while.
    let client = weir_api::Client::new(router.socket());
    assert!(
        client.config_history(None, None).unwrap().revisions.len() > 10,
        "{}",
        last_lines(&log)
    );
    assert!(client.totals().unwrap().packets_out > 10_000);
}

fn fuzz(folder: &Folder, programs: &Path, port: u16, config: &Path) -> std::process::Output {
    let address = format!("http://127.0.0.1:{port}");
    Command::new(programs.join("schemathesis"))
        .arg("--config-file")
        .arg(own().join("schemathesis.toml"))
        .arg("run")
        .arg(format!("{address}/v1/openapi.json"))
        .args([
            "--url",
            &address,
            "--header",
            &format!("Authorization: Bearer {}", TOKEN.0),
        ])
        .args([
            "--checks",
            "all",
            "--exclude-checks",
            EXCLUDED,
            "--max-examples",
            EXAMPLES,
            "--continue-on-failure",
            "--request-timeout",
            "60",
        ])
        .args(["--warnings", "off", "--report-dir"])
        .arg(folder.file("report"))
        // A stream of events does not end.
        .args(["--exclude-path", "/v1/events"])
        .current_dir(&folder.0)
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", own())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("WEIR_TEST_CONFIG", config)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

/// How many requests were made: `1523 generated` in its last lines.
fn requests(said: &str) -> u64 {
    let words: Vec<&str> = said
        .split_whitespace()
        .map(|word| word.trim_matches(','))
        .collect();
    words
        .windows(2)
        .filter(|pair| pair[1] == "generated")
        .filter_map(|pair| pair[0].parse().ok())
        .next_back()
        .unwrap_or(0)
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
