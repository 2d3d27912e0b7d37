//! mpls-error: tells the sender of what is under the labels why it goes no further.
//!
//! The message quotes the packet under the stack and, as RFC 4950 wants it, the stack as it arrived, in an extension
//! after RFC 4884: the quotation fills 128 bytes, its length in words is in the header. A router in the middle of a
//! label path may know no endpoints back to the sender, and the sender's address may be another network's: RFC 3032
//! section 2.3.2 lets the message go on along the path, whose egress knows the endpoints. So it does, under the
//! labels of the packet that it is about, unless there was only one label and a route back is there.

use weir_buf::{Flags, Pkt};
use weir_fib::AdjacencyKind;
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::icmp6::{self, Endpoints};
use weir_wire::mpls::{Guess, Stack, guess_first};
use weir_wire::{EtherType, Ipv4Header, Ipv6Header, build, checksum};

use super::{DEEPEST, ENTRY, TTL, stack_of};
use crate::IcmpLimit;
use crate::Tables;
use crate::frame::{ETHERNET, OWN_TTL};
use crate::icmp_limit::Budgets;
use crate::icmp4_error::{self, Identifications};
use crate::icmp6_error;

/// Codes that nodes put into `Meta::code`; places in [`REASONS`].
pub(crate) const TTL_EXPIRED: u16 = 0;
pub(crate) const FRAGMENTATION_NEEDED: u16 = 1;

const REASONS: [DropReason; 2] = [DropReason::TtlExpired, DropReason::FragmentationNeeded];
/// Type and code over IPv4.
const KINDS4: [(u8, u8); 2] = [(11, 0), (3, 4)];
/// The same over IPv6, and what icmp6-error calls it.
const KINDS6: [(u8, u8, u16); 2] = [
    (icmp6::TIME_EXCEEDED, 0, icmp6_error::HOP_LIMIT),
    (icmp6::TOO_BIG, 0, icmp6_error::TOO_BIG),
];

/// Notes on the packet which message it deserves; the node's verdict sends it here.
pub(crate) fn complain(packet: &mut Pkt, message: u16, argument: u32) {
    let meta = packet.meta_mut();
    meta.code = message;
    meta.argument = argument;
}

pub(crate) struct MplsError {
    budgets: Budgets<2>,
    identifications: Identifications,
}

impl MplsError {
    pub(crate) fn new(limit: IcmpLimit) -> MplsError {
        MplsError {
            budgets: Budgets::new(limit),
            identifications: Identifications::default(),
        }
    }
}

const IP4_LOOKUP: Next = Next(0);
const MPLS_LOOKUP: Next = Next(1);
const IP6_LOOKUP: Next = Next(2);

impl Node<Tables> for MplsError {
    const SPEC: NodeSpec = NodeSpec {
        name: "mpls-error",
        about: "Tells senders why their labelled packets go no further, with the labels they had.",
        nexts: &["ip4-lookup", "mpls-lookup", "ip6-lookup"],
        reasons: &REASONS,
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            let message = usize::from(packet.meta().code).min(REASONS.len() - 1);
            self.tell(cx, packet, message);
            *verdict = Verdict::drop(REASONS[message]);
        }
        Outcome::Each
    }
}

/// RFC 4884 section 5.1: a quotation with an extension behind it has at least this many bytes.
const QUOTED: usize = 128;
const HEADERS: usize = Ipv4Header::LEN + 8;
/// The extension's own header, and that of its object.
const EXTENSION: usize = 8;
/// RFC 4884 section 7: version 2, 12 bits of nothing.
const VERSION: u8 = 2 << 4;
/// RFC 4950 section 3: class 1, type 1, the incoming stack.
const MPLS_STACK: [u8; 2] = [1, 1];

