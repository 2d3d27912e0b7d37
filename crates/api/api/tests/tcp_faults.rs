//! Clients over TCP that stall, lie or crowd, with TLS and without: bounded, and the Unix socket
//! does not notice.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Mood, Place, TestRouter, plain_tcp, with_tcp};
use weir_api::*;

fn quick() -> Limits {
    let third = Duration::from_millis(300);
    Limits {
        head_time: third,
        body_time: third,
        write_time: third,
        stop_time: third,
        ..Limits::default()
    }
}

/// A server with plain TCP, and TLS on a second listener.
fn start(place: &Place, mood: Mood, limits: Limits) -> (ServerHandle, SocketAddr, SocketAddr) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let file = |name: &str, text: String| {
        let path = place.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (certificate, key) = (
        file("router.pem", certificate.pem()),
        file("router.key", key.serialize_pem()),
    );
    let tls = Tls {
        certificate,
        key,
        client_ca: None,
        client_role: Role::ReadOnly,
    };
    let mut settings = ServerSettings {
        limits,
        ..with_tcp(place)
    };
    settings.listeners.push(TcpListen {
        address: "127.0.0.1:0".parse().unwrap(),
        tls: Some(tls),
    });
    let server = Server::serve(&settings, Arc::new(TestRouter::new(mood))).unwrap();
    let (plain, tls) = (server.tcp_addresses()[0], server.tcp_addresses()[1]);
    (server, plain, tls)
}

fn is_closed(stream: &mut TcpStream) -> bool {
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut sink = Vec::new();
    match stream.read_to_end(&mut sink) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

const ASK: &[u8] = b"GET /v1/totals HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nAuthorization: Bearer look\r\n\r\n";

#[test]
fn a_thousand_clients_at_once_are_all_answered() {
    let place = Place::new();
    let (_server, plain, _) = start(&place, Mood::Good, Limits::default());
    let streams: Vec<_> = (0..1000)
        .map(|_| {
            let mut stream = TcpStream::connect(plain).unwrap();
            stream.write_all(ASK).unwrap();
            stream
        })
        .collect();
    for mut stream in streams {
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
    }
}

#[test]
fn a_crowd_of_stalled_clients_gets_out_of_the_way_and_does_not_shut_out_the_socket() {
    let place = Place::new();
    let (_server, plain, tls) = start(&place, Mood::Good, quick());
    let half = b"POST /v1/trace HTTP/1.1\r\nAuthorization: Bearer do\r\nContent-Length: 9\r\n\r\n{";
    // The beginning of a TLS record that says 512 bytes (RFC 8446 5.1).
    let beginnings: [&[u8]; 5] = [
        b"",
        b"GET /v1/ver",
        b"GET /v1/version HTTP/1.1\r\nHost:",
        half,
        b"\x16\x03\x01\x02\x00\x01",
    ];
    let mut stalled: Vec<_> = (0..400)
        .map(|number: usize| {
            let mut stream =
                TcpStream::connect(if number.is_multiple_of(2) { plain } else { tls }).unwrap();
            let _ = stream.write_all(beginnings[number % beginnings.len()]);
            stream
        })
        .collect();
    let began = Instant::now();
    Client::new(place.socket()).version().unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "the Unix socket waited {:?}",
        began.elapsed()
    );
    let (status, ..) = plain_tcp(plain, Some("look"), "GET", "/v1/version", "");
    assert_eq!(status, 200);
    let ca = place.0.join("router.pem");
    Client::tls(&format!("localhost:{}", tls.port()), &ca, Some("look"))
        .unwrap()
        .version()
        .unwrap();
    assert!(stalled.iter_mut().all(is_closed));
}

