//! Every endpoint over a real socket, through the client and without it.

mod common;

use std::sync::Arc;

use common::{Mood, Place, TestRouter, fitting, plain};
use weir_api::*;

fn running() -> (Place, Arc<TestRouter>, ServerHandle, Client) {
    let place = Place::new();
    let router = Arc::new(TestRouter::new(Mood::Good));
    let server = Server::start(&place.socket(), Arc::clone(&router) as Arc<dyn Router>).unwrap();
    let client = Client::new(place.socket());
    (place, router, server, client)
}

#[test]
fn what_the_router_says_is_what_the_client_reads() {
    let (_place, router, server, client) = running();
    assert_eq!(client.version().unwrap().pid, std::process::id());
    assert_eq!(
        client.interfaces(None).unwrap(),
        router.interfaces().unwrap()
    );
    assert_eq!(client.hardware(None).unwrap(), router.hardware().unwrap());
    assert_eq!(
        client.rx_placement(None).unwrap(),
        router.rx_placement().unwrap()
    );
    assert_eq!(
        client.bridge_domains(None).unwrap(),
        router.bridge_domains().unwrap()
    );
    let everything = L2fibQuery {
        bridge: None,
        after: None,
        most: 100,
    };
    assert_eq!(
        client.l2fib(None).unwrap(),
        router.l2fib_where(&everything).unwrap()
    );
    assert_eq!(client.bonds(None).unwrap(), router.bonds().unwrap());
    assert_eq!(client.features(None).unwrap(), router.features().unwrap());
    assert_eq!(client.features(Some("wan")).unwrap().interfaces.len(), 1);
    assert_eq!(
        client.pseudowires(None).unwrap(),
        router.pseudowires().unwrap()
    );
    assert_eq!(
        client.pseudowires(Some("wan")).unwrap().pseudowires.len(),
        1
    );
    assert_eq!(
        client.mpls_fib(None).unwrap(),
        router.mpls_fib(None, None, 100).unwrap()
    );
    assert_eq!(
        client
            .mpls_fib(Some(17))
            .unwrap()
            .labels
            .iter()
            .map(|entry| entry.label)
            .collect::<Vec<_>>(),
        [17]
    );
    assert_eq!(
        client.vxlan_tunnels(None).unwrap(),
        router.vxlan_tunnels().unwrap()
    );
    assert_eq!(client.memif(None).unwrap(), router.memif().unwrap());
    let everything = AdjacencyQuery {
        interface: None,
        after: None,
        most: 100,
    };
    assert_eq!(
        client.adjacencies(None).unwrap(),
        router.adjacencies_where(&everything).unwrap()
    );
    assert_eq!(
        client
            .adjacencies(Some("wan"))
            .unwrap()
            .adjacencies
            .iter()
            .map(|it| it.number)
            .collect::<Vec<_>>(),
        [7]
    );
    assert_eq!(
        client.acls(None, None).unwrap(),
        router
            .acls_where(&AclQuery {
                most: 9,
                ..AclQuery::default()
            })
            .unwrap()
    );
    assert_eq!(client.runtime().unwrap(), router.runtime().unwrap());
    assert_eq!(client.errors(None, true).unwrap(), router.errors().unwrap());
    assert_eq!(client.neighbors(None).unwrap(), router.neighbors().unwrap());
    assert_eq!(client.routes(None, None).unwrap(), router.routes().unwrap());
    assert_eq!(client.sflow().unwrap(), common::sflow());
    assert_eq!(client.ipfix().unwrap(), common::ipfix());
    assert_eq!(
        client
            .flows(&[
                ("interface", Some("wan")),
                ("prefix", Some("192.0.2.0/24")),
                ("top", Some("octets"))
            ])
            .unwrap(),
        common::flows()
    );
    for (key, value) in [
        ("prefix", "192.0.2.0/33"),
        ("prefix", "nowhere"),
        ("limit", "0"),
        ("top", "all"),
        ("interface", "lost"),
    ] {
        assert!(
            client.flows(&[(key, Some(value))]).is_err(),
            "{key} {value}"
        );
    }
    assert_eq!(client.trace().unwrap(), common::trace());
    assert_eq!(client.totals().unwrap(), router.totals().unwrap());
    assert_eq!(client.config().unwrap(), router.config().unwrap());
    server.stop();
}

