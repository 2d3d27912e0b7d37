//! The flow meter in the real program, between real hosts, read by other people's collectors: nfdump, pmacct and tshark.
//! What they have to read is worked out from what is sent, and compared record by record.
//!
//! Skipped with one line where no lab can be made (not root), or without the programs.

mod live;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use live::Folder;
use serde_json::Value;
use weir_netlink::lab::{Lab, NEAR, ROUTER, Running, has_program, preflight};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(30);
/// Flows of each version.
const FLOWS: u32 = 40;
/// Where collectors listen.
const NFCAPD: u16 = 4739;
const NFCAPD9: u16 = 2055;
const NFACCTD: u16 = 4799;

/// Sends the flows: from each source port to a port of its own so many datagrams of so many octets.
const SENDER: &str = "
import socket, sys
for family, far in ((socket.AF_INET, '10.2.0.2'), (socket.AF_INET6, 'fd00:2::2')):
    for flow in range(int(sys.argv[1])):
        one = socket.socket(family, socket.SOCK_DGRAM)
        one.bind(('', 20000 + flow))
        for _ in range(1 + flow % 5):
            one.sendto(b'x' * (10 * flow), (far, 30000 + flow))
        one.close()
";

/// Source, destination, ports: packets and octets.
type Flows = BTreeMap<(String, String, u32, u32), (u64, u64)>;

