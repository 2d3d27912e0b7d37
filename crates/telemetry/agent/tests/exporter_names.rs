//! IPFIX collectors by name: over UDP and TCP, before the name is known, when it is, and when it stands for another address.

#[path = "common/hosts.rs"]
mod hosts;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hosts::with_own_hosts;
use weir_flowfmt::ipfix::Version;
use weir_flowfmt::ipfix::decode::{Collector, Item, message_length};
use weir_telemetry::agent::Target;
use weir_telemetry::exporter::{
    CollectorConfig, CollectorStats, Epoch, Exporter, ExporterConfig, ExporterHandle, FlowSource,
    Knows, Named, RecordSet, Transport,
};
use weir_telemetry::flows::key::{Kind, Parts};
use weir_telemetry::flows::{Facts, Key, Observation, Settings, Table};

struct Nothing;

impl Knows for Nothing {
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

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !until() {
        assert!(Instant::now() < end, "waited without success for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Exports a hundred flows, and waits until the exporter has them.
fn export(table: &mut Table, exporter: &ExporterHandle) {
    let packets: Vec<_> = (0..100_u16)
        .map(|port| {
            let parts = Parts {
                kind: Kind::Ip4,
                protocol: 17,
                source_port: port,
                ..Parts::default()
            };
            Observation {
                key: Key::new(&parts),
                octets: 100,
                ..Observation::default()
            }
        })
        .collect();
    let before = exporter.stats().taken.flows;
    table.meter(1_000_000_000, &packets, |_| Facts::default());
    table.flush();
    wait("the exporter", || {
        exporter.stats().taken.flows == before + 100
    });
}

/// What a collector has read.
#[derive(Default)]
struct Heard {
    collector: Collector,
    flows: u64,
    has_templates: bool,
    /// Sets of data that came before their templates.
    unknown: u64,
}

impl Heard {
    fn read(&mut self, from: SocketAddr, message: &[u8]) {
        self.collector.read(from, message, &mut |item| match item {
            Item::Record(record) if !record.template.is_options() => self.flows += 1,
            _ => {}
        });
        // RFC 7011, 3: a header of 16 octets, then sets; set 2 has templates, those from 256 on have data, here from 1024 on of options.
        let mut rest = message.get(16..).unwrap_or(&[]);
        while let Some((&[a, b, c, d], _)) = rest.split_first_chunk::<4>() {
            match u16::from_be_bytes([a, b]) {
                2 => self.has_templates = true,
                256..1024 => self.unknown += u64::from(!self.has_templates),
                _ => {}
            }
            let length = usize::from(u16::from_be_bytes([c, d])).max(4);
            rest = rest.get(length..).unwrap_or(&[]);
        }
    }

    /// Reads all datagrams that are there.
    fn read_all(&mut self, socket: &UdpSocket) {
        socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; 65_536];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            self.read(from, &buffer[..length]);
        }
    }
}

#[test]
fn names_are_looked_up_and_followed() {
    with_own_hosts("inside_names_are_looked_up_and_followed");
}

#[test]
#[ignore = "run by the test above, where /etc/hosts is its own"]
fn inside_names_are_looked_up_and_followed() {
    let Some(hosts) = std::env::var_os("WEIR_HOSTS") else {
        return;
    };
    let hosts_are = |lines: &str| {
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .open(&hosts)
            .unwrap();
        file.write_all(format!("{lines:<99}\n").as_bytes()).unwrap();
    };
    let before = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = before.local_addr().unwrap().port();
    let after = UdpSocket::bind(("127.0.0.2", port)).unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let healthy = other.local_addr().unwrap().port();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = |name: &str, port, transport| CollectorConfig {
        target: Target::new(name.into(), port),
        transport,
        version: Version::Ipfix,
        records: RecordSet::new(["5-tuple"]).unwrap().into(),
        mtu: 1500,
        queue: 1 << 20,
    };
    let stream = listener.local_addr().unwrap();
    let config = ExporterConfig {
        domain: 1,
        refresh: Duration::from_secs(3600),
        sampling: 1,
        rates: Default::default(),
        active: Duration::from_secs(60),
        idle: Duration::from_secs(15),
        biflow: false,
        rate: 0,
        epoch: Epoch::default(),
        collectors: vec![
            collector("collector.invalid", port, Transport::Udp),
            collector("stream.invalid", stream.port(), Transport::Tcp),
            collector("127.0.0.1", healthy, Transport::Udp),
        ],
    };
    let (mut table, ring) = Table::new(Settings::default(), 9);
    let source = FlowSource {
        ring,
        counts: table.counts().clone(),
    };
    let exporter = Exporter::start(config, vec![source], Arc::new(Nothing)).unwrap();
    let of = |place: usize| -> CollectorStats { exporter.stats().collectors[place].1.clone() };

    // Nobody knows the names: what goes to the first is not sent, the second has a queue, the third is not affected.
    export(&mut table, &exporter);
    for place in 0..2 {
        wait("the error", || {
            let error = of(place).last_error;
            error.is_some_and(|error| error.contains("cannot be looked up"))
        });
        assert_eq!(of(place).address, None);
    }
    wait("what is not sent", || of(0).not_sent.flows == 100);
    wait("the other collector", || of(2).sent.flows == 100);

    // They are known: templates come first, then records.
    hosts_are("127.0.0.1 collector.invalid\n127.0.0.1 stream.invalid");
    wait("its socket", || of(0).connected);
    assert_eq!(of(0).address, Some(before.local_addr().unwrap()));
    export(&mut table, &exporter);
    wait("the first collector", || of(0).sent.flows == 100);
    let mut heard = Heard::default();
    wait("the records", || {
        heard.read_all(&before);
        heard.flows == 100
    });
    assert_eq!(heard.unknown, 0);
    let (mut connection, from) = listener.accept().unwrap();
    let (mut buffer, mut chunk, mut third) = (Vec::new(), [0; 4096], Heard::default());
    while third.flows < 200 {
        let count = connection.read(&mut chunk).unwrap();
        assert!(count > 0, "it ended with {} flows", third.flows);
        buffer.extend_from_slice(&chunk[..count]);
        while let Some(length) = message_length(&buffer).filter(|length| buffer.len() >= *length) {
            let message: Vec<u8> = buffer.drain(..length).collect();
            third.read(from, &message);
        }
    }

    // One of them stands for another address now, where the templates come first, too.
    hosts_are("127.0.0.2 collector.invalid");
    wait("another address", || {
        of(0).address == Some(after.local_addr().unwrap())
    });
    export(&mut table, &exporter);
    let mut moved = Heard::default();
    wait("the records at the new address", || {
        moved.read_all(&after);
        moved.flows == 100
    });
    assert_eq!(moved.unknown, 0);
    let stats = exporter.stop();
    let (sent, not_sent) = (stats.collectors[0].1.sent, stats.collectors[0].1.not_sent);
    assert_eq!((sent.flows, not_sent.flows), (200, 100));
}
