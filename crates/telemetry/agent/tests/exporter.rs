//! The exporter before collectors of this test's own: everything that was put in comes out, once, whatever the
//! collectors do; what does not is counted.

use std::collections::HashMap;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_flowfmt::ipfix::Version;
use weir_flowfmt::ipfix::decode::{Collector, Item, message_length};
use weir_flowfmt::ipfix::flow::Flow;
use weir_telemetry::exporter::{
    CollectorConfig, Epoch, Exporter, ExporterConfig, ExporterHandle, FlowSource, Knows, Load,
    Named, RecordSet, TlsSettings, Transport,
};
use weir_telemetry::flows::key::{Kind, Parts};
use weir_telemetry::flows::{Facts, Key, Observation, Settings, Table};

const SECOND: u64 = 1_000_000_000;

/// Where the router's clock begins: an hour ago.
fn wall() -> u64 {
    static WALL: OnceLock<u64> = OnceLock::new();
    *WALL.get_or_init(|| {
        (SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs()
            - 3600)
            * SECOND
    })
}

struct Names;

impl Knows for Names {
    fn interfaces(&self) -> Vec<Named> {
        (1..=40)
            .map(|number| Named {
                number,
                name: format!("port{number}"),
                description: "made up".into(),
            })
            .collect()
    }

    fn vrfs(&self) -> Vec<Named> {
        vec![Named {
            number: 0,
            name: "default".into(),
            description: String::new(),
        }]
    }

    fn ignored(&self) -> (u64, u64) {
        (3, 200)
    }
}

fn observation(flow: u32) -> Observation {
    let kind = if flow.is_multiple_of(3) {
        Kind::Ip6
    } else {
        Kind::Ip4
    };
    let mut parts = Parts {
        kind,
        protocol: 17,
        source_port: flow as u16,
        destination_port: 53,
        input: 1,
        output: 2,
        ..Parts::default()
    };
    parts.source[12..].copy_from_slice(&flow.to_be_bytes());
    if kind == Kind::Ip6 {
        parts.source[0] = 0x20;
    }
    Observation {
        extra: Default::default(),
        key: Key::new(&parts),
        octets: 100 + flow % 1000,
        tcp_flags: 0,
        ttl: 64,
        fragment: 0,
    }
}

