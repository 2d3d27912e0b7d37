//! Messages worked out by hand from `linux/rtnetlink.h`, each truncation of them, and arbitrary bytes.

use proptest::prelude::*;
use weir_netlink::Frames;

use super::*;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn word_of(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

/// A route of protocol 12 (BIRD) in table 254.
fn route(kind: u16, family: u8, length: u8, of_type: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = vec![family, length, 0, 0, 254, 12, 0, of_type];
    payload.extend(0u32.to_ne_bytes());
    payload.extend(attributes.concat());
    let mut bytes = (payload.len() as u32 + 16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(payload);
    bytes
}

fn read(bytes: &[u8]) -> Message {
    let frame = Frames::new(bytes).next().unwrap().unwrap();
    Decoder::new(RouteSource::Kernel).read(&frame)
}

fn set(message: Message) -> Route {
    match message {
        Message::Route(RouteUpdate::Set(route)) => route,
        other => panic!("{other:?}"),
    }
}

fn hop(interface: u32, gateway: &str, weight: u32) -> NextHop {
    NextHop {
        interface,
        gateway: gateway.parse().ok(),
        weight,
        labels: [].into(),
    }
}

const NET: [u8; 4] = [198, 51, 100, 0];

#[test]
fn a_route_over_a_gateway_is_read() {
    let bytes = route(
        RTM_NEWROUTE,
        AF_INET,
        24,
        RTN_UNICAST,
        &[
            word_of(RTA_TABLE, 254),
            attribute(RTA_DST, &NET),
            word_of(RTA_PRIORITY, 32),
            attribute(RTA_GATEWAY, &[192, 0, 2, 9]),
            word_of(RTA_OIF, 7),
        ],
    );
    assert_eq!(bytes.len(), 68, "as BIRD's are");
    let route = set(read(&bytes));
    assert_eq!(
        (
            route.table,
            route.prefix.to_string(),
            route.metric,
            route.protocol
        ),
        (0, "198.51.100.0/24".to_owned(), 32, 12)
    );
    assert_eq!(
        *route.target,
        Target::Paths([hop(7, "192.0.2.9", 1)].into())
    );
}

#[test]
fn paths_of_both_versions_and_labels_are_read() {
    let path = |interface: u32, hops: u8, attributes: Vec<u8>| {
        let mut bytes = (attributes.len() as u16 + 8).to_ne_bytes().to_vec();
        bytes.extend([0, hops]);
        bytes.extend(interface.to_ne_bytes());
        bytes.extend(attributes);
        bytes
    };
    let six = "2001:db8::9".parse::<Ipv6Addr>().unwrap().octets();
    let via = attribute(RTA_VIA, &[&10u16.to_ne_bytes()[..], &six].concat());
    let stack = attribute(MPLS_IPTUNNEL_DST, &[0x00, 0x01, 0x01, 0x00]);
    let labelled = [
        attribute(RTA_GATEWAY, &[192, 0, 2, 9]),
        attribute(RTA_ENCAP_TYPE, &1u16.to_ne_bytes()),
        attribute(RTA_ENCAP, &stack),
    ]
    .concat();
    let paths = [path(7, 2, labelled), path(8, 0, via)].concat();
    let bytes = route(
        RTM_NEWROUTE,
        AF_INET,
        24,
        RTN_UNICAST,
        &[
            word_of(RTA_TABLE, 1000),
            attribute(RTA_DST, &NET),
            attribute(RTA_MULTIPATH, &paths),
        ],
    );
    let route = set(read(&bytes));
    assert_eq!(route.table, 1000);
    let first = NextHop {
        labels: [16].into(),
        ..hop(7, "192.0.2.9", 3)
    };
    let expected = Target::Paths([first, hop(8, "2001:db8::9", 1)].into());
    assert_eq!(*route.target, expected);
}

#[test]
fn special_routes_lead_nowhere_and_others_are_ignored_or_refused() {
    let of_type = |of_type| {
        read(&route(
            RTM_NEWROUTE,
            AF_INET6,
            0,
            of_type,
            &[word_of(RTA_OIF, 1)],
        ))
    };
    for (kind, target) in [
        (RTN_BLACKHOLE, Target::Blackhole),
        (RTN_UNREACHABLE, Target::Unreachable),
        (RTN_PROHIBIT, Target::Prohibit),
    ] {
        let route = set(of_type(kind));
        assert_eq!(
            (route.prefix.to_string().as_str(), &*route.target),
            ("::/0", &target)
        );
    }
    assert_eq!(of_type(5), Message::Ignored, "multicast");
    let local = set(of_type(RTN_LOCAL));
    assert_eq!((local.table, &*local.target), (0, &Target::Local));
    let encapsulated = route(
        RTM_NEWROUTE,
        AF_INET,
        0,
        RTN_UNICAST,
        &[
            word_of(RTA_OIF, 3),
            attribute(RTA_ENCAP_TYPE, &5u16.to_ne_bytes()),
        ],
    );
    assert_eq!(
        read(&encapsulated),
        Message::Refused("encapsulation"),
        "SRv6"
    );
    assert_eq!(
        read(&route(
            RTM_NEWROUTE,
            AF_INET,
            33,
            RTN_UNICAST,
            &[word_of(RTA_OIF, 3)]
        )),
        Message::Refused("malformed")
    );
    assert_eq!(
        read(&route(RTM_NEWROUTE, AF_MPLS, 20, RTN_UNICAST, &[])),
        Message::Refused("malformed"),
        "a route of MPLS without its label"
    );
}

#[test]
fn an_ipv6_route_goes_path_by_path() {
    let six = "fe80::9".parse::<Ipv6Addr>().unwrap().octets();
    let gone = |family, gateway: &[u8]| {
        let attributes = [attribute(RTA_GATEWAY, gateway), word_of(RTA_OIF, 7)];
        match read(&route(RTM_DELROUTE, family, 0, RTN_UNICAST, &attributes)) {
            Message::Route(RouteUpdate::Remove { path, .. }) => path,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(gone(AF_INET6, &six), Some(hop(7, "fe80::9", 1)));
    assert_eq!(
        gone(AF_INET, &[192, 0, 2, 9]),
        None,
        "an IPv4 one goes at once"
    );
}

#[test]
fn links_and_addresses_are_read() {
    let message = |kind: u16, payload: &[u8]| {
        let mut bytes = (payload.len() as u32 + 16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(payload);
        read(&bytes)
    };
    let mut payload = vec![0; 4];
    payload.extend(7u32.to_ne_bytes());
    payload.extend((IFF_UP | IFF_RUNNING).to_ne_bytes());
    payload.extend([0; 4]);
    payload.extend(attribute(IFLA_IFNAME, b"e0\0"));
    payload.extend(word_of(IFLA_MTU, 9000));
    payload.extend(attribute(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 1]));
    let link = LinkInfo {
        index: 7,
        name: "e0".into(),
        up: true,
        running: true,
        mtu: 9000,
        mac: Some([2, 0, 0, 0, 0, 1]),
        controller: 0,
    };
    assert_eq!(message(RTM_NEWLINK, &payload), Message::Link(link));
    assert_eq!(message(RTM_DELLINK, &payload), Message::LinkGone(7));
    let mut payload = vec![AF_INET, 24, 0, 0];
    payload.extend(7u32.to_ne_bytes());
    payload.extend(attribute(IFA_LOCAL, &[192, 0, 2, 1]));
    let address = |gone| Message::Address {
        link: 7,
        address: "192.0.2.1/24".parse().unwrap(),
        gone,
    };
    assert_eq!(message(RTM_NEWADDR, &payload), address(false));
    assert_eq!(message(RTM_DELADDR, &payload), address(true));
    payload[2] = IFA_F_TENTATIVE;
    assert_eq!(message(RTM_NEWADDR, &payload), Message::Ignored);
}

#[test]
fn what_is_cut_or_lies_about_its_length_does_no_harm() {
    let hop = [
        &16u16.to_ne_bytes()[..],
        &[0, 0],
        &7u32.to_ne_bytes(),
        &attribute(RTA_GATEWAY, &NET),
    ]
    .concat();
    let whole = route(
        RTM_NEWROUTE,
        AF_INET,
        24,
        RTN_UNICAST,
        &[attribute(RTA_DST, &NET), attribute(RTA_MULTIPATH, &hop)],
    );
    assert!(matches!(read(&whole), Message::Route(_)));
    for kind in [
        RTM_NEWROUTE,
        RTM_DELROUTE,
        RTM_NEWLINK,
        RTM_DELLINK,
        RTM_NEWADDR,
        RTM_DELADDR,
    ] {
        for length in 0..whole.len() - 16 {
            let payload = &whole[16..16 + length];
            let frame = Frame {
                kind,
                flags: 0,
                sequence: 0,
                port: 0,
                payload,
            };
            let _ = Decoder::new(RouteSource::Kernel).read(&frame);
        }
        for at in 16..whole.len() {
            for value in [0, 1, 3, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let frame = Frame {
                    kind,
                    flags: 0,
                    sequence: 0,
                    port: 0,
                    payload: &bytes[16..],
                };
                let _ = Decoder::new(RouteSource::Kernel).read(&frame);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn arbitrary_bytes_do_not_panic(kind in 16u16..27, payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        let frame = Frame { kind, flags: 0, sequence: 0, port: 0, payload: &payload };
        let _ = Decoder::new(RouteSource::Kernel).read(&frame);
    }
}

/// A next-hop object of zebra (protocol 11).
fn object_of(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = vec![AF_INET, 0, 11, 0];
    payload.extend(0u32.to_ne_bytes());
    payload.extend(attributes.concat());
    let mut bytes = (payload.len() as u32 + 16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(payload);
    bytes
}

fn read_fpm(bytes: &[u8]) -> Message {
    let frame = Frames::new(bytes).next().unwrap().unwrap();
    Decoder::new(RouteSource::Fpm).read(&frame)
}

#[test]
fn next_hop_objects_of_zebra_are_read() {
    let single = object_of(
        RTM_NEWNEXTHOP,
        &[
            word_of(NHA_ID, 7),
            attribute(NHA_GATEWAY, &[192, 0, 2, 9]),
            word_of(NHA_OIF, 3),
        ],
    );
    assert_eq!(single.len(), 48, "as zebra's are");
    let expected = Target::Paths([hop(3, "192.0.2.9", 1)].into());
    assert_eq!(
        read_fpm(&single),
        Message::Object {
            id: 7,
            object: Some(Object::Single(expected)),
        }
    );
    assert_eq!(
        read(&single),
        Message::Ignored,
        "the kernel's say it in each route"
    );
    let mut members = [7u32.to_ne_bytes(), [0, 0, 0, 0]].concat();
    members.extend([8u32.to_ne_bytes(), [2, 0, 0, 0]].concat());
    let group = object_of(
        RTM_NEWNEXTHOP,
        &[word_of(NHA_ID, 9), attribute(NHA_GROUP, &members)],
    );
    assert_eq!(
        read_fpm(&group),
        Message::Object {
            id: 9,
            object: Some(Object::Group(vec![(7, 1), (8, 3)])),
        }
    );
    let gone = object_of(RTM_DELNEXTHOP, &[word_of(NHA_ID, 9)]);
    assert_eq!(
        read_fpm(&gone),
        Message::Object {
            id: 9,
            object: None
        }
    );
    for wrong in [
        object_of(RTM_NEWNEXTHOP, &[word_of(NHA_OIF, 3)]),
        object_of(RTM_NEWNEXTHOP, &[word_of(NHA_ID, 0), word_of(NHA_OIF, 3)]),
        object_of(
            RTM_NEWNEXTHOP,
            &[word_of(NHA_ID, 9), attribute(NHA_GROUP, &members[..15])],
        ),
        object_of(RTM_NEWNEXTHOP, &[attribute(NHA_ID, &[1, 2])]),
    ] {
        assert_eq!(read_fpm(&wrong), Message::Refused("malformed"));
    }
    // Cut at any byte, the message is another one or none, and nothing panics.
    for whole in [&single, &group] {
        for length in 16..whole.len() {
            let mut cut = whole[..length].to_vec();
            cut[..4].copy_from_slice(&(length as u32).to_ne_bytes());
            let _ = read_fpm(&cut);
        }
    }
}

#[test]
fn a_route_of_zebra_names_its_object() {
    let bytes = route(
        RTM_NEWROUTE,
        AF_INET,
        24,
        RTN_UNICAST,
        &[
            attribute(RTA_DST, &NET),
            word_of(RTA_PRIORITY, 20),
            word_of(RTA_NH_ID, 9),
        ],
    );
    assert_eq!(bytes.len(), 52, "as zebra's are");
    let Message::Route(RouteUpdate::Set(route)) = read_fpm(&bytes) else {
        panic!("no route");
    };
    assert_eq!((route.source, route.metric), (RouteSource::Fpm, 0));
    assert_eq!(*route.target, Target::Object(9));
}

/// An MPLS route of protocol 193 (LDP).
fn label_route(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = route(kind, AF_MPLS, 20, RTN_UNICAST, attributes);
    bytes[16 + 5] = 193;
    bytes
}

fn entry(label: u32) -> [u8; 4] {
    (label << 12 | 1 << 8).to_be_bytes()
}

#[test]
fn incoming_labels_are_read() {
    let via = attribute(
        RTA_VIA,
        &[&2u16.to_ne_bytes()[..], &[192, 0, 2, 9]].concat(),
    );
    let stack = [&[0x00, 0x0c, 0x80, 0x00][..], &entry(201)].concat();
    let bytes = label_route(
        RTM_NEWROUTE,
        &[
            attribute(RTA_DST, &entry(100)),
            attribute(RTA_NEWDST, &stack),
            via.clone(),
            word_of(RTA_OIF, 7),
            attribute(RTA_TTL_PROPAGATE, &[0]),
        ],
    );
    let Message::Label(LabelUpdate::Set(read_one)) = read(&bytes) else {
        panic!("{:?}", read(&bytes));
    };
    assert_eq!(
        (read_one.label, read_one.protocol, read_one.is_pipe),
        (100, 193, true)
    );
    let swapped = NextHop {
        labels: [200, 201].into(),
        ..hop(7, "192.0.2.9", 1)
    };
    assert_eq!(*read_one.target, Target::Paths([swapped].into()));
    // The implicit null is not pushed.
    let implicit = label_route(
        RTM_NEWROUTE,
        &[
            attribute(RTA_DST, &entry(100)),
            attribute(RTA_NEWDST, &entry(3)),
            via,
            word_of(RTA_OIF, 7),
        ],
    );
    let Message::Label(LabelUpdate::Set(popped)) = read(&implicit) else {
        panic!("{:?}", read(&implicit));
    };
    assert_eq!(
        *popped.target,
        Target::Paths([hop(7, "192.0.2.9", 1)].into())
    );
    let gone = label_route(RTM_DELROUTE, &[attribute(RTA_DST, &entry(100))]);
    assert_eq!(
        read(&gone),
        Message::Label(LabelUpdate::Remove {
            label: 100,
            source: RouteSource::Kernel
        })
    );
    // A label of another length than 20 bits, a stack in its place, and none.
    let mut short = bytes.clone();
    short[17] = 19;
    assert_eq!(read(&short), Message::Refused("malformed"));
    let none = label_route(RTM_NEWROUTE, &[word_of(RTA_OIF, 7)]);
    assert_eq!(read(&none), Message::Refused("malformed"));
    let several = label_route(RTM_NEWROUTE, &[attribute(RTA_DST, &stack)]);
    assert_eq!(read(&several), Message::Refused("malformed"));
    // Each truncation is refused or read, and none panics.
    for length in 16..bytes.len() {
        let mut cut = bytes[..length].to_vec();
        cut[..4].copy_from_slice(&(length as u32).to_ne_bytes());
        let frame = Frames::new(&cut).next().unwrap().unwrap();
        let _ = Decoder::new(RouteSource::Kernel).read(&frame);
    }
}
