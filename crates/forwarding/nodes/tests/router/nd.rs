//! Neighbour discovery: answering, learning, asking, and what waits meanwhile.

use weir_fib::NeighborState;
use weir_graph::{DropReason, HoldLimits};
use weir_nodes::{Event, hold_key};
use weir_wire::ipv6::{multicast_mac, solicited_node};
use weir_wire::nd::{self, Claim, Message};
use weir_wire::{EtherType, EthernetHeader, Ipv6Header, MacAddr, icmp6};
use zerocopy::IntoBytes;

use crate::ip6::udp6;
use crate::rig::*;

const HOST: MacAddr = MacAddr([2, 0, 0, 1, 1, 7]);

/// A frame around what `write` makes of a packet.
fn frame(to: MacAddr, from: MacAddr, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut packet = [0; 200];
    let length = write(&mut packet).unwrap();
    [
        EthernetHeader::new(to, from, EtherType::IPV6).as_bytes(),
        &packet[..length],
    ]
    .concat()
}

pub(crate) fn solicitation(source: &str, target: &str) -> Vec<u8> {
    let target = ip6(target);
    frame(multicast_mac(&solicited_node(&target)), HOST, |packet| {
        nd::neighbor_solicitation(packet, ip6(source), HOST, target)
    })
}

fn probe(target: &str) -> Vec<u8> {
    let target = ip6(target);
    frame(multicast_mac(&solicited_node(&target)), HOST, |packet| {
        nd::duplicate_solicitation(packet, target)
    })
}

/// An advertisement from and about `target`, to `asker` (`::` for everybody).
pub(crate) fn advertisement(target: &str, asker: &str, override_known: bool) -> Vec<u8> {
    let claim = Claim {
        router: false,
        solicited: true,
        override_known,
    };
    let to = if asker == "::" {
        MacAddr([0x33, 0x33, 0, 0, 0, 1])
    } else {
        our_mac(WEST)
    };
    frame(to, HOST, |packet| {
        nd::neighbor_advertisement(packet, ip6(target), ip6(asker), ip6(target), HOST, claim)
    })
}

pub(crate) fn router_solicitation(source: &str) -> Vec<u8> {
    frame(MacAddr([0x33, 0x33, 0, 0, 0, 2]), HOST, |packet| {
        nd::router_solicitation(packet, ip6(source), HOST)
    })
}

/// The frame with some bytes changed and the checksum made right.
pub(crate) fn mended(mut frame: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    change(&mut frame);
    let payload = (frame.len() - 54) as u16;
    Ipv6Header::read_mut(&mut frame[14..])
        .unwrap()
        .0
        .set_payload_len(payload);
    icmp6::checksum_set(&mut frame[14..]);
    frame
}

/// Whom an advertisement is from, to, and what it says, as tshark's judge of the wire crate reads it.
fn read(frame: &[u8]) -> (EthernetHeader, Ipv6Header, Message<'_>) {
    let (ethernet, l3) = EthernetHeader::read(frame).unwrap();
    let (header, message) = Ipv6Header::read(l3).unwrap();
    assert_eq!(header.payload_len() as usize, message.len());
    (*ethernet, *header, nd::read(header, message).unwrap())
}

fn heard(address: &str, to_us: bool, replaces: bool) -> Event {
    Event::Heard {
        interface: WEST,
        address: crate::rig::address(address),
        mac: HOST,
        to_us,
        replaces,
    }
}

#[test]
fn who_has_no_address_yet_hears_whose_it_is() {
    let mut router = Router::default();
    router.change(WEST, |interface| interface.addresses6 = [].into());
    let claim = advertisement("2001:db8:1::dad", "::", true);
    assert!(router.send(WEST, &claim).is_empty());
    let seen_events = router.events().into_iter().any(|event| {
        matches!(
            event,
            Event::Duplicate {
                interface: WEST,
                ..
            }
        )
    });
    assert!(seen_events, "{:?}", router.drops());
}

