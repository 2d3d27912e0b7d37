//! The bounded queue from the thread of a feed to the control side.
//!
//! The thread waits when the queue is full, so that the socket behind it fills instead of this process's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use crate::feed::FeedMessage;

/// Messages that wait, at most.
const QUEUE: usize = 64;
/// Pause of the thread while the queue is full.
const PAUSE: Duration = Duration::from_micros(200);

/// The thread has to end.
#[derive(Debug)]
pub(crate) struct Stopped;

/// The thread's end.
pub(crate) struct Writer {
    sender: SyncSender<FeedMessage>,
    waiting: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    wake: Box<dyn Fn() + Send>,
}

/// The control side's end.
#[derive(Debug)]
pub(crate) struct Reader {
    messages: Receiver<FeedMessage>,
    waiting: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

/// A queue; `wake` is called when something waits.
pub(crate) fn queue(wake: impl Fn() + Send + 'static) -> (Writer, Reader) {
    let (sender, messages) = sync_channel(QUEUE);
    let (waiting, stop) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let writer = Writer {
        sender,
        waiting: waiting.clone(),
        stop: stop.clone(),
        wake: Box::new(wake),
    };
    let reader = Reader {
        messages,
        waiting,
        stop,
    };
    (writer, reader)
}

impl Writer {
    /// Whether the thread has to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Hands a message over, and waits for room.
    pub(crate) fn send(&self, message: FeedMessage) -> Result<(), Stopped> {
        let mut message = message;
        self.waiting.fetch_add(1, Ordering::AcqRel);
        loop {
            match self.sender.try_send(message) {
                Ok(()) => {
                    (self.wake)();
                    return Ok(());
                }
                Err(TrySendError::Full(back)) if !self.is_stopped() => {
                    message = back;
                    (self.wake)();
                    std::thread::sleep(PAUSE);
                }
                Err(_) => return Err(Stopped),
            }
        }
    }
}

impl Reader {
    /// The next message, if one waits.
    pub(crate) fn next(&self) -> Option<FeedMessage> {
        let message = self.messages.try_recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        Some(message)
    }

    /// The number of messages that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Tells the thread to end, also while it waits for room.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        while self.next().is_some() {}
    }
}
