//! What is set in Linux is followed, and what the configuration sets there is set back; namespaces and the router may go
//! and come back. Labels of zebra are sent by a session that is made here. Needs root.

mod dataplane;

use std::io::Write as _;
use std::net::{IpAddr, TcpStream};

use dataplane::{Trial, ip_in, pings, start, start_with, wait_for, wait_or_explain};
use weir_api::{LabelSource, RouteSource, Router as _};

impl Trial {
    fn source(&self, prefix: &str) -> Option<RouteSource> {
        Some(self.candidates(prefix).first()?.source)
    }

    fn addresses_in_linux(&self, tap: &str) -> Vec<String> {
        let mut client = self.dataplane.route().unwrap();
        let Ok(link) = client.link_by_name(tap) else {
            return Vec::new();
        };
        let all = client.addresses().unwrap().into_iter();
        all.filter(|it| it.index == link.index)
            .map(|it| it.address.to_string())
            .collect()
    }

    fn dump(&self) -> String {
        self.router.config_dump().unwrap().yaml
    }

    /// The entry of a label as text: its source, and where it leads.
    fn label(&self, label: u32) -> Option<(LabelSource, String)> {
        let all = self.router.mpls_fib(None, None, 1000).unwrap().labels;
        let entry = all.into_iter().find(|it| it.label == label)?;
        let hops = entry.paths.iter().map(|path| {
            let hop = path.next_hop.map_or("-".to_owned(), |hop| hop.to_string());
            format!("{hop}{:?}", path.labels)
        });
        let lookup = entry.lookup.map(|table| format!("table {table}"));
        let text: Vec<String> = hops.chain(lookup).collect();
        Some((entry.source, text.join(" ")))
    }
}

#[test]
fn addresses_of_linux_are_followed_and_those_of_the_file_set_back() {
    let Some(trial) = start() else { return };
    let before = trial.dump();
    let dataplane = &trial.dataplane;
    ip_in(dataplane, "addr add 10.77.0.1/24 dev lan0");
    ip_in(dataplane, "addr add 2001:db8:77::1/64 dev lan0 nodad");
    wait_for("addresses of Linux", || {
        trial.source("10.77.0.0/24") == Some(RouteSource::Connected)
            && trial.source("10.77.0.1/32") == Some(RouteSource::Local)
            && trial.source("2001:db8:77::/64") == Some(RouteSource::Connected)
    });
    assert_eq!(trial.dump(), before, "they are no configuration");
    let shown = trial.router.linux().unwrap().interfaces;
    let lan = shown.iter().find(|it| it.interface == "lan").unwrap();
    assert_eq!(
        lan.followed_addresses,
        ["10.77.0.1/24", "2001:db8:77::1/64"]
    );
    // The host reaches the new address, and Weir's answer comes from it.
    ip_in(&trial.near, "addr add 10.77.0.2/24 dev n0");
    wait_for("a ping to an address of Linux", || {
        pings(&trial.near, "10.77.0.1")
    });
    // A change of the configuration keeps them.
    let mut wanted = dataplane::config(&trial.name.0, "");
    wanted.interfaces.get_mut("lan").unwrap().mtu = 1400;
    trial.router.apply(&wanted).unwrap();
    assert_eq!(trial.source("10.77.0.1/32"), Some(RouteSource::Local));
    ip_in(dataplane, "addr del 10.77.0.1/24 dev lan0");
    wait_for("the address that is gone", || {
        trial.source("10.77.0.0/24").is_none()
    });
    // What the file says is set back.
    ip_in(dataplane, "addr del 198.51.100.1/24 dev lan0");
    wait_for("the address of the file", || {
        let all = trial.addresses_in_linux("lan0");
        all.contains(&"198.51.100.1".to_owned())
    });
    ip_in(dataplane, "link set lan0 mtu 1300");
    wait_for("the MTU of the file", || {
        let mut client = trial.dataplane.route().unwrap();
        client.link_by_name("lan0").unwrap().mtu == 1400
    });
    assert!(trial.router.linux().unwrap().audit.set_back >= 2);
    trial.router.stop();
}

