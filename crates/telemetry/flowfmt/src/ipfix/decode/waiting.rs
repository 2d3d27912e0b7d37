//! Sets that wait for their template, each under what it waits for.
//!
//! Whoever sends chooses how many wait and how many templates come. So those that a template lets go are found without a look at
//! the others, and so is the oldest one when there is no room.

use std::collections::{BTreeMap, BTreeSet};

/// What waits, by what it waits for.
#[derive(Debug)]
pub(super) struct Waiting<K, V> {
    /// By the number of its arrival, with its weight.
    all: BTreeMap<u64, (K, usize, V)>,
    /// Those that wait for the same stand together, in the order in which they came.
    by_key: BTreeSet<(K, u64)>,
    came: u64,
    weight: usize,
}

impl<K: Ord + Clone, V> Waiting<K, V> {
    /// Nothing waits.
    pub(super) fn new() -> Waiting<K, V> {
        Waiting {
            all: BTreeMap::new(),
            by_key: BTreeSet::new(),
            came: 0,
            weight: 0,
        }
    }

    /// One more waits.
    pub(super) fn push(&mut self, key: K, weight: usize, value: V) {
        self.came += 1;
        self.weight += weight;
        self.by_key.insert((key.clone(), self.came));
        self.all.insert(self.came, (key, weight, value));
    }

    /// The oldest of those that wait for this.
    pub(super) fn pop(&mut self, key: &K) -> Option<V> {
        let number = self
            .by_key
            .range((key.clone(), 0)..=(key.clone(), u64::MAX))
            .next()?
            .1;
        self.take(number)
    }

    /// The oldest of all, when they weigh more than `most` together.
    pub(super) fn pop_beyond(&mut self, most: usize) -> Option<V> {
        if self.weight <= most {
            return None;
        }
        self.pop_oldest()
    }

    /// The oldest of all.
    pub(super) fn pop_oldest(&mut self) -> Option<V> {
        let number = *self.all.first_key_value()?.0;
        self.take(number)
    }

    fn take(&mut self, number: u64) -> Option<V> {
        let (key, weight, value) = self.all.remove(&number)?;
        self.weight -= weight;
        self.by_key.remove(&(key, number));
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn those_of_a_key_leave_in_order_and_the_oldest_of_all_when_there_is_no_room() {
        let mut waiting = Waiting::new();
        for (key, weight, value) in [(1, 5, 'a'), (2, 1, 'b'), (1, 2, 'c'), (3, 2, 'd')] {
            waiting.push(key, weight, value);
        }
        assert_eq!(
            (
                waiting.pop_beyond(10),
                waiting.pop_beyond(9),
                waiting.pop_beyond(9)
            ),
            (None, Some('a'), None)
        );
        waiting.push(1, 1, 'e');
        assert_eq!(
            [
                waiting.pop(&1),
                waiting.pop(&1),
                waiting.pop(&1),
                waiting.pop(&9)
            ],
            [Some('c'), Some('e'), None, None]
        );
        assert_eq!(
            (waiting.weight, waiting.all.len(), waiting.by_key.len()),
            (3, 2, 2)
        );
        assert_eq!(
            [
                waiting.pop_oldest(),
                waiting.pop_oldest(),
                waiting.pop_oldest()
            ],
            [Some('b'), Some('d'), None]
        );
        assert_eq!((waiting.weight, waiting.by_key.len()), (0, 0));
    }

    thread_local! { static COMPARED: Cell<u64> = const { Cell::new(0) }; }

    /// A key that counts how often keys were looked at.
    #[derive(Clone, PartialEq, Eq)]
    struct Counting(u32);

    impl Ord for Counting {
        fn cmp(&self, other: &Counting) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counting {
        fn partial_cmp(&self, other: &Counting) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    /// What a hostile sender can do: as many sets as there is room for, and templates that let go one each, or none.
    #[test]
    fn a_template_looks_at_few_of_those_that_wait() {
        const MANY: u32 = 8192;
        let mut waiting = Waiting::new();
        (0..MANY).for_each(|number| waiting.push(Counting(number), 1, number));
        COMPARED.set(0);
        for number in 0..2 * MANY {
            let number = number.wrapping_mul(0x9e5) % (2 * MANY);
            assert_eq!(
                waiting.pop(&Counting(number)),
                (number < MANY).then_some(number)
            );
        }
        // A tree of 8192: 13 looks down to each of the two ends of a range, as many to take it out, and some beside them.
        let each = COMPARED.get() / u64::from(2 * MANY);
        assert!(each < 200, "{each}");
    }
}
