//! Extension headers, addresses, flows and ICMPv6, against bytes after the RFCs and against etherparse.

use etherparse as other;
use proptest::prelude::*;
use weir_wire::build::{self, Ends6};
use weir_wire::icmp6::{self, Endpoints};
use weir_wire::ipv6::{self, Class, Fault, Flow, FragmentHeader, MAX_BYTES, MAX_HEADERS, Scope};
use weir_wire::{IcmpHeader, IpProtocol, Ipv6Header, MacAddr, checksum};
use zerocopy::IntoBytes;

const TCP: u8 = 6;

fn address(text: &str) -> [u8; 16] {
    text.parse::<std::net::Ipv6Addr>().unwrap().octets()
}

/// A packet of these extension headers and payload; `next` is the first one's number.
fn packet(next: u8, behind: &[u8]) -> Vec<u8> {
    let header = Ipv6Header::new(
        address("2001:db8::1"),
        address("2001:db8::2"),
        IpProtocol(next),
        64,
        behind.len() as u16,
    );
    [header.as_bytes(), behind].concat()
}

/// An extension header of `units` units of 8 bytes.
fn options(next: u8, units: u8) -> Vec<u8> {
    let mut bytes = vec![0; usize::from(units) * 8];
    (bytes[0], bytes[1]) = (next, units - 1);
    bytes
}

fn walk(packet: &[u8]) -> Result<ipv6::Chain, ipv6::ChainError> {
    ipv6::walk(packet, MAX_HEADERS, MAX_BYTES)
}

#[test]
fn a_chain_of_every_kind() {
    let fragment = FragmentHeader::new(IpProtocol(51), 0, true, 0xdead_beef);
    // Authentication: length 4 in words of 4 bytes less 2 makes 24 bytes (RFC 4302 section 2.2).
    let mut authentication = vec![60, 4];
    authentication.resize(24, 7);
    let chain = [
        &options(43, 2),
        &options(44, 1),
        fragment.as_bytes(),
        &authentication,
        &options(TCP, 3),
        &[1; 20][..],
    ]
    .concat();
    let found = walk(&packet(0, &chain)).unwrap();
    assert_eq!(
        (found.protocol, found.offset, found.headers),
        (IpProtocol::TCP, 40 + 16 + 8 + 8 + 24 + 24, 5)
    );
    assert!(found.hop_by_hop && found.is_fragment() && !found.is_later_fragment());
    assert_eq!(found.named_at, 40 + 16 + 8 + 8 + 24);
    let fragment = found.fragment.unwrap();
    assert_eq!(
        (
            fragment.identification(),
            fragment.more(),
            fragment.offset()
        ),
        (0xdead_beef, true, 0)
    );
}

#[test]
fn a_later_fragment_ends_the_walk() {
    // 44: next 60 (options), offset 185 (0x5c8 in bytes), more; RFC 8200 section 4.5.
    let bytes = [&[60, 0, 0x05, 0xc9, 0, 0, 0, 9][..], &[0xff; 40]].concat();
    let found = walk(&packet(44, &bytes)).unwrap();
    assert_eq!(
        (found.protocol, found.offset, found.headers),
        (IpProtocol::DESTINATION_OPTIONS, 48, 1)
    );
    assert!(found.is_later_fragment());
    assert_eq!(found.fragment.unwrap().offset(), 185);
    let atomic = FragmentHeader::new(IpProtocol::UDP, 0, false, 3);
    let found = walk(&packet(44, &[atomic.as_bytes(), &[0; 8]].concat())).unwrap();
    assert!(!found.is_fragment() && atomic.is_atomic());
    assert_eq!((found.protocol, found.offset), (IpProtocol::UDP, 48));
}

