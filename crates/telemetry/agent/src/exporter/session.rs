//! One collector: its message being filled, its numbers, its transport.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::time::{Duration, Instant};

use weir_flowfmt::ipfix::Version;
use weir_flowfmt::ipfix::encode::{Fit, MessageBuilder};
use weir_flowfmt::ipfix::template::Template;

use super::fields::{Direction, Plan, Sampler};
use super::options::{self, Numbers};
use super::stream::{Link, Message};
use super::{CollectorConfig, CollectorStats, Epoch, ExporterConfig, Load, Transport};
use crate::agent::socket::CollectorSocket;
use crate::flows::FlowRecord;
use crate::flows::key::MOST_SETS;

/// A message goes out when its oldest record is so old.
const PATIENCE: Duration = Duration::from_millis(200);
/// A socket that exists is checked after this time: its namespace, and the addresses of its name.
const CHECK: Duration = Duration::from_millis(100);
/// Messages of options that are sent to a UDP collector at once, and the time between two such bursts.
const OPTIONS_BURST: u32 = 32;
const OPTIONS_REST: Duration = Duration::from_millis(1);

/// What a moment is, for all that needs to know.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Instant,
    /// Seconds since 1970.
    pub(super) unix: u32,
    /// Milliseconds.
    pub(super) uptime: u32,
}

enum Connection {
    Datagrams(Box<Datagrams>),
    Stream(Link),
}

/// A collector's session.
pub(super) struct Session {
    pub(super) config: CollectorConfig,
    /// By the number of the record set.
    plans: Vec<Option<Plan>>,
    /// Whether templates of both directions are sent.
    biflow: bool,
    builder: MessageBuilder,
    connection: Connection,
    sequence: u32,
    /// What is in the message, and since when.
    load: Load,
    since: Option<Instant>,
    refresh_at: Option<Instant>,
    /// Whether templates went out.
    introduced: bool,
    scratch: Vec<u8>,
    stats: CollectorStats,
    /// What earlier sessions with this collector counted.
    past: CollectorStats,
}

impl Session {
    pub(super) fn new(config: CollectorConfig, of_all: &ExporterConfig, now: Instant) -> Session {
        let ExporterConfig {
            domain,
            biflow,
            sampling,
            rates,
            ..
        } = of_all;
        let stream =
            |tls| Connection::Stream(Link::start(config.target.clone(), tls, config.queue));
        let connection = match &config.transport {
            Transport::Udp => Connection::Datagrams(Box::new(Datagrams {
                socket: CollectorSocket::new(config.target.clone(), "IPFIX", now),
                check_at: now,
                refusal: None,
            })),
            Transport::Tcp => stream(None),
            Transport::Tls(tls) => stream(Some(tls.clone())),
        };
        Session {
            plans: plans(&config, *sampling, rates),
            biflow: *biflow && config.version == Version::Ipfix,
            builder: MessageBuilder::new(config.version, *domain, config.message()),
            connection,
            sequence: 0,
            load: Load::default(),
            since: None,
            refresh_at: None,
            introduced: false,
            scratch: Vec::new(),
            stats: CollectorStats::default(),
            past: CollectorStats::default(),
            config,
        }
    }

    /// Puts both directions into the message: as one record if there can be such, else as two.
    pub(super) fn pair(
        &mut self,
        forward: &FlowRecord,
        reverse: &FlowRecord,
        direction: Direction,
        epoch: &Epoch,
        moment: Moment,
    ) {
        let plan = self
            .plans
            .get(usize::from(forward.key.set()))
            .and_then(Option::as_ref);
        match plan.and_then(|plan| {
            plan.write_both((forward, reverse), direction, epoch, &mut self.scratch)
        }) {
            Some(template) => {
                let (there, back) = (&forward.sums, &reverse.sums);
                self.put(
                    template,
                    Load {
                        flows: 2,
                        packets: there.packets + back.packets,
                        octets: there.octets + back.octets,
                    },
                    moment,
                );
            }
            None => {
                self.record(forward, epoch, moment);
                self.record(reverse, epoch, moment);
            }
        }
    }

