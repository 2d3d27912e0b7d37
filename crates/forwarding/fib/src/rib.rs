//! The exact routes of a table, in little memory: a tree with a node for each octet.
//!
//! A node holds the routes that end within its octet as sorted words: the place of the prefix among the
//! 511 that an octet has (1 for the empty one, then two of one bit, four of two …) in the upper nine bits,
//! the group in the others. So a route is four bytes, the order is that of lengths, and the longest match
//! is the highest place on the way from a slot up. The children are sorted words too.
//!
//! Belongs to the writer; readers never see it.

use crate::dense::SLOTS;
use crate::entry::{GROUP_BITS, GROUP_MASK};

/// A prefix as its octets; those of an IPv4 one are the first four.
pub(crate) type Octets = [u8; 16];

/// Bits of the word of a child that are the number of its node; the octet is above.
const CHILD_BITS: u32 = 24;
/// The most nodes of a tree.
const MAX_NODES: usize = 1 << CHILD_BITS;

/// A prefix and its place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) octets: Octets,
    pub(crate) len: u8,
}

impl Prefix {
    /// Which octet it ends in.
    pub(crate) fn level(&self) -> usize {
        usize::from(self.len.saturating_sub(1) / 8)
    }

    /// Its place in the node of that octet.
    pub(crate) fn place(&self) -> u32 {
        let bits = u32::from(self.len) - 8 * self.level() as u32;
        let octet = u32::from(self.octets.get(self.level()).copied().unwrap_or(0));
        1 << bits | octet >> (8 - bits)
    }

    /// The slots of that node that it covers.
    pub(crate) fn span(&self) -> std::ops::Range<usize> {
        span(self.place())
    }

    /// The first and the last value that the four octets from `level` on have within it.
    pub(crate) fn values(&self, level: usize) -> (u32, u32) {
        let octets = (u128::from_be_bytes(self.octets) << (8 * level % 128) >> 96) as u32;
        let others = u32::MAX
            .checked_shr(u32::from(self.len).saturating_sub(8 * level as u32))
            .unwrap_or(0);
        (octets & !others, octets | others)
    }

    /// The slot of an upper node that leads to it.
    pub(crate) fn slot(&self, level: usize) -> usize {
        self.octets
            .get(level)
            .map_or(0, |&octet| usize::from(octet))
    }
}

/// The slots of a place.
fn span(place: u32) -> std::ops::Range<usize> {
    let bits = place.max(1).ilog2();
    let start = ((place - (1 << bits)) << (8 - bits)) as usize;
    start..start + (SLOTS >> bits)
}

/// A route of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Word(u32);

impl Word {
    fn new(place: u32, group: u32) -> Word {
        Word(place << GROUP_BITS | group & GROUP_MASK)
    }

    /// The place of the prefix; 0 for no route.
    pub(crate) fn place(self) -> u32 {
        self.0 >> GROUP_BITS
    }

    pub(crate) fn group(self) -> u32 {
        self.0 & GROUP_MASK
    }

