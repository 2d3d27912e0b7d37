//! From any configuration to any other, and back where something fails on the way.
//!
//! A running router is led through random configurations (seeded; loopbacks, null ports, memif, cross connects,
//! sub-interfaces, addresses, routes of several paths, static neighbours, sampling) and, one by one, through every ordered
//! pair of the varied files of the configuration's own tests. After each change the plan to the same
//! goal is empty and the dump means the goal. With a failure at each step of a change, the router
//! must be found as it was: tables, numbers of groups and adjacencies, everything.

use std::collections::BTreeSet;

use weir_api::{ConfigText, Router as _};
use weir_config::{Config, check, plan};
use weir_engine::{Options, Router};

/// xorshift64*: the same configurations for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    fn one_in(&mut self, parts: u64) -> bool {
        self.next(parts) == 0
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.next(words.len() as u64) as usize]
    }
}

/// Some file; not every one is good.
fn some_file(random: &mut Random) -> String {
    let mut text = String::from("interfaces:\n");
    let names: Vec<String> = (0..6)
        .filter(|_| !random.one_in(3))
        .map(|number| format!("e{number}"))
        .collect();
    for (place, name) in names.iter().enumerate() {
        // Nobody calls this master: who is up and who is not would differ from picture to picture.
        let role = random.of(&["role: master", "role: master, queues: 2", "role: slave"]);
        let memif = format!(
            "device: {{ driver: memif, socket: '@weir-paths-{}-{place}', {role} }}, ",
            std::process::id()
        );
        let device = random.of(&[
            "device: { driver: 'null' }, ",
            "device: { driver: 'null' }, ",
            "",
            &memif,
        ]);
        let mtu = random.of(&["", "", "mtu: 1400, ", "mtu: 9000, "]);
        let state = random.of(&["", "", "state: down, "]);
        let sflow = random.of(&["", "sflow: true, "]);
        let mac = random.of(&["", "", "mac: '02:00:00:00:00:42', "]);
        let about = random.of(&["", "description: some, ", "description: other, "]);
        let vrf = random.of(&["", "", "", "vrf: red, ", "vrf: blue, ", "urpf: strict, "]);
        let l3 = match random.next(6) {
            0 => format!("l2xc: e{}, ", random.next(6)),
            1 => random
                .of(&["", "unnumbered: loop0, ", "unnumbered: e0, "])
                .to_owned(),
            2 => format!("addresses: [ 10.{place}.0.1/24, 10.{place}.1.1/24 ], "),
            3 => format!("addresses: [ 10.{}.0.1/24 ], ", random.next(6)),
            4 => format!(
                "addresses: [ 10.{place}.0.1/24, '2001:db8:{place}::{}/64' ], ",
                1 + random.next(3)
            ),
            _ => format!("addresses: [ 10.{place}.0.{}/24 ], ", 1 + random.next(3)),
        };
        let subs = match random.next(6) {
            0 => format!(
                "5: {{ addresses: [ 11.{}.0.1/24 ] }}, 6: {{ encapsulation: {{ dot1ad: 9 }} }}",
                random.next(2)
            ),
            1 => format!(
                "5: {{ encapsulation: {{ dot1q: 9, inner-dot1q: {}, exact-match: true }} }}",
                1 + random.next(2)
            ),
            2 => "7: { tag-rewrite: { pop: 0 } }, 5: { state: down }".to_owned(),
            _ => String::new(),
        };
        let subs = if subs.is_empty() {
            subs
        } else {
            format!("sub-interfaces: {{ {subs} }}, ")
        };
        text +=
            &format!("  {name}: {{ {device}{mtu}{state}{sflow}{mac}{about}{vrf}{l3}{subs} }}\n");
    }
    text += random.of(&[
        "vrfs: { red: { table: 1 }, blue: { table: 2 } }\n",
        "vrfs: { blue: { table: 1 }, red: { table: 2 } }\n",
        "",
    ]);
    if random.one_in(2) {
        text += &format!(
            "loopbacks:\n  loop0: {{ addresses: [ 192.0.2.{}/32 ] }}\n",
            1 + random.next(2)
        );
    }
    if random.one_in(3) {
        // Of two that are there; often they are something else already, and the file is thrown away.
        let (mode, one, other) = (
            random.of(&["lacp", "xor", "active-backup", "broadcast"]),
            random.next(6),
            random.next(6),
        );
        text += &format!(
            "bondethernets:\n  BondEthernet0: {{ mode: {mode}, interfaces: [ e{one}, e{other} ] }}\n"
        );
    }
    text += "routes:\n";
    for number in 0..random.next(8) {
        let via = match random.next(11) {
            10 => format!(
                "[ {{ next-hop: 30.0.0.{}, interface: e{} }} ]",
                1 + random.next(3),
                random.next(6)
            ),
            6 => "unreachable".to_owned(),
            7 => "prohibit".to_owned(),
            // Through another route, perhaps through itself.
            8 => format!(
                "[ {{ next-hop: 20.{}.0.9, next-hop-table: default }} ]",
                random.next(8)
            ),
            9 => format!(
                "[ {{ next-hop: 20.{}.0.9, next-hop-table: {} }}, {{ next-hop: 10.{}.0.8 }} ]",
                random.next(8),
                random.of(&["default", "red"]),
                random.next(6)
            ),
            4 => format!("'2001:db8:{}::9'", random.next(6)),
            5 => {
                let link = random.next(6);
                format!(
                    "[ {{ next-hop: 'fe80::9', interface: e{link} }}, {{ next-hop: '2001:db8:{link}::9' }} ]"
                )
            }
            0 => "blackhole".to_owned(),
            1 => format!("{}.{}.0.9", 10 + random.next(2), random.next(6)),
            2 => format!(
                "[ {{ next-hop: 10.{}.0.9 }}, {{ next-hop: 10.{}.0.8, weight: 3 }} ]",
                random.next(6),
                random.next(6)
            ),
            _ => format!(
                "[ {{ next-hop: 10.{}.0.7, weight: {} }} ]",
                random.next(6),
                1 + random.next(2)
            ),
        };
        let vrf = random.of(&["", "", "", "vrf: red, ", "vrf: blue, "]);
        let prefix = if random.one_in(4) {
            format!("'2001:db8:{number:x}00::/40'")
        } else {
            format!("20.{number}.0.0/16")
        };
        let resilient = random.of(&["", "", ", resilient: true"]);
        text += &format!("  - {{ {vrf}prefix: {prefix}, via: {via}{resilient} }}\n");
    }
    text += "neighbors:\n";
    for number in 0..random.next(4) {
        let (interface, last) = (random.next(6), random.next(2));
        text += &format!(
            "  - {{ interface: e{interface}, address: 10.{number}.0.9, mac: '02:00:00:00:01:0{last}' }}\n"
        );
    }
    text += &format!(
        "sflow: {{ sampling-rate: {} }}\n",
        [0, 1, 100, 10_000][random.next(4) as usize]
    );
    // Lists that stay empty are no lists.
    text.replace("routes:\nneighbors", "neighbors")
        .replace("neighbors:\nsflow", "sflow")
        .replace("interfaces:\nloopb", "loopb")
        .replace("interfaces:\nvrfs", "vrfs")
}

