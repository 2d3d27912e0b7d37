//! The table of incoming labels, and what is pushed on the way out.
//!
//! [`Lfib`] maps a label to a [`LabelEntry`]: a group, and how the label is taken off. It is read by its
//! index: a root of 1024 blocks of 1024 entries each, made when a label of theirs is first set and kept
//! until the table goes. So a table of few labels fits the first-level cache, one of all 1,048,576 takes
//! 4 MiB, and a lookup is two loads in either. Entries are single words: workers read while the one hand that
//! changes the table stores, and nobody waits.
//!
//! The group says what happens next, as for a route: a path with a [`LabelStack`] swaps (and pushes), one to a
//! neighbour without any pops and passes on, one that ends in a lookup or a pseudowire ends here. The paths of a
//! stack end in an adjacency of their own over that of the neighbour ([`Labelled`]).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use crate::Adjacency;
use crate::entry::{GROUP_BITS, GROUP_MASK};
use crate::group::{LabelStack, TtlMode};

/// The most labels that a path pushes, an entropy label and its indicator not counted.
pub const MAX_LABELS: usize = 16;
/// Entries that a path pushes at most: RFC 6790's two beside its labels.
pub const MAX_ENTRIES: usize = MAX_LABELS + 2;
/// Labels that there can be.
const LABELS: u32 = 1 << 20;
const BLOCK: usize = 1024;

/// What lies under the last label of a stack that is taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub enum Payload {
    /// IPv4 or IPv6, as its version field says.
    #[default]
    Either,
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

/// What is done with an incoming label, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LabelEntry(u32);

const SET: u32 = 1 << 31;
const PIPE: u32 = 1 << 30;
const PAYLOAD_SHIFT: u32 = 28;
const _: () = assert!(GROUP_BITS <= PAYLOAD_SHIFT);

impl LabelEntry {
    /// No such label.
    pub const NONE: LabelEntry = LabelEntry(0);

    /// Packets go by `group`; where the label is taken off, by `mode`, and `payload` lies under the last one.
    #[must_use]
    pub const fn new(group: u32, mode: TtlMode, payload: Payload) -> LabelEntry {
        let mode = if matches!(mode, TtlMode::Uniform) {
            0
        } else {
            PIPE
        };
        LabelEntry(SET | mode | (payload as u32) << PAYLOAD_SHIFT | group & GROUP_MASK)
    }

    /// Whether there is such a label.
    #[inline(always)]
    #[must_use]
    pub const fn is_set(self) -> bool {
        self.0 & SET != 0
    }

    /// The group; the one that drops when the label is not set.
    #[inline(always)]
    #[must_use]
    pub const fn group(self) -> u32 {
        self.0 & GROUP_MASK
    }

    /// Whether the time to live under the label stays as it is when the label goes. Pipe and short pipe differ
    /// only in whose traffic class the egress acts by, so one bit does.
    #[inline(always)]
    #[must_use]
    pub const fn is_pipe(self) -> bool {
        self.0 & PIPE != 0
    }

    /// What lies under it when it is the last.
    #[inline(always)]
    #[must_use]
    pub const fn payload(self) -> Payload {
        match self.0 >> PAYLOAD_SHIFT & 3 {
            1 => Payload::Ip4,
            2 => Payload::Ip6,
            _ => Payload::Either,
        }
    }
}

type Block = Box<[AtomicU32; BLOCK]>;

/// The table of incoming labels.
pub struct Lfib {
    root: Box<[OnceLock<Block>]>,
}

impl Default for Lfib {
    fn default() -> Lfib {
        Lfib {
            root: (0..LABELS as usize / BLOCK)
                .map(|_| OnceLock::new())
                .collect(),
        }
    }
}

impl Lfib {
    /// The entry of a label; [`LabelEntry::NONE`] beyond 20 bits too.
    #[inline(always)]
    #[must_use]
    pub fn lookup(&self, label: u32) -> LabelEntry {
        let Some(block) = self
            .root
            .get(label as usize / BLOCK)
            .and_then(OnceLock::get)
        else {
            return LabelEntry::NONE;
        };
        // Acquire, so that whoever sees an entry sees what was published before it.
        LabelEntry(block[label as usize % BLOCK].load(Ordering::Acquire))
    }

