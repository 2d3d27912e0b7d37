//! What came by in this turn, and where it went.
//!
//! A packet's reading is made where it is seen, and completed where it goes; in between it lies here, and the packet
//! carries nothing. The two find each other by the packet's identity, the address of its metadata, which nobody else has
//! while the packet lives. Packets mostly leave in the order in which they came, so the receiver of a vector that
//! leaves compares it with what comes next in the manifest, and is done. Where others are in between, or the order
//! changed, a directory by identity is made, which lasts for the turn.
//!
//! A packet that waits for an answer leaves the manifest with the turn: [`Waiting`] keeps its reading until the packet
//! goes on, so that the record tells the truth about it.

use weir_buf::{Flags, Pkt};
use weir_cpu::{Lanes, Task};
use weir_graph::DropReason;

use super::directory::Directory;
use crate::flows::key::Secret;
use crate::flows::{
    Addresses, Beside, Facts, ForwardingOutcome, Glass6, Plain, Read, Reading, Selection, Share,
    Sight, Slip, Table, Told, VECTOR,
};
use crate::forwarding_status::{FOR_US, FORWARDED, INCOMPLETE_ADJACENCY, forwarding_status};

/// Readings that may wait for their packets.
const MOST_WAITING: usize = 8192;
/// So far ahead of where the last packet was found the next one is looked for before anything else.
const NEAR: usize = 16;
/// Packets that are compared with those that leave before anything is decided.
const BLOCK: usize = 16;
/// Packets that are read in one go; and so far ahead of that each is asked for.
const GROUP: usize = 64;
const AHEAD: usize = 8;

/// What became of a packet so far stands in the lowest bits of its identity, which is the address of a cache line.
const GONE: usize = 1;
const HELD: usize = 2;
pub(super) const STATES: usize = GONE | HELD;

/// No place among the others: the packet waits.
const NOWHERE: u32 = u32::MAX;

/// What is the same for a run of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lens {
    share: Share,
    /// Which interfaces get their packets' outcomes, by the record set of the interface.
    output: u32,
    status: u8,
    /// Whether it was looked for their flows as they were read.
    far: bool,
    /// Whether any is not untagged IPv4: the last words of their keys count, and the addresses of those of IPv6.
    more: bool,
}

/// Packets in a row.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Up to which place.
    end: usize,
    lens: Lens,
}

/// Packets in the order in which they were read. Plain ones take half a cache line each; of others that has
/// the identity only, and what they tell lies beside.
#[derive(Debug)]
pub(super) struct Manifest {
    slips: Vec<Slip>,
    /// By place: the packet's identity, and what became of it.
    packets: Vec<usize>,
    outcomes: Vec<ForwardingOutcome>,
    /// By place, in runs of which not all are untagged IPv4: the last word of the key, and the addresses of IPv6.
    tails: Vec<u64>,
    addresses: Vec<Addresses>,
    /// By place: the hash, and where the flow may be, in runs of which that was looked for.
    hashes: Vec<u64>,
    places: Vec<u32>,
    /// By place: what only a flow's first packet tells.
    beside: Vec<Beside>,
    others: Others,
    count: usize,
    /// How many of them are gone.
    gone: usize,
    /// Where the next packet that leaves is expected.
    cursor: usize,
    /// All before this place are gone.
    left: usize,
    runs: Vec<Run>,
    directory: Directory,
    secret: Secret,
}

/// What is not plain.
#[derive(Debug, Default)]
struct Others {
    /// Places of packets, in order, and where what they tell is; [`NOWHERE`] for those that wait.
    places: Vec<(u32, u32)>,
    spare: Vec<(u32, u32)>,
    readings: Vec<Reading>,
    addresses: Vec<Addresses>,
    /// Their facts, by place.
    facts: Vec<(usize, Facts)>,
}

impl Others {
    #[inline(always)]
    fn put(&mut self, place: usize, reading: Reading, addresses: Addresses) {
        self.places.push((place as u32, self.readings.len() as u32));
        self.readings.push(reading);
        self.addresses.push(addresses);
    }

    fn clear(&mut self) {
        if !self.places.is_empty() {
            self.places.clear();
            self.readings.clear();
            self.addresses.clear();
            self.facts.clear();
        }
    }
}

