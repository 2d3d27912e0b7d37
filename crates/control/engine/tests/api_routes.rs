//! Routes that clients of the API set: what they lead to, what replaces what, and what changes of the configuration do to
//! them.

use weir_api::{
    Adjacency, ApiPath, ApiRoute, ApiRouteKey, Caller, Discard, RouteChanges, RouteResync,
    RouteSource, Router as _, RoutesChanged,
};
use weir_config::check;
use weir_engine::{Options, Router};

const BASE: &str = "interfaces:
  wan: { device: { driver: 'null' }, addresses: [ 192.0.2.1/24 ] }
  lan: { device: { driver: 'null' }, addresses: [ 198.51.100.1/24 ] }
";

fn config(text: &str) -> weir_config::Config {
    check("test", text)
        .unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
        .0
}

fn router(text: &str) -> Router {
    Router::start(&config(text), &Options::default()).unwrap()
}

fn path(next_hop: &str) -> ApiPath {
    ApiPath {
        next_hop: next_hop.parse().unwrap(),
        interface: None,
        lookup: None,
        weight: 1,
        labels: Vec::new(),
    }
}

fn route(prefix: &str, paths: &[ApiPath]) -> ApiRoute {
    ApiRoute {
        prefix: prefix.parse().unwrap(),
        vrf: None,
        metric: 0,
        paths: paths.to_vec(),
        discard: None,
    }
}

fn set(router: &Router, routes: &[ApiRoute]) -> RoutesChanged {
    let changes = RouteChanges {
        set: routes.to_vec(),
        ..RouteChanges::default()
    };
    router.routes_change(&changes, &Caller::router()).unwrap()
}

fn delete(router: &Router, prefix: &str) -> RoutesChanged {
    let changes = RouteChanges {
        delete: vec![ApiRouteKey {
            prefix: prefix.parse().unwrap(),
            vrf: None,
            metric: 0,
        }],
        ..RouteChanges::default()
    };
    router.routes_change(&changes, &Caller::router()).unwrap()
}

/// Interface and adjacency of each path.
type Paths = Vec<(Option<String>, Adjacency)>;

/// The source, the table's number, and where the paths of a prefix lead.
fn shown(router: &Router, prefix: &str) -> Option<(RouteSource, u32, Paths)> {
    let routes = router.routes().unwrap().routes;
    let found = routes
        .into_iter()
        .find(|route| route.prefix == prefix.parse().unwrap())?;
    let paths = found
        .paths
        .into_iter()
        .map(|path| (path.interface, path.adjacency))
        .collect();
    Some((found.source, found.table, paths))
}

fn to(interface: &str) -> Paths {
    vec![(Some(interface.to_owned()), Adjacency::Incomplete)]
}

fn count(router: &Router) -> u64 {
    let tables = router.fib_summary().unwrap().tables;
    let counts = tables.iter().flat_map(|table| &table.routes);
    counts
        .filter(|count| count.source == RouteSource::Api)
        .map(|count| count.count)
        .sum()
}

#[test]
fn routes_are_set_replaced_and_deleted() {
    let router = router(BASE);
    let changed = set(&router, &[route("203.0.113.0/24", &[path("192.0.2.9")])]);
    assert_eq!((changed.set, changed.refused), (1, 0), "{changed:?}");
    assert_eq!(
        shown(&router, "203.0.113.0/24"),
        Some((RouteSource::Api, 0, to("wan")))
    );
    // Found by interface, whatever its subnets.
    let named = ApiPath {
        interface: Some("lan".into()),
        ..path("192.0.2.9")
    };
    set(&router, &[route("203.0.113.0/24", &[named])]);
    assert_eq!(
        shown(&router, "203.0.113.0/24"),
        Some((RouteSource::Api, 0, to("lan")))
    );
    // Looked up: over the route of before.
    let looked_up = ApiPath {
        lookup: Some("default".into()),
        ..path("203.0.113.5")
    };
    set(&router, &[route("10.0.0.0/8", &[looked_up])]);
    assert_eq!(
        shown(&router, "10.0.0.0/8"),
        Some((RouteSource::Api, 0, to("lan")))
    );
    set(&router, &[route("203.0.113.0/24", &[path("192.0.2.9")])]);
    assert_eq!(
        shown(&router, "10.0.0.0/8"),
        Some((RouteSource::Api, 0, to("wan"))),
        "the way to the next hop changed"
    );
    assert_eq!(count(&router), 2);
    assert_eq!(delete(&router, "10.0.0.0/8").deleted, 1);
    assert_eq!(delete(&router, "10.0.0.0/8").deleted, 0);
    assert_eq!(delete(&router, "203.0.113.0/24").deleted, 1);
    assert_eq!(delete(&router, "192.0.2.0/24").deleted, 0, "not the API's");
    assert!(shown(&router, "192.0.2.0/24").is_some());
    assert_eq!(count(&router), 0);
    router.stop();
}

