//! The owning handle to one packet.
//!
//! 32 bytes: two addresses and the metadata that every node reads. `&Pkt` reads, `&mut Pkt` writes,
//! owning one is owning its chunk (and the chunks chained behind it); dropping it gives them back.

#![expect(
    unsafe_code,
    reason = "owned memory reached by address; each block says why it is sound"
)]

use std::ptr::NonNull;

use crate::pool::Shared;
use crate::{DATA_ROOM, Flags, HEADROOM, Meta, STRIDE};

/// One packet. Not `Clone`: there is one owner.
#[derive(Debug)]
#[repr(C)]
pub struct Pkt {
    data: NonNull<u8>,
    meta: NonNull<Meta>,
    len: u16,
    head: u16,
    flags: Flags,
    l3: u16,
    interface: u32,
    aux: u32,
}

const _: () = assert!(size_of::<Pkt>() == 32);

// SAFETY: a `Pkt` is the only handle to its chunk and its metadata, both of which are plain memory;
// whichever thread owns it may use them.
unsafe impl Send for Pkt {}
// SAFETY: `&Pkt` only reads.
unsafe impl Sync for Pkt {}

impl Pkt {
    /// The handle to a chunk that the caller has just become the owner of.
    #[inline(always)]
    pub(crate) fn fresh(shared: &'static Shared, chunk: u32) -> Pkt {
        // SAFETY: a chunk has STRIDE bytes, more than HEADROOM.
        let data = unsafe { shared.chunk(chunk).add(HEADROOM) };
        Pkt {
            data,
            meta: shared.meta(chunk),
            len: 0,
            head: HEADROOM as u16,
            flags: Flags::NONE,
            l3: 0,
            interface: 0,
            aux: 0,
        }
    }

    /// Sets where the data lies in the chunk. The caller checked `head + len <= STRIDE`.
    #[inline(always)]
    pub(crate) fn place(&mut self, head: usize, len: usize) {
        debug_assert!(head + len <= STRIDE);
        // SAFETY: `self.head` is the data's offset in the chunk and `head` is at most STRIDE, so the
        // result lies in the chunk or one past it.
        self.data = unsafe { self.data.offset(head as isize - self.head as isize) };
        self.head = head as u16;
        self.len = len as u16;
    }

