//! The route client against the kernel of this machine, in namespaces of its own.

mod common;

use std::net::IpAddr;

use common::{can_run, wait_for};
use weir_netlink::netns::NetNs;
use weir_netlink::route::{Link, OperState, Route, RouteEntry, VethPair};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A namespace with one veth pair in it, and the links `a` and `b`.
fn with_pair() -> (NetNs, Route, Link, Link) {
    let namespace = NetNs::new().unwrap();
    let mut route = namespace.route().unwrap();
    let pair = VethPair {
        name: "a",
        peer_name: "b",
        queues: Some(2),
        mac: Some([2, 0, 0, 0, 0, 1]),
        mtu: Some(9000),
        ..VethPair::default()
    };
    route.create_veth(&pair).unwrap();
    let near = route.link_by_name("a").unwrap();
    let far = route.link_by_name("b").unwrap();
    (namespace, route, near, far)
}

#[test]
fn a_new_namespace_holds_only_a_loopback_that_is_up() {
    if !can_run() {
        return;
    }
    let namespace = NetNs::new().unwrap();
    assert_ne!(
        namespace.inode().unwrap(),
        NetNs::current().unwrap().inode().unwrap()
    );
    let links = namespace.route().unwrap().links().unwrap();
    let loopback = links.iter().find(|link| link.name == "lo").unwrap();
    assert!(loopback.up && loopback.loopback);
    assert_eq!(loopback.index, 1);
    // Some kernels put fallback devices (ifb0, tunl0, ...) into every namespace; none may be up.
    assert!(
        links.iter().all(|link| link.loopback || !link.up),
        "{links:?}"
    );
}

#[test]
fn a_veth_pair_is_made_as_asked() {
    if !can_run() {
        return;
    }
    let (_namespace, mut route, near, far) = with_pair();
    assert_eq!(near.mac, Some([2, 0, 0, 0, 0, 1]));
    assert_eq!((near.mtu, far.mtu), (9000, 9000));
    assert_eq!((near.rx_queues, near.tx_queues), (2, 2));
    assert_eq!((far.rx_queues, far.tx_queues), (2, 2));
    assert_eq!(near.kind.as_deref(), Some("veth"));
    assert_eq!(
        (near.peer_index, far.peer_index),
        (Some(far.index), Some(near.index))
    );
    assert!(!near.up && !near.running);
    route.set_up(near.index, true).unwrap();
    let waiting = route.link_by_index(near.index).unwrap();
    assert!(
        waiting.up && !waiting.running,
        "no carrier while the peer is down"
    );
    assert_eq!(waiting.oper_state, OperState::LowerLayerDown);
    route.set_up(far.index, true).unwrap();
    wait_for("carrier", || {
        route.link_by_index(near.index).unwrap().running
    });
    route.delete(near.index).unwrap();
    assert!(route.link_by_name("b").unwrap_err().is_not_found());
}

#[test]
fn a_link_is_altered_in_every_way_offered() {
    if !can_run() {
        return;
    }
    let (_namespace, mut route, near, _) = with_pair();
    route.set_mtu(near.index, 1400).unwrap();
    route.set_mac(near.index, [2, 0, 0, 0, 0, 7]).unwrap();
    route.set_tx_queue_length(near.index, 77).unwrap();
    route.rename(near.index, "renamed").unwrap();
    route.set_promiscuous(near.index, true).unwrap();
    let link = route.link_by_name("renamed").unwrap();
    assert_eq!(
        (link.index, link.mtu, link.tx_queue_length),
        (near.index, 1400, 77)
    );
    assert_eq!(link.mac, Some([2, 0, 0, 0, 0, 7]));
    assert_eq!(link.promiscuity, 1);
    route.set_promiscuous(near.index, false).unwrap();
    assert_eq!(route.link_by_index(near.index).unwrap().promiscuity, 0);
}

#[test]
fn the_peer_goes_to_the_other_namespace() {
    if !can_run() {
        return;
    }
    let (one, other) = (NetNs::new().unwrap(), NetNs::new().unwrap());
    let pair = VethPair {
        name: "near",
        peer_name: "far",
        peer_namespace: Some(&other),
        ..VethPair::default()
    };
    one.route().unwrap().create_veth(&pair).unwrap();
    let near = one.route().unwrap().link_by_name("near").unwrap();
    assert!(near.link_netnsid.is_some());
    let far = other.route().unwrap().link_by_name("far").unwrap();
    assert!(
        one.route()
            .unwrap()
            .link_by_name("far")
            .unwrap_err()
            .is_not_found()
    );
    // And back again.
    other.route().unwrap().move_to(far.index, &one).unwrap();
    one.route().unwrap().link_by_name("far").unwrap();
}

