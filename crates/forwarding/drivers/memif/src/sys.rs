//! Memory that a peer maps too: regions and the rings in them.
//!
//! Everything here is checked once, when a mapping or a ring is made, so that what it offers is safe
//! to call. Nothing is ever borrowed from shared memory: bytes are copied in and out, words are read
//! and written as atomics, so that a peer that writes at the same time can change what is read but
//! not whether reading is sound.
//!
//! A ring is 128 bytes of header (cookie, flags and head in the first cache line, tail in the second)
//! and its descriptors of 16 bytes, which are read and written as two words of eight.

#![expect(
    unsafe_code,
    reason = "memory shared with a peer; each block says why it is sound"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// How every ring begins, in version 2.0.
pub(crate) const COOKIE: u32 = 0x3E3_1F20;
/// Flag of a ring: its consumer wants no interrupts.
pub(crate) const MASK_INT: u16 = 1;
/// Flag of a descriptor: the frame goes on in the next one.
pub(crate) const NEXT: u16 = 1;
/// The largest ring: 16-bit counters must tell a full ring from an empty one.
pub(crate) const MOST_LOG2: u8 = 14;

const HEADER: usize = 128;
const FLAGS: usize = 4;
const HEAD: usize = 6;
const TAIL: usize = 64;
const DESCRIPTOR: usize = 16;

// Descriptors are taken apart from words of eight bytes.
const _: () = assert!(cfg!(target_endian = "little"));

/// A mapped region.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is a plain piece of memory; it offers copies and atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a file. Whoever asks has made sure that the file cannot shrink.
    pub(crate) fn new(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        // SAFETY: no fixed address is asked for, so nothing that is mapped can be replaced.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>())
            .ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Mapping { base, bytes })
    }

    /// How many bytes are mapped.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline(always)]
    fn holds(&self, offset: u32, length: usize) -> bool {
        let offset = offset as usize;
        offset <= self.bytes && length <= self.bytes - offset
    }

    /// Asks the cache for the line of `offset`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, offset: u32) {
        weir_cpu::prefetch_address(self.base.as_ptr().wrapping_add(offset as usize));
    }

    /// The same for a line that will be written.
    #[inline(always)]
    pub(crate) fn prefetch_write(&self, offset: u32) {
        weir_cpu::prefetch_write(self.base.as_ptr().wrapping_add(offset as usize));
    }

    /// Fills `to` from `offset` on; `false` when that leaves the region.
    #[inline(always)]
    #[must_use]
    pub(crate) fn read(&self, offset: u32, to: &mut [u8]) -> bool {
        if !self.holds(offset, to.len()) {
            return false;
        }
        // SAFETY: the source lies in the mapping (checked), to which no reference exists, so the
        // target lies elsewhere; both are bytes, of which every value is valid whatever the peer
        // writes meanwhile.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.base.as_ptr().add(offset as usize),
                to.as_mut_ptr(),
                to.len(),
            )
        };
        true
    }

    /// Writes `from` to `offset` on; `false` when that leaves the region.
    #[inline(always)]
    #[must_use]
    pub(crate) fn write(&self, offset: u32, from: &[u8]) -> bool {
        if !self.holds(offset, from.len()) {
            return false;
        }
        // SAFETY: as in `read`, with source and target exchanged.
        unsafe {
            std::ptr::copy_nonoverlapping(
                from.as_ptr(),
                self.base.as_ptr().add(offset as usize),
                from.len(),
            )
        };
        true
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: base and length are those of our own mapping; rings hold it by `Arc`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// One place in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) flags: u16,
    pub(crate) region: u16,
    pub(crate) length: u32,
    pub(crate) offset: u32,
}

impl Descriptor {
    #[inline(always)]
    fn first(self) -> u64 {
        u64::from(self.flags) | u64::from(self.region) << 16 | u64::from(self.length) << 32
    }
}

