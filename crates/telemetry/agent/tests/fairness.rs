//! Which packets the sampler takes: every one with the same chance, whatever its place in the vector,
//! the period of the traffic, and however short ago sampling began. All seeds are fixed.
//!
//! The last tests hold samplers that are unfair in well-known ways against the same statistics, so
//! that it is known that these would tell.

mod common;

use common::{Packets, Rig, UNFAIR, packets, place, surprise, surprise_of};
use weir_telemetry::random::{Gaps, Random};

/// The places in the stream of all packets taken, of `vectors` vectors of the given lengths in turn.
fn taken(rate: u32, seed: u64, vectors: u64, lengths: &[usize]) -> (Vec<u64>, u64) {
    let Packets { packets, .. } = packets(256, 64);
    let mut rig = Rig::new(rate, seed);
    let (mut places, mut start) = (Vec::new(), 0);
    for (_, &length) in (0..vectors).zip(lengths.iter().cycle()) {
        rig.look(&packets[..length]);
        rig.drain(|sample| places.push(start + place(sample) as u64));
        start += length as u64;
    }
    assert_eq!(rig.lost(), 0);
    (places, start)
}

/// How many of `places` fall on each place of a cycle.
fn classes(places: &[u64], period: u64) -> Vec<u64> {
    let mut classes = vec![0; period as usize];
    for place in places {
        classes[(place % period) as usize] += 1;
    }
    classes
}

/// Also when a vector yields many samples: rates far below, about and far above its length.
#[test]
fn every_place_in_a_vector_is_taken_as_often() {
    for (rate, vectors) in [
        (2_u32, 200_u64),
        (3, 300),
        (10, 1_000),
        (50, 5_000),
        (100, 10_000),
        (256, 25_000),
        (1000, 80_000),
        (5_000, 300_000),
    ] {
        for seed in [1, 2] {
            let (places, _) = taken(rate, seed, vectors, &[256]);
            let surprise = surprise(&classes(&places, 256));
            assert!(surprise < UNFAIR, "1:{rate}, seed {seed}: {surprise}");
        }
    }
}

#[test]
fn every_place_in_a_short_vector_is_taken_as_often() {
    for (rate, length) in [(3_u32, 7_u64), (10, 32), (10, 2), (100, 32), (40, 255)] {
        let (places, _) = taken(rate, 9, 400_000 / length, &[length as usize]);
        let surprise = surprise(&classes(&places, length));
        assert!(
            surprise < UNFAIR,
            "1:{rate} of vectors of {length}: {surprise}"
        );
    }
}

/// Traffic that repeats itself every 2 to 256 packets shows each of its packets as often. A rate equal
/// to the period, or a multiple, is what a counter without chance fails at.
#[test]
fn no_period_is_aliased() {
    for rate in [2, 16, 100, 256] {
        let samples = 256 * 40;
        let (places, _) = taken(rate, 31, samples * u64::from(rate) / 256, &[256]);
        for period in 2..=256 {
            let surprise = surprise(&classes(&places, period));
            assert!(surprise < UNFAIR, "1:{rate}, period {period}: {surprise}");
        }
    }
    for period in 2..=256_u64 {
        let (places, _) = taken(
            period as u32,
            period,
            30 * period * period / 140 + 100,
            &[1, 7, 255, 256, 181],
        );
        let surprise = surprise(&classes(&places, period));
        assert!(surprise < UNFAIR, "1:{period}, period {period}: {surprise}");
    }
}

/// Distances between samples follow the geometric law, so that what was taken says nothing about
/// what will be; two distances in a row do not know of each other.
#[test]
fn distances_are_geometric_and_independent() {
    for rate in [2_u32, 10, 100] {
        let (places, _) = taken(
            rate,
            17,
            40_000 * u64::from(rate) / 181,
            &[256, 3, 130, 256, 260 - 1 - 3],
        );
        let distances: Vec<u64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            distances.iter().all(|&distance| distance > 0),
            "no packet twice"
        );
        let surprise = surprise_of(&geometric(&distances, rate));
        assert!(surprise < UNFAIR, "1:{rate}: {surprise}");
        // Lag-one correlation of n pairs has a standard deviation of 1 / sqrt(n).
        let mean = distances.iter().sum::<u64>() as f64 / distances.len() as f64;
        let deviations: Vec<f64> = distances
            .iter()
            .map(|&distance| distance as f64 - mean)
            .collect();
        let square: f64 = deviations
            .iter()
            .map(|deviation| deviation * deviation)
            .sum();
        let product: f64 = deviations.windows(2).map(|pair| pair[0] * pair[1]).sum();
        assert!(
            (product / square).abs() < 4.0 / (distances.len() as f64).sqrt(),
            "1:{rate}: {}",
            product / square
        );
    }
}

