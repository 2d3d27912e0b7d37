//! What needs attention: the section, PeeringDB and the running daemon compared.

use std::collections::BTreeMap;

use crate::birdc::Session;
use crate::model::{Mode, Peering};
use crate::peeringdb::{PeeringDb, derived_limit};

/// The share of a limit, in percent, from which on a session is reported.
const ALARM: u64 = 80;

/// All findings, a line each. `sessions` is what BIRD has; `written` is the section before PeeringDB completed it.
#[must_use]
pub fn report(
    peering: &Peering,
    written: &Peering,
    peeringdb: &PeeringDb,
    sessions: &[Session],
) -> Vec<String> {
    let mut lines = Vec::new();
    let by_name: BTreeMap<_, _> = sessions.iter().map(|it| (it.name.as_str(), it)).collect();
    for neighbor in &peering.neighbors {
        for (name, session) in peering.sessions(neighbor) {
            let address = session.address;
            match by_name.get(name.as_str()) {
                None => lines.push(format!(
                    "{name} ({address}): BIRD does not have it; apply the configuration"
                )),
                Some(it) if !it.is_up && session.mode != Mode::Down => {
                    lines.push(format!("{name} ({address}) is down: {}", it.state));
                }
                Some(it) => {
                    let routes = it.imported + it.filtered;
                    if it.limit.is_some_and(|limit| routes * 100 >= limit * ALARM) {
                        lines.push(format!(
                            "{name}: {routes} routes, {ALARM} % of its limit or more"
                        ));
                    }
                    if it.filtered > 0 {
                        lines.push(format!(
                            "{name}: {} routes are rejected; `weir peering routes {} --rejected` lists them",
                            it.filtered, neighbor.asn
                        ));
                    }
                }
            }
        }
    }
    limits(peering, peeringdb, &mut lines);
    addresses(written, peeringdb, &mut lines);
    could_peer(peering, peeringdb, &mut lines);
    lines
}

fn limits(peering: &Peering, peeringdb: &PeeringDb, lines: &mut Vec<String>) {
    for neighbor in &peering.neighbors {
        let Some(network) = peeringdb.networks.get(&neighbor.asn) else {
            if !peeringdb.networks.is_empty() && neighbor.asn != peering.asn {
                lines.push(format!("AS{} is not in PeeringDB any more", neighbor.asn));
            }
            continue;
        };
        for (family, is_ipv4, prefixes) in [
            ("ipv4", true, network.info_prefixes4),
            ("ipv6", false, network.info_prefixes6),
        ] {
            let derived = prefixes.filter(|it| *it > 0).map(derived_limit);
            if let (Some(limit), Some(derived)) = (neighbor.limit.of(is_ipv4), derived)
                && limit < derived
            {
                lines.push(format!(
                    "{}: limit {family} is {limit}; PeeringDB's number suggests {derived}",
                    neighbor.name()
                ));
            }
        }
    }
}

/// Addresses of the section that PeeringDB does not have, or has otherwise.
fn addresses(written: &Peering, peeringdb: &PeeringDb, lines: &mut Vec<String>) {
    for neighbor in &written.neighbors {
        let Some(ix) = written.exchange(neighbor).and_then(|it| it.peeringdb_ix) else {
            continue;
        };
        if peeringdb.presences.is_empty() {
            continue;
        }
        let known: Vec<std::net::IpAddr> = peeringdb
            .at(ix, neighbor.asn)
            .flat_map(|it| [it.ipaddr4, it.ipaddr6])
            .flatten()
            .collect();
        if known.is_empty() {
            lines.push(format!(
                "{}: it is not there any more, says PeeringDB",
                neighbor.name()
            ));
            continue;
        }
        for address in neighbor.addresses.iter().filter(|it| !known.contains(it)) {
            let same = known.iter().filter(|it| it.is_ipv4() == address.is_ipv4());
            let now: Vec<String> = same.map(ToString::to_string).collect();
            lines.push(format!(
                "{}: the address changed: {address} is now {}, says PeeringDB",
                neighbor.name(),
                if now.is_empty() {
                    "none".to_owned()
                } else {
                    now.join(", ")
                }
            ));
        }
    }
}

/// Networks at the own exchanges with an open policy that are no neighbours.
fn could_peer(peering: &Peering, peeringdb: &PeeringDb, lines: &mut Vec<String>) {
    let mut candidates: BTreeMap<u32, (u64, Vec<&str>)> = BTreeMap::new();
    for (name, exchange) in &peering.exchanges {
        let Some(ix) = exchange.peeringdb_ix else {
            continue;
        };
        for it in peeringdb
            .presences
            .iter()
            .filter(|it| it.ix_id == ix && it.operational)
        {
            let is_neighbor = peering.neighbors.iter().any(|own| own.asn == it.asn);
            if is_neighbor || it.asn == peering.asn {
                continue;
            }
            let (speed, names) = candidates.entry(it.asn).or_default();
            *speed += it.speed;
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let mut open: Vec<_> = candidates
        .into_iter()
        .filter_map(|(asn, (speed, names))| {
            let network = peeringdb.networks.get(&asn)?;
            (network.policy_general == "Open").then_some((speed, asn, &network.name, names))
        })
        .collect();
    open.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    for (speed, asn, name, names) in open {
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        lines.push(format!(
            "AS{asn} ({name}) could peer at {}: {speed} Mbit/s, its policy is open",
            names.join(", ")
        ));
    }
}
