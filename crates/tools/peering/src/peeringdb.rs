//! PeeringDB's objects in a snapshot: networks, their addresses at exchanges, and the exchanges' LANs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::model::Relation;
use crate::{Error, read};

/// A network (`net`).
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Network {
    /// Its AS number.
    pub asn: u32,
    /// Its name.
    #[serde(default, deserialize_with = "or_empty")]
    pub name: String,
    /// Its AS-SETs, separated by blanks or commas.
    #[serde(default)]
    pub irr_as_set: Option<String>,
    /// How many IPv4 prefixes it announces at most.
    #[serde(default)]
    pub info_prefixes4: Option<u32>,
    /// How many IPv6 prefixes it announces at most.
    #[serde(default)]
    pub info_prefixes6: Option<u32>,
    /// Whether its routes are never behind route servers.
    #[serde(default)]
    pub info_never_via_route_servers: bool,
    /// With whom it peers: `Open`, `Selective`, `Restrictive`, `No`.
    #[serde(default, deserialize_with = "or_empty")]
    pub policy_general: String,
}

/// A network's router at an exchange (`netixlan`).
#[derive(Clone, Debug, Deserialize)]
pub struct Presence {
    /// The network's AS number.
    pub asn: u32,
    /// The exchange.
    pub ix_id: u32,
    /// Its IPv4 address.
    #[serde(default)]
    pub ipaddr4: Option<IpAddr>,
    /// Its IPv6 address.
    #[serde(default)]
    pub ipaddr6: Option<IpAddr>,
    /// Megabits a second.
    #[serde(default)]
    pub speed: u64,
    /// Whether it peers with the route servers.
    #[serde(default)]
    pub is_rs_peer: bool,
    /// Whether it is in operation.
    #[serde(default = "yes")]
    pub operational: bool,
}

const fn yes() -> bool {
    true
}

/// The LAN of an exchange (`ixlan`).
#[derive(Clone, Debug, Deserialize)]
pub struct Lan {
    /// Its number.
    pub id: u32,
    /// The exchange.
    pub ix_id: u32,
    /// Its MTU.
    #[serde(default)]
    pub mtu: Option<u32>,
}

/// A prefix of a LAN (`ixpfx`).
#[derive(Clone, Debug, Deserialize)]
struct LanPrefix {
    ixlan_id: u32,
    prefix: IpNet,
}

#[derive(Deserialize)]
struct Reply<T> {
    data: Vec<T>,
}

fn or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(from)?.unwrap_or_default())
}

/// The files of a snapshot and PeeringDB's names of the objects.
///
/// Addresses at exchanges come first: whose networks are wanted follows from them.
pub const FILES: [(&str, &str); 4] = [
    ("netixlan.json", "netixlan"),
    ("ixlan.json", "ixlan"),
    ("ixpfx.json", "ixpfx"),
    ("peeringdb.json", "net"),
];

fn list<T: DeserializeOwned>(folder: &Path, file: &str) -> Result<Vec<T>, Error> {
    let path = folder.join(file);
    let reply: Reply<T> = serde_json::from_str(&read(&path)?).map_err(|error| Error::Format {
        path: path.display().to_string(),
        reason: error.to_string(),
    })?;
    Ok(reply.data)
}

/// The number of objects of a file.
pub(crate) fn count(folder: &Path, file: &str) -> Result<usize, Error> {
    match file {
        "peeringdb.json" => list::<Network>(folder, file).map(|it| it.len()),
        "netixlan.json" => list::<Presence>(folder, file).map(|it| it.len()),
        "ixlan.json" => list::<Lan>(folder, file).map(|it| it.len()),
        _ => list::<LanPrefix>(folder, file).map(|it| it.len()),
    }
}

/// The networks of a snapshot, by AS number.
///
/// # Errors
/// When the file is missing or damaged.
pub fn networks(folder: &Path) -> Result<BTreeMap<u32, Network>, Error> {
    let all: Vec<Network> = list(folder, "peeringdb.json")?;
    Ok(all.into_iter().map(|it| (it.asn, it)).collect())
}

/// The same; none when there is no file.
///
/// # Errors
/// When the file is damaged.
pub fn networks_if_any(folder: &Path) -> Result<BTreeMap<u32, Network>, Error> {
    if folder.join("peeringdb.json").exists() {
        networks(folder)
    } else {
        Ok(BTreeMap::new())
    }
}

/// What PeeringDB says of networks and exchanges.
#[derive(Clone, Debug, Default)]
pub struct PeeringDb {
    /// Networks by AS number.
    pub networks: BTreeMap<u32, Network>,
    /// Routers at exchanges.
    pub presences: Vec<Presence>,
    /// LAN prefixes by exchange.
    pub lans: BTreeMap<u32, Vec<IpNet>>,
    /// MTUs by exchange.
    pub mtus: BTreeMap<u32, u32>,
}

impl PeeringDb {
    /// Reads what the snapshot has of it. `needed` = a configuration takes addresses from it.
    ///
    /// # Errors
    /// When a file is damaged, or missing although it is needed.
    pub fn load(folder: &Path, needed: bool) -> Result<PeeringDb, Error> {
        let there = |file: &str| needed || folder.join(file).exists();
        let mut all = PeeringDb {
            networks: networks_if_any(folder)?,
            ..PeeringDb::default()
        };
        if there("netixlan.json") {
            all.presences = list(folder, "netixlan.json")?;
        }
        if folder.join("ixlan.json").exists() && folder.join("ixpfx.json").exists() {
            let lans: Vec<Lan> = list(folder, "ixlan.json")?;
            let prefixes: Vec<LanPrefix> = list(folder, "ixpfx.json")?;
            for lan in lans {
                if let Some(mtu) = lan.mtu {
                    all.mtus.insert(lan.ix_id, mtu);
                }
                let own = prefixes.iter().filter(|it| it.ixlan_id == lan.id);
                let own = own.map(|it| it.prefix.trunc());
                all.lans.entry(lan.ix_id).or_default().extend(own);
            }
        }
        Ok(all)
    }

    /// The routers of a network at an exchange that are in operation.
    pub fn at(&self, ix: u32, asn: u32) -> impl Iterator<Item = &Presence> {
        let wanted = move |it: &&Presence| it.ix_id == ix && it.asn == asn && it.operational;
        self.presences.iter().filter(wanted)
    }
}

/// The limit that follows from a number of prefixes: room for growth, and for networks that keep it low.
#[must_use]
pub fn derived_limit(prefixes: u32) -> u32 {
    ((u64::from(prefixes) + 100) * 115 / 100).min(u64::from(u32::MAX)) as u32
}

/// The limit of a network: derived from PeeringDB's number; where that is absent or 0, the relation's.
#[must_use]
pub fn limit_of(prefixes: Option<u32>, relation: Relation, is_ipv4: bool) -> u32 {
    let (most4, most6) = relation.most_routes();
    let most = if is_ipv4 { most4 } else { most6 };
    match prefixes {
        None | Some(0) => most,
        Some(number) => derived_limit(number).min(most),
    }
}
