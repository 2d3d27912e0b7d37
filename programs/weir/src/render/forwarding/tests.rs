//! Labels, adjacencies, and next hops that lead nowhere.

use weir_api::{
    Adjacencies, Adjacency, AdjacencyReply, LabelMeaning, LabelMode, LabelReply, LabelSource,
    MplsFib, NextHop, PathReply, Route, RouteGroup, RouteSource, Routes, Unresolved,
};

use crate::render::tests::PIPE;

#[test]
fn a_label_is_shown_down_to_the_wire() {
    let reply = MplsFib {
        labels: vec![LabelReply {
            label: 100,
            source: LabelSource::Static,
            meaning: None,
            ttl_mode: LabelMode::Uniform,
            lookup: None,
            vrf: None,
            group: Some(RouteGroup {
                number: 7,
                routes: 2,
                buckets: 1,
                resilient: false,
            }),
            paths: vec![PathReply {
                next_hop: Some("10.0.0.2".parse().unwrap()),
                interface: Some("xe0".to_owned()),
                weight: 1,
                buckets: 1,
                adjacency_number: 9,
                adjacency: Adjacency::Complete,
                mac: Some("02:00:00:00:00:02".to_owned()),
                mtu: Some(1500),
                labels: vec![200],
                push: None,
            }],
        }],
    };
    let text = super::label_chain(&reply, &PIPE);
    assert_eq!(
        text,
        "label 100, static, uniform\n  group 7: 1 path in 1 bucket, for 2 entries\n    path via 10.0.0.2 on xe0 label 200, weight 1: 1 bucket\n      adjacency 9: complete, to 02:00:00:00:00:02, mtu 1500\n"
    );
    let none = MplsFib { labels: vec![] };
    assert_eq!(super::label_chain(&none, &PIPE), "no labels\n");
}

#[test]
fn where_adjacencies_lead_is_shown() {
    let of = |text: &str| serde_json::from_str::<AdjacencyReply>(text).unwrap();
    let adjacencies = vec![
        of(
            r#"{"number": 9, "kind": "labelled", "state": "complete", "interface": "xe0", "address": "10.0.0.2", "mac": "02:00:00:00:00:02",
            "mtu": 1496, "labels": [300], "groups": 2}"#,
        ),
        of(
            r#"{"number": 12, "kind": "lookup", "state": "local", "table": 10, "vrf": "red", "groups": 1}"#,
        ),
        of(
            r#"{"number": 13, "kind": "pseudowire", "state": "local", "interface": "pw0", "groups": 1}"#,
        ),
    ];
    let expected = "\
Number  Kind        Address             Interface  MAC                 MTU  Groups  State
     9  labelled    10.0.0.2 label 300  xe0        02:00:00:00:00:02  1496       2  complete
    12  lookup      table 10 (red)      -          -                             1  local
    13  pseudowire  -                   pw0        -                             1  local
";
    assert_eq!(
        super::adjacencies(&Adjacencies { adjacencies }, &PIPE),
        expected
    );
}

fn entry(label: u32) -> LabelReply {
    LabelReply {
        label,
        source: LabelSource::Static,
        meaning: None,
        ttl_mode: LabelMode::Uniform,
        lookup: None,
        vrf: None,
        group: Some(RouteGroup {
            number: 7,
            routes: 1,
            buckets: 1,
            resilient: false,
        }),
        paths: vec![],
    }
}

/// The end of what leads nowhere.
fn nowhere() -> PathReply {
    PathReply {
        next_hop: None,
        interface: None,
        weight: 1,
        buckets: 1,
        adjacency_number: 0,
        adjacency: Adjacency::Drop,
        mac: None,
        mtu: None,
        labels: vec![],
        push: None,
    }
}

