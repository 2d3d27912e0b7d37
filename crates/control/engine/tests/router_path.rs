//! Datagrams to collectors leave through the router's own forwarding where it has a route: the examples of the
//! documentation as they stand, with captures in place of network cards.

use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_api::Router as _;
use weir_config::{Config, check};
use weir_engine::{Options, Router};
use weir_flowfmt::ipfix::decode::{Collector, Item};
use weir_flowfmt::sflow::decode::Datagram;

fn config(text: &str) -> Config {
    check("weir.yaml", text)
        .unwrap_or_else(|findings| panic!("{findings:?}\n{text}"))
        .0
}

/// A folder that is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A UDP datagram that left: traffic class, source, destination, destination port, payload.
struct Left {
    class: u8,
    source: IpAddr,
    destination: IpAddr,
    port: u16,
    payload: Vec<u8>,
}

/// The UDP datagrams in a capture, each with a valid checksum.
fn datagrams(path: &Path) -> Vec<Left> {
    let octets = std::fs::read(path).unwrap();
    let mut rest = octets.get(24..).unwrap();
    let mut all = Vec::new();
    while let Some(header) = rest.get(..16) {
        let length = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        let frame = &rest[16..16 + length];
        rest = &rest[16 + length..];
        let kind = u16::from_be_bytes([frame[12], frame[13]]);
        let (protocol, header, class, source, destination): (_, _, _, IpAddr, IpAddr) = match kind {
            0x0800 => {
                let four = |at: usize| <[u8; 4]>::try_from(&frame[at..at + 4]).unwrap().into();
                assert_eq!(
                    weir_wire::checksum::internet(&frame[14..34]),
                    0,
                    "{frame:02x?}"
                );
                (frame[23], 34, frame[15], four(26), four(30))
            }
            0x86dd => {
                let sixteen = |at: usize| <[u8; 16]>::try_from(&frame[at..at + 16]).unwrap().into();
                (
                    frame[20],
                    54,
                    frame[14] << 4 | frame[15] >> 4,
                    sixteen(22),
                    sixteen(38),
                )
            }
            _ => continue,
        };
        if protocol != 17 {
            continue;
        }
        let udp = &frame[header..];
        let sum = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut zeroed = udp.to_vec();
                zeroed[6..8].fill(0);
                weir_wire::checksum::udp4(source.into(), destination.into(), &zeroed)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut zeroed = udp.to_vec();
                zeroed[6..8].fill(0);
                weir_wire::checksum::udp6(&source.octets(), &destination.octets(), &zeroed)
            }
            _ => unreachable!(),
        };
        assert_eq!(
            u16::from_be_bytes([udp[6], udp[7]]),
            sum,
            "the checksum of UDP"
        );
        all.push(Left {
            class,
            source,
            destination,
            port: u16::from_be_bytes([udp[2], udp[3]]),
            payload: udp[8..].to_vec(),
        });
    }
    all
}

/// The first block of YAML in a page of the documentation.
fn example(page: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let (_, behind) = text.split_once("```yaml\n").unwrap();
    behind.split_once("```").unwrap().0.to_owned()
}

/// With captures in place of network cards, and with traffic.
fn staged(example: &str, folder: &Path, neighbors: &str) -> String {
    let mut text = example.to_owned();
    for (spaced, name) in [
        (true, "eth1"),
        (true, "eth2"),
        (false, "eth1"),
        (false, "eth2"),
    ] {
        let card = format!("driver: af-xdp, name: {name}");
        let card = if spaced {
            format!("{{ {card} }}")
        } else {
            format!("{{{card}}}")
        };
        let output = folder.join(format!("{name}.pcap"));
        text = text.replace(
            &card,
            &format!("{{driver: pcap, output: {}}}", output.display()),
        );
    }
    let generator = "  gen: {device: {driver: generator, streams: [{name: a, rate: 50000, source: 10.77.0.2, destination: 192.0.2.77}]}, addresses: [10.77.0.1/24], sflow: true}\n";
    let text = text.replacen("interfaces:\n", &format!("interfaces:\n{generator}"), 1);
    format!("{text}{neighbors}")
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "waited without success: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_example_of_the_readme_exports_through_the_router() {
    let folder = Folder::new("readme-path");
    let neighbors = "neighbors: [{interface: xe0, address: 192.0.2.9, mac: 02:00:00:00:00:09}]\n";
    let text = staged(&example("README.md"), &folder.0, neighbors);
    let router = Router::start(&config(&text), &Options::default()).unwrap();
    wait("samples are sent", || {
        let sflow = router.sflow().unwrap();
        sflow.samples_sent > 5 && sflow.collectors.iter().all(|it| it.sent > 3)
    });
    let sflow = router.sflow().unwrap();
    router.stop();
    let left = datagrams(&folder.0.join("eth1.pcap"));
    let sampled: usize = left
        .iter()
        .filter(|it| it.port == 6343)
        .map(|it| {
            assert_eq!(it.destination, "192.0.2.9".parse::<IpAddr>().unwrap());
            assert_eq!(it.source, "192.0.2.1".parse::<IpAddr>().unwrap());
            Datagram::decode(&it.payload).unwrap().samples().count()
        })
        .sum();
    assert!(sampled as u64 >= sflow.samples_sent, "{sampled} {sflow:?}");
}

