//! mpls-lookup: the top label to its group, the group to a path; labels come off, change, or come on.
//!
//! The usual case, one label swapped for another towards a neighbour that is known, is done in the same pass as the
//! lookup. All else is settled packet by packet: several labels out, a choice among paths, the last label taken
//! off for a neighbour (penultimate hop popping), for another lookup (deaggregation), or for a pseudowire, and the
//! labels with a meaning of their own.
//!
//! What cannot go on as it is goes elsewhere unchanged: at the end of its time to live or too long to be
//! complained about, too long to be cut, for a neighbour whose address is not known yet to be held.

use std::hint::cold_path;

use weir_buf::{Flags, Pkt};
use weir_fib::{
    Adjacency, AdjacencyKind, LabelEntry, Labelled, NeighborState, NexthopView, Payload, SmallFib4,
};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::mpls::{Guess, Label, guess_first};
use weir_wire::{EtherType, Ipv4Header, Ipv6Header, checksum};

use super::error::{FRAGMENTATION_NEEDED, TTL_EXPIRED, complain};
use super::steps::{MplsSteps, SHORTEST, payload_of, uniform_payload};
use super::{
    BOTTOM, CLASS_SHIFT, ENTRY, Fields, LABEL_SHIFT, TTL, entropy, flow_hash_mpls, is_ordinary,
    stack_of, take_out, top_of,
};
use super::{write_entries, write_ethernet};
use crate::frame::{ETHERNET, Egress};
use crate::{Tables, ip4_rewrite, ip4_steps, vector_loops};

pub(crate) struct MplsLookup;

const IP4_INPUT: Next = Next(0);
const IP4_LOOKUP: Next = Next(1);
const MPLS_GLEAN: Next = Next(2);
const MPLS_ERROR: Next = Next(3);
const MPLS_FRAGMENT: Next = Next(4);
const IP6_INPUT: Next = Next(5);
const PSEUDOWIRE_INPUT: Next = Next(6);

impl Node<Tables> for MplsLookup {
    const SPEC: NodeSpec = NodeSpec {
        name: "mpls-lookup",
        about: "Finds what the top label stands for; swaps, pushes and takes labels off.",
        nexts: &[
            "ip4-input",
            "ip4-lookup",
            "mpls-glean",
            "mpls-error",
            "mpls-fragment",
            "ip6-input",
            "pseudowire-input",
        ],
        reasons: &[
            DropReason::MplsBadStack,
            DropReason::MplsReservedLabel,
            DropReason::MplsRouterAlert,
            DropReason::MplsUnknownLabel,
            DropReason::MplsNotBottom,
            DropReason::MplsBadPayload,
            DropReason::Blackhole,
            DropReason::NoNextHop,
            DropReason::HostUnreachable,
            DropReason::FrameTooLong,
            DropReason::TtlExpired,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        let (tables, nexthops) = (cx.world, cx.world.nexthops.view());
        let mut steps = MplsSteps::of_labels(tables);
        let fib = if cx.is_one_step() {
            None
        } else {
            tables.fib4.first().and_then(|fib| fib.small())
        };
        verdicts.fill(Verdict::OUT);
        let (mut exits, mut looked_up) = (Egress::default(), 0);
        vector_loops::each_packet(packets, |place, packet| {
            if !packet.is_chained()
                && let Some(interface) = steps.forward(packet)
            {
                return exits.note(interface);
            }
            cold_path();
            match settle(tables, packet) {
                Verdict::OUT => exits.note(packet.aux()),
                // What is plain under its last label leaves from here too, as it would from ip4-lookup.
                READY
                    if let Some(interface) = fib.and_then(|fib| forward(fib, nexthops, packet)) =>
                {
                    looked_up += 1;
                    exits.note(interface);
                }
                elsewhere => {
                    exits.incomplete = true;
                    verdicts[place] = elsewhere;
                }
            }
        });
        cx.did_for(IP4_LOOKUP, looked_up);
        exits.outcome()
    }
}

/// A packet whose last label is off and that is plain IPv4.
const READY: Verdict = Verdict::to(IP4_LOOKUP);

/// Looks such a packet up in the first table, if that is its own, and sends it to the group's only neighbour.
#[inline(always)]
fn forward(fib: SmallFib4<'_>, nexthops: NexthopView<'_>, packet: &mut Pkt) -> Option<u32> {
    if packet.flags().any(Flags::TABLED) {
        return None;
    }
    ip4_rewrite::plain(nexthops.only_neighbor(fib.lookup(packet.aux()))?, packet)
}

/// What is known of the entry that is on top.
#[derive(Clone, Copy)]
struct Top {
    word: u32,
    /// Bytes of entries before it, which are off already.
    off: usize,
    /// Whether one of these is a router alert, which goes on with the packet as long as that has labels.
    alert: bool,
}

impl Top {
    fn ttl(self) -> u8 {
        (self.word & TTL) as u8
    }

