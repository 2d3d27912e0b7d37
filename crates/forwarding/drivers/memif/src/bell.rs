//! Descriptors that wake a sleeper: our own, and those that came from a peer.
//!
//! A peer shares the descriptors of its rings with us and may do to them what it likes. Reading says
//! so explicitly that it must not wait; writing relies on the flag O_NONBLOCK, which is set when the
//! descriptor is taken over.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{ReadWriteFlags, preadv2, write};

/// A fresh event descriptor.
pub(crate) fn event() -> rustix::io::Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
}

/// Makes it readable; `false` when that failed, which nobody needs to act on.
pub(crate) fn ring(event: BorrowedFd<'_>) -> bool {
    write(event, &1u64.to_ne_bytes()).is_ok()
}

/// Makes it unreadable.
pub(crate) fn quiet(event: BorrowedFd<'_>) {
    let mut count = [0; 8];
    let _ = preadv2(
        event,
        &mut [IoSliceMut::new(&mut count)],
        u64::MAX,
        ReadWriteFlags::NOWAIT,
    );
}

/// Whether a descriptor from a peer is what it should be; it is made non-blocking.
///
/// Anything else (a pipe, a socket, a file) could make a worker wait, or write where it should not.
pub(crate) fn take_over(descriptor: &OwnedFd) -> bool {
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let is_event = rustix::fs::readlink(path, Vec::new())
        .is_ok_and(|target| target.as_bytes() == b"anon_inode:[eventfd]");
    is_event
        && fcntl_getfl(descriptor)
            .is_ok_and(|flags| fcntl_setfl(descriptor, flags | OFlags::NONBLOCK).is_ok())
}

/// What one receiving half sleeps on: the same descriptor whichever peer there is.
#[derive(Debug)]
pub(crate) struct Pillow {
    /// Readable when one of the other two is.
    epoll: OwnedFd,
    own: OwnedFd,
}

impl Pillow {
    pub(crate) fn new() -> rustix::io::Result<Pillow> {
        let pillow = Pillow {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            own: event()?,
        };
        pillow.add(pillow.own.as_fd())?;
        Ok(pillow)
    }

    /// Wakes for this too.
    pub(crate) fn add(&self, event: BorrowedFd<'_>) -> rustix::io::Result<()> {
        epoll::add(
            &self.epoll,
            event,
            epoll::EventData::new_u64(0),
            epoll::EventFlags::IN,
        )
    }

    /// No longer.
    pub(crate) fn remove(&self, event: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.epoll, event);
    }

    /// Wakes the sleeper, or the next one to sleep.
    pub(crate) fn ring(&self) {
        ring(self.own.as_fd());
    }

    /// Our own part is quiet again.
    pub(crate) fn quiet(&self) {
        quiet(self.own.as_fd());
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn readable(descriptor: BorrowedFd<'_>) -> bool {
        poll(
            &mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)],
            Some(&Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            }),
        )
        .unwrap()
            > 0
    }

    #[test]
    fn a_pillow_wakes_for_its_own_and_for_others() {
        let (pillow, other) = (Pillow::new().unwrap(), event().unwrap());
        assert!(!readable(pillow.descriptor()));
        pillow.ring();
        assert!(readable(pillow.descriptor()));
        pillow.quiet();
        pillow.add(other.as_fd()).unwrap();
        assert!(
            !readable(pillow.descriptor()) && ring(other.as_fd()) && readable(pillow.descriptor())
        );
        pillow.remove(other.as_fd());
        assert!(!readable(pillow.descriptor()));
        quiet(other.as_fd());
        assert!(!readable(other.as_fd()));
    }

    #[test]
    fn only_event_descriptors_are_taken_over_and_never_waited_for() {
        let blocking = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        assert!(take_over(&blocking));
        quiet(blocking.as_fd());
        write(&blocking, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        assert!(!ring(blocking.as_fd()));
        let (read, write) = rustix::pipe::pipe().unwrap();
        assert!(!take_over(&read) && !take_over(&write));
    }
}
