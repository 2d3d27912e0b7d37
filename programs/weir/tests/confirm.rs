//! A change that waits to be confirmed, and a router that is killed meanwhile: what ran before runs
//! again. And a real client that goes away: the router undoes the change by itself.
//!
//! Null devices only; no root is needed.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let folder =
            std::env::temp_dir().join(format!("weir-confirm-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let place = Place(folder);
        place.write("old.yaml", 1500);
        place.write("new.yaml", 1400);
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, mtu: u16) {
        let text = format!(
            "interfaces: {{ xe0: {{ device: {{ driver: 'null' }}, mtu: {mtu} }} }}\nhistory: {{ directory: {} }}\n",
            self.path("history")
        );
        std::fs::write(self.0.join(name), text).unwrap();
    }

    /// Always with the old file, as a service manager would.
    fn run(&self) -> Child {
        let mut child = Command::new(WEIR)
            .args([
                "run",
                "-c",
                &self.path("old.yaml"),
                "--socket",
                &self.path("s.sock"),
            ])
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(self.0.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        assert!(
            said.contains("runs:"),
            "{said}{}",
            std::fs::read_to_string(self.0.join("log")).unwrap()
        );
        child
    }

    fn weir(&self, arguments: &[&str]) -> Value {
        let output = Command::new(WEIR)
            .args(["--socket", &self.path("s.sock"), "--json"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    fn mtu(&self) -> u64 {
        self.weir(&["show", "interface"])["interfaces"][0]["mtu"]
            .as_u64()
            .unwrap()
    }

    fn apply(&self, confirm: &str) {
        self.weir(&[
            "config",
            "apply",
            "-c",
            &self.path("new.yaml"),
            "--confirm",
            confirm,
        ]);
        assert_eq!(self.mtu(), 1400);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn killed_before_it_was_confirmed_the_old_one_runs_after_the_start() {
    let place = Place::new("killed");
    let mut router = place.run();
    place.apply("1h");
    router.kill().unwrap();
    router.wait().unwrap();
    let mut router = place.run();
    assert_eq!(place.mtu(), 1500);
    place.apply("1h");
    place.weir(&["config", "confirm"]);
    router.kill().unwrap();
    router.wait().unwrap();
    let mut router = place.run();
    assert_eq!(place.mtu(), 1400, "what was confirmed survives a kill");
    router.kill().unwrap();
    router.wait().unwrap();
}

#[test]
fn without_a_word_from_anybody_it_is_undone() {
    let place = Place::new("silent");
    let mut router = place.run();
    place.apply("2s");
    let began = Instant::now();
    while place.mtu() != 1500 {
        assert!(began.elapsed() < Duration::from_secs(20), "nobody undid it");
        std::thread::sleep(Duration::from_millis(100));
    }
    router.kill().unwrap();
    router.wait().unwrap();
}
