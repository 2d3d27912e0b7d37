//! Collectors that fail, before the real program between real hosts: what refuses, resets, never reads, is gone, has another
//! name than it should or a certificate that is over. Each is reported by `weir show flow exporter`; packets are forwarded as
//! if nothing was, and a collector that starts anew, and one behind TLS (`openssl s_server`), read every packet that was sent.
//!
//! Skipped with one line where no lab can be made (not root), or without the programs.

mod live;

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use live::Folder;
use serde_json::Value;
use weir_flowfmt::ipfix::decode::{Collector, Item, message_length};
use weir_flowfmt::ipfix::flow::Flow;
use weir_netlink::lab::{Host, Lab, NEAR, ROUTER, Running, has_program, preflight};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(30);
/// Flows of each of three rounds.
const FLOWS: u32 = 600;
/// Where collectors are: by TCP one that reads, one that resets, one that never reads, none; by UDP none.
const READER: u16 = 4701;
const RESETTING: u16 = 4702;
const DEAF: u16 = 4703;
const NOBODY: u16 = 4704;
const GONE: u16 = 4705;
/// By TLS: a good one, one with another name, one whose certificate is over.
const GOOD: u16 = 4741;
const OTHER: u16 = 4742;
const EXPIRED: u16 = 4743;

/// Sends the flows from a given number on, not faster than a socket's buffer takes.
const SENDER: &str = "
import socket, sys, time
first, count = int(sys.argv[1]), int(sys.argv[2])
for flow in range(first, first + count):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(('', 20000 + flow))
    for _ in range(1 + flow % 3):
        one.sendto(b'x' * (flow % 500), ('10.2.0.2', 30000 + flow))
    one.close()
    time.sleep(0.0005)
";

/// By source port: packets and octets.
type Flows = BTreeMap<u16, (u64, u64)>;

