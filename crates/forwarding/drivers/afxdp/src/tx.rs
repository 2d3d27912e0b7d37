//! The sending half of a queue: frames into the transmit ring, finished chunks out of the completion
//! ring.
//!
//! In copy mode the kernel sends only inside `sendto`, at most 32 frames a call unless it let us
//! raise that (Linux 6.17); [`Sender::flush`] calls it while it makes progress, a bounded number of
//! times, and never waits: what the kernel does not take stays in the ring for the next turn. Without
//! frames in the ring there is no call at all.
//!
//! A frame that spans several chunks goes out in as many descriptors where the kernel has that (Linux 6.6). One in very
//! many, or of another pool, is copied together first; one that is too long is refused and counted.
//!
//! Runs on the worker that owns the queue. It never waits and allocates nothing but packets.

#![expect(
    unsafe_code,
    reason = "addresses go to the kernel; each block says why it is sound"
)]

use std::sync::Arc;

use weir_buf::{DATA_ROOM, Pkt, PktCache, STRIDE, Vector};
use weir_port::TxQueue;

use crate::lent::LentSet;
use crate::socket::Socket;
use crate::sys::{self, Consumer, Descriptor, Producer};

/// What one `sendto` sends when the kernel lets nobody raise it (`TX_BATCH_SIZE` of net/xdp/xsk.c).
const KERNEL_BATCH: u32 = 32;
/// An Ethernet header: what is shorter is no frame, and some drivers read that far unasked.
const SHORTEST: usize = 14;

/// Descriptors of one frame: a socket buffer of the kernel has room for 17 pieces (`MAX_SKB_FRAGS`), a zero-copy device
/// perhaps for fewer; the longest frame takes five whole chunks.
const PIECES: usize = 8;

/// Places in the ring that a frame takes at most.
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
        .min(PIECES)
        .max(packet.total_len().div_ceil(DATA_ROOM))
}

#[inline(always)]
fn places_of(packets: &[Pkt]) -> usize {
    packets.iter().map(places).sum()
}

/// How many of the first packets fit into so many places.
#[cold]
fn fitting_in(mut room: usize, packets: &[Pkt]) -> usize {
    let fits = |packet: &&Pkt| {
        let left = room.checked_sub(places(packet));
        room = left.unwrap_or(0);
        left.is_some()
    };
    packets.iter().take_while(fits).count()
}

/// The sending half. Its rings come before the socket, so that they are unmapped before it closes.
pub(crate) struct Sender {
    ring: Producer<Descriptor>,
    completion: Consumer<u64>,
    lent: LentSet,
    /// Chunks that the kernel may hold at most.
    most: usize,
    socket: Arc<Socket>,
}

impl Sender {
    /// The half over these rings.
    pub(crate) fn new(
        ring: Producer<Descriptor>,
        completion: Consumer<u64>,
        most: usize,
        socket: Arc<Socket>,
    ) -> Sender {
        let lent = LentSet::new(socket.pool().chunks());
        Sender {
            ring,
            completion,
            lent,
            most,
            socket,
        }
    }

    /// Places that frames may take now.
    #[inline(always)]
    fn room(&mut self, wanted: usize) -> usize {
        let room = self.ring.room(wanted as u32) as usize;
        room.min(self.most.saturating_sub(self.lent.count()))
    }

    /// Frees what has gone out.
    fn reclaim(&mut self, cache: &mut PktCache) {
        let available = self.completion.available();
        if available == 0 {
            return;
        }
        let mut bad = 0;
        for _ in 0..available {
            let place = sys::place(self.completion.pop());
            let back = if self.lent.take(place / STRIDE) {
                self.socket.pool().redeem(place, 0)
            } else {
                None
            };
            match back {
                Some(packet) => cache.free(packet),
                None => bad += 1,
            }
        }
        self.completion.release();
        if bad > 0 {
            self.socket.counts().tx.bad_completions.add(bad);
        }
    }

    /// Puts one frame into the ring, which has room; `false` when it was refused.
    #[inline(always)]
    fn queue(&mut self, packet: Pkt, cache: &mut PktCache) -> bool {
        let len = packet.total_len();
        if len < SHORTEST || len > self.socket.longest() {
            cache.free(packet);
            return false;
        }
        if packet.is_chained() || !self.socket.pool().holds(&packet) {
            return self.queue_odd(packet, cache);
        }
        self.put(packet, 0)
    }

