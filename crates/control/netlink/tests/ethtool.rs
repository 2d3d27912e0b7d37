//! The ethtool client against the veth driver of this machine, and against ethtool itself.

mod common;

use common::{can_run, wait_for};
use weir_netlink::ethtool::{Channels, Duplex, Ethtool, Offload};
use weir_netlink::netns::NetNs;
use weir_netlink::route::VethPair;

/// A namespace with the veth pair `a` and `b` of two queues each, both up.
fn with_pair() -> (NetNs, Ethtool) {
    let namespace = NetNs::new().unwrap();
    let mut route = namespace.route().unwrap();
    let pair = VethPair {
        name: "a",
        peer_name: "b",
        queues: Some(2),
        ..VethPair::default()
    };
    route.create_veth(&pair).unwrap();
    for name in ["a", "b"] {
        let index = route.link_by_name(name).unwrap().index;
        route.set_up(index, true).unwrap();
    }
    wait_for("carrier", || route.link_by_name("a").unwrap().running);
    let client = namespace.run(Ethtool::open).unwrap().unwrap();
    (namespace, client)
}

fn program(namespace: &NetNs, arguments: &[&str]) -> Option<String> {
    let output = namespace.command("ethtool").args(arguments).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn driver_speed_and_address() {
    if !can_run() {
        return;
    }
    let (_namespace, client) = with_pair();
    assert_eq!(client.driver("a").unwrap().driver, "veth");
    let settings = client.link_settings("a").unwrap();
    assert_eq!(
        (settings.megabits, settings.duplex),
        (Some(10_000), Duplex::Full)
    );
    assert_eq!(client.permanent_mac("a").unwrap(), None);
    let missing = client.driver("nowhere").unwrap_err();
    assert!(missing.is_not_found());
    assert_eq!(
        missing.to_string(),
        "ask for the driver of nowhere: No such device (os error 19)"
    );
    assert!(client.driver("much-too-long-a-name").is_err());
}

#[test]
fn offloads_are_switched_and_ethtool_agrees() {
    if !can_run() {
        return;
    }
    let (namespace, client) = with_pair();
    for (offload, shown) in [
        (Offload::TxChecksum, "tx-checksumming"),
        (Offload::RxChecksum, "rx-checksumming"),
        (Offload::TcpSegmentation, "tx-tcp-segmentation"),
        (Offload::GenericSegmentation, "generic-segmentation-offload"),
        (Offload::GenericReceive, "generic-receive-offload"),
        (Offload::ScatterGather, "scatter-gather"),
        (Offload::RxVlan, "rx-vlan-offload"),
        (Offload::TxVlan, "tx-vlan-offload"),
    ] {
        // What depends on what: segmentation needs checksums and pieces of memory.
        for needed in [Offload::TxChecksum, Offload::ScatterGather] {
            client.set_offload("a", needed, true).unwrap();
        }
        for on in [false, true] {
            client.set_offload("a", offload, on).unwrap();
            assert_eq!(client.offload("a", offload).unwrap(), on);
            let Some(text) = program(&namespace, &["-k", "a"]) else {
                continue;
            };
            let wanted = format!("{shown}: {}", if on { "on" } else { "off" });
            assert!(text.contains(&wanted), "{wanted:?} is not in {text}");
        }
    }
    for offload in Offload::ALL {
        client.offload("a", offload).unwrap();
    }
    // The kernel says yes to segmentation without checksums, and does not do it.
    client.set_offload("a", Offload::TxChecksum, false).unwrap();
    let forbidden = client
        .set_offload("a", Offload::TcpSegmentation, true)
        .unwrap_err();
    assert!(
        forbidden.to_string().contains("another setting"),
        "{forbidden}"
    );
    let fixed = client
        .set_offload("a", Offload::LargeReceive, true)
        .unwrap_err();
    assert!(
        fixed
            .to_string()
            .starts_with("switch offload lro of a on: "),
        "{fixed}"
    );
}

#[test]
fn queues_are_counted_and_set() {
    if !can_run() {
        return;
    }
    let (_namespace, client) = with_pair();
    let channels = client.channels("a").unwrap();
    assert_eq!(
        (channels.max_rx, channels.max_tx, channels.max_combined),
        (2, 2, 0)
    );
    assert_eq!(
        (channels.receive_queues(), channels.transmit_queues()),
        (2, 2)
    );
    client
        .set_channels(
            "a",
            &Channels {
                rx: 1,
                tx: 1,
                ..channels
            },
        )
        .unwrap();
    let fewer = client.channels("a").unwrap();
    assert_eq!((fewer.rx, fewer.tx), (1, 1));
    assert!(
        client
            .set_channels("a", &Channels { rx: 3, ..channels })
            .is_err()
    );
}

#[test]
fn driver_statistics_have_names_and_ethtool_agrees() {
    if !can_run() {
        return;
    }
    let (namespace, client) = with_pair();
    let statistics = client.statistics("a").unwrap();
    let (first, peer) = statistics.first().unwrap();
    let mut route = namespace.route().unwrap();
    assert_eq!(first, "peer_ifindex");
    assert_eq!(*peer, u64::from(route.link_by_name("b").unwrap().index));
    assert!(
        statistics
            .iter()
            .any(|(name, _)| name == "rx_queue_1_xdp_packets"),
        "{statistics:?}"
    );
    let Some(text) = program(&namespace, &["-S", "a"]) else {
        return;
    };
    for (name, _) in &statistics {
        assert!(
            text.contains(&format!("{name}:")),
            "{name} is not in {text}"
        );
    }
    // The loopback's driver has none.
    assert_eq!(client.statistics("lo").unwrap(), []);
}
