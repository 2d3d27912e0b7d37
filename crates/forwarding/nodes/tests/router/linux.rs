//! Packets for services of Linux: which go to the TAP, how they look there, and the limits.

use std::sync::Arc;

use weir_buf::Vector;
use weir_graph::DropReason;
use weir_port::host::{Host, HostClass};
use weir_wire::build::{self, Ends};
use weir_wire::{ArpPacket, EtherType, EthernetHeader, IpProtocol, MacAddr};

use crate::forward::alter;
use crate::rig::*;

/// The interface of the TAP.
const TAP: u32 = EAST;

/// Gives `west` an end in Linux.
fn pair(router: &mut Router) -> Arc<Host> {
    let host = Arc::new(Host::new(TAP));
    let end = host.clone();
    router.change(WEST, |interface| interface.host = Some(end));
    router.publish();
    host
}

/// An ICMP message for this router that is no echo request.
fn icmp() -> Vec<u8> {
    let mut frame = build::udp4(&through("10.0.1.1"), &[5; 40]);
    alter(&mut frame, |header| header.set_protocol(IpProtocol(1)));
    frame
}

pub(crate) fn reasons() -> Vec<crate::bond::Reached> {
    vec![
        ("linux-punt", DropReason::PuntPoliced, |router| {
            pair(router);
            let limit = HostClass::Icmp.rate() as usize;
            router.send_all(WEST, &vec![icmp(); limit + 1]);
        }),
        ("linux-punt", DropReason::PuntGone, |router| {
            let mut packet = router.packet(&icmp());
            packet.set_interface(WEST);
            packet.set_l3_offset(14);
            let entry = router.graph.find("linux-punt").unwrap();
            router.graph.inject(entry, packet);
            router.turn();
        }),
    ]
}

#[test]
fn services_of_linux_get_the_frame_as_it_came() {
    let mut router = Router::default();
    let host = pair(&mut router);
    for (frame, class) in [
        (
            build::udp4(&through("10.0.1.1"), &[5; 40]),
            HostClass::Other,
        ),
        (
            build::tcp4(
                &Ends {
                    destination_port: 179,
                    ..through("10.0.1.1")
                },
                2,
                &[5; 40],
            ),
            HostClass::Bgp,
        ),
        // An own address of another interface.
        (
            build::tcp4(
                &Ends {
                    destination_port: 22,
                    ..through("10.0.2.1")
                },
                2,
                &[5; 40],
            ),
            HostClass::Other,
        ),
        (icmp(), HostClass::Icmp),
    ] {
        let before = host.counts(class).0;
        let (interface, got) = router.send_one(WEST, &frame);
        assert_eq!((interface, &got), (TAP, &frame));
        assert_eq!(host.counts(class), (before + 1, 0), "{class:?}");
    }
    // One over several chunks.
    let long = build::udp4(&through("10.0.1.1"), &[7; 1200]);
    let mut vector = Vector::default();
    vector.push(router.packet_cut(&long, 300));
    let sent = router.send_vector(WEST, &mut vector);
    assert_eq!(sent, [(TAP, long)]);
    // A group of the link, as OSPF's: not decremented, its MAC address as it was.
    let group = Ends {
        destination_mac: MacAddr([1, 0, 0x5e, 0, 0, 5]),
        ..through("224.0.0.5")
    };
    let mut frame = build::udp4(&group, &[5; 40]);
    alter(&mut frame, |header| header.set_protocol(IpProtocol(89)));
    let (interface, got) = router.send_one(WEST, &frame);
    assert_eq!((interface, &got), (TAP, &frame));
    assert_eq!(host.counts(HostClass::Routing), (1, 0));
    // Groups beyond the link are nobody's.
    router.send(
        WEST,
        &build::udp4(
            &Ends {
                destination: ip("224.0.1.1"),
                ..group
            },
            &[5; 40],
        ),
    );
    assert_eq!(router.dropped(DropReason::Ip4Multicast), 1);
    router.balance();
}

#[test]
fn echo_requests_and_arp_requests_are_answered_here_and_replies_go_to_linux() {
    let mut router = Router::default();
    let host = pair(&mut router);
    let mut echo = build::udp4(&through("10.0.1.1"), &[0; 40]);
    let sum = weir_wire::checksum::internet(&[&[8u8, 0, 0, 0][..], &[0; 44]].concat());
    echo[34..].fill(0);
    echo[34] = 8;
    echo[36..38].copy_from_slice(&sum.to_be_bytes());
    alter(&mut echo, |header| header.set_protocol(IpProtocol(1)));
    let (interface, got) = router.send_one(WEST, &echo);
    assert_eq!(
        (interface, got[34]),
        (WEST, 0),
        "an echo reply to where it came from"
    );
    let arp = |operation: u16| {
        let mut frame = vec![0; 60];
        build::arp_reply(
            &mut frame,
            their_mac(1, 7),
            ip("10.0.1.7"),
            our_mac(WEST),
            ip("10.0.1.1"),
        );
        frame[20..22].copy_from_slice(&operation.to_be_bytes());
        frame
    };
    let (interface, _) = router.send_one(WEST, &arp(ArpPacket::REQUEST));
    assert_eq!(interface, WEST, "the answer");
    let reply = arp(ArpPacket::REPLY);
    let (interface, got) = router.send_one(WEST, &reply);
    assert_eq!((interface, &got), (TAP, &reply));
    assert_eq!(
        EthernetHeader::read(&got).unwrap().0.ethertype(),
        EtherType::ARP
    );
    assert_eq!(host.counts(HostClass::Neighbor), (1, 0));
    assert!(
        !router.events().is_empty(),
        "and the router has learned from it"
    );
}