/// What follows one another and is counted in one way.
enum Part {
    /// Plain packets up to this place.
    Plain(usize),
    /// So many others from this one on.
    Others(usize, usize),
    /// A packet that waits.
    Nothing,
}

impl Manifest {
    pub(super) fn new(secret: Secret) -> Manifest {
        Manifest {
            slips: Vec::new(),
            tails: Vec::new(),
            addresses: Vec::new(),
            packets: Vec::new(),
            outcomes: Vec::new(),
            hashes: Vec::new(),
            places: Vec::new(),
            beside: Vec::new(),
            others: Others::default(),
            count: 0,
            gone: 0,
            cursor: 0,
            left: 0,
            runs: Vec::new(),
            directory: Directory::default(),
            secret,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Reads a vector.
    pub(super) fn take(
        &mut self,
        selection: &Selection,
        interface: u32,
        packets: &[Pkt],
        table: Option<&Table>,
    ) {
        self.make_room(packets.len());
        let (from, far) = (self.count, table.filter(|table| table.is_far()));
        self.outcomes[from..from + packets.len()].fill(ForwardingOutcome::default());
        let secret = self.secret;
        let sight = Sight::new(selection, &secret, interface);
        let share = sight.share;
        let lanes = Lanes::new();
        let taking = Taking {
            manifest: self,
            sight,
            glass6: sight.glass6(lanes),
            subject: (selection, &secret, interface),
            packets,
        };
        let more = match (far, lanes) {
            (Some(table), Some(lanes)) => weir_cpu::dispatch(Far {
                taking,
                glass: sight.wide_glass(lanes),
                table,
            }),
            (None, Some(lanes)) => weir_cpu::dispatch(Near {
                taking,
                glass: sight.wide_glass(lanes),
            }),
            (Some(table), None) => weir_cpu::dispatch(Far {
                taking,
                glass: sight.glass(),
                table,
            }),
            (None, None) => weir_cpu::dispatch(Near {
                taking,
                glass: sight.glass(),
            }),
        };
        self.count += packets.len();
        let (output, status) = selection.masks_of_fate();
        self.close_run(Lens {
            share,
            output,
            status,
            far: far.is_some(),
            more,
        });
    }

    /// Reads a vector that leaves by an interface: what it came in by is known.
    pub(super) fn take_leaving(
        &mut self,
        selection: &Selection,
        interface: u32,
        packets: &[Pkt],
        table: Option<&Table>,
    ) {
        let from = self.count;
        let came = |packet: &Pkt| {
            if packet.flags().any(Flags::ORIGINATED) {
                0
            } else {
                packet.interface()
            }
        };
        for packets in packets.chunk_by(|one, two| came(one) == came(two)) {
            self.take(selection, packets.first().map_or(0, came), packets, table);
        }
        let (output, _) = selection.masks_of_fate();
        self.outcomes[from..self.count].fill(ForwardingOutcome::out(interface & output));
    }

    /// What came last is of a run with this lens: of the last one if it has it, so that there are few.
    fn close_run(&mut self, lens: Lens) {
        match self.runs.last_mut() {
            Some(run) if run.lens == lens => run.end = self.count,
            _ => self.runs.push(Run {
                end: self.count,
                lens,
            }),
        }
    }

    #[inline]
    fn make_room(&mut self, count: usize) {
        if self.count + count > self.slips.len() {
            self.grow(count);
        }
    }

    /// A turn has as many vectors as the worker has receive queues: the size is found soon.
    #[cold]
    fn grow(&mut self, count: usize) {
        let size = (self.count + count).next_power_of_two().max(2 * VECTOR);
        self.slips.resize(size, Slip::default());
        self.tails.resize(size, 0);
        self.addresses.resize(size, [0; 4]);
        self.packets.resize(size, 0);
        self.outcomes.resize(size, ForwardingOutcome::default());
        self.hashes.resize(size, 0);
        self.places.resize(size, 0);
        self.beside.resize(size, Beside::default());
        self.directory.resize(size);
    }

    /// Packets leave by an interface; `flags` are those that any of them has.
    pub(super) fn leave(
        &mut self,
        interface: u32,
        flags: Flags,
        mut packets: &[Pkt],
        waiting: &mut Waiting,
    ) {
        if self.count * 8 < packets.len() && waiting.is_empty() {
            return self.leave_few(interface, packets);
        }
        while !packets.is_empty() {
            let run = self.runs.iter().find(|run| self.cursor < run.end).copied();
            let Run { end, lens } = run.unwrap_or(Run {
                end: self.cursor,
                lens: Lens::default(),
            });
            let same = leave_in_order(
                self.packets.get_mut(self.cursor..end).unwrap_or(&mut []),
                flags,
                packets,
            );
            if let Some(outcomes) = self.outcomes.get_mut(self.cursor..self.cursor + same) {
                outcomes.fill(ForwardingOutcome::out(interface & lens.output));
            }
            let (left, passed) = leave_apart(
                (
                    self.packets
                        .get_mut(self.cursor + same..end)
                        .unwrap_or(&mut []),
                    self.outcomes
                        .get_mut(self.cursor + same..end)
                        .unwrap_or(&mut []),
                ),
                interface & lens.output,
                packets.get(same..).unwrap_or(&[]),
            );
            let same = same + left;
            self.gone += same;
            self.cursor += same + passed;
            packets = packets.get(same..).unwrap_or(&[]);
            if same > 0 && self.cursor == end {
                continue;
            }
            let Some((odd, rest)) = packets.split_first() else {
                return;
            };
            self.leave_odd(interface, odd, waiting);
            packets = rest;
        }
    }

    /// Few were sampled of many that leave.
    fn leave_few(&mut self, interface: u32, packets: &[Pkt]) {
        for place in 0..self.count {
            let wanted = self.packets[place];
            if wanted & GONE != 0 {
                continue;
            }
            if let Some(packet) = packets
                .iter()
                .find(|packet| packet.identity() == wanted & !STATES)
            {
                self.leave_at(place, interface, packet);
            }
        }
    }

    #[inline(never)]
    fn leave_odd(&mut self, interface: u32, packet: &Pkt, waiting: &mut Waiting) {
        if let Some(place) = self.find(packet) {
            self.leave_at(place, interface, packet);
            self.cursor = place + 1;
        } else if packet.flags().any(Flags::HELD)
            && let Some(mut late) = waiting.take(packet)
        {
            late.tell(interface, 0);
            self.add(late);
        }
    }

    fn leave_at(&mut self, place: usize, interface: u32, packet: &Pkt) {
        // What became an answer of this router's did not go anywhere.
        if packet.flags().any(Flags::ORIGINATED) {
            return self.keep_at(place);
        }
        let output = self.lens_of(place).output;
        self.outcomes[place] = self.outcomes[place].with_output(interface & output);
        self.set_gone(place);
    }

    /// Nothing more is known of where it went; its driver may still refuse it.
    fn set_gone(&mut self, place: usize) {
        let packet = &mut self.packets[place];
        self.gone += usize::from(*packet & GONE == 0);
        *packet = *packet & !STATES | GONE;
    }

    fn lens_of(&self, place: usize) -> Lens {
        self.runs
            .iter()
            .find(|run| place < run.end)
            .map(|run| run.lens)
            .unwrap_or_default()
    }

    /// A packet waits for an answer.
    pub(super) fn hold(&mut self, packet: &Pkt, waiting: &mut Waiting) {
        let Some(place) = self.find(packet) else {
            return;
        };
        let identity = &mut self.packets[place];
        self.gone -= usize::from(*identity & GONE != 0);
        *identity = *identity & !STATES | HELD;
        // The packet that had this identity before is gone without an outcome.
        if let Some(mut late) = waiting.take_by(packet.identity()) {
            late.tell(0, FOR_US);
            self.add(late);
        }
    }

    /// A packet was for this router.
    pub(super) fn keep(&mut self, packet: &Pkt, waiting: &mut Waiting) {
        if let Some(place) = self.find(packet) {
            self.keep_at(place);
        } else if packet.flags().any(Flags::HELD)
            && let Some(mut late) = waiting.take(packet)
        {
            late.tell(0, FOR_US);
            self.add(late);
        }
    }

    fn keep_at(&mut self, place: usize) {
        self.tell_status(place, FOR_US);
        self.forget(place);
    }

    /// It gets no outcome any more: its packet's identity may be another one's soon.
    fn forget(&mut self, place: usize) {
        self.set_gone(place);
        self.packets[place] = GONE;
    }

    /// A packet is dropped.
    pub(super) fn drop(&mut self, packet: &Pkt, reason: DropReason, waiting: &mut Waiting) {
        // What became an answer of this router's was kept before.
        let status = forwarding_status(reason);
        if let Some(place) = self.find(packet) {
            if packet.flags().any(Flags::ORIGINATED) {
                return self.keep_at(place);
            }
            self.tell_status(place, status);
            self.forget(place);
            self.cursor = place + 1;
        } else if packet.flags().any(Flags::HELD)
            && let Some(mut late) = waiting.take(packet)
        {
            late.tell(0, status);
            self.add(late);
        }
    }

    /// No answer will come for any that waits.
    pub(super) fn give_up(&mut self, waiting: &mut Waiting) {
        while let Some(mut late) = waiting.0.pop() {
            late.tell(0, INCOMPLETE_ADJACENCY);
            self.add(late);
        }
    }

    fn tell_status(&mut self, place: usize, status: u8) {
        let mask = self.lens_of(place).status;
        self.outcomes[place] = self.outcomes[place].with_status(status & mask);
    }

    /// Counts what waited, with its outcome.
    fn add(&mut self, late: Late) {
        self.make_room(1);
        let place = self.count;
        self.packets[place] = GONE;
        self.outcomes[place] = late.outcome;
        self.others.put(place, late.reading, late.addresses);
        self.others.facts.push((place, late.facts));
        self.count += 1;
        self.gone += 1;
        self.close_run(late.lens);
    }

    /// Where the reading of a packet is.
    fn find(&mut self, packet: &Pkt) -> Option<usize> {
        let is_it = |other: &usize| other & !STATES == packet.identity();
        let near = self
            .packets
            .get(self.cursor..self.count.min(self.cursor + NEAR))
            .unwrap_or(&[]);
        if let Some(place) = near.iter().position(is_it) {
            return Some(self.cursor + place);
        }
        // Vectors are sorted by classes on their way: those of the next class begin where the last ones began.
        let left = self.packets.get(self.left..self.count).unwrap_or(&[]);
        self.left += left
            .iter()
            .take_while(|packet| **packet & GONE != 0)
            .count();
        let left = self.packets.get(self.left..self.count).unwrap_or(&[]);
        if let Some(place) = left.iter().take(NEAR).position(is_it) {
            return Some(self.left + place);
        }
        self.directory.note(&self.packets[..self.count]);
        let place = self.directory.find(packet.identity())?;
        self.packets.get(place).is_some_and(is_it).then_some(place)
    }

    /// The turn is over: what is held goes to those who wait, of the rest it is known that this router kept it.
    #[inline]
    pub(super) fn settle(&mut self, waiting: &mut Waiting) {
        if self.gone != self.count {
            self.settle_odd(waiting);
        }
    }

    #[cold]
    fn settle_odd(&mut self, waiting: &mut Waiting) {
        let mut listed = 0;
        for place in 0..self.count {
            let packet = self.packets[place];
            let entry = self
                .others
                .places
                .get(listed)
                .copied()
                .filter(|(at, _)| *at as usize == place);
            listed += usize::from(entry.is_some());
            if packet & HELD != 0 {
                let late = self.late(place, entry.map(|(_, other)| other as usize));
                if waiting.put(late) {
                    self.others.spare.push((place as u32, NOWHERE));
                    continue;
                }
                self.tell_status(place, INCOMPLETE_ADJACENCY);
            } else if packet & GONE == 0 {
                self.tell_status(place, FOR_US);
            }
            self.others.spare.extend(entry);
        }
        std::mem::swap(&mut self.others.places, &mut self.others.spare);
        self.others.spare.clear();
    }

    /// What is known of a packet that waits: one of the others, or a plain one.
    fn late(&self, place: usize, other: Option<usize>) -> Late {
        let (slip, lens) = (&self.slips[place], self.lens_of(place));
        let read = other.and_then(|other| {
            self.others
                .readings
                .get(other)
                .copied()
                .zip(self.others.addresses.get(other).copied())
        });
        let (mut reading, addresses) = read.unwrap_or_else(|| {
            let (tail, addresses) = match lens.more {
                true => (self.tails[place], self.addresses[place]),
                false => (0, Addresses::default()),
            };
            let nowhere = ForwardingOutcome::default();
            let reading = lens
                .share
                .reading((slip, tail), nowhere, self.hashes[place]);
            (reading, addresses)
        });
        reading.forget_place();
        // Nobody will look for it before it goes on.
        let lens = Lens { far: false, ..lens };
        Late {
            identity: self.packets[place] & !STATES,
            reading,
            addresses,
            facts: self.facts(place),
            lens,
            outcome: ForwardingOutcome::default(),
        }
    }

    /// Counts all of it in a table.
    pub(super) fn count_in(&mut self, table: &mut Table, now: u64) {
        self.complete_others(table);
        self.each_part(|manifest, from, lens, part| match part {
            Part::Plain(end) => {
                let plain = Plain {
                    share: lens.share,
                    slips: &manifest.slips[from..end],
                    outcomes: &manifest.outcomes[from..end],
                    hashes: &manifest.hashes[from..end],
                    places: lens.far.then(|| &manifest.places[from..end]),
                    has_status: lens.status != 0,
                    more: lens
                        .more
                        .then(|| (&manifest.tails[from..end], &manifest.addresses[from..end])),
                };
                table.count_plain(now, &plain, |place| manifest.facts(from + place));
            }
            Part::Others(first, count) => {
                let (readings, addresses) = (
                    &manifest.others.readings[first..first + count],
                    &manifest.others.addresses[first..first + count],
                );
                table.count(now, readings, addresses, |place| {
                    manifest.facts(from + place)
                });
            }
            Part::Nothing => {}
        });
    }

    /// Tells the others where they went, and finds out where their flows may be.
    fn complete_others(&mut self, table: &Table) {
        let mut runs = self.runs.iter();
        let mut run = runs.next();
        for (place, other) in &self.others.places {
            while run.is_some_and(|run| run.end <= *place as usize) {
                run = runs.next();
            }
            let Some(reading) = self.others.readings.get_mut(*other as usize) else {
                continue;
            };
            reading.short.tell(self.outcomes[*place as usize]);
            if run.is_some_and(|run| run.lens.far) {
                reading.guess_is(self.places[*place as usize]);
            } else {
                table.guess(std::slice::from_mut(reading));
            }
        }
    }

    /// How many packets and octets that is.
    pub(super) fn totals(&self) -> (u64, u64) {
        let mut totals = (0, 0);
        self.each_part(|manifest, from, _, part| match part {
            Part::Plain(end) => {
                totals.0 += (end - from) as u64;
                totals.1 += manifest.slips[from..end]
                    .iter()
                    .map(|slip| u64::from(slip.octets()))
                    .sum::<u64>();
            }
            Part::Others(first, count) => {
                totals.0 += count as u64;
                totals.1 += manifest.others.readings[first..first + count]
                    .iter()
                    .map(|seen| u64::from(seen.octets))
                    .sum::<u64>();
            }
            Part::Nothing => {}
        });
        totals
    }

    /// Shows all parts in order, each with the place from which on it is.
    #[inline(always)]
    fn each_part(&self, mut show: impl FnMut(&Manifest, usize, &Lens, Part)) {
        let (mut at, mut others) = (0, self.others.places.as_slice());
        for run in &self.runs {
            while at < run.end {
                let from = at;
                let part = match others.first() {
                    Some((place, other)) if *place as usize == at => {
                        let is_next = |number: usize, (place, next): &(u32, u32)| {
                            *place as usize == from + number
                                && *next as usize == *other as usize + number
                                && from + number < run.end
                        };
                        let many = others
                            .iter()
                            .take(VECTOR)
                            .enumerate()
                            .take_while(|(number, entry)| is_next(*number, entry))
                            .count();
                        let count = if *other == NOWHERE { 1 } else { many };
                        at += count;
                        others = others.get(count..).unwrap_or(&[]);
                        if *other == NOWHERE {
                            Part::Nothing
                        } else {
                            Part::Others(*other as usize, count)
                        }
                    }
                    next => {
                        at = next.map_or(run.end, |(place, _)| run.end.min(*place as usize));
                        Part::Plain(at)
                    }
                };
                show(self, from, &run.lens, part);
            }
        }
    }

    /// The other facts of the packet at an index.
    #[inline]
    fn facts(&self, place: usize) -> Facts {
        let facts = &self.others.facts;
        if !facts.is_empty()
            && let Ok(at) = facts.binary_search_by_key(&place, |(at, _)| *at)
        {
            return facts[at].1;
        }
        self.beside
            .get(place)
            .map(Beside::facts)
            .unwrap_or_default()
    }

    /// Empty again.
    pub(super) fn clear(&mut self) {
        (self.count, self.gone, self.cursor, self.left) = (0, 0, 0, 0);
        self.runs.clear();
        self.others.clear();
        self.directory.clear();
    }
}

/// Packets that are not what they were when they were read.
const NOT_PLAIN: Flags = Flags::ORIGINATED.with(Flags::HELD);

/// Takes note of the packets that are next in order and leave, until one is not that leaves; how many they were.
#[inline(always)]
fn leave_in_order(expected: &mut [usize], flags: Flags, packets: &[Pkt]) -> usize {
    let is_next =
        |(one, packet): (&usize, &Pkt)| *one == packet.identity() && !packet.flags().any(NOT_PLAIN);
    let mut same = 0;
    for (expected, packets) in expected.chunks_mut(BLOCK).zip(packets.chunks(BLOCK)) {
        if let (Some(expected), Some(packets)) = (
            expected.first_chunk_mut::<BLOCK>(),
            packets.first_chunk::<BLOCK>(),
        ) && !flags.any(NOT_PLAIN)
        {
            let differ = expected
                .iter()
                .zip(packets)
                .fold(0, |differ, (one, packet)| {
                    differ | (one ^ packet.identity())
                });
            if differ == 0 {
                expected.iter_mut().for_each(|packet| *packet |= GONE);
                same += BLOCK;
                continue;
            }
        }
        let count = expected
            .iter()
            .zip(packets)
            .take_while(|both| is_next(*both))
            .count();
        expected
            .iter_mut()
            .take(count)
            .for_each(|packet| *packet |= GONE);
        same += count;
        if count < expected.len().min(packets.len()) {
            break;
        }
    }
    same
}

/// The same of packets that left others behind between them. Returns how many packets leave, and how many others were passed.
#[inline(always)]
fn leave_apart(
    (expected, outcomes): (&mut [usize], &mut [ForwardingOutcome]),
    output: u32,
    packets: &[Pkt],
) -> (usize, usize) {
    let mut at = 0;
    for (taken, packet) in packets.iter().enumerate() {
        let near = expected.get(at..).unwrap_or(&[]).iter().take(NEAR);
        let wanted = packet.identity();
        let Some(passed) = near.clone().position(|one| *one == wanted) else {
            return (taken, at - taken);
        };
        if packet.flags().any(NOT_PLAIN) {
            return (taken, at - taken);
        }
        at += passed;
        expected[at] |= GONE;
        outcomes[at] = outcomes[at].with_output(output);
        at += 1;
    }
    (packets.len(), at - packets.len())
}

/// Reading a vector.
struct Taking<'a> {
    manifest: &'a mut Manifest,
    sight: Sight<'a>,
    glass6: Glass6<'a>,
    subject: (&'a Selection, &'a Secret, u32),
    packets: &'a [Pkt],
}

/// By a table that is near: nothing is asked for early.
struct Near<'a, G> {
    taking: Taking<'a>,
    glass: G,
}

