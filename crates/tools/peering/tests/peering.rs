//! The generated policy against BIRD, and against itself as a pure function.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use weir_peering::model::{Neighbor, Peering, Relation};
use weir_peering::policy::{Policy, Reason, Route, Verdict};
use weir_peering::resolve::{self, Loaded};
use weir_peering::snapshot::Snapshot;
use weir_peering::{bird, cases};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn example() -> (Peering, Snapshot) {
    let text = std::fs::read_to_string(data().join("peering.yaml")).unwrap();
    let peering = Peering::parse("peering.yaml", &text).unwrap();
    let snapshot = Snapshot::load(&data(), &peering, 0).unwrap();
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

/// The section with everything in it, for the BIRD that is installed: ASPA needs 2.16.
fn full() -> Loaded {
    let folder = data().join("full");
    let mut peering = Peering::load(&folder.join("peering.yaml")).unwrap();
    if !has_aspa() {
        peering.daemon = weir_peering::model::Daemon::Bird;
        peering.policy.aspa = weir_peering::model::AspaMode::Off;
    }
    resolve::load(peering, &folder, 0).unwrap()
}

fn has_aspa() -> bool {
    let version = cases::version().unwrap_or_default();
    version >= (2, 16)
}

/// A route near the borders of the policy.
fn route(random: &mut Random, neighbor: &Neighbor) -> Route {
    let bases = [
        "77.109.128.0/18",
        "82.197.160.0/19",
        "142.250.0.0/15",
        "8.8.8.0/24",
        "31.0.0.0/16",
        "91.198.0.0/16",
        "185.36.229.0/24",
        "185.36.231.0/24",
        "193.108.215.0/24",
        "9.9.9.0/24",
        "2001:1620::/32",
        "2001:4860::/32",
        "2a0b:dd80::/29",
        "4000::/16",
        "194.1.163.0/24",
        "185.1.203.0/24",
        "10.0.0.0/8",
        "1.0.0.0/24",
        "2001:db8::/32",
        "2001:678:d78::/48",
    ];
    let mut base: ipnet::IpNet = random.of(&bases).parse().unwrap();
    if !neighbor.prefixes.is_empty() && random.below(2) == 0 {
        base = *random.of(&neighbor.prefixes);
    }
    let most = base.max_prefix_len();
    let length = match random.below(8) {
        0 => base.prefix_len().saturating_sub(1),
        1 => most - random.below(4) as u8,
        2..=4 => base
            .prefix_len()
            .saturating_add(random.below(12) as u8)
            .min(most),
        _ => base.prefix_len(),
    };
    // Another prefix within the base, so that a table holds many.
    let noise = u128::from(random.below(u64::MAX)) << 64 | u128::from(random.below(u64::MAX));
    let (bits, within) = (u32::from(most), u32::from(base.prefix_len()));
    let mask = (u128::MAX >> (128 - bits)).checked_shr(within).unwrap_or(0);
    let address = match base.addr() {
        IpAddr::V4(it) => IpAddr::from(Ipv4Addr::from(u32::from(it) | (noise & mask) as u32)),
        IpAddr::V6(it) => IpAddr::from(Ipv6Addr::from(u128::from(it) | (noise & mask))),
    };
    let asns = [
        neighbor.asn,
        neighbor.asn,
        13030,
        15169,
        3356,
        64512,
        50869,
        13335,
        23456,
        174,
        57,
        25152,
        19281,
        8298,
        48282,
        32934,
        2906,
        6939,
    ];
    let mut path = vec![neighbor.asn];
    if random.below(8) == 0 || neighbor.relation == Relation::RouteServer {
        path[0] = *random.of(&asns);
    }
    let more = if random.below(30) == 0 {
        99 + random.below(4)
    } else {
        random.below(4)
    };
    for _ in 0..more {
        let asn = if random.below(3) == 0 && more < 50 {
            *random.of(&asns)
        } else {
            path[0]
        };
        path.push(asn);
    }
    let mut communities = Vec::new();
    for it in [(65535, 0), (65535, 666), (1, 2)] {
        if random.below(4) == 0 {
            communities.push(it);
        }
    }
    if random.below(20) == 0 {
        communities.extend((0..100).map(|it| (13030, it)));
    }
    let mut large = Vec::new();
    for _ in 0..random.below(4) {
        let value = *random.of(&[0, 1, 2, 12, 60, 150, 200, 500, 777]);
        let own = if random.below(4) == 0 { 13030 } else { 8298 };
        let it = (own, random.below(10) as u32, value);
        if !large.contains(&it) {
            large.push(it);
        }
    }
    Route {
        communities,
        large,
        ..Route::new(ipnet::IpNet::new(address, length).unwrap(), path)
    }
}

#[test]
fn bird_accepts_the_configuration() {
    if !cases::is_available() {
        println!("skipped: bird is not installed");
        return;
    }
    let all = full();
    cases::check(&bird::configuration(&all.peering, &all.snapshot)).unwrap();
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
fn the_mistakes_of_other_generators_are_not_made() {
    if !cases::is_available() {
        println!("skipped: bird is not installed");
        return;
    }
    let of = full();
    let all = cases::load(&data().join("full/cases.yaml")).unwrap();
    assert_eq!(cases::run(&of.peering, &of.snapshot, &all).unwrap(), []);
    // Each expectation can fail.
    let mut wrong = all.clone();
    wrong.retain(|it| !it.has.is_empty() || !it.lacks.is_empty() || it.local_pref.is_some());
    for it in &mut wrong {
        std::mem::swap(&mut it.has, &mut it.lacks);
        it.local_pref = it.local_pref.map(|it| it + 1);
    }
    let failed = cases::run(&of.peering, &of.snapshot, &wrong).unwrap();
    let numbers: BTreeSet<usize> = failed.iter().map(|it| it.number).collect();
    assert_eq!(numbers.len(), wrong.len(), "{failed:?}");
    // Shadow mode: the same check marks the route and lets it pass.
    let mut shadow = of.peering.clone();
    shadow.policy.shadow = vec![Reason::RpkiInvalid, Reason::NotInIrr];
    let text = "- {from: 13030, at: frysix, route: 77.109.128.0/24, path: [13030], expect: accept, has: ['8298:7:14']}\n\
                - {from: 13030, at: frysix, route: 1.0.0.0/24, path: [13030], expect: accept, has: ['8298:7:12']}\n\
                - {from: 13030, at: frysix, route: 10.0.0.0/24, path: [13030], expect: bogon-prefix}\n";
    let folder = std::env::temp_dir().join(format!("weir-shadow-{}", std::process::id()));
    std::fs::write(&folder, text).unwrap();
    let marked = cases::load(&folder).unwrap();
    std::fs::remove_file(&folder).unwrap();
    assert_eq!(cases::run(&shadow, &of.snapshot, &marked).unwrap(), []);
    let policy = Policy::new(&shadow, &of.snapshot);
    let invalid = Route::new("77.109.128.0/24".parse().unwrap(), vec![13030]);
    assert!(matches!(policy.import(0, &invalid), Verdict::Accept { .. }));
}

#[test]
fn bird_and_the_pure_function_agree_on_random_routes() {
    if !cases::is_available() {
        println!("skipped: bird is not installed");
        return;
    }
    let Loaded {
        peering, snapshot, ..
    } = full();
    let count = if std::env::var_os("WEIR_LONG").is_some() {
        100_000
    } else {
        2_000
    };
    let mut random = Random(0x0057_6569_7221);
    let mut routes = Vec::new();
    let mut numbers = Vec::new();
    for _ in 0..count {
        let number = random.below(peering.neighbors.len() as u64 - 1) as usize;
        let neighbor = &peering.neighbors[number];
        assert_ne!(neighbor.relation, Relation::Own);
        numbers.push(number);
        routes.push((neighbor, route(&mut random, neighbor)));
    }
    let policy = Policy::new(&peering, &snapshot);
    let found = routes
        .chunks(10_000)
        .flat_map(|part| cases::verdicts(&peering, &snapshot, part).unwrap());
    let mut seen = BTreeSet::new();
    let mut preferences = BTreeSet::new();
    let mut blackholes = 0;
    for ((number, (neighbor, route)), found) in numbers.into_iter().zip(&routes).zip(found) {
        let expected = policy.import(number, route);
        assert_eq!(found.verdict, expected, "AS{} {route:?}", neighbor.asn);
        let foreign = |it: &&(u32, u32, u32)| it.0 == 8298 && !route.large.contains(it);
        assert!(
            found
                .large
                .iter()
                .filter(foreign)
                .all(|it| [0, 5, 7, 8].contains(&it.1))
        );
        match expected {
            Verdict::Accept { local_pref } => {
                // Nobody but customers steers by communities, and nobody marks routes as somebody else's.
                let relation = (8298, 0, neighbor.relation.tag());
                let own = found.large.iter().filter(|it| (it.0, it.1) == (8298, 0));
                assert_eq!(own.copied().collect::<Vec<_>>(), [relation], "{route:?}");
                preferences.insert(local_pref);
                blackholes += u32::from(route.prefix.prefix_len() == route.prefix.max_prefix_len());
                seen.insert(None);
            }
            Verdict::Reject(reason) => drop(seen.insert(Some(reason))),
        }
    }
    // Static routes have neither a next hop of BGP nor AS_SETs.
    let unreachable = [Reason::NextHop, Reason::AsSet];
    for reason in Reason::ALL
        .into_iter()
        .filter(|it| !unreachable.contains(it))
    {
        let is_seen = seen.contains(&Some(reason));
        let is_possible = reason != Reason::AspaInvalid || has_aspa();
        assert_eq!(is_seen, is_possible, "{}", reason.name());
    }
    assert!(blackholes > 0 && seen.contains(&None));
    assert!(
        preferences.is_superset(&BTreeSet::from([0, 60, 90, 150, 210, 500])),
        "{preferences:?}"
    );
}

#[test]
fn the_full_section_is_completed_by_peeringdb() {
    let Loaded { peering, notes, .. } = full();
    let of = |name: &str| {
        peering
            .neighbors
            .iter()
            .find(|it| it.name() == name)
            .unwrap()
    };
    let addresses = |name: &str| {
        let all = of(name).addresses.iter();
        all.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        addresses("AS13030_frysix"),
        ["185.1.203.7", "2001:7f8:10f::32e6:7"]
    );
    assert_eq!(addresses("AS13030_speed_ix"), ["185.1.95.7"]);
    // Neither the excluded one nor the one that is not in operation.
    assert_eq!(
        addresses("AS15169_frysix"),
        ["185.1.203.15", "2001:7f8:10f::3b41:15"]
    );
    assert_eq!(of("AS15169_frysix").as_set.as_deref(), Some("AS15169"));
    // (1500 + 100) * 1.15; 0 in PeeringDB is no number.
    assert_eq!(
        (
            of("AS13030_frysix").limit.ipv4,
            of("AS13030_frysix").limit.ipv6
        ),
        (Some(1840), Some(460))
    );
    assert_eq!(of("AS15169_frysix").limit.ipv4, Some(170_000));
    assert!(
        notes
            .iter()
            .any(|it| it.contains("AS15169") && it.contains("no number")),
        "{notes:?}"
    );
    let far = of("AS50870");
    let (_, session) = peering.sessions(far).next().unwrap();
    assert_eq!(
        (peering.local_pref(far), session.multihop, session.passive),
        (90, Some(4), true)
    );
    assert_eq!(peering.exchanges["frysix"].mtu, Some(1500));
    assert_eq!(peering.exchanges["frysix"].lan.len(), 2);
}

#[test]
fn an_empty_or_missing_set_is_an_error_and_no_open_filter() {
    let (peering, _) = example();
    let folder = std::env::temp_dir().join(format!("weir-peering-test-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("irr")).unwrap();
    std::fs::copy(data().join("vrps.json"), folder.join("vrps.json")).unwrap();
    let missing = Snapshot::load(&folder, &peering, 0)
        .unwrap_err()
        .to_string();
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
    let empty = Snapshot::load(&folder, &peering, 0)
        .unwrap_err()
        .to_string();
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
