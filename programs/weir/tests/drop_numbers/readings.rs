//! A router that plays capture files, and what each of its channels reports of the packets that it dropped.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_flowfmt::ipfix::decode::{Collector, Item};
use weir_flowfmt::ipfix::flow::Flow;
use weir_flowfmt::sflow::DataFormat;
use weir_flowfmt::sflow::decode::{Datagram, FlowRecord, Sample};

use crate::live::Folder;

/// After this long the test gives up waiting; nothing is compared with it.
const LIMIT: Duration = Duration::from_secs(60);

/// Interface, node and reason of dropped packets.
pub(crate) type Key = (String, String, String);
pub(crate) type Counts = BTreeMap<Key, u64>;

/// What each channel says.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    pub(crate) api: Counts,
    pub(crate) cli: Counts,
    pub(crate) metrics: Counts,
    /// `show sflow drops`: dropped, and reported.
    pub(crate) sflow_dropped: Counts,
    pub(crate) sflow_reported: Counts,
    /// What the sFlow collector received: without the interface, with the standard's number of the reason.
    pub(crate) wire: BTreeMap<(String, String, u32), u64>,
    /// The standard's number of each reason, as the API has it.
    pub(crate) codes: BTreeMap<String, u32>,
    pub(crate) capture: Counts,
    /// Packets in the records that the IPFIX collector received, by `forwardingStatus`.
    pub(crate) ipfix: BTreeMap<u8, u64>,
}

struct Program {
    folder: Folder,
    child: Child,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    socket
}

impl Program {
    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .args(["--socket", &self.folder.argument("weir.sock")])
            .args(words.split_whitespace())
            .current_dir(&self.folder.0)
            .stdin(Stdio::null());
        command
    }

    fn text(&self, words: &str) -> String {
        let output = self.command(words).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The body of the API's reply.
    fn get(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.folder.file("weir.sock")).unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nHost: weir\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{path}: {reply}");
        body.to_owned()
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path)).unwrap()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

/// Starts a router without ports, adds those of the configuration, which play their files, and reads all channels when nothing
/// moves any more. `prepare` puts the files into the folder.
pub(crate) fn run(name: &str, prepare: impl FnOnce(&Folder) -> String) -> Readings {
    let folder = Folder::new(&format!("drops-{name}"));
    let (sflow, ipfix) = (socket(), socket());
    let text = prepare(&folder);
    let ports = ports(&folder, &text);
    let (before, with_ports) = configurations(&folder, &text, &ports, &sflow, &ipfix);
    std::fs::write(folder.file("before.yaml"), before).unwrap();
    std::fs::write(folder.file("ports.yaml"), with_ports).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["run", "-c", "before.yaml", "--socket"])
        .arg(folder.file("weir.sock"))
        .current_dir(&folder.0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(folder.file("log")).unwrap())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut program = Program { folder, child };
    let mut line = String::new();
    while !line.contains("runs:") {
        line.clear();
        let length = said.read_line(&mut line).unwrap();
        let log = || std::fs::read_to_string(program.folder.file("log")).unwrap_or_default();
        assert!(length > 0, "{name}: {}", log());
    }
    wait_for("the agent's settings", || {
        program.json("/v1/sflow")["collectors"]
            .as_array()
            .is_some_and(|it| !it.is_empty())
    });
    let mut capture = program
        .command("pcap capture drop -w drops.pcapng")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the capture", || {
        program.json("/v1/pcap")["captures"]
            .as_array()
            .is_some_and(|it| it.len() == 1)
    });
    program.text("config apply -c ports.yaml");
    let frames: u64 = ports
        .iter()
        .map(|port| frames(&program.folder.file(&format!("{port}.in.pcap"))))
        .sum();
    wait_for("frames and held packets", || {
        let metrics = program.get("/metrics");
        let number = |name: &str| value(&metrics, name);
        number("weir_router_received_packets_total") == frames
            && number("weir_router_held_packets") == 0
    });
    let mut readings = read(&program);
    let dropped: u64 = readings.api.values().sum();
    let mut heard = 0;
    wait_for("sFlow's notifications", || {
        heard += notifications(&sflow, &mut readings.wire);
        heard >= dropped
    });
    program.text("pcap stop");
    assert!(capture.wait().unwrap().code().is_some());
    readings.capture = captured(&std::fs::read(program.folder.file("drops.pcapng")).unwrap());
    program.signal(rustix::process::Signal::TERM);
    let mut collector = Collector::default();
    while program.child.try_wait().unwrap().is_none() {
        records(&ipfix, &mut collector, &mut readings.ipfix);
    }
    records(&ipfix, &mut collector, &mut readings.ipfix);
    readings
}

