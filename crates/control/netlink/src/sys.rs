//! The kernel calls of this crate for which neither std nor rustix has a safe form.
//!
//! Kept small: leaving and entering namespaces, preparing a child between fork and exec, the
//! `SIOCETHTOOL` ioctl and the memory it writes to. Every function is safe to call; the blocks say
//! why.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Puts the calling thread into a new network namespace of its own.
pub(crate) fn leave_network_namespace() -> io::Result<()> {
    // SAFETY: `unshare_unsafe` is unsafe because of CLONE_FILES, which would take descriptors from
    // under other threads; CLONE_NEWNET alone touches no descriptor and no memory.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).map_err(io::Error::from)
}

/// Lets the child of `command` enter the namespace and die with its parent `parent`.
pub(crate) fn enter_before_exec(command: &mut Command, namespace: Arc<OwnedFd>, parent: u32) {
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the line above; then nobody would send the signal.
        let living = getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
        if living != Some(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        enter(namespace.as_fd())
    };
    // SAFETY: `pre_exec` demands a closure that is fit for the child of a fork in a threaded
    // process: it makes three system calls without a libc lock, allocates nothing (errors are bare
    // numbers), and the descriptor it uses is owned by the closure, hence open in the child.
    unsafe { command.pre_exec(prepare) };
}

/// Memory for one ethtool request and its answer, zeroed, with a forbidden page behind it.
///
/// Several ethtool requests (statistics, strings) carry no length of the caller's buffer: the
/// kernel writes as many values as the driver has *now*, which may be more than when they were
/// counted a moment ago. The page without access turns such a write into EFAULT.
pub(crate) struct GuardedBuffer {
    start: NonNull<u8>,
    length: usize,
    guard: usize,
}

impl GuardedBuffer {
    /// Memory of at least `bytes`, rounded up to whole pages.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let guard = rustix::param::page_size();
        let too_large = || io::Error::from_raw_os_error(libc::ENOMEM);
        let length = bytes
            .max(1)
            .checked_next_multiple_of(guard)
            .ok_or_else(too_large)?;
        let whole = length.checked_add(guard).ok_or_else(too_large)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice disturbs nothing.
        let start = unsafe { mmap_anonymous(null_mut(), whole, access, MapFlags::PRIVATE) }?;
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            return Err(too_large());
        };
        let buffer = GuardedBuffer {
            start,
            length,
            guard,
        };
        // SAFETY: `length` is inside the mapping made above, a multiple of the page size, and
        // nobody holds a reference into its last page.
        unsafe {
            let behind = buffer.start.as_ptr().add(length).cast::<c_void>();
            mprotect(behind, guard, MprotectFlags::empty())?;
        }
        Ok(buffer)
    }

    /// The memory in front of the forbidden page.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `start` points to `length` readable bytes, initialised to zero by the kernel,
        // which live as long as `self` and are written only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// The memory in front of the forbidden page, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` excludes every other reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for GuardedBuffer {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`, and no reference outlives `self`. A refusal
        // would leak the memory, which is harmless.
        let _ = unsafe {
            munmap(
                self.start.as_ptr().cast::<c_void>(),
                self.length + self.guard,
            )
        };
    }
}

