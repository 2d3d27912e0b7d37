//! ICMPv6 (RFC 4443): its numbers, and its messages as whole IPv6 packets.
//!
//! The eight first bytes are laid out as ICMP's: [`crate::IcmpHeader`] reads both. When an error may be
//! sent at all, and how often (section 2.4), is for the nodes to decide.

use zerocopy::IntoBytes;

use crate::ipv6::MIN_MTU;
use crate::{IcmpHeader, IpProtocol, Ipv6Header, checksum};

/// Destination unreachable; codes are the constants of [`mod@unreachable`].
pub const UNREACHABLE: u8 = 1;
/// Packet too big; the argument is the MTU.
pub const TOO_BIG: u8 = 2;
/// Time exceeded: code 0 the hop limit, code 1 the time for reassembly.
pub const TIME_EXCEEDED: u8 = 3;
/// Parameter problem; codes are the constants of [`parameter`], the argument is where.
pub const PARAMETER_PROBLEM: u8 = 4;
/// A request for an echo.
pub const ECHO_REQUEST: u8 = 128;
/// An answer to one.
pub const ECHO_REPLY: u8 = 129;

/// Codes of [`UNREACHABLE`] (RFC 4443 section 3.1).
pub mod unreachable {
    /// No route.
    pub const NO_ROUTE: u8 = 0;
    /// Administratively prohibited.
    pub const PROHIBITED: u8 = 1;
    /// Beyond the scope of the source address.
    pub const BEYOND_SCOPE: u8 = 2;
    /// The address does not answer.
    pub const ADDRESS: u8 = 3;
    /// Nobody listens on the port.
    pub const PORT: u8 = 4;
    /// The source address failed a policy.
    pub const SOURCE_POLICY: u8 = 5;
    /// The route rejects.
    pub const REJECTED: u8 = 6;
}

/// Codes of [`PARAMETER_PROBLEM`] (RFC 4443 section 3.4, RFC 7112, RFC 8883).
pub mod parameter {
    /// A field is wrong.
    pub const FIELD: u8 = 0;
    /// A next header is not known.
    pub const NEXT_HEADER: u8 = 1;
    /// An option is not known.
    pub const OPTION: u8 = 2;
    /// A first fragment does not hold all headers (RFC 7112).
    pub const INCOMPLETE_CHAIN: u8 = 3;
    /// Extension headers longer in all than this node passes (RFC 8883 section 2.3).
    pub const TOO_LONG_CHAIN: u8 = 7;
    /// More extension headers than this node passes (RFC 8883 section 2.4).
    pub const TOO_MANY_HEADERS: u8 = 8;
}

/// Whether a message of this type reports an error; errors are never answered with errors (section 2.4 e).
#[inline(always)]
#[must_use]
pub const fn is_error(kind: u8) -> bool {
    kind < 128
}

/// Bytes of an offending packet that an error quotes: as many as fit without it exceeding the minimum MTU
/// (section 2.4 c).
pub const QUOTE: usize = MIN_MTU - Ipv6Header::LEN - IcmpHeader::LEN;

/// Between whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Who sends.
    pub source: [u8; 16],
    /// Who gets it.
    pub destination: [u8; 16],
    /// Hops that it may go.
    pub hop_limit: u8,
}

/// Writes an ICMPv6 message as a whole IPv6 packet at the start of `packet`; gives its length. `None`, and
/// nothing written, when there is too little room.
pub fn message(
    packet: &mut [u8],
    endpoints: &Endpoints,
    kind: u8,
    code: u8,
    argument: u32,
    body: &[u8],
) -> Option<usize> {
    write(
        packet,
        endpoints,
        &IcmpHeader::new(kind, code, argument),
        &[body],
    )
}

/// Writes an error about `offender`, a whole IPv6 packet or its beginning, of which as much is quoted as
/// may be. Else as [`message`].
pub fn error(
    packet: &mut [u8],
    endpoints: &Endpoints,
    kind: u8,
    code: u8,
    argument: u32,
    offender: &[u8],
) -> Option<usize> {
    message(
        packet,
        endpoints,
        kind,
        code,
        argument,
        offender.get(..QUOTE).unwrap_or(offender),
    )
}

/// Writes a message whose body is in parts.
pub(crate) fn write(
    packet: &mut [u8],
    endpoints: &Endpoints,
    header: &IcmpHeader,
    body: &[&[u8]],
) -> Option<usize> {
    let length = IcmpHeader::LEN + body.iter().map(|part| part.len()).sum::<usize>();
    let packet = packet.get_mut(..Ipv6Header::LEN + length)?;
    let fixed = Ipv6Header::new(
        endpoints.source,
        endpoints.destination,
        IpProtocol::ICMP6,
        endpoints.hop_limit,
        u16::try_from(length).ok()?,
    );
    let mut rest = &mut *packet;
    for part in [fixed.as_bytes(), header.as_bytes()].iter().chain(body) {
        let (place, behind) = rest.split_at_mut_checked(part.len())?;
        place.copy_from_slice(part);
        rest = behind;
    }
    checksum_set(packet);
    Some(Ipv6Header::LEN + length)
}

/// Writes the checksum of the ICMPv6 message right behind the fixed header of `packet`, which is as long
/// as the slice. Does nothing when the headers are not all there.
pub fn checksum_set(packet: &mut [u8]) {
    let Some((fixed, rest)) = Ipv6Header::read_mut(packet) else {
        return;
    };
    if let Some((icmp, _)) = IcmpHeader::read_mut(rest) {
        icmp.set_checksum(0);
    }
    let sum = checksum::icmp6(&fixed.source, &fixed.destination, rest);
    if let Some((icmp, _)) = IcmpHeader::read_mut(rest) {
        icmp.set_checksum(sum);
    }
}
