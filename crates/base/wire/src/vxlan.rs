//! VXLAN (RFC 7348 section 5): Ethernet over UDP, port 4789.

use zerocopy::byteorder::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header;

/// The eight bytes between UDP and the inner frame.
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
pub struct VxlanHeader {
    flags: U32,
    vni: U32,
}
header!(VxlanHeader, 8);

/// The I flag, which says that there is a VNI.
const VALID: u32 = 0x0800_0000;

impl VxlanHeader {
    /// The UDP port that VXLAN listens on (IANA).
    pub const PORT: u16 = 4789;

    /// A header of a segment; higher bits than 24 are cut off.
    #[inline]
    #[must_use]
    pub const fn new(vni: u32) -> VxlanHeader {
        VxlanHeader {
            flags: U32::new(VALID),
            vni: U32::new(vni << 8),
        }
    }

    /// Whether it names a segment at all. All other flags are to be ignored (RFC 7348 section 5).
    #[inline(always)]
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.flags.get() & VALID != 0
    }

    /// The segment, 24 bits.
    #[inline(always)]
    #[must_use]
    pub const fn vni(&self) -> u32 {
        self.vni.get() >> 8
    }
}
