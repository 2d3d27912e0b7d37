//! Pseudowires: frames into labelled packets and out of them, byte by byte after RFC 4448, RFC 4385 and RFC 3032.
//!
//! ```text
//! left ◄► RAW    label 600 here; 700 there, by 10.0.2.2 (east); control word
//!      ◄► TAGGED label 601 here; 701 there under 100, by 10.0.2.2; VLAN 7, no control word
//! ROUTED         label 602 here; 702 there, by 10.0.2.2 or 10.0.3.2; 10.0.30.1/24
//! ```

use std::sync::Arc;

use weir_buf::Vector;
use weir_fib::{Adjacency, Group, LabelEntry, LabelStack, NeighborState, Path, Payload, TtlMode};
use weir_graph::DropReason;
use weir_port::interface::{Input, Interface, InterfaceCounters, Kind, Output};
use weir_port::pseudowire::Pseudowire;
use weir_port::sub_interface::SubInterface;
use weir_wire::{MacAddr, build};

use crate::bond::Reached;
use crate::mpls::stack;
use crate::rig::*;
use crate::vlan::{Q, crammed, dot1q, tagged};

pub(crate) const RAW: u32 = 30;
pub(crate) const TAGGED: u32 = 31;
const ROUTED: u32 = 32;
const CONTROL_WORD: [u8; 4] = [0; 4];

impl Router {
    /// The group of paths to these neighbours, which push these labels.
    fn pushing(&mut self, neighbors: &[&str], labels: LabelStack) -> u32 {
        let path = |neighbor: &&str| {
            let is_it =
                |end: &Adjacency| end.address == address(neighbor) && end.labelled().is_none();
            let number = self
                .nexthops
                .adjacencies()
                .find(|(_, end)| is_it(end))
                .unwrap()
                .0;
            Path {
                labels: labels.clone(),
                ..Path::to(number)
            }
        };
        let paths: Vec<Path> = neighbors.iter().map(path).collect();
        self.nexthops.acquire(Group::new(paths).unwrap()).unwrap()
    }

    fn add_pseudowire(&mut self, index: u32, label: u32, input: Input, pseudowire: Pseudowire) {
        let end = self.nexthops.add_adjacency(Adjacency::pseudowire(index));
        let group = self
            .nexthops
            .acquire(Group::new([Path::to(end)]).unwrap())
            .unwrap();
        self.tables
            .lfib
            .set(
                label,
                LabelEntry::new(group, TtlMode::Pipe, Payload::Either),
            )
            .unwrap();
        let counters = Arc::new(InterfaceCounters::new(1));
        self.install(Interface {
            input,
            output: Output::Pseudowire,
            pseudowire: Some(pseudowire),
            can_send: true,
            ..Interface::at_rest(
                index,
                format!("pw{index}").into(),
                Kind::Pseudowire,
                our_mac(index),
                counters,
            )
        });
    }

    /// The router of this file's head; what is cross-connected with `left` is `RAW`.
    fn with_pseudowires(setup: Setup) -> Router {
        let mut router = Router::new(setup);
        add(&mut router);
        router
    }
}

fn pipe(labels: &[u32]) -> LabelStack {
    LabelStack {
        mode: TtlMode::Pipe,
        ..LabelStack::of(labels)
    }
}

pub(crate) fn add(router: &mut Router) {
    router.change(WEST, |west| west.mpls = true);
    let raw = router.pushing(&["10.0.2.2"], pipe(&[700]));
    router.add_pseudowire(
        RAW,
        600,
        Input::CrossConnect(LEFT),
        Pseudowire::new(raw, true, None),
    );
    let tagged = router.pushing(&["10.0.2.2"], pipe(&[100, 701]));
    router.add_pseudowire(
        TAGGED,
        601,
        Input::CrossConnect(LEFT),
        Pseudowire::new(tagged, false, Some(7)),
    );
    let routed = router.pushing(&["10.0.2.2", "10.0.3.2"], pipe(&[702]));
    router.add_pseudowire(
        ROUTED,
        602,
        Input::Routed,
        Pseudowire::new(routed, true, None),
    );
    router.change(ROUTED, |it| it.addresses = [(ip("10.0.30.1"), 24)].into());
    router.change(LEFT, |left| left.input = Input::CrossConnect(RAW));
    router.publish();
}

