//! A router of its own for a test, without any device: packets are made in memory, routed, sampled
//! and swallowed. No root is needed. Its folder and its process go away with the test.

// Each test program uses some of it.
#![allow(dead_code, reason = "a module that several test programs share")]

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

/// A folder that goes away with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "weir-{name}-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The same, as an argument of a program.
    pub(crate) fn argument(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running router, and the collector that it sends its samples to.
pub(crate) struct Router {
    pub(crate) folder: Folder,
    child: Child,
    _collector: UdpSocket,
}

impl Router {
    /// Starts one in a folder, with the usual configuration and `more` lines of it.
    pub(crate) fn start(folder: Folder, more: &str) -> Router {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        let config = folder.file("weir.yaml");
        std::fs::write(
            &config,
            configuration(&folder, collector.local_addr().unwrap().port(), more),
        )
        .unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["run", "-c"])
            .arg(&config)
            .arg("--socket")
            .arg(folder.file("weir.sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.file("log")).unwrap())
            .spawn()
            .unwrap();
        let said = lines(child.stdout.take().unwrap());
        let router = Router {
            folder,
            child,
            _collector: collector,
        };
        let until = Instant::now() + LIMIT;
        loop {
            match said.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains("runs:") => return router,
                Ok(_) => {}
                Err(why) => panic!("the router does not start: {why}: {}", router.log()),
            }
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.file("weir.sock")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.file("weir.yaml")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said on its standard error.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.file("log")).unwrap_or_default()
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Most packets are routed; some find no route, some no neighbour, so that drops are counted.
fn configuration(folder: &Folder, collector: u16, more: &str) -> String {
    let history = folder.file("history").display().to_string();
    format!(
        "interfaces:
  source:
    device:
      driver: generator
      streams:
        - {{name: routed, rate: 3000, source: 10.0.0.2-10.0.0.200, destination: 198.51.100.2}}
        - {{name: no-route, rate: 100, source: 10.0.0.2, destination: 192.0.2.1}}
        - {{name: no-neighbor, rate: 100, source: 10.0.0.2, destination: 198.51.100.99}}
    addresses: [10.0.0.1/24]
    sflow: true
  sink:
    device: {{driver: null}}
    addresses: [198.51.100.1/24]
neighbors:
  - {{interface: sink, address: 198.51.100.2, mac: 02:00:00:00:00:02}}
routes:
  - {{prefix: 203.0.113.0/24, via: 198.51.100.2}}
sflow: {{sampling-rate: 10, polling-interval: 1, collectors: [{{address: 127.0.0.1, port: {collector}}}]}}
history: {{directory: {history}}}
{more}"
    )
}

/// A token, and what a configuration says of it.
pub(crate) const TOKEN: (&str, &str) = (
    "correct horse battery staple",
    "c4bbcb1fbec99d65bf59d85c8cb62ee2db963f0fe106f483d9afa73bd4e39a8a",
);

/// The lines of a stream, read by a thread of their own until its end.
fn lines(stream: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

/// Whether a program can be started; says in one line when not.
pub(crate) fn has_program(name: &str) -> bool {
    let has = Command::new(name)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|it| it.success());
    if !has {
        eprintln!("skipped: no {name}");
    }
    has
}

/// A Python environment in a folder with these packages; says in one line why not.
pub(crate) fn python_environment(folder: &Folder, packages: &[&str]) -> Option<PathBuf> {
    if !has_program("python3") {
        return None;
    }
    let home = folder.file("venv");
    let python = home.join("bin/python");
    let made = Command::new("python3")
        .args(["-m", "venv"])
        .arg(&home)
        .output()
        .unwrap();
    if !made.status.success() {
        eprintln!(
            "skipped: no Python environment can be made: {}",
            String::from_utf8_lossy(&made.stdout).trim()
        );
        return None;
    }
    let installed = Command::new(&python)
        .args(["-m", "pip", "install", "-q", "--disable-pip-version-check"])
        .args(packages)
        .output()
        .unwrap();
    if !installed.status.success() {
        let why = String::from_utf8_lossy(&installed.stderr);
        eprintln!(
            "skipped: {packages:?} cannot be installed: {}",
            why.lines().last().unwrap_or_default()
        );
        return None;
    }
    Some(home.join("bin"))
}

/// A TCP port of this machine that nobody listens on now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// The repository.
pub(crate) fn tree() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
