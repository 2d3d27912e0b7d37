//! The port: what the control thread asks of a TAP, and what its two sides share.
//!
//! A TAP that somebody deletes is noticed by a failing read or write, or by [`Port::link`]; the queues
//! then report themselves dead. Opening the port again makes the device again.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use weir_netlink::ethtool::Ethtool;
use weir_netlink::route::{Link, Route};
use weir_port::{
    Capabilities, HardwareCounter, LONGEST_FRAME, LinkState, OpenError, Port, QueuePair, Source,
};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_wire::MacAddr;

use crate::rx::Receiver;
use crate::setup::{self, TapConfig};
use crate::tx::Sender;

/// What the receiving half counts.
#[derive(Debug, Default)]
pub(crate) struct RxCounts {
    pub(crate) packets: Counter,
    pub(crate) no_buffer: Counter,
    pub(crate) too_long: Counter,
}

/// What the sending half counts.
#[derive(Debug, Default)]
pub(crate) struct TxCounts {
    pub(crate) packets: Counter,
    pub(crate) busy: Counter,
    pub(crate) refused: Counter,
}

/// One queue: both halves and the port hold it.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) descriptor: OwnedFd,
    pub(crate) rx: Padded<RxCounts>,
    pub(crate) tx: Padded<TxCounts>,
    dead: AtomicBool,
}

impl Queue {
    fn new(descriptor: OwnedFd) -> Arc<Queue> {
        Arc::new(Queue {
            descriptor,
            rx: Padded::default(),
            tx: Padded::default(),
            dead: AtomicBool::new(false),
        })
    }

    /// Whether the device is gone.
    #[inline]
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// EBADFD says that the descriptor has lost its device; of other errors nothing is known.
    pub(crate) fn failed(&self, errno: Errno) {
        if errno == Errno::BADFD || errno == Errno::NODEV {
            self.dead.store(true, Ordering::Relaxed);
        }
    }
}

/// A network device of Linux that ends in the router.
#[derive(Debug)]
pub struct TapPort {
    name: String,
    index: u32,
    capabilities: Capabilities,
    queues: Vec<Arc<Queue>>,
    taken: bool,
    route: Mutex<Route>,
    ethtool: Ethtool,
    gone: bool,
}

impl TapPort {
    /// Makes the TAP in the network namespace of the calling thread and sets it up.
    ///
    /// # Errors
    /// One sentence: what is missing and what to do.
    pub fn open(config: &TapConfig) -> Result<TapPort, OpenError> {
        let failed = |error: weir_netlink::Error| OpenError(format!("{}: {error}", config.name));
        let mut route = Route::open().map_err(failed)?;
        let ethtool = Ethtool::open().map_err(failed)?;
        let (descriptors, link) = setup::open(config, &mut route)?;
        let queues = descriptors.len();
        let capabilities = Capabilities {
            driver: "tap",
            mode: if queues > 1 {
                "multi-queue".to_owned()
            } else {
                "one queue".to_owned()
            },
            rx_queues: queues,
            tx_queues: queues,
            max_frame: (link.mtu as usize + 18).min(LONGEST_FRAME),
        };
        let queues = descriptors.into_iter().map(Queue::new).collect();
        let name = config.name.clone();
        Ok(TapPort {
            name,
            index: link.index,
            capabilities,
            queues,
            taken: false,
            route: Mutex::new(route),
            ethtool,
            gone: false,
        })
    }

    fn ask(&self) -> weir_netlink::Result<Link> {
        self.route
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .link_by_index(self.index)
    }

    fn queue_counters(number: usize, queue: &Queue) -> Vec<HardwareCounter> {
        let (rx, tx) = (&queue.rx, &queue.tx);
        let list = [
            ("rx_packets", rx.packets.get()),
            ("rx_no_buffer", rx.no_buffer.get()),
            ("rx_too_long", rx.too_long.get()),
            ("tx_packets", tx.packets.get()),
            ("tx_busy", tx.busy.get()),
            ("tx_refused", tx.refused.get()),
        ];
        list.map(|(name, value)| HardwareCounter {
            name: format!("{name}_q{number}"),
            value,
            source: Source::Driver,
        })
        .into()
    }
}

impl Port for TapPort {
    fn device(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    /// `None`: the device's address is that of the other end.
    fn mac(&self) -> Option<MacAddr> {
        None
    }

    fn take_queues(&mut self) -> Vec<QueuePair> {
        if std::mem::replace(&mut self.taken, true) {
            return Vec::new();
        }
        let pair = |queue: &Arc<Queue>| QueuePair {
            rx: Some(Box::new(Receiver::new(
                queue.clone(),
                self.capabilities.max_frame,
            ))),
            tx: Some(Box::new(Sender(queue.clone()))),
        };
        self.queues.iter().map(pair).collect()
    }

    fn link(&mut self) -> LinkState {
        let answer = if self.queues.iter().any(|queue| queue.is_dead()) {
            None
        } else {
            Some(self.ask())
        };
        match answer {
            Some(Ok(link)) => {
                let speed = self
                    .ethtool
                    .link_settings(&link.name)
                    .ok()
                    .and_then(|settings| settings.megabits);
                LinkState {
                    up: link.running,
                    speed: u64::from(speed.unwrap_or(0)) * 1_000_000,
                }
            }
            // Another failure says nothing about the device, which is as it was: there.
            Some(Err(error)) if !error.is_not_found() => LinkState {
                up: !self.gone,
                speed: 0,
            },
            _ => {
                self.gone = true;
                self.queues
                    .iter()
                    .for_each(|queue| queue.failed(Errno::NODEV));
                LinkState {
                    up: false,
                    speed: 0,
                }
            }
        }
    }

    /// The kernel's counters look from Linux: what it sent is what was received here.
    fn counters(&self) -> Vec<HardwareCounter> {
        let mut list: Vec<_> = self
            .queues
            .iter()
            .enumerate()
            .flat_map(|(number, queue)| TapPort::queue_counters(number, queue))
            .collect();
        if let Ok(Link { statistics, .. }) = self.ask() {
            let kernel = [
                ("rx_packets", statistics.rx_packets),
                ("tx_packets", statistics.tx_packets),
                ("rx_bytes", statistics.rx_bytes),
                ("tx_bytes", statistics.tx_bytes),
                ("rx_errors", statistics.rx_errors),
                ("tx_errors", statistics.tx_errors),
                ("rx_dropped", statistics.rx_dropped),
                ("tx_dropped", statistics.tx_dropped),
            ];
            list.extend(kernel.map(|(name, value)| HardwareCounter {
                name: name.to_owned(),
                value,
                source: Source::Kernel,
            }));
        }
        list
    }

    fn should_reopen(&mut self) -> bool {
        self.gone
    }
}
