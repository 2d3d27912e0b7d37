//! The stations of a bridge domain: against a map, when full, under attack, and from several threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use weir_fib::{Heard, MacTable, Station};

const SEED: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3211];

fn station(number: u32) -> Station {
    let [a, b, c, d] = number.to_be_bytes();
    Station::new([2, 0, a, b, c, d])
}

#[derive(Clone, Debug)]
enum Operation {
    Hear(u32, u16),
    Bind(u32, u16),
    Remove(u32),
    Pass(u16),
    Age(u16),
    ForgetMember(u16),
}

fn operation() -> impl Strategy<Value = Operation> {
    let one = || 0..24u32;
    prop_oneof![
        8 => (one(), 0..4u16).prop_map(|(station, member)| Operation::Hear(station, member)),
        1 => (one(), 0..4u16).prop_map(|(station, member)| Operation::Bind(station, member)),
        1 => one().prop_map(Operation::Remove),
        2 => (0..400u16).prop_map(Operation::Pass),
        1 => (1..600u16).prop_map(Operation::Age),
        1 => (0..4u16).prop_map(Operation::ForgetMember),
    ]
}

/// What the table should hold: member, whether static, when heard.
type Oracle = HashMap<u32, (u16, bool, u32)>;

fn learned(oracle: &Oracle) -> usize {
    oracle.values().filter(|entry| !entry.1).count()
}

fn hear(oracle: &mut Oracle, number: u32, member: u16, now: u32, limit: usize) -> Heard {
    let count = learned(oracle);
    match oracle.get_mut(&number) {
        Some(entry) if entry.0 == member => {
            entry.2 = now;
            Heard::Known
        }
        Some((_, true, _)) => Heard::Bound,
        Some(entry) => {
            *entry = (member, false, now);
            Heard::Moved
        }
        None if count >= limit => Heard::Full,
        None => {
            oracle.insert(number, (member, false, now));
            Heard::New
        }
    }
}

proptest! {
    #[test]
    fn as_a_map_would(actions in prop::collection::vec(operation(), 1..200), limit in 1..30usize, began in any::<u16>()) {
        // Many lines, so that none is ever full: what happens then has a test of its own.
        let table = MacTable::new(limit as u32, 300, SEED);
        let (mut oracle, mut now) = (Oracle::new(), u32::from(began));
        for operation in actions {
            match operation {
                Operation::Hear(number, member) => {
                    let expected = hear(&mut oracle, number, member, now, limit);
                    prop_assert_eq!(table.hear(table.key(station(number)), member, now as u16), expected);
                }
                Operation::Bind(number, member) => {
                    prop_assert!(table.bind(station(number), member));
                    oracle.insert(number, (member, true, 0));
                }
                Operation::Remove(number) => prop_assert_eq!(table.remove(station(number)), oracle.remove(&number).is_some()),
                Operation::Pass(seconds) => now += u32::from(seconds),
                Operation::Age(most) => {
                    let before = oracle.len();
                    oracle.retain(|_, entry| entry.1 || now - entry.2 <= u32::from(most));
                    prop_assert_eq!(table.age(now as u16, most), before - oracle.len());
                }
                Operation::ForgetMember(member) => {
                    oracle.retain(|_, entry| entry.0 != member);
                    table.forget(|entry| entry.member == member);
                }
            }
            // Ages beyond what seconds can tell are not asked for.
            for entry in oracle.values_mut() {
                entry.2 = entry.2.max(now.saturating_sub(60_000));
            }
            if oracle.values().any(|entry| !entry.1 && now - entry.2 > 50_000) {
                break;
            }
            for number in 0..24 {
                prop_assert_eq!(table.find(table.key(station(number))), oracle.get(&number).map(|entry| entry.0), "station {}", number);
            }
            prop_assert_eq!(table.learned() as usize, learned(&oracle));
        }
        prop_assert_eq!(table.entries().count(), oracle.len());
    }

    #[test]
    fn a_frame_shows_both_stations(octets in any::<[u8; 12]>()) {
        let (to, from) = Station::pair(&octets);
        prop_assert_eq!([to.octets(), from.octets()].concat(), octets.to_vec());
        prop_assert_eq!(to, Station::new(to.octets()));
    }
}

