//! Sessions over TCP: routes come, change and go, and broken streams end.

use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use weir_bmp::{Bmp, BmpSettings};

const PEER: [u8; 4] = [192, 0, 2, 2];

fn start(most_paths: usize) -> Bmp {
    let address = "127.0.0.1:0".parse().unwrap();
    Bmp::start(
        None,
        BmpSettings {
            address,
            most_paths,
        },
    )
    .unwrap()
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "did not happen: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A message of BMP: common header and body.
fn bmp(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![3];
    message.extend((body.len() as u32 + 6).to_be_bytes());
    message.push(kind);
    message.extend(body);
    message
}

/// The header of a peer (RFC 7854 4.2): AS 65002, behind the policy or not.
fn peer_of(address: [u8; 4], flags: u8) -> Vec<u8> {
    let mut header = vec![0, flags];
    header.extend([0; 8 + 12]);
    header.extend(address);
    header.extend(65_002u32.to_be_bytes());
    header.extend(address);
    header.extend([0; 8]);
    header
}

/// Of a message with routes.
fn peer(address: [u8; 4]) -> Vec<u8> {
    peer_of(address, 0x40)
}

/// A message of BGP.
fn bgp(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![0xff; 16];
    message.extend((body.len() as u16 + 19).to_be_bytes());
    message.push(kind);
    message.extend(body);
    message
}

fn open(number: u16) -> Vec<u8> {
    let mut body = vec![4];
    body.extend(number.to_be_bytes());
    body.extend([0, 90, 192, 0, 2, 1, 0]);
    bgp(1, &body)
}

/// A peer comes up; whatever is monitored, as bgpd sends it.
fn up(address: [u8; 4]) -> Vec<u8> {
    let mut body = peer_of(address, 0);
    body.extend([0; 12]);
    body.extend([192, 0, 2, 1, 0, 179, 0x80, 0]);
    body.extend(open(65_001));
    body.extend(open(65_002));
    bmp(3, &body)
}

/// An UPDATE with this path, these prefixes of 16 bits and withdrawals.
fn update(address: [u8; 4], path: &[u32], announced: &[[u8; 2]], withdrawn: &[[u8; 2]]) -> Vec<u8> {
    let nets = |all: &[[u8; 2]]| {
        all.iter()
            .flat_map(|[a, b]| [16, *a, *b])
            .collect::<Vec<u8>>()
    };
    let mut attributes = vec![0x40, 1, 1, 0];
    attributes.extend([0x40, 2, 2 + 4 * path.len() as u8, 2, path.len() as u8]);
    attributes.extend(path.iter().flat_map(|number| number.to_be_bytes()));
    attributes.extend([0x40, 3, 4]);
    attributes.extend(address);
    attributes.extend([0x40, 5, 4, 0, 0, 0, 200]);
    attributes.extend([0xc0, 8, 4, 0xfd, 0xe9, 0, 7]);
    if announced.is_empty() {
        attributes.clear();
    }
    let gone = nets(withdrawn);
    let mut body = (gone.len() as u16).to_be_bytes().to_vec();
    body.extend(gone);
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
    body.extend(nets(announced));
    let mut message = peer(address);
    message.extend(bgp(2, &body));
    bmp(0, &message)
}

#[test]
fn routes_come_change_and_go_with_their_session() {
    let bmp_side = start(1000);
    let routes = bmp_side.routes().clone();
    let net = "10.1.0.0/16".parse().unwrap();
    let mut daemon = TcpStream::connect(bmp_side.address()).unwrap();
    let mut stream = bmp(4, &[0, 2, 0, 4, b'e', b'd', b'g', b'e']);
    stream.extend(up(PEER));
    stream.extend(update(PEER, &[65_002, 64_999], &[[10, 1], [10, 2]], &[]));
    // In pieces, as TCP may cut it.
    for piece in stream.chunks(7) {
        daemon.write_all(piece).unwrap();
    }
    wait_for("two routes", || routes.counts() == (2, 2));
    let path = routes.find(net, Some(IpAddr::from(PEER))).unwrap();
    assert_eq!(
        (path.peer, path.local, path.neighbor(), path.origin()),
        (65_002, 65_001, 65_002, 64_999)
    );
    assert_eq!(path.attributes.local_pref, Some(200));
    assert_eq!(path.attributes.communities, [0xfde9_0007]);
    let status = bmp_side.status();
    assert_eq!(status.sessions.values().next().unwrap().name, "edge");
    // As FRR sends it, with its own number in front.
    daemon
        .write_all(&update(
            PEER,
            &[65_001, 65_002, 64_998],
            &[[10, 1]],
            &[[10, 2]],
        ))
        .unwrap();
    wait_for("a change", || {
        routes.find(net, None).unwrap().origin() == 64_998
    });
    assert_eq!(routes.find(net, None).unwrap().neighbor(), 65_002);
    wait_for("a withdrawal", || routes.counts() == (1, 1));
    drop(daemon);
    wait_for("the end", || {
        routes.counts() == (0, 0) && routes.peers().is_empty()
    });
    assert!(bmp_side.status().sessions.is_empty());
}

#[test]
fn peers_come_up_again_and_go_down() {
    let bmp_side = start(1000);
    let routes = bmp_side.routes();
    let mut daemon = TcpStream::connect(bmp_side.address()).unwrap();
    let other = [192, 0, 2, 3];
    let all = [
        up(PEER),
        up(other),
        update(PEER, &[1], &[[10, 1]], &[]),
        update(other, &[2], &[[10, 1]], &[]),
    ];
    daemon.write_all(&all.concat()).unwrap();
    wait_for("both", || routes.counts() == (2, 1));
    daemon.write_all(&up(PEER)).unwrap();
    wait_for("the first one's routes go", || routes.counts() == (1, 1));
    let mut down = peer(other);
    down.push(4);
    daemon.write_all(&bmp(2, &down)).unwrap();
    wait_for("the second one's go", || {
        routes.counts() == (0, 0) && routes.peers().is_empty()
    });
}

#[test]
fn what_cannot_be_read_is_counted_and_harms_nobody_else() {
    let bmp_side = start(1000);
    let routes = bmp_side.routes();
    let mut good = TcpStream::connect(bmp_side.address()).unwrap();
    good.write_all(&[up(PEER), update(PEER, &[1], &[[10, 1]], &[])].concat())
        .unwrap();
    wait_for("the route", || routes.counts() == (1, 1));
    // No BMP, a length that no message has, an update of a peer that never came up, and an update that is cut.
    let unknown = update([192, 0, 2, 9], &[1], &[[10, 3]], &[]);
    let mut cut = update(PEER, &[1, 2, 3], &[[10, 4]], &[]);
    let end = cut.len() - 12;
    cut.truncate(end);
    cut[1..5].copy_from_slice(&(end as u32).to_be_bytes());
    for bytes in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![3, 0xff, 0, 0, 0, 0],
        unknown,
        [up(PEER), cut].concat(),
    ] {
        let mut bad = TcpStream::connect(bmp_side.address()).unwrap();
        bad.write_all(&bytes).unwrap();
    }
    let refused = |reason: &str| bmp_side.status().refused.get(reason).copied().unwrap_or(0);
    wait_for("both framings", || refused("framing") == 2);
    wait_for("the unknown peer", || refused("unknown-peer") == 1);
    wait_for("the cut update", || refused("malformed") == 1);
    wait_for("the bad ones are gone", || {
        bmp_side.status().sessions.len() == 1
    });
    assert_eq!(routes.counts(), (1, 1));
}

