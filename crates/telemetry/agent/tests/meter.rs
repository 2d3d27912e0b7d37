//! The meter's bookkeeping: whatever becomes of packets, in whatever order, each is in one flow with its outcome. What should
//! come out is kept in a map beside it; outcomes are drawn from seeds.

mod common;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use common::{Plain, filled};
use weir_buf::{Flags, Hugepages, Pkt, Pool, PoolConfig, Tally};
use weir_graph::{Destination, DropReason, Follower, Look, Marks, Point, Tap};
use weir_telemetry::exporter::RecordSet;
use weir_telemetry::flows::{Records, Selection, Settings, Table};
use weir_telemetry::meter::{Meter, MeterControl, MeterPlan, MeterSettings, Metered};
use weir_telemetry::random::Random;

/// Reasons with the registry's numbers (IANA, IPFIX, `forwardingStatus`).
const REASONS: [(DropReason, u8); 4] = [
    (DropReason::NoRoute, 131),
    (DropReason::AclDenied, 129),
    (DropReason::TtlExpired, 137),
    (DropReason::TxFull, 143),
];
const FOR_US: u8 = 195;

/// A meter with a table, at interfaces 1 and 2 for what comes in and at 5 for what leaves.
struct Rig {
    meter: Meter,
    control: MeterControl,
    ring: Records,
    now: u64,
    counts: Arc<weir_ring::Padded<weir_telemetry::flows::Counts>>,
    settings: Arc<MeterSettings>,
}

impl Rig {
    fn new(names: &[&str], sampling: u32) -> Rig {
        Rig::with_table(names, sampling, 1 << 16)
    }

    fn with_table(names: &[&str], sampling: u32, flows: usize) -> Rig {
        let set = RecordSet::new(names.iter().copied()).unwrap();
        let select = |egress| Metered {
            selection: Selection::new(set.elements(), 2, egress),
            sampling,
        };
        let settings = Arc::new(MeterSettings::default());
        settings.set(MeterPlan {
            rx: [(1, select(false)), (2, select(false))].into(),
            tx: [(5, select(true))].into(),
            ..MeterPlan::default()
        });
        let (meter, control) = Meter::new(settings.clone(), 3);
        let (table, ring) = Table::new(
            Settings {
                flows,
                ring: 1 << 17,
                ..Settings::default()
            },
            4,
        );
        let counts = table.counts().clone();
        control.give(Some(Box::new(table)));
        let mut rig = Rig {
            meter,
            control,
            ring,
            now: 0,
            counts,
            settings,
        };
        rig.tick();
        rig
    }

    fn tick(&mut self) {
        self.now += 10_000_000;
        Tap::<Plain>::tick(&mut self.meter, self.now);
    }

    fn look(&mut self, point: Point, interface: u32, packets: &[Pkt]) {
        let (world, now) = (&Plain, self.now);
        let look = Look {
            world,
            worker: 0,
            now,
            point,
            interface,
            inner: false,
            left: 0,
        };
        self.meter.look(&look, packets, &mut Marks::default());
    }

    fn goes(&mut self, destination: Destination, packets: &[Pkt]) {
        Follower::goes(&mut self.meter, destination, packets);
    }

    /// As port-tx tells it.
    fn leave(&mut self, interface: u32, packets: &[Pkt]) {
        self.goes(
            Destination::Out {
                interface,
                flags: Tally::of(packets).flags(),
            },
            packets,
        );
    }

    fn turn_over(&mut self) -> bool {
        self.now += 1000;
        Follower::turn_over(&mut self.meter, self.now)
    }

    /// Everything that was metered: by source, direction, output and status the packets.
    fn flush(&mut self) -> BTreeMap<(u32, bool, u32, u8), u64> {
        self.control.end();
        while !self.control.has_ended() {
            self.tick();
        }
        self.drain()
            .into_iter()
            .map(|(flow, (packets, _))| (flow, packets))
            .collect()
    }

