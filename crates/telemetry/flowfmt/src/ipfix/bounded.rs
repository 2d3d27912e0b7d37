//! A map that forgets what was not used for the longest time when it would become too heavy.
//!
//! Each entry has a weight (1 or more). Keys are in order: those that belong together are found without a look at the
//! others, and whoever chooses them cannot make any look slow.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

#[derive(Debug)]
struct Entry<V> {
    value: V,
    weight: usize,
    used: u64,
}

/// The map.
#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    /// By the moment of last use.
    order: BTreeMap<u64, K>,
    moment: u64,
    weight: usize,
    most: usize,
    forgotten: u64,
}

impl<K: Ord + Clone, V> Bounded<K, V> {
    /// A map of at most this weight.
    pub(super) fn new(most: usize) -> Bounded<K, V> {
        Bounded {
            entries: BTreeMap::new(),
            order: BTreeMap::new(),
            moment: 0,
            weight: 0,
            most,
            forgotten: 0,
        }
    }

    /// The value, which is now the one used last.
    pub(super) fn touch(&mut self, key: &K) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        if let Some(key) = self.order.remove(&entry.used) {
            self.moment += 1;
            entry.used = self.moment;
            self.order.insert(self.moment, key);
        }
        Some(&mut entry.value)
    }

    /// Puts a value in, in place of the one that was there.
    pub(super) fn insert(&mut self, key: K, value: V, weight: usize) {
        self.remove(&key);
        self.moment += 1;
        self.weight += weight;
        self.order.insert(self.moment, key.clone());
        self.entries.insert(
            key,
            Entry {
                value,
                weight,
                used: self.moment,
            },
        );
        while self.weight > self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.forgotten += 1;
            self.drop_entry(&oldest);
        }
    }

    /// Takes a value out.
    pub(super) fn remove(&mut self, key: &K) -> bool {
        let Some(used) = self.entries.get(key).map(|entry| entry.used) else {
            return false;
        };
        self.order.remove(&used);
        self.drop_entry(key);
        true
    }

    /// Takes out all of a range.
    pub(super) fn remove_range(&mut self, range: impl RangeBounds<K>) {
        let gone: Vec<K> = self
            .entries
            .range(range)
            .map(|(key, _)| key.clone())
            .collect();
        gone.iter().for_each(|key| _ = self.remove(key));
    }

    fn drop_entry(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.weight -= entry.weight;
        }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many were forgotten to make room.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_first() {
        let mut map = Bounded::new(10);
        map.insert(1, 'a', 4);
        map.insert(2, 'b', 4);
        assert_eq!(map.touch(&1), Some(&mut 'a'));
        map.insert(3, 'c', 4);
        assert_eq!(
            (
                map.touch(&1).copied(),
                map.touch(&2).copied(),
                map.touch(&3).copied()
            ),
            (Some('a'), None, Some('c'))
        );
        assert_eq!((map.len(), map.forgotten(), map.weight), (2, 1, 8));
        map.insert(3, 'd', 6);
        assert_eq!((map.len(), map.weight, map.forgotten()), (2, 10, 1));
        map.remove_range(2..4);
        assert_eq!((map.len(), map.weight, map.order.len()), (1, 4, 1));
        // Heavier than everything: nothing stays, itself included.
        map.insert(9, 'e', 11);
        assert_eq!((map.len(), map.weight, map.order.len()), (0, 0, 0));
    }
}
