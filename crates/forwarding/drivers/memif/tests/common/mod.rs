//! What the tests of memif ports have in common: ports, frames, waiting with an end.

use std::time::{Duration, Instant};

use weir_buf::{Hugepages, Pkt, PktCache, Pool, PoolConfig, Vector};
use weir_memif::{MemifConfig, MemifPort};
use weir_port::{Port, QueuePair, RxQueue, TxQueue};

/// Nothing takes longer, also on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) fn pool(chunks: usize) -> Pool {
    Pool::new(PoolConfig {
        chunks,
        hugepages: Hugepages::Off,
    })
    .unwrap()
}

#[track_caller]
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !done() {
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within {LONG:?}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn counter(port: &MemifPort, name: &str) -> u64 {
    port.counters()
        .iter()
        .find(|counter| counter.name == name)
        .unwrap_or_else(|| panic!("no counter {name}"))
        .value
}

/// A port with its queues and the memory they work on.
pub(crate) struct End {
    pub(crate) port: MemifPort,
    pub(crate) rx: Vec<Box<dyn RxQueue>>,
    pub(crate) tx: Vec<Box<dyn TxQueue>>,
    pub(crate) cache: PktCache,
    pub(crate) pool: Pool,
}

impl End {
    pub(crate) fn open(config: &MemifConfig, pool: &Pool) -> End {
        let mut port = MemifPort::open(config, pool).unwrap();
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        for QueuePair {
            rx: receiver,
            tx: sender,
        } in port.take_queues()
        {
            rx.push(receiver.unwrap());
            tx.push(sender.unwrap());
        }
        End {
            port,
            rx,
            tx,
            cache: PktCache::new(pool),
            pool: pool.clone(),
        }
    }

    /// One turn without traffic, so that the queues notice what changed.
    pub(crate) fn idle(&mut self) {
        let mut vector = Vector::with_capacity(256);
        for rx in &mut self.rx {
            rx.recv(&mut vector, &mut self.cache, 256);
        }
        assert_eq!(vector.len(), 0, "frames nobody expected");
        for tx in &mut self.tx {
            tx.flush(&mut self.cache);
        }
    }

    pub(crate) fn packet(&mut self, bytes: &[u8]) -> Pkt {
        let mut packet = self.cache.alloc().unwrap();
        assert!(packet.fill(bytes));
        packet
    }

    /// Sends what fits and frees the rest; returns how many fit.
    pub(crate) fn send(&mut self, queue: usize, packets: impl IntoIterator<Item = Pkt>) -> usize {
        let mut vector = Vector::with_capacity(256);
        vector.extend(packets.into_iter());
        let sent = self.tx[queue].send(&mut vector, &mut self.cache);
        self.cache.free_vector(&mut vector);
        self.tx[queue].flush(&mut self.cache);
        sent
    }

    /// What is there, as bytes.
    pub(crate) fn receive(&mut self, queue: usize) -> Vec<Vec<u8>> {
        let mut vector = Vector::with_capacity(256);
        let got = self.rx[queue].recv(&mut vector, &mut self.cache, 256);
        assert_eq!(got, vector.len());
        // Whatever pieces the other end made, headers are in the first chunk.
        assert!(
            vector
                .iter()
                .all(|packet| packet.len() >= packet.total_len().min(256))
        );
        let bytes = vector
            .iter()
            .map(|packet| packet.segments().flatten().copied().collect())
            .collect();
        self.cache.free_vector(&mut vector);
        bytes
    }

    pub(crate) fn is_up(&mut self) -> bool {
        self.port.link().up
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        counter(&self.port, name)
    }

    /// Ends everything; the pool must then be whole.
    pub(crate) fn close(self) {
        let End {
            port,
            rx,
            tx,
            cache,
            pool,
        } = self;
        drop((rx, tx));
        drop(port);
        drop(cache);
        wait_for("every chunk is home", || pool.usage().free == pool.chunks());
        assert_eq!(pool.usage().lent, 0);
    }
}

/// A frame that tells its number.
pub(crate) fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length)
        .map(|place| (place as u32 ^ number) as u8)
        .collect();
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}
