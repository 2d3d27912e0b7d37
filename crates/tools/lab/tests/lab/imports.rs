//! Streams of T-Rex and capture files as profiles: what is sent, and what is refused.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use weir_lab::offline;
use weir_lab::profile::{Profile, ProfileError};
use weir_lab::run::Plan;
use weir_pcap::file::{Captured, ETHERNET, Reader, Writer};

/// Built by scapy: Ethernet, IPv4 16.0.0.1 to 48.0.0.1, UDP 1025 to 12, 18 bytes `x`.
const UDP: &str =
    "AgAAAAACAgAAAAABCABFAAAuAAEAAEAROr0QAAABMAAAAQQBAAwAGn9veHh4eHh4eHh4eHh4eHh4eHh4";
/// Built by scapy: Ethernet, VLAN 7, IPv6, TCP 1025 to 80 with SYN, 31 bytes `y`.
const TCP6: &str = "AgAAAAACAgAAAAABgQAAB4bdYAAAAAAzBkAgAQ24AAAAAAAAAAAAAAABIAENuAAAAAAAAAAAAAAAAgQBAFAAAAAAAAAAAFACIACY3wAAeXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eQ==";

fn sent(profile: &Profile, most: u64) -> Vec<Captured> {
    let mut bytes = Vec::new();
    let plan = Plan {
        duration: Some(Duration::from_secs(100)),
        ..Plan::default()
    };
    offline::write(profile, &plan, most, &mut bytes).unwrap();
    let reader = Reader::new(std::io::Cursor::new(bytes)).unwrap();
    reader.map(Result::unwrap).collect()
}

fn trex(text: &str) -> Profile {
    let text = text.replace("UDP4", UDP).replace("TCP6", TCP6);
    Profile::from_yaml(&text).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn refused(text: &str) -> Vec<ProfileError> {
    Profile::from_yaml(&text.replace("UDP4", UDP)).unwrap_err()
}

/// Source address, destination port and UDP source port of a packet.
fn udp(packet: &Captured) -> (u8, u16, u16) {
    let parsed = SlicedPacket::from_ethernet(&packet.data).unwrap();
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) = (parsed.net, parsed.transport)
    else {
        panic!("{packet:?}")
    };
    (
        ip.header().source()[3],
        udp.destination_port(),
        udp.source_port(),
    )
}

/// The JSON that T-Rex's Python client writes for a stream with two counting addresses.
const JSON: &str = r#"[{
  "flags": 0, "action_count": 0, "enabled": true, "self_start": true, "isg": 0, "core_id": -1,
  "mode": {"type": "continuous", "rate": {"type": "pps", "value": 1000}},
  "packet": {"binary": "UDP4", "meta": ""},
  "flow_stats": {"enabled": true, "stream_id": 7, "rule_type": "latency"},
  "vm": {"split_by_var": "", "instructions": [
    {"type": "flow_var", "name": "src", "size": 4, "op": "inc", "next_var": null, "split_to_cores": true,
     "init_value": 268435458, "min_value": 268435457, "max_value": 268435460, "step": 1},
    {"type": "write_flow_var", "name": "src", "pkt_offset": 26, "add_value": 0, "is_big_endian": true},
    {"type": "flow_var", "name": "port", "size": 2, "op": "dec", "init_value": 9, "min_value": 5, "max_value": 9, "step": 2},
    {"type": "write_flow_var", "name": "port", "pkt_offset": 36, "add_value": 1, "is_big_endian": true},
    {"type": "flow_var", "name": "low", "size": 1, "op": "random", "min_value": 0, "max_value": 255},
    {"type": "write_flow_var", "name": "low", "pkt_offset": 35},
    {"type": "fix_checksum_ipv4", "pkt_offset": 14}
  ]}
}]"#;