#[test]
fn a_local_route_of_linux_is_answered() {
    let Some(trial) = start() else { return };
    ip_in(&trial.dataplane, "route add local 10.78.0.1/32 dev lo");
    wait_for("the route", || trial.has("10.78.0.1/32"));
    // Echo requests are answered here; other packets go to the TAP, and Linux has the address.
    wait_for("a ping", || pings(&trial.near, "10.78.0.1"));
    ip_in(&trial.dataplane, "route del local 10.78.0.1/32 dev lo");
    wait_for("the route that is gone", || !trial.has("10.78.0.1/32"));
    trial.router.stop();
}

#[test]
fn taps_and_their_addresses_outlive_the_router() {
    let Some(trial) = start() else { return };
    let index = |trial: &Trial| {
        let mut client = trial.dataplane.route().unwrap();
        client.link_by_name("wan").unwrap().index
    };
    let before = index(&trial);
    ip_in(&trial.dataplane, "addr add 10.77.0.1/24 dev wan");
    ip_in(&trial.dataplane, "route add 10.1.0.0/16 via 192.0.2.2");
    wait_for("the route", || trial.has("10.1.0.0/16"));
    let trial = trial.restart("");
    assert_eq!(index(&trial), before, "the TAP is the same one");
    wait_for("route and address after the restart", || {
        trial.has("10.1.0.0/16") && trial.source("10.77.0.1/32") == Some(RouteSource::Local)
    });
    // Without an entry under `linux` it goes, though it is persistent.
    let mut without = dataplane::config(&trial.name.0, "");
    without.linux.interfaces.remove("wan");
    trial.router.apply(&without).unwrap();
    let mut client = trial.dataplane.route().unwrap();
    assert!(client.link_by_name("wan").unwrap_err().is_not_found());
    assert!(client.link_by_name("lan0").is_ok());
    trial.router.stop();
}