    /// Sets a label's entry; returns the one before. `None`, and nothing is done, beyond 20 bits. For the one hand
    /// that changes the table; groups keep to the crate's order of changes.
    pub fn set(&self, label: u32, entry: LabelEntry) -> Option<LabelEntry> {
        let place = self.root.get(label as usize / BLOCK)?;
        if place.get().is_none() && !entry.is_set() {
            return Some(LabelEntry::NONE);
        }
        let block = place.get_or_init(|| Box::new([const { AtomicU32::new(0) }; BLOCK]));
        Some(LabelEntry(
            block[label as usize % BLOCK].swap(entry.0, Ordering::AcqRel),
        ))
    }

    /// All labels that are set, in order.
    pub fn labels(&self) -> impl Iterator<Item = (u32, LabelEntry)> {
        let blocks = self
            .root
            .iter()
            .enumerate()
            .filter_map(|(place, block)| Some((place * BLOCK, block.get()?)));
        blocks.flat_map(|(first, block)| {
            let entries = block
                .iter()
                .map(|entry| LabelEntry(entry.load(Ordering::Acquire)));
            entries
                .enumerate()
                .filter(|(_, entry)| entry.is_set())
                .map(move |(place, entry)| ((first + place) as u32, entry))
        })
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let blocks = self
            .root
            .iter()
            .filter(|block| block.get().is_some())
            .count();
        self.root.len() * size_of::<OnceLock<Block>>() + blocks * BLOCK * size_of::<AtomicU32>()
    }
}

impl std::fmt::Debug for Lfib {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.labels()).finish()
    }
}

/// Where an entry's time to live and traffic class come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner(u8);

impl Manner {
    const UNIFORM: u8 = 1 << 7;
    const HAS_CLASS: u8 = 1 << 3;
    const CLASS: u8 = 7;

    fn new(uniform: bool, class: Option<u8>) -> Manner {
        let class = class.map_or(0, |class| Manner::HAS_CLASS | class & Manner::CLASS);
        Manner(if uniform {
            Manner::UNIFORM | class
        } else {
            class
        })
    }

    /// Whether it takes the time to live of what it is pushed onto; else it begins at [`Labelled::ttl`].
    #[inline(always)]
    #[must_use]
    pub fn is_uniform(self) -> bool {
        self.0 & Manner::UNIFORM != 0
    }

    /// Its own traffic class, or that of what the stack is pushed onto.
    #[inline(always)]
    #[must_use]
    pub fn class(self, below: u8) -> u8 {
        (if self.0 & Manner::HAS_CLASS != 0 {
            self.0
        } else {
            below
        }) & Manner::CLASS
    }
}

/// A stack of labels over a neighbour, made ready to be written.
#[derive(Debug)]
#[repr(align(64))]
pub struct Labelled {
    /// The neighbour that gets the packets.
    pub below: Arc<Adjacency>,
    /// The entries as they stand on the wire, outermost first, without traffic class, bottom and time to live.
    entries: [u32; MAX_ENTRIES],
    depth: u8,
    /// The place of the entropy label, when one is pushed.
    entropy: Option<u8>,
    /// How each entry is written.
    manners: [Manner; MAX_ENTRIES],
    /// Whether the only entry is an ordinary label: what a swap of the usual kind writes.
    single: bool,
    /// The time to live that pushed labels begin with where they do not take it over.
    pub ttl: u8,
}

/// RFC 6790: the next label tells flows apart.
const ENTROPY_INDICATOR: u32 = 7;

impl Labelled {
    pub(crate) fn new(below: Arc<Adjacency>, stack: &LabelStack) -> Labelled {
        let mut labels: Vec<u32> = stack.labels.iter().copied().take(MAX_LABELS).collect();
        let mut manners = manners_of(stack);
        // RFC 6790 section 4.2: directly below the tunnel's label, and treated as that; of several tunnels, the outermost
        // that wants one.
        let entropy = first_of_tunnel(stack)
            .filter(|first| *first < labels.len())
            .map(|first| {
                let below = first + 1;
                labels.splice(below..below, [ENTROPY_INDICATOR, 0]);
                let manner = manners.get(first).copied().unwrap_or_default();
                manners.splice(below..below, [manner, manner]);
                below as u8 + 1
            });
        let depth = labels.len().min(MAX_ENTRIES) as u8;
        let mut labelled = Labelled {
            below,
            entries: [0; MAX_ENTRIES],
            depth,
            entropy,
            manners: [Manner::default(); MAX_ENTRIES],
            single: depth == 1 && stack.class.is_none(),
            ttl: stack.ttl,
        };
        labelled
            .entries
            .iter_mut()
            .zip(&labels)
            .for_each(|(place, label)| *place = label << 12);
        labelled
            .manners
            .iter_mut()
            .zip(manners)
            .for_each(|(place, manner)| *place = manner);
        labelled
    }