/// Counting from an initial value, counting down with a step and an addend, and random values.
#[test]
fn fields_of_trex_are_written() {
    let profile = trex(JSON);
    assert!(profile.streams[0].stamped);
    let packets = sent(&profile, 200);
    let fields: Vec<_> = packets.iter().map(udp).collect();
    let sources: Vec<_> = fields.iter().take(6).map(|field| field.0).collect();
    let ports: Vec<_> = fields.iter().take(5).map(|field| field.1).collect();
    assert_eq!(sources, [2, 3, 4, 1, 2, 3]);
    assert_eq!(ports, [10, 8, 6, 10, 8]);
    let low: std::collections::BTreeSet<_> = fields.iter().map(|field| field.2 & 255).collect();
    assert!(low.len() > 100 && fields.iter().all(|field| field.2 >> 8 == 4));
    assert_eq!(sent(&profile, 200), packets);
}

/// All checksums are right, also those of fields at odd offsets and behind a tag; judged by tshark.
#[test]
fn tshark_finds_the_checksums_right() {
    let profile = trex(&format!(
        "{}, {}",
        JSON.trim_end_matches(']'),
        r#"{"packet": {"binary": "TCP6"}, "mode": {"type": "continuous", "pps": 1000},
            "vm": [{"type": "flow_var", "name": "a", "size": 8, "op": "random"},
                   {"type": "write_flow_var", "name": "a", "pkt_offset": 26},
                   {"type": "flow_var", "name": "b", "size": 4, "op": "random"},
                   {"type": "write_flow_var", "name": "b", "pkt_offset": 79},
                   {"type": "flow_var", "name": "v", "size": 2, "op": "inc", "min_value": 0, "max_value": 4095},
                   {"type": "write_mask_flow_var", "name": "v", "pkt_offset": 14, "pkt_cast_size": 2, "mask": 4095},
                   {"type": "fix_checksum_hw", "l2_len": 18, "l3_len": 40, "l4_type": 13}]}]"#
    ));
    let path = std::env::temp_dir().join(format!("weir-trex-{}.pcap", std::process::id()));
    let mut file = Writer::create(&path, ETHERNET).unwrap();
    for packet in sent(&profile, 400) {
        file.write(packet.timestamp_ns, packet.orig_len, &packet.data)
            .unwrap();
    }
    file.flush().unwrap();
    let filter = |filter: &str| {
        let done = Command::new("tshark")
            .args(["-r", path.to_str().unwrap(), "-Y", filter])
            .args([
                "-o",
                "ip.check_checksum:TRUE",
                "-o",
                "udp.check_checksum:TRUE",
            ])
            .args(["-o", "tcp.check_checksum:TRUE"])
            .output()
            .ok()?;
        assert!(done.status.success(), "{done:?}");
        Some(String::from_utf8_lossy(&done.stdout).lines().count())
    };
    let wrong = "ip.checksum.status == 0 || udp.checksum.status == 0 || tcp.checksum.status == 0";
    match filter(wrong) {
        None => eprintln!("skipped: tshark is not installed"),
        Some(wrong) => {
            assert_eq!(wrong, 0);
            assert_eq!(filter("udp.checksum.status == 1"), Some(200));
            assert_eq!(filter("vlan.id == 5 && tcp.checksum.status == 1"), Some(1));
        }
    }
    std::fs::remove_file(path).unwrap();
}

