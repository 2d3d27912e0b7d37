//! The hand that changes a trie, and the exact routes beside it; what the tables of IPv4 and IPv6 share.
//!
//! Used by the control thread. A change is made to the exact routes (`rib.rs`) first. Then the nodes on
//! the way to the prefix are worked out anew, from their old content and the routes of their octet: a
//! node whose runs stay the same gets its new entries in place, another is written to fresh memory. All of
//! this is planned before anything is stored, so that running out of memory changes nothing. What was
//! replaced waits until every reader has passed a quiescent state.
//!
//! A change costs some 256-slot passes for each octet that the prefix is deeper than two, and so much for
//! each node below which loses or gains the route as its cover: a new default route visits every node. Most changes of a full
//! IPv4 table concern a run that is there already, and are a store into it and one into its line.

mod together;

use std::borrow::Borrow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_ring::qsbr::{Domain, Ticket};

use crate::arena::{Space, UNIT, UNIT_WORDS};
use crate::dense::{self, SLOTS, Slots};
use crate::entry::Entry;
use crate::fork;
use crate::line::{COVERED_LINES, COVERED_SLOTS, Coded as Covered, LINES_OF_SLOT, Line, Lines};
use crate::range;
use crate::rib::{self, Full, Prefix, Rib};
use crate::trie::{Place, ROOT, Trie, byte_of_run};

/// What nodes a table may be made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Whether subtrees of few routes become nodes of ranges.
    pub(crate) ranges: bool,
    /// As long as a table has only so many nodes, they are plain, which is fastest: a KiB each.
    pub(crate) few: usize,
    /// With so many routes below, nodes are plain, too: each of these pays for some bytes more.
    pub(crate) plain_from: usize,
    /// A table of so many routes tells the groups of all /24 in lines, too.
    pub(crate) lines_from: usize,
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
    /// The lines of the slots of the root below were written since the table is large.
    covered_below: usize,
}

/// Slots of the root whose lines are written with each change of a table that has become large, until all are.
const RENEWED: usize = 4;

impl Grower {
    pub(crate) fn new(domain: &Domain, shape: Shape) -> Option<Grower> {
        let nodes = Nodes {
            trie: Arc::new(Trie::new()?),
            shape,
            large: false,
            slot: 0,
            shown: [Entry::NO_ROUTE; SLOTS],
            is_leaf: false,
            lines: Vec::new(),
            covered: 0,
            words: Space::default(),
            fresh: Vec::new(),
            replaced: Vec::new(),
            stores: Vec::new(),
            count: 0,
        };
        let mut grower = Grower {
            rib: Rib::new(),
            nodes,
            domain: domain.clone(),
            retired: VecDeque::new(),
            dirty: BTreeSet::new(),
            covered_below: 0,
        };
        grower.grow_large();
        if grower.nodes.large {
            grower.nodes.show_nothing();
            grower.covered_below = ROOT;
        }
        Some(grower)
    }

    pub(crate) fn trie(&self) -> &Arc<Trie> {
        &self.nodes.trie
    }

