//! Access lists in and out: what passes, what is counted, and what a list says nothing of.

use std::sync::Arc;

use ipnet::Ipv4Net;
use weir_acl::{Action, Addresses, Payload, Rule};
use weir_graph::DropReason;
use weir_nodes::{Entry, Filter, FilterCounters, FilterList, Fragments};
use weir_port::interface::{Feature, Features};
use weir_wire::{ArpPacket, IpProtocol, MacAddr, build};

use crate::forward::alter;
use crate::rig::*;

fn net(text: &str) -> Ipv4Net {
    text.parse().unwrap()
}

/// A term about UDP to a prefix and some ports.
pub(crate) fn udp_to(
    action: Action,
    destination: &str,
    ports: std::ops::RangeInclusive<u16>,
) -> (Action, Vec<Rule>) {
    let addresses = Addresses::V4 {
        source: Ipv4Net::default(),
        destination: net(destination),
    };
    let payload = Payload::Ports {
        protocol: IpProtocol::UDP,
        source: 0..=u16::MAX,
        destination: ports,
    };
    (
        action,
        vec![Rule {
            action,
            addresses,
            payload,
        }],
    )
}

pub(crate) fn from(action: Action, source: &str) -> (Action, Vec<Rule>) {
    let addresses = Addresses::V4 {
        source: net(source),
        destination: Ipv4Net::default(),
    };
    (
        action,
        vec![Rule {
            action,
            addresses,
            payload: Payload::Any,
        }],
    )
}

/// Binds an interface to a list; what its terms meet.
pub(crate) fn bind(
    router: &mut Router,
    interface: u32,
    feature: Feature,
    terms: Vec<(Action, Vec<Rule>)>,
) -> Arc<FilterCounters> {
    bind_list(
        router,
        interface,
        feature,
        FilterList::build(terms).unwrap(),
    )
}

fn bind_list(
    router: &mut Router,
    interface: u32,
    feature: Feature,
    list: FilterList,
) -> Arc<FilterCounters> {
    let counters = Arc::new(FilterCounters::new(1, list.terms()));
    let filter = Some(Filter {
        list: Arc::new(list),
        counters: counters.clone(),
    });
    let place = router.tables.interfaces[interface as usize]
        .as_mut()
        .unwrap();
    let mut entry: Entry = (**place).clone();
    entry.interface.features = Features::default().with(feature);
    match feature {
        Feature::AclIn => entry.acl_input = filter,
        _ => entry.acl_output = filter,
    }
    *place = Arc::new(entry);
    counters
}

fn web() -> Vec<(Action, Vec<Rule>)> {
    vec![
        udp_to(Action::Permit, "10.0.2.2/32", 9..=9),
        from(Action::Deny, "10.0.1.2/32"),
        udp_to(Action::Permit, "0.0.0.0/0", 0..=1),
    ]
}

#[test]
fn the_first_term_that_matches_decides_and_is_counted() {
    for (interface, feature) in [(WEST, Feature::AclIn), (EAST, Feature::AclOut)] {
        let mut router = Router::default();
        let counters = bind(&mut router, interface, feature, web());
        let permitted = build::udp4(&through("10.0.2.2"), &[1; 40]);
        let mut other_port = through("10.0.2.2");
        other_port.destination_port = 10;
        let mut of_none = through("10.0.2.2");
        (of_none.source, of_none.destination_port) = (ip("10.0.1.9"), 77);
        let frames = [
            permitted.clone(),
            build::udp4(&other_port, &[1; 40]),
            permitted,
            build::udp4(&of_none, &[1; 40]),
        ];
        assert_eq!(router.send_all(WEST, &frames).len(), 2, "{feature:?}");
        assert_eq!(router.dropped(DropReason::AclDenied), 2);
        let bytes = frames[0].len() as u64;
        assert_eq!(
            [
                counters.of(0),
                counters.of(1),
                counters.of(2),
                counters.of(3)
            ],
            [(2, 2 * bytes), (1, bytes), (0, 0), (1, bytes)]
        );
        router.balance();
    }
}

#[test]
fn a_cross_connect_and_tags_are_looked_through() {
    let mut router = Router::default();
    bind(
        &mut router,
        LEFT,
        Feature::AclIn,
        vec![udp_to(Action::Permit, "10.0.2.0/24", 9..=9)],
    );
    let good = build::udp4(&through("10.0.2.2"), &[1; 40]);
    let bad = build::udp4(&through("10.0.3.2"), &[1; 40]);
    for (frame, passes) in [
        (good.clone(), true),
        (bad.clone(), false),
        (build::tagged(&good, 7, 0), true),
        (build::tagged(&bad, 7, 0), false),
        (build::tagged(&build::tagged(&bad, 7, 0), 8, 0), false),
        (
            build::arp(
                MacAddr::BROADCAST,
                &ArpPacket::new(ArpPacket::REQUEST, their_mac(1, 7), 1, MacAddr::ZERO, 2),
            ),
            true,
        ),
    ] {
        let sent = router.send(LEFT, &frame);
        assert_eq!(sent, if passes { vec![(RIGHT, frame)] } else { vec![] });
    }
    router.balance();
}

