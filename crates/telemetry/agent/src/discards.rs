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

/// How discards are reported, shared by all workers and changed while they run.
#[derive(Debug, Default)]
pub struct DiscardSettings {
    limit: AtomicU32,
    header: AtomicU32,
}

impl DiscardSettings {
    /// At most `limit` a second, the first `header` bytes of each packet.
    pub fn set(&self, limit: u32, header: u16) {
        self.header.store(
            u32::from(header).clamp(1, MOST_HEADER as u32),
            Ordering::Relaxed,
        );
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
    /// What the packet's word of metadata held: the interface that it should have left by, at nodes that stand before drivers.
    pub word: u32,
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
            word: 0,
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
    suppressed: Arc<Padded<Counter>>,
}

/// The cold end of a worker's tap.
#[derive(Debug)]
pub struct DiscardSource {
    /// Where discards come out.
    pub ring: Reader<Discard>,
    /// Those that do not: beyond the limit, or found the ring full.
    pub suppressed: Arc<Padded<Counter>>,
}

impl DiscardTap {
    /// A tap and the end from which its discards are read.
    #[must_use]
    pub fn new(settings: Arc<DiscardSettings>) -> (DiscardTap, DiscardSource) {
        let (ring, reader) = slots::ring(RING);
        let suppressed = Arc::new(Padded::<Counter>::default());
        (
            DiscardTap {
                settings,
                shares: Shares::default(),
                ring,
                suppressed: suppressed.clone(),
            },
            DiscardSource {
                ring: reader,
                suppressed,
            },
        )
    }
}

/// A packet that was dropped elsewhere, by programs in the kernel.
#[derive(Clone, Copy, Debug)]
pub struct FedDiscard {
    /// The interface that it came in on.
    pub interface: u32,
    /// Number of the node that stands for those programs.
    pub node: u16,
    /// The reason of the router's table that says the same.
    pub reason: DropReason,
    /// Bytes of the whole frame, without FCS.
    pub frame: u32,
    /// Nanoseconds of any clock that goes on.
    pub time: u64,
}

impl DiscardTap {
    /// Takes a packet that was dropped elsewhere, within the limit.
    pub fn feed(&mut self, fed: &FedDiscard, header: &[u8]) {
        let (limit, keep) = (
            self.settings.limit(),
            self.settings.header.load(Ordering::Relaxed) as usize,
        );
        let taken = limit != 0
            && self
                .shares
                .takes(fed.reason, fed.interface, limit, fed.time)
            && self.ring.push_with(|discard| {
                *discard = Discard {
                    interface: fed.interface,
                    node: fed.node,
                    reason: fed.reason,
                    frame: fed.frame,
                    time: fed.time,
                    kept: header.len().min(keep) as u16,
                    ..Discard::default()
                };
                for (to, from) in discard.header.iter_mut().zip(header.iter().take(keep)) {
                    *to = *from;
                }
            });
        if !taken {
            self.suppressed.add(1);
        }
    }

    /// Packets that were dropped elsewhere, and are not reported.
    pub fn not_reported(&mut self, packets: u64) {
        self.suppressed.add(packets);
    }
}

impl<W: World> Tap<W> for DiscardTap {
    fn name(&self) -> &'static str {
        "sflow-discards"
    }

    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], _marks: &mut Marks) -> u64 {
        let Point::Drop { node, reason } = look.point else {
            return 0;
        };
        let (limit, keep) = (
            self.settings.limit(),
            self.settings.header.load(Ordering::Relaxed) as usize,
        );
        if limit == 0 {
            // It was turned off a moment ago.
            return 0;
        }
        for packet in packets {
            let reported = self.shares.takes(reason, look.interface, limit, look.now)
                && self.ring.push_with(|discard| {
                    (discard.interface, discard.node, discard.reason) =
                        (look.interface, node, reason);
                    (discard.frame, discard.time) = (packet.total_len() as u32, look.now);
                    discard.word = packet.aux();
                    discard.originated = packet.flags().any(Flags::ORIGINATED);
                    discard.kept = packet
                        .copy_out(0, discard.header.get_mut(..keep).unwrap_or(&mut []))
                        as u16;
                });
            if !reported {
                self.suppressed.add(1);
            }
        }
        0
    }
}

