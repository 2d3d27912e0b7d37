//! VXLAN tunnels: frames go in and come out again, over IPv4 and IPv6, and what is not a tunnel's is dropped.
//!
//! Port 52 is cross-connected with tunnel 50, from 10.0.1.1 to 192.168.0.9 (behind `east`), segment 100. Port 53 is with
//! tunnel 51, from 2001:db8:1::1 to 2001:db8:a::9 (behind `east`, too), segment 0xffffff.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_fib::Fib4Writer;
use weir_graph::DropReason;
use weir_port::interface::{Input, Interface, InterfaceCounters, Kind, Output};
use weir_port::vxlan::{Vxlan, VxlanTable};
use weir_ring::qsbr::Domain;
use weir_wire::build::{self, Ends, Ends6};
use weir_wire::{IpProtocol, Ipv4Header, Ipv6Header, UdpHeader, VxlanHeader, checksum};
use zerocopy::IntoBytes;

use crate::forward::alter;
use crate::rig::*;

pub(crate) const TUNNEL4: u32 = 50;
const TUNNEL6: u32 = 51;
pub(crate) const PORT4: u32 = 52;
pub(crate) const PORT6: u32 = 53;
/// Ethernet, IPv4, UDP and VXLAN; Ethernet, IPv6, UDP and VXLAN.
const AROUND4: usize = 50;
const AROUND6: usize = 70;

fn tunnel(router: &mut Router, index: u32, local: &str, remote: &str, vni: u32, input: Input) {
    let counters = Arc::new(InterfaceCounters::new(1));
    let vxlan = Vxlan::new(address(local), address(remote), vni).map(Arc::new);
    let at_rest = Interface::at_rest(
        index,
        format!("vxlan_tunnel{index}").into(),
        Kind::Vxlan,
        our_mac(index),
        counters,
    );
    router.install(Interface {
        input,
        output: Output::Vxlan,
        vxlan,
        mtu: 9000,
        can_send: true,
        ..at_rest
    });
}

pub(crate) fn add(router: &mut Router) {
    for (index, tunnel) in [(PORT4, TUNNEL4), (PORT6, TUNNEL6)] {
        let counters = Arc::new(InterfaceCounters::new(1));
        let at_rest = Interface::at_rest(
            index,
            format!("port{index}").into(),
            Kind::Port,
            our_mac(index),
            counters,
        );
        router.install(Interface {
            input: Input::CrossConnect(tunnel),
            mtu: 9000,
            can_send: true,
            ..at_rest
        });
    }
    tunnel(
        router,
        TUNNEL4,
        "10.0.1.1",
        "192.168.0.9",
        100,
        Input::CrossConnect(PORT4),
    );
    tunnel(
        router,
        TUNNEL6,
        "2001:db8:1::1",
        "2001:db8:a::9",
        0xff_ffff,
        Input::CrossConnect(PORT6),
    );
    index(router);
}

/// Makes the table of tunnels, as the control side would.
fn index(router: &mut Router) {
    let entries = router
        .tables
        .interfaces
        .iter()
        .flatten()
        .map(|entry| &entry.interface);
    let tunnels: Vec<_> = entries
        .filter_map(|it| Some((it.vxlan.clone()?, it.index)))
        .collect();
    router.tables.vxlan = Arc::new(VxlanTable::new(
        tunnels.iter().map(|(tunnel, index)| (&**tunnel, *index)),
    ));
}

pub(crate) fn tunnelled() -> Router {
    let mut router = Router::with_mtu(9200);
    add(&mut router);
    router
}

/// A frame of a flow between two stations that are nobody's here.
pub(crate) fn inner(port: u16, bytes: usize) -> Vec<u8> {
    let ends = Ends {
        source_mac: their_mac(9, 1),
        destination_mac: their_mac(9, 2),
        source_port: port,
        ..through("10.9.0.2")
    };
    build::udp4(&ends, &(0..bytes).map(|n| n as u8).collect::<Vec<_>>())
}