    /// The slots that it covers.
    pub(crate) fn span(self) -> std::ops::Range<usize> {
        span(self.place())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Node {
    routes: Vec<Word>,
    children: Vec<u32>,
    /// Routes here and below.
    below: u32,
}

impl Node {
    pub(crate) fn routes(&self) -> &[Word] {
        &self.routes
    }

    /// Slots and node numbers of the children.
    pub(crate) fn children(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.children.iter().map(|&child| {
            (
                (child >> CHILD_BITS) as usize,
                child & (MAX_NODES as u32 - 1),
            )
        })
    }

    /// Routes here and below.
    pub(crate) fn below(&self) -> usize {
        self.below as usize
    }

    fn find_child(&self, slot: usize) -> Result<usize, usize> {
        self.children
            .binary_search_by_key(&(slot as u32), |child| child >> CHILD_BITS)
    }

    pub(crate) fn child(&self, slot: usize) -> Option<u32> {
        let at = self.find_child(slot).ok()?;
        self.children
            .get(at)
            .map(|child| child & (MAX_NODES as u32 - 1))
    }

    fn find(&self, place: u32) -> Result<usize, usize> {
        self.routes
            .binary_search_by_key(&place, |route| route.place())
    }

    /// The route of a slot that is longest; no route when there is none.
    pub(crate) fn best(&self, slot: usize) -> Word {
        let mut place = (SLOTS + slot) as u32;
        while place > 0 {
            if let Ok(at) = self.find(place) {
                return self.routes.get(at).copied().unwrap_or_default();
            }
            place >>= 1;
        }
        Word::default()
    }

    /// The same for all slots.
    pub(crate) fn paint(&self) -> [Word; SLOTS] {
        let mut painted = [Word::default(); SLOTS];
        for route in &self.routes {
            if let Some(slots) = painted.get_mut(route.span()) {
                slots.fill(*route);
            }
        }
        painted
    }
}

/// No node is left, or no memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The routes of a table.
#[derive(Debug)]
pub(crate) struct Rib {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

/// The node of the first octet.
pub(crate) const TOP: u32 = 0;

impl Rib {
    pub(crate) fn new() -> Rib {
        Rib {
            nodes: vec![Node::default()],
            free: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.node(TOP).map_or(0, Node::below)
    }

    pub(crate) fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number as usize)
    }

    fn node_mut(&mut self, number: u32) -> Option<&mut Node> {
        self.nodes.get_mut(number as usize)
    }

    /// The nodes on the way to a prefix, as far as they exist; its own is at its level.
    fn way(&self, prefix: &Prefix) -> [Option<u32>; 16] {
        let mut way = [None; 16];
        let mut next = Some(TOP);
        for (level, place) in way.iter_mut().enumerate().take(prefix.level() + 1) {
            *place = next;
            next = next.and_then(|number| self.node(number)?.child(prefix.slot(level)));
        }
        way
    }

    pub(crate) fn get(&self, prefix: &Prefix) -> Option<u32> {
        let number = *self.way(prefix).get(prefix.level())?;
        let node = self.node(number?)?;
        node.routes
            .get(node.find(prefix.place()).ok()?)
            .map(|route| route.group())
    }

    /// The route that covers an address: its length and group.
    pub(crate) fn longest_match(&self, octets: &Octets) -> Option<(u8, u32)> {
        let mut found = None;
        let mut next = self.node(TOP);
        for (level, &octet) in octets.iter().enumerate() {
            let Some(node) = next else { break };
            let best = node.best(usize::from(octet));
            if best.place() > 0 {
                found = Some((8 * level as u8 + best.place().ilog2() as u8, best.group()));
            }
            next = node
                .child(usize::from(octet))
                .and_then(|child| self.node(child));
        }
        found
    }

    /// Adds a route or gives it another group; returns the one it had.
    pub(crate) fn insert(&mut self, prefix: &Prefix, group: u32) -> Result<Option<u32>, Full> {
        let place = prefix.place();
        let number = self.make_way(prefix)?;
        let Some(node) = self.node_mut(number) else {
            return Err(Full);
        };
        match node.find(place) {
            Ok(at) => {
                let before = node
                    .routes
                    .get_mut(at)
                    .map(|route| std::mem::replace(route, Word::new(place, group)).group());
                Ok(before)
            }
            Err(at) => {
                node.routes.insert(at, Word::new(place, group));
                self.count(prefix, true);
                Ok(None)
            }
        }
    }

    /// The node of a prefix, made when it is missing.
    fn make_way(&mut self, prefix: &Prefix) -> Result<u32, Full> {
        let mut number = TOP;
        for level in 0..prefix.level() {
            let slot = prefix.slot(level);
            let Some(node) = self.node(number) else {
                return Err(Full);
            };
            number = match node.find_child(slot) {
                Ok(_) => node.child(slot).ok_or(Full)?,
                Err(at) => {
                    let child = self.make_node();
                    let made = child.and_then(|child| Some((self.node_mut(number)?, child)));
                    let Some((node, child)) = made else {
                        self.prune(prefix);
                        return Err(Full);
                    };
                    node.children
                        .insert(at, (slot as u32) << CHILD_BITS | child);
                    child
                }
            };
        }
        Ok(number)
    }

    fn make_node(&mut self) -> Option<u32> {
        if let Some(number) = self.free.pop() {
            return Some(number);
        }
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        self.nodes.push(Node::default());
        Some((self.nodes.len() - 1) as u32)
    }

    /// Counts a route more or less in all nodes of its way.
    fn count(&mut self, prefix: &Prefix, more: bool) {
        for number in self.way(prefix).into_iter().flatten() {
            if let Some(node) = self.node_mut(number) {
                node.below = if more {
                    node.below.saturating_add(1)
                } else {
                    node.below.saturating_sub(1)
                };
            }
        }
    }

    /// Removes a route; returns its group.
    pub(crate) fn remove(&mut self, prefix: &Prefix) -> Option<u32> {
        let number = *self.way(prefix).get(prefix.level())?;
        let node = self.node_mut(number?)?;
        let at = node.find(prefix.place()).ok()?;
        let group = node.routes.remove(at).group();
        if node.routes.capacity() > 4 * node.routes.len() + 8 {
            node.routes.shrink_to_fit();
        }
        self.count(prefix, false);
        self.prune(prefix);
        Some(group)
    }

    /// Takes away what has no route below, from the way of a prefix.
    fn prune(&mut self, prefix: &Prefix) {
        let way = self.way(prefix);
        for level in (1..=prefix.level()).rev() {
            let (Some(Some(number)), Some(Some(parent))) = (way.get(level), way.get(level - 1))
            else {
                continue;
            };
            if self.node(*number).is_none_or(|node| node.below > 0) {
                return;
            }
            if let Some(node) = self.node_mut(*number) {
                *node = Node::default();
            }
            if let Some(node) = self.node_mut(*parent)
                && let Ok(at) = node.find_child(prefix.slot(level - 1))
            {
                node.children.remove(at);
            }
            self.free.push(*number);
        }
    }

    /// Bytes that the routes occupy, with a word for what the allocator keeps of each block.
    pub(crate) fn bytes(&self) -> usize {
        let block = |bytes: usize| {
            if bytes == 0 {
                0
            } else {
                (bytes + 8).next_multiple_of(16).max(32)
            }
        };
        let of = |node: &Node| {
            block(node.routes.capacity() * size_of::<Word>())
                + block(node.children.capacity() * size_of::<u32>())
        };
        self.nodes.iter().map(of).sum::<usize>()
            + self.nodes.capacity() * size_of::<Node>()
            + self.free.capacity() * size_of::<u32>()
    }

    /// All routes, in order of addresses, then of lengths.
    pub(crate) fn iter(&self) -> Iter<'_> {
        let mut iter = Iter {
            rib: self,
            frames: Vec::new(),
            octets: [0; 16],
        };
        iter.enter(TOP);
        iter
    }
}

enum Item {
    Route(Word),
    Child(usize, u32),
}

/// Routes in order.
pub(crate) struct Iter<'a> {
    rib: &'a Rib,
    /// For each node of the way, what is left of it, the next one last.
    frames: Vec<Vec<Item>>,
    octets: Octets,
}

