//! Which parts of an array map are in use. A new version of an ACL is written beside the old one, and the old
//! one's place becomes free only when no port refers to it any more.

/// Consecutive entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Space {
    /// The first entry.
    pub base: u32,
    /// Their number.
    pub length: u32,
}

/// The used parts of an array of `size` entries.
#[derive(Clone, Debug)]
pub struct Regions {
    size: u32,
    used: Vec<Space>,
}

impl Regions {
    /// An array that nothing uses.
    #[must_use]
    pub fn new(size: u32) -> Regions {
        Regions {
            size,
            used: Vec::new(),
        }
    }

    /// Marks entries as used.
    pub fn mark(&mut self, space: Space) {
        self.used.push(space);
        self.used.sort_unstable();
    }

    /// The first gap with room for `length` entries; it is used from now on.
    pub fn take(&mut self, length: u32) -> Option<Space> {
        let mut base = 0u32;
        for used in &self.used {
            if used.base.saturating_sub(base) >= length {
                break;
            }
            base = base.max(used.base.saturating_add(used.length));
        }
        let space = Space { base, length };
        (base.checked_add(length)? <= self.size).then(|| self.mark(space))?;
        Some(space)
    }

    /// Entries are free again.
    pub fn free(&mut self, space: Space) {
        self.used.retain(|used| *used != space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_used_again() {
        let mut regions = Regions::new(100);
        let first = regions.take(40).unwrap();
        let second = regions.take(40).unwrap();
        assert_eq!((first.base, second.base), (0, 40));
        assert!(regions.take(30).is_none());
        regions.free(first);
        assert_eq!(
            regions.take(30),
            Some(Space {
                base: 0,
                length: 30
            })
        );
        assert_eq!(
            regions.take(20),
            Some(Space {
                base: 80,
                length: 20
            })
        );
        assert!(regions.take(11).is_none());
    }
}
