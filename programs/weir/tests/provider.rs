//! A provider's network of three routers, PE–P–PE, in network namespaces: real veth, AF_XDP, workers that sleep.
//!
//! ```text
//! ce1 ─┐                                      ┌─ ce2      10.1.0.2 and fd00:1::2, 10.2.0.2 and fd00:2::2: routed
//!      pe1 ── 10.255.1.0/24 ── p ── 10.255.2.0/24 ── pe2
//! lan1 ┘                                      └─ lan2     10.9.0.11, 10.9.0.12: one Ethernet, by a pseudowire
//! ```
//!
//! IP goes under two labels: that of the path (100 eastward, 101 westward; p takes it off, as the last hop before the
//! egress) and that of the egress (500), which looks it up. P has no route to any customer.
//!
//! Skipped with one line where no lab can be made (not root).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_netlink::ethtool::Offload;
use weir_netlink::lab::{Cable, Lab, Port, Running, has_program, preflight};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(60);

/// Name and configuration of each router.
const ROUTERS: [(&str, &str); 3] = [
    (
        "pe1",
        "interfaces:
  core: { device: { driver: af-xdp, name: core }, mtu: 1600, addresses: [ 10.255.1.1/24, 'fd00:ff1::1/64' ], mpls: true }
  cust: { device: { driver: af-xdp, name: cust }, addresses: [ 10.1.0.1/24, 'fd00:1::1/64' ] }
  lan: { device: { driver: af-xdp, name: lan }, l2xc: pw0 }
  pw0: { l2xc: lan }
routes:
  - { prefix: 10.2.0.0/24, via: [ { next-hop: 10.255.1.2, labels: [ 100, 500 ] } ] }
  - { prefix: 'fd00:2::/64', via: [ { next-hop: 'fd00:ff1::2', labels: [ 100, 500 ] } ] }
mpls: { labels: [ { label: 500, lookup: default } ] }
pseudowires:
  pw0: { local-label: 1000, remote-label: 2000, via: [ { next-hop: 10.255.1.2, labels: [ 100 ] } ] }
",
    ),
    (
        "p",
        "interfaces:
  west: { device: { driver: af-xdp, name: west }, mtu: 1600, addresses: [ 10.255.1.2/24, 'fd00:ff1::2/64' ], mpls: true }
  east: { device: { driver: af-xdp, name: east }, mtu: 1600, addresses: [ 10.255.2.1/24, 'fd00:ff2::1/64' ], mpls: true }
mpls:
  labels:
    - { label: 100, via: 10.255.2.2 }
    - { label: 101, via: 10.255.1.1 }
",
    ),
    (
        "pe2",
        "interfaces:
  core: { device: { driver: af-xdp, name: core }, mtu: 1600, addresses: [ 10.255.2.2/24, 'fd00:ff2::2/64' ], mpls: true }
  cust: { device: { driver: af-xdp, name: cust }, addresses: [ 10.2.0.1/24, 'fd00:2::1/64' ] }
  lan: { device: { driver: af-xdp, name: lan } }
routes:
  - { prefix: 10.1.0.0/24, via: [ { next-hop: 10.255.2.1, labels: [ 101, 500 ] } ] }
  - { prefix: 'fd00:1::/64', via: [ { next-hop: 'fd00:ff2::1', labels: [ 101, 500 ] } ] }
mpls: { labels: [ { label: 500, lookup: default } ] }
pseudowires:
  pw0: { local-label: 2000, remote-label: 1000, via: [ { next-hop: 10.255.2.1, labels: [ 101 ] } ] }
bridgedomains:
  bd1: { interfaces: [ lan, pw0 ] }
",
    ),
];