/// A customer's frame, which looks like nothing else.
pub(crate) fn frame() -> Vec<u8> {
    let stations = build::Ends {
        source_mac: MacAddr([2, 9, 9, 9, 9, 1]),
        destination_mac: MacAddr([2, 9, 9, 9, 9, 2]),
        ..through("10.0.2.2")
    };
    build::udp4(&stations, &[0x5a; 30])
}

/// What goes to a neighbour of east.
fn to_east(entries: &[(u32, u8, u8)], rest: &[&[u8]]) -> Vec<u8> {
    [
        &their_mac(2, 2).0[..],
        &our_mac(EAST).0,
        &[0x88, 0x47],
        &stack(entries),
        &rest.concat(),
    ]
    .concat()
}

/// What comes from a neighbour of west.
pub(crate) fn from_west(entries: &[(u32, u8, u8)], rest: &[&[u8]]) -> Vec<u8> {
    [
        &our_mac(WEST).0[..],
        &their_mac(1, 2).0,
        &[0x88, 0x47],
        &stack(entries),
        &rest.concat(),
    ]
    .concat()
}

fn packets(router: &Router, index: u32) -> (u64, u64) {
    let counters = &router.interface(index).counters;
    (counters.rx().packets, counters.tx().packets)
}

#[test]
fn raw_with_a_control_word_in_both_directions() {
    let mut router = Router::with_pseudowires(Setup::default());
    for _ in 0..2 {
        let sent = router.send_one(LEFT, &frame());
        assert_eq!(
            sent,
            (EAST, to_east(&[(700, 0, 255)], &[&CONTROL_WORD, &frame()]))
        );
    }
    // Reserved bits, length and sequence number are not looked at.
    for word in [[0, 0, 0, 0], [0x0f, 0xff, 0xff, 0xff]] {
        let sent = router.send_one(WEST, &from_west(&[(600, 3, 2)], &[&word, &frame()]));
        assert_eq!(sent, (LEFT, frame()));
    }
    assert_eq!(packets(&router, RAW), (2, 2));
    let bytes = router.interface(RAW).counters.tx().bytes;
    assert_eq!(
        bytes,
        2 * frame().len() as u64,
        "frames are counted without labels"
    );
}

#[test]
fn ends_of_label_paths_are_distinguished_within_a_vector() {
    let router = || {
        let mut router = Router::with_labels(Setup::default());
        add(&mut router);
        router
    };
    let packet = build::udp4(&through("10.0.2.2"), &[0x5a; 30]);
    let with_tag = tagged(&frame(), &[(Q, 7)]);
    let kinds = [
        from_west(&[(600, 0, 9)], &[&CONTROL_WORD, &frame()]),
        from_west(&[(600, 0, 1)], &[&CONTROL_WORD, &frame()]),
        from_west(&[(601, 0, 9)], &[&with_tag]),
        from_west(&[(104, 0, 9)], &[&packet[14..]]),
        from_west(&[(104, 0, 9)], &[&CONTROL_WORD, &frame()]),
        from_west(&[(100, 0, 9)], &[&packet[14..]]),
        from_west(&[(99, 0, 9)], &[&packet[14..]]),
    ];
    let frames = [0, 0, 3, 0, 3, 3, 5, 3, 0, 1, 0, 2, 0, 5, 0, 4, 3, 6, 0]
        .map(|kind: usize| kinds[kind].clone());
    let mut together = router().send_all(WEST, &frames);
    let mut alone: Vec<Sent> = frames
        .iter()
        .flat_map(|frame| router().send(WEST, frame))
        .collect();
    together.sort();
    alone.sort();
    assert_eq!(together, alone);
    assert_eq!(
        alone.iter().filter(|sent| sent.0 == LEFT).count(),
        9,
        "eight frames and one without its tag"
    );
}

#[test]
fn frames_keep_their_tags_and_their_priority_becomes_the_class() {
    let mut router = Router::with_pseudowires(Setup::default());
    let customers = tagged(&frame(), &[(Q, 9)]);
    let sent = router.send_one(LEFT, &customers);
    assert_eq!(
        sent,
        (
            EAST,
            to_east(&[(700, 5, 255)], &[&CONTROL_WORD, &customers])
        )
    );
    assert_eq!(
        router.send_one(
            WEST,
            &from_west(&[(600, 0, 9)], &[&CONTROL_WORD, &customers])
        ),
        (LEFT, customers)
    );
}