    fn class(self) -> u8 {
        (self.word >> CLASS_SHIFT) as u8 & 7
    }

    fn is_bottom(self) -> bool {
        self.word & BOTTOM != 0
    }
}

/// All that is not the usual case.
#[inline(never)]
fn settle(tables: &Tables, packet: &mut Pkt) -> Verdict {
    packet.clear_flags(Flags::PLAIN_IP4);
    let Some(word) = top_of(packet) else {
        return Verdict::drop(DropReason::MplsBadStack);
    };
    let mut top = Top {
        word,
        off: 0,
        alert: false,
    };
    loop {
        let label = top.word >> LABEL_SHIFT;
        if is_ordinary(label) {
            return by_table(tables, packet, top, tables.lfib.lookup(label));
        }
        let payload = match Label(label) {
            Label::EXPLICIT_NULL4 => Payload::Ip4,
            Label::EXPLICIT_NULL6 => Payload::Ip6,
            // RFC 6790 section 4.2: indicator and entropy label go with the label above them, or without one when a
            // penultimate hop took that off.
            Label::ENTROPY_INDICATOR => match below(packet, top) {
                Some(entropy) if is_ordinary(entropy.word >> LABEL_SHIFT) => {
                    top = Top {
                        word: top.word & !BOTTOM | entropy.word & BOTTOM,
                        ..entropy
                    };
                    Payload::Either
                }
                _ => return Verdict::drop(DropReason::MplsBadStack),
            },
            // RFC 3032 section 2.1: for a module of this router, of which there is none; the label beneath says where it goes. It is
            // never the last one.
            Label::ROUTER_ALERT if !top.is_bottom() => {
                top.alert = true;
                Payload::Either
            }
            Label::ROUTER_ALERT => return Verdict::drop(DropReason::MplsRouterAlert),
            // RFC 3032: implicit null is never on the wire. RFC 7274: what is not assigned is dropped, and so is
            // what this router does not speak: channels, alerts, extensions.
            _ => return Verdict::drop(DropReason::MplsReservedLabel),
        };
        if top.is_bottom() {
            let table = tables
                .interface(packet.interface())
                .map_or(0, |interface| interface.table);
            let end = Ending {
                table,
                payload,
                pipe: false,
                class: false,
            };
            return deaggregate(tables, packet, top, end);
        }
        if top.ttl() <= 1 {
            return expired(packet);
        }
        // RFC 4182: an explicit null may stand above other labels, as an alert does.
        let Some(next) = below(packet, top) else {
            return Verdict::drop(DropReason::MplsBadStack);
        };
        // An indicator has the time to live of the label above it.
        let own = if next.word >> LABEL_SHIFT == Label::ENTROPY_INDICATOR.0 {
            TTL
        } else {
            next.word & TTL
        };
        top = Top {
            word: next.word & !TTL | own.min(top.word & TTL),
            ..next
        };
    }
}

/// The entry below.
fn below(packet: &Pkt, top: Top) -> Option<Top> {
    let off = top.off + ENTRY;
    let word = packet
        .data()
        .get(ETHERNET + off..)?
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))?;
    (!top.is_bottom()).then_some(Top {
        word,
        off,
        alert: top.alert,
    })
}

