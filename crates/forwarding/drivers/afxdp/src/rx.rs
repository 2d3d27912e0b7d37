//! The receiving half of a queue: frames out of the receive ring, fresh chunks into the fill ring.
//!
//! The kernel takes a chunk from the fill ring, writes a frame behind [`weir_buf::HEADROOM`] bytes of
//! it, and names it in the receive ring. Receiving costs no system call in copy mode; a zero-copy
//! driver that went to sleep asks for one in the flags of the fill ring.
//!
//! A frame that is longer than a chunk comes in several descriptors, one after the other, and becomes a chain. One
//! that is longer than any interface takes is left out and counted.
//!
//! Runs on the worker that owns the queue. It never waits and allocates nothing but packets.

#![expect(
    unsafe_code,
    reason = "addresses go to the kernel; each block says why it is sound"
)]

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use weir_buf::{Pkt, PktCache, STRIDE, Vector};
use weir_port::{LONGEST_FRAME, RxQueue};

use crate::checksum;
use crate::lent::LentSet;
use crate::socket::Socket;
use crate::sys::{self, Consumer, Descriptor, Producer};

/// Chunks given to the kernel at once: fewer calls and fewer changes of hands of the ring's words.
const REFILL: usize = 64;
/// One in so many sleeps asks the kernel whether the device is still there.
const CHECK_EVERY: u32 = 64;

/// The receiving half. Its rings come before the socket, so that they are unmapped before it closes.
pub(crate) struct Receiver {
    ring: Consumer<Descriptor>,
    fill: Producer<u64>,
    lent: LentSet,
    /// Chunks that the kernel is to hold.
    level: usize,
    zero_copy: bool,
    completes_checksums: bool,
    sleeps: u32,
    /// A frame of several descriptors whose last has not come yet.
    open: Open,
    socket: Arc<Socket>,
}

/// Where the ring is within a frame of several descriptors.
enum Open {
    /// Between two frames.
    No,
    /// In a frame of which this has come.
    Frame(Pkt),
    /// In a frame that is left out: too long, or damaged.
    Skipped,
}

impl Receiver {
    /// The half over these rings, with `level` chunks in the kernel's hands as far as there are any.
    pub(crate) fn new(
        ring: Consumer<Descriptor>,
        fill: Producer<u64>,
        level: usize,
        zero_copy: bool,
        socket: Arc<Socket>,
    ) -> Receiver {
        let lent = LentSet::new(socket.pool().chunks());
        let mut receiver = Receiver {
            ring,
            fill,
            lent,
            level,
            zero_copy,
            completes_checksums: false,
            sleeps: 0,
            open: Open::No,
            socket,
        };
        let pool = receiver.socket.pool().clone();
        receiver.give(level, || pool.alloc());
        receiver
    }

    /// Whether unfinished transport checksums are completed, which a virtual device needs.
    pub(crate) fn complete_checksums(&mut self, wanted: bool) {
        self.completes_checksums = wanted;
    }

    /// Gives the kernel up to `wanted` chunks; returns how many there were.
    fn give(&mut self, wanted: usize, mut alloc: impl FnMut() -> Option<Pkt>) -> usize {
        let room = self.fill.room(wanted as u32) as usize;
        let mut given = 0;
        while given < wanted.min(room) {
            let Some(packet) = alloc() else { break };
            // A packet of another pool is freed by the error that carries it.
            let Ok((slot, _)) = self.socket.pool().lend(packet) else {
                break;
            };
            let chunk = slot.index() as usize;
            self.lent.put(chunk);
            // The fill ring wants the chunk's first byte; the kernel adds the headroom itself.
            // SAFETY: the chunk was just lent for this socket and is noted in `lent`, from where it
            // is taken only when the kernel returns it or the socket is closed.
            unsafe { self.fill.push((chunk * STRIDE) as u64) };
            given += 1;
        }
        self.fill.publish();
        given
    }

