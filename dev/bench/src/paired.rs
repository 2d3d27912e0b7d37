//! What something adds to a packet: slices with it and without it take turns, and how far their difference can be trusted.
//!
//! A machine's speed changes from one millisecond to the next, since others use its caches, its memory and its clock, and by
//! more than what is looked for here. So what is compared is cut into slices that are short beside such changes. There are
//! three kinds: with, without, and once more without. The six orders of the three make up a round; hence each kind comes as
//! often first as last, and as often behind each other one, and neither a steady drift nor what a slice leaves in the caches
//! favours any.
//!
//! A round gives two figures: what the slices with it cost more than the mean of all without, and how far apart the two kinds
//! without are. The second is the control: the same measurement, of nothing. Of each the median counts, and beside
//! it stands its error: half of the interval which holds the true median nineteen times of twenty, by ranks, so that nothing
//! need be known about how figures are spread.
//!
//! Where others have their turn on the same core, everything costs half as much again, what is measured, too. So the median is
//! of the quarter of rounds whose neighbours were quickest ([`quickest`]): such spells last for many rounds, while the round's own
//! chance has no part in the choice, which would make it look cheaper or dearer than it is. The median of all rounds is given as well.
//!
//! A turn that takes far longer than packets can is one in which the kernel, or whoever runs this machine, gave the core to
//! others. Such a slice is played again, of whichever kind it is, and counted.

use weir_buf::VECTOR;

use crate::measure::{quantile, round};
use crate::rig::Rig;

/// The three kinds, in every order.
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
    [1, 0, 2],
    [0, 2, 1],
];
/// The kind with what is measured.
const WITH: usize = 0;
/// Turns before a slice that do not count: tables of the other kind were read before.
const WARM: usize = 8;
/// A slice that was interrupted is played so often in all; the last time it counts as it is.
const MOST_PLAYED: usize = 4;

/// A figure that was found many times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Its median.
    pub(crate) median: f64,
    /// Its lower quartile.
    pub(crate) low: f64,
    /// Its upper quartile.
    pub(crate) high: f64,
    /// How far the median is from the true one, nineteen times of twenty.
    pub(crate) error: f64,
}

impl Estimate {
    /// Of these figures; sorts them.
    pub(crate) fn of(figures: &mut [f64]) -> Estimate {
        let half = 0.98 / (figures.len().max(1) as f64).sqrt();
        let mut at = |part: f64| quantile(figures, part.clamp(0.0, 1.0));
        let error = (at(0.5 + half) - at(0.5 - half)) / 2.0;
        Estimate {
            median: round(at(0.5)),
            low: round(at(0.25)),
            high: round(at(0.75)),
            error: round(error),
        }
    }
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Paired {
    /// Clocks a packet with what is measured, of each round.
    pub(crate) with: Vec<f64>,
    /// What it adds while the core is this program's.
    pub(crate) added: Estimate,
    /// The median of what it adds in all rounds.
    pub(crate) added_in_all: f64,
    /// What nothing adds.
    pub(crate) null: Estimate,
    /// Slices that were played again.
    pub(crate) repeated: u64,
}

/// So many rounds, with `turns` turns of each kind in a round.
pub(crate) fn measure(rig: &mut Rig, turns: usize, rounds: usize) -> Paired {
    let turns = slice_of(turns);
    let warm = (rig.block(turns, true) + rig.block(turns, false)) / 2.0;
    let interrupted = interrupted(warm);
    let (mut with, mut took, mut added, mut null, mut repeated) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let mut clocks = [0.0; 3];
        for kind in ORDERS.into_iter().flatten() {
            let (found, again) = slice(rig, turns, kind == WITH, interrupted);
            clocks[kind] += found / ORDERS.len() as f64;
            repeated += again;
        }
        let [on, off, other] = clocks;
        with.push(on);
        took.push(on + off + other);
        added.push(on - (off + other) / 2.0);
        null.push(off - other);
    }
    let [mut quick, mut quick_null] = [&added, &null].map(|figures| quickest(&took, figures));
    let added_in_all = round(quantile(&mut added, 0.5));
    Paired {
        with,
        added: Estimate::of(&mut quick),
        added_in_all,
        null: Estimate::of(&mut quick_null),
        repeated,
    }
}

/// Rounds on each side by which a round is chosen.
const NEIGHBOURS: usize = 2;

