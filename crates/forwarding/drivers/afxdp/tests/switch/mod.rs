//! What the tests over real veth pairs share: a lab whose router is a loop that moves frames between
//! two ports, and traffic by UDP sockets in the hosts. A test program that uses it has `common` too.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use weir_afxdp::{AfxdpConfig, AfxdpPort, Mode};
use weir_buf::{PktCache, Pool, VECTOR, Vector};
use weir_netlink::lab::{FAR, Lab, NEAR, ROUTER};
use weir_port::{OpenError, Port, RxQueue, Source, TxQueue};

/// The two ends at the router.
pub(crate) const ENDS: [&str; 2] = ["port-a", "port-b"];
const TARGET: u16 = 5000;

/// Every chunk is in the free list.
#[track_caller]
pub(crate) fn assert_whole(pool: &Pool) {
    let usage = pool.usage();
    assert_eq!((usage.free, usage.lent), (usage.chunks, 0), "{usage:?}");
}

/// Opens a device in the lab's router with the usual settings.
pub(crate) fn open(
    lab: &Lab,
    device: &str,
    mode: Mode,
    pool: &Pool,
) -> Result<AfxdpPort, OpenError> {
    crate::common::open(
        lab,
        &AfxdpConfig {
            mode,
            ..AfxdpConfig::new(device)
        },
        pool,
    )
}

/// The value of the port's counters whose names begin with `name`, all queues together.
pub(crate) fn counter(port: &dyn Port, name: &str, source: Source) -> u64 {
    let counters = port.counters();
    let matching: Vec<_> = counters
        .iter()
        .filter(|counter| counter.source == source && counter.name.starts_with(name))
        .collect();
    assert!(
        !matching.is_empty(),
        "no counter {name} of {source:?} in {counters:?}"
    );
    matching.iter().map(|counter| counter.value).sum()
}

/// What a switching thread had when it ended.
pub(crate) struct Switched {
    /// Frames that no transmit ring took.
    pub(crate) refused: u64,
    /// Thread CPU time.
    pub(crate) cpu: Duration,
    /// Queues that died while it ran.
    pub(crate) dead: usize,
}

/// A thread that moves frames from one port to the other, both relays, and sleeps when there are none.
pub(crate) struct Switch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Switched>,
}

/// One direction of one queue.
struct Relay {
    rx: Box<dyn RxQueue>,
    tx: Box<dyn TxQueue>,
}

impl Switch {
    /// Joins queue N of one port with queue N of the other.
    pub(crate) fn start(one: &mut AfxdpPort, other: &mut AfxdpPort, pool: &Pool) -> Switch {
        let mut relays = Vec::new();
        for (near, far) in one.take_queues().into_iter().zip(other.take_queues()) {
            relays.push(Relay {
                rx: near.rx.unwrap(),
                tx: far.tx.unwrap(),
            });
            relays.push(Relay {
                rx: far.rx.unwrap(),
                tx: near.tx.unwrap(),
            });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, pool) = (stop.clone(), pool.clone());
        Switch {
            stop,
            thread: std::thread::spawn(move || run(relays, &pool, &stopped)),
        }
    }

    /// Ends the thread; its queues are dropped in it.
    pub(crate) fn end(self) -> Switched {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn run(mut relays: Vec<Relay>, pool: &Pool, stop: &AtomicBool) -> Switched {
    let mut cache = PktCache::new(pool);
    let mut vector = Vector::with_capacity(VECTOR);
    let (mut refused, mut dead) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let mut moved = 0;
        for way in &mut relays {
            moved += way.rx.recv(&mut vector, &mut cache, VECTOR);
            way.tx.send(&mut vector, &mut cache);
            refused += vector.len() as u64;
            cache.free_all(vector.drain());
        }
        relays.iter_mut().for_each(|way| way.tx.flush(&mut cache));
        let before = relays.len();
        relays.retain(|way| !way.rx.is_dead());
        dead += before - relays.len();
        if moved == 0 {
            sleep(&mut relays);
        }
    }
    Switched {
        refused,
        cpu: thread_cpu(),
        dead,
    }
}

fn sleep(relays: &mut [Relay]) {
    relays.iter_mut().for_each(|way| way.rx.before_sleep());
    let readable: Vec<BorrowedFd<'_>> = relays.iter().filter_map(|way| way.rx.readable()).collect();
    let mut fds: Vec<PollFd<'_>> = readable
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: 10_000_000,
    };
    let _ = poll(&mut fds, Some(&limit));
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// A UDP socket in a host of the lab.
pub(crate) fn udp(lab: &Lab, host: &str, port: u16) -> UdpSocket {
    let socket = lab
        .host(host)
        .unwrap()
        .namespace()
        .run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)))
        .unwrap()
        .unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    // On a busy machine the receiving thread may not run for longer than the usual buffer lasts, and
    // the loss would be the test's own.
    set_socket_recv_buffer_size_force(&socket, 64 << 20).unwrap();
    socket
}

/// Datagrams that a host's sockets had no room for: lost by the test, not on the way to it.
pub(crate) fn no_room(lab: &Lab, host: &str) -> u64 {
    let namespace = lab.host(host).unwrap().namespace();
    let text = namespace
        .run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))
        .unwrap()
        .unwrap();
    let mut rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("Udp: "))
        .map(str::split_whitespace);
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let (_, value) = names
        .zip(values)
        .find(|(name, _)| *name == "RcvbufErrors")
        .unwrap();
    value.parse().unwrap()
}

/// What arrived of numbered datagrams.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Arrived {
    /// Different numbers that came.
    pub(crate) numbers: usize,
    /// Numbers that came again.
    pub(crate) again: usize,
    /// Datagrams that were not as they had been sent.
    pub(crate) damaged: usize,
}