    /// The entries, outermost first: label in place, all else 0. Never empty.
    #[inline(always)]
    #[must_use]
    pub fn entries(&self) -> &[u32] {
        self.entries.get(..usize::from(self.depth)).unwrap_or(&[])
    }

    /// The entries, and how each is written.
    #[inline(always)]
    pub fn written(&self) -> impl Iterator<Item = (u32, Manner)> {
        self.entries().iter().copied().zip(self.manners)
    }

    /// Bytes that the entries take.
    #[inline(always)]
    #[must_use]
    pub fn bytes(&self) -> usize {
        4 * usize::from(self.depth)
    }

    /// The place of the entropy label among the entries.
    #[inline(always)]
    #[must_use]
    pub fn entropy(&self) -> Option<usize> {
        self.entropy.map(usize::from)
    }

    /// The entry that is pushed when it is only one and all else of it comes from what it is pushed onto.
    #[inline(always)]
    #[must_use]
    pub fn only_push(&self) -> Option<u32> {
        (self.single && self.manners[0].is_uniform()).then_some(self.entries[0])
    }

    /// The entry that a swap writes when it is only one and all else of it comes from the label before.
    #[must_use]
    pub fn only_swap(&self) -> Option<u32> {
        self.single.then_some(self.entries[0])
    }
}

/// How each label of a stack is written: what a path does not say of its labels they have from the label below, which
/// has it from the path that it is of.
fn manners_of(stack: &LabelStack) -> Vec<Manner> {
    let (mut uniform, mut class) = (stack.mode == TtlMode::Uniform, stack.class);
    let outer: usize = stack.outer.iter().map(|layer| layer.depth).sum();
    let mut manners = vec![Manner::new(uniform, class); stack.labels.len().saturating_sub(outer)];
    for layer in stack.outer.iter().rev() {
        uniform &= layer.mode == TtlMode::Uniform;
        class = layer.class.or(class);
        manners.splice(
            ..0,
            std::iter::repeat_n(Manner::new(uniform, class), layer.depth),
        );
    }
    manners
}

