//! Next hops that are looked up, and groups: what routes share, what is written when something below changes.

use weir_api::{Adjacency, LabelSource, Route, Router as _, Unresolved};
use weir_config::check;
use weir_engine::{Options, Router};

/// Two interfaces and these routes.
fn config(routes: &str) -> weir_config::Config {
    let text = format!(
        "interfaces:
  e0: {{ device: {{ driver: 'null' }}, addresses: [ 192.0.2.1/24 ] }}
  e1: {{ device: {{ driver: 'null' }}, addresses: [ 198.51.100.1/24, '2001:db8::1/64' ] }}
vrfs: {{ red: {{ table: 10 }} }}
routes:
{routes}"
    );
    check("test", &text)
        .unwrap_or_else(|errors| panic!("{text}\n{}", errors[0]))
        .0
}

fn route(router: &Router, prefix: &str) -> Route {
    router
        .routes()
        .unwrap()
        .routes
        .into_iter()
        .find(|route| route.prefix == prefix.parse().unwrap())
        .unwrap()
}

/// The next hops of a route as they are resolved, with their shares.
fn leads(router: &Router, prefix: &str) -> Vec<(String, u32)> {
    let hop = |path: &weir_api::PathReply| {
        path.next_hop
            .map_or_else(|| path.adjacency.to_string(), |hop| hop.to_string())
    };
    let mut all: Vec<_> = route(router, prefix)
        .paths
        .iter()
        .map(|path| (hop(path), path.weight))
        .collect();
    all.sort();
    all
}

fn hops(of: &[(&str, u32)]) -> Vec<(String, u32)> {
    of.iter()
        .map(|(hop, weight)| ((*hop).to_owned(), *weight))
        .collect()
}

const VIA: &str = "via: [ { next-hop: 10.255.0.1, next-hop-table: default } ] }";

#[test]
fn what_is_looked_up_follows_the_table_and_writes_one_group() {
    let dependent: String = (0..200)
        .map(|n| format!("  - {{ prefix: 100.64.{n}.0/24, {VIA}\n"))
        .collect();
    let with = |way: &str| config(&format!("{dependent}{way}"));
    let router = Router::start(&with(""), &Options::default()).unwrap();
    let group = |router: &Router| route(router, "100.64.7.0/24").group.unwrap();
    let first = group(&router);
    assert_eq!(
        (first.routes, leads(&router, "100.64.7.0/24")),
        (200, hops(&[("drop", 1)])),
        "no way to the next hop"
    );
    for (way, expected) in [
        (
            "  - { prefix: 10.255.0.0/16, via: 192.0.2.9 }\n",
            hops(&[("192.0.2.9", 1)]),
        ),
        (
            "  - { prefix: 10.255.0.0/16, via: 192.0.2.9 }\n  - { prefix: 10.255.0.0/24, via: 198.51.100.9 }\n",
            hops(&[("198.51.100.9", 1)]),
        ),
        (
            "  - { prefix: 10.255.0.0/16, via: [ { next-hop: 192.0.2.9 }, { next-hop: 198.51.100.9, weight: 3 } ] }\n",
            hops(&[("192.0.2.9", 1), ("198.51.100.9", 3)]),
        ),
        (
            "  - { prefix: 10.255.0.0/16, via: prohibit }\n",
            hops(&[("prohibit", 1)]),
        ),
        (
            "  - { prefix: 0.0.0.0/0, via: 192.0.2.7 }\n",
            hops(&[("192.0.2.7", 1)]),
        ),
        ("", hops(&[("drop", 1)])),
    ] {
        router.apply(&with(way)).unwrap();
        for number in [0, 7, 199] {
            assert_eq!(
                leads(&router, &format!("100.64.{number}.0/24")),
                expected,
                "{way}"
            );
        }
        let now = group(&router);
        assert_eq!(
            (now.number, now.routes),
            (first.number, 200),
            "the routes lead over the group that they did"
        );
        let hop = &route(&router, "100.64.7.0/24").next_hops[0];
        assert_eq!(
            (hop.address.to_string(), hop.table.as_deref()),
            ("10.255.0.1".to_owned(), Some("default"))
        );
    }
    router
        .apply(&config("  - { prefix: 10.0.0.0/8, via: blackhole }\n"))
        .unwrap();
    let summary = router.fib_summary().unwrap();
    assert!(summary.groups < 12, "nothing is left of them: {summary:?}");
    router.stop();
}

