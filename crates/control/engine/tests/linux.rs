//! Linux as the control plane: a route that BIRD learns by BGP in a network namespace forwards packets here.
//!
//! The router and its hosts are those of `dataplane`. Needs root; what needs BIRD is skipped without it.

mod dataplane;

use std::net::IpAddr;
use std::path::Path;

use dataplane::{Daemon, config, ip_in, pings, start, wait_for};
use weir_api::{RouteSource, RouteVerdict, Router as _};

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
    let name = trial.name.0.clone();
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
        &trial.name.0,
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
    trial.router.apply(&config(&trial.name.0, "")).unwrap();
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
