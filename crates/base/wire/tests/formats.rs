//! Each format four ways, and cut off at every byte.
//!
//! *deconstruct*: fields of bytes laid out by hand after the specification; *construct*: fields set
//! here give those bytes; *parse*: what etherparse wrote is read; *emit*: what is written here is read
//! by etherparse. So reader and writer never vouch for each other alone.

use etherparse as other;
use weir_wire::{
    ArpPacket, EtherType, EthernetHeader, IcmpHeader, IpProtocol, Ipv4Header, Ipv6Header, MacAddr,
    TcpHeader, UdpHeader, VlanTag,
};
use zerocopy::IntoBytes;

const MAC_A: MacAddr = MacAddr([0x02, 0xfe, 0, 0, 0, 0x0a]);
const MAC_B: MacAddr = MacAddr([0x02, 0xfe, 0, 0, 0, 0x0b]);
const A: u32 = 0xc000_0201;
const B: u32 = 0xc633_6402;

/// Reads a header from bytes that must hold one; nothing may follow.
macro_rules! whole {
    ($header:ty, $bytes:expr) => {
        <$header>::read($bytes)
            .map(|(header, rest)| (*header, rest.len()))
            .filter(|(_, rest)| *rest == 0)
            .unwrap()
            .0
    };
}

#[test]
fn every_truncation() {
    fn check<H>(
        length: usize,
        read: impl Fn(&[u8]) -> Option<(&H, &[u8])>,
        read_mut: impl Fn(&mut [u8]) -> Option<(&mut H, &mut [u8])>,
    ) {
        let mut bytes = [0x5a; 64];
        for len in 0..=bytes.len() {
            let found = read(&bytes[..len]).map(|(_, rest)| rest.len());
            assert_eq!(
                found,
                len.checked_sub(length),
                "{} of {len} bytes",
                std::any::type_name::<H>()
            );
            assert_eq!(
                read_mut(&mut bytes[..len]).map(|(_, rest)| rest.len()),
                found
            );
        }
    }
    check(14, EthernetHeader::read, EthernetHeader::read_mut);
    check(4, VlanTag::read, VlanTag::read_mut);
    check(28, ArpPacket::read, ArpPacket::read_mut);
    check(20, Ipv4Header::read, Ipv4Header::read_mut);
    check(40, Ipv6Header::read, Ipv6Header::read_mut);
    check(8, IcmpHeader::read, IcmpHeader::read_mut);
    check(8, UdpHeader::read, UdpHeader::read_mut);
    check(20, TcpHeader::read, TcpHeader::read_mut);
}

mod ethernet {
    use super::*;

    const BYTES: [u8; 14] = [
        0x02, 0xfe, 0, 0, 0, 0x0b, 0x02, 0xfe, 0, 0, 0, 0x0a, 0x12, 0x34,
    ];

    #[test]
    fn deconstruct() {
        let header = whole!(EthernetHeader, &BYTES);
        assert_eq!(
            (header.destination, header.source, header.ethertype()),
            (MAC_B, MAC_A, EtherType(0x1234))
        );
    }

    #[test]
    fn construct() {
        assert_eq!(
            EthernetHeader::new(MAC_B, MAC_A, EtherType(0x1234)).as_bytes(),
            BYTES
        );
        let mut bytes = [0xff; 14];
        let (header, _) = EthernetHeader::read_mut(&mut bytes).unwrap();
        (header.destination, header.source) = (MAC_B, MAC_A);
        header.set_ethertype(EtherType(0x1234));
        assert_eq!(bytes, BYTES);
    }

    #[test]
    fn parse() {
        let written = other::Ethernet2Header {
            source: MAC_A.0,
            destination: MAC_B.0,
            ether_type: other::EtherType::IPV6,
        };
        let header = whole!(EthernetHeader, &written.to_bytes());
        assert_eq!(
            (header.destination, header.source, header.ethertype()),
            (MAC_B, MAC_A, EtherType::IPV6)
        );
    }

