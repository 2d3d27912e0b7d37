//! The exporter's thread: rings in, messages out, templates and options now and then.
//!
//! It takes one record from each ring in turn, at most [`BURST`] from each before it looks at clocks and wishes
//! again. How long it rests depends on how much it found, at most ten milliseconds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::biflow::{Pairing, Reverse};
use super::options::Numbers;
use super::pace::Pace;
use super::session::{Moment, Session};
use super::{
    CollectorConfig, Epoch, ExporterConfig, ExporterHandle, ExporterStats, FlowSource, Knows, Load,
    Shared, Transport, lock,
};
use crate::agent::Target;
use crate::flows::FlowRecord;

/// Records taken from each ring before anything else is looked at.
const BURST: usize = 1024;
/// Rest when rings fill quickly, when they hold something, and at most.
const RESTS: (Duration, Duration, Duration) = (
    Duration::from_micros(200),
    Duration::from_millis(2),
    Duration::from_millis(10),
);
/// Fewer records than this are waited for.
const PACED_LEAST: usize = 64;
/// Rest while records wait because of the limit of their rate.
const PACED_REST: Duration = Duration::from_millis(1);
/// Numbers for whoever asks are at most this old.
const TELL: Duration = Duration::from_millis(50);
/// What streams have for their queues at the end.
const LAST: Duration = Duration::from_secs(2);
/// What tables that are given up have to empty themselves to collectors that are given up with them.
const FAREWELL: Duration = Duration::from_secs(5);

/// The exporter.
pub struct Exporter {
    config: ExporterConfig,
    sources: Vec<FlowSource>,
    sessions: Vec<Session>,
    /// Those that others took the place of, until their queues are empty or their time is over.
    leaving: Vec<Session>,
    /// Until when a configuration without collectors is put off.
    farewell: Option<Instant>,
    /// Records that wait for the other direction, where that is asked for.
    pairing: Pairing,
    knows: Arc<dyn Knows>,
    shared: Arc<Shared>,
    taken: Load,
    /// What tables that are gone could not export.
    unexported: Load,
    tell_at: Instant,
    options_at: Option<Instant>,
    rest: Duration,
    pace: Pace,
    /// Whether the last drain left records in the rings because of the limit of their rate.
    is_paced: bool,
}

