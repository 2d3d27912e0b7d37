//! Clients that stall, lie or crowd; routers that panic or hang; sockets of the living and the dead.

mod common;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Mood, Place, TestRouter, plain, raw};
use weir_api::*;

fn quick() -> Limits {
    Limits {
        head_time: Duration::from_millis(300),
        body_time: Duration::from_millis(300),
        answer_time: Duration::from_millis(1000),
        write_time: Duration::from_millis(300),
        stop_time: Duration::from_millis(300),
        ..Limits::default()
    }
}

fn start(place: &Place, mood: Mood, limits: Limits) -> ServerHandle {
    Server::start_with(&place.socket(), Arc::new(TestRouter::new(mood)), limits).unwrap()
}

/// Whether the server ends the connection within some seconds.
fn is_closed(stream: &mut UnixStream) -> bool {
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let mut sink = Vec::new();
    match stream.read_to_end(&mut sink) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn a_crowd_of_stalled_clients_is_bounded_and_gets_out_of_the_way() {
    let place = Place::new();
    let _server = start(&place, Mood::Good, quick());
    let beginnings: [&[u8]; 4] = [
        b"",
        b"GET /v1/ver",
        b"GET /v1/version HTTP/1.1\r\nHost:",
        b"POST /v1/trace HTTP/1.1\r\nContent-Length: 9\r\n\r\n{",
    ];
    let mut stalled: Vec<_> = (0..200)
        .map(|number: usize| {
            let mut stream = UnixStream::connect(place.socket()).unwrap();
            stream
                .write_all(beginnings[number % beginnings.len()])
                .unwrap();
            stream
        })
        .collect();
    let began = Instant::now();
    Client::new(place.socket()).version().unwrap();
    // Four lots of at most 64, each 0.3 s (0.6 s where head and body stall), and room for a slow machine.
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    assert!(stalled.iter_mut().all(is_closed));
}

#[test]
fn no_more_connections_than_the_bound_are_served_at_once() {
    let place = Place::new();
    let limits = Limits {
        connections: 2,
        head_time: Duration::from_secs(60),
        ..quick()
    };
    let _server = start(&place, Mood::Good, limits);
    let held: Vec<_> = (0..2)
        .map(|_| UnixStream::connect(place.socket()).unwrap())
        .collect();
    std::thread::sleep(Duration::from_millis(100));
    let mut third = UnixStream::connect(place.socket()).unwrap();
    third
        .write_all(b"GET /v1/version HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n")
        .unwrap();
    third
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let mut byte = [0; 1];
    assert_eq!(
        third.read(&mut byte).unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
    drop(held);
    third
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    assert_eq!(third.read(&mut byte).unwrap(), 1);
}

#[test]
fn a_thousand_clients_at_once_are_all_answered() {
    let place = Place::new();
    let _server = start(&place, Mood::Good, Limits::default());
    let streams: Vec<_> = (0..1000)
        .map(|_| {
            let mut stream = UnixStream::connect(place.socket()).unwrap();
            stream
                .write_all(b"GET /v1/totals HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    for mut stream in streams {
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
    }
}

#[test]
fn a_client_that_does_not_read_is_let_go() {
    let place = Place::new();
    let limits = Limits {
        connections: 1,
        write_time: Duration::from_secs(1),
        ..Limits::default()
    };
    let _server = start(&place, Mood::Talks(4 << 20), limits);
    let mut deaf = UnixStream::connect(place.socket()).unwrap();
    deaf.write_all(b"GET /v1/config HTTP/1.1\r\nHost: weir\r\n\r\n")
        .unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    Client::new(place.socket()).version().unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    // One that reads gets all of it.
    assert_eq!(
        Client::new(place.socket()).config().unwrap()["padding"]
            .as_str()
            .unwrap()
            .len(),
        4 << 20
    );
}

#[test]
fn a_body_too_large_is_refused() {
    let place = Place::new();
    let _server = start(&place, Mood::Good, Limits::default());
    let fits = format!("{{{}}}", " ".repeat((1 << 20) - 2));
    assert_eq!(plain(&place.socket(), "POST", "/v1/trace", &fits).0, 200);
    let (status, reply, _) = plain(&place.socket(), "POST", "/v1/trace", &format!("{fits} "));
    assert_eq!(
        (status, &reply["error"]["code"]),
        (413, &"too-large".into())
    );
    assert_eq!(
        reply["error"]["message"],
        "the request's body is larger than 1048576 bytes"
    );
    // Without a length said, too.
    let chunks = "10000\r\n".to_owned() + &"x".repeat(0x10000) + "\r\n";
    let request = "POST /v1/trace HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n"
        .to_owned()
        + &chunks.repeat(17);
    let reply = raw(&place.socket(), request.as_bytes());
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
}

#[test]
fn a_body_that_does_not_come_is_reported() {
    let place = Place::new();
    let _server = start(&place, Mood::Good, quick());
    let reply = raw(
        &place.socket(),
        b"POST /v1/trace HTTP/1.1\r\nHost: weir\r\nContent-Length: 100\r\n\r\n{",
    );
    assert!(reply.starts_with("HTTP/1.1 408 "), "{reply}");
    assert!(reply.contains(r#""code":"request-timeout""#), "{reply}");
}

#[test]
fn what_is_no_http_does_no_harm() {
    let place = Place::new();
    let _server = start(&place, Mood::Good, quick());
    let long = b"GET /"
        .iter()
        .copied()
        .chain(std::iter::repeat_n(b'a', 1 << 20))
        .collect::<Vec<_>>();
    let headers = "GET / HTTP/1.1\r\n".to_owned() + &"X-Y: z\r\n".repeat(100_000);
    for bytes in [
        &b"\0\xff\r\n\r\n"[..],
        b"BREW /v1/version\r\n\r\n",
        &long,
        headers.as_bytes(),
    ] {
        let reply = raw(&place.socket(), bytes);
        assert!(!reply.starts_with("HTTP/1.1 2"), "{reply}");
    }
    Client::new(place.socket()).version().unwrap();
}

#[test]
fn a_router_that_panics_is_reported_as_a_fault() {
    let place = Place::new();
    let _server = start(&place, Mood::Panics, quick());
    let (status, reply, _) = plain(&place.socket(), "GET", "/v1/runtime", "");
    assert_eq!((status, &reply["error"]["code"]), (500, &"internal".into()));
    assert_eq!(
        reply["error"]["message"],
        "GET /v1/runtime failed inside the router"
    );
    Client::new(place.socket()).version().unwrap();
}

#[test]
fn a_router_that_hangs_holds_neither_others_nor_the_end() {
    let place = Place::new();
    let server = start(&place, Mood::Slow(4000), quick());
    let (status, reply, _) = plain(&place.socket(), "GET", "/v1/runtime", "");
    assert_eq!(
        (status, &reply["error"]["code"]),
        (503, &"unavailable".into())
    );
    Client::new(place.socket()).version().unwrap();
    let began = Instant::now();
    server.stop();
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn stopping_closes_idle_connections_and_removes_the_socket() {
    let place = Place::new();
    let server = start(
        &place,
        Mood::Good,
        Limits {
            stop_time: Duration::from_secs(30),
            ..Limits::default()
        },
    );
    let mut idle = UnixStream::connect(place.socket()).unwrap();
    idle.write_all(b"GET /v1/version HTTP/1.1\r\nHost: weir\r\n\r\n")
        .unwrap();
    let mut byte = [0; 1];
    idle.read_exact(&mut byte).unwrap();
    let began = Instant::now();
    server.stop();
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    assert!(!place.socket().exists());
    assert_eq!(
        std::fs::read_dir(&place.0).unwrap().count(),
        0,
        "nothing else is left behind"
    );
    assert!(is_closed(&mut idle));
}

#[test]
fn a_second_router_on_one_socket_is_refused() {
    let place = Place::new();
    let server = start(&place, Mood::Good, Limits::default());
    let error = Server::start(&place.socket(), Arc::new(TestRouter::new(Mood::Good)))
        .unwrap_err()
        .to_string();
    let socket = place.socket();
    let expected = format!(
        "another weir already runs on {} (stop it, or choose another socket with --socket)",
        socket.display()
    );
    assert_eq!(error, expected);
    Client::new(place.socket()).version().unwrap();
    server.stop();
    start(&place, Mood::Good, Limits::default());
}

#[test]
fn the_socket_of_a_dead_router_is_replaced() {
    let place = Place::new();
    drop(UnixListener::bind(place.socket()).unwrap());
    assert!(place.socket().exists());
    let _server = start(&place, Mood::Good, Limits::default());
    Client::new(place.socket()).version().unwrap();
}

#[test]
fn what_is_no_socket_is_left_alone() {
    let place = Place::new();
    std::fs::write(place.socket(), "precious").unwrap();
    let error = Server::start(&place.socket(), Arc::new(TestRouter::new(Mood::Good)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("exists and is no socket"), "{error}");
    assert_eq!(std::fs::read_to_string(place.socket()).unwrap(), "precious");
}

#[test]
fn a_socket_that_somebody_else_put_there_is_not_removed() {
    let place = Place::new();
    let server = start(&place, Mood::Good, Limits::default());
    std::fs::remove_file(place.socket()).unwrap();
    let _other = UnixListener::bind(place.socket()).unwrap();
    server.stop();
    assert!(place.socket().exists());
}

#[test]
fn of_many_routers_that_start_at_once_one_wins() {
    let place = Place::new();
    drop(UnixListener::bind(place.socket()).unwrap());
    let starts: Vec<_> = (0..8)
        .map(|_| {
            let socket = place.socket();
            std::thread::spawn(move || {
                Server::start(&socket, Arc::new(TestRouter::new(Mood::Good)))
            })
        })
        .collect();
    let outcomes: Vec<_> = starts
        .into_iter()
        .map(|start| start.join().unwrap())
        .collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    Client::new(place.socket()).version().unwrap();
}

#[test]
fn owner_and_group_may_talk_and_missing_directories_are_made() {
    let place = Place::new();
    let socket = place.0.join("deeper/down/api.sock");
    let _server = Server::start(&socket, Arc::new(TestRouter::new(Mood::Good))).unwrap();
    assert_eq!(
        std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777,
        0o660
    );
    let long = place.0.join("x".repeat(120));
    let error = Server::start(&long, Arc::new(TestRouter::new(Mood::Good)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("longer than 107 bytes"), "{error}");
    let error = Server::start(
        "/proc/weir/api.sock".as_ref(),
        Arc::new(TestRouter::new(Mood::Good)),
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.starts_with("cannot use the directory /proc/weir for the API's socket"),
        "{error}"
    );
}

#[test]
fn the_client_says_what_to_do_when_nobody_answers() {
    let place = Place::new();
    let expected = format!(
        "no weir answers on {} (is it running? start it with `weir run -c FILE`, or say --socket)",
        place.socket().display()
    );
    assert_eq!(
        Client::new(place.socket())
            .version()
            .unwrap_err()
            .to_string(),
        expected
    );
    drop(UnixListener::bind(place.socket()).unwrap());
    assert_eq!(
        Client::new(place.socket())
            .version()
            .unwrap_err()
            .to_string(),
        expected
    );
}

#[test]
fn the_client_says_when_something_else_answers() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let replies = [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}",
        "SSH-2.0-x\r\n",
    ];
    let other = std::thread::spawn(move || {
        for reply in replies {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            stream.write_all(reply.as_bytes()).unwrap();
        }
    });
    let client = Client::new(place.socket());
    let said = |error: ClientError| error.to_string();
    assert!(said(client.version().unwrap_err()).contains("missing field `version`"));
    assert!(said(client.version().unwrap_err()).contains("status 500"));
    assert!(said(client.version().unwrap_err()).starts_with("cannot talk to the weir on"));
    other.join().unwrap();
}
