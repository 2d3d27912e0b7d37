//! From samples to datagrams that leave for every collector.
//!
//! One datagram is being filled at any time. It leaves when the next sample does not fit, when its
//! oldest sample has waited long enough, and when the agent's way of speaking changes: so no
//! datagram ever holds both encodings or two agents' samples.

use std::time::{Duration, Instant};

use weir_flowfmt::sflow::encode::{DatagramBuilder, EncodeError, Fit};

use super::collector::Collector;
use super::{AgentConfig, CollectorStats};

/// A datagram leaves when its oldest sample is this old; the specification allows one second.
const MOST_WAIT: Duration = Duration::from_millis(500);

/// The datagram being filled, and where it goes.
pub(super) struct Datagrams {
    builder: DatagramBuilder,
    collectors: Vec<Collector>,
    started: Instant,
    sequence: u32,
    made: u64,
    /// When the oldest sample came into the datagram.
    oldest: Option<Instant>,
    /// The last reason for which a sample could not be sent, so that it is told once.
    refused: Option<EncodeError>,
}

impl Datagrams {
    pub(super) fn new(config: &AgentConfig, now: Instant) -> Datagrams {
        let collectors = config.collectors.iter().map(|&address| Collector::new(address, now)).collect();
        Datagrams { builder: builder(config), collectors, started: now, sequence: 0, made: 0, oldest: None, refused: None }
    }

    /// Speaks as `config` says from now on. Collectors that stay keep their sockets and counts.
    pub(super) fn configure(&mut self, config: &AgentConfig, now: Instant) {
        self.send(now);
        let mut old = std::mem::take(&mut self.collectors);
        let collector = |&address| match old.iter().position(|collector| collector.address() == address) {
            Some(place) => old.swap_remove(place),
            None => Collector::new(address, now),
        };
        self.collectors = config.collectors.iter().map(collector).collect();
        self.builder = builder(config);
        self.refused = None;
    }

    /// Adds a sample; a datagram that has no room for it leaves first. `false` when it can never be sent.
    pub(super) fn add(&mut self, now: Instant, put: impl Fn(&mut DatagramBuilder) -> Result<Fit, EncodeError>) -> bool {
        // Twice at most: what does not fit an empty datagram is an error.
        for _ in 0..2 {
            match put(&mut self.builder) {
                Ok(Fit::Added) => {
                    self.oldest.get_or_insert(now);
                    return true;
                }
                Ok(Fit::Full) => self.send(now),
                Err(error) => {
                    self.refuse(error);
                    return false;
                }
            }
        }
        false
    }

    fn refuse(&mut self, error: EncodeError) {
        if self.refused != Some(error) {
            tracing::warn!("a sample cannot be sent, and all like it: {error}");
            self.refused = Some(error);
        }
    }

    /// Sends what has waited long enough.
    pub(super) fn send_old(&mut self, now: Instant) {
        if self.oldest.is_some_and(|oldest| now.duration_since(oldest) >= MOST_WAIT) {
            self.send(now);
        }
    }

    /// Sends what there is.
    pub(super) fn send(&mut self, now: Instant) {
        self.oldest = None;
        if self.builder.is_empty() {
            return;
        }
        // "Incremented with each datagram generated": the first is number 1, whoever gets it.
        self.sequence = self.sequence.wrapping_add(1);
        self.made += 1;
        // Milliseconds wrap after 49 days, as the field does.
        let uptime = now.duration_since(self.started).as_millis() as u32;
        let datagram = self.builder.finish(self.sequence, uptime);
        for collector in &mut self.collectors {
            collector.send(datagram, now);
        }
        self.builder.clear();
    }

    /// Notices refusals of what was sent last.
    pub(super) fn listen(&mut self, now: Instant) {
        for collector in &mut self.collectors {
            collector.listen(now);
        }
    }

    /// Datagrams made so far.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// What each collector got.
    pub(super) fn stats(&self) -> Vec<CollectorStats> {
        self.collectors.iter().map(Collector::stats).collect()
    }
}

fn builder(config: &AgentConfig) -> DatagramBuilder {
    DatagramBuilder::with_max_len(config.address, config.sub_id, config.encoding, config.datagram_bytes)
}
