//! Capture files: the same for the same seed, and understood by etherparse, tshark and scapy.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use weir_lab::offline;
use weir_lab::profile::Profile;
use weir_lab::run::Plan;

const ALL: &str = "
seed: 9
streams:
  - name: v4
    rate: 10kpps
    size: imix
    flows: 64k
    ethernet: {source: '02:00:00:00:00:01-02:00:00:00:00:08', destination: '02:00:00:00:01:00'}
    vlan: {id: 10-20, priority: 3}
    ipv4: {destination: {from: 48.0.0.0, to: 48.0.255.255, random: true}, ttl: 30-64, dscp: [0, 46]}
    udp: {source: 20000-20999, destination: [21053, 21080, 21443]}
  - name: v6
    rate: 5kpps
    size: 100
    ipv6: {source: '2001:db8::1-2001:db8::ff', destination: {from: '2001:db8:1::', to: '2001:db8:1::ffff:ffff', random: true}, flow-label: 77, dscp: 10}
    tcp: {source: {from: 30000, to: 39000, step: 7}, destination: 4430, flags: 2}
  - name: labels
    rate: 3kpps
    size: 128
    mpls: [100-110, {label: 200, class: 5, ttl: 9}]
    ipv4: {source: 10.0.0.1-10.0.0.9}
    udp: {source: 20007, destination: 20008}
    payload: random
  - name: pings
    rate: 2kpps
    size: 93
    vlan: [{id: 5, protocol: 0x88a8}, 6]
    ipv6: {source: '2001:db8::1', destination: '2001:db8::2-2001:db8::9'}
    icmp: {}
  - name: ping4
    rate: 1kpps
    size: [{size: 90, weight: 2}, {size: 91}]
    ipv4: {source: 10.0.0.1, destination: 10.0.0.2-10.0.0.200}
    icmp: {}
    payload: hello
  - name: plain
    rate: 1kpps
    network: none
";