    /// The same of what has left so far, with the number of records.
    fn drain(&mut self) -> BTreeMap<(u32, bool, u32, u8), (u64, u64)> {
        let mut all: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        while let Some(()) = self.ring.pop_with(|record| {
            let parts = record.key.parts();
            assert_eq!(parts.set, 2);
            let source = u32::from_be_bytes(parts.source[12..].try_into().unwrap());
            let flow = all
                .entry((source, parts.egress, parts.output, parts.status))
                .or_default();
            *flow = (flow.0 + record.sums.packets, flow.1 + 1);
        }) {}
        all
    }
}

/// A UDP packet of a flow.
fn frame(flow: u32, protocol: u8) -> Vec<u8> {
    let mut frame = vec![
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, protocol, 0, 0,
    ];
    frame.extend(flow.to_be_bytes());
    frame.extend([198, 51, 100, 1, 0, 9, 0, 53]);
    frame.resize(60, 0);
    frame
}

/// The same over IPv6.
fn frame6(flow: u32) -> Vec<u8> {
    let mut frame = vec![
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 17, 64,
    ];
    frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend(flow.to_be_bytes());
    frame.extend([
        0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 9, 0, 53,
    ]);
    frame.resize(74, 0);
    frame
}

#[derive(Default)]
struct Expected(BTreeMap<(u32, bool, u32, u8), u64>);

impl Expected {
    fn add(&mut self, flow: u32, output: u32, status: u8) {
        *self.0.entry((flow, false, output, status)).or_default() += 1;
    }
}

/// A VLAN tag in front of a frame's type.
fn tagged(mut frame: Vec<u8>, vlan: u8) -> Vec<u8> {
    frame.splice(12..12, [0x81, 0, 0x20, vlan]);
    frame
}

/// IPv4 and IPv6, with and without a tag, and what is neither, mixed within vectors and by runs of all lengths; in a table that lies
/// in the nearest caches and in one that does not. Each packet is in the flow of its kind, addresses and tag.
#[test]
fn kinds_are_mixed_within_vectors() {
    const KINDS: u32 = 5;
    let frame_of = |kind: u32, flow: u32| match kind {
        0 => frame(flow, 17),
        1 => frame6(flow),
        2 => tagged(frame(flow, 17), 9),
        3 => tagged(frame6(flow), 9),
        _ => frame(flow, 50),
    };
    for (seed, flows) in [(1, 40), (2, 400), (3, 20_000)] {
        let mut random = Random::new(seed);
        let mut draw = move |below: u64| (random.bits() % below) as u32;
        let pool = Pool::new(PoolConfig {
            chunks: 4096,
            hugepages: Hugepages::Off,
        })
        .unwrap();
        let mut rig = Rig::new(&["5-tuple", "dot1qVlanId", "forwardingStatus"], 1);
        let mut expected: BTreeMap<(u8, u8, [u8; 4], u16), u64> = BTreeMap::new();
        for turn in 0..400 {
            let mut vector = Vec::new();
            while vector.len() < 256 {
                let (kind, run) = (draw(KINDS.into()), 1 + draw([2, 70, 256][turn % 3]));
                for _ in 0..run.min(256 - vector.len() as u32) {
                    let flow = draw(flows);
                    vector.push(filled(&pool, &frame_of(kind, flow)));
                    let (version, protocol) = match kind {
                        1 | 3 => (6, 17),
                        4 => (4, 50),
                        _ => (4, 17),
                    };
                    let vlan = if matches!(kind, 2 | 3) { 9 } else { 0 };
                    let key = (version, protocol, flow.to_be_bytes(), vlan);
                    *expected.entry(key).or_default() += 1;
                }
            }
            rig.look(Point::Rx, 1, &vector);
            rig.leave(7, &vector);
            rig.turn_over();
        }
        rig.control.end();
        while !rig.control.has_ended() {
            rig.tick();
        }
        let mut found: BTreeMap<(u8, u8, [u8; 4], u16), u64> = BTreeMap::new();
        while let Some(()) = rig.ring.pop_with(|record| {
            let parts = record.key.parts();
            let [.., a, b, c, d] = parts.source;
            assert_eq!((parts.output, parts.status, parts.input), (7, 0, 1));
            let ports = if parts.protocol == 17 {
                (9, 53)
            } else {
                (0, 0)
            };
            assert_eq!((parts.source_port, parts.destination_port), ports);
            if parts.kind as u8 == 6 {
                let network = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0];
                assert_eq!(parts.source[..12], network);
                let mut to = [0; 16];
                to[..4].copy_from_slice(&network[..4]);
                to[15] = 1;
                assert_eq!(parts.destination, to);
            }
            let key = (parts.kind as u8, parts.protocol, [a, b, c, d], parts.vlan);
            *found.entry(key).or_default() += record.sums.packets;
        }) {}
        assert_eq!(found, expected, "{flows}");
    }
}

