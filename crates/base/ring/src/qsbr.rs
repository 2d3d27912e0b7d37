//! Tables replaced while workers read them: quiescent-state reclamation.
//!
//! A [`Domain`] has an epoch and one place per reader. A reader is offline (it reads nothing: it
//! sleeps, or has ended) or online with the epoch that it saw at its last quiescent state. The writer
//! publishes a new value, advances the epoch and keeps the old value until every online reader has
//! announced that epoch; then nobody can still hold a reference to it.
//!
//! The borrow checker does the reader's half of the proof: a reference that [`Published::load`] gives
//! lives as long as a [`Guard`], and a guard borrows the [`Reader`] so that [`Reader::quiesce`] and
//! [`Reader::offline`] cannot be called before it is gone.
//!
//! A worker's turn costs one load and one store. Nothing waits for anybody: a reader that never comes
//! to rest only makes retired values wait, which [`Domain::waiting`] shows.

#![expect(
    unsafe_code,
    reason = "a pointer is shared and freed by the protocol above; each block says why it is sound"
)]

use crate::Padded;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
use std::sync::Mutex;

const OFFLINE: u64 = 0;

struct Place {
    taken: AtomicBool,
    /// Epoch announced last; [`OFFLINE`] while the reader reads nothing.
    seen: AtomicU64,
}

struct Inner {
    epoch: AtomicU64,
    places: Box<[Padded<Place>]>,
    retired: Mutex<Vec<(u64, Box<dyn Send>)>>,
}

/// Readers, writers and what waits to be freed. Cloning gives another handle.
#[derive(Clone)]
pub struct Domain(Arc<Inner>);

/// A mark in a domain's time, from [`Domain::ticket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// All places for readers are taken.
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyReaders;

impl std::fmt::Display for TooManyReaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("more table readers than the router was made for")
    }
}

impl std::error::Error for TooManyReaders {}

impl Domain {
    /// A domain for up to `readers` readers.
    #[must_use]
    pub fn new(readers: usize) -> Domain {
        let place = || {
            Padded(Place {
                taken: AtomicBool::new(false),
                seen: AtomicU64::new(OFFLINE),
            })
        };
        Domain(Arc::new(Inner {
            epoch: AtomicU64::new(1),
            places: (0..readers).map(|_| place()).collect(),
            retired: Mutex::new(Vec::new()),
        }))
    }

    /// Makes a reader, offline at first.
    ///
    /// # Errors
    /// When there are as many as the domain was made for.
    pub fn register(&self) -> Result<Reader, TooManyReaders> {
        for (number, place) in self.0.places.iter().enumerate() {
            if place
                .taken
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return Ok(Reader {
                    domain: self.clone(),
                    number,
                });
            }
        }
        Err(TooManyReaders)
    }

    /// Keeps `value` until no reader can still see it. It must already be unreachable for new readers.
    pub fn retire(&self, value: Box<dyn Send>) {
        // The value was unlinked before this advance; a reader that announces the new epoch, or
        // comes online later, can only find its successor.
        let Ticket(epoch) = self.ticket();
        self.0
            .retired
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push((epoch, value));
    }

    /// A mark in time for what is not a box: take it after unlinking something, and reuse that thing
    /// when [`Domain::passed`] says that every reader has passed the mark.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        Ticket(self.0.epoch.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Whether no reader can still see what was unlinked before `ticket` was taken.
    #[must_use]
    pub fn passed(&self, ticket: Ticket) -> bool {
        self.oldest().is_none_or(|oldest| ticket.0 <= oldest)
    }

    /// The epoch that every online reader has announced; `None` when all are offline.
    fn oldest(&self) -> Option<u64> {
        // Pairs with the fence in `quiesce`: either its announcement is seen below, or its reads see
        // what was unlinked before this.
        fence(Ordering::SeqCst);
        self.0
            .places
            .iter()
            .map(|place| place.seen.load(Ordering::Acquire))
            .filter(|&seen| seen != OFFLINE)
            .min()
    }

    /// Frees what all readers have passed; returns how many values.
    pub fn reclaim(&self) -> usize {
        let oldest = self.oldest();
        let free: Vec<_> = {
            let mut retired = self
                .0
                .retired
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let split = retired
                .iter()
                .take_while(|(epoch, _)| oldest.is_none_or(|oldest| *epoch <= oldest))
                .count();
            retired.drain(..split).collect()
        };
        free.len()
    }

    /// How many retired values wait for a reader.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0
            .retired
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .len()
    }
}

/// One thread that reads published tables.
pub struct Reader {
    domain: Domain,
    number: usize,
}

