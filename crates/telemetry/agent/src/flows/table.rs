//! Looking flows up and counting, a vector at a time.
//!
//! **When a vector was read**, the bucket of each packet is asked for, and 64 packets later it is looked into, which tells the place of the
//! record; that is asked for, too. Both into the second cache: of the first one a core waits for a dozen lines at once, of that one for many more.
//! **When the turn is over**: compare and count.
//! So the waits for memory overlap with each other and with the work on packets in between, where one packet after the other
//! would wait for each. A packet whose first guess is not its flow (a new flow, or tags that are alike by chance) takes the
//! long way, one at a time; where it will be put was asked for as well.

use std::sync::Arc;

use weir_cpu::{Task, dispatch};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_ring::spsc::slots::{self, Reader, Writer};

use super::expiry::{CHOICE, Clock, Dawn, Tally};
use super::index::{BLOCK, Index, NONE, WAYS};
use super::key::{Addresses, ForwardingOutcome, Secret};
use super::record::{
    BEGINS, Departed, EndReason, FlowRecord, Fraction, Hot, Reading, Share, Slip, TURNS,
    milliseconds,
};
use super::{Facts, Observation};
use crate::random::Random;

/// Flows whose buckets and records, of 64 octets each, lie in a part of the second cache.
const NEAR: usize = 4096;
/// So many packets ahead of one that took the long way the next one's bucket is asked for.
const STRANGE: usize = 8;
/// So many packets before they are counted, the records of far ones are asked for once more.
const SOON: usize = 16;

/// The largest number of packets that are passed at once.
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
        Settings {
            flows: 1 << 20,
            active: 60_000_000_000,
            idle: 15_000_000_000,
            ring: 1 << 14,
        }
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
    /// The router's clock at the last call, in nanoseconds.
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
        self.ring
            .pop_with(|departed| read(&departed.record(counts.now.get())))
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
    pub(super) ring: Writer<Departed>,
    pub(super) counts: Arc<Padded<Counts>>,
    pub(super) clock: Clock,
}

