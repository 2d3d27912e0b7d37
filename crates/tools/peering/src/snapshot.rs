//! Public data in a folder. A file that is missing, empty or damaged is an error: it never opens a filter.
//!
//! | file | as it is written by |
//! |---|---|
//! | `irr/SET.4.json`, `irr/SET.6.json` | `bgpq4 -j -l NN`: prefixes of an AS-SET |
//! | `irr/SET.asns.json` | `bgpq4 -t -j -l NN`: its members; without the file origins are not compared with them |
//! | `vrps.json` | rpki-client: ROA payloads and ASPA objects |
//! | `peeringdb.json`, `netixlan.json`, `ixlan.json`, `ixpfx.json` | PeeringDB's API ([`crate::peeringdb`]) |
//! | `meta.json` | `weir peering fetch`: time and origin of each file |

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::{Neighbor, Peering};
use crate::{Error, read};

/// A prefix with the lengths that are accepted within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// The prefix.
    pub prefix: IpNet,
    /// The shortest length.
    pub least: u8,
    /// The longest length.
    pub most: u8,
}

impl Entry {
    /// Whether a route is within it.
    #[must_use]
    pub fn accepts(&self, route: &IpNet) -> bool {
        self.prefix.contains(route) && (self.least..=self.most).contains(&route.prefix_len())
    }
}

/// A validated ROA payload (RFC 6811).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vrp {
    /// The prefix.
    pub prefix: IpNet,
    /// The longest length that is valid.
    pub max_length: u8,
    /// The origin; 0 = nobody.
    pub asn: u32,
}

/// What public databases said when the snapshot was made.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Prefix sets by AS-SET, sorted.
    pub sets: BTreeMap<String, Vec<Entry>>,
    /// AS numbers by AS-SET, where they are known.
    pub asns: BTreeMap<String, BTreeSet<u32>>,
    /// ROA payloads, sorted.
    pub vrps: Vec<Vrp>,
    /// Providers by customer (ASPA).
    pub aspas: BTreeMap<u32, BTreeSet<u32>>,
    /// Networks that are never behind route servers.
    pub never_via_route_servers: BTreeSet<u32>,
    /// What a person should know of the data: ages, and what is therefore not used.
    pub notes: Vec<String>,
}

#[derive(Deserialize)]
struct BgpqEntry {
    prefix: IpNet,
    #[serde(rename = "greater-equal")]
    least: Option<u8>,
    #[serde(rename = "less-equal")]
    most: Option<u8>,
}

#[derive(Deserialize)]
struct VrpFile {
    roas: Vec<VrpEntry>,
    #[serde(default)]
    aspas: Vec<AspaEntry>,
}

#[derive(Deserialize)]
struct AspaEntry {
    #[serde(alias = "customer")]
    customer_asid: Asn,
    providers: Vec<Asn>,
}

#[derive(Deserialize)]
struct VrpEntry {
    prefix: IpNet,
    #[serde(rename = "maxLength")]
    max_length: u8,
    asn: Asn,
}

/// rpki-client writes numbers, stayrtr's older files `AS64500`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Asn {
    Number(u32),
    Text(String),
}

impl Asn {
    fn number(&self) -> Option<u32> {
        match self {
            Self::Number(asn) => Some(*asn),
            Self::Text(text) => text.trim_start_matches("AS").parse().ok(),
        }
    }
}

impl Snapshot {
    /// Reads what the neighbours of `peering` need. `now` is in seconds since 1970 and decides what is too old.
    ///
    /// # Errors
    /// All files that are missing or wrong.
    pub fn load(folder: &Path, peering: &Peering, now: u64) -> Result<Snapshot, Error> {
        let mut snapshot = Snapshot::default();
        let mut findings = Vec::new();
        for neighbor in &peering.neighbors {
            for set in sets_of(neighbor) {
                if snapshot.sets.contains_key(set) {
                    continue;
                }
                match prefix_set(folder, set) {
                    Ok(entries) if entries.is_empty() => findings.push(format!(
                        "AS{}: {set} has no prefixes in the snapshot; run `weir peering fetch`, or name `prefixes`",
                        neighbor.asn
                    )),
                    Ok(entries) => drop(snapshot.sets.insert(set.to_owned(), entries)),
                    Err(error) => findings.push(format!("AS{}: {error}", neighbor.asn)),
                }
                match member_asns(folder, set) {
                    Ok(Some(asns)) if asns.is_empty() => {
                        findings.push(format!("AS{}: {set} has no AS numbers", neighbor.asn));
                    }
                    Ok(Some(asns)) => drop(snapshot.asns.insert(set.to_owned(), asns)),
                    Ok(None) => {}
                    Err(error) => findings.push(format!("AS{}: {error}", neighbor.asn)),
                }
            }
        }
        match vrps(&folder.join("vrps.json")) {
            Ok((vrps, _)) if vrps.is_empty() => findings.push("vrps.json has no ROAs".to_owned()),
            Ok((vrps, aspas)) => (snapshot.vrps, snapshot.aspas) = (vrps, aspas),
            Err(error) => findings.push(error.to_string()),
        }
        match crate::peeringdb::networks_if_any(folder) {
            Ok(networks) => {
                let never = networks
                    .values()
                    .filter(|it| it.info_never_via_route_servers);
                snapshot.never_via_route_servers = never.map(|it| it.asn).collect();
            }
            Err(error) => findings.push(error.to_string()),
        }
        snapshot
            .never_via_route_servers
            .extend(&peering.policy.never_via_route_servers);
        if let Some(file) = &peering.data.rpki.slurm
            && let Err(error) = slurm(&mut snapshot.vrps, file)
        {
            findings.push(error.to_string());
        }
        match crate::fetch::meta(folder) {
            Ok(meta) => findings.extend(snapshot.age(&meta, peering, now)),
            Err(error) => findings.push(error.to_string()),
        }
        if findings.is_empty() {
            Ok(snapshot)
        } else {
            Err(Error::Findings(findings))
        }
    }