    #[test]
    fn emit() {
        for (ours, theirs) in [
            (EtherType::IPV4, other::EtherType::IPV4),
            (EtherType::ARP, other::EtherType::ARP),
            (EtherType::VLAN, other::EtherType::VLAN_TAGGED_FRAME),
            (EtherType::QINQ, other::EtherType::PROVIDER_BRIDGING),
            (EtherType::IPV6, other::EtherType::IPV6),
            (EtherType::MPLS, other::EtherType(0x8847)),
        ] {
            let header = EthernetHeader::new(MAC_B, MAC_A, ours);
            let (read, _) = other::Ethernet2Header::from_slice(header.as_bytes()).unwrap();
            assert_eq!(
                (read.destination, read.source, read.ether_type),
                (MAC_B.0, MAC_A.0, theirs)
            );
        }
    }
}

mod vlan {
    use super::*;

    // Priority 5, drop eligible, VLAN 0x123, then IPv4.
    const BYTES: [u8; 4] = [0xb1, 0x23, 0x08, 0x00];

    #[test]
    fn deconstruct() {
        let tag = whole!(VlanTag, &BYTES);
        assert_eq!(
            (
                tag.vlan(),
                tag.priority(),
                tag.drop_eligible(),
                tag.ethertype()
            ),
            (0x123, 5, true, EtherType::IPV4)
        );
        assert!(EtherType::VLAN.is_tag() && EtherType::QINQ.is_tag() && !EtherType::IPV4.is_tag());
    }

    #[test]
    fn construct() {
        assert_eq!(
            VlanTag::new(0xf123, 0xfd, EtherType::IPV4).as_bytes(),
            [0xa1, 0x23, 0x08, 0x00]
        );
        let mut bytes = BYTES;
        VlanTag::read_mut(&mut bytes).unwrap().0.set_vlan(0xfabc);
        assert_eq!(bytes, [0xba, 0xbc, 0x08, 0x00]);
    }

    #[test]
    fn parse() {
        let written = other::SingleVlanHeader {
            pcp: other::VlanPcp::try_new(7).unwrap(),
            drop_eligible_indicator: false,
            vlan_id: other::VlanId::try_new(4095).unwrap(),
            ether_type: other::EtherType::ARP,
        };
        let tag = whole!(VlanTag, &written.to_bytes());
        assert_eq!(
            (
                tag.vlan(),
                tag.priority(),
                tag.drop_eligible(),
                tag.ethertype()
            ),
            (4095, 7, false, EtherType::ARP)
        );
    }

    #[test]
    fn emit() {
        let tag = VlanTag::new(100, 3, EtherType::IPV6);
        let (read, _) = other::SingleVlanHeader::from_slice(tag.as_bytes()).unwrap();
        assert_eq!(
            (read.vlan_id.value(), read.pcp.value(), read.ether_type),
            (100, 3, other::EtherType::IPV6)
        );
    }
}

mod arp {
    use super::*;

    const BYTES: [u8; 28] = [
        0, 1, 0x08, 0x00, 6, 4, 0, 2, // Ethernet, IPv4, their lengths, reply
        0x02, 0xfe, 0, 0, 0, 0x0a, 192, 0, 2, 1, // sender
        0x02, 0xfe, 0, 0, 0, 0x0b, 198, 51, 100, 2, // target
    ];

    #[test]
    fn deconstruct() {
        let packet = whole!(ArpPacket, &BYTES);
        assert!(packet.is_ethernet_ipv4());
        assert_eq!(packet.operation(), ArpPacket::REPLY);
        assert_eq!(
            (
                packet.sender_mac,
                packet.sender(),
                packet.target_mac,
                packet.target()
            ),
            (MAC_A, A, MAC_B, B)
        );
        for (byte, _) in BYTES.iter().enumerate().take(6) {
            let mut odd = BYTES;
            odd[byte] ^= 0x20;
            assert!(!whole!(ArpPacket, &odd).is_ethernet_ipv4(), "byte {byte}");
        }
    }