fn some_config(random: &mut Random) -> Config {
    loop {
        if let Ok((config, _)) = check("random.yaml", &some_file(random)) {
            return config;
        }
    }
}

/// A configuration as a file: JSON is YAML, too.
fn file_of(config: &Config) -> String {
    serde_json::to_string(config).unwrap()
}

/// What there is to see of a router that a change could have left behind.
fn picture(router: &Router) -> String {
    let interfaces: Vec<_> = router
        .interfaces()
        .unwrap()
        .interfaces
        .iter()
        .map(|it| format!("{} {} {:?}", it.index, it.name, it.mac))
        .collect();
    let neighbors: BTreeSet<_> = router
        .neighbors()
        .unwrap()
        .neighbors
        .iter()
        .map(|it| format!("{} {} {:?}", it.interface, it.address, it.mac))
        .collect();
    let summary = router.fib_summary().unwrap();
    // What a table occupies depends on what it held before.
    let tables: Vec<_> = summary
        .tables
        .iter()
        .map(|table| (table.table, &table.vrf, table.family, &table.routes))
        .collect();
    format!(
        "{}\n{interfaces:?}\n{neighbors:?}\n{:?}\n{:?}\n{} adjacencies, {} groups, {:?}\n{:?}",
        router.config().unwrap(),
        routes(router),
        adjacencies(router),
        summary.adjacencies,
        summary.groups,
        tables,
        router.sflow().unwrap().settings
    )
}

/// Ends of paths at interfaces, without their numbers.
fn adjacencies(router: &Router) -> Vec<String> {
    let query = weir_api::AdjacencyQuery {
        interface: None,
        after: None,
        most: usize::MAX,
    };
    let all = router
        .adjacencies_where(&query)
        .unwrap()
        .adjacencies
        .into_iter()
        .filter(|it| it.interface.is_some());
    let mut all: Vec<_> = all
        .map(|it| {
            format!(
                "{:?} {:?} {:?} {:?}",
                it.kind, it.state, it.interface, it.address
            )
        })
        .collect();
    all.sort();
    all
}

