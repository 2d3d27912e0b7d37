//! What a driver offers: a port, its receive queues and its transmit queues.
//!
//! A queue belongs to one worker and is called from that worker's thread only. None of the calls
//! marked *hot* may allocate, lock, block or sleep; a system call is allowed once per call of
//! `flush` or `recv`, where the kernel must be woken.

use std::os::fd::BorrowedFd;

use weir_buf::{PktCache, Vector};
use weir_wire::MacAddr;

/// The longest frame that drivers take in, without FCS: the largest MTU that an interface may have, an Ethernet header
/// and two VLAN tags. It may span several chunks.
pub const LONGEST_FRAME: usize = 9216 + 14 + 2 * 4;

/// Where a hardware counter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Counted by Weir's own driver code.
    Driver,
    /// The kernel's statistics of the socket (AF_XDP's `XDP_STATISTICS`).
    Xdp,
    /// The kernel's statistics of the network device.
    Kernel,
    /// The device driver's own (ethtool).
    Ethtool,
}

/// One counter of a port, as `show hardware` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareCounter {
    /// The counter's name at its source; queues are distinguished by a suffix.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// Who counts.
    pub source: Source,
}

/// What a port can do and how it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The driver's name as the configuration spells it.
    pub driver: &'static str,
    /// How it runs, for people: "native, copy", "generic", "multi-queue".
    pub mode: String,
    /// Receive queues.
    pub rx_queues: usize,
    /// Transmit queues; may be fewer than there are workers.
    pub tx_queues: usize,
    /// The longest frame without FCS that one call can carry.
    pub max_frame: usize,
}

/// Whether a port can carry packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// The device exists and has a carrier.
    pub up: bool,
    /// Bits per second; 0 when nobody knows.
    pub speed: u64,
}

/// Why a port could not be opened: one sentence with what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

/// The two directions of one queue number. A port may have fewer transmit than receive queues.
pub struct QueuePair {
    /// Receives; `None` where the port only sends.
    pub rx: Option<Box<dyn RxQueue>>,
    /// Sends; `None` where the port only receives or this number has no transmit queue.
    pub tx: Option<Box<dyn TxQueue>>,
}

/// A device with queues. Called from the control thread only.
pub trait Port: Send {
    /// The device's name in the system ("veth0", a file name), for messages.
    fn device(&self) -> &str;

    /// What the port can do.
    fn capabilities(&self) -> Capabilities;

    /// The device's hardware address, when it has one.
    fn mac(&self) -> Option<MacAddr>;

    /// Hands out the queues, numbered from 0. Called once after each (re)open.
    fn take_queues(&mut self) -> Vec<QueuePair>;

    /// The link's state now. Cheap enough to ask every second.
    fn link(&mut self) -> LinkState;

    /// All counters of driver, kernel and device.
    fn counters(&self) -> Vec<HardwareCounter>;

    /// Whether a device that vanished is back, so that the port should be opened again.
    fn should_reopen(&mut self) -> bool {
        false
    }
}

/// Where packets come from. *Hot*, all of it.
pub trait RxQueue: Send {
    /// Appends up to `most` frames to `to`; returns how many. Sets the data and, where it knows
    /// better than "now", the ingress time; the engine sets the interface.
    fn recv(&mut self, to: &mut Vector, cache: &mut PktCache, most: usize) -> usize;

    /// What to poll for input while asleep; `None` when the queue must be asked (files, generator).
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Called before the worker sleeps: tells the kernel to wake us. Not per vector.
    fn before_sleep(&mut self) {}

    /// Whether there will never be another frame (a file that ended, a generator at its limit).
    fn is_exhausted(&self) -> bool {
        false
    }

    /// Whether the device is gone. The engine then closes the queue.
    fn is_dead(&self) -> bool {
        false
    }

    /// Frames that were lost between device and queue, since opening.
    fn missed(&self) -> u64 {
        0
    }
}

/// Where packets go. *Hot*, all of it.
pub trait TxQueue: Send {
    /// Takes frames from the front of `from` as long as they fit, leaves the rest; returns how many
    /// it took. What it took it owns, and frees through `cache` once it has gone out.
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize;

    /// Tells the kernel that there is work; called at the end of a turn, also when nothing was sent
    /// in it, so that finished frames are taken back.
    fn flush(&mut self, _cache: &mut PktCache) {}

    /// Frames taken but not yet gone out.
    fn pending(&self) -> usize {
        0
    }
}
