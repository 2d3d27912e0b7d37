//! The discard tap: packets that are dropped, for sFlow's notifications (0:5).
//!
//! Discards are not sampled: each tells why a packet was lost, and rare reasons matter as much as frequent
//! ones. So there is a limit a second, and within it every pair of reason and interface has the same share
//! ([`Shares`]): a flood of one kind takes what others leave, never what they need. What is beyond the limit
//! is not copied, but counted.
//!
//! The tap of each worker keeps to the whole limit, the agent to the limit over all. A ring that is full is a
//! loss like the limit's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_buf::{Flags, Pkt};
use weir_graph::{DropReason, Look, Marks, Point, Tap, World};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_ring::spsc::slots::{self, Reader, Writer};

use crate::sampler::MOST_HEADER;

/// Discards that a worker's ring holds.
const RING: usize = 1024;

/// How discards are told, shared by all workers and changed while they run.
#[derive(Debug, Default)]
pub struct DiscardSettings {
    limit: AtomicU32,
    header: AtomicU32,
}

impl DiscardSettings {
    /// At most `limit` a second, the first `header` bytes of each packet.
    pub fn set(&self, limit: u32, header: u16) {
        self.header.store(u32::from(header).clamp(1, MOST_HEADER as u32), Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// The limit.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }
}

/// A packet that was dropped.
#[derive(Clone, Debug)]
pub struct Discard {
    /// The interface that it came in on.
    pub interface: u32,
    /// Number of the node that dropped it.
    pub node: u16,
    /// Why.
    pub reason: DropReason,
    /// Bytes of the whole frame, without FCS.
    pub frame: u32,
    /// Nanoseconds of the router's clock.
    pub time: u64,
    /// Whether this router made it, so that it came in by no interface, whatever it was made of.
    pub originated: bool,
    kept: u16,
    header: [u8; MOST_HEADER],
}

impl Default for Discard {
    fn default() -> Discard {
        Discard {
            interface: 0,
            node: 0,
            reason: DropReason::Stopped,
            frame: 0,
            time: 0,
            originated: false,
            kept: 0,
            header: [0; MOST_HEADER],
        }
    }
}

impl Discard {
    /// The packet's first bytes, as it was when it was dropped.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.header.get(..self.kept as usize).unwrap_or(&[])
    }
}

/// The tap of one worker.
#[derive(Debug)]
pub struct DiscardTap {
    settings: Arc<DiscardSettings>,
    shares: Shares,
    ring: Writer<Discard>,
    untold: Arc<Padded<Counter>>,
}

/// The cold end of a worker's tap.
#[derive(Debug)]
pub struct DiscardSource {
    /// Where discards come out.
    pub ring: Reader<Discard>,
    /// Those that do not: beyond the limit, or found the ring full.
    pub untold: Arc<Padded<Counter>>,
}

impl DiscardTap {
    /// A tap and the end from which its discards are read.
    #[must_use]
    pub fn new(settings: Arc<DiscardSettings>) -> (DiscardTap, DiscardSource) {
        let (ring, reader) = slots::ring(RING);
        let untold = Arc::new(Padded::<Counter>::default());
        (DiscardTap { settings, shares: Shares::default(), ring, untold: untold.clone() }, DiscardSource { ring: reader, untold })
    }
}

impl<W: World> Tap<W> for DiscardTap {
    fn name(&self) -> &'static str {
        "sflow-discards"
    }

    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], _marks: &mut Marks) -> u64 {
        let Point::Drop { node, reason } = look.point else { return 0 };
        let (limit, keep) = (self.settings.limit(), self.settings.header.load(Ordering::Relaxed) as usize);
        if limit == 0 {
            // It was turned off a moment ago.
            return 0;
        }
        for packet in packets {
            let told = self.shares.takes(reason, look.interface, limit, look.now)
                && self.ring.push_with(|discard| {
                    (discard.interface, discard.node, discard.reason) = (look.interface, node, reason);
                    (discard.frame, discard.time) = (packet.total_len() as u32, look.now);
                    discard.originated = packet.flags().any(Flags::ORIGINATED);
                    discard.kept = packet.copy_out(0, discard.header.get_mut(..keep).unwrap_or(&mut [])) as u16;
                });
            if !told {
                self.untold.add(1);
            }
        }
        0
    }
}

/// Fair shares of a limit a second between kinds of discards, a kind being a reason on an interface.
///
/// Time is cut into windows, ten a second where the limit gives each at least ten. A window has its part of the limit and what
/// those before it in this second left, up to some parts. In each, a kind may take that divided by the kinds that came in
/// this second or the one before; so one that comes alone may take nearly all of it. An eighth is kept for kinds that
/// did not come before, one each, so that a single drop of a rare kind is told in the midst of a flood.
#[derive(Debug)]
pub struct Shares {
    /// By the kind's hash.
    kinds: Box<[Kind]>,
    window: u64,
    second: u64,
    /// What was taken in this window, and in the second's windows before it.
    taken: u32,
    spent: u32,
    /// Kinds that came in this second, and in the one before.
    came: (u32, u32),
}

/// A kind: the window and the second in which it came last, and how many it took in that window. Seconds and windows count from
/// 1; 0 stands for never.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    window: u64,
    second: u64,
    took: u32,
}

