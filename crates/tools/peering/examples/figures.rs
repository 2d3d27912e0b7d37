//! The figures of docs/peering.md: a build for 1,000 peers with 1,000 prefixes each, `bird -p`, a plan over a million routes
//! and 500 policy cases. CPU seconds of this process, and of its children for BIRD.

use std::net::Ipv4Addr;
use std::time::Instant;

use ipnet::{IpNet, Ipv4Net};
use weir_peering::birdc::TableRoute;
use weir_peering::cases::{self, Case};
use weir_peering::model::Peering;
use weir_peering::plan::{Comparison, Summary};
use weir_peering::snapshot::{Entry, Snapshot, Vrp};
use weir_peering::{bird, policy};

const PEERS: u32 = 1_000;
const PREFIXES: u32 = 1_000;

/// CPU seconds of this process (or of its children), user and system.
fn cpu(of_children: bool) -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = text
        .rsplit(") ")
        .next()
        .unwrap_or("")
        .split(' ')
        .map(|it| it.parse().unwrap_or(0.0))
        .collect();
    let first = if of_children { 13 } else { 11 };
    fields.iter().skip(first).take(2).sum::<f64>() / 100.0
}

fn memory() -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text
        .lines()
        .find(|it| it.starts_with("VmHWM"))
        .unwrap_or("");
    line.trim_start_matches("VmHWM:").trim().to_owned()
}

fn prefix(number: u32) -> IpNet {
    let address = Ipv4Addr::from(0x1600_0000 + (number << 8));
    Ipv4Net::new_assert(address, 24).into()
}

fn section() -> (Peering, Snapshot) {
    let mut text = "peering:\n  asn: 8298\n  router-id: 192.0.2.1\n  prefixes: [194.1.163.0/24]\n  neighbors:\n".to_owned();
    let mut snapshot = Snapshot::default();
    for peer in 0..PEERS {
        let address = Ipv4Addr::from(0x0a00_0001 + peer);
        text += &format!(
            "    - {{asn: {}, addresses: [{address}], as-set: AS-SET{peer}}}\n",
            200_000 + peer
        );
        let entries = (0..PREFIXES)
            .map(|it| prefix(peer * PREFIXES + it))
            .map(|it| Entry {
                prefix: it,
                least: 24,
                most: 24,
            });
        snapshot
            .sets
            .insert(format!("AS-SET{peer}"), entries.collect());
    }
    snapshot.vrps = (0..400_000)
        .map(|it| Vrp {
            prefix: prefix(it * 2),
            max_length: 24,
            asn: 200_000 + it * 2 / PREFIXES,
        })
        .collect();
    (
        Peering::parse("figures", &text).expect("the section is right"),
        snapshot,
    )
}

fn main() {
    let (peering, snapshot) = section();
    println!("data: {}", memory());
    let (start, wall) = (cpu(false), Instant::now());
    let text = bird::configuration(&peering, &snapshot);
    println!(
        "build of {PEERS} peers with {PREFIXES} prefixes: {:.2} s CPU, {:.2} s, {} bytes, {} at most",
        cpu(false) - start,
        wall.elapsed().as_secs_f64(),
        text.len(),
        memory()
    );
    // ROAs are routes for BIRD; the limit is for filters and sets.
    let mut without = snapshot.clone();
    without.vrps.truncate(1);
    let text = bird::configuration(&peering, &without);
    let start = cpu(true);
    if let Err(error) = cases::check(&text) {
        println!("{error}");
    }
    println!("bird -p: {:.2} s CPU", cpu(true) - start);

    let before = Summary::of(&peering, &snapshot);
    let start = cpu(false);
    let mut comparison = Comparison::new(&peering, &snapshot, Some(&before), None);
    for number in 0..PEERS * PREFIXES {
        let peer = number / PREFIXES;
        comparison.route(&TableRoute {
            prefix: prefix(number),
            protocol: format!("AS{}_1", 200_000 + peer),
            path: vec![200_000 + peer],
            has_as_set: false,
            next_hop: None,
            communities: Vec::new(),
            large: Vec::new(),
            local_pref: Some(200),
            is_filtered: false,
            is_cut: false,
        });
    }
    let diff = comparison.finish();
    println!(
        "verdicts on {} routes: {:.2} s CPU, {} rejected, {} at most",
        diff.routes,
        cpu(false) - start,
        diff.rejected,
        memory()
    );

    let small = Peering {
        neighbors: peering.neighbors.into_iter().take(20).collect(),
        ..Peering::parse(
            "figures",
            "peering: {asn: 8298, router-id: 192.0.2.1, prefixes: [194.1.163.0/24]}",
        )
        .expect("right")
    };
    without.vrps = snapshot.vrps.into_iter().take(1_000).collect();
    let all: Vec<Case> = (0..500u32)
        .map(|number| Case {
            from: 200_000 + number % 20,
            route: prefix(number % 20 * PREFIXES + number),
            path: vec![200_000 + number % 20],
            communities: Vec::new(),
            large_communities: Vec::new(),
            expect: "accept".to_owned(),
            local_pref: None,
            has: Vec::new(),
            lacks: Vec::new(),
            at: None,
        })
        .collect();
    let (start, wall) = (cpu(false) + cpu(true), Instant::now());
    match cases::run(&small, &without, &all) {
        Ok(failed) => println!(
            "{} cases, {} failed: {:.2} s CPU, {:.2} s; {} reasons are known",
            all.len(),
            failed.len(),
            cpu(false) + cpu(true) - start,
            wall.elapsed().as_secs_f64(),
            policy::Reason::ALL.len()
        ),
        Err(error) => println!("{error}"),
    }
}
