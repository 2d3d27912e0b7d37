//! Attaching a descriptor of `/dev/net/tun` to a device.

#![expect(
    unsafe_code,
    reason = "an ioctl with a struct; its block says why it is sound"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Lets the device outlive its descriptors.
pub(crate) fn persist(tun: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_ulong = 1;
    // SAFETY: TUNSETPERSIST takes a number and no pointer.
    let answer = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETPERSIST, on) };
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Makes the TAP `name`, or attaches to it, as one more queue when `several`.
///
/// IFF_NO_PI: frames come without the kernel's four bytes in front
/// (`Documentation/networking/tuntap.rst` of Linux). A name of 16 bytes or more is refused.
pub(crate) fn attach(tun: BorrowedFd<'_>, name: &str, several: bool) -> io::Result<()> {
    let mut flags = libc::IFF_TAP | libc::IFF_NO_PI;
    if several {
        flags |= libc::IFF_MULTI_QUEUE;
    }
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_flags: flags as libc::c_short,
        },
    };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which `request` is.
    let answer = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
