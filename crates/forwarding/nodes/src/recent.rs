//! A small memory of what was done a moment ago, so that a storm of the same thing does it once.
//!
//! Direct-mapped, of fixed size: a collision forgets, which only means doing the thing again.

use weir_graph::HoldKey;

const PLACES: usize = 256;

/// A key of what packets wait for.
pub(crate) fn key(wanted: HoldKey) -> u64 {
    mix(wanted.what, u64::from(wanted.kind))
}

/// A key of an address and something else. Whoever finds two addresses of one key only has one of them asked
/// for a second later.
pub(crate) fn mix(address: u128, beside: u64) -> u64 {
    let upper =
        ((address >> 64) as u64 ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let both = (upper ^ upper.rotate_left(31) ^ address as u64).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (both ^ both >> 29 ^ beside.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Remembers keys for a while.
#[derive(Debug)]
pub(crate) struct Recent {
    places: Box<[(u64, u64); PLACES]>,
    time: u64,
}

impl Recent {
    /// Remembers for `time` nanoseconds.
    pub(crate) fn new(time: u64) -> Recent {
        Recent {
            places: Box::new([(0, 0); PLACES]),
            time,
        }
    }

    /// Whether `key` is new, or was last new longer ago than the time; then it counts as new now.
    pub(crate) fn is_new(&mut self, key: u64, now: u64) -> bool {
        let place = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % PLACES;
        let (known, until) = self.places[place];
        if known == key && now < until {
            return false;
        }
        self.places[place] = (key, now.saturating_add(self.time));
        true
    }
}
