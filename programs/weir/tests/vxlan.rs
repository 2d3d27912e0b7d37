//! VXLAN tunnels against the kernel's: a host behind a bridge domain, and two that are members of it through tunnels,
//! one over IPv4 and one over IPv6.
//!
//! Skipped with one line where no lab can be made (not root), or the kernel has no VXLAN.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use weir_netlink::ethtool::Offload;
use weir_netlink::lab::{Cable, Lab, Port, ROUTER, Running, has_program, preflight};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(30);

/// What the router runs: a bridge domain of a port and two tunnels, and its routed side.
const CONFIG: &str = "
interfaces:
  lan: {device: {driver: af-xdp, name: port-lan}}
  four: {device: {driver: af-xdp, name: port-four}, mtu: 1550, addresses: [192.0.2.1/24]}
  six: {device: {driver: af-xdp, name: port-six}, mtu: 1570, addresses: ['2001:db8::1/64']}
loopbacks: {loop0: {addresses: [10.9.0.1/24]}}
vxlan_tunnels:
  vxlan_tunnel4: {local: 192.0.2.1, remote: 192.0.2.2, vni: 100}
  vxlan_tunnel6: {local: '2001:db8::1', remote: '2001:db8::2', vni: 16777215}
bridgedomains: {bd1: {interfaces: [lan, vxlan_tunnel4, vxlan_tunnel6], bvi: loop0}}
";

