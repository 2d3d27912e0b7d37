//! A TAP in a namespace of its own: pinged, filled, deleted.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use weir_buf::{Hugepages, PktCache, Pool, PoolConfig, Vector};
use weir_netlink::lab::preflight;
use weir_netlink::netns::NetNs;
use weir_port::{OpenError, Port, RxQueue, TxQueue};
use weir_tap::{TapConfig, TapPort};
use weir_wire::build::{self, Ends};
use weir_wire::{ArpPacket, EtherType, EthernetHeader, Ipv4Header, MacAddr};

fn namespace() -> Option<NetNs> {
    if let Err(why) = preflight() {
        let _ = writeln!(io::stderr(), "skipped: {why}");
        return None;
    }
    let namespace = NetNs::new().unwrap();
    // No IPv6, no frames but those of the test.
    let quiet = namespace
        .run(|| std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"))
        .unwrap();
    quiet.unwrap();
    Some(namespace)
}

fn open(namespace: &NetNs, config: &TapConfig) -> Result<TapPort, OpenError> {
    namespace.run(|| TapPort::open(config)).unwrap()
}

fn pool() -> Pool {
    Pool::new(PoolConfig {
        chunks: 2048,
        hugepages: Hugepages::Off,
    })
    .unwrap()
}

#[track_caller]
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !done() {
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within 5 s"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn counter(port: &TapPort, name: &str) -> u64 {
    port.counters()
        .iter()
        .find(|counter| counter.name == name)
        .unwrap()
        .value
}

const LINUX: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xaa]);
const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xbb]);

/// Answers ARP and echo requests, as a router would, until the ping has ended.
fn answer(rx: &mut dyn RxQueue, tx: &mut dyn TxQueue, pool: &Pool, done: impl Fn() -> bool) {
    let mut cache = PktCache::new(pool);
    let (mut vector, mut out) = (Vector::with_capacity(64), Vector::with_capacity(64));
    while !done() {
        if rx.recv(&mut vector, &mut cache, 64) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        for packet in vector.drain() {
            let frame = packet.data();
            let (ethernet, l3) = EthernetHeader::read(frame).unwrap();
            if ethernet.ethertype() == EtherType::ARP {
                let (arp, _) = ArpPacket::read(l3).unwrap();
                let mut answer = cache.alloc().unwrap();
                assert!(answer.set_len(build::ARP_FRAME));
                assert!(build::arp_reply(
                    answer.data_mut(),
                    OURS,
                    arp.target(),
                    LINUX,
                    arp.sender()
                ));
                out.push(answer);
            } else {
                // The reply in two pieces, to see that they leave as one frame.
                let (ip, _) = Ipv4Header::read(l3).unwrap();
                let ends = Ends {
                    source_mac: OURS,
                    destination_mac: LINUX,
                    source: ip.destination(),
                    destination: ip.source(),
                    ..Ends::default()
                };
                let identifier = u16::from_be_bytes([frame[38], frame[39]]);
                let sequence = u16::from_be_bytes([frame[40], frame[41]]);
                let reply =
                    build::echo4(&ends, build::ECHO_REPLY, identifier, sequence, &frame[42..]);
                let (mut head, mut tail) = (cache.alloc().unwrap(), cache.alloc().unwrap());
                assert!(head.fill(&reply[..50]) && tail.fill(&reply[50..]));
                head.append(tail).unwrap();
                out.push(head);
            }
            cache.free(packet);
        }
        tx.send(&mut out, &mut cache);
        tx.flush(&mut cache);
    }
}