/// The top label is one of the table's, or of nobody's.
fn by_table(tables: &Tables, packet: &mut Pkt, top: Top, entry: LabelEntry) -> Verdict {
    if !entry.is_set() {
        return Verdict::drop(DropReason::MplsUnknownLabel);
    }
    let number = tables.nexthops.choose(entry.group(), || hash(packet));
    let Some(adjacency) = tables.nexthops.adjacency(number) else {
        return Verdict::drop(DropReason::NoNextHop);
    };
    match adjacency.kind {
        AdjacencyKind::Labelled | AdjacencyKind::Neighbor => {
            pass_on(packet, top, entry, number, adjacency)
        }
        AdjacencyKind::Lookup => {
            let end = Ending {
                table: adjacency.interface,
                payload: entry.payload(),
                pipe: entry.is_pipe(),
                class: true,
            };
            deaggregate(tables, packet, top, end)
        }
        AdjacencyKind::Blackhole => Verdict::drop(DropReason::Blackhole),
        AdjacencyKind::Pseudowire => out_of_pseudowire(packet, top, adjacency.interface),
        AdjacencyKind::Drop
        | AdjacencyKind::Local
        | AdjacencyKind::Glean
        | AdjacencyKind::Unreachable
        | AdjacencyKind::Prohibit => Verdict::drop(DropReason::NoNextHop),
    }
}

/// The flow's hash, computed once.
fn hash(packet: &mut Pkt) -> u32 {
    if packet.flags().any(Flags::HASHED) {
        return packet.meta().flow_hash;
    }
    let hash = stack_of(packet).map_or(0, |stack| flow_hash_mpls(&stack));
    packet.meta_mut().flow_hash = hash;
    packet.set_flags(Flags::HASHED);
    hash
}

#[cold]
fn expired(packet: &mut Pkt) -> Verdict {
    complain(packet, TTL_EXPIRED, 0);
    Verdict::to(MPLS_ERROR)
}

/// To a neighbour, with labels in the place of the top one or without.
fn pass_on(
    packet: &mut Pkt,
    top: Top,
    entry: LabelEntry,
    number: u32,
    adjacency: &Adjacency,
) -> Verdict {
    if top.ttl() <= 1 {
        return expired(packet);
    }
    let end = adjacency.end();
    if end.rewrite().is_none() {
        if end.state() == NeighborState::Failed {
            return Verdict::drop(DropReason::HostUnreachable);
        }
        packet.set_aux(number);
        return Verdict::to(MPLS_GLEAN);
    }
    let gone = top.off + ENTRY;
    let alerts = top.alert && (adjacency.labelled().is_some() || !top.is_bottom());
    let pushed = adjacency.labelled().map_or(0, Labelled::bytes) + if alerts { ENTRY } else { 0 };
    let there = packet.total_len().saturating_sub(ETHERNET + gone);
    if there + pushed > end.mtu as usize {
        return too_long(packet, (end.mtu as usize).saturating_sub(pushed), gone);
    }
    let verdict = match adjacency.labelled() {
        Some(labelled) => swap_stack(packet, top, labelled),
        None => pop(packet, top, entry, end),
    };
    match verdict {
        Verdict::OUT if alerts => alert_again(packet, top),
        verdict => verdict,
    }
}

/// Puts the router alert back on top of what leaves.
#[cold]
fn alert_again(packet: &mut Pkt, top: Top) -> Verdict {
    let entry = Label::ROUTER_ALERT.0 << LABEL_SHIFT
        | u32::from(top.class()) << CLASS_SHIFT
        | u32::from(top.ttl() - 1);
    let Some(frame) = packet
        .push_front(ENTRY)
        .and_then(|frame| frame.first_chunk_mut::<SHORTEST>())
    else {
        return Verdict::drop(DropReason::FrameTooLong);
    };
    frame.copy_within(ENTRY.., 0);
    frame[ETHERNET..].copy_from_slice(&entry.to_be_bytes());
    Verdict::OUT
}

