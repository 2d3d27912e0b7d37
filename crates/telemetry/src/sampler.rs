//! The sFlow sampler: a tap on what comes in and what goes out.
//!
//! Each interface has a counter in each worker that says how many packets are still to be passed over. The graph
//! lets as many go by without showing them, which costs it a comparison and two additions a vector; nothing is
//! looked at and no clock is read. When the counter ends inside a vector, that packet's first bytes are copied
//! into the worker's ring and the next gap is drawn, counted on from the packet just taken, so that every
//! packet of the vector has the same chance, also when several of them are taken. Changed settings are
//! seen with the next look or tick, whichever is sooner.
//!
//! A packet that is taken as it comes in is marked with its ticket. Where it ends - at a driver, at a drop, in this
//! router, in copies - the graph tells the sampler of that worker, which writes ticket and fate into a second
//! ring. The agent puts the two together, so that no sample waits in a worker.
//!
//! An interface has one sample pool for both directions. A ring that is full is a counted loss of that sample,
//! or of its fate; the agent reports the first and sends the sample without its output in the second case.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use weir_buf::Pkt;
use weir_graph::{Fate, Look, Marks, Point, Tap, World};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_ring::spsc::slots::{self, Reader, Writer};
use weir_ring::spsc::{self, Consumer, Producer};

use crate::random::{Gaps, Random};

/// The most bytes of a packet that a sample keeps.
pub const MOST_HEADER: usize = 256;
/// Bytes that tell where a packet goes: Ethernet, the longest IPv4 header (RFC 791 3.1), two ports.
const TELLING: usize = 78;
/// Samples that a worker's ring holds.
pub const RING: usize = 2048;

/// A sample so few packets away has its slot fetched: two vectors, a few thousand clocks.
const NEAR: u64 = 512;

/// Slots fetched ahead where samples are dense.
const AHEAD: usize = 2;

/// Fates that a worker's ring holds: those of all samples that can wait, and of as many that just did.
pub const FATES: usize = 2 * RING;

/// How an interface is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// One packet in so many; 0: none.
    pub rate: u32,
    /// The first bytes of a packet that are reported, 1 to 256.
    pub header: u16,
}

impl Sampling {
    /// With a header length that can be had.
    fn possible(self) -> Sampling {
        Sampling { header: self.header.clamp(1, MOST_HEADER as u16), ..self }
    }
}

/// How interfaces are sampled, shared by all workers and changed while they run.
#[derive(Debug)]
pub struct Settings {
    /// Changes with every change, so that workers need to look at nothing else.
    generation: AtomicU32,
    plan: RwLock<Plan>,
}

/// What the settings say.
#[derive(Clone, Debug)]
struct Plan {
    usual: Sampling,
    others: BTreeMap<u32, Sampling>,
}

impl Plan {
    fn of(&self, interface: u32) -> Sampling {
        self.others.get(&interface).copied().unwrap_or(self.usual).possible()
    }
}

impl Settings {
    /// One packet in `rate` (0: none), the first `header` bytes of it (1 to 256), on every interface.
    #[must_use]
    pub fn new(rate: u32, header: u16) -> Arc<Settings> {
        let plan = Plan { usual: Sampling { rate, header }, others: BTreeMap::new() };
        Arc::new(Settings { generation: AtomicU32::new(1), plan: RwLock::new(plan) })
    }

    /// Changes what is usual; workers see it with their samplers' next look or tick.
    pub fn set(&self, rate: u32, header: u16) {
        self.change(|plan| plan.usual = Sampling { rate, header });
    }

    /// Changes the interfaces that are sampled in another way than usual: all of them are in `others`.
    pub fn set_others(&self, others: BTreeMap<u32, Sampling>) {
        self.change(|plan| plan.others = others);
    }

    fn change(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.plan.write().unwrap_or_else(PoisonError::into_inner));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// How an interface is sampled.
    #[must_use]
    pub fn of(&self, interface: u32) -> Sampling {
        self.plan.read().unwrap_or_else(PoisonError::into_inner).of(interface)
    }

