//! A packet's path reconstructed, from where it was received or only from where it was sent.

use std::net::IpAddr;

use weir_nodes::ForwardingPath;
use weir_port::interface::Input;
use weir_wire::build;

use crate::bridge::{BVI, FIRST as MEMBER, from_inside, routed_side};
use crate::mpls::{stack, under};
use crate::rig::*;
use crate::vlan::{DOUBLE, VLAN, routed, tagged, udp};
use crate::vpn;
use crate::vxlan::{PORT4, TUNNEL4, inner, tunnelled};

const Q: u16 = 0x8100;
const AD: u16 = 0x88a8;
type Tags = Option<((Option<u16>, Option<u8>), (Option<u16>, Option<u8>))>;

/// Sends a frame through the router; its path as an observer on receive gets it, and as one on transmit does.
fn ways(
    router: &mut Router,
    input: u32,
    taken: u32,
    frame: &[u8],
) -> (ForwardingPath, ForwardingPath) {
    let (out, left) = router.send_one(input, frame);
    let start = |bytes: &[u8]| bytes[..bytes.len().min(78)].to_vec();
    let (came, left) = (start(frame), start(&left));
    (
        router.tables.way(input, &came, Some((out, &left))),
        router.tables.way(taken, &[], Some((out, &left))),
    )
}

fn next(way: &ForwardingPath) -> Option<IpAddr> {
    way.hop.map(|hop| hop.next)
}

fn labels(way: &ForwardingPath) -> (Vec<u32>, Vec<u32>) {
    let of = |entries: &[u32]| entries.iter().map(|entry| entry >> 12).collect();
    (of(way.labels.0.entries()), of(way.labels.1.entries()))
}

#[test]
fn who_saw_a_packet_leave_takes_nothing_of_it_for_how_it_came() {
    let tag = |vlan, priority| (Some(vlan), priority);
    for (tags, destination, input, taken, output, expected) in [
        // It leaves with the tag of a sub-interface of the port that it came in by, untagged.
        (
            &[][..],
            "10.0.20.2",
            WEST,
            WEST,
            VLAN,
            Some((tag(0, Some(0)), tag(100, Some(0)))),
        ),
        (
            &[(Q, 100)],
            "10.0.2.2",
            WEST,
            VLAN,
            EAST,
            Some((tag(100, None), tag(0, Some(0)))),
        ),
        (
            &[(Q, 100)],
            "10.0.21.2",
            WEST,
            VLAN,
            DOUBLE,
            Some((tag(100, None), tag(7, Some(0)))),
        ),
        (
            &[(AD, 7), (Q, 8)],
            "10.0.20.2",
            WEST,
            DOUBLE,
            VLAN,
            Some((tag(7, None), tag(100, Some(0)))),
        ),
        (&[], "10.0.2.2", WEST, WEST, EAST, None),
    ] {
        let mut router = routed();
        let (_, way) = ways(&mut router, input, taken, &tagged(&udp(destination), tags));
        let expected: Tags = expected;
        assert_eq!(
            (way.input, way.output, way.tags, next(&way)),
            (taken, output, expected, Some(address(destination))),
            "{tags:?} {destination}"
        );
    }
    let mut router = routed();
    let frame = udp("10.0.2.2");
    let (came, left) = ways(&mut router, LEFT, LEFT, &frame);
    assert_eq!(
        (came.tags, next(&came)),
        (Some(((Some(0), Some(0)), (Some(0), Some(0)))), None),
        "switched"
    );
    assert_eq!(
        (left.tags, next(&left)),
        (Some(((None, None), (Some(0), Some(0)))), None)
    );
    // What the router made itself came in nowhere, and was looked up for nobody.
    let own = router.tables.way(0, &[], Some((WEST, &frame)));
    assert_eq!(
        (own.input, own.output, own.tags, own.hop),
        (0, WEST, None, None)
    );
}

#[test]
fn labels_are_those_of_their_side_and_what_is_under_the_last_one_is_looked_up() {
    let mut router = Router::with_labels(Setup::default());
    let frame = build::udp4(&through("10.51.0.7"), &[1; 40]);
    let (came, left) = ways(&mut router, WEST, WEST, &frame);
    for way in [came, left] {
        assert_eq!(
            (labels(&way), next(&way)),
            ((vec![], vec![501, 502]), Some(address("10.0.2.2")))
        );
    }
    let (came, left) = ways(
        &mut router,
        WEST,
        WEST,
        &build::udp4(&through("10.52.0.7"), &[1; 40]),
    );
    assert_eq!(
        (next(&came), next(&left)),
        (Some(address("10.0.2.2")), Some(address("10.0.2.2"))),
        "with an entropy label"
    );
    let (came, left) = ways(&mut router, WEST, WEST, &under(&frame, &[(100, 0, 64)]));
    assert_eq!(
        (labels(&came), next(&came)),
        ((vec![100], vec![200]), Some(address("10.0.2.2")))
    );
    assert_eq!(
        (labels(&left), next(&left)),
        ((vec![], vec![200]), None),
        "no route pushed this label"
    );

    let mut router = Router::of_a_provider();
    for frame in [
        build::udp4(&vpn::four("10.99.7.7"), &[1; 40]),
        build::udp6(&vpn::six("2001:db8:99::7"), &[1; 40]),
    ] {
        let (came, _) = ways(&mut router, WEST, WEST, &under(&frame, &[(120, 0, 9)]));
        let south = if frame[12] == 8 {
            "10.0.3.2"
        } else {
            "2001:db8:3::2"
        };
        assert_eq!(
            (came.output, labels(&came), next(&came)),
            (SOUTH, (vec![120], vec![]), Some(address(south)))
        );
    }
}

