//! The sFlow sampler: a tap on what comes in and what goes out.
//!
//! Each interface has a counter in each worker that says how many packets are still to be passed over. The graph
//! lets as many go by without showing them, which costs it a comparison and a subtraction a vector; nothing is
//! looked at and no clock is read. When the counter ends inside a vector, that packet's first bytes are copied
//! into the worker's ring and the next gap is drawn, counted on from the packet just taken, so that every
//! packet of the vector has the same chance, also when several of them are taken. Changed settings are
//! seen with the next tick, or with an interface's first packets.
//!
//! A packet that is taken as it comes in is marked with its ticket. Where it ends - at a driver, at a drop, in this
//! router, in copies - the graph tells the sampler of that worker, which writes it into the sample (see
//! `open.rs`). Of a sample that is not here any more, since its packet waited or ended in another worker,
//! ticket and outcome go into a second ring, and the agent puts the two together.
//!
//! An interface has one sample pool for both directions. A ring that is full is a counted loss of that sample,
//! or of its outcome; the agent reports the first and sends the sample without its output in the second case.
//!
//! A packet that is taken as it goes out is one that a driver is about to be asked to take. The sample says that it went, unless the graph
//! tells afterwards that the driver refused it.

mod feed;
mod losses;
mod open;
mod sample;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_buf::{Flags, Pkt};
use weir_graph::{Look, Marker, Marks, PacketOutcome, Point, Tap, World};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_ring::spsc::slots::{self, Reader};
use weir_ring::spsc::{self, Consumer, Producer};

pub use self::feed::{Fed, Feed};
pub use self::losses::PerInterface;
use self::open::OpenSamples;
use self::sample::next_ticket;
pub(crate) use self::sample::ticket_distance;
pub use self::sample::{Ending, MOST_HEADER, MOST_LEAVING, Mark, Sample, TicketOutcome};
use self::settings::Plan;
pub use self::settings::{Sampling, Settings};
use crate::random::{Gaps, Random};

/// Bytes that tell where a packet goes: Ethernet, the longest IPv4 header (RFC 791 3.1), two ports.
const TELLING: usize = 78;
/// Samples that a worker's ring holds.
pub const RING: usize = 2048;

/// A cache line.
const LINE: usize = 64;

/// Slots fetched ahead where a vector has several samples.
const AHEAD: usize = 2;

/// Fates that a worker's ring holds: those of all samples that can wait, and of as many that just did.
pub const FATES: usize = 2 * RING;

/// What a worker's sampler counts, readable at any time.
#[derive(Debug, Default)]
pub struct SamplerCounters {
    /// Samples drawn, those that found the ring full included.
    pub taken: Counter,
    /// Samples that found the ring full.
    pub lost: PerInterface,
    /// Packets that could have been sampled (the sample pool), as of the last half second.
    pub pools: PerInterface,
    /// Fates that found their ring full.
    pub fates_lost: Counter,
}

/// The cold end of a worker's sampler.
#[derive(Debug)]
pub struct SampleSource {
    /// Where samples come out.
    pub ring: Reader<Sample>,
    /// Where outcomes come out, of this worker's samples and of others' whose packets ended in this worker.
    pub outcomes: Consumer<TicketOutcome>,
    /// What the sampler counts.
    pub counters: Arc<Padded<SamplerCounters>>,
}

/// The tap of one worker.
#[derive(Debug)]
pub struct Sampler {
    recorder: Recorder,
    /// Of packets that a driver is about to be asked to take, and whose samples are not here.
    leaving: Vec<(usize, TicketOutcome)>,
    /// The worker's number, as reported with the last look.
    worker: usize,
    /// By interface.
    choosers: Vec<Option<Chooser>>,
    /// Packets that were taken as they went out, of the vector that a driver is being asked to take, and where their samples are.
    outgoing: Vec<(usize, usize)>,
    settings: Arc<Settings>,
    /// The settings as last seen.
    generation: u32,
    plan: Plan,
    /// Whether they changed and the gate has not asked about all interfaces since.
    changed: bool,
    random: Random,
    outcomes: Producer<TicketOutcome>,
    /// When pools were published last.
    pools_at: u64,
}

/// What writes samples.
#[derive(Debug)]
#[repr(C)]
struct Recorder {
    samples: OpenSamples,
    counters: Arc<Padded<SamplerCounters>>,
    ticket: u32,
}

