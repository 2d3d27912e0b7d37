//! IPv6 through the program itself, in network namespaces that the test makes: Linux hosts ask, answer, trace and
//! shrink their packets.
//!
//! Skipped with one line where no lab can be made (not root).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_netlink::lab::{FAR, Lab, NEAR, ROUTER, Running, has_program, preflight};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(30);

/// Two hosts and a running router between them, fd00:1::/64 and fd00:2::/64.
struct Bench {
    lab: Lab,
    router: Option<Running>,
    folder: PathBuf,
}

impl Bench {
    /// A router whose second interface has `far`, with `more` lines of configuration. `None`, and a line that says why,
    /// where no lab can be made.
    fn start(name: &str, far: &str, more: &str) -> Option<Bench> {
        if let Err(why) = preflight().and_then(|()| {
            if has_program("ping") {
                Ok(())
            } else {
                Err("no ping".into())
            }
        }) {
            eprintln!("skipped: {why}");
            return None;
        }
        let lab = Lab::two_hosts().ipv6().build().unwrap();
        let folder = std::env::temp_dir().join(format!("weir-six-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let config = format!(
            "interfaces:
  xe0: {{ device: {{ driver: af-xdp, name: port-a }}, addresses: [ 10.1.0.1/24, 'fd00:1::1/64' ] }}
  xe1: {{ device: {{ driver: af-xdp, name: port-b }}, {far} }}
{more}
"
        );
        std::fs::write(folder.join("weir.yaml"), config).unwrap();
        let mut bench = Bench {
            lab,
            router: None,
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

    /// What `weir ARGUMENTS --json` says.
    fn ask(&self, arguments: &[&str]) -> Value {
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

    /// The same of a program that must end well.
    fn on_near(&self, command: &str) -> String {
        let (well, said) = self.on(NEAR, command);
        assert!(
            well,
            "{command}: {said}; {:#}",
            self.ask(&["show", "errors", "--json"])
        );
        said
    }

    /// Waits until `address` answers: addresses are used once nobody else has them.
    fn wait_for(&self, address: &str) {
        let until = Instant::now() + LIMIT;
        while !self.on(NEAR, &format!("ping -c 1 -W 1 {address}")).0 {
            assert!(
                Instant::now() < until,
                "{address} does not answer; {:#}",
                self.ask(&["show", "errors", "--json"])
            );
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn hosts_reach_each_other_and_the_router() {
    let Some(mut bench) = Bench::start("reach", "addresses: [ 'fd00:2::1/64' ]", "") else {
        return;
    };
    bench.wait_for("fd00:2::2");
    for size in [56, 1400, 4000] {
        let said = bench.on_near(&format!("ping -c 5 -i 0.05 -W 2 -s {size} fd00:2::2"));
        assert!(
            said.contains(" 0% packet loss") && said.contains("ttl=63"),
            "{said}"
        );
    }
    // Own addresses, on this side, on the other, of the link; and the group of all routers.
    for own in [
        "fd00:1::1",
        "fd00:2::1",
        "fe80::ff:fe00:1a%eth0",
        "ff02::2%eth0",
    ] {
        let said = bench.on_near(&format!("ping -c 2 -i 0.05 -W 2 {own}"));
        assert!(
            said.contains(" 0% packet loss") && said.contains("ttl=64"),
            "{own}: {said}"
        );
    }
    let (well, said) = bench.on(NEAR, "ping -c 1 -W 2 fd00:77::1");
    assert!(
        !well && said.contains("Destination unreachable: No route"),
        "{said}"
    );
    let (well, said) = bench.on(NEAR, "ping -c 1 -W 5 fd00:2::77");
    assert!(
        !well && said.contains("Destination unreachable: Address unreachable"),
        "{said}"
    );
    if has_program("traceroute") {
        let hops = bench.on_near("traceroute -6 -n -q 1 -w 2 fd00:2::2");
        assert!(
            hops.contains(" 1  fd00:1::1 ") && hops.contains(" 2  fd00:2::2 "),
            "{hops}"
        );
    }
    if has_program("iperf3") {
        let server = bench
            .lab
            .host(FAR)
            .unwrap()
            .spawn("iperf3", &["-s", "-1", "--forceflush"])
            .unwrap();
        let until = Instant::now() + LIMIT;
        while !server.stdout_so_far().contains("Server listening") && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let report: Value =
            serde_json::from_str(&bench.on_near("iperf3 -6 -c fd00:2::2 -t 2 -J")).unwrap();
        assert!(
            report["end"]["sum_received"]["bits_per_second"].as_f64() > Some(10e6),
            "{report:#}"
        );
    }
    let done = bench.router.take().unwrap().interrupt().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
}

#[test]
fn a_packet_that_is_too_big_makes_linux_send_shorter_ones() {
    let Some(bench) = Bench::start("mtu", "mtu: 1400, addresses: [ 'fd00:2::1/64' ]", "") else {
        return;
    };
    bench.wait_for("fd00:2::2");
    let (_, said) = bench.on(NEAR, "ping -c 2 -i 0.2 -W 1 -M do -s 1400 fd00:2::2");
    assert!(
        said.contains("mtu=1400") || said.contains("mtu: 1400"),
        "{said}"
    );
    let (_, route) = bench.on(NEAR, "ip -6 route get fd00:2::2");
    assert!(route.contains("mtu 1400"), "{route}");
    let said = bench.on_near("ping -c 3 -i 0.05 -W 2 -s 1400 fd00:2::2");
    assert!(
        said.contains(" 0% packet loss"),
        "in pieces it gets there: {said}"
    );
}

#[test]
fn hosts_configure_themselves_by_what_the_router_advertises() {
    let far = "addresses: [ 'fd00:2::1/64' ], router-advertisements: { interval: 4, lifetime: 60 }";
    let Some(bench) = Bench::start("advertised", far, "") else {
        return;
    };
    let host = bench.lab.host(FAR).unwrap();
    // A host that knows nothing but its link-local address, and listens.
    for command in [
        "ip -6 address flush dev eth0 scope global",
        "ip -6 route flush default",
    ] {
        let _ = bench.on(FAR, command);
    }
    host.set_parameter("ipv6/conf/eth0/accept_ra", "2").unwrap();
    host.set_parameter("ipv6/conf/eth0/autoconf", "1").unwrap();
    let until = Instant::now() + LIMIT;
    let (mut addresses, mut routes) = (String::new(), String::new());
    while !(addresses.contains("fd00:2::ff:fe00:b/64")
        && routes.contains("default via fe80::ff:fe00:1b"))
    {
        assert!(
            Instant::now() < until,
            "the host does not configure itself: {addresses}{routes}"
        );
        std::thread::sleep(Duration::from_millis(100));
        addresses = bench.on(FAR, "ip -6 address show dev eth0").1;
        routes = bench.on(FAR, "ip -6 route show default").1;
    }
    bench.wait_for("fd00:2::ff:fe00:b");
    // On the other side nothing is advertised.
    assert!(
        !bench
            .on(NEAR, "ip -6 route show default")
            .1
            .contains("proto ra")
    );
}

#[test]
fn ipv4_goes_by_an_ipv6_next_hop() {
    let Some(bench) = Bench::start(
        "next-hop",
        "addresses: [ 'fd00:2::1/64' ]",
        "routes: [ { prefix: 198.51.100.0/24, via: 'fd00:2::2' } ]",
    ) else {
        return;
    };
    bench.wait_for("fd00:2::2");
    for command in [
        "ip address add 198.51.100.1/32 dev lo",
        "ip route replace 10.1.0.0/24 via inet6 fd00:2::1 dev eth0",
    ] {
        let (well, said) = bench.on(FAR, command);
        assert!(well, "{command}: {said}");
    }
    let said = bench.on_near("ping -c 5 -i 0.05 -W 2 198.51.100.1");
    assert!(
        said.contains(" 0% packet loss") && said.contains("ttl=63"),
        "{said}"
    );
}

#[test]
fn an_address_that_another_station_has_is_not_used_and_shown() {
    let Some(bench) = Bench::start(
        "duplicate",
        "addresses: [ 'fd00:2::1/64', 'fd00:2::2/64' ]",
        "",
    ) else {
        return;
    };
    bench.wait_for("fd00:2::1");
    let until = Instant::now() + LIMIT;
    let mut interface = Value::Null;
    while interface["duplicate"] != serde_json::json!(["fd00:2::2"])
        || !interface["tentative"].is_null()
    {
        assert!(
            Instant::now() < until,
            "the host at the far end has fd00:2::2, and says so: {interface:#}"
        );
        std::thread::sleep(Duration::from_millis(50));
        interface = bench.ask(&["show", "interface", "xe1", "--json"])["interfaces"][0].take();
    }
    let said = |command: &[&str]| {
        let output = std::process::Command::new(WEIR)
            .args(["--socket", &bench.socket()])
            .args(command)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for command in [
        &["show", "interface", "xe1"][..],
        &["show", "interface", "addr", "xe1"],
    ] {
        assert!(
            said(command).contains("fd00:2::2/64 (duplicate: not used, another station has it)"),
            "{}",
            said(command)
        );
    }
    // The router does not answer in the place of the host: neither for the address nor to it.
    let (_, said) = bench.on(FAR, "ping -c 2 -i 0.1 -W 1 -I fd00:2::2 fd00:2::1");
    assert!(
        said.contains(" 0% packet loss"),
        "the host keeps its address: {said}"
    );
    let (answered, said) = bench.on(NEAR, "ping -c 1 -W 1 fd00:2::2");
    assert!(
        !answered || said.contains("ttl=63"),
        "who answers is the host: {said}"
    );
}

/// A port without an address of its own speaks with that of a loopback; its neighbour is reached by a route that names both.
#[test]
fn an_unnumbered_port_forwards_and_answers() {
    let more = "loopbacks: { loop0: { addresses: [ 'fd00:9::1/128' ] } }
routes: [ { prefix: 'fd00:2::2/128', via: [ { next-hop: 'fd00:2::2', interface: xe1 } ] } ]";
    let Some(bench) = Bench::start("unnumbered", "unnumbered: loop0", more) else {
        return;
    };
    let (well, said) = bench.on(
        FAR,
        "ip -6 route replace default via fe80::ff:fe00:1b dev eth0",
    );
    assert!(well, "{said}");
    bench.wait_for("fd00:2::2");
    let said = bench.on_near("ping -c 5 -i 0.05 -W 2 fd00:2::2");
    assert!(
        said.contains(" 0% packet loss") && said.contains("ttl=63"),
        "{said}"
    );
    let (_, said) = bench.on(FAR, "ping -c 3 -i 0.05 -W 2 fd00:9::1");
    assert!(
        said.contains(" 0% packet loss") && said.contains("ttl=64"),
        "{said}"
    );
    // What the router says by that port comes from the address that it borrowed.
    let (_, said) = bench.on(FAR, "ping -c 1 -W 2 fd00:77::1");
    assert!(
        said.contains("From fd00:9::1") && said.contains("No route"),
        "{said}"
    );
}

#[test]
fn routes_are_shown_down_to_the_wire() {
    let more = "vrfs: { red: { table: 10 } }
routes:
  - { prefix: 'fd00:77::/48', via: [ { next-hop: 'fd00:99::1', next-hop-table: default } ] }
  - { prefix: 'fd00:99::/48', via: 'fd00:2::2' }
  - { vrf: red, prefix: 198.51.100.0/24, via: prohibit }";
    let Some(bench) = Bench::start("shown", "addresses: [ 'fd00:2::1/64' ]", more) else {
        return;
    };
    bench.wait_for("fd00:2::2");
    let fib = bench.ask(&["show", "ip6", "fib", "fd00:77::1", "--json"]);
    let (route, path) = (&fib["routes"][0], &fib["routes"][0]["paths"][0]);
    assert_eq!(
        (&route["prefix"], &route["next_hops"][0]["address"]),
        (&"fd00:77::/48".into(), &"fd00:99::1".into()),
        "{fib:#}"
    );
    assert_eq!(
        (&path["next_hop"], &path["interface"], &path["adjacency"]),
        (&"fd00:2::2".into(), &"xe1".into(), &"complete".into())
    );
    let number = path["adjacency_number"].as_u64().unwrap();
    let adjacencies = bench.ask(&["show", "adjacency", "xe1", "--json"]);
    let end = adjacencies["adjacencies"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["number"] == number)
        .unwrap();
    assert_eq!(
        (&end["kind"], &end["mac"], &end["mtu"]),
        (&"neighbor".into(), &path["mac"], &1500.into()),
        "{adjacencies:#}"
    );
    let alone = bench.ask(&["show", "adjacency", &number.to_string(), "--json"]);
    assert_eq!(
        alone["adjacencies"].as_array().unwrap().as_slice(),
        std::slice::from_ref(end),
        "{alone:#}"
    );
    for (command, families) in [("ip", "."), ("ip6", ":")] {
        let fib = bench.ask(&["show", command, "fib", "--json"]);
        let all = fib["routes"].as_array().unwrap();
        assert!(
            all.iter()
                .all(|route| route["prefix"].as_str().unwrap().contains(families))
                && !all.is_empty(),
            "{fib:#}"
        );
    }
    for command in [
        &["show", "ip", "fib", "table", "red", "--json"][..],
        &[
            "show",
            "ip",
            "fib",
            "--table",
            "red",
            "198.51.100.7",
            "--json",
        ],
    ] {
        let fib = bench.ask(command);
        let route = &fib["routes"][0];
        let seen = (
            &route["vrf"],
            &route["prefix"],
            &route["paths"][0]["adjacency"],
        );
        assert_eq!(
            seen,
            (&"red".into(), &"198.51.100.0/24".into(), &"prohibit".into()),
            "{fib:#}"
        );
    }
    let summary = bench.ask(&["show", "ip6", "fib", "summary", "--json"]);
    assert!(
        summary["tables"]
            .as_array()
            .unwrap()
            .iter()
            .all(|table| table["family"] == "ipv6"),
        "{summary:#}"
    );
}
