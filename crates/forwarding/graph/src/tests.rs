//! The graph with toy nodes: every kind of verdict is carried out and counted, nothing is lost.

use std::sync::{Arc, Mutex};

use weir_buf::{DATA_ROOM, Flags, Hugepages, Pkt, PktCache, Pool, PoolConfig, VECTOR, Vector};
use weir_ring::spsc;

use super::*;

struct Toy {
    drops: DropCounters,
    taps: u32,
}

impl World for Toy {
    type Event = u32;
    fn drops(&self, interface: u32, _worker: usize) -> Option<&DropCounters> {
        (interface == 1).then_some(&self.drops)
    }
    fn rx_taps(&self, _interface: u32) -> u32 {
        self.taps
    }
    fn tx_taps(&self, _interface: u32) -> u32 {
        0
    }
    fn drop_taps(&self) -> u32 {
        self.taps
    }
    fn output(&self, interface: u32) -> u8 {
        u8::from(interface == GUARDED || interface == VIRTUAL)
    }
}

/// An interface with a node before its driver.
const GUARDED: u32 = 20;
/// An interface that is a node, and sends by interface 7.
const VIRTUAL: u32 = 21;

const KEY: HoldKey = HoldKey { kind: 1, what: 42 };

/// Decides by the first byte of each packet.
struct Decider;

impl Node<Toy> for Decider {
    const SPEC: NodeSpec = NodeSpec {
        name: "decider",
        about: "Decides by the first byte.",
        nexts: &["end", "decider"],
        reasons: &[
            DropReason::TooShort,
            DropReason::HoldFull,
            DropReason::HostUnreachable,
            DropReason::NoBuffer,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Toy>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = match packet.data().first() {
                None => Verdict::drop(DropReason::TooShort),
                Some(0) => Verdict::to(Next(0)),
                Some(1) => {
                    packet.set_aux(7);
                    Verdict::OUT
                }
                Some(2) => cx.hold(KEY, Next(0)),
                Some(3) => cx.replicate([
                    (Verdict::OUT, 3),
                    (Verdict::to(Next(0)), 0),
                    (Verdict::OUT, 4),
                ]),
                Some(4) => {
                    if let Some(mut made) = cx.alloc() {
                        assert!(made.fill(&[0]));
                        cx.originate(made, Next(0));
                    }
                    cx.event(5);
                    Verdict::CONSUME
                }
                Some(5) => Verdict::to(Next(1)),
                Some(&by @ (20 | 21)) => {
                    packet.set_aux(u32::from(by));
                    Verdict::OUT
                }
                Some(22) => cx.replicate([(Verdict::OUT, VIRTUAL), (Verdict::OUT, GUARDED)]),
                Some(23) => {
                    packet.set_flags(Flags::ORIGINATED);
                    cx.hold(KEY, Next(0))
                }
                Some(_) => Verdict::CONSUME,
            };
        }
        Outcome::Each
    }
}

struct End;

impl Node<Toy> for End {
    const SPEC: NodeSpec = NodeSpec {
        name: "end",
        about: "Sends all out of interface 9.",
        nexts: &[],
        reasons: &[],
    };

    #[inline(always)]
    fn process(&mut self, _: &mut Cx<'_, Toy>, _: &mut [Pkt], _: &mut [Verdict]) -> Outcome {
        Outcome::AllOut(9)
    }
}

/// Stands before the drivers of some interfaces.
struct Guard;

impl Node<Toy> for Guard {
    const SPEC: NodeSpec = NodeSpec {
        name: "guard",
        about: "Passes on, or sends by another.",
        nexts: &["stage"],
        reasons: &[],
    };

    #[inline(always)]
    fn process(
        &mut self,
        _: &mut Cx<'_, Toy>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = if packet.aux() == VIRTUAL {
                packet.set_aux(7);
                Verdict::OUT
            } else {
                Verdict::to(Next(0))
            };
        }
        Outcome::Each
    }
}

const STAGE: NodeSpec = NodeSpec {
    name: "stage",
    about: "The driver's.",
    nexts: &[],
    reasons: &[],
};

struct FirstMarker(Arc<Mutex<Vec<(Point, usize)>>>);

