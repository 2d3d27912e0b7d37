//! Samples that were taken elsewhere: by programs in the kernel.
//!
//! A [`Feed`] takes the part of a worker's sampler: what it is given comes out of a [`SampleSource`], and the agent
//! numbers and exports it as any sample. One thread owns a feed. What became of a packet is known when its sample is
//! given, so nothing waits for it.

use std::sync::Arc;

use weir_graph::PacketOutcome;
use weir_ring::Padded;
use weir_ring::spsc::slots::{self, Writer};
use weir_ring::spsc::{self, Producer};

use super::sample::{MOST_HEADER, Sample, TicketOutcome};
use super::{RING, SampleSource, SamplerCounters};

/// A packet that was sampled, without its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Fed {
    /// The interface of arrival.
    pub interface: u32,
    /// The rate under which it was drawn.
    pub rate: u32,
    /// Packets that could have been sampled on the interface, up to and with this one.
    pub pool: u64,
    /// Bytes of the whole frame, without FCS.
    pub frame: u32,
    /// What became of it.
    pub outcome: PacketOutcome,
}

/// The end into which samples are put.
#[derive(Debug)]
pub struct Feed {
    ring: Writer<Sample>,
    counters: Arc<Padded<SamplerCounters>>,
    /// Nothing is written to it; the source lives as long as both ends do.
    _outcomes: Producer<TicketOutcome>,
}

impl Feed {
    /// A feed and the source that the agent reads.
    #[must_use]
    pub fn new() -> (Feed, SampleSource) {
        let (writer, reader) = slots::ring(RING);
        let (told, outcomes) = spsc::ring(2);
        let counters = Arc::new(Padded::<SamplerCounters>::default());
        (
            Feed {
                ring: writer,
                counters: counters.clone(),
                _outcomes: told,
            },
            SampleSource {
                ring: reader,
                outcomes,
                counters,
            },
        )
    }

    /// Puts a sample in, with the first bytes of its frame. `false`: the ring is full, and a loss is counted.
    pub fn push(&mut self, fed: &Fed, header: &[u8]) -> bool {
        self.counters.taken.add(1);
        self.counters.pools.begin(fed.interface);
        self.counters.pools.set(fed.interface, fed.pool);
        let kept = header.len().min(MOST_HEADER);
        let taken = self.ring.push_with(|sample| {
            *sample = Sample::default();
            (sample.interface, sample.input) = (fed.interface, fed.interface);
            (sample.rate, sample.pool, sample.frame) = (fed.rate, fed.pool, fed.frame);
            (sample.kept, sample.copied) = (kept as u16, kept as u16);
            sample.outcome = Some(fed.outcome);
            // Any number but 0, which stands for packets on their way out.
            sample.ticket = 1;
            for (to, from) in sample.header.iter_mut().zip(header) {
                *to = *from;
            }
        });
        if !taken {
            self.lost(fed.interface, 1);
        }
        taken
    }

    /// Samples of an interface that were lost before they came here.
    pub fn lost(&mut self, interface: u32, samples: u64) {
        self.counters.lost.begin(interface);
        for _ in 0..samples.min(RING as u64) {
            self.counters.lost.add(interface);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out_and_what_does_not_fit_is_counted() {
        let (mut feed, mut source) = Feed::new();
        let fed = Fed {
            interface: 70_000,
            rate: 100,
            pool: 5,
            frame: 64,
            outcome: PacketOutcome::Sent(3),
        };
        assert!(feed.push(&fed, &[7; 300]));
        let mut seen = 0;
        source.ring.pop_with(|sample| {
            assert_eq!(
                (sample.interface, sample.frame, sample.rate),
                (70_000, 64, 100)
            );
            assert_eq!(sample.bytes(), [7; MOST_HEADER]);
            assert_eq!(
                sample.ending().map(|it| it.outcome),
                Some(PacketOutcome::Sent(3))
            );
            seen += 1;
        });
        assert_eq!((seen, source.counters.pools.of(70_000)), (1, 5));
        let pushed = (0..2 * RING).filter(|_| feed.push(&fed, &[])).count();
        assert!((RING - 1..=RING).contains(&pushed));
        assert_eq!(source.counters.lost.of(70_000), (2 * RING - pushed) as u64);
    }
}
