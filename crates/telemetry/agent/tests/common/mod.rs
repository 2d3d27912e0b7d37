//! What the sampler's tests share: a world without tables, packets from a pool, one sampler with its
//! reader, and the statistics that decide whether a choice was fair.

#![allow(dead_code, reason = "every test binary uses a part of it")]

pub(crate) mod collector;

use std::sync::Arc;

use weir_buf::{Hugepages, Pkt, Pool, PoolConfig};
use weir_graph::{DropCounters, Gate, Look, Marker, Marks, PacketOutcome, Point, Tap, World};
use weir_telemetry::sampler::{Sample, SampleSource, Sampler, Settings};

/// The interface that packets come in by unless a test says otherwise.
pub(crate) const INTERFACE: u32 = 7;
/// Where every packet leaves.
pub(crate) const OUTPUT: u32 = 9;

/// A world in which nothing is dropped.
pub(crate) struct Plain;

impl World for Plain {
    type Event = ();
    fn drops(&self, _interface: u32, _worker: usize) -> Option<&DropCounters> {
        None
    }
    fn rx_taps(&self, _interface: u32) -> u32 {
        1
    }
    fn tx_taps(&self, _interface: u32) -> u32 {
        0
    }
    fn drop_taps(&self) -> u32 {
        0
    }
    fn output(&self, _interface: u32) -> u8 {
        0
    }
}

/// Packets whose first two bytes say their place, `length` bytes each.
pub(crate) struct Packets {
    // Packets go back to the pool before the pool goes.
    pub(crate) packets: Vec<Pkt>,
    pub(crate) pool: Pool,
}

pub(crate) fn packets(count: usize, length: usize) -> Packets {
    let pool = Pool::new(PoolConfig {
        chunks: 1024,
        hugepages: Hugepages::Off,
    })
    .unwrap();
    let packet = |place: usize| {
        let mut bytes = vec![0xee; length];
        bytes[..2].copy_from_slice(&(place as u16).to_be_bytes());
        filled(&pool, &bytes)
    };
    let packets = (0..count).map(packet).collect();
    Packets { packets, pool }
}

pub(crate) fn filled(pool: &Pool, bytes: &[u8]) -> Pkt {
    let mut packet = pool.alloc().unwrap();
    assert!(packet.fill(bytes));
    packet
}

/// A sampler and all that one look needs.
pub(crate) struct Rig {
    pub(crate) settings: Arc<Settings>,
    pub(crate) sampler: Sampler,
    pub(crate) source: SampleSource,
    pub(crate) marks: Marks,
    pub(crate) now: u64,
    worker: usize,
    gate: Gate,
    /// Kept, so that looking asks for no memory.
    marked: Vec<usize>,
}

impl Rig {
    pub(crate) fn new(rate: u32, seed: u64) -> Rig {
        Rig::with_ring(rate, seed, 1024)
    }

    pub(crate) fn with_ring(rate: u32, seed: u64, ring: usize) -> Rig {
        let settings = Settings::new(rate, 16);
        let (sampler, source) = Sampler::new(settings.clone(), seed, ring);
        Rig {
            settings,
            sampler,
            source,
            marks: Marks::default(),
            now: 0,
            worker: 0,
            gate: Gate::default(),
            marked: Vec::new(),
        }
    }

    /// The same in another worker than the first.
    pub(crate) fn in_worker(self, worker: usize) -> Rig {
        Rig { worker, ..self }
    }

    /// The reading end, for an agent; the counters stay here, too.
    pub(crate) fn give_source(&mut self) -> SampleSource {
        let (_, mut other) = Sampler::new(self.settings.clone(), 0, 1);
        other.counters = self.source.counters.clone();
        std::mem::replace(&mut self.source, other)
    }

    /// One vector comes in on `interface`, and all of it leaves at once, as it came.
    pub(crate) fn look_on(&mut self, interface: u32, packets: &[Pkt]) {
        self.tick();
        self.look_between_ticks(interface, packets);
    }

    pub(crate) fn look_between_ticks(&mut self, interface: u32, packets: &[Pkt]) {
        self.pass(Point::Rx, interface, packets);
        self.marked.clear();
        self.marked.extend(std::iter::from_fn(|| self.marks.take()));
        self.marked.sort_unstable();
        for place in &self.marked {
            Marker::outcome(
                &mut self.sampler,
                &packets[*place],
                PacketOutcome::Sent(OUTPUT),
            );
        }
    }