impl Tap<Toy> for FirstMarker {
    fn name(&self) -> &'static str {
        "marker"
    }
    fn look(&mut self, look: &Look<'_, Toy>, packets: &[Pkt], marks: &mut Marks) -> u64 {
        self.0.lock().unwrap().push((look.point, packets.len()));
        if look.point == Point::Rx {
            marks.mark(0);
        }
        0
    }
}

struct Bench {
    pool: Pool,
    graph: Graph<Toy>,
    cache: PktCache,
    world: Toy,
    events: (spsc::Producer<u32>, spsc::Consumer<u32>),
    trace: spsc::Consumer<TraceStep>,
    seen: Arc<Mutex<Vec<(Point, usize)>>>,
}

impl Bench {
    fn new(taps: u32) -> Bench {
        let seen = Arc::new(Mutex::new(Vec::new()));
        Bench {
            seen: seen.clone(),
            ..Bench::with_tap(taps, Box::new(FirstMarker(seen)))
        }
    }

    fn with_tap(taps: u32, tap: Box<dyn Tap<Toy>>) -> Bench {
        let pool = Pool::new(PoolConfig {
            chunks: 2048,
            hugepages: Hugepages::Off,
        })
        .unwrap();
        let (producer, trace) = spsc::ring(64);
        let limits = HoldLimits {
            keys: 2,
            per_key: 3,
            time: 100,
        };
        let builder = GraphBuilder::default()
            .node(Decider)
            .node(End)
            .node(Guard)
            .stage(STAGE)
            .outputs(&["guard"])
            .tap(tap)
            .hold_limits(limits);
        let world = Toy {
            drops: builder.drop_map().counters(),
            taps,
        };
        let graph = builder.build(0, producer).unwrap();
        Bench {
            cache: PktCache::new(&pool),
            pool,
            graph,
            world,
            events: spsc::ring(2),
            trace,
            seen: Arc::default(),
        }
    }

    /// Sends one packet per first byte (255: an empty one) through, at time `now`.
    fn run(&mut self, now: u64, bytes: &[u8]) {
        let mut vector = Vector::default();
        for &byte in bytes {
            let mut packet = self.cache.alloc().unwrap();
            assert!(packet.fill(if byte == 255 {
                &[]
            } else {
                std::slice::from_ref(&byte)
            }));
            vector.push(packet);
        }
        let mut env = Env {
            world: &self.world,
            now,
            cache: &mut self.cache,
            events: &mut self.events.0,
            event_sent: false,
        };
        self.graph.inhale(&mut env, 0, 1, &mut vector);
        self.graph.run(&mut env);
        self.graph.expire(&mut env);
    }

    /// What left, as (interface, packets); counts it as sent.
    fn collect(&mut self) -> Vec<(u32, usize)> {
        let mut left = Vec::new();
        while let Some((interface, mut vector)) = self.graph.next_leaving() {
            left.push((interface, vector.len()));
            self.graph.count_output(vector.len());
            self.cache.free_all(vector.drain());
            self.graph.recycle(interface, vector);
        }
        left.sort_unstable();
        left
    }

    fn balance(&mut self) {
        let counters = self.graph.counters();
        let t = &counters.totals;
        assert_eq!(
            t.input.get() + t.originated.get() + t.replicated.get(),
            t.output.get() + t.dropped.get() + t.consumed.get() + t.held.get()
        );
        let held = self.graph.held();
        assert_eq!(t.held.get() as usize, held);
        assert_eq!(
            self.pool.usage().free + self.cache.held() + held,
            2048,
            "nothing leaks"
        );
    }
}

#[test]
fn every_verdict_is_carried_out_and_counted() {
    let mut bench = Bench::new(0);
    bench.run(0, &[0, 1, 255, 2, 3, 4, 6, 1, 0]);
    assert_eq!(bench.collect(), [(3, 1), (4, 1), (7, 2), (9, 4)]);
    let counters = bench.graph.counters();
    let t = &counters.totals;
    assert_eq!(
        (t.input.get(), t.originated.get(), t.replicated.get()),
        (9, 1, 2)
    );
    assert_eq!(
        (
            t.output.get(),
            t.dropped.get(),
            t.consumed.get(),
            t.held.get()
        ),
        (8, 1, 2, 1)
    );
    assert_eq!(bench.events.1.pop(), Some(5));
    let map = bench.graph.drop_map();
    let place = map
        .pairs()
        .iter()
        .position(|&pair| pair == ("decider", DropReason::TooShort))
        .unwrap();
    assert_eq!(bench.world.drops.get(place), 1);
    bench.balance();
}