/// Addresses change with each packet, ports after all addresses; a dependent variable likewise.
#[test]
fn tuples_and_dependent_variables_count_together() {
    let tuple = trex(
        "- name: one
  stream:
    packet: {binary: UDP4}
    mode: {type: single_burst, pps: 100, total_pkts: 7}
    vm:
      instructions:
        - {type: tuple_flow_var, name: t, ip_min: 0x10000001, ip_max: 0x10000003, port_min: 1025, port_max: 2000, limit_flows: 6, flags: 0}
        - {type: write_flow_var, name: t.ip, pkt_offset: 26}
        - {type: write_flow_var, name: t.port, pkt_offset: 34}
        - {type: fix_checksum_ipv4, pkt_offset: 14}
",
    );
    let fields: Vec<_> = sent(&tuple, 99).iter().map(udp).collect();
    let pairs: Vec<_> = fields.iter().map(|field| (field.0, field.2)).collect();
    assert_eq!(
        pairs,
        [
            (1, 1025),
            (2, 1025),
            (3, 1025),
            (1, 1026),
            (2, 1026),
            (3, 1026),
            (1, 1025)
        ]
    );
    let dependent = trex(
        r#"[{"packet": {"binary": "UDP4"}, "mode": {"type": "single_burst", "pps": 100, "total_pkts": 5}, "vm": {"instructions": [
          {"type": "flow_var", "name": "a", "size": 1, "op": "inc", "min_value": 1, "max_value": 2, "next_var": "b"},
          {"type": "flow_var", "name": "b", "size": 1, "op": "inc", "min_value": 5, "max_value": 7},
          {"type": "write_flow_var", "name": "a", "pkt_offset": 29}, {"type": "write_flow_var", "name": "b", "pkt_offset": 37}]}}]"#,
    );
    let fields: Vec<_> = sent(&dependent, 99).iter().map(udp).collect();
    let pairs: Vec<_> = fields.iter().map(|field| (field.0, field.1)).collect();
    assert_eq!(pairs, [(1, 5), (2, 5), (1, 6), (2, 6), (1, 7)]);
}

/// Modes, gaps and chains: when each packet is due, in microseconds.
#[test]
fn streams_of_trex_start_each_other() {
    let profile = trex(
        r#"[{"name": "a", "next": "b", "stream": {"isg": 10.0, "packet": {"binary": "UDP4"}, "mode": {"type": "single_burst", "pps": 1000, "total_pkts": 2}}},
            {"name": "b", "next": "c", "stream": {"isg": 5, "self_start": false, "packet": {"binary": "UDP4"},
              "mode": {"type": "multi_burst", "pps": 1000, "pkts_per_burst": 2, "ibg": 1000.0, "count": 2}}},
            {"name": "c", "stream": {"self_start": false, "packet": {"binary": "UDP4"}, "mode": {"type": "single_burst", "rate": {"type": "bps_L1", "value": 672000}, "total_pkts": 1}}},
            {"name": "off", "stream": {"enabled": false, "packet": {"binary": "UDP4"}}}]"#,
    );
    let times: Vec<u64> = sent(&profile, 99)
        .iter()
        .map(|packet| packet.timestamp_ns / 1000)
        .collect();
    assert_eq!(times, [10, 1010, 2015, 2015, 5015, 5015, 8015]);
}

#[test]
fn what_trex_can_and_weir_cannot_is_refused_with_places() {
    let errors = refused(
        r#"[{"packet": {"binary": "UDP4"}, "vm": {"instructions": [
  {"type": "flow_var", "name": "s", "size": 2, "op": "random", "min_value": 60, "max_value": 1500},
  {"type": "trim_pkt_size", "name": "s"},
  {"type": "write_flow_var", "name": "s", "pkt_offset": 59},
  {"type": "write_flow_var", "name": "none", "pkt_offset": 26},
  {"type": "write_flow_var", "name": "s", "pkt_offset": "IP.src"}]},
  "mode": {"type": "random_burst"}},
 {"packet": {"binary": "?"}, "colour": "red", "flow_stats": {"enabled": true}},
 {"name": "loop", "next": "loop", "action_count": 3, "packet": {"pcap": "/no/such.pcap"}}]"#,
    );
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    for wanted in [
        "line 3: [0].vm.instructions[1]: trim_pkt_size is not supported",
        "line 4: [0].vm.instructions[2]: 2 bytes at 59 lie outside",
        "line 5: [0].vm.instructions[3]: there is no variable none",
        "line 6: [0].vm.instructions[4].pkt_offset: IP.src: give the offset",
        "line 7: [0].mode: random_burst is not",
        "line 8: [1].packet.binary: bytes in base64",
        "line 8: [1].colour: unknown key",
        "line 8: [1].flow_stats: counting this flow needs 16 bytes",
        "line 9: [2].action_count: loops",
        "line 9: [2].packet.pcap: /no/such.pcap",
    ] {
        assert!(
            all.iter().any(|error| error.starts_with(wanted)),
            "{wanted} is not among {all:#?}"
        );
    }
    let chain = |next: &str, start: bool| {
        format!(
            r#"[{{"name": "a", "next": "{next}", "packet": {{"binary": "UDP4"}}, "mode": {{"type": "single_burst", "pps": 1, "total_pkts": 1}}}},
            {{"name": "b", "self_start": {start}, "packet": {{"binary": "UDP4"}}, "mode": {{"type": "single_burst", "pps": 1, "total_pkts": 1}}}}]"#
        )
    };
    for (text, problem) in [
        (chain("a", true), "would start twice"),
        (chain("b", true), "would start twice"),
        (chain("z", true), "there is no enabled stream z"),
        (chain("", false), "it would never be sent"),
    ] {
        let error = refused(&text).remove(0).to_string();
        assert!(error.contains(problem), "{error}");
    }
}