/// Longer than the link takes. `room` is what it takes of what lies behind the first `gone` bytes of labels.
#[cold]
fn too_long(packet: &mut Pkt, room: usize, gone: usize) -> Verdict {
    let Some(stack) = stack_of(packet) else {
        return Verdict::drop(DropReason::FrameTooLong);
    };
    let room = room.saturating_sub(stack.bytes().len().saturating_sub(gone)) as u32;
    // A frame of a pseudowire can begin like IP (RFC 4928): it is cut only when it is IP beyond doubt.
    match guess_first(stack.payload, stack.beyond) {
        Guess::Ipv4(header)
            if stack
                .payload
                .get(..header.header_len())
                .is_some_and(|header| checksum::internet(header) == 0) =>
        {
            if header.dont_fragment() {
                complain(packet, FRAGMENTATION_NEEDED, room);
                return Verdict::to(MPLS_ERROR);
            }
            packet.meta_mut().argument = room;
            Verdict::to(MPLS_FRAGMENT)
        }
        Guess::Ipv6(_) => {
            complain(packet, FRAGMENTATION_NEEDED, room);
            Verdict::to(MPLS_ERROR)
        }
        _ => Verdict::drop(DropReason::FrameTooLong),
    }
}

/// One label or several in the place of the top one.
fn swap_stack(packet: &mut Pkt, top: Top, labelled: &Labelled) -> Verdict {
    let (gone, pushed) = (top.off + ENTRY, labelled.bytes());
    let fields = Fields {
        ttl: top.ttl() - 1,
        class: top.class(),
        bottom: top.is_bottom(),
        swapped: true,
        entropy: if labelled.entropy().is_some() {
            entropy(hash(packet))
        } else {
            0
        },
    };
    let moved = if pushed >= gone {
        packet.push_front(pushed - gone).is_some()
    } else {
        packet.pull_front(gone - pushed)
    };
    let Some(place) = packet
        .data_mut()
        .get_mut(ETHERNET..ETHERNET + pushed)
        .filter(|_| moved)
    else {
        return Verdict::drop(DropReason::FrameTooLong);
    };
    write_entries(place, labelled, fields);
    leave(packet, &labelled.below, EtherType::MPLS)
}

/// The top label goes and the packet with it: penultimate hop popping.
fn pop(packet: &mut Pkt, top: Top, entry: LabelEntry, end: &Adjacency) -> Verdict {
    let at = ETHERNET + top.off + ENTRY;
    let ttl = top.ttl() - 1;
    let ethertype = if !top.is_bottom() {
        if !entry.is_pipe() && !uniform_label(packet, at, ttl, top.class()) {
            return Verdict::drop(DropReason::MplsBadStack);
        }
        EtherType::MPLS
    } else {
        let under = packet.data().get(at..).unwrap_or(&[]);
        let Some(ethertype) = payload_of(under, entry.payload()) else {
            return Verdict::drop(DropReason::MplsBadPayload);
        };
        if !entry.is_pipe() {
            uniform_payload(packet, at, ttl, Some(top.class()));
        }
        ethertype
    };
    if !take_out(packet, top.off + ENTRY, ethertype) {
        return Verdict::drop(DropReason::MplsBadStack);
    }
    leave(packet, end, ethertype)
}

fn leave(packet: &mut Pkt, end: &Adjacency, ethertype: EtherType) -> Verdict {
    if write_ethernet(packet, end, ethertype) {
        Verdict::OUT
    } else {
        Verdict::drop(DropReason::HostUnreachable)
    }
}

/// Uniform mode onto a label: time to live, never more than it has, and class (RFC 3443 section 3.3, RFC 3270).
fn uniform_label(packet: &mut Pkt, at: usize, ttl: u8, class: u8) -> bool {
    let Some(place) = packet
        .data_mut()
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<ENTRY>())
    else {
        return false;
    };
    let word = u32::from_be_bytes(*place);
    let ttl = (word & TTL).min(u32::from(ttl));
    *place =
        (word & !(TTL | 7 << CLASS_SHIFT) | u32::from(class) << CLASS_SHIFT | ttl).to_be_bytes();
    true
}

/// Where a packet whose last label goes is looked up, and how.
#[derive(Clone, Copy)]
struct Ending {
    table: u32,
    payload: Payload,
    pipe: bool,
    /// Whether the label's class is written to the packet, in uniform mode. Not that of an explicit null, which
    /// carries it for this router's own use.
    class: bool,
}