#[test]
fn what_goes_into_a_pseudowire_has_the_next_hop_of_its_labels() {
    let mut router = Router::default();
    crate::pseudowire::add(&mut router);
    let (came, left) = ways(&mut router, LEFT, LEFT, &crate::pseudowire::frame());
    for way in [came, left] {
        assert_eq!(
            (labels(&way), next(&way), way.hop.unwrap().prefixes),
            ((vec![], vec![700]), Some(address("10.0.2.2")), None)
        );
    }
    // In a bridge domain it is one of the pseudowires; labels that none of them pushes, or another station, are not explained.
    crate::bridge::add_with(
        &mut router,
        &[crate::pseudowire::RAW, crate::pseudowire::TAGGED],
    );
    let way = |labels: &[(u32, u8, u8)], station| {
        let frame = [
            &their_mac(2, station).0[..],
            &our_mac(EAST).0,
            &[0x88, 0x47],
            &stack(labels),
            &[0; 40],
        ]
        .concat();
        next(
            &router
                .tables
                .way(MEMBER, &crate::pseudowire::frame(), Some((EAST, &frame))),
        )
    };
    let (raw, tagged) = ([(700, 0, 255)], [(100, 3, 255), (701, 3, 255)]);
    assert_eq!(
        (way(&raw, 2), way(&tagged, 2)),
        (Some(address("10.0.2.2")), Some(address("10.0.2.2")))
    );
    assert_eq!(
        (way(&tagged[..1], 2), way(&tagged[1..], 2), way(&raw, 3)),
        (None, None, None)
    );
    // What is not for the routed side of the domain is switched, too.
    let mut router = routed_side(|_| {});
    crate::pseudowire::add(&mut router);
    crate::bridge::join(&mut router, crate::pseudowire::RAW);
    let frame = [
        &their_mac(2, 2).0[..],
        &our_mac(EAST).0,
        &[0x88, 0x47],
        &stack(&raw),
        &[0; 40],
    ]
    .concat();
    assert_eq!(
        next(
            &router
                .tables
                .way(MEMBER, &crate::pseudowire::frame(), Some((EAST, &frame)))
        ),
        Some(address("10.0.2.2"))
    );
}

#[test]
fn the_routed_side_of_a_bridge_domain_has_next_hops() {
    let mut router = routed_side(|_| {});
    let (came, left) = ways(
        &mut router,
        MEMBER,
        BVI,
        &build::udp4(&from_inside("10.0.2.2"), &[1; 40]),
    );
    assert_eq!(
        (came.input, came.output, next(&came)),
        (MEMBER, EAST, Some(address("10.0.2.2")))
    );
    assert_eq!(
        (left.input, left.output, next(&left)),
        (BVI, EAST, Some(address("10.0.2.2")))
    );
    let (came, _) = ways(
        &mut router,
        WEST,
        WEST,
        &build::udp4(&through("10.0.20.2"), &[1; 40]),
    );
    assert_eq!(
        (came.input, came.output, next(&came)),
        (WEST, MEMBER, Some(address("10.0.20.2")))
    );
    // From station to station nothing is routed, whatever is in the frame.
    let between = build::Ends {
        destination_mac: their_mac(20, 2),
        source_mac: their_mac(20, 3),
        ..from_inside("10.0.2.2")
    };
    for destination in ["10.0.2.2", "10.0.20.77"] {
        let frame = build::udp4(
            &build::Ends {
                destination: ip(destination),
                ..between
            },
            &[1; 40],
        );
        for start in [&frame[..], &[]] {
            assert_eq!(
                router
                    .tables
                    .way(MEMBER + 1, start, Some((MEMBER, &frame)))
                    .hop,
                None,
                "{destination}"
            );
        }
    }
}

#[test]
fn a_next_hop_is_reported_only_if_the_packet_left_for_it() {
    let mut router = Router::default();
    let frame = build::udp4(&through("10.0.2.2"), &[1; 40]);
    let (out, mut left) = router.send_one(WEST, &frame);
    assert!(
        router
            .tables
            .way(WEST, &frame, Some((out, &left)))
            .hop
            .is_some()
    );
    left[5] ^= 1;
    assert_eq!(
        router.tables.way(WEST, &frame, Some((out, &left))).hop,
        None,
        "another station on the same link"
    );
    router.change(WEST, |west| west.input = Input::Closed);
    left[5] ^= 1;
    assert_eq!(
        router.tables.way(WEST, &frame, Some((out, &left))).hop,
        None
    );
}

#[test]
fn what_a_tunnel_made_came_in_nowhere() {
    let mut router = tunnelled();
    let (came, left) = ways(&mut router, PORT4, TUNNEL4, &inner(7, 40));
    assert_eq!(
        (came.input, came.output, left.input, left.output),
        (PORT4, EAST, 0, EAST)
    );
}