#[test]
fn a_route_of_the_configuration_comes_first() {
    let router = router(&format!(
        "{BASE}routes: [ {{ prefix: 203.0.113.0/24, via: 192.0.2.9 }} ]\n"
    ));
    set(&router, &[route("203.0.113.0/24", &[path("198.51.100.9")])]);
    assert_eq!(
        shown(&router, "203.0.113.0/24"),
        Some((RouteSource::Static, 0, to("wan")))
    );
    router.apply(&config(BASE)).unwrap();
    assert_eq!(
        shown(&router, "203.0.113.0/24"),
        Some((RouteSource::Api, 0, to("lan"))),
        "it takes the place of the one that went"
    );
    router.stop();
}

#[test]
fn routes_that_cannot_be_are_refused_each_by_itself() {
    let router = router(BASE);
    let with = |change: &dyn Fn(&mut ApiRoute)| {
        let mut route = route("203.0.113.0/24", &[path("192.0.2.9")]);
        change(&mut route);
        route
    };
    let bad = [
        with(&|it| it.prefix = "203.0.113.1/24".parse().unwrap()),
        with(&|it| it.prefix = "224.0.0.0/8".parse().unwrap()),
        with(&|it| it.prefix = "fe80::/64".parse().unwrap()),
        with(&|it| it.prefix = "2001:db8::/32".parse().unwrap()),
        with(&|it| it.vrf = Some("red".into())),
        with(&|it| it.paths = Vec::new()),
        with(&|it| it.discard = Some(Discard::Prohibit)),
        with(&|it| it.paths = vec![path("203.0.113.9")]),
        with(&|it| it.paths = vec![path("127.0.0.1")]),
        with(&|it| it.paths = vec![path("192.0.2.9"); 2]),
        with(&|it| it.paths = vec![path("192.0.2.9"); 65]),
        with(&|it| it.paths[0].weight = 0),
        with(&|it| it.paths[0].labels = vec![3]),
        with(&|it| it.paths[0].labels = vec![16; 20]),
        with(&|it| it.paths[0].interface = Some("none".into())),
        with(&|it| it.paths[0].lookup = Some("none".into())),
    ];
    let changed = set(&router, &bad);
    assert_eq!((changed.set, changed.refused), (0, bad.len() as u64));
    assert_eq!(changed.errors.len(), bad.len());
    assert!(changed.errors.iter().all(|error| !error.message.is_empty()));
    let mut mixed = bad.to_vec();
    mixed.push(route("203.0.113.0/24", &[path("192.0.2.9")]));
    mixed.push(ApiRoute {
        discard: Some(Discard::Blackhole),
        ..route("203.0.114.0/24", &[])
    });
    assert_eq!(set(&router, &mixed).set, 2);
    assert_eq!(count(&router), 2);
    router.stop();
}

#[test]
fn a_resync_deletes_what_is_not_set_again() {
    let router = router(BASE);
    let hop = [path("192.0.2.9")];
    let routes = |from: u8| -> Vec<ApiRoute> {
        (from..from + 100)
            .map(|n| route(&format!("10.{n}.0.0/16"), &hop))
            .collect()
    };
    set(&router, &routes(0));
    let changes = |set: Vec<ApiRoute>, resync| RouteChanges {
        set,
        resync: Some(resync),
        ..RouteChanges::default()
    };
    let caller = Caller::router();
    let send = |changes: &RouteChanges| router.routes_change(changes, &caller).unwrap();
    let begun = send(&changes(routes(50), RouteResync::Begin));
    assert_eq!((begun.set, begun.stale), (100, 0));
    assert_eq!(count(&router), 150, "the old ones stay until the end");
    let ended = send(&changes(Vec::new(), RouteResync::End));
    assert_eq!((ended.set, ended.stale), (0, 50));
    assert_eq!(count(&router), 100);
    assert!(shown(&router, "10.0.0.0/16").is_none());
    assert_eq!(send(&changes(Vec::new(), RouteResync::All)).stale, 100);
    assert_eq!(count(&router), 0);
    router.stop();
}