#[test]
fn what_leaves_passes_the_node_before_the_driver() {
    let mut bench = Bench::new(0);
    for (bytes, left) in [
        (vec![20; 256], vec![(20, 256)]),
        (vec![21; 256], vec![(7, 256)]),
        (vec![20, 1, 21, 20], vec![(7, 2), (20, 2)]),
        (vec![22, 22], vec![(7, 2), (20, 2)]),
    ] {
        bench.run(0, &bytes);
        assert_eq!(bench.collect(), left);
        bench.balance();
    }
    assert_eq!(
        bench.graph.counters().nodes[2].packets.get(),
        256 + 256 + 3 + 4
    );
}

#[test]
fn packets_of_several_chunks_are_copied_with_what_was_put_in_front() {
    let mut bench = Bench::new(0);
    let (mut packet, mut tail) = (bench.cache.alloc().unwrap(), bench.cache.alloc().unwrap());
    assert!(packet.fill(&[5; DATA_ROOM]) && tail.fill(&[6; DATA_ROOM]));
    packet.push_front(8).unwrap()[..8].fill(3);
    packet.append(tail).unwrap();
    let mut vector = Vector::default();
    vector.push(packet);
    let mut env = Env {
        world: &bench.world,
        now: 0,
        cache: &mut bench.cache,
        events: &mut bench.events.0,
        event_sent: false,
    };
    bench.graph.inhale(&mut env, 0, 1, &mut vector);
    bench.graph.run(&mut env);
    let mut left = Vec::new();
    while let Some((interface, mut vector)) = bench.graph.next_leaving() {
        left.push(interface);
        for packet in vector.iter() {
            let bytes = packet.segments().collect::<Vec<_>>().concat();
            assert!(
                bytes == [&[3; 8][..], &[5; DATA_ROOM], &[6; DATA_ROOM]].concat(),
                "{interface}: {} bytes",
                bytes.len()
            );
        }
        bench.graph.count_output(vector.len());
        bench.cache.free_all(vector.drain());
    }
    left.sort_unstable();
    assert_eq!(left, [3, 4, 9]);
    bench.balance();
}

#[test]
fn uniform_vectors_move_as_one_and_long_ones_in_pieces() {
    let mut bench = Bench::new(0);
    for (bytes, out) in [
        (vec![0; 256], (9, 256)),
        (vec![1; 256], (7, 256)),
        (vec![0; 700], (9, 700)),
    ] {
        bench.run(0, &bytes);
        assert_eq!(bench.collect(), [out]);
        bench.balance();
    }
    let counters = bench.graph.counters();
    assert_eq!(
        (
            counters.nodes[0].calls.get(),
            counters.nodes[0].packets.get()
        ),
        (5, 1212)
    );
    assert!(counters.nodes[0].clocks.get() > 0);
    bench.run(0, &vec![255; VECTOR]);
    assert_eq!(counters.totals.dropped.get(), 256);
    bench.balance();
}

#[test]
fn holding_is_bounded_in_number_and_time_and_happens_once() {
    let mut bench = Bench::new(0);
    bench.run(0, &[2, 2, 2, 2, 2]);
    let counters = bench.graph.counters();
    assert_eq!(
        (counters.totals.held.get(), counters.totals.dropped.get()),
        (3, 2)
    );
    bench.balance();
    bench.graph.release(HoldKey { kind: 0, what: 0 });
    assert_eq!(bench.graph.held(), 3);
    bench.graph.release(KEY);
    bench.run(50, &[2]);
    assert_eq!(bench.collect(), [(9, 3)]);
    bench.run(149, &[]);
    assert_eq!(bench.graph.held(), 1);
    bench.run(150, &[]);
    assert_eq!((bench.graph.held(), counters.totals.dropped.get()), (0, 3));
    bench.balance();
}

#[test]
fn what_goes_in_circles_ends() {
    let mut bench = Bench::new(0);
    bench.run(0, &[5, 5]);
    assert_eq!(bench.graph.counters().totals.dropped.get(), 2);
    bench.balance();
}

