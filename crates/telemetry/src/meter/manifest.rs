//! What came by in this turn, and where it went.
//!
//! A packet's reading is made where it is seen, and completed where it goes; in between it lies here, and the packet
//! carries nothing. The two find each other by the packet's identity, the address of its metadata, which nobody else has
//! while the packet lives. Packets mostly leave in the order in which they came, so whoever is told of a vector that
//! leaves compares it with what comes next in the manifest, and is done. Where others are in between, or the order
//! changed, a directory by identity is made, which lasts for the turn.
//!
//! A packet that waits for an answer leaves the manifest with the turn: [`Waiting`] keeps its reading until the packet
//! goes on, so that the record tells the truth about it.

use weir_buf::{Flags, Pkt};
use weir_cpu::Task;
use weir_graph::DropReason;

use crate::flows::key::Secret;
use crate::flows::{Addresses, Beside, Facts, GROUP, LAG, Reading, Selection, Sight, Table, VECTOR};
use crate::forwarding_status::{FOR_US, FORWARDED, INCOMPLETE_ADJACENCY, forwarding_status};

/// Readings that may wait for their packets.
const MOST_WAITING: usize = 8192;
/// So far ahead of where the last packet was found the next one is looked for before anything else.
const NEAR: usize = 8;

/// What became of a packet so far stands in the lowest bits of its identity, which is the address of a cache line.
const GONE: usize = 1;
const HELD: usize = 2;
const STATES: usize = GONE | HELD;

/// What is the same for a run of readings.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Up to which place readings are of this run.
    end: usize,
    /// Where they are told of their packets' fates, by the record set of the interface.
    output: u32,
    status: u8,
}

/// Readings in the order in which they were made.
#[derive(Debug)]
pub(super) struct Manifest {
    readings: Vec<Reading>,
    /// By place: addresses of what is not IPv4, and what only a flow's first packet tells.
    addresses: Vec<Addresses>,
    beside: Vec<Beside>,
    count: usize,
    /// How many of them are gone.
    gone: usize,
    /// Where the next packet that leaves is expected.
    cursor: usize,
    runs: Vec<Run>,
    /// Facts of those that are not plain, by place.
    odd: Vec<(usize, Facts)>,
    directory: Directory,
    secret: Secret,
}

