//! The receiving half of a TAP's queue: one `read` a frame, straight into a packet.
//!
//! Where frames may be longer than a chunk, one `readv` into as many chunks as the longest takes; those that a frame
//! does not need are kept for the next.
//!
//! Runs on the worker that owns the queue; never waits. The read that finds nothing costs a system
//! call too, so one call of `recv` stops after [`MOST`] frames and a shorter burst ends it.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;
use weir_buf::{DATA_ROOM, Pkt, PktCache, Vector};
use weir_port::{LONGEST_FRAME, RxQueue};

use crate::port::Queue;

/// Frames of one call: others of the worker's queues want their turn.
const MOST: usize = 64;
/// Chunks that hold any frame, and one byte more: the kernel cuts what is longer without a word.
const PIECES: usize = LONGEST_FRAME / DATA_ROOM + 1;

/// The receiving half.
pub(crate) struct Receiver {
    queue: Arc<Queue>,
    /// Chunks behind the first one of a long frame, as many as are taken at once.
    spare: Vec<Pkt>,
    /// How many that are: none where every frame fits one chunk.
    behind: usize,
}

impl Receiver {
    /// The half for frames of up to `longest` bytes.
    pub(crate) fn new(queue: Arc<Queue>, longest: usize) -> Receiver {
        let behind = if longest < DATA_ROOM { 0 } else { PIECES - 1 };
        Receiver {
            queue,
            spare: Vec::with_capacity(behind),
            behind,
        }
    }

    /// The next frame as the kernel gives it; `None` in the inner sense when it was too long, in the outer one when
    /// the pool is empty.
    fn read(&mut self, cache: &mut PktCache) -> Option<Result<Option<Pkt>, Errno>> {
        while self.spare.len() < self.behind {
            self.spare.push(room(cache)?);
        }
        let mut head = room(cache)?;
        let read = match self.spare.first() {
            None => rustix::io::read(&self.queue.descriptor, head.data_mut()),
            Some(_) => self.read_pieces(&mut head),
        };
        Some(match read {
            // A frame that fills the whole room may have been longer.
            Ok(len) if len < DATA_ROOM * (self.behind + 1) => Ok(self.cut(head, len)),
            Ok(_) => {
                cache.free(head);
                Ok(None)
            }
            Err(errno) => {
                cache.free(head);
                Err(errno)
            }
        })
    }

    #[cold]
    fn read_pieces(&mut self, head: &mut Pkt) -> Result<usize, Errno> {
        let mut pieces: [IoSliceMut<'_>; PIECES] =
            std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let rooms = std::iter::once(head).chain(&mut self.spare);
        pieces
            .iter_mut()
            .zip(rooms)
            .for_each(|(piece, room)| *piece = IoSliceMut::new(room.data_mut()));
        rustix::io::readv(&self.queue.descriptor, &mut pieces)
    }

    /// The first `len` bytes of what was read; chunks without any of them stay here.
    fn cut(&mut self, mut head: Pkt, len: usize) -> Option<Pkt> {
        if !head.set_len(len.min(DATA_ROOM)) {
            return None;
        }
        let mut left = len.saturating_sub(DATA_ROOM);
        // The spare chunks are full in the order in which they were read into.
        for mut piece in self.spare.drain(..left.div_ceil(DATA_ROOM)) {
            if !piece.set_len(left.min(DATA_ROOM)) || head.append(piece).is_err() {
                return None;
            }
            left = left.saturating_sub(DATA_ROOM);
        }
        Some(head)
    }
}

/// A packet that is all room.
fn room(cache: &mut PktCache) -> Option<Pkt> {
    let mut packet = cache.alloc()?;
    // Always fits: a fresh packet has this much room.
    let _ = packet.set_len(DATA_ROOM);
    Some(packet)
}

impl RxQueue for Receiver {
    fn recv(&mut self, to: &mut Vector, cache: &mut PktCache, most: usize) -> usize {
        let mut got = 0;
        while got < most.min(MOST) && !self.queue.is_dead() {
            match self.read(cache) {
                Some(Ok(Some(packet))) => {
                    to.push(packet);
                    got += 1;
                }
                Some(Ok(None)) => self.queue.rx.too_long.add(1),
                Some(Err(Errno::INTR)) => {}
                Some(Err(Errno::AGAIN)) => break,
                Some(Err(errno)) => {
                    self.queue.failed(errno);
                    break;
                }
                None => {
                    self.queue.rx.no_buffer.add(1);
                    break;
                }
            }
        }
        self.queue.rx.packets.add(got as u64);
        got
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.queue.descriptor.as_fd())
    }

    fn is_dead(&self) -> bool {
        self.queue.is_dead()
    }

    fn missed(&self) -> u64 {
        self.queue.rx.too_long.get()
    }
}