/// A worker's table with these flows in it, of two packets each.
fn table(flows: std::ops::Range<u32>) -> (Table, FlowSource) {
    let (mut table, ring) = Table::new(
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
    meter(&mut table, flows);
    (table, source)
}

fn meter(table: &mut Table, flows: std::ops::Range<u32>) {
    let packets: Vec<_> = flows.map(observation).collect();
    for vector in packets.chunks(256) {
        table.meter(5 * SECOND, vector, |_| Facts::default());
        table.meter(7 * SECOND, vector, |_| Facts::default());
    }
}

fn udp(address: SocketAddr, version: Version) -> CollectorConfig {
    let records = RecordSet::new(["router"]).unwrap().into();
    CollectorConfig {
        target: address.into(),
        transport: Transport::Udp,
        version,
        records,
        mtu: 1500,
        queue: 1 << 20,
    }
}

fn tcp(address: SocketAddr) -> CollectorConfig {
    CollectorConfig {
        transport: Transport::Tcp,
        ..udp(address, Version::Ipfix)
    }
}

fn start(collectors: Vec<CollectorConfig>, sources: Vec<FlowSource>) -> ExporterHandle {
    start_refreshing(Duration::from_millis(300), collectors, sources)
}

fn start_refreshing(
    refresh: Duration,
    collectors: Vec<CollectorConfig>,
    sources: Vec<FlowSource>,
) -> ExporterHandle {
    Exporter::start(config(refresh, collectors), sources, Arc::new(Names)).unwrap()
}

fn config(refresh: Duration, collectors: Vec<CollectorConfig>) -> ExporterConfig {
    ExporterConfig {
        domain: 77,
        refresh,
        sampling: 1,
        rates: Default::default(),
        active: Duration::from_secs(60),
        idle: Duration::from_secs(15),
        biflow: false,
        rate: 0,
        epoch: Epoch {
            wall: wall(),
            started: SECOND,
        },
        collectors,
    }
}

/// What a collector read.
#[derive(Default)]
struct Heard {
    collector: Collector,
    flows: HashMap<(IpAddr, u16), (u64, u64)>,
    options: HashMap<u16, u64>,
    templates: usize,
    gaps: Vec<u32>,
    longest: usize,
}

impl Heard {
    fn hear(&mut self, from: SocketAddr, message: &[u8]) {
        self.longest = self.longest.max(message.len());
        self.collector.read(from, message, &mut |item| match item {
            Item::Record(record) if record.template.is_options() => {
                *self.options.entry(record.template.id).or_default() += 1
            }
            Item::Record(record) => {
                let flow = Flow::of(&record);
                assert_eq!(
                    (
                        flow.input,
                        flow.output,
                        flow.protocol,
                        flow.forwarding_status
                    ),
                    (1, 2, Some(17), 64)
                );
                let (start, end) = (flow.start.unwrap(), flow.end.unwrap());
                assert_eq!((start, end), (wall() + 5 * SECOND, wall() + 7 * SECOND));
                let known = self.flows.insert(
                    (flow.source_address(), flow.source_port),
                    (flow.packets, flow.octets),
                );
                assert_eq!(known, None, "twice: {flow:?}");
            }
            Item::Template(..) => self.templates += 1,
            Item::Sequence(_, gap) => self.gaps.push(gap.missing().unwrap_or(u32::MAX)),
            Item::Undecoded(what) => panic!("{what:?}"),
            _ => {}
        });
    }

    fn assert_is(&self, flows: std::ops::Range<u32>) {
        assert_eq!(self.flows.len(), flows.len());
        let mut expected = flows
            .map(|flow| (2, 2 * u64::from(100 + flow % 1000)))
            .collect::<Vec<_>>();
        let mut found: Vec<_> = self.flows.values().copied().collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !until() {
        assert!(Instant::now() < end, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A socket that has room for all that comes, also while nobody gets to read it.
fn ear(address: &str) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 32 << 20).is_err() {
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 32 << 20)?;
    }
    Ok(socket)
}

/// Reads datagrams until so many flows and templates came.
fn listen(socket: &UdpSocket, heard: &mut Heard, flows: usize, templates: usize) {
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let (mut buffer, end) = (vec![0; 65_536], Instant::now() + Duration::from_secs(60));
    while heard.flows.len() < flows || heard.templates < templates {
        assert!(
            Instant::now() < end,
            "{} flows, {} templates, gaps {:?}",
            heard.flows.len(),
            heard.templates,
            heard.gaps
        );
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        heard.hear(from, &buffer[..length]);
    }
}

#[test]
fn udp_collectors_hear_every_flow_and_templates_again_and_again() {
    for (version, address) in [
        (Version::Ipfix, "127.0.0.1:0"),
        (Version::NetFlow9, "127.0.0.1:0"),
        (Version::Ipfix, "[::1]:0"),
    ] {
        let Ok(socket) = ear(address) else {
            eprintln!("skipped: this machine has no IPv6");
            continue;
        };
        let (mut one, source) = table(0..0);
        let (mut two, other) = table(0..0);
        let mut config = udp(socket.local_addr().unwrap(), version);
        config.mtu = 600;
        let exporter = start(vec![config], vec![source, other]);
        let mut heard = Heard::default();
        for part in 0..10 {
            meter(&mut one, part * 100..part * 100 + 70);
            meter(&mut two, part * 100 + 70..(part + 1) * 100);
            assert_eq!((one.flush(), two.flush()), (0, 0));
            // No more than the socket's buffer holds.
            listen(&socket, &mut heard, 100 * (part as usize + 1), 0);
        }
        // Three of flows, ten of options; three rounds.
        listen(&socket, &mut heard, 1000, 39);
        heard.assert_is(0..1000);
        assert!(heard.gaps.is_empty(), "{:?}", heard.gaps);
        let headers = if address.starts_with('[') { 48 } else { 28 };
        assert!(
            heard.longest <= 600 - headers && heard.longest > 450,
            "{}",
            heard.longest
        );
        assert!(
            heard.options[&1024] >= 2 && heard.options[&1028] >= 2 && heard.options[&1029] >= 80,
            "{:?}",
            heard.options
        );
        let stats = exporter.stop();
        assert_eq!((stats.taken.flows, stats.taken.packets), (1000, 2000));
        assert_eq!(
            (stats.collectors[0].1.sent, stats.collectors[0].1.not_sent),
            (stats.taken, Load::default())
        );
    }
}

/// How packets were chosen, as RFC 5477 tells it and as collectors of NetFlow know it; also when all were.
#[test]
fn sampling_is_reported_as_it_is_done() {
    for (rate, probability, how) in [(1, 1.0, 1), (400, 0.0025, 2)] {
        for version in [Version::Ipfix, Version::NetFlow9] {
            let socket = ear("127.0.0.1:0").unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(30)))
                .unwrap();
            let mut config = config(
                Duration::from_secs(30),
                vec![udp(socket.local_addr().unwrap(), version)],
            );
            config.sampling = rate;
            let exporter = Exporter::start(config, Vec::new(), Arc::new(Names)).unwrap();
            let (mut collector, mut found, mut buffer) =
                (Collector::default(), HashMap::new(), [0; 2000]);
            while found.len() < 4 {
                let (length, from) = socket.recv_from(&mut buffer).unwrap();
                collector.read(from, &buffer[..length], &mut |item| match item {
                    Item::Record(record) => {
                        let reported = record
                            .fields()
                            .filter(|(field, _)| matches!(field.number, 34 | 35 | 304 | 311));
                        found.extend(
                            reported.map(|(field, value)| (field.number, format!("{value:?}"))),
                        );
                    }
                    Item::Undecoded(what) => panic!("{what:?}"),
                    _ => {}
                });
            }
            let expected = [
                (304, "Unsigned(4)".to_owned()),
                (311, format!("Float({probability:?})")),
                (34, format!("Unsigned({rate})")),
                (35, format!("Unsigned({how})")),
            ];
            assert_eq!(found, expected.into(), "{version:?}");
            drop(exporter);
        }
    }
}