    /// Puts a record into the message.
    pub(super) fn record(&mut self, record: &FlowRecord, epoch: &Epoch, moment: Moment) {
        let load = Load {
            flows: 1,
            packets: record.sums.packets,
            octets: record.sums.octets,
        };
        let plan = self
            .plans
            .get(usize::from(record.key.set()))
            .and_then(Option::as_ref);
        match plan.and_then(|plan| plan.write(record, epoch, &mut self.scratch)) {
            Some(template) => self.put(template, load, moment),
            None => self.stats.left_out.add(load),
        }
    }

    /// Puts what was written into the message; sends that first when it is full.
    fn put(&mut self, template: u16, load: Load, moment: Moment) {
        let mut fit = self.builder.record(template, &self.scratch);
        if fit == Ok(Fit::Full) {
            self.send(moment);
            fit = self.builder.record(template, &self.scratch);
        }
        match fit {
            Ok(Fit::Added) => {
                self.load.add(load);
                self.since.get_or_insert(moment.now);
            }
            Ok(Fit::Full) => self.stats.not_sent.add(load),
            Err(error) => {
                self.stats.not_sent.add(load);
                (self.stats.errors, self.stats.last_error) =
                    (self.stats.errors + 1, Some(error.to_string()));
            }
        }
    }

    /// How long the oldest record of the message waits.
    pub(super) fn waits(&self, now: Instant) -> Duration {
        self.since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Does what is due of the socket while nothing is sent; whether there is another one now, for which templates have to go out.
    pub(super) fn tend(&mut self, moment: Moment) -> bool {
        let Connection::Datagrams(datagrams) = &mut self.connection else {
            return false;
        };
        let before = datagrams.socket.open().map(|opened| opened.address);
        if before.is_some() && moment.now < datagrams.check_at {
            return false;
        }
        datagrams.check_at = moment.now + CHECK;
        if let Err(error) = datagrams.socket.prepare(moment.now) {
            (self.stats.errors, self.stats.last_error) =
                (self.stats.errors + 1, Some(error.to_string()));
        }
        let now = datagrams.socket.open().map(|opened| opened.address);
        if now.is_none() || now == before {
            return false;
        }
        if !self.introduced {
            // Records of templates that the collector does not have are of no use to it.
            self.stats.not_sent.add(std::mem::take(&mut self.load));
            self.since = None;
            self.builder.clear();
        }
        true
    }

    /// Sends what waited long enough.
    pub(super) fn send_old(&mut self, moment: Moment) {
        if self.waits(moment.now) >= PATIENCE {
            self.send(moment);
        }
    }

    /// Sends what is there.
    pub(super) fn send(&mut self, moment: Moment) {
        let load = std::mem::take(&mut self.load);
        self.since = None;
        if self.builder.is_empty() {
            return;
        }
        let records = self.builder.records();
        let octets = self
            .builder
            .finish(self.sequence, moment.unix, moment.uptime);
        match &mut self.connection {
            Connection::Datagrams(datagrams) => {
                // The numbers of what did not go out are used up: the collector sees the gap.
                self.sequence =
                    self.sequence
                        .wrapping_add(if self.config.version == Version::Ipfix {
                            records
                        } else {
                            1
                        });
                let outcome = datagrams.send(octets, moment.now);
                if let Some(error) = datagrams.refusal.take() {
                    (self.stats.errors, self.stats.last_error) =
                        (self.stats.errors + 1, Some(error.to_string()));
                }
                match outcome {
                    Ok(()) => {
                        self.stats.messages += 1;
                        self.stats.message_octets += octets.len() as u64;
                        self.stats.records += u64::from(records);
                        self.stats.sent.add(load);
                    }
                    Err(why) => {
                        self.stats.not_sent.add(load);
                        self.stats.errors += 1;
                        self.stats.last_error = why
                            .map(|error| error.to_string())
                            .or(self.stats.last_error.take());
                    }
                }
            }
            Connection::Stream(link) => {
                if !link.push(Message {
                    octets: octets.to_vec(),
                    records,
                    load,
                }) {
                    self.stats.not_sent.add(load);
                    self.stats.errors += 1;
                    self.stats.last_error = Some(format!(
                        "its queue of {} KiB is full",
                        self.config.queue >> 10
                    ));
                }
            }
        }
        self.builder.clear();
    }

    /// It is time for templates and options.
    pub(super) fn is_due(&mut self) {
        self.refresh_at = None;
    }

    /// Templates and options, when it is time for them.
    pub(super) fn refresh(&mut self, moment: Moment, every: Duration, numbers: &Numbers) {
        if self.refresh_at.is_some_and(|at| moment.now < at) {
            return;
        }
        if let Connection::Datagrams(datagrams) = &self.connection {
            if !datagrams.socket.is_ready(moment.now) {
                return;
            }
            self.introduced = true;
        }
        self.refresh_at = Some(moment.now + every);
        self.send(moment);
        let stats = self.stats();
        let data: Vec<&Template> = self
            .plans
            .iter()
            .flatten()
            .flat_map(|plan| plan.templates(self.biflow))
            .collect();
        let keys: Vec<(u16, u64)> = data
            .iter()
            .map(|template| (template.id, Plan::key_indicator(template)))
            .collect();
        let mut numbers = Numbers {
            keys,
            message_octets: stats.message_octets,
            messages: stats.messages,
            flows: stats.sent.flows,
            ..numbers.clone()
        };
        numbers.not_sent.add(stats.not_sent);
        let templates: Vec<Template> = data
            .into_iter()
            .cloned()
            .chain(options::templates())
            .collect();
        if let Connection::Stream(_) = self.connection {
            // A connection begins with the templates and what the options say by then; later only options go out.
            let preamble = self.messages(moment, &templates, &numbers);
            if let Connection::Stream(link) = &self.connection {
                let first = link.stats().connections == 0;
                link.set_preamble(preamble);
                if first {
                    return;
                }
            }
            for message in self.messages(moment, &[], &numbers) {
                if let Connection::Stream(link) = &self.connection {
                    link.push(message);
                }
            }
            return;
        }
        for template in &templates {
            if self.builder.template(template) == Ok(Fit::Full) {
                self.send(moment);
                let _ = self.builder.template(template);
            }
        }
        let mut sent = 0;
        for (id, octets) in options::records(&numbers) {
            if self.builder.record(id, &octets) == Ok(Fit::Full) {
                self.send(moment);
                let _ = self.builder.record(id, &octets);
                // Names of thousands of interfaces would overflow the collector's buffer at once.
                sent += 1;
                if sent % OPTIONS_BURST == 0 {
                    std::thread::sleep(OPTIONS_REST);
                }
            }
        }
        self.send(moment);
    }

    /// Templates and options as messages of their own.
    fn messages(
        &mut self,
        moment: Moment,
        templates: &[Template],
        numbers: &Numbers,
    ) -> Vec<Message> {
        let (mut messages, builder) = (Vec::new(), &mut self.builder);
        builder.clear();
        let mut close = |builder: &mut MessageBuilder| {
            if !builder.is_empty() {
                let records = builder.records();
                messages.push(Message {
                    octets: builder.finish(0, moment.unix, 0).to_vec(),
                    records,
                    load: Load::default(),
                });
            }
            builder.clear();
        };
        for template in templates {
            if builder.template(template) == Ok(Fit::Full) {
                close(builder);
                let _ = builder.template(template);
            }
        }
        for (id, octets) in options::records(numbers) {
            if builder.record(id, &octets) == Ok(Fit::Full) {
                close(builder);
                let _ = builder.record(id, &octets);
            }
        }
        close(builder);
        messages
    }

    /// What the collector got so far.
    pub(super) fn stats(&self) -> CollectorStats {
        let mut stats = self.own_stats();
        stats.add(self.past.clone());
        stats
    }

    /// What it got in this session.
    fn own_stats(&self) -> CollectorStats {
        match &self.connection {
            Connection::Datagrams(datagrams) => CollectorStats {
                address: datagrams.socket.address(),
                connected: datagrams.socket.open().is_some(),
                ..self.stats.clone()
            },
            Connection::Stream(link) => {
                let mut stats = link.stats();
                stats.not_sent.add(self.stats.not_sent);
                stats.left_out = self.stats.left_out;
                stats.errors += self.stats.errors;
                // While there is no connection, why there is none; then what went wrong with it.
                let own = self.stats.last_error.clone();
                stats.last_error = if stats.connected {
                    own.or(stats.last_error)
                } else {
                    stats.last_error.or(own)
                };
                stats
            }
        }
    }

    /// Whether it is with the same collector.
    pub(super) fn is_with(&self, config: &CollectorConfig) -> bool {
        let transport = |config: &CollectorConfig| std::mem::discriminant(&config.transport);
        let place = |config: &CollectorConfig| (config.target.host.clone(), config.target.port);
        (place(&self.config), transport(&self.config)) == (place(config), transport(config))
    }

    /// Takes over what an earlier session with the collector counted.
    pub(super) fn inherit(&mut self, past: CollectorStats) {
        self.past.add(past);
    }

    /// Nothing more comes: a stream has until then to take its queue, and is not waited for.
    pub(super) fn leave(&mut self, moment: Moment, until: Instant) {
        self.send(moment);
        if let Connection::Stream(link) = &self.connection {
            link.leave(until);
        }
    }

    /// Whether one that leaves has done all it could.
    pub(super) fn is_done(&self) -> bool {
        match &self.connection {
            Connection::Datagrams(_) => true,
            Connection::Stream(link) => link.is_done(),
        }
    }

    /// Nothing more comes: a stream has until then to take its queue.
    pub(super) fn end(&mut self, moment: Moment, until: Instant) {
        self.send(moment);
        if let Connection::Stream(link) = &mut self.connection {
            link.end(until);
        }
    }
}

/// What its record sets look like.
fn plans(config: &CollectorConfig, sampling: u32, rates: &BTreeMap<u8, u32>) -> Vec<Option<Plan>> {
    let mut plans = vec![None; MOST_SETS];
    for (number, set) in &config.records.0 {
        let sampler = match rates.get(number) {
            Some(rate) => Sampler::of_set(*number, *rate),
            None => Sampler::usual(sampling),
        };
        if let Some(place) = plans.get_mut(usize::from(*number)) {
            *place = Some(Plan::new(set, config.version, *number).sampled_by(sampler));
        }
    }
    plans
}

/// A UDP socket that never waits: what the kernel does not take now did not go out.
struct Datagrams {
    socket: CollectorSocket,
    check_at: Instant,
    /// That nobody listened when an earlier datagram came.
    refusal: Option<Error>,
}

impl Datagrams {
    /// `Err(None)`: not before the next try.
    fn send(&mut self, octets: &[u8], now: Instant) -> Result<(), Option<Error>> {
        self.socket.choose_path(now);
        let mut opened = match self.socket.take(now) {
            Ok(opened) => opened,
            Err(None) => return Err(None),
            Err(Some(error)) => {
                self.socket.retry_later(now);
                return Err(Some(error));
            }
        };
        let mut outcome = opened.send(self.socket.target(), octets, octets.len());
        // The echo of an earlier datagram, told instead of sending this one.
        if let Err(error) = &outcome
            && error.kind() == ErrorKind::ConnectionRefused
        {
            self.refusal = Some(Error::new(error.kind(), error.to_string()));
            outcome = opened.send(self.socket.target(), octets, octets.len());
        }
        let kind = outcome.as_ref().map_err(Error::kind);
        match kind {
            Ok(_) | Err(ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {
                self.socket.put_back(opened);
            }
            Err(_) => self.socket.retry_later(now),
        }
        outcome.map(|_| ()).map_err(Some)
    }
}
