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
    frame.extend([
        0, 0, 0, 0, 64, 17, 0, 0, 198, 51, 100, 9, 198, 51, 100, 10, 0x27, 0x0f,
    ]);
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
        let path =
            std::env::temp_dir().join(format!("weir-decode-{}-{name}.pcap", std::process::id()));
        let mut writer = Writer::new(Vec::new(), ETHERNET).unwrap();
        for frame in frames {
            writer
                .write(1_700_000_000_000_000_000, frame.len() as u32, frame)
                .unwrap();
        }
        let mut bytes = writer.into_inner();
        bytes.truncate(bytes.len() - cut);
        std::fs::write(&path, bytes).unwrap();
        Capture(path)
    }

    fn decode(&self, arguments: &[&str]) -> (String, String, Option<i32>) {
        let program = env!("CARGO_BIN_EXE_weir");
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(program)
            .args(["sflow", "decode", "-r"])
            .arg(&self.0)
            .args(arguments)
            .output()
            .unwrap();
        (
            String::from_utf8(stdout).unwrap(),
            String::from_utf8(stderr).unwrap(),
            status.code(),
        )
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The values of a field of the text form.
fn values<'a>(text: &'a str, field: &str) -> Vec<&'a str> {
    text.lines()
        .filter_map(|line| line.strip_prefix(field)?.strip_prefix(' '))
        .collect()
}

