//! The commands of docs/quickstart.md, run as they stand, in namespaces of their own.

use std::path::Path;
use std::process::Command;

#[test]
fn the_quickstart_works_as_written() {
    let possible = Command::new("unshare").args(["-m", "-n", "true"]).status();
    if !possible.is_ok_and(|status| status.success()) {
        println!("skipped: needs root and network namespaces");
        return;
    }
    if Command::new("ping").arg("-V").output().is_err() {
        println!("skipped: needs ping (iputils-ping)");
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/quickstart.md");
    let commands = shell_blocks(&std::fs::read_to_string(page).unwrap());
    assert!(commands.len() >= 7, "the page has lost its commands");
    // The first block builds the program; the tests have it already.
    assert!(commands[0].contains("make build"), "{}", commands[0]);
    let script = commands[1..].join("\n");
    let program = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap();
    // A private /run/netns, so that names of namespaces on this machine do not matter.
    let setup =
        "mkdir -p /run/netns; mount -t tmpfs tmpfs /run/netns; exec timeout 120 bash -euo pipefail";
    let output = Command::new("unshare")
        .args([
            "-m",
            "-n",
            "--kill-child",
            "-f",
            "-p",
            "--mount-proc",
            "sh",
            "-c",
        ])
        .arg(format!("{setup} -c \"$SCRIPT\""))
        .env("SCRIPT", &script)
        .env(
            "PATH",
            format!("{}:{}", program.display(), std::env::var("PATH").unwrap()),
        )
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{said}\n{complaints}");
    for part in ["ttl=63", "xe0", "10.2.0.2", "received"] {
        assert!(
            said.contains(part),
            "{part} is missing:\n{said}\n{complaints}"
        );
    }
    assert!(
        !Path::new("/tmp/weir-quickstart").exists(),
        "the last step removes everything"
    );
}

/// The contents of the page's `sh` blocks, in order.
fn shell_blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line == "```sh" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(block.join("\n"));
        }
    }
    blocks
}
