//! Looking flows up and counting, a vector at a time.
//!
//! **Where packets are read**, in blocks of 64: the bucket of each is asked for, and while the next block is read it is
//! looked into, which tells the place of the record; that is asked for, too. Not all at once: a processor that has too many
//! lines to wait for forgets the rest. **When the turn is over**: compare and count.
//! So the waits for memory overlap with each other and with the work on packets in between, where one packet after the other
//! would wait for each. A packet whose first guess is not its flow (a new flow, or tags that are alike by chance) takes the
//! long way, one at a time.

use std::sync::Arc;

use weir_cpu::{Task, dispatch, prefer_hugepages, prefetch_address, prefetch_write};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_ring::spsc::slots::{self, Reader, Writer};

use super::expiry::{Clock, FREE};
use super::index::Index;
use super::key::{Addresses, Key, Secret};
use super::record::{BEGINS, Departed, EndReason, FlowRecord, Hot, Reading, TURNS, WIDE, milliseconds};
use super::{Facts, Observation};
use crate::random::Random;

/// Flows whose buckets and records, of 64 octets each, lie in a part of the second cache.
const NEAR: usize = 4096;
/// So many packets are read before the buckets of those before them are looked into.
pub(crate) const BLOCK: usize = 64;

/// The most packets that are told at once.
pub const VECTOR: usize = 256;

/// How a table works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Flows that it holds at most.
    pub flows: usize,
    /// Nanoseconds after which a flow that goes on is reported.
    pub active: u64,
    /// Nanoseconds without a packet after which a flow is over.
    pub idle: u64,
    /// Records that wait for the cold side at most.
    pub ring: usize,
}

impl Default for Settings {
    /// A million flows, 60 and 15 seconds.
    fn default() -> Settings {
        Settings { flows: 1 << 20, active: 60_000_000_000, idle: 15_000_000_000, ring: 1 << 14 }
    }
}

/// What a table counts, readable at any time. In packets and in octets:
/// `metered = exported + unexported + resident`.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "counters that say what they count")]
pub struct Counts {
    pub packets: Counter,
    pub octets: Counter,
    /// Flows that were begun.
    pub flows: Counter,
    /// Flows that are in the table.
    pub resident: Counter,
    /// Records in the ring, by `flowEndReason` (1 to 5).
    pub exported: [Counter; 6],
    pub exported_packets: Counter,
    pub exported_octets: Counter,
    /// Flows that had to make room when the ring was full.
    pub unexported: Counter,
    pub unexported_packets: Counter,
    pub unexported_octets: Counter,
    /// Packets that took the long way, and the buckets that were looked at on it.
    pub long_ways: Counter,
    pub probes: Counter,
    /// Records that were over and had to wait since the ring was full.
    pub waited: Counter,
    /// Spare buckets in use.
    pub spare_buckets: Counter,
    /// The router's clock as the table was last told, in nanoseconds.
    pub now: Counter,
}

/// The cold end of a table, where its records come out.
#[derive(Debug)]
pub struct Records {
    ring: Reader<Departed>,
    counts: Arc<Padded<Counts>>,
}

impl Records {
    /// Lets `read` see the oldest record. `None` when there is none.
    #[inline]
    pub fn pop_with<R>(&mut self, read: impl FnOnce(&FlowRecord) -> R) -> Option<R> {
        let counts = &self.counts;
        // The clock was set before the record was written.
        self.ring.pop_with(|departed| read(&departed.record(counts.now.get())))
    }

    /// Whether the table is gone: what waits is all that comes.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }

    /// How many records wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}

/// A worker's flows.
#[derive(Debug)]
pub struct Table {
    pub(super) settings: Settings,
    pub(super) index: Index,
    pub(super) hot: Box<[Hot]>,
    pub(super) facts: Box<[Facts]>,
    /// Of flows that are not IPv4.
    pub(super) addresses: Box<[Addresses]>,
    /// When each record has to be looked at, in ticks.
    pub(super) due: Box<[u32]>,
    /// Places without a flow: those never used yet, and behind them a stack.
    pub(super) fresh: usize,
    pub(super) free: Vec<u32>,
    pub(super) ring: Writer<Departed>,
    pub(super) counts: Arc<Padded<Counts>>,
    pub(super) clock: Clock,
    pub(super) secret: Secret,
}

impl Table {
    /// A table, and the end where its records come out.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> (Table, Records) {
        let flows = settings.flows.clamp(VECTOR, 1 << 30);
        // A vector's worth more than may be resident: so much room is made before each vector.
        let places = flows + VECTOR;
        let (ring, reader) = slots::ring(settings.ring.max(VECTOR));
        let hot = vec![Hot::default(); places].into_boxed_slice();
        let facts = vec![Facts::default(); places].into_boxed_slice();
        let addresses = vec![Addresses::default(); places].into_boxed_slice();
        prefer_hugepages(&hot, true);
        prefer_hugepages(&facts, true);
        prefer_hugepages(&addresses, true);
        let counts: Arc<Padded<Counts>> = Arc::default();
        let table = Table {
            settings: Settings { flows, ..settings },
            index: Index::new(places),
            hot,
            facts,
            addresses,
            due: vec![FREE; places].into_boxed_slice(),
            fresh: 0,
            free: Vec::with_capacity(places),
            ring,
            counts: counts.clone(),
            clock: Clock::default(),
            secret: Secret::new(&mut Random::new(seed)),
        };
        (table, Records { ring: reader, counts })
    }

