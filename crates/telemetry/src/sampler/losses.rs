//! Samples that found a ring full, by interface: what each data source tells as its drops.
//!
//! Counted where a sample is lost, which is never on the usual way; read by the agent and by whoever asks.

use weir_ring::counter::Counter;

/// Interfaces that are counted apart: those with numbers below. Of others only the sum is known.
const APART: usize = 1024;

/// Losses of one worker.
#[derive(Debug)]
pub struct Losses {
    all: Counter,
    apart: Box<[Counter]>,
}

impl Default for Losses {
    fn default() -> Losses {
        Losses { all: Counter::default(), apart: (0..APART).map(|_| Counter::default()).collect() }
    }
}

impl Losses {
    #[cold]
    pub(super) fn add(&self, interface: u32) {
        self.all.add(1);
        if let Some(own) = self.apart.get(interface as usize) {
            own.add(1);
        }
    }

    /// Of all interfaces.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.all.get()
    }

    /// Of one interface; those of all of one whose number is too high to be counted apart.
    #[must_use]
    pub fn of(&self, interface: u32) -> u64 {
        self.apart.get(interface as usize).map_or_else(|| self.all.get(), Counter::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_has_its_own_and_the_sum_has_all() {
        let losses = Losses::default();
        [1, 1, 1023, 1024, u32::MAX].iter().for_each(|&interface| losses.add(interface));
        assert_eq!([0, 1, 1023].map(|interface| losses.of(interface)), [0, 2, 1]);
        assert_eq!((losses.of(1024), losses.get()), (5, 5));
    }
}
