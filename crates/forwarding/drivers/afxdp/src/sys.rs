//! The kernel's side of AF_XDP: sockets, options, and the four rings that are shared with it.
//!
//! A ring is a power of two of entries with two counters that only grow (and wrap); the producer
//! writes one, the consumer the other. Nothing the kernel writes there is believed further than an
//! index into the ring (masked) or a count (cut to the ring's size).
//!
//! Layouts and numbers: `include/uapi/linux/if_xdp.h`; the protocol:
//! `Documentation/networking/af_xdp.rst` of Linux.

#![expect(
    unsafe_code,
    reason = "system calls and memory shared with the kernel; each block says why it is sound"
)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_buf::{Pool, STRIDE};

/// A frame may span several descriptors (Linux 6.6; absent from libc).
pub(crate) const XDP_USE_SG: u16 = 1 << 4;
/// How many frames one `sendto` may send (Linux 6.17; absent from libc).
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// One frame in the receive or transmit ring.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Descriptor {
    /// Chunk in the low 48 bits, offset in it above.
    pub(crate) address: u64,
    pub(crate) len: u32,
    pub(crate) options: u32,
}

const _: () = assert!(size_of::<Descriptor>() == size_of::<libc::xdp_desc>());

/// Where the data of an unaligned-mode address lies, counted from the region's first byte.
#[inline(always)]
pub(crate) fn place(address: u64) -> usize {
    let shift = libc::XSK_UNALIGNED_BUF_OFFSET_SHIFT as u32;
    (address & ((1 << shift) - 1)) as usize + (address >> shift) as usize
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn new_socket(family: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: an ordinary call without pointers.
    let fd = check(unsafe {
        libc::socket(
            family,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            0,
        )
    })?;
    // SAFETY: `fd` was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A fresh AF_XDP socket.
pub(crate) fn xdp_socket() -> io::Result<OwnedFd> {
    new_socket(libc::AF_XDP)
}

fn set_option<T>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `value`, which is that long and outlives the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            length,
        )
    })
    .map(drop)
}

/// Reads an option; the structs asked for are plain numbers, for which zero is valid.
fn option<T: Plain>(socket: BorrowedFd<'_>, name: libc::c_int) -> io::Result<(T, usize)> {
    // SAFETY: `Plain` promises that all zeroes are a value.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `value`, which is that long.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            name,
            (&raw mut value).cast(),
            &raw mut length,
        )
    })?;
    Ok((value, length as usize))
}

/// Structs of plain numbers.
///
/// # Safety
/// Every pattern of bytes must be a value.
unsafe trait Plain {}
// SAFETY: unsigned numbers only.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: unsigned numbers only.
unsafe impl Plain for libc::xdp_statistics {}

/// Registers the pool's region as the socket's memory, in unaligned chunks of [`STRIDE`].
///
/// The kernel pins the pages, so the region may even be unmapped first; and it touches only chunks
/// whose addresses [`Producer::push`] gave it.
pub(crate) fn register(socket: BorrowedFd<'_>, pool: &Pool) -> io::Result<()> {
    let (base, bytes) = pool.area();
    let registration = libc::xdp_umem_reg {
        addr: base as u64,
        len: bytes as u64,
        chunk_size: STRIDE as u32,
        headroom: 0,
        flags: libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG,
        tx_metadata_len: 0,
    };
    set_option(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)
}

/// Sizes of the four rings, each a power of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) rx: u32,
    pub(crate) fill: u32,
    pub(crate) tx: u32,
    pub(crate) completion: u32,
}

/// The four rings of a socket.
#[derive(Debug)]
pub(crate) struct Rings {
    pub(crate) rx: Consumer<Descriptor>,
    pub(crate) fill: Producer<u64>,
    pub(crate) tx: Producer<Descriptor>,
    pub(crate) completion: Consumer<u64>,
}

impl Rings {
    /// Asks the kernel for the rings and maps them.
    pub(crate) fn new(socket: BorrowedFd<'_>, sizes: Sizes) -> io::Result<Rings> {
        for (option, size) in [
            (libc::XDP_UMEM_FILL_RING, sizes.fill),
            (libc::XDP_UMEM_COMPLETION_RING, sizes.completion),
            (libc::XDP_RX_RING, sizes.rx),
            (libc::XDP_TX_RING, sizes.tx),
        ] {
            set_option(socket, libc::SOL_XDP, option, &size)?;
        }
        let (offsets, length) = option::<libc::xdp_mmap_offsets>(socket, libc::XDP_MMAP_OFFSETS)?;
        if length < size_of::<libc::xdp_mmap_offsets>() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "AF_XDP of this kernel is older than Linux 5.4",
            ));
        }
        Ok(Rings {
            rx: Consumer(Ring::map(
                socket,
                libc::XDP_PGOFF_RX_RING,
                &offsets.rx,
                sizes.rx,
            )?),
            fill: Producer(Ring::map(
                socket,
                libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t,
                &offsets.fr,
                sizes.fill,
            )?),
            tx: Producer(Ring::map(
                socket,
                libc::XDP_PGOFF_TX_RING,
                &offsets.tx,
                sizes.tx,
            )?),
            completion: Consumer(Ring::map(
                socket,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t,
                &offsets.cr,
                sizes.completion,
            )?),
        })
    }
}

