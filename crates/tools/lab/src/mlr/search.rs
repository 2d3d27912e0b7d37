//! Which loads are tried, in which order.
//!
//! First one trial at the highest load, for the forwarding rate there: the answer is near it for most
//! devices. Then, for each target of each goal, coarse targets before fine ones: probe the edges of
//! the target's width around the expected rate, and when the bounds are known, halve the interval
//! between them. A load below a failed one counts only when the failed one is above it, so that an
//! accidental success above a failure does not mislead.

use super::{Class, Found, Goal, Limits, Measurer, Search, Trial, classify};
use crate::error::LabError;

/// Why a search ended early.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// A trial failed.
    #[error(transparent)]
    Trial(#[from] LabError),
    /// The same trial was spoilt again and again.
    #[error(
        "trials at {load:.0} packets/s were spoilt {times} times in a row ({why}): free the machine's cores and repeat"
    )]
    Noisy {
        /// The load.
        load: f64,
        /// How often.
        times: usize,
        /// What spoilt the last one.
        why: String,
    },
    /// More trials than allowed.
    #[error("{trials} trials did not decide the search")]
    TooMany {
        /// How many.
        trials: usize,
    },
    /// The limits or a goal make no sense.
    #[error("{0}")]
    Impossible(String),
}

/// Widths of a goal's targets, coarsest first, as multiples of the final width.
const WIDTHS: [f64; 3] = [4.0, 2.0, 1.0];

struct Searcher<'m, M: Measurer> {
    measurer: &'m mut M,
    limits: Limits,
    trials: Vec<Trial>,
}

/// Searches for all goals.
///
/// # Errors
/// See [`SearchError`].
pub fn search<M: Measurer>(
    goals: &[Goal],
    limits: Limits,
    measurer: &mut M,
) -> Result<Search, SearchError> {
    check(goals, &limits)?;
    let mut searcher = Searcher {
        measurer,
        limits,
        trials: Vec::new(),
    };
    let shortest = goals
        .iter()
        .map(|goal| goal.initial_duration)
        .fold(f64::INFINITY, f64::min);
    // The warm-up at full load: its loss is ignored by goals whose trials are longer.
    let seed = searcher.trial(limits.max_load, shortest)?.forwarded();
    for goal in goals {
        let steps = WIDTHS.len() as f64 - 1.0;
        for (number, factor) in WIDTHS.into_iter().enumerate() {
            let share = (goal.final_duration / goal.initial_duration).powf(number as f64 / steps);
            let duration = (goal.initial_duration * share).min(goal.final_duration);
            // Coarse targets are decided by one short trial.
            let target = if factor > 1.0 {
                Goal {
                    final_duration: duration,
                    duration_sum: duration,
                    width: goal.width * factor,
                    ..goal.clone()
                }
            } else {
                goal.clone()
            };
            searcher.target(&target, seed)?;
        }
    }
    let found = goals.iter().map(|goal| searcher.found(goal)).collect();
    Ok(Search {
        found,
        trials: searcher.trials,
    })
}

fn check(goals: &[Goal], limits: &Limits) -> Result<(), SearchError> {
    let wrong = |text: &str| Err(SearchError::Impossible(text.to_owned()));
    if goals.is_empty() {
        return wrong("a search needs at least one goal");
    }
    if !(limits.min_load > 0.0 && limits.min_load < limits.max_load && limits.max_load.is_finite())
    {
        return wrong("the lowest load must be above 0 and below the highest");
    }
    for goal in goals {
        let ratios =
            (0.0..1.0).contains(&goal.loss_ratio) && (0.0..1.0).contains(&goal.exceed_ratio);
        let times = goal.initial_duration > 0.0
            && goal.initial_duration <= goal.final_duration
            && goal.final_duration <= goal.duration_sum;
        if !(ratios && times && goal.width > 0.0 && goal.width < 1.0) {
            return wrong(
                "a goal needs ratios from 0 to below 1, a width between 0 and 1, and initial duration <= final duration <= duration sum",
            );
        }
    }
    Ok(())
}