#[test]
fn chains_that_lie() {
    let fault = |packet: &[u8]| walk(packet).map_err(|error| (error.fault, error.at));
    // Hop-by-hop options behind destination options, blamed on the octet that names them.
    assert_eq!(
        fault(&packet(60, &[options(0, 1), options(TCP, 1)].concat())),
        Err((Fault::Misplaced, 40))
    );
    assert_eq!(
        fault(&packet(0, &[options(0, 1), options(TCP, 1)].concat())),
        Err((Fault::Misplaced, 40))
    );
    let twice = [
        FragmentHeader::new(IpProtocol::FRAGMENT, 0, true, 1),
        FragmentHeader::new(IpProtocol::UDP, 0, true, 1),
    ];
    assert_eq!(
        fault(&packet(44, twice.as_bytes())),
        Err((Fault::Refragmented, 40))
    );
    let many: Vec<u8> = std::iter::repeat_with(|| options(60, 1))
        .take(9)
        .flatten()
        .collect();
    assert_eq!(fault(&packet(60, &many)), Err((Fault::TooMany, 40 + 7 * 8)));
    assert_eq!(
        fault(&packet(60, &options(TCP, 65))),
        Err((Fault::TooLong, 41))
    );
    assert!(walk(&packet(60, &options(TCP, 64))).is_ok());
    assert_eq!(
        fault(&packet(60, &options(TCP, 4)[..31])),
        Err((Fault::Truncated, 71))
    );
    // Nothing, something unknown, and ESP end a chain; so does a chain that ends just so.
    for last in [59, 50, 253, TCP] {
        let found = walk(&packet(60, &options(last, 1))).unwrap();
        assert_eq!((found.protocol, found.offset), (IpProtocol(last), 48));
    }
}

#[test]
fn every_truncation() {
    let fragment = FragmentHeader::new(IpProtocol(TCP), 0, true, 1);
    let behind = [&options(60, 2), &options(44, 1), fragment.as_bytes()].concat();
    let whole = packet(0, &behind);
    for length in 0..whole.len() {
        assert_eq!(
            walk(&whole[..length]).map_err(|error| error.fault),
            Err(Fault::Truncated),
            "{length}"
        );
    }
    assert_eq!(walk(&whole).unwrap().offset, whole.len());
}

proptest! {
    #[test]
    fn chains_as_etherparse_sees_them(kinds in proptest::collection::vec((0u8..3, 1u8..4), 0..5), payload in any::<[u8; 4]>()) {
        let mut kinds: Vec<(u8, u8)> = kinds.into_iter().map(|(kind, units)| ([60, 43, 60][usize::from(kind)], units)).collect();
        kinds.dedup_by_key(|(kind, _)| *kind);
        kinds.truncate(2);
        let nexts = kinds.iter().skip(1).map(|(kind, _)| *kind).chain([17]);
        let behind: Vec<u8> = kinds.iter().zip(nexts).flat_map(|((_, units), next)| options(next, *units)).chain(payload).collect();
        let packet = packet(kinds.first().map_or(17, |(kind, _)| *kind), &behind);
        let found = walk(&packet).unwrap();
        let sliced = other::LaxIpv6Slice::from_slice(&packet).unwrap().0;
        prop_assert_eq!(found.protocol.0, sliced.payload().ip_number.0);
        prop_assert_eq!(&packet[found.offset..], sliced.payload().payload);
    }

    #[test]
    fn noise_is_bounded_and_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), next in 0u8..61) {
        if let Some(place) = bytes.get_mut(6) { *place = next; }
        if let Ok(found) = ipv6::walk(&bytes, 3, 100) {
            prop_assert!(found.headers <= 3 && (40..=140).contains(&found.offset) && found.offset <= bytes.len());
        }
        let _ = Flow::read(&bytes).map(|flow| flow.hash(1));
    }

    #[test]
    fn frames_as_etherparse_makes_them(seed in any::<([u8; 16], [u8; 16], u16, u16, u8)>(), label in 0u32..0x10_0000, payload in proptest::collection::vec(any::<u8>(), 0..100)) {
        let (source, destination, source_port, destination_port, hop_limit) = seed;
        let ends = Ends6 { source, destination, source_port, destination_port, hop_limit, flow_label: label, ..Ends6::default() };
        let header = other::Ipv6Header { source, destination, hop_limit, flow_label: label.try_into().unwrap(), ..Default::default() };
        let theirs = || other::PacketBuilder::ethernet2(ends.source_mac.0, ends.destination_mac.0).ip(other::IpHeaders::Ipv6(header.clone(), Default::default()));
        let mut expected = Vec::new();
        theirs().udp(source_port, destination_port).write(&mut expected, &payload).unwrap();
        prop_assert_eq!(build::udp6(&ends, &payload), expected);
        let mut expected = Vec::new();
        theirs().tcp(source_port, destination_port, 1, 0xffff).syn().write(&mut expected, &payload).unwrap();
        prop_assert_eq!(build::tcp6(&ends, 2, &payload), expected);
        let mut expected = Vec::new();
        theirs().icmpv6_echo_request(7, 8).write(&mut expected, &payload).unwrap();
        prop_assert_eq!(build::echo6(&ends, icmp6::ECHO_REQUEST, 7, 8, &payload), expected);
    }
}

