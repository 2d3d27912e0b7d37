//! The flow meter: a tap that observes packets where they come in, learns where they go, and counts them in its flow table.
//!
//! One for each worker. A packet is read once, in one pass over the vector as it comes ([`Selection`]), and the table's bucket
//! for it is asked for; the reading waits beside the packets' way (`manifest`) until the graph tells where they go: out of an
//! interface, dropped for a reason, kept by this router, or held. When the turn is over all outcomes are known, and the whole
//! of it goes into the table in one go ([`Table::count`]), whose waits for memory overlap. What is metered where it leaves is observed there and
//! counted with the same turn.
//!
//! Every packet that the meter sees is metered, passed over by sampling, ignored since there was no table, or waits; all
//! of it is counted ([`MeterCounters`]).
//!
//! Flows end within a budget a turn; an idle worker wakes ten times a second for it. Nothing here reads a clock, allocates
//! once it has found its size, or waits: tables come and go, and questions are asked, through a mailbox ([`control`]).

pub mod control;
mod directory;
mod manifest;
pub mod question;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_buf::Pkt;
use weir_graph::{Destination, Follower, Look, Marks, Point, Tap, World};

pub use control::{MeterControl, MeterCounters, MeterPlan, MeterSettings, Metered};
pub use question::{
    Answer, FlowFilter, FlowOrder, FlowRates, GroupBy, GroupKey, GroupSums, Grouping, Question,
};

use self::control::Mailbox;
use self::manifest::{Manifest, Waiting};
use crate::flows::key::Secret;
use crate::flows::{Selection, Table};
use crate::random::{Gaps, Random};

/// Steps of expiry at a tick at most: each looks at 16,384 places.
const STEPS: usize = 8;
/// Places of the table that are looked at for a question at a tick.
const PLACES: usize = 8192;

/// The tap of one worker.
pub struct Meter {
    settings: Arc<MeterSettings>,
    generation: u32,
    plan: Arc<MeterPlan>,
    /// By interface: what comes in, and what leaves.
    rx: Vec<Option<Box<Sampled>>>,
    tx: Vec<Option<Box<Sampled>>>,
    mailbox: Arc<Mailbox>,
    /// Of all tables that it gets: what was read before one came is found in it.
    secret: Secret,
    table: Option<Box<Table>>,
    /// Tables whose flows have to leave.
    leaving: Vec<Table>,
    arrivals: Manifest,
    departures: Manifest,
    waiting: Waiting,
    random: Random,
    question: Option<(Question, usize)>,
}

/// An interface in one direction: how it is metered, and which packet is next.
struct Sampled {
    metered: Metered,
    gaps: Gaps,
    /// Packets to pass over before the next one is metered.
    pass: u64,
}

impl Sampled {
    fn new(metered: &Metered, random: &mut Random) -> Sampled {
        let mut gaps = Gaps::new(Random::new(random.bits()), metered.sampling);
        Sampled {
            metered: metered.clone(),
            pass: gaps.pass(),
            gaps,
        }
    }
}

impl Meter {
    /// A meter and the control side's end of it.
    #[must_use]
    pub fn new(settings: Arc<MeterSettings>, seed: u64) -> (Meter, MeterControl) {
        let mailbox = Arc::new(Mailbox::default());
        let mut random = Random::new(seed);
        let secret = Secret::new(&mut random);
        let meter = Meter {
            settings,
            generation: 0,
            plan: Arc::default(),
            rx: Vec::new(),
            tx: Vec::new(),
            mailbox: mailbox.clone(),
            table: None,
            leaving: Vec::new(),
            arrivals: Manifest::new(secret),
            departures: Manifest::new(secret),
            secret,
            waiting: Waiting::default(),
            random,
            question: None,
        };
        (meter, MeterControl(mailbox))
    }

    fn take_plan(&mut self, plan: Arc<MeterPlan>) {
        // Each packet has the same chance whatever was chosen before, so that gaps may begin anew with any plan.
        let mut by_number = |all: &BTreeMap<u32, Metered>| {
            let size = all.keys().last().map_or(0, |last| *last as usize + 1);
            let mut places: Vec<_> = (0..size).map(|_| None).collect();
            for (number, metered) in all {
                places[*number as usize] = Some(Box::new(Sampled::new(metered, &mut self.random)));
            }
            places
        };
        (self.rx, self.tx) = (by_number(&plan.rx), by_number(&plan.tx));
        if let Some(table) = &mut self.table
            && (plan.active, plan.idle) != (self.plan.active, self.plan.idle)
        {
            table.set_timeouts(plan.active, plan.idle);
        }
        self.plan = plan;
    }

    /// What is metered of a vector.
    #[inline]
    fn read(&mut self, point: Point, interface: u32, packets: &[Pkt]) {
        if let Some(plan) = self.settings.news(&mut self.generation) {
            self.take_plan(plan);
        }
        if self.table.is_none() {
            self.fetch();
        }
        let Meter {
            rx,
            tx,
            arrivals,
            departures,
            table,
            ..
        } = self;
        let table = table.as_deref();
        let (interfaces, manifest, take): (_, _, Take) = match point {
            Point::Rx => (rx, arrivals, Manifest::take),
            Point::Tx => (tx, departures, Manifest::take_leaving),
            Point::Drop { .. } => return,
        };
        let Some(Some(sampled)) = interfaces.get_mut(interface as usize) else {
            return self.ignore(packets);
        };
        let Sampled {
            metered: Metered {
                selection,
                sampling,
            },
            gaps,
            pass,
        } = &mut **sampled;
        if *sampling <= 1 {
            return take(manifest, selection, interface, packets, table);
        }
        let mut taken = 0;
        for place in chosen(gaps, pass, packets.len()) {
            take(
                manifest,
                selection,
                interface,
                &packets[place..=place],
                table,
            );
            taken += 1;
        }
        self.mailbox
            .counters
            .passed_over
            .add(packets.len() as u64 - taken);
    }

