//! What is known of a packet beside its bytes.
//!
//! The hot part travels in the handle ([`crate::Pkt`]); this is the rest, one cache line a packet,
//! touched only by those who need it. Most fields mean something only when the matching bit of
//! [`Flags`] is set, so that a fresh packet needs no clearing.

use std::ops::{BitAnd, BitOr, BitOrAssign};

/// Bits that travel in the handle.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub(crate) u16);

impl Flags {
    /// No bit set.
    pub const NONE: Flags = Flags(0);
    /// The destination MAC is a group address but not broadcast.
    pub const MULTICAST: Flags = Flags(1 << 0);
    /// The destination MAC is ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: Flags = Flags(1 << 1);
    /// The packet spans several chunks; `Meta::total_len` and the chain are valid.
    pub const CHAINED: Flags = Flags(1 << 2);
    /// A tap marked the packet.
    pub const MARKED: Flags = Flags(1 << 3);
    /// `Meta::flow_hash` is valid.
    pub const HASHED: Flags = Flags(1 << 4);
    /// The packet is traced; `Meta::trace` is valid.
    pub const TRACED: Flags = Flags(1 << 5);
    /// This router made the packet itself.
    pub const ORIGINATED: Flags = Flags(1 << 6);
    /// `Meta::ingress_time` is valid.
    pub const TIMED: Flags = Flags(1 << 7);
    /// The packet waited in a hold queue already; it is not held a second time.
    pub const HELD: Flags = Flags(1 << 8);
    /// The packet is plain IPv4, validated, and the handle's `aux` word is its destination in host order.
    pub const PLAIN_IP4: Flags = Flags(1 << 9);
    /// The packet is plain IPv6 between two hosts, validated.
    pub const PLAIN_IP6: Flags = Flags(1 << 10);

    /// `Meta::table` is valid: the packet is routed by that table, whatever its interface's is.
    pub const TABLED: Flags = Flags(1 << 11);
    /// This router has put the packet into a tunnel; it goes into no second one.
    pub const TUNNELLED: Flags = Flags(1 << 12);

    /// The bits of [`crate::Pkt::priority`].
    pub const PRIORITY: Flags = Flags(7 << Flags::PRIORITY_AT);
    pub(crate) const PRIORITY_AT: u16 = 13;

    /// With the bits of `other`; for constants.
    #[inline(always)]
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The raw bits.
    #[inline(always)]
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether any bit of `other` is set.
    #[inline(always)]
    #[must_use]
    pub const fn any(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Without the bits of `other`.
    #[inline(always)]
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    #[inline(always)]
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    #[inline(always)]
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

impl BitAnd for Flags {
    type Output = Flags;
    #[inline(always)]
    fn bitand(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }
}

/// The cold metadata of one chunk: one cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Meta {
    /// Nanoseconds of the router's clock when the packet came in (`Flags::TIMED`).
    pub ingress_time: u64,
    /// Routing table (VRF) that looks the packet up (`Flags::TABLED`).
    pub table: u32,
    /// Hash over the flow's addresses and ports (`Flags::HASHED`).
    pub flow_hash: u32,
    /// What the tap that marked the packet stored in it when it was held or handed to another worker.
    pub mark: u32,
    /// The port that the packet came in by, as a member of the bond that is its interface; noted only where somebody asks.
    pub member: u32,
    /// Number of the packet's trace record (`Flags::TRACED`).
    pub trace: u32,
    /// Offset of the Ethernet header from the first byte, for nodes behind it.
    pub l2_offset: u16,
    /// A code from the node before, for example which ICMP error to send.
    pub code: u16,
    /// An argument to `code`, for example the MTU to report.
    pub argument: u32,
    /// Bytes of the whole chain (`Flags::CHAINED`, head only).
    pub(crate) total_len: u32,
    /// The next chunk of the chain plus one; 0 ends it (`Flags::CHAINED`).
    pub(crate) next: u32,
    /// As a later segment of a chain: bytes in this chunk.
    pub(crate) segment_len: u16,
    /// As a later segment of a chain: bytes in front of them.
    pub(crate) segment_head: u16,
    /// Which pool the chunk belongs to; set once when the pool is made.
    pub(crate) pool: Option<&'static crate::pool::Shared>,
}

const _: () = assert!(size_of::<Meta>() == 64);
