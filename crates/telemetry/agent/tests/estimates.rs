//! What a collector works out of samples is right: of classes of packets and their octets, of interfaces with rates of
//! their own, through rings that overflow and wires that lose datagrams.
//!
//! From `c` samples of a class the estimate is within `196 * sqrt(1/c)` percent of the truth nineteen times of twenty,
//! the octets within that times `sqrt(1 + CV^2)` (Phaal and Panchen). Whether the share of trials inside is nineteen of
//! twenty is itself judged by four and a half standard deviations of it. All seeds are fixed.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use common::collector::{Interfaces, Receiver, config, wait_for};
use common::{Packets, Rig, filled, place};
use weir_buf::{Hugepages, Pkt, Pool, PoolConfig};
use weir_telemetry::agent::{Agent, AgentConfig};
use weir_telemetry::random::Random;
use weir_telemetry::sampler::{RING, Sampling};

/// Classes of packets: one in a hundred, ten and fifty of them; the rest is of the last.
const SHARES: [usize; 4] = [1, 10, 50, 39];

/// A hundred packets. The first two bytes are a packet's place, the third its class. Frames of a class have two lengths.
fn mixed() -> Packets {
    let pool = Pool::new(PoolConfig {
        chunks: 512,
        hugepages: Hugepages::Off,
    })
    .unwrap();
    let classes = SHARES
        .iter()
        .enumerate()
        .flat_map(|(class, &share)| std::iter::repeat_n(class, share));
    let packet = |(place, class): (usize, usize)| {
        let mut bytes = vec![class as u8; if place % 3 == 0 { 64 } else { 1500 }];
        bytes[..2].copy_from_slice(&(place as u16).to_be_bytes());
        filled(&pool, &bytes)
    };
    let packets = classes.enumerate().map(packet).collect();
    Packets { packets, pool }
}

/// Samples of each class, their octets, and the squares of those.
type Found = [(u64, f64, f64); 4];

fn note(found: &mut Found, class: usize, octets: u32) {
    let octets = f64::from(octets);
    let entry = &mut found[class];
    *entry = (entry.0 + 1, entry.1 + octets, entry.2 + octets * octets);
}

/// Octets of a class among the packets.
fn octets_of(packets: &[Pkt], class: usize) -> f64 {
    packets
        .iter()
        .filter(|packet| usize::from(packet.data()[2]) == class)
        .map(|packet| packet.total_len() as f64)
        .sum()
}

#[test]
fn nineteen_of_twenty_estimates_are_within_the_bound() {
    const TRIALS: u64 = 300;
    const ROUNDS: u64 = 400;
    const RATE: u32 = 10;
    let Packets {
        packets,
        pool: _pool,
    } = mixed();
    let (mut inside, mut inside_octets) = ([0_u64; 4], [0_u64; 4]);
    for seed in 0..TRIALS {
        let mut rig = Rig::new(RATE, seed);
        let mut found = Found::default();
        for _ in 0..ROUNDS {
            rig.look(&packets);
            rig.drain(|sample| note(&mut found, usize::from(sample.bytes()[2]), sample.frame));
        }
        for (class, &(count, octets, squares)) in found.iter().enumerate() {
            let (samples, truth) = (count as f64, (ROUNDS as usize * SHARES[class]) as f64);
            let bound = 1.96 * (1.0 / samples).sqrt();
            inside[class] += u64::from((samples * f64::from(RATE) / truth - 1.0).abs() <= bound);
            let variation = squares * samples / (octets * octets) - 1.0;
            let truth = octets_of(&packets, class) * ROUNDS as f64;
            let within =
                (octets * f64::from(RATE) / truth - 1.0).abs() <= bound * (1.0 + variation).sqrt();
            inside_octets[class] += u64::from(within);
        }
    }
    // The bound is for rare classes; of frequent ones, and of one in ten of all packets, more estimates are inside.
    let least = 0.95 * TRIALS as f64 - 4.5 * (TRIALS as f64 * 0.95 * 0.05).sqrt();
    for class in 0..SHARES.len() {
        assert!(
            inside[class] as f64 >= least,
            "class {class}: {} of {TRIALS}",
            inside[class]
        );
        assert!(
            inside_octets[class] as f64 >= least,
            "octets of class {class}: {} of {TRIALS}",
            inside_octets[class]
        );
        assert!(
            inside[class] < TRIALS || class != 0,
            "a bound that nothing exceeds is too wide"
        );
    }
}

