//! Notes the compiler and the commit, for `weir bench` and `weir show version`.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    println!(
        "cargo:rustc-env=WEIR_RUSTC={}",
        first_line(&rustc, &["--version"])
    );
    println!(
        "cargo:rustc-env=WEIR_COMMIT={}",
        first_line("git", &["rev-parse", "--short", "HEAD"])
    );
    // In a linked worktree these files are not in the folder `.git` of the tree.
    for file in ["HEAD", "logs/HEAD"] {
        let path = first_line("git", &["rev-parse", "--git-path", file]);
        println!("cargo:rerun-if-changed={path}");
    }
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_else(|| "unknown".to_owned())
}