/// `SIOCETHTOOL`: carries out the request at the start of `buffer` for the interface `name` (which
/// is cut at 15 bytes) and leaves the answer there.
pub(crate) fn ethtool(
    socket: BorrowedFd<'_>,
    name: &str,
    buffer: &mut GuardedBuffer,
) -> io::Result<()> {
    let mut interface: [libc::c_char; libc::IFNAMSIZ] = [0; libc::IFNAMSIZ];
    for (to, from) in interface
        .iter_mut()
        .take(libc::IFNAMSIZ - 1)
        .zip(name.bytes())
    {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    let mut request = libc::ifreq {
        ifr_name: interface,
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_data: buffer.start.as_ptr().cast::<libc::c_char>(),
        },
    };
    // SAFETY: `request` is a valid ifreq for the length of the call. The kernel reads and writes
    // from `ifru_data` upwards without a gap; the buffer is exclusively ours, and what it is too
    // short for ends at its forbidden page with EFAULT.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// `SO_BINDTODEVICE`.
pub(crate) fn bind_to_device(socket: BorrowedFd<'_>, device: &str) -> io::Result<()> {
    let length =
        libc::socklen_t::try_from(device.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel reads `length` bytes from `device`, which lives for the length of the call; the name needs
    // no NUL at its end.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            device.as_ptr().cast::<c_void>(),
            length,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// `sendmsg` with `UDP_SEGMENT`: the octets leave as datagrams of `length`. Returns how many octets were taken.
pub(crate) fn send_segments(
    socket: BorrowedFd<'_>,
    octets: &[u8],
    length: u16,
) -> io::Result<usize> {
    /// Room for one control message of two octets, aligned as `cmsghdr` is (cmsg(3)).
    #[repr(align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut piece = libc::iovec {
        iov_base: octets.as_ptr().cast_mut().cast::<c_void>(),
        iov_len: octets.len(),
    };
    // SAFETY: all zeros is a message without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
    message.msg_control = control.0.as_mut_ptr().cast::<c_void>();
    // SAFETY: `CMSG_SPACE` and `CMSG_LEN` are arithmetic; the first header lies in `control`, which is large enough for
    // it and two octets, as `msg_controllen` says, and is aligned. The kernel reads `octets` and `control`, which live for
    // the length of the call, and writes neither.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(2) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_UDP;
        (*header).cmsg_type = libc::UDP_SEGMENT;
        (*header).cmsg_len = libc::CMSG_LEN(2) as usize;
        libc::CMSG_DATA(header)
            .cast::<u16>()
            .write_unaligned(length);
        libc::sendmsg(
            socket.as_raw_fd(),
            &raw const message,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// A datagram that [`receive_many`] has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Its length; more than there was room for when the rest is lost.
    pub(crate) length: usize,
    /// The port of the netlink socket that sent it; 0 is the kernel.
    pub(crate) port: u32,
}

/// `recvmmsg` without waiting: datagrams of a netlink socket, one for each `room` bytes of `buffer`. Returns their number.
pub(crate) fn receive_many(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    room: usize,
    datagrams: &mut [Datagram],
) -> io::Result<usize> {
    /// Datagrams of one call.
    const MOST: usize = 64;
    // SAFETY: all zeros is an address, a piece and a message without anything.
    let (mut senders, mut pieces, mut headers): (
        [libc::sockaddr_nl; MOST],
        [libc::iovec; MOST],
        [libc::mmsghdr; MOST],
    ) = unsafe { std::mem::zeroed() };
    let rooms = buffer.chunks_exact_mut(room.max(1));
    let count = rooms.len().min(MOST).min(datagrams.len());
    let parts = pieces.iter_mut().zip(&mut senders).zip(&mut headers);
    for (((piece, sender), header), room) in parts.zip(rooms).take(count) {
        piece.iov_base = room.as_mut_ptr().cast::<c_void>();
        piece.iov_len = room.len();
        let message = &mut header.msg_hdr;
        message.msg_name = (&raw mut *sender).cast::<c_void>();
        message.msg_namelen = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        (message.msg_iov, message.msg_iovlen) = (&raw mut *piece, 1);
    }
    // SAFETY: the first `count` headers point to as many addresses, pieces and disjoint parts of `buffer`, all of which live
    // for the length of the call; the kernel writes within the lengths that they give.
    let read = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            null_mut(),
        )
    };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    for ((datagram, header), sender) in datagrams.iter_mut().zip(&headers).zip(&senders).take(read)
    {
        *datagram = Datagram {
            length: header.msg_len as usize,
            port: sender.nl_pid,
        };
    }
    Ok(read)
}

/// `SIOCOUTQ`: octets of a TCP socket that the other side has not acknowledged (tcp(7)).
pub(crate) fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut octets: libc::c_int = 0;
    // SAFETY: the kernel writes one int, which lives for the length of the call. SIOCOUTQ has the number of TIOCOUTQ.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut octets) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(usize::try_from(octets).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_is_zeroed_and_whole_pages() {
        let mut buffer = GuardedBuffer::new(5000).unwrap();
        assert_eq!(buffer.bytes().len() % rustix::param::page_size(), 0);
        assert!(buffer.bytes().len() >= 5000);
        assert!(buffer.bytes().iter().all(|byte| *byte == 0));
        buffer.bytes_mut().fill(0xff);
        assert_eq!(buffer.bytes().last(), Some(&0xff));
        assert!(GuardedBuffer::new(usize::MAX).is_err());
    }

    #[test]
    fn the_kernel_cannot_write_behind_the_buffer() {
        use std::io::{Read, Write};
        let buffer = GuardedBuffer::new(1).unwrap();
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&vec![7; buffer.length + 8]).unwrap();
        // SAFETY: made to go one step too far on purpose: the kernel stops at the forbidden page.
        let result = unsafe {
            let last = buffer.start.as_ptr().add(buffer.length - 8);
            libc::read(reader.as_raw_fd(), last.add(8).cast::<c_void>(), 8)
        };
        assert_eq!(result, -1);
        assert_eq!(
            io::Error::last_os_error().raw_os_error(),
            Some(libc::EFAULT)
        );
        drop(writer);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
    }
}
