//! A router on real devices: veth pairs between namespaces. Devices that are missing, many of them, links that flap,
//! checksums that a sender leaves to the hardware.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use weir_api::{Router as _, UpDown};
use weir_engine::{Options, Router};
use weir_netlink::lab::{Cable, Lab, Port, preflight};
use weir_netlink::route::VethPair;

/// False when this machine cannot make namespaces; says why past the test harness, which hides what passing tests print.
fn can_run() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let answer = preflight();
        if let Err(why) = &answer {
            let _ = writeln!(io::stderr(), "skipped: {why}");
        }
        answer.is_ok()
    })
}

#[track_caller]
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not happen in 30 s");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A router with the devices `p0`, `p1`, …, each with a cable to `eth0` of a host `h0`, `h1`, … at 10.0.N.2. Offloads are
/// as the kernel sets them.
fn lab(ports: u8) -> Lab {
    let mut lab = Lab::new();
    lab.add_host("router").unwrap();
    for number in 0..ports {
        let host = format!("h{number}");
        lab.add_host(&host).unwrap();
        let one = Port::new("router", &format!("p{number}"));
        let other = Port::new(&host, "eth0").address(Ipv4Addr::new(10, 0, number, 2), 24);
        lab.connect(&Cable::new(one, other)).unwrap();
        lab.default_route(&host, Ipv4Addr::new(10, 0, number, 1))
            .unwrap();
    }
    lab
}

fn config(ports: u8, device: &str, rest: &str) -> weir_config::Config {
    let interfaces: String = (0..ports)
        .map(|n| {
            format!(
                "  xe{n}: {{ device: {{ driver: af-xdp, name: p{n}{device} }}, addresses: [ 10.0.{n}.1/24 ] }}\n"
            )
        })
        .collect();
    weir_config::check("weir.yaml", &format!("interfaces:\n{interfaces}{rest}"))
        .unwrap()
        .0
}

fn start(lab: &Lab, config: &weir_config::Config) -> Router {
    let namespace = lab.host("router").unwrap().namespace();
    namespace
        .run(|| Router::start(config, &Options::default()))
        .unwrap()
        .unwrap()
}

/// One datagram from a host to another.
fn datagram(lab: &Lab, from: u8, to: u8) {
    let namespace = lab.host(&format!("h{from}")).unwrap().namespace();
    namespace
        .run(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            let _ = socket.send_to(b"anybody there?", (Ipv4Addr::new(10, 0, to, 2), 9));
        })
        .unwrap();
}

/// The MAC address that the router has learnt of a host.
fn learnt(router: &Router, host: u8) -> Option<String> {
    let address = std::net::IpAddr::from([10, 0, host, 2]);
    let all = router.neighbors().unwrap().neighbors;
    all.into_iter().find(|it| it.address == address)?.mac
}

fn link(router: &Router, name: &str) -> UpDown {
    let all = router.interfaces().unwrap().interfaces;
    all.into_iter().find(|it| it.name == name).unwrap().link
}

#[test]
fn sixty_four_ports_resolve_their_neighbours() {
    if !can_run() {
        return;
    }
    const PORTS: u8 = 64;
    let lab = lab(PORTS);
    let router = start(&lab, &config(PORTS, "", ""));
    for number in 0..PORTS {
        let next = (number + 1) % PORTS;
        wait_for(&format!("resolving host {next}"), || {
            datagram(&lab, number, next);
            learnt(&router, next).is_some()
        });
    }
    router.stop();
}

#[test]
fn a_device_that_is_missing_at_start_is_waited_for() {
    if !can_run() {
        return;
    }
    let lab = lab(2);
    let later = "  later: { device: { driver: af-xdp, name: p9 }, addresses: [ 10.0.9.1/24 ] }\n";
    let router = start(&lab, &config(2, "", later));
    assert_eq!(link(&router, "later"), UpDown::Down);
    wait_for("forwarding over the ports that are there", || {
        datagram(&lab, 0, 1);
        learnt(&router, 1).is_some()
    });
    let mut route = lab.host("router").unwrap().route().unwrap();
    let pair = VethPair {
        name: "p9",
        peer_name: "peer9",
        ..VethPair::default()
    };
    route.create_veth(&pair).unwrap();
    let peer = route.link_by_name("peer9").unwrap().index;
    route.set_up(peer, true).unwrap();
    wait_for("the port being opened", || {
        link(&router, "later") == UpDown::Up
    });
    router.stop();
}

