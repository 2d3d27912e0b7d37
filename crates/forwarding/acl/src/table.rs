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
/// A mask of 0 makes it a leaf: its first group in the lower half, and how many groups above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node(u64);

/// The leaf without rules.
pub(crate) const EMPTY: Node = Node(0);

impl Node {
    pub(crate) const fn leaf(group: u32, groups: u16) -> Node {
        Node(group as u64 | (groups as u64) << 32)
    }

    pub(crate) const fn inner(base: u32, word: u8, shift: u8, bits: u8) -> Node {
        let mask = (1u64 << bits) - 1;
        Node(base as u64 | ((shift & 31) as u64) << 32 | ((word & 15) as u64) << 40 | mask << 48)
    }

    #[inline(always)]
    const fn is_inner(self) -> bool {
        self.0 >> 48 != 0
    }

    /// Of an inner node, where the key's way goes on.
    #[inline(always)]
    fn next(self, key: &impl Words) -> u32 {
        let word = key.word((self.0 >> 40) as usize & 15);
        (self.0 as u32).wrapping_add((word >> ((self.0 >> 32) & 31)) & (self.0 >> 48) as u32)
    }

    /// Of a leaf, how many groups it has.
    pub(crate) const fn groups(self) -> usize {
        if self.is_inner() {
            0
        } else {
            (self.0 >> 32) as usize
        }
    }
}

/// All rules for one family, for one kind of key.
pub(crate) struct Table<F: Family> {
    /// The rule that every key matches, or [`NONE`]; later than all in the trees.
    pub(crate) always: u32,
    pub(crate) roots: Vec<Node>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) groups: Vec<F::Group>,
}

/// What a search did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effort {
    pub(crate) steps: u32,
    pub(crate) scans: u32,
}

impl<F: Family> Table<F> {
    pub(crate) fn empty() -> Table<F> {
        Table {
            always: NONE,
            roots: Vec::new(),
            nodes: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Bytes that searches read.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.groups) + size_of_val(&*self.roots)
    }

    /// The better of `best` and what the groups of a leaf hold.
    #[inline(always)]
    fn scan(&self, leaf: Node, key: &F::Key, best: u32, effort: &mut Effort) -> u32 {
        let Some(group) = self.groups.get(leaf.0 as u32 as usize) else {
            return best;
        };
        if F::first(group) >= best {
            return best;
        }
        effort.scans += 1;
        let found = F::scan(group, key);
        if found != NONE || leaf.groups() < 2 {
            best.min(found)
        } else {
            self.scan_more(leaf, key, best, effort)
        }
    }

    /// The groups of a leaf after its first.
    #[inline(never)]
    fn scan_more(&self, leaf: Node, key: &F::Key, best: u32, effort: &mut Effort) -> u32 {
        let groups = self
            .groups
            .get(leaf.0 as u32 as usize..)
            .unwrap_or_default();
        for group in groups.iter().take(leaf.groups()).skip(1) {
            // Groups of one leaf hold later and later rules.
            if F::first(group) >= best {
                return best;
            }
            effort.scans += 1;
            let found = F::scan(group, key);
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
                let Some(child) = self.nodes.get(node.next(key) as usize) else {
                    return best;
                };
                node = *child;
            }
            if node != EMPTY {
                best = self.scan(node, key, best, effort);
            }
        }
        best
    }

    /// [`Table::search`] of up to [`CHUNK`] keys; what lies behind them in the arrays is not looked at.
    #[inline(always)]
    pub(crate) fn search_chunk(
        &self,
        keys: &[F::Key; CHUNK],
        count: usize,
        best: &mut [u32; CHUNK],
    ) {
        *best = [self.always; CHUNK];
        for root in &self.roots {
            self.search_tree(*root, keys, count, best);
        }
    }

    #[inline(always)]
    fn search_tree(
        &self,
        root: Node,
        keys: &[F::Key; CHUNK],
        count: usize,
        best: &mut [u32; CHUNK],
    ) {
        let mut arrived = [(0u32, EMPTY); CHUNK];
        let mut way = [(0u32, 0u32); CHUNK];
        let nodes = &*self.nodes;
        let (mut left, mut there) = (count.min(CHUNK), 0);
        if root.is_inner() {
            for ((slot, key), who) in way.iter_mut().zip(keys).zip(0..) {
                *slot = (who, root.next(key));
            }
        } else {
            (arrived, there, left) = (std::array::from_fn(|who| (who as u32, root)), left, 0);
        }
        while left > 0 {
            let mut kept = 0;
            for n in 0..left {
                let (who, at) = way[n % CHUNK];
                let Some(&node) = nodes.get(at as usize) else {
                    return;
                };
                way[kept % CHUNK] = (who, node.next(&keys[who as usize % CHUNK]));
                arrived[there % CHUNK] = (who, node);
                kept += usize::from(node.is_inner());
                there += usize::from(!node.is_inner() & (node != EMPTY));
            }
            left = kept;
        }
        for n in 0..there {
            let (who, leaf) = arrived[n % CHUNK];
            let who = who as usize % CHUNK;
            best[who] = self.scan(leaf, &keys[who], best[who], &mut Effort::default());
        }
    }
}
