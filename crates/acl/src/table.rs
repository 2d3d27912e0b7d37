//! The value that is searched: a few trees, leaves, and groups of eight rules.
//!
//! A node is one word of 64 bits. An inner node says which bits of which word of the key to take and
//! where its children begin, so that a step down is a load, a shift, a mask and an addition. A leaf
//! names one or more groups; a group may serve many leaves, and may hold rules that a leaf did not ask
//! for: rules are compared in full, so that one match too many is a right match too.
//!
//! A batch goes down level by level, all keys together, and keys that have arrived are set aside
//! without a branch: what is left to mispredict is next to nothing, and the core overlaps the waits of
//! many keys by itself. A leaf whose best rule cannot beat what was already found is not compared.

use crate::family::{Family, NONE};
use crate::key::Words;

/// Keys that go down together.
pub(crate) const CHUNK: usize = 64;

/// A node: children's base in the lower half, then shift (5 bits), word (at bit 40) and mask (at bit 48).
/// A mask of 0 makes it a leaf, whose number the lower half is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node(u64);

impl Node {
    pub(crate) const fn leaf(leaf: u32) -> Node {
        Node(leaf as u64)
    }

    pub(crate) const fn inner(base: u32, word: u8, shift: u8, bits: u8) -> Node {
        let mask = (1u64 << bits) - 1;
        Node(base as u64 | ((shift & 31) as u64) << 32 | ((word & 15) as u64) << 40 | mask << 48)
    }

    #[inline(always)]
    const fn is_inner(self) -> bool {
        self.0 >> 48 != 0
    }

    /// Where the key's way goes on; of a leaf, the leaf's number.
    #[inline(always)]
    fn next(self, key: &impl Words) -> u32 {
        let word = key.word((self.0 >> 40) as usize & 15);
        (self.0 as u32).wrapping_add((word >> ((self.0 >> 32) & 31)) & (self.0 >> 48) as u32)
    }
}

/// Where a way down ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// The first rule of its groups that was meant.
    pub(crate) first: u32,
    /// The rule that everything which comes here matches, or [`NONE`]; later than those in the groups.
    pub(crate) fallback: u32,
    /// Its groups; none of an empty leaf.
    pub(crate) group: u32,
    pub(crate) groups: u32,
}

/// The leaf without rules.
pub(crate) const EMPTY: u32 = 0;

/// All rules for one family, for one kind of key.
pub(crate) struct Table<F: Family> {
    /// The rule that every key matches, or [`NONE`]; later than all in the trees.
    pub(crate) always: u32,
    pub(crate) roots: Vec<Node>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) groups: Vec<F::Group>,
}

/// What a search did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effort {
    pub(crate) steps: u32,
    pub(crate) leaves: u32,
    pub(crate) scans: u32,
}

impl<F: Family> Table<F> {
    pub(crate) fn empty() -> Table<F> {
        let leaf = Leaf { first: NONE, fallback: NONE, group: 0, groups: 0 };
        Table { always: NONE, roots: Vec::new(), nodes: Vec::new(), leaves: vec![leaf], groups: Vec::new() }
    }

    /// Bytes that searches read.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.leaves) + size_of_val(&*self.groups) + size_of_val(&*self.roots)
    }

    /// The better of `best` and what the groups of a leaf hold.
    #[inline(always)]
    fn scan(&self, leaf: Leaf, key: &F::Key, best: u32, effort: &mut Effort) -> u32 {
        let groups = self.groups.get(leaf.group as usize..).unwrap_or_default();
        for group in groups.iter().take(leaf.groups as usize) {
            effort.scans += 1;
            let found = F::scan(group, key);
            // Groups of one leaf hold later and later rules.
            if found != NONE {
                return best.min(found);
            }
        }
        best
    }

    /// The first rule that the key matches, or [`NONE`].
    pub(crate) fn search(&self, key: &F::Key, effort: &mut Effort) -> u32 {
        let mut best = self.always;
        for root in &self.roots {
            let mut node = *root;
            while node.is_inner() {
                effort.steps += 1;
                let Some(child) = self.nodes.get(node.next(key) as usize) else { return best };
                node = *child;
            }
            let Some(leaf) = self.leaves.get(node.0 as u32 as usize) else { return best };
            effort.leaves += u32::from(node.0 as u32 != EMPTY);
            best = best.min(leaf.fallback);
            if leaf.first < best {
                best = self.scan(*leaf, key, best, effort);
            }
        }
        best
    }

    /// [`Table::search`] of up to [`CHUNK`] keys, which differ in nothing but speed.
    #[inline(always)]
    pub(crate) fn search_chunk(&self, keys: &[F::Key], best: &mut [u32]) {
        best.fill(self.always);
        for root in &self.roots {
            self.search_tree(*root, keys, best);
        }
    }

    #[inline(always)]
    fn search_tree(&self, root: Node, keys: &[F::Key], best: &mut [u32]) {
        let mut arrived = [(0u32, 0u32); CHUNK];
        let mut count = 0;
        if root.is_inner() {
            let mut on_the_way = [(0u32, 0u32); CHUNK];
            for (who, (slot, key)) in on_the_way.iter_mut().zip(keys).enumerate() {
                *slot = (who as u32, root.next(key));
            }
            let mut left = keys.len().min(CHUNK);
            while left > 0 {
                let mut kept = 0;
                for n in 0..left {
                    let (who, at) = on_the_way[n % CHUNK];
                    let (Some(node), Some(key)) = (self.nodes.get(at as usize), keys.get(who as usize)) else { return };
                    let next = node.next(key);
                    on_the_way[kept % CHUNK] = (who, next);
                    arrived[count % CHUNK] = (who, next);
                    let inner = node.is_inner();
                    kept += usize::from(inner);
                    count += usize::from(!inner & (next != EMPTY));
                }
                left = kept;
            }
        } else {
            for (who, slot) in arrived.iter_mut().enumerate().take(keys.len()) {
                *slot = (who as u32, root.0 as u32);
            }
            count = keys.len().min(CHUNK);
        }
        self.search_leaves(&mut arrived, count, keys, best);
    }

    /// Looks which leaves are worth a comparison, then compares.
    #[inline(always)]
    fn search_leaves(&self, arrived: &mut [(u32, u32); CHUNK], count: usize, keys: &[F::Key], best: &mut [u32]) {
        let mut worth = 0;
        for n in 0..count {
            let (who, number) = arrived[n % CHUNK];
            let (Some(leaf), Some(best)) = (self.leaves.get(number as usize), best.get_mut(who as usize)) else { return };
            *best = (*best).min(leaf.fallback);
            arrived[worth % CHUNK] = (who, number);
            worth += usize::from(leaf.first < *best);
        }
        for n in 0..worth {
            let (who, number) = arrived[n % CHUNK];
            let (Some(leaf), Some(best), Some(key)) =
                (self.leaves.get(number as usize), best.get_mut(who as usize), keys.get(who as usize))
            else {
                return;
            };
            *best = self.scan(*leaf, key, *best, &mut Effort::default());
        }
    }
}
