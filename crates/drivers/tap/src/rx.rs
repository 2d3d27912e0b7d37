//! The receiving half of a TAP's queue: one `read` a frame, straight into a packet.
//!
//! Runs on the worker that owns the queue; never waits. The read that finds nothing costs a system
//! call too, so one call of `recv` stops after [`MOST`] frames and a shorter burst ends it.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;
use weir_buf::{DATA_ROOM, PktCache, Vector};
use weir_port::RxQueue;

use crate::port::Queue;

/// Frames of one call: others of the worker's queues want their turn.
const MOST: usize = 64;

/// The receiving half.
pub(crate) struct Receiver(pub(crate) Arc<Queue>);

impl RxQueue for Receiver {
    fn recv(&mut self, to: &mut Vector, cache: &mut PktCache, most: usize) -> usize {
        let (queue, counts) = (&*self.0, &self.0.rx);
        let mut got = 0;
        while got < most.min(MOST) && !queue.is_dead() {
            let Some(mut packet) = cache.alloc() else {
                counts.no_buffer.add(1);
                break;
            };
            // Always fits: a fresh packet has this much room.
            let _ = packet.set_len(DATA_ROOM);
            let read = rustix::io::read(&queue.descriptor, packet.data_mut());
            let len = match read {
                Ok(len) => len,
                Err(errno) => {
                    cache.free(packet);
                    match errno {
                        Errno::INTR => continue,
                        Errno::AGAIN => (),
                        _ => queue.failed(errno),
                    }
                    break;
                }
            };
            // A frame that fills the whole room may have been longer: the kernel cuts without a word.
            if len == DATA_ROOM || !packet.set_len(len) {
                counts.too_long.add(1);
                cache.free(packet);
                continue;
            }
            to.push(packet);
            got += 1;
        }
        counts.packets.add(got as u64);
        got
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.descriptor.as_fd())
    }

    fn is_dead(&self) -> bool {
        self.0.is_dead()
    }

    fn missed(&self) -> u64 {
        self.0.rx.too_long.get()
    }
}
