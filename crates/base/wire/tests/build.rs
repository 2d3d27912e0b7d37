//! Frames built here, taken apart by etherparse, which also recomputes their checksums; and its frames
//! against ours, byte for byte.

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use weir_wire::build::{self, Ends};
use weir_wire::{ArpPacket, EtherType, EthernetHeader, IpProtocol, Ipv4Header, MacAddr, TcpHeader};

fn ends() -> impl Strategy<Value = Ends> {
    (
        any::<[u8; 6]>(),
        any::<[u8; 6]>(),
        any::<(u32, u32, u16, u16, u8)>(),
    )
        .prop_map(
            |(from, to, (source, destination, source_port, destination_port, ttl))| Ends {
                source_mac: MacAddr(from),
                destination_mac: MacAddr(to),
                source,
                destination,
                source_port,
                destination_port,
                ttl,
            },
        )
}

/// Their frame up to IPv4; their header says "don't fragment" and ours does not.
fn theirs(ends: &Ends) -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    let mut header = etherparse::Ipv4Header {
        time_to_live: ends.ttl,
        source: ends.source.to_be_bytes(),
        destination: ends.destination.to_be_bytes(),
        ..Default::default()
    };
    header.dont_fragment = false;
    PacketBuilder::ethernet2(ends.source_mac.0, ends.destination_mac.0)
        .ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
}

proptest! {
    #[test]
    fn udp(ends in ends(), payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut expected = Vec::new();
        theirs(&ends).udp(ends.source_port, ends.destination_port).write(&mut expected, &payload).unwrap();
        prop_assert_eq!(build::udp4(&ends, &payload), expected);
    }

    #[test]
    fn tcp(ends in ends(), payload in proptest::collection::vec(any::<u8>(), 0..200), flags in 0u8..64) {
        let mut header = etherparse::TcpHeader::new(ends.source_port, ends.destination_port, 1, 0xffff);
        let bit = |n: u8| flags & n != 0;
        (header.fin, header.syn, header.rst, header.psh, header.ack, header.urg) = (bit(1), bit(2), bit(4), bit(8), bit(16), bit(32));
        let mut expected = Vec::new();
        theirs(&ends).tcp_header(header).write(&mut expected, &payload).unwrap();
        prop_assert_eq!(build::tcp4(&ends, flags, &payload), expected);
    }

    #[test]
    fn echo(ends in ends(), payload in proptest::collection::vec(any::<u8>(), 0..200), id in any::<u16>(), seq in any::<u16>()) {
        let mut expected = Vec::new();
        theirs(&ends).icmpv4_echo_request(id, seq).write(&mut expected, &payload).unwrap();
        prop_assert_eq!(build::echo4(&ends, build::ECHO_REQUEST, id, seq, &payload), expected);
        let mut expected = Vec::new();
        theirs(&ends).icmpv4_echo_reply(id, seq).write(&mut expected, &payload).unwrap();
        prop_assert_eq!(build::echo4(&ends, build::ECHO_REPLY, id, seq, &payload), expected);
    }
}

#[test]
fn too_little_room_is_refused_and_nothing_written() {
    let ends = Ends::default();
    let packet = ArpPacket::new(ArpPacket::REQUEST, ends.source_mac, 1, MacAddr::ZERO, 2);
    for len in 0..54 {
        let blank = vec![0xee; len];
        let mut frame = blank.clone();
        assert_eq!(build::udp4_into(&mut frame, &ends), len >= 42, "{len}");
        assert_eq!(frame == blank, len < 42);
        frame.clone_from(&blank);
        assert_eq!(build::echo4_into(&mut frame, &ends, 8, 1, 1), len >= 42);
        assert_eq!(frame == blank, len < 42);
        frame.clone_from(&blank);
        assert_eq!(
            build::arp_into(&mut frame, MacAddr::BROADCAST, &packet),
            len >= build::ARP_FRAME
        );
        assert_eq!(frame == blank, len < build::ARP_FRAME);
        frame.clone_from(&blank);
        assert!(!build::tcp4_into(&mut frame, &ends, 0) && frame == blank);
        assert_eq!(
            build::icmp4(&mut frame, 1, 2, 64, 3, 0, 0, &[7; 8]),
            len >= 36
        );
        assert_eq!(frame == blank, len < 36);
    }
    let mut long = vec![0; 14 + 65_536];
    assert!(!build::udp4_into(&mut long, &ends));
    assert!(build::udp4_into(&mut long[..14 + 65_535], &ends));
    assert!(build::udp4(&ends, &vec![0; 65_508]).is_empty());
}

