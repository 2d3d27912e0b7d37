//! Captures of a whole router: limits, slow and absent readers, the end of the router.
//!
//! Generators and null ports only, so no root is needed; real threads.

use std::io::Cursor;
use std::time::{Duration, Instant};

use weir_api::{Caller, CaptureRequest, CaptureStream, ErrorCode, Router as _};
use weir_config::check;
use weir_engine::{Options, Router};
use weir_pcap::file::{Captured, Reader};
use weir_pcap::ng::Tally;

const CONFIG: &str = "workers: { count: 2, idle: sleep }
interfaces:
  left:
    addresses: [ 10.0.0.1/16 ]
    device:
      driver: generator
      streams:
        - { name: routed, rate: RATE, size: 60, source: 10.0.1.0-10.0.200.255, destination: 192.0.2.9 }
        - { name: nowhere, rate: 500, size: 100, source: 10.0.0.9, destination: 203.0.113.1 }
        - { name: martian, rate: 100, size: 100, source: 127.0.0.9, destination: 203.0.113.1 }
  right: { addresses: [ 192.0.2.1/24 ], device: { driver: 'null' } }
neighbors:
  - { interface: right, address: 192.0.2.9, mac: 02:00:00:00:00:09 }
  - { interface: left, address: 10.0.0.9, mac: 02:00:00:00:00:0a }
";

fn start(rate: u32) -> Router {
    let config = check("weir.yaml", &CONFIG.replace("RATE", &rate.to_string()))
        .unwrap()
        .0;
    Router::start(
        &config,
        &Options {
            seed: Some(7),
            ..Options::default()
        },
    )
    .unwrap()
}

fn capture(router: &Router, request: &CaptureRequest) -> CaptureStream {
    router.capture(request, &Caller::router()).unwrap()
}

/// All that comes until the end.
fn whole(mut stream: CaptureStream) -> (Vec<Captured>, Tally) {
    let (mut bytes, mut tally) = (Vec::new(), Tally::default());
    while let Some(piece) = stream.wait() {
        tally.read(&piece);
        bytes.extend(piece);
    }
    (
        Reader::new(Cursor::new(bytes))
            .unwrap()
            .map(Result::unwrap)
            .collect(),
        tally,
    )
}

#[track_caller]
fn wait_for(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(20), "timed out");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_capture_ends_at_its_limits() {
    let router = start(3000);
    let (packets, tally) = whole(capture(
        &router,
        &CaptureRequest {
            rx: true,
            packets: Some(50),
            ..CaptureRequest::default()
        },
    ));
    assert_eq!(
        (packets.len(), tally.packets, tally.is_whole),
        (50, 50, true)
    );
    assert!(
        packets
            .windows(2)
            .all(|pair| pair[0].timestamp_ns <= pair[1].timestamp_ns)
    );
    let request = CaptureRequest {
        rx: true,
        tx: true,
        bytes: Some(20_000),
        snap_bytes: Some(34),
        ..CaptureRequest::default()
    };
    let mut stream = capture(&router, &request);
    let (mut length, mut tally) = (0, Tally::default());
    while let Some(piece) = stream.wait() {
        length += piece.len();
        tally.read(&piece);
    }
    assert!(
        (19_000..=20_000).contains(&length) && tally.is_whole,
        "{length}"
    );
    let began = Instant::now();
    let request = CaptureRequest {
        drop: true,
        milliseconds: Some(300),
        ..CaptureRequest::default()
    };
    let (packets, _) = whole(capture(&router, &request));
    assert!(began.elapsed() >= Duration::from_millis(300) && !packets.is_empty());
    // Only the stream without a route is 100 long and dropped, from wherever it is.
    assert!(packets.iter().all(|packet| packet.orig_len == 100));
    router.stop();
}

#[test]
fn drops_are_reported_by_reason() {
    let router = start(3000);
    let request = CaptureRequest {
        drop: true,
        reasons: vec!["ip4-source-loopback".to_owned()],
        packets: Some(5),
        ..CaptureRequest::default()
    };
    let (packets, _) = whole(capture(&router, &request));
    assert!(
        packets
            .iter()
            .all(|packet| packet.data[26..30] == [127, 0, 0, 9])
    );
    let unknown = CaptureRequest {
        drop: true,
        reasons: vec!["nonsense".to_owned()],
        ..CaptureRequest::default()
    };
    assert_eq!(
        router
            .capture(&unknown, &Caller::router())
            .unwrap_err()
            .code,
        ErrorCode::NotFound
    );
    router.stop();
}

