//! What samples say of tags, labels and copies: frames through the whole router to a collector on the loopback interface.
//! Every packet is sampled; of each kind enough come that those are among them which came after all was set up.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_api::Router as _;
use weir_config::check;
use weir_engine::{Options, Router};
use weir_flowfmt::sflow::DataFormat;
use weir_flowfmt::sflow::decode::{Datagram, FlowRecord, Sample};
use weir_wire::{MacAddr, build};

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A kind of samples: input, output with its format, and the records beside the header, with what they say.
type Received = (u32, (u32, u32), BTreeSet<(DataFormat, Vec<u32>)>);

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
        .collect()
}

fn read(received: &mut BTreeSet<Received>, bytes: &[u8]) {
    for sample in Datagram::decode(bytes)
        .unwrap()
        .samples()
        .map(Result::unwrap)
    {
        let Sample::Flow(_, flow, records) = sample else {
            continue;
        };
        let others = records
            .map(Result::unwrap)
            .filter_map(|record| match record {
                FlowRecord::Other(opaque) if opaque.format != DataFormat::EXTENDED_ROUTER => {
                    Some((opaque.format, words(opaque.body)))
                }
                _ => None,
            });
        received.insert((
            flow.input.value,
            (flow.output.format, flow.output.value),
            others.collect(),
        ));
    }
}

/// Frames with a tag that go to 198.51.100.7, which the router sends on with two others.
fn tagged_frames(file: &std::path::Path) {
    let ends = build::Ends {
        source_mac: MacAddr([2, 0, 0, 0, 1, 2]),
        destination_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        source: u32::from(Ipv4Addr::new(192, 0, 2, 2)),
        destination: u32::from(Ipv4Addr::new(198, 51, 100, 7)),
        source_port: 1000,
        destination_port: 9,
        ttl: 64,
    };
    let frame = build::tagged(&build::udp4(&ends, &[0; 32]), 100, 5);
    let mut writer = weir_pcap::file::Writer::create(file, 1).unwrap();
    (0..60_000).for_each(|_| writer.write(0, frame.len() as u32, &frame).unwrap());
    writer.flush().unwrap();
}