#[test]
fn linux_pings_what_is_behind_a_tap() {
    let Some(namespace) = namespace() else { return };
    let pool = pool();
    let config = TapConfig {
        mac: Some(LINUX),
        mtu: 1400,
        ..TapConfig::new("tap0")
    };
    let mut port = open(&namespace, &config).unwrap();
    let mut route = namespace.route().unwrap();
    let link = route.link_by_name("tap0").unwrap();
    assert_eq!(
        (link.mac, link.mtu, link.up, link.running),
        (Some(LINUX.0), 1400, true, true)
    );
    assert_eq!(
        (
            port.capabilities().max_frame,
            port.capabilities().rx_queues,
            port.mac()
        ),
        (1418, 1, None)
    );
    assert!(port.link().up);
    route
        .add_address(link.index, [10, 7, 0, 1].into(), 24)
        .unwrap();

    let mut pair = port.take_queues().remove(0);
    let (rx, tx) = (
        pair.rx.as_deref_mut().unwrap(),
        pair.tx.as_deref_mut().unwrap(),
    );
    let ended = std::sync::atomic::AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        let pool = &pool;
        scope.spawn(|| {
            answer(rx, tx, pool, || {
                ended.load(std::sync::atomic::Ordering::Relaxed)
            })
        });
        let ping = ["-c", "5", "-i", "0.05", "-W", "2", "-s", "1300", "10.7.0.2"];
        let output = namespace.command("ping").args(ping).output();
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        output.unwrap()
    });
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(" 0% packet loss"), "{text}");
    assert_eq!(
        counter(&port, "tx_packets_q0"),
        6,
        "one ARP answer and five echoes"
    );
    assert_eq!(counter(&port, "rx_packets_q0"), 6);
    assert_eq!(
        counter(&port, "tx_packets"),
        6,
        "the kernel sees the same from its side"
    );

    drop((pair, port));
    assert!(
        route.link_by_name("tap0").unwrap_err().is_not_found(),
        "gone with its port"
    );
    assert_eq!(pool.usage().free, 2048);
}

#[test]
fn what_is_no_frame_is_refused_and_a_deleted_tap_is_dead() {
    let Some(namespace) = namespace() else { return };
    let pool = pool();
    let mut port = open(&namespace, &TapConfig::new("tap0")).unwrap();
    let mut pair = port.take_queues().remove(0);
    assert!(port.take_queues().is_empty());
    let mut cache = PktCache::new(&pool);
    let mut vector = Vector::with_capacity(8);
    for len in [0, 13, 60] {
        let mut packet = pool.alloc().unwrap();
        assert!(packet.fill(&vec![0xff; len]));
        vector.push(packet);
    }
    let (rx, tx) = (
        pair.rx.as_deref_mut().unwrap(),
        pair.tx.as_deref_mut().unwrap(),
    );
    assert_eq!(tx.send(&mut vector, &mut cache), 3);
    assert_eq!(
        (
            counter(&port, "tx_packets_q0"),
            counter(&port, "tx_refused_q0")
        ),
        (1, 2)
    );
    assert_eq!(rx.recv(&mut vector, &mut cache, 64), 0);
    assert!(!rx.is_dead() && !port.should_reopen());

    let mut route = namespace.route().unwrap();
    let index = route.link_by_name("tap0").unwrap().index;
    route.set_up(index, false).unwrap();
    wait_for("the link going down", || !port.link().up);
    assert!(!port.should_reopen(), "it is only down");
    route.delete(index).unwrap();
    wait_for("the death of the queue", || {
        rx.recv(&mut vector, &mut cache, 64);
        rx.is_dead()
    });
    assert!(!port.link().up && port.should_reopen());
    drop((pair, port, cache));
    open(&namespace, &TapConfig::new("tap0")).unwrap();
    assert_eq!(pool.usage().free, 2048);
}

#[test]
fn several_queues_are_several_descriptors() {
    let Some(namespace) = namespace() else { return };
    let mut port = open(
        &namespace,
        &TapConfig {
            queues: 3,
            ..TapConfig::new("tap0")
        },
    )
    .unwrap();
    assert_eq!(
        (
            port.capabilities().rx_queues,
            port.capabilities().mode.as_str()
        ),
        (3, "multi-queue")
    );
    assert_eq!(port.take_queues().len(), 3);
}

