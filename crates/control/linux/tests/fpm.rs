//! Sessions of the forwarding plane manager protocol over TCP, with a peer that is made here.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use weir_control::{RouteSource, RouteUpdate, Target};
use weir_linux::feed::FeedMessage;
use weir_linux::fpm::{Fpm, FpmSettings};

const PATIENCE: Duration = Duration::from_secs(30);

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes
}

fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32 + 16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(payload);
    bytes
}

/// RTM_NEWNEXTHOP of an object over interface 3 (NHA_ID 1, NHA_OIF 5).
fn object(id: u32) -> Vec<u8> {
    let attributes = [
        attribute(1, &id.to_ne_bytes()),
        attribute(5, &3u32.to_ne_bytes()),
    ];
    message(
        104,
        &[&[2, 0, 11, 0, 0, 0, 0, 0], &attributes.concat()[..]].concat(),
    )
}

/// RTM_NEWROUTE or RTM_DELROUTE of 198.51.100.0/24, protocol 186 (RTA_DST 1, RTA_NH_ID 30).
fn route(kind: u16, id: u32) -> Vec<u8> {
    let attributes = [
        attribute(1, &[198, 51, 100, 0]),
        attribute(30, &id.to_ne_bytes()),
    ];
    let header = [2, 24, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0];
    message(kind, &[&header, &attributes.concat()[..]].concat())
}

fn frame(messages: &[Vec<u8>]) -> Vec<u8> {
    let payload = messages.concat();
    let length = payload.len() as u16 + 4;
    [&[1, 1], &length.to_be_bytes()[..], &payload].concat()
}

fn start(hold: Duration) -> (Fpm, SocketAddr) {
    // A port that nobody has; another test may take it before it is used.
    for _ in 0..100 {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let settings = FpmSettings {
            address,
            hold,
            quiet: Duration::from_millis(100),
        };
        if let Ok(fpm) = Fpm::start(None, settings, || {}) {
            return (fpm, address);
        }
    }
    panic!("no port is free");
}

fn next(fpm: &Fpm) -> FeedMessage {
    let began = Instant::now();
    loop {
        if let Some(message) = fpm.next() {
            return message;
        }
        assert!(began.elapsed() < PATIENCE, "nothing came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[track_caller]
fn expect_replay(fpm: &Fpm) {
    assert!(matches!(next(fpm), FeedMessage::Begin));
    let FeedMessage::Objects(objects) = next(fpm) else {
        panic!("no objects");
    };
    assert_eq!(objects.len(), 1);
    assert!(objects[0].0 == 7 && objects[0].1.is_some());
    let FeedMessage::Routes(routes, _) = next(fpm) else {
        panic!("no routes");
    };
    let [RouteUpdate::Set(route)] = &routes[..] else {
        panic!("{routes:?}");
    };
    assert_eq!((route.source, route.protocol), (RouteSource::Fpm, 186));
    assert_eq!(*route.target, Target::Object(7));
    let FeedMessage::End(Some(protocols)) = next(fpm) else {
        panic!("no end of the protocol that was sent");
    };
    assert!(protocols.contains(186) && !protocols.contains(196));
}

#[test]
fn a_replay_ends_with_silence_and_a_new_session_begins_another() {
    let (fpm, address) = start(Duration::from_secs(3600));
    let whole = [frame(&[object(7)]), frame(&[route(24, 7)])].concat();
    let mut zebra = TcpStream::connect(address).unwrap();
    // A frame may come in any pieces.
    for byte in &whole {
        zebra.write_all(&[*byte]).unwrap();
    }
    expect_replay(&fpm);
    // FRR 8 sends a change as deletion and addition in one frame: both come in one batch.
    zebra
        .write_all(&frame(&[route(25, 7), route(24, 7)]))
        .unwrap();
    let FeedMessage::Routes(routes, _) = next(&fpm) else {
        panic!("no routes");
    };
    assert!(matches!(
        routes[..],
        [RouteUpdate::Remove { .. }, RouteUpdate::Set(_)]
    ));
    // A wrong header ends the session, not the routes.
    zebra.write_all(&[9, 9, 9, 9]).unwrap();
    let mut rest = Vec::new();
    let _ = zebra.read_to_end(&mut rest);
    assert_eq!(fpm.counters().refused().get("framing"), Some(&1));
    assert!(fpm.next().is_none());
    let mut zebra = TcpStream::connect(address).unwrap();
    zebra.write_all(&whole).unwrap();
    expect_replay(&fpm);
}

#[test]
fn routes_go_when_nobody_comes_back() {
    let (fpm, address) = start(Duration::from_secs(2));
    let mut zebra = TcpStream::connect(address).unwrap();
    zebra
        .write_all(&[frame(&[object(7)]), frame(&[route(24, 7)])].concat())
        .unwrap();
    expect_replay(&fpm);
    drop(zebra);
    assert!(matches!(next(&fpm), FeedMessage::Begin));
    assert!(matches!(next(&fpm), FeedMessage::End(None)));
}

#[test]
fn what_a_session_does_not_send_again_goes_after_the_hold_time() {
    let (fpm, address) = start(Duration::from_millis(600));
    // Zebra was restarted and has no route yet.
    let mut zebra = TcpStream::connect(address).unwrap();
    assert!(matches!(next(&fpm), FeedMessage::Begin));
    assert!(matches!(next(&fpm), FeedMessage::End(None)));
    // From then on there is nothing old to search for.
    zebra.write_all(&frame(&[route(24, 7)])).unwrap();
    assert!(matches!(next(&fpm), FeedMessage::Routes(_, Some(_))));
    drop(zebra);
    assert!(matches!(next(&fpm), FeedMessage::Begin));
    assert!(matches!(next(&fpm), FeedMessage::End(None)));
}

#[test]
fn a_resync_ends_the_session_and_not_the_routes() {
    let (fpm, address) = start(Duration::from_secs(3600));
    let whole = [frame(&[object(7)]), frame(&[route(24, 7)])].concat();
    let mut zebra = TcpStream::connect(address).unwrap();
    zebra.write_all(&whole).unwrap();
    expect_replay(&fpm);
    fpm.resync();
    assert_eq!(zebra.read(&mut [0]).unwrap(), 0, "the connection is closed");
    assert!(fpm.next().is_none());
    let mut zebra = TcpStream::connect(address).unwrap();
    zebra.write_all(&whole).unwrap();
    expect_replay(&fpm);
}

#[test]
fn frames_that_lie_and_messages_that_are_cut_harm_nobody() {
    let (fpm, address) = start(Duration::from_secs(3600));
    let inner = [object(7), route(24, 7)].concat();
    for length in 0..inner.len() {
        let mut zebra = TcpStream::connect(address).unwrap();
        zebra
            .write_all(&frame(&[inner[..length].to_vec()]))
            .unwrap();
    }
    // A message whose length is beyond its frame.
    let mut lie = route(24, 7);
    lie[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
    let mut zebra = TcpStream::connect(address).unwrap();
    zebra.write_all(&frame(&[lie])).unwrap();
    drop(zebra);
    let mut zebra = TcpStream::connect(address).unwrap();
    zebra
        .write_all(&[frame(&[object(9)]), frame(&[route(24, 9)])].concat())
        .unwrap();
    let began = Instant::now();
    loop {
        assert!(
            began.elapsed() < PATIENCE,
            "the session does not work any more"
        );
        if let FeedMessage::Routes(routes, _) = next(&fpm)
            && let Some(RouteUpdate::Set(route)) = routes.last()
            && *route.target == Target::Object(9)
        {
            break;
        }
    }
}
