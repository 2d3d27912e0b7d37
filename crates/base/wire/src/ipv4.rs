//! IPv4 (RFC 791).

use std::fmt;
use std::net::Ipv4Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header;

/// What an IP packet carries. Values without a name here are as good as those with one.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// IPv6 options that every router on the way may look at (RFC 8200 section 4.3).
    pub const HOP_BY_HOP: IpProtocol = IpProtocol(0);
    /// ICMP (RFC 792).
    pub const ICMP: IpProtocol = IpProtocol(1);
    /// TCP (RFC 9293).
    pub const TCP: IpProtocol = IpProtocol(6);
    /// UDP (RFC 768).
    pub const UDP: IpProtocol = IpProtocol(17);
    /// IPv6 within IP (RFC 2473).
    pub const IPV6: IpProtocol = IpProtocol(41);
    /// An IPv6 routing header (RFC 8200 section 4.4).
    pub const ROUTING: IpProtocol = IpProtocol(43);
    /// An IPv6 fragment header (RFC 8200 section 4.5).
    pub const FRAGMENT: IpProtocol = IpProtocol(44);
    /// An IPsec encapsulated payload (RFC 4303); nothing behind can be read.
    pub const ESP: IpProtocol = IpProtocol(50);
    /// An IPsec authentication header (RFC 4302).
    pub const AUTHENTICATION: IpProtocol = IpProtocol(51);
    /// ICMPv6 (RFC 4443).
    pub const ICMP6: IpProtocol = IpProtocol(58);
    /// Nothing follows an IPv6 header (RFC 8200 section 4.7).
    pub const NO_NEXT: IpProtocol = IpProtocol(59);
    /// IPv6 options for the destination (RFC 8200 section 4.6).
    pub const DESTINATION_OPTIONS: IpProtocol = IpProtocol(60);
    /// SCTP (RFC 9260).
    pub const SCTP: IpProtocol = IpProtocol(132);
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            IpProtocol::ICMP => f.write_str("icmp"),
            IpProtocol::TCP => f.write_str("tcp"),
            IpProtocol::UDP => f.write_str("udp"),
            IpProtocol::ICMP6 => f.write_str("icmp6"),
            IpProtocol(other) => write!(f, "{other}"),
        }
    }
}

impl fmt::Debug for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The 20 bytes that every IPv4 header has; options are the bytes behind.
///
/// Setters leave the checksum as it is; see [`crate::checksum`].
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
pub struct Ipv4Header {
    /// Version in the upper four bits, header length in words of 32 bits in the lower: 0x45 as a rule.
    pub version_ihl: u8,
    /// Differentiated services and congestion (RFC 2474, RFC 3168).
    pub tos: u8,
    total_len: U16,
    identification: U16,
    fragment: U16,
    /// Hops that the packet may still go.
    pub ttl: u8,
    protocol: u8,
    checksum: U16,
    source: U32,
    destination: U32,
}
header!(Ipv4Header, 20);

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

impl Ipv4Header {
    /// A header without options, whose checksum is still to be set.
    #[inline]
    #[must_use]
    pub const fn new(
        source: u32,
        destination: u32,
        protocol: IpProtocol,
        ttl: u8,
        total_len: u16,
    ) -> Ipv4Header {
        Ipv4Header {
            version_ihl: 0x45,
            tos: 0,
            total_len: U16::new(total_len),
            identification: U16::ZERO,
            fragment: U16::ZERO,
            ttl,
            protocol: protocol.0,
            checksum: U16::ZERO,
            source: U32::new(source),
            destination: U32::new(destination),
        }
    }

    /// The version, 4 if this is what it claims to be.
    #[inline(always)]
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// Bytes of the header with its options, 0 to 60; below 20 it is malformed.
    #[inline(always)]
    #[must_use]
    pub const fn header_len(&self) -> usize {
        (self.version_ihl & 15) as usize * 4
    }