/// Every refusal is one sentence that names the device.
#[test]
fn refusals_say_what_to_do() {
    let Some(namespace) = namespace() else { return };
    let refused = |config: &TapConfig| open(&namespace, config).map(drop).unwrap_err().to_string();
    assert!(
        refused(&TapConfig {
            mtu: 9217,
            ..TapConfig::new("tap0")
        })
        .contains("tap0: an MTU of 9217 is impossible: use 68 to 9216")
    );
    for name in ["", "sixteen-bytes-xx", "a/b", "tap%d", "a b"] {
        assert!(
            refused(&TapConfig::new(name)).contains("is no name for a device"),
            "{name:?}"
        );
    }
    let _port = open(&namespace, &TapConfig::new("tap0")).unwrap();
    assert!(refused(&TapConfig::new("tap0")).contains("tap0 is in use by another program"));
    assert!(refused(&TapConfig::new("lo")).contains("no TAP"));
    let unprivileged = || {
        let mut sets = rustix::thread::capabilities(None).unwrap();
        sets.effective
            .remove(rustix::thread::CapabilitySet::NET_ADMIN);
        rustix::thread::set_capabilities(None, sets).unwrap();
        TapPort::open(&TapConfig::new("tap1")).map(drop)
    };
    let error = namespace
        .run(unprivileged)
        .unwrap()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("CAP_NET_ADMIN") && error.contains("root"),
        "{error}"
    );
}

/// Frames of one chunk, of several, and the longest, in both directions.
#[test]
fn long_frames_come_and_go_whole() {
    let Some(namespace) = namespace() else { return };
    let pool = pool();
    let mut port = open(
        &namespace,
        &TapConfig {
            mac: Some(LINUX),
            mtu: 9216,
            ..TapConfig::new("tap0")
        },
    )
    .unwrap();
    assert_eq!(port.capabilities().max_frame, 9234);
    let index = namespace
        .route()
        .unwrap()
        .link_by_name("tap0")
        .unwrap()
        .index;
    namespace
        .route()
        .unwrap()
        .add_address(index, [10, 7, 0, 1].into(), 24)
        .unwrap();
    let bind = |port: u16| {
        namespace
            .run(|| std::net::UdpSocket::bind(("10.7.0.1", port)))
            .unwrap()
            .unwrap()
    };
    let (socket, answers) = (bind(5000), bind(6000));
    answers
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let neighbor = [
        "neighbor",
        "add",
        "10.7.0.2",
        "lladdr",
        "02:00:00:00:00:bb",
        "dev",
        "tap0",
    ];
    assert!(
        namespace
            .command("ip")
            .args(neighbor)
            .status()
            .unwrap()
            .success()
    );
    let mut pair = port.take_queues().remove(0);
    let (rx, tx) = (
        pair.rx.as_deref_mut().unwrap(),
        pair.tx.as_deref_mut().unwrap(),
    );
    let mut cache = PktCache::new(&pool);
    let (mut vector, mut out) = (Vector::with_capacity(64), Vector::with_capacity(64));
    for size in [1, 2197, 2198, 2199, 2200, 4438, 4439, 8972, 9188] {
        let datagram: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
        socket.send_to(&datagram, "10.7.0.2:6000").unwrap();
        wait_for("the frame", || rx.recv(&mut vector, &mut cache, 64) > 0);
        let packet = vector.pop().unwrap();
        let frame = packet.segments().collect::<Vec<_>>().concat();
        assert_eq!(
            (packet.total_len(), &frame[42..]),
            (42 + size, &datagram[..])
        );
        assert_eq!(
            packet.segments().count(),
            (42 + size).div_ceil(weir_buf::DATA_ROOM)
        );
        cache.free(packet);
        // And back.
        let ends = Ends {
            source_mac: OURS,
            destination_mac: LINUX,
            source: 0x0a07_0002,
            destination: 0x0a07_0001,
            destination_port: 6000,
            ..Ends::default()
        };
        let back = build::udp4(&ends, &datagram);
        let fill = |at: usize, room: &mut [u8]| room.copy_from_slice(&back[at..at + room.len()]);
        out.push(weir_buf::Pkt::gather(back.len(), || cache.alloc(), fill).unwrap());
        assert_eq!(tx.send(&mut out, &mut cache), 1);
        let mut got = vec![0; 10_000];
        let len = answers.recv(&mut got).unwrap();
        assert_eq!(&got[..len], &datagram[..]);
    }
    assert_eq!(counter(&port, "rx_too_long_q0"), 0);
    drop((pair, port, cache));
    assert_eq!(pool.usage().free, 2048);
}
