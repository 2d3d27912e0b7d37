//! Looking flows up and counting, a vector at a time.
//!
//! Three stages over the vector, each of which asks for what the next one reads: hash and bucket; tag and record;
//! compare and count. The waits for memory of 256 packets overlap, where one packet after the other would wait for each.
//! A packet whose first guess is not its flow (a new flow, or tags that are alike by chance) takes
//! the long way, one at a time.

use std::sync::Arc;

use weir_cpu::{Task, dispatch, prefer_hugepages, prefetch_address, prefetch_write};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_ring::spsc::slots::{self, Reader, Writer};

use super::expiry::{Clock, FREE};
use super::index::{Index, NONE};
use super::key::Secret;
use super::record::{Cold, EndReason, FlowRecord, Hot, SYN, milliseconds};
use super::{Facts, Observation};
use crate::random::Random;

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
}

/// A worker's flows.
#[derive(Debug)]
pub struct Table {
    pub(super) settings: Settings,
    pub(super) index: Index,
    pub(super) hot: Box<[Hot]>,
    pub(super) cold: Box<[Cold]>,
    /// When each record has to be looked at, in ticks.
    pub(super) due: Box<[u32]>,
    /// Places without a flow: those never used yet, and behind them a stack.
    pub(super) fresh: usize,
    pub(super) free: Vec<u32>,
    pub(super) ring: Writer<FlowRecord>,
    pub(super) counts: Arc<Padded<Counts>>,
    pub(super) clock: Clock,
    secret: Secret,
    hashes: Box<[u64; VECTOR]>,
    guesses: Box<[u32; VECTOR]>,
}

impl Table {
    /// A table, and the end where its records come out.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> (Table, Reader<FlowRecord>) {
        let flows = settings.flows.clamp(VECTOR, 1 << 30);
        // A vector's worth more than may be resident: so much room is made before each vector.
        let places = flows + VECTOR;
        let (ring, reader) = slots::ring(settings.ring.max(VECTOR));
        let hot = vec![Hot::default(); places].into_boxed_slice();
        let cold = vec![Cold::default(); places].into_boxed_slice();
        prefer_hugepages(&hot, true);
        prefer_hugepages(&cold, true);
        let table = Table {
            settings: Settings { flows, ..settings },
            index: Index::new(places),
            hot,
            cold,
            due: vec![FREE; places].into_boxed_slice(),
            fresh: 0,
            free: Vec::with_capacity(places),
            ring,
            counts: Arc::default(),
            clock: Clock::default(),
            secret: Secret::new(&mut Random::new(seed)),
            hashes: Box::new([0; VECTOR]),
            guesses: Box::new([NONE; VECTOR]),
        };
        (table, reader)
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
        let (hot, cold) = (&self.hot[place], &self.cold[place]);
        FlowRecord { key: cold.key, sums: hot.sums(self.clock.now, reason), facts: cold.facts }
    }

    /// Counts packets; `facts` is asked for those of packet so-and-so when it begins a flow. At most
    /// [`VECTOR`] packets, the rest is not looked at.
    pub fn meter(&mut self, now: u64, packets: &[Observation], mut facts: impl FnMut(usize) -> Facts) {
        let packets = packets.get(..VECTOR).unwrap_or(packets);
        self.clock.now = self.clock.now.max(now);
        self.make_room(now, packets.len());
        dispatch(Guess { table: self, packets });
        dispatch(Count { table: self, packets, moment: milliseconds(now), facts: &mut facts });
        let octets: u64 = packets.iter().map(|packet| u64::from(packet.octets)).sum();
        self.counts.packets.add(packets.len() as u64);
        self.counts.octets.add(octets);
        self.counts.resident.set(self.resident() as u64);
    }

    /// A new flow, or one that the first guess missed, or that begins anew.
    #[inline(never)]
    fn long_way(&mut self, moment: u32, hash: u64, packet: &Observation, facts: Facts) {
        let (hot, cold, short) = (&self.hot, &self.cold, packet.key.short(hash));
        let is_it = |place: u32| hot[place as usize].is(short) && cold[place as usize].key == packet.key;
        let (found, probes) = self.index.find(hash, is_it);
        self.counts.long_ways.add(1);
        self.counts.probes.add(probes.into());
        match found {
            Some(place) => self.again(moment, place as usize, hash, packet, facts),
            None => self.begin(moment, hash, packet, facts),
        }
    }

    fn begin(&mut self, moment: u32, hash: u64, packet: &Observation, facts: Facts) {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.fresh += 1;
                self.fresh as u32 - 1
            }
        };
        // There is a spare bucket for as many flows as there are places.
        let fits = self.index.insert(hash, place);
        debug_assert!(fits, "the index has room for every place");
        self.write(moment, place as usize, hash, packet, facts);
    }

    fn write(&mut self, moment: u32, place: usize, hash: u64, packet: &Observation, facts: Facts) {
        self.counts.flows.add(1);
        self.hot[place] = Hot::begin(packet.key.short(hash), packet, moment);
        self.cold[place] = Cold { key: packet.key, hash, facts };
        self.due[place] = self.due_of(place);
    }

    /// A packet of a flow that is known. After FIN or RST, SYN begins another flow with the same key.
    #[inline(never)]
    fn again(&mut self, moment: u32, place: usize, hash: u64, packet: &Observation, facts: Facts) {
        let over = packet.tcp_flags & SYN != 0 && self.hot[place].is_over();
        if over && self.export(place, EndReason::End) {
            return self.write(moment, place, hash, packet, facts);
        }
        self.hot[place].add(packet, moment);
        if packet.tcp_flags & TURNS != 0 {
            self.due[place] = self.due_of(place);
        }
    }
}

/// First and second stage.
struct Guess<'a> {
    table: &'a mut Table,
    packets: &'a [Observation],
}

impl Task for Guess<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Table { secret, index, hashes, guesses, hot, cold, .. } = self.table;
        for (packet, hash) in self.packets.iter().zip(hashes.iter_mut()) {
            *hash = secret.hash(&packet.key);
            index.fetch(*hash);
        }
        for ((packet, hash), guess) in self.packets.iter().zip(hashes.iter()).zip(guesses.iter_mut()) {
            *guess = index.guess(*hash);
            prefetch_write(hot.as_ptr().wrapping_add(*guess as usize).cast());
            if !packet.key.is_ip4() {
                prefetch_address(cold.as_ptr().wrapping_add(*guess as usize).cast());
            }
        }
    }
}

/// Third stage.
struct Count<'a, F> {
    table: &'a mut Table,
    packets: &'a [Observation],
    moment: u32,
    facts: &'a mut F,
}

/// Flags that change when a flow is over, or begin one.
const TURNS: u16 = super::record::FIN | super::record::RST | SYN;

impl<F: FnMut(usize) -> Facts> Task for Count<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Count { table, packets, moment, facts } = self;
        for (number, packet) in packets.iter().enumerate() {
            let (guess, hash) = (table.guesses[number % VECTOR] as usize, table.hashes[number % VECTOR]);
            if let Some(hot) = table.hot.get_mut(guess)
                && hot.is(packet.key.short(hash))
                && packet.tcp_flags & TURNS == 0
                && (packet.key.is_ip4() || table.cold.get(guess).is_some_and(|cold| cold.key == packet.key))
            {
                hot.add(packet, moment);
                continue;
            }
            table.long_way(moment, hash, packet, facts(number));
        }
    }
}
