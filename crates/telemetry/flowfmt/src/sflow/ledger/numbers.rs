//! What numbers that should follow one another tell.

/// A number so much lower or higher than expected is a new beginning.
const RESTART: u32 = 100_000;
/// A datagram made so long before another one that came first is no late one (milliseconds).
const LATEST_MS: i32 = 3000;
/// Agents whose threads share a clock and a counter may be off by less than this (milliseconds).
const SLACK_MS: i32 = 1000;
/// Numbers that are remembered.
const WINDOW: u32 = 64;

/// How a number stands to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The first, or higher than all before.
    Next,
    /// Lower, and not seen yet.
    Late,
    /// Seen already.
    Duplicate,
    /// Counting began again.
    Restart,
}

/// The numbers of one sequence.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// How many came.
    pub received: u64,
    /// How many did not.
    pub lost: u64,
    /// How many came after a higher one.
    pub reordered: u64,
    /// How many came twice.
    pub duplicates: u64,
    /// How often counting began again.
    pub restarts: u64,
    pub(super) highest: Option<u32>,
    /// Which of the last 64 came; the lowest bit is the highest number.
    seen: u64,
}

impl Numbers {
    /// Enters one of which nothing but the number is known.
    pub fn note(&mut self, number: u32) -> Order {
        self.received += 1;
        let Some(highest) = self.highest else {
            self.begin(number);
            return Order::Next;
        };
        let (ahead, behind) = (number.wrapping_sub(highest), highest.wrapping_sub(number));
        match (ahead, behind) {
            (1..RESTART, _) => {
                self.lost += u64::from(ahead - 1);
                self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
                self.highest = Some(number);
                Order::Next
            }
            (_, 0..WINDOW) => {
                let bit = 1_u64 << behind;
                if self.seen & bit != 0 {
                    self.duplicates += 1;
                    return Order::Duplicate;
                }
                self.seen |= bit;
                self.reordered += 1;
                self.lost = self.lost.saturating_sub(1);
                Order::Late
            }
            _ => {
                self.restarts += 1;
                self.begin(number);
                Order::Restart
            }
        }
    }

    /// Enters one that is known to begin anew.
    pub(super) fn restart(&mut self, number: u32) -> Order {
        self.received += 1;
        self.restarts += 1;
        self.begin(number);
        Order::Restart
    }

    /// What comes next is a beginning that was reported elsewhere.
    pub(super) fn forget(&mut self) {
        (self.highest, self.seen) = (None, 0);
    }

    /// Whether this is no higher than the highest; false before the first.
    pub(super) fn is_behind(&self, number: u32) -> bool {
        self.highest
            .is_some_and(|highest| highest.wrapping_sub(number) < 1 << 31)
    }

    fn begin(&mut self, number: u32) {
        (self.highest, self.seen) = (Some(number), 1);
    }

    fn has_seen(&self, behind: u32) -> bool {
        self.seen
            .checked_shr(behind)
            .is_some_and(|seen| seen & 1 == 1)
    }

    /// Lost of all that were sent, in percent.
    #[must_use]
    pub fn loss_percent(&self) -> f64 {
        let sent = self.received.saturating_sub(self.duplicates) + self.lost;
        if sent == 0 {
            0.0
        } else {
            100.0 * self.lost as f64 / sent as f64
        }
    }
}

/// The agent's clock beside the numbers of its datagrams: it tells a restart from a copy or a late one.
#[derive(Debug)]
pub(super) struct Clock {
    /// By the last bits of the number.
    uptimes: [u32; WINDOW as usize],
}

impl Default for Clock {
    fn default() -> Clock {
        Clock {
            uptimes: [0; WINDOW as usize],
        }
    }
}

impl Clock {
    /// Enters a datagram's number, made so many milliseconds after the agent's start.
    pub(super) fn note(&mut self, numbers: &mut Numbers, number: u32, uptime: u32) -> Order {
        let order = if self.began_again(numbers, number, uptime) {
            numbers.restart(number)
        } else {
            numbers.note(number)
        };
        if order != Order::Duplicate
            && let Some(place) = self.uptimes.get_mut((number % WINDOW) as usize)
        {
            *place = uptime;
        }
        order
    }

    fn at(&self, number: u32) -> u32 {
        self.uptimes
            .get((number % WINDOW) as usize)
            .copied()
            .unwrap_or(0)
    }

    fn began_again(&self, numbers: &Numbers, number: u32, uptime: u32) -> bool {
        let Some(highest) = numbers.highest else {
            return false;
        };
        // Clocks wrap after 49 days.
        let since = |number| uptime.wrapping_sub(self.at(number)).cast_signed();
        let (ahead, behind) = (number.wrapping_sub(highest), highest.wrapping_sub(number));
        match (ahead, behind) {
            (1..RESTART, _) => since(highest) < -SLACK_MS,
            (_, 0) => since(highest) < -SLACK_MS,
            (_, 1..WINDOW) => {
                let late = since(highest);
                // The same datagram again was made at the same time.
                !(-LATEST_MS..=SLACK_MS).contains(&late)
                    || (numbers.has_seen(behind)
                        && since(number).unsigned_abs() > SLACK_MS.unsigned_abs())
            }
            _ => false,
        }
    }
}

/// A 32-bit number that only grows, over its wraps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growing {
    last: Option<u32>,
    pub(super) total: u64,
}

impl Growing {
    pub(super) fn note(&mut self, value: u32) {
        let grown = self.last.map_or(0, |last| value.wrapping_sub(last));
        // A step back is a new beginning.
        if grown < 1 << 31 {
            self.total += u64::from(grown);
        }
        self.last = Some(value);
    }

    /// Whether this is less than the last one.
    pub(super) fn is_behind(&self, value: u32) -> bool {
        self.last
            .is_some_and(|last| value.wrapping_sub(last) >= 1 << 31)
    }

    /// What comes next is a beginning.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }
}