#[test]
fn silent_clients_make_room_for_a_daemon() {
    let bmp_side = start(1000);
    let silent: Vec<TcpStream> = (0..40)
        .map(|_| TcpStream::connect(bmp_side.address()).unwrap())
        .collect();
    let mut daemon = TcpStream::connect(bmp_side.address()).unwrap();
    let all = [up(PEER), update(PEER, &[1], &[[10, 1]], &[])];
    daemon.write_all(&all.concat()).unwrap();
    wait_for("the route", || bmp_side.routes().counts() == (1, 1));
    // And those that come later do not take its place.
    let more: Vec<TcpStream> = (0..40)
        .map(|_| TcpStream::connect(bmp_side.address()).unwrap())
        .collect();
    wait_for("all of them", || bmp_side.status().begun == 81);
    assert_eq!(bmp_side.routes().counts(), (1, 1));
    assert!(bmp_side.status().sessions.len() <= 16);
    drop((silent, more));
}

/// Each truncation of each message, and each octet changed: never more than refused.
#[test]
fn no_message_makes_it_fall() {
    let bmp_side = start(100);
    let messages = [
        up(PEER),
        update(PEER, &[1, 2], &[[10, 1], [10, 2]], &[[10, 3]]),
    ];
    let mut sent = 0;
    for message in &messages {
        for place in 5..message.len() {
            let mut stream = up(PEER);
            let mut short = message[..place + 1].to_vec();
            let length = short.len() as u32;
            short[1..5].copy_from_slice(&length.to_be_bytes());
            stream.extend(short);
            let mut changed = message.clone();
            changed[place] ^= 0xff;
            stream.extend(changed);
            let mut daemon = TcpStream::connect(bmp_side.address()).unwrap();
            let _ = daemon.write_all(&stream);
            drop(daemon);
            sent += 1;
            if sent % 8 == 0 {
                wait_for("the sessions end", || bmp_side.status().sessions.is_empty());
            }
        }
    }
    wait_for("all are gone", || bmp_side.status().sessions.is_empty());
    assert!(!bmp_side.has_ended());
    assert_eq!(bmp_side.routes().counts(), (0, 0));
}