#[test]
fn a_reader_that_does_not_read_costs_packets_of_its_capture_only() {
    let router = start(200_000);
    let slow = capture(
        &router,
        &CaptureRequest {
            rx: true,
            ..CaptureRequest::default()
        },
    );
    let lost = || router.captures().unwrap().captures[0].lost_packets;
    wait_for(|| lost() > 1000);
    // Nobody waits for it: packets pass, and another capture has all of its own.
    let before = router.balance().packets_out;
    wait_for(|| router.balance().packets_out > before + 10_000);
    let request = CaptureRequest {
        drop: true,
        packets: Some(100),
        ..CaptureRequest::default()
    };
    let (packets, tally) = whole(capture(&router, &request));
    assert_eq!((packets.len(), tally.lost), (100, 0));
    // It reads at last, and learns what it missed.
    let number = slow.number;
    let reader = std::thread::spawn(move || whole(slow));
    std::thread::sleep(Duration::from_millis(50));
    let received = router.capture_end(number).unwrap();
    let (packets, tally) = reader.join().unwrap();
    assert!(
        tally.is_whole
            && tally.lost >= received.lost_packets
            && packets.len() as u64 == tally.packets
    );
    router.stop();
    let totals = router.balance();
    let entered = totals.packets_in + totals.originated + totals.replicated;
    let left =
        totals.packets_out + totals.drops.values().sum::<u64>() + totals.consumed + totals.held;
    assert_eq!(entered, left, "{totals:?}");
}

#[test]
fn who_goes_away_leaves_nothing_behind() {
    let router = start(3000);
    for number in 1..=20 {
        let stream = capture(
            &router,
            &CaptureRequest {
                rx: true,
                tx: true,
                drop: true,
                ..CaptureRequest::default()
            },
        );
        assert_eq!(stream.number, number);
        drop(stream);
        wait_for(|| router.captures().unwrap().captures.is_empty());
    }
    assert_eq!(router.capture_end(3).unwrap_err().code, ErrorCode::NotFound);
    router.stop();
}

#[test]
fn there_are_so_many_at_once_and_no_more() {
    let router = start(3000);
    let most = router.captures().unwrap().most;
    let request = CaptureRequest {
        rx: true,
        ..CaptureRequest::default()
    };
    let mut streams: Vec<_> = (0..most).map(|_| capture(&router, &request)).collect();
    assert_eq!(
        router
            .capture(&request, &Caller::router())
            .unwrap_err()
            .code,
        ErrorCode::Conflict
    );
    drop(streams.pop());
    wait_for(|| router.captures().unwrap().captures.len() as u32 == most - 1);
    streams.push(capture(&router, &request));
    // The router's end is the captures', and each is reported whole.
    let readers: Vec<_> = streams
        .into_iter()
        .map(|stream| std::thread::spawn(move || whole(stream)))
        .collect();
    router.stop();
    for reader in readers {
        let (packets, tally) = reader.join().unwrap();
        assert!(tally.is_whole && packets.len() as u64 == tally.packets);
    }
    assert_eq!(
        router
            .capture(&request, &Caller::router())
            .unwrap_err()
            .code,
        ErrorCode::Conflict
    );
}

#[test]
fn an_interface_that_comes_later_is_captured_too() {
    let router = start(3000);
    let stream = capture(
        &router,
        &CaptureRequest {
            tx: true,
            ..CaptureRequest::default()
        },
    );
    let reader = std::thread::spawn(move || whole(stream));
    let text = CONFIG.replace("RATE", "3000").replace("right", "middle");
    router.apply(&check("weir.yaml", &text).unwrap().0).unwrap();
    let sent = || {
        router
            .interfaces()
            .unwrap()
            .interfaces
            .iter()
            .any(|it| it.name == "middle" && it.tx.packets > 10)
    };
    wait_for(sent);
    router.capture_end(1).unwrap();
    let (packets, _) = reader.join().unwrap();
    assert!(packets.len() > 10);
    router.stop();
}
