//! Flows leave: those that are over, all of them when the meter ends, and some when there is no room.
//!
//! For each place a tick of 67 ms says when its record has to be looked at; it stands in the bucket, which is
//! read from one end to the other twice a second, a little of it each turn. A packet does
//! not change that tick: when its time comes, the record says whether the flow is over, or when it has to be looked at
//! again. So a flow is reported at most half a second and two ticks after its time, and never before it. A tick has 16 bits, which
//! last for more than an hour: it is never more than ten seconds ahead.
//!
//! **Who makes room.** Of the flows that share a new one's bucket the one whose time comes first leaves; if packets came since
//! that was noted, it is noted anew and the next one is asked. So flows that go on stay when a flood of new ones
//! comes, and those of the flood leave; and a flood touches no lines but those it needs itself. Of a bucket with few flows
//! nobody leaves: somebody of another one does. A flow that leaves this way is
//! exported with the reason "lack of resources" when the ring has room, else it is counted as unexported.

use weir_cpu::prefetch_write;

use super::Facts;
use super::index::{Index, WAYS};
use super::record::{EndReason, Fraction, Hot, Reading, milliseconds};
use super::table::{Counts, Table};

/// Nanoseconds of a tick are this power of two: 67 ms.
const TICK: u32 = 26;
/// Nanoseconds in which all places are looked through.
const PASS: u64 = 500_000_000;
/// Buckets that are looked through in a turn at most, and flows that leave.
const MOST_BUCKETS: usize = 2048;
const MOST_LEAVE: usize = 256;
/// So many buckets before its turn the walk asks for one, mostly some turns earlier.
const WALK_AHEAD: usize = 8;
/// So many flows before its turn a bucket is asked for, and twice as many a record.
const EARLY: usize = 10;
/// Slots that are asked for before they are written.
const AHEAD: usize = 6;
/// Flows of a bucket among which one is chosen to make room, at least.
pub(super) const CHOICE: usize = 4;
/// So often those that had packets are let stay.
const CHANCES: usize = 8;
/// A flow is looked at so often at least, in nanoseconds; and reported when it has so many packets: 32 bits hold them
/// up to 200 million packets a second.
const HORIZON: u64 = 10_000_000_000;
const MOST_PACKETS: u32 = 1 << 31;
/// Nobody looked for so long: ticks could be taken for later ones.
const LONG: u64 = 1 << (TICK + 14);

/// Where the walk over all buckets is.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The last moment that was passed in.
    pub(super) now: u64,
    hand: usize,
    /// Up to when buckets were looked through.
    walked: u64,
    /// Where room was made last when a bucket of its own had none.
    room: usize,
}

impl Clock {
    /// The tick of the last moment.
    #[inline(always)]
    pub(super) fn tick(&self) -> u16 {
        (self.now >> TICK) as u16
    }
}

impl Table {
    /// When the record at a place has to be looked at: never before its time.
    #[inline]
    pub(super) fn due_of(&self, place: u32) -> u16 {
        let (time, now) = (self.over_at(self.index.hot(place)).0, self.clock.now);
        // The tick in which the time lies is over by then.
        ((time.clamp(now.saturating_sub(HORIZON), now.saturating_add(HORIZON)) >> TICK) as u16)
            .wrapping_add(1)
    }

    /// The same of a flow that begins now.
    #[inline(always)]
    pub(super) fn due_of_new(&self, packet: &Reading) -> u16 {
        let ahead = if packet.ends() {
            0
        } else {
            self.settings.active.min(self.settings.idle).min(HORIZON)
        };
        // As its first packet's time is noted, in whole milliseconds.
        (((self.clock.now / 1_000_000 * 1_000_000).saturating_add(ahead) >> TICK) as u16)
            .wrapping_add(1)
    }