impl Manifest {
    pub(super) fn new(secret: Secret) -> Manifest {
        Manifest {
            readings: Vec::new(),
            addresses: Vec::new(),
            beside: Vec::new(),
            count: 0,
            gone: 0,
            cursor: 0,
            runs: Vec::new(),
            odd: Vec::new(),
            directory: Directory::default(),
            secret,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Reads a vector.
    pub(super) fn take(&mut self, selection: &Selection, interface: u32, packets: &[Pkt], table: Option<&Table>) {
        self.make_room(packets.len());
        if table.is_some_and(Table::is_far) {
            weir_cpu::dispatch(Taking::<true> { manifest: self, selection, interface, packets, table });
        } else {
            weir_cpu::dispatch(Taking::<false> { manifest: self, selection, interface, packets, table });
        }
        self.count += packets.len();
        let (output, status) = selection.masks_of_fate();
        self.close_run(output, status);
    }

    /// Reads a vector that leaves by an interface: what it came in by is known.
    pub(super) fn take_leaving(&mut self, selection: &Selection, interface: u32, packets: &[Pkt], table: Option<&Table>) {
        let from = self.count;
        self.take(selection, 0, packets, None);
        let (input, output) = selection.interface_masks();
        for (reading, packet) in self.readings.iter_mut().skip(from).zip(packets) {
            let came = if packet.flags().any(Flags::ORIGINATED) { 0 } else { packet.interface() };
            reading.short.set_interfaces(came & input, interface & output);
            reading.hash = self.secret.hash(&reading.short);
        }
        if let Some(table) = table
            && let Some(readings) = self.readings.get_mut(from..self.count)
        {
            table.find(readings);
        }
    }

    /// What came last is of a run with these masks: of the last one if it has them, so that there are few.
    fn close_run(&mut self, output: u32, status: u8) {
        match self.runs.last_mut() {
            Some(run) if run.output == output && run.status == status => run.end = self.count,
            _ => self.runs.push(Run { end: self.count, output, status }),
        }
    }

    #[inline]
    fn make_room(&mut self, count: usize) {
        if self.count + count > self.readings.len() {
            self.grow(count);
        }
    }

    /// A turn has as many vectors as the worker has receive queues: the size is found soon.
    #[cold]
    fn grow(&mut self, count: usize) {
        let size = (self.count + count).next_power_of_two().max(2 * VECTOR);
        self.readings.resize(size, Reading::default());
        self.addresses.resize(size, Addresses::default());
        self.beside.resize(size, Beside::default());
        self.directory.resize(size);
    }

    /// Packets leave by an interface.
    pub(super) fn leave(&mut self, interface: u32, mut packets: &[Pkt], waiting: &mut Waiting) {
        if self.count * 8 < packets.len() && waiting.is_empty() {
            return self.leave_few(interface, packets);
        }
        while !packets.is_empty() {
            let run = self.runs.iter().find(|run| self.cursor < run.end).copied();
            let Run { end, output, .. } = run.unwrap_or(Run { end: self.cursor, output: 0, status: 0 });
            let same = leave_in_order(self.readings.get_mut(self.cursor..end).unwrap_or(&mut []), packets, interface & output);
            self.gone += same;
            self.cursor += same;
            packets = packets.get(same..).unwrap_or(&[]);
            if same > 0 && self.cursor == end {
                continue;
            }
            let Some((odd, rest)) = packets.split_first() else { return };
            self.leave_odd(interface, odd, waiting);
            packets = rest;
        }
    }

    /// Few were sampled of many that leave.
    fn leave_few(&mut self, interface: u32, packets: &[Pkt]) {
        for place in 0..self.count {
            let wanted = self.readings[place].packet;
            if wanted & GONE != 0 {
                continue;
            }
            if let Some(packet) = packets.iter().find(|packet| packet.identity() == wanted & !STATES) {
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
        let output = self.run_of(place).output;
        self.readings[place].short.set_output(interface & output);
        self.set_gone(place);
    }

    /// Nothing more is known of where it went; its driver may still refuse it.
    fn set_gone(&mut self, place: usize) {
        let packet = &mut self.readings[place].packet;
        self.gone += usize::from(*packet & GONE == 0);
        *packet = *packet & !STATES | GONE;
    }

    fn run_of(&self, place: usize) -> Run {
        self.runs.iter().find(|run| place < run.end).copied().unwrap_or(Run { end: 0, output: 0, status: 0 })
    }

    /// A packet waits for an answer.
    pub(super) fn hold(&mut self, packet: &Pkt, waiting: &mut Waiting) {
        let Some(place) = self.find(packet) else { return };
        let reading = &mut self.readings[place].packet;
        self.gone -= usize::from(*reading & GONE != 0);
        *reading = *reading & !STATES | HELD;
        // Whoever had this identity before is gone, and nobody told.
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

    /// Nothing more will be told of it: its packet's identity may be another one's soon.
    fn forget(&mut self, place: usize) {
        self.set_gone(place);
        self.readings[place].packet = GONE;
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
        let mask = self.run_of(place).status;
        self.readings[place].short.set_status(status & mask);
    }

    /// Takes in what waited, its fate told.
    fn add(&mut self, late: Late) {
        self.make_room(1);
        let place = self.count;
        (self.readings[place], self.addresses[place]) = (late.reading, late.addresses);
        self.readings[place].packet = GONE;
        self.readings[place].forget_place();
        self.odd.push((place, late.facts));
        self.count += 1;
        self.gone += 1;
        self.close_run(late.output, late.status);
    }

    /// Where the reading of a packet is.
    fn find(&mut self, packet: &Pkt) -> Option<usize> {
        let is_it = |reading: &Reading| reading.packet & !STATES == packet.identity();
        let near = self.readings.get(self.cursor..self.count.min(self.cursor + NEAR)).unwrap_or(&[]);
        if let Some(place) = near.iter().position(is_it) {
            return Some(self.cursor + place);
        }
        self.directory.note(&self.readings[..self.count]);
        let place = self.directory.find(packet.identity())?;
        self.readings.get(place).is_some_and(is_it).then_some(place)
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
        let mut to = 0;
        for place in 0..self.count {
            let packet = self.readings[place].packet;
            if packet & HELD != 0 {
                let facts = self.facts(place);
                let Run { output, status, .. } = self.run_of(place);
                let (reading, addresses) = (self.readings[place], self.addresses[place]);
                let identity = packet & !STATES;
                if waiting.put(Late { identity, reading, addresses, facts, output, status }) {
                    self.odd.retain(|(at, _)| *at != place);
                    continue;
                }
                self.tell_status(place, INCOMPLETE_ADJACENCY);
            } else if packet & GONE == 0 {
                self.tell_status(place, FOR_US);
            }
            if to < place {
                let facts = self.odd.iter().position(|(at, _)| *at == place);
                if let Some(at) = facts {
                    self.odd[at].0 = to;
                }
                (self.readings[to], self.addresses[to], self.beside[to]) =
                    (self.readings[place], self.addresses[place], self.beside[place]);
            }
            to += 1;
        }
        self.odd.retain(|(place, _)| *place < to);
        self.count = to;
    }

    /// What was read, a vector at most at a time: from which place on, and what.
    pub(super) fn vectors(&self) -> impl Iterator<Item = (usize, &[Reading], &[Addresses])> {
        let (readings, addresses) = (self.readings.get(..self.count).unwrap_or(&[]), self.addresses.get(..self.count).unwrap_or(&[]));
        let vectors = readings.chunks(VECTOR).zip(addresses.chunks(VECTOR)).enumerate();
        vectors.map(|(number, (readings, addresses))| (number * VECTOR, readings, addresses))
    }

    /// What else the packet at a place told.
    #[inline]
    pub(super) fn facts(&self, place: usize) -> Facts {
        if !self.odd.is_empty()
            && let Ok(at) = self.odd.binary_search_by_key(&place, |(at, _)| *at)
        {
            return self.odd[at].1;
        }
        self.beside.get(place).map(Beside::facts).unwrap_or_default()
    }

    /// Empty again.
    pub(super) fn clear(&mut self) {
        (self.count, self.gone, self.cursor) = (0, 0, 0);
        self.runs.clear();
        self.odd.clear();
        self.directory.clear();
    }
}

/// Tells readings of the packets that are next in order, until one is not that leaves; how many they were.
#[inline(always)]
fn leave_in_order(readings: &mut [Reading], packets: &[Pkt], output: u32) -> usize {
    const NOT_PLAIN: Flags = Flags::ORIGINATED.with(Flags::HELD);
    let mut same = 0;
    for (reading, packet) in readings.iter_mut().zip(packets) {
        if reading.packet != packet.identity() || packet.flags().any(NOT_PLAIN) {
            break;
        }
        reading.short.set_output(output);
        reading.packet |= GONE;
        same += 1;
    }
    same
}

/// Reading a vector, compiled for each instruction set level; `FAR` when buckets and records are asked for early.
struct Taking<'a, const FAR: bool> {
    manifest: &'a mut Manifest,
    selection: &'a Selection,
    interface: u32,
    packets: &'a [Pkt],
    table: Option<&'a Table>,
}

impl<const FAR: bool> Task for Taking<'_, FAR> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Taking { manifest, selection, interface, packets, table } = self;
        let Manifest { readings, addresses, beside, odd, secret, count, .. } = manifest;
        let sight = Sight::new(selection, secret, interface);
        let from = *count;
        let readings = &mut readings[from..from + packets.len()];
        for (first, packets) in (0..).step_by(GROUP).zip(packets.chunks(GROUP)) {
            let mut others = 0_u32;
            for (place, (packet, reading)) in packets.iter().zip(&mut readings[first..]).enumerate() {
                others |= u32::from(!sight.read(packet.data(), reading)) << place;
                reading.packet = packet.identity();
            }
            if sight.wants_facts() {
                packets.iter().zip(&mut beside[from + first..]).for_each(|(packet, beside)| *beside = Beside::of(packet.data()));
            }
            while others != 0 {
                let place = others.trailing_zeros() as usize;
                others &= others - 1;
                let (packet, to, addresses) = (&packets[place], &mut readings[first + place], &mut addresses[from + first + place]);
                if sight.read_other(packet.data(), to, addresses).is_none() {
                    read_odd(selection, secret, (interface, packet), (to, addresses), (from + first + place, odd));
                }
            }
            let Some(table) = table else { continue };
            if !FAR {
                table.guess(&mut readings[first..first + packets.len()]);
                continue;
            }
            table.fetch(&readings[first..first + packets.len()]);
            if let Some(early) = first.checked_sub(LAG) {
                table.guess_far(&mut readings[early..early + GROUP]);
            }
        }
        match table {
            Some(table) if FAR => {
                let late = readings.len().next_multiple_of(GROUP).saturating_sub(LAG);
                readings[late..].chunks_mut(GROUP).for_each(|readings| table.guess_far(readings));
            }
            Some(_) => {}
            None => readings.iter_mut().for_each(Reading::forget_place),
        }
    }
}

/// What is not plain; facts of such packets are kept by place.
#[cold]
#[inline(never)]
fn read_odd(
    selection: &Selection,
    secret: &Secret,
    (interface, packet): (u32, &Pkt),
    (reading, addresses): (&mut Reading, &mut Addresses),
    (place, odd): (usize, &mut Vec<(usize, Facts)>),
) {
    let (any, theirs, facts) = selection.read_any(secret, interface, packet.data(), packet.total_len() as u32);
    (*reading, *addresses) = (any, theirs);
    reading.packet = packet.identity();
    odd.push((place, facts));
}

/// From identities to places; made when it is asked, for one turn.
#[derive(Debug, Default)]
struct Directory {
    /// Places plus one, by hash of the identity; 0: free. Twice as many as there can be places.
    slots: Vec<(usize, u32)>,
    /// So many places are in it.
    noted: usize,
}

impl Directory {
    fn resize(&mut self, places: usize) {
        self.slots.clear();
        self.slots.resize(2 * places, (0, 0));
        self.noted = 0;
    }

    /// Takes in the identities that came since.
    fn note(&mut self, readings: &[Reading]) {
        for (place, reading) in readings.iter().enumerate().skip(self.noted) {
            let identity = reading.packet & !STATES;
            let slot = self.slot(identity);
            if let Some(free) = self.slots.get_mut(slot)
                && identity != 0
            {
                *free = (identity, place as u32 + 1);
            }
        }
        self.noted = readings.len();
    }

    fn find(&self, identity: usize) -> Option<usize> {
        let (_, place) = *self.slots.get(self.slot(identity))?;
        (place as usize).checked_sub(1)
    }

    /// The slot of an identity, or the one where it would be.
    fn slot(&self, identity: usize) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        // Metadata is a cache line or more apart; Fibonacci hashing spreads what is in a row.
        let mut slot = (identity >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 & mask;
        // At most half of the slots are taken.
        while self.slots.get(slot).is_some_and(|(other, place)| *place != 0 && *other != identity) {
            slot = (slot + 1) & mask;
        }
        slot
    }

    #[inline]
    fn clear(&mut self) {
        if self.noted > 0 {
            self.slots.fill((0, 0));
            self.noted = 0;
        }
    }
}

/// A reading whose packet waits.
#[derive(Clone, Copy, Debug)]
struct Late {
    identity: usize,
    reading: Reading,
    addresses: Addresses,
    facts: Facts,
    output: u32,
    status: u8,
}

impl Late {
    fn tell(&mut self, interface: u32, status: u8) {
        let status = if status == FORWARDED { 0 } else { status };
        self.reading.short.set_status(status & self.status);
        self.reading.short.set_output(interface & self.output);
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