/// What the kernel dropped because nobody read is what the sequence numbers say is missing.
#[test]
fn the_gap_is_what_is_missing() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (mut table, source) = table(0..0);
    let exporter = start_refreshing(
        Duration::from_secs(5),
        vec![udp(socket.local_addr().unwrap(), Version::Ipfix)],
        vec![source],
    );
    let mut heard = Heard::default();
    listen(&socket, &mut heard, 0, 13);
    meter(&mut table, 0..20_000);
    assert_eq!(table.flush(), 0);
    wait("the burst", || {
        exporter.stats().collectors[0].1.sent.flows >= 19_990
    });
    listen(&socket, &mut heard, 0, 26);
    let missing: u64 = heard.gaps.iter().map(|gap| u64::from(*gap)).sum();
    assert!(missing > 1000, "{missing}");
    assert_eq!(heard.flows.len() as u64 + missing, 20_000);
}

/// Reads a stream until so many flows came, then closes it.
fn accept(listener: &TcpListener, heard: &mut Heard, flows: usize) {
    let (mut stream, from) = listener.accept().unwrap();
    read(&mut stream, from, heard, flows);
    heard.collector.forget(from);
}

/// Returns the part of a message that came last.
fn read(stream: &mut impl Read, from: SocketAddr, heard: &mut Heard, flows: usize) -> Vec<u8> {
    let (mut buffer, mut chunk) = (Vec::new(), [0; 4096]);
    while heard.flows.len() < flows {
        let count = stream.read(&mut chunk).unwrap();
        assert!(count > 0, "it ended with {} flows", heard.flows.len());
        take(&mut buffer, &chunk[..count], from, heard);
    }
    buffer
}