/// Fair shares of a limit a second between kinds of discards, a kind being a reason on an interface.
///
/// Time is cut into windows, ten a second where the limit gives each at least ten. A window has its part of the limit and what
/// those before it in this second left, up to some parts. In each, a kind may take that divided by the kinds that came in
/// this second or the one before; and more, as long as there remains what is reserved for the others: for each what it asked for in
/// its fullest window of this second or the one before, of those that ask for more than there is as much as is left to each. So
/// one whose fellows are rare may take nearly all of it. An eighth is kept for kinds that did not come before, or come singly,
/// one each, so that a single drop of a rare kind is reported in the midst of a flood.
#[derive(Debug)]
pub struct Shares {
    /// By the kind's hash.
    kinds: Box<[Kind]>,
    window: u64,
    second: u64,
    /// What was taken in this window, and in the second's windows before it.
    taken: u32,
    spent: u32,
    /// What this window has.
    part: u32,
    /// What is reserved in it and not taken so far.
    owed: u32,
    /// The most that is reserved for a kind, and how many kinds want more.
    level: u32,
    unsated: u32,
    /// Kinds that came in this second, and in the one before.
    came: (u32, u32),
}

/// A kind.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    /// How many it asked for in this window, took, and may take whatever others do.
    asked: u32,
    took: u32,
    reserved: u32,
    /// The most that it asked for in a window, of those before in this second, and of the second before.
    most: (u32, u32),
}

impl Kind {
    /// What it is expected to ask for in a window. One that comes singly has its place in what is kept for such.
    fn wants(&self) -> u32 {
        let most = self.most.0.max(self.most.1);
        if most > 1 { most } else { 0 }
    }
}

/// Kinds distinguished; beyond that some share.
const KINDS: usize = 1024;
const SECOND: u64 = 1_000_000_000;
/// Windows a second, where the limit gives each at least ten.
const WINDOWS: u64 = 10;
/// A window has so many parts at most: its own, and what was left.
const MOST_PARTS: u64 = 4;
/// Looks at all kinds that a window's level may take.
const MOST_LOOKS: usize = 8;

impl Default for Shares {
    fn default() -> Shares {
        Shares {
            kinds: vec![Kind::default(); KINDS].into(),
            window: 0,
            second: 0,
            taken: 0,
            spent: 0,
            part: 0,
            owed: 0,
            level: 0,
            unsated: 0,
            came: (0, 1),
        }
    }
}

impl Shares {
    /// Whether one more of a kind is within the limit at `now`.
    pub fn takes(&mut self, reason: DropReason, interface: u32, limit: u32, now: u64) -> bool {
        let windows = if u64::from(limit) >= 10 * WINDOWS {
            WINDOWS
        } else {
            1
        };
        // Both count from 1; 0 stands for never.
        let (window, second) = (now / (SECOND / windows) + 1, now / SECOND + 1);
        if (window, second) != (self.window, self.second) {
            self.begin(window, second, windows, limit);
        }
        let place =
            (interface.wrapping_mul(0x9e37_79b9) ^ (reason as u32).wrapping_mul(0x85eb_ca6b)) >> 22;
        let Some(kind) = self.kinds.get_mut(place as usize & (KINDS - 1)) else {
            return false;
        };
        if (kind.asked, kind.most.0) == (0, 0) {
            self.came.0 += 1;
        }
        kind.asked = kind.asked.saturating_add(1);
        let left = self.part.saturating_sub(self.taken);
        let is_reserved = kind.took < kind.reserved;
        if !is_reserved && kind.took > 0 {
            let share = if kind.reserved < self.level {
                (self.part / self.came.1.max(self.came.0)).max(1)
            } else {
                0
            };
            let kept = kept(self.part);
            // Of what cannot be divided evenly nobody takes more than others: it is left to the next window.
            if left <= kept || (kind.took >= share && left <= kept + self.owed + self.unsated) {
                return false;
            }
        }
        if left == 0 {
            return false;
        }
        kind.took += 1;
        self.taken += 1;
        self.owed -= u32::from(is_reserved);
        true
    }