#[test]
fn events_that_do_not_fit_are_counted() {
    let mut bench = Bench::new(0);
    bench.run(0, &[4; 5]);
    assert_eq!(bench.graph.counters().events_lost.get(), 3);
    bench.collect();
    bench.balance();
}

#[test]
fn an_empty_pool_is_a_counted_loss() {
    let mut bench = Bench::new(0);
    let all: Vec<Pkt> = std::iter::from_fn(|| bench.cache.alloc()).collect();
    let mut all = all.into_iter();
    bench.cache.free(all.next().unwrap());
    bench.run(0, &[3]);
    assert_eq!(
        bench.graph.counters().totals.dropped.get(),
        2,
        "two copies could not be made"
    );
    assert_eq!(bench.collect(), [(3, 1)]);
    drop(all);
    bench.balance();
}

#[test]
fn taps_look_and_marks_travel() {
    let mut bench = Bench::new(1);
    bench.run(0, &[1, 1, 255]);
    let seen = bench.seen.lock().unwrap().clone();
    let drop = Point::Drop {
        node: 0,
        reason: DropReason::TooShort,
    };
    assert_eq!(seen, [(Point::Rx, 3), (drop, 1)]);
    let (_, mut vector) = bench.graph.next_leaving().unwrap();
    assert!(vector[0].flags().any(Flags::MARKED) && !vector[1].flags().any(Flags::MARKED));
    bench.cache.free_all(vector.drain());
}

#[test]
fn a_trace_follows_packets_from_node_to_node() {
    let mut bench = Bench::new(0);
    bench.graph.trace(Some(TraceRequest {
        node: None,
        interface: Some(1),
        received: true,
        count: 2,
    }));
    bench.run(0, &[0, 1, 0]);
    let steps: Vec<_> = std::iter::from_fn(|| bench.trace.pop())
        .map(|s| {
            let verdict = Verdict::from_bits(s.verdict).kind();
            (s.packet, s.node, (!s.entered).then_some(verdict))
        })
        .collect();
    let to_end = VerdictKind::To(Next(0));
    assert_eq!(
        steps,
        [
            (0, 0, None),
            (1, 0, None),
            (0, 0, Some(to_end)),
            (1, 0, Some(VerdictKind::Out)),
            (0, 1, Some(VerdictKind::Out))
        ]
    );
    // Following ends some time after the last packet was seen.
    for (now, following) in [(1, true), (9_000_000_000, true), (10_000_000_002, false)] {
        bench.run(now, &[0]);
        assert_eq!(bench.graph.is_tracing(), following, "{now}");
    }
    bench.collect();
}

#[test]
fn a_node_that_names_nobody_is_refused() {
    struct Lost;
    impl Node<Toy> for Lost {
        const SPEC: NodeSpec = NodeSpec {
            name: "lost",
            about: "",
            nexts: &["nowhere"],
            reasons: &[],
        };
        fn process(&mut self, _: &mut Cx<'_, Toy>, _: &mut [Pkt], _: &mut [Verdict]) -> Outcome {
            Outcome::All(Verdict::CONSUME)
        }
    }
    let error = GraphBuilder::default()
        .node(Lost)
        .build(0, spsc::ring(1).0)
        .err()
        .unwrap();
    assert_eq!(
        error,
        GraphError::UnknownNext {
            node: "lost",
            next: "nowhere"
        }
    );
}

#[test]
fn every_reason_has_a_name_and_a_sentence_of_its_own() {
    let mut names: Vec<_> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
    assert!(
        DropReason::ALL
            .iter()
            .all(|reason| reason.sentence().ends_with('.'))
    );
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), DropReason::ALL.len());
}

/// Allows 100 packets at a time to go by, and notes what it was shown.
struct Patient(Arc<Mutex<Vec<Shown>>>);

/// Interface, packets, how many might still have gone by.
type Shown = (u32, usize, u64);

impl Tap<Toy> for Patient {
    fn name(&self) -> &'static str {
        "patient"
    }
    fn look(&mut self, look: &Look<'_, Toy>, packets: &[Pkt], _: &mut Marks) -> u64 {
        self.0
            .lock()
            .unwrap()
            .push((look.interface, packets.len(), look.left));
        100
    }
    fn allow(&mut self, interface: u32, left: u64) -> u64 {
        if interface == 4 { 7 } else { left }
    }
}

