//! Public data in a folder: `irr/SET.4.json` and `irr/SET.6.json` as `bgpq4 -j -l NN` writes them, and `vrps.json`
//! as rpki-client writes it. A file that is missing, empty or damaged is an error: it never opens a filter.

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
    /// ROA payloads, sorted.
    pub vrps: Vec<Vrp>,
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

impl Snapshot {
    /// Reads what the neighbours of `peering` need.
    ///
    /// # Errors
    /// All files that are missing or wrong.
    pub fn load(folder: &Path, peering: &Peering) -> Result<Snapshot, Error> {
        let mut snapshot = Snapshot::default();
        let mut findings = Vec::new();
        for neighbor in &peering.neighbors {
            let Some(set) = set_of(neighbor) else {
                continue;
            };
            if snapshot.sets.contains_key(set) {
                continue;
            }
            match prefix_set(folder, set) {
                Ok(entries) if entries.is_empty() => findings.push(format!(
                    "AS{}: {set} has no prefixes in the snapshot; run `weir peering fetch`, or name `prefixes`",
                    neighbor.asn
                )),
                Ok(entries) => drop(snapshot.sets.insert(set.clone(), entries)),
                Err(error) => findings.push(format!("AS{}: {error}", neighbor.asn)),
            }
        }
        match vrps(&folder.join("vrps.json")) {
            Ok(vrps) if vrps.is_empty() => findings.push("vrps.json has no ROAs".to_owned()),
            Ok(vrps) => snapshot.vrps = vrps,
            Err(error) => findings.push(error.to_string()),
        }
        if findings.is_empty() {
            Ok(snapshot)
        } else {
            Err(Error::Findings(findings))
        }
    }

    /// The AS-SETs whose prefixes a configuration needs.
    #[must_use]
    pub fn sets_of(peering: &Peering) -> BTreeSet<String> {
        peering
            .neighbors
            .iter()
            .filter_map(set_of)
            .cloned()
            .collect()
    }

    /// What a neighbour may announce.
    #[must_use]
    pub fn accepted(&self, neighbor: &Neighbor) -> Vec<Entry> {
        if neighbor.prefixes.is_empty() {
            let set = neighbor.as_set.as_ref();
            return set
                .and_then(|set| self.sets.get(set))
                .cloned()
                .unwrap_or_default();
        }
        let mut entries: Vec<Entry> = neighbor.prefixes.iter().map(with_more_specifics).collect();
        entries.sort_unstable();
        entries
    }
}

/// The AS-SET whose prefixes a neighbour may announce, when its prefixes are not configured.
fn set_of(neighbor: &Neighbor) -> Option<&String> {
    let set = neighbor.as_set.as_ref()?;
    (neighbor.is_filtered_by_prefix() && neighbor.prefixes.is_empty()).then_some(set)
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
    let name = set.replace(':', "_");
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

pub(crate) fn vrps(path: &Path) -> Result<Vec<Vrp>, Error> {
    let text = read(path)?;
    let file: VrpFile = serde_json::from_str(&text).map_err(|error| wrong(path, &error))?;
    let mut vrps = Vec::with_capacity(file.roas.len());
    for it in file.roas {
        let asn = match it.asn {
            Asn::Number(asn) => asn,
            Asn::Text(text) => text
                .trim_start_matches("AS")
                .parse()
                .map_err(|_| wrong(path, &format!("{text:?} is not an AS number")))?,
        };
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
    Ok(vrps)
}

fn wrong(path: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::Format {
        path: path.display().to_string(),
        reason: reason.to_string(),
    }
}
