//! The loops over the packets of a vector: while some are worked on, the next ones are fetched.
//!
//! A vector's frames and handles fill most of a first-level cache, and whatever ran before has used it too, so about every second
//! header has to come from the second level again. Few packets fit the processor's window at once, so it cannot hide that by itself.
//!
//! Nodes use [`each_packet`]; fast paths are a [`Path`], or a [`StagedPath`] where a lookup waits several times.

use std::ops::Range;

use weir_buf::Pkt;
use weir_cpu::Code;
use weir_graph::Verdict;

/// How many packets ahead frames are fetched.
const AHEAD: usize = 8;

/// Calls `body` for each packet with its index in the vector, in order.
#[inline(always)]
pub(crate) fn each_packet(packets: &mut [Pkt], mut body: impl FnMut(usize, &mut Pkt)) {
    packets.iter().take(AHEAD).for_each(Pkt::prefetch);
    let (mut later, mut place) = (packets, 0);
    while let Some((packet, rest)) = later.split_first_mut() {
        if let Some(soon) = rest.get(AHEAD - 1) {
            soon.prefetch();
        }
        body(place, packet);
        place += 1;
        later = rest;
    }
}

/// Calls `body` for each run of packets that follow each other and have the same `key`, an interface, with their verdicts.
#[inline(always)]
pub(crate) fn each_run(
    mut packets: &mut [Pkt],
    mut verdicts: &mut [Verdict],
    key: impl Fn(&Pkt) -> u32,
    mut body: impl FnMut(u32, &mut [Pkt], &mut [Verdict]),
) {
    while let Some(interface) = packets.first().map(&key) {
        let len = packets
            .iter()
            .take_while(|packet| key(packet) == interface)
            .count();
        let (run, later) = packets.split_at_mut(len);
        let (its, others) = verdicts.split_at_mut(len.min(verdicts.len()));
        body(interface, run, its);
        (packets, verdicts) = (later, others);
    }
}

/// The two steps of a fast path for each packet of a vector. What the first step prefetches arrives before the second step. `C` is
/// the instruction set that the path is compiled for. All methods are to be marked `#[inline(always)]`.
pub(crate) trait Path {
    /// Packets that take the first step before one takes the second, less than [`WAITING`]. With 0, a packet takes both at once.
    const EARLY: usize;
    /// How many packets before their first step frames are fetched.
    const FETCHED: usize = AHEAD;
    /// What a packet has between its steps.
    type Between: Copy + Default;
    /// Prefetches what the second step reads.
    fn first<C: Code>(&mut self, code: C, packet: &mut Pkt) -> Self::Between;
    /// The second step; `place` is the packet's index in the vector. Packets come in order.
    fn second<C: Code>(&mut self, code: C, place: usize, packet: &mut Pkt, between: Self::Between);
}

/// Packets that may be between their steps.
const WAITING: usize = 32;

/// Runs a path in a function of its own: whatever else a node's function does costs its loops registers. The path comes back as it
/// is then. It is moved and not lent, so that what it knows can be in registers, as long as none of it is lent to a function that is
/// not inlined.
///
/// One loop has both steps, each of another packet: loops of their own wait longer, since their frames have left the nearest cache and
/// the nearest translations when they come to them.
#[inline(always)]
pub(crate) fn run<P: Path>(packets: &mut [Pkt], path: P) -> P {
    weir_cpu::apart_coded(Run { packets, path })
}

struct Run<'a, P> {
    packets: &'a mut [Pkt],
    path: P,
}

impl<P: Path> weir_cpu::CodedTask for Run<'_, P> {
    type Output = P;

    #[inline(always)]
    fn run<C: Code>(self, code: C) -> P {
        let Run { packets, mut path } = self;
        let mut waiting = [P::Between::default(); WAITING];
        let fetched = packets.iter().take(P::EARLY + P::FETCHED);
        fetched.for_each(Pkt::prefetch);
        for (between, packet) in waiting.iter_mut().zip(packets.iter_mut().take(P::EARLY)) {
            *between = path.first(code, packet);
        }
        let (mut later, mut place) = (packets, 0);
        // As long as there are packets so far ahead: nothing of that need be examined then.
        while P::EARLY > 0 && later.len() > P::EARLY + P::FETCHED {
            let Some((packet, rest)) = std::mem::take(&mut later).split_first_mut() else {
                break;
            };
            if let Some(further) = rest.get(P::EARLY + P::FETCHED - 1) {
                further.prefetch();
            }
            let Some(soon) = rest.get_mut(P::EARLY.wrapping_sub(1)) else {
                break;
            };
            waiting[(place + P::EARLY) % WAITING] = path.first(code, soon);
            path.second(code, place, packet, waiting[place % WAITING]);
            place += 1;
            later = rest;
        }
        // The last packets, all fetched; with a single step, all packets.
        while let Some((packet, rest)) = later.split_first_mut() {
            let between = if P::EARLY == 0 {
                if let Some(soon) = rest.get(P::FETCHED - 1) {
                    soon.prefetch();
                }
                path.first(code, packet)
            } else {
                if let Some(soon) = rest.get_mut(P::EARLY.wrapping_sub(1)) {
                    waiting[(place + P::EARLY) % WAITING] = path.first(code, soon);
                }
                waiting[place % WAITING]
            };
            path.second(code, place, packet, between);
            place += 1;
            later = rest;
        }
        path
    }
}

