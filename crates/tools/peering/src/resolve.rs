//! A section completed by PeeringDB: addresses of neighbours at exchanges, LANs, AS-SETs and limits.
//!
//! Pure: the section and the snapshot go in, complete neighbours and notes for people come out.

use std::net::IpAddr;
use std::path::Path;

use crate::Error;
use crate::model::{Peering, Relation};
use crate::peeringdb::{PeeringDb, limit_of};
use crate::snapshot::{Snapshot, split_sets};

/// A complete section with its data.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The section; each neighbour has addresses.
    pub peering: Peering,
    /// The data.
    pub snapshot: Snapshot,
    /// What PeeringDB says.
    pub peeringdb: PeeringDb,
    /// What a person should know: data that is old, neighbours that PeeringDB does not have any more.
    pub notes: Vec<String>,
}

/// Completes a section, and reads the data that it needs. `now` is in seconds since 1970.
///
/// # Errors
/// All files that are missing or wrong, and neighbours that cannot be completed.
pub fn load(peering: Peering, folder: &Path, now: u64) -> Result<Loaded, Error> {
    let needed = peering.needs_peeringdb();
    let peeringdb = PeeringDb::load(folder, needed)?;
    let (peering, mut notes) = complete(peering, &peeringdb)?;
    let mut snapshot = Snapshot::load(folder, &peering, now)?;
    notes.append(&mut snapshot.notes);
    Ok(Loaded {
        peering,
        snapshot,
        peeringdb,
        notes,
    })
}

impl Peering {
    /// Whether addresses come from PeeringDB.
    #[must_use]
    pub fn needs_peeringdb(&self) -> bool {
        self.neighbors.iter().any(|it| {
            let exchange = self.exchange(it).and_then(|it| it.peeringdb_ix);
            it.addresses.is_empty() && exchange.is_some()
        })
    }
}

/// Fills in what PeeringDB knows.
///
/// # Errors
/// All neighbours and exchanges that cannot be completed.
pub fn complete(
    mut peering: Peering,
    peeringdb: &PeeringDb,
) -> Result<(Peering, Vec<String>), Error> {
    let (mut notes, mut findings) = (Vec::new(), Vec::new());
    for (name, exchange) in &mut peering.exchanges {
        let Some(ix) = exchange.peeringdb_ix else {
            continue;
        };
        let known = peeringdb.lans.get(&ix);
        if exchange.lan.is_empty() {
            match known {
                Some(lan) if !lan.is_empty() => exchange.lan.clone_from(lan),
                _ => findings.push(format!(
                    "exchanges: {name}: PeeringDB has no LAN of it; run `weir peering fetch`, or name its `lan`"
                )),
            }
        } else if let Some(lan) = known
            && !lan.is_empty()
            && exchange.lan.iter().any(|own| !lan.contains(&own.trunc()))
        {
            notes.push(format!(
                "exchange {name}: PeeringDB has another LAN: {}",
                words(lan)
            ));
        }
        if exchange.mtu.is_none() {
            let mtu = peeringdb.mtus.get(&ix);
            exchange.mtu = mtu.and_then(|it| u16::try_from(*it).ok());
        }
    }
    let exchanges = peering.exchanges.clone();
    for neighbor in &mut peering.neighbors {
        let who = neighbor.name();
        let exchange = neighbor.at.as_ref().and_then(|name| exchanges.get(name));
        if let (true, Some(exchange)) = (neighbor.addresses.is_empty(), exchange)
            && let Some(ix) = exchange.peeringdb_ix
        {
            let mut found: Vec<IpAddr> = peeringdb
                .at(ix, neighbor.asn)
                .flat_map(|it| [it.ipaddr4, it.ipaddr6])
                .flatten()
                .filter(|it| exchange.lan.iter().any(|lan| lan.contains(it)))
                .filter(|it| !neighbor.without.contains(it))
                .collect();
            found.sort_unstable();
            found.dedup();
            neighbor.addresses = found;
            if neighbor.addresses.is_empty() {
                notes.push(format!(
                    "{who}: PeeringDB has no address of it at the exchange any more: it gets no session"
                ));
            }
        }
        let network = peeringdb.networks.get(&neighbor.asn);
        if neighbor.is_filtered_by_prefix()
            && neighbor.prefixes.is_empty()
            && neighbor.as_set.is_none()
        {
            let set = network.and_then(|it| it.irr_as_set.clone());
            let set = set.filter(|it| split_sets(it).next().is_some());
            match set {
                Some(set) if split_sets(&set).all(crate::model::is_as_set) => {
                    neighbor.as_set = Some(set);
                }
                Some(set) => findings.push(format!("{who}: PeeringDB's AS-SET {set:?} is none")),
                // Its own number is an AS-SET of one.
                None => neighbor.as_set = Some(format!("AS{}", neighbor.asn)),
            }
        }
        if neighbor.limit.auto {
            let numbers = network.map(|it| (it.info_prefixes4, it.info_prefixes6));
            let (ipv4, ipv6) = numbers.unwrap_or_default();
            if ipv4.unwrap_or(0) == 0 && ipv6.unwrap_or(0) == 0 {
                notes.push(format!(
                    "{who}: PeeringDB has no number of prefixes; its limits are those of every {}",
                    neighbor.relation.name()
                ));
            }
            let (relation, limit) = (neighbor.relation, &mut neighbor.limit);
            limit.ipv4 = limit.ipv4.or(Some(limit_of(ipv4, relation, true)));
            limit.ipv6 = limit.ipv6.or(Some(limit_of(ipv6, relation, false)));
        }
        if neighbor.relation == Relation::RouteServer && neighbor.multihop.is_some() {
            notes.push(format!("{who}: a route server more than a hop away"));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    for neighbor in &peering.neighbors {
        for address in neighbor.addresses.iter().filter(|it| !seen.insert(**it)) {
            findings.push(format!(
                "{}: {address} has a session already",
                neighbor.name()
            ));
        }
    }
    // A neighbour without an address has no filters, either.
    peering.neighbors.retain(|it| !it.addresses.is_empty());
    if findings.is_empty() {
        Ok((peering, notes))
    } else {
        Err(Error::Findings(findings))
    }
}

fn words(list: &[impl ToString]) -> String {
    let all: Vec<String> = list.iter().map(ToString::to_string).collect();
    all.join(", ")
}