fn capture(name: &str) -> (PathBuf, Vec<u8>) {
    let profile = Profile::from_yaml(ALL).unwrap_or_else(|errors| panic!("{errors:?}"));
    let plan = Plan {
        duration: Some(Duration::from_millis(100)),
        ..Plan::default()
    };
    let mut bytes = Vec::new();
    // 22 packets each millisecond.
    assert_eq!(
        offline::write(&profile, &plan, u64::MAX, &mut bytes).unwrap(),
        2200
    );
    let path = std::env::temp_dir().join(format!("weir-lab-{}-{name}.pcap", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    (path, bytes)
}

#[test]
fn a_seed_gives_the_same_bytes() {
    let (path, first) = capture("first");
    let (again, second) = capture("second");
    assert_eq!(first, second);
    let other = Profile {
        seed: 10,
        ..Profile::from_yaml(ALL).unwrap()
    };
    let plan = Plan {
        duration: Some(Duration::from_millis(100)),
        ..Plan::default()
    };
    let mut bytes = Vec::new();
    offline::write(&other, &plan, u64::MAX, &mut bytes).unwrap();
    assert_ne!(first, bytes);
    [path, again]
        .iter()
        .for_each(|path| std::fs::remove_file(path).unwrap());
}

/// Runs a program over a capture; `None` when it is not installed.
fn judged(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(done) if done.status.success() => {
            Some(String::from_utf8_lossy(&done.stdout).into_owned())
        }
        Ok(done) => panic!("{program}: {}", String::from_utf8_lossy(&done.stderr)),
        Err(_) => {
            eprintln!("skipped: {program} is not installed");
            None
        }
    }
}

/// tshark finds every checksum right and nothing malformed, and counts what each stream was to send.
#[test]
fn tshark_understands_every_frame() {
    let (path, _) = capture("tshark");
    let file = path.to_str().unwrap();
    let count = |filter: &str| {
        let checks = [
            "ip.check_checksum:TRUE",
            "udp.check_checksum:TRUE",
            "tcp.check_checksum:TRUE",
        ];
        let mut arguments = vec!["-r", file];
        checks
            .iter()
            .for_each(|check| arguments.extend(["-o", check]));
        arguments.extend(["-Y", filter]);
        judged("tshark", &arguments)
            .map(|text| text.lines().filter(|line| !line.trim().is_empty()).count())
    };
    let wanted = [
        (
            "_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0 || tcp.checksum.status == 0",
            0,
        ),
        (
            "icmp.checksum.status == 0 || icmpv6.checksum.status == 0",
            0,
        ),
        (
            "vlan.id >= 10 && vlan.id <= 20 && vlan.priority == 3 && udp && ip.src >= 16.0.0.1 && ip.ttl >= 30",
            1000,
        ),
        (
            "ipv6.flow == 77 && tcp.flags.syn == 1 && tcp.checksum.status == 1",
            500,
        ),
        ("mpls.label == 200 && mpls.ttl == 9 && mpls.exp == 5", 300),
        (
            "ieee8021ad && icmpv6.type == 128 && icmpv6.checksum.status == 1",
            200,
        ),
        ("icmp.type == 8 && icmp.checksum.status == 1", 100),
        ("eth.type == 0x88b5", 100),
    ];
    for (filter, packets) in wanted {
        let Some(found) = count(filter) else { return };
        assert_eq!(found, packets, "{filter}");
    }
    std::fs::remove_file(path).unwrap();
}

/// scapy builds each packet anew with checksums and lengths of its own, and gets the same bytes.
#[test]
fn scapy_builds_the_same_bytes() {
    const SCRIPT: &str = "
import sys
try:
    from scapy.all import rdpcap, IP, IPv6, UDP, TCP, ICMP, ICMPv6EchoRequest, Ether
except ImportError:
    print('absent'); sys.exit(0)
wrong = 0
packets = rdpcap(sys.argv[1])
for packet in packets:
    again = packet.copy()
    for layer in (IP, UDP, TCP, ICMP):
        if layer in again:
            del again[layer].chksum
    if IP in again: del again[IP].len
    if UDP in again: del again[UDP].len
    if IPv6 in again: del again[IPv6].plen
    if ICMPv6EchoRequest in again: del again[ICMPv6EchoRequest].cksum
    wrong += bytes(again) != bytes(packet)
print(len(packets), wrong)
";
    let (path, _) = capture("scapy");
    if let Some(text) = judged("python3", &["-c", SCRIPT, path.to_str().unwrap()]) {
        if text.trim() == "absent" {
            eprintln!("skipped: scapy is not installed");
        } else {
            assert_eq!(text.trim(), "2200 0");
        }
    }
    std::fs::remove_file(path).unwrap();
}

/// Values stay in their ranges, step by their step, and random ones reach all of a small range.
#[test]
fn fields_take_their_values() {
    let text = "
streams:
  - packets: 300
    ipv4: {source: {from: 10.0.0.0, to: 10.0.0.15, random: true}, destination: {from: 10.1.0.0, to: 10.1.0.9, step: 3}}
    udp: {source: [7, 9, 11], destination: 5}
";
    let profile = Profile::from_yaml(text).unwrap();
    let mut bytes = Vec::new();
    offline::write(&profile, &Plan::default(), u64::MAX, &mut bytes).unwrap();
    let reader = weir_pcap::file::Reader::new(std::io::Cursor::new(bytes)).unwrap();
    let (mut sources, mut destinations, mut ports) = (Vec::new(), Vec::new(), Vec::new());
    for packet in reader {
        let data = packet.unwrap().data;
        let parsed = etherparse::SlicedPacket::from_ethernet(&data).unwrap();
        let Some(etherparse::NetSlice::Ipv4(ip)) = parsed.net else {
            panic!()
        };
        let Some(etherparse::TransportSlice::Udp(udp)) = parsed.transport else {
            panic!()
        };
        sources.push(ip.header().source()[3]);
        destinations.push(ip.header().destination()[3]);
        ports.push(udp.source_port());
    }
    assert_eq!(destinations[..6], [0, 3, 6, 9, 0, 3]);
    assert_eq!(ports[..4], [7, 9, 11, 7]);
    let seen: std::collections::BTreeSet<_> = sources.iter().copied().collect();
    assert_eq!(seen, (0..16).collect());
}

#[test]
fn all_errors_are_reported_with_their_lines() {
    let text = "seed: x
streams:
  - rate: 10 parsecs
    size: 20
    vlan: 5000
    ipv4: {source: 10.0.0.9-10.0.0.1, tll: 3}
    udp: {}
    tcp: {}
  - size: 12
    rate: 5kpps
    burst: {packets: 0, every: 1ms}
  - ipv6: {source: '2001:db8::1-2001:db9::1'}
  - size: 20
";
    let errors = Profile::from_yaml(text).unwrap_err();
    let lines: Vec<_> = errors
        .iter()
        .map(|error| (error.line, error.path.as_str()))
        .collect();
    for wanted in [
        (1, "seed"),
        (3, "streams[0].rate"),
        (5, "streams[0].vlan"),
        (6, "streams[0].ipv4.source"),
        (6, "streams[0].ipv4.tll"),
        (11, "streams[1].burst"),
        (12, "streams[2].ipv6.source"),
        (13, "streams[3].size"),
    ] {
        assert!(
            lines.contains(&wanted),
            "{wanted:?} is not among {errors:#?}"
        );
    }
    assert!(
        errors
            .iter()
            .any(|error| error.problem.contains("only one of udp, tcp")),
        "{errors:#?}"
    );
    for hostile in [
        "",
        "[",
        "a: &x [*x, *x]",
        "streams: 7",
        "streams: []",
        "- 1",
        "streams: [{a: b, a: c}]",
        &"[".repeat(10_000),
    ] {
        assert!(Profile::from_yaml(hostile).is_err(), "{hostile:.20}");
    }
}

/// The profile that the generator is measured with is a valid one.
#[test]
fn the_profile_of_all_fields_is_valid() {
    let profile =
        Profile::from_yaml(weir_lab::FIELDS).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut bytes = Vec::new();
    assert_eq!(
        offline::write(&profile, &Plan::default(), 50, &mut bytes).unwrap(),
        50
    );
}
