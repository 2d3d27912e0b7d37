//! Both directions of a conversation in one record (RFC 5103), as the exporter sends it: with reverse elements, to collectors of
//! IPFIX; to those of NetFlow 9 as two. Nothing is lost or reported twice.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_flowfmt::ipfix::Version;
use weir_flowfmt::ipfix::decode::{Collector, Item};
use weir_telemetry::exporter::{
    CollectorConfig, Epoch, Exporter, ExporterConfig, FlowSource, Knows, Named, RecordSet,
    Transport,
};
use weir_telemetry::flows::key::{Kind, Parts};
use weir_telemetry::flows::{Facts, Key, Observation, Settings, Table};

const SECOND: u64 = 1_000_000_000;

struct Nobody;

impl Knows for Nobody {
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

/// A packet of conversation `number`, there or back.
fn packet(number: u16, back: bool) -> Observation {
    let mut parts = Parts {
        kind: Kind::Ip4,
        protocol: 17,
        ..Parts::default()
    };
    parts.source[12..].copy_from_slice(&[10, 0, 0, 1]);
    parts.destination[12..].copy_from_slice(&[10, 0, 0, 2]);
    (
        parts.source_port,
        parts.destination_port,
        parts.input,
        parts.output,
    ) = (1000 + number, 53, 1, 2);
    if back {
        (parts.source, parts.destination) = (parts.destination, parts.source);
        (
            parts.source_port,
            parts.destination_port,
            parts.input,
            parts.output,
        ) = (53, 1000 + number, 2, 1);
    }
    Observation {
        extra: Default::default(),
        key: Key::new(&parts),
        octets: if back { 500 } else { 60 },
        tcp_flags: 0,
        ttl: 64,
        fragment: 0,
    }
}

#[test]
fn a_conversation_is_one_record_and_what_has_no_answer_goes_alone() {
    // The directions come by different workers; every third question has no answer.
    let (mut there, ring) = Table::new(
        Settings {
            flows: 1024,
            ..Settings::default()
        },
        1,
    );
    let (mut back, other) = Table::new(
        Settings {
            flows: 1024,
            ..Settings::default()
        },
        2,
    );
    let questions: Vec<_> = (0..90).map(|number| packet(number, false)).collect();
    let answers: Vec<_> = (0..90)
        .filter(|number| number % 3 != 0)
        .map(|number| packet(number, true))
        .collect();
    there.meter(SECOND, &questions, |_| Facts::default());
    back.meter(2 * SECOND, &answers, |_| Facts::default());
    back.meter(3 * SECOND, &answers, |_| Facts::default());
    assert_eq!((back.flush(), there.flush()), (0, 0));
    let sockets = [Version::Ipfix, Version::NetFlow9]
        .map(|version| (version, UdpSocket::bind("127.0.0.1:0").unwrap()));
    let collectors = sockets.iter().map(|(version, socket)| CollectorConfig {
        target: (socket.local_addr().unwrap()).into(),
        transport: Transport::Udp,
        version: *version,
        records: RecordSet::new(["5-tuple"]).unwrap().into(),
        mtu: 1500,
        queue: 0,
    });
    let config = ExporterConfig {
        domain: 1,
        refresh: Duration::from_secs(30),
        sampling: 1,
        rates: Default::default(),
        active: Duration::from_secs(60),
        idle: Duration::from_secs(15),
        biflow: true,
        rate: 0,
        epoch: Epoch::default(),
        collectors: collectors.collect(),
    };
    let source = |ring, table: &Table| FlowSource {
        ring,
        counts: table.counts().clone(),
    };
    let exporter = Exporter::start(
        config,
        vec![source(ring, &there), source(other, &back)],
        Arc::new(Nobody),
    )
    .unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while exporter
        .stats()
        .collectors
        .iter()
        .any(|(_, stats)| stats.sent.flows < 150)
        && Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    let stats = exporter.stop();
    for (_, collector) in &stats.collectors {
        assert_eq!(
            (
                collector.sent,
                collector.not_sent.flows,
                collector.left_out.flows
            ),
            (stats.taken, 0, 0)
        );
    }
    // By source port: octets there and back, and the direction that is reported.
    let mut found: BTreeMap<u64, (u64, Option<u64>, Option<u64>)> = BTreeMap::new();
    let mut nines = 0;
    for (version, socket) in &sockets {
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let (mut collector, mut buffer) = (Collector::new(), [0; 9000]);
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            collector.read(from, &buffer[..length], &mut |item| match item {
                Item::Record(record) if record.template.is_options() => {}
                Item::Record(_) if *version == Version::NetFlow9 => nines += 1,
                Item::Record(record) => {
                    let reverse = record
                        .octets()
                        .find(|(field, _)| field.name() == "reverseOctetDeltaCount");
                    let reverse = reverse.map(|(_, octets)| {
                        octets
                            .iter()
                            .fold(0, |sum, octet| sum << 8 | u64::from(*octet))
                    });
                    let reported = (record.number(1).unwrap(), reverse, record.number(239));
                    assert_eq!(
                        found.insert(record.number(7).unwrap(), reported),
                        None,
                        "twice"
                    );
                }
                Item::Undecoded(what) => panic!("{what:?}"),
                _ => {}
            });
        }
    }
    let expected = (0..90).map(|number| {
        (
            1000 + number,
            if number % 3 == 0 {
                (60, None, None)
            } else {
                (60, Some(1000), Some(1))
            },
        )
    });
    assert_eq!(found, expected.collect());
    assert_eq!(nines, 150);
}