/// Packets that take a step together.
const BLOCK: usize = 16;
/// Packets whose lookups are kept, blocks whole.
const KEPT: usize = 4 * BLOCK;

/// A path whose lookup waits for memory several times in a row (IPv6 with a large table): four steps, in blocks. To be marked
/// `#[inline(always)]`, all of it.
pub(crate) trait StagedPath {
    /// What a packet has while it is looked up.
    type Lookup: Copy + Default;
    /// What was found.
    type Found: Copy + Default;
    /// Prefetches what the second step reads, and so on.
    fn first(&self, packet: &Pkt) -> Self::Lookup;
    fn second<C: Code>(&self, code: C, lookup: &mut Self::Lookup);
    fn find<C: Code>(&self, code: C, packet: &Pkt, lookup: &Self::Lookup) -> Self::Found;
    /// The last step; `place` is the packet's index in the vector. Packets come in order.
    fn last(&mut self, place: usize, packet: &mut Pkt, found: Self::Found);
}

/// As [`run`]. Each step has a loop of its own: short ones, in which many chains of loads are under way.
#[inline(always)]
pub(crate) fn run_staged<P: StagedPath>(packets: &mut [Pkt], path: P) -> P {
    weir_cpu::apart_coded(Staged { packets, path })
}

struct Staged<'a, P> {
    packets: &'a mut [Pkt],
    path: P,
}

impl<P: StagedPath> weir_cpu::CodedTask for Staged<'_, P> {
    type Output = P;

    #[inline(always)]
    fn run<C: Code>(self, code: C) -> P {
        let Staged { packets, mut path } = self;
        let mut lookups = [P::Lookup::default(); KEPT];
        let mut found = [P::Found::default(); BLOCK];
        // Loops over slices, without calls of closures: these would become functions that are compiled for the baseline.
        for packet in ahead(packets, &(0..AHEAD), 0) {
            packet.prefetch();
        }
        let count = packets.len();
        for end in 1..=count.div_ceil(BLOCK) + 2 {
            let first = block(end, count);
            for packet in ahead(packets, &first, AHEAD) {
                packet.prefetch();
            }
            for (lookup, packet) in lookups[kept(&first)].iter_mut().zip(&packets[first]) {
                *lookup = path.first(packet);
            }
            for lookup in &mut lookups[kept(&block(end - 1, count))] {
                path.second(code, lookup);
            }
            let last = block((end - 1).saturating_sub(1), count);
            let (packets, lookups) = (&mut packets[last.clone()], &lookups[kept(&last)]);
            // A chain of loads for each, short enough for many to be under way: it would hold up what is longer. Frames have been
            // pushed out of the nearest cache by now, and their addresses out of the first translations.
            for (found, (packet, lookup)) in found.iter_mut().zip(packets.iter().zip(lookups)) {
                packet.prefetch();
                *found = path.find(code, packet, lookup);
            }
            for (place, (packet, found)) in last.zip(packets.iter_mut().zip(&found)) {
                path.last(place, packet, *found);
            }
        }
        path
    }
}

/// The places of a block, from 1 on; there is none of number 0, and none behind all packets.
#[inline(always)]
fn block(number: usize, count: usize) -> Range<usize> {
    (number.saturating_sub(1) * BLOCK).min(count)..(number * BLOCK).min(count)
}

/// Where the lookups of a block are kept.
#[inline(always)]
fn kept(places: &Range<usize>) -> Range<usize> {
    let start = places.start % KEPT;
    start..start + places.len()
}

/// The packets that lie so many places behind others, as far as there are.
#[inline(always)]
fn ahead<'a>(packets: &'a [Pkt], places: &Range<usize>, by: usize) -> &'a [Pkt] {
    let count = packets.len();
    packets
        .get((places.start + by).min(count)..(places.end + by).min(count))
        .unwrap_or(&[])
}
