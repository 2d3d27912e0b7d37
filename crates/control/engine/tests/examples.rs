//! The examples of `examples/linux`, run as they stand with Debian's daemons: only the devices of the links are TAPs here.
//!
//! The router and its hosts are those of `dataplane`. Needs root; each example is skipped without its daemons.

mod dataplane;

use std::path::Path;

use dataplane::{Daemon, Frr, Trial, ip_in, pings, start_example, wait_for, wait_or_explain};
use weir_api::{RouteSource, Router as _};

/// A file of an example.
fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/linux");
    let path = path.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn has_program(name: &str) -> bool {
    ["/usr/sbin", "/usr/bin", "/usr/local/sbin"]
        .iter()
        .any(|folder| Path::new(folder).join(name).exists())
}

fn has_bird() -> bool {
    let is_there = has_program("bird");
    if !is_there {
        eprintln!("skipped: BIRD is not installed (package bird2)");
    }
    is_there
}

/// The other member of the exchange. The third prefix is longer than any that is accepted.
const PEER: &str = "router id 192.0.2.2;
protocol device {}
protocol static s4 { ipv4; route 203.0.113.0/24 blackhole; route 10.99.0.0/25 blackhole; }
protocol static s6 { ipv6; route 2001:db8:aa::/48 blackhole; route 2001:db8:bb::/56 blackhole; }
protocol bgp four { local 192.0.2.2 as 65002; neighbor 192.0.2.1 as 65001;
  connect retry time 1; connect delay time 1; error wait time 1, 2;
  ipv4 { import all; export all; next hop self; }; }
protocol bgp six { local 2001:db8:1::2 as 65002; neighbor 2001:db8:1::1 as 65001;
  connect retry time 1; connect delay time 1; error wait time 1, 2;
  ipv6 { import all; export all; next hop self; }; }
";

fn expect_exchange(trial: &Trial, source: RouteSource) {
    let has = |prefix: &str| {
        let all = trial.candidates(prefix);
        all.first().is_some_and(|route| route.source == source)
    };
    wait_or_explain(
        "routes of the peer",
        || has("203.0.113.0/24") && has("2001:db8:aa::/48"),
        || format!("{:?}", trial.router.linux().unwrap()),
    );
    assert!(trial.candidates("10.99.0.0/25").is_empty());
    assert!(trial.candidates("2001:db8:bb::/56").is_empty());
    wait_for("a ping over the peer's route", || {
        pings(&trial.near, "203.0.113.1")
    });
}

#[test]
fn an_exchange_with_bird() {
    if !has_bird() {
        return;
    }
    let Some(trial) = start_example(&example("ixp-bird/weir.yaml")) else {
        return;
    };
    ip_in(&trial.far, "addr add 2001:db8:1::2/64 dev w0 nodad");
    let _peer = Daemon::bird(&trial.far, "ixp-peer", PEER);
    let _bird = Daemon::bird(&trial.dataplane, "ixp", &example("ixp-bird/bird.conf"));
    expect_exchange(&trial, RouteSource::Kernel);
    trial.router.stop();
}

#[test]
fn an_exchange_with_frr() {
    if !has_bird() {
        return;
    }
    let Some(trial) = start_example(&example("ixp-frr/weir.yaml")) else {
        return;
    };
    let Some(frr) = Frr::new(&trial.dataplane, "ixp-frr") else {
        return;
    };
    ip_in(&trial.far, "addr add 2001:db8:1::2/64 dev w0 nodad");
    let _peer = Daemon::bird(&trial.far, "ixp-frr-peer", PEER);
    let zebra = example("ixp-frr/zebra.conf");
    let _zebra = frr.start("zebra", &zebra, &["-M", "dplane_fpm_nl"]);
    let _bgpd = frr.start("bgpd", &example("ixp-frr/bgpd.conf"), &[]);
    expect_exchange(&trial, RouteSource::Fpm);
    trial.router.stop();
}

/// The other end of a link without IPv4 addresses.
const UNNUMBERED_PEER: &str = "router bgp 65002
 bgp router-id 192.0.2.2
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor w0 interface remote-as external
 neighbor w0 capability extended-nexthop
 neighbor w0 timers connect 1
 address-family ipv4 unicast
  network 203.0.113.0/24
";