struct Bench {
    router: Option<Running>,
    lab: Lab,
    folder: PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        drop(self.router.take());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Bench {
    /// The hosts with their ends of the tunnels; `None` where the kernel has no VXLAN.
    fn start() -> Option<Bench> {
        let mut lab = Lab::new();
        for host in [ROUTER, "lan", "four", "six"] {
            lab.add_host(host).unwrap();
        }
        let connect = |lab: &mut Lab, host: &str, port: Port| {
            // Else the kernel leaves its tunnels' checksums to a device that is none.
            let port = port
                .offload(Offload::TxChecksum, false)
                .offload(Offload::GenericReceive, true);
            let cable = Cable::new(Port::new(ROUTER, &format!("port-{host}")), port);
            lab.connect(&Cable { mtu: 1600, ..cable }).unwrap();
        };
        connect(
            &mut lab,
            "lan",
            Port::new("lan", "eth0").address(Ipv4Addr::new(10, 9, 0, 11), 24),
        );
        connect(
            &mut lab,
            "four",
            Port::new("four", "eth0").address(Ipv4Addr::new(192, 0, 2, 2), 24),
        );
        connect(
            &mut lab,
            "six",
            Port::new("six", "eth0").address("2001:db8::2".parse::<Ipv6Addr>().unwrap(), 64),
        );
        let ip = |host: &str, words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            lab.host(host).unwrap().run("ip", &words, LIMIT).unwrap()
        };
        let done = ip(
            "four",
            "link add vx0 type vxlan id 100 local 192.0.2.2 remote 192.0.2.1 dstport 4789",
        );
        if !done.status.success() {
            eprintln!("skipped: the kernel has no VXLAN: {}", done.stderr.trim());
            return None;
        }
        for (host, words) in [
            ("lan", "link set eth0 mtu 1500"),
            ("four", "addr add 10.9.0.14/24 dev vx0"),
            ("four", "link set vx0 up mtu 1500"),
            (
                "six",
                "link add vx0 type vxlan id 16777215 local 2001:db8::2 remote 2001:db8::1 dstport 4789",
            ),
            ("six", "addr add 10.9.0.16/24 dev vx0"),
            ("six", "link set vx0 up mtu 1500"),
        ] {
            let done = ip(host, words);
            assert!(done.status.success(), "{host}: ip {words}: {}", done.stderr);
        }
        let folder = std::env::temp_dir().join(format!("weir-vxlan-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let history = folder.join("history").display().to_string();
        std::fs::write(
            folder.join("weir.yaml"),
            format!("{CONFIG}history: {{directory: {history}}}\n"),
        )
        .unwrap();
        let mut bench = Bench {
            router: None,
            lab,
            folder,
        };
        let (config, socket) = (
            bench.folder.join("weir.yaml").display().to_string(),
            bench.socket(),
        );
        let router = bench
            .lab
            .host(ROUTER)
            .unwrap()
            .spawn(WEIR, &["run", "-c", &config, "--socket", &socket])
            .unwrap();
        bench
            .router
            .insert(router)
            .wait_for_output("runs:", LIMIT)
            .unwrap();
        Some(bench)
    }

    fn socket(&self) -> String {
        self.folder.join("weir.sock").display().to_string()
    }

    fn say(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new(WEIR)
            .args(["--socket", &self.socket()])
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn ask(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.say(arguments)).unwrap()
    }

    fn ping(&self, from: &str, to: &str, bytes: &str) -> String {
        let arguments = [
            "-c", "3", "-i", "0.1", "-W", "5", "-M", "do", "-s", bytes, to,
        ];
        self.lab
            .host(from)
            .unwrap()
            .run("ping", &arguments, LIMIT)
            .unwrap()
            .stdout
    }
}

#[test]
fn the_kernels_tunnels_are_members_of_a_bridge_domain() {
    if let Err(why) = preflight() {
        return eprintln!("skipped: {why}");
    }
    if !has_program("ping") || !has_program("ip") {
        return;
    }
    let Some(mut bench) = Bench::start() else {
        return;
    };
    // 1472 octets fill the MTU of 1500.
    for (from, to, bytes) in [
        ("lan", "10.9.0.14", "56"),
        ("lan", "10.9.0.16", "56"),
        ("lan", "10.9.0.14", "1472"),
        ("lan", "10.9.0.16", "1472"),
        ("four", "10.9.0.16", "1472"),
        ("six", "10.9.0.1", "1472"),
        ("four", "10.9.0.1", "8"),
    ] {
        let said = bench.ping(from, to, bytes);
        assert!(
            said.contains(" 0% packet loss") && said.contains("ttl=64"),
            "{from} to {to}, {bytes} octets: {said}"
        );
    }
    let l2fib = bench.ask(&["show", "l2fib", "bd1", "--json"]);
    let mut behind: Vec<_> = l2fib["stations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["interface"].as_str().unwrap())
        .collect();
    behind.sort_unstable();
    assert_eq!(
        behind,
        ["lan", "loop0", "vxlan_tunnel4", "vxlan_tunnel6"],
        "{l2fib}"
    );
    let tunnels = bench.ask(&["show", "vxlan", "tunnel", "--json"]);
    let four = &tunnels["tunnels"][0];
    assert_eq!(
        (&four["interface"], &four["vni"], &four["bridge"]),
        (&"vxlan_tunnel4".into(), &100.into(), &"bd1".into()),
        "{tunnels}"
    );
    assert_eq!(
        (&four["route"]["prefix"], &four["remote"]),
        (&"192.0.2.2/32".into(), &"192.0.2.2".into()),
        "{tunnels}"
    );
    let shown = bench.say(&["show", "vxlan", "tunnel", "vxlan_tunnel6"]);
    assert!(
        shown.contains("2001:db8::2") && shown.contains("16777215") && shown.contains("by six"),
        "{shown}"
    );
    for tunnel in ["vxlan_tunnel4", "vxlan_tunnel6"] {
        let interfaces = bench.ask(&["show", "interface", tunnel, "--json"]);
        let it = &interfaces["interfaces"][0];
        assert!(
            it["kind"] == "vxlan"
                && it["rx"]["packets"].as_u64() > Some(5)
                && it["tx"]["packets"].as_u64() > Some(5),
            "{interfaces}"
        );
    }

    let done = bench.router.take().unwrap().interrupt().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
}
