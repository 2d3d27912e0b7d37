//! Collectors by name, in namespaces that come and go, by a source address, a class and a device; those that a domain
//! announces.

mod common;
#[path = "common/hosts.rs"]
mod hosts;

use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::collector::{Interfaces, Receiver, config, wait_for};
use common::{Packets, Rig, packets};
use hosts::{may_make_namespaces, with_own_hosts};
use weir_netlink::netns::NetNs;
use weir_telemetry::agent::{
    Agent, AgentConfig, AgentHandle, CollectorStats, Destination, DnsSd, Target,
};

fn start(targets: &[Target], rig: &mut Rig) -> AgentHandle {
    let collectors = targets
        .iter()
        .map(|target| Destination {
            target: target.clone(),
            drops: true,
        })
        .collect();
    let config = AgentConfig {
        collectors,
        ..config(&[])
    };
    Agent::start(config, vec![rig.give_source()], Interfaces::of(Vec::new())).unwrap()
}

fn first(agent: &AgentHandle) -> CollectorStats {
    agent.stats().collectors.into_iter().next().unwrap()
}

/// Samples until a datagram comes.
fn a_datagram_comes(rig: &mut Rig, receiver: &Receiver) {
    let Packets { packets, .. } = packets(20, 64);
    wait_for("a datagram", || {
        rig.look(&packets);
        receiver.next(Duration::from_millis(20)).is_some()
    });
}

/// Samples until the collector's trouble is of this kind.
fn trouble_is(rig: &mut Rig, agent: &AgentHandle, what: &str) {
    let Packets { packets, .. } = packets(20, 64);
    wait_for(what, || {
        rig.look(&packets);
        let now = first(agent);
        now.errors > 0 && now.last_error.is_some_and(|error| error.contains(what))
    });
}

/// A namespace with a name, as `ip netns` makes it; gone with this value.
struct Named(String);

impl Named {
    fn new(name: &str) -> Named {
        let named = Named(format!("weir-{name}-{}", std::process::id()));
        named.ip(&["netns", "add", &named.0]);
        named.ip(&["-n", &named.0, "link", "set", "lo", "up"]);
        named
    }

