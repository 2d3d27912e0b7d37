//! The sending half of a queue.
//!
//! **As slave** each piece of a frame is lent to the master where it lies: the descriptor names the
//! offset in the pool's region. What the master has read comes back when it moves the tail. Nothing
//! is copied, unless a packet lies in another pool.
//!
//! **As master** each frame is copied into the buffers that the slave offers, over several of them
//! where one is too small.
//!
//! The peer is interrupted once a turn (`flush`), and only when it asked for it.
//!
//! Runs on the worker that owns the queue. It never waits and allocates nothing but packets (and the
//! table of lent chunks, once a connection).

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use weir_buf::{DATA_ROOM, Pkt, PktCache, Pool, Vector};
use weir_port::TxQueue;

use crate::bell;
use crate::reason::Reason;
use crate::setup::Role;
use crate::shared::{Link, Shared, TxCounts};
use crate::sys::{Descriptor, MASK_INT, NEXT, Ring};

/// An Ethernet header: what is shorter is no frame.
const SHORTEST: usize = 14;
/// So many frames ahead of the one that is copied, the cache is asked for the buffer.
const AHEAD: u16 = 8;

/// The sending half.
pub(crate) struct Sender {
    shared: Arc<Shared>,
    number: usize,
    generation: u64,
    side: Option<Side>,
    /// Something was sent since the peer was last notified.
    unreported: bool,
}

/// What there is while there is a peer.
struct Side {
    link: Arc<Link>,
    ring: Ring,
    /// As slave: the oldest chunk that the master has. As master: the next buffer to fill.
    tail: u16,
    /// As slave: the chunks that the master has.
    lent: Option<Lent>,
}

/// Chunks in a slave's transmit ring: those from the side's tail to this head.
struct Lent {
    head: u16,
    /// The chunk of each place, as the offset of its data in the pool's region.
    offsets: Box<[u32]>,
}

impl Sender {
    pub(crate) fn new(shared: &Arc<Shared>, number: usize) -> Sender {
        Sender {
            shared: shared.clone(),
            number,
            generation: 0,
            side: None,
            unreported: false,
        }
    }

    /// Takes up the current link, or lets go of one that is gone.
    #[cold]
    fn change(&mut self) {
        let generation = self.shared.generation();
        let Some(link) = self.shared.link() else {
            return;
        };
        self.generation = generation;
        if self.side.as_ref().is_some_and(|side| {
            link.as_ref()
                .is_some_and(|link| Arc::ptr_eq(&side.link, link))
        }) {
            return;
        }
        self.let_go();
        let Some(link) = link.filter(|link| link.failure().is_none()) else {
            return;
        };
        let Some(ring) = link.tx.get(self.number).map(|lane| lane.ring.clone()) else {
            return;
        };
        let lent = (self.shared.config.role == Role::Slave).then(|| Lent {
            head: 0,
            offsets: vec![0; usize::from(ring.size())].into(),
        });
        self.side = Some(Side {
            link,
            ring,
            tail: 0,
            lent,
        });
    }

    fn let_go(&mut self) {
        self.unreported = false;
        let Some(mut side) = self.side.take() else {
            return;
        };
        if let Some(lent) = side.lent.take() {
            let count = lent.head.wrapping_sub(side.tail);
            let offset = |n| {
                lent.offsets
                    .get(side.ring.slot(side.tail.wrapping_add(n)))
                    .copied()
            };
            side.link.leave((0..count).filter_map(offset));
        }
    }

    #[cold]
    fn fail(&mut self, reason: Reason) {
        if let Some(side) = &self.side {
            self.shared.fail(&side.link, reason);
        }
        self.let_go();
    }

    /// Wakes the peer if it asked for it.
    fn tell(&mut self) {
        let (Some(side), Some(counts)) = (&self.side, self.shared.counts.get(self.number)) else {
            return;
        };
        self.unreported = false;
        // The counterpart is in the peer's going to sleep: see `before_sleep` in the receiving half.
        fence(Ordering::SeqCst);
        if side.ring.flags() & MASK_INT == 0
            && let Some(lane) = side.link.tx.get(self.number)
        {
            counts.tx.interrupts.add(1);
            bell::ring(lane.event.as_fd());
        }
    }
}

/// How many descriptors a frame may take at most, as slave.
#[inline(always)]
fn places(packet: &Pkt) -> usize {
    if packet.is_chained() || packet.len() > DATA_ROOM {
        many_places(packet)
    } else {
        1
    }
}

#[cold]
fn many_places(packet: &Pkt) -> usize {
    packet
        .segments()
        .count()
        .max(packet.total_len().div_ceil(DATA_ROOM))
}