/// Two interfaces with rates of their own and sets of their own: each is sampled by its rate, packets of both are in no flow
/// together, and what leaves is sampled apart from what comes in.
#[test]
fn interfaces_are_sampled_by_their_own_rates() {
    let pool = Pool::new(PoolConfig {
        chunks: 1024,
        hugepages: Hugepages::Off,
    })
    .unwrap();
    let elements = ["sourceIPv4Address", "protocolIdentifier"];
    let mut rig = Rig::new(&elements, 1);
    let set = RecordSet::new(elements).unwrap();
    let by = |number, sampling| Metered {
        selection: Selection::new(set.elements(), number, false),
        sampling,
    };
    rig.settings.set(MeterPlan {
        rx: [(1, by(2, 1)), (2, by(3, 10)), (3, by(4, 100))].into(),
        tx: [(5, by(5, 4))].into(),
        ..MeterPlan::default()
    });
    rig.tick();
    const TURNS: u64 = 4000;
    for _ in 0..TURNS {
        for interface in 1..=3 {
            let vector: Vec<Pkt> = (0..100).map(|_| filled(&pool, &frame(7, 17))).collect();
            rig.look(Point::Rx, interface, &vector);
            rig.look(Point::Tx, 5, &vector);
            rig.leave(5, &vector);
        }
        rig.turn_over();
    }
    rig.control.end();
    while !rig.control.has_ended() {
        rig.tick();
    }
    let mut packets = BTreeMap::new();
    while let Some(()) = rig.ring.pop_with(|record| {
        *packets.entry(record.key.parts().set).or_insert(0) += record.sums.packets;
    }) {}
    // Binomial: five standard deviations of n p (1 - p).
    let expected = [(2, 1.0, 1), (3, 0.1, 1), (4, 0.01, 1), (5, 0.25, 3)];
    for (set, chance, times) in expected {
        let mean = (times * 100 * TURNS) as f64 * chance;
        let bound = 5.0 * (mean * (1.0 - chance)).sqrt();
        let got = packets[&set] as f64;
        assert!((got - mean).abs() <= bound, "{set}: {got} of {mean}");
    }
    let passed = rig.control.counters().passed_over.get();
    let all: u64 = packets.values().sum();
    assert_eq!(all + passed, 600 * TURNS);
}