    /// Compares ages with the thresholds: what is old is noted, what is expired is not used or refused.
    fn age(&mut self, meta: &crate::fetch::Meta, peering: &Peering, now: u64) -> Vec<String> {
        let data = &peering.data;
        let mut refused = Vec::new();
        for (file, it) in &meta.files {
            let age = now.saturating_sub(it.fetched);
            let hours = age / 3600;
            let (max_age, expire) = if file == "vrps.json" {
                (data.rpki.max_age, data.rpki.expire)
            } else if file.starts_with("irr/") {
                (data.irr.max_age, data.irr.expire)
            } else {
                (data.peeringdb.max_age, data.peeringdb.expire)
            };
            if file == "vrps.json" && age > expire.as_secs() {
                // RFC 6811: without data no route is invalid. Old data would reject routes that are valid now.
                self.vrps.clear();
                self.aspas.clear();
                self.notes.push(format!(
                    "{file} is {hours} hours old and expired: origin validation finds no ROA for any route"
                ));
            } else if age > expire.as_secs() {
                refused.push(format!(
                    "{file} is {hours} hours old and expired; run `weir peering fetch`, or raise `expire`"
                ));
            } else if age > max_age.as_secs() {
                self.notes.push(format!("{file} is {hours} hours old"));
            }
        }
        refused
    }

    /// The AS-SETs whose prefixes a configuration needs.
    #[must_use]
    pub fn sets_of(peering: &Peering) -> BTreeSet<String> {
        let all = peering.neighbors.iter().flat_map(sets_of);
        all.map(str::to_owned).collect()
    }

    /// What a neighbour may announce.
    #[must_use]
    pub fn accepted(&self, neighbor: &Neighbor) -> Vec<Entry> {
        let mut entries: Vec<Entry> = if neighbor.prefixes.is_empty() {
            let sets = sets_of(neighbor).filter_map(|set| self.sets.get(set));
            sets.flatten().copied().collect()
        } else {
            neighbor.prefixes.iter().map(with_more_specifics).collect()
        };
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    /// The AS numbers that may be origins of a neighbour's routes; `None` = they are not known.
    #[must_use]
    pub fn origins(&self, neighbor: &Neighbor) -> Option<BTreeSet<u32>> {
        let mut asns = BTreeSet::new();
        let mut any = false;
        for set in sets_of(neighbor) {
            asns.extend(self.asns.get(set)?);
            any = true;
        }
        any.then_some(asns)
    }
}

/// The AS-SETs whose prefixes a neighbour may announce, when its prefixes are not configured.
pub(crate) fn sets_of(neighbor: &Neighbor) -> impl Iterator<Item = &str> {
    let wanted = neighbor.is_filtered_by_prefix() && neighbor.prefixes.is_empty();
    let text = neighbor.as_set.as_deref().filter(|_| wanted).unwrap_or("");
    split_sets(text)
}

/// Names of AS-SETs that are separated by blanks or commas.
pub(crate) fn split_sets(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ',', '\t', '\n', '\r'])
        .filter(|it| !it.is_empty())
}

