//! Captures over the API: the stream comes whole, and what is out of bounds is refused by name.

mod common;

use std::sync::Arc;

use common::{Mood, Place, TestRouter, capture, plain};
use weir_api::{CaptureRequest, Client, Server, ServerHandle};

fn running() -> (Place, ServerHandle, Client) {
    let place = Place::new();
    let server = Server::start(&place.socket(), Arc::new(TestRouter::new(Mood::Good))).unwrap();
    let client = Client::new(place.socket());
    (place, server, client)
}

fn of(packets: u64) -> CaptureRequest {
    CaptureRequest {
        rx: true,
        packets: Some(packets),
        ..CaptureRequest::default()
    }
}

#[test]
fn a_capture_comes_whole_and_in_order() {
    let (_place, _server, client) = running();
    let pieces = client.capture(&of(100)).unwrap();
    assert_eq!(pieces.number, 7);
    let all: Vec<u8> = pieces.flat_map(Result::unwrap).collect();
    let expected: Vec<u8> = (0..100_u8).flat_map(|number| [number; 1000]).collect();
    assert_eq!(all, expected);
}

#[test]
fn captures_are_listed_and_ended() {
    let (_place, _server, client) = running();
    assert_eq!(
        (
            client.captures().unwrap().captures,
            client.captures().unwrap().most
        ),
        (vec![capture()], 8)
    );
    assert_eq!(client.capture_end(7).unwrap(), capture());
    assert!(
        client
            .capture_end(8)
            .unwrap_err()
            .to_string()
            .contains("no capture 8")
    );
}

#[test]
fn a_server_that_stops_asks_captures_to_end() {
    let (_place, server, client) = running();
    let mut pieces = client.capture(&of(99)).unwrap();
    let first = pieces.next().unwrap().unwrap();
    assert!(!first.is_empty());
    drop(server);
    let rest: usize = pieces.map(|piece| piece.unwrap().len()).sum();
    assert_eq!(
        first.len() + rest,
        99_000,
        "the stream ends as a stream does, with all that was captured"
    );
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    let (place, _server, _client) = running();
    for (body, words) in [
        ("{}", "at least one of `rx`, `tx` and `drop`"),
        (r#"{"rx": true, "reasons": ["no-route"]}"#, "those of drops"),
        (r#"{"rx": true, "packets": 0}"#, "a capture of nothing"),
        (r#"{"rx": true, "milliseconds": 0}"#, "a capture of nothing"),
        (r#"{"rx": true, "bytes": 4095}"#, "no room"),
        (
            r#"{"rx": true, "snap_bytes": 13}"#,
            "`snap_bytes` is out of bounds",
        ),
        (
            r#"{"rx": true, "snap_bytes": 262145}"#,
            "`snap_bytes` is out of bounds",
        ),
        (r#"{"rx": true, "packets": -1}"#, "not a capture"),
        (r#"{"rx": 1}"#, "not a capture"),
        (r#"{"rx": true, "file": "/etc/passwd"}"#, "not a capture"),
        ("[true]", "it is a list"),
    ] {
        let (status, reply, _) = plain(&place.socket(), "POST", "/v1/pcap", body);
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(
            status == 400 && message.contains(words),
            "{body}: {status} {message}"
        );
    }
    let (status, reply, _) = plain(
        &place.socket(),
        "POST",
        "/v1/pcap",
        r#"{"rx": true, "interface": "vlan"}"#,
    );
    assert!(
        status == 404 && reply["error"]["help"].as_str().unwrap().contains("wan"),
        "{reply}"
    );
    for number in ["x", "-1", "1.5", "18446744073709551616"] {
        let (status, ..) = plain(&place.socket(), "DELETE", &format!("/v1/pcap/{number}"), "");
        assert_eq!(status, 400, "{number}");
    }
}
