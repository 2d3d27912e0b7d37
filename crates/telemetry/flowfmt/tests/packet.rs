//! Sampled headers, written out by hand, read layer by layer; and cut everywhere.

use proptest::prelude::*;
use weir_flowfmt::sflow::RawHeader;
use weir_flowfmt::sflow::packet::{Ip, Packet, Transport};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn decode(protocol: u32, header: &[u8]) -> Packet {
    Packet::decode(&RawHeader {
        protocol,
        frame_length: 1518,
        stripped: 4,
        header,
    })
}

const MACS: &str = "020000000002 020000000001";
const IPV4_UDP: &str = "45b8 0026 1234 0000 40 11 0000 c0000201 c6336402  1389 18c7 0012 0000";
const IPV6: &str =
    "6b812345 0010 2b 3f 20010db8000000000000000000000001 20010db8000000000000000000000002";

#[test]
fn udp_over_ipv4_over_two_tags() {
    let packet = decode(
        1,
        &hex(&format!("{MACS} 88a8 6064 8100 00c8 0800 {IPV4_UDP}")),
    );
    let ethernet = packet.ethernet.unwrap();
    assert_eq!(
        (ethernet.destination, ethernet.source),
        ([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
    );
    assert_eq!(
        (ethernet.tags(), ethernet.ether_type),
        ([0x6064, 0x00c8].as_slice(), Some(0x0800))
    );
    assert_eq!(packet.ip_offset, Some(22));
    let Some(Ip::V4(ip)) = packet.ip else {
        panic!("{packet:?}")
    };
    assert_eq!(
        (ip.source.to_string(), ip.destination.to_string()),
        ("192.0.2.1".into(), "198.51.100.2".into())
    );
    assert_eq!(
        (ip.total_length, ip.protocol, ip.tos, ip.ttl, ip.id),
        (38, 17, 0xb8, 64, 0x1234)
    );
    assert_eq!(
        packet.transport,
        Some(Transport::Udp {
            source: 5001,
            destination: 6343,
            length: 18
        })
    );
}

#[test]
fn tcp_over_ipv6_with_extensions() {
    // Routing header of 16 octets, authentication header of 16 (length octet 2), then TCP.
    let extensions = "33 01 0000 00000000 0000000000000000  06 02 0000 00000000 0000000000000000";
    let tcp = "c001 01bb 00000001 00000002 5012 ffff 00000000";
    let packet = decode(1, &hex(&format!("{MACS} 86dd {IPV6} {extensions} {tcp}")));
    let Some(Ip::V6(ip)) = packet.ip else {
        panic!("{packet:?}")
    };
    assert_eq!(
        (
            ip.traffic_class,
            ip.flow_label,
            ip.payload_length,
            ip.hop_limit
        ),
        (0xb8, 0x12345, 16, 63)
    );
    assert_eq!(
        (ip.extensions(), ip.protocol),
        ([43, 51].as_slice(), Some(6))
    );
    assert_eq!(
        packet.transport,
        Some(Transport::Tcp {
            source: 0xc001,
            destination: 443,
            flags: Some(0x12)
        })
    );
    assert_eq!(
        decode(12, &hex(&format!("{IPV6} {extensions} {tcp}"))).transport,
        packet.transport
    );
}

#[test]
fn later_fragments_have_no_ports() {
    let packet = decode(11, &hex(&IPV4_UDP.replacen("1234 0000", "1234 00b9", 1)));
    assert!(
        matches!(packet.ip, Some(Ip::V4(ip)) if ip.fragment_offset == 185),
        "{packet:?}"
    );
    assert_eq!(packet.transport, None);
    let fragment = IPV6.replacen("2b 3f", "2c 3f", 1);
    for (offset, seen) in [("0001", true), ("0009", false)] {
        let packet = decode(
            12,
            &hex(&format!(
                "{fragment} 11 00 {offset} 00000001 1389 18c7 0012 0000"
            )),
        );
        assert!(
            matches!(packet.ip, Some(Ip::V6(ip)) if ip.protocol == Some(17)),
            "{packet:?}"
        );
        assert_eq!(packet.transport.is_some(), seen);
    }
}

#[test]
fn icmp_llc_and_snap() {
    let icmp = "4500 001c 0000 0000 40 01 0000 c0000201 c6336402  0301 0000 00000000";
    let icmp_seen = Some(Transport::Icmp { kind: 3, code: 1 });
    for head in ["0800", "0026 aaaa03 000000 0800", "0021 060603"] {
        let packet = decode(1, &hex(&format!("{MACS} {head} {icmp}")));
        assert_eq!(packet.transport, icmp_seen, "{head}");
        assert_eq!(packet.ethernet.unwrap().ether_type, Some(0x0800));
    }
    let vendor = decode(1, &hex(&format!("{MACS} 0026 aaaa03 00000c 2000 {icmp}")))
        .ethernet
        .unwrap();
    assert_eq!(
        (vendor.snap_vendor, vendor.ether_type),
        (Some([0, 0, 12]), None)
    );
    let spanning_tree = decode(1, &hex(&format!("{MACS} 0026 424203 {icmp}")));
    assert_eq!(
        (spanning_tree.ethernet.unwrap().ether_type, spanning_tree.ip),
        (None, None)
    );
}

#[test]
fn every_cut_shows_only_layers_that_are_there() {
    let tcp = "c001 01bb 00000001 00000002 5012 ffff 00000000";
    let whole = hex(&format!(
        "{MACS} 8100 0064 0800 {} {tcp}",
        &IPV4_UDP.replacen("40 11", "40 06", 1)[..50]
    ));
    assert_eq!(whole.len(), 58);
    for len in 0..=whole.len() {
        let packet = decode(1, &whole[..len]);
        assert_eq!(packet.ethernet.is_some(), len >= 14, "{len}");
        assert_eq!(packet.ip.is_some(), len >= 38, "{len}");
        assert_eq!(packet.transport.is_some(), len >= 46, "{len}");
        assert_eq!(
            matches!(
                packet.transport,
                Some(Transport::Tcp { flags: Some(_), .. })
            ),
            len >= 52,
            "{len}"
        );
    }
}

proptest! {
    #[test]
    fn anything_is_survived(protocol in 0_u32..14, head in prop::sample::select(vec!["", "8100", "86dd", "0800", "0020 aaaa03", "86dd 60"]), tail in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut header = hex(&format!("{MACS} {head}"));
        header.extend_from_slice(&tail);
        decode(protocol, &header);
        decode(protocol, &tail);
    }
}

/// A header of IP that says of itself that it is none.
#[test]
fn what_is_no_ip_is_not_decoded_as_ip() {
    for (protocol, header) in [
        (11, IPV4_UDP.replacen("45", "44", 1)),
        (11, IPV4_UDP.replacen("45", "65", 1)),
        (
            1,
            format!("{MACS} 0800 {}", IPV4_UDP.replacen("45", "40", 1)),
        ),
        (12, IPV6.replacen("6b", "4b", 1)),
        (12, IPV4_UDP.to_owned() + &"00".repeat(20)),
    ] {
        let packet = decode(protocol, &hex(&header));
        assert!(
            packet.ip.is_none() && packet.transport.is_none(),
            "{header}"
        );
    }
}