    /// Lets go without giving the chunk back: somebody else owns it now.
    #[inline(always)]
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }

    #[inline(always)]
    pub(crate) fn meta_address(&self) -> NonNull<Meta> {
        self.meta
    }

    /// The bytes of the (first) chunk.
    #[inline(always)]
    #[must_use]
    pub fn data(&self) -> &[u8] {
        // SAFETY: data and len always describe bytes inside the chunk that this handle owns; the
        // region is initialised memory (a zeroed file).
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len as usize) }
    }

    /// The bytes of the (first) chunk, to change.
    #[inline(always)]
    pub fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `data`; `&mut self` is the only handle.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len as usize) }
    }

    /// The first `most` bytes of the data, and what lies behind it in the chunk when it has fewer: for copying by whole
    /// cache lines. What is behind means nothing.
    #[inline(always)]
    #[must_use]
    pub fn data_and_behind(&self, most: usize) -> &[u8] {
        let length = most.min(STRIDE - self.head as usize);
        // SAFETY: `data` lies `head` bytes behind the start of a chunk of STRIDE bytes that this handle owns; the region
        // is initialised memory.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), length) }
    }

    /// A number that no other living packet has.
    #[inline(always)]
    #[must_use]
    pub fn identity(&self) -> usize {
        self.meta.as_ptr() as usize
    }

    /// Asks the cache for the first line of the data.
    #[inline(always)]
    pub fn prefetch(&self) {
        weir_cpu::prefetch_address(self.data.as_ptr());
    }

    /// The cold metadata.
    #[inline(always)]
    #[must_use]
    pub fn meta(&self) -> &Meta {
        // SAFETY: the metadata of a chunk is owned together with it and outlives the handle.
        unsafe { self.meta.as_ref() }
    }

    /// The cold metadata, to change.
    #[inline(always)]
    pub fn meta_mut(&mut self) -> &mut Meta {
        // SAFETY: as for `meta`; `&mut self` is the only handle.
        unsafe { self.meta.as_mut() }
    }

    /// Length, place, flags and offset as they lie beside each other, from the lowest bits up: for [`crate::Tally`].
    #[inline(always)]
    pub(crate) fn word(&self) -> u64 {
        const { assert!(std::mem::offset_of!(Pkt, len) == 16 && std::mem::offset_of!(Pkt, flags) == 20) };
        // SAFETY: the eight bytes from `len` to `l3`, four numbers without padding, aligned as the pointers before them.
        unsafe { std::ptr::from_ref(self).cast::<u64>().add(2).read() }
    }

    /// Bytes in the (first) chunk.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the (first) chunk holds no bytes.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the whole packet.
    #[inline(always)]
    #[must_use]
    pub fn total_len(&self) -> usize {
        if self.flags.any(Flags::CHAINED) {
            self.meta().total_len as usize
        } else {
            self.len as usize
        }
    }

    /// Bytes in front of the data.
    #[inline(always)]
    #[must_use]
    pub fn headroom(&self) -> usize {
        self.head as usize
    }

    /// Bytes behind the data, in the (first) chunk.
    #[inline(always)]
    #[must_use]
    pub fn tailroom(&self) -> usize {
        STRIDE - self.head as usize - self.len as usize
    }

    /// Makes room for `n` bytes in front and returns the whole data; `None` without the room.
    #[inline(always)]
    #[must_use]
    pub fn push_front(&mut self, n: usize) -> Option<&mut [u8]> {
        if n > self.headroom() {
            return None;
        }
        self.place(self.headroom() - n, self.len() + n);
        self.grow_total(n as isize);
        Some(self.data_mut())
    }

    /// Takes `n` bytes off the front; `false` when the (first) chunk has fewer.
    #[inline(always)]
    #[must_use]
    pub fn pull_front(&mut self, n: usize) -> bool {
        if n > self.len() {
            return false;
        }
        self.place(self.headroom() + n, self.len() - n);
        self.grow_total(-(n as isize));
        true
    }

    /// Sets the length of an unchained packet; `false` when the chunk is too small or it is chained.
    /// Bytes that come into view keep what the chunk held.
    #[inline]
    #[must_use]
    pub fn set_len(&mut self, len: usize) -> bool {
        if self.is_chained() || self.headroom() + len > STRIDE {
            return false;
        }
        self.len = len as u16;
        true
    }

    /// Makes the packet empty again, its data at the usual headroom, flags and chain gone.
    pub fn clear(&mut self) {
        self.release_tail();
        self.flags = Flags::NONE;
        self.l3 = 0;
        self.place(HEADROOM, 0);
    }

    /// Fills an unchained packet with `bytes`; `false` when they do not fit one chunk.
    #[inline]
    #[must_use]
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > DATA_ROOM || self.is_chained() {
            return false;
        }
        self.place(HEADROOM, bytes.len());
        self.data_mut().copy_from_slice(bytes);
        true
    }

    /// As [`Pkt::fill`], with the bytes behind `headroom` others: a copy of what has had headers put in front.
    #[must_use]
    pub fn fill_behind(&mut self, headroom: usize, bytes: &[u8]) -> bool {
        if headroom > STRIDE || bytes.len() > STRIDE - headroom || self.is_chained() {
            return false;
        }
        self.place(headroom, bytes.len());
        self.data_mut().copy_from_slice(bytes);
        true
    }

    /// A packet of `length` bytes, over as many chunks as that takes. Each comes from `alloc`, all of one pool, and is
    /// filled by `fill`, which receives the offset of its first byte in the whole. `None` when there are too few chunks,
    /// or `length` is more than 64 KiB.
    pub fn gather(
        length: usize,
        mut alloc: impl FnMut() -> Option<Pkt>,
        mut fill: impl FnMut(usize, &mut [u8]),
    ) -> Option<Pkt> {
        let mut whole: Option<Pkt> = None;
        let mut done = 0;
        while done < length || whole.is_none() {
            let mut piece = alloc()?;
            piece.place(HEADROOM, (length - done).min(DATA_ROOM));
            fill(done, piece.data_mut());
            done += piece.len();
            match &mut whole {
                Some(head) => head.append(piece).ok()?,
                None => whole = Some(piece),
            }
        }
        whole
    }

    /// The flags.
    #[inline(always)]
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// Sets bits.
    #[inline(always)]
    pub fn set_flags(&mut self, flags: Flags) {
        self.flags |= flags.without(Flags::CHAINED);
    }

    /// Clears bits. The chain cannot be forgotten this way.
    #[inline(always)]
    pub fn clear_flags(&mut self, flags: Flags) {
        self.flags = self.flags.without(flags.without(Flags::CHAINED));
    }

    /// The priority (IEEE 802.1Q clause 6.9.3, 0 to 7) of the tag that a bridged frame came in with, for that with which it
    /// leaves; 0 without one.
    #[inline(always)]
    #[must_use]
    pub fn priority(&self) -> u8 {
        (self.flags.0 >> Flags::PRIORITY_AT) as u8
    }

    /// Sets the priority; higher bits than three are cut off.
    #[inline(always)]
    pub fn set_priority(&mut self, priority: u8) {
        self.flags = Flags(
            self.flags.without(Flags::PRIORITY).0 | u16::from(priority) << Flags::PRIORITY_AT,
        );
    }

    /// Index of the interface that the packet came in on.
    #[inline(always)]
    #[must_use]
    pub fn interface(&self) -> u32 {
        self.interface
    }

    /// Sets the interface that the packet came in on.
    #[inline(always)]
    pub fn set_interface(&mut self, interface: u32) {
        self.interface = interface;
    }

    /// A word from one node to the next: an adjacency, an output interface.
    #[inline(always)]
    #[must_use]
    pub fn aux(&self) -> u32 {
        self.aux
    }

    /// Sets the word for the next node.
    #[inline(always)]
    pub fn set_aux(&mut self, aux: u32) {
        self.aux = aux;
    }

    /// Offset of the network header from the first byte.
    #[inline(always)]
    #[must_use]
    pub fn l3_offset(&self) -> usize {
        self.l3 as usize
    }

    /// Sets the offset of the network header.
    #[inline(always)]
    pub fn set_l3_offset(&mut self, offset: usize) {
        self.l3 = offset as u16;
    }

    /// The bytes from the network header on, in the (first) chunk.
    #[inline(always)]
    #[must_use]
    pub fn l3(&self) -> &[u8] {
        self.data().get(self.l3 as usize..).unwrap_or(&[])
    }

    /// The bytes from the network header on, to change.
    #[inline(always)]
    pub fn l3_mut(&mut self) -> &mut [u8] {
        let l3 = self.l3 as usize;
        self.data_mut().get_mut(l3..).unwrap_or(&mut [])
    }

    /// Whether the packet spans several chunks.
    #[inline(always)]
    #[must_use]
    pub fn is_chained(&self) -> bool {
        self.flags.any(Flags::CHAINED)
    }

    fn grow_total(&mut self, n: isize) {
        if self.is_chained() {
            let meta = self.meta_mut();
            meta.total_len = meta.total_len.saturating_add_signed(n as i32);
        }
    }

    fn shared(&self) -> &'static Shared {
        match self.meta().pool {
            Some(shared) => shared,
            None => unreachable!("every chunk's metadata names its pool"),
        }
    }

    fn chunk(&self) -> u32 {
        self.shared()
            .chunk_of(self.meta)
            .unwrap_or_else(|| unreachable!("the metadata lies in its own pool"))
    }

    /// Hangs `tail` (itself perhaps chained) behind this packet. Both must be of one pool, and the
    /// result at most 64 KiB and 64 segments long.
    ///
    /// # Errors
    /// `tail` comes back unchanged when it cannot be hung on.
    pub fn append(&mut self, mut tail: Pkt) -> Result<(), Pkt> {
        let total = self.total_len() + tail.total_len();
        let count = self.segments().count() + tail.segments().count();
        if !std::ptr::eq(self.shared(), tail.shared()) || total > 0xffff || count > 64 {
            return Err(tail);
        }
        let (len, head) = (tail.len, tail.head);
        let chunk = tail.chunk();
        let next = if tail.is_chained() {
            tail.meta().next
        } else {
            0
        };
        let meta = tail.meta_mut();
        (meta.segment_len, meta.segment_head, meta.next) = (len, head, next);
        tail.forget();
        let shared = self.shared();
        if self.is_chained() {
            let mut last = self.meta().next;
            loop {
                // SAFETY: the chunks of the chain are owned by this packet and by nobody else.
                let meta = unsafe { shared.meta(last - 1).as_mut() };
                if meta.next == 0 {
                    meta.next = chunk + 1;
                    break;
                }
                last = meta.next;
            }
        } else {
            self.meta_mut().next = chunk + 1;
            self.flags |= Flags::CHAINED;
        }
        self.meta_mut().total_len = total as u32;
        Ok(())
    }

    /// Takes the first chunk off a chain: what is left is returned. `None` for an unchained packet.
    #[must_use]
    pub fn split_first(&mut self) -> Option<Pkt> {
        if !self.is_chained() {
            return None;
        }
        let shared = self.shared();
        let (total, first, next) = (self.total_len(), self.len(), self.meta().next);
        self.flags = self.flags.without(Flags::CHAINED);
        let mut rest = Pkt::fresh(shared, next.checked_sub(1)?);
        let (len, head, more) = (
            rest.meta().segment_len,
            rest.meta().segment_head,
            rest.meta().next,
        );
        rest.place(head as usize, len as usize);
        rest.interface = self.interface;
        if more != 0 {
            rest.flags |= Flags::CHAINED;
            rest.meta_mut().total_len = (total - first) as u32;
        }
        Some(rest)
    }

    /// The pieces of the packet in order.
    #[must_use]
    pub fn segments(&self) -> Segments<'_> {
        Segments {
            first: Some(self),
            next: if self.is_chained() {
                self.meta().next
            } else {
                0
            },
            packet: self,
        }
    }

    /// Copies from byte `offset` of the whole packet into `to`; returns how many bytes there were.
    pub fn copy_out(&self, mut offset: usize, to: &mut [u8]) -> usize {
        let mut done = 0;
        for segment in self.segments() {
            if offset >= segment.len() {
                offset -= segment.len();
                continue;
            }
            let n = (segment.len() - offset).min(to.len() - done);
            to[done..done + n].copy_from_slice(&segment[offset..offset + n]);
            (done, offset) = (done + n, 0);
            if done == to.len() {
                break;
            }
        }
        done
    }

    /// Gives the chunks behind the first one back.
    fn release_tail(&mut self) {
        if let Some(rest) = self.split_first() {
            drop(rest);
        }
    }
}