/// Interfaces at 1:1, 1:10 and 1:100, and one as usual, on one worker and split over two.
#[test]
fn each_interface_keeps_its_own_rate_however_many_workers_serve_it() {
    const ROUNDS: u64 = 6_000;
    let Packets {
        packets,
        pool: _pool,
    } = mixed();
    let rates = BTreeMap::from([(1_u32, 1_u32), (2, 10), (3, 100), (4, 37)]);
    for workers in [1, 2] {
        let mut rigs: Vec<Rig> = (0..workers)
            .map(|worker| Rig::new(37, 40 + worker as u64).in_worker(worker))
            .collect();
        let (mut counts, mut seen) = (BTreeMap::<u32, u64>::new(), BTreeMap::<u32, u64>::new());
        for rig in &mut rigs {
            let others = rates
                .iter()
                .filter(|(index, _)| **index != 4)
                .map(|(&index, &rate)| (index, Sampling { rate, header: 16 }));
            rig.settings.set_others(others.collect());
        }
        for round in 0..ROUNDS {
            let worker = round as usize % workers;
            let rig = &mut rigs[worker];
            for &interface in rates.keys() {
                let length = 1 + (round * 31 + u64::from(interface) * 17) as usize % 100;
                rig.look_on(interface, &packets[..length]);
                *seen.entry(interface).or_default() += length as u64;
                rig.drain(|sample| {
                    assert_eq!(
                        (sample.interface, sample.rate),
                        (interface, rates[&interface])
                    );
                    *counts.entry(interface).or_default() += 1;
                });
            }
        }
        for (interface, &rate) in &rates {
            let (count, trials) = (counts[interface], seen[interface]);
            assert!(
                common::within_four_sigma(count, trials, rate),
                "{workers} workers, interface {interface}: {count} of {trials}"
            );
        }
    }
}

/// Packets of an interface and direction: those that were seen, and the samples of them.
type Direction = (u64, u64);