#[test]
fn arp_both_ways() {
    let (asker, owner) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    let mut frame = [0xee; 60];
    assert!(build::arp_request(
        &mut frame,
        asker,
        0x0a00_0001,
        0x0a00_0002
    ));
    let (header, packet) = arp_of(&frame);
    assert_eq!(
        (header.destination, header.source, header.ethertype()),
        (MacAddr::BROADCAST, asker, EtherType::ARP)
    );
    assert_eq!(
        (packet.operation.0, packet.sender_mac, packet.sender_ipv4),
        (1, asker.0, [10, 0, 0, 1])
    );
    assert_eq!(
        (packet.target_mac, packet.target_ipv4),
        ([0; 6], [10, 0, 0, 2])
    );
    assert_eq!(frame[build::ARP_FRAME..], [0; 18]);
    assert!(build::arp_reply(
        &mut frame,
        owner,
        0x0a00_0002,
        asker,
        0x0a00_0001
    ));
    let (header, packet) = arp_of(&frame);
    assert_eq!((header.destination, header.source), (asker, owner));
    assert_eq!(
        (packet.operation.0, packet.sender_mac, packet.sender_ipv4),
        (2, owner.0, [10, 0, 0, 2])
    );
    assert_eq!(
        (packet.target_mac, packet.target_ipv4),
        (asker.0, [10, 0, 0, 1])
    );
}

fn arp_of(frame: &[u8]) -> (EthernetHeader, etherparse::ArpEthIpv4Packet) {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(NetSlice::Arp(arp)) = sliced.net else {
        panic!("no ARP")
    };
    (
        *EthernetHeader::read(frame).unwrap().0,
        arp.to_packet().try_eth_ipv4().unwrap(),
    )
}

#[test]
fn an_icmp_error_quotes() {
    let offender = build::udp4(&Ends::default(), b"hello");
    let mut packet = [0xee; 100];
    assert!(build::icmp4(
        &mut packet,
        0x0a00_00fe,
        0x0a00_0001,
        64,
        3,
        4,
        1400,
        &offender[14..]
    ));
    let (header, _) = Ipv4Header::read(&packet).unwrap();
    let total = usize::from(header.total_len());
    assert_eq!((total, header.protocol()), (20 + 8 + 33, IpProtocol::ICMP));
    assert_eq!(packet[total..], [0xee; 39]);
    let sliced = SlicedPacket::from_ip(&packet[..total]).unwrap();
    let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else {
        panic!("no ICMP")
    };
    let wanted =
        etherparse::icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1400 };
    assert_eq!(
        icmp.icmp_type(),
        etherparse::Icmpv4Type::DestinationUnreachable(wanted)
    );
    assert_eq!(icmp.payload(), &offender[14..]);
    assert_eq!(
        icmp.checksum(),
        icmp.icmp_type().calc_checksum(icmp.payload())
    );
}

#[test]
fn a_tag_goes_between() {
    let frame = build::tcp4(&Ends::default(), TcpHeader::SYN, &[]);
    let tagged = build::tagged(&frame, 123, 6);
    let sliced = SlicedPacket::from_ethernet(&tagged).unwrap();
    let Some(etherparse::VlanSlice::SingleVlan(tag)) = sliced.vlan() else {
        panic!("no tag")
    };
    assert_eq!(
        (
            tag.vlan_identifier().value(),
            tag.priority_code_point().value()
        ),
        (123, 6)
    );
    assert_eq!(
        (tag.ether_type(), tag.payload_slice()),
        (etherparse::EtherType::IPV4, &frame[14..])
    );
    assert_eq!(build::tagged(&frame[..13], 1, 0), frame[..13]);
}

#[test]
fn a_blank_header_leaves_the_rest() {
    let mut frame = [0xee; 20];
    let rest = build::ethernet_blank(&mut frame, EtherType::IPV4).unwrap();
    assert_eq!(rest, [0xee; 6]);
    assert_eq!(frame[..14], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]);
    assert!(build::ethernet_blank(&mut frame[..13], EtherType::IPV4).is_none());
}
