//! The stream of events: what is published arrives in order, what is lost is reported, and nobody who
//! listens badly holds anything.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Mood, Place, TestRouter, plain, with_tcp};
use weir_api::*;

fn running(mood: Mood, limits: Limits) -> (Place, Arc<TestRouter>, ServerHandle, Client) {
    let place = Place::new();
    let router = Arc::new(TestRouter::new(mood));
    let server = Server::start_with(
        &place.socket(),
        Arc::clone(&router) as Arc<dyn Router>,
        limits,
    )
    .unwrap();
    let client = Client::new(place.socket());
    (place, router, server, client)
}

fn link(interface: &str, speed: u64) -> Event {
    let (time, interface) = (Timestamp::from_unix_ms(speed), interface.to_owned());
    Event::Link(LinkEvent {
        time,
        interface,
        index: 1,
        link: UpDown::Up,
        speed,
    })
}

fn log(message: String) -> Event {
    Event::Log(LogEvent {
        time: Timestamp::from_unix_ms(1),
        level: EventLevel::Info,
        target: "weir".to_owned(),
        message,
    })
}

fn of(topics: &[Topic]) -> EventRequest {
    EventRequest {
        topics: topics.to_vec(),
        ..EventRequest::default()
    }
}

/// Waits for what another thread does; a test fails at the timeout.
fn until(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_published_arrives_in_order_and_by_topic() {
    let (_place, router, _server, client) = running(Mood::Good, Limits::default());
    assert!(!router.events.has_subscribers(Topic::Link));
    router.events.publish(link("wan", 1)); // nobody listens yet
    let mut links = client.events(&of(&[Topic::Link])).unwrap();
    let mut both = client.events(&of(&[Topic::Link, Topic::Log])).unwrap();
    let mut one = client
        .events(&EventRequest {
            interface: Some("wan".to_owned()),
            ..of(&[Topic::Link])
        })
        .unwrap();
    let quoted = log("a \"quoted\"\r\nline\n\ndata: not one".to_owned());
    for event in [
        link("wan", 2),
        quoted.clone(),
        link("lan & co", 3),
        link("wan", 4),
    ] {
        router.events.publish(event);
    }
    let mut take = |count| {
        (0..count)
            .map(|_| links.next().unwrap().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        take(3),
        [link("wan", 2), link("lan & co", 3), link("wan", 4)]
    );
    let mut taken: Vec<_> = (0..4).map(|_| both.next().unwrap().unwrap()).collect();
    // Topics have rings of their own: the order between them is not promised.
    taken.retain(|event| *event != quoted);
    assert_eq!(taken, [link("wan", 2), link("lan & co", 3), link("wan", 4)]);
    assert_eq!(
        [one.next().unwrap().unwrap(), one.next().unwrap().unwrap()],
        [link("wan", 2), link("wan", 4)]
    );
}

#[test]
fn counters_come_by_the_clock() {
    let (_place, router, _server, client) = running(Mood::Good, Limits::default());
    let request = EventRequest {
        interval_ms: Some(100),
        interface: Some("lan & co".to_owned()),
        ..of(&[Topic::Counters])
    };
    let began = Instant::now();
    let events: Vec<_> = client
        .events(&request)
        .unwrap()
        .take(3)
        .map(Result::unwrap)
        .collect();
    // The first at once, each other after the interval.
    assert!(
        began.elapsed() >= Duration::from_millis(200),
        "{:?}",
        began.elapsed()
    );
    let expected = &router.interfaces().unwrap().interfaces[1];
    for event in events {
        let Event::Counters(counters) = event else {
            panic!("{event:?}")
        };
        let [it] = counters.interfaces.as_slice() else {
            panic!("{counters:?}")
        };
        assert_eq!(
            (&it.name, it.index, it.rx, it.tx, it.drops),
            (&expected.name, 2, expected.rx, expected.tx, 2)
        );
    }
}

#[test]
fn a_slow_client_loses_events_and_is_reported_how_many() {
    let limits = Limits {
        write_time: Duration::from_secs(60),
        ..Limits::default()
    };
    let (place, router, _server, _client) = running(Mood::Good, limits);
    let mut slow = UnixStream::connect(place.socket()).unwrap();
    slow.write_all(
        b"GET /v1/events?topics=log HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n",
    )
    .unwrap();
    until(|| router.events.has_subscribers(Topic::Log));
    // More than socket buffers and the ring (16 events) hold: the publisher does not wait for it.
    let published = 200;
    let began = Instant::now();
    for number in 0..published {
        router
            .events
            .publish(log(format!("{number} {}", "x".repeat(64 << 10))));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    // All that is there comes at once; then the stream is silent.
    slow.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut text = Vec::new();
    assert!(slow.read_to_end(&mut text).is_err(), "the stream goes on");
    let text = String::from_utf8_lossy(&text).into_owned();
    let arrived = text.matches("event: log\n").count();
    let lost: usize = text
        .lines()
        .filter(|line| line.contains("\"event\":\"lost\""))
        .map(count_of)
        .sum();
    assert!(lost > 0 && arrived > 16, "{arrived} arrived, {lost} lost");
    assert_eq!(arrived + lost, published);
    assert!(
        text.contains(&format!("\"{} x", published - 1)),
        "the last one arrived"
    );
}

fn count_of(line: &str) -> usize {
    let value: serde_json::Value =
        serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
    value["count"].as_u64().unwrap() as usize
}

#[test]
fn a_client_that_reads_nothing_is_let_go() {
    let limits = Limits {
        write_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let place = Place::new();
    let router = Arc::new(TestRouter::new(Mood::Good));
    let server = Server::serve(
        &ServerSettings {
            limits,
            ..with_tcp(&place)
        },
        Arc::clone(&router) as Arc<dyn Router>,
    )
    .unwrap();
    let mut over_unix = UnixStream::connect(place.socket()).unwrap();
    over_unix
        .write_all(b"GET /v1/events?topics=log HTTP/1.1\r\nHost: weir\r\n\r\n")
        .unwrap();
    until(|| router.events.has_subscribers(Topic::Log));
    let mut over_tcp = TcpStream::connect(server.tcp_addresses()[0]).unwrap();
    over_tcp.write_all(b"GET /v1/events?topics=link HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer look\r\n\r\n").unwrap();
    until(|| router.events.has_subscribers(Topic::Link));
    until(|| {
        router.events.publish(log("x".repeat(64 << 10)));
        router.events.publish(link(&"x".repeat(64 << 10), 1));
        !router.events.has_subscribers(Topic::Log) && !router.events.has_subscribers(Topic::Link)
    });
}

#[test]
fn a_client_that_is_gone_is_noticed() {
    let limits = Limits {
        silence: Duration::from_millis(100),
        ..Limits::default()
    };
    let (_place, router, _server, client) = running(Mood::Good, limits);
    let events = client.events(&of(&[Topic::Link])).unwrap();
    assert!(router.events.has_subscribers(Topic::Link));
    drop(events);
    until(|| !router.events.has_subscribers(Topic::Link));
}

#[test]
fn there_are_only_so_many_streams() {
    let limits = Limits {
        streams: 2,
        silence: Duration::from_millis(100),
        ..Limits::default()
    };
    let (_place, router, _server, client) = running(Mood::Good, limits);
    let mut held: Vec<_> = (0..2)
        .map(|_| client.events(&of(&[Topic::Link])).unwrap())
        .collect();
    let error = client.events(&of(&[Topic::Link])).unwrap_err();
    assert_eq!(error.refusal().unwrap().code, ErrorCode::Unavailable);
    assert_eq!(
        error.to_string(),
        "there are too many streams of events (end one of them first)"
    );
    // Others are answered all the while.
    client.version().unwrap();
    drop(held.pop());
    until(|| client.events(&of(&[Topic::Link])).is_ok());
    router.events.publish(link("wan", 9));
    assert_eq!(held[0].next().unwrap().unwrap(), link("wan", 9));
}

#[test]
fn streams_end_with_the_server() {
    let limits = Limits {
        stop_time: Duration::from_secs(30),
        ..Limits::default()
    };
    let (_place, router, server, client) = running(Mood::Good, limits);
    let mut events = client.events(&of(&[Topic::Link])).unwrap();
    router.events.publish(link("wan", 1));
    assert_eq!(events.next().unwrap().unwrap(), link("wan", 1));
    let began = Instant::now();
    server.stop();
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    assert!(events.next().is_none());
    assert!(events.next().is_none());
}

#[test]
fn a_router_that_is_too_busy_for_counters_is_reported_as_lost() {
    // The one thread for answers is held by a slow question.
    let limits = Limits {
        answers: 1,
        answer_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let (place, _router, _server, client) = running(Mood::Slow(1500), limits);
    let mut events = client
        .events(&EventRequest {
            interval_ms: Some(100),
            ..of(&[Topic::Counters])
        })
        .unwrap();
    assert!(matches!(events.next(), Some(Ok(Event::Counters(_)))));
    let slow = std::thread::spawn(move || plain(&place.socket(), "GET", "/v1/runtime", ""));
    let lost = Event::Lost(LostEvent {
        topic: Topic::Counters,
        count: 1,
    });
    assert!(events.by_ref().take(30).any(|event| event.unwrap() == lost));
    assert_eq!(slow.join().unwrap().0, 503);
    assert!(
        events
            .take(30)
            .any(|event| matches!(event, Ok(Event::Counters(_))))
    );
}

#[test]
fn what_cannot_be_subscribed_to_is_refused() {
    let (place, router, _server, client) = running(Mood::Good, Limits::default());
    for (query, sentence) in [
        ("topics=weather", "no topic \"weather\""),
        ("topics=", "no topic \"\""),
        ("topics=log,,link", "no topic \"\""),
        ("interval_ms=99", "interval_ms cannot be 99"),
        ("interval_ms=3600001", "interval_ms cannot be 3600001"),
        ("interval_ms=x", "invalid digit"),
        ("topic=log", "unknown field `topic`"),
    ] {
        let (status, reply, _) = plain(&place.socket(), "GET", &format!("/v1/events?{query}"), "");
        assert_eq!(status, 400, "{query}");
        assert!(
            reply["error"]["message"]
                .as_str()
                .unwrap()
                .contains(sentence),
            "{reply}"
        );
    }
    let unknown = client
        .events(&EventRequest {
            interface: Some("vlan".to_owned()),
            ..EventRequest::default()
        })
        .unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "no interface \"vlan\" (known: wan, lan & co)"
    );
    assert!(!router.events.has_subscribers(Topic::Link));
}
