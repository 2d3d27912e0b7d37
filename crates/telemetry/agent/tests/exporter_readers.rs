//! What the exporter sends, read by other people's collectors: nfdump and pmacct. Expected records come from the
//! observations, not from what was encoded. Skipped where they are not installed.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_flowfmt::ipfix::Version;
use weir_telemetry::exporter::{
    CollectorConfig, Complete, Epoch, Exporter, ExporterConfig, FlowSource, Knows, Named,
    RecordSet, RecordSets, Transport,
};
use weir_telemetry::flows::key::{Kind, Parts};
use weir_telemetry::flows::{Facts, FlowRecord, Key, Observation, Settings, Table};

const SECOND: u64 = 1_000_000_000;
const FLOWS: u32 = 400;

struct Names;

impl Knows for Names {
    fn interfaces(&self) -> Vec<Named> {
        vec![Named {
            number: 3,
            name: "wan".into(),
            description: "uplink".into(),
        }]
    }

    fn vrfs(&self) -> Vec<Named> {
        vec![Named {
            number: 7,
            name: "red".into(),
            description: String::new(),
        }]
    }

    fn ignored(&self) -> (u64, u64) {
        (0, 0)
    }

    fn with_completion(&self, work: &mut dyn FnMut(&dyn Complete)) {
        work(&Red);
    }
}

/// All flows come by one table.
struct Red;

impl Complete for Red {
    fn complete(&self, record: &mut FlowRecord) {
        record.vrf = 7;
    }
}

fn source(flow: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 + flow)
}

fn observation(flow: u32, set: u8) -> Observation {
    let mut parts = Parts {
        kind: Kind::Ip4,
        set,
        protocol: 6,
        source_port: 1024,
        destination_port: 443,
        ..Parts::default()
    };
    (parts.input, parts.output, parts.vlan) = (3, 4, 77);
    parts.source[12..].copy_from_slice(&source(flow).octets());
    parts.destination[12..].copy_from_slice(&[192, 0, 2, 9]);
    Observation {
        extra: Default::default(),
        key: Key::new(&parts),
        octets: 100 + flow,
        tcp_flags: 0x18,
        ttl: 64,
        fragment: 0,
    }
}

/// Exports flows of two packets, five and seven seconds after the clock's start, to this port; the start in seconds.
fn export(port: u16, version: Version, sampling: u32) -> u64 {
    let records = RecordSet::new(["router"]).unwrap().into();
    export_sampled(port, version, (sampling, BTreeMap::new()), records)
}

/// The same of these record sets: flow N is of number N modulo their number.
fn export_sampled(
    port: u16,
    version: Version,
    (sampling, rates): (u32, BTreeMap<u8, u32>),
    records: RecordSets,
) -> u64 {
    let (mut table, ring) = Table::new(
        Settings {
            flows: 1000,
            ..Settings::default()
        },
        9,
    );
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
        - 60;
    let sets = records.0.len() as u32;
    let config = ExporterConfig {
        domain: 5,
        refresh: Duration::from_secs(30),
        sampling,
        rates,
        active: Duration::from_secs(60),
        idle: Duration::from_secs(15),
        biflow: false,
        rate: 0,
        epoch: Epoch {
            wall: wall * SECOND,
            started: 0,
        },
        collectors: vec![CollectorConfig {
            target: SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into(),
            transport: Transport::Udp,
            version,
            records,
            mtu: 1500,
            queue: 0,
        }],
    };
    let source = FlowSource {
        ring,
        counts: table.counts().clone(),
    };
    let exporter = Exporter::start(config, vec![source], Arc::new(Names)).unwrap();
    for part in 0..FLOWS / 100 {
        let packets: Vec<_> = (part * 100..(part + 1) * 100)
            .map(|flow| observation(flow, (flow % sets) as u8))
            .collect();
        table.meter(5 * SECOND, &packets, |_| Facts::default());
        table.meter(7 * SECOND, &packets, |_| Facts::default());
        table.flush();
        wait("the exporter", || {
            exporter.stats().collectors[0].1.sent.flows == u64::from(part + 1) * 100
        });
        wait("the collector", || queued(port) == Some(true));
    }
    assert_eq!(exporter.stop().collectors[0].1.not_sent.flows, 0);
    wall
}

/// Whether the socket at this port has nothing to read; `None` without a socket.
fn queued(port: u16) -> Option<bool> {
    let tables = ["/proc/net/udp", "/proc/net/udp6"]
        .map(|file| std::fs::read_to_string(file).unwrap_or_default());
    let line = tables.iter().flat_map(|table| table.lines()).find(|line| {
        line.split_whitespace()
            .nth(1)
            .is_some_and(|local| local.ends_with(&format!(":{port:04X}")))
    })?;
    Some(line.contains("00000000:00000000"))
}

/// Processes that a process started.
fn children(id: u32) -> Vec<String> {
    let listed =
        std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    listed.split_whitespace().map(str::to_owned).collect()
}