#[test]
fn next_hops_of_all_sorts_are_resolved() {
    let router = Router::start(
        &config(
            "  - { prefix: 10.1.0.0/16, via: [ { next-hop: 198.51.100.77, next-hop-table: default } ] }
  - { prefix: 10.2.0.0/16, via: [ { next-hop: '2001:db8::77', next-hop-table: default } ] }
  - { prefix: 10.3.0.0/16, via: [ { next-hop: 10.1.0.1, next-hop-table: default }, { next-hop: 192.0.2.9, weight: 2 } ] }
  - { prefix: 10.4.0.0/16, via: [ { next-hop: 10.3.0.1, next-hop-table: default, weight: 3 }, { next-hop: 10.2.0.1, next-hop-table: default } ] }
  - { prefix: 10.5.0.0/16, via: [ { next-hop: 10.5.0.1, next-hop-table: default } ] }
  - { prefix: 10.6.0.0/16, via: [ { next-hop: 10.7.0.1, next-hop-table: default }, { next-hop: 192.0.2.9 } ] }
  - { prefix: 10.7.0.0/16, via: [ { next-hop: 10.6.0.1, next-hop-table: default } ] }
  - { prefix: 10.8.0.0/16, via: [ { next-hop: 198.51.100.77, next-hop-table: red } ] }
  - { vrf: red, prefix: 10.9.0.0/16, via: [ { next-hop: 192.0.2.8, next-hop-table: default } ] }
",
        ),
        &Options::default(),
    )
    .unwrap();
    for (prefix, expected) in [
        ("10.1.0.0/16", &[("198.51.100.77", 1)][..]),
        ("10.2.0.0/16", &[("2001:db8::77", 1)]),
        ("10.3.0.0/16", &[("192.0.2.9", 2), ("198.51.100.77", 1)]),
        (
            "10.4.0.0/16",
            &[("192.0.2.9", 2), ("198.51.100.77", 1), ("2001:db8::77", 1)],
        ),
        // Through itself, and in a circle: what is no way is left out.
        ("10.5.0.0/16", &[("drop", 1)]),
        ("10.6.0.0/16", &[("192.0.2.9", 1)]),
        ("10.7.0.0/16", &[("192.0.2.9", 1)]),
        ("10.8.0.0/16", &[("drop", 1)]),
        ("10.9.0.0/16", &[("192.0.2.8", 1)]),
    ] {
        assert_eq!(leads(&router, prefix), hops(expected), "{prefix}");
    }
    assert!(
        route(&router, "10.5.0.0/16")
            .paths
            .iter()
            .all(|path| path.adjacency == Adjacency::Drop)
    );
    for (prefix, why) in [
        ("10.1.0.0/16", &[None][..]),
        ("10.5.0.0/16", &[Some(Unresolved::Loop)]),
        ("10.6.0.0/16", &[Some(Unresolved::Loop), None]),
        ("10.7.0.0/16", &[None]),
        ("10.8.0.0/16", &[Some(Unresolved::NoRoute)]),
    ] {
        let received: Vec<_> = route(&router, prefix)
            .next_hops
            .iter()
            .map(|hop| hop.unresolved)
            .collect();
        assert_eq!(received, why, "{prefix}");
    }
    router.stop();
}

#[test]
fn lists_that_branch_at_each_step_cost_no_more_than_they_may() {
    // Followed without a bound these are 20^12 paths: a start that ends is the proof.
    let mut routes = String::new();
    for step in 0..12 {
        let hops: Vec<_> = (1..=20)
            .map(|host| {
                format!(
                    "{{ next-hop: 10.{}.0.{host}, next-hop-table: default }}",
                    step + 1
                )
            })
            .collect();
        routes += &format!(
            "  - {{ prefix: 10.{step}.0.0/16, via: [ {} ] }}\n",
            hops.join(", ")
        );
    }
    let router = Router::start(
        &config(&(routes + "  - { prefix: 10.12.0.0/16, via: 192.0.2.9 }\n")),
        &Options::default(),
    )
    .unwrap();
    assert_eq!(leads(&router, "10.11.0.0/16"), hops(&[("192.0.2.9", 1)]));
    router.stop();
}

