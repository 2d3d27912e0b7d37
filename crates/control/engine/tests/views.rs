//! What a router tells of its configuration in operation: tags, labels that are pushed, and names as long as they may be.

use weir_api::{LabelPush, PushMode, Router as _};
use weir_config::check;
use weir_engine::{Options, Router};

fn router(text: &str) -> Router {
    let config = check("test", text)
        .unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
        .0;
    Router::start(&config, &Options::default()).unwrap()
}

#[test]
fn how_labels_are_pushed() {
    let router = router(
        "interfaces:
  e0: { device: { driver: 'null' }, addresses: [ 192.0.2.1/24 ], mpls: true }
routes:
  - { prefix: 203.0.113.0/24, via: [ { next-hop: 192.0.2.9, labels: [ 100, 200 ] } ] }
  - prefix: 198.51.100.0/24
    via: [ { next-hop: 192.0.2.9, labels: [ 300 ], ttl-mode: pipe, traffic-class: 5, entropy-label: true } ]
  - { prefix: 100.64.0.0/10, via: 192.0.2.9 }
",
    );
    let pushed = |prefix: &str| {
        let routes = router.routes().unwrap().routes;
        let path = routes
            .into_iter()
            .find(|route| route.prefix == prefix.parse().unwrap())
            .unwrap()
            .paths
            .remove(0);
        (path.labels, path.push)
    };
    let usual = LabelPush {
        ttl_mode: PushMode::Uniform,
        traffic_class: None,
        entropy_label: false,
    };
    assert_eq!(pushed("203.0.113.0/24"), (vec![100, 200], Some(usual)));
    let other = LabelPush {
        ttl_mode: PushMode::Pipe,
        traffic_class: Some(5),
        entropy_label: true,
    };
    assert_eq!(pushed("198.51.100.0/24"), (vec![300], Some(other)));
    assert_eq!(pushed("100.64.0.0/10"), (vec![], None));
    router.stop();
}

#[test]
fn tags_and_what_becomes_of_them() {
    let router = router(
        "interfaces:
  left:
    device: { driver: 'null' }
    sub-interfaces:
      100: { l2xc: right.100 }
      300: { encapsulation: { dot1ad: 30, inner-dot1q: 31, exact-match: true }, l2xc: right.300, tag-rewrite: { pop: 1, dot1q: 40 } }
  right:
    device: { driver: 'null' }
    sub-interfaces:
      100: { l2xc: left.100 }
      300: { encapsulation: { dot1ad: 30 }, l2xc: left.300 }
",
    );
    let of = |name: &str| {
        let it = router
            .interfaces()
            .unwrap()
            .interfaces
            .into_iter()
            .find(|it| it.name == name)
            .unwrap();
        (
            it.encapsulation.map(|tags| tags.to_string()),
            it.tag_rewrite,
        )
    };
    assert_eq!(of("left"), (None, None));
    assert_eq!(of("left.100"), (Some("dot1q 100 exact-match".into()), None));
    assert_eq!(
        of("left.300"),
        (
            Some("dot1ad 30 inner-dot1q 31 exact-match".into()),
            Some("pop 1 push dot1q 40".into())
        )
    );
    assert_eq!(of("right.300").0, Some("dot1ad 30".into()));
    router.stop();
}

#[test]
fn names_as_long_as_they_may_be() {
    let long = |first: char, count: usize| first.to_string().repeat(count);
    let (port, other, vrf) = (long('p', 63), long('q', 52), long('v', 32));
    let text = |last: u8| {
        format!(
            "interfaces:
  {port}: {{ device: {{ driver: 'null' }}, addresses: [ 192.0.2.1/24 ], mpls: true }}
  {other}:
    device: {{ driver: 'null' }}
    vrf: {vrf}
    addresses: [ 198.51.100.1/24 ]
    sub-interfaces: {{ 4294967294: {{ encapsulation: {{ dot1q: 5 }} }} }}
vrfs: {{ {vrf}: {{ table: 10 }} }}
routes:
  - {{ prefix: 203.0.113.0/24, vrf: {vrf}, via: 198.51.100.{last} }}
"
        )
    };
    let router = router(&text(9));
    router.apply(&check("test", &text(7)).unwrap().0).unwrap();
    let interfaces = router.interfaces().unwrap().interfaces;
    for name in [&port, &other, &format!("{other}.4294967294")] {
        assert!(interfaces.iter().any(|it| it.name == *name), "{name}");
    }
    let route = router
        .routes()
        .unwrap()
        .routes
        .into_iter()
        .find(|route| route.prefix == "203.0.113.0/24".parse().unwrap())
        .unwrap();
    assert_eq!(
        (route.vrf, &route.paths[0].interface),
        (Some(vrf), &Some(other))
    );
    assert!(router.config_dump().unwrap().yaml.contains(&port));
    router.stop();
}