    #[test]
    fn construct() {
        assert_eq!(
            ArpPacket::new(ArpPacket::REPLY, MAC_A, A, MAC_B, B).as_bytes(),
            BYTES
        );
    }

    #[test]
    fn parse() {
        let written = other::ArpEthIpv4Packet {
            operation: other::ArpOperation::REQUEST,
            sender_mac: MAC_A.0,
            sender_ipv4: A.to_be_bytes(),
            target_mac: [0; 6],
            target_ipv4: B.to_be_bytes(),
        };
        let packet = whole!(ArpPacket, &written.to_bytes());
        assert!(packet.is_ethernet_ipv4());
        assert_eq!(
            (packet.operation(), packet.sender_mac, packet.sender()),
            (ArpPacket::REQUEST, MAC_A, A)
        );
        assert_eq!((packet.target_mac, packet.target()), (MacAddr::ZERO, B));
    }

    #[test]
    fn emit() {
        let packet = ArpPacket::new(ArpPacket::REQUEST, MAC_A, A, MacAddr::ZERO, B);
        let read = other::ArpPacket::from_slice(packet.as_bytes())
            .unwrap()
            .try_eth_ipv4()
            .unwrap();
        assert_eq!(
            (read.operation, read.sender_mac, read.sender_ipv4),
            (other::ArpOperation::REQUEST, MAC_A.0, A.to_be_bytes())
        );
        assert_eq!(
            (read.target_mac, read.target_ipv4),
            ([0; 6], B.to_be_bytes())
        );
    }
}

mod ipv4 {
    use super::*;

    // 24 bytes of header announced, ECN 2, 0x1234 bytes, identification 0xbeef, DF and MF, offset 0x555.
    const BYTES: [u8; 20] = [
        0x46, 0x02, 0x12, 0x34, 0xbe, 0xef, 0x65, 0x55, 63, 89, 0xaa, 0xbb, 192, 0, 2, 1, 198, 51,
        100, 2,
    ];

    #[test]
    fn deconstruct() {
        let header = whole!(Ipv4Header, &BYTES);
        assert_eq!(
            (
                header.version(),
                header.header_len(),
                header.tos,
                header.total_len()
            ),
            (4, 24, 2, 0x1234)
        );
        assert_eq!(
            (
                header.identification(),
                header.dont_fragment(),
                header.more_fragments()
            ),
            (0xbeef, true, true)
        );
        assert_eq!(
            (
                header.fragment_offset(),
                header.is_fragment(),
                header.is_later_fragment()
            ),
            (0x555, true, true)
        );
        assert_eq!(
            (header.ttl, header.protocol(), header.checksum()),
            (63, IpProtocol(89), 0xaabb)
        );
        assert_eq!((header.source(), header.destination()), (A, B));
        assert_eq!(
            (
                header.source_addr().to_string(),
                header.destination_addr().to_string()
            ),
            ("192.0.2.1".into(), "198.51.100.2".into())
        );
    }

    #[test]
    fn fragments() {
        for (field, piece, later) in [
            (0x0000u16, false, false),
            (0x4000, false, false),
            (0x2000, true, false),
            (0x0001, true, true),
        ] {
            let mut bytes = BYTES;
            bytes[6..8].copy_from_slice(&field.to_be_bytes());
            let header = whole!(Ipv4Header, &bytes);
            assert_eq!(
                (header.is_fragment(), header.is_later_fragment()),
                (piece, later),
                "{field:#x}"
            );
        }
        let mut header = Ipv4Header::new(A, B, IpProtocol::UDP, 1, 20);
        header.set_dont_fragment(true);
        header.set_fragment(0xffff, false);
        assert_eq!(
            (
                header.fragment_offset(),
                header.more_fragments(),
                header.dont_fragment()
            ),
            (0x1fff, false, true)
        );
        header.set_dont_fragment(false);
        header.set_fragment(8, true);
        assert_eq!(
            (
                header.fragment_offset(),
                header.more_fragments(),
                header.dont_fragment()
            ),
            (8, true, false)
        );
    }

