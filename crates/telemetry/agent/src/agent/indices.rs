//! By which numbers interfaces are reported: the router's own, or those of the Linux interfaces that they are paired with.
//!
//! Collectors that know a machine by what Linux says of it find its interfaces under Linux's numbers. An interface
//! that is paired with none of them is reported by its own number and an offset, so that it is not taken for one of Linux's.
//! hsflowd does the same with what it hears through the kernel; [`Indices::netdev`] is the number that it has then.
//! Inside of the agent everything goes by the router's own numbers; they are translated where a sample is made.

use std::collections::BTreeMap;

/// Numbers of interfaces as collectors see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indices {
    /// The Linux interface that an interface is paired with, by the router's own number.
    pub pairs: BTreeMap<u32, u32>,
    /// Whether Linux's numbers are reported.
    pub linux: bool,
    /// What is added, among Linux's numbers, to those of interfaces without a pair.
    pub offset: u32,
}

impl Indices {
    /// The number by which an interface is reported. 0 is no interface.
    #[must_use]
    pub fn reported(&self, own: u32) -> u32 {
        match (self.linux, own) {
            (false, _) | (true, 0) => own,
            (true, _) => self.netdev(own),
        }
    }

    /// The number of an interface among those of Linux.
    #[must_use]
    pub fn netdev(&self, own: u32) -> u32 {
        self.pair(own)
            .unwrap_or_else(|| own.saturating_add(self.offset))
    }

    /// The number of an interface for a daemon that listens to the kernel, by which it finds the interface among
    /// those it knows: with the offset, from which it comes back to the router's own, or the pair's.
    #[must_use]
    pub fn heard(&self, own: u32) -> u32 {
        match own {
            0 => 0,
            own if self.linux => self.netdev(own),
            own => own.saturating_add(self.offset),
        }
    }

    /// The number of the Linux interface that one is paired with.
    #[must_use]
    pub fn pair(&self, own: u32) -> Option<u32> {
        self.pairs.get(&own).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_reported_by_its_pairs_number_or_out_of_the_way() {
        let own = Indices {
            pairs: BTreeMap::from([(1, 7)]),
            linux: false,
            offset: 1_000_000_000,
        };
        assert_eq!([0, 1, 2].map(|index| own.reported(index)), [0, 1, 2]);
        assert_eq!(
            [0, 1, 2].map(|index| own.heard(index)),
            [0, 1_000_000_001, 1_000_000_002]
        );
        let linux = Indices { linux: true, ..own };
        assert_eq!(
            [0, 1, 2, u32::MAX].map(|index| linux.reported(index)),
            [0, 7, 1_000_000_002, u32::MAX]
        );
        assert_eq!(
            [0, 1, 2].map(|index| linux.heard(index)),
            [0, 7, 1_000_000_002]
        );
    }
}