#[test]
fn fields_of_the_fixed_header() {
    let mut header = Ipv6Header::new([1; 16], [2; 16], IpProtocol::TCP, 64, 20);
    header.set_flow_label(0xfff_1234_u32);
    header.set_traffic_class(0xb9);
    header.set_next_header(IpProtocol::UDP);
    assert_eq!(
        header.as_bytes()[..8],
        [0x6b, 0x9f, 0x12, 0x34, 0, 20, 17, 64]
    );
    header.set_traffic_class(0);
    assert_eq!(
        (
            header.version(),
            header.traffic_class(),
            header.flow_label()
        ),
        (6, 0, 0xf_1234)
    );
}

#[test]
fn kinds_of_addresses() {
    for (text, class) in [
        ("::", Class::Unspecified),
        ("::1", Class::Loopback),
        ("::2", Class::Global),
        ("::ffff:192.0.2.1", Class::MappedIpv4),
        ("fe80::1", Class::LinkLocal),
        ("febf::1", Class::LinkLocal),
        ("fec0::1", Class::Global),
        ("fc00::1", Class::UniqueLocal),
        ("fdff::1", Class::UniqueLocal),
        ("2001:db8::1", Class::Documentation),
        ("3fff:fff::1", Class::Documentation),
        ("3fff:1000::1", Class::Global),
        ("100::1", Class::DiscardOnly),
        ("100:0:0:1::1", Class::Global),
        ("2001:db9::1", Class::Global),
        ("ff02::1", Class::Multicast(Scope::LINK)),
        ("ff0e::1", Class::Multicast(Scope::GLOBAL)),
        ("ff35::1", Class::Multicast(Scope::SITE)),
    ] {
        let bytes = address(text);
        assert_eq!(ipv6::class(&bytes), class, "{text}");
        assert_eq!(
            ipv6::is_link_local(&bytes),
            class == Class::LinkLocal,
            "{text}"
        );
        assert_eq!(
            ipv6::is_multicast(&bytes),
            matches!(class, Class::Multicast(_)),
            "{text}"
        );
        assert_eq!(
            ipv6::scope(&bytes).map(Class::Multicast),
            Some(class).filter(|_| bytes[0] == 0xff),
            "{text}"
        );
    }
    // RFC 4291 section 2.7.1 gives this very example; RFC 2464 section 7 the MAC address.
    let group = ipv6::solicited_node(&address("4037::1:800:200e:8c6c"));
    assert_eq!(group, address("ff02::1:ff0e:8c6c"));
    assert_eq!(
        ipv6::multicast_mac(&group),
        MacAddr([0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c])
    );
    // RFC 2464 section 5: 34-56-78-9A-BC-DE becomes 36-56-78-FF-FE-9A-BC-DE.
    assert_eq!(
        ipv6::link_local(MacAddr([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde])),
        address("fe80::3656:78ff:fe9a:bcde")
    );
    assert_eq!(
        ipv6::mapped_ipv4(&address("::ffff:192.0.2.1")),
        Some(0xc000_0201)
    );
    assert_eq!(ipv6::mapped_ipv4(&address("::192.0.2.1")), None);
}

#[test]
fn addresses_that_go_nowhere() {
    for (text, source, destination) in [
        ("::", false, true),
        ("::1", true, true),
        ("::ffff:1.2.3.4", true, true),
        ("ff00::1", true, true),
        ("ff01::1", true, true),
        ("ff02::1", true, false),
        ("ff0e::1", true, false),
        ("fe80::1", false, false),
        ("2001:db8::1", false, false),
    ] {
        let bytes = address(text);
        assert_eq!(
            (
                ipv6::is_forbidden_source(&bytes),
                ipv6::is_forbidden_destination(&bytes)
            ),
            (source, destination),
            "{text}"
        );
    }
}

