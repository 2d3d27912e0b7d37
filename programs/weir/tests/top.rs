//! `weir demo` and `weir top` on a pseudo-terminal of 80 columns and 24 lines, as a user sees them.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a view may take to show what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn the_demo_shows_flows_and_drops_and_ends_with_q() {
    if !may_make_namespaces() {
        println!("skipped: needs root and network namespaces");
        return;
    }
    if !has_program("script") {
        println!("skipped: needs the program `script` (bsdutils)");
        return;
    }
    let command = format!(
        "stty rows 24 cols 80; exec {} demo",
        env!("CARGO_BIN_EXE_weir")
    );
    let mut child = Ended(
        Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let mut output = child.0.stdout.take().unwrap();
    let (send, pieces) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(len @ 1..) = output.read(&mut buffer) {
            if send.send(buffer[..len].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut screen = vt100::Parser::new(24, 80, 0);
    let mut wait_for = |what: &str| {
        let until = Instant::now() + PATIENCE;
        while !screen.screen().contents().contains(what) {
            let left = until.saturating_duration_since(Instant::now());
            match pieces.recv_timeout(left) {
                Ok(piece) => screen.process(&piece),
                Err(_) => {
                    let shown = screen.screen().contents();
                    panic!("{what:?} was not shown in {PATIENCE:?}:\n{shown}")
                }
            }
        }
    };
    for part in [
        "weir top",
        "10.2.0.2:5100",
        "-> xe1",
        "host-unreachable",
        "broken on purpose",
    ] {
        wait_for(part);
    }
    // Enter: the tables behind the selected flow, and what becomes of a packet of it.
    child.0.stdin.as_mut().unwrap().write_all(b"\r").unwrap();
    for part in [
        "route      ",
        "adjacency",
        "verdict    ",
        "ACL      none applies",
    ] {
        wait_for(part);
    }
    child.0.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    wait_for("packets came in");
    assert!(child.0.wait().unwrap().success());
    drop(pieces);
    reader.join().unwrap();
}

/// The live view of the traffic generator shows the run while it lasts, and then its result.
#[test]
fn the_generator_shows_its_run_and_ends_with_q() {
    if !has_program("script") {
        println!("skipped: needs the program `script` (bsdutils)");
        return;
    }
    let command = format!(
        "stty rows 24 cols 100; exec {} lab generate --rate 2kpps --duration 1h",
        env!("CARGO_BIN_EXE_weir")
    );
    let mut child = Ended(
        Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let mut output = child.0.stdout.take().unwrap();
    let (send, pieces) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(len @ 1..) = output.read(&mut buffer) {
            if send.send(buffer[..len].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut screen = vt100::Parser::new(24, 100, 0);
    let until = Instant::now() + PATIENCE;
    let mut wait_for = |what: &str| {
        while !screen.screen().contents().contains(what) {
            let left = until.saturating_duration_since(Instant::now());
            match pieces.recv_timeout(left) {
                Ok(piece) => screen.process(&piece),
                Err(_) => panic!("{what:?} was not shown:\n{}", screen.screen().contents()),
            }
        }
    };
    for part in ["stream", "forward", "latency"] {
        wait_for(part);
    }
    child.0.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    wait_for("packets/s");
    wait_for("stream forward: sent");
    assert!(child.0.wait().unwrap().success());
    drop(pieces);
    reader.join().unwrap();
}

#[test]
fn top_without_a_router_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["--socket", "/nonexistent/weir.sock", "top", "--count", "1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/weir.sock"));
}

/// Ends the view with the test, also with one that fails: its terminal goes away with `script`.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn may_make_namespaces() -> bool {
    Command::new("unshare")
        .args(["-n", "true"])
        .status()
        .is_ok_and(|status| status.success())
}

fn has_program(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok()
}
