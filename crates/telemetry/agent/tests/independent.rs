//! The agent before independent judges: tshark, nfdump's sfcapd and pmacct's sfacctd read what it sends
//! and see the same flows, interfaces and volumes. Each is asked when it is installed.
//!
//! nfdump scales each sample by its rate, so it must say exactly what the samples say. pmacct scales by
//! how much the sample pool grew since the sample before, so it can only be right when pools are.
//!
//! Samples tell of ways, too: tags, next hops, label stacks also where there is no next hop. A reader that
//! stumbles over one of these loses what follows it in the datagram, and with it the volumes.

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use common::collector::{Interfaces, Received, Receiver, config, wait_for};
use common::{OUTPUT, Rig, filled};
use weir_buf::{Hugepages, Pool, PoolConfig};
use weir_flowfmt::sflow::encode::Encoding;
use weir_telemetry::agent::{
    Agent, AgentConfig, Asked, Hop, InterfaceReport, Labels, PathLookup, Reports, SampledPath,
};
use weir_wire::build::{Ends, tcp4, udp4};

/// One in this many is sampled.
const RATE: u32 = 20;

/// Who talks to whom: addresses, ports, protocol.
type Talk = (Ipv4Addr, Ipv4Addr, u16, u16, u8);
/// Packets and octets.
type Volume = (u64, u64);

/// Three talks with frames of unlike lengths.
fn talks() -> [(Talk, Vec<u8>); 3] {
    let ends = |last, source_port, destination_port| Ends {
        source: u32::from(Ipv4Addr::new(10, 1, 0, last)),
        destination: u32::from(Ipv4Addr::new(10, 2, 0, last)),
        source_port,
        destination_port,
        ..Ends::default()
    };
    // Ports that mean nothing to a dissector.
    let (small, large, middle) = (
        ends(1, 40_001, 50_001),
        ends(2, 40_002, 50_002),
        ends(3, 40_003, 50_003),
    );
    [
        (small, 17, udp4(&small, &[1; 40])),
        (large, 6, tcp4(&large, 0x10, &[2; 1_400])),
        (middle, 17, udp4(&middle, &[3; 700])),
    ]
    .map(|(ends, protocol, frame)| {
        (
            (
                ends.source.into(),
                ends.destination.into(),
                ends.source_port,
                ends.destination_port,
                protocol,
            ),
            frame,
        )
    })
}

/// A router whose packets have ways, each talk one of its own.
struct WithWays(Arc<Interfaces>);

impl Reports for WithWays {
    fn interfaces(&self) -> Vec<InterfaceReport> {
        self.0.interfaces()
    }

    fn dropped(&self) -> u64 {
        self.0.dropped()
    }

    fn node(&self, number: u16) -> &'static str {
        self.0.node(number)
    }

    fn with_ways(&self, work: &mut dyn FnMut(&dyn PathLookup)) {
        work(&ByTalk);
    }
}

/// The first talk's labels lead nowhere, the second's are exchanged, the third is routed from a VLAN.
struct ByTalk;

impl PathLookup for ByTalk {
    fn way(&self, asked: &Asked<'_>) -> SampledPath {
        let way = SampledPath {
            input: asked.input,
            output: asked.departure.map_or(0, |(port, _)| port),
            ..SampledPath::default()
        };
        let hop = |next: &str, prefixes| {
            Some(Hop {
                next: next.parse().unwrap(),
                prefixes,
            })
        };
        let came = Labels::new(&[100 << 12 | 64, 101 << 12 | 1 << 8 | 64]);
        match asked.start.get(29) {
            Some(1) => SampledPath {
                labels: (came, Labels::default()),
                ..way
            },
            Some(2) => SampledPath {
                labels: (came, Labels::new(&[200 << 12 | 1 << 8 | 63])),
                hop: hop("10.9.9.9", None),
                ..way
            },
            _ => SampledPath {
                tags: Some(((Some(7), Some(3)), (None, None))),
                hop: hop("2001:db8::9", Some((24, 16))),
                ..way
            },
        }
    }
}

