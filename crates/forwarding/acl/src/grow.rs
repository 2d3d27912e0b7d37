//! Growing a table, off the hot path.
//!
//! A tree cuts the rules by a *window*: some neighbouring bits of one field, not necessarily its
//! highest, so that a million hosts of one /16 are distinguished in one step. Each rule goes to the
//! children whose bits it may have. Rules that would go to a great part of the children (those without
//! a source, say, where the source is cut) are put off to the next tree, which cuts something else.
//! At each node what is known of the bits so far takes out rules that cannot match any more, and
//! those that come too late.
//!
//! How many trees are best depends on the list: tables of one, two and four trees are grown, their cost is
//! counted over keys aimed at the rules, and the cheapest stays. Lists within a node lose the rules that
//! an earlier one shadows there, which is what keeps nested ranges short.
//!
//! All is bounded: the work and the memory by the places that rules may take in all nodes together and by
//! the children that they may cost. Where they are used up, leaves stay long; a leaf over
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

pub(crate) const LIMITS: Limits = Limits {
    longest: 512,
    places: 48,
    children: 8,
};
/// Steps down one tree at most.
const DEPTH: usize = 12;
/// Rules that a window is judged by.
const JUDGED: usize = 128;
/// Keys that a table is judged by.
const AIMED: usize = 1024;
/// Shapes of a list that are compared with all that follow.
const EARLY: usize = 16;
/// A list that is cut at almost any price.
const LONG: usize = 4 * LANES;
/// Copies of each rule that are almost any price.
const MOST_COPIES: f64 = 64.0;
/// How many trees are tried.
const TRIED: [usize; 3] = [1, 2, 4];
/// Clocks that need no further tries.
const GOOD: f64 = 30.0;
/// Bytes that a table may have without being waited for.
const NEAR: f64 = 262_144.0;
/// Groups that wait for more rules.
const OPEN: usize = 16;

/// What the path from the root determines about the bits of each field.
#[derive(Clone, Copy, Default)]
struct Known {
    mask: [u32; FIELDS],
    value: [u32; FIELDS],
}

impl Known {
    /// Whether a shape matches nothing that comes here.
    fn is_outside(&self, shape: &Shape, places: &[Place]) -> bool {
        places.iter().enumerate().any(|(field, place)| {
            let least = self.value[field];
            let most = least | (place.whole() & !self.mask[field]);
            shape.high[field] < least || shape.low[field] > most
        })
    }

    /// Whether what comes here and matches `late` matches `early` as well.
    fn shadows(&self, early: &Shape, late: &Shape, places: &[Place]) -> bool {
        places.iter().enumerate().all(|(field, place)| {
            let least = self.value[field];
            let most = least | (place.whole() & !self.mask[field]);
            early.low[field] <= late.low[field].max(least)
                && early.high[field] >= late.high[field].min(most)
        })
    }

    /// How much of what comes here matches a shape, about: the logarithm, in bits.
    fn width(&self, shape: &Shape, places: &[Place]) -> u32 {
        let bits = places.iter().enumerate().map(|(field, place)| {
            let least = self.value[field];
            let most = least | (place.whole() & !self.mask[field]);
            let span = shape.high[field]
                .min(most)
                .saturating_sub(shape.low[field].max(least));
            u32::BITS - span.leading_zeros()
        });
        bits.sum()
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
    /// The lowest and the highest value of the field that come here.
    least: u32,
    most: u32,
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
        let low = shape.low[self.field].max(self.least) >> self.shift;
        let high = shape.high[self.field].min(self.most) >> self.shift;
        let more = high.wrapping_sub(low);
        if more >= self.mask() {
            (0, self.children())
        } else {
            (low & self.mask(), more + 1)
        }
    }
}

/// How good a window is.
struct Verdict {
    /// What it comes to, all charges included.
    score: f64,
    /// The length of the list that a packet meets.
    met: f64,
    /// Children that a rule goes to on average.
    copies: f64,
}

/// The best windows so far: the one that is worth its price, and the one that helps most at any price.
/// Rules in many children often shadow each other there, which only the next level can tell.
#[derive(Default)]
struct Best {
    cheapest: Option<(f64, Window)>,
    shortest: Option<(f64, Window)>,
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
pub(crate) fn grow<F: Family>(
    shapes: &[Shape],
    rules: &[u32],
    limits: &Limits,
) -> Result<Table<F>, usize> {
    let mut best: Option<(f64, Table<F>)> = None;
    let mut refused = 0;
    for trees in TRIED {
        let mut grower = Grower::<F> {
            shapes,
            rules,
            table: Table::empty(),
            known_leaves: HashMap::new(),
            open: Vec::new(),
            places_left: shapes.len() * limits.places + 65_536,
            children_left: shapes.len() * limits.children + 16_384,
            longest: 0,
            counts: Vec::new(),
        };
        let used = grower.forest(trees);
        if grower.longest > limits.longest {
            refused = if refused == 0 {
                grower.longest
            } else {
                refused.min(grower.longest)
            };
            continue;
        }
        let cost = cost(&grower.table, shapes);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, grower.table));
        }
        if used < trees || cost < GOOD {
            break;
        }
    }
    best.map(|(_, table)| table).ok_or(refused)
}

