//! What a load is for a goal: the draft's load classification.

use super::{Goal, Trial};

/// What a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It meets the goal.
    Lower,
    /// It fails the goal.
    Upper,
    /// More trials are needed.
    Undecided,
}

/// Classifies a load from all trials made at it.
///
/// Full-length trials count with their duration. Short trials with too much loss count against the
/// load as far as short trials with little loss do not outweigh them; short trials with little loss
/// never decide for it.
#[must_use]
pub fn classify<'t>(goal: &Goal, trials: impl Iterator<Item = &'t Trial>) -> Class {
    let (mut full_low, mut full_high, mut short_low, mut short_high) = (0.0, 0.0, 0.0, 0.0);
    for trial in trials.filter(|trial| trial.spoilt.is_none()) {
        let full = trial.duration >= goal.final_duration * 0.999_999;
        let high = trial.loss_ratio() > goal.loss_ratio;
        let sum = match (full, high) {
            (true, false) => &mut full_low,
            (true, true) => &mut full_high,
            (false, false) => &mut short_low,
            (false, true) => &mut short_high,
        };
        *sum += trial.duration;
    }
    let balancing = if goal.exceed_ratio >= 1.0 {
        f64::INFINITY
    } else {
        short_low * goal.exceed_ratio / (1.0 - goal.exceed_ratio)
    };
    let effective_high = full_high + f64::max(0.0, short_high - balancing);
    let whole = f64::max(full_low + effective_high, goal.duration_sum);
    // A tolerance for sums of durations, far below any trial.
    let allowed = whole * goal.exceed_ratio + 1e-9;
    if whole - full_low <= allowed {
        Class::Lower
    } else if effective_high > allowed {
        Class::Upper
    } else {
        Class::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(duration: f64, lost: u64) -> Trial {
        Trial {
            load: 1000.0,
            duration,
            offered: 1000,
            sent: 1000,
            lost,
            ..Trial::default()
        }
    }

    fn class(goal: &Goal, trials: &[Trial]) -> Class {
        classify(goal, trials.iter())
    }

    /// Worked out by hand from the draft's formulas.
    #[test]
    fn one_full_trial_decides_a_strict_goal() {
        let goal = Goal::no_drop(1.0);
        assert_eq!(class(&goal, &[]), Class::Undecided);
        assert_eq!(class(&goal, &[trial(0.25, 0)]), Class::Undecided);
        assert_eq!(class(&goal, &[trial(0.25, 1)]), Class::Upper);
        assert_eq!(class(&goal, &[trial(1.0, 0)]), Class::Lower);
        assert_eq!(class(&goal, &[trial(1.0, 0), trial(1.0, 1)]), Class::Upper);
        let spoilt = Trial {
            spoilt: Some("steal".into()),
            ..trial(1.0, 9)
        };
        assert_eq!(class(&goal, &[spoilt]), Class::Undecided);
    }

    #[test]
    fn half_of_the_time_may_exceed() {
        let goal = Goal {
            exceed_ratio: 0.5,
            duration_sum: 4.0,
            ..Goal::no_drop(1.0)
        };
        assert_eq!(class(&goal, &[trial(1.0, 0)]), Class::Undecided);
        assert_eq!(class(&goal, &[trial(1.0, 0), trial(1.0, 0)]), Class::Lower);
        assert_eq!(
            class(&goal, &[trial(1.0, 5), trial(1.0, 5)]),
            Class::Undecided
        );
        assert_eq!(
            class(&goal, &[trial(1.0, 5), trial(1.0, 5), trial(1.0, 5)]),
            Class::Upper
        );
        // Short trials with loss are balanced by short trials without.
        assert_eq!(
            class(&goal, &[trial(0.9, 5), trial(0.9, 5), trial(0.9, 5)]),
            Class::Upper
        );
        let balanced = [trial(0.9, 5), trial(0.9, 5), trial(0.9, 5), trial(0.9, 0)];
        assert_eq!(class(&goal, &balanced), Class::Undecided);
    }
}