/// A ring's mapping. It keeps the socket alive in the kernel as long as it is mapped.
#[derive(Debug)]
struct Ring<T> {
    base: NonNull<u8>,
    bytes: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
    /// Our own counter: producer's or consumer's.
    mine: u32,
    /// The other side's counter as last seen.
    theirs: u32,
    entry: PhantomData<T>,
}

// SAFETY: a ring is memory shared with the kernel; our side of it is used through `&mut` only, from
// whichever thread owns the value.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    fn map(
        socket: BorrowedFd<'_>,
        place: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Ring<T>> {
        let odd = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the kernel describes its rings oddly",
            )
        };
        if !size.is_power_of_two() {
            return Err(odd());
        }
        let at = |offset: u64| usize::try_from(offset).map_err(|_| odd());
        let (producer, consumer, flags, entries) = (
            at(offsets.producer)?,
            at(offsets.consumer)?,
            at(offsets.flags)?,
            at(offsets.desc)?,
        );
        let bytes = (size as usize)
            .checked_mul(size_of::<T>())
            .and_then(|n| n.checked_add(entries))
            .ok_or_else(odd)?;
        let inside = [producer, consumer, flags]
            .iter()
            .all(|offset| offset % 4 == 0 && offset + 4 <= bytes);
        if !inside || entries % align_of::<T>() != 0 {
            return Err(odd());
        }
        // SAFETY: no fixed address is asked for, so nothing mapped is replaced.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.as_raw_fd(),
                place,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or_else(odd)?;
        // SAFETY: the offsets were checked to lie inside the mapping and to be aligned.
        unsafe {
            Ok(Ring {
                base,
                bytes,
                producer: base.add(producer).cast(),
                consumer: base.add(consumer).cast(),
                flags: base.add(flags).cast(),
                entries: base.add(entries).cast(),
                size,
                mine: 0,
                theirs: 0,
                entry: PhantomData,
            })
        }
    }

    #[inline(always)]
    fn word(&self, place: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: the three words lie in the mapping (checked by `map`), which lives as long as
        // `self`; kernel and we both use them as 32-bit atomics.
        unsafe { place.as_ref() }
    }

    /// The entry of counter value `index`.
    #[inline(always)]
    fn entry(&self, index: u32) -> *mut T {
        let offset = (index & (self.size - 1)) as usize;
        // SAFETY: the mask keeps the offset below `size`, and the mapping has room for that many.
        unsafe { self.entries.as_ptr().add(offset) }
    }

    #[inline(always)]
    fn needs_wakeup(&self) -> bool {
        self.word(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: base and length are those of our own mapping, and nothing borrowed from it lives.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// A ring that we fill and the kernel empties.
#[derive(Debug)]
pub(crate) struct Producer<T>(Ring<T>);

impl<T: Copy> Producer<T> {
    /// Entries that can be pushed; looks at the kernel's counter only when `wanted` are not known to
    /// fit.
    #[inline(always)]
    pub(crate) fn room(&mut self, wanted: u32) -> u32 {
        let ring = &mut self.0;
        let used = ring.mine.wrapping_sub(ring.theirs);
        if ring.size.saturating_sub(used) < wanted {
            // Acquire: the kernel has read the entries before it said so.
            ring.theirs = ring.word(ring.consumer).load(Ordering::Acquire);
        }
        ring.size
            .saturating_sub(ring.mine.wrapping_sub(ring.theirs))
    }

    /// Writes the next entry; the kernel sees it after [`Producer::publish`]. Beyond the room it is
    /// written over entries that the kernel has not read.
    ///
    /// # Safety
    /// The entry must name a chunk of the registered pool that is lent to this socket and stays lent
    /// until the kernel gives it back or the socket is closed.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, entry: T) {
        let place = self.0.entry(self.0.mine);
        // SAFETY: `place` lies in the ring; the kernel reads it only after it was published.
        unsafe { place.write(entry) };
        self.0.mine = self.0.mine.wrapping_add(1);
    }

    /// Shows the kernel what was pushed.
    #[inline(always)]
    pub(crate) fn publish(&mut self) {
        // Release: the entries are written before the counter says so.
        self.0
            .word(self.0.producer)
            .store(self.0.mine, Ordering::Release);
    }

    /// Entries that the kernel has not taken yet.
    #[inline(always)]
    pub(crate) fn waiting(&mut self) -> u32 {
        self.0.theirs = self.0.word(self.0.consumer).load(Ordering::Acquire);
        self.0.mine.wrapping_sub(self.0.theirs).min(self.0.size)
    }

    /// Whether new entries need a system call to be seen by the kernel.
    #[inline(always)]
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.0.needs_wakeup()
    }
}

