//! `weir demo bgp`: it ends by itself with all its figures, and a signal leaves nothing behind.
//!
//! Needs root and BIRD; skipped without.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn can_run() -> bool {
    if !["/usr/sbin/bird", "/usr/bin/bird"]
        .iter()
        .any(|path| Path::new(path).exists())
    {
        eprintln!("skipped: BIRD is not installed (package bird2)");
        return false;
    }
    if let Err(why) = weir_netlink::lab::preflight() {
        eprintln!("skipped: {why}");
        return false;
    }
    true
}

fn start() -> Child {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args([
            "demo",
            "bgp",
            "--routes",
            "3000",
            "--routes6",
            "500",
            "--json",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn folder(pid: u32) -> PathBuf {
    std::env::temp_dir().join(format!("weir-demo-bgp-{pid}"))
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let mut all = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
    {
        let text = std::fs::read_to_string(task.unwrap().path().join("children"));
        let text = text.unwrap_or_default();
        all.extend(text.split_whitespace().map(|it| it.parse::<u32>().unwrap()));
    }
    all
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "did not happen: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn it_ends_by_itself_and_the_tables_are_equal() {
    if !can_run() {
        return;
    }
    let demo = start();
    let pid = demo.id();
    let output = demo.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for field in [
        "routes_kernel",
        "routes_fib",
        "missing",
        "stale",
        "weir_cpu_seconds",
        "seconds_after_kernel",
        "resyncs",
        "failover_ms",
        "ping_loss_percent",
        "restart_loss_percent",
        "rib_bytes_per_route",
    ] {
        assert!(json[field].is_number(), "{field} in {json}");
    }
    // The table, and the routes to the other loopback.
    assert_eq!(json["routes_kernel"], 3502, "{json}");
    assert_eq!(json["routes_fib"], 3502, "{json}");
    assert_eq!(
        (&json["missing"], &json["stale"]),
        (&0.into(), &0.into()),
        "{json}"
    );
    assert!(!folder(pid).exists());
}

#[test]
fn a_signal_leaves_nothing_behind() {
    if !can_run() {
        return;
    }
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut demo = start();
        let pid = demo.id();
        // Both routers and BIRDs run.
        wait_for("the demo's processes", || children(pid).len() >= 4);
        let started = children(pid);
        let id = rustix::process::Pid::from_child(&demo);
        rustix::process::kill_process(id, signal).unwrap();
        wait_for("the end of the demo", || demo.try_wait().unwrap().is_some());
        assert!(!demo.wait().unwrap().success());
        assert!(!folder(pid).exists(), "{signal:?}");
        wait_for("the end of its processes", || {
            let is_ours = |pid: &u32| {
                let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
                line.unwrap_or_default().contains("weir-demo-bgp")
            };
            !started.iter().any(is_ours)
        });
    }
}