    /// Bytes of the packet, header included.
    #[inline(always)]
    #[must_use]
    pub const fn total_len(&self) -> u16 {
        self.total_len.get()
    }

    /// What tells the fragments of one packet from those of others.
    #[inline(always)]
    #[must_use]
    pub const fn identification(&self) -> u16 {
        self.identification.get()
    }

    /// Whether this is a piece of a packet, the first one included.
    #[inline(always)]
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.fragment.get() & (OFFSET | MORE_FRAGMENTS) != 0
    }

    /// Whether this is a piece that does not begin with the packet's transport header.
    #[inline(always)]
    #[must_use]
    pub const fn is_later_fragment(&self) -> bool {
        self.fragment.get() & OFFSET != 0
    }

    /// Whether it must not be cut.
    #[inline(always)]
    #[must_use]
    pub const fn dont_fragment(&self) -> bool {
        self.fragment.get() & DONT_FRAGMENT != 0
    }

    /// Whether pieces follow this one.
    #[inline(always)]
    #[must_use]
    pub const fn more_fragments(&self) -> bool {
        self.fragment.get() & MORE_FRAGMENTS != 0
    }

    /// Where this piece belongs, in units of 8 bytes.
    #[inline(always)]
    #[must_use]
    pub const fn fragment_offset(&self) -> u16 {
        self.fragment.get() & OFFSET
    }

    /// What it carries.
    #[inline(always)]
    #[must_use]
    pub const fn protocol(&self) -> IpProtocol {
        IpProtocol(self.protocol)
    }

    /// The header checksum.
    #[inline(always)]
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Where it comes from.
    #[inline(always)]
    #[must_use]
    pub const fn source(&self) -> u32 {
        self.source.get()
    }

    /// Where it goes.
    #[inline(always)]
    #[must_use]
    pub const fn destination(&self) -> u32 {
        self.destination.get()
    }

    /// Where it comes from, for printing.
    #[must_use]
    pub const fn source_addr(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.source.get())
    }

    /// Where it goes, for printing.
    #[must_use]
    pub const fn destination_addr(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.destination.get())
    }

    /// Says how many bytes the header has: a multiple of 4 from 20 to 60; other numbers are rounded
    /// down and cut to the field's four bits.
    #[inline]
    pub fn set_header_len(&mut self, bytes: usize) {
        self.version_ihl = (self.version_ihl & 0xf0) | ((bytes / 4) & 15) as u8;
    }

    /// Says how many bytes the packet has.
    #[inline(always)]
    pub fn set_total_len(&mut self, bytes: u16) {
        self.total_len = U16::new(bytes);
    }

    /// Names the packet that fragments belong to.
    #[inline(always)]
    pub fn set_identification(&mut self, identification: u16) {
        self.identification = U16::new(identification);
    }

    /// Says which piece this is: offset in units of 8 bytes, and whether others follow.
    #[inline]
    pub fn set_fragment(&mut self, offset: u16, more: bool) {
        let more = if more { MORE_FRAGMENTS } else { 0 };
        self.fragment =
            U16::new((self.fragment.get() & !(OFFSET | MORE_FRAGMENTS)) | (offset & OFFSET) | more);
    }

    /// Forbids or allows to cut it.
    #[inline]
    pub fn set_dont_fragment(&mut self, dont: bool) {
        let dont = if dont { DONT_FRAGMENT } else { 0 };
        self.fragment = U16::new((self.fragment.get() & !DONT_FRAGMENT) | dont);
    }

    /// Says what it carries.
    #[inline(always)]
    pub fn set_protocol(&mut self, protocol: IpProtocol) {
        self.protocol = protocol.0;
    }

    /// Writes the checksum; [`crate::checksum`] computes it.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }

    /// Says where it comes from.
    #[inline(always)]
    pub fn set_source(&mut self, source: u32) {
        self.source = U32::new(source);
    }

    /// Says where it goes.
    #[inline(always)]
    pub fn set_destination(&mut self, destination: u32) {
        self.destination = U32::new(destination);
    }
}
