//! Counters with one writer.
//!
//! An addition is a plain load and store: no locked instruction, since nobody else writes. Readers see
//! a value that was true a moment ago. The block around several counters decides who shares lines.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread changes and any thread reads.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the one writer may call this, others would lose counts (not memory safety).
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(n),
            Ordering::Relaxed,
        );
    }

    /// Sets a level.
    #[inline(always)]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// The value.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Counter;

    #[test]
    fn one_writes_others_read() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100_000).for_each(|_| counter.add(1)));
            scope.spawn(|| {
                let mut last = 0;
                for _ in 0..1000 {
                    let now = counter.get();
                    assert!(now >= last);
                    last = now;
                }
            });
        });
        assert_eq!(counter.get(), 100_000);
        counter.set(7);
        assert_eq!(counter.get(), 7);
    }
}