/// The tag of a sub-interface comes off, and its priority stays in the labels.
#[test]
fn the_priority_of_a_sub_interface_becomes_the_class() {
    let mut router = Router::default();
    router.add_sub_interfaces(&[(SubInterface::new(LEFT, dot1q(9)), Input::CrossConnect(RAW))]);
    add(&mut router);
    let customers = tagged(&frame(), &[(Q, 9)]);
    let mut plain = customers.clone();
    plain[14] &= 0x1f;
    for (sent, class) in [(plain, 0), (customers, 5)] {
        assert_eq!(
            router.send_one(LEFT, &sent),
            (
                EAST,
                to_east(&[(700, class, 255)], &[&CONTROL_WORD, &frame()])
            )
        );
    }
}

#[test]
fn tagged_mode_puts_a_tag_on_and_takes_one_off() {
    let mut router = Router::with_pseudowires(Setup::default());
    router.change(LEFT, |left| left.input = Input::CrossConnect(TAGGED));
    let with_tag = [&frame()[..12], &[0x81, 0, 0, 7], &frame()[12..]].concat();
    assert_eq!(
        router.send_one(LEFT, &frame()),
        (EAST, to_east(&[(100, 0, 255), (701, 0, 255)], &[&with_tag]))
    );
    for vlan in [7, 8] {
        let other = tagged(&frame(), &[(Q, vlan)]);
        assert_eq!(
            router.send_one(WEST, &from_west(&[(601, 0, 9)], &[&other])),
            (LEFT, frame()),
            "whichever tag it is"
        );
    }
    assert!(
        router
            .send(WEST, &from_west(&[(601, 0, 9)], &[&frame()]))
            .is_empty()
    );
    assert_eq!(
        router.drops(),
        [("pseudowire-input", DropReason::VlanMissing, TAGGED, 1)]
    );
}

#[test]
fn entropy_labels_are_pushed_and_taken_off() {
    let mut router = Router::with_pseudowires(Setup::default());
    let group = router.pushing(
        &["10.0.2.2"],
        LabelStack {
            entropy: true,
            ..pipe(&[100, 700])
        },
    );
    router.change(RAW, |it| {
        it.pseudowire = Some(Pseudowire::new(group, true, None))
    });
    router.publish();
    let (_, sent) = router.send_one(LEFT, &frame());
    let entropy = u32::from_be_bytes(sent[22..26].try_into().unwrap());
    assert!(
        entropy >> 12 >= 16 && entropy & 0x1ff == 0,
        "RFC 6790 section 4.2: no special label, time to live 0: {entropy:08x}"
    );
    let wanted = to_east(
        &[
            (100, 0, 255),
            (7, 0, 255),
            (entropy >> 12, 0, 0),
            (700, 0, 255),
        ],
        &[&CONTROL_WORD, &frame()],
    );
    assert_eq!(sent, wanted);
    let below = from_west(
        &[(600, 0, 9), (7, 0, 9), (77_777, 0, 0)],
        &[&CONTROL_WORD, &frame()],
    );
    assert_eq!(router.send_one(WEST, &below), (LEFT, frame()));
    let other = from_west(&[(600, 0, 9), (100, 0, 9)], &[&CONTROL_WORD, &frame()]);
    assert!(router.send(WEST, &other).is_empty());
    assert_eq!(router.dropped(DropReason::MplsNotBottom), 1);
}

#[test]
fn frames_wait_for_a_neighbour_as_they_came() {
    let mut router = Router::with_pseudowires(Setup::default());
    let group = router.pushing(&["10.0.2.9"], pipe(&[703]));
    router.change(RAW, |it| {
        it.pseudowire = Some(Pseudowire::new(group, true, Some(7)))
    });
    router.publish();
    let asked = router.send(LEFT, &frame());
    assert!(
        matches!(&asked[..], [(EAST, arp)] if arp[12..14] == [8, 6]),
        "a question for the neighbour: {asked:?}"
    );
    let neighbor = router.adjacency_of("10.0.2.9");
    router
        .nexthops
        .adjacency(neighbor)
        .unwrap()
        .set_neighbor(NeighborState::Reachable, their_mac(2, 9).0);
    router.publish();
    router
        .graph
        .release(weir_nodes::hold_key(EAST, address("10.0.2.9")));
    let with_tag = [&frame()[..12], &[0x81, 0, 0, 7], &frame()[12..]].concat();
    let wanted = [
        &their_mac(2, 9).0[..],
        &our_mac(EAST).0,
        &[0x88, 0x47],
        &stack(&[(703, 0, 255)]),
        &CONTROL_WORD,
        &with_tag,
    ]
    .concat();
    assert_eq!(router.turn(), [(EAST, wanted)]);
}