#[test]
fn questions_for_own_addresses_are_answered() {
    let mut router = Router::default();
    for (asker, target) in [
        ("2001:db8:1::7", "2001:db8:1::1"),
        ("fe80::7", "fe80::1"),
        ("fe80::7", "2001:db8:1::1"),
        ("2001:db8:1::7", "fe80::1"),
    ] {
        let alone = frame(our_mac(WEST), HOST, |packet| {
            nd::neighbor_probe(packet, ip6(asker), HOST, ip6(target))
        });
        let silent = mended(solicitation(asker, target), |frame| frame.truncate(78));
        for question in [solicitation(asker, target), alone, silent] {
            let mut padded = question.clone();
            padded.resize(100, 0xee);
            for question in [question, padded] {
                let (interface, got) = router.send_one(WEST, &question);
                let (ethernet, header, message) = read(&got);
                assert_eq!(
                    (interface, ethernet.destination, ethernet.source),
                    (WEST, HOST, our_mac(WEST))
                );
                assert_eq!(
                    (header.source, header.destination, header.hop_limit),
                    (ip6(target), ip6(asker), 255)
                );
                let (target, mac) = (ip6(target), Some(our_mac(WEST)));
                let expected = Message::NeighborAdvertisement {
                    target,
                    mac,
                    router: true,
                    solicited: true,
                    override_known: true,
                };
                assert_eq!(message, expected);
                assert_eq!(got.len(), 86, "no byte of somebody else's");
            }
        }
    }
    let tx = router.interface(WEST).counters.tx();
    assert_eq!(
        (tx.packets, tx.unicast),
        (24, 24),
        "an answer to a group is for one"
    );
    let expected: Vec<_> = router.events();
    assert_eq!(
        expected,
        [
            heard("2001:db8:1::7", true, true),
            heard("fe80::7", true, true)
        ]
    );
}

#[test]
fn whoever_asks_from_elsewhere_is_answered_and_not_believed() {
    let mut router = Router::default();
    let (_, got) = router.send_one(WEST, &solicitation("2001:db8:77::7", "fe80::1"));
    assert_eq!(read(&got).0.destination, HOST);
    assert!(router.events().is_empty());
}

#[test]
fn who_wants_an_own_address_is_reported_with_all_others() {
    let mut router = Router::default();
    let (_, got) = router.send_one(WEST, &probe("2001:db8:1::1"));
    let (ethernet, header, message) = read(&got);
    assert_eq!(
        (ethernet.destination, header.destination),
        (MacAddr([0x33, 0x33, 0, 0, 0, 1]), ip6("ff02::1"))
    );
    assert!(matches!(
        message,
        Message::NeighborAdvertisement {
            solicited: false,
            override_known: true,
            router: true,
            ..
        }
    ));
    assert_eq!(router.interface(WEST).counters.tx().multicast, 1);
    assert!(router.events().is_empty());
}

#[test]
fn a_tentative_address_is_not_defended_and_its_other_owner_is_reported() {
    let mut router = Router::default();
    let duplicate = Event::Duplicate {
        interface: WEST,
        address: address("2001:db8:1::dad"),
        mac: HOST,
    };
    assert!(
        router
            .send_all(WEST, &vec![probe("2001:db8:1::dad"); 9])
            .is_empty()
    );
    assert_eq!(router.events(), [duplicate]);
    router.now += SECOND;
    assert!(
        router
            .send(WEST, &advertisement("2001:db8:1::dad", "::", true))
            .is_empty()
    );
    assert_eq!(router.events(), [duplicate]);
    // Who only wants to reach it hears nothing, and is no duplicate.
    assert!(
        router
            .send(WEST, &solicitation("fe80::7", "2001:db8:1::dad"))
            .is_empty()
    );
    assert_eq!(router.events(), [heard("fe80::7", false, true)]);
    // Our own question that comes back is none either.
    let ours = mended(probe("2001:db8:1::dad"), |frame| {
        frame[6..12].copy_from_slice(&our_mac(WEST).0)
    });
    assert!(router.send(WEST, &ours).is_empty() && router.events().is_empty());
    let drops = [
        ("nd-input", DropReason::NdForeign, WEST, 10),
        ("nd-input", DropReason::NdMartian, WEST, 2),
    ];
    assert_eq!(router.drops(), drops);
}

