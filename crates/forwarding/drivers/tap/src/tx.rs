//! The sending half of a TAP's queue: one `writev` a frame, the pieces of a chain together.
//!
//! The kernel takes a frame whole or not at all, so what was written is free at once. Runs on the
//! worker that owns the queue; never waits.

use std::io::IoSlice;
use std::sync::Arc;

use rustix::io::Errno;
use weir_buf::{Pkt, PktCache, Vector};
use weir_port::TxQueue;

use crate::port::Queue;

/// Pieces of one frame; a packet has no more (`Pkt::append`).
const PIECES: usize = 64;

/// The sending half.
pub(crate) struct Sender(pub(crate) Arc<Queue>);

fn write(queue: &Queue, packet: &Pkt) -> Result<usize, Errno> {
    if !packet.is_chained() {
        return rustix::io::write(&queue.descriptor, packet.data());
    }
    let mut pieces = [IoSlice::new(&[]); PIECES];
    let mut count = 0;
    for (place, segment) in pieces.iter_mut().zip(packet.segments()) {
        *place = IoSlice::new(segment);
        count += 1;
    }
    rustix::io::writev(&queue.descriptor, pieces.get(..count).unwrap_or_default())
}

impl TxQueue for Sender {
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize {
        let (queue, counts) = (&*self.0, &self.0.tx);
        let (mut written, mut taken) = (0, 0);
        for packet in from.iter() {
            match write(queue, packet) {
                Ok(_) => written += 1,
                // What does not fit stays with the caller.
                Err(Errno::AGAIN | Errno::INTR) => {
                    counts.busy.add(1);
                    break;
                }
                // EIO: the device is down. EINVAL: no frame. Gone either way.
                Err(Errno::IO | Errno::INVAL) => counts.refused.add(1),
                Err(errno) => {
                    counts.refused.add(1);
                    queue.failed(errno);
                }
            }
            taken += 1;
        }
        counts.packets.add(written);
        cache.free_all(from.drain_front(taken));
        taken
    }
}
