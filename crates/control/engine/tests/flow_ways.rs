//! What records tell of where flows were routed, whatever else they have: tables, prefixes and next hops of tagged and labelled
//! packets, by record sets that have neither the tags nor the labels nor the addresses that it depends on.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use weir_api::Router as _;
use weir_config::check;
use weir_engine::{Options, Router};
use weir_flowfmt::ipfix::decode::{Collector, Item};
use weir_flowfmt::ipfix::flow::Flow;
use weir_wire::{MacAddr, build};

/// What is reported of the packets of one length: direction, packets, table, prefix length of the destination, next hop.
type Received = BTreeMap<(u64, u8), (u64, u64, u8, String)>;

/// A datagram with so many octets of payload to an address.
fn frame(destination: [u8; 4], payload: usize) -> Vec<u8> {
    let ends = build::Ends {
        source_mac: MacAddr([2, 0, 0, 0, 1, 2]),
        destination_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        source: u32::from(Ipv4Addr::new(192, 0, 2, 2)),
        destination: u32::from(Ipv4Addr::from(destination)),
        source_port: 1000,
        destination_port: 9,
        ttl: 64,
    };
    build::udp4(&ends, &vec![0; payload])
}

/// The same with a label, the last one.
fn labelled(frame: &[u8], label: u32) -> Vec<u8> {
    let entry = (label << 12 | 1 << 8 | 64).to_be_bytes();
    [&frame[..12], &[0x88, 0x47], &entry, &frame[14..]].concat()
}

/// A frame that is no IP, with a tag.
fn other(vlan: u16) -> Vec<u8> {
    let mut frame = build::tagged(&frame([0; 4], 99), vlan, 0);
    frame[16..18].copy_from_slice(&[0x12, 0x34]);
    frame
}

#[test]
fn records_tell_how_their_packets_were_routed() {
    let folder = std::env::temp_dir().join(format!("weir-flow-ways-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("in.pcap");
    let frames = [
        frame([198, 51, 100, 7], 30),
        build::tagged(&frame([198, 51, 100, 7], 31), 100, 0),
        // A label that leads to a table, one in the place of which another one is put, one that nobody knows.
        labelled(&frame([198, 51, 100, 7], 32), 101),
        labelled(&frame([198, 51, 100, 7], 33), 102),
        labelled(&frame([198, 51, 100, 7], 34), 103),
        other(100),
    ];
    let mut writer = weir_pcap::file::Writer::create(&file, 1).unwrap();
    frames
        .iter()
        .cycle()
        .take(10 * frames.len())
        .for_each(|frame| writer.write(0, frame.len() as u32, frame).unwrap());
    writer.flush().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let text = format!(
        "
interfaces:
  trunk:
    device: {{driver: pcap, input: {}}}
    mac: 02:00:00:00:00:01
    addresses: [192.0.2.1/24]
    mpls: true
    sub-interfaces: {{100: {{vrf: red, addresses: [192.0.2.1/24], encapsulation: {{dot1q: 100, exact-match: true}}}}}}
  out:
    device: {{driver: 'null'}}
    addresses: [10.1.0.1/24]
    sub-interfaces: {{7: {{vrf: red, addresses: [10.7.0.1/24], encapsulation: {{dot1q: 7, exact-match: true}}}}}}
vrfs: {{blue: {{table: 9}}, red: {{table: 70000}}}}
neighbors:
- {{interface: out, address: 10.1.0.2, mac: 02:00:00:00:01:02}}
- {{interface: out, address: 10.1.0.3, mac: 02:00:00:00:01:03}}
- {{interface: out.7, address: 10.7.0.2, mac: 02:00:00:00:07:02}}
routes:
- {{prefix: 198.51.0.0/16, via: 10.1.0.2}}
- {{vrf: red, prefix: 198.51.100.0/24, via: 10.7.0.2}}
mpls: {{labels: [{{label: 101, lookup: red}}, {{label: 102, via: [{{next-hop: 10.1.0.3, labels: [200]}}]}}]}}
ipfix:
  flows: 1024
  records:
    way: {{elements: [ipNextHopIPv4Address, destinationIPv4PrefixLength, ingressVRFID, minimumIpTotalLength, flowDirection, packetDeltaCount]}}
    table: {{elements: [ingressVRFID, packetDeltaCount]}}
  interfaces: {{trunk: {{records: way}}, out: {{direction: tx, records: way}}}}
  collectors: [{{address: 127.0.0.1, port: {}}}]
",
        file.display(),
        socket.local_addr().unwrap().port()
    );
    let (config, _) = check("weir.yaml", &text).unwrap_or_else(|findings| panic!("{findings:?}"));
    let router = Router::start(&config, &Options::default()).unwrap();
    let (until, all) = (
        Instant::now() + Duration::from_secs(20),
        10 * frames.len() as u64,
    );
    let metered = || {
        router
            .ipfix()
            .unwrap()
            .workers
            .iter()
            .map(|it| it.metered_packets)
            .sum::<u64>()
    };
    while metered() < all + 40 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    router.stop();
    let received = listen(&socket);
    std::fs::remove_dir_all(&folder).unwrap();
    let packet = |payload: u64, direction, table, prefix, next: &str| {
        (
            (28 + payload, direction),
            (10, table, prefix, next.to_owned()),
        )
    };
    let expected = [
        packet(30, 0, 0, 16, "10.1.0.2"),
        packet(31, 0, 70_000, 24, "10.7.0.2"),
        packet(32, 0, 0, 24, "10.7.0.2"),
        packet(33, 0, 0, 0, "10.1.0.3"),
        packet(34, 0, 0, 0, "0.0.0.0"),
        // What is no IP has nothing but a table.
        ((0, 0), (10, 70_000, 0, "0.0.0.0".to_owned())),
        packet(30, 1, 0, 16, "10.1.0.2"),
        packet(31, 1, 70_000, 24, "10.7.0.2"),
        packet(32, 1, 70_000, 24, "10.7.0.2"),
        // Nobody knows how it came.
        packet(33, 1, 0, 16, "10.1.0.2"),
    ];
    assert_eq!(received, BTreeMap::from(expected));
}

fn listen(socket: &UdpSocket) -> Received {
    let (mut received, mut collector, mut buffer) =
        (Received::new(), Collector::default(), vec![0; 9000]);
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        collector.read(from, &buffer[..length], &mut |item| match item {
            Item::Record(record) if !record.template.is_options() => {
                let (flow, number) = (Flow::of(&record), |element| {
                    record.number(element).unwrap_or(0)
                });
                let next = flow
                    .next_hop
                    .map_or_else(|| "0.0.0.0".to_owned(), |next| next.to_string());
                let entry = received.entry((number(25), flow.direction)).or_insert((
                    0,
                    number(234),
                    flow.destination_prefix,
                    next.clone(),
                ));
                assert_eq!(
                    (entry.1, entry.2, &entry.3),
                    (number(234), flow.destination_prefix, &next)
                );
                entry.0 += flow.packets;
            }
            Item::Undecoded(what) => panic!("{what:?}"),
            _ => {}
        });
    }
    received
}
