//! All channels report the same reason and the same count of a dropped packet.
//!
//! A running router gets frames that it drops: those of scenarios, and [`frames`]. Afterwards are compared, by interface, node
//! and reason: `weir show errors`, the API, the metrics, `weir show sflow drops`, the notifications that an sFlow
//! collector received, the capture of drops; and by status the records that an IPFIX collector received.
//!
//! Ports are capture files, so no root is needed. All times are those of the router; the test waits until nothing moves.

#[path = "../live/mod.rs"]
mod live;

mod frames;
mod readings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use live::{Folder, tree};
use readings::Readings;
use weir_graph::DropReason;

/// Scenarios that between them have the reasons which [`frames`] do not have.
const SCENARIOS: [&str; 33] = [
    "acl-ip4",
    "acl-ip6",
    "arp-answer",
    "arp-unanswered",
    "bond-active-backup",
    "bond-lacp-hostile",
    "bridge-members",
    "bridge-split-horizon",
    "bridge-storms",
    "frames-for-nobody",
    "icmp4-own",
    "interface-down",
    "ip4-bad-headers",
    "ip4-blackhole-no-route",
    "ip4-df",
    "ip4-ttl-expired",
    "ip6-duplicate-addresses",
    "ip6-packet-too-big",
    "ip6-parameter-problems",
    "ip6-router-advertisements",
    "l2-cross-connect",
    "l2vpn-raw",
    "mpls-6pe-6vpe",
    "mpls-provider",
    "mpls-provider-edge",
    "mpls-swap-ways",
    "routes-nowhere",
    "source-own",
    "urpf",
    "vlan-cross-connect",
    "vlan-routed",
    "vxlan-drops",
    "vxlan-ecn",
];

/// All reasons but these were reached by some run.
///
/// Frames from outside do not bring them about in a small router without Linux's control plane.
const NOT_FROM_OUTSIDE: [(DropReason, &str); 8] = [
    (
        DropReason::PuntPoliced,
        "needs a TAP of Linux's control plane",
    ),
    (DropReason::PuntGone, "needs a TAP that is taken away"),
    (
        DropReason::HandoffFull,
        "needs a second worker that does not keep up",
    ),
    (DropReason::TxFull, "a capture file takes every frame"),
    (
        DropReason::NoHeadroom,
        "a guard: no configuration needs more than there is",
    ),
    (DropReason::NoBuffer, "needs a pool that is exhausted"),
    (DropReason::LoopLimit, "a guard: no path has so many nodes"),
    (
        DropReason::Stopped,
        "nobody can be asked when the router has stopped",
    ),
];

/// Drops that no IPFIX record has, by scenario, interface and reason, and why.
const NOT_METERED: [(&str, &str, &str, u64, &str); 3] = [
    (
        "interface-down",
        "right",
        "interface-down",
        1,
        "an interface that is down is not metered",
    ),
    (
        "vxlan-drops",
        "loop0",
        "tunnel-loop",
        2,
        "copies of a flooded frame: its record has the outcome of the first one",
    ),
    (
        "vxlan-drops",
        "vxlan_tunnel2",
        "fragmentation-needed",
        1,
        "a copy of a flooded frame",
    ),
];

/// Runs at the same time: most of a run is waiting.
const AT_ONCE: usize = 8;

#[test]
fn every_channel_reports_the_same_drops() {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut reasons = BTreeSet::new();
        loop {
            let readings = match next.fetch_add(1, Ordering::Relaxed) {
                0 => small_router(),
                number => match SCENARIOS.get(number - 1) {
                    Some(name) => scenario(name),
                    None => return reasons,
                },
            };
            reasons.extend(readings.api.keys().map(|(_, _, reason)| reason.clone()));
        }
    };
    let mut reasons = BTreeSet::new();
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        for run in runs {
            reasons.extend(run.join().unwrap());
        }
    });
    let unreached: Vec<_> = DropReason::ALL
        .iter()
        .filter(|reason| !reasons.contains(reason.name()))
        .collect();
    let expected: Vec<_> = NOT_FROM_OUTSIDE.iter().map(|(reason, _)| reason).collect();
    assert_eq!(unreached, expected);
}

fn small_router() -> Readings {
    let prepare = |folder: &Folder| {
        frames::write(folder);
        frames::CONFIGURATION.to_owned()
    };
    let readings = readings::run("frames", prepare);
    compare("frames", &readings);
    readings
}

fn scenario(name: &str) -> Readings {
    let from = tree().join("dev/testkit/scenarios").join(name);
    let prepare = |folder: &Folder| {
        for entry in std::fs::read_dir(&from).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "pcap") {
                std::fs::copy(&path, folder.0.join(path.file_name().unwrap())).unwrap();
            }
        }
        std::fs::read_to_string(from.join("weir.yaml")).unwrap()
    };
    let readings = readings::run(name, prepare);
    compare(name, &readings);
    readings
}

fn reason(name: &str) -> DropReason {
    let known = DropReason::ALL.iter().find(|it| it.name() == name);
    *known.unwrap_or_else(|| panic!("no reason {name:?}"))
}

/// All channels against the API.
fn compare(run: &str, readings: &Readings) {
    let Readings { api, .. } = readings;
    assert_eq!(readings.cli, *api, "{run}: weir show errors");
    assert_eq!(readings.metrics, *api, "{run}: metrics");
    assert_eq!(
        readings.sflow_dropped, *api,
        "{run}: show sflow drops, Dropped"
    );
    assert_eq!(
        readings.sflow_reported, *api,
        "{run}: show sflow drops, Reported"
    );
    assert_eq!(readings.capture, *api, "{run}: capture");
    let (mut wire, mut statuses) = (BTreeMap::new(), BTreeMap::new());
    for ((interface, node, name), count) in api {
        let code = u32::from(weir_telemetry::discard_code(reason(name)));
        assert_eq!(readings.codes.get(name), Some(&code), "{run}: {name}");
        *wire.entry((node.clone(), name.clone(), code)).or_default() += count;
        let unmetered: u64 = NOT_METERED
            .iter()
            .filter(|it| (it.0, it.1, it.2) == (run, interface, name))
            .map(|it| it.3)
            .sum();
        let status = weir_telemetry::forwarding_status(reason(name));
        *statuses.entry(status).or_default() += count - unmetered;
    }
    statuses.retain(|_, count: &mut u64| *count > 0);
    assert_eq!(readings.wire, wire, "{run}: the sFlow collector");
    let mut dropped = readings.ipfix.clone();
    dropped.retain(|status, _| status >> 6 == 2);
    assert_eq!(dropped, statuses, "{run}: the IPFIX collector");
}
