//! The router's clock: nanoseconds since it started, made from the time stamp counter.

/// A clock that costs one counter read and one multiplication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: u64,
    /// Nanoseconds a tick, times 2^32.
    scale: u64,
}

impl Clock {
    /// A clock that starts now.
    #[must_use]
    pub(crate) fn start() -> Clock {
        let hz = weir_cpu::tsc_hz();
        Clock { start: weir_cpu::tsc(), scale: ((1_000_000_000u128 << 32) / u128::from(hz)) as u64 }
    }

    /// Nanoseconds since the start.
    #[inline]
    #[must_use]
    pub(crate) fn now(&self) -> u64 {
        self.at(weir_cpu::tsc())
    }

    /// Nanoseconds since the start at a counter value.
    #[inline]
    #[must_use]
    pub(crate) fn at(&self, tsc: u64) -> u64 {
        ((u128::from(tsc.saturating_sub(self.start)) * u128::from(self.scale)) >> 32) as u64
    }
}
