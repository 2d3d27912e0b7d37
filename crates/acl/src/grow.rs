//! Growing a table, off the hot path.
//!
//! A tree cuts the rules by a *window*: some neighbouring bits of one field, not necessarily its
//! highest, so that a million hosts of one /16 are told apart in one step. Each rule goes to the
//! children whose bits it may have. Rules that would go to a great part of the children (those without
//! a source, say, where the source is cut) are put off to the next tree, which cuts something else.
//! At each node what is known of the bits so far takes out rules that cannot match any more, and ends
//! the list at the first rule that always does.
//!
//! How many trees are best depends on the list: tables of one to four trees are grown, their cost is
//! counted over keys aimed at the rules, and the cheapest stays.
//!
//! All is bounded: a list by [`Limits::rules`], the work and the memory by the places that rules may
//! take in all nodes together. Where they are used up, leaves stay long; a leaf over
//! [`Limits::longest`] refuses the list.

use std::collections::HashMap;

use crate::family::{FIELDS, Family, LANES, Place, Shape};
use crate::table::{EMPTY, Effort, Node, Table};

/// How large a table may become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Rules that one leaf may hold.
    pub(crate) longest: usize,
    /// Places in all nodes that each rule may take on average.
    pub(crate) places: usize,
    /// Children that each rule may cost on average.
    pub(crate) children: usize,
}

pub(crate) const LIMITS: Limits = Limits { longest: 512, places: 24, children: 24 };
/// Trees of a table at most.
const TREES: usize = 4;
/// Steps down one tree at most.
const DEPTH: usize = 12;
/// Rules that a window is judged by.
const JUDGED: usize = 1024;
/// Keys that a table is judged by.
const AIMED: usize = 1024;
/// Groups that wait for more rules.
const OPEN: usize = 16;

/// What the way down has told about the bits of each field.
#[derive(Clone, Copy, Default)]
struct Known {
    mask: [u32; FIELDS],
    value: [u32; FIELDS],
}

impl Known {
    /// Whether a shape matches nothing that comes here, and whether it matches everything.
    fn relation(&self, shape: &Shape, places: &[Place]) -> (bool, bool) {
        let (mut outside, mut covers) = (false, true);
        for (field, place) in places.iter().enumerate() {
            let whole = u32::MAX >> (32 - u32::from(place.bits));
            let least = self.value[field];
            let most = least | (whole & !self.mask[field]);
            outside |= shape.high[field] < least || shape.low[field] > most;
            covers &= shape.low[field] <= least && shape.high[field] >= most;
        }
        (outside, covers)
    }

    fn with(&self, window: Window, child: u32) -> Known {
        let mut known = *self;
        known.mask[window.field] |= window.mask() << window.shift;
        known.value[window.field] |= child << window.shift;
        known
    }
}

/// Some neighbouring bits of a field.
#[derive(Clone, Copy, Debug)]
struct Window {
    field: usize,
    shift: u8,
    bits: u8,
    /// Rules that go to more children are put off.
    widest: u32,
}

impl Window {
    const fn mask(self) -> u32 {
        (1 << self.bits) - 1
    }

    const fn children(self) -> u32 {
        1 << self.bits
    }

    /// First child of a shape, and how many children it has: they lie in a ring.
    #[inline]
    fn ring(self, shape: &Shape) -> (u32, u32) {
        let (low, high) = (shape.low[self.field] >> self.shift, shape.high[self.field] >> self.shift);
        let more = high.wrapping_sub(low);
        if more >= self.mask() { (0, self.children()) } else { (low & self.mask(), more + 1) }
    }
}

/// How good a window is.
struct Verdict {
    score: f64,
    kept: usize,
}

struct Grower<'a, F: Family> {
    shapes: &'a [Shape],
    /// The rule of each shape, in ascending order.
    rules: &'a [u32],
    table: Table<F>,
    known_leaves: HashMap<Box<[u32]>, Node>,
    open: Vec<(u32, Vec<u32>)>,
    places_left: usize,
    children_left: usize,
    longest: usize,
    counts: Vec<u32>,
}