impl<G: Read> Task for Near<'_, G> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        self.taking.all(&self.glass).1
    }
}

/// By one that is far: when all were read it is asked for their buckets, and looked into them later, which tells the records to ask for.
struct Far<'a, G> {
    taking: Taking<'a>,
    glass: G,
    table: &'a Table,
}

impl<G: Read> Task for Far<'_, G> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Far {
            taking,
            glass,
            table,
        } = self;
        let (from, end) = (
            taking.manifest.count,
            taking.manifest.count + taking.packets.len(),
        );
        let (Manifest { hashes, places, .. }, more) = taking.all(&glass);
        table.ask(&hashes[from..end], &mut places[from..end]);
        more
    }
}

impl<'a> Taking<'a> {
    /// Reads all packets; whether any is plain and not untagged IPv4.
    #[inline(always)]
    fn all(self, glass: &impl Read) -> (&'a mut Manifest, bool) {
        let Taking {
            manifest,
            sight,
            glass6,
            subject,
            packets,
        } = self;
        let Manifest {
            slips,
            tails,
            addresses,
            packets: identities,
            hashes,
            beside,
            others,
            count,
            ..
        } = &mut *manifest;
        let (from, end) = (*count, *count + packets.len());
        let (slips, beside, hashes) = (
            &mut slips[from..end],
            &mut beside[from..end],
            &mut hashes[from..end],
        );
        let (tails, addresses) = (&mut tails[from..end], &mut addresses[from..end]);
        let identities = &mut identities[from..end];
        let mut has_more = false;
        packets.iter().take(AHEAD).for_each(Pkt::prefetch);
        let all = packets;
        for (first, packets) in (0..).step_by(GROUP).zip(packets.chunks(GROUP)) {
            // Nobody looked at those in front of them before.
            let ahead = all.get(first + AHEAD..).unwrap_or(&[]);
            let more = (&mut tails[first..], &mut addresses[first..]);
            let is_ip6 = packets.first().is_some_and(|it| glass6.fits(it.data()));
            let to = (
                &mut slips[first..],
                &mut hashes[first..],
                &mut identities[first..],
            );
            // A function of its own has all registers for what each packet is compared with, and that is worth a call a group.
            let has_others = if is_ip6 {
                weir_cpu::apart(ReadPlain6 {
                    glass6: &glass6,
                    packets,
                    ahead,
                    to,
                    more,
                })
            } else {
                weir_cpu::apart(ReadPlain {
                    glass,
                    packets,
                    ahead,
                    to,
                })
            };
            let had_more = has_more;
            has_more |= is_ip6 && !has_others;
            if has_others {
                // Which of them: that is found out one by one only where it has to be.
                let to = (&mut slips[first..], &mut hashes[first..], &mut *others);
                has_more |= weir_cpu::apart(ReadOthers {
                    glass,
                    glass6: &glass6,
                    sight,
                    subject,
                    packets,
                    from: from + first,
                    to,
                    more: (&mut tails[first..], &mut addresses[first..]),
                });
            }
            // Keys of untagged IPv4 have no last word.
            if has_more && !had_more {
                tails[..first].fill(0);
            }
            if has_more && !is_ip6 && !has_others {
                tails[first..first + packets.len()].fill(0);
            }
            if sight.wants_facts() {
                packets
                    .iter()
                    .zip(&mut beside[first..])
                    .for_each(|(packet, beside)| *beside = Beside::of(packet.data()));
            }
        }
        (manifest, has_more)
    }
}

