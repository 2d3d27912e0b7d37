//! Two routers that meet over shared memory, one master and one slave.

use weir_netlink::lab::{FAR, Lab, NEAR, ROUTER, has_program, preflight};

use crate::router::{AT_HAND, Folder, LONG, WEIR, Weir, wait_for};

/// How many packets each generator makes.
const PACKETS: u64 = 20_000;

/// One of two routers alike: what its generator makes is routed over the memif to the other one, what
/// comes from there to a port that swallows it. Rings hold what is made in 0.8 seconds, and no packet
/// changes workers, whose ring between them holds less.
fn half(socket: &str, role: &str, own: u8, other: u8) -> String {
    format!(
        "interfaces:
  m0:
    device: {{ driver: memif, socket: {socket}, id: 3, role: {role}, secret: sesame, queues: 2, ring-size: 8192 }}
    addresses: [ 192.0.2.{own}/24 ]
    mac: 02:00:00:00:00:0{own}
    rx-queue-workers: [ 0, 1 ]
  sink: {{ device: {{ driver: 'null' }}, addresses: [ 10.{own}.0.1/24 ], rx-queue-workers: [ 0 ] }}
neighbors:
  - {{ interface: m0, address: 192.0.2.{other}, mac: 02:00:00:00:00:0{other} }}
  - {{ interface: sink, address: 10.{own}.0.2, mac: 02:00:00:00:01:0{own} }}
routes:
  - {{ prefix: 10.{other}.0.0/16, via: 192.0.2.{other} }}
workers: {{ count: 2 }}
buffers: {{ per-numa: 65536, hugepages: off }}"
    )
}

/// The generator, which begins at once, for when the link is up.
fn generator(other: u8) -> String {
    format!(
        "interfaces:
  gen:
    device: {{ driver: generator, streams: [ {{ name: a, limit: {PACKETS}, rate: 10000, source: 172.16.0.2-172.16.3.255, destination: 10.{other}.0.2 }} ] }}
    addresses: [ 172.16.0.1/16 ]
    rx-queue-workers: [ 0 ]
"
    )
}

fn meet(one: &Weir, other: &Weir) {
    wait_for("both ends are up", || {
        one.link_is_up("m0") && other.link_is_up("m0")
    });
}