#[test]
fn sound_datagrams_of_a_file_are_printed() {
    let capture = Capture::new(
        "sound",
        &[
            frame(6343, &datagram(1)),
            frame(53, &datagram(2)),
            vec![0; 20],
            frame(6343, &datagram(3)),
        ],
        0,
    );
    let (text, stderr, code) = capture.decode(&[]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert_eq!(
        values(&text, "datagramSourceIP"),
        ["198.51.100.9"; 2],
        "{text}"
    );
    assert_eq!(values(&text, "agent"), ["192.0.2.7"; 2]);
    assert_eq!(values(&text, "packetSequenceNo"), ["1", "3"]);
    assert_eq!(values(&text, "sourceId"), ["0:12"; 2]);
    let (text, stderr, code) = capture.decode(&["--port", "53"]);
    assert_eq!(
        (values(&text, "packetSequenceNo"), stderr.as_str(), code),
        (vec!["2"], "", Some(0))
    );
    let (json, _, code) = capture.decode(&["--format", "json"]);
    let objects: Vec<serde_json::Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(objects.len() == 2 && code == Some(0), "{json}");
    assert_eq!(objects[1]["packetSequenceNo"], "3");
}

#[test]
fn broken_datagrams_are_reported_and_the_next_is_printed() {
    let sound = datagram(2);
    let capture = Capture::new(
        "broken",
        &[
            frame(6343, &sound[..30]),
            frame(6343, &sound),
            frame(6343, &[0; 40]),
        ],
        0,
    );
    let (text, stderr, code) = capture.decode(&[]);
    assert_eq!(
        values(&text, "packetSequenceNo").last(),
        Some(&"2"),
        "{text}"
    );
    assert_eq!(code, Some(1));
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{stderr}");
    assert!(
        lines[0].starts_with("weir: datagram 1 from 198.51.100.9: "),
        "{stderr}"
    );
    assert!(
        lines[1].starts_with("weir: datagram 3 from 198.51.100.9: ")
            && lines[1].contains("version"),
        "{stderr}"
    );
}

#[test]
fn datagrams_that_the_sender_left_to_the_kernel_to_cut_are_read_one_by_one() {
    let first = flow_datagram(1, 3, &sampled());
    let whole = [first.clone(), flow_datagram(2, 3, &sampled()), datagram(3)].concat();
    let capture = Capture::new(
        "segments",
        &[frame(6343, &whole), frame(6343, &datagram(4))],
        0,
    );
    let (text, stderr, code) = capture.decode(&[]);
    assert_eq!(
        (values(&text, "packetSequenceNo"), stderr.as_str(), code),
        (vec!["1", "2", "3", "4"], "", Some(0))
    );
    assert_eq!(values(&text, "datagramSize")[0], first.len().to_string());
    let (json, _, _) = capture.decode(&["--agents", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (
            &object["agents"][0]["datagrams"]["received"],
            &object["agents"][0]["datagrams"]["lost"]
        ),
        (&4.into(), &0.into())
    );
    // What is behind and not the next of the same agent is reported as before.
    let (text, stderr, code) =
        Capture::new("behind", &[frame(6343, &[first, datagram(7)].concat())], 0).decode(&[]);
    assert_eq!(
        (values(&text, "packetSequenceNo"), code),
        (vec!["1"], Some(1))
    );
    assert!(
        stderr.contains("52 octets behind the last sample"),
        "{stderr}"
    );
}

#[test]
fn a_file_that_ends_early_is_reported_after_what_it_holds() {
    let capture = Capture::new(
        "early",
        &[frame(6343, &datagram(1)), frame(6343, &datagram(2))],
        5,
    );
    let (text, stderr, code) = capture.decode(&[]);
    assert_eq!(
        (values(&text, "packetSequenceNo"), code),
        (vec!["1"], Some(1))
    );
    assert!(
        stderr.contains("frame 2: ") && stderr.lines().count() == 1,
        "{stderr}"
    );
}

#[test]
fn files_without_datagrams_or_of_another_kind_are_reported() {
    let (text, stderr, code) = Capture::new("none", &[frame(53, &datagram(1))], 0).decode(&[]);
    assert_eq!((text.as_str(), code), ("", Some(0)));
    assert!(
        stderr.contains("none of its 1 frames") && stderr.contains("--port"),
        "{stderr}"
    );
    let capture = Capture::new("other", &[], 0);
    std::fs::write(&capture.0, "once upon a time").unwrap();
    let (text, stderr, code) = capture.decode(&[]);
    assert!(
        text.is_empty() && stderr.contains("not a capture file") && code == Some(1),
        "{stderr}"
    );
}

#[test]
fn datagrams_of_the_network_are_printed_at_once() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args([
            "sflow",
            "decode",
            "--listen",
            "127.0.0.1:0",
            "--format",
            "json",
        ])
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
    stderr.read_line(&mut line).unwrap();
    assert!(
        line.starts_with("weir: datagram 3 from 127.0.0.1: "),
        "{line}"
    );
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

/// A datagram of version 5 with a flow sample: 1 in 100, in at 3 and out at 4, and this header of Ethernet.
fn flow_datagram(number: u32, sample: u32, header: &[u8]) -> Vec<u8> {
    let padded = header.len().next_multiple_of(4);
    let record = 16 + padded as u32;
    let head = [5, 1, 0xc000_0207, 3, number, 5000, 1, sample];
    let fixed: &[u32] = if sample == 3 {
        &[number, 0, 3, 100, 100 * number, 0, 0, 3, 0, 4, 1]
    } else {
        &[number, 0, 3, 0, 3, 4, 258, 1]
    };
    let raw = [
        1,
        record,
        1,
        header.len() as u32 + 4,
        4,
        header.len() as u32,
    ];
    let length = [4 * fixed.len() as u32 + 8 + record];
    let words = head.iter().chain(&length).chain(fixed).chain(&raw);
    let mut datagram: Vec<u8> = words.flat_map(|word| word.to_be_bytes()).collect();
    datagram.extend(header);
    datagram.resize(datagram.len() + padded - header.len(), 0);
    datagram
}

/// UDP from 192.0.2.1 port 5001 to 198.51.100.2 port 6000.
fn sampled() -> Vec<u8> {
    let mut frame = frame(6000, &[7; 50]);
    frame.splice(26..34, [192, 0, 2, 1, 198, 51, 100, 2]);
    frame
}

/// A socket that hears what is passed on.
fn listener() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(std::time::Duration::from_secs(10)))
        .unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port.to_string())
}

