//! What samples say of their packets' ways, and notifications of discards: from a generator through the whole
//! router to a collector on the loopback interface. Every packet is sampled, so that all can be counted.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use weir_config::check;
use weir_engine::{Options, Router};
use weir_flowfmt::sflow::decode::{Datagram, FlowRecord, Sample};
use weir_flowfmt::sflow::{DataFormat, Port};

const EACH: u64 = 200;

fn config(collector: &UdpSocket, sflow: &str) -> String {
    let stream = |name: &str, protocol: &str, destination: &str| {
        format!(
            "{{name: {name}, limit: {EACH}, rate: 2000, protocol: {protocol}, source: 10.0.0.2, destination: {destination}}}"
        )
    };
    let streams = [
        stream("far", "udp", "198.51.100.7"),
        stream("ping", "icmp", "192.0.2.255"),
        stream("lost", "udp", "203.0.113.1"),
    ]
    .join(", ");
    let port = collector.local_addr().unwrap().port();
    format!(
        "
interfaces:
  xe0: {{device: {{driver: generator, streams: [{streams}]}}, addresses: [10.0.0.1/24], sflow: true}}
  xe1: {{device: {{driver: 'null'}}, addresses: [10.1.0.1/24]}}
loopbacks: {{loop0: {{addresses: [192.0.2.255/32]}}}}
neighbors:
- {{interface: xe0, address: 10.0.0.2, mac: 02:00:00:00:00:02}}
- {{interface: xe1, address: 10.1.0.2, mac: 02:00:00:00:01:02}}
routes: [{{prefix: 198.51.0.0/16, via: 10.1.0.2}}]
sflow: {{sampling-rate: 1, polling-interval: 0, {sflow}collectors: [{{address: 127.0.0.1, port: {port}}}]}}
"
    )
}

/// What was reported: by output how many samples, next hops with prefixes, and discards by reason.
#[derive(Debug, Default)]
struct Received {
    outputs: BTreeMap<(u32, u32), u64>,
    inputs: BTreeMap<(u32, u32), u64>,
    hops: BTreeMap<Vec<u8>, u64>,
    discards: BTreeMap<u32, u64>,
    dropped: u32,
}

fn read(received: &mut Received, bytes: &[u8]) {
    for sample in Datagram::decode(bytes)
        .unwrap()
        .samples()
        .map(Result::unwrap)
    {
        match sample {
            Sample::Flow(_, flow, records) => {
                let Port { format, value } = flow.output;
                *received.outputs.entry((format, value)).or_default() += 1;
                *received
                    .inputs
                    .entry((flow.input.format, flow.input.value))
                    .or_default() += 1;
                for record in records.map(Result::unwrap) {
                    if let FlowRecord::Other(opaque) = record
                        && opaque.format == DataFormat::EXTENDED_ROUTER
                    {
                        *received.hops.entry(opaque.body.to_vec()).or_default() += 1;
                    }
                }
            }
            Sample::Discard(discard, _) => {
                *received.discards.entry(discard.reason).or_default() += 1;
                assert!(
                    discard.drops >= received.dropped,
                    "the count of those that were not reported goes on: {} {}",
                    received.dropped,
                    discard.drops
                );
                received.dropped = discard.drops;
            }
            _ => {}
        }
    }
}

fn run(sflow: &str) -> (Received, weir_api::Totals, u32) {
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let (config, _) = check("weir.yaml", &config(&collector, sflow))
        .unwrap_or_else(|findings| panic!("{findings:?}"));
    let router = Router::start(&config, &Options::default()).unwrap();
    let (mut received, mut buffer) = (Received::default(), vec![0; 9000]);
    let until = Instant::now() + Duration::from_secs(20);
    let done = |it: &weir_api::Totals| {
        it.packets_out + it.consumed + it.drops.values().sum::<u64>() >= 3 * EACH
    };
    while !done(&router.balance()) && Instant::now() < until {
        if let Ok(length) = collector.recv(&mut buffer) {
            read(&mut received, &buffer[..length]);
        }
    }
    use weir_api::Router as _;
    let out = router
        .interfaces()
        .unwrap()
        .interfaces
        .iter()
        .find(|it| it.name == "xe1")
        .unwrap()
        .index;
    router.stop();
    while let Ok(length) = collector.recv(&mut buffer) {
        read(&mut received, &buffer[..length]);
    }
    (received, router.balance(), out)
}