/// What chooses packets of one interface.
#[derive(Debug)]
#[repr(C, align(64))]
struct Chooser {
    rate: u32,
    header: u16,
    /// Whether the rate is another one than when the gate was last set.
    changed: bool,
    /// How many packets will have come when the gate has skipped its number of packets.
    due: u64,
    gaps: Gaps,
}

/// Nanoseconds after which pools are published again.
const POOLS_EVERY: u64 = 500_000_000;

#[inline(always)]
fn chooser_of(choosers: &mut [Option<Chooser>], interface: u32) -> Option<&mut Chooser> {
    choosers.get_mut(interface as usize)?.as_mut()
}

impl Chooser {
    /// Begins anew under changed settings.
    #[cold]
    fn change(&mut self, sampling: Sampling) {
        if sampling.rate != self.rate {
            self.gaps.set_rate(sampling.rate);
            self.changed = true;
        }
        (self.rate, self.header) = (sampling.rate, sampling.header);
    }

    /// Packets to pass over before the next sample, now that the rate is another one: what went by unseen until now was passed over under
    /// the old one.
    #[cold]
    fn begin(&mut self) -> u64 {
        self.changed = false;
        if self.rate == 0 {
            u64::MAX
        } else {
            self.gaps.pass()
        }
    }

    /// Sets how many packets the gate skips, and how many were received before.
    #[inline(always)]
    fn let_by(&mut self, came: u64, packets: u64) -> u64 {
        self.due = came.wrapping_add(packets);
        packets
    }

    /// How many packets came, when the gate may still let by so many.
    #[inline(always)]
    fn came(&self, left: u64) -> u64 {
        self.due.wrapping_sub(left)
    }
}

impl Sampler {
    /// A sampler and the end from which its samples are read.
    #[must_use]
    pub fn new(settings: Arc<Settings>, seed: u64, ring: usize) -> (Sampler, SampleSource) {
        let (writer, reader) = slots::ring(ring);
        let (outcome, outcomes) = spsc::ring(2 * ring);
        let counters = Arc::new(Padded::<SamplerCounters>::default());
        let plan = settings.glance().unwrap_or(Plan {
            usual: Sampling { rate: 0, header: 1 },
            others: BTreeMap::new(),
        });
        let sampler = Sampler {
            settings,
            generation: 0,
            plan,
            changed: false,
            choosers: Vec::new(),
            outgoing: Vec::new(),
            random: Random::new(seed),
            worker: 0,
            recorder: Recorder {
                ticket: 0,
                samples: OpenSamples::new(writer),
                counters: counters.clone(),
            },
            leaving: Vec::new(),
            outcomes: outcome,
            pools_at: 0,
        };
        (
            sampler,
            SampleSource {
                ring: reader,
                outcomes,
                counters,
            },
        )
    }

    /// Takes the packets of a vector whose turn it is. Returns how many may go by before the next one.
    #[inline(never)]
    fn take<W: World>(&mut self, look: &Look<'_, W>, packets: &[Pkt], marks: &mut Marks) -> u64 {
        if chooser_of(&mut self.choosers, look.interface).is_none() {
            self.begin(look.interface);
        }
        let Sampler {
            choosers,
            recorder,
            outgoing,
            ..
        } = self;
        let Some(chooser) = chooser_of(choosers, look.interface) else {
            return 0;
        };
        self.worker = look.worker;
        recorder.samples.show_ended();
        let before = chooser.came(look.left);
        let mut place = if chooser.changed {
            chooser.begin()
        } else {
            look.left
        };
        // Each sample tells the pool as of its own packet: collectors that scale by the growth of the pool from one
        // sample to the next (pmacct does) would else find no growth between two of one vector.
        while let Some(packet) = usize::try_from(place)
            .ok()
            .and_then(|place| packets.get(place))
        {
            let sampling = Sampling {
                rate: chooser.rate,
                header: chooser.header,
            };
            match recorder.record(look, packet, place as usize, before + place + 1, sampling) {
                Some(_) if look.point == Point::Rx => marks.mark(place as usize),
                // No driver is asked to take what leaves by an inner interface.
                Some(sample) if !look.inner => {
                    outgoing.push((packet.identity(), sample));
                    marks.await_driver();
                }
                _ => {}
            }
            place += 1 + chooser.gaps.pass();
            recorder.samples.fetch_slot(AHEAD);
        }
        let count = packets.len() as u64;
        chooser.let_by(before + count, place.saturating_sub(count))
    }