#[test]
fn flows_share_the_paths_and_each_stays_on_one() {
    let mut router = Router::with_pseudowires(Setup::default());
    router.change(LEFT, |left| left.input = Input::CrossConnect(ROUTED));
    let of_port = |port| {
        build::udp4(
            &build::Ends {
                source_port: port,
                ..through("10.0.2.2")
            },
            &[1; 20],
        )
    };
    let (mut east, mut south) = (0, 0);
    for port in 1000..1064 {
        let (first, _) = router.send_one(LEFT, &of_port(port));
        assert_eq!(router.send_one(LEFT, &of_port(port)).0, first);
        if first == EAST { east += 1 } else { south += 1 }
    }
    assert!(east > 16 && south > 16, "{east} and {south}");
}

#[test]
fn a_routed_pseudowire_answers_and_forwards() {
    let mut router = Router::with_pseudowires(Setup::default());
    let ends = build::Ends {
        destination_mac: our_mac(ROUTED),
        source: ip("10.0.30.2"),
        ..through("10.0.3.2")
    };
    let (out, sent) = router.send_one(
        WEST,
        &from_west(
            &[(602, 0, 9)],
            &[&CONTROL_WORD, &build::udp4(&ends, &[1; 20])],
        ),
    );
    assert_eq!((out, &sent[..6]), (SOUTH, &their_mac(3, 2).0[..]));
    assert_eq!(packets(&router, ROUTED), (1, 0));
}

#[test]
fn what_is_too_long_with_its_labels_is_dropped_and_one_byte_less_is_not() {
    let mut router = Router::with_pseudowires(Setup::default());
    // 14 and 4 and 4 bytes stand before the frame; the link takes 1514.
    for (length, taken) in [(1492, true), (1493, false)] {
        let mut long = frame();
        long.resize(length, 0);
        assert_eq!(
            router.send(LEFT, &long).len(),
            usize::from(taken),
            "{length}"
        );
    }
    assert_eq!(router.dropped(DropReason::FrameTooLong), 1);
}

#[test]
fn nothing_hostile_gets_through_or_breaks_anything() {
    let mut router = Router::with_pseudowires(Setup::default());
    let mut sent = 0;
    for label in [600, 601, 602] {
        let whole = from_west(
            &[(label, 0, 9)],
            &[&CONTROL_WORD, &tagged(&frame(), &[(Q, 7), (Q, 8)])],
        );
        for length in 0..whole.len() {
            sent += router.send(WEST, &whole[..length]).len();
        }
        for place in 14..whole.len().min(60) {
            for value in [0x00, 0x0f, 0x10, 0x45, 0x60, 0x81, 0xff] {
                let mut odd = whole.clone();
                odd[place] = value;
                sent += router.send(WEST, &odd).len();
            }
        }
    }
    // In chunks that end anywhere.
    let whole = from_west(&[(600, 0, 9)], &[&CONTROL_WORD, &frame()]);
    for most in 2..60 {
        let mut vector = Vector::default();
        let packet = router.packet_cut(&whole, most);
        vector.push(packet);
        sent += router.send_vector(WEST, &mut vector).len();
    }
    assert!(sent > 0, "some of it was good");
}

/// Puts a packet in front of pseudowire-output, on its way to this interface.
fn leave(router: &mut Router, packet: weir_buf::Pkt, index: u32) {
    let mut packet = packet;
    packet.set_interface(WEST);
    packet.set_aux(index);
    let entry = router.graph.find("pseudowire-output").unwrap();
    router.graph.inject(entry, packet);
    router.turn();
}

/// Sends a frame by a pseudowire whose path leads elsewhere.
fn by(router: &mut Router, neighbor: &str, frames: usize) {
    add(router);
    let group = router.pushing(&[neighbor], pipe(&[703]));
    router.change(RAW, |it| {
        it.pseudowire = Some(Pseudowire::new(group, true, None))
    });
    router.publish();
    router.send_all(LEFT, &vec![frame(); frames]);
}

/// Frames come out of a pseudowire with this input.
fn enter(router: &mut Router, label: u32, change: impl FnOnce(&mut Interface), rest: &[&[u8]]) {
    add(router);
    router.change(label - 600 + RAW, change);
    router.send(WEST, &from_west(&[(label, 0, 9)], rest));
}

