//! Counters by interface: samples that found a ring full, which each data source reports as its drops, and pools.
//!
//! Written by the worker, and never where a packet passes that is not sampled; read by the agent and the API. Counters lie in
//! pages, which are made when the first interface of each is seen.

use std::sync::OnceLock;

use weir_ring::counter::Counter;

/// Interfaces of a page.
const PAGE: usize = 1024;
/// Interfaces that are counted apart: those with numbers below. Of others, which no router has, only the sum is known.
const APART: usize = PAGE * PAGE;

/// Counters of one worker.
#[derive(Debug)]
pub struct PerInterface {
    all: Counter,
    pages: Box<[OnceLock<Box<[Counter]>>]>,
}

impl Default for PerInterface {
    fn default() -> PerInterface {
        PerInterface {
            all: Counter::default(),
            pages: (0..APART / PAGE).map(|_| OnceLock::new()).collect(),
        }
    }
}

impl PerInterface {
    /// An interface is going to be sampled.
    #[cold]
    pub(super) fn begin(&self, interface: u32) {
        if let Some(page) = self.pages.get(interface as usize / PAGE) {
            page.get_or_init(|| (0..PAGE).map(|_| Counter::default()).collect());
        }
    }

    #[cold]
    pub(super) fn add(&self, interface: u32) {
        self.all.add(1);
        if let Some(own) = self.own(interface) {
            own.add(1);
        }
    }

    /// A level, of which there is no sum.
    pub(super) fn set(&self, interface: u32, level: u64) {
        if let Some(own) = self.own(interface) {
            own.set(level);
        }
    }

    fn own(&self, interface: u32) -> Option<&Counter> {
        self.pages
            .get(interface as usize / PAGE)?
            .get()?
            .get(interface as usize % PAGE)
    }

    /// Of all interfaces.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.all.get()
    }

    /// Of one interface; those of all of one whose number is too high to be counted apart.
    #[must_use]
    pub fn of(&self, interface: u32) -> u64 {
        if interface as usize >= APART {
            self.all.get()
        } else {
            self.own(interface).map_or(0, Counter::get)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_has_its_own_and_the_sum_has_all() {
        let losses = PerInterface::default();
        let lost = [1, 1, 1023, 1024, 70_000, 70_000, u32::MAX];
        lost.iter().for_each(|&interface| losses.begin(interface));
        lost.iter().for_each(|&interface| losses.add(interface));
        assert_eq!(
            [0, 1, 1023, 1024, 70_000, 70_001].map(|interface| losses.of(interface)),
            [0, 2, 1, 1, 2, 0]
        );
        assert_eq!(
            (losses.of(5000), losses.of(u32::MAX), losses.get()),
            (0, 7, 7)
        );
    }
}