/// Reads packets as plain ones of IPv6, and notes which they are; whether any is another one.
struct ReadPlain6<'a, 'b> {
    glass6: &'a Glass6<'b>,
    packets: &'a [Pkt],
    /// As many as there are further on: they are prefetched.
    ahead: &'a [Pkt],
    /// Slips, hashes and identities; the last words of keys and addresses.
    to: (&'a mut [Slip], &'a mut [u64], &'a mut [usize]),
    more: (&'a mut [u64], &'a mut [Addresses]),
}

impl Task for ReadPlain6<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let ReadPlain6 {
            glass6: &glass6,
            packets,
            ahead,
            to: (slips, hashes, identities),
            more: (tails, addresses),
        } = self;
        let mut any = 0;
        let to = slips
            .iter_mut()
            .zip(hashes)
            .zip(identities.iter_mut().zip(tails.iter_mut().zip(addresses)));
        for (number, (packet, ((slip, hash), (identity, (tail, both))))) in
            packets.iter().zip(to).enumerate()
        {
            if let Some(further) = ahead.get(number) {
                further.prefetch();
            }
            let (told, odd) = glass6.read(packet.data(), 0);
            (*slip, *hash, *tail, *both) = (told.slip, told.hash, told.tail, told.addresses);
            *identity = packet.identity();
            any |= odd;
        }
        any != 0
    }
}