/// What comes from the far end of tunnel 50, around a frame.
pub(crate) fn from_far(frame: &[u8]) -> Vec<u8> {
    let ends = Ends {
        source: ip("192.168.0.9"),
        source_port: 50_000,
        destination_port: VxlanHeader::PORT,
        ..through("10.0.1.1")
    };
    build::udp4(&ends, &[VxlanHeader::new(100).as_bytes(), frame].concat())
}

fn from_far6(frame: &[u8]) -> Vec<u8> {
    let ends = Ends6 {
        source: ip6("2001:db8:a::9"),
        source_port: 50_000,
        destination_port: VxlanHeader::PORT,
        ..through6("2001:db8:1::1")
    };
    build::udp6(
        &ends,
        &[VxlanHeader::new(0xff_ffff).as_bytes(), frame].concat(),
    )
}

/// A frame with the UDP header that starts at this octet changed, checksum as it was.
fn with_udp(mut frame: Vec<u8>, at: usize, change: impl FnOnce(&mut UdpHeader)) -> Vec<u8> {
    change(UdpHeader::read_mut(&mut frame[at..]).unwrap().0);
    frame
}

#[test]
fn a_frame_goes_out_as_a_packet_and_comes_back_as_it_was() {
    for size in [0, 1, 18, 1000, 2400, 2500, 8000] {
        let frame = inner(7, size);
        for cut in [5000, 601, 256] {
            let mut router = tunnelled();
            let mut vector = weir_buf::Vector::default();
            vector.push(router.packet_cut(&frame, cut.min(weir_buf::DATA_ROOM)));
            let (out, packet) = router.send_vector(PORT4, &mut vector).remove(0);
            assert_eq!(
                (out, packet.len(), &packet[AROUND4..]),
                (EAST, frame.len() + AROUND4, &frame[..])
            );
            let (header, l4) = Ipv4Header::read(&packet[14..]).unwrap();
            assert!(
                checksum::ipv4_header_ok(header) && header.dont_fragment() && header.ttl == 64,
                "{header:?}"
            );
            assert_eq!(
                (header.total_len() as usize, header.source()),
                (packet.len() - 14, ip("10.0.1.1"))
            );
            let (udp, _) = UdpHeader::read(l4).unwrap();
            assert_eq!(
                (udp.length() as usize, udp.checksum(), udp.destination()),
                (l4.len(), 0, 4789)
            );
            assert_eq!(&l4[8..16], VxlanHeader::new(100).as_bytes());
            let mut vector = weir_buf::Vector::default();
            vector.push(router.packet_cut(&from_far(&frame), cut.min(weir_buf::DATA_ROOM)));
            assert_eq!(
                router.send_vector(WEST, &mut vector),
                [(PORT4, frame.clone())],
                "{size} in pieces of {cut}: {:?}",
                router.drops()
            );

            let mut vector = weir_buf::Vector::default();
            vector.push(router.packet_cut(&frame, cut.min(weir_buf::DATA_ROOM)));
            let (out, packet) = router.send_vector(PORT6, &mut vector).remove(0);
            assert_eq!(
                (out, packet.len(), &packet[AROUND6..]),
                (EAST, frame.len() + AROUND6, &frame[..])
            );
            let (header, l4) = Ipv6Header::read(&packet[14..]).unwrap();
            assert_eq!(
                (
                    header.hop_limit,
                    header.payload_len() as usize,
                    header.next_header()
                ),
                (64, l4.len(), IpProtocol::UDP)
            );
            let sum = checksum::pseudo6(
                &header.source,
                &header.destination,
                IpProtocol::UDP,
                l4.len() as u32,
            )
            .add_bytes(l4)
            .finish();
            assert_eq!(
                sum, 0,
                "over IPv6 the checksum is right, {size} in pieces of {cut}"
            );
            let mut vector = weir_buf::Vector::default();
            vector.push(router.packet_cut(&from_far6(&frame), cut.min(weir_buf::DATA_ROOM)));
            assert_eq!(
                router.send_vector(WEST, &mut vector),
                [(PORT6, frame.clone())],
                "{size} in pieces of {cut}: {:?}",
                router.drops()
            );
            for (interface, direction) in [(TUNNEL4, "IPv4"), (TUNNEL6, "IPv6")] {
                let counters = &router.interface(interface).counters;
                assert_eq!(
                    (counters.rx().bytes, counters.tx().bytes),
                    (frame.len() as u64, frame.len() as u64),
                    "{direction}"
                );
            }
        }
    }
}

