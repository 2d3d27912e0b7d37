//! Neighbour discovery: bytes after RFC 4861, what is not believed, and what is written.

use proptest::prelude::*;
use weir_wire::ipv6::{ALL_NODES, ALL_ROUTERS, UNSPECIFIED, solicited_node};
use weir_wire::nd::{self, Claim, Message, NdError, Prefix, Router};
use weir_wire::{IcmpHeader, Ipv6Header, MacAddr, icmp6};

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x0a]);

fn address(text: &str) -> [u8; 16] {
    text.parse::<std::net::Ipv6Addr>().unwrap().octets()
}

fn read(packet: &[u8]) -> Result<Message<'_>, NdError> {
    let (header, message) = Ipv6Header::read(packet).unwrap();
    nd::read(header, message)
}

fn written(write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut room = vec![0xee; 400];
    let length = write(&mut room).unwrap();
    assert!(room[length..].iter().all(|byte| *byte == 0xee));
    room.truncate(length);
    room
}

/// The packet changed, its checksum set right again.
fn changed(packet: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut packet = packet.to_vec();
    change(&mut packet);
    let length = (packet.len() - 40) as u16;
    Ipv6Header::read_mut(&mut packet)
        .unwrap()
        .0
        .set_payload_len(length);
    icmp6::checksum_set(&mut packet);
    packet
}

fn solicitation() -> Vec<u8> {
    written(|room| {
        nd::neighbor_solicitation(
            room,
            address("fe80::1"),
            MAC,
            address("2001:db8::abcd:ef12"),
        )
    })
}

fn advertisement() -> Vec<u8> {
    let claim = Claim {
        router: true,
        solicited: true,
        override_known: false,
    };
    written(|room| {
        nd::neighbor_advertisement(
            room,
            address("fe80::2"),
            address("fe80::1"),
            address("fe80::2"),
            MAC,
            claim,
        )
    })
}

fn router() -> (Router, [Prefix; 2]) {
    let router = Router {
        hop_limit: 64,
        managed: true,
        other: false,
        lifetime: 1800,
        reachable: 30_000,
        retransmit: 1000,
        mac: Some(MAC),
        mtu: Some(9000),
    };
    let prefixes = [
        Prefix::new(address("2001:db8:1::"), 64, true, true, 86_400, 14_400),
        Prefix::new(address("2001:db8:2::"), 56, true, false, u32::MAX, 7),
    ];
    (router, prefixes)
}

fn router_advertisement() -> Vec<u8> {
    let (router, prefixes) = router();
    written(|room| {
        nd::router_advertisement(room, address("fe80::1"), ALL_NODES, &router, &prefixes)
    })
}

#[test]
fn a_solicitation_byte_for_byte() {
    let packet = solicitation();
    let fixed = [
        &[0x60, 0, 0, 0, 0, 32, 58, 255][..],
        &address("fe80::1"),
        &address("ff02::1:ffcd:ef12"),
    ]
    .concat();
    assert_eq!(packet[..40], fixed);
    // RFC 4861 section 4.3: type 135, code 0, checksum, reserved, target; option 1 of one unit.
    assert_eq!(
        (&packet[40..42], &packet[44..48]),
        (&[135, 0][..], &[0; 4][..])
    );
    assert_eq!(
        packet[48..],
        [
            &address("2001:db8::abcd:ef12")[..],
            &[1, 1, 2, 0, 0, 0, 0, 0x0a]
        ]
        .concat()
    );
    assert_eq!(
        read(&packet),
        Ok(Message::NeighborSolicitation {
            target: address("2001:db8::abcd:ef12"),
            mac: Some(MAC)
        })
    );
    let probe =
        written(|room| nd::neighbor_probe(room, address("fe80::1"), MAC, address("fe80::2")));
    assert_eq!(probe[24..40], address("fe80::2"));
    let duplicate = written(|room| nd::duplicate_solicitation(room, address("fe80::2")));
    assert_eq!((duplicate.len(), &duplicate[8..24]), (64, &UNSPECIFIED[..]));
    assert_eq!(duplicate[24..40], solicited_node(&address("fe80::2")));
    assert_eq!(
        read(&duplicate),
        Ok(Message::NeighborSolicitation {
            target: address("fe80::2"),
            mac: None
        })
    );
}