impl<M: Measurer> Searcher<'_, M> {
    /// Makes a trial that counts: spoilt ones are kept in the list and repeated.
    fn trial(&mut self, load: f64, duration: f64) -> Result<Trial, SearchError> {
        for repeat in 0.. {
            if self.trials.len() >= self.limits.most_trials {
                return Err(SearchError::TooMany {
                    trials: self.trials.len(),
                });
            }
            let trial = self.measurer.measure(load, duration)?;
            // The load is what was asked for, so that trials of one load are found again.
            let trial = Trial { load, ..trial };
            self.trials.push(trial.clone());
            match &trial.spoilt {
                None => return Ok(trial),
                Some(why) if repeat >= self.limits.most_repeats => {
                    return Err(SearchError::Noisy {
                        load,
                        times: repeat + 1,
                        why: why.clone(),
                    });
                }
                Some(_) => {}
            }
        }
        unreachable!("the loop above has no end")
    }

    fn class(&self, goal: &Goal, load: f64) -> Class {
        classify(goal, self.trials.iter().filter(|trial| trial.load == load))
    }

    /// Tries a load until it is classified.
    fn decide(&mut self, goal: &Goal, load: f64) -> Result<Class, SearchError> {
        loop {
            match self.class(goal, load) {
                Class::Undecided => self.trial(load, goal.final_duration)?,
                class => return Ok(class),
            };
        }
    }

    /// The relevant bounds: the lowest upper bound, and the highest lower bound below it.
    fn bounds(&self, goal: &Goal) -> (Option<f64>, Option<f64>) {
        let loads = || self.trials.iter().map(|trial| trial.load);
        let upper = loads()
            .filter(|load| self.class(goal, *load) == Class::Upper)
            .reduce(f64::min);
        let lower = loads()
            .filter(|load| {
                upper.is_none_or(|upper| *load < upper) && self.class(goal, *load) == Class::Lower
            })
            .reduce(f64::max);
        (lower, upper)
    }

    fn target(&mut self, goal: &Goal, seed: f64) -> Result<(), SearchError> {
        let Limits {
            min_load, max_load, ..
        } = self.limits;
        let mut expansion = 1.0;
        loop {
            let (lower, upper) = self.bounds(goal);
            let load = match (lower, upper) {
                (Some(lower), Some(upper)) if (upper - lower) <= upper * goal.width * 1.000_001 => {
                    return Ok(());
                }
                (Some(lower), Some(upper)) => {
                    // Geometric halving, by whole widths.
                    let widths = ((upper / lower).ln() / -(1.0 - goal.width).ln())
                        .ceil()
                        .max(2.0);
                    let down = (widths / 2.0).floor().max(1.0);
                    (upper * (1.0 - goal.width).powf(down))
                        .clamp(lower * 1.000_000_1, upper * 0.999_999_9)
                }
                (Some(lower), None) if lower >= max_load => return Ok(()),
                (None, Some(upper)) if upper <= min_load => return Ok(()),
                (None, None) => (seed * (1.0 - goal.width / 2.0)).clamp(min_load, max_load),
                (Some(lower), None) => (lower / (1.0 - goal.width).powf(expansion)).min(max_load),
                (None, Some(upper)) => {
                    let step = upper * (1.0 - goal.width).powf(expansion);
                    // The forwarding rate at full load is the best guess far below the upper bound.
                    let guess = seed * (1.0 - goal.width / 2.0);
                    let untried = !self.trials.iter().any(|trial| trial.load == guess);
                    if guess < step && untried { guess } else { step }.max(min_load)
                }
            };
            // Bounds of a coarser target of this goal are tried again first, at full length.
            let known = self.candidate(goal, lower, upper);
            let before = (lower.is_some(), upper.is_some());
            self.decide(goal, known.unwrap_or(load))?;
            let (lower, upper) = self.bounds(goal);
            expansion = if (lower.is_some(), upper.is_some()) == before && known.is_none() {
                expansion * 2.0
            } else {
                1.0
            };
        }
    }

    /// A load tried before, not decided for this goal, whose trials so far met it: the highest between the bounds.
    fn candidate(&self, goal: &Goal, lower: Option<f64>, upper: Option<f64>) -> Option<f64> {
        let met = |load: f64| {
            let mut trials = self
                .trials
                .iter()
                .filter(|trial| trial.load == load && trial.spoilt.is_none())
                .peekable();
            trials.peek().is_some() && trials.all(|trial| trial.loss_ratio() <= goal.loss_ratio)
        };
        self.trials
            .iter()
            .map(|trial| trial.load)
            .filter(|load| {
                upper.is_none_or(|upper| *load < upper) && lower.is_none_or(|lower| *load > lower)
            })
            .filter(|load| self.class(goal, *load) == Class::Undecided && met(*load))
            .reduce(f64::max)
    }

    fn found(&self, goal: &Goal) -> Found {
        let (lower, upper) = self.bounds(goal);
        Found {
            goal: goal.clone(),
            lower,
            upper,
            conditional_throughput: lower.and_then(|load| self.throughput(goal, load)),
        }
    }

    /// The load times one less the loss that the exceed ratio's quantile of full-length trials has.
    fn throughput(&self, goal: &Goal, load: f64) -> Option<f64> {
        let full = |trial: &&Trial| {
            trial.load == load
                && trial.spoilt.is_none()
                && trial.duration >= goal.final_duration * 0.999_999
        };
        let mut trials: Vec<_> = self
            .trials
            .iter()
            .filter(full)
            .map(|trial| (trial.loss_ratio(), trial.duration))
            .collect();
        trials.sort_by(|a, b| a.0.total_cmp(&b.0));
        let whole = trials
            .iter()
            .map(|(_, duration)| duration)
            .sum::<f64>()
            .max(goal.duration_sum);
        let mut left = whole * (1.0 - goal.exceed_ratio);
        for (loss, duration) in trials {
            left -= duration;
            if left <= 1e-9 {
                return Some(load * (1.0 - loss));
            }
        }
        None
    }
}
