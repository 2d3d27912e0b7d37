//! A router in a process of its own, for these tests.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Nothing takes longer, also on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(40);

#[track_caller]
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !done() {
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within {LONG:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The most buffers that a worker keeps at hand for its next packets: they are not free, and not lost.
pub(crate) const AT_HAND: u64 = 1280;

/// A folder that goes away with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "weir-memif-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running router with a name in a folder; ended at the end of the test.
pub(crate) struct Weir {
    child: Child,
    socket: String,
    log: String,
    config: String,
}

impl Weir {
    pub(crate) fn start(folder: &Folder, name: &str, config: &str) -> Weir {
        let file = |ending: &str| folder.file(&format!("{name}.{ending}"));
        let config = format!(
            "{config}\nlogging: {{ level: info }}\nhistory: {{ directory: {} }}\n",
            file("history")
        );
        std::fs::write(file("yaml"), config).unwrap();
        let (socket, log) = (file("api.sock"), file("log"));
        let mut child = Command::new(WEIR)
            .args(["run", "-c", &file("yaml"), "--socket", &socket])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        let weir = Weir {
            child,
            socket,
            log,
            config: file("yaml"),
        };
        assert!(said.contains("runs:"), "{said}{}", weir.log());
        weir
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn output(&self, arguments: &[&str]) -> String {
        let output = Command::new(WEIR)
            .args(["--socket", &self.socket])
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}\n{}",
            String::from_utf8_lossy(&output.stderr),
            self.log()
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// What `weir show WHAT` says to people.
    pub(crate) fn shown(&self, what: &str) -> String {
        self.output(&["show", what])
    }

    /// What `weir show WHAT --json` says.
    pub(crate) fn show(&self, what: &str) -> Value {
        serde_json::from_str(&self.output(&["show", what, "--json"])).unwrap()
    }

    /// Changes the configuration by replacing text in the file.
    pub(crate) fn change(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(&self.config).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(&self.config, text.replace(from, to)).unwrap();
        self.output(&["config", "apply", "-c", &self.config]);
    }

    /// The row of an interface.
    pub(crate) fn interface(&self, name: &str) -> Value {
        let all = self.show("interface");
        all["interfaces"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["name"] == name)
            .unwrap_or_else(|| panic!("no {name}: {all}"))
            .clone()
    }

    /// Packets of an interface, received and sent.
    pub(crate) fn packets(&self, name: &str) -> (u64, u64) {
        let row = self.interface(name);
        (
            row["rx"]["packets"].as_u64().unwrap(),
            row["tx"]["packets"].as_u64().unwrap(),
        )
    }

    pub(crate) fn link_is_up(&self, name: &str) -> bool {
        self.interface(name)["link"] == "up"
    }

    /// The memif port of an interface.
    pub(crate) fn memif(&self, name: &str) -> Value {
        let all = self.show("memif");
        all["ports"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["interface"] == name)
            .unwrap_or_else(|| panic!("no {name}: {all}"))
            .clone()
    }

    /// How often peers were parted from for this reason.
    pub(crate) fn disconnects(&self, name: &str, reason: &str) -> u64 {
        let port = self.memif(name);
        let reasons = port["disconnects"].as_array().unwrap();
        reasons
            .iter()
            .find(|it| it["reason"] == reason)
            .map_or(0, |it| it["count"].as_u64().unwrap())
    }

    /// Drops by reason, those that are not 0.
    pub(crate) fn drops(&self) -> Value {
        self.show("totals")["drops"].clone()
    }

    /// Panics when a packet was dropped.
    #[track_caller]
    pub(crate) fn assert_nothing_dropped(&self) {
        let drops = self.drops();
        assert!(drops.as_object().unwrap().is_empty(), "{drops}");
    }

    /// Whether so many packets left by an interface; panics when one was dropped.
    #[track_caller]
    pub(crate) fn has_sent(&self, name: &str, packets: u64) -> bool {
        self.assert_nothing_dropped();
        self.packets(name).1 == packets
    }

    /// Buffers that are not free.
    pub(crate) fn buffers_in_use(&self) -> u64 {
        let pool = self.show("buffers")["pools"][0].clone();
        pool["buffers"].as_u64().unwrap() - pool["free"].as_u64().unwrap()
    }

    /// Follows changes and links in a file, from now on.
    pub(crate) fn follow(&self, folder: &Folder) -> Follower {
        let file = folder.file("events");
        let child = Command::new(WEIR)
            .args([
                "--socket",
                &self.socket,
                "--json",
                "monitor",
                "events",
                "config",
                "link",
            ])
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(&file).unwrap())
            .spawn()
            .unwrap();
        let follower = Follower { child, file };
        let mut turn = false;
        wait_for("somebody listens", || {
            turn = !turn;
            let (from, to) = if turn {
                ("level: info", "level: debug")
            } else {
                ("level: debug", "level: info")
            };
            self.change(from, to);
            !follower.reported().is_empty()
        });
        follower
    }

    /// As the power goes.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as an operator would; what it said.
    pub(crate) fn stop(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success(), "{}", self.log());
        self.log()
    }
}

/// A running `weir monitor events`.
pub(crate) struct Follower {
    child: Child,
    file: String,
}

impl Follower {
    fn reported(&self) -> String {
        std::fs::read_to_string(&self.file).unwrap()
    }

    /// The links of an interface, in the order in which they were reported.
    pub(crate) fn links(&self, interface: &str) -> Vec<String> {
        let reported = self.reported();
        // The last line may be half written.
        let whole = reported.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let events = whole
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_this = events.map(|event| {
            if event["data"].is_object() {
                event["data"].clone()
            } else {
                event
            }
        });
        let links = of_this.filter(|event| event["interface"] == interface);
        links
            .filter_map(|event| event["link"].as_str().map(str::to_owned))
            .collect()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Weir {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