#[test]
fn what_is_done_with_a_label_that_has_no_path_is_reported() {
    let labels = vec![
        LabelReply {
            source: LabelSource::Special,
            meaning: Some(LabelMeaning::RouterAlert),
            group: None,
            ..entry(1)
        },
        LabelReply {
            lookup: Some(10),
            vrf: Some("red".to_owned()),
            ttl_mode: LabelMode::Pipe,
            ..entry(100)
        },
        LabelReply {
            lookup: Some(0),
            ..entry(101)
        },
    ];
    let reply = MplsFib { labels };
    let expected = "\
Label  Source   Mode     Group  Next hop                  Interface  Weight  Adjacency
    1  special  uniform         router-alert              -
  100  static   pipe         7  lookup in table 10 (red)  -
  101  static   uniform      7  lookup in table 0         -
";
    assert_eq!(super::mpls_fib(&reply, &PIPE), expected);
    let expected = "\
label 1, router-alert, special
  kept on the packet, which goes by the next label
label 100, static, pipe
  pop, then lookup in table 10 (red)
label 101, static, uniform
  pop, then lookup in table 0
";
    assert_eq!(super::label_chain(&reply, &PIPE), expected);
}

#[test]
fn why_a_next_hop_leads_nowhere_is_reported() {
    let hop = |address: &str, unresolved| NextHop {
        address: address.parse().unwrap(),
        table: Some("default".to_owned()),
        unresolved,
    };
    let route = |next_hops| Route {
        table: 10,
        vrf: Some("red".to_owned()),
        prefix: "198.51.100.0/24".parse().unwrap(),
        source: RouteSource::Static,
        next_hops,
        group: Some(RouteGroup {
            number: 3,
            routes: 1,
            buckets: 1,
            resilient: false,
        }),
        paths: vec![nowhere()],
        candidates: Vec::new(),
    };
    let reply = Routes {
        routes: vec![route(vec![
            hop("10.9.9.9", Some(Unresolved::Loop)),
            hop("10.9.9.10", Some(Unresolved::NoRoute)),
        ])],
    };
    let expected = "\
198.51.100.0/24, table 10 (red), static
  next hop 10.9.9.9, by table default: unresolved, the way to it leads back here
  next hop 10.9.9.10, by table default: unresolved, no route to it
  group 3: 1 path in 1 bucket, for 1 route
    path direct, weight 1: 1 bucket
      adjacency 0: drop, unresolved next hops 10.9.9.9, 10.9.9.10
";
    assert_eq!(super::chain(&reply, &PIPE), expected);
    let text = super::routes(&reply, &PIPE);
    assert!(
        text.ends_with("drop: unresolved next hops 10.9.9.9, 10.9.9.10\n"),
        "{text}"
    );
    // One that leads to a black hole is resolved.
    let text = super::chain(
        &Routes {
            routes: vec![route(vec![hop("10.9.9.9", None)])],
        },
        &PIPE,
    );
    assert!(text.ends_with("adjacency 0: drop\n"), "{text}");
}

#[test]
fn all_routes_of_a_prefix_are_shown_with_the_reason() {
    let path =
        r#"{"next_hop": "192.0.2.2", "interface": "wan", "weight": 1, "adjacency": "complete"}"#;
    let group = |number: u32| format!(r#"{{"number": {number}, "routes": 1, "buckets": 1}}"#);
    let text = format!(
        r#"{{"routes": [{{"table": 0, "prefix": "10.1.0.0/16", "source": "static", "group": {}, "paths": [{path}], "candidates": [
            {{"source": "static", "distance": 1, "metric": 0, "age": 75, "verdict": "lowest-distance", "group": {}, "paths": [{path}]}},
            {{"source": "kernel", "protocol": "bird", "daemon": "BIRD", "distance": 21, "metric": 32, "age": 7, "verdict": "higher-distance",
              "group": {}, "paths": [{path}]}}]}}]}}"#,
        group(3),
        group(3),
        group(4)
    );
    let reply: Routes = serde_json::from_str(&text).unwrap();
    let expected = "
Source  Protocol  Daemon  Distance  Metric         Age  Group  Next hop   Verdict
static  -         -              1       0  1 min 15 s      3  192.0.2.2  used, lowest distance
kernel  bird      BIRD          21      32       7.0 s      4  192.0.2.2  higher distance
";
    let text = super::chain(&reply, &PIPE);
    assert!(text.ends_with(expected), "{text}");
}
