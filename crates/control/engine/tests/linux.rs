//! Linux as the control plane: a route that BIRD learns by BGP in a network namespace forwards packets here.
//!
//! ```text
//!  dataplane (named namespace)        router              far            near
//!  BIRD ── TAP wan, lan ──────── wan ═══════════════ w0 BIRD, 203.0.113.1
//!                                lan ══════════════ l0 bridge v0 ─── n0 ping
//! ```
//!
//! The links of the router are TAPs too. Needs root; what needs BIRD is skipped without it.

use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use weir_api::{Destinations, RouteCandidate, RouteQuery, RouteSource, RouteVerdict, Router as _};
use weir_config::check;
use weir_engine::{Options, Router};
use weir_netlink::netns::NetNs;

const PATIENCE: Duration = Duration::from_secs(40);

/// A namespace with a name, which goes with it.
struct Named(String);

impl Named {
    fn new(what: &str) -> Option<Named> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-{what}{number}-{}", std::process::id());
        ip(&["netns", "add", &name]).then(|| {
            ip(&["-n", &name, "link", "set", "lo", "up"]);
            Named(name)
        })
    }

    fn open(&self) -> NetNs {
        NetNs::open_named(&self.0).unwrap()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.0]);
    }
}

fn ip(arguments: &[&str]) -> bool {
    let output = Command::new("ip")
        .args(arguments)
        .stderr(Stdio::null())
        .status();
    output.is_ok_and(|status| status.success())
}

/// `ip` in a namespace, which must succeed.
fn ip_in(namespace: &NetNs, arguments: &str) {
    let output = namespace
        .command("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {error}");
}

/// A daemon that ends with the test, and its files.
struct Daemon {
    child: Child,
    folder: PathBuf,
}