fn take(buffer: &mut Vec<u8>, more: &[u8], from: SocketAddr, heard: &mut Heard) {
    buffer.extend_from_slice(more);
    while let Some(length) = message_length(buffer).filter(|length| buffer.len() >= *length) {
        let message: Vec<u8> = buffer.drain(..length).collect();
        heard.hear(from, &message);
    }
}

#[test]
fn a_tcp_collector_that_starts_anew_misses_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (mut table, source) = table(0..500);
    let exporter = start(vec![tcp(address)], vec![source]);
    table.flush();
    let mut heard = Heard::default();
    accept(&listener, &mut heard, 500);
    drop(listener);
    wait("the end of the connection", || {
        !exporter.stats().collectors[0].1.connected
    });
    meter(&mut table, 500..1200);
    assert_eq!(table.flush(), 0);
    wait("the queue", || exporter.stats().taken.flows == 1200);
    let listener = TcpListener::bind(address).unwrap();
    accept(&listener, &mut heard, 1200);
    heard.assert_is(0..1200);
    // Each connection has its own numbers from 0 on: the templates of each, and no gap in either.
    assert!(
        heard.gaps.is_empty() && heard.templates >= 20,
        "{:?} {}",
        heard.gaps,
        heard.templates
    );
    let stats = exporter.stop();
    let collector = &stats.collectors[0].1;
    assert_eq!(
        (collector.sent, collector.not_sent),
        (stats.taken, Load::default()),
        "{collector:?}"
    );
    assert!(collector.connections >= 2 && collector.last_error.is_some());
}

/// A collector that goes in the middle, again and again: it closes in order, and reads what is in flight. Each flow is exported once.
#[test]
fn a_tcp_collector_that_stops_in_the_middle_gets_the_rest_later() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (mut table, source) = table(0..60_000);
    let exporter = start(
        vec![CollectorConfig {
            queue: 1 << 26,
            ..tcp(address)
        }],
        vec![source],
    );
    table.flush();
    let mut heard = Heard::default();
    for flows in [1000, 5000, 20_000] {
        let (mut stream, from) = listener.accept().unwrap();
        let (mut buffer, mut chunk) = (read(&mut stream, from, &mut heard, flows), [0; 4096]);
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            take(&mut buffer, &chunk[..count], from, &mut heard);
        }
        heard.collector.forget(from);
    }
    accept(&listener, &mut heard, 60_000);
    heard.assert_is(0..60_000);
    assert!(heard.gaps.is_empty(), "{:?}", heard.gaps);
    let stats = exporter.stop();
    let collector = &stats.collectors[0].1;
    assert_eq!(
        (collector.sent, collector.not_sent),
        (stats.taken, Load::default()),
        "{collector:?}"
    );
    assert!(collector.connections >= 4, "{collector:?}");
}