    fn ip(&self, words: &[&str]) {
        assert!(
            Command::new("ip").args(words).status().unwrap().success(),
            "ip {words:?}"
        );
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[test]
fn a_namespace_that_vanishes_and_returns_is_entered_again() {
    if !may_make_namespaces() {
        return;
    }
    let mut rig = Rig::new(1, 1);
    let name = format!("weir-collector-{}", std::process::id());
    let target = Target {
        namespace: Some(name.clone()),
        ..Target::new("127.0.0.1".into(), 6343)
    };
    let agent = start(&[target], &mut rig);
    trouble_is(&mut rig, &agent, "No such file");
    for _ in 0..2 {
        let namespace = Named::new("collector");
        let receiver = NetNs::open_named(&name)
            .unwrap()
            .run(|| Receiver::at("127.0.0.1:6343".parse().unwrap()))
            .unwrap();
        a_datagram_comes(&mut rig, &receiver);
        drop(namespace);
        let before = first(&agent).errors;
        wait_for("losses", || {
            let Packets { packets, .. } = packets(20, 64);
            rig.look(&packets);
            first(&agent).errors > before
        });
    }
    let stats = agent.stop();
    // One that came back refused, because nobody listened there yet, is both.
    let CollectorStats { sent, errors, .. } = stats.collectors[0];
    assert!(
        sent <= stats.datagrams && sent + errors >= stats.datagrams,
        "{sent} and {errors} of {}",
        stats.datagrams
    );
    assert_eq!(
        (stats.samples_sent[0], rig.lost()),
        (rig.taken(), 0),
        "no sample waited for it"
    );
}

#[test]
fn a_name_that_is_not_known_now_is_found_later() {
    with_own_hosts("inside_a_name_is_found_once_it_is_known");
}

#[test]
#[ignore = "run by the test above, where /etc/hosts is its own"]
fn inside_a_name_is_found_once_it_is_known() {
    let Some(hosts) = std::env::var_os("WEIR_HOSTS") else {
        return;
    };
    let (receiver, healthy) = (Receiver::new(), Receiver::new());
    let port = receiver.address().port();
    let mut rig = Rig::new(1, 1);
    let agent = start(
        &[
            Target::new("collector.invalid".into(), port),
            healthy.address().into(),
        ],
        &mut rig,
    );
    trouble_is(&mut rig, &agent, "cannot be looked up");
    assert_eq!(first(&agent).address, None);
    // It is reported all the time, also between two tries.
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        a_datagram_comes(&mut rig, &healthy);
        assert!(first(&agent).last_error.is_some());
    }
    std::fs::OpenOptions::new()
        .append(true)
        .open(hosts)
        .unwrap()
        .write_all(b"127.0.0.1 collector.invalid\n")
        .unwrap();
    a_datagram_comes(&mut rig, &receiver);
    wait_for("its address", || {
        first(&agent).address == Some(receiver.address())
    });
}

#[test]
fn a_name_that_stands_for_another_address_is_followed() {
    with_own_hosts("inside_a_name_is_followed_and_what_works_is_kept");
}

/// A name's address changes while datagrams go there; then the name is no longer known.
#[test]
#[ignore = "run by the test above, where /etc/hosts is its own"]
fn inside_a_name_is_followed_and_what_works_is_kept() {
    let Some(hosts) = std::env::var_os("WEIR_HOSTS") else {
        return;
    };
    // Beginning to end without a moment in which there is nothing.
    let hosts_are = |lines: &str| {
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .open(&hosts)
            .unwrap();
        file.write_all(format!("{lines:<99}\n").as_bytes()).unwrap();
    };
    let before = Receiver::at("127.0.0.1:0".parse().unwrap());
    let after = Receiver::at(SocketAddr::new(
        "127.0.0.2".parse().unwrap(),
        before.address().port(),
    ));
    let port = before.address().port();
    hosts_are("127.0.0.1 collector.invalid");
    let mut rig = Rig::new(1, 1);
    let agent = start(&[Target::new("collector.invalid".into(), port)], &mut rig);
    a_datagram_comes(&mut rig, &before);
    // Those that came before there was a socket.
    let errors = first(&agent).errors;
    // One of two addresses: the one that is known is kept.
    hosts_are("127.0.0.2 collector.invalid\n127.0.0.1 collector.invalid");
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(first(&agent).address, Some(before.address()));
    hosts_are("127.0.0.2 collector.invalid");
    a_datagram_comes(&mut rig, &after);
    wait_for("its address", || {
        first(&agent).address == Some(after.address())
    });
    // Nobody knows the name: datagrams go where they went.
    hosts_are("127.0.0.1 localhost");
    std::thread::sleep(Duration::from_secs(12));
    let sent = first(&agent).sent;
    a_datagram_comes(&mut rig, &after);
    let stats = agent.stop();
    assert!(
        stats.collectors[0].sent > sent && stats.collectors[0].last_error.is_none(),
        "{:?}",
        stats.collectors
    );
    assert_eq!(stats.collectors[0].errors, errors);
}

/// What tshark sees of the first datagram: source address and DSCP.
#[test]
fn datagrams_come_from_the_source_and_carry_the_class() {
    if !may_make_namespaces() || Command::new("tshark").arg("-v").output().is_err() {
        eprintln!("skipped: it needs namespaces and tshark");
        return;
    }
    let namespace = NetNs::new().unwrap();
    let mut rig = Rig::new(1, 1);
    let receiver = namespace
        .run(|| Receiver::at("127.0.0.1:0".parse().unwrap()))
        .unwrap();
    let target = Target {
        source: Some("127.0.0.2".parse().unwrap()),
        dscp: 16,
        device: Some("lo".to_owned()),
        ..Target::from(receiver.address())
    };
    let wanted = ["-T", "fields", "-e", "ip.src", "-e", "ip.dsfield.dscp"];
    let filter = format!("udp dst port {}", receiver.address().port());
    let mut tshark = namespace.command("tshark");
    tshark
        .args(["-l", "-n", "-i", "lo", "-c", "1", "-f", &filter])
        .args(wanted)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut tshark = tshark.spawn().unwrap();
    let agent = namespace.run(|| start(&[target], &mut rig)).unwrap();
    let Packets { packets, .. } = packets(20, 64);
    wait_for("tshark to see one", || {
        rig.look(&packets);
        std::thread::sleep(Duration::from_millis(20));
        tshark.try_wait().unwrap().is_some()
    });
    let output = tshark.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "127.0.0.2\t16"
    );
    assert_eq!(agent.stop().collectors[0].errors, 0);
}

#[test]
fn a_device_that_is_not_there_is_named_and_used_once_it_is() {
    if !may_make_namespaces() {
        return;
    }
    let namespace = NetNs::new().unwrap();
    let mut rig = Rig::new(1, 1);
    // Whoever listens at the other end of a cable gets it, however the tables are.
    let target = Target {
        device: Some("left".to_owned()),
        ..Target::new("10.7.0.2".into(), 6343)
    };
    let agent = namespace.run(|| start(&[target], &mut rig)).unwrap();
    trouble_is(&mut rig, &agent, "left cannot be sent through");
    let ip = |words: &[&str]| {
        assert!(
            namespace
                .command("ip")
                .args(words)
                .status()
                .unwrap()
                .success(),
            "ip {words:?}"
        )
    };
    let far = NetNs::new().unwrap();
    let beyond = far.command("sleep").arg("30").spawn().unwrap();
    ip(&[
        "link",
        "add",
        "left",
        "type",
        "veth",
        "peer",
        "name",
        "right",
        "netns",
        &beyond.id().to_string(),
    ]);
    ip(&["address", "add", "10.7.0.1/24", "dev", "left"]);
    ip(&["link", "set", "left", "up"]);
    for words in [
        ["address", "add", "10.7.0.2/24", "dev", "right"],
        ["link", "set", "dev", "right", "up"],
    ] {
        assert!(far.command("ip").args(words).status().unwrap().success());
    }
    let receiver = far
        .run(|| Receiver::at("0.0.0.0:6343".parse().unwrap()))
        .unwrap();
    a_datagram_comes(&mut rig, &receiver);
    drop(agent);
    let mut beyond = beyond;
    beyond.kill().unwrap();
    beyond.wait().unwrap();
}