impl Daemon {
    fn bird(namespace: &NetNs, name: &str, config: &str) -> Daemon {
        let folder = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("bird.conf");
        std::fs::File::create(&file)
            .unwrap()
            .write_all(config.as_bytes())
            .unwrap();
        let mut command = namespace.command("bird");
        command
            .arg("-f")
            .arg("-c")
            .arg(&file)
            .arg("-s")
            .arg(folder.join("ctl"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = weir_netlink::netns::spawn_lasting(command).unwrap();
        Daemon { child, folder }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "did not happen: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A router with two links, to hosts in namespaces of their own, and its TAPs in `dataplane`.
struct Trial {
    router: Router,
    dataplane: NetNs,
    far: NetNs,
    near: NetNs,
    /// The last to go.
    _name: Named,
}

fn config(dataplane: &str, routes: &str) -> weir_config::Config {
    let text = format!(
        "interfaces:
  wan: {{ device: {{ driver: tap, name: w0 }}, addresses: [ 192.0.2.1/24, '2001:db8:1::1/64' ] }}
  lan: {{ device: {{ driver: tap, name: l0 }}, addresses: [ 198.51.100.1/24, '2001:db8:2::1/64' ] }}
linux:
  namespace: {dataplane}
  interfaces: {{ wan: {{}}, lan: {{ name: lan0 }} }}
buffers: {{ per-numa: 4096 }}
{routes}"
    );
    let checked = check("test", &text);
    checked
        .unwrap_or_else(|errors| panic!("{text}\n{}", errors[0]))
        .0
}

fn start() -> Option<Trial> {
    let Some(name) = Named::new("dp") else {
        eprintln!("skipped: named network namespaces need root and iproute2");
        return None;
    };
    let (far, near) = (NetNs::new().unwrap(), NetNs::new().unwrap());
    let config = config(&name.0, "");
    let router = far
        .run(|| Router::start(&config, &Options::default()).unwrap())
        .unwrap();
    // The router follows its own end of `l0` by name, so that the end stays, and a bridge leads on to the host.
    for command in [
        "link add br0 type bridge",
        "link add v0 type veth peer name n0",
        "link set l0 master br0",
        "link set v0 master br0",
        "link set br0 up",
        "link set v0 up",
    ] {
        ip_in(&far, command);
    }
    let mut route = far.route().unwrap();
    let link = route.link_by_name("n0").unwrap();
    route.move_to(link.index, &near).unwrap();
    ip_in(&far, "addr add 192.0.2.2/24 dev w0");
    ip_in(&far, "addr add 203.0.113.1/32 dev lo");
    ip_in(&far, "link set w0 up");
    ip_in(&near, "addr add 198.51.100.2/24 dev n0");
    ip_in(&near, "link set n0 up");
    ip_in(&near, "route add default via 198.51.100.1");
    ip_in(&far, "route add 198.51.100.0/24 via 192.0.2.1");
    Some(Trial {
        router,
        dataplane: name.open(),
        far,
        near,
        _name: name,
    })
}

impl Trial {
    fn kernel_routes(&self) -> Vec<String> {
        let routes = self.router.routes().unwrap().routes;
        let of_kernel = routes
            .iter()
            .filter(|route| route.source == RouteSource::Kernel);
        of_kernel.map(|route| route.prefix.to_string()).collect()
    }

    fn has(&self, prefix: &str) -> bool {
        self.kernel_routes().iter().any(|known| known == prefix)
    }

    /// All routes of a prefix, the one in use first.
    fn candidates(&self, prefix: &str) -> Vec<RouteCandidate> {
        let query = RouteQuery {
            destinations: Destinations::Prefix(prefix.parse().unwrap()),
            table: None,
            family: None,
            after: None,
            most: 10,
        };
        let mut routes = self.router.routes_where(&query).unwrap().routes;
        routes
            .pop()
            .map(|route| route.candidates)
            .unwrap_or_default()
    }

    fn next_hop(&self, prefix: &str) -> Option<String> {
        let routes = self.router.routes().unwrap().routes;
        let route = routes
            .iter()
            .find(|route| route.prefix.to_string() == prefix)?;
        let hop = |path: &weir_api::PathReply| {
            path.next_hop
                .map_or_else(|| path.adjacency.to_string(), |it| it.to_string())
        };
        Some(route.paths.iter().map(hop).collect::<Vec<_>>().join(" "))
    }
}

fn pings(namespace: &NetNs, address: &str) -> bool {
    let arguments = ["-c", "1", "-W", "1", "-n", address];
    let status = namespace
        .command("ping")
        .args(arguments)
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn taps_are_as_their_interfaces_and_linux_reaches_the_wire() {
    let Some(trial) = start() else { return };
    let mut client = trial.dataplane.route().unwrap();
    let interfaces = trial.router.interfaces().unwrap().interfaces;
    for (name, tap) in [("wan", "wan"), ("lan", "lan0")] {
        let link = client.link_by_name(tap).unwrap();
        let interface = interfaces.iter().find(|it| it.name == name).unwrap();
        let mac = link
            .mac
            .map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":"));
        assert_eq!(mac, interface.mac, "{name}");
        assert_eq!((link.mtu, link.up), (1500, true), "{name}");
    }
    let own: Vec<IpAddr> = client
        .addresses()
        .unwrap()
        .iter()
        .map(|it| it.address)
        .collect();
    for address in ["192.0.2.1", "198.51.100.1", "2001:db8:1::1"] {
        assert!(
            own.contains(&address.parse().unwrap()),
            "{address} in {own:?}"
        );
    }
    // From Linux to a host and back, with Linux's own ARP.
    wait_for("a ping from the dataplane namespace", || {
        pings(&trial.dataplane, "192.0.2.2")
    });
    // From a host to a service of Linux: no such port, which Linux says.
    wait_for("a ping to the router", || pings(&trial.far, "192.0.2.1"));
    let name = trial._name.0.clone();
    let with_mtu = {
        let mut wanted = config(&name, "");
        wanted.interfaces.get_mut("lan").unwrap().mtu = 1400;
        wanted
    };
    trial.router.apply(&with_mtu).unwrap();
    assert_eq!(client.link_by_name("lan0").unwrap().mtu, 1400);
    let mut without = config(&name, "");
    without.linux = Default::default();
    trial.router.apply(&without).unwrap();
    assert!(client.link_by_name("lan0").unwrap_err().is_not_found());
    trial.router.stop();
}

#[test]
fn routes_of_the_kernel_are_followed_in_all_forms() {
    let Some(trial) = start() else { return };
    let dataplane = &trial.dataplane;
    for (route, prefix, hops) in [
        ("10.1.0.0/16 via 192.0.2.2", "10.1.0.0/16", "192.0.2.2"),
        (
            "10.2.0.0/16 nexthop via 192.0.2.2 nexthop via 198.51.100.2",
            "10.2.0.0/16",
            "192.0.2.2 198.51.100.2",
        ),
        ("blackhole 10.3.0.0/16", "10.3.0.0/16", "drop"),
        ("unreachable 10.4.0.0/16", "10.4.0.0/16", "unreachable"),
        ("prohibit 10.5.0.0/16", "10.5.0.0/16", "prohibit"),
        (
            "10.6.0.0/16 via inet6 2001:db8:1::2 dev wan",
            "10.6.0.0/16",
            "2001:db8:1::2",
        ),
        (
            "2001:db8:aa::/48 via 2001:db8:1::2",
            "2001:db8:aa::/48",
            "2001:db8:1::2",
        ),
    ] {
        ip_in(dataplane, &format!("route add {route}"));
        wait_for(route, || trial.next_hop(prefix).as_deref() == Some(hops));
    }
    // The lowest metric counts, and the next one when it goes.
    ip_in(dataplane, "route add 10.7.0.0/16 via 192.0.2.2 metric 100");
    ip_in(
        dataplane,
        "route add 10.7.0.0/16 via 198.51.100.2 metric 20",
    );
    let leads = |hop: &str| trial.next_hop("10.7.0.0/16").as_deref() == Some(hop);
    wait_for("the lower metric", || leads("198.51.100.2"));
    ip_in(dataplane, "route del 10.7.0.0/16 metric 20");
    wait_for("the higher metric", || leads("192.0.2.2"));
    ip_in(
        dataplane,
        "route replace 10.7.0.0/16 via 192.0.2.9 metric 100",
    );
    wait_for("a replacement", || leads("192.0.2.9"));
    // What is configured comes before what the kernel has.
    let wanted = config(
        &trial._name.0,
        "routes: [ { prefix: 10.1.0.0/16, via: 198.51.100.7 } ]",
    );
    trial.router.apply(&wanted).unwrap();
    assert_eq!(
        trial.next_hop("10.1.0.0/16").as_deref(),
        Some("198.51.100.7")
    );
    let all = trial.candidates("10.1.0.0/16");
    let seen: Vec<_> = all
        .iter()
        .map(|it| (it.source, it.distance, it.metric, it.verdict))
        .collect();
    assert_eq!(
        seen,
        [
            (RouteSource::Static, 1, 0, RouteVerdict::LowestDistance),
            (RouteSource::Kernel, 21, 0, RouteVerdict::HigherDistance),
        ]
    );
    assert_eq!(all[1].protocol.as_deref(), Some("boot"));
    trial.router.apply(&config(&trial._name.0, "")).unwrap();
    assert_eq!(trial.next_hop("10.1.0.0/16").as_deref(), Some("192.0.2.2"));
    assert_eq!(
        trial.candidates("10.1.0.0/16")[0].verdict,
        RouteVerdict::OnlyRoute
    );
    // The kernel lets routes of a link that goes down go, and says nothing about the IPv4 ones.
    ip_in(dataplane, "link set wan down");
    wait_for("the routes of a link that is down", || {
        !trial.has("10.1.0.0/16")
    });
    assert!(trial.has("10.3.0.0/16"));
    trial.router.stop();
}

const FAR: &str = "router id 192.0.2.2;
protocol device {}
protocol static s4 { ipv4; route 203.0.113.0/24 blackhole; route 10.99.0.0/16 blackhole; }
protocol bgp peer { local 192.0.2.2 as 65002; neighbor 192.0.2.1 as 65001;
  ipv4 { import all; export all; next hop self; }; }
";
const NEAR: &str = "router id 192.0.2.1;
protocol device {}
protocol kernel k4 { ipv4 { import none; export all; }; }
protocol bgp peer { local 192.0.2.1 as 65001; neighbor 192.0.2.2 as 65002;
  connect retry time 1; connect delay time 1; error wait time 1, 2;
  ipv4 { import all; export none; }; }
";

#[test]
fn a_route_that_bird_learns_forwards_packets() {
    if !["/usr/sbin/bird", "/usr/bin/bird"]
        .iter()
        .any(|path| Path::new(path).exists())
    {
        eprintln!("skipped: BIRD is not installed (package bird2)");
        return;
    }
    let Some(trial) = start() else { return };
    assert!(
        !pings(&trial.near, "203.0.113.1"),
        "no route leads there yet"
    );
    let far = Daemon::bird(&trial.far, "far", FAR);
    let _near = Daemon::bird(&trial.dataplane, "near", NEAR);
    wait_for("BIRD's routes", || {
        trial.has("203.0.113.0/24") && trial.has("10.99.0.0/16")
    });
    wait_for("a ping over BIRD's route", || {
        pings(&trial.near, "203.0.113.1")
    });
    // BGP itself went through the router; withdrawals arrive.
    drop(far);
    wait_for("the withdrawal", || !trial.has("203.0.113.0/24"));
    assert!(!pings(&trial.near, "203.0.113.1"));
    trial.router.stop();
}
