//! The memory file behind a pool: made, sealed, mapped, unmapped.
//!
//! Hugepages are taken when there are any and asked for softly when there are none. The file is
//! sealed against growing and shrinking, so that a peer to whom the descriptor is given can never
//! make a mapped page vanish.

#![expect(unsafe_code, reason = "mapping memory; each block says why it is sound")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// Which pages a region is to have, and has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hugepages {
    /// 2 MiB pages when the system has enough free ones, else ordinary ones.
    Auto,
    /// Ordinary pages.
    Off,
}

const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

/// A mapped, sealed memory file.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<u8>,
    bytes: usize,
    huge: bool,
    file: OwnedFd,
}

// SAFETY: a region is a plain piece of memory with a fixed address; who may touch which chunk of it
// is decided by `Pkt` and the pool, not by the thread.
unsafe impl Send for Region {}
// SAFETY: as above; `Region` itself offers no access to the bytes.
unsafe impl Sync for Region {}

impl Region {
    /// Makes a region of at least `bytes`.
    pub(crate) fn new(bytes: usize, pages: Hugepages) -> io::Result<Region> {
        if pages == Hugepages::Auto
            && let Ok(region) = Region::with_pages(bytes.next_multiple_of(HUGE), true)
        {
            return Ok(region);
        }
        Region::with_pages(bytes.next_multiple_of(PAGE), false)
    }

    fn with_pages(bytes: usize, huge: bool) -> io::Result<Region> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | if huge { libc::MFD_HUGETLB | libc::MFD_HUGE_2MB } else { 0 };
        // SAFETY: the name is a NUL-terminated literal.
        let fd = unsafe { libc::memfd_create(c"weir-pool".as_ptr(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened and belongs to nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
        // SAFETY: an ordinary call on a descriptor we own.
        if unsafe { libc::ftruncate(file.as_raw_fd(), length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above; sealing only forbids later changes of size.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: no fixed address is asked for, so nothing that is mapped can be replaced; the
        // length is the file's. MAP_POPULATE makes a lack of hugepages an error here and not a
        // SIGBUS later.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if !huge {
            // SAFETY: advice on a range that we mapped; it may be ignored.
            unsafe { libc::madvise(base, bytes, libc::MADV_HUGEPAGE) };
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Region { base, bytes, huge, file })
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_huge(&self) -> bool {
        self.huge
    }

    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: base and length are those of our own mapping, and a region is only dropped when
        // every chunk of it is free (`pool::Handle`), so nobody holds an address into it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