impl Drop for Pkt {
    /// The slow way home; workers free through their cache.
    fn drop(&mut self) {
        let shared = self.shared();
        let mut next = if self.is_chained() {
            self.meta().next
        } else {
            0
        };
        shared.release(&[self.chunk()]);
        while next != 0 {
            let chunk = next - 1;
            // SAFETY: the chunks of the chain were owned by this packet; each is read before it is
            // given back.
            next = unsafe { shared.meta(chunk).as_ref() }.next;
            shared.release(&[chunk]);
        }
    }
}

/// Iterator over the pieces of a packet.
#[derive(Debug)]
pub struct Segments<'a> {
    first: Option<&'a Pkt>,
    next: u32,
    packet: &'a Pkt,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if let Some(packet) = self.first.take() {
            return Some(packet.data());
        }
        let chunk = self.next.checked_sub(1)?;
        let shared = self.packet.shared();
        // SAFETY: the chain's chunks and metadata are owned by the packet that is borrowed for 'a.
        let meta = unsafe { shared.meta(chunk).as_ref() };
        self.next = meta.next;
        // SAFETY: as above; head and length were those of a packet, so they lie inside the chunk.
        Some(unsafe {
            std::slice::from_raw_parts(
                shared.chunk(chunk).as_ptr().add(meta.segment_head as usize),
                meta.segment_len as usize,
            )
        })
    }
}
