//! The generator measures what the kernel's netem does: loss, duplication, delay and reordering.
//!
//! netem counts what it drops, and the device behind it what is sent; tcpdump sees the order. Figures of
//! latency depend on the machine: only their lower bound is asserted, and they are printed.

use std::time::Duration;

use serde_json::Value;
use weir_netlink::lab::{Cable, Lab, Port};

use super::bed::weir;

const LIMIT: Duration = Duration::from_secs(120);
const PACKETS: u64 = 1000;

/// Sends through a bridge whose second port has this netem, and returns the stream's result, netem's
/// statistics, the packets that left the port, and what tcpdump saw there.
fn through(netem: &str) -> Option<(Value, String, u64, Vec<u32>)> {
    if let Err(why) = weir_netlink::lab::preflight() {
        eprintln!("skipped: {why}");
        return None;
    }
    let mut lab = Lab::new();
    lab.add_host("tester").unwrap();
    lab.add_host("device").unwrap();
    for number in 0..2 {
        let port = |host: &str, side: &str| Port::new(host, &format!("{side}{number}"));
        let cable = Cable::new(port("tester", "g"), port("device", "p"));
        lab.connect(&cable).unwrap();
    }
    lab.bridge("device", "bridge", &["p0", "p1"]).unwrap();
    let (tester, device) = (lab.host("tester").unwrap(), lab.host("device").unwrap());
    let line = format!("qdisc add dev p1 root netem limit 100000 {netem}");
    let words: Vec<&str> = line.split_whitespace().collect();
    let added = device.run("tc", &words, LIMIT).unwrap();
    if added.stderr.contains("kind is unknown") {
        assert!(std::env::var_os("WEIR_KERNEL_TEST").is_none(), "{added:?}");
        eprintln!("skipped: this kernel does no netem");
        return None;
    }
    assert!(added.success(), "{added:?}");
    let capture = std::env::temp_dir().join(format!("weir-netem-{}.pcap", std::process::id()));
    let file = capture.to_str().unwrap();
    let watcher = device
        .spawn(
            "tcpdump",
            &[
                "-i", "p1", "-Q", "out", "-B", "65536", "-U", "-w", file, "udp",
            ],
        )
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let packets = PACKETS.to_string();
    let done = tester
        .run(
            &weir(),
            &[
                "lab",
                "generate",
                "--port",
                "g0",
                "--port",
                "g1",
                "--rate",
                "1kpps",
                "--packets",
                &packets,
                "--drain",
                "3s",
                "--json",
            ],
            LIMIT,
        )
        .unwrap();
    assert!(done.success(), "{done:?}");
    let shown = device
        .run("tc", &["-s", "qdisc", "show", "dev", "p1"], LIMIT)
        .unwrap();
    watcher.interrupt().unwrap();
    let reader = weir_pcap::file::Reader::open(&capture).unwrap();
    // The stamp: magic, stream, sequence number and time, in the last 16 bytes.
    let order: Vec<u32> = reader
        .filter_map(|packet| {
            let data = packet.ok()?.data;
            let stamp = data.get(data.len().checked_sub(16)?..)?;
            (stamp[..2] == [0x9e, 0x57])
                .then(|| u32::from_be_bytes(stamp[4..8].try_into().unwrap()))
        })
        .collect();
    std::fs::remove_file(&capture).unwrap();
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    let stream = result["streams"][0].clone();
    let left = order.len() as u64;
    eprintln!("{netem}: {stream} left {left}");
    Some((stream, shown.stdout, left, order))
}

fn of(stream: &Value, name: &str) -> u64 {
    stream[name].as_u64().unwrap()
}

#[test]
fn loss_of_netem_is_found_exactly() {
    let Some((stream, shown, ..)) = through("loss 5%") else {
        return;
    };
    let dropped = shown
        .split_once("(dropped ")
        .and_then(|(_, rest)| rest.split(',').next())
        .unwrap();
    let dropped: u64 = dropped.parse().unwrap();
    assert_eq!(of(&stream, "lost"), dropped, "{shown}");
    assert!(dropped > 0, "{shown}");
}

#[test]
fn duplicates_of_netem_are_found_exactly() {
    let Some((stream, shown, left, _)) = through("duplicate 5%") else {
        return;
    };
    assert_eq!(of(&stream, "lost"), 0, "{shown}");
    assert_eq!(of(&stream, "duplicated"), left - PACKETS, "{shown}");
    assert!(left > PACKETS, "{shown}");
}

#[test]
fn delays_of_netem_are_measured() {
    for (netem, delay) in [("delay 1ms", 1000.0), ("delay 10ms", 10_000.0)] {
        let Some((stream, ..)) = through(netem) else {
            return;
        };
        let latency = &stream["latency"];
        eprintln!(
            "{netem}: median {} µs above the delay",
            latency["p50_us"].as_f64().unwrap() - delay
        );
        assert!(
            latency["min_us"].as_f64() >= Some(delay - 20.0),
            "{latency}"
        );
    }
}

/// Reordered are packets that arrive after one with a higher number (RFC 4737), by tcpdump's order.
#[test]
fn reordering_of_netem_is_found_exactly() {
    let Some((stream, shown, _, order)) = through("delay 5ms reorder 20% 0%") else {
        return;
    };
    let mut highest = 0;
    let reordered = order
        .iter()
        .filter(|number| {
            highest = highest.max(**number);
            **number < highest
        })
        .count();
    assert_eq!(of(&stream, "reordered"), reordered as u64, "{shown}");
    assert!(reordered > 0, "{shown}");
}
