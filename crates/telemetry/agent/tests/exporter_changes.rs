//! The exporter while its configuration changes: no record is lost without being counted, what is new is reported at once,
//! and collectors that are given up still get what is in tables that are given up with them.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_flowfmt::ipfix::Version;
use weir_flowfmt::ipfix::decode::{Collector, Item, message_length};
use weir_telemetry::exporter::{
    CollectorConfig, CollectorStats, Epoch, Exporter, ExporterConfig, FlowSource, Knows, Load,
    Named, RecordSet, Transport,
};
use weir_telemetry::flows::key::{Kind, Parts};
use weir_telemetry::flows::{Facts, Key, Observation, Settings, Table};

const LIMIT: Duration = Duration::from_secs(30);
/// So seldom that no test waits for it.
const SELDOM: Duration = Duration::from_secs(3600);

struct Nameless;

impl Knows for Nameless {
    fn interfaces(&self) -> Vec<Named> {
        Vec::new()
    }

    fn vrfs(&self) -> Vec<Named> {
        Vec::new()
    }

    fn ignored(&self) -> (u64, u64) {
        (0, 0)
    }
}

fn config(sampling: u32, collectors: Vec<CollectorConfig>) -> ExporterConfig {
    ExporterConfig {
        domain: 1,
        refresh: SELDOM,
        sampling,
        rates: Default::default(),
        active: Duration::from_secs(60),
        idle: Duration::from_secs(15),
        biflow: false,
        rate: 0,
        epoch: Epoch::default(),
        collectors,
    }
}

fn collector(address: SocketAddr, transport: Transport) -> CollectorConfig {
    let records = RecordSet::new(["5-tuple"]).unwrap().into();
    CollectorConfig {
        target: address.into(),
        transport,
        version: Version::Ipfix,
        records,
        mtu: 1500,
        queue: 1 << 26,
    }
}

/// A table that is empty, and where its records come out.
fn table() -> (Table, FlowSource) {
    let (table, ring) = Table::new(
        Settings {
            flows: 100_000,
            ring: 1 << 17,
            ..Settings::default()
        },
        9,
    );
    let source = FlowSource {
        ring,
        counts: table.counts().clone(),
    };
    (table, source)
}

