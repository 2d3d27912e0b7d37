//! Samples, drops and counters through the kernel, as hsflowd hears them, and a collector behind a VRF.
//!
//! A listener in Python joins the groups as hsflowd's modules do and takes every message apart; tshark reads the same
//! messages from the kernel's netlink monitor.

use std::time::Duration;

use serde_json::Value;
use weir_netlink::lab::ROUTER;

use super::bed::{Bed, kernel_has, wait};
use super::first::{FirstNamespace, OFFSET, index, run};

const LISTENER: &str = include_str!("listen.py");
const LIMIT: Duration = Duration::from_secs(90);

/// Messages of a kind.
fn of<'a>(messages: &'a [Value], family: &'a str) -> impl Iterator<Item = &'a Value> {
    messages
        .iter()
        .filter(move |message| message["family"] == family)
}

/// Every line is a message, but for one that is being written.
fn heard(file: &str) -> Vec<Value> {
    let said = std::fs::read_to_string(file).unwrap();
    let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| {
            serde_json::from_str(line)
                .unwrap_or_else(|_| panic!("a message was not what it should be: {said}"))
        })
        .collect()
}

#[test]
fn a_listener_on_the_kernels_groups_hears_samples_drops_and_counters() {
    if !kernel_has(&["link add nlmon-test type nlmon"]) {
        return;
    }
    let mut bed = Bed::new("sampling", &[("near", 1), ("far", 1)]);
    bed.on("near", "ip address add 10.1.0.2/24 dev eth0");
    bed.on("far", "ip address add 10.2.0.2/24 dev eth0");
    bed.on("near", "ip route add default via 10.1.0.1");
    bed.on("far", "ip route add default via 10.2.0.1");
    let mut first = FirstNamespace::new();
    let (script, messages, capture) = (
        bed.file("listen.py"),
        bed.file("messages"),
        bed.file("netlink.pcap"),
    );
    std::fs::write(&script, LISTENER).unwrap();
    first.spawn(
        &format!("tcpdump -i weir-monitor -U -s 0 -w {capture}"),
        &bed.file("tcpdump"),
        "listening on",
    );
    first.spawn(&format!("python3 {script}"), &messages, "listening");
    let config = "interfaces:
  near: {device: {driver: af-xdp, name: near-0}, addresses: [10.1.0.1/24], sflow: true}
  far: {device: {driver: af-xdp, name: far-0}, addresses: [10.2.0.1/24], sflow: true}
sflow:
  sampling-rate: 1
  direction: both
  polling-interval: 1
  drop-limit: 1000
  psample: {namespace: FIRST}
  interfaces: {near: {osIndex: 4321}}
";
    bed.start(&config.replace("FIRST", &first.name));
    let (near, far) = (index(&bed, "near"), index(&bed, "far"));
    bed.ping("near", "10.2.0.2", 100);
    bed.no_ping("near", "10.99.0.1");
    let all = || heard(&messages);
    let echo = |message: &Value| {
        message["origsize"] == 142
            && (message["iifindex"].as_u64(), message["oifindex"].as_u64())
                == (Some(near), Some(far))
    };
    wait("samples of both directions", || {
        let all = all();
        let groups: Vec<u64> = of(&all, "psample")
            .filter(|it| echo(it))
            .filter_map(|it| it["group"].as_u64())
            .collect();
        if groups.contains(&3) && groups.contains(&4) {
            Ok(())
        } else {
            Err(format!("{all:?}"))
        }
    });
    wait("a drop, counters and states", || {
        let all = all();
        let dropped = of(&all, "NET_DM").any(|it| {
            it["trap"] == "vpp_no-route" && it["in_port"]["netdev_ifindex"] == OFFSET + near
        });
        let counted = |name: &str| {
            of(&all, "counters")
                .filter(|it| it["portname"] == name && it["rx_pkts"].as_u64() > Some(0))
                .count()
                > 1
        };
        if dropped && counted("near") && counted("far") && of(&all, "status").count() > 1 {
            Ok(())
        } else {
            Err(format!("{all:?}"))
        }
    });
    let all = all();
    for group in [3, 4] {
        let numbers: Vec<u64> = of(&all, "psample")
            .filter(|it| it["group"] == group)
            .map(|it| it["seq"].as_u64().unwrap())
            .collect();
        assert!(
            numbers.iter().copied().eq(1..=numbers.len() as u64),
            "group {group}: {numbers:?}"
        );
    }
    for sample in of(&all, "psample") {
        assert_eq!(
            (&sample["rate"], &sample["proto"]),
            (&1.into(), &1.into()),
            "{sample}"
        );
        assert!(
            sample["data"].as_str().unwrap().len() as u64 / 2
                <= sample["origsize"].as_u64().unwrap().min(128),
            "{sample}"
        );
    }
    // The header bytes are those of ingress: they begin with the router's address there.
    let macs = bed.ask("show interface");
    let mac_of = |name: &str| {
        let one = macs["interfaces"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["name"] == name)
            .unwrap();
        one["mac"].as_str().unwrap().replace(':', "")
    };
    let ingress = of(&all, "psample")
        .find(|it| it["group"] == 3 && echo(it))
        .unwrap();
    assert!(
        ingress["data"]
            .as_str()
            .unwrap()
            .starts_with(&mac_of("near")),
        "{ingress}"
    );
    let egress = of(&all, "psample")
        .find(|it| it["group"] == 4 && echo(it))
        .unwrap();
    assert_eq!(
        egress["data"].as_str().unwrap()[12..24],
        mac_of("far"),
        "{egress}"
    );
    let dropped = of(&all, "NET_DM")
        .find(|it| it["trap"] == "vpp_no-route")
        .unwrap();
    assert_eq!(
        (&dropped["origin"], &dropped["proto"], &dropped["orig_len"]),
        (&0.into(), &0x0800.into(), &98.into()),
        "{dropped}"
    );
    assert_eq!(
        (&dropped["group"], &dropped["reason"]),
        (&"vpp_icmp4-error".into(), &"IP_INNOROUTES".into()),
        "{dropped}"
    );
    let counters = |name: &'static str| {
        of(&all, "counters")
            .filter(move |it| it["portname"] == name)
            .last()
            .unwrap()
    };
    assert_eq!(
        (&counters("near")["ifindex"], &counters("near")["osindex"]),
        (&near.into(), &4321.into())
    );
    assert_eq!(
        (&counters("far")["ifindex"], &counters("far")["osindex"]),
        (&far.into(), &(OFFSET + far).into())
    );
    assert_eq!(counters("near")["hw_address"], mac_of("near"));
    tshark_reads_the_same(&capture, near, far);
    let reported = bed.ask("show sflow");
    assert!(
        reported["kernel"]["lacking"].as_array().unwrap().is_empty(),
        "{reported}"
    );
    assert!(
        reported["kernel"]["samples"].as_u64() >= Some(of(&all, "psample").count() as u64),
        "{reported}"
    );
    assert_eq!(reported["kernel"]["failed"], 0);
    bed.stop();
}

