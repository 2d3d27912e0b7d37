//! The sending half of a queue: frames into the transmit ring, finished chunks out of the completion
//! ring.
//!
//! In copy mode the kernel sends only inside `sendto`, at most 32 frames a call unless it let us
//! raise that (Linux 6.17); [`Sender::flush`] calls it while it makes progress, a bounded number of
//! times, and never waits: what the kernel does not take stays in the ring for the next turn. Without
//! frames in the ring there is no call at all.
//!
//! A frame that spans several chunks is copied together when it fits one, else refused and counted.
//!
//! Runs on the worker that owns the queue. It never waits and allocates nothing but packets.

#![expect(unsafe_code, reason = "addresses go to the kernel; each block says why it is sound")]

use std::sync::Arc;

use weir_buf::{Pkt, PktCache, STRIDE, Vector};
use weir_port::TxQueue;

use crate::lent::LentSet;
use crate::socket::Socket;
use crate::sys::{self, Consumer, Descriptor, Producer};

/// What one `sendto` sends when the kernel lets nobody raise it (`TX_BATCH_SIZE` of net/xdp/xsk.c).
const KERNEL_BATCH: u32 = 32;
/// An Ethernet header: what is shorter is no frame, and some drivers read that far unasked.
const SHORTEST: usize = 14;

/// The sending half. Its rings come before the socket, so that they are unmapped before it closes.
pub(crate) struct Sender {
    ring: Producer<Descriptor>,
    completion: Consumer<u64>,
    lent: LentSet,
    socket: Arc<Socket>,
}

impl Sender {
    /// The half over these rings.
    pub(crate) fn new(ring: Producer<Descriptor>, completion: Consumer<u64>, socket: Arc<Socket>) -> Sender {
        let lent = LentSet::new(socket.pool().chunks());
        Sender { ring, completion, lent, socket }
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
            let back = if self.lent.take(place / STRIDE) { self.socket.pool().redeem(place, 0) } else { None };
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

    /// The frame in one chunk of our pool, or `None` when it cannot be sent.
    #[inline(always)]
    fn prepare(&mut self, packet: Pkt, cache: &mut PktCache) -> Option<Pkt> {
        let len = packet.total_len();
        if len < SHORTEST || len > self.socket.longest() {
            cache.free(packet);
            return None;
        }
        if packet.is_chained() || !self.socket.pool().holds(&packet) { self.linearise(packet, cache) } else { Some(packet) }
    }

    #[cold]
    fn linearise(&mut self, packet: Pkt, cache: &mut PktCache) -> Option<Pkt> {
        let whole = self.socket.pool().alloc().and_then(|mut whole| {
            let fits = whole.set_len(packet.total_len());
            (fits && packet.copy_out(0, whole.data_mut()) == packet.total_len()).then_some(whole)
        });
        cache.free(packet);
        if whole.is_some() {
            self.socket.counts().tx.linearised.add(1);
        }
        whole
    }

    /// Puts one frame into the ring, which has room; `false` when it was refused.
    #[inline(always)]
    fn queue(&mut self, packet: Pkt, cache: &mut PktCache) -> bool {
        let Some(packet) = self.prepare(packet, cache) else { return false };
        let len = packet.len();
        let Ok((slot, offset)) = self.socket.pool().lend(packet) else { return false };
        let chunk = slot.index() as usize;
        self.lent.put(chunk);
        let base = chunk * STRIDE;
        let shift = libc::XSK_UNALIGNED_BUF_OFFSET_SHIFT;
        let address = base as u64 | ((offset - base) as u64) << shift;
        // SAFETY: the chunk was just lent for this socket and is noted in `lent`, from where it is
        // taken only when the kernel returns it or the socket is closed.
        unsafe { self.ring.push(Descriptor { address, len: len as u32, options: 0 }) };
        true
    }

    /// Makes the kernel send what is in the ring, as far as it can without waiting.
    fn kick(&mut self, mut waiting: u32) {
        let Some(descriptor) = self.socket.descriptor() else { return };
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
        let wanted = from.len();
        let mut room = self.ring.room(wanted as u32) as usize;
        if room < wanted {
            // The kernel has had no call since the last turn that filled the ring: let it send now.
            let waiting = self.ring.waiting();
            self.kick(waiting);
            self.reclaim(cache);
            room = self.ring.room(wanted as u32) as usize;
        }
        let taken = wanted.min(room);
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
        self.socket.leave(std::mem::replace(&mut self.lent, LentSet::new(0)));
    }
}
