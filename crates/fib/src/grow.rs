//! The hand that changes a trie, and the exact routes beside it; what the tables of IPv4 and IPv6 share.
//!
//! Used by the control thread. A change is made to the exact routes (`rib.rs`) first. Then the nodes on
//! the way to the prefix are worked out anew, from their old content and the routes of their octet: a
//! node whose runs stay the same gets its new entries in place, another is written to fresh memory. All of
//! this is planned before anything is stored, so that running out of memory changes nothing. What was
//! replaced waits until every reader has passed a quiescent state.
//!
//! A change costs some 256-slot passes for each octet that the prefix is deeper than two, and so much for
//! each node below which loses or gains the route as its cover: a new default route visits every node.

use std::borrow::Borrow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_ring::qsbr::{Domain, Ticket};

use crate::arena::{Space, UNIT, UNIT_WORDS};
use crate::dense::{self, SLOTS, Slots};
use crate::entry::Entry;
use crate::range;
use crate::rib::{self, Full, Prefix, Rib};
use crate::trie::{Place, Trie, byte_of_run};

/// What nodes a table may be made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Whether subtrees of few routes become nodes of ranges.
    pub(crate) ranges: bool,
    /// As long as a table has only so many nodes, they are plain, which is fastest: a KiB each.
    pub(crate) few: usize,
    /// With so many routes below, nodes are plain, too: each of these pays for some bytes more.
    pub(crate) plain_from: usize,
    /// A table of so many routes has plain nodes of bytes where its groups fit them: a quarter of a KiB each, of which
    /// a lookup reads one byte.
    pub(crate) bytes_from: usize,
}

/// A node to give back.
#[derive(Clone, Copy, Debug)]
struct Block {
    node: Entry,
    units: u32,
}

/// Which part of a subtree a change concerns.
#[derive(Clone, Copy)]
enum Scope<'a> {
    /// All of it is made anew.
    All,
    /// What no route within it covers.
    Cover,
    /// This prefix.
    Prefix(&'a Prefix),
}

/// The writer of a trie.
pub(crate) struct Grower {
    pub(crate) rib: Rib,
    nodes: Nodes,
    domain: Domain,
    retired: VecDeque<(Ticket, Block)>,
    /// Slots of the root that are to be made anew.
    dirty: BTreeSet<u16>,
    /// The slots of the root below have nodes as a large table has them.
    large_below: usize,
}

/// Slots of the root whose nodes become those of a large table with each change, until all have.
const RENEWED: usize = 4;

impl Grower {
    pub(crate) fn new(domain: &Domain, shape: Shape) -> Option<Grower> {
        let nodes = Nodes {
            trie: Arc::new(Trie::new()?),
            shape,
            large: false,
            words: Space::default(),
            fresh: Vec::new(),
            replaced: Vec::new(),
            stores: Vec::new(),
            count: 0,
        };
        Some(Grower { rib: Rib::new(), nodes, domain: domain.clone(), retired: VecDeque::new(), dirty: BTreeSet::new(), large_below: 0 })
    }

    pub(crate) fn trie(&self) -> &Arc<Trie> {
        &self.nodes.trie
    }

    /// Adds a route or gives it another group; returns the one it had.
    pub(crate) fn insert(&mut self, prefix: &Prefix, group: u32) -> Result<Option<u32>, Full> {
        self.begin();
        let before = self.rib.insert(prefix, group)?;
        if before == Some(group) {
            return Ok(before);
        }
        self.grow_large();
        let planned = self.plan(prefix);
        if planned.is_err() {
            self.nodes.abandon();
            match before {
                Some(before) => drop(self.rib.insert(prefix, before)),
                None => drop(self.rib.remove(prefix)),
            }
            return Err(Full);
        }
        self.commit();
        Ok(before)
    }

    /// Removes a route; returns its group.
    pub(crate) fn remove(&mut self, prefix: &Prefix) -> Option<u32> {
        self.begin();
        let before = self.rib.remove(prefix)?;
        match self.plan(prefix) {
            Ok(()) => self.commit(),
            Err(Full) => {
                // The route is gone; its addresses follow when there is memory.
                self.nodes.abandon();
                self.dirty.extend(roots(prefix));
            }
        }
        Some(before)
    }

    /// Adds many routes, and makes each subtree once.
    pub(crate) fn extend(&mut self, routes: impl IntoIterator<Item = (Prefix, u32)>) -> Result<(), Full> {
        self.begin();
        let mut touched = vec![0u64; ROOT_WORDS];
        let mut all = Ok(());
        for (prefix, group) in routes {
            match self.rib.insert(&prefix, group) {
                Ok(_) => roots(&prefix).for_each(|slot| touched[usize::from(slot / 64)] |= 1 << (slot % 64)),
                Err(Full) => {
                    all = Err(Full);
                    break;
                }
            }
        }
        self.grow_large();
        let is_touched = |slot: &u16| touched[usize::from(*slot / 64)] >> (*slot % 64) & 1 != 0;
        for slot in (0..=u16::MAX).filter(is_touched) {
            if self.renew(slot).is_err() {
                self.dirty.insert(slot);
                all = Err(Full);
            }
        }
        all
    }