/// RFC 6040 section 4.2: over both versions, to both versions, behind tags, too. Checksums stay right.
#[test]
fn congestion_on_the_way_is_reported_to_what_is_inside() {
    let inner6 = build::udp6(&through6("2001:db8:9::2"), &[1; 40]);
    let tagged = |frame: &[u8]| [&frame[..12], &[0x81, 0, 0, 7][..], &frame[12..]].concat();
    let marked = |frame: &[u8], ecn: u8| {
        let mut frame = frame.to_vec();
        let at = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
        if frame[at] >> 4 == 4 {
            frame[at + 1] = 0xb8 | ecn;
            checksum::ipv4_header_set(&mut frame[at..]);
        } else {
            frame[at + 1] |= ecn << 4;
        }
        frame
    };
    let frames = [
        inner(1, 30),
        tagged(&inner(1, 30)),
        inner6.clone(),
        tagged(&inner6),
    ];
    for (inside, outside, expected) in [
        (0, 1, Some(0)),
        (0, 2, Some(0)),
        (0, 3, None),
        (2, 1, Some(1)),
        (2, 2, Some(2)),
        (2, 3, Some(3)),
        (1, 2, Some(1)),
        (1, 3, Some(3)),
        (3, 1, Some(3)),
        (3, 0, Some(3)),
        (2, 0, Some(2)),
    ] {
        for frame in &frames {
            let mut router = tunnelled();
            let (four, six) = (
                marked(&from_far(&marked(frame, inside)), outside),
                marked(&from_far6(&marked(frame, inside)), outside),
            );
            let wanted = |port| expected.map(|expected| (port, marked(frame, expected)));
            assert_eq!(
                router.send(WEST, &four),
                Vec::from_iter(wanted(PORT4)),
                "{inside} in {outside}: {:?}",
                router.drops()
            );
            assert_eq!(
                router.send(WEST, &six),
                Vec::from_iter(wanted(PORT6)),
                "{inside} in {outside}: {:?}",
                router.drops()
            );
        }
    }
    // A payload that is not IP is unchanged, and a truncated one has no field to change.
    let arp = [&[0xff; 6][..], &their_mac(9, 1).0, &[0x08, 0x06], &[1; 28]].concat();
    for frame in [arp, inner(1, 30)[..15].to_vec()] {
        let mut router = tunnelled();
        assert_eq!(
            router.send(WEST, &marked(&from_far(&frame), 3)),
            [(PORT4, frame)]
        );
    }
}

#[test]
fn flows_have_ports_of_their_own() {
    let mut router = tunnelled();
    let mut ports = BTreeSet::new();
    for flow in 0..64 {
        let port = |sent: (u32, Vec<u8>)| UdpHeader::read(&sent.1[34..]).unwrap().0.source();
        let first = port(router.send_one(PORT4, &inner(flow, 20)));
        assert_eq!(
            first,
            port(router.send_one(PORT4, &inner(flow, 900))),
            "one flow, one port"
        );
        assert!(first >= 49_152);
        ports.insert(first);
    }
    assert!(ports.len() > 56, "{} ports for 64 flows", ports.len());
}