#[test]
fn up_to_the_limit_everybody_finds_a_place() {
    for (limit, step) in [1, 2, 16, 100, 1000, 20_000]
        .into_iter()
        .flat_map(|limit| [(limit, 1), (limit, 0x9e37_79b1)])
    {
        let table = MacTable::new(limit, 0, SEED);
        let mut instead = 0;
        for number in 0..limit {
            match table.hear(table.key(station(number.wrapping_mul(step))), 1, 7) {
                Heard::New => {}
                Heard::Instead | Heard::Full => instead += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(instead * 1000 <= limit, "{instead} of {limit} did not fit");
        assert_eq!(table.learned() + instead, limit);
        let before = table.learned();
        for number in 0..10_000 {
            table.hear(table.key(station(!number)), 2, 8);
        }
        assert!(
            table.learned() <= limit && table.learned() >= before,
            "a flood neither exceeds the limit nor drives anybody out"
        );
        let known = (0..limit)
            .filter(|&number| table.find(table.key(station(number.wrapping_mul(step)))) == Some(1))
            .count();
        assert!(known as u32 + 2 * instead >= limit);
    }
}

#[test]
fn the_longest_silent_gives_way_where_lines_are_full() {
    // Two lines: twelve places.
    let table = MacTable::new(6, 0, SEED);
    assert_eq!(table.bytes(), 128);
    for number in 0..6 {
        assert_eq!(
            table.hear(table.key(station(number)), 0, number as u16),
            Heard::New
        );
    }
    assert_eq!(table.hear(table.key(station(6)), 0, 8), Heard::Full);
    for number in 100..112 {
        assert!(
            table.bind(station(number), 3),
            "static stations take what is free, then what is learned"
        );
    }
    assert!(
        !table.bind(station(200), 3),
        "twelve places are all there are"
    );
    assert_eq!(table.learned(), 0);
    assert_eq!(table.hear(table.key(station(1)), 0, 9), Heard::Full);
    assert_eq!(table.hear(table.key(station(105)), 0, 9), Heard::Bound);
    assert_eq!(table.hear(table.key(station(105)), 3, 9), Heard::Known);
}

#[test]
fn seconds_wrap_and_clocks_differ() {
    let table = MacTable::new(8, 0, SEED);
    table.hear(table.key(station(1)), 0, 65_530);
    assert_eq!(table.age(65_520, 5), 0, "heard ten seconds ahead");
    assert_eq!(table.age(4, 10), 0);
    assert_eq!(table.age(5, 10), 1);
    assert_eq!(table.find(table.key(station(1))), None);
}

#[test]
fn another_size_takes_over() {
    let (small, large) = (MacTable::new(4, 1, SEED), MacTable::new(4000, 1, [3, 9]));
    assert!(small.bind(station(9), 2));
    for number in 0..4 {
        small.hear(small.key(station(number)), number as u16, 1);
    }
    large.take_over(&small, |entry| entry.member != 3);
    let members: Vec<_> = [0, 1, 2, 3, 9]
        .into_iter()
        .map(|number| large.find(large.key(station(number))))
        .collect();
    assert_eq!(members, [Some(0), Some(1), Some(2), None, Some(2)]);
    assert_eq!(large.learned(), 3);
}

/// Station `n` is only ever behind members `n % 5` and `n % 5 + 8`. Three threads learn and move, one ages
/// and removes, and what is read is always one of the two.
#[test]
fn readers_see_what_some_writer_meant() {
    let table = MacTable::new(600, 0, SEED);
    let done = AtomicBool::new(false);
    let stations = 1000u32;
    std::thread::scope(|scope| {
        let learners: Vec<_> = (0..3u32)
            .map(|thread| {
                let table = &table;
                scope.spawn(move || {
                    let mut state = thread + 1;
                    for round in 0..50_000u32 {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let number = (state >> 8) % stations;
                        let member = (number % 5) as u16 + if state >> 31 == 0 { 0 } else { 8 };
                        table.hear(table.key(station(number)), member, (round / 1000) as u16);
                        let wanted = (state >> 4) % stations;
                        if let Some(member) = table.find(table.key(station(wanted))) {
                            assert_eq!(
                                u32::from(member % 8),
                                wanted % 5,
                                "another station's member"
                            );
                        }
                    }
                })
            })
            .collect();
        let (table, done) = (&table, &done);
        scope.spawn(move || {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                number = (number + 7) % stations;
                table.remove(station(number));
                table.age(200, 120);
                for entry in table.entries() {
                    let octets = entry.station.octets();
                    let number = u32::from_be_bytes([octets[2], octets[3], octets[4], octets[5]]);
                    assert_eq!(u32::from(entry.member % 8), number % 5);
                }
                assert!(
                    table.learned() <= 600 + 3,
                    "each thread may be one ahead for a moment"
                );
            }
        });
        learners
            .into_iter()
            .for_each(|learner| learner.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    let held = table.entries().count();
    assert_eq!(
        table.learned() as usize,
        held,
        "the count is exact when all is quiet"
    );
    // Whether any is left depends on who came last, the learners or the one that takes away.
    assert!(held <= 600);
}