#[test]
fn strangers_do_not_hold_a_connection() {
    let place = Place::new();
    let (_server, plain, _) = start(
        &place,
        Mood::Good,
        Limits {
            connections: 1,
            ..Limits::default()
        },
    );
    let began = Instant::now();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(plain).unwrap();
        // It would like to keep the connection, and to send much.
        stream
            .write_all(
                b"POST /v1/config/apply HTTP/1.1\r\nHost: weir\r\nContent-Length: 30000000\r\n\r\n",
            )
            .unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let mut reply = String::new();
        let _ = stream.read_to_string(&mut reply);
        assert!(reply.starts_with("HTTP/1.1 401 "), "{reply}");
    }
    // Each of them could have stayed for 5 s.
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_client_that_does_not_read_is_let_go() {
    let place = Place::new();
    let limits = Limits {
        connections: 1,
        write_time: Duration::from_secs(1),
        ..Limits::default()
    };
    let (_server, plain, _) = start(&place, Mood::Talks(32 << 20), limits);
    let mut deaf = TcpStream::connect(plain).unwrap();
    deaf.write_all(b"GET /v1/config HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer look\r\n\r\n")
        .unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    assert_eq!(
        plain_tcp(plain, Some("look"), "GET", "/v1/version", "").0,
        200
    );
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn what_is_no_tls_does_no_harm() {
    let place = Place::new();
    let (_server, _, tls) = start(&place, Mood::Good, quick());
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\0\xff\r\n\r\n",
        &[0x16; 1 << 16],
        b"\x16\x03\x01\xff\xff",
    ] {
        let mut stream = TcpStream::connect(tls).unwrap();
        let _ = stream.write_all(bytes);
        assert!(is_closed(&mut stream));
    }
    let ca = place.0.join("router.pem");
    Client::tls(&format!("localhost:{}", tls.port()), &ca, Some("look"))
        .unwrap()
        .version()
        .unwrap();
}

#[test]
fn stopping_closes_idle_connections() {
    let place = Place::new();
    let limits = Limits {
        stop_time: Duration::from_secs(30),
        ..Limits::default()
    };
    let (server, plain, _) = start(&place, Mood::Good, limits);
    let mut idle = TcpStream::connect(plain).unwrap();
    idle.write_all(b"GET /v1/version HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer look\r\n\r\n")
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
    assert!(is_closed(&mut idle));
    assert!(TcpStream::connect(plain).is_err());
}

#[test]
fn a_thousand_silent_clients_do_not_keep_a_client_with_a_token_out() {
    let place = Place::new();
    let (_server, plain, tls) = start(&place, Mood::Good, Limits::default());
    for address in [plain, tls] {
        let silent: Vec<TcpStream> = (0..1000)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream
                    .write_all(b"GET /v1/totals HTTP/1.1\r\nHost: w")
                    .unwrap();
                stream
            })
            .collect();
        let client = if address == plain {
            Client::tcp(address.to_string(), Some("look"))
        } else {
            let ca = place.0.join("router.pem");
            let address = format!("localhost:{}", address.port());
            Client::tls(&address, &ca, Some("look")).unwrap()
        };
        for _ in 0..3 {
            if let Err(error) = client.totals() {
                // A self-signed certificate may be no CA here; that it was reached is what counts.
                assert!(error.to_string().contains("certificate"), "{error}");
            }
        }
        drop(silent);
    }
}

#[test]
fn a_token_that_is_taken_away_opens_nothing_from_then_on() {
    let place = Place::new();
    let settings = with_tcp(&place);
    let server = Server::serve(&settings, Arc::new(TestRouter::new(Mood::Good))).unwrap();
    let address = server.tcp_addresses()[0].to_string();
    let client = Client::tcp(address.clone(), Some("look"));
    client.totals().unwrap();
    let other = ServerSettings {
        tokens: vec![Token::of("other", "look again", Role::ReadOnly)],
        ..settings.clone()
    };
    server.control().update(&other).unwrap();
    let refusal = client.totals().unwrap_err();
    let code = refusal.refusal().map(|refusal| refusal.code);
    assert_eq!(code, Some(ErrorCode::Unauthorized));
    Client::tcp(address, Some("look again")).totals().unwrap();
    // A listener that could let nobody in is refused, and nothing changes.
    let nobody = ServerSettings {
        tokens: Vec::new(),
        ..settings
    };
    assert!(server.control().update(&nobody).is_err());
}

#[test]
fn a_token_is_not_sent_in_the_clear_to_another_machine() {
    let client = Client::tcp("192.0.2.1:8081", Some("secret"));
    let said = client.totals().unwrap_err().to_string();
    assert!(
        said.contains("192.0.2.1:8081 is not a loopback address"),
        "{said}"
    );
    assert!(said.contains("--ca"), "{said}");
}
