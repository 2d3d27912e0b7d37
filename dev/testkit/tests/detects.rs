//! The runner notices what is not as written: a scenario that passes is copied, bent, and must fail.

use std::path::{Path, PathBuf};

use weir_testkit::run::Scenario;
use weir_testkit::{captures, folder};

/// A copy of a scenario that goes when the test ends.
struct Copy(PathBuf);

impl Copy {
    fn of(scenario: &str, test: &str) -> Copy {
        let copy =
            std::env::temp_dir().join(format!("weir-scenario-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&copy);
        std::fs::create_dir_all(&copy).unwrap();
        for entry in std::fs::read_dir(folder().join(scenario)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
        Copy(copy)
    }

    fn bend(&self, file: &str, from: &str, to: &str) -> &Copy {
        let path = self.0.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from:?}");
        std::fs::write(path, text.replacen(from, to, 1)).unwrap();
        self
    }

    /// What the runner says, with captures made anew from the text.
    fn run(&self) -> Result<(), String> {
        let scenario = Scenario::read(&self.0)?;
        captures::write(&self.0, &scenario.script)?;
        scenario.run(false)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
fn fails_with(result: Result<(), String>, words: &[&str]) {
    let error = result.unwrap_err();
    for word in words {
        assert!(error.contains(word), "no {word:?} in:\n{error}");
    }
}

#[test]
fn an_octet_that_differs_is_shown_with_its_field() {
    let copy = Copy::of("ip4-ttl-expired", "octet");
    assert_eq!(copy.run(), Ok(()));
    copy.bend("packets.txt", "  0b 00  ", "  0b 01  ");
    fails_with(
        copy.run(),
        &["octet 35", "ICMP time exceeded in transit", "^^"],
    );
}

#[test]
fn a_frame_too_many_and_one_that_never_leaves() {
    let copy = Copy::of("arp-unanswered", "never");
    copy.bend(
        "packets.txt",
        "out right at 1.8: third question",
        "out left at 1.8: third question",
    );
    fails_with(
        copy.run(),
        &[
            "right: left at 1.",
            "unexpected",
            "left: never left: host unreachable",
        ],
    );
}

#[test]
fn a_frame_at_another_time() {
    let copy = Copy::of("arp-unanswered", "time");
    copy.bend(
        "packets.txt",
        "out right at 0.9: second",
        "out right at 0.4: second",
    );
    fails_with(copy.run(), &["second question", "expected at 0.4 s"]);
}

#[test]
fn a_counter_that_nobody_expected() {
    let copy = Copy::of("ip4-df", "counter");
    copy.bend("counters.json", "\"originated\": 1", "\"originated\": 2");
    fails_with(
        copy.run(),
        &["counter totals › originated: expected 2, counted 1"],
    );
    let copy = Copy::of("frames-for-nobody", "counter");
    copy.bend(
        "counters.json",
        "\"eth-input wrong-mac\": 1",
        "\"eth-input wrong-mac\": 0",
    );
    fails_with(
        copy.run(),
        &["counter drops › left › eth-input wrong-mac: expected 0, counted 1"],
    );
}

#[test]
fn captures_that_are_not_the_text() {
    let copy = Copy::of("ip4-df", "captures");
    copy.bend(
        "packets.txt",
        "fragmentation needed, next-hop MTU 580\n  02:00:00:00:01:02",
        "x\n  02:00:00:00:01:03",
    );
    let scenario = Scenario::read(copy.path()).unwrap();
    std::fs::write(copy.path().join("right.in.pcap"), b"").unwrap();
    fails_with(
        scenario.run(false),
        &[
            "left.out.pcap is not what",
            "right.in.pcap is not in",
            "cargo xtask scenario make",
        ],
    );
}