/// Reads packets as plain ones, and notes which they are; whether any is another one.
struct ReadPlain<'a, G> {
    glass: &'a G,
    packets: &'a [Pkt],
    /// As many as there are further on: they are asked for.
    ahead: &'a [Pkt],
    /// Slips, hashes and identities.
    to: (&'a mut [Slip], &'a mut [u64], &'a mut [usize]),
}

impl<G: Read> Task for ReadPlain<'_, G> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let ReadPlain {
            glass: &glass,
            packets,
            ahead,
            to: (slips, hashes, identities),
        } = self;
        let mut odd = glass.none();
        let mut read = |packet: &Pkt, slip: &mut Slip, hash: &mut u64, identity: &mut usize| {
            *hash = glass.read(packet.data(), slip, &mut odd);
            *identity = packet.identity();
        };
        // Two loops, so that it is not asked for each whether there is one further on.
        let count = ahead.len().min(packets.len());
        let (first, last) = packets.split_at(count);
        let ((slips, last_slips), (hashes, last_hashes)) =
            (slips.split_at_mut(count), hashes.split_at_mut(count));
        let (identities, last_identities) = identities.split_at_mut(count);
        let to = slips.iter_mut().zip(hashes.iter_mut().zip(identities));
        for ((packet, further), (slip, (hash, identity))) in first.iter().zip(ahead).zip(to) {
            further.prefetch();
            read(packet, slip, hash, identity);
        }
        let to = last_slips
            .iter_mut()
            .zip(last_hashes.iter_mut().zip(last_identities));
        for (packet, (slip, (hash, identity))) in last.iter().zip(to) {
            read(packet, slip, hash, identity);
        }
        glass.is_any(odd)
    }
}