/// Both directions at once, between interfaces of unlike rates, on one worker and split over two: each direction of each
/// interface has its share, by itself and beside the other; whether a packet is taken going out has nothing to do with
/// whether it was taken coming in; and the pool is one for both, to the packet.
#[test]
fn both_directions_have_their_share_apart_and_one_pool_together() {
    const ROUNDS: u64 = 12_000;
    let Packets {
        packets,
        pool: _pool,
    } = mixed();
    let rates = BTreeMap::from([(1_u32, 10_u32), (2, 37), (3, 5)]);
    // The last goes out where it came in: considered once in each direction.
    let ways = [(1, 2), (2, 1), (3, 3)];
    for workers in [1, 2] {
        let mut rigs: Vec<Rig> = (0..workers)
            .map(|worker| Rig::new(1, 70 + worker as u64).in_worker(worker))
            .collect();
        for rig in &mut rigs {
            rig.settings.set_others(
                rates
                    .iter()
                    .map(|(&index, &rate)| (index, Sampling { rate, header: 16 }))
                    .collect(),
            );
        }
        let mut directions = BTreeMap::<(u32, bool), Direction>::new();
        let (mut forwarded, mut twice) = (
            BTreeMap::<(u32, u32), u64>::new(),
            BTreeMap::<(u32, u32), u64>::new(),
        );
        let mut pools = vec![BTreeMap::<u32, u64>::new(); workers];
        for round in 0..ROUNDS {
            let worker = round as usize % workers;
            let (rig, pool) = (&mut rigs[worker], &mut pools[worker]);
            for (from, to) in ways {
                let length = 1 + (round * 31 + u64::from(from) * 17) as usize % 100;
                rig.forward(from, to, &packets[..length]);
                // What goes out where it came in is the second vector there.
                let before = (
                    pool.get(&from).copied().unwrap_or(0),
                    pool.get(&to).copied().unwrap_or(0),
                );
                let out_before = if from == to {
                    before.1 + length as u64
                } else {
                    before.1
                };
                let (mut came, mut left) = (BTreeSet::new(), BTreeSet::new());
                rig.drain(|sample| {
                    let out = sample.ticket == 0;
                    let (interface, already) = if out {
                        (to, out_before)
                    } else {
                        (from, before.0)
                    };
                    assert_eq!(
                        (sample.interface, sample.input, sample.rate),
                        (interface, 0, rates[&interface])
                    );
                    assert_eq!(sample.pool, already + place(sample) as u64 + 1);
                    directions.entry((interface, out)).or_default().1 += 1;
                    assert!(
                        if out { &mut left } else { &mut came }.insert(place(sample)),
                        "each packet is considered once"
                    );
                });
                *pool.entry(from).or_default() += length as u64;
                *pool.entry(to).or_default() += length as u64;
                directions.entry((from, false)).or_default().0 += length as u64;
                directions.entry((to, true)).or_default().0 += length as u64;
                *forwarded.entry((from, to)).or_default() += length as u64;
                *twice.entry((from, to)).or_default() += came.intersection(&left).count() as u64;
            }
        }
        for (&(interface, out), &(seen, taken)) in &directions {
            let rate = rates[&interface];
            assert!(
                common::within_four_sigma(taken, seen, rate),
                "{workers} workers, {interface}, out {out}: {taken} of {seen}"
            );
        }
        // As the directions of an interface share its counter, what one has too much the other could have too little.
        for interface in rates.keys() {
            let both = [false, true].map(|out| directions[&(*interface, out)]);
            let share =
                both.map(|(seen, taken)| (taken, seen as f64 / f64::from(rates[interface])));
            assert!(
                common::surprise_of(&share) < common::UNFAIR,
                "{workers} workers, {interface}: {both:?}"
            );
        }
        for (way, &trials) in &forwarded {
            let (count, rate) = (twice[way], rates[&way.0] * rates[&way.1]);
            assert!(
                common::within_four_sigma(count, trials, rate),
                "{workers} workers, {way:?}: {count} of {trials} at both ends"
            );
        }
    }
}

/// A burst that no reader comes in between of: what a ring holds by its size is lost to nobody.
#[test]
fn a_ring_holds_a_burst_of_its_size() {
    const RATE: u32 = 1000;
    let Packets {
        packets,
        pool: _pool,
    } = mixed();
    let mut rig = Rig::with_ring(RATE, 8, RING);
    // Four and a half standard deviations below what fills it.
    let burst = ((RING as f64 - 4.5 * (RING as f64).sqrt()) * f64::from(RATE)) as u64 / 100;
    (0..burst).for_each(|_| rig.look(&packets));
    assert_eq!(rig.lost(), 0, "{} taken", rig.taken());
    (0..burst).for_each(|_| rig.look(&packets));
    assert!(rig.lost() > 0, "the ring has an end");
    assert_eq!(rig.taken(), rig.drain(|_| ()) + rig.lost());
}

/// Rings that overflow all the time: scaled by what came of the pool, not by the rate, estimates are within the bound.
#[test]
fn estimates_hold_through_rings_that_overflow() {
    const RATE: u32 = 2;
    let Packets {
        mut packets,
        pool: _pool,
    } = mixed();
    let mut random = Random::new(5);
    let mut rig = Rig::with_ring(RATE, 6, 16);
    let (mut found, mut received, mut seen) = (Found::default(), 0_u64, 0_u64);
    for _ in 0..20_000 {
        // The ring keeps the first of each vector: they are any packets only where traffic has no fixed order.
        for last in (1..packets.len()).rev() {
            packets.swap(last, random.bits() as usize % (last + 1));
        }
        rig.look(&packets);
        seen += packets.len() as u64;
        received +=
            rig.drain(|sample| note(&mut found, usize::from(sample.bytes()[2]), sample.frame));
    }
    assert_eq!(rig.taken(), received + rig.lost());
    assert!(rig.lost() > received, "the test is about loss");
    let scale = seen as f64 / received as f64;
    for (class, &(count, ..)) in found.iter().enumerate() {
        let truth = seen as f64 * SHARES[class] as f64 / 100.0;
        let bound = 4.5 * (1.0 / count as f64).sqrt();
        let off = count as f64 * scale / truth - 1.0;
        assert!(off.abs() <= bound, "class {class}: {off} of {bound}");
    }
}

