//! The snapshot from public sources: IRR prefix sets by `bgpq4`, ROAs as rpki-client writes them, PeeringDB.
//!
//! The only part that uses the network. New data replaces old data only when it can be read, is not empty, and has
//! not lost more than a share of its entries. Otherwise the old data stays, and the finding says so. URLs are
//! fetched by `curl`, IRR data by `bgpq4`; both are Debian packages and run as other processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::apply::write;
use crate::model::Peering;
use crate::snapshot::{Snapshot, prefix_set, vrps};
use crate::{Error, read};

/// The largest file that is fetched.
const MOST_BYTES: u64 = 512 << 20;

/// Where data comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// File or URL of ROAs, as rpki-client writes them.
    pub vrps: Option<String>,
    /// A folder with bgpq4's output; otherwise bgpq4 is run.
    pub irr: Option<PathBuf>,
    /// The IRR server for bgpq4.
    pub irr_server: Option<String>,
    /// The IRR sources for bgpq4, as `RIPE,RADB`.
    pub irr_sources: Option<String>,
    /// File or URL of PeeringDB's `net` objects.
    pub peeringdb: Option<String>,
}

/// One source and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Fetched {
    /// The file in the snapshot.
    pub file: String,
    /// Where it came from.
    pub from: String,
    /// Entries before; 0 = there was none.
    pub before: usize,
    /// Entries after.
    pub after: usize,
    /// Why the old data stays.
    pub problem: Option<String>,
}

/// When and whence the files of a snapshot came.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Meta {
    /// By file.
    pub files: BTreeMap<String, FileMeta>,
}

/// When and whence a file came.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileMeta {
    /// Seconds since 1970.
    pub fetched: u64,
    /// A file, a URL, or a server.
    pub from: String,
    /// Entries.
    pub entries: usize,
}

/// Reads `meta.json` of a snapshot; a snapshot that was made by hand has none.
///
/// # Errors
/// When it is damaged.
pub fn meta(folder: &Path) -> Result<Meta, Error> {
    let path = folder.join("meta.json");
    if !path.exists() {
        return Ok(Meta::default());
    }
    serde_json::from_str(&read(&path)?).map_err(|error| Error::Format {
        path: path.display().to_string(),
        reason: error.to_string(),
    })
}

/// Brings a snapshot up to date. Data that lost more than `most_loss` percent of its entries is not taken over.
///
/// # Errors
/// When the folder cannot be written. What could not be fetched is in the result.
pub fn fetch(
    peering: &Peering,
    folder: &Path,
    sources: &Sources,
    most_loss: u32,
) -> Result<Vec<Fetched>, Error> {
    let made = |path: &Path| {
        std::fs::create_dir_all(path).map_err(|source| Error::File {
            path: path.display().to_string(),
            source,
        })
    };
    let staging = folder.join("new");
    made(&folder.join("irr"))?;
    made(&staging.join("irr"))?;
    let mut meta = meta(folder)?;
    let mut all = Vec::new();
    let mut take = |files: &[String],
                    from: String,
                    fetched: Result<(), String>,
                    count: &dyn Fn(&Path) -> Result<usize, Error>| {
        let before = count(folder).unwrap_or(0);
        let counted = fetched.and_then(|()| count(&staging).map_err(|error| error.to_string()));
        let problem = match counted {
            Err(problem) => Some(problem),
            Ok(0) => Some("it is empty".to_owned()),
            Ok(after) if lost(before, after) > most_loss => Some(format!(
                "it has {after} entries instead of {before}: more than {most_loss} % are gone"
            )),
            Ok(after) => {
                for file in files {
                    std::fs::rename(staging.join(file), folder.join(file)).map_err(|source| {
                        Error::File {
                            path: file.clone(),
                            source,
                        }
                    })?;
                    let known = FileMeta {
                        fetched: now(),
                        from: from.clone(),
                        entries: after,
                    };
                    meta.files.insert(file.clone(), known);
                }
                all.push(Fetched {
                    file: files.join(", "),
                    from,
                    before,
                    after,
                    problem: None,
                });
                return Ok(());
            }
        };
        all.push(Fetched {
            file: files.join(", "),
            from,
            before,
            after: before,
            problem,
        });
        Ok::<(), Error>(())
    };
    for set in Snapshot::sets_of(peering) {
        let names = ["4", "6"].map(|family| format!("irr/{}.{family}.json", set.replace(':', "_")));
        let fetched = names
            .iter()
            .zip(["-4", "-6"])
            .try_for_each(|(name, family)| irr(sources, &set, family, name, &staging.join(name)));
        let from = match &sources.irr {
            Some(folder) => folder.display().to_string(),
            None => sources
                .irr_server
                .clone()
                .unwrap_or_else(|| "bgpq4".to_owned()),
        };
        take(&names, from, fetched, &|folder| {
            Ok(prefix_set(folder, &set)?.len())
        })?;
    }
    if let Some(from) = &sources.vrps {
        let name = "vrps.json".to_owned();
        let fetched = get(from, &staging.join(&name));
        take(&[name], from.clone(), fetched, &|folder| {
            Ok(vrps(&folder.join("vrps.json"))?.len())
        })?;
    }
    if let Some(from) = &sources.peeringdb {
        let name = "peeringdb.json".to_owned();
        let fetched = get(&peeringdb_url(from, peering), &staging.join(&name));
        take(&[name], from.clone(), fetched, &|folder| {
            Ok(networks(folder)?.len())
        })?;
    }
    let text = serde_json::to_string_pretty(&meta).map_err(|error| Error::Format {
        path: "meta.json".to_owned(),
        reason: error.to_string(),
    })?;
    write(&folder.join("meta.json"), &text)?;
    let _ = std::fs::remove_dir_all(&staging);
    Ok(all)
}