/// Ports that have a file to play.
fn ports(folder: &Folder, text: &str) -> Vec<String> {
    let named = |line: &str| Some(played(line)?.strip_suffix(".in.pcap")?.to_owned());
    text.lines()
        .filter_map(named)
        .filter(|port| folder.file(&format!("{port}.in.pcap")).exists())
        .collect()
}

/// The file that a line of the configuration names as a port's input.
fn played(line: &str) -> Option<&str> {
    let (_, device) = line.split_once("driver: pcap, input: ")?;
    device.split(',').next()
}

/// The configuration before there are ports, and that with them.
fn configurations(
    folder: &Folder,
    text: &str,
    ports: &[String],
    sflow: &UdpSocket,
    ipfix: &UdpSocket,
) -> (String, String) {
    let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
    let common = format!(
        "sflow: {{sampling-rate: 0, drop-limit: 100000, collectors: [{{address: 127.0.0.1, port: {}}}]}}
history: {{directory: {}}}
buffers: {{per-numa: 2048}}
",
        port(sflow),
        folder.argument("history"),
    );
    let ipfix = |interfaces: &str| {
        format!(
            "ipfix:
  flows: 1024
  records: {{all: {{elements: [sourceMacAddress, destinationMacAddress, ethernetType, forwardingStatus, packetDeltaCount]}}}}
  interfaces: {{{interfaces}}}
  collectors: [{{address: 127.0.0.1, port: {}}}]
",
            port(ipfix)
        )
    };
    let metered: Vec<_> = ports
        .iter()
        .map(|port| format!("{port}: {{records: all}}"))
        .collect();
    let plays = |line: &str| match played(line) {
        Some(file) if !folder.file(file).exists() => line.replace(&format!("input: {file}, "), ""),
        _ => line.to_owned(),
    };
    let text: Vec<_> = text.lines().map(plays).collect();
    (
        format!("{common}{}", ipfix("")),
        format!(
            "{}\n{common}{}",
            text.join("\n"),
            ipfix(&metered.join(", "))
        ),
    )
}

fn frames(file: &Path) -> u64 {
    weir_pcap::file::Reader::open(file).unwrap().count() as u64
}

fn value(metrics: &str, name: &str) -> u64 {
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |it| it.trim().parse::<f64>().unwrap() as u64)
}

/// Reads the channels that are asked, all at one state of the counters: drops go on while neighbours are given up.
fn read(program: &Program) -> Readings {
    let mut readings = Readings::default();
    wait_for("counters that stand still", || {
        let errors = program.json("/v1/errors");
        readings = Readings {
            api: counts(&errors["errors"], "count"),
            cli: table(&program.text("show errors")),
            metrics: exposed(&program.get("/metrics")),
            ..Readings::default()
        };
        let drops = &program.json("/v1/sflow")["drops"];
        readings.sflow_dropped = counts(drops, "dropped");
        readings.sflow_reported = counts(drops, "reported");
        for row in drops.as_array().unwrap() {
            let reason = row["reason"].as_str().unwrap().to_owned();
            readings
                .codes
                .insert(reason, row["code"].as_u64().unwrap() as u32);
        }
        let reported: u64 = readings.sflow_reported.values().sum();
        reported == readings.api.values().sum::<u64>() && program.json("/v1/errors") == errors
    });
    readings
}

fn counts(rows: &Value, count: &str) -> Counts {
    let mut counts = Counts::new();
    for row in rows.as_array().unwrap() {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let key = (text("interface"), text("node"), text("reason"));
        *counts.entry(key).or_default() += row[count].as_u64().unwrap();
    }
    counts
}

/// Columns are apart by two spaces at least.
fn table(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines().skip(1) {
        let columns: Vec<_> = line
            .split("  ")
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .collect();
        let [count, node, reason, _, interface, ..] = columns[..] else {
            panic!("{line}");
        };
        let key = (interface.to_owned(), node.to_owned(), reason.to_owned());
        *counts.entry(key).or_default() += count.parse::<u64>().unwrap();
    }
    counts
}