#[test]
fn routed_both_ways_nothing_is_lost() {
    let folder = Folder::new();
    let socket = folder.file("memif.sock");
    let master = Weir::start(&folder, "master", &half(&socket, "master", 1, 2));
    let slave = Weir::start(&folder, "slave", &half(&socket, "slave", 2, 1));
    meet(&master, &slave);
    // Whether the slave has offered its buffers yet is not reported: the first packets may come too early.
    master.change("interfaces:\n", &generator(2));
    slave.change("interfaces:\n", &generator(1));
    for (from, to) in [(&master, &slave), (&slave, &master)] {
        wait_for("all that was made is sent", || from.has_sent("m0", PACKETS));
        wait_for("all that was sent arrives", || {
            to.packets("m0").0 == from.packets("m0").1
        });
        wait_for("all that arrives is routed", || {
            to.packets("sink").1 == from.packets("m0").1
        });
        println!("{} packets routed over memif, 0 lost", to.packets("sink").1);
    }
    let (one, other) = (master.memif("m0"), slave.memif("m0"));
    for (port, role) in [(&one, "master"), (&other, "slave")] {
        assert_eq!(
            (
                port["role"].as_str(),
                port["id"].as_u64(),
                port["socket"].as_str()
            ),
            (Some(role), Some(3), Some(socket.as_str()))
        );
        assert_eq!(
            (
                port["rx_rings"].as_u64(),
                port["tx_rings"].as_u64(),
                port["ring_size"].as_u64()
            ),
            (Some(2), Some(2), Some(8192))
        );
        assert!(
            port["peer"].as_str().unwrap().starts_with("weir ")
                && port["zero_copy"] == (role == "slave"),
            "{port}"
        );
        // Both see the same two regions: the slave's rings and its packet memory.
        assert_eq!(port["region_bytes"], one["region_bytes"]);
    }
    assert_eq!(one["region_bytes"].as_array().unwrap().len(), 2);
    assert!(slave.shown("memif").contains("zero-copy") && master.shown("memif").contains("copy"));
    let hardware = slave.show("hardware").to_string();
    assert!(
        hardware.contains("slave, zero-copy") && hardware.contains("rx_packets_q1"),
        "{hardware}"
    );
    let placement = slave.show("rx-placement");
    let queues = placement["queues"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|queue| queue["interface"] == "m0");
    assert_eq!(
        queues
            .map(|queue| queue["worker"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [0, 1]
    );
    assert!(!slave.stop().contains("sesame") && !master.stop().contains("sesame"));
}

/// The slave's buffers are so small that each frame takes six of them.
#[test]
fn what_is_cross_connected_arrives_as_it_was_also_in_pieces() {
    let folder = Folder::new();
    let socket = folder.file("memif.sock");
    let text = |role: &str| {
        format!(
            "interfaces:
  m0: {{ device: {{ driver: memif, socket: {socket}, role: {role}, ring-size: 8192, buffer-size: 256 }}, l2xc: out }}
  out: {{ device: {{ driver: pcap, output: {} }} }}
",
            folder.file(&format!("{role}.pcap"))
        )
    };
    let (master, slave) = (
        Weir::start(&folder, "master", &text("master")),
        Weir::start(&folder, "slave", &text("slave")),
    );
    meet(&master, &slave);
    for weir in [&master, &slave] {
        weir.change(
            "interfaces:\n",
            "interfaces:
  gen:
    l2xc: m0
    device:
      driver: generator
      streams: [ { name: a, limit: 1000, rate: 5000, size: 1514, destination-mac: 02:00:00:00:00:99, source: 10.0.0.1-10.0.0.9, destination: 10.1.0.1 } ]
",
        );
    }
    for weir in [&master, &slave] {
        wait_for("all frames are sent", || weir.has_sent("m0", 1000));
    }
    for (from, to) in [(&master, &slave), (&slave, &master)] {
        wait_for("all frames arrive", || {
            to.packets("out").1 == from.packets("m0").1
        });
    }
    for (role, weir) in [("master", master), ("slave", slave)] {
        let frames = weir.packets("out").1 as usize;
        assert!(!weir.stop().contains("panic"));
        let capture = std::fs::read(folder.file(&format!("{role}.pcap"))).unwrap();
        assert_eq!(capture.len(), 24 + frames * (16 + 1514), "{role}");
        for frame in capture[24..].chunks(16 + 1514) {
            assert_eq!(frame[16..22], [2, 0, 0, 0, 0, 0x99]);
            assert_eq!(frame[16 + 26..16 + 29], [10, 0, 0]);
        }
    }
}

#[test]
fn a_router_that_dies_and_returns_is_met_again_and_nothing_leaks() {
    for (survivor, dying) in [("master", "slave"), ("slave", "master")] {
        let folder = Folder::new();
        let socket = folder.file("memif.sock");
        let text = |role: &str| {
            format!(
                "interfaces:
  gen:
    l2xc: m0
    device: {{ driver: generator, streams: [ {{ name: a, rate: 3000, size: 200, source: 10.0.0.1, destination: 10.1.0.1 }} ] }}
  m0: {{ device: {{ driver: memif, socket: {socket}, role: {role}, ring-size: 4096 }}, l2xc: out }}
  out: {{ device: {{ driver: 'null' }} }}
"
            )
        };
        let weir = Weir::start(&folder, survivor, &text(survivor));
        assert!(!weir.link_is_up("m0"));
        let events = weir.follow(&folder);
        for round in 1..=3 {
            let peer = Weir::start(&folder, &format!("{dying}{round}"), &text(dying));
            wait_for("the peer is there", || weir.link_is_up("m0"));
            let (before, _) = weir.packets("m0");
            wait_for("traffic flows", || {
                weir.packets("m0").0 > before + 300 && peer.packets("m0").0 > 300
            });
            assert_eq!(weir.memif("m0")["connects"], round);
            peer.kill();
            wait_for("its death is noticed", || !weir.link_is_up("m0"));
            assert_eq!(weir.disconnects("m0", "peer_gone"), round);
            assert_eq!(
                weir.memif("m0")["last_disconnect"],
                "the peer closed the control channel or died"
            );
        }
        wait_for("all links are reported", || events.links("m0").len() >= 6);
        assert_eq!(events.links("m0"), ["up", "down"].repeat(3));
        // Once each: who came, why it went, and what became of the link.
        let log = weir.log();
        for line in [
            "m0: the peer is ",
            "m0: link is up",
            "m0: no peer: ",
            "m0: link is down",
        ] {
            assert_eq!(log.matches(line).count(), 3, "{line}: {log}");
        }
        // What was dropped meanwhile has a reason, and that is all that was.
        let drops = weir.drops();
        assert!(
            drops.as_object().unwrap().keys().all(|reason| [
                "tx-down",
                "tx-full",
                "interface-down"
            ]
            .contains(&reason.as_str())),
            "{drops}"
        );
        weir.change("rate: 3000", "rate: 1, limit: 1");
        wait_for("what the peers had is home", || {
            weir.buffers_in_use() <= AT_HAND
        });
    }
}

/// Two hosts on cables, a router at each, and shared memory between the routers.
#[test]
fn hosts_reach_each_other_over_two_routers() {
    if let Err(why) = preflight() {
        eprintln!("skipped: {why}");
        return;
    }
    if !has_program("ping") || !has_program("iperf3") {
        return;
    }
    let lab = Lab::two_hosts().build().unwrap();
    let folder = Folder::new();
    let socket = folder.file("memif.sock");
    let run = |role: &str, device: &str, own: u8, other: u8| {
        let config = format!(
            "interfaces:
  xe0: {{ device: {{ driver: af-xdp, name: {device} }}, addresses: [ 10.{own}.0.1/24 ] }}
  m0: {{ device: {{ driver: memif, socket: {socket}, role: {role} }}, addresses: [ 192.0.2.{own}/24 ] }}
routes: [ {{ prefix: 10.{other}.0.0/16, via: 192.0.2.{other} }} ]
history: {{ directory: {} }}
",
            folder.file(&format!("{role}.history"))
        );
        std::fs::write(folder.file(role), config).unwrap();
        let (file, api) = (folder.file(role), folder.file(&format!("{role}.sock")));
        let mut running = lab
            .host(ROUTER)
            .unwrap()
            .spawn(WEIR, &["run", "-c", &file, "--socket", &api])
            .unwrap();
        running.wait_for_output("runs:", LONG).unwrap();
        running
    };
    let (master, slave) = (run("master", "port-a", 1, 2), run("slave", "port-b", 2, 1));
    let near = |program: &str, arguments: &[&str]| {
        lab.host(NEAR)
            .unwrap()
            .run(program, arguments, LONG)
            .unwrap()
    };
    wait_for("the first answer", || {
        near("ping", &["-c", "1", "-W", "1", "10.2.0.2"]).success()
    });
    let ping = near(
        "ping",
        &[
            "-c", "20", "-i", "0.05", "-W", "2", "-s", "1400", "10.2.0.2",
        ],
    );
    // Two routers on the way.
    assert!(
        ping.stdout.contains(" 0% packet loss") && ping.stdout.contains("ttl=62"),
        "{}",
        ping.stdout
    );
    let mut server = lab
        .host(FAR)
        .unwrap()
        .spawn("iperf3", &["-s", "-1", "--forceflush"])
        .unwrap();
    server.wait_for_output("listening", LONG).unwrap();
    let report = near("iperf3", &["-c", "10.2.0.2", "-t", "2", "-J"]);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let rate = report["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .unwrap_or(0.0);
    assert!(rate > 1e6, "{report}");
    println!("iperf3 over two routers: {:.0} Mbit/s", rate / 1e6);
    for running in [slave, master] {
        assert_eq!(running.interrupt().unwrap().status.code(), Some(0));
    }
}