/// What was sent.
fn sent() -> Flows {
    let mut flows = Flows::new();
    for (near, far, headers) in [("10.1.0.2", "10.2.0.2", 28), ("fd00:1::2", "fd00:2::2", 48)] {
        for flow in 0..FLOWS {
            let packets = u64::from(1 + flow % 5);
            let octets = packets * u64::from(headers + 10 * flow);
            flows.insert(
                (
                    near.to_owned(),
                    far.to_owned(),
                    20_000 + flow,
                    30_000 + flow,
                ),
                (packets, octets),
            );
        }
    }
    flows
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !until() {
        assert!(Instant::now() < end, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a collector in the router's namespace, and waits until its port is open.
fn collector(lab: &Lab, port: u16, program: &str, arguments: &[&str]) -> Running {
    let host = lab.host(ROUTER).unwrap();
    let running = host.spawn(program, arguments).unwrap();
    let is_open = || {
        let sockets = host
            .run("cat", &["/proc/net/udp", "/proc/net/udp6"], LIMIT)
            .unwrap()
            .stdout;
        sockets.contains(&format!(":{port:04X} "))
    };
    wait(program, is_open);
    running
}

fn configuration() -> String {
    format!(
        "interfaces:
  xe0: {{ device: {{ driver: af-xdp, name: port-a }}, addresses: [ 10.1.0.1/24, 'fd00:1::1/64' ] }}
  xe1: {{ device: {{ driver: af-xdp, name: port-b }}, addresses: [ 10.2.0.1/24, 'fd00:2::1/64' ] }}
ipfix:
  flows: 4096
  interfaces: {{ xe0: {{ records: router }}, xe1: {{ records: router }} }}
  collectors:
    - {{ address: 127.0.0.1, port: {NFCAPD} }}
    - {{ address: 127.0.0.1, port: {NFCAPD9}, version: netflow9 }}
    - {{ address: 127.0.0.1, port: {NFACCTD} }}
"
    )
}

struct Stage {
    lab: Lab,
    folder: Folder,
}

impl Stage {
    fn ask(&self, arguments: &[&str]) -> Value {
        let output = std::process::Command::new(WEIR)
            .args(["--socket", &self.folder.argument("weir.sock")])
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    fn in_near(&self, program: &str, arguments: &[&str]) {
        let done = self
            .lab
            .host(NEAR)
            .unwrap()
            .run(program, arguments, LIMIT)
            .unwrap();
        assert!(done.success(), "{program}: {} {}", done.stdout, done.stderr);
    }
}

#[test]
fn other_peoples_collectors_read_every_flow() {
    if let Err(why) = preflight() {
        return eprintln!("skipped: {why}");
    }
    for program in ["nfcapd", "nfdump", "nfacctd", "tshark", "python3"] {
        if !has_program(program) {
            return;
        }
    }
    let folder = Folder::new("ipfix");
    let stage = Stage {
        lab: Lab::two_hosts().ipv6().build().unwrap(),
        folder,
    };
    let (lab, folder) = (&stage.lab, &stage.folder);
    let nfcapd = |port: u16, name: &str| {
        std::fs::create_dir_all(folder.0.join(name)).unwrap();
        collector(
            lab,
            port,
            "nfcapd",
            &[
                "-b",
                "127.0.0.1",
                "-t",
                "3600",
                "-p",
                &port.to_string(),
                "-l",
                &folder.argument(name),
            ],
        )
    };
    let (ten, nine) = (nfcapd(NFCAPD, "ten"), nfcapd(NFCAPD9, "nine"));
    let conf = folder.argument("nfacctd.conf");
    std::fs::write(&conf, pmacct(&folder.argument("pmacct.csv"))).unwrap();
    let pmacct = collector(lab, NFACCTD, "nfacctd", &["-f", &conf]);
    let capture = folder.argument("export.pcap");
    let mut shark = lab
        .host(ROUTER)
        .unwrap()
        .spawn("tshark", &["-i", "lo", "-f", "udp", "-w", &capture])
        .unwrap();
    wait("tshark", || {
        std::fs::metadata(&capture).is_ok_and(|it| it.len() > 0) || !shark.is_running().unwrap()
    });
    std::fs::write(folder.argument("weir.yaml"), configuration()).unwrap();
    let arguments = [
        "run",
        "-c",
        &folder.argument("weir.yaml"),
        "--socket",
        &folder.argument("weir.sock"),
    ];
    let mut router = lab.host(ROUTER).unwrap().spawn(WEIR, &arguments).unwrap();
    router.wait_for_output("runs:", LIMIT).unwrap();
    // Neighbours are known, and nothing has to wait.
    for far in ["10.2.0.2", "fd00:2::2"] {
        wait("a way", || {
            lab.host(NEAR)
                .unwrap()
                .run("ping", &["-c", "1", "-W", "1", far], LIMIT)
                .unwrap()
                .success()
        });
    }
    std::fs::write(folder.argument("send.py"), SENDER).unwrap();
    stage.in_near(
        "python3",
        &[&folder.argument("send.py"), &FLOWS.to_string()],
    );
    let expected = sent();
    let packets: u64 = expected.values().map(|(packets, _)| packets).sum();
    // Flows that are under way are shown, with filters.
    let table = stage.ask(&[
        "show",
        "flow",
        "table",
        "--json",
        "--prefix",
        "fd00:2::/64",
        "--port",
        "30007",
    ]);
    assert_eq!(
        (&table["matched"], &table["flows"][0]["packets"]),
        (&Value::from(1), &Value::from(3)),
        "{table}"
    );
    let flow = &table["flows"][0];
    assert_eq!(
        [&flow["input"], &flow["output"], &flow["next_hop"]],
        ["xe0", "xe1", "fd00:2::2"]
    );
    let top = stage.ask(&[
        "show",
        "flow",
        "top",
        "--json",
        "--interface",
        "xe0",
        "--limit",
        "3",
    ]);
    assert_eq!(top["flows"][0]["octets"], 5 * (48 + 390), "{top}");
    let show = stage.ask(&["show", "flow", "--json"]);
    assert!(
        show["workers"][0]["metered_packets"].as_u64() >= Some(packets),
        "{show}"
    );
    let index = |name: &str| {
        let interfaces = stage.ask(&["show", "interface", "--json"]);
        let all = interfaces["interfaces"].as_array().unwrap().clone();
        all.iter().find(|it| it["name"] == name).unwrap()["index"]
            .as_u64()
            .unwrap()
    };
    let ways = (index("xe0"), index("xe1"));
    let done = router.stop().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    // The kernel has given them all by now: the sockets are empty.
    let all_read = || {
        !lab.host(ROUTER)
            .unwrap()
            .run("cat", &["/proc/net/udp"], LIMIT)
            .unwrap()
            .stdout
            .lines()
            .skip(1)
            .any(has_queue)
    };
    wait("the collectors", all_read);
    let _ = (
        ten.stop().unwrap(),
        nine.stop().unwrap(),
        pmacct.interrupt().unwrap(),
    );
    std::thread::sleep(Duration::from_millis(500));
    let _ = shark.interrupt().unwrap();

    assert_eq!(
        nfdump(&folder.0.join("ten"), ways),
        expected,
        "IPFIX, nfdump"
    );
    assert_eq!(
        nfdump(&folder.0.join("nine"), ways),
        expected,
        "NetFlow 9, nfdump"
    );
    let csv = folder.argument("pmacct.csv");
    wait("what nfacctd writes", || {
        std::fs::read_to_string(&csv).is_ok_and(|text| text.lines().count() > expected.len())
    });
    assert_eq!(
        nfacctd(&std::fs::read_to_string(&csv).unwrap(), ways),
        expected,
        "IPFIX, nfacctd"
    );
    assert_eq!(tshark(&capture), expected, "IPFIX, tshark");
}

/// Whether something waits in a socket's receive queue.
fn has_queue(line: &str) -> bool {
    !line.contains("00000000:00000000")
}

fn pmacct(file: &str) -> String {
    format!(
        "daemonize: false\nnfacctd_ip: 127.0.0.1\nnfacctd_port: {NFACCTD}\nplugins: print\n\
         aggregate: src_host, dst_host, src_port, dst_port, proto, in_iface, out_iface\nprint_output: csv\nprint_output_file: {file}\nprint_refresh_time: 3600\n"
    )
}

/// What nfdump read: UDP, with the interfaces by which it came and left, all of it.
fn nfdump(folder: &Path, (input, output): (u64, u64)) -> Flows {
    let format = "fmt:%sa,%da,%sp,%dp,%pkt,%byt,%in,%out";
    let done = std::process::Command::new("nfdump")
        .args(["-6", "-q", "-N", "-o", format, "-R"])
        .arg(folder)
        .arg("proto udp")
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let mut flows = Flows::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let number = |place: usize| {
            fields[place]
                .parse::<u64>()
                .unwrap_or_else(|_| panic!("{line}"))
        };
        assert_eq!((number(6), number(7)), (input, output), "{line}");
        let key = (
            fields[0].to_owned(),
            fields[1].to_owned(),
            number(2) as u32,
            number(3) as u32,
        );
        assert_eq!(
            flows.insert(key, (number(4), number(5))),
            None,
            "twice: {line}"
        );
    }
    flows
}

fn nfacctd(text: &str, (input, output): (u64, u64)) -> Flows {
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let column = |name: &str| {
        head.iter()
            .position(|found| *found == name)
            .unwrap_or_else(|| panic!("{name} in {head:?}"))
    };
    let mut flows = Flows::new();
    for row in rows.filter(|row| row[column("PROTOCOL")] == "udp") {
        let number = |name: &str| row[column(name)].parse::<u64>().unwrap();
        assert_eq!(
            (number("IN_IFACE"), number("OUT_IFACE")),
            (input, output),
            "{row:?}"
        );
        let key = (
            row[column("SRC_IP")].to_owned(),
            row[column("DST_IP")].to_owned(),
            number("SRC_PORT") as u32,
            number("DST_PORT") as u32,
        );
        assert_eq!(
            flows.insert(key, (number("PACKETS"), number("BYTES"))),
            None,
            "twice: {row:?}"
        );
    }
    flows
}

/// What tshark reads of the IPFIX messages; it must find fault with none.
fn tshark(capture: &str) -> Flows {
    let port = format!("udp.port=={NFCAPD},cflow");
    let read = |more: &[&str]| {
        let done = std::process::Command::new("tshark")
            .args(["-n", "-r", capture, "-d", &port])
            .args(more)
            .output()
            .unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let is_ours = format!("udp.dstport == {NFCAPD} && cflow");
    assert_eq!(
        read(&[
            "-Y",
            &format!("{is_ours} && (_ws.malformed || _ws.expert.severity >= 6291456)")
        ]),
        ""
    );
    let mut flows = Flows::new();
    // Each record begins with its number; a line tells a field.
    let text = read(&["-Y", &is_ours, "-V"]);
    let mut records: Vec<HashMap<&str, &str>> = Vec::new();
    for line in text.lines().map(str::trim) {
        let is_number = |rest: &str| rest.bytes().all(|octet| octet.is_ascii_digit());
        if line.starts_with("Frame ") || line.strip_prefix("Flow ").is_some_and(is_number) {
            records.push(HashMap::new());
        } else if let (Some(record), Some((name, value))) =
            (records.last_mut(), line.split_once(": "))
        {
            record.entry(name).or_insert(value);
        }
    }
    for record in records.iter().filter(|record| {
        record.get("Protocol") == Some(&"UDP (17)") && record.contains_key("SrcPort")
    }) {
        let number = |name: &str| {
            record[name]
                .parse::<u64>()
                .unwrap_or_else(|_| panic!("{name} of {record:?}"))
        };
        let key = (
            record["SrcAddr"].to_owned(),
            record["DstAddr"].to_owned(),
            number("SrcPort") as u32,
            number("DstPort") as u32,
        );
        assert_eq!(
            flows.insert(key, (number("Packets"), number("Octets"))),
            None,
            "twice: {record:?}"
        );
    }
    flows
}
