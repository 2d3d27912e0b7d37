//! Options of sockets for which std has no call.

use std::io;
use std::os::fd::AsFd;

use crate::sys;

/// Lets a socket send and receive through one device only: a port, or a VRF's device.
///
/// # Errors
/// When there is no such device in the socket's namespace, or the kernel refuses.
pub fn bind_to_device(socket: &impl AsFd, device: &str) -> io::Result<()> {
    sys::bind_to_device(socket.as_fd(), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_refused() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(bind_to_device(&socket, "weir-none").is_err());
        assert!(bind_to_device(&socket, "a-name-longer-than-any-device-has").is_err());
    }
}
