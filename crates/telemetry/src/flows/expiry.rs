//! Flows leave: those that are over, all of them when the meter ends, and some when there is no room.
//!
//! For each place a number of 32 bits says when its record has to be looked at; four megabytes of them for a
//! million flows, which are read from one end to the other twice a second, a little of it each turn. A packet does
//! not change that number: when its time comes, the record says whether the flow is over, or when it has to be looked at
//! again. So a flow is reported at most half a second and a tick (67 ms) after its time, and never before it.
//!
//! **Who makes room.** Of 16 neighbouring places the flow whose time comes first leaves; if packets came since
//! that was noted, it is noted anew and another 16 places are looked at. So flows that go on stay when a flood of new ones
//! comes, and those of the flood leave. A flow that leaves this way is exported with the reason
//! "lack of resources" when the ring has room, else it is counted as unexported.

use weir_cpu::prefetch_write;

use super::key::Short;
use super::record::{EndReason, Hot};
use super::table::{Table, VECTOR};

/// No flow: never to be looked at.
pub(super) const FREE: u32 = u32::MAX;
/// Nanoseconds of a tick are this power of two: 67 ms, so that 32 bits last for nine years.
const TICK: u32 = 26;
/// Nanoseconds in which all places are looked through.
const PASS: u64 = 500_000_000;
/// Places that are looked through in a turn at most, and flows that leave.
const MOST_PLACES: usize = 16_384;
const MOST_LEAVE: usize = 256;
/// Places among which one is chosen to make room.
const CHOICE: usize = 16;
/// So many flows before its turn a bucket is asked for, and twice as many a record.
const EARLY: usize = 10;
/// Slots that are asked for before they are written.
const AHEAD: usize = 6;
/// So often those that had packets are let stay.
const CHANCES: usize = 4;
/// A flow is looked at so often at least, in nanoseconds; and reported when it has so many packets: 32 bits hold them
/// up to 200 million packets a second.
const HORIZON: u64 = 10_000_000_000;
const MOST_PACKETS: u32 = 1 << 31;

/// Where the walk over all places is.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The last moment that was told.
    pub(super) now: u64,
    hand: usize,
    /// Up to when places were looked through.
    walked: u64,
    /// Where room was made last.
    room: usize,
}

impl Table {
    /// When the record at a place has to be looked at: never before its time.
    #[inline]
    pub(super) fn due_of(&self, place: usize) -> u32 {
        // Looked at before its numbers could wrap.
        let time = self.over_at(&self.hot[place]).0.min(self.clock.now.saturating_add(HORIZON));
        // The tick in which the time lies is over by then.
        ((time >> TICK) as u32).saturating_add(1).min(FREE - 1)
    }

    /// When a flow is over as things are, and why.
    #[inline]
    fn over_at(&self, hot: &Hot) -> (u64, EndReason) {
        if hot.is_over() {
            return (0, EndReason::End);
        }
        if hot.packets >= MOST_PACKETS {
            return (0, EndReason::Active);
        }
        let (first, last) = hot.times(self.clock.now);
        let (active, idle) = (first.saturating_add(self.settings.active), last.saturating_add(self.settings.idle));
        if active < idle { (active, EndReason::Active) } else { (idle, EndReason::Idle) }
    }

    /// Whether packets came since the time to look at it was noted: that was then so long ahead at most.
    fn is_used(&self, place: usize) -> bool {
        let noted = (u64::from(self.due[place]) << TICK).saturating_sub(self.settings.idle.min(HORIZON));
        self.hot[place].times(self.clock.now).1 > noted
    }

    pub(super) fn look_at_all_again(&mut self) {
        self.due.iter_mut().filter(|due| **due != FREE).for_each(|due| *due = 0);
    }

    /// Lets the flows go that are over: as many as a turn may, the rest in the next ones. Whether there is more to do now.
    pub fn expire(&mut self, now: u64) -> bool {
        self.set_clock(now);
        let walked = now.saturating_sub(self.clock.walked).min(PASS);
        // Less than 2^29 nanoseconds by less than 2^31 places.
        let quota = (walked * self.fresh as u64 / PASS) as usize;
        if quota == 0 && walked < PASS {
            return false;
        }
        let mut left = quota.clamp(CHOICE, MOST_PLACES).min(self.fresh);
        let budget = left;
        let (tick, mut leave) = ((now >> TICK) as u32, Leaving::default());
        while left > 0 && leave.count < MOST_LEAVE {
            let (from, count) = (self.clock.hand, left.min(self.fresh - self.clock.hand).min(MOST_LEAVE - leave.count));
            for (place, due) in self.due[from..from + count].iter().enumerate() {
                if *due <= tick {
                    leave.push(from + place);
                }
            }
            left -= count;
            self.clock.hand = if from + count >= self.fresh { 0 } else { from + count };
        }
        // What the budgets did not reach stays to be done: the clock goes on only as far as it was walked.
        let done = budget - left;
        let more = done < quota;
        self.clock.walked = if more { now - walked + walked * done as u64 / quota as u64 } else { now };
        self.leave(now, &leave, Why::Over);
        self.counts.resident.set(self.resident() as u64);
        self.counts.spare_buckets.set(self.index.spare_used() as u64);
        more
    }

    /// Lets all flows go, as many as the ring has room for; how many are still here. To be called again until
    /// there are none, while the cold side empties the ring.
    pub fn flush(&mut self) -> usize {
        loop {
            let (mut leave, resident) = (Leaving::default(), self.resident());
            let room = self.ring.room(VECTOR).min(MOST_LEAVE);
            if resident == 0 || room == 0 {
                self.counts.resident.set(resident as u64);
                return resident;
            }
            while leave.count < room.min(resident) {
                if self.due[self.clock.hand] != FREE {
                    leave.push(self.clock.hand);
                }
                self.clock.hand = (self.clock.hand + 1) % self.fresh.max(1);
            }
            self.leave(0, &leave, Why::Forced);
        }
    }

