//! The receiving half of a queue.
//!
//! **As slave** the ring holds our own chunks, lent to the master: it fills them and moves the tail.
//! A frame is taken back from the pool where the master wrote it; nothing is copied. Of what the
//! master writes into a descriptor only the length and the flag for a chain are looked at; where the
//! chunk lies is remembered here.
//!
//! **As master** the ring holds buffers of the slave: it moves the head, and each frame is copied
//! out of the slave's region, after its place was checked against the region's size.
//!
//! Frames of several descriptors become chains. What is wrong in a ring ends the connection.
//!
//! Runs on the worker that owns the queue. It never waits and allocates nothing but packets (and the
//! table of lent chunks, once a connection).

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use weir_buf::{DATA_ROOM, Pkt, PktCache, Vector};
use weir_port::RxQueue;

use crate::bell;
use crate::reason::Reason;
use crate::setup::Role;
use crate::shared::{Lane, Link, RxCounts, Shared};
use crate::sys::{Descriptor, MASK_INT, NEXT, Ring};

/// An Ethernet header: what is shorter is no frame.
const SHORTEST: usize = 14;
/// Chunks given to the master at once.
const REFILL: u16 = 64;
/// So many frames ahead of the one that is copied, the cache is asked for the data.
const AHEAD: u16 = 8;

/// The receiving half.
pub(crate) struct Receiver {
    shared: Arc<Shared>,
    number: usize,
    generation: u64,
    side: Option<Side>,
    asleep: bool,
}

/// What there is while there is a peer.
struct Side {
    link: Arc<Link>,
    ring: Ring,
    /// The next descriptor to take.
    tail: u16,
    /// A frame whose last piece has not come yet.
    partial: Option<Pkt>,
    /// As slave: the chunks that the master has.
    lent: Option<Lent>,
}

/// Chunks in a slave's receive ring: those from the side's tail to this head.
struct Lent {
    head: u16,
    /// The chunk of each place, as the offset of its data in the pool's region.
    offsets: Box<[u32]>,
    level: u16,
    room: u32,
}

impl Receiver {
    pub(crate) fn new(shared: &Arc<Shared>, number: usize) -> Receiver {
        Receiver {
            shared: shared.clone(),
            number,
            generation: 0,
            side: None,
            asleep: false,
        }
    }

    fn lane(link: &Link, number: usize) -> Option<&Lane> {
        link.rx.get(number)
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
        let Some(lane) = Receiver::lane(&link, self.number) else {
            return;
        };
        lane.ring.set_flags(MASK_INT);
        if let Some(pillow) = self.shared.pillows.get(self.number) {
            let _ = pillow.add(lane.event.as_fd());
        }
        let lent = (self.shared.config.role == Role::Slave).then(|| Lent {
            head: 0,
            offsets: vec![0; usize::from(lane.ring.size())].into(),
            level: self.shared.level.min(lane.ring.size()),
            room: self.shared.config.buffer_size as u32,
        });
        self.side = Some(Side {
            ring: lane.ring.clone(),
            link,
            tail: 0,
            partial: None,
            lent,
        });
    }

    fn let_go(&mut self) {
        let Some(mut side) = self.side.take() else {
            return;
        };
        if let (Some(pillow), Some(lane)) = (
            self.shared.pillows.get(self.number),
            Receiver::lane(&side.link, self.number),
        ) {
            pillow.remove(lane.event.as_fd());
        }
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

    /// No interrupts any more.
    #[cold]
    fn wake(&mut self) {
        self.asleep = false;
        if let Some(pillow) = self.shared.pillows.get(self.number) {
            pillow.quiet();
        }
        if let Some(side) = &self.side {
            side.ring.set_flags(MASK_INT);
            if let Some(lane) = Receiver::lane(&side.link, self.number) {
                bell::quiet(lane.event.as_fd());
            }
        }
    }
}

impl Side {
    /// What waits in the ring, if the peer's index can be right.
    #[inline(always)]
    fn waiting(&self) -> Result<u16, Reason> {
        let (theirs, most) = match &self.lent {
            Some(lent) => (self.ring.tail(), lent.head.wrapping_sub(self.tail)),
            None => (self.ring.head(), self.ring.size()),
        };
        let waiting = theirs.wrapping_sub(self.tail);
        if waiting > most {
            Err(Reason::BadIndex)
        } else {
            Ok(waiting)
        }
    }

