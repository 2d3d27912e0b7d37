//! A bounded ring between one producer and one consumer.
//!
//! Capacity is a power of two; indices run freely and are masked. Each side keeps a copy of the
//! other's index and looks at the real one only when the copy says full or empty, so that in steady
//! flow the two threads share a line once a batch. A full ring refuses, it never waits.
//!
//! [`ring`] moves values. [`slots`] has values that stay in place and are filled and read where they
//! are, for large records that should not be copied twice.

#![expect(
    unsafe_code,
    reason = "slots are handed from one thread to the other by index; each block says why it is sound"
)]

use crate::Padded;
#[cfg(not(loom))]
use crate::sync::atomic::fence;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, UnsafeCell};
use std::mem::MaybeUninit;

#[derive(Debug)]
struct Shared<T> {
    /// Index of the next value to take; written by the consumer.
    head: Padded<AtomicUsize>,
    /// Index of the next place to fill; written by the producer.
    tail: Padded<AtomicUsize>,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: a slot between head and tail belongs to the consumer, any other to the producer; the
// indices pass ownership with release and acquire. T itself moves between threads, so it must be Send.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let tail = self.tail.0.load(Ordering::Relaxed);
        let mut head = self.head.0.load(Ordering::Relaxed);
        while head != tail {
            // SAFETY: both ends are gone; slots between head and tail hold values not taken yet.
            self.slots[head & (self.slots.len() - 1)]
                .with_mut(|slot| unsafe { (*slot).assume_init_drop() });
            head = head.wrapping_add(1);
        }
    }
}

/// The end that fills.
#[derive(Debug)]
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
    /// The consumer's index as last seen.
    head: usize,
}

/// The end that empties.
#[derive(Debug)]
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    head: usize,
    /// The producer's index as last seen.
    tail: usize,
}

/// A ring for at least `capacity` values (rounded up to a power of two).
#[must_use]
pub fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.max(1).next_power_of_two();
    let shared = Arc::new(Shared {
        head: Padded(AtomicUsize::new(0)),
        tail: Padded(AtomicUsize::new(0)),
        slots: (0..capacity)
            .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
            .collect(),
    });
    (
        Producer {
            shared: shared.clone(),
            tail: 0,
            head: 0,
        },
        Consumer {
            shared,
            head: 0,
            tail: 0,
        },
    )
}

impl<T> Producer<T> {
    /// How many values fit right now; looks at the consumer's index only when `wanted` seem not to.
    #[inline]
    fn room(&mut self, wanted: usize) -> usize {
        let capacity = self.shared.slots.len();
        if capacity - self.tail.wrapping_sub(self.head) < wanted {
            self.head = self.shared.head.0.load(Ordering::Acquire);
        }
        capacity - self.tail.wrapping_sub(self.head)
    }

    /// Puts a value in place; the caller has seen room for it and publishes it afterwards.
    #[inline(always)]
    fn write(&mut self, value: T) {
        let place = self.tail & (self.shared.slots.len() - 1);
        // SAFETY: there was room, so this slot is not between head and tail: it is ours and empty.
        self.shared.slots[place].with_mut(|slot| unsafe { (*slot).write(value) });
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline(always)]
    fn publish(&self) {
        self.shared.tail.0.store(self.tail, Ordering::Release);
    }

    /// Adds a value.
    ///
    /// # Errors
    /// A full ring hands it back.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.room(1) == 0 {
            return Err(value);
        }
        self.write(value);
        self.publish();
        Ok(())
    }

    /// Adds values from an iterator as long as they fit; returns how many. The iterator is not asked
    /// for one that would not fit.
    #[inline]
    pub fn push_many(&mut self, values: &mut impl Iterator<Item = T>) -> usize {
        let room = self.room(usize::MAX);
        let mut count = 0;
        while count < room {
            let Some(value) = values.next() else { break };
            self.write(value);
            count += 1;
        }
        if count > 0 {
            self.publish();
        }
        count
    }

    /// How many values are inside.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tail
            .wrapping_sub(self.shared.head.0.load(Ordering::Relaxed))
    }

    /// Whether nothing is inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many values fit in all.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }

    /// Whether the other end is gone.
    #[cfg(not(loom))]
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        let gone = Arc::strong_count(&self.shared) == 1;
        // Pairs with the release in the other end's drop: all that it did before is seen after.
        fence(Ordering::Acquire);
        gone
    }
}