    /// When a flow is over as things are, and why.
    #[inline]
    fn over_at(&self, hot: &Hot) -> (u64, EndReason) {
        if hot.is_over() {
            return (0, EndReason::End);
        }
        if hot.packets() >= MOST_PACKETS {
            return (0, EndReason::Active);
        }
        let (first, last) = hot.times(self.clock.now);
        let (active, idle) = (
            first.saturating_add(self.settings.active),
            last.saturating_add(self.settings.idle),
        );
        if active < idle {
            (active, EndReason::Active)
        } else {
            (idle, EndReason::Idle)
        }
    }

    /// Whether packets came since the time to look at it was noted: that was then so long ahead at most.
    fn is_used(&self, place: u32) -> bool {
        let now = self.clock.now;
        let ahead = i64::from(
            self.index
                .due(place)
                .wrapping_sub(self.clock.tick())
                .cast_signed(),
        );
        let due = (now >> TICK).saturating_add_signed(ahead) << TICK;
        let noted = due.saturating_sub(self.settings.idle.min(HORIZON));
        let hot = self.index.hot(place);
        hot.times(now).1 > noted || hot.is_lively(milliseconds(now))
    }

    pub(super) fn look_at_all_again(&mut self) {
        let (tick, mut at) = (self.clock.tick(), 0);
        loop {
            for way in 0..WAYS {
                self.index.set_due(Index::place(at, way), tick);
            }
            at = self.index.next_bucket(at);
            if at == 0 {
                return;
            }
        }
    }

    /// Lets the flows go that are over: as many as a turn may, the rest in the next ones. Whether there is more to do now.
    pub fn expire(&mut self, now: u64) -> bool {
        self.set_clock(now);
        if now.saturating_sub(self.clock.walked) > LONG {
            self.look_at_all_again();
        }
        let walked = now.saturating_sub(self.clock.walked).min(PASS);
        // Less than 2^29 nanoseconds by less than 2^31 buckets.
        let quota = (walked * self.index.walk_length() as u64 / PASS) as usize;
        if quota == 0 && walked < PASS {
            return false;
        }
        let budget = quota.clamp(1, MOST_BUCKETS);
        let (tick, mut leave, mut done) = (self.clock.tick(), Leaving::default(), 0);
        while done < budget && leave.count + WAYS <= MOST_LEAVE {
            self.index.ask_bucket(self.clock.hand + WALK_AHEAD);
            self.index
                .flows_of(self.clock.hand, tick)
                .filter(|(_, due)| *due <= 0)
                .for_each(|(place, _)| leave.push(place));
            self.clock.hand = self.index.next_bucket(self.clock.hand);
            done += 1;
        }
        // What the budgets did not reach stays to be done: the clock goes on only as far as it was walked.
        let more = done < quota;
        self.clock.walked = if more {
            now - walked + walked * done as u64 / quota as u64
        } else {
            now
        };
        self.leave(now, &leave, Why::Over);
        self.counts.resident.set(self.resident() as u64);
        self.counts
            .spare_buckets
            .set(self.index.spare_used() as u64);
        more
    }

    /// Lets all flows go, as many as the ring has room for; how many are still here. To be called again until
    /// there are none, while the cold side empties the ring.
    pub fn flush(&mut self) -> usize {
        loop {
            let (mut leave, resident) = (Leaving::default(), self.resident());
            let room = self.ring.room(MOST_LEAVE).min(MOST_LEAVE);
            if resident == 0 || room == 0 {
                self.counts.resident.set(resident as u64);
                return resident;
            }
            while leave.count < room.min(resident) {
                let left = room - leave.count;
                self.index
                    .flows_of(self.clock.hand, 0)
                    .take(left)
                    .for_each(|(place, _)| leave.push(place));
                self.clock.hand = self.index.next_bucket(self.clock.hand);
            }
            self.leave(0, &leave, Why::Forced);
        }
    }

    /// What is the same for all flows that begin now.
    pub(super) fn dawn(&self) -> Dawn {
        let now = self.clock.now;
        let whole = now / 1_000_000 * 1_000_000;
        let ahead = self.settings.idle.min(HORIZON);
        let due = (whole.saturating_add(self.settings.active.min(ahead)) >> TICK) as u16;
        Dawn {
            moment: milliseconds(now),
            tick: self.clock.tick(),
            due: due.wrapping_add(1),
            noted: (whole.saturating_add(ahead))
                .saturating_sub(now >> TICK << TICK)
                .cast_signed(),
        }
    }