/// One datagram in a hundred does not arrive. Their sequence says how many; the pool over the samples that came is the rate
/// that was in effect, 1.0101 times what was asked for, and scaled by it estimates are within the bound.
#[test]
fn estimates_hold_through_a_wire_that_loses_one_in_a_hundred() {
    const RATE: u32 = 10;
    const ROUNDS: u64 = 1_500;
    let Packets {
        packets,
        pool: _pool,
    } = mixed();
    let receiver = Receiver::new();
    let mut rig = Rig::new(RATE, 12);
    // A datagram holds one sample, so that each is lost by itself.
    let config = AgentConfig {
        datagram_bytes: 200,
        ..config(&[receiver.address()])
    };
    let agent = Agent::start(config, vec![rig.give_source()], Interfaces::of(Vec::new())).unwrap();
    let (mut random, mut found) = (Random::new(7), Found::default());
    let (mut received, mut lost, mut gaps, mut last, mut pool) = (0_u64, 0_u64, 0_u64, 0, 0);
    let mut arrive = |least: u64| {
        while received + lost < least {
            let Some(datagram) = receiver.next(Duration::from_secs(5)) else {
                panic!("{received} and {lost} of {least}")
            };
            assert_eq!(datagram.flows.len(), 1);
            if random.bits() % 100 == 0 {
                lost += 1;
                continue;
            }
            received += 1;
            gaps += u64::from(datagram.sequence - last - 1);
            last = datagram.sequence;
            let flow = &datagram.flows[0];
            pool = flow.sample.pool;
            note(&mut found, usize::from(flow.header[2]), flow.frame_length);
        }
        (received, lost, gaps, last, pool)
    };
    for _ in 0..ROUNDS {
        rig.look(&packets);
        // Whatever waits at most fills a datagram.
        arrive(rig.taken().saturating_sub(64));
    }
    wait_for("all samples", || {
        agent.stats().samples_sent[0] == rig.taken()
    });
    let sent = agent.stop().datagrams;
    let (received, lost, gaps, last, pool) = arrive(sent);
    assert_eq!((rig.lost(), sent), (0, rig.taken()));
    assert_eq!(
        gaps + (sent - u64::from(last)),
        lost,
        "every lost datagram is a gap in the sequence"
    );
    let effective = f64::from(pool) / received as f64;
    let sigma = f64::from(RATE) / (received as f64).sqrt();
    assert!(
        (effective - f64::from(RATE) / 0.99).abs() <= 4.5 * sigma,
        "{effective}"
    );
    for (class, &(count, ..)) in found.iter().enumerate() {
        let truth = f64::from(pool) * SHARES[class] as f64 / 100.0;
        let off = count as f64 * effective / truth - 1.0;
        assert!(
            off.abs() <= 4.5 * (1.0 / count as f64).sqrt(),
            "class {class}: {off}"
        );
    }
}

/// Places of samples say where in the traffic they were: the growth of the pool from one sample to another is the packets
/// between them, and with the last one the counters of the interface.
#[test]
fn pools_are_the_packets_that_went_by() {
    let Packets {
        packets,
        pool: _pool,
    } = mixed();
    let mut rig = Rig::new(7, 3);
    let (mut first, mut last, mut seen) = (None, (0, 0), 0_u64);
    for _ in 0..500 {
        rig.look(&packets);
        rig.drain(|sample| {
            let here = (seen + place(sample) as u64 + 1, sample.pool);
            first.get_or_insert(here);
            last = here;
        });
        seen += packets.len() as u64;
    }
    let first = first.unwrap();
    assert_eq!(
        (first.1, last.1),
        (first.0, last.0),
        "and is what was counted"
    );
    assert!(seen - last.1 < 200);
}