#[test]
fn a_resilient_group_keeps_its_shares_when_next_hops_come_and_go() {
    let with = |hops: &[u32]| {
        let hops: Vec<_> = hops
            .iter()
            .map(|hop| format!("{{ next-hop: 192.0.2.{hop} }}"))
            .collect();
        config(&format!(
            "  - {{ prefix: 10.0.0.0/8, resilient: true, via: [ {} ] }}\n",
            hops.join(", ")
        ))
    };
    let router = Router::start(&with(&[11, 12, 13, 14]), &Options::default()).unwrap();
    for (hops, shares) in [
        (&[11, 12, 13][..], &[21, 22][..]),
        (&[11, 13], &[32]),
        (&[11, 13, 15, 16], &[16]),
        (&[16], &[1]),
    ] {
        router.apply(&with(hops)).unwrap();
        let route = route(&router, "10.0.0.0/8");
        assert!(
            route.group.as_ref().is_some_and(|group| group.resilient),
            "{route:?}"
        );
        assert!(
            route.paths.len() == hops.len()
                && route
                    .paths
                    .iter()
                    .all(|path| shares.contains(&path.buckets)),
            "{route:?}"
        );
    }
    router.stop();
}

/// The end of a label that leads to a table tells its number, not its place.
#[test]
fn where_a_label_is_looked_up_is_reported() {
    let router = Router::start(
        &config("  - { prefix: 10.0.0.0/8, via: blackhole }\nmpls: { labels: [ { label: 100, lookup: red } ] }"),
        &Options::default(),
    )
    .unwrap();
    let all = router
        .adjacencies_where(&weir_api::AdjacencyQuery {
            interface: None,
            after: None,
            most: 100,
        })
        .unwrap()
        .adjacencies;
    let lookups = all
        .iter()
        .filter(|it| it.kind == weir_api::AdjacencyKind::Lookup);
    let tables: Vec<_> = lookups
        .map(|it| (it.table, it.vrf.as_deref(), &it.interface))
        .collect();
    assert_eq!(tables, [(Some(10), Some("red"), &None)]);
    assert!(
        all.iter()
            .all(|it| it.kind == weir_api::AdjacencyKind::Lookup
                || (it.table.is_none() && it.vrf.is_none()))
    );
    let labels = router.mpls_fib(None, None, 100).unwrap().labels;
    let received: Vec<_> = labels
        .iter()
        .map(|it| (it.label, it.source, it.lookup, it.vrf.as_deref()))
        .collect();
    assert_eq!(
        received,
        [(100, LabelSource::Static, Some(10), Some("red"))],
        "no interface takes labels"
    );
    router.stop();
}

/// Labels that are acted by without an entry of the configuration are among those that are reported, page by page.
#[test]
fn special_labels_are_reported_where_labels_are_taken() {
    let text = "interfaces:
  e0: { device: { driver: 'null' }, addresses: [ 192.0.2.1/24 ], mpls: true }
mpls:
  labels:
    - { label: 100, lookup: default }
    - { label: 101, via: [ { next-hop: 192.0.2.9, labels: [ 200 ] } ] }
";
    let router = Router::start(
        &check("test", text)
            .unwrap_or_else(|errors| panic!("{}", errors[0]))
            .0,
        &Options::default(),
    )
    .unwrap();
    let numbers = |label, after, most| {
        let labels = router.mpls_fib(label, after, most).unwrap().labels;
        labels.iter().map(|it| it.label).collect::<Vec<_>>()
    };
    assert_eq!(numbers(None, None, 100), [0, 1, 2, 7, 100, 101]);
    assert_eq!(
        (
            numbers(None, None, 2),
            numbers(None, Some(1), 3),
            numbers(None, Some(7), 9)
        ),
        (vec![0, 1], vec![2, 7, 100], vec![100, 101])
    );
    assert_eq!(
        (
            numbers(Some(2), None, 9),
            numbers(Some(3), None, 9),
            numbers(Some(2), Some(2), 9)
        ),
        (vec![2], vec![], vec![])
    );
    let entry = |label| {
        router
            .mpls_fib(Some(label), None, 1)
            .unwrap()
            .labels
            .remove(0)
    };
    assert_eq!(
        (entry(1).source, entry(100).source),
        (LabelSource::Special, LabelSource::Static)
    );
    assert_eq!(entry(101).paths[0].labels, [200]);
    router.stop();
}