/// What went through the router and what was made of it.
struct Truth {
    /// Packets of each talk that came in on each of the two interfaces.
    packets: u64,
    /// Samples of each talk, taken together with the rate.
    scaled: BTreeMap<Talk, Volume>,
    datagrams: Vec<Received>,
}

/// Sends the talks past two workers' samplers on two interfaces, and what the agent makes of it to
/// a collector, which is given the time to take it all.
fn traffic(encoding: Encoding, program: Option<&Program>) -> Truth {
    let talks = talks();
    let pool = Pool::new(PoolConfig {
        chunks: 256,
        hugepages: Hugepages::Off,
    })
    .unwrap();
    let vector: Vec<_> = (0..90)
        .map(|place| filled(&pool, &talks[place % 3].1))
        .collect();
    // A reader of our own counts what the agent is given.
    let own = Receiver::new();
    let mut rigs = [Rig::new(RATE, 71), Rig::new(RATE, 72).in_worker(1)];
    rigs.iter().for_each(|rig| rig.settings.set(RATE, 128));
    let collectors: Vec<SocketAddr> = [own.address()]
        .into_iter()
        .chain(program.map(Program::address))
        .collect();
    let report = |ifindex| InterfaceReport {
        ifindex,
        name: format!("eth{ifindex}"),
        sampled: true,
        ..InterfaceReport::default()
    };
    let config = AgentConfig {
        encoding,
        polling_interval: 1,
        ..config(&collectors)
    };
    let sources = rigs.iter_mut().map(Rig::give_source).collect();
    let agent = Agent::start(
        config,
        sources,
        Arc::new(WithWays(Interfaces::of(vec![report(1), report(2)]))),
    )
    .unwrap();
    let vectors = 100;
    for _ in 0..vectors {
        wait_for("the collector", || {
            program.is_none_or(|program| program.queue() == Some(0))
        });
        for (rig, interface) in rigs.iter_mut().zip([1, 2]) {
            rig.look_on(interface, &vector);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let stats = agent.stop();
    assert!(
        stats
            .collectors
            .iter()
            .all(|collector| collector.errors == 0),
        "{stats:?}"
    );
    let received = own.all();
    assert_eq!(received.len() as u64, stats.datagrams);
    let mut scaled = BTreeMap::new();
    for flow in received.iter().flat_map(|datagram| &datagram.flows) {
        let (talk, _) = talks
            .iter()
            .find(|(_, frame)| frame[..128.min(frame.len())] == flow.header[..])
            .unwrap();
        let volume: &mut Volume = scaled.entry(*talk).or_default();
        volume.0 += u64::from(RATE);
        // Both collectors count frames as they were on the wire, with FCS.
        volume.1 += u64::from(RATE * flow.frame_length);
    }
    Truth {
        packets: vectors * 30,
        scaled,
        datagrams: received,
    }
}

/// A program that collects, at a port of its own, with a folder of its own.
struct Program {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Program {
    /// `None`, and a line about it, when it is not installed.
    fn start(name: &str, command: impl Fn(u16, &std::path::Path) -> Command) -> Option<Program> {
        let port = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let folder =
            std::env::temp_dir().join(format!("weir-{name}-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin";
        let child = command(port, &folder)
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            let _ = std::fs::remove_dir_all(folder);
            eprintln!("skipped: no {name}");
            return None;
        };
        let program = Program {
            child,
            port,
            folder,
        };
        wait_for("its socket", || program.queue().is_some());
        Some(program)
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Octets that wait in its socket.
    fn queue(&self) -> Option<u64> {
        let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
        let port = format!(":{:04X}", self.port);
        let socket = sockets.lines().find(|line| {
            line.split_whitespace()
                .nth(1)
                .is_some_and(|local| local.ends_with(&port))
        })?;
        u64::from_str_radix(socket.split_whitespace().nth(4)?.split_once(':')?.1, 16).ok()
    }

    /// Lets it take what was sent, then ends it as its manual says.
    fn finish(&mut self, signal: &str) {
        wait_for("its socket to be empty", || self.queue() == Some(0));
        std::thread::sleep(Duration::from_millis(1_500));
        let killed = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Sums of rows of source, destination, ports, protocol, packets and octets.
fn volumes<'a>(rows: impl Iterator<Item = Vec<&'a str>>) -> BTreeMap<Talk, Volume> {
    let mut volumes = BTreeMap::new();
    for row in rows {
        let [
            source,
            destination,
            source_port,
            destination_port,
            protocol,
            packets,
            octets,
        ] = row[..]
        else {
            panic!("{row:?}")
        };
        let protocol = match protocol.to_ascii_lowercase().as_str() {
            "udp" => 17,
            "tcp" => 6,
            number => number.parse().unwrap(),
        };
        let talk = (
            source.parse().unwrap(),
            destination.parse().unwrap(),
            source_port.parse().unwrap(),
            destination_port.parse().unwrap(),
            protocol,
        );
        let volume: &mut Volume = volumes.entry(talk).or_default();
        volume.0 += packets.parse::<u64>().unwrap();
        volume.1 += octets.parse::<u64>().unwrap();
    }
    volumes
}

#[test]
fn nfdump_counts_the_same_flows_and_volumes() {
    for encoding in [Encoding::Expanded, Encoding::Compact] {
        let program = Program::start("sfcapd", |port, folder| {
            let mut command = Command::new("sfcapd");
            command
                .args([
                    "-4",
                    "-b",
                    "127.0.0.1",
                    "-p",
                    &port.to_string(),
                    "-t",
                    "3600",
                    "-w",
                ])
                .arg(folder);
            command
        });
        let Some(mut program) = program else { return };
        let truth = traffic(encoding, Some(&program));
        program.finish("-TERM");
        let format = "fmt:%sa,%da,%sp,%dp,%pr,%pkt,%byt,%in,%out";
        let output = Command::new("nfdump")
            .arg("-R")
            .arg(&program.folder)
            .args(["-q", "-N", "-o", format])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split(',').map(str::trim).collect())
            .collect();
        assert!(
            rows.iter()
                .all(|row| ["1", "2"].contains(&row[7]) && row[8] == OUTPUT.to_string()),
            "{text}"
        );
        assert_eq!(
            volumes(rows.iter().map(|row| row[..7].to_vec())),
            truth.scaled
        );
    }
}

#[test]
fn pmacct_counts_the_same_flows_and_volumes() {
    for encoding in [Encoding::Expanded, Encoding::Compact] {
        let program = Program::start("sfacctd", |port, folder| {
            let output = folder.join("out.csv");
            let settings = format!(
                "daemonize: false\nsfacctd_ip: 127.0.0.1\nsfacctd_port: {port}\nsfacctd_renormalize: true\nplugins: print[a]\n\
                 aggregate[a]: src_host, dst_host, src_port, dst_port, proto, in_iface, out_iface\nprint_output[a]: csv\n\
                 print_output_file[a]: {}\nprint_output_file_append[a]: true\nprint_refresh_time[a]: 3600\n",
                output.display()
            );
            let file = folder.join("settings");
            std::fs::write(&file, settings).unwrap();
            let mut command = Command::new("sfacctd");
            command.arg("-f").arg(file);
            command
        });
        let Some(mut program) = program else { return };
        let truth = traffic(encoding, Some(&program));
        program.finish("-INT");
        let file = program.folder.join("out.csv");
        let mut text = String::new();
        // A process of its own writes it, after the one that was instructed to end.
        wait_for("a title and six rows", || {
            text = std::fs::read_to_string(&file).unwrap_or_default();
            text.lines().count() >= 7 && text.ends_with('\n')
        });
        let (title, rows) = text.split_once('\n').unwrap();
        assert_eq!(
            title,
            "IN_IFACE,OUT_IFACE,SRC_IP,DST_IP,SRC_PORT,DST_PORT,PROTOCOL,PACKETS,BYTES"
        );
        let rows: Vec<Vec<&str>> = rows.lines().map(|line| line.split(',').collect()).collect();
        for interface in ["1", "2"] {
            let found = volumes(
                rows.iter()
                    .filter(|row| row[0] == interface)
                    .map(|row| row[2..].to_vec()),
            );
            assert!(
                rows.iter().all(|row| row[1] == OUTPUT.to_string()),
                "{text}"
            );
            assert_eq!(found.len(), 3, "{text}");
            let sum: u64 = found.values().map(|volume| volume.0).sum();
            // What came after the last sample is missing, and the first sample has no pool before it.
            assert!(
                sum.abs_diff(3 * truth.packets) < 15 * u64::from(RATE),
                "{sum} of {} on {interface}",
                3 * truth.packets
            );
            for (talk, frame) in talks() {
                let (packets, octets) = found[&talk];
                // Both the number of samples and the growth before each of them are chance.
                let sigma = (2.0 * truth.packets as f64 * f64::from(RATE)).sqrt();
                assert!(
                    (packets as f64 - truth.packets as f64).abs() < 5.0 * sigma,
                    "{packets} of {} on {interface}",
                    truth.packets
                );
                assert_eq!(octets, packets * (frame.len() as u64 + 4));
            }
        }
    }
}

#[test]
fn tshark_finds_nothing_wrong() {
    for encoding in [Encoding::Expanded, Encoding::Compact] {
        let truth = traffic(encoding, None);
        let mut capture: Vec<u8> = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 1]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        for datagram in &truth.datagrams {
            // It calls a datagram malformed that ends with an empty label stack, and wants an octet behind it.
            let bytes = [&datagram.bytes[..], &[0]].concat();
            let frame = udp4(
                &Ends {
                    destination_port: 6343,
                    ..Ends::default()
                },
                &bytes,
            );
            let length = frame.len() as u32;
            capture.extend(
                [1, 0, length, length]
                    .iter()
                    .flat_map(|word| word.to_le_bytes()),
            );
            capture.extend(frame);
        }
        let mut command = Command::new("tshark");
        let tshark = command
            .args(["-n", "-V", "-r", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut tshark) = tshark else {
            eprintln!("skipped: no tshark");
            return;
        };
        let mut input = tshark.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(&capture));
        let output = tshark.wait_with_output().unwrap();
        assert!(output.status.success() && writer.join().unwrap().is_ok());
        let text = String::from_utf8_lossy(&output.stdout);
        for wrong in ["Malformed", "Expert Info", "xception", "Truncated"] {
            let lines: Vec<&str> = text.lines().filter(|line| line.contains(wrong)).collect();
            assert!(lines.is_empty(), "{lines:?}");
        }
        let lines = |line: &str| text.lines().filter(|it| it.trim() == line).count() as u64;
        let samples = truth.scaled.values().map(|volume| volume.0).sum::<u64>() / u64::from(RATE);
        assert_eq!(
            lines(&format!("Sampling rate: 1 out of {RATE} packets")),
            samples
        );
        for ((_, _, source_port, _, _), volume) in truth.scaled {
            assert_eq!(
                lines(&format!("Source Port: {source_port}")),
                volume.0 / u64::from(RATE)
            );
        }
        let counters: usize = truth
            .datagrams
            .iter()
            .map(|datagram| datagram.counters.len())
            .sum();
        assert!(counters > 0);
        assert_eq!(
            lines("Interface Direction: Full-Duplex (1)"),
            counters as u64
        );
    }
}