impl Table {
    /// A table, and the end where its records come out.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> (Table, Records) {
        let flows = settings.flows.clamp(VECTOR, 1 << 30);
        let (ring, reader) = slots::ring(settings.ring.max(VECTOR));
        let counts: Arc<Padded<Counts>> = Arc::default();
        let index = Index::new(flows, Secret::new(&mut Random::new(seed)));
        let table = Table {
            settings: Settings { flows, ..settings },
            index,
            ring,
            counts: counts.clone(),
            clock: Clock::default(),
        };
        (
            table,
            Records {
                ring: reader,
                counts,
            },
        )
    }

    /// The random words of its hash.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.index.secret
    }

    /// Other ones, those of the worker that gets it; only a table that is empty takes them.
    pub(crate) fn set_secret(&mut self, secret: &Secret) {
        debug_assert_eq!(self.resident(), 0, "its flows would not be found again");
        self.index.secret = *secret;
    }

    /// Whether it is worth asking for buckets and records early. What a core's own cache holds is there soon enough: to
    /// ask for it costs more than a load.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.resident() > NEAR
    }

    /// Asks for what packets will need: their buckets, and when it looked into these, the records that may be theirs, whose places it keeps.
    #[inline(always)]
    pub(crate) fn ask(&self, hashes: &[u64], places: &mut [u32]) {
        weir_cpu::apart(Ask {
            table: self,
            hashes,
            places,
        });
    }

    /// Looks into their buckets and keeps the places of the records that may be theirs.
    #[inline(always)]
    pub(crate) fn guess(&self, packets: &mut [Reading]) {
        let view = self.index.view();
        packets
            .iter_mut()
            .for_each(|packet| packet.place = view.guess(packet.hash));
    }

    /// Asks for the records of packets that are not in the first bucket where they could be: in the spare ones, or where they will be put, where
    /// who compares finds another one. Their places are the lines of those buckets.
    #[inline(never)]
    fn ask_strangers(&self, strangers: &[u8], hashes: &[u64], places: &mut [u32]) {
        let (now, is_full) = (self.clock.tick(), self.is_full());
        for number in strangers {
            if let (Some(hash), Some(place)) = (
                hashes.get(usize::from(*number)),
                places.get_mut(usize::from(*number)),
            ) {
                *place = self
                    .index
                    .guess_elsewhere(*place, *hash, now, is_full, CHOICE);
                self.index.ask(*place);
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
        self.index.flows()
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.resident() >= self.settings.flows
    }

    /// Other timeouts, for flows that are there as well as for those to come.
    pub fn set_timeouts(&mut self, active: u64, idle: u64) {
        (self.settings.active, self.settings.idle) = (active, idle);
        self.look_at_all_again();
    }

    /// The records of the flows in it, as they are now.
    pub fn flows(&self) -> impl Iterator<Item = FlowRecord> {
        let mut next = Some(0);
        let buckets = std::iter::from_fn(move || {
            let at = next?;
            next = Some(self.index.next_bucket(at)).filter(|next| *next > 0);
            Some(at)
        });
        let places = buckets.flat_map(|bucket| self.index.flows_of(bucket, 0));
        places.map(|(place, _)| self.index.record(place, self.clock.now, EndReason::Active))
    }

    /// Shows the flows of `count` places from `from` on, or some more; where to go on, if there is more. A flow whose record moves
    /// meanwhile, since the table grows, is shown again or not at all.
    pub fn look_through(
        &self,
        from: usize,
        count: usize,
        mut show: impl FnMut(&FlowRecord),
    ) -> Option<usize> {
        let mut at = Index::bucket_at(from);
        for _ in 0..count.div_ceil(WAYS) {
            for (place, _) in self.index.flows_of(at, 0) {
                show(&self.index.record(place, self.clock.now, EndReason::Active));
            }
            at = match self.index.next_bucket(at) {
                0 => return None,
                next => next,
            };
        }
        Some(Index::first_place(at))
    }

    #[inline]
    pub(super) fn set_clock(&mut self, now: u64) {
        self.clock.now = self.clock.now.max(now);
        self.counts.now.set(self.clock.now);
        self.index.fraction = Fraction::of(self.clock.now);
    }

    /// Counts packets of whom nothing is known but what was observed; at most [`VECTOR`], the rest is not looked at.
    /// `facts` is asked for those of the given packet when it begins a flow.
    pub fn meter(&mut self, now: u64, packets: &[Observation], facts: impl FnMut(usize) -> Facts) {
        let (mut readings, addresses): (Vec<_>, Vec<_>) = packets
            .iter()
            .map(|packet| Reading::new(packet, self.secret()))
            .unzip();
        self.find(&mut readings);
        self.count(now, &readings, &addresses, facts);
    }

    /// Finds out where the flows of packets may be, for those who did not when they read them.
    pub fn find(&self, readings: &mut [Reading]) {
        for readings in readings.chunks_mut(VECTOR) {
            let (mut hashes, mut places) = ([0; VECTOR], [NONE; VECTOR]);
            hashes
                .iter_mut()
                .zip(&*readings)
                .for_each(|(hash, packet)| *hash = packet.hash);
            let count = readings.len();
            self.ask(&hashes[..count], &mut places[..count]);
            readings
                .iter_mut()
                .zip(places)
                .for_each(|(packet, place)| packet.place = place);
        }
    }

    /// Counts plain packets; `facts` as for [`Table::meter`].
    pub(crate) fn count_plain(
        &mut self,
        now: u64,
        plain: &Plain<'_>,
        mut facts: impl FnMut(usize) -> Facts,
    ) {
        self.set_clock(now);
        let (moment, facts) = (milliseconds(now), &mut facts);
        let table = &mut *self;
        let octets = match (plain.has_status, plain.more.is_some()) {
            (true, false) => dispatch(CountPlain::<_, true, false> {
                table,
                plain,
                moment,
                facts,
            }),
            (false, false) => dispatch(CountPlain::<_, false, false> {
                table,
                plain,
                moment,
                facts,
            }),
            (true, true) => dispatch(CountPlain::<_, true, true> {
                table,
                plain,
                moment,
                facts,
            }),
            (false, true) => dispatch(CountPlain::<_, false, true> {
                table,
                plain,
                moment,
                facts,
            }),
        };
        self.counts.packets.add(plain.slips.len() as u64);
        self.counts.octets.add(octets);
        self.counts.resident.set(self.resident() as u64);
    }

    /// Counts packets that were read, at most [`VECTOR`]; as many addresses, of which only those matter that are not of IPv4.
    pub fn count(
        &mut self,
        now: u64,
        packets: &[Reading],
        addresses: &[Addresses],
        mut facts: impl FnMut(usize) -> Facts,
    ) {
        let packets = packets.get(..VECTOR).unwrap_or(packets);
        self.set_clock(now);
        let octets = dispatch(Count {
            table: self,
            packets,
            addresses,
            moment: milliseconds(now),
            facts: &mut facts,
        });
        self.counts.packets.add(packets.len() as u64);
        self.counts.octets.add(octets);
        self.counts.resident.set(self.resident() as u64);
    }

    /// A new flow, or one that the first guess missed, or that begins anew.
    #[inline(never)]
    fn long_way(
        &mut self,
        moment: u32,
        packet: &Reading,
        addresses: &Addresses,
        facts: &mut dyn FnMut() -> Facts,
    ) {
        let (found, probes) = self
            .index
            .find(packet.hash, |place| self.index.is_of(place, packet));
        self.counts.long_ways.add(1);
        self.counts.probes.add(probes.into());
        match found {
            Some(place) => self.again(moment, place, packet, addresses, facts),
            None => self.begin(moment, packet, addresses, facts),
        }
    }

    #[inline(always)]
    fn begin(
        &mut self,
        moment: u32,
        packet: &Reading,
        addresses: &Addresses,
        facts: &mut dyn FnMut() -> Facts,
    ) {
        let place = if self.is_full() {
            self.take_over(packet.hash)
        } else {
            self.take_empty(packet.hash)
        };
        // Without a spare bucket, which chance does not bring about, somebody leaves as in a full table.
        let place = place
            .or_else(|| self.index.insert(packet.hash))
            .or_else(|| self.take_over(packet.hash));
        debug_assert!(place.is_some(), "who left had a place in the same buckets");
        if let Some(place) = place {
            self.write(moment, place, packet, addresses, facts);
        }
    }

    #[inline(always)]
    fn take_empty(&mut self, hash: u64) -> Option<u32> {
        if self.index.is_dense() {
            self.index.split();
        }
        self.index.insert(hash)
    }

    #[inline(always)]
    fn write(
        &mut self,
        moment: u32,
        place: u32,
        packet: &Reading,
        addresses: &Addresses,
        facts: &mut dyn FnMut() -> Facts,
    ) {
        self.counts.flows.add(1);
        self.index.begin(moment, place, packet, addresses, facts);
        self.index.set_due(place, self.due_of_new(packet));
    }

    /// A packet of a flow that is known. After FIN or RST, SYN begins another flow with the same key.
    #[inline(never)]
    fn again(
        &mut self,
        moment: u32,
        place: u32,
        packet: &Reading,
        addresses: &Addresses,
        facts: &mut dyn FnMut() -> Facts,
    ) {
        let over = packet.marks & BEGINS != 0 && self.index.hot(place).is_over();
        if over && self.export(place, EndReason::End) {
            self.index.clear(place);
            return self.write(moment, place, packet, addresses, facts);
        }
        self.index.hot_mut(place).add(packet, moment);
        if packet.marks & TURNS != 0 {
            self.index.set_due(place, self.due_of(place));
        }
    }
}

/// As [`Table::ask`], in a function of its own.
struct Ask<'a> {
    table: &'a Table,
    hashes: &'a [u64],
    places: &'a mut [u32],
}