fn heard(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 65_536];
    let length = socket.recv(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

#[test]
fn lines_columns_and_json_are_chosen_as_with_sflowtool() {
    let capture = Capture::new("forms", &[frame(6343, &flow_datagram(1, 3, &sampled()))], 0);
    let line = "FLOW,192.0.2.7,3,4,020000000002,020000000001,0x0800,0,0,192.0.2.1,198.51.100.2,17,0x00,64,9999,6000,0x00,96,78,100\n";
    assert_eq!(capture.decode(&["-l"]).0, line);
    assert_eq!(
        capture.decode(&["-L", "srcIP,UDPDstPort,agent"]).0,
        "192.0.2.1,6000,192.0.2.7\n"
    );
    assert!(
        capture
            .decode(&["-g"])
            .0
            .contains("2023-11-14T22:13:20+0000 192.0.2.7 3 1 0:3 0:3 0:1 srcIP 192.0.2.1\n")
    );
    assert_eq!(capture.decode(&["-j"]).0.lines().count(), 1);
    let pretty = capture.decode(&["-J"]).0;
    let object: serde_json::Value = serde_json::from_str(&pretty).unwrap();
    assert_eq!(object["samples"][0]["elements"][0]["srcIP"], "192.0.2.1");
    assert!(pretty.lines().count() > 20);
}

#[test]
fn a_column_that_does_not_exist_is_refused_with_those_that_do() {
    let capture = Capture::new("columns", &[frame(6343, &datagram(1))], 0);
    let (_, said, code) = capture.decode(&["-L", "agent,srcip"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("srcip") && said.contains("there is srcIP") && said.contains("dstIP, "),
        "{said}"
    );
    let chosen = "agent,discarded_srcIP,inner_dstIP,tunnel_ipv4_in_srcIP,rtmetric_gauge32_load";
    let (_, said, code) = capture.decode(&["-L", chosen]);
    assert_eq!((said.as_str(), code), ("", Some(0)));
}

#[test]
fn octets_behind_the_last_sample_are_noted_and_no_error() {
    let longer = [datagram(1), vec![0; 4]].concat();
    let frames = [frame(6343, &longer), frame(6343, &datagram(2))];
    let capture = Capture::new("behind", &frames, 0);
    let (text, said, code) = capture.decode(&[]);
    assert_eq!(values(&text, "packetSequenceNo"), ["1", "2"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        said,
        "weir: 1 datagram has octets behind its last sample, which were ignored\n"
    );
}

#[test]
fn packets_discards_and_datagrams_are_written_as_captures() {
    let (flow, discard) = (
        flow_datagram(1, 3, &sampled()),
        flow_datagram(2, 5, &sampled()[..60]),
    );
    let capture = Capture::new("packets", &[frame(6343, &flow), frame(6343, &discard)], 0);
    let frames = |option: &str| -> Vec<(u32, u64, Vec<u8>)> {
        let program = env!("CARGO_BIN_EXE_weir");
        let output = Command::new(program)
            .args(["sflow", "decode", option, "-r"])
            .arg(&capture.0)
            .output()
            .unwrap();
        assert!(output.status.success());
        let reader = weir_pcap::file::Reader::new(std::io::Cursor::new(output.stdout)).unwrap();
        reader
            .map(|frame| {
                frame
                    .map(|frame| (frame.orig_len, frame.timestamp_ns, frame.data))
                    .unwrap()
            })
            .collect()
    };
    let time = 1_700_000_000_000_000_000;
    assert_eq!(frames("-t"), [(92, time, sampled())]);
    assert_eq!(frames("-T"), [(60, time, sampled()[..60].to_vec())]);
    let datagrams = frames("-M");
    let found = |bytes: &[u8]| {
        weir_flowfmt::sflow::capture::udp_payload(ETHERNET, bytes)
            .map(|found| (found.source.to_string(), found.payload.to_vec()))
    };
    assert_eq!(datagrams.len(), 2);
    assert_eq!(
        found(&datagrams[0].2),
        Some(("198.51.100.9:9999".to_owned(), flow))
    );
    assert_eq!(
        found(&datagrams[1].2),
        Some(("198.51.100.9:9999".to_owned(), discard))
    );
}

#[test]
fn datagrams_are_passed_on_as_they_are_even_broken_ones() {
    let ((first, first_port), (second, second_port)) = (listener(), listener());
    let sent = [
        datagram(1),
        b"nonsense".to_vec(),
        flow_datagram(2, 3, &sampled()),
    ];
    let capture = Capture::new(
        "forward",
        &sent.clone().map(|datagram| frame(6343, &datagram)),
        0,
    );
    let (text, stderr, code) = capture.decode(&[
        "-f",
        &format!("127.0.0.1/{first_port}"),
        "-f",
        &format!("127.0.0.1/{second_port}"),
    ]);
    assert_eq!((text.as_str(), stderr.as_str(), code), ("", "", Some(0)));
    for socket in [first, second] {
        assert_eq!(sent.clone().map(|_| heard(&socket)), sent);
    }
}

#[test]
fn a_capture_is_replayed_at_its_own_pace_or_faster() {
    let path = std::env::temp_dir().join(format!("weir-decode-{}-pace.pcap", std::process::id()));
    let capture = Capture(path);
    let mut writer = Writer::new(Vec::new(), ETHERNET).unwrap();
    for (number, milliseconds) in [(1, 0), (2, 400), (3, 300), (4, 800)] {
        let frame = frame(6343, &datagram(number));
        writer
            .write(
                1_700_000_000_000_000_000 + milliseconds * 1_000_000,
                frame.len() as u32,
                &frame,
            )
            .unwrap();
    }
    std::fs::write(&capture.0, writer.into_inner()).unwrap();
    let (socket, port) = listener();
    let took = |arguments: &[&str]| {
        let began = std::time::Instant::now();
        let destination = format!("127.0.0.1/{port}");
        let (_, stderr, code) = capture.decode(&[&["-f", &destination], arguments].concat());
        assert_eq!((stderr.as_str(), code), ("", Some(0)));
        let took = began.elapsed().as_millis();
        assert_eq!(
            [1, 2, 3, 4].map(|_| heard(&socket)),
            [1, 2, 3, 4].map(datagram)
        );
        took
    };
    assert!(took(&["-P", "1"]) >= 800);
    let twice = took(&["-P", "4"]);
    assert!(
        (200..800).contains(&twice) || twice >= 800,
        "never faster than asked: {twice}"
    );
    took(&[]);
}

#[test]
fn netflow_version_5_is_sent() {
    let (socket, port) = listener();
    let capture = Capture::new(
        "netflow",
        &[frame(6343, &flow_datagram(1, 3, &sampled()))],
        0,
    );
    let (text, stderr, code) = capture.decode(&["-c", "127.0.0.1", "-d", &port]);
    assert_eq!((text.as_str(), stderr.as_str(), code), ("", "", Some(0)));
    let packet = heard(&socket);
    assert_eq!((packet.len(), &packet[..4]), (72, &[0, 5, 0, 1][..]));
    assert_eq!(packet[24..32], [192, 0, 2, 1, 198, 51, 100, 2]);
    // A hundred packets of 78 octets.
    assert_eq!(packet[40..48], [0, 0, 0, 100, 0, 0, 0x1e, 0x78]);
}

#[test]
fn agents_and_their_losses_are_shown() {
    let frames = [1, 2, 5, 4].map(|number| frame(6343, &flow_datagram(number, 3, &sampled())));
    let capture = Capture::new("agents", &frames, 0);
    let (text, stderr, code) = capture.decode(&["--agents"]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(
        row,
        [
            "192.0.2.7",
            "3",
            "4",
            "1",
            "20.000",
            "1",
            "0",
            "0",
            "4",
            "0",
            "0"
        ],
        "{text}"
    );
    let (json, _, _) = capture.decode(&["--agents", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(object["agents"][0]["datagrams"]["lost"], 1);
    assert_eq!(
        object["agents"][0]["sources"][0]["flow_samples"]["reordered"],
        1
    );
}

/// What is not printed is read all the same: random bytes are reported.
#[test]
fn broken_datagrams_are_reported_without_output() {
    let noise: Vec<u8> = (0..200_u32)
        .map(|place| (place.wrapping_mul(2_654_435_761) >> 11) as u8)
        .collect();
    let frames = [frame(6343, &datagram(1)), frame(6343, &noise)];
    let capture = Capture::new("silent", &frames, 0);
    for (arguments, expected) in [
        (&["--format", "none"][..], true),
        (&["--agents"], false),
        (&["--agents", "--format", "none"], false),
    ] {
        let (text, said, code) = capture.decode(arguments);
        assert!(said.contains("datagram 2 from 198.51.100.9"), "{said}");
        assert_eq!(
            (text.is_empty(), code),
            (expected, Some(1)),
            "{arguments:?}"
        );
    }
}

/// A datagram in fragments, and one in GRE.
#[test]
fn fragments_and_tunnels_are_read() {
    let datagram = datagram(9);
    let whole = frame(6343, &datagram);
    let fragment = |word: u16, part: &[u8]| {
        let mut fragment = whole[..34].to_vec();
        fragment[16..18].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
        fragment[20..22].copy_from_slice(&word.to_be_bytes());
        [&fragment, part].concat()
    };
    let payload = &whole[34..];
    let mut tunnel = whole[..34].to_vec();
    (tunnel[16], tunnel[17], tunnel[23]) = (0, 0, 47);
    tunnel.extend([0, 0, 8, 0]);
    tunnel.extend(&whole[14..]);
    let frames = [
        fragment(2, &payload[16..]),
        fragment(0x2000, &payload[..16]),
        tunnel,
    ];
    let capture = Capture::new("fragments", &frames, 0);
    let (text, said, code) = capture.decode(&[]);
    assert_eq!((said.as_str(), code), ("", Some(0)));
    assert_eq!(values(&text, "packetSequenceNo"), ["9", "9"]);
    // The second half is missing.
    let capture = Capture::new("half", &frames[1..2], 0);
    let (_, said, code) = capture.decode(&[]);
    assert!(
        said.contains("frame 1: not all fragments of its datagram are there"),
        "{said}"
    );
    assert_eq!(code, Some(1));
}

/// nfdump's collector takes our NetFlow, and sees the packets that the samples stand for.
#[test]
fn nfcapd_reads_what_is_converted() {
    let folder = std::env::temp_dir().join(format!("weir-nfcapd-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    // A port that was free a moment ago.
    let port = listener().1;
    let started = Command::new("nfcapd")
        .args(["-p", &port, "-b", "127.0.0.1", "-w"])
        .arg(&folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        eprintln!("skipped: nfdump is not installed");
        let _ = std::fs::remove_dir_all(&folder);
        return;
    };
    let capture = Capture::new(
        "nfcapd",
        &[frame(6343, &flow_datagram(1, 3, &sampled()))],
        0,
    );
    // It listens, and it has read all that came, when the kernel's table says so.
    let local = format!(":{:04X} ", port.parse::<u16>().unwrap());
    let mut idle = || {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        let listening = |table: String| {
            table
                .lines()
                .any(|line| line.contains(&local) && line.contains(":00000000 "))
        };
        while !listening(std::fs::read_to_string("/proc/net/udp").unwrap_or_default())
            && std::time::Instant::now() < deadline
        {
            assert!(child.try_wait().unwrap().is_none(), "nfcapd ended");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    idle();
    let (_, stderr, code) = capture.decode(&["-c", "127.0.0.1", "-d", &port]);
    // It writes its file when it is asked to end.
    idle();
    let id = rustix::process::Pid::from_child(&child);
    let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    child.wait().unwrap();
    let dumped = Command::new("nfdump")
        .args(["-q", "-o", "csv", "-R"])
        .arg(&folder)
        .output()
        .unwrap();
    let _ = std::fs::remove_dir_all(&folder);
    let text = String::from_utf8_lossy(&dumped.stdout).into_owned();
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert!(
        text.contains("192.0.2.1,198.51.100.2,9999,6000,UDP"),
        "{text} {}",
        String::from_utf8_lossy(&dumped.stderr)
    );
    assert!(text.contains(",100,7800,"), "{text}");
}