impl<F: Family> Grower<'_, F> {
    /// Grows up to `trees` trees; says how many were needed.
    fn forest(&mut self, trees: usize) -> usize {
        let mut list: Vec<u32> = (0..self.shapes.len() as u32).collect();
        self.prune(&mut list, &Known::default());
        // What all matches ends the list, and need not be looked for.
        let all = Shape {
            low: [0; FIELDS],
            high: std::array::from_fn(|field| {
                F::PLACES.get(field).map_or(0, |place| place.whole())
            }),
        };
        if let Some(always) = list
            .iter()
            .position(|&shape| self.shapes[shape as usize] == all)
        {
            self.table.always = self.rules[list[always] as usize];
            list.truncate(always);
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
    fn place(
        &mut self,
        slot: usize,
        mut list: Vec<u32>,
        known: Known,
        depth: usize,
        may_put_off: bool,
    ) -> Vec<u32> {
        self.prune(&mut list, &known);
        let window = if list.len() <= LANES || depth == DEPTH {
            None
        } else {
            self.choose(&list, &known, depth, may_put_off)
        };
        let Some(window) = window else {
            self.table.nodes[slot] = self.leaf(list);
            return Vec::new();
        };
        let place = F::PLACES[window.field];
        let base = self.table.nodes.len();
        let children = window.children() as usize;
        self.children_left -= children;
        self.table.nodes.resize(base + children, EMPTY);
        self.table.nodes[slot] = Node::inner(
            base as u32,
            place.word,
            place.shift + window.shift,
            window.bits,
        );

        let mut lists = vec![Vec::new(); children];
        let mut off = Vec::new();
        for &shape in &list {
            let (first, count) = window.ring(&self.shapes[shape as usize]);
            if count > window.widest {
                off.push(shape);
                continue;
            }
            self.places_left = self.places_left.saturating_sub(count as usize);
            (0..count).for_each(|n| lists[((first + n) & window.mask()) as usize].push(shape));
        }
        self.children_of(base, lists, &known, window, depth);
        off
    }

    /// Makes the children. Neighbours with the same few rules become one, which then knows less; so do all
    /// children whose rules are those that the window says nothing about.
    fn children_of(
        &mut self,
        base: usize,
        lists: Vec<Vec<u32>>,
        known: &Known,
        window: Window,
        depth: usize,
    ) {
        let mut indifferent: HashMap<Vec<u32>, Node> = HashMap::new();
        let mut child = 0;
        while let Some(list) = lists.get(child).cloned() {
            let place = base + child;
            let everywhere = list
                .iter()
                .all(|&shape| window.ring(&self.shapes[shape as usize]).1 == window.children());
            let alike = lists[child..]
                .iter()
                .take_while(|other| **other == list)
                .count();
            let run = if everywhere || list.len() <= LANES {
                alike
            } else {
                1
            };
            let made = if everywhere {
                indifferent.get(&list).copied()
            } else {
                None
            };
            if let Some(node) = made {
                self.table.nodes[place] = node;
            } else if !list.is_empty() {
                let known = if run == 1 && !everywhere {
                    known.with(window, child as u32)
                } else {
                    *known
                };
                self.place(place, list.clone(), known, depth + 1, false);
            }
            let node = self.table.nodes[place];
            self.table.nodes[place..place + run].fill(node);
            if everywhere {
                indifferent.insert(list, node);
            }
            child += run;
        }
    }

    /// Takes out what cannot match here, or only after an earlier one that then matches too. Not all
    /// earlier ones are compared with each, but the widest of them, which shadow most.
    fn prune(&self, list: &mut Vec<u32>, known: &Known) {
        let mut early: Vec<(u32, u32)> = Vec::with_capacity(EARLY);
        list.retain(|&shape| {
            let candidate = &self.shapes[shape as usize];
            let outside = known.is_outside(candidate, F::PLACES);
            if outside
                || early.iter().any(|&(_, early)| {
                    known.shadows(&self.shapes[early as usize], candidate, F::PLACES)
                })
            {
                return false;
            }
            let width = known.width(candidate, F::PLACES);
            if early.len() < EARLY {
                early.push((width, shape));
            } else if let Some(narrowest) = early
                .iter_mut()
                .min_by_key(|(width, _)| *width)
                .filter(|(least, _)| *least <= width)
            {
                *narrowest = (width, shape);
            }
            true
        });
    }

    /// The window that leaves the shortest lists for what they cost; `None` when none is worth it.
    fn choose(
        &mut self,
        list: &[u32],
        known: &Known,
        depth: usize,
        may_put_off: bool,
    ) -> Option<Window> {
        if self.places_left < list.len() {
            return None;
        }
        let wide = list.len().ilog2() as u8 + if depth == 0 { 2 } else { 1 };
        let most = wide
            .min(if depth == 0 { 14 } else { 10 })
            .min(self.children_left.checked_ilog2()?.min(15) as u8);
        let step = list.len().div_ceil(JUDGED);
        let judged: Vec<u32> = list.iter().copied().step_by(step).collect();
        let mut best = Best::default();
        for (field, place) in F::PLACES.iter().enumerate() {
            if !self.tells_apart(&judged, field) {
                continue;
            }
            let least = known.value[field];
            let highest = least | (place.whole() & !known.mask[field]);
            let mut tried = 0;
            for bits in [
                most,
                most.saturating_sub(2),
                most.saturating_sub(4),
                most.min(6),
            ] {
                let bits = bits.min(place.bits);
                if bits == 0 || tried & 1 << bits != 0 {
                    continue;
                }
                tried |= 1 << bits;
                // Wide windows overlap their neighbours so much that every other one is enough.
                let step_by = if bits > 5 { 2 } else { 1 };
                for shift in (0..=place.bits - bits).rev().step_by(step_by) {
                    let mut window = Window {
                        field,
                        shift,
                        bits,
                        widest: u32::MAX,
                        least,
                        most: highest,
                    };
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
        let shortest = || best.shortest.filter(|_| list.len() > LONG);
        best.cheapest.or_else(shortest).map(|(_, window)| window)
    }

    /// Whether the shapes differ in a field at all.
    fn tells_apart(&self, list: &[u32], field: usize) -> bool {
        let ends = |shape: &u32| {
            (
                self.shapes[*shape as usize].low[field],
                self.shapes[*shape as usize].high[field],
            )
        };
        list.windows(2).any(|pair| ends(&pair[0]) != ends(&pair[1]))
    }

    /// Judges a window, and takes it for the best if it is.
    fn judge(&mut self, list: &[u32], window: Window, step: usize, best: &mut Best) {
        let Some(verdict) = self.verdict(list, window, step) else {
            return;
        };
        let whole = (list.len() * step) as f64;
        let better = |than: Option<(f64, Window)>, score: f64| {
            score < 0.9 * whole && than.is_none_or(|(least, _)| score < least)
        };
        if verdict.copies * whole > self.places_left as f64 {
            return;
        }
        if better(best.cheapest, verdict.score) {
            best.cheapest = Some((verdict.score, window));
        }
        if verdict.copies <= MOST_COPIES && better(best.shortest, verdict.met) {
            best.shortest = Some((verdict.met, window));
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
        once.iter_mut()
            .zip(twice.iter())
            .for_each(|(once, twice)| *once += *twice);
        let mut sum = 0u32;
        for count in once.iter_mut() {
            sum += *count;
            *count = sum;
        }
        let below = |child: u32| {
            if child == 0 {
                0
            } else {
                once[(child - 1) as usize]
            }
        };
        let mut met = 0.0;
        for &shape in list {
            let (first, count) = window.ring(&self.shapes[shape as usize]);
            if count > window.widest {
                continue;
            }
            let end = first + count;
            let total = if end as usize <= children {
                below(end) - below(first)
            } else {
                sum - below(first) + below(end - children as u32)
            };
            met += f64::from(total) / f64::from(count);
        }
        let average = (met / kept as f64 + f64::from(everywhere)) * step as f64;
        let copies = copies as f64 / kept as f64;
        let width = children as f64 / (kept * step) as f64;
        let off = ((list.len() - kept) * step) as f64;
        let charge = if off > 0.0 {
            3.0 + (off / 8.0 + 1.0).log2()
        } else {
            0.0
        };
        let score = average.max(3.0) * (1.0 + 0.1 * (copies - 1.0)) + 0.5 * width + charge;
        Some(Verdict {
            score,
            met: average,
            copies,
        })
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
        shapes
            .iter()
            .enumerate()
            .for_each(|(lane, &shape)| self.put(number, lane, shape));
        number
    }

    fn put(&mut self, group: u32, lane: usize, shape: u32) {
        if let Some(group) = self.table.groups.get_mut(group as usize) {
            F::put(
                group,
                lane,
                self.rules[shape as usize],
                &self.shapes[shape as usize],
            );
        }
    }

    /// A group that holds all these shapes: the open one that needs the fewest more, or a new one.
    fn shared_group(&mut self, shapes: &[u32]) -> u32 {
        let lacks = |members: &[u32]| {
            shapes
                .iter()
                .filter(|shape| !members.contains(shape))
                .count()
        };
        let fitting = self
            .open
            .iter()
            .enumerate()
            .map(|(n, (_, members))| (lacks(members), members.len(), n));
        let fitting = fitting
            .filter(|(lacks, len, _)| lacks + len <= LANES)
            .min_by_key(|(lacks, len, _)| (*lacks, LANES - len));
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
        let Some(one) = shapes.get(next() as usize % shapes.len().max(1)) else {
            return 0.0;
        };
        let other = if n % 4 == 0 {
            &shapes[next() as usize % shapes.len()]
        } else {
            one
        };
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
    // A table that outgrows the near caches is waited for.
    let outgrown = (table.bytes() as f64 / NEAR).max(1.0).log2();
    (2.0 * table.roots.len() as f64 + 4.0 * per(effort.steps) + 12.0 * per(effort.scans))
        * (1.0 + 0.1 * outgrown)
}
