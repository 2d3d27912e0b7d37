//! The program as a shell sees it: output, standard error, exit codes, pipes.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_api::*;

/// A directory that goes away with the test.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("weir-cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("api.sock")
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A router with one interface and many drops.
struct OneInterface;

fn nothing<T: Default>() -> Result<T, ApiError> {
    Ok(T::default())
}

impl Router for OneInterface {
    fn version(&self) -> Result<Version, ApiError> {
        let version = "0.1.0".to_owned();
        Ok(Version {
            version,
            commit: None,
            pid: 7,
            started: 1,
            uptime: 2,
            workers: 1,
            config_file: None,
        })
    }

    fn interfaces(&self) -> Result<Interfaces, ApiError> {
        let wan = Interface {
            name: "wan".to_owned(),
            index: 1,
            kind: InterfaceKind::Port,
            parent: None,
            device: None,
            driver: Some("null".to_owned()),
            mac: None,
            mtu: 1500,
            admin: UpDown::Up,
            link: UpDown::Up,
            speed: 0,
            description: Some("a long description ".repeat(20)),
            addresses: vec!["192.0.2.1/24".parse().unwrap()],
            tentative: Vec::new(),
            duplicate: Vec::new(),
            vrf: None,
            unnumbered: None,
            l2xc: None,
            encapsulation: None,
            tag_rewrite: None,
            bridge_domain: None,
            mpls: false,
            urpf: None,
            sflow: false,
            rx: Traffic::default(),
            tx: Traffic::default(),
            rx_errors: 0,
            tx_errors: 0,
            drops: 0,
            drops_by: vec![],
        };
        Ok(Interfaces {
            interfaces: vec![wan],
        })
    }

    fn hardware(&self) -> Result<Hardware, ApiError> {
        nothing()
    }

    fn rx_placement(&self) -> Result<RxPlacement, ApiError> {
        nothing()
    }

    fn runtime(&self) -> Result<Runtime, ApiError> {
        nothing()
    }

    fn errors(&self) -> Result<Errors, ApiError> {
        let drop = |number| DropCounter {
            worker: Some(0),
            node: format!("node-{number}"),
            reason: "ttl-expired".to_owned(),
            severity: Severity::Info,
            sentence: "the packet's TTL ran out".to_owned(),
            interface: Some("wan".to_owned()),
            count: 1,
        };
        Ok(Errors {
            errors: (0..10_000).map(drop).collect(),
        })
    }

    fn neighbors(&self) -> Result<Neighbors, ApiError> {
        nothing()
    }

    fn routes(&self) -> Result<Routes, ApiError> {
        nothing()
    }

    fn sflow(&self) -> Result<Sflow, ApiError> {
        Err(ApiError::new(
            ErrorCode::Unavailable,
            "the agent is not up yet",
            "try again",
        ))
    }

    fn trace(&self) -> Result<Trace, ApiError> {
        let packet = |number| TracedPacket {
            number,
            worker: 0,
            interface: None,
            time: weir_api::Timestamp::from_unix_ms(1_700_000_000_000),
            length: 64,
            headers: String::new(),
            steps: vec![],
            incomplete: None,
        };
        Ok(Trace {
            filters: vec![],
            packets: (1..=5).map(packet).collect(),
        })
    }

    fn trace_add(&self, _request: &TraceRequest) -> Result<(), ApiError> {
        Ok(())
    }

    fn trace_clear(&self) -> Result<(), ApiError> {
        Ok(())
    }

    fn totals(&self) -> Result<Totals, ApiError> {
        nothing()
    }

    fn config_dump(&self) -> Result<ConfigDump, ApiError> {
        Ok(ConfigDump {
            yaml: "interfaces: {}\n".to_owned(),
        })
    }

    fn buffers(&self) -> Result<Buffers, ApiError> {
        let pool = BufferPool {
            pool: 0,
            buffers: 16384,
            free: 4096,
            buffer_bytes: 2560,
            hugepages: true,
            failures: 0,
        };
        Ok(Buffers { pools: vec![pool] })
    }