impl MplsError {
    #[inline(never)]
    fn tell(&mut self, cx: &mut Cx<'_, Tables>, packet: &mut Pkt, message: usize) {
        let Some(stack) = stack_of(packet) else {
            return;
        };
        let (under, at) = (
            guess_first(stack.payload, stack.beyond),
            ETHERNET + stack.bytes().len(),
        );
        let is_ip6 = matches!(under, Guess::Ipv6(_));
        if !is_ip6 && !matches!(under, Guess::Ipv4(_)) {
            return;
        }
        packet.set_l3_offset(at);
        let deserved = if is_ip6 {
            icmp6_error::deserves_answer(packet, KINDS6[message].2)
        } else {
            icmp4_error::deserves_answer(packet)
        };
        if !deserved || !self.budgets.may_send(message, cx.now) {
            return;
        }
        if is_ip6 {
            answer6(cx, packet, message);
        } else {
            answer4(cx, &mut self.identifications, packet, message);
        }
    }
}

/// The message over IPv4, with labels or without.
fn answer4(
    cx: &mut Cx<'_, Tables>,
    identifications: &mut Identifications,
    packet: &Pkt,
    message: usize,
) {
    let Some(stack) = stack_of(packet) else {
        return;
    };
    let Some((offender, _)) = Ipv4Header::read(stack.payload) else {
        return;
    };
    let source = cx
        .world
        .source4(packet, offender.source(), ends_in(cx.world, &stack));
    let back = cx
        .world
        .fib4_of(packet.interface())
        .map_or(0, |fib| fib.lookup(offender.source()));
    let along = !knows_way_back(cx.world, &stack, back);
    let labels = if along { stack.bytes().len() } else { 0 };
    let extension = EXTENSION + stack.bytes().len();
    let Some(mut made) = cx.alloc() else { return };
    let _ = made.set_len(ETHERNET + labels + HEADERS + QUOTED + extension);
    let argument = (QUOTED as u32 / 4) << 16
        | if KINDS4[message].0 == 3 {
            packet.meta().argument.min(0xffff)
        } else {
            0
        };
    let mut quote = [0; QUOTED + EXTENSION + DEEPEST * ENTRY];
    copy_quote(
        packet,
        &stack,
        usize::from(offender.total_len()),
        &mut quote,
    );
    write_extension(&mut quote[QUOTED..QUOTED + extension], &stack);
    let (kind, code) = KINDS4[message];
    let ethertype = if along {
        EtherType::MPLS
    } else {
        EtherType::IPV4
    };
    let Some(rest) = build::ethernet_blank(made.data_mut(), ethertype) else {
        return cx.free(made);
    };
    if let Some(place) = rest.get_mut(..labels) {
        write_full_stack(place, &stack);
    }
    let Some(l3) = rest.get_mut(labels..) else {
        return cx.free(made);
    };
    build::icmp4(
        l3,
        source,
        offender.source(),
        OWN_TTL,
        kind,
        code,
        argument,
        &quote[..QUOTED + extension],
    );
    identifications.mark(cx.worker, l3);
    made.set_interface(packet.interface());
    made.set_l3_offset(ETHERNET);
    made.set_flags(Flags::ORIGINATED);
    cx.originate(made, if along { MPLS_LOOKUP } else { IP4_LOOKUP });
}

