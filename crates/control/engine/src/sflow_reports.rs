//! What the sFlow agent reports of interfaces: ports, VLAN sub-interfaces, bonds and their members.
//!
//! A port is reported when it is sampled. A sub-interface is when its port is; its VLAN has a record of its
//! own. Members of a bond carry a record that says to which; the bond itself is reported, counters only,
//! when a member is sampled (sFlow's LAG extension: the members are the data sources).

use weir_config::AdminState;
use weir_flowfmt::sflow::{LagCounters, UNKNOWN_COUNTER_32, VlanCounters};
use weir_nodes::names::PORT_TX;
use weir_port::Source;
use weir_port::interface::DirectionSums;
use weir_telemetry::agent::{InterfaceReport, ethernet_counters};

use crate::control::{Attached, Control};
use crate::router::Router;
use crate::views::{broken, found_no_room, missed};

/// `ifType` as IANA numbers it.
const ETHERNET: u32 = 6;
const L2_VLAN: u32 = 135;
const AGGREGATE: u32 = 161;

impl Router {
    /// What the sFlow agent reports of each interface.
    pub(crate) fn reports(&self) -> Vec<InterfaceReport> {
        let control = self.control();
        let drops = control.drops();
        // What was lost on the way out is a discard of the interface that it should have left by.
        let coming_in: Vec<_> = drops
            .iter()
            .filter(|drop| control.pair(drop.place).0 != PORT_TX)
            .collect();
        let discards = |index: u32| {
            coming_in
                .iter()
                .filter(|drop| drop.interface == index)
                .map(|drop| drop.count)
                .sum()
        };
        control
            .interfaces
            .iter()
            .map(|(name, attached)| control.report(name, attached, discards(attached.index)))
            .collect()
    }
}

impl Control {
    fn report(&self, name: &str, attached: &Attached, discards: u64) -> InterfaceReport {
        let wanted = self.config.interfaces.get(name);
        let (rx, tx) = (attached.counters.rx(), attached.counters.tx());
        InterfaceReport {
            ifindex: attached.index,
            made: attached.made,
            name: name.to_owned(),
            sampled: wanted.is_some_and(|wanted| self.is_reported(name, wanted)),
            kind: wanted.map_or(0, kind),
            mac: Some(attached.mac.0),
            speed: attached.link.speed,
            admin_up: wanted.is_some_and(|wanted| wanted.state == AdminState::Up),
            oper_up: attached.link.up,
            in_octets: rx.bytes,
            in_unicast: rx.unicast,
            in_multicast: rx.multicast,
            in_broadcast: rx.broadcast,
            // RFC 2863: discards are what was good and found no room, or no way; errors what was no good.
            in_discards: discards + found_no_room(attached),
            in_errors: broken(attached),
            out_octets: tx.bytes,
            out_unicast: tx.unicast,
            out_multicast: tx.multicast,
            out_broadcast: tx.broadcast,
            out_discards: attached.counters.tx_lost(),
            out_errors: 0,
            missed: missed(attached),
            ethernet: of_the_driver(attached),
            vlan: wanted.and_then(|wanted| vlan(wanted, rx, tx, discards)),
            lag: wanted.and_then(|wanted| self.lag(wanted, attached.index)),
        }
    }

    /// Whether counters are reported: of what is sampled, of what shares a sampled port, and of what is made of some.
    fn is_reported(&self, name: &str, wanted: &weir_config::Interface) -> bool {
        if wanted.sflow {
            return true;
        }
        if let Some(sub) = wanted.sub_interface() {
            let parent = self.config.interfaces.get(&sub.parent);
            return parent.is_some_and(|parent| self.is_reported(&sub.parent, parent));
        }
        wanted.as_bond().is_some() && self.config.members_of(name).any(|(_, member)| member.sflow)
    }

    /// A member's record. Bonds that do not speak LACP have no states, and no PDUs are counted.
    fn lag(&self, wanted: &weir_config::Interface, index: u32) -> Option<LagCounters> {
        let bond = wanted.bond.as_deref()?;
        let aggregate = self.interfaces.get(bond)?;
        let unknown = LagCounters {
            actor_system: aggregate.mac.0,
            aggregate: aggregate.index,
            lacpdus_rx: UNKNOWN_COUNTER_32,
            marker_pdus_rx: UNKNOWN_COUNTER_32,
            marker_responses_rx: UNKNOWN_COUNTER_32,
            unknown_rx: UNKNOWN_COUNTER_32,
            illegal_rx: UNKNOWN_COUNTER_32,
            lacpdus_tx: UNKNOWN_COUNTER_32,
            marker_pdus_tx: UNKNOWN_COUNTER_32,
            marker_responses_tx: UNKNOWN_COUNTER_32,
            ..LagCounters::default()
        };
        let Some(status) = self
            .bonds
            .get(bond)
            .and_then(|talk| talk.aggregate.status(index))
        else {
            return Some(unknown);
        };
        Some(LagCounters {
            actor_system: status.actor.system.0,
            partner_system: status.partner.system.0,
            actor_admin_state: status.actor.state.0,
            actor_oper_state: status.actor.state.0,
            partner_admin_state: status.partner.state.0,
            partner_oper_state: status.partner.state.0,
            // Counters of 32 bits wrap.
            lacpdus_rx: status.counters.received as u32,
            lacpdus_tx: status.counters.sent as u32,
            ..unknown
        })
    }
}

fn kind(wanted: &weir_config::Interface) -> u32 {
    use weir_config::Device;
    match &wanted.device {
        Some(Device::SubInterface(_)) => L2_VLAN,
        Some(Device::Bond(_)) => AGGREGATE,
        _ => ETHERNET,
    }
}

/// What driver and device count of an Ethernet's faults.
fn of_the_driver(attached: &Attached) -> Option<weir_flowfmt::sflow::EthernetCounters> {
    let counters = attached.port.as_ref()?.counters();
    let named = counters
        .into_iter()
        .filter(|counter| matches!(counter.source, Source::Ethtool | Source::Kernel));
    ethernet_counters(
        &named
            .map(|counter| (counter.name, counter.value))
            .collect::<Vec<_>>(),
    )
}

/// The VLAN of a sub-interface, both directions together, as the record has it.
fn vlan(
    wanted: &weir_config::Interface,
    rx: DirectionSums,
    tx: DirectionSums,
    discards: u64,
) -> Option<VlanCounters> {
    let (_, vlan) = wanted.sub_interface()?.encapsulation.outer()?;
    let both = |rx: u64, tx: u64| rx.wrapping_add(tx);
    Some(VlanCounters {
        vlan: vlan.into(),
        octets: both(rx.bytes, tx.bytes),
        // Counters of 32 bits wrap.
        unicast: both(rx.unicast, tx.unicast) as u32,
        multicast: both(rx.multicast, tx.multicast) as u32,
        broadcast: both(rx.broadcast, tx.broadcast) as u32,
        discards: discards as u32,
    })
}