    /// Looks into the mailbox.
    fn fetch(&mut self) {
        if !self.mailbox.has_news.load(Ordering::Acquire) && self.leaving.is_empty() {
            return;
        }
        let emptied = |table: &mut Table| table.flush() == 0;
        let mailbox = self.mailbox.clone();
        // Whoever has it now is done by the next tick.
        let Ok(mut mail) = mailbox.mail.try_lock() else {
            return;
        };
        mailbox.has_news.store(false, Ordering::Release);
        if let Some(mut table) = mail.table.take() {
            if let Some(table) = &mut table {
                table.set_timeouts(self.plan.active, self.plan.idle);
                table.set_secret(&self.secret);
            }
            self.leaving
                .extend(std::mem::replace(&mut self.table, table).map(|table| *table));
        }
        mail.emptied
            .extend(self.leaving.extract_if(.., |table| emptied(table)));
        if self.question.is_none() {
            self.question = mail.questions.pop().map(|question| (question, 0));
        }
        if !mail.questions.is_empty() {
            mailbox.has_news.store(true, Ordering::Release);
        }
    }

    /// Packets that should be metered and are not: the settings for it are not here yet, or gone.
    #[cold]
    fn ignore(&self, packets: &[Pkt]) {
        let octets = packets.iter().map(|packet| packet.total_len() as u64).sum();
        self.mailbox
            .counters
            .ignored_packets
            .add(packets.len() as u64);
        self.mailbox.counters.ignored_octets.add(octets);
    }

    /// Goes on looking for what was asked.
    fn look_through(&mut self) {
        let Some((mut question, from)) = self.question.take() else {
            return;
        };
        let next = self
            .table
            .as_ref()
            .and_then(|table| table.look_through(from, PLACES, |record| question.consider(record)));
        match next {
            Some(next) => self.question = Some((question, next)),
            None => match self.mailbox.mail.try_lock() {
                Ok(mut mail) => {
                    mail.answers.push(question.answer());
                    self.mailbox.has_news.store(true, Ordering::Release);
                }
                Err(_) => self.question = Some((question, usize::MAX)),
            },
        }
    }

    /// Counts what is complete.
    fn count(&mut self, now: u64) {
        for manifest in [&mut self.arrivals, &mut self.departures] {
            if let Some(table) = &mut self.table {
                manifest.count_in(table, now);
            } else if !manifest.is_empty() {
                let (packets, octets) = manifest.totals();
                self.mailbox.counters.ignored_packets.add(packets);
                self.mailbox.counters.ignored_octets.add(octets);
            }
            manifest.clear();
        }
    }
}

/// How a manifest reads a vector.
type Take = fn(&mut Manifest, &Selection, u32, &[Pkt], Option<&Table>);

/// The places of the vector that are metered, when not all are.
fn chosen(gaps: &mut Gaps, pass: &mut u64, count: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if *pass >= count as u64 {
            *pass -= count as u64;
            return None;
        }
        let place = *pass as usize;
        *pass += 1 + gaps.pass();
        Some(place)
    })
}

impl<W: World> Tap<W> for Meter {
    fn name(&self) -> &'static str {
        "ipfix"
    }

    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], _marks: &mut Marks) -> u64 {
        self.read(look.point, look.interface, packets);
        0
    }

    fn tick(&mut self, now: u64) -> bool {
        if let Some(plan) = self.settings.news(&mut self.generation) {
            self.take_plan(plan);
        }
        self.fetch();
        if self.mailbox.ending.load(Ordering::Acquire) {
            self.end(now);
        } else if let Some(table) = &mut self.table {
            let _ = (0..STEPS).find(|_| !table.expire(now));
        }
        self.look_through();
        false
    }

    fn follower(&mut self) -> Option<&mut dyn Follower> {
        Some(self)
    }
}

impl Follower for Meter {
    fn goes(&mut self, destination: Destination, packets: &[Pkt]) {
        let Meter {
            arrivals,
            departures,
            waiting,
            ..
        } = self;
        match destination {
            Destination::Out { interface, flags } => {
                arrivals.leave(interface, flags, packets, waiting)
            }
            Destination::Held => packets
                .iter()
                .for_each(|packet| arrivals.hold(packet, waiting)),
            Destination::Kept => packets
                .iter()
                .for_each(|packet| arrivals.keep(packet, waiting)),
            Destination::Dropped(reason) => packets.iter().for_each(|packet| {
                arrivals.drop(packet, reason, waiting);
                // What a driver refused, metered where it would have left.
                if !departures.is_empty() {
                    departures.drop(packet, reason, waiting);
                }
            }),
        }
    }

    fn turn_over(&mut self, now: u64) -> bool {
        self.arrivals.settle(&mut self.waiting);
        self.count(now);
        if let Some(table) = &mut self.table {
            table.expire(now);
        }
        self.mailbox.counters.waiting.set(self.waiting.len() as u64);
        !self.waiting.is_empty()
    }
}

impl Meter {
    /// Everything leaves.
    fn end(&mut self, now: u64) {
        self.arrivals.give_up(&mut self.waiting);
        self.count(now);
        let resident = self.table.as_mut().map_or(0, |table| table.flush());
        if resident == 0 && self.leaving.is_empty() {
            self.mailbox.ended.store(true, Ordering::Release);
        }
    }
}