/// A ring that the kernel fills and we empty.
#[derive(Debug)]
pub(crate) struct Consumer<T>(Ring<T>);

impl<T: Copy> Consumer<T> {
    /// Entries that can be popped.
    #[inline(always)]
    pub(crate) fn available(&mut self) -> u32 {
        let ring = &mut self.0;
        // Acquire: the entries are read after the counter.
        ring.theirs = ring.word(ring.producer).load(Ordering::Acquire);
        ring.theirs.wrapping_sub(ring.mine).min(ring.size)
    }

    /// Reads the next entry. Beyond what is available this is an old one, which the set of lent
    /// chunks then refuses.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> T {
        let place = self.0.entry(self.0.mine);
        self.0.mine = self.0.mine.wrapping_add(1);
        // SAFETY: `place` lies in the ring; entries are plain numbers, of which every pattern is
        // valid, and volatile because the kernel could write meanwhile.
        unsafe { place.read_volatile() }
    }

    /// Gives the kernel the room of what was popped.
    #[inline(always)]
    pub(crate) fn release(&mut self) {
        // Release: the entries are read before the kernel may write over them.
        self.0
            .word(self.0.consumer)
            .store(self.0.mine, Ordering::Release);
    }
}

/// Binds the socket to a queue of a device. `flags` chooses copy or zero-copy.
pub(crate) fn bind(
    socket: BorrowedFd<'_>,
    interface: u32,
    queue: u32,
    flags: u16,
) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags | libc::XDP_USE_NEED_WAKEUP,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `address`, which is that long.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) }).map(drop)
}

/// Whether this kernel knows frames of several descriptors. It looks at the flags before it looks for the device, and
/// there is none of that number.
#[must_use]
pub fn knows_pieces() -> bool {
    xdp_socket()
        .and_then(|socket| bind(socket.as_fd(), i32::MAX as u32, 0, XDP_USE_SG))
        .is_err_and(|error| error.raw_os_error() == Some(libc::ENODEV))
}

/// Lets one `sendto` send up to `frames`; where the kernel cannot, it sends 32.
pub(crate) fn set_send_budget(socket: BorrowedFd<'_>, frames: u32) -> bool {
    set_option(socket, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &frames).is_ok()
}

/// Lets frames of `bytes` in all be under way before the kernel makes us wait.
pub(crate) fn set_send_buffer(socket: BorrowedFd<'_>, bytes: libc::c_int) {
    // The forced form needs CAP_NET_ADMIN; the other is cut to net.core.wmem_max.
    if set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes).is_err() {
        let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes);
    }
}

/// The kernel's counters of the socket, in the order of [`STATISTICS`]. Zero where an old kernel has
/// fewer.
pub(crate) fn statistics(socket: BorrowedFd<'_>) -> Option<[u64; 6]> {
    let (statistics, _) = option::<libc::xdp_statistics>(socket, libc::XDP_STATISTICS).ok()?;
    Some([
        statistics.rx_dropped,
        statistics.rx_invalid_descs,
        statistics.tx_invalid_descs,
        statistics.rx_ring_full,
        statistics.rx_fill_ring_empty_descs,
        statistics.tx_ring_empty_descs,
    ])
}

/// The kernel's names for [`statistics`].
pub(crate) const STATISTICS: [&str; 6] = [
    "rx_dropped",
    "rx_invalid_descs",
    "tx_invalid_descs",
    "rx_ring_full",
    "rx_fill_ring_empty_descs",
    "tx_ring_empty_descs",
];

/// Tells the kernel that the transmit ring holds frames. Never waits.
#[inline]
pub(crate) fn kick_tx(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no data and no address are passed.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            std::ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null(),
            0,
        )
    };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Tells the kernel that the fill ring holds chunks, and asks how the socket is. Never waits.
#[inline]
pub(crate) fn kick_rx(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no room for data or an address is passed.
    let got = unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    if got < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Keeps a device promiscuous as long as the returned socket is open: the kernel counts the users
/// and takes this one off also when the process is killed.
pub(crate) fn hold_promiscuous(interface: u32) -> io::Result<OwnedFd> {
    use std::os::fd::AsFd;
    let socket = new_socket(libc::AF_PACKET)?;
    let membership = libc::packet_mreq {
        mr_ifindex: interface.cast_signed(),
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(
        socket.as_fd(),
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &membership,
    )?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_carry_their_offset_above_bit_48() {
        assert_eq!(place(4992), 4992);
        assert_eq!(place(4992 | 256 << 48), 4992 + 256);
        assert_eq!(place(u64::MAX), (1 << 48) - 1 + 0xffff);
    }
}
