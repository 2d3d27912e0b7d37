//! `why` compared with real packets: seeded random packets are read from a capture, routed, and written to captures.
//! What `why` says of each, added up, is what left and what the drop counters hold.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use weir_api::{Router as _, Why, WhyOutcome, WhyProtocol, WhyRequest};
use weir_config::check;
use weir_engine::{Options, Router};
use weir_wire::{MacAddr, build};

const PORT: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PACKETS: usize = 2000;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        choices[(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % choices.len()]
    }
}

fn some_request(random: &mut Random) -> WhyRequest {
    let four = |text: &str| IpAddr::from(text.parse::<Ipv4Addr>().unwrap());
    let six = |text: &str| IpAddr::from(text.parse::<Ipv6Addr>().unwrap());
    let (source, destination) = if random.of(&[true, true, false]) {
        (
            four(random.of(&["10.77.0.2", "10.77.0.9", "203.0.113.5", "198.51.100.77"])),
            four(random.of(&[
                "198.51.100.1",
                "198.51.100.200",
                "192.0.2.9",
                "10.9.0.1",
                "10.8.0.1",
                "172.16.0.1",
                "10.77.0.1",
            ])),
        )
    } else {
        (
            six(random.of(&["2001:db8:77::2", "2001:db8:99::2"])),
            six(random.of(&[
                "2001:db8:1::9",
                "2001:db8:2::1",
                "2001:db8:5::1",
                "2001:db8:77::1",
            ])),
        )
    };
    let interface = random.of(&["in", "in.10"]);
    // Only the reverse path check sees the source without a route: else answers to it would be dropped, too.
    let source = match interface {
        "in.10" if source == four("203.0.113.5") => four("10.77.0.2"),
        _ => source,
    };
    WhyRequest {
        protocol: random.of(&[WhyProtocol::Udp, WhyProtocol::Tcp, WhyProtocol::Icmp]),
        destination_port: random.of(&[53, 80, 443, 9]),
        source_port: random.of(&[1024, 5000, 49_152]),
        length: random.of(&[60, 100, 1299, 1301, 1400]),
        ttl: random.of(&[64, 64, 64, 2, 1]),
        dont_fragment: random.of(&[true, false]),
        interface: Some(interface.to_owned()),
        ..WhyRequest::new(source, destination)
    }
}

/// The frame that a host would send.
fn frame(request: &WhyRequest) -> Vec<u8> {
    let mut frame = vec![0; 14 + request.length as usize];
    let made = match (request.source, request.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ends = build::Ends {
                source_mac: MacAddr([2, 0, 0, 0, 7, 7]),
                destination_mac: PORT,
                source: source.into(),
                destination: destination.into(),
                source_port: request.source_port,
                destination_port: request.destination_port,
                ttl: request.ttl,
            };
            let made = match request.protocol {
                WhyProtocol::Udp => build::udp4_into(&mut frame, &ends),
                WhyProtocol::Tcp => build::tcp4_into(&mut frame, &ends, 2),
                WhyProtocol::Icmp => build::echo4_into(&mut frame, &ends, 8, 1, 1),
            };
            frame[20] = if request.dont_fragment { 0x40 } else { 0 };
            weir_wire::checksum::ipv4_header_set(&mut frame[14..]);
            made
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ends = build::Ends6 {
                source_mac: MacAddr([2, 0, 0, 0, 7, 7]),
                destination_mac: PORT,
                source: source.octets(),
                destination: destination.octets(),
                source_port: request.source_port,
                destination_port: request.destination_port,
                hop_limit: request.ttl,
                ..build::Ends6::default()
            };
            match request.protocol {
                WhyProtocol::Udp => build::udp6_into(&mut frame, &ends),
                WhyProtocol::Tcp => build::tcp6_into(&mut frame, &ends, 2),
                WhyProtocol::Icmp => build::echo6_into(&mut frame, &ends, 128, 1, 1),
            }
        }
        _ => false,
    };
    assert!(made);
    if request.interface.as_deref() == Some("in.10") {
        frame = build::tagged(&frame, 10, 0);
    }
    frame
}

/// What tells frames apart here: destination MAC address and length.
type Leaving = (String, usize);

/// The frames of a capture that the router did not make itself: their source is not one of its addresses.
fn left(path: &std::path::Path) -> BTreeMap<Leaving, usize> {
    let bytes = std::fs::read(path).unwrap();
    let (mut rest, mut all) = (&bytes[24..], BTreeMap::new());
    while let Some(header) = rest.get(..16) {
        let length = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        let frame = &rest[16..16 + length];
        rest = &rest[16 + length..];
        let own = match (frame[12], frame[13]) {
            (0x08, 0x00) => [[10, 77, 0, 1], [10, 78, 0, 1], [192, 0, 2, 1]]
                .contains(frame[26..30].first_chunk().unwrap()),
            (0x86, 0xdd) => frame[20] == 58 && frame[54] != 128,
            _ => true,
        };
        if !own {
            let mac = MacAddr(*frame.first_chunk().unwrap()).to_string();
            *all.entry((mac, length)).or_default() += 1;
        }
    }
    all
}