impl<T> Consumer<T> {
    #[inline]
    fn available(&mut self) -> usize {
        if self.tail == self.head {
            self.tail = self.shared.tail.0.load(Ordering::Acquire);
        }
        self.tail.wrapping_sub(self.head)
    }

    #[inline(always)]
    fn read(&mut self) -> T {
        let place = self.head & (self.shared.slots.len() - 1);
        // SAFETY: the slot is between head and tail, so it holds a value that the producer published
        // with release; it is ours until head moves past it, and it is read once.
        let value = self.shared.slots[place].with(|slot| unsafe { (*slot).assume_init_read() });
        self.head = self.head.wrapping_add(1);
        value
    }

    #[inline(always)]
    fn publish(&self) {
        self.shared.head.0.store(self.head, Ordering::Release);
    }

    /// Takes the oldest value.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.available() == 0 {
            return None;
        }
        let value = self.read();
        self.publish();
        Some(value)
    }

    /// Takes up to `most` values; returns how many. The producer learns of the room once, at the end.
    #[inline]
    pub fn pop_many(&mut self, most: usize, mut take: impl FnMut(T)) -> usize {
        /// Publishes also when `take` panics: what was read by then is gone from the ring.
        struct Publish<'c, T>(&'c mut Consumer<T>);
        impl<T> Drop for Publish<'_, T> {
            fn drop(&mut self) {
                self.0.publish();
            }
        }
        let count = self.available().min(most);
        if count > 0 {
            let ring = Publish(self);
            for _ in 0..count {
                take(ring.0.read());
            }
        }
        count
    }

    /// How many values are inside.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared
            .tail
            .0
            .load(Ordering::Acquire)
            .wrapping_sub(self.head)
    }

    /// Whether nothing is inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the other end is gone. What it left can still be taken: ask this first, then empty.
    #[cfg(not(loom))]
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        let gone = Arc::strong_count(&self.shared) == 1;
        // Pairs with the release in the other end's drop: all that it did before is seen after.
        fence(Ordering::Acquire);
        gone
    }
}

/// A ring whose values stay in place.
pub mod slots {
    use super::{Arc, AtomicUsize, Ordering, Padded, UnsafeCell};

    #[derive(Debug)]
    struct Indices {
        head: Padded<AtomicUsize>,
        tail: Padded<AtomicUsize>,
    }

    /// The end that fills.
    ///
    /// What it fills it may keep for a while before the reader sees it: staged slots come out in the order in which they
    /// were filled, and can be changed until they are published.
    #[derive(Debug)]
    pub struct Writer<T> {
        /// Here with their length, not behind what both ends share: a writer that comes rarely has a line less to fetch.
        slots: std::sync::Arc<[UnsafeCell<T>]>,
        shared: Arc<Indices>,
        /// Index of the next place to fill.
        next: usize,
        /// Index of the oldest place that is filled and not published.
        staged: usize,
        /// The reader's index as last seen.
        head: usize,
    }

    /// The end that reads.
    #[derive(Debug)]
    pub struct Reader<T> {
        slots: std::sync::Arc<[UnsafeCell<T>]>,
        shared: Arc<Indices>,
        /// Index of the next value to read.
        next: usize,
    }

    // SAFETY: as for the moving ring: indices pass the right to touch a slot from one end to the other, and each end is one
    // thread's at a time; T itself is used by both, so it must be Send.
    unsafe impl<T: Send> Send for Writer<T> {}
    // SAFETY: as above.
    unsafe impl<T: Send> Send for Reader<T> {}
    // SAFETY: by shared reference no slot can be read or written, only its address be asked for.
    unsafe impl<T: Send> Sync for Writer<T> {}
    // SAFETY: by shared reference only the indices can be read.
    unsafe impl<T: Send> Sync for Reader<T> {}

