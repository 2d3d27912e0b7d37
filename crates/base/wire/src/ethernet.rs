//! Ethernet II and its VLAN tags (IEEE 802.3 section 3.2.6, IEEE 802.1Q section 9).

use std::fmt;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{MacAddr, header};

/// What an Ethernet frame carries. Values without a name here are as good as those with one.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4 (RFC 894).
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP (RFC 826).
    pub const ARP: EtherType = EtherType(0x0806);
    /// A customer VLAN tag.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// A service VLAN tag.
    pub const QINQ: EtherType = EtherType(0x88a8);
    /// IPv6 (RFC 2464).
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// MPLS unicast (RFC 5332).
    pub const MPLS: EtherType = EtherType(0x8847);
    /// MPLS whose top label was assigned by who sends upstream (RFC 5332).
    pub const MPLS_UPSTREAM: EtherType = EtherType(0x8848);
    /// Slow protocols: LACP and its markers (IEEE 802.3 annex 57A).
    pub const SLOW: EtherType = EtherType(0x8809);

    /// Whether a VLAN tag follows.
    #[inline(always)]
    #[must_use]
    pub const fn is_tag(self) -> bool {
        matches!(self, EtherType::VLAN | EtherType::QINQ)
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EtherType::IPV4 => f.write_str("ipv4"),
            EtherType::ARP => f.write_str("arp"),
            EtherType::VLAN => f.write_str("vlan"),
            EtherType::QINQ => f.write_str("qinq"),
            EtherType::IPV6 => f.write_str("ipv6"),
            EtherType::MPLS => f.write_str("mpls"),
            EtherType::SLOW => f.write_str("slow"),
            EtherType(other) => write!(f, "{other:#06x}"),
        }
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The header of an Ethernet II frame.
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
pub struct EthernetHeader {
    /// The station or group that the frame is for.
    pub destination: MacAddr,
    /// The station that sent it.
    pub source: MacAddr,
    ethertype: U16,
}
header!(EthernetHeader, 14);

impl EthernetHeader {
    /// A header of these fields.
    #[inline]
    #[must_use]
    pub const fn new(
        destination: MacAddr,
        source: MacAddr,
        ethertype: EtherType,
    ) -> EthernetHeader {
        EthernetHeader {
            destination,
            source,
            ethertype: U16::new(ethertype.0),
        }
    }

    /// What follows; below 1536 it would be a length (802.3), which nothing here takes for a type.
    #[inline(always)]
    #[must_use]
    pub const fn ethertype(&self) -> EtherType {
        EtherType(self.ethertype.get())
    }

    /// Says what follows.
    #[inline(always)]
    pub fn set_ethertype(&mut self, ethertype: EtherType) {
        self.ethertype = U16::new(ethertype.0);
    }
}

/// The four bytes of a VLAN tag after its own ethertype.
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
pub struct VlanTag {
    control: U16,
    ethertype: U16,
}
header!(VlanTag, 4);

impl VlanTag {
    /// A tag of a VLAN (12 bits) and a priority (3 bits); higher bits are cut off.
    #[inline]
    #[must_use]
    pub const fn new(vlan: u16, priority: u8, ethertype: EtherType) -> VlanTag {
        VlanTag {
            control: U16::new(((priority & 7) as u16) << 13 | (vlan & 0xfff)),
            ethertype: U16::new(ethertype.0),
        }
    }

    /// The VLAN, 0 to 4095; 0 means only a priority (802.1Q table 9-2).
    #[inline(always)]
    #[must_use]
    pub const fn vlan(&self) -> u16 {
        self.control.get() & 0xfff
    }

    /// The priority, 0 to 7.
    #[inline(always)]
    #[must_use]
    pub const fn priority(&self) -> u8 {
        (self.control.get() >> 13) as u8
    }

    /// Whether the frame may rather be dropped than others.
    #[inline(always)]
    #[must_use]
    pub const fn drop_eligible(&self) -> bool {
        self.control.get() & 0x1000 != 0
    }

    /// What follows the tag.
    #[inline(always)]
    #[must_use]
    pub const fn ethertype(&self) -> EtherType {
        EtherType(self.ethertype.get())
    }

    /// Priority, drop eligibility and VLAN together: the tag control information.
    #[inline(always)]
    #[must_use]
    pub const fn control(&self) -> u16 {
        self.control.get()
    }

    /// Writes the tag control information.
    #[inline(always)]
    pub fn set_control(&mut self, control: u16) {
        self.control = U16::new(control);
    }

    /// Gives it another priority, 0 to 7; VLAN and the rest stay.
    #[inline(always)]
    pub fn set_priority(&mut self, priority: u8) {
        self.control = U16::new((self.control.get() & 0x1fff) | u16::from(priority & 7) << 13);
    }

    /// Says whether the frame may rather be dropped than others.
    #[inline(always)]
    pub fn set_drop_eligible(&mut self, eligible: bool) {
        self.control = U16::new((self.control.get() & !0x1000) | u16::from(eligible) << 12);
    }

    /// Says what follows the tag.
    #[inline(always)]
    pub fn set_ethertype(&mut self, ethertype: EtherType) {
        self.ethertype = U16::new(ethertype.0);
    }

    /// Names another VLAN; priority and the rest stay.
    #[inline(always)]
    pub fn set_vlan(&mut self, vlan: u16) {
        self.control = U16::new((self.control.get() & 0xf000) | (vlan & 0xfff));
    }
}