#[test]
fn the_example_of_the_ipfix_page_exports_through_the_router() {
    let folder = Folder::new("ipfix-path");
    let neighbors = "neighbors: [{interface: lan, address: 198.51.100.9, mac: 02:00:00:00:00:09}, {interface: wan, address: 192.0.2.77, mac: 02:00:00:00:00:77}]\n";
    let page = example("docs/ipfix.md").replace(
        "  interfaces:\n",
        "  interfaces:\n    gen: {records: mine}\n",
    );
    let text = staged(&page, &folder.0, neighbors);
    let router = Router::start(&config(&text), &Options::default()).unwrap();
    wait("packets are metered", || {
        let ipfix = router.ipfix().unwrap();
        ipfix
            .workers
            .iter()
            .map(|it| it.metered_packets)
            .sum::<u64>()
            > 1000
            && ipfix.collectors.iter().take(2).all(|it| it.messages > 0)
    });
    router.stop();
    let stats = router.ipfix().unwrap();
    let left = datagrams(&folder.0.join("eth2.pcap"));
    for (collector, port) in stats.collectors.iter().zip([4739, 2055]) {
        assert_eq!(
            (collector.port, collector.not_sent.flows),
            (port, 0),
            "{collector:?}"
        );
        let (mut reader, mut packets) = (Collector::new(), 0);
        for it in left.iter().filter(|it| it.port == port) {
            assert_eq!(it.source, "198.51.100.1".parse::<IpAddr>().unwrap());
            reader.read((it.source, 1).into(), &it.payload, &mut |item| match item {
                Item::Record(record) if !record.template.is_options() => {
                    packets += record.number(2).unwrap();
                }
                Item::Undecoded(what) => panic!("{what:?}"),
                _ => {}
            });
        }
        assert_eq!(packets, collector.sent.packets, "{collector:?}");
        assert!(packets > 1000);
    }
}

/// A VRF, IPv6, a class and a source of one's own; a collector of the host beside them; a table without a route.
#[test]
fn tables_sources_and_classes_are_those_that_are_configured() {
    let folder = Folder::new("path-settings");
    let host = UdpSocket::bind("127.0.0.1:0").unwrap();
    host.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let port = host.local_addr().unwrap().port();
    let output = folder.0.join("red.pcap");
    let text = format!(
        "interfaces:
  gen: {{device: {{driver: generator, streams: [{{name: a, rate: 5000, source: 10.77.0.2, destination: 198.51.100.7}}]}}, addresses: [10.77.0.1/24], sflow: true}}
  red: {{device: {{driver: pcap, output: {}}}, vrf: red, addresses: [192.0.2.1/24, '2001:db8::1/64']}}
loopbacks: {{loop1: {{vrf: red, addresses: [203.0.113.1/32]}}}}
vrfs: {{red: {{table: 10}}}}
neighbors:
  - {{interface: red, address: 192.0.2.9, mac: 02:00:00:00:00:09}}
  - {{interface: red, address: '2001:db8::9', mac: 02:00:00:00:00:09}}
sflow:
  sampling-rate: 10
  collectors:
    - {{address: 192.0.2.9, table: red, source: 203.0.113.1, dscp: 46}}
    - {{address: '2001:db8::9', table: red, dscp: 10}}
    - {{address: 192.0.2.9, port: 6344, table: default}}
    - {{address: 192.0.2.9, port: 6345, table: red, source: 198.51.100.1}}
    - {{address: 127.0.0.1, port: {port}, host: true}}
",
        output.display()
    );
    let router = Router::start(&config(&text), &Options::default()).unwrap();
    wait("all collectors get datagrams, or none", || {
        let all = router.sflow().unwrap().collectors;
        all.len() == 5
            && [0, 1, 4].iter().all(|place| all[*place].sent > 20)
            && all[2].last_error.is_some()
            && all[3].last_error.is_some()
    });
    let all = router.sflow().unwrap().collectors;
    router.stop();
    assert!(host.recv(&mut [0; 9000]).unwrap() > 0);
    let error = |place: usize| all[place].last_error.clone().unwrap();
    assert_eq!((all[2].sent, all[3].sent), (0, 0), "{all:?}");
    assert!(
        error(2).contains("no route to 192.0.2.9 in table default"),
        "{all:?}"
    );
    assert!(
        error(3).contains("198.51.100.1 is no address of the router in table red"),
        "{all:?}"
    );
    let left = datagrams(&output);
    let of = |destination: &str, port: u16| -> Vec<(IpAddr, u8)> {
        let destination: IpAddr = destination.parse().unwrap();
        left.iter()
            .filter(|it| it.destination == destination && it.port == port)
            .map(|it| (it.source, it.class))
            .collect()
    };
    let (four, six) = (of("192.0.2.9", 6343), of("2001:db8::9", 6343));
    assert!(
        four.len() > 20 && six.len() > 20,
        "{} {}",
        four.len(),
        six.len()
    );
    assert!(
        four.iter()
            .all(|it| *it == ("203.0.113.1".parse().unwrap(), 46 << 2)),
        "{four:?}"
    );
    assert!(
        six.iter()
            .all(|it| *it == ("2001:db8::1".parse().unwrap(), 10 << 2)),
        "{six:?}"
    );
    assert!(of("192.0.2.9", 6344).is_empty() && of("192.0.2.9", 6345).is_empty());
}