#[test]
fn addresses_routes_and_neighbours_are_what_ip_shows() {
    if !can_run() {
        return;
    }
    let (namespace, mut route, near, far) = with_pair();
    route
        .add_address(near.index, address("10.1.0.1"), 24)
        .unwrap();
    route
        .add_address(near.index, address("fd00:1::1"), 64)
        .unwrap();
    route.set_up(near.index, true).unwrap();
    route.set_up(far.index, true).unwrap();
    route
        .add_route(&RouteEntry::default_via(address("10.1.0.254")))
        .unwrap();
    route
        .add_route(&RouteEntry::default_via(address("fd00:1::fe")))
        .unwrap();
    let direct = RouteEntry {
        destination: address("192.0.2.0"),
        prefix_length: 25,
        gateway: None,
        link: Some(near.index),
    };
    route.add_route(&direct).unwrap();
    route
        .add_neighbour(near.index, address("10.1.0.254"), [2, 0, 0, 0, 0, 0xfe])
        .unwrap();
    let own = route.addresses().unwrap();
    for wanted in ["10.1.0.1", "fd00:1::1"] {
        assert!(
            own.iter()
                .any(|own| (own.index, own.address) == (near.index, address(wanted))),
            "{wanted} in {own:?}"
        );
    }
    let shows = |arguments: &[&str], wanted: &str| {
        let output = namespace.command("ip").args(arguments).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            shown.contains(wanted),
            "ip {arguments:?} shows {shown:?}, not {wanted:?}"
        );
    };
    if namespace.command("ip").arg("-V").output().is_err() {
        println!("skipped the comparison: no ip command");
        return;
    }
    shows(
        &["-4", "address", "show", "a"],
        "inet 10.1.0.1/24 scope global a",
    );
    shows(
        &["-6", "address", "show", "a"],
        "inet6 fd00:1::1/64 scope global nodad",
    );
    shows(
        &["-4", "route"],
        "default via 10.1.0.254 dev a proto static",
    );
    shows(
        &["-6", "route"],
        "default via fd00:1::fe dev a proto static",
    );
    shows(
        &["-4", "route"],
        "192.0.2.0/25 dev a proto static scope link",
    );
    shows(
        &["neighbour"],
        "10.1.0.254 dev a lladdr 02:00:00:00:00:fe PERMANENT",
    );
    route
        .remove_address(near.index, address("10.1.0.1"), 24)
        .unwrap();
    let gone = route
        .remove_address(near.index, address("10.1.0.1"), 24)
        .unwrap_err();
    assert_eq!(gone.errno(), Some(libc::EADDRNOTAVAIL));
}

#[test]
fn refusals_say_what_was_asked_and_why() {
    if !can_run() {
        return;
    }
    let (_namespace, mut route, near, _) = with_pair();
    let missing = route.link_by_name("nowhere").unwrap_err();
    assert!(missing.is_not_found());
    assert_eq!(
        missing.to_string(),
        "find link nowhere: No such device (os error 19)"
    );
    let twice = VethPair {
        name: "a",
        peer_name: "c",
        ..VethPair::default()
    };
    assert!(route.create_veth(&twice).unwrap_err().is_exists());
    assert!(
        route
            .set_mtu(near.index, 20)
            .unwrap_err()
            .to_string()
            .contains("mtu")
    );
    let long = VethPair {
        name: "a-name-too-long-by-far",
        peer_name: "c",
        ..VethPair::default()
    };
    assert!(
        route
            .create_veth(&long)
            .unwrap_err()
            .to_string()
            .contains("no interface name")
    );
    let mixed = RouteEntry {
        gateway: Some(address("::1")),
        ..RouteEntry::default_via(address("10.0.0.1"))
    };
    assert!(route.add_route(&mixed).is_err());
    assert!(
        route
            .add_address(near.index, address("10.0.0.1"), 33)
            .is_err()
    );
    // The client is of use after refusals.
    route.link_by_index(near.index).unwrap();
}

#[test]
fn hundreds_of_links_are_listed() {
    if !can_run() {
        return;
    }
    let namespace = NetNs::new().unwrap();
    let mut route = namespace.route().unwrap();
    let before = route.links().unwrap().len();
    for number in 0..100 {
        let (name, peer_name) = (format!("x{number}"), format!("y{number}"));
        let pair = VethPair {
            name: &name,
            peer_name: &peer_name,
            ..VethPair::default()
        };
        route.create_veth(&pair).unwrap();
    }
    let links = route.links().unwrap();
    assert_eq!(links.len(), before + 200);
    assert!(links.iter().any(|link| link.name == "y99"));
}

#[test]
fn hosts_ping_each_other_through_a_kernel_bridge() {
    if !can_run() {
        return;
    }
    let (switch, one, other) = (
        NetNs::new().unwrap(),
        NetNs::new().unwrap(),
        NetNs::new().unwrap(),
    );
    let mut route = switch.route().unwrap();
    let bridge = route.create_bridge("br0").unwrap();
    for (name, host, own) in [("p1", &one, "10.0.0.1"), ("p2", &other, "10.0.0.2")] {
        let pair = VethPair {
            name,
            peer_name: "eth0",
            peer_namespace: Some(host),
            ..VethPair::default()
        };
        route.create_veth(&pair).unwrap();
        let port = route.link_by_name(name).unwrap().index;
        route.set_controller(port, Some(bridge)).unwrap();
        route.set_up(port, true).unwrap();
        assert_eq!(route.link_by_index(port).unwrap().controller, Some(bridge));
        let mut inside = host.route().unwrap();
        let eth0 = inside.link_by_name("eth0").unwrap().index;
        inside.add_address(eth0, address(own), 24).unwrap();
        inside.set_up(eth0, true).unwrap();
    }
    route.set_up(bridge, true).unwrap();
    let ping = one
        .command("ping")
        .args(["-n", "-c", "3", "-i", "0.05", "-W", "5", "10.0.0.2"])
        .output();
    let Ok(output) = ping else {
        println!("skipped: no ping command");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains(" 0% packet loss"),
        "{text}"
    );
    let counted = route.link_by_name("p1").unwrap().statistics;
    assert!(
        counted.rx_packets >= 3 && counted.rx_bytes >= 3 * 98,
        "{counted:?}"
    );
    let port = route.link_by_name("p1").unwrap().index;
    route.set_controller(port, None).unwrap();
    assert_eq!(route.link_by_index(port).unwrap().controller, None);
}