/// The place of the outermost label that wants an entropy label below it.
fn first_of_tunnel(stack: &LabelStack) -> Option<usize> {
    let mut first = 0;
    for layer in &stack.outer {
        if layer.entropy {
            return Some(first);
        }
        first += layer.depth;
    }
    stack.entropy.then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_its_parts() {
        for mode in [TtlMode::Uniform, TtlMode::Pipe, TtlMode::ShortPipe] {
            for payload in [Payload::Either, Payload::Ip4, Payload::Ip6] {
                let entry = LabelEntry::new(77, mode, payload);
                assert!(entry.is_set());
                assert_eq!(
                    (entry.group(), entry.is_pipe(), entry.payload()),
                    (77, mode != TtlMode::Uniform, payload)
                );
            }
        }
        assert!(!LabelEntry::NONE.is_set() && LabelEntry::NONE.group() == 0);
        assert_eq!(
            LabelEntry::new(u32::MAX, TtlMode::Pipe, Payload::Ip6).group(),
            crate::MAX_GROUP
        );
    }

    #[test]
    fn labels_come_and_go_in_place() {
        let table = Lfib::default();
        let empty = table.bytes();
        let entry = |group| LabelEntry::new(group, TtlMode::Uniform, Payload::Either);
        assert_eq!(table.set(5000, LabelEntry::NONE), Some(LabelEntry::NONE));
        assert_eq!(table.bytes(), empty);
        for label in [0, 16, 1023, 1024, 0xf_ffff] {
            assert_eq!(table.set(label, entry(label + 1)), Some(LabelEntry::NONE));
            assert_eq!(table.lookup(label), entry(label + 1));
        }
        assert_eq!(table.set(16, entry(9)), Some(entry(17)));
        assert_eq!(
            table.labels().map(|(label, _)| label).collect::<Vec<_>>(),
            [0, 16, 1023, 1024, 0xf_ffff]
        );
        assert_eq!(table.set(16, LabelEntry::NONE), Some(entry(9)));
        assert_eq!(
            (table.lookup(16), table.lookup(17), table.lookup(500_000)),
            (LabelEntry::NONE, LabelEntry::NONE, LabelEntry::NONE)
        );
        for beyond in [0x10_0000, u32::MAX] {
            assert_eq!(
                (table.set(beyond, entry(1)), table.lookup(beyond)),
                (None, LabelEntry::NONE)
            );
        }
    }

    #[test]
    fn all_labels_take_four_mebibytes() {
        let table = Lfib::default();
        for label in 0..LABELS {
            table.set(
                label,
                LabelEntry::new(label & GROUP_MASK, TtlMode::Uniform, Payload::Either),
            );
        }
        assert!((0..LABELS).all(|label| table.lookup(label).group() == label));
        assert!(table.bytes() < (4 << 20) + (64 << 10), "{}", table.bytes());
    }

    #[test]
    fn an_entry_is_seen_old_or_new_while_it_changes() {
        let table = Lfib::default();
        let entry = |group| LabelEntry::new(group, TtlMode::Uniform, Payload::Either);
        table.set(100, entry(1));
        std::thread::scope(|scope| {
            let reader =
                scope.spawn(|| (0..100_000).all(|_| matches!(table.lookup(100).group(), 1 | 2)));
            for round in 0..100_000 {
                table.set(100, entry(1 + round % 2));
            }
            assert!(reader.join().unwrap());
        });
    }

    fn written(stack: &LabelStack) -> Vec<(u32, bool, u8)> {
        let below = Arc::new(Adjacency::neighbor(1, [192, 0, 2, 1].into(), 1500, [2; 6]));
        let labelled = Labelled::new(below, stack);
        // A class that is none tells who takes that of the packet.
        labelled
            .written()
            .map(|(entry, manner)| (entry >> 12, manner.is_uniform(), manner.class(7)))
            .collect()
    }

    /// RFC 3443 section 3: a path within another has its own mode; what one does not say it has from what is below.
    #[test]
    fn labels_of_each_path_are_written_as_that_says() {
        use TtlMode::{Pipe, Uniform};
        let path = |mode, class, labels: &[u32]| LabelStack {
            mode,
            class,
            ..LabelStack::of(labels)
        };
        let inner = path(Uniform, None, &[500, 501]);
        assert_eq!(
            written(&inner.within(path(Pipe, Some(5), &[100, 101]))),
            [
                (100, false, 5),
                (101, false, 5),
                (500, true, 7),
                (501, true, 7)
            ]
        );
        assert_eq!(
            written(&path(Pipe, Some(3), &[500]).within(path(Uniform, None, &[100]))),
            [(100, false, 3), (500, false, 3)]
        );
        assert_eq!(
            written(&path(Uniform, Some(3), &[500]).within(path(Pipe, None, &[100]))),
            [(100, false, 3), (500, true, 3)]
        );
        // Three of them, however they came together.
        let (one, two, three) = (
            path(Uniform, Some(1), &[1]),
            path(Pipe, None, &[2]),
            path(Uniform, Some(4), &[3, 4]),
        );
        let all = [(1, false, 1), (2, false, 4), (3, true, 4), (4, true, 4)];
        assert_eq!(written(&three.within(two.within(one.clone()))), all);
        assert_eq!(written(&three.within(two).within(one)), all);
        // What makes no difference is one stack, and one without labels is none.
        assert_eq!(
            inner.within(LabelStack::of(&[100])),
            LabelStack::of(&[100, 500, 501])
        );
        let pipe = path(Pipe, Some(2), &[7]);
        assert_eq!(
            pipe.within(path(Pipe, Some(2), &[6])),
            path(Pipe, Some(2), &[6, 7])
        );
        assert_eq!(
            (
                LabelStack::default().within(pipe.clone()),
                pipe.within(LabelStack::default())
            ),
            (pipe.clone(), pipe)
        );
    }

    #[test]
    fn an_entropy_label_is_below_the_first_label_of_the_path_that_wants_it() {
        let path = |entropy, labels: &[u32]| LabelStack {
            entropy,
            ..LabelStack::of(labels)
        };
        let labels = |inner, outer| {
            let stack = path(inner, &[500, 501]).within(path(outer, &[100, 101]));
            written(&stack)
                .into_iter()
                .map(|(label, ..)| label)
                .collect::<Vec<u32>>()
        };
        assert_eq!(labels(false, false), [100, 101, 500, 501]);
        assert_eq!(labels(false, true), [100, 7, 0, 101, 500, 501]);
        assert_eq!(labels(true, false), [100, 101, 500, 7, 0, 501]);
        assert_eq!(labels(true, true), [100, 7, 0, 101, 500, 501]);
        // The pair has all that it does not say itself from the label above it.
        let outer = LabelStack {
            mode: TtlMode::Pipe,
            class: Some(6),
            ..path(true, &[100])
        };
        let pair = written(&path(false, &[500]).within(outer));
        assert_eq!(
            pair,
            [
                (100, false, 6),
                (7, false, 6),
                (0, false, 6),
                (500, true, 7)
            ]
        );
    }
}
