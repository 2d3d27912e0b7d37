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

/// Two ports without devices: packets are made in memory and swallowed.
fn in_memory(workers: &str) -> weir_config::Config {
    let text = format!(
        "workers: {{ {workers} }}
interfaces:
  gen0: {{ device: {{ driver: generator, streams: [ {{ name: s, rate: 20000, source: 10.0.0.9, destination: 192.0.2.10 }} ] }}, addresses: [ 10.0.0.1/16 ] }}
  out0: {{ device: {{ driver: 'null' }}, addresses: [ 192.0.2.1/24 ] }}
neighbors:
  - {{ interface: out0, address: 192.0.2.10, mac: 02:00:00:00:00:0a }}
"
    );
    weir_config::check("weir.yaml", &text).unwrap().0
}

#[test]
fn runtime_accounts_for_the_whole_turn() {
    let router = Router::start(&in_memory("idle: poll"), &Options::default()).unwrap();
    wait_for("a thousand packets", || {
        router.totals().unwrap().packets_out > 1000
    });
    router.clear(weir_api::Clear::Runtime).unwrap();
    let cleared = router.totals().unwrap().packets_out;
    wait_for("a thousand more", || {
        router.totals().unwrap().packets_out > cleared + 1000
    });
    // Counters are read while the worker runs; stopped, they are exact.
    router.stop();
    let runtime = router.runtime().unwrap();
    let worker = &runtime.workers[0];
    let row = |name: &str| worker.nodes.iter().find(|row| row.name == name).unwrap();
    let (rx, tx) = (row("generator-rx gen0 q0"), row("null-tx out0 q0"));
    assert!(rx.packets > 1000 && rx.calls > 0 && rx.clocks_per_packet > 0.0);
    assert!(
        rx.empty_calls > rx.calls,
        "a worker that polls finds nothing most of the time"
    );
    assert!(tx.packets > 1000 && tx.calls > 0 && tx.clocks > 0);
    let sum: u64 = worker.nodes.iter().map(|row| row.clocks).sum();
    assert_eq!(sum, worker.clocks, "{:#?}", worker.nodes);
    let others = sum - row("loop").clocks;
    assert!(others > 0 && row("loop").calls == worker.turns);
    assert!(worker.busy > 0.0 && worker.busy < 1.0, "{}", worker.busy);
    assert!(worker.busy_clocks < worker.clocks);
}

/// The worker's thread: its nice value and the cores it may run on.
fn worker_thread(name: &str) -> Option<(i64, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    for task in tasks.filter_map(Result::ok) {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if read("comm").trim() != name {
            continue;
        }
        // The fields behind the name in brackets; nice is the 19th of all.
        let stat = read("stat");
        let nice = stat.rsplit(')').next()?.split_whitespace().nth(16)?;
        let status = read("status");
        let cores = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        return Some((nice.parse().ok()?, cores.trim().to_owned()));
    }
    None
}

/// In a process of its own, since threads of other tests have the same names.
#[test]
fn workers_have_priority_and_others_leave_their_core() {
    const OWN_PROCESS: &str = "WEIR_TEST_PRIORITY";
    if std::env::var_os(OWN_PROCESS).is_none() {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "workers_have_priority_and_others_leave_their_core",
        ]);
        let done = command.env(OWN_PROCESS, "1").output().unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        return;
    }
    let all = weir_cpu::allowed_cores();
    let core = all[all.len() - 1];
    let router = Router::start(
        &in_memory(&format!("cores: [ {core} ]")),
        &Options::default(),
    )
    .unwrap();
    wait_for("the worker's thread", || {
        worker_thread("weir-worker-0").is_some_and(|(nice, cores)| {
            let has_right = rustix::process::getuid().is_root();
            (nice == -20 || !has_right) && cores == core.to_string()
        })
    });
    if all.len() > 1 {
        let (nice, cores) = worker_thread("weir-control").unwrap();
        assert_eq!(nice, 0, "only workers are raised");
        assert!(
            !cores.split([',', '-']).any(|it| it == core.to_string()),
            "{cores}"
        );
    }
    router.stop();
}
