//! The loops over frames: while some are worked on, the next ones are fetched.
//!
//! A vector's frames and handles fill most of a first-level cache, and whatever ran before has used
//! it too, so about every second header has to come from the second level again. Few packets fit the
//! processor's window at once, so it cannot hide that by itself.

use std::ops::Range;

use weir_buf::Pkt;
use weir_cpu::Code;

/// How many packets ahead frames are fetched.
const AHEAD: usize = 8;

/// Calls `body` for each packet with its place in the vector, in order.
#[inline(always)]
pub(crate) fn frame(packets: &mut [Pkt], mut body: impl FnMut(usize, &mut Pkt)) {
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

/// What is done to each packet of a vector, where a closure would be so large that the compiler keeps it apart.
pub(crate) trait Work {
    /// Told the packet's place in the vector. To be marked `#[inline(always)]`.
    fn one(&mut self, place: usize, packet: &mut Pkt);
}

/// As [`frame`].
#[inline(always)]
pub(crate) fn work(packets: &mut [Pkt], work: &mut impl Work) {
    packets.iter().take(AHEAD).for_each(Pkt::prefetch);
    let (mut later, mut place) = (packets, 0);
    while let Some((packet, rest)) = later.split_first_mut() {
        if let Some(soon) = rest.get(AHEAD - 1) {
            soon.prefetch();
        }
        work.one(place, packet);
        place += 1;
        later = rest;
    }
}

/// As [`work`], in a function of its own: whatever else a node's function does costs its loops registers. The work comes back
/// as it is then. It is moved and not lent, so that what it knows can be in registers: as long as none of it is lent to a
/// function that is not inlined.
#[inline(always)]
pub(crate) fn work_apart<W: Work>(packets: &mut [Pkt], work: W) -> W {
    weir_cpu::apart(Apart { packets, work })
}

struct Apart<'a, W> {
    packets: &'a mut [Pkt],
    work: W,
}

impl<W: Work> weir_cpu::Task for Apart<'_, W> {
    type Output = W;

    #[inline(always)]
    fn run(self) -> W {
        let mut moved = self.work;
        work(self.packets, &mut moved);
        moved
    }
}

/// How many packets ahead memory is asked for what a packet needs.
const EARLY: usize = 16;

/// What is done to each packet of a vector, for which memory is asked for something some packets earlier.
pub(crate) trait Foresight {
    /// What is known from then on.
    type Asked: Copy + Default;
    /// Asks; of the packet nothing is known yet.
    fn ask(&self, packet: &Pkt) -> Self::Asked;
    /// Told the packet's place in the vector and what was asked.
    fn one(&mut self, place: usize, packet: &mut Pkt, asked: Self::Asked);
}

/// As [`work_apart`].
#[inline(always)]
pub(crate) fn foreseen<F: Foresight>(packets: &mut [Pkt], work: F) -> F {
    weir_cpu::apart(Foreseen { packets, work })
}

struct Foreseen<'a, F> {
    packets: &'a mut [Pkt],
    work: F,
}

impl<F: Foresight> weir_cpu::Task for Foreseen<'_, F> {
    type Output = F;

    #[inline(always)]
    fn run(self) -> F {
        let mut moved = self.work;
        run_foreseen(self.packets, &mut moved);
        moved
    }
}

#[inline(always)]
fn run_foreseen<F: Foresight>(packets: &mut [Pkt], work: &mut F) {
    let mut asked = [F::Asked::default(); EARLY];
    packets.iter().take(EARLY + AHEAD).for_each(Pkt::prefetch);
    for (asked, packet) in asked.iter_mut().zip(&*packets) {
        *asked = work.ask(packet);
    }
    let (mut later, mut place) = (packets, 0);
    // As long as there are packets so far ahead: nothing of that need be looked at then.
    while later.len() > EARLY + AHEAD {
        let Some((packet, rest)) = std::mem::take(&mut later).split_first_mut() else {
            break;
        };
        let (Some(soon), Some(further)) = (rest.get(EARLY - 1), rest.get(EARLY + AHEAD - 1)) else {
            break;
        };
        let now = asked[place % EARLY];
        asked[place % EARLY] = work.ask(soon);
        further.prefetch();
        work.one(place, packet, now);
        place += 1;
        later = rest;
    }
    run_last(later, place, asked, work);
}

/// The last packets, which are all fetched.
#[inline(always)]
fn run_last<F: Foresight>(
    packets: &mut [Pkt],
    first: usize,
    mut asked: [F::Asked; EARLY],
    work: &mut F,
) {
    let (mut later, mut place) = (packets, first);
    while let Some((packet, rest)) = later.split_first_mut() {
        let now = asked[place % EARLY];
        if let Some(soon) = rest.get(EARLY - 1) {
            asked[place % EARLY] = work.ask(soon);
        }
        work.one(place, packet, now);
        place += 1;
        later = rest;
    }
}

