//! The sFlow sampler: a tap on what comes in.
//!
//! One counter per worker says how many packets are still to be passed over. The graph lets as many go
//! by without showing them, which costs it a comparison and two additions a vector; nothing is looked
//! at and no clock is read. When the counter ends inside a vector, that packet's first
//! bytes are copied into the worker's ring and the next gap is drawn, counted on from the packet
//! just taken, so that every packet of the vector has the same chance, also when several of them
//! are taken. A changed rate is seen with the next look or tick, whichever is sooner.
//!
//! The counter runs over the union of the sampled interfaces: one in N of the union is one in N of
//! each part. Each interface has its own sample pool. A ring that is full is a counted loss of that
//! sample; the agent reports it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_buf::Pkt;
use weir_graph::{Look, Marks, Tap, World};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_ring::spsc::slots::{self, Reader, Writer};

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

/// What is sampled, shared by all workers and changed while they run.
#[derive(Debug)]
pub struct Settings {
    rate: AtomicU32,
    header: AtomicU32,
}

impl Settings {
    /// One packet in `rate` (0: none), the first `header` bytes of it (1 to 256).
    #[must_use]
    pub fn new(rate: u32, header: u16) -> Arc<Settings> {
        let settings = Arc::new(Settings { rate: AtomicU32::new(0), header: AtomicU32::new(0) });
        settings.set(rate, header);
        settings
    }

    /// Changes both; workers see it with their samplers' next tick.
    pub fn set(&self, rate: u32, header: u16) {
        self.header.store(u32::from(header).clamp(1, MOST_HEADER as u32), Ordering::Relaxed);
        self.rate.store(rate, Ordering::Relaxed);
    }

    /// The rate.
    #[must_use]
    pub fn rate(&self) -> u32 {
        self.rate.load(Ordering::Relaxed)
    }

    /// The bytes kept.
    #[must_use]
    pub fn header(&self) -> u32 {
        self.header.load(Ordering::Relaxed)
    }
}

/// One sampled packet: a cache line of facts, then the bytes.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Sample {
    /// Interface of arrival.
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
    /// So that `header` begins a cache line: of a short frame, two lines travel to the reader's core.
    _rest: [u8; 20],
    /// The packet's first bytes.
    pub header: [u8; MOST_HEADER],
}

const _: () = assert!(std::mem::offset_of!(Sample, header) == 64);

impl Default for Sample {
    fn default() -> Sample {
        Sample { interface: 0, rate: 0, frame: 0, pool: 0, lost: 0, time: 0, kept: 0, copied: 0, _rest: [0; 20], header: [0; MOST_HEADER] }
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

/// What a worker's sampler counts, readable at any time.
#[derive(Debug, Default)]
pub struct SamplerCounters {
    /// Samples drawn, those that found the ring full included.
    pub taken: Counter,
    /// Samples that found the ring full.
    pub lost: Counter,
}

/// The cold end of a worker's sampler.
#[derive(Debug)]
pub struct SampleSource {
    /// Where samples come out.
    pub ring: Reader<Sample>,
    /// What the sampler counts.
    pub counters: Arc<Padded<SamplerCounters>>,
}

/// The tap of one worker.
#[derive(Debug)]
pub struct Sampler {
    settings: Arc<Settings>,
    /// The rate that `gaps` and `pass` were drawn for.
    rate: u32,
    /// Packets to pass over before the next sample.
    pass: u64,
    gaps: Gaps,
    /// Packets that may go by before it looks again.
    allowed: u64,
    ring: Writer<Sample>,
    counters: Arc<Padded<SamplerCounters>>,
}

impl Sampler {
    /// A sampler and the end from which its samples are read.
    #[must_use]
    pub fn new(settings: Arc<Settings>, seed: u64, ring: usize) -> (Sampler, SampleSource) {
        let (writer, reader) = slots::ring(ring);
        let counters = Arc::new(Padded::<SamplerCounters>::default());
        let gaps = Gaps::new(Random::new(seed), 1);
        let sampler = Sampler { settings, rate: 0, pass: 0, gaps, allowed: 0, ring: writer, counters: counters.clone() };
        (sampler, SampleSource { ring: reader, counters })
    }

    /// Begins anew under a changed rate.
    #[cold]
    fn change_rate(&mut self, rate: u32) {
        self.rate = rate;
        self.gaps.set_rate(rate);
        self.pass = self.gaps.pass();
    }

    /// Takes note of what went by unseen, and of a changed rate.
    #[inline]
    fn catch_up(&mut self, unused: u64) {
        self.pass = self.pass.saturating_sub(self.allowed - unused.min(self.allowed));
        self.allowed = unused;
        let rate = self.settings.rate();
        if rate != self.rate {
            self.change_rate(rate);
        }
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
    fn take<W: World>(&mut self, look: &Look<'_, W>, packets: &[Pkt]) {
        let before = look.seen.saturating_sub(packets.len() as u64);
        let mut place = self.pass;
        while let Some(packet) = usize::try_from(place).ok().and_then(|place| packets.get(place)) {
            self.fetch_slot(AHEAD);
            self.record(look, packet, before + place + 1);
            place += 1 + self.gaps.pass();
        }
        self.pass = place - packets.len() as u64;
    }

    fn record<W: World>(&mut self, look: &Look<'_, W>, packet: &Pkt, pool: u64) {
        let (rate, keep) = (self.rate, self.settings.header() as usize);
        let lost = self.counters.lost.get();
        self.counters.taken.add(1);
        let written = self.ring.push_with(|sample| {
            sample.interface = look.interface;
            sample.rate = rate;
            sample.frame = packet.total_len() as u32;
            sample.pool = pool;
            sample.lost = lost;
            sample.time = look.now;
            let copied = copy(packet, sample.header.get_mut(..keep.max(TELLING)).unwrap_or(&mut []));
            (sample.copied, sample.kept) = (copied as u16, copied.min(keep) as u16);
        });
        if !written {
            self.counters.lost.add(1);
        }
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

    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], _marks: &mut Marks) {
        self.catch_up(look.unused);
        if self.rate == 0 {
            return;
        }
        let count = packets.len() as u64;
        if self.pass < count {
            return self.take(look, packets);
        }
        self.pass -= count;
        self.fetch_slot(0);
    }

    /// All up to the next sample but the last few, in which its slot is fetched.
    fn allow(&mut self, unused: u64) -> u64 {
        self.catch_up(unused);
        self.allowed = if self.rate == 0 { u64::MAX } else { self.pass.saturating_sub(NEAR) };
        self.allowed
    }
}
