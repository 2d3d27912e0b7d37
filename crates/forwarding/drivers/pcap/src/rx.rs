//! The receiving side: frames out of a capture file, in its order, as fast as they are asked for.
//!
//! What is no whole Ethernet frame, or too long a one, is counted by its reason and left out. A file
//! that is damaged ends there: said once, and counted.

use std::sync::Arc;

use weir_buf::{Pkt, PktCache, Vector};
use weir_port::{LONGEST_FRAME, RxQueue};

use crate::file::{Captured, ETHERNET, Reader};
use crate::port::Counts;

/// Records looked at in one call, so that a file full of odd ones keeps nobody waiting.
const MOST: usize = 256;

/// The receiving side.
pub(crate) struct Receiver {
    /// `None` once the file has ended.
    reader: Option<Reader>,
    /// Read, but no buffer was free.
    waiting: Option<Captured>,
    name: String,
    counts: Arc<Counts>,
}

impl Receiver {
    pub(crate) fn new(reader: Reader, name: String, counts: Arc<Counts>) -> Receiver {
        Receiver {
            reader: Some(reader),
            waiting: None,
            name,
            counts,
        }
    }

    /// The next record of the file.
    fn read(&mut self) -> Option<Captured> {
        if let Some(waiting) = self.waiting.take() {
            return Some(waiting);
        }
        match self.reader.as_mut()?.next() {
            Some(Ok(captured)) => Some(captured),
            Some(Err(error)) => {
                tracing::warn!(file = self.name, "{error}: nothing more is read from it");
                self.counts.rx.damaged.add(1);
                self.reader = None;
                None
            }
            None => {
                self.reader = None;
                None
            }
        }
    }

    /// Whether a record is a frame that can be received; counts why not.
    fn is_frame(&self, captured: &Captured) -> bool {
        let counts = &self.counts.rx;
        let odd = if captured.linktype != ETHERNET {
            &counts.not_ethernet
        } else if (captured.orig_len as usize) > captured.data.len() {
            &counts.cut
        } else if captured.data.len() > LONGEST_FRAME {
            &counts.too_long
        } else {
            return true;
        };
        odd.add(1);
        false
    }

    fn packet(&mut self, captured: Captured, cache: &mut PktCache) -> Option<Pkt> {
        let fill = |at, room: &mut [u8]| {
            room.iter_mut()
                .zip(captured.data.iter().skip(at))
                .for_each(|(to, from)| *to = *from)
        };
        let packet = Pkt::gather(captured.data.len(), || cache.alloc(), fill);
        if packet.is_none() {
            self.counts.rx.no_buffer.add(1);
            self.waiting = Some(captured);
        }
        packet
    }
}

impl RxQueue for Receiver {
    fn recv(&mut self, to: &mut Vector, cache: &mut PktCache, most: usize) -> usize {
        let mut got = 0;
        for _ in 0..most.min(MOST) {
            let Some(captured) = self.read() else { break };
            if !self.is_frame(&captured) {
                continue;
            }
            let Some(packet) = self.packet(captured, cache) else {
                break;
            };
            to.push(packet);
            got += 1;
        }
        self.counts.rx.packets.add(got as u64);
        got
    }

    fn is_exhausted(&self) -> bool {
        self.reader.is_none() && self.waiting.is_none()
    }
}