#[test]
fn bgp_without_addresses_on_the_link() {
    let Some(trial) = start_example(&example("unnumbered/weir.yaml")) else {
        return;
    };
    let Some(frr) = Frr::new(&trial.dataplane, "unnumbered") else {
        return;
    };
    let Some(peer) = Frr::new(&trial.far, "unnumbered-peer") else {
        return;
    };
    // No IPv4 on the link, and no static route of the bed.
    ip_in(&trial.far, "addr flush dev w0 scope global");
    let ra = "interface w0\n no ipv6 nd suppress-ra\n ipv6 nd ra-interval 3\n";
    let _peer_zebra = peer.start("zebra", ra, &[]);
    let _peer_bgpd = peer.start("bgpd", UNNUMBERED_PEER, &[]);
    let _zebra = frr.start("zebra", &example("unnumbered/zebra.conf"), &[]);
    let _bgpd = frr.start("bgpd", &example("unnumbered/bgpd.conf"), &[]);
    wait_or_explain(
        "an IPv4 route over a link-local address",
        || {
            trial
                .next_hop("203.0.113.0/24")
                .is_some_and(|hop| hop.starts_with("fe80::"))
        },
        || {
            let shows = |namespace: &weir_netlink::netns::NetNs, arguments: &[&str]| {
                let output = namespace.command("ip").args(arguments).output().unwrap();
                String::from_utf8_lossy(&output.stdout).into_owned()
            };
            let of = |namespace| {
                let addresses = shows(namespace, &["-6", "address"]);
                addresses + &shows(namespace, &["-6", "neighbor"])
            };
            format!(
                "{}\n{}\n{}\n{}\n{:?}\n{:?}",
                frr.show("show bgp summary"),
                peer.show("show bgp summary"),
                of(&trial.dataplane),
                of(&trial.far),
                trial.router.errors().unwrap(),
                trial.router.neighbors().unwrap(),
            )
        },
    );
    wait_for("a ping over the link", || pings(&trial.near, "203.0.113.1"));
    trial.router.stop();
}

#[test]
fn a_virtual_router_with_keepalived() {
    if !has_program("keepalived") {
        eprintln!("skipped: keepalived is not installed (package keepalived)");
        return;
    }
    let Some(trial) = start_example(&example("vrrp/weir.yaml")) else {
        return;
    };
    let keepalived = Daemon::keepalived(&trial.dataplane, "vrrp", &example("vrrp/keepalived.conf"));
    wait_for("the virtual address", || {
        let all = trial.candidates("198.51.100.254/32");
        all.first()
            .is_some_and(|it| it.source == RouteSource::Local)
    });
    // Its gratuitous ARP went out, and hosts forward over it.
    ip_in(&trial.near, "route replace default via 198.51.100.254");
    ip_in(&trial.near, "neigh flush dev n0");
    wait_for("a ping over the virtual router", || {
        pings(&trial.near, "192.0.2.2")
    });
    // keepalived takes the address away when it ends, and Weir does not answer for it any more.
    keepalived.terminate();
    wait_for("the address is gone", || {
        trial.candidates("198.51.100.254/32").is_empty()
    });
    trial.router.stop();
}

const BFD_PEER: &str = "router id 192.0.2.2;
protocol device {}
protocol static s4 { ipv4; route 203.0.113.0/24 blackhole; }
protocol bfd { interface \"w0\" { interval 50 ms; multiplier 3; }; }
protocol bgp four { local 192.0.2.2 as 65002; neighbor 192.0.2.1 as 65001; bfd on;
  connect retry time 1; connect delay time 1; error wait time 1, 2;
  ipv4 { import all; export all; next hop self; }; }
";

#[test]
fn a_neighbor_that_is_lost_is_noticed_by_bfd() {
    if !has_bird() {
        return;
    }
    let Some(trial) = start_example(&example("bfd/weir.yaml")) else {
        return;
    };
    let peer = Daemon::bird(&trial.far, "bfd-peer", BFD_PEER);
    let bird = Daemon::bird(&trial.dataplane, "bfd", &example("bfd/bird.conf"));
    wait_or_explain(
        "the BFD session and the route",
        || bird.birdc("show bfd sessions").contains(" Up ") && trial.has("203.0.113.0/24"),
        || bird.birdc("show protocols all"),
    );
    // The peer stands still. Its kernel keeps the TCP connection, and BGP alone would wait for its hold time of 240 seconds.
    peer.pause();
    wait_or_explain(
        "the route is gone",
        || !trial.has("203.0.113.0/24"),
        || bird.birdc("show protocols all"),
    );
    trial.router.stop();
}
