//! UDP (RFC 768) and the fixed part of TCP (RFC 9293 section 3.1).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header;

/// A UDP header.
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
pub struct UdpHeader {
    source: U16,
    destination: U16,
    length: U16,
    checksum: U16,
}
header!(UdpHeader, 8);

impl UdpHeader {
    /// A header of these fields, without a checksum.
    #[inline]
    #[must_use]
    pub const fn new(source: u16, destination: u16, length: u16) -> UdpHeader {
        UdpHeader {
            source: U16::new(source),
            destination: U16::new(destination),
            length: U16::new(length),
            checksum: U16::ZERO,
        }
    }

    /// The sender's port.
    #[inline(always)]
    #[must_use]
    pub const fn source(&self) -> u16 {
        self.source.get()
    }

    /// The receiver's port.
    #[inline(always)]
    #[must_use]
    pub const fn destination(&self) -> u16 {
        self.destination.get()
    }

    /// Bytes of header and payload.
    #[inline(always)]
    #[must_use]
    pub const fn length(&self) -> u16 {
        self.length.get()
    }

    /// The checksum with the pseudo-header; 0 means none was computed.
    #[inline(always)]
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Names the sender's port.
    #[inline(always)]
    pub fn set_source(&mut self, port: u16) {
        self.source = U16::new(port);
    }

    /// Names the receiver's port.
    #[inline(always)]
    pub fn set_destination(&mut self, port: u16) {
        self.destination = U16::new(port);
    }

    /// Says how many bytes header and payload have.
    #[inline(always)]
    pub fn set_length(&mut self, bytes: u16) {
        self.length = U16::new(bytes);
    }

    /// Writes the checksum; [`crate::checksum::udp4`] computes it.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }
}

/// The fixed part of a TCP header; options are the bytes behind.
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
pub struct TcpHeader {
    source: U16,
    destination: U16,
    sequence: U32,
    acknowledgement: U32,
    offset: u8,
    /// FIN, SYN, RST, PSH, ACK, URG, ECE and CWR from the lowest bit up.
    pub flags: u8,
    window: U16,
    checksum: U16,
    urgent: U16,
}
header!(TcpHeader, 20);

impl TcpHeader {
    /// The sender has finished.
    pub const FIN: u8 = 1;
    /// The sequence numbers begin here.
    pub const SYN: u8 = 2;
    /// The connection is refused or over.
    pub const RST: u8 = 4;
    /// Hand it to the program.
    pub const PSH: u8 = 8;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 16;

    /// A header without options, whose checksum is still to be set.
    #[inline]
    #[must_use]
    pub const fn new(
        source: u16,
        destination: u16,
        sequence: u32,
        acknowledgement: u32,
        flags: u8,
        window: u16,
    ) -> TcpHeader {
        TcpHeader {
            source: U16::new(source),
            destination: U16::new(destination),
            sequence: U32::new(sequence),
            acknowledgement: U32::new(acknowledgement),
            offset: 0x50,
            flags,
            window: U16::new(window),
            checksum: U16::ZERO,
            urgent: U16::ZERO,
        }
    }

    /// The sender's port.
    #[inline(always)]
    #[must_use]
    pub const fn source(&self) -> u16 {
        self.source.get()
    }

    /// The receiver's port.
    #[inline(always)]
    #[must_use]
    pub const fn destination(&self) -> u16 {
        self.destination.get()
    }

    /// Number of the first byte.
    #[inline(always)]
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.sequence.get()
    }

    /// Number of the byte that the sender waits for.
    #[inline(always)]
    #[must_use]
    pub const fn acknowledgement(&self) -> u32 {
        self.acknowledgement.get()
    }

    /// Bytes of the header with its options, 0 to 60; below 20 it is malformed.
    #[inline(always)]
    #[must_use]
    pub const fn header_len(&self) -> usize {
        (self.offset >> 4) as usize * 4
    }

    /// Bytes that the sender can take.
    #[inline(always)]
    #[must_use]
    pub const fn window(&self) -> u16 {
        self.window.get()
    }

    /// The checksum with the pseudo-header.
    #[inline(always)]
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Names the sender's port.
    #[inline(always)]
    pub fn set_source(&mut self, port: u16) {
        self.source = U16::new(port);
    }

    /// Names the receiver's port.
    #[inline(always)]
    pub fn set_destination(&mut self, port: u16) {
        self.destination = U16::new(port);
    }

    /// Writes the checksum; [`crate::checksum::tcp4`] computes it.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }
}
