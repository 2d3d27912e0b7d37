//! How flows are spread over several next hops, seen by the packets that leave: by weights, and, in a resilient group, so that
//! a next hop that comes or goes moves no flow that it need not move.
//!
//! A generator's flows go through the whole router in this process; each next hop is behind a port of its own, which writes
//! what it gets into a capture file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_config::{Config, check};
use weir_engine::{Options, Router};

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-spread-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Flows by their source addresses, in turn; the route's settings; and next hops by the numbers of their ports, with weights.
fn config(folder: &Path, stream: &str, route: &str, hops: &[(u32, u32)]) -> Config {
    let mut text = format!(
        "interfaces:
  in: {{ addresses: [10.0.0.1/24], device: {{ driver: generator, streams: [{{ name: all, {stream}, destination: 203.0.113.7 }}] }} }}
"
    );
    for port in 0..3 {
        let file = folder.join(format!("{port}.pcap"));
        text += &format!(
            "  out{port}: {{ addresses: [10.1.{port}.1/24], device: {{ driver: pcap, output: {} }} }}\n",
            file.display()
        );
    }
    text += "neighbors:\n";
    for port in 0..3 {
        text += &format!(
            "- {{ interface: out{port}, address: 10.1.{port}.2, mac: 02:00:00:00:01:0{port} }}\n"
        );
    }
    let via: Vec<String> = hops
        .iter()
        .map(|(port, weight)| format!("{{ next-hop: 10.1.{port}.2, weight: {weight} }}"))
        .collect();
    text += &format!(
        "routes: [{{ prefix: 203.0.113.0/24, {route} via: [{}] }}]\n",
        via.join(", ")
    );
    check("weir.yaml", &text)
        .unwrap_or_else(|findings| panic!("{text} {findings:?}"))
        .0
}

/// By which ports each flow left.
fn ways(folder: &Path) -> BTreeMap<[u8; 4], BTreeSet<usize>> {
    let mut ways = BTreeMap::<_, BTreeSet<usize>>::new();
    for port in 0..3 {
        for packet in weir_pcap::file::Reader::open(folder.join(format!("{port}.pcap"))).unwrap() {
            ways.entry(packet.unwrap().data[26..30].try_into().unwrap())
                .or_default()
                .insert(port);
        }
    }
    ways
}

/// Waits until so many packets more have left.
fn pass(router: &Router, packets: u64) {
    let (until, wanted) = (
        Instant::now() + Duration::from_secs(30),
        router.balance().packets_out + packets,
    );
    while router.balance().packets_out < wanted {
        assert!(Instant::now() < until, "{:?}", router.balance());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn flows_are_shared_out_by_weight() {
    for weights in [[1, 1, 1], [5, 2, 1], [1, 30, 1]] {
        let folder = Folder::new("weights");
        let hops: Vec<(u32, u32)> = (0..).zip(weights).collect();
        let wanted = config(
            &folder.0,
            "rate: 100000, source: 10.0.8.0-10.0.39.255",
            "",
            &hops,
        );
        let router = Router::start(&wanted, &Options::default()).unwrap();
        pass(&router, 10_000);
        router.stop();
        let ways = ways(&folder.0);
        assert!(
            ways.len() > 4096 && ways.values().all(|ports| ports.len() == 1),
            "each flow has one way"
        );
        let (all, mut counts) = (ways.len(), [0; 3]);
        ways.values().flatten().for_each(|port| counts[*port] += 1);
        for (count, weight) in counts.iter().zip(weights) {
            // A share is so many of 64 buckets, and which flow falls into which is as good as chance.
            let share = f64::from(weight) / f64::from(weights.iter().sum::<u32>());
            let (mean, deviation) = (
                share * all as f64,
                (share * (1.0 - share) * all as f64).sqrt(),
            );
            let off = (f64::from(*count) - mean).abs();
            assert!(
                off < 5.0 * deviation + all as f64 / 64.0,
                "{weights:?}: {counts:?}"
            );
        }
    }
}

/// The ways of flows before and after a change of the next hops, in a group that is resilient.
fn changed(
    name: &str,
    before: &[(u32, u32)],
    after: &[(u32, u32)],
) -> BTreeMap<[u8; 4], BTreeSet<usize>> {
    let folder = Folder::new(name);
    let stream = "rate: 100000, source: 10.0.8.0-10.0.9.255";
    let router = Router::start(
        &config(&folder.0, stream, "resilient: yes,", before),
        &Options::default(),
    )
    .unwrap();
    pass(&router, 4 * 512);
    router
        .apply(&config(&folder.0, stream, "resilient: yes,", after))
        .unwrap();
    pass(&router, 4 * 512);
    router.stop();
    let ways = ways(&folder.0);
    assert_eq!(ways.len(), 512);
    ways
}

#[test]
fn a_next_hop_that_comes_takes_its_share_and_moves_nothing_else() {
    let ways = changed("comes", &[(0, 1), (1, 1)], &[(0, 1), (1, 1), (2, 1)]);
    let moved: Vec<_> = ways.values().filter(|ports| ports.len() > 1).collect();
    assert!(
        moved
            .iter()
            .all(|ports| ports.len() == 2 && ports.contains(&2)),
        "{moved:?}"
    );
    // A third of them, within five deviations and a bucket.
    assert!((100..=240).contains(&moved.len()), "{}", moved.len());
}

#[test]
fn a_next_hop_that_goes_moves_its_own_flows_only() {
    let ways = changed("goes", &[(0, 1), (1, 1), (2, 1)], &[(0, 1), (1, 1)]);
    let moved: Vec<_> = ways.values().filter(|ports| ports.len() > 1).collect();
    assert!(
        moved
            .iter()
            .all(|ports| ports.len() == 2 && ports.contains(&2)),
        "{moved:?}"
    );
    assert!((100..=240).contains(&moved.len()), "{}", moved.len());
    // Each of its flows moved.
    assert!(
        ways.values()
            .all(|ports| !ports.contains(&2) || ports.len() == 2)
    );
}
