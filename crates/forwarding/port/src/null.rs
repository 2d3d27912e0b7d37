//! A port that receives nothing and swallows everything: for tests, benchmarks, and an interface
//! whose packets are to vanish.

use weir_buf::{PktCache, Vector};
use weir_wire::MacAddr;

use crate::{Capabilities, HardwareCounter, LinkState, Port, QueuePair, RxQueue, TxQueue};

/// The port.
#[derive(Debug)]
pub struct NullPort {
    queues: usize,
}

impl NullPort {
    /// A port with `queues` queues each way.
    #[must_use]
    pub fn new(queues: usize) -> NullPort {
        NullPort {
            queues: queues.max(1),
        }
    }
}

impl Port for NullPort {
    fn device(&self) -> &str {
        "null"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            driver: "null",
            mode: "swallows".into(),
            rx_queues: self.queues,
            tx_queues: self.queues,
            max_frame: 0xffff,
        }
    }

    fn mac(&self) -> Option<MacAddr> {
        None
    }

    fn take_queues(&mut self) -> Vec<QueuePair> {
        (0..self.queues)
            .map(|_| QueuePair {
                rx: Some(Box::new(NullRx)),
                tx: Some(Box::new(NullTx)),
            })
            .collect()
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: 0 }
    }

    fn counters(&self) -> Vec<HardwareCounter> {
        Vec::new()
    }
}

/// Receives nothing.
#[derive(Debug)]
pub struct NullRx;

impl RxQueue for NullRx {
    fn recv(&mut self, _to: &mut Vector, _cache: &mut PktCache, _most: usize) -> usize {
        0
    }
}

/// Swallows everything, freeing it at once.
#[derive(Debug)]
pub struct NullTx;

impl TxQueue for NullTx {
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize {
        let sent = from.len();
        cache.free_vector(from);
        sent
    }
}
