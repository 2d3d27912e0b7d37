//! One port of an aggregate: its receive, periodic and mux machines.

use weir_wire::MacAddr;
use weir_wire::lacp::{End, State};

use crate::aggregate::Settings;

const SECOND: u64 = 1_000_000_000;
/// Between two PDUs to a partner that wants them often (IEEE 802.1AX-2020 section 6.4.4).
const FAST_PERIODIC: u64 = SECOND;
/// Between two PDUs to any other.
const SLOW_PERIODIC: u64 = 30 * SECOND;
/// After so long without a PDU the partner's word is out of date, when it should have spoken often.
const SHORT_TIMEOUT: u64 = 3 * SECOND;
/// The same for one that need not.
const LONG_TIMEOUT: u64 = 90 * SECOND;
/// How long a chosen port waits for others, so that they join together.
const AGGREGATE_WAIT: u64 = 2 * SECOND;
/// PDUs in any [`FAST_PERIODIC`] (6.4.16).
const BURST: usize = 3;

/// The states of the receive machine (6.4.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receive {
    /// The link is down.
    PortDisabled,
    /// The partner's word is out of date; it is asked to speak up.
    Expired,
    /// There is no partner: what is known of it was made up.
    Defaulted,
    /// The partner has spoken in time.
    Current,
}

impl Receive {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Receive::PortDisabled => "port-disabled",
            Receive::Expired => "expired",
            Receive::Defaulted => "defaulted",
            Receive::Current => "current",
        }
    }
}

/// The states of the mux machine (6.4.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mux {
    /// Not in the aggregate.
    Detached,
    /// Chosen, and waiting for others that may join with it.
    Waiting,
    /// In the aggregate; the partner has not agreed yet.
    Attached,
    /// Takes frames.
    Collecting,
    /// Takes frames and sends them.
    Distributing,
}

impl Mux {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Mux::Detached => "detached",
            Mux::Waiting => "waiting",
            Mux::Attached => "attached",
            Mux::Collecting => "collecting",
            Mux::Distributing => "distributing",
        }
    }
}

/// What a port has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// PDUs taken in.
    pub received: u64,
    /// PDUs given out to be sent.
    pub sent: u64,
    /// How often the partner fell silent.
    pub expired: u64,
    /// How often it became another one, or others of its settings changed.
    pub partner_changes: u64,
}

/// What tells groups of links apart that may be aggregated: the partner's system and key; for a partner whose
/// link stands alone, its port, too (6.3.6).
pub(crate) type Group = (u16, MacAddr, u16, Option<u16>);

#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    pub(crate) receive: Receive,
    pub(crate) mux: Mux,
    pub(crate) selected: bool,
    pub(crate) state: State,
    pub(crate) partner: End,
    pub(crate) counters: Counters,
    /// When what the partner said is out of date.
    current_until: u64,
    /// When the last periodic PDU was due.
    last_periodic: u64,
    wait_until: u64,
    need_to_transmit: bool,
    /// When the last PDUs went, the oldest first.
    sent_at: [Option<u64>; BURST],
}

impl Port {
    pub(crate) fn new(number: u16, settings: &Settings) -> Port {
        let mut port = Port {
            number,
            receive: Receive::PortDisabled,
            mux: Mux::Detached,
            selected: false,
            state: State::AGGREGATION,
            partner: End::default(),
            counters: Counters::default(),
            current_until: 0,
            last_periodic: 0,
            wait_until: 0,
            need_to_transmit: false,
            sent_at: [None; BURST],
        };
        port.take_settings(settings);
        port
    }

    /// The port is another one to its partner from now on.
    pub(crate) fn take_settings(&mut self, settings: &Settings) {
        self.state = self
            .state
            .with(State::ACTIVE, settings.active)
            .with(State::SHORT_TIMEOUT, settings.fast);
        self.unselect();
    }

    /// UNSELECTED (6.4.12): whatever was agreed on is over, even if it is agreed on again at once.
    fn unselect(&mut self) {
        self.selected = false;
        self.enter(Mux::Detached);
    }

    fn enter(&mut self, mux: Mux) {
        self.mux = mux;
        self.state = self
            .state
            .with(State::SYNCHRONIZATION, mux >= Mux::Attached)
            .with(State::COLLECTING, mux >= Mux::Collecting)
            .with(State::DISTRIBUTING, mux >= Mux::Distributing);
        self.need_to_transmit = true;
    }

    /// What this end says of itself.
    pub(crate) fn actor(&self, settings: &Settings) -> End {
        End::new(
            settings.system_priority,
            settings.system,
            settings.key,
            settings.port_priority,
            self.number,
            self.state,
        )
    }

    pub(crate) fn set_enabled(&mut self, enabled: bool, now: u64) {
        match (enabled, self.receive) {
            (true, Receive::PortDisabled) => self.expire(now),
            (false, _) => {
                self.receive = Receive::PortDisabled;
                self.unselect();
                self.state = self.state.with(State::EXPIRED, false);
                self.partner.state = self.partner.state.with(State::SYNCHRONIZATION, false);
            }
            (true, _) => {}
        }
    }

    /// EXPIRED (6.4.12): the partner is asked to speak up, for a short while.
    fn expire(&mut self, now: u64) {
        self.receive = Receive::Expired;
        self.partner.state = self
            .partner
            .state
            .with(State::SYNCHRONIZATION, false)
            .with(State::SHORT_TIMEOUT, true);
        self.state = self.state.with(State::EXPIRED, true);
        self.current_until = now.saturating_add(SHORT_TIMEOUT);
        self.need_to_transmit = true;
    }