    /// The random words of its hash.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Other ones, those of the worker that gets it; only a table that is empty takes them.
    pub(crate) fn set_secret(&mut self, secret: &Secret) {
        debug_assert_eq!(self.resident(), 0, "its flows would not be found again");
        self.secret = *secret;
    }

    /// Whether it is worth asking for buckets and records early. What a core's own cache holds is there soon enough: to
    /// ask for it costs more than a load.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.resident() > NEAR
    }

    /// Asks for the bucket of a hash.
    #[inline(always)]
    pub(crate) fn fetch(&self, hash: u64) {
        self.index.fetch(hash);
    }

    /// Looks into a bucket and keeps the place of the record that may be the one; asks for the record when it is far.
    #[inline(always)]
    pub(crate) fn guess<const FAR: bool>(&self, packet: &mut Reading) {
        packet.place = self.index.guess(packet.hash);
        if FAR {
            prefetch_write(self.hot.as_ptr().wrapping_add(packet.place as usize).cast());
            if packet.marks & WIDE != 0 {
                prefetch_address(self.addresses.as_ptr().wrapping_add(packet.place as usize).cast());
            }
        }
    }

    /// What it counts.
    #[must_use]
    pub fn counts(&self) -> &Arc<Padded<Counts>> {
        &self.counts
    }

    /// Flows in it.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.fresh - self.free.len()
    }

    /// Other timeouts, for flows that are there as well as for those to come.
    pub fn set_timeouts(&mut self, active: u64, idle: u64) {
        (self.settings.active, self.settings.idle) = (active, idle);
        self.look_at_all_again();
    }

    /// The records of the flows in it, as they are now.
    pub fn flows(&self) -> impl Iterator<Item = FlowRecord> {
        let resident = self.due.iter().enumerate().filter(|(_, due)| **due != FREE);
        resident.map(|(place, _)| self.record(place, EndReason::Active))
    }

    /// Shows flows in `count` places from `from` on; where to go on, if there is more.
    pub fn look_through(&self, from: usize, count: usize, mut show: impl FnMut(&FlowRecord)) -> Option<usize> {
        let end = from.saturating_add(count).min(self.fresh);
        for place in from..end {
            if self.due[place] != FREE {
                show(&self.record(place, EndReason::Active));
            }
        }
        (end < self.fresh && from < end).then_some(end)
    }

    pub(super) fn record(&self, place: usize, reason: EndReason) -> FlowRecord {
        let hot = &self.hot[place];
        let key = Key::join(&hot.short, &self.addresses[place]);
        FlowRecord { key, sums: hot.sums(self.clock.now, reason), facts: self.facts[place] }
    }

    #[inline]
    pub(super) fn set_clock(&mut self, now: u64) {
        self.clock.now = self.clock.now.max(now);
        self.counts.now.set(self.clock.now);
    }

    /// Counts packets of whom nothing is known but what was observed; at most [`VECTOR`], the rest is not looked at.
    /// `facts` is asked for those of packet so-and-so when it begins a flow.
    pub fn meter(&mut self, now: u64, packets: &[Observation], facts: impl FnMut(usize) -> Facts) {
        let (mut readings, addresses): (Vec<_>, Vec<_>) = packets.iter().map(|packet| Reading::new(packet, &self.secret)).unzip();
        self.find(&mut readings);
        self.count(now, &readings, &addresses, facts);
    }

    /// Finds out where the flows of packets may be, for those who did not when they read them.
    pub fn find(&self, readings: &mut [Reading]) {
        readings.iter().for_each(|reading| self.fetch(reading.hash));
        readings.iter_mut().for_each(|reading| self.guess::<true>(reading));
    }

    /// Counts packets that were read, at most [`VECTOR`]; as many addresses, of which only those matter that are not of IPv4.
    pub fn count(&mut self, now: u64, packets: &[Reading], addresses: &[Addresses], mut facts: impl FnMut(usize) -> Facts) {
        let packets = packets.get(..VECTOR).unwrap_or(packets);
        self.set_clock(now);
        self.make_room(now, packets.len());
        let octets = dispatch(Count { table: self, packets, addresses, moment: milliseconds(now), facts: &mut facts });
        self.counts.packets.add(packets.len() as u64);
        self.counts.octets.add(octets);
        self.counts.resident.set(self.resident() as u64);
    }

    /// A new flow, or one that the first guess missed, or that begins anew.
    #[inline(never)]
    fn long_way(&mut self, moment: u32, packet: &Reading, addresses: &Addresses, facts: &mut dyn FnMut() -> Facts) {
        let (hot, theirs) = (&self.hot, &self.addresses);
        let is_it =
            |place: u32| hot[place as usize].short == packet.short && (packet.marks & WIDE == 0 || theirs[place as usize] == *addresses);
        let (found, probes) = self.index.find(packet.hash, is_it);
        self.counts.long_ways.add(1);
        self.counts.probes.add(probes.into());
        match found {
            Some(place) => self.again(moment, place as usize, packet, facts),
            None => self.begin(moment, packet, addresses, facts),
        }
    }

    fn begin(&mut self, moment: u32, packet: &Reading, addresses: &Addresses, facts: &mut dyn FnMut() -> Facts) {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.fresh += 1;
                self.fresh as u32 - 1
            }
        };
        // There is a spare bucket for as many flows as there are places.
        let fits = self.index.insert(packet.hash, place);
        debug_assert!(fits, "the index has room for every place");
        if packet.marks & WIDE != 0 {
            self.addresses[place as usize] = *addresses;
        }
        self.write(moment, place as usize, packet, facts);
    }

    fn write(&mut self, moment: u32, place: usize, packet: &Reading, facts: &mut dyn FnMut() -> Facts) {
        self.counts.flows.add(1);
        self.hot[place] = Hot::begin(packet, moment);
        self.facts[place] = facts();
        self.due[place] = self.due_of(place);
    }

    /// A packet of a flow that is known. After FIN or RST, SYN begins another flow with the same key.
    fn again(&mut self, moment: u32, place: usize, packet: &Reading, facts: &mut dyn FnMut() -> Facts) {
        let over = packet.marks & BEGINS != 0 && self.hot[place].is_over();
        if over && self.export(place, EndReason::End) {
            return self.write(moment, place, packet, facts);
        }
        self.hot[place].add(packet, moment);
        if packet.marks & TURNS != 0 {
            self.due[place] = self.due_of(place);
        }
    }
}

