//! From samples to datagrams that leave for every collector.
//!
//! Two datagrams are being filled at any time, one of samples and one of discarded packets. Each is complete when the
//! next sample does not fit, when its oldest sample has waited long enough, and when the agent's way of
//! speaking changes: so no datagram ever holds both encodings or two agents' samples. What is complete leaves together
//! with others, once the agent is through with its rings ([`Outbox`]).
//!
//! Collectors that get no drop notifications get datagrams numbered by themselves, so that none sees a gap that is none.

use std::time::{Duration, Instant};

use weir_flowfmt::sflow::encode::{DatagramBuilder, EncodeError, Fit};

use super::collector::Collector;
use super::outbox::Outbox;
use super::{AgentConfig, CollectorStats, Destination};

/// A datagram leaves when its oldest sample is this old; the specification allows one second.
const MOST_WAIT: Duration = Duration::from_millis(500);

/// Which of the two datagrams.
#[derive(Clone, Copy)]
enum Kind {
    Samples,
    Discards,
}

/// The datagrams being filled, and where they go.
pub(super) struct Datagrams {
    builder: DatagramBuilder,
    /// The one of discarded packets.
    discards: DatagramBuilder,
    /// Each with whether it gets drop notifications.
    collectors: Vec<(Collector, bool)>,
    /// Made and not yet sent, for collectors with drop notifications, and for the others.
    outbox: Outbox,
    sample_outbox: Outbox,
    started: Instant,
    sequence: u32,
    /// Numbers datagrams of samples alone, for those who get only them.
    sample_sequence: u32,
    made: u64,
    /// When the oldest sample came into the datagram.
    oldest: Option<Instant>,
    /// When the oldest discard came into its datagram.
    oldest_discard: Option<Instant>,
    /// The last reason for which a sample could not be sent, so that it is reported once.
    refused: Option<EncodeError>,
}

impl Datagrams {
    pub(super) fn new(config: &AgentConfig, now: Instant) -> Datagrams {
        Datagrams {
            builder: builder(config),
            discards: builder(config),
            collectors: config
                .collectors
                .iter()
                .map(|to| (Collector::new(to.target.clone(), now), to.drops))
                .collect(),
            outbox: Outbox::default(),
            sample_outbox: Outbox::default(),
            started: now,
            sequence: 0,
            sample_sequence: 0,
            made: 0,
            oldest: None,
            oldest_discard: None,
            refused: None,
        }
    }

    /// Speaks as `config` says from now on. Collectors that stay keep their sockets and counts.
    pub(super) fn configure(
        &mut self,
        config: &AgentConfig,
        destinations: &[Destination],
        now: Instant,
    ) {
        self.complete(now);
        self.complete_discards(now);
        self.send_made(now);
        let mut old = std::mem::take(&mut self.collectors);
        let collector = |to: &Destination| match old
            .iter()
            .position(|(collector, _)| *collector.target() == to.target)
        {
            Some(place) => (old.swap_remove(place).0, to.drops),
            None => (Collector::new(to.target.clone(), now), to.drops),
        };
        self.collectors = destinations.iter().map(collector).collect();
        (self.builder, self.discards) = (builder(config), builder(config));
        self.refused = None;
    }

    /// Adds a sample; a datagram that has no room for it leaves first. `false` when it can never be sent.
    pub(super) fn add(
        &mut self,
        now: Instant,
        put: impl Fn(&mut DatagramBuilder) -> Result<Fit, EncodeError>,
    ) -> bool {
        let added = self.put(Kind::Samples, now, put);
        self.or_refuse(added)
    }

    /// Adds a notification of a discarded packet, in the same way.
    pub(super) fn add_discard(
        &mut self,
        now: Instant,
        put: impl Fn(&mut DatagramBuilder) -> Result<Fit, EncodeError>,
    ) -> bool {
        let added = self.put(Kind::Discards, now, put);
        self.or_refuse(added)
    }

    /// As [`Datagrams::add`], for who has something smaller to try when it can never be sent.
    pub(super) fn fits(
        &mut self,
        put: impl Fn(&mut DatagramBuilder) -> Result<Fit, EncodeError>,
        now: Instant,
    ) -> bool {
        self.put(Kind::Samples, now, put).is_ok()
    }