impl Reader {
    /// Announces that no reference from before is held, and that reading begins or goes on. Call it
    /// once a turn.
    #[inline]
    pub fn quiesce(&mut self) {
        let place = &self.domain.0.places[self.number];
        // Acquire: whoever announces an epoch sees what was unlinked before it began.
        let epoch = self.domain.0.epoch.load(Ordering::Acquire);
        if place.seen.load(Ordering::Relaxed) != epoch {
            // Release: what was read before the announcement was read before anything is freed for it.
            place.seen.store(epoch, Ordering::Release);
            // The announcement must be visible before any table pointer is read.
            fence(Ordering::SeqCst);
        }
    }

    /// Announces that nothing is read until the next [`Reader::quiesce`].
    pub fn offline(&mut self) {
        self.domain.0.places[self.number]
            .seen
            .store(OFFLINE, Ordering::Release);
    }

    /// The right to read. `None` while offline.
    #[inline]
    #[must_use]
    pub fn guard(&self) -> Option<Guard<'_>> {
        let online = self.domain.0.places[self.number]
            .seen
            .load(Ordering::Relaxed)
            != OFFLINE;
        online.then_some(Guard { reader: self })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.offline();
        self.domain.0.places[self.number]
            .taken
            .store(false, Ordering::Release);
    }
}

/// Proof that its reader is online and will not announce a quiescent state while this lives.
#[derive(Clone, Copy)]
pub struct Guard<'r> {
    reader: &'r Reader,
}

/// A value that readers see through a guard and one writer replaces.
pub struct Published<T: Send + 'static> {
    domain: Domain,
    value: AtomicPtr<T>,
}

// SAFETY: the pointer is owned by this cell; readers on other threads get `&T` (T: Sync) and the
// retired box is freed on whichever thread reclaims (T: Send).
unsafe impl<T: Send + Sync> Sync for Published<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Published<T> {}

impl<T: Send + 'static> Published<T> {
    /// Publishes a first value.
    #[must_use]
    pub fn new(domain: &Domain, value: Box<T>) -> Published<T> {
        Published {
            domain: domain.clone(),
            value: AtomicPtr::new(Box::into_raw(value)),
        }
    }

    /// The value as of now.
    ///
    /// # Panics
    /// When the guard belongs to another domain: a mistake of the programmer, never of input.
    #[inline]
    #[must_use]
    pub fn load<'g>(&'g self, guard: &Guard<'g>) -> &'g T {
        assert!(
            std::ptr::eq(&raw const *guard.reader.domain.0, &raw const *self.domain.0),
            "guard of another domain"
        );
        let value = self.value.load(Ordering::Acquire);
        // SAFETY: the pointer came from a box. It is freed only after it was replaced and every
        // online reader of this domain announced a later epoch; the guard's reader is online and
        // cannot announce one while the guard, and so 'g, lives.
        unsafe { &*value }
    }

    /// Replaces the value; the old one is freed once no reader can see it (`Domain::reclaim`).
    pub fn publish(&self, value: Box<T>) {
        let old = self.value.swap(Box::into_raw(value), Ordering::AcqRel);
        self.domain.retire(Box::new(Unlinked(old)));
    }
}

/// A value that readers may still see. It becomes a box, which claims to be the only way to its
/// content, no sooner than it is freed.
struct Unlinked<T>(*mut T);

// SAFETY: it owns the value and gives no access to it; T may be dropped on another thread.
unsafe impl<T: Send> Send for Unlinked<T> {}

