//! `weir sflow decode` as a shell sees it: files with sound, broken and foreign datagrams, and the
//! network.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use weir_pcap::file::{ETHERNET, Writer};

/// A datagram of sFlow version 5, by hand: agent 192.0.2.7, sub-agent 3, this number, uptime 5 s, and
/// one counters sample (expanded, 0:4) with the interface counters (0:1) left out.
fn datagram(number: u32) -> Vec<u8> {
    let words = [5, 1, 0xc000_0207, 3, number, 5000, 1, 4, 16, 77, 0, 12, 0];
    words.into_iter().flat_map(u32::to_be_bytes).collect()
}

/// Ethernet, IPv4 and UDP around it, from 198.51.100.9; without checksums.
fn frame(port: u16, payload: &[u8]) -> Vec<u8> {
    let (udp, ip) = (8 + payload.len() as u16, 28 + payload.len() as u16);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(ip.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 198, 51, 100, 9, 198, 51, 100, 10, 0x27, 0x0f]);
    frame.extend(port.to_be_bytes());
    frame.extend(udp.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// A capture that goes away with the test.
struct Capture(PathBuf);

impl Capture {
    fn new(name: &str, frames: &[Vec<u8>], cut: usize) -> Capture {
        let path = std::env::temp_dir().join(format!("weir-decode-{}-{name}.pcap", std::process::id()));
        let mut writer = Writer::new(Vec::new(), ETHERNET).unwrap();
        for frame in frames {
            writer.write(1_700_000_000_000_000_000, frame.len() as u32, frame).unwrap();
        }
        let mut bytes = writer.into_inner();
        bytes.truncate(bytes.len() - cut);
        std::fs::write(&path, bytes).unwrap();
        Capture(path)
    }

    fn decode(&self, arguments: &[&str]) -> (String, String, Option<i32>) {
        let program = env!("CARGO_BIN_EXE_weir");
        let Output { status, stdout, stderr } =
            Command::new(program).args(["sflow", "decode", "-r"]).arg(&self.0).args(arguments).output().unwrap();
        (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code())
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The values of a field of the text form.
fn values<'a>(text: &'a str, field: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(field)?.strip_prefix(' ')).collect()
}

#[test]
fn sound_datagrams_of_a_file_are_printed() {
    let capture = Capture::new("sound", &[frame(6343, &datagram(1)), frame(53, &datagram(2)), vec![0; 20], frame(6343, &datagram(3))], 0);
    let (text, told, code) = capture.decode(&[]);
    assert_eq!((told.as_str(), code), ("", Some(0)));
    assert_eq!(values(&text, "datagramSourceIP"), ["198.51.100.9"; 2], "{text}");
    assert_eq!(values(&text, "agent"), ["192.0.2.7"; 2]);
    assert_eq!(values(&text, "packetSequenceNo"), ["1", "3"]);
    assert_eq!(values(&text, "sourceId"), ["0:12"; 2]);
    let (text, told, code) = capture.decode(&["--port", "53"]);
    assert_eq!((values(&text, "packetSequenceNo"), told.as_str(), code), (vec!["2"], "", Some(0)));
    let (json, _, code) = capture.decode(&["--format", "json"]);
    let objects: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(objects.len() == 2 && code == Some(0), "{json}");
    assert_eq!(objects[1]["packetSequenceNo"], "3");
}

#[test]
fn broken_datagrams_are_told_and_the_next_is_printed() {
    let sound = datagram(2);
    let capture = Capture::new("broken", &[frame(6343, &sound[..30]), frame(6343, &sound), frame(6343, &[0; 40])], 0);
    let (text, told, code) = capture.decode(&[]);
    assert_eq!(values(&text, "packetSequenceNo").last(), Some(&"2"), "{text}");
    assert_eq!(code, Some(1));
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].starts_with("weir: datagram 1 from 198.51.100.9: "), "{told}");
    assert!(lines[1].starts_with("weir: datagram 3 from 198.51.100.9: ") && lines[1].contains("version"), "{told}");
}

#[test]
fn a_file_that_ends_early_is_told_after_what_it_holds() {
    let capture = Capture::new("early", &[frame(6343, &datagram(1)), frame(6343, &datagram(2))], 5);
    let (text, told, code) = capture.decode(&[]);
    assert_eq!((values(&text, "packetSequenceNo"), code), (vec!["1"], Some(1)));
    assert!(told.contains("frame 2: ") && told.lines().count() == 1, "{told}");
}

#[test]
fn files_without_datagrams_or_of_another_kind_are_told() {
    let (text, told, code) = Capture::new("none", &[frame(53, &datagram(1))], 0).decode(&[]);
    assert_eq!((text.as_str(), code), ("", Some(0)));
    assert!(told.contains("none of its 1 frames") && told.contains("--port"), "{told}");
    let capture = Capture::new("other", &[], 0);
    std::fs::write(&capture.0, "once upon a time").unwrap();
    let (text, told, code) = capture.decode(&[]);
    assert!(text.is_empty() && told.contains("not a capture file") && code == Some(1), "{told}");
}

#[test]
fn datagrams_of_the_network_are_printed_at_once() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["sflow", "decode", "-l", "127.0.0.1:0", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let address = line.strip_prefix("weir: listening on ").and_then(|rest| rest.split(';').next()).unwrap_or_else(|| panic!("{line}"));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap());
    for number in [7, 8] {
        socket.send_to(&datagram(number), address).unwrap();
        let mut json = String::new();
        // Comes before the next is sent, so it was flushed.
        printed.read_line(&mut json).unwrap();
        let object: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(object["packetSequenceNo"], number.to_string());
        assert_eq!(object["datagramSourceIP"], "127.0.0.1");
    }
    socket.send_to(b"nonsense", address).unwrap();
    line.clear();
    told.read_line(&mut line).unwrap();
    assert!(line.starts_with("weir: datagram 3 from 127.0.0.1: "), "{line}");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}