    fn put(
        &mut self,
        kind: Kind,
        now: Instant,
        put: impl Fn(&mut DatagramBuilder) -> Result<Fit, EncodeError>,
    ) -> Result<(), Option<EncodeError>> {
        // Twice at most: what does not fit an empty datagram is an error.
        for _ in 0..2 {
            let (builder, oldest) = match kind {
                Kind::Samples => (&mut self.builder, &mut self.oldest),
                Kind::Discards => (&mut self.discards, &mut self.oldest_discard),
            };
            match put(builder).map_err(Some)? {
                Fit::Added => {
                    oldest.get_or_insert(now);
                    return Ok(());
                }
                Fit::Full => match kind {
                    Kind::Samples => self.complete(now),
                    Kind::Discards => self.complete_discards(now),
                },
            }
        }
        Err(None)
    }

    fn or_refuse(&mut self, added: Result<(), Option<EncodeError>>) -> bool {
        if let Err(Some(error)) = added {
            self.refuse(error);
        }
        added.is_ok()
    }

    fn refuse(&mut self, error: EncodeError) {
        if self.refused != Some(error) {
            tracing::warn!("a sample cannot be sent, and all like it: {error}");
            self.refused = Some(error);
        }
    }

    /// Completes what has waited long enough.
    pub(super) fn complete_old(&mut self, now: Instant) {
        let is_old = |oldest: Option<Instant>| {
            oldest.is_some_and(|oldest| now.duration_since(oldest) >= MOST_WAIT)
        };
        if is_old(self.oldest) {
            self.complete(now);
        }
        if is_old(self.oldest_discard) {
            self.complete_discards(now);
        }
    }

    /// Completes the datagram of samples.
    pub(super) fn complete(&mut self, now: Instant) {
        self.oldest = None;
        if self.builder.is_empty() {
            return;
        }
        // "Incremented with each datagram generated": the first is number 1, whoever gets it.
        self.sequence = self.sequence.wrapping_add(1);
        self.sample_sequence = self.sample_sequence.wrapping_add(1);
        self.made += 1;
        let uptime = self.uptime(now);
        for (sequence, drops) in [(self.sequence, true), (self.sample_sequence, false)] {
            if self
                .collectors
                .iter()
                .any(|(_, reported)| *reported == drops)
            {
                let outbox = if drops {
                    &mut self.outbox
                } else {
                    &mut self.sample_outbox
                };
                outbox.push(self.builder.finish(sequence, uptime));
            }
        }
        self.builder.clear();
        self.send_full(now);
    }

    /// Completes the datagram of discards, for those who want to know.
    pub(super) fn complete_discards(&mut self, now: Instant) {
        self.oldest_discard = None;
        if self.discards.is_empty() {
            return;
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.made += 1;
        let uptime = self.uptime(now);
        if self.collectors.iter().any(|(_, reported)| *reported) {
            self.outbox
                .push(self.discards.finish(self.sequence, uptime));
        }
        self.discards.clear();
        self.send_full(now);
    }

    fn send_full(&mut self, now: Instant) {
        if self.outbox.is_full() || self.sample_outbox.is_full() {
            self.send_made(now);
        }
    }

    /// Sends the datagrams that are made.
    pub(super) fn send_made(&mut self, now: Instant) {
        if self.outbox.is_empty() && self.sample_outbox.is_empty() {
            return;
        }
        for (collector, reported) in &mut self.collectors {
            collector.send(
                if *reported {
                    &self.outbox
                } else {
                    &self.sample_outbox
                },
                now,
            );
        }
        self.outbox.clear();
        self.sample_outbox.clear();
    }

    /// Milliseconds wrap after 49 days, as the field does.
    fn uptime(&self, now: Instant) -> u32 {
        now.duration_since(self.started).as_millis() as u32
    }

    /// Notices refusals of what was sent last.
    pub(super) fn listen(&mut self, now: Instant) {
        for (collector, _) in &mut self.collectors {
            collector.listen(now);
        }
    }

    /// Nothing more is sent: what was not refused up to now counts as sent.
    pub(super) fn confirm_all(&mut self) {
        for (collector, _) in &mut self.collectors {
            collector.confirm_all();
        }
    }

    /// Datagrams made so far.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// What each collector got.
    pub(super) fn stats(&self) -> Vec<CollectorStats> {
        self.collectors
            .iter()
            .map(|(collector, reported)| CollectorStats {
                drops: *reported,
                ..collector.stats()
            })
            .collect()
    }
}

fn builder(config: &AgentConfig) -> DatagramBuilder {
    DatagramBuilder::with_max_len(
        config.address,
        config.sub_id,
        config.encoding,
        config.datagram_bytes,
    )
}
