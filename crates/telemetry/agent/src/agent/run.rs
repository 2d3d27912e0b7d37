//! The agent's thread: rings in, datagrams out, counters now and then.
//!
//! It reads what became of sampled packets, then takes one sample from each ring in turn, at most [`BURST`] from
//! each before it looks at clock, counters and wishes again. How long it rests depends on how fast rings fill (`Pace`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::discarding::Discarding;
use super::discovery::Discovery;
use super::host::Host;
use super::join::Join;
use super::numbering::{MACHINE, SampleNumbering};
use super::pace::Pace;
use super::{AgentConfig, AgentHandle, AgentStats, Destination, Reports, Shared, Wishes, lock};
use crate::sampler::SampleSource;

/// Samples taken from each ring before anything else is looked at.
const BURST: usize = 256;
/// Interfaces are looked through at least this often, for those that are newly sampled.
const MOST_BLIND: Duration = Duration::from_secs(1);
/// Numbers for whoever asks are at most this old.
const TELL: Duration = Duration::from_millis(50);
/// Refusals are noticed after this time also when nothing more is sent.
const LISTEN: Duration = Duration::from_secs(1);

/// The agent.
pub struct Agent {
    config: AgentConfig,
    sources: Vec<SampleSource>,
    /// By worker, as `sources`.
    joins: Vec<Join>,
    reports: Arc<dyn Reports>,
    shared: Arc<Shared>,
    numbering: SampleNumbering,
    discarding: Discarding,
    discovery: Discovery,
    started: Instant,
    pace: Pace,
    look_at: Duration,
    host: Option<Host>,
    tell_at: Instant,
    listen_at: Instant,
}

