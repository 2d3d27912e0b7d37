//! What a port's thread and its queues share.
//!
//! A [`Link`] is everything that exists while there is a peer: mapped regions, rings, event
//! descriptors. The port's thread makes it and puts it on the [`Shared`] seat, raising the generation;
//! a queue notices that with one load a call and changes over by itself. It parts the same way. So a
//! worker never waits, and no mapping goes while a worker may still look at it: the last holder lets
//! go of it.
//!
//! A queue that finds nonsense in a ring notes the reason in the link, wakes the port's thread, and
//! looks at that ring no more.
//!
//! What a slave's queue had lent to the peer when it let go is kept by the link and goes back to the
//! pool when the link goes: after the peer has closed its end, or has had its time to.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use weir_buf::Pool;
use weir_ring::Padded;
use weir_ring::counter::Counter;

use crate::bell::{self, Pillow};
use crate::channel::Channel;
use crate::message::Init;
use crate::reason::{Reason, Reasons};
use crate::setup::MemifConfig;
use crate::sys::{Mapping, Ring};

/// A lock that survives a panic of another thread: what it guards is whole at any moment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the receiving half counts.
#[derive(Debug, Default)]
pub(crate) struct RxCounts {
    pub(crate) packets: Counter,
    pub(crate) no_buffer: Counter,
    pub(crate) runts: Counter,
}

/// What the sending half counts.
#[derive(Debug, Default)]
pub(crate) struct TxCounts {
    pub(crate) packets: Counter,
    pub(crate) ring_full: Counter,
    pub(crate) no_peer: Counter,
    pub(crate) refused: Counter,
    pub(crate) copied: Counter,
    pub(crate) interrupts: Counter,
}

/// The counters of one queue; they outlive every link.
#[derive(Debug, Default)]
pub(crate) struct QueueCounts {
    pub(crate) rx: Padded<RxCounts>,
    pub(crate) tx: Padded<TxCounts>,
}

/// A ring and the descriptor that wakes its consumer.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) ring: Ring,
    pub(crate) event: OwnedFd,
}

/// What there is while there is a peer.
#[derive(Debug)]
pub(crate) struct Link {
    /// As master: the peer's regions. As slave: the region with the rings.
    pub(crate) regions: Vec<Arc<Mapping>>,
    /// What we receive on, by queue.
    pub(crate) rx: Vec<Lane>,
    /// What we send on, by queue.
    pub(crate) tx: Vec<Lane>,
    pool: Pool,
    leftovers: Mutex<Vec<u32>>,
    /// Number of the reason plus one; the first one stays.
    failure: AtomicU8,
}

impl Link {
    pub(crate) fn new(
        regions: Vec<Arc<Mapping>>,
        rx: Vec<Lane>,
        tx: Vec<Lane>,
        pool: &Pool,
    ) -> Link {
        Link {
            regions,
            rx,
            tx,
            pool: pool.clone(),
            leftovers: Mutex::default(),
            failure: AtomicU8::new(0),
        }
    }

    /// What a queue found, if it did.
    pub(crate) fn failure(&self) -> Option<Reason> {
        Reason::from_number(self.failure.load(Ordering::Acquire).checked_sub(1)?)
    }

    /// Takes over what a queue had lent to the peer: offsets in the pool's region.
    pub(crate) fn leave(&self, lent: impl Iterator<Item = u32>) {
        lock(&self.leftovers).extend(lent);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let leftovers = self
            .leftovers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        leftovers
            .drain(..)
            .for_each(|offset| drop(self.pool.redeem(offset as usize, 0)));
    }
}

/// What is known of the peer, for people.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) peer: String,
    pub(crate) interface: String,
    pub(crate) parted: Option<String>,
}

/// A slave that wants this port, from the listener.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) channel: Channel,
    pub(crate) init: Init,
}

/// What all parts of a port hold.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: MemifConfig,
    pub(crate) pool: Pool,
    /// Chunks that each receiving queue of a slave gives to its peer.
    pub(crate) level: u16,
    pub(crate) counts: Vec<QueueCounts>,
    pub(crate) pillows: Vec<Pillow>,
    pub(crate) reasons: Reasons,
    pub(crate) connects: AtomicU64,
    pub(crate) known: Mutex<Known>,
    pub(crate) stop: AtomicBool,
    pub(crate) incoming: Mutex<Option<Incoming>>,
    /// Whether a slave has this port, or is about to.
    pub(crate) busy: AtomicBool,
    /// Wakes the port's thread.
    event: OwnedFd,
    generation: AtomicU64,
    seat: Mutex<Option<Arc<Link>>>,
}

impl Shared {
    pub(crate) fn new(config: &MemifConfig, pool: &Pool, level: u16) -> rustix::io::Result<Shared> {
        Ok(Shared {
            config: config.clone(),
            pool: pool.clone(),
            level,
            counts: (0..config.queues).map(|_| QueueCounts::default()).collect(),
            pillows: (0..config.queues)
                .map(|_| Pillow::new())
                .collect::<Result<_, _>>()?,
            reasons: Reasons::default(),
            connects: AtomicU64::new(0),
            known: Mutex::default(),
            stop: AtomicBool::new(false),
            incoming: Mutex::default(),
            busy: AtomicBool::new(false),
            event: bell::event()?,
            generation: AtomicU64::new(0),
            seat: Mutex::default(),
        })
    }

    /// Wakes the port's thread.
    pub(crate) fn ring(&self) {
        bell::ring(self.event.as_fd());
    }

    pub(crate) fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Changes the link: the queues take it up at their next call, sleepers are woken for it.
    pub(crate) fn offer(&self, link: Option<Arc<Link>>) {
        let before = std::mem::replace(&mut *lock(&self.seat), link);
        self.generation.fetch_add(1, Ordering::Release);
        self.pillows.iter().for_each(Pillow::ring);
        drop(before);
    }

    /// Whether there is a peer.
    pub(crate) fn is_up(&self) -> bool {
        lock(&self.seat).is_some()
    }

    /// Which link is the current one; a change of it is all that a queue looks for.
    #[inline(always)]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The current link. `None` in the outer sense when the port's thread is just changing it: ask
    /// again at the next call.
    pub(crate) fn link(&self) -> Option<Option<Arc<Link>>> {
        match self.seat.try_lock() {
            Ok(seat) => Some(seat.clone()),
            Err(TryLockError::Poisoned(seat)) => Some(seat.into_inner().clone()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A queue found nonsense.
    #[cold]
    pub(crate) fn fail(&self, link: &Link, reason: Reason) {
        let _ = link.failure.compare_exchange(
            0,
            reason as u8 + 1,
            Ordering::Release,
            Ordering::Relaxed,
        );
        self.ring();
    }
}