    /// A ring of at least `capacity` default values.
    #[must_use]
    pub fn ring<T: Default>(capacity: usize) -> (Writer<T>, Reader<T>) {
        let capacity = capacity.max(1).next_power_of_two();
        let shared = Arc::new(Indices {
            head: Padded(AtomicUsize::new(0)),
            tail: Padded(AtomicUsize::new(0)),
        });
        let slots: std::sync::Arc<[UnsafeCell<T>]> = (0..capacity)
            .map(|_| UnsafeCell::new(T::default()))
            .collect::<Vec<_>>()
            .into();
        let reader = Reader {
            slots: slots.clone(),
            shared: shared.clone(),
            next: 0,
        };
        (
            Writer {
                slots,
                shared,
                next: 0,
                staged: 0,
                head: 0,
            },
            reader,
        )
    }

    impl<T> Writer<T> {
        /// Lets `fill` write the next slot, which holds an old value, and publishes it and all before it. `false` when
        /// the ring is full; then `fill` is not called.
        #[inline]
        pub fn push_with(&mut self, fill: impl FnOnce(&mut T)) -> bool {
            let written = self.stage_with(fill);
            if written {
                self.publish_all();
            }
            written
        }

        /// Lets `fill` write the next slot, which holds an old value, and keeps it from the reader. `false` when the
        /// ring is full; then `fill` is not called.
        #[inline(always)]
        pub fn stage_with(&mut self, fill: impl FnOnce(&mut T)) -> bool {
            if self.room(1) == 0 {
                return false;
            }
            let place = self.next & (self.slots.len() - 1);
            // SAFETY: the slot is not between head and tail, so the reader does not touch it.
            self.slots[place].with_mut(|slot| fill(unsafe { &mut *slot }));
            self.next = self.next.wrapping_add(1);
            true
        }

        /// How many slots are filled and not published.
        #[inline]
        #[must_use]
        pub fn staged(&self) -> usize {
            self.next.wrapping_sub(self.staged)
        }

        /// The number of the slot that is filled next. Slots are numbered in the order in which they are filled, from 0 on; numbers wrap.
        #[inline]
        #[must_use]
        pub fn next(&self) -> usize {
            self.next
        }

        /// The number of the oldest slot that is not published.
        #[inline]
        #[must_use]
        pub fn oldest(&self) -> usize {
            self.staged
        }

        /// Lets `change` see a staged slot, by its number; `None` when it is published, or not filled.
        #[inline(always)]
        pub fn change_staged<R>(
            &mut self,
            number: usize,
            change: impl FnOnce(&mut T) -> R,
        ) -> Option<R> {
            if number.wrapping_sub(self.staged) >= self.staged() {
                return None;
            }
            let place = number & (self.slots.len() - 1);
            // SAFETY: the slot lies between what is published and what is filled next: the reader does not touch it.
            Some(self.slots[place].with_mut(|slot| change(unsafe { &mut *slot })))
        }

        /// Lets the reader see all slots that are staged.
        #[inline]
        pub fn publish_all(&mut self) {
            self.staged = self.next;
            self.shared.tail.0.store(self.staged, Ordering::Release);
        }

        /// Lets the reader see all slots before the one of this number, and none that is not staged.
        #[inline]
        pub fn publish_before(&mut self, number: usize) {
            if number.wrapping_sub(self.staged) <= self.staged() {
                self.staged = number;
                self.shared.tail.0.store(number, Ordering::Release);
            }
        }

        /// How many values fit right now, at least: only the reader changes it meanwhile, to more. Asks for
        /// the reader's index when `wanted` seem not to fit.
        #[inline]
        #[must_use]
        pub fn room(&mut self, wanted: usize) -> usize {
            let room = self.slots.len() - self.next.wrapping_sub(self.head);
            if room < wanted {
                self.ask_for_room()
            } else {
                room
            }
        }

        #[cold]
        #[inline(never)]
        fn ask_for_room(&mut self) -> usize {
            self.head = self.shared.head.0.load(Ordering::Acquire);
            self.slots.len() - self.next.wrapping_sub(self.head)
        }

        /// Where the slot lies that is `ahead` places behind the next one: for asking the cache for it early,
        /// since the reader's core had it last. The slot may be the reader's still.
        #[inline]
        #[must_use]
        pub fn address(&self, ahead: usize) -> *const T {
            self.slots[self.next.wrapping_add(ahead) & (self.slots.len() - 1)].with(|slot| slot)
        }

        /// How many values fit in all.
        #[must_use]
        pub fn capacity(&self) -> usize {
            self.slots.len()
        }
    }

