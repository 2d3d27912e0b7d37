//! The interactive shell through a pseudo-terminal, in front of a real router process.
//!
//! script(1), which Debian always has, makes the terminal: what is written to it are keys, what it
//! prints is the screen. The router has null devices only, so that nothing here needs root.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(30);
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const UP: &str = "\x1b[A";

/// A directory that goes away with the test, and what a router leaves elsewhere under its name.
struct Place {
    folder: PathBuf,
    name: String,
}

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "weir-shell-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(&name);
        fs::create_dir_all(&folder).unwrap();
        Self { folder, name }
    }

    fn socket(&self) -> PathBuf {
        self.folder.join(format!("{}.sock", self.name))
    }

    fn history(&self) -> PathBuf {
        self.folder.join(".local/state/weir/history")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::remove_file(format!("/var/lib/weir/{}.ifindex", self.name));
    }
}

/// A running router with three interfaces and a route.
struct Router(Child);

impl Router {
    fn start(place: &Place) -> Self {
        let config = place.folder.join("weir.yaml");
        let text = "interfaces:\n  wan: { device: { driver: null }, addresses: [ 192.0.2.1/24 ], description: to the world }\n  \
                    lan0: { device: { driver: null }, addresses: [ 10.0.0.1/24 ] }\n  lan1: { device: { driver: null } }\n\
                    routes: [ { prefix: 198.51.100.0/24, via: 192.0.2.254 } ]\n";
        // `null` is YAML's word for nothing: the driver's name needs quotes.
        let history = format!(
            "history: {{ directory: {} }}\n",
            place.folder.join("history").display()
        );
        fs::write(
            &config,
            text.replace("driver: null", "driver: \"null\"") + &history,
        )
        .unwrap();
        let mut command = Command::new(WEIR);
        command
            .args(["run", "-c"])
            .arg(&config)
            .arg("--socket")
            .arg(place.socket());
        let router = Self(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let began = Instant::now();
        while !place.socket().exists() {
            assert!(began.elapsed() < LIMIT, "the router does not start");
            thread::sleep(Duration::from_millis(20));
        }
        router
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-TERM", &self.0.id().to_string()])
            .status();
        let began = Instant::now();
        while began.elapsed() < LIMIT && matches!(self.0.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell on a terminal of 100 columns.
struct Terminal {
    child: Child,
    keys: Option<ChildStdin>,
    screen: Arc<Mutex<Vec<u8>>>,
    /// What was looked at already, in characters.
    seen: usize,
}

impl Terminal {
    fn open(place: &Place, socket: &Path) -> Self {
        Self::open_with(place, socket, 40, "cat")
    }

    /// A terminal of so many rows, with this pager.
    fn open_with(place: &Place, socket: &Path, rows: u16, pager: &str) -> Self {
        let line = format!(
            "stty cols 100 rows {rows}; exec {WEIR} --socket {}",
            socket.display()
        );
        let mut script = Command::new("script");
        script
            .args(["-qefc", &line, "/dev/null"])
            .env("TERM", "xterm")
            .env("HOME", &place.folder)
            .env("PAGER", pager)
            .env("NO_COLOR", "1");
        script
            .env_remove("XDG_STATE_HOME")
            .env_remove("WEIR_SOCKET");
        let mut child = script
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let screen = Arc::new(Mutex::new(Vec::new()));
        let (mut output, written) = (child.stdout.take().unwrap(), Arc::clone(&screen));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                written.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        let keys = child.stdin.take();
        let mut terminal = Self {
            child,
            keys,
            screen,
            seen: 0,
        };
        terminal.expect("quit leaves");
        terminal.prompt();
        terminal
    }

    fn press(&mut self, keys: &str) {
        let to = self.keys.as_mut().unwrap();
        to.write_all(keys.as_bytes()).unwrap();
        to.flush().unwrap();
    }

    /// The screen without what commands the terminal.
    fn text(&self) -> String {
        let bytes = self.screen.lock().unwrap().clone();
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        let mut plain = String::new();
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            if c != '\x1b' {
                plain.push(c);
            } else if characters.next() == Some('[') {
                // ECMA-48 5.4: a control sequence ends with one of these.
                characters.by_ref().find(|c| ('\x40'..='\x7e').contains(c));
            }
        }
        plain
    }

    /// Waits until the screen shows this after what was looked at before; gives what came before it.
    fn expect(&mut self, wanted: &str) -> String {
        let began = Instant::now();
        loop {
            let text: String = self.text().chars().skip(self.seen).collect();
            if let Some(at) = text.find(wanted) {
                self.seen += text[..at + wanted.len()].chars().count();
                return text[..at].to_owned();
            }
            assert!(began.elapsed() < LIMIT, "no {wanted:?} in {text:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn prompt(&mut self) -> String {
        self.expect("> ")
    }

    /// Presses Tab until the screen shows this: on a busy machine the router may answer too late for
    /// the first one.
    fn tab(&mut self, wanted: &str) {
        let began = Instant::now();
        loop {
            self.press("\t");
            let pressed = Instant::now();
            while pressed.elapsed() < Duration::from_millis(1500) {
                if self
                    .text()
                    .chars()
                    .skip(self.seen)
                    .collect::<String>()
                    .contains(wanted)
                {
                    self.expect(wanted);
                    return;
                }
                thread::sleep(Duration::from_millis(10));
            }
            assert!(
                began.elapsed() < LIMIT,
                "no {wanted:?} in {:?}",
                self.text()
            );
        }
    }

    fn end(mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                began.elapsed() < LIMIT,
                "the shell does not end: {:?}",
                self.text()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.keys.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn shell() -> (Place, Router, Terminal) {
    let place = Place::new();
    let router = Router::start(&place);
    let terminal = Terminal::open(&place, &place.socket());
    (place, router, terminal)
}

#[test]
fn tab_completes_words_and_names() {
    let (_place, _router, mut terminal) = shell();
    terminal.press("sho\tint\tw");
    terminal.tab("show interface wan ");
    terminal.press("\r");
    terminal.expect("wan (index");
    terminal.expect("to the world");
    terminal.prompt();
    terminal.press("show hardware lan");
    terminal.tab("lan0");
    terminal.expect("lan1");
    terminal.press("1\r");
    terminal.expect("lan1 on");
    terminal.prompt();
    terminal.press("trace add ip4-loo");
    terminal.tab("ip4-lookup ");
    terminal.press("5\r");
    terminal.expect("recording 5 packets from node ip4-lookup on");
    terminal.prompt();
    terminal.press("show ip fib 198");
    terminal.tab("198.51.100.0/24 ");
    terminal.press("\r");
    terminal.expect("static");
}

#[test]
fn a_question_mark_answers_at_once_and_the_line_goes_on() {
    let (_place, _router, mut terminal) = shell();
    terminal.press("show interface wa");
    terminal.tab("wan ");
    terminal.press(CTRL_C);
    terminal.prompt();
    terminal.press("show ?");
    terminal.expect("Drops by node, reason and interface");
    terminal.expect("> show ");
    terminal.press("vers\r");
    terminal.expect("process ");
    terminal.prompt();
    terminal.press("sh int ?");
    terminal.expect("Only this interface, in detail");
    terminal.expect("to the world");
    terminal.expect("does it");
    terminal.expect("> sh int ");
    terminal.press("wan\r");
    terminal.expect("wan (index");
    terminal.prompt();
    // In quotes it is a character like any other.
    terminal.press("show interface 'a?'\r");
    terminal.expect("no interface \"a?\"");
}

#[test]
fn words_may_be_shortened() {
    let (_place, _router, mut terminal) = shell();
    for (line, wanted) in [
        ("sh int", "Interface  Idx"),
        ("sh int addr", "192.0.2.1/24"),
        ("sh hard", "driver null"),
        ("sh err", "no drops"),
        ("sh run", "TSC"),
        ("sh ip fib", "198.51.100.0/24"),
        ("sh ip nei", "192.0.2.254"),
        ("sh tr", "no packets recorded"),
        ("tr add any 5", "recording 5 packets"),
        ("sh r", "is not clear: rx-placement, runtime, route"),
        ("show nonsense", "unrecognized subcommand"),
        ("run -c x", "outside of this shell"),
        ("show 'x", "nobody closed"),
    ] {
        terminal.press(&format!("{line}\r"));
        terminal.expect(&format!("{line}\n"));
        terminal.expect(wanted);
        terminal.prompt();
    }
}

#[test]
fn output_is_filtered_and_paged() {
    let (place, router, mut terminal) = shell();
    for (line, wanted) in [
        ("sh int | match wan | count", "Count: 1 lines"),
        ("sh int | except lan | last 1", "wan "),
        ("sh ver | json | match version", "\"version\":"),
        ("sh int | grep x", "not by `grep`"),
        ("| count", "a command is missing"),
    ] {
        terminal.press(&format!("{line}\r"));
        terminal.expect(&format!("{line}\n"));
        terminal.expect(wanted);
        terminal.prompt();
    }
    drop(terminal);
    let mut terminal = Terminal::open_with(&place, &place.socket(), 3, "sed s/^/paged:/");
    terminal.press("show interface\r");
    terminal.expect("paged:");
    terminal.prompt();
    terminal.press("show interface | no-more\r");
    let before = terminal.expect("to the world");
    assert!(!before.contains("paged:"), "{before}");
    terminal.prompt();
    // What fits the terminal is not paged.
    terminal.press("show interface | count\r");
    let before = terminal.expect("Count: ");
    assert!(!before.contains("paged:"), "{before}");
    drop((terminal, router));
}

#[test]
fn ctrl_c_takes_back_a_line_and_ends_a_command() {
    let (_place, _router, mut terminal) = shell();
    terminal.press("show nonsense");
    terminal.expect("nonsense");
    terminal.press(CTRL_C);
    terminal.prompt();
    terminal.press("show version\r");
    let before = terminal.expect("process ");
    assert!(!before.contains("unrecognized"), "{before}");
    terminal.prompt();
    terminal.press("monitor interface --interval 100ms\r");
    terminal.expect("RX packets/s");
    terminal.press(CTRL_C);
    terminal.prompt();
    terminal.press("show totals --watch 1\r");
    terminal.expect("under way");
    terminal.press(CTRL_C);
    terminal.prompt();
    terminal.press("exit\r");
    assert!(terminal.end().success());
}

#[test]
fn the_history_is_kept_and_is_the_users_own() {
    let (place, _router, mut terminal) = shell();
    terminal.press("show version\r");
    terminal.expect("process ");
    terminal.prompt();
    terminal.press(" show totals\r");
    terminal.expect("under way");
    terminal.prompt();
    terminal.press(UP);
    terminal.expect("show version");
    terminal.press("\r");
    terminal.expect("process ");
    terminal.prompt();
    terminal.press(CTRL_D);
    assert!(terminal.end().success());
    let text = fs::read_to_string(place.history()).unwrap();
    assert!(
        text.contains("show version\n") && !text.contains("totals"),
        "{text}"
    );
    assert_eq!(
        fs::metadata(place.history()).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        fs::metadata(place.history().parent().unwrap())
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    // Two thousand lines more are not all kept, and the last one is there in the next shell.
    let many: String = (0..2000)
        .map(|number| format!("show interface x{number}\n"))
        .collect();
    fs::write(place.history(), format!("#V2\n{many}")).unwrap();
    let mut terminal = Terminal::open(&place, &place.socket());
    terminal.press(UP);
    terminal.expect("show interface x1999");
    terminal.press("\r");
    terminal.expect("no interface");
    terminal.prompt();
    terminal.press("show version\r");
    terminal.expect("process ");
    terminal.prompt();
    terminal.press("quit\r");
    assert!(terminal.end().success());
    let lines = fs::read_to_string(place.history()).unwrap().lines().count();
    assert!(lines <= 1010, "{lines}");
}

#[test]
fn the_configuration_is_changed_and_confirmed() {
    let (place, _router, mut terminal) = shell();
    let file = place.folder.join("weir.yaml").display().to_string();
    terminal.press(&format!("config plan -c {file}\r"));
    terminal.expect("nothing to do");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("to the world", "uplink")).unwrap();
    terminal.prompt();
    terminal.press(&format!("config apply -c {file} --confirm 60s\r"));
    terminal.expect("~ describe interface wan as \"uplink\"");
    terminal.expect("it is undone in ");
    terminal.prompt();
    terminal.press("set interface state lan0 down\r");
    terminal.expect("waits to be confirmed");
    terminal.prompt();
    terminal.press("config confirm\r");
    terminal.expect("stays");
    terminal.prompt();
    terminal.press("set interface state lan0 down\r");
    terminal.expect("- set interface lan0 down");
    terminal.prompt();
    terminal.press("sflow sampling-rate 500\r");
    terminal.expect("10000 -> 500");
    terminal.prompt();
    terminal.press("sh sflow\r");
    terminal.expect("1 in 500");
    terminal.prompt();
    terminal.press("config history\r");
    terminal.expect("edit of interfaces.lan0");
    terminal.prompt();
    terminal.press("config rollback 1\t\r");
    terminal.expect("10000");
    terminal.expect("revision 5 runs");
    terminal.prompt();
    // What it dumps is a file whose plan is empty.
    let dumped = Command::new(WEIR)
        .args(["config", "dump", "--socket"])
        .arg(place.socket())
        .output()
        .unwrap();
    let copy = place.folder.join("copy.yaml");
    fs::write(&copy, dumped.stdout).unwrap();
    terminal.press(&format!("config plan -c {}\r", copy.display()));
    terminal.expect("nothing to do");
}

/// A router that listens and never answers: Ctrl-C gives the keyboard back.
#[test]
fn a_router_that_does_not_answer_is_not_waited_for() {
    let place = Place::new();
    let socket = place.folder.join("silent.sock");
    let nobody = Terminal::open(&place, &place.folder.join("nobody.sock"));
    assert!(
        nobody.text().contains("no weir answers"),
        "{}",
        nobody.text()
    );
    let silent = UnixListener::bind(&socket).unwrap();
    // The first question, when the shell opens, gets an end instead of an answer; the next none.
    let first = thread::spawn(move || {
        drop(silent.accept());
        silent
    });
    let mut terminal = Terminal::open(&place, &socket);
    let silent = first.join().unwrap();
    terminal.press("show version\r");
    let asked = silent.accept();
    terminal.press(CTRL_C);
    terminal.expect("not waited for");
    terminal.prompt();
    drop(asked);
    terminal.press(CTRL_D);
    assert!(terminal.end().success());
}
