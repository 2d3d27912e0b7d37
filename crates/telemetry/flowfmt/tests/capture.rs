//! Frames written out by hand, and the payloads in them; and every cut of each.

use proptest::prelude::*;
use weir_flowfmt::sflow::capture::{ETHERNET, LINUX_SLL, LINUX_SLL2, RAW, datagrams, udp_payload};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

const UDP: &str = "1389 18c7 000c 0000 deadbeef";
const V4: &str = "4500 0020 0000 4000 40 11 0000 c0000201 c6336402";
const V4_OPTIONS: &str = "4600 0024 0000 2000 40 11 0000 c0000201 c6336402 01010100";
const V6: &str =
    "60000000 000c 11 40 20010db8000000000000000000000001 20010db8000000000000000000000002";
const MACS: &str = "020000000002 020000000001";

#[test]
fn every_link_type_and_header_gives_the_payload() {
    let v6_extensions = format!(
        "{} 2c 00 0000 00000000  33 00 0001 00000001  11 01 000000000000 00000000",
        V6.replacen("11 40", "00 40", 1)
    );
    let v4: &[&str] = &["192.0.2.1:5001", "198.51.100.2:6343"];
    let v6: &[&str] = &["[2001:db8::1]:5001", "[2001:db8::2]:6343"];
    let frames = [
        (ETHERNET, format!("{MACS} 0800 {V4} {UDP}"), v4),
        (
            ETHERNET,
            format!("{MACS} 88a8 0001 8100 0002 0800 {V4_OPTIONS} {UDP}"),
            v4,
        ),
        (ETHERNET, format!("{MACS} 86dd {V6} {UDP}"), v6),
        (ETHERNET, format!("{MACS} 86dd {v6_extensions} {UDP}"), v6),
        (
            LINUX_SLL,
            format!("0000 0001 0006 0200000000010000 0800 {V4} {UDP}"),
            v4,
        ),
        (
            LINUX_SLL,
            format!("0004 0001 0006 0200000000010000 8100 0007 86dd {V6} {UDP}"),
            v6,
        ),
        (
            LINUX_SLL2,
            format!("0800 0000 00000003 0001 00 06 0200000000010000 {V4} {UDP}"),
            v4,
        ),
        (RAW, format!("{V4} {UDP}"), v4),
        (RAW, format!("{V6} {UDP}"), v6),
    ];
    for (link_type, text, addresses) in frames {
        let mut frame = hex(&text);
        let whole = frame.len();
        for padding in [0, 1, 18] {
            frame.resize(whole + padding, 0);
            let found =
                udp_payload(link_type, &frame).unwrap_or_else(|| panic!("nothing in {text}"));
            assert_eq!(found.payload, [0xde, 0xad, 0xbe, 0xef], "{text}");
            assert_eq!(
                [found.source.to_string(), found.destination.to_string()],
                addresses,
                "{text}"
            );
        }
        for len in 0..whole {
            let found = udp_payload(link_type, &frame[..len]);
            assert_eq!(
                found.map(|found| found.payload.len()),
                (len + 4).checked_sub(whole),
                "{text} cut to {len}"
            );
        }
        assert_eq!(udp_payload(147, &frame), None);
    }
}

#[test]
fn what_is_no_udp_gives_nothing() {
    let frames = [
        (ETHERNET, format!("{MACS} 0806 {V4} {UDP}")),
        (
            ETHERNET,
            format!("{MACS} 0800 {} {UDP}", V4.replacen("40 11", "40 06", 1)),
        ),
        // Fragment with offset 1; header of four words; version 5; UDP length 7.
        (
            ETHERNET,
            format!("{MACS} 0800 {} {UDP}", V4.replacen("4000", "0001", 1)),
        ),
        (
            ETHERNET,
            format!("{MACS} 0800 {} {UDP}", V4.replacen("4500", "4400", 1)),
        ),
        (
            ETHERNET,
            format!("{MACS} 0800 {} {UDP}", V4.replacen("4500", "5500", 1)),
        ),
        (RAW, format!("{} {UDP}", V4.replacen("4500", "5500", 1))),
        (RAW, format!("{V4} {}", UDP.replacen("000c", "0007", 1))),
        // IPv6: a fragment with offset 1, and 17 empty options.
        (
            RAW,
            format!(
                "{} 1100 0008 00000001 {UDP}",
                V6.replacen("11 40", "2c 40", 1)
            ),
        ),
        (
            RAW,
            format!(
                "{} {} 1100 0000 00000000 {UDP}",
                V6.replacen("11 40", "3c 40", 1),
                "3c00 0000 00000000 ".repeat(16)
            ),
        ),
    ];
    for (link_type, text) in frames {
        assert_eq!(udp_payload(link_type, &hex(&text)), None, "{text}");
    }
}

proptest! {
    #[test]
    fn anything_is_survived(link_type in prop::sample::select(vec![ETHERNET, LINUX_SLL, LINUX_SLL2, RAW]), head in prop::sample::select(vec![String::new(), V6.replacen("11 40", "00 40", 1), V4.to_owned(), format!("{MACS} 86dd {}", V6.replacen("11 40", "33 40", 1))]), tail in proptest::collection::vec(any::<u8>(), 0..120)) {
        let mut frame = hex(&head);
        frame.extend_from_slice(&tail);
        let _ = udp_payload(link_type, &frame);
    }
}

/// A datagram of agent 192.0.2.1 with a sample of nobody's kind.
fn datagram(sub_agent: u32, number: u32, octets: u32) -> Vec<u8> {
    let head = [
        5,
        1,
        0xc000_0201,
        sub_agent,
        number,
        9,
        1,
        0x0100_0001,
        octets,
    ];
    let mut datagram: Vec<u8> = head.into_iter().flat_map(u32::to_be_bytes).collect();
    datagram.resize(36 + octets as usize, 0);
    datagram
}

#[test]
fn a_payload_is_cut_only_where_the_next_datagram_of_the_same_agent_begins() {
    let cut = |parts: &[Vec<u8>]| {
        let payload = parts.concat();
        let found: Vec<Vec<u8>> = datagrams(&payload).map(<[u8]>::to_vec).collect();
        assert_eq!(found.concat(), payload);
        found.len()
    };
    assert_eq!(
        (cut(&[]), cut(&[vec![7; 40]]), cut(&[datagram(0, 1, 8)])),
        (1, 1, 1)
    );
    assert_eq!(
        cut(&[
            datagram(0, u32::MAX, 8),
            datagram(0, 0, 8),
            datagram(0, 1, 0)
        ]),
        3
    );
    // Another sub-agent, a number that does not follow, a length that leads past the end, a header cut short.
    assert_eq!(cut(&[datagram(0, 1, 8), datagram(1, 2, 8)]), 1);
    assert_eq!(
        cut(&[datagram(0, 1, 8), datagram(0, 3, 8), datagram(0, 4, 8)]),
        1
    );
    assert_eq!(
        cut(&[datagram(0, 1, 8), datagram(0, 2, 100)[..60].to_vec()]),
        2
    );
    assert_eq!(
        cut(&[datagram(0, 1, 8), datagram(0, 2, 8)[..20].to_vec()]),
        1
    );
    // As many as fit a packet: each octet is looked at as part of one datagram, and of the next one's header.
    let many: Vec<Vec<u8>> = (0..1800).map(|number| datagram(0, number, 0)).collect();
    assert_eq!(cut(&many), 1800);
}