#[test]
fn an_advertisement_byte_for_byte() {
    let packet = advertisement();
    // Section 4.4: R and S set, O not; option 2.
    assert_eq!((packet[40], &packet[44..48]), (136, &[0xc0, 0, 0, 0][..]));
    assert_eq!(packet[64..], [2, 1, 2, 0, 0, 0, 0, 0x0a]);
    let expected = Message::NeighborAdvertisement {
        target: address("fe80::2"),
        mac: Some(MAC),
        router: true,
        solicited: true,
        override_known: false,
    };
    assert_eq!(read(&packet), Ok(expected));
    // To somebody who probes: to all, unsolicited.
    let claim = Claim {
        router: false,
        solicited: true,
        override_known: true,
    };
    let packet = written(|room| {
        nd::neighbor_advertisement(
            room,
            address("fe80::2"),
            UNSPECIFIED,
            address("fe80::2"),
            MAC,
            claim,
        )
    });
    assert_eq!((&packet[24..40], packet[44]), (&ALL_NODES[..], 0x20));
    assert!(read(&packet).is_ok());
}

#[test]
fn routers() {
    let packet = written(|room| nd::router_solicitation(room, address("fe80::1"), MAC));
    assert_eq!((&packet[24..40], packet.len()), (&ALL_ROUTERS[..], 56));
    assert_eq!(
        read(&packet),
        Ok(Message::RouterSolicitation { mac: Some(MAC) })
    );
    let packet = written(|room| nd::router_solicitation(room, UNSPECIFIED, MAC));
    assert_eq!(
        (read(&packet), packet.len()),
        (Ok(Message::RouterSolicitation { mac: None }), 48)
    );

    let packet = router_advertisement();
    // Section 4.2: hop limit, M, lifetime, reachable time, retransmission timer; options 1, 5, 3, 3.
    assert_eq!(
        packet[44..56],
        [64, 0x80, 0x07, 0x08, 0, 0, 0x75, 0x30, 0, 0, 0x03, 0xe8]
    );
    assert_eq!(
        packet[56..72],
        [1, 1, 2, 0, 0, 0, 0, 0x0a, 5, 1, 0, 0, 0, 0, 0x23, 0x28]
    );
    assert_eq!(
        packet[72..88],
        [
            3, 4, 64, 0xc0, 0, 1, 0x51, 0x80, 0, 0, 0x38, 0x40, 0, 0, 0, 0
        ]
    );
    let message = read(&packet).unwrap();
    let Message::RouterAdvertisement { router: found, .. } = message else {
        panic!("{message:?}")
    };
    assert_eq!(found, router().0);
    assert_eq!(message.prefixes().copied().collect::<Vec<_>>(), router().1);
    assert!(
        message
            .prefixes()
            .next()
            .is_some_and(|prefix| prefix.is_on_link()
                && prefix.is_autonomous()
                && prefix.preferred() == 14_400)
    );
}