    /// Nodes in use, and nodes that wait for readers.
    pub(crate) fn node_counts(&self) -> (usize, usize) {
        (self.nodes.count, self.retired.len())
    }

    /// Bytes of the trie and of the exact routes.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (Trie::fixed_bytes() + self.nodes.words.bytes(), self.rib.bytes())
    }

    /// Before each change: takes memory back, makes good what memory was missing for, and what a small table left.
    fn begin(&mut self) {
        self.take_back();
        while let Some(slot) = self.dirty.pop_first() {
            if self.renew(slot).is_err() {
                self.dirty.insert(slot);
                return;
            }
        }
        if self.nodes.large && self.large_below < crate::trie::ROOT {
            let next = self.large_below..crate::trie::ROOT.min(self.large_below + RENEWED);
            self.large_below = next.end;
            for slot in next {
                if self.nodes.trie.top(slot).is_node() {
                    // Without memory it stays as it is.
                    let _ = self.renew(slot as u16);
                }
            }
        }
    }

    /// Whether the table has become a large one; once one, it stays one.
    fn grow_large(&mut self) {
        self.nodes.large |= self.rib.len() >= self.nodes.shape.bytes_from;
    }

    /// Takes memory back that readers have passed.
    fn take_back(&mut self) {
        while let Some(&(ticket, block)) = self.retired.front() {
            if !self.domain.passed(ticket) {
                break;
            }
            // Blocks of one ticket need not be asked about one by one.
            self.retired.pop_front();
            self.nodes.give(block);
            while let Some(&(next, block)) = self.retired.front()
                && next <= ticket
            {
                self.retired.pop_front();
                self.nodes.give(block);
            }
        }
    }

    /// Makes all that a slot of the root leads to anew.
    fn renew(&mut self, slot: u16) -> Result<(), Full> {
        let octets = slot.to_be_bytes();
        let node = |number: Option<u32>, slot: u8| self.rib.node(number?)?.child(usize::from(slot));
        let second = node(Some(rib::TOP), octets[0]);
        let third = node(second, octets[1]);
        let cover = self.cover(second, octets[0], octets[1]);
        if let Err(Full) = self.nodes.root(&self.rib, third, usize::from(slot), cover, Scope::All) {
            self.nodes.abandon();
            return Err(Full);
        }
        self.commit();
        Ok(())
    }

    /// The group that covers a slot of the root.
    fn cover(&self, second: Option<u32>, first_octet: u8, second_octet: u8) -> u32 {
        let best = |number: u32, slot: u8| self.rib.node(number).map(|node| node.best(usize::from(slot))).filter(|route| route.place() > 0);
        second.and_then(|second| best(second, second_octet)).or_else(|| best(rib::TOP, first_octet)).map_or(0, rib::Word::group)
    }

    /// Works out what changes with a prefix.
    fn plan(&mut self, prefix: &Prefix) -> Result<(), Full> {
        let Grower { rib, nodes, .. } = self;
        let Some(top) = rib.node(rib::TOP) else { return Err(Full) };
        let child = |number: Option<u32>, slot: usize| rib.node(number?)?.child(slot);
        if prefix.level() >= 2 {
            let second = child(Some(rib::TOP), prefix.slot(0));
            let third = child(second, prefix.slot(1));
            let slot = prefix.slot(0) << 8 | prefix.slot(1);
            let cover = self.cover(second, prefix.slot(0) as u8, prefix.slot(1) as u8);
            return self.nodes.root(&self.rib, third, slot, cover, Scope::Prefix(prefix));
        }
        let firsts = if prefix.level() == 0 { prefix.span() } else { prefix.slot(0)..prefix.slot(0) + 1 };
        for first in firsts {
            let best = top.best(first);
            if prefix.level() == 0 && best.place() > prefix.place() {
                continue;
            }
            let second = child(Some(rib::TOP), first);
            let painted = second.and_then(|number| rib.node(number)).map_or_else(|| [rib::Word::default(); SLOTS], rib::Node::paint);
            let (seconds, longest) = if prefix.level() == 0 { (0..SLOTS, 0) } else { (prefix.span(), prefix.place()) };
            for at in seconds {
                let route = painted.get(at).copied().unwrap_or_default();
                if route.place() <= longest {
                    let cover = if route.place() > 0 { route.group() } else { best.group() };
                    nodes.root(rib, child(second, at), first << 8 | at, cover, Scope::Cover)?;
                }
            }
        }
        Ok(())
    }

    /// Stores what was planned.
    fn commit(&mut self) {
        let nodes = &mut self.nodes;
        for (place, entry) in nodes.stores.drain(..) {
            nodes.trie.store(place, entry);
        }
        nodes.fresh.clear();
        if nodes.replaced.is_empty() {
            return;
        }
        let ticket = self.domain.ticket();
        nodes.count -= nodes.replaced.len();
        let coded = nodes.replaced.iter().filter(|block| !block.node.is_words()).count() as u32;
        nodes.trie.coded.fetch_sub(coded, Ordering::Relaxed);
        self.retired.extend(nodes.replaced.drain(..).map(|block| (ticket, block)));
    }
}

