//! The checksum against the textbook's way of taking it, and against figures worked out by others.

use proptest::prelude::*;
use weir_wire::checksum::{self, Sum};
use weir_wire::{IpProtocol, Ipv4Header, build};

/// RFC 1071 section 4.1, word by word in network order.
fn naive(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    !(sum as u16)
}

/// The header of RFC 1071's time, from a capture: 172.16.10.99 to 172.16.10.12, checksum 0xb1e6.
const KNOWN: [u8; 20] = [
    0x45, 0x00, 0x00, 0x3c, 0x1c, 0x46, 0x40, 0x00, 0x40, 0x06, 0xb1, 0xe6, 0xac, 0x10, 0x0a, 0x63,
    0xac, 0x10, 0x0a, 0x0c,
];

#[test]
fn a_known_header() {
    let (header, _) = Ipv4Header::read(&KNOWN).unwrap();
    assert!(checksum::ipv4_header_ok(header));
    assert_eq!(checksum::internet(&KNOWN), 0);
    for byte in 0..20 {
        for bit in 0..8 {
            let mut broken = KNOWN;
            broken[byte] ^= 1 << bit;
            assert!(
                !checksum::ipv4_header_ok(Ipv4Header::read(&broken).unwrap().0),
                "byte {byte} bit {bit}"
            );
        }
    }
    let mut blank = KNOWN;
    blank[10..12].fill(0x55);
    checksum::ipv4_header_set(&mut blank);
    assert_eq!(blank, KNOWN);
}