#[test]
fn a_sample_says_where_its_packet_went() {
    let (received, totals, out) = run("");
    let drops = |reason: &str| totals.drops.get(reason).copied().unwrap_or(0);
    let of = |format, value| received.outputs.get(&(format, value)).copied().unwrap_or(0);
    let (forwarded, lost, answered) = (of(0, out), of(1, 0), of(0, 0x3fff_ffff));
    assert_eq!(
        lost,
        drops("no-route"),
        "network unreachable: {received:?} {totals:?}"
    );
    assert_eq!(
        forwarded + answered,
        totals.packets_out - totals.originated,
        "{received:?} {totals:?}"
    );
    assert!(
        forwarded > EACH / 2 && lost > EACH / 2 && answered > EACH / 2,
        "{received:?}"
    );
    assert_eq!(of(0, 0), 0, "nothing is unknown: {received:?}");
    assert_eq!(
        received.outputs.values().sum::<u64>(),
        totals.packets_in,
        "{received:?} {totals:?}"
    );
    // The type of the address, the address, bits of the route to the source, and to the destination.
    let hop = [
        &[0, 0, 0, 1, 10, 1, 0, 2][..],
        &[0, 0, 0, 24],
        &[0, 0, 0, 16],
    ]
    .concat();
    assert_eq!(received.hops, BTreeMap::from([(hop, forwarded)]));
    assert!(received.discards.is_empty(), "not asked for");
}

/// Of the port that packets come in by, what goes out: answers to requests, and what tells that there is no route.
#[test]
fn what_the_router_itself_sends_came_in_nowhere() {
    let (received, totals, _) = run("direction: tx, ");
    let answered = received.inputs.get(&(0, 0x3fff_ffff)).copied().unwrap_or(0);
    assert_eq!(received.inputs.len(), 1, "{received:?}");
    assert!(
        answered > EACH / 2 && answered < totals.packets_out,
        "{received:?} {totals:?}"
    );
}

/// As who saw them come names it: by the port, also where that is a member of a bond.
#[test]
fn what_goes_out_came_in_by_the_member_of_a_bond() {
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let port = collector.local_addr().unwrap().port();
    let member = |name: &str, source: &str| {
        let stream = format!(
            "{{name: a, limit: {EACH}, rate: 2000, source: {source}, destination: 198.51.100.7}}"
        );
        format!(
            "{name}: {{device: {{driver: generator, streams: [{stream}]}}, mac: 02:00:00:00:00:0b}}"
        )
    };
    let config = format!(
        "
interfaces:
  {}
  {}
  BondEthernet0: {{addresses: [10.0.0.1/24]}}
  xe2: {{device: {{driver: 'null'}}, addresses: [10.1.0.1/24], sflow: true}}
bondethernets: {{BondEthernet0: {{mode: xor, interfaces: [xe0, xe1], mac: 02:00:00:00:00:0b}}}}
neighbors: [{{interface: xe2, address: 10.1.0.2, mac: 02:00:00:00:01:02}}]
routes: [{{prefix: 198.51.0.0/16, via: 10.1.0.2}}]
sflow: {{sampling-rate: 1, polling-interval: 0, direction: tx, collectors: [{{address: 127.0.0.1, port: {port}}}]}}
",
        member("xe0", "10.0.0.2"),
        member("xe1", "10.0.0.3"),
    );
    let (config, _) = check("weir.yaml", &config).unwrap_or_else(|findings| panic!("{findings:?}"));
    let router = Router::start(&config, &Options::default()).unwrap();
    let (mut received, mut buffer) = (Received::default(), vec![0; 9000]);
    let until = Instant::now() + Duration::from_secs(20);
    let all = |received: &Received| received.inputs.values().sum::<u64>() >= 2 * EACH;
    while !all(&received) && Instant::now() < until {
        if let Ok(length) = collector.recv(&mut buffer) {
            read(&mut received, &buffer[..length]);
        }
    }
    use weir_api::Router as _;
    let interfaces = router.interfaces().unwrap().interfaces;
    let index = |name: &str| interfaces.iter().find(|it| it.name == name).unwrap().index;
    let of = |name: &str| received.inputs.get(&(0, index(name))).copied().unwrap_or(0);
    assert_eq!(
        (of("xe0"), of("xe1"), of("BondEthernet0")),
        (EACH, EACH, 0),
        "{received:?} {:?}",
        router.balance()
    );
    assert_eq!(
        received.hops.values().sum::<u64>(),
        2 * EACH,
        "the bond's table says how they went on"
    );
    router.stop();
}

#[test]
fn discards_are_reported_and_what_is_not_reported_is_counted() {
    let (received, totals, _) = run("drop-limit: 50, ");
    let sent: u64 = received.discards.values().sum();
    assert!(received.discards.contains_key(&0), "{received:?}");
    assert!(
        sent < drops_of(&totals),
        "the limit holds: {received:?} {totals:?}"
    );
    assert!(
        u64::from(received.dropped) + sent <= drops_of(&totals),
        "{received:?} {totals:?}"
    );
}

fn drops_of(totals: &weir_api::Totals) -> u64 {
    totals.drops.values().sum()
}