#[test]
fn a_whole_vector_of_both_kinds_and_of_others_comes_apart() {
    let mut router = tunnelled();
    let (four, six) = (from_far(&inner(1, 30)), from_far6(&inner(2, 30)));
    let frames: Vec<Vec<u8>> = (0..60)
        .flat_map(|_| {
            [
                four.clone(),
                six.clone(),
                build::udp4(&through("10.0.2.2"), &[1]),
            ]
        })
        .collect();
    let sent = router.send_all(WEST, &frames);
    let count = |port| sent.iter().filter(|sent| sent.0 == port).count();
    assert_eq!(
        (count(PORT4), count(PORT6), count(EAST), sent.len()),
        (60, 60, 60, 180)
    );
}

#[test]
fn without_tunnels_nobody_listens() {
    let mut router = tunnelled();
    router.tables.vxlan = Arc::default();
    router.send(WEST, &from_far(&inner(1, 1)));
    router.send(WEST, &from_far6(&inner(1, 1)));
    assert_eq!(router.dropped(DropReason::LocalPort), 2);
}

#[test]
fn tunnels_end_in_the_default_table_only() {
    let mut router = tunnelled();
    router.tables.fib4.push(router.tables.fib4[0].clone());
    router.tables.fib6.push(router.tables.fib6[0].clone());
    router.change(WEST, |west| west.table = 1);
    router.send(WEST, &from_far(&inner(1, 1)));
    router.send(WEST, &from_far6(&inner(1, 1)));
    assert_eq!(router.dropped(DropReason::LocalPort), 2);
    // And begin there, whatever table the interface is in.
    router.change(TUNNEL4, |tunnel| tunnel.table = 1);
    router.tables.fib4[1] = Fib4Writer::new(&Domain::new(1)).unwrap().fib().clone();
    assert_eq!(router.send_one(PORT4, &inner(1, 1)).0, EAST);
}

#[test]
fn what_is_behind_the_datagram_is_not_the_frames() {
    let mut router = tunnelled();
    let frame = inner(1, 20);
    let mut packet = from_far(&frame);
    packet.extend([0xee; 9]);
    alter(&mut packet, |header| {
        header.set_total_len(header.total_len() + 5)
    });
    assert_eq!(router.send_one(WEST, &packet), (PORT4, frame));
    // Over several chunks, the last of which nothing is left of.
    let frame = inner(1, 300);
    let mut packet = from_far(&frame);
    packet.extend([0xee; 200]);
    alter(&mut packet, |header| {
        header.set_total_len(header.total_len() + 200)
    });
    for most in [120, 150, 400] {
        let mut vector = weir_buf::Vector::default();
        vector.push(router.packet_cut(&packet, most));
        assert_eq!(
            router.send_vector(WEST, &mut vector),
            [(PORT4, frame.clone())],
            "{most}"
        );
    }
}

#[test]
fn hostile_packets_do_no_harm() {
    let mut router = tunnelled();
    for whole in [from_far(&inner(1, 20)), from_far6(&inner(1, 20))] {
        for len in 14..whole.len() {
            router.send(WEST, &whole[..len]);
            // Also where the outer lengths are right.
            let mut cut = whole[..len].to_vec();
            if whole[14] >> 4 == 4 && len >= 34 {
                alter(&mut cut, |header| header.set_total_len(len as u16 - 14));
            } else if len >= 54 {
                cut[18..20].copy_from_slice(&(len as u16 - 54).to_be_bytes());
            }
            router.send(WEST, &cut);
        }
        for place in 14..whole.len() {
            for bit in 0..8 {
                let mut broken = whole.clone();
                broken[place] ^= 1 << bit;
                router.send(WEST, &broken);
                if broken[14] >> 4 == 4 {
                    alter(&mut broken, |_| {});
                    router.send(WEST, &broken);
                }
            }
        }
    }
    for len in 0..60 {
        router.send(PORT4, &inner(1, 20)[..len]);
    }
}