/// Grows the table of some shapes; `rules` names them and ascends. `Err` tells the length of a leaf that
/// is longer than the limit.
pub(crate) fn grow<F: Family>(shapes: &[Shape], rules: &[u32], limits: &Limits) -> Result<Table<F>, usize> {
    let mut best: Option<(f64, Table<F>)> = None;
    let mut refused = 0;
    for trees in 1..=TREES {
        let mut grower = Grower::<F> {
            shapes,
            rules,
            table: Table::empty(),
            known_leaves: HashMap::new(),
            open: Vec::new(),
            places_left: shapes.len() * limits.places + 4096,
            children_left: shapes.len() * limits.children + 4096,
            longest: 0,
            counts: Vec::new(),
        };
        let used = grower.forest(trees);
        if grower.longest > limits.longest {
            refused = if refused == 0 { grower.longest } else { refused.min(grower.longest) };
            continue;
        }
        let cost = cost(&grower.table, shapes);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, grower.table));
        }
        if used < trees {
            break;
        }
    }
    best.map(|(_, table)| table).ok_or(refused)
}

impl<F: Family> Grower<'_, F> {
    /// Grows up to `trees` trees; says how many were needed.
    fn forest(&mut self, trees: usize) -> usize {
        let mut list: Vec<u32> = (0..self.shapes.len() as u32).collect();
        if let Some(always) = self.prune(&mut list, &Known::default()) {
            list.pop();
            self.table.always = self.rules[always as usize];
        }
        for tree in 1..=trees {
            if list.is_empty() {
                return tree - 1;
            }
            let slot = self.table.nodes.len();
            self.table.nodes.push(EMPTY);
            let off = self.place(slot, list, Known::default(), 0, tree < trees);
            self.table.roots.push(self.table.nodes[slot]);
            list = off;
        }
        trees
    }

    /// Makes the node at `slot` of a list of shapes; gives those that were put off.
    fn place(&mut self, slot: usize, mut list: Vec<u32>, known: Known, depth: usize, may_put_off: bool) -> Vec<u32> {
        self.prune(&mut list, &known);
        self.places_left = self.places_left.saturating_sub(list.len());
        let window = if list.len() <= LANES || depth == DEPTH { None } else { self.choose(&list, &known, depth, may_put_off) };
        let Some(window) = window else {
            self.table.nodes[slot] = self.leaf(list);
            return Vec::new();
        };
        let place = F::PLACES[window.field];
        let base = self.table.nodes.len();
        let children = window.children() as usize;
        self.children_left -= children;
        self.table.nodes.resize(base + children, EMPTY);
        self.table.nodes[slot] = Node::inner(base as u32, place.word, place.shift + window.shift, window.bits);

        let mut lists = vec![Vec::new(); children];
        let mut off = Vec::new();
        for &shape in &list {
            let (first, count) = window.ring(&self.shapes[shape as usize]);
            if count > window.widest {
                off.push(shape);
                continue;
            }
            (0..count).for_each(|n| lists[((first + n) & window.mask()) as usize].push(shape));
        }
        self.children_of(base, lists, &known, window, depth);
        off
    }

    /// Makes the children; those with the same rules become one, which then knows less.
    fn children_of(&mut self, base: usize, lists: Vec<Vec<u32>>, known: &Known, window: Window, depth: usize) {
        let mut same: HashMap<Vec<u32>, Vec<u32>> = HashMap::new();
        let mut order = Vec::new();
        for (child, list) in lists.into_iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let children = same.entry(list).or_default();
            if children.is_empty() {
                order.push(child);
            }
            children.push(child as u32);
        }
        let mut groups: Vec<(Vec<u32>, Vec<u32>)> = same.into_iter().collect();
        groups.sort_unstable_by_key(|(_, children)| children[0]);
        for (list, children) in groups {
            let first = children[0];
            let known = if children.len() == 1 { known.with(window, first) } else { *known };
            self.place(base + first as usize, list, known, depth + 1, false);
            let node = self.table.nodes[base + first as usize];
            children.iter().for_each(|&child| self.table.nodes[base + child as usize] = node);
        }
    }

    /// Takes out what cannot match here, and ends the list at the shape that always does, which it gives.
    fn prune(&self, list: &mut Vec<u32>, known: &Known) -> Option<u32> {
        let mut always = None;
        list.retain(|&shape| {
            let (outside, covers) = known.relation(&self.shapes[shape as usize], F::PLACES);
            let keep = always.is_none() && !outside;
            if keep && covers {
                always = Some(shape);
            }
            keep
        });
        always
    }

    /// The window that leaves the shortest lists for what they cost; `None` when none is worth it.
    fn choose(&mut self, list: &[u32], known: &Known, depth: usize, may_put_off: bool) -> Option<Window> {
        if self.places_left < list.len() {
            return None;
        }
        let wide = list.len().ilog2() as u8 + if depth == 0 { 2 } else { 1 };
        let most = wide.min(if depth == 0 { 14 } else { 10 }).min(self.children_left.checked_ilog2()?.min(15) as u8);
        let step = list.len().div_ceil(JUDGED);
        let judged: Vec<u32> = list.iter().copied().step_by(step).collect();
        let mut best: Option<(f64, Window)> = None;
        for (field, place) in F::PLACES.iter().enumerate() {
            for bits in [most, most.saturating_sub(2), most.saturating_sub(4)] {
                let bits = bits.min(place.bits);
                if bits == 0 {
                    continue;
                }
                for shift in 0..=place.bits - bits {
                    let mut window = Window { field, shift, bits, widest: u32::MAX };
                    if known.mask[field] & (window.mask() << shift) != 0 {
                        continue;
                    }
                    self.judge(&judged, window, step, &mut best);
                    if may_put_off && bits >= 4 {
                        window.widest = window.children() / 8;
                        self.judge(&judged, window, step, &mut best);
                    }
                }
            }
        }
        best.map(|(_, window)| window)
    }

    /// Judges a window, and takes it for the best if it is.
    fn judge(&mut self, list: &[u32], window: Window, step: usize, best: &mut Option<(f64, Window)>) {
        let Some(verdict) = self.verdict(list, window, step) else { return };
        let limit = self.places_left.min(verdict.kept * step * 64);
        let worth = verdict.score < 0.9 * (list.len() * step) as f64 && limit > 0;
        if worth && best.as_ref().is_none_or(|(least, _)| verdict.score < *least) {
            *best = Some((verdict.score, window));
        }
    }

    /// The length of the list that a packet meets which is aimed at one of the rules, with a charge for
    /// copies, for children, and for what is put off.
    fn verdict(&mut self, list: &[u32], window: Window, step: usize) -> Option<Verdict> {
        let children = window.children() as usize;
        self.counts.clear();
        self.counts.resize(children * 2 + 1, 0);
        let (mut everywhere, mut kept, mut copies) = (0u32, 0usize, 0u64);
        for &shape in list {
            let (first, count) = window.ring(&self.shapes[shape as usize]);
            if count > window.widest {
                continue;
            }
            kept += 1;
            copies += u64::from(count);
            if count as usize == children {
                everywhere += 1;
                continue;
            }
            // Over a ring laid out twice no range has to be cut.
            self.counts[first as usize] = self.counts[first as usize].wrapping_add(1);
            let end = (first + count) as usize;
            self.counts[end] = self.counts[end].wrapping_sub(1);
        }
        if kept == 0 || kept * 4 < list.len() {
            return None;
        }
        // Differences become counts, the second turn of the ring is laid over the first, counts become sums.
        let mut running = 0u32;
        for count in &mut self.counts {
            running = running.wrapping_add(*count);
            *count = running;
        }
        let (once, twice) = self.counts.split_at_mut(children);
        once.iter_mut().zip(twice.iter()).for_each(|(once, twice)| *once += *twice);
        let mut sum = 0u32;
        for count in once.iter_mut() {
            sum += *count;
            *count = sum;
        }
        let below = |child: u32| if child == 0 { 0 } else { once[(child - 1) as usize] };
        let mut met = 0.0;
        for &shape in list {
            let (first, count) = window.ring(&self.shapes[shape as usize]);
            if count > window.widest {
                continue;
            }
            let end = first + count;
            let total =
                if end as usize <= children { below(end) - below(first) } else { sum - below(first) + below(end - children as u32) };
            met += f64::from(total) / f64::from(count);
        }
        let average = (met / kept as f64 + f64::from(everywhere)) * step as f64;
        let copies = copies as f64 / kept as f64;
        let width = children as f64 / (kept * step) as f64;
        let off = ((list.len() - kept) * step) as f64;
        let charge = if off > 0.0 { 3.0 + (off / 8.0 + 1.0).log2() } else { 0.0 };
        let score = average.max(3.0) * (1.0 + 0.1 * (copies - 1.0)) + 0.5 * width + charge;
        Some(Verdict { score, kept })
    }

    /// The leaf of some shapes.
    fn leaf(&mut self, list: Vec<u32>) -> Node {
        self.longest = self.longest.max(list.len());
        if list.is_empty() {
            return EMPTY;
        }
        if let Some(leaf) = self.known_leaves.get(&*list) {
            return *leaf;
        }
        let leaf = if list.len() <= LANES {
            Node::leaf(self.shared_group(&list), 1)
        } else {
            let group = self.table.groups.len() as u32;
            list.chunks(LANES).for_each(|chunk| {
                self.new_group(chunk);
            });
            Node::leaf(group, list.len().div_ceil(LANES) as u16)
        };
        self.known_leaves.insert(list.into_boxed_slice(), leaf);
        leaf
    }

    fn new_group(&mut self, shapes: &[u32]) -> u32 {
        let number = self.table.groups.len() as u32;
        self.table.groups.push(F::Group::default());
        shapes.iter().enumerate().for_each(|(lane, &shape)| self.put(number, lane, shape));
        number
    }

    fn put(&mut self, group: u32, lane: usize, shape: u32) {
        if let Some(group) = self.table.groups.get_mut(group as usize) {
            F::put(group, lane, self.rules[shape as usize], &self.shapes[shape as usize]);
        }
    }

    /// A group that holds all these shapes: the open one that needs the fewest more, or a new one.
    fn shared_group(&mut self, shapes: &[u32]) -> u32 {
        let lacks = |members: &[u32]| shapes.iter().filter(|shape| !members.contains(shape)).count();
        let fitting = self.open.iter().enumerate().map(|(n, (_, members))| (lacks(members), members.len(), n));
        let fitting = fitting.filter(|(lacks, len, _)| lacks + len <= LANES).min_by_key(|(lacks, len, _)| (*lacks, LANES - len));
        let Some((_, _, n)) = fitting else {
            if self.open.len() == OPEN {
                self.open.remove(0);
            }
            let group = self.new_group(shapes);
            self.open.push((group, shapes.to_vec()));
            return group;
        };
        let (group, mut members) = self.open.remove(n);
        for &shape in shapes {
            if !members.contains(&shape) {
                self.put(group, members.len(), shape);
                members.push(shape);
            }
        }
        self.open.push((group, members));
        group
    }
}