    /// A frame of several chunks, or of another pool.
    #[cold]
    fn queue_odd(&mut self, packet: Pkt, cache: &mut PktCache) -> bool {
        let Some(mut packet) = self.fitting(packet, cache) else {
            return false;
        };
        while let Some(rest) = packet.split_first() {
            self.put(std::mem::replace(&mut packet, rest), libc::XDP_PKT_CONTD);
        }
        self.put(packet, 0)
    }

    /// The frame as descriptors can say it, copied if it must be; `None` when there are no chunks for that.
    fn fitting(&mut self, packet: Pkt, cache: &mut PktCache) -> Option<Pkt> {
        let whole = packet.len() >= SHORTEST && packet.segments().all(|piece| !piece.is_empty());
        if whole
            && self.socket.takes_pieces()
            && packet.segments().count() <= PIECES
            && self.socket.pool().holds(&packet)
        {
            return Some(packet);
        }
        let pool = self.socket.pool();
        let read = |at, room: &mut [u8]| {
            packet.copy_out(at, room);
        };
        let copy = Pkt::gather(packet.total_len(), || pool.alloc(), read);
        cache.free(packet);
        if copy.is_some() {
            self.socket.counts().tx.linearised.add(1);
        }
        copy
    }

    /// Lends one chunk to the kernel; `false` when it is no chunk of the pool.
    #[inline(always)]
    fn put(&mut self, packet: Pkt, options: u32) -> bool {
        let len = packet.len();
        let Ok((slot, offset)) = self.socket.pool().lend(packet) else {
            return false;
        };
        let chunk = slot.index() as usize;
        self.lent.put(chunk);
        let base = chunk * STRIDE;
        let shift = libc::XSK_UNALIGNED_BUF_OFFSET_SHIFT;
        let address = base as u64 | ((offset - base) as u64) << shift;
        // SAFETY: the chunk was just lent for this socket and is noted in `lent`, from where it is
        // taken only when the kernel returns it or the socket is closed.
        unsafe {
            self.ring.push(Descriptor {
                address,
                len: len as u32,
                options,
            })
        };
        true
    }

    /// Makes the kernel send what is in the ring, as far as it can without waiting.
    fn kick(&mut self, mut waiting: u32) {
        let Some(descriptor) = self.socket.descriptor() else {
            return;
        };
        let counts = &self.socket.counts().tx;
        let mut calls = waiting / KERNEL_BATCH + 2;
        while waiting > 0 && calls > 0 {
            calls -= 1;
            counts.wakeups.add(1);
            let answer = sys::kick_tx(descriptor);
            let left = self.ring.waiting();
            if let Err(error) = answer {
                match error.raw_os_error() {
                    // EBUSY: the device dropped that frame (and the kernel stopped there).
                    Some(libc::EBUSY) => counts.device_busy.add(1),
                    // EAGAIN: its batch was done, or no room; the ring tells which.
                    Some(libc::EAGAIN) => (),
                    _ => return self.socket.note(&error),
                }
            }
            if left >= waiting {
                return;
            }
            waiting = left;
        }
    }
}

impl TxQueue for Sender {
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize {
        if from.is_empty() || self.socket.is_dead() {
            return 0;
        }
        let (wanted, places) = (from.len(), places_of(from));
        let mut room = self.room(places);
        if room < places {
            // The kernel has had no call since the last turn that filled the ring: let it send now.
            let waiting = self.ring.waiting();
            self.kick(waiting);
            self.reclaim(cache);
            room = self.room(places);
        }
        let taken = if room >= places {
            wanted
        } else {
            fitting_in(room, from)
        };
        let mut queued = 0;
        for packet in from.drain_front(taken) {
            queued += u64::from(self.queue(packet, cache));
        }
        self.ring.publish();
        let counts = &self.socket.counts().tx;
        counts.packets.add(queued);
        if queued < taken as u64 {
            counts.refused.add(taken as u64 - queued);
        }
        if taken < wanted {
            counts.ring_full.add((wanted - taken) as u64);
        }
        taken
    }

    fn flush(&mut self, cache: &mut PktCache) {
        let waiting = self.ring.waiting();
        if waiting > 0 && self.ring.needs_wakeup() {
            self.kick(waiting);
        }
        if self.lent.count() > 0 {
            self.reclaim(cache);
        }
    }

    fn pending(&self) -> usize {
        self.lent.count()
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.socket
            .leave(std::mem::replace(&mut self.lent, LentSet::new(0)));
    }
}