/// Routes with their paths, without the numbers that groups happen to have.
fn routes(router: &Router) -> BTreeSet<String> {
    let route = |route: weir_api::Route| {
        let path = |path: &weir_api::PathReply| {
            let bare = weir_api::PathReply {
                adjacency_number: 0,
                buckets: 0,
                ..path.clone()
            };
            serde_json::to_string(&bare).unwrap()
        };
        let paths: BTreeSet<_> = route.paths.iter().map(path).collect();
        format!(
            "{} {} {:?} {:?} {paths:?}",
            route.table, route.prefix, route.source, route.next_hops
        )
    };
    router
        .routes()
        .unwrap()
        .routes
        .into_iter()
        .map(route)
        .collect()
}

fn reaches(router: &Router, goal: &Config) {
    // The dump shows `hidden` in place of credentials; `config_plan` below compares those, too.
    let steps = plan(
        &check("now", &router.config_dump().unwrap().yaml).unwrap().0,
        &weir_config::without_credentials(goal.clone()),
    );
    let steps: Vec<_> = steps.iter().map(ToString::to_string).collect();
    assert!(steps.is_empty(), "the dump is not the goal: {steps:?}");
    let left = router
        .config_plan(&ConfigText {
            yaml: file_of(goal),
            ..ConfigText::default()
        })
        .unwrap()
        .steps;
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn random_configurations_lead_to_each_other_and_failures_lead_back() {
    let (rounds, most) = if std::env::var_os("WEIR_LONG").is_some() {
        (200, usize::MAX)
    } else {
        (25, 12)
    };
    for seed in 1..=2 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let first = some_config(&mut random);
        let router = Router::start(&first, &Options::default()).unwrap();
        let mut now = first;
        for round in 0..rounds {
            let goal = some_config(&mut random);
            let steps = plan(&now, &goal).len();
            let before = picture(&router);
            for fail_at in (0..steps).step_by(steps.div_ceil(most).max(1)) {
                router.fail_next_change_at(fail_at);
                router.apply(&goal).unwrap_err();
                assert_eq!(
                    picture(&router),
                    before,
                    "seed {seed}, round {round}, failure at step {fail_at} of {steps}"
                );
            }
            router
                .apply(&goal)
                .unwrap_or_else(|error| panic!("{error}\n{}\n{}", file_of(&now), file_of(&goal)));
            reaches(&router, &goal);
            now = goal;
        }
        router.apply(&Config::start_of(&now)).unwrap();
        let empty = router.fib_summary().unwrap();
        assert_eq!(empty.tables[0].routes, [], "{:?}", router.routes().unwrap());
        assert_eq!(adjacencies(&router), [] as [String; 0]);
        router.stop();
    }
}

/// Routes without what traffic makes and changes: neighbours that were looked for, and how far that is.
fn configured_routes(router: &Router) -> BTreeSet<String> {
    let configured = router
        .routes()
        .unwrap()
        .routes
        .into_iter()
        .filter(|route| route.source != weir_api::RouteSource::Neighbor);
    let route = |route: weir_api::Route| {
        let path = |path: &weir_api::PathReply| {
            let leads = matches!(path.adjacency, weir_api::Adjacency::Drop);
            format!(
                "{:?} {:?} {} {}",
                path.next_hop,
                path.interface,
                path.weight,
                if leads { "nowhere" } else { "on" }
            )
        };
        let paths: BTreeSet<_> = route.paths.iter().map(path).collect();
        format!(
            "{} {} {:?} {paths:?}",
            route.table, route.prefix, route.source
        )
    };
    configured.map(route).collect()
}

/// The varied files of the configuration's own tests, by name.
///
/// Sockets that others on this machine could have are called otherwise.
fn varied() -> Vec<(String, Config)> {
    let own = format!("@weir-varied-{}", std::process::id());
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../config/model/tests/varied"
    );
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path)
            .unwrap()
            .replace("@weir-varied", &own);
        let config = check(&name, &text)
            .unwrap_or_else(|findings| panic!("{findings:?}"))
            .0;
        (name, config)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn every_file_leads_to_every_other_and_it_does_not_matter_from_where() {
    let files = varied();
    assert!(files.len() >= 14, "{} files", files.len());
    let router = Router::start(&files[0].1, &Options::default()).unwrap();
    let mut pictures: Vec<Option<String>> = vec![None; files.len()];
    for (from_name, from) in &files {
        for (place, (to_name, to)) in files.iter().enumerate() {
            for (name, config) in [(from_name, from), (to_name, to)] {
                router
                    .apply(config)
                    .unwrap_or_else(|error| panic!("{from_name} to {to_name}, at {name}: {error}"));
            }
            reaches(&router, to);
            let seen = configured_routes(&router)
                .into_iter()
                .collect::<Vec<_>>()
                .join("\n");
            let before = pictures[place].get_or_insert_with(|| seen.clone());
            assert_eq!(*before, seen, "{from_name} to {to_name}");
        }
    }
    router.stop();
}
