//! icmp6-error: tells the sender why its packet goes no further (RFC 4443).
//!
//! The packet itself is dropped with its reason; the message is originated and quotes as much of it as fits
//! the smallest MTU. Never answered (section 2.4 e): ICMPv6 errors, redirects, what comes from nobody in
//! particular, what was sent to a group, except that it was too big or has an option that wants an answer
//! in any case. Later fragments are answered, or their sender would never learn the path's MTU (section 3.2): of what
//! they are pieces is not known, but errors are never as long as to be fragmented. Each kind of message
//! has a budget of its own (section 2.4 f).

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::icmp6::{self, Endpoints, parameter, unreachable};
use weir_wire::ipv6::{self, MAX_BYTES, MAX_HEADERS, MIN_MTU};
use weir_wire::{EtherType, EthernetHeader, IpProtocol, Ipv6Header};
use zerocopy::IntoBytes;

use crate::Tables;
use crate::frame::ETHERNET;
use crate::frame::OWN_TTL;
use crate::icmp_limit::{Budgets, IcmpLimit};
use crate::icmp4_error::{first_of, stay_in_table};

/// A message: type, code, and the reason its packet is dropped for.
#[derive(Clone, Copy, Debug)]
struct Message(u8, u8, DropReason);

/// The type of redirects (RFC 4861 section 4.5).
pub(crate) const REDIRECT: u8 = 137;

/// Codes that nodes put into `Meta::code`; places in [`MESSAGES`].
pub(crate) const NO_ROUTE: u16 = 0;
pub(crate) const BEYOND_SCOPE: u16 = 1;
pub(crate) const ADDRESS_UNREACHABLE: u16 = 2;
pub(crate) const PORT_UNREACHABLE: u16 = 3;
pub(crate) const TOO_BIG: u16 = 4;
pub(crate) const HOP_LIMIT: u16 = 5;
pub(crate) const BAD_FIELD: u16 = 6;
pub(crate) const UNKNOWN_NEXT_HEADER: u16 = 7;
pub(crate) const UNKNOWN_OPTION: u16 = 8;
pub(crate) const TOO_LONG_CHAIN: u16 = 9;
pub(crate) const TOO_MANY_HEADERS: u16 = 10;
pub(crate) const ROUTING_TYPE: u16 = 11;
pub(crate) const ROUTE_UNREACHABLE: u16 = 12;
pub(crate) const ROUTE_PROHIBITED: u16 = 13;
pub(crate) const NO_NEXT_HOP: u16 = 14;

const MESSAGES: [Message; 15] = [
    Message(
        icmp6::UNREACHABLE,
        unreachable::NO_ROUTE,
        DropReason::NoRoute,
    ),
    Message(
        icmp6::UNREACHABLE,
        unreachable::BEYOND_SCOPE,
        DropReason::Ip6BeyondScope,
    ),
    Message(
        icmp6::UNREACHABLE,
        unreachable::ADDRESS,
        DropReason::HostUnreachable,
    ),
    Message(icmp6::UNREACHABLE, unreachable::PORT, DropReason::LocalPort),
    Message(icmp6::TOO_BIG, 0, DropReason::PacketTooBig),
    Message(icmp6::TIME_EXCEEDED, 0, DropReason::TtlExpired),
    Message(
        icmp6::PARAMETER_PROBLEM,
        parameter::FIELD,
        DropReason::Ip6BadExtension,
    ),
    Message(
        icmp6::PARAMETER_PROBLEM,
        parameter::NEXT_HEADER,
        DropReason::LocalProtocol,
    ),
    Message(
        icmp6::PARAMETER_PROBLEM,
        parameter::OPTION,
        DropReason::Ip6Option,
    ),
    Message(
        icmp6::PARAMETER_PROBLEM,
        parameter::TOO_LONG_CHAIN,
        DropReason::Ip6BadExtension,
    ),
    Message(
        icmp6::PARAMETER_PROBLEM,
        parameter::TOO_MANY_HEADERS,
        DropReason::Ip6BadExtension,
    ),
    Message(
        icmp6::PARAMETER_PROBLEM,
        parameter::FIELD,
        DropReason::Ip6RoutingHeader,
    ),
    // RFC 4443 section 3.1: no route is what such a route says; code 1 is for what an administrator forbids.
    Message(
        icmp6::UNREACHABLE,
        unreachable::NO_ROUTE,
        DropReason::RouteUnreachable,
    ),
    Message(
        icmp6::UNREACHABLE,
        unreachable::PROHIBITED,
        DropReason::RouteProhibited,
    ),
    Message(
        icmp6::UNREACHABLE,
        unreachable::NO_ROUTE,
        DropReason::NoNextHop,
    ),
];

/// Notes on the packet which message it deserves; the node's verdict sends it here.
#[inline]
pub(crate) fn complain(packet: &mut Pkt, message: u16, argument: u32) {
    let meta = packet.meta_mut();
    meta.code = message;
    meta.argument = argument;
}

