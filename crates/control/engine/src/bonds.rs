//! Bonds on the control side: which members carry frames, and the talk with the far end about it.
//!
//! A bond is an interface without a port. Which of its members are in use follows from its mode, their links and,
//! in mode `lacp`, from what both ends agreed on (`weir_lacp`, which this file feeds with links, PDUs and time). Whenever any
//! of that changes, the entries of the bond and of its members are made anew, and one publication shows workers
//! all of it: what left by a member that is gone leaves by the others from then on. The link of a bond is up while some member
//! carries frames; its address is configured, or that of the member first by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_buf::Flags;
use weir_config::{AdminState, BondMode, LacpRate, LoadBalance};
use weir_lacp::{Aggregate, PortStatus, Receive, Settings};
use weir_port::LinkState;
use weir_port::bond::{Bond, Layers, Spread};
use weir_wire::lacp::{End, MULTICAST, Pdu, State};
use weir_wire::{EtherType, EthernetHeader, MacAddr};
use zerocopy::IntoBytes;

use crate::apply::made_up_mac;
use crate::control::Control;
use crate::worker::Command;

/// IEEE 802.1AX-2020 section 6.3.2: the priorities that most have, in the middle of the range.
const PRIORITY: u16 = 0x8000;
/// Bytes of a LACP frame.
const FRAME: usize = size_of::<EthernetHeader>() + Pdu::LEN;

/// A bond that speaks LACP.
pub(crate) struct Talk {
    pub(crate) aggregate: Aggregate,
    /// The state of each member that workers have: whether it collects, whether it distributes.
    published: BTreeMap<u32, (bool, bool)>,
}

/// A member and what it may do.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Whether its link is up and it may be used at all.
    pub(crate) usable: bool,
    pub(crate) collects: bool,
    pub(crate) distributes: bool,
    speed: u64,
    mac: MacAddr,
}

impl Control {
    /// The members of a bond that there are, in the order of their names.
    pub(crate) fn members_of(&self, bond: &str) -> Vec<Member> {
        let Some(wanted) = self.config.interfaces.get(bond) else {
            return Vec::new();
        };
        let mode = wanted.as_bond().map(|bond| bond.mode).unwrap_or_default();
        let bond_up = wanted.state == AdminState::Up;
        let talk = self.bonds.get(bond);
        let member = |(name, wanted): (&str, &weir_config::Interface)| {
            let attached = self.interfaces.get(name)?;
            let usable = bond_up
                && wanted.state == AdminState::Up
                && attached.link.up
                && attached.tx_queues > 0;
            let agreed = talk.map_or((false, false), |talk| {
                talk.aggregate.carries(attached.index)
            });
            let (collects, distributes) = if mode == BondMode::Lacp {
                agreed
            } else {
                (true, true)
            };
            Some(Member {
                name: name.to_owned(),
                index: attached.index,
                usable,
                collects: usable && collects,
                distributes: usable && distributes,
                speed: attached.link.speed,
                mac: wanted.mac.map_or(attached.mac, |mac| MacAddr(mac.0)),
            })
        };
        let mut members: Vec<Member> = self.config.members_of(bond).filter_map(member).collect();
        if mode == BondMode::ActiveBackup {
            let backups = members.iter_mut().filter(|member| member.usable).skip(1);
            backups.for_each(|member| (member.collects, member.distributes) = (false, false));
        }
        members
    }

    /// Whether the bond takes frames from a member now.
    pub(crate) fn collects(&self, bond: &str, member: &str) -> bool {
        self.members_of(bond)
            .iter()
            .any(|it| it.name == member && it.collects)
    }

    /// The state of a bond that workers get.
    pub(crate) fn spread(
        &self,
        name: &str,
        bond: &weir_config::Bond,
        MacAddr(mac): MacAddr,
    ) -> Bond {
        let [.., a, b, c, d] = mac;
        let layers = match bond.load_balance {
            LoadBalance::L2 => Layers::L2,
            LoadBalance::L23 => Layers::L23,
            LoadBalance::L34 => Layers::L34,
        };
        let spread = match bond.mode {
            BondMode::RoundRobin => Spread::Turns,
            BondMode::Broadcast => Spread::All,
            BondMode::ActiveBackup | BondMode::Lacp | BondMode::Xor => Spread::Flows(layers),
        };
        Bond {
            spread,
            members: self
                .members_of(name)
                .iter()
                .filter(|member| member.distributes)
                .map(|member| member.index)
                .collect(),
            seed: u32::from_be_bytes([a, b, c, d]),
            lacp: bond.mode == BondMode::Lacp,
        }
    }

