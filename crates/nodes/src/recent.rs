//! A small memory of what was done a moment ago, so that a storm of the same thing does it once.
//!
//! Direct-mapped, of fixed size: a collision forgets, which only means doing the thing again.

const PLACES: usize = 256;

/// Remembers keys for a while.
#[derive(Debug)]
pub(crate) struct Recent {
    places: Box<[(u64, u64); PLACES]>,
    time: u64,
}

impl Recent {
    /// Remembers for `time` nanoseconds.
    pub(crate) fn new(time: u64) -> Recent {
        Recent { places: Box::new([(0, 0); PLACES]), time }
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