    #[inline(always)]
    fn receive(
        &mut self,
        shared: &Shared,
        counts: &RxCounts,
        to: &mut Vector,
        cache: &mut PktCache,
        most: usize,
    ) -> Result<(), Reason> {
        let waiting = self.waiting()?;
        if self.lent.is_some() {
            self.take_back(shared, counts, to, cache, waiting, most)?;
            self.refill(shared, counts, cache);
        } else if waiting > 0 {
            let result = self.copy_out(counts, to, cache, waiting, most);
            self.ring.set_tail(self.tail);
            result?;
        }
        Ok(())
    }

    /// As slave: frames are where the master wrote them.
    #[inline(always)]
    fn take_back(
        &mut self,
        shared: &Shared,
        counts: &RxCounts,
        to: &mut Vector,
        cache: &mut PktCache,
        mut waiting: u16,
        most: usize,
    ) -> Result<(), Reason> {
        let end = to.len() + most;
        // Kept out of memory: it changes with every frame.
        let mut tail = self.tail;
        while waiting > 0 && to.len() < end {
            let Some(lent) = &self.lent else { break };
            let (flags, length) = self.ring.outcome(tail);
            if length > lent.room {
                self.tail = tail;
                return Err(Reason::BadLength);
            }
            let offset = lent.offsets.get(self.ring.slot(tail)).copied().unwrap_or(0);
            let packet = shared.pool.redeem(offset as usize, length as usize);
            (tail, waiting) = (tail.wrapping_add(1), waiting - 1);
            let Some(packet) = packet else { continue };
            packet.prefetch();
            if flags & NEXT == 0 && self.partial.is_none() && packet.len() >= SHORTEST {
                to.push(packet);
            } else {
                self.tail = tail;
                self.chain(Some(packet), flags, counts, to, cache)?;
            }
        }
        self.tail = tail;
        Ok(())
    }

    /// As slave: gives the master chunks for those that came back.
    #[inline(always)]
    fn refill(&mut self, shared: &Shared, counts: &RxCounts, cache: &mut PktCache) {
        let Some(lent) = &mut self.lent else { return };
        let missing = lent.level - lent.head.wrapping_sub(self.tail).min(lent.level);
        if missing < REFILL.min(lent.level) {
            return;
        }
        let mut head = lent.head;
        for _ in 0..missing {
            let Some(packet) = cache.alloc() else {
                counts.no_buffer.add(1);
                break;
            };
            // A packet of another pool is freed by the error that carries it.
            let Ok((_, offset)) = shared.pool.lend(packet) else {
                break;
            };
            if let Some(place) = lent.offsets.get_mut(self.ring.slot(head)) {
                *place = offset as u32;
            }
            // Flags are cleared for the masters that only ever set them.
            self.ring.store(
                head,
                Descriptor {
                    flags: 0,
                    region: 1,
                    length: lent.room,
                    offset: offset as u32,
                },
            );
            head = head.wrapping_add(1);
        }
        lent.head = head;
        self.ring.set_head(head);
    }

    /// As master: frames are copied out of the slave's regions.
    #[inline(always)]
    fn copy_out(
        &mut self,
        counts: &RxCounts,
        to: &mut Vector,
        cache: &mut PktCache,
        mut waiting: u16,
        most: usize,
    ) -> Result<(), Reason> {
        let end = to.len() + most;
        while waiting > 0 && to.len() < end {
            if waiting > AHEAD {
                let coming = self.ring.load(self.tail.wrapping_add(AHEAD));
                if let Some(region) = self.link.regions.get(usize::from(coming.region)) {
                    region.prefetch(coming.offset);
                }
            }
            let descriptor = self.ring.load(self.tail);
            let length = descriptor.length as usize;
            if descriptor.flags & NEXT != 0
                || self.partial.is_some()
                || !(SHORTEST..=DATA_ROOM).contains(&length)
            {
                let Some(pieces) = self.gather(descriptor, cache)? else {
                    counts.no_buffer.add(1);
                    break;
                };
                self.chain(pieces, descriptor.flags, counts, to, cache)?;
            } else {
                let Some(mut packet) = cache.alloc() else {
                    counts.no_buffer.add(1);
                    break;
                };
                // Always fits: a fresh packet has this much room.
                let _ = packet.set_len(length);
                let read = self
                    .link
                    .regions
                    .get(usize::from(descriptor.region))
                    .is_some_and(|region| region.read(descriptor.offset, packet.data_mut()));
                if !read {
                    cache.free(packet);
                    return Err(Reason::BadDescriptor);
                }
                to.push(packet);
            }
            (self.tail, waiting) = (self.tail.wrapping_add(1), waiting - 1);
        }
        Ok(())
    }

