//! Listening to groups of rtnetlink: datagrams as the kernel sends them, and whether some were lost.
//!
//! A notification of a route is charged some 830 bytes of the socket's buffer, whatever its length is. A full table therefore
//! needs a buffer of many MiB, beyond what `net.core.rmem_max` allows: the buffer is forced, which needs CAP_NET_ADMIN.
//!
//! The kernel sends a datagram for each route, so that many are read with one system call.
//!
//! One thread owns a listener and waits on its descriptor (`AsFd`) with poll. It serves the namespace in which it was
//! opened.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::conversation::open_socket;
use crate::error::{Error, Result};
use crate::sys::{Datagram, receive_many};

/// Datagrams that are read at once, and the room of each: a link with many virtual functions is the longest. Not a power of
/// two, so that the beginnings of all do not share few places of the cache.
const DATAGRAMS: usize = 64;
const ROOM: usize = 32 * 1024 + 128;

/// Groups of rtnetlink (`RTNLGRP_*` of `linux/rtnetlink.h`).
pub mod group {
    /// Links.
    pub const LINK: u32 = 1;
    /// IPv4 addresses.
    pub const IPV4_ADDRESS: u32 = 5;
    /// IPv4 routes.
    pub const IPV4_ROUTE: u32 = 7;
    /// IPv6 addresses.
    pub const IPV6_ADDRESS: u32 = 9;
    /// IPv6 routes.
    pub const IPV6_ROUTE: u32 = 11;
    /// MPLS routes.
    pub const MPLS_ROUTE: u32 = 27;
}

/// What one read brought.
#[derive(Debug)]
pub enum Heard<'a> {
    /// A datagram of the kernel; it may hold several messages.
    Datagram(&'a [u8]),
    /// Nothing waits.
    Nothing,
    /// The kernel had no room and dropped messages. Those that it had queued before come next.
    Overrun,
}

/// A socket that is a member of groups.
pub struct Listener {
    socket: Socket,
    /// Room for all datagrams of one read.
    buffer: Vec<u8>,
    datagrams: [Datagram; DATAGRAMS],
    /// The next datagram of the last read, and the number of them.
    next: usize,
    read: usize,
    bytes: usize,
}

impl Listener {
    /// Joins groups in the namespace of the calling thread, with a receive buffer of `bytes`.
    ///
    /// # Errors
    /// When the kernel refuses the socket or a group.
    pub fn open(groups: &[u32], bytes: usize) -> Result<Listener> {
        let asked = "listen to the kernel's routes";
        let socket = open_socket(NETLINK_ROUTE)?;
        let set = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, bytes)
            .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&socket, bytes));
        set.map_err(|errno| Error::system(asked, errno))?;
        let bytes = rustix::net::sockopt::socket_recv_buffer_size(&socket).unwrap_or(0);
        let listener = Listener {
            socket,
            buffer: vec![0; DATAGRAMS * ROOM],
            datagrams: [Datagram::default(); DATAGRAMS],
            next: 0,
            read: 0,
            bytes,
        };
        for group in groups {
            listener
                .socket
                .add_membership(*group)
                .map_err(|source| Error::system(asked, source))?;
        }
        Ok(listener)
    }

    /// The size of the receive buffer that the kernel granted, as it counts (twice what was asked for).
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.bytes
    }

    /// Reads the next datagram without waiting.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn receive(&mut self) -> Result<Heard<'_>> {
        loop {
            if self.next >= self.read && !self.read_more()? {
                return Ok(Heard::Nothing);
            }
            let place = self.next;
            self.next += 1;
            let Some(datagram) = self.datagrams.get(place).filter(|_| place < self.read) else {
                // The read ended with an error of the socket: an overrun.
                return Ok(Heard::Overrun);
            };
            if datagram.port != 0 {
                continue;
            }
            let (begin, end) = (place * ROOM, place * ROOM + datagram.length);
            // What does not fit is lost.
            let fits = datagram.length <= ROOM;
            return Ok(match self.buffer.get(begin..end).filter(|_| fits) {
                Some(bytes) => Heard::Datagram(bytes),
                None => Heard::Overrun,
            });
        }
    }

    /// Reads datagrams; whether there is one, or an overrun to report.
    fn read_more(&mut self) -> Result<bool> {
        (self.next, self.read) = (0, 0);
        loop {
            let socket = self.socket.as_fd();
            match receive_many(socket, &mut self.buffer, ROOM, &mut self.datagrams) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    self.read = read;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return Ok(true),
                Err(source) => return Err(Error::system("listen to the kernel's routes", source)),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Listener")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