    /// The frame that a descriptor names, if it may.
    #[inline(always)]
    fn accept(&mut self, descriptor: Descriptor) -> Option<Pkt> {
        let place = sys::place(descriptor.address);
        let chunk = place / STRIDE;
        if !self.lent.take(chunk) {
            return None;
        }
        let packet = self.socket.pool().redeem(place, descriptor.len as usize);
        if packet.is_none() {
            // A length that leaves the chunk: keep the chunk noted, so that it comes home at the end.
            self.lent.put(chunk);
        }
        packet
    }

    /// A descriptor of a frame that has several; gives the whole frame with the last of them.
    #[cold]
    fn join(&mut self, piece: Option<Pkt>, more: bool) -> Option<Pkt> {
        let open = match (std::mem::replace(&mut self.open, Open::No), piece) {
            (Open::No, Some(first)) => Open::Frame(first),
            (Open::Frame(mut head), Some(piece)) => {
                let fits = head.total_len() + piece.len() <= LONGEST_FRAME;
                if fits && head.append(piece).is_ok() {
                    Open::Frame(head)
                } else {
                    self.socket.counts().rx.too_long.add(1);
                    Open::Skipped
                }
            }
            _ => Open::Skipped,
        };
        match open {
            open if more => {
                self.open = open;
                None
            }
            Open::Frame(whole) => Some(whole),
            Open::No | Open::Skipped => None,
        }
    }

    fn take_frames(&mut self, to: &mut Vector, most: usize) -> usize {
        let available = (self.ring.available() as usize).min(most);
        if available == 0 {
            return 0;
        }
        let (mut got, mut bad, mut completed) = (0, 0, 0);
        for _ in 0..available {
            let descriptor = self.ring.pop();
            let mut packet = self.accept(descriptor);
            bad += u64::from(packet.is_none());
            let more = descriptor.options & libc::XDP_PKT_CONTD != 0;
            if more || !matches!(self.open, Open::No) {
                packet = self.join(packet, more);
            }
            if let Some(mut packet) = packet {
                if self.completes_checksums {
                    completed += u64::from(checksum::complete(&mut packet));
                } else {
                    packet.prefetch();
                }
                to.push(packet);
                got += 1;
            }
        }
        self.ring.release();
        let counts = self.socket.counts();
        counts.rx.packets.add(got as u64);
        if bad > 0 {
            counts.rx.bad_descriptors.add(bad);
        }
        if completed > 0 {
            counts.rx.checksums_completed.add(completed);
        }
        got
    }

    fn refill(&mut self, cache: &mut PktCache) {
        let missing = self.level.saturating_sub(self.lent.count());
        if missing >= REFILL.min(self.level) && self.give(missing, || cache.alloc()) < missing {
            self.socket.counts().rx.no_buffer.add(1);
        }
        if self.zero_copy && self.fill.needs_wakeup() {
            self.ask_kernel();
        }
    }

    #[cold]
    fn ask_kernel(&mut self) {
        let Some(descriptor) = self.socket.descriptor() else {
            return;
        };
        self.socket.counts().rx.wakeups.add(1);
        if let Err(error) = sys::kick_rx(descriptor) {
            self.socket.note(&error);
        }
    }
}

impl RxQueue for Receiver {
    fn recv(&mut self, to: &mut Vector, cache: &mut PktCache, most: usize) -> usize {
        let got = self.take_frames(to, most);
        self.refill(cache);
        got
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.socket.descriptor()
    }

    fn before_sleep(&mut self) {
        // A socket whose device vanished is never readable again, so a sleeping worker would not
        // notice by itself.
        self.sleeps = self.sleeps.wrapping_add(1);
        if self.sleeps.is_multiple_of(CHECK_EVERY) {
            self.ask_kernel();
        }
    }

    fn is_dead(&self) -> bool {
        self.socket.is_dead()
    }

    /// One system call: for the worker's publishing of counters, not for every turn.
    fn missed(&self) -> u64 {
        let [rx_dropped, _, _, rx_ring_full, ..] = self.socket.statistics();
        rx_dropped + rx_ring_full + self.socket.counts().rx.too_long.get()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.socket
            .leave(std::mem::replace(&mut self.lent, LentSet::new(0)));
    }
}