    /// Makes room for so many flows.
    #[inline]
    pub(super) fn make_room(&mut self, now: u64, flows: usize) {
        if self.hot.len() - self.resident() < flows {
            self.evict(now);
        }
    }

    /// Room for a whole vector.
    #[inline(never)]
    fn evict(&mut self, now: u64) {
        for chance in (0..CHANCES).rev() {
            let wanted = VECTOR.saturating_sub(self.hot.len() - self.resident());
            if wanted == 0 {
                return;
            }
            let mut leave = Leaving::default();
            for _ in 0..wanted {
                leave.push(self.choose());
            }
            self.leave(now, &leave, if chance == 0 { Why::Room } else { Why::RoomUnlessUsed });
        }
        // Neighbours that were chosen twice, in a small table.
        while self.hot.len() - self.resident() < VECTOR {
            let mut one = Leaving::default();
            one.push(self.choose());
            self.leave(now, &one, Why::Room);
        }
    }

    /// Of the next places the one whose time comes first.
    #[inline]
    fn choose(&mut self) -> usize {
        let from = self.clock.room;
        let end = (from + CHOICE).min(self.fresh);
        self.clock.room = if end >= self.fresh { 0 } else { end };
        let earliest = self.due[from..end].iter().enumerate().min_by_key(|(_, due)| **due);
        from + earliest.map_or(0, |(place, _)| place)
    }

    /// Flows leave, if they may: the record of one that comes later is asked for, then its bucket, so that the waits overlap;
    /// and one after the other, since a processor that has too many lines to wait for forgets the rest.
    fn leave(&mut self, now: u64, leaving: &Leaving, why: Why) {
        let places = leaving.places();
        let record = |table: &Table, place: u32| {
            prefetch_write(std::ptr::from_ref(&table.hot[place as usize]).cast());
            prefetch_write(std::ptr::from_ref(&table.facts[place as usize]).cast());
        };
        let bucket = |table: &Table, place: u32| table.index.fetch(table.secret.hash(&table.hot[place as usize].short));
        places.iter().take(2 * EARLY).for_each(|place| record(self, *place));
        places.iter().take(EARLY).for_each(|place| bucket(self, *place));
        for (number, &place) in places.iter().enumerate() {
            if let Some(later) = places.get(number + 2 * EARLY) {
                record(self, *later);
            }
            if let Some(later) = places.get(number + EARLY) {
                bucket(self, *later);
            }
            self.leave_if(now, place as usize, why);
        }
    }

    fn leave_if(&mut self, now: u64, place: usize, why: Why) {
        if self.due[place] == FREE {
            return;
        }
        let (time, reason) = self.over_at(&self.hot[place]);
        let over = time <= now;
        match why {
            Why::Over if !over => self.due[place] = self.due_of(place),
            Why::Over if self.export(place, reason) => self.remove(place),
            // It stays as it is, and is found again with the next walk.
            Why::Over => self.counts.waited.add(1),
            Why::RoomUnlessUsed if self.is_used(place) => self.due[place] = self.due_of(place),
            Why::Room | Why::RoomUnlessUsed => {
                if !self.export(place, EndReason::Resources) {
                    self.lose(place);
                }
                self.remove(place);
            }
            Why::Forced => {
                if self.export(place, EndReason::Forced) {
                    self.remove(place);
                }
            }
        }
    }

    /// Puts a record into the ring; `false` if that is full.
    pub(super) fn export(&mut self, place: usize, reason: EndReason) -> bool {
        // The slots were the reader's last: asked for early.
        let slot = self.ring.address(AHEAD).cast::<u8>();
        (0..2).for_each(|line| prefetch_write(slot.wrapping_add(64 * line)));
        let (hot, facts, addresses) = (&self.hot[place], &self.facts[place], &self.addresses[place]);
        let written = self.ring.push_with(|slot| slot.fill(hot, reason, facts, addresses));
        if written {
            self.counts.exported[reason as usize].add(1);
            self.counts.exported_packets.add(hot.packets.into());
            self.counts.exported_octets.add(hot.octets);
        }
        written
    }

    #[cold]
    fn lose(&mut self, place: usize) {
        let hot = &self.hot[place];
        self.counts.unexported.add(1);
        self.counts.unexported_packets.add(hot.packets.into());
        self.counts.unexported_octets.add(hot.octets);
    }

    fn remove(&mut self, place: usize) {
        self.index.remove(self.secret.hash(&self.hot[place].short), place as u32);
        self.due[place] = FREE;
        // Who guessed that a packet's flow is here finds that it is not.
        self.hot[place].short = Short::default();
        self.free.push(place as u32);
    }
}

/// Why flows leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Over,
    Forced,
    Room,
    RoomUnlessUsed,
}

/// Places whose flows are to leave.
struct Leaving {
    places: [u32; MOST_LEAVE],
    count: usize,
}

impl Default for Leaving {
    fn default() -> Leaving {
        Leaving { places: [0; MOST_LEAVE], count: 0 }
    }
}

impl Leaving {
    #[inline(always)]
    fn push(&mut self, place: usize) {
        if let Some(free) = self.places.get_mut(self.count) {
            *free = place as u32;
            self.count += 1;
        }
    }

    fn places(&self) -> &[u32] {
        self.places.get(..self.count).unwrap_or(&[])
    }
}