/// `weir_dropped_packets_total{interface="left",node="ip4-input",reason="no-route",severity="info"} 1`
fn exposed(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("weir_dropped_packets_total{") else {
            continue;
        };
        let (labels, count) = rest.split_once("} ").unwrap();
        let label = |name: &str| {
            labels
                .split(',')
                .find_map(|it| it.strip_prefix(&format!("{name}=\"")))
                .map_or("", |it| it.trim_end_matches('"'))
                .to_owned()
        };
        let key = (label("interface"), label("node"), label("reason"));
        *counts.entry(key).or_default() += count.trim().parse::<f64>().unwrap() as u64;
    }
    counts
}

/// Takes what the sFlow collector received, and returns how many notifications it was.
fn notifications(socket: &UdpSocket, to: &mut BTreeMap<(String, String, u32), u64>) -> u64 {
    let (mut buffer, mut heard) = (vec![0; 9000], 0);
    while let Ok(length) = socket.recv(&mut buffer) {
        for sample in Datagram::decode(&buffer[..length]).unwrap().samples() {
            let Sample::Discard(discard, records) = sample.unwrap() else {
                continue;
            };
            let mut names = None;
            for record in records {
                // 0:1041: two strings, each with its length before it, padded to four octets.
                if let FlowRecord::Other(it) = record.unwrap()
                    && it.format == DataFormat::EXTENDED_HW_TRAP
                {
                    let (group, rest) = string(it.body);
                    names = Some((group, string(rest).0));
                }
            }
            let (node, reason) = names.expect("a notification with the names of node and reason");
            *to.entry((node, reason, discard.reason)).or_default() += 1;
            heard += 1;
        }
    }
    heard
}

fn string(octets: &[u8]) -> (String, &[u8]) {
    let length = u32::from_be_bytes(octets[..4].try_into().unwrap()) as usize;
    let text = String::from_utf8(octets[4..4 + length].to_vec()).unwrap();
    (text, &octets[4 + length.next_multiple_of(4)..])
}

/// Interfaces and comments of the packets of a pcapng file (draft-ietf-opsawg-pcapng sections 3.1, 4.2 and 4.3), little endian.
fn captured(mut file: &[u8]) -> Counts {
    let (mut counts, mut interfaces) = (Counts::new(), Vec::new());
    let word =
        |octets: &[u8], at: usize| u32::from_le_bytes(octets[at..at + 4].try_into().unwrap());
    let option = |mut options: &[u8], wanted: u16| {
        while options.len() >= 4 {
            let code = u16::from_le_bytes([options[0], options[1]]);
            let length = u16::from_le_bytes([options[2], options[3]]) as usize;
            if code == wanted {
                return String::from_utf8(options[4..4 + length].to_vec()).unwrap();
            }
            options = &options[4 + length.next_multiple_of(4)..];
        }
        String::new()
    };
    while !file.is_empty() {
        let (kind, length) = (word(file, 0), word(file, 4) as usize);
        let body = &file[8..length - 4];
        match kind {
            1 => interfaces.push(option(&body[8..], 2)),
            6 => {
                let kept = (word(body, 12) as usize).next_multiple_of(4);
                let comment = option(&body[20 + kept..], 1);
                let (node, reason) = comment
                    .strip_prefix("dropped at ")
                    .and_then(|it| it.split_once(": "))
                    .unwrap_or_else(|| panic!("{comment:?}"));
                let interface = interfaces[word(body, 0) as usize].clone();
                let key = (interface, node.to_owned(), reason.to_owned());
                *counts.entry(key).or_default() += 1;
            }
            _ => {}
        }
        file = &file[length..];
    }
    counts
}

/// Takes what the IPFIX collector received.
fn records(socket: &UdpSocket, collector: &mut Collector, to: &mut BTreeMap<u8, u64>) {
    let mut buffer = vec![0; 9000];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        collector.read(from, &buffer[..length], &mut |item| match item {
            Item::Record(record) if !record.template.is_options() => {
                let flow = Flow::of(&record);
                *to.entry(flow.forwarding_status).or_default() += flow.packets;
            }
            Item::Sequence(_, gap) => panic!("a gap: {gap:?}"),
            Item::Undecoded(what) => panic!("{what:?}"),
            _ => {}
        });
    }
}
