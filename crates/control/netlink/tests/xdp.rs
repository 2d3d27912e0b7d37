//! The XDP features of veth, as this machine's kernel tells them.

mod common;

use common::{can_run, wait_for};
use weir_netlink::ethtool::{Ethtool, Offload};
use weir_netlink::lab::{Cable, Lab, Port, ROUTER};
use weir_netlink::netns::NetNs;
use weir_netlink::route::VethPair;
use weir_netlink::xdp;

#[test]
fn a_veth_end_takes_redirected_frames_while_its_peer_has_gro() {
    if !can_run() {
        return;
    }
    let namespace = NetNs::new().unwrap();
    let mut route = namespace.route().unwrap();
    route
        .create_veth(&VethPair {
            name: "a",
            peer_name: "b",
            ..VethPair::default()
        })
        .unwrap();
    let index = route.link_by_name("a").unwrap().index;
    let peer = route.link_by_name("b").unwrap().index;
    for end in [index, peer] {
        route.set_up(end, true).unwrap();
    }
    wait_for("carrier", || route.link_by_index(index).unwrap().running);
    let ask = || namespace.run(|| xdp::features(index)).unwrap();
    let ethtool = namespace.run(Ethtool::open).unwrap().unwrap();
    ethtool
        .set_offload("b", Offload::GenericReceive, false)
        .unwrap();
    let before = match ask() {
        Err(error) if error.is_unsupported() || error.is_not_found() => {
            println!("skipped: {error}");
            return;
        }
        answer => answer.unwrap(),
    };
    assert!(
        before.native && before.redirect && !before.zero_copy,
        "{before:?}"
    );
    assert!(!before.transmit_redirected);
    ethtool
        .set_offload("b", Offload::GenericReceive, true)
        .unwrap();
    assert!(ask().unwrap().transmit_redirected);
    let missing = namespace
        .run(|| xdp::features(999_999))
        .unwrap()
        .unwrap_err();
    assert!(missing.is_not_found(), "{missing}");
}

#[test]
fn the_routers_ports_of_a_lab_take_redirected_frames() {
    if !can_run() {
        return;
    }
    let mut lab = Lab::two_hosts().queues(2).build().unwrap();
    // The same cable as that of the hosts, but without the offload that matters.
    lab.add_host("host-c").unwrap();
    let deaf = Port::new("host-c", "eth0").offload(Offload::GenericReceive, false);
    lab.connect(&Cable::new(deaf, Port::new(ROUTER, "port-c")))
        .unwrap();
    let router = lab.host(ROUTER).unwrap();
    for (port, wanted) in [("port-a", true), ("port-b", true), ("port-c", false)] {
        let index = router.link(port).unwrap().index;
        match router.namespace().run(|| xdp::features(index)).unwrap() {
            Ok(features) => assert_eq!(features.transmit_redirected, wanted, "{port}"),
            Err(error) => println!("skipped: {error}"),
        }
    }
}