impl Task for Ask<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Ask {
            table,
            hashes,
            places,
        } = self;
        let (view, mut before): (_, (&[u64], &mut [u32])) = (table.index.view(), (&[], &mut []));
        for (hashes, places) in hashes.chunks(BLOCK).zip(places.chunks_mut(BLOCK)) {
            // Lines of buckets stand in place of records' places until these are known.
            view.lines(hashes, places);
            table.ask_block(places, before.0, before.1);
            before = (hashes, places);
        }
        table.ask_block(&[], before.0, before.1);
    }
}

impl Table {
    /// Asks for the buckets in these lines, and for the records of the block before, whose buckets were asked for.
    #[inline(always)]
    fn ask_block(&self, lines: &[u32], hashes: &[u64], places: &mut [u32]) {
        let (index, view, mut strangers, mut count) =
            (&self.index, self.index.view(), [0; BLOCK], 0);
        let mut look = |number: usize, hash: &u64, place: &mut u32| match view.look(*place, hash) {
            Some(known) => {
                *place = known;
                index.ask(known);
            }
            None => {
                strangers[count % BLOCK] = number as u8;
                count += 1;
            }
        };
        match (
            lines.first_chunk::<BLOCK>(),
            hashes.first_chunk::<BLOCK>(),
            places.first_chunk_mut::<BLOCK>(),
        ) {
            // By turns: many of one kind in a row would wait for each other.
            (Some(lines), Some(hashes), Some(places)) => {
                for (number, (line, (hash, place))) in
                    lines.iter().zip(hashes.iter().zip(places)).enumerate()
                {
                    index.ask(*line);
                    look(number, hash, place);
                }
            }
            _ => {
                lines.iter().for_each(|line| index.ask(*line));
                hashes
                    .iter()
                    .zip(&mut *places)
                    .enumerate()
                    .for_each(|(number, (hash, place))| look(number, hash, place));
            }
        }
        if count > 0 {
            self.ask_strangers(&strangers[..count.min(BLOCK)], hashes, places);
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
        let Count {
            table,
            packets,
            addresses,
            moment,
            facts,
        } = self;
        let (mut done, mut octets) = (0, 0);
        for from in (0..packets.len()).step_by(SOON) {
            packets
                .iter()
                .skip(from + SOON)
                .take(SOON)
                .for_each(|packet| table.index.fetch_record(packet.place));
            let end = packets.len().min(from + SOON);
            while done < end {
                let (known, sum) = table.add(&packets[done..end], moment);
                (done, octets) = (done + known, octets + sum);
                if done < end {
                    let packet = &packets[done];
                    let wide = addresses.get(done).unwrap_or(&[0; 4]);
                    if let Some(later) = packets.get(done + STRANGE) {
                        table.index.fetch(later.hash);
                    }
                    table.long_way(moment, packet, wide, &mut || facts(done));
                    (done, octets) = (done + 1, octets + u64::from(packet.octets));
                }
            }
        }
        octets
    }
}

impl Table {
    /// Counts packets of known flows, until one is not; how many they were, and their octets.
    #[inline(always)]
    fn add(&mut self, packets: &[Reading], moment: u32) -> (usize, u64) {
        let records = self.index.records_mut();
        let (mut count, mut octets) = (0, 0);
        for packet in packets {
            let Some(hot) = records
                .get_mut(packet.place as usize)
                .filter(|hot| hot.short == packet.short)
            else {
                break;
            };
            if packet.marks & TURNS != 0 {
                break;
            }
            hot.add(packet, moment);
            count += 1;
            octets += u64::from(packet.octets);
        }
        (count, octets)
    }
}

/// Plain packets that are to be counted.
pub(crate) struct Plain<'a> {
    pub(crate) share: Share,
    pub(crate) slips: &'a [Slip],
    pub(crate) outcomes: &'a [ForwardingOutcome],
    pub(crate) hashes: &'a [u64],
    /// Where their flows may be, when that was looked for as they were read.
    pub(crate) places: Option<&'a [u32]>,
    /// Whether the status may be part of a key.
    pub(crate) has_status: bool,
    /// The last words of their keys, and the addresses of those of IPv6; `None` when all are untagged IPv4.
    pub(crate) more: Option<(&'a [u64], &'a [Addresses])>,
}