/// Fates at random, in random order, packets of interfaces that are not metered among them, chunks that come again
/// in the same turn, packets that wait for later turns, and drivers that do not take all.
#[test]
fn every_packet_is_in_one_flow_with_its_fate() {
    for seed in 1..40 {
        let mut random = Random::new(seed);
        let mut draw = move |below: u64| (random.bits() % below) as usize;
        let pool = Pool::new(PoolConfig {
            chunks: 4096,
            hugepages: Hugepages::Off,
        })
        .unwrap();
        let (mut rig, mut expected) = (
            Rig::new(&["5-tuple", "forwardingStatus"], 1),
            Expected::default(),
        );
        let mut waiting: VecDeque<(u32, Pkt)> = VecDeque::new();
        let in_order = seed % 3 == 0;
        for turn in 0..60 {
            let mut inside: Vec<(u32, bool, Pkt)> = Vec::new();
            for interface in 1..=3_u32 {
                let flows: Vec<u32> = (0..draw(300)).map(|_| draw(1000) as u32).collect();
                let odd = |flow: u32| if flow.is_multiple_of(7) { 50 } else { 17 };
                let vector: Vec<Pkt> = flows
                    .iter()
                    .map(|flow| filled(&pool, &frame(*flow, odd(*flow))))
                    .collect();
                if interface != 3 {
                    rig.look(Point::Rx, interface, &vector);
                }
                inside.extend(
                    flows
                        .into_iter()
                        .zip(vector)
                        .map(|(flow, packet)| (flow, interface != 3, packet)),
                );
                // Some are dropped before the next vector comes, whose packets get their chunks.
                if draw(2) == 0 {
                    for _ in 0..draw(20).min(inside.len()) {
                        let (flow, metered, packet) = inside.swap_remove(draw(inside.len() as u64));
                        rig.goes(
                            Destination::Dropped(DropReason::Urpf),
                            std::slice::from_ref(&packet),
                        );
                        if metered {
                            expected.add(flow, 0, 140);
                        }
                    }
                }
            }
            if !in_order {
                (1..inside.len())
                    .rev()
                    .for_each(|last| inside.swap(last, draw(last as u64 + 1)));
            }
            let mut inside = VecDeque::from(inside);
            while !inside.is_empty() {
                let run = 1 + draw(if in_order { 300 } else { 40 }).min(inside.len() - 1);
                let (mut flows, mut packets) = (Vec::new(), Vec::new());
                for (flow, metered, packet) in inside.drain(..run) {
                    flows.push((flow, metered));
                    packets.push(packet);
                }
                match draw(if in_order { 3 } else { 8 }) {
                    0..4 => {
                        let output = 7 + draw(2) as u32;
                        rig.leave(output, &packets);
                        // A driver takes some of them.
                        let sent = if draw(4) == 0 {
                            draw(run as u64 + 1)
                        } else {
                            run
                        };
                        for (place, (flow, metered)) in flows.iter().enumerate() {
                            if place >= sent {
                                rig.goes(
                                    Destination::Dropped(DropReason::TxFull),
                                    &packets[place..=place],
                                );
                            }
                            if *metered {
                                expected.add(*flow, output, if place < sent { 0 } else { 143 });
                            }
                        }
                    }
                    4 => {
                        let (reason, status) = REASONS[draw(4)];
                        rig.goes(Destination::Dropped(reason), &packets);
                        for (flow, _) in flows.iter().filter(|(_, metered)| *metered) {
                            expected.add(*flow, 0, status);
                        }
                    }
                    5 => {
                        rig.goes(Destination::Kept, &packets);
                        flows
                            .iter()
                            .filter(|(_, metered)| *metered)
                            .for_each(|(flow, _)| expected.add(*flow, 0, FOR_US));
                    }
                    6 => {
                        rig.goes(Destination::Held, &packets);
                        for ((flow, metered), mut packet) in flows.into_iter().zip(packets) {
                            packet.set_flags(Flags::HELD);
                            if metered {
                                waiting.push_back((flow, packet));
                            }
                        }
                    }
                    // It became an answer.
                    _ => {
                        packets
                            .iter_mut()
                            .for_each(|packet| packet.set_flags(Flags::ORIGINATED));
                        rig.leave(7, &packets);
                        flows
                            .iter()
                            .filter(|(_, metered)| *metered)
                            .for_each(|(flow, _)| expected.add(*flow, 0, FOR_US));
                    }
                }
            }
            // Some of those that wait go on, mostly in a later turn.
            for _ in 0..draw(30).min(waiting.len()) {
                let Some((flow, packet)) = waiting.pop_front() else {
                    break;
                };
                if draw(3) == 0 {
                    rig.goes(
                        Destination::Dropped(DropReason::HostUnreachable),
                        std::slice::from_ref(&packet),
                    );
                    expected.add(flow, 0, 132);
                } else {
                    rig.leave(8, std::slice::from_ref(&packet));
                    expected.add(flow, 8, 0);
                }
            }
            assert_eq!(
                rig.turn_over(),
                !waiting.is_empty(),
                "seed {seed}, turn {turn}"
            );
            assert_eq!(rig.control.counters().waiting.get(), waiting.len() as u64);
        }
        // What still waits at the end waits for a next hop.
        waiting
            .iter()
            .for_each(|(flow, _)| expected.add(*flow, 0, 194));
        let metered = expected.0.values().sum::<u64>();
        assert_eq!(rig.flush(), expected.0, "seed {seed}");
        assert_eq!(rig.counts.packets.get(), metered);
    }
}