/// What Wireshark's dissectors make of the messages: they learn the families from the listener's own questions.
fn tshark_reads_the_same(file: &str, near: u64, far: u64) {
    let samples = run(&format!(
        "tshark -n -r {file} -Y psample.sample_group -T fields -e psample.iifindex -e psample.oifindex -e psample.origsize -e psample.sample_group"
    ));
    let line = |group: u64| format!("{near:#06x}\t{far:#06x}\t{:#010x}\t{group}", 142);
    assert!(
        samples.lines().any(|it| it == line(3)) && samples.lines().any(|it| it == line(4)),
        "{samples}"
    );
    let drops = run(&format!(
        "tshark -n -r {file} -Y net_dm.hw_trap_name -T fields -e net_dm.port.netdev_index -e net_dm.hw_trap_group_name -e net_dm.hw_trap_name -e net_dm.orig_len"
    ));
    assert!(
        drops
            .lines()
            .any(|it| it == format!("{}\tvpp_icmp4-error\tvpp_no-route\t98", OFFSET + near)),
        "{drops}"
    );
}

#[test]
fn a_collector_behind_a_vrf_is_reached_by_its_device() {
    if !kernel_has(&["link add vrf-test type vrf table 10"]) {
        return;
    }
    let mut bed = Bed::new("vrf", &[("near", 1), ("collector", 1)]);
    for line in [
        "ip link add vrf-mgmt type vrf table 100",
        "ip link set vrf-mgmt up",
        "ip link set collector-0 master vrf-mgmt",
        "ip address add 10.50.0.1/24 dev collector-0",
        "ip address add 10.50.0.9/24 dev collector-0",
        "ip link set collector-0 up",
    ] {
        bed.on(ROUTER, line);
    }
    bed.on("collector", "ip address add 10.50.0.2/24 dev eth0");
    bed.on("near", "ip address add 10.1.0.2/24 dev eth0");
    let mut tshark = bed.spawn(
        "collector",
        "tshark -l -n -i eth0 -c 1 -f udp -T fields -E occurrence=f -e ip.src -e ip.dsfield.dscp",
    );
    tshark.wait_for_output("Capturing on", LIMIT).unwrap();
    bed.start(
        "interfaces:
  near: {device: {driver: af-xdp, name: near-0}, addresses: [10.1.0.1/24], sflow: true}
sflow:
  sampling-rate: 1
  collectors:
    - {address: 10.50.0.2, dev: vrf-mgmt, source: 10.50.0.9, dscp: 16}
    - {address: 10.50.0.2}
",
    );
    bed.ping("near", "10.1.0.1", 100);
    let done = tshark.wait(LIMIT).unwrap();
    assert_eq!(done.stdout.trim(), "10.50.0.9\t16", "{}", done.stderr);
    // Without the device there is no way.
    let reported = bed.ask("show sflow collector");
    assert!(reported[0]["sent"].as_u64() > Some(0), "{reported}");
    assert!(
        reported[1]["sent"] == 0
            && reported[1]["last_error"]
                .as_str()
                .is_some_and(|it| it.contains("unreachable")),
        "{reported}"
    );
    bed.stop();
}