    /// The bytes of one descriptor as a chain; `None` in the inner sense when it has none, in the
    /// outer sense when the pool is empty.
    #[cold]
    fn gather(
        &self,
        descriptor: Descriptor,
        cache: &mut PktCache,
    ) -> Result<Option<Option<Pkt>>, Reason> {
        let region = self
            .link
            .regions
            .get(usize::from(descriptor.region))
            .ok_or(Reason::BadDescriptor)?;
        if descriptor.length > u32::from(u16::MAX) {
            return Err(Reason::BadChain);
        }
        let (mut offset, mut left) = (descriptor.offset, descriptor.length as usize);
        let mut whole: Option<Pkt> = None;
        while left > 0 {
            let Some(mut piece) = cache.alloc() else {
                return Ok(None);
            };
            let length = left.min(DATA_ROOM);
            let _ = piece.set_len(length);
            if !region.read(offset, piece.data_mut()) {
                return Err(Reason::BadDescriptor);
            }
            offset = offset.wrapping_add(length as u32);
            left -= length;
            match &mut whole {
                Some(head) => head.append(piece).map_err(|_| Reason::BadChain)?,
                None => whole = Some(piece),
            }
        }
        if region.read(descriptor.offset, &mut []) {
            Ok(Some(whole))
        } else {
            Err(Reason::BadDescriptor)
        }
    }

    /// Hangs a piece on the frame that is not complete yet, and hands it over when it is.
    #[cold]
    fn chain(
        &mut self,
        piece: Option<Pkt>,
        flags: u16,
        counts: &RxCounts,
        to: &mut Vector,
        cache: &mut PktCache,
    ) -> Result<(), Reason> {
        let whole = match (self.partial.take(), piece) {
            (Some(mut head), Some(mut piece)) if !piece.is_empty() => {
                complete_headers(&mut head, &mut piece);
                if piece.total_len() > 0 {
                    head.append(piece).map_err(|_| Reason::BadChain)?;
                } else {
                    cache.free(piece);
                }
                Some(head)
            }
            (Some(head), _) => Some(head),
            (None, piece) => piece.filter(|piece| !piece.is_empty()),
        };
        match whole {
            _ if flags & NEXT != 0 => self.partial = whole,
            Some(whole) if whole.total_len() >= SHORTEST => to.push(whole),
            short => {
                counts.runts.add(1);
                short.into_iter().for_each(|packet| cache.free(packet));
            }
        }
        Ok(())
    }
}

/// A frame's headers lie in its first chunk, as nodes want them, though a peer may keep them in a piece of their own: so
/// much of what follows is moved there.
const HEADERS: usize = 256;

fn complete_headers(head: &mut Pkt, piece: &mut Pkt) {
    let (there, missing) = (
        head.len(),
        HEADERS.saturating_sub(head.len()).min(piece.len()),
    );
    if missing == 0 || head.is_chained() || !head.set_len(there + missing) {
        return;
    }
    if let (Some(place), Some(bytes)) = (
        head.data_mut().get_mut(there..),
        piece.data().get(..missing),
    ) {
        place.copy_from_slice(bytes);
    }
    let _ = piece.pull_front(missing);
}

impl RxQueue for Receiver {
    fn recv(&mut self, to: &mut Vector, cache: &mut PktCache, most: usize) -> usize {
        if self.asleep {
            self.wake();
        }
        if self.shared.generation() != self.generation {
            self.change();
        }
        let (Some(side), Some(counts)) = (&mut self.side, self.shared.counts.get(self.number))
        else {
            return 0;
        };
        let before = to.len();
        let result = side.receive(&self.shared, &counts.rx, to, cache, most);
        let got = to.len() - before;
        counts.rx.packets.add(got as u64);
        if let Err(reason) = result {
            self.shared.fail(&side.link, reason);
            self.let_go();
        }
        got
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.shared
            .pillows
            .get(self.number)
            .map(|pillow| pillow.descriptor())
    }

    /// Asks the peer for interrupts, and makes sure that none is needed for what came before it saw
    /// that.
    fn before_sleep(&mut self) {
        self.asleep = true;
        let mut work = self.shared.generation() != self.generation;
        if let Some(side) = &self.side {
            side.ring.set_flags(0);
            // The peer publishes and then looks at the flag; we set the flag and then look at what
            // is published. One of the two sees the other.
            fence(Ordering::SeqCst);
            work |= side.waiting() != Ok(0);
        }
        if let Some(pillow) = self.shared.pillows.get(self.number).filter(|_| work) {
            pillow.ring();
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.let_go();
    }
}
