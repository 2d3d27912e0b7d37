//! Waking a thread that sleeps in poll(2), and only then.
//!
//! The sleeper says that it is about to sleep, looks once more for work, and polls. The one with news
//! writes to the descriptor only if the sleeper said so: news for a thread that is awake cost one
//! load.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

/// One sleeper's bell.
#[derive(Debug)]
pub(crate) struct Waker {
    sleeping: AtomicBool,
    bell: OwnedFd,
}

impl Waker {
    /// A bell that nobody sleeps at.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub(crate) fn new() -> std::io::Result<Waker> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Waker {
            sleeping: AtomicBool::new(false),
            bell,
        })
    }

    /// Says that the caller is about to sleep; it must look for work once more after this.
    pub(crate) fn will_sleep(&self) {
        self.sleeping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Says that the caller is awake again, and quiets the bell.
    pub(crate) fn is_awake(&self) {
        if !self.sleeping.swap(false, Ordering::SeqCst) {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.bell, &mut count);
        }
    }

    /// Rings if the other side sleeps. Call it after the news are where it looks.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::SeqCst) {
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    /// What to poll.
    #[must_use]
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
