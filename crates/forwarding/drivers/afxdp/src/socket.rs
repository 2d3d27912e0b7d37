//! One AF_XDP socket: what its receiving half, its sending half and the port share.
//!
//! The halves live on workers, perhaps on different ones; each owns two of the four rings. The
//! socket is closed when the last of the three lets go of it, and only then are the chunks taken
//! back which the kernel still held: as long as the socket lives the kernel may write to them.
//!
//! Closing waits for the kernel (some milliseconds). The port therefore keeps its share until the
//! halves are gone, so that it is the control thread which waits.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weir_buf::{DATA_ROOM, Pool};
use weir_port::LONGEST_FRAME;
use weir_ring::Padded;
use weir_ring::counter::Counter;

use crate::lent::LentSet;
use crate::sys;

/// What the receiving half counts.
#[derive(Debug, Default)]
pub(crate) struct RxCounts {
    pub(crate) packets: Counter,
    pub(crate) no_buffer: Counter,
    pub(crate) bad_descriptors: Counter,
    pub(crate) too_long: Counter,
    pub(crate) checksums_completed: Counter,
    pub(crate) wakeups: Counter,
}

/// What the sending half counts.
#[derive(Debug, Default)]
pub(crate) struct TxCounts {
    pub(crate) packets: Counter,
    pub(crate) ring_full: Counter,
    pub(crate) device_busy: Counter,
    pub(crate) refused: Counter,
    pub(crate) linearised: Counter,
    pub(crate) bad_completions: Counter,
    pub(crate) wakeups: Counter,
}

/// The counters of one queue; they outlive the socket.
#[derive(Debug, Default)]
pub(crate) struct QueueCounts {
    pub(crate) rx: Padded<RxCounts>,
    pub(crate) tx: Padded<TxCounts>,
    /// The kernel's, as they were when the socket was closed.
    last: [AtomicU64; 6],
}

impl QueueCounts {
    /// Names and values of Weir's own counters.
    pub(crate) fn own(&self) -> [(&'static str, u64); 13] {
        let (rx, tx) = (&self.rx, &self.tx);
        [
            ("rx_packets", rx.packets.get()),
            ("rx_no_buffer", rx.no_buffer.get()),
            ("rx_bad_descriptors", rx.bad_descriptors.get()),
            ("rx_too_long", rx.too_long.get()),
            ("rx_checksums_completed", rx.checksums_completed.get()),
            ("rx_wakeups", rx.wakeups.get()),
            ("tx_packets", tx.packets.get()),
            ("tx_ring_full", tx.ring_full.get()),
            ("tx_device_busy", tx.device_busy.get()),
            ("tx_refused", tx.refused.get()),
            ("tx_linearised", tx.linearised.get()),
            ("tx_bad_completions", tx.bad_completions.get()),
            ("tx_wakeups", tx.wakeups.get()),
        ]
    }

    /// The kernel's counters as they were when the socket was closed.
    pub(crate) fn last(&self) -> [u64; 6] {
        std::array::from_fn(|n| self.last[n].load(Ordering::Relaxed))
    }
}

/// The socket.
#[derive(Debug)]
pub(crate) struct Socket {
    /// `None` only while it is being dropped.
    descriptor: Option<OwnedFd>,
    pool: Pool,
    counts: Arc<QueueCounts>,
    dead: AtomicBool,
    /// The longest frame that the device takes; its MTU may change while we run.
    longest: AtomicUsize,
    /// Whether a frame may span several descriptors; known once the socket is bound.
    pieces: AtomicBool,
    leftovers: Mutex<Vec<LentSet>>,
}

impl Socket {
    pub(crate) fn new(descriptor: OwnedFd, pool: &Pool) -> Socket {
        Socket {
            descriptor: Some(descriptor),
            pool: pool.clone(),
            counts: Arc::default(),
            dead: AtomicBool::new(false),
            longest: AtomicUsize::new(0),
            pieces: AtomicBool::new(false),
            leftovers: Mutex::default(),
        }
    }

    /// The descriptor; `None` never outside of `drop`.
    #[inline(always)]
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn counts(&self) -> &Arc<QueueCounts> {
        &self.counts
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Whether the device is gone.
    #[inline(always)]
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// The longest frame that may be sent.
    #[inline(always)]
    pub(crate) fn longest(&self) -> usize {
        self.longest.load(Ordering::Relaxed)
    }

    /// Whether a frame may span several descriptors.
    pub(crate) fn takes_pieces(&self) -> bool {
        self.pieces.load(Ordering::Relaxed)
    }

    pub(crate) fn allow_pieces(&self) {
        self.pieces.store(true, Ordering::Relaxed);
    }

    /// Draws from the device's MTU how long a frame may be: with an Ethernet header and one VLAN tag, and within what
    /// descriptors can say.
    pub(crate) fn fit(&self, mtu: u32) -> usize {
        let most = if self.takes_pieces() {
            LONGEST_FRAME
        } else {
            DATA_ROOM
        };
        let longest = (mtu as usize).saturating_add(14 + 4).min(most);
        self.longest.store(longest, Ordering::Relaxed);
        longest
    }

    pub(crate) fn declare_dead(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    /// Draws the conclusion from what a system call said: a socket whose device was unregistered is
    /// unbound and answers ENXIO. ENETDOWN is a device set down; it may come up again.
    pub(crate) fn note(&self, error: &io::Error) {
        if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) {
            self.declare_dead();
        }
    }

    /// The kernel's counters of the socket.
    pub(crate) fn statistics(&self) -> [u64; 6] {
        self.descriptor()
            .and_then(sys::statistics)
            .unwrap_or_default()
    }

    /// Takes over what a half still had lent when it was dropped.
    pub(crate) fn leave(&self, lent: LentSet) {
        self.leftovers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(lent);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        for (place, value) in self.counts.last.iter().zip(self.statistics()) {
            place.store(value, Ordering::Relaxed);
        }
        // The halves unmapped their rings, so this is the end of the socket in the kernel: `close`
        // returns when nobody there writes to the chunks any more. A frame still under way holds a
        // copy; with some drivers (IFF_TX_SKB_NO_LINEAR: virtio_net) it holds the pages, and what
        // leaves late may then show newer bytes.
        drop(self.descriptor.take());
        let leftovers = self
            .leftovers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for lent in leftovers {
            lent.give_back(&self.pool);
        }
    }
}