pub(crate) struct Icmp6Error {
    budgets: Budgets<{ MESSAGES.len() }>,
}

impl Icmp6Error {
    pub(crate) fn new(limit: IcmpLimit) -> Icmp6Error {
        Icmp6Error {
            budgets: Budgets::new(limit),
        }
    }
}

const IP6_LOOKUP: Next = Next(0);

impl Node<Tables> for Icmp6Error {
    const SPEC: NodeSpec = NodeSpec {
        name: "icmp6-error",
        about: "Tells senders why their IPv6 packets go no further.",
        nexts: &["ip6-lookup"],
        reasons: &[
            DropReason::NoRoute,
            DropReason::Ip6BeyondScope,
            DropReason::HostUnreachable,
            DropReason::LocalPort,
            DropReason::LocalProtocol,
            DropReason::PacketTooBig,
            DropReason::TtlExpired,
            DropReason::Ip6BadExtension,
            DropReason::Ip6Option,
            DropReason::Ip6RoutingHeader,
            DropReason::RouteUnreachable,
            DropReason::RouteProhibited,
            DropReason::NoNextHop,
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
            let number = packet.meta().code;
            let message = MESSAGES
                .get(usize::from(number))
                .copied()
                .unwrap_or(MESSAGES[0]);
            if deserves_answer(packet, number) && self.budgets.may_send(usize::from(number), cx.now)
            {
                answer(cx, packet, message);
            }
            *verdict = Verdict::drop(message.2);
        }
        Outcome::Each
    }
}

/// Section 2.4 e: what must never be answered with an error.
pub(crate) fn deserves_answer(packet: &Pkt, message: u16) -> bool {
    let Some((header, _)) = Ipv6Header::read(packet.l3()) else {
        return false;
    };
    let group = ipv6::is_multicast(&header.destination)
        || packet.flags().any(Flags::MULTICAST | Flags::BROADCAST);
    let nobody = header.source == ipv6::UNSPECIFIED || ipv6::is_multicast(&header.source);
    if nobody
        || (group && !matches!(message, TOO_BIG | UNKNOWN_OPTION))
        || packet.flags().any(Flags::ORIGINATED | Flags::TUNNELLED)
    {
        return false;
    }
    // What is behind headers that cannot be walked is no error, as far as anybody can see.
    let Ok(chain) = ipv6::walk(packet.l3(), MAX_HEADERS, MAX_BYTES) else {
        return true;
    };
    let kind = packet.l3().get(chain.offset).copied();
    let error = chain.protocol == IpProtocol::ICMP6
        && !chain.is_later_fragment()
        && kind.is_none_or(|kind| icmp6::is_error(kind) || kind == REDIRECT);
    !error
}

fn answer(cx: &mut Cx<'_, Tables>, packet: &Pkt, message: Message) {
    let Some((offender, _)) = Ipv6Header::read(packet.l3()) else {
        return;
    };
    let Some((ethernet, _)) = EthernetHeader::read(packet.data()) else {
        return;
    };
    let Some(interface) = cx.world.interface(packet.interface()) else {
        return;
    };
    let (destination, asked) = (offender.source, u128::from_be_bytes(offender.destination));
    // Section 2.2 a: the address that the packet was sent to speaks, if it is of this router's.
    let same_scope =
        ipv6::is_link_local(&destination) || !ipv6::is_link_local(&offender.destination);
    let source = if same_scope && cx.world.owns6(packet, asked) {
        Some(asked)
    } else {
        cx.world
            .source6(packet, u128::from_be_bytes(destination), None)
    };
    let Some(source) = source else { return };
    let endpoints = Endpoints {
        source: source.to_be_bytes(),
        destination,
        hop_limit: OWN_TTL,
    };
    let back = EthernetHeader::new(ethernet.source, interface.mac, EtherType::IPV6);
    let argument = if matches!(message.0, icmp6::TOO_BIG | icmp6::PARAMETER_PROBLEM) {
        packet.meta().argument
    } else {
        0
    };
    let mut room = [0; MIN_MTU];
    let quote = first_of(packet, packet.l3_offset(), &mut room);
    let Some(mut made) = cx.alloc() else { return };
    let _ = made.set_len(ETHERNET + MIN_MTU);
    let mut length = 0;
    if let Some((start, l3)) = made.data_mut().split_at_mut_checked(ETHERNET) {
        start.copy_from_slice(back.as_bytes());
        length = icmp6::error(l3, &endpoints, message.0, message.1, argument, quote).unwrap_or(0);
    }
    let _ = made.set_len(ETHERNET + length);
    made.set_interface(packet.interface());
    made.set_l3_offset(ETHERNET);
    made.set_flags(Flags::ORIGINATED);
    stay_in_table(packet, &mut made);
    if ipv6::is_link_local(&destination) {
        // No table knows on which link that is; the station that it came from does.
        made.set_aux(packet.interface());
        cx.originate_out(made);
    } else {
        cx.originate(made, IP6_LOOKUP);
    }
}