    #[test]
    fn construct() {
        let mut bytes = [0; 20];
        let (header, _) = Ipv4Header::read_mut(&mut bytes).unwrap();
        header.version_ihl = 0x45;
        header.set_header_len(24);
        header.tos = 2;
        header.set_total_len(0x1234);
        header.set_identification(0xbeef);
        header.set_dont_fragment(true);
        header.set_fragment(0x555, true);
        header.ttl = 63;
        header.set_protocol(IpProtocol(89));
        header.set_checksum(0xaabb);
        header.set_source(A);
        header.set_destination(B);
        assert_eq!(bytes, BYTES);
    }

    #[test]
    fn parse() {
        let mut written = other::Ipv4Header::new(
            100,
            7,
            other::IpNumber::TCP,
            A.to_be_bytes(),
            B.to_be_bytes(),
        )
        .unwrap();
        written.identification = 77;
        written.more_fragments = true;
        written.dont_fragment = false;
        written.fragment_offset = 1000.try_into().unwrap();
        written.header_checksum = written.calc_header_checksum();
        let header = whole!(Ipv4Header, &written.to_bytes());
        assert_eq!(
            (
                header.version(),
                header.header_len(),
                header.total_len(),
                header.ttl
            ),
            (4, 20, 120, 7)
        );
        assert_eq!(
            (
                header.identification(),
                header.more_fragments(),
                header.dont_fragment()
            ),
            (77, true, false)
        );
        assert_eq!(
            (header.fragment_offset(), header.protocol()),
            (1000, IpProtocol::TCP)
        );
        assert_eq!((header.source(), header.destination()), (A, B));
        assert!(weir_wire::checksum::ipv4_header_ok(&header));
    }

    #[test]
    fn emit() {
        let mut header = Ipv4Header::new(A, B, IpProtocol::ICMP, 9, 84);
        header.set_dont_fragment(true);
        header.set_identification(4711);
        weir_wire::checksum::ipv4_header_set(header.as_mut_bytes());
        let (read, _) = other::Ipv4Header::from_slice(header.as_bytes()).unwrap();
        assert_eq!(
            (
                read.total_len,
                read.identification,
                read.dont_fragment,
                read.more_fragments
            ),
            (84, 4711, true, false)
        );
        assert_eq!(
            (
                read.time_to_live,
                read.protocol,
                read.fragment_offset.value()
            ),
            (9, other::IpNumber::ICMP, 0)
        );
        assert_eq!(
            (read.source, read.destination),
            (A.to_be_bytes(), B.to_be_bytes())
        );
        assert_eq!(read.header_checksum, read.calc_header_checksum());
    }

    #[test]
    fn names() {
        assert_eq!(
            [
                IpProtocol::ICMP,
                IpProtocol::TCP,
                IpProtocol::UDP,
                IpProtocol(89)
            ]
            .map(|p| p.to_string()),
            ["icmp", "tcp", "udp", "89"]
        );
        assert_eq!(
            [EtherType::IPV4, EtherType::ARP, EtherType(0x88cc)].map(|t| t.to_string()),
            ["ipv4", "arp", "0x88cc"]
        );
    }
}

mod ipv6 {
    use super::*;

    const SOURCE: [u8; 16] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    const DESTINATION: [u8; 16] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

    fn bytes() -> Vec<u8> {
        [
            &[0x6a, 0xbc, 0xde, 0xf1, 0x01, 0x02, 58, 255][..],
            &SOURCE,
            &DESTINATION,
        ]
        .concat()
    }

    #[test]
    fn deconstruct() {
        let header = whole!(Ipv6Header, &bytes());
        assert_eq!(
            (
                header.version(),
                header.traffic_class(),
                header.flow_label()
            ),
            (6, 0xab, 0xc_def1)
        );
        assert_eq!(
            (header.payload_len(), header.next_header(), header.hop_limit),
            (0x102, IpProtocol(58), 255)
        );
        assert_eq!((header.source, header.destination), (SOURCE, DESTINATION));
        assert_eq!(
            (
                header.source_addr().to_string(),
                header.destination_addr().to_string()
            ),
            ("2001:db8::1".into(), "2001:db8::2".into())
        );
    }

