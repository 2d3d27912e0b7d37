//! What sockets can do that std has no call for.

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

/// Sends octets through a connected UDP socket as datagrams of `length` octets each, but for the last, which may be
/// shorter, in one call (`UDP_SEGMENT`): at most 64 datagrams and 65,507 octets.
///
/// # Errors
/// As `send` has them, and `EIO`, `EINVAL`, `EMSGSIZE` or `EOPNOTSUPP` where the way has no room for it.
pub fn send_segments(socket: &impl AsFd, octets: &[u8], length: usize) -> io::Result<()> {
    let length = u16::try_from(length)
        .ok()
        .filter(|length| *length > 0)
        .ok_or(io::ErrorKind::InvalidInput)?;
    let sent = sys::send_segments(socket.as_fd(), octets, length)?;
    if sent == octets.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

/// Octets that were written to a TCP socket and that the other side has not acknowledged; also when the connection is
/// over.
///
/// # Errors
/// What the kernel says to `SIOCOUTQ` (tcp(7)).
pub fn unacknowledged(socket: &impl AsFd) -> io::Result<usize> {
    sys::unacknowledged(socket.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_arrive_as_datagrams() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let octets: Vec<u8> = (0..250).collect();
        send_segments(&sender, &octets, 100).unwrap();
        let mut buffer = [0; 300];
        let lengths: Vec<usize> = (0..3)
            .map(|_| receiver.recv(&mut buffer).unwrap())
            .collect();
        assert_eq!((lengths, buffer[0]), (vec![100, 100, 50], 200));
        assert!(send_segments(&sender, &octets, 0).is_err());
        assert!(send_segments(&sender, &octets, 65_536).is_err());
        assert!(
            send_segments(&sender, &octets, 1).is_err(),
            "more datagrams than the kernel cuts"
        );
    }

    #[test]
    fn a_device_that_is_not_there_is_refused() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(bind_to_device(&socket, "weir-none").is_err());
        assert!(bind_to_device(&socket, "a-name-longer-than-any-device-has").is_err());
    }

    #[test]
    fn what_a_peer_does_not_acknowledge_is_reported_after_the_end_too() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut theirs, _) = listener.accept().unwrap();
        ours.write_all(&[7; 1000]).unwrap();
        theirs.read_exact(&mut [0; 1000]).unwrap();
        while unacknowledged(&ours).unwrap() > 0 {
            std::thread::yield_now();
        }
        ours.set_nonblocking(true).unwrap();
        let mut written = 1000;
        while let Ok(count) = ours.write(&[7; 65_536]) {
            written += count;
        }
        // It goes away with much in its buffer, which resets the connection.
        drop(theirs);
        while !ours
            .write(&[7])
            .is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
        {
            std::thread::yield_now();
        }
        let left = unacknowledged(&ours).unwrap();
        assert!(left > 0 && left < written, "{left} of {written}");
    }
}
