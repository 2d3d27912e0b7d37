//! The router's clock: nanoseconds since it started, made from the time stamp counter, or moved on by
//! hand where the router is on trial.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that costs one counter read and one multiplication.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// The processor's counter.
    Counter {
        /// Its value at the start.
        start: u64,
        /// Nanoseconds a tick, times 2^32.
        scale: u64,
    },
    /// What somebody says.
    Hand(Arc<AtomicU64>),
}

impl Clock {
    /// A clock that starts now.
    #[must_use]
    pub(crate) fn start() -> Clock {
        let hz = weir_cpu::tsc_hz();
        Clock::Counter {
            start: weir_cpu::tsc(),
            scale: ((1_000_000_000u128 << 32) / u128::from(hz)) as u64,
        }
    }

    /// Nanoseconds since the start.
    #[inline]
    #[must_use]
    pub(crate) fn now(&self) -> u64 {
        self.at(weir_cpu::tsc())
    }

    /// Nanoseconds since the start at a counter value; of a clock moved by hand, now.
    #[inline]
    #[must_use]
    pub(crate) fn at(&self, tsc: u64) -> u64 {
        match self {
            Clock::Counter { start, scale } => {
                ((u128::from(tsc.saturating_sub(*start)) * u128::from(*scale)) >> 32) as u64
            }
            Clock::Hand(now) => now.load(Ordering::Relaxed),
        }
    }
}