/// As [`Count`], of plain packets, which have a `STATUS` or never one, and a last word of their keys (`TAIL`) or never one.
struct CountPlain<'a, F, const STATUS: bool, const TAIL: bool> {
    table: &'a mut Table,
    plain: &'a Plain<'a>,
    moment: u32,
    facts: &'a mut F,
}

impl<F: FnMut(usize) -> Facts, const STATUS: bool, const TAIL: bool> Task
    for CountPlain<'_, F, STATUS, TAIL>
{
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let CountPlain {
            table,
            plain,
            moment,
            facts,
        } = self;
        let Plain {
            share,
            slips,
            outcomes,
            hashes,
            places,
            more,
            ..
        } = *plain;
        let mut block = Block {
            share,
            more: more.unwrap_or_default(),
            moment,
            dawn: table.dawn(),
            tally: Tally::default(),
            facts,
        };
        let (mut octets, mut near) = (0, [NONE; BLOCK]);
        if let Some(places) = places {
            for from in (0..slips.len()).step_by(SOON) {
                // They were asked for as they were read; what was forgotten since, or has left the nearest cache, is asked for again.
                let soon = places.get(from + SOON..).unwrap_or(&[]);
                match soon.first_chunk::<SOON>() {
                    Some(soon) => soon
                        .iter()
                        .for_each(|place| table.index.fetch_record(*place)),
                    None => soon
                        .iter()
                        .for_each(|place| table.index.fetch_record(*place)),
                }
                octets += block.count::<STATUS, TAIL>(
                    table,
                    (
                        &slips[from..],
                        &outcomes[from..],
                        &hashes[from..],
                        &places[from..],
                    ),
                    from,
                    SOON,
                );
            }
        } else {
            for from in (0..slips.len()).step_by(BLOCK) {
                // In a loop of its own: so short that the processor has many packets under way, each of which waits for its loads.
                let (view, hashes) = (table.index.view(), &hashes[from..]);
                view.lines(hashes, &mut near);
                // Records are asked for: even what the second cache holds is waited for by those that count one after the other.
                for (hash, place) in hashes.iter().zip(&mut near) {
                    *place = view.likely(*place, hash);
                    table.index.fetch_record(*place);
                }
                octets += block.count::<STATUS, TAIL>(
                    table,
                    (&slips[from..], &outcomes[from..], hashes, &near),
                    from,
                    BLOCK,
                );
            }
        }
        table.close(&block.tally);
        octets
    }
}

