//! Records a second that the exporter's thread takes to a UDP socket that nobody reads:
//! `cargo run --release -p weir-telemetry --example flow_export`.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_flowfmt::ipfix::Version;
use weir_telemetry::exporter::{
    CollectorConfig, Epoch, Exporter, ExporterConfig, FlowSource, Knows, Named, RecordSet,
    Transport,
};
use weir_telemetry::flows::key::{Kind, Parts};
use weir_telemetry::flows::{Facts, Key, Observation, Settings, Table, VECTOR};

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

fn main() {
    const RECORDS: u32 = 1 << 20;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for set in ["5-tuple", "router"] {
        let (mut table, ring) = Table::new(
            Settings {
                flows: RECORDS as usize,
                ring: RECORDS as usize,
                ..Settings::default()
            },
            1,
        );
        for first in (0..RECORDS).step_by(VECTOR) {
            let packets: Vec<Observation> = (first..first + VECTOR as u32)
                .map(|flow| {
                    let mut parts = Parts {
                        kind: Kind::Ip4,
                        protocol: 17,
                        destination_port: 53,
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
                })
                .collect();
            table.meter(1, &packets, |_| Facts::default());
        }
        assert_eq!(table.flush(), 0);
        let collector = CollectorConfig {
            target: (socket.local_addr().unwrap()).into(),
            transport: Transport::Udp,
            version: Version::Ipfix,
            records: RecordSet::new([set]).unwrap().into(),
            mtu: 1500,
            queue: 0,
        };
        let config = ExporterConfig {
            domain: 1,
            refresh: Duration::from_secs(30),
            sampling: 1,
            rates: Default::default(),
            active: Duration::from_secs(60),
            idle: Duration::from_secs(15),
            biflow: false,
            rate: 0,
            epoch: Epoch::default(),
            collectors: vec![collector],
        };
        let source = FlowSource {
            ring,
            counts: table.counts().clone(),
        };
        let start = Instant::now();
        let exporter = Exporter::start(config, vec![source], Arc::new(Nothing)).unwrap();
        while exporter.stats().taken.flows < u64::from(RECORDS) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let stats = exporter.stop();
        let rate = f64::from(RECORDS) / start.elapsed().as_secs_f64();
        println!(
            "{set}: {rate:.0} records a second, {:?} not sent",
            stats.collectors[0].1.not_sent.flows
        );
    }
}