impl<T> Drop for Unlinked<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box and was unlinked by a swap, so this is its only owner;
        // the domain drops it when every reader has passed, or at the end when no reader is left
        // (a reader keeps the domain alive).
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl<T: Send + 'static> Drop for Published<T> {
    fn drop(&mut self) {
        let value = self.value.load(Ordering::Acquire);
        // SAFETY: the pointer came from a box; nobody can load it any more, since references from
        // `load` borrow this cell.
        drop(unsafe { Box::from_raw(value) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Noted(u32, std::sync::Arc<AtomicUsize>);
    impl Drop for Noted {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::AcqRel);
        }
    }

    #[test]
    fn old_values_wait_for_online_readers_only() {
        let freed = std::sync::Arc::new(AtomicUsize::new(0));
        let domain = Domain::new(2);
        let cell = Published::new(&domain, Box::new(Noted(1, freed.clone())));
        let (mut awake, mut asleep) = (domain.register().unwrap(), domain.register().unwrap());
        assert_eq!(domain.register().err(), Some(TooManyReaders));
        assert!(awake.guard().is_none());
        awake.quiesce();
        asleep.quiesce();
        asleep.offline();
        let guard = awake.guard().unwrap();
        let old = cell.load(&guard);
        cell.publish(Box::new(Noted(2, freed.clone())));
        assert_eq!((old.0, cell.load(&guard).0), (1, 2));
        assert_eq!((domain.reclaim(), domain.waiting()), (0, 1));
        awake.quiesce();
        assert_eq!((domain.reclaim(), freed.load(Ordering::SeqCst)), (1, 1));
        drop(asleep);
        assert!(domain.register().is_ok());
        drop(cell);
        assert_eq!(freed.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn tickets_wait_for_online_readers_only() {
        let domain = Domain::new(1);
        let first = domain.ticket();
        assert!(domain.passed(first));
        let mut reader = domain.register().unwrap();
        reader.quiesce();
        let second = domain.ticket();
        assert!(first < second && domain.passed(first) && !domain.passed(second));
        reader.quiesce();
        assert!(domain.passed(second));
        let third = domain.ticket();
        reader.offline();
        assert!(domain.passed(third));
    }

    #[test]
    #[should_panic(expected = "another domain")]
    fn a_guard_of_another_domain_is_refused() {
        let (one, other) = (Domain::new(1), Domain::new(1));
        let cell = Published::new(&one, Box::new(1));
        let mut reader = other.register().unwrap();
        reader.quiesce();
        let _ = cell.load(&reader.guard().unwrap());
    }

    #[test]
    fn readers_and_writer_at_full_speed() {
        let domain = Domain::new(2);
        let cell = Published::new(&domain, Box::new(vec![0u64; 64]));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let mut reader = domain.register().unwrap();
                let cell = &cell;
                scope.spawn(move || {
                    for round in 0..20_000 {
                        reader.quiesce();
                        let guard = reader.guard().unwrap();
                        let table = cell.load(&guard);
                        assert!(table.iter().all(|&n| n == table[0]));
                        if round % 100 == 0 {
                            reader.offline();
                        }
                    }
                });
            }
            for n in 0..2_000u64 {
                cell.publish(Box::new(vec![n; 64]));
                domain.reclaim();
            }
        });
        domain.reclaim();
        assert_eq!(domain.waiting(), 0);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::UnsafeCell;

    /// Touches a shared cell exclusively when freed; loom refuses that as long as a reader's look at
    /// the cell has not happened before.
    struct Canary(Arc<UnsafeCell<u32>>);

    impl Canary {
        fn new(n: u32) -> Box<Canary> {
            Box::new(Canary(Arc::new(UnsafeCell::new(n))))
        }
        fn look(&self) -> u32 {
            // SAFETY: the pointer is valid inside the closure; nobody writes but the drop below.
            self.0.with(|n| unsafe { *n })
        }
    }

    impl Drop for Canary {
        fn drop(&mut self) {
            // SAFETY: valid inside the closure; loom checks that nobody else is inside.
            self.0.with_mut(|n| unsafe { *n = 0 });
        }
    }

    // SAFETY: the cell inside is only read while shared.
    unsafe impl Send for Canary {}
    // SAFETY: as above.
    unsafe impl Sync for Canary {}

    #[test]
    fn nothing_is_freed_under_an_online_reader() {
        loom::model(|| {
            let domain = Domain::new(1);
            let cell = Arc::new(Published::new(&domain, Canary::new(1)));
            let mut reader = domain.register().unwrap();
            let shared = cell.clone();
            let thread = loom::thread::spawn(move || {
                let mut last = 1;
                for _ in 0..2 {
                    reader.quiesce();
                    let guard = reader.guard().unwrap();
                    let now = shared.load(&guard).look();
                    assert!((last..=2).contains(&now), "{last} {now}");
                    last = now;
                }
                reader.offline();
            });
            cell.publish(Canary::new(2));
            domain.reclaim();
            thread.join().unwrap();
            domain.reclaim();
            assert_eq!(domain.waiting(), 0);
        });
    }

    #[test]
    fn a_reader_may_sleep_and_wake() {
        loom::model(|| {
            let domain = Domain::new(1);
            let cell = Arc::new(Published::new(&domain, Canary::new(1)));
            let mut reader = domain.register().unwrap();
            reader.quiesce();
            let shared = cell.clone();
            let thread = loom::thread::spawn(move || {
                reader.offline();
                reader.quiesce();
                let guard = reader.guard().unwrap();
                assert!((1..=3).contains(&shared.load(&guard).look()));
            });
            cell.publish(Canary::new(2));
            domain.reclaim();
            thread.join().unwrap();
            cell.publish(Canary::new(3));
            assert!(domain.reclaim() > 0);
            assert_eq!(domain.waiting(), 0);
        });
    }
}