    /// Adds a route or gives it another group; returns the one it had.
    pub(crate) fn insert(&mut self, prefix: &Prefix, group: u32) -> Result<Option<u32>, Full> {
        self.nodes.announce(prefix);
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
        self.nodes.announce(prefix);
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
    pub(crate) fn extend(
        &mut self,
        routes: impl IntoIterator<Item = (Prefix, u32)>,
    ) -> Result<(), Full> {
        self.begin();
        let mut touched = vec![0u64; ROOT_WORDS];
        let mut all = Ok(());
        for (prefix, group) in routes {
            match self.rib.insert(&prefix, group) {
                Ok(_) => roots(&prefix)
                    .for_each(|slot| touched[usize::from(slot / 64)] |= 1 << (slot % 64)),
                Err(Full) => {
                    all = Err(Full);
                    break;
                }
            }
        }
        self.grow_large();
        let is_touched = |slot: u16| touched[usize::from(slot / 64)] >> (slot % 64) & 1 != 0;
        // Where much is made anew, the lines that are not written yet are, too.
        let much = touched
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum::<usize>()
            > ROOT / 8;
        all.and(if much && self.nodes.large {
            self.renew_all(is_touched)
        } else {
            self.renew_each(is_touched)
        })
    }

    /// Makes anew what these slots of the root lead to, and those that have no lines yet.
    fn renew_all(&mut self, which: impl Fn(u16) -> bool) -> Result<(), Full> {
        let below = std::mem::replace(&mut self.covered_below, ROOT);
        self.renew_each(|slot| which(slot) || usize::from(slot) >= below)
    }

    fn renew_each(&mut self, which: impl Fn(u16) -> bool) -> Result<(), Full> {
        let mut all = Ok(());
        for slot in (0..=u16::MAX).filter(|&slot| which(slot)) {
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
        let lines = if self.nodes.large {
            COVERED_LINES * size_of::<Line>()
        } else {
            0
        };
        (
            Trie::fixed_bytes() + lines + self.nodes.words.bytes(),
            self.rib.bytes(),
        )
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
        if self.nodes.large && self.covered_below < ROOT {
            let next = self.covered_below..ROOT.min(self.covered_below + RENEWED);
            self.covered_below = next.end;
            for slot in next {
                // Without memory the trie tells.
                let _ = self.renew(slot as u16);
            }
        }
    }

    /// Whether the table has become a large one; once one, it stays one.
    fn grow_large(&mut self) {
        self.nodes.large = self.nodes.large
            || (self.rib.len() >= self.nodes.shape.lines_from && self.nodes.make_lines());
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
        if let Err(Full) = self
            .nodes
            .root(&self.rib, third, usize::from(slot), cover, Scope::All)
        {
            self.nodes.abandon();
            return Err(Full);
        }
        self.commit();
        Ok(())
    }

    /// The group that covers a slot of the root.
    fn cover(&self, second: Option<u32>, first_octet: u8, second_octet: u8) -> u32 {
        let best = |number: u32, slot: u8| {
            self.rib
                .node(number)
                .map(|node| node.best(usize::from(slot)))
                .filter(|route| route.place() > 0)
        };
        second
            .and_then(|second| best(second, second_octet))
            .or_else(|| best(rib::TOP, first_octet))
            .map_or(0, rib::Word::group)
    }

    /// Works out what changes with a prefix.
    fn plan(&mut self, prefix: &Prefix) -> Result<(), Full> {
        let Grower { rib, nodes, .. } = self;
        let Some(top) = rib.node(rib::TOP) else {
            return Err(Full);
        };
        let child = |number: Option<u32>, slot: usize| rib.node(number?)?.child(slot);
        if prefix.level() >= 2 {
            let second = child(Some(rib::TOP), prefix.slot(0));
            let third = child(second, prefix.slot(1));
            let slot = prefix.slot(0) << 8 | prefix.slot(1);
            let cover = self.cover(second, prefix.slot(0) as u8, prefix.slot(1) as u8);
            if let Some(third) = third.and_then(|third| self.rib.node(third))
                && self.nodes.change_run(third, slot, cover, prefix)
            {
                return Ok(());
            }
            return self
                .nodes
                .root(&self.rib, third, slot, cover, Scope::Prefix(prefix));
        }
        let firsts = if prefix.level() == 0 {
            prefix.span()
        } else {
            prefix.slot(0)..prefix.slot(0) + 1
        };
        for first in firsts {
            let best = top.best(first);
            if prefix.level() == 0 && best.place() > prefix.place() {
                continue;
            }
            let second = child(Some(rib::TOP), first);
            let painted = second
                .and_then(|number| rib.node(number))
                .map_or_else(|| [rib::Word::default(); SLOTS], rib::Node::paint);
            let (seconds, longest) = if prefix.level() == 0 {
                (0..SLOTS, 0)
            } else {
                (prefix.span(), prefix.place())
            };
            for at in seconds {
                let route = painted.get(at).copied().unwrap_or_default();
                if route.place() <= longest {
                    let cover = if route.place() > 0 {
                        route.group()
                    } else {
                        best.group()
                    };
                    nodes.root(rib, child(second, at), first << 8 | at, cover, Scope::Cover)?;
                }
            }
        }
        Ok(())
    }

    /// Stores what was planned.
    fn commit(&mut self) {
        let nodes = &mut self.nodes;
        nodes.store();
        nodes.fresh.clear();
        if nodes.replaced.is_empty() {
            return;
        }
        let ticket = self.domain.ticket();
        nodes.count -= nodes.replaced.len();
        let coded = nodes
            .replaced
            .iter()
            .filter(|block| !block.node.is_plain())
            .count() as u32;
        nodes.trie.coded.fetch_sub(coded, Ordering::Relaxed);
        self.retired
            .extend(nodes.replaced.drain(..).map(|block| (ticket, block)));
    }
}

/// Lines that tell something from which on a lookup begins with them: all but one in 32.
const ENOUGH: usize = COVERED_LINES / 32 * 31;

/// Slots of a node that a line tells of.
const SLOTS_OF_LINE: usize = SLOTS / LINES_OF_SLOT;
/// Slots of a prefix that is looked for a run of its own.
const NARROW: usize = 16;
/// Of so many numbers of routes of a node one is that with which it is looked at as a whole.
const SELDOM: usize = 8;

/// Runs of a fork's part at most when it is cut; it may grow until its node is full.
const PART: usize = range::MAX_MARKS * 7 / 8;
/// Routes from which on a subtree that is forked stays so.
const FORKED: usize = 64;
/// Parts of a fork that are changed one by one; if more are concerned, all of them are cut anew.
const FEW_PARTS: usize = 4;

/// Whether this is a plain or dense node.
fn is_of_slots(entry: Entry) -> bool {
    entry.is_node() && !entry.is_ranges() && !entry.is_fork()
}

/// Words of a bitmap of the root's slots.
const ROOT_WORDS: usize = ROOT / 64;

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
    /// Whether the table has so many routes that it has lines.
    large: bool,
    /// The slot of the root that is planned, and what it holds then: a node of these slots, or a leaf.
    slot: usize,
    shown: Slots,
    is_leaf: bool,
    /// Lines that tell something else when it is done.
    lines: Vec<(usize, Option<Covered>)>,
    /// Lines that tell something.
    covered: usize,
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
    fn root(
        &mut self,
        rib: &Rib,
        node: Option<u32>,
        slot: usize,
        cover: u32,
        scope: Scope<'_>,
    ) -> Result<(), Full> {
        let old = self.trie.top(slot);
        (self.slot, self.is_leaf) = (slot, false);
        let new = self.plan(rib, node, 2, cover, old, scope)?;
        if new != old {
            self.stores.push((Place::Root(slot), new));
        }
        if self.is_shown(2) {
            self.show(scope);
        }
        Ok(())
    }

    /// Fetches what a change of a prefix reads after its exact routes: the node below its slot of the root, and the lines.
    fn announce(&self, prefix: &Prefix) {
        let slot = prefix.slot(0) << 8 | prefix.slot(1);
        let (top, first) = (self.trie.top(slot), slot * LINES_OF_SLOT);
        if top.is_node() {
            let words = self.trie.words.node(top.unit(), range::LINE);
            words
                .iter()
                .step_by(range::LINE - 1)
                .for_each(weir_cpu::prefetch);
        }
        if let Some(lines) = self.trie.lines.get() {
            (first..first + LINES_OF_SLOT)
                .filter_map(|line| lines.get(line))
                .for_each(weir_cpu::prefetch);
        }
    }

    /// Changes the entry of a prefix where it has a run of its own in its node and its line, which stays where it is. `false`, and
    /// nothing is changed, when it takes more.
    fn change_run(&self, node: &rib::Node, slot: usize, cover: u32, prefix: &Prefix) -> bool {
        let (top, span) = (self.trie.top(slot), prefix.span());
        // Now and then the node is looked at as a whole, since runs that became alike stay apart here.
        if prefix.level() != 2
            || span.len() > NARROW
            || !is_of_slots(top)
            || node.below().is_multiple_of(SELDOM)
        {
            return false;
        }
        let best = node.best(span.start);
        let group = if best.place() > 0 {
            best.group()
        } else {
            cover
        };
        let (entry, byte) = (Entry::leaf(group), self.trie.byte_of(top, span.start));
        let is_same = |slot: usize| node.best(slot) == best && self.trie.byte_of(top, slot) == byte;
        let is_other = |slot: usize| self.trie.byte_of(top, slot) != byte;
        let is_one = span.clone().skip(1).all(is_same)
            && span.start.checked_sub(1).is_none_or(is_other)
            && (span.end == SLOTS || is_other(span.end))
            && !self.trie.step(top, span.start).is_node();
        if best.place() > prefix.place() || !is_one || entry.0 > dense::most(top.narrow()) {
            return false;
        }
        let line = slot * LINES_OF_SLOT + span.start / SLOTS_OF_LINE;
        let line = self
            .trie
            .lines
            .get()
            .and_then(|lines| lines.get(line))
            .filter(|line| line.is_open());
        let covered = span.start % SLOTS_OF_LINE..span.start % SLOTS_OF_LINE + span.len();
        let run = line.and_then(|line| Some((line, line.run_of(&covered)?)));
        if line.is_some() && run.is_none() {
            return false;
        }
        self.trie.store(Place::Run(byte, top.narrow()), entry);
        if let Some((line, run)) = run {
            line.change(run, entry);
        }
        true
    }

    /// Readies memory for lines.
    fn make_lines(&mut self) -> bool {
        self.trie.lines.get().is_some()
            || Lines::new().is_some_and(|lines| self.trie.lines.set(lines).is_ok())
    }

    /// Whether lines tell what is planned at this level.
    fn is_shown(&self, level: usize) -> bool {
        self.large && level == 2 && self.slot < COVERED_SLOTS
    }

    /// Plans the lines below the slot of the root, those of a prefix if only that is concerned.
    fn show(&mut self, scope: Scope<'_>) {
        let concerned = match scope {
            Scope::Prefix(prefix) if prefix.level() > 2 => prefix.slot(2)..prefix.slot(2) + 1,
            Scope::Prefix(prefix) => prefix.span(),
            Scope::Cover | Scope::All => 0..SLOTS,
        };
        let first = self.slot * LINES_OF_SLOT;
        for (line, slots) in (0..).zip(self.shown.chunks(SLOTS / LINES_OF_SLOT)) {
            let begins = line * (SLOTS / LINES_OF_SLOT);
            if begins >= concerned.end || begins + slots.len() <= concerned.start {
                continue;
            }
            let line = first + line;
            let covered = if self.is_leaf {
                Some(Covered::one(self.shown[0]))
            } else {
                Covered::new(slots)
            };
            if self
                .trie
                .lines
                .get()
                .and_then(|lines| lines.get(line))
                .is_some_and(|line| !line.is(covered.as_ref()))
            {
                self.lines.push((line, covered));
            }
        }
    }

    /// Lets all lines tell of an empty table.
    fn show_nothing(&mut self) {
        let nothing = Covered::one(Entry::NO_ROUTE);
        self.lines
            .extend((0..COVERED_LINES).map(|line| (line, Some(nothing.clone()))));
        self.store();
    }

    /// Stores what was planned: lines at last, since who is sent to the trie by one finds there what made it do so.
    fn store(&mut self) {
        for (place, entry) in self.stores.drain(..) {
            self.trie.store(place, entry);
        }
        let before = self.covered;
        for (line, covered) in self.lines.drain(..) {
            if let Some(line) = self.trie.lines.get().and_then(|lines| lines.get(line)) {
                self.covered =
                    self.covered + usize::from(covered.is_some()) - usize::from(line.is_open());
                line.write(covered.as_ref());
            }
        }
        if self.covered != before {
            self.tell();
        }
    }

    /// Says whether nearly all lines tell something.
    fn tell(&mut self) {
        let is_reported = self.covered >= ENOUGH;
        let was_reported = self.trie.is_reported.swap(is_reported, Ordering::Release);
        if let Some(lines) = self
            .trie
            .lines
            .get()
            .filter(|_| is_reported && !was_reported)
        {
            lines.enlarge_pages();
        }
    }

    /// Plans the entry for a subtree of routes: `old` is there now, and `cover` is the group of what the
    /// subtree has no route for.
    fn plan(
        &mut self,
        rib: &Rib,
        number: Option<u32>,
        level: usize,
        cover: u32,
        old: Entry,
        scope: Scope<'_>,
    ) -> Result<Entry, Full> {
        let Some(node) = number
            .and_then(|number| rib.node(number))
            .filter(|node| node.below() > 0)
        else {
            self.replace_all(old);
            (self.is_leaf, self.shown[0]) = (level == 2, Entry::leaf(cover));
            return Ok(Entry::leaf(cover));
        };
        if self.shape.ranges
            && !self.is_few()
            && let Some(entry) = self.plan_ranges(rib, node, level, cover, old, scope)?
        {
            return Ok(entry);
        }
        let many = node.below() >= self.shape.plain_from;
        let painted = node.paint();
        let group = |slot: usize| {
            painted
                .get(slot)
                .filter(|route| route.place() > 0)
                .map_or(cover, |route| route.group())
        };
        let kept = is_of_slots(old) && !matches!(scope, Scope::All);
        if !kept {
            let mut slots: Slots = std::array::from_fn(|slot| Entry::leaf(group(slot)));
            for (slot, child) in node.children() {
                if let Some(entry) = slots.get_mut(slot) {
                    *entry = self.plan(
                        rib,
                        Some(child),
                        level + 1,
                        group(slot),
                        Entry::NO_ROUTE,
                        Scope::All,
                    )?;
                }
            }
            self.replace_all(old);
            if self.is_shown(level) {
                self.shown = slots;
            }
            return self.put(&slots, many);
        }
        let (before, runs) = self.trie.slots(old);
        let mut slots = before;
        // A route covers a slot if no longer one does; places are in order of lengths.
        let (concerned, longest, below) = match scope {
            Scope::Prefix(prefix) if prefix.level() > level => {
                (prefix.slot(level)..prefix.slot(level) + 1, u32::MAX, scope)
            }
            Scope::Prefix(prefix) => (prefix.span(), prefix.place(), Scope::Cover),
            Scope::Cover | Scope::All => (0..SLOTS, 0, Scope::Cover),
        };
        for slot in concerned {
            let (Some(entry), Some(route)) = (slots.get_mut(slot), painted.get(slot)) else {
                continue;
            };
            if route.place() <= longest {
                *entry = self.plan(rib, node.child(slot), level + 1, group(slot), *entry, below)?;
            }
        }
        if self.is_shown(level) {
            self.shown = slots;
        }
        self.put_again(old, &before, &runs, &slots, many)
    }

    /// The same if it can be a node of ranges, or a fork into such.
    fn plan_ranges(
        &mut self,
        rib: &Rib,
        node: &rib::Node,
        level: usize,
        cover: u32,
        old: Entry,
        scope: Scope<'_>,
    ) -> Result<Option<Entry>, Full> {
        if let Scope::Prefix(prefix) = scope
            && old.is_fork()
            && node.below() >= FORKED
            && let Some(entry) =
                self.change_fork(rib, node, level, cover, old, prefix.values(level))?
        {
            return Ok(Some(entry));
        }
        if let Some(coded) = range::Coded::new(rib, node, level, cover) {
            return self.put_ranges(&coded, old).map(Some);
        }
        // A node that is there by octets stays so while it has many routes.
        if node.below() > PART * fork::PARTS || (is_of_slots(old) && !matches!(scope, Scope::All)) {
            return Ok(None);
        }
        match range::marked(rib, node, level, cover, range::WHOLE)
            .filter(|runs| runs.len() <= PART * fork::PARTS)
        {
            Some(runs) => self.put_fork(&runs, old).map(Some),
            None => Ok(None),
        }
    }

    /// A new fork of these runs.
    fn put_fork(&mut self, runs: &[range::Run], old: Entry) -> Result<Entry, Full> {
        let parts = runs.len().div_ceil(PART / 2).clamp(1, fork::PARTS);
        let mut cut = Vec::with_capacity(parts);
        for part in runs.chunks(runs.len().div_ceil(parts).max(1)) {
            let (Some(first), Some(coded)) = (part.first(), range::Coded::of_marks(part)) else {
                return Err(Full);
            };
            cut.push((first.0, self.put_ranges(&coded, Entry::NO_ROUTE)?));
        }
        let entry = self.put_words(fork::coded(cut.into_iter()).iter(), Entry::fork)?;
        self.replace_all(old);
        Ok(entry)
    }

    /// Plans those parts of a fork anew that lie between two values. `None` when these are many, or one of them has outgrown its node.
    fn change_fork(
        &mut self,
        rib: &Rib,
        node: &rib::Node,
        level: usize,
        cover: u32,
        old: Entry,
        (first, last): (u32, u32),
    ) -> Result<Option<Entry>, Full> {
        let concerned = fork::parts(self.trie.fork(old))
            .filter(|part| part.within.0 <= last && part.within.1 >= first);
        let concerned: Vec<fork::Part> = concerned.collect();
        if concerned.len() > FEW_PARTS {
            return Ok(None);
        }
        let coded = concerned
            .iter()
            .map(|part| range::marked(rib, node, level, cover, part.within));
        let Some(coded) = coded
            .map(|runs| range::Coded::of_marks(&runs?))
            .collect::<Option<Vec<_>>>()
        else {
            return Ok(None);
        };
        for (part, coded) in concerned.iter().zip(&coded) {
            let entry = self.put_ranges(coded, part.entry)?;
            if entry != part.entry {
                self.stores.push((
                    Place::Pair(old.unit() as usize * UNIT_WORDS + part.word),
                    entry,
                ));
            }
        }
        Ok(Some(old))
    }

    /// A node in the place of one whose children that stay are in `slots`: in place if its runs allow it.
    fn put_again(
        &mut self,
        old: Entry,
        before: &Slots,
        at: &[u16; SLOTS],
        slots: &Slots,
        many: bool,
    ) -> Result<Entry, Full> {
        let begins = |slot: usize, of: &Slots| slot == 0 || of[slot] != of[slot - 1];
        let narrow = dense::narrow_for(slots);
        let fits = narrow >= old.narrow()
            && (1..SLOTS).all(|slot| at[slot] != at[slot - 1] || slots[slot] == slots[slot - 1]);
        let runs = (0..SLOTS).filter(|&slot| begins(slot, slots)).count();
        let had = usize::from(at[SLOTS - 1] - at[0]) + 1;
        if fits
            && (old.is_plain()
                || 4 * dense::byte_of(0, runs, narrow) > 3 * dense::byte_of(0, had, old.narrow()))
        {
            let changed = (0..SLOTS).filter(|&slot| {
                slots[slot] != before[slot] && (slot == 0 || at[slot] != at[slot - 1])
            });
            let place =
                |slot: usize| Place::Run(byte_of_run(old, usize::from(at[slot])), old.narrow());
            self.stores
                .extend(changed.map(|slot| (place(slot), slots[slot])));
            return Ok(old);
        }
        self.replace(old);
        self.put(slots, many)
    }

    /// Whether the next node is one of the first few.
    fn is_few(&self) -> bool {
        self.count < self.shape.few && self.trie.coded.load(Ordering::Relaxed) == 0
    }

    /// A new plain or dense node: plain while the table has few of them.
    fn put(&mut self, slots: &Slots, many: bool) -> Result<Entry, Full> {
        if self.is_few() || many {
            return self.put_words(slots.map(|slot| slot.0).iter(), Entry::plain);
        }
        let coded = dense::Coded::new(slots);
        self.put_words(coded.words().iter(), |unit| {
            Entry::dense(unit, coded.narrow())
        })
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
        there
            .iter()
            .zip(words)
            .for_each(|(there, word)| there.store(*word.borrow(), Ordering::Relaxed));
        let node = name(unit);
        self.note_fresh(Block { node, units });
        Ok(node)
    }

    /// A node of ranges, in place if only its groups differ.
    fn put_ranges(&mut self, coded: &range::Coded, old: Entry) -> Result<Entry, Full> {
        let trie = self.trie.clone();
        if old.is_node()
            && old.is_ranges()
            && old.indexed() == u32::from(coded.is_indexed())
            && old.has_marks() == coded.has_marks()
            && coded.same_runs(trie.ranges(old))
        {
            let start = old.unit() as usize * UNIT_WORDS;
            let words = trie.ranges(old).iter().zip(coded.words()).enumerate();
            let changed = words.filter(|(_, (there, new))| there.load(Ordering::Relaxed) != **new);
            self.stores
                .extend(changed.map(|(at, (_, &new))| (Place::Pair(start + at), Entry(new))));
            return Ok(old);
        }
        let node = self.put_words(coded.words().iter(), |unit| {
            Entry::ranges(unit, coded.is_indexed(), coded.has_marks())
        })?;
        self.replace_all(old);
        Ok(node)
    }

    fn note_fresh(&mut self, block: Block) {
        self.count += 1;
        if !block.node.is_plain() {
            self.trie.coded.fetch_add(1, Ordering::Relaxed);
        }
        self.fresh.push(block);
    }

    /// Plans to give a node back, not those below.
    fn replace(&mut self, node: Entry) {
        let words = match node {
            node if node.is_ranges() => self.trie.ranges(node),
            node if node.is_fork() => self.trie.fork(node),
            node => self.trie.node(node),
        };
        self.replaced.push(Block {
            node,
            units: size_of_val(words).div_ceil(UNIT) as u32,
        });
    }

    /// Plans to give a node back and all below.
    fn replace_all(&mut self, node: Entry) {
        if !node.is_node() {
            return;
        }
        if node.is_fork() {
            let trie = self.trie.clone();
            fork::parts(trie.fork(node)).for_each(|part| self.replace(part.entry));
        } else if is_of_slots(node) {
            let (slots, _) = self.trie.slots(node);
            slots.into_iter().for_each(|slot| self.replace_all(slot));
        }
        self.replace(node);
    }

    /// Forgets what was planned.
    fn abandon(&mut self) {
        self.stores.clear();
        self.lines.clear();
        self.replaced.clear();
        self.count -= self.fresh.len();
        for block in std::mem::take(&mut self.fresh) {
            if !block.node.is_plain() {
                self.trie.coded.fetch_sub(1, Ordering::Relaxed);
            }
            self.give(block);
        }
    }

    fn give(&mut self, block: Block) {
        self.words.give(block.node.unit(), block.units);
    }
}
