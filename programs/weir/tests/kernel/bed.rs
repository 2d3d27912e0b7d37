//! A running router in one namespace and the kernel's networking in others, joined by cables.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_netlink::lab::{Cable, Lab, Port, ROUTER, Running, has_program, preflight};
use weir_netlink::netns::NetNs;

/// What `make test-kernel` sets: the router's program.
const PROGRAM: &str = "WEIR_KERNEL_TEST";
/// Long, because the kernel may run in an emulated machine.
const LIMIT: Duration = Duration::from_secs(90);

/// Whether the kernel does all this (arguments of `ip`, about a link `base` with the address 10.98.0.2/24); where
/// `make test-kernel` runs the cases, it must.
pub(crate) fn kernel_has(parts: &[&str]) -> bool {
    let missing = missing(parts);
    let Some(why) = missing else { return true };
    assert!(std::env::var_os(PROGRAM).is_none(), "{why}");
    eprintln!("skipped: {why}");
    false
}

fn missing(parts: &[&str]) -> Option<String> {
    if let Err(why) = preflight() {
        return Some(why);
    }
    if let Some(program) = ["ip", "ethtool", "ping", "traceroute"]
        .into_iter()
        .find(|program| !has_program(program))
    {
        return Some(format!("no {program}"));
    }
    let namespace = NetNs::new().unwrap();
    let ip = |line: &str| {
        namespace
            .command("ip")
            .args(line.split_whitespace())
            .output()
            .is_ok_and(|it| it.status.success())
    };
    for line in [
        "link add base type veth peer name other",
        "link set base up",
        "address add 10.98.0.2/24 dev base",
    ] {
        ip(line);
    }
    let part = parts.iter().find(|part| !ip(part))?;
    Some(format!("this kernel does no `ip {part}`"))
}

