//! What makes an interface a bond: several ports as one.
//!
//! The control side works out which members carry frames now, from their links and from what LACP agreed on,
//! and puts a new value in the place of the old one; bond-output reads it. That a member is gone is one
//! publication for all flows.

/// How deep a frame is looked into to tell flows apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layers {
    /// MAC addresses.
    L2,
    /// MAC and IP addresses.
    L23,
    /// IP addresses, protocol and ports; MAC addresses of what is not IP.
    L34,
}

/// Which member a frame leaves by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// One for each flow.
    Flows(Layers),
    /// One after the other; frames of a flow may overtake each other.
    Turns,
    /// All of them.
    All,
}

/// A bond as workers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    /// Which member a frame leaves by.
    pub spread: Spread,
    /// The interfaces that frames may leave by now.
    pub members: Box<[u32]>,
    /// What makes two routers in a row choose differently.
    pub seed: u32,
    /// Whether its members speak LACP.
    pub lacp: bool,
}

impl Bond {
    /// The member for a flow's hash.
    #[inline]
    #[must_use]
    pub fn member(&self, hash: u32) -> Option<u32> {
        // The routes' next hops were chosen by the same hash: without mixing anew, a bond that is one of
        // them would see only hashes that lead to one member.
        let mut mixed = (hash ^ self.seed).wrapping_mul(0x85eb_ca6b);
        mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
        mixed ^= mixed >> 16;
        let place = (u64::from(mixed) * self.members.len() as u64) >> 32;
        self.members.get(place as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bond(members: &[u32], seed: u32) -> Bond {
        Bond {
            spread: Spread::Flows(Layers::L34),
            members: members.into(),
            seed,
            lacp: false,
        }
    }

    #[test]
    fn flows_spread_evenly_even_those_that_share_bits() {
        let bond = bond(&[5, 6, 7, 8], 77);
        // Only hashes that an earlier choice among two left over.
        let mut counts = [0u32; 4];
        for flow in 0..40_000u32 {
            let hash = flow.wrapping_mul(0x9e37_79b9) >> 1;
            counts[bond.member(hash).unwrap() as usize - 5] += 1;
        }
        assert!(
            counts.iter().all(|count| (9_000..11_000).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn nobody_is_chosen_among_none_and_seeds_differ() {
        assert_eq!(bond(&[], 0).member(7), None);
        assert_eq!(bond(&[3], 9).member(u32::MAX), Some(3));
        let (one, other) = (bond(&[1, 2], 1), bond(&[1, 2], 2));
        assert!((0..64).any(|hash| one.member(hash) != other.member(hash)));
    }
}
