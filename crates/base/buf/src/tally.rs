//! Sums over a vector.

use crate::{Flags, Pkt};

/// The lengths of some packets, how many of them are marked, and what flags any of them has: all in two words, so that a
/// packet costs four instructions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Lengths in the lower half, marks in the upper one, in units of their flag.
    sum: u64,
    /// Flags in the place where a handle has them.
    any: u64,
}

/// Where flags lie in a handle's word ([`Pkt::word`]).
const FLAGS: u32 = 32;
const LENGTH: u64 = 0xffff;
const MARK: u64 = (Flags::MARKED.bits() as u64) << FLAGS;

impl Tally {
    /// Of these packets: of 65,536 at most, which is many times a vector.
    #[inline(always)]
    #[must_use]
    pub fn of(packets: &[Pkt]) -> Tally {
        let mut tally = Tally::default();
        for packet in packets {
            let word = packet.word();
            tally.any |= word;
            tally.sum += word & (LENGTH | MARK);
        }
        tally
    }

    /// Bytes of the packets' first chunks.
    #[inline(always)]
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.sum & u64::from(u32::MAX)
    }

    /// How many are marked.
    #[inline(always)]
    #[must_use]
    pub fn marked(self) -> usize {
        (self.sum / MARK) as usize
    }

    /// The flags that any of them has.
    #[inline(always)]
    #[must_use]
    pub fn flags(self) -> Flags {
        Flags((self.any >> FLAGS) as u16)
    }
}
