//! A vector of packets on its way from one node to the next.
//!
//! A `Vec` whose push cannot unwind and whose storage is exchanged where it can be.

use std::ops::{Deref, DerefMut};

use crate::Pkt;

/// Packets that travel together.
#[derive(Debug, Default)]
pub struct Vector {
    packets: Vec<Pkt>,
}

impl Vector {
    /// An empty vector with room for `capacity` packets.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Vector {
        Vector {
            packets: Vec::with_capacity(capacity),
        }
    }

    /// Adds a packet.
    #[inline(always)]
    #[expect(
        unsafe_code,
        reason = "a push that cannot unwind with the packet in hand"
    )]
    pub fn push(&mut self, packet: Pkt) {
        let len = self.packets.len();
        if len == self.packets.capacity() {
            grow(&mut self.packets);
        }
        // SAFETY: there is room for one more, made just above; the place is written before it counts.
        unsafe {
            self.packets.as_mut_ptr().add(len).write(packet);
            self.packets.set_len(len + 1);
        }
    }

    /// Takes the last packet off.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Pkt> {
        self.packets.pop()
    }

    /// Moves everything from `other` to the end; exchanges the two when this one is empty.
    #[inline]
    pub fn take_all(&mut self, other: &mut Vector) {
        if self.packets.is_empty() {
            std::mem::swap(&mut self.packets, &mut other.packets);
        } else {
            self.packets.append(&mut other.packets);
        }
    }

    /// Adds packets in order.
    #[inline]
    pub fn extend(&mut self, packets: impl Iterator<Item = Pkt>) {
        self.packets.extend(packets);
    }

    /// Moves the packets behind the first `keep` to the end of `other`.
    pub fn split_into(&mut self, keep: usize, other: &mut Vector) {
        if keep < self.packets.len() {
            other.packets.extend(self.packets.drain(keep..));
        }
    }

    /// Takes the first `n` packets out, in order.
    #[inline]
    pub fn drain_front(&mut self, n: usize) -> std::vec::Drain<'_, Pkt> {
        let n = n.min(self.packets.len());
        self.packets.drain(..n)
    }

    /// Takes all packets out, in order.
    #[inline]
    pub fn drain(&mut self) -> std::vec::Drain<'_, Pkt> {
        self.packets.drain(..)
    }

    /// Lets go of all packets without giving their chunks back: somebody else owns them now.
    #[inline(always)]
    #[expect(
        unsafe_code,
        reason = "dropping nothing, without a walk over the handles"
    )]
    pub(crate) fn forget_all(&mut self) {
        // SAFETY: 0 is below the capacity and no element needs to be initialised; elements that are
        // not dropped are only leaked.
        unsafe { self.packets.set_len(0) };
    }

    /// How many packets fit without asking for memory.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.packets.capacity()
    }
}

/// Never unwinds (a function of this kind aborts instead), so that the caller's packet need not lie in
/// memory for a destructor: built there in pieces and read back whole, it would cost a failed store
/// forwarding, 8 to 12 clocks a packet.
#[cold]
#[inline(never)]
extern "C" fn grow(packets: &mut Vec<Pkt>) {
    packets.reserve(1);
}

impl Deref for Vector {
    type Target = [Pkt];
    #[inline(always)]
    fn deref(&self) -> &[Pkt] {
        &self.packets
    }
}

impl DerefMut for Vector {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Pkt] {
        &mut self.packets
    }
}
