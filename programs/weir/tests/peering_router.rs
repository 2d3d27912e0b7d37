//! The `peering` section as a part of the router's file: BIRD is planned, changed, confirmed and undone with the
//! interfaces.
//!
//! Null devices, and a BIRD without sessions and without the kernel's routes; no root is needed.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_peering::birdc::Control;
use weir_peering::cases;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a router and a BIRD, which go away with the value.
struct Place {
    folder: PathBuf,
    children: Vec<Child>,
}

impl Place {
    fn new() -> Place {
        let folder =
            std::env::temp_dir().join(format!("weir-peering-router-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("data")).unwrap();
        let mut place = Place {
            folder,
            children: Vec::new(),
        };
        place.file(
            "data/vrps.json",
            "{\"roas\": [{\"prefix\": \"198.51.100.0/24\", \"maxLength\": 24, \"asn\": 64500}]}",
        );
        place.file("bird.conf", "router id 192.0.2.1;\nprotocol device { }\n");
        let path = |name: &str| place.path(name);
        let bird = Command::new(cases::program())
            .args([
                "-f",
                "-c",
                &path("bird.conf"),
                "-s",
                &path("bird.ctl"),
                "-P",
                &path("bird.pid"),
            ])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        place.children.push(bird);
        place.wait_for("BIRD", || {
            Control::open(&place.folder.join("bird.ctl")).is_ok()
        });
        place
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    fn wait_for(&self, what: &str, done: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !done() {
            assert!(Instant::now() < until, "{what} did not happen");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn configuration(&self, mtu: u16, own: &str, more: &str) -> String {
        format!(
            "interfaces: {{ xe0: {{ device: {{ driver: 'null' }}, mtu: {mtu}, addresses: [ 203.0.113.1/24 ] }} }}\n\
             history: {{ directory: {} }}\n\
             peering:\n  asn: 64496\n  router-id: 192.0.2.1\n  prefixes: [ {own} ]\n  kernel: {{ export: false }}\n  \
             data: {{ folder: data }}\n  \
             control: {{ config: {}, socket: {}, state: {}, guard: 1s, replace: true }}\n{more}",
            self.path("history"),
            self.path("bird.conf"),
            self.path("bird.ctl"),
            self.path("state")
        )
    }

    fn start(&mut self) {
        let mut child = Command::new(WEIR)
            .args([
                "run",
                "-c",
                &self.path("old.yaml"),
                "--socket",
                &self.path("s.sock"),
            ])
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(self.folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        self.children.push(child);
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap();
        assert!(said.contains("runs:"), "{said}{log}");
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(WEIR)
            .args(["--socket", &self.path("s.sock"), "--json"])
            .args(arguments)
            .output()
            .unwrap()
    }

    fn weir(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?} {log}");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    fn apply(&self, name: &str, more: &[&str]) -> Output {
        let file = self.path(name);
        self.run(&[&["config", "apply", "-c", &file], more].concat())
    }

    /// The MTU, and whether BIRD announces a prefix.
    fn state(&self, own: &str) -> (u64, bool) {
        let mtu = self.weir(&["show", "interface"])["interfaces"][0]["mtu"]
            .as_u64()
            .unwrap();
        let mut control = Control::open(&self.folder.join("bird.ctl")).unwrap();
        (mtu, control.ask("show route").unwrap().contains(own))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const OLD: &str = "198.18.0.0/24";
const NEW: &str = "198.18.1.0/24";

#[test]
fn the_router_and_bird_are_changed_confirmed_and_undone_together() {
    if !cases::is_available() {
        println!("skipped: bird is not installed");
        return;
    }
    let mut place = Place::new();
    place.file("old.yaml", &place.configuration(1500, OLD, ""));
    place.file("new.yaml", &place.configuration(1400, NEW, ""));
    place.start();
    let done = |output: &Output| assert!(output.status.success(), "{output:?}");

    // The plan has both.
    let plan = place.weir(&["config", "plan", "-c", &place.path("new.yaml")]);
    let steps: Vec<&str> = plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["kind"].as_str())
        .collect();
    assert!(
        steps.contains(&"set-mtu") && steps.contains(&"set-peering"),
        "{plan}"
    );
    assert!(
        plan["peering"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it == "~ ROAs: 0 -> 1"),
        "{plan}"
    );

    // A change that waits and is given up.
    done(&place.apply("new.yaml", &["--confirm", "1h"]));
    assert_eq!(place.state(NEW), (1400, true));
    place.weir(&["config", "rollback"]);
    assert_eq!(place.state(NEW), (1500, false));

    // One deadline for both.
    done(&place.apply("new.yaml", &["--confirm", "2s"]));
    place.wait_for("the end of the deadline", || {
        place.state(NEW) == (1500, false)
    });

    // Confirmed in both: BIRD does not undo it later, and nothing waits there.
    done(&place.apply("new.yaml", &["--confirm", "1h"]));
    place.weir(&["config", "confirm"]);
    assert_eq!(place.state(NEW), (1400, true));
    assert!(!place.folder.join("state/pending.json").exists());
    assert!(place.folder.join("state/running.json").exists());

    // What BIRD refuses changes nothing in the router.
    place.file("broken.conf", "no such statement;\n");
    let broken = place.configuration(1300, OLD, "  include: { end: [ broken.conf ] }\n");
    place.file("broken.yaml", &broken);
    let output = place.apply("broken.yaml", &[]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("peering: bird:"), "{said}");
    assert_eq!(place.state(NEW), (1400, true));

    // A section that contradicts the router, or whose data is missing, is refused before anything changes.
    let far =
        "  neighbors:\n    - {asn: 64500, addresses: [192.0.2.9], prefixes: [198.51.100.0/24]}\n";
    place.file("far.yaml", &place.configuration(1300, OLD, far));
    let output = place.apply("far.yaml", &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(
        !output.status.success() && said.contains("192.0.2.9 is in the subnet of no interface"),
        "{said}"
    );
    let set = "  neighbors:\n    - {asn: 64500, addresses: [203.0.113.9], as-set: AS-NOWHERE}\n";
    place.file("set.yaml", &place.configuration(1300, OLD, set));
    let output = place.apply("set.yaml", &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(
        !output.status.success() && said.contains("AS-NOWHERE.4.json"),
        "{said}"
    );
    assert_eq!(place.state(NEW), (1400, true));
}