/// The message over IPv6. "Packet too big" has no extension: RFC 4884 section 4.6 has none for it.
fn answer6(cx: &mut Cx<'_, Tables>, packet: &Pkt, message: usize) {
    let Some(stack) = stack_of(packet) else {
        return;
    };
    let Some((offender, _)) = Ipv6Header::read(stack.payload) else {
        return;
    };
    let destination = offender.source;
    let Some(source) = cx.world.source6(
        packet,
        u128::from_be_bytes(destination),
        ends_in(cx.world, &stack),
    ) else {
        return;
    };
    let back = cx
        .world
        .fib6_of(packet.interface())
        .map_or(0, |fib| fib.lookup(u128::from_be_bytes(destination)));
    let along = !knows_way_back(cx.world, &stack, back);
    let labels = if along { stack.bytes().len() } else { 0 };
    let (kind, code, _) = KINDS6[message];
    let has_extension = kind == icmp6::TIME_EXCEEDED;
    let extension = if has_extension {
        EXTENSION + stack.bytes().len()
    } else {
        0
    };
    let mut quote = [0; QUOTED + EXTENSION + DEEPEST * ENTRY];
    let quoted = copy_quote(packet, &stack, QUOTED, &mut quote);
    if has_extension {
        write_extension(&mut quote[QUOTED..QUOTED + extension], &stack);
    }
    // RFC 4884 section 4.4: the length in words of eight bytes, in the first of the second word.
    let argument = if has_extension {
        (QUOTED as u32 / 8) << 24
    } else {
        packet.meta().argument
    };
    let body = if has_extension {
        &quote[..QUOTED + extension]
    } else {
        &quote[..quoted]
    };
    let Some(mut made) = cx.alloc() else { return };
    let _ = made.set_len(ETHERNET + labels + Ipv6Header::LEN + 8 + body.len());
    let ethertype = if along {
        EtherType::MPLS
    } else {
        EtherType::IPV6
    };
    let Some(rest) = build::ethernet_blank(made.data_mut(), ethertype) else {
        return cx.free(made);
    };
    if let Some(place) = rest.get_mut(..labels) {
        write_full_stack(place, &stack);
    }
    let endpoints = Endpoints {
        source: source.to_be_bytes(),
        destination,
        hop_limit: OWN_TTL,
    };
    let written = rest
        .get_mut(labels..)
        .and_then(|l3| icmp6::message(l3, &endpoints, kind, code, argument, body));
    if written.is_none() {
        return cx.free(made);
    }
    made.set_interface(packet.interface());
    made.set_l3_offset(ETHERNET);
    made.set_flags(Flags::ORIGINATED);
    cx.originate(made, if along { MPLS_LOOKUP } else { IP6_LOOKUP });
}

/// Copies what is under the stack, at most `most` bytes and the quotation's; returns how many.
fn copy_quote(packet: &Pkt, stack: &Stack<'_>, most: usize, quote: &mut [u8]) -> usize {
    let room = quote.get_mut(..most.min(QUOTED)).unwrap_or(&mut []);
    packet.copy_out(ETHERNET + stack.bytes().len(), room)
}

/// The table that looks up what is under the top label, if that label's path ends here.
fn ends_in(tables: &Tables, stack: &Stack<'_>) -> Option<u32> {
    let group = tables
        .lfib
        .lookup(stack.entries().next()?.label().0)
        .group();
    let end = tables
        .nexthops
        .adjacency(tables.nexthops.choose(group, || 0))?;
    (end.kind == AdjacencyKind::Lookup).then_some(end.interface)
}

/// Whether the message can go back by itself: there was one label, it does not end here, and the sender has a route,
/// whose group is `back`.
fn knows_way_back(tables: &Tables, stack: &Stack<'_>, back: u32) -> bool {
    stack.depth() == 1
        && ends_in(tables, stack).is_none()
        && tables.nexthops.kind(tables.nexthops.choose(back, || 0)) != AdjacencyKind::Drop
}

/// The stack as the message goes on under it: every entry with its full time to live.
fn write_full_stack(place: &mut [u8], stack: &Stack<'_>) {
    for (place, entry) in place
        .as_chunks_mut::<ENTRY>()
        .0
        .iter_mut()
        .zip(stack.bytes().as_chunks::<ENTRY>().0)
    {
        *place = (u32::from_be_bytes(*entry) | TTL).to_be_bytes();
    }
}

/// The extension structure with its one object.
fn write_extension(place: &mut [u8], stack: &Stack<'_>) {
    let length = (place.len() - 4) as u16;
    place[0] = VERSION;
    place[4..6].copy_from_slice(&length.to_be_bytes());
    place[6..8].copy_from_slice(&MPLS_STACK);
    place[8..].copy_from_slice(stack.bytes());
    let sum = checksum::internet(place);
    place[2..4].copy_from_slice(&sum.to_be_bytes());
}