/// A copy of a packet of another pool.
#[cold]
fn adopt(packet: &Pkt, pool: &Pool) -> Option<Pkt> {
    let read = |at, room: &mut [u8]| {
        packet.copy_out(at, room);
    };
    Pkt::gather(packet.total_len(), || pool.alloc(), read)
}

impl Side {
    /// As slave: frees what the master has read.
    #[inline(always)]
    fn reclaim(&mut self, pool: &Pool, cache: &mut PktCache) -> Result<(), Reason> {
        let Some(lent) = &self.lent else {
            return Ok(());
        };
        let done = self.ring.tail().wrapping_sub(self.tail);
        if done > lent.head.wrapping_sub(self.tail) {
            return Err(Reason::BadIndex);
        }
        // Counters that change with every frame are kept out of memory, here and below.
        let (first, offsets) = (self.tail, &lent.offsets);
        self.tail = first.wrapping_add(done);
        for n in 0..done {
            let offset = offsets
                .get(self.ring.slot(first.wrapping_add(n)))
                .copied()
                .unwrap_or(0);
            if let Some(packet) = pool.redeem(offset as usize, 0) {
                cache.free(packet);
            }
        }
        Ok(())
    }

    /// As slave: lends as many frames as fit; returns how many it took.
    #[inline(always)]
    fn lend(
        &mut self,
        pool: &Pool,
        counts: &TxCounts,
        from: &mut Vector,
        cache: &mut PktCache,
    ) -> usize {
        let Some(lent) = &mut self.lent else { return 0 };
        let room =
            usize::from(self.ring.size() - lent.head.wrapping_sub(self.tail).min(self.ring.size()));
        let (mut taken, mut used) = (0, 0);
        for packet in from.iter() {
            used += places(packet);
            if used > room {
                break;
            }
            taken += 1;
        }
        let (mut refused, mut head) = (0, lent.head);
        for packet in from.drain_front(taken) {
            if packet.is_chained() || packet.len() < SHORTEST || !pool.holds(&packet) {
                refused +=
                    u64::from(!lent.put_many(&mut head, &self.ring, pool, counts, packet, cache));
            } else {
                lent.put(&mut head, &self.ring, pool, packet, 0);
            }
        }
        lent.head = head;
        self.ring.set_head(lent.head);
        if refused > 0 {
            counts.refused.add(refused);
        }
        counts.packets.add(taken as u64 - refused);
        taken
    }

    /// As master: copies as many frames as fit; returns how many it took.
    #[inline(always)]
    fn copy_in(
        &mut self,
        counts: &TxCounts,
        from: &mut Vector,
        cache: &mut PktCache,
    ) -> Result<usize, Reason> {
        let mut room = self.ring.head().wrapping_sub(self.tail);
        if room > self.ring.size() {
            return Err(Reason::BadIndex);
        }
        let (mut taken, mut refused) = (0, 0);
        for packet in from.iter() {
            if room > AHEAD {
                let coming = self.ring.load(self.tail.wrapping_add(AHEAD));
                if let Some(region) = self.link.regions.get(usize::from(coming.region)) {
                    region.prefetch_write(coming.offset);
                }
            }
            let Some(used) = self.copy_one(packet, room)? else {
                break;
            };
            (taken, room) = (taken + 1, room - used);
            refused += u64::from(used == 0);
            self.tail = self.tail.wrapping_add(used);
        }
        self.ring.set_tail(self.tail);
        counts.packets.add(taken as u64 - refused);
        if refused > 0 {
            counts.refused.add(refused);
        }
        if taken == from.len() {
            cache.free_vector(from)
        } else {
            cache.free_all(from.drain_front(taken))
        }
        Ok(taken)
    }

    /// Copies one frame; returns how many buffers that took, 0 when it is none, `None` when there
    /// are too few.
    #[inline(always)]
    fn copy_one(&self, packet: &Pkt, room: u16) -> Result<Option<u16>, Reason> {
        if packet.is_chained() {
            return self.scatter(packet, room);
        }
        if packet.len() < SHORTEST {
            return Ok(Some(0));
        }
        if room == 0 {
            return Ok(None);
        }
        let buffer = self.ring.load(self.tail);
        if packet.len() > buffer.length as usize {
            return self.scatter(packet, room);
        }
        let region = self
            .link
            .regions
            .get(usize::from(buffer.region))
            .ok_or(Reason::BadDescriptor)?;
        if !region.write(buffer.offset, packet.data()) {
            return Err(Reason::BadDescriptor);
        }
        self.ring.fill(
            self.tail,
            Descriptor {
                flags: 0,
                length: packet.len() as u32,
                ..buffer
            },
        );
        Ok(Some(1))
    }