/// A name server, as much of one as a test needs: each answer is made by hand.
struct NameServer {
    address: SocketAddr,
    stop: std::sync::Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl NameServer {
    /// Says to every question that the service is on `localhost`, at the port that `port` says at that moment; 0 is nowhere.
    fn new(port: std::sync::Arc<std::sync::atomic::AtomicU16>) -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let (address, stop) = (
            socket.local_addr().unwrap(),
            std::sync::Arc::new(AtomicBool::new(false)),
        );
        let stopped = stop.clone();
        let serve = move || {
            let mut question = [0; 512];
            while !stopped.load(Ordering::Acquire) {
                let Ok((length, from)) = socket.recv_from(&mut question) else {
                    continue;
                };
                let asked = &question[12..length];
                assert_eq!(
                    asked, b"\x06_sflow\x04_udp\x07example\0\0\x21\0\x01",
                    "SRV, IN"
                );
                let port = port.load(Ordering::Acquire);
                let mut answer = question[..2].to_vec();
                answer.extend([0x81, 0x80, 0, 1, 0, u8::from(port != 0), 0, 0, 0, 0]);
                answer.extend(asked);
                if port != 0 {
                    // The name is the question's; SRV, IN, for a second, 17 octets: priority, weight, port, host.
                    answer.extend([0xc0, 12, 0, 33, 0, 1, 0, 0, 0, 1, 0, 17, 0, 10, 0, 0]);
                    answer.extend(port.to_be_bytes());
                    answer.extend(b"\x09localhost\0");
                }
                let _ = socket.send_to(&answer, from);
            }
        };
        NameServer {
            address,
            stop,
            thread: Some(std::thread::spawn(serve)),
        }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            assert!(
                thread.join().is_ok() || std::thread::panicking(),
                "a question was not what it should be"
            );
        }
    }
}

#[test]
fn collectors_that_a_domain_announces_come_and_go_beside_those_listed() {
    let (listed, announced, other) = (Receiver::new(), Receiver::new(), Receiver::new());
    let port = std::sync::Arc::new(std::sync::atomic::AtomicU16::new(
        announced.address().port(),
    ));
    let server = NameServer::new(port.clone());
    let mut rig = Rig::new(1, 1);
    let dns_sd = Some(DnsSd {
        domain: Some("example".to_owned()),
        servers: vec![server.address],
    });
    let config = AgentConfig {
        dns_sd,
        ..config(&[listed.address()])
    };
    let agent = Agent::start(config, vec![rig.give_source()], Interfaces::of(Vec::new())).unwrap();
    a_datagram_comes(&mut rig, &announced);
    a_datagram_comes(&mut rig, &listed);
    wait_for("both", || agent.stats().collectors.len() == 2);
    // An answer is believed for ten seconds at least, however short it says.
    port.store(other.address().port(), Ordering::Release);
    a_datagram_comes(&mut rig, &other);
    let stats = agent.stop();
    assert_eq!(stats.discovery, None);
    let hosts: Vec<String> = stats
        .collectors
        .iter()
        .map(|it| it.target.to_string())
        .collect();
    assert_eq!(
        hosts,
        [
            listed.address().to_string(),
            format!("localhost:{}", other.address().port())
        ]
    );
}

#[test]
fn a_domain_that_cannot_be_asked_is_reported_and_disturbs_nobody() {
    let listed = Receiver::new();
    let nobody = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut rig = Rig::new(1, 1);
    let dns_sd = Some(DnsSd {
        domain: Some("example".to_owned()),
        servers: vec![nobody],
    });
    let config = AgentConfig {
        dns_sd,
        ..config(&[listed.address()])
    };
    let agent = Agent::start(config, vec![rig.give_source()], Interfaces::of(Vec::new())).unwrap();
    wait_for("the trouble", || {
        agent
            .stats()
            .discovery
            .is_some_and(|trouble| trouble.contains("127.0.0.1") && trouble.contains("refused"))
    });
    a_datagram_comes(&mut rig, &listed);
    assert_eq!(agent.stop().collectors[0].errors, 0);
}