/// How often a process went to sleep so far, if it sleeps.
fn rest(id: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    line("State:")?
        .trim()
        .starts_with('S')
        .then(|| line("voluntary_ctxt_switches:").map(str::to_owned))?
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !until() {
        assert!(Instant::now() < end, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program and a folder, both gone with the test.
struct Reader {
    child: Child,
    folder: PathBuf,
    port: u16,
}

impl Reader {
    /// Starts it in a folder and with a port; nothing if it is not installed.
    fn start(name: &str, arguments: impl FnOnce(&Path, u16) -> Vec<String>) -> Option<Reader> {
        let folder =
            std::env::temp_dir().join(format!("weir-readers-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let port = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let program = name.split('-').next().unwrap();
        let child = Command::new(program)
            .args(arguments(&folder, port))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            let _ = std::fs::remove_dir_all(&folder);
            eprintln!("skipped: {program} is not installed");
            return None;
        };
        let reader = Reader {
            child,
            folder,
            port,
        };
        wait(program, || queued(port).is_some());
        Some(reader)
    }

    /// Ends it, once it and its children have nothing more to do with what came: some lose that otherwise.
    fn end(&mut self, signal: rustix::process::Signal) {
        let id = self.child.id();
        let all = || {
            std::iter::once(id.to_string())
                .chain(children(id))
                .map(|id| rest(&id))
                .collect::<Option<Vec<_>>>()
        };
        wait("a reader that is at rest", || {
            let before = all();
            std::thread::sleep(Duration::from_millis(200));
            before.is_some() && before == all()
        });
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn nfdump_reads_every_record() {
    for version in [Version::Ipfix, Version::NetFlow9] {
        let arguments = |folder: &Path, port: u16| {
            [
                "-b",
                "127.0.0.1",
                "-t",
                "3600",
                "-p",
                &port.to_string(),
                "-l",
                folder.to_str().unwrap(),
            ]
            .map(str::to_owned)
            .to_vec()
        };
        let Some(mut nfcapd) = Reader::start(&format!("nfcapd-{version:?}"), arguments) else {
            return;
        };
        let wall = export(nfcapd.port, version, 1);
        nfcapd.end(rustix::process::Signal::TERM);
        let format = "fmt:%sa,%da,%sp,%dp,%pr,%pkt,%byt,%in,%out,%ts,%te,%flg,%svln";
        let output = Command::new("nfdump")
            .env("TZ", "UTC")
            .args(["-q", "-N", "-o", format, "-R"])
            .arg(&nfcapd.folder)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut records: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split(',').map(str::trim).collect())
            .collect();
        assert_eq!(records.len(), FLOWS as usize, "{text}");
        records.sort_by_key(|record| record[0].parse::<Ipv4Addr>().unwrap());
        for (record, flow) in records.iter().zip(0..FLOWS) {
            let octets = (2 * (100 + flow)).to_string();
            assert_eq!(
                record[..9],
                [
                    &source(flow).to_string(),
                    "192.0.2.9",
                    "1024",
                    "443",
                    "6",
                    "2",
                    &octets,
                    "3",
                    "4"
                ]
            );
            let seconds = |second: u64| format!("{:02}.000", (wall + second) % 60);
            assert!(
                record[9].ends_with(&seconds(5)) && record[10].ends_with(&seconds(7)),
                "{wall} {record:?}"
            );
            assert_eq!(record[11..], ["...AP...", "77"]);
        }
    }
}

/// nfdump takes the rate from the options, and scales what it reads; names of interfaces and tables likewise.
#[test]
fn nfdump_knows_the_rate_and_the_names() {
    for version in [Version::Ipfix, Version::NetFlow9] {
        let arguments = |folder: &Path, port: u16| {
            [
                "-b",
                "127.0.0.1",
                "-t",
                "3600",
                "-p",
                &port.to_string(),
                "-l",
                folder.to_str().unwrap(),
            ]
            .map(str::to_owned)
            .to_vec()
        };
        let Some(mut nfcapd) = Reader::start(&format!("nfcapd-rate-{version:?}"), arguments) else {
            return;
        };
        export(nfcapd.port, version, 10);
        nfcapd.end(rustix::process::Signal::TERM);
        let output = Command::new("nfdump")
            .args(["-q", "-N", "-o", "fmt:%sa,%pkt,%byt,%inam,%ivrfnam", "-R"])
            .arg(&nfcapd.folder)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), FLOWS as usize, "{text}");
        for line in text.lines() {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let flow = u32::from(fields[0].parse::<Ipv4Addr>().unwrap()) - 0x0a00_0000;
            assert_eq!(
                fields[1..],
                ["20", &(20 * (100 + flow)).to_string(), "uplink", "red"],
                "{version:?}"
            );
        }
    }
}

/// Sets with rates of their own beside the usual one: what has both is scaled by each, and their packets are in no record together.
fn two_rates(port: u16, version: Version) {
    const RATE: [&str; 3] = ["samplingInterval", "samplerId", "selectorId"];
    let usual = RecordSet::new(["router"]).unwrap();
    let own = RecordSet::new(["router"].into_iter().chain(RATE)).unwrap();
    let records = RecordSets(vec![(0, usual), (1, own.clone()), (2, own)]);
    export_sampled(port, version, (2, [(1, 10), (2, 1)].into()), records);
}

/// How often the packets of a flow are counted that were sampled by the rate of its set.
fn scaled(flow: u32) -> u32 {
    [2, 10, 1][flow as usize % 3]
}

#[test]
fn nfacctd_scales_each_record_by_its_rate() {
    for version in [Version::Ipfix, Version::NetFlow9] {
        let arguments = |folder: &Path, port: u16| {
            let (file, output) = (folder.join("nfacctd.conf"), folder.join("flows.csv"));
            let text = format!(
                "daemonize: false\nnfacctd_ip: 127.0.0.1\nnfacctd_port: {port}\nplugins: print\naggregate: src_host\nnfacctd_renormalize: true\nprint_output: csv\nprint_output_file: {}\nprint_refresh_time: 3600\n",
                output.display()
            );
            std::fs::write(&file, text).unwrap();
            vec!["-f".to_owned(), file.to_str().unwrap().to_owned()]
        };
        let Some(mut nfacctd) = Reader::start(&format!("nfacctd-rates-{version:?}"), arguments)
        else {
            return;
        };
        two_rates(nfacctd.port, version);
        nfacctd.end(rustix::process::Signal::INT);
        let file = nfacctd.folder.join("flows.csv");
        let text = || std::fs::read_to_string(&file).unwrap_or_default();
        wait("what nfacctd writes", || {
            text().lines().count() > FLOWS as usize
        });
        for line in text().lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let flow = u32::from(fields[0].parse::<Ipv4Addr>().unwrap()) - 0x0a00_0000;
            let (packets, octets) = (2 * scaled(flow), 2 * scaled(flow) * (100 + flow));
            assert_eq!(
                fields[1..],
                [packets.to_string(), octets.to_string()],
                "{version:?} {flow}"
            );
        }
    }
}

#[test]
fn nfacctd_reads_every_record() {
    for version in [Version::Ipfix, Version::NetFlow9] {
        let arguments = |folder: &Path, port: u16| {
            let (file, output) = (folder.join("nfacctd.conf"), folder.join("flows.csv"));
            let text = format!(
                "daemonize: false\nnfacctd_ip: 127.0.0.1\nnfacctd_port: {port}\nplugins: print\naggregate: src_host, dst_host, src_port, dst_port, proto, in_iface, out_iface, tcpflags, vlan\nprint_output: csv\nprint_output_file: {}\nprint_refresh_time: 3600\n",
                output.display()
            );
            std::fs::write(&file, text).unwrap();
            vec!["-f".to_owned(), file.to_str().unwrap().to_owned()]
        };
        let Some(mut nfacctd) = Reader::start(&format!("nfacctd-{version:?}"), arguments) else {
            return;
        };
        export(nfacctd.port, version, 1);
        // Its ends writes what it has.
        nfacctd.end(rustix::process::Signal::INT);
        let file = nfacctd.folder.join("flows.csv");
        let lines = || {
            std::fs::read_to_string(&file)
                .unwrap_or_default()
                .lines()
                .count()
        };
        wait("what nfacctd writes", || lines() > FLOWS as usize);
        let text = std::fs::read_to_string(&file).unwrap();
        let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let head = rows.next().unwrap();
        let column = |name: &str| {
            head.iter()
                .position(|found| *found == name)
                .unwrap_or_else(|| panic!("{name} in {head:?}"))
        };
        let mut records: Vec<_> = rows.collect();
        records.sort_by_key(|record| record[column("SRC_IP")].parse::<Ipv4Addr>().unwrap());
        assert_eq!(records.len(), FLOWS as usize);
        for (record, flow) in records.iter().zip(0..FLOWS) {
            let of = |name: &str| record[column(name)];
            let octets = (2 * (100 + flow)).to_string();
            assert_eq!(
                [of("SRC_IP"), of("DST_IP"), of("SRC_PORT"), of("DST_PORT")],
                [&source(flow).to_string(), "192.0.2.9", "1024", "443"]
            );
            assert_eq!(
                [
                    of("PROTOCOL"),
                    of("IN_IFACE"),
                    of("OUT_IFACE"),
                    of("PACKETS"),
                    of("BYTES")
                ],
                ["tcp", "3", "4", "2", &octets]
            );
            // It ignores flags in two octets.
            assert_eq!([of("TCP_FLAGS"), of("VLAN")], ["24", "77"]);
        }
    }
}