    fn tick(&mut self) {
        self.now += 1;
        if Tap::<Plain>::tick(&mut self.sampler, self.now) {
            self.gate.ask_all::<Plain>(&mut self.sampler);
        }
    }

    /// One vector comes in on one interface and leaves by another, seen at both.
    pub(crate) fn forward(&mut self, from: u32, to: u32, packets: &[Pkt]) {
        self.tick();
        self.pass(Point::Rx, from, packets);
        let marked = self.take_marks();
        self.pass(Point::Tx, to, packets);
        assert_eq!(self.marks.take(), None, "what goes out has met its end");
        for place in marked {
            Marker::outcome(&mut self.sampler, &packets[place], PacketOutcome::Sent(to));
        }
        // What went out is shown by then.
        self.tick();
    }

    fn pass(&mut self, point: Point, interface: u32, packets: &[Pkt]) {
        if let Some(left) = self.gate.due(interface, packets.len()) {
            let look = Look {
                world: &Plain,
                worker: self.worker,
                now: self.now,
                point,
                interface,
                inner: false,
                left: *left,
            };
            *left = self.sampler.look(&look, packets, &mut self.marks);
        }
    }

    /// The places that are to be marked, in their order.
    fn take_marks(&mut self) -> Vec<usize> {
        let mut places: Vec<usize> = std::iter::from_fn(|| self.marks.take()).collect();
        places.sort_unstable();
        places
    }

    /// The same between two ticks.
    pub(crate) fn look_again(&mut self, packets: &[Pkt]) -> Vec<usize> {
        self.pass(Point::Rx, INTERFACE, packets);
        self.take_marks()
    }

    /// One vector comes in and is on its way; the places that are to be marked.
    pub(crate) fn only_look(&mut self, packets: &[Pkt]) -> Vec<usize> {
        self.tick();
        self.pass(Point::Rx, INTERFACE, packets);
        self.take_marks()
    }

    pub(crate) fn look(&mut self, packets: &[Pkt]) {
        self.look_on(INTERFACE, packets);
    }

    /// One vector is about to leave; whether the sampler wants to know what the driver takes of it.
    pub(crate) fn look_going_out(&mut self, packets: &[Pkt]) -> bool {
        self.pass(Point::Tx, OUTPUT, packets);
        self.marks.take_awaited()
    }

    /// All samples that wait, oldest first.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(&Sample)) -> u64 {
        let mut count = 0;
        while self.source.ring.pop_with(&mut each).is_some() {
            count += 1;
        }
        count
    }

    pub(crate) fn taken(&self) -> u64 {
        self.source.counters.taken.get()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.source.counters.lost.get()
    }
}

/// The place of a packet made by [`packets`].
pub(crate) fn place(sample: &Sample) -> usize {
    usize::from(u16::from_be_bytes([sample.bytes()[0], sample.bytes()[1]]))
}

/// Whether `count` successes in `trials` at chance 1 in `rate` lie within four standard deviations.
pub(crate) fn within_four_sigma(count: u64, trials: u64, rate: u32) -> bool {
    let chance = 1.0 / f64::from(rate);
    let sigma = (trials as f64 * chance * (1.0 - chance)).sqrt();
    (count as f64 - trials as f64 * chance).abs() <= 4.0 * sigma
}

/// How many standard deviations a chi-square statistic over equally likely classes lies above what
/// is expected (Wilson and Hilferty 1931: its cube root is nearly normal). Above [`UNFAIR`] the
/// chance of it is below 1e-4. At least 20 are expected in each class, else it says nothing.
pub(crate) fn surprise(classes: &[u64]) -> f64 {
    let expected = classes.iter().sum::<u64>() as f64 / classes.len() as f64;
    surprise_of(
        &classes
            .iter()
            .map(|&count| (count, expected))
            .collect::<Vec<_>>(),
    )
}

/// The same for classes of which each has its own expectation.
pub(crate) fn surprise_of(classes: &[(u64, f64)]) -> f64 {
    assert!(
        classes.iter().all(|&(_, expected)| expected >= 20.0),
        "too few samples to judge"
    );
    let square: f64 = classes
        .iter()
        .map(|&(count, expected)| (count as f64 - expected).powi(2) / expected)
        .sum();
    let freedom = (classes.len() - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    ((square / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// The normal quantile of 1 - 1e-4.
pub(crate) const UNFAIR: f64 = 3.719;