    /// The usual rate.
    #[must_use]
    pub fn rate(&self) -> u32 {
        self.plan.read().unwrap_or_else(PoisonError::into_inner).usual.rate
    }

    /// Without waiting: `None` while somebody changes it.
    fn glance(&self) -> Option<Plan> {
        self.plan.try_read().ok().map(|plan| plan.clone())
    }
}

/// One sampled packet: a cache line of facts, then the bytes.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Sample {
    /// The data source: the interface of arrival, or of departure of what goes out.
    pub interface: u32,
    /// The rate under which it was drawn.
    pub rate: u32,
    /// Bytes of the whole frame, without FCS.
    pub frame: u32,
    /// Packets that this worker could have sampled on this interface, up to and with this one.
    pub pool: u64,
    /// Samples of this worker that found the ring full, up to this one.
    pub lost: u64,
    /// Nanoseconds of the router's clock, of the turn.
    pub time: u64,
    /// How many of `header` are to be reported.
    pub kept: u16,
    /// How many of `header` are the packet's: enough of them to tell where it goes.
    pub copied: u16,
    /// Under which its fate is told; 0 of what goes out, whose fate is to go out.
    pub ticket: u32,
    /// The interface that the packet came in on.
    pub input: u32,
    /// So that `header` begins a cache line: of a short frame, two lines travel to the reader's core.
    _rest: [u8; 12],
    /// The packet's first bytes.
    pub header: [u8; MOST_HEADER],
}

const _: () = assert!(std::mem::offset_of!(Sample, header) == 64);

impl Default for Sample {
    fn default() -> Sample {
        Sample {
            interface: 0,
            rate: 0,
            frame: 0,
            pool: 0,
            lost: 0,
            time: 0,
            kept: 0,
            copied: 0,
            ticket: 0,
            input: 0,
            _rest: [0; 12],
            header: [0; MOST_HEADER],
        }
    }
}

impl Sample {
    /// The bytes that are reported.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.header.get(..self.kept as usize).unwrap_or(&[])
    }

    /// The packet's first bytes, as far as they are here.
    #[must_use]
    pub fn start(&self) -> &[u8] {
        self.header.get(..self.copied as usize).unwrap_or(&[])
    }
}

/// What became of a sampled packet.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The worker that sampled it, and the ticket.
    pub mark: Mark,
    /// What became of it.
    pub fate: Fate,
}

/// A mark: the worker and the ticket of a sample in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u32);

impl Mark {
    /// Bits of the ticket.
    const TICKET: u32 = 24;

    /// Of a worker's sample. Tickets wrap; there are at most 64 workers.
    fn new(worker: usize, ticket: u32) -> Mark {
        Mark((worker as u32) << Mark::TICKET | ticket)
    }

    /// The worker.
    #[must_use]
    pub fn worker(self) -> usize {
        (self.0 >> Mark::TICKET) as usize
    }

    /// The ticket.
    #[must_use]
    pub fn ticket(self) -> u32 {
        self.0 & ((1 << Mark::TICKET) - 1)
    }
}

/// The ticket after another: 1 to 2^24 - 1.
fn next_ticket(ticket: u32) -> u32 {
    if ticket + 1 < 1 << Mark::TICKET { ticket + 1 } else { 1 }
}

/// How many tickets one lies behind another.
pub(crate) fn ticket_distance(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from) & ((1 << Mark::TICKET) - 1)
}

/// What a worker's sampler counts, readable at any time.
#[derive(Debug, Default)]
pub struct SamplerCounters {
    /// Samples drawn, those that found the ring full included.
    pub taken: Counter,
    /// Samples that found the ring full.
    pub lost: Counter,
    /// Fates that found their ring full.
    pub fates_lost: Counter,
}

/// The cold end of a worker's sampler.
#[derive(Debug)]
pub struct SampleSource {
    /// Where samples come out.
    pub ring: Reader<Sample>,
    /// Where fates come out, of this worker's samples and of others' whose packets ended in this worker.
    pub fates: Consumer<Told>,
    /// What the sampler counts.
    pub counters: Arc<Padded<SamplerCounters>>,
}

