//! What a receiver does with the extension headers of a packet for itself (RFC 8200 section 4).
//!
//! Options that are not known say by their two highest bits what shall become of the packet; a routing
//! header with segments left is of no type that this router follows, type 0 included (RFC 5095). The walk
//! was bounded before ([`ipv6::walk`]), so this one is.

use weir_graph::DropReason;
use weir_wire::ipv6::{Chain, ChainError, Fault};
use weir_wire::{IpProtocol, Ipv6Header};

use crate::icmp6_error::{
    BAD_FIELD, ROUTING_TYPE, TOO_LONG_CHAIN, TOO_MANY_HEADERS, UNKNOWN_NEXT_HEADER, UNKNOWN_OPTION,
};

/// What ends a packet for this router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// It is dropped without a word.
    Silent(DropReason),
    /// Its sender is notified: the message, and the octet to blame.
    Answered(u16, u32),
}

/// What becomes of a packet whose headers could not be walked.
pub(crate) fn fault(error: ChainError) -> Rejection {
    let at = error.at as u32;
    match error.fault {
        Fault::Truncated => Rejection::Silent(DropReason::Ip6BadExtension),
        Fault::TooMany => Rejection::Answered(TOO_MANY_HEADERS, at),
        Fault::TooLong => Rejection::Answered(TOO_LONG_CHAIN, at),
        // RFC 8200 section 4: a next header of 0 anywhere but in the fixed header is an unrecognised one.
        Fault::Misplaced => Rejection::Answered(UNKNOWN_NEXT_HEADER, at),
        Fault::Refragmented => Rejection::Answered(BAD_FIELD, at),
    }
}

/// Goes through the extension headers of `packet`, which [`Chain`] says are there.
pub(crate) fn obey(packet: &[u8], chain: &Chain) -> Result<(), Rejection> {
    let Some((fixed, _)) = Ipv6Header::read(packet) else {
        return Err(Rejection::Silent(DropReason::Ip6Truncated));
    };
    let group = fixed.destination[0] == 0xff;
    let (mut protocol, mut at) = (fixed.next_header(), Ipv6Header::LEN);
    for _ in 0..chain.headers {
        let Some(&[next, length, _, left]) = packet.get(at..).and_then(<[u8]>::first_chunk) else {
            break;
        };
        let end = at
            + match protocol {
                IpProtocol::FRAGMENT => 8,
                IpProtocol::AUTHENTICATION => usize::from(length) * 4 + 8,
                _ => usize::from(length) * 8 + 8,
            };
        match protocol {
            IpProtocol::HOP_BY_HOP | IpProtocol::DESTINATION_OPTIONS => {
                options(packet, at + 2, end, group)?
            }
            // RFC 8200 section 4.4: the pointer is to the routing type.
            IpProtocol::ROUTING if left != 0 => {
                return Err(Rejection::Answered(ROUTING_TYPE, at as u32 + 2));
            }
            _ => {}
        }
        (protocol, at) = (IpProtocol(next), end);
    }
    Ok(())
}

/// One octet of padding; the only option without a length.
const PAD1: u8 = 0;
const PADN: u8 = 1;
/// RFC 2711; all packets that get here are looked at anyway.
const ROUTER_ALERT: u8 = 5;

/// RFC 8200 section 4.2.
fn options(packet: &[u8], mut at: usize, end: usize, group: bool) -> Result<(), Rejection> {
    while at < end {
        let Some(&kind) = packet.get(at) else { break };
        if kind == PAD1 {
            at += 1;
            continue;
        }
        let behind = packet
            .get(at + 1)
            .map(|&length| at + 2 + usize::from(length))
            .filter(|&behind| behind <= end);
        let Some(behind) = behind else {
            return Err(Rejection::Silent(DropReason::Ip6BadExtension));
        };
        match kind >> 6 {
            _ if matches!(kind, PADN | ROUTER_ALERT) => {}
            0 => {}
            1 => return Err(Rejection::Silent(DropReason::Ip6Option)),
            3 if group => return Err(Rejection::Silent(DropReason::Ip6Option)),
            _ => return Err(Rejection::Answered(UNKNOWN_OPTION, at as u32)),
        }
        at = behind;
    }
    Ok(())
}