/// What is done to each packet of a vector in two steps, the first [`EARLY`] packets before the second. It is told for which
/// instructions it is compiled. To be marked `#[inline(always)]`, all of it.
pub(crate) trait Paired {
    /// What a packet has between its steps.
    type Between: Copy + Default;
    /// The first step, which asks memory for what the second needs.
    fn first<C: Code>(&mut self, code: C, packet: &mut Pkt) -> Self::Between;
    /// The second. Told the packet's place in the vector; packets come in order.
    fn second<C: Code>(&mut self, code: C, place: usize, packet: &mut Pkt, between: Self::Between);
}

/// How many packets before the first step frames are fetched. Not as many as elsewhere: each lies on a page of its own, and so does
/// what was asked for, and the processor's nearest translations shall last until the second step.
const SHORTLY: usize = 4;

/// As [`work_apart`]. One loop has both steps, each of another packet: loops of their own wait longer, since their frames have
/// left the nearest cache and the nearest translations when they come to them.
#[inline(always)]
pub(crate) fn paired<P: Paired>(packets: &mut [Pkt], work: P) -> P {
    weir_cpu::apart_coded(Pairs { packets, work })
}

struct Pairs<'a, P> {
    packets: &'a mut [Pkt],
    work: P,
}

impl<P: Paired> weir_cpu::CodedTask for Pairs<'_, P> {
    type Output = P;

    #[inline(always)]
    fn run<C: Code>(self, code: C) -> P {
        let Pairs { packets, mut work } = self;
        let mut between = [P::Between::default(); EARLY];
        packets.iter().take(EARLY + SHORTLY).for_each(Pkt::prefetch);
        for (between, packet) in between.iter_mut().zip(&mut *packets) {
            *between = work.first(code, packet);
        }
        let (mut later, mut place) = (packets, 0);
        // As long as there are packets so far ahead: nothing of that need be looked at then.
        while later.len() > EARLY + SHORTLY {
            let Some((packet, rest)) = std::mem::take(&mut later).split_first_mut() else {
                break;
            };
            if let Some(further) = rest.get(EARLY + SHORTLY - 1) {
                further.prefetch();
            }
            let Some(soon) = rest.get_mut(EARLY - 1) else {
                break;
            };
            let now = std::mem::replace(&mut between[place % EARLY], work.first(code, soon));
            work.second(code, place, packet, now);
            place += 1;
            later = rest;
        }
        // The last packets, which are all fetched.
        while let Some((packet, rest)) = later.split_first_mut() {
            let now = between[place % EARLY];
            if let Some(soon) = rest.get_mut(EARLY - 1) {
                between[place % EARLY] = work.first(code, soon);
            }
            work.second(code, place, packet, now);
            place += 1;
            later = rest;
        }
        work
    }
}

/// As [`Work`], where memory is asked for some packets earlier, by what a packet says by itself.
pub(crate) trait Announced: Work {
    /// How many packets earlier.
    const EARLY: usize;
    /// Asks.
    fn ask(&self, packet: &Pkt);
}

/// As [`work_apart`].
#[inline(always)]
pub(crate) fn announced<A: Announced>(packets: &mut [Pkt], work: A) -> A {
    weir_cpu::apart(Early { packets, work })
}

struct Early<'a, A> {
    packets: &'a mut [Pkt],
    work: A,
}

impl<A: Announced> weir_cpu::Task for Early<'_, A> {
    type Output = A;

    #[inline(always)]
    fn run(self) -> A {
        let (packets, mut work) = (self.packets, self.work);
        for packet in packets.iter().take(A::EARLY + AHEAD) {
            packet.prefetch();
        }
        for packet in packets.iter().take(A::EARLY) {
            work.ask(packet);
        }
        let (mut later, mut place) = (packets, 0);
        // As long as there are packets so far ahead: nothing of that need be looked at then.
        while later.len() > A::EARLY + AHEAD {
            let Some((packet, rest)) = std::mem::take(&mut later).split_first_mut() else {
                break;
            };
            let (Some(soon), Some(further)) =
                (rest.get(A::EARLY - 1), rest.get(A::EARLY + AHEAD - 1))
            else {
                break;
            };
            work.ask(soon);
            further.prefetch();
            work.one(place, packet);
            place += 1;
            later = rest;
        }
        while let Some((packet, rest)) = later.split_first_mut() {
            if let Some(soon) = rest.get(A::EARLY - 1) {
                work.ask(soon);
            }
            work.one(place, packet);
            place += 1;
            later = rest;
        }
        work
    }
}

/// Packets that take a step together.
const BLOCK: usize = 16;
/// Packets whose ways are kept, blocks whole.
const KEPT: usize = 4 * BLOCK;

/// What is done to each packet of a vector in two steps, in blocks.
pub(crate) trait Steps {
    /// What a packet has between them.
    type Way: Copy + Default;
    /// How many packets ahead of the first step is asked for what it needs.
    const EARLY: usize;
    /// Asks for that.
    fn ahead(&self, packet: &Pkt);
    /// Looks at a packet, and asks the cache for what the last step needs.
    fn first(&mut self, packet: &Pkt) -> Self::Way;
    /// Ends it; told its place in the vector. Packets come in order.
    fn last(&mut self, place: usize, packet: &mut Pkt, way: Self::Way);
}