/// The tap of one worker.
#[derive(Debug)]
pub struct Sampler {
    settings: Arc<Settings>,
    /// The settings as last seen.
    generation: u32,
    plan: Plan,
    /// By interface.
    choosers: Vec<Option<Box<Chooser>>>,
    random: Random,
    ticket: u32,
    ring: Writer<Sample>,
    fates: Producer<Told>,
    counters: Arc<Padded<SamplerCounters>>,
}

/// What chooses packets of one interface.
#[derive(Debug)]
struct Chooser {
    sampling: Sampling,
    /// Packets to pass over before the next sample.
    pass: u64,
    /// Packets that may go by before it looks again.
    allowed: u64,
    gaps: Gaps,
}

impl Chooser {
    /// Begins anew under changed settings.
    #[cold]
    fn change(&mut self, sampling: Sampling) {
        if sampling.rate != self.sampling.rate {
            self.gaps.set_rate(sampling.rate);
            // What went by unseen until now was passed over under the old rate.
            (self.pass, self.allowed) = (self.gaps.pass(), 0);
        }
        self.sampling = sampling;
    }

    /// Takes note of what went by unseen.
    #[inline]
    fn catch_up(&mut self, unused: u64) {
        self.pass = self.pass.saturating_sub(self.allowed - unused.min(self.allowed));
        self.allowed = unused;
    }
}

impl Sampler {
    /// A sampler and the end from which its samples are read.
    #[must_use]
    pub fn new(settings: Arc<Settings>, seed: u64, ring: usize) -> (Sampler, SampleSource) {
        let (writer, reader) = slots::ring(ring);
        let (told, fates) = spsc::ring(2 * ring);
        let counters = Arc::new(Padded::<SamplerCounters>::default());
        let plan = settings.glance().unwrap_or(Plan { usual: Sampling { rate: 0, header: 1 }, others: BTreeMap::new() });
        let sampler = Sampler {
            settings,
            generation: 0,
            plan,
            choosers: Vec::new(),
            random: Random::new(seed),
            ticket: 0,
            ring: writer,
            fates: told,
            counters: counters.clone(),
        };
        (sampler, SampleSource { ring: reader, fates, counters })
    }

    /// Whether settings changed since the last look; they are taken over then.
    #[inline]
    fn settings_changed(&mut self) -> bool {
        self.settings.generation.load(Ordering::Acquire) != self.generation && self.take_settings()
    }

    #[cold]
    fn take_settings(&mut self) -> bool {
        let generation = self.settings.generation.load(Ordering::Acquire);
        // Whoever changes them now is done by the next look.
        let Some(plan) = self.settings.glance() else { return false };
        (self.generation, self.plan) = (generation, plan);
        for (interface, chooser) in self.choosers.iter_mut().enumerate() {
            if let Some(chooser) = chooser {
                chooser.change(self.plan.of(interface as u32));
            }
        }
        true
    }

    /// The chooser of an interface, as of now.
    #[inline]
    fn chooser(&mut self, interface: u32) -> Option<&mut Chooser> {
        let place = interface as usize;
        if self.choosers.get(place).is_none_or(Option::is_none) {
            self.begin(interface);
        }
        self.choosers.get_mut(place)?.as_deref_mut()
    }

    #[cold]
    fn begin(&mut self, interface: u32) {
        let place = interface as usize;
        if self.choosers.len() <= place {
            self.choosers.resize_with(place + 1, || None);
        }
        let sampling = self.plan.of(interface);
        let mut gaps = Gaps::new(Random::new(self.random.bits()), sampling.rate);
        let pass = gaps.pass();
        self.choosers[place] = Some(Box::new(Chooser { sampling, pass, allowed: 0, gaps }));
    }

    /// Asks the cache for the lines of a slot that most samples fill: the facts and a short frame.
    #[inline(always)]
    fn fetch_slot(&self, ahead: usize) {
        let slot = self.ring.address(ahead).cast::<u8>();
        weir_cpu::prefetch_write(slot);
        weir_cpu::prefetch_write(slot.wrapping_add(64));
    }