/// How often each distance came, and how often it should; what is rarer than 50 goes into one class.
fn geometric(distances: &[u64], rate: u32) -> Vec<(u64, f64)> {
    let chance = 1.0 / f64::from(rate);
    let mut rest = distances.len() as f64;
    let mut classes = Vec::new();
    for distance in 1.. {
        let expected = rest * chance;
        if expected < 50.0 || rest - expected < 50.0 {
            let count = distances.iter().filter(|&&it| it >= distance).count() as u64;
            classes.push((count, rest));
            return classes;
        }
        classes.push((
            distances.iter().filter(|&&it| it == distance).count() as u64,
            expected,
        ));
        rest -= expected;
    }
    unreachable!()
}

/// The first packets after a start, and after a change of the rate, have the chance of all others.
#[test]
fn the_first_packets_are_as_likely_as_any() {
    let Packets { packets, .. } = packets(60, 64);
    let (mut after_start, mut after_change) = (vec![0_u64; 60], vec![0_u64; 60]);
    let starts = 20_000;
    for seed in 0..starts {
        let mut rig = Rig::new(20, seed);
        rig.look(&packets);
        rig.drain(|sample| after_start[place(sample)] += 1);
        rig.settings.set(30, 16);
        rig.look(&packets);
        rig.drain(|sample| after_change[place(sample)] += 1);
    }
    for (classes, rate) in [(after_start, 20), (after_change, 30)] {
        let surprise = surprise(&classes);
        assert!(surprise < UNFAIR, "1:{rate}: {surprise}");
        assert!(
            common::within_four_sigma(classes[0], starts, rate),
            "the very first: {} of {starts} at 1:{rate}",
            classes[0]
        );
    }
}

#[test]
fn unlike_seeds_choose_unlike_packets() {
    let (one, _) = taken(10, 1, 100, &[256]);
    let (same, _) = taken(10, 1, 100, &[256]);
    let (other, _) = taken(10, 2, 100, &[256]);
    assert_eq!(one, same);
    let common = one.iter().filter(|place| other.contains(place)).count();
    assert!(
        common < one.len() / 4,
        "{common} of {} in common",
        one.len()
    );
}

#[test]
fn gaps_reach_from_nothing_to_far_beyond_the_mean() {
    let mut gaps = Gaps::new(Random::new(3), 4);
    let drawn: Vec<u64> = (0..100_000).map(|_| gaps.pass()).collect();
    assert!((0..25).all(|gap| drawn.contains(&gap)));
    for rate in [0, 1] {
        gaps.set_rate(rate);
        assert!((0..1_000).all(|_| gaps.pass() == 0), "every packet");
    }
    gaps.set_rate(u32::MAX);
    let mean = (0..10_000).map(|_| gaps.pass() as f64).sum::<f64>() / 10_000.0;
    let expected = f64::from(u32::MAX);
    assert!((mean - expected).abs() < 4.0 * expected / 100.0, "{mean}");
}

/// Counts on from the vector's start instead of from the packet just taken.
#[test]
fn the_statistics_see_a_sampler_that_starts_over_within_a_vector() {
    for rate in [10_u64, 100] {
        let mut random = Random::new(1);
        let mut draw = || random.bits() % (2 * rate - 1) + 1;
        let (mut skip, mut classes) = (draw(), vec![0_u64; 256]);
        for _ in 0..rate * 100 {
            let mut left = 256;
            while skip <= left {
                classes[(skip - 1) as usize] += 1;
                left -= skip;
                skip = draw();
            }
            skip -= left;
        }
        assert!(surprise(&classes) > 10.0 * UNFAIR);
    }
}

#[test]
fn the_statistics_see_a_counter_without_chance_and_a_missing_packet() {
    let every_hundredth: Vec<u64> = (0..40_000).map(|n| n * 100).collect();
    assert!(surprise(&classes(&every_hundredth, 50)) > UNFAIR);
    let (mut places, _) = taken(100, 1, 10_000, &[256]);
    // One place in 256 is missed every second time.
    let mut keep = false;
    places.retain(|place| {
        keep ^= place % 256 == 200;
        place % 256 != 200 || keep
    });
    assert!(
        surprise(&classes(&places, 256)) < UNFAIR,
        "too fine for this few samples, and no false alarm"
    );
    let (mut places, _) = taken(100, 1, 100_000, &[256]);
    places.retain(|place| {
        keep ^= place % 256 == 200;
        place % 256 != 200 || keep
    });
    assert!(surprise(&classes(&places, 256)) > UNFAIR);
    let (places, _) = taken(10, 17, 10_000, &[256]);
    let uniform: Vec<u64> = places.iter().map(|place| 1 + place % 19).collect();
    assert!(surprise_of(&geometric(&uniform, 10)) > 10.0 * UNFAIR);
}
