//! MPLS: every role of a router on a label path, its modes, its errors, byte by byte after the RFCs.
//!
//! ```text
//! west (labels taken)      100 ► 200 by east, 10.0.2.2       101 ► 16 labels by east    102 ► popped, to east (uniform)
//!                          103 ► popped, to east (pipe)      104 ► looked up (uniform)  105 ► looked up (pipe)
//!                          106 ► 300 by east or 400 by south 107 ► looked up, IPv4 only 108 ► blackhole
//!                          109 ► 201 by 10.0.2.9 (asked)     110 ► 202 by 10.0.2.10 (failed)   111 ► 203 and an entropy label
//!                          112 ► 204 and 205, pipe           113 ► looked up in table 1, which has 10.99.0.0/16 by south
//! 10.50.0.0/16 ► label 500 by east      10.51.0.0/16 ► 501, 502, pipe with class 5      10.52.0.0/16 ► 503 and an entropy label
//! 10.53.0.0/16 ► 504 by east or 505 by south      10.54.0.0/16 ► 506 by 10.0.2.9
//! ```

use std::net::IpAddr;

use weir_fib::{
    Adjacency, Fib4Writer, Group, LabelEntry, LabelStack, NeighborState, Path, Payload, TtlMode,
};
use weir_graph::DropReason;
use weir_nodes::FlowEnds;
use weir_ring::qsbr::Domain;
use weir_wire::build::{self, Ends};
use weir_wire::{Ipv4Header, checksum};

use crate::forward::alter;
use crate::rig::*;
use crate::sight;

/// A label stack entry: label, class, time to live; which is the last its place says.
type Lse = (u32, u8, u8);

/// The bytes of a stack (RFC 3032 section 2.1).
pub(crate) fn stack(entries: &[Lse]) -> Vec<u8> {
    let last = entries.len() - 1;
    let word = |(place, &(label, class, ttl)): (usize, &Lse)| {
        let bottom = u32::from(place == last) << 8;
        (label << 12 | u32::from(class) << 9 | bottom | u32::from(ttl)).to_be_bytes()
    };
    entries.iter().enumerate().flat_map(word).collect()
}

/// The frame with a stack in front of its packet.
pub(crate) fn under(frame: &[u8], entries: &[Lse]) -> Vec<u8> {
    [&frame[..12], &[0x88, 0x47], &stack(entries), &frame[14..]].concat()
}

fn udp(ttl: u8, tos: u8) -> Vec<u8> {
    let mut frame = build::udp4(
        &Ends {
            ttl,
            ..through("192.168.9.9")
        },
        &[0x5a; 40],
    );
    alter(&mut frame, |header| header.tos = tos);
    frame
}

impl Router {
    fn labels_to(&mut self, neighbor: &str, stack: LabelStack) -> Path {
        let is_it = |end: &Adjacency| end.address == address(neighbor);
        let number = self
            .nexthops
            .adjacencies()
            .find(|(_, end)| is_it(end) && end.labelled().is_none())
            .unwrap()
            .0;
        Path {
            labels: stack,
            ..Path::to(number)
        }
    }

    fn label(&mut self, label: u32, paths: Vec<Path>, mode: TtlMode, payload: Payload) {
        let group = self.nexthops.acquire(Group::new(paths).unwrap()).unwrap();
        self.tables
            .lfib
            .set(label, LabelEntry::new(group, mode, payload))
            .unwrap();
    }

    fn impose(&mut self, prefix: &str, paths: Vec<Path>) {
        let group = self.nexthops.acquire(Group::new(paths).unwrap()).unwrap();
        self.fib.insert(prefix.parse().unwrap(), group).unwrap();
    }

    fn deaggregate(&mut self, label: u32, table: u32, mode: TtlMode, payload: Payload) {
        let end = self.nexthops.add_adjacency(Adjacency::lookup_in(table));
        self.label(label, vec![Path::to(end)], mode, payload);
    }

    /// The router of this file's head.
    pub(crate) fn with_labels(setup: Setup) -> Router {
        use TtlMode::{Pipe, Uniform};
        let mut router = Router::new(setup);
        router.change(WEST, |west| west.mpls = true);
        let of = LabelStack::of;
        let sixteen: Vec<u32> = (1000..1016).collect();
        for (label, stack, neighbor, mode) in [
            (100, of(&[200]), "10.0.2.2", Uniform),
            (101, of(&sixteen), "10.0.2.2", Uniform),
            (102, of(&[]), "10.0.2.2", Uniform),
            (103, of(&[]), "10.0.2.2", Pipe),
            (109, of(&[201]), "10.0.2.9", Uniform),
            (110, of(&[202]), "10.0.2.10", Uniform),
            (
                111,
                LabelStack {
                    entropy: true,
                    ..of(&[203])
                },
                "10.0.2.2",
                Uniform,
            ),
            (
                112,
                LabelStack {
                    mode: Pipe,
                    ..of(&[204, 205])
                },
                "10.0.2.2",
                Uniform,
            ),
        ] {
            let path = router.labels_to(neighbor, stack);
            router.label(label, vec![path], mode, Payload::Either);
        }
        let both = vec![
            router.labels_to("10.0.2.2", of(&[300])),
            router.labels_to("10.0.3.2", of(&[400])),
        ];
        router.label(106, both, Uniform, Payload::Either);
        router.deaggregate(104, 0, Uniform, Payload::Either);
        router.deaggregate(105, 0, Pipe, Payload::Either);
        router.deaggregate(107, 0, Uniform, Payload::Ip4);
        router.deaggregate(113, 1, Pipe, Payload::Either);
        let hole = router.nexthops.add_adjacency(Adjacency::blackhole());
        router.label(108, vec![Path::to(hole)], Uniform, Payload::Either);
        for (prefix, stack, neighbor) in [
            ("10.50.0.0/16", of(&[500]), "10.0.2.2"),
            (
                "10.51.0.0/16",
                LabelStack {
                    mode: Pipe,
                    class: Some(5),
                    ..of(&[501, 502])
                },
                "10.0.2.2",
            ),
            (
                "10.52.0.0/16",
                LabelStack {
                    entropy: true,
                    ..of(&[503, 510])
                },
                "10.0.2.2",
            ),
            ("10.54.0.0/16", of(&[506]), "10.0.2.9"),
        ] {
            let path = router.labels_to(neighbor, stack);
            router.impose(prefix, vec![path]);
        }
        let both = vec![
            router.labels_to("10.0.2.2", of(&[504])),
            router.labels_to("10.0.3.2", of(&[505])),
        ];
        router.impose("10.53.0.0/16", both);
        let mut other = Fib4Writer::new(&Domain::new(1)).unwrap();
        let south = router.labels_to("10.0.3.2", of(&[]));
        let group = router
            .nexthops
            .acquire(Group::new([south]).unwrap())
            .unwrap();
        other
            .insert("10.99.0.0/16".parse().unwrap(), group)
            .unwrap();
        router.tables.fib4.push(other.fib().clone());
        router.publish();
        router
    }