/// More flows than the table holds, in one that is looked up as it is counted and in one whose records are asked for early: all is exact,
/// those that have to leave do, and those that go on stay.
#[test]
fn flows_make_room_and_nothing_is_lost() {
    const STEADY: u32 = 20;
    for (flows, offered) in [(512, 3000), (9000, 40_000)] {
        let mut random = Random::new(flows as u64);
        let mut draw = move |below: u64| (random.bits() % below) as u32;
        let pool = Pool::new(PoolConfig {
            chunks: 512,
            hugepages: Hugepages::Off,
        })
        .unwrap();
        let (mut rig, mut expected) = (
            Rig::with_table(&["5-tuple", "forwardingStatus"], 1, flows),
            Expected::default(),
        );
        let (mut left, mut records): (BTreeMap<_, u64>, BTreeMap<_, u64>) = Default::default();
        let mut note = |some: BTreeMap<(u32, bool, u32, u8), (u64, u64)>| {
            for (flow, (packets, count)) in some {
                *left.entry(flow).or_default() += packets;
                *records.entry(flow).or_default() += count;
            }
        };
        for turn in 0..400 {
            let new = if turn == 0 { 0 } else { 236 };
            let numbers: Vec<u32> = (0..STEADY)
                .chain((0..new).map(|_| STEADY + draw(offered)))
                .collect();
            let protocol = |flow: u32| {
                if flow % 7 == 6 && flow > STEADY {
                    50
                } else {
                    17
                }
            };
            let any = |flow: u32| {
                if flow % 5 == 3 {
                    frame6(flow)
                } else {
                    frame(flow, protocol(flow))
                }
            };
            let packets: Vec<Pkt> = numbers
                .iter()
                .map(|flow| filled(&pool, &any(*flow)))
                .collect();
            rig.look(Point::Rx, 1, &packets);
            rig.leave(7, &packets);
            let refused = if turn % 3 == 0 {
                packets.len() - draw(30).min(new) as usize
            } else {
                packets.len()
            };
            packets[refused..].iter().for_each(|packet| {
                rig.goes(
                    Destination::Dropped(DropReason::TxFull),
                    std::slice::from_ref(packet),
                )
            });
            for (place, flow) in numbers.iter().enumerate() {
                expected.add(*flow, 7, if place < refused { 0 } else { 143 });
            }
            rig.now += 5_000_000;
            rig.turn_over();
            note(rig.drain());
        }
        let (exported, lost) = (rig.counts.exported[5].get(), rig.counts.unexported.get());
        assert!(
            exported > 50_000 && lost == 0,
            "{exported} had to leave, {lost} were lost"
        );
        rig.control.end();
        while !rig.control.has_ended() {
            rig.tick();
        }
        note(rig.drain());
        assert_eq!(left, expected.0);
        assert_eq!(rig.counts.flows.get(), records.values().sum::<u64>());
        let stayed = (0..STEADY)
            .filter(|flow| records[&(*flow, false, 7, 0)] == 1)
            .count();
        assert!(
            flows < 1000 || stayed > STEADY as usize * 3 / 4,
            "{stayed} stayed"
        );
    }
}

#[test]
fn what_leaves_says_what_it_came_in_by() {
    let pool = Pool::new(PoolConfig {
        chunks: 64,
        hugepages: Hugepages::Off,
    })
    .unwrap();
    let mut rig = Rig::new(&["5-tuple", "flowDirection", "forwardingStatus"], 1);
    let mut packets: Vec<Pkt> = (0..4).map(|flow| filled(&pool, &frame(flow, 17))).collect();
    packets
        .iter_mut()
        .for_each(|packet| packet.set_interface(3));
    packets[3].set_flags(Flags::ORIGINATED);
    rig.look(Point::Tx, 5, &packets);
    rig.leave(5, &packets);
    rig.goes(Destination::Dropped(DropReason::TxFull), &packets[2..3]);
    rig.turn_over();
    assert_eq!(
        rig.flush(),
        [
            ((0, true, 5, 0), 1),
            ((1, true, 5, 0), 1),
            ((2, true, 5, 143), 1),
            ((3, true, 5, 0), 1)
        ]
        .into()
    );
}

