//! Extension headers (RFC 8200 section 4): the way from the fixed header to what the packet carries.
//!
//! The walk is bounded in headers and in bytes, whatever the packet says, and knows five kinds:
//! hop-by-hop options, routing, fragment, destination options, authentication. Anything else is what
//! the packet carries, known or not; ESP too, since nothing behind it can be read.
//!
//! A later fragment ends the walk: behind its fragment header lies the middle of something.
//!
//! Faults come with the place of the octet to blame, as ICMPv6's pointer wants it (RFC 4443 section 3.4).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Ipv6Header;
use crate::{IpProtocol, header};

/// Extension headers that a walk passes by default.
pub const MAX_HEADERS: usize = 8;
/// Bytes of extension headers that a walk passes by default.
pub const MAX_BYTES: usize = 512;

/// A fragment header.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct FragmentHeader {
    next_header: u8,
    reserved: u8,
    offset: U16,
    identification: U32,
}
header!(FragmentHeader, 8);

impl FragmentHeader {
    /// A header of these fields; the offset counts units of 8 bytes.
    #[must_use]
    pub const fn new(
        next: IpProtocol,
        offset: u16,
        more: bool,
        identification: u32,
    ) -> FragmentHeader {
        let offset = U16::new(offset << 3 | more as u16);
        FragmentHeader {
            next_header: next.0,
            reserved: 0,
            offset,
            identification: U32::new(identification),
        }
    }

    /// What follows; of a later piece, what the first one begins with.
    #[must_use]
    pub const fn next_header(&self) -> IpProtocol {
        IpProtocol(self.next_header)
    }

    /// Where this piece belongs, in units of 8 bytes.
    #[must_use]
    pub const fn offset(&self) -> u16 {
        self.offset.get() >> 3
    }

    /// Whether pieces follow this one.
    #[must_use]
    pub const fn more(&self) -> bool {
        self.offset.get() & 1 != 0
    }

    /// What tells the pieces of one packet from those of others.
    #[must_use]
    pub const fn identification(&self) -> u32 {
        self.identification.get()
    }

    /// Whether it is both first and last: an atomic fragment (RFC 6946), handled as a whole packet.
    #[must_use]
    pub const fn is_atomic(&self) -> bool {
        self.offset.get() & 0xfff9 == 0
    }
}

/// What a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// What the packet carries. [`IpProtocol::NO_NEXT`] when nothing.
    pub protocol: IpProtocol,
    /// Where it begins, counted from the start of the IPv6 header; at most the packet's length.
    pub offset: usize,
    /// Where the octet is that names it.
    pub named_at: usize,
    /// The fragment header, if there is one.
    pub fragment: Option<FragmentHeader>,
    /// Whether there are hop-by-hop options.
    pub hop_by_hop: bool,
    /// Extension headers passed.
    pub headers: usize,
}

impl Chain {
    /// Whether this is a piece of a packet, the first one included; atomic fragments are none.
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        match &self.fragment {
            Some(fragment) => !fragment.is_atomic(),
            None => false,
        }
    }

    /// Whether this is a piece that does not begin with the packet's transport header.
    #[must_use]
    pub const fn is_later_fragment(&self) -> bool {
        match &self.fragment {
            Some(fragment) => fragment.offset() != 0,
            None => false,
        }
    }
}

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The packet ends within an extension header, or before its own fixed header ends.
    #[error("it ends within a header")]
    Truncated,
    /// More extension headers than are passed.
    #[error("too many extension headers")]
    TooMany,
    /// More bytes of extension headers than are passed.
    #[error("too many bytes of extension headers")]
    TooLong,
    /// Hop-by-hop options behind another extension header (RFC 8200 section 4.1).
    #[error("hop-by-hop options are not first")]
    Misplaced,
    /// A second fragment header within one packet.
    #[error("a second fragment header")]
    Refragmented,
}

/// A fault, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at octet {at}: {fault}")]
pub struct ChainError {
    /// What was wrong.
    pub fault: Fault,
    /// The octet to blame, from the start of the IPv6 header.
    pub at: usize,
}

/// Walks from the fixed header of `packet` to what it carries, past at most `headers` extension headers
/// of `bytes` bytes in all. [`MAX_HEADERS`] and [`MAX_BYTES`] are good bounds.
///
/// # Errors
/// What was wrong, and where. Whatever it was, the fixed header may still be believed, if there is one.
pub fn walk(packet: &[u8], headers: usize, bytes: usize) -> Result<Chain, ChainError> {
    let Some((fixed, _)) = Ipv6Header::read(packet) else {
        return Err(ChainError {
            fault: Fault::Truncated,
            at: packet.len(),
        });
    };
    let (offset, named_at) = (Ipv6Header::LEN, 6);
    let mut chain = Chain {
        protocol: fixed.next_header(),
        offset,
        named_at,
        fragment: None,
        hop_by_hop: false,
        headers: 0,
    };
    loop {
        let at = chain.offset;
        let misplaced = chain.protocol == IpProtocol::HOP_BY_HOP && chain.headers > 0;
        let again = chain.protocol == IpProtocol::FRAGMENT && chain.fragment.is_some();
        if misplaced || again {
            let fault = if misplaced {
                Fault::Misplaced
            } else {
                Fault::Refragmented
            };
            return Err(ChainError {
                fault,
                at: chain.named_at,
            });
        }
        let Some(unit) = unit(chain.protocol) else {
            return Ok(chain);
        };
        if chain.headers == headers {
            return Err(ChainError {
                fault: Fault::TooMany,
                at: chain.named_at,
            });
        }
        let Some(&[next, length]) = packet.get(at..).and_then(<[u8]>::first_chunk) else {
            return Err(ChainError {
                fault: Fault::Truncated,
                at: packet.len(),
            });
        };
        let length = unit.bytes(length);
        let end = at + length;
        if end - Ipv6Header::LEN > bytes {
            return Err(ChainError {
                fault: Fault::TooLong,
                at: at + 1,
            });
        }
        if end > packet.len() {
            return Err(ChainError {
                fault: Fault::Truncated,
                at: packet.len(),
            });
        }
        chain.hop_by_hop |= chain.protocol == IpProtocol::HOP_BY_HOP;
        if chain.protocol == IpProtocol::FRAGMENT {
            chain.fragment = packet
                .get(at..)
                .and_then(FragmentHeader::read)
                .map(|(fragment, _)| *fragment);
        }
        (chain.protocol, chain.offset, chain.named_at) = (IpProtocol(next), end, at);
        chain.headers += 1;
        if chain.is_later_fragment() {
            return Ok(chain);
        }
    }
}

/// How an extension header says its length.
enum Unit {
    /// In 8 bytes, the first not counted.
    Eight,
    /// In 4 bytes, the first two not counted (RFC 4302 section 2.2).
    Four,
    /// Not at all: it has 8.
    Fixed,
}

impl Unit {
    const fn bytes(&self, said: u8) -> usize {
        match self {
            Unit::Eight => said as usize * 8 + 8,
            Unit::Four => said as usize * 4 + 8,
            Unit::Fixed => 8,
        }
    }
}

const fn unit(protocol: IpProtocol) -> Option<Unit> {
    match protocol {
        IpProtocol::HOP_BY_HOP | IpProtocol::ROUTING | IpProtocol::DESTINATION_OPTIONS => {
            Some(Unit::Eight)
        }
        IpProtocol::AUTHENTICATION => Some(Unit::Four),
        IpProtocol::FRAGMENT => Some(Unit::Fixed),
        _ => None,
    }
}