/// Words of a bitmap of the root's slots.
const ROOT_WORDS: usize = crate::trie::ROOT / 64;

/// The slots of the root that a prefix touches.
fn roots(prefix: &Prefix) -> impl Iterator<Item = u16> + use<> {
    let [a, b, ..] = prefix.octets;
    let first = u16::from_be_bytes([a, b]);
    let last = first | u16::MAX.checked_shr(u32::from(prefix.len)).unwrap_or(0);
    first..=last
}

/// The nodes of a trie: what is planned, and the memory for it.
struct Nodes {
    trie: Arc<Trie>,
    shape: Shape,
    /// Whether the table has so many routes that its nodes shall be of bytes.
    large: bool,
    words: Space,
    /// Made for what is planned.
    fresh: Vec<Block>,
    /// No longer needed when it is done.
    replaced: Vec<Block>,
    stores: Vec<(Place, Entry)>,
    /// Nodes in use.
    count: usize,
}

impl Nodes {
    /// Plans a slot of the root.
    fn root(&mut self, rib: &Rib, node: Option<u32>, slot: usize, cover: u32, scope: Scope<'_>) -> Result<(), Full> {
        let old = self.trie.top(slot);
        let new = self.plan(rib, node, 2, cover, old, scope)?;
        if new != old {
            self.stores.push((Place::Root(slot), new));
        }
        Ok(())
    }

    /// Plans the entry for a subtree of routes: `old` is there now, and `cover` is the group of what the
    /// subtree has no route for.
    fn plan(&mut self, rib: &Rib, number: Option<u32>, level: usize, cover: u32, old: Entry, scope: Scope<'_>) -> Result<Entry, Full> {
        let Some(node) = number.and_then(|number| rib.node(number)).filter(|node| node.below() > 0) else {
            self.replace_all(old);
            return Ok(Entry::leaf(cover));
        };
        if self.shape.ranges
            && !self.is_few()
            && let Some(coded) = range::Coded::new(rib, node, level, cover)
        {
            return self.put_ranges(&coded, old);
        }
        let many = node.below() >= self.shape.plain_from;
        let painted = node.paint();
        let group = |slot: usize| painted.get(slot).filter(|route| route.place() > 0).map_or(cover, |route| route.group());
        let kept = old.is_node() && !old.is_ranges() && !matches!(scope, Scope::All);
        if !kept {
            let mut slots: Slots = std::array::from_fn(|slot| Entry::leaf(group(slot)));
            for (slot, child) in node.children() {
                if let Some(entry) = slots.get_mut(slot) {
                    *entry = self.plan(rib, Some(child), level + 1, group(slot), Entry::NO_ROUTE, Scope::All)?;
                }
            }
            self.replace_all(old);
            return self.put(&slots, many);
        }
        let (before, runs) = self.trie.slots(old);
        let mut slots = before;
        // A route covers a slot if no longer one does; places are in order of lengths.
        let (concerned, longest, below) = match scope {
            Scope::Prefix(prefix) if prefix.level() > level => (prefix.slot(level)..prefix.slot(level) + 1, u32::MAX, scope),
            Scope::Prefix(prefix) => (prefix.span(), prefix.place(), Scope::Cover),
            Scope::Cover | Scope::All => (0..SLOTS, 0, Scope::Cover),
        };
        for slot in concerned {
            let (Some(entry), Some(route)) = (slots.get_mut(slot), painted.get(slot)) else { continue };
            if route.place() <= longest {
                *entry = self.plan(rib, node.child(slot), level + 1, group(slot), *entry, below)?;
            }
        }
        self.put_again(old, &before, &runs, &slots, many)
    }