#[test]
fn odd_packets_meet_the_list_too() {
    let mut router = Router::default();
    let counters = bind(
        &mut router,
        WEST,
        Feature::AclIn,
        vec![
            udp_to(Action::Deny, "10.0.2.2/32", 7..=7),
            from(Action::Permit, "0.0.0.0/0"),
        ],
    );
    // A later fragment has no ports: it meets the first term that its addresses meet.
    let mut fragment = build::udp4(&through("10.0.2.2"), &[1; 40]);
    alter(&mut fragment, |header| header.set_fragment(100, false));
    assert!(router.send(WEST, &fragment).is_empty());
    let mut to_other = build::udp4(&through("10.0.3.2"), &[1; 40]);
    alter(&mut to_other, |header| header.set_fragment(100, false));
    assert_eq!(router.send(WEST, &to_other).len(), 1);
    assert_eq!((counters.of(0).0, counters.of(1).0), (1, 1));
    // What Weir itself answers is not compared with the list of the way in.
    let mut expiring = build::udp4(&through("10.0.2.2"), &[1; 40]);
    alter(&mut expiring, |header| header.ttl = 1);
    assert_eq!(router.send(WEST, &expiring).len(), 1);
    router.balance();
}

#[test]
fn requests_for_addresses_pass_a_list_that_denies_all() {
    let mut router = Router::default();
    bind(
        &mut router,
        WEST,
        Feature::AclIn,
        vec![from(Action::Deny, "0.0.0.0/0")],
    );
    bind(
        &mut router,
        EAST,
        Feature::AclOut,
        vec![from(Action::Deny, "0.0.0.0/0")],
    );
    let request = ArpPacket::new(
        ArpPacket::REQUEST,
        their_mac(1, 7),
        ip("10.0.1.7"),
        MacAddr::ZERO,
        ip("10.0.1.1"),
    );
    assert_eq!(
        router
            .send(WEST, &build::arp(MacAddr::BROADCAST, &request))
            .len(),
        1
    );
    assert!(
        router
            .send(WEST, &build::udp4(&through("10.0.2.2"), &[1; 40]))
            .is_empty()
    );
    router.balance();
}

#[test]
fn only_a_neighbour_gets_past_a_list_by_discovery() {
    for (hop_limit, passes) in [(255, true), (254, false), (64, false)] {
        let mut router = Router::default();
        bind(
            &mut router,
            WEST,
            Feature::AclIn,
            vec![from(Action::Permit, "0.0.0.0/0")],
        );
        let mut ends = through6("2001:db8:2::2");
        ends.hop_limit = hop_limit;
        assert_eq!(
            router
                .send(WEST, &build::echo6(&ends, 135, 0, 0, &[0; 20]))
                .len(),
            usize::from(passes),
            "{hop_limit}"
        );
        assert_eq!(router.dropped(DropReason::AclDenied), u64::from(!passes));
        router.balance();
    }
}

/// Whatever the terms say of ports, and in both directions; first fragments meet the terms as ever.
#[test]
fn later_fragments_match_or_are_dropped_or_pass() {
    for feature in [Feature::AclIn, Feature::AclOut] {
        for (fragments, passes, counted) in [
            (Fragments::Match, [true, false], (2, 0)),
            (Fragments::Drop, [false, false], (1, 2)),
            (Fragments::Permit, [true, true], (1, 0)),
        ] {
            let mut router = Router::default();
            let interface = if feature == Feature::AclIn {
                WEST
            } else {
                EAST
            };
            let terms = vec![
                udp_to(Action::Permit, "10.0.2.2/32", 7..=9),
                udp_to(Action::Deny, "10.0.2.3/32", 0..=65_535),
            ];
            let list = FilterList::build(terms).unwrap().with_fragments(fragments);
            let counters = bind_list(&mut router, interface, feature, list);
            let piece = |to: &str, offset: u16| {
                let mut frame = build::udp4(&through(to), &[1; 40]);
                frame[36..38].copy_from_slice(&8u16.to_be_bytes());
                alter(&mut frame, |header| {
                    header.set_fragment(offset, offset == 0)
                });
                frame
            };
            assert_eq!(router.send(WEST, &piece("10.0.2.2", 0)).len(), 1);
            assert!(router.send(WEST, &piece("10.0.2.3", 0)).is_empty());
            for (to, passes) in ["10.0.2.2", "10.0.2.3"].into_iter().zip(passes) {
                let sent = router.send(WEST, &piece(to, 100)).len();
                assert_eq!(sent, usize::from(passes), "{fragments:?} {to}");
            }
            assert_eq!(
                (counters.of(0).0, counters.of(2).0),
                counted,
                "{fragments:?}"
            );
            router.balance();
        }
    }
}