    /// The usual case of a full table: a plain packet whose flow is not there, and in whose bucket another one leaves that had no packets since it
    /// was looked at, at the place that was found for it; and the ring has room. `false`, and nothing is done, in all others.
    #[inline(always)]
    pub(super) fn displace(
        &mut self,
        dawn: &Dawn,
        packet: &Reading,
        place: u32,
        tally: &mut Tally,
    ) -> bool {
        if !packet.is_simple() || !self.is_full() || self.ring.room(1) == 0 {
            return false;
        }
        let Some(due) = self.index.due_of_other(place, packet.hash) else {
            return false;
        };
        let Some(hot) = self.index.records_mut().get_mut(place as usize) else {
            return false;
        };
        if hot.has_more() || dawn.is_used(hot, due) {
            return false;
        }
        // The slots were the reader's last: asked for early.
        prefetch_write(self.ring.address(AHEAD).cast::<u8>());
        let (packets, octets) = (hot.packets(), hot.octets());
        self.ring.stage_with(|slot| {
            slot.fill(
                (hot, hot.short),
                EndReason::Resources,
                (&Facts::NONE, &[0; 4]),
            )
        });
        *hot = Hot::begin(packet, dawn.moment, Fraction::of(self.clock.now));
        self.index.replace(place, packet.hash);
        self.index.set_due(place, dawn.due);
        tally.flows += 1;
        tally.packets += u64::from(packets);
        tally.octets += octets;
        true
    }

    /// Lets the reader see what was put into the ring, and all read what was counted.
    #[inline(always)]
    pub(super) fn close(&mut self, tally: &Tally) {
        if tally.flows == 0 {
            return;
        }
        let Counts {
            flows,
            exported,
            exported_packets,
            exported_octets,
            long_ways,
            probes,
            ..
        } = &**self.counts;
        [
            flows,
            &exported[EndReason::Resources as usize],
            long_ways,
            probes,
        ]
        .into_iter()
        .for_each(|counter| counter.add(tally.flows));
        exported_packets.add(tally.packets);
        exported_octets.add(tally.octets);
        self.ring.publish_all();
    }

    /// Makes room for a flow: its place, if it takes that of one of its own bucket, or else there is room now.
    #[inline(always)]
    pub(super) fn take_over(&mut self, hash: u64) -> Option<u32> {
        let home = self.index.home(hash);
        let is_own = self.index.count_of(home) >= CHOICE;
        let bucket = if is_own { home } else { self.other_bucket() };
        let place = self.choose(bucket)?;
        if !self.export(place, EndReason::Resources) {
            self.lose(place);
        }
        if is_own {
            self.index.clear(place);
            self.index.replace(place, hash);
            return Some(place);
        }
        self.remove(place);
        None
    }

    /// Of a bucket, and the spare ones behind it, the flow that leaves first.
    #[inline(always)]
    fn choose(&mut self, bucket: usize) -> Option<u32> {
        let tick = self.clock.tick();
        for _ in 1..CHANCES {
            let place = self.index.soonest(bucket, tick)?;
            if !self.is_used(place) {
                return Some(place);
            }
            // Behind those that begin now, which would have the same tick.
            self.index
                .set_due(place, self.due_of(place).wrapping_add(1));
        }
        self.index.soonest(bucket, tick)
    }

    /// The next bucket in turn where there is a choice; there is one in a full table, which has four flows to a bucket or more.
    #[cold]
    fn other_bucket(&mut self) -> usize {
        for _ in 0..self.index.walk_length() {
            self.clock.room = self.index.next_bucket(self.clock.room);
            if self.index.count_of(self.clock.room) >= CHOICE {
                break;
            }
        }
        self.clock.room
    }