/// Compares and counts; yields the sum of octets.
struct Count<'a, F> {
    table: &'a mut Table,
    packets: &'a [Reading],
    addresses: &'a [Addresses],
    moment: u32,
    facts: &'a mut F,
}

impl<F: FnMut(usize) -> Facts> Task for Count<'_, F> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let Count { table, packets, addresses, moment, facts } = self;
        let (mut done, mut octets) = (0, 0);
        loop {
            let theirs = addresses.get(done..).unwrap_or(&[]);
            let (known, sum) = table.add(packets.get(done..).unwrap_or(&[]), theirs, moment);
            (done, octets) = (done + known, octets + sum);
            let Some(packet) = packets.get(done) else { return octets };
            let wide = theirs.get(known).unwrap_or(&[0; 4]);
            table.long_way(moment, packet, wide, &mut || facts(done));
            (done, octets) = (done + 1, octets + u64::from(packet.octets));
        }
    }
}

impl Table {
    /// Counts packets of known flows, until one is not; how many they were, and their octets.
    #[inline(always)]
    fn add(&mut self, packets: &[Reading], theirs: &[Addresses], moment: u32) -> (usize, u64) {
        let (hot, addresses) = (&mut *self.hot, &*self.addresses);
        let (mut count, mut octets) = (0, 0);
        for packet in packets {
            let place = packet.place as usize;
            let Some(hot) = hot.get_mut(place).filter(|hot| hot.short == packet.short) else { break };
            if packet.marks & (TURNS | WIDE) != 0
                && (packet.marks & TURNS != 0 || addresses.get(place).is_none_or(|known| theirs.get(count) != Some(known)))
            {
                break;
            }
            hot.add(packet, moment);
            count += 1;
            octets += u64::from(packet.octets);
        }
        (count, octets)
    }
}
