//! `weir flow decode` as a shell sees it, and beside nfdump: both are given the same messages and have to print
//! the same lines.

#[path = "../../../crates/telemetry/flowfmt/tests/ipfix_messages/mod.rs"]
mod ipfix_messages;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ipfix_messages::{Made, capture, message5, messages};
use weir_flowfmt::ipfix::Version;

const FLOWS: u64 = 120;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("weir-flow-decode-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn decode(
    folder: &Folder,
    port: u16,
    messages: &[Vec<u8>],
    arguments: &[&str],
) -> (String, String, Option<i32>) {
    let file = folder.0.join("capture.pcap");
    std::fs::write(&file, capture(port, messages)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .args(["flow", "decode", "-r"])
        .arg(&file)
        .args(arguments)
        .output()
        .unwrap();
    (
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
        status.code(),
    )
}

#[test]
fn json_has_what_was_in_the_records() {
    let folder = Folder::new("json");
    for version in [Version::Ipfix, Version::NetFlow9] {
        let (text, stderr, code) =
            decode(&folder, 4739, &messages(version, 1400, FLOWS), &["--json"]);
        assert_eq!(code, Some(0), "{stderr}");
        let objects: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let of = |kind: &str| {
            objects
                .iter()
                .filter(|object| object["kind"] == kind)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (
                of("template").len(),
                of("options-template").len(),
                of("options").len()
            ),
            (2, 1, 1)
        );
        let options = of("options")[0];
        let scope = if version == Version::Ipfix {
            "ingressInterface"
        } else {
            "scopeInterface"
        };
        assert_eq!(
            (
                &options["scope"][scope],
                &options["fields"]["interfaceName"]
            ),
            (&7.into(), &"wan0".into())
        );
        let flows = of("flow");
        assert_eq!(flows.len() as u64, FLOWS);
        for (flow, made) in flows.iter().zip((0..FLOWS).map(Made)) {
            let fields = &flow["fields"];
            let (name, address) = if made.is_v6() {
                ("sourceIPv6Address", made.source().1.to_string())
            } else {
                ("sourceIPv4Address", made.source().0.to_string())
            };
            assert_eq!(
                (&fields[name], &flow["domain"]),
                (&address.into(), &7.into())
            );
            assert_eq!(
                (&fields["packetDeltaCount"], &fields["octetDeltaCount"]),
                (&made.packets().into(), &made.octets().into())
            );
            assert_eq!(
                (&fields["egressInterface"], &fields["forwardingStatus"]),
                (&9.into(), &64.into())
            );
        }
        if version == Version::Ipfix {
            assert_eq!(
                flows[1]["fields"]["flowStartMilliseconds"],
                "2023-11-14T22:13:20.124000000Z"
            );
        }
        assert!(
            stderr.contains(&format!(
                "{FLOWS} flow records, 1 of options, 3 templates; 0 missing"
            )),
            "{stderr}"
        );
    }
}

#[test]
fn what_is_missing_or_broken_is_reported() {
    let folder = Folder::new("broken");
    let mut messages = messages(Version::Ipfix, 1400, FLOWS);
    let gone = messages.remove(3);
    messages[1].truncate(100);
    let (text, stderr, code) = decode(&folder, 2055, &messages, &[]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("message 2 from 127.0.0.1:40000, octet 2: the header says"),
        "{stderr}"
    );
    assert!(
        text.lines().count() < FLOWS as usize && text.starts_with("Date first seen"),
        "{text}"
    );
    // The one behind the broken one: nobody knows how many were in that. The one that is gone: all its records.
    let reported_missing: u64 = stderr
        .lines()
        .filter_map(|line| {
            line.strip_suffix(" missing")?
                .rsplit(' ')
                .next()?
                .parse::<u64>()
                .ok()
        })
        .sum();
    let left = u64::from(
        u32::from_be_bytes(messages[3][8..12].try_into().unwrap())
            - u32::from_be_bytes(gone[8..12].try_into().unwrap()),
    );
    assert_eq!(reported_missing, left, "{stderr}");
    // Data without their templates.
    let (text, stderr, code) = decode(&folder, 4739, &messages[2..3], &["--json"]);
    assert!(
        text.is_empty() && stderr.contains("no template 256 for this set") && code == Some(1),
        "{stderr}"
    );
    // Templates that come afterwards.
    let late = [messages[2].clone(), messages[0].clone()];
    let (text, _, code) = decode(&folder, 4739, &late, &["--json"]);
    assert_eq!(
        (
            text.lines()
                .next()
                .map(|line| line.contains("\"kind\":\"template\"")),
            code
        ),
        (Some(true), Some(0)),
        "{text}"
    );
    let (_, stderr, code) = decode(&folder, 53, &messages, &[]);
    assert!(
        stderr.contains("--port chooses another") && code == Some(0),
        "{stderr}"
    );
}

/// RFC 5655: messages one after the other, in a file and from standard input.
#[test]
fn ipfix_files_are_read() {
    let folder = Folder::new("files");
    let messages = messages(Version::Ipfix, 1400, FLOWS);
    let (expected, _, _) = decode(&folder, 4739, &messages, &["--json"]);
    let records = |text: &str| {
        text.lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|object| object["kind"] == "flow")
            .map(|object| object["fields"].clone())
            .collect::<Vec<_>>()
    };
    let file = folder.0.join("flows.ipfix");
    std::fs::write(&file, messages.concat()).unwrap();
    let run = |path: &Path| {
        Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["flow", "decode", "--json", "-r"])
            .arg(path)
            .stdin(std::fs::File::open(&file).unwrap())
            .output()
            .unwrap()
    };
    for path in [file.as_path(), Path::new("-")] {
        let output = run(path);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{path:?}");
        assert_eq!(records(&text), records(&expected), "{path:?}");
    }
    assert_eq!(records(&expected).len(), FLOWS as usize);
    // Cut within the last message.
    let whole = messages.concat();
    std::fs::write(&file, &whole[..whole.len() - 10]).unwrap();
    let output = run(&file);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the header says"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn records_of_the_network_are_printed_at_once() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["flow", "decode", "-l", "127.0.0.1:0", "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line
        .strip_prefix("weir: listening on ")
        .and_then(|rest| rest.split(';').next())
        .unwrap_or_else(|| panic!("{line}"));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&message5(), address).unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap());
    let mut lines = |count: usize| -> Vec<String> {
        let line = |_| {
            let mut line = String::new();
            printed.read_line(&mut line).unwrap();
            line
        };
        (0..count).map(line).collect()
    };
    let first = lines(21);
    assert!(
        first[0].starts_with("ts,te,td,sa,da")
            && first[1].contains(",10.0.0.0,192.0.2.0,1024,443,TCP,...AP.SF,"),
        "{first:?}"
    );
    // And over TCP, where messages follow each other as octets; a client of another protocol gets an error.
    let messages = messages(Version::Ipfix, 1400, FLOWS);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&messages.concat()).unwrap();
    let more = lines(FLOWS as usize);
    assert!(
        more.iter()
            .all(|line| line.split(',').count() == first[0].split(',').count()),
        "{more:?}"
    );
    TcpStream::connect(address)
        .unwrap()
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .unwrap();
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(
        line.starts_with("weir: the stream from 127.0.0.1:")
            && line.contains(": no IPFIX: version 18245"),
        "{line}"
    );
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let expected = format!(
        "{} messages: {} flow records",
        1 + messages.len(),
        20 + FLOWS
    );
    assert!(rest.contains(&expected), "{rest}");
}

