//! IPv6, its fixed header (RFC 8200 section 3).

use std::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{IpProtocol, header};

/// The 40 bytes of every IPv6 header; extension headers are the bytes behind.
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
pub struct Ipv6Header {
    version_class_flow: U32,
    payload_len: U16,
    next_header: u8,
    /// Hops that the packet may still go.
    pub hop_limit: u8,
    /// Where it comes from.
    pub source: [u8; 16],
    /// Where it goes.
    pub destination: [u8; 16],
}
header!(Ipv6Header, 40);

impl Ipv6Header {
    /// A header of these fields, class and flow label 0.
    #[inline]
    #[must_use]
    pub const fn new(
        source: [u8; 16],
        destination: [u8; 16],
        next: IpProtocol,
        hop_limit: u8,
        payload_len: u16,
    ) -> Ipv6Header {
        Ipv6Header {
            version_class_flow: U32::new(6 << 28),
            payload_len: U16::new(payload_len),
            next_header: next.0,
            hop_limit,
            source,
            destination,
        }
    }

    /// The version, 6 if this is what it claims to be.
    #[inline(always)]
    #[must_use]
    pub const fn version(&self) -> u8 {
        (self.version_class_flow.get() >> 28) as u8
    }

    /// Differentiated services and congestion.
    #[inline(always)]
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> 20) as u8
    }

    /// The flow label, 20 bits.
    #[inline(always)]
    #[must_use]
    pub const fn flow_label(&self) -> u32 {
        self.version_class_flow.get() & 0xf_ffff
    }

    /// Bytes behind this header.
    #[inline(always)]
    #[must_use]
    pub const fn payload_len(&self) -> u16 {
        self.payload_len.get()
    }

    /// What follows: an extension header or a protocol.
    #[inline(always)]
    #[must_use]
    pub const fn next_header(&self) -> IpProtocol {
        IpProtocol(self.next_header)
    }

    /// Where it comes from, for printing.
    #[must_use]
    pub const fn source_addr(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.source)
    }

    /// Where it goes, for printing.
    #[must_use]
    pub const fn destination_addr(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.destination)
    }

    /// Says how many bytes follow.
    #[inline(always)]
    pub fn set_payload_len(&mut self, bytes: u16) {
        self.payload_len = U16::new(bytes);
    }

    /// Sets differentiated services and congestion.
    #[inline(always)]
    pub fn set_traffic_class(&mut self, class: u8) {
        self.version_class_flow =
            U32::new((self.version_class_flow.get() & 0xf00f_ffff) | u32::from(class) << 20);
    }

    /// Sets the flow label; what is over 20 bits is cut off.
    #[inline(always)]
    pub fn set_flow_label(&mut self, label: u32) {
        self.version_class_flow =
            U32::new((self.version_class_flow.get() & 0xfff0_0000) | (label & 0xf_ffff));
    }

    /// Says what follows.
    #[inline(always)]
    pub fn set_next_header(&mut self, next: IpProtocol) {
        self.next_header = next.0;
    }
}
