//! Drops of interfaces that were taken away. They stay in the balance and in `show errors`, under the interface's name.
//!
//! The number of names is bounded: a router that makes and deletes sub-interfaces all day keeps the last names apart and
//! adds up the oldest under one. Runs on the control thread.

use std::collections::{BTreeMap, VecDeque};

/// Names that are kept apart.
const NAMES: usize = 256;
/// The number under which the drops of the oldest are; those of the others follow downwards. No interface has such a number.
pub(crate) const FIRST: u32 = u32::MAX;

/// Counts by worker and place in the drop map.
type Counts = BTreeMap<(usize, usize), u64>;

/// The drop counters of interfaces that were taken away.
#[derive(Debug, Default)]
pub(crate) struct DropsOfTheGone {
    /// Of those whose names are not kept any more.
    oldest: Counts,
    /// How many names were given up: the number of a name never changes.
    given_up: u32,
    names: VecDeque<(Box<str>, Counts)>,
}

impl DropsOfTheGone {
    pub(crate) fn add(&mut self, name: &str, worker: usize, place: usize, count: u64) {
        let position = self.names.iter().position(|(known, _)| **known == *name);
        let counts = match position.and_then(|position| self.names.get_mut(position)) {
            Some((_, counts)) => counts,
            None => {
                if self.names.len() == NAMES
                    && let Some((_, counts)) = self.names.pop_front()
                {
                    self.given_up += 1;
                    for (key, count) in counts {
                        *self.oldest.entry(key).or_default() += count;
                    }
                }
                self.names.push_back((name.into(), Counts::new()));
                match self.names.back_mut() {
                    Some((_, counts)) => counts,
                    None => return,
                }
            }
        };
        *counts.entry((worker, place)).or_default() += count;
    }

    /// Number, worker, place and count of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, usize, usize, u64)> {
        let numbers = (self.given_up + 1..).map(|number| FIRST - number);
        let named = numbers.zip(self.names.iter().map(|(_, counts)| counts));
        std::iter::once((FIRST, &self.oldest))
            .chain(named)
            .flat_map(|(number, counts)| {
                counts
                    .iter()
                    .map(move |(&(worker, place), &count)| (number, worker, place, count))
            })
    }

    /// What the interface of a number was called: nothing when its name was given up.
    pub(crate) fn kept_name(&self, number: u32) -> Option<&str> {
        if number == FIRST {
            return Some("");
        }
        let position = (FIRST - number).checked_sub(self.given_up + 1)?;
        let (name, _) = self.names.get(position as usize)?;
        Some(name)
    }

    /// The name for people.
    pub(crate) fn name(&self, number: u32) -> Option<String> {
        match self.kept_name(number)? {
            "" => Some("(deleted)".to_owned()),
            name => Some(format!("{name} (deleted)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_stay_under_the_name_and_names_are_bounded() {
        let mut gone = DropsOfTheGone::default();
        gone.add("xe0.1", 0, 7, 3);
        gone.add("xe0.1", 0, 7, 2);
        gone.add("xe0.2", 1, 7, 1);
        let named = |gone: &DropsOfTheGone| -> Vec<_> {
            gone.iter()
                .map(|(number, worker, place, count)| {
                    (gone.name(number).unwrap(), worker, place, count)
                })
                .collect()
        };
        let row = |name: &str, worker, count| (name.to_owned(), worker, 7, count);
        assert_eq!(
            named(&gone),
            [row("xe0.1 (deleted)", 0, 5), row("xe0.2 (deleted)", 1, 1)]
        );
        for number in 0..300 {
            gone.add(&format!("xe1.{number}"), 0, 7, 1);
        }
        let rows = named(&gone);
        // The oldest, of which two workers had drops, and those that have names.
        assert_eq!(rows.len(), 2 + NAMES);
        assert_eq!(rows[1], row("(deleted)", 1, 1));
        assert_eq!(rows.iter().map(|row| row.3).sum::<u64>(), 306);
        assert_eq!(rows.last().unwrap().0, "xe1.299 (deleted)");
        assert_eq!((gone.name(0), gone.name(5)), (None, None));
    }
}