#[test]
fn a_tap_is_not_shown_what_it_lets_by() {
    let mut gate = Gate::default();
    let mut come = |interface: u32, count: usize| {
        gate.due(interface, count)
            .map(|left| std::mem::replace(left, 100))
    };
    assert_eq!(come(1, 3), Some(0));
    assert_eq!(come(1, 60), None);
    assert_eq!(come(5000, 40), Some(0));
    assert_eq!(come(2, 0), None, "nothing is not too much");
    assert_eq!(come(1, 41), Some(40));

    let shown = Arc::new(Mutex::new(Vec::new()));
    let mut bench = Bench::with_tap(1, Box::new(Patient(shown.clone())));
    bench.run(0, &[0, 0]);
    bench.run(0, &[0; 99]);
    bench.run(0, &[0, 0]);
    assert_eq!(*shown.lock().unwrap(), [(1, 2, 0), (1, 2, 1)]);
}

/// Marks every packet with its place, and notes what became of them.
#[derive(Clone, Default)]
struct OutcomeNotes {
    reported: Arc<Mutex<Vec<(u32, PacketOutcome)>>>,
    places: Vec<(usize, u32)>,
    leaving: Vec<(u32, PacketOutcome)>,
}

impl OutcomeNotes {
    fn take(&self) -> Vec<(u32, PacketOutcome)> {
        std::mem::take(&mut *self.reported.lock().unwrap())
    }
    /// A packet's place when it came, or 100 more if it has parted.
    fn place(&self, packet: &Pkt) -> u32 {
        let found = self
            .places
            .iter()
            .find(|(identity, _)| *identity == packet.identity());
        found.map_or(packet.meta().mark, |&(_, place)| place)
    }
}

impl Tap<Toy> for OutcomeNotes {
    fn name(&self) -> &'static str {
        "follower"
    }
    fn look(&mut self, look: &Look<'_, Toy>, packets: &[Pkt], marks: &mut Marks) -> u64 {
        if look.point == Point::Rx {
            (0..packets.len()).for_each(|place| marks.mark(place));
            self.places = packets
                .iter()
                .zip(0..)
                .map(|(packet, place)| (packet.identity(), place))
                .collect();
        }
        0
    }
    fn marker(&mut self) -> Option<&mut dyn Marker> {
        Some(self)
    }
}

impl Marker for OutcomeNotes {
    fn outcome(&mut self, packet: &Pkt, outcome: PacketOutcome) {
        self.reported
            .lock()
            .unwrap()
            .push((self.place(packet), outcome));
    }
    fn part(&mut self, packet: &Pkt) -> u32 {
        let place = self.place(packet);
        self.places
            .retain(|(identity, _)| *identity != packet.identity());
        place + 100
    }
    fn leaving(&mut self, interface: u32, packets: &[Pkt], count: usize) -> bool {
        let marked = packets
            .iter()
            .filter(|packet| packet.flags().any(Flags::MARKED));
        self.leaving = marked
            .map(|packet| (self.place(packet), PacketOutcome::Sent(interface)))
            .collect();
        assert_eq!(self.leaving.len(), count);
        true
    }
    fn left(&mut self, refused: &[Pkt], _: PacketOutcome) {
        let refused: Vec<u32> = refused.iter().map(|packet| self.place(packet)).collect();
        self.leaving.retain(|(place, _)| !refused.contains(place));
        self.reported.lock().unwrap().append(&mut self.leaving);
    }
}

