//! icmp4-error: tells the sender why its packet goes no further (RFC 792, RFC 1812 section 4.3).
//!
//! The packet itself is dropped with its reason; the message is originated from an address of the
//! interface that the packet came in on, or of the packet's table, and quotes it up to 576 bytes in all. Never answered: ICMP
//! errors, later fragments, what was sent to a group or from an impossible source (4.3.2.7). Each
//! kind of message has a budget of its own (4.3.2.8).

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::{EtherType, IpProtocol, Ipv4Header, build, checksum};

use crate::Tables;
use crate::frame::ETHERNET;
use crate::frame::OWN_TTL;
use crate::icmp_limit::{Budgets, IcmpLimit};

/// A message: its place in the budgets, type, code, and the reason its packet is dropped for.
#[derive(Clone, Copy, Debug)]
struct Message(u8, u8, DropReason);

/// Codes that nodes put into `Meta::code`; places in [`MESSAGES`].
pub(crate) const NET_UNREACHABLE: u16 = 0;
pub(crate) const HOST_UNREACHABLE: u16 = 1;
pub(crate) const TTL_EXPIRED: u16 = 2;
pub(crate) const FRAGMENTATION_NEEDED: u16 = 3;
pub(crate) const PORT_UNREACHABLE: u16 = 4;
pub(crate) const PROTOCOL_UNREACHABLE: u16 = 5;
pub(crate) const ROUTE_UNREACHABLE: u16 = 6;
pub(crate) const ROUTE_PROHIBITED: u16 = 7;
pub(crate) const NO_NEXT_HOP: u16 = 8;
/// A malformed option; the argument is the octet of the header at which it is.
pub(crate) const BAD_OPTION: u16 = 9;

const MESSAGES: [Message; 10] = [
    Message(3, 0, DropReason::NoRoute),
    Message(3, 1, DropReason::HostUnreachable),
    Message(11, 0, DropReason::TtlExpired),
    Message(3, 4, DropReason::FragmentationNeeded),
    Message(3, 3, DropReason::LocalPort),
    Message(3, 2, DropReason::LocalProtocol),
    // As Linux and VPP answer for such routes, so that it can be distinguished from there being none; and RFC 1812
    // section 5.2.7.1, code 13.
    Message(3, 1, DropReason::RouteUnreachable),
    Message(3, 13, DropReason::RouteProhibited),
    Message(3, 0, DropReason::NoNextHop),
    Message(12, 0, DropReason::Ip4BadOption),
];

/// RFC 1812 4.3.2.3: as much of the packet as fits 576 bytes.
const LONGEST: usize = 576;
const HEADERS: usize = 20 + 8;

/// Notes on the packet which message it deserves; the node's verdict sends it here.
#[inline]
pub(crate) fn complain(packet: &mut Pkt, message: u16, argument: u32) {
    let meta = packet.meta_mut();
    meta.code = message;
    meta.argument = argument;
}

pub(crate) struct Icmp4Error {
    budgets: Budgets<{ MESSAGES.len() }>,
    identifications: Identifications,
}

/// The precedence of ICMP errors, internetwork control (RFC 1812 section 4.3.2.5), as a type of service.
const PRECEDENCE: u8 = 6 << 5;

/// Identifications of the messages that a worker makes. They may be fragmented on their path, so that none may come again
/// soon (RFC 6864 section 4.3): a worker's budgets need more than ten seconds for all of them.
#[derive(Debug, Default)]
pub(crate) struct Identifications(u16);

impl Identifications {
    /// Writes what ICMP errors have and other packets of this router do not into a finished IPv4 header.
    pub(crate) fn mark(&mut self, worker: usize, l3: &mut [u8]) {
        self.0 = self.0.wrapping_add(1);
        // Workers begin far from each other.
        let start = (worker as u16).wrapping_mul(0x9e37);
        if let Some((header, _)) = Ipv4Header::read_mut(l3) {
            header.tos = PRECEDENCE;
            header.set_identification(start.wrapping_add(self.0));
        }
        checksum::ipv4_header_set(l3);
    }
}

impl Icmp4Error {
    pub(crate) fn new(limit: IcmpLimit) -> Icmp4Error {
        Icmp4Error {
            budgets: Budgets::new(limit),
            identifications: Identifications::default(),
        }
    }
}

const IP4_LOOKUP: Next = Next(0);