/// The same with the customers in a table of their own at both ends, and an addressed loopback for each end: the way to the other
/// end is found by its loopback's, in the default table, which knows no customer. The Ethernet stays with no one.
const VPN: [(&str, &str); 3] = [
    (
        "pe1",
        "vrfs: { red: { table: 10 } }
interfaces:
  core: { device: { driver: af-xdp, name: core }, mtu: 1600, addresses: [ 10.255.1.1/24 ], mpls: true }
  cust: { device: { driver: af-xdp, name: cust }, vrf: red, addresses: [ 10.1.0.1/24, 'fd00:1::1/64' ] }
loopbacks: { loop0: { addresses: [ 10.255.0.1/32 ] } }
routes:
  - { prefix: 10.255.0.2/32, via: [ { next-hop: 10.255.1.2, labels: [ 100 ] } ] }
  - { vrf: red, prefix: 10.2.0.0/24, via: [ { next-hop: 10.255.0.2, next-hop-table: default, labels: [ 500 ] } ] }
  - { vrf: red, prefix: 'fd00:2::/64', via: [ { next-hop: 10.255.0.2, next-hop-table: default, labels: [ 500 ] } ] }
mpls: { labels: [ { label: 500, lookup: red } ] }
",
    ),
    ROUTERS[1],
    (
        "pe2",
        "vrfs: { red: { table: 10 } }
interfaces:
  core: { device: { driver: af-xdp, name: core }, mtu: 1600, addresses: [ 10.255.2.2/24 ], mpls: true }
  cust: { device: { driver: af-xdp, name: cust }, vrf: red, addresses: [ 10.2.0.1/24, 'fd00:2::1/64' ] }
loopbacks: { loop0: { addresses: [ 10.255.0.2/32 ] } }
routes:
  - { prefix: 10.255.0.1/32, via: [ { next-hop: 10.255.2.1, labels: [ 101 ] } ] }
  - { vrf: red, prefix: 10.1.0.0/24, via: [ { next-hop: 10.255.0.1, next-hop-table: default, labels: [ 500 ] } ] }
  - { vrf: red, prefix: 'fd00:1::/64', via: [ { next-hop: 10.255.0.1, next-hop-table: default, labels: [ 500 ] } ] }
mpls: { labels: [ { label: 500, lookup: red } ] }
",
    ),
];

/// The three routers, running, and the four customers' hosts.
struct Provider {
    routers: Vec<Running>,
    lab: Lab,
    folder: PathBuf,
}

impl Provider {
    fn start(test: &str, routers: [(&str, &str); 3]) -> Provider {
        let mut lab = Lab::new();
        for name in ["pe1", "p", "pe2", "ce1", "ce2", "lan1", "lan2"] {
            lab.add_host(name).unwrap();
        }
        for (one, its, other, others) in
            [("pe1", "core", "p", "west"), ("p", "east", "pe2", "core")]
        {
            let cable = Cable {
                mtu: 1600,
                ..Cable::new(Port::new(one, its), Port::new(other, others))
            };
            lab.connect(&cable).unwrap();
        }
        for side in [1u8, 2] {
            let (pe, network) = (format!("pe{side}"), u16::from(side));
            let host = |name: String| {
                Port::new(&name, "eth0")
                    .offload(Offload::TxChecksum, false)
                    .offload(Offload::GenericReceive, true)
            };
            let six = |last| IpAddr::from(Ipv6Addr::new(0xfd00, network, 0, 0, 0, 0, 0, last));
            let ce = host(format!("ce{side}"))
                .address(Ipv4Addr::new(10, side, 0, 2), 24)
                .address(six(2), 64);
            lab.connect(&Cable::new(Port::new(&pe, "cust"), ce))
                .unwrap();
            lab.default_route(&format!("ce{side}"), Ipv4Addr::new(10, side, 0, 1))
                .unwrap();
            lab.default_route(&format!("ce{side}"), six(1)).unwrap();
            let lan = host(format!("lan{side}")).address(Ipv4Addr::new(10, 9, 0, 10 + side), 24);
            lab.connect(&Cable::new(Port::new(&pe, "lan"), lan))
                .unwrap();
        }
        let folder =
            std::env::temp_dir().join(format!("weir-provider-{test}-{}", std::process::id()));
        let mut provider = Provider {
            routers: Vec::new(),
            lab,
            folder,
        };
        for (name, config) in routers {
            provider.run(name, config);
        }
        provider
    }

    fn run(&mut self, name: &str, config: &str) {
        let folder = self.folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let history = folder.join("history").display().to_string();
        std::fs::write(
            folder.join("weir.yaml"),
            format!("{config}workers: {{idle: sleep}}\nhistory: {{directory: {history}}}\n"),
        )
        .unwrap();
        let (config, socket) = (
            folder.join("weir.yaml").display().to_string(),
            self.socket(name),
        );
        let mut running = self
            .lab
            .host(name)
            .unwrap()
            .spawn(WEIR, &["run", "-c", &config, "--socket", &socket])
            .unwrap();
        running.wait_for_output("runs:", LIMIT).unwrap();
        self.routers.push(running);
    }

    fn socket(&self, router: &str) -> String {
        self.folder
            .join(router)
            .join("weir.sock")
            .display()
            .to_string()
    }

