//! The router as a service manager sees it: this test is the manager, with a socket for notifications.
//!
//! Needs no root: the router has interfaces that lead nowhere. Where a thread is to get stuck, `strace`
//! holds it up; without strace, that test says so in one line.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// SHA-256 of `do`, by sha256sum.
const HASH_OF_DO: &str = "ac0b52a2ae6ef99999bc08fb31e19188bf0085a4614204068e677e140e1458be";
const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Much longer than anything takes.
const LONG: Duration = Duration::from_secs(60);

/// A running router and its manager.
struct Managed {
    folder: PathBuf,
    notifications: UnixDatagram,
    router: Child,
}

impl Managed {
    fn start(name: &str, limit: Option<Duration>) -> Managed {
        Managed::start_with(name, limit, |file| file)
    }

    /// Starts a router whose file is `edit` of the usual one.
    fn start_with(name: &str, limit: Option<Duration>, edit: impl Fn(String) -> String) -> Managed {
        let folder =
            std::env::temp_dir().join(format!("weir-service-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("weir.yaml"), edit(config(&["a"]))).unwrap();
        let notifications = UnixDatagram::bind(folder.join("notify")).unwrap();
        let mut command = Command::new(WEIR);
        command
            .arg("run")
            .arg("-c")
            .arg(folder.join("weir.yaml"))
            .arg("--socket")
            .arg(folder.join("api.sock"));
        command
            .env("NOTIFY_SOCKET", folder.join("notify"))
            .env_remove("RUST_LOG")
            .env_remove("WATCHDOG_PID");
        match limit {
            Some(limit) => command.env("WATCHDOG_USEC", limit.as_micros().to_string()),
            None => command.env_remove("WATCHDOG_USEC"),
        };
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let router = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Managed {
            folder,
            notifications,
            router,
        }
    }

    fn write(&self, text: &str) {
        std::fs::write(self.folder.join("weir.yaml"), text).unwrap();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.router), signal).unwrap();
    }

