//! Routes that are added together: neighbors of each other below one slot of the root.
//!
//! A kernel's dump, a daemon's replay and a daemon that writes in order have such runs. Used by the control thread.

use super::Grower;
use crate::rib::{self, Full, Prefix};

/// Routes below one slot of the root that are added together, at least, and how many times as many may be there already.
const TOGETHER: usize = 4;
const FEW_OLD: usize = 16;

impl Grower {
    /// Adds routes in their order. Where many of them lie below one slot of the root, its subtree is made anew once, which is
    /// several times as fast as one by one; elsewhere they are added one by one. When memory is lacking, a part is in.
    pub(crate) fn insert_all(&mut self, routes: &[(Prefix, u32)]) -> Result<(), Full> {
        let is_deep = |route: &&(Prefix, u32)| route.0.level() >= 2;
        for (prefix, group) in routes.iter().filter(|route| !is_deep(route)) {
            self.insert(prefix, *group)?;
        }
        let mut deep: Vec<(Prefix, u32)> = routes.iter().filter(is_deep).copied().collect();
        let slot_of = |(prefix, _): &(Prefix, u32)| (prefix.slot(0) << 8 | prefix.slot(1)) as u16;
        // Stable: of one prefix the last group counts.
        deep.sort_by_key(slot_of);
        for part in deep.chunk_by(|one, other| slot_of(one) == slot_of(other)) {
            let Some(slot) = part.first().map(slot_of) else {
                continue;
            };
            if part.len() < TOGETHER || part.len() * FEW_OLD < self.below(slot) {
                for (prefix, group) in part {
                    self.insert(prefix, *group)?;
                }
                continue;
            }
            self.begin();
            for (prefix, group) in part {
                if self.rib.insert(prefix, *group).is_err() {
                    self.dirty.insert(slot);
                    return Err(Full);
                }
            }
            self.grow_large();
            if self.renew(slot).is_err() {
                self.dirty.insert(slot);
                return Err(Full);
            }
        }
        Ok(())
    }

    /// The number of routes below a slot of the root.
    fn below(&self, slot: u16) -> usize {
        let octets = slot.to_be_bytes();
        let child = |number: u32, slot: u8| self.rib.node(number)?.child(usize::from(slot));
        let node = child(rib::TOP, octets[0]).and_then(|second| child(second, octets[1]));
        let node = node.and_then(|third| self.rib.node(third));
        node.map_or(0, rib::Node::below)
    }
}