    /// Another window begins.
    fn begin(&mut self, window: u64, second: u64, windows: u64, limit: u32) {
        let (is_new, is_next) = (second != self.second, second == self.second + 1);
        for kind in &mut self.kinds {
            let most = kind.most.0.max(kind.asked);
            let most = match (is_new, is_next) {
                (false, _) => (most, kind.most.1),
                (true, true) => (0, most),
                (true, false) => (0, 0),
            };
            *kind = Kind {
                most,
                ..Kind::default()
            };
        }
        if is_new {
            let before = if is_next { self.came.0 } else { 1 };
            (self.spent, self.came) = (0, (0, before.max(1)));
        } else {
            self.spent += self.taken;
        }
        (self.window, self.second, self.taken) = (window, second, 0);
        // Of the second, so many windows have begun.
        let begun = (window - 1) % windows + 1;
        let (limit, spent) = (u64::from(limit), u64::from(self.spent));
        self.part = (limit * begun / windows)
            .saturating_sub(spent)
            .min(MOST_PARTS * limit / windows)
            .min(limit) as u32;
        self.level = self.find_level(self.part - kept(self.part));
        (self.owed, self.unsated) = (0, 0);
        for kind in &mut self.kinds {
            kind.reserved = kind.wants().min(self.level);
            self.owed += kind.reserved;
            self.unsated += u32::from(kind.wants() > self.level);
        }
    }

    /// Up to where all may be given what they want, so that it is no more than `room` together: whoever wants less leaves the
    /// rest to the others. One that is found after [`MOST_LOOKS`] is lower than it might be.
    fn find_level(&self, room: u32) -> u32 {
        let wanting = self.kinds.iter().filter(|kind| kind.wants() > 0).count() as u32;
        let mut level = room / wanting.max(1);
        for _ in 0..MOST_LOOKS {
            let (mut content, mut others) = (0, 0);
            for wants in self.kinds.iter().map(Kind::wants) {
                if wants <= level {
                    content += wants;
                } else {
                    others += 1;
                }
            }
            let higher = room
                .saturating_sub(content)
                .checked_div(others)
                .unwrap_or(level);
            if higher <= level {
                break;
            }
            level = higher;
        }
        level
    }
}

