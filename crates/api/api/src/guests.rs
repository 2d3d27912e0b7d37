//! Connections that have not shown yet who they are, and how they make room for others.
//!
//! A listener has a bounded number of places. A client that connects and sends half a request, or
//! nothing, holds one until its time is over. When all places are taken, the oldest connection that
//! no request has come over yet is closed, so that a crowd of silent clients cannot keep a client
//! with a token out. It has had [`GRACE`] to send a request by then. Runs on the server's thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

/// How long a new connection keeps its place in any case.
const GRACE: Duration = Duration::from_millis(100);

/// One connection.
#[derive(Debug)]
pub(crate) struct Guest {
    proven: AtomicBool,
    leave: Notify,
    since: Instant,
}

impl Guest {
    /// A request came whose sender may ask: the connection keeps its place.
    pub(crate) fn prove(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }

    /// Waits until the connection must make room.
    pub(crate) async fn must_leave(&self) {
        self.leave.notified().await;
    }
}

/// The places of one listener.
#[derive(Debug)]
pub(crate) struct Guests {
    places: Arc<Semaphore>,
    /// The oldest first; those that have ended are found dead.
    waiting: VecDeque<Weak<Guest>>,
}

impl Guests {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places.max(1))),
            waiting: VecDeque::new(),
        }
    }

    /// A place for a connection that was accepted, as soon as there is one.
    pub(crate) async fn seat(&mut self) -> Option<(Arc<Guest>, OwnedSemaphorePermit)> {
        let place = loop {
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                break place;
            }
            let oldest = self.oldest();
            let free = Arc::clone(&self.places).acquire_owned();
            let Some(oldest) = oldest else {
                break free.await.ok()?;
            };
            let may_stay_until = oldest.since + GRACE;
            if Instant::now() >= may_stay_until {
                self.waiting.pop_front();
                oldest.leave.notify_one();
                drop(oldest);
                break free.await.ok()?;
            }
            drop(oldest);
            tokio::select! {
                place = free => break place.ok()?,
                () = sleep_until(may_stay_until) => {}
            }
        };
        let guest = Arc::new(Guest {
            proven: AtomicBool::new(false),
            leave: Notify::new(),
            since: Instant::now(),
        });
        self.waiting.push_back(Arc::downgrade(&guest));
        Some((guest, place))
    }

    /// The oldest connection that has not shown who it is.
    fn oldest(&mut self) -> Option<Arc<Guest>> {
        loop {
            let first = self.waiting.front()?.upgrade();
            match first {
                Some(guest) if !guest.proven.load(Ordering::Relaxed) => return Some(guest),
                _ => {
                    self.waiting.pop_front();
                }
            }
        }
    }
}
