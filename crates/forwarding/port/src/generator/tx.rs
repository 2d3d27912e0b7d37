//! The side of the generator that swallows packets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use weir_buf::{Pkt, PktCache, Vector};

use super::Counts;
use crate::TxQueue;

/// The last frames that were sent to a generator, oldest first.
#[derive(Clone, Debug)]
pub struct Kept {
    most: usize,
    frames: Arc<Mutex<VecDeque<Vec<u8>>>>,
}

impl Kept {
    pub(super) fn new(most: usize) -> Kept {
        Kept {
            most,
            frames: Arc::default(),
        }
    }

    /// Takes the frames out, whole even where the packet was chained.
    #[must_use]
    pub fn take(&self) -> Vec<Vec<u8>> {
        self.frames
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
            .collect()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.frames
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    fn keep(&self, packets: &[Pkt]) {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        for packet in packets {
            frames.push_back(packet.segments().flatten().copied().collect());
            if frames.len() > self.most {
                frames.pop_front();
            }
        }
    }
}

/// The sending side of one queue.
pub(super) struct GeneratorTx {
    counts: Arc<Counts>,
    kept: Option<Kept>,
}

impl GeneratorTx {
    pub(super) fn new(counts: Arc<Counts>, kept: Option<Kept>) -> GeneratorTx {
        GeneratorTx { counts, kept }
    }
}

impl TxQueue for GeneratorTx {
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize {
        let sent = from.len();
        if sent == 0 {
            return 0;
        }
        if let Some(kept) = &self.kept {
            kept.keep(from);
        }
        self.counts.tx.swallowed.add(sent as u64);
        self.counts
            .tx
            .bytes
            .add(from.iter().map(|packet| packet.total_len() as u64).sum());
        cache.free_all(from.drain());
        sent
    }
}