/// What of a window's part is kept for those who come singly.
fn kept(part: u32) -> u32 {
    part.div_ceil(8).min(part - part.min(1))
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
                    let takes =
                        shares.takes(reason, interface, limit, milli * 1_000_000 + 7 * SECOND);
                    taken[place] += u32::from(takes && milli >= (seconds - 1) * 1000);
                }
            }
        }
        taken
    }

    #[test]
    fn the_limit_holds_and_one_kind_alone_may_take_all_of_it() {
        for limit in [0, 1, 5, 99, 100, 1000, 12_345] {
            let [taken] = run(limit, &[(DropReason::NoRoute, 1, 20)], 3)[..] else {
                panic!()
            };
            assert!(
                taken <= limit && taken >= (limit.min(20_000) / 10 * 8).max(limit.min(1)),
                "limit {limit}: {taken}"
            );
        }
    }

    #[test]
    fn a_flood_leaves_rare_kinds_their_share() {
        let kinds = [
            (DropReason::NoRoute, 1, 1000),
            (DropReason::AclDenied, 1, 1),
            (DropReason::NoRoute, 2, 1),
            (DropReason::TtlExpired, 3, 1),
        ];
        let taken = run(400, &kinds, 3);
        assert!(taken.iter().sum::<u32>() <= 400);
        assert!(
            taken.iter().all(|&taken| (70..=110).contains(&taken)),
            "{taken:?}"
        );
    }

    #[test]
    fn a_flood_takes_what_others_leave_and_a_burst_finds_room() {
        let mut shares = Shares::default();
        let mut reported = [0; 2];
        for milli in 0..4000_u64 {
            let now = milli * 1_000_000;
            let mut takes = |kind: usize, reason| {
                reported[kind] += u32::from(shares.takes(reason, 1, 100, now) && milli >= 3000)
            };
            (0..3).for_each(|_| takes(0, DropReason::NoRoute));
            // Five at once, three times a second.
            if milli % 300 == 150 {
                (0..5).for_each(|_| takes(1, DropReason::HostUnreachable));
            }
        }
        assert_eq!(reported[1], 15, "all of the rare kind");
        assert!(
            reported[0] >= 70 && reported[0] + reported[1] <= 100,
            "{reported:?}"
        );
    }

    /// Fourteen kinds come once a second each, and one of them twenty at once, at any time of it.
    #[test]
    fn what_rare_kinds_leave_is_given_to_a_burst() {
        for at in 0..1000_u64 {
            let mut shares = Shares::default();
            let (mut rare, mut burst) = (0, 0);
            for milli in 0..4000_u64 {
                let now = milli * 1_000_000;
                if milli % 70 == 3 && milli % 1000 < 980 {
                    let takes =
                        shares.takes(DropReason::NoRoute, (milli % 1000 / 70) as u32, 100, now);
                    rare += u32::from(takes && milli >= 3000);
                }
                if milli == 3000 + at {
                    burst = (0..20)
                        .filter(|_| shares.takes(DropReason::NoRoute, 5, 100, now))
                        .count();
                }
            }
            // A window alone has ten, of which two are kept.
            assert!(
                burst
                    >= if at < 100 {
                        6
                    } else if at < 200 {
                        14
                    } else {
                        20
                    },
                "{burst} at {at}"
            );
            assert!(rare >= 13, "{rare} at {at}");
        }
    }

    #[test]
    fn floods_share_evenly_what_rare_kinds_leave() {
        let rare = (10..22).map(|interface| (DropReason::NoRoute, interface, 0));
        let kinds: Vec<_> = [(DropReason::NoRoute, 1, 10), (DropReason::AclDenied, 1, 3)]
            .into_iter()
            .chain(rare)
            .collect();
        let mut shares = Shares::default();
        let mut taken = vec![0; kinds.len()];
        for milli in 0..4000_u64 {
            for (place, &(reason, interface, each)) in kinds.iter().enumerate() {
                let each = if each == 0 {
                    u32::from(milli % 1000 == 80 * place as u64 - 100)
                } else {
                    each
                };
                let reported = (0..each)
                    .filter(|_| shares.takes(reason, interface, 100, milli * 1_000_000))
                    .count();
                taken[place] += if milli >= 3000 { reported } else { 0 };
            }
        }
        assert!(taken[2..].iter().all(|&taken| taken == 1), "{taken:?}");
        assert!(
            taken[..2].iter().all(|taken| (34..=44).contains(taken)),
            "{taken:?}"
        );
        assert!(taken.iter().sum::<usize>() <= 100);
    }

    #[test]
    fn a_clock_that_jumps_stops_nothing() {
        let mut shares = Shares::default();
        let mut takes = |now: u64| {
            (0..1000)
                .filter(|_| shares.takes(DropReason::NoRoute, 1, 100, now))
                .count()
        };
        // Of ten, and of forty in a window that has others' before it, an eighth is kept.
        assert_eq!(
            [takes(SECOND), takes(u64::MAX), takes(0), takes(SECOND)],
            [8, 35, 8, 8]
        );
    }
}
