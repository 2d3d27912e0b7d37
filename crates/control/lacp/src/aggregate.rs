//! The ports of one bond, and which of them are chosen.

use std::collections::BTreeMap;

use weir_wire::MacAddr;
use weir_wire::lacp::{End, Pdu};

use crate::port::{Counters, Group, Mux, Port, Receive};

/// What an end of a bond is to its partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The system's MAC address.
    pub system: MacAddr,
    /// The system's priority; lower decides.
    pub system_priority: u16,
    /// Links of one key may be aggregated.
    pub key: u16,
    /// The priority of each port.
    pub port_priority: u16,
    /// Whether it speaks without being spoken to.
    pub active: bool,
    /// Whether the partner is asked for a PDU every second rather than every thirty.
    pub fast: bool,
}

/// How a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// The receive machine.
    pub receive: Receive,
    /// The mux machine.
    pub mux: Mux,
    /// Whether it leads to the partner that was chosen.
    pub selected: bool,
    /// What this end says of itself.
    pub actor: End,
    /// What the partner says of itself; made of zeroes without one.
    pub partner: End,
    /// What it has done.
    pub counters: Counters,
}

/// One end of a bond: its ports by a name of the caller's choice.
#[derive(Clone, Debug)]
pub struct Aggregate {
    settings: Settings,
    ports: BTreeMap<u32, Port>,
    chosen: Option<Group>,
}

impl Aggregate {
    /// Without ports.
    #[must_use]
    pub fn new(settings: Settings) -> Aggregate {
        Aggregate {
            settings,
            ports: BTreeMap::new(),
            chosen: None,
        }
    }

    /// What this end is to its partner.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// This end is another one from now on: all that was agreed on is agreed on anew.
    pub fn set(&mut self, settings: Settings) {
        if settings != self.settings {
            self.settings = settings;
            self.ports
                .values_mut()
                .for_each(|port| port.take_settings(&settings));
        }
    }

    /// Adds a port, disabled, with its number among the system's; nothing happens when it is there already.
    pub fn add(&mut self, name: u32, number: u16) {
        let settings = &self.settings;
        self.ports
            .entry(name)
            .or_insert_with(|| Port::new(number, settings));
    }

    /// Keeps those ports only that `stays` says yes to.
    pub fn retain(&mut self, mut stays: impl FnMut(u32) -> bool) {
        self.ports.retain(|&name, _| stays(name));
    }

    /// What a port says now, whether or not anything is due: the last word of one that is taken out of use while its
    /// link stays up, so that the far end need not wait for silence.
    #[must_use]
    pub fn pdu(&self, name: u32) -> Option<Pdu> {
        self.ports
            .get(&name)
            .map(|port| Pdu::new(port.actor(&self.settings), port.partner, 0))
    }

    /// Tells whether a port's link is up, and it may be used.
    pub fn set_enabled(&mut self, name: u32, enabled: bool, now: u64) {
        if let Some(port) = self.ports.get_mut(&name) {
            port.set_enabled(enabled, now);
        }
    }

    /// A PDU came in by a port: what its sender says of itself, and what it believes of this end. One that comes
    /// from this very system (a loop) changes nothing.
    pub fn heard(&mut self, name: u32, actor: &End, partner: &End, now: u64) {
        if actor.system == self.settings.system {
            return;
        }
        if let Some(port) = self.ports.get_mut(&name) {
            port.hear(actor, partner, &self.settings, now);
        }
    }

    /// Lets time pass: what is to be sent now, and by which ports.
    pub fn tick(&mut self, now: u64) -> Vec<(u32, Pdu)> {
        self.ports.values_mut().for_each(|port| port.age(now));
        self.select();
        // Those that wait for each other join together (6.4.14: Ready is when all are).
        let ready = self
            .ports
            .values()
            .filter(|port| port.selected)
            .all(|port| port.is_ready(now));
        self.ports
            .values_mut()
            .for_each(|port| port.turn_mux(ready, now));
        let settings = &self.settings;
        let sends = |(&name, port): (&u32, &mut Port)| {
            port.sends(now)
                .then(|| (name, Pdu::new(port.actor(settings), port.partner, 0)))
        };
        self.ports.iter_mut().filter_map(sends).collect()
    }

    /// Selection (6.4.14): the group that was chosen stays as long as a link of it is left; then the one
    /// with most links is chosen, the lowest of equals.
    fn select(&mut self) {
        let mut groups: BTreeMap<Group, usize> = BTreeMap::new();
        for group in self.ports.values().filter_map(Port::group) {
            *groups.entry(group).or_default() += 1;
        }
        if self
            .chosen
            .is_none_or(|chosen| !groups.contains_key(&chosen))
        {
            let most = groups.values().max().copied();
            self.chosen = groups
                .iter()
                .find(|(_, count)| Some(**count) == most)
                .map(|(group, _)| *group);
        }
        for port in self.ports.values_mut() {
            let group = port.group();
            port.selected = group.is_some() && group == self.chosen;
        }
    }

    /// Whether a port takes frames, and whether it sends them.
    #[must_use]
    pub fn carries(&self, name: u32) -> (bool, bool) {
        let mux = self.ports.get(&name).map_or(Mux::Detached, |port| port.mux);
        (mux >= Mux::Collecting, mux >= Mux::Distributing)
    }

    /// How a port is.
    #[must_use]
    pub fn status(&self, name: u32) -> Option<PortStatus> {
        let port = self.ports.get(&name)?;
        let Port {
            receive,
            mux,
            selected,
            partner,
            counters,
            ..
        } = *port;
        Some(PortStatus {
            receive,
            mux,
            selected,
            actor: port.actor(&self.settings),
            partner,
            counters,
        })
    }
}