/// The percentage that is gone.
fn lost(before: usize, after: usize) -> u32 {
    let gone = before.saturating_sub(after);
    (gone * 100).checked_div(before).unwrap_or(0) as u32
}

fn irr(sources: &Sources, set: &str, family: &str, name: &str, to: &Path) -> Result<(), String> {
    if let Some(folder) = &sources.irr {
        let from = folder.join(Path::new(name).file_name().unwrap_or_default());
        return std::fs::copy(&from, to)
            .map(drop)
            .map_err(|error| format!("{}: {error}", from.display()));
    }
    let mut command = Command::new("bgpq4");
    if let Some(server) = &sources.irr_server {
        command.args(["-h", server]);
    }
    if let Some(list) = &sources.irr_sources {
        command.args(["-S", list]);
    }
    command.args([family, "-j", "-l", "NN", set]);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run bgpq4: {error}; install the package bgpq4"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("bgpq4 failed: {}", said.trim()));
    }
    std::fs::write(to, output.stdout).map_err(|error| error.to_string())
}

/// Copies a file, or fetches a URL.
fn get(from: &str, to: &Path) -> Result<(), String> {
    let Some((scheme, _)) = from.split_once("://") else {
        return std::fs::copy(from, to)
            .map(drop)
            .map_err(|error| format!("{from}: {error}"));
    };
    if !matches!(scheme, "http" | "https") {
        return Err(format!("{from}: only http and https are known"));
    }
    let output = Command::new("curl")
        .args([
            "--fail",
            "--silent",
            "--show-error",
            "--location",
            "--max-time",
            "300",
        ])
        .args([
            "--proto",
            "=http,https",
            "--max-filesize",
            &MOST_BYTES.to_string(),
        ])
        .arg("--output")
        .arg(to)
        .args(["--", from])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run curl: {error}; install the package curl"))?;
    if output.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{from}: {}", said.trim()))
    }
}

/// The API's query for the neighbours alone, when the base address of an API is given.
fn peeringdb_url(from: &str, peering: &Peering) -> String {
    if !from.ends_with("/api") {
        return from.to_owned();
    }
    let mut asns: Vec<u32> = peering.neighbors.iter().map(|it| it.asn).collect();
    asns.sort_unstable();
    asns.dedup();
    let list: Vec<String> = asns.iter().map(u32::to_string).collect();
    format!("{from}/net?asn__in={}", list.join(","))
}

/// A network of PeeringDB.
#[derive(Clone, Debug, Deserialize)]
pub struct Network {
    /// Its AS number.
    pub asn: u32,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its AS-SET.
    #[serde(default)]
    pub irr_as_set: Option<String>,
    /// How many IPv4 prefixes it announces at most.
    #[serde(default)]
    pub info_prefixes4: Option<u32>,
    /// How many IPv6 prefixes it announces at most.
    #[serde(default)]
    pub info_prefixes6: Option<u32>,
}

#[derive(Deserialize)]
struct Networks {
    data: Vec<Network>,
}

/// PeeringDB's networks of a snapshot, by AS number.
///
/// # Errors
/// When the file is missing or damaged.
pub fn networks(folder: &Path) -> Result<BTreeMap<u32, Network>, Error> {
    let path = folder.join("peeringdb.json");
    let file: Networks = serde_json::from_str(&read(&path)?).map_err(|error| Error::Format {
        path: path.display().to_string(),
        reason: error.to_string(),
    })?;
    Ok(file.data.into_iter().map(|it| (it.asn, it)).collect())
}

/// The limit that follows from PeeringDB's number: room for growth, and for networks that keep it low.
#[must_use]
pub fn derived_limit(prefixes: u32) -> u32 {
    ((u64::from(prefixes) + 100) * 115 / 100).min(u64::from(u32::MAX)) as u32
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |it| it.as_secs())
}