#[test]
fn rfc_1071_example() {
    // RFC 1071 section 3: the sum of these bytes is 0xddf2.
    assert_eq!(
        checksum::internet(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
        !0xddf2
    );
    assert_eq!(checksum::internet(&[]), 0xffff);
}

#[test]
fn all_zero_and_all_one_headers() {
    assert!(!checksum::ipv4_header_ok(&Ipv4Header::default()));
    assert!(checksum::ipv4_header_ok(
        Ipv4Header::read(&[0xff; 20]).unwrap().0
    ));
}

#[test]
fn a_header_that_is_not_all_there_stays() {
    let mut header = KNOWN;
    header[0] = 0x46;
    let before = header;
    checksum::ipv4_header_set(&mut header);
    assert_eq!(header, before);
    header[0] = 0x44;
    let before = header;
    checksum::ipv4_header_set(&mut header);
    checksum::ipv4_header_set(&mut header[..19]);
    assert_eq!(header, before);
}

#[test]
fn udp_never_sends_zero() {
    // A datagram whose sum comes to 0xffff: its checksum would be 0, which means none.
    let mut datagram = [0x04, 0x00, 0x00, 0x35, 0x00, 0x0a, 0, 0, 0, 0];
    let rest = checksum::pseudo4(1, 2, IpProtocol::UDP, 10)
        .add_bytes(&datagram)
        .finish();
    datagram[8..].copy_from_slice(&rest.to_be_bytes());
    assert_eq!(
        checksum::pseudo4(1, 2, IpProtocol::UDP, 10)
            .add_bytes(&datagram)
            .finish(),
        0
    );
    assert_eq!(checksum::udp4(1, 2, &datagram), 0xffff);
}

#[test]
fn ttl_of_zero_stays() {
    let mut header = Ipv4Header::new(1, 2, IpProtocol::UDP, 0, 20);
    header.set_checksum(0x1234);
    checksum::decrement_ttl(&mut header);
    assert_eq!((header.ttl, header.checksum()), (0, 0x1234));
}

/// RFC 1624 section 4 and the corner that its predecessor got wrong: every checksum that a header with
/// some TTL can have.
#[test]
fn incremental_equals_whole_everywhere() {
    for identification in 0..=u16::MAX {
        let mut header = Ipv4Header::new(
            0x0a00_0001,
            0x0a00_0002,
            IpProtocol(0),
            1 + (identification % 255) as u8,
            20,
        );
        header.set_identification(identification);
        let mut bytes = zerocopy::transmute!(header);
        set_naively(&mut bytes);
        let (header, _) = Ipv4Header::read_mut(&mut bytes).unwrap();
        checksum::decrement_ttl(header);
        let mut expected = bytes;
        set_naively(&mut expected);
        assert_eq!(bytes, expected, "{identification:#x}");
    }
}

fn set_naively(header: &mut [u8; 20]) {
    header[10..12].fill(0);
    let sum = naive(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

proptest! {
    #[test]
    fn as_the_naive_sum(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert_eq!(checksum::internet(&bytes), naive(&bytes));
    }

    #[test]
    fn many_large_words(bytes in proptest::collection::vec(prop_oneof![Just(0xffu8), Just(0), any::<u8>()], 0..100)) {
        prop_assert_eq!(checksum::internet(&bytes), naive(&bytes));
    }

    #[test]
    fn in_parts(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..100) {
        let (front, back) = bytes.split_at((cut * 2).min(bytes.len() & !1));
        prop_assert_eq!(Sum::EMPTY.add_bytes(front).add_bytes(back).finish(), naive(&bytes));
    }

    #[test]
    fn header_check(mut bytes in any::<[u8; 20]>(), spoil in any::<u16>()) {
        let ok = |bytes: &[u8; 20]| checksum::ipv4_header_ok(Ipv4Header::read(bytes).unwrap().0);
        prop_assert_eq!(ok(&bytes), naive(&bytes) == 0);
        bytes[0] = 0x45;
        set_naively(&mut bytes);
        prop_assert!(ok(&bytes));
        let mut again = bytes;
        checksum::ipv4_header_set(&mut again);
        prop_assert_eq!(again, bytes);
        bytes[10] ^= (spoil >> 8) as u8;
        bytes[11] ^= spoil as u8;
        prop_assert_eq!(ok(&bytes), naive(&bytes) == 0);
    }

    #[test]
    fn header_with_options(mut bytes in proptest::collection::vec(any::<u8>(), 60), words in 5usize..=15) {
        bytes[0] = 0x40 | words as u8;
        let mut expected = bytes.clone();
        expected[10..12].fill(0);
        let sum = naive(&expected[..words * 4]);
        expected[10..12].copy_from_slice(&sum.to_be_bytes());
        checksum::ipv4_header_set(&mut bytes);
        prop_assert_eq!(&bytes, &expected);
    }

    #[test]
    fn pseudo_headers(source in any::<[u8; 16]>(), destination in any::<[u8; 16]>(), rest in proptest::collection::vec(any::<u8>(), 0..64)) {
        let (short_source, short_destination) = (u32::from_be_bytes(*source.first_chunk().unwrap()), u32::from_be_bytes(*destination.first_chunk().unwrap()));
        let length = rest.len() as u16;
        let four = [&source[..4], &destination[..4], &[0, 17], &length.to_be_bytes(), &rest].concat();
        prop_assert_eq!(checksum::pseudo4(short_source, short_destination, IpProtocol::UDP, length).add_bytes(&rest).finish(), naive(&four));
        let six = [&source[..], &destination, &u32::from(length).to_be_bytes(), &[0, 0, 0, 6], &rest].concat();
        prop_assert_eq!(checksum::pseudo6(&source, &destination, IpProtocol::TCP, u32::from(length)).add_bytes(&rest).finish(), naive(&six));
    }

    #[test]
    fn hops_are_taken_off(ttl in 1u8.., protocol in any::<u8>(), source in any::<u32>(), payload in 0usize..64) {
        let ends = build::Ends { ttl, source, ..build::Ends::default() };
        let mut frame = build::udp4(&ends, &vec![0; payload]);
        frame[14 + 9] = protocol;
        checksum::ipv4_header_set(&mut frame[14..]);
        let (header, _) = Ipv4Header::read_mut(&mut frame[14..]).unwrap();
        checksum::decrement_ttl(header);
        prop_assert_eq!(header.ttl, ttl - 1);
        prop_assert!(checksum::ipv4_header_ok(header));
        prop_assert_eq!(naive(&frame[14..34]), 0);
    }
}