    /// What becomes of a packet that is about to leave.
    #[inline(always)]
    fn outcome_of(interface: u32, packet: &Pkt) -> PacketOutcome {
        // What became an answer of this router's did not go anywhere.
        if packet.flags().any(Flags::ORIGINATED) {
            PacketOutcome::Kept
        } else {
            PacketOutcome::Sent(interface)
        }
    }

    /// Packets are about to leave that do not all stand where they stood as they came in, so many of them marked. Of so many
    /// the samples have ended already.
    #[inline(never)]
    fn search_leaving(&mut self, interface: u32, packets: &[Pkt], marked: usize, ended: usize) {
        let next = self.recorder.samples.next();
        for packet in packets
            .iter()
            .filter(|packet| packet.flags().any(Flags::MARKED))
            .take(marked)
        {
            if ended > 0 && self.recorder.samples.just_ended(packet, next, ended) {
                continue;
            }
            let outcome = Sampler::outcome_of(interface, packet);
            if !self.recorder.samples.end(packet, outcome) {
                self.stranger_leaving(packet, outcome);
            }
        }
    }

    /// A packet is about to leave whose sample is not here.
    #[cold]
    #[inline(never)]
    fn stranger_leaving(&mut self, packet: &Pkt, outcome: PacketOutcome) {
        self.leaving.push((
            packet.identity(),
            TicketOutcome::new(Mark(packet.meta().mark), outcome, packet),
        ));
    }

    /// They left.
    #[cold]
    #[inline(never)]
    fn tell_strangers(&mut self) {
        while let Some((_, outcome)) = self.leaving.pop() {
            self.tell(outcome);
        }
    }

    /// These have not left, and will end so.
    #[cold]
    #[inline(never)]
    fn take_back(&mut self, refused: &[Pkt], outcome: PacketOutcome) {
        for &(identity, sample) in &self.outgoing {
            if refused.iter().any(|packet| packet.identity() == identity) {
                self.recorder.samples.correct(sample, outcome);
            }
        }
        for packet in refused
            .iter()
            .filter(|packet| packet.flags().any(Flags::MARKED))
        {
            self.recorder.samples.reopen(packet);
            self.leaving
                .retain(|&(identity, _)| identity != packet.identity());
        }
    }

    #[cold]
    fn tell(&mut self, outcome: TicketOutcome) {
        if self.outcomes.push(outcome).is_err() {
            self.recorder.counters.fates_lost.add(1);
        }
    }

    /// Takes changed settings over.
    fn take_settings(&mut self) {
        let generation = self.settings.generation.load(Ordering::Acquire);
        if generation == self.generation {
            return;
        }
        // Whoever changes them now is done by the next tick.
        let Some(plan) = self.settings.glance() else {
            return;
        };
        (self.generation, self.plan, self.changed) = (generation, plan, true);
        for (interface, chooser) in (0..).zip(&mut self.choosers) {
            if let Some(chooser) = chooser {
                chooser.change(self.plan.of(interface));
            }
        }
    }

    /// An interface is seen for the first time.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, interface: u32) {
        self.recorder.counters.lost.begin(interface);
        self.recorder.counters.pools.begin(interface);
        self.take_settings();
        let Sampling { rate, header } = self.plan.of(interface);
        let gaps = Gaps::new(Random::new(self.random.bits()), rate);
        let place = interface as usize;
        if self.choosers.len() <= place {
            self.choosers.resize_with(place + 1, || None);
        }
        self.choosers[place] = Some(Chooser {
            rate,
            header,
            changed: true,
            due: 0,
            gaps,
        });
    }
}

impl Recorder {
    /// Writes a sample; returns where it is. The end of a packet that came in is to follow; what goes out has no ticket.
    #[inline(always)]
    fn record<W: World>(
        &mut self,
        look: &Look<'_, W>,
        packet: &Pkt,
        place: usize,
        pool: u64,
        sampling: Sampling,
    ) -> Option<usize> {
        let keep = usize::from(sampling.header);
        self.counters.taken.add(1);
        let ticket = if look.point == Point::Rx {
            next_ticket(self.ticket)
        } else {
            0
        };
        let written = self.samples.add(packet, ticket != 0, |sample| {
            sample.interface = look.interface;
            // What an answer of this router's was before is not where it came from.
            sample.input = if packet.flags().any(Flags::ORIGINATED) {
                0
            } else {
                look.world.received_on(packet)
            };
            sample.rate = sampling.rate;
            sample.frame = packet.total_len() as u32;
            sample.pool = pool;
            sample.time = look.now;
            sample.ticket = ticket;
            sample.place = place as u16;
            let copied = copy(packet, &mut sample.header, keep.max(TELLING));
            (sample.copied, sample.kept) = (copied as u16, copied.min(keep) as u16);
        });
        if written.is_none() {
            self.counters.lost.add(look.interface);
        } else if ticket != 0 {
            self.ticket = ticket;
        }
        written
    }
}

