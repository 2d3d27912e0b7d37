//! What came by in this turn, and where it went.
//!
//! A packet's observation is made where it is seen, and completed where it goes; in between it lies here, and the packet
//! carries nothing. The two find each other by the packet's identity, the address of its metadata, which nobody else has
//! while the packet lives. Packets mostly leave in the order in which they came, so whoever is told of a vector that
//! leaves compares it with what comes next in the manifest, and is done. Where others are in between, or the order
//! changed, a directory by identity is made, which lasts for the turn.
//!
//! A packet that waits for an answer leaves the manifest with the turn: [`Waiting`] keeps its observation until the packet
//! goes on, so that the record tells the truth about it.

use weir_buf::{Flags, Pkt};
use weir_cpu::Task;
use weir_graph::DropReason;

use crate::flows::{Beside, Facts, Observation, Selection, VECTOR};
use crate::forwarding_status::{FOR_US, FORWARDED, INCOMPLETE_ADJACENCY, forwarding_status};

/// Observations that may wait for their packets.
const MOST_WAITING: usize = 8192;
/// So far ahead of where the last packet was found the next one is looked for before anything else.
const NEAR: usize = 8;

/// What became of a packet so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
enum State {
    #[default]
    Here,
    Held,
    Gone,
}

/// Where an observation is told of its packet's fate, by the record set of the interface.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Up to which place observations are of this run.
    end: usize,
    output: u32,
    status: u8,
}

/// The name of a packet.
#[inline(always)]
pub(super) fn identity(packet: &Pkt) -> usize {
    std::ptr::from_ref(packet.meta()).addr()
}

/// Observations in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    observations: Vec<Observation>,
    /// 0: nothing more will be told of it.
    identities: Vec<usize>,
    beside: Vec<Beside>,
    states: Vec<State>,
    count: usize,
    /// Where the next packet that leaves is expected, and in which run that is.
    cursor: usize,
    runs: Vec<Run>,
    /// Facts of those that are not plain, by place.
    odd: Vec<(usize, Facts)>,
    directory: Directory,
}

impl Manifest {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Observes a vector.
    pub(super) fn take(&mut self, selection: &Selection, interface: u32, packets: &[Pkt]) {
        self.make_room(packets.len());
        let from = self.count;
        weir_cpu::dispatch(Taking { manifest: self, selection, interface, packets, from });
        self.count += packets.len();
        self.states[from..self.count].fill(State::Here);
        self.close_run(selection);
    }

    /// Observes a vector that leaves by an interface: what it came in by is known.
    pub(super) fn take_leaving(&mut self, selection: &Selection, interface: u32, packets: &[Pkt]) {
        let from = self.count;
        self.take(selection, 0, packets);
        let (input, output) = selection.interface_masks();
        for (observation, packet) in self.observations.iter_mut().skip(from).zip(packets) {
            let came = if packet.flags().any(Flags::ORIGINATED) { 0 } else { packet.interface() };
            observation.key.0[5] = u64::from(came & input) << 32 | u64::from(interface & output);
        }
    }

    fn close_run(&mut self, selection: &Selection) {
        let (output, status) = selection.masks_of_fate();
        match self.runs.last_mut() {
            Some(run) if run.output == output && run.status == status => run.end = self.count,
            _ => self.runs.push(Run { end: self.count, output, status }),
        }
    }

    #[inline]
    fn make_room(&mut self, count: usize) {
        if self.count + count > self.observations.len() {
            self.grow(count);
        }
    }

    /// A turn has as many vectors as the worker has receive queues: the size is found soon.
    #[cold]
    fn grow(&mut self, count: usize) {
        let size = (self.count + count).next_power_of_two().max(2 * VECTOR);
        self.observations.resize(size, Observation::default());
        self.identities.resize(size, 0);
        self.beside.resize(size, Beside::default());
        self.states.resize(size, State::Gone);
        self.directory.resize(size);
    }

    #[cold]
    #[inline(never)]
    fn take_odd(&mut self, selection: &Selection, interface: u32, packet: &Pkt, place: usize) {
        let (observation, facts) = selection.observe_any(interface, packet.data(), packet.total_len() as u32);
        self.observations[place] = observation;
        self.odd.push((place, facts));
    }

    /// Packets leave by an interface.
    pub(super) fn leave(&mut self, interface: u32, mut packets: &[Pkt], waiting: &mut Waiting) {
        if self.count * 8 < packets.len() && waiting.is_empty() {
            return self.leave_few(interface, packets);
        }
        while !packets.is_empty() {
            let end = self.count;
            let next = self.identities.get(self.cursor..end).unwrap_or(&[]);
            const NOT_PLAIN: Flags = Flags::ORIGINATED.with(Flags::HELD);
            let same = next.iter().zip(packets).take_while(|(id, it)| **id == identity(it) && !it.flags().any(NOT_PLAIN)).count();
            self.gone(self.cursor, self.cursor + same, interface);
            self.cursor += same;
            let Some((odd, rest)) = packets.get(same..).and_then(<[Pkt]>::split_first) else { return };
            self.leave_odd(interface, odd, waiting);
            packets = rest;
        }
    }