    impl<T> Reader<T> {
        /// Lets `read` see the oldest value, then gives its slot back. `None` when there is none.
        #[inline]
        pub fn pop_with<R>(&mut self, read: impl FnOnce(&T) -> R) -> Option<R> {
            if self.shared.tail.0.load(Ordering::Acquire) == self.next {
                return None;
            }
            // SAFETY: the slot is between head and tail: published and not touched by the writer.
            let result =
                self.slots[self.next & (self.slots.len() - 1)].with(|slot| read(unsafe { &*slot }));
            self.next = self.next.wrapping_add(1);
            self.shared.head.0.store(self.next, Ordering::Release);
            Some(result)
        }

        /// How many values wait.
        #[must_use]
        pub fn len(&self) -> usize {
            self.shared
                .tail
                .0
                .load(Ordering::Acquire)
                .wrapping_sub(self.next)
        }

        /// Whether none waits.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// Whether the writer is gone. What it left can still be read: ask this first, then whether it is empty.
        #[cfg(not(loom))]
        #[must_use]
        pub fn is_abandoned(&self) -> bool {
            let gone = Arc::strong_count(&self.shared) == 1;
            // Pairs with the release in the writer's drop: all that it did before is seen after.
            super::fence(Ordering::Acquire);
            gone
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn fills_refuses_and_empties_in_order() {
        let (mut producer, mut consumer) = ring::<u64>(3);
        assert_eq!(producer.capacity(), 4);
        for n in 0..4 {
            producer.push(n).unwrap();
        }
        assert_eq!(producer.push(9), Err(9));
        assert_eq!(consumer.pop(), Some(0));
        assert_eq!(producer.push_many(&mut (10..20)), 1);
        let mut got = Vec::new();
        assert_eq!(consumer.pop_many(9, |n| got.push(n)), 3);
        assert_eq!(consumer.pop_many(9, |n| got.push(n)), 1);
        assert_eq!(got, [1, 2, 3, 10]);
        assert!(consumer.pop().is_none() && consumer.is_empty() && producer.is_empty());
    }

    #[test]
    fn what_nobody_takes_is_dropped_once() {
        let value = std::sync::Arc::new(());
        let (mut producer, mut consumer) = ring(8);
        for _ in 0..6 {
            producer.push(value.clone()).unwrap();
        }
        drop(consumer.pop());
        drop(producer);
        assert!(consumer.is_abandoned());
        assert_eq!(std::sync::Arc::strong_count(&value), 6);
        drop(consumer);
        assert_eq!(std::sync::Arc::strong_count(&value), 1);
    }

    #[test]
    fn two_threads_lose_nothing_and_keep_order() {
        let (mut producer, mut consumer) = ring(64);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut values = (0..200_000u64).peekable();
                while values.peek().is_some() {
                    if producer.push_many(&mut values) == 0 {
                        std::thread::yield_now();
                    }
                }
            });
            let mut expected = 0;
            while expected < 200_000 {
                let got = consumer.pop_many(32, |n| {
                    assert_eq!(n, expected);
                    expected += 1;
                });
                if got == 0 {
                    std::thread::yield_now();
                }
            }
        });
    }

    #[test]
    fn a_panic_while_emptying_loses_only_what_was_handed_over() {
        let value = std::sync::Arc::new(());
        let (mut producer, mut consumer) = ring(4);
        for _ in 0..4 {
            producer.push(value.clone()).unwrap();
        }
        let mut taken = 0;
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            consumer.pop_many(4, |_| {
                taken += 1;
                assert!(taken < 2, "as the test wants");
            })
        }));
        assert!(caught.is_err());
        assert_eq!(
            (taken, consumer.len(), std::sync::Arc::strong_count(&value)),
            (2, 2, 3)
        );
        assert!(
            producer.push(value.clone()).is_ok()
                && producer.push(value.clone()).is_ok()
                && producer.push(value.clone()).is_err()
        );
    }

    #[test]
    fn slots_stay_in_place() {
        let (mut writer, mut reader) = slots::ring::<[u8; 32]>(2);
        assert!(writer.push_with(|slot| slot[0] = 1) && writer.push_with(|slot| slot[0] = 2));
        assert!(!writer.push_with(|_| unreachable!()));
        assert_eq!(reader.pop_with(|slot| slot[0]), Some(1));
        assert!(writer.push_with(|slot| slot[0] += 10));
        assert_eq!(
            (
                reader.pop_with(|slot| slot[0]),
                reader.pop_with(|slot| slot[0])
            ),
            (Some(2), Some(11))
        );
        assert!(reader.pop_with(|_| ()).is_none() && reader.is_empty());
    }

    #[test]
    fn staged_slots_can_be_changed_until_they_are_published() {
        let (mut writer, mut reader) = slots::ring::<u32>(4);
        assert!((1..=3).all(|n| writer.stage_with(|slot| *slot = n)));
        assert_eq!((writer.staged(), reader.len()), (3, 0));
        assert!(reader.pop_with(|_| ()).is_none());
        assert_eq!(
            writer.change_staged(1, |slot| std::mem::replace(slot, 20)),
            Some(2)
        );
        assert_eq!(writer.change_staged(3, |_| ()), None, "not filled");
        writer.publish_before(2);
        assert_eq!(
            (
                writer.change_staged(1, |_| ()),
                writer.oldest(),
                writer.next()
            ),
            (None, 2, 3),
            "published"
        );
        writer.publish_before(1);
        writer.publish_before(4);
        assert_eq!(
            (
                reader.pop_with(|slot| *slot),
                reader.pop_with(|slot| *slot),
                reader.pop_with(|slot| *slot)
            ),
            (Some(1), Some(20), None)
        );
        assert_eq!(writer.change_staged(2, |slot| *slot), Some(3));
        assert!(
            (4..=6).all(|n| writer.stage_with(|slot| *slot = n))
                && !writer.stage_with(|_| unreachable!())
        );
        writer.publish_before(6);
        let mut seen = Vec::new();
        while reader.pop_with(|slot| seen.push(*slot)).is_some() {}
        assert_eq!((seen, writer.staged()), (vec![3, 4, 5, 6], 0));
    }

    #[test]
    fn room_for_several_slots_is_reported_before_the_first_is_written() {
        let (mut writer, mut reader) = slots::ring::<u8>(4);
        assert!((0..3).all(|_| writer.push_with(|slot| *slot = 1)));
        assert_eq!((writer.room(1), writer.room(2)), (1, 1));
        assert!(reader.pop_with(|_| ()).is_some() && reader.pop_with(|_| ()).is_some());
        assert_eq!(writer.room(2), 3);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;

    #[test]
    fn values_arrive_in_order_and_whole() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring::<Box<u32>>(2);
            let thread = loom::thread::spawn(move || {
                for n in 0..3 {
                    let mut value = Box::new(n);
                    while let Err(back) = producer.push(value) {
                        value = back;
                        loom::thread::yield_now();
                    }
                }
            });
            for n in 0..3 {
                loop {
                    if let Some(value) = consumer.pop() {
                        assert_eq!(*value, n);
                        break;
                    }
                    loom::thread::yield_now();
                }
            }
            thread.join().unwrap();
        });
    }

    #[test]
    fn staged_slots_are_seen_as_they_are_published() {
        loom::model(|| {
            let (mut writer, mut reader) = slots::ring::<u32>(2);
            let thread = loom::thread::spawn(move || {
                assert!(writer.stage_with(|slot| *slot = 1));
                assert!(writer.stage_with(|slot| *slot = 2));
                writer.change_staged(0, |slot| *slot += 10);
                writer.publish_before(1);
                writer.change_staged(1, |slot| *slot += 10);
                writer.publish_all();
            });
            for expected in [11, 12] {
                while reader
                    .pop_with(|slot| assert_eq!(*slot, expected))
                    .is_none()
                {
                    loom::thread::yield_now();
                }
            }
            thread.join().unwrap();
        });
    }

    #[test]
    fn slots_are_never_seen_half_written() {
        loom::model(|| {
            let (mut writer, mut reader) = slots::ring::<(u32, u32)>(1);
            let thread = loom::thread::spawn(move || {
                for n in 1..3 {
                    while !writer.push_with(|slot| *slot = (n, n)) {
                        loom::thread::yield_now();
                    }
                }
            });
            for n in 1..3 {
                while reader.pop_with(|slot| assert_eq!(*slot, (n, n))).is_none() {
                    loom::thread::yield_now();
                }
            }
            thread.join().unwrap();
        });
    }
}
