//! Frames written out by hand, and the payloads in them; and every cut of each.

use proptest::prelude::*;
use weir_flowfmt::sflow::capture::{
    ETHERNET, IPV4, IPV6, LINUX_SLL, LINUX_SLL2, LOOP, NULL, RAW, UdpReader, cut_datagram,
    datagrams, udp_payload,
};

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

/// A header of IPv4 with this protocol, from 203.0.113.1 to 203.0.113.2; its length is left to the sender's hardware.
fn outer(protocol: u8) -> String {
    format!("4500 0000 0000 4000 40 {protocol:02x} 0000 cb007101 cb007102")
}

/// A fragment of IPv4 with this identification and word of flags and offset, and padding of Ethernet.
fn fragment4(id: u16, word: u16, octets: &[u8]) -> Vec<u8> {
    let mut frame = hex(&format!("{MACS} 0800 {V4}"));
    frame[16..18].copy_from_slice(&(20 + octets.len() as u16).to_be_bytes());
    frame[18..20].copy_from_slice(&id.to_be_bytes());
    frame[20..22].copy_from_slice(&word.to_be_bytes());
    frame.extend(octets);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// A UDP datagram of so many octets.
fn long_datagram(octets: usize) -> Vec<u8> {
    let mut datagram = hex("1389 18c7 0000 0000");
    datagram.extend((8..octets).map(|place| place as u8));
    datagram[4..6].copy_from_slice(&(octets as u16).to_be_bytes());
    datagram
}

#[test]
fn fragments_are_put_together() {
    let datagram = long_datagram(1500);
    let parts = [(0x2000, 0..600), (0x2000, 600..1200), (0, 1200..1500)];
    let frames: Vec<Vec<u8>> = parts
        .iter()
        .map(|(flags, part)| fragment4(7, flags | (part.start / 8) as u16, &datagram[part.clone()]))
        .collect();
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]] {
        let mut reader = UdpReader::new();
        for (turn, place) in order.iter().enumerate() {
            // Of another packet, and the same one again.
            assert_eq!(
                reader.read(9, ETHERNET, &fragment4(8, 0x2001, &[1; 16])),
                None
            );
            let found = reader.read(turn as u64, ETHERNET, &frames[*place]);
            let found = found.map(|found| found.payload.to_vec());
            assert_eq!(
                found,
                (turn == 2).then(|| datagram[8..].to_vec()),
                "{order:?}"
            );
            if turn < 2 {
                assert_eq!(reader.read(9, ETHERNET, &frames[*place]), None);
            }
        }
        assert_eq!(reader.finish(), (Vec::new(), 1));
    }
    // IPv6, from the fragment header on.
    let frame6 = |word: u16, octets: &[u8]| {
        let mut frame = hex(&V6.replacen("11 40", "2c 40", 1));
        frame[4..6].copy_from_slice(&(8 + octets.len() as u16).to_be_bytes());
        frame.extend([17, 0]);
        frame.extend(word.to_be_bytes());
        frame.extend([0, 0, 0, 9]);
        [&frame, octets].concat()
    };
    let mut reader = UdpReader::new();
    assert_eq!(reader.read(1, RAW, &frame6(600, &datagram[600..])), None);
    let first = frame6(1, &datagram[..600]);
    let found = reader.read(2, RAW, &first).unwrap();
    assert_eq!(found.payload, &datagram[8..]);
    assert_eq!(found.source.to_string(), "[2001:db8::1]:5001");
    assert_eq!(reader.finish(), (Vec::new(), 0));
}

/// What does not become whole is reported, and the number of packets that wait is bounded.
#[test]
fn fragments_that_do_not_become_whole() {
    let datagram = long_datagram(1500);
    let mut reader = UdpReader::new();
    assert_eq!(
        reader.read(3, ETHERNET, &fragment4(1, 0x2000, &datagram[..800])),
        None
    );
    let (cut, lost) = reader.finish();
    let [(3, octets, ends)] = cut.as_slice() else {
        panic!("{cut:?}")
    };
    assert_eq!(lost, 0);
    assert_eq!(
        cut_datagram(octets, *ends).unwrap().payload,
        &datagram[8..800]
    );
    for id in 0..1000 {
        assert_eq!(
            reader.read(3, ETHERNET, &fragment4(id, 0x2000, &datagram[..800])),
            None
        );
    }
    let (cut, lost) = reader.finish();
    assert_eq!((cut.len(), lost), (64, 936));
}

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
        (IPV4, format!("{V4} {UDP}"), v4),
        (IPV6, format!("{V6} {UDP}"), v6),
        (NULL, format!("02000000 {V4} {UDP}"), v4),
        (LOOP, format!("00000018 {V6} {UDP}"), v6),
        // GRE with key and sequence number; Ethernet in GRE; IPv6 in IPv4; IPv4 in IPv6 in GRE.
        (
            RAW,
            format!("{} 3000 0800 00000007 00000001 {V4} {UDP}", outer(47)),
            v4,
        ),
        (
            RAW,
            format!("{} 0000 6558 {MACS} 8100 0007 86dd {V6} {UDP}", outer(47)),
            v6,
        ),
        (RAW, format!("{} {V6} {UDP}", outer(41)), v6),
        (
            RAW,
            format!(
                "{} 0000 86dd {} {V4} {UDP}",
                outer(47),
                V6.replacen("000c 11", "0020 04", 1)
            ),
            v4,
        ),
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
    fn anything_is_survived(link_type in prop::sample::select(vec![ETHERNET, LINUX_SLL, LINUX_SLL2, RAW, NULL, LOOP, IPV4, IPV6]), head in prop::sample::select(vec![String::new(), V6.replacen("11 40", "00 40", 1), V4.to_owned(), format!("{MACS} 86dd {}", V6.replacen("11 40", "33 40", 1))]), tail in proptest::collection::vec(any::<u8>(), 0..120)) {
        let mut frame = hex(&head);
        frame.extend_from_slice(&tail);
        let _ = udp_payload(link_type, &frame);
        let mut reader = UdpReader::new();
        let _ = reader.read(1, link_type, &frame);
        let _ = reader.read(2, link_type, &frame);
        let _ = reader.finish();
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