/// One that is killed: its connection is reset with octets in its kernel's buffer. What that had acknowledged counts as sent,
/// all else goes again: the sums are exact, and no flow is exported twice to collectors that read it.
#[test]
fn what_a_killed_collector_had_not_acknowledged_goes_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (mut table, source) = table(0..90_000);
    let exporter = start(
        vec![CollectorConfig {
            queue: 1 << 26,
            ..tcp(address)
        }],
        vec![source],
    );
    table.flush();
    let (mut stream, from) = listener.accept().unwrap();
    let mut heard = Heard::default();
    read(&mut stream, from, &mut heard, 1000);
    // Until no more goes in.
    let mut before = (0, 0);
    wait("a full way", || {
        std::thread::sleep(Duration::from_millis(50));
        let stats = &exporter.stats().collectors[0].1;
        let now = (stats.sent.flows, stats.queued);
        std::mem::replace(&mut before, now) == now && exporter.stats().taken.flows == 90_000
    });
    // Nobody listens until it is read what counts as sent: the next connection's acknowledgements would count, too.
    drop(listener);
    drop(stream);
    wait("the end of the connection", || {
        !exporter.stats().collectors[0].1.connected
    });
    let acknowledged = exporter.stats().collectors[0].1.sent.flows as usize;
    let listener = TcpListener::bind(address).unwrap();
    let (mut stream, from) = listener.accept().unwrap();
    let mut rest = Heard::default();
    read(&mut stream, from, &mut rest, 90_000 - acknowledged);
    let stats = exporter.stop();
    let collector = &stats.collectors[0].1;
    assert_eq!(
        (collector.sent, collector.not_sent),
        (stats.taken, Load::default()),
        "{collector:?}"
    );
    assert_eq!(rest.flows.len(), 90_000 - acknowledged);
    assert!(
        acknowledged > 1000 && rest.flows.len() > 1000,
        "{acknowledged}"
    );
    assert!(
        rest.flows
            .keys()
            .all(|flow| !heard.flows.contains_key(flow)),
        "reported twice"
    );
}

/// Tables come and go; what is kept of those that are gone is their sum.
#[test]
fn tables_that_are_gone_are_forgotten() {
    let socket = ear("127.0.0.1:0").unwrap();
    let (first, source) = table(0..0);
    let exporter = start(
        vec![udp(socket.local_addr().unwrap(), Version::Ipfix)],
        vec![source],
    );
    for round in 1..=50 {
        let (mut next, source) = table(round * 10..round * 10 + 10);
        exporter.add_sources(vec![source]);
        next.flush();
        drop(next);
    }
    wait("all records", || exporter.stats().taken.flows == 500);
    wait("the sources", || exporter.stats().sources == 1);
    drop(first);
    wait("the last source", || exporter.stats().sources == 0);
}

#[test]
fn one_that_never_reads_loses_counted_records_and_holds_up_nobody() {
    let (deaf, socket) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        ear("127.0.0.1:0").unwrap(),
    );
    let mut stuck = tcp(deaf.local_addr().unwrap());
    stuck.queue = 20_000;
    let (mut table, source) = table(0..0);
    let exporter = start(
        vec![stuck, udp(socket.local_addr().unwrap(), Version::Ipfix)],
        vec![source],
    );
    let mut heard = Heard::default();
    let (stream, _) = deaf.accept().unwrap();
    for part in 0..100 {
        meter(&mut table, part * 600..(part + 1) * 600);
        assert_eq!(table.flush(), 0);
        // No more than the socket's buffer holds, so that nothing is lost there.
        listen(&socket, &mut heard, 600 * (part as usize + 1), 0);
        // What waits: the queue, and what the kernel holds for this side and for the other one, which nobody reads.
        let queued = exporter.stats().collectors[0].1.queued;
        assert!(queued <= 4 * 20_000, "{queued}");
    }
    heard.assert_is(0..60_000);
    assert!(heard.gaps.is_empty());
    // That it ends is the proof: nobody ever reads from the stream.
    let stats = exporter.stop();
    let stuck = &stats.collectors[0].1;
    assert!(stuck.not_sent.flows > 0, "{stuck:?}");
    let mut sum = stuck.sent;
    (sum.flows, sum.packets, sum.octets) = (
        sum.flows + stuck.not_sent.flows,
        sum.packets + stuck.not_sent.packets,
        sum.octets + stuck.not_sent.octets,
    );
    assert_eq!(
        (sum, stats.collectors[1].1.sent),
        (stats.taken, stats.taken)
    );
    drop(stream);
}