/// Copies the packet's first bytes; returns how many are its own. The first cache line without a call, as far as it goes.
#[inline(always)]
fn copy(packet: &Pkt, room: &mut [u8; MOST_HEADER], wanted: usize) -> usize {
    let count = packet.len().min(wanted);
    let line = packet.data_and_behind(LINE).as_array::<LINE>();
    match (line, room.first_chunk_mut::<LINE>()) {
        (Some(line), Some(room)) if !packet.is_chained() => *room = *line,
        _ => return copy_slowly(packet, room, wanted),
    }
    if count > LINE {
        copy_more(packet, room, count);
    }
    count
}

/// All lines but the first.
#[inline(never)]
fn copy_more(packet: &Pkt, room: &mut [u8; MOST_HEADER], count: usize) {
    let whole = count.next_multiple_of(LINE);
    let (from, to) = (
        packet.data_and_behind(whole),
        room.get_mut(..whole).unwrap_or(&mut []),
    );
    if from.len() != to.len() {
        copy_slowly(packet, room, count);
        return;
    }
    let ((from, _), (to, _)) = (from.as_chunks::<LINE>(), to.as_chunks_mut::<LINE>());
    from.iter()
        .zip(to)
        .skip(1)
        .for_each(|(from, to)| *to = *from);
}

/// Of several chunks, or so near the end of its own that no whole line is there.
#[cold]
#[inline(never)]
fn copy_slowly(packet: &Pkt, room: &mut [u8; MOST_HEADER], wanted: usize) -> usize {
    packet.copy_out(0, room.get_mut(..wanted).unwrap_or(&mut []))
}

impl<W: World> Tap<W> for Sampler {
    fn name(&self) -> &'static str {
        "sflow"
    }

    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], marks: &mut Marks) -> u64 {
        self.take(look, packets, marks)
    }

    /// All up to the next sample. The packets that came are known here, so that the pool is published.
    fn allow(&mut self, interface: u32, left: u64) -> u64 {
        let Some(chooser) = chooser_of(&mut self.choosers, interface) else {
            return left;
        };
        let came = chooser.came(left);
        self.recorder.counters.pools.set(interface, came);
        if !chooser.changed {
            return left;
        }
        let pass = chooser.begin();
        chooser.let_by(came, pass)
    }

    fn tick(&mut self, now: u64) -> bool {
        self.recorder.samples.tick();
        self.take_settings();
        let is_due = now.saturating_sub(self.pools_at) >= POOLS_EVERY;
        if is_due {
            self.pools_at = now;
        }
        std::mem::take(&mut self.changed) || is_due
    }
    fn marker(&mut self) -> Option<&mut dyn Marker> {
        Some(self)
    }
}

impl Marker for Sampler {
    fn outcome(&mut self, packet: &Pkt, outcome: PacketOutcome) {
        if self.recorder.samples.end(packet, outcome) {
            return self.recorder.samples.show_ended();
        }
        self.tell(TicketOutcome::new(
            Mark(packet.meta().mark),
            outcome,
            packet,
        ));
    }

    fn part(&mut self, packet: &Pkt) -> u32 {
        let ticket = self.recorder.samples.part(packet);
        self.recorder.samples.show_ended();
        Mark::new(self.worker, ticket).0
    }

    fn leaving(&mut self, interface: u32, packets: &[Pkt], marked: usize) -> bool {
        let ended = self
            .recorder
            .samples
            .end_in_place(packets, marked, |packet| {
                Sampler::outcome_of(interface, packet)
            });
        if ended < marked {
            self.search_leaving(interface, packets, marked, ended);
        }
        !self.leaving.is_empty()
    }

    fn left(&mut self, refused: &[Pkt], outcome: PacketOutcome) {
        if !refused.is_empty() {
            self.take_back(refused, outcome);
        }
        self.outgoing.clear();
        self.recorder.samples.show_ended();
        if !self.leaving.is_empty() {
            self.tell_strangers();
        }
    }
}
