//! The generated policy against BIRD, and against itself as a pure function.

use std::path::{Path, PathBuf};

use weir_peering::model::Peering;
use weir_peering::policy::{Policy, Reason, Route, Verdict};
use weir_peering::snapshot::Snapshot;
use weir_peering::{bird, cases};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn example() -> (Peering, Snapshot) {
    let text = std::fs::read_to_string(data().join("peering.yaml")).unwrap();
    let peering = Peering::parse("peering.yaml", &text).unwrap();
    let snapshot = Snapshot::load(&data(), &peering).unwrap();
    (peering, snapshot)
}

/// A generator of test data: xorshift, seeded, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// A route near the borders of the policy.
fn route(random: &mut Random, neighbor: u32) -> Route {
    let bases = [
        "77.109.128.0/18",
        "82.197.160.0/19",
        "185.36.229.0/24",
        "2001:1620::/32",
        "2a0b:dd80::/29",
        "194.1.163.0/24",
        "185.1.203.0/24",
        "10.0.0.0/8",
        "1.0.0.0/24",
        "2001:db8::/32",
        "2001:678:d78::/48",
    ];
    let base: ipnet::IpNet = random.of(&bases).parse().unwrap();
    let longer = base
        .prefix_len()
        .saturating_add(random.below(10) as u8)
        .min(base.max_prefix_len());
    let length = if random.below(4) == 0 {
        longer
    } else {
        base.prefix_len()
    };
    let asns = [
        neighbor, neighbor, 13030, 3356, 64512, 50869, 13335, 23456, 174,
    ];
    let mut path = vec![if random.below(8) == 0 {
        *random.of(&asns)
    } else {
        neighbor
    }];
    let more = if random.below(30) == 0 {
        120
    } else {
        random.below(4)
    };
    for _ in 0..more {
        path.push(if random.below(3) == 0 {
            *random.of(&asns)
        } else {
            neighbor
        });
    }
    let communities = if random.below(5) == 0 {
        vec![(65535, 0)]
    } else {
        Vec::new()
    };
    Route {
        prefix: ipnet::IpNet::new(base.addr(), length).unwrap().trunc(),
        path,
        communities,
    }
}

#[test]
fn bird_accepts_the_configuration() {
    if !cases::is_available() {
        println!("skipped: bird is not installed");
        return;
    }
    let (peering, snapshot) = example();
    let text = bird::configuration(&peering, &snapshot);
    cases::check(&text).unwrap();
    assert_eq!(
        text,
        bird::configuration(&peering, &snapshot),
        "the same input gives the same bytes"
    );
    assert!(matches!(
        cases::check("no such statement;"),
        Err(weir_peering::Error::Bird(_))
    ));
}

#[test]
fn the_cases_of_a_user_pass_and_a_wrong_one_fails() {
    if !cases::is_available() {
        println!("skipped: bird is not installed");
        return;
    }
    let (peering, snapshot) = example();
    let mut all = cases::load(&data().join("cases.yaml")).unwrap();
    assert_eq!(cases::run(&peering, &snapshot, &all).unwrap(), []);
    all[0].expect = "rpki-invalid".to_owned();
    let failed = cases::run(&peering, &snapshot, &all).unwrap();
    assert_eq!(
        (failed.len(), failed[0].number, failed[0].found.as_str()),
        (1, 1, "accept")
    );
    all[0].from = 1;
    assert!(
        cases::run(&peering, &snapshot, &all)
            .unwrap_err()
            .to_string()
            .contains("AS1 is no neighbour")
    );
}

#[test]
fn bird_and_the_pure_function_agree_on_random_routes() {
    if !cases::is_available() {
        println!("skipped: bird is not installed");
        return;
    }
    let (peering, snapshot) = example();
    let count = if std::env::var_os("WEIR_LONG").is_some() {
        20_000
    } else {
        1_000
    };
    let mut random = Random(0x0057_6569_7221);
    let mut routes = Vec::new();
    let mut numbers = Vec::new();
    for _ in 0..count {
        let number = random.below(peering.neighbors.len() as u64) as usize;
        let neighbor = &peering.neighbors[number];
        numbers.push(number);
        routes.push((neighbor, route(&mut random, neighbor.asn)));
    }
    let policy = Policy::new(&peering, &snapshot);
    let found = cases::verdicts(&peering, &snapshot, &routes).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for ((number, (neighbor, route)), found) in numbers.into_iter().zip(&routes).zip(found) {
        let expected = policy.import(number, route);
        assert_eq!(found, expected, "AS{} {route:?}", neighbor.asn);
        seen.insert(match expected {
            Verdict::Accept { .. } => None,
            Verdict::Reject(reason) => Some(reason),
        });
    }
    let all = Reason::ALL.len() + 1;
    assert_eq!(seen.len(), all, "each verdict is reached: {seen:?}");
}

#[test]
fn an_empty_or_missing_set_is_an_error_and_no_open_filter() {
    let (peering, _) = example();
    let folder = std::env::temp_dir().join(format!("weir-peering-test-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("irr")).unwrap();
    std::fs::copy(data().join("vrps.json"), folder.join("vrps.json")).unwrap();
    let missing = Snapshot::load(&folder, &peering).unwrap_err().to_string();
    assert!(
        missing.contains("AS13030") && missing.contains("RIPE__AS-INIT7.4.json"),
        "{missing}"
    );
    for family in ["4", "6"] {
        std::fs::write(
            folder.join(format!("irr/RIPE__AS-INIT7.{family}.json")),
            "{\"NN\": []}",
        )
        .unwrap();
    }
    std::fs::write(folder.join("vrps.json"), "{\"roas\": []}").unwrap();
    let empty = Snapshot::load(&folder, &peering).unwrap_err().to_string();
    assert!(
        empty.contains("has no prefixes") && empty.contains("vrps.json has no ROAs"),
        "{empty}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = "peering: {asn: 65001, router-id: 192.0.2.1, prefixes: [198.51.100.1/24], neighbors: [\
        {asn: 64500, addresses: []}, {asn: 64501, addresses: [192.0.2.9], at: nowhere, as-set: 'AS-X;'}, \
        {asn: 64502, addresses: [192.0.2.9], prefixes: [203.0.113.0/24], description: 'a\"b'}]}";
    let said = Peering::parse("weir.yaml", text).unwrap_err().to_string();
    for part in [
        "host bits",
        "AS64500: addresses",
        "AS64500: name its as-set",
        "no exchange \"nowhere\"",
        "no AS-SET has",
        "192.0.2.9 has a session already",
        "description",
    ] {
        assert!(said.contains(part), "{part} is missing in:\n{said}");
    }
    assert!(Peering::parse("weir.yaml", "peering: {asn: 1, nonsense: 2}").is_err());
}