#[test]
fn what_becomes_of_a_marked_packet_is_reported_once() {
    let follower = OutcomeNotes::default();
    let mut bench = Bench::with_tap(1, Box::new(follower.clone()));
    // Dropped, consumed, copied to three, held, and one that leaves.
    bench.run(0, &[255, 4, 3, 2, 1]);
    let dropped = PacketOutcome::Dropped {
        node: 0,
        reason: DropReason::TooShort,
    };
    assert_eq!(
        follower.take(),
        [
            (0, dropped),
            (1, PacketOutcome::Kept),
            (2, PacketOutcome::Copied(3))
        ]
    );
    let mut departed = Vec::new();
    while let Some((interface, mut vector)) = bench.graph.next_leaving() {
        let marked = vector
            .iter()
            .filter(|packet| packet.flags().any(Flags::MARKED))
            .count();
        assert!(bench.graph.leaving(interface, &vector, marked));
        bench.graph.left(&[], 0, DropReason::TxFull);
        departed.extend(follower.take());
        bench.cache.free_all(vector.drain());
    }
    assert_eq!(departed, [(4, PacketOutcome::Sent(7))]);
    let mut env = Env {
        world: &bench.world,
        now: 200,
        cache: &mut bench.cache,
        events: &mut bench.events.0,
        event_sent: false,
    };
    bench.graph.expire(&mut env);
    assert_eq!(
        follower.take(),
        [(
            103,
            PacketOutcome::Dropped {
                node: 0,
                reason: DropReason::HostUnreachable
            }
        )]
    );
}

#[test]
fn a_copy_that_found_no_buffer_is_seen_as_a_drop() {
    let mut bench = Bench::new(1);
    let mut all: Vec<Pkt> = std::iter::from_fn(|| bench.cache.alloc()).collect();
    bench.cache.free(all.pop().unwrap());
    bench.run(0, &[3]);
    let lost = (
        Point::Drop {
            node: 0,
            reason: DropReason::NoBuffer,
        },
        1,
    );
    let seen: Vec<_> = bench
        .seen
        .lock()
        .unwrap()
        .iter()
        .filter(|seen| matches!(seen.0, Point::Drop { .. }))
        .copied()
        .collect();
    assert_eq!(seen, [lost, lost]);
    bench.cache.free_all(all.into_iter());
}

/// What became this router's answer went nowhere else, however long the answer waits.
#[test]
fn an_answer_that_waits_was_kept() {
    let follower = OutcomeNotes::default();
    let mut bench = Bench::with_tap(1, Box::new(follower.clone()));
    bench.run(0, &[23]);
    assert_eq!(
        (follower.take(), bench.graph.held()),
        (vec![(0, PacketOutcome::Kept)], 1)
    );
    bench.graph.release(KEY);
    bench.run(0, &[]);
    assert_eq!(follower.take(), []);
}

#[test]
fn what_a_driver_does_not_take_has_not_left() {
    let follower = OutcomeNotes::default();
    let mut bench = Bench::with_tap(1, Box::new(follower.clone()));
    bench.run(0, &[1, 1, 1]);
    let (interface, mut vector) = bench.graph.next_leaving().unwrap();
    assert!(bench.graph.leaving(interface, &vector, 3));
    bench.graph.left(&vector[1..], 0, DropReason::TxFull);
    assert_eq!(follower.take(), [(0, PacketOutcome::Sent(7))]);
    assert!(
        vector[1..]
            .iter()
            .all(|packet| packet.flags().any(Flags::MARKED)),
        "what was refused can still be dropped"
    );
    bench.cache.free_all(vector.drain());
}

#[test]
fn each_interface_has_an_allowance_of_its_own() {
    let mut gate = Gate::default();
    for interface in [1, 2, 3, 4, 70_000] {
        *gate.due(interface, 1).unwrap() = 100;
    }
    assert!(
        gate.due(2, 100).is_none()
            && gate.due(2, 1).is_some()
            && gate.due(4, 90).is_none()
            && gate.due(70_000, 100).is_none()
    );
    gate.ask_all::<Toy>(&mut Patient(Arc::default()));
    let mut left = |interface| gate.due(interface, 101).copied();
    assert_eq!(
        [1, 2, 4, 5, 70_000].map(&mut left),
        [Some(100), Some(0), Some(7), Some(0), Some(0)]
    );
}

#[test]
fn each_place_that_was_marked_is_taken_once() {
    let mut marks = Marks::default();
    for round in 0..2 {
        assert_eq!(marks.take(), None, "{round}");
        (0..300).for_each(|place| marks.mark(place));
        let mut places: Vec<usize> = std::iter::from_fn(|| marks.take()).collect();
        places.sort_unstable();
        assert_eq!(places, (0..300).collect::<Vec<_>>(), "{round}");
    }
}
