//! `weir pcap` and a running router: tshark reads what it writes, Ctrl-C ends it well, and whoever
//! goes away leaves nothing behind.

mod live;

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use live::{Folder, Router, has_program};

fn weir(router: &Router) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command
        .arg("--socket")
        .arg(router.socket())
        .stdin(Stdio::null());
    command
}

fn run(router: &Router, words: &str) -> Output {
    weir(router)
        .args(words.split_whitespace())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn captures(router: &Router) -> Vec<serde_json::Value> {
    let shown: serde_json::Value =
        serde_json::from_slice(&run(router, "--json show pcap").stdout).unwrap();
    shown["captures"].as_array().unwrap().clone()
}

#[track_caller]
fn wait_for(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(30), "timed out");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

/// The fields of each packet that tshark reads, one line each.
fn tshark(input: Stdio, fields: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", "-", "-T", "fields", "-E", "separator=;"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.stdin(input).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn read_file(path: &Path, fields: &[&str]) -> String {
    tshark(std::fs::File::open(path).unwrap().into(), fields)
}

#[test]
fn tshark_reads_the_stream_of_a_running_router() {
    if !has_program("tshark") {
        return;
    }
    let router = Router::start(Folder::new("pcap-tshark"), "");
    let start = |words: &str| {
        weir(&router)
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut capture = start("pcap capture rx tx -c 200 -w -");
    let read = tshark(
        capture.stdout.take().unwrap().into(),
        &[
            "frame.interface_name",
            "frame.packet_flags_direction",
            "ip.ttl",
            "eth.dst",
        ],
    );
    let said = capture.wait_with_output().unwrap();
    assert!(
        text(&said.stderr).starts_with("200 packets captured (")
            && text(&said.stderr).ends_with(", 0 lost\n"),
        "{said:?}"
    );
    assert_eq!(read.lines().count(), 200);
    // What leaves has one hop less to live and its neighbour's address.
    assert!(
        read.lines()
            .any(|line| line.starts_with("source;0x00000001;64;")),
        "{read}"
    );
    assert!(
        read.lines()
            .any(|line| line == "sink;0x00000002;63;02:00:00:00:00:02"),
        "{read}"
    );

    let mut capture = start("pcap capture drop --reason no-route -i source -c 5 -s 34");
    let read = tshark(
        capture.stdout.take().unwrap().into(),
        &[
            "frame.comment",
            "frame.cap_len",
            "ip.dst",
            "frame.interface_name",
        ],
    );
    assert!(capture.wait().unwrap().success());
    assert_eq!(
        read.lines().collect::<Vec<_>>(),
        ["dropped at icmp4-error: no-route;34;192.0.2.1;source"; 5]
    );
}

#[test]
fn ctrl_c_ends_a_capture_with_a_whole_file_and_a_summary() {
    let router = Router::start(Folder::new("pcap-int"), "");
    let file = router.folder.file("all.pcapng");
    let capture = weir(&router)
        .args(["--json", "pcap", "capture", "-w"])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(|| {
        captures(&router)
            .first()
            .is_some_and(|one| one["captured_packets"].as_u64() > Some(100))
    });
    let shown = text(&run(&router, "show pcap").stdout);
    assert!(
        shown.contains("rx, tx, drop") && shown.contains("any"),
        "{shown}"
    );
    signal(&capture, rustix::process::Signal::INT);
    let said = capture.wait_with_output().unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    let summary: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(
        (summary["complete"].as_bool(), summary["lost"].as_u64()),
        (Some(true), Some(0)),
        "{summary}"
    );
    let packets = weir_pcap::file::Reader::open(&file)
        .unwrap()
        .map(Result::unwrap)
        .count() as u64;
    assert_eq!(summary["packets"], packets);
    assert!(packets > 100 && captures(&router).is_empty());
    if has_program("tshark") {
        assert_eq!(
            read_file(&file, &["frame.number"]).lines().count() as u64,
            packets
        );
    }
}

#[test]
fn another_terminal_ends_it() {
    let router = Router::start(Folder::new("pcap-stop"), "");
    let file = router.folder.file("rx.pcapng");
    let capture = weir(&router)
        .args(["pcap", "capture", "rx", "-w"])
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(|| captures(&router).len() == 1);
    assert!(text(&run(&router, "pcap stop").stdout).starts_with("capture 1 of "));
    let said = capture.wait_with_output().unwrap();
    assert!(
        text(&said.stdout).contains(" captured (") && text(&said.stdout).ends_with(", 0 lost\n"),
        "{said:?}"
    );
    assert!(!run(&router, "pcap stop 1").status.success(), "it is gone");
}

#[test]
fn who_vanishes_leaves_nothing_behind() {
    let mut router = Router::start(Folder::new("pcap-gone"), "");
    // A reader that has enough.
    let mut capture = weir(&router)
        .args(["pcap", "capture", "rx"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut some = [0; 500];
    capture
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut some)
        .unwrap();
    assert_eq!(capture.wait().unwrap().code(), Some(0));
    wait_for(|| captures(&router).is_empty());
    // A client that is killed, one that never reads, and one that is refused.
    let file = router.folder.file("killed.pcapng");
    let mut killed = weir(&router)
        .args(["pcap", "capture", "tx", "-w"])
        .arg(&file)
        .spawn()
        .unwrap();
    wait_for(|| captures(&router).len() == 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait_for(|| captures(&router).is_empty());
    let mut stuck = weir(&router)
        .args(["pcap", "capture"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| captures(&router).len() == 1);
    stuck.kill().unwrap();
    stuck.wait().unwrap();
    wait_for(|| captures(&router).is_empty());
    let refused = run(&router, "pcap capture -w /nonexistent/folder/x.pcapng");
    assert!(
        !refused.status.success() && text(&refused.stderr).contains("/nonexistent/folder/x.pcapng"),
        "{refused:?}"
    );
    wait_for(|| captures(&router).is_empty());
    assert!(router.runs());
}

#[test]
fn what_does_not_exist_is_reported_with_what_does() {
    let router = Router::start(Folder::new("pcap-names"), "");
    let unknown = text(&run(&router, "pcap capture drop --reason no-rout -w /dev/null").stderr);
    assert!(
        unknown.contains("no drop reason \"no-rout\"") && unknown.contains("no-route"),
        "{unknown}"
    );
    let unknown = text(&run(&router, "pcap capture -i wan -w /dev/null").stderr);
    assert!(
        unknown.contains("no interface \"wan\"") && unknown.contains("source"),
        "{unknown}"
    );
    assert_eq!(
        run(&router, "pcap capture rx -s 13 -w /dev/null")
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        run(&router, "pcap capture rx --size 100 -w /dev/null")
            .status
            .code(),
        Some(2)
    );
}