    /// Flows leave, if they may: the record of one that comes later is asked for, then its bucket, so that the waits overlap;
    /// and one after the other, since a processor that has too many lines to wait for forgets the rest.
    fn leave(&mut self, now: u64, leaving: &Leaving, why: Why) {
        let places = leaving.places();
        let bucket = |table: &Table, place: u32| table.index.fetch(table.index.hash_of(place));
        places
            .iter()
            .take(2 * EARLY)
            .for_each(|place| self.index.fetch_record(*place));
        places
            .iter()
            .take(EARLY)
            .for_each(|place| bucket(self, *place));
        for (number, &place) in places.iter().enumerate() {
            if let Some(later) = places.get(number + 2 * EARLY) {
                self.index.fetch_record(*later);
            }
            if let Some(later) = places.get(number + EARLY) {
                bucket(self, *later);
            }
            self.leave_if(now, place, why);
        }
    }

    fn leave_if(&mut self, now: u64, place: u32, why: Why) {
        let (time, reason) = self.over_at(self.index.hot(place));
        match why {
            Why::Over if time > now => self.index.set_due(place, self.due_of(place)),
            Why::Over if self.export(place, reason) => self.remove(place),
            // It stays as it is, and is found again with the next walk.
            Why::Over => self.counts.waited.add(1),
            Why::Forced => {
                if self.export(place, EndReason::Forced) {
                    self.remove(place);
                }
            }
        }
    }

    /// Puts a record into the ring; `false` if that is full.
    #[inline(always)]
    pub(super) fn export(&mut self, place: u32, reason: EndReason) -> bool {
        // The slots were the reader's last: asked for early.
        let slot = self.ring.address(AHEAD).cast::<u8>();
        prefetch_write(slot);
        let (hot, beside) = (self.index.hot(place), self.index.beside(place));
        let short = self.index.short_of(place);
        let written = self
            .ring
            .push_with(|slot| slot.fill((hot, short), reason, beside));
        if written {
            self.counts.exported[reason as usize].add(1);
            self.counts.exported_packets.add(hot.packets().into());
            self.counts.exported_octets.add(hot.octets());
        }
        written
    }

    #[cold]
    fn lose(&mut self, place: u32) {
        let hot = self.index.hot(place);
        self.counts.unexported.add(1);
        self.counts.unexported_packets.add(hot.packets().into());
        self.counts.unexported_octets.add(hot.octets());
    }

    #[inline(always)]
    fn remove(&mut self, place: u32) {
        let hash = self.index.hash_of(place);
        self.index.remove(hash, place);
        self.index.clear(place);
    }
}

/// What is the same for all flows that begin in one moment.
pub(super) struct Dawn {
    moment: u32,
    tick: u16,
    /// When their records have to be looked at.
    due: u16,
    /// As [`Table::is_used`] has it: a flow had packets since if it is not quiet for so many nanoseconds, less those to its tick.
    noted: i64,
}

impl Dawn {
    /// Whether packets of a flow came since the time to look at it was noted.
    #[inline(always)]
    fn is_used(&self, hot: &Hot, due: u16) -> bool {
        let ahead = i64::from(due.wrapping_sub(self.tick).cast_signed()) << TICK;
        self.noted > ahead + i64::from(hot.quiet_for(self.moment)) * 1_000_000
            || hot.is_lively(self.moment)
    }
}

/// Flows that made room for others, and what they had counted.
#[derive(Default)]
pub(super) struct Tally {
    flows: u64,
    packets: u64,
    octets: u64,
}

/// Why flows leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Over,
    Forced,
}

/// Places whose flows are to leave.
struct Leaving {
    places: [u32; MOST_LEAVE],
    count: usize,
}

impl Default for Leaving {
    fn default() -> Leaving {
        Leaving {
            places: [0; MOST_LEAVE],
            count: 0,
        }
    }
}

impl Leaving {
    #[inline(always)]
    fn push(&mut self, place: u32) {
        if let Some(free) = self.places.get_mut(self.count) {
            *free = place;
            self.count += 1;
        }
    }

    fn places(&self) -> &[u32] {
        self.places.get(..self.count).unwrap_or(&[])
    }
}
