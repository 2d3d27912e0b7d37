//! What a worker does after a turn without packets.
//!
//! Three answers: look again at once, nap for a few microseconds so that packets gather, or wait in poll(2) until a
//! queue has something. Looking again costs a core but loses nothing; a nap must be shorter than the peer's ring lasts
//! at the rate of the moment; waking from poll(2) costs some microseconds each time, which is cheapest when packets are
//! rare. The answer follows from how many packets came lately.
//!
//! Pure arithmetic on times that the caller passes.

use std::time::Duration;

use weir_config::Idle;

/// Time over which packets are counted, in nanoseconds.
const WINDOW: u64 = 100_000;
/// Packets in the last one to two windows from which on the worker does not sleep: over 1.3 million a second.
const FAST: u64 = 256;
/// Packets in the last one to two windows from which on it naps: over 40,000 a second.
const BRISK: u64 = 8;
/// At 20 million packets a second a nap lets 600 to 800 come, which a ring of 1,024 holds.
const NAP: Duration = Duration::from_micros(30);

/// What to do until the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Turn at once.
    Poll,
    /// Sleep so long.
    Nap(Duration),
    /// Sleep until a queue is readable.
    Wait,
}

/// How many packets came lately.
#[derive(Debug)]
pub(crate) struct Load {
    idle: Idle,
    /// When the current window began.
    since: u64,
    current: u64,
    previous: u64,
    /// Whether the last turn was empty, too.
    was_empty: bool,
}

impl Load {
    pub(crate) fn new(idle: Idle) -> Load {
        Load {
            idle,
            since: 0,
            current: 0,
            previous: 0,
            was_empty: false,
        }
    }

    /// A turn ended at `now` nanoseconds and moved so many packets.
    #[inline]
    pub(crate) fn after_turn(&mut self, moved: usize, now: u64) -> Rest {
        if self.idle == Idle::Poll {
            return Rest::Poll;
        }
        let passed = now.wrapping_sub(self.since);
        if passed >= WINDOW {
            self.previous = if passed < 2 * WINDOW { self.current } else { 0 };
            (self.current, self.since) = (0, now);
        }
        self.current += moved as u64;
        if moved > 0 {
            self.was_empty = false;
            return Rest::Poll;
        }
        let recent = self.current + self.previous;
        if recent >= FAST && self.idle == Idle::Adaptive {
            return Rest::Poll;
        }
        if !std::mem::replace(&mut self.was_empty, true) {
            // What came during the last turn is there already.
            return Rest::Poll;
        }
        if recent >= BRISK {
            Rest::Nap(NAP)
        } else {
            Rest::Wait
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays turns at a constant rate for ten windows; how often each answer came after empty turns.
    fn play(load: &mut Load, packets_a_second: u64, start: u64) -> [u64; 3] {
        let (mut counts, mut now, mut came) = ([0; 3], start, 0);
        while now < start + 10 * WINDOW {
            let due = (now - start) * packets_a_second / 1_000_000_000;
            let moved = (due - came) as usize;
            came = due;
            now += 200;
            match load.after_turn(moved, now) {
                Rest::Poll => counts[0] += u64::from(moved == 0),
                Rest::Nap(nap) => {
                    counts[1] += 1;
                    now += nap.as_nanos() as u64;
                }
                Rest::Wait => {
                    counts[2] += 1;
                    now += 1_000_000_000 / packets_a_second.max(1);
                }
            }
        }
        counts
    }

    #[test]
    fn a_saturated_worker_never_sleeps() {
        let mut load = Load::new(Idle::Adaptive);
        play(&mut load, 5_000_000, 0);
        let [_, naps, waits] = play(&mut load, 5_000_000, 1_000_000);
        assert_eq!((naps, waits), (0, 0));
        // Half a window without packets is no end of the load, three are.
        assert_eq!(load.after_turn(0, 2_050_000), Rest::Poll);
        load.after_turn(0, 2_300_000);
        assert_eq!(load.after_turn(0, 2_300_200), Rest::Wait);
    }

    #[test]
    fn rare_packets_are_waited_for() {
        for idle in [Idle::Adaptive, Idle::Sleep] {
            let mut load = Load::new(idle);
            play(&mut load, 10_000, 0);
            let [polls, naps, waits] = play(&mut load, 10_000, 1_000_000);
            assert!(naps == 0 && waits >= 9, "{naps} {waits}");
            assert!(
                polls <= waits + 1,
                "one more look before each wait, not {polls}"
            );
        }
    }

    #[test]
    fn many_packets_gather_during_naps() {
        for (idle, rate) in [(Idle::Adaptive, 300_000), (Idle::Sleep, 1_000_000)] {
            let mut load = Load::new(idle);
            play(&mut load, rate, 0);
            let [_, naps, waits] = play(&mut load, rate, 1_000_000);
            assert!(naps > 20 && waits == 0, "{naps} {waits}");
        }
        let mut load = Load::new(Idle::Poll);
        assert_eq!(play(&mut load, 10, 0)[1..], [0, 0]);
    }
}