/// The label path ends here: what is under the last label is looked up by its address.
fn deaggregate(tables: &Tables, packet: &mut Pkt, top: Top, end: Ending) -> Verdict {
    let Some(top) = last(packet, top) else {
        return Verdict::drop(DropReason::MplsNotBottom);
    };
    let at = ETHERNET + top.off + ENTRY;
    let under = packet.data().get(at..).unwrap_or(&[]);
    let Some(ethertype) = payload_of(under, end.payload) else {
        return Verdict::drop(DropReason::MplsBadPayload);
    };
    if top.ttl() <= 1 && !is_for_us(tables, end.table, ethertype, under) {
        return expired(packet);
    }
    if !end.pipe {
        // Its own hop is taken off where it is forwarded.
        uniform_payload(
            packet,
            at,
            top.ttl().max(1),
            end.class.then_some(top.class()),
        );
    }
    if !take_out(packet, top.off + ENTRY, ethertype) {
        return Verdict::drop(DropReason::MplsBadStack);
    }
    packet.clear_flags(Flags::HASHED);
    // What this router itself says along the path loses no hop here.
    let ready = ethertype == EtherType::IPV4
        && !packet.flags().any(Flags::ORIGINATED)
        && tables
            .interface(packet.interface())
            .is_some_and(|interface| ip4_steps::receive_payload(&interface.own, packet));
    let elsewhere = end.table != 0
        || tables
            .interface(packet.interface())
            .is_none_or(|interface| interface.table != 0);
    if elsewhere || !ready {
        // What is looked at once more is distinguished from what came without a label: lists and the way back are not asked.
        packet.meta_mut().table = end.table;
        packet.set_flags(Flags::TABLED);
    }
    match ethertype {
        EtherType::IPV6 => Verdict::to(IP6_INPUT),
        _ if ready => Verdict::to(IP4_LOOKUP),
        _ => Verdict::to(IP4_INPUT),
    }
}

/// The label as the last one: there is none below it, or an entropy label only.
#[inline(always)]
fn last(packet: &Pkt, top: Top) -> Option<Top> {
    if top.is_bottom() {
        return Some(top);
    }
    // RFC 6790 section 4.3: the egress takes an entropy label off with the label above it.
    let indicator = below(packet, top)
        .filter(|indicator| indicator.word >> LABEL_SHIFT == Label::ENTROPY_INDICATOR.0)?;
    let entropy = below(packet, indicator).filter(|entropy| entropy.is_bottom())?;
    Some(Top {
        word: top.word | BOTTOM,
        ..entropy
    })
}

/// What is under the last label is a frame of the pseudowire with this interface, or was about one.
fn out_of_pseudowire(packet: &mut Pkt, top: Top, interface: u32) -> Verdict {
    let Some(top) = last(packet, top) else {
        return Verdict::drop(DropReason::MplsNotBottom);
    };
    // RFC 3032 section 2.4.1: nor may the stack be taken off and what is under it forwarded. Nobody is notified: a frame
    // has no sender that could be.
    if top.ttl() <= 1 {
        return Verdict::drop(DropReason::TtlExpired);
    }
    if !packet.pull_front(ETHERNET + top.off + ENTRY) {
        return Verdict::drop(DropReason::MplsBadStack);
    }
    packet.set_interface(interface);
    Verdict::to(PSEUDOWIRE_INPUT)
}

/// Whether a packet is for this router itself: then it may be on its last hop.
#[cold]
fn is_for_us(tables: &Tables, table: u32, ethertype: EtherType, under: &[u8]) -> bool {
    let table = table as usize;
    let group = if ethertype == EtherType::IPV4 {
        let Some((header, _)) = Ipv4Header::read(under) else {
            return false;
        };
        tables
            .fib4
            .get(table)
            .map_or(0, |fib| fib.lookup(header.destination()))
    } else {
        let Some((header, _)) = Ipv6Header::read(under) else {
            return false;
        };
        tables
            .fib6
            .get(table)
            .map_or(0, |fib| fib.lookup(u128::from_be_bytes(header.destination)))
    };
    tables.nexthops.kind(tables.nexthops.choose(group, || 0)) == AdjacencyKind::Local
}
