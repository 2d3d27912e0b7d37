//! What threads share without waiting for one another.
//!
//! * [`spsc`]: bounded rings with one producer and one consumer, from a worker to the cold side, from
//!   the control thread to a worker, between two workers.
//! * [`counter`]: cells that one thread writes and anybody reads.
//! * [`qsbr`]: tables that are replaced while workers read them; what was replaced is freed once every
//!   worker has passed a quiescent state.
//! * [`seqlock`]: words that one thread writes and others read, all or nothing.
//!
//! None of the calls that a worker makes allocates, locks, blocks or enters the kernel. The
//! orderings are checked by loom models: `RUSTFLAGS="--cfg loom" cargo test -p weir-ring --release`.

#![deny(unsafe_code)]

pub mod counter;
pub mod qsbr;
pub mod seqlock;
pub mod spsc;

/// The atomics: the standard library's, or loom's when it explores all interleavings.
mod sync {
    #[cfg(loom)]
    pub(crate) use loom::{cell::UnsafeCell, sync::Arc, sync::atomic};
    #[cfg(not(loom))]
    pub(crate) use std::{sync::Arc, sync::atomic};

    /// As loom's cell: the borrow is only reachable inside a closure.
    #[cfg(not(loom))]
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    #[cfg(not(loom))]
    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

/// A value in cache lines of its own, so that its neighbours' writers do not slow its readers.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