#[test]
fn what_why_says_is_what_packets_meet() {
    let folder = std::env::temp_dir().join(format!("weir-why-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (input, output) = (folder.join("in.pcap"), folder.join("out.pcap"));
    let mut random = Random(7);
    let requests: Vec<WhyRequest> = (0..PACKETS).map(|_| some_request(&mut random)).collect();
    let mut writer = weir_pcap::file::Writer::create(&input, 1).unwrap();
    for request in &requests {
        let frame = frame(request);
        writer.write(0, frame.len() as u32, &frame).unwrap();
    }
    writer.flush().unwrap();
    let text = format!(
        "
interfaces:
  in:
    device: {{driver: pcap, input: {}}}
    mac: 02:00:00:00:00:01
    addresses: [10.77.0.1/24, '2001:db8:77::1/64']
    urpf: loose
    sub-interfaces:
      10: {{addresses: [10.78.0.1/24, '2001:db8:78::1/64'], acl: {{input: [web]}}}}
  out:
    device: {{driver: pcap, output: {}}}
    mtu: 1300
    addresses: [192.0.2.1/24, '2001:db8:1::1/64']
neighbors:
- {{interface: in, address: 10.77.0.2, mac: 02:00:00:00:07:07}}
- {{interface: in, address: 10.77.0.9, mac: 02:00:00:00:07:07}}
- {{interface: in, address: '2001:db8:77::2', mac: 02:00:00:00:07:07}}
- {{interface: out, address: 192.0.2.9, mac: 02:00:00:00:01:09}}
- {{interface: out, address: 192.0.2.10, mac: 02:00:00:00:01:10}}
- {{interface: out, address: '2001:db8:1::9', mac: 02:00:00:00:01:19}}
routes:
- {{prefix: 198.51.100.0/24, via: 192.0.2.9}}
- {{prefix: 198.51.100.128/25, via: 192.0.2.10}}
- {{prefix: 10.9.0.0/16, via: blackhole}}
- {{prefix: 10.8.0.0/16, via: unreachable}}
- {{prefix: '2001:db8:2::/48', via: '2001:db8:1::9'}}
- {{prefix: '2001:db8:99::/48', via: '2001:db8:1::9'}}
acls:
  web:
    terms:
    - {{action: permit, protocol: tcp, destination-port: 80}}
    - {{action: deny, protocol: udp, destination-port: 53}}
    - {{action: permit}}
",
        input.display(),
        output.display()
    );
    let (config, _) = check("weir.yaml", &text).unwrap_or_else(|findings| panic!("{findings:?}"));
    let router = Router::start(&config, &Options::default()).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let totals = || serde_json::to_value(router.totals().unwrap()).unwrap();
    let mut before = totals();
    // Nothing waits for a neighbour, so two equal readings mean that all packets are through.
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = totals();
        let is_done = now == before && now["packets_in"] == PACKETS;
        before = now;
        if is_done {
            break;
        }
        assert!(Instant::now() < until, "{before}");
    }
    let answers: Vec<Why> = requests.iter().map(|it| router.why(it).unwrap()).collect();
    assert_eq!(before, totals(), "why counts nothing");
    let mut drops: BTreeMap<String, u64> = BTreeMap::new();
    for error in router.errors().unwrap().errors {
        *drops.entry(error.reason).or_default() += error.count;
    }
    router.stop();
    let left = left(&output);
    let mut expected_drops: BTreeMap<String, u64> = BTreeMap::new();
    let mut expected: BTreeMap<Leaving, usize> = BTreeMap::new();
    let (mut forwarded, mut denied) = (0, 0);
    for (request, why) in requests.iter().zip(&answers) {
        match why.outcome {
            WhyOutcome::Dropped => {
                let reason = why.reason.clone().expect("a drop has a reason");
                *expected_drops.entry(reason).or_default() += 1;
            }
            WhyOutcome::Forwarded => forwarded += 1,
            WhyOutcome::Received | WhyOutcome::Held => {}
        }
        for frame in why.frames.iter().filter(|frame| !frame.originated) {
            assert_eq!(frame.interface, "out", "{request:?} {why:?}");
            let key = (frame.destination_mac.clone(), frame.length as usize);
            *expected.entry(key).or_default() += 1;
        }
        if why.reason.as_deref() == Some("acl-denied") {
            let term = why.acl_terms.first().expect("the term that denies");
            assert_eq!((term.acl.as_str(), term.term), ("web", 1), "{why:?}");
            denied += 1;
        }
        assert!(!why.steps.is_empty() && why.interface == *request.interface.as_ref().unwrap());
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(left, expected);
    for (reason, count) in &expected_drops {
        assert_eq!(drops.get(reason), Some(count), "{reason}: {drops:?}");
    }
    assert!(
        forwarded > 100 && denied > 20 && expected_drops.len() >= 6,
        "{expected_drops:?}"
    );
}

/// A policer's bucket has room for one of the packets: each of them would be dropped if the one before had taken it.
#[test]
fn what_why_runs_takes_nothing_from_a_policer() {
    let text = "interfaces:
  in: { device: { driver: 'null' }, addresses: [ 10.0.0.1/24 ], police: { input: { rate: 8000, burst: 128 } } }
  out: { device: { driver: 'null' }, addresses: [ 192.0.2.1/24 ] }
neighbors: [ { interface: out, address: 192.0.2.9, mac: '02:00:00:00:00:09' } ]
";
    let router = Router::start(&check("weir.yaml", text).unwrap().0, &Options::default()).unwrap();
    let request = WhyRequest {
        interface: Some("in".to_owned()),
        length: 100,
        ..WhyRequest::new("10.0.0.2".parse().unwrap(), "192.0.2.9".parse().unwrap())
    };
    let long = WhyRequest {
        length: 129,
        ..request.clone()
    };
    for _ in 0..20 {
        let why = router.why(&request).unwrap();
        assert_eq!(why.outcome, WhyOutcome::Forwarded, "{why:?}");
        let why = router.why(&long).unwrap();
        assert_eq!(why.reason.as_deref(), Some("policed"), "{why:?}");
    }
    let features = router.features().unwrap();
    let mut interfaces = features.interfaces.iter();
    let policer = &interfaces.find(|it| it.interface == "in").unwrap().policers[0];
    assert_eq!((policer.conformed_packets, policer.dropped_packets), (0, 0));
    router.stop();
}
