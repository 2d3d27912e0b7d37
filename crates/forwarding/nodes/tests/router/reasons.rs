//! Every reason that a node declares is reached: one row a pair of node and reason.
//!
//! Most are reached from outside, by a frame. Some guard against what an earlier node lets through
//! only by mistake; those are reached by putting a packet in front of the node.

use weir_buf::Vector;
use weir_graph::DropReason::{self, *};
use weir_graph::HoldLimits;
use weir_port::interface::Feature;
use weir_wire::{ArpPacket, IpProtocol, MacAddr, build};

use crate::forward::{alter, with_options};
use crate::ip6::{alter6, piece, udp6, with_extensions};
use crate::mpls::under;
use crate::nd;
use crate::rig::*;

/// How a pair is reached.
enum How {
    /// By this frame on this interface.
    Frame(u32, Vec<u8>),
    /// By a packet in front of the node, on its way to a neighbour, or to none that exists.
    Before(Vec<u8>, Option<&'static str>),
    /// By something else.
    Action(fn(&mut Router)),
    /// By this frame at a router that knows labels.
    Labels(Vec<u8>),
    /// By something else at a router with VXLAN tunnels.
    Tunnel(fn(&mut Router)),
    /// By something else at such a router.
    LabelAction(fn(&mut Router)),
}

fn udp(destination: &str) -> Vec<u8> {
    build::udp4(&through(destination), &[1; 40])
}

fn altered(destination: &str, change: impl FnOnce(&mut weir_wire::Ipv4Header)) -> Vec<u8> {
    let mut frame = udp(destination);
    alter(&mut frame, change);
    frame
}

/// A frame with one byte changed and nothing made right.
fn broken(mut frame: Vec<u8>, place: usize, byte: u8) -> Vec<u8> {
    frame[place] = byte;
    frame
}

fn west(frame: Vec<u8>) -> How {
    How::Frame(WEST, frame)
}

fn echo(kind: u8) -> Vec<u8> {
    build::echo4(&through("10.0.1.1"), kind, 1, 1, &[1; 8])
}

fn arp(mac: MacAddr, sender: &str, target: &str) -> Vec<u8> {
    build::arp(
        MacAddr::BROADCAST,
        &ArpPacket::new(
            ArpPacket::REQUEST,
            mac,
            ip(sender),
            MacAddr::ZERO,
            ip(target),
        ),
    )
}

/// An IPv4 packet that ends behind the first byte of its ICMP header, with a right checksum there.
fn short_icmp() -> Vec<u8> {
    let mut frame = udp("10.0.1.1");
    frame.truncate(38);
    frame[34..].copy_from_slice(&[8, 0, 0xf7, 0xff]);
    alter(&mut frame, |header| {
        header.set_protocol(IpProtocol::ICMP);
        header.set_total_len(24);
    });
    frame
}

fn eth_input() -> Vec<(DropReason, How)> {
    vec![
        (InterfaceDown, How::Frame(DOWN, udp("10.0.2.2"))),
        (TooShort, west(vec![0; 13])),
        (WrongMac, west(broken(udp("10.0.2.2"), 5, 0x77))),
        (VlanUnknown, west(build::tagged(&udp("10.0.2.2"), 7, 0))),
        (UnknownEthertype, west(broken(udp("10.0.2.2"), 12, 0x12))),
        (NotRouted, How::Frame(BARE, udp("10.0.2.2"))),
        (FrameTooLong, How::Frame(LEFT, vec![2; 1600])),
    ]
}

fn bridge() -> Vec<(DropReason, How)> {
    macro_rules! reached {
        ($($reason:ident)*) => { vec![$(($reason, How::Action(|router| crate::bridge::reach(router, $reason)))),*] };
    }
    reached! { InterfaceDown TooShort BadSourceMac MacBound ReservedMac SameMember SplitHorizon ForwardOff FloodOff StormLimit NoMember FrameTooLong NoBuffer }
}

/// An IPv4 packet from that address.
fn from4(source: &'static str) -> How {
    west(altered("10.0.2.2", |header| header.set_source(ip(source))))
}

/// The checks of IPv4; whichever node makes them declares them.
fn ip4_checks() -> Vec<(DropReason, How)> {
    vec![
        (Ip4Truncated, west(udp("10.0.2.2")[..33].to_vec())),
        (
            Ip4BadVersion,
            west(altered("10.0.2.2", |header| header.version_ihl = 0x65)),
        ),
        (
            Ip4BadHeaderLength,
            west(altered("10.0.2.2", |header| header.version_ihl = 0x44)),
        ),
        (
            Ip4BadLength,
            west(altered("10.0.2.2", |header| header.set_total_len(69))),
        ),
        (Ip4BadChecksum, west(broken(udp("10.0.2.2"), 24, 0x55))),
        (Ip4SourceLoopback, from4("127.0.0.1")),
        (Ip4SourceUnspecified, from4("0.0.0.1")),
        (Ip4SourceMulticast, from4("239.1.2.3")),
        (Ip4SourceBroadcast, from4("255.255.255.255")),
        (Ip4SourceReserved, from4("241.0.0.1")),
        (Ip4SourceOwn, from4("10.0.3.1")),
        (Ip4DestinationLoopback, west(udp("127.0.0.1"))),
        (Ip4DestinationUnspecified, west(udp("0.0.0.0"))),
        (Ip4DestinationReserved, west(udp("241.0.0.1"))),
        (
            Ip4SourceRoute,
            west(with_options(&udp("10.0.2.2"), &[131, 7, 4, 10, 0, 2, 2, 0])),
        ),
        (Ip4Multicast, west(udp("224.0.0.9"))),
        (Ip4Broadcast, west(udp("255.255.255.255"))),
    ]
}

fn others() -> Vec<(&'static str, DropReason, How)> {
    let mut forbidden = build::udp4(&through("10.0.2.2"), &[1; 1300]);
    alter(&mut forbidden, |header| header.set_dont_fragment(true));
    vec![
        (
            "arp-input",
            ArpTruncated,
            west(arp(their_mac(1, 7), "10.0.1.7", "10.0.1.1")[..41].to_vec()),
        ),
        (
            "arp-input",
            ArpUnsupported,
            west(broken(arp(their_mac(1, 7), "10.0.1.7", "10.0.1.1"), 21, 9)),
        ),
        (
            "arp-input",
            ArpForeign,
            west(arp(their_mac(1, 7), "10.0.1.7", "10.0.1.8")),
        ),
        (
            "arp-input",
            ArpMartian,
            west(arp(MacAddr::BROADCAST, "10.0.1.7", "10.0.1.1")),
        ),
        (
            "acl-input",
            AclDenied,
            How::Action(|router| denied(router, WEST, Feature::AclIn)),
        ),
        (
            "acl-input",
            InterfaceDown,
            How::Action(|router| lost(router, "acl-input")),
        ),
        (
            "acl-output",
            AclDenied,
            How::Action(|router| denied(router, EAST, Feature::AclOut)),
        ),
        (
            "acl-output",
            TxDown,
            How::Action(|router| lost(router, "acl-output")),
        ),
        (
            "policer-input",
            Policed,
            How::Action(|router| policed(router, WEST, Feature::PoliceIn)),
        ),
        (
            "policer-input",
            InterfaceDown,
            How::Action(|router| lost_interface(router, "policer-input")),
        ),
        (
            "policer-output",
            Policed,
            How::Action(|router| policed(router, EAST, Feature::PoliceOut)),
        ),
        (
            "policer-output",
            TxDown,
            How::Action(|router| lost(router, "policer-output")),
        ),
        ("ip4-lookup", Blackhole, west(udp("198.18.0.1"))),
        ("ip4-local", Ip4Broadcast, west(udp("10.0.2.255"))),
        (
            "ip4-local",
            LocalFragment,
            west(altered("10.0.1.1", |header| header.set_fragment(0, true))),
        ),
        ("ip4-local", IcmpTruncated, west(short_icmp())),
        (
            "ip4-local",
            IcmpBadChecksum,
            west(broken(echo(8), 37, 0x55)),
        ),
        ("ip4-local", IcmpUnsupported, west(echo(13))),
        (
            "ip4-glean",
            HoldFull,
            How::Action(|router| drop(router.send_all(WEST, &vec![udp("10.0.2.77"); 2]))),
        ),
        (
            "ip4-glean",
            HostUnreachable,
            How::Action(|router| {
                router.send(WEST, &udp("10.0.2.77"));
                router.now += 60 * SECOND;
                router.turn();
            }),
        ),
        ("ip4-glean", NoRoute, How::Before(udp("10.0.2.77"), None)),
        (
            "ip4-glean",
            Stopped,
            How::Action(|router| {
                router.send(WEST, &udp("10.0.2.77"));
                router.give_up(Stopped);
            }),
        ),
        ("icmp4-error", NoRoute, west(udp("8.8.8.8"))),
        (
            "icmp4-error",
            NoNextHop,
            How::Action(|router| without_next_hop(router, "10.0.2.2", &udp("192.168.1.1"))),
        ),
        (
            "icmp4-error",
            Ip4BadOption,
            west(with_options(&udp("10.0.2.2"), &[7, 0, 0, 0])),
        ),
        ("ip4-local", LocalTruncated, west(short_udp())),
        (
            "ip4-local",
            UdpBadChecksum,
            west(broken(udp("10.0.1.1"), 45, 0x99)),
        ),
        (
            "ip4-local",
            TcpBadChecksum,
            west(broken(build::tcp4(&through("10.0.1.1"), 2, &[]), 47, 0x99)),
        ),
        ("icmp4-error", RouteUnreachable, west(udp("198.18.1.1"))),
        ("icmp4-error", RouteProhibited, west(udp("198.18.2.1"))),
        (
            "ip4-urpf",
            Urpf,
            How::Action(|router| {
                unrouted(
                    router,
                    &altered("10.0.2.2", |header| header.set_source(ip("8.8.8.8"))),
                )
            }),
        ),
        (
            "ip6-urpf",
            Urpf,
            How::Action(|router| {
                unrouted(
                    router,
                    &altered6("2001:db8:2::2", |header| {
                        header.source = ip6("2001:db8:ffff::1")
                    }),
                )
            }),
        ),
        ("icmp4-error", HostUnreachable, west(udp("198.19.1.1"))),
        (
            "icmp4-error",
            TtlExpired,
            west(altered("10.0.2.2", |header| header.ttl = 1)),
        ),
        ("icmp4-error", FragmentationNeeded, west(forbidden)),
        ("icmp4-error", LocalPort, west(udp("10.0.1.1"))),
        (
            "icmp4-error",
            LocalProtocol,
            west(altered("10.0.1.1", |header| {
                header.set_protocol(IpProtocol(253))
            })),
        ),
        ("ip4-rewrite", NoRoute, How::Before(udp("10.0.2.2"), None)),
        (
            "ip4-rewrite",
            Ip4Truncated,
            How::Before(udp("10.0.2.2")[..20].to_vec(), Some("10.0.2.2")),
        ),
        (
            "ip4-fragment",
            NoBuffer,
            How::Action(|router| {
                router.starve(1);
                router.send(WEST, &build::udp4(&through("10.0.2.2"), &[1; 1300]));
            }),
        ),
        (
            "ip4-fragment",
            Ip4BadLength,
            west({
                let mut frame = build::udp4(&through("10.0.2.2"), &[1; 1300]);
                alter(&mut frame, |header| header.set_fragment(0x1fff, false));
                frame
            }),
        ),
        (
            "port-tx",
            TxFull,
            How::Action(|router| {
                *router.room.lock().unwrap() = 0;
                router.send(WEST, &udp("10.0.2.2"));
            }),
        ),
        (
            "bvi-output",
            TxDown,
            How::Action(|router| {
                *router = crate::bridge::routed_side(|_| {});
                router.change(26, |bvi| bvi.can_send = false);
                router.send(WEST, &udp("10.0.20.2"));
            }),
        ),
        ("port-tx", TxDown, west(udp("10.0.8.2"))),
    ]
}

fn altered6(destination: &str, change: impl FnOnce(&mut weir_wire::Ipv6Header)) -> Vec<u8> {
    let mut frame = udp6(destination);
    alter6(&mut frame, change);
    frame
}

fn echo6(kind: u8) -> Vec<u8> {
    build::echo6(&through6("2001:db8:1::1"), kind, 1, 1, &[1; 8])
}

fn ip6_input() -> Vec<(DropReason, How)> {
    let from = |source: &str| altered6("2001:db8:2::2", |header| header.source = ip6(source));
    vec![
        (
            Ip6NotEnabled,
            How::Action(|router| {
                router.change(WEST, |interface| {
                    (interface.addresses6, interface.tentative6) = ([].into(), [].into())
                });
                router.send(WEST, &udp6("2001:db8:2::2"));
            }),
        ),
        (Ip6Truncated, west(udp6("2001:db8:2::2")[..53].to_vec())),
        (Ip6BadVersion, west(broken(udp6("2001:db8:2::2"), 14, 0x45))),
        (
            Ip6BadLength,
            west(altered6("2001:db8:2::2", |header| {
                header.set_payload_len(49)
            })),
        ),
        (Ip6SourceLoopback, west(from("::1"))),
        (Ip6SourceUnspecified, west(from("::"))),
        (Ip6SourceMulticast, west(from("ff0e::1"))),
        (Ip6SourceOwn, west(from("2001:db8:3::1"))),
        (Ip6MartianSource, west(from("::ffff:10.0.0.1"))),
        (Ip6DestinationLoopback, west(udp6("::1"))),
        (Ip6MartianDestination, west(udp6("::"))),
        (Ip6Multicast, west(udp6("ff0e::1"))),
        (Ip6GroupFrame, west(broken(udp6("2001:db8:2::2"), 0, 0x33))),
        (Ip6LinkLocal, west(udp6("fe80::77"))),
    ]
}

fn ip6_others() -> Vec<(&'static str, DropReason, How)> {
    let own = |kind: IpProtocol, extensions: &[u8]| {
        west(with_extensions(&udp6("2001:db8:1::1"), kind, extensions))
    };
    let (hop_by_hop, options) = (IpProtocol::HOP_BY_HOP, IpProtocol::DESTINATION_OPTIONS);
    let solicitation = || nd::solicitation("2001:db8:1::7", "2001:db8:1::1");
    vec![
        ("ip6-lookup", Blackhole, west(udp6("2001:db8:c::1"))),
        (
            "ip6-local",
            Ip6Truncated,
            How::Before(udp6("2001:db8:1::1")[..53].to_vec(), None),
        ),
        (
            "ip6-local",
            Ip6BadExtension,
            own(hop_by_hop, &[17, 0, 1, 9, 0, 0, 0, 0]),
        ),
        (
            "ip6-local",
            Ip6Option,
            own(options, &[17, 0, 0x41, 4, 0, 0, 0, 0]),
        ),
        (
            "ip6-local",
            LocalFragment,
            west(piece(&udp6("2001:db8:1::1"), 0, true)),
        ),
        ("ip6-local", LocalPort, west(udp6("ff02::1"))),
        (
            "ip6-local",
            LocalProtocol,
            west(altered6("ff02::1", |header| {
                header.set_next_header(IpProtocol(253))
            })),
        ),
        (
            "ip6-local",
            IcmpTruncated,
            west({
                let mut frame = altered6("2001:db8:1::1", |header| {
                    header.set_next_header(IpProtocol::ICMP6);
                    header.set_payload_len(7);
                });
                frame.truncate(61);
                frame
            }),
        ),
        (
            "ip6-local",
            IcmpBadChecksum,
            west(broken(echo6(128), 60, 0x55)),
        ),
        ("ip6-local", IcmpUnsupported, west(echo6(130))),
        (
            "nd-input",
            NdTruncated,
            west(nd::mended(solicitation(), |frame| frame.truncate(70))),
        ),
        (
            "nd-input",
            NdHopLimit,
            west(broken(solicitation(), 21, 254)),
        ),
        (
            "nd-input",
            IcmpBadChecksum,
            west(broken(solicitation(), 56, 0x55)),
        ),
        (
            "nd-input",
            NdMalformed,
            west(nd::mended(solicitation(), |frame| frame[79] = 0)),
        ),
        (
            "nd-input",
            NdForeign,
            west(nd::advertisement("2001:db8:77::1", "2001:db8:1::1", true)),
        ),
        (
            "nd-input",
            NdMartian,
            west(nd::advertisement("2001:db8:1::1", "::", true)),
        ),
        ("nd-input", NdRedirect, west(echo6(137))),
        (
            "nd-input",
            NdRouter,
            west(nd::router_solicitation("fe80::7")),
        ),
        (
            "ip6-glean",
            HoldFull,
            How::Action(|router| drop(router.send_all(WEST, &vec![udp6("2001:db8:2::77"); 2]))),
        ),
        (
            "ip6-glean",
            HostUnreachable,
            How::Action(|router| {
                router.send(WEST, &udp6("2001:db8:2::77"));
                router.now += 60 * SECOND;
                router.turn();
            }),
        ),
        (
            "ip6-glean",
            NoRoute,
            How::Before(udp6("2001:db8:2::77"), None),
        ),
        (
            "ip6-glean",
            Stopped,
            How::Action(|router| {
                router.send(WEST, &udp6("2001:db8:2::77"));
                router.give_up(Stopped);
            }),
        ),
        ("icmp6-error", NoRoute, west(udp6("2001:db8:ffff::1"))),
        (
            "icmp6-error",
            NoNextHop,
            How::Action(|router| without_next_hop(router, "2001:db8:2::2", &udp6("2001:db8:a::1"))),
        ),
        (
            "ip6-local",
            LocalTruncated,
            west(altered6("2001:db8:1::1", |header| {
                header.set_payload_len(12)
            })),
        ),
        (
            "ip6-local",
            UdpBadChecksum,
            west(broken(udp6("2001:db8:1::1"), 65, 0x99)),
        ),
        (
            "ip6-local",
            TcpBadChecksum,
            west(broken(
                build::tcp6(&through6("2001:db8:1::1"), 2, &[]),
                67,
                0x99,
            )),
        ),
        (
            "icmp6-error",
            Ip6BeyondScope,
            west(altered6("2001:db8:2::2", |header| {
                header.source = ip6("fe80::5")
            })),
        ),
        (
            "icmp6-error",
            RouteUnreachable,
            west(udp6("2001:db8:c1::1")),
        ),
        ("icmp6-error", RouteProhibited, west(udp6("2001:db8:c2::1"))),
        ("icmp6-error", HostUnreachable, west(udp6("2001:db8:e::1"))),
        ("icmp6-error", LocalPort, west(udp6("2001:db8:1::1"))),
        (
            "icmp6-error",
            LocalProtocol,
            west(altered6("2001:db8:1::1", |header| {
                header.set_next_header(IpProtocol(253))
            })),
        ),
        (
            "icmp6-error",
            PacketTooBig,
            west(build::udp6(&through6("2001:db8:2::2"), &[1; 1300])),
        ),
        (
            "icmp6-error",
            TtlExpired,
            west(altered6("2001:db8:2::2", |header| header.hop_limit = 1)),
        ),
        (
            "icmp6-error",
            Ip6BadExtension,
            own(options, &[60, 0, 1, 4, 0, 0, 0, 0].repeat(9)),
        ),
        (
            "icmp6-error",
            Ip6Option,
            own(options, &[17, 0, 0x81, 4, 0, 0, 0, 0]),
        ),
        (
            "icmp6-error",
            Ip6RoutingHeader,
            own(IpProtocol::ROUTING, &[17, 0, 0, 1, 0, 0, 0, 0]),
        ),
        (
            "ip6-rewrite",
            NoRoute,
            How::Before(udp6("2001:db8:2::2"), None),
        ),
        (
            "ip6-rewrite",
            Ip6Truncated,
            How::Before(udp6("2001:db8:2::2")[..50].to_vec(), Some("2001:db8:2::2")),
        ),
    ]
}

/// What labelled packets can meet.
fn labelled() -> Vec<(&'static str, DropReason, How)> {
    let labels = |destination: &str, entries: &[(u32, u8, u8)]| {
        How::Labels(under(&udp(destination), entries))
    };
    let mut forbidden = build::udp4(&through("10.0.2.2"), &[1; 1300]);
    alter(&mut forbidden, |header| header.set_dont_fragment(true));
    let mut last = build::udp4(&through("10.0.2.2"), &[1; 1300]);
    alter(&mut last, |header| header.set_fragment(0x1fff, false));
    vec![
        (
            "mpls-input",
            MplsNotEnabled,
            west(under(&udp("10.0.2.2"), &[(100, 0, 9)])),
        ),
        (
            "mpls-input",
            MplsBadStack,
            How::Labels(under(&udp("10.0.2.2")[..14], &[(100, 0, 9)])[..17].to_vec()),
        ),
        (
            "mpls-lookup",
            MplsBadStack,
            labels("10.0.2.2", &[(7, 0, 9)]),
        ),
        (
            "mpls-lookup",
            MplsReservedLabel,
            labels("10.0.2.2", &[(3, 0, 9)]),
        ),
        (
            "mpls-lookup",
            MplsRouterAlert,
            labels("10.0.2.2", &[(1, 0, 9)]),
        ),
        (
            "mpls-lookup",
            MplsUnknownLabel,
            labels("10.0.2.2", &[(999, 0, 9)]),
        ),
        (
            "mpls-lookup",
            MplsNotBottom,
            labels("10.0.2.2", &[(104, 0, 9), (100, 0, 9)]),
        ),
        (
            "mpls-lookup",
            MplsBadPayload,
            labels("10.0.2.2", &[(2, 0, 9)]),
        ),
        ("mpls-lookup", Blackhole, labels("10.0.2.2", &[(108, 0, 9)])),
        (
            "mpls-lookup",
            NoNextHop,
            How::LabelAction(|router| {
                let east = router
                    .nexthops
                    .adjacencies()
                    .find(|(_, end)| end.address == address("10.0.2.2"))
                    .unwrap()
                    .0;
                router.nexthops.set_up(east, false);
                router.publish();
                router.send(WEST, &under(&udp("10.0.2.2"), &[(100, 0, 9)]));
            }),
        ),
        (
            "mpls-lookup",
            HostUnreachable,
            labels("10.0.2.2", &[(110, 0, 9)]),
        ),
        (
            "mpls-lookup",
            FrameTooLong,
            How::Labels(
                [
                    &under(&udp("1.1.1.1")[..14], &[(100, 0, 9)])[..],
                    &[0; 1300],
                ]
                .concat(),
            ),
        ),
        (
            "mpls-glean",
            HoldFull,
            How::LabelAction(|router| {
                drop(router.send_all(WEST, &vec![under(&udp("1.1.1.1"), &[(109, 0, 9)]); 2]))
            }),
        ),
        (
            "mpls-glean",
            HostUnreachable,
            How::LabelAction(|router| {
                router.send(WEST, &under(&udp("1.1.1.1"), &[(109, 0, 9)]));
                router.now += 60 * SECOND;
                router.turn();
            }),
        ),
        (
            "mpls-glean",
            NoRoute,
            How::Before(under(&udp("1.1.1.1"), &[(109, 0, 9)]), None),
        ),
        (
            "mpls-glean",
            Stopped,
            How::LabelAction(|router| {
                router.send(WEST, &under(&udp("1.1.1.1"), &[(109, 0, 9)]));
                router.give_up(Stopped);
            }),
        ),
        ("mpls-error", TtlExpired, labels("10.0.2.2", &[(100, 0, 1)])),
        (
            "mpls-error",
            FragmentationNeeded,
            How::Labels(under(&forbidden, &[(100, 0, 9)])),
        ),
        (
            "mpls-fragment",
            Ip4BadLength,
            How::Labels(under(&last, &[(100, 0, 9)])),
        ),
        (
            "mpls-fragment",
            NoBuffer,
            How::LabelAction(|router| {
                router.starve(1);
                router.send(
                    WEST,
                    &under(
                        &build::udp4(&through("10.0.2.2"), &[1; 1300]),
                        &[(100, 0, 9)],
                    ),
                );
            }),
        ),
        ("mpls-push", NoRoute, How::Before(udp("10.0.2.2"), None)),
        (
            "mpls-push",
            HostUnreachable,
            How::LabelAction(|router| {
                // The neighbour failed between ip4-rewrite and here.
                let unknown = |end: &weir_fib::Adjacency| {
                    end.labelled().is_some() && end.address == address("10.0.2.10")
                };
                let labelled = router
                    .nexthops
                    .adjacencies()
                    .find(|(_, end)| unknown(end))
                    .unwrap()
                    .0;
                let mut packet = router.packet(&udp("10.0.2.2"));
                packet.set_interface(WEST);
                packet.set_l3_offset(14);
                packet.set_aux(labelled);
                let entry = router.graph.find("mpls-push").unwrap();
                router.graph.inject(entry, packet);
                router.turn();
            }),
        ),
    ]
}

/// A packet whose route has no path that is up.
fn without_next_hop(router: &mut Router, neighbor: &str, frame: &[u8]) {
    let number = router.adjacency_of(neighbor);
    router.nexthops.set_up(number, false);
    router.publish();
    router.send(WEST, frame);
}

/// A UDP packet for this router whose length says more than there is.
fn short_udp() -> Vec<u8> {
    broken(udp("10.0.1.1"), 39, 0xff)
}

/// A packet that an access list denies.
fn denied(router: &mut Router, interface: u32, feature: Feature) {
    crate::acl::bind(
        router,
        interface,
        feature,
        vec![crate::acl::from(weir_acl::Action::Deny, "0.0.0.0/0")],
    );
    router.send(WEST, &udp("10.0.2.2"));
}

fn policed(router: &mut Router, interface: u32, feature: Feature) {
    crate::policer::attach(router, interface, feature, 8_000, 1);
    router.send(WEST, &udp("10.0.2.2"));
}

/// A packet of an interface that is gone.
fn lost_interface(router: &mut Router, node: &str) {
    let packet = router.packet(&udp("10.0.2.2"));
    let entry = router.graph.find(node).unwrap();
    let mut vector = Vector::default();
    vector.push(packet);
    router.breathe_at(entry, 99, &mut vector);
    router.balance();
}

/// A packet where its source is looked at.
fn unrouted(router: &mut Router, frame: &[u8]) {
    *router = crate::urpf::looking(weir_port::interface::ReversePath::Loose);
    router.send(WEST, frame);
}

/// A packet of an interface that is down, and for one that is no more, in front of a node.
fn lost(router: &mut Router, node: &str) {
    let mut packet = router.packet(&udp("10.0.2.2"));
    packet.set_interface(DOWN);
    packet.set_aux(99);
    let entry = router.graph.find(node).unwrap();
    router.graph.inject(entry, packet);
    router.turn();
}

/// What only the engine can bring about.
const NOT_HERE: [(&str, DropReason, &str); 2] = [
    (
        "port-tx",
        HandoffFull,
        "the ring between two workers, which the engine has",
    ),
    (
        "port-tx",
        Stopped,
        "what is left when the engine stops a worker",
    ),
];

fn reach(node: &str, reason: DropReason, how: How) -> Router {
    let holds = HoldLimits {
        per_key: 1,
        ..HoldLimits::default()
    };
    let setup = Setup {
        mtu: 1000,
        holds,
        ..Setup::default()
    };
    let mut router = match how {
        How::Labels(_) | How::LabelAction(_) => Router::with_labels(setup),
        _ => Router::new(setup),
    };
    if matches!(how, How::Tunnel(_)) {
        crate::vxlan::prepare(&mut router);
    }
    match how {
        How::Frame(interface, frame) => drop(router.send(interface, &frame)),
        How::Labels(frame) => drop(router.send(WEST, &frame)),
        How::Action(action) | How::LabelAction(action) | How::Tunnel(action) => action(&mut router),
        How::Before(frame, neighbor) => {
            let is_it =
                |address| neighbor.is_some_and(|neighbor| address == crate::rig::address(neighbor));
            let adjacency = router
                .nexthops
                .adjacencies()
                .find(|(_, end)| is_it(end.address))
                .map_or(9999, |(number, _)| number);
            let mut packet = router.packet(&frame);
            packet.set_interface(WEST);
            packet.set_l3_offset(14);
            packet.set_aux(adjacency);
            let entry = router.graph.find(node).unwrap();
            router.graph.inject(entry, packet);
            router.turn();
        }
    }
    assert_eq!(
        router.dropped(reason),
        1,
        "{node} {reason:?}: {:?}",
        router.drops()
    );
    router
}

#[test]
fn every_declared_reason_is_reached() {
    let map = Router::default().graph.drop_map();
    let mut missing: Vec<_> = map.pairs().to_vec();
    let mut rows: Vec<(Option<&str>, DropReason, How)> = Vec::new();
    rows.extend(
        eth_input()
            .into_iter()
            .map(|(reason, how)| (Some("eth-input"), reason, how)),
    );
    rows.extend(
        bridge()
            .into_iter()
            .map(|(reason, how)| (Some("bridge"), reason, how)),
    );
    rows.extend(
        ip4_checks()
            .into_iter()
            .map(|(reason, how)| (None, reason, how)),
    );
    rows.extend(
        crate::bond::reasons()
            .into_iter()
            .map(|(node, reason, action)| (Some(node), reason, How::Action(action))),
    );
    rows.extend(
        crate::linux::reasons()
            .into_iter()
            .map(|(node, reason, action)| (Some(node), reason, How::Action(action))),
    );
    rows.extend(
        crate::vlan::reasons()
            .into_iter()
            .map(|(node, reason, action)| (Some(node), reason, How::Action(action))),
    );
    rows.extend(
        crate::pseudowire::reasons()
            .into_iter()
            .map(|(node, reason, action)| (Some(node), reason, How::Action(action))),
    );
    rows.extend(
        crate::vxlan::reasons()
            .into_iter()
            .map(|(node, reason, action)| (Some(node), reason, How::Tunnel(action))),
    );
    rows.extend(
        ip6_input()
            .into_iter()
            .map(|(reason, how)| (Some("ip6-input"), reason, how)),
    );
    rows.extend(
        ip6_others()
            .into_iter()
            .map(|(node, reason, how)| (Some(node), reason, how)),
    );
    rows.extend(
        labelled()
            .into_iter()
            .map(|(node, reason, how)| (Some(node), reason, how)),
    );
    rows.extend(
        others()
            .into_iter()
            .map(|(node, reason, how)| (Some(node), reason, how)),
    );
    for (node, reason, how) in rows {
        let router = reach(node.unwrap_or("ip4-input"), reason, how);
        let (at, ..) = *router.drops().iter().find(|drop| drop.1 == reason).unwrap();
        assert!(
            node.is_none_or(|node| node == at),
            "{reason:?} is dropped at {at}"
        );
        missing.retain(|&pair| pair != (at, reason));
    }
    missing.retain(|&(node, reason)| {
        reason != LoopLimit
            && !NOT_HERE
                .iter()
                .any(|known| (known.0, known.1) == (node, reason))
    });
    assert!(missing.is_empty(), "no test reaches {missing:?}");
}