#[test]
fn every_row_of_the_table_answers() {
    let (place, _router, _server, _client) = running();
    for endpoint in ENDPOINTS
        .iter()
        .filter(|endpoint| matches!(endpoint.reply, Reply::Json(_)))
    {
        let (path, body) = fitting(endpoint);
        let (status, reply, head) = plain(&place.socket(), endpoint.method, &path, body);
        assert_eq!(status, 200, "{} {path}: {reply}", endpoint.method);
        assert!(reply.is_object(), "{} {path}", endpoint.method);
        assert!(head.contains("content-type: application/json"), "{head}");
        assert!(endpoint.sentence.ends_with('.'), "{}", endpoint.sentence);
        // The query's keys in the table are those that the answer knows.
        let (status, reply, _) = plain(
            &place.socket(),
            endpoint.method,
            &format!("{path}?nonsense=1"),
            body,
        );
        assert_eq!(status, 400, "{} {path}", endpoint.method);
        for key in endpoint.query {
            assert!(
                reply["error"]["help"].as_str().unwrap().contains(key.name),
                "{reply}"
            );
            let (_, reply, _) = plain(
                &place.socket(),
                endpoint.method,
                &format!("{path}?{}=x", key.name),
                body,
            );
            assert!(
                !reply["error"]["message"]
                    .as_str()
                    .unwrap_or_default()
                    .contains("unknown field"),
                "{reply}"
            );
        }
    }
}

