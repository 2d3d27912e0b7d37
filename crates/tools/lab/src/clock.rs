//! The clock of the lab: nanoseconds from the processor's time stamp counter, one domain for
//! sending and receiving.

/// Converts ticks into nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    multiplier: u64,
}

impl Clock {
    /// Calibrates once per process (20 ms).
    pub(crate) fn new() -> Clock {
        let hz = u128::from(weir_cpu::tsc_hz().max(1));
        Clock {
            multiplier: ((1_000_000_000_u128 << 32) / hz) as u64,
        }
    }

    /// Nanoseconds since the counter was 0.
    #[inline]
    pub(crate) fn now(self) -> u64 {
        ((u128::from(weir_cpu::tsc()) * u128::from(self.multiplier)) >> 32) as u64
    }
}