#[test]
fn somebody_with_an_address_of_ours_is_reported_of() {
    let mut router = Router::default();
    for frame in [
        solicitation("2001:db8:1::1", "2001:db8:1::9"),
        advertisement("fe80::1", "::", true),
    ] {
        let frame = mended(frame, |frame| {
            // To a group that we are in, so that it gets here.
            frame[38..54].copy_from_slice(&ip6("ff02::1"));
        });
        assert!(router.send(WEST, &frame).is_empty());
    }
    let duplicate = |text| Event::Duplicate {
        interface: WEST,
        address: address(text),
        mac: HOST,
    };
    assert_eq!(
        router.events(),
        [duplicate("2001:db8:1::1"), duplicate("fe80::1")]
    );
    assert_eq!(
        router.drops(),
        [("nd-input", DropReason::NdMartian, WEST, 2)]
    );
}

#[test]
fn advertisements_are_passed_on_with_what_they_claim() {
    let mut router = Router::default();
    assert!(
        router
            .send(WEST, &advertisement("2001:db8:1::7", "2001:db8:1::1", true))
            .is_empty()
    );
    assert!(
        router
            .send(WEST, &advertisement("fe80::7", "fe80::1", false))
            .is_empty()
    );
    assert!(
        router
            .send(WEST, &advertisement("2001:db8:1::8", "::", true))
            .is_empty()
    );
    // Without its MAC address an advertisement replaces nothing.
    let bare = mended(
        advertisement("2001:db8:1::9", "2001:db8:1::1", true),
        |frame| frame.truncate(78),
    );
    assert!(router.send(WEST, &bare).is_empty());
    let expected = [
        heard("2001:db8:1::7", true, true),
        heard("fe80::7", true, false),
        heard("2001:db8:1::8", false, true),
        heard("2001:db8:1::9", true, false),
    ];
    assert_eq!(router.events(), expected);
    assert!(router.drops().is_empty());
    assert!(
        router
            .send(WEST, &advertisement("2001:db8:2::7", "2001:db8:1::1", true))
            .is_empty()
    );
    assert_eq!(
        router.drops(),
        [("nd-input", DropReason::NdForeign, WEST, 1)]
    );
    assert!(router.events().is_empty());
}

#[test]
fn impossible_senders_are_refused() {
    let mut router = Router::default();
    let mut count = 0;
    for mac in [
        MacAddr::BROADCAST,
        MacAddr::ZERO,
        MacAddr([0x33, 0x33, 0, 0, 0, 1]),
        our_mac(WEST),
    ] {
        for good in [
            solicitation("2001:db8:1::7", "2001:db8:1::1"),
            advertisement("2001:db8:1::7", "2001:db8:1::1", true),
        ] {
            let bad = mended(good, |frame| frame[80..86].copy_from_slice(&mac.0));
            assert!(router.send(WEST, &bad).is_empty(), "{mac}");
            count += 1;
        }
    }
    assert_eq!(
        router.drops(),
        [("nd-input", DropReason::NdMartian, WEST, count)]
    );
    assert!(router.events().is_empty());
}

#[test]
fn a_storm_is_one_event_a_second_and_every_question_is_answered() {
    let mut router = Router::default();
    let storm = vec![solicitation("2001:db8:1::7", "2001:db8:1::1"); 300];
    for second in 1..4 {
        for part in 0..3 {
            router.now = second * SECOND + part * 300_000_000;
            assert_eq!(router.send_all(WEST, &storm).len(), 300);
        }
        assert_eq!(router.events().len(), 1);
    }
}

#[test]
fn who_asks_for_routers_is_reported_of_where_this_one_advertises() {
    let mut router = Router::default();
    assert!(
        router
            .send(WEST, &router_solicitation("fe80::7"))
            .is_empty()
    );
    assert_eq!(
        router.drops(),
        [("nd-input", DropReason::NdRouter, WEST, 1)]
    );
    assert!(router.events().is_empty());
    for source in ["fe80::7", "::", "fe80::8"] {
        assert!(router.send(SOUTH, &router_solicitation(source)).is_empty());
    }
    let near = |text| Event::Heard {
        interface: SOUTH,
        address: address(text),
        mac: HOST,
        to_us: true,
        replaces: true,
    };
    assert_eq!(
        router.events(),
        [
            near("fe80::7"),
            Event::RouterWanted { interface: SOUTH },
            near("fe80::8")
        ]
    );
    router.now += SECOND;
    router.send(SOUTH, &router_solicitation("::"));
    assert_eq!(router.events(), [Event::RouterWanted { interface: SOUTH }]);
}