#[test]
fn a_link_that_flaps_has_other_neighbours() {
    if !can_run() {
        return;
    }
    let lab = lab(2);
    let router = start(&lab, &config(2, "", ""));
    wait_for("resolving host 1", || {
        datagram(&lab, 0, 1);
        learnt(&router, 1).is_some()
    });
    let before = learnt(&router, 1).unwrap();
    let mut route = lab.host("h1").unwrap().route().unwrap();
    let index = route.link_by_name("eth0").unwrap().index;
    // Another host is plugged in within a millisecond.
    route.set_up(index, false).unwrap();
    route.set_mac(index, [2, 0, 0, 0, 0, 0x77]).unwrap();
    route.set_up(index, true).unwrap();
    let deadline = Instant::now() + Duration::from_secs(15);
    while learnt(&router, 1).as_ref() == Some(&before) {
        assert!(
            Instant::now() < deadline,
            "packets still go to the host that is gone"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    wait_for("resolving the new host", || {
        datagram(&lab, 0, 1);
        learnt(&router, 1).as_deref() == Some("02:00:00:00:00:77")
    });
    router.stop();
}

/// Sends from host 0 to host 1 over TCP; what arrived.
fn transfer(lab: &Lab, bytes: usize) -> usize {
    const LIMIT: Option<Duration> = Some(Duration::from_secs(20));
    let (h0, h1) = (lab.host("h0").unwrap(), lab.host("h1").unwrap());
    let listener = h1
        .namespace()
        .run(|| TcpListener::bind("10.0.1.2:5001").unwrap())
        .unwrap();
    std::thread::scope(|scope| {
        let received = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(LIMIT).unwrap();
            let (mut all, mut piece) = (0, vec![0; 65_536]);
            while let Ok(len) = stream.read(&mut piece) {
                all += len;
                if len == 0 || all >= bytes {
                    break;
                }
            }
            all
        });
        let connected = h0
            .namespace()
            .run(|| {
                let to = "10.0.1.2:5001".parse().unwrap();
                TcpStream::connect_timeout(&to, Duration::from_secs(20))
            })
            .unwrap();
        let mut stream = connected.expect("a connection through the router");
        stream.set_write_timeout(LIMIT).unwrap();
        stream.write_all(&vec![7; bytes]).unwrap();
        received.join().unwrap()
    })
}

#[test]
fn tcp_passes_between_hosts_with_checksum_offload() {
    if !can_run() {
        return;
    }
    let lab = lab(2);
    let router = start(&lab, &config(2, "", ""));
    assert_eq!(transfer(&lab, 300_000), 300_000);
    let hardware = router.hardware().unwrap();
    let completed = hardware
        .ports
        .iter()
        .flat_map(|port| &port.counters)
        .filter(|counter| counter.name.starts_with("rx_checksums_completed"))
        .map(|counter| counter.value)
        .sum::<u64>();
    assert!(completed > 200, "{completed} checksums completed");
    router.stop();
}

#[test]
fn tcp_passes_in_generic_mode_with_checksum_offload() {
    if !can_run() {
        return;
    }
    let lab = lab(2);
    let router = start(&lab, &config(2, ", mode: generic", ""));
    // Less than a segment: segmentation offload stays with the sender in this mode.
    assert_eq!(transfer(&lab, 1000), 1000);
    router.stop();
}

/// How soon a link that goes down is reported; printed, and asserted in long runs only.
#[test]
fn a_link_that_goes_down_is_reported_at_once() {
    if !can_run() {
        return;
    }
    let lab = lab(2);
    let router = start(&lab, &config(2, "", ""));
    let mut route = lab.host("h1").unwrap().route().unwrap();
    let index = route.link_by_name("eth0").unwrap().index;
    let mut times = Vec::new();
    for _ in 0..9 {
        wait_for("the link going up", || link(&router, "xe1") == UpDown::Up);
        let began = Instant::now();
        route.set_up(index, false).unwrap();
        while link(&router, "xe1") == UpDown::Up {
            assert!(began.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        }
        times.push(began.elapsed());
        route.set_up(index, true).unwrap();
    }
    times.sort();
    let _ = writeln!(io::stderr(), "link down reported after {times:?}");
    if std::env::var_os("WEIR_LONG").is_some() {
        assert!(times[4] <= Duration::from_millis(10), "{times:?}");
    }
    router.stop();
}
