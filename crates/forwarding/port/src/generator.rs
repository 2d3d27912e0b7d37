//! A port that makes packets up: streams of templates with varying fields, in memory.
//!
//! A [`Stream`] has a template frame, fields that vary from packet to packet, a limit and a rate. The
//! streams of a queue take turns, packet by packet. Pacing asks a clock and never sleeps: a stream
//! that is not due gives nothing. Whatever checksums the template has are kept as right as they were
//! when fields change (`checksums`).
//!
//! What is sent to the port is counted and freed; tests may ask it to keep the last frames
//! ([`GeneratorPort::keeping`]).
//!
//! Receiving allocates nothing but packets. Values of one seed are the same in every run.

mod checksums;
mod rx;
mod stream;
mod tx;

use std::sync::Arc;

use weir_buf::DATA_ROOM;
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_wire::MacAddr;

use crate::{Capabilities, HardwareCounter, LinkState, Port, QueuePair, Source};

pub use stream::{Change, Field, Stream, Udp4};
pub use tx::Kept;

/// What one queue counts.
#[derive(Debug, Default)]
struct Counts {
    rx: Padded<RxCounts>,
    tx: Padded<TxCounts>,
}

#[derive(Debug, Default)]
struct RxCounts {
    made: Counter,
    no_buffer: Counter,
}

#[derive(Debug, Default)]
struct TxCounts {
    swallowed: Counter,
    bytes: Counter,
}

/// The port.
#[derive(Debug)]
pub struct GeneratorPort {
    streams: Vec<Stream>,
    seed: u64,
    counts: Vec<Arc<Counts>>,
    kept: Option<Kept>,
}

impl GeneratorPort {
    /// A port whose streams are divided over `queues` queues: stream `n` on queue `n % queues`.
    #[must_use]
    pub fn new(streams: Vec<Stream>, queues: usize, seed: u64) -> GeneratorPort {
        GeneratorPort {
            streams,
            seed,
            counts: (0..queues.max(1)).map(|_| Arc::default()).collect(),
            kept: None,
        }
    }

    /// Makes the port keep the last `frames` frames that are sent to it. For tests: each call of
    /// `send` then takes a lock and copies.
    #[must_use]
    pub fn keeping(mut self, frames: usize) -> (GeneratorPort, Kept) {
        let kept = Kept::new(frames);
        self.kept = Some(kept.clone());
        (self, kept)
    }
}

impl Port for GeneratorPort {
    fn device(&self) -> &str {
        "generator"
    }

    fn capabilities(&self) -> Capabilities {
        let queues = self.counts.len();
        let count = self.streams.len();
        let mode = if count == 1 {
            "1 stream".to_owned()
        } else {
            format!("{count} streams")
        };
        Capabilities {
            driver: "generator",
            mode,
            rx_queues: queues,
            tx_queues: queues,
            max_frame: DATA_ROOM,
        }
    }

    fn mac(&self) -> Option<MacAddr> {
        None
    }

    fn take_queues(&mut self) -> Vec<QueuePair> {
        let queues = self.counts.len();
        let pair = |(number, counts): (usize, &Arc<Counts>)| {
            let mine = self.streams.iter().skip(number).step_by(queues).cloned();
            let rx = rx::GeneratorRx::new(
                mine.collect(),
                self.seed.wrapping_add(number as u64),
                counts.clone(),
            );
            let tx = tx::GeneratorTx::new(counts.clone(), self.kept.clone());
            QueuePair {
                rx: Some(Box::new(rx)),
                tx: Some(Box::new(tx)),
            }
        };
        self.counts.iter().enumerate().map(pair).collect()
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: 0 }
    }

    fn counters(&self) -> Vec<HardwareCounter> {
        let counter = |name: &str, value| HardwareCounter {
            name: name.to_owned(),
            value,
            source: Source::Driver,
        };
        let sum = |which: fn(&Counts) -> &Counter| {
            self.counts.iter().map(|counts| which(counts).get()).sum()
        };
        vec![
            counter("rx_packets", sum(|counts| &counts.rx.made)),
            counter("rx_no_buffer", sum(|counts| &counts.rx.no_buffer)),
            counter("tx_packets", sum(|counts| &counts.tx.swallowed)),
            counter("tx_bytes", sum(|counts| &counts.tx.bytes)),
        ]
    }
}

#[cfg(test)]
mod tests;