impl Exporter {
    /// Starts the exporter's thread. `sources` are the cold ends of the workers' tables.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(
        config: ExporterConfig,
        sources: Vec<FlowSource>,
        knows: Arc<dyn Knows>,
    ) -> std::io::Result<ExporterHandle> {
        let (now, shared) = (Instant::now(), Arc::new(Shared::default()));
        let sessions = config
            .collectors
            .iter()
            .map(|collector| Session::new(collector.clone(), &config, now))
            .collect();
        let mut pairing = Pairing::default();
        pairing.set(config.collectors.iter().map(|collector| &collector.records));
        let exporter = Exporter {
            config,
            sources,
            sessions,
            leaving: Vec::new(),
            farewell: None,
            pairing,
            knows,
            shared: shared.clone(),
            taken: Load::default(),
            unexported: Load::default(),
            tell_at: now,
            options_at: None,
            rest: RESTS.1,
            pace: Pace::new(now),
            is_paced: false,
        };
        exporter.tell(now);
        let thread = std::thread::Builder::new()
            .name("weir-ipfix".into())
            .spawn(move || exporter.run())?;
        Ok(ExporterHandle {
            shared,
            thread: Some(thread),
        })
    }

    /// The wall clock and the uptime now. Readers of NetFlow 9 compute times from the two (RFC 3954, 5.1 and 8), so the
    /// uptime is that of the very second in the header. It comes from the router's clock: a step of the wall clock does
    /// not change it.
    fn moment(&self) -> Moment {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let epoch = &self.config.epoch;
        let clock = self
            .knows
            .clock()
            .unwrap_or_else(|| nanoseconds(unix).saturating_sub(epoch.wall));
        Moment {
            now: Instant::now(),
            unix: unix.as_secs() as u32,
            uptime: epoch.uptime(clock.saturating_sub(u64::from(unix.subsec_nanos()))),
        }
    }

    /// Anchors the times of records to the wall clock as it is now, which may have been stepped or slewed.
    fn anchor(&mut self) {
        let Some(clock) = self.knows.clock() else {
            return;
        };
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.config.epoch.wall = nanoseconds(unix).saturating_sub(clock);
    }

    fn run(mut self) {
        while !self.shared.stop.load(Ordering::Acquire) {
            self.take_wishes();
            self.tend();
            self.refresh();
            let fullest = self.drain(BURST);
            let moment = self.moment();
            self.sessions
                .iter_mut()
                .for_each(|session| session.send_old(moment));
            if moment.now >= self.tell_at {
                self.tell_at = moment.now + TELL;
                self.forget_recent();
                self.let_sources_go();
                self.let_sessions_go(moment);
                self.tell(moment.now);
            }
            self.rest(fullest);
        }
        self.finish();
    }

    /// Sends what is in the rings at this moment; what workers may still add is not waited for.
    fn finish(&mut self) {
        self.take_wishes();
        self.refresh();
        let most = self.sources.iter().map(|source| source.ring.len()).max();
        let (mut left, until) = (most.unwrap_or(0), Instant::now() + LAST);
        while left > 0 {
            if Instant::now() >= until {
                self.pace.set(0, until);
                self.drain_at_pace(left);
                break;
            }
            let taken = self.drain(left).min(left);
            left -= taken;
            if self.is_paced {
                std::thread::sleep(PACED_REST);
            } else if taken == 0 {
                break;
            }
        }
        self.release_pairs(None);
        // The last word is what was exported in all.
        self.options_at = None;
        self.sessions.iter_mut().for_each(Session::is_due);
        self.refresh();
        let moment = self.moment();
        let until = moment.now + LAST;
        let Exporter {
            sessions, leaving, ..
        } = &mut *self;
        sessions
            .iter_mut()
            .chain(leaving)
            .for_each(|session| session.end(moment, until));
        self.tell(moment.now);
    }

    fn rest(&mut self, fullest: usize) {
        let (short, usual, most) = RESTS;
        if self.is_paced {
            std::thread::park_timeout(PACED_REST);
            return;
        }
        self.rest = match fullest {
            0 => (self.rest * 2).clamp(usual, most),
            1..128 => usual,
            128..BURST => short,
            _ => return,
        };
        // Whoever wants something unparks.
        std::thread::park_timeout(self.rest);
    }

    fn take_wishes(&mut self) {
        let moment = self.moment();
        let config = {
            let mut wishes = lock(&self.shared.wishes);
            self.sources.extend(std::mem::take(&mut wishes.sources));
            let is_last = wishes
                .config
                .as_ref()
                .is_some_and(|config| config.collectors.is_empty())
                && !self.sessions.is_empty();
            if is_last
                && !self.sources.is_empty()
                && moment.now < *self.farewell.get_or_insert(moment.now + FAREWELL)
            {
                return;
            }
            self.farewell = None;
            wishes.config.take()
        };
        let Some(config) = config else { return };
        let mut old = std::mem::take(&mut self.sessions);
        for collector in &config.collectors {
            let of_all =
                |config: &ExporterConfig| (config.domain, config.biflow, config.rates.clone());
            let same = |session: &Session| {
                session.config == *collector && of_all(&config) == of_all(&self.config)
            };
            self.sessions.push(match old.iter().position(same) {
                Some(place) => {
                    let mut session = old.remove(place);
                    session.is_due();
                    session
                }
                None => Session::new(collector.clone(), &config, moment.now),
            });
        }
        old.iter_mut()
            .for_each(|session| session.leave(moment, moment.now + LAST));
        self.leaving.append(&mut old);
        self.options_at = None;
        self.pairing
            .set(config.collectors.iter().map(|collector| &collector.records));
        self.config = config;
        self.anchor();
    }

    /// Sockets that take their time: those that are there now get templates and options at once.
    fn tend(&mut self) {
        let moment = self.moment();
        for session in &mut self.sessions {
            if session.tend(moment) {
                session.is_due();
                self.options_at = None;
            }
        }
    }

    /// Templates and options for those whose time it is.
    fn refresh(&mut self) {
        let moment = self.moment();
        // Names are asked for once a second at most, however many collectors there are.
        if self.options_at.is_some_and(|at| moment.now < at) {
            return;
        }
        self.options_at = Some(moment.now + Duration::from_secs(1).min(self.config.refresh));
        let numbers = self.numbers();
        let refresh = self.config.refresh;
        self.sessions
            .iter_mut()
            .for_each(|session| session.refresh(moment, refresh, &numbers));
    }

    fn numbers(&self) -> Numbers {
        let mut not_sent = self.unexported;
        self.sources
            .iter()
            .for_each(|source| not_sent.add(source.unexported()));
        let seconds = |time: Duration| u16::try_from(time.as_secs()).unwrap_or(u16::MAX);
        Numbers {
            domain: self.config.domain,
            ignored: self.knows.ignored(),
            not_sent,
            sampling: self.config.sampling.max(1),
            rates: self.config.rates.clone(),
            timeouts: (seconds(self.config.active), seconds(self.config.idle)),
            started: self
                .config
                .epoch
                .wall
                .saturating_add(self.config.epoch.started)
                / 1_000_000,
            interfaces: self.knows.interfaces(),
            vrfs: self.knows.vrfs(),
            ..Numbers::default()
        }
    }

    /// Records that no query needs any more: those of flows that must have ended.
    fn forget_recent(&self) {
        if let Some(clock) = self.knows.clock() {
            let time = nanoseconds(self.config.active + self.config.idle);
            lock(&self.shared.recent).forget(clock.saturating_sub(time));
        }
    }

    /// Sources whose table was freed, and that have no record left.
    fn let_sources_go(&mut self) {
        let Exporter {
            sources,
            unexported,
            ..
        } = self;
        sources.retain(|source| {
            // In this order: what the table left is in the ring when the table is gone.
            let is_over = source.ring.is_abandoned() && source.ring.is_empty();
            if is_over {
                unexported.add(source.unexported());
            }
            !is_over
        });
    }

    /// Sessions that others took the place of, and that have nothing left to send: what they counted goes on in these.
    fn let_sessions_go(&mut self, moment: Moment) {
        for mut session in self.leaving.extract_if(.., |session| session.is_done()) {
            session.end(moment, moment.now);
            if let Some(heir) = self
                .sessions
                .iter_mut()
                .find(|heir| heir.is_with(&session.config))
            {
                heir.inherit(session.stats());
            }
        }
    }

    /// One record from each ring in turn, until all are empty, each was asked `most` times, or the limit of the rate is
    /// reached. Returns how many the fullest one gave.
    fn drain(&mut self, most: usize) -> usize {
        let is_udp = |collector: &CollectorConfig| collector.transport == Transport::Udp;
        let rate = match self.config.rate {
            limit @ 1.. if self.config.collectors.iter().any(is_udp) => {
                limit.max(self.shared.least_rate.load(Ordering::Relaxed))
            }
            _ => 0,
        };
        self.pace.set(rate, Instant::now());
        self.drain_at_pace(most)
    }

    fn drain_at_pace(&mut self, most: usize) -> usize {
        let rings = self.sources.len().max(1);
        let most = most.min(self.pace.available(Instant::now()) / rings);
        let before = self.taken.flows;
        let fullest = if most == 0 { 0 } else { self.take_all(most) };
        self.pace.spend(self.taken.flows - before);
        let has_more = self.sources.iter().any(|source| !source.ring.is_empty());
        self.is_paced = has_more && self.pace.available(Instant::now()) < rings.max(PACED_LEAST);
        fullest
    }

    fn take_all(&mut self, most: usize) -> usize {
        self.anchor();
        let moment = self.moment();
        self.release_pairs(Some(moment.now));
        let Exporter {
            sources,
            sessions,
            pairing,
            config,
            taken,
            knows,
            ..
        } = self;
        if sources.iter().all(|source| source.ring.is_empty()) {
            return 0;
        }
        let (epoch, biflow) = (config.epoch, config.biflow);
        let shared = self.shared.clone();
        let mut recent = lock(&shared.recent);
        let mut take = |record: &FlowRecord| {
            recent.push(record);
            taken.add(Load {
                flows: 1,
                packets: record.sums.packets,
                octets: record.sums.octets,
            });
            if biflow {
                pairing.push(record, moment.now, &mut |forward, reverse| {
                    send(sessions, forward, reverse, &epoch, moment)
                });
            } else {
                sessions
                    .iter_mut()
                    .for_each(|session| session.record(record, &epoch, moment));
            }
        };
        if !config
            .collectors
            .iter()
            .any(|collector| collector.records.need_completion())
        {
            return drain(sources, most, take);
        }
        let mut passes = 0;
        knows.with_completion(&mut |completion| {
            passes = drain(sources, most, |record| {
                let mut record = *record;
                completion.complete(&mut record);
                take(&record);
            });
        });
        passes
    }

    /// Records whose other direction does not come.
    fn release_pairs(&mut self, now: Option<Instant>) {
        let (moment, epoch) = (self.moment(), self.config.epoch);
        let Exporter {
            sessions, pairing, ..
        } = self;
        pairing.expire(now, &mut |forward, reverse| {
            send(sessions, forward, reverse, &epoch, moment)
        });
    }

    /// Publishes what was done.
    fn tell(&self, now: Instant) {
        let oldest = self
            .sessions
            .iter()
            .map(|session| session.waits(now))
            .max()
            .unwrap_or_default();
        let of = |session: &Session| -> (Target, super::CollectorStats) {
            let target = session.config.target.clone();
            let mut stats = session.stats();
            self.leaving
                .iter()
                .filter(|earlier| earlier.is_with(&session.config))
                .for_each(|earlier| stats.add(earlier.stats()));
            (target, stats)
        };
        *lock(&self.shared.stats) = ExporterStats {
            taken: self.taken,
            sources: self.sources.len(),
            collectors: self.sessions.iter().map(of).collect(),
            oldest: oldest.as_nanos() as u64,
        };
    }
}

fn send(
    sessions: &mut [Session],
    forward: &FlowRecord,
    reverse: Reverse<'_>,
    epoch: &Epoch,
    moment: Moment,
) {
    for session in sessions {
        match reverse {
            Some((reverse, direction)) => {
                session.pair(forward, reverse, direction, epoch, moment);
            }
            None => session.record(forward, epoch, moment),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// One record from each ring in turn; how many the fullest one gave.
fn drain(sources: &mut [FlowSource], most: usize, mut take: impl FnMut(&FlowRecord)) -> usize {
    for pass in 0..most {
        let mut empty = true;
        for source in &mut *sources {
            empty &= source.ring.pop_with(&mut take).is_none();
        }
        if empty {
            return pass;
        }
    }
    most
}