impl Iter<'_> {
    fn enter(&mut self, number: u32) {
        let Some(node) = self.rib.node(number) else {
            return;
        };
        let mut items: Vec<(usize, u32, Item)> = node
            .routes
            .iter()
            .map(|&route| {
                (
                    route.span().start,
                    route.place().ilog2(),
                    Item::Route(route),
                )
            })
            .collect();
        // A child comes after the routes that cover its slot, and before those of later slots.
        items.extend(
            node.children()
                .map(|(slot, child)| (slot, u32::MAX, Item::Child(slot, child))),
        );
        items.sort_unstable_by_key(|&(slot, rank, _)| std::cmp::Reverse((slot, rank)));
        self.frames
            .push(items.into_iter().map(|(_, _, item)| item).collect());
    }
}

impl Iterator for Iter<'_> {
    type Item = (Prefix, u32);

    fn next(&mut self) -> Option<(Prefix, u32)> {
        loop {
            let level = self.frames.len().checked_sub(1)?;
            match self.frames.last_mut()?.pop() {
                None => {
                    self.frames.pop();
                    if let Some(octet) = self.octets.get_mut(level) {
                        *octet = 0;
                    }
                }
                Some(Item::Child(slot, child)) => {
                    *self.octets.get_mut(level)? = slot as u8;
                    self.enter(child);
                }
                Some(Item::Route(route)) => {
                    let mut octets = self.octets;
                    *octets.get_mut(level)? = route.span().start as u8;
                    let len = (8 * level) as u8 + route.place().ilog2() as u8;
                    return Some((Prefix { octets, len }, route.group()));
                }
            }
        }
    }
}