#[test]
fn routes_outlast_changes_of_interfaces() {
    let router = router(BASE);
    let named = ApiPath {
        interface: Some("wan".into()),
        ..path("192.0.2.9")
    };
    let routes = [
        route("203.0.113.0/24", &[path("192.0.2.9")]),
        route("203.0.114.0/24", &[named]),
    ];
    set(&router, &routes);
    let both = |router: &Router| {
        ["203.0.113.0/24", "203.0.114.0/24"].map(|prefix| shown(router, prefix).unwrap().2)
    };
    assert_eq!(both(&router), [to("wan"), to("wan")]);
    let lan =
        "interfaces:\n  lan: { device: { driver: 'null' }, addresses: [ 198.51.100.1/24 ] }\n";
    router.apply(&config(lan)).unwrap();
    assert_eq!(count(&router), 2);
    for paths in both(&router) {
        assert!(
            paths.iter().all(|(interface, _)| interface.is_none()),
            "{paths:?}"
        );
    }
    router.apply(&config(BASE)).unwrap();
    assert_eq!(
        both(&router),
        [to("wan"), to("wan")],
        "the interface is back"
    );
    // The subnet moves: the next hop that was found by it moves along.
    let moved = BASE
        .replace("192.0.2.1/24", "192.0.3.1/24")
        .replace("198.51.100.1/24", "192.0.2.1/24");
    router.apply(&config(&moved)).unwrap();
    assert_eq!(both(&router), [to("lan"), to("wan")]);
    router.stop();
}

#[test]
fn routes_of_a_vrf_go_with_it_and_come_back_when_the_change_fails() {
    let red = "vrfs: { red: { table: 10 } }\ninterfaces:\n  wan: { device: { driver: 'null' }, vrf: red, addresses: [ 192.0.2.1/24 ] }\n";
    let plain = "interfaces:\n  wan: { device: { driver: 'null' }, addresses: [ 192.0.2.1/24 ] }\n";
    let router = router(red);
    let in_red = ApiRoute {
        vrf: Some("red".into()),
        ..route("203.0.113.0/24", &[path("192.0.2.9")])
    };
    let dropped = ApiRoute {
        vrf: Some("red".into()),
        discard: Some(Discard::Prohibit),
        ..route("203.0.114.0/24", &[])
    };
    assert_eq!(set(&router, &[in_red, dropped]).set, 2);
    let expected = Some((RouteSource::Api, 10, to("wan")));
    assert_eq!(shown(&router, "203.0.113.0/24"), expected);
    let steps = weir_config::plan(&config(red), &config(plain)).len();
    for fails in 0..steps {
        router.fail_next_change_at(fails);
        router.apply(&config(plain)).unwrap_err();
        assert_eq!(shown(&router, "203.0.113.0/24"), expected, "step {fails}");
        assert_eq!(
            shown(&router, "203.0.114.0/24").unwrap().2,
            [(None, Adjacency::Prohibit)],
            "step {fails}"
        );
    }
    router.apply(&config(plain)).unwrap();
    assert_eq!(count(&router), 0);
    router.stop();
}

#[test]
fn a_full_table_loads() {
    let router = router(BASE);
    let most: u32 = if std::env::var_os("WEIR_LONG").is_some() {
        1_000_000
    } else {
        60_000
    };
    let hops = ["192.0.2.9", "192.0.2.10", "198.51.100.9"];
    let of = |n: u32| {
        let prefix = format!("{}/24", std::net::Ipv4Addr::from((16 << 24) + (n << 8)));
        let hop = hops[n as usize % hops.len()];
        route(&prefix, &[path(hop)])
    };
    let mut set_so_far = 0;
    for first in (0..most).step_by(20_000) {
        let routes: Vec<ApiRoute> = (first..most.min(first + 20_000)).map(of).collect();
        let changed = set(&router, &routes);
        assert_eq!(changed.refused, 0, "{changed:?}");
        set_so_far += changed.set;
    }
    assert_eq!(set_so_far, u64::from(most));
    assert_eq!(count(&router), u64::from(most));
    let all = RouteChanges {
        resync: Some(RouteResync::All),
        ..RouteChanges::default()
    };
    let flushed = router.routes_change(&all, &Caller::router()).unwrap();
    assert_eq!(flushed.stale, u64::from(most));
    assert_eq!(count(&router), 0);
    router.stop();
}
