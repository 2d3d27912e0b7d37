//! Keys out of packets, whole, cut, and in pieces.

use proptest::prelude::*;
use weir_acl::{Key4, Key6, Upper};
use weir_wire::build::{self, Ends, Ends6};
use weir_wire::ipv6::FragmentHeader;
use weir_wire::{IpProtocol, Ipv4Header, Ipv6Header};
use zerocopy::IntoBytes;

#[test]
fn ipv4() {
    let packet = build::udp4(&Ends::default(), b"hello")[14..].to_vec();
    let key = Key4::read(&packet).unwrap();
    assert_eq!(
        (key.source().to_string(), key.destination().to_string()),
        ("10.0.0.1".into(), "10.0.1.1".into())
    );
    assert_eq!(
        (key.protocol(), key.upper()),
        (IpProtocol::UDP, Upper::Ports(1024, 53))
    );
    for length in 0..packet.len() {
        let key = Key4::read(&packet[..length]);
        assert_eq!(
            key.map(|key| key.upper()),
            [None, Some(Upper::Unreadable), Some(Upper::Ports(1024, 53))]
                [usize::from(length >= 20) + usize::from(length >= 24)]
        );
    }
    let echo = build::echo4(&Ends::default(), 8, 1, 2, &[])[14..].to_vec();
    assert_eq!(Key4::read(&echo).unwrap().upper(), Upper::Ports(8, 0));
    let change = |change: fn(&mut Ipv4Header)| {
        let mut packet = packet.clone();
        change(Ipv4Header::read_mut(&mut packet).unwrap().0);
        Key4::read(&packet).map(|key| key.upper())
    };
    assert_eq!(
        change(|header| header.set_fragment(1, false)),
        Some(Upper::LaterFragment)
    );
    assert_eq!(
        change(|header| header.set_fragment(0, true)),
        Some(Upper::Ports(1024, 53))
    );
    assert_eq!(
        change(|header| header.set_protocol(IpProtocol(89))),
        Some(Upper::Ports(0, 0))
    );
    // Padding is no port; a header that ends before it begins, or behind the packet, is none.
    assert_eq!(
        change(|header| header.set_total_len(23)),
        Some(Upper::Unreadable)
    );
    assert_eq!(
        change(|header| header.set_total_len(0)),
        Some(Upper::Unreadable)
    );
    assert_eq!(
        (
            change(|header| header.set_header_len(16)),
            change(|header| header.set_header_len(60))
        ),
        (None, None)
    );
    // With options, ports are behind them.
    assert_eq!(
        change(|header| header.set_header_len(24)),
        Some(Upper::Ports(
            13,
            u16::from_be_bytes([packet[26], packet[27]])
        ))
    );
}

#[test]
fn ipv6() {
    let packet = build::tcp6(&Ends6::default(), 2, &[])[14..].to_vec();
    let key = Key6::read(&packet).unwrap();
    assert_eq!(
        (key.source().to_string(), key.destination().to_string()),
        ("2001:db8::1".into(), "2001:db8:1::1".into())
    );
    assert_eq!(
        (key.protocol(), key.upper()),
        (IpProtocol::TCP, Upper::Ports(1024, 53))
    );
    for length in 0..packet.len() {
        let key = Key6::read(&packet[..length]);
        assert_eq!(
            key.map(|key| key.upper()),
            [None, Some(Upper::Unreadable), Some(Upper::Ports(1024, 53))]
                [usize::from(length >= 40) + usize::from(length >= 44)]
        );
    }
    let with = |next: u8, behind: &[u8]| {
        let header = Ipv6Header::new([1; 16], [2; 16], IpProtocol(next), 64, behind.len() as u16);
        let key = Key6::read(&[header.as_bytes(), behind].concat()).unwrap();
        (key.protocol().0, key.upper())
    };
    assert_eq!(with(58, &[128, 3]), (58, Upper::Ports(128, 3)));
    assert_eq!(
        with(60, &[17, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2]),
        (17, Upper::Ports(1, 2))
    );
    let piece = |offset| FragmentHeader::new(IpProtocol::UDP, offset, true, 9);
    assert_eq!(
        with(44, &[piece(0).as_bytes(), &[0, 1, 0, 2]].concat()),
        (17, Upper::Ports(1, 2))
    );
    assert_eq!(
        with(44, &[piece(3).as_bytes(), &[0, 1, 0, 2]].concat()),
        (17, Upper::LaterFragment)
    );
    // A chain that ends early, and hop-by-hop options out of place.
    assert_eq!(
        with(60, &[17, 1, 0, 0, 0, 0, 0, 0]),
        (60, Upper::Unreadable)
    );
    assert_eq!(
        with(
            60,
            &[0, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2]
        ),
        (60, Upper::Unreadable)
    );
}

proptest! {
    #[test]
    fn noise(bytes in proptest::collection::vec(any::<u8>(), 0..150)) {
        let _ = (Key4::read(&bytes), Key6::read(&bytes));
    }
}
