//! Parts of the routes come from the table in order, and are the parts that narrowing all of them gives.

use weir_api::{Destinations, RouteKey, RouteQuery, Router as _};
use weir_config::check;
use weir_engine::{Options, Router};

const FILE: &str = "interfaces:
  xe0: { device: { driver: 'null' }, addresses: [ 192.0.2.1/24, 198.51.100.1/25 ] }
loopbacks: { loop0: { addresses: [ 203.0.113.1/32 ] } }
routes:
  - { prefix: 0.0.0.0/0, via: 192.0.2.9 }
  - { prefix: 10.0.0.0/8, via: blackhole }
  - { prefix: 10.1.0.0/16, via: [ { next-hop: 192.0.2.8 }, { next-hop: 192.0.2.9 } ] }
  - { prefix: 10.1.0.0/24, via: 198.51.100.7 }
neighbors: [ { interface: xe0, address: 192.0.2.9, mac: '02:00:00:00:00:09' } ]
";

#[test]
fn parts_of_the_routes_are_what_narrowing_gives() {
    let router = Router::start(&check("weir.yaml", FILE).unwrap().0, &Options::default()).unwrap();
    let all = router.routes().unwrap();
    assert!(all.routes.len() > 12);
    let mut destinations = vec![Destinations::All];
    for route in &all.routes {
        destinations.extend([
            Destinations::Prefix(route.prefix),
            Destinations::LongestMatch(route.prefix.addr()),
        ]);
    }
    destinations.extend(
        ["10.1.2.3", "8.8.8.8", "2001:db8::1"]
            .map(|address| Destinations::LongestMatch(address.parse().unwrap())),
    );
    let after = std::iter::once(None)
        .chain(all.routes.iter().map(|route| Some(RouteKey::from(route))))
        .collect::<Vec<_>>();
    for destinations in destinations {
        for &after in &after {
            for (most, table) in [(1, None), (5, Some(0)), (1000, None), (1000, Some(7))] {
                let query = RouteQuery {
                    table,
                    family: None,
                    destinations,
                    after,
                    most,
                };
                let mut parts = router.routes_where(&query).unwrap();
                // All routes of a prefix stand where a single one is asked for; each has one source here.
                for route in &mut parts.routes {
                    let candidates = std::mem::take(&mut route.candidates);
                    let sources: Vec<_> = candidates.iter().map(|it| it.source).collect();
                    let expected = match destinations {
                        Destinations::All => vec![],
                        _ => vec![route.source],
                    };
                    assert_eq!(sources, expected, "{query:?}");
                }
                assert_eq!(parts, query.narrow(all.clone()), "{query:?}");
            }
        }
    }
    let kinds: Vec<_> = router
        .interfaces()
        .unwrap()
        .interfaces
        .iter()
        .map(|it| it.kind.to_string())
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "loopback").count(),
        1,
        "{kinds:?}"
    );
    router.stop();
}