#[test]
fn an_unknown_neighbour_is_asked_for_once_a_second_and_packets_wait() {
    let mut router = Router::default();
    for (destination, asked, source) in [
        ("2001:db8:2::77", "2001:db8:2::77", "2001:db8:2::1"),
        ("2001:db8:d::5", "2001:db8:2::9", "2001:db8:2::1"),
        ("2001:db8:f::5", "fe80::99", "fe80::2"),
    ] {
        let frame = udp6(destination);
        router.now += 10 * SECOND;
        let (interface, got) = router.send_one(WEST, &frame);
        let (ethernet, header, message) = read(&got);
        assert_eq!((interface, ethernet.source), (EAST, our_mac(EAST)));
        assert_eq!(
            ethernet.destination,
            multicast_mac(&solicited_node(&ip6(asked)))
        );
        assert_eq!(
            (header.source, header.destination),
            (ip6(source), solicited_node(&ip6(asked)))
        );
        assert_eq!(
            message,
            Message::NeighborSolicitation {
                target: ip6(asked),
                mac: Some(our_mac(EAST))
            }
        );
        assert_eq!(
            router.events(),
            [Event::Wanted {
                interface: EAST,
                address: address(asked)
            }]
        );
        router.now += SECOND - 1;
        assert!(router.send(WEST, &frame).is_empty() && router.events().is_empty());
        router.now += 1;
        assert_eq!(
            (router.send(WEST, &frame).len(), router.events().len()),
            (1, 1)
        );
        assert_eq!(router.graph.held(), 3);
        router.give_up(DropReason::Stopped);
    }
    assert_eq!(router.interface(EAST).counters.tx().multicast, 6);
}

#[test]
fn waiting_packets_go_on_in_order_when_the_neighbour_answers_and_fail_when_it_does_not() {
    let mut router = Router::default();
    for (state, out) in [
        (NeighborState::Reachable, EAST),
        (NeighborState::Failed, WEST),
    ] {
        let adjacency = router.adjacency_of("2001:db8:2::9");
        router.set_neighbor(adjacency, NeighborState::Incomplete);
        router.now += 10 * SECOND;
        let frames: Vec<_> = (0..10u8)
            .map(|n| weir_wire::build::udp6(&through6("2001:db8:d::1"), &[n; 30]))
            .collect();
        assert_eq!(router.send_all(WEST, &frames).len(), 1, "one question");
        router.set_neighbor(adjacency, state);
        router
            .graph
            .release(hold_key(EAST, address("2001:db8:2::9")));
        let sent = router.turn();
        assert_eq!((sent.len(), router.graph.held()), (10, 0));
        for ((interface, got), frame) in sent.iter().zip(&frames) {
            assert_eq!(*interface, out);
            let payload = if out == EAST {
                &got[54..]
            } else {
                &got[54 + 8 + 40..]
            };
            assert_eq!(payload, &frame[54..]);
        }
    }
    assert_eq!(router.dropped(DropReason::HostUnreachable), 10);
}

#[test]
fn a_flood_of_unknown_neighbours_fills_only_what_there_is() {
    let mut router = Router::new(Setup {
        holds: HoldLimits {
            keys: 8,
            per_key: 2,
            ..HoldLimits::default()
        },
        ..Setup::default()
    });
    let frames: Vec<_> = (0..200u16)
        .map(|n| udp6(&format!("2001:db8:2::{:x}:1", n + 1)))
        .collect();
    router.send_all(WEST, &frames);
    assert_eq!(
        (router.graph.held(), router.dropped(DropReason::HoldFull)),
        (8, 192)
    );
    assert_eq!(
        router.events().len(),
        200,
        "the control side has bounds of its own"
    );
    // An event ring that is full costs the event.
    for round in 0..20u16 {
        router.send_all(
            WEST,
            &(0..200u16)
                .map(|n| udp6(&format!("2001:db8:2::{:x}:{:x}", n + 1, round + 2)))
                .collect::<Vec<_>>(),
        );
    }
    assert!(router.graph.counters().events_lost.get() > 0);
}

