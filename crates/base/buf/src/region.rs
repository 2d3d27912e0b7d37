//! The memory file behind a pool: made, sealed, mapped, unmapped.
//!
//! Hugepages are taken when there are any; when none were set aside, ordinary pages lie so that the kernel can put them together. The file is
//! sealed against growing and shrinking, so that a peer to whom the descriptor is given can never
//! make a mapped page vanish.

#![expect(
    unsafe_code,
    reason = "mapping memory; each block says why it is sound"
)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use weir_cpu::HUGE_PAGE;

/// Which pages a region is to have, and has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hugepages {
    /// 2 MiB pages when the system has set enough aside, else ordinary ones that the kernel puts together where it can.
    Auto,
    /// Ordinary pages.
    Off,
}

const PAGE: usize = 4096;

/// A mapped, sealed memory file.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<u8>,
    bytes: usize,
    huge: bool,
    file: OwnedFd,
    _mapped: Mapped,
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
            && let Ok(region) = Region::with_pages(bytes.next_multiple_of(HUGE_PAGE), true)
        {
            return Ok(region);
        }
        let region = Region::with_pages(bytes.next_multiple_of(PAGE), false)?;
        if pages == Hugepages::Auto {
            region.put_together();
        }
        Ok(region)
    }

    /// Asks the kernel for large pages in the place of ordinary ones (Linux 6.1), which moves what is there: 2 ms a MiB.
    fn put_together(&self) {
        for advice in [libc::MADV_HUGEPAGE, libc::MADV_COLLAPSE] {
            // SAFETY: it changes nothing that anybody reads; a kernel that does not know or cannot do it refuses it.
            unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, advice) };
        }
    }

    fn with_pages(bytes: usize, huge: bool) -> io::Result<Region> {
        let flags = libc::MFD_CLOEXEC
            | libc::MFD_ALLOW_SEALING
            | if huge {
                libc::MFD_HUGETLB | libc::MFD_HUGE_2MB
            } else {
                0
            };
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
        if unsafe {
            libc::fcntl(
                file.as_raw_fd(),
                libc::F_ADD_SEALS,
                libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL,
            )
        } != 0
        {
            return Err(io::Error::last_os_error());
        }
        let mapped = if huge {
            Mapped::file(&file, bytes)?
        } else {
            Mapped::nothing(bytes + HUGE_PAGE)?
        };
        let base = if huge {
            mapped.start
        } else {
            mapped.put_file(&file, bytes)?
        };
        Ok(Region {
            base,
            bytes,
            huge,
            file,
            _mapped: mapped,
        })
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

/// A range of addresses that goes with its owner.
#[derive(Debug)]
struct Mapped {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapped {
    /// All of a file, wherever there is room.
    fn file(file: &OwnedFd, bytes: usize) -> io::Result<Mapped> {
        let kind = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: no fixed address is asked for, so nothing that is mapped can be replaced; the
        // length is the file's. MAP_POPULATE makes a lack of hugepages an error here and not a
        // SIGBUS later.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                kind,
                file.as_raw_fd(),
                0,
            )
        };
        Ok(Mapped {
            start: checked(start)?,
            bytes,
        })
    }

    /// Addresses that nobody may touch.
    fn nothing(bytes: usize) -> io::Result<Mapped> {
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: no fixed address is asked for.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, kind, -1, 0) };
        Ok(Mapped {
            start: checked(start)?,
            bytes,
        })
    }

    /// Puts all of a file at the first place in this range at which a large page can begin.
    fn put_file(&self, file: &OwnedFd, bytes: usize) -> io::Result<NonNull<u8>> {
        let skipped = self.start.align_offset(HUGE_PAGE);
        if skipped.saturating_add(bytes) > self.bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let kind = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE;
        // SAFETY: all of it lies within this range, which is ours, and in which nothing is yet.
        unsafe {
            let place = self.start.add(skipped).as_ptr().cast();
            checked(libc::mmap(
                place,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                kind,
                file.as_raw_fd(),
                0,
            ))
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the range is our own, and a region is only dropped when every chunk of it is free (`pool::Handle`), so
        // nobody holds an address into it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn checked(mapped: *mut libc::c_void) -> io::Result<NonNull<u8>> {
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(mapped.cast::<u8>()).ok_or_else(|| io::Error::other("mapped at address 0"))
}
