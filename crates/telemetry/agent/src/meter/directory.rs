//! Where in the manifest a packet is that does not leave in the order in which it came.

use super::manifest::STATES;

/// From identities to places; made when it is asked, for one turn.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// Places plus one, by hash of the identity; 0: free. Twice as many as there can be places.
    slots: Vec<(usize, u32)>,
    /// So many places are in it.
    noted: usize,
}

impl Directory {
    pub(super) fn resize(&mut self, places: usize) {
        self.slots.clear();
        self.slots.resize(2 * places, (0, 0));
        self.noted = 0;
    }

    /// Takes in the identities that came since.
    pub(super) fn note(&mut self, packets: &[usize]) {
        for (place, packet) in packets.iter().enumerate().skip(self.noted) {
            let identity = packet & !STATES;
            let slot = self.slot(identity);
            if let Some(free) = self.slots.get_mut(slot)
                && identity != 0
            {
                *free = (identity, place as u32 + 1);
            }
        }
        self.noted = packets.len();
    }

    pub(super) fn find(&self, identity: usize) -> Option<usize> {
        let (_, place) = *self.slots.get(self.slot(identity))?;
        (place as usize).checked_sub(1)
    }

    /// The slot of an identity, or the one where it would be.
    fn slot(&self, identity: usize) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        // Metadata is a cache line or more apart; Fibonacci hashing spreads what is in a row.
        let mut slot = (identity >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 & mask;
        // At most half of the slots are taken.
        while self
            .slots
            .get(slot)
            .is_some_and(|(other, place)| *place != 0 && *other != identity)
        {
            slot = (slot + 1) & mask;
        }
        slot
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        if self.noted > 0 {
            self.slots.fill((0, 0));
            self.noted = 0;
        }
    }
}