#[test]
fn what_is_not_believed() {
    let solicitation = solicitation();
    let hops = changed(&solicitation, |packet| packet[7] = 254);
    assert_eq!(read(&hops), Err(NdError::HopLimit(254)));
    let mut broken = solicitation.clone();
    broken[50] ^= 1;
    assert_eq!(read(&broken), Err(NdError::Checksum));
    assert_eq!(
        read(&changed(&solicitation, |packet| packet[41] = 3)),
        Err(NdError::Code(3))
    );
    assert_eq!(
        read(&changed(&solicitation, |packet| packet[40] = 137)),
        Err(NdError::Other)
    );
    assert_eq!(
        read(&changed(&solicitation, |packet| packet[48] = 0xff)),
        Err(NdError::Target)
    );
    assert_eq!(
        read(&changed(&advertisement(), |packet| packet[48] = 0xff)),
        Err(NdError::Target)
    );
    // Options of length 0, or longer than the message.
    assert_eq!(
        read(&changed(&solicitation, |packet| packet[65] = 0)),
        Err(NdError::Option)
    );
    assert_eq!(
        read(&changed(&solicitation, |packet| packet[65] = 2)),
        Err(NdError::Option)
    );
    assert_eq!(
        read(&changed(&advertisement(), |packet| packet.push(2))),
        Err(NdError::Option)
    );
    // Nobody asks with a MAC address, or elsewhere than in the solicited-node group.
    assert_eq!(
        read(&changed(&solicitation, |packet| packet[8..24].fill(0))),
        Err(NdError::Addresses)
    );
    let probe = written(|room| nd::duplicate_solicitation(room, address("fe80::2")));
    assert_eq!(
        read(&changed(&probe, |packet| packet[24..40].copy_from_slice(&ALL_NODES))),
        Err(NdError::Addresses)
    );
    // A solicited advertisement to a group; a router that is not on the link.
    assert_eq!(
        read(&changed(&advertisement(), |packet| packet[24..40]
            .copy_from_slice(&ALL_NODES))),
        Err(NdError::Addresses)
    );
    assert_eq!(
        read(&changed(&router_advertisement(), |packet| packet[8] = 0x20)),
        Err(NdError::Addresses)
    );
    let nobody = changed(
        &written(|room| nd::router_solicitation(room, address("fe80::1"), MAC)),
        |packet| packet[8..24].fill(0),
    );
    assert_eq!(read(&nobody), Err(NdError::Addresses));
    // Unknown options are passed over, and so is a known one of a strange length.
    let unknown = changed(&solicitation, |packet| {
        packet[64] = 253;
        packet.extend([1, 2].iter().chain(&[0; 14]));
    });
    assert_eq!(
        read(&unknown),
        Ok(Message::NeighborSolicitation {
            target: address("2001:db8::abcd:ef12"),
            mac: None
        })
    );
}

#[test]
fn every_truncation_and_every_room() {
    for packet in [solicitation(), advertisement(), router_advertisement()] {
        let options_at = if packet[40] == nd::ROUTER_ADVERTISEMENT {
            56
        } else {
            64
        };
        for length in 40..packet.len() {
            let cut = changed(&packet, |packet| packet.truncate(length));
            let whole_options =
                length >= options_at && [0, 8, 16, 48].contains(&(length - options_at));
            assert_eq!(read(&cut).is_ok(), whole_options, "{length}");
        }
    }
    let (router, prefixes) = router();
    for length in 0..72 {
        let mut room = vec![0xee; length];
        assert_eq!(
            nd::neighbor_solicitation(&mut room, UNSPECIFIED, MAC, [1; 16]),
            None
        );
        assert_eq!(
            nd::router_advertisement(&mut room, UNSPECIFIED, [1; 16], &router, &prefixes),
            None
        );
        assert!(room.iter().all(|byte| *byte == 0xee));
    }
}

proptest! {
    #[test]
    fn noise(kind in 133u8..137, body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let endpoints = icmp6::Endpoints { source: address("fe80::1"), destination: address("fe80::2"), hop_limit: 255 };
        let mut room = vec![0; 300];
        let length = icmp6::message(&mut room, &endpoints, kind, 0, 0, &body).unwrap();
        if let Ok(message) = read(&room[..length]) {
            prop_assert!(message.prefixes().count() <= nd::MAX_PREFIXES);
        }
        let (header, _) = IcmpHeader::read(&room[40..]).unwrap();
        prop_assert_eq!(header.kind, kind);
    }
}