/// Plain packets with what they share that are counted one after the other.
struct Block<'a> {
    share: Share,
    more: (&'a [u64], &'a [Addresses]),
    moment: u32,
    dawn: Dawn,
    tally: Tally,
    facts: &'a mut dyn FnMut(usize) -> Facts,
}

impl Block<'_> {
    /// Counts so many of the packets from place `from` on, and gives the sum of their octets.
    #[inline(always)]
    fn count<const STATUS: bool, const TAIL: bool>(
        &mut self,
        table: &mut Table,
        (slips, outcomes, hashes, places): (&[Slip], &[ForwardingOutcome], &[u64], &[u32]),
        from: usize,
        count: usize,
    ) -> u64 {
        let count = count.min(slips.len());
        let (mut done, mut octets) = (0, 0);
        let (tails, addresses) = (
            self.more.0.get(from..).unwrap_or(&[]),
            self.more.1.get(from..).unwrap_or(&[]),
        );
        loop {
            let (slips_left, fates_left, places_left) = (
                &slips[done..count],
                outcomes.get(done..).unwrap_or(&[]),
                places.get(done..).unwrap_or(&[]),
            );
            let add = AddPlain::<STATUS, TAIL> {
                records: table.index.records_mut(),
                tails: tails.get(done..).unwrap_or(&[]),
                share: self.share,
                slips: slips_left,
                outcomes: fates_left,
                places: places_left,
                moment: self.moment,
            };
            let (known, sum) = if count == BLOCK {
                weir_cpu::apart(add)
            } else {
                add.run()
            };
            (done, octets) = (done + known, octets + sum);
            if done >= count {
                return octets;
            }
            let (Some(slip), Some(outcome), Some(hash)) =
                (slips.get(done), outcomes.get(done), hashes.get(done))
            else {
                return octets;
            };
            if let Some(later) = hashes.get(done + STRANGE) {
                table.index.fetch(*later);
            }
            let tail = tails.get(done).copied().unwrap_or(0);
            let packet = self.share.reading((slip, tail), *outcome, *hash);
            if !table.displace(&self.dawn, &packet, places[done], &mut self.tally) {
                let Block { moment, facts, .. } = self;
                let wide = addresses.get(done).unwrap_or(&[0; 4]);
                table.long_way(*moment, &packet, wide, &mut || facts(from + done));
            }
            (done, octets) = (done + 1, octets + u64::from(packet.octets));
        }
    }
}

/// Counts packets of known flows, until one is not; how many they were, and their octets.
struct AddPlain<'a, const STATUS: bool, const TAIL: bool> {
    records: &'a mut [Hot],
    tails: &'a [u64],
    share: Share,
    slips: &'a [Slip],
    outcomes: &'a [ForwardingOutcome],
    places: &'a [u32],
    moment: u32,
}

impl<const STATUS: bool, const TAIL: bool> Task for AddPlain<'_, STATUS, TAIL> {
    type Output = (usize, u64);

    #[inline(always)]
    fn run(self) -> (usize, u64) {
        let AddPlain {
            records,
            tails,
            share,
            slips,
            outcomes,
            places,
            moment,
        } = self;
        let (mut known, mut octets) = (0, 0);
        for ((slip, outcome), place) in slips.iter().zip(outcomes).zip(places) {
            let Some(hot) = records.get_mut(*place as usize) else {
                break;
            };
            let tail = if TAIL {
                tails.get(known).copied().unwrap_or(0)
            } else {
                0
            };
            if share.differs::<STATUS>(&hot.short, (slip, tail), *outcome)
                || slip.marks() & TURNS != 0
            {
                break;
            }
            hot.add_plain(slip, moment);
            known += 1;
            octets += u64::from(slip.octets());
        }
        (known, octets)
    }
}