impl Agent {
    /// Starts the agent's thread. `sources` are the samplers of the workers, in their order.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(
        config: AgentConfig,
        sources: Vec<SampleSource>,
        reports: Arc<dyn Reports>,
    ) -> std::io::Result<AgentHandle> {
        let now = Instant::now();
        let shared = Arc::new(Shared::default());
        let host = config.host.as_deref().map(Host::new);
        let mut numbering = SampleNumbering::new(&config, sources.len(), now);
        numbering.losses = sources
            .iter()
            .map(|source| source.counters.clone())
            .collect();
        let discovery = Discovery::new(config.dns_sd.clone(), now);
        let agent = Agent {
            config,
            joins: sources.iter().map(|_| Join::default()).collect(),
            sources,
            reports,
            shared: shared.clone(),
            numbering,
            discarding: Discarding::new(now),
            discovery,
            started: now,
            pace: Pace::new(now),
            look_at: Duration::ZERO,
            host,
            tell_at: now,
            listen_at: now,
        };
        agent.tell();
        let thread = std::thread::Builder::new()
            .name("weir-sflow".into())
            .spawn(move || agent.run())?;
        Ok(AgentHandle {
            shared,
            thread: Some(thread),
        })
    }

    fn run(mut self) {
        while !self.shared.stop.load(Ordering::Acquire) {
            let fullest = self.drain(BURST);
            self.send_waiting(false);
            let now = Instant::now();
            let discards = self.discarding.drain(
                self.config.drop_limit,
                &*self.reports,
                &mut self.numbering,
                now,
            );
            let fullest = fullest.max(usize::from(discards));
            self.numbering.kernel.tend(self.lost(), now);
            self.report_counters(now);
            self.numbering.datagrams.complete_old(now);
            self.numbering.datagrams.send_made(now);
            if now >= self.listen_at {
                self.listen_at = now + LISTEN;
                self.numbering.datagrams.listen(now);
                if self.discovery.tend(now) {
                    self.numbering
                        .datagrams
                        .configure(&self.config, &self.destinations(), now);
                }
            }
            if now >= self.tell_at {
                self.tell_at = now + TELL;
                self.tell();
            }
            self.rest(fullest);
        }
        self.flush();
    }

    /// Sends what is in the rings at this moment; what workers may still add is not waited for.
    fn flush(&mut self) {
        self.drain(usize::MAX);
        self.send_waiting(true);
        let now = Instant::now();
        self.discarding.drain(
            self.config.drop_limit,
            &*self.reports,
            &mut self.numbering,
            now,
        );
        self.numbering.datagrams.complete(now);
        self.numbering.datagrams.complete_discards(now);
        self.numbering.datagrams.send_made(now);
        self.numbering.datagrams.listen(now);
        self.numbering.datagrams.confirm_all();
        self.tell();
    }

    fn rest(&mut self, fullest: usize) {
        let rest = self.pace.rest(fullest, Instant::now());
        // A ring that gave a whole burst has more.
        if fullest < BURST {
            // Whoever wants something unparks.
            std::thread::park_timeout(rest);
        }
    }

    fn take_wishes(&mut self) {
        let Wishes {
            config,
            sources,
            discards,
            made,
        } = std::mem::take(&mut *lock(&self.shared.wishes));
        for (ifindex, made) in made {
            self.numbering.numbers.source(ifindex).is_of(made);
            self.discarding.interface_made(ifindex);
            let pools = self.numbering.pools(ifindex);
            self.numbering.numbers.source(ifindex).begin_pools(pools);
        }
        self.discarding.add(discards);
        self.numbering
            .sent
            .resize(self.numbering.sent.len() + sources.len(), 0);
        self.numbering
            .losses
            .extend(sources.iter().map(|source| source.counters.clone()));
        self.sources.extend(sources);
        self.joins.resize_with(self.sources.len(), Join::default);
        let Some(config) = config else { return };
        let now = Instant::now();
        self.numbering.kernel.configure(config.kernel.as_ref(), now);
        self.discovery.configure(config.dns_sd.as_ref(), now);
        if (config.polling_interval, &config.polling_intervals)
            != (self.config.polling_interval, &self.config.polling_intervals)
        {
            self.numbering.numbers.forget_due();
            self.look_at = Duration::ZERO;
        }
        if config.host != self.config.host {
            self.host = config.host.as_deref().map(Host::new);
        }
        self.numbering.indices.clone_from(&config.indices);
        self.config = config;
        self.numbering
            .datagrams
            .configure(&self.config, &self.destinations(), now);
    }

    /// The collectors that are listed, and those that were found beside them.
    fn destinations(&self) -> Vec<Destination> {
        let mut all = self.config.collectors.clone();
        for target in self.discovery.found() {
            if !all.iter().any(|listed| listed.target == *target) {
                all.push(Destination {
                    target: target.clone(),
                    drops: true,
                });
            }
        }
        all
    }

    /// One sample from each ring in turn, until all are empty or each was asked `most` times. Returns
    /// how many the fullest one gave.
    fn drain(&mut self, most: usize) -> usize {
        let now = Instant::now();
        // Samples that come after this moment are left for the next turn: outcomes and wishes are read before them.
        let there: Vec<usize> = self
            .sources
            .iter()
            .map(|source| source.ring.len().min(most))
            .collect();
        self.take_wishes();
        let Agent {
            sources,
            joins,
            numbering,
            reports,
            ..
        } = self;
        let mut fullest = 0;
        reports.with_ways(&mut |ways| {
            numbering.take_fates(sources, joins, ways, now);
            for pass in 0..there.iter().copied().max().unwrap_or(0) {
                let rings = sources
                    .iter_mut()
                    .zip(joins.iter_mut())
                    .zip(&there)
                    .enumerate();
                for (worker, ((source, join), _)) in rings.filter(|(_, (_, there))| pass < **there)
                {
                    source
                        .ring
                        .pop_with(|sample| numbering.take(worker, sample, join, ways, now));
                }
                fullest = pass + 1;
            }
        });
        fullest
    }

    /// Lost since the start, by all workers; wraps, as listeners to the kernel have it.
    fn lost(&self) -> u32 {
        self.sources.iter().fold(0, |sum: u64, source| {
            sum.wrapping_add(source.counters.lost.get())
        }) as u32
    }

    /// Sends samples whose outcomes did not come in time; `all` at the end.
    fn send_waiting(&mut self, all: bool) {
        if self.joins.iter().all(Join::is_empty) {
            return;
        }
        let now = Instant::now();
        let Agent {
            joins,
            numbering,
            reports,
            ..
        } = self;
        reports.with_ways(&mut |ways| {
            for (worker, join) in joins.iter_mut().enumerate() {
                while let Some(sample) = join.overdue(now, all) {
                    numbering.incomplete += 1;
                    numbering.flow(worker, &sample, None, ways, now);
                }
            }
        });
    }

    /// Reports the counters of the sampled interfaces that are due.
    fn report_counters(&mut self, now: Instant) {
        let since = now.duration_since(self.started);
        if let Some(host) = &mut self.host {
            host.look(since);
        }
        if since < self.look_at {
            return;
        }
        let mut reports = self.reports.interfaces();
        self.discarding
            .look(self.config.drop_limit, &reports, &mut self.numbering, now);
        let interval = |interface: u32| {
            let seconds = self
                .config
                .polling_intervals
                .get(&interface)
                .copied()
                .unwrap_or(self.config.polling_interval);
            Duration::from_secs(u64::from(seconds))
        };
        let machine = self.host.as_ref().filter(|_| {
            self.config.polling_interval > 0 && reports.iter().any(|report| report.sampled)
        });
        if let Some(host) = machine
            && self.numbering.numbers.source(MACHINE).is_due(since)
        {
            let records = host.records(&reports, &self.config.indices);
            self.numbering.machine(&records, now);
            self.numbering
                .numbers
                .reported(MACHINE, since, interval(MACHINE));
        }
        let machine = machine.is_some();
        for report in reports.iter().filter(|report| report.sampled) {
            self.numbering
                .numbers
                .source(report.ifindex)
                .is_of(report.made);
        }
        reports.retain(|report| report.sampled && !interval(report.ifindex).is_zero());
        self.numbering.numbers.keep_due(|interface| {
            (machine && interface == MACHINE)
                || reports.iter().any(|report| report.ifindex == interface)
        });
        for report in &reports {
            if self.numbering.numbers.source(report.ifindex).is_due(since) {
                self.numbering.counters(report, now);
                self.numbering
                    .numbers
                    .reported(report.ifindex, since, interval(report.ifindex));
            }
        }
        let blind_until = since + MOST_BLIND;
        self.look_at = self
            .numbering
            .numbers
            .earliest_due()
            .map_or(blind_until, |due| due.min(blind_until));
    }

    /// Publishes what was done.
    fn tell(&self) {
        let dropped = self.sources.iter().fold(0, |sum: u64, source| {
            sum.wrapping_add(source.counters.lost.get())
        });
        *lock(&self.shared.stats) = AgentStats {
            samples_sent: self.numbering.sent.clone(),
            samples_dropped: dropped,
            samples_lost: self.numbering.lost,
            samples_incomplete: self.numbering.incomplete,
            discards_sent: self.discarding.reported(),
            discards: self.discarding.by_kind(),
            discards_dropped: self.discarding.unreported(&*self.reports),
            kernel: self.numbering.kernel.reported(),
            discovery: self.discovery.trouble().map(str::to_owned),
            datagrams: self.numbering.datagrams.made(),
            collectors: self.numbering.datagrams.stats(),
            interfaces: self
                .numbering
                .numbers
                .stats(|ifindex| self.numbering.pools(ifindex)),
        };
    }
}