    /// Works out anew what a bond and its members are, and does what follows.
    pub(crate) fn refresh_bond(&mut self, name: &str) {
        let Some(index) = self.interfaces.get(name).map(|attached| attached.index) else {
            return;
        };
        let Some(bond) = self
            .config
            .interfaces
            .get(name)
            .and_then(weir_config::Interface::as_bond)
            .copied()
        else {
            return;
        };
        let first = self
            .members_of(name)
            .first()
            .map_or(made_up_mac(index), |first| first.mac);
        if let Some(attached) = self.interfaces.get_mut(name) {
            attached.mac = first;
        }
        let mac_before = self.tables.interface(index).map(|interface| interface.mac);
        self.sync_talk(name, index, &bond);
        let members = self.members_of(name);
        let carrying = || members.iter().filter(|member| member.distributes);
        let link = LinkState {
            up: carrying().next().is_some(),
            speed: carrying().map(|member| member.speed).sum(),
        };
        let before = self
            .interfaces
            .get_mut(name)
            .map(|attached| std::mem::replace(&mut attached.link, link));
        for member in &members {
            self.refresh_alone(&member.name);
        }
        self.refresh_alone(name);
        if let Some(talk) = self.bonds.get_mut(name) {
            talk.published = published(&talk.aggregate, &members);
        }
        if mac_before != self.tables.interface(index).map(|interface| interface.mac) {
            self.refresh_adjacencies(index);
        }
        if before.is_some_and(|before| before.up != link.up) {
            self.link_changed(name, index, link);
        }
        for sub in self.sub_interfaces_of(name) {
            self.take_after_parent(&sub);
        }
    }

    /// Tells the machines of a bond what its members and settings are; there are none in other modes.
    fn sync_talk(&mut self, name: &str, index: u32, bond: &weir_config::Bond) {
        if bond.mode != BondMode::Lacp {
            self.bonds.remove(name);
            return;
        }
        let configured = self
            .config
            .interfaces
            .get(name)
            .and_then(|it| it.mac)
            .map(|mac| MacAddr(mac.0));
        let Some(system) = configured.or(self.interfaces.get(name).map(|attached| attached.mac))
        else {
            return;
        };
        let settings = Settings {
            system,
            system_priority: PRIORITY,
            key: number(index),
            port_priority: PRIORITY,
            active: true,
            fast: bond.lacp_rate == LacpRate::Fast,
        };
        let (members, now) = (self.members_of(name), self.clock.now());
        let talk = self.bonds.entry(name.to_owned()).or_insert_with(|| Talk {
            aggregate: Aggregate::new(settings),
            published: BTreeMap::new(),
        });
        talk.aggregate.set(settings);
        talk.aggregate
            .retain(|port| members.iter().any(|member| member.index == port));
        let mut farewells = Vec::new();
        for member in &members {
            talk.aggregate.add(member.index, number(member.index));
            let was_enabled = talk
                .aggregate
                .status(member.index)
                .is_some_and(|port| port.receive != Receive::PortDisabled);
            talk.aggregate.set_enabled(member.index, member.usable, now);
            if was_enabled && !member.usable {
                farewells.extend(
                    talk.aggregate
                        .pdu(member.index)
                        .map(|pdu| (member.index, member.mac, pdu)),
                );
            }
        }
        // Workers see the member as it was until the next publication.
        for (member, mac, pdu) in farewells {
            self.send_slow(member, mac, &pdu);
            if let Some(worker) = self.workers.first_mut() {
                worker.sync();
            }
        }
    }

    /// The far end of a member spoke.
    pub(crate) fn heard_lacp(&mut self, interface: u32, actor: &End, partner: &End) {
        let now = self.clock.now();
        let bond = self
            .name_of(interface)
            .and_then(|name| self.config.interfaces.get(name)?.bond.clone());
        if let Some(talk) = bond.and_then(|bond| self.bonds.get_mut(&bond)) {
            talk.aggregate.heard(interface, actor, partner, now);
        }
    }

    /// Lets time pass for the machines, shows workers what they agreed on, and then tells the far ends.
    pub(crate) fn tick_bonds(&mut self) {
        let now = self.clock.now();
        let there = &self.config.interfaces;
        self.bonds.retain(|name, _| there.contains_key(name));
        let mut pdus = Vec::new();
        for name in self.bonds.keys().cloned().collect::<Vec<_>>() {
            let members = self.members_of(&name);
            let Some(talk) = self.bonds.get_mut(&name) else {
                continue;
            };
            pdus.extend(talk.aggregate.tick(now));
            if talk.published != published(&talk.aggregate, &members) {
                self.refresh_bond(&name);
            }
        }
        self.settle_or_log();
        for (member, pdu) in pdus {
            if let Some(mac) = self
                .tables
                .interface(member)
                .filter(|interface| interface.can_send)
                .map(|interface| interface.mac)
            {
                self.send_slow(member, mac, &pdu);
            }
        }
    }