fn capture(name: &str, frames: &[(u64, usize)]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("weir-replay-{}-{name}", std::process::id()));
    let mut file = Writer::create(&path, ETHERNET).unwrap();
    for (number, (time, len)) in frames.iter().enumerate() {
        file.write(*time, *len as u32, &vec![number as u8; *len])
            .unwrap();
    }
    file.flush().unwrap();
    path
}

/// A replay keeps bytes and gaps; speed and repetitions change only the times, a rate all of them.
#[test]
fn a_capture_is_replayed_with_its_timing() {
    let path = capture(
        "timing",
        &[(1_000_000, 60), (1_400_000, 1514), (1_800_000, 61)],
    );
    let replay = |more: &str| {
        let text = format!("streams: [{{capture: {{file: {}{more}}}}}]", path.display());
        sent(
            &Profile::from_yaml(&text).unwrap_or_else(|errors| panic!("{errors:#?}")),
            50,
        )
    };
    let plain = replay("");
    let lens: Vec<_> = plain.iter().map(|packet| packet.data.len()).collect();
    let times = |packets: &[Captured]| -> Vec<u64> {
        packets
            .iter()
            .map(|packet| packet.timestamp_ns / 1000)
            .collect()
    };
    assert_eq!(lens, [60, 1514, 61]);
    assert_eq!(plain[1].data, vec![1; 1514]);
    assert_eq!(times(&plain), [0, 400, 800]);
    assert_eq!(
        times(&replay(", speed: 4, loop: 2")),
        [0, 100, 200, 300, 400, 500]
    );
    assert_eq!(replay(", loop: forever").len(), 50);
    let rated = format!(
        "streams: [{{capture: {{file: {}}}, rate: 1kpps}}]",
        path.display()
    );
    assert_eq!(
        times(&sent(&Profile::from_yaml(&rated).unwrap(), 50)),
        [0, 1000, 2000]
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_capture_with_headers_is_refused() {
    let errors = Profile::from_yaml(
        "streams:\n  - capture: {file: /no/such, spede: 2}\n    udp: {}\n    stamp: true\n",
    )
    .unwrap_err();
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    for wanted in [
        "spede: unknown key",
        "/no/such",
        "udp: unknown key",
        "stamp must be false",
    ] {
        assert!(
            all.iter().any(|error| error.contains(wanted)),
            "{wanted} is not among {all:#?}"
        );
    }
}

/// The profiles in examples/lab are valid.
#[test]
fn examples_are_valid() {
    let folder = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../examples/lab"
    ));
    for (name, streams) in [("web-and-bursts.yaml", 2), ("trex.json", 1)] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let profile = Profile::from_yaml_in(&text, &folder);
        let profile = profile.unwrap_or_else(|errors| panic!("{name}: {errors:#?}"));
        assert_eq!(profile.streams.len(), streams);
        assert_eq!(sent(&profile, 100).len(), 100);
    }
}