#[test]
fn what_tells_flows_apart() {
    let flow = |ends: &Ends6| Flow::read(&build::udp6(ends, b"hello")[14..]).unwrap();
    let plain = Ends6::default();
    let labelled = Ends6 {
        flow_label: 77,
        ..plain
    };
    assert_eq!(
        (flow(&plain).protocol, flow(&plain).ports),
        (IpProtocol::UDP, 1024 << 16 | 53)
    );
    assert_eq!(
        (
            flow(&labelled).protocol,
            flow(&labelled).ports,
            flow(&labelled).label
        ),
        (IpProtocol(0), 0, 77)
    );
    // All pieces of a packet are one flow.
    let pieces: Vec<Flow> = [(0, true), (1, true), (200, false)]
        .map(|(offset, more)| {
            let fragment = FragmentHeader::new(IpProtocol::UDP, offset, more, 5);
            Flow::read(&packet(
                44,
                &[fragment.as_bytes(), &[offset as u8; 16]].concat(),
            ))
            .unwrap()
        })
        .into();
    assert!(
        pieces
            .iter()
            .all(|piece| *piece == pieces[0] && piece.ports == 0)
    );
    let base = flow(&plain);
    let mut others = vec![
        Flow { label: 1, ..base },
        Flow { ports: 1, ..base },
        Flow {
            protocol: IpProtocol::TCP,
            ..base
        },
    ];
    for bit in 0..128 {
        let flip = |address: [u8; 16]| (u128::from_be_bytes(address) ^ 1 << bit).to_be_bytes();
        others.extend([
            Flow {
                source: flip(base.source),
                ..base
            },
            Flow {
                destination: flip(base.destination),
                ..base
            },
        ]);
    }
    let hashes: std::collections::HashSet<u32> = others
        .iter()
        .map(|flow| flow.hash(1))
        .chain([base.hash(1), base.hash(2)])
        .collect();
    assert_eq!(hashes.len(), others.len() + 2);
    // Neighbouring ports spread over sixteen paths about evenly, by upper bits and by lower.
    for shift in [0, 28] {
        let mut paths = [0u32; 16];
        (0..16_000).for_each(|port| {
            paths[(Flow {
                ports: port,
                ..base
            }
            .hash(3)
                >> shift
                & 15) as usize] += 1
        });
        assert!(
            paths.iter().all(|count| (850..1150).contains(count)),
            "{paths:?}"
        );
    }
}

#[test]
fn errors_quote_as_much_as_fits() {
    let endpoints = Endpoints {
        source: address("2001:db8::ff"),
        destination: address("2001:db8::1"),
        hop_limit: 64,
    };
    let offender = build::udp6(&Ends6::default(), &[9; 1400])[14..].to_vec();
    let mut room = [0xee; 1300];
    let length = icmp6::error(&mut room, &endpoints, icmp6::TOO_BIG, 0, 1400, &offender).unwrap();
    assert_eq!(length, 1280);
    assert_eq!(room[1280..], [0xee; 20]);
    let first = room;
    let sliced = other::SlicedPacket::from_ip(&first[..length]).unwrap();
    let Some(other::TransportSlice::Icmpv6(icmp)) = sliced.transport else {
        panic!("no ICMPv6")
    };
    assert_eq!(
        icmp.icmp_type(),
        other::Icmpv6Type::PacketTooBig { mtu: 1400 }
    );
    assert_eq!(icmp.payload(), &offender[..1232]);
    assert!(icmp.is_checksum_valid(endpoints.source, endpoints.destination));
    // A short offender is quoted whole; too little room writes nothing.
    let length = icmp6::error(
        &mut room,
        &endpoints,
        icmp6::TIME_EXCEEDED,
        0,
        0,
        &offender[..50],
    )
    .unwrap();
    assert_eq!(
        (
            length,
            checksum::icmp6(&endpoints.source, &endpoints.destination, &room[40..98])
        ),
        (98, 0)
    );
    let mut small = [0xee; 97];
    assert_eq!(
        icmp6::error(
            &mut small,
            &endpoints,
            icmp6::TIME_EXCEEDED,
            0,
            0,
            &offender[..50]
        ),
        None
    );
    assert_eq!(small, [0xee; 97]);
    assert_eq!(icmp6::QUOTE, 1232);
    assert!(icmp6::is_error(icmp6::PARAMETER_PROBLEM) && !icmp6::is_error(icmp6::ECHO_REQUEST));
    icmp6::checksum_set(&mut small[..41]);
    let (header, _) = IcmpHeader::read(&room[40..]).unwrap();
    assert_eq!((header.kind, header.code), (3, 0));
}