    /// Has a worker send a PDU; one that finds no buffer is sent when the next is due.
    fn send_slow(&mut self, member: u32, mac: MacAddr, pdu: &Pdu) {
        let Some(mut packet) = self.memory.any().alloc() else {
            return;
        };
        let header = EthernetHeader::new(MULTICAST, mac, EtherType::SLOW);
        let frame = [header.as_bytes(), pdu.as_bytes()].concat();
        debug_assert_eq!(frame.len(), FRAME);
        if !packet.fill(&frame) {
            return;
        }
        packet.set_flags(Flags::MULTICAST | Flags::ORIGINATED);
        packet.set_interface(member);
        packet.set_aux(member);
        if let Some(worker) = self.workers.first_mut() {
            worker.tell(Command::Send(packet));
        }
    }

    /// What the workers' table says of a bond, if the interface is one.
    pub(crate) fn bond_entry(
        &self,
        name: &str,
        wanted: &weir_config::Interface,
        mac: MacAddr,
    ) -> Option<Arc<Bond>> {
        wanted
            .as_bond()
            .map(|bond| Arc::new(self.spread(name, bond, mac)))
    }
}

fn published(aggregate: &Aggregate, members: &[Member]) -> BTreeMap<u32, (bool, bool)> {
    members
        .iter()
        .map(|member| (member.index, aggregate.carries(member.index)))
        .collect()
}

/// An interface's number where LACP has room for sixteen bits; 0 is nobody's (IEEE 802.1AX-2020 section 6.3.4).
fn number(index: u32) -> u16 {
    u16::try_from(index.wrapping_sub(1) % 0xffff).unwrap_or(0) + 1
}

impl Control {
    /// All bonds, in the order of their interfaces.
    pub(crate) fn bond_views(&self) -> weir_api::Bonds {
        let bond = |(name, wanted): (&String, &weir_config::Interface)| {
            let (bond, attached) = (wanted.as_bond()?, self.interfaces.get(name)?);
            let aggregate = self.bonds.get(name).map(|talk| &talk.aggregate);
            let view = weir_api::Bond {
                interface: name.clone(),
                mode: bond.mode.word().to_owned(),
                load_balance: bond.balances().then(|| bond.load_balance.word().to_owned()),
                link: attached.link.up.into(),
                speed: attached.link.speed,
                members: self
                    .members_of(name)
                    .iter()
                    .map(|member| member_view(member, aggregate))
                    .collect(),
            };
            Some((attached.index, view))
        };
        let mut bonds: Vec<_> = self.config.interfaces.iter().filter_map(bond).collect();
        bonds.sort_by_key(|(index, _)| *index);
        weir_api::Bonds {
            bonds: bonds.into_iter().map(|(_, bond)| bond).collect(),
        }
    }
}

fn member_view(member: &Member, aggregate: Option<&Aggregate>) -> weir_api::BondMember {
    let port = |status: PortStatus| weir_api::LacpPort {
        receive: status.receive.name().to_owned(),
        mux: status.mux.name().to_owned(),
        selected: status.selected,
        actor: end_view(&status.actor),
        partner: Some(&status.partner)
            .filter(|partner| partner.system != MacAddr::ZERO)
            .map(end_view),
        received: status.counters.received,
        sent: status.counters.sent,
        expired: status.counters.expired,
        partner_changes: status.counters.partner_changes,
    };
    weir_api::BondMember {
        interface: member.name.clone(),
        link: member.usable.into(),
        collecting: member.collects,
        distributing: member.distributes,
        lacp: aggregate
            .and_then(|aggregate| aggregate.status(member.index))
            .map(port),
    }
}

fn end_view(end: &End) -> weir_api::LacpEnd {
    const BITS: [(State, &str); 8] = [
        (State::ACTIVE, "active"),
        (State::SHORT_TIMEOUT, "short-timeout"),
        (State::AGGREGATION, "aggregation"),
        (State::SYNCHRONIZATION, "synchronization"),
        (State::COLLECTING, "collecting"),
        (State::DISTRIBUTING, "distributing"),
        (State::DEFAULTED, "defaulted"),
        (State::EXPIRED, "expired"),
    ];
    weir_api::LacpEnd {
        system: end.system.to_string(),
        system_priority: end.system_priority(),
        key: end.key(),
        port: end.port(),
        port_priority: end.port_priority(),
        state: BITS
            .iter()
            .filter(|(bit, _)| end.state.has(*bit))
            .map(|(_, word)| (*word).to_owned())
            .collect(),
    }
}