fn meter(table: &mut Table, flows: std::ops::Range<u32>) {
    let observation = |flow: u32| {
        let mut parts = Parts {
            kind: Kind::Ip4,
            protocol: 17,
            ..Parts::default()
        };
        parts.source[12..].copy_from_slice(&flow.to_be_bytes());
        Observation {
            extra: Default::default(),
            key: Key::new(&parts),
            octets: 100,
            tcp_flags: 0,
            ttl: 64,
            fragment: 0,
        }
    };
    let packets: Vec<_> = flows.map(observation).collect();
    packets
        .chunks(256)
        .for_each(|vector| table.meter(1, vector, |_| Facts::default()));
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !until() {
        assert!(Instant::now() < end, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Flows in messages of one stream.
fn flows_in(mut octets: &[u8]) -> usize {
    let (from, mut collector, mut flows) = (([127, 0, 0, 1], 1).into(), Collector::default(), 0);
    while let Some((message, rest)) =
        message_length(octets).and_then(|length| octets.split_at_checked(length))
    {
        collector.read(from, message, &mut |item| match item {
            Item::Record(record) if !record.template.is_options() => flows += 1,
            Item::Undecoded(what) => panic!("{what:?}"),
            Item::Sequence(_, gap) => panic!("{gap:?}"),
            _ => {}
        });
        octets = rest;
    }
    assert!(octets.is_empty(), "{} octets of a message", octets.len());
    flows
}

fn read_to_end(mut stream: TcpStream) -> usize {
    let mut octets = Vec::new();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.read_to_end(&mut octets).unwrap();
    flows_in(&octets)
}

/// What became of all that the exporter took.
fn sum(stats: &CollectorStats) -> Load {
    [stats.sent, stats.not_sent, stats.left_out]
        .iter()
        .fold(Load::default(), |sum, part| Load {
            flows: sum.flows + part.flows,
            packets: sum.packets + part.packets,
            octets: sum.octets + part.octets,
        })
}

/// The sampling that a collector reads from the records.
fn intervals(socket: &UdpSocket, count: usize) -> Vec<u64> {
    let (mut collector, mut intervals, mut buffer) = (Collector::default(), Vec::new(), [0; 2000]);
    while intervals.len() < count {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        collector.read(from, &buffer[..length], &mut |item| {
            if let Item::Record(record) = item {
                intervals.extend(record.number(34));
            }
        });
    }
    intervals
}

/// Collectors scale by the rate that they know: another one is not kept from them until templates are sent again.
#[test]
fn another_rate_is_reported_at_once() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let collectors = vec![collector(socket.local_addr().unwrap(), Transport::Udp)];
    let exporter = Exporter::start(
        config(1, collectors.clone()),
        Vec::new(),
        Arc::new(Nameless),
    )
    .unwrap();
    assert_eq!(intervals(&socket, 2), [1, 1]);
    exporter.reconfigure(config(100, collectors));
    assert_eq!(intervals(&socket, 2), [100, 100]);
}

/// A collector whose settings change gets what was queued on its old connection, and its counts go on.
#[test]
fn other_settings_lose_nothing() {
    const MANY: u32 = 90_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = collector(listener.local_addr().unwrap(), Transport::Tcp);
    let (mut table, source) = table();
    let exporter = Exporter::start(
        config(1, vec![collector.clone()]),
        vec![source],
        Arc::new(Nameless),
    )
    .unwrap();
    let (first, _) = listener.accept().unwrap();
    meter(&mut table, 0..MANY);
    assert_eq!(table.flush(), 0);
    // Nobody reads: more than the kernel takes waits in the queue.
    wait("the flows", || {
        exporter.stats().taken.flows == u64::from(MANY)
    });
    exporter.reconfigure(config(
        1,
        vec![CollectorConfig {
            mtu: 1400,
            ..collector
        }],
    ));
    assert_eq!(read_to_end(first), MANY as usize);
    let (second, _) = listener.accept().unwrap();
    meter(&mut table, MANY..MANY + 100);
    assert_eq!(table.flush(), 0);
    let all = u64::from(MANY) + 100;
    wait("the rest", || {
        exporter.stats().collectors[0].1.sent.flows == all
    });
    let reads = std::thread::spawn(move || read_to_end(second));
    let stats = exporter.stop();
    assert_eq!(reads.join().unwrap(), 100);
    let [(_, counted)] = &stats.collectors[..] else {
        panic!("{stats:?}")
    };
    assert_eq!(
        (sum(counted), counted.sent.flows, counted.connections),
        (stats.taken, all, 2)
    );
}

/// What an old connection did not get in its time is not sent: counted with the new one.
#[test]
fn what_the_old_connection_does_not_take_is_counted() {
    const MANY: u32 = 90_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = collector(listener.local_addr().unwrap(), Transport::Tcp);
    let (mut table, source) = table();
    let exporter = Exporter::start(
        config(1, vec![collector.clone()]),
        vec![source],
        Arc::new(Nameless),
    )
    .unwrap();
    let (_deaf, _) = listener.accept().unwrap();
    meter(&mut table, 0..MANY);
    assert_eq!(table.flush(), 0);
    wait("the flows", || {
        exporter.stats().taken.flows == u64::from(MANY)
    });
    exporter.reconfigure(config(
        1,
        vec![CollectorConfig {
            mtu: 1400,
            ..collector
        }],
    ));
    // Others are served meanwhile.
    let begin = Instant::now();
    meter(&mut table, MANY..MANY + 100);
    assert_eq!(table.flush(), 0);
    wait("the rest", || {
        exporter.stats().taken.flows == u64::from(MANY) + 100
    });
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
    wait("the count", || {
        let stats = exporter.stats();
        sum(&stats.collectors[0].1) == stats.taken
    });
    assert!(exporter.stats().collectors[0].1.not_sent.flows > 0);
}

/// Metering and collectors are taken away at once: what tables hold then still goes to these.
#[test]
fn the_last_flows_go_to_collectors_that_are_given_up() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let (mut table, source) = table();
    let collectors = vec![collector(socket.local_addr().unwrap(), Transport::Udp)];
    let exporter =
        Exporter::start(config(1, collectors), vec![source], Arc::new(Nameless)).unwrap();
    meter(&mut table, 0..500);
    wait("templates", || {
        exporter.stats().collectors[0].1.messages > 0
    });
    exporter.reconfigure(config(1, Vec::new()));
    // Workers give their tables up at their next turns.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(table.flush(), 0);
    drop(table);
    wait("the end", || {
        let stats = exporter.stats();
        stats.collectors.is_empty() && stats.sources == 0
    });
    let (mut collector, mut flows, mut buffer) = (Collector::default(), 0, [0; 2000]);
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        collector.read(from, &buffer[..length], &mut |item| {
            flows +=
                usize::from(matches!(item, Item::Record(record) if !record.template.is_options()));
        });
    }
    assert_eq!(flows, 500);
}