    /// What must come out for a labelled packet: by which interface, which stack, which packet under it.
    fn assert_out(&mut self, sent: &[u8], interface: u32, entries: &[Lse], packet: &[u8]) {
        let (out, got) = self.send_one(WEST, sent);
        let (subnet, ethertype) = (
            if interface == EAST { 2 } else { 3 },
            if entries.is_empty() {
                [8, 0]
            } else {
                [0x88, 0x47]
            },
        );
        let stack = if entries.is_empty() {
            Vec::new()
        } else {
            stack(entries)
        };
        let wanted = [
            &their_mac(subnet, 2).0[..],
            &our_mac(interface).0,
            &ethertype,
            &stack[..],
            packet,
        ]
        .concat();
        assert_eq!((out, hex(&got)), (interface, hex(&wanted)));
    }

    fn assert_dropped(&mut self, sent: &[u8], reason: DropReason) {
        let before = self.dropped(reason);
        let out = self.send(WEST, sent);
        assert!(out.is_empty(), "{reason:?}: {out:?}");
        assert_eq!(self.dropped(reason), before + 1, "{:?}", self.drops());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The packet of a frame with another time to live and type of service.
fn packet(frame: &[u8], ttl: u8, tos: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    alter(&mut frame, |header| (header.ttl, header.tos) = (ttl, tos));
    frame[14..].to_vec()
}

#[test]
fn a_label_is_swapped() {
    let mut router = Router::with_labels(Setup::default());
    let frame = udp(9, 0xb8);
    for (ttl, class) in [(64, 0), (255, 7), (2, 3)] {
        router.assert_out(
            &under(&frame, &[(100, class, ttl)]),
            EAST,
            &[(200, class, ttl - 1)],
            &frame[14..],
        );
        // What is below is none of this router's business.
        router.assert_out(
            &under(&frame, &[(100, class, ttl), (77, 1, 9)]),
            EAST,
            &[(200, class, ttl - 1), (77, 1, 9)],
            &frame[14..],
        );
        let deep: Vec<Lse> = (0..20).map(|n| (900 + n, 2, 30)).collect();
        let (sent, out) = (
            [&[(100, class, ttl)], &deep[..]].concat(),
            [&[(200, class, ttl - 1)], &deep[..]].concat(),
        );
        router.assert_out(&under(&frame, &sent), EAST, &out, &frame[14..]);
    }
    assert!(router.drops().is_empty());
}

#[test]
fn a_label_is_swapped_for_sixteen_and_for_two_in_pipe_mode() {
    let mut router = Router::with_labels(Setup::default());
    let frame = udp(9, 0);
    let out: Vec<Lse> = (1000..1016).map(|label| (label, 3, 63)).collect();
    router.assert_out(&under(&frame, &[(101, 3, 64)]), EAST, &out, &frame[14..]);
    let out = [&out[..], &[(55, 0, 1)]].concat();
    router.assert_out(
        &under(&frame, &[(101, 3, 64), (55, 0, 1)]),
        EAST,
        &out,
        &frame[14..],
    );
    // RFC 3443 section 3.2: the swapped label loses a hop, the one pushed above it starts anew.
    router.assert_out(
        &under(&frame, &[(112, 2, 64)]),
        EAST,
        &[(204, 2, 255), (205, 2, 63)],
        &frame[14..],
    );
}

#[test]
fn a_penultimate_hop_takes_the_label_off() {
    let mut router = Router::with_labels(Setup::default());
    for (label, outer, inner, left) in [
        (102, 64, 100, 63),
        (102, 64, 9, 9),
        (102, 200, 199, 199),
        (103, 64, 100, 100),
        (103, 2, 9, 9),
    ] {
        let frame = udp(inner, 0);
        router.assert_out(
            &under(&frame, &[(label, 0, outer)]),
            EAST,
            &[],
            &packet(&frame, left, 0),
        );
        router.assert_out(
            &under(&frame, &[(label, 0, outer), (70, 0, inner)]),
            EAST,
            &[(70, 0, left)],
            &frame[14..],
        );
    }
    assert!(router.drops().is_empty());
}

#[test]
fn a_class_that_changed_is_written_and_ecn_is_kept() {
    let mut router = Router::with_labels(Setup::default());
    // DSCP 46 (expedited forwarding) is class 5.
    for (tos, class, left) in [
        (0xb9, 5, 0xb9),
        (0xbb, 3, 0x63),
        (0x03, 0, 0x03),
        (0x02, 7, 0xe2),
    ] {
        let frame = udp(64, tos);
        router.assert_out(
            &under(&frame, &[(102, class, 65)]),
            EAST,
            &[],
            &packet(&frame, 64, left),
        );
        router.assert_out(
            &under(&frame, &[(103, class, 65)]),
            EAST,
            &[],
            &packet(&frame, 64, tos),
        );
        router.assert_out(
            &under(&frame, &[(104, class, 65)]),
            EAST,
            &[],
            &packet(&frame, 63, left),
        );
        router.assert_out(
            &under(&frame, &[(102, class, 65), (70, 1, 64)]),
            EAST,
            &[(70, class, 64)],
            &frame[14..],
        );
    }
}

#[test]
fn a_label_path_ends_in_a_lookup() {
    let mut router = Router::with_labels(Setup::default());
    for (label, outer, inner, left) in [
        (104, 64, 100, 63),
        (104, 64, 9, 8),
        (104, 9, 255, 8),
        (105, 64, 100, 99),
        (105, 2, 9, 8),
        (107, 64, 64, 63),
    ] {
        let frame = udp(inner, 0);
        router.assert_out(
            &under(&frame, &[(label, 0, outer)]),
            EAST,
            &[],
            &packet(&frame, left, 0),
        );
    }
    // In a table of its own; the interface's has no such route.
    let frame = build::udp4(&through("10.99.1.1"), &[1; 40]);
    router.assert_out(
        &under(&frame, &[(113, 0, 9)]),
        SOUTH,
        &[],
        &packet(&frame, 63, 0),
    );
    // Nor has that table one for the complaint about what it does not know.
    assert!(
        router
            .send(WEST, &under(&udp(64, 0), &[(113, 0, 9)]))
            .is_empty()
    );
    assert_eq!(router.dropped(DropReason::NoRoute), 2);
    router.assert_dropped(
        &under(&udp(64, 0), &[(104, 0, 9), (77, 0, 9)]),
        DropReason::MplsNotBottom,
    );
}

#[test]
fn a_label_path_ends_at_this_router_itself() {
    let mut router = Router::with_labels(Setup::default());
    for (label, ttl) in [(104, 64), (105, 64), (104, 1), (0, 1)] {
        let echo = build::echo4(
            &Ends {
                ttl: 1,
                ..through("10.0.1.1")
            },
            8,
            1,
            1,
            &[7; 20],
        );
        let (interface, got) = router.send_one(WEST, &under(&echo, &[(label, 0, ttl)]));
        assert_eq!(
            (
                interface,
                sight::icmp(&got).kind,
                sight::icmp(&got).destination
            ),
            (WEST, 0, ip("10.0.1.2"))
        );
    }
}

#[test]
fn explicit_null_is_taken_off() {
    let mut router = Router::with_labels(Setup::default());
    let frame = udp(64, 0xb8);
    router.assert_out(
        &under(&frame, &[(0, 0, 65)]),
        EAST,
        &[],
        &packet(&frame, 63, 0xb8),
    );
    router.assert_out(
        &under(&frame, &[(0, 0, 9)]),
        EAST,
        &[],
        &packet(&frame, 8, 0xb8),
    );
    // RFC 4182: above other labels too.
    router.assert_out(
        &under(&frame, &[(0, 3, 65), (100, 2, 40)]),
        EAST,
        &[(200, 2, 39)],
        &frame[14..],
    );
    router.assert_out(
        &under(&frame, &[(2, 3, 30), (0, 0, 40), (100, 2, 40)]),
        EAST,
        &[(200, 2, 29)],
        &frame[14..],
    );
    // IPv6 is what label 2 stands for.
    router.assert_dropped(&under(&frame, &[(2, 0, 64)]), DropReason::MplsBadPayload);
}

#[test]
fn special_labels_are_what_the_standard_says() {
    let mut router = Router::with_labels(Setup::default());
    let frame = udp(64, 0);
    for label in [3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15] {
        router.assert_dropped(
            &under(&frame, &[(label, 0, 64)]),
            DropReason::MplsReservedLabel,
        );
        router.assert_dropped(
            &under(&frame, &[(label, 0, 64), (100, 0, 64)]),
            DropReason::MplsReservedLabel,
        );
    }
    router.assert_dropped(&under(&frame, &[(1, 0, 64)]), DropReason::MplsRouterAlert);
    router.assert_dropped(
        &under(&frame, &[(100, 0, 64), (1, 0, 64)])[..20],
        DropReason::MplsBadStack,
    );
    router.assert_dropped(&under(&frame, &[(16, 0, 64)]), DropReason::MplsUnknownLabel);
    router.assert_dropped(
        &under(&frame, &[(0xf_ffff, 0, 64)]),
        DropReason::MplsUnknownLabel,
    );
    router.assert_dropped(&under(&frame, &[(108, 0, 64)]), DropReason::Blackhole);
}

/// RFC 3032 section 2.1: the label beneath says where the packet goes, and the alert is put back as long as there are labels.
#[test]
fn a_router_alert_goes_on_with_its_packet() {
    let mut router = Router::with_labels(Setup::default());
    let frame = udp(64, 0);
    let alert = |class, ttl| (1, class, ttl);
    router.assert_out(
        &under(&frame, &[alert(3, 50), (100, 2, 64)]),
        EAST,
        &[alert(2, 49), (200, 2, 49)],
        &frame[14..],
    );
    router.assert_out(
        &under(&frame, &[alert(3, 64), (100, 2, 50)]),
        EAST,
        &[alert(2, 49), (200, 2, 49)],
        &frame[14..],
    );
    // Popped with a label beneath, and with none, where no alert may stand.
    router.assert_out(
        &under(&frame, &[alert(0, 50), (102, 0, 50), (30, 0, 60)]),
        EAST,
        &[alert(0, 49), (30, 0, 49)],
        &frame[14..],
    );
    router.assert_out(
        &under(&frame, &[alert(0, 50), (102, 0, 50)]),
        EAST,
        &[],
        &packet(&frame, 49, 0),
    );
    // The path ends here.
    router.assert_out(
        &under(&frame, &[alert(0, 50), (104, 0, 50)]),
        EAST,
        &[],
        &packet(&frame, 49, 0),
    );
    router.assert_out(
        &under(&frame, &[(0, 0, 60), alert(0, 50), (100, 0, 64)]),
        EAST,
        &[alert(0, 49), (200, 0, 49)],
        &frame[14..],
    );
    router.assert_dropped(
        &under(&frame, &[alert(0, 50), (999, 0, 50)]),
        DropReason::MplsUnknownLabel,
    );
    // What fits without the alert only does not fit.
    let longest = build::udp4(&through("192.168.9.9"), &vec![0x5a; 1500 - 28 - 4]);
    router.assert_out(
        &under(&longest, &[(100, 0, 64)]),
        EAST,
        &[(200, 0, 63)],
        &longest[14..],
    );
    let parts = router.send(WEST, &under(&longest, &[alert(0, 64), (100, 0, 64)]));
    let alerted = parts
        .iter()
        .filter(|(out, part)| *out == EAST && part[14..22] == stack(&[alert(0, 63), (200, 0, 63)]));
    assert_eq!(
        (parts.len(), alerted.count()),
        (2, 2),
        "cut, each part with the alert"
    );
}

#[test]
fn an_entropy_label_goes_with_the_label_above_it() {
    let mut router = Router::with_labels(Setup::default());
    let frame = udp(64, 0);
    let pair: [Lse; 2] = [(7, 0, 0), (777_777, 0, 0)];
    for above in [0, 104, 105] {
        let ttl = if above == 105 { 63 } else { 49 };
        router.assert_out(
            &under(&frame, &[&[(above, 0, 50)], &pair[..]].concat()),
            EAST,
            &[],
            &packet(&frame, ttl, 0),
        );
    }
    // A penultimate hop left it on top; it is swapped past where it lies below.
    router.assert_out(
        &under(&frame, &[(7, 0, 50), (777_777, 0, 0)]),
        EAST,
        &[],
        &packet(&frame, 49, 0),
    );
    router.assert_out(
        &under(&frame, &[&[(100, 0, 50)], &pair[..]].concat()),
        EAST,
        &[&[(200, 0, 49)], &pair[..]].concat(),
        &frame[14..],
    );
    router.assert_dropped(&under(&frame, &[(7, 0, 50)]), DropReason::MplsBadStack);
    router.assert_dropped(
        &under(&frame, &[(7, 0, 50), (3, 0, 50)]),
        DropReason::MplsBadStack,
    );
    router.assert_dropped(
        &under(
            &frame,
            &[(104, 0, 50), (7, 0, 0), (777_777, 0, 0), (80, 0, 9)],
        ),
        DropReason::MplsNotBottom,
    );
}

#[test]
fn an_entropy_label_is_pushed_where_asked() {
    let mut router = Router::with_labels(Setup::default());
    let mut seen = std::collections::BTreeSet::new();
    for port in 0..64 {
        let frame = build::udp4(
            &Ends {
                source_port: port,
                ..through("10.52.1.1")
            },
            &[1; 20],
        );
        let (_, got) = router.send_one(WEST, &frame);
        let entry =
            |place: usize| u32::from_be_bytes(got[14 + 4 * place..][..4].try_into().unwrap());
        assert_eq!(
            [entry(0), entry(1), entry(3)],
            [503 << 12 | 63, 7 << 12 | 63, 510 << 12 | 1 << 8 | 63]
        );
        assert!(
            entry(2) >> 12 >= 16 && entry(2) & 0xfff == 0,
            "no time to live, not the bottom: {:x}",
            entry(2)
        );
        assert_eq!(
            router.send_one(WEST, &frame).1,
            got,
            "the same for the same flow"
        );
        seen.insert(entry(2));
    }
    assert!(seen.len() > 60, "{seen:?}");
    let (_, got) = router.send_one(WEST, &under(&udp(64, 0), &[(111, 4, 50)]));
    assert_eq!(
        (&got[14..22], got[24..26].to_vec()),
        (
            &stack(&[(203, 4, 49), (7, 4, 49), (1, 0, 0)])[..8],
            vec![got[24], 0]
        )
    );
    assert_eq!(got[24] & 1, 1, "the entropy label is the bottom here");
}

#[test]
fn ip_packets_get_labels() {
    let mut router = Router::with_labels(Setup::default());
    for (ttl, tos) in [(64, 0), (2, 0xff), (255, 0xb8)] {
        let mut frame = build::udp4(
            &Ends {
                ttl,
                ..through("10.50.1.1")
            },
            &[1; 40],
        );
        alter(&mut frame, |header| header.tos = tos);
        router.assert_out(
            &frame,
            EAST,
            &[(500, tos >> 5, ttl - 1)],
            &packet(&frame, ttl - 1, tos),
        );
        let with_options = crate::forward::with_options(&frame, &[1; 8]);
        router.assert_out(
            &with_options,
            EAST,
            &[(500, tos >> 5, ttl - 1)],
            &packet(&with_options, ttl - 1, tos),
        );
        let mut frame = build::udp4(
            &Ends {
                ttl,
                ..through("10.51.1.1")
            },
            &[1; 40],
        );
        alter(&mut frame, |header| header.tos = tos);
        router.assert_out(
            &frame,
            EAST,
            &[(501, 5, 255), (502, 5, 255)],
            &packet(&frame, ttl - 1, tos),
        );
    }
    let expired = build::udp4(
        &Ends {
            ttl: 1,
            ..through("10.50.1.1")
        },
        &[1; 40],
    );
    let (interface, got) = router.send_one(WEST, &expired);
    assert_eq!((interface, sight::icmp(&got).kind), (WEST, 11));
}

/// An ICMP message with an extension; etherparse would forget its length field.
pub(crate) struct IcmpError {
    pub(crate) source: u32,
    destination: u32,
    pub(crate) kind: u8,
    code: u8,
    argument: u32,
}

pub(crate) fn icmp_of(frame: &[u8]) -> IcmpError {
    let (header, message) = (sight::header(frame), sight::payload(frame));
    assert_eq!(checksum::internet(message), 0, "ICMP checksum");
    IcmpError {
        source: header.source(),
        destination: header.destination(),
        kind: message[0],
        code: message[1],
        argument: u32::from_be_bytes(message[4..8].try_into().unwrap()),
    }
}

/// The RFC 4884 and 4950 part of an ICMP message: length field, version, checksum, the object's stack.
fn extension(message: &[u8]) -> (u8, Vec<u8>) {
    let extension = &message[8 + 128..];
    assert_eq!(
        (extension[0], checksum::internet(extension)),
        (0x20, 0),
        "version 2, right checksum"
    );
    let length = usize::from(u16::from_be_bytes([extension[4], extension[5]]));
    assert_eq!(
        (length, &extension[6..8]),
        (extension.len() - 4, &[1, 1][..])
    );
    (message[5], extension[8..].to_vec())
}

#[test]
fn expiry_is_reported_with_the_labels() {
    let mut router = Router::with_labels(Setup::default());
    let frame = udp(7, 0);
    // One label, and the sender has a route: straight back.
    for (label, ttl) in [(100, 1), (100, 0), (101, 1), (102, 1), (103, 0), (106, 1)] {
        let sent = [(label, 5, ttl)];
        let (interface, got) = router.send_one(WEST, &under(&frame, &sent));
        let icmp = icmp_of(&got);
        assert_eq!(
            (
                interface,
                icmp.kind,
                icmp.code,
                icmp.source,
                icmp.destination
            ),
            (WEST, 11, 0, ip("10.0.1.1"), ip("10.0.1.2"))
        );
        let (words, labels) = extension(&got[34..]);
        assert_eq!((words, labels), (32, stack(&sent)));
        assert_eq!(&got[42..42 + frame.len() - 14], &frame[14..]);
        assert!(
            got[42 + frame.len() - 14..42 + 128]
                .iter()
                .all(|&byte| byte == 0)
        );
    }
    // Two labels: along the path, with its stack and full time to live.
    let sent = [(100, 5, 1), (77, 2, 33)];
    let (interface, got) = router.send_one(WEST, &under(&frame, &sent));
    assert_eq!(
        (interface, &got[14..22]),
        (EAST, &stack(&[(200, 5, 254), (77, 2, 255)])[..])
    );
    assert_eq!(extension(&got[42..]).1, stack(&sent));
    // The path ends here: the message is looked up where the packet would have been.
    let frame = build::udp4(
        &Ends {
            source: ip("10.99.7.7"),
            ..through("10.99.1.1")
        },
        &[1; 300],
    );
    let (interface, got) = router.send_one(WEST, &under(&frame, &[(113, 0, 1)]));
    assert_eq!(
        (interface, icmp_of(&got).destination),
        (SOUTH, ip("10.99.7.7"))
    );
    assert_eq!(extension(&got[34..]).1, stack(&[(113, 0, 1)]));
    assert_eq!(router.dropped(DropReason::TtlExpired), 8);
}

#[test]
fn expiry_is_not_reported_of_what_deserves_no_answer() {
    let mut router = Router::with_labels(Setup::default());
    let error = build::echo4(
        &Ends {
            ttl: 9,
            ..through("192.168.1.1")
        },
        3,
        0,
        0,
        &[1; 40],
    );
    router.assert_dropped(&under(&error, &[(100, 0, 1)]), DropReason::TtlExpired);
    let mut later = udp(9, 0);
    alter(&mut later, |header| header.set_fragment(10, false));
    router.assert_dropped(&under(&later, &[(100, 0, 1)]), DropReason::TtlExpired);
    let ethernet = [&[0x88, 0x47][..], &stack(&[(100, 0, 1)]), &[0; 60]].concat();
    router.assert_dropped(
        &[&udp(9, 0)[..12], &ethernet].concat(),
        DropReason::TtlExpired,
    );
}

#[test]
fn too_long_a_packet_is_cut_or_complained_about() {
    for (sent, out) in [(100, 1), (101, 16), (102, 0)] {
        let mut router = Router::with_labels(Setup {
            mtu: 1000,
            ..Setup::default()
        });
        let room = 1000 - 4 * out;
        let exact = build::udp4(&through("192.168.9.9"), &vec![3; room - 28]);
        assert_eq!(
            router
                .send_one(WEST, &under(&exact, &[(sent, 0, 64)]))
                .1
                .len(),
            14 + 1000
        );
        let over = build::udp4(&through("192.168.9.9"), &vec![3; room - 27]);
        let pieces = router.send(WEST, &under(&over, &[(sent, 0, 64)]));
        assert_eq!(pieces.len(), 2, "{:?}", router.drops());
        let mut payload = Vec::new();
        for (interface, piece) in &pieces {
            assert!(
                (*interface, piece.len() <= 1014) == (EAST, true) && piece.len() > 14 + 4 * out
            );
            let header = Ipv4Header::read(&piece[14 + 4 * out..]).unwrap().0;
            assert!(checksum::ipv4_header_ok(header) && header.is_fragment());
            payload.resize(
                payload.len().max(usize::from(header.fragment_offset()) * 8),
                0,
            );
            payload.truncate(usize::from(header.fragment_offset()) * 8);
            payload.extend_from_slice(
                &piece[34 + 4 * out..14 + 4 * out + usize::from(header.total_len())],
            );
        }
        assert_eq!(payload, over[34..]);
        let mut forbidden = over;
        alter(&mut forbidden, |header| header.set_dont_fragment(true));
        let (interface, got) = router.send_one(WEST, &under(&forbidden, &[(sent, 0, 64)]));
        let icmp = icmp_of(&got);
        assert_eq!(
            (interface, icmp.kind, icmp.code, icmp.argument),
            (WEST, 3, 4, 32 << 16 | room as u32)
        );
        assert_eq!(extension(&got[34..]).1, stack(&[(sent, 0, 64)]));
    }
}

#[test]
fn what_gets_labels_is_cut_for_them() {
    let mut router = Router::with_labels(Setup {
        mtu: 1000,
        ..Setup::default()
    });
    let exact = build::udp4(&through("10.50.1.1"), &vec![3; 996 - 28]);
    assert_eq!(router.send_one(WEST, &exact).1.len(), 1014);
    let mut over = build::udp4(&through("10.50.1.1"), &vec![3; 997 - 28]);
    let pieces = router.send(WEST, &over);
    assert_eq!(pieces.len(), 2);
    for (_, piece) in pieces {
        assert!(
            piece.len() <= 1014 && piece[12..18] == [0x88, 0x47, 0, 0x1f, 0x41, 63],
            "{piece:02x?}"
        );
        assert!(Ipv4Header::read(&piece[18..]).unwrap().0.is_fragment());
    }
    alter(&mut over, |header| header.set_dont_fragment(true));
    let (_, got) = router.send_one(WEST, &over);
    assert_eq!(
        (
            sight::icmp(&got).kind,
            sight::icmp(&got).code,
            sight::icmp(&got).argument
        ),
        (3, 4, 996)
    );
    // What is no IP cannot be cut.
    let frame = [
        &udp(9, 0)[..12],
        &[0x88, 0x47],
        &stack(&[(100, 0, 9)]),
        &[0; 1000],
    ]
    .concat();
    router.assert_dropped(&frame, DropReason::FrameTooLong);
    // Nor what only looks like IP: a frame of a pseudowire, from whose first octet on all is a station's address; a packet whose
    // header is not sound. One that is sound is cut.
    let mut station = build::udp4(
        &Ends {
            ttl: 9,
            ..through("192.168.9.9")
        },
        &[3; 1000],
    );
    station[14..26].copy_from_slice(&[0x45, 0, 0x5e, 1, 2, 3, 0x02, 0, 0x5e, 4, 5, 6]);
    router.assert_dropped(
        &under(&station, &[(100, 0, 9), (77, 0, 9)]),
        DropReason::FrameTooLong,
    );
    let mut unsound = over.clone();
    alter(&mut unsound, |header| header.set_dont_fragment(false));
    assert_eq!(
        router
            .send(WEST, &under(&unsound, &[(100, 0, 9), (77, 0, 9)]))
            .len(),
        2
    );
    unsound[24] ^= 1;
    router.assert_dropped(
        &under(&unsound, &[(100, 0, 9), (77, 0, 9)]),
        DropReason::FrameTooLong,
    );
    unsound[14] = 0x65;
    router.assert_dropped(
        &under(&unsound, &[(100, 0, 9), (77, 0, 9)]),
        DropReason::FrameTooLong,
    );
}

#[test]
fn flows_are_spread_by_what_is_under_the_labels() {
    let mut router = Router::with_labels(Setup::default());
    let mut count = [0; 2];
    for port in 0..256 {
        let ends = Ends {
            source_port: port,
            ..through("10.53.1.1")
        };
        for frame in [
            build::udp4(&ends, &[1; 20]),
            under(&build::udp4(&ends, &[1; 20]), &[(106, 0, 9), (70, 0, 9)]),
        ] {
            let (interface, got) = router.send_one(WEST, &frame);
            assert_eq!(
                (interface, &got),
                (interface, &router.send_one(WEST, &frame).1),
                "a flow keeps its path"
            );
            let label = u32::from_be_bytes(got[14..18].try_into().unwrap()) >> 12;
            assert!(matches!(
                (interface, label),
                (EAST, 504 | 300) | (SOUTH, 505 | 400)
            ));
            count[usize::from(interface == SOUTH)] += 1;
        }
    }
    assert!(count.iter().all(|&count| count > 180), "{count:?}");
    // An Ethernet frame that looks like IPv4 at first sight, and a control word: the labels decide alone.
    for first in [0x45, 0x60, 0x00] {
        let ways: std::collections::BTreeSet<u32> = (0..64u8)
            .map(|n| {
                let frame = [
                    &udp(9, 0)[..12],
                    &[0x88, 0x47],
                    &stack(&[(106, 0, 9), (70, 0, 9)]),
                    &[first, n],
                    &[n; 70],
                ]
                .concat();
                router.send_one(WEST, &frame).0
            })
            .collect();
        assert_eq!(ways.len(), 1, "{first:#x}");
    }
    // An entropy label decides alone, whatever is under it.
    let mut ways = [
        std::collections::BTreeSet::new(),
        std::collections::BTreeSet::new(),
    ];
    for n in 0..64u16 {
        let frame = build::udp4(
            &Ends {
                source_port: n,
                ..through("192.168.9.9")
            },
            &[1; 20],
        );
        let one = under(&frame, &[(106, 0, 9), (7, 0, 9), (5000, 0, 0)]);
        let many = under(
            &frame,
            &[(106, 0, 9), (7, 0, 9), (5000 + u32::from(n), 0, 0)],
        );
        ways[0].insert(router.send_one(WEST, &one).0);
        ways[1].insert(router.send_one(WEST, &many).0);
    }
    assert_eq!((ways[0].len(), ways[1].len()), (1, 2));
}

#[test]
fn labelled_paths_fail_over_with_their_neighbour() {
    let mut router = Router::with_labels(Setup::default());
    let east = router
        .labels_to("10.0.2.2", LabelStack::default())
        .adjacency;
    assert!(router.nexthops.set_up(east, false) > 0);
    router.publish();
    for port in 0..16 {
        let frame = build::udp4(
            &Ends {
                source_port: port,
                ..through("10.53.1.1")
            },
            &[1; 20],
        );
        assert_eq!(router.send_one(WEST, &frame).0, SOUTH);
        assert_eq!(
            router.send_one(WEST, &under(&frame, &[(106, 0, 9)])).0,
            SOUTH
        );
    }
    router.assert_dropped(&under(&udp(9, 0), &[(100, 0, 9)]), DropReason::NoNextHop);
}

#[test]
fn a_neighbour_that_is_not_known_is_asked_and_waited_for() {
    let mut router = Router::with_labels(Setup::default());
    for (frame, out) in [
        (under(&udp(9, 0), &[(109, 2, 50)]), stack(&[(201, 2, 49)])),
        (
            build::udp4(
                &Ends {
                    ttl: 50,
                    ..through("10.54.1.1")
                },
                &[1; 20],
            ),
            stack(&[(506, 0, 49)]),
        ),
    ] {
        let asked = router
            .nexthops
            .adjacencies()
            .find(|(_, end)| end.address == address("10.0.2.9"))
            .unwrap()
            .0;
        router.set_neighbor(asked, NeighborState::Incomplete);
        router.now += 2 * SECOND;
        let (interface, question) = router.send_one(WEST, &frame);
        assert_eq!(
            (interface, &question[12..14], router.graph.held()),
            (EAST, &[8, 6][..], 1)
        );
        router
            .nexthops
            .adjacency(asked)
            .unwrap()
            .set_neighbor(NeighborState::Reachable, their_mac(2, 9).0);
        router
            .graph
            .release(weir_nodes::hold_key(EAST, address("10.0.2.9")));
        let sent = router.turn();
        assert_eq!(
            (sent.len(), &sent[0].1[14..18], router.graph.held()),
            (1, &out[..], 0)
        );
        assert!(sent[0].1.starts_with(&their_mac(2, 9).0));
    }
    router.assert_dropped(
        &under(&udp(9, 0), &[(110, 0, 9)]),
        DropReason::HostUnreachable,
    );
}

#[test]
fn labels_are_taken_only_where_enabled_and_sound() {
    let mut router = Router::with_labels(Setup::default());
    let frame = under(&udp(64, 0), &[(100, 0, 64)]);
    let mut south = frame.clone();
    south[..6].copy_from_slice(&our_mac(SOUTH).0);
    assert!(router.send(SOUTH, &south).is_empty());
    assert_eq!(router.dropped(DropReason::MplsNotEnabled), 1);
    let mut group = frame.clone();
    group[0] = 1;
    router.assert_dropped(&group, DropReason::MplsNotEnabled);
    let mut foreign = frame.clone();
    foreign[5] = 0x77;
    router.assert_dropped(&foreign, DropReason::WrongMac);
    for len in 14..18 {
        router.assert_dropped(&frame[..len], DropReason::MplsBadStack);
    }
    let endless = [&frame[..14], &[0x11; 400]].concat();
    let no_bottom: Vec<u8> = endless
        .iter()
        .enumerate()
        .map(|(n, &byte)| {
            if n >= 14 && (n - 14) % 4 == 2 {
                0
            } else {
                byte
            }
        })
        .collect();
    router.assert_dropped(&no_bottom, DropReason::MplsBadStack);
    router.assert_dropped(&no_bottom[..14 + 40], DropReason::MplsBadStack);
    // Nothing under the label: nothing to pass on without it, but a swap does not ask.
    router.assert_out(&frame[..18], EAST, &[(200, 0, 63)], &[]);
    router.assert_dropped(
        &under(&frame[..14], &[(102, 0, 9)]),
        DropReason::MplsBadPayload,
    );
    router.assert_dropped(
        &under(&frame[..14], &[(104, 0, 9)]),
        DropReason::MplsBadPayload,
    );
    for first in [0x00, 0x35, 0x54, 0x6f] {
        let mut odd = udp(64, 0);
        odd[14] = first;
        odd.truncate(14 + 30);
        router.assert_dropped(&under(&odd, &[(107, 0, 9)]), DropReason::MplsBadPayload);
    }
    // A broken IPv4 header stays broken when its time to live is written.
    let mut broken = udp(64, 0);
    broken[25] ^= 0x10;
    router.assert_dropped(&under(&broken, &[(104, 0, 9)]), DropReason::Ip4BadChecksum);
}

#[test]
fn labels_on_packets_of_several_chunks() {
    let mut router = Router::with_labels(Setup {
        mtu: 9000,
        ..Setup::default()
    });
    let frame = build::udp4(&through("192.168.9.9"), &[3; 5000]);
    for (label, out) in [(100, 4), (101, 64), (102, 0), (104, 0)] {
        let mut vector = weir_buf::Vector::default();
        vector.push(router.packet_cut(&under(&frame, &[(label, 0, 65)]), 1500));
        let sent = router.send_vector(WEST, &mut vector);
        assert_eq!(
            (sent.len(), sent[0].1.len()),
            (1, frame.len() + out),
            "{label}: {:?}",
            router.drops()
        );
        assert_eq!(sent[0].1[14 + out + 20..], frame[34..]);
    }
}

#[test]
fn noise_after_a_label_does_no_harm() {
    let mut router = Router::with_labels(Setup {
        mtu: 1000,
        ..Setup::default()
    });
    let mut random = 0x1234_5678_9abc_def0_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let start = [&our_mac(WEST).0[..], &their_mac(1, 2).0, &[0x88, 0x47]].concat();
    for _ in 0..4000 {
        let mut frame = start.clone();
        let labels = next() % 4;
        for _ in 0..labels {
            let label = (next() % 20 + if next().is_multiple_of(2) { 100 } else { 0 }) as u32;
            frame.extend(
                (label << 12 | (next() as u32 & 0xf00) | (next() % 4) as u32).to_be_bytes(),
            );
        }
        let payload = (next() % 1200) as usize;
        frame.extend((0..payload).map(|n| {
            if n == 0 {
                [0x45, 0x60, 0x00, 0x46][(next() % 4) as usize]
            } else {
                next() as u8
            }
        }));
        router.send(WEST, &frame);
    }
}

#[test]
fn where_labelled_packets_went_is_reported() {
    let mut router = Router::with_labels(Setup::default());
    for (frame, labels) in [
        (under(&udp(64, 0), &[(100, 0, 9)]), 1),
        (build::udp4(&through("10.50.1.1"), &[1; 20]), 0),
    ] {
        let sent = router.send(WEST, &frame);
        let (port, left) = &sent[0];
        let way = router.tables.way(WEST, &frame, Some((*port, &left[..54])));
        assert_eq!((way.input, way.output, *port), (WEST, EAST, EAST));
        let (came, went) = (way.labels.0.entries(), way.labels.1.entries());
        assert_eq!((came.len(), went.is_empty()), (labels, false));
        let word = |at: usize| u32::from_be_bytes(left[at..at + 4].try_into().unwrap());
        assert_eq!(went[0], word(14), "as on the wire");
        assert!(way.hop.is_some());
    }
    let frame = under(&udp(64, 0), &[(999, 0, 9)]);
    assert_eq!(router.tables.way(WEST, &frame, None).hop, None);
}

/// Behind which next hop a frame went.
fn behind((port, _): &Sent) -> IpAddr {
    if *port == EAST {
        "10.0.2.2"
    } else {
        "10.0.3.2"
    }
    .parse()
    .unwrap()
}

/// Who sampled them has their first bytes only.
#[test]
fn of_several_next_hops_the_one_that_a_sampled_packet_took_is_reported() {
    let mut router = Router::with_labels(Setup::default());
    let mut ways = std::collections::BTreeSet::new();
    for n in 0..64 {
        let ends = Ends {
            source_port: 1000 + n,
            ..through("10.53.1.1")
        };
        let deep: Vec<Lse> = (0..14)
            .map(|place| (106 + place + u32::from(n), 0, 9))
            .collect();
        let frame = build::udp4(&ends, &[1; 600]);
        let entropy = [
            (106, 0, 9),
            (7, 0, 0),
            (5000 + u32::from(n), 0, 0),
            (16, 0, 9),
        ];
        // Labels pushed; one, several and entropy labels: what chooses is among the first bytes.
        for frame in [
            frame.clone(),
            under(&frame, &[(106, 0, 9)]),
            under(&frame, &[(106, 0, 9), (70, 0, 9)]),
            under(&frame, &entropy),
        ] {
            let sent = router.send_one(WEST, &frame);
            ways.insert((frame.len(), sent.0));
            let way = router.tables.way_of(
                WEST,
                &frame[..78],
                frame.len(),
                Some((sent.0, &sent.1[..62])),
            );
            assert_eq!(way.hop.map(|hop| hop.next), Some(behind(&sent)), "{n}");
            // The whole of it says the same.
            assert_eq!(
                router
                    .tables
                    .way(WEST, &frame, Some((sent.0, &sent.1[..62])))
                    .hop,
                way.hop
            );
        }
        // They are not: nobody can know.
        let deep = under(&frame, &[&[(106, 0, 9)], &deep[..]].concat());
        let sent = router.send_one(WEST, &deep);
        assert_eq!(
            router
                .tables
                .way_of(WEST, &deep[..78], deep.len(), Some((sent.0, &sent.1[..62])))
                .hop,
            None,
            "{n}"
        );
        let whole = router
            .tables
            .way(WEST, &deep, Some((sent.0, &sent.1[..62])));
        assert_eq!(whole.hop.map(|hop| hop.next), Some(behind(&sent)));
    }
    assert_eq!(ways.len(), 8, "both ways, of each kind");
}

/// A record has what all packets of the flow have in common.
#[test]
fn of_several_next_hops_the_one_that_a_flow_took_is_reported() {
    let mut router = Router::with_labels(Setup::default());
    let mut ways = std::collections::BTreeSet::new();
    for n in 0..64_u16 {
        let destination = ["10.53.1.1", "192.168.9.9"][usize::from(n % 2)];
        let ends = Ends {
            source_port: 1000 + n,
            ..through(destination)
        };
        let frame = build::udp4(&ends, &[1; 40]);
        let flow = |sent: &Sent, top| FlowEnds {
            seen_at: WEST,
            output: sent.0,
            vlans: (0, 0),
            top,
            ends: Some((
                IpAddr::from(ends.source.to_be_bytes()),
                address(destination),
            )),
            protocol: 17,
            ports: Some((ends.source_port, ends.destination_port)),
            label: None,
        };
        for class in [0, 5] {
            let sent = router.send_one(WEST, &under(&frame, &[(106, class, 9)]));
            let icmp_of = router
                .tables
                .way_of_flow(&flow(&sent, Some(106 << 4 | u32::from(class) << 1 | 1)));
            assert_eq!(icmp_of.next, Some(behind(&sent)), "{n}");
            ways.insert((true, sent.0));
        }
        // Of packets with more labels, whose ports are not known, or that are no IPv4, nobody knows.
        let sent = router.send_one(WEST, &under(&frame, &[(106, 0, 9), (70, 0, 9)]));
        assert_eq!(
            router.tables.way_of_flow(&flow(&sent, Some(106 << 4))).next,
            None
        );
        assert_eq!(
            router
                .tables
                .way_of_flow(&FlowEnds {
                    ports: None,
                    ..flow(&sent, Some(106 << 4 | 1))
                })
                .next,
            None
        );
        let six = Some((address("2001:db8::1"), address("2001:db8::2")));
        assert_eq!(
            router
                .tables
                .way_of_flow(&FlowEnds {
                    ends: six,
                    ..flow(&sent, Some(106 << 4 | 1))
                })
                .next,
            None
        );
        if n % 2 == 0 {
            let sent = router.send_one(WEST, &frame);
            assert_eq!(
                router.tables.way_of_flow(&flow(&sent, None)).next,
                Some(behind(&sent)),
                "{n}"
            );
            ways.insert((false, sent.0));
        }
    }
    assert_eq!(ways.len(), 4, "both ways, by label and by address");
}