/// Kinds told apart; beyond that some share.
const KINDS: usize = 1024;
const SECOND: u64 = 1_000_000_000;
/// Windows a second, where the limit gives each at least ten.
const WINDOWS: u64 = 10;
/// A window has so many parts at most: its own, and what was left.
const MOST_PARTS: u64 = 4;

impl Default for Shares {
    fn default() -> Shares {
        Shares { kinds: vec![Kind::default(); KINDS].into(), window: 0, second: 0, taken: 0, spent: 0, came: (0, 1) }
    }
}

impl Shares {
    /// Whether one more of a kind is within the limit at `now`.
    pub fn takes(&mut self, reason: DropReason, interface: u32, limit: u32, now: u64) -> bool {
        let windows = if u64::from(limit) >= 10 * WINDOWS { WINDOWS } else { 1 };
        let (window, second) = (now / (SECOND / windows) + 1, now / SECOND + 1);
        if second != self.second {
            let before = if second == self.second + 1 { self.came.0 } else { 1 };
            (self.second, self.spent, self.taken, self.came) = (second, 0, 0, (0, before.max(1)));
        } else if window != self.window {
            self.spent += self.taken;
            self.taken = 0;
        }
        self.window = window;
        // Of the second, so many windows have begun.
        let begun = (window - 1) % windows + 1;
        let (limit, spent) = (u64::from(limit), u64::from(self.spent));
        let part = (limit * begun / windows).saturating_sub(spent).min(MOST_PARTS * limit / windows).min(limit) as u32;
        let place = (interface.wrapping_mul(0x9e37_79b9) ^ (reason as u32).wrapping_mul(0x85eb_ca6b)) >> 22;
        let Some(kind) = self.kinds.get_mut(place as usize & (KINDS - 1)) else { return false };
        if kind.second != second {
            self.came.0 += 1;
        }
        if (kind.second, kind.window) != (second, window) {
            *kind = Kind { window, second, took: 0 };
        }
        let share = (part / self.came.1.max(self.came.0)).max(1);
        let kept = if kind.took == 0 { 0 } else { part.div_ceil(8).min(part - part.min(1)) };
        if self.taken + kept >= part || kind.took >= share {
            return false;
        }
        kind.took += 1;
        self.taken += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kinds` of them come evenly, `each` a millisecond, for `seconds`; how many of each are taken in the last one.
    fn run(limit: u32, kinds: &[(DropReason, u32, u32)], seconds: u64) -> Vec<u32> {
        let mut shares = Shares::default();
        let mut taken = vec![0; kinds.len()];
        for milli in 0..seconds * 1000 {
            for (place, &(reason, interface, each)) in kinds.iter().enumerate() {
                for _ in 0..each {
                    let takes = shares.takes(reason, interface, limit, milli * 1_000_000 + 7 * SECOND);
                    taken[place] += u32::from(takes && milli >= (seconds - 1) * 1000);
                }
            }
        }
        taken
    }

    #[test]
    fn the_limit_holds_and_one_kind_alone_may_take_all_of_it() {
        for limit in [0, 1, 5, 99, 100, 1000, 12_345] {
            let [taken] = run(limit, &[(DropReason::NoRoute, 1, 20)], 3)[..] else { panic!() };
            assert!(taken <= limit && taken >= (limit.min(20_000) / 10 * 8).max(limit.min(1)), "limit {limit}: {taken}");
        }
    }

    #[test]
    fn a_flood_leaves_rare_kinds_their_share() {
        let kinds =
            [(DropReason::NoRoute, 1, 1000), (DropReason::AclDenied, 1, 1), (DropReason::NoRoute, 2, 1), (DropReason::TtlExpired, 3, 1)];
        let taken = run(400, &kinds, 3);
        assert!(taken.iter().sum::<u32>() <= 400);
        assert!(taken.iter().all(|&taken| (70..=110).contains(&taken)), "{taken:?}");
    }

    #[test]
    fn a_flood_takes_what_others_leave_and_a_burst_finds_room() {
        let mut shares = Shares::default();
        let mut told = [0; 2];
        for milli in 0..4000_u64 {
            let now = milli * 1_000_000;
            let mut takes = |kind: usize, reason| told[kind] += u32::from(shares.takes(reason, 1, 100, now) && milli >= 3000);
            (0..3).for_each(|_| takes(0, DropReason::NoRoute));
            // Five at once, three times a second.
            if milli % 300 == 150 {
                (0..5).for_each(|_| takes(1, DropReason::HostUnreachable));
            }
        }
        assert_eq!(told[1], 15, "all of the rare kind");
        assert!(told[0] >= 70 && told[0] + told[1] <= 100, "{told:?}");
    }

    #[test]
    fn a_clock_that_jumps_stops_nothing() {
        let mut shares = Shares::default();
        let mut takes = |now: u64| (0..1000).filter(|_| shares.takes(DropReason::NoRoute, 1, 100, now)).count();
        // Of ten, and of forty in a window that has others' before it, an eighth is kept.
        assert_eq!([takes(SECOND), takes(u64::MAX), takes(0), takes(SECOND)], [8, 35, 8, 8]);
    }
}
