//! ICMP (RFC 792).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header;

/// The eight bytes that begin every ICMP message.
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
pub struct IcmpHeader {
    /// What message it is: 0 echo reply, 3 unreachable, 8 echo, 11 time exceeded, and others.
    pub kind: u8,
    /// What of that kind.
    pub code: u8,
    checksum: U16,
    argument: U32,
}
header!(IcmpHeader, 8);

impl IcmpHeader {
    /// A header of these fields, whose checksum is still to be set.
    #[inline]
    #[must_use]
    pub const fn new(kind: u8, code: u8, argument: u32) -> IcmpHeader {
        IcmpHeader {
            kind,
            code,
            checksum: U16::ZERO,
            argument: U32::new(argument),
        }
    }

    /// The checksum over the whole message.
    #[inline(always)]
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// The second word: identifier and sequence number of an echo, the next hop's MTU (lower 16 bits)
    /// of a fragmentation-needed message (RFC 1191), else zero.
    #[inline(always)]
    #[must_use]
    pub const fn argument(&self) -> u32 {
        self.argument.get()
    }

    /// Of an echo: who asks.
    #[inline(always)]
    #[must_use]
    pub const fn identifier(&self) -> u16 {
        (self.argument.get() >> 16) as u16
    }

    /// Of an echo: which question.
    #[inline(always)]
    #[must_use]
    pub const fn sequence(&self) -> u16 {
        self.argument.get() as u16
    }

    /// Writes the checksum; [`crate::checksum::internet`] over the message computes it.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }

    /// Writes the second word.
    #[inline(always)]
    pub fn set_argument(&mut self, argument: u32) {
        self.argument = U32::new(argument);
    }
}