#[test]
fn tags_labels_and_copies_are_reported() {
    let folder = Folder(std::env::temp_dir().join(format!("weir-sampled-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let tagged = folder.0.join("tagged.pcap");
    tagged_frames(&tagged);
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let text = format!(
        "
interfaces:
  routed:
    device: {{driver: generator, streams: [{{name: labelled, rate: 500, source: 10.0.0.2, destination: 203.0.113.7}}]}}
    addresses: [10.0.0.1/24]
    sflow: true
  switched:
    device:
      driver: generator
      streams: [{{name: unknown, rate: 500, source: 10.9.0.2, destination: 10.9.0.3, destination-mac: '02:00:00:00:09:09'}}]
    sflow: true
  trunk:
    device: {{driver: pcap, input: {}}}
    mac: 02:00:00:00:00:01
    sflow: true
    sub-interfaces:
      100: {{addresses: [192.0.2.1/24]}}
  out:
    device: {{driver: 'null'}}
    addresses: [10.1.0.1/24]
    sub-interfaces:
      200: {{encapsulation: {{dot1ad: 200, inner-dot1q: 7, exact-match: true}}, addresses: [198.51.100.1/24]}}
  one: {{device: {{driver: 'null'}}}}
  two: {{device: {{driver: 'null'}}}}
bridgedomains: {{bd1: {{interfaces: [switched, one, two]}}}}
neighbors:
- {{interface: out, address: 10.1.0.2, mac: 02:00:00:00:01:02}}
- {{interface: out.200, address: 198.51.100.7, mac: 02:00:00:00:01:02}}
routes: [{{prefix: 203.0.113.0/24, via: [{{next-hop: 10.1.0.2, labels: [100, 200]}}]}}]
sflow: {{sampling-rate: 1, polling-interval: 0, collectors: [{{address: 127.0.0.1, port: {}}}]}}
",
        tagged.display(),
        collector.local_addr().unwrap().port()
    );
    let (config, _) = check("weir.yaml", &text).unwrap_or_else(|findings| panic!("{findings:?}"));
    let router = Router::start(&config, &Options::default()).unwrap();
    let interfaces = router.interfaces().unwrap().interfaces;
    let index = |name: &str| {
        interfaces
            .iter()
            .find(|it| it.name == name)
            .unwrap_or_else(|| panic!("{name}"))
            .index
    };
    // sFlow version 5, 0:1001: source VLAN and priority, destination VLAN and priority.
    let switched =
        |input: [u32; 2], output: [u32; 2]| (DataFormat::EXTENDED_SWITCH, [input, output].concat());
    // 0:1006: next hop, and both stacks with their lengths; an entry has 20 bits of label, traffic class, bottom, TTL (RFC 3032 2.1).
    let entry = |label: u32, bottom: u32| label << 12 | bottom << 8 | 63;
    let next_hop = [1, u32::from(Ipv4Addr::new(10, 1, 0, 2))];
    let out_stack = [2, entry(100, 0), entry(200, 1)];
    let expected = [
        (
            index("trunk.100"),
            (0, index("out.200")),
            vec![switched([100, 5], [200, 0])],
        ),
        (
            index("routed"),
            (0, index("out")),
            vec![(
                DataFormat::EXTENDED_MPLS,
                [&next_hop[..], &[0], &out_stack].concat(),
            )],
        ),
        (index("switched"), (2, 2), vec![]),
    ];
    let mut received = BTreeSet::new();
    let has = |received: &BTreeSet<Received>,
               (input, output, records): &(u32, (u32, u32), Vec<_>)| {
        received.iter().any(|it| {
            it.0 == *input && it.1 == *output && records.iter().all(|record| it.2.contains(record))
        })
    };
    let (until, mut buffer) = (Instant::now() + Duration::from_secs(20), vec![0; 9000]);
    while !expected.iter().all(|kind| has(&received, kind)) && Instant::now() < until {
        if let Ok(length) = collector.recv(&mut buffer) {
            read(&mut received, &buffer[..length]);
        }
    }
    router.stop();
    for kind in &expected {
        assert!(has(&received, kind), "{kind:?} is not among {received:#?}");
    }
}

/// A bridge domain sends each frame on by two interfaces. It came in once, and once it is in the pool and in a sample.
#[test]
fn a_packet_that_leaves_by_several_interfaces_is_considered_once() {
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let text = format!(
        "
interfaces:
  switched:
    device:
      driver: generator
      streams: [{{name: unknown, rate: 500, source: 10.9.0.2, destination: 10.9.0.3, destination-mac: '02:00:00:00:09:09'}}]
    sflow: true
  one: {{device: {{driver: 'null'}}, sflow: true}}
  two: {{device: {{driver: 'null'}}, sflow: true}}
bridgedomains: {{bd1: {{interfaces: [switched, one, two]}}}}
sflow: {{sampling-rate: 1, polling-interval: 0, collectors: [{{address: 127.0.0.1, port: {}}}]}}
",
        collector.local_addr().unwrap().port()
    );
    let (config, _) = check("weir.yaml", &text).unwrap_or_else(|findings| panic!("{findings:?}"));
    let router = Router::start(&config, &Options::default()).unwrap();
    let (until, mut buffer) = (Instant::now() + Duration::from_secs(20), vec![0; 9000]);
    let (mut flows, mut sources) = (Vec::new(), BTreeSet::new());
    while flows.len() < 500 && Instant::now() < until {
        let Ok(length) = collector.recv(&mut buffer) else {
            continue;
        };
        for sample in Datagram::decode(&buffer[..length])
            .unwrap()
            .samples()
            .map(Result::unwrap)
        {
            let Sample::Flow(_, flow, _) = sample else {
                continue;
            };
            sources.insert(flow.source.index);
            flows.push(flow);
        }
    }
    let interfaces = router.interfaces().unwrap().interfaces;
    let switched = interfaces.iter().find(|it| it.name == "switched").unwrap();
    let (received, sent) = (
        switched.rx.packets,
        interfaces.iter().map(|it| it.tx.packets).sum::<u64>(),
    );
    router.stop();
    assert_eq!(sources, BTreeSet::from([switched.index]));
    assert!(
        flows.len() >= 500
            && flows
                .iter()
                .zip(1..)
                .all(|(flow, number)| flow.sequence == number && flow.pool == number),
        "{flows:?}"
    );
    assert!(
        flows.len() as u64 <= received && sent > received,
        "{} of {received}, sent {sent}",
        flows.len()
    );
    assert!(
        flows
            .iter()
            .any(|flow| (flow.output.format, flow.output.value) == (2, 2))
    );
}
