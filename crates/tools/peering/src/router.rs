//! The section against the configuration of the router that it is a part of: what no generator for BGP alone can see.

use weir_config::Config;

use crate::model::{Mode, Peering};

/// The largest number of routes that sessions may bring before a person should know.
const MOST_ROUTES: u64 = 4_000_000;

/// What the router's configuration says of the section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossCheck {
    /// Why the section cannot work.
    pub errors: Vec<String>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// Compares the section with the interfaces of a router. A configuration without interfaces is that of no router.
#[must_use]
pub fn cross_check(peering: &Peering, config: &Config) -> CrossCheck {
    let mut found = CrossCheck::default();
    if config.interfaces.is_empty() {
        return found;
    }
    for (name, exchange) in &peering.exchanges {
        let Some(of) = &exchange.interface else {
            continue;
        };
        let Some(interface) = config.interfaces.get(of) else {
            found.errors.push(format!(
                "exchanges: {name}: interface: this router has no interface {of:?}"
            ));
            continue;
        };
        for lan in &exchange.lan {
            let own = interface.addresses.iter();
            let mut own = own.filter(|it| lan.contains(&it.addr()));
            match own.next() {
                None => found.errors.push(format!(
                    "exchanges: {name}: {of} has no address in the LAN {lan}"
                )),
                Some(own) if own.trunc() != lan.trunc() => found.warnings.push(format!(
                    "exchange {name}: {of} has {own}, and the LAN is {lan}"
                )),
                Some(_) => {}
            }
        }
        if let Some(mtu) = exchange.mtu.filter(|mtu| *mtu != interface.mtu) {
            found.warnings.push(format!(
                "exchange {name}: {of} has an MTU of {}, the LAN of {mtu}",
                interface.mtu
            ));
        }
        if interface.urpf.is_none() && interface.acl.is_empty() {
            found.warnings.push(format!(
                "exchange {name}: {of} has neither uRPF nor an access list; `weir peering outputs` writes one"
            ));
        }
        if !interface.sflow {
            found.warnings.push(format!(
                "exchange {name}: {of} is not sampled, so that plans cannot weigh its routes"
            ));
        }
        if !config.linux.interfaces.is_empty() && !config.linux.interfaces.contains_key(of) {
            found.errors.push(format!(
                "exchanges: {name}: {of} has no TAP in `linux`, so that BIRD has no session there"
            ));
        }
    }
    let locals = || config.interfaces.values().flat_map(|it| &it.addresses);
    let mut limits = 0u64;
    for neighbor in &peering.neighbors {
        for (name, session) in peering.sessions(neighbor) {
            if session.mode != Mode::Down {
                limits += u64::from(session.limit.unwrap_or(0));
            }
            if let Some(local) = session.local_address
                && !locals().any(|it| it.addr() == local)
            {
                found
                    .errors
                    .push(format!("{name}: local-address: no interface has {local}"));
            }
            let is_near = session.multihop.is_none();
            if is_near && !locals().any(|it| it.contains(&session.address)) {
                found.errors.push(format!(
                    "{name}: {} is in the subnet of no interface; write `multihop` if it is far",
                    session.address
                ));
            }
        }
    }
    if limits > MOST_ROUTES {
        found
            .warnings
            .push(format!("the limits of all sessions allow {limits} routes"));
    }
    found
}