/// nfcapd, ended with the test.
struct Nfcapd(Child);

impl Drop for Nfcapd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What nfdump prints of these messages; nothing when it is not installed.
fn nfdump(folder: &Path, messages: &[Vec<u8>], format: &str) -> Option<Vec<String>> {
    std::fs::create_dir_all(folder).unwrap();
    let port = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut nfcapd = Command::new("nfcapd");
    nfcapd
        .args(["-b", "127.0.0.1", "-t", "3600", "-p"])
        .arg(port.to_string())
        .arg("-l")
        .arg(folder);
    let mut nfcapd = Nfcapd(
        nfcapd
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?,
    );
    let mut stderr = BufReader::new(nfcapd.0.stderr.take().unwrap());
    wait(|| {
        std::fs::read_to_string("/proc/net/udp")
            .unwrap()
            .contains(&format!("0100007F:{port:04X}"))
    });
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for message in messages {
        socket.send_to(message, ("127.0.0.1", port)).unwrap();
        // Taken out of its socket, so that none is lost.
        wait(|| {
            let table = std::fs::read_to_string("/proc/net/udp").unwrap();
            table.lines().any(|line| {
                line.contains(&format!("0100007F:{port:04X}")) && line.contains("00000000:00000000")
            })
        });
    }
    let id = rustix::process::Pid::from_child(&nfcapd.0);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    nfcapd.0.wait().unwrap();
    // Not its "sequence errors": 1.7.1 leaves records of options out of the count, which RFC 7011 3.1 has in it.
    assert!(rest.contains("Bad Packets: 0"), "{rest}");
    let output = Command::new("nfdump")
        .env("TZ", "UTC")
        .args(["-q", "-o", format, "-R"])
        .arg(folder)
        .output()
        .ok()?;
    Some(
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

fn wait(mut until: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !until() {
        assert!(Instant::now() < end, "timed out");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Without what tells when it was received, and what nfdump 1.7.1 does not take from these messages: the forwarding
/// status, and of version 5 the lengths of prefixes.
fn comparable(line: &str, version: &str) -> String {
    let mut columns: Vec<&str> = line.split(',').collect();
    if columns.len() > 40 {
        columns.pop();
        columns[9] = "";
        if version == "5" {
            (columns[19], columns[20]) = ("", "");
        }
    }
    columns.join(",")
}

#[test]
fn lines_and_values_are_those_of_nfdump() {
    let folder = Folder::new("nfdump");
    let cases = [
        ("10", messages(Version::Ipfix, 1400, FLOWS)),
        ("9", messages(Version::NetFlow9, 512, FLOWS)),
        ("5", vec![message5()]),
    ];
    for (name, messages) in cases {
        for format in ["line", "csv"] {
            let Some(mut theirs) = nfdump(
                &folder.0.join(format!("{name}-{format}")),
                &messages,
                format,
            ) else {
                eprintln!("skipped: nfdump is not installed");
                return;
            };
            let (ours, stderr, code) = decode(&folder, 4739, &messages, &["--format", format]);
            assert_eq!(code, Some(0), "{stderr}");
            let mut ours: Vec<String> = ours
                .lines()
                .skip(1)
                .map(|line| comparable(line, name))
                .collect();
            theirs = theirs.iter().map(|line| comparable(line, name)).collect();
            // 1.7.1 takes ICMP's type and code from the port in IPFIX and version 5, and in version 9 does not.
            let icmp = |line: &String| line.contains("ICMP");
            assert_eq!(
                ours.iter().filter(|line| icmp(line)).count(),
                theirs.iter().filter(|line| icmp(line)).count()
            );
            ours.retain(|line| name != "9" || !icmp(line));
            theirs.retain(|line| name != "9" || !icmp(line));
            ours.sort();
            theirs.sort();
            assert_eq!(ours, theirs, "version {name}, {format}");
            assert_eq!(
                ours.len(),
                match name {
                    "5" => 20,
                    "9" => 90,
                    _ => 120,
                }
            );
        }
    }
}