/// The figures of a quarter of the rounds: of those whose neighbours took least.
pub(crate) fn quickest(took: &[f64], figures: &[f64]) -> Vec<f64> {
    let around = |place: usize| {
        let (before, after) = (
            place.saturating_sub(NEIGHBOURS)..place,
            place + 1..took.len().min(place + 1 + NEIGHBOURS),
        );
        let (count, sum) = before.chain(after).fold((0, 0.0), |(count, sum), other| {
            (count + 1, sum + took[other])
        });
        sum / f64::from(count)
    };
    let mut order: Vec<(f64, f64)> = figures
        .iter()
        .enumerate()
        .map(|(place, &figure)| (around(place), figure))
        .collect();
    order.sort_by(|one, other| one.0.total_cmp(&other.0));
    order
        .iter()
        .take(took.len().div_ceil(4))
        .map(|&(_, figure)| figure)
        .collect()
}

/// Turns of a slice, when so many of each kind make up a round.
pub(crate) fn slice_of(turns: usize) -> usize {
    turns.div_ceil(ORDERS.len())
}

/// Clocks that a turn does not take unless it is interrupted, when a packet takes so many.
pub(crate) fn interrupted(clocks: f64) -> u64 {
    (clocks * 4.0 * VECTOR as f64) as u64 + 50_000
}

/// Clocks a packet of some turns without interruption, and how many were discarded.
pub(crate) fn slice(rig: &mut Rig, turns: usize, with: bool, interrupted: u64) -> (f64, u64) {
    for played in 1.. {
        (0..WARM).for_each(|_| {
            rig.turn(with);
        });
        let (mut sum, mut longest) = (0, 0);
        for _ in 0..turns {
            let clocks = rig.turn(with);
            sum += clocks;
            longest = longest.max(clocks);
        }
        if longest <= interrupted || played == MOST_PLAYED {
            return (sum as f64 / (turns * rig.size()) as f64, played as u64 - 1);
        }
    }
    (0.0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_telemetry::random::Random;

    #[test]
    fn each_kind_has_each_place_and_each_neighbour_as_often() {
        let flat: Vec<usize> = ORDERS.into_iter().flatten().collect();
        for kind in 0..3 {
            for place in 0..3 {
                assert_eq!(
                    ORDERS.iter().filter(|order| order[place] == kind).count(),
                    2
                );
            }
            let sum: usize = flat
                .iter()
                .enumerate()
                .filter(|(_, other)| **other == kind)
                .map(|(place, _)| place)
                .sum();
            assert_eq!(
                sum,
                (0..18).sum::<usize>() / 3,
                "a steady drift would favour a kind"
            );
            for other in (0..3).filter(|&other| other != kind) {
                let behind = ORDERS
                    .iter()
                    .filter(|order| order.windows(2).any(|pair| pair == [kind, other]))
                    .count();
                assert_eq!(behind, 2);
            }
        }
    }

    /// Half of the time everything costs half as much again: what is found is what it costs in the other half. And where there are no such
    /// spells, the choice does not favour rounds that look cheap.
    #[test]
    fn spells_in_which_others_had_the_core_do_not_count() {
        let mut random = Random::new(9);
        for (spells, noise) in [(true, 0.3), (false, 0.3)] {
            let (mut took, mut added) = (Vec::new(), Vec::new());
            for place in 0..4000 {
                let speed = if spells && place / 40 % 2 == 0 {
                    1.5
                } else {
                    1.0
                };
                let off = 20.0 * speed + noise * (random.unit() - 0.5);
                let more = (1.0 + noise * (random.unit() - 0.5)) * speed;
                took.push(3.0 * off + more);
                added.push(more);
            }
            let found = Estimate::of(&mut quickest(&took, &added));
            assert!((found.median - 1.0).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn few_rounds_are_enough_to_choose_from() {
        assert!(quickest(&[], &[]).is_empty());
        assert_eq!(quickest(&[1.0], &[2.0]), [2.0]);
        assert_eq!(
            quickest(&[1.0, 9.0], &[2.0, 3.0]),
            [3.0],
            "the one whose neighbour was quick"
        );
    }

    /// Nineteen of twenty intervals hold the median, also of figures with a long tail.
    #[test]
    fn the_error_is_what_it_says() {
        let mut random = Random::new(5);
        for tail in [false, true] {
            let held = (0..2000).filter(|_| {
                let mut figures: Vec<f64> = (0..61)
                    .map(|_| {
                        let unit = random.unit() - 0.5;
                        if tail {
                            unit / (0.501 - unit.abs())
                        } else {
                            unit
                        }
                    })
                    .collect();
                figures.sort_by(f64::total_cmp);
                let half = 0.98 / 61f64.sqrt();
                let (least, most) = (
                    quantile(&mut figures, 0.5 - half),
                    quantile(&mut figures, 0.5 + half),
                );
                let found = Estimate::of(&mut figures);
                assert!((found.error - (most - least) / 2.0).abs() < 0.001);
                least <= 0.0 && 0.0 <= most
            });
            let held = held.count();
            assert!((1850..=1960).contains(&held), "{held} of 2000");
        }
    }
}