#[test]
fn collectors_that_are_not_there_are_reported_and_cost_nothing() {
    let nobody = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refusing = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (mut table, source) = table(0..3000);
    let exporter = start(
        vec![udp(nobody, Version::Ipfix), tcp(refusing)],
        vec![source],
    );
    table.flush();
    wait("the refusal", || {
        let stats = exporter.stats();
        stats.taken.flows == 3000 && stats.collectors.iter().all(|(_, stats)| stats.errors > 0)
    });
    let stats = exporter.stop();
    for (_, collector) in &stats.collectors {
        let mut all = collector.sent;
        all.flows += collector.not_sent.flows;
        assert_eq!(all.flows, 3000);
        assert!(
            collector
                .last_error
                .as_ref()
                .is_some_and(|error| error.contains("refused")),
            "{collector:?}"
        );
    }
    assert_eq!(stats.collectors[1].1.not_sent.flows, 3000);
}

/// What is wrong with the router's own files is reported also while the collector is not there.
#[test]
fn authorities_that_cannot_be_read_are_reported_first() {
    let refusing = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let settings = TlsSettings {
        name: "collector.example".into(),
        roots: "/nonexistent/ca.pem".into(),
        identity: None,
    };
    let exporter = start(
        vec![CollectorConfig {
            transport: Transport::Tls(settings),
            ..tcp(refusing)
        }],
        Vec::new(),
    );
    wait("the error", || exporter.stats().collectors[0].1.errors > 0);
    let error = exporter.stop().collectors[0].1.last_error.clone().unwrap();
    assert!(error.contains("/nonexistent/ca.pem"), "{error}");
}

/// A listener with no room for another connection: whoever asks for one gets no answer.
fn silent() -> (rustix::fd::OwnedFd, std::net::TcpStream, SocketAddr) {
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    listen(&listener, 0).unwrap();
    let address = SocketAddr::try_from(rustix::net::getsockname(&listener).unwrap()).unwrap();
    let first = std::net::TcpStream::connect(address).unwrap();
    (listener, first, address)
}

