//! Words that one thread writes and others read without waiting, all or nothing: a version tells a reader that it
//! saw words of two moments.
//!
//! A version is odd while the words can be read, and even while they are written or say nothing; so zeroed memory says
//! nothing. The words themselves are atomics, read and written relaxed. A reader that finds the version even or changed
//! asks elsewhere; nobody tries again here. Versions come round after four thousand million changes, all of which a reader
//! would have to sleep through between two loads.

use crate::sync::atomic::{AtomicU32, Ordering, fence};

/// Before words are read: the version, unless they cannot be read now.
#[inline(always)]
#[must_use]
pub fn begin(version: &AtomicU32) -> Option<u32> {
    let seen = version.load(Ordering::Acquire);
    (seen & 1 != 0).then_some(seen)
}

/// After they were: whether they belong together, when `seen` is what [`begin`] gave.
#[inline(always)]
#[must_use]
pub fn is_still(version: &AtomicU32, seen: u32) -> bool {
    fence(Ordering::Acquire);
    version.load(Ordering::Relaxed) == seen
}

/// Whether words can be read now.
#[must_use]
pub fn is_open(version: &AtomicU32) -> bool {
    version.load(Ordering::Relaxed) & 1 != 0
}

/// Before words are written: nobody takes what is read from now on for true. For the one writer.
pub fn close(version: &AtomicU32) {
    let seen = version.load(Ordering::Relaxed);
    if seen & 1 != 0 {
        version.store(seen.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
    }
}

/// After they were, when they were closed before. For the one writer.
pub fn open(version: &AtomicU32) {
    version.store(version.load(Ordering::Relaxed) | 1, Ordering::Release);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_read_while_open() {
        let version = AtomicU32::new(0);
        assert_eq!(begin(&version), None);
        close(&version);
        open(&version);
        let seen = begin(&version).unwrap();
        assert!(is_open(&version) && is_still(&version, seen));
        close(&version);
        assert!(!is_open(&version) && !is_still(&version, seen) && begin(&version).is_none());
        open(&version);
        assert!(!is_still(&version, seen) && begin(&version).is_some());
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;

    use super::*;

    #[test]
    fn words_of_two_moments_are_not_taken_for_one() {
        loom::model(|| {
            let shared = Arc::new((AtomicU32::new(1), AtomicU32::new(0), AtomicU32::new(0)));
            let writers = shared.clone();
            let thread = loom::thread::spawn(move || {
                let (version, one, other) = &*writers;
                for n in 1..=2 {
                    close(version);
                    one.store(n, Ordering::Relaxed);
                    other.store(n, Ordering::Relaxed);
                    open(version);
                }
            });
            let (version, one, other) = &*shared;
            if let Some(seen) = begin(version) {
                let both = (one.load(Ordering::Relaxed), other.load(Ordering::Relaxed));
                assert!(!is_still(version, seen) || both.0 == both.1, "{both:?}");
            }
            thread.join().unwrap();
            assert!(begin(version).is_some_and(|seen| is_still(version, seen)));
        });
    }
}