/// The router's program.
pub(crate) fn weir() -> String {
    std::env::var(PROGRAM).unwrap_or_else(|_| env!("CARGO_BIN_EXE_weir").to_owned())
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait(what: &str, mut until: impl FnMut() -> Result<(), String>) {
    let began = Instant::now();
    while let Err(now) = until() {
        assert!(began.elapsed() < LIMIT, "never: {what}; at last: {now}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The namespaces and the router.
pub(crate) struct Bed {
    router: Option<Running>,
    lab: Lab,
    folder: PathBuf,
}

impl Bed {
    /// A router and these hosts; a host's `eth0`, `eth1`, … is joined to the router's port `HOST-0`, `HOST-1`, ….
    pub(crate) fn new(name: &str, hosts: &[(&str, usize)]) -> Bed {
        let mut lab = Lab::new();
        lab.add_host(ROUTER).unwrap();
        for (host, cables) in hosts {
            lab.add_host(host).unwrap();
            for number in 0..*cables {
                let (near, far) = (format!("{host}-{number}"), format!("eth{number}"));
                lab.connect(&Cable::new(Port::new(ROUTER, &near), Port::new(host, &far)))
                    .unwrap();
            }
        }
        let folder =
            std::env::temp_dir().join(format!("weir-kernel-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let bed = Bed {
            router: None,
            lab,
            folder,
        };
        for (host, cables) in hosts {
            for number in 0..*cables {
                // What the kernel would leave to a device's hands never reaches a program that reads raw frames.
                bed.on(
                    host,
                    &format!(
                        "ethtool -K eth{number} tx off txvlan off tx-vlan-stag-hw-insert off gro on"
                    ),
                );
            }
        }
        bed
    }

    /// Moves a device of this namespace to a host, under another name.
    pub(crate) fn take(&self, host: &str, device: &str, name: &str) {
        // A process in the namespace names it for `ip`.
        let holder = self.spawn(host, "sleep 60");
        let to = holder.id().to_string();
        let moved = std::process::Command::new("ip")
            .args(["link", "set", device, "netns", &to, "name", name])
            .output()
            .unwrap();
        assert!(
            moved.status.success(),
            "{device} to {host}: {}",
            String::from_utf8_lossy(&moved.stderr)
        );
        holder.stop().unwrap();
    }

    /// Starts the router.
    pub(crate) fn start(&mut self, config: &str) {
        let history = self.folder.join("history").display().to_string();
        let file = self.folder.join("weir.yaml");
        std::fs::write(
            &file,
            format!("{config}history: {{directory: {history}}}\nbuffers: {{per-numa: 8192}}\n"),
        )
        .unwrap();
        let (file, socket) = (file.display().to_string(), self.socket());
        let router = self
            .lab
            .host(ROUTER)
            .unwrap()
            .spawn(&weir(), &["run", "-c", &file, "--socket", &socket])
            .unwrap();
        self.router
            .insert(router)
            .wait_for_output("runs:", LIMIT)
            .unwrap();
    }

    fn socket(&self) -> String {
        self.folder.join("weir.sock").display().to_string()
    }

    /// What `weir ARGUMENTS --json` says.
    pub(crate) fn ask(&self, arguments: &str) -> Value {
        let mut command = std::process::Command::new(weir());
        let output = command
            .args(["--socket", &self.socket()])
            .args(arguments.split_whitespace())
            .arg("--json")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Sets a kernel parameter below `/proc/sys/net` on a host.
    pub(crate) fn set(&self, host: &str, name: &str, value: &str) {
        self.lab
            .host(host)
            .unwrap()
            .set_parameter(name, value)
            .unwrap();
    }

    /// Runs a command on a host; what it says.
    #[track_caller]
    pub(crate) fn on(&self, host: &str, line: &str) -> String {
        let (said, success) = self.try_on(host, line);
        assert!(success, "{host}: {line}: {said}");
        said
    }

    /// What a command on a host says, and whether it ended well.
    pub(crate) fn try_on(&self, host: &str, line: &str) -> (String, bool) {
        let mut words = line.split_whitespace();
        let arguments: Vec<&str> = words.by_ref().skip(1).collect();
        let program = line.split_whitespace().next().unwrap();
        let done = self
            .lab
            .host(host)
            .unwrap()
            .run(program, &arguments, LIMIT)
            .unwrap();
        let success = done.success();
        (done.stdout + &done.stderr, success)
    }

    /// Starts a program on a host, which ends with what this gives.
    pub(crate) fn spawn(&self, host: &str, line: &str) -> Running {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.lab
            .host(host)
            .unwrap()
            .spawn(words[0], &words[1..])
            .unwrap()
    }

    /// A file of this bed's.
    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A request of `size` bytes is answered, the first or, where links and neighbours settle, the second.
    #[track_caller]
    pub(crate) fn ping(&self, from: &str, to: &str, size: usize) {
        let line = format!("ping -c 1 -W 10 -M do -s {size} {to}");
        let (first, answered) = self.try_on(from, &line);
        if !answered {
            let (second, answered) = self.try_on(from, &line);
            assert!(
                answered,
                "{from} to {to}, {size} bytes: {first}\n{second}\n{}",
                self.story()
            );
        }
    }

    /// All packets that left by an interface.
    pub(crate) fn sent(&self, interface: &str) -> u64 {
        self.interface(interface)["tx"]["packets"].as_u64().unwrap()
    }

    fn interface(&self, name: &str) -> Value {
        let all = self.ask("show interface");
        let one = all["interfaces"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["name"] == name);
        one.unwrap_or_else(|| panic!("{all}")).clone()
    }

    /// No request is answered.
    #[track_caller]
    pub(crate) fn no_ping(&self, from: &str, to: &str) {
        let (said, _) = self.try_on(from, &format!("ping -c 2 -i 0.2 -W 2 {to}"));
        assert!(said.contains(" 100% packet loss"), "{from} to {to}: {said}");
    }

    /// What the router has to say when something went wrong.
    pub(crate) fn story(&self) -> String {
        let said = self
            .router
            .as_ref()
            .map(|it| it.stderr_so_far())
            .unwrap_or_default();
        format!(
            "{}\n{}\n{said}",
            self.ask("show errors"),
            self.ask("show interface")
        )
    }

    /// Packets from and to one station that came in and left by an interface: without LACP's.
    pub(crate) fn packets(&self, interface: &str) -> (u64, u64) {
        let one = self.interface(interface);
        (
            one["rx"]["unicast"].as_u64().unwrap(),
            one["tx"]["unicast"].as_u64().unwrap(),
        )
    }

    /// Ends the router: all packets are accounted for, as it says itself.
    pub(crate) fn stop(mut self) {
        let done = self.router.take().unwrap().interrupt().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        drop(self.router.take());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