    /// What `weir ARGUMENTS --json` says of a router.
    fn ask(&self, router: &str, arguments: &str) -> Value {
        let arguments = arguments.split(' ').chain(["--json"]);
        let output = std::process::Command::new(WEIR)
            .args(["--socket", &self.socket(router)])
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    /// What a program says on a host, and whether it ended well.
    fn on(&self, host: &str, command: &str) -> (bool, String) {
        let words: Vec<&str> = command.split(' ').collect();
        let done = self
            .lab
            .host(host)
            .unwrap()
            .run(words[0], &words[1..], LIMIT)
            .unwrap();
        (done.success(), format!("{}{}", done.stdout, done.stderr))
    }

    /// What was dropped, for a test that fails.
    fn drops(&self) -> String {
        ROUTERS
            .iter()
            .map(|(name, _)| format!("{name}: {:#}\n", self.ask(name, "show errors")))
            .collect()
    }

    /// Waits until a host answers another: addresses are used once nobody else has them, neighbours are found.
    fn wait_for(&self, host: &str, address: &str) {
        let until = Instant::now() + LIMIT;
        while !self.on(host, &format!("ping -c 1 -W 1 {address}")).0 {
            assert!(
                Instant::now() < until,
                "{address} does not answer {host}; {}",
                self.drops()
            );
        }
    }

    /// A TCP connection of a second; bits per second that arrived.
    fn throughput(&self, from: &str, to: &str, address: &str) -> f64 {
        let mut server = self
            .lab
            .host(to)
            .unwrap()
            .spawn("iperf3", &["-s", "-1", "--forceflush"])
            .unwrap();
        server.wait_for_output("Server listening", LIMIT).unwrap();
        let (well, said) = self.on(from, &format!("iperf3 -c {address} -t 1 -J"));
        assert!(well, "{address}: {said}; {}", self.drops());
        let report: Value = serde_json::from_str(&said).unwrap();
        drop(server.stop());
        report["end"]["sum_received"]["bits_per_second"]
            .as_f64()
            .unwrap_or(0.0)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.routers.clear();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// From host to host, by each service.
const WAYS: [(&str, &str, &str); 3] = [
    ("ce1", "ce2", "10.2.0.2"),
    ("ce1", "ce2", "fd00:2::2"),
    ("lan1", "lan2", "10.9.0.12"),
];

#[test]
fn customers_reach_one_another_over_labels() {
    if let Err(why) = preflight() {
        return eprintln!("skipped: {why}");
    }
    if !has_program("ping") {
        return;
    }
    let mut provider = Provider::start("labels", ROUTERS);
    for (from, _, address) in WAYS {
        provider.wait_for(from, address);
        for size in [56, 1400] {
            let (well, said) =
                provider.on(from, &format!("ping -c 5 -i 0.05 -W 2 -s {size} {address}"));
            assert!(
                well && said.contains(" 0% packet loss"),
                "{said}; {}",
                provider.drops()
            );
            // Uniform mode: every router of the path is a hop; an Ethernet has none.
            assert!(
                said.contains(if address.starts_with("10.9") {
                    "ttl=64"
                } else {
                    "ttl=61"
                }),
                "{said}"
            );
        }
    }
    if has_program("traceroute") {
        shows_labels(&provider);
    }
    if has_program("iperf3") {
        for (from, to, address) in WAYS {
            let bits = provider.throughput(from, to, address);
            assert!(bits > 1e6, "{address}: {bits} bit/s; {}", provider.drops());
            eprintln!("{address}: {:.0} Mbit/s", bits / 1e6);
        }
    }
    tells_what_it_does(&provider);
    for router in std::mem::take(&mut provider.routers) {
        let done = router.interrupt().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    }
}

/// 6VPE (RFC 4659) and its IPv4 kind (RFC 4364): the provider's own table knows no customer, and its routers have no IPv6 towards one
/// another. What an end says to a customer, or is asked by one from afar, goes by the customer's table.
#[test]
fn customers_of_a_vpn_reach_one_another_by_tables_of_their_own() {
    if let Err(why) = preflight() {
        return eprintln!("skipped: {why}");
    }
    if !has_program("ping") {
        return;
    }
    let mut provider = Provider::start("vpn", VPN);
    for (from, address, hops) in [
        ("ce1", "10.2.0.2", 61),
        ("ce1", "fd00:2::2", 61),
        // The far end's own addresses: a hop less.
        ("ce1", "10.2.0.1", 62),
        ("ce1", "fd00:2::1", 62),
        ("ce2", "10.1.0.1", 62),
        ("ce2", "fd00:1::1", 62),
    ] {
        provider.wait_for(from, address);
        for size in [56, 1400] {
            let (well, said) =
                provider.on(from, &format!("ping -c 3 -i 0.05 -W 2 -s {size} {address}"));
            assert!(
                well && said.contains(" 0% packet loss"),
                "{said}; {}",
                provider.drops()
            );
            assert!(said.contains(&format!("ttl={hops}")), "{said}");
        }
    }
    // Where a table of theirs knows no way, and where a packet is too long for the far link.
    for (address, says) in [
        ("10.77.0.1", "From 10.1.0.1"),
        ("fd00:77::1", "From fd00:1::1"),
    ] {
        let (_, said) = provider.on("ce1", &format!("ping -c 1 -W 2 {address}"));
        assert!(said.contains(says), "{said}; {}", provider.drops());
    }
    if has_program("traceroute") {
        for (program, destination, hops) in [
            (
                "traceroute",
                "10.2.0.2",
                ["10.1.0.1", "10.255.1.2", "10.255.2.2", "10.2.0.2"],
            ),
            (
                "traceroute -6",
                "fd00:2::2",
                ["fd00:1::1", "fd00:ff1::2", "fd00:2::1", "fd00:2::2"],
            ),
        ] {
            let (well, said) = provider.on(
                "ce1",
                &format!("{program} -e -n -q 1 -w 3 -m 8 {destination}"),
            );
            eprintln!("{said}");
            for hop in hops {
                assert!(
                    well && said.contains(hop),
                    "{hop}: {said}; {}",
                    provider.drops()
                );
            }
            assert!(
                said.contains("MPLS:L=100,E=0,S=0,T=1/L=500,E=0,S=1,T=1")
                    && said.contains("MPLS:L=500,E=0,S=1,T=1"),
                "{said}"
            );
        }
    }
    for router in std::mem::take(&mut provider.routers) {
        let done = router.interrupt().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    }
}

/// RFC 4950: each router on the path shows the labels under which the packet came.
fn shows_labels(provider: &Provider) {
    for (program, destination, hops) in [
        (
            "traceroute",
            "10.2.0.2",
            ["10.1.0.1", "10.255.1.2", "10.255.2.2", "10.2.0.2"],
        ),
        (
            "traceroute -6",
            "fd00:2::2",
            ["fd00:1::1", "fd00:ff1::2", "fd00:ff2::2", "fd00:2::2"],
        ),
    ] {
        let (well, said) = provider.on(
            "ce1",
            &format!("{program} -e -n -q 1 -w 3 -m 8 {destination}"),
        );
        let line = |hop: usize| {
            said.lines()
                .find(|line| line.trim_start().starts_with(&format!("{hop} ")))
                .unwrap_or_default()
        };
        for (number, hop) in hops.iter().enumerate() {
            assert!(
                well && line(number + 1).contains(hop),
                "{hop}: {said}; {}",
                provider.drops()
            );
        }
        assert!(
            line(2).contains("MPLS:L=100,E=0,S=0,T=1/L=500,E=0,S=1,T=1"),
            "{said}"
        );
        assert!(line(3).contains("MPLS:L=500,E=0,S=1,T=1"), "{said}");
        assert!(
            !line(1).contains("MPLS") && !line(4).contains("MPLS"),
            "{said}"
        );
    }
}

/// The chain from label to neighbour, and the pseudowire with what it counted.
fn tells_what_it_does(provider: &Provider) {
    let fib = provider.ask("p", "show mpls fib");
    let labels: Vec<_> = fib["labels"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["source"] == "static")
        .collect();
    assert_eq!(
        labels
            .iter()
            .map(|entry| entry["label"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [100, 101],
        "{fib:#}"
    );
    assert_eq!(
        (
            &labels[0]["paths"][0]["next_hop"],
            &labels[0]["paths"][0]["adjacency"]
        ),
        (&"10.255.2.2".into(), &"complete".into())
    );
    let (group, path) = (&labels[0]["group"], &labels[0]["paths"][0]);
    assert!(
        group["number"].as_u64() > Some(0)
            && group["buckets"] == 1
            && path["adjacency_number"].as_u64() > Some(0),
        "{fib:#}"
    );
    let one = provider.ask("pe1", "show mpls fib 500");
    assert_eq!(one["labels"][0]["lookup"], 0, "{one:#}");
    for (router, local, remote, path) in [("pe1", 1000, 2000, 100), ("pe2", 2000, 1000, 101)] {
        let all = provider.ask(router, "show pseudowire");
        let pseudowire = &all["pseudowires"][0];
        assert_eq!(
            (&pseudowire["interface"], &pseudowire["link"]),
            (&"pw0".into(), &"up".into()),
            "{all:#}"
        );
        assert_eq!(
            (&pseudowire["local_label"], &pseudowire["remote_label"]),
            (&local.into(), &remote.into())
        );
        assert_eq!(
            pseudowire["paths"][0]["labels"],
            serde_json::json!([path, remote]),
            "{all:#}"
        );
        let interfaces = provider.ask(router, "show interface pw0");
        let it = &interfaces["interfaces"][0];
        assert!(
            it["rx"]["packets"].as_u64() > Some(10) && it["tx"]["packets"].as_u64() > Some(10),
            "{interfaces:#}"
        );
        assert_eq!(it["kind"], "pseudowire");
    }
}