impl Node<Tables> for Icmp4Error {
    const SPEC: NodeSpec = NodeSpec {
        name: "icmp4-error",
        about: "Tells senders why their packets go no further.",
        nexts: &["ip4-lookup"],
        reasons: &[
            DropReason::NoRoute,
            DropReason::HostUnreachable,
            DropReason::TtlExpired,
            DropReason::FragmentationNeeded,
            DropReason::LocalPort,
            DropReason::LocalProtocol,
            DropReason::RouteUnreachable,
            DropReason::RouteProhibited,
            DropReason::NoNextHop,
            DropReason::Ip4BadOption,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            let number = packet.meta().code as usize;
            let message = MESSAGES.get(number).copied().unwrap_or(MESSAGES[0]);
            if deserves_answer(packet) && self.budgets.may_send(number, cx.now) {
                answer(cx, &mut self.identifications, packet, message);
            }
            *verdict = Verdict::drop(message.2);
        }
        Outcome::Each
    }
}

/// RFC 1812 4.3.2.7: what must never be answered with an error.
pub(crate) fn deserves_answer(packet: &Pkt) -> bool {
    let Some((header, _)) = Ipv4Header::read(packet.l3()) else {
        return false;
    };
    let icmp_error = header.protocol() == IpProtocol::ICMP && {
        let kind = packet.l3().get(header.header_len()).copied();
        // Queries and their answers may be complained about, everything else is an error itself.
        !matches!(kind, Some(0 | 8 | 13..=18))
    };
    // What a tunnel made comes from this router itself.
    !header.is_later_fragment()
        && !icmp_error
        && !packet
            .flags()
            .any(Flags::MULTICAST | Flags::BROADCAST | Flags::TUNNELLED)
}

fn answer(
    cx: &mut Cx<'_, Tables>,
    identifications: &mut Identifications,
    packet: &Pkt,
    message: Message,
) {
    let Some((offender, _)) = Ipv4Header::read(packet.l3()) else {
        return;
    };
    let destination = offender.source();
    // What was for an own address is answered from there: who asked knows no other.
    let was_for_us = matches!(message.2, DropReason::LocalPort | DropReason::LocalProtocol);
    let source = if was_for_us {
        offender.destination()
    } else {
        cx.world.source4(packet, destination, None)
    };
    let mut room = [0; LONGEST - HEADERS];
    let quote = first_of(packet, packet.l3_offset(), &mut room);
    let quote = quote
        .get(..usize::from(offender.total_len()))
        .unwrap_or(quote);
    let Some(mut made) = cx.alloc() else { return };
    let argument = match message {
        Message(3, 4, _) => packet.meta().argument.min(0xffff),
        // RFC 792: the octet with the problem, in the first octet of the word.
        Message(12, ..) => packet.meta().argument << 24,
        _ => 0,
    };
    let _ = made.set_len(ETHERNET + HEADERS + quote.len());
    write(
        made.data_mut(),
        source,
        destination,
        message,
        argument,
        quote,
    );
    identifications.mark(
        cx.worker,
        made.data_mut().get_mut(ETHERNET..).unwrap_or(&mut []),
    );
    made.set_interface(packet.interface());
    made.set_l3_offset(ETHERNET);
    made.set_flags(Flags::ORIGINATED);
    stay_in_table(packet, &mut made);
    cx.originate(made, IP4_LOOKUP);
}

/// What a packet holds from byte `at` on, as much as `room` would take: from its only chunk, or gathered there.
pub(crate) fn first_of<'a>(packet: &'a Pkt, at: usize, room: &'a mut [u8]) -> &'a [u8] {
    if packet.is_chained() {
        let count = packet.copy_out(at, room);
        return room.get(..count).unwrap_or(&[]);
    }
    let bytes = packet.data().get(at..).unwrap_or(&[]);
    bytes.get(..room.len()).unwrap_or(bytes)
}

/// What answers a packet that a label led to a table goes by that table too.
pub(crate) fn stay_in_table(packet: &Pkt, made: &mut Pkt) {
    if packet.flags().any(Flags::TABLED) {
        made.meta_mut().table = packet.meta().table;
        made.set_flags(Flags::TABLED);
    }
}

fn write(
    frame: &mut [u8],
    source: u32,
    destination: u32,
    message: Message,
    argument: u32,
    quote: &[u8],
) {
    let Some(l3) = build::ethernet_blank(frame, EtherType::IPV4) else {
        return;
    };
    build::icmp4(
        l3,
        source,
        destination,
        OWN_TTL,
        message.0,
        message.1,
        argument,
        quote,
    );
}