    #[test]
    fn construct() {
        let mut header = Ipv6Header::new(SOURCE, DESTINATION, IpProtocol(58), 255, 0);
        header.set_payload_len(0x102);
        assert_eq!(header.as_bytes()[..4], [0x60, 0, 0, 0]);
        assert_eq!(header.as_bytes()[4..], bytes()[4..]);
    }

    #[test]
    fn parse() {
        let written = other::Ipv6Header {
            traffic_class: 0x81,
            flow_label: 0x1_2345.try_into().unwrap(),
            payload_length: 99,
            next_header: other::IpNumber::UDP,
            hop_limit: 3,
            source: SOURCE,
            destination: DESTINATION,
        };
        let header = whole!(Ipv6Header, &written.to_bytes());
        assert_eq!(
            (
                header.version(),
                header.traffic_class(),
                header.flow_label()
            ),
            (6, 0x81, 0x1_2345)
        );
        assert_eq!(
            (header.payload_len(), header.next_header(), header.hop_limit),
            (99, IpProtocol::UDP, 3)
        );
        assert_eq!((header.source, header.destination), (SOURCE, DESTINATION));
    }

    #[test]
    fn emit() {
        let header = Ipv6Header::new(SOURCE, DESTINATION, IpProtocol::TCP, 64, 20);
        let (read, _) = other::Ipv6Header::from_slice(header.as_bytes()).unwrap();
        assert_eq!(
            (read.payload_length, read.next_header, read.hop_limit),
            (20, other::IpNumber::TCP, 64)
        );
        assert_eq!(
            (read.source, read.destination, read.traffic_class),
            (SOURCE, DESTINATION, 0)
        );
    }
}

mod icmp {
    use super::*;

    const BYTES: [u8; 8] = [8, 1, 0xab, 0xcd, 0x12, 0x34, 0x56, 0x78];

    #[test]
    fn deconstruct() {
        let header = whole!(IcmpHeader, &BYTES);
        assert_eq!(
            (
                header.kind,
                header.code,
                header.checksum(),
                header.argument()
            ),
            (8, 1, 0xabcd, 0x1234_5678)
        );
        assert_eq!((header.identifier(), header.sequence()), (0x1234, 0x5678));
    }

    #[test]
    fn construct() {
        let mut header = IcmpHeader::new(8, 1, 0);
        header.set_checksum(0xabcd);
        header.set_argument(0x1234_5678);
        assert_eq!(header.as_bytes(), BYTES);
    }

    #[test]
    fn parse() {
        let kind = other::Icmpv4Type::DestinationUnreachable(
            other::icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1400 },
        );
        let mut written = other::Icmpv4Header::new(kind);
        written.update_checksum(b"quote");
        let bytes = [written.to_bytes().as_slice(), b"quote"].concat();
        let (header, rest) = IcmpHeader::read(&bytes).unwrap();
        assert_eq!(
            (header.kind, header.code, header.argument(), rest),
            (3, 4, 1400, &b"quote"[..])
        );
        assert_eq!(weir_wire::checksum::internet(&bytes), 0);
    }

    #[test]
    fn emit() {
        let header = IcmpHeader::new(8, 0, 0x0102_0304);
        let (read, _) = other::Icmpv4Header::from_slice(header.as_bytes()).unwrap();
        assert_eq!(
            read.icmp_type,
            other::Icmpv4Type::EchoRequest(other::IcmpEchoHeader {
                id: 0x102,
                seq: 0x304
            })
        );
    }
}

mod udp {
    use super::*;

    const BYTES: [u8; 8] = [0x12, 0x34, 0x00, 0x35, 0x01, 0x02, 0xfe, 0xdc];

