//! ARP for IPv4 over Ethernet (RFC 826).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{EtherType, MacAddr, header};

/// An ARP packet whose addresses are Ethernet's and IPv4's; see [`ArpPacket::is_ethernet_ipv4`].
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
pub struct ArpPacket {
    hardware: U16,
    protocol: U16,
    hardware_len: u8,
    protocol_len: u8,
    operation: U16,
    /// The sender's MAC address.
    pub sender_mac: MacAddr,
    sender: U32,
    /// The target's MAC address; nothing of meaning in a request.
    pub target_mac: MacAddr,
    target: U32,
}
header!(ArpPacket, 28);

impl ArpPacket {
    /// Who has that address?
    pub const REQUEST: u16 = 1;
    /// I have.
    pub const REPLY: u16 = 2;
    const ETHERNET: u16 = 1;

    /// A packet of these fields.
    #[inline]
    #[must_use]
    pub const fn new(
        operation: u16,
        sender_mac: MacAddr,
        sender: u32,
        target_mac: MacAddr,
        target: u32,
    ) -> ArpPacket {
        ArpPacket {
            hardware: U16::new(ArpPacket::ETHERNET),
            protocol: U16::new(EtherType::IPV4.0),
            hardware_len: 6,
            protocol_len: 4,
            operation: U16::new(operation),
            sender_mac,
            sender: U32::new(sender),
            target_mac,
            target: U32::new(target),
        }
    }

    /// Whether the fields after the operation are what this type takes them for.
    #[inline(always)]
    #[must_use]
    pub const fn is_ethernet_ipv4(&self) -> bool {
        self.hardware.get() == ArpPacket::ETHERNET
            && self.protocol.get() == EtherType::IPV4.0
            && self.hardware_len == 6
            && self.protocol_len == 4
    }

    /// What it asks or says: [`ArpPacket::REQUEST`], [`ArpPacket::REPLY`] or something else.
    #[inline(always)]
    #[must_use]
    pub const fn operation(&self) -> u16 {
        self.operation.get()
    }

    /// The sender's IPv4 address; 0 in a probe (RFC 5227).
    #[inline(always)]
    #[must_use]
    pub const fn sender(&self) -> u32 {
        self.sender.get()
    }

    /// The IPv4 address asked for, or the receiver's.
    #[inline(always)]
    #[must_use]
    pub const fn target(&self) -> u32 {
        self.target.get()
    }
}