    fn fib_summary(&self) -> Result<FibSummary, ApiError> {
        let routes = vec![RouteCount {
            source: RouteSource::Static,
            count: 1_000_000,
        }];
        Ok(FibSummary {
            tables: vec![FibTable {
                table: 0,
                vrf: None,
                family: Family::Ipv4,
                routes,
                memory_bytes: 0,
            }],
            adjacencies: 1,
            groups: 2,
            memory_bytes: 40 << 20,
        })
    }

    fn config(&self) -> Result<serde_json::Value, ApiError> {
        Ok(serde_json::json!({ "interfaces": {} }))
    }

    fn clear(&self, _what: Clear) -> Result<(), ApiError> {
        Ok(())
    }
}

fn weir(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command
        .args(line.split_whitespace())
        .env_remove("WEIR_SOCKET")
        .env_remove("NO_COLOR");
    command
}

fn run(line: &str) -> (i32, String, String) {
    finished(weir(line).output().unwrap())
}

fn finished(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn ask(socket: &Path, line: &str) -> (i32, String, String) {
    finished(weir(line).env("WEIR_SOCKET", socket).output().unwrap())
}

#[test]
fn what_a_router_says_is_printed() {
    let place = Place::new();
    let _server = Server::start(&place.socket(), Arc::new(OneInterface)).unwrap();
    let socket = place.socket();
    let (code, text, _) = ask(&socket, "show int");
    assert_eq!(code, 0);
    assert!(
        text.starts_with("Interface  Idx  Admin") && !text.contains('\x1b') && !text.contains('…'),
        "{text}"
    );
    let (code, text, _) = run(&format!(
        "--socket {} show interface wan --json",
        socket.display()
    ));
    assert_eq!(
        (code, serde_json::from_str::<Interfaces>(&text).unwrap()),
        (0, OneInterface.interfaces().unwrap())
    );
    assert_eq!(ask(&socket, "show errors").1.lines().count(), 10_001);
    assert!(ask(&socket, "show trace --max 2").1.starts_with("Packet 4"));
    let (code, text, _) = ask(&socket, "trace add any 3 --interface wan");
    assert_eq!(
        (code, text.as_str()),
        (
            0,
            "recording 3 packets received on wan; `weir trace show` shows what was recorded\n"
        )
    );
    assert_eq!(
        ask(&socket, "clear interface"),
        (0, String::new(), String::new())
    );
    for what in [
        "hardware",
        "rx-placement",
        "runtime",
        "neighbors",
        "route",
        "ip fib",
        "totals",
        "config",
        "version",
        "interface addr",
        "buffers",
        "ip fib summary",
    ] {
        let (code, text, error) = ask(&socket, &format!("show {what}"));
        assert!(
            code == 0 && !text.is_empty() && error.is_empty(),
            "{what}: {code} {text} {error}"
        );
        let (code, text, _) = ask(&socket, &format!("show {what} --json"));
        assert!(
            code == 0
                && serde_json::from_str::<serde_json::Value>(&text)
                    .unwrap()
                    .is_object(),
            "{what}: {text}"
        );
    }
}

#[test]
fn refusals_are_one_sentence() {
    let place = Place::new();
    let _server = Server::start(&place.socket(), Arc::new(OneInterface)).unwrap();
    let socket = place.socket();
    assert_eq!(
        ask(&socket, "show interface lan"),
        (
            1,
            String::new(),
            "weir: no interface \"lan\" (known: wan)\n".to_owned()
        )
    );
    assert_eq!(
        ask(&socket, "show sflow"),
        (
            1,
            String::new(),
            "weir: the agent is not up yet (try again)\n".to_owned()
        )
    );
    let nobody = place.0.join("nobody.sock");
    let sentence = format!(
        "weir: no weir answers on {} (is it running? start it with `weir run -c FILE`, or say --socket)\n",
        nobody.display()
    );
    assert_eq!(
        ask(&nobody, "show version"),
        (3, String::new(), sentence.clone())
    );
    drop(UnixListener::bind(&nobody).unwrap());
    assert_eq!(ask(&nobody, "show version"), (3, String::new(), sentence));
    let (code, _, error) = ask(&socket, "show nonsense");
    assert!(
        code == 2 && error.contains("unrecognized subcommand"),
        "{error}"
    );
}

/// `weir show errors | head -1`: the reader goes away while we write.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    let _server = Server::start(&place.socket(), Arc::new(OneInterface)).unwrap();
    for line in [
        "show errors",
        "show errors --json",
        "completions bash",
        "--help",
    ] {
        let mut child = weir(line)
            .env("WEIR_SOCKET", place.socket())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let (code, _, error) = finished(child.wait_with_output().unwrap());
        assert_eq!((code, error.as_str()), (0, ""), "{line}");
    }
}