/// Reads packets in a row of which some are not untagged plain IPv4; what is not plain at all is kept with its facts by place.
struct ReadOthers<'a, 'b, G> {
    glass: &'a G,
    glass6: &'a Glass6<'b>,
    sight: Sight<'a>,
    subject: (&'a Selection, &'a Secret, u32),
    packets: &'a [Pkt],
    /// Place of the first one.
    from: usize,
    to: (&'a mut [Slip], &'a mut [u64], &'a mut Others),
    more: (&'a mut [u64], &'a mut [Addresses]),
}

impl<G: Read> Task for ReadOthers<'_, '_, G> {
    /// Whether any is plain and not untagged IPv4.
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let ReadOthers {
            glass: &glass,
            glass6: &glass6,
            sight,
            subject: (selection, secret, interface),
            packets,
            from,
            to: (slips, hashes, others),
            more: (tails, addresses),
        } = self;
        let mut has_more = false;
        let to = slips
            .iter_mut()
            .zip(hashes)
            .zip(tails.iter_mut().zip(addresses));
        for (place, (packet, ((slip, hash), (tail, both)))) in (from..).zip(packets.iter().zip(to))
        {
            if let Some(told) = sight.read_other(&glass6, packet.data()) {
                let Told {
                    slip: of_it,
                    tail: last,
                    addresses,
                    hash: own,
                } = told;
                (*slip, *tail, *both, *hash) = (of_it, last, addresses, own);
                has_more = true;
                continue;
            }
            *tail = 0;
            let mut any = glass.none();
            *hash = glass.read(packet.data(), slip, &mut any);
            if !glass.is_any(any) {
                continue;
            }
            let (reading, addresses, facts) =
                selection.read_any(secret, interface, packet.data(), packet.total_len() as u32);
            *hash = reading.hash;
            others.put(place, reading, addresses);
            others.facts.push((place, facts));
        }
        has_more
    }
}

/// A reading whose packet waits.
#[derive(Clone, Copy, Debug)]
struct Late {
    identity: usize,
    reading: Reading,
    addresses: Addresses,
    facts: Facts,
    lens: Lens,
    outcome: ForwardingOutcome,
}

impl Late {
    fn tell(&mut self, interface: u32, status: u8) {
        let status = if status == FORWARDED { 0 } else { status };
        self.outcome = ForwardingOutcome::out(interface & self.lens.output)
            .with_status(status & self.lens.status);
    }
}

/// Readings of packets that wait for an answer. The graph bounds how many wait, and this does too.
#[derive(Debug, Default)]
pub(super) struct Waiting(Vec<Late>);

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn put(&mut self, late: Late) -> bool {
        if self.0.len() == MOST_WAITING {
            return false;
        }
        self.0.push(late);
        true
    }

    fn take(&mut self, packet: &Pkt) -> Option<Late> {
        self.take_by(packet.identity())
    }

    fn take_by(&mut self, identity: usize) -> Option<Late> {
        let place = self.0.iter().position(|late| late.identity == identity)?;
        Some(self.0.swap_remove(place))
    }
}