    #[test]
    fn deconstruct() {
        let header = whole!(UdpHeader, &BYTES);
        assert_eq!(
            (
                header.source(),
                header.destination(),
                header.length(),
                header.checksum()
            ),
            (0x1234, 53, 0x102, 0xfedc)
        );
    }

    #[test]
    fn construct() {
        let mut header = UdpHeader::default();
        header.set_source(0x1234);
        header.set_destination(53);
        header.set_length(0x102);
        header.set_checksum(0xfedc);
        assert_eq!(header.as_bytes(), BYTES);
    }

    #[test]
    fn parse() {
        let written = other::UdpHeader {
            source_port: 4739,
            destination_port: 6343,
            length: 8,
            checksum: 5,
        };
        let header = whole!(UdpHeader, &written.to_bytes());
        assert_eq!(
            (
                header.source(),
                header.destination(),
                header.length(),
                header.checksum()
            ),
            (4739, 6343, 8, 5)
        );
    }

    #[test]
    fn emit() {
        let header = UdpHeader::new(4739, 6343, 100);
        let (read, _) = other::UdpHeader::from_slice(header.as_bytes()).unwrap();
        assert_eq!(
            read,
            other::UdpHeader {
                source_port: 4739,
                destination_port: 6343,
                length: 100,
                checksum: 0
            }
        );
    }
}

mod tcp {
    use super::*;

    // Ports 443 and 51000, 32 bytes of header announced, SYN and ACK.
    const BYTES: [u8; 20] = [
        0x01, 0xbb, 0xc7, 0x38, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x12, 0xff, 0xfe, 0xaa, 0xbb, 0, 0,
    ];

    #[test]
    fn deconstruct() {
        let header = whole!(TcpHeader, &BYTES);
        assert_eq!(
            (header.source(), header.destination(), header.header_len()),
            (443, 51_000, 32)
        );
        assert_eq!(
            (header.sequence(), header.acknowledgement()),
            (0x0102_0304, 0x0506_0708)
        );
        assert_eq!(
            (header.flags, header.window(), header.checksum()),
            (TcpHeader::SYN | TcpHeader::ACK, 0xfffe, 0xaabb)
        );
    }

    #[test]
    fn construct() {
        let mut header = TcpHeader::new(
            0,
            0,
            0x0102_0304,
            0x0506_0708,
            TcpHeader::SYN | TcpHeader::ACK,
            0xfffe,
        );
        header.set_source(443);
        header.set_destination(51_000);
        header.set_checksum(0xaabb);
        let mut expected = BYTES;
        expected[12] = 0x50;
        assert_eq!(header.as_bytes(), expected);
    }

    #[test]
    fn parse() {
        let mut written = other::TcpHeader::new(179, 40_000, 0xdead_beef, 512);
        (written.fin, written.psh, written.rst, written.checksum) = (true, true, true, 0x1357);
        let header = whole!(TcpHeader, &written.to_bytes());
        assert_eq!(
            (
                header.source(),
                header.destination(),
                header.sequence(),
                header.window()
            ),
            (179, 40_000, 0xdead_beef, 512)
        );
        assert_eq!(
            header.flags,
            TcpHeader::FIN | TcpHeader::PSH | TcpHeader::RST
        );
        assert_eq!((header.header_len(), header.checksum()), (20, 0x1357));
    }

    #[test]
    fn emit() {
        let header = TcpHeader::new(179, 40_000, 7, 8, TcpHeader::SYN | TcpHeader::ACK, 1000);
        let (read, _) = other::TcpHeader::from_slice(header.as_bytes()).unwrap();
        assert_eq!(
            (
                read.source_port,
                read.destination_port,
                read.sequence_number,
                read.acknowledgment_number
            ),
            (179, 40_000, 7, 8)
        );
        assert_eq!(
            (
                read.syn,
                read.ack,
                read.fin,
                read.rst,
                read.psh,
                read.urg,
                read.window_size
            ),
            (true, true, false, false, false, false, 1000)
        );
    }
}