#[test]
fn a_stalled_worker_delays_routes_and_nothing_else() {
    let route_to = |hop: &str| {
        config(&format!(
            "  - {{ prefix: 10.0.0.0/8, via: {hop} }}\n  - {{ prefix: 172.16.0.0/12, via: 192.0.2.7 }}\n"
        ))
    };
    let router = Router::start(&route_to("192.0.2.9"), &Options::default()).unwrap();
    assert!(!router.is_settling());
    let first = route(&router, "10.0.0.0/8").group.unwrap().number;
    let stall = router.stall();
    // Returns, though a worker has not taken the tables over, and the route stays where it was: its new group is unknown there.
    router.apply(&route_to("198.51.100.9")).unwrap();
    assert!(router.is_settling());
    assert_eq!(leads(&router, "10.0.0.0/8"), hops(&[("192.0.2.9", 1)]));
    // Nothing that waits keeps others from the control side, and one more change waits behind it.
    router.apply(&route_to("192.0.2.11")).unwrap();
    assert_eq!(leads(&router, "10.0.0.0/8"), hops(&[("192.0.2.9", 1)]));
    assert_eq!(leads(&router, "172.16.0.0/12"), hops(&[("192.0.2.7", 1)]));
    let now = route(&router, "10.0.0.0/8").group.unwrap().number;
    assert_eq!(
        now, first,
        "the group's number was not given to another one"
    );
    drop(stall);
    let began = std::time::Instant::now();
    while router.is_settling() {
        assert!(
            began.elapsed().as_secs() < 30,
            "the changes are carried out"
        );
        std::thread::yield_now();
    }
    assert_eq!(leads(&router, "10.0.0.0/8"), hops(&[("192.0.2.11", 1)]));
    assert_eq!(leads(&router, "172.16.0.0/12"), hops(&[("192.0.2.7", 1)]));
    router
        .apply(&config("  - { prefix: 9.0.0.0/8, via: blackhole }\n"))
        .unwrap();
    assert!(!router.is_settling());
    router.stop();
}

/// RFC 4291 section 2.6.1: a router has the anycast address of each of its subnets, until the last address of it goes.
#[test]
fn subnets_bring_the_anycast_address_of_routers() {
    let has = |router: &Router, prefix: &str| {
        let prefix = prefix.parse().unwrap();
        let routes = router.routes().unwrap().routes;
        let found = routes.into_iter().find(|route| route.prefix == prefix);
        found.is_some_and(|route| {
            route
                .paths
                .iter()
                .all(|it| it.adjacency == Adjacency::Local)
        })
    };
    let with = |addresses: &str| {
        let text = format!(
            "interfaces: {{ e0: {{ device: {{ driver: 'null' }}, addresses: [ {addresses} ] }} }}"
        );
        check("test", &text).unwrap().0
    };
    let config = with("'2001:db8:1::1/64', '2001:db8:1::2/64', '2001:db8:2::1/127'");
    let router = Router::start(&config, &Options::default()).unwrap();
    assert!(has(&router, "2001:db8:1::/128"));
    assert!(!has(&router, "2001:db8:2::/128"), "a link of two addresses");
    router.apply(&with("'2001:db8:1::2/64'")).unwrap();
    assert!(has(&router, "2001:db8:1::/128"), "the other address has it");
    router.apply(&with("'2001:db8:3::1/64'")).unwrap();
    assert!(!has(&router, "2001:db8:1::/128"));
    router.stop();
}