/// A collector that does not answer holds up nobody: neither the others when it is taken away, nor the end.
#[test]
fn one_that_does_not_answer_is_left_at_once() {
    let (_listener, _first, address) = silent();
    let (socket, (mut table, source)) = (ear("127.0.0.1:0").unwrap(), table(0..100));
    let datagrams = udp(socket.local_addr().unwrap(), Version::Ipfix);
    let exporter = start(vec![datagrams.clone(), tcp(address)], vec![source]);
    wait("templates", || {
        exporter.stats().collectors[0].1.messages > 0
    });
    let begin = Instant::now();
    exporter.reconfigure(config(Duration::from_secs(30), vec![datagrams.clone()]));
    table.flush();
    wait("the flows", || {
        exporter.stats().collectors[0].1.sent.flows == 100
    });
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    // Two seconds for its queue, which would be five for the connection.
    exporter.reconfigure(config(
        Duration::from_secs(30),
        vec![datagrams, tcp(address)],
    ));
    wait("the other", || exporter.stats().collectors.len() == 2);
    let begin = Instant::now();
    let stats = exporter.stop();
    assert!(
        begin.elapsed() < Duration::from_millis(3500),
        "{:?}",
        begin.elapsed()
    );
    assert!(stats.collectors[1].1.last_error.is_some());
}

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate that signs itself, its key, and the PEM file of it.
fn certificate(folder: &Folder, name: &str, expired: bool) -> (rustls::ServerConfig, PathBuf) {
    let mut parameters =
        rcgen::CertificateParams::new(vec!["collector.example".to_owned()]).unwrap();
    if expired {
        parameters.not_after = rcgen::date_time_ymd(2001, 1, 1);
    }
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let file = folder.0.join(name);
    std::fs::write(&file, certificate.pem()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    (
        builder
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap(),
        file,
    )
}

#[test]
fn tls_reaches_the_right_collector_only() {
    let folder = Folder(std::env::temp_dir().join(format!("weir-exporter-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let cases = [
        ("collector.example", false, None),
        ("other.example", false, Some("not valid for name")),
        ("collector.example", true, Some("expired")),
    ];
    for (number, (name, expired, error)) in cases.into_iter().enumerate() {
        let (server, roots) = certificate(&folder, &format!("{number}.pem"), expired);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut config = tcp(listener.local_addr().unwrap());
        config.transport = Transport::Tls(TlsSettings {
            name: name.into(),
            roots,
            identity: None,
        });
        let (mut table, source) = table(0..400);
        let exporter = start(vec![config], vec![source]);
        table.flush();
        let (stream, from) = listener.accept().unwrap();
        let mut stream = rustls::StreamOwned::new(
            rustls::ServerConnection::new(Arc::new(server)).unwrap(),
            stream,
        );
        let Some(error) = error else {
            let mut heard = Heard::default();
            read(&mut stream, from, &mut heard, 400);
            heard.assert_is(0..400);
            assert_eq!(exporter.stop().collectors[0].1.sent.flows, 400);
            continue;
        };
        assert!(stream.read(&mut [0]).is_err());
        wait("the error", || exporter.stats().collectors[0].1.errors > 0);
        // Before the next try, which nobody answers.
        let reported = exporter.stats().collectors[0].1.last_error.clone().unwrap();
        assert!(reported.contains(error), "{reported}");
        let stats = exporter.stop();
        let collector = &stats.collectors[0].1;
        assert_eq!(
            (
                collector.sent.flows,
                collector.not_sent.flows,
                collector.connections
            ),
            (0, 400, 0)
        );
    }
}

/// A collector that wants a certificate which the router does not have gets no record, and none counts as sent.
#[test]
fn one_that_wants_a_certificate_gets_nothing_without() {
    let folder =
        Folder(std::env::temp_dir().join(format!("weir-exporter-mutual-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["collector.example".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let roots = folder.0.join("ca.pem");
    std::fs::write(&roots, certificate.pem()).unwrap();
    let mut known = rustls::RootCertStore::empty();
    known.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(known),
        provider.clone(),
    )
    .build()
    .unwrap();
    let builder = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let server = builder
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = tcp(listener.local_addr().unwrap());
    config.transport = Transport::Tls(TlsSettings {
        name: "collector.example".into(),
        roots,
        identity: None,
    });
    let (mut table, source) = table(0..400);
    let exporter = start(vec![config], vec![source]);
    table.flush();
    let (stream, _) = listener.accept().unwrap();
    let mut stream = rustls::StreamOwned::new(
        rustls::ServerConnection::new(Arc::new(server)).unwrap(),
        stream,
    );
    assert!(stream.read(&mut [0]).is_err());
    wait("the error", || exporter.stats().collectors[0].1.errors > 0);
    drop((stream, listener));
    let reported = exporter.stats().collectors[0].1.last_error.clone().unwrap();
    assert!(
        reported.contains("CertificateRequired") || reported.contains("refused"),
        "{reported}"
    );
    let stats = exporter.stop();
    let collector = &stats.collectors[0].1;
    assert_eq!(
        (
            collector.sent.flows,
            collector.not_sent.flows,
            collector.connections
        ),
        (0, 400, 0)
    );
}

/// At the end collectors receive the totals of what was exported.
#[test]
fn the_last_word_is_the_total() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (mut table, source) = table(0..100);
    let exporter = start_refreshing(
        Duration::from_secs(600),
        vec![udp(socket.local_addr().unwrap(), Version::Ipfix)],
        vec![source],
    );
    assert_eq!(table.flush(), 0);
    assert_eq!(exporter.stop().collectors[0].1.sent.flows, 100);
    socket.set_nonblocking(true).unwrap();
    let (mut collector, mut buffer, mut totals) = (Collector::default(), [0; 2000], Vec::new());
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        collector.read(from, &buffer[..length], &mut |item| {
            if let Item::Record(record) = item {
                totals.extend(
                    record
                        .fields()
                        .filter(|(field, _)| field.number == 42)
                        .map(|(_, value)| format!("{value:?}")),
                );
            }
        });
    }
    assert_eq!(totals, ["Unsigned(0)", "Unsigned(100)"]);
}

/// A router's clock that the test sets.
struct Clocked(std::sync::atomic::AtomicU64);

impl Knows for Clocked {
    fn clock(&self) -> Option<u64> {
        Some(self.0.load(std::sync::atomic::Ordering::Relaxed))
    }
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

/// The wall clock is stepped against the router's clock by two hours, there and back: times of records follow it, in
/// both versions.
#[test]
fn times_follow_the_wall_clock() {
    for version in [Version::Ipfix, Version::NetFlow9] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let (mut table, ring) = Table::new(Settings::default(), 9);
        let source = FlowSource {
            ring,
            counts: table.counts().clone(),
        };
        let knows = Arc::new(Clocked((10_000 * SECOND).into()));
        let mut config = config(
            Duration::from_secs(300),
            vec![udp(socket.local_addr().unwrap(), version)],
        );
        // What the clock says goes before what is configured.
        config.epoch = Epoch::default();
        let exporter = Exporter::start(config, vec![source], knows.clone()).unwrap();
        let (mut collector, mut buffer) = (Collector::new(), [0; 9000]);
        for (flow, step) in [0, 7200, 20_000].into_iter().enumerate() {
            let clock = (10_000 + step) * SECOND;
            knows.0.store(clock, std::sync::atomic::Ordering::Relaxed);
            table.meter(
                clock - 5 * SECOND,
                &[observation(1 + 3 * flow as u32)],
                |_| Facts::default(),
            );
            assert_eq!(table.flush(), 0);
            let mut start = None;
            while start.is_none() {
                let (length, from) = socket.recv_from(&mut buffer).unwrap();
                collector.read(from, &buffer[..length], &mut |item| {
                    if let Item::Record(record) = item
                        && !record.template.is_options()
                    {
                        start = Flow::of(&record).start;
                    }
                });
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let age = i128::from(now.as_nanos() as u64) - i128::from(start.unwrap());
            let minute = 60 * i128::from(SECOND);
            assert!((0..minute).contains(&age), "{version:?} {step}: {age}");
        }
        drop(exporter);
    }
}

/// Over UDP records leave at the configured rate: a burst, then one a second. TCP is not limited, the stop waits for
/// nobody, and whoever hurries the exporter raises the limit.
#[test]
fn records_leave_at_a_rate_over_udp() {
    const BURST: u64 = 1024;
    let socket = ear("127.0.0.1:0").unwrap();
    let collector = || udp(socket.local_addr().unwrap(), Version::Ipfix);
    let slow = |collectors| ExporterConfig {
        rate: 1,
        ..config(Duration::from_secs(30), collectors)
    };
    let (mut first, source) = table(0..5000);
    first.flush();
    let began = Instant::now();
    let exporter = Exporter::start(slow(vec![collector()]), vec![source], Arc::new(Names)).unwrap();
    wait("the burst", || exporter.stats().taken.flows >= BURST);
    let taken = exporter.stats().taken.flows;
    assert!(taken <= BURST + began.elapsed().as_secs() + 1, "{taken}");
    // Their rest within a millisecond.
    exporter.hurry(5000, Duration::from_millis(1));
    wait("all of them", || exporter.stats().taken.flows == 5000);
    assert_eq!(exporter.stop().collectors[0].1.sent.flows, 5000);

    let (mut second, source) = table(0..5000);
    second.flush();
    let exporter = Exporter::start(slow(vec![collector()]), vec![source], Arc::new(Names)).unwrap();
    let stats = exporter.stop();
    assert_eq!(
        (stats.taken.flows, stats.collectors[0].1.sent.flows),
        (5000, 5000)
    );

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut third, source) = table(0..5000);
    third.flush();
    let exporter = Exporter::start(
        slow(vec![tcp(listener.local_addr().unwrap())]),
        vec![source],
        Arc::new(Names),
    )
    .unwrap();
    wait("all of them", || exporter.stats().taken.flows == 5000);
    drop(listener);
}
