//! Long lists: pages neither repeat nor skip, and are bounded.

mod common;

use std::sync::Arc;

use common::{Mood, Place, TestRouter, plain};
use weir_api::*;

fn running(mood: Mood) -> (Place, Arc<TestRouter>, ServerHandle, Client) {
    let place = Place::new();
    let router = Arc::new(TestRouter::new(mood));
    let server = Server::start(&place.socket(), Arc::clone(&router) as Arc<dyn Router>).unwrap();
    let client = Client::new(place.socket());
    (place, router, server, client)
}

/// Follows `next` to the end: how many entries each page has, and the keys of all.
fn walk(
    place: &Place,
    path: &str,
    list: &str,
    limit: Option<u32>,
    key: impl Fn(&serde_json::Value) -> String,
) -> (Vec<usize>, Vec<String>) {
    let (mut counts, mut keys, mut after) = (Vec::new(), Vec::new(), String::new());
    loop {
        let limit = limit
            .map(|limit| format!("&limit={limit}"))
            .unwrap_or_default();
        let (status, reply, _) = plain(
            &place.socket(),
            "GET",
            &format!("{path}?{limit}{after}").replace("?&", "?"),
            "",
        );
        assert_eq!(status, 200, "{reply}");
        let entries = reply[list].as_array().unwrap();
        counts.push(entries.len());
        keys.extend(entries.iter().map(&key));
        match reply.get("next").and_then(|next| next.as_str()) {
            Some(next) => {
                after = format!(
                    "&after={}",
                    next.replace('%', "%25")
                        .replace(',', "%2C")
                        .replace('/', "%2F")
                )
            }
            None => return (counts, keys),
        }
    }
}

#[test]
fn pages_are_the_whole_list_in_order() {
    let (place, _router, _server, client) = running(Mood::Large(2500));
    let text = |name: &'static str| {
        move |entry: &serde_json::Value| entry[name].as_str().unwrap().to_owned()
    };
    for (limit, counts) in [
        (None, vec![1000, 1000, 500]),
        (Some(1250), vec![1250, 1250]),
        (Some(10_000), vec![2500]),
    ] {
        let (pages, names) = walk(&place, "/v1/interfaces", "interfaces", limit, text("name"));
        assert_eq!(pages, counts);
        assert_eq!(
            names,
            (1..=2500)
                .map(|index| format!("i{index}"))
                .collect::<Vec<_>>()
        );
        let (pages, addresses) = walk(&place, "/v1/neighbors", "neighbors", limit, text("address"));
        assert_eq!(pages, counts);
        assert_eq!(
            addresses,
            (0..2500)
                .map(|number| std::net::Ipv4Addr::from(number).to_string())
                .collect::<Vec<_>>()
        );
        let (pages, prefixes) = walk(&place, "/v1/routes", "routes", limit, text("prefix"));
        assert_eq!(pages, counts);
        assert_eq!(
            prefixes,
            (0..2500)
                .map(|number| format!("10.{}.{}.0/24", number / 256, number % 256))
                .collect::<Vec<_>>()
        );
    }
    assert_eq!(client.interfaces(None).unwrap().interfaces.len(), 2500);
    let all = client.neighbors(None).unwrap();
    assert_eq!(
        (all.neighbors.len(), all.refused, all.evicted),
        (2500, 1, 7)
    );
    assert_eq!(client.routes(None, None).unwrap().routes.len(), 2500);
}

#[test]
fn the_client_reads_lists_longer_than_a_page() {
    let (_place, _router, _server, client) = running(Mood::Large(25_000));
    let routes = client.routes(None, None).unwrap().routes;
    assert_eq!(routes.len(), 25_000);
    assert!(
        routes
            .windows(2)
            .all(|pair| RouteKey::from(&pair[0]) < RouteKey::from(&pair[1]))
    );
    assert_eq!(client.routes(None, Some(1)).unwrap().routes.len(), 5000);
    let mut pages = 0;
    client
        .each_routes(None, None, None, |part| {
            pages += 1;
            assert!(part.routes.len() <= 10_000);
        })
        .unwrap();
    assert_eq!(pages, 3);
    // The whole list is not in one reply, however it is asked for.
    assert_eq!(
        client.routes(Some("10.1.2.3"), None).unwrap().routes.len(),
        2
    );
}

#[test]
fn a_place_that_is_none_is_refused() {
    let (place, _router, _server, _client) = running(Mood::Good);
    for target in [
        "/v1/routes?after=x",
        "/v1/routes?after=0,192.0.2.0%2F24",
        "/v1/routes?limit=0",
        "/v1/routes?limit=10001",
        "/v1/routes?limit=-1",
        "/v1/neighbors?after=wan",
        "/v1/interfaces?after=wan",
        "/v1/interfaces?limit=99999999999",
    ] {
        let (status, reply, _) = plain(&place.socket(), "GET", target, "");
        assert_eq!(
            (status, &reply["error"]["code"]),
            (400, &"bad-request".into()),
            "{target}"
        );
    }
    // A place where nothing stands any more is still a place.
    let (status, reply, _) = plain(
        &place.socket(),
        "GET",
        "/v1/routes?after=0,10.0.0.0%2F9,static",
        "",
    );
    assert_eq!(status, 200);
    let prefixes: Vec<_> = reply["routes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|route| route["prefix"].as_str().unwrap())
        .collect();
    assert_eq!(prefixes, ["10.1.0.0/16", "10.0.0.0/8"]);
}