    /// Few were sampled of many that leave.
    fn leave_few(&mut self, interface: u32, packets: &[Pkt]) {
        for place in 0..self.count {
            let wanted = self.identities[place];
            if self.states[place] == State::Gone || wanted == 0 {
                continue;
            }
            if let Some(packet) = packets.iter().find(|packet| identity(packet) == wanted) {
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
        self.gone(place, place + 1, interface);
    }

    /// Observations of packets that leave, in a row.
    #[inline(always)]
    fn gone(&mut self, mut from: usize, to: usize, interface: u32) {
        for run in 0..self.runs.len() {
            let Run { end, output, .. } = self.runs[run];
            if end <= from {
                continue;
            }
            let bits = u64::from(interface & output);
            for observation in &mut self.observations[from..to.min(end)] {
                observation.key.0[5] = observation.key.0[5] & !0xffff_ffff | bits;
            }
            self.states[from..to.min(end)].fill(State::Gone);
            from = to.min(end);
            if from == to {
                return;
            }
        }
    }

    /// A packet waits for an answer.
    pub(super) fn hold(&mut self, packet: &Pkt, waiting: &mut Waiting) {
        let Some(place) = self.find(packet) else { return };
        self.states[place] = State::Held;
        // Whoever had this identity before is gone, and nobody told.
        if let Some(mut late) = waiting.take_by(identity(packet)) {
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
        (self.identities[place], self.states[place]) = (0, State::Gone);
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
            (self.identities[place], self.states[place]) = (0, State::Gone);
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
        let mask = self.runs.iter().find(|run| place < run.end).map_or(0, |run| run.status);
        let word = &mut self.observations[place].key.0[4];
        *word = *word & !0xff00 | u64::from(status & mask) << 8;
    }

    /// Takes in what waited, its fate told.
    fn add(&mut self, late: Late) {
        self.make_room(1);
        let place = self.count;
        (self.observations[place], self.identities[place], self.states[place]) = (late.observation, 0, State::Gone);
        self.odd.push((place, late.facts));
        self.count += 1;
        self.runs.push(Run { end: self.count, output: late.output, status: late.status });
    }

    /// Where the observation of a packet is.
    fn find(&mut self, packet: &Pkt) -> Option<usize> {
        let wanted = identity(packet);
        let near = self.identities.get(self.cursor..self.count.min(self.cursor + NEAR)).unwrap_or(&[]);
        if let Some(place) = near.iter().position(|identity| *identity == wanted) {
            return Some(self.cursor + place);
        }
        self.directory.note(&self.identities[..self.count]);
        let place = self.directory.find(wanted)?;
        (self.identities.get(place) == Some(&wanted)).then_some(place)
    }

    /// The turn is over: what is held goes to those who wait, of the rest it is known that this router kept it.
    pub(super) fn settle(&mut self, waiting: &mut Waiting) {
        if self.states[..self.count].iter().all(|state| *state == State::Gone) {
            return;
        }
        self.settle_odd(waiting);
    }

    #[cold]
    fn settle_odd(&mut self, waiting: &mut Waiting) {
        let mut to = 0;
        for place in 0..self.count {
            if self.states[place] == State::Held {
                let facts = self.facts(place);
                let run = self.runs.iter().find(|run| place < run.end);
                let (output, status) = run.map_or((0, 0), |run| (run.output, run.status));
                let late = Late { identity: self.identities[place], observation: self.observations[place], facts, output, status };
                if waiting.put(late) {
                    self.odd.retain(|(at, _)| *at != place);
                    continue;
                }
                self.tell_status(place, INCOMPLETE_ADJACENCY);
            } else if self.states[place] == State::Here {
                self.tell_status(place, FOR_US);
            }
            if to < place {
                let facts = self.odd.iter().position(|(at, _)| *at == place);
                if let Some(at) = facts {
                    self.odd[at].0 = to;
                }
                (self.observations[to], self.beside[to]) = (self.observations[place], self.beside[place]);
            }
            to += 1;
        }
        self.odd.retain(|(place, _)| *place < to);
        self.count = to;
    }

    /// What was seen, a vector at most at a time.
    pub(super) fn vectors(&self) -> impl Iterator<Item = (usize, &[Observation])> {
        let all = self.observations.get(..self.count).unwrap_or(&[]);
        all.chunks(VECTOR).enumerate().map(|(number, vector)| (number * VECTOR, vector))
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
        (self.count, self.cursor) = (0, 0);
        self.runs.clear();
        self.odd.clear();
        self.directory.clear();
    }
}

/// Observing a vector, compiled for each instruction set level.
struct Taking<'a> {
    manifest: &'a mut Manifest,
    selection: &'a Selection,
    interface: u32,
    packets: &'a [Pkt],
    from: usize,
}

impl Task for Taking<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Taking { manifest, selection, interface, packets, from } = self;
        for (place, packet) in (from..).zip(packets) {
            manifest.identities[place] = identity(packet);
            match selection.observe(interface, packet.data()) {
                Some((observation, beside)) => {
                    manifest.observations[place] = observation;
                    manifest.beside[place] = beside;
                }
                None => manifest.take_odd(selection, interface, packet, place),
            }
        }
    }
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
    fn note(&mut self, identities: &[usize]) {
        for (place, identity) in identities.iter().enumerate().skip(self.noted).filter(|(_, identity)| **identity != 0) {
            let slot = self.slot(*identity);
            if let Some(free) = self.slots.get_mut(slot) {
                *free = (*identity, place as u32 + 1);
            }
        }
        self.noted = identities.len();
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

/// An observation whose packet waits.
#[derive(Clone, Copy, Debug)]
struct Late {
    identity: usize,
    observation: Observation,
    facts: Facts,
    output: u32,
    status: u8,
}

impl Late {
    fn tell(&mut self, interface: u32, status: u8) {
        let status = if status == FORWARDED { 0 } else { status };
        self.observation.key.0[4] |= u64::from(status & self.status) << 8;
        self.observation.key.0[5] |= u64::from(interface & self.output);
    }
}

/// Observations of packets that wait for an answer. The graph bounds how many wait, and this does too.
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
        self.take_by(identity(packet))
    }

    fn take_by(&mut self, identity: usize) -> Option<Late> {
        let place = self.0.iter().position(|late| late.identity == identity)?;
        Some(self.0.swap_remove(place))
    }
}
