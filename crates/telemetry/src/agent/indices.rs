//! By which numbers interfaces are told: the router's own, or those of the Linux interfaces that they are paired with.
//!
//! Collectors that know a machine by what Linux says of it find its interfaces under Linux's numbers. An interface
//! that is paired with none of them is told by its own number and an offset, so that it is not taken for one of Linux's.
//! Inside of the agent everything goes by the router's own numbers; they are translated where a sample is made.

use std::collections::BTreeMap;

/// Numbers of interfaces as collectors see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indices {
    /// The Linux interface that an interface is paired with, by the router's own number.
    pub pairs: BTreeMap<u32, u32>,
    /// Whether Linux's numbers are told, and what is added to those of interfaces without a pair.
    pub linux: Option<u32>,
}

impl Indices {
    /// The number that is told of an interface. 0 is no interface.
    #[must_use]
    pub fn told(&self, own: u32) -> u32 {
        match self.linux {
            None => own,
            Some(_) if own == 0 => 0,
            Some(offset) => self.pair(own).unwrap_or_else(|| own.saturating_add(offset)),
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
    fn an_interface_is_told_by_its_pairs_number_or_out_of_the_way() {
        let own = Indices { pairs: BTreeMap::from([(1, 7)]), linux: None };
        assert_eq!([0, 1, 2].map(|index| own.told(index)), [0, 1, 2]);
        let linux = Indices { linux: Some(1_000_000_000), ..own };
        assert_eq!([0, 1, 2, u32::MAX].map(|index| linux.told(index)), [0, 7, 1_000_000_002, u32::MAX]);
    }
}
