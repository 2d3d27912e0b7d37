//! The sFlow sampler: a tap on what comes in.
//!
//! One counter per worker says how many packets are still to be passed over. A vector that is
//! shorter than that costs one comparison and two additions, however many packets it holds; nothing
//! is looked at and no clock is read. When the counter ends inside a vector, that packet's first
//! bytes are copied into the worker's ring and the next gap is drawn, counted on from the packet
//! just taken, so that every packet of the vector has the same chance, also when several of them
//! are taken.
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

/// Samples that a worker's ring holds.
pub const RING: usize = 2048;

/// Interfaces with lower numbers have their pools from the start; they are numbered from 1 on.
const USUAL_INTERFACES: usize = 1024;

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

    /// Changes both; workers see it with their next vector.
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

/// One sampled packet.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Interface of arrival.
    pub interface: u32,
    /// Interface that it is going to leave by, 0 when unknown.
    pub output: u32,
    /// The rate under which it was drawn.
    pub rate: u32,
    /// Bytes of the whole frame, without FCS.
    pub frame: u32,
    /// How many of `header` are the packet's.
    pub kept: u16,
    /// Packets that this worker could have sampled on this interface, up to and with this one.
    pub pool: u64,
    /// Samples of this worker that found the ring full, up to this one.
    pub lost: u64,
    /// Nanoseconds of the router's clock, of the turn.
    pub time: u64,
    /// The packet's first bytes.
    pub header: [u8; MOST_HEADER],
}

impl Default for Sample {
    fn default() -> Sample {
        Sample { interface: 0, output: 0, rate: 0, frame: 0, kept: 0, pool: 0, lost: 0, time: 0, header: [0; MOST_HEADER] }
    }
}

impl Sample {
    /// The bytes that were kept.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.header.get(..self.kept as usize).unwrap_or(&[])
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
    /// By interface: packets that could have been sampled.
    pools: Vec<u64>,
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
        let sampler =
            Sampler { settings, rate: 0, pass: 0, gaps, pools: vec![0; USUAL_INTERFACES], ring: writer, counters: counters.clone() };
        (sampler, SampleSource { ring: reader, counters })
    }

    /// Begins anew under a changed rate.
    #[cold]
    fn change_rate(&mut self, rate: u32) {
        self.rate = rate;
        self.gaps.set_rate(rate);
        self.pass = self.gaps.pass();
    }

    /// Room for the pools of unusually many interfaces. Doubled, so that it is asked for rarely.
    #[cold]
    fn grow(&mut self, interface: u32) {
        self.pools.resize((interface as usize + 1).next_power_of_two(), 0);
    }

    /// Takes every sample that lies in this vector, which ended with the pool at `pool`. Each sample
    /// tells the pool as of its own packet: collectors that scale by the growth of the pool from one
    /// sample to the next (pmacct does) would else find no growth between two of one vector.
    #[cold]
    fn take<W: World>(&mut self, look: &Look<'_, W>, packets: &[Pkt], pool: u64) {
        let mut place = self.pass;
        let before = pool - packets.len() as u64;
        while let Some(packet) = usize::try_from(place).ok().and_then(|place| packets.get(place)) {
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
            sample.output = look.world.forecast(packet);
            sample.rate = rate;
            sample.frame = packet.total_len() as u32;
            sample.pool = pool;
            sample.lost = lost;
            sample.time = look.now;
            let room = sample.header.get_mut(..keep).unwrap_or(&mut []);
            sample.kept = packet.copy_out(0, room) as u16;
        });
        if !written {
            self.counters.lost.add(1);
        }
    }
}

impl<W: World> Tap<W> for Sampler {
    fn name(&self) -> &'static str {
        "sflow"
    }

    #[inline]
    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], _marks: &mut Marks) {
        let rate = self.settings.rate();
        if rate != self.rate {
            self.change_rate(rate);
        }
        if rate == 0 {
            return;
        }
        let count = packets.len() as u64;
        if self.pools.len() <= look.interface as usize {
            self.grow(look.interface);
        }
        let pool = &mut self.pools[look.interface as usize];
        *pool += count;
        let pool = *pool;
        if self.pass >= count {
            self.pass -= count;
            return;
        }
        self.take(look, packets, pool);
    }
}