/// What a key costs on average, in about clocks: keys aimed at rules, some at parts of two.
fn cost<F: Family>(table: &Table<F>, shapes: &[Shape]) -> f64 {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random >> 16
    };
    let mut effort = Effort::default();
    for n in 0..AIMED {
        let Some(one) = shapes.get(next() as usize % shapes.len().max(1)) else { return 0.0 };
        let other = if n % 4 == 0 { &shapes[next() as usize % shapes.len()] } else { one };
        let mut words = [0u32; 16];
        for (field, place) in F::PLACES.iter().enumerate() {
            let shape = if field % 2 == 0 { one } else { other };
            let span = u64::from(shape.high[field] - shape.low[field]) + 1;
            let value = shape.low[field] + (next() % span) as u32;
            words[usize::from(place.word) % 16] |= value << place.shift;
        }
        table.search(&F::key(&words), &mut effort);
    }
    let per = |count: u32| f64::from(count) / AIMED as f64;
    let c = 2.0 * table.roots.len() as f64 + 4.0 * per(effort.steps) + 12.0 * per(effort.scans);
    if std::env::var_os("ACL_DEBUG").is_some() {
        eprintln!(
            "trees {} cost {c:.1} steps {:.2} scans {:.2} nodes {} groups {} always {}",
            table.roots.len(),
            per(effort.steps),
            per(effort.scans),
            table.nodes.len(),
            table.groups.len(),
            table.always
        );
    }
    c
}
