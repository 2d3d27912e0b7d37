//! The kernel's first namespace, which alone has `NET_DM`, and programs in it that listen to the kernel.

use std::process::{Child, Command, Stdio};

use super::bed::{Bed, wait};

/// What is added to the numbers of interfaces that have no pair among those of Linux.
pub(crate) const OFFSET: u64 = 1_000_000_000;

/// The first namespace under a name, with a monitor of netlink in it. This process is there. Name and monitor are gone
/// with this value.
pub(crate) struct FirstNamespace {
    pub(crate) name: String,
    children: Vec<Child>,
}

impl FirstNamespace {
    pub(crate) fn new() -> FirstNamespace {
        let first = FirstNamespace {
            name: format!("weir-first-{}", std::process::id()),
            children: Vec::new(),
        };
        run(&format!(
            "ip netns attach {} {}",
            first.name,
            std::process::id()
        ));
        run("ip link add weir-monitor type nlmon");
        run("ip link set weir-monitor up");
        run("ip link set lo up");
        first
    }

    /// Starts a program whose output goes to a file, and waits for a word in it.
    pub(crate) fn spawn(&mut self, line: &str, file: &str, word: &str) {
        let to = || {
            std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(file)
                .unwrap()
        };
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        self.children.push(
            command
                .args(words)
                .stdin(Stdio::null())
                .stdout(to())
                .stderr(to())
                .spawn()
                .unwrap(),
        );
        wait(line, || {
            let said = std::fs::read_to_string(file).unwrap();
            if said.contains(word) {
                Ok(())
            } else {
                Err(said)
            }
        });
    }
}

impl Drop for FirstNamespace {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for line in [
            format!("ip netns delete {}", self.name),
            "ip link delete weir-monitor".to_owned(),
        ] {
            let _ = Command::new("sh").args(["-c", &line]).status();
        }
    }
}

/// What a command in the first namespace says.
pub(crate) fn run(line: &str) -> String {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap())
        .args(words)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The interface's number, as the router says it.
pub(crate) fn index(bed: &Bed, name: &str) -> u64 {
    let all = bed.ask("show interface");
    let one = all["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == name);
    one.unwrap()["index"].as_u64().unwrap()
}