/// Removes and adds payloads as a SLURM file says (RFC 8416).
fn slurm(vrps: &mut Vec<Vrp>, path: &Path) -> Result<(), Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Filter {
        prefix: Option<IpNet>,
        asn: Option<u32>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Assertion {
        prefix: IpNet,
        asn: u32,
        max_prefix_length: Option<u8>,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Lists {
        prefix_filters: Vec<Filter>,
        prefix_assertions: Vec<Assertion>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct File {
        #[serde(default)]
        validation_output_filters: Lists,
        #[serde(default)]
        locally_added_assertions: Lists,
    }
    let text = read(path)?;
    let file: File = serde_json::from_str(&text).map_err(|error| wrong(path, &error))?;
    let filters = file.validation_output_filters.prefix_filters;
    if filters
        .iter()
        .any(|it| it.prefix.is_none() && it.asn.is_none())
    {
        return Err(wrong(path, &"a filter with neither prefix nor asn"));
    }
    vrps.retain(|vrp| {
        !filters.iter().any(|it| {
            it.prefix.is_none_or(|prefix| prefix.contains(&vrp.prefix))
                && it.asn.is_none_or(|asn| asn == vrp.asn)
        })
    });
    for it in file.locally_added_assertions.prefix_assertions {
        let max_length = it.max_prefix_length.unwrap_or(it.prefix.prefix_len());
        if max_length < it.prefix.prefix_len() || max_length > it.prefix.max_prefix_len() {
            return Err(wrong(
                path,
                &format!("{}: maxPrefixLength {max_length}", it.prefix),
            ));
        }
        vrps.push(Vrp {
            prefix: it.prefix.trunc(),
            max_length,
            asn: it.asn,
        });
    }
    vrps.sort_unstable();
    vrps.dedup();
    Ok(())
}

/// The members of an AS-SET, when the snapshot has them.
pub(crate) fn member_asns(folder: &Path, set: &str) -> Result<Option<BTreeSet<u32>>, Error> {
    let path = folder
        .join("irr")
        .join(format!("{}.asns.json", file_name(set)));
    if !path.exists() {
        return Ok(None);
    }
    let lists: BTreeMap<String, BTreeSet<u32>> =
        serde_json::from_str(&read(&path)?).map_err(|error| wrong(&path, &error))?;
    Ok(Some(lists.into_values().flatten().collect()))
}

/// The name of an AS-SET in file names.
pub(crate) fn file_name(set: &str) -> String {
    set.replace(':', "_")
}

/// A prefix and its more-specific ones, down to what the Internet takes.
fn with_more_specifics(prefix: &IpNet) -> Entry {
    let longest = if prefix.addr().is_ipv4() { 24 } else { 48 };
    Entry {
        prefix: prefix.trunc(),
        least: prefix.prefix_len(),
        most: longest.max(prefix.prefix_len()),
    }
}

pub(crate) fn prefix_set(folder: &Path, set: &str) -> Result<Vec<Entry>, Error> {
    let name = file_name(set);
    let mut entries = Vec::new();
    for family in ["4", "6"] {
        let path = folder.join("irr").join(format!("{name}.{family}.json"));
        let text = read(&path)?;
        let lists: BTreeMap<String, Vec<BgpqEntry>> =
            serde_json::from_str(&text).map_err(|error| wrong(&path, &error))?;
        for it in lists.into_values().flatten() {
            let length = it.prefix.prefix_len();
            let entry = Entry {
                prefix: it.prefix.trunc(),
                least: it.least.unwrap_or(length).max(length),
                most: it.most.unwrap_or(length).min(it.prefix.max_prefix_len()),
            };
            if it.prefix.addr().is_ipv4() != (family == "4") {
                return Err(wrong(
                    &path,
                    &format!("{} is of the other family", it.prefix),
                ));
            }
            entries.push(entry);
        }
    }
    entries.sort_unstable();
    entries.dedup();
    Ok(entries)
}

/// Providers by customer.
type Aspas = BTreeMap<u32, BTreeSet<u32>>;

pub(crate) fn vrps(path: &Path) -> Result<(Vec<Vrp>, Aspas), Error> {
    let text = read(path)?;
    let file: VrpFile = serde_json::from_str(&text).map_err(|error| wrong(path, &error))?;
    let number = |asn: &Asn| {
        asn.number()
            .ok_or_else(|| wrong(path, &"an AS number that is none"))
    };
    let mut vrps = Vec::with_capacity(file.roas.len());
    for it in file.roas {
        let asn = number(&it.asn)?;
        if it.max_length < it.prefix.prefix_len() || it.max_length > it.prefix.max_prefix_len() {
            return Err(wrong(
                path,
                &format!("{}: maxLength {}", it.prefix, it.max_length),
            ));
        }
        vrps.push(Vrp {
            prefix: it.prefix.trunc(),
            max_length: it.max_length,
            asn,
        });
    }
    vrps.sort_unstable();
    vrps.dedup();
    let mut aspas = Aspas::new();
    for it in file.aspas {
        let providers: &mut BTreeSet<u32> = aspas.entry(number(&it.customer_asid)?).or_default();
        for asn in &it.providers {
            providers.insert(number(asn)?);
        }
    }
    Ok((vrps, aspas))
}

fn wrong(path: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::Format {
        path: path.display().to_string(),
        reason: reason.to_string(),
    }
}