#[test]
fn fate_is_no_key_when_the_set_does_not_say_so() {
    let pool = Pool::new(PoolConfig {
        chunks: 64,
        hugepages: Hugepages::Off,
    })
    .unwrap();
    let mut rig = Rig::new(&["sourceIPv4Address", "packetDeltaCount"], 1);
    let packets: Vec<Pkt> = (0..6).map(|_| filled(&pool, &frame(9, 17))).collect();
    rig.look(Point::Rx, 1, &packets);
    rig.leave(7, &packets[..2]);
    rig.goes(Destination::Dropped(DropReason::NoRoute), &packets[2..4]);
    rig.goes(Destination::Kept, &packets[4..5]);
    rig.turn_over();
    assert_eq!(rig.flush(), [((9, false, 0, 0), 6)].into());
}

/// One in four, also where few of many that leave were chosen; what was passed over is counted.
#[test]
fn sampled_packets_have_their_fates_too() {
    let pool = Pool::new(PoolConfig {
        chunks: 1024,
        hugepages: Hugepages::Off,
    })
    .unwrap();
    for rate in [4, 50] {
        let mut rig = Rig::new(&["5-tuple", "forwardingStatus"], rate);
        let packets: Vec<Pkt> = (0..256)
            .map(|flow| filled(&pool, &frame(flow % 2, 17)))
            .collect();
        for _ in 0..400 {
            rig.look(Point::Rx, 1, &packets);
            rig.leave(7, &packets[..200]);
            rig.goes(Destination::Dropped(DropReason::NoRoute), &packets[200..]);
            rig.turn_over();
        }
        let found = rig.flush();
        let sum: u64 = found.values().sum();
        assert!(common::within_four_sigma(sum, 400 * 256, rate), "{sum}");
        assert_eq!(sum + rig.control.counters().passed_over.get(), 400 * 256);
        assert_eq!(found.len(), 4, "{found:?}");
        let dropped: u64 = found
            .iter()
            .filter(|((.., status), _)| *status == 131)
            .map(|(_, count)| count)
            .sum();
        assert!(
            common::within_four_sigma(dropped, 400 * 56, rate),
            "{dropped} of {sum}"
        );
    }
}

/// Without a table packets are ignored, counted; a table that is replaced is emptied first.
#[test]
fn tables_come_and_go() {
    let pool = Pool::new(PoolConfig {
        chunks: 64,
        hugepages: Hugepages::Off,
    })
    .unwrap();
    let mut rig = Rig::new(&["5-tuple"], 1);
    let packets: Vec<Pkt> = (0..10)
        .map(|flow| filled(&pool, &frame(flow, 17)))
        .collect();
    let pass = |rig: &mut Rig| {
        rig.look(Point::Rx, 1, &packets);
        rig.leave(7, &packets);
        rig.turn_over();
    };
    pass(&mut rig);
    let (table, ring) = Table::new(
        Settings {
            flows: 1024,
            ring: 1024,
            ..Settings::default()
        },
        4,
    );
    rig.control.give(Some(Box::new(table)));
    rig.tick();
    rig.tick();
    assert_eq!(
        rig.control.tidy(),
        1,
        "the first table is given back, empty"
    );
    let first = std::mem::replace(&mut rig.ring, ring);
    assert_eq!(first.len(), 10);
    pass(&mut rig);
    rig.control.give(None);
    rig.tick();
    pass(&mut rig);
    assert_eq!(
        (rig.control.counters().ignored_packets.get(), rig.ring.len()),
        (10, 10)
    );
    assert!(rig.flush().values().all(|count| *count == 1));
}