    /// Takes in what the partner says of itself, and what it believes of us.
    pub(crate) fn hear(&mut self, actor: &End, belief: &End, settings: &Settings, now: u64) {
        if self.receive == Receive::PortDisabled {
            return;
        }
        self.counters.received += 1;
        // update_Selected: another partner, or it stands elsewhere.
        if !is_same_end(actor, &self.partner) || differ(actor, &self.partner, State::AGGREGATION) {
            self.unselect();
            self.counters.partner_changes += 1;
        }
        let own = self.actor(settings);
        // update_NTT: it does not know how we are.
        let compared = [
            State::ACTIVE,
            State::SHORT_TIMEOUT,
            State::SYNCHRONIZATION,
            State::AGGREGATION,
        ];
        if !is_same_end(belief, &own) || compared.iter().any(|&bit| differ(belief, &own, bit)) {
            self.need_to_transmit = true;
        }
        // recordPDU: it is in step when it says so and means this very port, or stands alone; and somebody
        // will keep the talk going.
        let means_us = is_same_end(belief, &own) && !differ(belief, &own, State::AGGREGATION);
        let goes_on = actor.state.has(State::ACTIVE)
            || (self.state.has(State::ACTIVE) && belief.state.has(State::ACTIVE));
        let in_step = actor.state.has(State::SYNCHRONIZATION)
            && (means_us || !actor.state.has(State::AGGREGATION))
            && goes_on;
        self.partner = *actor;
        self.partner.state = actor.state.with(State::SYNCHRONIZATION, in_step);
        self.state = self
            .state
            .with(State::DEFAULTED, false)
            .with(State::EXPIRED, false);
        self.receive = Receive::Current;
        let timeout = if self.state.has(State::SHORT_TIMEOUT) {
            SHORT_TIMEOUT
        } else {
            LONG_TIMEOUT
        };
        self.current_until = now.saturating_add(timeout);
    }

    /// What time alone does to what is known of the partner.
    pub(crate) fn age(&mut self, now: u64) {
        if now < self.current_until {
            return;
        }
        match self.receive {
            Receive::Current => {
                self.counters.expired += 1;
                self.expire(now);
            }
            Receive::Expired => {
                self.receive = Receive::Defaulted;
                self.unselect();
                self.partner = End::default();
                self.state = self
                    .state
                    .with(State::DEFAULTED, true)
                    .with(State::EXPIRED, false);
            }
            Receive::PortDisabled | Receive::Defaulted => {}
        }
    }

    /// The group of links that this one could be in.
    pub(crate) fn group(&self) -> Option<Group> {
        let has_partner = matches!(self.receive, Receive::Current | Receive::Expired)
            && self.partner.system.is_unicast();
        let alone = (!self.partner.state.has(State::AGGREGATION)).then(|| self.partner.port());
        has_partner.then(|| {
            (
                self.partner.system_priority(),
                self.partner.system,
                self.partner.key(),
                alone,
            )
        })
    }

    /// Whether the wait for others that may join with it is over.
    pub(crate) fn is_ready(&self, now: u64) -> bool {
        self.mux != Mux::Waiting || now >= self.wait_until
    }

    /// Lets the mux machine (6.4.15) go as far as it goes; `ready` tells that nobody has to be waited for.
    pub(crate) fn turn_mux(&mut self, ready: bool, now: u64) {
        loop {
            let partner = self.partner.state;
            let in_step = self.selected && partner.has(State::SYNCHRONIZATION);
            let next = match self.mux {
                Mux::Detached if self.selected => {
                    self.wait_until = now.saturating_add(AGGREGATE_WAIT);
                    self.mux = Mux::Waiting;
                    return;
                }
                Mux::Waiting if !self.selected => Mux::Detached,
                Mux::Waiting if ready => Mux::Attached,
                Mux::Attached if !self.selected => Mux::Detached,
                Mux::Attached if in_step => Mux::Collecting,
                Mux::Collecting if !in_step => Mux::Attached,
                Mux::Collecting if partner.has(State::COLLECTING) => Mux::Distributing,
                Mux::Distributing if !in_step || !partner.has(State::COLLECTING) => Mux::Collecting,
                _ => return,
            };
            self.enter(next);
        }
    }

    /// Whether a PDU goes out now: one is due or there is news, and not too many went before (6.4.4, 6.4.16).
    pub(crate) fn sends(&mut self, now: u64) -> bool {
        if self.receive == Receive::PortDisabled
            || !(self.state.has(State::ACTIVE) || self.partner.state.has(State::ACTIVE))
        {
            return false;
        }
        let period = if self.partner.state.has(State::SHORT_TIMEOUT) {
            FAST_PERIODIC
        } else {
            SLOW_PERIODIC
        };
        if now >= self.last_periodic.saturating_add(period) {
            self.last_periodic = now;
            self.need_to_transmit = true;
        }
        let [oldest, middle, youngest] = self.sent_at;
        let crowded = oldest.is_some_and(|oldest| now < oldest.saturating_add(FAST_PERIODIC));
        if !self.need_to_transmit || crowded {
            return false;
        }
        self.sent_at = [middle, youngest, Some(now)];
        self.need_to_transmit = false;
        self.counters.sent += 1;
        true
    }
}

/// Whether two records are of one end, whatever its state.
fn is_same_end(one: &End, other: &End) -> bool {
    let compared = |end: &End| {
        (
            end.port(),
            end.port_priority(),
            end.system,
            end.system_priority(),
            end.key(),
        )
    };
    compared(one) == compared(other)
}

fn differ(one: &End, other: &End, bit: State) -> bool {
    one.state.has(bit) != other.state.has(bit)
}