/// On a terminal (made by script(1), which Debian always has) tables fit, and colours obey NO_COLOR.
#[test]
fn a_terminal_is_fitted() {
    let place = Place::new();
    let _server = Server::start(&place.socket(), Arc::new(OneInterface)).unwrap();
    let on_terminal = |before: &str| {
        let line = format!(
            "stty cols 100; {before} {} --socket {} show interface",
            env!("CARGO_BIN_EXE_weir"),
            place.socket().display()
        );
        let mut script = Command::new("script");
        script
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        let (code, text, _) = finished(script.output().unwrap());
        assert_eq!(code, 0, "{text}");
        text.replace('\r', "")
    };
    let plain = on_terminal("NO_COLOR=1");
    assert!(!plain.contains('\x1b') && plain.contains('…'), "{plain}");
    assert!(
        plain.lines().all(|line| line.chars().count() <= 100),
        "{plain}"
    );
    let coloured = on_terminal("");
    assert!(coloured.contains("\x1b[32mup\x1b[0m"), "{coloured}");
}

#[test]
fn completions_are_written_for_each_shell() {
    for (shell, mark) in [
        ("bash", "complete -F _weir"),
        ("zsh", "#compdef weir"),
        ("fish", "complete -c weir -f"),
    ] {
        let (code, text, _) = run(&format!("completions {shell}"));
        assert!(
            code == 0 && text.contains(mark) && text.contains(" complete "),
            "{shell}"
        );
    }
}

#[test]
fn config_check_tells_what_is_wrong_and_where() {
    let place = Place::new();
    let good = place.file("good.yaml", "interfaces:\n  wan:\n    mtu: 1500\n");
    let (code, text, _) = run(&format!("config check -c {good}"));
    assert_eq!(code, 0);
    assert!(
        text.starts_with(&format!("{good} is right: 1 interface, 0 routes")),
        "{text}"
    );
    let bad = place.file(
        "bad.yaml",
        "interfaces:\n  wan:\n    mtu: many\n    colour: red\n",
    );
    let (code, text, error) = run(&format!("config check -c {bad}"));
    assert_eq!((code, text.as_str()), (4, ""));
    assert!(
        error.contains(&format!("{bad}:3:")) && error.contains(&format!("{bad}:4:")),
        "{error}"
    );
    assert!(
        error.ends_with(&format!("weir: {bad} is refused: 2 errors\n")),
        "{error}"
    );
    let (code, text, error) = run(&format!("config check --json -c {bad}"));
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, error.as_str(), &report["valid"]),
        (4, "", &serde_json::Value::Bool(false))
    );
    assert_eq!(
        (
            report["findings"][0]["line"].as_u64(),
            report["findings"].as_array().map(Vec::len)
        ),
        (Some(3), Some(2))
    );
    let (code, _, error) = run("config check -c /nonexistent.yaml");
    assert_eq!(
        (code, error.as_str()),
        (
            1,
            "weir: cannot read /nonexistent.yaml: No such file or directory (os error 2)\n"
        )
    );
    assert_eq!(run("config check -c /dev/zero").0, 4);
}

#[test]
fn config_check_reads_standard_input() {
    let mut child = weir("config check -c -")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"interfaces: [")
        .unwrap();
    let (code, _, error) = finished(child.wait_with_output().unwrap());
    assert!(
        code == 4 && error.contains("--> standard input:2:1"),
        "{error}"
    );
}