/// How datagrams are sent.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// So many a second, and never more than [`WINDOW`] under way: however long the machine keeps a
    /// thread waiting, nothing on the way overflows, so that what is missing was really lost.
    Rate(f64),
    /// So many a second on the average, whatever is lost: after a pause the sender catches up.
    Open(f64),
    /// As fast as the sender can.
    Flood,
}

/// Fewer than the 256 that a veth's ring holds and than a port's fill ring.
const WINDOW: u32 = 200;

/// Sends `count` numbered datagrams of 64-byte frames from each socket in turn to `to`, and tells what
/// arrived at `sink`.
pub(crate) fn traffic(
    from: &[UdpSocket],
    to: Ipv4Addr,
    sink: &UdpSocket,
    count: u32,
    pace: Pace,
) -> Arrived {
    let received = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(sink, count, &received));
        let start = Instant::now();
        let mut given_up = 0;
        for number in 0..count {
            if let Pace::Rate(rate) | Pace::Open(rate) = pace {
                let due = start + Duration::from_secs_f64(f64::from(number) / rate);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            if let Pace::Rate(_) = pace {
                given_up += wait_for_window(number - given_up, &received);
            }
            let socket = &from[number as usize % from.len()];
            socket.send_to(&payload(number), (to, TARGET)).unwrap();
        }
        receiver.join().unwrap()
    })
}

/// Waits until fewer than [`WINDOW`] of `sent` are under way. Those that are not there after a long
/// time are lost: returns how many to count no more.
fn wait_for_window(sent: u32, received: &AtomicU32) -> u32 {
    let deadline = Instant::now() + Duration::from_millis(300);
    loop {
        let under_way = sent.saturating_sub(received.load(Ordering::Relaxed));
        if under_way < WINDOW {
            return 0;
        }
        if Instant::now() >= deadline {
            return under_way;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Four bytes of number and a pattern that depends on it.
fn payload(number: u32) -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes[4..]
        .iter_mut()
        .zip(0..)
        .for_each(|(byte, place)| *byte = (number as u8).wrapping_mul(31).wrapping_add(place));
    bytes
}

fn receive(sink: &UdpSocket, count: u32, received: &AtomicU32) -> Arrived {
    let mut arrived = Arrived::default();
    let mut seen = vec![false; count as usize];
    let mut bytes = [0; 100];
    while arrived.numbers < count as usize {
        let Ok(len) = sink.recv(&mut bytes) else {
            break;
        };
        received.fetch_add(1, Ordering::Relaxed);
        let number = u32::from_be_bytes(bytes[..4].try_into().unwrap());
        if number >= count || bytes[..len] != payload(number) {
            arrived.damaged += 1;
        } else if std::mem::replace(&mut seen[number as usize], true) {
            arrived.again += 1;
        } else {
            arrived.numbers += 1;
        }
    }
    arrived
}

/// Socket pairs both relays: who sends, where to, who receives.
pub(crate) fn both_ways(lab: &Lab, flows: u16) -> [(Vec<UdpSocket>, Ipv4Addr, UdpSocket); 2] {
    let senders = |host| (0..flows).map(|flow| udp(lab, host, 6000 + flow)).collect();
    [
        (
            senders(NEAR),
            Ipv4Addr::new(10, 0, 0, 2),
            udp(lab, FAR, TARGET),
        ),
        (
            senders(FAR),
            Ipv4Addr::new(10, 0, 0, 1),
            udp(lab, NEAR, TARGET),
        ),
    ]
}

/// What every hop between the hosts counted, for the message of a test that misses frames: devices,
/// sockets, and the two ports.
pub(crate) fn account(lab: &Lab, ports: [&AfxdpPort; 2]) -> String {
    let mut lines = Vec::new();
    for (host, device) in [
        (NEAR, "eth0"),
        (ROUTER, ENDS[0]),
        (ROUTER, ENDS[1]),
        (FAR, "eth0"),
    ] {
        let host = lab.host(host).unwrap();
        let statistics = host.link(device).unwrap().statistics;
        let mut driver = host.ethtool().unwrap().statistics(device).unwrap();
        driver.retain(|(name, value)| *value != 0 && name != "peer_ifindex");
        let (packets, dropped) = (
            (statistics.rx_packets, statistics.tx_packets),
            (statistics.rx_dropped, statistics.tx_dropped),
        );
        lines.push(format!(
            "{}/{device}: rx, tx {packets:?}, dropped {dropped:?}, driver {driver:?}",
            host.name()
        ));
    }
    for port in ports {
        let ours = |counter: &weir_port::HardwareCounter| {
            matches!(counter.source, Source::Driver | Source::Xdp) && counter.value != 0
        };
        let counters: Vec<_> = port
            .counters()
            .into_iter()
            .filter(ours)
            .map(|counter| format!("{}={}", counter.name, counter.value))
            .collect();
        lines.push(format!("weir {}: {}", port.device(), counters.join(" ")));
    }
    lines.push(format!(
        "sockets without room: {} and {}",
        no_room(lab, NEAR),
        no_room(lab, FAR)
    ));
    lines.join("\n")
}

/// Makes the hosts know each other's address, so that no datagram waits for ARP.
pub(crate) fn greet(lab: &Lab) {
    for (host, other, mac) in [(NEAR, [10, 0, 0, 2], 0x0b), (FAR, [10, 0, 0, 1], 0x0a)]
        .map(|(host, address, mac): (&str, [u8; 4], u8)| (host, Ipv4Addr::from(address), mac))
    {
        let mut route = lab.host(host).unwrap().route().unwrap();
        let index = route.link_by_name("eth0").unwrap().index;
        route
            .add_neighbour(index, other.into(), [2, 0, 0, 0, 0, mac])
            .unwrap();
    }
}