    /// Copies one frame into several buffers. The tail is moved by the caller, so that the peer sees
    /// a whole frame or nothing; a buffer that is given up again keeps its length.
    #[cold]
    fn scatter(&self, packet: &Pkt, room: u16) -> Result<Option<u16>, Reason> {
        if packet.total_len() < SHORTEST {
            return Ok(Some(0));
        }
        let mut used = 0u16;
        let mut open: Option<(Descriptor, u32)> = None;
        for mut rest in packet.segments() {
            while !rest.is_empty() {
                let (buffer, filled) = match open {
                    Some((buffer, filled)) if filled < buffer.length => (buffer, filled),
                    full => {
                        if used == room {
                            return Ok(None);
                        }
                        if let Some((buffer, filled)) = full {
                            let place = self.tail.wrapping_add(used - 1);
                            self.ring.fill(
                                place,
                                Descriptor {
                                    flags: NEXT,
                                    length: filled,
                                    ..buffer
                                },
                            );
                        }
                        let buffer = self.ring.load(self.tail.wrapping_add(used));
                        if buffer.length == 0 {
                            return Err(Reason::BadLength);
                        }
                        used += 1;
                        (buffer, 0)
                    }
                };
                let length = rest.len().min((buffer.length - filled) as usize);
                let (now, later) = rest.split_at(length);
                let region = self
                    .link
                    .regions
                    .get(usize::from(buffer.region))
                    .ok_or(Reason::BadDescriptor)?;
                let offset = buffer
                    .offset
                    .checked_add(filled)
                    .ok_or(Reason::BadDescriptor)?;
                if !region.write(offset, now) {
                    return Err(Reason::BadDescriptor);
                }
                (open, rest) = (Some((buffer, filled + length as u32)), later);
            }
        }
        if let Some((buffer, filled)) = open {
            self.ring.fill(
                self.tail.wrapping_add(used - 1),
                Descriptor {
                    flags: 0,
                    length: filled,
                    ..buffer
                },
            );
        }
        Ok(Some(used))
    }
}

impl Lent {
    /// Lends one unchained packet of the pool; there is room in the ring.
    #[inline(always)]
    fn put(&mut self, head: &mut u16, ring: &Ring, pool: &Pool, packet: Pkt, flags: u16) {
        let length = packet.len() as u32;
        let Ok((_, offset)) = pool.lend(packet) else {
            return;
        };
        if let Some(place) = self.offsets.get_mut(ring.slot(*head)) {
            *place = offset as u32;
        }
        ring.store(
            *head,
            Descriptor {
                flags,
                region: 1,
                length,
                offset: offset as u32,
            },
        );
        *head = head.wrapping_add(1);
    }

    /// Lends a packet piece by piece, after copying it if it is a stranger; `false` when it cannot be
    /// sent.
    #[cold]
    fn put_many(
        &mut self,
        head: &mut u16,
        ring: &Ring,
        pool: &Pool,
        counts: &TxCounts,
        mut packet: Pkt,
        cache: &mut PktCache,
    ) -> bool {
        if packet.total_len() < SHORTEST {
            cache.free(packet);
            return false;
        }
        if !pool.holds(&packet) {
            let Some(copy) = adopt(&packet, pool) else {
                return false;
            };
            counts.copied.add(1);
            packet = copy;
        }
        while let Some(rest) = packet.split_first() {
            self.put(head, ring, pool, std::mem::replace(&mut packet, rest), NEXT);
        }
        self.put(head, ring, pool, packet, 0);
        true
    }
}

impl TxQueue for Sender {
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize {
        if self.shared.generation() != self.generation {
            self.change();
        }
        let wanted = from.len();
        let Some(counts) = self.shared.counts.get(self.number).map(|counts| &counts.tx) else {
            return 0;
        };
        let Some(side) = &mut self.side else {
            counts.no_peer.add(wanted as u64);
            return 0;
        };
        let result = if side.lent.is_some() {
            side.reclaim(&self.shared.pool, cache)
                .map(|()| side.lend(&self.shared.pool, counts, from, cache))
        } else {
            side.copy_in(counts, from, cache)
        };
        match result {
            Ok(taken) => {
                self.unreported |= taken > 0;
                if taken < wanted {
                    counts.ring_full.add((wanted - taken) as u64);
                }
                taken
            }
            Err(reason) => {
                self.fail(reason);
                0
            }
        }
    }

    fn flush(&mut self, cache: &mut PktCache) {
        if self.shared.generation() != self.generation {
            self.change();
        }
        if self.unreported {
            self.tell();
        }
        if let Some(Err(reason)) = self
            .side
            .as_mut()
            .map(|side| side.reclaim(&self.shared.pool, cache))
        {
            self.fail(reason);
        }
    }

    fn pending(&self) -> usize {
        let lent = |side: &Side| {
            side.lent
                .as_ref()
                .map(|lent| usize::from(lent.head.wrapping_sub(side.tail)))
        };
        self.side.as_ref().and_then(lent).unwrap_or(0)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.let_go();
    }
}
