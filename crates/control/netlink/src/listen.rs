//! Listening to groups of rtnetlink: datagrams as the kernel sends them, and whether some were lost.
//!
//! A notification of a route is charged some 830 bytes of the socket's buffer, whatever its length is. A full table therefore
//! needs a buffer of many MiB, beyond what `net.core.rmem_max` allows: the buffer is forced, which needs CAP_NET_ADMIN.
//!
//! One thread owns a listener and waits on its descriptor (`AsFd`) with poll. It serves the namespace in which it was
//! opened.

use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::conversation::{DATAGRAM_BYTES, Received, open_socket, receive};
use crate::error::{Error, Result};

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
    buffer: Vec<u8>,
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
            buffer: vec![0; DATAGRAM_BYTES],
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
            return match receive(&self.socket, &mut self.buffer) {
                Ok(Received::Nothing) => Ok(Heard::Nothing),
                Ok(Received::Stranger) => continue,
                // What does not fit is lost.
                Ok(Received::FromKernel(length)) => Ok(self
                    .buffer
                    .get(..length)
                    .map_or(Heard::Overrun, Heard::Datagram)),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(Heard::Overrun),
                Err(source) => Err(Error::system("listen to the kernel's routes", source)),
            };
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
