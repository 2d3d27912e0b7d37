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
use crate::peeringdb;
use crate::snapshot::{Snapshot, file_name, member_asns, prefix_set, vrps};
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
                    if !staging.join(file).exists() {
                        continue;
                    }
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
    // PeeringDB first: AS-SETs that the section does not name come from it.
    let peeringdb_source = sources
        .peeringdb
        .as_ref()
        .or(peering.data.peeringdb.from.as_ref());
    if let Some(from) = peeringdb_source {
        for (file, object) in peeringdb::FILES {
            let fetched = match peeringdb_object(from, file, object, peering, folder) {
                Ok(false) => continue,
                Ok(true) => Ok(()),
                Err(problem) => Err(problem),
            };
            take(&[file.to_owned()], from.clone(), fetched, &|folder| {
                peeringdb::count(folder, file)
            })?;
        }
    }
    let known = peeringdb::PeeringDb::load(folder, false)?;
    // What cannot be completed is reported when the snapshot is used.
    let completed = crate::resolve::complete(peering.clone(), &known).map(|it| it.0);
    let sets = Snapshot::sets_of(completed.as_ref().unwrap_or(peering));
    for set in sets {
        let files = ["4.json", "6.json", "asns.json"];
        let names = files.map(|it| format!("irr/{}.{it}", file_name(&set)));
        let irr_from = sources.irr.is_some();
        let fetched = names.iter().zip(files).try_for_each(|(name, kind)| {
            let result = irr(sources, peering, &set, kind, name, &staging.join(name));
            // A folder may lack the members.
            if irr_from && kind == "asns.json" {
                Ok(())
            } else {
                result
            }
        });
        let from = match &sources.irr {
            Some(folder) => folder.display().to_string(),
            None => irr_server(sources, peering).unwrap_or("bgpq4").to_owned(),
        };
        take(&names, from, fetched, &|folder| {
            member_asns(folder, &set)?;
            Ok(prefix_set(folder, &set)?.len())
        })?;
    }
    if let Some(from) = sources.vrps.as_ref().or(peering.data.rpki.from.as_ref()) {
        let name = "vrps.json".to_owned();
        let fetched = get(from, &staging.join(&name));
        take(&[name], from.clone(), fetched, &|folder| {
            Ok(vrps(&folder.join("vrps.json"))?.0.len())
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

fn irr_server<'a>(sources: &'a Sources, peering: &'a Peering) -> Option<&'a str> {
    let own = peering.data.irr.from.as_deref();
    sources.irr_server.as_deref().or(own)
}

fn irr(
    sources: &Sources,
    peering: &Peering,
    set: &str,
    kind: &str,
    name: &str,
    to: &Path,
) -> Result<(), String> {
    if let Some(folder) = &sources.irr {
        let from = folder.join(Path::new(name).file_name().unwrap_or_default());
        return std::fs::copy(&from, to)
            .map(drop)
            .map_err(|error| format!("{}: {error}", from.display()));
    }
    let mut command = Command::new("bgpq4");
    if let Some(server) = irr_server(sources, peering) {
        command.args(["-h", server]);
    }
    let list = peering.data.irr.sources.join(",");
    if let Some(list) = sources
        .irr_sources
        .clone()
        .or((!list.is_empty()).then_some(list))
    {
        command.args(["-S", &list]);
    }
    // Aggregated, and up to what filters accept: fewer entries for the same routes.
    match kind {
        "4.json" => command.args(["-4", "-A", "-m", "24"]),
        "6.json" => command.args(["-6", "-A", "-m", "48"]),
        _ => command.arg("-t"),
    };
    command.args(["-j", "-l", "NN", set]);
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

/// Gets one kind of PeeringDB's objects; false when the source does not have it. A source is a file with networks, a folder
/// with the files of a snapshot, or the base address of an API.
fn peeringdb_object(
    from: &str,
    file: &str,
    object: &str,
    peering: &Peering,
    folder: &Path,
) -> Result<bool, String> {
    let to = folder.join("new").join(file);
    if !from.contains("://") && Path::new(from).is_dir() {
        let source = Path::new(from).join(file);
        return if source.exists() {
            get(&source.display().to_string(), &to).map(|()| true)
        } else {
            Ok(false)
        };
    }
    if !from.ends_with("/api") {
        // One file or address has networks only.
        return if object == "net" {
            get(from, &to).map(|()| true)
        } else {
            Ok(false)
        };
    }
    let mut ixs: Vec<u32> = peering
        .exchanges
        .values()
        .filter_map(|it| it.peeringdb_ix)
        .collect();
    ixs.sort_unstable();
    ixs.dedup();
    let (key, numbers) = match object {
        "net" => ("asn__in", networks_of_interest(peering, folder)),
        "netixlan" | "ixlan" => ("ix_id__in", ixs),
        _ => ("ixlan_id__in", ixs),
    };
    if numbers.is_empty() {
        return Ok(false);
    }
    // Long lists of numbers make addresses that servers refuse.
    let mut data = Vec::new();
    for part in numbers.chunks(PER_QUERY) {
        let list: Vec<String> = part.iter().map(u32::to_string).collect();
        get(&format!("{from}/{object}?{key}={}", list.join(",")), &to)?;
        let text = std::fs::read_to_string(&to).map_err(|error| error.to_string())?;
        let reply: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| format!("{object}: {error}"))?;
        match reply.get("data") {
            Some(serde_json::Value::Array(list)) => data.extend(list.iter().cloned()),
            _ => return Err(format!("{object}: a reply without data")),
        }
    }
    let text = serde_json::json!({"data": data}).to_string();
    std::fs::write(&to, text).map_err(|error| error.to_string())?;
    Ok(true)
}

/// The most numbers of a query.
const PER_QUERY: usize = 150;

/// Neighbours, and the networks at the own exchanges, which could become neighbours.
fn networks_of_interest(peering: &Peering, folder: &Path) -> Vec<u32> {
    let mut asns: Vec<u32> = peering.neighbors.iter().map(|it| it.asn).collect();
    if let Ok(all) = peeringdb::PeeringDb::load(folder, false) {
        asns.extend(all.presences.iter().map(|it| it.asn));
    }
    asns.sort_unstable();
    asns.dedup();
    asns
}

/// Seconds since 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |it| it.as_secs())
}