    /// The next notification, if one comes in time.
    fn next(&self, patience: Duration) -> Option<String> {
        let mut bytes = [0; 4096];
        self.notifications.set_read_timeout(Some(patience)).unwrap();
        let length = self.notifications.recv(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    /// Waits for a notification with this line; other than signs of life, none may come before it.
    fn expect(&self, line: &str) -> String {
        loop {
            let said = self
                .next(LONG)
                .unwrap_or_else(|| panic!("no {line}: {}", self.log()));
            if said.lines().any(|it| it == line) {
                return said;
            }
            assert_eq!(said, "WATCHDOG=1\n", "{line} was expected");
        }
    }

    fn interfaces(&self) -> usize {
        let output = Command::new(WEIR)
            .arg("--socket")
            .arg(self.folder.join("api.sock"))
            .args(["show", "interface", "--json"])
            .output();
        let answer: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        answer["interfaces"].as_array().unwrap().len()
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        let _ = self.router.kill();
        let _ = self.router.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn config(names: &[&str]) -> String {
    let interfaces: String = names
        .iter()
        .map(|name| format!("  {name}: {{}}\n"))
        .collect();
    format!(
        "interfaces:\n{interfaces}workers: {{ idle: sleep }}\nbuffers: {{ per-numa: 1024, hugepages: off }}\n"
    )
}

#[test]
fn ready_reloading_stopping() {
    let mut it = Managed::start("life", None);
    assert!(
        it.expect("READY=1")
            .contains("STATUS=1 interface, 1 worker")
    );
    assert_eq!(it.interfaces(), 1);

    it.write(&config(&["a", "b"]));
    it.signal(Signal::HUP);
    assert!(it.expect("RELOADING=1").contains("\nMONOTONIC_USEC="));
    assert!(
        it.expect("READY=1")
            .contains("STATUS=2 interfaces, 1 worker")
    );
    assert_eq!(it.interfaces(), 2);

    it.write("interfaces:\n  a: { mtu: many }\n");
    it.signal(Signal::HUP);
    it.expect("RELOADING=1");
    assert!(it.expect("READY=1").contains("STATUS=2 interfaces"));
    assert_eq!(it.interfaces(), 2, "nothing was changed");
    let log = it.log();
    assert!(
        log.contains("weir.yaml:2:13") && log.contains("nothing is changed"),
        "{log}"
    );

    it.signal(Signal::TERM);
    it.expect("STOPPING=1");
    assert!(it.router.wait().unwrap().success());
    assert_eq!(
        it.next(Duration::from_millis(100)),
        None,
        "no signs of life were wanted"
    );
}

#[test]
fn a_router_reports_the_commit_that_it_was_built_from() {
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let git = Command::new("git")
        .args(["-C", tree, "rev-parse", "--short", "HEAD"])
        .output();
    let commit = match git {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        _ => return println!("skipped: this tree has no git"),
    };
    let it = Managed::start("commit", None);
    it.expect("READY=1");
    let output = Command::new(WEIR)
        .arg("--socket")
        .arg(it.folder.join("api.sock"))
        .args(["show", "version", "--json"])
        .output();
    let version: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(version["commit"], commit.trim());
}

#[test]
fn what_is_degraded_is_in_the_status_line() {
    let it = Managed::start_with("degraded", None, |file| {
        file.replace(
            "  a: {}",
            "  a: { device: { driver: af-xdp, name: nosuch } }",
        )
    });
    let said = it.expect("READY=1");
    assert!(
        said.contains("STATUS=1 interface, 1 worker, degraded: "),
        "{said}"
    );
    assert!(
        said.contains(" a: ") && said.contains("(weir show system)"),
        "{said}"
    );
}

#[test]
fn a_setting_that_is_wrong_is_refused_with_the_findings() {
    let it = Managed::start("findings", None);
    it.expect("READY=1");
    let run = |arguments: &[&str]| {
        let output = Command::new(WEIR)
            .arg("--socket")
            .arg(it.folder.join("api.sock"))
            .args(["set", "interface", "mtu", "99", "a"])
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(4));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    let (_, said) = run(&[]);
    assert!(said.starts_with("error: 99 is too small\n"), "{said}");
    assert!(said.contains("= path: interfaces.a.mtu"), "{said}");
    let (report, _) = run(&["--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["findings"][0]["path"], "interfaces.a.mtu");
}

#[test]
fn a_router_runs_without_the_keys_of_vppcfg_that_it_lacks() {
    let folder = std::env::temp_dir().join(format!("weir-vppcfg-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("weir.yaml");
    let text = config(&["a"]).replace("a: {}", "a: { mtu: 1500, device-type: dpdk }");
    std::fs::write(&file, text).unwrap();
    let start = |more: &[&str]| {
        Command::new(WEIR)
            .args(["run", "-c"])
            .arg(&file)
            .arg("--socket")
            .arg(folder.join("api.sock"))
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let refused = start(&[]).wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(4));
    let mut router = start(&["--skip-unsupported"]);
    let mut lines = BufReader::new(router.stdout.take().unwrap()).lines();
    let line = lines.next().expect("it runs").unwrap();
    kill_process(Pid::from_child(&router), Signal::INT).unwrap();
    assert!(router.wait().unwrap().success());
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(line.contains("runs:"), "{line}");
}

#[test]
fn a_socket_without_permission_is_named_as_such() {
    let it = Managed::start("permission", None);
    it.expect("READY=1");
    let socket = it.folder.join("api.sock");
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root without the capabilities that bypass permissions.
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-dac_override,-dac_read_search", WEIR]);
        command
    } else {
        Command::new(WEIR)
    };
    let output = command
        .arg("--socket")
        .arg(&socket)
        .args(["show", "version"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = format!(
        "weir: permission denied on the socket {}: ",
        socket.display()
    );
    assert!(said.starts_with(&expected), "{said}");
    assert!(!said.contains("is it running"), "{said}");
    assert_eq!(output.status.code(), Some(3));
}

/// The thread of this name.
fn thread(router: &Child, name: &str) -> String {
    let threads = std::fs::read_dir(format!("/proc/{}/task", router.id())).unwrap();
    let mut threads = threads.map(|thread| thread.unwrap().path());
    let found = threads.find(|thread| {
        std::fs::read_to_string(thread.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    });
    found
        .unwrap()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

#[test]
fn a_stuck_thread_ends_the_signs_of_life() {
    for (name, called) in [
        ("weir-worker-0", "worker 0"),
        ("weir-control", "the control thread"),
    ] {
        let it = Managed::start(name, Some(Duration::from_secs(2)));
        it.expect("READY=1");
        it.expect("WATCHDOG=1");
        it.expect("WATCHDOG=1");
        // Each system call of the thread takes a minute now.
        let id = thread(&it.router, name);
        let strace = Command::new("strace")
            .args([
                "-o",
                "/dev/null",
                "-e",
                "inject=all:delay_enter=60000000",
                "-p",
                &id,
            ])
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut strace) = strace else {
            return eprintln!("skipped: strace is not installed");
        };
        let began = Instant::now();
        while !it.log().contains(&format!(": {called}"))
            && began.elapsed() < LONG
            && strace.try_wait().unwrap().is_none()
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        if strace.try_wait().unwrap().is_some() {
            let mut said = String::new();
            strace
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut said)
                .unwrap();
            return eprintln!("skipped: {}", said.trim());
        }
        assert!(
            it.log()
                .contains(&format!("no progress for 500ms: {called}")),
            "{}",
            it.log()
        );
        while it.next(Duration::from_millis(1)).is_some() {}
        assert_eq!(
            it.next(Duration::from_secs(3)),
            None,
            "{name} is stuck, and signs of life come"
        );
        let _ = strace.kill();
        let _ = strace.wait();
    }
}

/// Writes a new certificate and its key over those of the router; returns a file with the certificate.
fn renew(it: &Managed, name: &str) -> PathBuf {
    let pair = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()])
        .unwrap()
        .self_signed(&pair)
        .unwrap();
    std::fs::write(it.folder.join("tls.pem"), certificate.pem()).unwrap();
    std::fs::write(it.folder.join("tls.key"), pair.serialize_pem()).unwrap();
    let copy = it.folder.join(name);
    std::fs::write(&copy, certificate.pem()).unwrap();
    copy
}

#[test]
fn renewed_certificates_are_used_after_a_reload_without_a_restart() {
    let mut it = Managed::start("renewed", None);
    it.expect("READY=1");
    let first = renew(&it, "first.pem");
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let folder = it.folder.display();
    let text = format!(
        "{}api:
  listen: [{{address: 127.0.0.1, port: {port}, tls: {{certificate: {folder}/tls.pem, key: {folder}/tls.key}}}}]
  tokens: [{{name: ada, sha256: {HASH_OF_DO}}}]
",
        config(&["a"])
    );
    it.signal(Signal::TERM);
    it.expect("STOPPING=1");
    it.router.wait().unwrap();
    it.write(&text);
    it.router = Command::new(WEIR)
        .arg("run")
        .arg("-c")
        .arg(it.folder.join("weir.yaml"))
        .arg("--socket")
        .arg(it.folder.join("api.sock"))
        .env("NOTIFY_SOCKET", it.folder.join("notify"))
        .env_remove("RUST_LOG")
        .env_remove("WATCHDOG_USEC")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(it.folder.join("log")).unwrap())
        .spawn()
        .unwrap();
    it.expect("READY=1");
    let ask = |ca: &PathBuf| {
        let output = Command::new(WEIR)
            .args(["--router", &format!("localhost:{port}"), "--ca"])
            .arg(ca)
            .args(["show", "version"])
            .env("WEIR_TOKEN", "do")
            .output()
            .unwrap();
        output.status.success()
    };
    assert!(ask(&first), "{}", it.log());
    // The file of the configuration stays as it is: only the certificate's files are new.
    let second = renew(&it, "second.pem");
    assert!(ask(&first) && !ask(&second), "not yet");
    it.signal(Signal::HUP);
    it.expect("RELOADING=1");
    it.expect("READY=1");
    assert!(ask(&second), "{}", it.log());
    assert!(!ask(&first));
    it.signal(Signal::TERM);
    it.expect("STOPPING=1");
    assert!(it.router.wait().unwrap().success());
}