fn sent(flows: u32) -> Flows {
    let load = |flow: u32| {
        (
            u64::from(1 + flow % 3),
            u64::from((1 + flow % 3) * (28 + flow % 500)),
        )
    };
    (0..flows)
        .map(|flow| (20_000 + flow as u16, load(flow)))
        .collect()
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !until() {
        assert!(Instant::now() < end, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What was read of a stream.
#[derive(Default)]
struct Heard {
    collector: Collector,
    buffer: Vec<u8>,
    flows: Flows,
}

impl Heard {
    /// Takes octets of a connection; each flow may come in parts.
    fn take(&mut self, from: SocketAddr, octets: &[u8]) {
        self.buffer.extend_from_slice(octets);
        while let Some(length) =
            message_length(&self.buffer).filter(|length| self.buffer.len() >= *length)
        {
            let message: Vec<u8> = self.buffer.drain(..length).collect();
            let flows = &mut self.flows;
            self.collector.read(from, &message, &mut |item| match item {
                Item::Record(record) if !record.template.is_options() => {
                    let flow = Flow::of(&record);
                    if flow.protocol == Some(17)
                        && flow.destination_address().to_string() == "10.2.0.2"
                    {
                        assert_eq!(flow.forwarding_status, 64, "{flow:?}");
                        let sums = flows.entry(flow.source_port).or_default();
                        *sums = (sums.0 + flow.packets, sums.1 + flow.octets);
                    }
                }
                Item::Sequence(_, gap) => panic!("a gap: {gap:?}"),
                Item::Undecoded(what) => panic!("{what:?}"),
                _ => {}
            });
        }
    }

    /// Reads until all packets of so many flows are there, or, without a number, to the end.
    fn read(&mut self, stream: &mut TcpStream, flows: Option<u32>) {
        let (from, mut chunk) = (stream.peer_addr().unwrap(), [0; 4096]);
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        while flows.is_none_or(|flows| self.flows != sent(flows)) {
            match stream.read(&mut chunk).unwrap() {
                0 if flows.is_none() => break,
                0 => panic!("it ended with {} flows", self.flows.len()),
                count => self.take(from, &chunk[..count]),
            }
        }
    }
}

/// Says that it goes, and reads what is on its way.
fn leave(mut stream: TcpStream, heard: &mut Heard) {
    let from = stream.peer_addr().unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    heard.read(&mut stream, None);
    heard.collector.forget(from);
    heard.buffer.clear();
}

fn listen(host: &Host, port: u16) -> TcpListener {
    host.namespace()
        .run(|| TcpListener::bind(("127.0.0.1", port)))
        .unwrap()
        .unwrap()
}

/// Certificate and key, in PEM: for this name, and over or not.
fn certificate(folder: &Folder, name: &str, expired: bool) {
    let mut parameters =
        rcgen::CertificateParams::new(vec!["collector.example".to_owned()]).unwrap();
    if expired {
        parameters.not_after = rcgen::date_time_ymd(2001, 1, 1);
    }
    let key = rcgen::KeyPair::generate().unwrap();
    std::fs::write(
        folder.argument(&format!("{name}.pem")),
        parameters.self_signed(&key).unwrap().pem(),
    )
    .unwrap();
    std::fs::write(folder.argument(&format!("{name}.key")), key.serialize_pem()).unwrap();
}

/// Starts openssl's server, which writes what it reads into a file.
fn tls(host: &Host, folder: &Folder, name: &str, port: u16) -> Running {
    certificate(folder, name, name == "expired");
    let [pem, key, out] =
        ["pem", "key", "out"].map(|end| folder.argument(&format!("{name}.{end}")));
    let line = format!(
        "sleep 100 | openssl s_server -quiet -accept 127.0.0.1:{port} -cert {pem} -key {key} > {out}"
    );
    let running = host.spawn("sh", &["-c", &line]).unwrap();
    let is_open = || {
        host.run("cat", &["/proc/net/tcp"], LIMIT)
            .unwrap()
            .stdout
            .contains(&format!(":{port:04X} 00000000:0000 0A"))
    };
    wait("openssl", is_open);
    running
}

fn configuration(folder: &Folder) -> String {
    let tcp = |port: u16| {
        format!("    - {{ address: 127.0.0.1, port: {port}, transport: tcp, queue: 64 }}\n")
    };
    let tls = |name: &str, port: u16, certificate: &str| {
        let ca = folder.argument(&format!("{certificate}.pem"));
        format!(
            "    - {{ address: 127.0.0.1, port: {port}, transport: tls, tls: {{ name: {name}, ca: {ca} }} }}\n"
        )
    };
    let collectors = [
        format!("    - {{ address: 127.0.0.1, port: {READER}, transport: tcp }}\n"),
        tcp(RESETTING),
        tcp(DEAF),
        tcp(NOBODY),
        format!("    - {{ address: 127.0.0.1, port: {GONE} }}\n"),
        tls("collector.example", GOOD, "good"),
        tls("other.example", OTHER, "other"),
        tls("collector.example", EXPIRED, "expired"),
    ];
    format!(
        "interfaces:
  xe0: {{ device: {{ driver: af-xdp, name: port-a }}, addresses: [ 10.1.0.1/24 ] }}
  xe1: {{ device: {{ driver: af-xdp, name: port-b }}, addresses: [ 10.2.0.1/24 ] }}
ipfix:
  flows: 4096
  active-timeout: 2
  idle-timeout: 1
  interfaces: {{ xe0: {{ records: router }}, xe1: {{ records: router }} }}
  collectors:
{}",
        collectors.concat()
    )
}

struct Stage {
    lab: Lab,
    folder: Folder,
}

impl Stage {
    fn show(&self) -> Value {
        let output = std::process::Command::new(WEIR)
            .args([
                "--socket",
                &self.folder.argument("weir.sock"),
                "show",
                "flow",
                "exporter",
                "--json",
            ])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What is informed of the collector at a port.
    fn collector(&self, port: u16) -> Value {
        let show = self.show();
        show["collectors"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["port"] == port)
            .unwrap_or_else(|| panic!("{show}"))
            .clone()
    }

    /// Waits until the last error of a collector is one of these.
    fn wait_for_error(&self, port: u16, texts: &[&str]) {
        let is_reported = |it: &Value| {
            it["last_error"]
                .as_str()
                .is_some_and(|reported| texts.iter().any(|text| reported.contains(text)))
        };
        let until = Instant::now() + LIMIT;
        while !is_reported(&self.collector(port)) {
            assert!(
                Instant::now() < until,
                "{texts:?}: {}",
                self.collector(port)
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn send(&self, round: u32) {
        let [first, count] = [round * FLOWS, FLOWS].map(|number| number.to_string());
        let done = self
            .lab
            .host(NEAR)
            .unwrap()
            .run(
                "python3",
                &[&self.folder.argument("send.py"), &first, &count],
                LIMIT,
            )
            .unwrap();
        assert!(done.success(), "{}", done.stderr);
    }
}

/// Ends a thread, also when the test fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn what_collectors_do_wrong_is_reported_and_touches_nothing_else() {
    if let Err(why) = preflight() {
        return eprintln!("skipped: {why}");
    }
    for program in ["openssl", "python3"] {
        if !has_program(program) {
            return;
        }
    }
    let folder = Folder::new("ipfix-faults");
    let stage = Stage {
        lab: Lab::two_hosts().build().unwrap(),
        folder,
    };
    let host = stage.lab.host(ROUTER).unwrap();
    // What the kernel holds for a connection is little, so that queues fill.
    for name in ["tcp_rmem", "tcp_wmem"] {
        host.set_parameter(&format!("ipv4/{name}"), "4096 8192 8192")
            .unwrap();
    }
    let reader = listen(host, READER);
    let (resetting, deaf) = (listen(host, RESETTING), listen(host, DEAF));
    let servers = [("good", GOOD), ("other", OTHER), ("expired", EXPIRED)]
        .map(|(name, port)| tls(host, &stage.folder, name, port));
    std::fs::write(
        stage.folder.argument("weir.yaml"),
        configuration(&stage.folder),
    )
    .unwrap();
    std::fs::write(stage.folder.argument("send.py"), SENDER).unwrap();
    let arguments = [
        "run",
        "-c",
        &stage.folder.argument("weir.yaml"),
        "--socket",
        &stage.folder.argument("weir.sock"),
    ];
    let mut router = host.spawn(WEIR, &arguments).unwrap();
    router.wait_for_output("runs:", LIMIT).unwrap();
    let near = stage.lab.host(NEAR).unwrap();
    wait("a way", || {
        near.run("ping", &["-c", "1", "-W", "1", "10.2.0.2"], LIMIT)
            .unwrap()
            .success()
    });
    let (heard, stop) = (Mutex::new(Heard::default()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        // Takes one octet and goes away with the rest unread, which resets the connection.
        resetting.set_nonblocking(true).unwrap();
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                if let Ok((mut stream, _)) = resetting.accept() {
                    stream.set_nonblocking(false).unwrap();
                    stream.set_read_timeout(Some(LIMIT)).unwrap();
                    let _ = stream.read(&mut [0]);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        // Packets that must all come back, whatever happens beside them.
        let pings = scope.spawn(|| {
            near.run(
                "ping",
                &["-q", "-i", "0.01", "-c", "800", "10.2.0.2"],
                LIMIT,
            )
            .unwrap()
        });
        let mut heard = heard.lock().unwrap();
        // It reads, goes as it should, is away, and comes again.
        let (mut stream, _) = reader.accept().unwrap();
        stage.send(0);
        heard.read(&mut stream, Some(FLOWS));
        leave(stream, &mut heard);
        drop(reader);
        stage.send(1);
        stage.wait_for_error(READER, &["refused"]);
        for (port, texts) in [
            (RESETTING, &["reset", "closed", "Broken pipe"][..]),
            (NOBODY, &["refused"]),
            (GONE, &["refused"]),
            (OTHER, &["not valid for name"]),
            (EXPIRED, &["expired"]),
        ] {
            stage.wait_for_error(port, texts);
        }
        let reader = listen(host, READER);
        let (mut stream, _) = reader.accept().unwrap();
        heard.read(&mut stream, Some(2 * FLOWS));
        stage.send(2);
        stage.wait_for_error(DEAF, &["is full"]);
        heard.read(&mut stream, Some(3 * FLOWS));
        let deaf = stage.collector(DEAF);
        assert!(
            deaf["not_sent"]["flows"].as_u64() > Some(0) && deaf["connected"] == true,
            "{deaf}"
        );
        // What went to whom is known to the packet, also of those who got nothing, once the message is gone that a record is in.
        let sums = |it: &Value| ["packets", "octets"].map(|what| it[what].as_u64().unwrap());
        let open = |show: &Value| {
            let of_udp = show["collectors"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|it| it["transport"] == "udp");
            let whole = |collector: &Value| {
                let parts = ["sent", "not_sent", "left_out"].map(|part| sums(&collector[part]));
                parts
                    .iter()
                    .fold([0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]])
            };
            of_udp
                .filter(|collector| whole(collector) != sums(&show["taken"]))
                .cloned()
                .collect::<Vec<_>>()
        };
        let until = Instant::now() + LIMIT;
        loop {
            let show = stage.show();
            let open = open(&show);
            if open.is_empty() {
                break;
            }
            assert!(
                Instant::now() < until,
                "{} taken, but {open:?}",
                show["taken"]
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let pings = pings.join().unwrap();
        assert!(
            pings.stdout.contains(" 0% packet loss"),
            "{} {}",
            pings.stdout,
            pings.stderr
        );
        let done = router.stop().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
        heard.read(&mut stream, None);
    });
    drop(deaf);
    assert!(heard.into_inner().unwrap().flows == sent(3 * FLOWS));
    let mut behind_tls = Heard::default();
    behind_tls.take(
        ([127, 0, 0, 1], GOOD).into(),
        &std::fs::read(stage.folder.argument("good.out")).unwrap(),
    );
    assert!(
        behind_tls.flows == sent(3 * FLOWS),
        "TLS: {} flows, {:?}",
        behind_tls.flows.len(),
        servers[0].stderr_so_far()
    );
    for name in ["other.out", "expired.out"] {
        assert!(
            std::fs::read(stage.folder.argument(name))
                .unwrap()
                .is_empty(),
            "{name}"
        );
    }
    drop(servers);
}