/// A ring in a region.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    base: NonNull<u8>,
    /// Number of descriptors, a power of two.
    size: u16,
    _mapping: Arc<Mapping>,
}

// SAFETY: a ring offers atomics inside a mapping that it keeps alive.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// Bytes that a ring takes.
    pub(crate) fn bytes(log2_size: u8) -> usize {
        HEADER + (DESCRIPTOR << log2_size.min(MOST_LOG2))
    }

    /// The ring at `offset`; `None` when it does not lie in the mapping, is too large, or when its
    /// words are not aligned.
    pub(crate) fn new(mapping: &Arc<Mapping>, offset: u32, log2_size: u8) -> Option<Ring> {
        if log2_size > MOST_LOG2
            || !offset.is_multiple_of(8)
            || !mapping.holds(offset, Ring::bytes(log2_size))
        {
            return None;
        }
        // SAFETY: the offset lies in the mapping (checked above).
        let base = unsafe { mapping.base.add(offset as usize) };
        Some(Ring {
            base,
            size: 1 << log2_size,
            _mapping: mapping.clone(),
        })
    }

    /// How many descriptors there are.
    #[inline(always)]
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Where counter value `counter` lies.
    #[inline(always)]
    pub(crate) fn slot(&self, counter: u16) -> usize {
        usize::from(counter & (self.size - 1))
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: FLAGS, HEAD and TAIL lie in the header, which `new` checked to lie in the mapping,
        // at an even address; the mapping lives as long as `self`.
        unsafe { self.base.add(offset).cast::<AtomicU16>().as_ref() }
    }

    #[inline(always)]
    fn half(&self, counter: u16, second: bool) -> &AtomicU64 {
        let offset = HEADER + self.slot(counter) * DESCRIPTOR + if second { 8 } else { 0 };
        // SAFETY: `slot` is below the ring's size, for which `new` checked the room, and the base is
        // a multiple of 8.
        unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() }
    }

    fn cookie_word(&self) -> &AtomicU32 {
        // SAFETY: the first four bytes of the header; alignment as checked by `new`.
        unsafe { self.base.cast::<AtomicU32>().as_ref() }
    }

    pub(crate) fn cookie(&self) -> u32 {
        self.cookie_word().load(Ordering::Relaxed)
    }

    /// Makes the ring empty, with cookie.
    pub(crate) fn initialise(&self) {
        self.cookie_word().store(COOKIE, Ordering::Relaxed);
        self.set_flags(0);
        self.set_head(0);
        self.set_tail(0);
    }

    #[inline(always)]
    pub(crate) fn flags(&self) -> u16 {
        self.word(FLAGS).load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set_flags(&self, flags: u16) {
        self.word(FLAGS).store(flags, Ordering::Relaxed);
    }

    /// Acquire: what the slave wrote before it moved the head is visible.
    #[inline(always)]
    pub(crate) fn head(&self) -> u16 {
        self.word(HEAD).load(Ordering::Acquire)
    }

    /// Release: what was written before is visible to who sees the new head.
    #[inline(always)]
    pub(crate) fn set_head(&self, head: u16) {
        self.word(HEAD).store(head, Ordering::Release);
    }

    /// Acquire, as `head`.
    #[inline(always)]
    pub(crate) fn tail(&self) -> u16 {
        self.word(TAIL).load(Ordering::Acquire)
    }

    /// Release, as `set_head`.
    #[inline(always)]
    pub(crate) fn set_tail(&self, tail: u16) {
        self.word(TAIL).store(tail, Ordering::Release);
    }

    /// Flags and length, where the rest is known: one word, read once.
    #[inline(always)]
    pub(crate) fn outcome(&self, counter: u16) -> (u16, u32) {
        let first = self.half(counter, false).load(Ordering::Relaxed);
        (first as u16, (first >> 32) as u32)
    }

    /// The descriptor, each word read once: what is checked is what is used.
    #[inline(always)]
    pub(crate) fn load(&self, counter: u16) -> Descriptor {
        let first = self.half(counter, false).load(Ordering::Relaxed);
        let second = self.half(counter, true).load(Ordering::Relaxed);
        Descriptor {
            flags: first as u16,
            region: (first >> 16) as u16,
            length: (first >> 32) as u32,
            offset: second as u32,
        }
    }

    #[inline(always)]
    pub(crate) fn store(&self, counter: u16, descriptor: Descriptor) {
        self.half(counter, false)
            .store(descriptor.first(), Ordering::Relaxed);
        self.half(counter, true)
            .store(u64::from(descriptor.offset), Ordering::Relaxed);
    }

    /// Changes flags and length and leaves the place as it is.
    #[inline(always)]
    pub(crate) fn fill(&self, counter: u16, descriptor: Descriptor) {
        self.half(counter, false)
            .store(descriptor.first(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::os::fd::AsFd;

    fn mapping(bytes: usize) -> Arc<Mapping> {
        let file = memfd_create("weir-memif-test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes as u64).unwrap();
        Arc::new(Mapping::new(file.as_fd(), bytes).unwrap())
    }

    #[test]
    fn copies_stay_inside() {
        let mapping = mapping(4096);
        assert!(
            mapping.write(4090, b"sixsix")
                && !mapping.write(4091, b"sixsix")
                && !mapping.write(u32::MAX, b"x")
        );
        let mut bytes = [0; 6];
        assert!(
            mapping.read(4090, &mut bytes)
                && !mapping.read(4091, &mut bytes)
                && !mapping.read(u32::MAX, &mut bytes)
        );
        assert_eq!(&bytes, b"sixsix");
        assert!(mapping.read(4096, &mut []) && !mapping.read(4097, &mut []));
    }

    #[test]
    fn rings_lie_inside_and_aligned() {
        let mapping = mapping(4096);
        assert!(Ring::new(&mapping, 0, 7).is_some());
        assert!(
            Ring::new(&mapping, 0, 8).is_none(),
            "128 + 4096 bytes do not fit"
        );
        for (offset, log2) in [
            (4, 4),
            (1, 4),
            (4096 - 128, 1),
            (u32::MAX - 7, 0),
            (0, 15),
            (0, 255),
        ] {
            assert!(
                Ring::new(&mapping, offset, log2).is_none(),
                "{offset} {log2}"
            );
        }
    }

    #[test]
    fn descriptors_have_the_layout_of_the_protocol() {
        let mapping = mapping(4096);
        let ring = Ring::new(&mapping, 0, 5).unwrap();
        ring.initialise();
        let descriptor = Descriptor {
            flags: NEXT,
            region: 0x0203,
            length: 0x0405_0607,
            offset: 0x0809_0a0b,
        };
        ring.store(32 + 3, descriptor);
        assert_eq!(
            (ring.load(3), ring.outcome(3)),
            (descriptor, (NEXT, 0x0405_0607))
        );
        let mut bytes = [0; 16];
        assert!(mapping.read(128 + 3 * 16, &mut bytes));
        assert_eq!(
            bytes,
            [1, 0, 3, 2, 7, 6, 5, 4, 0x0b, 0x0a, 9, 8, 0, 0, 0, 0]
        );
        ring.set_flags(MASK_INT);
        ring.set_head(0x1234);
        ring.set_tail(0x5678);
        assert!(mapping.read(0, &mut bytes[..8]));
        assert_eq!(bytes[..8], [0x20, 0x1f, 0xe3, 0x03, 1, 0, 0x34, 0x12]);
        assert!(mapping.read(64, &mut bytes[..2]));
        assert_eq!(
            (
                bytes[..2] == [0x78, 0x56],
                ring.head(),
                ring.tail(),
                ring.flags()
            ),
            (true, 0x1234, 0x5678, MASK_INT)
        );
    }
}