    /// A node in the place of one whose children that stay are in `slots`: in place if its runs allow it.
    fn put_again(&mut self, old: Entry, before: &Slots, at: &[u16; SLOTS], slots: &Slots, many: bool) -> Result<Entry, Full> {
        let begins = |slot: usize, of: &Slots| slot == 0 || of[slot] != of[slot - 1];
        let narrow = dense::narrow_for(slots);
        let fits = narrow >= old.narrow() && (1..SLOTS).all(|slot| at[slot] != at[slot - 1] || slots[slot] == slots[slot - 1]);
        let runs = (0..SLOTS).filter(|&slot| begins(slot, slots)).count();
        let had = usize::from(at[SLOTS - 1] - at[0]) + 1;
        let shall_change = self.large && !old.is_plain() && narrow == Entry::bytes(0).narrow();
        if fits && !shall_change && (old.is_plain() || 4 * dense::byte_of(0, runs, narrow) > 3 * dense::byte_of(0, had, old.narrow())) {
            let changed = (0..SLOTS).filter(|&slot| slots[slot] != before[slot] && (slot == 0 || at[slot] != at[slot - 1]));
            let place = |slot: usize| Place::Run(byte_of_run(old, usize::from(at[slot])), old.narrow());
            self.stores.extend(changed.map(|slot| (place(slot), slots[slot])));
            return Ok(old);
        }
        self.replace(old);
        self.put(slots, many)
    }

    /// Whether the next node is one of the first few.
    fn is_few(&self) -> bool {
        self.count < self.shape.few && self.trie.coded.load(Ordering::Relaxed) == 0
    }

    /// A new plain or dense node: of words while the table has few of them, of bytes when it is large.
    fn put(&mut self, slots: &Slots, many: bool) -> Result<Entry, Full> {
        if self.is_few() || many {
            return self.put_words(slots.map(|slot| slot.0).iter(), Entry::plain);
        }
        let narrow = dense::narrow_for(slots);
        if self.large && narrow == Entry::bytes(0).narrow() {
            let (words, _) = slots.as_chunks();
            return self.put_words(words.iter().map(|&word| u32::from_le_bytes(word.map(|slot: Entry| slot.0 as u8))), Entry::bytes);
        }
        let coded = dense::Coded::new(slots);
        self.put_words(coded.words().iter(), |unit| Entry::dense(unit, coded.narrow()))
    }

    /// A new node of these words, named when it is known where it begins.
    fn put_words(
        &mut self,
        words: impl ExactSizeIterator<Item = impl Borrow<u32>>,
        name: impl FnOnce(u32) -> Entry,
    ) -> Result<Entry, Full> {
        let units = (words.len() * size_of::<u32>()).div_ceil(UNIT) as u32;
        let unit = self.words.take(&self.trie.words, units).ok_or(Full)?;
        let there = self.trie.words.node(unit, words.len());
        there.iter().zip(words).for_each(|(there, word)| there.store(*word.borrow(), Ordering::Relaxed));
        let node = name(unit);
        self.note_fresh(Block { node, units });
        Ok(node)
    }

    /// A node of ranges, in place if only its groups differ.
    fn put_ranges(&mut self, coded: &range::Coded, old: Entry) -> Result<Entry, Full> {
        let trie = self.trie.clone();
        if old.is_node() && old.is_ranges() && (old.indexed() > 0) == coded.is_indexed() && coded.same_runs(trie.ranges(old)) {
            let start = old.unit() as usize * UNIT_WORDS;
            let words = trie.ranges(old).iter().zip(coded.words()).enumerate();
            let changed = words.filter(|(_, (there, new))| there.load(Ordering::Relaxed) != **new);
            self.stores.extend(changed.map(|(at, (_, &new))| (Place::Pair(start + at), Entry(new))));
            return Ok(old);
        }
        let node = self.put_words(coded.words().iter(), |unit| Entry::ranges(unit, coded.is_indexed()))?;
        self.replace_all(old);
        Ok(node)
    }

    fn note_fresh(&mut self, block: Block) {
        self.count += 1;
        if !block.node.is_words() {
            self.trie.coded.fetch_add(1, Ordering::Relaxed);
        }
        self.fresh.push(block);
    }

    /// Plans to give a node back, not those below.
    fn replace(&mut self, node: Entry) {
        let words = if node.is_ranges() { self.trie.ranges(node) } else { self.trie.node(node) };
        self.replaced.push(Block { node, units: size_of_val(words).div_ceil(UNIT) as u32 });
    }

    /// Plans to give a node back and all below.
    fn replace_all(&mut self, node: Entry) {
        if !node.is_node() {
            return;
        }
        if !node.is_ranges() {
            let (slots, _) = self.trie.slots(node);
            slots.into_iter().for_each(|slot| self.replace_all(slot));
        }
        self.replace(node);
    }

    /// Forgets what was planned.
    fn abandon(&mut self) {
        self.stores.clear();
        self.replaced.clear();
        self.count -= self.fresh.len();
        for block in std::mem::take(&mut self.fresh) {
            if !block.node.is_words() {
                self.trie.coded.fetch_sub(1, Ordering::Relaxed);
            }
            self.give(block);
        }
    }

    fn give(&mut self, block: Block) {
        self.words.give(block.node.unit(), block.units);
    }
}