/// As [`work_apart`].
#[inline(always)]
pub(crate) fn staged_apart<S: Steps>(packets: &mut [Pkt], steps: S) -> S {
    weir_cpu::apart(Staged { packets, steps })
}

struct Staged<'a, S> {
    packets: &'a mut [Pkt],
    steps: S,
}

impl<S: Steps> weir_cpu::Task for Staged<'_, S> {
    type Output = S;

    #[inline(always)]
    fn run(self) -> S {
        let mut moved = self.steps;
        staged(self.packets, &mut moved);
        moved
    }
}

/// The steps of all packets, the last one as many packets later as memory needs to answer what the first asked for.
#[inline(always)]
fn staged<S: Steps>(packets: &mut [Pkt], steps: &mut S) {
    let mut ways = [S::Way::default(); KEPT];
    // Loops over slices, without calls of closures: these would become functions that are compiled for the baseline.
    for packet in ahead(packets, &(0..S::EARLY + AHEAD), 0) {
        packet.prefetch();
    }
    for packet in ahead(packets, &(0..S::EARLY), 0) {
        steps.ahead(packet);
    }
    let count = packets.len();
    for end in 1..=count.div_ceil(BLOCK) + 1 {
        for place in block(end, count) {
            if let Some(soon) = packets.get(place + S::EARLY) {
                steps.ahead(soon);
            }
            if let Some(later) = packets.get(place + S::EARLY + AHEAD) {
                later.prefetch();
            }
            ways[place % KEPT] = steps.first(&packets[place]);
        }
        let last = block(end - 1, count);
        let (packets, ways) = (&mut packets[last.clone()], &ways[ways_of(&last)]);
        for (place, (packet, way)) in last.zip(packets.iter_mut().zip(ways)) {
            steps.last(place, packet, *way);
        }
    }
}

/// What is done to each packet of a vector in three steps, in blocks. It is told for which instructions it is compiled. To be marked
/// `#[inline(always)]`, all of it.
pub(crate) trait Threefold {
    /// What a packet has between its steps.
    type Way: Copy + Default;
    /// What a packet has at last.
    type End: Copy + Default;
    /// Looks at a packet, and asks the cache for what the second step needs; and so on.
    fn first(&self, packet: &Pkt) -> Self::Way;
    fn second<C: Code>(&self, code: C, way: &mut Self::Way);
    /// Finds what it has at last.
    fn end<C: Code>(&self, code: C, packet: &Pkt, way: &Self::Way) -> Self::End;
    /// Ends it; told its place in the vector. Packets come in order.
    fn last(&mut self, place: usize, packet: &mut Pkt, end: Self::End);
}

/// As [`work_apart`]. Each step has a loop of its own: short ones, in which many chains of loads are under way.
#[inline(always)]
pub(crate) fn threefold<T: Threefold>(packets: &mut [Pkt], work: T) -> T {
    weir_cpu::apart_coded(Three { packets, work })
}

struct Three<'a, T> {
    packets: &'a mut [Pkt],
    work: T,
}

impl<T: Threefold> weir_cpu::CodedTask for Three<'_, T> {
    type Output = T;

    #[inline(always)]
    fn run<C: Code>(self, code: C) -> T {
        let Three { packets, mut work } = self;
        let mut ways = [T::Way::default(); KEPT];
        let mut ends = [T::End::default(); BLOCK];
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
            for (way, packet) in ways[ways_of(&first)].iter_mut().zip(&packets[first]) {
                *way = work.first(packet);
            }
            for way in &mut ways[ways_of(&block(end - 1, count))] {
                work.second(code, way);
            }
            let last = block((end - 1).saturating_sub(1), count);
            let (packets, ways) = (&mut packets[last.clone()], &ways[ways_of(&last)]);
            // A chain of loads for vector_loops, short enough for many to be under way: it would hold up what is longer. Frames have been
            // pushed out of the nearest cache by now, and their addresses out of the first translations.
            for (end, (packet, way)) in ends.iter_mut().zip(packets.iter().zip(ways)) {
                packet.prefetch();
                *end = work.end(code, packet, way);
            }
            for (place, (packet, end)) in last.zip(packets.iter_mut().zip(&ends)) {
                work.last(place, packet, *end);
            }
        }
        work
    }
}

/// The places of a block, from 1 on; there is none of number 0, and none behind all packets.
#[inline(always)]
fn block(number: usize, count: usize) -> Range<usize> {
    (number.saturating_sub(1) * BLOCK).min(count)..(number * BLOCK).min(count)
}

/// Where the ways of a block are.
#[inline(always)]
fn ways_of(places: &Range<usize>) -> Range<usize> {
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