#[test]
fn replies_narrow_down_to_what_was_asked_for() {
    let (_place, _router, _server, client) = running();
    let one = client.interfaces(Some("lan & co")).unwrap();
    assert_eq!(
        one.interfaces
            .iter()
            .map(|interface| interface.index)
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(client.hardware(Some("wan")).unwrap().ports.len(), 1);
    assert_eq!(client.rx_placement(Some("wan")).unwrap().queues.len(), 2);
    assert_eq!(client.bridge_domains(Some("bd2")).unwrap().bridges.len(), 1);
    assert_eq!(
        client
            .l2fib(Some("bd2"))
            .unwrap()
            .stations
            .iter()
            .filter(|it| it.bridge == "bd2")
            .count(),
        5
    );
    for unknown in [
        client.bridge_domains(Some("bd9")).unwrap_err(),
        client
            .l2fib(Some("bd9"))
            .map(|_| BridgeDomains::default())
            .unwrap_err(),
    ] {
        assert!(
            unknown.to_string().contains("there is no bridge domain"),
            "{unknown}"
        );
    }
    assert_eq!(client.bonds(Some("lan & co")).unwrap().bonds.len(), 1);
    assert_eq!(client.vxlan_tunnels(Some("wan")).unwrap().tunnels.len(), 1);
    assert_eq!(
        client
            .memif(Some("lan & co"))
            .unwrap()
            .ports
            .iter()
            .map(|port| port.role)
            .collect::<Vec<_>>(),
        [MemifRole::Slave]
    );
    assert_eq!(
        client.neighbors(Some("lan & co")).unwrap(),
        Neighbors::default()
    );
    let errors = client.errors(None, false).unwrap().errors;
    let sums: Vec<_> = errors
        .iter()
        .map(|error| (error.interface.as_deref(), error.count, error.worker))
        .collect();
    assert_eq!(sums, [(Some("lan & co"), 7, None), (Some("wan"), 5, None)]);
    assert_eq!(client.errors(Some("wan"), true).unwrap().errors.len(), 2);
}

#[test]
fn an_address_finds_its_longest_match_in_each_table() {
    let (_place, _router, _server, client) = running();
    let prefixes = |prefix, table| {
        let routes = client.routes(prefix, table).unwrap().routes;
        routes
            .iter()
            .map(|route| (route.table, route.prefix.to_string()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        prefixes(Some("10.1.2.3"), None),
        [(0, "10.1.0.0/16".to_owned()), (7, "10.0.0.0/8".to_owned())]
    );
    assert_eq!(
        prefixes(Some("10.1.2.3"), Some(7)),
        [(7, "10.0.0.0/8".to_owned())]
    );
    assert_eq!(
        prefixes(Some("10.0.0.0/8"), Some(0)),
        [(0, "10.0.0.0/8".to_owned())]
    );
    assert_eq!(
        prefixes(Some("192.0.2.1"), None),
        [(0, "0.0.0.0/0".to_owned())]
    );
    assert_eq!(prefixes(Some("2001:db8::1"), None), []);
    let refused = client
        .routes(Some("10.0.0.0/40"), None)
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "\"10.0.0.0/40\" is neither a prefix nor an address (a prefix is written as 192.0.2.0/24, an address as 192.0.2.7)"
    );
}

#[test]
fn a_name_that_does_not_exist_is_reported_with_those_that_do() {
    let (place, _router, _server, client) = running();
    for error in [
        client.interfaces(Some("vlan")).unwrap_err(),
        client.hardware(Some("vlan")).unwrap_err(),
        client.rx_placement(Some("vlan")).unwrap_err(),
        client.bonds(Some("vlan")).unwrap_err(),
        client.memif(Some("vlan")).unwrap_err(),
        client.errors(Some("vlan"), false).unwrap_err(),
        client.neighbors(Some("vlan")).unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            "no interface \"vlan\" (known: wan, lan & co)"
        );
    }
    let (status, reply, _) = plain(&place.socket(), "GET", "/v1/interfaces?name=vlan", "");
    assert_eq!(status, 404);
    assert_eq!(reply["error"]["code"], "not-found");
}

#[test]
fn traces_are_armed_within_bounds_and_cleared() {
    let (place, router, _server, client) = running();
    let wanted = TraceRequest {
        node: Some("ip4-input".to_owned()),
        interface: Some("wan".to_owned()),
        count: 10_000,
    };
    assert_eq!(client.trace_add(&wanted).unwrap(), wanted);
    let (status, reply, _) = plain(&place.socket(), "POST", "/v1/trace", "{}");
    assert_eq!((status, reply["count"].as_u64()), (200, Some(50)));
    assert_eq!(router.armed.lock().unwrap().len(), 2);
    for (body, sentence) in [
        (r#"{"count": 0}"#, "0 packets cannot be traced"),
        (r#"{"count": 10001}"#, "10001 packets cannot be traced"),
        (r#"{"count": -1}"#, "the body is not a trace request"),
        (r#"{"nodes": "x"}"#, "unknown field `nodes`"),
        (r#"{"node": "#, "the body is not a trace request"),
        ("", "the body is not a trace request"),
    ] {
        let (status, reply, _) = plain(&place.socket(), "POST", "/v1/trace", body);
        assert_eq!(
            (status, &reply["error"]["code"]),
            (400, &"bad-request".into()),
            "{body}"
        );
        assert!(
            reply["error"]["message"]
                .as_str()
                .unwrap()
                .contains(sentence),
            "{reply}"
        );
    }
    let (status, ..) = plain(
        &place.socket(),
        "POST",
        "/v1/trace",
        r#"{"interface": "vlan"}"#,
    );
    assert_eq!(status, 404);
    let unknown = client
        .trace_add(&TraceRequest {
            node: Some("ip9".to_owned()),
            interface: None,
            count: 1,
        })
        .unwrap_err();
    assert_eq!(unknown.to_string(), "no node \"ip9\" (known: ip4-input)");
    assert_eq!(router.armed.lock().unwrap().len(), 2);
    client.trace_clear().unwrap();
    assert!(router.armed.lock().unwrap().is_empty());
}

#[test]
fn each_clear_reaches_its_counters() {
    let (_place, router, _server, client) = running();
    for what in Clear::ALL {
        assert_eq!(client.clear(what).unwrap(), Cleared { cleared: what });
    }
    assert_eq!(*router.cleared.lock().unwrap(), Clear::ALL);
}

#[test]
fn wrong_paths_and_methods_have_the_shape_of_errors() {
    let (place, _router, _server, _client) = running();
    for path in [
        "/",
        "/v1",
        "/v2/interfaces",
        "/v1/clear/everything",
        "/v1/interfaces/",
        "/v1/%00",
    ] {
        let (status, reply, _) = plain(&place.socket(), "GET", path, "");
        assert_eq!(
            (status, &reply["error"]["code"]),
            (404, &"not-found".into()),
            "{path}"
        );
        assert_eq!(
            reply["error"]["message"],
            format!("there is nothing at {path}")
        );
        assert!(
            reply["error"]["help"]
                .as_str()
                .unwrap()
                .contains("/v1/interfaces")
        );
    }
    for (method, path, allowed) in [
        ("DELETE", "/v1/interfaces", "GET"),
        ("GET", "/v1/clear/errors", "POST"),
        ("PUT", "/v1/trace", "GET, POST, DELETE"),
    ] {
        let (status, reply, head) = plain(&place.socket(), method, path, "");
        assert_eq!(
            (status, &reply["error"]["code"]),
            (405, &"method-not-allowed".into()),
            "{path}"
        );
        assert_eq!(
            reply["error"]["message"],
            format!("{method} is not a method of {path}")
        );
        assert_eq!(reply["error"]["help"], format!("methods: {allowed}"));
        let allow: Vec<_> = head
            .lines()
            .filter(|line| line.starts_with("allow:"))
            .collect();
        assert_eq!(allow, [format!("allow: {}", allowed.to_ascii_lowercase())]);
    }
}

#[test]
fn totals_balance() {
    let (_place, _router, _server, client) = running();
    let totals = client.totals().unwrap();
    assert_eq!(totals.dropped(), 3);
    assert_eq!(totals.unaccounted(), 0);
    assert_eq!(
        Totals {
            packets_in: u64::MAX,
            originated: u64::MAX,
            ..Totals::default()
        }
        .unaccounted(),
        2 * i128::from(u64::MAX)
    );
}