    /// Takes every sample that lies in this vector. Each sample tells the pool as of its own packet:
    /// collectors that scale by the growth of the pool from one sample to the next (pmacct does) would
    /// else find no growth between two of one vector.
    fn take<W: World>(&mut self, look: &Look<'_, W>, packets: &[Pkt], marks: &mut Marks) {
        let Some(mut chooser) = self.choosers.get_mut(look.interface as usize).and_then(Option::take) else { return };
        let before = look.seen.saturating_sub(packets.len() as u64);
        let mut place = chooser.pass;
        while let Some(packet) = usize::try_from(place).ok().and_then(|place| packets.get(place)) {
            self.fetch_slot(AHEAD);
            if let Some(ticket) = self.record(look, packet, before + place + 1, chooser.sampling) {
                marks.mark(place as usize, Mark::new(look.worker, ticket).0);
            }
            place += 1 + chooser.gaps.pass();
        }
        chooser.pass = place - packets.len() as u64;
        self.choosers[look.interface as usize] = Some(chooser);
    }

    /// Writes a sample; returns the ticket under which its fate is to be told.
    fn record<W: World>(&mut self, look: &Look<'_, W>, packet: &Pkt, pool: u64, sampling: Sampling) -> Option<u32> {
        let keep = usize::from(sampling.header);
        let lost = self.counters.lost.get();
        self.counters.taken.add(1);
        let ticket = if look.point == Point::Rx { next_ticket(self.ticket) } else { 0 };
        let written = self.ring.push_with(|sample| {
            sample.interface = look.interface;
            sample.input = packet.interface();
            sample.rate = sampling.rate;
            sample.frame = packet.total_len() as u32;
            sample.pool = pool;
            sample.lost = lost;
            sample.time = look.now;
            sample.ticket = ticket;
            let copied = copy(packet, sample.header.get_mut(..keep.max(TELLING)).unwrap_or(&mut []));
            (sample.copied, sample.kept) = (copied as u16, copied.min(keep) as u16);
        });
        if !written {
            self.counters.lost.add(1);
            return None;
        }
        if ticket == 0 {
            return None;
        }
        self.ticket = ticket;
        Some(ticket)
    }
}

/// Copies the packet's first bytes; returns how many. By cache lines and without a call, as long as it goes.
#[inline(always)]
fn copy(packet: &Pkt, room: &mut [u8]) -> usize {
    if packet.is_chained() {
        return packet.copy_out(0, room);
    }
    let kept = packet.len().min(room.len());
    let (Some(from), Some(to)) = (packet.data().get(..kept), room.get_mut(..kept)) else { return 0 };
    let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<64>(), to.as_chunks_mut::<64>());
    from.iter().zip(to).for_each(|(from, to)| *to = *from);
    if !from_rest.is_empty() {
        to_rest.copy_from_slice(from_rest);
    }
    kept
}

impl<W: World> Tap<W> for Sampler {
    fn name(&self) -> &'static str {
        "sflow"
    }

    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], marks: &mut Marks) {
        self.settings_changed();
        let Some(chooser) = self.chooser(look.interface) else { return };
        chooser.catch_up(look.unused);
        if chooser.sampling.rate == 0 {
            return;
        }
        let count = packets.len() as u64;
        if chooser.pass < count {
            return self.take(look, packets, marks);
        }
        chooser.pass -= count;
        self.fetch_slot(0);
    }

    fn marks(&self) -> bool {
        true
    }

    /// All up to the next sample but the last few, in which its slot is fetched.
    fn allow(&mut self, interface: u32, unused: u64) -> u64 {
        let Some(chooser) = self.chooser(interface) else { return 0 };
        chooser.catch_up(unused);
        chooser.allowed = if chooser.sampling.rate == 0 { u64::MAX } else { chooser.pass.saturating_sub(NEAR) };
        chooser.allowed
    }

    fn fate(&mut self, slot: u32, fate: &Fate) {
        if self.fates.push(Told { mark: Mark(slot), fate: *fate }).is_err() {
            self.counters.fates_lost.add(1);
        }
    }

    fn tick(&mut self, _now: u64) -> bool {
        self.settings_changed()
    }
}