#[test]
fn a_namespace_that_is_made_anew_gets_its_taps_again() {
    let Some(trial) = start() else { return };
    ip_in(&trial.dataplane, "route add 10.1.0.0/16 via 192.0.2.2");
    wait_for("the route", || trial.has("10.1.0.0/16"));
    assert!(trial.name.make_anew());
    let name = trial.name.0.clone();
    let open = || weir_netlink::netns::NetNs::open_named(&name).unwrap();
    wait_or_explain(
        "TAPs in the new namespace",
        || {
            let mut client = open().route().unwrap();
            let addresses: Vec<IpAddr> = client
                .addresses()
                .unwrap()
                .iter()
                .map(|it| it.address)
                .collect();
            client.link_by_name("lan0").is_ok() && addresses.contains(&"192.0.2.1".parse().unwrap())
        },
        || format!("{:?}", trial.router.linux().unwrap()),
    );
    // The new namespace has no routes, and the old ones go when it has been read.
    wait_for("the old route is gone", || !trial.has("10.1.0.0/16"));
    ip_in(&open(), "route add 10.2.0.0/16 via 192.0.2.2");
    wait_for("a route of the new namespace", || trial.has("10.2.0.0/16"));
    trial.router.stop();
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An FPM frame with one MPLS route of LDP (protocol 193), as zebra's `netlink_mpls_multipath_msg_encode` lays it out.
fn label_frame(kind: u16, label: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
    let entry = (label << 12 | 1 << 8).to_be_bytes();
    let mut payload = vec![28, 20, 0, 0, 0, 193, 0, 1, 0, 0, 0, 0];
    payload.extend(attribute(1, &entry));
    payload.extend(attributes.concat());
    let mut message = (payload.len() as u32 + 16).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend([0; 10]);
    message.extend(payload);
    let mut frame = vec![1, 1];
    frame.extend((message.len() as u16 + 4).to_be_bytes());
    frame.extend(message);
    frame
}

/// RTA_VIA of an IPv4 gateway.
fn via(gateway: [u8; 4]) -> Vec<u8> {
    attribute(18, &[&2u16.to_ne_bytes()[..], &gateway].concat())
}

/// RTA_NEWDST of one label.
fn swapped(label: u32) -> Vec<u8> {
    attribute(19, &(label << 12 | 1 << 8).to_be_bytes())
}

#[test]
fn labels_of_zebra_are_swapped_popped_and_looked_up() {
    const NEW: u16 = 24;
    const GONE: u16 = 25;
    let Some(trial) = start_with("fpm: { hold-time: 0 }") else {
        return;
    };
    let mut client = trial.dataplane.route().unwrap();
    let (wan, lo) = (
        client.link_by_name("wan").unwrap().index,
        client.link_by_name("lo").unwrap().index,
    );
    let oif = |index: u32| attribute(4, &index.to_ne_bytes());
    let mut session = None;
    wait_for("a session", || {
        session = trial
            .dataplane
            .run(|| TcpStream::connect("127.0.0.1:2620"))
            .unwrap()
            .ok();
        session.is_some()
    });
    let mut session = session.unwrap();
    let gateway = [192, 0, 2, 2];
    for frame in [
        label_frame(NEW, 100, &[via(gateway), swapped(200), oif(wan)]),
        // Explicit null, implicit null, and no label at all: the last two are penultimate hop popping.
        label_frame(NEW, 101, &[via(gateway), swapped(0), oif(wan)]),
        label_frame(NEW, 102, &[via(gateway), swapped(3), oif(wan)]),
        label_frame(NEW, 103, &[via(gateway), oif(wan)]),
        // This router is the end of the label's path.
        label_frame(NEW, 104, &[oif(lo)]),
        // Reserved, and over a link that is no TAP.
        label_frame(NEW, 15, &[via(gateway), oif(wan)]),
        label_frame(NEW, 105, &[via(gateway), oif(9999)]),
    ] {
        session.write_all(&frame).unwrap();
    }
    for (label, wanted) in [
        (100, "192.0.2.2[200]"),
        (101, "192.0.2.2[0]"),
        (102, "192.0.2.2[]"),
        (103, "192.0.2.2[]"),
        (104, "table 0"),
    ] {
        wait_or_explain(
            &format!("label {label}"),
            || trial.label(label) == Some((LabelSource::Fpm, wanted.to_owned())),
            || format!("{:?}", trial.label(label)),
        );
    }
    let refused = trial.router.linux().unwrap().refused;
    let objects: Vec<&str> = refused.iter().map(|it| it.object.as_str()).collect();
    assert_eq!(objects, ["label 15", "label 105"]);
    // A label of the file comes before it, and the one of zebra takes its place again.
    let more = "mpls: { labels: [ { label: 100, via: [ { next-hop: 198.51.100.2, labels: [ 300 ] } ] } ] }";
    let with = dataplane::config_with(&trial.name.0, "fpm: { hold-time: 0 }", more);
    trial.router.apply(&with).unwrap();
    assert_eq!(
        trial.label(100),
        Some((LabelSource::Static, "198.51.100.2[300]".to_owned()))
    );
    let without = dataplane::config_with(&trial.name.0, "fpm: { hold-time: 0 }", "");
    trial.router.apply(&without).unwrap();
    wait_for("zebra's label again", || {
        trial.label(100) == Some((LabelSource::Fpm, "192.0.2.2[200]".to_owned()))
    });
    session.write_all(&label_frame(GONE, 103, &[])).unwrap();
    wait_for("a label that is gone", || trial.label(103).is_none());
    // Zebra does not come back.
    drop(session);
    wait_for("labels of a zebra that is gone", || {
        trial.label(100).is_none() && trial.label(104).is_none()
    });
    trial.router.stop();
}