#[test]
fn hostile_messages_are_refused_for_what_is_wrong_with_them() {
    let mut router = Router::default();
    let good = || solicitation("2001:db8:1::7", "2001:db8:1::1");
    let refused = |router: &mut Router, frame: Vec<u8>, reason: DropReason| {
        let before = router.dropped(reason);
        assert!(router.send(WEST, &frame).is_empty(), "{reason:?}");
        assert_eq!(
            router.dropped(reason),
            before + 1,
            "{reason:?}: {:?}",
            router.drops()
        );
    };
    for hops in [0, 1, 64, 254] {
        let frame = mended(good(), |frame| frame[21] = hops);
        refused(&mut router, frame, DropReason::NdHopLimit);
    }
    let mut sum = good();
    sum[56] ^= 1;
    refused(&mut router, sum, DropReason::IcmpBadChecksum);
    for length in [62, 70, 77] {
        refused(
            &mut router,
            mended(good(), |frame| frame.truncate(length)),
            DropReason::NdTruncated,
        );
    }
    // Options of no length, cut off, beyond the end.
    for (place, byte) in [(79, 0), (79, 2), (79, 255), (55, 1)] {
        refused(
            &mut router,
            mended(good(), |frame| frame[place] = byte),
            DropReason::NdMalformed,
        );
    }
    refused(
        &mut router,
        mended(good(), |frame| frame.truncate(85)),
        DropReason::NdMalformed,
    );
    refused(
        &mut router,
        mended(good(), |frame| frame[62] = 0xff),
        DropReason::NdMalformed,
    );
    refused(
        &mut router,
        mended(good(), |frame| frame[54] = 137),
        DropReason::NdRedirect,
    );
    let advertised = frame(MacAddr([0x33, 0x33, 0, 0, 0, 1]), HOST, |packet| {
        nd::router_advertisement(
            packet,
            ip6("fe80::7"),
            ip6("ff02::1"),
            &nd::Router::default(),
            &[],
        )
    });
    refused(&mut router, advertised, DropReason::NdRouter);
    // Behind an extension header nothing of this is believed (RFC 6980).
    let hidden = crate::ip6::with_extensions(
        &good(),
        weir_wire::IpProtocol::DESTINATION_OPTIONS,
        &[58, 0, 1, 4, 0, 0, 0, 0],
    );
    refused(&mut router, hidden, DropReason::NdMalformed);
    let mut vector = weir_buf::Vector::default();
    vector.push(router.packet_cut(&good(), 70));
    assert!(router.send_vector(WEST, &mut vector).is_empty());
    assert!(router.events().is_empty());
}

/// RFC 4291 section 2.6.1: each router answers for the anycast address of a subnet, and overrides nobody (RFC 4861 section
/// 7.2.7).
#[test]
fn the_anycast_address_of_a_subnet_is_answered_for() {
    let mut router = Router::default();
    let (interface, got) = router.send_one(WEST, &solicitation("2001:db8:1::7", "2001:db8:1::"));
    let (.., message) = read(&got);
    let expected = Message::NeighborAdvertisement {
        target: ip6("2001:db8:1::"),
        mac: Some(our_mac(WEST)),
        router: true,
        solicited: true,
        override_known: false,
    };
    assert_eq!((interface, message), (WEST, expected));
    router.events();
    // Another router has it too: that is no duplicate.
    router.send(WEST, &advertisement("2001:db8:1::", "2001:db8:1::7", true));
    assert!(
        !router
            .events()
            .iter()
            .any(|event| matches!(event, Event::Duplicate { .. }))
    );
    // Not of another interface's subnet, and not where there are two addresses or one.
    assert!(
        router
            .send(WEST, &solicitation("2001:db8:1::7", "2001:db8:2::"))
            .is_empty()
    );
    for length in [127, 128] {
        let own = u128::from_be_bytes(ip6("2001:db8:1::1"));
        router.change(WEST, |west| west.addresses6 = [(own, length)].into());
        router.now += 2 * SECOND;
        assert!(
            router
                .send(WEST, &solicitation("2001:db8:1::7", "2001:db8:1::"))
                .is_empty(),
            "{length}"
        );
    }
}