/// Brings a packet before a node, as one that leaves by tunnel 50.
fn before(router: &mut Router, node: &str, frame: &[u8], headroom: usize) {
    let mut packet = router.packet(frame);
    if let Some(pushed) = packet
        .headroom()
        .checked_sub(headroom)
        .filter(|&pushed| pushed > 0)
    {
        let whole = packet.push_front(pushed).unwrap().len();
        packet.data_mut().copy_within(pushed..whole, 0);
        assert!(packet.set_len(frame.len()));
    }
    packet.set_interface(PORT4);
    packet.set_aux(if node == "vxlan-input" { 20 } else { TUNNEL4 });
    if node == "vxlan-input" {
        packet.set_l3_offset(14);
    }
    let entry = router.graph.find(node).unwrap();
    router.graph.inject(entry, packet);
    router.turn();
}

/// Brings a drop about.
type Action = fn(&mut Router);

/// One drop for each reason of both nodes.
pub(crate) fn reasons() -> Vec<(&'static str, DropReason, Action)> {
    use DropReason::*;
    let output: [(DropReason, Action); 5] = [
        (TxDown, |router| {
            router.change(TUNNEL4, |tunnel| tunnel.can_send = false);
            router.send(PORT4, &inner(1, 1));
        }),
        (TooShort, |router| {
            before(router, "vxlan-output", &[2; 13], 256)
        }),
        (FrameTooLong, |router| {
            before(router, "vxlan-output", &[2; 9000], 256)
        }),
        (TunnelLoop, |router| {
            // The far end is behind the other tunnel.
            let to_tunnel = router.neighbor(TUNNEL6, "10.0.9.2", 1500);
            router.route("192.168.0.9/32".parse().unwrap(), &[(to_tunnel, 1)]);
            router.publish();
            router.send(PORT4, &inner(1, 1));
        }),
        (NoHeadroom, |router| {
            before(router, "vxlan-output", &inner(1, 1), AROUND4 - 1)
        }),
    ];
    let input: [(DropReason, Action); 6] = [
        (VxlanTruncated, |router| {
            drop(router.send(
                WEST,
                &with_udp(from_far(&inner(1, 1)), 34, |udp| udp.set_length(15)),
            ))
        }),
        (UdpBadChecksum, |router| {
            drop(router.send(
                WEST,
                &with_udp(from_far(&inner(1, 1)), 34, |udp| udp.set_checksum(0x55)),
            ))
        }),
        (VxlanNoVni, |router| {
            let mut packet = with_udp(from_far(&inner(1, 1)), 34, |udp| udp.set_checksum(0));
            packet[42] = 0xf7;
            router.send(WEST, &packet);
        }),
        (VxlanUnknownVni, |router| {
            let mut packet = with_udp(from_far(&inner(1, 1)), 34, |udp| udp.set_checksum(0));
            packet[48] = 101;
            router.send(WEST, &packet);
        }),
        (VxlanUnknownPeer, |router| {
            let mut packet = with_udp(from_far(&inner(1, 1)), 34, |udp| udp.set_checksum(0));
            alter(&mut packet, |header| header.set_source(ip("192.168.0.8")));
            router.send(WEST, &packet);
        }),
        (TunnelCongested, |router| {
            let mut packet = from_far(&inner(1, 1));
            alter(&mut packet, |header| header.tos = 3);
            router.send(WEST, &packet);
        }),
    ];
    let of = |node, (reason, action)| (node, reason, action);
    output
        .into_iter()
        .map(|it| of("vxlan-output", it))
        .chain(input.into_iter().map(|it| of("vxlan-input", it)))
        .collect()
}

/// What `reasons` is tried with.
pub(crate) fn prepare(router: &mut Router) {
    add(router);
    router.change(TUNNEL4, |tunnel| tunnel.mtu = 1500);
}