/// A frame with tags to the router itself, by the routed pseudowire.
fn to_us(tags: &[(u16, u16)]) -> Vec<u8> {
    tagged(
        &build::udp4(
            &build::Ends {
                destination_mac: our_mac(ROUTED),
                ..through("10.0.2.2")
            },
            &[1; 20],
        ),
        tags,
    )
}

/// Every reason that the nodes of pseudowires declare, and how it is reached.
pub(crate) fn reasons() -> Vec<Reached> {
    use DropReason::*;
    const SOMEBODY: [u8; 60] = [2; 60];
    vec![
        ("pseudowire-input", InterfaceDown, |router| {
            enter(
                router,
                600,
                |it| it.input = Input::Closed,
                &[&CONTROL_WORD, &frame()],
            )
        }),
        ("pseudowire-input", NotRouted, |router| {
            enter(
                router,
                600,
                |it| it.input = Input::Unused,
                &[&CONTROL_WORD, &frame()],
            )
        }),
        ("pseudowire-input", TooShort, |router| {
            enter(router, 600, |_| {}, &[&CONTROL_WORD, &frame()[..13]])
        }),
        ("pseudowire-input", FrameTooLong, |router| {
            enter(
                router,
                600,
                |it| it.input = Input::CrossConnect(RIGHT),
                &[&CONTROL_WORD, &[2; 1100]],
            );
        }),
        ("pseudowire-input", WrongMac, |router| {
            enter(router, 602, |_| {}, &[&CONTROL_WORD, &SOMEBODY])
        }),
        ("pseudowire-input", UnknownEthertype, |router| {
            enter(
                router,
                602,
                |_| {},
                &[&CONTROL_WORD, &our_mac(ROUTED).0, &SOMEBODY[..54]],
            );
        }),
        ("pseudowire-input", VlanUnknown, |router| {
            enter(router, 602, |_| {}, &[&CONTROL_WORD, &to_us(&[(Q, 7)])])
        }),
        ("pseudowire-input", VlanMissing, |router| {
            enter(router, 601, |_| {}, &[&frame()])
        }),
        ("pseudowire-input", VlanTruncated, |router| {
            enter(router, 601, |_| {}, &[&tagged(&frame(), &[(Q, 7)])[..17]])
        }),
        ("pseudowire-input", PseudowireChannel, |router| {
            enter(router, 600, |_| {}, &[&[0x10, 0, 0, 0x21], &frame()])
        }),
        ("pseudowire-input", PseudowireControlWord, |router| {
            enter(router, 600, |_| {}, &[&[0x45, 0, 0, 60], &frame()])
        }),
        ("mpls-lookup", TtlExpired, |router| {
            add(router);
            router.send(WEST, &from_west(&[(600, 0, 1)], &[&CONTROL_WORD, &frame()]));
        }),
        ("pseudowire-output", TxDown, |router| {
            add(router);
            router.change(RAW, |it| it.can_send = false);
            router.send(LEFT, &frame());
        }),
        ("pseudowire-output", TooShort, |router| {
            add(router);
            let packet = router.packet(&frame()[..13]);
            leave(router, packet, RAW);
        }),
        ("pseudowire-output", FrameTooLong, |router| {
            add(router);
            router.send(LEFT, &[2; 1400]);
        }),
        ("pseudowire-output", NoHeadroom, |router| {
            add(router);
            let packet = crammed(router, &frame());
            leave(router, packet, RAW);
        }),
        ("pseudowire-output", Blackhole, |router| {
            add(router);
            let hole = router.nexthops.add_adjacency(Adjacency::blackhole());
            let group = router
                .nexthops
                .acquire(Group::new([Path::to(hole)]).unwrap())
                .unwrap();
            router.change(RAW, |it| {
                it.pseudowire = Some(Pseudowire::new(group, true, None))
            });
            router.publish();
            router.send(LEFT, &frame());
        }),
        ("pseudowire-output", NoRoute, |router| {
            add(router);
            let east = router.adjacency_of("10.0.2.2");
            router.nexthops.set_up(east, false);
            router.publish();
            router.send(LEFT, &frame());
        }),
        ("pseudowire-output", HostUnreachable, |router| {
            by(router, "10.0.2.10", 1)
        }),
        ("pseudowire-output", HoldFull, |router| {
            by(router, "10.0.2.9", 2)
        }),
        ("pseudowire-output", Stopped, |router| {
            by(router, "10.0.2.9", 1);
            router.give_up(Stopped);
        }),
    ]
}
